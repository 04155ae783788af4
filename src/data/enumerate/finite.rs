//! Elements of finite sorts: all constructor terms, sets over a finite sort, functions between
//! finite sorts. Cached per machine.

use crate::engine::compile::Program;
use crate::engine::machine::Outcome;
use crate::engine::terms::Terms;
use crate::expr::{Expr, ExprKind};
use crate::sort::{SortKind, basic};
use crate::value::Value;
use ahash::AHashSet;
use mu_base::Span;
use mu_base::ids::{SortId, VarId};
use std::rc::Rc;

/// Limit on the functions of one listed sort; a larger sort counts as unlistable.
const MAX_FUNCTIONS: usize = 1 << 14;

/// Returns all values of a finite sort, in the order of its constructors; `None` if it is infinite,
/// unknown, or larger than `limit`.
pub(crate) fn values_of<T: Terms>(
    m: &mut T,
    p: &Program,
    sort: SortId,
    limit: usize,
) -> Outcome<Option<Rc<[Value]>>> {
    if let Some(known) = m.listings().values.get(&(sort, limit)) {
        return Ok(known.clone());
    }
    let values: Option<Rc<[Value]>> = if infinite(p, sort, &mut Vec::new()) {
        None
    } else {
        list_values(m, p, sort, limit)?.map(Into::into)
    };
    m.listings().values.insert((sort, limit), values.clone());
    Ok(values)
}

fn list_values<T: Terms>(
    m: &mut T,
    p: &Program,
    sort: SortId,
    limit: usize,
) -> Outcome<Option<Vec<Value>>> {
    let mut out = Vec::new();
    match p.signature.sorts.kind(sort) {
        SortKind::Bool => out = vec![Value::Bool(false), Value::Bool(true)],
        SortKind::Named(n) => {
            let mut free = true;
            for &c in &p.signature.sorts.named[*n as usize].constructors {
                free &= p.op(c).flags == 0;
                let (domain, _) = p.signature.domain_range(p.signature.op(c).sort);
                let mut tuples: Vec<Vec<Value>> = vec![vec![]];
                for d in domain {
                    let Some(values) = values_of(m, p, *d, limit)? else { return Ok(None) };
                    if tuples.len().saturating_mul(values.len()) > limit {
                        return Ok(None);
                    }
                    tuples = tuples
                        .iter()
                        .flat_map(|t| {
                            values
                                .iter()
                                .map(move |v| t.iter().cloned().chain([v.clone()]).collect())
                        })
                        .collect();
                }
                for args in tuples {
                    out.push(m.apply_op(p, c, args)?);
                }
            }
            if !free {
                let mut seen = AHashSet::new();
                out.retain(|v| seen.insert(v.clone()));
            }
        }
        SortKind::FSet(e) | SortKind::Set(e) => {
            let Some(values) = values_of(m, p, *e, 20)? else { return Ok(None) };
            if 1usize << values.len() > limit {
                return Ok(None);
            }
            for subset in 0usize..1 << values.len() {
                let elements = values
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| subset >> i & 1 == 1)
                    .map(|(_, v)| v.clone());
                out.push(m.set_of(p, sort, elements.collect())?);
            }
        }
        SortKind::Function(domain, range) => {
            let (domain, range) = (domain.clone(), *range);
            match list_functions(m, p, sort, &domain, range, limit.min(MAX_FUNCTIONS))? {
                Some(functions) => out = functions,
                None => return Ok(None),
            }
        }
        _ => return Ok(None),
    }
    Ok((out.len() <= limit).then_some(out))
}

/// Lists all functions between finite sorts. A unary function is a table over the constant function
/// to the first value; other functions are a `lambda` that tests one tuple of arguments after the
/// other.
fn list_functions<T: Terms>(
    m: &mut T,
    p: &Program,
    sort: SortId,
    domain: &[SortId],
    range: SortId,
    limit: usize,
) -> Outcome<Option<Vec<Value>>> {
    let Some(results) = values_of(m, p, range, limit)? else { return Ok(None) };
    let mut tuples: Vec<Vec<Value>> = vec![vec![]];
    for d in domain {
        let Some(values) = values_of(m, p, *d, limit)? else { return Ok(None) };
        if tuples.len().saturating_mul(values.len()) > limit {
            return Ok(None);
        }
        tuples = tuples
            .iter()
            .flat_map(|t| {
                values.iter().map(move |v| t.iter().cloned().chain([v.clone()]).collect())
            })
            .collect();
    }
    let count =
        (results.len() as u128).checked_pow(u32::try_from(tuples.len()).unwrap_or(u32::MAX));
    let Some(count) = count.filter(|n| *n <= limit as u128) else { return Ok(None) };
    let vars: Vec<VarId> = (0..domain.len()).map(VarId::local).collect();
    let formals: Vec<Expr> = vars
        .iter()
        .zip(domain)
        .map(|(v, d)| Expr::new(ExprKind::Var(*v), *d, Span::default()))
        .collect();
    let mut out = Vec::with_capacity(count as usize);
    for number in 0..count {
        let mut left = number;
        let mut graph = Vec::with_capacity(tuples.len());
        for tuple in &tuples {
            graph.push((tuple, &results[(left % results.len() as u128) as usize]));
            left /= results.len() as u128;
        }
        let first = |m: &T| m.to_expr(p, &results[0], range);
        if domain.len() == 1 {
            let mut f = m.lambda(p, sort, &vars, first(m))?;
            for (tuple, value) in graph {
                f = m.update_at(p, sort, f, tuple[0].clone(), value.clone())?;
            }
            out.push(f);
            continue;
        }
        let mut body = first(m);
        for (tuple, value) in graph.into_iter().rev().filter(|(_, v)| **v != results[0]) {
            let mut here: Option<Expr> = None;
            for ((formal, d), v) in formals.iter().zip(domain).zip(tuple) {
                let equal = Expr::apply(
                    &p.signature,
                    p.sort(*d).equal,
                    vec![formal.clone(), m.to_expr(p, v, *d)],
                );
                here = Some(match here {
                    None => equal,
                    Some(before) => Expr::apply(&p.signature, p.and, vec![before, equal]),
                });
            }
            let value = m.to_expr(p, value, range);
            let here = here.unwrap_or_else(|| {
                Expr::new(ExprKind::Op(p.truth.0), basic::BOOL, Span::default())
            });
            body = Expr::apply(&p.signature, p.sort(range).cond, vec![here, value, body]);
        }
        out.push(m.lambda(p, sort, &vars, body)?);
    }
    Ok(Some(out))
}

/// Returns a lower bound of the number of elements of a sort that [`values_of`] does not list with
/// a limit of at least [`MAX_FUNCTIONS`].
pub(crate) fn least_size(p: &Program, sort: SortId) -> usize {
    if has_unknown_size(p, sort, &mut Vec::new()) {
        1
    } else if infinite(p, sort, &mut Vec::new()) {
        usize::MAX
    } else {
        MAX_FUNCTIONS
    }
}

/// True if a sort without constructors, of any number of elements, occurs in a sort.
fn has_unknown_size(p: &Program, sort: SortId, path: &mut Vec<SortId>) -> bool {
    if path.contains(&sort) {
        return false;
    }
    path.push(sort);
    let answer = match p.signature.sorts.kind(sort) {
        SortKind::Bool | SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real => false,
        // Lists and bags over any sort are infinitely many.
        SortKind::List(_) | SortKind::Bag(_) | SortKind::FBag(_) => false,
        SortKind::Set(e) | SortKind::FSet(e) => has_unknown_size(p, *e, path),
        SortKind::Function(domain, range) => {
            // There is one function to a sort with one element.
            is_single(p, *range)
                || has_unknown_size(p, *range, path)
                || domain.iter().any(|d| has_unknown_size(p, *d, path))
        }
        SortKind::Named(n) => {
            let constructors = &p.signature.sorts.named[*n as usize].constructors;
            constructors.is_empty()
                || constructors.iter().any(|c| {
                    p.op(*c).flags != 0
                        || p.signature
                            .domain_range(p.signature.op(*c).sort)
                            .0
                            .iter()
                            .any(|d| has_unknown_size(p, *d, path))
                })
        }
    };
    path.pop();
    answer
}

/// True if a sort has one constructor, with arguments of such sorts only.
fn is_single(p: &Program, sort: SortId) -> bool {
    match p.signature.sorts.kind(sort) {
        SortKind::Named(n) => match p.signature.sorts.named[*n as usize].constructors[..] {
            [c] => {
                let domain = p.signature.domain_range(p.signature.op(c).sort).0;
                domain.iter().all(|d| *d != sort && is_single(p, *d))
            }
            _ => false,
        },
        SortKind::Function(_, range) => is_single(p, *range),
        _ => false,
    }
}

/// True if a sort has infinitely many elements, or elements that cannot be listed.
pub(super) fn infinite(p: &Program, sort: SortId, path: &mut Vec<SortId>) -> bool {
    match p.signature.sorts.kind(sort) {
        SortKind::Bool => false,
        SortKind::Named(n) => {
            let constructors = &p.signature.sorts.named[*n as usize].constructors;
            if constructors.is_empty() || path.contains(&sort) {
                return true;
            }
            path.push(sort);
            let answer = constructors.iter().any(|c| {
                p.signature
                    .domain_range(p.signature.op(*c).sort)
                    .0
                    .iter()
                    .any(|d| infinite(p, *d, path))
            });
            path.pop();
            answer
        }
        SortKind::FSet(e) | SortKind::Set(e) => infinite(p, *e, path),
        SortKind::Function(domain, range) => {
            infinite(p, *range, path) || domain.iter().any(|d| infinite(p, *d, path))
        }
        _ => true,
    }
}
