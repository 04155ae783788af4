//! Sequential consistency (Lamport 1979): a store updates memory immediately.

use super::{BufferEntry, MemoryModel};

/// The model.
#[derive(Debug)]
pub(super) struct SequentialConsistency;

impl MemoryModel for SequentialConsistency {
    fn name(&self) -> &'static str {
        "sc"
    }
    fn has_buffers(&self) -> bool {
        false
    }
    fn ready(&self, _: &[BufferEntry], _: &mut dyn FnMut(usize)) {}
    fn normalise(&self, _: &mut Vec<BufferEntry>) {}
}
