//! Keys of states that differ from a known one in a few leaves: only the inner nodes above these
//! are looked up again.
//!
//! In: a state whose leaves and inner nodes are unpacked, new indices of some leaves. Out: the key.
//! A state of many components is a deep tree, and a step touches two or three leaves of it. Pairs
//! are kept by thread in a direct-mapped table in front of the shared ones. Cost: a probe for each
//! node on the paths from the changed leaves to their fields.
//!
//! Invariant: what is kept belongs to one layout of the store (`Store::epoch`).

use super::intern::KeptPairs;
use super::store::{Overflow, Store};

/// A state that is unpacked, and one that is made of it.
#[derive(Default)]
pub(super) struct Folder {
    /// Indices of the inner nodes of the state that is unpacked.
    pub inner: Vec<u32>,
    patched: Vec<u32>,
    patched_inner: Vec<u32>,
    /// Bits of the nodes to be looked up again.
    dirty: Vec<u64>,
    pairs: KeptPairs,
}

impl Folder {
    /// Follows the store's layout.
    pub fn follow(&mut self, store: &Store) {
        self.inner = vec![0; store.nodes_count()];
        self.dirty = vec![0; store.nodes_count().div_ceil(64)];
        self.pairs = if self.inner.is_empty() { KeptPairs::default() } else { KeptPairs::new() };
    }

    /// The key of a state with changes of leaves, given as leaf and new index one after the other;
    /// `leaves` and [`Folder::inner`] are those of the state.
    pub fn patch(
        &mut self,
        store: &Store,
        key: u64,
        leaves: &[u32],
        changes: &[u32],
    ) -> Result<u64, Overflow> {
        self.patched.clear();
        self.patched.extend_from_slice(leaves);
        self.patched_inner.clear();
        self.patched_inner.extend_from_slice(&self.inner);
        let mut key = key;
        for change in changes.chunks_exact(2) {
            self.patched[change[0] as usize] = change[1];
            for (word, above) in self.dirty.iter_mut().zip(store.above(change[0])) {
                *word |= above;
            }
        }
        for w in 0..self.dirty.len() {
            // Parents have greater numbers than their children.
            while self.dirty[w] != 0 {
                let node = w as u32 * 64 + self.dirty[w].trailing_zeros();
                self.dirty[w] &= self.dirty[w] - 1;
                let pair = store.pair_of(node, &self.patched, &self.patched_inner);
                let index = self.pairs.index(node, pair, || store.intern_pair(node, pair));
                self.patched_inner[node as usize] = index;
                if let Some(field) = store.field_at(node) {
                    if u64::from(index) >= store.capacity(field) {
                        self.dirty.fill(0);
                        return Err(Overflow);
                    }
                    key = store.with_field(key, field, index);
                }
            }
        }
        Ok(key)
    }
}
