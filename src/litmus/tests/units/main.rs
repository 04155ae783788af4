//! Tests: facts of the literature in each language, rejections with positions, and comparisons with
//! the judgement of all candidates, with the machines on x86, and with herd.

mod armv8;
mod chains;
mod code;
mod constants;
mod conversions;
mod cycles;
mod literature;
mod given;
mod grammar;
mod herd;
mod inside;
mod instructions;
mod interleave;
mod kernel;
mod machines;
mod riscv;
mod widths;
mod words;

use mu_base::{Budget, Diagnostic, SourceId, SourceMap};
use mu_litmus::candidates;
use mu_litmus::code::Arch;
use mu_litmus::condition::ObservedPlace;
use mu_litmus::file::{LitmusTest, ParserOptions, parse};
use mu_litmus::judge::Judge;
use mu_litmus::paths::{self, PathBounds, Reads};
use mu_litmus::report::{TestReport, run};
use std::collections::BTreeSet;

const STDLIB: &str = include_str!("../../../../specs/memory/stdlib.cat");

/// Compiles a model of this repository.
fn judge(arch: Arch, name: &str) -> Judge {
    let text = match name {
        "sc" => include_str!("../../../../specs/memory/sc.cat"),
        "tso" => include_str!("../../../../specs/memory/tso.cat"),
        "pso" => include_str!("../../../../specs/memory/pso.cat"),
        "rvwmo" => include_str!("../../../../specs/memory/rvwmo.cat"),
        "armv8" => include_str!("../../../../specs/memory/armv8.cat"),
        "armv7" => include_str!("../../../../specs/memory/armv7.cat"),
        "rc11" => include_str!("../../../../specs/memory/rc11.cat"),
        other => panic!("{other}"),
    };
    compile(arch, text)
}

fn compile(arch: Arch, text: &str) -> Judge {
    let mut sources = SourceMap::new();
    let resolver = |name: &str| (name == "stdlib.cat").then(|| STDLIB.to_string());
    Judge::compile(&mut sources, arch, "model.cat", text, &resolver)
        .unwrap_or_else(|d| panic!("{}", d.render(&sources)))
}

/// Compiles the default model of an architecture.
fn default_judge(arch: Arch) -> Judge {
    judge(
        arch,
        match arch {
            Arch::RiscV => "rvwmo",
            Arch::AArch64 => "armv8",
            Arch::C => "rc11",
            _ => "tso",
        },
    )
}

fn read(text: &str, judge: &Judge) -> LitmusTest {
    parse(SourceId::FIRST, text, ParserOptions { pairs: judge.pairs, ..Default::default() })
        .unwrap_or_else(|d| panic!("{d:?}\n{text}"))
}

fn answer(text: &str, judge: &Judge) -> TestReport {
    run(read(text, judge), judge, PathBounds { loops: 2 }, &Budget::default())
        .unwrap_or_else(|d| panic!("{d:?}\n{text}"))
}

fn parse_error(text: &str) -> Diagnostic {
    parse(SourceId::FIRST, text, ParserOptions::default()).expect_err(text)
}

/// Returns the outcomes as sets of `name=value`.
fn outcomes(report: &TestReport) -> BTreeSet<String> {
    let line = |l: &Vec<(String, String)>| {
        let mut items: Vec<String> = l.iter().map(|(n, v)| format!("{n}={v};")).collect();
        items.sort();
        items.join(" ")
    };
    report.answer.outcomes.iter().map(line).collect()
}

/// Judges every choice of `rf` and `co`, coherent or not. The outcomes must be those of the pruning
/// search.
fn compare_with_all(text: &str, judge: &Judge) {
    let mut test = read(text, judge);
    let mut requested = vec![Vec::new(); test.threads.len()];
    for o in &test.question.observed {
        if let ObservedPlace::Register(t, r) = o.place {
            requested[t as usize].push(r);
        }
    }
    let budget = Budget::default();
    let run = |test: &mut LitmusTest, take| {
        paths::run(
            &test.threads,
            &mut test.layout,
            &requested,
            PathBounds { loops: 2 },
            take,
            false,
            &budget,
        )
        .unwrap()
    };
    let runs = run(&mut test, Reads::Coherent);
    let (found, _) = candidates::search(&test, &runs, judge, &budget).unwrap();
    let runs = run(&mut test, Reads::All);
    let mut all = BTreeSet::new();
    let mut visited = 0;
    candidates::search_all(&test, &runs, judge, &budget, &mut |m| {
        visited += 1;
        if m.allowed {
            all.insert(m.outcome.to_vec());
        }
        visited > 200_000
    })
    .unwrap();
    if visited <= 200_000 {
        assert_eq!(found.outcomes, all, "{text}");
    }
}

#[test]
fn what_is_dropped_could_not_be() {
    for arch in [Arch::RiscV, Arch::AArch64, Arch::X86, Arch::C] {
        let judge = default_judge(arch);
        assert!(judge.coherent, "{arch:?}");
        for seed in 0..40 {
            compare_with_all(&cycles::litmus(seed, arch), &judge);
        }
    }
}

/// Returns the outcomes of the machine of the layer `program`, as sets of `name=value`.
fn by_machine(text: &str, model: &str) -> BTreeSet<String> {
    let test = mu_program::litmus::parse(SourceId::FIRST, text)
        .unwrap_or_else(|d| panic!("{d:?}\n{text}"));
    let memory = mu_program::memory::by_name(model).unwrap();
    let report = mu_program::herd::run(&test, memory, None, &Budget::default()).unwrap();
    let line = |l: &Vec<(String, String)>| {
        let mut items: Vec<String> = l.iter().map(|(n, v)| format!("{n}={v};")).collect();
        items.sort();
        items.join(" ")
    };
    report.answer.outcomes.iter().map(line).collect()
}

fn compare_with_machines(seeds: std::ops::Range<u64>) {
    let judges = ["sc", "tso", "pso"].map(|m| (m, judge(Arch::X86, m)));
    for seed in seeds {
        let rich = seed % 2 == 0;
        let shape = mu_testkit::litmus_tests::Shape { threads: 3, instructions: 3, rich };
        for text in [mu_testkit::litmus_tests::litmus(seed, shape), cycles::litmus(seed, Arch::X86)]
        {
            for (name, judge) in &judges {
                assert_eq!(
                    outcomes(&answer(&text, judge)),
                    by_machine(&text, name),
                    "{name}, seed {seed}\n{text}"
                );
            }
        }
    }
}

#[test]
fn machines_and_axioms_agree_on_x86() {
    compare_with_machines(0..150);
}

/// A failed compare-and-exchange with `LOCK` still acts as a locked instruction, although it is
/// only a read: the store before it reaches memory first.
#[test]
fn a_failed_exchange_empties_the_buffer() {
    let text = "X86 failed\n{ x=1; }\nP0 | P1 ;\nMOV [y],$1 | MOV [x],$2 ;\nLOCK CMPXCHG [x],ECX | MFENCE ;\n | MOV EBX,[y] ;\nlocations [0:EAX; 1:EBX;]\n";
    for model in ["sc", "tso", "pso"] {
        let outcomes = outcomes(&answer(text, &judge(Arch::X86, model)));
        assert_eq!(outcomes, by_machine(text, model), "{model}");
        assert!(
            !outcomes.iter().any(|o| o.contains("0:EAX=1;") && o.contains("1:EBX=0;")),
            "{model}: {outcomes:?}"
        );
    }
    // Without the prefix the store may stay in the buffer.
    let plain = text.replace("LOCK ", "");
    assert!(
        outcomes(&answer(&plain, &judge(Arch::X86, "tso")))
            .iter()
            .any(|o| o.contains("0:EAX=1;") && o.contains("1:EBX=0;"))
    );
}

/// Ten thousand programs; three seconds.
#[test]
fn machines_and_axioms_agree_on_ten_thousand_x86_programs() {
    compare_with_machines(1000..6000);
}
