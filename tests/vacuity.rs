//! Vacuous formulas, in both directions: seeded faults produce warnings, correct models none; if a
//! false formula has no path, the failing part is named; unfair loops are reported. Expectations
//! were derived from the models and formulas, before any output was seen.

use serde_json::Value;
use std::process::Command;

/// Runs `check`: exit code, standard output as JSON, standard error.
fn check(model: &str, formula: &str) -> (i32, Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let words =
        ["check", &at("model.mcrl2", model), &at("formula.mcf", formula), "--format", "json"];
    let output = Command::new(env!("CARGO_BIN_EXE_mu-check")).args(words).output().unwrap();
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap(), json, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Two processes around a semaphore.
const MUTEX: &str = "act enter, leave: Pos; p, v, acquire, release, up, down;
proc User(i: Pos) = p . enter(i) . leave(i) . v . User(i);
proc Semaphore = acquire . release . Semaphore;
init hide({up, down}, allow({enter, leave, up, down}, comm({p|acquire -> down, v|release -> up}, User(1) || User(2) || Semaphore)));
";
const EXCLUSION: &str = "[true* . enter(1) . (!leave(1))* . enter(2)] false";

fn silent(model: &str, formula: &str) {
    let (code, json, stderr) = check(model, formula);
    assert_eq!(code, 0, "{stderr}");
    assert!(!stderr.contains("warning"), "{stderr}");
    assert_eq!(json["results"][0]["vacuous"].as_array().unwrap().len(), 0, "{json}");
}

#[test]
fn mutual_exclusion_of_a_correct_semaphore_was_tested() {
    silent(MUTEX, EXCLUSION);
    silent(MUTEX, "[true* . enter(1) . (!leave(1))*] [enter(2)] false");
    silent(MUTEX, "nu X. ([true]X && [enter(1)] nu Y. ([enter(2)]false && [!leave(1)]Y))");
    silent(
        MUTEX,
        "forall i, j: Pos. val(i != j) => [true* . enter(i) . (!leave(i))* . enter(j)] false",
    );
}

/// Each fault makes the formula vacuous; the warning has the reason.
#[test]
fn seeded_faults_produce_warnings() {
    let faults: [(&str, &str, &str, &str); 6] = [
        // The action is hidden.
        (
            "hide({up, down}",
            "hide({up, down, enter}",
            "no step is ever labelled enter",
            "it is hidden in line 4",
        ),
        // It is not in `allow`.
        (
            "allow({enter, leave",
            "allow({leave",
            "no step is ever labelled enter",
            "`allow` in line 4 does not list enter",
        ),
        // It is renamed outside.
        (
            "init hide(",
            "init rename({enter -> leave}, hide(",
            "no step is ever labelled enter",
            "it is renamed to leave in line 4",
        ),
        // The semaphore never admits a thread: its offer has no partner.
        (
            "acquire . release . Semaphore",
            "release . Semaphore",
            "no transition ever matched this modality",
            "enter(1)",
        ),
        // The first user waits for its own exit.
        (
            "p . enter(i)",
            "(i == 1) -> (leave(i) . p . v . delta) <> p . enter(i)",
            "no transition ever matched this modality",
            "",
        ),
        // Another process is checked.
        (
            "User(1) || User(2)",
            "User(3) || User(2)",
            "no transition ever matched this modality",
            "",
        ),
    ];
    for (from, to, what, why) in faults {
        assert!(MUTEX.contains(from), "{from}");
        let mut model = MUTEX.replacen(from, to, 1);
        if to.starts_with("init rename") {
            model = model.replace("Semaphore)));", "Semaphore))));");
        }
        let (_, _, stderr) = check(&model, EXCLUSION);
        let found_warnings = stderr.lines().any(|l| l.contains("warning") && l.contains(what));
        assert!(found_warnings && stderr.contains(why), "{to}: {stderr}");
    }
}

#[test]
fn a_forbidden_action_that_cannot_happen() {
    let model = "act busRd, busWr, req, ack: Nat;
proc Cache(i: Nat) = busRd(i) . busWr(i) . Cache(i);
init hide({busRd},
  allow({busRd, busWr},
    Cache(0) || Cache(1)));
";
    let (code, json, stderr) = check(model, "[true* . busRd(0)] false");
    assert_eq!(code, 0);
    assert!(
        stderr.contains(
            "formula.mcf:1:10: warning: no step is ever labelled busRd: it is hidden in line 3"
        ),
        "{stderr}"
    );
    assert!(json["results"][0]["notes"].to_string().contains("it is hidden in line 3"), "{json}");
    // With arguments that never occur: a note, as the model does such steps.
    let (_, _, stderr) = check(model, "[true* . busWr(2)] false");
    assert!(
        stderr
            .contains("note: the search saw no step labelled busWr(2); it saw busWr(0), busWr(1)"),
        "{stderr}"
    );
    assert!(!stderr.contains("warning"), "{stderr}");
    // Declared, and done by no component.
    let (_, _, stderr) = check(model, "[true* . req(0)] false");
    assert!(
        stderr.contains("warning: no step is ever labelled req: no component performs it"),
        "{stderr}"
    );
    // What is forbidden and happens elsewhere is silent.
    silent(model, "[busWr(0)] false");
}

#[test]
fn without_a_path_the_part_that_fails_is_named() {
    let model = "act load, store, fence; proc P = load . store . P; init P;";
    let (code, _, stderr) = check(model, "[true*]<store>true");
    assert_eq!(code, 1);
    assert!(
        stderr.contains(
            "formula.mcf:1:8: note: `<store>true` fails at the start; there possible: load"
        ),
        "{stderr}"
    );
    let (code, _, stderr) = check(model, "<true*>[true]false");
    assert_eq!(code, 1);
    assert!(
        stderr.contains(
            "formula.mcf:1:8: note: no matching path leads to a state where `[true]false` holds"
        ),
        "{stderr}"
    );
    assert!(stderr.contains("reached states; at the start possible: load"), "{stderr}");
    let (code, _, stderr) = check(model, "[load]<load>true");
    assert_eq!(code, 1);
    assert!(stderr.contains("`<load>true` fails after 1 step; there possible: store"), "{stderr}");
    for formula in [
        "nu X. <store>X",
        "exists n: Nat. val(n < 3) && <store>true",
        "(<store>true) || <fence>true",
    ] {
        let (code, _, stderr) = check(model, formula);
        assert_eq!(code, 1);
        assert!(
            stderr.contains("note: `")
                && stderr.contains("fails at the start; there possible: load"),
            "{formula}: {stderr}"
        );
    }
}

#[test]
fn unfair_loops_are_reported() {
    let model = "act req, ack, spin; proc P = req . Q; Q = spin . Q + ack . P; init P;";
    let response = "[true* . req] mu X. ([!ack]X && <true>true)";
    let (code, _, stderr) = check(model, response);
    assert_eq!(code, 1);
    assert!(
        stderr
            .contains("the loop may be unfair: in it ack is possible all the time and never done"),
        "{stderr}"
    );
    // The formulas of docs/explanations.md.
    assert_eq!(check(model, "[true* . req . (!ack)*] <true* . ack> true").0, 0);
    let broken = model.replace("spin . Q + ack . P", "spin . Q + ack . P + spin . R; R = spin . R");
    assert_eq!(check(&broken, "[true* . req . (!ack)*] <true* . ack> true").0, 1);
    // Fair in `tick`: without end only by spinning, or by ticking.
    let fair = "[true* . req] mu X. nu Y. ([tick && !ack]X && [!tick && !ack]Y)";
    let ticking = "act req, ack, spin, tick; proc P = req . Q; Q = spin . Q + ack . P; init P;";
    assert_eq!(check(ticking, fair).0, 0);
    assert_eq!(check(&ticking.replace("spin . Q + ack", "tick . Q + ack"), fair).0, 1);
    // A loop in which nothing else is possible is no matter of fairness.
    let (code, _, stderr) =
        check("act req, ack, spin; proc P = req . Q; Q = spin . Q; init P + ack;", response);
    assert_eq!(code, 1);
    assert!(!stderr.contains("unfair"), "{stderr}");
}

#[test]
fn impossible_actions_are_reported() {
    let warned = |model: &str, parts: &[&str]| {
        let (_, _, stderr) = check(model, "[true*]true");
        for part in parts {
            assert!(stderr.contains(part), "{part}: {stderr}");
        }
    };
    // An action without a partner in any component.
    warned(
        "act s, r, c, d;\nproc P = d . s . P;\ninit allow({c, d}, comm({s|r -> c}, P || d));\n",
        &[
            "model.mcrl2:2:14: warning: s of P never happens: `r|s -> c` in line 3 lacks r, which no other component ever performs",
        ],
    );
    // A communication of values that never agree, and components that it blocks initially.
    warned(
        "act s, r, c: Nat;\nproc P = s(1) . P; Q = r(2) . Q;\ninit allow({c}, comm({s|r -> c}, P || Q));\n",
        &[
            "warning: s of P never happens",
            "Q offers r(2), so the values do not agree",
            "P is stuck from the start",
        ],
    );
    // An `allow` that lets nothing through.
    warned(
        "act a, b;\nproc P = a . P;\ninit allow({b}, P);\n",
        &["model.mcrl2:3:6: warning: this `allow` blocks everything: the components below it do a"],
    );
    // A correct model produces no warning.
    let (_, _, stderr) = check(MUTEX, "[true*]true");
    assert!(!stderr.contains("warning"), "{stderr}");
}

#[test]
fn the_conjunct_that_fails_is_named() {
    let model = "act load, store, fence; proc P = load . store . P; init P;";
    let (code, _, stderr) =
        check(model, "[true*.fence]false &&\n[true*.load.store]false &&\n[true*]<true>true");
    assert_eq!(code, 1);
    assert!(
        stderr.contains("formula.mcf:2:1: note: the conjunct `[true*.load.store]false` fails"),
        "{stderr}"
    );
    assert!(!stderr.contains("there possible"), "{stderr}");
    // On the steps of the evidence alone the first one is false too, which asks for more of them;
    // in the model it is not.
    let (_, _, stderr) = check(model, "[true*]<true>true && [true*.load.store]false");
    assert!(stderr.contains("the conjunct `[true*.load.store]false` fails"), "{stderr}");
    // A failing part is reported as if it were the whole formula.
    let (_, _, stderr) = check(model, "[true*.fence]false && [true*]<load>true");
    assert!(stderr.contains("the conjunct `[true*]<load>true` fails"), "{stderr}");
    assert!(stderr.contains("`<load>true` fails after 1 step; there possible: store"), "{stderr}");
    // The path leads on in what a condition on data guards: it fails at the start, not where the
    // path ends.
    let (code, _, stderr) = check(
        "act a: Nat; proc P = a(1) . a(2) . P; init P;",
        "forall n: Nat. val(n > 0) || [true*.a(n)]false",
    );
    assert_eq!((code, stderr.contains("note")), (0, false), "{stderr}");
    let (code, _, stderr) = check(
        "act a: Nat; proc P = a(1) . a(2) . P; init P;",
        "forall n: Nat. val(n > 1) || [true*.a(n)]false",
    );
    assert_eq!((code, stderr.contains("fails after")), (1, false), "{stderr}");
    let (_, _, stderr) =
        check("act a: Nat; proc P = a(1) . a(2) . P; init P;", "[a(1)](val(1 < 2) => <a(1)>true)");
    assert!(stderr.contains("`<a(1)>true` fails after 1 step; there possible: a(2)"), "{stderr}");
    // A part with open parentheses is shown with them closed.
    let (_, _, stderr) = check(model, "<true*>([true](<fence>(true)))");
    assert!(stderr.contains("where `[true](<fence>(true))` holds"), "{stderr}");
}

#[test]
fn one_text_for_many_components_serves_each_in_its_way() {
    // Each cell is written by one of two actions; there is no warning, as the other cell does each
    // action.
    let model = "sort Name = struct x | y;
act get, set, wr, rd, ask, put: Name;
proc Cell(n: Name) = put(n) . Cell(n) + get(n) . Cell(n);
     User = ask(x) . wr(y) . User;
init allow({rd, set}, comm({put|wr -> set, get|ask -> rd}, Cell(x) || Cell(y) || User));
";
    let (_, _, stderr) = check(model, "[true*]true");
    assert!(!stderr.contains("warning"), "{stderr}");
    // If no cell does it, there is a warning.
    let (_, _, stderr) = check(&model.replace(". wr(y)", ""), "[true*]true");
    assert!(stderr.contains("warning: put of Cell(x), Cell(y) never happens"), "{stderr}");
}

#[test]
fn a_label_with_a_term_without_value_is_reported_once_for_each_place() {
    let model = "map f: Nat -> Nat; g: Nat -> Nat; D0: Nat;
sort D; map d1: D;
var n: Nat; eqn g(n + 1) = n;
act a, b: Nat; c: List(Nat); e: D; h: Nat -> Nat;
proc P(l: List(Nat)) = a(head(l)) . P(tail(l))
  + b(g(#l)) . P(l)
  + c(1 |> [f(#l)]) . P(l)
  + e(d1) . h(f) . P(l)
  + b(D0) . P(l);
init P([4, 2]);
";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.mcrl2").display().to_string();
    std::fs::write(&path, model).unwrap();
    for threads in ["1", "2"] {
        let words =
            ["explore", &path, "--max-states", "200", "--threads", threads, "--format", "json"];
        let output = Command::new(env!("CARGO_BIN_EXE_mu-check")).args(words).output().unwrap();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found_warnings: Vec<(u64, String)> = (json["warnings"].as_array().unwrap().iter())
            .filter(|w| w["text"].as_str().unwrap().contains("label"))
            .map(|w| (w["line"].as_u64().unwrap(), w["text"].as_str().unwrap().to_string()))
            .collect();
        let expected = [
            (5, "a(head([]))", "`head([])`"),
            (6, "b(g(0))", "`g(0)`"),
            (7, "c([1, f(0)])", "`f(0)`"),
            (9, "b(D0)", "`D0`"),
        ];
        assert_eq!(found_warnings.len(), expected.len(), "{found_warnings:?}");
        for ((line, text), (at, label, term)) in found_warnings.iter().zip(expected) {
            assert!(*line == at && text.contains(label) && text.contains(term), "{line}: {text}");
        }
    }
    // A model with values in all labels produces no warning, also when it is checked.
    silent(
        "act a: Nat; proc P(l: List(Nat)) = (l != []) -> a(head(l)) . P(tail(l)) <> a(0) . P([1, 2]); init P([]);",
        "[true*]true",
    );
    let (_, json, stderr) = check("act a: Nat; init a(head([]));", "[true*]true");
    assert!(stderr.contains("model.mcrl2:1:18: warning: in the label a(head([]))"), "{stderr}");
    assert!(json["warnings"].to_string().contains("head([])"), "{json}");
}
