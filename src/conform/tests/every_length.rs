//! Monitors of `every_length` compared with the axioms on random executions.
//!
//! An execution is a random sequence of loads, stores, commits, updates, and fences of two or three
//! processors and addresses. The axioms judge it with its sources and the order of its commits. The
//! monitors must reach an alarm for some guess and some choice of the distinguished stores exactly
//! if the axioms forbid it. Every second execution is built around a cycle of communications, so
//! that many are cyclic. `MU_CHECK_SEED` is the first seed, `MU_CHECK_CASES` the number of
//! executions.

use mu_axioms::EventKind;
use mu_axioms::Relation;
use mu_axioms::cat::Session;
use mu_axioms::history::{History, Operation};
use mu_axioms::models::{Dialect, FenceSide, MemoryOrdering, by_name};
use mu_base::SourceMap;
use mu_base::random::Random;
use mu_conform::every_length::effects::Effect;
use mu_conform::every_length::monitor::{Guess, Roles, Size, coherence_guesses, cycle_guesses};
use mu_conform::every_length::order::ProcessorOrder;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

/// A step of a processor of a planted execution.
#[derive(Clone, Copy)]
enum Step {
    /// An access at an address: the store, and true if it is that store.
    Access(usize, (usize, bool)),
    /// A fence: true if it orders stores with later loads, with later stores.
    Fence(bool, bool),
}

/// A communication at an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Segment {
    Rf,
    Co,
    Fr,
    Fi,
}

impl Segment {
    fn random(random: &mut Random) -> Segment {
        *random.choose(&[Segment::Rf, Segment::Co, Segment::Fr, Segment::Fi, Segment::Fi])
    }
    fn entry(self) -> (usize, bool) {
        if self == Segment::Rf { (1, false) } else { (2, true) }
    }
    fn exit(self) -> (usize, bool) {
        match self {
            Segment::Rf | Segment::Co => (1, true),
            Segment::Fr => (1, false),
            Segment::Fi => (0, false),
        }
    }
    fn is_ordered(self) -> bool {
        matches!(self, Segment::Co | Segment::Fr)
    }
}

/// A random execution: values of effects are the numbers of stores, 0 for the initial value.
struct Execution {
    size: Size,
    effects: Vec<Effect>,
    /// Address of each store, from 1.
    stores: Vec<u32>,
}

impl Execution {
    /// Generates an execution; with `absorbs`, stores may replace waiting ones.
    fn random(random: &mut Random, absorbs: bool) -> Execution {
        let below = |random: &mut Random, n: usize| random.below(n) as u32;
        let size = Size {
            processors: 2 + below(random, 2),
            addresses: 2 + u32::from(random.chance(1, 3)),
            commits: true,
            absorbs,
            updates: true,
        };
        let length = 5 + random.below(9);
        let strict = random.chance(2, 3);
        let (fifo, forward) = (random.chance(2, 3), random.chance(4, 5));
        let mut memory = vec![0u32; size.addresses as usize];
        let mut buffers: Vec<Vec<(u32, u32)>> = vec![Vec::new(); size.processors as usize];
        let mut out = Execution { size, effects: Vec::new(), stores: vec![u32::MAX] };
        for _ in 0..length {
            let (processor, address) =
                (below(random, size.processors as usize), below(random, size.addresses as usize));
            let p = processor as usize;
            match random.below(if absorbs { 14 } else { 12 }) {
                0..4 => {
                    let own = buffers[p].iter().rev().find(|e| e.0 == address && forward);
                    let mut value = own.map_or(memory[address as usize], |e| e.1);
                    if !strict && random.chance(1, 5) {
                        let all: Vec<u32> = (1..out.stores.len() as u32)
                            .filter(|s| out.stores[*s as usize] == address)
                            .chain([0])
                            .collect();
                        value = all[random.below(all.len())];
                    }
                    out.effects.push(Effect::Load { processor, address, value });
                }
                4..8 => {
                    let value = out.stores.len() as u32;
                    out.stores.push(address);
                    out.effects.push(Effect::Store { processor, address, value });
                    let last = buffers[p].iter().rposition(|e| e.0 == address);
                    let Some(at) = last.filter(|_| absorbs && random.chance(2, 3)) else {
                        buffers[p].push((address, value));
                        continue;
                    };
                    let old = buffers[p][at].1;
                    out.effects.push(Effect::Absorb { processor, address, value: old });
                    if random.chance(1, 2) {
                        buffers[p][at].1 = value;
                    } else {
                        buffers[p].remove(at);
                        buffers[p].push((address, value));
                    }
                }
                // A store is absorbed later by the next one to its address.
                12.. => {
                    let same =
                        |a: usize| buffers[p][a + 1..].iter().any(|e| e.0 == buffers[p][a].0);
                    if let Some(at) = (0..buffers[p].len()).find(|a| same(*a)) {
                        let (address, value) = buffers[p].remove(at);
                        out.effects.push(Effect::Absorb { processor, address, value });
                    }
                }
                8..10 => {
                    if !buffers[p].is_empty() {
                        let at = if fifo { 0 } else { random.below(buffers[p].len()) };
                        let (address, value) = buffers[p].remove(at);
                        memory[address as usize] = value;
                        out.effects.push(Effect::Commit { address, value });
                    }
                }
                10 => {
                    if buffers[p].is_empty() || random.chance(1, 4) {
                        let written = out.stores.len() as u32;
                        out.stores.push(address);
                        let mut read = memory[address as usize];
                        if !strict && random.chance(1, 5) {
                            read = 0;
                        }
                        memory[address as usize] = written;
                        out.effects.push(Effect::Update { processor, address, read, written });
                    }
                }
                _ => {
                    if buffers[p].is_empty() || random.chance(1, 4) {
                        out.effects.push(Effect::Fence { processor, reads: true, writes: true });
                    }
                }
            }
        }
        // All stores commit in the end.
        let mut open: Vec<usize> = (0..buffers.len()).collect();
        while !open.is_empty() {
            let at = random.below(open.len());
            match buffers[open[at]].first().copied() {
                Some((address, value)) => {
                    buffers[open[at]].remove(0);
                    out.effects.push(Effect::Commit { address, value });
                }
                None => {
                    open.swap_remove(at);
                }
            }
        }
        out
    }

    /// Builds an execution around a list of visits: each processor enters with an access at one
    /// address and leaves with one at the next; the segment at an address is a random
    /// communication. Returns `None` if a load would take the value of a later store.
    fn random_execution(random: &mut Random) -> Option<Execution> {
        let visits = 2 + random.below(2);
        let (processors, addresses) = (2 + random.below(2), visits);
        let owners: Vec<usize> = (0..visits).map(|_| random.below(processors)).collect();
        // Accesses of each processor: the address, the store that it loads or is, and true for a
        // store. Stores have numbers by address: 1 and 2; 0 is the initial value.
        let mut threads: Vec<Vec<Step>> = vec![Vec::new(); processors];
        let segments: Vec<Segment> = (0..visits).map(|_| Segment::random(random)).collect();
        for (i, &p) in owners.iter().enumerate() {
            let next = (i + 1) % visits;
            threads[p].push(Step::Access(i, segments[i].entry()));
            if random.chance(1, 2) {
                let [reads, writes] = [random.chance(2, 3), random.chance(2, 3)];
                threads[p].push(Step::Fence(reads, writes));
            }
            threads[p].push(Step::Access(next, segments[next].exit()));
            if segments[next] == Segment::Fr {
                let other = random.below(processors);
                threads[other].insert(0, Step::Access(next, (1, true)));
            }
        }
        let size = Size {
            processors: processors as u32,
            addresses: addresses as u32,
            commits: true,
            absorbs: false,
            updates: true,
        };
        let mut out = Execution { size, effects: Vec::new(), stores: vec![u32::MAX] };
        let mut at = vec![0; processors];
        let mut number = vec![[0u32; 3]; addresses];
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut committed = vec![[false; 3]; addresses];
        loop {
            let ready = |p: &usize| match threads[*p].get(at[*p]) {
                None => false,
                Some(Step::Access(a, (store, false))) => *store == 0 || number[*a][*store] > 0,
                Some(_) => true,
            };
            let steps: Vec<usize> = (0..processors).filter(ready).collect();
            let commits: Vec<usize> = (0..open.len())
                .filter(|i| {
                    let (a, store) = open[*i];
                    let waits = store == 2 && segments[a].is_ordered();
                    !waits || committed[a][1]
                })
                .collect();
            if steps.is_empty() && commits.is_empty() {
                let done = (0..processors).all(|p| at[p] == threads[p].len()) && open.is_empty();
                return done.then_some(out);
            }
            if steps.is_empty() || !commits.is_empty() && random.chance(1, 3) {
                let (a, store) = open.remove(commits[random.below(commits.len())]);
                committed[a][store] = true;
                out.effects.push(Effect::Commit { address: a as u32, value: number[a][store] });
                continue;
            }
            let p = steps[random.below(steps.len())];
            let processor = p as u32;
            match threads[p][at[p]] {
                Step::Fence(reads, writes) => {
                    out.effects.push(Effect::Fence { processor, reads, writes });
                }
                Step::Access(a, (store, false)) => {
                    let (address, value) = (a as u32, number[a][store]);
                    out.effects.push(Effect::Load { processor, address, value });
                }
                Step::Access(a, (store, true)) => {
                    let (address, value) = (a as u32, out.stores.len() as u32);
                    out.stores.push(address);
                    number[a][store] = value;
                    open.push((a, store));
                    out.effects.push(Effect::Store { processor, address, value });
                }
            }
            at[p] += 1;
        }
    }

    /// True if `pso` has the required form for its fences.
    fn is_for(&self, order: ProcessorOrder) -> bool {
        let half = |e: &Effect| matches!(e, Effect::Fence { reads, writes, .. } if reads != writes);
        order != ProcessorOrder::Pso || !self.effects.iter().any(half)
    }

    /// Returns the history and the stores of each address in the order of their commits.
    fn history(&self) -> (History, Vec<Vec<u32>>) {
        let mut history =
            History { threads: vec![Vec::new(); self.size.processors as usize], last: Vec::new() };
        let mut committed = vec![Vec::new(); self.size.addresses as usize];
        // The stores that commit directly before each store, and the stores issued so far.
        let mut absorbed: Vec<Vec<u32>> = vec![Vec::new(); self.stores.len()];
        let mut issued: Vec<(u32, u32)> = Vec::new();
        for effect in &self.effects {
            if let Effect::Store { processor, value, .. } = *effect {
                issued.push((processor, value));
            }
            let mut add = |p: u32, kind, location, value: u32, read: u32| {
                let (value, read, mark) =
                    (u64::from(value), u64::from(read), MemoryOrdering::Plain);
                history.threads[p as usize].push(Operation {
                    read,
                    mark,
                    ..Operation::plain(kind, location, value)
                });
            };
            match *effect {
                Effect::Load { processor, address, value } => {
                    add(processor, EventKind::Read, address, value, 0)
                }
                Effect::Store { processor, address, value } => {
                    add(processor, EventKind::Write, address, value, 0)
                }
                Effect::Update { processor, address, read, written } => {
                    add(processor, EventKind::Update, address, written, read);
                    committed[address as usize].push(written);
                }
                Effect::Fence { processor, reads, writes } => {
                    add(processor, EventKind::Fence, 0, 0, 0);
                    if let Some(o) = history.threads[processor as usize].last_mut() {
                        o.mark = match (reads, writes) {
                            (true, true) => MemoryOrdering::Plain,
                            (true, false) => {
                                MemoryOrdering::Between(FenceSide::All, FenceSide::Reads)
                            }
                            (false, true) => {
                                MemoryOrdering::Between(FenceSide::Writes, FenceSide::Writes)
                            }
                            (false, false) => MemoryOrdering::Acquire,
                        };
                    }
                }
                Effect::Commit { address, value } => {
                    committed[address as usize].append(&mut absorbed[value as usize]);
                    committed[address as usize].push(value);
                }
                Effect::Absorb { processor, address, value } => {
                    let next = |(p, v): &&(u32, u32)| {
                        *p == processor && *v > value && self.stores[*v as usize] == address
                    };
                    let mut all = std::mem::take(&mut absorbed[value as usize]);
                    all.push(value);
                    let next = issued.iter().filter(next).map(|i| i.1).min();
                    match next.filter(|n| !committed[address as usize].contains(n)) {
                        Some(next) => absorbed[next as usize].splice(0..0, all).for_each(drop),
                        None => committed[address as usize].append(&mut all),
                    }
                }
                _ => {}
            }
        }
        (history, committed)
    }

    /// True if the axioms allow the execution with the order of its commits.
    fn is_allowed(&self, model: &mu_axioms::cat::CatModel) -> bool {
        let (history, committed) = self.history();
        let skeleton = history.skeleton(Dialect::Plain, model.vocabulary(), Some(model));
        let events = skeleton.events();
        let place = |address: u32, value: u64| {
            events
                .iter()
                .position(|e| e.kind.writes() && e.location == Some(address) && e.value == value)
                .expect("a store with this value")
        };
        let mut rf = Relation::empty(skeleton.len());
        for (i, e) in events.iter().enumerate().filter(|(_, e)| e.kind.reads()) {
            rf.insert(place(e.location.unwrap(), e.value), i);
        }
        let mut co = Relation::empty(skeleton.len());
        for (address, stores) in committed.iter().enumerate() {
            if address as u32 >= history.locations() {
                continue;
            }
            let all: Vec<usize> = std::iter::once(0)
                .chain(stores.iter().copied())
                .map(|v| place(address as u32, u64::from(v)))
                .collect();
            for (i, &a) in all.iter().enumerate() {
                all[i + 1..].iter().for_each(|&b| co.insert(a, b));
            }
        }
        let mut session = Session::new(model);
        let mut run = session.start(&skeleton).unwrap();
        run.holds() && run.allows(&rf, &co).unwrap()
    }

    /// True if a guess reaches its alarm for some choice of the distinguished stores.
    fn is_found(&self, guess: &Guess, roles: &Roles) -> bool {
        let mut values = vec![roles.initial; self.stores.len()];
        self.search(guess, roles, 0, 0, &mut values)
    }

    fn search(
        &self,
        guess: &Guess,
        roles: &Roles,
        at: usize,
        state: u32,
        values: &mut Vec<u32>,
    ) -> bool {
        let Some(effect) = self.effects.get(at) else { return guess.is_alarm(state) };
        let stored = match *effect {
            Effect::Store { value, .. } => Some(value),
            Effect::Update { written, .. } => Some(written),
            _ => None,
        };
        let choices = match stored {
            Some(_) => {
                let mut all = vec![roles.first, roles.second, roles.other];
                all.dedup();
                all
            }
            None => vec![0],
        };
        choices.into_iter().any(|choice| {
            if let Some(store) = stored {
                values[store as usize] = choice;
            }
            let named = effect.with_values(|v| values[v as usize]);
            guess
                .apply(roles, state, &named)
                .is_some_and(|next| self.search(guess, roles, at + 1, next, values))
        })
    }
}

const SEPARATE: Roles = Roles { initial: 0, first: 1, second: 2, other: 3 };
const JOINED: Roles = Roles { initial: 0, first: 1, second: 2, other: 0 };

#[test]
fn monitors_agree_with_the_axioms_on_random_executions() {
    compare(number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 100));
}

/// cargo test --release -p mu-check-conform --test every_length -- --ignored --nocapture
#[test]
#[ignore = "minutes"]
fn monitors_agree_with_the_axioms_on_ten_thousand_executions() {
    compare(number("MU_CHECK_SEED", 1000), number("MU_CHECK_CASES", 10_000));
}

#[test]
fn absorbed_stores_lose_no_violation_in_random_executions() {
    compare_absorbing(number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 150));
}

/// cargo test --release -p mu-check-conform --test every_length -- --ignored --nocapture
#[test]
#[ignore = "minutes"]
fn absorbed_stores_lose_no_violation_in_ten_thousand_executions() {
    compare_absorbing(number("MU_CHECK_SEED", 1000), number("MU_CHECK_CASES", 10_000));
}

/// Checks that the axioms allow each execution without an alarm, where an absorbed store commits
/// directly before the one that absorbs it.
fn compare_absorbing(first: u64, cases: u64) {
    println!("seeds {first} to {}", first + cases - 1);
    let mut sources = SourceMap::new();
    let models =
        ProcessorOrder::ALL.map(|o| by_name(o.name()).unwrap().compile(&mut sources).unwrap());
    let (mut allowed, mut forbidden, mut extra) = (0, 0, 0);
    for seed in first..first + cases {
        let execution = Execution::random(&mut Random::new(seed), true);
        if !execution.effects.iter().any(|e| matches!(e, Effect::Absorb { .. })) {
            continue;
        }
        let is_found = |guesses: &[Guess]| guesses.iter().any(|g| execution.is_found(g, &SEPARATE));
        let coherence = is_found(&coherence_guesses(execution.size));
        for (order, model) in ProcessorOrder::ALL.into_iter().zip(&models) {
            let alarm = coherence || is_found(&cycle_guesses(execution.size, order));
            match (execution.is_allowed(model), alarm) {
                (true, false) => allowed += 1,
                (true, true) => extra += 1,
                (false, true) => forbidden += 1,
                (false, false) => panic!("seed {seed}, {order:?}: {:?}", execution.effects),
            }
        }
    }
    println!("{allowed} allowed, {forbidden} forbidden, {extra} allowed with an alarm");
    assert!(allowed > cases / 8 && forbidden > cases / 8);
}

fn compare(first: u64, cases: u64) {
    println!("seeds {first} to {}", first + cases - 1);
    let mut sources = SourceMap::new();
    let models =
        ProcessorOrder::ALL.map(|o| by_name(o.name()).unwrap().compile(&mut sources).unwrap());
    let (mut allowed, mut cycles, mut incoherent) = (0, 0, 0);
    for seed in first..first + cases {
        let mut random = Random::new(seed);
        let planted = (0..20 * (seed % 2)).find_map(|_| Execution::random_execution(&mut random));
        let execution = planted.unwrap_or_else(|| Execution::random(&mut random, false));
        let found = |guesses: &[Guess]| {
            let by_roles = [SEPARATE, JOINED]
                .map(|roles| guesses.iter().find(|g| execution.is_found(g, &roles)));
            assert_eq!(
                by_roles[0].is_some(),
                by_roles[1].is_some(),
                "seed {seed}: {:?}: {by_roles:?}",
                execution.effects
            );
            by_roles[0].cloned()
        };
        let coherence = found(&coherence_guesses(execution.size));
        for (order, model) in ProcessorOrder::ALL.into_iter().zip(&models) {
            if !execution.is_for(order) {
                continue;
            }
            let alarm = coherence.clone().or_else(|| found(&cycle_guesses(execution.size, order)));
            assert_eq!(
                execution.is_allowed(model),
                alarm.is_none(),
                "seed {seed}, {order:?}: {:?}: {alarm:?}",
                execution.effects
            );
            match alarm {
                None => allowed += 1,
                Some(Guess::Cycle(_)) => cycles += 1,
                Some(Guess::Coherence(_)) => incoherent += 1,
            }
        }
    }
    println!("{allowed} allowed, {cycles} cycles, {incoherent} incoherent");
    let enough = cycles > cases / 3 && allowed > cases / 3 && incoherent > 0;
    assert!(enough || cases < 100, "{cycles} {allowed} {incoherent}");
}

/// Parses an execution of three processors and addresses: `p W x 1` for a store, `p R x 1` for a
/// load, `C x 1` for a commit. Values are numbers of stores.
fn parse_execution(text: &str) -> Execution {
    let number = |word: &str| word.parse::<u32>().unwrap();
    let address = |word: &str| "xyz".find(word).unwrap() as u32;
    let mut out = Execution {
        size: Size { processors: 3, addresses: 3, commits: true, absorbs: false, updates: false },
        effects: Vec::new(),
        stores: vec![u32::MAX],
    };
    for part in text.split(';') {
        let words: Vec<&str> = part.split_whitespace().collect();
        out.effects.push(match words[..] {
            ["C", a, v] => Effect::Commit { address: address(a), value: number(v) },
            [p, "R", a, v] => {
                Effect::Load { processor: number(p), address: address(a), value: number(v) }
            }
            [p, "W", a, v] => {
                out.stores.push(address(a));
                assert_eq!(number(v) as usize, out.stores.len() - 1);
                Effect::Store { processor: number(p), address: address(a), value: number(v) }
            }
            _ => panic!("{part}"),
        });
    }
    out
}

/// Cycles with a composed segment, and with one from a processor to itself; each is allowed with
/// one access less.
#[test]
fn composed_segments_are_needed_for_three_processors() {
    let mut sources = SourceMap::new();
    let tso = by_name("tso").unwrap().compile(&mut sources).unwrap();
    let composed =
        "0 W x 1; 1 R x 1; 1 W y 2; 0 R y 2; 0 R z 0; 2 W z 3; 2 W x 4; C y 2; C x 4; C x 1; C z 3";
    let own = "0 W x 1; 0 W y 2; 2 W y 3; 0 R y 3; 0 R z 0; 1 W z 4; 1 W x 5; C x 5; C x 1; C y 2; C y 3; C z 4";
    for (text, shorter) in [(composed, "0 R y 2; "), (own, "0 R y 3; ")] {
        for (text, allowed) in [(text.to_string(), false), (text.replace(shorter, ""), true)] {
            let execution = parse_execution(&text);
            assert_eq!(execution.is_allowed(&tso), allowed, "{text}");
            let guesses = cycle_guesses(execution.size, ProcessorOrder::Tso);
            let found = guesses.iter().find(|g| execution.is_found(g, &SEPARATE));
            assert_eq!(found.is_none(), allowed, "{text}: {found:?}");
            let coherent = coherence_guesses(execution.size);
            assert!(!coherent.iter().any(|g| execution.is_found(g, &SEPARATE)), "{text}");
        }
    }
}
