//! Case splits on functions with conditional equations: bounds that only the equations imply.
//!
//! `sum n: Nat. at(b, n) == empty -> …` has a bound if the equations of `at` have:
//! `0 <= n && n < N -> at(b, n) = …` and `n >= N -> at(b, n) = invalid`. If an unknown decides the
//! equation for a call, the call is replaced by the right-hand sides, case by case. Each case
//! assumes the condition of its equation and that earlier equations do not match. If no equation
//! covers a case, the call stays there. An undecided `if` is treated alike.
//!
//! Done only if the search has no better choice, and to a limited depth, since functions may be
//! recursive. Cost: one evaluation of each condition and right-hand side, and of the whole
//! condition for each case. The cases exclude each other, so they produce no solution twice.
//! Compare narrowing with conditional rules (Hanus, 1994).

use super::bounds::{Bounds, bounds};
use super::{SolutionSearch, conjuncts, one_point};
use crate::builtins::compare::builtin_of;
use crate::engine::cases::user_function;
use crate::engine::compile::Program;
use crate::engine::machine::Outcome;
use crate::engine::terms::{Cases, Terms};
use crate::signature::Builtin;
use crate::value::Value;
use mu_base::Stage;

/// Limit on splits on one path of a search; beyond it, there are no more.
const MAX_SPLITS: usize = 8;
/// Limit on the calls examined for one split.
const MAX_CALLS: usize = 32;
/// Limit on the nodes of a condition visited to find them.
const MAX_NODES: usize = 1 << 12;

/// Call with its cases: conditions with the values of the call; `None` if it stays unevaluated.
pub(super) struct Split {
    pub call: Value,
    pub cases: Cases,
}

/// Returns a call in some conjuncts to split; preferably one with a first case that bounds an
/// unbounded unknown.
pub(super) fn split<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &SolutionSearch,
    open: &[u32],
    parts: &[&Value],
    known: &[Bounds],
) -> Outcome<Option<Split>> {
    if s.splits.len() >= MAX_SPLITS {
        return Ok(None);
    }
    let mut first = None;
    for call in calls(p, parts) {
        if s.splits.contains(&call) {
            continue;
        }
        let cases = match m.cases(p, &call) {
            Err(e) if e.stage == Stage::Limit => return Err(e),
            // An undefined or nonterminating call has no cases; the search ignores it.
            Err(_) | Ok(None) => continue,
            Ok(Some(cases)) => cases,
        };
        let mut given = Vec::new();
        if let Some((condition, _)) = cases.first() {
            conjuncts(p, condition, &mut given);
        }
        let bounded = one_point(m, p, &given, &|u| open.contains(&u)).is_some()
            || bounds(m, p, open, &given)
                .iter()
                .zip(known)
                .any(|(new, old)| new.1.is_some() && old.1.is_none());
        if bounded {
            return Ok(Some(Split { call, cases }));
        }
        first.get_or_insert(Split { call, cases });
    }
    Ok(first)
}

/// Returns the open calls in some values, outermost first.
fn calls(p: &Program, parts: &[&Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut work: Vec<&Value> = parts.iter().rev().copied().collect();
    let mut nodes = 0;
    while let Some(v) = work.pop() {
        nodes += 1;
        if nodes > MAX_NODES || out.len() >= MAX_CALLS {
            break;
        }
        if !v.is_open() {
            continue;
        }
        if let Some((_, args)) = v.as_app() {
            let splits = matches!(builtin_of(p, v), Some((Builtin::If, [_, _, _])))
                || user_function(p, v).is_some();
            if splits && !out.contains(v) {
                out.push(v.clone());
            }
            work.extend(args.iter().rev());
        }
    }
    out
}
