//! Tests of the audit of certificates: those of the prover pass, wrong ones are detected. The
//! direct semantics of the audit has the same steps as the naive interpreter.
//!
//! A failure prints the seed and the system; `MU_CHECK_SEED=n` replays one, `MU_CHECK_RUNS=n` tries
//! more, from `MU_CHECK_FIRST` on.

use mu_base::limits::Budget;
use mu_base::random::Random;
use mu_base::{SourceId, Stage};
use mu_cubicle::ast::File;
use mu_cubicle::system::{SymbolId, System};
use mu_cubicle::value::Val;
use mu_prove::audit::machine::{AuditMachine, MachineState};
use mu_prove::audit::random_states::{StateGenerator, buffered_slots};
use mu_prove::audit::value::{AuditValue, whole};
use mu_prove::audit::{Audit, AuditRequest, audit};
use mu_prove::rules::Memory;
use mu_prove::{ProofVerdict, ProverOptions, prove};
use mu_testkit::cubicle_grammar;
use mu_testkit::cubicle_interpreter::{self, Naive};
use mu_testkit::cubicle_systems::{self, Shape};
use num_rational::BigRational;
use std::collections::BTreeSet;

fn system(text: &str) -> System {
    mu_cubicle::check(&mu_cubicle::parse(SourceId::FIRST, text).unwrap()).unwrap()
}

fn certificate(system: &System, memory: Memory) -> Option<String> {
    let options =
        ProverOptions { memory, instances: 3, work: Some(20_000), ..ProverOptions::default() };
    match prove(system, options, &Budget::default()).verdict {
        ProofVerdict::Safe { certificate, .. } => Some(certificate),
        _ => None,
    }
}

fn audit_samples(
    system: &System,
    certificate: &str,
    samples: usize,
    seed: u64,
) -> Result<Audit, mu_base::Diagnostic> {
    audit(&AuditRequest { system, certificate, samples, seed, enough: &|| false })
}

fn seeds(all: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    match (number("MU_CHECK_SEED"), number("MU_CHECK_RUNS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(runs)) => {
            number("MU_CHECK_FIRST").unwrap_or(0)..number("MU_CHECK_FIRST").unwrap_or(0) + runs
        }
        (None, None) => all,
    }
}

/// Returns true if the suite's own seeds are tried, for which counts are known.
fn is_suite() -> bool {
    ["MU_CHECK_SEED", "MU_CHECK_RUNS"].iter().all(|name| std::env::var(name).is_err())
}

/// Removes a cube from the certificate.
fn without_cube(certificate: &str, cube: usize) -> String {
    let mut at = 0;
    let retained = certificate.lines().filter(|l| {
        at += usize::from(l.starts_with("never"));
        at != cube + 1
    });
    retained.map(|l| format!("{l}\n")).collect()
}

const LOCK: &str = "
type place = Idle | Try | In
array At[proc] : place
weak var Lock : bool
weak var Data : int
init (p) { At[p] = Idle && Lock = False && Data = 0 }
unsafe (p q) { At[p] = In && At[q] = In }
transition ask ([p]) requires { At[p] = Idle } { At[p] := Try }
transition take ([p]) requires { At[p] = Try && Lock = False } { Lock := True; At[p] := In }
transition write ([p]) requires { At[p] = In } { Data := 4294967296 }
transition leave ([p]) requires { At[p] = In } { Lock := False; At[p] := Idle }
";

#[test]
fn wrong_certificates_are_caught_with_state_step_and_seed() {
    let system = system(LOCK);
    let right = certificate(&system, Memory::Tso).unwrap();
    let passed = audit_samples(&system, &right, 1000, 1).unwrap();
    assert_eq!((passed.samples >= 1000, passed.processes), (true, Some((1, 5))));
    assert!(passed.buffered > 100 && passed.initial > 5 && passed.steps > 500, "{passed:?}");
    let cubes = right.matches("never").count();
    assert!(cubes > 2, "{right}");
    let mut caught = 0;
    for cube in 0..cubes {
        let wrong = without_cube(&right, cube);
        if let Err(error) = audit_samples(&system, &wrong, 1000, 7) {
            caught += 1;
            let again = audit_samples(&system, &wrong, 1000, 7).unwrap_err();
            assert_eq!(
                (error.stage, &error.message, &error.notes),
                (Stage::Internal, &again.message, &again.notes)
            );
            let notes = error.notes.join("\n");
            assert!(
                notes.contains("state: At[#1]")
                    && notes.contains("seed: 7")
                    && notes.contains("processes: "),
                "{notes}"
            );
        }
    }
    assert_eq!(caught, cubes, "each cube of this proof is needed\n{right}");
    // An initial state in a cube.
    let initial = format!("{right}never p1\n  At[p1] in {{Idle}}\n");
    let error = audit_samples(&system, &initial, 100, 3).unwrap_err();
    assert!(error.message.contains("is initial and is in cube"), "{}", error.message);
    // A step that leads into a cube, far from the small numbers.
    let step = format!("{right}never p1\n  sum 1 Data + -4294967296 = 0\n");
    let error = audit_samples(&system, &step, 1000, 3).unwrap_err();
    assert!(error.notes.iter().any(|n| n.contains("write(")), "{:?}", error.notes);
}

#[test]
fn what_is_in_a_buffer_is_sampled() {
    // A store does not reach memory immediately: two processes enter.
    let system = system(
        "type place = Idle | Said | In
         array At[proc] : place
         weak array Wants[proc] : bool
         init (p) { At[p] = Idle && Wants[p] = False }
         unsafe (p q) { At[p] = In && At[q] = In }
         transition say ([p]) requires { At[p] = Idle } { At[p] := Said; Wants[p] := True }
         transition enter ([p]) requires { At[p] = Said && forall_other q. Wants[q] = False } { At[p] := In }",
    );
    // The proof under sequential consistency, used for the other memory model.
    let sc = certificate(&system, Memory::Sc).unwrap();
    assert!(audit_samples(&system, &sc, 1000, 1).is_ok());
    let error =
        audit_samples(&system, &sc.replace("memory sc", "memory tso"), 1000, 1).unwrap_err();
    assert!(error.notes.iter().any(|n| n.contains("store buffer of #")), "{:?}", error.notes);
}

fn generate_system(seed: u64, memory: Memory) -> File {
    let mut random = Random::new(seed);
    let mut flag = || random.chance(2, 3);
    let private = memory == Memory::Tso;
    let (weak, arithmetic, quantifiers, open) = (private || flag(), flag(), flag(), flag());
    cubicle_systems::file(
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
fn certificates_of_random_systems_pass_and_damaged_ones_are_caught() {
    for memory in [Memory::Sc, Memory::Tso] {
        let (mut passed, mut buffered, mut damaged, mut caught) = (0, 0, 0, 0);
        for seed in seeds(0..60) {
            let file = generate_system(seed, memory);
            let Ok(system) = mu_cubicle::check(&file) else { continue };
            let Some(right) = certificate(&system, memory) else { continue };
            let found = audit_samples(&system, &right, 150, seed)
                .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{right}\n{file}"));
            passed += 1;
            buffered += found.buffered;
            // Without any cube only the claim itself remains.
            let empty: String = right.lines().take(2).map(|l| format!("{l}\n")).collect();
            damaged += 1;
            caught += usize::from(audit_samples(&system, &empty, 150, seed).is_err());
        }
        println!(
            "{memory:?}: {passed} proofs, {buffered} states with buffers, {caught} of {damaged} damaged ones caught"
        );
        if is_suite() {
            assert!(
                passed > 10 && (memory == Memory::Sc || buffered > 200),
                "{memory:?}: {passed} proofs, {buffered} with buffers"
            );
            assert!(3 * caught > 2 * damaged, "{memory:?}: {caught} of {damaged}");
        }
    }
}

#[test]
fn certificates_of_systems_of_the_grammar_pass() {
    let (mut passed, mut samples, mut without_initial) = (0, 0, 0);
    for seed in seeds(0..90) {
        let mut random = Random::new(seed);
        let private = random.chance(1, 2);
        let text = cubicle_grammar::generate(
            &mut random,
            cubicle_grammar::Shape { private, transitions: 4 },
        )
        .text;
        let Ok(system) = mu_cubicle::check(&mu_cubicle::parse(SourceId::FIRST, &text).unwrap())
        else {
            continue;
        };
        for memory in [Memory::Sc, Memory::Tso] {
            let Some(right) = certificate(&system, memory) else { continue };
            let found = audit_samples(&system, &right, 150, seed);
            let found = found.unwrap_or_else(|e| {
                panic!("seed {seed}, {memory:?}: {} {:#?}\n{right}\n{text}", e.message, e.notes)
            });
            passed += 1;
            samples += found.samples;
            without_initial += usize::from(found.initial == 0);
        }
    }
    println!("{passed} proofs, {samples} samples, {without_initial} without an initial state");
    assert!(
        !is_suite() || passed > 8 && samples > 800 && 4 * without_initial < passed,
        "{passed}, {samples}, {without_initial}"
    );
}

/// Converts a state to one of the naive interpreter.
fn as_naive(machine: &AuditMachine, state: &MachineState) -> cubicle_interpreter::State {
    let value = |v: &AuditValue| match v {
        AuditValue::Process(p) => Val::Proc(*p),
        AuditValue::Constructor(c) => Val::Cons(mu_cubicle::system::ConsId::of(*c)),
        AuditValue::Element(e) => Val::Element(*e),
        AuditValue::Number(n) => {
            Val::Number(BigRational::new((*n.numer()).into(), (*n.denom()).into()))
        }
    };
    let cell = |slot: usize| {
        let (symbol, args) = machine.cell(slot);
        (SymbolId::new(symbol), args)
    };
    let entry =
        |e: &Vec<(usize, AuditValue)>| e.iter().map(|(slot, v)| (cell(*slot), value(v))).collect();
    cubicle_interpreter::State {
        cells: state.cells.iter().enumerate().map(|(slot, v)| (cell(slot), value(v))).collect(),
        buffers: state.buffers.iter().map(|b| b.iter().map(entry).collect()).collect(),
    }
}

#[test]
fn the_direct_semantics_has_the_steps_of_the_naive_interpreter() {
    let mut compared = 0;
    for seed in seeds(0..40) {
        let file = {
            let mut random = Random::new(seed);
            cubicle_systems::file(
                &mut random,
                Shape {
                    weak: true,
                    arithmetic: true,
                    quantifiers: true,
                    open: seed % 2 == 0,
                    transitions: 6,
                    ..Shape::default()
                },
            )
        };
        let Ok(system) = mu_cubicle::check(&file) else { continue };
        let text = file.to_string();
        let parts =
            text.split("transition ").skip(1).filter(|t| t.contains(":= .") || t.contains(": ."));
        let open: Vec<&str> = parts.filter_map(|t| t.split_whitespace().next()).collect();
        for (n, tso) in [(1, true), (2, true), (3, true), (2, false)] {
            if n < system.fixed.max(1) || system.processes.is_some_and(|m| m < n) {
                continue;
            }
            let machine = AuditMachine::new(&system, n, tso);
            let naive = Naive { system: &system, n, tso, most: usize::MAX, candidates: Vec::new() };
            let mut draw = StateGenerator::new(seed, [whole(7)].into_iter());
            let buffered = buffered_slots(&machine);
            for _ in 0..12 {
                let mut state = draw.random_state(&machine);
                draw.mutate(&machine, &mut state, &buffered);
                draw.repair_for_transition(&machine, &mut state);
                let same = as_naive(&machine, &state);
                let text = || {
                    format!(
                        "seed {seed}, {n} processes, tso {tso}: {}\n{file}",
                        machine.cells_text(&state)
                    )
                };
                assert_eq!(
                    machine.not_initial(&state).is_empty()
                        && state.entries() == 0
                        && machine.is_state(&state),
                    naive.is_initial(&same),
                    "{}",
                    text()
                );
                for claim in &system.unsafes {
                    assert_eq!(
                        machine.claim(&state, claim),
                        Some(naive.claim(&same, claim)),
                        "{}",
                        text()
                    );
                }
                let ours = machine.steps(&state, &mut |sort| {
                    StateGenerator::new(seed, std::iter::empty()).value(&machine, sort, None)
                });
                // If any value is stored, the audit draws only some of many.
                let is_closed = |name: &str| {
                    name.starts_with("flush(")
                        || !open.iter().any(|t| name.split('(').next() == Some(t))
                };
                let ours = ours.iter().map(|s| (machine.step_text(s), as_naive(&machine, &s.next)));
                let ours: BTreeSet<_> = ours.filter(|s| is_closed(&s.0)).collect();
                let theirs: BTreeSet<_> =
                    naive.steps(&same).into_iter().filter(|s| is_closed(&s.0)).collect();
                assert_eq!(ours, theirs, "{}", text());
                compared += theirs.len();
            }
        }
    }
    assert!(compared > 500 || !is_suite(), "{compared} steps");
}
