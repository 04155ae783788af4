//! A limit never loses an answer that was known: each command with several answers meets a limit in
//! its last one, and prints all others.
//!
//! Invariant: every command is in [`COMMANDS`], so a new one must be classified.

use crate::support::package;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Answers of a command.
#[derive(Debug, PartialEq)]
enum Answers {
    /// Several: the name of the test in this file.
    Several(&'static str),
    /// One verdict, or none; what follows it, such as files, does not lose it.
    One,
}

/// All commands.
const COMMANDS: &[(&str, Answers)] = &[
    ("check", Answers::Several("formulas")),
    ("explore", Answers::Several("paths")),
    ("litmus", Answers::Several("litmus_tests")),
    ("conform", Answers::Several("models_of_machines")),
    ("trace", Answers::Several("traces")),
    ("robust", Answers::Several("analyses_of_robustness")),
    ("sweep", Answers::Several("rows")),
    ("models", Answers::Several("differences_of_models")),
    // The states of one search: the proof or the run to an unsafe state comes before its files.
    ("prove", Answers::One),
    ("verify", Answers::One),
    ("program", Answers::One),
    ("compare", Answers::One),
    ("solve", Answers::One),
    // A file or a text, without verdicts.
    ("expand", Answers::One),
    ("linearise", Answers::One),
    ("reduce", Answers::One),
    ("convert", Answers::One),
    ("info", Answers::One),
    ("pbes", Answers::One),
    ("report", Answers::One),
    ("eval", Answers::One),
    ("fmt", Answers::One),
    ("new", Answers::One),
    // The answers of each request are printed before the next one.
    ("simulate", Answers::One),
    ("studio", Answers::One),
    ("lsp", Answers::One),
    ("cluster", Answers::One),
    ("completions", Answers::One),
    ("manual", Answers::One),
];

#[test]
fn every_command_is_classified() {
    let help = Command::new(env!("CARGO_BIN_EXE_mu-check")).arg("--help").output().expect("help");
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    let commands = help.split("Commands:").nth(1).expect("a list of commands");
    let listed: BTreeSet<&str> = (commands.lines().skip(1))
        .take_while(|l| !l.starts_with("Options") && !l.starts_with("Arguments"))
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    let known: BTreeSet<&str> = COMMANDS.iter().map(|c| c.0).collect();
    let missing: Vec<&&str> = listed.difference(&known).collect();
    assert!(missing.is_empty(), "classify the answers of these commands: {missing:?}");
    let source = include_str!("limits_of_answers.rs");
    for (_, answers) in COMMANDS {
        if let Answers::Several(test) = answers {
            assert!(source.contains(&format!("#[test]\nfn {test}()")), "no test {test}");
        }
    }
}

struct Run {
    code: Option<i32>,
    json: Value,
    text: String,
}

fn run(folder: &Path, words: &str) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .current_dir(folder)
        .args(words.split(' '))
        .output()
        .expect("the command runs");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    Run {
        code: output.status.code(),
        json: serde_json::from_str(&stdout).unwrap_or(Value::Null),
        text: format!("{stdout}\n{stderr}"),
    }
}

/// Returns the members of the objects in a list of the result.
fn members(run: &Run, list: &str, key: &str) -> Vec<Value> {
    let all = run.json[list].as_array().unwrap_or_else(|| panic!("{}", run.text));
    all.iter().map(|one| one[key].clone()).collect()
}

fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

/// Infinitely many states, and a deadlock at some distances.
const COUNTER: &str = "act a: Nat; b; stop: Nat;
proc P(n: Nat, m: Nat) = a(n) . P(n + 1, m) + (m < n) -> b . P(n, m + 1)
  + (n mod 10 == 3 && m == 0) -> stop(n) . Q(n);
proc Q(n: Nat) = (n < 0) -> b . Q(n);
init P(0, 0);
";

#[test]
fn formulas() {
    let folder = folder_with(&[
        ("counter.mcrl2", COUNTER),
        ("true.mcf", "<true>true"),
        ("false.mcf", "[true]false"),
        ("open.mcf", "[true* . b . b . true* . exists n: Nat. a(n) && val(n < 0)]false"),
    ]);
    let words = "check counter.mcrl2 true.mcf false.mcf open.mcf";
    for limit in ["--timeout 0.5", "--max-memory 60MB", "--max-states 3000"] {
        let json = run(folder.path(), &format!("{words} {limit} --format json"));
        assert_eq!(json.code, Some(1), "{limit}: {}", json.text);
        let verdicts = members(&json, "results", "verdict");
        assert_eq!(verdicts, ["true", "false", "unknown"], "{limit}: {}", json.text);
        let text = run(folder.path(), &format!("{words} {limit}"));
        assert_eq!(text.code, Some(1), "{limit}: {}", text.text);
        for line in ["true.mcf: true", "false.mcf: false", "open.mcf: unknown"] {
            assert!(text.text.contains(line), "{limit}: {}", text.text);
        }
    }
}

#[test]
fn paths() {
    let folder = folder_with(&[("counter.mcrl2", COUNTER)]);
    for goal in ["--deadlock", "--action stop"] {
        for limit in ["--timeout 0.5", "--max-memory 60MB", "--max-states 3000"] {
            let words = format!("explore counter.mcrl2 {goal} --all 1000 {limit}");
            let json = run(folder.path(), &format!("{words} --format json"));
            assert_eq!(json.code, Some(1), "{words}: {}", json.text);
            let ways = json.json["ways"].as_array().map_or(0, Vec::len);
            assert!(ways > 1, "{words}: {}", json.text);
            assert_eq!(json.json["found"], ways, "{words}: {}", json.text);
        }
        let words = format!("explore counter.mcrl2 {goal} --all 1000 --max-states 3000");
        let text = run(folder.path(), &words);
        assert_eq!(text.code, Some(1), "{words}: {}", text.text);
        assert!(text.text.contains(" after 4 steps"), "{words}: {}", text.text);
        assert!(text.text.contains(" after 14 steps"), "{words}: {}", text.text);
    }
}

/// Counts, and states that are restored, are not lost to what follows them.
#[test]
fn counts() {
    let folder = folder_with(&[("counter.mcrl2", COUNTER)]);
    let begun = run(folder.path(), "explore counter.mcrl2 --checkpoint kept --max-states 20000");
    assert_eq!(begun.code, Some(3), "{}", begun.text);
    for limit in ["--max-states 1", "--timeout 0", "--timeout 0.01", "--timeout 0.2"] {
        fs::remove_dir_all(folder.path().join("copy")).ok();
        fs::create_dir(folder.path().join("copy")).expect("a folder");
        for file in fs::read_dir(folder.path().join("kept")).expect("a folder").flatten() {
            fs::copy(file.path(), folder.path().join("copy").join(file.file_name()))
                .expect("a copy");
        }
        let words = format!("explore counter.mcrl2 --resume copy {limit} --format json");
        let resumed = run(folder.path(), &words);
        assert_eq!(resumed.code, Some(3), "{limit}: {}", resumed.text);
        let states = resumed.json["states"].as_u64();
        let unread = resumed.text.contains("was not read yet");
        assert!(states >= Some(20000) || unread && states.is_none(), "{limit}: {}", resumed.text);
    }
}

const SB: &str = "X86 SB\n{ }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
const NO: &str = "X86 NO\n{ }\n P0 ;\n MOV [x],$1 ;\nexists (x=0)\n";

/// Returns a test with very many states.
fn large_test() -> String {
    let threads = 6;
    let row = |cells: &dyn Fn(usize) -> String| {
        (0..threads).map(cells).collect::<Vec<_>>().join("|") + ";\n"
    };
    let mut text = format!("X86 large\n{{ }}\n{}", row(&|t| format!(" P{t} ")));
    for i in 0..9 {
        text += &row(&|t| match i % 3 {
            2 => format!(" MOV EAX,[x{}] ", (t + i) % threads),
            _ => format!(" MOV [x{}],${} ", (t * i) % threads, i + 1),
        });
    }
    text + "exists (0:EAX=7 /\\ 1:EAX=8 /\\ 2:EAX=9)\n"
}

#[test]
fn litmus_tests() {
    let large = large_test();
    let folder = folder_with(&[("sb.litmus", SB), ("large.litmus", &large), ("no.litmus", NO)]);
    for (model, limit, sb) in [
        ("tso", "--timeout 0.5", "true"),
        ("tso", "--max-memory 26MB --threads 1", "true"),
        ("pso", "--max-memory 40MB --threads 1", "true"),
        ("sc.cat", "--timeout 0.5", "false"),
    ] {
        let words = format!("litmus sb.litmus large.litmus --model {model} {limit}");
        let code = if sb == "true" { 3 } else { 1 };
        let json = run(folder.path(), &format!("{words} --format json"));
        assert_eq!(json.code, Some(code), "{words}: {}", json.text);
        let verdicts = members(&json, "tests", "verdict");
        assert_eq!(verdicts, [sb, "unknown"], "{words}: {}", json.text);
        assert!(json.json["tests"][1]["reason"].is_string(), "{words}: {}", json.text);
        let text = run(folder.path(), &words);
        assert_eq!(text.code, Some(code), "{words}: {}", text.text);
        for part in ["Observation SB", "Test large", "Stopped:"] {
            assert!(text.text.contains(part), "{words}: {}", text.text);
        }
        // A violated condition decides the exit code, in any order.
        let words = format!("litmus no.litmus large.litmus --model {model} {limit}");
        let violated = run(folder.path(), &words);
        assert_eq!(violated.code, Some(1), "{words}: {}", violated.text);
    }
    // Each test of a folder has a line.
    let words = "litmus . --model tso --max-memory 26MB --threads 1";
    let lines = run(folder.path(), words);
    assert!(lines.text.contains("Unknown Observation large"), "{}", lines.text);
    assert!(lines.text.contains("tests        3"), "{}", lines.text);
    // Tests on a machine: the limit is met in the search of the machine.
    let (machine, interface) =
        (package("specs/machines/tso.spec"), package("specs/machines/machine.interface"));
    let words = format!(
        "litmus sb.litmus sb.litmus --machine {machine} --interface {interface} --timeout 0 --format json"
    );
    let open = run(folder.path(), &words);
    assert_eq!(open.code, Some(3), "{}", open.text);
    assert_eq!(members(&open, "tests", "verdict"), ["unknown", "unknown"], "{}", open.text);
}

/// Checks that `sc` is refuted, with its test, and `tso` open.
fn assert_refuted(run: &Run, what: &str) {
    assert_eq!(run.code, Some(1), "{what}: {}", run.text);
    let models = members(run, "models", "name");
    let verdicts = members(run, "models", "verdict");
    let of = |name: &str| models.iter().position(|m| m == name).map(|i| &verdicts[i]);
    assert_eq!(of("sc"), Some(&json!("false")), "{what}: {}", run.text);
    assert_eq!(of("tso"), Some(&json!("unknown")), "{what}: {}", run.text);
    let sc = models.iter().position(|m| m == "sc").expect("a model");
    assert!(run.json["models"][sc]["litmus"].is_string(), "{what}: {}", run.text);
}

#[test]
fn models_of_machines() {
    let folder = tempfile::tempdir().expect("a folder");
    let machine = format!(
        "conform {} --interface {}",
        package("specs/machines/tso.spec"),
        package("specs/machines/machine.interface")
    );
    for limit in ["--timeout 4", "--max-memory 80MB --threads 1"] {
        let words = format!("{machine} --against sc --against tso --operations 6 {limit}");
        let json = run(folder.path(), &format!("{words} --format json"));
        assert_refuted(&json, &words);
        let text = run(folder.path(), &words);
        assert_eq!(text.code, Some(1), "{words}: {}", text.text);
        assert!(text.text.contains("sc              ✘"), "{words}: {}", text.text);
        assert!(
            text.text.contains("tso             ?  unknown: stopped"),
            "{words}: {}",
            text.text
        );
    }
}

/// For programs of every length: `sc` is refuted by an early search, and a later one or a check
/// meets the limit. The time of the early search is not known, so the limit grows.
#[test]
fn models_of_machines_for_every_length() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = format!(
        "conform {} --interface {} -D values=3 -D slots=3 --against sc --against tso --operations any --format json",
        package("specs/machines/tso.spec"),
        package("specs/machines/machine.interface")
    );
    let mut last = None;
    for seconds in [1, 2, 4, 8, 16, 32] {
        let run = run(folder.path(), &format!("{words} --timeout {seconds}"));
        assert_eq!(members(&run, "models", "name"), ["sc", "tso"], "{}", run.text);
        let refuted = members(&run, "models", "verdict")[0] == "false";
        last = Some(run);
        if refuted {
            break;
        }
    }
    assert_refuted(&last.expect("a run"), &words);
}

#[test]
fn traces() {
    // Traces 1 and 2 are decided at once; the last one has many stores of equal values.
    let mut log = String::from(
        "{\"trace\": \"1\", \"thread\": 0, \"operation\": \"store\", \"address\": \"x\", \"value\": 1}\n{\"trace\": \"2\", \"thread\": 0, \"operation\": \"load\", \"address\": \"x\", \"value\": 5}\n",
    );
    for i in 0..40_000 {
        for thread in 0..6 {
            let (operation, value) = if (i + thread) % 2 == 0 {
                ("store", i % 3 + 1)
            } else {
                ("load", (i + 1) % 3 + 1)
            };
            log += &format!(
                "{{\"trace\": \"3\", \"thread\": {thread}, \"operation\": \"{operation}\", \"address\": \"x{}\", \"value\": {value}}}\n",
                (i * 7 + thread) % 5
            );
        }
    }
    let folder = folder_with(&[("log.jsonl", &log)]);
    let words = "trace log.jsonl --against sc";
    // Memory, because the time for the last trace depends on the machine.
    for limit in ["--max-memory 30MB", "--max-memory 40MB"] {
        let json = run(folder.path(), &format!("{words} {limit} --format json"));
        assert_eq!(json.code, Some(1), "{limit}: {}", json.text);
        let verdicts = members(&json, "traces", "verdict");
        assert_eq!(verdicts[..2], ["true", "false"], "{limit}: {}", json.text);
        assert_ne!(json.json["stop"], "complete", "{limit}: {}", json.text);
        assert!(verdicts[2..].iter().all(|v| *v == "unknown"), "{limit}: {}", json.text);
    }
}

#[test]
fn analyses_of_robustness() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = package("specs/x86/dekker.asm");
    // The verdict is known; the interleavings and the sets of fences are too many.
    for (option, code) in [("--count --max-memory 30MB", 1), ("--count", 1), ("--fences", 3)] {
        let words = format!("robust {program} --threads-of 3 {option} --timeout 1");
        let json = run(folder.path(), &format!("{words} --format json"));
        assert_eq!(json.json["verdict"], "false", "{words}: {}", json.text);
        assert!(json.json["borderline"].is_object(), "{words}: {}", json.text);
        assert_eq!(json.code, Some(code), "{words}: {}", json.text);
    }
    let text = run(folder.path(), &format!("robust {program} --threads-of 3 --count --timeout 1"));
    assert!(text.text.contains("verdict        not robust"), "{}", text.text);
}

#[test]
fn rows() {
    let folder = folder_with(&[(
        "m.mcrl2",
        "$param n: Nat = 1;\nact a: Nat; proc P(i: Nat) = (i < ${n}) -> a(i) . P(i + 1); init P(0);\n",
    )]);
    let words = "sweep m.mcrl2 -D n=2,3,1000000000 --timeout 0.5 --out out --format json";
    let swept = run(folder.path(), words);
    assert_eq!(swept.code, Some(3), "{}", swept.text);
    let stops = members(&swept, "rows", "stop");
    assert_eq!(stops, ["complete", "complete", "timeout"], "{}", swept.text);
    assert_eq!(members(&swept, "rows", "states")[..2], [json!(3), json!(4)], "{}", swept.text);
}

#[test]
fn differences_of_models() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = "models sc tso pso --operations 6 --timeout 1.5 --format json";
    let compared = run(folder.path(), words);
    assert_eq!(compared.code, Some(3), "{}", compared.text);
    let separating = compared.json["separating"].as_array().map_or(0, Vec::len);
    assert!(separating >= 2, "{}", compared.text);
}
