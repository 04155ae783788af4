//! Programs of every length compared with the bounded search, on random machines.
//!
//! A machine has two processors, two addresses, three or four values, and buffers in front of a
//! memory, with or without faults: no forwarding, entries that are lost, doubled, reordered, or
//! written to another address, fences and updates that do not wait, copies of the memory that are
//! refreshed later, memories of each address with a place before them, loads with two labels that
//! read at the first or at the second. Whatever the bounded search finds, the monitors find too;
//! whatever they prove, the bounded search does not contradict. `MU_CHECK_SEED` is the first seed,
//! `MU_CHECK_CASES` the number of machines, `MU_CHECK_OPERATIONS` the bound instead of one that
//! depends on the seed.

mod machines;

use machines::table::Table;
use machines::{ADDRESSES, Barrier, Design, PROCESSORS, STORED};
use mu_axioms::models::by_name;
use mu_base::random::Random;
use mu_base::{Budget, SourceId, SourceMap, Stop};
use mu_conform::cores::Cores;
use mu_conform::every_length::decide::Subject;
use mu_conform::every_length::monitor::{coherence_guesses, cycle_guesses};
use mu_conform::every_length::order::ProcessorOrder;
use mu_conform::every_length::sampled::{self, sample};
use mu_conform::every_length::values::Merging;
use mu_conform::interface::Interface;
use mu_conform::judge::{MemoryModel, ModelDefinition};
use mu_conform::machine::ReducedMachine;
use mu_conform::search::{Bound, search_with};
use mu_conform::symmetry::SymmetryGroup;
use mu_explore::{Options, Silent};
use mu_model::hand::HandModel;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

/// The outcome of one machine under one order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Proved,
    Found,
    /// Found by the monitors, and confirmed by the search of histories only; or not confirmed by a
    /// run, to save time.
    FoundByHistories,
    /// A violation in the order of commits, beyond the bound of the search of histories, that no
    /// run confirms, or for which none was searched.
    Unconfirmed,
    /// Nothing found, and a check fails.
    Open,
}

/// Compiles the models of the orders.
fn models() -> Vec<MemoryModel> {
    let mut sources = SourceMap::new();
    let compiled = |o: &ProcessorOrder| {
        let known = by_name(o.name()).unwrap();
        let form = ModelDefinition::Cat {
            model: known.compile(&mut sources).unwrap(),
            dialect: known.dialect,
        };
        MemoryModel { name: o.name().into(), form }
    };
    ProcessorOrder::ALL.iter().map(compiled).collect()
}

/// Effort for one machine.
#[derive(Clone, Copy)]
struct Effort {
    /// Largest bound of the search of histories.
    operations: usize,
    /// True if a violation is confirmed under each order, not under one chosen by the seed.
    each: bool,
}

/// Memory models with verdicts that all machines share.
struct Judges {
    models: Vec<MemoryModel>,
    cores: [Cores; 1],
}

/// Returns for each order true if a history of at most this number of operations violates it.
fn violations_up_to(
    (model, interface): (&Table, &Interface),
    judges: &mut Judges,
    operations: usize,
    said: &str,
) -> [bool; 3] {
    let (options, budget) = (Options { threads: 1, ..Options::default() }, Budget::default());
    let machine =
        ReducedMachine::explore(model, interface, &options, &budget, &Silent).expect(said);
    let group = SymmetryGroup::find(&machine.alphabet, &machine.lts, 1);
    let input = (interface, &machine, &group);
    let models: Vec<&MemoryModel> = judges.models.iter().collect();
    let bound = Bound::of(operations, 1);
    let answer =
        search_with(input, &models, (&mut judges.cores, &mut |_, _| Ok(())), bound, &budget)
            .expect(said);
    assert_eq!(answer.stop, Stop::Complete, "{said}");
    [0, 1, 2].map(|m| answer.found[m].is_some())
}

fn outcomes(design: Design, judges: &mut Judges, effort: Effort, seed: u64) -> [Outcome; 3] {
    let said = format!("seed {seed}, K={}: {design:?}", effort.operations);
    let model = Table::of(&design.model());
    let interface = Interface::parse(SourceId::FIRST, &design.interface()).unwrap();
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
    let bounded = violations_up_to((&model, &interface), judges, effort.operations, &said);
    let coherence = subject.search_coherence(&survey).expect(&said);
    let checks = coherence.is_clean().then(|| subject.checks(&survey, false).expect(&said));
    let proves = checks.is_some_and(|c| {
        c.continuation.stuck.is_none() && matches!(c.merging, Merging::Verified(_))
    });
    let mut out = [Outcome::Proved; 3];
    let mut clean = false;
    for (i, order) in ProcessorOrder::ALL.into_iter().enumerate() {
        // A weaker order allows all that a stronger one allows.
        clean = clean
            || coherence.is_clean()
                && subject.search_cycles(&survey, order).expect(&said).is_clean();
        if clean {
            assert!(!bounded[i] || !proves, "{said}: {} is proved", order.name());
            assert!(!bounded[i] || design.hides_stores(), "{said}: {}", order.name());
            out[i] = if proves { Outcome::Proved } else { Outcome::Open };
            continue;
        }
        let chosen = effort.each || seed % 3 == i as u64;
        // Machines that hide stores have many runs in which loads never show the violation.
        if !chosen || !effort.each && design.hides_stores() && !bounded[i] {
            out[i] = if bounded[i] { Outcome::FoundByHistories } else { Outcome::Unconfirmed };
            continue;
        }
        let mut lists = vec![cycle_guesses(survey.size, order)];
        if !coherence.is_clean() {
            lists.insert(0, coherence_guesses(survey.size));
        }
        // `conform` searches histories if no run is confirmed.
        out[i] = match subject.confirm(&survey, &lists, &judges.models[i]).expect(&said) {
            Some(_) => Outcome::Found,
            None if bounded[i] => Outcome::FoundByHistories,
            None => Outcome::Unconfirmed,
        };
    }
    out
}

#[test]
fn programs_of_every_length_agree_with_the_bounded_search_on_random_machines() {
    compare(number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 10));
}

/// cargo test --release -p mu-check-conform --test random_machines -- --ignored --nocapture
#[test]
#[ignore = "an hour"]
fn programs_of_every_length_agree_with_the_bounded_search_on_ten_thousand_machines() {
    compare(number("MU_CHECK_SEED", 1000), number("MU_CHECK_CASES", 10_000));
}

/// Returns the bound for a seed: larger ones are rarer, because they take longer.
fn bound_of(seed: u64) -> usize {
    match seed % 512 {
        511 => 4,
        n if n % 32 == 15 => 3,
        n if n % 4 == 3 => 1,
        _ => 2,
    }
}

fn compare(first: u64, cases: u64) {
    let bound = std::env::var("MU_CHECK_OPERATIONS").ok().map(|k| k.parse().expect("a number"));
    println!("seeds {first} to {}", first + cases - 1);
    let mut judges = Judges { models: models(), cores: [Cores::default()] };
    let mut counts = [0; 5];
    for seed in first..first + cases {
        let design = Design::random(&mut Random::new(seed));
        // Many executions: fewer operations.
        let large =
            design.slots == [2, 2] || design.update.is_present() || design.fence.is_present();
        let operations = bound.unwrap_or_else(|| bound_of(seed).min(if large { 2 } else { 4 }));
        let effort = Effort { operations, each: seed % 8 == 0 };
        for outcome in outcomes(design, &mut judges, effort, seed) {
            counts[outcome as usize] += 1;
        }
        if (seed + 1 - first).is_multiple_of(100) {
            println!("{} machines: {counts:?}", seed + 1 - first);
        }
    }
    let [proved, found, histories, unconfirmed, open] = counts;
    println!(
        "{proved} proved, {found} found, {histories} found by histories, {unconfirmed} unconfirmed, {open} open"
    );
    assert!(proved > 0 && found > 0 || cases < 3);
}

/// Machines in which stores replace waiting ones, and their labels show it, with other faults.
#[test]
fn coalescing_buffers_agree_with_the_bounded_search() {
    let first = number("MU_CHECK_SEED", 0);
    let cases = number("MU_CHECK_CASES", 8);
    println!("seeds {first} to {}", first + cases - 1);
    let mut judges = Judges { models: models(), cores: [Cores::default()] };
    let mut counts = [0; 5];
    for seed in first..first + cases {
        let design = Design::random(&mut Random::new(seed));
        let slots = if seed % 4 == 3 { [2, 0] } else { [1, 1 - seed as usize % 2] };
        let design = Design { slots, merges: true, absorbs: true, loses: false, ..design };
        let large = design.update.is_present() || design.fence.is_present();
        let operations = bound_of(seed).min(if large { 2 } else { 3 });
        let effort = Effort { operations, each: false };
        for outcome in outcomes(design, &mut judges, effort, seed) {
            counts[outcome as usize] += 1;
        }
    }
    println!("{counts:?}");
    assert!(counts[Outcome::Proved as usize] > 0 || cases < 8);
}

/// Machines that implement a model, and the same with each fault alone.
#[test]
fn faults_of_buffers_are_found() {
    let right = Design::CORRECT_TSO;
    use Outcome::{Found, Proved, Unconfirmed};
    let mut judges = Judges { models: models(), cores: [Cores::default()] };
    let effort = Effort { operations: 1, each: true };
    let mut of = |design: Design| outcomes(design, &mut judges, effort, 0);
    assert_eq!(of(Design { slots: [0, 0], ..right }), [Proved, Proved, Proved]);
    assert_eq!(of(right), [Found, Proved, Proved]);
    assert_eq!(of(Design { in_order: false, ..right }), [Found, Found, Proved]);
    assert_eq!(of(Design { loses: true, ..right }), [Found; 3]);
    assert_eq!(of(Design { aliases: true, ..right }), [Found; 3]);
    // A store that replaces a waiting one keeps it from memory.
    let merges = of(Design { merges: true, slots: [1, 1], ..right });
    assert_eq!(merges, [Found, Unconfirmed, Unconfirmed]);
    // If the interface shows that it is absorbed, it commits with the other one.
    let absorbs = Design { merges: true, absorbs: true, ..right };
    assert_eq!(of(Design { slots: [1, 1], ..absorbs }), [Found, Proved, Proved]);
    // The replaced store may be older than one to another address.
    assert_eq!(of(Design { slots: [2, 0], ..absorbs }), [Found, Found, Proved]);
    assert_eq!(of(Design { slots: [1, 1], fence: Barrier::Faulty, ..absorbs })[0], Found);
}

/// Exchanges of processors and addresses save states of products, and change no result of a search,
/// also if they are no symmetries of the machine.
#[test]
fn symmetries_change_no_search() {
    let first = number("MU_CHECK_SEED", 0);
    let cases = number("MU_CHECK_CASES", 12);
    println!("seeds {first} to {}", first + cases - 1);
    // By order of the group that a clean search used; and searches with a violation.
    let (mut clean, mut violated) = (std::collections::BTreeMap::new(), 0);
    for seed in first..first + cases {
        let mut random = Random::new(seed);
        let mut design = Design::random(&mut random);
        if seed % 2 == 0 && design.slots[0] != design.slots[1] {
            design.slots = [1, 1];
        }
        let said = format!("seed {seed}: {design:?}");
        let model = design.table_with_candidates();
        let interface = Interface::parse(SourceId::FIRST, &design.interface()).unwrap();
        let budget = Budget::default();
        let searches = [true, false].map(|symmetry| {
            let options = Options { threads: 1, symmetry, ..Options::default() };
            let subject = Subject {
                machine: &model,
                interface: &interface,
                options: &options,
                budget: &budget,
                progress: &Silent,
            };
            let survey = subject.survey().expect(&said);
            let mut all = vec![subject.search_coherence(&survey).expect(&said)];
            for order in ProcessorOrder::ALL {
                all.push(subject.search_cycles(&survey, order).expect(&said));
            }
            all
        });
        for (with, without) in searches[0].iter().zip(&searches[1]) {
            assert_eq!(with.violated, without.violated, "{said}");
            let (a, b) = (&with.outcome, &without.outcome);
            assert_eq!(b.symmetries, 1, "{said}");
            if with.violated.is_some() {
                violated += 1;
                continue;
            }
            assert!(with.is_clean() && without.is_clean(), "{said}");
            assert_eq!((a.states, a.transitions), (b.states, b.transitions), "{said}");
            assert_eq!(a.symmetries == 1, a.stored == b.stored, "{said}");
            let order: &mut [u64; 3] = clean.entry(a.symmetries).or_default();
            *order = [order[0] + 1, order[1] + a.stored, order[2] + a.states];
        }
    }
    println!(
        "by order: [searches, stored, states]: {clean:?}; {violated} searches with a violation"
    );
    let used = clean.contains_key(&2) && clean.contains_key(&4);
    assert!(used && violated > 0 || cases < 12, "{clean:?}");
}

/// Random runs of a machine are allowed by the models that it implements, and the axioms find
/// faults without the monitors: buffers under `sc`, stores that are lost or go to another address.
#[test]
fn random_runs_show_faults() {
    let right = Design::CORRECT_TSO;
    let models = models();
    let runs = |design: Design, order: ProcessorOrder| {
        let model = Table::of(&design.model());
        let interface = Interface::parse(SourceId::FIRST, &design.interface()).unwrap();
        let (options, budget) = (Options { threads: 1, ..Options::default() }, Budget::default());
        let machine = &model;
        let subject = Subject {
            machine,
            interface: &interface,
            options: &options,
            budget: &budget,
            progress: &Silent,
        };
        let names = subject.survey().unwrap().alphabet.names;
        let judge = models.iter().find(|m| m.name == order.name()).unwrap();
        let effort = sampled::Effort { runs: 100, operations: 8 };
        sample(machine, &interface, &names, (judge, effort), &budget)
    };
    let allowed = runs(right, ProcessorOrder::Tso).unwrap();
    assert!(allowed.runs > 90 && allowed.longest == 8, "{allowed:?}");
    let store_buffering = runs(right, ProcessorOrder::Sc).unwrap_err();
    assert!(store_buffering.message.contains("forbids a random run"), "{store_buffering:?}");
    let is_found = |design, order| runs(design, order).is_err();
    let all = [
        is_found(Design { slots: [0, 0], ..right }, ProcessorOrder::Sc),
        is_found(Design { in_order: false, ..right }, ProcessorOrder::Pso),
        is_found(Design { loses: true, ..right }, ProcessorOrder::Pso),
        is_found(Design { aliases: true, ..right }, ProcessorOrder::Pso),
    ];
    assert_eq!(all, [false, false, true, true]);
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
                        for v in 1..=STORED {
                            emit.step(format!("store(p{p}, a{a}, v{v})"), &with(a, v));
                        }
                    }
                }
            });
        }
        model
    };
    let text = "initial v0; load begin(p, a) -> end(p, a, v); store commit store(p, a, v);";
    let interface = Interface::parse(SourceId::FIRST, text).unwrap();
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
