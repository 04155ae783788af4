//! The symbolic engine against naive exploration, on random models.

use super::ldd::ManagerSettings;
use super::*;
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, Limits, Stop};
use mu_model::{Group, Model, Slot, SlotInfo, Steps, Worker};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::rc::Rc;

#[path = "../../tests/support/models.rs"]
mod models;

/// Returns a hash of some numbers.
fn scramble(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0x1234_5678, |acc, n| mu_base::random::Random::new(acc ^ n).next_u64())
}

/// A model with steps drawn from a seed.
pub(super) struct Random {
    seed: u64,
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
    values: u32,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut at = 0;
        let mut draw = |n: u64| {
            at += 1;
            scramble([seed, at]) % n
        };
        let slots = 1 + draw(6) as u32;
        let values = 2 + draw(4) as u32;
        let groups = (0..1 + draw(9))
            .map(|i| {
                let mut pick = |chance: u64| -> Vec<Slot> {
                    (0..slots).filter(|_| draw(10) < chance).collect()
                };
                let (reads, writes, tests) = (pick(3), pick(3), pick(2));
                Group {
                    name: format!("g{i}"),
                    requires: tests
                        .into_iter()
                        .map(|s| (s, draw(u64::from(values)) as u32))
                        .collect(),
                    tests: reads.clone(),
                    reads,
                    writes,
                    actions: None,
                    hidden: Vec::new(),
                    tau: false,
                    confluent: false,
                }
            })
            .collect();
        let slots = (0..slots)
            .map(|i| SlotInfo { name: format!("s{i}"), component: i / 2, control: false })
            .collect();
        Random { seed, slots, groups, values }
    }

    /// Returns states, transitions, deadlocks and layers, by enumeration; and for each label below
    /// 4 the length of a shortest path to it.
    pub fn naive(&self) -> (usize, usize, usize, usize, Vec<Option<usize>>) {
        let mut seen = HashSet::from([self.initial()]);
        let mut queue = VecDeque::from([(self.initial(), 0)]);
        let (mut transitions, mut deadlocks, mut depth) = (0, 0, 0);
        let mut first = vec![None; 4];
        while let Some((state, layer)) = queue.pop_front() {
            depth = layer;
            let all = self.steps_from(&state);
            for (label, _) in &all {
                first[label.index()].get_or_insert(layer + 1);
            }
            transitions += all.len();
            deadlocks += usize::from(all.is_empty());
            for (_, next) in all {
                if seen.insert(next.clone()) {
                    queue.push_back((next, layer + 1));
                }
            }
        }
        (seen.len(), transitions, deadlocks, depth, first)
    }

    /// Returns all steps from a state.
    fn steps_from(&self, state: &[u32]) -> BTreeSet<(LabelId, Vec<u32>)> {
        let mut worker = self.worker();
        let mut all = BTreeSet::new();
        for (i, g) in self.groups.iter().enumerate() {
            if g.requires.iter().any(|&(s, v)| state[s as usize] != v) {
                continue;
            }
            let reads: Vec<u32> = g.reads.iter().map(|&s| state[s as usize]).collect();
            let mut steps = Steps::default();
            worker.steps(i, &reads, &mut steps).unwrap();
            for (j, &label) in steps.labels.iter().enumerate() {
                let mut next = state.to_vec();
                for (&s, &v) in g.writes.iter().zip(&steps.values[j * g.writes.len()..]) {
                    next[s as usize] = v;
                }
                all.insert((label, next));
            }
        }
        all
    }
}

impl Model for Random {
    fn slots(&self) -> &[SlotInfo] {
        &self.slots
    }
    fn groups(&self) -> &[Group] {
        &self.groups
    }
    fn initial(&self) -> Vec<u32> {
        vec![0; self.slots.len()]
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(RandomWorker(self))
    }
    fn label_text(&self, label: LabelId) -> String {
        format!("a{}", label.number())
    }
    fn label_count(&self) -> usize {
        4
    }
    fn value_text(&self, _: Slot, value: u32) -> String {
        value.to_string()
    }
}

struct RandomWorker<'a>(&'a Random);

impl Worker for RandomWorker<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        let writes = self.0.groups[group].writes.len();
        let key = |extra: u64| {
            scramble(
                [self.0.seed, group as u64, extra]
                    .into_iter()
                    .chain(reads.iter().map(|&v| u64::from(v))),
            )
        };
        for step in 0..key(0) % 4 {
            // Labels above 1 are rare.
            let label = key(step * 100 + 1) % 64;
            out.labels.push(LabelId::of(if label < 2 {
                label as u32 + 2
            } else {
                label as u32 & 1
            }));
            out.values.extend(
                (0..writes)
                    .map(|i| (key(step * 100 + 2 + i as u64) % u64::from(self.0.values)) as u32),
            );
        }
        Ok(())
    }
}

fn tiny() -> ManagerSettings {
    ManagerSettings {
        initial_bits: 4,
        max_cache_bits: 6,
        collect_at: 1,
        max_bytes: None,
        max_made: None,
    }
}

#[test]
fn every_way_counts_as_enumeration_does() {
    for seed in 0..80 {
        let model = Random::new(seed);
        let (states, transitions, deadlocks, depth, _) = model.naive();
        let slots = model.slots().len() as Slot;
        for strategy in [Strategy::BreadthFirst, Strategy::Chaining, Strategy::Saturation] {
            for (order, merge, settings) in [
                (
                    if seed % 8 == 0 { SlotOrder::Tuned } else { SlotOrder::Static },
                    true,
                    ManagerSettings { initial_bits: 8, ..ManagerSettings::default() },
                ),
                (SlotOrder::Given, false, tiny()),
                (SlotOrder::Fixed((0..slots).rev().collect()), true, tiny()),
            ] {
                let threads = [1, 2, 4][seed as usize % 3];
                let options = SymbolicOptions {
                    strategy,
                    order,
                    merge,
                    threads,
                    settings,
                    ..SymbolicOptions::default()
                };
                let outcome = reach(&model, &options, &Budget::default()).unwrap();
                let what = format!("seed {seed} {options:?}");
                assert_eq!(outcome.stop, Stop::Complete, "{what}");
                assert_eq!(outcome.states, states.into(), "{what}");
                assert_eq!(outcome.transitions, Some(transitions.into()), "{what}");
                assert_eq!(outcome.deadlocks, Some(deadlocks.into()), "{what}");
                if strategy == Strategy::BreadthFirst {
                    assert_eq!(outcome.levels, Some(depth), "{what}");
                }
            }
        }
    }
}

#[test]
fn limits_are_answers() {
    let large = (0..400).map(Random::new).max_by_key(|m| m.naive().0).unwrap();
    let states = Budget::new(Limits { max_states: Some(10), ..Limits::default() });
    let options =
        SymbolicOptions { strategy: Strategy::BreadthFirst, ..SymbolicOptions::default() };
    assert_eq!(reach(&large, &options, &states).unwrap().stop, Stop::States);
    let stopped = Budget::default();
    stopped.interrupt_flag().store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(reach(&large, &options, &stopped).unwrap().stop, Stop::Interrupted);
    for strategy in [Strategy::BreadthFirst, Strategy::Chaining, Strategy::Saturation] {
        let settings = ManagerSettings { max_bytes: Some(1000), ..tiny() };
        let outcome = reach(
            &large,
            &SymbolicOptions { strategy, settings, threads: 2, ..SymbolicOptions::default() },
            &Budget::default(),
        )
        .unwrap();
        assert_eq!((outcome.stop, outcome.deadlocks), (Stop::Memory, None));
    }
}

/// A resumed search misses no step, regardless of the effort after which it was halted.
#[test]
fn a_search_that_is_resumed_misses_nothing() {
    let mut halted = 0;
    for seed in 0..10 {
        let model = Random::new(seed);
        let (states, transitions, deadlocks, ..) = model.naive();
        for effort in 1..60 {
            let threads = 1 + seed as usize % 3;
            let options = SymbolicOptions {
                threads,
                order: SlotOrder::Given,
                settings: tiny(),
                ..SymbolicOptions::default()
            };
            let budget = Budget::default();
            let outcome = reach::with_threads(&model, &options, &budget, |team| {
                let mut search = reach::ReachSearch::new(&model, &options, &budget, None).unwrap();
                search.set_helpers(team);
                search.manager.set_max_made(Some(effort));
                search.run_once(Strategy::Saturation).unwrap();
                halted += usize::from(search.is_halted());
                search.manager.set_max_made(None);
                search.manager.resume();
                let set = search.run_once(Strategy::Saturation).unwrap();
                search.outcome(set).unwrap()
            });
            let found = (outcome.states, outcome.transitions, outcome.deadlocks);
            assert_eq!(
                found,
                (states.into(), Some(transitions.into()), Some(deadlocks.into())),
                "seed {seed}, effort {effort}"
            );
        }
    }
    assert!(halted > 60, "{halted}");
}

/// Threads that learn together, while tables grow and are collected, find the same states as one
/// thread, with hardly more evaluations.
#[test]
fn threads_that_learn_together_find_what_one_finds() {
    let model = models::arcx(2);
    let run = |threads| {
        let settings = ManagerSettings {
            initial_bits: 6,
            max_cache_bits: 18,
            collect_at: 4_000,
            ..ManagerSettings::default()
        };
        let outcome = reach(
            &model,
            &SymbolicOptions { threads, settings, ..SymbolicOptions::default() },
            &Budget::default(),
        )
        .unwrap();
        assert!(outcome.collections > 1, "{}", outcome.collections);
        (outcome.calls, (outcome.states, outcome.transitions, outcome.deadlocks))
    };
    let (calls, one) = run(1);
    for threads in [2, 3, 4, 2] {
        let (all, many) = run(threads);
        assert_eq!(many, one);
        assert!(
            all >= calls && all < calls * threads as u64,
            "{calls} calls by one, {all} by {threads}"
        );
    }
}

/// A model with a state where the evaluation of steps fails.
struct FailingModel(Random, Vec<u32>);

impl Model for FailingModel {
    fn slots(&self) -> &[SlotInfo] {
        self.0.slots()
    }
    fn groups(&self) -> &[Group] {
        self.0.groups()
    }
    fn initial(&self) -> Vec<u32> {
        self.0.initial()
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(BrokenWorker(self))
    }
    fn label_text(&self, label: LabelId) -> String {
        self.0.label_text(label)
    }
    fn label_count(&self) -> usize {
        4
    }
    fn value_text(&self, _: Slot, value: u32) -> String {
        value.to_string()
    }
}

struct BrokenWorker<'a>(&'a FailingModel);

impl Worker for BrokenWorker<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        if group == 0 && reads == self.0.1 {
            return Err(Diagnostic::new(mu_base::Stage::Data, "a broken step"));
        }
        RandomWorker(&self.0.0).steps(group, reads, out)
    }
}

#[test]
fn an_error_of_the_model_is_that_of_the_search_whoever_meets_it() {
    let (mut broken, mut whole) = (0, 0);
    for seed in 0..200 {
        let model = Random::new(seed);
        let bad: Vec<u32> = model.groups()[0].reads.iter().map(|_| 1).collect();
        let model = FailingModel(model, bad);
        let run = |threads| {
            let options = SymbolicOptions {
                threads,
                order: SlotOrder::Given,
                settings: tiny(),
                ..SymbolicOptions::default()
            };
            reach(&model, &options, &Budget::default()).map(|o| o.states).map_err(|e| e.to_string())
        };
        let one = run(1);
        assert_eq!(run(2), one, "seed {seed}");
        assert_eq!(run(3), one, "seed {seed}");
        broken += usize::from(one.is_err());
        whole += usize::from(one.is_ok());
    }
    assert!(broken > 20 && whole > 20, "{broken} and {whole}");
}

#[test]
fn an_order_must_be_a_permutation() {
    let model = Random::new(1);
    for order in [vec![], vec![0; model.slots().len() + 1], vec![0, 1, 2, 3, 4, 5, 99]] {
        assert!(
            reach(
                &model,
                &SymbolicOptions { order: SlotOrder::Fixed(order), ..SymbolicOptions::default() },
                &Budget::default()
            )
            .is_err()
        );
    }
}

/// Follows a trace by the model's own steps.
fn replay(model: &Random, trace: &GoalPath) {
    let mut state = model.initial();
    assert_eq!(trace.initial, state);
    for (label, next) in &trace.steps {
        assert!(
            model.steps_from(&state).contains(&(*label, next.clone())),
            "no step {label:?} from {state:?} to {next:?}"
        );
        state.clone_from(next);
    }
}

#[test]
fn goals_are_found_by_shortest_paths() {
    let mut found = 0;
    for seed in 0..60 {
        let model = Random::new(seed);
        let (_, _, deadlocks, _, first) = model.naive();
        for strategy in [Strategy::BreadthFirst, Strategy::Chaining, Strategy::Saturation] {
            let threads = 1 + seed as usize % 3;
            let options = SymbolicOptions {
                strategy,
                order: SlotOrder::Static,
                threads,
                settings: tiny(),
                ..SymbolicOptions::default()
            };
            for (label, length) in first.iter().enumerate() {
                let goal = |l: LabelId| l.index() == label;
                let (outcome, trace) =
                    find(&model, &Goal::Label(&goal), &options, &Budget::default()).unwrap();
                assert_eq!(
                    trace.as_ref().map(|t| t.steps.len()),
                    *length,
                    "seed {seed} label {label} {strategy:?}"
                );
                if let Some(trace) = trace {
                    assert!(trace.steps.last().is_some_and(|s| s.0.index() == label));
                    replay(&model, &trace);
                    found += 1;
                } else {
                    assert_eq!(outcome.stop, Stop::Complete);
                }
            }
            let (_, trace) = find(&model, &Goal::Deadlock, &options, &Budget::default()).unwrap();
            assert_eq!(trace.is_some(), deadlocks > 0, "seed {seed}");
            if let Some(trace) = trace {
                replay(&model, &trace);
            }
            let (_, trace) =
                find(&model, &Goal::Value(0, 1), &options, &Budget::default()).unwrap();
            if let Some(trace) = trace {
                assert_eq!(trace.steps.last().map(|s| s.1[0]), Some(1));
                replay(&model, &trace);
            }
        }
    }
    assert!(found > 50);
}

/// Observes labels in sequence; after the last one there is a test, or the last one decides.
struct After {
    labels: &'static [u32],
    stuck: bool,
}

impl Observer for After {
    fn class(&mut self, label: LabelId) -> Result<LabelId, Diagnostic> {
        Ok(label)
    }
    fn step(&mut self, q: u32, label: LabelId) -> Result<Option<Rc<[u32]>>, Diagnostic> {
        let fits = self.labels.get(q as usize) == Some(&label.number());
        Ok(match fits {
            false => Some(Rc::from([q])),
            true if q as usize + 1 == self.labels.len() && !self.stuck => None,
            true => Some(Rc::from([q, q + 1])),
        })
    }
    fn test(&mut self, q: u32, labels: &[LabelId]) -> Result<Option<LabelTest>, Diagnostic> {
        Ok((self.stuck && q as usize == self.labels.len())
            .then(|| LabelTest::Leaves(labels.to_vec())))
    }
    fn hostile(&mut self, _: u32) -> bool {
        false
    }
}

#[test]
fn runs_that_decide_are_shortest() {
    let (mut found, mut absent, mut lengths) = (0, 0, 0);
    for seed in 0..120 {
        let model = Random::new(seed);
        for (labels, stuck) in [
            (&[2][..], false),
            (&[0, 1, 2][..], false),
            (&[3, 2][..], false),
            (&[0, 1][..], true),
            (&[3][..], true),
        ] {
            // By enumeration of pairs.
            let mut seen = HashSet::from([(model.initial(), 0)]);
            let mut queue = VecDeque::from([(model.initial(), 0, 0)]);
            let mut shortest = None;
            while let (Some((state, q, length)), None) = (queue.pop_front(), shortest) {
                let steps = model.steps_from(&state);
                if q == labels.len() {
                    shortest = Some(length).filter(|_| steps.is_empty());
                    continue;
                }
                for (label, next) in steps {
                    let fits = labels[q] == label.number();
                    if fits && q + 1 == labels.len() && !stuck {
                        shortest.get_or_insert(length + 1);
                    }
                    for to in [Some(q), fits.then_some(q + 1)].into_iter().flatten() {
                        if seen.insert((next.clone(), to)) {
                            queue.push_back((next.clone(), to, length + 1));
                        }
                    }
                }
            }
            let options = SymbolicOptions {
                order: SlotOrder::Static,
                threads: 1 + seed as usize % 2,
                settings: tiny(),
                ..SymbolicOptions::default()
            };
            let watched =
                watch(&model, &mut After { labels, stuck }, &[0], &options, &Budget::default())
                    .unwrap();
            assert_eq!(watched.decided, shortest.is_some(), "seed {seed} {labels:?} {stuck}");
            let Some(length) = shortest else {
                absent += 1;
                continue;
            };
            let run = watched.run.expect("no limit");
            assert_eq!(run.trace.steps.len(), length, "seed {seed} {labels:?} {stuck}");
            replay(&model, &run.trace);
            assert_eq!(
                run.end,
                if stuck { DecisionKind::Test(labels.len() as u32) } else { DecisionKind::Label }
            );
            if stuck {
                let (_, last) = &run.trace.steps[length - 1];
                assert!(model.steps_from(last).is_empty());
            }
            found += 1;
            lengths += length;
        }
    }
    assert!(
        found > 30 && absent > 100 && lengths > 3 * found,
        "{found} found, {absent} absent, {lengths} steps"
    );
}

#[test]
fn a_tuned_order_is_a_good_permutation() {
    let model = models::arcx(2);
    let budget = Budget::default();
    let order = order_search::better_order(
        &model,
        &SymbolicOptions::default(),
        &budget,
        &SlotOrder::Given.of(&model),
        300_000,
    )
    .unwrap()
    .unwrap();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..model.slots().len() as Slot));
    let nodes = |order| {
        reach(&model, &SymbolicOptions { order, ..SymbolicOptions::default() }, &budget)
            .unwrap()
            .peak_nodes
    };
    assert!(nodes(SlotOrder::Fixed(order)) * 3 < nodes(SlotOrder::Given));
}

#[test]
fn published_sizes_of_a_multiprocessor() {
    for (max, states, transitions) in
        [(0, 6_052u64, 13_828u64), (1, 275_528, 692_652), (2, 2_771_160, 7_147_580)]
    {
        let outcome =
            reach(&models::arcx(max), &SymbolicOptions::default(), &Budget::default()).unwrap();
        assert_eq!(
            (outcome.states, outcome.transitions),
            (states.into(), Some(transitions.into()))
        );
    }
}
