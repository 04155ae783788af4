//! Stable hashes of tuples, equal in all processes of a distributed search, and an order by them.
//!
//! In: leaves of a store and local numbers of their tuples. Out: a hash of the digests of a tuple's
//! values ([`mu_model::Portable`]), which determines the owner of a state ([`super::partition`]).
//! Also an order of tuples, by which all processes choose the same representative of an orbit
//! ([`crate::symmetry`]), so that the receiver need not compute it again. Cost: one digest for each
//! value and tuple, then a load. Invariant: the order is total even if hashes collide: tuples with
//! equal hashes are compared by their bytes.

use std::cmp::Ordering;

use crate::store::Store;
use mu_base::Diagnostic;
use mu_base::mixing::{FNV_BASIS, fnv, spread};
use mu_model::{Model, Portable};

/// Computes FNV-1a with a finisher that spreads all bits. Never 0.
fn hash(seed: u64, bytes: impl Iterator<Item = u8>) -> u64 {
    spread(fnv(FNV_BASIS ^ seed, bytes)).max(1)
}

/// Cached stable hashes; see the module header.
#[derive(Default)]
pub(crate) struct StableHashes {
    /// By slot and value: the hash of its bytes; 0 if it is not computed yet.
    values: Vec<Vec<u64>>,
    /// By leaf and tuple: the hash; 0 if it is not computed yet.
    tuples: Vec<Vec<u64>>,
}

fn portable(model: &dyn Model) -> Result<&dyn Portable, Diagnostic> {
    model
        .portable()
        .ok_or_else(|| Diagnostic::internal("a distributed search needs portable values"))
}

/// Stores a hash in a cache row.
fn remember(known: &mut Vec<u64>, number: u32, found: u64) -> u64 {
    if known.len() <= number as usize {
        known.resize(number as usize + 1, 0);
    }
    known[number as usize] = found;
    found
}

impl StableHashes {
    /// Clears the caches if the store has other leaves than before.
    pub fn follow(&mut self, store: &Store) {
        if self.tuples.len() != store.leaves.len() {
            (self.values, self.tuples) =
                (vec![Vec::new(); store.leaf_of_slot.len()], vec![Vec::new(); store.leaves.len()]);
        }
    }

    /// Returns the hash of a tuple; never 0.
    #[inline]
    pub fn hash(
        &mut self,
        store: &Store,
        model: &dyn Model,
        leaf: usize,
        number: u32,
    ) -> Result<u64, Diagnostic> {
        match self.tuples[leaf].get(number as usize) {
            Some(&known) if known != 0 => Ok(known),
            _ => self.find(store, model, leaf, number),
        }
    }

    #[cold]
    fn find(
        &mut self,
        store: &Store,
        model: &dyn Model,
        leaf: usize,
        number: u32,
    ) -> Result<u64, Diagnostic> {
        let mut row = Vec::new();
        store.leaves[leaf].table.read(number, &mut row);
        let mut bytes = Vec::with_capacity(row.len() * 8);
        for (&slot, &value) in store.leaves[leaf].slots.iter().zip(&row) {
            let known = &mut self.values[slot as usize];
            let found = match known.get(value as usize) {
                Some(&found) if found != 0 => found,
                _ => remember(known, value, spread(portable(model)?.digest(slot, value)?).max(1)),
            };
            bytes.extend(found.to_le_bytes());
        }
        Ok(remember(&mut self.tuples[leaf], number, hash(leaf as u64 + 1, bytes.into_iter())))
    }

    /// True if one tuple of a leaf comes before another.
    #[inline]
    pub fn precedes(
        &mut self,
        store: &Store,
        model: &dyn Model,
        leaf: usize,
        one: u32,
        other: u32,
    ) -> Result<bool, Diagnostic> {
        let hashes = (self.hash(store, model, leaf, one)?, self.hash(store, model, leaf, other)?);
        if hashes.0 != hashes.1 || one == other {
            Ok(hashes.0 < hashes.1)
        } else {
            Ok(by_bytes(store, model, leaf, one, other)?.is_lt())
        }
    }
}

/// Compares two tuples by the bytes of their values.
#[cold]
fn by_bytes(
    store: &Store,
    model: &dyn Model,
    leaf: usize,
    one: u32,
    other: u32,
) -> Result<Ordering, Diagnostic> {
    let (leaf, mut rows) = (&store.leaves[leaf], [Vec::new(), Vec::new()]);
    leaf.table.read(one, &mut rows[0]);
    leaf.table.read(other, &mut rows[1]);
    let portable = portable(model)?;
    for (&slot, (&a, &b)) in leaf.slots.iter().zip(rows[0].iter().zip(&rows[1])) {
        let order = portable.export(slot, a)?.cmp(&portable.export(slot, b)?);
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Payload, TableSizes};
    use crate::tests::models::counters;

    /// Two processes number the tuples of a leaf in different orders.
    #[test]
    fn the_order_of_tuples_does_not_depend_on_their_numbers() {
        let model = counters(2, 100);
        let stores = [0, 1].map(|_| Store::new(&model, 0, Payload::None, TableSizes::SMALL));
        let numbers = [0, 1].map(|process| {
            let value = |n: u32| if process == 0 { n } else { 99 - n };
            let mut numbers = vec![0; 100];
            (0..100)
                .map(value)
                .for_each(|v| numbers[v as usize] = stores[process].intern(&[v, 0])[0]);
            numbers
        });
        assert_ne!(numbers[0], numbers[1]);
        let mut stable_hashes = [StableHashes::default(), StableHashes::default()];
        stable_hashes
            .iter_mut()
            .zip(&stores)
            .for_each(|(stable_hashes, store)| stable_hashes.follow(store));
        let leaf = stores[0].leaf_of_slot[0].0 as usize;
        let mut later = 0;
        for a in 0..100 {
            for b in 0..100 {
                let orders = [0, 1].map(|p| {
                    stable_hashes[p]
                        .precedes(&stores[p], &model, leaf, numbers[p][a], numbers[p][b])
                        .unwrap()
                });
                assert_eq!(orders[0], orders[1], "{a} and {b}");
                let back = stable_hashes[0]
                    .precedes(&stores[0], &model, leaf, numbers[0][b], numbers[0][a])
                    .unwrap();
                assert_eq!(orders[0] as u8 + back as u8, u8::from(a != b));
                later += u32::from(orders[0] && a > b);
                // The order by bytes is total as well.
                let bytes = [0, 1].map(|p| {
                    by_bytes(&stores[p], &model, leaf, numbers[p][a], numbers[p][b]).unwrap()
                });
                assert_eq!((bytes[0], bytes[0].is_eq()), (bytes[1], a == b));
            }
        }
        assert!(later > 0, "the order is that of one process's numbers");
    }
}
