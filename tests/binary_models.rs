//! Linear processes and equation systems in mCRL2's binary form: written files are read with the
//! same meaning; damaged files are rejected.
//!
//! `MU_CHECK_CASES` random specifications from `MU_CHECK_SEED` on. Files in `tests/files` were
//! written by the toolset itself: `counter.lps`, `counter.pbes` of `counter.mcrl2`, and
//! `twice.pbes` of a text.

use crate::support::random_text::{Kind, formula, specification};
use crate::support::tape::Tape;
use crate::support::{mu_check, package};
use mu_check::base::random::Random;
use mu_check::base::{Budget, Limits, SourceId, Stop};
use mu_check::compile::typed::process::process as typed_process;
use mu_check::compile::{Compiled, Confluence};
use mu_check::explore::{self, Silent};
use mu_check::formula::equations;
use mu_check::lts::equivalence::{Equivalence, reduce};
use mu_check::lts::{Lts, mcrl2};
use mu_check::process::linear::LinearProcess;
use mu_check::process::linearise;
use mu_check::process::typecheck::check_specification;
use mu_check::syntax;
use std::collections::BTreeMap;
use std::path::Path;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

fn linear(seed: u64, text: &str) -> LinearProcess {
    let tree = syntax::parse_specification(SourceId::FIRST, text)
        .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
    let spec = check_specification(&tree).unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
    linearise::linearise(&spec, &Default::default())
        .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"))
}

/// Returns the smallest strongly bisimilar system of a process, if it is small and has values
/// everywhere.
fn system(process: LinearProcess) -> Option<Lts> {
    let model = Compiled::new(process, &Confluence::None).ok()?;
    let budget = Budget::new(Limits { max_states: Some(300), ..Default::default() });
    let options = explore::Options { threads: 1, ..Default::default() };
    match explore::explore_lts(&model, &options, &budget, &Silent) {
        // A function may be several states, by the expressions that stand for it.
        Ok((outcome, lts)) if outcome.stop == Stop::Complete => {
            Some(reduce(&lts, Equivalence::STRONG, 1))
        }
        _ => None,
    }
}

/// States, and how often each label occurs.
fn figures(lts: &Lts) -> (usize, BTreeMap<&str, usize>) {
    let mut labels = BTreeMap::new();
    lts.labels
        .iter()
        .for_each(|l| *labels.entry(lts.table.texts[l.index()].as_str()).or_default() += 1);
    (lts.state_count(), labels)
}

#[test]
fn random_processes_mean_the_same_when_read_again() {
    let (first, cases) = (number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 120));
    let mut compared = 0;
    for seed in first..first + cases {
        let (text, _) = specification(&mut Tape::new(seed));
        let process = linear(seed, &text);
        let typed =
            typed_process(&process).unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
        let mut bytes = Vec::new();
        mcrl2::write_process(&typed, &mut bytes).unwrap();
        let again = mcrl2::read_process(&bytes[..])
            .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
        let Some(expected) = system(process) else { continue };
        let found = system(linear(seed, &again))
            .unwrap_or_else(|| panic!("seed {seed}: no system\n{text}\n{again}"));
        assert_eq!(figures(&found), figures(&expected), "seed {seed}\n{text}\n{again}");
        compared += 1;
    }
    println!("{compared} of {cases} processes compared");
    assert!(compared * 2 > cases, "{compared}");
}

fn at(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn random_formulas_have_the_same_verdict_by_files() {
    let (first, cases) = (number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 12));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (mut compared, mut truths) = (0, 0);
    for seed in first..first + cases {
        let mut tape = Tape::new(seed);
        let (text, _) = specification(&mut tape);
        std::fs::write(at(folder, "m.mcrl2"), &text).unwrap();
        std::fs::write(at(folder, "f.mcf"), formula(&mut tape, Kind::Any)).unwrap();
        let limits = ["--max-states", "2000", "--timeout", "5"];
        let run = |words: &[&str]| mu_check(&[words, &limits].concat());
        let expected = run(&["check", &at(folder, "m.mcrl2"), &at(folder, "f.mcf")]);
        if expected.code > 1 {
            continue;
        }
        assert_eq!(
            run(&["linearise", &at(folder, "m.mcrl2"), "--out", &at(folder, "m.lps")]).code,
            0,
            "seed {seed}"
        );
        let found = run(&["check", &at(folder, "m.lps"), &at(folder, "f.mcf")]);
        assert_eq!(found.code, expected.code, "seed {seed}: {}\n{text}", found.stderr);
        let written = run(&[
            "pbes",
            &at(folder, "m.lps"),
            &at(folder, "f.mcf"),
            "--out",
            &at(folder, "m.pbes"),
        ]);
        assert_eq!(written.code, 0, "seed {seed}: {}", written.stderr);
        assert_outline_says_what_the_text_says(&std::fs::read(at(folder, "m.pbes")).unwrap());
        let solved = run(&["solve", &at(folder, "m.pbes")]);
        assert!(
            solved.code == expected.code || solved.code >= 2,
            "seed {seed}: {}\n{text}",
            solved.json
        );
        compared += u64::from(solved.code < 2);
        truths += u64::from(solved.code == 0);
    }
    println!("{compared} of {cases} formulas compared, {truths} true");
    assert!(compared * 2 > cases && truths > 0 && truths < compared, "{compared} {truths}");
}

/// Reads a binary equation system by its outline and as text.
fn assert_outline_says_what_the_text_says(file: &[u8]) {
    let outlined = mcrl2::read_equations(file).unwrap();
    for all in [false, true] {
        let unrolled = equations::UnrollSelection { all, ..Default::default() };
        let [one, other] = [
            equations::read_outlined(SourceId::FIRST, &outlined, &unrolled).unwrap(),
            equations::read_unrolled(SourceId::FIRST, &outlined.text, &unrolled).unwrap(),
        ];
        let printed =
            |system: &equations::System| syntax::print::specification(&system.specification);
        assert_eq!(printed(&one), printed(&other), "{}", outlined.text);
        assert_eq!(
            (&one.prefix, &one.least, &one.initial, one.start, &one.bare, &one.ranks),
            (&other.prefix, &other.least, &other.initial, other.start, &other.bare, &other.ranks)
        );
        assert_eq!(one.quantified, other.quantified);
    }
}

#[test]
fn files_of_the_toolset_are_read() {
    let file = |name: &str| package(&format!("tests/files/{name}"));
    let explored = |name: &str| {
        let outcome = mu_check(&["explore", &file(name)]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        (outcome.json["states"].as_u64(), outcome.json["transitions"].as_u64())
    };
    // As `lps2lts` counts them.
    assert_eq!(explored("counter.lps"), (Some(136), Some(509)));
    assert_eq!(
        mu_check(&["check", &file("counter.lps"), "-f", "<true*.up(2)|half(3 / 2)>true"]).code,
        0
    );
    assert_eq!(mu_check(&["solve", &file("counter.pbes")]).code, 1);
    assert_outline_says_what_the_text_says(&std::fs::read(file("counter.pbes")).unwrap());
    // Variables that two quantifiers have in common, of which one is bounded: each has its place.
    assert_outline_says_what_the_text_says(&std::fs::read(file("twice.pbes")).unwrap());
    assert_eq!(mu_check(&["solve", &file("twice.pbes")]).code, 0);
    let text = mu_check(&["expand", &file("counter.lps")]);
    let text = text.json["specification"].as_str().unwrap();
    assert!(text.contains("proc P(") && text.contains("sum m_Count: Nat. "), "{text}");
    // A file under the name of another form.
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(file("counter.lps"), at(folder.path(), "m.pbes")).unwrap();
    let wrong = mu_check(&["solve", &at(folder.path(), "m.pbes")]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("contains no equation system"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn damaged_files_are_refused() {
    type Read = fn(&[u8]) -> Result<String, mu_check::base::Diagnostic>;
    let kinds: [(&str, Read); 2] = [
        ("counter.lps", |b| mcrl2::read_process(b)),
        ("counter.pbes", |b| mcrl2::read_equations(b).map(|read| read.text)),
    ];
    let seed = number("MU_CHECK_SEED", 1);
    println!("seed {seed}");
    for (name, read) in kinds {
        let bytes = std::fs::read(package(&format!("tests/files/{name}"))).unwrap();
        assert!(read(&bytes).is_ok());
        let whole = bytes.iter().rposition(|b| *b != 0).unwrap();
        for end in 0..whole {
            assert!(read(&bytes[..end]).is_err(), "{name}: cut off at {end}");
        }
        let (mut random, mut refused) = (Random::new(seed), 0);
        for case in 0..3000 {
            let mut bad = bytes.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(whole + 1);
                bad[at] ^= 1 << random.below(8);
            }
            match read(&bad) {
                // What is read must be taken or refused by the front end, as any text.
                Ok(text) if case % 10 == 0 => {
                    if let Ok(tree) = syntax::parse_specification(SourceId::FIRST, &text) {
                        let _ = check_specification(&tree);
                    }
                }
                Ok(_) => {}
                Err(why) => {
                    assert!(!why.message.is_empty());
                    refused += 1;
                }
            }
        }
        assert!(refused > 1500, "{name}: {refused}");
    }
    let version = mcrl2::read_process(&[0, 0x8b, 0xaf, 0x83, 0x01, 0, 0][..]).unwrap_err();
    assert!(version.message.contains("0x8301"), "{version:?}");
}
