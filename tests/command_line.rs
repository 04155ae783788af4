//! The program in a shell, a terminal, and a script: completions, manual pages, colours, timings.

use crate::support::package;
use serde_json::Value;
use std::process::{Command, Output};

fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mu-check"));
    command
        .args(arguments)
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .envs(environment.iter().copied());
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

const COMMANDS: [&str; 30] = [
    "cluster",
    "fmt",
    "lsp",
    "studio",
    "report",
    "prove",
    "verify",
    "models",
    "check",
    "sweep",
    "explore",
    "expand",
    "linearise",
    "reduce",
    "compare",
    "info",
    "convert",
    "pbes",
    "solve",
    "simulate",
    "litmus",
    "conform",
    "program",
    "robust",
    "trace",
    "new",
    "eval",
    "completions",
    "manual",
    "help",
];

#[test]
fn completions_know_all_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = text(&run(&["completions", shell], &[]));
        for word in COMMANDS.iter().chain(&["--evidence", "divergence-branching", "--max-memory"]) {
            // Fish writes long options without dashes; the last two do not complete values.
            let word = if shell == "fish" { word.trim_start_matches('-') } else { word };
            if word == "divergence-branching" && ["elvish", "powershell"].contains(&shell) {
                continue;
            }
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    assert_eq!(run(&["completions", "tcsh"], &[]).status.code(), Some(2));
}

/// Bash itself reads the script and completes with it.
#[test]
fn bash_completes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("completions");
    std::fs::write(&file, run(&["completions", "bash"], &[]).stdout).unwrap();
    let ask = format!(
        "source {}; COMP_WORDS=(mu-check explore --red); COMP_CWORD=2; f=$(complete -p mu-check); \
         f=${{f#*-F }}; ${{f%% *}} mu-check --red explore; echo \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    let Ok(output) = Command::new("bash").args(["--norc", "-c", &ask]).output() else { return };
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "--reduce",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn manual_pages() {
    let page = text(&run(&["manual"], &[]));
    assert!(
        page.contains(".TH mu-check 1")
            && page.contains("mu\\-check\\-explore(1)")
            && page.contains("Exit codes"),
        "{page}"
    );
    // Command lines are not wrapped.
    assert!(
        page.contains("Examples:\n.nf\n  mu\\-check specs/arcx.spec ")
            && page.contains("\n.fi\n\nExit codes"),
        "{page}"
    );
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man/man1");
    text(&run(&["manual", "--out", &out.display().to_string()], &[]));
    for name in COMMANDS
        .iter()
        .filter(|c| **c != "help")
        .map(|c| format!("mu-check-{c}.1"))
        .chain(["mu-check.1".into()])
    {
        let page =
            std::fs::read_to_string(out.join(&name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(
            page.contains(&format!(".TH {} 1", name.trim_end_matches(".1")))
                && page.contains("Example"),
            "{name}: {page}"
        );
    }
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), COMMANDS.len());
}

/// Neither results nor errors nor help have escape sequences on a pipe, and none anywhere with
/// `NO_COLOR`.
#[test]
fn colours_are_for_terminals() {
    let model = package("specs/arcx.spec");
    let lines: [(&[&str], i32); 5] = [
        (&["explore", &model, "-D", "max_operation_id=0", "-v"], 0),
        (&["explore", "missing.mcrl2"], 2),
        (&["explore", "--nonsense"], 2),
        (&["check", "--help"], 0),
        (&["--help"], 0),
    ];
    let escapes = |o: &Output| o.stdout.iter().chain(&o.stderr).filter(|b| **b == 0x1b).count();
    for (arguments, code) in lines {
        for environment in
            [&[][..], &[("NO_COLOR", "1")], &[("NO_COLOR", "1"), ("TERM", "xterm-256color")]]
        {
            let output = run(arguments, environment);
            assert_eq!(output.status.code(), Some(code), "{arguments:?}");
            assert_eq!(escapes(&output), 0, "{arguments:?} {environment:?}");
        }
    }
    // Help has colours if the environment forces them, and `NO_COLOR` takes precedence.
    assert!(escapes(&run(&["--help"], &[("CLICOLOR_FORCE", "1")])) > 0);
    assert_eq!(escapes(&run(&["--help"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")])), 0);
}

#[test]
fn timings_have_stages() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("timings.json").display().to_string();
    let read = || serde_json::from_str::<Value>(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let stages = |timings: &Value| -> Vec<(String, f64)> {
        let of =
            |s: &Value| (s["stage"].as_str().unwrap().to_string(), s["seconds"].as_f64().unwrap());
        timings["stages"].as_array().unwrap().iter().map(of).collect()
    };
    let arcx = package("specs/arcx.spec");
    let formulas = [package("formulas/1a.gos.mcf"), package("formulas/1b.gos.mcf")];
    text(&run(
        &[
            "check",
            &arcx,
            &formulas[0],
            &formulas[1],
            "-D",
            "max_operation_id=0",
            "--timings",
            &file,
        ],
        &[],
    ));
    let timings = read();
    let list = stages(&timings);
    let names: Vec<&str> = list.iter().map(|s| s.0.as_str()).collect();
    for name in [
        "reading the specification",
        "linearising",
        "compiling the linear process",
        "reading the formulas",
    ] {
        assert!(names.contains(&name), "{timings}");
    }
    let checked: Vec<&Value> = timings["stages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|s| s["stage"] == "checking a formula")
        .map(|s| &s["file"])
        .collect();
    assert_eq!(checked, formulas.iter().collect::<Vec<_>>(), "{timings}");
    // The stages are all of the run, but for the time before the arguments were read.
    let (sum, all) = (list.iter().map(|s| s.1).sum::<f64>(), timings["seconds"].as_f64().unwrap());
    assert!(all > 0.0 && (sum - all).abs() < 0.1, "{timings}");
    // A run that a limit ends has its timings too.
    let args =
        ["explore", &arcx, "-D", "max_operation_id=9", "--timeout", "700ms", "--timings", &file];
    assert_eq!(run(&args, &[]).status.code(), Some(3));
    assert!(stages(&read()).iter().any(|s| s.0 == "searching"), "{}", read());
    let aut = folder.path().join("a.aut").display().to_string();
    text(&run(
        &[
            "explore",
            &arcx,
            "-D",
            "max_operation_id=0",
            "--reduce",
            "strong",
            "--out",
            &aut,
            "--timings",
            &file,
        ],
        &[],
    ));
    let names: Vec<String> = stages(&read()).into_iter().map(|s| s.0).collect();
    assert_eq!(names[names.len() - 3..], ["searching", "reducing", "writing"], "{names:?}");
    // A file that cannot be written is refused before any work.
    assert_eq!(
        run(&["explore", &arcx, "--timings", "/no/such/folder/t.json"], &[]).status.code(),
        Some(2)
    );
}

#[test]
fn executions_have_fences_and_happens_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let text = "X86 SB+mfences\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MFENCE      | MFENCE      ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
    std::fs::write(path("SB.litmus"), text).unwrap();
    let output = run(
        &[
            "litmus",
            &path("SB.litmus"),
            "--by",
            "axioms",
            "--model",
            "tso",
            "--evidence",
            &path("SB.json"),
        ],
        &[],
    );
    assert_eq!(output.status.code(), Some(1), "the condition is not met");
    let graph: Value =
        serde_json::from_str(&std::fs::read_to_string(path("SB.json")).unwrap()).unwrap();
    let event = |text: &str, thread: u64| {
        let found = |e: &Value| e["text"] == text && e["thread"].as_u64() == Some(thread);
        graph["events"].as_array().unwrap().iter().position(found).unwrap() as u64
    };
    let has = |name: &str, from: u64, to: u64| {
        let relation =
            graph["relations"].as_array().unwrap().iter().find(|r| r["name"] == name).unwrap();
        relation["pairs"].as_array().unwrap().contains(&serde_json::json!([from, to]))
    };
    let (x, y) = ((event("W x=1", 0), event("R y=0", 0)), (event("W y=1", 1), event("R x=0", 1)));
    // The fences order each thread, and the reads come before the writes that they do not see: a
    // cycle.
    for name in ["fence", "ghb"] {
        assert!(has(name, x.0, x.1) && has(name, y.0, y.1), "{name}: {graph}");
    }
    assert!(has("ghb", x.1, y.0) && has("ghb", y.1, x.0) && !has("fence", x.1, y.0), "{graph}");
}

#[test]
fn models_answer_as_machines_and_by_axioms() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("SB.litmus").display().to_string();
    let sb = "X86 SB\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
    std::fs::write(&file, sb).unwrap();
    for (model, allowed) in [("sc", false), ("tso", true), ("pso", true)] {
        for (by, unit) in [("machine", "searched_states"), ("axioms", "searched_executions")] {
            // The folder is not the package's: the axioms are those of the program.
            let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
                .args(["litmus", &file, "--model", model, "--by", by, "--format", "json"])
                .current_dir(folder.path())
                .output()
                .unwrap();
            let said: Value = serde_json::from_slice(&output.stdout).unwrap();
            let test = &said["tests"][0];
            assert!(test.get(unit).is_some(), "{model} by {by}: {said}");
            assert_eq!(
                test["positive"].as_u64(),
                Some(u64::from(allowed)),
                "{model} by {by}: {said}"
            );
        }
    }
}

/// Runs with an option that has no effect on them. The option is the last word that begins with a
/// dash.
const WITHOUT_EFFECT: [&str; 33] = [
    "program specs/x86/spinlock.asm --split-xchg",
    "program specs/x86/spinlock.asm --threads-of 3 --initial any",
    "program specs/x86/spinlock.asm --initial zero",
    "program specs/x86/spinlock.asm -D size=3",
    "prove specs/cubicle/naive_mutex.cub --split-xchg",
    "prove specs/cubicle/naive_mutex.cub --initial any",
    "verify specs/cubicle/naive_mutex.cub absent.proof --split-xchg",
    "verify specs/cubicle/naive_mutex.cub absent.proof --max-states 3",
    "expand specs/x86/spinlock.asm --initial any",
    "expand specs/x86/spinlock.asm --to cubicle --threads-of 3",
    "expand specs/x86/spinlock.asm --to cubicle --model sc",
    "expand specs/arcx.spec --threads-of 3",
    "expand specs/arcx.spec --buffer 3",
    "robust specs/x86/sb.litmus --threads-of 3",
    "robust specs/x86/spinlock.asm -D size=3",
    "litmus specs/x86/sb.litmus --unroll 3",
    "litmus specs/x86/sb.litmus --include specs/memory",
    "litmus specs/x86/sb.litmus --model rvwmo --buffer 3",
    "litmus specs/x86/sb.litmus --by axioms --buffer 3",
    "litmus specs/x86/sb.litmus --model rvwmo --by machine",
    "litmus specs/x86/sb.litmus --machine m.mcrl2 --interface m.interface --unroll 3",
    "litmus specs/x86/sb.litmus -D size=3",
    "check specs/arcx.spec -f [true*]<true>true --threads-of 3",
    "check specs/arcx.spec -f [true*]<true>true --model sc",
    "check specs/arcx.spec -f [true*]<true>true --internal i",
    "check specs/arcx.spec -f [true*]<true>true --check-samples 3",
    "check specs/arcx.spec --solver zielonka",
    "explore specs/cubicle/naive_mutex.cub --threads-of 3",
    "explore specs/murphi/german.m --check-samples 3",
    "explore specs/arcx.spec --data specs/arcx.spec",
    "explore specs/arcx.spec --evidence absent.svg",
    "explore specs/arcx.spec --deadlock --confluence auto",
    "compare specs/arcx.spec specs/arcx.spec --buffer 3",
];

#[test]
fn options_without_effect_are_rejected() {
    for line in WITHOUT_EFFECT {
        let words: Vec<&str> = line.split(' ').collect();
        let option = words.iter().rfind(|w| w.starts_with('-')).unwrap();
        let output = run(&words, &[]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        assert!(
            message.contains(&format!("`{option}` has no effect on this run: it applies to ")),
            "{line}: {message}"
        );
    }
    // A default value is none that the line names.
    for line in [
        "program specs/x86/spinlock.asm --threads-of 2",
        "expand specs/x86/spinlock.asm --to cubicle --split-xchg",
    ] {
        text(&run(&line.split(' ').collect::<Vec<_>>(), &[]));
    }
}

/// An output that is a symbolic link remains one, and its target is written; a file keeps its
/// permissions.
#[cfg(unix)]
#[test]
fn outputs_keep_links_and_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("target")).unwrap();
    std::fs::write(path("m.mcrl2"), "act a; init a . delta;").unwrap();
    std::fs::write(path("target/old.aut"), "des (0,0,1)\n").unwrap();
    std::fs::set_permissions(path("target/old.aut"), PermissionsExt::from_mode(0o640)).unwrap();
    symlink("target/old.aut", path("old.aut")).unwrap();
    symlink("target/new.aut", path("new.aut")).unwrap();
    symlink("new.aut", path("twice.aut")).unwrap();
    for (name, written) in
        [("old.aut", "old.aut"), ("new.aut", "new.aut"), ("twice.aut", "new.aut")]
    {
        let model = path("m.mcrl2").display().to_string();
        let out = path(name).display().to_string();
        text(&run(&["explore", &model, "--out", &out], &[]));
        assert!(std::fs::symlink_metadata(path(name)).unwrap().is_symlink(), "{name}");
        let file = path("target").join(written);
        assert!(std::fs::read_to_string(&file).unwrap().starts_with("des (0,1,2)"), "{name}");
        std::fs::write(&file, "").unwrap();
    }
    let mode = std::fs::metadata(path("target/old.aut")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(files.len(), 5, "{files:?}");
    // A pipe is written, not replaced.
    if Command::new("mkfifo").arg(path("pipe")).status().is_ok_and(|s| s.success()) {
        let pipe = path("pipe");
        let reader = std::thread::spawn(move || std::fs::read_to_string(pipe).unwrap());
        let model = path("m.mcrl2").display().to_string();
        let out = path("pipe").display().to_string();
        text(&run(&["explore", &model, "--timings", &out], &[]));
        assert!(reader.join().unwrap().contains("stages"));
        // Nothing writes to it: a limit ends the run, and `sweep` cannot read it for each row.
        let [proof, specification] = ["pipe.cub", "pipe.mcrl2"].map(|name| {
            let made = Command::new("mkfifo").arg(path(name)).status();
            assert!(made.unwrap().success());
            path(name).display().to_string()
        });
        let system = package("specs/cubicle/lamport.cub");
        for (words, code) in [
            (vec!["verify", &system, &out, "--timeout", "1"], 3),
            (vec!["prove", &proof, "--timeout", "1"], 3),
            (vec!["sweep", &specification, "--out", "rows"], 2),
        ] {
            let outcome = run(&words, &[]);
            assert_eq!(outcome.status.code(), Some(code), "{words:?}");
        }
    }
}
