//! Reader and writer of mCRL2's binary `.lts` files, on top of [`super::aterm`].
//!
//! A stream is: the mark `labelled_transition_system`; sorts, aliases, constructors, mappings and
//! equations, each as a count with its terms; the process parameters and the action declarations, a
//! list each; then, in any order, `transition` source label target, a list for each state (its
//! parameters' values), and `initial_state` 1 state. A label is a timed multi-action.
//!
//! In: labels become their texts, values as mCRL2 prints them; values of a state's parameters are
//! omitted. Systems with probabilities are rejected. Out: [`write()`].
//!
//! Cost: one pass. Memory: transitions, labels, and the shared terms, among which are the values of
//! all states' parameters.

use std::io::Read;

use ahash::AHashMap;
use num_bigint::BigInt;

use super::aterm::{Content, StreamItem, Symbol, Term, TermReader};
use super::declarations::Declarations;
use super::{Labels, Lts};
use mu_base::ids::{LabelId, StateId};
use mu_base::label_time;
use mu_base::{Diagnostic, Stage};

mod behaviour;
mod equations;
mod write;
mod write_behaviour;

pub use behaviour::read_process;
pub use equations::{
    OutlinedEquation, OutlinedPredicate, OutlinedSystem, TextRange, read_equations,
};
pub use write::write;
pub use write_behaviour::{write_equations, write_process};

/// First bytes of a stream of terms.
pub const MAGIC: [u8; 3] = [0x00, 0x8b, 0xaf];
/// Limit on the length of a label; a longer one is an error, since shared terms may unfold to more
/// than memory holds.
pub(super) const MAX_TEXT: usize = 1 << 20;

pub(super) fn refuse(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Stage::File, message)
}

/// Reads a system.
///
/// # Errors
/// The file is damaged, or has probabilities.
pub fn read(input: impl Read) -> Result<Lts, Diagnostic> {
    Ok(read_with_declarations(input)?.0)
}

/// Reads a system and the declarations of its data and actions, as a specification without
/// behaviour, or the reason why they have no text; `None` if they were inferred when the file was
/// written.
///
/// # Errors
/// The file is damaged, or has probabilities.
pub fn read_with_declarations(
    input: impl Read,
) -> Result<(Lts, Option<Result<String, Diagnostic>>), Diagnostic> {
    system_with_declarations(Box::new(input))
}

fn system_with_declarations(
    input: Box<dyn Read + '_>,
) -> Result<(Lts, Option<Result<String, Diagnostic>>), Diagnostic> {
    let mut stream = TermReader::new(input, 1 << 20)?;
    if !matches!(stream.item()?, StreamItem::Apply(s, _) if stream.name(s) == "labelled_transition_system")
    {
        return Err(refuse("this mCRL2 file contains no labelled transition system")
            .note("expected the output of `lps2lts` or `ltsconvert`"));
    }
    let declarations = declarations(&mut stream)?;
    Ok((system(stream)?, declarations.transpose()))
}

fn also(
    all: Result<Declarations, Diagnostic>,
    add: &dyn Fn(&mut Declarations) -> Result<(), Diagnostic>,
) -> Result<Declarations, Diagnostic> {
    all.and_then(|mut d| add(&mut d).map(|()| d))
}

/// Reads the declarations of data. The outer error is a damaged file; the inner one is a
/// declaration without text.
fn data(stream: &mut TermReader<'_>) -> Result<Result<Declarations, Diagnostic>, Diagnostic> {
    let mut all = Ok(Declarations::default());
    for kind in ["sort", "alias", "cons", "map", "eqn"] {
        let StreamItem::Int(count) = stream.item()? else {
            return Err(refuse("the file is damaged: the data specification has no count"));
        };
        for _ in 0..count {
            let (symbol, parts) = expect_term(stream)?;
            let name = stream.name(symbol);
            all = also(all, &|d| match kind {
                "cons" | "map" => d.add_operation(stream, kind, &parts),
                _ => d.add(stream, name, &parts),
            });
        }
        if let (Ok(declared), "map") = (&all, kind) {
            let operations = declared.operations();
            stream.declare(operations);
        }
    }
    Ok(all)
}

/// Reads the head of the stream. The outer error is a damaged file; the inner one is a declaration
/// without text.
fn declarations(
    stream: &mut TermReader<'_>,
) -> Result<Result<Option<String>, Diagnostic>, Diagnostic> {
    let mut all = data(stream)?;
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

/// Reads the rest of the stream.
fn system(mut stream: TermReader<'_>) -> Result<Lts, Diagnostic> {
    let mut table = Labels::default();
    let mut by_text: AHashMap<String, LabelId> = AHashMap::new();
    by_text.insert(table.texts[0].clone(), LabelId::TAU);
    let mut by_term: AHashMap<(Term, Term), LabelId> = AHashMap::new();
    let mut edges: Vec<(StateId, LabelId, StateId)> = Vec::new();
    let (mut initial, mut states, mut valued) = (None, 1, 0);
    loop {
        let symbol = match stream.item()? {
            StreamItem::End => break,
            StreamItem::Apply(symbol, _) => symbol,
            StreamItem::Int(n) => {
                return Err(refuse(format!("the file is damaged: unexpected number {n}")));
            }
        };
        match stream.name(symbol) {
            "transition" => {
                let from = state(&mut stream)?;
                let parts = match stream.item()? {
                    StreamItem::Apply(s, parts)
                        if stream.name(s) == "TimedMultAct" && parts.len() == 2 =>
                    {
                        (parts[0], parts[1])
                    }
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
                let StreamItem::Int(1) = stream.item()? else { return Err(probabilistic()) };
                let at = match stream.item()? {
                    StreamItem::Int(n) => number(n)?,
                    // Version 0x8306 has the probability first.
                    _ => state(&mut stream)?,
                };
                states = states.max(at.index() + 1);
                initial = Some(at);
            }
            "<list_constructor>" | "<empty_list>" => valued += 1,
            "probabilistic_transition" => return Err(probabilistic()),
            other => {
                return Err(refuse(format!(
                    "the file is damaged: `{other}` cannot occur in a transition system"
                )));
            }
        }
    }
    let initial =
        initial.ok_or_else(|| refuse("the file is damaged: it names no initial state"))?;
    // Only rows can need much memory for a single number.
    if states > valued && states > (1 << 24) + 16 * edges.len() {
        return Err(refuse(format!(
            "the file has {} transitions, but one of them leads to state {}",
            edges.len(),
            states - 1
        )));
    }
    Ok(Lts::from_edges(initial, states.max(valued), &edges, table))
}

fn probabilistic() -> Diagnostic {
    Diagnostic::new(
        Stage::Unsupported,
        "the transition system has probabilities, which are not supported",
    )
}

fn expect_term(stream: &mut TermReader<'_>) -> Result<(Symbol, Vec<Term>), Diagnostic> {
    match stream.item()? {
        StreamItem::Apply(symbol, parts) => Ok((symbol, parts)),
        _ => Err(refuse("the file is damaged: a declaration is missing")),
    }
}

fn number(n: u64) -> Result<StateId, Diagnostic> {
    match u32::try_from(n) {
        Ok(number) if number < u32::MAX => Ok(StateId::of(number)),
        _ => Err(refuse(format!("state {n}: more than 2^32 - 1 states are not supported"))),
    }
}

fn state(stream: &mut TermReader<'_>) -> Result<StateId, Diagnostic> {
    match stream.item()? {
        StreamItem::Int(n) => number(n),
        _ => Err(refuse("the file is damaged: a transition has no state")),
    }
}

/// Printer of terms in the notation of mCRL2.
pub(super) struct Texts<'a>(pub &'a TermReader<'a>);

impl Texts<'_> {
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
        let untimed = matches!(
            self.0.content(time),
            Content::Apply("DataVarId" | "DataVarIdNoIndex", [name, ..])
                if self.name(*name) == "@undefined_real"
        );
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
        let out = if actions.is_empty() { "tau".into() } else { out };
        if untimed {
            return Ok(out);
        }
        let mut value = String::new();
        self.value(time, &mut value)?;
        Ok(label_time::join(&out, &value))
    }
    fn tuple(
        &self,
        open: char,
        items: &[Term],
        close: char,
        out: &mut String,
    ) -> Result<(), Diagnostic> {
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
    /// Returns head and arguments of an application, with the name of an operation.
    fn application(&self, term: Term) -> Option<(&str, &[Term])> {
        match self.0.content(term) {
            Content::Apply("DataAppl", [head, arguments @ ..]) => {
                self.operation(*head).map(|name| (name, arguments))
            }
            _ => self.operation(term).map(|name| (name, &[] as &[Term])),
        }
    }
    pub fn operation(&self, term: Term) -> Option<&str> {
        match self.0.content(term) {
            Content::Apply(
                "OpId" | "OpIdNoIndex" | "DataVarId" | "DataVarIdNoIndex",
                [name, ..],
            ) => Some(self.name(*name)),
            _ => None,
        }
    }
    /// Returns a number that consists of constructors; `None` if the term is not one.
    pub fn numeral(&self, mut term: Term) -> Option<BigInt> {
        // From the least significant digit: digits of one bit, or of 64.
        let (mut value, mut shift, mut negative) = (BigInt::from(0), 0u64, false);
        loop {
            match self.application(term)? {
                ("@c0", []) => break,
                ("@c1", []) => {
                    value += BigInt::from(1) << shift;
                    break;
                }
                ("@cDub", &[bit, rest]) => {
                    // Rewriting leaves bits that are not constant: that is no numeral.
                    let bit = match self.application(bit)? {
                        ("true", []) => 1u8,
                        ("false", []) => 0,
                        _ => return None,
                    };
                    value += BigInt::from(bit) << shift;
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
    /// Returns the items of a list, set or bag built by these operations from an empty one, with
    /// multiplicities for bags.
    fn chain(
        &self,
        mut term: Term,
        operations: &[&str],
        empty: &str,
    ) -> Option<Vec<(Term, Option<Term>)>> {
        let mut items = Vec::new();
        loop {
            match self.application(term)? {
                (name, []) if name == empty => return Some(items),
                (name, &[item, rest]) if operations.contains(&name) => {
                    items.push((item, None));
                    term = rest;
                }
                (name, &[item, count, rest]) if operations.contains(&name) => {
                    items.push((item, Some(count)));
                    term = rest;
                }
                _ => return None,
            }
        }
    }
    /// Items of a finite list, set, or bag with its brackets, and multiplicities for bags; `None`
    /// for other values.
    pub fn enumeration(&self, term: Term) -> Option<(char, Vec<(Term, Option<Term>)>, char)> {
        let bag = ["@fbag_cons", "@fbag_insert", "@fbag_cinsert"];
        let list = self.chain(term, &["|>"], "[]").map(|l| ('[', l, ']'));
        let set = || self.chain(term, &["@fset_cons", "@fset_insert"], "{}").map(|l| ('{', l, '}'));
        list.or_else(set).or_else(|| self.chain(term, &bag, "{:}").map(|l| ('{', l, '}')))
    }
    /// Writes the items of [`Texts::enumeration`] by `write`.
    pub fn write_enumeration(
        &self,
        term: Term,
        (open, items, close): (char, Vec<(Term, Option<Term>)>, char),
        out: &mut String,
        write: impl Fn(Term, &mut String) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        out.push(open);
        for (i, (item, count)) in items.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            write(*item, out)?;
            if let Some(count) = count {
                out.push_str(": ");
                write(*count, out)?;
            }
        }
        if items.is_empty() && self.application(term).is_some_and(|a| a.0 == "{:}") {
            out.push(':');
        }
        out.push(close);
        Ok(())
    }
    /// True if a value is a function other than an operation, or contains one.
    fn is_expression(&self, term: Term) -> bool {
        matches!(self.0.content(term), Content::Apply("Binder", _))
            || self.application(term).is_some_and(|(name, _)| {
                ["@set", "@bag", "@func_update", "@func_update_stable"].contains(&name)
            })
    }
    /// True if a value is an operator of the language with arguments, such as `x == y` for elements
    /// of an abstract sort.
    fn is_operation(&self, term: Term) -> bool {
        self.application(term).is_some_and(|(name, arguments)| {
            !arguments.is_empty() && !super::declarations::is_name(name)
        })
    }
    fn value(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        if out.len() > MAX_TEXT {
            return Err(refuse(format!(
                "a label has more than {MAX_TEXT} characters: {}...",
                &out.chars().take(60).collect::<String>()
            )));
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || self.value_of(term, out))
    }
    fn value_of(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        if let Some(n) = self.numeral(term) {
            out.push_str(&n.to_string());
            return Ok(());
        }
        if let Some(items) = self.enumeration(term) {
            return self.write_enumeration(term, items, out, |item, out| self.value(item, out));
        }
        match self.application(term) {
            // A fraction, a set or bag that is finite.
            Some(("@cReal", &[above, below])) => {
                self.value(above, out)?;
                if self.numeral(below) != Some(1.into()) {
                    out.push_str(" / ");
                    self.value(below, out)?;
                }
                Ok(())
            }
            Some(("@set" | "@bag", &[function, finite]))
                if self
                    .application(function)
                    .is_some_and(|f| matches!(f.0, "@false_" | "@zero_")) =>
            {
                self.value(finite, out)
            }
            // Functions, and set and bag comprehensions; those without text are at least
            // distinguished.
            _ if (self.is_expression(term) || self.is_operation(term))
                && let Ok(text) = super::declarations::value(self.0, term) =>
            {
                out.push_str(without_parentheses(&text));
                Ok(())
            }
            Some((name, arguments)) => {
                out.push_str(name);
                if arguments.is_empty() { Ok(()) } else { self.tuple('(', arguments, ')', out) }
            }
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

/// Removes a pair of parentheses around a whole text.
fn without_parentheses(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) else { return text };
    let mut depth = 0i32;
    for c in inner.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth < 0 {
            return text;
        }
    }
    inner
}

#[cfg(test)]
mod tests;
