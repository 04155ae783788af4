//! Interface files: the labels of a machine that are memory operations.
//!
//! ```text
//! initial c_data_undefined;                    // the initial value of memory
//! numbers from 0;                              // number of the first operation; default 0
//! load  end_load(p, a, v, n);                  // an operation with one label …
//! store start_store(p, a, v, n) -> end_store(p, _, _, n);  // … or with begin and end labels
//! load acquire ld_acq(p, a, v);  store release st_rel(p, a, v);
//! fence mfence(p);  update xchg(p, a, v, w);   // an update reads v and writes w
//! fence ww f(p);  fence r,rw g(p);  fence acquire h(p);  update acquire release u(p, a, v, w);
//! load reserve lr(p, a, v);  store conditional sc(p, a, v);  // the store succeeds
//! load ld(p, a, v, n, addr, ctrl);             // dependencies on the numbers of earlier loads
//! commit write(a, v);                          // a store reaches memory; also `store commit …`
//! absorb merge(p, a, v, _);                    // the next store of p to a replaces the one of v
//! observe observe(p, a, v, n, q);              // p sees a store of q: shown, not judged
//! internal refill, access("c_flush", _, _, _); // labels that are not memory operations
//! program load do_load(p, "ld(a)") -> answer(p, v);  // most general program: request, response
//! processors p0, p1;  addresses 1, 2;  values 1;     // its constants, if the sorts are too large
//! load hit(p, a) where v = cache[p].line[a];    // by assignment: a variable after the step
//! ```
//!
//! Letters give the roles of arguments: `p` processor, `a` address, `v` value, `w` value written by
//! an update, `n` number, `q` another processor, `_` any value. A quoted text matches itself:
//! `access("c_read", p, a, v)`. `addr`, `data` and `ctrl` are the number of an earlier load of the
//! processor, or a list or set of numbers, on which the address, the value, or a branch before the
//! operation depends; its own number, and numbers before the first one, are no dependency. In a
//! `program` line a quoted text is an expression over the same
//! letters.
//!
//! *By assignment.* With `where v = VARIABLE` the value is that of a variable of the model after
//! the step, as one more argument of the label. Letters in brackets stand for the arguments.
//!
//! *Internal labels.* A label that matches no line is internal. If it contains a processor, an
//! address or a value, an `internal` line must list it: otherwise a forgotten line would look like
//! a machine with fewer operations. The name of an action alone lists all its labels that no other
//! line matches.
//!
//! *Program order.* The order of the labels at which operations begin. If an operation has one
//! label with a number, the number is its position. An end belongs to the operation with its
//! number; without numbers, to the first operation of the processor that has begun and matches. An
//! operation with one label must have no effect before it: if another processor can load a value
//! before the label of its store, the store needs a begin label. Invariant: every operation of an
//! [`Interface`] has all roles that its kind needs, and no label can match two operations.

use mu_axioms::EventKind;
use mu_axioms::models::{FenceSide, MemoryOrdering};
use mu_base::words::{self, Cursor, LexicalForm, TokenKind as Token};
use mu_base::{Diagnostic, SourceId, Span, Stage, narrow};

/// The role of an argument of a label.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ArgumentRole {
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
    /// The number of an earlier load, or several numbers, on which the operation depends.
    Depends(Dependency),
    /// Any value; ignored.
    Any,
    /// Exactly this text.
    Text(String),
}

/// The kind of a dependency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Dependency {
    /// Its address is computed from the value loaded.
    Address,
    /// The value that it writes is computed from the value loaded.
    Data,
    /// A branch before it depends on the value loaded.
    Control,
}

const LETTERS: [(&str, ArgumentRole); 10] = [
    ("p", ArgumentRole::Processor),
    ("a", ArgumentRole::Address),
    ("v", ArgumentRole::Value),
    ("w", ArgumentRole::Written),
    ("n", ArgumentRole::Number),
    ("q", ArgumentRole::Other),
    ("addr", ArgumentRole::Depends(Dependency::Address)),
    ("data", ArgumentRole::Depends(Dependency::Data)),
    ("ctrl", ArgumentRole::Depends(Dependency::Control)),
    ("_", ArgumentRole::Any),
];

/// A pattern of labels: an action and the roles of its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The action.
    pub action: String,
    /// Its arguments.
    pub roles: Vec<ArgumentRole>,
    /// The position of the pattern.
    pub span: Span,
    /// The positions of the arguments.
    pub places: Vec<Span>,
}

/// A text with its position: a value, or the name of a processor or address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// The text.
    pub text: String,
    /// Its position.
    pub span: Span,
}

/// An argument of a label that is the value of a variable after the step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssignedLabel {
    /// The label, with the value as its last argument.
    pub label: Label,
    /// The tokens of the variable.
    pub variable: Vec<String>,
    /// The position of the variable.
    pub span: Span,
}

/// An entry of an `internal` line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Internal {
    /// The pattern of labels.
    pub label: Label,
    /// True if only the action is given: the entry matches any arguments.
    pub all: bool,
}

impl Label {
    fn has(&self, role: &ArgumentRole) -> bool {
        self.roles.contains(role)
    }
    /// Matches a label. Returns its arguments with their roles, or `None` if it does not match.
    pub fn match_arguments<'t>(
        &self,
        name: &str,
        arguments: &[&'t str],
    ) -> Option<Vec<(&ArgumentRole, &'t str)>> {
        if name != self.action || arguments.len() != self.roles.len() {
            return None;
        }
        let all = self.roles.iter().zip(arguments.iter().copied());
        all.clone()
            .all(|(role, text)| !matches!(role, ArgumentRole::Text(t) if t != text))
            .then(|| all.collect())
    }
    /// True if some label can match both patterns.
    fn overlaps(&self, other: &Label) -> bool {
        let differ = |(a, b): (&ArgumentRole, &ArgumentRole)| matches!((a, b), (ArgumentRole::Text(a), ArgumentRole::Text(b)) if a != b);
        self.action == other.action
            && self.roles.len() == other.roles.len()
            && !self.roles.iter().zip(&other.roles).any(differ)
    }
    /// True if every label that matches `other` matches this pattern.
    fn covers(&self, other: &Label) -> bool {
        let holds =
            |(a, b): (&ArgumentRole, &ArgumentRole)| !matches!(a, ArgumentRole::Text(_)) || a == b;
        self.action == other.action
            && self.roles.len() == other.roles.len()
            && self.roles.iter().zip(&other.roles).all(holds)
    }
    /// Prints the pattern as in the file.
    pub fn text(&self) -> String {
        let one = |r: &ArgumentRole| match r {
            ArgumentRole::Text(t) => format!("\"{t}\""),
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
    /// Prints the operation as in the file, with its kind.
    pub fn text(&self) -> String {
        let begin = self.begin.as_ref().map_or(String::new(), |b| format!("{} -> ", b.text()));
        format!("{}{} {begin}{}", self.name(), self.modifiers(), self.end.text())
    }
    /// Prints what follows the kind, as in the file.
    fn modifiers(&self) -> String {
        let exclusive = match (self.exclusive, self.kind) {
            (false, _) => "",
            (true, EventKind::Read) => " reserve",
            (true, _) => " conditional",
        };
        let mark = match self.mark {
            MemoryOrdering::Plain => String::new(),
            MemoryOrdering::Acquire => " acquire".into(),
            MemoryOrdering::Release => " release".into(),
            MemoryOrdering::AcquireRelease if self.kind == EventKind::Fence => " tso".into(),
            MemoryOrdering::AcquireRelease => " acquire release".into(),
            MemoryOrdering::Between(before, after) => {
                format!(" {},{}", before.letters(), after.letters())
            }
        };
        format!("{exclusive}{mark}")
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
    pub kind: EventKind,
    /// Acquire, release, or plain; the accesses that a fence orders.
    pub mark: MemoryOrdering,
    /// True for a load-reserve, and for a store-conditional that succeeds.
    pub exclusive: bool,
    /// The label of its beginning, if it is separate.
    pub begin: Option<Label>,
    /// The label of its end, or of the whole operation.
    pub end: Label,
}

/// One kind of operation of the most general program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationClass {
    /// Load, store, update or fence.
    pub kind: EventKind,
    /// The request, synchronised with the machine.
    pub request: Label,
    /// The response, which the program accepts at any later time.
    pub response: Option<Label>,
}

/// A parsed interface file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The initial value of memory.
    pub initial: Word,
    /// The number of the first operation of a processor.
    pub first: u64,
    /// The operations.
    pub operations: Vec<Operation>,
    /// Labels at which a store reaches memory. They may be labels of operations too.
    pub commits: Vec<Label>,
    /// Labels at which a store that has not reached memory is absorbed: the next store of its
    /// processor to its address reaches memory in its place. They may be labels of operations too.
    pub absorbs: Vec<Label>,
    /// Patterns of `observe` lines.
    pub observed: Vec<Label>,
    /// Arguments of labels that are values of variables.
    pub assigned: Vec<AssignedLabel>,
    /// Entries of `internal` lines.
    pub internal: Vec<Internal>,
    /// The most general program, if the machine needs one.
    pub program: Vec<OperationClass>,
    /// The processors, addresses and values that the program uses, as far as the file lists them.
    pub constants: [Vec<Word>; 3],
    /// The label of a failure of the machine, if its language has failures.
    pub failure: Option<String>,
}

/// The keywords of the constants of a program, in the order of [`Interface::constants`].
const CONSTANT_KEYWORDS: [&str; 3] = ["processors", "addresses", "values"];
const EXPECTED_KEYWORDS: &str = "`initial`, `numbers`, `load`, `store`, `update`, `fence`, `commit`, `absorb`, `observe`, `internal`, `program`, `processors`, `addresses` or `values`";

impl Interface {
    /// Returns the reason why a machine is not judged that fails: a failure ends its executions, so
    /// what is left may satisfy every model.
    pub fn failure_error(&self, label: &str) -> Diagnostic {
        let message = format!("the machine fails: it reaches `{label}`, which ends its executions");
        Diagnostic::new(Stage::Unsupported, message)
            .note("`explore MODEL` shows a shortest path to the failure")
    }
    /// Parses an interface file.
    pub fn parse(source: SourceId, text: &str) -> Result<Interface, Diagnostic> {
        let tokens = words::tokens(source, text, 0, LexicalForm::Free)?;
        let mut cursor = Cursor::new(&tokens);
        let mut initial = None;
        let mut numbers: Option<Span> = None;
        let end = Span { source, start: narrow::index(text.len()), end: narrow::index(text.len()) };
        let mut out = Interface {
            initial: Word { text: String::new(), span: end },
            first: 0,
            operations: Vec::new(),
            commits: Vec::new(),
            absorbs: Vec::new(),
            observed: Vec::new(),
            assigned: Vec::new(),
            internal: Vec::new(),
            program: Vec::new(),
            constants: [const { Vec::new() }; 3],
            failure: None,
        };
        while !cursor.at_end() {
            let word = cursor.name(EXPECTED_KEYWORDS)?;
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
                            "the number of an operation must not be negative",
                        )
                    })?;
                }
                "commit" => {
                    let label = assigned_label(&mut cursor, &mut out.assigned)?;
                    require(&label, "commit", &[ArgumentRole::Address, ArgumentRole::Value])?;
                    independent(&label)?;
                    out.commits.push(label);
                }
                "absorb" => {
                    let label = assigned_label(&mut cursor, &mut out.assigned)?;
                    let roles =
                        [ArgumentRole::Processor, ArgumentRole::Address, ArgumentRole::Value];
                    require(&label, "absorbed store", &roles)?;
                    independent(&label)?;
                    out.absorbs.push(label);
                }
                "observe" => {
                    let label = assigned_label(&mut cursor, &mut out.assigned)?;
                    require(
                        &label,
                        "observation",
                        &[ArgumentRole::Processor, ArgumentRole::Address],
                    )?;
                    independent(&label)?;
                    out.observed.push(label);
                }
                "internal" => {
                    out.internal.push(internal(&mut cursor)?);
                    while cursor.eat(",") {
                        out.internal.push(internal(&mut cursor)?);
                    }
                }
                "program" => out.program.push(part(&mut cursor)?),
                kind => match CONSTANT_KEYWORDS.iter().position(|u| *u == kind) {
                    Some(at) => out.constants[at].append(&mut list(&mut cursor)?),
                    None => {
                        let kind = kind_of(kind).ok_or_else(|| {
                            Diagnostic::at(
                                Stage::Syntax,
                                word.span,
                                format!("unknown keyword `{kind}`"),
                            )
                            .note(format!("expected {EXPECTED_KEYWORDS}"))
                        })?;
                        let modifiers = Modifiers::parse(&mut cursor, kind)?;
                        let commits = modifiers.commits;
                        let operation =
                            operation(&mut cursor, &mut out.assigned, kind, &modifiers)?;
                        if commits {
                            let what = "store that commits";
                            require(
                                &operation.end,
                                what,
                                &[ArgumentRole::Address, ArgumentRole::Value],
                            )?;
                            out.commits.push(operation.end.clone());
                        }
                        out.operations.push(operation);
                    }
                },
            }
            cursor.expect(";")?;
        }
        if out.operations.is_empty() {
            return Err(Diagnostic::at(Stage::Syntax, end, "the interface has no operations")
                .note("expected `load`, `store`, `update` or `fence`"));
        }
        out.initial = initial.ok_or_else(|| {
            Diagnostic::at(Stage::Syntax, end, "the initial value of memory is missing")
                .note("expected `initial VALUE;`")
        })?;
        out.check_distinct()?;
        out.check_numbers()?;
        Ok(out)
    }

    /// Rejects a mixture of operations with and without numbers: a number is a place among *all*
    /// operations of a processor. An operation with a label for its beginning has the place where
    /// it begins.
    fn check_numbers(&self) -> Result<(), Diagnostic> {
        let is_placed = |o: &&Operation| o.begin.is_none() && o.end.has(&ArgumentRole::Number);
        let Some(placed) = self.operations.iter().find(is_placed) else { return Ok(()) };
        for operation in self.operations.iter().filter(|o| o.begin.is_none()) {
            let first = &operation.end;
            if !first.has(&ArgumentRole::Number) {
                let message = format!(
                    "`{}` has no number `n`, and `{}` has one",
                    first.text(),
                    placed.end.text()
                );
                return Err(Diagnostic::at(Stage::Type, first.span, message)
                    .related(placed.end.span, "the operation with a number")
                    .note("a number is the place among all operations of a processor, so all lines with one label have one, or none has"));
            }
        }
        Ok(())
    }

    /// Rejects two lines that can match the same label, and lines that can match nothing because
    /// other lines match all their labels.
    fn check_distinct(&self) -> Result<(), Diagnostic> {
        let reject = |label: &Label, other: &Label, message: String| {
            Err(Diagnostic::at(Stage::Type, label.span, message)
                .related(other.span, "the other line"))
        };
        let judged: Vec<&Label> =
            self.operations.iter().flat_map(|o| o.begin.iter().chain([&o.end])).collect();
        let commits: Vec<&Label> = self.commits.iter().collect();
        let absorbs: Vec<&Label> = self.absorbs.iter().collect();
        let observed: Vec<&Label> = self.observed.iter().collect();
        for (labels, role) in [
            (&judged, "of the interface"),
            (&commits, "as a commit"),
            (&absorbs, "as an absorbed store"),
            (&observed, "of two `observe` lines"),
        ] {
            for (i, label) in labels.iter().enumerate() {
                if let Some(other) = labels[..i].iter().find(|o| o.overlaps(label)) {
                    let (first, second) = (label.text(), other.text());
                    let message = format!("a label can match both `{first}` and `{second}` {role}");
                    return reject(label, other, message);
                }
            }
        }
        for (i, internal) in self.internal.iter().enumerate() {
            let label = &internal.label;
            let text = if internal.all { label.action.clone() } else { label.text() };
            let covers = |o: &&Label| {
                o.covers(label)
                    || internal.all
                        && o.action == label.action
                        && o.roles.iter().all(|r| !matches!(r, ArgumentRole::Text(_)))
            };
            let mut named = judged.iter().copied().chain(self.memory()).chain(&self.observed);
            if let Some(other) = named.find(covers) {
                return reject(
                    label,
                    other,
                    format!(
                        "`{text}` is internal here, and `{}` is a memory operation, a commit or an observation",
                        other.text()
                    ),
                );
            }
            let same = |o: &&Internal| {
                o.label.action == label.action && (o.all || internal.all || o.label.overlaps(label))
            };
            if let Some(other) = self.internal[..i].iter().find(same) {
                return reject(
                    label,
                    &other.label,
                    format!("`{text}` is listed as internal twice"),
                );
            }
        }
        for (i, part) in self.program.iter().enumerate() {
            let same = |p: &&OperationClass| {
                p.kind == part.kind
                    && p.request.overlaps(&part.request)
                    && p.response.as_ref().map(Label::text)
                        == part.response.as_ref().map(Label::text)
            };
            if let Some(other) = self.program[..i].iter().find(same) {
                return reject(
                    &part.request,
                    &other.request,
                    format!("two `program` lines have the request `{}`", part.request.text()),
                );
            }
        }
        for (what, all) in CONSTANT_KEYWORDS.iter().zip(&self.constants) {
            for (i, word) in all.iter().enumerate() {
                if all[..i].iter().any(|w| w.text == word.text) {
                    return Err(Diagnostic::at(
                        Stage::Type,
                        word.span,
                        format!("`{}` occurs twice among the {what}", word.text),
                    ));
                }
            }
        }
        Ok(())
    }

    /// True if an `internal` line matches the label.
    pub fn is_internal(&self, name: &str, arguments: &[&str]) -> bool {
        self.internal.iter().any(|i| {
            i.all && i.label.action == name
                || !i.all && i.label.match_arguments(name, arguments).is_some()
        })
    }

    /// Returns the first line with operations of the same kind. Memory models cannot distinguish
    /// operations of the same kind.
    pub fn class(&self, operation: usize) -> u32 {
        let of = |o: &Operation| (o.kind, o.mark, o.exclusive);
        let wanted = of(&self.operations[operation]);
        narrow::index(self.operations.iter().position(|o| of(o) == wanted).unwrap_or(operation))
    }

    /// Returns all patterns of the interface.
    pub fn labels(&self) -> impl Iterator<Item = &Label> {
        let operations = self.operations.iter().flat_map(|o| o.begin.iter().chain([&o.end]));
        operations.chain(self.memory()).chain(&self.observed)
    }

    /// Returns the patterns at which stores reach memory or are absorbed.
    pub fn memory(&self) -> impl Iterator<Item = &Label> {
        self.commits.iter().chain(&self.absorbs)
    }

    /// Returns the actions that only end numbered operations. The time of such an end does not
    /// affect a history.
    pub fn ends(&self) -> Vec<String> {
        let is_end = |l: &Label| {
            let ends_numbered =
                |o: &Operation| o.begin.is_some() && o.end == *l && l.has(&ArgumentRole::Number);
            self.operations.iter().any(ends_numbered)
                && !l.roles.iter().any(|r| matches!(r, ArgumentRole::Text(_)))
        };
        let only = |l: &Label| self.labels().filter(|m| m.action == l.action).all(is_end);
        self.operations
            .iter()
            .map(|o| &o.end)
            .filter(|l| only(l))
            .map(|l| l.action.clone())
            .collect()
    }

    /// Checks the interface against the actions of a machine, given as names with their numbers of
    /// arguments.
    pub fn check(&self, actions: &[(String, usize)]) -> Result<(), Diagnostic> {
        Self::check_all(
            self.labels().chain(self.internal.iter().filter(|i| !i.all).map(|i| &i.label)),
            actions,
        )?;
        let names: Vec<(String, usize)> = actions.iter().map(|a| (a.0.clone(), 0)).collect();
        Self::check_all(self.internal.iter().filter(|i| i.all).map(|i| &i.label), &names)
    }

    /// Checks patterns against the actions of a machine.
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

/// The kinds of operations, with their keywords.
const KINDS: [(&str, EventKind); 4] = [
    ("load", EventKind::Read),
    ("store", EventKind::Write),
    ("update", EventKind::Update),
    ("fence", EventKind::Fence),
];

fn kind_of(word: &str) -> Option<EventKind> {
    KINDS.iter().find(|k| k.0 == word).map(|k| k.1)
}

/// Reads an entry of an `internal` line.
fn internal(cursor: &mut Cursor<'_, '_>) -> Result<Internal, Diagnostic> {
    let label = label(cursor)?;
    independent(&label)?;
    Ok(Internal { all: label.roles.is_empty(), label })
}

/// Parses the rest of a `program` line.
fn part(cursor: &mut Cursor<'_, '_>) -> Result<OperationClass, Diagnostic> {
    let word = cursor.name("`load`, `store`, `update` or `fence`")?;
    let kind = kind_of(word.text).ok_or_else(|| {
        Diagnostic::at(
            Stage::Syntax,
            word.span,
            format!("`{}` is not a kind of operation", word.text),
        )
        .note("expected `load`, `store`, `update` or `fence`")
    })?;
    let request = label(cursor)?;
    let response = if cursor.eat("->") { Some(label(cursor)?) } else { None };
    for label in response.iter().chain([&request]) {
        if label.has(&ArgumentRole::Other) {
            return Err(Diagnostic::at(Stage::Type, label.span, "`q` is for observations"));
        }
        independent(label)?;
    }
    Ok(OperationClass { kind, request, response })
}

/// Parses a list of values separated by commas.
fn list(cursor: &mut Cursor<'_, '_>) -> Result<Vec<Word>, Diagnostic> {
    let mut out = vec![value(cursor)?];
    while cursor.eat(",") {
        out.push(value(cursor)?);
    }
    Ok(out)
}

/// Parses a value: a name, a number, or a quoted text.
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
                    Diagnostic::at(Stage::Syntax, token.span, format!("`{}` is not a role of an argument", token.text))
                        .note("expected p (processor), a (address), v (value), w (written value), n (number), q (another processor), addr, data, ctrl (numbers of earlier loads) or _")
                        .note(format!("to match this text, write it in quotes: \"{}\"", token.text))
                })?
            }
            Token::Text | Token::Number => {
                ArgumentRole::Text(token.text.trim_matches('"').to_string())
            }
            _ => {
                return Err(
                    cursor.unexpected("p, a, v, w, n, q, addr, data, ctrl, _ or a text in quotes")
                );
            }
        };
        cursor.take();
        if out.has(&role) && !matches!(role, ArgumentRole::Any | ArgumentRole::Text(_)) {
            return Err(Diagnostic::at(
                Stage::Type,
                token.span,
                format!("`{}` occurs twice in one label", token.text),
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

/// Reads a label, and the variable of its value if there is one.
fn assigned_label(
    cursor: &mut Cursor<'_, '_>,
    assigned: &mut Vec<AssignedLabel>,
) -> Result<Label, Diagnostic> {
    let mut label = label(cursor)?;
    if !cursor.eat_word("where") {
        return Ok(label);
    }
    let token = cursor.peek();
    let letters = [ArgumentRole::Value, ArgumentRole::Written];
    let Some(role) = letters.into_iter().find(|r| letter(r) == token.text) else {
        return Err(cursor.unexpected("`v` or `w`, the value of a variable"));
    };
    cursor.take();
    if label.has(&role) {
        let message = format!("`{}` is an argument of the label already", token.text);
        return Err(Diagnostic::at(Stage::Type, token.span, message));
    }
    cursor.expect("=")?;
    let first = cursor.name("a variable of the model, such as `cache[p].data`")?;
    let mut found = AssignedLabel {
        label: label.clone(),
        variable: vec![first.text.to_string()],
        span: first.span,
    };
    loop {
        let token = cursor.peek();
        let is_part = match token.kind {
            Token::Name | Token::Number => true,
            _ => ["[", "]", ".", "{", "}"].contains(&token.text),
        };
        if !is_part {
            break;
        }
        cursor.take();
        found.variable.push(token.text.to_string());
        found.span = found.span.to(token.span);
    }
    label.roles.push(role);
    label.places.push(token.span);
    found.label = label.clone();
    let same = |a: &&AssignedLabel| {
        a.label.action == label.action && a.label.roles.len() == label.roles.len()
    };
    if let Some(other) = assigned.iter().find(same) {
        if other.label.roles != label.roles || other.variable != found.variable {
            let message = format!("`{}` has a value in another line already", label.action);
            return Err(Diagnostic::at(Stage::Type, found.span, message)
                .related(other.span, "the variable there"));
        }
    } else {
        assigned.push(found);
    }
    Ok(label)
}

/// Returns the letter of a role, as in the file.
pub fn letter(role: &ArgumentRole) -> &'static str {
    LETTERS.iter().find(|l| l.1 == *role).map_or("", |l| l.0)
}

/// Rejects dependencies in labels that are no memory operations.
fn independent(label: &Label) -> Result<(), Diagnostic> {
    match label.roles.iter().position(|r| matches!(r, ArgumentRole::Depends(_))) {
        Some(at) => {
            let message = format!("`{}` is for memory operations", letter(&label.roles[at]));
            Err(Diagnostic::at(Stage::Type, label.places[at], message))
        }
        None => Ok(()),
    }
}

/// Returns the error for a label without a required argument.
fn missing_role(label: &Label, what: &str, role: &ArgumentRole) -> Diagnostic {
    let message = format!("this {what} has no argument `{}`", letter(role));
    let error = Diagnostic::at(Stage::Type, label.span, message);
    match role {
        ArgumentRole::Address => error.note(
            "a machine with a single location needs an address in its labels: a sort with one value will do",
        ),
        _ => error,
    }
}

fn require(label: &Label, what: &str, roles: &[ArgumentRole]) -> Result<(), Diagnostic> {
    match roles.iter().find(|r| !label.has(r)) {
        Some(role) => Err(missing_role(label, what, role)),
        None => Ok(()),
    }
}

/// The attributes between the kind of an operation and its label.
#[derive(Default)]
struct Modifiers {
    mark: MemoryOrdering,
    exclusive: bool,
    commits: bool,
}

impl Modifiers {
    /// Parses modifiers. A word is one only if a name other than `where` or a `,` follows it,
    /// because actions may have the same names.
    fn parse(cursor: &mut Cursor<'_, '_>, kind: EventKind) -> Result<Self, Diagnostic> {
        let mut out = Modifiers::default();
        let (mut acquire, mut release) = (false, false);
        loop {
            let token = cursor.peek();
            let next = cursor.ahead(1);
            let follows = next.kind == Token::Name && next.text != "where" || next.text == ",";
            if token.kind != Token::Name || !follows {
                break;
            }
            let once = |flag: &mut bool| {
                if std::mem::replace(flag, true) {
                    let message = format!("`{}` occurs twice", token.text);
                    return Err(Diagnostic::at(Stage::Syntax, token.span, message));
                }
                Ok(())
            };
            match (kind, token.text) {
                (EventKind::Read | EventKind::Update | EventKind::Fence, "acquire") => {
                    once(&mut acquire)?
                }
                (EventKind::Write | EventKind::Update | EventKind::Fence, "release") => {
                    once(&mut release)?
                }
                (EventKind::Read, "reserve") | (EventKind::Write, "conditional") => {
                    once(&mut out.exclusive)?;
                }
                (EventKind::Write, "commit") => once(&mut out.commits)?,
                (EventKind::Fence, "tso") if !acquire && !release => {
                    (acquire, release) = (true, true)
                }
                (EventKind::Fence, word)
                    if out.mark == MemoryOrdering::Plain && !acquire && !release =>
                {
                    let Some(mark) = fence_between(cursor, word)? else {
                        return Err(unknown_modifier(kind, token.text, token.span));
                    };
                    out.mark = mark;
                    // The letters are taken already; nothing else may follow.
                    return Ok(out);
                }
                _ => return Err(unknown_modifier(kind, token.text, token.span)),
            }
            cursor.take();
        }
        out.mark = match (acquire, release) {
            (false, false) => MemoryOrdering::Plain,
            (true, false) => MemoryOrdering::Acquire,
            (false, true) => MemoryOrdering::Release,
            (true, true) => MemoryOrdering::AcquireRelease,
        };
        Ok(out)
    }
}

fn unknown_modifier(kind: EventKind, word: &str, span: Span) -> Diagnostic {
    let expected = match kind {
        EventKind::Read => "`acquire`, `reserve`",
        EventKind::Write => "`release`, `conditional`, `commit`",
        EventKind::Update => "`acquire`, `release`",
        _ => "`acquire`, `release`, `tso`, two letters as in `ww`, or accesses as in `r,rw`",
    };
    let what = KINDS.iter().find(|k| k.1 == kind).map_or("fence", |k| k.0);
    Diagnostic::at(Stage::Syntax, span, format!("`{word}` is no attribute of a {what}"))
        .note(format!("expected {expected}, or an action"))
}

/// Parses the accesses of a fence: `ww`, or `r,rw`. `None` if the word is something else.
fn fence_between(
    cursor: &mut Cursor<'_, '_>,
    word: &str,
) -> Result<Option<MemoryOrdering>, Diagnostic> {
    if cursor.ahead(1).text == "," {
        let Some(before) = FenceSide::of_letters(word) else { return Ok(None) };
        cursor.take();
        cursor.take();
        let token = cursor.name("`r`, `w` or `rw`")?;
        let after = FenceSide::of_letters(token.text).ok_or_else(|| {
            let message = format!("`{}` is no kind of accesses", token.text);
            Diagnostic::at(Stage::Syntax, token.span, message).note("expected `r`, `w` or `rw`")
        })?;
        return Ok(Some(MemoryOrdering::between(before, after)));
    }
    let of = |at| word.get(at..at + 1).and_then(FenceSide::of_letters);
    let (Some(before), Some(after), 2) = (of(0), of(1), word.len()) else { return Ok(None) };
    cursor.take();
    Ok(Some(MemoryOrdering::between(before, after)))
}

fn operation(
    cursor: &mut Cursor<'_, '_>,
    assigned: &mut Vec<AssignedLabel>,
    kind: EventKind,
    modifiers: &Modifiers,
) -> Result<Operation, Diagnostic> {
    let first = assigned_label(cursor, assigned)?;
    let (begin, end) = match cursor.eat("->") {
        true => (Some(first), assigned_label(cursor, assigned)?),
        false => (None, first),
    };
    let (what, needed): (&str, &[ArgumentRole]) = match kind {
        EventKind::Read => ("load", &[ArgumentRole::Address, ArgumentRole::Value]),
        EventKind::Write => ("store", &[ArgumentRole::Address, ArgumentRole::Value]),
        EventKind::Update => {
            ("update", &[ArgumentRole::Address, ArgumentRole::Value, ArgumentRole::Written])
        }
        _ => ("fence", &[]),
    };
    for label in begin.iter().chain([&end]) {
        require(label, what, &[ArgumentRole::Processor])?;
        if label.has(&ArgumentRole::Other) {
            return Err(Diagnostic::at(Stage::Type, label.span, "`q` is for observations"));
        }
        if kind != EventKind::Update && label.has(&ArgumentRole::Written) {
            return Err(Diagnostic::at(
                Stage::Type,
                label.span,
                format!("`w` is for updates: the value of a {what} is `v`"),
            ));
        }
        let depends = |d: Dependency| label.has(&ArgumentRole::Depends(d));
        if depends(Dependency::Data) && !kind.writes() {
            let message = format!("`data` is for stores and updates: a {what} writes no value");
            return Err(Diagnostic::at(Stage::Type, label.span, message));
        }
        if depends(Dependency::Address) && kind == EventKind::Fence {
            let message = "`addr` is for accesses: a fence has no address";
            return Err(Diagnostic::at(Stage::Type, label.span, message));
        }
        if kind == EventKind::Fence
            && (label.has(&ArgumentRole::Address) || label.has(&ArgumentRole::Value))
        {
            return Err(Diagnostic::at(
                Stage::Type,
                label.span,
                "a fence has neither address nor value",
            ));
        }
    }
    for role in needed {
        if !end.has(role) && !begin.as_ref().is_some_and(|b| b.has(role)) {
            return Err(missing_role(&end, what, role));
        }
    }
    if let Some(b) =
        begin.as_ref().filter(|b| b.has(&ArgumentRole::Number) != end.has(&ArgumentRole::Number))
    {
        let message = format!(
            "a {what} must have a number in both its begin label and its end label, or in neither"
        );
        return Err(Diagnostic::at(Stage::Type, b.span, message));
    }
    let twice = begin.as_ref().and_then(|b| {
        end.roles.iter().position(|r| matches!(r, ArgumentRole::Depends(_)) && b.has(r))
    });
    if let Some(at) = twice {
        let message = format!("`{}` is in both labels of this {what}", letter(&end.roles[at]));
        return Err(Diagnostic::at(Stage::Type, end.places[at], message));
    }
    let Modifiers { mark, exclusive, .. } = *modifiers;
    Ok(Operation { kind, mark, exclusive, begin, end })
}
