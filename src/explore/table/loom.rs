//! Insertions under every order that the memory model allows, by loom; see `concurrency/`.
//!
//! [`super::interleavings`] checks the protocol in each run of the tests; here the atomic accesses
//! are those of the table itself. Cost: some thousand runs a test. Checked after each: one `New`
//! for each key, one place, nothing lost.

use super::{Cells, Geometry, Insert, TableCell};
use mu_base::atomics::{AtomicU32, AtomicU64};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Threads insert hashes into a table that contains some already.
fn every_order<C: TableCell + 'static>(before: &'static [u64], plan: &'static [&'static [u64]]) {
    loom::model(move || {
        let cells = Arc::new(Cells::<C>::new(4, 4));
        let geometry = Geometry::new(6, cells.homes());
        for hash in before {
            assert!(matches!(cells.insert(&geometry, *hash), Insert::New(_)));
        }
        let threads: Vec<_> = plan
            .iter()
            .map(|hashes| {
                let cells = cells.clone();
                loom::thread::spawn(move || {
                    hashes.iter().map(|h| (*h, cells.insert(&geometry, *h))).collect::<Vec<_>>()
                })
            })
            .collect();
        let answers: Vec<(u64, Insert)> =
            threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
        let mut places: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
        for (hash, answer) in &answers {
            let (place, new) = match answer {
                Insert::New(place) => (*place, 1),
                Insert::Old(place) => (*place, 0),
                Insert::Full => panic!("{answers:?}"),
            };
            let known = places.entry(*hash).or_insert((place, 0));
            assert_eq!(known.0, place, "{answers:?}");
            known.1 += new;
        }
        assert!(places.values().all(|p| p.1 == 1), "{answers:?}");
        let stored: BTreeMap<u64, u64> =
            cells.entries(&geometry).map(|(place, hash)| (hash, place)).collect();
        assert_eq!(stored.len(), before.len() + places.len(), "{answers:?}");
        for (hash, (place, _)) in &places {
            assert_eq!(
                (stored[hash], cells.find(&geometry, *hash)),
                (*place, Some(*place)),
                "{answers:?}"
            );
        }
    });
}

#[test]
fn of_long_entries() {
    every_order::<AtomicU64>(&[], &[&[5], &[5], &[5]]);
    every_order::<AtomicU64>(&[1], &[&[5, 9], &[9, 5]]);
    // The bucket has one entry left, so that keys overflow into the next one.
    every_order::<AtomicU64>(&[0, 1, 2, 3, 4, 6, 8], &[&[5, 7], &[7, 5]]);
}

#[test]
fn of_short_entries() {
    every_order::<AtomicU32>(&[], &[&[5], &[5], &[5]]);
    every_order::<AtomicU32>(&[1], &[&[5, 9], &[9, 7]]);
    every_order::<AtomicU32>(
        &[0, 1, 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15, 16, 17],
        &[&[5, 7], &[7, 5]],
    );
}
