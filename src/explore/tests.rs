//! Exploration against a naive reference, across threads, caches, sizes and layouts.

use std::collections::{HashMap, HashSet, VecDeque};

use super::*;
use models::{Shape, arcx, counters, random, ring};
use mu_base::ids::{LabelId, StateId};
use mu_base::{Limits, Stage};
use mu_model::hand::HandModel;
use mu_model::{Steps, Symmetry, Worker};

#[path = "../../tests/support/models.rs"]
pub(crate) mod models;

/// Returns options with which small models have several blocks, strips, and pages.
pub(crate) fn small() -> Options {
    Options { tuning: Tuning::small(), ..Options::default() }
}

fn options(threads: usize, cache: bool) -> Options {
    Options { threads, cache, expected_states: 0, ..small() }
}

fn count(model: &dyn Model, options: &Options) -> (u64, u64, u64) {
    let outcome = explore(model, options, &Budget::default(), &Silent).unwrap();
    assert_eq!(outcome.stop, Stop::Complete);
    (outcome.states, outcome.transitions, outcome.deadlocks)
}

type Naive = HashMap<Vec<u32>, (u64, HashSet<(LabelId, Vec<u32>)>)>;

fn naive_steps(
    model: &dyn Model,
    worker: &mut dyn Worker,
    state: &[u32],
    which: &dyn Fn(usize) -> bool,
) -> HashSet<(LabelId, Vec<u32>)> {
    let mut found = HashSet::new();
    for (g, group) in model.groups().iter().enumerate() {
        if which(g) && group.requires.iter().all(|&(s, v)| state[s as usize] == v) {
            let reads: Vec<u32> = group.reads.iter().map(|&s| state[s as usize]).collect();
            let mut steps = Steps::default();
            worker.steps(g, &reads, &mut steps).unwrap();
            for (i, &label) in steps.labels.iter().enumerate() {
                let mut target = state.to_vec();
                for (w, &slot) in group.writes.iter().enumerate() {
                    target[slot as usize] = steps.values[i * group.writes.len() + w];
                }
                found.insert((label, target));
            }
        }
    }
    found
}

/// Computes all states with their distance and steps, by the definition of the interface.
fn naive(model: &dyn Model) -> Naive {
    let mut worker = model.worker();
    let mut seen: Naive = HashMap::new();
    let mut depth = HashMap::from([(model.initial(), 0)]);
    let mut todo = VecDeque::from([model.initial()]);
    while let Some(state) = todo.pop_front() {
        let steps = naive_steps(model, worker.as_mut(), &state, &|_| true);
        let d = depth[&state];
        for (_, target) in &steps {
            if !depth.contains_key(target) {
                depth.insert(target.clone(), d + 1);
                todo.push_back(target.clone());
            }
        }
        seen.insert(state, (d, steps));
    }
    seen
}

const SHAPES: [Shape; 5] = [
    Shape { slots: 4, values: 3, components: 1, groups: 8, labels: 3 },
    Shape { slots: 6, values: 3, components: 3, groups: 9, labels: 2 },
    Shape { slots: 8, values: 2, components: 8, groups: 12, labels: 2 },
    Shape { slots: 3, values: 12, components: 2, groups: 6, labels: 4 },
    Shape { slots: 5, values: 4, components: 2, groups: 70, labels: 2 },
];

#[test]
fn arcx_is_the_same_with_any_threads_and_caches() {
    let small = arcx(0);
    let reduced = |o: Options| o.with_confluence_of(&small);
    for threads in [1, 2, 7] {
        for cache in [true, false] {
            let (s, t, _) = count(&small, &options(threads, cache));
            assert_eq!((s, t), (6_052, 13_828), "{threads} threads, cache {cache}");
            let (s, t, _) = count(&small, &reduced(options(threads, cache)));
            assert_eq!((s, t), (2_909, 5_966), "{threads} threads, cache {cache}, confluence");
        }
    }
    let larger = arcx(1);
    let (s, t, _) = count(&larger, &options(2, true));
    assert_eq!((s, t), (275_528, 692_652));
    let (s, t, _) = count(&larger, &options(2, true).with_confluence_of(&larger));
    assert_eq!((s, t), (171_413, 417_116));
}

#[test]
fn random_models_equal_their_naive_twins() {
    for (n, &shape) in SHAPES.iter().enumerate() {
        for seed in 0..4 {
            let model = random(seed, shape);
            let twin = naive(&model);
            let transitions: usize = twin.values().map(|s| s.1.len()).sum();
            let deadlocks = twin.values().filter(|s| s.1.is_empty()).count();
            let expected = (twin.len() as u64, transitions as u64, deadlocks as u64);
            for (threads, cache) in [(1, true), (1, false), (3, true)] {
                assert_eq!(
                    count(&model, &options(threads, cache)),
                    expected,
                    "shape {n} seed {seed} threads {threads} cache {cache}"
                );
            }
            let tight = Options { cache_bytes: 500, ..options(2, true) };
            assert_eq!(count(&model, &tight), expected, "shape {n} seed {seed} tight caches");
        }
    }
}

/// Checks the sizes of the test models.
#[test]
fn models_have_published_sizes_and_those_of_formulas() {
    let sizes = |model: &dyn Model| {
        let twin = naive(model);
        (twin.len(), twin.values().map(|s| s.1.len()).sum())
    };
    assert_eq!(sizes(&arcx(0)), (6_052, 13_828));
    assert_eq!(sizes(&counters(3, 4)), (125, 3 * 4 * 25));
    assert_eq!(sizes(&ring(3, 4)), (64, 3 * 64));
    let shape = Shape { slots: 5, values: 3, components: 2, groups: 8, labels: 3 };
    for seed in 0..20 {
        assert_eq!(sizes(&random(seed, shape)), sizes(&random(seed, shape)), "seed {seed}");
    }
}

#[test]
fn transition_systems_equal_their_naive_twins() {
    for (n, &shape) in SHAPES.iter().enumerate() {
        for seed in 0..4 {
            let model = random(seed, shape);
            let (outcome, lts) =
                explore_lts(&model, &options(1, true), &Budget::default(), &Silent).unwrap();
            let (_, parallel) =
                explore_lts(&model, &options(3, true), &Budget::default(), &Silent).unwrap();
            assert_eq!(lts.offsets, parallel.offsets, "shape {n} seed {seed}");
            assert_eq!(lts.targets, parallel.targets, "shape {n} seed {seed}");
            assert_eq!(outcome.states as usize, lts.state_count());
            // Traverse both from the initial state: a bijection by distance and steps.
            let twin = naive(&model);
            let mut lazy = OnTheFlySuccessors::new(&model, &options(1, true)).unwrap();
            let mut steps = Vec::new();
            for s in 0..lts.state_count() {
                lazy.successors(StateId::new(s), &mut steps).unwrap();
                assert_eq!(
                    lts.successors(StateId::new(s)).collect::<Vec<_>>(),
                    steps,
                    "shape {n} seed {seed} state {s}"
                );
                let named: HashSet<_> = steps.iter().map(|&(l, t)| (l, lazy.vector(t))).collect();
                assert_eq!(
                    named,
                    twin[&lazy.vector(StateId::new(s))].1,
                    "shape {n} seed {seed} state {s}"
                );
                assert_eq!(named.len(), steps.len());
            }
            assert_eq!(lazy.state_count(), twin.len());
        }
    }
}

/// Replays a path by the definition of the interface.
fn replay(model: &dyn Model, from: Vec<u32>, path: &[PathStep]) -> Vec<u32> {
    let mut worker = model.worker();
    let mut at = from;
    for step in path {
        let steps = naive_steps(model, worker.as_mut(), &at, &|g| g == step.group);
        assert!(
            steps.contains(&(step.label, step.state.clone())),
            "{} from {at:?}",
            model.label_text(step.label)
        );
        at = step.state.clone();
    }
    at
}

#[test]
fn paths_are_shortest_and_replay() {
    for (n, &shape) in SHAPES.iter().enumerate() {
        for seed in 0..12 {
            let model = random(seed, shape);
            let twin = naive(&model);
            for label in 0..model.label_count() {
                let label = LabelId::new(label);
                let test = |_: usize, l: LabelId| l == label;
                let found = find(
                    &model,
                    &options(2, true),
                    &Budget::default(),
                    &Silent,
                    SearchTarget::Step(&test),
                )
                .unwrap();
                let best =
                    twin.values().filter(|s| s.1.iter().any(|t| t.0 == label)).map(|s| s.0).min();
                assert_eq!(
                    found.path.as_ref().map(|p| p.len() as u64),
                    best.map(|d| d + 1),
                    "shape {n} seed {seed}"
                );
                if let Some(path) = found.path {
                    replay(&model, model.initial(), &path);
                    assert_eq!(path.last().unwrap().label, label);
                }
            }
            let found = find(
                &model,
                &options(1, true),
                &Budget::default(),
                &Silent,
                SearchTarget::Deadlock,
            )
            .unwrap();
            let best = twin.values().filter(|s| s.1.is_empty()).map(|s| s.0).min();
            assert_eq!(found.path.as_ref().map(|p| p.len() as u64), best);
            if let Some(path) = found.path {
                assert!(twin[&replay(&model, model.initial(), &path)].1.is_empty());
            }
        }
    }
}

#[test]
fn paths_through_confluent_steps_replay() {
    let model = arcx(1);
    let options = options(2, true).with_confluence_of(&model);
    let found =
        find(&model, &options, &Budget::default(), &Silent, SearchTarget::Deadlock).unwrap();
    let path = found.path.unwrap();
    let end = replay(&model, model.initial(), &path);
    let mut worker = model.worker();
    assert!(naive_steps(&model, worker.as_mut(), &end, &|_| true).is_empty());
    assert!(path.iter().any(|s| s.label == LabelId::TAU));
}

#[test]
fn cycles_are_found_and_lassos_replay() {
    assert!(matches!(
        is_acyclic(&counters(3, 5), &options(1, true), &Budget::default(), &Silent, None, None)
            .unwrap(),
        Cyclic::No(_)
    ));
    let mut cyclic = 0;
    for (n, &shape) in SHAPES.iter().enumerate() {
        for seed in 0..5 {
            let model = random(seed, shape);
            let twin = naive(&model);
            let only = (seed % 2 == 0).then_some(LabelId::of(1));
            let test = |_: usize, l: LabelId| only.is_none_or(|o| o == l);
            // Naive: remove states without selected steps to remaining states.
            let mut left: HashSet<&Vec<u32>> = twin.keys().collect();
            loop {
                let leaf = |s: &&&Vec<u32>| {
                    !twin[**s]
                        .1
                        .iter()
                        .any(|(l, t)| only.is_none_or(|o| o == *l) && left.contains(t))
                };
                let gone: Vec<&Vec<u32>> = left.iter().filter(leaf).copied().collect();
                if gone.is_empty() {
                    break;
                }
                for g in gone {
                    left.remove(g);
                }
            }
            match is_acyclic(
                &model,
                &options(1, true),
                &Budget::default(),
                &Silent,
                Some(&test),
                None,
            )
            .unwrap()
            {
                Cyclic::No(_) => assert!(left.is_empty(), "shape {n} seed {seed}"),
                Cyclic::Yes(_, lasso) => {
                    cyclic += 1;
                    assert!(!left.is_empty(), "shape {n} seed {seed}");
                    let lasso = lasso.expect("there were no symmetries");
                    let start = replay(&model, model.initial(), &lasso.prefix);
                    assert_eq!(
                        replay(&model, start.clone(), &lasso.cycle),
                        start,
                        "shape {n} seed {seed}"
                    );
                    assert!(
                        !lasso.cycle.is_empty()
                            && lasso.cycle.iter().all(|s| test(s.group, s.label))
                    );
                }
                Cyclic::Unknown(_) => panic!("shape {n} seed {seed}: no limit was set"),
            }
        }
    }
    assert!(cyclic > 8, "{cyclic}");
}

/// Two groups make one step, and only one of them satisfies the predicate; few such steps, and
/// many.
#[test]
fn a_step_that_several_groups_make_passes_a_test_if_one_of_them_does() {
    for width in [1, 40] {
        let mut model = HandModel::new();
        let a = model.slot("a", 0, false, 0);
        for name in ["first", "second"] {
            model.group(name, &[], &[a], &[a], move |_, e| {
                (0..width).for_each(|i| e.step("tau", &[i]))
            });
        }
        for group in 0..2 {
            let test = |g: usize, _: LabelId| g == group;
            let cyclic = is_acyclic(
                &model,
                &options(1, true),
                &Budget::default(),
                &Silent,
                Some(&test),
                None,
            )
            .unwrap();
            let Cyclic::Yes(outcome, Some(lasso)) = cyclic else {
                panic!("group {group}: no cycle of {width}")
            };
            assert!(lasso.cycle.iter().all(|s| s.group == group));
            assert_eq!(
                (outcome.states, outcome.transitions),
                (u64::from(width), u64::from(width * width))
            );
            let found = find(
                &model,
                &options(1, true),
                &Budget::default(),
                &Silent,
                SearchTarget::Step(&test),
            )
            .unwrap();
            assert_eq!(found.path.unwrap()[0].group, group);
            let found = find_paths(
                &model,
                &options(1, true),
                &Budget::default(),
                PathGoal::Step(&test),
                2000,
                &mut |_| Ok(()),
            )
            .unwrap();
            // One for each step of each state.
            assert_eq!(found.paths.len(), (width * width) as usize, "group {group}");
            assert!(found.paths.iter().all(|p| p.steps.last().unwrap().group == group));
        }
    }
}

/// Builds a model of `tokens` tokens on a circle of places with room for one each; each place is a
/// component, or all are in one. C(places, tokens) states.
fn circle(places: u32, tokens: u32, one_component: bool) -> HandModel {
    let mut m = HandModel::new();
    let slots: Vec<u32> = (0..places)
        .map(|p| {
            m.slot(format!("p{p}"), if one_component { 0 } else { p }, true, u32::from(p < tokens))
        })
        .collect();
    for p in 0..places as usize {
        let (a, b) = (slots[p], slots[(p + 1) % places as usize]);
        let (low, high) = (a.min(b), a.max(b));
        m.group("move", &[(a, 1), (b, 0)], &[], &[low, high], move |_, e| {
            e.step("move", &[u32::from(low == b), u32::from(high == b)])
        });
    }
    m
}

#[test]
fn wide_roots_need_inner_nodes_and_split_leaves() {
    assert_eq!(count(&ring(12, 2), &options(2, true)).0, 1 << 12);
    assert_eq!(count(&counters(5, 6), &options(2, true)), (7u64.pow(5), 5 * 6 * 7u64.pow(4), 1));
    for one_component in [false, true] {
        for threads in [1, 3] {
            let model = circle(70, 2, one_component);
            assert_eq!(
                count(&model, &options(threads, true)).0,
                70 * 69 / 2,
                "one component: {one_component}"
            );
            let model = circle(24, 4, one_component);
            assert_eq!(
                count(&model, &options(threads, true)).0,
                10_626,
                "one component: {one_component}"
            );
            if threads == 1 {
                continue;
            }
            let (outcome, lts) =
                explore_lts(&model, &options(threads, true), &Budget::default(), &Silent).unwrap();
            assert_eq!((outcome.states, lts.state_count()), (10_626, 10_626));
            let found = find(
                &model,
                &options(threads, true),
                &Budget::default(),
                &Silent,
                SearchTarget::Deadlock,
            )
            .unwrap();
            assert!(!found.reached && found.path.is_none());
        }
    }
}

#[test]
fn on_demand_goes_through_the_same_changes_of_layout() {
    for (model, expected) in [
        (arcx(0), (6_052, 13_828)),
        (circle(24, 4, true), (10_626, 0)),
        (circle(70, 2, false), (2_415, 0)),
    ] {
        let mut lazy = OnTheFlySuccessors::new(&model, &options(1, true)).unwrap();
        let (mut at, mut transitions, mut steps) = (0, 0, Vec::new());
        while at < lazy.state_count() {
            lazy.successors(StateId::new(at), &mut steps).unwrap();
            transitions += steps.len();
            at += 1;
        }
        let expected = if expected.1 == 0 {
            (expected.0, count(&model, &options(1, true)).1 as usize)
        } else {
            expected
        };
        assert_eq!((at, transitions), expected);
        let distinct: HashSet<Vec<u32>> = (0..at).map(|s| lazy.vector(StateId::new(s))).collect();
        assert_eq!(distinct.len(), at);
    }
}

#[test]
fn steps_on_demand_do_not_depend_on_the_cache() {
    for (n, &shape) in SHAPES.iter().enumerate() {
        let model = random(7, shape);
        // All steps are cached; some; none.
        for bytes in [256 << 20, 100, 0] {
            let mut lazy = OnTheFlySuccessors::new(
                &model,
                &Options { cache_bytes: bytes, ..options(1, true) },
            )
            .unwrap();
            let (mut rows, mut steps) = (Vec::new(), Vec::new());
            while rows.len() < lazy.state_count() {
                lazy.successors(StateId::new(rows.len()), &mut steps).unwrap();
                rows.push(steps.clone());
            }
            for (s, row) in rows.iter().enumerate().rev() {
                lazy.successors(StateId::new(s), &mut steps).unwrap();
                assert_eq!(*row, steps, "shape {n} bytes {bytes} state {s}");
            }
        }
    }
}

#[test]
fn confluent_cycles_have_one_representative() {
    // A component that turns by confluent steps, and one that counts.
    let mut model = HandModel::new();
    let a = model.slot("turn", 0, true, 0);
    let b = model.slot("count", 1, false, 0);
    let turn = model.group("turn", &[], &[a], &[a], |r, e| e.step("tau", &[(r[0] + 1) % 5]));
    (turn.tau, turn.confluent) = (true, true);
    model.group("up", &[], &[b], &[b], |r, e| {
        if r[0] < 9 {
            e.step("up", &[r[0] + 1]);
        }
    });
    assert_eq!(count(&model, &options(2, true)).0, 50);
    let (states, transitions, deadlocks) =
        count(&model, &options(2, true).with_confluence_of(&model));
    // Each representative has its tau loop.
    assert_eq!((states, transitions, deadlocks), (10, 19, 0));
}

#[test]
fn limits_stop_and_are_reported() {
    let model = arcx(1);
    let budget = |limits: Limits| Budget::new(limits);
    let outcome = explore(
        &model,
        &options(2, true),
        &budget(Limits { max_states: Some(20_000), ..Limits::default() }),
        &Silent,
    )
    .unwrap();
    assert_eq!(outcome.stop, Stop::States);
    assert!(outcome.states > 20_000 && outcome.states < 275_528);
    let tiny = Limits { max_memory: Some(1), ..Limits::default() };
    assert_eq!(
        explore(&model, &options(2, true), &budget(tiny), &Silent).unwrap().stop,
        Stop::Memory
    );
    let short = Limits { timeout: Some(Duration::ZERO), ..Limits::default() };
    assert_eq!(
        explore(&model, &options(2, true), &budget(short), &Silent).unwrap().stop,
        Stop::Time
    );
    let interrupted = Budget::default();
    interrupted.interrupt_flag().store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(
        explore(&model, &options(2, true), &interrupted, &Silent).unwrap().stop,
        Stop::Interrupted
    );
    let limits = Limits { max_states: Some(5_000), ..Limits::default() };
    let (outcome, lts) = explore_lts(&model, &options(2, true), &budget(limits), &Silent).unwrap();
    assert_eq!((outcome.stop, lts.state_count() as u64), (Stop::States, outcome.states));
}

#[test]
fn errors_and_panics_of_workers_are_reported() {
    for panics in [false, true] {
        let model = Failing { inner: counters(2, 200), panics };
        for threads in [1, 3] {
            let error =
                explore(&model, &options(threads, true), &Budget::default(), &Silent).unwrap_err();
            assert_eq!(error.stage, if panics { Stage::Internal } else { Stage::Data });
            assert!(error.message.contains("at 150"), "{}", error.message);
        }
    }
}

struct Failing {
    inner: HandModel,
    panics: bool,
}

struct FailingWorker<'m> {
    inner: Box<dyn Worker + 'm>,
    panics: bool,
}

impl Model for Failing {
    fn slots(&self) -> &[mu_model::SlotInfo] {
        self.inner.slots()
    }
    fn groups(&self) -> &[mu_model::Group] {
        self.inner.groups()
    }
    fn initial(&self) -> Vec<u32> {
        self.inner.initial()
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(FailingWorker { inner: self.inner.worker(), panics: self.panics })
    }
    fn label_text(&self, label: LabelId) -> String {
        self.inner.label_text(label)
    }
    fn label_count(&self) -> usize {
        self.inner.label_count()
    }
    fn value_text(&self, slot: u32, value: u32) -> String {
        self.inner.value_text(slot, value)
    }
}

impl Worker for FailingWorker<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        if reads == [150] {
            assert!(!self.panics, "at 150");
            return Err(Diagnostic::new(Stage::Data, "rewriting does not end at 150"));
        }
        self.inner.steps(group, reads, out)
    }
}

/// Writes a checkpoint to memory whenever one is due.
struct InMemory {
    header: super::CheckpointHeader,
    always: bool,
    bytes: std::sync::Mutex<Vec<u8>>,
}

impl super::CheckpointWriter for InMemory {
    fn due(&self) -> bool {
        self.always
    }
    fn keep(&self, image: &super::CheckpointImage) -> Result<(), Diagnostic> {
        let mut bytes = Vec::new();
        image.write(&self.header, &mut bytes)?;
        *self.bytes.lock().unwrap() = bytes;
        Ok(())
    }
}

/// For every limit, resuming the checkpoint gives the same result.
#[test]
fn a_resumed_search_has_the_same_result() {
    let header = super::CheckpointHeader {
        fingerprint: "arcx".into(),
        values: vec![vec!["1".into()], vec![]],
        names: Vec::new(),
    };
    for (max, limits) in [(0, &[1, 500, 5_000][..]), (1, &[100_000])] {
        let model = arcx(max);
        let whole = explore(&model, &small(), &Budget::default(), &Silent).unwrap();
        for (i, &limit) in limits.iter().enumerate() {
            let checkpoints =
                InMemory { header: header.clone(), always: i == 1, bytes: Default::default() };
            let options = Options { threads: 1 + i, ..small() };
            let budget = Budget::new(Limits { max_states: Some(limit), ..Limits::default() });
            let stopped = super::explore_with(
                &model,
                &options,
                &budget,
                &Silent,
                with_checkpoints(&checkpoints),
            )
            .unwrap();
            assert_eq!(stopped.stop, Stop::States);
            let bytes = checkpoints.bytes.into_inner().unwrap();
            let mut accept = |h: &super::CheckpointHeader| {
                assert_eq!(*h, header);
                Ok(())
            };
            let restored = super::RestoredSearch::read(&mut &bytes[..], &mut accept).unwrap();
            assert_eq!(restored.states(), stopped.states);
            let end = super::explore_with(
                &model,
                &options,
                &Budget::default(),
                &Silent,
                super::CountExtras { restored: Some(restored), ..Default::default() },
            )
            .unwrap();
            assert_eq!(
                (end.states, end.transitions, end.deadlocks, end.levels, end.stop),
                (whole.states, whole.transitions, whole.deadlocks, whole.levels, Stop::Complete),
                "N = {max}, limit {limit}"
            );
        }
    }
}

/// Model with swaps of two slots each as candidates for symmetries.
struct Swapped {
    inner: HandModel,
    swaps: Vec<Symmetry>,
}

struct SwappedWorker<'m>(Box<dyn Worker + 'm>);

impl Model for Swapped {
    fn slots(&self) -> &[mu_model::SlotInfo] {
        self.inner.slots()
    }
    fn groups(&self) -> &[mu_model::Group] {
        self.inner.groups()
    }
    fn initial(&self) -> Vec<u32> {
        self.inner.initial()
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(SwappedWorker(self.inner.worker()))
    }
    fn label_text(&self, label: LabelId) -> String {
        self.inner.label_text(label)
    }
    fn label_count(&self) -> usize {
        self.inner.label_count()
    }
    fn value_text(&self, slot: u32, value: u32) -> String {
        self.inner.value_text(slot, value)
    }
    fn symmetries(&self) -> &[Symmetry] {
        &self.swaps
    }
}

impl Worker for SwappedWorker<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        self.0.steps(group, reads, out)
    }
    fn image(&mut self, _: usize, _: u32, value: u32) -> Result<Option<u32>, Diagnostic> {
        Ok(Some(value))
    }
    fn image_label(&mut self, _: usize, label: LabelId) -> Result<Option<LabelId>, Diagnostic> {
        Ok(Some(label))
    }
}

/// Of seven swaps, six are used. The search refutes the first one after its trial and uses the
/// other six, which are as many elements.
fn seven_pairs() -> Swapped {
    let mut inner = HandModel::new();
    let slots: Vec<u32> = (0..15).map(|i| inner.slot(format!("s{i}"), 0, false, 0)).collect();
    for &slot in &slots[..14] {
        inner.group("up", &[(slot, 0)], &[slot], &[slot], |_, e| e.step("up", &[1]));
    }
    inner.group("late", &[(14, 0)], &slots, &[14], |read, e| {
        if read[..14].iter().sum::<u32>() == 5 && (read[0], read[1]) == (1, 0) {
            e.step("late", &[1]);
        }
    });
    let swap = |pair: u32| {
        let mut to: Vec<u32> = (0..15).collect();
        to.swap(2 * pair as usize, 2 * pair as usize + 1);
        Symmetry { name: format!("swap {pair}"), slots: to, points: vec![0] }
    };
    Swapped { inner, swaps: (0..7).map(swap).collect() }
}

/// The resumed search first takes the swaps that the kept one started with.
#[test]
fn a_resumed_search_uses_the_symmetries_of_the_kept_one() {
    let header =
        super::CheckpointHeader { fingerprint: "pairs".into(), values: vec![], names: Vec::new() };
    let options = options(1, true);
    let model = seven_pairs();
    let plain = Options { symmetry: false, ..options.clone() };
    let whole = explore(&model, &plain, &Budget::default(), &Silent).unwrap();
    let checkpoints = InMemory { header, always: false, bytes: Default::default() };
    let budget = Budget::new(Limits { max_states: Some(9_000), ..Limits::default() });
    let stopped =
        super::explore_with(&model, &options, &budget, &Silent, with_checkpoints(&checkpoints))
            .unwrap();
    assert_eq!(stopped.stop, Stop::States);
    assert!(stopped.stored < stopped.states / 3, "{stopped:?}");
    let bytes = checkpoints.bytes.into_inner().unwrap();
    let restored = super::RestoredSearch::read(&mut &bytes[..], &mut |_| Ok(())).unwrap();
    let extras = super::CountExtras { restored: Some(restored), ..Default::default() };
    let end =
        super::explore_with(&seven_pairs(), &options, &Budget::default(), &Silent, extras).unwrap();
    assert_eq!(
        (end.states, end.transitions, end.deadlocks, &end.stop),
        (whole.states, whole.transitions, whole.deadlocks, &Stop::Complete)
    );
    assert!(end.stored < end.states / 3, "{end:?}");
}

fn with_checkpoints(checkpoints: &dyn super::CheckpointWriter) -> super::CountExtras<'_> {
    super::CountExtras { checkpoints: Some(checkpoints), ..Default::default() }
}

/// Every flipped bit, truncation, or extension is detected.
#[test]
fn a_damaged_checkpoint_is_refused() {
    let header =
        super::CheckpointHeader { fingerprint: "arcx".into(), values: vec![], names: Vec::new() };
    let checkpoints = InMemory { header, always: false, bytes: Default::default() };
    let budget = Budget::new(Limits { max_states: Some(1_000), ..Limits::default() });
    super::explore_with(&arcx(0), &small(), &budget, &Silent, with_checkpoints(&checkpoints))
        .unwrap();
    let bytes = checkpoints.bytes.into_inner().unwrap();
    let read = |bytes: &[u8]| {
        super::RestoredSearch::read(&mut &bytes[..], &mut |_| Ok(())).map(|r| r.states())
    };
    assert!(read(&bytes).is_ok());
    let stride = (bytes.len() / 400).max(1);
    for at in (0..bytes.len()).step_by(stride) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(read(&flipped).is_err(), "byte {at} flipped");
        assert!(read(&bytes[..at]).is_err(), "cut at {at}");
    }
    assert!(read(&[&bytes[..], &[0]].concat()).is_err());
}

/// The table is written to disk every few hundred states. The search itself compares the states on
/// disk with its count.
#[test]
fn spilled_searches_count_what_those_in_memory_do() {
    let folder = std::env::temp_dir();
    let spilled = |model: &dyn Model, options: &Options| {
        let extras = CountExtras {
            spill: Some(Spill { folder: &folder, most: Some(400) }),
            ..CountExtras::default()
        };
        explore_with(model, options, &Budget::default(), &Silent, extras).unwrap()
    };
    let (mut flushes, mut repacked) = (0, 0);
    let mut equal = |model: &dyn Model, options: &Options, what: &str| {
        let plain = explore(model, options, &Budget::default(), &Silent).unwrap();
        let other = spilled(model, options);
        let figures = |o: &Outcome| {
            (o.states, o.stored, o.transitions, o.deadlocks, o.levels, o.stop.clone())
        };
        assert_eq!(figures(&plain), figures(&other), "{what}");
        flushes += other.spilled.flushes;
        repacked += other.spilled.repacked;
        other.spilled
    };
    for (n, &shape) in SHAPES.iter().enumerate() {
        for seed in 0..3 {
            let model = random(seed, shape);
            for threads in [1, 3] {
                equal(
                    &model,
                    &options(threads, true),
                    &format!("shape {n} seed {seed} threads {threads}"),
                );
            }
        }
    }
    for threads in [1, 2] {
        let small = arcx(0);
        let written = equal(&small, &options(threads, true), "arcx 0");
        assert!(written.flushes > 4 && written.read > 0 && written.bytes > 0, "{written:?}");
        equal(
            &small,
            &Options { symmetry: false, ..options(threads, true) },
            "arcx 0 without symmetry",
        );
    }
    equal(&counters(4, 9), &options(2, true), "counters");
    for one_component in [false, true] {
        for (size, tokens) in [(20, 4), (70, 2), (30, 3)] {
            equal(
                &circle(size, tokens, one_component),
                &options(2, true),
                &format!("circle {size} {tokens} {one_component}"),
            );
        }
    }
    assert!(flushes > 100 && repacked > 0, "{flushes} {repacked}");
}
