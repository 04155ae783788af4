//! The first hour of a user: example projects, with a mistake that is found and corrected as in
//! their README; lists of parameters; evaluation of expressions; a typing error in a command's
//! name.

use crate::support::{mu_check, package};
use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks formulas in a folder: the verdicts in their order.
fn verdicts(folder: &Path, arguments: &[&str]) -> Vec<String> {
    let output = run(folder, &[&["check", "--format", "json"], arguments].concat());
    let value: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)));
    value["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["verdict"].as_str().unwrap().to_string())
        .collect()
}

/// Project, verdicts before the correction, in the order of the README's command.
const PROJECTS: &[(&str, &[&str])] = &[
    ("cpu", &["false", "true", "true"]),
    ("protocol", &["false", "false", "true"]),
    ("mutex", &["false", "true", "true"]),
];

#[test]
fn projects_have_one_mistake_that_their_readme_corrects() {
    for (project, wanted) in PROJECTS {
        let scratch = tempfile::tempdir().unwrap();
        let output = run(scratch.path(), &["new", project, "mine"]);
        assert!(output.status.success(), "{project}: {}", text(&output.stderr));
        let folder = scratch.path().join("mine");
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
        // All commands of the README have the described result; the first is the check.
        let commands: Vec<Vec<&str>> = readme
            .lines()
            .filter(|l| l.starts_with(|c: char| c.is_ascii_digit()))
            .map(words)
            .collect();
        let on_machine = |c: &&Vec<&str>| ["conform", "litmus"].contains(&c[0]);
        let machine = commands.iter().filter(on_machine).count();
        assert_eq!(commands.len(), 3 + machine, "{project}");
        assert_eq!(machine, if *project == "cpu" { 4 } else { 0 }, "{project}");
        assert_eq!(verdicts(&folder, &commands[0]), *wanted, "{project}");
        let texts = commands[0].iter().filter(|w| w.ends_with(".mcrl2") || w.ends_with(".mcf"));
        let formatted =
            run(&folder, &texts.fold(vec!["fmt", "--check"], |all, w| [all, vec![w]].concat()));
        assert_eq!(formatted.status.code(), Some(0), "{}", text(&formatted.stdout));
        for command in commands.iter().filter(|c| on_machine(c) || c[0] == commands[0][0]) {
            let line = format!("cd mine && mu-check {}\n", command.join(" "));
            let first = command == &commands[0] || on_machine(&command);
            assert_eq!(text(&output.stdout).contains(&line), first, "{project}: {line}");
        }
        for command in commands.iter().filter(|c| c[0] != "simulate") {
            let output = run(&folder, command);
            assert_eq!(
                output.status.code(),
                Some(1),
                "{project}: {command:?}: {}",
                text(&output.stderr)
            );
        }
        let line = |sign: &str| readme.lines().find_map(|l| l.strip_prefix(sign)).unwrap().trim();
        let path = folder.join(commands[0][0]);
        let spec = std::fs::read_to_string(&path).unwrap();
        assert_eq!(spec.matches(line("-  ")).count(), 1, "{project}");
        std::fs::write(&path, spec.replace(line("-  "), line("+  "))).unwrap();
        assert_eq!(verdicts(&folder, &commands[0]), ["true"; 3], "{project}: corrected");
        for command in commands.iter().filter(on_machine) {
            let output = run(&folder, command);
            assert_eq!(output.status.code(), Some(0), "{command:?}: {}", text(&output.stdout));
        }
    }
}

/// Returns the words of the command in back quotes that a line holds, without the program's name.
fn words(line: &str) -> Vec<&str> {
    let command = line
        .split('`')
        .find_map(|part| part.strip_prefix("mu-check "))
        .unwrap_or_else(|| panic!("{line}"));
    command.split(' ').collect()
}

#[test]
fn the_readme_of_the_processor_says_from_which_size_on_it_fails() {
    let scratch = tempfile::tempdir().unwrap();
    assert!(run(scratch.path(), &["new", "cpu", "mine"]).status.success());
    let folder = scratch.path().join("mine");
    let at = |size: &str| verdicts(&folder, &["cpu.mcrl2", "own_stores.mcf", "-D", size]);
    assert_eq!(
        [at("buffer_size=1"), at("buffer_size=2"), at("buffer_size=3")],
        [["true"], ["false"], ["false"]]
    );
    // Nothing that is there is written over.
    let again = run(scratch.path(), &["new", "mutex", "mine"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        text(&again.stderr).contains("the folder `mine` is not empty"),
        "{}",
        text(&again.stderr)
    );
    assert!(!folder.join("mutex.mcrl2").exists());
}

#[test]
fn expressions_are_evaluated() {
    let scratch = tempfile::tempdir().unwrap();
    let model = scratch.path().join("m.mcrl2");
    std::fs::write(&model, "$param n: Nat = 2;\nmap twice: Nat -> Nat; var k: Nat; eqn twice(k) = ${n} * k;\ninit delta;\n").unwrap();
    let model = model.display().to_string();
    let cases: &[(&[&str], &str)] = &[
        (&["eval", "[1,2]++[3]"], "[1, 2, 3]\n"),
        (&["eval", "exists n: Nat . n < 10 && n * n == 49"], "true\n"),
        (&["eval", "5 - 7", "-v"], "-2: Int\n"),
        (&["eval", "succ(0) mod 5"], "1\n"),
        (&["eval", "twice(4)", &model], "8\n"),
        (&["eval", "twice(4)", &model, "-D", "n=10"], "40\n"),
    ];
    for (arguments, wanted) in cases {
        let output = run(scratch.path(), arguments);
        assert_eq!(text(&output.stdout), *wanted, "{arguments:?}: {}", text(&output.stderr));
    }
    let output = run(scratch.path(), &["eval", "twice(x)", &model]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).starts_with("EXPRESSION:1:7: error: `x` is not declared"),
        "{}",
        text(&output.stderr)
    );
    let output = run(
        scratch.path(),
        &["eval", "exp(2, exp(10, 12)) > 0", "--timeout", "1s", "--max-memory", "500M"],
    );
    assert!(
        [Some(0), Some(2), Some(3)].contains(&output.status.code()),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn parameters_are_listed() {
    let scratch = tempfile::tempdir().unwrap();
    let model = scratch.path().join("m.mcrl2");
    let spec = "$param cores: Pos = 2 where cores <= 4;  % how many there are\n$param fast: Bool = true;\nact a: Nat;\ninit a(${cores});\n";
    std::fs::write(&model, spec).unwrap();
    let listed = "cores: Pos = 2 where cores <= 4  how many there are\nfast: Bool = true\n";
    for command in
        [&["explore", "m.mcrl2", "-D", "help"][..], &["check", "m.mcrl2", "no.mcf", "-D", "help"]]
    {
        let output = run(scratch.path(), command);
        assert_eq!(
            (output.status.code(), text(&output.stdout).as_str()),
            (Some(0), listed),
            "{}",
            text(&output.stderr)
        );
    }
    let output = run(scratch.path(), &["info", "m.mcrl2", "-D", "cores=3"]);
    let shown = text(&output.stdout);
    assert!(
        shown.contains("parameters     cores: Pos = 2 where cores <= 4  how many there are\n"),
        "{shown}"
    );
    let json =
        mu_check(&["info".to_string(), model.display().to_string(), "-D".into(), "cores=3".into()])
            .json;
    assert_eq!(
        (json["declared"][0]["value"].as_str(), json["parameters"]["cores"].as_str()),
        (Some("3"), Some("3")),
        "{json}"
    );
}

#[test]
fn a_slip_in_a_command() {
    let folder = tempfile::tempdir().unwrap();
    for (word, wanted) in
        [("explor", "explore"), ("chekc", "check"), ("symulate", "simulate"), ("inof", "info")]
    {
        let output = run(folder.path(), &[word, "m.mcrl2"]);
        assert_eq!(output.status.code(), Some(2), "{word}");
        let expected = format!(
            "error: there is no command and no file `{word}`\n  note: did you mean `mu-check {wanted}`?\n"
        );
        assert_eq!(text(&output.stderr), expected);
    }
    // A file of that name is a model.
    std::fs::write(folder.path().join("explor"), "act a; init a . delta;").unwrap();
    std::fs::write(folder.path().join("f.mcf"), "<a>true").unwrap();
    assert_eq!(run(folder.path(), &["explor", "f.mcf"]).status.code(), Some(0));
    assert!(Path::new(&package("README.md")).exists());
}

/// A file with a byte order mark, as editors under Windows write it, is read as one without; places
/// do not move.
#[test]
fn byte_order_marks() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("m.mcrl2"),
        "\u{feff}$param n: Nat = 1;\nact a: Nat; init a(${n});",
    )
    .unwrap();
    std::fs::write(folder.path().join("f.mcf"), "\u{feff}<a(1)>true").unwrap();
    std::fs::write(folder.path().join("bad.mcrl2"), "\u{feff}act a; init b;").unwrap();
    assert_eq!(run(folder.path(), &["m.mcrl2", "f.mcf"]).status.code(), Some(0));
    let output = run(folder.path(), &["explore", "bad.mcrl2"]);
    assert!(
        text(&output.stderr).starts_with("bad.mcrl2:1:13: error: "),
        "{}",
        text(&output.stderr)
    );
}
