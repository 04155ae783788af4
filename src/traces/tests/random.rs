//! Random traces with injected faults, judged by `decide` and by naive enumerations: the abstract
//! machines of Axe's manual (SC, TSO, PSO, WMO), and the axioms of `rvwmo` and `armv8`.
//!
//! A failure prints its seed; `SEED=17 cargo test -p mu-check-traces --test random` replays it.

mod machine;

use machine::{Machine, Op, allows};
use mu_axioms::history::{History, HistoryChecker, Operation as Event};
use mu_axioms::models::{MemoryOrdering as EventMark, by_name};
use mu_base::random::Random;
use mu_base::{Budget, SourceMap};
use mu_traces::{
    Annotations, Conflict, DecisionOptions, Fence, Operation, OperationKind, Trace, TraceBuilder,
    TraceModel, Verdict, decide,
};

/// Program of a random trace: for each thread its operations, and required final values.
#[derive(Clone, Debug, Default)]
struct Program {
    threads: Vec<Vec<Op>>,
    last: Vec<(u32, u64)>,
}

impl Program {
    fn len(&self) -> usize {
        self.threads.iter().map(Vec::len).sum()
    }
}

/// Runs a machine with store buffers on a random program.
fn run(random: &mut Random) -> Program {
    let threads = 2 + random.below(3);
    let addresses = 1 + random.below(3) as u32;
    let total = 4 + random.below(9);
    let fifo = random.chance(1, 2);
    let repeated = random.chance(1, 4);
    let marks = random.chance(1, 3);
    let mut memory = vec![0u64; addresses as usize];
    let mut buffers: Vec<Vec<(u32, u64)>> = vec![Vec::new(); threads];
    let mut next = vec![0u64; addresses as usize];
    let mut out = Program { threads: vec![Vec::new(); threads], last: Vec::new() };
    let mut count = 0;
    while count < total {
        let t = random.below(threads);
        let a = random.below(addresses as usize) as u32;
        let fresh = |next: &mut Vec<u64>, random: &mut Random| {
            next[a as usize] += 1;
            if repeated { 1 + random.below(2) as u64 } else { next[a as usize] }
        };
        let mark = match random.below(3) {
            _ if !marks => Annotations::PLAIN,
            0 => Annotations::ACQUIRE,
            1 => Annotations::RELEASE,
            _ => Annotations::PLAIN,
        };
        let choice = random.below(20);
        if choice < 6 {
            let Some(&(first, _)) = buffers[t].first() else { continue };
            let place = if fifo { first } else { random.choose(&buffers[t]).0 };
            let at = buffers[t].iter().position(|b| b.0 == place).expect("a store");
            let (place, value) = buffers[t].remove(at);
            memory[place as usize] = value;
            continue;
        }
        count += 1;
        if choice < 12 {
            let own = buffers[t].iter().rev().find(|b| b.0 == a).map(|b| b.1);
            let value = own.unwrap_or(memory[a as usize]);
            let mark = if mark == Annotations::RELEASE { Annotations::PLAIN } else { mark };
            out.threads[t].push(Op { mark, ..Op::load(a, value) });
        } else if choice < 17 {
            let value = fresh(&mut next, random);
            buffers[t].push((a, value));
            let mark = if mark == Annotations::ACQUIRE { Annotations::PLAIN } else { mark };
            out.threads[t].push(Op { mark, ..Op::store(a, value) });
        } else {
            let keep = if fifo || choice == 19 { None } else { Some(a) };
            for (place, value) in std::mem::take(&mut buffers[t]) {
                if keep.is_none_or(|k| k == place) {
                    memory[place as usize] = value;
                } else {
                    buffers[t].push((place, value));
                }
            }
            if choice == 19 {
                out.threads[t].push(Op::fence());
            } else {
                let loaded = memory[a as usize];
                let value = fresh(&mut next, random);
                memory[a as usize] = value;
                out.threads[t].push(Op::update(a, loaded, value));
            }
        }
    }
    for (place, value) in buffers.into_iter().flatten() {
        memory[place as usize] = value;
    }
    if random.chance(1, 4) {
        let place = random.below(addresses as usize);
        out.last.push((place as u32, memory[place]));
    }
    if random.chance(1, 3) {
        times(&mut out, random);
    }
    out
}

/// Adds begin and end times to loads and updates.
fn times(program: &mut Program, random: &mut Random) {
    for thread in &mut program.threads {
        let mut time = 0;
        for o in thread.iter_mut() {
            time += 1 + random.below(4) as u64;
            if random.chance(3, 4) {
                o.begin = Some(time);
                if o.loads() && random.chance(3, 4) {
                    o.end = Some(time + 1 + random.below(8) as u64);
                }
            }
        }
    }
}

/// Injects a fault: a stale load, a lost store, a wrong forwarding, or a reordered pair.
fn inject(program: &mut Program, random: &mut Random) {
    let all: Vec<(usize, usize)> = (0..program.threads.len())
        .flat_map(|t| (0..program.threads[t].len()).map(move |i| (t, i)))
        .collect();
    let &(t, i) = random.choose(&all);
    let o = program.threads[t][i];
    let values: Vec<u64> = (program.threads.iter().flatten())
        .filter(|s| s.stores() && s.place == o.place)
        .map(|s| s.stored)
        .chain([0])
        .collect();
    match random.below(4) {
        // A stale or wrongly forwarded load.
        0 | 1 if o.loads() => program.threads[t][i].loaded = *random.choose(&values),
        // A lost store: all other threads still load an older value.
        2 if o.stores() => {
            let older = *random.choose(&values);
            for (u, thread) in program.threads.iter_mut().enumerate() {
                for l in thread.iter_mut().filter(|l| u != t && l.loads()) {
                    if l.place == o.place && l.loaded == o.stored {
                        l.loaded = older;
                    }
                }
            }
        }
        _ if i + 1 < program.threads[t].len() => {
            program.threads[t].swap(i, i + 1);
            // Times stay with their places.
            let (a, b) = (program.threads[t][i], program.threads[t][i + 1]);
            for (k, o) in [(i, b), (i + 1, a)] {
                let o = (o.begin, o.end);
                let target = &mut program.threads[t][k];
                target.begin = o.0;
                target.end = if target.loads() { o.1 } else { None };
            }
        }
        _ => {}
    }
}

fn trace(program: &Program) -> Trace {
    let mut b = TraceBuilder::new("random", 1);
    let mut line = 0;
    for (t, thread) in program.threads.iter().enumerate() {
        let t = b.thread(&t.to_string());
        for o in thread {
            line += 1;
            let place = if o.fence { 0 } else { b.named_location(&o.place.to_string()) };
            let operation = match (o.fence, o.loads(), o.stores()) {
                (true, ..) => Operation::fence(Fence::FULL, line),
                (_, true, true) => Operation::update(place, o.loaded, o.stored, line),
                (_, true, false) => Operation::load(place, o.loaded, line),
                _ => Operation::store(place, o.stored, line),
            };
            b.push(t, Operation { mark: o.mark, begin: o.begin, end: o.end, ..operation });
        }
    }
    for &(place, value) in &program.last {
        let place = b.named_location(&place.to_string());
        b.last(place, 0, value, 0);
    }
    b.finish().expect("a trace")
}

fn history(program: &Program) -> History {
    let mark = |m: Annotations| match (m.acquires(), m.has(Annotations::RELEASE)) {
        (true, _) => EventMark::Acquire,
        (_, true) => EventMark::Release,
        _ => EventMark::Plain,
    };
    let event = |o: &Op| {
        let kind = match (o.fence, o.loads(), o.stores()) {
            (true, ..) => mu_axioms::EventKind::Fence,
            (_, true, true) => mu_axioms::EventKind::Update,
            (_, true, false) => mu_axioms::EventKind::Read,
            _ => mu_axioms::EventKind::Write,
        };
        let value = if o.stores() { o.stored } else { o.loaded };
        let read = if o.stores() { o.loaded } else { 0 };
        Event { read, mark: mark(o.mark), ..Event::plain(kind, o.place, value) }
    };
    History {
        threads: program.threads.iter().map(|t| t.iter().map(event).collect()).collect(),
        last: program.last.clone(),
    }
}

/// Returns the operations of a conflict alone. Each load of a cycle has a source among them.
fn part(trace: &Trace, conflict: &Conflict) -> Program {
    let part = conflict.part(trace);
    let mut out = Program::default();
    for t in 0..part.threads.len() {
        let op = |i: usize| {
            let o = part.operation(i);
            let place: u32 = match o.kind {
                OperationKind::Fence(_) => 0,
                _ => part.locations[o.location as usize].name.parse().expect("a number"),
            };
            let op = match o.kind {
                OperationKind::Fence(_) => Op::fence(),
                OperationKind::Load => Op::load(place, o.loaded),
                OperationKind::Store => Op::store(place, o.stored),
                OperationKind::Update => Op::update(place, o.loaded, o.stored),
            };
            Op { mark: o.mark, begin: o.begin, end: o.end, ..op }
        };
        out.threads.push(part.range(t).map(op).collect());
    }
    for f in &part.finals {
        let place = part.locations[f.location as usize].name.parse().expect("a number");
        out.last.push((place, f.value));
    }
    let all = || out.threads.iter().flatten();
    for load in all().filter(|o| o.loads() && !conflict.cycle.is_empty()) {
        let is_source = |s: &Op| s.stores() && s.place == load.place && s.stored == load.loaded;
        assert!(load.loaded == 0 || all().any(is_source), "{load:?} has no source in {out:?}");
    }
    out
}

/// Limit on the choices of the naive check by axioms; a program with more is not checked by it.
const MAX_CHOICES: usize = 150;

/// Returns the number of coherence orders times the number of choices of sources.
fn choices(program: &Program) -> usize {
    let all = || program.threads.iter().flatten();
    let mut out = 1usize;
    for place in 0..3 {
        let stores = all().filter(|o| o.stores() && o.place == place).count();
        out = (1..=stores).fold(out, usize::saturating_mul);
    }
    for load in all().filter(|o| o.loads()) {
        let same = |s: &&Op| s.stores() && s.place == load.place && s.stored == load.loaded;
        out = out.saturating_mul(all().filter(same).count().max(1));
    }
    out
}

fn compare(seeds: std::ops::Range<u64>) {
    let machines = [Machine::Sc, Machine::Tso, Machine::Pso, Machine::Wmo];
    let mut sources = SourceMap::new();
    let weak: Vec<_> = ["rvwmo", "armv8"]
        .iter()
        .map(|name| {
            let known = by_name(name).expect("a model");
            (*name, known.dialect, known.compile(&mut sources).expect("it compiles"))
        })
        .collect();
    let mut judges: Vec<_> =
        weak.iter().map(|(name, dialect, m)| (*name, HistoryChecker::new(m, *dialect))).collect();
    let mut counts = [[0u32; 2]; 6];
    let mut parts = [0u32; 2];
    let mut last = Vec::new();
    let many = seeds.end - seeds.start > 100;
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut program = run(&mut random);
        for _ in 0..random.below(3) {
            inject(&mut program, &mut random);
        }
        let trace = trace(&program);
        let decided = |model: &TraceModel| {
            let verdict = decide(&trace, model, &DecisionOptions::default(), &Budget::default());
            let verdict = verdict.unwrap_or_else(|e| panic!("seed {seed}: {e}\n{program:?}"));
            let part = match &verdict {
                Verdict::Forbidden { conflict } => Some(part(&trace, conflict)),
                _ => None,
            };
            let truth = verdict.truth().unwrap_or_else(|| panic!("seed {seed}: {verdict:?}"));
            (truth, part)
        };
        let mut smaller = |part: Option<&Program>| {
            parts[usize::from(part.is_some_and(|p| p.len() < program.len()))] += 1;
        };
        last.clear();
        for (k, machine) in machines.iter().enumerate() {
            let expected = allows(*machine, &program.threads, &program.last);
            let model = TraceModel::by_name(machine.name()).expect("a model");
            let (verdict, part) = decided(&model);
            assert_eq!(verdict, expected, "seed {seed}, {}: {program:#?}", model.name());
            if let Some(part) = &part {
                let alone = allows(*machine, &part.threads, &part.last);
                assert!(!alone, "seed {seed}, {}: {part:#?} of {program:#?}", model.name());
            }
            smaller(part.as_ref());
            counts[k][usize::from(verdict)] += 1;
            last.push(verdict);
        }
        // Times have no meaning in the axioms.
        for (k, (name, judge)) in judges.iter_mut().enumerate() {
            if choices(&program) > MAX_CHOICES {
                continue;
            }
            let expected = judge.allows(&history(&program)).expect("it judges");
            let (verdict, part) = decided(&TraceModel::by_name(name).expect("a model"));
            assert_eq!(verdict, expected, "seed {seed}, {name}: {program:#?}");
            if let Some(part) = &part {
                let alone = judge.allows(&history(part)).expect("it judges");
                assert!(!alone, "seed {seed}, {name}: {part:#?} of {program:#?}");
            }
            smaller(part.as_ref());
            counts[4 + k][usize::from(verdict)] += 1;
        }
        assert!(!last[0] || last[1], "seed {seed}: TSO is stronger than SC");
    }
    println!("forbidden and allowed by sc, tso, pso, wmo, rvwmo, armv8: {counts:?}");
    println!("conflicts with fewer operations than their traces: {}", parts[1]);
    assert!(!many || parts[1] > 100, "{parts:?}");
    for count in counts.iter().filter(|_| many) {
        assert!(count[0] > 0 && count[1] > 0, "each model has both verdicts: {counts:?}");
    }
}

/// Gives each store a value of its own and each load a source, in every possible manner; calls
/// `visit` with each program until it returns true.
fn assign_values(program: &Program, visit: &mut dyn FnMut(&Program) -> bool) -> bool {
    let mut stores: Vec<(u32, u64, u64)> = Vec::new();
    let mut fresh = program.clone();
    for o in fresh.threads.iter_mut().flatten().filter(|o| o.stores()) {
        let value = 100 + stores.len() as u64;
        stores.push((o.place, o.stored, value));
        o.stored = value;
    }
    let sources = |place: u32, value: u64| -> Vec<u64> {
        let same = stores.iter().filter(|s| (s.0, s.1) == (place, value)).map(|s| s.2);
        same.chain((value == 0).then_some(0)).collect()
    };
    let loads = program.threads.iter().flatten().filter(|o| o.loads());
    let lists: Vec<Vec<u64>> = (loads.map(|o| sources(o.place, o.loaded)))
        .chain(program.last.iter().map(|l| sources(l.0, l.1)))
        .collect();
    let total: usize = lists.iter().map(Vec::len).product();
    (0..total).any(|choice| {
        let (mut rest, mut lists) = (choice, lists.iter());
        let mut next = || {
            let list = lists.next().expect("a list for each load");
            let value = list[rest % list.len()];
            rest /= list.len();
            value
        };
        let mut one = fresh.clone();
        one.threads.iter_mut().flatten().filter(|o| o.loads()).for_each(|o| o.loaded = next());
        one.last.iter_mut().for_each(|l| l.1 = next());
        visit(&one)
    })
}

/// Under `pow` a trace with repeated values is allowed if one with distinct values is, for some
/// choice of the source of each load.
#[test]
fn power_allows_repeated_values() {
    let decided = |program: &Program| {
        let verdict = decide(
            &trace(program),
            &TraceModel::Pow,
            &DecisionOptions::default(),
            &Budget::default(),
        );
        verdict.unwrap_or_else(|e| panic!("{e}\n{program:?}")).truth().expect("it is decided")
    };
    let mut counts = [0u32; 2];
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let mut program = run(&mut random);
        // Values repeat, and some stores have the initial value.
        for o in program.threads.iter_mut().flatten() {
            o.stored %= 3;
            o.loaded %= 3;
        }
        program.last.iter_mut().for_each(|l| l.1 %= 3);
        for _ in 0..random.below(3) {
            inject(&mut program, &mut random);
        }
        if choices(&program) > 2_000 {
            continue;
        }
        let verdict = decided(&program);
        let expected = assign_values(&program, &mut |one| decided(one));
        assert_eq!(verdict, expected, "seed {seed}: {program:#?}");
        counts[usize::from(verdict)] += 1;
    }
    assert!(counts[0] > 20 && counts[1] > 20, "{counts:?}");
}

#[test]
fn verdicts_agree_with_naive_enumerations() {
    match std::env::var("SEED").ok().and_then(|s| s.parse::<u64>().ok()) {
        Some(seed) => compare(seed..seed + 1),
        None => {
            compare(0..300);
            // Several stores have the required final value.
            compare(1_508..1_509);
        }
    }
}

/// `cargo test --release -p mu-check-traces --test random -- --ignored --nocapture`
#[test]
#[ignore = "minutes"]
fn verdicts_agree_with_naive_enumerations_on_many_traces() {
    compare(1_000..101_000);
}
