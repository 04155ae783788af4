//! The command `trace`: answers, exit codes, JSON, pictures, tests of forbidden parts, damaged
//! logs, and programs that run on the local processor.

use crate::support::package;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run_in(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(line.split(' '))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs a command line in the folder of the package. Returns exit code, output, and errors.
fn run(line: &str) -> (i32, String, String) {
    let output = run_in(Path::new(&package("")), line);
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn json(line: &str) -> (i32, Value) {
    let (code, out, err) = run(&format!("{line} --format json"));
    (code, serde_json::from_str(&out).unwrap_or_else(|e| panic!("{line}: {e}: {out}{err}")))
}

/// Returns the name and verdict of each trace.
fn verdicts(value: &Value) -> Vec<(String, String)> {
    let text = |v: &Value| v.as_str().unwrap().to_string();
    let traces = value["traces"].as_array().unwrap();
    traces.iter().map(|t| (text(&t["name"]), text(&t["verdict"]))).collect()
}

/// Examples with the verdict of each of their traces under a model, `+` allowed, `-` forbidden.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("store_buffering.axe", "sc", "-"),
    ("store_buffering.axe", "tso", "+"),
    ("several.axe", "sc", "---+"),
    ("several.axe", "tso", "+--+"),
    ("several.axe", "pso", "+-++"),
    ("several.axe", "specs/memory/tso.cat", "+--+"),
    ("several.axe", "specs/memory/sc.views", "---+"),
    ("several.axe", "pc", "++-+"),
    ("message_passing.csv", "tso", "-"),
    ("message_passing.csv", "rvwmo", "+"),
    ("message_passing.csv", "pow", "?"),
    ("message_passing.jsonl", "sc", "+-"),
    ("message_passing.jsonl", "wmo", "+-"),
    ("tracegen.log", "sc", "+"),
    ("spike.log", "sc", "+"),
    ("rvfi.log", "sc", "-"),
    ("rvfi.log", "tso", "+"),
    ("rvfi.log", "rvwmo", "+"),
    ("whisper.log", "rvwmo", "-"),
    ("gem5.log", "sc", "+"),
    ("litmus7.log", "sc", "-+++"),
    ("litmus7.log", "tso", "++++"),
];

#[test]
fn examples_have_their_answers() {
    for (file, model, expected) in EXAMPLES {
        let line = format!("trace specs/traces/{file} --against {model}");
        let (code, value) = json(&line);
        let found: String = verdicts(&value)
            .iter()
            .map(|(_, v)| match v.as_str() {
                "true" => '+',
                "false" => '-',
                _ => '?',
            })
            .collect();
        assert_eq!(found, *expected, "{line}");
        let exit = match (expected.contains('-'), expected.contains('?')) {
            (true, _) => 1,
            (false, true) => 3,
            (false, false) => 0,
        };
        assert_eq!(code, exit, "{line}");
    }
}

#[test]
fn names_and_sizes() {
    let (_, value) = json("trace specs/traces/several.axe --against sc,tso --explain --witness");
    let traces = value["traces"].as_array().unwrap();
    let names: Vec<&str> = traces.iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["SB", "SB with fences", "MP", "two updates take turns"]);
    assert_eq!((&traces[1]["operations"], &traces[1]["threads"]), (&6.into(), &2.into()));
    // The answers of the models, strongest first; a trace is allowed if all models allow it.
    assert_eq!(traces[0]["verdict"], "false");
    assert_eq!(traces[0]["models"][0]["model"], "sc");
    assert_eq!(traces[0]["models"][1]["verdict"], "true");
    let cycle = traces[0]["models"][0]["conflict"]["cycle"].as_array().unwrap();
    assert!(cycle.len() >= 4, "{cycle:?}");
    for (edge, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
        assert_eq!(edge["to"], next["from"], "the edges are a cycle: {cycle:?}");
    }
    let order = traces[0]["models"][1]["order"].as_array().unwrap();
    for operation in ["0: M[0] := 1", "0: M[1] == 0", "1: M[1] := 1", "1: M[0] == 0"] {
        assert!(order.iter().any(|o| o.as_str().unwrap().starts_with(operation)), "{order:?}");
    }
    let (code, value) = json("trace specs/traces/several.axe");
    assert_eq!(value["models"].as_array().unwrap().len(), 7);
    assert_eq!((code, verdicts(&value)[1].1.as_str()), (1, "false"));
}

/// Bytes that an access without a size may share are unknown to axioms and machines, too.
#[test]
fn accesses_without_a_size_are_unknown_to_all_models() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.csv");
    let rows = "0,store,0,4294967296,\n0,load,4,1,4\n";
    std::fs::write(&log, format!("thread,operation,address,value,size\n{rows}")).unwrap();
    let machine = "specs/machines/tso.spec --interface specs/machines/machine.interface";
    let against = "--against sc,specs/memory/pc.cat";
    for how in [against, &format!("--machine {machine}")] {
        let (code, out, _) = run(&format!("trace {} {how}", log.display()));
        assert_eq!(code, 3, "{out}");
        assert!(out.contains("the access of line 2 has no size"), "{out}");
    }
}

#[test]
fn tables_and_explanations() {
    let (code, out, _) = run("trace specs/traces/store_buffering.axe");
    assert_eq!(code, 0);
    let rows: Vec<Vec<&str>> =
        out.lines().skip(2).map(|l| l.split_whitespace().take(2).collect()).collect();
    assert_eq!(rows.len(), 7, "{out}");
    assert_eq!(rows[..2], [["sc", "forbidden"], ["tso", "allowed"]]);
    let (code, out, _) = run("trace specs/traces/store_buffering.axe --against sc");
    assert_eq!(code, 1);
    for line in 2..=5 {
        assert!(out.contains(&format!("line {line}")), "{out}");
    }
    // The load that implies the edge of the cycle is printed, and is in the JSON.
    let folder = tempfile::tempdir().unwrap();
    let log = "0: M[0] := 1\n0: M[0] := 2\n0: M[0] == 1\n";
    std::fs::write(folder.path().join("co.axe"), log).unwrap();
    let output = run_in(folder.path(), "trace co.axe --against sc");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["because of line 3", "  line 3  0: M[0] == 1"] {
        assert!(text.contains(part), "{text}");
    }
    let output = run_in(folder.path(), "trace co.axe --against sc --explain --format json");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let conflict = &value["traces"][0]["models"][0]["conflict"];
    assert_eq!(conflict["operations"].as_array().unwrap().len(), 3, "{conflict}");
    let (_, out, _) = run("trace specs/traces/several.axe --against tso");
    assert!(out.contains("tso: 4 traces: 2 allowed, 2 forbidden, 0 unknown"), "{out}");
    assert!(out.contains("SB with fences") && !out.contains("several.axe: SB:"), "{out}");
}

#[test]
fn litmus_tests_of_forbidden_parts() {
    let folder = tempfile::tempdir().unwrap();
    let log = package("specs/traces/several.axe");
    let output = run_in(folder.path(), &format!("trace {log} --against sc --litmus tests"));
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("the litmus test is forbidden too").count(), 3, "{text}");
    for name in ["SB", "SB_with_fences", "MP"] {
        let path = folder.path().join(format!("tests/{name}.litmus"));
        let test = std::fs::read_to_string(&path).unwrap();
        // Fences are not part of what SC forbids.
        assert!(!test.contains("MFENCE"), "{test}");
        let judged = run_in(folder.path(), &format!("litmus {} --model sc", path.display()));
        assert!(String::from_utf8_lossy(&judged.stdout).contains("\nNo\n"), "{test}");
    }
    let line = format!("trace {log} --against rvwmo --litmus one.litmus --format json");
    let output = run_in(folder.path(), &line);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let part = &value["traces"][1]["models"][0]["litmus"];
    assert_eq!((&part["operations"], &part["confirmed"]), (&6.into(), &true.into()), "{part}");
    let test = std::fs::read_to_string(folder.path().join("one.litmus")).unwrap();
    assert!(test.starts_with("RISCV ") && test.matches("fence rw,rw").count() == 2, "{test}");
}

#[test]
fn pictures_and_pages() {
    let folder = tempfile::tempdir().unwrap();
    let log = package("specs/traces/store_buffering.axe");
    for name in ["cycle.svg", "cycle.dot", "cycle.json", "cycle.html"] {
        let line = format!("trace {log} --against sc --evidence {name} --quiet");
        assert_eq!(run_in(folder.path(), &line).status.code(), Some(1));
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(text.contains("from reads"), "{name}: {text}");
    }
    let graph = std::fs::read_to_string(folder.path().join("cycle.json")).unwrap();
    let graph: Value = serde_json::from_str(&graph).unwrap();
    let red = graph["edges"].as_array().unwrap().iter().filter(|e| e["forbids"] == true).count();
    assert_eq!((red, graph["threads"].as_array().unwrap().len()), (4, 2), "{graph}");
    let page = std::fs::read_to_string(folder.path().join("cycle.html")).unwrap();
    assert!(page.contains("SB under sc"));
    let line = format!("trace {log} --against tso --evidence none.svg");
    let output = run_in(folder.path(), &line);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no trace is forbidden"));
    let line = format!("trace {log} --against tso --evidence none.txt");
    assert_eq!(run_in(folder.path(), &line).status.code(), Some(2));
}

/// A log through standard input, plain or compressed, has the answers of its file.
#[test]
fn streams_and_compressed_logs() {
    let path = package("specs/traces/several.axe");
    let plain = std::fs::read(&path).unwrap();
    let mut gz = Vec::new();
    let compressed = Command::new("gzip").args(["-c", &path]).output();
    if let Ok(output) = compressed {
        gz = output.stdout;
    }
    for bytes in [plain, gz.clone()].iter().filter(|b| !b.is_empty()) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .args(["trace", "-", "--against", "tso", "--format", "json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found: Vec<String> = verdicts(&value).into_iter().map(|v| v.1).collect();
        assert_eq!(found, ["true", "false", "false", "true"]);
        assert_eq!(value["traces"][0]["file"], "standard input");
    }
    if gz.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cut.gz"), &gz[..gz.len() / 2]).unwrap();
    let output = run_in(folder.path(), "trace cut.gz --from axe --against tso");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("cut.gz:") && errors.contains("to its end"), "{errors}");
}

/// A trace that is decided while it is read has the answer of the whole trace.
#[test]
fn streamed_traces_have_the_same_answers() {
    for file in ["several.axe", "message_passing.jsonl", "message_passing.csv", "tracegen.log"] {
        for model in ["sc", "tso"] {
            let line = format!("trace specs/traces/{file} --against {model}");
            let (code, value) = json(&format!("{line} --stream"));
            let (expected, whole) = json(&line);
            assert_eq!((code, verdicts(&value)), (expected, verdicts(&whole)), "{line}");
            assert_eq!(value["traces"][0]["operations"], whole["traces"][0]["operations"]);
        }
    }
    // A long log, compressed, with a load of an old value behind the first window.
    let folder = tempfile::tempdir().unwrap();
    let mut log = String::new();
    for k in 1..50_000 {
        log += &format!("0: M[{}] := {k} @ {k}:\n1: M[{}] == {k} @ {k}:{}\n", k % 3, k % 3, k + 1);
    }
    let stale = "1: M[0] == 49998\n1: M[0] == 49995\n";
    std::fs::write(folder.path().join("right.axe"), &log).unwrap();
    std::fs::write(folder.path().join("wrong.axe"), format!("{log}{stale}")).unwrap();
    for (name, expected) in [("right.axe", 0), ("wrong.axe", 1)] {
        let output = run_in(folder.path(), &format!("trace {name} --against tso --stream"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(expected), "{text}");
        if expected == 1 {
            assert!(text.contains("line 100000") && text.contains("M[0] == 49995"), "{text}");
        }
        let packed = Command::new("gzip").args(["-c", name]).current_dir(folder.path()).output();
        if let Ok(packed) = packed {
            std::fs::write(folder.path().join("packed.gz"), packed.stdout).unwrap();
            let line = "trace packed.gz --from axe --against tso --stream --quiet";
            assert_eq!(run_in(folder.path(), line).status.code(), Some(expected), "{name}");
        }
    }
}

#[test]
fn bad_logs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let write = |name: &str, text: &[u8]| std::fs::write(at.join(name), text).unwrap();
    write("empty.log", b"");
    write("prose.log", b"\nIt was a dark and stormy night.\n");
    write("bad.csv", b"thread,operation,address,value\n0,store,x,1\n0,jump,x,1\n1,load,x,1\n");
    write("latin.csv", b"thread,operation,address,value\n0,store,\xe9,1\n");
    write("comments.csv", b"thread,operation,address,value\n# nothing\n");
    write("lost.log", b"Test NOWHERE Allowed\nHistogram (1 states)\n9 :>0:EAX=0;\n");
    write("cut.log", b"Test SB Allowed\nHistogram (4 states)\n9 :>0:EAX=0;\n");
    let more = b"Test SB Allowed\nHistogram (1 states)\n9 :>0:EAX=0;\n7 :>0:EAX=1;\n";
    write("more.log", more);
    for (line, expected) in [
        ("trace empty.log", "empty.log: the log is empty"),
        ("trace prose.log", "prose.log:2:1: error: the format of this log is not recognised"),
        ("trace missing.log", "cannot read `missing.log`"),
        ("trace .", "it is a folder"),
        ("trace bad.csv --against sc", "bad.csv:3:3: error: expected load, store"),
        ("trace latin.csv", "latin.csv:2:9: error: the byte 0xe9 here is not UTF-8"),
        ("trace comments.csv", "the log has no operation"),
        ("trace lost.log", "lost.log:1:6: error: there is no test of this name"),
        ("trace cut.log", "cut.log:3:1: error: the histogram of `SB` lacks 3 outcomes"),
        ("trace more.log", "more.log:4:1: error: the histogram of `SB` has more outcomes"),
        ("trace bad.csv --against sx", "no memory model for traces is called `sx`"),
        ("trace bad.csv --against sc,sc", "twice"),
        ("trace bad.csv --from morse", "invalid value 'morse'"),
        ("trace bad.csv --generate", "cannot be used with"),
        ("trace bad.csv --stream", "--against"),
        ("trace bad.csv --stream --against sc,pso", "`--stream` does not decide `pso`"),
        ("trace bad.csv --stream --against sc", "bad.csv:3:3: error: expected load, store"),
        ("trace", "required"),
        ("trace bad.csv --seed 3", "--generate"),
        ("trace --generate --language x86", "several files"),
    ] {
        let output = run_in(at, line);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        assert!(errors.contains(expected), "{line}: {errors}");
    }
    let output = run_in(at, "trace bad.csv --against sc --repair --format json");
    assert_eq!(output.status.code(), Some(0));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["traces"][0]["operations"], 2);
    assert_eq!(value["skipped"][0]["place"]["line"], 3);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("bad.csv:3:3: skipped: expected load"), "{errors}");
}

/// A limit leaves the answer open: exit code 3, never an answer.
#[test]
fn limits() {
    let (code, value) = json("trace specs/traces/several.axe --against tso --timeout 0s");
    assert_eq!((code, &value["stop"]), (3, &"timeout".into()), "{value}");
    assert!(verdicts(&value).iter().all(|v| v.1 == "unknown"), "{value}");
}

/// The compiler of the machine, if there is one.
fn compile(folder: &Path, flags: &str) -> bool {
    let sources: Vec<String> = std::fs::read_dir(folder.join("program"))
        .unwrap()
        .map(|e| e.unwrap().path().display().to_string())
        .filter(|p| p.ends_with(".c") || p.ends_with(".s"))
        .collect();
    let line =
        format!("cc -O2 -Wall -Wextra -Werror -pthread {flags} -o run {}", sources.join(" "));
    let Ok(output) = Command::new("sh").args(["-c", &line]).current_dir(folder).output() else {
        return false;
    };
    if output.status.code() == Some(127) {
        println!("there is no compiler `cc`: not tested");
        return false;
    }
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    true
}

/// Generates a program, runs it on this processor, and checks its logs.
fn runs_here(language: &str) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let line = format!(
        "trace --generate --threads 2 --addresses 4 --operations 300 --seed 7 --language {language} --out program"
    );
    assert_eq!(run_in(at, &line).status.code(), Some(0));
    if !compile(at, "") {
        return;
    }
    let log = Command::new(at.join("run")).arg("20").output().unwrap();
    std::fs::write(at.join("log"), &log.stdout).unwrap();
    let output = run_in(at, "trace log --against tso --format json");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = verdicts(&value);
    assert_eq!(found.len(), 20);
    assert_eq!(output.status.code(), Some(0), "this processor is not TSO: {found:?}");
    assert_eq!(value["traces"][0]["operations"], 600);
    // A fault on purpose is found in each round that has one.
    assert!(compile(at, "-DREORDER"));
    let log = Command::new(at.join("run")).arg("20").output().unwrap();
    std::fs::write(at.join("log"), &log.stdout).unwrap();
    let output = run_in(at, "trace log --against tso --format json");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = verdicts(&value);
    let faulty = found.iter().filter(|(name, _)| name.ends_with("reordered")).count();
    assert!(faulty > 0, "no round had a visible fault: {found:?}");
    for (name, verdict) in &found {
        let expected = if name.ends_with("reordered") { "false" } else { "true" };
        assert_eq!(verdict, expected, "{name}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn programs_on_this_processor_are_tso() {
    runs_here("c");
    runs_here("x86");
}

#[test]
fn generated_programs_repeat() {
    let line = "trace --generate --threads 3 --addresses 5 --operations 40 --seed 9 --language c";
    let (code, first, _) = run(line);
    assert_eq!((code, &first), (0, &run(line).1));
    assert_ne!(first, run(&line.replace("--seed 9", "--seed 8")).1);
    let folder = tempfile::tempdir().unwrap();
    let line = line.replace("--language c", "--language riscv --out program");
    let output = run_in(folder.path(), &line);
    assert_eq!(output.status.code(), Some(0));
    // A processor of RISC-V need not be in total store order.
    assert!(String::from_utf8_lossy(&output.stdout).contains("--against rvwmo"));
    let text = std::fs::read_to_string(folder.path().join("program/threads.s")).unwrap();
    assert_eq!(text.matches("\n    ret\n").count(), 3);
    let stores = text.matches("sd t2,").count() + text.matches("amoswap.d").count();
    assert!(stores > 30 && text.contains("fence rw, rw"), "{text}");
}

/// Histories of machines: a machine with store buffers has runs with the trace, one without has
/// not.
#[test]
fn machines() {
    let trace = |machine: &str, log: &str| {
        json(&format!(
            "trace {log} --machine specs/machines/{machine}.spec --interface specs/machines/machine.interface"
        ))
    };
    let (code, value) = trace("tso", "specs/traces/store_buffering.axe");
    assert_eq!((code, &value["traces"][0]["verdict"]), (0, &"true".into()), "{value}");
    let (code, value) = trace("sc", "specs/traces/store_buffering.axe");
    assert_eq!((code, &value["traces"][0]["verdict"]), (1, &"false".into()), "{value}");
    // Final values are not in labels.
    let (code, value) = trace("tso", "specs/traces/several.axe");
    assert_eq!(verdicts(&value)[3].1, "unknown", "{value}");
    assert_eq!(code, 1);
    let line = "trace specs/traces/store_buffering.axe --machine specs/machines/tso.spec";
    assert_eq!(run(line).0, 2);
}

/// Runs of a machine with store buffers, written by three commands, are allowed by `tso`; the run
/// that violates `sc` is forbidden by it.
#[test]
fn logs_of_machines() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let model = "specs/machines/tso.spec";
    let interface = "--interface specs/machines/machine.interface";
    for form in ["csv", "jsonl"] {
        let log = path(&format!("conform.{form}"));
        let line = format!("conform {model} {interface} --against sc --evidence {log}");
        let (code, out, err) = run(&line);
        assert_eq!(code, 1, "{line}\n{out}{err}");
        for (against, expected) in [("sc", "false"), ("tso", "true")] {
            let (_, value) = json(&format!("trace {log} --against {against}"));
            assert_eq!(verdicts(&value)[0].1, expected, "{against} {form}");
            assert_eq!(value["traces"][0]["threads"], 2);
        }
        let log = path(&format!("explore.{form}"));
        let (code, out, err) = run(&format!(
            "explore {model} {interface} -D updates=1 -D fences=1 --action update --evidence {log}"
        ));
        assert_eq!(code, 1, "{out}{err}");
        let (code, value) = json(&format!("trace {log} --against tso"));
        assert_eq!((code, verdicts(&value)[0].1.as_str()), (0, "true"));
    }
    let mut operations = 0;
    for seed in 1..=5 {
        let logs = ["csv", "jsonl"].map(|form| path(&format!("simulate{seed}.{form}")));
        let script = path("script");
        let commands = format!("random 60\nsave {}\nsave {}\n", logs[0], logs[1]);
        std::fs::write(&script, commands).unwrap();
        let line = format!(
            "simulate {model} {interface} -D updates=1 -D fences=1 --seed {seed} --script {script}"
        );
        let (code, out, err) = run(&line);
        assert_eq!(code, 0, "{out}{err}");
        let answers = logs.map(|log| json(&format!("trace {log} --against tso")));
        assert_eq!(answers[0].0, 0, "seed {seed}: {}", answers[0].1);
        let count = |v: &Value| v["traces"][0]["operations"].as_u64().unwrap();
        assert_eq!(count(&answers[0].1), count(&answers[1].1));
        operations += count(&answers[0].1);
    }
    assert!(operations > 100, "{operations}");
    // Without an interface the labels have no meaning.
    let model = path("model.mcrl2");
    std::fs::write(&model, "act a; init a . delta;\n").unwrap();
    let line = format!("explore {model} --deadlock --evidence {}", path("none.csv"));
    let (code, _, err) = run(&line);
    assert!(code == 2 && err.contains("needs an interface"), "{code} {err}");
}

/// A last line without an end is named: the log may still be written.
#[test]
fn a_log_that_is_cut_off_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let run = |text: &str| {
        std::fs::write(folder.path().join("log.axe"), text).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .current_dir(folder.path())
            .args(["trace", "log.axe", "--against", "sc"])
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let whole = "0: M[0] := 1\n1: M[0] == 1\n";
    assert_eq!(run(whole), (Some(0), String::new()));
    let (code, stderr) = run("0: M[0] := 1\n1: M[0] =");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("cut off, or still being written"), "{stderr}");
    // The value may have had more digits.
    let (code, stderr) = run("0: M[0] := 12\n1: M[0] == 1");
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("warning:") && stderr.contains("has no end of line"), "{stderr}");
}

/// Outcomes of litmus7: addresses are values of their own, and a program with a data race may do
/// anything.
#[test]
fn outcomes_with_addresses_and_of_undefined_programs() {
    let folder = tempfile::tempdir().unwrap();
    let log = |name: &str, test: &str, outcomes: &str| {
        std::fs::write(folder.path().join(format!("{name}.litmus")), test).unwrap();
        let count = outcomes.lines().count();
        let text = format!("Test {name} Allowed\nHistogram ({count} states)\n{outcomes}");
        let path = folder.path().join(format!("{name}.log"));
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let found = |log: &str, model: &str| -> Vec<String> {
        let (_, value) = json(&format!("trace {log} --against {model}"));
        verdicts(&value).into_iter().map(|v| v.1).collect()
    };
    let test = "AArch64 pointer\n{ int64_t x=0; int64_t y=0; int64_t z=0;\n\
         0:X1=x; 0:X2=y; 1:X1=x; }\n P0 | P1 ;\n STR X2,[X1] | LDR X0,[X1] ;\n\
         exists (1:X0=0)\n";
    let outcomes = "5 :>1:X0=0;\n5 :>1:X0=5;\n5 :>1:X0=y;\n5 :>1:X0=z;\n";
    let pointer = log("pointer", test, outcomes);
    assert_eq!(found(&pointer, "armv8"), ["true", "false", "true", "false"]);
    let test = "C race\n{}\nP0 (int* x) { *x = 1; }\nP1 (int* x) { int r0 = *x; }\n\
         exists (1:r0=1)\n";
    let race = log("race", test, "5 :>1:r0=1;\n5 :>1:r0=7;\n");
    assert_eq!(found(&race, "rc11"), ["true", "true"]);
    let test = "C atomic\n{}\nP0 (atomic_int* x) { atomic_store(x, 1); }\n\
         P1 (atomic_int* x) { int r0 = atomic_load(x); }\nexists (1:r0=1)\n";
    let atomic = log("atomic", test, "5 :>1:r0=1;\n5 :>1:r0=7;\n");
    assert_eq!(found(&atomic, "rc11"), ["true", "false"]);
}
