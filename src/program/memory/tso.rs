//! Total store order (SPARC V9; x86-TSO, Owens, Sarkar, Sewell 2009): the buffer is a queue.

use super::{BufferEntry, MemoryModel};

/// The model.
#[derive(Debug)]
pub(super) struct TotalStoreOrder;

impl MemoryModel for TotalStoreOrder {
    fn name(&self) -> &'static str {
        "tso"
    }
    fn ready(&self, buffer: &[BufferEntry], visit: &mut dyn FnMut(usize)) {
        if !buffer.is_empty() {
            visit(0);
        }
    }
    fn normalise(&self, _: &mut Vec<BufferEntry>) {}
}
