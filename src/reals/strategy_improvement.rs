//! Strategy improvement from below: the least solution of equations with minimum, maximum and sums,
//! all under one least fixed point.
//!
//! After Gawlitza and Seidl, "Solving systems of rational equations through strategy iteration"
//! (TOPLAS 2011), with policy iteration instead of linear programs:
//!
//! 1. The nodes above minus infinity are computed as an attractor, which gives an initial strategy
//!    for the greatest nodes and an acyclic solution under it.
//! 2. Under a strategy, the limit of iteration from the previous solution is the least over the
//!    policies of the least nodes; each policy leaves a linear system. A component of it with a
//!    spectral radius of 1 or more grows without bound, since every cycle has a node that grew when
//!    the strategy was last changed there; this growth is checked, and the answer is *unknown*
//!    otherwise.
//! 3. Nodes switch to strictly greater arguments, until there are none.
//!
//! All computations are exact. So that a policy that could leave a cycle is never missed, each
//! least node may also take a value `K` above all numbers: values with a part of `K` at the end are
//! infinite. Invariant: a result is a solution (checked), and no solution is below it.

use crate::linear::{LinearPair, LinearRow, solve};
use crate::number::Real;
use mu_base::components::{Adjacency, Graph, components};
use mu_base::narrow;
use num_rational::BigRational;
use num_traits::{One, Zero};
use std::collections::BTreeMap;

/// An argument: a node of the component, or a value from outside.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    Node(usize),
    Value(Real),
}

/// An equation of the component.
#[derive(Clone, Debug)]
pub(crate) enum LocalEquation {
    Least(Vec<Arg>),
    Greatest(Vec<Arg>),
    /// Terms, and the constant from outside.
    Sum(Vec<(BigRational, usize)>, Real, bool),
}

/// Limit on the rounds of either iteration.
const MOST_ROUNDS: usize = 100_000;

/// A value under a policy; `None` is infinite.
type PolicyValue = Option<LinearPair>;

fn greater(a: &PolicyValue, b: &PolicyValue) -> bool {
    match (a, b) {
        (None, b) => b.is_some(),
        (_, None) => false,
        (Some(a), Some(b)) => a > b,
    }
}

struct Improvement<'a> {
    nodes: &'a [LocalEquation],
    /// Nodes above minus infinity.
    alive: Vec<bool>,
    /// The argument chosen by each greatest node.
    strategy: Vec<usize>,
    /// The argument chosen by each least node; `None` is `K`.
    policy: Vec<Option<usize>>,
    /// The solution under the previous strategy.
    before: Vec<Real>,
}

/// A right-hand side under a strategy and a policy.
enum PolicyTerm<'a> {
    Copy(usize),
    Value(PolicyValue),
    Sum(&'a [(BigRational, usize)], &'a Real),
}

/// Returns the least solution; `None` if it is not found.
pub(crate) fn least(nodes: &[LocalEquation]) -> Option<Vec<Real>> {
    let mut all = initial_strategy(nodes);
    for _ in 0..MOST_ROUNDS {
        if !all.improve() {
            return all.into_solution();
        }
        let values = all.limit()?;
        let real = |value: PolicyValue| match value {
            Some(LinearPair { k, r }) if k.is_zero() => Real::Number(r),
            _ => Real::Plus,
        };
        for (i, value) in values.into_iter().enumerate().filter(|(i, _)| all.alive[*i]) {
            all.before[i] = real(value);
        }
    }
    None
}

/// Computes the nodes above minus infinity, with an initial strategy and its solution.
fn initial_strategy(nodes: &[LocalEquation]) -> Improvement<'_> {
    let n = nodes.len();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut missing = vec![0usize; n];
    let mut dead = vec![false; n];
    for (i, node) in nodes.iter().enumerate() {
        match node {
            LocalEquation::Least(args) | LocalEquation::Greatest(args) => {
                for arg in args {
                    match arg {
                        Arg::Node(j) => {
                            users[*j].push(i);
                            missing[i] += 1;
                        }
                        Arg::Value(Real::Minus) if matches!(node, LocalEquation::Least(_)) => {
                            dead[i] = true
                        }
                        Arg::Value(_) => {}
                    }
                }
            }
            LocalEquation::Sum(terms, base, _) => {
                dead[i] = *base == Real::Minus;
                terms.iter().for_each(|t| users[t.1].push(i));
                missing[i] = terms.len();
            }
        }
    }
    let mut all = Improvement {
        nodes,
        alive: vec![false; n],
        strategy: vec![0; n],
        policy: vec![None; n],
        before: vec![Real::Minus; n],
    };
    let ready = |i: usize, missing: &[usize]| match &nodes[i] {
        LocalEquation::Greatest(args) => {
            args.iter().any(|a| matches!(a, Arg::Value(v) if *v != Real::Minus))
        }
        _ => missing[i] == 0 && !dead[i],
    };
    let mut queue: Vec<usize> = (0..n).filter(|i| ready(*i, &missing)).collect();
    while let Some(i) = queue.pop() {
        if std::mem::replace(&mut all.alive[i], true) {
            continue;
        }
        all.before[i] = match &nodes[i] {
            LocalEquation::Greatest(_) => {
                all.strategy[i] = all.best(i, false).expect("one argument is above minus infinity");
                all.argument(i, all.strategy[i])
            }
            _ => all.evaluate(i),
        };
        for &u in &users[i] {
            missing[u] = missing[u].saturating_sub(1);
            if !all.alive[u]
                && !dead[u]
                && (missing[u] == 0 || matches!(nodes[u], LocalEquation::Greatest(_)))
            {
                queue.push(u);
            }
        }
    }
    all
}

impl<'a> Improvement<'a> {
    fn args(&self, i: usize) -> &'a [Arg] {
        match &self.nodes[i] {
            LocalEquation::Least(args) | LocalEquation::Greatest(args) => args,
            LocalEquation::Sum(..) => &[],
        }
    }

    /// Returns the value of an argument in the previous solution.
    fn argument(&self, i: usize, arg: usize) -> Real {
        match &self.args(i)[arg] {
            Arg::Node(j) => self.before[*j].clone(),
            Arg::Value(v) => v.clone(),
        }
    }

    /// Returns the greatest argument (or the least) in the previous solution.
    fn best(&self, i: usize, least: bool) -> Option<usize> {
        let value = |arg: &Arg| match arg {
            Arg::Node(j) => self.before[*j].clone(),
            Arg::Value(v) => v.clone(),
        };
        let mut found: Option<(usize, Real)> = None;
        for (at, arg) in self.args(i).iter().enumerate() {
            let new = value(arg);
            if found.as_ref().is_none_or(|(_, old)| if least { new < *old } else { new > *old }) {
                found = Some((at, new));
            }
        }
        found.map(|f| f.0)
    }

    /// Evaluates a right-hand side in the previous solution.
    fn evaluate(&self, i: usize) -> Real {
        match &self.nodes[i] {
            LocalEquation::Least(_) => {
                self.best(i, true).map_or(Real::Plus, |a| self.argument(i, a))
            }
            LocalEquation::Greatest(_) => {
                self.best(i, false).map_or(Real::Minus, |a| self.argument(i, a))
            }
            LocalEquation::Sum(terms, base, dual) => {
                let mut sum = base.clone();
                for (factor, j) in terms {
                    sum = sum.plus(&self.before[*j].times(factor), *dual);
                }
                sum
            }
        }
    }

    /// Switches greatest nodes to strictly greater arguments. Returns true if there was one.
    fn improve(&mut self) -> bool {
        let mut switched = false;
        for i in 0..self.nodes.len() {
            if !self.alive[i] || !matches!(self.nodes[i], LocalEquation::Greatest(_)) {
                continue;
            }
            let Some(best) = self.best(i, false) else { continue };
            if self.argument(i, best) > self.before[i] {
                self.strategy[i] = best;
                switched = true;
            }
        }
        switched
    }

    /// Returns the solution, if it satisfies the equations.
    fn into_solution(self) -> Option<Vec<Real>> {
        (0..self.nodes.len()).all(|i| self.evaluate(i) == self.before[i]).then_some(self.before)
    }

    fn plain(&self, i: usize) -> PolicyTerm<'a> {
        let arg = match &self.nodes[i] {
            LocalEquation::Sum(terms, base, _) => return PolicyTerm::Sum(terms, base),
            LocalEquation::Greatest(args) => &args[self.strategy[i]],
            LocalEquation::Least(args) => match self.policy[i] {
                Some(arg) => &args[arg],
                None => return PolicyTerm::Value(Some(LinearPair::huge())),
            },
        };
        match arg {
            Arg::Node(j) => PolicyTerm::Copy(*j),
            Arg::Value(Real::Number(r)) => PolicyTerm::Value(Some(LinearPair::number(r.clone()))),
            Arg::Value(_) => PolicyTerm::Value(None),
        }
    }

    /// Computes the limit of iteration under the strategy from the previous solution.
    fn limit(&mut self) -> Option<Vec<PolicyValue>> {
        for _ in 0..MOST_ROUNDS {
            let values = self.linear()?;
            let mut switched = false;
            for i in 0..self.nodes.len() {
                let (true, LocalEquation::Least(args)) = (self.alive[i], &self.nodes[i]) else {
                    continue;
                };
                let mut best = (values[i].clone(), self.policy[i]);
                if greater(&best.0, &Some(LinearPair::huge())) {
                    best = (Some(LinearPair::huge()), None);
                    switched = true;
                }
                for (at, arg) in args.iter().enumerate() {
                    let value = match arg {
                        Arg::Node(j) => values[*j].clone(),
                        Arg::Value(Real::Number(r)) => Some(LinearPair::number(r.clone())),
                        Arg::Value(_) => None,
                    };
                    if greater(&best.0, &value) {
                        best = (value, Some(at));
                        switched = true;
                    }
                }
                self.policy[i] = best.1;
            }
            if !switched {
                return Some(values);
            }
        }
        None
    }

    /// Solves the linear system of strategy and policy; `None` if that fails.
    fn linear(&self) -> Option<Vec<PolicyValue>> {
        let n = self.nodes.len();
        let mut graph = Adjacency { offsets: vec![0], targets: Vec::new() };
        for i in 0..n {
            match self.plain(i) {
                PolicyTerm::Copy(j) if self.alive[i] => graph.targets.push(narrow::index(j)),
                PolicyTerm::Sum(terms, _) if self.alive[i] => {
                    graph.targets.extend(terms.iter().map(|t| narrow::index(t.1)))
                }
                _ => {}
            }
            graph.offsets.push(graph.targets.len() as u64);
        }
        let mut values: Vec<PolicyValue> = vec![None; n];
        let mut place: Vec<Option<usize>> = vec![None; n];
        for component in components(&graph).iter() {
            let first = component[0] as usize;
            if !self.alive[first] {
                continue;
            }
            let edges = graph.edges(component[0]);
            let cycles = component.len() > 1
                || edges.into_iter().any(|e| graph.targets[e as usize] == component[0]);
            if !cycles {
                values[first] = self.direct(first, &values);
                continue;
            }
            self.cycle(component, &mut place, &mut values)?;
        }
        Some(values)
    }

    /// Returns the value of a node with known arguments.
    fn direct(&self, i: usize, values: &[PolicyValue]) -> PolicyValue {
        match self.plain(i) {
            PolicyTerm::Copy(j) => values[j].clone(),
            PolicyTerm::Value(v) => v,
            PolicyTerm::Sum(terms, base) => {
                let Real::Number(base) = base else { return None };
                let mut sum = LinearPair::number(base.clone());
                for (factor, j) in terms {
                    sum.add_scaled(factor, values[*j].as_ref()?);
                }
                Some(sum)
            }
        }
    }

    /// Computes the values of a strongly connected component.
    fn cycle(
        &self,
        component: &[u32],
        place: &mut [Option<usize>],
        values: &mut [PolicyValue],
    ) -> Option<()> {
        component.iter().enumerate().for_each(|(at, i)| place[*i as usize] = Some(at));
        let mut rows = Vec::with_capacity(component.len());
        let mut infinite = false;
        for &i in component {
            let mut row =
                LinearRow { terms: BTreeMap::new(), base: LinearPair::number(BigRational::zero()) };
            let one = BigRational::one();
            let mut add = |factor: &BigRational, j: usize, row: &mut LinearRow| match (
                place[j], &values[j],
            ) {
                (Some(at), _) => *row.terms.entry(at).or_insert_with(BigRational::zero) += factor,
                (None, Some(value)) => row.base.add_scaled(factor, value),
                (None, None) => infinite = true,
            };
            match self.plain(i as usize) {
                PolicyTerm::Copy(j) => add(&one, j, &mut row),
                PolicyTerm::Sum(terms, base) => {
                    terms.iter().for_each(|(factor, j)| add(factor, *j, &mut row));
                    match base {
                        Real::Number(base) => {
                            row.base.add_scaled(&one, &LinearPair::number(base.clone()))
                        }
                        _ => infinite = true,
                    }
                }
                PolicyTerm::Value(_) => return None,
            }
            rows.push(row);
        }
        let solution = if infinite { None } else { solve(rows.clone()) };
        let grows = || {
            infinite
                || component.iter().zip(&rows).any(|(i, row)| {
                    let mut sum = row.base.clone();
                    for (at, factor) in &row.terms {
                        match &self.before[component[*at] as usize] {
                            Real::Number(r) => sum.add_scaled(factor, &LinearPair::number(r.clone())),
                            _ => return true,
                        }
                    }
                    matches!(&self.before[*i as usize], Real::Number(r) if LinearPair::number(r.clone()) < sum)
                })
        };
        if solution.is_none() && !grows() {
            return None;
        }
        for (at, i) in component.iter().enumerate() {
            place[*i as usize] = None;
            values[*i as usize] = solution.as_ref().map(|s| s[at].clone());
        }
        Some(())
    }
}
