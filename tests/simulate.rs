//! The simulator without a terminal: commands and their output; traces to files and back;
//! rejections with their place.

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Two buffers of one place in a row; what passes between them is hidden.
const CHAIN: &str = "act enter, leave, give, take, mid: Nat;
proc First = sum n: Nat. (n < 2) -> enter(n) . give(n) . First;
proc Second(held: Nat) = sum n: Nat. take(n) . leave(n) . Second(n);
init hide({mid}, allow({enter, leave, mid}, comm({give|take -> mid}, First || Second(0))));
";

struct Outcome {
    code: i32,
    out: String,
    err: String,
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("chain.mcrl2"), CHAIN).unwrap();
    folder
}

/// Runs a command in a folder with a text as standard input.
fn run(folder: &Path, arguments: &str, input: &str) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(arguments.split(' '))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Outcome {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

fn script(folder: &Path, script: &str) -> Outcome {
    run(folder, "simulate chain.mcrl2 --script -", script)
}

#[test]
fn a_session() {
    let folder = folder();
    let outcome = script(
        folder.path(),
        "% what can it do?\nmoves\n\ntake enter(1)\n1\nstate\ntake leave\nback 2\ntrace\nend\nquit\nnonsense\n",
    );
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    let expected = include_str!("simulate/session.txt");
    if std::env::var_os("MU_CHECK_WRITE").is_some() {
        std::fs::write(
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulate/session.txt"),
            &outcome.out,
        )
        .unwrap();
        return;
    }
    assert_eq!(outcome.out, expected, "MU_CHECK_WRITE=1 writes it anew");
}

#[test]
fn the_same_script_gives_the_same_text() {
    let folder = folder();
    let commands = "random 30\nstate\nseed 9\nrandom 5\nback 3\nrandom\ntrace\n";
    let of = |seed: &str| script_with(folder.path(), seed, commands);
    assert_eq!(of("--seed 4"), of("--seed 4"));
    assert_ne!(of("--seed 4"), of("--seed 5"));
}

fn script_with(folder: &Path, options: &str, commands: &str) -> String {
    let outcome = run(folder, &format!("simulate chain.mcrl2 {options} --script -"), commands);
    assert_eq!(outcome.code, 0, "{}", outcome.err);
    outcome.out
}

#[test]
fn json_is_one_object() {
    let folder = folder();
    let out = script_with(
        folder.path(),
        "--format json --seed 3",
        "take enter(0)\ntake mid\nmoves\nback\nstate held\nhelp\n",
    );
    let object: Value = serde_json::from_str(&out).unwrap();
    let reply = |i: usize| &object["commands"][i]["reply"];
    assert_eq!(
        (&object["seed"], &object["at"], &object["steps"], &object["deadlock"]),
        (&3.into(), &1.into(), &2.into(), &false.into())
    );
    assert_eq!(
        (&object["commands"][0]["command"], &object["commands"][0]["line"]),
        (&"take enter(0)".into(), &1.into())
    );
    assert_eq!(reply(0)["steps"][0]["action"], "enter(0)");
    assert_eq!(
        (&reply(1)["steps"][0]["action"], &reply(1)["steps"][0]["hidden"][0]),
        (&"tau".into(), &"mid(0)".into())
    );
    assert_eq!(reply(2)["moves"].as_array().unwrap().len(), 3, "{object}");
    assert_eq!(reply(4)["state"].as_object().unwrap().len(), 1, "{object}");
    assert!(reply(5)["help"].as_str().unwrap().contains("take ACTION"));
    assert_eq!(object["moves"].as_array().unwrap().len(), 1);
}

/// The end of a counterexample, on the specification and on its transition system; steps from there
/// on.
#[test]
fn evidence_is_walked_to_its_end() {
    let folder = folder();
    let f = folder.path();
    std::fs::write(f.join("never.mcf"), "[true* . enter(1) . true* . leave(1) . enter(0)]false")
        .unwrap();
    assert_eq!(run(f, "explore chain.mcrl2 --out chain.aut", "").code, 0);
    for model in ["chain.mcrl2", "chain.aut"] {
        let outcome = run(f, &format!("check {model} never.mcf --evidence why.json"), "");
        assert_eq!(outcome.code, 1, "{}", outcome.err);
        let why: Value =
            serde_json::from_str(&std::fs::read_to_string(f.join("why.json")).unwrap()).unwrap();
        let length = why["steps"].as_array().unwrap().len();
        assert!(length >= 4, "{why}");
        let outcome = run(
            f,
            &format!("simulate {model} --trace why.json --format json --script -"),
            "trace\nsave again.json\nsave again.svg\n",
        );
        assert_eq!(outcome.code, 0, "{}", outcome.err);
        let object: Value = serde_json::from_str(&outcome.out).unwrap();
        assert_eq!((&object["at"], &object["steps"]), (&length.into(), &length.into()));
        // What is saved has the steps of the evidence, under the same keys.
        let again: Value =
            serde_json::from_str(&std::fs::read_to_string(f.join("again.json")).unwrap()).unwrap();
        let keys = |v: &Value| {
            v.as_object().unwrap().keys().filter(|k| *k != "formula").cloned().collect::<Vec<_>>()
        };
        assert_eq!(keys(&again), keys(&why));
        assert_eq!((&again["kind"], &again["parameters"]), (&"trace".into(), &why["parameters"]));
        for (a, b) in
            again["steps"].as_array().unwrap().iter().zip(why["steps"].as_array().unwrap())
        {
            let of = |v: &Value| {
                [v["action"].clone(), v["hidden"].clone(), v["changed"].clone(), v["parts"].clone()]
            };
            assert_eq!(of(a), of(b), "{model}");
        }
        assert!(std::fs::read_to_string(f.join("again.svg")).unwrap().contains("<svg"));
        // The same from within a script.
        let outcome =
            run(f, &format!("simulate {model} --script -"), "load again.json\nback\nforward\n");
        assert!(
            outcome.code == 0
                && outcome.out.contains(&format!(
                    "replayed the {length} steps of again.json; after step {length}"
                )),
            "{}",
            outcome.out
        );
    }
}

/// Evidence on a larger model, found with symmetries and with confluent steps taken at once, is a
/// run of the model.
#[test]
fn evidence_of_the_processor_is_walked() {
    let folder = folder();
    let package = |path: &str| format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    let (model, formula) = (package("specs/arcx.spec"), package("formulas/1a.gos.mcf"));
    let options = "-D memcommands_size=2 -D max_operation_id=1";
    for confluence in ["none", "auto"] {
        let check = format!(
            "check {model} {formula} {options} --confluence {confluence} --evidence why.json"
        );
        assert_eq!(run(folder.path(), &check, "").code, 1);
        let outcome = run(
            folder.path(),
            &format!("simulate {model} {options} --trace why.json --script -"),
            "state core_1\nstate\nstate nowhere\n",
        );
        assert_eq!(outcome.code, 2);
        assert!(outcome.err.contains("components: P_IP(c_processor_core_0_id)"), "{}", outcome.err);
        assert!(
            outcome.out.contains("steps of why.json")
                && outcome.out.contains("P_WB(c_processor_core_1_id)\n"),
            "{}",
            outcome.out
        );
        let (some, all) = outcome.out.split_once("> state\n").unwrap();
        assert!(
            !some.contains("core_0_id)\n") && all.contains("core_0_id)\n") && all.contains("\n* "),
            "{}",
            outcome.out
        );
    }
}

/// Evidence that ends in a loop, and evidence that branches.
#[test]
fn loops_and_branches() {
    let folder = folder();
    let f = folder.path();
    std::fs::write(f.join("always.mcf"), "mu X. ([!leave(0)]X && <true>true)").unwrap();
    assert_eq!(run(f, "check chain.mcrl2 always.mcf --evidence why.json", "").code, 1);
    let outcome = run(f, "simulate chain.mcrl2 --trace why.json --script -", "");
    assert!(
        outcome.code == 0 && outcome.out.contains("ends in a loop back to after step"),
        "{}",
        outcome.out
    );
    std::fs::write(f.join("why.json"), "{\"linear\": false, \"steps\": []}").unwrap();
    let outcome = run(f, "simulate chain.mcrl2 --trace why.json --script -", "");
    assert!(
        outcome.code == 2 && outcome.err.starts_with("why.json:1:1: error: this evidence branches"),
        "{}",
        outcome.err
    );
}

#[test]
fn what_cannot_be_done_is_refused_with_its_place() {
    let folder = folder();
    let f = folder.path();
    std::fs::write(f.join("broken.json"), "{\n  \"steps\": [,]\n}\n").unwrap();
    std::fs::write(f.join("other.json"), "{\"steps\": [{\"action\": \"enter(7)\"}]}\n").unwrap();
    for (commands, place, why) in [
        ("1\n  jump\n", "<standard input>:2:3: error:", "`jump` is not a command"),
        ("9\n", "<standard input>:1:1: error:", "there is no step 9"),
        ("0\n", "<standard input>:1:1: error:", "there is no step 0"),
        ("moves\ntake enter\n", "<standard input>:2:1: error:", "matches 2 steps"),
        ("take leave\n", "<standard input>:1:1: error:", "its steps: 1 enter(0), 2 enter(1)"),
        ("goto 3\n", "<standard input>:1:1: error:", "the path has 0 steps"),
        ("back x\n", "<standard input>:1:1: error:", "not a number of steps"),
        ("state xyz\n", "<standard input>:1:1: error:", "no parameter or component has `xyz`"),
        ("save t.pdf\n", "<standard input>:1:1: error:", "`t.pdf`"),
        ("load broken.json\n", "broken.json:2:13: error:", "not JSON"),
        (
            "load other.json\n",
            "<standard input>:1:1: error:",
            "`enter(7)`, is not a step of the model",
        ),
        ("load missing.json\n", "<standard input>:1:1: error:", "cannot read `missing.json`"),
    ] {
        let outcome = script(f, commands);
        assert_eq!(outcome.code, 2, "{commands}: {}", outcome.err);
        assert!(
            outcome.err.starts_with(place) && outcome.err.contains(why),
            "{commands}: {}",
            outcome.err
        );
    }
    std::fs::write(f.join("s.txt"), "# go\nrandom\nfly\n").unwrap();
    let outcome = run(f, "simulate chain.mcrl2 --script s.txt --format json", "");
    assert!(
        outcome.code == 2 && outcome.err.starts_with("s.txt:3:1: error: `fly`"),
        "{}",
        outcome.err
    );
    let error: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(error["error"]["place"]["line"], 3, "{error}");
    // Neither a terminal nor a script; a trace that is not there.
    assert_eq!(run(f, "simulate chain.mcrl2", "").code, 2);
    assert_eq!(run(f, "simulate chain.mcrl2 --trace missing.json --script -", "").code, 2);
    assert_eq!(run(f, "simulate chain.mcrl2 --script missing.txt", "").code, 2);
}

/// A limit is an answer of its own: the steps so far are reported.
#[test]
fn limits_end_a_script() {
    let folder = folder();
    let commands = "random 3\n".to_string() + &"random 1000000\n".repeat(5);
    let outcome = run(folder.path(), "simulate chain.mcrl2 --timeout 400ms --script -", &commands);
    assert_eq!(outcome.code, 3, "{}", outcome.err);
    assert!(
        outcome.out.starts_with("> random 3\n") && outcome.out.ends_with("stopped      timeout\n"),
        "{}",
        outcome.err
    );
    // Also if no other command comes after it.
    let outcome = run(
        folder.path(),
        "simulate chain.mcrl2 --timeout 400ms --format json --script -",
        "random 1000000\nback 1000000\n",
    );
    let object: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!((outcome.code, &object["stop"]), (3, &"timeout".into()));
}

/// A deadlock ends random steps and is reported.
#[test]
fn deadlocks() {
    let folder = folder();
    let f = folder.path();
    std::fs::write(f.join("end.aut"), "des (0, 2, 3)\n(0, \"a\", 1)\n(1, \"b\", 2)\n").unwrap();
    let outcome = run(f, "simulate end.aut --script -", "random 5\nmoves\nstate\n");
    assert_eq!(outcome.code, 0);
    assert_eq!(
        outcome.out,
        "> random 5\n     1  a\n          state = 1\n     2  b\n          state = 2\na deadlock after 2 of 5 random steps\n\
         after step 2: a deadlock\n> moves\na deadlock: no steps\n> state\n* state = 2  (was 1)\n"
    );
}
