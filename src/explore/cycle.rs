//! Cycle detection in the reachable graph, or in the subgraph of some steps.
//!
//! In: a model and a predicate that selects steps. Out: no cycle, or a path to one and the cycle.
//! No edges are stored: states are expanded again to count each state's incoming steps (4 bytes a
//! state). Then states without incoming steps are removed until none is left (Kahn, 1962). The
//! remaining graph has a cycle, which a depth-first search finds. With symmetries only
//! representatives are examined. A cycle of the full graph is a closed walk of representatives.
//! Conversely, a walk from a state to its image continues by the images of its steps until it
//! returns, since the group is finite. So one graph has a cycle if and only if the other has. Cost:
//! one exploration and two passes over its states; a path costs a third.

use std::sync::atomic::Ordering;

use super::goal_search::{Filter, PathStep, Tracer};
use super::search::{FinishedSearch, Goal, run};
use super::symmetry::Symmetries;
use super::table::Payload;
use super::{Options, Outcome, Progress};
use mu_base::{Budget, Diagnostic, Stage, Stop};
use mu_model::Model;

/// A lasso: a path to a cycle, and the cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lasso {
    /// Path from the initial vector to a state of the cycle.
    pub prefix: Vec<PathStep>,
    /// Steps from that state back to it; at least one.
    pub cycle: Vec<PathStep>,
}

/// Result of [`is_acyclic`].
#[derive(Clone, Debug)]
pub enum Cyclic {
    /// No cycle.
    No(Outcome),
    /// A cycle of selected steps; `None` if symmetries were used.
    Yes(Outcome, Option<Lasso>),
    /// A limit stopped the search.
    Unknown(Outcome),
}

/// Status of a state, stored as the number of its table entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StateStatus {
    /// Number of incoming steps from states that may be on a cycle; 0: on no cycle, or not reached
    /// yet.
    Steps(u32),
    OnStack,
    Finished,
}

impl StateStatus {
    /// Larger than every count: a state has fewer incoming steps.
    const ON_STACK: u32 = u32::MAX;
    const FINISHED: u32 = u32::MAX - 1;

    fn of(number: u32) -> StateStatus {
        match number {
            Self::ON_STACK => StateStatus::OnStack,
            Self::FINISHED => StateStatus::Finished,
            n => StateStatus::Steps(n),
        }
    }

    fn number(self) -> u32 {
        match self {
            StateStatus::OnStack => Self::ON_STACK,
            StateStatus::Finished => Self::FINISHED,
            StateStatus::Steps(n) => n,
        }
    }
}

/// Explores, then searches for a cycle of steps that satisfy `counts` (all if `None`). The path to
/// the cycle may take any steps. `symmetries` must preserve the predicate.
pub fn is_acyclic(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    progress: &dyn Progress,
    counts: Option<&(dyn Fn(usize, mu_base::ids::LabelId) -> bool + Sync)>,
    symmetries: Option<&Symmetries>,
) -> Result<Cyclic, Diagnostic> {
    let done = run(
        model,
        options,
        budget,
        progress,
        Goal { payload: Payload::Number, symmetries, ..Goal::default() },
    )?;
    if done.outcome.stop != Stop::Complete {
        return Ok(Cyclic::Unknown(done.outcome));
    }
    let tracer = Tracer::new(model, options, &done, symmetries).with_preferred_steps(counts);
    let mut pass = CyclePass { tracer, done: &done, counts, budget, polled: 0 };
    match pass.cycle() {
        Ok(None) => Ok(Cyclic::No(done.outcome)),
        Ok(Some(_)) if symmetries.is_some() => Ok(Cyclic::Yes(done.outcome, None)),
        Ok(Some(cycle)) => match pass.lasso(cycle) {
            Ok(lasso) => Ok(Cyclic::Yes(done.outcome, Some(lasso))),
            Err(EarlyEnd::Stop(stop)) => Ok(Cyclic::Unknown(Outcome { stop, ..done.outcome })),
            Err(EarlyEnd::Error(error)) => Err(*error),
        },
        Err(EarlyEnd::Stop(stop)) => Ok(Cyclic::Unknown(Outcome { stop, ..done.outcome })),
        Err(EarlyEnd::Error(error)) => Err(*error),
    }
}

enum EarlyEnd {
    Stop(Stop),
    Error(Box<Diagnostic>),
}

impl From<Diagnostic> for EarlyEnd {
    fn from(error: Diagnostic) -> Self {
        EarlyEnd::Error(Box::new(error))
    }
}

struct CyclePass<'d, 'm> {
    tracer: Tracer<'d, 'm>,
    done: &'d FinishedSearch,
    counts: Option<Filter<'m>>,
    budget: &'m Budget,
    polled: u64,
}

type KeyedStep = (u64, super::expander::Successor);

impl CyclePass<'_, '_> {
    /// Computes the selected steps of a state.
    fn steps(&mut self, key: u64) -> Result<Vec<super::expander::Successor>, EarlyEnd> {
        self.polled += 1;
        if self.polled.is_multiple_of(4096) {
            self.budget.check(0).map_err(EarlyEnd::Stop)?;
        }
        let counts = self.counts;
        let all = self.tracer.successors(key)?;
        Ok(all
            .iter()
            .copied()
            .filter(|s| counts.is_none_or(|c| c(s.group as usize, s.label)))
            .collect())
    }
    /// Returns the cell with the number of incoming steps or the mark of a state.
    fn number(&self, key: u64) -> Result<&std::sync::atomic::AtomicU32, EarlyEnd> {
        let table = &self.done.store.table;
        let place = table
            .find(key)
            .ok_or_else(|| Diagnostic::new(Stage::Internal, "a target is not in the store"))?;
        Ok(table.number(place))
    }
    fn set(&self, key: u64, mark: StateStatus) -> Result<(), EarlyEnd> {
        self.number(key)?.store(mark.number(), Ordering::Relaxed);
        Ok(())
    }
    fn cycle(&mut self) -> Result<Option<Vec<KeyedStep>>, EarlyEnd> {
        let table = &self.done.store.table;
        for (_, key) in table.entries() {
            for step in self.steps(key)? {
                self.number(step.key)?.fetch_add(1, Ordering::Relaxed);
            }
        }
        let zero = |(place, key): (u64, u64)| {
            (table.number(place).load(Ordering::Relaxed) == 0).then_some(key)
        };
        let mut ready: Vec<u64> = table.entries().filter_map(zero).collect();
        let mut peeled = 0;
        while let Some(key) = ready.pop() {
            peeled += 1;
            for step in self.steps(key)? {
                if self.number(step.key)?.fetch_sub(1, Ordering::Relaxed) == 1 {
                    ready.push(step.key);
                }
            }
        }
        if peeled == table.len() {
            return Ok(None);
        }
        for (place, key) in table.entries() {
            if let StateStatus::Steps(1..) =
                StateStatus::of(table.number(place).load(Ordering::Relaxed))
                && let Some(cycle) = self.depth_first(key)?
            {
                return Ok(Some(cycle));
            }
        }
        Err(Diagnostic::new(Stage::Internal, "states are left without a cycle").into())
    }
    /// Searches for a cycle among the remaining states reachable from `from`.
    fn depth_first(&mut self, from: u64) -> Result<Option<Vec<KeyedStep>>, EarlyEnd> {
        let mut frames = vec![(from, self.steps(from)?, 0)];
        self.set(from, StateStatus::OnStack)?;
        while let Some((key, steps, next)) = frames.last_mut() {
            let Some(&step) = steps.get(*next) else {
                let key = *key;
                self.set(key, StateStatus::Finished)?;
                frames.pop();
                continue;
            };
            *next += 1;
            match StateStatus::of(self.number(step.key)?.load(Ordering::Relaxed)) {
                StateStatus::OnStack => {
                    let start = frames
                        .iter()
                        .position(|f| f.0 == step.key)
                        .ok_or_else(|| Diagnostic::internal("a state on the path is not on it"))?;
                    return Ok(Some(
                        frames[start..]
                            .iter()
                            .map(|(key, steps, next)| (*key, steps[next - 1]))
                            .collect(),
                    ));
                }
                StateStatus::Steps(0) | StateStatus::Finished => {}
                StateStatus::Steps(_) => {
                    self.set(step.key, StateStatus::OnStack)?;
                    let steps = self.steps(step.key)?;
                    frames.push((step.key, steps, 0));
                }
            }
        }
        Ok(None)
    }
    /// Finds a shortest path from the initial state to the cycle.
    fn lasso(&mut self, mut cycle: Vec<KeyedStep>) -> Result<Lasso, EarlyEnd> {
        for (place, _) in self.done.store.table.entries() {
            self.done.store.table.number(place).store(0, Ordering::Relaxed);
        }
        for (key, _) in &cycle {
            self.set(*key, StateStatus::OnStack)?;
        }
        let initial = self.done.initial;
        let mut levels = vec![vec![initial]];
        let mut entry = (StateStatus::of(self.number(initial)?.swap(1, Ordering::Relaxed))
            == StateStatus::OnStack)
            .then_some(initial);
        while entry.is_none() {
            let mut next = Vec::new();
            for key in levels[levels.len() - 1].clone() {
                for step in self.tracer.successors(key)?.to_vec() {
                    match StateStatus::of(self.number(step.key)?.swap(1, Ordering::Relaxed)) {
                        StateStatus::Steps(0) => next.push(step.key),
                        StateStatus::OnStack => {
                            entry = entry.or(Some(step.key));
                            next.push(step.key);
                        }
                        StateStatus::Steps(_) | StateStatus::Finished => {}
                    }
                }
            }
            if next.is_empty() {
                return Err(Diagnostic::new(Stage::Internal, "a cycle is not reachable").into());
            }
            levels.push(next);
        }
        let entry = entry.ok_or_else(|| Diagnostic::internal("no path to the cycle was found"))?;
        let start = cycle
            .iter()
            .position(|t| t.0 == entry)
            .ok_or_else(|| Diagnostic::internal("the path misses the cycle"))?;
        cycle.rotate_left(start);
        let steps = self.tracer.back(&levels, entry)?;
        let whole = self
            .tracer
            .concrete(initial, &steps.iter().chain(&cycle).copied().collect::<Vec<_>>())?;
        // The cycle is the part after the prefix.
        let prefix = self.tracer.concrete(initial, &steps)?;
        let cycle = whole[prefix.len()..].to_vec();
        Ok(Lasso { prefix, cycle })
    }
}
