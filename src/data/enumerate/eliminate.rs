//! Quantifier elimination: removes existentially bound unknowns from a condition without
//! enumerating them.
//!
//! Rules, until none applies: an equation `x == e` gives `x` its value (the one-point rule), also
//! if the equation is linear in `x`; a number that is only bounded by linear comparisons is
//! replaced by each of its possible least values (as in Cooper, "Theorem proving in arithmetic
//! without multiplication", 1972, for coefficients of 1); a condition that excludes finitely many
//! elements of an infinite sort holds for another element; the sides of a disjunction are treated
//! one by one. So `forall x: Nat. exists y: Nat. y == x + 1` becomes `forall x: Nat. 0 <= x + 1`.
//! Cost: linear in the condition for each unknown, times the sides of disjunctions, which are
//! limited.

use super::branch::reevaluate_condition;
use super::{conjuncts, one_point};
use crate::builtins::compare::builtin_of;
use crate::builtins::linear::{LinearForm, least, numeric_sort, occurs};
use crate::engine::compile::Program;
use crate::engine::machine::Outcome;
use crate::engine::terms::Terms;
use crate::signature::Builtin;
use crate::sort::{SortKind, basic};
use crate::value::Value;
use mu_base::ids::SortId;

/// Limit on the cases (sides of disjunctions, least values) in one elimination; beyond it,
/// elimination gives up.
const MAX_CASES: u32 = 32;

/// Bounds of a number by the conjuncts that contain it.
struct NumberBounds {
    /// Least values allowed by one conjunct each.
    from: Vec<Value>,
    /// True if there is an upper bound.
    above: bool,
}

/// Returns the condition under which some values of `wanted` satisfy `condition`; `None` if no rule
/// removes them.
pub(super) fn eliminate<T: Terms>(
    m: &mut T,
    p: &Program,
    condition: Value,
    wanted: &[u32],
) -> Outcome<Option<Value>> {
    let mut cases = MAX_CASES;
    without_unknowns(m, p, condition, wanted, &mut cases)
}

fn without_unknowns<T: Terms>(
    m: &mut T,
    p: &Program,
    condition: Value,
    wanted: &[u32],
    cases: &mut u32,
) -> Outcome<Option<Value>> {
    let mark = m.mark();
    let result = eliminate_all(m, p, condition, wanted, cases);
    m.undo(mark);
    result
}

fn eliminate_all<T: Terms>(
    m: &mut T,
    p: &Program,
    condition: Value,
    wanted: &[u32],
    cases: &mut u32,
) -> Outcome<Option<Value>> {
    let mut rest = condition;
    loop {
        let mut open = Vec::new();
        m.unknowns().collect_unbound(&rest, &mut open);
        open.retain(|u| wanted.contains(u));
        if open.is_empty() {
            return Ok(Some(rest));
        }
        let whole = rest.clone();
        let mut parts = Vec::new();
        conjuncts(p, &whole, &mut parts);
        if let Some((u, value)) = find_solved(m, p, &parts, &open) {
            rest = with_value(m, p, u, value, &whole)?;
            continue;
        }
        if let Some((u, bounds)) = open.iter().find_map(|&u| Some((u, bounds_of(m, p, &parts, u)?)))
        {
            let low = least(m.unknowns().sort(u));
            if !bounds.above || bounds.from.is_empty() && low.is_none() {
                // Some value is beyond all bounds of the conjuncts.
                let unknown = Value::Unknown(u);
                rest = Value::Bool(true);
                for part in parts.into_iter().filter(|part| !occurs(part, &unknown)) {
                    rest = m.and(p, rest, part.clone());
                }
                continue;
            }
            let candidates = bounds.from.into_iter().chain(low.map(Value::Int));
            return disjunction(
                m,
                p,
                candidates.map(|v| (whole.clone(), Some((u, v)))).collect(),
                wanted,
                cases,
            );
        }
        let split = parts.iter().enumerate().find_map(|(i, part)| match builtin_of(p, part) {
            Some((Builtin::Or, [a, b]))
                if open.iter().any(|u| occurs(part, &Value::Unknown(*u))) =>
            {
                Some((i, a.clone(), b.clone()))
            }
            _ => None,
        });
        let Some((at, a, b)) = split else { return Ok(None) };
        let mut others = Value::Bool(true);
        for (i, part) in parts.into_iter().enumerate() {
            if i != at {
                others = m.and(p, others, part.clone());
            }
        }
        let (a, b) = (m.and(p, a, others.clone()), m.and(p, b, others));
        return disjunction(m, p, vec![(a, None), (b, None)], wanted, cases);
    }
}

/// Returns the disjunction of conditions, each with an optional value of an unknown, without the
/// wanted unknowns.
fn disjunction<T: Terms>(
    m: &mut T,
    p: &Program,
    all: Vec<(Value, Option<(u32, Value)>)>,
    wanted: &[u32],
    cases: &mut u32,
) -> Outcome<Option<Value>> {
    let mut sum = Value::Bool(false);
    for (condition, value) in all {
        if *cases == 0 {
            return Ok(None);
        }
        *cases -= 1;
        let mark = m.mark();
        let case = match value {
            Some((u, v)) => with_value(m, p, u, v, &condition),
            None => Ok(condition),
        };
        let case = case.and_then(|c| {
            stacker::maybe_grow(256 << 10, 4 << 20, || without_unknowns(m, p, c, wanted, cases))
        });
        m.undo(mark);
        let Some(case) = case? else { return Ok(None) };
        sum = m.or(p, sum, case);
        if sum.is_true() {
            break;
        }
    }
    Ok(Some(sum))
}

/// Returns a condition after an unknown gets a value, which must belong to its sort.
pub(super) fn with_value<T: Terms>(
    m: &mut T,
    p: &Program,
    u: u32,
    value: Value,
    condition: &Value,
) -> Outcome<Value> {
    let in_sort = m.of_sort(p, m.unknowns().sort(u), &value)?;
    if in_sort.is_false() {
        return Ok(in_sort);
    }
    m.unknowns_mut().bind(u, value);
    let renewed = reevaluate_condition(m, p, condition)?;
    let in_sort = m.reevaluate(p, &in_sort)?;
    Ok(m.and(p, in_sort, renewed))
}

/// Returns an unknown and its value, if a conjunct determines it.
fn find_solved<T: Terms>(
    m: &T,
    p: &Program,
    parts: &[&Value],
    open: &[u32],
) -> Option<(u32, Value)> {
    if let Some(found) = one_point(m, p, parts, &|u| open.contains(&u)) {
        return Some(found);
    }
    parts.iter().find_map(|part| {
        let Some((Builtin::Equal, [a, b])) = builtin_of(p, part) else { return None };
        let sort_of = |u: u32| m.unknowns().sort(u);
        let numeric = part.as_app().is_some_and(|(op, _)| {
            (basic::POS.number()..=basic::REAL.number()).contains(&p.op(op).first.number())
        });
        let form = LinearForm::difference(p, a, b).filter(|_| numeric)?;
        form.terms.iter().enumerate().find_map(|(i, (atom, k))| {
            let Value::Unknown(u) = atom else { return None };
            let exact = sort_of(*u) == basic::REAL
                || form
                    .terms
                    .iter()
                    .enumerate()
                    .all(|(j, t)| i == j || numeric_sort(p, &sort_of, &t.0) != basic::REAL);
            if !open.contains(u) || !exact || k.unsigned_abs() != 1 {
                return None;
            }
            let value = form.value(p, &sort_of, i, -k)?;
            (!occurs(&value, atom)).then_some((*u, value))
        })
    })
}

/// Returns the bounds of an unknown, if it occurs only in linear comparisons with coefficient 1 and
/// in conjuncts that exclude one value of it.
fn bounds_of<T: Terms>(m: &T, p: &Program, parts: &[&Value], u: u32) -> Option<NumberBounds> {
    let unknown = Value::Unknown(u);
    let sort_of = |u: u32| m.unknowns().sort(u);
    if !is_unlimited(p, sort_of(u), &mut Vec::new()) {
        return None;
    }
    let mut bounds = NumberBounds { from: Vec::new(), above: false };
    let mut excluded = false;
    for part in parts.iter().filter(|part| occurs(part, &unknown)) {
        let (a, b, strict) = match builtin_of(p, part)? {
            (Builtin::Not, [equation]) => match builtin_of(p, equation)? {
                (Builtin::Equal, [a, b])
                    if (*a == unknown && !occurs(b, &unknown))
                        || (*b == unknown && !occurs(a, &unknown)) =>
                {
                    excluded = true;
                    continue;
                }
                _ => return None,
            },
            (Builtin::LessEqual, [a, b]) => (a, b, 0),
            (Builtin::Less, [a, b]) => (a, b, 1),
            _ => return None,
        };
        if !matches!(sort_of(u), basic::POS | basic::NAT | basic::INT) {
            return None;
        }
        // The comparison as a form that is at most 0.
        let mut form = LinearForm::difference(p, a, b)?;
        form.constant = form.constant.checked_add(strict)?;
        let at = form.terms.iter().position(|t| t.0 == unknown)?;
        let k = form.terms[at].1;
        let excludes = |(j, t): (usize, &(Value, i64))| {
            j == at || !occurs(&t.0, &unknown) && numeric_sort(p, &sort_of, &t.0) != basic::REAL
        };
        if !form.terms.iter().enumerate().all(excludes) {
            return None;
        }
        match k {
            -1 => bounds.from.push(form.value(p, &sort_of, at, 1)?),
            1 => bounds.above = true,
            k if k > 0 => bounds.above = true,
            _ => bounds.from.push(unknown.clone()),
        }
    }
    // With bounds on both sides, excluded values matter, and a lower bound must be a value itself.
    let between = bounds.above && (sort_of(u) != basic::INT || !bounds.from.is_empty());
    if between && (excluded || bounds.from.contains(&unknown)) { None } else { Some(bounds) }
}

/// True if a sort has infinitely many elements, independent of equations.
fn is_unlimited(p: &Program, sort: SortId, path: &mut Vec<SortId>) -> bool {
    if p.sort(sort).user_equal.is_some() {
        return false;
    }
    match p.signature.sorts.kind(sort) {
        SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real | SortKind::List(_) => true,
        SortKind::Named(n) if p.signature.sorts.named[*n as usize].structured => {
            if path.contains(&sort) {
                return true;
            }
            path.push(sort);
            let constructors = &p.signature.sorts.named[*n as usize].constructors;
            let answer = constructors.iter().filter(|c| p.op(**c).flags == 0).any(|c| {
                p.signature
                    .domain_range(p.signature.op(*c).sort)
                    .0
                    .iter()
                    .any(|d| is_unlimited(p, *d, path))
            });
            path.pop();
            answer
        }
        _ => false,
    }
}
