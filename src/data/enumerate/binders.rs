//! Evaluation of quantifiers and comprehensions, by trying the elements of a small sort or by
//! search.
//!
//! A quantifier may contain an unknown of an enclosing search. Then its own variables are
//! eliminated, if no search is needed for that; otherwise it stays unevaluated until the unknown
//! has a value. Comprehensions with such an unknown always stay unevaluated. Cost: that of the
//! search.

use super::SolutionSearch;
use super::eliminate::eliminate;
use super::finite::values_of;
use crate::builtins::compare::builtin_of;
use crate::engine::compile::Program;
use crate::engine::machine::Outcome;
use crate::engine::terms::Terms;
use crate::expr::Binder;
use crate::signature::Builtin;
use crate::sort::{SortKind, basic};
use crate::value::{Closure, Rich, Value};
use mu_base::ids::SortId;
use mu_base::{Diagnostic, Stage};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

/// Limit on the elements of a comprehension that becomes a finite set or bag; beyond it, the
/// comprehension stays unevaluated.
const MAX_COMPREHENSION: usize = 1 << 16;
/// Limit on the cached values of comprehensions without free variables; beyond it, the cache starts
/// anew.
const MAX_CLOSED: usize = 1 << 12;
/// Limits on the tries of unbounded numbers for one unknown of a quantifier, one for each round
/// (`SolutionSearch::span`).
const SPANS: [u64; 3] = [16, 128, u64::MAX];
/// Largest sort over which a quantifier is decided by trying every value.
const MAX_TRIED: usize = 32;

/// Replaces the variables of a binder by new unknowns. Returns the body and the numbers of the
/// unknowns; the caller removes them again.
fn body_of_unknowns<T: Terms>(
    m: &mut T,
    p: &Program,
    closure: &Closure,
) -> (Outcome<Value>, Vec<u32>) {
    let mark = m.mark();
    let variables = closure.lambda.sorts.iter().zip(&closure.lambda.vars);
    let unknowns: Vec<Value> =
        variables.map(|(sort, var)| m.unknowns_mut().fresh(*sort, Some(*var))).collect();
    let wanted = m.unknowns().created_since(mark).collect();
    (m.body(p, closure, &unknowns), wanted)
}

/// Returns the body of an existential condition ([`existence`]) with new unknowns for its
/// variables; the caller removes them again.
pub(super) fn open_body<T: Terms>(m: &mut T, p: &Program, condition: &Value) -> Outcome<Value> {
    let Some(closure) = existence(p, condition) else { return Ok(condition.clone()) };
    let (body, _) = body_of_unknowns(m, p, closure);
    if closure.lambda.binder == Binder::Forall { Ok(m.not(p, body?)) } else { body }
}

/// Returns the conjunction of the bodies of a [`universal`] condition for all elements of its sort.
pub(super) fn for_each_element<T: Terms>(
    m: &mut T,
    p: &Program,
    condition: &Value,
) -> Outcome<Value> {
    let Some(closure) = universal(p, condition) else { return Ok(condition.clone()) };
    let Some(values) = values_of(m, p, closure.lambda.sorts[0], MAX_TRIED)? else {
        return Ok(condition.clone());
    };
    let mut all = Value::Bool(true);
    for v in values.iter() {
        let body = m.body(p, closure, std::slice::from_ref(v))?;
        let body = if closure.lambda.binder == Binder::Exists { m.not(p, body) } else { body };
        all = m.and(p, all, body);
    }
    Ok(all)
}

/// Evaluates a quantifier that contains unknowns of an enclosing search. The result is a condition
/// on these unknowns if its own variables can be eliminated, else the quantifier itself.
fn quantify_open<T: Terms>(m: &mut T, p: &Program, closure: Closure) -> Outcome<Value> {
    if m.is_deep() {
        return Ok(Value::rich(Rich::Closure(closure)));
    }
    let forall = closure.lambda.binder == Binder::Forall;
    let mark = m.mark();
    let (body, wanted) = body_of_unknowns(m, p, &closure);
    let body = body?;
    let condition = if forall { m.not(p, body) } else { body };
    let left = eliminate(m, p, condition, &wanted)?;
    m.undo(mark);
    Ok(match left {
        Some(left) if forall => m.not(p, left),
        Some(left) => left,
        None => Value::rich(Rich::Closure(closure)),
    })
}

/// Evaluates a quantifier. It stays unevaluated if its condition is undecided, or if it contains an
/// unknown of an enclosing search and its variables cannot be eliminated.
pub(crate) fn quantify<T: Terms>(m: &mut T, p: &Program, closure: Closure) -> Outcome<Value> {
    if closure.captures.iter().any(|v| m.unknowns().is_loose(v)) {
        return quantify_open(m, p, closure);
    }
    let forall = closure.lambda.binder == Binder::Forall;
    if let Some(value) = quantify_small(m, p, &closure, forall)? {
        return Ok(value);
    }
    let mark = m.mark();
    let found = m.without_suspension(|m| quantify_by_search(m, p, &closure, forall));
    m.undo(mark);
    Ok(match found? {
        Some(found) => Value::Bool(found != forall),
        None => Value::rich(Rich::Closure(closure)),
    })
}

/// Searches for values that satisfy the body, or refute it (`forall`); `None` if a condition stays
/// undecided.
fn quantify_by_search<T: Terms>(
    m: &mut T,
    p: &Program,
    closure: &Closure,
    forall: bool,
) -> Outcome<Option<bool>> {
    let (body, wanted) = body_of_unknowns(m, p, closure);
    let condition = if forall { m.not(p, body?) } else { body? };
    // Variables that do not occur in the condition need no values, if their sorts are not empty.
    if condition.is_true() {
        return Ok(Some(true));
    }
    let mut stuck = false;
    // Unbounded numbers are tried up to increasing limits, so that one unknown does not starve
    // another.
    for span in SPANS {
        let mut search = SolutionSearch::new(
            relevant(m, &condition, &wanted),
            true,
            true,
            if forall { "a `forall`" } else { "an `exists`" },
        );
        search.span = span;
        let mut found = false;
        let mut each = |_: &mut T, _: &[Value]| {
            found = true;
            Ok(ControlFlow::Break(()))
        };
        match search.run(m, p, condition.clone(), &mut each) {
            Err(e) if e.stage == Stage::Limit || span == u64::MAX => return Err(e),
            Ok(_) if found => return Ok(Some(true)),
            Err(_) => {}
            Ok(_) => {
                stuck = search.lenient == Some(true);
                if !search.cut {
                    break;
                }
            }
        }
        // The search is long: perhaps the variables can be eliminated.
        if span == SPANS[0]
            && let Some(Value::Bool(decided)) = eliminate(m, p, condition.clone(), &wanted)?
        {
            return Ok(Some(decided));
        }
    }
    Ok((!stuck).then_some(false))
}

/// Evaluates a quantifier over one variable of a small finite sort: the body for each value.
fn quantify_small<T: Terms>(
    m: &mut T,
    p: &Program,
    closure: &Closure,
    forall: bool,
) -> Outcome<Option<Value>> {
    let [sort] = closure.lambda.sorts[..] else { return Ok(None) };
    let Some(values) = values_of(m, p, sort, MAX_TRIED)? else { return Ok(None) };
    m.without_suspension(|m| {
        // The conjunction (`forall`) or disjunction of the bodies. Bodies without a value stay in
        // it.
        let mut all = Value::Bool(forall);
        for v in values.iter() {
            let body = m.body(p, closure, std::slice::from_ref(v))?;
            all = match body {
                Value::Bool(b) if b != forall => return Ok(Some(Value::Bool(b))),
                body if forall => m.and(p, all, body),
                body => {
                    let (all, body) = (m.not(p, all), m.not(p, body));
                    let none = m.and(p, all, body);
                    m.not(p, none)
                }
            };
        }
        Ok(Some(all))
    })
}

/// Evaluates a set or bag comprehension: to a finite set or bag if its elements can be enumerated,
/// else to itself.
pub(crate) fn comprehend<T: Terms>(m: &mut T, p: &Program, closure: Closure) -> Outcome<Value> {
    if closure.captures.iter().any(|v| m.unknowns().is_loose(v)) {
        return Ok(Value::rich(Rich::Closure(closure)));
    }
    let closed = closure.captures.is_empty().then(|| closure.lambda.clone());
    if let Some(lambda) = &closed
        && let Some((known, value)) = m.listings().closed.get(&lambda.key)
        && (Arc::ptr_eq(known, lambda) || known == lambda)
    {
        return Ok(value.clone());
    }
    let mark = m.mark();
    let value = m.without_suspension(|m| match closure.lambda.binder {
        Binder::SetComprehension => set_of_solutions(m, p, &closure),
        _ => bag_of_counts(m, p, &closure),
    });
    m.undo(mark);
    let value = value?.unwrap_or_else(|| Value::rich(Rich::Closure(closure)));
    if let Some(lambda) = closed {
        let cache = &mut m.listings().closed;
        if cache.len() >= MAX_CLOSED {
            cache.clear();
        }
        cache.insert(lambda.key, (lambda, value.clone()));
    }
    Ok(value)
}

fn set_of_solutions<T: Terms>(m: &mut T, p: &Program, closure: &Closure) -> Outcome<Option<Value>> {
    let mark = m.mark();
    let (body, wanted) = body_of_unknowns(m, p, closure);
    let mut elements = Vec::new();
    let mut search = SolutionSearch::new(wanted, false, true, "a set comprehension");
    let mut each = |_: &mut T, values: &[Value]| {
        elements.extend(values.iter().cloned());
        Ok(if elements.len() > MAX_COMPREHENSION {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    };
    let flow = search.run(m, p, body?, &mut each);
    m.undo(mark);
    match flow {
        Err(e) if e.stage == Stage::Limit => Err(e),
        Ok(ControlFlow::Continue(())) if search.lenient == Some(false) => {
            Ok(Some(m.set_of(p, closure.lambda.sort, elements)?))
        }
        _ => Ok(None),
    }
}

fn bag_of_counts<T: Terms>(m: &mut T, p: &Program, closure: &Closure) -> Outcome<Option<Value>> {
    let values = match values_of(m, p, closure.lambda.sorts[0], MAX_COMPREHENSION)? {
        Some(values) => values.to_vec(),
        None => match counted_elements(m, p, closure)? {
            Some(values) => values,
            None => return Ok(None),
        },
    };
    let sort = closure.lambda.sort;
    let mut bag = Value::rich(Rich::Bag(sort, Rc::new([])));
    for v in values.iter() {
        let n = m.body(p, closure, std::slice::from_ref(v))?;
        bag = m.bag_add(p, sort, v.clone(), n, bag)?;
    }
    Ok(bag.as_bag().is_some().then_some(bag))
}

/// Returns the elements of an infinite sort that a bag comprehension counts at least once, if they
/// are few.
fn counted_elements<T: Terms>(
    m: &mut T,
    p: &Program,
    closure: &Closure,
) -> Outcome<Option<Vec<Value>>> {
    let mark = m.mark();
    let (body, wanted) = body_of_unknowns(m, p, closure);
    let condition = m.apply_op(p, p.sort(basic::NAT).less, vec![Value::Int(0), body?])?;
    let mut elements = Vec::new();
    let mut search = SolutionSearch::new(wanted, false, true, "a bag comprehension");
    let mut each = |_: &mut T, values: &[Value]| {
        elements.extend(values.iter().cloned());
        Ok(if elements.len() > MAX_COMPREHENSION {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    };
    let flow = search.run(m, p, condition, &mut each);
    m.undo(mark);
    match flow {
        Err(e) if e.stage == Stage::Limit => Err(e),
        Ok(ControlFlow::Continue(())) if search.lenient == Some(false) => {
            elements.sort_unstable();
            elements.dedup();
            Ok(Some(elements))
        }
        _ => Ok(None),
    }
}

/// Decides whether two functions or sets are equal, by a search for values of the unknowns `wanted`
/// that satisfy `differ`. `None` if the search is inconclusive.
pub(crate) fn search_difference<T: Terms>(
    m: &mut T,
    p: &Program,
    wanted: Vec<u32>,
    differ: Value,
    place: &'static str,
) -> Outcome<Option<Value>> {
    let mut different = false;
    let mut search = SolutionSearch::new(wanted, true, true, place);
    search.span = SPANS[1];
    let flow = search.run(m, p, differ, &mut |_, _| {
        different = true;
        Ok(ControlFlow::Break(()))
    });
    Ok(match flow {
        Err(e) if e.stage == Stage::Limit => return Err(e),
        Err(_) => None,
        Ok(_) if different => Some(Value::Bool(false)),
        Ok(_) if search.lenient == Some(true) || search.cut => None,
        Ok(_) => Some(Value::Bool(true)),
    })
}

/// Decides equality of sets or bags that are not both finite: searches for an element in exactly
/// one of the sets, or with different multiplicities in the bags.
pub(crate) fn equal_comprehensions<T: Terms>(
    m: &mut T,
    p: &Program,
    sort: SortId,
    a: &Value,
    b: &Value,
) -> Outcome<Option<Value>> {
    without_element(m, p, sort, [a, b], difference)
}

/// Decides inclusion of sets or bags that are not both finite: searches for an element in the first
/// set only, or with a larger multiplicity in the first bag.
pub(crate) fn included_comprehensions<T: Terms>(
    m: &mut T,
    p: &Program,
    sort: SortId,
    a: &Value,
    b: &Value,
) -> Outcome<Option<Value>> {
    without_element(m, p, sort, [a, b], excess)
}

/// Decides whether no element satisfies a condition on two sets or bags without unknowns. `None` if
/// undecided.
fn without_element<T: Terms>(
    m: &mut T,
    p: &Program,
    sort: SortId,
    [a, b]: [&Value; 2],
    condition: fn(&mut T, &Program, SortId, &Value, [&Value; 2]) -> Outcome<Value>,
) -> Outcome<Option<Value>> {
    let (SortKind::Set(element) | SortKind::Bag(element)) = *p.signature.sorts.kind(sort) else {
        return Ok(None);
    };
    if a.is_open() || b.is_open() {
        return Ok(None);
    }
    let mark = m.mark();
    let x = m.fresh_unknown(element);
    let wanted = m.unknowns().created_since(mark).collect();
    let verdict = condition(m, p, sort, &x, [a, b]).and_then(|differ| {
        if differ.is_false() {
            return Ok(Some(Value::Bool(true)));
        }
        search_difference(m, p, wanted, differ, "a comparison of sets")
    });
    m.undo(mark);
    verdict
}

/// An element in two sets or bags.
enum Occurrences {
    /// The number of times that it is in each bag.
    Counts(Value, Value),
    /// The conditions that it is in each set.
    Members(Value, Value),
}

/// Returns the occurrences of an element in two sets or bags; `None` if they are the same term.
fn occurrences<T: Terms>(
    m: &mut T,
    p: &Program,
    sort: SortId,
    x: &Value,
    [a, b]: [&Value; 2],
) -> Outcome<Option<Occurrences>> {
    let info = *p.sort(sort);
    let (in_a, in_b, of): (_, _, fn(Value, Value) -> Occurrences) = match (info.count, info.member)
    {
        (Some(count), _) => {
            (m.count(p, count, x, a)?, m.count(p, count, x, b)?, Occurrences::Counts)
        }
        (None, Some(member)) => {
            (m.contains(p, member, x, a)?, m.contains(p, member, x, b)?, Occurrences::Members)
        }
        (None, None) => return Err(Box::new(Diagnostic::internal("a set without membership"))),
    };
    Ok((in_a != in_b).then(|| of(in_a, in_b)))
}

/// Returns the condition that an element distinguishes two sets or bags.
fn difference<T: Terms>(
    m: &mut T,
    p: &Program,
    sort: SortId,
    x: &Value,
    both: [&Value; 2],
) -> Outcome<Value> {
    Ok(match occurrences(m, p, sort, x, both)? {
        None => Value::Bool(false),
        Some(Occurrences::Counts(in_a, in_b)) => {
            let same = m.equal(p, basic::NAT, &in_a, &in_b)?;
            m.not(p, same)
        }
        Some(Occurrences::Members(in_a, in_b)) => {
            let (not_a, not_b) = (m.not(p, in_a.clone()), m.not(p, in_b.clone()));
            let (one, other) = (m.and(p, in_a, not_b), m.and(p, not_a, in_b));
            m.or(p, one, other)
        }
    })
}

/// Returns the condition that the first of two sets or bags contains an element that the second one
/// lacks.
fn excess<T: Terms>(
    m: &mut T,
    p: &Program,
    sort: SortId,
    x: &Value,
    both: [&Value; 2],
) -> Outcome<Value> {
    Ok(match occurrences(m, p, sort, x, both)? {
        None => Value::Bool(false),
        Some(Occurrences::Counts(in_a, in_b)) => {
            m.apply_op(p, p.sort(basic::NAT).less, vec![in_b, in_a])?
        }
        Some(Occurrences::Members(in_a, in_b)) => {
            let not_b = m.not(p, in_b);
            m.and(p, in_a, not_b)
        }
    })
}

/// Returns the quantifier of an existential condition: an `exists`, or a negated `forall`.
pub(super) fn existence<'v>(p: &Program, condition: &'v Value) -> Option<&'v Closure> {
    quantifier(p, condition, [Binder::Exists, Binder::Forall])
}

/// Returns the quantifier of a universal condition over one variable: a `forall`, or a negated
/// `exists`.
pub(super) fn universal<'v>(p: &Program, condition: &'v Value) -> Option<&'v Closure> {
    let one = quantifier(p, condition, [Binder::Forall, Binder::Exists])
        .filter(|c| c.lambda.sorts.len() == 1)?;
    let few = |sort: SortId| match p.signature.sorts.kind(sort) {
        SortKind::Bool => true,
        SortKind::Named(n) => {
            let constructors = &p.signature.sorts.named[*n as usize].constructors;
            !constructors.is_empty()
                && constructors.len() <= MAX_TRIED
                && constructors.iter().all(|c| p.op(*c).levels.len() == 1)
        }
        _ => false,
    };
    few(one.lambda.sorts[0]).then_some(one)
}

/// Returns a quantifier by the first binder, or a negated one by the second.
fn quantifier<'v>(
    p: &Program,
    condition: &'v Value,
    [plain, negated]: [Binder; 2],
) -> Option<&'v Closure> {
    let of = |v: &'v Value, binder| v.as_closure().filter(|c| c.lambda.binder == binder);
    of(condition, plain).or_else(|| match builtin_of(p, condition) {
        Some((Builtin::Not, [inner])) => of(inner, negated),
        _ => None,
    })
}

/// Returns the wanted unknowns that occur in a condition.
fn relevant<T: Terms>(m: &T, condition: &Value, wanted: &[u32]) -> Vec<u32> {
    let mut open = Vec::new();
    m.unknowns().collect_unbound(condition, &mut open);
    wanted.iter().copied().filter(|w| open.contains(w)).collect()
}
