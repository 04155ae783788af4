//! Whose a successor is, without a look at it: a cached step knows what it adds to the sum that
//! says whose a state is.
//!
//! A state belongs to a process by a sum over those of its leaves that tell ([`super::partition`],
//! [`super::partition_leaves`]); a leaf's part is the sum of the hashes of its images under the symmetries,
//! so that all members of an orbit have one sum. In: tuples of leaves. Out: their parts; the sums
//! of the successors found last, beside them. Steps that change leaves that tell have the
//! differences behind them ([`super::expander`]); most have none. Cost: a load for each leaf that
//! tells and state expanded, an addition for each step. Invariant: a sum is the one that its
//! state's leaves have, by whatever way it was found.

use super::expander::{Expander, Halt};
use super::stable_hash::spread;
use super::store::Store;

/// See the module's head.
#[derive(Default)]
pub(super) struct Told {
    /// The leaves that tell; none if nobody asks.
    telling: Vec<u32>,
    /// By leaf: whether it does.
    tells: Vec<bool>,
    /// By leaf and tuple: its part; 0 if it is not known yet.
    parts: Vec<Vec<u64>>,
    /// By successor found last, its sum; none if that is not known.
    pub sums: Vec<u64>,
}

impl Told {
    /// What is told by these of so many leaves; by all if these are none.
    pub fn new(leaves: usize, telling: &[u32]) -> Self {
        let telling: Vec<u32> =
            if telling.is_empty() { (0..leaves as u32).collect() } else { telling.to_vec() };
        let mut tells = vec![false; leaves];
        telling.iter().for_each(|&leaf| tells[leaf as usize] = true);
        Self { telling, tells, parts: vec![Vec::new(); leaves], sums: Vec::new() }
    }

    /// Whether anybody asks for sums.
    #[inline]
    pub fn is_asked(&self) -> bool {
        !self.telling.is_empty()
    }

    /// Whether a leaf tells.
    #[inline]
    pub fn tells(&self, leaf: usize) -> bool {
        self.tells.get(leaf).is_some_and(|&tells| tells)
    }
}

impl Expander<'_> {
    /// A tuple's part of the sum.
    ///
    /// # Errors
    /// Those of the model.
    #[inline]
    pub(super) fn part_of(&mut self, store: &Store, leaf: usize, number: u32) -> Result<u64, Halt> {
        match self.told.parts[leaf].get(number as usize) {
            Some(&part) if part != 0 => Ok(part),
            _ => self.find_part(store, leaf, number),
        }
    }

    #[cold]
    fn find_part(&mut self, store: &Store, leaf: usize, number: u32) -> Result<u64, Halt> {
        let mut images = vec![(leaf, number)];
        self.images(store, leaf, number, &mut images)?;
        let mut sum = 0u64;
        for (leaf, number) in images {
            sum = sum.wrapping_add(self.ranks.hash(store, self.model, leaf, number)?);
        }
        let part = spread(sum).max(1);
        let known = &mut self.told.parts[leaf];
        if known.len() <= number as usize {
            known.resize(number as usize + 1, 0);
        }
        known[number as usize] = part;
        Ok(part)
    }

    /// The sum of a state's leaves.
    ///
    /// # Errors
    /// Those of the model.
    pub(super) fn sum_of(&mut self, store: &Store, leaves: &[u32]) -> Result<u64, Halt> {
        let mut sum = 0u64;
        for i in 0..self.told.telling.len() {
            let leaf = self.told.telling[i] as usize;
            sum = sum.wrapping_add(self.part_of(store, leaf, leaves[leaf])?);
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::group_cache::Memo;
    use crate::table::Payload;
    use crate::tests::models::{Shape, arcx, counters, random};
    use mu_base::random::Random;
    use mu_model::Model;
    use mu_model::hand::HandModel;
    use std::sync::Arc;

    /// Walks through a model with a layout that changes now and then, and compares the sums told
    /// with those of leaves that were looked at. How many steps changed the sum, and how many
    /// did not.
    fn walk(model: &HandModel, options: &Options, seed: u64) -> (u64, u64) {
        let mut random = Random::new(seed);
        let mut store = Store::in_parts(model, 0, Payload::None, 3);
        let leaves = store.leaves.len();
        let telling: Vec<u32> = (0..leaves as u32).filter(|_| random.below(2) == 0).collect();
        let memo = Arc::new(Memo::new(model.groups().len(), options.cache_bytes));
        let mut expander =
            Expander::new(model, memo, options).among_processes(Told::new(leaves, &telling));
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
            let sum = expander.sum_of(&store, &at).unwrap();
            assert_eq!(expander.told.sums.len(), found.len(), "seed {seed}, step {step}");
            for (i, successor) in found.iter().enumerate() {
                store.unpack(successor.key, &mut row);
                let looked = expander.sum_of(&store, &row).unwrap();
                assert_eq!(
                    expander.told.sums[i], looked,
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
    fn the_sums_told_are_those_of_the_leaves() {
        let shape = Shape { slots: 7, values: 4, components: 5, groups: 9, labels: 2 };
        let (mut changed, mut same) = (0, 0);
        for seed in 0..60 {
            let model = match seed % 6 {
                0 => counters(40, 3),
                1 => arcx(0),
                _ => random(seed, shape),
            };
            let found = walk(
                &model,
                &Options { threads: 1, cache: seed % 5 != 0, ..Options::default() },
                seed,
            );
            (changed, same) = (changed + found.0, same + found.1);
        }
        assert!(
            changed > 10_000 && same > 10_000,
            "{changed} steps changed the sum, {same} did not"
        );
    }
}
