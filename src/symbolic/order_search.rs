//! Search for a better slot order by measurement: a bad order costs orders of magnitude, and no
//! static property is reliable.
//!
//! Input -> output: a model and an order -> a much better order, if one is found. Small versions of
//! the model are searched completely under many orders: the version of bound `b` omits every step
//! that writes a value `>= b` to a slot that is not a control location. Values are numbered in
//! order of discovery, so that is a part of the model with the same groups. The bound grows until a
//! search is neither trivial nor long; then the best candidate is improved by moving blocks of
//! slots. An order that is good for a small version may be bad for a larger one, so the result
//! counts only if it creates at most half the nodes in a version of double bound.
//!
//! The result depends on the model alone (moves use a fixed seed, the effort is counted in nodes,
//! not seconds). Cost: about twice [`EFFORT`] nodes, some seconds.

use super::ldd::Halt;
use super::order::candidate_orders;
use super::reach::{ReachSearch, Strategy, SymbolicOptions};
use super::relation::GroupEvaluator;
use mu_base::{Budget, Diagnostic};
use mu_model::{Model, Slot};

/// Approximate number of nodes of all trials together.
pub(super) const EFFORT: u64 = 3_000_000;
/// A version with fewer nodes in its best search is too small to compare orders.
const MIN_NODES: u64 = 12_000;
/// Initial limit on the nodes of a candidate's search.
const PATIENCE: u64 = 60_000;

struct OrderSearch<'m> {
    model: &'m dyn Model,
    options: SymbolicOptions,
    budget: &'m Budget,
    evaluator: Option<GroupEvaluator<'m>>,
    spent: u64,
    effort: u64,
}

/// Searches for a much better order than the given one, by creating about twice `effort` nodes.
pub(super) fn better_order(
    model: &dyn Model,
    options: &SymbolicOptions,
    budget: &Budget,
    given: &[Slot],
    effort: u64,
) -> Result<Option<Vec<Slot>>, Diagnostic> {
    let mut orders = candidate_orders(model);
    if orders.len() < 2 {
        return Ok(None);
    }
    let mut options = options.clone();
    options.settings.initial_bits = 9;
    options.settings.max_cache_bits = 20;
    options.settings.collect_at = usize::MAX;
    let mut search = OrderSearch {
        model,
        options,
        budget,
        evaluator: Some(GroupEvaluator::new(model, None)),
        spent: 0,
        effort,
    };
    let (mut bound, mut patience) = (2u32, PATIENCE);
    // The best candidate and the version of the comparison.
    let mut best: Option<(usize, u32)> = None;
    while search.spent < effort / 2 {
        let mut now: Option<(u64, usize)> = None;
        for (i, order) in orders.iter().enumerate() {
            let limit = now.map_or(patience, |(cost, _)| cost);
            if let Some(cost) = search.trial(order, bound, limit)? {
                now = Some((cost, i));
            }
        }
        match now {
            Some((cost, i)) => {
                best = Some((i, bound));
                if cost >= MIN_NODES || !search.has_omissions() {
                    break;
                }
                bound = bound.saturating_mul(3) / 2;
            }
            None if best.is_some() => break,
            None => patience = patience.saturating_mul(4),
        }
    }
    let Some((index, bound)) = best else { return Ok(None) };
    let mut order = orders.swap_remove(index);
    search.climb(&mut order, bound)?;
    let large = bound.saturating_mul(2);
    let old = search.trial(given, large, effort / 2)?;
    let new = search.trial(&order, large, old.unwrap_or(effort) / 2)?;
    Ok(new.map(|_| order))
}

impl OrderSearch<'_> {
    fn lost_evaluator(&self) -> Diagnostic {
        Diagnostic::new(mu_base::Stage::Internal, "the search lost its evaluator")
    }
    /// True if the last trial omitted steps.
    fn has_omissions(&self) -> bool {
        self.evaluator.as_ref().is_some_and(|t| t.left_out)
    }

    /// Returns the number of nodes of a search in the version of a bound; `None` if more than
    /// `limit`.
    fn trial(&mut self, order: &[Slot], bound: u32, limit: u64) -> Result<Option<u64>, Diagnostic> {
        let Some(mut evaluator) = self.evaluator.take() else { return Err(self.lost_evaluator()) };
        evaluator.bound = Some(bound);
        evaluator.left_out = false;
        let mut options = self.options.clone();
        options.settings.max_made = Some(limit);
        let mut search =
            ReachSearch::with_order(self.model, options, self.budget, order.to_vec(), evaluator)?;
        let result = search.run_once(Strategy::Saturation);
        let made = search.manager.created_nodes();
        let complete = !search.is_halted();
        self.spent += made + 100;
        if search.manager.halt_reason().is_some_and(|why| why != Halt::Effort) {
            self.spent = self.effort; // a limit of the whole run
        }
        self.evaluator = Some(search.evaluator);
        result.map(|_| complete.then_some(made))
    }

    /// Moves blocks of slots while that reduces the nodes and effort is left.
    fn climb(&mut self, order: &mut Vec<Slot>, bound: u32) -> Result<(), Diagnostic> {
        let Some(mut cost) = self.trial(order, bound, u64::MAX)? else { return Ok(()) };
        let mut seed = 0x5EED_u64;
        let mut below = |n: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 33) % n as u64) as usize
        };
        while self.spent < self.effort && self.budget.check(0).is_ok() {
            let mut next = order.clone();
            let size = 1 + below(4.min(next.len() - 1));
            let from = below(next.len() - size + 1);
            let mut block: Vec<Slot> = next.drain(from..from + size).collect();
            if below(4) == 0 {
                block.reverse();
            }
            let to = below(next.len() + 1);
            next.splice(to..to, block);
            if let Some(then) = self.trial(&next, bound, cost)? {
                (*order, cost) = (next, then);
            }
        }
        Ok(())
    }
}
