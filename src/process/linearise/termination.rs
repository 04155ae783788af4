//! Terminating processes, and removal of unreachable continuations: in `V = a . V . b` the `b` is
//! unreachable, and without it `V` needs no stack.
//!
//! In and out: terms. A process can terminate if some alternative of it reaches its end by
//! processes that can terminate: a least fixed point, as for the productive nonterminals of a
//! grammar. Conditions count as possibly true and possibly false. The transition system stays the
//! same up to strong bisimilarity. Cost: linear in the terms for each round; at most one round per
//! process.

use super::term::Term;
use std::rc::Rc;

/// Returns for each process whether it can terminate, from the terms of the sequential ones;
/// arbitrary for others.
pub(super) fn terminating(bodies: &[Option<Rc<Term>>]) -> Vec<bool> {
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

fn can_end(term: &Term, ends: &[bool]) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match term {
        Term::Action(_) => true,
        Term::Delta => false,
        Term::Call(p, _) => ends[p.index()],
        Term::Choice(p, q) | Term::If(_, p, q) => can_end(p, ends) || can_end(q, ends),
        Term::Seq(p, q) => can_end(p, ends) && can_end(q, ends),
        Term::Sum(_, p) | Term::Dist(_, _, p) | Term::At(p, _) => can_end(p, ends),
    })
}

/// Returns the term without unreachable continuations.
pub(super) fn trim(term: &Rc<Term>, ends: &[bool]) -> Rc<Term> {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &**term {
        Term::Action(_) | Term::Call(..) | Term::Delta => term.clone(),
        Term::Choice(p, q) => {
            with(term, [p, q], [trim(p, ends), trim(q, ends)], |[p, q]| Term::Choice(p, q))
        }
        Term::If(c, p, q) => {
            with(term, [p, q], [trim(p, ends), trim(q, ends)], |[p, q]| Term::If(c.clone(), p, q))
        }
        Term::Sum(vars, p) => with(term, [p], [trim(p, ends)], |[p]| Term::Sum(vars.clone(), p)),
        Term::Dist(vars, w, p) => {
            with(term, [p], [trim(p, ends)], |[p]| Term::Dist(vars.clone(), w.clone(), p))
        }
        Term::At(p, t) => with(term, [p], [trim(p, ends)], |[p]| Term::At(p, t.clone())),
        Term::Seq(p, q) => {
            let first = trim(p, ends);
            if !has_nonterminating_alternative(&first, ends) {
                let second = trim(q, ends);
                return with(term, [p, q], [first, second], |[p, q]| Term::Seq(p, q));
            }
            append(&first, q, ends)
        }
    })
}

/// Returns the same term if its parts are unchanged.
fn with<const N: usize>(
    term: &Rc<Term>,
    old: [&Rc<Term>; N],
    new: [Rc<Term>; N],
    make: impl FnOnce([Rc<Term>; N]) -> Term,
) -> Rc<Term> {
    if old.iter().zip(&new).all(|(a, b)| Rc::ptr_eq(a, b)) {
        term.clone()
    } else {
        Rc::new(make(new))
    }
}

/// True if an alternative of a term cannot terminate. Alternatives below a sum do not count, since
/// the continuation is outside the sum.
fn has_nonterminating_alternative(term: &Term, ends: &[bool]) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        let inside = matches!(term, Term::Choice(p, q) | Term::If(_, p, q) if has_nonterminating_alternative(p, ends) || has_nonterminating_alternative(q, ends));
        inside || !matches!(term, Term::Delta) && !can_end(term, ends)
    })
}

/// Appends a term to the terminating alternatives of a trimmed term.
fn append(term: &Rc<Term>, then: &Rc<Term>, ends: &[bool]) -> Rc<Term> {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &**term {
        _ if !can_end(term, ends) => term.clone(),
        Term::Choice(p, q) if has_nonterminating_alternative(term, ends) => {
            Rc::new(Term::Choice(append(p, then, ends), append(q, then, ends)))
        }
        Term::If(c, p, q) if has_nonterminating_alternative(term, ends) => {
            Rc::new(Term::If(c.clone(), append(p, then, ends), append(q, then, ends)))
        }
        _ => Rc::new(Term::Seq(term.clone(), trim(then, ends))),
    })
}
