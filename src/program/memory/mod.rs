//! Memory models as machines: what is between a thread and memory.
//!
//! Every thread has one buffer of stores in program order; a model says which of them may go to
//! memory next, and which buffers behave alike. All else is the same for all of them: a load takes
//! the newest store of its own thread to the cell if there is one in the buffer; a full fence and a
//! locked instruction wait for an empty buffer. Sequential consistency has no buffer.

mod pso;
mod sc;
mod tso;

/// What waits in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entry {
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

impl Entry {
    /// The cell that a store goes to; a mark has none.
    #[inline]
    pub fn cell(self) -> Option<u32> {
        match self {
            Entry::Store { cell, .. } => Some(cell),
            Entry::Mark => None,
        }
    }
}

/// A memory model.
pub trait MemoryModel: Send + Sync + std::fmt::Debug {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// Whether stores are buffered.
    fn buffered(&self) -> bool {
        true
    }
    /// Whether a store fence must be remembered in the buffer.
    fn marks_store_fences(&self) -> bool {
        false
    }
    /// Calls `visit` with the place of each store that may go to memory next.
    fn ready(&self, buffer: &[Entry], visit: &mut dyn FnMut(usize));
    /// Brings a buffer into the form that all buffers of the same behaviour have.
    fn normalise(&self, buffer: &mut Vec<Entry>);
}

/// The models by name.
pub const ALL: [&dyn MemoryModel; 3] =
    [&sc::SequentialConsistency, &tso::TotalStoreOrder, &pso::PartialStoreOrder];

/// Sequential consistency.
pub const SC: &dyn MemoryModel = ALL[0];
/// Total store order: x86.
pub const TSO: &dyn MemoryModel = ALL[1];
/// Partial store order.
pub const PSO: &dyn MemoryModel = ALL[2];

/// The model of a name.
pub fn by_name(name: &str) -> Option<&'static dyn MemoryModel> {
    ALL.into_iter().find(|m| m.name() == name)
}
