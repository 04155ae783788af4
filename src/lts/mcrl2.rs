//! mCRL2's binary `.lts` files: bits -> [`Lts`] and back, on top of [`super::aterm`].
//!
//! A stream is: the mark `labelled_transition_system`; sorts, aliases, constructors, mappings and equations, each as a count and so many terms;
//! the process parameters and the action declarations, a list each; then, in any order, `transition` source label target, a list for
//! each state (its parameters' values), and `initial_state` 1 state. A label is a timed multi-action.
//!
//! In: labels become their texts, values as mCRL2 prints them; what a state's parameters were is left out. Systems with time or probabilities
//! are refused by name. Out: labels are read as multi-actions with arguments; numbers and truth values get their sorts, all other arguments
//! become constants of a sort `Value` with their texts as names. A label that is no multi-action becomes an action without arguments of that name.
//! So reading what was written gives the same system.
//!
//! Cost: one pass. Memory: transitions, labels, and the shared terms, among which are the values of all states' parameters.

use std::io::{BufReader, BufWriter, Read, Write};

use ahash::AHashMap;
use num_bigint::BigInt;

use super::aterm::{Content, Item, Reader, Symbol, Term, Writer};
use super::declared::Declarations;
use super::{Labels, Lts};
use mu_base::ids::{LabelId, StateId};
use mu_base::{Diagnostic, Stage};

/// First bytes of a stream of terms.
pub const MAGIC: [u8; 3] = [0x00, 0x8b, 0xaf];
/// Labels longer than this are refused: shared terms may unfold to more than memory holds.
pub(super) const MOST_TEXT: usize = 1 << 20;

pub(super) fn refuse(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Stage::File, message)
}

/// Reads a system.
///
/// # Errors
/// The file is damaged, or has time or probabilities.
pub fn read(input: impl Read) -> Result<Lts, Diagnostic> {
    Ok(read_with_declarations(input)?.0)
}

/// Reads a system and the declarations of its data and actions, as a specification without behaviour; or why they have no text.
///
/// # Errors
/// The file is damaged, or has time or probabilities.
pub fn read_with_declarations(input: impl Read) -> Result<(Lts, Result<String, Diagnostic>), Diagnostic> {
    let mut stream = Reader::new(BufReader::with_capacity(1 << 20, input))?;
    if !matches!(stream.item()?, Item::Apply(s, _) if stream.name(s) == "labelled_transition_system") {
        return Err(refuse("this file of mCRL2 holds no labelled transition system").note("expected what `lps2lts` and `ltsconvert` write"));
    }
    let declarations = declarations(&mut stream)?;
    Ok((system(stream)?, declarations))
}

/// The head of the stream: outside, what is damaged; inside, what has no text.
fn declarations<R: std::io::BufRead>(stream: &mut Reader<R>) -> Result<Result<String, Diagnostic>, Diagnostic> {
    let mut all = Ok(Declarations::default());
    let also = |all: Result<Declarations, Diagnostic>, add: &dyn Fn(&mut Declarations) -> Result<(), Diagnostic>| {
        all.and_then(|mut d| add(&mut d).map(|()| d))
    };
    for kind in ["sort", "alias", "cons", "map", "eqn"] {
        let Item::Int(count) = stream.item()? else { return Err(refuse("the file is damaged: the data specification has no count")) };
        for _ in 0..count {
            let (symbol, parts) = expect_term(stream)?;
            let name = stream.name(symbol);
            all = also(all, &|d| match kind {
                "cons" | "map" => d.add_operation(stream, kind, &parts),
                _ => d.add(stream, name, &parts),
            });
        }
    }
    // Process parameters, actions.
    expect_term(stream)?;
    let (_, parts) = expect_term(stream)?;
    if let [first, rest] = parts[..] {
        let rest = Texts(stream).list(rest)?;
        for action in std::iter::once(first).chain(rest) {
            all = also(all, &|d| d.add_action(stream, action));
        }
    }
    Ok(all.map(Declarations::finish))
}

/// The rest of the stream.
fn system<R: std::io::BufRead>(mut stream: Reader<R>) -> Result<Lts, Diagnostic> {
    let mut table = Labels::default();
    let mut by_text: AHashMap<String, LabelId> = AHashMap::new();
    by_text.insert(table.texts[0].clone(), LabelId::TAU);
    let mut by_term: AHashMap<(Term, Term), LabelId> = AHashMap::new();
    let mut edges: Vec<(StateId, LabelId, StateId)> = Vec::new();
    let (mut initial, mut states, mut valued) = (None, 1, 0);
    loop {
        let symbol = match stream.item()? {
            Item::End => break,
            Item::Apply(symbol, _) => symbol,
            Item::Int(n) => return Err(refuse(format!("the file is damaged: unexpected number {n}"))),
        };
        match stream.name(symbol) {
            "transition" => {
                let from = state(&mut stream)?;
                let parts = match stream.item()? {
                    Item::Apply(s, parts) if stream.name(s) == "TimedMultAct" && parts.len() == 2 => (parts[0], parts[1]),
                    _ => return Err(refuse("the file is damaged: a label is not a multi-action")),
                };
                let to = state(&mut stream)?;
                let label = match by_term.get(&parts) {
                    Some(&label) => label,
                    None => {
                        let text = Texts(&stream).multi_action(parts.0, parts.1)?;
                        let next = LabelId::new(table.texts.len());
                        let label = *by_text.entry(text.clone()).or_insert(next);
                        if label == next {
                            table.texts.push(text);
                        }
                        by_term.insert(parts, label);
                        label
                    }
                };
                states = states.max(from.index() + 1).max(to.index() + 1);
                edges.push((from, label, to));
            }
            "initial_state" => {
                let Item::Int(1) = stream.item()? else { return Err(probabilistic()) };
                let at = match stream.item()? {
                    Item::Int(n) => number(n)?,
                    // Version 0x8306 gives the probability first.
                    _ => state(&mut stream)?,
                };
                states = states.max(at.index() + 1);
                initial = Some(at);
            }
            "<list_constructor>" | "<empty_list>" => valued += 1,
            "probabilistic_transition" => return Err(probabilistic()),
            other => return Err(refuse(format!("the file is damaged: `{other}` cannot occur in a transition system"))),
        }
    }
    let initial = initial.ok_or_else(|| refuse("the file is damaged: it names no initial state"))?;
    // Rows are the only memory that one number alone can ask for.
    if states > valued && states > (1 << 24) + 16 * edges.len() {
        return Err(refuse(format!("the file has {} transitions, but one of them leads to state {}", edges.len(), states - 1)));
    }
    Ok(Lts::from_edges(initial, states.max(valued), &edges, table))
}

fn probabilistic() -> Diagnostic {
    Diagnostic::new(Stage::Unsupported, "the transition system has probabilities, which are not supported")
}

fn expect_term<R: std::io::BufRead>(stream: &mut Reader<R>) -> Result<(Symbol, Vec<Term>), Diagnostic> {
    match stream.item()? {
        Item::Apply(symbol, parts) => Ok((symbol, parts)),
        _ => Err(refuse("the file is damaged: a declaration is missing")),
    }
}

fn number(n: u64) -> Result<StateId, Diagnostic> {
    if n < u64::from(u32::MAX) {
        Ok(StateId(n as u32))
    } else {
        Err(refuse(format!("state {n}: more than 2^32 - 1 states are not supported")))
    }
}

fn state<R: std::io::BufRead>(stream: &mut Reader<R>) -> Result<StateId, Diagnostic> {
    match stream.item()? {
        Item::Int(n) => number(n),
        _ => Err(refuse("the file is damaged: a transition has no state")),
    }
}

/// Terms as mCRL2 prints them.
pub(super) struct Texts<'a, R>(pub &'a Reader<R>);

impl<R: std::io::BufRead> Texts<'_, R> {
    pub fn list(&self, mut list: Term) -> Result<Vec<Term>, Diagnostic> {
        let mut items = Vec::new();
        loop {
            match self.0.content(list) {
                Content::Apply("<empty_list>", _) => return Ok(items),
                Content::Apply("<list_constructor>", &[head, tail]) => {
                    items.push(head);
                    list = tail;
                }
                _ => return Err(refuse("the file is damaged: expected a list")),
            }
        }
    }
    pub fn name(&self, term: Term) -> &str {
        match self.0.content(term) {
            Content::Apply(name, _) => name,
            Content::Int(_) => "",
        }
    }
    fn multi_action(&self, actions: Term, time: Term) -> Result<String, Diagnostic> {
        match self.0.content(time) {
            Content::Apply("DataVarId" | "DataVarIdNoIndex", [name, ..]) if self.name(*name) == "@undefined_real" => {}
            _ => return Err(Diagnostic::new(Stage::Unsupported, "the transition system has time, which is not supported")),
        }
        let mut out = String::new();
        let actions = self.list(actions)?;
        for (i, &action) in actions.iter().enumerate() {
            let Content::Apply("Action", &[declaration, arguments]) = self.0.content(action) else {
                return Err(refuse("the file is damaged: expected an action"));
            };
            let Content::Apply("ActId", [name, ..]) = self.0.content(declaration) else {
                return Err(refuse("the file is damaged: an action has no name"));
            };
            if i > 0 {
                out.push('|');
            }
            out.push_str(self.name(*name));
            let arguments = self.list(arguments)?;
            if !arguments.is_empty() {
                self.tuple('(', &arguments, ')', &mut out)?;
            }
        }
        Ok(if actions.is_empty() { "tau".into() } else { out })
    }
    fn tuple(&self, open: char, items: &[Term], close: char, out: &mut String) -> Result<(), Diagnostic> {
        out.push(open);
        for (i, &item) in items.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            self.value(item, out)?;
        }
        out.push(close);
        Ok(())
    }
    /// Head and arguments of an application, with the name of an operation.
    fn applied(&self, term: Term) -> Option<(&str, &[Term])> {
        match self.0.content(term) {
            Content::Apply("DataAppl", [head, arguments @ ..]) => self.operation(*head).map(|name| (name, arguments)),
            _ => self.operation(term).map(|name| (name, &[] as &[Term])),
        }
    }
    pub fn operation(&self, term: Term) -> Option<&str> {
        match self.0.content(term) {
            Content::Apply("OpId" | "OpIdNoIndex" | "DataVarId" | "DataVarIdNoIndex", [name, ..]) => Some(self.name(*name)),
            _ => None,
        }
    }
    /// A number that is built of constructors.
    pub fn numeral(&self, mut term: Term) -> Option<BigInt> {
        // From the least digit on: digits of one bit, or of 64.
        let (mut value, mut shift, mut negative) = (BigInt::from(0), 0u64, false);
        loop {
            match self.applied(term)? {
                ("@c0", []) => break,
                ("@c1", []) => {
                    value += BigInt::from(1) << shift;
                    break;
                }
                ("@cDub", &[bit, rest]) => {
                    let (name, _) = self.applied(bit)?;
                    value += BigInt::from(u8::from(name == "true")) << shift;
                    (shift, term) = (shift + 1, rest);
                }
                ("@cNat" | "@cInt", &[inner]) => term = inner,
                ("@cNeg", &[inner]) => (negative, term) = (true, inner),
                ("@most_significant_digit" | "@most_significant_digitNat", &[digit]) => {
                    value += self.word(digit)? << shift;
                    break;
                }
                ("@concat_digit", &[rest, digit]) => {
                    value += self.word(digit)? << shift;
                    (shift, term) = (shift + 64, rest);
                }
                _ => return None,
            }
        }
        Some(if negative { -value } else { value })
    }
    fn word(&self, term: Term) -> Option<BigInt> {
        match self.0.content(term) {
            Content::Int(n) => Some(n.into()),
            Content::Apply("DataMachineNumber" | "MachineNumber", &[inner]) => self.word(inner),
            _ => None,
        }
    }
    /// Items of a list, set or bag that is built by this operation on an empty one, with multiplicities for bags.
    fn chain(&self, mut term: Term, operation: &str, empty: &str) -> Option<Vec<(Term, Option<Term>)>> {
        let mut items = Vec::new();
        loop {
            match self.applied(term)? {
                (name, []) if name == empty => return Some(items),
                (name, &[item, rest]) if name == operation => {
                    items.push((item, None));
                    term = rest;
                }
                (name, &[item, count, rest]) if name == operation => {
                    items.push((item, Some(count)));
                    term = rest;
                }
                _ => return None,
            }
        }
    }
    fn value(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        if out.len() > MOST_TEXT {
            return Err(refuse(format!("a label has more than {MOST_TEXT} characters: {}...", &out.chars().take(60).collect::<String>())));
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || self.value_of(term, out))
    }
    fn value_of(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        if let Some(n) = self.numeral(term) {
            out.push_str(&n.to_string());
            return Ok(());
        }
        let chain = self.chain(term, "|>", "[]").map(|l| ('[', l, ']'));
        let chain = chain
            .or_else(|| self.chain(term, "@fset_cons", "{}").or_else(|| self.chain(term, "@fset_insert", "{}")).map(|l| ('{', l, '}')));
        let chain = chain.or_else(|| self.chain(term, "@fbag_cons", "{:}").map(|l| ('{', l, '}')));
        if let Some((open, items, close)) = chain {
            out.push(open);
            for (i, (item, count)) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                self.value(*item, out)?;
                if let Some(count) = count {
                    out.push_str(": ");
                    self.value(*count, out)?;
                }
            }
            if items.is_empty() && self.applied(term).is_some_and(|a| a.0 == "{:}") {
                out.push(':');
            }
            out.push(close);
            return Ok(());
        }
        match self.applied(term) {
            // A fraction, a set or bag that is finite.
            Some(("@cReal", &[above, below])) => {
                self.value(above, out)?;
                if self.numeral(below) != Some(1.into()) {
                    out.push_str(" / ");
                    self.value(below, out)?;
                }
                Ok(())
            }
            Some(("@set" | "@bag", &[function, finite])) if self.applied(function).is_some_and(|f| matches!(f.0, "@false_" | "@zero_")) => {
                self.value(finite, out)
            }
            Some((name, arguments)) => {
                out.push_str(name);
                if arguments.is_empty() { Ok(()) } else { self.tuple('(', arguments, ')', out) }
            }
            // Binders and the like are no values; they are told apart at least.
            None => match self.0.content(term) {
                Content::Int(n) => {
                    out.push_str(&n.to_string());
                    Ok(())
                }
                Content::Apply(name, arguments) => {
                    out.push_str(name);
                    if arguments.is_empty() { Ok(()) } else { self.tuple('(', arguments, ')', out) }
                }
            },
        }
    }
}

/// The actions of a label with the texts of their arguments; none if it is no multi-action.
fn actions_of(label: &str) -> Option<Vec<(&str, Vec<&str>)>> {
    let is_name = |n: &str| {
        n.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && n.chars().all(|c| c.is_ascii_alphanumeric() || "_'".contains(c))
    };
    let mut actions = Vec::new();
    for part in split(label, '|')? {
        let part = part.trim();
        let (name, arguments) = match part.find('(') {
            None => (part, Vec::new()),
            Some(at) => (&part[..at], split(part[at..].strip_prefix('(')?.strip_suffix(')')?, ',')?),
        };
        let arguments: Vec<&str> = arguments.into_iter().map(str::trim).collect();
        if !is_name(name) || arguments.iter().any(|a| a.is_empty()) {
            return None;
        }
        actions.push((name, arguments));
    }
    let shown = |(name, arguments): &(&str, Vec<&str>)| match &arguments[..] {
        [] => (*name).to_string(),
        _ => format!("{name}({})", arguments.join(", ")),
    };
    // Other blanks would be lost.
    (actions.iter().map(shown).collect::<Vec<_>>().join("|") == label).then_some(actions)
}

/// Parts of a text between marks that are in no brackets; none if brackets do not match.
fn split(text: &str, mark: char) -> Option<Vec<&str>> {
    let (mut parts, mut from, mut open) = (Vec::new(), 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' => (open.pop() == Some(c)).then_some(())?,
            _ if c == mark && open.is_empty() => {
                parts.push(&text[from..i]);
                from = i + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    open.is_empty().then_some(parts)
}

/// Sorts that arguments get.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Sort {
    Bool,
    Nat,
    Int,
    Value,
}

impl Sort {
    fn of(text: &str) -> Sort {
        let digits = text.strip_prefix('-').unwrap_or(text);
        // As printed: without leading zeros.
        let numeral = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.is_empty() && (digits == "0" || !digits.starts_with('0'));
        match text {
            "true" | "false" => Sort::Bool,
            "-0" => Sort::Value,
            _ if numeral && text.len() == digits.len() => Sort::Nat,
            _ if numeral => Sort::Int,
            _ => Sort::Value,
        }
    }
    fn join(self, other: Sort) -> Sort {
        match (self, other) {
            (a, b) if a == b => a,
            (Sort::Nat | Sort::Int, Sort::Nat | Sort::Int) => Sort::Int,
            _ => Sort::Value,
        }
    }
    fn name(self) -> &'static str {
        match self {
            Sort::Bool => "Bool",
            Sort::Nat => "Nat",
            Sort::Int => "Int",
            Sort::Value => "Value",
        }
    }
}

/// Writes a system.
pub fn write(lts: &Lts, output: impl Write) -> Result<(), Diagnostic> {
    stream(lts, output).map_err(|e| refuse(format!("cannot write: {e}")))
}

fn stream(lts: &Lts, output: impl Write) -> std::io::Result<()> {
    // Label 0 is tau, the empty multi-action, whatever its text.
    let labels: Vec<Vec<(&str, Vec<&str>)>> = (lts.table.texts.iter().enumerate())
        .map(|(i, t)| if i == 0 { Vec::new() } else { actions_of(t).unwrap_or_else(|| vec![(t.as_str(), Vec::new())]) })
        .collect();
    let mut sorts: AHashMap<(&str, usize), Vec<Sort>> = AHashMap::new();
    let mut declared = Vec::new();
    for (name, arguments) in labels.iter().flatten() {
        let own: Vec<Sort> = arguments.iter().map(|a| Sort::of(a)).collect();
        let key = (*name, own.len());
        match sorts.get_mut(&key) {
            Some(known) => known.iter_mut().zip(own).for_each(|(k, o)| *k = k.join(o)),
            None => {
                declared.push(key);
                sorts.insert(key, own);
            }
        }
    }
    let constants = constants(&labels, &sorts);
    let mut out = Writer::new(BufWriter::with_capacity(1 << 20, output))?;
    let mark = out.symbol("labelled_transition_system", 0)?;
    out.hand(mark, &[])?;
    let sort_id = out.symbol("SortId", 1)?;
    let op_id = out.symbol("OpIdNoIndex", 2)?;
    let value = out.share("Value", &[])?;
    out.hand_number(u64::from(!constants.is_empty()))?;
    if !constants.is_empty() {
        out.hand(sort_id, &[value])?;
    }
    // No aliases; the constants are constructors; no mappings, no equations.
    out.hand_number(0)?;
    out.hand_number(constants.len() as u64)?;
    let value_sort = out.share("SortId", &[value])?;
    for text in &constants {
        let name = out.share(text, &[])?;
        out.hand(op_id, &[name, value_sort])?;
    }
    out.hand_number(0)?;
    out.hand_number(0)?;
    let empty_list = out.symbol("<empty_list>", 0)?;
    out.hand(empty_list, &[])?;
    let mut declarations: AHashMap<(&str, usize), Term> = AHashMap::new();
    for key in &declared {
        let mut of = Vec::new();
        for sort in &sorts[key] {
            of.push(named_sort(&mut out, sort.name())?);
        }
        let (name, of) = (out.share(key.0, &[])?, out.share_list(&of)?);
        declarations.insert(*key, out.share("ActId", &[name, of])?);
    }
    // The list of the declarations is handed out: all but its first cell are shared.
    let cells: Vec<Term> = declared.iter().map(|key| declarations[key]).collect();
    match cells.split_first() {
        None => out.hand(empty_list, &[])?,
        Some((first, rest)) => {
            let rest = out.share_list(rest)?;
            let cell = out.symbol("<list_constructor>", 2)?;
            out.hand(cell, &[*first, rest])?;
        }
    }
    let real = named_sort(&mut out, "Real")?;
    let undefined = out.share("@undefined_real", &[])?;
    let time = out.share("DataVarId", &[undefined, real])?;
    let multi_action = out.symbol("TimedMultAct", 2)?;
    let mut lists = Vec::new();
    for label in &labels {
        let mut actions = Vec::new();
        for (name, arguments) in label {
            let key = (*name, arguments.len());
            let mut values = Vec::new();
            for (a, s) in arguments.iter().zip(&sorts[&key]) {
                values.push(argument(&mut out, a, *s)?);
            }
            let values = out.share_list(&values)?;
            actions.push(out.share("Action", &[declarations[&key], values])?);
        }
        lists.push(out.share_list(&actions)?);
    }
    let start = out.symbol("initial_state", 0)?;
    out.hand(start, &[])?;
    out.hand_number(1)?;
    out.hand_number(u64::from(lts.initial.0))?;
    let transition = out.symbol("transition", 0)?;
    for s in 0..lts.state_count() {
        for (label, target) in lts.successors(StateId::new(s)) {
            out.hand(transition, &[])?;
            out.hand_number(s as u64)?;
            out.hand(multi_action, &[lists[label.index()], time])?;
            out.hand_number(u64::from(target.0))?;
        }
    }
    // A list for each state tells how many there are, also those that no transition names.
    if unnamed(lts) {
        for _ in 0..lts.state_count() {
            out.hand(empty_list, &[])?;
        }
    }
    out.finish()
}

/// The arguments of the sort `Value`, each once, in the order in which they occur.
fn constants<'t>(labels: &[Vec<(&'t str, Vec<&'t str>)>], sorts: &AHashMap<(&str, usize), Vec<Sort>>) -> Vec<&'t str> {
    let (mut known, mut constants) = (ahash::AHashSet::new(), Vec::new());
    for (name, arguments) in labels.iter().flatten() {
        for (a, s) in arguments.iter().zip(&sorts[&(*name, arguments.len())]) {
            if *s == Sort::Value && known.insert(*a) {
                constants.push(*a);
            }
        }
    }
    constants
}

/// Whether the last state is in no transition and not the initial one.
fn unnamed(lts: &Lts) -> bool {
    let last = StateId::new(lts.state_count() - 1);
    last != lts.initial && lts.successors(last).next().is_none() && !lts.targets.contains(&last)
}

fn named_sort<W: Write>(out: &mut Writer<W>, name: &str) -> std::io::Result<Term> {
    let name = out.share(name, &[])?;
    out.share("SortId", &[name])
}

/// `from -> to`.
fn function<W: Write>(out: &mut Writer<W>, name: &str, from: &[&str], to: &str) -> std::io::Result<Term> {
    let mut domain = Vec::new();
    for f in from {
        domain.push(named_sort(out, f)?);
    }
    let (domain, to) = (out.share_list(&domain)?, named_sort(out, to)?);
    let (name, sort) = (out.share(name, &[])?, out.share("SortArrow", &[domain, to])?);
    out.share("OpIdNoIndex", &[name, sort])
}

fn constant<W: Write>(out: &mut Writer<W>, name: &str, sort: &str) -> std::io::Result<Term> {
    let (name, sort) = (out.share(name, &[])?, named_sort(out, sort)?);
    out.share("OpIdNoIndex", &[name, sort])
}

fn argument<W: Write>(out: &mut Writer<W>, text: &str, sort: Sort) -> std::io::Result<Term> {
    let unary = |out: &mut Writer<W>, name: &str, from: &str, to: &str, inner: Term| {
        let f = function(out, name, &[from], to)?;
        out.share("DataAppl", &[f, inner])
    };
    match sort {
        Sort::Bool | Sort::Value => constant(out, text, sort.name()),
        Sort::Nat => digits(out, text, "Nat"),
        Sort::Int => match text.strip_prefix('-') {
            Some(text) => {
                let inner = digits(out, text, "Pos")?;
                unary(out, "@cNeg", "Pos", "Int", inner)
            }
            None => {
                let inner = digits(out, text, "Nat")?;
                unary(out, "@cInt", "Nat", "Int", inner)
            }
        },
    }
}

/// A positive or natural number: digits of 64 bits, from the most significant one on.
fn digits<W: Write>(out: &mut Writer<W>, text: &str, sort: &str) -> std::io::Result<Term> {
    let value: num_bigint::BigUint = text.parse().map_err(std::io::Error::other)?;
    let words = value.to_u64_digits();
    let (first, rest) = words.split_last().map_or((0, [].as_slice()), |(f, r)| (*f, r));
    let start = function(out, if sort == "Pos" { "@most_significant_digit" } else { "@most_significant_digitNat" }, &["@word"], sort)?;
    let word = out.share_int(first)?;
    let mut term = out.share("DataAppl", &[start, word])?;
    for &word in rest.iter().rev() {
        let next = function(out, "@concat_digit", &[sort, "@word"], sort)?;
        let word = out.share_int(word)?;
        term = out.share("DataAppl", &[next, term, word])?;
    }
    Ok(term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;

    fn round_trip(lts: &Lts) -> Lts {
        let mut bytes = Vec::new();
        write(lts, &mut bytes).unwrap();
        assert!(bytes.starts_with(&MAGIC));
        read(&bytes[..]).unwrap()
    }

    fn rows(lts: &Lts) -> Vec<(usize, &str, u32)> {
        let of = |s| lts.successors(StateId::new(s)).map(move |(l, t)| (s, lts.table.texts[l.index()].as_str(), t.0));
        (0..lts.state_count()).flat_map(of).collect()
    }

    const LABELS: [&str; 23] = [
        "a( 1)",
        "a",
        "a(0)",
        "a(1)",
        "a(-3)",
        "a(18446744073709551616)",
        "b(true)|c",
        "b(7)",
        "b([1, 2], x)",
        "c(f(x, {1, 2}), {:})",
        "d(x)|d(y)|e",
        "PUT !x",
        "f(1 / 2)",
        "",
        "|",
        "g()",
        "h((1)",
        "i(a|b)",
        "j(\"x\")",
        "k(007)",
        "k(-0)",
        "tau2",
        "l('ü')",
    ];

    #[test]
    fn what_is_written_is_read() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let states = 1 + random.below(9);
            let mut table = Labels::default();
            (0..random.below(LABELS.len())).for_each(|i| table.texts.push(LABELS[i].into()));
            let mut edges = Vec::new();
            for _ in 0..random.below(20) {
                let (s, l, t) = (random.below(states), random.below(table.texts.len()), random.below(states));
                edges.push((StateId::new(s), LabelId::new(l), StateId::new(t)));
            }
            let lts = Lts::from_edges(StateId::new(random.below(states)), states, &edges, table);
            let read = round_trip(&lts);
            assert_eq!((lts.initial, lts.state_count(), rows(&lts)), (read.initial, read.state_count(), rows(&read)), "seed {seed}");
        }
    }

    /// A system as mCRL2 writes it, put together by hand: lists, sets and machine words in labels, values of states.
    #[test]
    fn values_print_as_mcrl2_prints_them() {
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes).unwrap();
        let mark = out.symbol("labelled_transition_system", 0).unwrap();
        out.hand(mark, &[]).unwrap();
        for _ in 0..5 {
            out.hand_number(0).unwrap();
        }
        let empty = out.symbol("<empty_list>", 0).unwrap();
        out.hand(empty, &[]).unwrap();
        out.hand(empty, &[]).unwrap();
        let op = |out: &mut Writer<_>, name: &str| constant(out, name, "S").unwrap();
        let apply = |out: &mut Writer<&mut Vec<u8>>, name: &str, arguments: &[Term]| {
            let mut all = vec![constant(out, name, "S").unwrap()];
            all.extend(arguments);
            out.share("DataAppl", &all).unwrap()
        };
        let (two, nil, none, x) = (argument(&mut out, "2", Sort::Nat).unwrap(), op(&mut out, "[]"), op(&mut out, "{}"), op(&mut out, "x"));
        let list = apply(&mut out, "|>", &[x, nil]);
        let list = apply(&mut out, "|>", &[two, list]);
        let finite = apply(&mut out, "@fset_insert", &[x, none]);
        let no = op(&mut out, "@false_");
        let set = apply(&mut out, "@set", &[no, finite]);
        let minus = argument(&mut out, "-5", Sort::Int).unwrap();
        // Files of toolsets without machine numbers have numbers of bits.
        let (one, yes) = (op(&mut out, "@c1"), op(&mut out, "true"));
        let three = apply(&mut out, "@cDub", &[yes, one]);
        let half = apply(&mut out, "@cReal", &[minus, three]);
        let name = out.share("send", &[]).unwrap();
        let no_sorts = out.share_list(&[]).unwrap();
        let declaration = out.share("ActId", &[name, no_sorts]).unwrap();
        let arguments = out.share_list(&[list, set, half]).unwrap();
        let action = out.share("Action", &[declaration, arguments]).unwrap();
        let actions = out.share_list(&[action]).unwrap();
        let real = named_sort(&mut out, "Real").unwrap();
        let undefined = out.share("@undefined_real", &[]).unwrap();
        let time = out.share("DataVarId", &[undefined, real]).unwrap();
        let transition = out.symbol("transition", 0).unwrap();
        let label = out.symbol("TimedMultAct", 2).unwrap();
        out.hand(transition, &[]).unwrap();
        out.hand_number(0).unwrap();
        out.hand(label, &[actions, time]).unwrap();
        out.hand_number(1).unwrap();
        let cell = out.symbol("<list_constructor>", 2).unwrap();
        out.hand(cell, &[two, no_sorts]).unwrap();
        let start = out.symbol("initial_state", 0).unwrap();
        out.hand(start, &[]).unwrap();
        out.hand_number(1).unwrap();
        out.hand_number(0).unwrap();
        out.finish().unwrap();
        let lts = read(&bytes[..]).unwrap();
        assert_eq!(rows(&lts), [(0, "send([2, x], {x}, -5 / 3)", 1)]);
    }

    #[test]
    fn damage_is_refused() {
        let mut table = Labels::default();
        table.texts.extend(["a(1, x)".to_string(), "b".into()]);
        let edges = [(StateId(0), LabelId(1), StateId(1)), (StateId(1), LabelId(2), StateId(0)), (StateId(1), LabelId(0), StateId(1))];
        let lts = Lts::from_edges(StateId(0), 2, &edges, table);
        let mut bytes = Vec::new();
        write(&lts, &mut bytes).unwrap();
        let mut refused = 0;
        for end in 0..bytes.len() - 16 {
            refused += u32::from(read(&bytes[..end]).is_err());
        }
        assert_eq!(refused as usize, bytes.len() - 16, "what is cut off is refused");
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let mut bad = bytes.clone();
            let at = random.below(bad.len());
            bad[at] ^= 1 << random.below(8);
            let _ = read(&bad[..]);
        }
        let version = read(&[0, 0x8b, 0xaf, 0x83, 0x01, 0, 0][..]).unwrap_err();
        assert!(version.message.contains("0x8301"), "{version:?}");
    }
}
