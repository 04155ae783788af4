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
//! program load do_load(p, "ld(a)") -> answer(p, v);      // what the most general program does for a load, and what it takes at any later time
//! processors p0, p1;  addresses 1, 2;  values 1;         // which ones that program uses, where the machine's sorts do not say it
//! ```
//!
//! The letters say what an argument is: `p` processor, `a` address, `v` value, `w` value written by an update, `n` number, `q` another
//! processor, `_` nothing of interest. A text in quotes stands for itself: `access("c_read", p, a, v)`. Labels that fit no line are internal. In a
//! `program` line a text in quotes is an expression, in which the letters are what they are elsewhere.
//!
//! *Program order.* The order of the labels where operations begin. If an operation has one label with a number, its number says where it stands.
//! An end belongs to the operation with its number; without numbers to the first of the processor that has begun and fits. An operation with one label
//! is taken to have no effect before it: if another processor can load a value before the label of its store, the store needs a beginning.
//! Invariant: every operation of an [`Interface`] says all that its kind needs.

use mu_axioms::Kind;
use mu_axioms::models::Mark;
use mu_base::words::{self, Cursor, Form, Kind as Word};
use mu_base::{Diagnostic, SourceId, Span, Stage};

/// What an argument is.
#[derive(Clone, PartialEq, Eq, Debug)]
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
        all.clone().all(|(role, text)| !matches!(role, Role::Text(t) if t != text)).then(|| all.collect())
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
    pub initial: String,
    /// The number of a processor's first operation.
    pub first: u64,
    /// The operations.
    pub operations: Vec<Operation>,
    /// What processors observe.
    pub observed: Vec<Label>,
    /// The most general program, if the machine needs one.
    pub program: Vec<Part>,
    /// The processors, addresses and values that it uses, as far as that is said.
    pub used: [Vec<String>; 3],
}

/// The words before what a program uses, in the order of [`Interface::used`].
const USED: [&str; 3] = ["processors", "addresses", "values"];
const LINES: &str = "`initial`, `numbers`, `load`, `store`, `update`, `fence`, `observe`, `program`, `processors`, `addresses` or `values`";

impl Interface {
    /// Reads a file.
    pub fn parse(source: SourceId, text: &str) -> Result<Interface, Diagnostic> {
        let tokens = words::tokens(source, text, 0, Form::Free)?;
        let mut cursor = Cursor::new(&tokens);
        let mut initial = None;
        let mut out = Interface {
            initial: String::new(),
            first: 0,
            operations: Vec::new(),
            observed: Vec::new(),
            program: Vec::new(),
            used: [const { Vec::new() }; 3],
        };
        while !cursor.at_end() {
            let word = cursor.name(LINES)?;
            match word.text {
                "initial" if initial.is_some() => return Err(Diagnostic::at(Stage::Syntax, word.span, "a second initial value")),
                "initial" => initial = Some(value(&mut cursor)?),
                "numbers" => {
                    if !cursor.eat_word("from") {
                        return Err(cursor.unexpected("`from` and a number"));
                    }
                    let token = cursor.peek();
                    let number = cursor.number()?;
                    out.first = u64::try_from(number)
                        .map_err(|_| Diagnostic::at(Stage::Type, token.span, "the number of an operation is not negative"))?;
                }
                "observe" => {
                    let label = label(&mut cursor)?;
                    require(&label, "observation", &[Role::Processor, Role::Address])?;
                    out.observed.push(label);
                }
                "program" => out.program.push(part(&mut cursor)?),
                kind => match USED.iter().position(|u| *u == kind) {
                    Some(at) => out.used[at].append(&mut list(&mut cursor)?),
                    None => {
                        let kind = kind_of(kind).ok_or_else(|| {
                            Diagnostic::at(Stage::Syntax, word.span, format!("`{kind}` begins no line of an interface"))
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
        let end = Span { source, start: text.len() as u32, end: text.len() as u32 };
        if out.operations.is_empty() {
            return Err(
                Diagnostic::at(Stage::Syntax, end, "an interface without operations").note("expected `load`, `store`, `update` or `fence`")
            );
        }
        out.initial = initial.ok_or_else(|| {
            Diagnostic::at(Stage::Syntax, end, "nothing says what memory holds at first").note("expected `initial VALUE;`")
        })?;
        Ok(out)
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

    /// Actions that only end operations that have numbers: when such an end comes does not matter to a history.
    pub fn ends(&self) -> Vec<String> {
        let is_end = |l: &Label| {
            let told = |o: &Operation| o.begin.is_some() && o.end == *l && l.has(&Role::Number);
            self.operations.iter().any(told) && !l.roles.iter().any(|r| matches!(r, Role::Text(_)))
        };
        let only = |l: &Label| self.labels().filter(|m| m.action == l.action).all(is_end);
        self.operations.iter().map(|o| &o.end).filter(|l| only(l)).map(|l| l.action.clone()).collect()
    }

    /// Checks it against the actions of a machine: their names, each with its number of arguments.
    pub fn check(&self, actions: &[(String, usize)]) -> Result<(), Diagnostic> {
        Self::check_all(self.labels(), actions)
    }

    /// Checks labels against the actions of a machine.
    pub fn check_all<'l>(labels: impl Iterator<Item = &'l Label>, actions: &[(String, usize)]) -> Result<(), Diagnostic> {
        for label in labels {
            let counts: Vec<usize> = actions.iter().filter(|a| a.0 == label.action).map(|a| a.1).collect();
            if counts.is_empty() {
                let mut names: Vec<&str> = actions.iter().map(|a| a.0.as_str()).collect();
                names.sort_unstable();
                names.dedup();
                return Err(Diagnostic::at(Stage::Type, label.span, format!("the model has no action `{}`", label.action))
                    .note(format!("its actions: {}", names.join(", "))));
            }
            if !counts.contains(&label.roles.len()) {
                let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
                let found = label.roles.len();
                let message = format!("`{}` has {} arguments in the model, {found} here", label.action, counts.join(" or "));
                return Err(Diagnostic::at(Stage::Type, label.span, message));
            }
        }
        Ok(())
    }
}

fn kind_of(word: &str) -> Option<Kind> {
    [("load", Kind::Read), ("store", Kind::Write), ("update", Kind::Update), ("fence", Kind::Fence)]
        .iter()
        .find(|k| k.0 == word)
        .map(|k| k.1)
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
fn list(cursor: &mut Cursor<'_, '_>) -> Result<Vec<String>, Diagnostic> {
    let mut out = vec![value(cursor)?];
    while cursor.eat(",") {
        out.push(value(cursor)?);
    }
    Ok(out)
}

/// A value: a name, a number, or a text in quotes.
fn value(cursor: &mut Cursor<'_, '_>) -> Result<String, Diagnostic> {
    match cursor.peek().kind {
        Word::Name | Word::Number | Word::Text => Ok(cursor.take().text.trim_matches('"').to_string()),
        _ => Err(cursor.unexpected("a value, or a text in quotes")),
    }
}

fn label(cursor: &mut Cursor<'_, '_>) -> Result<Label, Diagnostic> {
    let name = cursor.name("an action")?;
    let mut out = Label { action: name.text.to_string(), roles: Vec::new(), span: name.span };
    if !cursor.eat("(") {
        return Ok(out);
    }
    loop {
        let token = cursor.peek();
        let role = match token.kind {
            Word::Name => {
                let known = LETTERS.iter().find(|l| l.0 == token.text).map(|l| l.1.clone());
                known.ok_or_else(|| {
                    Diagnostic::at(Stage::Syntax, token.span, format!("`{}` does not say what the argument is", token.text))
                        .note("expected p (processor), a (address), v (value), w (written value), n (number), q (another processor) or _")
                        .note(format!("a value that must be there is written in quotes: \"{}\"", token.text))
                })?
            }
            Word::Text | Word::Number => Role::Text(token.text.trim_matches('"').to_string()),
            _ => return Err(cursor.unexpected("p, a, v, w, n, q, _ or a text in quotes")),
        };
        cursor.take();
        if out.has(&role) && !matches!(role, Role::Any | Role::Text(_)) {
            return Err(Diagnostic::at(Stage::Type, token.span, format!("`{}` twice in one label", token.text)));
        }
        out.roles.push(role);
        if !cursor.eat(",") {
            break;
        }
    }
    cursor.expect(")")?;
    Ok(out)
}

fn letter(role: &Role) -> &'static str {
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
            return Err(Diagnostic::at(Stage::Type, label.span, format!("`w` is for updates: the value of a {what} is `v`")));
        }
        if kind == Kind::Fence && (label.has(&Role::Address) || label.has(&Role::Value)) {
            return Err(Diagnostic::at(Stage::Type, label.span, "a fence has neither address nor value"));
        }
    }
    for role in needed {
        if !end.has(role) && !begin.as_ref().is_some_and(|b| b.has(role)) {
            let message = format!("no argument of this {what} is `{}`", letter(role));
            return Err(Diagnostic::at(Stage::Type, end.span, message));
        }
    }
    if let Some(b) = begin.as_ref().filter(|b| b.has(&Role::Number) != end.has(&Role::Number)) {
        let message = format!("the number of a {what} must stand both where it begins and where it ends, or in neither");
        return Err(Diagnostic::at(Stage::Type, b.span, message));
    }
    Ok(Operation { kind, mark, begin, end })
}
