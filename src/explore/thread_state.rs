//! State of one search thread between rounds: its expander and reusable buffers.
//!
//! Cost: the expander's caches; the buffers hold a batch of states. Invariant: between rounds the
//! buffers are empty.

use super::annotate::AnnotationWorker;
use super::expander::{Expander, Successor};
use super::search::{BATCH, Shared};
use mu_base::host::Instant;
use mu_base::ids::LabelId;

/// Limit on finished blocks stored for reuse.
const SPARE: usize = 16;

/// A thread's blocks of states.
pub(super) struct Blocks {
    /// States in a full block.
    size: usize,
    /// New states.
    pub fresh: Vec<u64>,
    /// Finished blocks for reuse: their memory was just read by this thread, and no other thread
    /// has written it.
    spare: Vec<Vec<u64>>,
}

impl Blocks {
    fn new(size: usize) -> Self {
        Self { size, fresh: Vec::new(), spare: Vec::new() }
    }

    /// True if the block of new states is full.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.fresh.len() == self.size
    }

    /// Takes the full block of new states, and begins another.
    pub fn take_full(&mut self) -> Vec<u64> {
        let empty = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(self.size));
        std::mem::replace(&mut self.fresh, empty)
    }

    /// Stores a finished block for reuse.
    pub fn recycle(&mut self, mut keys: Vec<u64>) {
        if self.spare.len() < SPARE && keys.capacity() >= self.size {
            keys.clear();
            self.spare.push(keys);
        }
    }
}

/// State of one search thread.
pub(super) struct ThreadState<'a> {
    /// Number of the thread.
    pub number: usize,
    pub expander: Expander<'a>,
    pub found: Vec<Successor>,
    pub batch: Vec<u64>,
    pub hashes: Vec<u64>,
    /// Places of the batch's successors in the table; `None` if there was no room.
    pub places: Vec<Option<u64>>,
    pub blocks: Blocks,
    /// For annotations: the worker, the labels of a state, and the annotations that reach the
    /// targets in the batch.
    pub annotation_worker: Option<Box<dyn AnnotationWorker + 'a>>,
    pub labels: Vec<LabelId>,
    pub propagated: Vec<u32>,
    pub ticked: Instant,
}

impl<'a> ThreadState<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, number: usize) -> Self {
        let options = shared.options;
        Self {
            number,
            expander: Expander::new(shared.model, shared.shared_cache.clone(), options)
                .with_symmetries(shared.goal.symmetries)
                .with_preferred_steps(shared.goal.step)
                .with_partial_order_reduction(shared.goal.stubborn)
                .with_cost_monitor(shared.thrifty),
            found: Vec::new(),
            batch: Vec::with_capacity(BATCH + 64),
            hashes: Vec::new(),
            places: Vec::new(),
            blocks: Blocks::new(options.tuning.block),
            annotation_worker: shared.goal.annotator.map(|a| a.annotation_worker()),
            labels: Vec::new(),
            propagated: Vec::new(),
            ticked: Instant::now(),
        }
    }
}
