//! Tests of words: the two decision procedures against all values of small words, proofs of random
//! systems with words that wrap against the explicit machine, and the machine against the naive
//! interpreter. A failure prints its seed; `MU_CHECK_SEED=n` replays one system and prints it.
//! `MU_CHECK_RUNS=n` sets the number for the ignored test, from `MU_CHECK_FIRST` on.

use mu_base::limits::{Budget, Limits};
use mu_base::random::Random;
use mu_base::source::SourceId;
use mu_cubicle::System;
use mu_prove::atom::{Atom, Cell, Literal, Signature, SymbolSort};
use mu_prove::audit::AuditRequest;
use mu_prove::decide::Decider;
use mu_prove::residues::{ResidueSum, Residues};
use mu_prove::rules::Memory;
use mu_prove::simplex::{SimplexAnswer, ZeroRelation};
use mu_prove::verify::Rejection;
use mu_prove::verify::logic::{self, Fact, ValueKind, World};
use mu_prove::verify::sums::Sign;
use mu_prove::verify::words::{WordSum, Words};
use mu_prove::{ProofVerdict, ProverOptions, UnknownReason, prove};
use mu_testkit::cubicle_interpreter::Naive;
use std::fmt::Write;

const BITS: u32 = 3;

fn cell(symbol: usize) -> Cell {
    Cell::new(symbol, &[])
}

/// Generates a random comparison of sums of three words.
fn comparison(random: &mut Random) -> Literal {
    let bits = if random.chance(1, 4) { 1 + random.below(3) as u32 } else { BITS };
    let side = |random: &mut Random| {
        let terms: Vec<(Cell, i128)> = (0..random.below(3))
            .map(|_| {
                let factor = if random.chance(1, 6) { 2 } else { 1 };
                (cell(random.below(3)), if random.chance(1, 2) { factor } else { -factor })
            })
            .collect();
        ResidueSum::new(terms, random.below(8) as i128, bits)
    };
    let relation =
        [ZeroRelation::Le, ZeroRelation::Lt, ZeroRelation::Eq, ZeroRelation::Ne][random.below(4)];
    Residues::compare(&side(random), relation, &side(random), bits)
}

fn fact(r: &Residues) -> Fact {
    let part = |s: &ResidueSum| {
        let terms = s
            .terms
            .iter()
            .map(|(c, f)| (logic::CertificateCell::new(c.symbol(), [], None), i128::from(*f)));
        WordSum::new(terms, s.constant.into(), r.bits)
    };
    let sign = match r.relation {
        ZeroRelation::Le => Sign::AtMost,
        ZeroRelation::Lt => Sign::Less,
        ZeroRelation::Eq => Sign::Zero,
        ZeroRelation::Ne => Sign::NotZero,
    };
    Fact::Words(Box::new(Words::new(r.bits, &part(&r.left), sign, &part(&r.right))))
}

#[test]
fn decisions_agree_with_all_values() {
    let signature = Signature {
        sorts: vec![SymbolSort::Word(BITS); 3],
        weak: vec![false; 3],
        arity: vec![0; 3],
        rigid: vec![false; 3],
        ..Signature::default()
    };
    let kinds = [ValueKind::Word(BITS); 3];
    let world =
        World { kinds: &kinds, named: 0, fixed: 0, closed: false, counts: &[], spent: None };
    let (mut contradictory, mut open, mut missed) = (0, 0, 0);
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let count = 2 + random.below(5);
        let mut atoms: Vec<Residues> = Vec::new();
        let mut is_false = false;
        for _ in 0..count {
            match comparison(&mut random) {
                Literal::Atom(Atom::Residues(r)) => atoms.push(*r),
                Literal::False => is_false = true,
                _ => {}
            }
        }
        if is_false {
            continue;
        }
        let has_solution = (0..512i64).any(|n| {
            let values = [n % 8, n / 8 % 8, n / 64];
            atoms.iter().all(|a| a.holds(|c| values[c.symbol()]))
        });
        let all: Vec<Atom> = atoms.iter().map(|a| Atom::Residues(Box::new(a.clone()))).collect();
        match Decider::of(&signature, 0, &all).check() {
            SimplexAnswer::Satisfiable => {
                assert!(has_solution, "seed {seed}: satisfiable, {atoms:?}")
            }
            SimplexAnswer::Unsatisfiable => {
                assert!(!has_solution, "seed {seed}: not satisfiable, {atoms:?}")
            }
            SimplexAnswer::Unknown => open += 1,
        }
        let facts: Vec<Fact> = atoms.iter().map(fact).collect();
        let contradiction = world.contradicts(&facts);
        assert!(!contradiction || !has_solution, "seed {seed}: verifier, {atoms:?}");
        contradictory += usize::from(!has_solution);
        missed += usize::from(!has_solution && !contradiction);
        // A comparison and its negation exclude each other and nothing else.
        for a in &atoms {
            let opposite = fact_holds(&world.opposite(&fact(a)));
            for n in 0..512i64 {
                let values = [n % 8, n / 8 % 8, n / 64];
                let holds = a.holds(|c| values[c.symbol()]);
                let negated = match a.negate() {
                    Literal::True => true,
                    Literal::Atom(Atom::Residues(r)) => r.holds(|c| values[c.symbol()]),
                    _ => false,
                };
                assert_eq!(holds, !negated, "seed {seed}: {a:?}");
                assert_eq!(holds, !opposite(&values), "seed {seed}: {a:?}");
                assert_eq!(holds, fact_holds(&fact(a))(&values), "seed {seed}: {a:?}");
            }
        }
    }
    assert!(contradictory > 100, "{contradictory} contradictions");
    assert!(open < 10, "the prover does not decide {open}");
    assert!(missed < contradictory / 20, "the verifier misses {missed} of {contradictory}");
}

/// Evaluates a fact about words.
fn fact_holds(fact: &Fact) -> impl Fn(&[i64; 3]) -> bool + use<> {
    let fact = fact.clone();
    move |values| {
        let Fact::Words(w) = &fact else { return false };
        let part = |p: &WordSum| {
            let sum = p.terms.iter().map(|(c, f)| f * i128::from(values[c.symbol()]));
            (sum.sum::<i128>() + p.constant).rem_euclid(1 << w.bits)
        };
        let (l, r) = (part(&w.left), part(&w.right));
        match w.sign {
            Sign::AtMost => l <= r,
            Sign::Less => l < r,
            Sign::Zero => l == r,
            Sign::NotZero => l != r,
        }
    }
}

/// Generates a system with words of a number of bits.
fn system(seed: u64, bits: u32) -> String {
    let mut random = Random::new(seed);
    let n = 1u64 << bits;
    let mut out = format!(
        "type loc = A | B | C\narray Pc[proc] : loc\narray Own[proc] : word{bits}\nweak var X : word{bits}\nweak var Y : word{bits}\n"
    );
    let start = random.below(n as usize);
    let _ = writeln!(out, "init (p) {{ Pc[p] = A && Own[p] = 0 && X = {start} && Y = 0 }}");
    fn sum(random: &mut Random, names: &[&str], n: u64) -> String {
        let one = *random.choose(names);
        match random.below(5) {
            0 => one.to_string(),
            1 => format!("{one} + 1"),
            2 => format!("{one} - {}", 1 + random.below(n as usize - 1)),
            3 => format!("{one} - {}", random.choose(names)),
            _ => random.below(n as usize).to_string(),
        }
    }
    let condition = |random: &mut Random, names: &[&str]| {
        let (a, b) = (sum(random, names, n), sum(random, names, n));
        let one = *random.choose(names);
        match random.below(8) {
            0 | 1 => format!("{a} = {b}"),
            2 => format!("{a} <> {b}"),
            3 => format!("{a} < {b}"),
            4 => format!("{a} >= {b}"),
            5 => format!("signed({one}) <= signed({b})"),
            6 => {
                let mask = 1 + random.below(n as usize - 1);
                // The lowest bit of the mask, or none.
                let value = random.below(2) << mask.trailing_zeros();
                format!("mask({one} + 1, {mask}) = {value}")
            }
            _ => format!("mask({one}, {}) <> 0", 1 + random.below(n as usize - 1)),
        }
    };
    let places = ["A", "B", "C"];
    let names = ["Own[p]", "X", "Y"];
    for t in 0..2 + random.below(3) {
        let from = *random.choose(&places);
        let mut guard = format!("Pc[p] = {from}");
        if random.chance(1, 2) {
            let _ = write!(guard, " && {}", condition(&mut random, &names));
        }
        if random.chance(1, 6) {
            guard += " && fence()";
        }
        let _ = writeln!(out, "transition t{t} ([p])\nrequires {{ {guard} }}");
        let mut updates = vec![format!("Pc[p] := {}", random.choose(&places))];
        for cell in names {
            if random.chance(2, 5) {
                let value = match random.below(6) {
                    0 => ".".to_string(),
                    1 => format!(
                        "case | {} : {} | _ : {}",
                        condition(&mut random, &names),
                        sum(&mut random, &names, n),
                        sum(&mut random, &names, n)
                    ),
                    _ => sum(&mut random, &names, n),
                };
                // A case binds the index of an array.
                let cell = if value.starts_with("case") && cell == "Own[p]" { "X" } else { cell };
                if updates.iter().all(|u| !u.starts_with(cell)) {
                    updates.push(format!("{cell} := {value}"));
                }
            }
        }
        let _ = writeln!(out, "{{ {} }}", updates.join("; "));
    }
    let views = ["Own[p]", "p @ X", "p @ Y"];
    let (at, claim) = (*random.choose(&places), condition(&mut random, &views));
    let _ = writeln!(out, "unsafe (p q) {{ Pc[p] = {at} && {claim} }}");
    out
}

fn parse_system(text: &str) -> System {
    let file = mu_cubicle::parse(SourceId::FIRST, text).expect(text);
    mu_cubicle::check(&file).expect(text)
}

#[derive(Debug, Default)]
struct Counts {
    safe: usize,
    bad: usize,
    unknown: usize,
    complete: usize,
    unverified: Vec<String>,
}

fn compare(seed: u64, bits: u32, memory: Memory, sizes: u32, counts: &mut Counts) {
    let text = system(seed, bits);
    let system = parse_system(&text);
    let options =
        ProverOptions { memory, instances: 3, work: Some(10_000), ..ProverOptions::default() };
    let budget = Budget::default();
    match prove(&system, options, &budget).verdict {
        ProofVerdict::Safe { .. } | ProofVerdict::Searched(..) => {
            counts.safe += 1;
            for n in 1..=sizes {
                let machine = mu_prove::replay::machine(&system, memory, n, None).expect("small");
                let Ok(reach) = machine.reach(3000, true, &budget) else { continue };
                counts.complete += usize::from(reach.states.len() < 3000);
                assert!(
                    reach.violation.is_none(),
                    "seed {seed}, {memory:?}, {n} processes: safe, the machine says unsafe\n{text}"
                );
            }
        }
        ProofVerdict::Unsafe(_) => counts.bad += 1,
        ProofVerdict::Unknown(UnknownReason::Unverified(r)) => {
            counts.unverified.push(format!("seed {seed}, {memory:?}: {r:?}"));
        }
        ProofVerdict::Unknown(_) => counts.unknown += 1,
    }
}

#[test]
fn random_systems_of_words_agree_with_the_machine() {
    for memory in [Memory::Sc, Memory::Tso] {
        let mut counts = Counts::default();
        for seed in 0..30 {
            compare(seed, 1 + seed as u32 % 3, memory, 3, &mut counts);
        }
        assert!(counts.unverified.is_empty(), "{counts:?}");
        assert!(counts.safe > 5 && counts.bad > 5 && counts.complete > 5, "{memory:?}: {counts:?}");
    }
}

#[test]
#[ignore = "minutes: MU_CHECK_RUNS systems, 1,000 by default, each under both memory models"]
fn thousands_of_random_systems_of_words_agree_with_the_machine() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let first = number("MU_CHECK_FIRST").unwrap_or(0);
    let seeds = match number("MU_CHECK_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + number("MU_CHECK_RUNS").unwrap_or(1000),
    };
    for memory in [Memory::Sc, Memory::Tso] {
        let mut counts = Counts::default();
        for seed in seeds.clone() {
            let bits = 1 + seed as u32 % 3;
            if seeds.end - seeds.start == 1 {
                println!("{memory:?}:\n{}", system(seed, bits));
            }
            compare(seed, bits, memory, 4, &mut counts);
        }
        counts.unverified.iter().for_each(|line| println!("{line}"));
        println!("{memory:?}, seeds {seeds:?}: {counts:?}");
    }
}

#[test]
fn the_machine_of_words_agrees_with_the_naive_interpreter() {
    let mut compared = 0;
    for seed in 0..40 {
        let text = system(seed, 2);
        let system = parse_system(&text);
        for tso in [false, true] {
            let naive = Naive { system: &system, n: 2, tso, most: 1, candidates: Vec::new() };
            let Some(states) = naive.reach(3000) else { continue };
            let bad = states.keys().any(|s| system.unsafes.iter().any(|c| naive.claim(s, c)));
            let memory = if tso { Memory::Tso } else { Memory::Sc };
            let machine = mu_prove::replay::machine(&system, memory, 2, None).expect("small");
            let Ok(reach) = machine.reach(30_000, true, &Budget::default()) else { continue };
            if reach.states.len() == 30_000 {
                continue;
            }
            // Buffers of the machine are longer than those of the interpreter.
            assert!(!bad || reach.violation.is_some(), "seed {seed}, tso {tso}\n{text}");
            if !tso {
                assert_eq!(bad, reach.violation.is_some(), "seed {seed}\n{text}");
            }
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared} systems");
}

/// Compares a certificate with samples of machine states.
fn audit_certificate(system: &System, certificate: &str) {
    let request =
        AuditRequest { system, certificate, samples: 300, seed: 24301, enough: &|| false };
    let audit = mu_prove::audit(&request).unwrap_or_else(|d| panic!("{d}\n{certificate}"));
    assert!(audit.samples >= 300 && audit.steps > 0, "{audit:?}");
}

/// Returns a ticket lock with words of a number of bits.
fn ticket_lock(bits: u32, processes: Option<u32>) -> String {
    let number = processes.map_or(String::new(), |n| format!("number_procs {n}\n"));
    format!(
        "{number}type place = Idle | Wait | Critical
array At[proc] : place
array Mine[proc] : word{bits}
weak var Next : word{bits}
weak var Serving : word{bits}
init (p) {{ At[p] = Idle && Mine[p] = 0 && Next = 0 && Serving = 0 }}
unsafe (p q) {{ At[p] = Critical && At[q] = Critical }}
transition take ([p])
requires {{ At[p] = Idle }}
{{ At[p] := Wait; Mine[p] := Next; Next := Next + 1 }}
transition enter ([p])
requires {{ At[p] = Wait && Mine[p] = Serving }}
{{ At[p] := Critical }}
transition leave ([p])
requires {{ At[p] = Critical }}
{{ At[p] := Idle; Serving := Serving + 1 }}
"
    )
}

#[test]
fn ticket_locks_with_words_that_wrap_are_proved() {
    let budget = Budget::default();
    for memory in [Memory::Sc, Memory::Tso] {
        for bits in [2, 3, 16, 32] {
            let text = ticket_lock(bits, None);
            let system = parse_system(&text);
            let outcome =
                prove(&system, ProverOptions { memory, ..ProverOptions::default() }, &budget);
            let ProofVerdict::Safe { certificate, queries } = outcome.verdict else {
                panic!("{bits} bits, {memory:?}: {:?}", outcome.verdict)
            };
            assert_eq!(queries.most, Some((1 << bits) - 1), "{certificate}");
            audit_certificate(&system, &certificate);
            // Without the counting invariant the cubes are no proof.
            let lines = certificate.lines().filter(|l| !l.starts_with("count"));
            let without = lines.collect::<Vec<_>>().join("\n");
            assert!(mu_prove::verify(&system, &without, &budget).is_err(), "{without}");
            let wrong = certificate.replace("1 Next + -1 Serving + 0", "1 Next + -1 Serving + 1");
            assert!(mu_prove::verify(&system, &wrong, &budget).is_err(), "{wrong}");
            if bits == 2 {
                // Three processes hold three tickets; five may take one twice.
                for (n, safe) in [(1, true), (2, true), (3, true), (5, false)] {
                    let machine =
                        mu_prove::replay::machine(&system, memory, n, None).expect("small");
                    let reach = machine.reach(300_000, true, &budget).expect("a search");
                    assert_eq!(reach.violation.is_none(), safe, "{n} processes, {memory:?}");
                }
            }
        }
    }
}

#[test]
fn counting_invariants_that_are_wrong_are_refused() {
    // `Next` takes any value.
    let any = "type place = Idle | Wait
array At[proc] : place
var Next : word2
init (p) { At[p] = Idle && Next = 0 }
unsafe (p) { At[p] = Wait && Next = 0 }
transition nx ([p]) requires { At[p] = Idle } { Next := . }
";
    // All processes count at first, and the sum is zero.
    let initial = "type place = Idle | Wait | Critical
array At[proc] : place
var Next : word2
init (p) { At[p] = Wait && Next = 0 }
unsafe (p) { At[p] = Critical }
transition go ([p]) requires { At[p] = Wait } { At[p] := Critical }
";
    let cases = [
        (any, "count At in {Wait} = word 2 1 Next + 0\nnever p1\n  At[p1] in {Wait}\n", Some(0)),
        (
            initial,
            "count At in {Wait, Critical} = word 2 1 Next + 0\nnever p1\n  At[p1] in {Critical}\n",
            None,
        ),
    ];
    for (text, lines, transition) in cases {
        let certificate = format!("mu-check certificate 1\nmemory sc\n{lines}");
        let found = mu_prove::verify(&parse_system(text), &certificate, &Budget::default());
        assert_eq!(found, Err(Rejection::Count(0, transition)), "{certificate}");
    }
}

/// Sums of words with large factors have many cases of wrapping; a limit ends them.
#[test]
fn large_factors_of_words_end() {
    let text = |mask: u32| {
        format!(
            "type t = A | B
array At[proc] : t
var X : word32
var Y : word32
array L[proc] : word32
init (p) {{ At[p] = A && X = 0 && Y = 0 && L[p] = 0 }}
unsafe (a) {{ At[a] = B }}
transition t0 ([p])
requires {{ At[p] = B && mask(X, {mask}) <> 0 }}
{{ X := 0; L[p] := 0 - L[p] }}
transition t2 ([p])
requires {{ At[p] = A && L[p] = X + Y + 1 }}
{{ At[p] := B; L[p] := Y }}
"
        )
    };
    for mask in [1, 174, 5_592_405, 1_431_655_765] {
        let limits =
            Limits { timeout: Some(std::time::Duration::from_secs(3)), ..Limits::default() };
        let budget = Budget::new(limits);
        let start = std::time::Instant::now();
        let outcome = prove(&parse_system(&text(mask)), ProverOptions::default(), &budget);
        assert!(
            !matches!(outcome.verdict, ProofVerdict::Unsafe { .. }),
            "{mask}: {:?}",
            outcome.verdict
        );
        assert!(start.elapsed().as_secs() < 30, "{mask}: {:?}", start.elapsed());
    }
}

#[test]
fn ticket_locks_of_x86_programs_are_proved() {
    let budget = Budget::default();
    let path = format!("{}/../../specs/challenges/ticket.asm", env!("CARGO_MANIFEST_DIR"));
    let wide = std::fs::read_to_string(path).expect("a program");
    let narrow = wide.replace(" dd ", " dw ").replace("eax", "ax").replace("dword", "word");
    for (text, bits) in [(wide, 32), (narrow, 16)] {
        let program = mu_program::parametric::parse(SourceId::FIRST, &text).expect("a program");
        let options = mu_cubicle::x86::TranslationOptions {
            wrapping: true,
            words: true,
            ..mu_cubicle::x86::TranslationOptions::default()
        };
        let translation = mu_cubicle::x86::translate(&program, options).expect("a system");
        let system = parse_system(&translation.file.to_string());
        let options = ProverOptions { work: Some(2_000_000), ..ProverOptions::default() };
        let outcome = prove(&system, options, &budget);
        let ProofVerdict::Safe { certificate, queries } = outcome.verdict else {
            panic!("{bits} bits: {:?}\n{}", outcome.verdict, translation.file)
        };
        assert_eq!(queries.most, Some((1 << bits) - 1), "{certificate}");
        assert!(mu_prove::verify(&system, &certificate, &budget).is_ok());
        audit_certificate(&system, &certificate);
    }
}

#[test]
fn the_ticket_lock_of_the_challenges_is_proved() {
    let budget = Budget::default();
    let path = format!("{}/../../specs/challenges/ticket_words.cub", env!("CARGO_MANIFEST_DIR"));
    let system = parse_system(&std::fs::read_to_string(path).expect("a system"));
    let outcome = prove(&system, ProverOptions::default(), &budget);
    let ProofVerdict::Safe { certificate, queries } = outcome.verdict else {
        panic!("{:?}", outcome.verdict)
    };
    assert_eq!(queries.most, Some(65_535), "{certificate}");
    let line = "count At in {Wait, Critical, Leave} = word 16 1 Next + -1 Serving + 0";
    assert!(certificate.lines().any(|l| l == line), "{certificate}");
    audit_certificate(&system, &certificate);
}
