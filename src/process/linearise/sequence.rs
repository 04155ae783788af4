//! Hash-consed sequences of terms: the continuations of a sequential component.
//!
//! In: terms, by [`Sequences::push`]. Out: numbers of sequences, equal for equal sequences
//! independent of the order of composition; first term, rest and free variables of each. Sequences
//! share their tails, so that each suffix of a long composition is created and compared once. Cost:
//! linear in the size of the terms; each shared term is analysed once ([`CachedFacts`]). Invariant:
//! no first term is a sequential composition, and nothing follows a deadlock.

use super::term::ProcessTerm;
use ahash::AHashMap;
use mu_base::ids::VarId;
use mu_base::narrow;
use mu_data::expr::{Expr, ExprKind, Substitution};
use mu_data::signature::Signature;
use std::hash::{BuildHasher, Hash, Hasher};
use std::rc::Rc;

/// Number of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sequence(u32);

impl Sequence {
    /// The empty sequence.
    pub(super) const EMPTY: Sequence = Sequence(0);

    pub(super) fn is_empty(self) -> bool {
        self == Self::EMPTY
    }
}

struct SequenceNode {
    first: Rc<ProcessTerm>,
    rest: Sequence,
    /// Free variables in order of first occurrence.
    vars: Rc<[VarId]>,
    /// Hash that is equal for sequences that differ only in the names of variables.
    shape: u64,
}

/// Cached properties of a term.
struct CachedFacts {
    /// The term itself, which prevents reuse of its address.
    _term: Rc<ProcessTerm>,
    facts: SequenceFacts,
}

#[derive(Clone)]
struct SequenceFacts {
    /// Hash that is equal for equal terms.
    digest: u64,
    /// Hash that is equal for terms that differ only in the names of variables.
    shape: u64,
    /// Free variables in order of first occurrence.
    vars: Rc<[VarId]>,
}

/// Table of all sequences.
pub(super) struct Sequences {
    /// Nodes by number. The empty sequence has number 0; its first term is unused.
    nodes: Vec<SequenceNode>,
    /// By the hash of the first term, and the rest.
    by_parts: AHashMap<(u64, Sequence), Vec<Sequence>>,
    /// Properties of terms by address.
    known: AHashMap<*const ProcessTerm, CachedFacts>,
    /// Sequences of compositions with their continuation, by address; the entry holds the
    /// composition.
    of_term: AHashMap<(*const ProcessTerm, Sequence), (Rc<ProcessTerm>, Sequence)>,
    /// Results of renaming.
    renamed: AHashMap<(Sequence, Vec<VarId>), Sequence>,
}

impl Sequences {
    pub(super) fn new() -> Self {
        let empty = SequenceNode {
            first: Rc::new(ProcessTerm::Delta),
            rest: Sequence::EMPTY,
            vars: Rc::from([]),
            shape: 0,
        };
        let nodes = vec![empty];
        Self {
            nodes,
            by_parts: AHashMap::new(),
            known: AHashMap::new(),
            of_term: AHashMap::new(),
            renamed: AHashMap::new(),
        }
    }

    /// Returns the first term; `None` for the empty sequence.
    pub(super) fn first(&self, sequence: Sequence) -> Option<&Rc<ProcessTerm>> {
        (!sequence.is_empty()).then(|| &self.nodes[sequence.0 as usize].first)
    }

    /// Returns the sequence after the first term.
    pub(super) fn rest(&self, sequence: Sequence) -> Sequence {
        self.nodes[sequence.0 as usize].rest
    }

    /// Returns the free variables in order of first occurrence.
    pub(super) fn vars(&self, sequence: Sequence) -> Rc<[VarId]> {
        self.nodes[sequence.0 as usize].vars.clone()
    }

    /// Returns a hash that is equal for sequences that differ only in the names of variables.
    pub(super) fn shape(&self, sequence: Sequence) -> u64 {
        self.nodes[sequence.0 as usize].shape
    }

    /// Returns the sequence of a term and a rest.
    pub(super) fn push(&mut self, term: &Rc<ProcessTerm>, rest: Sequence) -> Sequence {
        let ProcessTerm::Seq(p, q) = &**term else { return self.cons(term.clone(), rest) };
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

    fn cons(&mut self, first: Rc<ProcessTerm>, rest: Sequence) -> Sequence {
        let rest = if matches!(*first, ProcessTerm::Delta) { Sequence::EMPTY } else { rest };
        let SequenceFacts { digest, shape, vars } = self.facts(&first);
        let same = |known: &&Sequence| {
            let own = &self.nodes[known.0 as usize].first;
            Rc::ptr_eq(own, &first) || *own == first
        };
        if let Some(known) =
            self.by_parts.get(&(digest, rest)).and_then(|known| known.iter().find(same))
        {
            return *known;
        }
        let after = &self.nodes[rest.0 as usize];
        let vars = union(&vars, &after.vars);
        let sequence = Sequence(narrow::index(self.nodes.len()));
        let shape = hash_of(|h| (shape, after.shape).hash(h));
        self.nodes.push(SequenceNode { first, rest, vars, shape });
        self.by_parts.entry((digest, rest)).or_default().push(sequence);
        sequence
    }

    /// Returns the properties of a term, computed from those of its parts.
    fn facts(&mut self, term: &Rc<ProcessTerm>) -> SequenceFacts {
        if let Some(known) = self.known.get(&Rc::as_ptr(term)) {
            return known.facts.clone();
        }
        let facts = stacker::maybe_grow(64 << 10, 1 << 20, || {
            let (exprs, parts, bound): (Vec<&Expr>, Vec<&Rc<ProcessTerm>>, &[VarId]) = match &**term
            {
                ProcessTerm::Action(acts) => {
                    (acts.iter().flat_map(|a| &a.args).collect(), Vec::new(), &[])
                }
                ProcessTerm::Call(_, args) => (args.iter().collect(), Vec::new(), &[]),
                ProcessTerm::Delta => (Vec::new(), Vec::new(), &[]),
                ProcessTerm::Choice(p, q) | ProcessTerm::Seq(p, q) => (Vec::new(), vec![p, q], &[]),
                ProcessTerm::If(c, p, q) => (vec![c], vec![p, q], &[]),
                ProcessTerm::Sum(vars, p) => (Vec::new(), vec![p], vars),
                ProcessTerm::Dist(vars, weight, p) => (vec![weight], vec![p], vars),
                ProcessTerm::At(p, time) => (vec![time], vec![p], &[]),
            };
            let parts: Vec<SequenceFacts> =
                parts.into_iter().map(|part| self.facts(part)).collect();
            let mut vars = Vec::new();
            exprs.iter().for_each(|e| e.free_vars(&mut vars));
            let mut vars: Rc<[VarId]> = Rc::from(vars);
            for part in &parts {
                // The time of an action comes after it.
                let time_last = matches!(**term, ProcessTerm::At(..));
                vars = if time_last { union(&part.vars, &vars) } else { union(&vars, &part.vars) };
            }
            if vars.iter().any(|v| bound.contains(v)) {
                vars = vars.iter().copied().filter(|v| !bound.contains(v)).collect();
            }
            let kind = |h: &mut dyn Hasher| {
                let mut h = h;
                std::mem::discriminant(&**term).hash(&mut h);
                match &**term {
                    ProcessTerm::Action(acts) => {
                        acts.iter().for_each(|a| (a.action, a.args.len()).hash(&mut h))
                    }
                    ProcessTerm::Call(p, _) => p.hash(&mut h),
                    _ => bound.len().hash(&mut h),
                }
            };
            let digest = hash_of(|h| {
                kind(h);
                bound.hash(h);
                exprs.iter().for_each(|e| e.hash(h));
                parts.iter().for_each(|p| p.digest.hash(h));
            });
            let shape = hash_of(|h| {
                kind(h);
                exprs.iter().for_each(|e| shape_of(e, h));
                parts.iter().for_each(|p| p.shape.hash(h));
            });
            SequenceFacts { digest, shape, vars }
        });
        self.known
            .insert(Rc::as_ptr(term), CachedFacts { _term: term.clone(), facts: facts.clone() });
        facts
    }

    /// Returns the sequence with the variables `to` in place of its free variables, in their order.
    pub(super) fn rename(
        &mut self,
        signature: &Signature,
        sequence: Sequence,
        to: &[VarId],
    ) -> Sequence {
        if to.is_empty() {
            return sequence;
        }
        let key = (sequence, to.to_vec());
        if let Some(&known) = self.renamed.get(&key) {
            return known;
        }
        let SequenceNode { first, rest, vars, .. } = &self.nodes[sequence.0 as usize];
        let (first, rest) = (first.clone(), *rest);
        let by: Substitution =
            vars.iter().zip(to).map(|(v, w)| (*v, Expr::var(signature, *w))).collect();
        let of_rest = self.vars(rest);
        let to_rest: Vec<VarId> = of_rest
            .iter()
            .map(|v| to[vars.iter().position(|own| own == v).expect("a variable of the whole")])
            .collect();
        let rest =
            stacker::maybe_grow(64 << 10, 1 << 20, || self.rename(signature, rest, &to_rest));
        let renamed = self.cons(first.substitute(&by), rest);
        self.renamed.insert(key, renamed);
        renamed
    }
}

fn hash_of(hash: impl FnOnce(&mut ahash::AHasher)) -> u64 {
    let mut state = ahash::RandomState::with_seeds(1, 2, 3, 4).build_hasher();
    hash(&mut state);
    state.finish()
}

/// Returns the variables of one list, then the remaining ones of the other.
fn union(one: &Rc<[VarId]>, other: &Rc<[VarId]>) -> Rc<[VarId]> {
    if one.is_empty() {
        return other.clone();
    }
    if other.iter().all(|v| one.contains(v)) {
        return one.clone();
    }
    one.iter().chain(other.iter().filter(|v| !one.contains(v))).copied().collect()
}

/// Hashes an expression without the names of its variables.
fn shape_of(e: &Expr, h: &mut ahash::AHasher) {
    std::mem::discriminant(&e.kind).hash(h);
    match &e.kind {
        ExprKind::Var(_) => e.sort.hash(h),
        ExprKind::Op(op) => op.hash(h),
        ExprKind::Number(n) => n.hash(h),
        ExprKind::Apply(head, args) => stacker::maybe_grow(64 << 10, 1 << 20, || {
            args.len().hash(h);
            shape_of(head, h);
            args.iter().for_each(|a| shape_of(a, h));
        }),
        ExprKind::Bind(binder, vars, body) => stacker::maybe_grow(64 << 10, 1 << 20, || {
            (binder, vars.len()).hash(h);
            shape_of(body, h);
        }),
        ExprKind::Where(body, definitions) => stacker::maybe_grow(64 << 10, 1 << 20, || {
            definitions.iter().for_each(|d| shape_of(&d.1, h));
            shape_of(body, h);
        }),
    }
}
