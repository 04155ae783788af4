//! Counts and verdicts depend on the model only: not on threads, processes, the engine, limits and
//! resumed checkpoints, or time.

use crate::support::{Outcome, mu_check};
use mu_check::base::random::Random;
use std::path::Path;

/// Two parties that count, and one that is in step with both at times.
const PARTIES: &str = "act a, b, c: Nat; d;
proc P(n: Nat) = (n < 9) -> a(n) . P(n + 1) + (n > 4) -> b(n) . P(0);
     Q(n: Nat) = (n < 7) -> c(n) . Q(n + 2) + (n >= 6) -> d . Q(0);
init P(0) || P(3) || Q(1);
";

/// A model with many obligations and a cycle in the product search.
const MANY: &str = "act a: Nat; b, c;
proc P(i: Nat) = sum n: Nat. (n < 70) -> a(n) . P(i) + b . P((i + 1) mod 20) + (i > 0) -> c . P(Int2Nat(i - 1));
init P(0);
";

fn write_file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn run(words: &[&str], options: &str) -> Outcome {
    let all: Vec<&str> = words.iter().copied().chain(options.split_whitespace()).collect();
    mu_check(&all)
}

/// Verdict and equations of each formula. A search that evidence decides ends when it is found, so
/// the equations until then depend on the order in which threads search: they are left out.
fn verdicts(outcome: &Outcome) -> Vec<(String, u64)> {
    let one = |r: &serde_json::Value| {
        let decided = r["evidence"].as_array().is_some_and(|steps| !steps.is_empty())
            && r["reason"] != "game";
        let equations = if decided { 0 } else { r["equations"].as_u64().unwrap() };
        (r["verdict"].as_str().unwrap().to_string(), equations)
    };
    outcome.json["results"]
        .as_array()
        .unwrap_or_else(|| panic!("{}", outcome.stderr))
        .iter()
        .map(one)
        .collect()
}

fn figures(outcome: &Outcome) -> Vec<u64> {
    ["states", "transitions", "deadlocks"]
        .iter()
        .map(|k| outcome.json[k].as_u64().unwrap_or_else(|| panic!("{}", outcome.stderr)))
        .collect()
}

#[test]
fn obligations_in_batches_are_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let model = write_file(folder.path(), "many.mcrl2", MANY);
    let formula =
        "forall n: Nat. val(n < 70) => nu X(m: Nat = n). ([true]X(m) && [a(m)]mu Y. [c]Y)";
    // For each of 20 states and 70 obligations X(n), and those of Y after a(n) and any number of c.
    let expected = vec![("true".to_string(), 20 * 70 + 20)];
    for options in [
        "--threads 1",
        "--threads 1",
        "--threads 3",
        "--processes 2",
        "--processes 3",
        "--engine symbolic",
    ] {
        let outcome = run(&["check", &model, "-f", formula], options);
        assert_eq!(verdicts(&outcome), expected, "{options}: {}", outcome.stderr);
    }
}

/// Each run is ended by a limit that is chosen at random, and resumed by another number of threads
/// or processes until it is complete.
#[test]
fn searches_that_any_limit_ends_come_to_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let model = write_file(folder.path(), "parties.mcrl2", PARTIES);
    let formulas = [
        "-f",
        "[true*]<true>true",
        "-f",
        "nu X(n: Nat = 0). val(n < 3) && [d]X(n + 1) && [!d]X(n)",
        "-f",
        "[true*.b(8)]mu X. [!d]X",
    ];
    let explore = vec!["explore", &model[..]];
    let check = [&["check", &model[..]][..], &formulas].concat();
    let mut cuts = 0;
    for (at, words) in [explore, check].into_iter().enumerate() {
        let summary = |outcome: &Outcome| {
            if at == 0 {
                format!("{:?}", figures(outcome))
            } else {
                format!("{:?}", verdicts(outcome))
            }
        };
        let whole = run(&words, "--threads 1 --without por");
        assert!([0, 1].contains(&whole.code), "{}", whole.stderr);
        for seed in 0..4 {
            let mut random = Random::new(seed);
            let kept = folder.path().join(format!("kept{at}-{seed}")).display().to_string();
            let (mut way, mut most) = ("checkpoint", 0);
            loop {
                let crew = 1 + random.below(4);
                // The checkpoints of one process are not those of several.
                let crew = if seed % 2 == 0 {
                    format!("--threads {crew}")
                } else {
                    format!("--processes {}", crew + 1)
                };
                most += 100 + random.below(300);
                let limit = match random.below(3) {
                    _ if most > 800 => String::new(),
                    0 => format!("--timeout {}ms", 5 + random.below(40)),
                    _ => format!("--max-states {most}"),
                };
                let outcome = run(&words, &format!("--{way} {kept} --without por {crew} {limit}"));
                if limit.is_empty() {
                    assert_eq!(
                        (outcome.code, summary(&outcome)),
                        (whole.code, summary(&whole)),
                        "seed {seed}, {crew}: {}",
                        outcome.stderr
                    );
                    break;
                }
                assert!(
                    [0, 1, 3].contains(&outcome.code),
                    "seed {seed}, {crew} {limit}: {}",
                    outcome.stderr
                );
                cuts += usize::from(outcome.code == 3);
                // A limit may come before the folder is made.
                way = if Path::new(&kept).exists() { "resume" } else { "checkpoint" };
            }
        }
    }
    assert!(cuts > 8, "{cuts} cuts");
}
