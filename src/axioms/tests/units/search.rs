//! Tests of the search for an execution: it answers as the enumeration of all executions, and it
//! decides long histories with repeated values.

use mu_axioms::EventKind;
use mu_axioms::history::{History, HistoryChecker, Operation};
use mu_axioms::models::{KNOWN, MemoryOrdering, by_name};
use mu_base::random::Random;
use mu_base::{Budget, Limits, SourceMap, Stop};
use std::time::Duration;

/// Generates a history in which values repeat. `rich`: with fences, updates, and marks.
fn history(random: &mut Random, operations: usize, rich: bool) -> History {
    let (threads, locations, values) =
        (2 + random.below(2), 1 + random.below(2), 1 + random.below(2));
    let mut h = History { threads: vec![Vec::new(); threads], last: Vec::new() };
    for _ in 0..operations {
        let t = random.below(threads);
        let location = u32::from(random.below(locations) == 1);
        let value = |random: &mut Random| random.below(values + 1) as u64;
        let kind = *random.choose(&[
            EventKind::Read,
            EventKind::Read,
            EventKind::Write,
            EventKind::Write,
            EventKind::Fence,
        ]);
        let operation = match kind {
            EventKind::Fence if rich && random.chance(1, 2) => {
                Operation::fence(MemoryOrdering::Plain)
            }
            EventKind::Fence if rich => {
                Operation::update(location, value(random), 1 + random.below(values) as u64)
            }
            EventKind::Read | EventKind::Fence => {
                let mark = if rich && random.chance(1, 4) {
                    MemoryOrdering::Acquire
                } else {
                    MemoryOrdering::Plain
                };
                Operation { mark, ..Operation::plain(EventKind::Read, location, value(random)) }
            }
            _ => {
                let mark = if rich && random.chance(1, 4) {
                    MemoryOrdering::Release
                } else {
                    MemoryOrdering::Plain
                };
                let value = 1 + random.below(values) as u64;
                Operation { mark, ..Operation::plain(EventKind::Write, location, value) }
            }
        };
        h.threads[t].push(operation);
    }
    h.threads.retain(|t| !t.is_empty());
    h
}

/// Compares the search with the enumeration, for each built-in model.
#[test]
fn the_search_answers_as_the_enumeration() {
    let mut counts = [0; 2];
    for known in KNOWN {
        let model = known.compile(&mut SourceMap::new()).unwrap();
        let mut all = HistoryChecker::new(&model, known.dialect).with_enumeration_limit(usize::MAX);
        let mut search = HistoryChecker::new(&model, known.dialect).with_enumeration_limit(0);
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let operations = 3 + random.below(4);
            let h = history(&mut random, operations, seed % 2 == 1);
            let expected = all.allows(&h).unwrap();
            assert_eq!(
                search.allows(&h).unwrap(),
                expected,
                "{}, seed {seed}: {} (search, enumeration)",
                known.name,
                h.text()
            );
            if h.is_sourced() {
                let (verdict, ..) = search.verdict(&h).unwrap();
                let consistent =
                    verdict.allowed == expected && verdict.failed.is_none() == expected;
                assert!(consistent, "{}, seed {seed}: {}", known.name, h.text());
            }
            counts[usize::from(expected)] += 1;
        }
    }
    assert!(counts.iter().all(|n| *n > 100), "{counts:?}");
}

/// Returns `W x 1; W x 2; W x 1; … || R x 1; R x 2; …`, of `n` operations each.
fn alternating_history(n: usize) -> History {
    let thread = |kind| (0..n).map(|i| Operation::plain(kind, 0, 1 + i as u64 % 2)).collect();
    History { threads: vec![thread(EventKind::Write), thread(EventKind::Read)], last: Vec::new() }
}

#[test]
fn long_histories_with_repeated_values_are_decided() {
    for name in ["sc", "tso", "pso", "rvwmo", "cache", "pc"] {
        let known = by_name(name).unwrap();
        let model = known.compile(&mut SourceMap::new()).unwrap();
        let mut checker = HistoryChecker::new(&model, known.dialect);
        let mut long = alternating_history(12);
        assert!(checker.allows(&long).unwrap(), "{name}");
        // 12 values are written, and one more change is read.
        long.threads[1].push(Operation::plain(EventKind::Read, 0, 1));
        assert!(!checker.allows(&long).unwrap(), "{name}");
        let (verdict, ..) = checker.verdict(&long).unwrap();
        assert!(verdict.failed.is_some(), "{name}");
    }
}

#[test]
fn a_limit_ends_the_search() {
    let known = by_name("sc").unwrap();
    let model = known.compile(&mut SourceMap::new()).unwrap();
    let limits = Limits { timeout: Some(Duration::ZERO), ..Limits::default() };
    let budget = Budget::new(limits);
    std::thread::sleep(Duration::from_millis(1));
    let mut checker = HistoryChecker::new(&model, known.dialect).with_budget(&budget);
    let error = checker.allows(&alternating_history(31)).unwrap_err();
    assert_eq!(error.stop, Some(Stop::Time));
}
