//! What stays to be done in a sequential component: terms to be run one after the other.
//!
//! In: terms, by [`Sequences::push`]. Out: numbers of sequences, equal for equal sequences however they were composed; first term, rest
//! and free variables of each. Sequences share their rests, so that each suffix of a long composition is made and compared once.
//! Cost: linear in the size of the terms; the free variables of a sequence are counted once for each of its suffixes.
//! Invariant: no first term is a sequential composition, and nothing comes after a deadlock.

use super::term::Term;
use ahash::AHashMap;
use mu_base::ids::VarId;
use mu_data::expr::{Expr, Substitution};
use mu_data::signature::Signature;
use std::rc::Rc;

/// The number of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sequence(u32);

impl Sequence {
    /// Nothing stays to be done.
    pub(super) const EMPTY: Sequence = Sequence(0);

    pub(super) fn is_empty(self) -> bool {
        self == Self::EMPTY
    }
}

struct Node {
    first: Rc<Term>,
    rest: Sequence,
    /// Free variables in order of first occurrence.
    vars: Rc<[VarId]>,
}

/// All sequences.
pub(super) struct Sequences {
    /// The empty sequence at 0, with a first term that nobody asks for.
    nodes: Vec<Node>,
    by_parts: AHashMap<(Rc<Term>, Sequence), Sequence>,
    /// Sequences of compositions and what comes after them, by address: the composition is kept.
    of_term: AHashMap<(*const Term, Sequence), (Rc<Term>, Sequence)>,
    /// Sequences with other variables in place of their own.
    renamed: AHashMap<(Sequence, Vec<VarId>), Sequence>,
}

impl Sequences {
    pub(super) fn new() -> Self {
        let empty = Node { first: Rc::new(Term::Delta), rest: Sequence::EMPTY, vars: Rc::from([]) };
        Self { nodes: vec![empty], by_parts: AHashMap::new(), of_term: AHashMap::new(), renamed: AHashMap::new() }
    }

    /// The first term; none of the empty sequence.
    pub(super) fn first(&self, sequence: Sequence) -> Option<&Rc<Term>> {
        (!sequence.is_empty()).then(|| &self.nodes[sequence.0 as usize].first)
    }

    /// What comes after the first term.
    pub(super) fn rest(&self, sequence: Sequence) -> Sequence {
        self.nodes[sequence.0 as usize].rest
    }

    /// Free variables in order of first occurrence.
    pub(super) fn vars(&self, sequence: Sequence) -> Rc<[VarId]> {
        self.nodes[sequence.0 as usize].vars.clone()
    }

    /// A term and then the rest.
    pub(super) fn push(&mut self, term: &Rc<Term>, rest: Sequence) -> Sequence {
        let Term::Seq(p, q) = &**term else { return self.cons(term.clone(), rest) };
        let key = (Rc::as_ptr(term), rest);
        if let Some((_, known)) = self.of_term.get(&key) {
            return *known;
        }
        let sequence = stacker::maybe_grow(64 << 10, 1 << 20, || {
            let rest = self.push(q, rest);
            self.push(p, rest)
        });
        self.of_term.insert(key, (term.clone(), sequence));
        sequence
    }

    fn cons(&mut self, first: Rc<Term>, rest: Sequence) -> Sequence {
        let rest = if matches!(*first, Term::Delta) { Sequence::EMPTY } else { rest };
        let key = (first, rest);
        if let Some(&known) = self.by_parts.get(&key) {
            return known;
        }
        let mut vars = Vec::new();
        key.0.free_vars(&mut vars);
        let after = &self.nodes[rest.0 as usize].vars;
        let vars = if vars.is_empty() {
            after.clone()
        } else {
            let new: Vec<VarId> = after.iter().copied().filter(|v| !vars.contains(v)).collect();
            vars.extend(new);
            Rc::from(vars)
        };
        let sequence = Sequence(self.nodes.len() as u32);
        self.nodes.push(Node { first: key.0.clone(), rest, vars });
        self.by_parts.insert(key, sequence);
        sequence
    }

    /// The sequence with the variables `to` in place of its free variables, in their order.
    pub(super) fn rename(&mut self, signature: &Signature, sequence: Sequence, to: &[VarId]) -> Sequence {
        if to.is_empty() {
            return sequence;
        }
        let key = (sequence, to.to_vec());
        if let Some(&known) = self.renamed.get(&key) {
            return known;
        }
        let Node { first, rest, vars } = &self.nodes[sequence.0 as usize];
        let (first, rest) = (first.clone(), *rest);
        let by: Substitution = vars.iter().zip(to).map(|(v, w)| (*v, Expr::var(signature, *w))).collect();
        let of_rest = self.vars(rest);
        let to_rest: Vec<VarId> =
            of_rest.iter().map(|v| to[vars.iter().position(|own| own == v).expect("a variable of the whole")]).collect();
        let rest = stacker::maybe_grow(64 << 10, 1 << 20, || self.rename(signature, rest, &to_rest));
        let renamed = self.cons(first.substitute(&by), rest);
        self.renamed.insert(key, renamed);
        renamed
    }
}
