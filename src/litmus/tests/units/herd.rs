//! Comparison with herd7, if it is installed: random tests in each language must have equal sets of
//! outcomes.
//!
//! `HERD7=…/herd7 HERD7_LIBDIR=…/libdir SEEDS=0..1000 cargo test --release -p mu-check-litmus --
//! --ignored --nocapture outcomes_are_those_of_herd`

use super::{answer, judge, outcomes};
use mu_litmus::code::Arch;
use mu_litmus::report::TestReport;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Models for herd7 with axioms that it omits: its program order does not contain the two halves of
/// an exchange, so its models of x86 let one read a value that overwrote its own write.
const ORDERED: [(&str, &str); 2] = [
    (
        "x86tso.cat",
        "X86 \"TSO, exchanges in order\"\ninclude \"x86tso.cat\"\nacyclic ghb | rmw as exchange\n",
    ),
    (
        "x86tso-mixed.cat",
        "\"TSO, exchanges in order\"\ninclude \"x86tso-mixed.cat\"\nacyclic ob | rmw as exchange\n",
    ),
];

/// The output of herd7: the outcomes and flags of each test.
type HerdOutput = BTreeMap<String, (BTreeSet<String>, bool)>;

fn understand(output: &str) -> HerdOutput {
    let mut said = HerdOutput::new();
    let mut lines = output.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("Test ").and_then(|l| l.split(' ').next()) else {
            continue;
        };
        let count: usize = lines
            .next()
            .and_then(|l| l.strip_prefix("States "))
            .and_then(|n| n.parse().ok())
            .unwrap_or(0);
        let mut set = BTreeSet::new();
        for _ in 0..count {
            let mut items: Vec<&str> =
                lines.next().unwrap_or("").split(' ').filter(|i| !i.is_empty()).collect();
            items.sort_unstable();
            set.insert(items.join(" "));
        }
        let mut flagged = false;
        for line in lines.by_ref() {
            flagged |= line.starts_with("Flag ") || line == "Undef";
            if line.starts_with("Observation") {
                break;
            }
        }
        said.insert(name.to_string(), (set, flagged));
    }
    said
}

/// Runs the tests. Returns the number of tests without an answer of herd7, and those with different
/// answers.
fn compare(
    herd: &str,
    libdir: &str,
    arch: Arch,
    model: &str,
    ours: &str,
    seeds: &[u64],
) -> (usize, Vec<String>) {
    let folder = std::env::temp_dir().join(format!(
        "mu-check-herd-{}-{}-{}",
        std::process::id(),
        arch.name(),
        seeds[0]
    ));
    std::fs::create_dir_all(&folder).unwrap();
    let judge = judge(arch, ours);
    let mut command = Command::new(herd);
    let ordered = ORDERED.iter().find(|o| o.0 == model).map(|o| {
        let path = folder.join("ordered.cat");
        std::fs::write(&path, o.1).unwrap();
        path.display().to_string()
    });
    command.args([
        "-I",
        libdir,
        "-set-libdir",
        libdir,
        "-model",
        ordered.as_deref().unwrap_or(model),
    ]);
    let mut texts = Vec::new();
    for &seed in seeds {
        let text = super::cycles::litmus(seed, arch);
        let path = folder.join(format!("cycle{seed}.litmus"));
        std::fs::write(&path, &text).unwrap();
        command.arg(path);
        texts.push((seed, text));
    }
    let output = command.output().unwrap();
    let said = understand(&String::from_utf8_lossy(&output.stdout));
    let _ = std::fs::remove_dir_all(&folder);
    let (mut missing, mut differ) = (0, Vec::new());
    for (seed, text) in texts {
        let report: TestReport = answer(&text, &judge);
        match said.get(&format!("cycle{seed}")) {
            None => missing += 1,
            Some((set, flagged)) => {
                if *set != outcomes(&report) || *flagged == report.answer.flags.is_empty() {
                    differ.push(format!(
                        "{} seed {seed}\n{text}herd {set:?} {flagged}\nours {:?} {:?}\n",
                        arch.name(),
                        outcomes(&report),
                        report.answer.flags
                    ));
                }
            }
        }
    }
    (missing, differ)
}

#[test]
#[ignore = "needs herd7: HERD7 and HERD7_LIBDIR name it"]
fn outcomes_are_those_of_herd() {
    let (Ok(herd), Ok(libdir)) = (std::env::var("HERD7"), std::env::var("HERD7_LIBDIR")) else {
        eprintln!("nothing compared: HERD7 and HERD7_LIBDIR do not name herd7 and its models");
        return;
    };
    let seeds = std::env::var("SEEDS").unwrap_or("0..200".into());
    let (from, to) = seeds
        .split_once("..")
        .map(|(a, b)| (a.parse::<u64>().unwrap(), b.parse::<u64>().unwrap()))
        .unwrap();
    let only = std::env::var("ARCH").ok();
    let mut wrong = 0;
    for (arch, model, ours) in [
        (Arch::X86, "x86tso.cat", "tso"),
        (Arch::X86_64, "x86tso-mixed.cat", "tso"),
        (Arch::RiscV, "riscv.cat", "rvwmo"),
        (Arch::AArch64, "aarch64.cat", "armv8"),
        (Arch::C, "rc11.cat", "rc11"),
    ] {
        if only.as_ref().is_some_and(|o| o != arch.name()) {
            continue;
        }
        let (mut missing, mut differ) = (0, Vec::new());
        let all: Vec<u64> = (from..to).collect();
        for seeds in all.chunks(200) {
            let (m, d) = compare(&herd, &libdir, arch, model, ours, seeds);
            missing += m;
            differ.extend(d);
        }
        println!(
            "{}: {} tests, {missing} without an answer of herd7, {} differ",
            arch.name(),
            all.len(),
            differ.len()
        );
        differ.iter().take(3).for_each(|d| println!("{d}"));
        wrong += differ.len();
    }
    assert_eq!(wrong, 0);
}
