//! Candidate witnesses of sorts that are not listed: reals, sets, bags, and functions over infinite
//! sorts.
//!
//! In: a condition. Out: values built from the constants of the condition: reals at, between, and
//! beyond its numbers and their quotients; small sets and bags of its constants; constant
//! functions, and those that differ at one point. A candidate that satisfies the condition proves
//! an existential quantifier; if none does, nothing is known. Cost: a few dozen candidates.

use super::finite::values_of;
use crate::builtins::number;
use crate::engine::compile::Program;
use crate::engine::machine::Outcome;
use crate::engine::terms::Terms;
use crate::sort::{SortKind, basic};
use crate::value::{Rich, Value};
use mu_base::ids::{SortId, VarId};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Zero};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Limit on the parts of a condition that are searched for constants.
const MAX_PARTS: usize = 1 << 12;
/// Limit on the numbers of a condition with quotients as candidates.
const MAX_NUMBERS: usize = 8;
/// Limit on the values of a sort that is listed for its first elements.
const MAX_LISTED: usize = 64;
/// Limit on the elements, counts, arguments, and results of a candidate.
const MAX_ELEMENTS: usize = 6;

/// Returns candidates of a sort for a condition; none if there is no rule for the sort.
pub(super) fn guesses<T: Terms>(
    m: &mut T,
    p: &Program,
    sort: SortId,
    condition: &Value,
) -> Outcome<Vec<Value>> {
    let constants = constants(condition);
    match p.signature.sorts.kind(sort) {
        SortKind::Real => Ok(reals(&constants)),
        SortKind::Set(element) | SortKind::FSet(element) => {
            let elements = elements(m, p, *element, &constants)?;
            let all = || elements.iter().cloned();
            let mut sets = vec![Vec::new(), elements.clone()];
            sets.extend(all().map(|e| vec![e]));
            if elements.len() > 2 {
                sets.extend(elements.iter().map(|e| all().filter(|other| other != e).collect()));
            }
            sets.into_iter().map(|elements| m.set_of(p, sort, elements)).collect()
        }
        SortKind::Bag(element) | SortKind::FBag(element) => {
            let empty = Value::rich(Rich::Bag(sort, Rc::new([])));
            let counts = elements(m, p, basic::POS, &constants)?;
            let mut bags = vec![empty.clone()];
            for element in elements(m, p, *element, &constants)? {
                for count in &counts {
                    bags.push(m.bag_add(p, sort, element.clone(), count.clone(), empty.clone())?);
                }
            }
            Ok(bags)
        }
        SortKind::Function(domain, range) => {
            let (domain, range) = (domain.clone(), *range);
            let results = elements(m, p, range, &constants)?;
            let vars: Vec<VarId> = (0..domain.len()).map(VarId::local).collect();
            let mut functions = Vec::new();
            for result in &results {
                let body = m.to_expr(p, result, range);
                functions.push(m.lambda(p, sort, &vars, body)?);
            }
            if let [key] = domain[..] {
                let keys = elements(m, p, key, &constants)?;
                for (f, own) in functions.clone().into_iter().zip(&results) {
                    for key in &keys {
                        for other in results.iter().filter(|other| *other != own) {
                            let (f, key) = (f.clone(), key.clone());
                            functions.push(m.update_at(p, sort, f, key, other.clone())?);
                        }
                    }
                }
            }
            Ok(functions)
        }
        _ => Ok(Vec::new()),
    }
}

/// Returns the parts of a condition without unknowns.
fn constants(condition: &Value) -> Vec<Value> {
    let (mut pending, mut out, mut seen) = (vec![condition], Vec::new(), 0);
    while let Some(v) = pending.pop() {
        seen += 1;
        if seen > MAX_PARTS {
            break;
        }
        if !v.is_open() && v.is_data() {
            out.push(v.clone());
        }
        v.push_parts(&mut pending);
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// True if the elements of a sort are numbers.
fn is_numeric(sort: SortId) -> bool {
    [basic::POS, basic::NAT, basic::INT, basic::REAL].contains(&sort)
}

/// True if a value certainly belongs to a sort.
fn belongs(p: &Program, v: &Value, sort: SortId) -> bool {
    if v.is_number() {
        return is_numeric(sort) && number::in_sort(v, sort);
    }
    match (v.as_rich(), v.as_app(), v) {
        (Some(Rich::Set(own, _) | Rich::Bag(own, _)), ..) => *own == sort,
        (None, Some((op, args)), _) => {
            let (domain, range) = p.signature.domain_range(p.signature.op(op).sort);
            if args.is_empty() && domain.is_empty() {
                p.signature.op(op).sort == sort
            } else {
                domain.len() == args.len() && range == sort
            }
        }
        (.., Value::Nil(own)) => *own == sort,
        _ => false,
    }
}

/// Returns some elements of a sort: the first ones if they are listed, else constants of it.
fn elements<T: Terms>(
    m: &mut T,
    p: &Program,
    sort: SortId,
    constants: &[Value],
) -> Outcome<Vec<Value>> {
    if let Some(values) = values_of(m, p, sort, MAX_LISTED)? {
        return Ok(values.iter().take(MAX_ELEMENTS).cloned().collect());
    }
    let mut out: Vec<Value> =
        constants.iter().filter(|v| belongs(p, v, sort)).take(MAX_ELEMENTS).cloned().collect();
    for n in [0, 1].map(Value::Int) {
        if belongs(p, &n, sort) && !out.contains(&n) {
            out.push(n);
        }
    }
    Ok(out)
}

/// Returns reals at, between, and beyond some numbers and their quotients.
fn reals(constants: &[Value]) -> Vec<Value> {
    let numbers: Vec<BigRational> =
        constants.iter().filter_map(Value::to_rational).take(MAX_NUMBERS).collect();
    let mut points: BTreeSet<BigRational> = numbers.iter().cloned().collect();
    points.insert(BigRational::zero());
    for x in &numbers {
        for y in numbers.iter().filter(|y| !y.is_zero()) {
            points.insert(x / y);
            points.insert(-(x / y));
        }
    }
    let points: Vec<BigRational> = points.into_iter().collect();
    let two = BigRational::from(BigInt::from(2));
    let mut out = points.clone();
    out.extend(points.windows(2).map(|pair| (&pair[0] + &pair[1]) / &two));
    out.extend(points.first().map(|least| least - BigRational::one()));
    out.extend(points.last().map(|greatest| greatest + BigRational::one()));
    out.into_iter().map(Value::rational).collect()
}
