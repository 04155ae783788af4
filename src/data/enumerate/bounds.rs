//! Bounds of numeric unknowns, from the comparisons among the conjuncts of a condition.
//!
//! Each comparison is a linear form that is at most 0; a bound of an unknown follows from the
//! bounds of the others in a form. Forms with `abs`, `max`, `min` and products imply forms for
//! their arguments. Cost: forms times their length, a few rounds.

use crate::builtins::compare::builtin_of;
use crate::builtins::linear::{LinearForm, least, numeric_sort};
use crate::engine::compile::Program;
use crate::engine::terms::Terms;
use crate::signature::Builtin;
use crate::sort::basic;
use crate::value::Value;
use mu_base::ids::SortId;

/// Least and greatest value of an unknown, as far as known.
pub(super) type Bounds = (Option<i64>, Option<i64>);

/// Limit on the forms; further ones are ignored.
const MAX_FORMS: usize = 256;
/// Limit on the passes over the forms; bounds of further ones are not found.
const MAX_ROUNDS: usize = 4;

/// Returns the unknown of an atom: the atom itself, or the operand of a conversion to a narrower
/// sort that it is known to belong to.
fn unknown_of(p: &Program, atom: &Value, open: &[u32], bounds: &[Bounds]) -> Option<usize> {
    let position = |v: &Value| match v {
        Value::Unknown(u) => open.iter().position(|o| o == u),
        _ => None,
    };
    let (builtin, args) = match atom {
        Value::Unknown(_) => return position(atom),
        _ => builtin_of(p, atom)?,
    };
    let low = match builtin {
        Builtin::IntToNat => 0,
        Builtin::IntToPos | Builtin::NatToPos => 1,
        _ => return None,
    };
    position(args.first()?).filter(|at| bounds[*at].0.is_some_and(|from| from >= low))
}

/// Returns the forms implied by a form with an atom that is an absolute value, a maximum or a
/// minimum.
fn implied_forms(
    p: &Program,
    sort_of: &dyn Fn(u32) -> SortId,
    form: &LinearForm,
) -> Option<Vec<LinearForm>> {
    form.terms.iter().enumerate().find_map(|(i, (atom, k))| match (builtin_of(p, atom)?, *k > 0) {
        ((Builtin::Abs, [x]), true) => Some(vec![form.with(p, i, x, 1)?, form.with(p, i, x, -1)?]),
        ((Builtin::Max, [x, y]), true) | ((Builtin::Min, [x, y]), false) => {
            Some(vec![form.with(p, i, x, 1)?, form.with(p, i, y, 1)?])
        }
        // A product is at least each of its factors, if these are positive; a square is at least
        // its root.
        ((Builtin::Multiply, [x, y]), true) => {
            let (of_x, of_y) = (numeric_sort(p, sort_of, x), numeric_sort(p, sort_of, y));
            if (of_x, of_y) == (basic::POS, basic::POS) {
                Some(vec![form.with(p, i, x, 1)?, form.with(p, i, y, 1)?])
            } else if x == y && matches!(of_x, basic::POS | basic::NAT | basic::INT) {
                Some(vec![form.with(p, i, x, 1)?, form.with(p, i, x, -1)?])
            } else {
                None
            }
        }
        _ => None,
    })
}

/// A comparison of two terms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    LessEqual,
    Less,
    Equal,
}

/// Computes bounds of numeric unknowns from the conjuncts.
pub(super) fn bounds<T: Terms>(m: &T, p: &Program, open: &[u32], parts: &[&Value]) -> Vec<Bounds> {
    let sort_of = |u: u32| m.unknowns().sort(u);
    let mut bounds: Vec<Bounds> = open.iter().map(|&u| (least(sort_of(u)), None)).collect();
    let mut forms = Vec::new();
    for part in parts {
        for form in linear_forms(p, &sort_of, part) {
            close_under_implication(p, &sort_of, form, &mut forms);
        }
    }
    propagate(p, &sort_of, open, &forms, &mut bounds);
    bounds
}

/// Returns the linear forms of a numeric comparison, two for an equation; none for other conjuncts.
fn linear_forms(p: &Program, sort_of: &dyn Fn(u32) -> SortId, part: &Value) -> Vec<LinearForm> {
    let (a, b, relation) = match builtin_of(p, part) {
        Some((Builtin::LessEqual, [a, b])) => (a, b, Relation::LessEqual),
        Some((Builtin::Less, [a, b])) => (a, b, Relation::Less),
        Some((Builtin::Equal, [a, b])) => (a, b, Relation::Equal),
        _ => return Vec::new(),
    };
    let is_numeric = part.as_app().is_some_and(|(op, _)| {
        (basic::POS.number()..=basic::REAL.number()).contains(&p.op(op).first.number())
    });
    if !is_numeric {
        return Vec::new();
    }
    let mut forms: Vec<LinearForm> = LinearForm::difference(p, a, b).into_iter().collect();
    match relation {
        Relation::LessEqual => {}
        Relation::Less => {
            for form in &mut forms {
                let is_integral =
                    form.terms.iter().all(|t| numeric_sort(p, sort_of, &t.0) != basic::REAL);
                if is_integral {
                    form.constant = form.constant.saturating_add(1);
                }
            }
        }
        Relation::Equal => forms.extend(LinearForm::difference(p, b, a)),
    }
    forms
}

/// Adds a form, replaced by those that it implies, to `closed_forms`.
fn close_under_implication(
    p: &Program,
    sort_of: &dyn Fn(u32) -> SortId,
    form: LinearForm,
    closed_forms: &mut Vec<LinearForm>,
) {
    let mut forms = vec![form];
    while let Some(form) = forms.pop() {
        match implied_forms(p, sort_of, &form) {
            Some(parts) if closed_forms.len() + forms.len() < MAX_FORMS => forms.extend(parts),
            _ => closed_forms.push(form),
        }
    }
}

/// Tightens the bounds by the forms until nothing changes, or for [`MAX_ROUNDS`].
fn propagate(
    p: &Program,
    sort_of: &dyn Fn(u32) -> SortId,
    open: &[u32],
    forms: &[LinearForm],
    bounds: &mut [Bounds],
) {
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for form in forms {
            for (i, (atom, k)) in form.terms.iter().enumerate() {
                let Some(at) = unknown_of(p, atom, open, bounds) else { continue };
                // k·x <= -(constant + least of the other terms)
                let mut rest = Some(form.constant);
                for (j, (other, m)) in form.terms.iter().enumerate() {
                    if i == j {
                        continue;
                    }
                    let (low, high) = match unknown_of(p, other, open, bounds) {
                        Some(at) => bounds[at],
                        None => (least(numeric_sort(p, sort_of, other)), None),
                    };
                    let least = if *m > 0 { low } else { high };
                    rest = rest.and_then(|o| o.checked_add(least?.checked_mul(*m)?));
                }
                let Some(limit) = rest.and_then(i64::checked_neg) else { continue };
                // A real number may lie between two integers, so its bounds are rounded outwards.
                let outwards = sort_of(open[at]) == basic::REAL;
                let rounded = |k: i64| {
                    let below = limit.div_euclid(k);
                    let is_between = outwards && limit.rem_euclid(k) != 0;
                    below.checked_add(i64::from(is_between))
                };
                if *k > 0 {
                    let Some(upper) = rounded(*k) else { continue };
                    if bounds[at].1.is_none_or(|b| upper < b) {
                        bounds[at].1 = Some(upper);
                        changed = true;
                    }
                } else {
                    let Some(lower) = k.checked_neg().and_then(rounded).and_then(i64::checked_neg)
                    else {
                        continue;
                    };
                    if bounds[at].0.is_none_or(|b| lower > b) {
                        bounds[at].0 = Some(lower);
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
}
