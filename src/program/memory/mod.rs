//! Operational memory models: the store buffer between a thread and memory.
//!
//! Every thread has one buffer of stores in program order. A model defines the stores that may move
//! to memory next, and the normal form of buffers with equal behaviour. The rest is the same for
//! all models: a load reads the newest store of its own thread to the cell if the buffer contains
//! one; a full fence and a locked instruction wait for an empty buffer. Sequential consistency has
//! no buffer.

mod pso;
mod sc;
mod tso;

/// An entry of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BufferEntry {
    /// A store.
    Store {
        /// The cell.
        cell: u32,
        /// The value, as the machine encodes it.
        value: u32,
    },
    /// The mark of a store fence.
    Mark,
}

impl BufferEntry {
    /// Returns the cell of a store; `None` for a mark.
    #[inline]
    pub fn cell(self) -> Option<u32> {
        match self {
            BufferEntry::Store { cell, .. } => Some(cell),
            BufferEntry::Mark => None,
        }
    }
}

/// A memory model.
pub trait MemoryModel: Send + Sync + std::fmt::Debug {
    /// Returns the name on the command line.
    fn name(&self) -> &'static str;
    /// True if stores are buffered.
    fn has_buffers(&self) -> bool {
        true
    }
    /// True if a store fence must leave a mark in the buffer.
    fn marks_store_fences(&self) -> bool {
        false
    }
    /// Calls `visit` with the index of each store that may move to memory next.
    fn ready(&self, buffer: &[BufferEntry], visit: &mut dyn FnMut(usize));
    /// Converts a buffer to the normal form of all buffers with the same behaviour.
    fn normalise(&self, buffer: &mut Vec<BufferEntry>);
}

/// All models.
pub const ALL: [&dyn MemoryModel; 3] =
    [&sc::SequentialConsistency, &tso::TotalStoreOrder, &pso::PartialStoreOrder];

/// Sequential consistency.
pub const SC: &dyn MemoryModel = ALL[0];
/// Total store order: x86.
pub const TSO: &dyn MemoryModel = ALL[1];
/// Partial store order.
pub const PSO: &dyn MemoryModel = ALL[2];

/// Looks up a model by name; `None` if there is none.
pub fn by_name(name: &str) -> Option<&'static dyn MemoryModel> {
    ALL.into_iter().find(|m| m.name() == name)
}
