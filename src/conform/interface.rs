//! The interface file: which labels of a machine are memory operations.
//!
//! ```text
//! initial c_data_undefined;                              // what memory holds at first
//! numbers from 0;                                        // the number of a processor's first operation; 0 if nothing is said
//! load  end_load(p, a, v, n);                            // one label for an operation …
//! store start_store(p, a, v, n) -> end_store(p, _, _, n);  // … or one where it begins and one where it ends
//! load acquire ld_acq(p, a, v);  store release st_rel(p, a, v);
//! fence mfence(p);  update xchg(p, a, v, w);             // an update reads v and writes w
//! observe observe(p, a, v, n, q);                        // processor p sees a store of q: said of a run, judged by no model
//! internal refill, access("c_flush", _, _, _);          // labels that are no memory operations
//! program load do_load(p, "ld(a)") -> answer(p, v);      // what the most general program does for a load, and what it takes at any later time
//! processors p0, p1;  addresses 1, 2;  values 1;         // which ones that program uses, where the machine's sorts do not say it
//! ```
//!
//! The letters say what an argument is: `p` processor, `a` address, `v` value, `w` value written by
//! an update, `n` number, `q` another processor, `_` nothing of interest. A text in quotes stands
//! for itself: `access("c_read", p, a, v)`. In a
//! `program` line a text in quotes is an expression, in which the letters are what they are
//! elsewhere.
//!
//! *Internal labels.* A label that matches no line is internal. If it carries a processor, an
//! address or a value, an `internal` line must list it: otherwise a forgotten line would look like
//! a machine that does less. The name of an action alone lists all its labels that no other line
//! matches.
//!
//! *Program order.* The order of the labels where operations begin. If an operation has one label
//! with a number, its number says where it stands. An end belongs to the operation with its number;
//! without numbers to the first of the processor that has begun and fits. An operation with one
//! label is taken to have no effect before it: if another processor can load a value before the
//! label of its store, the store needs a beginning. Invariant: every operation of an [`Interface`]
//! says all that its kind needs, and no label can match two operations.

use mu_axioms::Kind;
use mu_axioms::models::Mark;
use mu_base::words::{self, Cursor, Form, Kind as Token};
use mu_base::{Diagnostic, SourceId, Span, Stage};

/// What an argument is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// The processor.
    Processor,
    /// The address.
    Address,
    /// The value that is read or stored.
    Value,
    /// The value that an update writes.
    Written,
    /// The number of the operation.
    Number,
    /// Another processor.
    Other,
    /// Nothing of interest.
    Any,
    /// This text and no other.
    Text(String),
}

const LETTERS: [(&str, Role); 7] = [
    ("p", Role::Processor),
    ("a", Role::Address),
    ("v", Role::Value),
    ("w", Role::Written),
    ("n", Role::Number),
    ("q", Role::Other),
    ("_", Role::Any),
];

/// A kind of label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The action.
    pub action: String,
    /// Its arguments.
    pub roles: Vec<Role>,
    /// Where it stands.
    pub span: Span,
    /// Where the arguments stand.
    pub places: Vec<Span>,
}

/// A text with its place: a value, or the name of a processor or address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// The text.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// An entry of an `internal` line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Internal {
    /// The labels.
    pub label: Label,
    /// True if the action alone is given: whatever its arguments.
    pub all: bool,
}

impl Label {
    fn has(&self, role: &Role) -> bool {
        self.roles.contains(role)
    }
    /// The arguments of a label that fits.
    pub fn fits<'t>(&self, name: &str, arguments: &[&'t str]) -> Option<Vec<(&Role, &'t str)>> {
        if name != self.action || arguments.len() != self.roles.len() {
            return None;
        }
        let all = self.roles.iter().zip(arguments.iter().copied());
        all.clone()
            .all(|(role, text)| !matches!(role, Role::Text(t) if t != text))
            .then(|| all.collect())
    }
    /// True if some label can match both.
    fn overlaps(&self, other: &Label) -> bool {
        let differ =
            |(a, b): (&Role, &Role)| matches!((a, b), (Role::Text(a), Role::Text(b)) if a != b);
        self.action == other.action
            && self.roles.len() == other.roles.len()
            && !self.roles.iter().zip(&other.roles).any(differ)
    }
    /// True if all labels that match another one match this one.
    fn covers(&self, other: &Label) -> bool {
        let holds = |(a, b): (&Role, &Role)| !matches!(a, Role::Text(_)) || a == b;
        self.action == other.action
            && self.roles.len() == other.roles.len()
            && self.roles.iter().zip(&other.roles).all(holds)
    }
    /// Prints it as in the file.
    pub fn text(&self) -> String {
        let one = |r: &Role| match r {
            Role::Text(t) => format!("\"{t}\""),
            other => letter(other).to_string(),
        };
        let roles: Vec<String> = self.roles.iter().map(one).collect();
        if roles.is_empty() {
            self.action.clone()
        } else {
            format!("{}({})", self.action, roles.join(", "))
        }
    }
}

impl Operation {
    /// Prints it as in the file, with the kind.
    pub fn text(&self) -> String {
        let begin = self.begin.as_ref().map_or(String::new(), |b| format!("{} -> ", b.text()));
        format!("{} {begin}{}", self.name(), self.end.text())
    }
    /// Returns the kind, as in the file.
    pub fn name(&self) -> &'static str {
        KINDS.iter().find(|k| k.1 == self.kind).map_or("fence", |k| k.0)
    }
}

/// A memory operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Load, store, update or fence.
    pub kind: Kind,
    /// Whether it is an acquire or a release.
    pub mark: Mark,
    /// Where it begins, if that is a label of its own.
    pub begin: Option<Label>,
    /// Where it ends.
    pub end: Label,
}

/// What the most general program does for one kind of operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Load, store, update or fence.
    pub kind: Kind,
    /// What it does, in communication with the machine.
    pub does: Label,
    /// What it takes afterwards, whenever the machine offers it.
    pub takes: Option<Label>,
}

/// See the module's head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// What memory holds at first.
    pub initial: Word,
    /// The number of a processor's first operation.
    pub first: u64,
    /// The operations.
    pub operations: Vec<Operation>,
    /// What processors observe.
    pub observed: Vec<Label>,
    /// Labels that are no operations.
    pub internal: Vec<Internal>,
    /// The most general program, if the machine needs one.
    pub program: Vec<Part>,
    /// The processors, addresses and values that it uses, as far as that is said.
    pub used: [Vec<Word>; 3],
}

/// The words before what a program uses, in the order of [`Interface::used`].
const USED: [&str; 3] = ["processors", "addresses", "values"];
const LINES: &str = "`initial`, `numbers`, `load`, `store`, `update`, `fence`, `observe`, `internal`, `program`, `processors`, `addresses` or `values`";

impl Interface {
    /// Reads a file.
    pub fn parse(source: SourceId, text: &str) -> Result<Interface, Diagnostic> {
        let tokens = words::tokens(source, text, 0, Form::Free)?;
        let mut cursor = Cursor::new(&tokens);
        let mut initial = None;
        let mut numbers: Option<Span> = None;
        let end = Span { source, start: text.len() as u32, end: text.len() as u32 };
        let mut out = Interface {
            initial: Word { text: String::new(), span: end },
            first: 0,
            operations: Vec::new(),
            observed: Vec::new(),
            internal: Vec::new(),
            program: Vec::new(),
            used: [const { Vec::new() }; 3],
        };
        while !cursor.at_end() {
            let word = cursor.name(LINES)?;
            match word.text {
                "initial" if initial.is_some() => {
                    return Err(Diagnostic::at(Stage::Syntax, word.span, "a second initial value"));
                }
                "initial" => initial = Some(value(&mut cursor)?),
                "numbers" if numbers.is_some() => {
                    return Err(Diagnostic::at(
                        Stage::Syntax,
                        word.span,
                        "a second `numbers` line",
                    ));
                }
                "numbers" => {
                    numbers = Some(word.span);
                    if !cursor.eat_word("from") {
                        return Err(cursor.unexpected("`from` and a number"));
                    }
                    let token = cursor.peek();
                    let number = cursor.number()?;
                    out.first = u64::try_from(number).map_err(|_| {
                        Diagnostic::at(
                            Stage::Type,
                            token.span,
                            "the number of an operation is not negative",
                        )
                    })?;
                }
                "observe" => {
                    let label = label(&mut cursor)?;
                    require(&label, "observation", &[Role::Processor, Role::Address])?;
                    out.observed.push(label);
                }
                "internal" => {
                    out.internal.push(internal(&mut cursor)?);
                    while cursor.eat(",") {
                        out.internal.push(internal(&mut cursor)?);
                    }
                }
                "program" => out.program.push(part(&mut cursor)?),
                kind => match USED.iter().position(|u| *u == kind) {
                    Some(at) => out.used[at].append(&mut list(&mut cursor)?),
                    None => {
                        let kind = kind_of(kind).ok_or_else(|| {
                            Diagnostic::at(
                                Stage::Syntax,
                                word.span,
                                format!("`{kind}` begins no line of an interface"),
                            )
                            .note(format!("expected {LINES}"))
                        })?;
                        let mark = match kind {
                            Kind::Read if cursor.eat_word("acquire") => Mark::Acquire,
                            Kind::Write if cursor.eat_word("release") => Mark::Release,
                            _ => Mark::Plain,
                        };
                        out.operations.push(operation(&mut cursor, kind, mark)?);
                    }
                },
            }
            cursor.expect(";")?;
        }
        if out.operations.is_empty() {
            return Err(Diagnostic::at(Stage::Syntax, end, "an interface without operations")
                .note("expected `load`, `store`, `update` or `fence`"));
        }
        out.initial = initial.ok_or_else(|| {
            Diagnostic::at(Stage::Syntax, end, "nothing says what memory holds at first")
                .note("expected `initial VALUE;`")
        })?;
        out.distinct()?;
        Ok(out)
    }

    /// Rejects labels that two lines match, and lines that can match nothing because others match
    /// it all.
    fn distinct(&self) -> Result<(), Diagnostic> {
        let twice = |label: &Label, other: &Label, message: String| {
            Err(Diagnostic::at(Stage::Type, label.span, message)
                .related(other.span, "the other line"))
        };
        let judged: Vec<&Label> =
            self.operations.iter().flat_map(|o| o.begin.iter().chain([&o.end])).collect();
        for (i, label) in judged.iter().enumerate() {
            if let Some(other) = judged[..i].iter().find(|o| o.overlaps(label)) {
                return twice(
                    label,
                    other,
                    format!(
                        "a label can match `{}` and `{}`, in two places of the interface",
                        label.text(),
                        other.text()
                    ),
                );
            }
        }
        for (i, label) in self.observed.iter().enumerate() {
            if let Some(other) = self.observed[..i].iter().find(|o| o.overlaps(label)) {
                return twice(
                    label,
                    other,
                    format!(
                        "a label can match `{}` and `{}`, in two `observe` lines",
                        label.text(),
                        other.text()
                    ),
                );
            }
        }
        for (i, internal) in self.internal.iter().enumerate() {
            let label = &internal.label;
            let text = if internal.all { label.action.clone() } else { label.text() };
            let covers = |o: &&Label| {
                o.covers(label)
                    || internal.all
                        && o.action == label.action
                        && o.roles.iter().all(|r| !matches!(r, Role::Text(_)))
            };
            if let Some(other) = judged.iter().copied().chain(&self.observed).find(covers) {
                return twice(
                    label,
                    other,
                    format!(
                        "`{text}` is internal here, and `{}` is a memory operation or an observation",
                        other.text()
                    ),
                );
            }
            let same = |o: &&Internal| {
                o.label.action == label.action && (o.all || internal.all || o.label.overlaps(label))
            };
            if let Some(other) = self.internal[..i].iter().find(same) {
                return twice(label, &other.label, format!("`{text}` is internal twice"));
            }
        }
        for (i, part) in self.program.iter().enumerate() {
            let same = |p: &&Part| {
                p.kind == part.kind
                    && p.does.overlaps(&part.does)
                    && p.takes.as_ref().map(Label::text) == part.takes.as_ref().map(Label::text)
            };
            if let Some(other) = self.program[..i].iter().find(same) {
                return twice(
                    &part.does,
                    &other.does,
                    format!("the program does `{}` in two lines", part.does.text()),
                );
            }
        }
        for (what, all) in USED.iter().zip(&self.used) {
            for (i, word) in all.iter().enumerate() {
                if all[..i].iter().any(|w| w.text == word.text) {
                    return Err(Diagnostic::at(
                        Stage::Type,
                        word.span,
                        format!("`{}` stands twice among the {what}", word.text),
                    ));
                }
            }
        }
        Ok(())
    }

    /// True if an `internal` line lists a label.
    pub fn is_internal(&self, name: &str, arguments: &[&str]) -> bool {
        self.internal.iter().any(|i| {
            i.all && i.label.action == name || !i.all && i.label.fits(name, arguments).is_some()
        })
    }

    /// The first line whose operations are of the same kind: memory models cannot tell them apart.
    pub fn class(&self, operation: usize) -> u32 {
        let of = |o: &Operation| (o.kind, o.mark);
        let wanted = of(&self.operations[operation]);
        self.operations.iter().position(|o| of(o) == wanted).unwrap_or(operation) as u32
    }

    /// All labels that it names.
    pub fn labels(&self) -> impl Iterator<Item = &Label> {
        self.operations.iter().flat_map(|o| o.begin.iter().chain([&o.end])).chain(&self.observed)
    }

    /// Actions that only end operations that have numbers: when such an end comes does not matter
    /// to a history.
    pub fn ends(&self) -> Vec<String> {
        let is_end = |l: &Label| {
            let told = |o: &Operation| o.begin.is_some() && o.end == *l && l.has(&Role::Number);
            self.operations.iter().any(told) && !l.roles.iter().any(|r| matches!(r, Role::Text(_)))
        };
        let only = |l: &Label| self.labels().filter(|m| m.action == l.action).all(is_end);
        self.operations
            .iter()
            .map(|o| &o.end)
            .filter(|l| only(l))
            .map(|l| l.action.clone())
            .collect()
    }

    /// Checks it against the actions of a machine: their names, each with its number of arguments.
    pub fn check(&self, actions: &[(String, usize)]) -> Result<(), Diagnostic> {
        Self::check_all(
            self.labels().chain(self.internal.iter().filter(|i| !i.all).map(|i| &i.label)),
            actions,
        )?;
        let names: Vec<(String, usize)> = actions.iter().map(|a| (a.0.clone(), 0)).collect();
        Self::check_all(self.internal.iter().filter(|i| i.all).map(|i| &i.label), &names)
    }

    /// Checks labels against the actions of a machine.
    pub fn check_all<'l>(
        labels: impl Iterator<Item = &'l Label>,
        actions: &[(String, usize)],
    ) -> Result<(), Diagnostic> {
        for label in labels {
            let counts: Vec<usize> =
                actions.iter().filter(|a| a.0 == label.action).map(|a| a.1).collect();
            if counts.is_empty() {
                let mut names: Vec<&str> = actions.iter().map(|a| a.0.as_str()).collect();
                names.sort_unstable();
                names.dedup();
                return Err(Diagnostic::at(
                    Stage::Type,
                    label.span,
                    format!("the model has no action `{}`", label.action),
                )
                .note(format!("its actions: {}", names.join(", "))));
            }
            if !counts.contains(&label.roles.len()) {
                let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
                let found = label.roles.len();
                let message = format!(
                    "`{}` has {} arguments in the model, {found} here",
                    label.action,
                    counts.join(" or ")
                );
                return Err(Diagnostic::at(Stage::Type, label.span, message));
            }
        }
        Ok(())
    }
}

/// The kinds of operations, by the words of lines.
const KINDS: [(&str, Kind); 4] = [
    ("load", Kind::Read),
    ("store", Kind::Write),
    ("update", Kind::Update),
    ("fence", Kind::Fence),
];

fn kind_of(word: &str) -> Option<Kind> {
    KINDS.iter().find(|k| k.0 == word).map(|k| k.1)
}

/// Reads an entry of an `internal` line.
fn internal(cursor: &mut Cursor<'_, '_>) -> Result<Internal, Diagnostic> {
    let label = label(cursor)?;
    Ok(Internal { all: label.roles.is_empty(), label })
}

/// What stands after `program`.
fn part(cursor: &mut Cursor<'_, '_>) -> Result<Part, Diagnostic> {
    let word = cursor.name("`load`, `store`, `update` or `fence`")?;
    let kind = kind_of(word.text).ok_or_else(|| {
        Diagnostic::at(Stage::Syntax, word.span, format!("`{}` is no kind of operation", word.text))
            .note("expected `load`, `store`, `update` or `fence`")
    })?;
    let does = label(cursor)?;
    let takes = if cursor.eat("->") { Some(label(cursor)?) } else { None };
    for label in takes.iter().chain([&does]) {
        if label.has(&Role::Other) {
            return Err(Diagnostic::at(Stage::Type, label.span, "`q` is for observations"));
        }
    }
    Ok(Part { kind, does, takes })
}

/// Values with commas between them.
fn list(cursor: &mut Cursor<'_, '_>) -> Result<Vec<Word>, Diagnostic> {
    let mut out = vec![value(cursor)?];
    while cursor.eat(",") {
        out.push(value(cursor)?);
    }
    Ok(out)
}

/// A value: a name, a number, or a text in quotes.
fn value(cursor: &mut Cursor<'_, '_>) -> Result<Word, Diagnostic> {
    match cursor.peek().kind {
        Token::Name | Token::Number | Token::Text => {
            let token = cursor.take();
            Ok(Word { text: token.text.trim_matches('"').to_string(), span: token.span })
        }
        _ => Err(cursor.unexpected("a value, or a text in quotes")),
    }
}

fn label(cursor: &mut Cursor<'_, '_>) -> Result<Label, Diagnostic> {
    let name = cursor.name("an action")?;
    let mut out = Label {
        action: name.text.to_string(),
        roles: Vec::new(),
        span: name.span,
        places: Vec::new(),
    };
    if !cursor.eat("(") {
        return Ok(out);
    }
    loop {
        let token = cursor.peek();
        let role = match token.kind {
            Token::Name => {
                let known = LETTERS.iter().find(|l| l.0 == token.text).map(|l| l.1.clone());
                known.ok_or_else(|| {
                    Diagnostic::at(Stage::Syntax, token.span, format!("`{}` does not say what the argument is", token.text))
                        .note("expected p (processor), a (address), v (value), w (written value), n (number), q (another processor) or _")
                        .note(format!("a value that must be there is written in quotes: \"{}\"", token.text))
                })?
            }
            Token::Text | Token::Number => Role::Text(token.text.trim_matches('"').to_string()),
            _ => return Err(cursor.unexpected("p, a, v, w, n, q, _ or a text in quotes")),
        };
        cursor.take();
        if out.has(&role) && !matches!(role, Role::Any | Role::Text(_)) {
            return Err(Diagnostic::at(
                Stage::Type,
                token.span,
                format!("`{}` twice in one label", token.text),
            ));
        }
        out.roles.push(role);
        out.places.push(token.span);
        if !cursor.eat(",") {
            break;
        }
    }
    cursor.expect(")")?;
    Ok(out)
}

/// Returns the letter of an argument, as in the file.
pub fn letter(role: &Role) -> &'static str {
    LETTERS.iter().find(|l| l.1 == *role).map_or("", |l| l.0)
}

fn require(label: &Label, what: &str, roles: &[Role]) -> Result<(), Diagnostic> {
    match roles.iter().find(|r| !label.has(r)) {
        Some(role) => {
            let message = format!("no argument of this {what} is `{}`", letter(role));
            Err(Diagnostic::at(Stage::Type, label.span, message))
        }
        None => Ok(()),
    }
}

fn operation(cursor: &mut Cursor<'_, '_>, kind: Kind, mark: Mark) -> Result<Operation, Diagnostic> {
    let first = label(cursor)?;
    let (begin, end) = if cursor.eat("->") { (Some(first), label(cursor)?) } else { (None, first) };
    let (what, needed): (&str, &[Role]) = match kind {
        Kind::Read => ("load", &[Role::Address, Role::Value]),
        Kind::Write => ("store", &[Role::Address, Role::Value]),
        Kind::Update => ("update", &[Role::Address, Role::Value, Role::Written]),
        _ => ("fence", &[]),
    };
    for label in begin.iter().chain([&end]) {
        require(label, what, &[Role::Processor])?;
        if label.has(&Role::Other) {
            return Err(Diagnostic::at(Stage::Type, label.span, "`q` is for observations"));
        }
        if kind != Kind::Update && label.has(&Role::Written) {
            return Err(Diagnostic::at(
                Stage::Type,
                label.span,
                format!("`w` is for updates: the value of a {what} is `v`"),
            ));
        }
        if kind == Kind::Fence && (label.has(&Role::Address) || label.has(&Role::Value)) {
            return Err(Diagnostic::at(
                Stage::Type,
                label.span,
                "a fence has neither address nor value",
            ));
        }
    }
    for role in needed {
        if !end.has(role) && !begin.as_ref().is_some_and(|b| b.has(role)) {
            let message = format!("no argument of this {what} is `{}`", letter(role));
            return Err(Diagnostic::at(Stage::Type, end.span, message));
        }
    }
    if let Some(b) = begin.as_ref().filter(|b| b.has(&Role::Number) != end.has(&Role::Number)) {
        let message = format!(
            "the number of a {what} must stand both where it begins and where it ends, or in neither"
        );
        return Err(Diagnostic::at(Stage::Type, b.span, message));
    }
    Ok(Operation { kind, mark, begin, end })
}
