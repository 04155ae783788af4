//! Tests of the built-in models: each compiles, and judges each litmus test as its source states.

mod cat;
mod naive;
mod observation;
mod sample;
mod search;
mod views;

use mu_axioms::architecture::Architecture;
use mu_axioms::cat::CatModel;
use mu_axioms::execution::EventKind;
use mu_axioms::history::{History, HistoryChecker};
use mu_axioms::lattice::enumerate::{Alphabet, programs};
use mu_axioms::lattice::{Bound, LatticeModel, compare};
use mu_axioms::models::{self, BuiltinModel, Dialect, KNOWN, by_name};
use mu_base::{Budget, Limits, SourceMap, Stop};
use std::collections::BTreeSet;

/// Compiles all models.
fn compile_all() -> Vec<(&'static BuiltinModel, CatModel)> {
    let compile = |k: &'static BuiltinModel| {
        let mut sources = SourceMap::new();
        let model = k
            .compile(&mut sources)
            .unwrap_or_else(|e| panic!("{}: {}", k.name, e.render(&sources)));
        (k, model)
    };
    KNOWN.iter().map(compile).collect()
}

/// Reads the table of litmus tests: name, history, models that allow it.
fn table() -> Vec<(String, History, Vec<String>)> {
    let text = include_str!("../../memory/tests.txt");
    let lines: Vec<&str> =
        text.lines().filter(|l| !l.starts_with('#') && !(l.is_empty())).collect();
    let mut out = Vec::new();
    for pair in lines.chunks(2) {
        let (name, history) = pair[0].split_once(' ').unwrap();
        let history = History::parse(history.trim()).unwrap_or_else(|e| panic!("{name}: {e}"));
        out.push((
            name.to_string(),
            history,
            pair[1].split_whitespace().filter(|w| *w != "none").map(str::to_string).collect(),
        ));
    }
    out
}

#[test]
fn verdicts_match_the_sources() {
    let models = compile_all();
    let mut wrong = Vec::new();
    for (name, history, allowed) in table() {
        assert!(
            allowed.iter().all(|a| by_name(a).is_some()),
            "{name} names a model that is unknown: {allowed:?}"
        );
        for (known, model) in &models {
            let mut judge = HistoryChecker::new(model, known.dialect);
            let allows = judge.allows(&history).unwrap();
            if allows != allowed.iter().any(|a| a == known.name) {
                wrong.push(format!(
                    "{name}: {} {}",
                    known.name,
                    if allows { "allows it" } else { "forbids it" }
                ));
            }
            let (verdict, ..) = judge.verdict(&history).unwrap();
            assert_eq!(verdict.allowed, allows, "{name}: {}", known.name);
            assert!(
                allows || verdict.failed.as_ref().is_some_and(|f| !f.events.is_empty()),
                "{name}: {} gives no reason: {:?}",
                known.name,
                verdict.failed
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Exactly one program of each class is enumerated: comparison with all sequences up to all
/// renamings.
#[test]
fn each_program_class_is_enumerated_once() {
    let alphabet = Alphabet { marks: false, fences: false, locations: 2 };
    let mut enumerated = Vec::new();
    programs(4, alphabet, &mut |p| {
        enumerated.push(
            p.threads
                .iter()
                .map(|t| t.iter().map(|o| (o.kind, o.location)).collect::<Vec<_>>())
                .collect::<Vec<_>>(),
        );
        true
    });
    // Represent the class of a program by its least form.
    let least = |threads: &Vec<Vec<(EventKind, u32)>>| {
        let mut forms = BTreeSet::new();
        for flip in [0, 1] {
            let mut form: Vec<Vec<(EventKind, u32)>> =
                threads.iter().map(|t| t.iter().map(|o| (o.0, o.1 ^ flip)).collect()).collect();
            form.sort();
            forms.insert(form);
        }
        forms.into_iter().next().unwrap()
    };
    let classes: BTreeSet<_> = enumerated
        .iter()
        .map(|m| {
            let mut locations: Vec<u32> = m.iter().flatten().map(|o| o.1).collect();
            locations.sort_unstable();
            locations.dedup();
            // Not `least`: a program with a single location that is not the first one must fail the
            // comparison.
            if locations.len() == 1 {
                let mut form = m.clone();
                form.sort();
                form
            } else {
                least(m)
            }
        })
        .collect();
    assert_eq!(classes.len(), enumerated.len(), "a class is enumerated twice");
    let mut wanted = BTreeSet::new();
    for code in 0..4usize.pow(4) {
        let ops: Vec<(EventKind, u32)> = (0..4)
            .map(|i| code / 4usize.pow(i) % 4)
            .map(|c| (if c & 1 == 0 { EventKind::Read } else { EventKind::Write }, (c >> 1) as u32))
            .collect();
        let used: BTreeSet<u32> = ops.iter().map(|o| o.1).collect();
        let is_useful = used.iter().all(|l| {
            let here: Vec<EventKind> = ops.iter().filter(|o| o.1 == *l).map(|o| o.0).collect();
            here.len() >= 2 && here.contains(&EventKind::Write)
        });
        if !is_useful || used == BTreeSet::from([1]) {
            continue;
        }
        for cuts in 0..8 {
            let mut threads = vec![vec![ops[0]]];
            for (i, op) in ops[1..].iter().enumerate() {
                if cuts >> i & 1 == 1 {
                    threads.push(Vec::new());
                }
                threads.last_mut().unwrap().push(*op);
            }
            if used.len() == 1 {
                threads.sort();
                wanted.insert(threads);
            } else {
                wanted.insert(least(&threads));
            }
        }
    }
    assert_eq!(classes, wanted);
}

/// The known order of the models, with a smallest test for each pair that is not ordered. The
/// result does not depend on the number of threads.
#[test]
fn order_of_models_and_separating_tests() {
    let models = compile_all();
    let candidates: Vec<LatticeModel<'_>> = models
        .iter()
        .map(|(k, m)| LatticeModel { name: k.name, model: m, dialect: k.dialect })
        .collect();
    let budget = Budget::new(Limits::default());
    let bound = |threads| Bound { operations: 3, plain: 4, locations: 2, threads };
    let lattice = compare(&candidates, bound(1), &budget).unwrap();
    assert_eq!(lattice.stop, Stop::Complete);
    let at = |name: &str| lattice.names.iter().position(|n| n == name).unwrap();
    for (strong, weak) in [
        ("sc", "tso"),
        ("tso", "pso"),
        ("sc", "pc"),
        ("pc", "pram"),
        ("causal", "pram"),
        ("pram", "slow"),
        ("pram", "local"),
        ("sc", "causal"),
        ("pc", "cache"),
        ("cache", "slow"),
        ("sc", "rc11"),
        ("sc", "armv8"),
        ("sc", "rvwmo"),
        ("rcsc", "rcpc"),
        ("sc", "rcsc"),
        ("location-order", "cache"),
        ("location-order", "cpp-ra"),
        ("rc11", "cpp-ra"),
    ] {
        assert!(
            lattice.is_stronger(at(strong), at(weak)),
            "{strong} allows what {weak} forbids: {:?}",
            lattice.separating[at(strong)][at(weak)].as_ref().map(History::text)
        );
    }
    let separates = |a: &str, b: &str| {
        lattice.separating[at(a)][at(b)].as_ref().map(History::text).unwrap_or_default()
    };
    assert_eq!(separates("tso", "sc"), "W x 1; R y 0 || W y 1; R x 0");
    assert_eq!(separates("pso", "tso"), "R x 1; R y 0 || W y 1; W x 1");
    let again = compare(&candidates, bound(3), &budget).unwrap();
    assert_eq!(again.separating, lattice.separating);
    // Each test separates as stated, and its text parses to the same test.
    for (a, row) in lattice.separating.iter().enumerate() {
        for (b, test) in row.iter().enumerate() {
            let Some(test) = test else { continue };
            assert_eq!(History::parse(&test.text()).as_ref(), Ok(test));
            let allows = |m: usize| {
                HistoryChecker::new(&models[m].1, models[m].0.dialect).allows(test).unwrap()
            };
            assert!(allows(a) && !allows(b), "{}", test.text());
        }
    }
    let classes = lattice.classes();
    assert!(classes[0] == [at("sc")], "{classes:?}");
    assert!(
        mu_axioms::lattice::draw::svg(&lattice)
            .contains("tso allows, sc forbids: W x 1; R y 0 || W y 1; R x 0")
    );
}

/// If a head names no architecture, the dialect follows from the names of the model.
#[test]
fn dialects_follow_from_heads_and_names() {
    let of = |text: &str| {
        Dialect::compile(&mut SourceMap::new(), "m.cat", text, &models::file)
            .map(|(_, dialect)| dialect)
    };
    for (text, dialect) in [
        ("\"SC\"\nflag ~empty [UB] as u\nacyclic po | rf | co | fr as sc", Dialect::Plain),
        (
            "\"Partial\"\nacyclic po & (W * W) | [R]; fencerel(Fence.rw.rw); [W] | co as f",
            Dialect::Of(Architecture::RiscV),
        ),
        (
            "\"mixed\"\nacyclic [W]; po; [MFENCE]; po; [R] | [R & X] as f",
            Dialect::Of(Architecture::X86),
        ),
        ("\"mine\"\nacyclic po & (_ * IC.IALLUIS) | [L] as f", Dialect::Of(Architecture::AArch64)),
        ("\"RC11\"\nacyclic po | rf as f", Dialect::Of(Architecture::C11)),
    ] {
        assert_eq!(of(text).unwrap(), dialect, "{text}");
    }
    let error = of("\"mine\"\nacyclic [NOTHING] as f").unwrap_err();
    assert!(error.message.contains("unknown name `NOTHING`"), "{}", error.message);
    // The head's architecture does not have the name.
    assert!(of("\"RISCV\"\nacyclic [MFENCE] as f").is_err());
    assert!(of("\"mine\"\nacyclic [MFENCE]; po; [DMB.SY] as f").is_err());
}

/// The files with the names of the herd tools' library define what models use of them.
#[test]
fn the_library_serves_models_of_every_architecture() {
    use mu_axioms::Architecture::{AArch64, Arm, C11, Power, RiscV, X86};
    let all = [X86, RiscV, AArch64, Power, Arm, C11];
    let mut sources = SourceMap::new();
    let mut compile = |text: &str, dialect: Dialect| {
        let model = CatModel::compile(
            &mut sources,
            "m.cat",
            text,
            &models::file,
            &dialect.vocabulary(),
            &[],
        );
        model.unwrap_or_else(|e| panic!("{text} {dialect:?}: {}", e.render(&sources)))
    };
    for name in [
        "cross.cat",
        "cos.cat",
        "cos-opt.cat",
        "cos-ok-opt.cat",
        "cos-no-opt.cat",
        "filters.cat",
        "fences.cat",
        "x86fences.cat",
        "ppcfences.cat",
        "armfences.cat",
        "aarch64fences.cat",
    ] {
        for dialect in all.map(Dialect::Of).into_iter().chain([Dialect::Plain]) {
            compile(&format!("\"t\"\ninclude \"{name}\"\nacyclic po as order\n"), dialect);
        }
    }
    // Both definitions of coherence orders that a model can choose, and RVWMO with and without such
    // a choice: all agree with the built-in models.
    let sc = "let com = rf | co | fr\nacyclic po | com as sc\nempty rmw & (fre; coe) as atomic\n";
    let rules = "include \"riscv-defs.cat\"\nacyclic co | rf | fr | po-loc as coherence\n\
                 acyclic co | rfe | fr | ppo as order\nempty rmw & (fre; coe) as atomic\n";
    let models = [
        (
            "sc",
            Dialect::Plain,
            compile(&format!("\"a\"\ninclude \"cos.cat\"\n{sc}"), Dialect::Plain),
        ),
        (
            "sc",
            Dialect::Plain,
            compile(&format!("\"b\"\ninclude \"cos-opt.cat\"\n{sc}"), Dialect::Plain),
        ),
        ("rvwmo", Dialect::Of(RiscV), compile(&format!("RISCV c\n{rules}"), Dialect::Of(RiscV))),
        (
            "rvwmo",
            Dialect::Of(RiscV),
            compile(&format!("RISCV d\ninclude \"cos-opt.cat\"\n{rules}"), Dialect::Of(RiscV)),
        ),
    ];
    let built_in = compile_all();
    for (name, history, _) in table() {
        for (same, dialect, model) in &models {
            let (known, other) = built_in.iter().find(|m| m.0.name == *same).unwrap();
            assert_eq!(
                HistoryChecker::new(model, *dialect).allows(&history).unwrap(),
                HistoryChecker::new(other, known.dialect).allows(&history).unwrap(),
                "{name}: {} and {same}",
                model.name()
            );
        }
    }
}

/// `cross(S1, …, Sn)` is the set of all unions `r1 | … | rn` with `ri` in `Si`. From the sources of
/// each read it gives the possible `rf`, as `lock.cat` of the kernel uses it.
#[test]
fn cross_enumerates_one_relation_of_each_set() {
    let mut sources = SourceMap::new();
    let text = "\"t\"\ninclude \"cross.cat\"\n\
        let single p = p ++ 0\n\
        let sources r = map single ((W * {r}) & loc)\n\
        with given from cross(map sources R)\n\
        empty given \\ rf as within\nempty rf \\ given as all\n";
    let dialect = Dialect::Plain;
    let model =
        CatModel::compile(&mut sources, "m.cat", text, &models::file, &dialect.vocabulary(), &[]);
    let model = model.unwrap_or_else(|e| panic!("{}", e.render(&sources)));
    // The number of unions grows fast with the reads, so only the first tests are run.
    for (_, history, _) in table().into_iter().take(6) {
        assert!(
            HistoryChecker::new(&model, dialect).allows(&history).unwrap(),
            "{}",
            history.text()
        );
    }
}
