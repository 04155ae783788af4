//! What one searching thread keeps between rounds: its expander, and buffers that are used again.
//!
//! Cost: the expander's caches; the buffers hold a batch of states. Invariant: between rounds the buffers are empty.

use super::annotate::Lane;
use super::cache::{Expander, Successor};
use super::search::{BATCH, Shared};
use mu_base::host::Instant;
use mu_base::ids::LabelId;

/// What a thread keeps between rounds.
pub(super) struct Local<'a> {
    pub expander: Expander<'a>,
    pub found: Vec<Successor>,
    pub batch: Vec<u64>,
    pub hashes: Vec<u64>,
    /// Where the successors of the batch are stored, as far as there was room.
    pub places: Vec<Option<u64>>,
    pub fresh: Vec<u64>,
    /// With annotations: what computes them, labels of a state, what is brought to the targets in the batch.
    pub lane: Option<Box<dyn Lane + 'a>>,
    pub labels: Vec<LabelId>,
    pub brought: Vec<u32>,
    pub ticked: Instant,
}

impl<'a> Local<'a> {
    pub(super) fn new(shared: &'a Shared<'a>) -> Self {
        let options = shared.options;
        Self {
            expander: Expander::new(shared.model, shared.memo.clone(), options)
                .with_symmetries(shared.goal.symmetries)
                .preferring(shared.goal.step)
                .reduced(shared.goal.stubborn)
                .thrifty(shared.thrifty),
            found: Vec::new(),
            batch: Vec::with_capacity(BATCH + 64),
            hashes: Vec::new(),
            places: Vec::new(),
            fresh: Vec::new(),
            lane: shared.goal.annotator.map(|a| a.lane()),
            labels: Vec::new(),
            brought: Vec::new(),
            ticked: Instant::now(),
        }
    }
}
