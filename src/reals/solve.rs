//! Solver of an equation system: component by component, each after its arguments.
//!
//! A component without a cycle is evaluated. A component with cycles of one sign only is solved by
//! `strategy_improvement`. In a component with both signs, the heads of the lowest rank
//! are assigned values, starting with the extreme of their sign, and the rest is solved until these
//! no longer change. This terminates if few values are possible, as for formulas about truth only.
//! Otherwise iteration from both sides gives bounds. Cost: see the parts; a value is freed when all
//! its users are solved. Invariant: the exact value lies within the bounds.

use crate::fraction::Fractions;
use crate::number::Real;
use crate::strategy_improvement::{Arg, LocalEquation, least};
use crate::system::{NodeId, RealEquations, RealOp};
use mu_base::components::{Graph, components};
use mu_base::{Budget, Diagnostic, narrow};
use num_traits::Zero;
use std::ops::Range;

/// Limit on rounds of the iteration of outer values.
const MOST_ROUNDS: usize = 200;

/// Bounds of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Lower bound.
    pub lower: Real,
    /// Upper bound.
    pub upper: Real,
}

impl Bounds {
    fn exact(value: Real) -> Self {
        Self { lower: value.clone(), upper: value }
    }
    /// Returns the value, if it is known exactly.
    pub fn value(&self) -> Option<&Real> {
        (self.lower == self.upper).then_some(&self.lower)
    }
}

/// Nodes of an equation system without those that have a value already.
struct RemainingGraph<'a> {
    equations: &'a RealEquations,
    offsets: Vec<u64>,
    targets: Vec<NodeId>,
    /// Nodes that take part; all if empty.
    within: &'a [bool],
}

impl Graph for RemainingGraph<'_> {
    fn vertices(&self) -> usize {
        self.equations.nodes.len()
    }
    fn contains(&self, vertex: u32) -> bool {
        self.within.is_empty() || self.within[vertex as usize]
    }
    fn edges(&self, vertex: u32) -> Range<u64> {
        self.offsets[vertex as usize]..self.offsets[vertex as usize + 1]
    }
    fn target(&self, edge: u64) -> Option<u32> {
        Some(self.targets[edge as usize]).filter(|t| self.contains(*t))
    }
}

struct Solver<'a> {
    equations: &'a RealEquations,
    budget: &'a Budget,
    /// Nodes of the current component by their number in it.
    place: Vec<u32>,
    fractions: Fractions,
}

const NOWHERE: u32 = u32::MAX;

/// Computes the value of node 0.
///
/// # Errors
/// A limit of the run is reached.
pub fn solve(equations: &RealEquations, budget: &Budget) -> Result<Bounds, Diagnostic> {
    let n = equations.nodes.len();
    let mut solver =
        Solver { equations, budget, place: vec![NOWHERE; n], fractions: Fractions::default() };
    let mut lower = vec![Real::Minus; n];
    let mut upper: Option<Vec<Real>> = None;
    let (mut offsets, mut targets) = (vec![0u64], Vec::new());
    // Number of remaining uses of each value: unused ones are freed, since fractions may be long.
    let mut pending = vec![0u32; n];
    for node in 0..n {
        equations.each_argument(narrow::index(node), |a| {
            targets.push(a);
            pending[a as usize] += 1;
        });
        offsets.push(targets.len() as u64);
    }
    pending[0] += 1;
    let graph = RemainingGraph { equations, offsets, targets, within: &[] };
    let order = components(&graph);
    for (i, component) in order.iter().enumerate() {
        if i.is_multiple_of(4096) {
            budget.check(0).and_then(|()| budget.check_memory()).map_err(Diagnostic::stopped)?;
        }
        let below = solver.component(&graph, component, &lower)?;
        let above = match &upper {
            Some(upper) => Some(solver.component(&graph, component, upper)?),
            None => None,
        };
        if upper.is_none() && below.iter().any(|b| b.value().is_none()) {
            upper = Some(lower.clone());
        }
        for (at, node) in component.iter().enumerate() {
            if let Some(upper) = &mut upper {
                upper[*node as usize] = above.as_ref().map_or(&below[at], |a| &a[at]).upper.clone();
            }
            lower[*node as usize] = below[at].lower.clone();
        }
        for node in component {
            equations.each_argument(*node, |a| {
                let left = &mut pending[a as usize];
                *left -= 1;
                if *left == 0 {
                    lower[a as usize] = Real::Minus;
                    upper.iter_mut().for_each(|u| u[a as usize] = Real::Minus);
                }
            });
        }
    }
    let upper = upper.map_or_else(|| lower[0].clone(), |u| u[0].clone());
    Ok(Bounds { lower: lower[0].clone(), upper })
}

impl Solver<'_> {
    /// Computes the values of a component's nodes, given those of the others.
    fn component(
        &mut self,
        graph: &RemainingGraph<'_>,
        component: &[NodeId],
        known: &[Real],
    ) -> Result<Vec<Bounds>, Diagnostic> {
        let first = component[0];
        if component.len() == 1 && !graph.edges(first).any(|e| graph.targets[e as usize] == first) {
            return Ok(vec![Bounds::exact(self.equations.evaluate_cached(
                first,
                &|a| &known[a as usize],
                &mut self.fractions,
            ))]);
        }
        self.budget.check(0).map_err(Diagnostic::stopped)?;
        let heads: Vec<(u32, NodeId)> = component
            .iter()
            .filter_map(|n| Some((self.equations.ranks[*n as usize]?, *n)))
            .collect();
        let lowest = heads
            .iter()
            .map(|h| h.0)
            .min()
            .ok_or_else(|| Diagnostic::internal("a cycle without a fixed point"))?;
        let sign = self.equations.least[lowest as usize];
        if heads.iter().all(|h| self.equations.least[h.0 as usize] == sign)
            && let Some(values) = self.of_one_sign(component, known, sign)
        {
            return Ok(values.into_iter().map(Bounds::exact).collect());
        }
        let outer: Vec<NodeId> = heads.iter().filter(|h| h.0 == lowest).map(|h| h.1).collect();
        self.iterate(graph, component, &outer, sign, known)
    }

    /// Computes the solution of a component with fixed points of one sign.
    fn of_one_sign(
        &mut self,
        component: &[NodeId],
        known: &[Real],
        sign: bool,
    ) -> Option<Vec<Real>> {
        component
            .iter()
            .enumerate()
            .for_each(|(at, n)| self.place[*n as usize] = narrow::index(at));
        // Greatest solutions are the negations of the least ones of the dual equations.
        let signed = |value: &Real| if sign { value.clone() } else { value.negation() };
        let place = &self.place;
        let arg = |a: &NodeId| match place[*a as usize] {
            NOWHERE => Arg::Value(signed(&known[*a as usize])),
            at => Arg::Node(at as usize),
        };
        let mut nodes = Vec::with_capacity(component.len());
        for node in component {
            nodes.push(match &self.equations.nodes[*node as usize] {
                RealOp::Head(body) => LocalEquation::Greatest(vec![arg(body)]),
                RealOp::Least(args) if sign => LocalEquation::Least(args.iter().map(arg).collect()),
                RealOp::Greatest(args) if !sign => {
                    LocalEquation::Least(args.iter().map(arg).collect())
                }
                RealOp::Least(args) | RealOp::Greatest(args) => {
                    LocalEquation::Greatest(args.iter().map(arg).collect())
                }
                RealOp::Sum(terms, dual) => {
                    let dual = *dual == sign;
                    let (mut inner, mut base) = (Vec::new(), Real::zero());
                    for (factor, a) in terms {
                        let factor = &self.equations.factors[*factor as usize];
                        match arg(a) {
                            Arg::Node(at) if !factor.is_zero() => inner.push((factor.clone(), at)),
                            Arg::Node(_) => {}
                            Arg::Value(value) => base = base.plus(&value.times(factor), dual),
                        }
                    }
                    LocalEquation::Sum(inner, base, dual)
                }
                RealOp::Value(v) => LocalEquation::Greatest(vec![Arg::Value(signed(
                    &self.equations.values[*v as usize],
                ))]),
            });
        }
        component.iter().for_each(|n| self.place[*n as usize] = NOWHERE);
        Some(least(&nodes)?.iter().map(signed).collect())
    }

    /// Computes the values of a component by iterating the outer heads, from both sides if one does
    /// not terminate.
    fn iterate(
        &mut self,
        graph: &RemainingGraph<'_>,
        component: &[NodeId],
        outer: &[NodeId],
        sign: bool,
        known: &[Real],
    ) -> Result<Vec<Bounds>, Diagnostic> {
        let (near, ended) = self.one_side(graph, component, outer, sign, known)?;
        if ended {
            return Ok(near);
        }
        let (far, _) = self.one_side(graph, component, outer, !sign, known)?;
        let bounds = near.into_iter().zip(far).map(|(near, far)| {
            if sign {
                Bounds { lower: near.lower, upper: far.upper }
            } else {
                Bounds { lower: far.lower, upper: near.upper }
            }
        });
        Ok(bounds.collect())
    }

    /// Iterates the outer heads from minus infinity (or plus infinity). The flag is true if it
    /// terminated.
    fn one_side(
        &mut self,
        graph: &RemainingGraph<'_>,
        component: &[NodeId],
        outer: &[NodeId],
        below: bool,
        known: &[Real],
    ) -> Result<(Vec<Bounds>, bool), Diagnostic> {
        let mut exact = true;
        let mut within = vec![false; self.equations.nodes.len()];
        component.iter().for_each(|n| within[*n as usize] = true);
        outer.iter().for_each(|n| within[*n as usize] = false);
        let rest = RemainingGraph {
            equations: graph.equations,
            offsets: graph.offsets.clone(),
            targets: graph.targets.clone(),
            within: &within,
        };
        let order = components(&rest);
        let mut values = known.to_vec();
        outer.iter().for_each(|n| values[*n as usize] = Real::truth(!below));
        for _ in 0..MOST_ROUNDS {
            self.budget.check(0).map_err(Diagnostic::stopped)?;
            for part in order.iter() {
                // From below, lower bounds of the parts give a lower bound of the whole.
                let found = self.component(&rest, part, &values)?;
                exact &= found.iter().all(|b| b.value().is_some());
                for (node, bounds) in part.iter().zip(found) {
                    values[*node as usize] = if below { bounds.lower } else { bounds.upper };
                }
            }
            let next: Vec<Real> = outer
                .iter()
                .map(|n| self.equations.evaluate(*n, &|a| &values[a as usize]))
                .collect();
            let same = outer.iter().zip(&next).all(|(n, v)| values[*n as usize] == *v);
            outer.iter().zip(next).for_each(|(n, v)| values[*n as usize] = v);
            if same {
                let all =
                    component.iter().map(|n| Bounds::exact(values[*n as usize].clone())).collect();
                return Ok((all, exact));
            }
        }
        Ok((component.iter().map(|n| Bounds::exact(values[*n as usize].clone())).collect(), false))
    }
}
