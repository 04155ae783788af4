//! Batches of obligations for the product search: their sizes, and the union of the pairs found.
//!
//! In: the number of obligations, then the work of each batch and the obligations at its states.
//! Out: the next batch; the number of distinct pairs of state and obligation in all batches.
//! Smaller batches share more set nodes, larger ones share exploration, so the size is doubled
//! while that saves work. Work is counted in steps and set members, not in time: the batches, and
//! with them the early end of a search, are the same in each run.
//!
//! Cost: one join of hash-consed sets ([`super::obligations`]) a state and batch. Invariant: after
//! all batches the count equals that of one search with all obligations.

use super::automaton::{Automaton, ObligationSet};
use super::obligations::{EMPTY, Operations, Set, Sets};
use ahash::AHashMap;
use std::ops::Range;

/// Sizes of batches.
#[derive(Clone, Copy, Debug)]
pub struct BatchSizes {
    /// Maximum number of obligations that form one batch.
    pub undivided: usize,
    /// Obligations in the first batch, if there are more.
    pub first: usize,
}

impl BatchSizes {
    /// The sizes that save most work.
    pub const USUAL: BatchSizes = BatchSizes { undivided: 64, first: 16 };
    /// The least sizes, so that tests divide few obligations.
    pub const LEAST: BatchSizes = BatchSizes { undivided: 1, first: 1 };
}

/// The size is doubled if an obligation then takes less than this fraction of the work.
const MIN_SAVING: f64 = 0.95;

/// Division of obligations into batches.
pub struct Batches {
    count: usize,
    at: usize,
    size: usize,
    growing: bool,
    /// Work per obligation of the previous batch; the first batch includes the exploration and is
    /// not measured.
    before: Option<f64>,
}

impl Batches {
    /// Batches of obligations `0..count`.
    pub fn new(count: usize, sizes: BatchSizes) -> Self {
        let size = if count <= sizes.undivided { count } else { sizes.first };
        Self { count, at: 0, size, growing: true, before: None }
    }

    /// Returns the next batch; `None` after the last one.
    pub fn batch(&self) -> Option<Range<usize>> {
        (self.at < self.count).then(|| self.at..(self.at + self.size).min(self.count))
    }

    /// Proceeds to the next batch; this one took `work` units.
    pub fn advance(&mut self, work: u64) {
        let Some(batch) = self.batch() else { return };
        let cost = work as f64 / batch.len() as f64;
        if self.at > 0 && self.growing {
            if self.before.is_none_or(|before| cost < MIN_SAVING * before) {
                self.size *= 2;
            } else {
                self.size = (self.size / 2).max(1);
                self.growing = false;
            }
            self.before = Some(cost);
        }
        self.at = batch.end;
    }
}

/// The pairs of state and obligation found by some batches.
#[derive(Default)]
pub struct Pairs {
    sets: Sets,
    /// By state, all its obligations.
    known: Vec<Set>,
}

impl Pairs {
    /// Adds the obligations of a batch, given by state.
    pub fn add(&mut self, automaton: &Automaton, found: &[ObligationSet]) {
        let mut numbers: AHashMap<ObligationSet, Set> = AHashMap::new();
        let mut operations = Operations::new(&self.sets);
        if self.known.len() < found.len() {
            self.known.resize(found.len(), EMPTY);
        }
        for (known, obligations) in self.known.iter_mut().zip(found) {
            let set = *numbers.entry(*obligations).or_insert_with(|| {
                let members: Vec<u32> =
                    automaton.set(*obligations).iter().map(|q| q.number()).collect();
                self.sets.from_members(&members)
            });
            *known = operations.join(*known, set).0;
        }
    }

    /// Returns the number of pairs; `None` if there are too many sets to number.
    pub fn count(&self) -> Option<u64> {
        let mut sizes = Vec::new();
        let count = self.known.iter().map(|set| self.sets.size(*set, &mut sizes)).sum();
        (!self.sets.is_full()).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sizes of the batches for a work function of the size.
    fn sizes(count: usize, work: impl Fn(usize) -> u64) -> Vec<usize> {
        let mut batches = Batches::new(count, BatchSizes::USUAL);
        let mut sizes = Vec::new();
        while let Some(batch) = batches.batch() {
            sizes.push(batch.len());
            batches.advance(work(batch.len()));
        }
        sizes
    }

    #[test]
    fn sizes_depend_on_work() {
        assert_eq!(sizes(64, |_| 1), [64]);
        // Each batch explores again: fewer batches are better.
        assert_eq!(sizes(200, |_| 1_000), [16, 16, 32, 64, 72]);
        // Each obligation takes the same work in any batch.
        assert_eq!(sizes(100, |size| size as u64), [16, 16, 32, 16, 16, 4]);
        assert_eq!(sizes(0, |_| 1), [0; 0]);
    }
}
