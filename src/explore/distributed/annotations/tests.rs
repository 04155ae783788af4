//! Distributed annotated searches against a naive solver: lassos of all shapes with every
//! assignment of their states to processes, and random graphs with random annotations, interrupted
//! and resumed by another number of processes.
//!
//! The owner of a state is a hash of its value, so each state gets a value with the hash of its
//! owner ([`Values`]). An annotation is a set of up to three obligations; a label maps each to a
//! set.

use super::*;
use crate::distributed::checkpoint::{Stamp, SymmetryGroup, expect_sound};
use crate::tests::small;
use mu_base::Budget;
use mu_base::ids::LabelId;
use mu_base::random::Random;
use mu_model::hand::HandModel;

/// Labels of a graph.
const LABELS: [&str; 2] = ["a", "b"];

/// Steps as source, label and target; the initial state is 0.
type Steps = Vec<(usize, usize, usize)>;

/// The successors of obligations, by label and obligation, and the obligations under a least fixed
/// point.
#[derive(Clone, Copy, Debug)]
struct Rules {
    initial: u32,
    next: [[u32; 3]; LABELS.len()],
    lfp_part: u32,
}

/// `mu X. [true]X`.
const ALWAYS: Rules = Rules { initial: 1, next: [[1, 0, 0]; 2], lfp_part: 1 };

impl Rules {
    fn step(&self, set: u32, label: usize) -> u32 {
        (0..3).filter(|bit| set >> bit & 1 == 1).fold(0, |all, bit| all | self.next[label][bit])
    }
}

struct Obligations<'m> {
    rules: Rules,
    model: &'m HandModel,
}

impl AnnotationWorker for Obligations<'_> {
    fn join(&mut self, old: u32, new: u32) -> Result<(u32, u32), Diagnostic> {
        Ok((old | new, new & !old))
    }
    fn enter(&mut self, pending: u32, _: &[LabelId]) -> Result<Transfer, Diagnostic> {
        Ok(Transfer::Value(pending))
    }
    fn step(&mut self, flow: u32, label: LabelId) -> Result<Transfer, Diagnostic> {
        let text = self.model.label_text(label);
        let label = LABELS.iter().position(|l| *l == text).unwrap();
        Ok(Transfer::Value(self.rules.step(flow, label)))
    }
}

impl PortableAnnotator for Obligations<'_> {
    fn initial(&self) -> u32 {
        self.rules.initial
    }
    fn open(&mut self, _: usize) {}
    fn export(&mut self, _: usize, element: u32, out: &mut Vec<u8>) -> Result<(), Diagnostic> {
        put(out, element.into());
        Ok(())
    }
    fn import(&mut self, _: usize, bytes: &mut &[u8]) -> Result<u32, Diagnostic> {
        Ok(take(bytes).unwrap() as u32)
    }
    fn atoms(&mut self, _: u32) -> Result<Vec<(Vec<u8>, u32)>, Diagnostic> {
        unreachable!("nothing decides")
    }
    fn lfp_part(&mut self, element: u32) -> Result<u32, Diagnostic> {
        Ok(element & self.rules.lfp_part)
    }
    fn atom(&mut self, _: &[u8]) -> Result<u32, Diagnostic> {
        unreachable!("nothing decides")
    }
}

/// Values by their owner among some processes.
struct Values(Vec<Vec<u32>>);

impl Values {
    fn new(processes: usize, states: usize) -> Self {
        let model = model(&[], &[0]);
        let (options, budget) = (small(), Budget::default());
        let mut partition = Partition::new(&model, &options, &budget, None, 0, processes).unwrap();
        let mut values = vec![Vec::new(); processes];
        for value in 0.. {
            let key = partition
                .with_new_layout(|partition| Ok(partition.store.encode(&[value])?))
                .unwrap();
            values[partition.owner(key).unwrap()].push(value);
            if values.iter().all(|of| of.len() >= states) {
                break;
            }
        }
        Self(values)
    }
    /// Returns the values of states with these owners.
    fn of(&self, owners: &[usize]) -> Vec<u32> {
        owners.iter().enumerate().map(|(state, owner)| self.0[*owner][state]).collect()
    }
}

fn model(steps: &[(usize, usize, usize)], values: &[u32]) -> HandModel {
    let mut model = HandModel::new();
    let slot = model.slot("s", 0, false, values[0]);
    let steps: Vec<(u32, usize, u32)> =
        steps.iter().map(|&(from, label, to)| (values[from], label, values[to])).collect();
    model.group("step", &[], &[slot], &[slot], move |read, emit| {
        steps
            .iter()
            .filter(|step| step.0 == read[0])
            .for_each(|step| emit.step(LABELS[step.1], &[step.2]));
    });
    model
}

/// The result of a search: the annotation of each state, and true if an obligation under a least
/// fixed point has a cycle.
#[derive(Debug, PartialEq, Eq)]
struct AnnotationResult {
    annotations: Vec<u32>,
    lasts: bool,
}

/// Computes the least annotations and the cycles of least fixed points by definition.
fn naive(states: usize, steps: &Steps, rules: &Rules) -> AnnotationResult {
    let mut annotations = vec![0; states];
    annotations[0] = rules.initial;
    while let Some(&(from, label, to)) =
        steps.iter().find(|s| rules.step(annotations[s.0], s.1) & !annotations[s.2] != 0)
    {
        annotations[to] |= rules.step(annotations[from], label);
    }
    let goes_on = |s: &&(usize, usize, usize)| {
        rules.step(annotations[s.0] & rules.lfp_part, s.1) & rules.lfp_part != 0
    };
    let lfp_part: Vec<_> = steps.iter().filter(goes_on).collect();
    let mut on_cycle = vec![true; states];
    while let Some(s) = (0..states)
        .find(|s| on_cycle[*s] && !lfp_part.iter().any(|step| step.0 == *s && on_cycle[step.2]))
    {
        on_cycle[s] = false;
    }
    AnnotationResult { annotations, lasts: on_cycle.contains(&true) }
}

/// Searches until no level is left or this many blocks are expanded; true if no level is left.
/// Batches arrive in the middle of the level before theirs, or at its end.
fn advance(partitions: &mut [Partition], mut blocks: usize, random: &mut Random) -> bool {
    loop {
        let Some(level) = partitions.iter().filter_map(|s| s.lowest_level()).min() else {
            return true;
        };
        partitions.iter_mut().filter(|s| !s.is_busy()).for_each(|s| s.begin_level(level));
        let mut batches: Vec<(usize, Batch)> = Vec::new();
        while blocks > 0 && partitions.iter().any(|s| s.is_busy()) {
            let from = random.below(partitions.len());
            if partitions[from].is_busy() {
                partitions[from]
                    .expand(1 + random.below(2), &mut |batch| batches.push((from, batch)))
                    .unwrap();
                blocks -= 1;
            }
            if random.below(2) == 0 {
                deliver(partitions, level + 1, &mut batches);
            }
        }
        for (from, partition) in partitions.iter_mut().enumerate() {
            partition.flush_batches(&mut |batch| batches.push((from, batch)));
        }
        deliver(partitions, level + 1, &mut batches);
        if blocks == 0 {
            return false;
        }
    }
}

fn deliver(partitions: &mut [Partition], level: u64, batches: &mut Vec<(usize, Batch)>) {
    for (from, (to, batch)) in batches.drain(..) {
        partitions[to].receive(from, level, &batch).unwrap();
    }
}

/// Reads the annotations and, if some step leads back, searches for cycles.
fn conclude(
    mut partitions: Vec<Partition>,
    values: &[u32],
    random: &mut Random,
) -> AnnotationResult {
    let mut annotations = vec![0; values.len()];
    for partition in &partitions {
        for (place, key) in partition.store.table.entries() {
            let state = values.iter().position(|v| partition.store.vector(key) == [*v]).unwrap();
            annotations[state] =
                (partition.store.table.pair(place).load(Ordering::Relaxed) >> 32) as u32;
        }
    }
    let mut lasts = false;
    if !partitions.iter().all(Partition::is_forward) {
        for edges in [Partition::count_edges, Partition::remove_edges] {
            partitions.iter_mut().for_each(|partition| {
                edges(partition);
                partition.insert_initial().unwrap();
            });
            assert!(advance(&mut partitions, usize::MAX, random));
        }
        lasts = partitions
            .iter()
            .any(|partition| partition.removed_vertices().0 < partition.removed_vertices().1);
    }
    AnnotationResult { annotations, lasts }
}

/// Creates an empty partition for each model.
fn empty(models: &[HandModel], rules: Rules) -> Vec<Partition<'_>> {
    let (options, budget) =
        (Options { threads: 1, expected_states: 0, ..small() }, Budget::default());
    let partition = |(me, model)| {
        let carrier = Box::new(Obligations { rules, model });
        Partition::new(model, &options, &budget, None, me, models.len())
            .unwrap()
            .with_annotations(carrier, false, &options)
    };
    models.iter().enumerate().map(partition).collect()
}

/// Searches by as many processes as `values` has. `cut`: after this many blocks the search is
/// written, and resumed by another number of processes.
fn search(
    (steps, rules): (&Steps, Rules),
    owners: &[usize],
    values: &Values,
    cut: Option<(usize, &Values, &mut usize)>,
    random: &mut Random,
) -> AnnotationResult {
    let (processes, values_of) = (values.0.len(), values.of(owners));
    let models: Vec<HandModel> = (0..processes).map(|_| model(steps, &values_of)).collect();
    let mut partitions = empty(&models, rules);
    partitions.iter_mut().for_each(|s| s.insert_initial().unwrap());
    let blocks = cut.as_ref().map_or(usize::MAX, |c| c.0);
    if advance(&mut partitions, blocks, random) {
        return conclude(partitions, &values_of, random);
    }
    let (_, others, cuts) = cut.unwrap();
    *cuts += 1;
    let stamp = |process| Stamp {
        fingerprint: "f".into(),
        run: 1,
        number: 1,
        process,
        processes: processes as u32,
        symmetries: SymmetryGroup::of(None),
        leaves: None,
    };
    let mut files = Vec::new();
    for (me, partition) in partitions.iter_mut().enumerate() {
        let mut file = Vec::new();
        partition.write(&stamp(me as u32), &mut file).unwrap();
        files.push(file);
    }
    let count = others.0.len();
    let models: Vec<HandModel> = (0..count).map(|_| model(steps, &values_of)).collect();
    let mut partitions = empty(&models, rules);
    for (me, partition) in partitions.iter_mut().enumerate() {
        for (i, file) in files.iter().enumerate().filter(|(i, _)| count != processes || *i == me) {
            expect_sound(&mut &file[..]).unwrap();
            partition.read(&mut &file[..], i % count == me).unwrap();
        }
    }
    assert!(advance(&mut partitions, usize::MAX, random));
    conclude(partitions, &values_of, random)
}

/// Lists the assignments of states to processes up to renaming of processes: a state's process is
/// at most one more than those before it.
fn assignments(states: usize, processes: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..states {
        let longer = |owners: &Vec<usize>| {
            let owners = owners.clone();
            let most = owners.iter().max().map_or(0, |m| m + 1).min(processes - 1);
            (0..=most).map(move |owner| [&owners[..], &[owner]].concat())
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

#[test]
fn lassos_of_all_shapes_last_with_every_assignment_to_processes() {
    const STATES: usize = 5;
    let mut random = Random::new(7);
    let mut searches = 0;
    for processes in 2..=8 {
        let values = Values::new(processes, STATES + 1);
        for states in 1..=STATES {
            for owners in assignments(states, processes) {
                // Rotate the processes, so that the first one varies.
                let turn = random.below(processes);
                let owners: Vec<usize> =
                    owners.iter().map(|owner| (owner + turn) % processes).collect();
                let path: Steps = (1..states).map(|to| (to - 1, 0, to)).collect();
                assert!(
                    !search((&path, ALWAYS), &owners, &values, None, &mut random).lasts,
                    "a path of {owners:?}"
                );
                for back in 0..states {
                    let mut lasso = path.clone();
                    lasso.push((states - 1, 1, back));
                    let expected = naive(states, &lasso, &ALWAYS);
                    assert!(expected.lasts);
                    let found = search((&lasso, ALWAYS), &owners, &values, None, &mut random);
                    assert_eq!(
                        found, expected,
                        "{processes} processes, owners {owners:?}, the last state leads to {back}"
                    );
                    searches += 2;
                }
            }
        }
    }
    assert!(searches > 3_000, "{searches} searches");
}

#[test]
fn random_annotations_last_as_for_a_naive_solver() {
    const STATES: usize = 6;
    let values: Vec<Values> = (1..=8).map(|processes| Values::new(processes, STATES)).collect();
    let (mut last, mut cuts) = ([0, 0], 0);
    for seed in 0..800u64 {
        let random = &mut Random::new(seed);
        let states = 2 + random.below(STATES - 1);
        let step =
            |random: &mut Random| (random.below(states), random.below(2), random.below(states));
        let mut steps: Steps =
            (1..states).map(|to| (random.below(to), random.below(2), to)).collect();
        // Few steps lead back, so that some graphs have no cycle and others have one only.
        for _ in 0..random.below(4) {
            let (from, label, to) = step(random);
            steps.push(if random.below(4) > 0 && from > to {
                (to, label, from)
            } else {
                (from, label, to)
            });
        }
        steps.sort_unstable();
        steps.dedup();
        let set = |random: &mut Random| random.below(8) as u32 & random.below(8) as u32;
        let next = [(); LABELS.len()].map(|()| [1 | set(random), set(random), set(random)]);
        let rules =
            Rules { initial: 1 + random.below(7) as u32, next, lfp_part: random.below(8) as u32 };
        let expected = naive(states, &steps, &rules);
        last[usize::from(expected.lasts)] += 1;
        let of = &values[random.below(values.len())];
        let owners: Vec<usize> = (0..states).map(|_| random.below(of.0.len())).collect();
        let found = search((&steps, rules), &owners, of, None, random);
        assert_eq!(found, expected, "seed {seed}: {steps:?}, {rules:?}, owners {owners:?}");
        let others = &values[random.below(values.len())];
        let cut = Some((1 + random.below(states), others, &mut cuts));
        let found = search((&steps, rules), &owners, of, cut, random);
        assert_eq!(found, expected, "seed {seed}, cut: {steps:?}, {rules:?}, owners {owners:?}");
    }
    assert!(last[0] > 130 && last[1] > 130 && cuts > 130, "{last:?} searches, {cuts} cuts");
}
