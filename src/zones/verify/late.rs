//! Late choice of quantified variables: a variable that a run reads in one modality only is
//! determined by the label there.
//!
//! In: positions of a formula without choices of the prover and without least fixed points. Out:
//! the same formula, in which `forall v. (c(v) => [a(v)] f)` is `[exists v. c(v) && a(v)] f`, if
//! `v` does not occur in `f` and an equation with an argument of the label determines it.
//!
//! *Lemma.* Both formulas are equivalent. *Proof.* A violation of such a formula is a path through
//! positions and steps; it chooses one value of `v`, where it passes the quantifier. If it passes
//! a modality that reads `v`, no position after it needs `v`, so it passes one such modality at
//! most. The tests in front of the modality read only variables of the formula and parameters that
//! never change, so they have the same value there. So the value may as well be chosen at the
//! modality; and a path that passes none needs no value (each sort has one). ∎ The equation
//! `v == e` makes the condition hold only for the value of `e`, which has the sort of `v`.
//!
//! So no case distinguishes the values of `v`: an identity need not be tracked, a number is no
//! base. Cost: linear in the positions for each variable.

use super::identities::eliminate_determined;
use crate::positions::{Position, Positions};
use ahash::{AHashMap, AHashSet};
use mu_base::Span;
use mu_base::ids::VarId;
use mu_data::expr::{Binder, Expr, ExprKind};
use mu_data::signature::Signature;
use mu_data::sort::basic;
use mu_process::linear::LinearProcess;

/// Replaces quantifiers by choices at labels, as far as equations determine these.
pub(super) fn choose_late(
    process: &LinearProcess,
    signature: &mut Signature,
    positions: &mut Positions,
) {
    // The innermost quantifiers are first.
    for at in 0..positions.all.len() {
        let Position::Forall(var, next, _) = positions.all[at] else { continue };
        let Some(changes) = late(signature, positions, var, next) else { continue };
        for (place, position) in changes {
            positions.all[place] = position;
        }
        positions.all[at] = Position::All(vec![next]);
        positions.renew(process);
    }
}

fn reads(e: &Expr, var: VarId) -> bool {
    let mut free = Vec::new();
    e.free_vars(&mut free);
    free.contains(&var)
}

/// Returns the positions that differ if a variable is chosen late; `None` if it cannot be.
fn late(
    signature: &mut Signature,
    positions: &Positions,
    var: VarId,
    from: usize,
) -> Option<Vec<(usize, Position)>> {
    let mut entries = vec![0usize; positions.all.len()];
    entries[positions.start] += 1;
    for position in &positions.all {
        successors(position).iter().for_each(|next| entries[*next] += 1);
    }
    // The tests in front of each modality that read the variable.
    let mut tests: AHashMap<usize, Vec<Expr>> = AHashMap::new();
    let mut changes: Vec<(usize, Position)> = Vec::new();
    let mut boxes = Vec::new();
    let mut seen: AHashSet<usize> = AHashSet::new();
    let mut pending = vec![from];
    while let Some(at) = pending.pop() {
        if !positions.live[at].contains(&var) || !seen.insert(at) {
            continue;
        }
        let position = &positions.all[at];
        pending.extend(successors(position));
        match position {
            Position::Test(e, ..) if reads(e, var) => return None,
            Position::Assign(set, _) if set.iter().any(|(_, e)| reads(e, var)) => return None,
            Position::Any(_) | Position::Exists(..) => return None,
            Position::Forall(other, ..) if *other == var => return None,
            Position::Unless(e, expected, _, next) if reads(e, var) => {
                let modality = modality_after(positions, &entries, e, *next)?;
                let e = if *expected { Expr::negate(signature, e.clone()) } else { e.clone() };
                tests.entry(modality).or_default().push(e);
                changes.push((at, Position::All(vec![*next])));
            }
            Position::Box(..) => boxes.push(at),
            _ => {}
        }
    }
    for at in boxes {
        let Position::Box(conditions, next) = &positions.all[at] else { continue };
        let before = tests.remove(&at).unwrap_or_default();
        if before.is_empty() && !conditions.iter().flatten().any(|e| reads(e, var)) {
            continue;
        }
        if positions.live[*next].contains(&var) {
            return None;
        }
        let mut chosen = Vec::with_capacity(conditions.len());
        for condition in conditions {
            let Some(e) = condition else {
                chosen.push(None);
                continue;
            };
            let all = before.iter().fold(e.clone(), |all, c| Expr::and(signature, all, c.clone()));
            let kind = ExprKind::Bind(Binder::Exists, vec![var], all);
            let e = eliminate_determined(signature, &Expr::new(kind, basic::BOOL, Span::default()));
            if binds(&e, var) {
                return None;
            }
            chosen.push(Some(e));
        }
        changes.push((at, Position::Box(chosen, *next)));
    }
    // A test before a modality that does not need the variable is one of these.
    tests.is_empty().then_some(changes)
}

/// Returns the modality that follows a test, after tests and quantifiers over other variables, if
/// no other path leads to these.
fn modality_after(
    positions: &Positions,
    entries: &[usize],
    test: &Expr,
    from: usize,
) -> Option<usize> {
    let mut at = from;
    loop {
        if entries[at] != 1 {
            return None;
        }
        match &positions.all[at] {
            Position::Box(..) => return Some(at),
            Position::Forall(other, _, _) if reads(test, *other) => return None,
            Position::Unless(_, _, _, next) | Position::Forall(_, next, _) => at = *next,
            Position::All(next) => match next[..] {
                [next] if positions.priorities[at] == 0 => at = next,
                _ => return None,
            },
            _ => return None,
        }
    }
}

/// True if a term binds a variable, or reads it.
fn binds(e: &Expr, var: VarId) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
        ExprKind::Var(v) => *v == var,
        ExprKind::Op(_) | ExprKind::Number(_) => false,
        ExprKind::Apply(head, args) => binds(head, var) || args.iter().any(|a| binds(a, var)),
        ExprKind::Bind(_, vars, body) => vars.contains(&var) || binds(body, var),
        ExprKind::Where(body, definitions) => {
            binds(body, var) || definitions.iter().any(|(v, d)| *v == var || binds(d, var))
        }
    })
}

fn successors(position: &Position) -> Vec<usize> {
    match position {
        Position::True | Position::False | Position::Test(..) => Vec::new(),
        Position::All(next) | Position::Any(next) => next.clone(),
        Position::Unless(_, _, _, next)
        | Position::Forall(_, next, _)
        | Position::Exists(_, next, _)
        | Position::Box(_, next)
        | Position::Assign(_, next) => vec![*next],
    }
}
