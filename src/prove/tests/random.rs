//! Tests of proofs of random systems against the explicit machine for small numbers of processes,
//! under both memory models. A failure prints the seed and the system; `MU_CHECK_SEED=n` replays
//! one and prints it. `MU_CHECK_RUNS=n` sets the number for the ignored test, from `MU_CHECK_FIRST`
//! on, under `MU_CHECK_MEMORY` (`sc`, `tso`; default both). `MU_CHECK_PEER=PROGRAM` also runs
//! another prover, as `PROGRAM -nocolor -quiet [-model SC] FILE`, which prints `SAFE` or `UNSAFE`.

use mu_base::limits::Budget;
use mu_base::random::Random;
use mu_cubicle::System;
use mu_cubicle::ast::File;
use mu_prove::rules::Memory;
use mu_prove::verify::Rejection;
use mu_prove::{ProofVerdict, ProverOptions, UnknownReason, prove};
use mu_testkit::cubicle_systems::{Shape, file};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The work limit of a proof: less than a second, and the same on every machine.
const WORK: u64 = 30_000;

fn options(memory: Memory) -> ProverOptions {
    ProverOptions { memory, instances: 3, work: Some(WORK), ..ProverOptions::default() }
}

#[derive(Debug, Default)]
struct Counts {
    safe: usize,
    bad: usize,
    unknown: Vec<u64>,
    /// Among these, the machine with a small number of processes finds a run.
    missed: usize,
    /// Number of completely searched instances of systems with the verdict safe.
    complete: usize,
    /// Proofs that the verifier rejected: sound, but the prover or the verifier is too weak.
    unverified: Vec<String>,
    peer_same: usize,
    peer_open: usize,
    peer_other: Vec<String>,
}

/// Returns whether the machine of `n` processes reaches an unsafe state, and whether all states
/// were visited.
fn machine(system: &System, memory: Memory, n: u32, most: usize) -> Option<(bool, bool)> {
    let machine = mu_prove::replay::machine(system, memory, n, None).ok()?;
    let reach = machine.reach(most, true, &Budget::default()).ok()?;
    Some((reach.violation.is_some(), reach.states.len() < most))
}

/// Compares one system under one memory model.
fn compare(seed: u64, made: &File, memory: Memory, sizes: u32, most: usize, counts: &mut Counts) {
    let Ok(system) = mu_cubicle::check(made) else { return };
    let outcome = prove(&system, options(memory), &Budget::default());
    let sizes = system.fixed.max(1)..=system.processes.unwrap_or(sizes).min(sizes);
    let word = match outcome.verdict {
        ProofVerdict::Safe { .. } | ProofVerdict::Searched(..) => {
            counts.safe += 1;
            for n in sizes {
                let Some((bad, complete)) = machine(&system, memory, n, most) else { continue };
                counts.complete += usize::from(complete);
                assert!(
                    !bad,
                    "seed {seed}, {memory:?}, {n} processes: safe, the machine says unsafe\n{made}"
                );
            }
            "SAFE"
        }
        // The machine has executed the run, so nothing remains to compare.
        ProofVerdict::Unsafe(_) => {
            counts.bad += 1;
            "UNSAFE"
        }
        ProofVerdict::Unknown(UnknownReason::Unverified(r))
            if !matches!(r, Rejection::Stopped(_)) =>
        {
            counts
                .unverified
                .push(format!("seed {seed}, {memory:?}: an invariant is not verified, {r:?}"));
            return;
        }
        ProofVerdict::Unknown(_) => {
            counts.unknown.push(seed);
            counts.missed += usize::from(
                sizes.into_iter().any(|n| machine(&system, memory, n, most).is_some_and(|m| m.0)),
            );
            return;
        }
    };
    if let Ok(program) = std::env::var("MU_CHECK_PEER") {
        match peer(&program, made, memory) {
            Some(other) if other == word => counts.peer_same += 1,
            Some(other) => counts
                .peer_other
                .push(format!("seed {seed}, {memory:?}: {word}, the peer says {other}")),
            None => counts.peer_open += 1,
        }
    }
}

/// Returns the verdict of another prover within two seconds.
fn peer(program: &str, made: &File, memory: Memory) -> Option<&'static str> {
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("random.cub");
    std::fs::write(&path, made.to_string()).ok()?;
    let output = std::fs::File::create(folder.path().join("said")).ok()?;
    let mut command = Command::new(program);
    command.args(["-nocolor", "-quiet"]);
    if memory == Memory::Sc {
        command.args(["-model", "SC"]);
    }
    let mut child =
        command.arg(&path).stdout(output).stderr(Stdio::null()).spawn().expect("the peer starts");
    let start = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if start.elapsed() > Duration::from_secs(2) {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let said = std::fs::read_to_string(folder.path().join("said")).ok()?;
    if said.contains("UNSAFE") {
        Some("UNSAFE")
    } else if said.contains("is SAFE") {
        Some("SAFE")
    } else {
        None
    }
}

#[test]
fn random_systems_agree_with_the_machine() {
    for memory in [Memory::Sc, Memory::Tso] {
        let shape = Shape { private: memory == Memory::Tso, transitions: 4, ..Shape::default() };
        let mut counts = Counts::default();
        (0..60).for_each(|seed| {
            compare(seed, &file(&mut Random::new(seed), shape), memory, 3, 3000, &mut counts)
        });
        let assuming = Shape { assumptions: true, ..shape };
        (60..90).for_each(|seed| {
            compare(seed, &file(&mut Random::new(seed), assuming), memory, 3, 3000, &mut counts)
        });
        assert!(counts.unverified.is_empty(), "{counts:?}");
        assert!(counts.safe > 5 && counts.bad > 5 && counts.complete > 5, "{memory:?}: {counts:?}");
    }
}

/// Generates a system of any shape.
fn generate_system(seed: u64, memory: Memory) -> File {
    let mut random = Random::new(seed);
    let mut flag = || random.chance(2, 3);
    let private = memory == Memory::Tso;
    let (weak, arithmetic, quantifiers, open) = (private || flag(), flag(), flag(), flag());
    file(
        &mut random,
        Shape {
            weak,
            arithmetic,
            quantifiers,
            open,
            private,
            assumptions: seed % 8 == 6,
            transitions: 5,
        },
    )
}

#[test]
fn invariants_of_cubes_with_few_common_symbols_are_verified() {
    // The verifier splits cases on facts about symbols that a cube does not mention: two of one
    // fact, or two facts.
    let mut counts = Counts::default();
    for seed in [4793, 14979, 19141] {
        compare(seed, &generate_system(seed, Memory::Sc), Memory::Sc, 3, 3000, &mut counts);
    }
    assert_eq!((counts.safe, &counts.unverified), (3, &Vec::new()));
}

#[test]
fn what_a_step_leaves_open_is_nothing_that_is_assumed_never_to_be() {
    // `Pc[q] := .`, and `Pc` is assumed to be equal for all: the machine once gave the open cell
    // another value at the end.
    let mut counts = Counts::default();
    compare(22414, &generate_system(22414, Memory::Sc), Memory::Sc, 4, 4000, &mut counts);
    assert_eq!((counts.safe, counts.complete > 2), (1, true), "{counts:?}");
}

#[test]
fn invariants_of_shared_stages_are_verified() {
    // A shared stage of an invariant's cube cannot be mapped to a cube without one (the first); in
    // a cube with one, each process has a view of it (the others).
    for seed in [16551, 4938, 6397] {
        let system = mu_cubicle::check(&generate_system(seed, Memory::Tso)).unwrap();
        let verdict = prove(&system, options(Memory::Tso), &Budget::default()).verdict;
        assert!(matches!(verdict, ProofVerdict::Safe { .. }), "seed {seed}: {verdict:?}");
    }
}

#[test]
#[ignore = "minutes: MU_CHECK_RUNS systems, 1,000 by default, each under both memory models"]
fn thousands_of_random_systems_agree_with_the_machine_and_a_peer() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let first = number("MU_CHECK_FIRST").unwrap_or(0);
    let seeds = match number("MU_CHECK_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + number("MU_CHECK_RUNS").unwrap_or(1000),
    };
    let memories = match std::env::var("MU_CHECK_MEMORY").as_deref() {
        Ok("sc") => vec![Memory::Sc],
        Ok("tso") => vec![Memory::Tso],
        _ => vec![Memory::Sc, Memory::Tso],
    };
    for memory in memories {
        let mut counts = Counts::default();
        for seed in seeds.clone() {
            let made = generate_system(seed, memory);
            if seeds.end - seeds.start == 1 {
                println!("{memory:?}:\n{made}");
            }
            compare(seed, &made, memory, 4, 4000, &mut counts);
        }
        for line in counts.peer_other.iter().chain(&counts.unverified) {
            println!("{line}");
        }
        println!(
            "{memory:?}, seeds {seeds:?}: {} differences with the peer; {counts:?}",
            counts.peer_other.len()
        );
    }
}
