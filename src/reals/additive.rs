//! Additive parameters of fixed points: those that are only added to, and their effect on the
//! value.
//!
//! A parameter that counts gains, `X(wins + 1, rounds + 1)` with `val(wins / rounds)` at the end,
//! multiplies the instances of `X` by all its values, though no step depends on it. If it occurs in
//! calls of its own fixed point as itself plus something, and otherwise only linearly in `val(..)`,
//! then instances are created for the value 0 only. A call with `k` more is that instance plus `k`
//! times its *slope*, the growth of the value with the parameter.
//!
//! Slopes are inferred from the ends to the start ([`settle`]), then checked at every equation:
//! least and greatest nodes need one slope for all arguments, sums have the sum of slopes. With a
//! matching family of slopes, the equations map functions of the form `v + k s` to such functions.
//! So each step of the fixed-point iteration stays among them, infinities included, and so does
//! each fixed point, including nested ones. If no slopes match, the formula is translated again
//! without this optimisation. Cost: linear in the equations.

use crate::number::Real;
use crate::system::{NodeId, RealEquations, RealOp};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::VarId;
use mu_base::narrow;
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::{Builtin, Signature};
use mu_data::sort::basic;
use mu_formula::normal::action_free_vars;
use mu_formula::real::{Real as Formula, RealKind};
use num_rational::BigRational;
use num_traits::{One, Zero};

/// By parameter, the growth of a value with it.
pub(crate) type Slope = Vec<BigRational>;

/// Data of a translation for the inference of slopes.
#[derive(Default)]
pub(crate) struct SlopeData {
    /// Slopes of values that mention parameters.
    pub leaves: AHashMap<NodeId, Slope>,
    /// Nodes for the additions in calls: the node, the node with the base slope, and the amount
    /// added to each parameter.
    pub added: Vec<(NodeId, NodeId, Slope)>,
}

/// Dependence of an expression on parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TermKind {
    Free,
    Linear,
    Other,
}

fn free_vars(e: &Expr) -> Vec<VarId> {
    let mut vars = Vec::new();
    e.free_vars(&mut vars);
    vars
}

fn is_widening(builtin: Builtin) -> bool {
    use Builtin::{IntToReal, NatToInt, NatToReal, PosToInt, PosToNat, PosToReal};
    matches!(builtin, PosToNat | PosToInt | PosToReal | NatToInt | NatToReal | IntToReal)
}

fn kind(e: &Expr, signature: &Signature, params: &AHashSet<VarId>) -> TermKind {
    if !free_vars(e).iter().any(|v| params.contains(v)) {
        return TermKind::Free;
    }
    if let ExprKind::Var(_) = e.kind {
        return TermKind::Linear;
    }
    let of = |e: &Expr| stacker::maybe_grow(64 << 10, 1 << 20, || kind(e, signature, params));
    match e.as_builtin(signature) {
        Some((b, [a])) if is_widening(b) || b == Builtin::Negate => of(a),
        Some((Builtin::Add | Builtin::Subtract, [a, b]))
            if of(a) != TermKind::Other && of(b) != TermKind::Other =>
        {
            TermKind::Linear
        }
        Some((Builtin::Multiply, [a, b])) if of(a) == TermKind::Free => of(b),
        Some((Builtin::Multiply | Builtin::Divide, [a, b])) if of(b) == TermKind::Free => of(a),
        _ => TermKind::Other,
    }
}

/// True if an expression is a parameter plus something that does not depend on parameters.
fn is_more_of(e: &Expr, param: VarId, signature: &Signature, params: &AHashSet<VarId>) -> bool {
    if let ExprKind::Var(v) = e.kind {
        return v == param;
    }
    let free = |e: &Expr| kind(e, signature, params) == TermKind::Free;
    let more = |e: &Expr| {
        stacker::maybe_grow(64 << 10, 1 << 20, || is_more_of(e, param, signature, params))
    };
    match e.as_builtin(signature) {
        Some((b, [a])) if is_widening(b) => more(a),
        Some((Builtin::Add, [a, b])) => free(a) && more(b) || free(b) && more(a),
        Some((Builtin::Subtract, [a, b])) => free(b) && more(a),
        _ => false,
    }
}

/// Returns the parameters of fixed points that are only added to.
pub(crate) fn parameters(formula: &Formula, signature: &Signature) -> Vec<VarId> {
    let mut search = ParameterSearch { signature, fixes: AHashMap::new(), params: AHashSet::new() };
    search.collect(formula);
    loop {
        let before = search.params.len();
        search.look(formula);
        if search.params.len() == before {
            let mut all: Vec<VarId> = search.params.into_iter().collect();
            all.sort_unstable();
            return all;
        }
    }
}

struct ParameterSearch<'f> {
    signature: &'f Signature,
    fixes: AHashMap<mu_base::ids::FixId, &'f [(VarId, Expr)]>,
    /// Candidates that are not refuted yet.
    params: AHashSet<VarId>,
}

impl<'f> ParameterSearch<'f> {
    fn collect(&mut self, formula: &'f Formula) {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            if let RealKind::Fix { var, params, .. } = &formula.kind {
                self.fixes.insert(*var, params);
                let counts = |v: &VarId| {
                    [basic::NAT, basic::INT, basic::REAL].contains(&self.signature.var(*v).sort)
                };
                let counting: Vec<VarId> = params.iter().map(|p| p.0).filter(counts).collect();
                self.params.extend(counting);
            }
            super::translate::children(formula).into_iter().for_each(|c| self.collect(c));
        });
    }

    /// Drops parameters with other occurrences.
    fn look(&mut self, formula: &'f Formula) {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let mut spoiled: Vec<VarId> = Vec::new();
            match &formula.kind {
                RealKind::Val(e) if kind(e, self.signature, &self.params) == TermKind::Other => {
                    spoiled = free_vars(e)
                }
                RealKind::Scale(e, _) => spoiled = free_vars(e),
                RealKind::Must(action, _) | RealKind::May(action, _) => {
                    action_free_vars(action, &mut spoiled)
                }
                RealKind::Fix { params, .. } => {
                    spoiled = params.iter().flat_map(|p| free_vars(&p.1)).collect()
                }
                RealKind::Var(var, args) => {
                    for ((param, _), arg) in self.fixes[var].iter().zip(args) {
                        if self.params.contains(param)
                            && is_more_of(arg, *param, self.signature, &self.params)
                        {
                            continue;
                        }
                        spoiled.push(*param);
                        spoiled.extend(free_vars(arg));
                    }
                }
                _ => {}
            }
            spoiled.iter().for_each(|v| _ = self.params.remove(v));
            super::translate::children(formula).into_iter().for_each(|c| self.look(c));
        });
    }
}

/// Slopes of nodes, by number.
struct Slopes {
    all: Vec<Slope>,
    by_slope: AHashMap<Slope, u32>,
    /// By node; [`UNKNOWN`] if it is not inferred.
    of: Vec<u32>,
    width: usize,
}

const UNKNOWN: u32 = u32::MAX;

impl Slopes {
    fn number(&mut self, slope: Slope) -> u32 {
        if let Some(&known) = self.by_slope.get(&slope) {
            return known;
        }
        let id = narrow::index(self.all.len());
        self.all.push(slope.clone());
        self.by_slope.insert(slope, id);
        id
    }

    /// Returns the slope of a sum, if those of all terms are known.
    fn sum(&mut self, equations: &RealEquations, terms: &[(u32, NodeId)]) -> Option<u32> {
        if terms.iter().any(|t| self.of[t.1 as usize] == UNKNOWN) {
            return None;
        }
        let mut sum = vec![BigRational::zero(); self.width];
        for (factor, arg) in terms {
            let factor = &equations.factors[*factor as usize];
            for (s, part) in sum.iter_mut().zip(&self.all[self.of[*arg as usize] as usize]) {
                if !part.is_zero() {
                    *s += factor * part;
                }
            }
        }
        Some(self.number(sum))
    }

    /// Infers the slope of a node from one argument.
    fn guess(&mut self, equations: &RealEquations, node: NodeId, bold: bool) -> Option<u32> {
        let known = |arg: NodeId| Some(self.of[arg as usize]).filter(|s| *s != UNKNOWN);
        match &equations.nodes[node as usize] {
            RealOp::Value(_) => None,
            RealOp::Head(body) => known(*body),
            RealOp::Least(args) | RealOp::Greatest(args) => args.iter().find_map(|a| known(*a)),
            RealOp::Sum(terms, _) if bold => {
                let whole: BigRational =
                    terms.iter().map(|t| &equations.factors[t.0 as usize]).sum();
                if whole.is_one() { terms.iter().find_map(|t| known(t.1)) } else { None }
            }
            RealOp::Sum(terms, _) => self.sum(equations, terms),
        }
    }
}

/// Assigns values to the additions of calls; `None` if no slopes match the equations.
pub(crate) fn settle(
    equations: &mut RealEquations,
    growth: &SlopeData,
    width: usize,
) -> Option<()> {
    let n = equations.nodes.len();
    let mut slopes =
        Slopes { all: Vec::new(), by_slope: AHashMap::new(), of: vec![UNKNOWN; n], width };
    let level = slopes.number(vec![BigRational::zero(); width]);
    let (mut offsets, mut users) = (vec![0usize; n + 1], Vec::new());
    for node in 0..n as NodeId {
        equations.each_argument(node, |a| offsets[a as usize + 1] += 1);
    }
    for i in 0..n {
        offsets[i + 1] += offsets[i];
    }
    let mut next = offsets.clone();
    users.resize(offsets[n], 0);
    for node in 0..n as NodeId {
        equations.each_argument(node, |a| {
            users[next[a as usize]] = node;
            next[a as usize] += 1;
        });
    }
    for (i, node) in equations.nodes.iter().enumerate() {
        if matches!(node, RealOp::Value(v) if matches!(equations.values[*v as usize], Real::Number(_)))
        {
            slopes.of[i] =
                growth.leaves.get(&(narrow::index(i))).map_or(level, |s| slopes.number(s.clone()));
        }
    }
    growth.added.iter().for_each(|(node, ..)| slopes.of[*node as usize] = level);
    let mut todo: Vec<NodeId> =
        (0..n as NodeId).filter(|i| slopes.of[*i as usize] != UNKNOWN).collect();
    let mut waiting: Vec<NodeId> = Vec::new();
    loop {
        while let Some(node) = todo.pop() {
            for &user in &users[offsets[node as usize]..offsets[node as usize + 1]] {
                if slopes.of[user as usize] != UNKNOWN {
                    continue;
                }
                match slopes.guess(equations, user, false) {
                    Some(slope) => {
                        slopes.of[user as usize] = slope;
                        todo.push(user);
                    }
                    None => waiting.push(user),
                }
            }
        }
        let Some(node) = waiting.pop() else { break };
        if slopes.of[node as usize] == UNKNOWN
            && let Some(slope) = slopes.guess(equations, node, true)
        {
            slopes.of[node as usize] = slope;
            todo.push(node);
        }
    }
    for node in 0..n as NodeId {
        fits(equations, &mut slopes, node).then_some(())?;
    }
    for (node, owner, more) in &growth.added {
        let slope = slopes.of[*owner as usize];
        let mut value = BigRational::zero();
        if slope != UNKNOWN {
            slopes.all[slope as usize].iter().zip(more).for_each(|(s, k)| value += s * k);
        }
        equations.nodes[*node as usize] = RealOp::Value(equations.value(Real::Number(value)));
    }
    Some(())
}

/// True if the slopes match at a node. A node without a slope is infinite if none of its arguments
/// has one: only infinities are combined there.
fn fits(equations: &RealEquations, slopes: &mut Slopes, node: NodeId) -> bool {
    let own = slopes.of[node as usize];
    match &equations.nodes[node as usize] {
        RealOp::Value(_) => true,
        RealOp::Head(body) => slopes.of[*body as usize] == own,
        RealOp::Least(args) | RealOp::Greatest(args) => {
            args.iter().all(|a| [own, UNKNOWN].contains(&slopes.of[*a as usize]))
        }
        RealOp::Sum(terms, _) => match slopes.sum(equations, terms) {
            Some(sum) => own == sum,
            // A sum with an infinite term is infinite.
            None => true,
        },
    }
}
