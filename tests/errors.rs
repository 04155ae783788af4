//! Invalid input of every stage, run through the command: the whole text of standard error, the
//! exit code, and standard output.
//!
//! In: the files `tests/errors/*.cases`. A case is a title, input files, one command line, and what
//! it must give:
//!
//! ```text
//! === a number where Bool is expected
//! --- m.mcrl2
//! act a;
//! init 1 -> a;
//! --- run explore m.mcrl2
//! --- exit 2
//! m.mcrl2:2:6: error: …
//! ```
//!
//! Each case runs in a folder of its own with `--format json`, so standard output must be empty or
//! one JSON object. With `MU_CHECK_BLESS=1` the files are rewritten to what the command gives now;
//! the difference is then for a person to read. Inputs that are too large or too odd for a text
//! file are made by the functions at the end.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time that a refusal may take, on a machine that is slow and busy with other tests. What
/// hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// One case of a file.
#[derive(Default)]
struct Case {
    title: String,
    files: Vec<(String, String)>,
    run: String,
    code: i32,
    stderr: String,
}

/// Reads a file of cases.
fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut into_stderr = false;
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("=== ") {
            cases.push(Case { title: title.to_string(), ..Case::default() });
            into_stderr = false;
            continue;
        }
        let Some(case) = cases.last_mut() else { continue };
        if let Some(run) = line.strip_prefix("--- run ") {
            case.run = run.to_string();
        } else if let Some(code) = line.strip_prefix("--- exit ") {
            case.code = code.parse().unwrap_or_else(|_| panic!("{}: {line}", case.title));
            into_stderr = true;
        } else if let Some(name) = line.strip_prefix("--- ") {
            case.files.push((name.to_string(), String::new()));
            into_stderr = false;
        } else if into_stderr {
            case.stderr += &format!("{line}\n");
        } else if let Some((_, content)) = case.files.last_mut() {
            *content += &format!("{line}\n");
        }
    }
    for case in &mut cases {
        case.stderr = case.stderr.trim_end().to_string();
    }
    cases
}

/// Returns a file of cases as text.
fn print(head: &str, cases: &[Case]) -> String {
    let mut text = head.to_string();
    for case in cases {
        let _ = writeln!(text, "=== {}", case.title);
        for (name, content) in &case.files {
            let _ = write!(text, "--- {name}\n{content}");
        }
        let _ = writeln!(text, "--- run {}\n--- exit {}\n{}\n", case.run, case.code, case.stderr);
    }
    text
}

/// Result of a run.
struct Outcome {
    /// Exit code; `None` if it was ended because it took too long.
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
    time: Duration,
}

/// Runs the command in a folder; ends it when it takes too long.
fn mu_check(folder: &Path, arguments: &[&str]) -> Outcome {
    let start = Instant::now();
    let scratch = tempfile::tempdir().unwrap();
    let (out, err) = (scratch.path().join("out"), scratch.path().join("err"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap())
        .spawn()
        .expect("the command runs");
    let status = loop {
        match child.try_wait().unwrap() {
            None if start.elapsed() > PATIENCE => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(2)),
            status => break status,
        }
    };
    Outcome {
        code: status.map(|s| s.code().unwrap_or(-1)),
        stdout: fs::read(&out).unwrap(),
        stderr: String::from_utf8_lossy(&fs::read(&err).unwrap()).trim_end().to_string(),
        time: start.elapsed(),
    }
}

/// Returns the words of a command line; `'…'` holds spaces.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'').expect("a closing quote"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// Runs a case: exit code, standard error; standard output must be empty or one JSON object.
fn run(case: &Case) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in &case.files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let mut arguments = words(&case.run);
    arguments.extend(["--format", "json"]);
    let outcome = mu_check(folder.path(), &arguments);
    assert_empty_or_object(&outcome.stdout, &case.title);
    assert_same_error(&outcome, &case.title);
    match outcome.code {
        Some(code) => (code, outcome.stderr),
        None => (-2, format!("(ended after {PATIENCE:?}) {}", outcome.stderr)),
    }
}

/// Where standard output is an error as JSON, it says what standard error says: message, place,
/// exit code.
fn assert_same_error(outcome: &Outcome, title: &str) {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(&outcome.stdout) else { return };
    let Some(error) = value.get("error") else { return };
    let message = error["message"].as_str().unwrap_or_else(|| panic!("{title}: {value}"));
    assert!(
        !message.is_empty() && outcome.stderr.contains(message),
        "{title}: {value}\n{}",
        outcome.stderr
    );
    assert_eq!(error["exit_code"].as_i64(), outcome.code.map(i64::from), "{title}");
    if let Some(place) = error["place"].as_object() {
        let place =
            format!("{}:{}:{}: ", place["file"].as_str().unwrap(), place["line"], place["column"]);
        assert!(outcome.stderr.starts_with(&place), "{title}: {place}\n{}", outcome.stderr);
    }
}

fn assert_empty_or_object(stdout: &[u8], title: &str) {
    if !stdout.is_empty() {
        let value: serde_json::Value = serde_json::from_slice(stdout)
            .unwrap_or_else(|e| panic!("{title}: {e}: {}", String::from_utf8_lossy(stdout)));
        assert!(value.is_object(), "{title}: {value}");
    }
}

/// Runs all cases of a file.
fn check(file: &str) {
    let path = format!("{}/tests/errors/{file}.cases", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap();
    let mut cases = cases(&text);
    assert!(!cases.is_empty());
    let mut wrong = String::new();
    let bless = std::env::var_os("MU_CHECK_BLESS").is_some();
    for case in &mut cases {
        let (code, stderr) = run(case);
        if bless {
            (case.code, case.stderr) = (code, stderr);
        } else if (code, stderr.as_str()) != (case.code, case.stderr.as_str()) {
            let _ = write!(
                wrong,
                "=== {}\n--- expected exit {}\n{}\n--- found exit {code}\n{stderr}\n\n",
                case.title, case.code, case.stderr
            );
        }
    }
    if bless {
        let head = &text[..text.find("=== ").unwrap_or(0)];
        fs::write(path, print(head, &cases)).unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn files() {
    check("files");
}
#[test]
fn syntax() {
    check("syntax");
}
#[test]
fn names_and_sorts() {
    check("types");
}
#[test]
fn processes() {
    check("processes");
}
#[test]
fn evaluation() {
    check("evaluation");
}
#[test]
fn formulas() {
    check("formulas");
}
#[test]
fn parameters() {
    check("parameters");
}
#[test]
fn transition_systems() {
    check("transition_systems");
}
#[test]
fn programs() {
    check("programs");
}
#[test]
fn command_line() {
    check("command_line");
}

#[test]
fn bytes_that_are_no_text() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.mcrl2"), b"act a;\ninit a . \xff;\n").unwrap();
    let outcome = mu_check(folder.path(), &["explore", "m.mcrl2"]);
    assert_eq!(outcome.code, Some(2));
    assert_eq!(
        outcome.stderr,
        "m.mcrl2:2:10: error: the byte 0xff here is not UTF-8 text\n    2 | init a . \u{fffd};\n      |          ^\n  \
         note: text files are read in UTF-8"
    );
    assert!(outcome.stdout.is_empty() && outcome.time < PATIENCE);
    // With JSON a refusal is an object too, whatever the stage.
    for (arguments, stage) in [
        (&["explore", "m.mcrl2"][..], "file"),
        (&["explore", "none.mcrl2"], "file"),
        (&["explore", "m.mcrl2", "--no"], "usage"),
    ] {
        let outcome = mu_check(folder.path(), &[arguments, &["--format", "json"]].concat());
        let value: serde_json::Value = serde_json::from_slice(&outcome.stdout).unwrap();
        assert_eq!(
            (outcome.code, value["error"]["stage"].as_str()),
            (Some(2), Some(stage)),
            "{value}"
        );
    }
}

/// Runs a case under a limit of one second: exit code, what the object on standard output says, the
/// time.
fn run_limited(
    model: &str,
    formula: Option<&str>,
    engine: &str,
) -> (Option<i32>, serde_json::Value, Duration) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.mcrl2"), model).unwrap();
    let mut arguments = vec![if formula.is_some() { "check" } else { "explore" }, "m.mcrl2"];
    if let Some(text) = formula {
        fs::write(folder.path().join("f.mcf"), text).unwrap();
        arguments.push("f.mcf");
    }
    arguments.extend(["--engine", engine, "--timeout", "0.4s", "--format", "json"]);
    let outcome = mu_check(folder.path(), &arguments);
    assert_eq!(outcome.stderr, "", "{model}");
    (outcome.code, serde_json::from_slice(&outcome.stdout).unwrap(), outcome.time)
}

/// A single evaluation or enumeration without end does not outlast the limit: the answer is what
/// was found so far, and unknown.
#[test]
fn limits_hold_inside_an_evaluation() {
    let diverging =
        "act a: Nat; map f: Nat -> Nat; var n: Nat; eqn f(n) = if(n == n + 1, n, f(n));\n";
    let models = [
        (format!("{diverging} proc P(n: Nat) = a(n) . P(if(n < 5, n + 1, f(n))); init P(0);"), true),
        (format!("{diverging} proc P(n: Nat) = a(n) . P(n + 1); init P(f(0));"), false),
        ("act a: Nat; proc P(k: Nat) = sum m: Nat. (m < 1000000000 && m * m * m == k + 3) -> a(m) . P(m); init P(0);".to_string(), true),
    ];
    for (model, begins) in &models {
        for engine in ["explicit", "symbolic"] {
            let (code, object, time) = run_limited(model, None, engine);
            assert_eq!((code, &object["stop"]), (Some(3), &"timeout".into()), "{model}: {object}");
            assert!(!begins || object["states"].as_u64() >= Some(1), "{model}: {object}");
            assert!(time < PATIENCE, "{model}: {time:?}");
        }
        let (code, object, time) = run_limited(model, Some("[true*]<true>true"), "explicit");
        assert_eq!(
            (code, &object["results"][0]["verdict"]),
            (Some(3), &"unknown".into()),
            "{model}: {object}"
        );
        assert!(time < PATIENCE, "{model}: {time:?}");
    }
    let quiet = format!("{diverging} proc P(n: Nat) = a(n) . P((n + 1) mod 3); init P(0);");
    for engine in ["explicit", "symbolic"] {
        let (code, object, time) =
            run_limited(&quiet, Some("[true*]forall x: Nat. [a(x)]val(f(x) > 2)"), engine);
        assert_eq!(
            (code, &object["results"][0]["reason"]),
            (Some(3), &"timeout".into()),
            "{object}"
        );
        assert!(time < PATIENCE, "{time:?}");
    }
}

/// A proof, a program, and robustness name the command that reads a file of another language.
#[test]
fn files_of_other_languages_name_their_command() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.m", "a.mcrl2", "a.litmus", "a.cub", "a.asm"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    for (words, expected) in [
        ("prove a.m", "`mu-check explore a.m` checks the claims"),
        ("prove a.mcrl2", "`mu-check check a.mcrl2 FORMULA -D PARAMETER=any` decides"),
        ("prove a.litmus", "`mu-check litmus a.litmus` runs the test"),
        ("verify a.m x.proof", "`verify` expects a system of any number of processes"),
        ("program a.m", "`a.m` is a Murphi model; expected an x86 program"),
        ("program a.cub", "`mu-check prove a.cub` proves the system"),
        ("program a.mcrl2 --threads-of any", "`a.mcrl2` is a specification"),
        ("robust a.cub", "expected an x86 program (.asm) or a litmus test (.litmus)"),
        ("prove a.cub -D N=3", "`mu-check explore a.cub -D processes=N` explores N processes"),
        ("prove a.asm -D N=3", "`mu-check program a.asm --threads-of N` runs N threads"),
        ("robust a.asm --threads-of any", "`mu-check program FILE --threads-of any` proves"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .current_dir(folder.path())
            .args(words.split(' '))
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {stderr}");
        assert!(stderr.contains(expected), "{words}: {stderr}");
    }
}
