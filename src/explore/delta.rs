//! Incremental packing and unpacking: only leaves that differ from the previous state are
//! processed.
//!
//! In: keys of successors, or leaf indices of received states ([`super::partition`]). Out: the
//! leaves of a key ([`DeltaUnpacker`]), the key of leaves ([`DeltaPacker`]). Successors of one
//! state share most leaves, and so do the states of a batch, while models have dozens of leaves and
//! a tree above them. Cost: linear in the differing leaves. Invariant: results equal those of
//! [`Store::unpack`] and [`Store::pack`]; a change of the layout is detected by its epoch.

use super::intern::PairCache;
use super::store::{Child, Overflow, Store};
use mu_base::narrow;

/// Compares up to eight positions of two rows; bit i is set if position i differs.
#[inline]
pub(super) fn differing_positions(new: &[u32], old: &[u32]) -> u8 {
    let bits = |new: &[u32], old: &[u32]| {
        new.iter().zip(old).zip(0..).fold(0, |bits, ((a, b), i)| bits | u8::from(a != b) << i)
    };
    // A row of known length is compared as a whole.
    match (new.first_chunk::<8>(), old.first_chunk::<8>()) {
        (Some(new), Some(old)) => bits(new, old),
        _ => bits(new, old),
    }
}

/// Incremental unpacker: the leaves of the last key.
#[derive(Default)]
pub(super) struct DeltaUnpacker {
    /// Epoch of the layout; 0 if there is no last key.
    epoch: u64,
    key: u64,
    /// Indices of its leaves and of its inner nodes.
    pub leaves: Vec<u32>,
    inner: Vec<u32>,
    /// Leaves that the last call changed, with their previous indices.
    pub changed_leaves: Vec<(u32, u32)>,
    /// By bit of a key, its field.
    fields: Vec<u8>,
    todo: Vec<(u32, u32)>,
}

impl DeltaUnpacker {
    /// Unpacks `key`. Returns true if every leaf may have changed (new layout).
    #[inline]
    pub fn unpack_delta(&mut self, store: &Store, key: u64) -> bool {
        self.changed_leaves.clear();
        if self.epoch != store.epoch {
            self.begin(store, key);
            return true;
        }
        let mut differs = self.key ^ key;
        self.key = key;
        while differs != 0 {
            let field = store.fields[usize::from(self.fields[differs.trailing_zeros() as usize])];
            let mask = ((1u64 << field.width) - 1) << field.offset;
            differs &= !mask;
            // A field has at most 31 bits.
            let index = ((key & mask) >> field.offset) as u32;
            match field.child {
                Child::Leaf(leaf) => self.set(leaf, index),
                Child::Node(node) => {
                    self.todo.push((node, index));
                    self.descend(store);
                }
            }
        }
        false
    }

    /// Unpacks the next key from scratch.
    pub fn reset(&mut self) {
        self.epoch = 0;
    }

    #[cold]
    fn begin(&mut self, store: &Store, key: u64) {
        (self.epoch, self.key) = (store.epoch, key);
        self.leaves = vec![0; store.leaves.len()];
        self.inner = vec![0; store.inner_node_count()];
        self.fields = store
            .fields
            .iter()
            .zip(0u8..)
            .flat_map(|(f, n)| std::iter::repeat_n(n, f.width as usize))
            .collect();
        store.unpack_all(key, &mut self.leaves, &mut self.inner);
    }

    #[inline]
    fn set(&mut self, leaf: u32, index: u32) {
        let old = std::mem::replace(&mut self.leaves[leaf as usize], index);
        if old != index {
            self.changed_leaves.push((leaf, old));
        }
    }

    fn descend(&mut self, store: &Store) {
        while let Some((node, index)) = self.todo.pop() {
            if std::mem::replace(&mut self.inner[node as usize], index) == index {
                continue;
            }
            for (child, index) in store.children(node, index) {
                match child {
                    Child::Leaf(leaf) => self.set(leaf, index),
                    Child::Node(node) => self.todo.push((node, index)),
                }
            }
        }
    }
}

/// Incremental packer: looks up only the inner nodes above leaves that differ from the previous
/// state.
#[derive(Default)]
pub(super) struct DeltaPacker {
    /// Epoch of the layout; 0 if the next state is packed from scratch.
    epoch: u64,
    key: u64,
    leaves: Vec<u32>,
    inner: Vec<u32>,
    /// Bits of the inner nodes to look up.
    dirty: Vec<u64>,
    /// By inner node, its last pair and the index of this pair.
    last: Vec<(u64, u32)>,
    pair_cache: PairCache,
    /// Epoch of the layout that the cached pairs belong to.
    pair_cache_epoch: u64,
}

impl DeltaPacker {
    /// Returns the key of leaf indices.
    #[inline]
    pub fn pack(&mut self, store: &Store, leaves: &[u32]) -> Result<u64, Overflow> {
        if self.epoch != store.epoch {
            return self.begin(store, leaves);
        }
        // Valid again only after success.
        self.epoch = 0;
        for (first, (old, new)) in
            (0u32..).step_by(8).zip(self.leaves.chunks_mut(8).zip(leaves.chunks(8)))
        {
            let mut bits = differing_positions(new, old);
            old.copy_from_slice(new);
            while bits != 0 {
                let leaf = first + bits.trailing_zeros();
                bits &= bits - 1;
                let new = leaves[leaf as usize];
                match store.field_of[leaf as usize] {
                    (field, true) if u64::from(new) >= store.capacity(field) => {
                        return Err(Overflow);
                    }
                    (field, true) => self.key = store.with_field(self.key, field, new),
                    (_, false) => self
                        .dirty
                        .iter_mut()
                        .zip(store.ancestor_bits(leaf))
                        .for_each(|(word, above)| *word |= above),
                }
            }
        }
        let Self { key, leaves, inner, dirty, last, pair_cache, .. } = self;
        for (w, word) in dirty.iter_mut().enumerate() {
            // Parents have greater numbers than their children.
            while *word != 0 {
                let node = narrow::index(w) * 64 + word.trailing_zeros();
                *word &= *word - 1;
                let index =
                    index_of(store, last, pair_cache, node, store.pair_of(node, leaves, inner));
                if std::mem::replace(&mut inner[node as usize], index) == index {
                    continue;
                }
                if let Some(field) = store.field_at(node) {
                    if u64::from(index) >= store.capacity(field) {
                        return Err(Overflow);
                    }
                    *key = store.with_field(*key, field, index);
                }
            }
        }
        self.epoch = store.epoch;
        Ok(self.key)
    }

    #[cold]
    fn begin(&mut self, store: &Store, leaves: &[u32]) -> Result<u64, Overflow> {
        let count = store.inner_node_count();
        if self.pair_cache_epoch != store.epoch {
            // No pair has such indices.
            (self.inner, self.last) = (vec![0; count], vec![(u64::MAX, 0); count]);
            self.pair_cache = if count > 0 { PairCache::new() } else { PairCache::default() };
            self.pair_cache_epoch = store.epoch;
        }
        self.dirty = vec![0; count.div_ceil(64)];
        self.leaves = leaves.to_vec();
        let Self { inner, last, pair_cache, .. } = self;
        self.key = store.pack_by(leaves, inner, &mut |node, pair| {
            index_of(store, last, pair_cache, node, pair)
        })?;
        self.epoch = store.epoch;
        Ok(self.key)
    }
}

#[inline]
fn index_of(
    store: &Store,
    last: &mut [(u64, u32)],
    pair_cache: &mut PairCache,
    node: u32,
    pair: u64,
) -> u32 {
    let last = &mut last[node as usize];
    if last.0 != pair {
        *last = (pair, pair_cache.index(node, pair, || store.intern_pair(node, pair)));
    }
    last.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Payload, TableSizes};
    use crate::tests::models::counters;
    use mu_base::random::Random;

    #[test]
    fn leaves_and_keys_are_those_of_the_store() {
        let mut random = Random::new(5);
        // Sixty leaves with hundreds of values do not fit into the key: there are inner nodes.
        for (count, values) in [(4, 1000), (60, 300)] {
            let model = counters(count, 2);
            let mut store = Store::new(&model, 0, Payload::None, TableSizes::SMALL);
            let slots = store.leaf_of_slot.len();
            let mut vector = vec![0; slots];
            let (mut near, mut packer) = (DeltaUnpacker::default(), DeltaPacker::default());
            let (mut leaves, mut layouts, mut nodes, mut whole) =
                (vec![0; store.leaves.len()], 0, 0, 0);
            for step in 0..6_000 {
                // Most states differ little from the previous one, some differ much.
                for _ in 0..if step % 50 == 0 { slots } else { 1 + random.below(2) } {
                    vector[random.below(slots)] = random.below(1 + values * step / 6_000) as u32;
                }
                let indices = store.intern(&vector);
                let key = loop {
                    match (store.pack(&indices), packer.pack(&store, &indices)) {
                        (Ok(key), Ok(same)) => {
                            assert_eq!(key, same);
                            break key;
                        }
                        (Err(Overflow), Err(Overflow)) => {
                            store.replan(std::iter::empty(), None);
                            layouts += 1;
                        }
                        others => panic!("{others:?}"),
                    }
                };
                store.table.insert(key);
                store.table.add_len(1);
                if store.table.is_crowded() {
                    store.table.grow(crate::table::Growth::default());
                }
                let before = near.leaves.clone();
                let all = near.unpack_delta(&store, key);
                store.unpack(key, &mut leaves);
                assert_eq!((&near.leaves, &leaves), (&indices, &indices), "step {step}");
                if !all {
                    let changed_leaves: Vec<(u32, u32)> = near.changed_leaves.clone();
                    assert!(
                        changed_leaves.iter().all(|&(leaf, old)| before[leaf as usize] == old
                            && leaves[leaf as usize] != old)
                    );
                    assert_eq!(
                        changed_leaves.len(),
                        before.iter().zip(&leaves).filter(|(b, l)| b != l).count()
                    );
                }
                whole += usize::from(all);
                nodes = nodes.max(store.inner_node_count());
            }
            let few = count < 60 || layouts > 3 && nodes > 0;
            assert!(
                whole <= layouts + 1 && few,
                "{count}: {layouts} layouts, {nodes} nodes, {whole} whole"
            );
        }
    }
}
