//! Every operation against naive sets of vectors: exhaustively on small universes, at random on
//! larger ones.

use super::*;
use mu_base::random::Random;
use num_bigint::BigUint;
use std::collections::BTreeSet;

type Set = BTreeSet<Vec<u32>>;

fn to_ldd(m: &mut Manager, set: &Set) -> Ldd {
    set.iter().fold(Ldd::EMPTY, |acc, v| m.insert_vector(acc, v))
}
fn to_set(m: &Manager, set: Ldd) -> Set {
    let mut all = Set::new();
    m.for_each(set, |v| assert!(all.insert(v.to_vec())));
    all
}
fn small() -> Manager {
    Manager::new(ManagerSettings {
        initial_bits: 4,
        max_cache_bits: 8,
        collect_at: 64,
        max_bytes: None,
        max_made: None,
    })
}

fn random_set(random: &mut Random, width: usize, values: usize, size: usize) -> Set {
    (0..random.below(size + 1))
        .map(|_| (0..width).map(|_| random.below(values) as u32).collect())
        .collect()
}

#[test]
fn all_pairs_of_sets_over_three_bits() {
    let mut m = small();
    let universe: Vec<Vec<u32>> = (0..8).map(|i| vec![i >> 2, i >> 1 & 1, i & 1]).collect();
    let sets: Vec<Set> = (0..256)
        .map(|bits| (0..8).filter(|i| bits >> i & 1 == 1).map(|i| universe[i].clone()).collect())
        .collect();
    let ids: Vec<Ldd> = sets.iter().map(|s| to_ldd(&mut m, s)).collect();
    for a in 0..256 {
        assert_eq!(to_set(&m, ids[a]), sets[a]);
        assert_eq!(m.count(ids[a]), BigUint::from(sets[a].len()));
        assert_eq!(m.pick(ids[a]), sets[a].first().cloned());
        for b in 0..256 {
            assert_eq!(m.union(ids[a], ids[b]), ids[a | b]);
            assert_eq!(m.intersect(ids[a], ids[b]), ids[a & b]);
            assert_eq!(m.minus(ids[a], ids[b]), ids[a & !b]);
        }
        for (i, v) in universe.iter().enumerate() {
            assert_eq!(m.contains(ids[a], v), a >> i & 1 == 1);
        }
    }
}

#[test]
fn vectors_in_any_order_make_the_same_set() {
    let mut m = small();
    let mut random = Random::new(7);
    for _ in 0..200 {
        let set = random_set(&mut random, 3, 5, 30);
        let one = to_ldd(&mut m, &set);
        let mut flat: Vec<u32> = set.iter().rev().flatten().copied().collect();
        flat.extend(set.iter().take(2).flatten());
        let count = flat.len() / 3;
        assert_eq!(m.from_vectors(&flat, 3, count), one);
        assert_eq!(m.vectors(one), set.iter().flatten().copied().collect::<Vec<_>>());
    }
    assert_eq!(m.from_vectors(&[], 0, 0), Ldd::EMPTY);
    assert_eq!(m.from_vectors(&[], 0, 2), Ldd::UNIT);
}

/// Creates random actions of a relation.
fn relation_actions(random: &mut Random, width: usize) -> Vec<LevelAction> {
    (0..width)
        .map(|_| {
            [LevelAction::Skip, LevelAction::Read, LevelAction::Write, LevelAction::ReadWrite]
                [random.below(4)]
        })
        .collect()
}

fn naive_step(actions: &[LevelAction], rel: &[u32], from: &[u32]) -> Option<Vec<u32>> {
    let (mut at, mut to) = (0, from.to_vec());
    for (i, action) in actions.iter().enumerate() {
        match action {
            LevelAction::Read | LevelAction::ReadWrite if rel[at] != from[i] => return None,
            LevelAction::Read => at += 1,
            LevelAction::ReadWrite => {
                to[i] = rel[at + 1];
                at += 2;
            }
            LevelAction::Write => {
                to[i] = rel[at];
                at += 1;
            }
            _ => {}
        }
    }
    Some(to)
}

#[test]
fn images_and_preimages_of_random_relations() {
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mut m = small();
        let width = 1 + random.below(4);
        let actions = relation_actions(&mut random, width);
        let rel_width = actions
            .iter()
            .map(|a| {
                [0, 1, 1, 2][[LevelAction::Skip, LevelAction::Read, LevelAction::Write]
                    .iter()
                    .position(|b| a == b)
                    .unwrap_or(3)]
            })
            .sum();
        let (set, other) =
            (random_set(&mut random, width, 3, 25), random_set(&mut random, width, 3, 25));
        let mut rel = random_set(&mut random, rel_width, 3, 20);
        if rel_width == 0 {
            rel.insert(Vec::new());
        }
        let mut image = Set::new();
        let mut before = Set::new();
        for r in &rel {
            image.extend(set.iter().filter_map(|s| naive_step(&actions, r, s)));
            before.extend(
                set.iter()
                    .filter(|s| naive_step(&actions, r, s).is_some_and(|t| other.contains(&t)))
                    .cloned(),
            );
        }
        let plan = m.plan_of(&actions);
        let (s, o, r) = (to_ldd(&mut m, &set), to_ldd(&mut m, &other), to_ldd(&mut m, &rel));
        let got = m.relprod(s, r, plan);
        assert_eq!(to_set(&m, got), image, "seed {seed}");
        let got = m.relprev(o, r, plan, s);
        assert_eq!(to_set(&m, got), before, "seed {seed}");
        // The same after a collection that preserves the operands only.
        m.collect([s, o, r]);
        let expected = to_ldd(&mut m, &image);
        assert_eq!(m.relprod(s, r, plan), expected, "seed {seed}");
    }
}

#[test]
fn projections_and_matches() {
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mut m = small();
        let width = 1 + random.below(4);
        let set = random_set(&mut random, width, 3, 25);
        let s = to_ldd(&mut m, &set);

        let some: Vec<u32> = (0..3).filter(|_| random.below(2) == 0).collect();
        let among = m.restriction(&some);
        let actions: Vec<LevelAction> = (0..width)
            .map(|_| {
                [LevelAction::Keep, LevelAction::Drop, LevelAction::Require(1), among]
                    [random.below(4)]
            })
            .collect();
        let naive: Set = set
            .iter()
            .filter(|v| {
                actions.iter().zip(*v).all(|(a, &x)| *a != LevelAction::Require(1) || x == 1)
            })
            .filter(|v| actions.iter().zip(*v).all(|(a, x)| *a != among || some.contains(x)))
            .map(|v| {
                actions
                    .iter()
                    .zip(v)
                    .filter(|(a, _)| [LevelAction::Keep, among].contains(*a))
                    .map(|(_, &x)| x)
                    .collect()
            })
            .collect();
        let plan = m.plan_of(&actions);
        let got = m.project(s, plan);
        assert_eq!(to_set(&m, got), naive, "seed {seed}");

        let actions: Vec<LevelAction> = (0..width)
            .map(|_| {
                [LevelAction::Read, LevelAction::Skip, LevelAction::Require(2)][random.below(3)]
            })
            .collect();
        let short = random_set(
            &mut random,
            actions.iter().filter(|a| **a == LevelAction::Read).count(),
            3,
            10,
        );
        let naive: Set = set
            .iter()
            .filter(|v| {
                actions.iter().zip(*v).all(|(a, &x)| *a != LevelAction::Require(2) || x == 2)
            })
            .filter(|v| {
                short.contains(
                    &actions
                        .iter()
                        .zip(*v)
                        .filter(|(a, _)| **a == LevelAction::Read)
                        .map(|(_, &x)| x)
                        .collect::<Vec<_>>(),
                )
            })
            .cloned()
            .collect();
        let plan = m.plan_of(&actions);
        let short = to_ldd(&mut m, &short);
        let got = m.select_matches(s, short, plan);
        assert_eq!(to_set(&m, got), naive, "seed {seed}");
        let paths = m.paths(s, width).expect("a small set");
        assert_eq!(m.count_matching(&paths, short, plan), naive.len() as u128, "seed {seed}");
    }
}

#[test]
fn collection_keeps_roots_and_frees_the_rest() {
    let mut m = small();
    let mut random = Random::new(11);
    let kept: Vec<(Set, Ldd)> = (0..20)
        .map(|_| {
            let set = random_set(&mut random, 4, 6, 60);
            let id = to_ldd(&mut m, &set);
            (set, id)
        })
        .collect();
    let roots: Vec<Ldd> = kept.iter().map(|k| k.1).collect();
    for round in 0..50 {
        m.collect(roots.iter().copied());
        assert_eq!(m.used_nodes(), m.nodes_of(roots.iter().copied()), "round {round}");
        for (set, id) in &kept {
            assert_eq!(to_set(&m, *id), *set);
            assert_eq!(to_ldd(&mut m, set), *id);
        }
        let garbage = random_set(&mut random, 4, 6, 100);
        to_ldd(&mut m, &garbage);
    }
    assert_eq!(m.collections(), 50);
    m.collect([]);
    assert_eq!(m.used_nodes(), 0);
}

#[test]
fn counts_beyond_128_bits() {
    let mut m = small();
    let mut all = Ldd::UNIT;
    for _ in 0..100 {
        let mut list = Ldd::EMPTY;
        for value in (0..7).rev() {
            list = m.make(value, all, list);
        }
        all = list;
    }
    assert_eq!(m.count(all), BigUint::from(7u32).pow(100));
}

#[test]
fn a_memory_limit_halts() {
    let mut m = Manager::new(ManagerSettings {
        initial_bits: 6,
        max_cache_bits: 6,
        collect_at: 1 << 20,
        max_bytes: Some(20_000),
        max_made: None,
    });
    let mut random = Random::new(3);
    let mut all = Ldd::EMPTY;
    for _ in 0..100_000 {
        let vector: Vec<u32> = (0..6).map(|_| random.below(50) as u32).collect();
        all = m.insert_vector(all, &vector);
        if m.halt_reason().is_some() {
            break;
        }
    }
    assert_eq!(m.halt_reason(), Some(Halt::Memory));
    assert!(m.bytes() <= 20_000);
    assert_eq!(m.singleton(&[999, 999]), Ldd::EMPTY);
}

/// If a full cache would leave no memory for nodes, the cache shrinks; results are unchanged.
#[test]
fn the_cache_makes_room_for_nodes() {
    let build = |max_bytes: Option<u64>| {
        let mut m = Manager::new(ManagerSettings {
            initial_bits: 17,
            max_cache_bits: 17,
            collect_at: 1 << 20,
            max_bytes,
            max_made: None,
        });
        let mut random = Random::new(3);
        let mut all = Ldd::EMPTY;
        for _ in 0..4_000 {
            let vector: Vec<u32> = (0..6).map(|_| random.below(50) as u32).collect();
            all = m.insert_vector(all, &vector);
        }
        let twice = m.union(all, Ldd::EMPTY);
        (m.halt_reason(), m.count(twice), m.bytes(), m.tables.cache.len())
    };
    let free = build(None);
    // The last growth of the table needs 6 MiB for the old and the new one, which leaves half of
    // the cache.
    let limit = (7 << 20) + 1000;
    let tight = build(Some(limit));
    assert_eq!((free.0, tight.0, &free.1), (None, None, &tight.1));
    assert!(tight.2 <= limit && tight.3 < free.3, "{free:?} {tight:?}");
}

#[test]
fn a_watch_halts() {
    let mut m = small();
    m.set_watch(Box::new(|| true));
    let mut all = Ldd::EMPTY;
    for i in 0..200_000 {
        all = m.insert_vector(Ldd::EMPTY, &[i, i]);
        if m.halt_reason().is_some() {
            return;
        }
    }
    panic!("not halted at {all:?}");
}
