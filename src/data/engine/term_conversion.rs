//! Conversion between values and numbers of shared terms ([`crate::terms`]).
//!
//! A value caches its number after the first request, so parts shared with earlier values are not
//! visited again. A value without a node of its own, such as a closure, is converted by its
//! expression ([`super::reflect`]). Cost: a lookup for each node that has no number yet; in
//! reverse, one for each node that is not cached.
//!
//! Invariant: an engine has one table, so a number cached in one of its values belongs to that
//! table.

use super::machine::EvaluationMachine;
use super::{Engine, MAX_CACHED};
use crate::engine::compile::Program;
use crate::expr::Expr;
use crate::sort::SortKind;
use crate::terms::{Immediate, TermId, Terms, kind};
use crate::value::{IMPURE, Rich, Value};
use ahash::AHashMap;
use mu_base::diagnostic::{Diagnostic, Stage};
use mu_base::ids::{OpId, SortId};
use mu_base::narrow;
use std::sync::Arc;

/// State of an engine for one table.
#[derive(Debug, Default)]
pub(super) struct TermConverter {
    terms: Arc<Terms>,
    /// Cached values of terms.
    values: AHashMap<TermId, Value>,
    node: Vec<u32>,
}

/// Conversion of one value.
struct Conversion<'a> {
    p: &'a Program,
    machine: &'a EvaluationMachine,
    terms: &'a Terms,
}

impl Engine {
    /// Makes the engine use a table that it shares with other engines.
    #[must_use]
    pub fn with_shared_terms(mut self, terms: &Arc<Terms>) -> Engine {
        self.sharer = TermConverter { terms: terms.clone(), ..TermConverter::default() };
        self
    }

    /// Returns the number of a value of a sort; equal values have equal ones, and functions those
    /// of their normal forms ([`Engine::normal_functions`]).
    pub fn term_at(&mut self, value: &Value, sort: SortId) -> TermId {
        let value = self.normal_functions(value, sort);
        Conversion { p: &self.program, machine: &self.machine, terms: &self.sharer.terms }
            .term(&value, sort)
    }

    /// Returns the value of a term's number.
    pub fn of_term(&mut self, term: TermId) -> Result<Value, Diagnostic> {
        if let Some(leaf) = term.as_immediate() {
            return Ok(of_immediate(leaf));
        }
        if let Some(value) = self.sharer.values.get(&term) {
            return Ok(value.clone());
        }
        let mut node = std::mem::take(&mut self.sharer.node);
        self.sharer.terms.read(term, &mut node);
        let words = node.clone();
        self.sharer.node = node;
        let value = self.of_node(&words)?;
        note(&value, term);
        if self.sharer.values.len() > MAX_CACHED {
            self.sharer.values.clear();
        }
        self.sharer.values.insert(term, value.clone());
        Ok(value)
    }

    fn part(&mut self, word: u32) -> Result<Value, Diagnostic> {
        let term = TermId::from_word(word).ok_or_else(|| {
            Diagnostic::new(Stage::Internal, "a shared term has a part without a number")
        })?;
        if let Some(leaf) = term.as_immediate() {
            return Ok(of_immediate(leaf));
        }
        stacker::maybe_grow(128 << 10, 4 << 20, || self.of_term(term))
    }

    fn parts(&mut self, words: &[u32]) -> Result<Vec<Value>, Diagnostic> {
        words.iter().map(|w| self.part(*w)).collect()
    }

    fn of_node(&mut self, words: &[u32]) -> Result<Value, Diagnostic> {
        match *words {
            [kind::INT, low, high] => {
                Ok(Value::Int((u64::from(high) << 32 | u64::from(low)) as i64))
            }
            [kind::APP, op, ref args @ ..] => {
                let extra = self.program.op(OpId::of(op)).flags;
                Ok(Value::app(OpId::of(op), extra, self.parts(args)?))
            }
            [kind::CONS, head, tail] => self.of_cells(head, tail),
            [kind::SET, sort, ref elements @ ..] => {
                Ok(Value::rich(Rich::Set(SortId::of(sort), self.parts(elements)?.into())))
            }
            [kind::BAG, sort, ref entries @ ..] => {
                Ok(Value::rich(Rich::Bag(SortId::of(sort), self.pairs(entries)?.into())))
            }
            [kind::TABLE, sort, base, ref entries @ ..] => {
                let (base, entries) = (self.part(base)?, self.pairs(entries)?);
                Ok(Value::rich(Rich::Table(SortId::of(sort), base, entries.into())))
            }
            [kind::OTHER, place] => {
                let e = self.sharer.terms.expression(place);
                self.from_normal(&e)
            }
            _ => Err(Diagnostic::new(Stage::Internal, "a shared term is of no known kind")),
        }
    }

    fn pairs(&mut self, words: &[u32]) -> Result<Vec<(Value, Value)>, Diagnostic> {
        words.chunks_exact(2).map(|w| Ok((self.part(w[0])?, self.part(w[1])?))).collect()
    }

    /// Converts a list in a loop along its cells, down to the first cached one.
    fn of_cells(&mut self, head: u32, tail: u32) -> Result<Value, Diagnostic> {
        let mut cells = vec![(head, tail)];
        let mut node = Vec::new();
        let mut list = loop {
            let word = cells[cells.len() - 1].1;
            match TermId::from_word(word) {
                Some(term)
                    if term.as_immediate().is_none() && !self.sharer.values.contains_key(&term) =>
                {
                    self.sharer.terms.read(term, &mut node);
                    match node[..] {
                        [kind::CONS, head, tail] => cells.push((head, tail)),
                        _ => break self.part(word)?,
                    }
                }
                _ => break self.part(word)?,
            }
        };
        while let Some((head, _)) = cells.pop() {
            let head = self.part(head)?;
            list = Value::cons(head, list);
            // The tail of the previous cell, by its number.
            if let Some(term) = cells.last().and_then(|c| TermId::from_word(c.1)) {
                note(&list, term);
                self.sharer.values.insert(term, list.clone());
            }
        }
        Ok(list)
    }
}

fn of_immediate(leaf: Immediate) -> Value {
    match leaf {
        Immediate::Bool(b) => Value::Bool(b),
        Immediate::Int(n) => Value::Int(n),
        Immediate::Con(op) => Value::Con(OpId::of(op)),
        Immediate::Sym(op) => Value::Sym(OpId::of(op)),
        Immediate::Nil(sort) => Value::Nil(SortId::of(sort)),
    }
}

/// Caches a value's number in it.
fn note(value: &Value, term: TermId) {
    match value {
        Value::Cons(cell) => cell.term.set(term.word()),
        Value::App1(n) => n.term.set(term.word()),
        Value::App2(n) => n.term.set(term.word()),
        Value::App3(n) => n.term.set(term.word()),
        Value::AppN(n) => n.term.set(term.word()),
        _ => {}
    }
}

/// Returns the number that a value has cached.
fn cached_number(value: &Value) -> Option<TermId> {
    TermId::from_word(match value {
        Value::Cons(cell) => cell.term.get(),
        Value::App1(n) => n.term.get(),
        Value::App2(n) => n.term.get(),
        Value::App3(n) => n.term.get(),
        Value::AppN(n) => n.term.get(),
        _ => 0,
    })
}

impl Conversion<'_> {
    fn term(&self, v: &Value, sort: SortId) -> TermId {
        let leaf = match v {
            Value::Bool(b) => Some(Immediate::Bool(*b)),
            Value::Int(n) => Some(Immediate::Int(*n)),
            Value::Con(op) => Some(Immediate::Con(op.number())),
            Value::Sym(op) => Some(Immediate::Sym(op.number())),
            Value::Nil(sort) => Some(Immediate::Nil(sort.number())),
            _ => None,
        };
        if let Some(known) = leaf.and_then(TermId::immediate).or_else(|| cached_number(v)) {
            return known;
        }
        stacker::maybe_grow(128 << 10, 4 << 20, || self.node(v, sort))
    }

    /// Converts a part of a value. `sort` is called only for collections and functions.
    fn part(&self, v: &Value, sort: impl FnOnce() -> SortId) -> u32 {
        let sort = if matches!(v, Value::Rich(_)) { sort() } else { SortId::of(0) };
        self.term(v, sort).word()
    }

    fn node(&self, v: &Value, sort: SortId) -> TermId {
        match v {
            Value::Int(n) => {
                self.terms.intern(&[kind::INT, narrow::low(*n as u64), narrow::high(*n as u64)])
            }
            Value::Cons(_) => self.cells(v),
            Value::App1(_) | Value::App2(_) | Value::App3(_) | Value::AppN(_) if !v.is_open() => {
                let (op, args) = v.application();
                // Only flags that the operation itself determines are reproduced.
                if self.p.op(op).flags == 0 || v.flags() & IMPURE != 0 {
                    let mut node = Vec::with_capacity(args.len() + 2);
                    node.extend([kind::APP, op.number()]);
                    node.extend(
                        args.iter().enumerate().map(|(i, a)| self.part(a, || self.argument(op, i))),
                    );
                    let term = self.terms.intern(&node);
                    note(v, term);
                    return term;
                }
                self.other(v, sort)
            }
            Value::Rich(n) if !v.is_open() => match &n.kind {
                Rich::Set(own, elements) => {
                    let own = self.collection(*own, sort);
                    let mut node = vec![kind::SET, own.number()];
                    node.extend(elements.iter().map(|e| self.part(e, || self.element(own))));
                    self.terms.intern(&node)
                }
                Rich::Bag(own, entries) => {
                    let own = self.collection(*own, sort);
                    let mut node = vec![kind::BAG, own.number()];
                    for (e, n) in entries.iter() {
                        node.extend([
                            self.part(e, || self.element(own)),
                            self.part(n, || SortId::of(0)),
                        ]);
                    }
                    self.terms.intern(&node)
                }
                Rich::Table(own, base, entries) => {
                    let (domain, range) = self.p.signature.domain_range(*own);
                    let mut node = vec![kind::TABLE, own.number(), self.part(base, || *own)];
                    for (k, v) in entries.iter() {
                        node.extend([self.part(k, || domain[0]), self.part(v, || range)]);
                    }
                    self.terms.intern(&node)
                }
                Rich::Integer(_) | Rich::Rational(_) | Rich::Closure(_) | Rich::Apply(..) => {
                    self.other(v, sort)
                }
            },
            _ => self.other(v, sort),
        }
    }

    fn other(&self, v: &Value, sort: SortId) -> TermId {
        let e: Expr = self.machine.to_expr(self.p, v, sort);
        self.terms.other(&self.p.signature, e)
    }

    /// Converts a list in a loop along its cells, up to the first that has a number.
    fn cells(&self, v: &Value) -> TermId {
        let (mut new, mut at) = (Vec::new(), v);
        let mut below = loop {
            match at {
                Value::Cons(cell) => match TermId::from_word(cell.term.get()) {
                    Some(known) => break known,
                    None => {
                        new.push(cell);
                        at = &cell.tail;
                    }
                },
                end => break self.term(end, SortId::of(0)),
            }
        };
        for cell in new.into_iter().rev() {
            let head = self.part(&cell.head, || self.element(self.machine.sort_of(self.p, v)));
            below = self.terms.intern(&[kind::CONS, head, below.word()]);
            cell.term.set(below.word());
        }
        below
    }

    /// Returns the sort at which a collection is converted, see [`super::reflect`].
    fn collection(&self, own: SortId, sort: SortId) -> SortId {
        match self.p.signature.sorts.kind(sort) {
            SortKind::Set(_) | SortKind::FSet(_) | SortKind::Bag(_) | SortKind::FBag(_) => sort,
            _ => own,
        }
    }

    fn element(&self, sort: SortId) -> SortId {
        match self.p.signature.sorts.kind(sort) {
            SortKind::List(e)
            | SortKind::Set(e)
            | SortKind::FSet(e)
            | SortKind::Bag(e)
            | SortKind::FBag(e) => *e,
            _ => sort,
        }
    }

    /// Returns the sort of an operation's argument, by its position among those of all
    /// applications.
    fn argument(&self, op: OpId, mut at: usize) -> SortId {
        let mut sort = self.p.signature.op(op).sort;
        loop {
            let (domain, range) = self.p.signature.domain_range(sort);
            match domain.get(at) {
                Some(s) => return *s,
                None if domain.is_empty() => return sort,
                None => (at, sort) = (at - domain.len(), range),
            }
        }
    }
}
