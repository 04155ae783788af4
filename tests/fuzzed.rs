//! A short deterministic run of every fuzz target: the corpus in `fuzz/corpus`, then changed copies
//! of it.
//!
//! `FUZZ_CASES=n` runs more changed copies for each target, `FUZZ_SEED=n` others; a failure prints
//! both the seed and the input. With a nightly toolchain and cargo-fuzz, `cargo fuzz run TARGET`
//! goes on from the same corpus by coverage.

use mu_check::base::random::Random;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Words that lead somewhere.
const WORDS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "->",
    "<>",
    "|",
    "||",
    "&&",
    "=>",
    "!",
    "=",
    "==",
    ",",
    ";",
    ".",
    "+",
    "-",
    "*",
    "@",
    "#",
    "0",
    "1",
    "99999999999999999999",
    "true",
    "Nat",
    "Bool",
    "List(Nat)",
    "sum x: Nat. ",
    "forall x: Bool. ",
    "nu X. ",
    "mu X. ",
    "lambda x: Nat. ",
    "whr x = 1 end",
    "\"",
    "\u{e9}",
];

/// Returns a changed copy.
fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut data = corpus[random.below(corpus.len())].clone();
    for _ in 0..1 + random.below(4) {
        let at = random.below(data.len() + 1);
        let to = (at + random.below(20)).min(data.len());
        match random.below(7) {
            0 if at < data.len() => data[at] ^= 1 << random.below(8),
            1 => drop(data.drain(at..to)),
            2 => drop(data.splice(at..at, WORDS[random.below(WORDS.len())].bytes())),
            3 => {
                let part = data[at..to].to_vec();
                let times = 1 + random.below(3) * random.below(60);
                drop(data.splice(at..at, part.repeat(times)));
            }
            4 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                let end = (from + random.below(40)).min(other.len());
                drop(data.splice(at..to, other[from..end].iter().copied()));
            }
            5 => data.truncate(at),
            _ => drop(data.splice(at..to, WORDS[random.below(WORDS.len())].bytes())),
        }
    }
    data
}

fn short(target: &str, cases: u64) {
    let run = crate::support::targets::TARGETS
        .iter()
        .find(|t| t.0 == target)
        .expect("a target of that name")
        .1;
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "fuzz", "corpus", target].iter().collect();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("a corpus").map(|e| e.unwrap().path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|f| std::fs::read(f).unwrap()).collect();
    assert!(corpus.len() > 1, "{target} has no corpus");
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let (cases, first) = (number("FUZZ_CASES").unwrap_or(cases), number("FUZZ_SEED").unwrap_or(0));
    let one = |what: String, data: &[u8]| {
        let start = Instant::now();
        let ended = std::panic::catch_unwind(|| run(data));
        let text = String::from_utf8_lossy(data);
        assert!(
            ended.is_ok(),
            "{target}, {what} panics on {} bytes:\n{text}\n{data:?}",
            data.len()
        );
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{target}, {what}: {:?} on\n{text}",
            start.elapsed()
        );
    };
    // The main thread of a program has this stack; test threads have less.
    let work = || {
        for (file, data) in files.iter().zip(&corpus) {
            one(file.display().to_string(), data);
        }
        for seed in first..first + cases {
            let data = mutate(&mut Random::new(seed), &corpus);
            one(format!("seed {seed} (FUZZ_SEED={seed} FUZZ_CASES=1)"), &data);
        }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(8 << 20)
            .spawn_scoped(scope, work)
            .expect("a thread");
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

macro_rules! targets {
    ($($name:ident $cases:literal)*) => {
        $(#[test]
        fn $name() {
            short(stringify!($name), $cases);
        })*
    };
}

targets! {
    specification 600
    formula 2000
    aut 4000
    pg 4000
    bes 4000
    checkpoint 3000
    litmus 2000
    front_end 400
}
