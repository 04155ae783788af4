//! Which parts of a state say whose it is in a search by several processes.
//!
//! A state belongs to a process by a hash ([`super::partition`]). Of all its leaves, nearly each step
//! leads to another process; of leaves that change seldom, most steps stay. But the states must be
//! dealt evenly, so these leaves need many combinations of values, none of which many states have.
//! In: a share, with which random walks are made, since the first levels of a search have few
//! values. Out: leaves, chosen one by one: that which adds most combinations for each step
//! that it sends away. With symmetries those that are mapped to one another go together, so that
//! all members of an orbit keep one owner. Compare Lerda and Sisto (SPIN 1999), who deal states by
//! the process of the model that moves. Cost: some thousand states and their steps, a few dozen
//! times. Invariant: whatever is chosen changes no count, only who does what.

use super::partition::Partition;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::host::Instant;
use mu_base::random::Random;
use std::time::Duration;

/// States whose steps are looked at.
const STATES: usize = 1 << 12;
/// Time for them; tests look at all of them, however slow the machine is.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 60_000 } else { 50 });
/// Steps of one of them.
const STEPS: usize = 12;
/// Of so many states of a walk one is looked at, which one is chance: those that follow one another
/// have most values in common, and tell little more than one of them; and a walk may go in circles.
const EVERY: usize = 8;
/// Lengths of walks, in turn: states that are near the initial one and far from it.
const LENGTHS: [usize; 5] = [8, 32, 128, 512, 2048];
/// Combinations, as many states each, for each process but one: then the largest share has about a
/// thirtieth more than the mean, by the spread of random sums.
const COMBINATIONS: f64 = 800.0;
/// The choice is worth its while if at most this part of the steps changes it.
const WORTH: f64 = 0.75;

/// What was seen of some states, by class of leaves.
#[derive(Default)]
struct Seen {
    /// By state and class: the part of the hash.
    states: Vec<Vec<u64>>,
    /// By step: the classes that change, as bits.
    steps: Vec<Vec<u64>>,
}

impl Seen {
    /// A state and its steps, which were found.
    fn note(
        &mut self,
        share: &mut Partition<'_>,
        classes: &[usize],
        key: u64,
    ) -> Result<(), Diagnostic> {
        let (mut before, mut after) = (vec![0; classes.len()], vec![0; classes.len()]);
        share.parts_of(key, classes, &mut before)?;
        for i in 0..share.found.len().min(STEPS) {
            share.parts_of(share.found[i].key, classes, &mut after)?;
            let mut step = vec![0u64; classes.len().div_ceil(64)];
            for class in (0..classes.len()).filter(|&class| before[class] != after[class]) {
                step[class / 64] |= 1 << (class % 64);
            }
            self.steps.push(step);
        }
        self.states.push(before);
        Ok(())
    }

    /// How many combinations of values the states have, if all were alike frequent: the inverse of
    /// the chance that two states have the same.
    fn combinations(&self, sums: impl Iterator<Item = u64>) -> f64 {
        let mut counts: AHashMap<u64, u64> = AHashMap::new();
        sums.for_each(|sum| *counts.entry(sum).or_default() += 1);
        let same: u64 = counts.values().map(|n| n * (n - 1)).sum();
        let n = self.states.len() as f64;
        n * (n - 1.0) / (same as f64).max(1.0)
    }

    /// The part of the steps that change some of the classes.
    fn changing(&self, classes: &[u64]) -> f64 {
        let changing = self
            .steps
            .iter()
            .filter(|step| step.iter().zip(classes).any(|(a, b)| a & b != 0))
            .count();
        changing as f64 / self.steps.len().max(1) as f64
    }

    /// Classes that tell for so many processes; none if all should.
    fn chosen(&self, classes: usize, processes: usize) -> Option<Vec<usize>> {
        let wanted = COMBINATIONS * (processes.max(2) - 1) as f64;
        let mut sums = vec![0u64; self.states.len()];
        let (mut chosen, mut bits) = (Vec::new(), vec![0u64; classes.div_ceil(64)]);
        let (mut combinations, mut changing) = (1.0, 0.0);
        while combinations < wanted {
            let mut best: Option<(f64, usize, f64, f64)> = None;
            for class in (0..classes).filter(|c| !chosen.contains(c)) {
                let mut with = bits.clone();
                with[class / 64] |= 1 << (class % 64);
                let sent = self.changing(&with);
                let many = self.combinations(
                    self.states
                        .iter()
                        .zip(&sums)
                        .map(|(state, sum)| sum.wrapping_add(state[class])),
                );
                // What is more than wanted is of no use.
                let worth =
                    (many.min(wanted).ln() - f64::ln(combinations)) / (sent - changing + 0.01);
                if many > combinations && best.is_none_or(|b| worth > b.0) {
                    best = Some((worth, class, many, sent));
                }
            }
            let (_, class, many, sent) = best?;
            if sent > WORTH {
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

/// The leaves that tell for so many processes, by what a share has met and what random walks meet;
/// none if all should.
///
/// # Errors
/// Those of the model.
pub(super) fn telling(share: &mut Partition<'_>, processes: usize) -> Result<Vec<u32>, Diagnostic> {
    let leaves = share.store.leaves.len();
    if processes < 2 || leaves < 2 {
        return Ok(Vec::new());
    }
    share.expander.follow(&share.store);
    let classes = share.expander.classes(leaves);
    let chosen = match walk(share, &classes, processes)?.chosen(leaves, processes) {
        Some(chosen) => chosen,
        // Walks of some models end where little changes.
        None => step(share, &classes)?.chosen(leaves, processes).unwrap_or_default(),
    };
    Ok((0..leaves as u32).filter(|&leaf| chosen.contains(&classes[leaf as usize])).collect())
}

/// Random walks from the initial state.
fn walk(
    share: &mut Partition<'_>,
    classes: &[usize],
    processes: usize,
) -> Result<Seen, Diagnostic> {
    let (mut seen, mut random, start) =
        (Seen::default(), Random::new(processes as u64), Instant::now());
    let vector = share.model.initial();
    let initial = share.settled(|share| Ok(share.store.encode(&vector)?))?;
    // Keys that are pending follow the layout: where walks begin, and where this one is.
    share.pending = vec![initial, initial];
    'walks: for length in LENGTHS.into_iter().cycle() {
        share.pending[1] = share.pending[0];
        for _ in 0..length {
            if seen.states.len() >= STATES || start.elapsed() > TIME {
                break 'walks;
            }
            share.settled(|share| {
                share.expander.successors(&share.store, share.pending[1], &mut share.found)
            })?;
            if random.below(EVERY) == 0 {
                seen.note(share, classes, share.pending[1])?;
            }
            match share.found.len() {
                0 => break,
                count => share.pending[1] = share.found[random.below(count)].key,
            }
        }
    }
    share.pending.clear();
    Ok(seen)
}

/// States that a search has met, with their steps. Their keys are asked for here: walks may have
/// changed the layout.
fn step(share: &mut Partition<'_>, classes: &[usize]) -> Result<Seen, Diagnostic> {
    let (mut seen, start) = (Seen::default(), Instant::now());
    let stride = (share.store.table.len() as usize).div_ceil(STATES).max(1);
    share.pending = share.store.table.entries().map(|e| e.1).step_by(stride).collect();
    for i in 0..share.pending.len() {
        if start.elapsed() > TIME {
            break;
        }
        share.settled(|share| {
            share.expander.successors(&share.store, share.pending[i], &mut share.found)
        })?;
        seen.note(share, classes, share.pending[i])?;
    }
    share.pending.clear();
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::tests::models::counters;
    use mu_base::Budget;
    use mu_model::hand::HandModel;

    /// Counters that hardly move, but with many values, beside one that always does.
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

    fn told(model: &HandModel, processes: usize) -> Vec<u32> {
        let (options, budget) = (Options::default(), Budget::default());
        let mut share = Partition::new(model, &options, &budget, None, 0, 1).unwrap();
        share.start().unwrap();
        telling(&mut share, processes).unwrap()
    }

    #[test]
    fn what_changes_seldom_tells() {
        let leaves = told(&uneven(), 2);
        assert!(!leaves.is_empty() && !leaves.contains(&4), "{leaves:?}");
        assert_eq!(told(&uneven(), 1), [0u32; 0]);
        // Each step changes one of these: nothing is seldom, and three values each are few.
        assert_eq!(told(&counters(2, 3), 2), [0u32; 0]);
    }

    /// Walks go far beyond what was met, so that the layout changes, and find nothing that changes
    /// seldom.
    #[test]
    fn what_was_met_is_read_by_the_layout_that_walks_leave() {
        let mut model = HandModel::new();
        let all: Vec<_> = (0..12).map(|i| model.slot(format!("n{i}"), i, false, 0)).collect();
        model.group("tick", &[], &all, &all, |read, emit| {
            assert!(read.iter().all(|n| *n == read[0]), "what no state is: {read:?}");
            emit.step("tick", &read.iter().map(|n| (n + 1) % 5000).collect::<Vec<_>>());
        });
        let (options, budget) = (Options::default(), Budget::default());
        let mut share = Partition::new(&model, &options, &budget, None, 0, 1).unwrap();
        share.start().unwrap();
        for level in 0..60 {
            share.begin(level);
            share.expand(10, &mut |_| {}).unwrap();
        }
        let before = share.store.epoch;
        assert_eq!(telling(&mut share, 2).unwrap(), [0u32; 0]);
        assert!(share.store.epoch > before, "the layout stays");
    }

    #[test]
    fn combinations_count_what_is_frequent_less() {
        let seen = |states: &[u64]| Seen {
            states: states.iter().map(|s| vec![*s]).collect(),
            steps: Vec::new(),
        };
        let alike: Vec<u64> = (0..10_000).map(|i| i % 50).collect();
        let found = seen(&alike).combinations(alike.iter().copied());
        assert!((found - 50.0).abs() < 1.0, "{found}");
        let one: Vec<u64> = (0..10_000).map(|i| if i % 2 == 0 { 0 } else { i }).collect();
        let found = seen(&one).combinations(one.iter().copied());
        assert!((found - 4.0).abs() < 0.1, "{found}");
    }
}
