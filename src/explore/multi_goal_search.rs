//! Shortest paths to several goal states or steps, and to divergence (infinite sequences of tau
//! steps).
//!
//! In: a model and a goal. Out: paths, the shortest first, each to a different state. Breadth-first
//! search on the store of [`OnTheFlySuccessors`], in one thread. Each state stores its discovering
//! step (12 bytes), so all wanted paths cost one search; for a single path [`super::goal_search`]
//! is faster and uses all threads. For divergence all states are explored, and the cycles of tau
//! steps are found as strongly connected components (Tarjan, 1972, with an explicit stack). Each
//! component yields its first discovered state with a shortest cycle through it. Confluent steps
//! have no priority. Invariant: each path starts at the initial vector and takes steps of the
//! model.

use super::goal_search::PathStep;
use super::stubborn::{PartialOrder, Stubborn, Visibility};
use super::{OnTheFlySuccessors, Options};
use mu_base::components::{self, components};
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, Stop};
use mu_model::Model;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

/// Goal of the search.
#[derive(Clone, Copy)]
pub enum PathGoal<'a> {
    /// A state without steps that satisfies the predicate.
    Deadlock(&'a dyn Fn(&[u32]) -> bool),
    /// A step with a group and label that satisfy the predicate.
    Step(&'a dyn Fn(usize, LabelId) -> bool),
    /// A cycle of tau steps.
    Divergence,
}

/// A path or lasso to a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LassoPath {
    /// Its steps from the initial vector.
    pub steps: Vec<PathStep>,
    /// For a lasso: the number of steps before its cycle.
    pub cycle_start: Option<usize>,
}

/// Result of [`find_paths`].
#[derive(Clone, Debug)]
pub struct FoundPaths {
    /// The paths, at most as many as requested.
    pub paths: Vec<LassoPath>,
    /// Number of states found.
    pub states: u64,
    /// Effect of partial-order reduction.
    pub partial_order: PartialOrder,
    /// Reason for the end of the search; complete if enough paths were found or all states were
    /// explored.
    pub stop: Stop,
}

/// A step: group, label, target.
type FoundStep = (u32, LabelId, StateId);

struct PathSearch<'m> {
    lazy: OnTheFlySuccessors<'m>,
    /// By state: its predecessor, and the step from there.
    parents: Vec<(u32, u32, LabelId)>,
}

impl PathSearch<'_> {
    fn discover(&mut self, from: u32, steps: &[FoundStep]) {
        for (group, label, _) in
            steps.iter().filter(|s| s.2.index() >= self.parents.len()).collect::<Vec<_>>()
        {
            self.parents.push((from, *group, *label));
        }
    }

    /// Returns the path to a state.
    fn path_to(&self, state: u32) -> Vec<PathStep> {
        let mut at = state;
        let mut steps = Vec::new();
        while at != 0 {
            let (before, group, label) = self.parents[at as usize];
            steps.push(PathStep {
                label,
                group: group as usize,
                state: self.lazy.vector(StateId::of(at)),
            });
            at = before;
        }
        steps.reverse();
        steps
    }
}

/// Searches for up to `most` paths. `report` receives each path as soon as it is found; if it ends
/// with a limit, so does the search.
pub fn find_paths(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    sought: PathGoal<'_>,
    most: usize,
    report: &mut dyn FnMut(&LassoPath) -> Result<(), Diagnostic>,
) -> Result<FoundPaths, Diagnostic> {
    let options = options.without_confluence();
    // Several goal steps, and cycles, depend on the order of all steps.
    let stubborn = match sought {
        PathGoal::Deadlock(_) => {
            Some(Stubborn::with(model, &options, &Visibility::deadlocks(model)))
        }
        _ => None,
    }
    .transpose();
    let lazy = OnTheFlySuccessors::new(model, &options)?
        .with_partial_order_reduction(stubborn.as_ref().ok().and_then(Option::as_ref));
    // Another group than the wanted one may have the same step.
    let lazy = if matches!(sought, PathGoal::Step(_)) { lazy.by_group() } else { lazy };
    let mut search = PathSearch { lazy, parents: vec![(0, 0, LabelId::TAU)] };
    let mut paths = Vec::new();
    let mut steps: Vec<FoundStep> = Vec::new();
    // Tau steps: start of each state's row, and targets.
    let (mut starts, mut hidden): (Vec<usize>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut next = 0;
    let mut stop = Stop::Complete;
    'search: while next < search.lazy.state_count() && paths.len() < most {
        let memory = || if next.is_multiple_of(4096) { budget.check_memory() } else { Ok(()) };
        if let Err(why) = budget.check(search.lazy.state_count() as u64).and_then(|()| memory()) {
            stop = why;
            break;
        }
        let state = StateId::new(next);
        match search.lazy.steps(state, &mut steps) {
            Err(Diagnostic { stop: Some(why), .. }) => {
                stop = why;
                break;
            }
            result => result?,
        }
        search.discover(state.number(), &new_targets(&steps, search.parents.len()));
        match sought {
            PathGoal::Deadlock(test) if steps.is_empty() && test(&search.lazy.vector(state)) => {
                let path = LassoPath { steps: search.path_to(state.number()), cycle_start: None };
                if let Some(why) = limit(report(&path))? {
                    stop = why;
                    break;
                }
                paths.push(path);
            }
            PathGoal::Step(test) => {
                let mut met = HashSet::new();
                let wanted = steps.iter().filter(|s| test(s.0 as usize, s.1));
                for (group, label, target) in
                    wanted.filter(|s| met.insert((s.1, s.2))).take(most - paths.len())
                {
                    let mut path = search.path_to(state.number());
                    path.push(PathStep {
                        label: *label,
                        group: *group as usize,
                        state: search.lazy.vector(*target),
                    });
                    let path = LassoPath { steps: path, cycle_start: None };
                    if let Some(why) = limit(report(&path))? {
                        stop = why;
                        break 'search;
                    }
                    paths.push(path);
                }
            }
            PathGoal::Divergence => {
                starts.push(hidden.len());
                hidden.extend(steps.iter().filter(|s| s.1 == LabelId::TAU).map(|s| s.2.number()));
            }
            PathGoal::Deadlock(_) => {}
        }
        next += 1;
    }
    if matches!(sought, PathGoal::Divergence) {
        starts.push(hidden.len());
        // The tau steps of unexpanded states are unknown.
        let graph = TauGraph { starts, targets: hidden };
        // A limit that ended the search does not apply to the lassos in its explored part.
        let _grace = budget.grace();
        let mut more = None;
        for first in graph.cyclic().into_iter().take(most) {
            let found = search.divergence(&graph, first).and_then(|lasso| {
                report(&lasso)?;
                paths.push(lasso);
                Ok(())
            });
            more = limit(found)?;
            if more.is_some() {
                break;
            }
        }
        stop = if paths.len() == most { Stop::Complete } else { more.unwrap_or(stop) };
    }
    let partial_order = match &stubborn {
        Err(why) => PartialOrder::Unused(*why),
        Ok(stubborn) => PartialOrder::of(stubborn.is_some(), false, search.lazy.take_savings()),
    };
    Ok(FoundPaths { states: search.lazy.state_count() as u64, paths, partial_order, stop })
}

/// Returns the limit that a result ended with; `None` if it is complete.
fn limit(result: Result<(), Diagnostic>) -> Result<Option<Stop>, Diagnostic> {
    match result {
        Err(Diagnostic { stop: Some(stop), .. }) => Ok(Some(stop)),
        result => result.map(|()| None),
    }
}

/// Returns the first step to each new state, in the order of their numbers.
fn new_targets(steps: &[FoundStep], known: usize) -> Vec<FoundStep> {
    let mut new: Vec<FoundStep> = steps.iter().copied().filter(|s| s.2.index() >= known).collect();
    new.sort_by_key(|s| s.2);
    new.dedup_by_key(|s| s.2);
    new
}

impl PathSearch<'_> {
    /// Returns the lasso to a state of a component of tau steps, with a shortest cycle through it.
    fn divergence(&mut self, graph: &TauGraph, first: u32) -> Result<LassoPath, Diagnostic> {
        let prefix = self.path_to(first);
        let mut before: HashMap<u32, u32> = HashMap::new();
        let mut queue = VecDeque::from([first]);
        'search: while let Some(at) = queue.pop_front() {
            for &to in graph.of(at) {
                if let std::collections::hash_map::Entry::Vacant(e) = before.entry(to) {
                    e.insert(at);
                    if to == first {
                        break 'search;
                    }
                    queue.push_back(to);
                }
            }
        }
        let mut round = vec![first];
        let mut at = before[&first];
        while at != first {
            round.push(at);
            at = before[&at];
        }
        round.push(first);
        round.reverse();
        let mut steps = prefix;
        let cycle_start = Some(steps.len());
        let mut found: Vec<FoundStep> = Vec::new();
        for pair in round.windows(2) {
            self.lazy.steps(StateId::of(pair[0]), &mut found)?;
            let step = found.iter().find(|s| s.1 == LabelId::TAU && s.2.number() == pair[1]);
            let Some((group, label, to)) = step else {
                return Err(Diagnostic::new(
                    mu_base::Stage::Internal,
                    "a step of a cycle is not a step",
                ));
            };
            steps.push(PathStep {
                label: *label,
                group: *group as usize,
                state: self.lazy.vector(*to),
            });
        }
        Ok(LassoPath { steps, cycle_start })
    }
}

/// The graph of tau steps.
struct TauGraph {
    starts: Vec<usize>,
    targets: Vec<u32>,
}

impl TauGraph {
    fn of(&self, state: u32) -> &[u32] {
        match self.starts.get(state as usize + 1) {
            Some(&end) => &self.targets[self.starts[state as usize]..end],
            None => &[],
        }
    }

    /// Returns the least state of each strongly connected component with a cycle, in ascending
    /// order.
    fn cyclic(&self) -> Vec<u32> {
        let found = components(self);
        let round = |component: &&[u32]| {
            component.len() > 1 || self.of(component[0]).contains(&component[0])
        };
        let mut out: Vec<u32> =
            found.iter().filter(round).filter_map(|c| c.iter().copied().min()).collect();
        out.sort_unstable();
        out
    }
}

impl components::Graph for TauGraph {
    fn vertices(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }
    fn edges(&self, vertex: u32) -> Range<u64> {
        self.starts[vertex as usize] as u64..self.starts[vertex as usize + 1] as u64
    }
    /// Edges to unexpanded states are omitted.
    fn target(&self, edge: u64) -> Option<u32> {
        Some(self.targets[edge as usize]).filter(|to| (*to as usize) < self.vertices())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::models::{Shape, random};
    use crate::tests::small;
    use crate::{SearchTarget, Silent, explore_lts, find};
    use mu_model::hand::HandModel;

    /// Finds deadlocks by a naive pass over the whole transition system.
    fn naive_deadlocks(model: &dyn Model) -> Vec<usize> {
        let (_, lts) = explore_lts(model, &small(), &Budget::default(), &Silent).unwrap();
        let mut depth = vec![usize::MAX; lts.state_count()];
        depth[0] = 0;
        let mut queue = VecDeque::from([0usize]);
        while let Some(s) = queue.pop_front() {
            for t in &lts.targets[lts.offsets[s] as usize..lts.offsets[s + 1] as usize] {
                if depth[t.index()] == usize::MAX {
                    depth[t.index()] = depth[s] + 1;
                    queue.push_back(t.index());
                }
            }
        }
        let mut out: Vec<usize> = (0..lts.state_count())
            .filter(|&s| lts.offsets[s] == lts.offsets[s + 1])
            .map(|s| depth[s])
            .collect();
        out.sort_unstable();
        out
    }

    #[test]
    fn all_deadlocks_by_shortest_paths() {
        let mut met = 0;
        for seed in 0..200 {
            let model =
                random(seed, Shape { slots: 4, values: 3, components: 2, groups: 5, labels: 3 });
            let seen = find_paths(
                &model,
                &small(),
                &Budget::default(),
                PathGoal::Deadlock(&|_| true),
                usize::MAX,
                &mut |_| Ok(()),
            )
            .unwrap();
            let lengths: Vec<usize> = seen.paths.iter().map(|w| w.steps.len()).collect();
            assert_eq!(lengths, naive_deadlocks(&model), "seed {seed}");
            let found = find(&model, &small(), &Budget::default(), &Silent, SearchTarget::Deadlock)
                .unwrap();
            assert_eq!(found.path.map(|p| p.len()), lengths.first().copied(), "seed {seed}");
            met += usize::from(lengths.len() > 1);
            for way in &seen.paths {
                check_path(&model, way, seed);
            }
        }
        assert!(met > 10, "{met}");
    }

    /// Checks that every step of a path is a step of the model.
    fn check_path(model: &dyn Model, way: &LassoPath, seed: u64) {
        let mut evaluated = mu_model::step_cache::StepCache::new(model);
        let mut at = model.initial();
        let mut states = vec![at.clone()];
        for step in &way.steps {
            let steps = evaluated.steps(step.group as u32, &at).unwrap().clone();
            let fits = |i: usize| {
                steps.labels[i] == step.label
                    && mu_model::step_cache::successor(model, step.group as u32, &at, &steps, i)
                        == step.state
            };
            assert!((0..steps.labels.len()).any(fits), "seed {seed}");
            at.clone_from(&step.state);
            states.push(at.clone());
        }
        if let Some(back) = way.cycle_start {
            assert_eq!(states[back], at, "seed {seed}");
        }
    }

    #[test]
    fn a_divergence_is_found_by_a_shortest_path() {
        // 0 -a-> 1 -b-> 2 -tau-> 3 -tau-> 2; 1 -tau-> 4 -tau-> 5 (no cycle).
        let mut model = HandModel::new();
        let x = model.slot("x", 0, true, 0);
        for (label, from, to) in
            [("a", 0, 1), ("b", 1, 2), ("tau", 2, 3), ("tau", 3, 2), ("tau", 1, 4), ("tau", 4, 5)]
        {
            model.group(label, &[(x, from)], &[], &[x], move |_, e| e.step(label, &[to]));
        }
        let seen =
            find_paths(&model, &small(), &Budget::default(), PathGoal::Divergence, 5, &mut |_| {
                Ok(())
            })
            .unwrap();
        assert_eq!(seen.paths.len(), 1);
        assert_eq!((seen.paths[0].steps.len(), seen.paths[0].cycle_start), (4, Some(2)));
        check_path(&model, &seen.paths[0], 0);
        let step = find_paths(
            &model,
            &small(),
            &Budget::default(),
            PathGoal::Step(&|_, l| model.label_text(l) == "b"),
            5,
            &mut |_| Ok(()),
        )
        .unwrap();
        assert_eq!(step.paths.iter().map(|w| w.steps.len()).collect::<Vec<_>>(), [2]);
    }
}
