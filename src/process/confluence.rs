//! Static confluence analysis of tau summands.
//!
//! In: a linear process. Out: a flag for each summand that is true if its steps are proven
//! confluent and may take priority. After Groote, van de Pol, "State Space Reduction using Partial
//! tau-Confluence" (MFCS 2000). They use a prover; this analysis uses syntactic conditions:
//!
//! - a candidate is a tau summand that is deterministic because the source has no `sum` around the
//!   action;
//! - against every other summand it must be *exclusive* (both guards fix one parameter, to
//!   different constructor values) or *independent* (neither changes a parameter that the other
//!   uses or changes).
//!
//! Independent steps commute; exclusive steps are never enabled together. Both are sufficient, not
//! necessary: guards are not evaluated, and two guards that fix a *term* (such as `head(l)`) to
//! different values count as undecided.
//!
//! [`commuting_summands`] is sharper; its state counts differ from those of published studies. A
//! summand is deterministic if it has no sum variables. Guards are exclusive if they fix one term
//! to different values, or require a condition and its negation. Steps other than tau may be
//! candidates too. Cost: summands squared, on bit sets.

use crate::linear::{LinearProcess, Summand};
use ahash::{AHashMap, AHashSet};
use fixedbitset::FixedBitSet;
use mu_base::ids::{SortId, VarId};
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::{Builtin, OpKind, Signature};

/// True if an expression consists of constructors and numbers only, so that different expressions
/// are different values. False if it has parts of sorts in `special`, for which equations define
/// equality.
fn is_constructor_term(signature: &Signature, special: &AHashSet<SortId>, e: &Expr) -> bool {
    if special.contains(&e.sort) {
        return false;
    }
    match &e.kind {
        ExprKind::Number(_) => true,
        ExprKind::Op(op) => matches!(
            signature.op(*op).kind,
            OpKind::Constructor(_) | OpKind::Builtin(Builtin::True | Builtin::False)
        ),
        ExprKind::Apply(head, args) => {
            is_constructor_term(signature, special, head)
                && args.iter().all(|a| is_constructor_term(signature, special, a))
        }
        _ => false,
    }
}

/// Returns variable and term if a conjunct has the form `variable == constructor term`, in either
/// order, or is a Bool variable. `special`: see
/// [`DataSpec::special_sorts`](mu_data::expr::DataSpec::special_sorts).
pub fn fixes(
    signature: &mut Signature,
    special: &AHashSet<SortId>,
    conjunct: &Expr,
) -> Option<(VarId, Expr)> {
    if let ExprKind::Var(v) = conjunct.kind {
        return Some((v, Expr::boolean(signature, true)));
    }
    match conjunct.as_builtin(signature)? {
        (Builtin::Equal, [a, b]) => {
            for (x, k) in [(a, b), (b, a)] {
                if let ExprKind::Var(v) = x.kind
                    && is_constructor_term(signature, special, k)
                {
                    return Some((v, k.clone()));
                }
            }
            None
        }
        (Builtin::Not, [a]) => match a.kind {
            ExprKind::Var(v) => Some((v, Expr::boolean(signature, false))),
            _ => None,
        },
        _ => None,
    }
}

struct Footprint {
    /// Terms with the values that the guard requires; parameters only, unless the analysis is
    /// sharp.
    fixed: AHashMap<Expr, Expr>,
    uses: FixedBitSet,
    changes: FixedBitSet,
}

/// Returns the term that a conjunct fixes, and its value. Every conjunct has the value true; an
/// equation with a constructor term fixes its other side.
fn required_value(
    signature: &mut Signature,
    special: &AHashSet<SortId>,
    conjunct: &Expr,
) -> (Expr, Expr) {
    match conjunct.as_builtin(signature) {
        Some((Builtin::Equal, [a, b])) if is_constructor_term(signature, special, b) => {
            (a.clone(), b.clone())
        }
        Some((Builtin::Equal, [a, b])) if is_constructor_term(signature, special, a) => {
            (b.clone(), a.clone())
        }
        Some((Builtin::Not, [a])) => (a.clone(), Expr::boolean(signature, false)),
        _ => (conjunct.clone(), Expr::boolean(signature, true)),
    }
}

fn footprint(
    process: &mut LinearProcess,
    special: &AHashSet<SortId>,
    index: &AHashMap<VarId, usize>,
    summand: usize,
    sharp: bool,
) -> Footprint {
    let s: &Summand = &process.summands[summand];
    let mut vars = Vec::new();
    s.guard.free_vars(&mut vars);
    s.actions.iter().flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut vars));
    s.updates.iter().for_each(|(_, e)| e.free_vars(&mut vars));
    let n = process.params.len();
    let mut uses = FixedBitSet::with_capacity(n);
    uses.extend(vars.iter().filter_map(|v| index.get(v).copied()));
    let mut changes = FixedBitSet::with_capacity(n);
    changes.extend(s.updates.iter().map(|u| u.0));
    let guard = s.guard.clone();
    let mut fixed = AHashMap::new();
    for c in guard.conjuncts(&process.data.signature) {
        let signature = &mut process.data.signature;
        if let Some((v, k)) = fixes(signature, special, &c)
            && index.contains_key(&v)
        {
            fixed.entry(Expr::var(signature, v)).or_insert(k);
        } else if sharp && is_closed(&c, index) {
            fixed.insert(c.clone(), Expr::boolean(signature, true));
            let (term, value) = required_value(signature, special, &c);
            fixed.entry(term).or_insert(value);
        }
    }
    Footprint { fixed, uses, changes }
}

/// True if only parameters occur: a sum variable of one summand is not that of another.
fn is_closed(e: &Expr, index: &AHashMap<VarId, usize>) -> bool {
    let mut vars = Vec::new();
    e.free_vars(&mut vars);
    vars.iter().all(|v| index.contains_key(v))
}

/// Returns for each summand whether it is a tau summand that is proven confluent.
pub fn confluent_summands(process: &mut LinearProcess) -> Vec<bool> {
    prove_confluence(process, false, &|s| s.actions.is_empty() && !s.had_sum)
}

/// Returns for each summand whether its steps are proven to commute with all others, by the sharper
/// analysis. Candidates are tau summands and those that `also` selects.
pub fn commuting_summands(
    process: &mut LinearProcess,
    also: &dyn Fn(&Summand) -> bool,
) -> Vec<bool> {
    prove_confluence(process, true, &|s| s.actions.is_empty() || also(s))
}

fn prove_confluence(
    process: &mut LinearProcess,
    sharp: bool,
    is_candidate: &dyn Fn(&Summand) -> bool,
) -> Vec<bool> {
    // Probabilistic choices and times are not analysed: such summands are never candidates.
    if process.is_probabilistic() || process.is_timed() {
        return vec![false; process.summands.len()];
    }
    let special = process.data.special_sorts();
    let index: AHashMap<VarId, usize> =
        process.params.iter().enumerate().map(|(i, p)| (p.var, i)).collect();
    let footprints: Vec<Footprint> = (0..process.summands.len())
        .map(|s| footprint(process, &special, &index, s, sharp))
        .collect();
    (process.summands.iter().enumerate())
        .map(|(i, s)| {
            let f = &footprints[i];
            is_candidate(s)
                && s.sum_vars.is_empty()
                && footprints.iter().enumerate().all(|(j, g)| {
                    i == j
                        || f.fixed.iter().any(|(v, k)| g.fixed.get(v).is_some_and(|l| l != k))
                        || (f.changes.is_disjoint(&g.uses)
                            && f.changes.is_disjoint(&g.changes)
                            && g.changes.is_disjoint(&f.uses))
                })
        })
        .collect()
}
