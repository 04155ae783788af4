//! Builder of a labelled transition system during a search: states are numbered level by level, in
//! the order of their first transition.
//!
//! In: the transitions of a level, block by block. Out: the next level in the order of its numbers,
//! and at the end an [`Lts`]. Cost: a lookup for each transition. Invariant: numbers do not depend
//! on the threads.

use std::sync::atomic::Ordering;

use super::search::BATCH;
use super::store::Store;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Diagnostic, Stage};
use mu_lts::{Labels, Lts};
use mu_model::Model;

/// Transitions of consecutive states of a level.
pub(super) struct Edges {
    /// Position of the first state in the level.
    pub first: u64,
    /// Number of transitions of each state.
    pub counts: Vec<u32>,
    /// Label of each transition.
    pub labels: Vec<LabelId>,
    /// Key of the target of each transition.
    pub targets: Vec<u64>,
}

/// The transition system while it grows.
pub(super) struct LtsBuilder {
    offsets: Vec<u64>,
    labels: Vec<LabelId>,
    targets: Vec<StateId>,
    /// States numbered.
    count: u32,
    /// States in a block of the next level.
    block: usize,
}

impl LtsBuilder {
    /// Starts with the numbered initial state.
    pub fn new(block: usize) -> Self {
        Self { offsets: vec![0], labels: Vec::new(), targets: Vec::new(), count: 1, block }
    }

    /// Returns the transition system.
    pub fn finish(mut self, model: &dyn Model, states: u64) -> Lts {
        // States that a limit left unexpanded have no transitions.
        let end = self.labels.len() as u64;
        self.offsets.resize(states as usize + 1, end);
        let texts = (0..model.label_count()).map(|l| model.label_text(LabelId::new(l))).collect();
        Lts {
            initial: StateId::of(0),
            offsets: self.offsets,
            labels: self.labels,
            targets: self.targets,
            table: Labels { texts },
        }
    }

    /// Numbers the targets of a level in the order of their first edge. Returns the next level in
    /// this order.
    pub fn number(
        &mut self,
        store: &Store,
        mut edges: Vec<Edges>,
    ) -> Result<Vec<Vec<u64>>, Diagnostic> {
        edges.sort_unstable_by_key(|e| e.first);
        let mut next: Vec<Vec<u64>> = Vec::new();
        let mut count = self.count;
        for block in edges {
            let block_start = self.labels.len() as u64;
            for part in block.targets.chunks(BATCH) {
                // Touches the entries first, so that their cache misses overlap.
                std::hint::black_box(
                    part.iter().fold(0, |acc, &key| acc ^ store.table.touch(store.table.hash(key))),
                );
                for &key in part {
                    let place = store.table.find(key).ok_or_else(|| {
                        Diagnostic::new(Stage::Internal, "a target is not in the store")
                    })?;
                    // The table stores one more than a state's number; 0: none.
                    let number = store.table.number(place);
                    let mut n = number.load(Ordering::Relaxed);
                    if n == 0 {
                        if count == u32::MAX {
                            return Err(Diagnostic::new(
                                Stage::Unsupported,
                                "a labelled transition system of 2^32 states or more",
                            ));
                        }
                        count += 1;
                        n = count;
                        number.store(n, Ordering::Relaxed);
                        match next.last_mut() {
                            Some(last) if last.len() < self.block => last.push(key),
                            _ => next.push(vec![key]),
                        }
                    }
                    self.targets.push(StateId::of(n - 1));
                }
            }
            self.labels.extend_from_slice(&block.labels);
            let mut end = block_start;
            for count in block.counts {
                end += u64::from(count);
                self.offsets.push(end);
            }
        }
        self.count = count;
        Ok(next)
    }
}
