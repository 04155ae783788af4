//! Searches by several processes, here threads with a model each, against the search of one.

use super::*;
use crate::{Identity, Party, Secret, meet};
use models::{Shape, arcx, counters, random, ring};
use mu_base::{Limits, Stage};
use mu_explore::Silent;
use mu_model::hand::HandModel;
use std::net::TcpListener;

#[path = "../../tests/support/models.rs"]
mod models;

fn options() -> Options {
    Options { threads: 1, expected_states: 0, ..Options::default() }
}

/// The outcomes of all processes.
fn together(count: usize, maker: &(dyn Fn(usize) -> HandModel + Sync), budget: &Budget) -> Vec<Result<Outcome, Diagnostic>> {
    let listeners: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<String> = listeners.iter().map(|l| l.local_addr().unwrap().to_string()).collect();
    let secret = Secret::random().unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = listeners
            .into_iter()
            .enumerate()
            .map(|(me, listener)| {
                let identity = Identity::new(&mut &b""[..], "", "").unwrap();
                let party = Party { me, addresses: addresses.clone(), listener, secret: secret.clone(), identity };
                scope.spawn(move || {
                    let connections = meet(&party, budget, Duration::from_secs(20), &mut || Ok(()))?;
                    explore(&maker(me), &options(), budget, &Silent, connections, &mut |_| Vec::new(), None)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

fn agrees(count: usize, maker: &(dyn Fn(usize) -> HandModel + Sync)) {
    let budget = Budget::default();
    let whole = mu_explore::explore(&maker(0), &options(), &budget, &Silent).unwrap();
    for outcome in together(count, maker, &budget) {
        let found = outcome.unwrap();
        assert_eq!(found.stop, Stop::Complete);
        let counts = (found.sum(|p| p.tally.states), found.sum(|p| p.tally.transitions), found.sum(|p| p.tally.deadlocks));
        assert_eq!(counts, (whole.states, whole.transitions, whole.deadlocks), "{count} processes");
        assert_eq!(found.levels(), whole.levels, "{count} processes");
    }
}

#[test]
fn all_processes_count_what_one_does() {
    for count in [1, 2, 3, 5] {
        agrees(count, &|_| arcx(0));
        agrees(count, &|_| counters(3, 7));
        agrees(count, &|_| ring(5, 3));
    }
    let shape = Shape { slots: 5, values: 4, components: 3, groups: 9, labels: 3 };
    (0..12).for_each(|seed| agrees(1 + seed as usize % 4, &|_| random(seed, shape)));
}

#[test]
fn limits_are_of_the_whole() {
    let few = Budget::new(Limits { max_states: Some(5000), ..Limits::default() });
    for outcome in together(3, &|_| arcx(1), &few) {
        let found = outcome.unwrap();
        assert_eq!(found.stop, Stop::States);
        assert!(found.sum(|p| p.tally.states) > 5000);
    }
    let short = Budget::new(Limits { timeout: Some(Duration::from_millis(600)), ..Limits::default() });
    let begin = Instant::now();
    for outcome in together(2, &|_| counters(9, 9), &short) {
        assert_eq!(outcome.unwrap().stop, Stop::Time);
    }
    assert!(begin.elapsed() < Duration::from_secs(20));
}

/// A model one of whose steps cannot be evaluated.
fn failing(_: usize) -> HandModel {
    let mut model = counters(3, 9);
    let slot = model.slot("wrong", 7, false, 0);
    // The number of values is not that of the slots written.
    model.group("wrong", &[(0, 4), (1, 4)], &[slot], &[slot], |_, emit| emit.step("wrong", &[]));
    model
}

#[test]
fn an_error_of_the_model_is_the_same_everywhere() {
    let errors: Vec<Diagnostic> = together(3, &failing, &Budget::default()).into_iter().map(|o| o.unwrap_err()).collect();
    assert!(errors.iter().all(|e| e.stage == Stage::Internal && e.message.contains("gave 0 values for 1 steps")), "{errors:?}");
    assert!(errors.windows(2).all(|e| e[0] == e[1]), "{errors:?}");
}

#[test]
fn a_process_that_is_lost_ends_the_others() {
    let listeners: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<String> = listeners.iter().map(|l| l.local_addr().unwrap().to_string()).collect();
    let secret = Secret::random().unwrap();
    let budget = &Budget::default();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = listeners
            .into_iter()
            .enumerate()
            .map(|(me, listener)| {
                let party = Party {
                    me,
                    addresses: addresses.clone(),
                    listener,
                    secret: secret.clone(),
                    identity: Identity::new(&mut &b""[..], "", "").unwrap(),
                };
                scope.spawn(move || {
                    let connections = meet(&party, budget, Duration::from_secs(20), &mut || Ok(())).unwrap();
                    // It has met the others, and goes.
                    (me != 1)
                        .then(|| explore(&counters(9, 9), &options(), budget, &Silent, connections, &mut |_| Vec::new(), None).unwrap())
                })
            })
            .collect();
        for outcome in threads.into_iter().filter_map(|t| t.join().unwrap()) {
            assert_eq!(outcome.stop, Stop::Lost);
            assert_eq!(outcome.lost.as_deref(), Some("process 1: it ended, or its connection was closed"));
        }
    });
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
}
