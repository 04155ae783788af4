//! Branches of a search: for each choice, the condition with one more assumption.
//!
//! Invariant: branches exclude each other, except for disjunctions and `exists`, after which
//! repeated solutions are dropped (`SolutionSearch::seen`). Unknowns of a branch are removed after
//! it. Cost: one evaluation of the remaining condition for each branch.

use super::super::builtins::compare::builtin_of;
use super::super::engine::compile::Program;
use super::super::engine::machine::Outcome;
use super::super::engine::terms::Terms;
use super::super::signature::Builtin;
use super::super::value::Value;
use super::binders::{for_each_element, open_body};
use super::cases::Split;
use super::guesses::guesses;
use super::{
    Each, MAX_GROWING, SolutionSearch, VariableChoice, conjuncts, finite, unbounded_error,
};
use ahash::AHashSet;
use mu_base::ids::{OpId, SortId};
use std::ops::ControlFlow;

/// Returns the `i`th integer within half-open bounds, nearest to a bound or to zero first.
fn upwards(low: Option<i64>, high: Option<i64>, i: i64) -> i64 {
    match (low, high) {
        (Some(low), _) => low.saturating_add(i),
        (None, Some(high)) => high.saturating_sub(i),
        (None, None) if i % 2 == 0 => -(i / 2),
        (None, None) => i / 2 + 1,
    }
}

/// Continues the search under each option of a choice.
pub(super) fn branch<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &mut SolutionSearch,
    choice: VariableChoice,
    rest: &Value,
    each: &mut Each<T>,
) -> Outcome<ControlFlow<()>> {
    match choice {
        VariableChoice::Bool(u) => {
            branch_values(m, p, s, u, &[Value::Bool(true), Value::Bool(false)], rest, each)
        }
        VariableChoice::Values(u, values) => branch_values(m, p, s, u, &values, rest, each),
        VariableChoice::Interval(u, low, high) => {
            for n in low..=high {
                count_growth(m, p, s, u, rest, 64)?;
                if bind(m, p, s, u, Value::Int(n), rest, each)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        }
        VariableChoice::Upwards(u, low, high) => {
            let mut i = 0i64;
            while (i as u64) < s.span {
                count_growth(m, p, s, u, rest, 1)?;
                if bind(m, p, s, u, Value::Int(upwards(low, high, i)), rest, each)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                i += 1;
            }
            s.cut = true;
            Ok(ControlFlow::Continue(()))
        }
        VariableChoice::Constructors(u, constructors) => {
            branch_constructors(m, p, s, u, &constructors, rest, each)
        }
        VariableChoice::List(u, element) => branch_list(m, p, s, u, element, rest, each),
        VariableChoice::Member(part, element, sort, candidates) => {
            let others = remove_conjuncts(m, p, rest, &|other| *other == part);
            for candidate in candidates {
                let equal = m.equal(p, sort, &element, &candidate)?;
                // The conjunct itself may stay open although the equation is decided, and be chosen
                // again forever.
                let decided = with_element(m, p, &part, &element, &candidate)?;
                let condition = m.and(p, decided, others.clone());
                let condition = m.and(p, equal, condition);
                if s.run(m, p, condition, each)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        }
        VariableChoice::Guess(u) => {
            let candidates = guesses(m, p, m.unknowns().sort(u), rest)?;
            let flow = branch_values(m, p, s, u, &candidates, rest, each)?;
            // There are other values.
            if flow.is_break() { Ok(flow) } else { Err(unbounded_error(m, p, s, &[u], rest)) }
        }
        VariableChoice::Cases(split) => branch_cases(m, p, s, split, rest, each),
        VariableChoice::Everywhere(part) => {
            let others = remove_conjuncts(m, p, rest, &|other| *other == part);
            let all = for_each_element(m, p, &part)?;
            let condition = m.and(p, others, all);
            s.run(m, p, condition, each)
        }
        VariableChoice::Witness(part) => branch_witness(m, p, s, &part, rest, each),
        VariableChoice::Either(a, b) => branch_either(m, p, s, [&a, &b], rest, each),
    }
}

/// Replaces the element in a membership conjunct by a candidate.
fn with_element<T: Terms>(
    m: &mut T,
    p: &Program,
    part: &Value,
    element: &Value,
    candidate: &Value,
) -> Outcome<Value> {
    if part == element {
        return Ok(candidate.clone());
    }
    let Some((op, args)) = part.as_app().filter(|_| part.is_open()) else {
        return Ok(part.clone());
    };
    let args: Outcome<Vec<Value>> =
        args.to_vec().iter().map(|arg| with_element(m, p, arg, element, candidate)).collect();
    m.apply_op(p, op, args?)
}

fn branch_values<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &mut SolutionSearch,
    u: u32,
    values: &[Value],
    rest: &Value,
    each: &mut Each<T>,
) -> Outcome<ControlFlow<()>> {
    for v in values {
        if bind(m, p, s, u, v.clone(), rest, each)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn branch_constructors<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &mut SolutionSearch,
    u: u32,
    constructors: &[OpId],
    rest: &Value,
    each: &mut Each<T>,
) -> Outcome<ControlFlow<()>> {
    let mark = m.mark();
    let growing = is_recursive(m, p, m.unknowns().sort(u));
    for &c in constructors {
        if growing {
            count_growth(m, p, s, u, rest, 1)?;
        }
        let (domain, _) = p.signature.domain_range(p.signature.op(c).sort);
        let args: Vec<Value> = domain.iter().map(|&d| m.fresh_unknown(d)).collect();
        if p.op(c).flags != 0 && s.seen.is_none() {
            s.seen = Some(AHashSet::new());
        }
        let v = if p.op(c).flags == 0 && !args.is_empty() {
            Value::app(c, 0, args)
        } else {
            m.apply_op(p, c, args)?
        };
        s.growing += u32::from(growing);
        let flow = bind(m, p, s, u, v, rest, each);
        s.growing -= u32::from(growing);
        m.undo(mark);
        if flow?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn branch_list<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &mut SolutionSearch,
    u: u32,
    element: SortId,
    rest: &Value,
    each: &mut Each<T>,
) -> Outcome<ControlFlow<()>> {
    count_growth(m, p, s, u, rest, 1)?;
    let sort = m.unknowns().sort(u);
    if bind(m, p, s, u, Value::Nil(sort), rest, each)?.is_break() {
        return Ok(ControlFlow::Break(()));
    }
    let mark = m.mark();
    let (head, tail) = (m.fresh_unknown(element), m.fresh_unknown(sort));
    s.growing += 1;
    let flow = bind(m, p, s, u, Value::cons(head, tail), rest, each);
    s.growing -= 1;
    m.undo(mark);
    flow
}

fn branch_cases<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &mut SolutionSearch,
    split: Split,
    rest: &Value,
    each: &mut Each<T>,
) -> Outcome<ControlFlow<()>> {
    let Split { call, cases } = split;
    s.splits.push(call.clone());
    for (given, value) in cases {
        let rest = match value {
            Some(value) => m.with_assumption(&call, value, |m| reevaluate_condition(m, p, rest))?,
            None => rest.clone(),
        };
        let condition = m.and(p, given, rest);
        if s.run(m, p, condition, each)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    s.splits.pop();
    Ok(ControlFlow::Continue(()))
}

fn branch_witness<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &mut SolutionSearch,
    part: &Value,
    rest: &Value,
    each: &mut Each<T>,
) -> Outcome<ControlFlow<()>> {
    s.seen.get_or_insert_default();
    let others = remove_conjuncts(m, p, rest, &|other| other == part);
    let mark = m.mark();
    let body = open_body(m, p, part)?;
    let condition = m.and(p, others, body);
    s.witnesses += 1;
    let flow = s.run(m, p, condition, each);
    s.witnesses -= 1;
    m.undo(mark);
    flow
}

fn branch_either<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &mut SolutionSearch,
    sides: [&Value; 2],
    rest: &Value,
    each: &mut Each<T>,
) -> Outcome<ControlFlow<()>> {
    s.seen.get_or_insert_default();
    // The disjunction itself becomes true when its chosen side is assumed.
    let others = remove_conjuncts(
        m,
        p,
        rest,
        &|part| matches!(builtin_of(p, part), Some((Builtin::Or, [x, y])) if x == sides[0] && y == sides[1]),
    );
    let first = s.whole.is_none();
    s.whole.get_or_insert_with(|| rest.clone());
    for side in sides {
        let side = m.reevaluate(p, side)?;
        let condition = m.and(p, side, others.clone());
        if s.run(m, p, condition, each)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    if first {
        s.whole = None;
    }
    Ok(ControlFlow::Continue(()))
}

/// Returns the conjuncts except those that satisfy `those`.
fn remove_conjuncts<T: Terms>(
    m: &mut T,
    p: &Program,
    rest: &Value,
    those: &dyn Fn(&Value) -> bool,
) -> Value {
    let mut parts = Vec::new();
    conjuncts(p, rest, &mut parts);
    let mut all = Value::Bool(true);
    for part in parts {
        if !those(part) {
            all = m.and(p, all, part.clone());
        }
    }
    all
}

/// Re-evaluates a condition: each conjunct is evaluated as if it stood alone, independent of open
/// ones before it.
pub(super) fn reevaluate_condition<T: Terms>(
    m: &mut T,
    p: &Program,
    condition: &Value,
) -> Outcome<Value> {
    let mut parts = Vec::new();
    conjuncts(p, condition, &mut parts);
    let mut all = Value::Bool(true);
    for part in parts {
        let part = m.reevaluate(p, part)?;
        if part.is_false() {
            return Ok(part);
        }
        all = m.and(p, all, part);
    }
    Ok(all)
}

fn bind<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &mut SolutionSearch,
    u: u32,
    v: Value,
    rest: &Value,
    each: &mut Each<T>,
) -> Outcome<ControlFlow<()>> {
    let mark = m.mark();
    m.unknowns_mut().bind(u, v);
    let result = reevaluate_condition(m, p, rest).and_then(|rest| s.run(m, p, rest, each));
    m.undo(mark);
    result
}

fn count_growth<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &mut SolutionSearch,
    u: u32,
    rest: &Value,
    allowance: u64,
) -> Outcome<()> {
    s.grown += 1;
    if s.grown > m.listings().growth_limit.saturating_mul(allowance) || s.growing > MAX_GROWING {
        let e = unbounded_error(m, p, s, &[u], rest);
        return Err(Box::new(e.note(format!("gave up after {} candidates", s.grown - 1))));
    }
    Ok(())
}

/// True if terms of a sort can grow without bound.
pub(super) fn is_recursive<T: Terms>(m: &mut T, p: &Program, sort: SortId) -> bool {
    if let Some(&known) = m.listings().recursive.get(&sort) {
        return known;
    }
    let mut path = Vec::new();
    let answer = finite::infinite(p, sort, &mut path);
    m.listings().recursive.insert(sort, answer);
    answer
}
