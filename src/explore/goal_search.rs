//! Breadth-first search for a step or a deadlock, with a shortest path to it.
//!
//! In: a model and a target. Out: true if it is reached, and the steps from the initial state. No
//! parents are stored. The search stores the states of each level while they are few (8 bytes a
//! state); if it dropped them before it reached the target, it runs again and stores them. The path
//! is then found backwards, level by level: states of the previous level are expanded until one
//! steps to the current state. Cost: at most two explorations up to the target's level and one more
//! pass over its states.
//!
//! Partial-order reduction ([`super::stubborn`]) leaves out steps but preserves shortest paths.
//!
//! With confluent groups the path is one of the full graph: the confluent steps in between are
//! reinserted.

use std::collections::HashMap;

use super::expander::{Expander, Halt, Successor};
pub(crate) use super::search::StepTest as Filter;
use super::search::{FinishedSearch, Goal, GoalHit, run};
use super::store::Store;
use super::stubborn::{PartialOrder, Stubborn, Visibility};
use super::symmetry::{Symmetries, with_verified_symmetries};
use super::{Options, Outcome, Progress};
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, Stage};
use mu_model::Model;

/// Number of states up to which the first search stores levels.
const MAX_STORED_LEVELS: u64 = 8 << 20;

/// Target of the search.
#[derive(Clone, Copy)]
pub enum SearchTarget<'a> {
    /// A step with a group and label that satisfy the predicate.
    Step(&'a (dyn Fn(usize, LabelId) -> bool + Sync)),
    /// As `Step`, with the groups that may have such steps.
    StepOf(&'a Visibility, &'a (dyn Fn(usize, LabelId) -> bool + Sync)),
    /// A state without steps.
    Deadlock,
}

/// A step of a path with its target state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// Label.
    pub label: LabelId,
    /// The group that made the step.
    pub group: usize,
    /// The target state.
    pub state: Vec<u32>,
}

/// Result of [`find`].
#[derive(Clone, Debug)]
pub struct FindOutcome {
    /// Counts; `stop` is `Complete` if the target was reached or all states were explored.
    pub outcome: Outcome,
    /// True if the target was reached.
    pub reached: bool,
    /// The steps from the initial vector to the target, including the target step. `None` if it was
    /// not reached, or if a limit stopped the second search.
    pub path: Option<Vec<PathStep>>,
}

/// Searches breadth first up to the level that reaches the target.
pub fn find(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    progress: &dyn Progress,
    target: SearchTarget<'_>,
) -> Result<FindOutcome, Diagnostic> {
    let (goal, visibility) = match target {
        SearchTarget::Step(test) => (Goal { step: Some(test), ..Goal::default() }, None),
        SearchTarget::StepOf(visibility, test) => {
            (Goal { step: Some(test), ..Goal::default() }, Some(visibility.clone()))
        }
        SearchTarget::Deadlock => {
            (Goal { deadlock: true, ..Goal::default() }, Some(Visibility::deadlocks(model)))
        }
    };
    let stubborn =
        visibility.map(|visibility| Stubborn::with(model, options, &visibility)).transpose();
    let mut goal = Goal {
        levels: MAX_STORED_LEVELS,
        stubborn: stubborn.as_ref().ok().and_then(Option::as_ref),
        ..goal
    };
    let mut done = run(model, options, budget, progress, goal)?;
    if let Err(why) = stubborn {
        done.outcome.partial_order = PartialOrder::Unused(why);
    }
    if done.hits.is_empty() {
        return Ok(FindOutcome { outcome: done.outcome, reached: false, path: None });
    }
    let outcome = Outcome { stop: mu_base::Stop::Complete, ..done.outcome.clone() };
    let done = if done.levels.is_empty() {
        drop(done);
        goal.levels = u64::MAX;
        run(model, options, budget, progress, goal)?
    } else {
        done
    };
    let path = match pick(model, &done) {
        None => None,
        Some(hit) => {
            let mut tracer = Tracer::new(model, options, &done, None);
            let mut steps = tracer.back(&done.levels, hit.source)?;
            steps.extend(hit.step.map(|s| (hit.source, s)));
            Some(tracer.concrete(done.initial, &steps)?)
        }
    };
    Ok(FindOutcome { outcome, reached: true, path })
}

/// Searches as [`find`], but first one state of each orbit under the symmetries of the model, which
/// are verified at every evaluation: if it does not reach the target, none is reachable, and there
/// is no path to report. Cheaper if the target is probably not reached. The counts of the outcome
/// are those of all states.
pub fn find_or_refute(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    progress: &dyn Progress,
    target: SearchTarget<'_>,
) -> Result<FindOutcome, Diagnostic> {
    if let SearchTarget::Step(test) | SearchTarget::StepOf(_, test) = target
        && options.symmetry
        && !model.symmetries().is_empty()
    {
        let (done, dropped) = with_verified_symmetries(model, options, |symmetries| {
            let symmetries: Option<&Symmetries> = symmetries.map(|s| &*s);
            let goal = Goal { step: Some(test), symmetries, ..Goal::default() };
            run(model, options, budget, progress, goal)
        })?;
        if done.hits.is_empty() {
            let outcome = Outcome { dropped, ..done.outcome };
            return Ok(FindOutcome { outcome, reached: false, path: None });
        }
    }
    find(model, options, budget, progress, target)
}

/// Returns the least hit by vector and label text, so that the answer does not depend on threads.
fn pick(model: &dyn Model, done: &FinishedSearch) -> Option<GoalHit> {
    let rank = |h: &GoalHit| {
        (
            done.store.vector(h.source),
            h.step.map(|s| (model.label_text(s.label), s.group, done.store.vector(s.key))),
        )
    };
    done.hits.iter().copied().min_by_key(rank)
}

/// Reconstructs paths over a finished search.
pub(crate) struct Tracer<'d, 'm> {
    store: &'d Store,
    expander: Expander<'m>,
    model: &'m dyn Model,
    found: Vec<Successor>,
}

pub(crate) fn halt_error(halt: Halt) -> Diagnostic {
    match halt {
        Halt::Error(error) => *error,
        Halt::Overflow => Diagnostic::new(
            Stage::Internal,
            "an explored state has a step to a state that is not in the store",
        ),
    }
}

impl<'d, 'm> Tracer<'d, 'm> {
    /// Uses the store and the cache of a search, which explored all states or representatives under
    /// these symmetries.
    pub fn new(
        model: &'m dyn Model,
        options: &Options,
        done: &'d FinishedSearch,
        symmetries: Option<&'m Symmetries>,
    ) -> Self {
        let mut expander =
            Expander::new(model, done.shared_cache.clone(), options).with_symmetries(symmetries);
        expander.follow(&done.store);
        Self { store: &done.store, expander, model, found: Vec::new() }
    }
    /// Does the same as [`Expander::with_preferred_steps`].
    pub fn with_preferred_steps(mut self, test: Option<Filter<'m>>) -> Self {
        self.expander = self.expander.with_preferred_steps(test);
        self
    }
    /// Steps of a state.
    pub fn successors(&mut self, key: u64) -> Result<&[Successor], Diagnostic> {
        self.expander.successors(self.store, key, &mut self.found).map_err(halt_error)?;
        Ok(&self.found)
    }
    /// Returns a path from level 0 to a state of the last level, as `(source, step)`.
    pub fn back(
        &mut self,
        levels: &[Vec<u64>],
        target: u64,
    ) -> Result<Vec<(u64, Successor)>, Diagnostic> {
        let mut path = Vec::new();
        let mut at = target;
        for level in levels.iter().rev().skip(1) {
            let mut before = None;
            for &key in level {
                if let Some(&step) = self.successors(key)?.iter().find(|s| s.key == at) {
                    before = Some((key, step));
                    break;
                }
            }
            let Some(step) = before else {
                return Err(Diagnostic::new(
                    Stage::Internal,
                    "no step leads to a state that was reached",
                ));
            };
            at = step.0;
            path.push(step);
        }
        path.reverse();
        Ok(path)
    }
    /// Returns the path in the full graph, from the model's initial vector.
    pub fn concrete(
        &mut self,
        initial: u64,
        steps: &[(u64, Successor)],
    ) -> Result<Vec<PathStep>, Diagnostic> {
        let mut path = Vec::new();
        let first = self.store.encode(&self.model.initial()).map_err(|o| halt_error(o.into()))?;
        self.confluent(first, initial, &mut path)?;
        for &(source, step) in steps {
            let mut raw = Vec::new();
            self.expander.raw_successors(self.store, source, &mut raw).map_err(halt_error)?;
            let mut taken = None;
            for s in raw.iter().filter(|s| s.label == step.label && s.group == step.group) {
                if self.expander.representative(self.store, s.key).map_err(halt_error)? == step.key
                {
                    taken = Some(s.key);
                    break;
                }
            }
            let Some(target) = taken else {
                return Err(Diagnostic::new(
                    Stage::Internal,
                    "a step of a path is not a step of the model",
                ));
            };
            path.push(PathStep {
                label: step.label,
                group: step.group as usize,
                state: self.store.vector(target),
            });
            self.confluent(target, step.key, &mut path)?;
        }
        Ok(path)
    }
    /// Adds confluent steps from one state to another, breadth first.
    fn confluent(
        &mut self,
        from: u64,
        to: u64,
        path: &mut Vec<PathStep>,
    ) -> Result<(), Diagnostic> {
        let mut parents: HashMap<u64, Option<(u64, Successor)>> = HashMap::from([(from, None)]);
        let mut queue = std::collections::VecDeque::from([from]);
        let mut raw = Vec::new();
        while let Some(key) = queue.pop_front() {
            if key == to {
                break;
            }
            raw.clear();
            self.expander.confluent_steps(self.store, key, &mut raw).map_err(halt_error)?;
            for &step in &raw {
                if let std::collections::hash_map::Entry::Vacant(e) = parents.entry(step.key) {
                    e.insert(Some((key, step)));
                    queue.push_back(step.key);
                }
            }
        }
        let mut steps = Vec::new();
        let mut at = to;
        while let Some(Some((before, step))) = parents.get(&at) {
            steps.push(PathStep {
                label: step.label,
                group: step.group as usize,
                state: self.store.vector(at),
            });
            at = *before;
        }
        path.extend(steps.into_iter().rev());
        Ok(())
    }
}
