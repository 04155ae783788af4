//! Limits and signals: each ends the run in any stage within two seconds with verdict *unknown* and
//! exit code 3; broken outputs are reported; deep, long, and endless inputs end in an answer or a
//! rejection.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Time that a run may take after its limit, on a machine that is busy with other tests.
const SLACK: Duration = Duration::from_secs(4);

fn command(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mu-check"));
    command
        .current_dir(folder)
        .args(words.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

struct Run {
    code: Option<i32>,
    json: Value,
    stdout: String,
    stderr: String,
    time: Duration,
}

fn measured_run(output: Output, start: Instant) -> Run {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Run {
        code: output.status.code(),
        json: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
        time: start.elapsed(),
    }
}

fn run(folder: &Path, words: &str) -> Run {
    let start = Instant::now();
    measured_run(command(folder, words).output().expect("the command runs"), start)
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status();
    assert!(sent.expect("a shell").success());
}

#[test]
fn a_search_goes_on_with_states_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let specification = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/arcx.spec");
    let model = format!(
        "explore {} --format json --confluence auto -D max_operation_id=4",
        specification.display()
    );
    let run = run(folder.path(), &format!("{model} --max-memory 60M --spill spilled"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let figures =
        ["states", "transitions", "deadlocks"].map(|key| run.json[key].as_u64().expect("a number"));
    assert_eq!(figures, [30_595_877, 79_886_782, 103_921], "{}", run.json);
    assert!(run.json["spilled"]["flushes"].as_u64() > Some(0), "{}", run.json);
    assert!(run.json["peak_memory_bytes"].as_u64() < Some(62_000_000), "{}", run.json);
    let left = fs::read_dir(folder.path().join("spilled")).expect("the folder is made").count();
    assert_eq!(left, 0, "files are left");
}

#[test]
fn what_states_on_disk_do_not_go_together_with_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), "").expect("a file");
    let specification = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/arcx.spec");
    for (words, message) in [
        ("--spill spilled --out out.aut", "`--spill` is for the counts"),
        ("--spill spilled --checkpoint kept", "`--spill` is for the counts"),
        ("--spill spilled --deadlock", "`--spill` are for whole explorations"),
        (
            "--spill spilled --engine symbolic",
            "`--spill` cannot be combined with `--engine symbolic`",
        ),
        ("--spill spilled --processes 2", "`--spill` cannot be combined with `--processes`"),
        ("--spill file", "cannot create the folder `file`"),
        ("--spill /proc", "/proc: cannot spill states"),
    ] {
        let run = run(folder.path(), &format!("explore {} {words}", specification.display()));
        assert_eq!(run.code, Some(2), "{words}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{words}: {}", run.stderr);
    }
}

/// Inputs with stages that do not end, or nearly: command lines with the file names of
/// [`write_inputs`], and the subject of the run.
const ENDLESS: [(&str, &str); 11] = [
    ("reading a large specification", "explore large.mcrl2"),
    ("linearising", "explore network.mcrl2"),
    ("rewriting without end", "explore endless.mcrl2"),
    ("exploring", "explore counter.mcrl2"),
    ("exploring by sets", "explore counter.mcrl2 --engine symbolic"),
    ("exploring to a file", "explore counter.mcrl2 --out out.aut"),
    ("product", "check counter.mcrl2 safe.mcf"),
    ("game", "check counter.mcrl2 fair.mcf safe.mcf"),
    ("reducing", "reduce subsets.aut --equivalence trace"),
    ("comparing", "compare subsets.aut other.aut --equivalence trace"),
    ("litmus test", "litmus large.litmus --model pso"),
];

fn write_inputs(folder: &Path) {
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
    let mut large = String::from("act a: Nat;\ninit a(0)");
    for i in 0..1_500_000 {
        large += &format!(" + a({i})");
    }
    write("large.mcrl2", &(large + ";\n"));
    let network: Vec<String> = (0..40).map(|i| format!("a({i}) . b({i}) . delta")).collect();
    write("network.mcrl2", &format!("act a, b: Nat;\ninit {};\n", network.join(" || ")));
    write(
        "endless.mcrl2",
        "map f: Nat -> Nat;\nvar n: Nat;\neqn f(n) = f(n + 1);\nact a: Nat;\nproc P(n: Nat) = a(f(n)) . P(n);\ninit P(1);\n",
    );
    write(
        "counter.mcrl2",
        "act a: Nat; b;\nproc P(n: Nat, m: Nat) = a(n) . P(n + 1, m) + (m < n) -> b . P(n, m + 1);\ninit P(0, 0);\n",
    );
    write("safe.mcf", "[true* . b . b . true* . exists n: Nat. a(n) && val(n < 0)]false\n");
    write("fair.mcf", "nu X. mu Y. (<b>X || <exists n: Nat. a(n)>Y) && [b]X\n");
    // Traces with an `a` at `n` steps before the end: a small system, very many sets of states.
    for (name, n) in [("subsets.aut", 40), ("other.aut", 41)] {
        let mut text = format!(
            "des (0,{},{})\n(0,\"a\",0)\n(0,\"b\",0)\n(0,\"a\",1)\n",
            3 + 2 * (n - 1),
            n + 1
        );
        for s in 1..n {
            text += &format!("({s},\"a\",{})\n({s},\"b\",{})\n", s + 1, s + 1);
        }
        write(name, &text);
    }
    let threads = 6;
    let mut litmus = String::from("X86 large\n{ }\n");
    litmus += &(0..threads).map(|t| format!(" P{t} ")).collect::<Vec<_>>().join("|");
    litmus += ";\n";
    for i in 0..9 {
        let row: Vec<String> = (0..threads)
            .map(|t| {
                if i % 3 == 2 {
                    format!(" MOV EAX,[x{}] ", (t + i) % threads)
                } else {
                    format!(" MOV [x{}],${} ", (t * i) % threads, i + 1)
                }
            })
            .collect();
        litmus += &(row.join("|") + ";\n");
    }
    write("large.litmus", &(litmus + "exists (0:EAX=7 /\\ 1:EAX=8 /\\ 2:EAX=9)\n"));
}

/// Checks the output of a run that was stopped. Endless rewriting may reach its own limit.
fn assert_unknown(run: &Run, what: &str, words: &[&str]) {
    if what == "rewriting without end" && run.code == Some(2) {
        assert!(run.stderr.contains('f'), "{what}: {}", run.stderr);
        return;
    }
    assert_eq!(run.code, Some(3), "{what}: {} {}", run.stdout, run.stderr);
    let text = run.json.to_string();
    assert!(
        run.json.is_object() && words.iter().any(|w| text.contains(w)),
        "{what}: {} {}",
        run.stdout,
        run.stderr
    );
    assert!(!text.contains("\"true\"") && !text.contains("\"false\""), "{what}: {text}");
}

#[test]
fn time_ends_every_stage() {
    let folder = tempfile::tempdir().unwrap();
    write_inputs(folder.path());
    for (what, words) in ENDLESS {
        let run =
            run(folder.path(), &format!("{words} --timeout 0.3 --max-memory 1GB --format json"));
        assert!(run.time < Duration::from_millis(300) + SLACK, "{what}: {:?}", run.time);
        assert_unknown(&run, what, &["timeout"]);
        if words.starts_with("compare ") {
            assert_eq!(run.json["verdict"], "unknown", "{what}: {}", run.json);
        }
        let left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .collect();
        assert!(!left.iter().any(|n| n.contains("out.aut")), "{what}: {left:?}");
    }
}

#[test]
fn signals_end_every_stage() {
    let folder = tempfile::tempdir().unwrap();
    write_inputs(folder.path());
    for (i, (what, words)) in ENDLESS.into_iter().enumerate() {
        let child = command(folder.path(), &format!("{words} --max-memory 1GB --format json"))
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let start = Instant::now();
        signal(&child, if i % 2 == 0 { "INT" } else { "TERM" });
        let run = measured_run(child.wait_with_output().unwrap(), start);
        assert!(run.time < SLACK, "{what}: {:?}", run.time);
        // A machine with little to do may run into the memory first.
        assert_unknown(&run, what, &["interrupted", "max-memory"]);
    }
}

/// Resident memory stays within 5 % of the limit in each stage. Other tests may delay the thread
/// that polls, so the test allows 15 %.
#[test]
fn memory_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    write_inputs(folder.path());
    let mut wrong = Vec::new();
    for (what, words) in ENDLESS {
        if ["rewriting without end", "litmus test"].contains(&what) {
            continue; // These need time, not memory.
        }
        let limit = 100u64 << 20;
        let run =
            run(folder.path(), &format!("{words} --max-memory {limit} --timeout 5 --format json"));
        assert_unknown(&run, what, &["max-memory", "timeout"]);
        let peak = run.json["peak_memory_bytes"]
            .as_u64()
            .unwrap_or_else(|| panic!("{what}: {}", run.json));
        if peak > limit + limit / 100 * 15 {
            wrong.push(format!("{what}: {} MiB of {} MiB", peak >> 20, limit >> 20));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Formulas that were decided before the limit keep their verdicts.
#[test]
fn what_is_known_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    write_inputs(folder.path());
    fs::write(folder.path().join("true.mcf"), "<true>true").unwrap();
    fs::write(folder.path().join("false.mcf"), "[b]true && [true]false").unwrap();
    let first = run(
        folder.path(),
        "check counter.mcrl2 true.mcf safe.mcf --timeout 0.3 --max-memory 1GB --format json",
    );
    let verdicts: Vec<&str> = first.json["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|r| r["verdict"].as_str())
        .collect();
    assert_eq!((first.code, verdicts), (Some(3), vec!["true", "unknown"]), "{}", first.stdout);
    let second =
        run(folder.path(), "check counter.mcrl2 false.mcf safe.mcf --timeout 0.3 --max-memory 1GB");
    assert_eq!(second.code, Some(1), "{}", second.stdout);
    assert!(
        second.stdout.contains("false.mcf: false") && second.stdout.contains("safe.mcf: unknown"),
        "{}",
        second.stdout
    );
    let third = run(folder.path(), "explore counter.mcrl2 --max-states 1000 --format json");
    assert_eq!(
        (third.code, third.json["stop"].as_str()),
        (Some(3), Some("max-states")),
        "{}",
        third.stdout
    );
    assert!(third.json["states"].as_u64().unwrap() >= 1000);
}

fn shell(folder: &Path, script: &str) -> Run {
    let start = Instant::now();
    let script = script.replace("mu-check", env!("CARGO_BIN_EXE_mu-check"));
    measured_run(
        Command::new("sh").current_dir(folder).args(["-c", &script]).output().expect("a shell"),
        start,
    )
}

#[test]
fn broken_outputs_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(
        here.join("m.mcrl2"),
        "act a: Nat; proc P(n: Nat) = (n < 20000) -> a(n) . P(n + 1); init P(0);",
    )
    .unwrap();
    fs::write(here.join("f.mcf"), "[true*]<true>true").unwrap();
    // A full disk.
    for words in [
        "explore m.mcrl2",
        "check m.mcrl2 f.mcf --format json",
        "linearise m.mcrl2",
        "expand m.mcrl2",
    ] {
        let full = shell(here, &format!("mu-check {words} > /dev/full"));
        assert_eq!(full.code, Some(2), "{words}: {}", full.stderr);
        assert!(
            full.stderr.contains("cannot write to standard output"),
            "{words}: {}",
            full.stderr
        );
    }
    // No output is possible, so the exit code alone reports the error.
    assert_eq!(shell(here, "mu-check -v explore m.mcrl2 2> /dev/full").code, Some(0));
    assert_eq!(shell(here, "mu-check explore none.mcrl2 2> /dev/full").code, Some(2));
    assert_eq!(shell(here, "mu-check explore m.mcrl2 > /dev/full 2> /dev/full").code, Some(2));
    // A closed pipe.
    let mut child = command(here, "explore m.mcrl2 --format json").spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    // No room for the file: nothing remains under its name or in its folder.
    for (words, name) in [
        ("explore m.mcrl2 --out o.aut", "o.aut"),
        ("check m.mcrl2 f.mcf --evidence o.aut", "o.aut"),
        ("check m.mcrl2 f.mcf --game o.pg", "o.pg"),
    ] {
        fs::write(here.join(name), "before").unwrap();
        let small = shell(here, &format!("trap '' XFSZ; ulimit -f 2; mu-check {words}"));
        assert_eq!(small.code, Some(2), "{words}: {} {}", small.stdout, small.stderr);
        assert!(small.stderr.contains("cannot write"), "{words}: {}", small.stderr);
        assert_eq!(fs::read_to_string(here.join(name)).unwrap(), "before", "{words}");
        let left = fs::read_dir(here)
            .unwrap()
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .find(|n| n.ends_with(".part"));
        assert_eq!(left, None, "{words}");
    }
    let nowhere = run(here, "explore m.mcrl2 --out nowhere/o.aut");
    assert_eq!(nowhere.code, Some(2), "{}", nowhere.stderr);
    let small = shell(
        here,
        "trap '' XFSZ; ulimit -f 2; mu-check explore m.mcrl2 --checkpoint kept --max-states 15000",
    );
    assert_eq!(small.code, Some(2), "{} {}", small.stdout, small.stderr);
}

/// If a run is killed while it writes checkpoints, the previous one is intact.
#[test]
fn a_kill_leaves_a_checkpoint_whole() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    write_inputs(here);
    let file = here.join("kept/search.checkpoint");
    let mut resumed = 0;
    for round in 0..6u64 {
        let way = if file.exists() { "--resume" } else { "--checkpoint" };
        let mut child = command(
            here,
            &format!("explore counter.mcrl2 {way} kept --checkpoint-every 0.02 --max-memory 2GB"),
        )
        .spawn()
        .unwrap();
        let start = Instant::now();
        while !file.exists() && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(100 + 37 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let checked = run(here, "explore counter.mcrl2 --resume kept --max-states 1 --format json");
        assert_eq!(
            (checked.code, checked.json["stop"].as_str()),
            (Some(3), Some("max-states")),
            "{} {}",
            checked.stdout,
            checked.stderr
        );
        resumed += checked.json["states"].as_u64().unwrap();
    }
    assert!(resumed > 0);
}

/// Runs that must end with an answer or a rejection, in time; others are printed at the end.
struct Ends<'f> {
    folder: &'f Path,
    wrong: Vec<String>,
}

impl Ends<'_> {
    fn check(&mut self, name: &str, text: &str, words: &str, codes: &[i32], says: &str) {
        fs::write(self.folder.join(name), text).unwrap();
        let run = run(self.folder, &format!("{words} --timeout 10"));
        let all = format!("{}{}", run.stdout, run.stderr);
        let start: String = all.chars().take(1000).collect();
        let fits = run.code.is_some_and(|c| codes.contains(&c))
            && all.contains(says)
            && run.stderr.len() < 100_000;
        if !fits || run.time > Duration::from_secs(10) + SLACK {
            self.wrong.push(format!("{name}: {:?} after {:?}: {start}", run.code, run.time));
        }
    }
    fn end(self) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
    }
}

#[test]
fn deep_and_long_inputs_end() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let n = 10_000;
    let mut all = Ends { folder: here, wrong: Vec::new() };
    let nested = |open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(n), close.repeat(n))
    };
    all.check(
        "data.mcrl2",
        &format!("act a: Nat; init a({});", nested("(", "1", ")")),
        "explore data.mcrl2",
        &[0],
        "transitions  2",
    );
    all.check(
        "process.mcrl2",
        &format!("act a; init {};", nested("(", "a", ")")),
        "explore process.mcrl2",
        &[0],
        "transitions  2",
    );
    all.check(
        "sum.mcrl2",
        &format!("act a: Nat; init a(1{});", " + 1".repeat(n)),
        "explore sum.mcrl2",
        &[0],
        "transitions  2",
    );
    all.check(
        "not.mcrl2",
        &format!("act a; init ({}true) -> a;", "!".repeat(n)),
        "explore not.mcrl2",
        &[0],
        "transitions  2",
    );
    all.check(
        "if.mcrl2",
        &format!("act a: Nat; init a({});", nested("if(true, ", "1", ", 2)")),
        "explore if.mcrl2",
        &[0],
        "transitions  2",
    );
    all.check(
        "sort.mcrl2",
        &format!("act a: {}; init delta;", nested("List(", "Nat", ")")),
        "explore sort.mcrl2",
        &[0, 2],
        "",
    );
    all.check(
        "seq.mcrl2",
        &format!("act a; init a{};", " . a".repeat(2000)),
        "explore seq.mcrl2",
        &[0],
        "states       2003",
    );
    all.check(
        "choice.mcrl2",
        &format!(
            "act a: Nat; init a(0){};",
            (1..5000).map(|i| format!(" + a({i})")).collect::<String>()
        ),
        "explore choice.mcrl2",
        &[0],
        "transitions  5001",
    );
    let list: Vec<String> = (0..1_000_000).map(|_| "1".to_string()).collect();
    all.check(
        "list.mcrl2",
        &format!("act a: Nat; init a(#[{}]);", list.join(",")),
        "explore list.mcrl2",
        &[0, 2, 3],
        "",
    );
    let number = "7".repeat(100_000);
    all.check(
        "number.mcrl2",
        &format!("act a: Bool; init a({number} mod 7 == 0);"),
        "explore number.mcrl2",
        &[0],
        "transitions  2",
    );
    all.check(
        "power.mcrl2",
        "act a: Nat; init a(exp(7, 1000000000000) mod 10);",
        "explore power.mcrl2",
        &[0, 2, 3],
        "",
    );
    let name = "a".repeat(1_000_000);
    all.check(
        "name.mcrl2",
        &format!("act {name}; init {name};"),
        "explore name.mcrl2 --out name.aut",
        &[0],
        "transitions  2",
    );
    all.check(
        "label.aut",
        &format!("des (0,1,2)\n(0,\"{name}(1)\",1)\n"),
        "reduce label.aut",
        &[0],
        "",
    );
    // Formulas.
    fs::write(here.join("m.mcrl2"), "act a; proc P = a . P; init P;").unwrap();
    for (name, text) in [
        ("box.mcf", format!("{}true", "[true]".repeat(n))),
        ("brackets.mcf", nested("(", "true", ")")),
        (
            "fix.mcf",
            (0..2000)
                .map(|i| format!("{} X{i}. [a]", if i % 2 == 0 { "nu" } else { "mu" }))
                .collect::<String>()
                + "X0",
        ),
        ("star.mcf", format!("[{}]true", nested("(", "a", ")*"))),
        ("and.mcf", format!("true{}", " && <a>true".repeat(n))),
    ] {
        all.check(name, &text, &format!("check m.mcrl2 {name}"), &[0, 1, 2, 3], name);
    }
    // Games and systems.
    let chain: String =
        (0..200_000).map(|i| format!("{i} {} {} {};\n", i % 7, i % 2, (i + 1) % 200_000)).collect();
    all.check("chain.pg", &format!("parity 199999;\n{chain}"), "solve chain.pg", &[0], "");
    all.check(
        "deep.bes",
        &format!("pbes nu X = {}; init X;", nested("(", "X", ")")),
        "solve deep.bes",
        &[0, 1],
        "",
    );
    all.end();
}

#[test]
fn endless_models_end() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let mut all = Ends { folder: here, wrong: Vec::new() };
    let mut explore = |name: &str, text: &str, codes: &[i32], says: &str| {
        all.check(name, text, &format!("explore {name} --max-states 2000"), codes, says);
    };
    explore(
        "queue.mcrl2",
        "act a, b; proc Q(q: List(Bool)) = sum x: Bool. a . Q(x |> q) + (#q > 0) -> b . Q(tail(q)); init Q([]);",
        &[3],
        "max-states",
    );
    // Values of 2^2000 parts, nearly all of them shared.
    explore(
        "tree.mcrl2",
        "sort T = struct leaf | node(T, T); act a; proc X(t: T) = a . X(node(t, t)); init X(leaf);",
        &[3],
        "max-states",
    );
    explore(
        "bush.mcrl2",
        "sort T = struct leaf | node(List(T)); act a; proc X(t: T) = a . X(node([t, t])); init X(leaf);",
        &[3],
        "max-states",
    );
    explore("stack.mcrl2", "act a, b; proc X = a . X . b + b; init X;", &[2, 3], "");
    explore("parallel.mcrl2", "act a; proc X = a . (X || X); init X;", &[2], "");
    explore("unguarded.mcrl2", "act a; proc X = X + a; init X;", &[2], "unguarded");
    explore("sum.mcrl2", "act a: Nat; init sum n: Nat. a(n);", &[2], "n: Nat");
    explore("half.mcrl2", "act a: Nat; init sum n: Nat. (n > 3) -> a(n);", &[2], "n");
    explore(
        "endless.mcrl2",
        "map f: Nat -> Nat; var n: Nat; eqn f(n) = f(n + 1); act a: Nat; init a(f(0));",
        &[2, 3],
        "",
    );
    explore(
        "growing.mcrl2",
        "map f: Nat -> Nat; var n: Nat; eqn f(n) = f(n) + f(n + 1); act a: Nat; init a(f(0));",
        &[2, 3],
        "",
    );
    explore(
        "swap.mcrl2",
        "sort S; cons z: S; g: S # S -> S; map f: S # S -> S; var x, y: S; eqn f(x, y) = f(y, x); act a: S; init a(f(z, z));",
        &[2, 3],
        "",
    );
    // Two normal forms: the first matching equation applies, with any number of threads.
    let two = "map f: Nat -> Nat; var n: Nat; eqn f(n) = 1; f(n) = 2; act a: Nat; init a(f(0)) . a(f(1));";
    explore("two.mcrl2", two, &[0], "transitions  3");
    let open = "map f: Nat -> Bool; act a; init f(1) -> a;";
    explore("open.mcrl2", open, &[2], "f(1)");
    all.end();
}

/// Many more threads than processors come to the same counts and verdicts, over and over.
#[test]
fn more_threads_than_processors() {
    let folder = tempfile::tempdir().unwrap();
    let model = crate::support::package("specs/arcx.spec");
    let formula = crate::support::package("formulas/1b.gos.mcf");
    let explore = |threads: u32| {
        let run = run(
            folder.path(),
            &format!(
                "explore {model} -D max_operation_id=1 --confluence auto --threads {threads} --format json"
            ),
        );
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        ["states", "transitions", "deadlocks"].map(|k| run.json[k].as_u64().unwrap())
    };
    let expected = explore(1);
    for threads in [64, 33, 64] {
        assert_eq!(explore(threads), expected, "{threads} threads");
    }
    let verdict = |threads: u32| {
        let run = run(
            folder.path(),
            &format!(
                "check {model} {formula} -D max_operation_id=1 --threads {threads} --format json"
            ),
        );
        (
            run.code,
            run.json["results"][0]["verdict"].clone(),
            run.json["results"][0]["equations"].clone(),
        )
    };
    assert_eq!(verdict(64), verdict(1));
}

/// The parameter that grows is named; a finite model that is cut off has none.
#[test]
fn a_counter_that_runs_away_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("clock.mcrl2").display().to_string();
    let text = "act tick, send: Nat;
proc Clock(n: Nat) = tick(n) . Clock(n + 1);
proc Sender(b: Bool) = send(1) . Sender(!b);
init Clock(0) || Sender(true);
";
    std::fs::write(&model, text).unwrap();
    let cut = |arguments: &[&str]| {
        let outcome = crate::support::mu_check(arguments);
        assert_eq!(outcome.code, 3, "{}", outcome.stderr);
        outcome.json["warnings"].to_string()
    };
    let warnings = cut(&["explore", &model, "--max-states", "5000"]);
    assert!(warnings.contains("`n` of Clock has the most values so far, 2,"), "{warnings}");
    let arcx = crate::support::package("specs/arcx.spec");
    assert_eq!(
        cut(&["explore", &arcx, "-D", "max_operation_id=3", "--max-states", "20000"]),
        "null"
    );
}

/// A state that differs from others by an element at either end of a list, or in a set or bag,
/// takes little more than one that holds a number.
#[test]
fn growing_collections_cost_what_they_add() {
    let folder = tempfile::tempdir().unwrap();
    let grows = |sort: &str, empty: &str, guard: &str, next: &str| {
        let model = format!(
            "act a: Nat; proc P(l: {sort}) = sum n: Nat. ({guard}) -> a(n) . P({next}); init P({empty});\n"
        );
        fs::write(folder.path().join("model.mcrl2"), model).unwrap();
        let run = run(folder.path(), "explore model.mcrl2 --threads 1 --format json");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let figure = |key: &str| run.json[key].as_u64().unwrap();
        (figure("states"), figure("peak_memory_bytes"))
    };
    let (numbers, base) = grows("Nat", "0", "n < 3 && l < 9841", "3 * l + n + 1");
    assert_eq!(numbers, 29_524);
    for (sort, empty, guard, next) in [
        ("List(Nat)", "[]", "n < 3 && #l < 9", "l ++ [n]"),
        ("List(Nat)", "[]", "n < 3 && #l < 9", "n |> l"),
        ("FSet(Nat)", "{}", "n < 15", "l + {n}"),
        ("FBag(Nat)", "{:}", "n < 6 && count(n, l) < 5", "l + {n: 1}"),
    ] {
        let (states, peak) = grows(sort, empty, guard, next);
        assert!(states >= 29_524, "{states}");
        let more = peak.saturating_sub(base) / states;
        assert!(more < 800, "{sort}, {next}: {more} bytes more a state than a number");
    }
}
