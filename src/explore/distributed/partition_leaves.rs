//! Choice of the partition leaves: their hash assigns states to processes.
//!
//! If all leaves are hashed ([`super::partition`]), nearly every step leads to another process. If
//! only leaves that change rarely are hashed, most steps stay in their process. But states must be
//! distributed evenly, so these leaves need many combinations of values, none of which dominates.
//! In: a partition, in which random walks are made, because the first levels of a search have few
//! values. Out: leaves, chosen greedily: each time the one that adds most combinations per step
//! that it sends to another process. With symmetries, leaves that are mapped to each other are
//! chosen together, so that all members of an orbit have one owner. Compare Lerda and Sisto (SPIN
//! 1999), who assign states by one process of the model. Cost: some thousand states and their
//! steps, evaluated a few dozen times. Invariant: the choice affects no count, only which process
//! stores a state.

use super::partition::Partition;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::host::Instant;
use mu_base::narrow;
use mu_base::random::Random;

/// Limit on sampled states.
const STATES: usize = 1 << 12;
/// Limit on sampled steps of one state.
const STEPS: usize = 12;
/// Samples one state in `SAMPLE_INTERVAL`, at random, because neighbouring states are alike and
/// walks may cycle.
const SAMPLE_INTERVAL: usize = 8;
/// Lengths of successive walks: states close to the initial one and far from it.
const LENGTHS: [usize; 5] = [8, 32, 128, 512, 2048];
/// Required number of equally frequent combinations for each process but one. The largest partition
/// then exceeds the mean by about a thirtieth, by the variance of random sums.
const COMBINATIONS: f64 = 800.0;
/// The choice is rejected if more than this fraction of the steps changes the owner.
const MAX_CHANGING: f64 = 0.75;

/// Sampled states and steps, by class of leaves.
#[derive(Default)]
struct PartitionSample {
    /// By state and class: the hash.
    states: Vec<Vec<u64>>,
    /// By step: the classes that change, as bits.
    steps: Vec<Vec<u64>>,
}

impl PartitionSample {
    /// Records a state and its steps, which are in `found`.
    fn record(
        &mut self,
        partition: &mut Partition<'_>,
        classes: &[usize],
        key: u64,
    ) -> Result<(), Diagnostic> {
        let (mut before, mut after) = (vec![0; classes.len()], vec![0; classes.len()]);
        partition.class_hashes(key, classes, &mut before)?;
        for i in 0..partition.found.len().min(STEPS) {
            partition.class_hashes(partition.found[i].key, classes, &mut after)?;
            let mut step = vec![0u64; classes.len().div_ceil(64)];
            for class in (0..classes.len()).filter(|&class| before[class] != after[class]) {
                step[class / 64] |= 1 << (class % 64);
            }
            self.steps.push(step);
        }
        self.states.push(before);
        Ok(())
    }

    /// Computes the effective number of combinations: the inverse of the probability that two
    /// states have the same one.
    fn combinations(&self, sums: impl Iterator<Item = u64>) -> f64 {
        let mut counts: AHashMap<u64, u64> = AHashMap::new();
        sums.for_each(|sum| *counts.entry(sum).or_default() += 1);
        let same: u64 = counts.values().map(|n| n * (n - 1)).sum();
        let n = self.states.len() as f64;
        n * (n - 1.0) / (same as f64).max(1.0)
    }

    /// Returns the fraction of the steps that change one of the classes.
    fn changing_fraction(&self, classes: &[u64]) -> f64 {
        let changing = self
            .steps
            .iter()
            .filter(|step| step.iter().zip(classes).any(|(a, b)| a & b != 0))
            .count();
        changing as f64 / self.steps.len().max(1) as f64
    }

    /// Chooses classes for `processes` processes; `None` if all leaves must be hashed.
    fn choose(&self, classes: usize, processes: usize) -> Option<Vec<usize>> {
        let wanted = COMBINATIONS * (processes.max(2) - 1) as f64;
        let mut sums = vec![0u64; self.states.len()];
        let (mut chosen, mut bits) = (Vec::new(), vec![0u64; classes.div_ceil(64)]);
        let (mut combinations, mut changing) = (1.0, 0.0);
        while combinations < wanted {
            let mut best: Option<(f64, usize, f64, f64)> = None;
            for class in (0..classes).filter(|c| !chosen.contains(c)) {
                let mut with = bits.clone();
                with[class / 64] |= 1 << (class % 64);
                let sent = self.changing_fraction(&with);
                let many = self.combinations(
                    self.states
                        .iter()
                        .zip(&sums)
                        .map(|(state, sum)| sum.wrapping_add(state[class])),
                );
                // More combinations than required bring no gain.
                let worth =
                    (many.min(wanted).ln() - f64::ln(combinations)) / (sent - changing + 0.01);
                if many > combinations && best.is_none_or(|b| worth > b.0) {
                    best = Some((worth, class, many, sent));
                }
            }
            let (_, class, many, sent) = best?;
            if sent > MAX_CHANGING {
                return None;
            }
            chosen.push(class);
            bits[class / 64] |= 1 << (class % 64);
            self.states
                .iter()
                .zip(&mut sums)
                .for_each(|(state, sum)| *sum = sum.wrapping_add(state[class]));
            (combinations, changing) = (many, sent);
        }
        Some(chosen)
    }
}

/// Chooses the partition leaves for `processes` processes, from random walks or else from the
/// states of a search. Empty: all leaves.
///
/// # Errors
/// Errors of the model.
pub(crate) fn choose_partition_leaves(
    partition: &mut Partition<'_>,
    processes: usize,
) -> Result<Vec<u32>, Diagnostic> {
    let leaves = partition.store.leaves.len();
    if processes < 2 || leaves < 2 {
        return Ok(Vec::new());
    }
    partition.expander.follow(&partition.store);
    let classes = partition.expander.classes(leaves);
    let chosen = match sample_walks(partition, &classes, processes)?.choose(leaves, processes) {
        Some(chosen) => chosen,
        // Some walks end after a few steps with little change.
        None => sample_stored(partition, &classes)?.choose(leaves, processes).unwrap_or_default(),
    };
    Ok((0..narrow::index(leaves))
        .filter(|&leaf| chosen.contains(&classes[leaf as usize]))
        .collect())
}

/// Samples states on random walks from the initial state.
fn sample_walks(
    partition: &mut Partition<'_>,
    classes: &[usize],
    processes: usize,
) -> Result<PartitionSample, Diagnostic> {
    let (mut sample, mut random, start) =
        (PartitionSample::default(), Random::new(processes as u64), Instant::now());
    let vector = partition.model.initial();
    let initial = partition.with_new_layout(|partition| Ok(partition.store.encode(&vector)?))?;
    // Pending keys are repacked with the layout: the start of the walks, and the current state.
    partition.pending = vec![initial, initial];
    'walks: for length in LENGTHS.into_iter().cycle() {
        partition.pending[1] = partition.pending[0];
        for _ in 0..length {
            if sample.states.len() >= STATES || start.elapsed() > partition.tuning.sampling_time {
                break 'walks;
            }
            partition.with_new_layout(|partition| {
                partition.expander.successors(
                    &partition.store,
                    partition.pending[1],
                    &mut partition.found,
                )
            })?;
            if random.below(SAMPLE_INTERVAL) == 0 {
                sample.record(partition, classes, partition.pending[1])?;
            }
            match partition.found.len() {
                0 => break,
                count => partition.pending[1] = partition.found[random.below(count)].key,
            }
        }
    }
    partition.pending.clear();
    Ok(sample)
}

/// Samples states that the search has stored, with their steps. Reads the keys here, because walks
/// may have changed the layout.
fn sample_stored(
    partition: &mut Partition<'_>,
    classes: &[usize],
) -> Result<PartitionSample, Diagnostic> {
    let (mut sample, start) = (PartitionSample::default(), Instant::now());
    let stride = (partition.store.table.len() as usize).div_ceil(STATES).max(1);
    partition.pending = partition.store.table.entries().map(|e| e.1).step_by(stride).collect();
    for i in 0..partition.pending.len() {
        if start.elapsed() > partition.tuning.sampling_time {
            break;
        }
        partition.with_new_layout(|partition| {
            partition.expander.successors(
                &partition.store,
                partition.pending[i],
                &mut partition.found,
            )
        })?;
        sample.record(partition, classes, partition.pending[i])?;
    }
    partition.pending.clear();
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::models::counters;
    use crate::tests::small;
    use mu_base::Budget;
    use mu_model::hand::HandModel;

    /// Builds slow counters with many values, and a fast one.
    fn uneven() -> HandModel {
        let mut model = HandModel::new();
        let slow: Vec<_> = (0..4).map(|i| model.slot(format!("slow{i}"), i, false, 0)).collect();
        let fast = model.slot("fast", 4, false, 0);
        model.group("tick", &[], &[fast], &[fast], |read, emit| {
            emit.step("tick", &[(read[0] + 1) % 64])
        });
        for slot in slow {
            model.group("up", &[], &[slot, fast], &[slot, fast], |read, emit| {
                if read[1] % 8 == 0 {
                    emit.step("up", &[(read[0] + 1) % 16, read[1] + 1]);
                }
            });
        }
        model
    }

    fn partition_leaves_of(model: &HandModel, processes: usize) -> Vec<u32> {
        let (options, budget) = (small(), Budget::default());
        let mut partition = Partition::new(model, &options, &budget, None, 0, 1).unwrap();
        partition.insert_initial().unwrap();
        choose_partition_leaves(&mut partition, processes).unwrap()
    }

    #[test]
    fn leaves_that_change_rarely_are_chosen() {
        let leaves = partition_leaves_of(&uneven(), 2);
        assert!(!leaves.is_empty() && !leaves.contains(&4), "{leaves:?}");
        assert_eq!(partition_leaves_of(&uneven(), 1), [0u32; 0]);
        // Each step changes one of these leaves, and three values each are too few.
        assert_eq!(partition_leaves_of(&counters(2, 3), 2), [0u32; 0]);
    }

    /// Walks leave the stored part and change the layout; no leaf changes rarely.
    #[test]
    fn stored_states_are_read_in_the_layout_after_the_walks() {
        let mut model = HandModel::new();
        let all: Vec<_> = (0..12).map(|i| model.slot(format!("n{i}"), i, false, 0)).collect();
        model.group("tick", &[], &all, &all, |read, emit| {
            assert!(read.iter().all(|n| *n == read[0]), "not a state: {read:?}");
            emit.step("tick", &read.iter().map(|n| (n + 1) % 5000).collect::<Vec<_>>());
        });
        let (options, budget) = (small(), Budget::default());
        let mut partition = Partition::new(&model, &options, &budget, None, 0, 1).unwrap();
        partition.insert_initial().unwrap();
        for level in 0..60 {
            partition.begin_level(level);
            partition.expand(10, &mut |_| {}).unwrap();
        }
        let before = partition.store.epoch;
        assert_eq!(choose_partition_leaves(&mut partition, 2).unwrap(), [0u32; 0]);
        assert!(partition.store.epoch > before, "the layout stays");
    }

    #[test]
    fn frequent_combinations_count_less() {
        let sample = |states: &[u64]| PartitionSample {
            states: states.iter().map(|s| vec![*s]).collect(),
            steps: Vec::new(),
        };
        let alike: Vec<u64> = (0..10_000).map(|i| i % 50).collect();
        let found = sample(&alike).combinations(alike.iter().copied());
        assert!((found - 50.0).abs() < 1.0, "{found}");
        let one: Vec<u64> = (0..10_000).map(|i| if i % 2 == 0 { 0 } else { i }).collect();
        let found = sample(&one).combinations(one.iter().copied());
        assert!((found - 4.0).abs() < 0.1, "{found}");
    }
}
