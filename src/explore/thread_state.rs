//! What one searching thread keeps between rounds: its expander, and buffers that are used again.
//!
//! Cost: the expander's caches; the buffers hold a batch of states. Invariant: between rounds the
//! buffers are empty.

use super::annotate::AnnotationWorker;
use super::expander::{Expander, Successor};
use super::search::{BATCH, BLOCK, Shared};
use mu_base::host::Instant;
use mu_base::ids::LabelId;

/// Blocks that are kept to be used again.
const SPARE: usize = 16;

/// A thread's blocks of states.
#[derive(Default)]
pub(super) struct Blocks {
    /// New states.
    pub fresh: Vec<u64>,
    /// Blocks that are done: what is found next goes into memory that this thread has just read,
    /// and no other has written.
    spare: Vec<Vec<u64>>,
}

impl Blocks {
    /// Takes the full block of new states, and begins another.
    pub fn full(&mut self) -> Vec<u64> {
        let empty = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(BLOCK));
        std::mem::replace(&mut self.fresh, empty)
    }

    /// Keeps the memory of a block that is done.
    pub fn recycle(&mut self, mut keys: Vec<u64>) {
        if self.spare.len() < SPARE && keys.capacity() >= BLOCK {
            keys.clear();
            self.spare.push(keys);
        }
    }
}

/// What a thread keeps between rounds.
pub(super) struct Local<'a> {
    /// Which thread it is.
    pub number: usize,
    pub expander: Expander<'a>,
    pub found: Vec<Successor>,
    pub batch: Vec<u64>,
    pub hashes: Vec<u64>,
    /// Where the successors of the batch are stored, as far as there was room.
    pub places: Vec<Option<u64>>,
    pub blocks: Blocks,
    /// With annotations: what computes them, labels of a state, what is brought to the targets in
    /// the batch.
    pub lane: Option<Box<dyn AnnotationWorker + 'a>>,
    pub labels: Vec<LabelId>,
    pub brought: Vec<u32>,
    pub ticked: Instant,
}

impl<'a> Local<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, number: usize) -> Self {
        let options = shared.options;
        Self {
            number,
            expander: Expander::new(shared.model, shared.memo.clone(), options)
                .with_symmetries(shared.goal.symmetries)
                .preferring(shared.goal.step)
                .reduced(shared.goal.stubborn)
                .thrifty(shared.thrifty),
            found: Vec::new(),
            batch: Vec::with_capacity(BATCH + 64),
            hashes: Vec::new(),
            places: Vec::new(),
            blocks: Blocks::default(),
            lane: shared.goal.annotator.map(|a| a.lane()),
            labels: Vec::new(),
            brought: Vec::new(),
            ticked: Instant::now(),
        }
    }
}
