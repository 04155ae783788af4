//! Cases of a function whose equations have conditions: bounds that only its equations imply.
//!
//! `sum n: Nat. at(b, n) == empty -> …` has a bound where the equations of `at` have: `0 <= n && n
//! < N -> at(b, n) = …` and `n >= N -> at(b, n) = invalid`. A call that cannot be evaluated, since
//! an unknown decides which equation fits, is replaced by what the equations say, case by case;
//! each case assumes the condition of its equation and that those before it do not fit. What no
//! equation covers is a case as well, in which the call stays. An undecided `if` is treated alike.
//!
//! Done only where the search has nothing better to branch on, and to a limited depth, since
//! functions may be recursive. Cost: one evaluation of each condition and right-hand side, and of
//! the whole condition for each case. The cases exclude each other, so no solution comes twice by
//! them. Compare narrowing with conditional rules (Hanus, 1994).

use super::bounds::{Bounds, bounds};
use super::{Search, conjuncts, one_point};
use crate::builtins::compare::builtin_of;
use crate::engine::cases::user_function;
use crate::engine::compile::Program;
use crate::engine::machine::Outcome;
use crate::engine::terms::{Cases, Terms};
use crate::signature::Builtin;
use crate::value::Value;
use mu_base::Stage;

/// Splits on one path of a search.
const MAX_SPLITS: usize = 8;
/// Calls that are looked at for one split.
const MAX_CALLS: usize = 32;
/// Nodes of a condition that are looked at to find them.
const MAX_NODES: usize = 1 << 12;

/// A call with its cases: the condition, and what the call is under it; nothing if it stays.
pub(super) struct Split {
    pub call: Value,
    pub cases: Cases,
}

/// A call in some conjuncts to split; one whose first case bounds an unknown that has no bound yet,
/// if there is one.
pub(super) fn split<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &Search,
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
            // What has no value, or no end, tells no cases; the search goes on as if it were not
            // there.
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

/// Open calls in some values, outermost first.
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
