//! Evidence in all its forms: text of counterexamples, files, the charts of the gallery.

use crate::support::faults::{FAULTS, FORMULAS, SMALL, narrow, patch};
use crate::support::{defines, mu_check, package};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Runs the seeded fault of a name on a formula and writes its evidence.
fn evidence_of(folder: &Path, fault: &str, formula: &str, evidence: &Path) -> Value {
    let fault = FAULTS.iter().find(|f| f.name == fault).unwrap();
    let model = folder.join(format!("{}.spec", fault.name));
    let specification = std::fs::read_to_string(package("specs/arcx.spec")).unwrap();
    std::fs::write(&model, patch(&specification, fault.edits)).unwrap();
    let mut path = PathBuf::from(package(&format!("formulas/{formula}.mcf")));
    if formula.starts_with('3') {
        let text =
            narrow(&std::fs::read_to_string(&path).unwrap(), crate::support::faults::FIRST_STORES);
        path = folder.join(format!("{formula}.mcf"));
        std::fs::write(&path, text).unwrap();
    }
    let values: Vec<(&str, u32)> =
        SMALL.iter().map(|s| *fault.defines.iter().find(|c| c.0 == s.0).unwrap_or(s)).collect();
    let mut arguments =
        vec!["check".to_string(), model.display().to_string(), path.display().to_string()];
    arguments.extend(["--evidence".to_string(), evidence.display().to_string()]);
    arguments.extend(defines(&values));
    let outcome = mu_check(&arguments);
    assert_eq!(outcome.code, 1, "{}: {}", fault.name, outcome.stderr);
    outcome.json
}

/// The charts that the gallery shows: fault, formula.
const GALLERY: [(&str, &str); 3] = [
    ("load_passes_buffer", "2.selfobserving"),
    ("own_observation_late", "1a.gos"),
    ("addresses_alias", "1b.gos"),
];

/// The pictures in `docs/gallery` are what the command draws now; `MU_CHECK_WRITE=1` draws them
/// anew.
#[test]
fn the_gallery_is_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let gallery = PathBuf::from(package("docs/gallery"));
    let index = std::fs::read_to_string(gallery.join("README.md")).unwrap_or_default();
    for (fault, formula) in GALLERY {
        let drawn = folder.path().join(format!("{fault}.svg"));
        evidence_of(folder.path(), fault, formula, &drawn);
        let (drawn, kept) =
            (std::fs::read_to_string(drawn).unwrap(), gallery.join(format!("{fault}.svg")));
        if std::env::var_os("MU_CHECK_WRITE").is_some() {
            std::fs::create_dir_all(&gallery).unwrap();
            std::fs::write(&kept, &drawn).unwrap();
        }
        assert!(
            std::fs::read_to_string(&kept).unwrap_or_default() == drawn,
            "{} is not what is drawn now",
            kept.display()
        );
        assert!(
            index.contains(&format!("{fault}.svg")),
            "docs/gallery/README.md does not show {fault}"
        );
    }
}

/// The execution of a litmus test in `docs/gallery` is what the command draws now;
/// `MU_CHECK_WRITE=1` draws it anew.
#[test]
fn the_execution_in_the_gallery_is_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = folder.path().join("drawn.svg");
    let run = |out: &Path, model: &str| {
        let test = package("docs/gallery/rwc.litmus");
        mu_check(&["litmus", &test, "--model", model, "--evidence", &out.display().to_string()])
    };
    let outcome = run(&drawn, "tso");
    assert_eq!(
        (outcome.code, outcome.json["tests"][0]["verdict"].as_str()),
        (0, Some("true")),
        "{}",
        outcome.stderr
    );
    let kept = PathBuf::from(package("docs/gallery/read_to_write_causality.svg"));
    let drawn = std::fs::read_to_string(drawn).unwrap();
    if std::env::var_os("MU_CHECK_WRITE").is_some() {
        std::fs::write(&kept, &drawn).unwrap();
    }
    assert!(
        std::fs::read_to_string(&kept).unwrap_or_default() == drawn,
        "{} is not what is drawn now",
        kept.display()
    );
    // Graphviz has the same arrows.
    let graph = folder.path().join("drawn.dot");
    assert_eq!(run(&graph, "tso").code, 0);
    let graph = std::fs::read_to_string(graph).unwrap();
    for arrow in [
        "a -> b [label=\"rf\"",
        "b -> c [label=\"po\"",
        "c -> d [label=\"fr\"",
        "d -> e [label=\"po\"",
        "e -> a [label=\"fr\"",
    ] {
        assert!(graph.contains(arrow), "{arrow}\n{graph}");
    }
    // Without evidence no file is written.
    let none = folder.path().join("none.svg");
    let outcome = run(&none, "sc");
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("no execution decides it") && !none.exists(),
        "{}",
        outcome.stderr
    );
}

/// The story of a load that passes the write buffer, step by step.
#[test]
fn steps_say_what_was_hidden_and_who_did_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("why.json");
    let json = evidence_of(folder.path(), "load_passes_buffer", "2.selfobserving", &file);
    let steps = json["results"][0]["evidence"].as_array().unwrap();
    let file_json: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(file_json["steps"].as_array().unwrap(), steps);
    assert_eq!(
        (&file_json["kind"], &file_json["linear"], &file_json["back_to"]),
        (&"counterexample".into(), &true.into(), &Value::Null)
    );
    let step = |hidden: &str| {
        let found = steps.iter().find(|s| {
            s["hidden"].as_array().unwrap().iter().any(|h| h.as_str().unwrap().starts_with(hidden))
        });
        found.unwrap_or_else(|| panic!("no step hides {hidden}: {steps:?}"))
    };
    // A hidden communication: its values, the two sides, what changed in either.
    let store = step("ip_wb_sync_store");
    assert_eq!(store["action"], "tau");
    assert_eq!(
        store["hidden"][0],
        "ip_wb_sync_store(c_processor_core_0_id, c_addr_0, c_data_0, 0)"
    );
    let from: Vec<(&str, &str)> = store["parts"][0]["from"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["component"].as_str().unwrap(), f["action"].as_str().unwrap()))
        .collect();
    assert_eq!(
        from,
        [
            ("P_IP(c_processor_core_0_id)", "ip_sync_store"),
            ("P_WB(c_processor_core_0_id)", "wb_sync_store")
        ]
    );
    assert!(
        store["changed"]
            .as_object()
            .unwrap()
            .values()
            .any(|v| v.as_str().unwrap().contains("c_occupied(c_addr_0, c_data_0, 0)")),
        "{store}"
    );
    // What the memory alone did, with the value that no communication shows.
    let read = step("mem_read");
    assert_eq!(read["hidden"][0], "mem_read(c_addr_0, c_data_undefined, c_processor_core_0_id, 1)");
    assert_eq!(read["parts"][0]["from"][0]["component"], "P_Memory");
    // The last step is visible, and no part of it hidden.
    let last = steps.last().unwrap();
    assert!(
        last["action"].as_str().unwrap().starts_with("end_load(")
            && last["parts"][0]["hidden"] == false,
        "{last}"
    );
    // Each parameter has a name of its own.
    let mut names: Vec<&str> = file_json["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

const MODEL: &str = "act a, b, c, x, y: Nat; d;
proc P(n: Nat) = (n < 2) -> x(n) . P(n + 1) + (n == 2) -> a(7) . P(2);
Q = sum m: Nat. y(m) . b(m) . Q;
init hide({c}, allow({a, b, c}, comm({x|y -> c}, P(0) || Q)));
";

fn write(folder: &Path, name: &str, text: &str) -> String {
    std::fs::write(folder.join(name), text).unwrap();
    folder.join(name).display().to_string()
}

#[test]
fn a_file_for_each_formula_in_the_form_of_its_ending() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let model = write(f, "model.mcrl2", MODEL);
    let never = write(f, "never.mcf", "[true* . a(7)]false");
    let always = write(f, "always.mcf", "mu X. ([true]X && <true>true)");
    let both = |ending: &str| {
        let out = f.join(format!("e.{ending}")).display().to_string();
        let outcome = mu_check(&["check", &model, &never, &always, "--evidence", &out]);
        assert_eq!(outcome.code, 1, "{}", outcome.stderr);
        let read =
            |name: &str| std::fs::read_to_string(f.join(format!("e.{name}.{ending}"))).unwrap();
        (read("never"), read("always"))
    };
    let (path, cycle) = both("svg");
    // Lanes P and Q, an arrow from the sender of the value to its receiver.
    assert!(
        path.contains(">P</text>")
            && path.contains(">Q</text>")
            && path.contains("head-arrow-hidden")
            && path.contains("c(1)"),
        "{path}"
    );
    assert!(!path.contains("class=\"loop\"") && cycle.contains("and again from step"), "{cycle}");
    let (aut, _) = both("aut");
    assert!(aut.starts_with("des (0,") && aut.contains("\"a(7)\""), "{aut}");
    assert!(both("dot").0.starts_with("digraph"));
    let (_, cycle) = both("json");
    let cycle: Value = serde_json::from_str(&cycle).unwrap();
    let back = cycle["back_to"].as_u64().unwrap() as usize;
    assert_eq!(cycle["steps"][back]["action"], "a(7)", "{cycle}");
    // All parameters of each state, by option.
    let outcome = mu_check(&["check", &model, &never, "--full-states"]);
    let steps = outcome.json["results"][0]["evidence"].as_array().unwrap();
    let known = |s: &Value| s["state"].as_object().unwrap().len();
    assert!(steps.iter().all(|s| known(s) >= 2), "{steps:?}");
    let wrong = mu_check(&["check", &model, &never, "--evidence", "e.pdf"]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("e.pdf") && wrong.stderr.contains(".svg"),
        "{}",
        wrong.stderr
    );
}

/// Text output: a witness if the outer operator requires one, and below each step its changes with
/// their component.
#[test]
fn text_shows_witnesses_and_what_each_step_changed() {
    let folder = tempfile::tempdir().unwrap();
    let model = write(folder.path(), "model.mcrl2", MODEL);
    let printed = |formula: &str, more: &[&str]| {
        let formula = write(folder.path(), "f.mcf", formula);
        let run = std::process::Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .args(["check", &model, &formula])
            .args(more)
            .output()
            .unwrap();
        String::from_utf8(run.stdout).unwrap()
    };
    for asks in [
        "<true* . a(7)>true",
        "mu X. (<a(7)>true || <true>X)",
        "exists n: Nat. val(n < 9) && <true* . a(n)>true",
        "![true* . a(7)]false",
        "nu X. <true>X",
    ] {
        let text = printed(asks, &[]);
        assert!(
            text.contains(": true")
                && (text.contains("witness, a path") || text.contains("witness for n = 7, a path"))
                && text.contains("1  tau  (hidden: c(0))"),
            "{asks}: {text}"
        );
    }
    for everywhere in ["[true*]<true>true", "nu X. ([true]X && <true>true)", "!<true* . a(8)>true"]
    {
        let text = printed(everywhere, &[]);
        assert!(text.contains(": true") && !text.contains("witness"), "{everywhere}: {text}");
    }
    let text = printed("[true* . b(1)]false", &[]);
    assert_eq!(
        text.lines().skip(1).collect::<Vec<_>>().join("\n").replace("_1", ""),
        "  counterexample, a path:\n     1  tau  (hidden: c(0))\n          P: n = 1\n     2  b(0)\n     3  tau  (hidden: c(1))\n          \
         P: n = 2\n          Q: m = 1\n     4  b(1)",
        "{text}"
    );
    let all = printed("[true* . b(1)]false", &["--full-states"]);
    assert_eq!(all.matches("P: ").count(), 4, "{all}");
}

/// Evidence that is no run is drawn as a tree of its steps.
/// Checks the value of an outer quantifier for a path, a lasso, and branching evidence.
#[test]
fn evidence_names_the_value_that_it_is_for() {
    let folder = tempfile::tempdir().unwrap();
    let text = "act request, serve: Nat;
        proc P(s: FSet(Nat)) = sum f: Nat. (f < 3 && !(f in s)) -> request(f) . P(s + {f})
          + sum f: Nat. (f < 2 && f in s) -> serve(f) . P(s - {f});
        init P({});";
    let model = write(folder.path(), "lift.mcrl2", text);
    for (formula, heading) in [
        (
            "forall f: Nat. val(f < 3) => [true* . request(f)]mu X. (<true>true && [!serve(f)]X)",
            "counterexample for f = ",
        ),
        (
            "forall f: Nat. val(f < 3) => [true* . request(f)]<true* . serve(f)>true",
            "counterexample for f = 2, ",
        ),
        ("forall f: Nat. val(f < 3) => [true* . serve(f) . serve(f)]false && <request(0)>true", ""),
        (
            "exists f: Nat. val(f < 3 && f > 0) && <true* . request(f)><true* . serve(f)>true",
            "witness for f = 1, ",
        ),
        ("nu X(f: Nat = 0). [request(f)]X(f + 1) && [request(2)]false", "counterexample, "),
    ] {
        let outcome = std::process::Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .args(["check", &model, "-f", formula])
            .output()
            .unwrap();
        let out = String::from_utf8(outcome.stdout).unwrap();
        assert!(out.contains(heading), "{formula}: {out}");
        let json = mu_check(&["check", &model, "-f", formula]).json;
        let values = &json["results"][0]["values"];
        assert_eq!(values.is_object(), heading.contains(" for f"), "{json}");
    }
}

#[test]
fn evidence_that_branches_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let model = write(
        folder.path(),
        "model.mcrl2",
        "act a, b: Nat; proc P(n: Nat) = a(n) . P(0) + (n == 0) -> b(n) . P(1); init P(0);",
    );
    let formula =
        write(folder.path(), "f.mcf", "nu X. (<exists n: Nat. a(n)>X && (<b(0)>X || <a(1)>X))");
    let out = folder.path().join("why.svg");
    let outcome = mu_check(&["check", &model, &formula, "--evidence", &out.display().to_string()]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let drawn = std::fs::read_to_string(out).unwrap();
    for text in [
        "holds; a witness of 3 steps",
        ">a(0)</text>",
        ">b(0)</text>",
        ">a(1)</text>",
        "to state 0",
    ] {
        assert!(drawn.contains(text), "{text}: {drawn}");
    }
}

#[test]
fn untested_parts_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let model = write(folder.path(), "model.mcrl2", MODEL);
    let formula = write(folder.path(), "f.mcf", "[true* . d . b(0)]false && [true* . b(5)]false");
    let outcome = mu_check(&["check", &model, &formula]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let vacuous = outcome.json["results"][0]["vacuous"].as_array().unwrap();
    assert!(vacuous.len() == 1 && vacuous[0]["line"] == 1, "{}", outcome.json);
    assert!(
        outcome.stderr.contains("f.mcf:1:") && outcome.stderr.contains("warning"),
        "{}",
        outcome.stderr
    );
    // What has a witness was tested.
    let model = write(folder.path(), "short.mcrl2", "act a: Nat; init a(1) . delta;");
    for text in ["<true* . a(1)>true", "exists n: Nat. <true* . a(n)>true"] {
        let formula = write(folder.path(), "w.mcf", text);
        let outcome = mu_check(&["check", &model, &formula]);
        assert_eq!(
            (outcome.code, outcome.stderr.contains("warning")),
            (0, false),
            "{}",
            outcome.stderr
        );
    }
}

/// An argument without a value is an element of the sort, though not a known one.
#[test]
fn labels_without_a_value_have_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let model = write(
        folder.path(),
        "model.mcrl2",
        "sort D = struct d1 | d2; act a: D; map f: D -> D; init a(f(d2)) . delta;",
    );
    for (text, code) in [("exists d: D. <a(d)>true", 0), ("forall d: D. [a(d)]false", 1)] {
        let formula = write(folder.path(), "f.mcf", text);
        let outcome = mu_check(&["check", &model, &formula]);
        assert_eq!(outcome.code, code, "{text}: {}", outcome.stderr);
    }
}

/// For looking: charts of all faults, in `target/charts`. `cargo test --release --test evidence --
/// --ignored`
#[test]
#[ignore = "draws all charts"]
fn all_charts() {
    let folder = PathBuf::from(package("target/charts"));
    std::fs::create_dir_all(&folder).unwrap();
    for fault in FAULTS {
        for (formula, _) in FORMULAS.iter().zip(fault.verdicts.bytes()).filter(|(_, v)| *v == b'F')
        {
            evidence_of(
                &folder,
                fault.name,
                formula,
                &folder.join(format!("{}.{formula}.svg", fault.name)),
            );
        }
    }
}

/// The check of evidence evaluates quantifiers over infinite sorts for some values only. That is no
/// contradiction if other values decide.
#[test]
fn quantified_actions_over_infinite_sorts_have_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("m.mcrl2").display().to_string();
    std::fs::write(&model, "sort S = struct s1(n: Nat); act a: Nat; init a(0) . delta;").unwrap();
    for (formula, code) in [
        ("[exists l: List(Nat). a(0) && val(l == [1])]false", 1),
        ("[exists l: Real. a(0) && val(l == 1/2)]false", 1),
        ("[exists l: S. a(n(l)) && val(l == s1(0))]false", 1),
        ("<exists l: List(Nat). a(#l) && val(l in [[], [1]])>true", 0),
        ("<exists l: FSet(Nat). a(0) && val(l == {1})>true", 0),
    ] {
        let outcome = mu_check(&["check", &model, "--formula", formula]);
        assert_eq!(outcome.code, code, "{formula}: {}", outcome.stderr);
    }
}
