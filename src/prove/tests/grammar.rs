//! Tests on systems derived from the grammar: the prover, the verifier and the machine of 1 to 4
//! processes agree on each one, under both memory models. The generator
//! ([`mu_testkit::cubicle_grammar`]) does not know the premises of the prover.
//!
//! A failure prints the seed and the system. `MU_CHECK_SEED=n` replays one; `MU_CHECK_RUNS=n` sets
//! the number for the ignored test, from `MU_CHECK_FIRST` on.

use mu_base::SourceId;
use mu_base::limits::Budget;
use mu_base::random::Random;
use mu_cubicle::system::{Claim, SymbolId, System};
use mu_cubicle::value::Val;
use mu_prove::premises::premises;
use mu_prove::replay::{ReplayRun, machine};
use mu_prove::rules::Memory;
use mu_prove::verify::verify_within;
use mu_prove::{ProofVerdict, ProverOptions, UnknownReason, prove};
use mu_testkit::cubicle_grammar::{Generated, PRODUCTIONS, Shape, generate};
use mu_testkit::cubicle_interpreter::{Naive, State};
use std::collections::{BTreeSet, VecDeque};

/// The work limit of a proof.
const WORK: u64 = 10_000;
/// Number of systems that the suite compares.
const SYSTEMS: u64 = 70;
/// Limit on the states of a compared instance.
const MAX_STATES: usize = 1500;

#[derive(Debug, Default)]
struct Counts {
    rejected: usize,
    safe: usize,
    bad: usize,
    unknown: usize,
    refused: usize,
    no_initial_state: usize,
    /// The verdict is unknown, and the machine finds a run.
    missed: Vec<u64>,
    unverified: Vec<String>,
    /// Number of completely searched instances of systems with the verdict safe.
    complete: usize,
    /// Number of certificates of other systems that the verifier rejects, as required.
    rejected_certificates: usize,
    /// Number of runs that the naive interpreter can execute.
    replayed: usize,
}

fn options(memory: Memory) -> ProverOptions {
    ProverOptions { memory, instances: 3, work: Some(WORK), ..ProverOptions::default() }
}

/// Returns true if the verifier accepts the certificate within a work limit.
fn is_verified(system: &System, certificate: &str) -> bool {
    verify_within(system, certificate, &Budget::default(), 1, 10 * WORK).is_ok()
}

/// Returns true if the machine of `n` processes reaches an unsafe state, and true if all its states
/// are searched.
fn violation(system: &System, memory: Memory, n: u32) -> Option<(bool, bool)> {
    let machine = machine(system, memory, n, None).ok()?;
    let reach = machine.reach(MAX_STATES, true, &Budget::default()).ok()?;
    Some((reach.violation.is_some(), reach.complete))
}

fn sizes(system: &System) -> std::ops::RangeInclusive<u32> {
    system.fixed.max(1)..=system.processes.unwrap_or(4).min(4)
}

/// Replays a run on the naive interpreter, which shares only the typed system with the machine;
/// `None` if a cell stays open.
fn is_run(system: &System, memory: Memory, run: &ReplayRun) -> Option<bool> {
    let claim: &Claim = &system.unsafes[run.claim.0];
    let machine = run.machine(system, memory).ok()?;
    // Codes of numbers and buffers belong to one machine.
    let acts: Vec<_> = run.replayed.steps.iter().map(|s| s.0.clone()).collect();
    let replayed = machine.replay(&acts, claim, &run.claim.1).ok()?;
    let settled = machine.choose_open_values(&replayed, claim, &run.claim.1)?;
    let naive = Naive {
        system,
        n: run.processes,
        tso: memory == Memory::Tso,
        most: usize::MAX,
        candidates: Vec::new(),
    };
    let state = |state: &[u32]| {
        let mut cells = std::collections::BTreeMap::new();
        for (i, s) in system.symbols.iter().enumerate() {
            let mut all = vec![Vec::new()];
            for _ in 0..s.arity {
                all = all
                    .iter()
                    .flat_map(|t: &Vec<u32>| {
                        (0..run.processes).map(|p| [&t[..], &[p]].concat()).collect::<Vec<_>>()
                    })
                    .collect();
            }
            for args in all {
                let value = machine.value(state, SymbolId::new(i), &args);
                if value == Val::Any {
                    return None;
                }
                cells.insert((SymbolId::new(i), args), value);
            }
        }
        let buffer = |p: u32| -> VecDeque<_> {
            let entries = machine.buffer(state, p).into_iter();
            entries.map(|e| e.into_iter().map(|(s, args, v)| ((s, args), v)).collect()).collect()
        };
        Some(State { cells, buffers: (0..run.processes).map(buffer).collect() })
    };
    // Updates with any value need the values of numbers and abstract types: only runs without them
    // are replayed.
    let mut at = state(&settled.start)?;
    if !naive.is_initial(&at) {
        return Some(false);
    }
    for (act, next) in &settled.steps {
        let next = state(next)?;
        let name = machine.act_text(act);
        let steps = naive.steps(&at);
        if !steps.iter().any(|(label, to)| *label == name && *to == next) {
            return if system.symbols.iter().all(|s| !s.sort.is_numeric() && s.sort.index() < 4) {
                Some(false)
            } else {
                None
            };
        }
        at = next;
    }
    Some(naive.claim(&at, claim))
}

/// Removes the n-th transition of a system.
fn remove_transition(system: &System, n: usize) -> System {
    let mut system = system.clone();
    system.transitions.remove(n);
    system
}

fn certificate(system: &System, memory: Memory) -> Option<String> {
    match prove(system, options(memory), &Budget::default()).verdict {
        ProofVerdict::Safe { certificate, .. } => Some(certificate),
        _ => None,
    }
}

/// Compares one system under one memory model.
fn compare(seed: u64, text: &str, system: &System, memory: Memory, counts: &mut Counts) {
    let outcome = prove(system, options(memory), &Budget::default());
    let allowed = premises(system, memory).is_ok();
    counts.refused += usize::from(!allowed);
    let found: Vec<_> = sizes(system).map(|n| (n, violation(system, memory, n))).collect();
    let bad = found.iter().find(|f| f.1.is_some_and(|v| v.0)).map(|f| f.0);
    match outcome.verdict {
        ProofVerdict::Safe { certificate, .. } => {
            counts.safe += 1;
            assert!(allowed, "seed {seed}, {memory:?}: safe without its premises\n{text}");
            assert_eq!(bad, None, "seed {seed}, {memory:?}: safe, the machine says unsafe\n{text}");
            let empty = |n| {
                machine(system, memory, n, None)
                    .and_then(|m| m.initial_states())
                    .is_ok_and(|s| s.is_empty())
            };
            assert!(
                !sizes(system).all(empty),
                "seed {seed}, {memory:?}: safe, and no machine has an initial state\n{text}"
            );
            assert!(
                is_verified(system, &certificate),
                "seed {seed}, {memory:?}: the verifier rejects a proof\n{text}"
            );
            counts.complete += found.iter().filter(|f| f.1.is_some_and(|v| v.1)).count();
        }
        ProofVerdict::Unsafe(run) => {
            counts.bad += 1;
            if let Some(is_run) = is_run(system, memory, &run) {
                assert!(
                    is_run,
                    "seed {seed}, {memory:?}: the naive interpreter has no such run: {:?}\n{text}",
                    run.steps
                );
                counts.replayed += 1;
            }
        }
        ProofVerdict::Searched(..) => {
            assert!(allowed, "seed {seed}, {memory:?}: safe without its premises\n{text}");
            assert_eq!(bad, None, "seed {seed}, {memory:?}: safe, the machine says unsafe\n{text}");
        }
        ProofVerdict::Unknown(UnknownReason::NoInitialState) => {
            counts.no_initial_state += 1;
            for n in sizes(system) {
                let none = machine(system, memory, n, None)
                    .and_then(|m| m.initial_states())
                    .is_ok_and(|s| s.is_empty());
                assert!(
                    none,
                    "seed {seed}, {memory:?}: there is an initial state with {n} processes\n{text}"
                );
            }
        }
        ProofVerdict::Unknown(why) => {
            counts.unknown += 1;
            if let UnknownReason::Unverified(refused) = &why
                && !matches!(refused, mu_prove::verify::Rejection::Stopped(_))
            {
                counts.unverified.push(format!("seed {seed}, {memory:?}: {refused:?}"));
            }
            if bad.is_some() {
                counts.missed.push(seed);
            }
        }
    }
    // Certificates of other systems, and for another memory model.
    let mut others: Vec<String> = Vec::new();
    if bad.is_some() || !allowed {
        others.extend(
            (0..system.transitions.len())
                .filter_map(|n| certificate(&remove_transition(system, n), memory)),
        );
        if memory == Memory::Tso && system.has_memory() {
            others.extend(
                certificate(system, Memory::Sc).map(|c| c.replace("memory sc", "memory tso")),
            );
        }
    }
    for other in others {
        counts.rejected_certificates += 1;
        assert!(
            !is_verified(system, &other),
            "seed {seed}, {memory:?}: the verifier accepts this\n{other}\n{text}"
        );
    }
}

fn generate_seed(seed: u64) -> Generated {
    let mut random = Random::new(seed);
    let private = random.chance(1, 2);
    generate(&mut random, Shape { private, transitions: 4 })
}

fn check_seed(seed: u64, counts: &mut Counts) {
    let made = generate_seed(seed);
    let text = &made.text;
    let tree = mu_cubicle::parse(SourceId::FIRST, text)
        .unwrap_or_else(|d| panic!("seed {seed}: {d}\n{text}"));
    match mu_cubicle::check(&tree) {
        Err(_) => counts.rejected += 1,
        Ok(system) => [Memory::Sc, Memory::Tso]
            .into_iter()
            .for_each(|memory| compare(seed, text, &system, memory, counts)),
    }
}

#[test]
fn every_production_is_generated() {
    let used: BTreeSet<&'static str> =
        (0..SYSTEMS).flat_map(|seed| generate_seed(seed).used).collect();
    let unused: Vec<_> = PRODUCTIONS.iter().filter(|p| !used.contains(*p)).collect();
    assert!(unused.is_empty(), "never generated: {unused:?}");
}

#[test]
fn prover_verifier_and_machine_give_systems_of_the_whole_grammar_one_meaning() {
    let mut counts = Counts::default();
    (0..SYSTEMS).for_each(|seed| check_seed(seed, &mut counts));
    assert!(counts.unverified.is_empty(), "{:?}", counts.unverified);
    let enough = [
        counts.safe,
        counts.bad,
        counts.refused,
        counts.complete,
        counts.rejected_certificates,
        counts.replayed,
    ];
    assert!(
        counts.rejected < 10 && enough.iter().all(|n| *n >= 8) && counts.no_initial_state > 0,
        "{counts:?}"
    );
}

#[test]
#[ignore = "minutes: MU_CHECK_RUNS systems, 1,000 by default, each under both memory models"]
fn thousands_of_systems_of_the_grammar_have_one_meaning() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let first = number("MU_CHECK_FIRST").unwrap_or(0);
    let seeds = match number("MU_CHECK_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + number("MU_CHECK_RUNS").unwrap_or(1000),
    };
    let mut counts = Counts::default();
    let mut failed: Vec<u64> = Vec::new();
    for seed in seeds.clone() {
        // One failure does not end a long run.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            check_seed(seed, &mut counts)
        }));
        failed.extend(done.is_err().then_some(seed));
    }
    println!("seeds {seeds:?}: {counts:?}");
    assert!(failed.is_empty(), "seeds {failed:?}");
}
