//! Distributed searches, with threads as processes, against the search of one process.

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

fn search(
    model: &HandModel,
    budget: &Budget,
    connections: Connections,
    sought: Option<PathGoal<'_>>,
) -> Result<ClusterOutcome, Diagnostic> {
    let (options, extra) = (&options(), &mut |_: &mut Partition<'_>, _: bool| Ok(Vec::new()));
    explore(
        connections,
        GroupSearch { model, options, budget, progress: &Silent, extra, shelf: None, sought },
    )
}

/// Connects several processes and returns their results.
fn connect_all<T: Send>(
    count: usize,
    budget: &Budget,
    then: &(dyn Fn(usize, Connections) -> T + Sync),
) -> Vec<Result<T, Diagnostic>> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<String> =
        listeners.iter().map(|l| l.local_addr().unwrap().to_string()).collect();
    let secret = Secret::random().unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = listeners
            .into_iter()
            .enumerate()
            .map(|(me, listener)| {
                let identity = Identity::new(&mut &b""[..], "", "", "").unwrap();
                let party = Party {
                    me,
                    addresses: addresses.clone(),
                    listener,
                    secret: secret.clone(),
                    identity,
                };
                scope.spawn(move || {
                    Ok(then(me, meet(&party, budget, Duration::from_secs(20), &mut || Ok(()))?))
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// Returns the outcomes of all processes.
fn search_all(
    count: usize,
    maker: &(dyn Fn(usize) -> HandModel + Sync),
    budget: &Budget,
) -> Vec<Result<ClusterOutcome, Diagnostic>> {
    connect_all(count, budget, &|me, connections| search(&maker(me), budget, connections, None))
        .into_iter()
        .map(|r| r?)
        .collect()
}

fn agrees(count: usize, maker: &(dyn Fn(usize) -> HandModel + Sync)) {
    let budget = Budget::default();
    let consistent = mu_explore::explore(&maker(0), &options(), &budget, &Silent).unwrap();
    for outcome in search_all(count, maker, &budget) {
        let found = outcome.unwrap();
        assert_eq!(found.stop, Stop::Complete);
        let counts = (
            found.sum(|p| p.tally.states),
            found.sum(|p| p.tally.transitions),
            found.sum(|p| p.tally.deadlocks),
        );
        assert_eq!(
            counts,
            (consistent.states, consistent.transitions, consistent.deadlocks),
            "{count} processes"
        );
        assert_eq!(found.levels(), consistent.levels, "{count} processes");
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

/// Slots of one component with a tuple for each state: process 0 detects this, and all processes
/// split them equally.
#[test]
fn all_processes_split_slots_equally() {
    let wide = |_: usize| {
        let mut model = HandModel::new();
        let slots: Vec<_> = (0..5).map(|i| model.slot(format!("n{i}"), 0, false, 0)).collect();
        for slot in slots {
            model.group("up", &[], &[slot], &[slot], |read, emit| {
                if read[0] < 7 {
                    emit.step("up", &[read[0] + 1]);
                }
            });
        }
        model
    };
    assert!(LeafLayout::choose(&wide(0), &options(), &Budget::default(), None, 2).is_some());
    [1, 2, 3].into_iter().for_each(|count| agrees(count, &wide));
}

#[test]
fn limits_are_of_the_whole() {
    let few = Budget::new(Limits { max_states: Some(5000), ..Limits::default() });
    for outcome in search_all(3, &|_| arcx(1), &few) {
        let found = outcome.unwrap();
        assert_eq!(found.stop, Stop::States);
        assert!(found.sum(|p| p.tally.states) > 5000);
    }
    let begin = Instant::now();
    // The time limit applies to the search, which begins after the connection.
    let run = |_: usize, connections: Connections| {
        let short =
            Budget::new(Limits { timeout: Some(Duration::from_millis(600)), ..Limits::default() });
        search(&counters(9, 9), &short, connections, None).unwrap().stop
    };
    for stop in connect_all(2, &Budget::default(), &run) {
        assert_eq!(stop.unwrap(), Stop::Time);
    }
    assert!(begin.elapsed() < Duration::from_secs(20));
}

/// Records which process wrote which checkpoint, without the partitions themselves.
#[derive(Default)]
struct Book {
    wrote: std::sync::Mutex<Vec<(u64, u32)>>,
    /// Completed checkpoints, each with the processes that had written.
    settled: std::sync::Mutex<Vec<(u64, Vec<u32>)>>,
}

impl PartitionStore for &Book {
    fn resume_stamp(&self) -> Option<&Stamp> {
        None
    }
    fn read(&self, _: &mut Partition<'_>) -> Result<(), Diagnostic> {
        Err(Diagnostic::internal("nothing was kept"))
    }
    fn keeps(&self) -> bool {
        true
    }
    fn due(&self) -> bool {
        true
    }
    fn fingerprint(&self) -> String {
        String::new()
    }
    fn clear(&self) -> Result<(), Diagnostic> {
        Ok(())
    }
    fn keep(&self, share: &mut Partition<'_>, stamp: &Stamp) -> Result<(), Diagnostic> {
        let mut bytes = Vec::new();
        share.write(stamp, &mut bytes)?;
        assert!(bytes.len() > 100);
        self.wrote.lock().unwrap().push((stamp.number, stamp.process));
        Ok(())
    }
    fn settle(&self, stamp: &Stamp) {
        let mut who: Vec<u32> = self
            .wrote
            .lock()
            .unwrap()
            .iter()
            .filter(|w| w.0 == stamp.number)
            .map(|w| w.1)
            .collect();
        who.sort_unstable();
        self.settled.lock().unwrap().push((stamp.number, who));
    }
}

#[test]
fn a_checkpoint_counts_when_all_have_written_it_and_none_is_left_out() {
    let book = Book::default();
    let (options, budget) = (options(), Budget::default());
    let run = |_: usize, connections: Connections| {
        let model = counters(5, 12);
        let shelf = &book;
        let extra = &mut |_: &mut Partition<'_>, _: bool| Ok(Vec::new());
        let task = GroupSearch {
            model: &model,
            options: &options,
            budget: &budget,
            progress: &Silent,
            extra,
            shelf: Some(&shelf),
            sought: None,
        };
        explore(connections, task).unwrap()
    };
    let outcomes: Vec<ClusterOutcome> =
        connect_all(3, &budget, &run).into_iter().map(Result::unwrap).collect();
    assert!(
        outcomes
            .iter()
            .all(|o| o.stop == Stop::Complete && o.sum(|p| p.tally.states) == 13u64.pow(5)),
        "{outcomes:?}"
    );
    let settled = book.settled.lock().unwrap();
    assert!(!settled.is_empty(), "no checkpoint in a search of {:?}", outcomes[0].elapsed);
    for (at, (number, who)) in settled.iter().enumerate() {
        assert_eq!((*number, &who[..]), (at as u64 + 1, &[0, 1, 2][..]), "{settled:?}");
    }
}

/// Builds a model with a step that cannot be evaluated.
fn failing_model(_: usize) -> HandModel {
    let mut model = counters(3, 9);
    let slot = model.slot("wrong", 7, false, 0);
    // The number of values differs from that of the slots written.
    model.group("wrong", &[(0, 4), (1, 4)], &[slot], &[slot], |_, emit| emit.step("wrong", &[]));
    model
}

#[test]
fn an_error_of_the_model_is_the_same_everywhere() {
    let errors: Vec<Diagnostic> = search_all(3, &failing_model, &Budget::default())
        .into_iter()
        .map(|o| o.unwrap_err())
        .collect();
    assert!(
        errors
            .iter()
            .all(|e| e.stage == Stage::Internal && e.message.contains("gave 0 values for 1 steps")),
        "{errors:?}"
    );
    assert!(errors.windows(2).all(|e| e[0] == e[1]), "{errors:?}");
}

#[test]
fn a_process_that_is_lost_ends_the_others() {
    let begin = Instant::now();
    // The second process connects to the others, and ends. Each process has its own budget: the
    // first one interrupts its own work when it detects the loss, and a shared interrupt would hide
    // the loss from the others.
    let run = |me: usize, connections: Connections| {
        (me != 1).then(|| search(&counters(9, 9), &Budget::default(), connections, None).unwrap())
    };
    for outcome in connect_all(3, &Budget::default(), &run).into_iter().filter_map(Result::unwrap) {
        assert_eq!(outcome.stop, Stop::Lost);
        assert_eq!(
            outcome.lost.as_deref(),
            Some("process 1: it ended, or its connection was closed")
        );
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

/// Returns the processor time of the current thread.
#[cfg(target_os = "linux")]
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_waits_leaves_the_processor_to_others() {
    const LATE: Duration = Duration::from_millis(1500);
    let budget = &Budget::default();
    let run = |me: usize, connections: Connections| {
        if me == 0 {
            std::thread::sleep(LATE);
        }
        let before = on_processor();
        let found = search(&counters(2, 3), budget, connections, None).unwrap();
        assert_eq!((found.stop.clone(), found.sum(|p| p.tally.states)), (Stop::Complete, 16));
        on_processor() - before
    };
    let used: Vec<Duration> =
        connect_all(2, budget, &run).into_iter().map(Result::unwrap).collect();
    // The second process has waited for the first all the time.
    assert!(used[1] < LATE / 5, "{used:?}");
}

/// Returns the path that all processes found: its states, and its steps in the first process's
/// model.
fn path(
    count: usize,
    maker: &(dyn Fn(usize) -> HandModel + Sync),
    label: Option<&str>,
) -> Option<(Vec<Vec<u8>>, Vec<String>)> {
    let budget = &Budget::default();
    let run = |me: usize, connections: Connections| {
        let model = maker(me);
        let step = |_: usize, l: mu_base::ids::LabelId| Some(model.label_text(l).as_str()) == label;
        let sought =
            if label.is_some() { PathGoal::Step(&step) } else { PathGoal::Deadlock(&|_| true) };
        let outcome = search(&model, budget, connections, Some(sought)).unwrap();
        assert_eq!(outcome.stop, Stop::Complete);
        outcome.path.map(|states| {
            let path = mu_explore::path_through(&model, &options(), sought, &states).unwrap();
            (states, path.steps.iter().map(|s| model.label_text(s.label)).collect::<Vec<String>>())
        })
    };
    let mut ways: Vec<_> =
        connect_all(count, budget, &run).into_iter().map(Result::unwrap).collect();
    assert!(ways.windows(2).all(|w| w[0] == w[1]), "{ways:?}");
    ways.remove(0)
}

/// Two groups make one step, and one of them is wanted.
#[test]
fn a_step_that_several_groups_make_is_found_if_one_is_wanted() {
    let maker = || {
        let mut model = HandModel::new();
        let slot = model.slot("a", 0, false, 0);
        for name in ["first", "second"] {
            model.group(name, &[(slot, 0)], &[slot], &[slot], |_, e| e.step("tau", &[1]));
        }
        model
    };
    let budget = &Budget::default();
    for (count, wanted) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        let run = |_: usize, connections: Connections| {
            let model = maker();
            let step = |group: usize, _: mu_base::ids::LabelId| group == wanted;
            let sought = PathGoal::Step(&step);
            let found = search(&model, budget, connections, Some(sought)).unwrap();
            let states = found.path.expect("a path");
            mu_explore::path_through(&model, &options(), sought, &states).unwrap().steps[0].group
        };
        for group in connect_all(count, budget, &run) {
            assert_eq!(group.unwrap(), wanted, "{count} processes");
        }
    }
}

#[test]
fn paths_are_shortest_and_equal_for_any_number_of_processes() {
    let shape = Shape { slots: 5, values: 4, components: 3, groups: 9, labels: 3 };
    let (mut met, mut missed) = (0, 0);
    for seed in 0..14 {
        let maker = |_: usize| random(seed, shape);
        for label in [None, Some("a(0)"), Some("a(2)")] {
            let model = maker(0);
            let step =
                |_: usize, l: mu_base::ids::LabelId| Some(model.label_text(l).as_str()) == label;
            let target = if label.is_some() {
                mu_explore::SearchTarget::Step(&step)
            } else {
                mu_explore::SearchTarget::Deadlock
            };
            let one =
                mu_explore::find(&model, &options(), &Budget::default(), &Silent, target).unwrap();
            let ways: Vec<_> = [1, 2, 3].map(|count| path(count, &maker, label)).into();
            assert!(ways.windows(2).all(|w| w[0] == w[1]), "seed {seed}: {ways:?}");
            let length = ways[0].as_ref().map(|w| w.1.len());
            assert_eq!(length, one.path.as_ref().map(Vec::len), "seed {seed}");
            if length.is_some() { met += 1 } else { missed += 1 }
        }
    }
    assert!(met > 12 && missed > 4, "{met} met, {missed} missed");
    let long = path(3, &|_| counters(3, 7), None).unwrap();
    assert_eq!(long.1.len(), 21);
}

/// All processes, also slow ones, complete the level that reaches the goal; otherwise the fastest
/// one would decide.
#[test]
fn all_processes_complete_the_level_of_the_goal() {
    const WIDE: u32 = 12_000;
    let maker = |slow: bool| {
        let mut model = HandModel::new();
        let at = model.slot("at", 0, false, 0);
        model.group("spread", &[(at, 0)], &[], &[at], |_, emit| {
            (1..=WIDE).for_each(|n| emit.step("spread", &[n]))
        });
        model.group("found", &[], &[at], &[at], move |read, emit| {
            if read[0] > 0 {
                if slow {
                    std::thread::sleep(Duration::from_micros(20));
                }
                emit.step("found", &[0]);
            }
        });
        model
    };
    let budget = &Budget::default();
    let ways: Vec<Vec<Vec<u8>>> = (0..2)
        .map(|slow| {
            let run = |me: usize, connections: Connections| {
                let model = maker(me == slow);
                let step = |_: usize, l: mu_base::ids::LabelId| model.label_text(l) == "found";
                let found =
                    search(&model, budget, connections, Some(PathGoal::Step(&step))).unwrap();
                assert_eq!(
                    found.sum(|p| p.tally.waiting),
                    0,
                    "states of the level were not searched"
                );
                assert_eq!(found.sum(|p| p.tally.transitions), u64::from(2 * WIDE));
                found.path.unwrap()
            };
            let mut both: Vec<_> =
                connect_all(2, budget, &run).into_iter().map(Result::unwrap).collect();
            assert_eq!(both[0], both[1]);
            both.remove(0)
        })
        .collect();
    assert_eq!(ways[0], ways[1]);
}
