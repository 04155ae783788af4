//! Whether the graph of a model has a cycle, found out by several processes: Kahn's algorithm (1962), level by level.
//!
//! In: a [`Share`]. It first counts with each state the edges that lead to it, then takes away the initial state, if no edge leads there, and with each
//! state that is taken away the edges that leave it; a state to which no edge leads any more goes next. All states are reachable, so the graph has no cycle if
//! and only if all are taken away. With symmetries the graph is that of the orbits: a cycle there is one of the model, since the group is finite.
//!
//! Cost: 4 bytes a state beside the store; each state is expanded twice, and each edge between two processes travels twice. Invariant: both times a state has
//! the same edges.

use std::sync::atomic::Ordering;

use super::Options;
use super::share::Share;
use super::store::Store;
use super::table::Payload;
use mu_base::Diagnostic;

/// What a share does with the edges.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Edges {
    /// Counts them at the states that they lead to.
    Count,
    /// Takes them away.
    Take,
}

impl Share<'_> {
    /// The same share, still empty, of a search that counts the edges to each state.
    #[must_use]
    pub fn counting_edges(mut self, options: &Options) -> Self {
        self.store = Store::new(self.model, options.expected_states, Payload::Number);
        self.edges = Some(Edges::Count);
        self
    }

    /// The search is over: the next one takes the edges away.
    pub fn take_edges(&mut self) {
        self.edges = Some(Edges::Take);
        self.taken = 0;
    }

    /// States taken away, and states in all.
    pub fn taken(&self) -> (u64, u64) {
        (self.taken, self.store.table.len())
    }

    /// The initial state, which is this process's own: no edge led to it when it was stored. Whether it is to be queued.
    pub(super) fn start_edges(&mut self, edges: Edges, key: u64) -> Result<bool, Diagnostic> {
        let place = self.store.table.find(key).ok_or_else(|| Diagnostic::internal("the initial state is not stored"))?;
        let cell = self.store.table.number(place);
        if edges == Edges::Count {
            cell.store(0, Ordering::Relaxed);
        }
        Ok(cell.load(Ordering::Relaxed) == 0)
    }
}

/// Notes an edge to the state at a place, which was stored just now if it is `new`; whether the state is to be queued.
pub(super) fn note_edge(store: &Store, edges: Edges, place: u64, new: bool) -> Result<bool, Diagnostic> {
    let cell = store.table.number(place);
    let there = cell.load(Ordering::Relaxed);
    let now = match edges {
        Edges::Count => there.checked_add(1),
        Edges::Take => there.checked_sub(1),
    };
    let now = now.ok_or_else(|| Diagnostic::internal("the edges to a state are not those that were counted"))?;
    cell.store(now, Ordering::Relaxed);
    Ok(match edges {
        Edges::Count => new,
        Edges::Take => now == 0,
    })
}
