//! Terminating processes, and removal of unreachable continuations: in `V = a . V . b` the `b` is
//! unreachable, and without it `V` needs no stack.
//!
//! In and out: terms. A process can terminate if some alternative of it reaches its end by
//! processes that can terminate: a least fixed point, as for the productive nonterminals of a
//! grammar. Conditions count as possibly true and possibly false. The transition system stays the
//! same up to strong bisimilarity. Cost: linear in the terms for each round; at most one round per
//! process.

use super::term::ProcessTerm;
use std::rc::Rc;

/// Returns for each process whether it can terminate, from the terms of the sequential ones;
/// arbitrary for others.
pub(super) fn can_terminate(bodies: &[Option<Rc<ProcessTerm>>]) -> Vec<bool> {
    let mut ends: Vec<bool> = bodies.iter().map(Option::is_none).collect();
    loop {
        let mut changed = false;
        for (i, body) in bodies.iter().enumerate() {
            if !ends[i] && body.as_ref().is_some_and(|b| can_end(b, &ends)) {
                ends[i] = true;
                changed = true;
            }
        }
        if !changed {
            return ends;
        }
    }
}

fn can_end(term: &ProcessTerm, ends: &[bool]) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match term {
        ProcessTerm::Action(_) => true,
        ProcessTerm::Delta => false,
        ProcessTerm::Call(p, _) => ends[p.index()],
        ProcessTerm::Choice(p, q) | ProcessTerm::If(_, p, q) => {
            can_end(p, ends) || can_end(q, ends)
        }
        ProcessTerm::Seq(p, q) => can_end(p, ends) && can_end(q, ends),
        ProcessTerm::Sum(_, p) | ProcessTerm::Dist(_, _, p) | ProcessTerm::At(p, _) => {
            can_end(p, ends)
        }
    })
}

/// Returns the term without unreachable continuations.
pub(super) fn trim(term: &Rc<ProcessTerm>, ends: &[bool]) -> Rc<ProcessTerm> {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &**term {
        ProcessTerm::Action(_) | ProcessTerm::Call(..) | ProcessTerm::Delta => term.clone(),
        ProcessTerm::Choice(p, q) => {
            with(term, [p, q], [trim(p, ends), trim(q, ends)], |[p, q]| ProcessTerm::Choice(p, q))
        }
        ProcessTerm::If(c, p, q) => with(term, [p, q], [trim(p, ends), trim(q, ends)], |[p, q]| {
            ProcessTerm::If(c.clone(), p, q)
        }),
        ProcessTerm::Sum(vars, p) => {
            with(term, [p], [trim(p, ends)], |[p]| ProcessTerm::Sum(vars.clone(), p))
        }
        ProcessTerm::Dist(vars, w, p) => {
            with(term, [p], [trim(p, ends)], |[p]| ProcessTerm::Dist(vars.clone(), w.clone(), p))
        }
        ProcessTerm::At(p, t) => {
            with(term, [p], [trim(p, ends)], |[p]| ProcessTerm::At(p, t.clone()))
        }
        ProcessTerm::Seq(p, q) => {
            let first = trim(p, ends);
            if !has_nonterminating_alternative(&first, ends) {
                let second = trim(q, ends);
                return with(term, [p, q], [first, second], |[p, q]| ProcessTerm::Seq(p, q));
            }
            append(&first, q, ends)
        }
    })
}

/// Returns the same term if its parts are unchanged.
fn with<const N: usize>(
    term: &Rc<ProcessTerm>,
    old: [&Rc<ProcessTerm>; N],
    new: [Rc<ProcessTerm>; N],
    make: impl FnOnce([Rc<ProcessTerm>; N]) -> ProcessTerm,
) -> Rc<ProcessTerm> {
    if old.iter().zip(&new).all(|(a, b)| Rc::ptr_eq(a, b)) {
        term.clone()
    } else {
        Rc::new(make(new))
    }
}

/// True if an alternative of a term cannot terminate. Alternatives below a sum do not count, since
/// the continuation is outside the sum.
fn has_nonterminating_alternative(term: &ProcessTerm, ends: &[bool]) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        let inside = matches!(term, ProcessTerm::Choice(p, q) | ProcessTerm::If(_, p, q) if has_nonterminating_alternative(p, ends) || has_nonterminating_alternative(q, ends));
        inside || !matches!(term, ProcessTerm::Delta) && !can_end(term, ends)
    })
}

/// Appends a term to the terminating alternatives of a trimmed term.
fn append(term: &Rc<ProcessTerm>, then: &Rc<ProcessTerm>, ends: &[bool]) -> Rc<ProcessTerm> {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &**term {
        _ if !can_end(term, ends) => term.clone(),
        ProcessTerm::Choice(p, q) if has_nonterminating_alternative(term, ends) => {
            Rc::new(ProcessTerm::Choice(append(p, then, ends), append(q, then, ends)))
        }
        ProcessTerm::If(c, p, q) if has_nonterminating_alternative(term, ends) => {
            Rc::new(ProcessTerm::If(c.clone(), append(p, then, ends), append(q, then, ends)))
        }
        _ => Rc::new(ProcessTerm::Seq(term.clone(), trim(then, ends))),
    })
}
