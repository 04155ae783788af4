//! Ranking measures: steps that no run takes infinitely often, because they increase a counter
//! below a bound.
//!
//! Input: a linear process over symbolic parameters. Output: its [`Measure`]s. Each has a parameter
//! that some summands increase by a literal while it is below a constant, and a control location.
//! Consider the values of the control location as a graph with the summands as edges: every cycle
//! with an increasing summand contains no summand that changes the parameter otherwise. If a run
//! took increasing summands infinitely often, its control location would eventually stay in one
//! strongly connected component of that graph. Only increases change the counter there, and it is
//! below its bound at each of them, which is a contradiction. Cost: summands times control values.
//! Invariant: each infinite run of the process, for each value of the constants, has a suffix
//! without steps of the summands of a measure.

use crate::symbolic_constants::SymbolicConstant;
use ahash::AHashMap;
use mu_base::ids::VarId;
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::{Builtin, Signature};
use mu_process::linear::{LinearProcess, ParamRole};

/// A counter that some summands increase, but that no run increases infinitely often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Index of the parameter.
    pub param: usize,
    /// The summands that increase it.
    pub summands: Vec<usize>,
    /// The bound that it is below when it is increased, as an expression of the process.
    pub bound: Expr,
}

/// Returns the literal that an expression adds to a parameter; 0 if it is the parameter.
fn added_literal(signature: &Signature, e: &Expr, var: VarId) -> Option<i64> {
    use num_traits::ToPrimitive;
    let literal = |e: &Expr| {
        let mut e = e;
        while let Some((Builtin::PosToNat | Builtin::PosToInt | Builtin::NatToInt, [inner])) =
            e.as_builtin(signature)
        {
            e = inner;
        }
        match &e.kind {
            ExprKind::Number(n) => n.to_i64().filter(|n| *n >= 0),
            _ => None,
        }
    };
    match &e.kind {
        ExprKind::Var(v) if *v == var => Some(0),
        _ => match e.as_builtin(signature)? {
            (Builtin::PosToNat | Builtin::PosToInt | Builtin::NatToInt, [a]) => {
                added_literal(signature, a, var)
            }
            (Builtin::Succ, [a]) => added_literal(signature, a, var).map(|n| n + 1),
            (Builtin::Add, [a, b]) => match (literal(a), literal(b)) {
                (_, Some(n)) => added_literal(signature, a, var).map(|m| m + n),
                (Some(n), _) => added_literal(signature, b, var).map(|m| m + n),
                _ => None,
            },
            _ => None,
        },
    }
}

/// True if an expression consists of literals and symbolic constants.
fn is_bound(e: &Expr, rigid: &[SymbolicConstant]) -> bool {
    let mut free = Vec::new();
    e.free_vars(&mut free);
    free.iter().all(|v| rigid.iter().any(|r| r.var == *v))
}

/// Returns the bound that a condition implies for a parameter (below, or not above), if there is
/// one.
fn implied_bound(
    signature: &Signature,
    guard: &Expr,
    var: VarId,
    rigid: &[SymbolicConstant],
) -> Option<Expr> {
    guard.conjuncts(signature).iter().find_map(|c| {
        let (builtin, args) = c.as_builtin(signature)?;
        let (low, high) = match (builtin, args) {
            (Builtin::Less | Builtin::LessEqual, [a, b]) => (a, b),
            (Builtin::Greater | Builtin::GreaterEqual, [a, b]) => (b, a),
            (Builtin::Not, [inner]) => match inner.as_builtin(signature)? {
                (Builtin::Less | Builtin::LessEqual, [a, b]) => (b, a),
                (Builtin::Greater | Builtin::GreaterEqual, [a, b]) => (a, b),
                _ => return None,
            },
            _ => return None,
        };
        (added_literal(signature, low, var).is_some() && is_bound(high, rigid))
            .then(|| high.clone())
    })
}

/// Returns the value that a condition requires of a parameter.
fn required_value(signature: &Signature, guard: &Expr, var: VarId) -> Option<Expr> {
    guard.conjuncts(signature).iter().find_map(|c| match c.as_builtin(signature)? {
        (Builtin::Equal, [a, b])
            if matches!(a.kind, ExprKind::Var(v) if v == var) && b.is_closed() =>
        {
            Some(b.clone())
        }
        (Builtin::Equal, [b, a])
            if matches!(a.kind, ExprKind::Var(v) if v == var) && b.is_closed() =>
        {
            Some(b.clone())
        }
        _ => None,
    })
}

/// The effect of a summand on a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NumberChange {
    /// It increases it, and only below this bound, which is constant in a run.
    Up(Expr),
    /// It increases it or leaves it unchanged.
    Grows,
    /// Any change.
    Other,
}

/// Returns the effect of a summand on a parameter.
pub(crate) fn change(
    process: &LinearProcess,
    rigid: &[SymbolicConstant],
    summand: usize,
    param: usize,
) -> NumberChange {
    let (signature, var) = (&process.data.signature, process.params[param].var);
    let summand = &process.summands[summand];
    let Some((_, e)) = summand.updates.iter().find(|u| u.0 == param) else {
        return NumberChange::Grows;
    };
    match (added_literal(signature, e, var), implied_bound(signature, &summand.guard, var, rigid)) {
        (Some(0), _) | (Some(_), None) => NumberChange::Grows,
        (Some(_), Some(b)) => NumberChange::Up(b),
        (None, _) => NumberChange::Other,
    }
}

/// Computes all measures.
pub fn measures(process: &LinearProcess, rigid: &[SymbolicConstant]) -> Vec<Measure> {
    let mut found = Vec::new();
    for p in 0..process.params.len() {
        if rigid.iter().any(|r| r.param == p) {
            continue;
        }
        let (mut up, mut other, mut limit) = (Vec::new(), Vec::new(), None);
        for (i, summand) in process.summands.iter().enumerate() {
            if !summand.updates.iter().any(|u| u.0 == p) {
                continue;
            }
            match change(process, rigid, i, p) {
                NumberChange::Up(b) => {
                    up.push(i);
                    limit = Some(b);
                }
                // It grows, but not below a bound, which never undoes an increase.
                NumberChange::Grows => {}
                NumberChange::Other => other.push(i),
            }
        }
        let Some(limit) = limit else { continue };
        let is_separated = |c: usize| is_separated(process, c, &up, &other);
        let controls = process
            .params
            .iter()
            .enumerate()
            .filter(|(_, q)| matches!(q.role, ParamRole::Control(_)));
        if other.is_empty() || controls.map(|(c, _)| c).any(is_separated) {
            found.push(Measure { param: p, summands: up, bound: limit });
        }
    }
    found
}

/// True if no strongly connected component of the graph of a control location's values has summands
/// of both lists.
fn is_separated(process: &LinearProcess, control: usize, up: &[usize], other: &[usize]) -> bool {
    let signature = &process.data.signature;
    let var = process.params[control].var;
    let mut nodes: AHashMap<Expr, usize> = AHashMap::new();
    // For each summand: its source (`None`: any) and its target (`None`: unchanged).
    let mut edges: Vec<(Option<usize>, Option<usize>)> = Vec::new();
    for summand in &process.summands {
        let mut number = |e: Expr| {
            let next = nodes.len();
            *nodes.entry(e).or_insert(next)
        };
        let from = required_value(signature, &summand.guard, var).map(&mut number);
        let to = match summand.updates.iter().find(|u| u.0 == control) {
            None => None,
            Some((_, e)) if e.is_closed() => Some(number(e.clone())),
            Some(_) => return false,
        };
        edges.push((from, to));
    }
    let next = nodes.len();
    nodes.entry(process.params[control].init.clone()).or_insert(next);
    let count = nodes.len();
    let mut reach = vec![vec![false; count]; count];
    for (n, row) in reach.iter_mut().enumerate() {
        row[n] = true;
    }
    for (from, to) in &edges {
        match (from, to) {
            (Some(a), Some(b)) => reach[*a][*b] = true,
            (None, Some(b)) => reach.iter_mut().for_each(|row| row[*b] = true),
            (_, None) => {}
        }
    }
    for k in 0..count {
        let middle = reach[k].clone();
        for row in reach.iter_mut().filter(|row| row[k]) {
            row.iter_mut().zip(&middle).for_each(|(r, m)| *r |= m);
        }
    }
    // The components that contain a step of a summand.
    let parts = |list: &[usize]| -> Vec<usize> {
        let mut out = Vec::new();
        for &i in list {
            let (from, to) = edges[i];
            #[allow(
                clippy::needless_range_loop,
                reason = "locations are compared, not only looked up"
            )]
            for n in 0..count {
                let source = from.is_none_or(|f| f == n);
                let target = to.unwrap_or(n);
                if source && reach[target][n] {
                    out.push(n);
                }
            }
        }
        out
    };
    let (up, other) = (parts(up), parts(other));
    !up.iter().any(|a| other.iter().any(|b| reach[*a][*b] && reach[*b][*a]))
}
