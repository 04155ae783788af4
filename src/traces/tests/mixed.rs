//! Accesses of several sizes that overlap, judged by `decide` and by an exhaustive search of
//! machines with bytes.
//!
//! A failure prints its seed; `SEED=17 cargo test -p mu-check-traces --test mixed` replays it.

use std::collections::HashSet;

use mu_base::Budget;
use mu_base::random::Random;
use mu_traces::trace::Initial;
use mu_traces::{DecisionOptions, Fence, Operation, Trace, TraceBuilder, TraceModel, decide};

const BYTES: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    Load,
    Store,
    Update,
    Fence,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Op {
    kind: Kind,
    at: usize,
    size: usize,
    loaded: u64,
    stored: u64,
}

impl Op {
    fn overlaps(&self, other: &Op) -> bool {
        self.at < other.at + other.size && other.at < self.at + self.size
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Machine {
    Sc,
    Tso,
    Pso,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    next: Vec<usize>,
    buffers: Vec<Vec<(usize, usize, u64)>>,
    memory: [u8; BYTES],
}

impl State {
    fn start(threads: usize, memory: [u8; BYTES]) -> State {
        State { next: vec![0; threads], buffers: vec![Vec::new(); threads], memory }
    }
    fn read(&self, t: usize, at: usize, size: usize) -> u64 {
        let byte = |b: usize| {
            let own = self.buffers[t].iter().rev().find(|s| (s.0..s.0 + s.1).contains(&b));
            own.map_or(self.memory[b], |s| s.2.to_le_bytes()[b - s.0])
        };
        (0..size).rev().fold(0, |value, k| value << 8 | u64::from(byte(at + k)))
    }
    fn write(&mut self, (at, size, value): (usize, usize, u64)) {
        self.memory[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
    /// Stores of a thread that may leave its buffer.
    fn drains(&self, t: usize, machine: Machine) -> Vec<usize> {
        let b = &self.buffers[t];
        let overlap =
            |x: &(usize, usize, u64), y: &(usize, usize, u64)| x.0 < y.0 + y.1 && y.0 < x.0 + x.1;
        (0..b.len())
            .filter(|&k| match machine {
                Machine::Pso => b[..k].iter().all(|s| !overlap(s, &b[k])),
                _ => k == 0,
            })
            .collect()
    }
    /// True if an operation may be executed as far as the buffer of its thread allows.
    fn is_free(&self, t: usize, o: &Op, machine: Machine) -> bool {
        let b = &self.buffers[t];
        match (o.kind, machine) {
            (Kind::Load | Kind::Store, _) => true,
            (Kind::Update, Machine::Pso) => {
                !b.iter().any(|s| Op { at: s.0, size: s.1, ..*o }.overlaps(o))
            }
            _ => b.is_empty(),
        }
    }
}

/// Operations of each thread, and initial values by place and size; other bytes are 0.
struct Program {
    threads: Vec<Vec<Op>>,
    initial: Vec<(usize, usize, u64)>,
}

impl Program {
    fn memory(&self) -> [u8; BYTES] {
        let mut state = State::start(0, [0; BYTES]);
        self.initial.iter().for_each(|part| state.write(*part));
        state.memory
    }
}

fn allows(program: &Program, machine: Machine) -> bool {
    let threads = &program.threads;
    let mut stack = vec![State::start(threads.len(), program.memory())];
    let mut seen: HashSet<State> = HashSet::new();
    while let Some(state) = stack.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        if (0..threads.len()).all(|t| state.next[t] == threads[t].len()) {
            return true;
        }
        for (t, operations) in threads.iter().enumerate() {
            for k in state.drains(t, machine) {
                let mut next = state.clone();
                let store = next.buffers[t].remove(k);
                next.write(store);
                stack.push(next);
            }
            let Some(o) = operations.get(state.next[t]) else { continue };
            if !state.is_free(t, o, machine) {
                continue;
            }
            if matches!(o.kind, Kind::Load | Kind::Update)
                && state.read(t, o.at, o.size) != o.loaded
            {
                continue;
            }
            let mut next = state.clone();
            next.next[t] += 1;
            match o.kind {
                Kind::Store if machine != Machine::Sc => {
                    next.buffers[t].push((o.at, o.size, o.stored));
                }
                Kind::Store | Kind::Update => next.write((o.at, o.size, o.stored)),
                _ => {}
            }
            stack.push(next);
        }
    }
    false
}

/// Runs a machine with store buffers on a random program, and may change a loaded value.
fn program(random: &mut Random) -> Program {
    let threads = 2 + random.below(2);
    let machine = *random.choose(&[Machine::Sc, Machine::Tso, Machine::Pso]);
    let initial = initial_values(random);
    let memory = Program { threads: Vec::new(), initial: initial.clone() }.memory();
    let mut state = State::start(threads, memory);
    let mut out: Vec<Vec<Op>> = vec![Vec::new(); threads];
    let total = 4 + random.below(6);
    let mut count = 0;
    while count < total {
        let t = random.below(threads);
        let drains = state.drains(t, machine);
        if !drains.is_empty() && random.chance(1, 3) {
            let store = state.buffers[t].remove(*random.choose(&drains));
            state.write(store);
            continue;
        }
        let size = 1usize << random.below(3);
        let at =
            if random.chance(1, 8) && size == 2 { 1 } else { random.below(BYTES / size) * size };
        let kind = match random.below(10) {
            0..=3 => Kind::Load,
            4..=7 => Kind::Store,
            8 => Kind::Update,
            _ => Kind::Fence,
        };
        let value = (0..size).fold(0, |v, _| v << 8 | random.below(3) as u64);
        let mut o = Op { kind, at, size, loaded: 0, stored: value };
        if !state.is_free(t, &o, machine) {
            continue;
        }
        count += 1;
        if matches!(kind, Kind::Load | Kind::Update) {
            o.loaded = state.read(t, at, size);
        }
        match kind {
            Kind::Store if machine != Machine::Sc => state.buffers[t].push((at, size, value)),
            Kind::Store | Kind::Update => state.write((at, size, value)),
            _ => {}
        }
        out[t].push(o);
    }
    if random.chance(1, 2) {
        let t = random.below(threads);
        if let Some(o) = out[t].iter_mut().rev().find(|o| o.kind == Kind::Load) {
            o.loaded ^= 1 << (8 * random.below(o.size));
        }
    }
    Program { threads: out, initial }
}

/// Initial values without common bytes; none in half of the programs.
fn initial_values(random: &mut Random) -> Vec<(usize, usize, u64)> {
    let mut initial: Vec<(usize, usize, u64)> = Vec::new();
    for _ in 0..if random.chance(1, 2) { 0 } else { 1 + random.below(3) } {
        let size = 1usize << random.below(3);
        let at = random.below(BYTES / size) * size;
        if initial.iter().all(|other| at + size <= other.0 || other.0 + other.1 <= at) {
            let value = (0..size).fold(0, |v, _| v << 8 | random.below(3) as u64);
            initial.push((at, size, value));
        }
    }
    initial
}

fn trace(program: &Program) -> Trace {
    let mut b = TraceBuilder::new("random", 1);
    for &(at, size, value) in &program.initial {
        let place = b.address(0x1000 + at as u64);
        b.set_initial(place, size as u8, Initial::Value(value));
    }
    let mut line = 0;
    for (t, thread) in program.threads.iter().enumerate() {
        let t = b.thread(&t.to_string());
        for o in thread {
            line += 1;
            let place = match o.kind {
                Kind::Fence => 0,
                _ => b.address(0x1000 + o.at as u64),
            };
            let operation = match o.kind {
                Kind::Load => Operation::load(place, o.loaded, line),
                Kind::Store => Operation::store(place, o.stored, line),
                Kind::Update => Operation::update(place, o.loaded, o.stored, line),
                Kind::Fence => Operation::fence(Fence::FULL, line),
            };
            b.push(t, Operation { size: o.size as u8, ..operation });
        }
    }
    b.finish().expect("a trace")
}

#[test]
fn overlapping_accesses() {
    let only = std::env::var("SEED").ok().and_then(|s| s.parse::<u64>().ok());
    let seeds = only.map_or(0..3_000, |s| s..s + 1);
    let (mut mixed, mut forbidden, mut open) = (0, 0, 0);
    for seed in seeds {
        let program = program(&mut Random::new(seed));
        let (trace, threads) = (trace(&program), &program.threads);
        if !trace.has_mixed_sizes() {
            continue;
        }
        mixed += 1;
        let judge = |model: &TraceModel| {
            let verdict = decide(&trace, model, &DecisionOptions::default(), &Budget::default());
            verdict.unwrap_or_else(|e| panic!("seed {seed}, {}: {e}", model.name()))
        };
        let mut strongest = false;
        for (machine, model) in [
            (Machine::Sc, TraceModel::Sc),
            (Machine::Tso, TraceModel::Tso),
            (Machine::Pso, TraceModel::Pso),
        ] {
            let expected = allows(&program, machine);
            let verdict = judge(&model);
            assert_eq!(
                verdict.truth(),
                Some(expected),
                "seed {seed}, {}: {:?} {threads:?} {verdict:?}",
                model.name(),
                program.initial
            );
            forbidden += usize::from(!expected);
            strongest |= expected;
        }
        for model in [TraceModel::Wmo, TraceModel::Rvwmo, TraceModel::Armv8] {
            let verdict = judge(&model);
            open += usize::from(verdict.truth().is_none());
            if strongest {
                assert_eq!(
                    verdict.truth(),
                    Some(true),
                    "seed {seed}, {}: {verdict:?}",
                    model.name()
                );
            }
        }
    }
    println!("{mixed} traces, {forbidden} verdicts forbidden, {open} open");
    if only.is_none() {
        assert!(mixed > 2_000 && forbidden > 1_000 && open < mixed / 50);
    }
}
