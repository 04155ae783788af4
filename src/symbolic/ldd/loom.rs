//! Two and three threads on one node table and one operation cache, under every order that the
//! memory model allows, by loom; see `concurrency/`.
//!
//! Checked in each run: equal nodes have one id, even if threads look them up concurrently; a
//! thread that obtains an id, from the index or the cache, reads the complete node; a cache lookup
//! returns the stored result or nothing.

use super::Ldd;
use super::cache::Cache;
use super::table::{Ids, LddNode, LddTable};
use std::sync::Arc;

fn node(value: u32, down: Ldd) -> LddNode {
    LddNode { value, down, right: Ldd::EMPTY }
}

/// Returns the node's id, as a manager does.
fn intern(table: &LddTable, ids: &mut Ids, node: LddNode) -> Ldd {
    let id = match table.find(node) {
        Ok(id) => id,
        Err(at) => table.insert(at, node, ids).expect("there are ids").0,
    };
    assert_eq!(table.node(id), node);
    id
}

/// Returns a small table, and ids of it for two threads.
fn table() -> (Arc<LddTable>, [Ids; 2]) {
    let (table, mut ids) = (LddTable::new(0), Ids::default());
    assert!(table.hand_out(&mut ids));
    let half = ids.half();
    (Arc::new(table), [ids, half])
}

fn every_order(run: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.max_branches = 10_000;
    model.check(run);
}

#[test]
fn of_equal_nodes() {
    every_order(|| {
        let (table, ids) = table();
        let threads = ids.map(|mut ids| {
            let table = table.clone();
            loom::thread::spawn(move || {
                let below = intern(&table, &mut ids, node(7, Ldd::UNIT));
                [below, intern(&table, &mut ids, node(3, below))]
            })
        });
        let [one, other] = threads.map(|t| t.join().unwrap());
        assert_eq!(one, other);
        assert_eq!(table.find(node(3, one[0])), Ok(one[1]));
    });
}

#[test]
fn of_nodes_with_one_place_in_the_index() {
    // Another node with the same start position in the index.
    let first = node(7, Ldd::UNIT);
    let second = (8..)
        .map(|value| node(value, Ldd::UNIT))
        .find(|n| n.home() == first.home())
        .expect("the index is small");
    every_order(move || {
        let (table, [ids, others]) = table();
        let threads =
            [(ids, [first, second]), (others, [second, first])].map(|(mut ids, nodes)| {
                let table = table.clone();
                loom::thread::spawn(move || nodes.map(|n| intern(&table, &mut ids, n)))
            });
        let [one, other] = threads.map(|t| t.join().unwrap());
        assert_eq!([one[0], one[1]], [other[1], other[0]]);
        assert_ne!(one[0], one[1]);
    });
}

#[test]
fn of_threads_that_ask_for_ids() {
    every_order(|| {
        // Ids for one thread only.
        let table = Arc::new(LddTable::new(0));
        let threads = [0, 1].map(|_| {
            let table = table.clone();
            loom::thread::spawn(move || table.hand_out(&mut Ids::default()))
        });
        assert_eq!(threads.map(|t| t.join().unwrap()).into_iter().filter(|some| *some).count(), 1);
        assert_eq!(table.used_ids(), 62);
    });
}

#[test]
fn of_a_result_and_its_reader() {
    every_order(|| {
        let (table, [mut ids, _]) = table();
        let shared = Arc::new((table, Cache::new(1)));
        let writer = {
            let shared = shared.clone();
            loom::thread::spawn(move || {
                let result = intern(&shared.0, &mut ids, node(7, Ldd::UNIT));
                shared.1.put(1, Ldd(2), Ldd(3), result);
            })
        };
        let reader = {
            let shared = shared.clone();
            loom::thread::spawn(move || {
                if let Some(result) = shared.1.get(1, Ldd(2), Ldd(3)) {
                    assert_eq!(shared.0.node(result), node(7, Ldd::UNIT));
                }
            })
        };
        reader.join().unwrap();
        writer.join().unwrap();
        assert!(shared.1.get(1, Ldd(2), Ldd(3)).is_some());
    });
}

#[test]
fn of_two_writers_and_a_reader() {
    every_order(|| {
        let cache = Arc::new(Cache::new(1));
        // Two operations with one position in the cache.
        let place = |op| cache.place(op, Ldd(2), Ldd(3));
        let one = 1;
        let other = (2..).find(|op| place(*op) == place(one)).expect("there are two places");
        let writers = [(one, Ldd(5)), (other, Ldd(6))].map(|(op, result)| {
            let cache = cache.clone();
            loom::thread::spawn(move || cache.put(op, Ldd(2), Ldd(3), result))
        });
        let reader = {
            let cache = cache.clone();
            loom::thread::spawn(move || {
                for (op, result) in [(one, Ldd(5)), (other, Ldd(6))] {
                    assert!(cache.get(op, Ldd(2), Ldd(3)).is_none_or(|r| r == result));
                }
            })
        };
        for writer in writers {
            writer.join().unwrap();
        }
        reader.join().unwrap();
    });
}
