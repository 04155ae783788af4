//! Explanations of deadlocks, end to end: three broken models with the expected output of each,
//! derived from the models before any output was seen; terminations and other deadlocks; paths that
//! `simulate` replays.

use crate::support::{mu_check, package};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mu-check")).args(words).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn broken_model(name: &str) -> String {
    package(&format!("tests/broken/{name}"))
}

fn scratch(model: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.mcrl2");
    std::fs::write(&path, model).unwrap();
    (folder, path.display().to_string())
}

/// All of these, in this order.
fn expect(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => panic!("`{part}` is missing, or not in its place, in:\n{text}"),
        }
    }
}

#[test]
fn a_partner_that_is_elsewhere() {
    let output = run(&["explore", &broken_model("reply.mcrl2"), "--deadlock"]);
    assert_eq!(output.status.code(), Some(1));
    expect(
        &text(&output),
        &[
            "a deadlock after 1 step",
            "1  req(0)",
            "a deadlock: no component can continue",
            "Client: waits at line 7",
            "offers recv_ack (line 7)",
            "`recv_ack|send_ack -> ack` in line 17 lacks send_ack, which Server can perform, but not now",
            "Server: waits at line 12",
            "offers recv_req(_) (line 12)",
            "`recv_req|send_req -> req` in line 17 lacks send_req, which Client can perform, but not now",
        ],
    );
}

#[test]
fn locks_in_opposite_orders() {
    let output = run(&["explore", &broken_model("locks.mcrl2"), "--deadlock", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let steps: Vec<&str> = json["ways"][0]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["action"].as_str().unwrap())
        .collect();
    assert!(
        steps == ["locked(w0, left)", "locked(w1, right)"]
            || steps == ["locked(w1, right)", "locked(w0, left)"],
        "{steps:?}"
    );
    let ending = &json["ways"][0]["ending"];
    assert_eq!(ending["kind"], "hang");
    let of = |name: &str| {
        let all = ending["components"].as_array().unwrap();
        all.iter()
            .find(|c| c["component"] == name)
            .unwrap_or_else(|| panic!("{name} in {ending}"))
            .clone()
    };
    // Each worker wants the lock that the other has; the locks wait for their owners.
    let worker = of("Worker(w0)");
    assert_eq!((worker["posture"].as_str(), worker["line"].as_u64()), (Some("waits"), Some(9)));
    assert_eq!(worker["offers"][0]["action"], "lock(w0, right)");
    let why = worker["offers"][0]["why_not"][0].as_str().unwrap();
    assert!(
        why.contains("lacks take, which Mutex(left) or Mutex(right) can perform, but not now"),
        "{why}"
    );
    assert_eq!(of("Worker(w1)")["offers"][0]["action"], "lock(w1, left)");
    let left = of("Mutex(left)");
    assert_eq!(left["offers"][0]["action"], "give(w0, left)");
    assert!(left["offers"][0]["why_not"][0].as_str().unwrap().contains("lacks unlock"), "{left}");
}

#[test]
fn values_that_differ_and_an_allow_that_forgets() {
    let output = run(&["explore", &broken_model("bus.mcrl2"), "--deadlock", "--all", "9"]);
    assert_eq!(output.status.code(), Some(1));
    let text = text(&output);
    // Core c1 waits for a0 while the memory answers a1: whatever core c0 does before.
    expect(
        &text,
        &[
            "a deadlock after 1 step",
            "Core(c1): waits at line 12",
            "offers answered(c1, a0) (line 12)",
            "`answer|answered -> reply` in line 25: Memory offers answer(c1, a1), so the values do not agree",
            "Memory: waits at line 18",
        ],
    );
    // Core c0 went first: its write-back has a partner, and what comes of it is not allowed. Then
    // the memory takes no part in anything else but the request of core c1.
    let output = run(&[
        "explore",
        &broken_model("bus.mcrl2"),
        "--deadlock",
        "--all",
        "9",
        "--format",
        "json",
    ]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["found"], 2, "one before and one after core c0 has read");
    let last = &json["ways"][1]["ending"]["components"];
    let core = last.as_array().unwrap().iter().find(|c| c["component"] == "Core(c0)").unwrap();
    assert_eq!(core["offers"][0]["action"], "send_back(c0)");
    let why = core["offers"][0]["why_not"][0].as_str().unwrap();
    assert!(
        why.contains("`send_back|take_back -> write_back` in line 26 lacks take_back"),
        "{why}"
    );
}

/// The same with a memory that is never in the middle of something: the write-back is what is left.
#[test]
fn an_allow_that_forgets() {
    let model = std::fs::read_to_string(broken_model("bus.mcrl2"))
        .unwrap()
        .replace("Core(c1, a1, a0)", "Core(c1, a1, a1)");
    let (_folder, path) = scratch(&model);
    let output = run(&["explore", &path, "--deadlock"]);
    expect(
        &text(&output),
        &[
            "a deadlock after 4 steps",
            "Core(c0): waits at line 13",
            "offers send_back(c0) (line 13)",
            "`send_back|take_back -> write_back` in line 26: Memory offers take_back(_), but",
            "`allow` in line 22 does not list write_back",
        ],
    );
}

const JOB: &str = "act work, order, job: Nat; done;
proc Boss(n: Nat) = (n < 2) -> order(n) . Boss(n + 1) <> done . delta;
proc Worker = sum n: Nat. work(n) . Worker;
init allow({job, done}, comm({order|work -> job}, Boss(0) || Worker));
";

#[test]
fn a_deadlock_that_looks_like_an_end_is_annotated() {
    let (_folder, path) = scratch(JOB);
    let output = run(&["explore", &path]);
    assert_eq!(output.status.code(), Some(0));
    expect(&text(&output), &["deadlocks    1\n", "1 looks like a normal end"]);
    let output = run(&["explore", &path, "--deadlock"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    expect(
        &text(&output),
        &["a deadlock after 3 steps", "a deadlock that looks like a normal end"],
    );
    let output = run(&["explore", &path, "--deadlock", "--terminal", "done"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    expect(&text(&output), &["no path to a deadlock: all 4 states searched, one terminated"]);
    // A worker that is in the middle of something when the boss goes: a hang.
    let (_folder, path) = scratch(&JOB.replace("work(n) . Worker", "work(n) . work(n) . Worker"));
    let output = run(&["explore", &path, "--format", "json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["ends"]["hang"], 1, "{json}");
    // Successful termination is one; an end that is declared is one as well.
    let (_folder, path) = scratch("act a, b; init a . b;");
    let json: Value =
        serde_json::from_slice(&run(&["explore", &path, "--format", "json"]).stdout).unwrap();
    assert_eq!(json["ends"], serde_json::json!({ "terminated": 1, "finished": 0, "hang": 0 }));
}

/// `delta` and a condition that is false are deadlocks; successful termination is none.
#[test]
fn states_without_steps_are_deadlocks() {
    let code = |behaviour: &str| {
        let (_folder, path) = scratch(&format!("act a, b: Nat; init {behaviour};"));
        run(&["explore", &path, "--deadlock"]).status.code()
    };
    for deadlock in [
        "a(0) . delta",
        "delta",
        "a(0) . false -> b(0)",
        "a(0) . delta + b(0)",
        "block({b}, a(0) . b(0))",
        "delta || delta",
    ] {
        assert_eq!(code(deadlock), Some(1), "{deadlock}");
    }
    for none in ["a(0)", "a(0) . b(1)", "a(0) || b(0)", "(true -> a(0)) . tau"] {
        assert_eq!(code(none), Some(0), "{none}");
    }
}

#[test]
fn what_counts_as_an_end_can_be_said() {
    // Both wait for an action that never happens, each after its last action.
    let model =
        "act a, b, c, d; proc P = a . c . delta; Q = b . d . delta; init allow({a, b}, P || Q);";
    let (_folder, path) = scratch(model);
    let code = |more: &[&str]| {
        run(&[&["explore", path.as_str(), "--deadlock"], more].concat()).status.code()
    };
    assert_eq!(code(&[]), Some(1));
    assert_eq!(code(&["--terminal", "a"]), Some(1));
    assert_eq!(code(&["--terminal", "a", "--terminal", "b"]), Some(0));
}

#[test]
fn circular_waits_are_hangs_even_if_somebody_has_finished() {
    let model = "act s, r, c, s2, r2, c2, d;
proc P = r . s2 . P; Q = r2 . s . Q; R = d . delta;
init allow({c, c2, d}, comm({s|r -> c, s2|r2 -> c2}, P || Q || R));
";
    let (_folder, path) = scratch(model);
    let output = run(&["explore", &path, "--deadlock"]);
    assert_eq!(output.status.code(), Some(1));
    expect(
        &text(&output),
        &["a deadlock after 1 step", "P: waits at line 2", "Q: waits at line 2", "R: has stopped"],
    );
}

#[test]
fn paths_are_walked_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let model = broken_model("locks.mcrl2");
    let picture = at("why.svg");
    let output = run(&[
        "explore",
        &model,
        "--deadlock",
        "--all",
        "3",
        "--trace-dir",
        &at("traces"),
        "--evidence",
        &picture,
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let traces: Vec<PathBuf> =
        std::fs::read_dir(Path::new(&at("traces"))).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(!traces.is_empty());
    for trace in traces {
        let script = at("script.txt");
        std::fs::write(&script, format!("load {}\nmoves\n", trace.display())).unwrap();
        let output = run(&["simulate", &model, "--script", &script, "--format", "json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(json.to_string().contains("\"deadlock\":true"), "{json}");
    }
    // Every component has its lane, with its offers below.
    let svg = std::fs::read_to_string(picture).unwrap();
    for name in ["Worker", "Mutex", "offers lock(w0, right)", "offers give(w0, left)"] {
        assert!(svg.contains(name), "{name}");
    }
}

/// A path in the form that holds data is checked with its data.
#[test]
fn paths_hold_their_data() {
    let (folder, path) = scratch(
        "sort S = struct x | y; act a, b: S; c; proc P = sum s: S. a(s) . b(s) . c . delta; init allow({a, b}, P);",
    );
    let stored = folder.path().join("path.lts").display().to_string();
    assert_eq!(
        run(&["explore", &path, "--deadlock", "--evidence", &stored]).status.code(),
        Some(1)
    );
    let output =
        run(&[&stored, "-f", "exists s: S. val(s == x) && <a(s)><b(s)>true", "-f", "<a(y)>true"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    expect(&text(&output), &["true", "false"]);
}

/// `check` without a formula has the option `--terminal`, as `explore` has; with a formula the
/// option has no effect.
#[test]
fn ends_of_a_model_alone() {
    let (_folder, path) = scratch(
        "act a, b, c, d; proc P = a . c . delta; Q = b . d . delta; init allow({a, b}, P || Q);",
    );
    expect(&text(&run(&[&path])), &["deadlocks    1", "a deadlock after"]);
    let output = run(&[&path, "--terminal", "a", "--terminal", "b"]);
    assert_eq!(output.status.code(), Some(0));
    expect(&text(&output), &["deadlocks    1", "1 terminated"]);
    let output = run(&[&path, "-f", "true", "--terminal", "a"]);
    assert_eq!(output.status.code(), Some(2));
    expect(&text(&output), &["`--terminal`", "cannot be combined with formulas"]);
}

/// An action with arguments is a label.
#[test]
fn actions_with_arguments() {
    let (_folder, path) =
        scratch("act a: Nat # Bool; b; init sum n: Nat. (n < 3) -> a(n, true)|b . b;");
    let find = |action: &str| run(&["explore", &path, "--action", action]);
    for (action, code) in [("a(2,true)", 1), ("a( 1, true )", 1), ("a(3, true)", 0), ("a", 1)] {
        let output = find(action);
        assert_eq!(output.status.code(), Some(code), "{action}: {}", text(&output));
    }
}

#[test]
fn actions_and_divergence() {
    let model = "act a, b, i; proc P = a . (b . P + Q); Q = i . i . Q; init hide({i}, P);";
    let (_folder, path) = scratch(model);
    let output = run(&["explore", &path, "--action", "b"]);
    assert_eq!(output.status.code(), Some(1));
    expect(&text(&output), &["`b` after 2 steps", "1  a", "2  b"]);
    // Hidden actions are found by their names as well.
    expect(
        &text(&run(&["explore", &path, "--action", "i"])),
        &["`i` after 2 steps", "1  a", "2  tau  (hidden: i)"],
    );
    let output = run(&["explore", &path, "--action", "c"]);
    assert_eq!(output.status.code(), Some(0));
    expect(&text(&output), &["the model has no action `c`; it has a, b, i"]);
    let output = run(&["explore", &path, "--divergence"]);
    assert_eq!(output.status.code(), Some(1));
    expect(
        &text(&output),
        &["a divergence after", "a", "tau  (hidden: i)", "and again from after step"],
    );
    let (_folder, path) = scratch("act a, i; proc P = a . i . P; init hide({i}, P);");
    let output = run(&["explore", &path, "--divergence"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

/// Numbers of locations and values of dead parameters are not printed.
#[test]
fn internal_names_are_not_shown() {
    let model = "sort S = struct x | y; act a, b: S; proc P = sum s: S. a(s) . b(s) . P; init P;";
    let (_folder, path) = scratch(model);
    let output = run(&["explore", &path, "--action", "b", "-v", "--full-states"]);
    let text_output = text(&output);
    assert!(!text_output.contains("unused_") && !text_output.contains("s1"), "{text_output}");
    expect(&text_output, &["a(x)", "before b"]);
    let output = run(&["explore", &path, "--action", "b", "--format", "json"]);
    assert!(!text(&output).contains("unused_"), "{}", text(&output));
}

/// A condition terminates the components that have its parameters.
#[test]
fn an_end_may_be_a_condition() {
    let model = "act s, r, c: Nat; tick;
proc P(n: Nat) = (n < 3) -> s(n) . P(n + 1);
     Q(m: Nat, odd: Bool) = sum k: Nat. r(k) . Q(m + k, !odd);
init allow({c}, comm({s|r -> c}, P(0) || Q(0, false)));
";
    let (_folder, path) = scratch(model);
    let ends = |more: &[&str]| {
        let output = run(&[&["explore", path.as_str(), "--format", "json"], more].concat());
        let json: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", text(&output)));
        if json["ends"].is_object() { json["ends"].clone() } else { json["error"].clone() }
    };
    let none = |terminated, finished, hang| serde_json::json!({ "terminated": terminated, "finished": finished, "hang": hang });
    assert_eq!(ends(&[]), none(0, 0, 1));
    // P has come to its end; Q waits where it began, for P alone.
    assert_eq!(ends(&["--terminal", "n == 3"]), none(1, 0, 0));
    assert_eq!(ends(&["--terminal", "n == 3 && m == 3 && odd"]), none(1, 0, 0));
    assert_eq!(ends(&["--terminal", "n == 3 && m == 4"]), none(0, 0, 1));
    assert_eq!(
        run(&["explore", &path, "--deadlock", "--terminal", "n == 3"]).status.code(),
        Some(0)
    );
    // Neither an action nor a condition.
    for (wrong, why) in [
        ("cc", "cc"),
        ("n + 1", "Bool"),
        ("1 < 2", "contains no parameter"),
        ("n ==", "unexpected end"),
        ("k == 1", "`k`"),
    ] {
        let error = ends(&["--terminal", wrong]);
        assert!(error["message"].as_str().unwrap().contains(why), "{wrong}: {error}");
        assert_eq!(error["exit_code"], 2, "{error}");
    }
}

const STORE_BUFFERING: &str = "X86 SB
{ x=0; y=0; }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
";

#[test]
fn threads_of_a_litmus_test_terminate() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let path = at("SB.litmus", STORE_BUFFERING);
    for engine in ["explicit", "auto"] {
        let output = run(&["explore", &path, "--engine", engine]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        expect(
            &text(&output),
            &["states       25", "deadlocks    1", "1 terminated", "mu-check litmus"],
        );
    }
    // Without a formula the same; there is no hang to show.
    let output = run(&[&path]);
    assert!(!text(&output).contains("a deadlock"), "{}", text(&output));
    // A test for another machine points to the command that takes it.
    let riscv = at("R.litmus", "RISCV R\n{ 0:x6=x; }\n P0 ;\n lw x7,0(x6) ;\nexists (0:x7=0)\n");
    for command in ["explore", "litmus"] {
        let output = run(&[command, &riscv]);
        assert_eq!(output.status.code(), Some(2));
        expect(&text(&output), &["architecture `RISCV`", "`mu-check litmus --model rvwmo`"]);
    }
}

/// The ends of a model are those of each file that it is written to, and of the linear process as
/// text.
#[test]
fn terminations_survive_files() {
    let models = [
        (
            "act a, b: Nat; d; proc P(n: Nat) = (n < 2) -> a(n) . P(n + 1) + (n == 2) -> d; init P(0);",
            [1, 0],
        ),
        ("act a, b; init a . b || b . a;", [1, 0]),
        ("act a, b; init (a + b . delta) || b;", [1, 1]),
        (
            "act a, b: Nat; proc P(n: Nat) = sum m: Nat. (m < 3) -> a(m) . Q(m); Q(n: Nat) = (n > 0) -> b(n); init P(0) . b(7);",
            [1, 1],
        ),
        ("act a, b; proc P = a . P + b; init P . a || delta;", [0, 1]),
        ("act a, b; proc P = a . P + b; init P . a || P;", [1, 0]),
        ("act a, Terminate; init a . Terminate . delta;", [1, 0]),
        ("act a, Terminate; init a . Terminate . delta + a . delta;", [0, 1]),
        ("act a; init delta;", [0, 1]),
    ];
    for (model, ends) in models {
        let (folder, path) = scratch(model);
        let file = |name: &str| folder.path().join(name).display().to_string();
        let (max, texts) = ("--max-states", file("text.mcrl2"));
        let found = |path: &str, more: &[&str]| {
            let output = run(&[&["explore", path, "--format", "json", max, "40"], more].concat());
            let json: Value = serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|_| panic!("{path}: {}", text(&output)));
            let of = |kind: &str| {
                json["ends"][kind].as_u64().unwrap_or_else(|| panic!("{model}, {path}: {json}"))
            };
            [of("terminated"), of("finished") + of("hang")]
        };
        let linear = run(&["linearise", &path]);
        std::fs::write(&texts, &linear.stdout).unwrap();
        assert!(linear.status.success(), "{}", text(&linear));
        for name in ["x.lps", "x.aut", "x.lts"] {
            let (word, option) =
                if name == "x.lps" { ("linearise", "--out") } else { ("explore", "--out") };
            run(&[word, &path, option, &file(name)]);
        }
        for simplify in ["none", "all"] {
            run(&[
                "linearise",
                &path,
                "--simplify",
                simplify,
                "--out",
                &file(&format!("{simplify}.lps")),
            ]);
        }
        assert_eq!(found(&path, &[]), ends, "{model}");
        assert_eq!(found(&path, &["--out", &file("y.aut")]), ends, "{model}");
        for name in ["text.mcrl2", "x.lps", "none.lps", "all.lps", "x.aut", "x.lts"] {
            assert_eq!(found(&file(name), &[]), ends, "{model}, {name}");
        }
        let sought = run(&["explore", &file("x.lps"), "--deadlock"]);
        assert_eq!(
            sought.status.code(),
            Some(i32::from(ends[1] > 0)),
            "{model}: {}",
            text(&sought)
        );
    }
}

/// An action with arguments is no name; the message has the name.
#[test]
fn a_terminal_action_has_no_arguments() {
    let (folder, path) = scratch("act a: Nat; init a(1) . delta;");
    let stored = folder.path().join("x.aut").display().to_string();
    assert!(run(&["explore", &path, "--out", &stored]).status.success());
    for path in [&path, &stored] {
        let output = run(&["explore", path, "--deadlock", "--terminal", "a(1)"]);
        assert_eq!(output.status.code(), Some(2), "{path}");
        expect(&text(&output), &["a(1)`", "expected the name of an action without arguments, `a`"]);
    }
}

/// A label in `--action` has brackets that match, and the number of arguments of the action.
#[test]
fn labels_that_no_step_can_have_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.mcrl2").display().to_string();
    std::fs::write(&path, "act a: Nat; b; init a(1) . b . delta;").unwrap();
    let run = |action: &str| mu_check(&["explore", &path, "--action", action]);
    for (action, code, message) in [
        ("a(", 2, "brackets do not match"),
        ("a()", 2, "brackets do not match"),
        ("a(1, 2)", 0, "has not 2 but 1 arguments"),
        ("nosuch", 0, "has no action `nosuch`"),
    ] {
        let outcome = run(action);
        assert_eq!(outcome.code, code, "{action}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(message), "{action}: {}", outcome.stderr);
    }
    let outcome = run("a(1)");
    assert_eq!(
        (outcome.code, outcome.stderr.contains("warning")),
        (1, false),
        "{}",
        outcome.stderr
    );
    let renamed = mu_check(&["explore", &path, "--rename", "a=b=c"]);
    assert_eq!(renamed.code, 2, "{}", renamed.stderr);
}
