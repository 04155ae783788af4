//! States that are near one another, one after the other: what is done for a state is done for what
//! differs from the one before it.
//!
//! In: keys of successors, or leaf indices of states that came in a parcel ([`super::partition`]). Out:
//! the leaves of a key ([`Near`]), the key of leaves ([`Packer`]). Successors of a state have most
//! leaves in common, and so have states of a parcel, while models have dozens of leaves, and trees
//! above them. Cost: linear in what differs. Invariant: the results are those of [`Store::unpack`]
//! and [`Store::pack`]; a change of the layout is noticed by its epoch.

use super::intern::KeptPairs;
use super::store::{Child, Overflow, Store};

/// In which of up to eight places two rows differ, as bits.
#[inline]
pub(super) fn differing(new: &[u32], old: &[u32]) -> u8 {
    let bits = |new: &[u32], old: &[u32]| {
        new.iter().zip(old).zip(0..).fold(0, |bits, ((a, b), i)| bits | u8::from(a != b) << i)
    };
    // A row whose length is known is compared as a whole.
    match (new.first_chunk::<8>(), old.first_chunk::<8>()) {
        (Some(new), Some(old)) => bits(new, old),
        _ => bits(new, old),
    }
}

/// The leaves of the key that was asked for last.
#[derive(Default)]
pub(super) struct Near {
    /// The layout; none has the number 0.
    epoch: u64,
    key: u64,
    /// Its leaves, and its inner nodes.
    pub leaves: Vec<u32>,
    inner: Vec<u32>,
    /// LeafLayout of the key before it that are others now: which, and the index there.
    pub left: Vec<(u32, u32)>,
    /// By bit of a key, its field.
    fields: Vec<u8>,
    todo: Vec<(u32, u32)>,
}

impl Near {
    /// Goes to a key. Whether all its leaves are to be looked at, not only those that were left.
    #[inline]
    pub fn go_to(&mut self, store: &Store, key: u64) -> bool {
        self.left.clear();
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

    /// The next key is looked at whole.
    pub fn forget(&mut self) {
        self.epoch = 0;
    }

    #[cold]
    fn begin(&mut self, store: &Store, key: u64) {
        (self.epoch, self.key) = (store.epoch, key);
        self.leaves = vec![0; store.leaves.len()];
        self.inner = vec![0; store.nodes_count()];
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
            self.left.push((leaf, old));
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

/// Packs states, one after the other: only what is above leaves that differ from the state before
/// it is looked up.
#[derive(Default)]
pub(super) struct Packer {
    /// The layout; 0 if the next state is packed whole.
    epoch: u64,
    key: u64,
    leaves: Vec<u32>,
    inner: Vec<u32>,
    /// Bits of the inner nodes to be looked up.
    dirty: Vec<u64>,
    /// By inner node, its last pair and the index of that.
    last: Vec<(u64, u32)>,
    kept: KeptPairs,
    /// The layout that the pairs are kept of.
    kept_epoch: u64,
}

impl Packer {
    /// The key of leaf indices.
    #[inline]
    pub fn pack(&mut self, store: &Store, leaves: &[u32]) -> Result<u64, Overflow> {
        if self.epoch != store.epoch {
            return self.begin(store, leaves);
        }
        // It is whole again only when all is done.
        self.epoch = 0;
        for (first, (old, new)) in
            (0u32..).step_by(8).zip(self.leaves.chunks_mut(8).zip(leaves.chunks(8)))
        {
            let mut bits = differing(new, old);
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
                        .zip(store.above(leaf))
                        .for_each(|(word, above)| *word |= above),
                }
            }
        }
        let Self { key, leaves, inner, dirty, last, kept, .. } = self;
        for (w, word) in dirty.iter_mut().enumerate() {
            // Parents have greater numbers than their children.
            while *word != 0 {
                let node = w as u32 * 64 + word.trailing_zeros();
                *word &= *word - 1;
                let index = index_of(store, last, kept, node, store.pair_of(node, leaves, inner));
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
        let count = store.nodes_count();
        if self.kept_epoch != store.epoch {
            // No pair has such indices.
            (self.inner, self.last) = (vec![0; count], vec![(u64::MAX, 0); count]);
            self.kept = if count > 0 { KeptPairs::new() } else { KeptPairs::default() };
            self.kept_epoch = store.epoch;
        }
        self.dirty = vec![0; count.div_ceil(64)];
        self.leaves = leaves.to_vec();
        let Self { inner, last, kept, .. } = self;
        self.key = store
            .pack_by(leaves, inner, &mut |node, pair| index_of(store, last, kept, node, pair))?;
        self.epoch = store.epoch;
        Ok(self.key)
    }
}

#[inline]
fn index_of(
    store: &Store,
    last: &mut [(u64, u32)],
    kept: &mut KeptPairs,
    node: u32,
    pair: u64,
) -> u32 {
    let last = &mut last[node as usize];
    if last.0 != pair {
        *last = (pair, kept.index(node, pair, || store.intern_pair(node, pair)));
    }
    last.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Payload;
    use crate::tests::models::counters;
    use mu_base::random::Random;

    #[test]
    fn leaves_and_keys_are_those_of_the_store() {
        let mut random = Random::new(5);
        // Sixty leaves of hundreds of values do not fit side by side: there are inner nodes.
        for (count, values) in [(4, 1000), (60, 300)] {
            let model = counters(count, 2);
            let mut store = Store::new(&model, 0, Payload::None);
            let slots = store.homes.len();
            let mut vector = vec![0; slots];
            let (mut near, mut packer) = (Near::default(), Packer::default());
            let (mut leaves, mut layouts, mut nodes, mut whole) =
                (vec![0; store.leaves.len()], 0, 0, 0);
            for step in 0..20_000 {
                // Most states are near the one before; now and then comes one that is not.
                for _ in 0..if step % 50 == 0 { slots } else { 1 + random.below(2) } {
                    vector[random.below(slots)] = random.below(1 + values * step / 20_000) as u32;
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
                if store.table.crowded() {
                    store.table.grow(crate::table::Growth::default());
                }
                let before = near.leaves.clone();
                let all = near.go_to(&store, key);
                store.unpack(key, &mut leaves);
                assert_eq!((&near.leaves, &leaves), (&indices, &indices), "step {step}");
                if !all {
                    let left: Vec<(u32, u32)> = near.left.clone();
                    assert!(
                        left.iter().all(|&(leaf, old)| before[leaf as usize] == old
                            && leaves[leaf as usize] != old)
                    );
                    assert_eq!(
                        left.len(),
                        before.iter().zip(&leaves).filter(|(b, l)| b != l).count()
                    );
                }
                whole += usize::from(all);
                nodes = nodes.max(store.nodes_count());
            }
            let few = count < 60 || layouts > 3 && nodes > 0;
            assert!(
                whole <= layouts + 1 && few,
                "{count}: {layouts} layouts, {nodes} nodes, {whole} whole"
            );
        }
    }
}
