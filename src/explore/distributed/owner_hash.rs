//! Incremental ownership hash: decides which process owns a successor without unpacking it.
//!
//! The owner of a state is a hash summed over its partition leaves ([`super::partition`],
//! [`super::partition_leaves`]). The hash of a leaf is the sum of the hashes of its images under
//! the symmetries, so that all members of an orbit have the same owner. In: tuples of leaves. Out:
//! their hashes, and the owner hashes of the successors of the state expanded last. A cached step
//! that changes partition leaves stores its change of the hash ([`crate::expander`]); most steps
//! change none. Cost: a load for each partition leaf of an expanded state, an addition for each
//! step. Invariant: an owner hash equals the sum over the state's partition leaves, regardless of
//! how it was computed.

use crate::expander::{Expander, Halt};
use crate::store::Store;
use mu_base::mixing::spread;
use mu_base::narrow;

/// Owner hashes of successors; see the module header.
#[derive(Default)]
pub(crate) struct OwnerHash {
    /// The partition leaves; empty if owner hashes are not needed.
    partition_leaves: Vec<u32>,
    /// By leaf: true if it is a partition leaf.
    is_partition_leaf: Vec<bool>,
    /// By leaf and tuple: the hash; 0 if it is not computed yet.
    leaf_hashes: Vec<Vec<u64>>,
    /// Owner hashes of the successors of the state expanded last; empty if they are unknown.
    pub successor_hashes: Vec<u64>,
}

impl OwnerHash {
    /// Hashes the given leaves; all leaves if `partition_leaves` is empty.
    pub fn new(leaves: usize, partition_leaves: &[u32]) -> Self {
        let partition_leaves: Vec<u32> = if partition_leaves.is_empty() {
            (0..narrow::index(leaves)).collect()
        } else {
            partition_leaves.to_vec()
        };
        let mut is_partition_leaf = vec![false; leaves];
        partition_leaves.iter().for_each(|&leaf| is_partition_leaf[leaf as usize] = true);
        Self {
            partition_leaves,
            is_partition_leaf,
            leaf_hashes: vec![Vec::new(); leaves],
            successor_hashes: Vec::new(),
        }
    }

    /// True if owner hashes are needed.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        !self.partition_leaves.is_empty()
    }

    /// True if a leaf is a partition leaf.
    #[inline]
    pub fn is_partition_leaf(&self, leaf: usize) -> bool {
        self.is_partition_leaf.get(leaf).is_some_and(|&is_partition_leaf| is_partition_leaf)
    }
}

impl Expander<'_> {
    /// Returns the hash of the tuple with a number at a leaf, from the cache if it is there.
    ///
    /// # Errors
    /// Errors of the model.
    #[inline]
    pub(crate) fn leaf_hash(
        &mut self,
        store: &Store,
        leaf: usize,
        number: u32,
    ) -> Result<u64, Halt> {
        match self.owner_hash.leaf_hashes[leaf].get(number as usize) {
            Some(&hash) if hash != 0 => Ok(hash),
            _ => self.compute_leaf_hash(store, leaf, number),
        }
    }

    #[cold]
    fn compute_leaf_hash(&mut self, store: &Store, leaf: usize, number: u32) -> Result<u64, Halt> {
        let mut images = vec![(leaf, number)];
        self.images(store, leaf, number, &mut images)?;
        let mut sum = 0u64;
        for (leaf, number) in images {
            sum = sum.wrapping_add(self.stable_hashes.hash(store, self.model, leaf, number)?);
        }
        let hash = spread(sum).max(1);
        let known = &mut self.owner_hash.leaf_hashes[leaf];
        if known.len() <= number as usize {
            known.resize(number as usize + 1, 0);
        }
        known[number as usize] = hash;
        Ok(hash)
    }

    /// Computes the owner hash of a state from its leaves.
    ///
    /// # Errors
    /// Errors of the model.
    pub(crate) fn owner_hash_of(&mut self, store: &Store, leaves: &[u32]) -> Result<u64, Halt> {
        let mut sum = 0u64;
        for i in 0..self.owner_hash.partition_leaves.len() {
            let leaf = self.owner_hash.partition_leaves[i] as usize;
            sum = sum.wrapping_add(self.leaf_hash(store, leaf, leaves[leaf])?);
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::group_cache::SharedGroupCache;
    use crate::table::{Payload, TableSizes};
    use crate::tests::models::{Shape, arcx, counters, random};
    use crate::tests::small;
    use mu_base::random::Random;
    use mu_model::Model;
    use mu_model::hand::HandModel;
    use std::sync::Arc;

    /// Walks through a model with occasional changes of the layout, and compares cached owner
    /// hashes with those of unpacked leaves. Returns the number of steps that changed the hash, and
    /// of those that did not.
    fn walk(model: &HandModel, options: &Options, seed: u64) -> (u64, u64) {
        let mut random = Random::new(seed);
        let mut store = Store::with_leaf_limit(model, 0, Payload::None, TableSizes::SMALL, 3);
        let leaves = store.leaves.len();
        let partition_leaves: Vec<u32> =
            (0..leaves as u32).filter(|_| random.below(2) == 0).collect();
        let shared_cache =
            Arc::new(SharedGroupCache::new(model.groups().len(), options.cache_bytes));
        let mut expander = Expander::new(model, shared_cache, options)
            .with_owner_hash(OwnerHash::new(leaves, &partition_leaves));
        let (mut at, mut found, mut row) =
            (store.intern(&model.initial()), Vec::new(), vec![0; leaves]);
        let (mut changed, mut same) = (0, 0);
        for step in 0..600 {
            expander.follow(&store);
            let expanded = store
                .pack(&at)
                .is_ok_and(|key| expander.successors(&store, key, &mut found).is_ok());
            if !expanded || step % 97 == 96 {
                store.replan(std::iter::empty(), None);
                continue;
            }
            let sum = expander.owner_hash_of(&store, &at).unwrap();
            assert_eq!(
                expander.owner_hash.successor_hashes.len(),
                found.len(),
                "seed {seed}, step {step}"
            );
            for (i, successor) in found.iter().enumerate() {
                store.unpack(successor.key, &mut row);
                let looked = expander.owner_hash_of(&store, &row).unwrap();
                assert_eq!(
                    expander.owner_hash.successor_hashes[i], looked,
                    "seed {seed}, step {step}, successor {i}"
                );
                *(if looked == sum { &mut same } else { &mut changed }) += 1;
            }
            match found.len() {
                0 => at = store.intern(&model.initial()),
                count => store.unpack(found[random.below(count)].key, &mut at),
            }
        }
        (changed, same)
    }

    #[test]
    fn cached_owner_hashes_equal_those_of_the_leaves() {
        let shape = Shape { slots: 7, values: 4, components: 5, groups: 9, labels: 2 };
        let (mut changed, mut same) = (0, 0);
        for seed in 0..60 {
            let model = match seed % 6 {
                0 => counters(40, 3),
                1 => arcx(0),
                _ => random(seed, shape),
            };
            let found =
                walk(&model, &Options { threads: 1, cache: seed % 5 != 0, ..small() }, seed);
            (changed, same) = (changed + found.0, same + found.1);
        }
        assert!(
            changed > 10_000 && same > 10_000,
            "{changed} steps changed the hash, {same} did not"
        );
    }
}
