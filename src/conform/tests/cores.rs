//! Cores of histories, compact sets of histories, and searches with many histories.
//!
//! A history has the verdict of its core, also if it is given as numbers of lists: on random
//! histories with fences, updates, and stores of the initial value. `MU_CHECK_SEED` is the first
//! seed, `MU_CHECK_CASES` the number of histories.

use mu_axioms::EventKind;
use mu_axioms::history::{Dependencies, History, Operation};
use mu_axioms::models::by_name;
use mu_base::random::Random;
use mu_base::{Budget, SourceId, SourceMap};
use mu_conform::alphabet::Alphabet;
use mu_conform::cores::{Cores, applies};
use mu_conform::every_length::order::ProcessorOrder;
use mu_conform::history_set::HistorySet;
use mu_conform::interface::Interface;
use mu_conform::judge::{self, MemoryModel, ModelDefinition};
use mu_conform::list_cores::ListCores;
use mu_conform::machine::ReducedMachine;
use mu_conform::saturation;
use mu_conform::search::{Bound, SearchResult, search};
use mu_conform::sequences::{SequenceEntry, Sequences, State};
use mu_conform::symmetry::SymmetryGroup;
use mu_explore::{Options, Silent};
use mu_model::hand::HandModel;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

fn model(name: &str) -> MemoryModel {
    let known = by_name(name).unwrap();
    let model = known.compile(&mut SourceMap::new()).unwrap();
    MemoryModel { name: name.into(), form: ModelDefinition::Cat { model, dialect: known.dialect } }
}

/// Builds a history in which most loads return a value that is stored.
fn random_history(random: &mut Random) -> History {
    let threads = 1 + random.below(3);
    let longest = if threads == 3 { 3 } else { 4 };
    let (fences, updates) = (random.chance(1, 3), random.chance(1, 4));
    let least = u64::from(!random.chance(1, 6));
    let one = |random: &mut Random| {
        let location = random.below(2) as u32;
        let stored = least + random.below(3 - least as usize) as u64;
        let loaded = random.below(3) as u64;
        match random.below(8) {
            0 if fences => Operation::plain(EventKind::Fence, 0, 0),
            1 if updates => Operation::update(location, loaded, stored),
            0..4 => Operation::plain(EventKind::Write, location, stored),
            _ => Operation::plain(EventKind::Read, location, loaded),
        }
    };
    let thread = |random: &mut Random| {
        let length = 1 + random.below(longest);
        (0..length).map(|_| one(random)).collect()
    };
    History { threads: (0..threads).map(|_| thread(random)).collect(), last: Vec::new() }
}

#[test]
fn cores_have_the_verdicts_of_their_histories() {
    let (first, cases) = (number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 3000));
    println!("seeds {first} to {}", first + cases - 1);
    let models: Vec<MemoryModel> = ProcessorOrder::ALL.iter().map(|o| model(o.name())).collect();
    let mut workers: Vec<_> = models.iter().map(MemoryModel::worker).collect();
    let mut cores = Cores::default();
    let (mut allowed, mut forbidden, mut removed, mut judged) = (0, 0, 0, 0);
    for seed in first..first + cases {
        let history = random_history(&mut Random::new(seed));
        assert!(applies(&history));
        let core = Cores::of(&history);
        removed += (history.len() - core.len()) as u64;
        for (worker, order) in workers.iter_mut().zip(ProcessorOrder::ALL) {
            let whole = worker.allows(&history).unwrap();
            let mut judge = |h: &History| {
                judged += 1;
                worker.allows(h)
            };
            let verdict = cores.verdict(&core, order, &mut judge).unwrap();
            let said = format!("seed {seed}, {}: {}", order.name(), history.text());
            assert_eq!(verdict, whole, "{said}, core {}", core.text());
            for history in [&history, &core] {
                assert_eq!(saturation::allows(history, order), Some(whole), "{said}");
            }
            if whole {
                allowed += 1;
            } else {
                forbidden += 1;
            }
        }
    }
    println!(
        "{allowed} allowed, {forbidden} forbidden, {removed} operations removed, {judged} judged"
    );
    assert!(allowed > cases / 2 && forbidden > cases / 2 && removed > cases);
}

/// The interface of random histories, in the order of the kinds in [`entry`].
const LINES: &str = "initial v0; load load(p, a, v); store store(p, a, v);
update update(p, a, v, w); fence fence(p);";

/// Converts an operation to an entry of a list.
fn entry(o: &Operation) -> SequenceEntry {
    let kinds = [EventKind::Read, EventKind::Write, EventKind::Update, EventKind::Fence];
    let line = kinds.iter().position(|k| *k == o.kind).unwrap() as u32;
    let (value, written) = match o.kind {
        EventKind::Update => (Some(o.read), Some(o.value)),
        EventKind::Fence => (None, None),
        _ => (Some(o.value), None),
    };
    SequenceEntry {
        state: State::Done,
        operation: line,
        class: line,
        address: (o.kind != EventKind::Fence).then_some(o.location),
        value: value.map(|v| v as u32),
        written: written.map(|v| v as u32),
        number: None,
        depends: Dependencies::NONE,
    }
}

#[test]
fn cores_of_lists_have_the_verdicts_of_their_histories() {
    let (first, cases) = (number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 3000));
    println!("seeds {first} to {}", first + cases - 1);
    let interface = Interface::parse(SourceId::FIRST, LINES).unwrap();
    let mut labels = vec!["fence(p0)".to_string()];
    for (p, a) in [(0, 0), (1, 1), (2, 0)] {
        labels.extend((0..3).map(|v| format!("load(p{p}, a{a}, v{v})")));
        labels.push(format!("update(p{p}, a{a}, v0, v1)"));
        labels.push(format!("store(p{p}, a{a}, v1)"));
    }
    let alphabet = Alphabet::of(&interface, labels.iter().map(String::as_str)).unwrap();
    let mut lists = ListCores::of(&interface, &alphabet).unwrap();
    let mut sequences = Sequences::new(4, 0);
    let (mut known, mut removed, mut same) = (0, 0, 0);
    for seed in first..first + cases {
        let history = random_history(&mut Random::new(seed));
        let mut numbers = [0; 3];
        for (number, thread) in numbers.iter_mut().zip(&history.threads) {
            *number = sequences.intern(thread.iter().map(entry).collect());
        }
        while known < sequences.count() {
            lists.add(&mut sequences, &interface, known as u32);
            known += 1;
        }
        let core = lists.core(&numbers);
        let threads = core.iter().map(|l| judge::thread(&interface, sequences.get(*l)));
        let core = History { threads: threads.collect(), last: Vec::new() };
        removed += history.len() - core.len();
        same += u64::from(core.len() == Cores::of(&history).len());
        for order in ProcessorOrder::ALL {
            let said = format!("seed {seed}, {}: {}", order.name(), history.text());
            let whole = saturation::allows(&history, order);
            assert_eq!(saturation::allows(&core, order), whole, "{said}, core {}", core.text());
        }
    }
    println!("{removed} operations removed, {same} cores as small as by the other route");
    assert!(removed as u64 > cases && same > cases * 9 / 10);
}

#[test]
fn sets_of_histories_return_what_was_inserted() {
    let all: Vec<History> = (0..500).map(|s| random_history(&mut Random::new(s))).collect();
    let mut set = HistorySet::default();
    let mut plain = std::collections::BTreeSet::new();
    for history in &all[..400] {
        assert_eq!(set.insert(history), plain.insert(history.clone()));
    }
    assert_eq!(set.len(), plain.len());
    assert_eq!(set.iter().collect::<std::collections::BTreeSet<_>>(), plain);
    assert!(all.iter().all(|h| set.contains(h) == plain.contains(h)));
}

/// Total store order: a buffer for each processor in front of one memory.
#[derive(Clone, Copy)]
struct Tso {
    processors: usize,
    addresses: usize,
    values: u32,
    slots: usize,
}

impl Tso {
    fn model(self) -> HandModel {
        let mut model = HandModel::new();
        let mut slots = Vec::new();
        for i in 0..self.addresses + self.processors {
            slots.push(model.slot(format!("s{i}"), 0, false, 0));
        }
        for p in 0..self.processors {
            model.group(format!("p{p}"), &[], &slots, &slots, move |state, emit| {
                let at = self.addresses + p;
                let base = self.addresses as u32 * self.values + 1;
                // The oldest entry is the lowest digit.
                let digits = |mut code: u32| {
                    let mut out = Vec::new();
                    while code > 0 {
                        out.push((code % base) - 1);
                        code /= base;
                    }
                    out
                };
                let code = |all: &[u32]| all.iter().rev().fold(0, |c, e| c * base + e + 1);
                let buffer = digits(state[at]);
                let with = |changes: &[(usize, u32)]| {
                    let mut next = state.to_vec();
                    changes.iter().for_each(|(i, v)| next[*i] = *v);
                    next
                };
                for a in 0..self.addresses {
                    let own = buffer.iter().rev().find(|e| **e / self.values == a as u32);
                    let value = own.map_or(state[a], |e| e % self.values + 1);
                    emit.step(format!("load(p{p}, a{a}, v{value})"), state);
                    for v in 0..self.values {
                        if buffer.len() < self.slots {
                            let entry = a as u32 * self.values + v;
                            let longer = [&buffer[..], &[entry]].concat();
                            let next = with(&[(at, code(&longer))]);
                            emit.step(format!("store(p{p}, a{a}, v{})", v + 1), &next);
                        }
                    }
                }
                if let [first, rest @ ..] = &buffer[..] {
                    let (a, v) = (first / self.values, first % self.values + 1);
                    emit.step("tau", &with(&[(a as usize, v), (at, code(rest))]));
                }
            });
        }
        model
    }

    fn search(self, models: &[&MemoryModel], operations: usize, threads: usize) -> SearchResult {
        let interface = Interface::parse(
            SourceId::FIRST,
            "initial v0; load load(p, a, v); store store(p, a, v);",
        )
        .unwrap();
        let (options, budget) = (Options { threads, ..Options::default() }, Budget::default());
        let model = self.model();
        let machine =
            ReducedMachine::explore(&model, &interface, &options, &budget, &Silent).unwrap();
        let group = SymmetryGroup::find(&machine.alphabet, &machine.lts, threads);
        println!("{} states, {} symmetries", machine.outcome.states, group.elements.len());
        let bound = Bound::of(operations, threads);
        search(&interface, &machine, &group, models, bound, &budget).unwrap()
    }
}

/// The numbers of lists, the order of histories, and so the answer, do not depend on threads.
#[test]
fn answers_do_not_depend_on_threads() {
    let (sc, tso) = (model("sc"), model("tso"));
    let machine = Tso { processors: 2, addresses: 2, values: 2, slots: 2 };
    let answer = |threads: usize| {
        let answer = machine.search(&[&tso, &sc], 3, threads);
        let SearchResult { found, histories, visited, sets, stuck, programs, .. } = &answer;
        let programs: Vec<History> = programs.iter().collect();
        (found.clone(), *histories, *visited, *sets, *stuck, programs)
    };
    let one = answer(1);
    assert_eq!((one.1, one.5.len()), (12_721, 5208));
    assert!(one == answer(2) && one == answer(3));
}

/// The numbers of results/conform.md, and a violation of the stronger model.
#[test]
fn searches_count_programs_and_executions() {
    let machine = Tso { processors: 2, addresses: 2, values: 2, slots: 3 };
    let (sc, tso) = (model("sc"), model("tso"));
    let answer = machine.search(&[&tso, &sc], 3, 2);
    assert_eq!((answer.programs.len(), answer.histories), (5208, 12_721));
    assert!(answer.found[0].is_none());
    let found = answer.found[1].as_ref().unwrap().history.text();
    assert_eq!(found, "W x 1; R y 0 || W y 1; R x 0");
}

/// `PROCESSORS=2 VALUES=2 SLOTS=2 MU_CHECK_OPERATIONS=5 cargo test --release -p mu-check-conform
/// --test cores -- --ignored --nocapture`
#[test]
#[ignore = "minutes"]
fn many_histories_are_judged() {
    let machine = Tso {
        processors: number("PROCESSORS", 2) as usize,
        addresses: 2,
        values: number("VALUES", 2) as u32,
        slots: number("SLOTS", 2) as usize,
    };
    let tso = model("tso");
    let start = std::time::Instant::now();
    let operations = number("MU_CHECK_OPERATIONS", 4) as usize;
    let answer = machine.search(&[&tso], operations, number("THREADS", 2) as usize);
    println!(
        "K={operations}: {} programs, {} executions, {} histories, {} sets, {:.1} s",
        answer.programs.len(),
        answer.histories,
        answer.visited,
        answer.sets,
        start.elapsed().as_secs_f64()
    );
    assert!(answer.found[0].is_none());
}
