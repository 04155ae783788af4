//! Output for scripts and servers of continuous integration: expected answers of litmus tests,
//! JUnit reports, several formulas with an error in one.

use crate::support::package;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Store buffering, which total store order allows, and the same with fences, which it forbids.
fn litmus(folder: &Path) {
    let test = |name: &str, fence: &str| {
        let row = if fence.is_empty() { String::new() } else { format!(" {fence} | {fence} ;\n") };
        format!(
            "X86 {name}\n{{ x=0; y=0; }}\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n{row} MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n"
        )
    };
    let tests = folder.join("tests");
    std::fs::create_dir(&tests).unwrap();
    std::fs::write(tests.join("SB.litmus"), test("SB", "")).unwrap();
    std::fs::write(tests.join("SBF.litmus"), test("SBF", "MFENCE")).unwrap();
}

#[test]
fn wanted_answers() {
    let folder = tempfile::tempdir().unwrap();
    litmus(folder.path());
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("right.txt", "SB Sometimes\nSBF Forbidden\n");
    write("wrong.txt", "SB Never\nSBF Never\nMP Allowed\n");
    let right = run(folder.path(), &["litmus", "tests", "--expected", "right.txt", "-q"]);
    assert_eq!(right.status.code(), Some(0), "{}", text(&right.stdout));
    assert!(text(&right.stdout).ends_with("\nas expected  2 of 2\n"), "{}", text(&right.stdout));
    let wrong =
        run(folder.path(), &["litmus", "tests", "--expected", "wrong.txt", "--junit", "out.xml"]);
    assert_eq!(wrong.status.code(), Some(1));
    let text_output = text(&wrong.stdout);
    let ending = "\nas expected  1 of 2\ndiffers      SB: expected Never, found Sometimes (Ok)  (tests/SB.litmus)\nno such test 1: MP\n";
    assert!(text_output.ends_with(ending), "{text_output}");
    let report = std::fs::read_to_string(folder.path().join("out.xml")).unwrap();
    assert!(
        report.contains("tests=\"2\" failures=\"1\" errors=\"0\"")
            && report.contains("expected Never, found Sometimes"),
        "{report}"
    );
    // Under sequential consistency store buffering is not seen: the same wishes are met, but for
    // the one without a test.
    assert_eq!(
        run(folder.path(), &["litmus", "tests", "--model", "sc", "--expected", "wrong.txt"])
            .status
            .code(),
        Some(3)
    );
    for none in ["", "MP Allowed\n", "./tests/SB.litmus\ttso\t0\n"] {
        write("none.txt", none);
        assert_eq!(
            run(folder.path(), &["litmus", "tests", "--expected", "none.txt"]).status.code(),
            Some(3),
            "{none:?}"
        );
    }
    write("broken.txt", "SB Perhaps\n");
    let broken = run(folder.path(), &["litmus", "tests", "--expected", "broken.txt"]);
    assert_eq!(broken.status.code(), Some(2));
    assert!(
        text(&broken.stderr).starts_with("broken.txt:1:4: error: `Perhaps` is not an answer"),
        "{}",
        text(&broken.stderr)
    );
}

/// Text after `<<` is for other tools.
#[test]
fn what_follows_the_condition() {
    let folder = tempfile::tempdir().unwrap();
    litmus(folder.path());
    let path = folder.path().join("tests/SB.litmus");
    let plain = text(&run(folder.path(), &["litmus", "tests/SB.litmus"]).stdout);
    let more = std::fs::read_to_string(&path).unwrap() + "<<\nanything { | \" at all\n>>\n";
    std::fs::write(&path, more).unwrap();
    let output = run(folder.path(), &["litmus", "tests/SB.litmus"]);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(0), plain),
        "{}",
        text(&output.stderr)
    );
}

/// A picture of a small system, and the refusal of a large one.
#[test]
fn pictures_of_systems() {
    let folder = tempfile::tempdir().unwrap();
    let model = "$param n: Nat = 3;\nact up, down: Nat;\nproc P(i: Nat) = (i < ${n}) -> up(i) . P(i + 1) + (i > 0) -> down(i) . P(Int2Nat(i - 1));\ninit P(0);\n";
    std::fs::write(folder.path().join("m.mcrl2"), model).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(
        run(folder.path(), &["info", "m.mcrl2", "--draw", "all.svg"]).status.code(),
        Some(0)
    );
    let all = read("all.svg");
    // Four states in a row; three arrows down, three back.
    assert_eq!(
        (
            all.matches("class=\"number\"").count(),
            all.matches("class=\"edge\"").count(),
            all.matches("class=\"back\"").count()
        ),
        (4, 3, 3)
    );
    let small = [
        "reduce",
        "m.mcrl2",
        "--hide",
        "up,down",
        "--equivalence",
        "branching",
        "--draw",
        "small.svg",
    ];
    assert_eq!(run(folder.path(), &small).status.code(), Some(0));
    assert_eq!(read("small.svg").matches("class=\"number\"").count(), 1);
    let large = run(folder.path(), &["info", "m.mcrl2", "-D", "n=1000", "--draw", "large.svg"]);
    assert_eq!(large.status.code(), Some(2));
    assert!(
        text(&large.stderr).contains("1001 states are too many for a picture"),
        "{}",
        text(&large.stderr)
    );
}

/// Formulas from the command line, from standard input, several in a file; one that is wrong does
/// not stop the others.
#[test]
fn formulas_from_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("m.mcrl2", "act a, b;\nproc P = a . b . P;\ninit P;\n");
    write(
        "all.mcf",
        "% a, then b\n%% property alternating\n[true* . a . a]false\n%% property wrong\n[true* . c]false\n%% property live\n[true*]<true>true\n",
    );
    let output =
        run(folder.path(), &["m.mcrl2", "all.mcf", "-f", "<b>true", "-q", "--junit", "out.xml"]);
    assert_eq!(output.status.code(), Some(2));
    let lines = "all.mcf#wrong: unknown (error)\nall.mcf#alternating: true\nall.mcf#live: true\n<b>true: false\n";
    assert_eq!(text(&output.stdout), lines);
    // The place is that of the file.
    assert!(
        text(&output.stderr).starts_with("all.mcf:5:10: error: action `c` is not declared"),
        "{}",
        text(&output.stderr)
    );
    let report = std::fs::read_to_string(folder.path().join("out.xml")).unwrap();
    assert!(report.contains("tests=\"4\" failures=\"1\" errors=\"1\""), "{report}");
    // On standard output: the report alone, with the same cases. A limit is a case without an
    // answer, not a report that is missing.
    let output = run(
        folder.path(),
        &["check", "m.mcrl2", "all.mcf", "-f", "<b>true", "-q", "--format", "junit"],
    );
    let timeless = |xml: &str| {
        xml.split("time=\"")
            .map(|p| p.split_once('"').map_or(p, |(_, rest)| rest).to_string())
            .collect::<String>()
    };
    let (printed, written) = (timeless(&text(&output.stdout)), timeless(&report));
    assert_eq!((output.status.code(), printed.as_str()), (Some(2), written.as_str()));
    let output = run(
        Path::new(&package("")),
        &["specs/arcx.spec", "formulas/1a.gos.mcf", "--format=junit", "--timeout", "0s"],
    );
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("errors=\"1\"")
            && text(&output.stdout).contains("unknown: timeout"),
        "{}",
        text(&output.stdout)
    );
    // A model or a formula that is refused is an error in the report.
    write("wrong.mcrl2", "act a;\ninit b;\n");
    for (line, name) in
        [(["wrong.mcrl2", "-f", "true"], "true"), (["m.mcrl2", "-f", "[c]false"], "[c]false")]
    {
        let output =
            run(folder.path(), &[&["check"], &line[..], &["--junit", "refused.xml"]].concat());
        let report = std::fs::read_to_string(folder.path().join("refused.xml")).unwrap();
        assert!(
            output.status.code() == Some(2)
                && report.contains("tests=\"1\" failures=\"0\" errors=\"1\""),
            "{report}"
        );
        assert!(
            report.contains(&format!("name=\"{name}\""))
                && report.contains("is declared neither") != report.contains("is not declared"),
            "{report}"
        );
        std::fs::remove_file(folder.path().join("refused.xml")).unwrap();
    }
    // For every value of a parameter too.
    write(
        "n.mcrl2",
        "$param n: Nat = 1;\nact a: Nat;\nproc P(k: Nat) = (k < ${n}) -> a(k) . P(k + 1);\ninit P(0);\n",
    );
    let output =
        run(folder.path(), &["n.mcrl2", "-D", "n=any", "-f", "[true*]true", "--format", "junit"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(
        text(&output.stdout).contains("tests=\"1\" failures=\"0\" errors=\"0\""),
        "{}",
        text(&output.stdout)
    );
    // The results in JSON have the order of the command line.
    let output = run(folder.path(), &["check", "m.mcrl2", "all.mcf", "--format", "json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text_output: Vec<String> = value["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| format!("{} {}", r["formula"], r["verdict"]))
        .collect();
    assert_eq!(
        text_output,
        [
            "\"all.mcf#alternating\" \"true\"",
            "\"all.mcf#wrong\" \"unknown\"",
            "\"all.mcf#live\" \"true\""
        ]
    );
    assert_eq!(
        (
            value["results"][1]["error"]["place"]["line"].as_u64(),
            value["results"][1]["reason"].as_str()
        ),
        (Some(5), Some("error"))
    );
    // Standard input.
    let mut child = Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(["m.mcrl2", "-", "-q"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"<a . b>true").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), text(&output.stdout).as_str()),
        (Some(0), "standard input: true\n")
    );
    // A single formula that is wrong is an error as ever.
    let output = run(folder.path(), &["m.mcrl2", "-f", "<c>true"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(
        text(&output.stderr).starts_with("formula 1:1:2: error: action `c` is not declared"),
        "{}",
        text(&output.stderr)
    );
}
