//! Which processes can end, and terms without what comes after those that cannot: in `V = a . V .
//! b` the `b` is never done, and without it `V` needs no stack.
//!
//! In and out: terms. A process can end if some alternative of it gets to its end by processes that
//! can: a least fixed point, as for the productive nonterminals of a grammar; conditions are taken
//! to hold or not. The transition system stays the same up to strong bisimilarity. Cost: linear in
//! the terms for each round, of which there are at most as many as processes.

use super::term::Term;
use std::rc::Rc;

/// For each process whether it can end, by the terms of the sequential ones; of others it is not
/// known.
pub(super) fn ending(bodies: &[Option<Rc<Term>>]) -> Vec<bool> {
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

/// The term without what is never reached in it.
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
            if !stays_open(&first, ends) {
                let second = trim(q, ends);
                return with(term, [p, q], [first, second], |[p, q]| Term::Seq(p, q));
            }
            append(&first, q, ends)
        }
    })
}

/// The same term if its parts are the same.
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

/// Whether an alternative of a term cannot end; those below a sum are not looked at, since what
/// follows is outside of it.
fn stays_open(term: &Term, ends: &[bool]) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        let inside = matches!(term, Term::Choice(p, q) | Term::If(_, p, q) if stays_open(p, ends) || stays_open(q, ends));
        inside || !matches!(term, Term::Delta) && !can_end(term, ends)
    })
}

/// A trimmed term and then another, behind the alternatives that can end.
fn append(term: &Rc<Term>, then: &Rc<Term>, ends: &[bool]) -> Rc<Term> {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &**term {
        _ if !can_end(term, ends) => term.clone(),
        Term::Choice(p, q) if stays_open(term, ends) => {
            Rc::new(Term::Choice(append(p, then, ends), append(q, then, ends)))
        }
        Term::If(c, p, q) if stays_open(term, ends) => {
            Rc::new(Term::If(c.clone(), append(p, then, ends), append(q, then, ends)))
        }
        _ => Rc::new(Term::Seq(term.clone(), trim(then, ends))),
    })
}
