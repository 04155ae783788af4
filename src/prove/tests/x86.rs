//! Tests of the x86 programs of specs/x86: proofs for any number of threads, or refutations with a
//! run of the machine, for the rows of x86-tso-programs' table.

use mu_base::SourceId;
use mu_base::limits::{Budget, Limits};
use mu_cubicle::x86::{TranslationOptions, translate};
use mu_prove::{ProofVerdict, ProverOptions, prove};
use std::path::Path;
use std::time::Duration;

#[test]
fn the_table_of_the_paper_is_proved_for_any_number_of_threads() {
    let split = TranslationOptions { split_xchg: true, ..TranslationOptions::default() };
    let plain = TranslationOptions::default();
    // Program (`unlocked`: without the prefix), and the length of the shortest run, if there is
    // one.
    let rows = [
        ("mutex_xchg.asm", split, Some(10)),
        ("mutex_xchg.asm", plain, None),
        ("mutex_cmpxchg.asm unlocked", plain, Some(10)),
        ("mutex_cmpxchg.asm", plain, None),
        ("spinlock.asm unlocked", plain, Some(6)),
        ("spinlock.asm", plain, None),
        ("barrier_single.asm", plain, None),
    ];
    rows.into_iter().for_each(|(name, options, length)| check(name, options, length));
}

/// The exchanged value is 0 or 1, so the parity distinguishes the two: jumping on the wrong one
/// lets threads in while the lock is taken.
#[test]
fn jumps_on_parity_are_proved_and_refuted_for_any_number_of_threads() {
    check("mutex_xchg.asm jne jnp", TranslationOptions::default(), None);
    check("mutex_xchg.asm jne jp", TranslationOptions::default(), Some(8));
}

/// A shift by one may set the overflow flag: then sign and signed order differ.
#[test]
fn the_sign_of_a_shifted_word_is_that_of_the_result() {
    let text = |first: &str, jump: &str| {
        format!(
            "begin shared_data\nx dd 0\nend shared_data\nbegin thread_code\nmov eax, 1073741824
{first}\n{jump} bad\njl bad2\njmp end\nbad2: nop\njmp end\nbad: nop\nend:\nend thread_code
begin unsafe_prop\neip[$t] = bad\nend unsafe_prop\nbegin init_code\nstart_threads\nend init_code\n"
        )
    };
    for (first, jump, is_unsafe) in [
        ("shl eax, 1", "js", true),
        ("shl eax, 1", "jl", false),
        ("mov eax, -2\nshr eax, 1", "js", false),
        ("mov eax, -2\nshr eax, 1", "jl", true),
    ] {
        let text = text(first, jump);
        let program = mu_program::parametric::parse(SourceId::FIRST, &text)
            .unwrap_or_else(|d| panic!("{text}: {d}"));
        let sign = if jump == "jl" { text.replace("jl bad2", "js bad2") } else { text.clone() };
        let other = mu_program::parametric::parse(SourceId::FIRST, &sign)
            .unwrap_or_else(|d| panic!("{sign}: {d}"));
        for program in [program, other] {
            let system = translate(&program, TranslationOptions::default())
                .and_then(|t| mu_cubicle::check(&t.file))
                .unwrap_or_else(|d| panic!("{text}: {d}"));
            let found = prove(&system, ProverOptions::default(), &Budget::default());
            let reached = matches!(found.verdict, ProofVerdict::Unsafe(_));
            assert_eq!(reached, is_unsafe, "{first} {jump}: {:?}", found.verdict);
        }
    }
}

#[test]
#[ignore = "seconds"]
fn the_barrier_of_several_rounds_is_proved_for_any_number_of_threads() {
    check("barrier_multiple.asm", TranslationOptions::default(), None);
}

/// Checks the verdict of a row, and that its run is not shorter than the shortest one.
fn check(name: &str, options: TranslationOptions, length: Option<usize>) {
    let file = name.split(' ').next().unwrap_or(name);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs/x86").join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        .replace("cs: nop", "cs:");
    let text = match name.split(' ').collect::<Vec<_>>()[1..] {
        [] => text,
        [from, to] => text.replace(from, to),
        _ => text.replace("lock ", ""),
    };
    let program = mu_program::parametric::parse(SourceId::FIRST, &text)
        .unwrap_or_else(|d| panic!("{name}: {}", d));
    let system = translate(&program, options)
        .and_then(|t| mu_cubicle::check(&t.file))
        .unwrap_or_else(|d| panic!("{name}: {}", d));
    let budget =
        Budget::new(Limits { timeout: Some(Duration::from_secs(60)), ..Limits::default() });
    // Words that count without bound wrap after 2^32 steps: the search ends before, and a few
    // processes are searched.
    let limited =
        mu_prove::ProverOptions { work: Some(100_000), ..mu_prove::ProverOptions::default() };
    match (prove(&system, limited, &budget).verdict, length) {
        (ProofVerdict::Safe { .. }, None) => {}
        (ProofVerdict::Unsafe(run), Some(length)) => {
            let steps = run.steps.iter().filter(|s| !s.starts_with("flush")).count();
            assert!(steps >= length, "{name}: {steps} steps, the shortest run has {length}");
        }
        (other, _) => panic!("{name}: {other:?}"),
    }
}
