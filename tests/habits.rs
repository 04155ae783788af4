//! Habits of users of other tools, and the first things that they try: built-in machines by name,
//! hiding and renaming in every command, files of other releases, reports for continuous
//! integration. Each was once an obstacle.

use crate::support::{mu_check, package};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Runs a command in a folder without files of the project.
fn run_in(folder: &Path, words: &str) -> (Option<i32>, String, String) {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(words.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Machines, interfaces, and faults are read by name; a file of that name has priority.
#[test]
fn built_in_machines_need_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let words = "conform tso --interface machine --against sc,tso --operations 1 --format json";
    let (code, out, err) = run_in(folder.path(), words);
    assert_eq!(code, Some(0), "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&json["verdict"], &json["model"]), (&"true".into(), &"tso".into()));
    let by_file = run_in(
        Path::new(&package("")),
        "conform specs/machines/tso.spec --interface specs/machines/machine.interface --against sc,tso --operations 1 --format json",
    );
    let same: Value = serde_json::from_str(&by_file.1).unwrap();
    assert_eq!(json["states"], same["states"]);
    // Other commands and the faults.
    assert_eq!(run_in(folder.path(), "explore sc --quiet").0, Some(0));
    let faults = "conform tso --interface machine --against tso --operations 2 --fault tso.faults";
    assert!(run_in(folder.path(), faults).1.contains("faults"), "faults by name");
    // Names that are not built in.
    let (code, _, err) = run_in(folder.path(), "conform tso --interface nothing");
    assert_eq!(code, Some(2));
    assert!(
        err.contains("a built-in interface: machine, direct, buffer, coalescing, ooo, msi"),
        "{err}"
    );
    // A file of that name.
    file(folder.path(), "tso", "act a; init a . delta;");
    let (_, out, _) = run_in(folder.path(), "explore tso --format json");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["transitions"], 1);
}

/// Every built-in text is that of the file in `specs/machines`.
#[test]
fn built_in_machines_are_all_files_of_their_folder() {
    for entry in std::fs::read_dir(package("specs/machines")).unwrap() {
        let path = entry.unwrap().path();
        let name = Path::new(path.file_name().unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        let found = mu_check::frontends::machines::machine(name)
            .or_else(|| mu_check::frontends::machines::interface(name))
            .or_else(|| mu_check::frontends::machines::faults(name));
        assert_eq!(found, Some(text.as_str()), "{}", path.display());
    }
}

/// The verdict is that of the exit code, and each model and fault is a test case.
#[test]
fn conformance_has_one_verdict_and_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &str| {
        let (code, out, err) = run_in(folder.path(), words);
        let json: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {err}"));
        (code, json["verdict"].clone())
    };
    let sc = "conform tso --interface machine --operations 2 --format json --against";
    assert_eq!(run(&format!("{sc} sc")), (Some(1), "false".into()));
    assert_eq!(run(&format!("{sc} tso")), (Some(0), "true".into()));
    assert_eq!(run(&format!("{sc} tso --max-states 10")), (Some(3), "unknown".into()));
    let (code, _, err) = run_in(folder.path(), &format!("{sc} sc,tso --junit report.xml"));
    assert_eq!(code, Some(1), "{err}");
    let report = std::fs::read_to_string(folder.path().join("report.xml")).unwrap();
    assert!(report.contains("tests=\"2\" failures=\"1\" errors=\"0\""), "{report}");
    assert!(report.contains("sc forbids W x 1; R y 0 || W y 1; R x 0"), "{report}");
    // Without `--against`, the conclusion is one case.
    let all = "conform tso --interface machine --operations 2 --junit -";
    let (code, out, _) = run_in(folder.path(), all);
    assert_eq!(code, Some(0));
    assert!(out.contains("tests=\"1\" failures=\"0\" errors=\"0\""), "{out}");
    // An error is in the report too.
    let (code, _, _) =
        run_in(folder.path(), "conform none.mcrl2 --interface machine --junit e.xml");
    assert_eq!(code, Some(2));
    let report = std::fs::read_to_string(folder.path().join("e.xml")).unwrap();
    assert!(report.contains("errors=\"1\"") && report.contains("cannot read `none.mcrl2`"));
    // A file that is not written is no silent success.
    let (_, _, err) = run_in(folder.path(), &format!("{sc} tso --execution cycle.svg"));
    assert!(err.contains("cycle.svg is not written: no violation was found"), "{err}");
}

const CHAIN: &str = "act a, b, c: Nat;
proc P(n: Nat) = (n < 2) -> a(n) . b(n) . P(n + 1) + (n == 2) -> c(n) . P(0);
init P(0);
";

/// `check` and `simulate` hide and rename actions of specifications and of stored systems.
#[test]
fn formulas_and_walks_have_hidden_and_renamed_actions() {
    let folder = tempfile::tempdir().unwrap();
    let spec = file(folder.path(), "chain.mcrl2", CHAIN);
    let stored = folder.path().join("chain.aut");
    let spec = spec.to_str().unwrap();
    let stored = stored.to_str().unwrap();
    assert_eq!(mu_check(&["explore", spec, "--out", stored]).code, 0);
    let verdict = |model: &str, formula: &str, more: &[&str]| {
        let outcome = mu_check(&[&["check", model, "-f", formula], more].concat());
        let verdict = outcome.json["results"][0]["verdict"].as_str().map(String::from);
        verdict.unwrap_or_else(|| panic!("{model} {formula}: {}", outcome.stderr))
    };
    for model in [spec, stored] {
        assert_eq!(verdict(model, "<a(0).tau.a(1)>true", &[]), "false");
        assert_eq!(verdict(model, "<a(0).tau.a(1)>true", &["--hide", "b"]), "true");
        assert_eq!(
            verdict(model, "<d(0).tau.d(1)>true", &["--rename", "a=d", "--hide", "b"]),
            "true"
        );
        // Renaming comes first.
        assert_eq!(
            verdict(model, "<tau.tau.tau.tau.c(2)>true", &["--rename", "a=b", "--hide", "b"]),
            "true"
        );
        let script = file(folder.path(), "steps.txt", "take d\ntake tau\n");
        let words = ["simulate", model, "--script", script.to_str().unwrap()];
        let outcome = mu_check(&[&words[..], &["--rename", "a=d", "--hide", "b"]].concat());
        assert_eq!(outcome.code, 0, "{model}: {}", outcome.stderr);
    }
    // Unknown names are errors, and unsupported methods are.
    let refused = |words: &[&str], part: &str| {
        let outcome = mu_check(words);
        assert_eq!(outcome.code, 2, "{words:?}");
        assert!(outcome.stderr.contains(part), "{words:?}: {}", outcome.stderr);
    };
    refused(&["check", spec, "-f", "true", "--hide", "bb"], "the model has no such action");
    refused(&["check", spec, "-f", "true", "--hide", "b(1)"], "without arguments");
    let saved = folder.path().join("saved");
    let saved = saved.to_str().unwrap();
    refused(&["check", spec, "-f", "true", "--hide", "b", "--checkpoint", saved], "do not support");
    let cub = package("specs/cubicle/lamport_full.cub");
    refused(&["check", &cub, "-f", "true", "--hide", "b"], "specifications and transition systems");
}

/// A parameter that is written without `${…}` is explained.
#[test]
fn parameters_have_their_own_form() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "$param combine: Bool = true;\n$param comb: Bool = true;\nact a;\ninit (combine) -> a;\n";
    let model = file(folder.path(), "m.mcrl2", text);
    let outcome = mu_check(&["explore", model.to_str().unwrap()]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.contains("`combine` is a parameter: write `${combine}` for its value"),
        "{}",
        outcome.stderr
    );
    let other =
        file(folder.path(), "n.mcrl2", "$param combine: Bool = true;\nact a;\ninit (comb) -> a;\n");
    let outcome = mu_check(&["explore", other.to_str().unwrap()]);
    assert!(!outcome.stderr.contains("is a parameter"), "{}", outcome.stderr);
}

/// Files of other tools and releases are named, with a way out.
#[test]
fn files_of_other_tools_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old.lts");
    std::fs::write(&old, b"\x00\x8b\xaf\x83\x04\x80\x9d\x03\x4c\x6f\x63").unwrap();
    let project = "<root>\n <spec>small.mcrl2</spec>\n <properties/>\n</root>\n";
    let project = file(folder.path(), "big.mcrl2proj", project);
    let log = file(folder.path(), "sim.log", "[100] cpu0: ST addr=0x10 data=0x1\n");
    let chain = file(folder.path(), "chain.mcrl2", CHAIN);
    let chain = chain.to_str().unwrap();
    for (words, part) in [
        (vec!["info", old.to_str().unwrap()], "from before 2020"),
        (vec!["explore", project.to_str().unwrap()], "small.mcrl2`"),
        (vec!["trace", log.to_str().unwrap()], "thread, operation, address, value"),
        (vec!["check", chain, "-f", "false", "--evidence", "e.trc"], "simulate --trace"),
    ] {
        let outcome = mu_check(&words);
        assert_eq!(outcome.code, 2, "{words:?}");
        assert!(outcome.stderr.contains(part), "{words:?}: {}", outcome.stderr);
    }
    // `reduce IN OUT` as `convert IN OUT`.
    let out = folder.path().join("small.aut");
    assert_eq!(mu_check(&["reduce", chain, out.to_str().unwrap()]).code, 0);
    assert!(std::fs::read_to_string(&out).unwrap().starts_with("des "));
    // The internal action of CADP.
    let cadp = file(folder.path(), "cadp.aut", "des (0,2,3)\n(0,a,1)\n(1,i,2)\n");
    let cadp = cadp.to_str().unwrap();
    let note = "`i` is visible";
    assert!(mu_check(&["check", cadp, "-f", "<a.tau>true"]).stderr.contains(note));
    assert!(!mu_check(&["check", cadp, "-f", "<a>true"]).stderr.contains(note));
}

/// Branching evidence begins with the path to the state that decides the verdict.
#[test]
fn branching_evidence_begins_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let text = "act a, b, c, d: Nat;
proc P = sum n: Nat. (n < 3) -> a(n) . b(n) . Q(n);
     Q(n: Nat) = c(n) . Q(n) + d(n) . R;
     R = d(7) . R;
init P;
";
    let model = file(folder.path(), "m.mcrl2", text);
    // After a(1) no run has b(2) in it.
    let formula = "[a(1) . b(1)] <true* . b(2)> true";
    let (code, out, err) = run_in(
        folder.path(),
        &format!("check {} -f {}", model.display(), formula.replace(' ', "")),
    );
    assert_eq!(code, Some(1), "{err}");
    assert!(out.contains("counterexample, a path to the state that decides it"), "{out}");
    assert!(out.contains("     1  a(1)\n") && out.contains("     2  b(1)\n"), "{out}");
    assert!(out.contains("after step 2 the verdict depends on several runs"), "{out}");
}

/// Two processes enter together: the invariant fails for two and more.
const LOCK: &str = "const N: 2;
type pid: 1..N; st: enum {Idle, Want, Crit};
var pc: array[pid] of st;
ruleset i: pid do
 rule \"want\" pc[i] = Idle ==> begin pc[i] := Want; endrule;
 rule \"enter it\" pc[i] = Want ==> begin pc[i] := Crit; endrule;
 rule \"leave\" pc[i] = Crit ==> begin pc[i] := Idle; endrule;
endruleset;
startstate begin for i: pid do pc[i] := Idle; end; endstartstate;
invariant \"mutex\" !exists i: pid do exists j: pid do i != j & pc[i] = Crit & pc[j] = Crit end end;
";

/// A violated invariant is drawn, stepped through, and reported.
#[test]
fn failures_of_murphi_models_are_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    file(here, "lock.m", LOCK);
    // Two start states, a failing rule, and a deadlock.
    let two = LOCK.replace(
        "startstate begin for i: pid do pc[i] := Idle; end; endstartstate;",
        "startstate \"idle\" begin for i: pid do pc[i] := Idle; end; endstartstate;
startstate \"waiting\" begin for i: pid do pc[i] := Want; end; endstartstate;",
    );
    file(here, "two.m", &two);
    file(here, "error.m", &LOCK.replace("pc[i] := Crit;", "pc[i] := Crit; assert i != 2 \"two\";"));
    file(
        here,
        "stuck.m",
        "var x: 0..3;\nstartstate begin x := 0; end;\nrule \"up\" x < 3 ==> begin x := x + 1; end;\n",
    );
    for (model, last) in [
        ("lock.m", Some("violation(mutex)")),
        ("two.m", Some("violation(mutex)")),
        ("error.m", Some("error")),
        ("stuck.m", None),
    ] {
        for command in ["explore", "check"] {
            let (code, out, err) = run_in(here, &format!("{command} {model} --evidence run.json"));
            assert_eq!(code, Some(1), "{model}: {err}{out}");
            let text = std::fs::read_to_string(here.join("run.json")).unwrap();
            let run: Value = serde_json::from_str(&text).unwrap();
            let steps = run["steps"].as_array().unwrap();
            if let Some(last) = last {
                assert_eq!(steps.last().unwrap()["action"], last, "{model}");
            }
            assert!(steps.len() >= 3 || model == "error.m", "{model}: {text}");
            std::fs::remove_file(here.join("run.json")).unwrap();
            // Simulation steps through it.
            run_in(here, &format!("{command} {model} --evidence run.json"));
            file(here, "quit.txt", "trace\nquit\n");
            let words = format!("simulate {model} --trace run.json --script quit.txt");
            let (code, out, err) = run_in(here, &words);
            assert_eq!(code, Some(0), "{model}: {err}");
            assert!(last.is_none_or(|l| out.contains(l)), "{model}: {out}");
        }
        let (code, _, err) = run_in(here, &format!("explore {model} --evidence run.svg"));
        assert_eq!(code, Some(1), "{model}: {err}");
        assert!(std::fs::read_to_string(here.join("run.svg")).unwrap().contains("</svg>"));
        let (code, _, err) = run_in(here, &format!("explore {model} --evidence run.html"));
        assert_eq!(code, Some(1), "{model}: {err}");
        let (code, out, _) = run_in(here, &format!("{model} --junit -"));
        assert_eq!(code, Some(1), "{model}");
        assert!(out.contains("failures=\"1\" errors=\"0\""), "{model}: {out}");
    }
    // Without a failure there is no run.
    let (code, _, err) = run_in(here, "explore lock.m -D N=1 --evidence none.svg");
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("none.svg is not written") && !here.join("none.svg").exists(), "{err}");
    let (code, out, _) = run_in(here, "lock.m -D N=1 --junit -");
    assert_eq!(code, Some(0));
    assert!(out.contains("failures=\"0\" errors=\"0\""), "{out}");
    // Another search has no such failure.
    let (code, _, err) = run_in(here, "explore lock.m --evidence x.svg --engine symbolic");
    assert_eq!(code, Some(2));
    assert!(err.contains("for the check of its claims"), "{err}");
}

/// The constants of a Murphi model are swept; rows that violate a constraint, or follow a limit,
/// are listed.
#[test]
fn sweeps_list_what_they_do_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    file(here, "lock.m", LOCK);
    file(here, "leave.mcf", "[true*.violation(mutex)]false");
    let words = "sweep lock.m leave.mcf -D N=1..=3 --out sizes --format json --threads 1";
    let (code, out, err) = run_in(here, words);
    assert_eq!(code, Some(1), "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    let verdicts: Vec<(&str, &str, &str)> = json["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| {
            let texts = [&r["job"], &r["parameters"]["N"], &r["verdict"]];
            let [job, n, verdict] = texts.map(|v| v.as_str().unwrap());
            (job, n, verdict)
        })
        .collect();
    let expected = [
        ("explore", "1", "true"),
        ("explore", "2", "false"),
        ("explore", "3", "false"),
        ("leave", "1", "true"),
        ("leave", "2", "false"),
        ("leave", "3", "false"),
    ];
    assert_eq!(verdicts, expected);
    assert_eq!(run_in(here, "sweep lock.m -D M=1,2 --out other").0, Some(2), "no such constant");
    // A constraint.
    let bounded = "$param n: Pos = 1 where n <= 2;\nact a;\nproc P(i: Nat) = (i < ${n}) -> a . P(i + 1);\ninit P(0);\n";
    file(here, "bounded.mcrl2", bounded);
    let (code, out, err) = run_in(here, "sweep bounded.mcrl2 -D n=1..=4 --out b --threads 1");
    assert_eq!(code, Some(0), "{err}");
    assert!(
        out.contains("Not run:\n\n- explore n=3 (`n = 3` violates `n <= 2`)\n- explore n=4"),
        "{out}"
    );
    assert_eq!(run_in(here, "sweep bounded.mcrl2 -D n=3,4 --out b2").0, Some(2));
    // A limit.
    let words = "sweep bounded.mcrl2 -D n=1,2 --out c --max-states 1 --format json --threads 1";
    let (code, out, err) = run_in(here, words);
    assert_eq!(code, Some(3), "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["not_run"][0]["parameters"]["n"], "2");
    assert_eq!(json["not_run"][0]["reason"], "a smaller row reached a limit");
}
