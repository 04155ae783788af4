//! Incremental computation of keys: for a state that differs from a known one in a few leaves, only
//! the inner nodes above these leaves are looked up.
//!
//! In: a state with unpacked leaves and inner nodes, and new indices of some leaves. Out: the key
//! of the new state in the [`Store`]. A state of many components is a deep tree, and a step changes
//! two or three of its leaves. Each thread has a direct-mapped cache of pairs in front of the
//! tables that all threads share. Cost: a probe for each node on the paths from the changed leaves
//! to their fields.
//!
//! Invariant: cached pairs belong to one layout of the store (`Store::epoch`), so
//! [`KeyPatcher::follow`] is called after each change of the layout.

use super::intern::PairCache;
use super::store::{Overflow, Store};
use mu_base::narrow;

/// Computes keys from changes of an unpacked state.
#[derive(Default)]
pub(super) struct KeyPatcher {
    /// Indices of the inner nodes of the unpacked state.
    pub inner: Vec<u32>,
    patched: Vec<u32>,
    patched_inner: Vec<u32>,
    /// Set of the nodes to look up again, one bit each.
    dirty: Vec<u64>,
    pairs: PairCache,
}

impl KeyPatcher {
    /// Resets all buffers and the cache to the layout of the store.
    pub fn follow(&mut self, store: &Store) {
        self.inner = vec![0; store.inner_node_count()];
        self.dirty = vec![0; store.inner_node_count().div_ceil(64)];
        self.pairs = if self.inner.is_empty() { PairCache::default() } else { PairCache::new() };
    }

    /// Returns the key of a state after changes of leaves, given as alternating leaves and new
    /// indices. `leaves` and [`KeyPatcher::inner`] are those of the unpacked state.
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
            for (word, above) in self.dirty.iter_mut().zip(store.ancestor_bits(change[0])) {
                *word |= above;
            }
        }
        for w in 0..self.dirty.len() {
            // Parents have greater numbers than their children.
            while self.dirty[w] != 0 {
                let node = narrow::index(w) * 64 + self.dirty[w].trailing_zeros();
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
