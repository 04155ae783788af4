//! One registry of front ends: the library and the command line read the same models, each by its
//! name, with the same counts, stop reasons and errors.

use crate::support::{mu_check, package};
use mu_check::{Run, Specification};

/// Models of all front ends, with their parameters.
const MODELS: [(&str, &[(&str, &str)]); 12] = [
    ("tests/files/counter.mcrl2", &[]),
    ("tests/files/counter.lps", &[]),
    ("tests/files/counter.pbes", &[]),
    ("tests/files/declared.lts", &[]),
    ("specs/cubicle/naive_mutex.cub", &[("processes", "2")]),
    ("specs/cubicle/arbiter_v1.cub", &[("processes", "2")]),
    // Its store buffers are unbounded, so nothing is cut.
    ("docs/gallery/rwc.litmus", &[]),
    // Their store buffers have the capacity 1, which cuts behaviour.
    ("specs/x86/naive_mutex.asm", &[]),
    ("specs/x86/spinlock.asm", &[]),
    ("specs/x86/mutex_xchg.asm", &[]),
    ("@counter.aut.gz", &[]),
    ("@counter.fsm", &[]),
];

#[test]
fn the_library_reads_what_the_command_line_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| match name.strip_prefix('@') {
        Some(name) => folder.path().join(name).display().to_string(),
        None => package(name),
    };
    for out in ["@counter.aut.gz", "@counter.fsm"] {
        let made = mu_check(&["convert".into(), package(MODELS[0].0), path(out)]);
        assert_eq!(made.code, 0, "{}", made.stderr);
    }
    let mut cut = 0;
    for (name, parameters) in MODELS {
        let file = path(name);
        let mut words = vec!["explore".to_string(), file.clone()];
        words.extend(["--without", "symmetry"].map(String::from));
        words.extend(parameters.iter().flat_map(|(n, v)| ["-D".into(), format!("{n}={v}")]));
        if name.ends_with(".asm") {
            words.extend(["--buffer", "1"].map(String::from));
        }
        let printed = mu_check(&words);
        let json = &printed.json;
        let specification = Specification::open(&file).unwrap();
        let buffer = name.ends_with(".asm").then_some(1);
        let specification = parameters
            .iter()
            .fold(specification, |s, (n, v)| s.with(*n, v))
            .with_load_options(|options| options.memory.buffer = buffer);
        let model = specification.model().unwrap_or_else(|e| panic!("{name}: {e}"));
        let counts = model.explore(&Run::new().symmetry(false)).unwrap();
        assert_eq!(
            json["states"].to_string(),
            counts.states.to_string(),
            "{name}: {}",
            printed.stderr
        );
        assert_eq!(json["stop"], counts.stop.word(), "{name}");
        cut += usize::from(model.buffers_were_cut());
        for (n, v) in parameters {
            assert!(model.parameters().any(|p| p == (*n, v.to_string())), "{name}: {n}");
        }
    }
    assert!(cut > 0, "no model has a bound that cuts its behaviour");
}

#[test]
fn verdicts_for_a_part_of_the_behaviour_are_unknown() {
    let program = Specification::open(package("specs/x86/naive_mutex.asm")).unwrap();
    let model =
        program.with_load_options(|options| options.memory.buffer = Some(1)).model().unwrap();
    assert!(model.buffers_were_cut());
    let verdict = |formula: &str| model.check(formula, &Run::new()).unwrap().verdict;
    // Transitions that were cut may lead to a deadlock, but no longer avoid a label that occurs.
    assert!(verdict("[true*]<true>true").stop().is_some());
    assert_eq!(verdict("<true>true"), mu_check::Verdict::True);
}

#[test]
fn errors_of_all_languages_are_those_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("wrong.mcrl2", "act a;\ninit b;\n"),
        ("wrong.cub", "var X : int\ninit () { X := 0 }\n"),
        ("wrong.asm", "begin shared_data\n x dd\nend shared_data\n"),
        ("wrong.litmus", "X86 wrong\n{ }\n P0 ;\n mov eax ;\nexists (x=1)\n"),
        ("wrong.pbes", "pbes nu X = Y;\ninit X;\n"),
        ("wrong.aut", "des (0, 1, 2)\n(0, a, 5)\n"),
        ("wrong.pg", "parity 1;\n"),
        ("wrong.cat", "let x = rf\n"),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let file = file.display().to_string();
        let printed = mu_check(&["explore", &file]);
        let error = Specification::open(&file).and_then(|s| s.model()).unwrap_err();
        assert_eq!(printed.code, 2, "{name}: {}", printed.stderr);
        assert!(printed.stderr.contains(error.message()), "{name}: {error}\n{}", printed.stderr);
    }
}
