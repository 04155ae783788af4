//! Programs of every length compared with the bounded search, on random machines.
//!
//! A machine has two processors, two addresses, three values, and buffers in front of a memory,
//! with or without faults: no forwarding, entries that are lost, doubled, reordered, or written to
//! another address, fences and updates that do not wait, copies of the memory that are refreshed
//! later. Whatever the bounded search finds, the monitors find too; whatever they prove, the
//! bounded search does not contradict. `MU_CHECK_SEED` is the first seed, `MU_CHECK_CASES` the
//! number of machines, `MU_CHECK_OPERATIONS` the bound.

use mu_axioms::models::by_name;
use mu_base::random::Random;
use mu_base::{Budget, SourceId, SourceMap};
use mu_conform::every_length::decide::Subject;
use mu_conform::every_length::monitor::{coherence_guesses, cycle_guesses};
use mu_conform::every_length::order::Order;
use mu_conform::every_length::values::Merging;
use mu_conform::interface::Interface;
use mu_conform::judge::{Form, MemoryModel};
use mu_conform::machine::Machine;
use mu_conform::search::{Bound, search};
use mu_conform::symmetry::Group;
use mu_explore::{Options, Silent};
use mu_model::hand::HandModel;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

const PROCESSORS: usize = 2;
const ADDRESSES: usize = 2;
const VALUES: u32 = 4;

/// Treatment of the entries of its own buffer by a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Forwarding {
    Newest,
    Oldest,
    Waits,
    Ignores,
}

/// A machine. Faults are true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Design {
    slots: usize,
    in_order: bool,
    forwarding: Forwarding,
    fence: Option<bool>,
    update: Option<bool>,
    loses: bool,
    doubles: bool,
    aliases: bool,
    stale: bool,
    /// Loads read a copy of the memory for each processor, refreshed by internal steps.
    copies: bool,
    /// A store replaces a waiting one to its address.
    merges: bool,
}

impl Design {
    fn random(random: &mut Random) -> Design {
        let forwarding = match random.below(8) {
            0..5 => Forwarding::Newest,
            5 => Forwarding::Oldest,
            6 => Forwarding::Waits,
            _ => Forwarding::Ignores,
        };
        let slots = random.below(3);
        Design {
            slots,
            in_order: random.chance(2, 3),
            forwarding,
            fence: random.chance(1, 4).then(|| random.chance(1, 2)),
            update: random.chance(1, 4).then(|| random.chance(1, 2)),
            loses: random.chance(1, 12),
            doubles: random.chance(1, 12),
            aliases: random.chance(1, 12),
            stale: random.chance(1, 12),
            // With buffers these machines have too many states.
            copies: slots == 0 && random.chance(1, 3),
            merges: random.chance(1, 12),
        }
    }

    fn interface(&self) -> String {
        let mut out = String::from("initial v0; load load(p, a, v);");
        out += if self.slots == 0 {
            "store commit store(p, a, v);"
        } else {
            "store store(p, a, v); commit flush(p, a, v);"
        };
        if self.fence.is_some() {
            out += "fence fence(p);";
        }
        if self.update.is_some() {
            out += "update update(p, a, v, w);";
        }
        out
    }

    /// Slots: the memory, the copies of each processor, the buffer of each processor as a number.
    fn model(self) -> HandModel {
        let mut model = HandModel::new();
        let mut slots = Vec::new();
        for i in 0..ADDRESSES + PROCESSORS * ADDRESSES + PROCESSORS {
            slots.push(model.slot(format!("s{i}"), 0, false, 0));
        }
        for p in 0..PROCESSORS {
            model.group(format!("p{p}"), &[], &slots, &slots, move |state, emit| {
                let mut all = Vec::new();
                self.steps(p, &State::of(state), &mut all);
                for (label, next) in all {
                    emit.step(label, &next.values());
                }
            });
        }
        model
    }

    fn write(&self, state: &mut State, p: usize, a: usize, v: u32) {
        let at = if self.aliases { 0 } else { a };
        state.memory[at] = v;
        if self.copies {
            state.copies[p][at] = v;
        }
    }

    fn steps(&self, p: usize, state: &State, out: &mut Vec<(String, State)>) {
        let buffer = &state.buffers[p];
        for a in 0..ADDRESSES {
            for v in 1..VALUES {
                let mut next = state.clone();
                let label = format!("store(p{p}, a{a}, v{v})");
                if self.slots == 0 {
                    self.write(&mut next, p, a, v);
                    out.push((label, next));
                    continue;
                }
                let same = buffer.iter().position(|e| e.0 == a).filter(|_| self.merges);
                match same {
                    Some(at) => next.buffers[p][at].1 = v,
                    None if buffer.len() < self.slots => next.buffers[p].push((a, v)),
                    None => continue,
                }
                out.push((label, next));
            }
            let mut own = buffer.iter().filter(|e| e.0 == a).map(|e| e.1);
            let memory = if self.copies { state.copies[p][a] } else { state.memory[a] };
            let value = match self.forwarding {
                Forwarding::Newest => Some(own.next_back().unwrap_or(memory)),
                Forwarding::Oldest => Some(own.next().unwrap_or(memory)),
                Forwarding::Waits => own.next().is_none().then_some(memory),
                Forwarding::Ignores => Some(memory),
            };
            for v in value.into_iter().chain(self.stale.then_some(0)) {
                out.push((format!("load(p{p}, a{a}, v{v})"), state.clone()));
            }
            if self.copies && state.copies[p][a] != state.memory[a] {
                let mut next = state.clone();
                next.copies[p][a] = state.memory[a];
                out.push(("tau".into(), next));
            }
            if self.update.is_some_and(|faulty| faulty || buffer.is_empty()) {
                for w in 1..VALUES {
                    let mut next = state.clone();
                    next.memory[a] = w;
                    if self.copies {
                        next.copies[p][a] = w;
                    }
                    let v = state.memory[a];
                    out.push((format!("update(p{p}, a{a}, v{v}, v{w})"), next));
                }
            }
        }
        if self.fence.is_some_and(|faulty| faulty || buffer.is_empty()) {
            out.push((format!("fence(p{p})"), state.clone()));
        }
        for i in 0..buffer.len() {
            let (a, v) = buffer[i];
            // Without order, the order of stores to one address stays.
            let oldest = !buffer[..i].iter().any(|e| e.0 == a);
            if i > 0 && (self.in_order || !oldest) {
                continue;
            }
            let mut next = state.clone();
            next.buffers[p].remove(i);
            if self.loses {
                out.push(("tau".into(), next.clone()));
            }
            self.write(&mut next, p, a, v);
            out.push((format!("flush(p{p}, a{a}, v{v})"), next.clone()));
            if self.doubles {
                next.buffers[p].insert(i, (a, v));
                out.push((format!("flush(p{p}, a{a}, v{v})"), next));
            }
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct State {
    memory: [u32; ADDRESSES],
    copies: [[u32; ADDRESSES]; PROCESSORS],
    buffers: [Vec<(usize, u32)>; PROCESSORS],
}

impl State {
    fn of(values: &[u32]) -> State {
        let mut state = State {
            memory: [values[0], values[1]],
            copies: [[values[2], values[3]], [values[4], values[5]]],
            buffers: [Vec::new(), Vec::new()],
        };
        for p in 0..PROCESSORS {
            let mut code = values[6 + p];
            while code > 0 {
                let entry = code % 16 - 1;
                state.buffers[p].push(((entry / VALUES) as usize, entry % VALUES));
                code /= 16;
            }
        }
        state
    }
    fn values(&self) -> Vec<u32> {
        let mut out: Vec<u32> =
            self.memory.iter().chain(self.copies.iter().flatten()).copied().collect();
        out.extend(self.buffers.iter().map(|b| {
            b.iter().rev().fold(0, |code, (a, v)| code * 16 + 1 + *a as u32 * VALUES + v)
        }));
        out
    }
}

/// The outcome of one machine under one order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Proved,
    Found,
    /// A violation in the order of commits that no history confirms.
    Unconfirmed,
    /// Nothing found, and a check fails.
    Open,
}

fn outcomes(design: Design, operations: usize, seed: u64) -> [Outcome; 3] {
    let said = format!("seed {seed}: {design:?}");
    let model = design.model();
    let interface = Interface::parse(SourceId(0), &design.interface()).unwrap();
    let options = Options { threads: 1, ..Options::default() };
    let budget = Budget::default();
    let subject = Subject {
        machine: &model,
        interface: &interface,
        options: &options,
        budget: &budget,
        progress: &Silent,
    };
    let survey = subject.survey().expect(&said);
    let mut sources = SourceMap::new();
    let models: Vec<MemoryModel> = Order::ALL
        .iter()
        .map(|o| {
            let known = by_name(o.name()).unwrap();
            let form =
                Form::Cat { model: known.compile(&mut sources).unwrap(), dialect: known.dialect };
            MemoryModel { name: o.name().into(), form }
        })
        .collect();
    let machine = Machine::explore(&model, &interface, &options, &budget, &Silent).expect(&said);
    let group = Group::find(&machine.alphabet, &machine.lts, 1);
    let selected: Vec<&MemoryModel> = models.iter().collect();
    let bound = Bound::of(operations, 1);
    let answer = search(&interface, &machine, &group, &selected, bound, &budget).expect(&said);

    let coherence = subject.search_coherence(&survey).expect(&said);
    let checks = coherence.is_clean().then(|| subject.checks(&survey, false).expect(&said));
    let proves = checks.is_some_and(|c| {
        c.continuation.stuck.is_none() && matches!(c.merging, Merging::Verified(_))
    });
    let mut out = [Outcome::Proved; 3];
    for (i, order) in Order::ALL.into_iter().enumerate() {
        let bounded = answer.found[i].is_some();
        let cycles = coherence
            .is_clean()
            .then(|| subject.search_cycles(&survey, order).expect(&said))
            .filter(|s| !s.is_clean());
        let alarm = !coherence.is_clean() || cycles.is_some();
        if bounded && !alarm && proves {
            panic!("{said}: {} is proved, but {:?}", order.name(), answer.found[i]);
        }
        if !alarm {
            out[i] = if proves { Outcome::Proved } else { Outcome::Open };
            assert!(!bounded || design.loses || design.merges, "{said}: {}", order.name());
            continue;
        }
        let mut lists = vec![cycle_guesses(survey.size, order)];
        if !coherence.is_clean() {
            lists.insert(0, coherence_guesses(survey.size));
        }
        let confirmed = subject.confirm(&survey, &lists, &models[i]).expect(&said);
        out[i] = if confirmed.is_some() { Outcome::Found } else { Outcome::Unconfirmed };
        assert!(out[i] == Outcome::Found || !bounded, "{said}: {} is unconfirmed", order.name());
    }
    out
}

#[test]
fn programs_of_every_length_agree_with_the_bounded_search_on_random_machines() {
    compare(number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 3));
}

/// cargo test --release -p mu-check-conform --test random_machines -- --ignored --nocapture
#[test]
#[ignore = "an hour"]
fn programs_of_every_length_agree_with_the_bounded_search_on_three_hundred_machines() {
    compare(number("MU_CHECK_SEED", 1000), number("MU_CHECK_CASES", 300));
}

fn compare(first: u64, cases: u64) {
    let operations = number("MU_CHECK_OPERATIONS", 2) as usize;
    println!("seeds {first} to {}", first + cases - 1);
    let mut counts = [0; 4];
    for seed in first..first + cases {
        let design = Design::random(&mut Random::new(seed));
        for outcome in outcomes(design, operations, seed) {
            counts[outcome as usize] += 1;
        }
    }
    let [proved, found, unconfirmed, open] = counts;
    println!("{proved} proved, {found} found, {unconfirmed} unconfirmed, {open} open");
    assert!(proved > 0 && found > 0 || cases < 3);
}

/// Machines that implement a model, and the same with each fault alone.
#[test]
fn faults_of_buffers_are_found() {
    let right = Design {
        slots: 2,
        in_order: true,
        forwarding: Forwarding::Newest,
        fence: None,
        update: None,
        loses: false,
        doubles: false,
        aliases: false,
        stale: false,
        copies: false,
        merges: false,
    };
    use Outcome::{Found, Proved, Unconfirmed};
    let of = |design: Design| outcomes(design, 1, 0);
    assert_eq!(of(Design { slots: 0, ..right }), [Proved, Proved, Proved]);
    assert_eq!(of(right), [Found, Proved, Proved]);
    assert_eq!(of(Design { in_order: false, ..right }), [Found, Found, Proved]);
    assert_eq!(of(Design { loses: true, ..right }), [Found; 3]);
    assert_eq!(of(Design { aliases: true, ..right }), [Found; 3]);
    // A store that replaces a waiting one keeps it from memory.
    let merges = of(Design { merges: true, slots: 1, ..right });
    assert_eq!(merges, [Found, Unconfirmed, Unconfirmed]);
}

/// A store with one label inside a load of its processor: the program order is not that of the
/// ends, so the machine is rejected, and `sc` is not proved.
#[test]
fn stores_inside_other_operations_are_rejected() {
    let machine = |inside: bool| {
        let mut model = HandModel::new();
        let names = ["m0", "m1", "t0", "t1"];
        let slots: Vec<_> = names.map(|n| model.slot(n, 0, false, 0)).to_vec();
        for p in 0..PROCESSORS {
            model.group(format!("p{p}"), &[], &slots, &slots, move |state, emit| {
                let busy = state[2 + p];
                for a in 0..ADDRESSES {
                    let with = |place: usize, value: u32| {
                        let mut next = state.to_vec();
                        next[place] = value;
                        next
                    };
                    if busy == 0 {
                        let begun = with(2 + p, a as u32 + 1);
                        emit.step(format!("begin(p{p}, a{a})"), &begun);
                    } else if busy == a as u32 + 1 {
                        let ended = with(2 + p, 0);
                        emit.step(format!("end(p{p}, a{a}, v{})", state[a]), &ended);
                    }
                    if busy == 0 || inside {
                        for v in 1..VALUES {
                            emit.step(format!("store(p{p}, a{a}, v{v})"), &with(a, v));
                        }
                    }
                }
            });
        }
        model
    };
    let text = "initial v0; load begin(p, a) -> end(p, a, v); store commit store(p, a, v);";
    let interface = Interface::parse(SourceId(0), text).unwrap();
    let (options, budget) = (Options { threads: 1, ..Options::default() }, Budget::default());
    for inside in [false, true] {
        let model = machine(inside);
        let subject = Subject {
            machine: &model,
            interface: &interface,
            options: &options,
            budget: &budget,
            progress: &Silent,
        };
        let survey = subject.survey().unwrap();
        let found = subject.search_coherence(&survey);
        match inside {
            false => assert!(found.unwrap().is_clean()),
            true => assert!(found.unwrap_err().message.contains("overlap")),
        }
    }
}
