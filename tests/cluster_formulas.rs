//! Formulas checked by several processes, compared with one process: verdicts, equations, states,
//! evidence, warnings; games; limits, kills, checkpoints.

use crate::cluster::newest;
use crate::support::{Outcome, mu_check, package};
use mu_check::base::random::Random;
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Three customers in a queue, with values of several sorts; each may leave, and then is gone.
const QUEUE: &str = "sort Id = struct a | b | c;
act join, called, serve, gone: Id; count: Nat; leave: Id # List(Id);
proc Customer(i: Id, n: Nat) = (n < 1) -> join(i) . called(i) . Customer(i, n + 1) + (n == 1) -> gone(i) . delta;
proc Desk(l: List(Id)) = sum i: Id. (!(i in l)) -> join(i) . Desk(l <| i)
  + (#l > 0) -> called(head(l)) . Desk(tail(l)) + count(#l) . Desk(l);
init allow({serve, leave, gone, count, join}, comm({join | join -> join, called | called -> serve},
  Customer(a, 0) || Customer(b, 0) || Customer(c, 0) || Desk([])));
";

fn write_file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn check(model: &str, formulas: &[&str], options: &str) -> Outcome {
    let mut words = vec!["check".to_string(), model.to_string()];
    formulas.iter().for_each(|f| words.extend(["-f".to_string(), f.to_string()]));
    words.extend(options.split_whitespace().map(String::from));
    mu_check(&words)
}

/// Returns the parts of a result that do not depend on the number of processes. If a search ended
/// early, that is only the length of the evidence.
fn comparable(result: &Value) -> Vec<Value> {
    let steps = result["evidence"].as_array().map_or(0, Vec::len) as u64
        + result["evidence_left_out"].as_u64().unwrap();
    let mut out = vec![result["verdict"].clone(), result["reason"].clone(), steps.into()];
    if steps == 0 {
        out.extend(["equations", "states", "vacuous"].map(|key| result[key].clone()));
    }
    out
}

fn all_results(outcome: &Outcome) -> Vec<Vec<Value>> {
    let results =
        outcome.json["results"].as_array().unwrap_or_else(|| panic!("{}", outcome.stderr));
    results.iter().map(comparable).collect()
}

#[test]
fn verdicts_equations_and_evidence_are_those_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let queue = write_file(folder.path(), "queue.mcrl2", QUEUE);
    let arcx = package("specs/arcx.spec");
    let files = ["1a.gos", "2.selfobserving", "3.cacheconsistency"]
        .map(|f| package(&format!("formulas/{f}.mcf")))
        .join(" ");
    let formulas = [
        "[true*]<true>true",
        "[true*.gone(a).true*.join(a)]false",
        "forall i: Id. [true*.gone(i)][true*.(join(i) || serve(i))]false",
        "<true*.serve(c).true*.gone(c).true*.serve(a)>true",
        "exists i, j: Id. val(i < j) && <true*.gone(j).true*.gone(i)>true",
        "nu X(l: List(Id) = []). val(#l < 4) && [!exists i: Id. join(i)]X(l) && forall i: Id. [join(i)]X(if(i in l, l, l <| i))",
        "nu X(n: Nat = 0). val(n < 5) && [!exists i: Id. serve(i)]X(n) && [exists i: Id. serve(i)]X(n + 1)",
        "[true*.serve(b).true*.leave(b, [])]false",
    ];
    let cases: [(&str, &[&str], &str); 4] = [
        (&queue, &formulas, "--without por"),
        (&queue, &formulas[..3], "--without por,symmetry"),
        (&arcx, &[], &format!("-D max_operation_id=0 {files} --without por")),
        (&package("tests/broken/locks.mcrl2"), &["[true*]<true>true"], "--without por"),
    ];
    let (mut decided, mut sent) = (0, 0);
    for (model, formulas, options) in cases {
        let one = check(model, formulas, options);
        assert!([0, 1].contains(&one.code), "{}", one.stderr);
        decided += all_results(&one).iter().filter(|comparable| comparable[2] != 0).count();
        for count in [1, 3] {
            let many = check(model, formulas, &format!("{options} --processes {count}"));
            assert_eq!(many.code, one.code, "{model}, {count} processes: {}", many.stderr);
            assert_eq!(
                all_results(&many),
                all_results(&one),
                "{model} {options}, {count} processes"
            );
            assert_eq!(many.json["processes"]["count"], count);
            sent += many.json["processes"]["sent_states"].as_u64().unwrap();
        }
    }
    assert!(decided > 4 && sent > 10_000, "{decided} decided, {sent} states sent");
}

/// A search that lacks a value ends in all processes; the first one decides the equation system.
#[test]
fn formulas_that_no_search_decides_have_the_verdicts_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let infinite = write_file(
        folder.path(),
        "infinite.mcrl2",
        "act a: Nat; b; proc P(i: Nat) = sum m: Nat. a(m) . P(m) + b . P(i); init P(0);",
    );
    let finite = write_file(
        folder.path(),
        "finite.mcrl2",
        "act a: Nat; b; proc P(i: Nat) = (i < 5) -> a(i) . P(i + 1) + b . P(i); init P(0);",
    );
    let of_infinite = [
        "<b>true",
        "<a(2)>true",
        "[a(0)]<a(1)>true",
        "exists m: Nat. <a(m)>true",
        "forall m: Nat. [a(m)]val(m < 3)",
        "[true*.a(7)]false",
        "<b>true && val(1 < 2)",
    ];
    let of_finite = [
        "forall m: Nat. <true*.a(m)>true",
        "[true*]<b>true",
        "forall m: Nat. (val(m > 4) || <true*.a(m)>true)",
        "forall m: Nat. (val(m > 10) || <true*.a(m)>true)",
    ];
    for (model, formulas) in [(&infinite, &of_infinite[..]), (&finite, &of_finite[..])] {
        let verdicts = |outcome: &Outcome| {
            let results = outcome.json["results"].as_array().cloned().unwrap_or_default();
            results.iter().map(|r| r["verdict"].to_string()).collect::<Vec<_>>()
        };
        let one = check(model, formulas, "");
        assert!(verdicts(&one).contains(&"\"false\"".to_string()), "{}", one.stderr);
        assert!(verdicts(&one).contains(&"\"true\"".to_string()), "{}", one.stderr);
        for count in [1, 3] {
            let many = check(model, formulas, &format!("--processes {count}"));
            assert_eq!(many.code, one.code, "{count} processes: {}", many.stderr);
            assert_eq!(verdicts(&many), verdicts(&one), "{count} processes");
        }
    }
}

/// A rejected formula does not stop the others: only process 0 prints it.
#[test]
fn one_of_several_formulas_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let queue = write_file(folder.path(), "queue.mcrl2", QUEUE);
    let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(["check", &queue, "-f", "<nosuch>true", "-f", "<join(a)>true", "--processes", "2"])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.matches("`nosuch` is not declared").count(), 1, "{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let verdicts: Vec<&str> = stdout.lines().filter(|l| !l.starts_with(' ')).collect();
    assert_eq!(verdicts.len(), 2, "{stdout}");
    assert_eq!(verdicts[0], "<nosuch>true: unknown (error)");
    assert!(verdicts[1].starts_with("<join(a)>true: true"), "{stdout}");
}

#[test]
fn least_fixed_points_need_a_graph_without_cycles() {
    let folder = tempfile::tempdir().unwrap();
    let text = "act a, b: Nat;\nproc P(n: Nat) = (n < 9) -> a(n) . P(n + 1) + (n < 8) -> b(n) . P(n + 2) + (n == 9) -> a(9) . P(10);\n";
    let ends =
        write_file(folder.path(), "ends.mcrl2", &format!("{text}init P(0) || P(0) || P(5);\n"));
    // Something may come to a state from which something had gone on, since ways to a state have
    // several lengths.
    let at_last = "[true*.b(0)]mu X. [!a(9)]X";
    let one = check(&ends, &["mu X. [!a(9)]X"], "--without por");
    for count in [1, 3] {
        let many = check(&ends, &["mu X. [!a(9)]X"], &format!("--processes {count}"));
        assert_eq!((many.code, all_results(&many)), (0, all_results(&one)), "{}", many.stderr);
    }
    // The model has a cycle, but only after the required action.
    let after = text.replace("P(10);", "Q;\nproc Q = b(7) . Q;")
        + "init allow({a, b}, P(0) || P(0) || P(5));\n";
    let after = write_file(folder.path(), "after.mcrl2", &after);
    for formula in ["mu X. [!a(9)]X", "[b(0)]mu X. [!a(9)]X", "mu X. [!a(9) && !b(7)]X"] {
        let one = check(&after, &[formula], "--without por");
        assert!([0, 1].contains(&one.code), "{}", one.stderr);
        for count in [2, 3] {
            let many = check(&after, &[formula], &format!("--processes {count}"));
            // One process has reached the states beyond, in its second search.
            let [one_parts, many_parts] = [&one, &many].map(|o| all_results(o)[0][..4].to_vec());
            assert_eq!(
                (many.code, many_parts),
                (one.code, one_parts),
                "{formula}: {}",
                many.stderr
            );
        }
    }
    let turns = write_file(
        folder.path(),
        "turns.mcrl2",
        &format!("{text}proc Q = b(100) . Q;\ninit P(0) || Q;\n"),
    );
    // Formulas with cycles of obligations, and those that no product decides, are left to the first
    // process.
    for formula in ["mu X. [!a(9)]X", at_last, "nu X. mu Y. <true>Y || <a(9)>X"] {
        let one = check(&turns, &[formula], "--without por");
        assert!(
            [0, 1].contains(&one.code) && one.json["results"][0]["alone"].is_null(),
            "{}",
            one.stderr
        );
        for count in [1, 2] {
            let many = check(&turns, &[formula], &format!("--processes {count}"));
            assert_eq!(
                (many.code, all_results(&many)),
                (one.code, all_results(&one)),
                "{formula}: {}",
                many.stderr
            );
            assert_eq!(
                (&many.json["results"][0]["reason"], &many.json["results"][0]["alone"]),
                (&"game".into(), &true.into())
            );
        }
    }
    // Others are checked by all, before and after.
    let formulas = [
        "[true*]<true>true",
        "mu X. [!a(9)]X",
        "[true*.a(9)]false",
        "nu X. mu Y. <true>Y || <a(9)>X",
    ];
    let (one, many) =
        (check(&turns, &formulas, "--without por"), check(&turns, &formulas, "--processes 2"));
    assert_eq!((many.code, all_results(&many)), (one.code, all_results(&one)), "{}", many.stderr);
    let alone: Vec<bool> =
        many.json["results"].as_array().unwrap().iter().map(|r| r["alone"] == true).collect();
    assert_eq!(alone, [false, true, false, true]);
    assert!(
        many.json["processes"]["each"]
            .as_array()
            .unwrap()
            .iter()
            .all(|p| p["peak_memory_bytes"].as_u64() > Some(1 << 20))
    );
}

/// The first process solves games, with the value, figures, and evidence of one process.
#[test]
fn games_have_the_verdicts_equations_and_evidence_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let queue = write_file(folder.path(), "queue.mcrl2", QUEUE);
    let arcx = package("specs/arcx.spec");
    let formulas = [
        "nu X. mu Y. <true>Y || <serve(a)>X",
        "[true*.join(a)]mu X. ([!serve(a)]X && <true>true)",
        "[true*.join(b)](nu Y. mu X. <true>X || [!serve(b)]Y)",
        "<true*.serve(c)>true && nu X. mu Y. [gone(a)]X && [!gone(a)]Y",
        "forall i: Id. [true*](<true*.gone(i)>true || <true*.serve(i)>true)",
        "nu X. [true]X && mu Y. <true>Y || <gone(a)>true",
        "nu X. [true]X && (mu Y. <true>Y || <count(0)>true || <count(1)>true || <count(2)>true || <count(3)>true)",
        "nu X. mu Y. <true>Y || <count(0)>X",
    ];
    let own = ["[true*]mu X. (<true>X || [true]false)", "nu X. mu Y. (<true>Y || <tau>X)"];
    let cases: [(&str, &[&str], &str); 3] = [
        (&queue, &formulas, ""),
        (&queue, &formulas, "--without symmetry,quotient"),
        (&arcx, &own, "-D max_operation_id=0"),
    ];
    let (mut alone, mut verdicts) = (0, [0, 0]);
    for (model, formulas, options) in cases {
        let apart = options.replace("symmetry,", "por,symmetry,");
        let one = check(
            model,
            formulas,
            &if options.contains("--without") { apart } else { format!("{options} --without por") },
        );
        assert!([0, 1].contains(&one.code), "{}", one.stderr);
        for comparable in all_results(&one) {
            verdicts[usize::from(comparable[0] == "true")] += 1;
        }
        for count in [2, 5] {
            let many = check(model, formulas, &format!("{options} --processes {count}"));
            assert_eq!(
                (many.code, all_results(&many)),
                (one.code, all_results(&one)),
                "{model} {options}, {count} processes: {}",
                many.stderr
            );
            alone += many.json["results"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|r| r["alone"] == true)
                .count();
        }
    }
    assert!(alone > 15 && verdicts.iter().all(|n| *n > 2), "{alone} alone, {verdicts:?}");
    // The waiting processes have the verdict as well.
    let listeners: Vec<TcpListener> =
        (0..2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let hosts: Vec<String> =
        listeners.iter().map(|l| l.local_addr().unwrap().to_string()).collect();
    drop(listeners);
    let (hosts, secret) = (
        write_file(folder.path(), "hosts", &hosts.join("\n")),
        write_file(folder.path(), "secret", "a secret of these two\n"),
    );
    for (formula, code) in [(formulas[7], 0), (formulas[0], 1)] {
        let start = |me: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_mu-check"));
            command.args([
                "check",
                &queue,
                "-f",
                formula,
                "--cluster",
                &hosts,
                "--secret",
                &secret,
                "--process",
                me,
                "--timeout",
                "60s",
            ]);
            command
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap()
        };
        let codes: Vec<Option<i32>> =
            [start("1"), start("0")].into_iter().map(|mut c| c.wait().unwrap().code()).collect();
        assert_eq!(codes, [Some(code), Some(code)], "{formula}");
    }
}

/// Process 0 has its part of the memory for a game, and ends if another process is lost while it
/// plays.
#[test]
#[cfg(target_os = "linux")]
fn a_game_too_large_and_a_process_lost_meanwhile_end_all() {
    let folder = tempfile::tempdir().unwrap();
    let model = write_file(folder.path(), "large.mcrl2", LARGE);
    let game = "nu X. mu Y. <true>Y || <a(40)>X";
    let large = check(&model, &[game], "--processes 2 --max-memory 160M");
    let result = &large.json["results"][0];
    assert_eq!(
        (large.code, result["verdict"].as_str(), result["reason"].as_str()),
        (3, Some("unknown"), Some("max-memory")),
        "{result}"
    );

    let mut run = Command::new(env!("CARGO_BIN_EXE_mu-check"));
    run.args([
        "check",
        &model,
        "-f",
        game,
        "--processes",
        "3",
        "--format",
        "json",
        "--max-memory",
        "6G",
    ]);
    let run = run
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let others = loop {
        let found = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", run.id()))
            .unwrap_or_default();
        let others: Vec<String> = found.split_whitespace().map(String::from).collect();
        if others.len() == 2 {
            break others;
        }
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(2));
    };
    // The game is being built when the first process has much more memory than it had before.
    let pages = |pid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        text.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
    };
    while pages(run.id()) < 40_000 {
        assert!(begin.elapsed() < Duration::from_secs(90), "{} pages", pages(run.id()));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-9", &others[0]]).status().unwrap().success());
    let killed = Instant::now();
    let output = run.wait_with_output().unwrap();
    assert!(killed.elapsed() < Duration::from_secs(20), "{:?}", killed.elapsed());
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["results"][0]["reason"].as_str(), Some("process-lost"), "{json}");
    assert!(json["processes"]["lost"].as_str().is_some_and(|l| l.contains("signal: 9")), "{json}");
    assert!(
        others.iter().all(|p| !Path::new(&format!("/proc/{p}/exe")).exists()),
        "they outlive it"
    );
}

/// A process knows only the labels of its own transitions. So one process reports labels that no
/// transition has, and several processes only those that follow from the text of the model.
#[test]
fn unreachable_labels_are_reported_by_one_process_only() {
    let folder = tempfile::tempdir().unwrap();
    let queue = write_file(folder.path(), "queue.mcrl2", QUEUE);
    let formulas = ["[true*.count(7)]false", "[true*.leave(a, [])]false"];
    let comparable = |outcome: &Outcome| {
        let results = outcome.json["results"]
            .as_array()
            .unwrap_or_else(|| panic!("{}", outcome.stderr))
            .clone();
        let has = |n: usize, text: &str| results[n]["notes"].to_string().contains(text);
        (
            has(0, "the search saw no step labelled count(7)"),
            has(1, "no step is ever labelled leave"),
        )
    };
    assert_eq!(comparable(&check(&queue, &formulas, "--without por")), (true, true));
    for count in [2, 3] {
        let many = check(&queue, &formulas, &format!("--processes {count}"));
        assert_eq!(
            (many.code, comparable(&many)),
            (0, (false, true)),
            "{count} processes: {}",
            many.json
        );
    }
}

/// Returns a model of three parties with random steps, some together.
fn random_model(random: &mut Random) -> String {
    let mut text = String::from("act a, b, c: Nat; s, r, t: Nat;\n");
    for p in 0..3 {
        let mut summands = Vec::new();
        for _ in 0..4 + random.below(4) {
            let (at, to, value) = (random.below(4), random.below(4), random.below(2));
            let act = ["a", "b", "c", if p == 1 { "r" } else { "s" }][random.below(4)];
            summands.push(format!("(n == {at}) -> {act}({value}) . P{p}({to})"));
        }
        text += &format!("proc P{p}(n: Nat) = {};\n", summands.join(" + "));
    }
    text + "init allow({a, b, c, t}, comm({s | r -> t}, P0(0) || P1(0) || P2(0)));\n"
}

fn random_formula(random: &mut Random) -> String {
    let mut act = || {
        let name = ["a", "b", "c", "t"][random.below(4)];
        match random.below(3) {
            0 => format!("(exists m: Nat. {name}(m))"),
            _ => format!("{name}({})", random.below(2)),
        }
    };
    let (x, y, z) = (act(), act(), act());
    match random.below(6) {
        0 => format!("[true*.{x}.{y}.!{z}]false"),
        1 => format!("[true*.{x}.(!{y})*.{z}]false"),
        2 => format!("<true*.{x}.(!{y})*.{z}>true"),
        3 => format!("[true*.{x}]<true>true"),
        4 => format!("forall m: Nat. val(m > 1) || [true*.a(m).(!{y})*.c(m)]false"),
        _ => format!(
            "nu X(n: Nat = 0). val(n < 3) && [{x}]X(n + 1) && [{y}]X(0) && [!{x} && !{y}]X(n)"
        ),
    }
}

#[test]
fn random_formulas_on_random_models_have_the_same_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let (mut held, mut failed) = (0, 0);
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let model = write_file(folder.path(), "random.mcrl2", &random_model(&mut random));
        let formulas: Vec<String> = (0..8).map(|_| random_formula(&mut random)).collect();
        let formulas: Vec<&str> = formulas.iter().map(String::as_str).collect();
        let one = check(&model, &formulas, "--without por");
        assert!([0, 1].contains(&one.code), "seed {seed}: {}", one.stderr);
        let count = 2 + seed % 3;
        let many = check(&model, &formulas, &format!("--processes {count}"));
        assert_eq!(
            (many.code, all_results(&many)),
            (one.code, all_results(&one)),
            "seed {seed}: {}",
            many.stderr
        );
        for comparable in all_results(&one) {
            if comparable[0] == "true" { held += 1 } else { failed += 1 }
        }
    }
    assert!(held > 8 && failed > 8, "{held} hold, {failed} do not");
}

/// Formulas with least fixed points: what one process checks by product several do as well, and the
/// first one plays the games.
#[test]
fn random_formulas_about_the_end_have_the_same_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let (mut by_all, mut games) = (0, 0);
    for seed in 0..8 {
        let mut random = Random::new(900 + seed);
        let model = write_file(folder.path(), "random.mcrl2", &random_model(&mut random));
        for _ in 0..4 {
            let mut act =
                || format!("{}({})", ["a", "b", "c", "t"][random.below(4)], random.below(2));
            let (x, y, z) = (act(), act(), act());
            let formula = match random.below(3) {
                0 => format!("[true*.{x}]mu X. [!{y} && !{z}]X"),
                1 => format!("[true*.{x}.{y}]mu X. ([!{z}]X && [{z}]mu Y. [{x}]Y)"),
                _ => format!("nu X. ([true]X && [{x}]mu Y. [{y} || {z}]Y)"),
            };
            let one = check(&model, &[&formula], "--without por");
            assert!([0, 1].contains(&one.code), "seed {seed}: {}", one.stderr);
            let many = check(&model, &[&formula], &format!("--processes {}", 1 + seed % 3));
            assert_eq!(
                (many.code, all_results(&many)),
                (one.code, all_results(&one)),
                "seed {seed}, {formula}: {}",
                many.stderr
            );
            if many.json["results"][0]["reason"] == "game" { games += 1 } else { by_all += 1 }
        }
    }
    assert!(by_all > 8 && games > 4, "{by_all} by all, {games} by a game");
}

#[test]
fn confluent_steps_are_taken_at_once_where_one_process_does() {
    let arcx = package("specs/arcx.spec");
    let formulas = ["[true*]<true>true", "[tau]false", "[true*.tau.tau]false"];
    let own = package("formulas/1a.gos.mcf");
    let options = format!("{own} -D max_operation_id=1 --confluence auto");
    let one = check(&arcx, &formulas, &format!("{options} --without por"));
    let comparable = |outcome: &Outcome| -> Vec<(Value, Value)> {
        let results =
            outcome.json["results"].as_array().unwrap_or_else(|| panic!("{}", outcome.stderr));
        results
            .iter()
            .map(|r| (r["confluence"].clone(), r["partial_order"]["reason"].clone()))
            .collect()
    };
    let words: Vec<(Value, Value)> =
        comparable(&one).into_iter().map(|t| (t.0, "processes".into())).collect();
    assert!(
        words.iter().any(|w| w.0["used"] == true) && words.iter().any(|w| w.0["used"] == false),
        "{words:?}"
    );
    for count in [1, 3] {
        let many = check(&arcx, &formulas, &format!("{options} --processes {count}"));
        assert_eq!(
            (many.code, all_results(&many)),
            (one.code, all_results(&one)),
            "{count} processes: {}",
            many.stderr
        );
        assert_eq!(comparable(&many), words, "{count} processes");
    }
}

#[test]
fn limits_and_what_is_not_done_are_named() {
    let arcx = package("specs/arcx.spec");
    let few = check(
        &arcx,
        &["[true*]<true>true"],
        "-D max_operation_id=2 --processes 3 --max-states 20000 --without symmetry",
    );
    let result = &few.json["results"][0];
    assert_eq!(
        (few.code, result["verdict"].as_str(), result["reason"].as_str()),
        (3, Some("unknown"), Some("max-states")),
        "{}",
        few.stderr
    );
    for (options, what) in [
        ("--threads 2", "`--threads`"),
        ("--engine symbolic", "`--engine symbolic`"),
        ("--game x.pg", "`--game`"),
        ("-D max_operation_id=any", "`any` as a value"),
    ] {
        let refused = check(&arcx, &["true"], &format!("--processes 2 {options}"));
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(
            refused.stderr.contains(what) && refused.stderr.contains("--processes"),
            "{options}: {}",
            refused.stderr
        );
    }
    let alone = check(&arcx, &["true"], "--engine cluster");
    assert!(alone.code == 2 && alone.stderr.contains("add `--processes N`"), "{}", alone.stderr);
}

/// A search of a formula that limits or kills end resumes with any number of processes.
#[test]
fn a_check_that_ends_early_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept").display().to_string();
    let formula = package("formulas/1a.gos.mcf");
    let common = format!("check {} {formula} -D max_operation_id=2", package("specs/arcx.spec"));
    let run = |options: &str| {
        mu_check(
            &format!("{common} {options}").split_whitespace().map(String::from).collect::<Vec<_>>(),
        )
    };
    let whole = run("--without por");
    // A process alone has more states than the limit before the search could end.
    for (count, way, limit) in
        [(3, "--checkpoint", 1), (2, "--resume", 30_000), (4, "--resume", 200_000)]
    {
        let stopped = run(&format!(
            "--processes {count} {way} {kept} --checkpoint-every 20ms --max-states {limit}"
        ));
        assert_eq!(
            (stopped.code, stopped.json["results"][0]["reason"].as_str()),
            (3, Some("max-states")),
            "{}",
            stopped.stderr
        );
        let command = stopped.json["processes"]["resume"]
            .as_str()
            .unwrap_or_else(|| panic!("{}", stopped.json));
        assert!(
            command.starts_with("mu-check check") && command.ends_with(&format!("--resume {kept}")),
            "{command}"
        );
    }
    // One of the processes is killed, once a checkpoint of this search is whole; should all end
    // before that, again.
    let rounds = || {
        let folders = std::fs::read_dir(&kept).unwrap().map(|f| f.unwrap().path());
        folders.map(|f| newest(&f)).collect::<Vec<_>>()
    };
    let killed = (0..20).find(|_| {
        let before = rounds();
        let mut run = Command::new(env!("CARGO_BIN_EXE_mu-check"));
        run.args(common.split_whitespace()).args([
            "--processes",
            "2",
            "--resume",
            &kept,
            "--checkpoint-every",
            "0s",
        ]);
        let mut run = run
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while rounds() == before && run.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < Duration::from_secs(90), "no checkpoint");
            std::thread::sleep(Duration::from_millis(2));
        }
        let others = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", run.id()))
            .unwrap_or_default();
        if let Some(other) = others.split_whitespace().next() {
            Command::new("kill")
                .args(["-9", other])
                .stderr(std::process::Stdio::null())
                .status()
                .unwrap();
        }
        let output = run.wait_with_output().unwrap();
        assert!(
            [Some(3), Some(0)].contains(&output.status.code()),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.status.code() == Some(3)
    });
    assert!(killed.is_some(), "no search was lost");
    let end = run(&format!("--processes 3 --resume {kept}"));
    assert_eq!((end.code, all_results(&end)), (0, all_results(&whole)), "{}", end.stderr);
    let other = check(
        &package("specs/arcx.spec"),
        &["[true*]<true>true"],
        &format!("-D max_operation_id=1 --processes 2 --resume {kept}.none"),
    );
    assert!(other.code == 2 && other.stderr.contains("cannot read the folder"), "{}", other.stderr);
}

/// More states than anybody has time for.
const LARGE: &str = "act a: Nat;\nproc P(i: Nat) = (i < 40) -> a(i) . P(i + 1);\ninit P(0) || P(0) || P(0) || P(0) || P(0);\n";

/// Returns a check of it by three processes, with checkpoints; how it ends once something was done
/// to one of the others, and how many of them outlive it.
fn disturb(folder: &Path, signal: Option<&str>, options: &str) -> (Outcome, Duration) {
    let model = write_file(folder, "large.mcrl2", LARGE);
    let kept = folder.join("kept");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mu-check"));
    command.args([
        "check",
        &model,
        "-f",
        "[true*.a(40)]false",
        "--without",
        "symmetry",
        "--processes",
        "3",
        "--format",
        "json",
    ]);
    command
        .args(["--checkpoint", &kept.display().to_string(), "--checkpoint-every", "20ms"])
        .args(options.split_whitespace());
    let run = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let id = run.id();
    let others = move || {
        let found =
            std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        found.split_whitespace().map(String::from).collect::<Vec<String>>()
    };
    let (mut met, mut at) = (Vec::new(), Instant::now());
    if let Some(signal) = signal {
        let shares = || {
            std::fs::read_dir(&kept)
                .into_iter()
                .flatten()
                .flatten()
                .flat_map(|f| std::fs::read_dir(f.path()))
                .flatten()
                .count()
        };
        // The first round is written, so that there is something to go on from.
        while shares() < 4 || others().len() < 2 {
            assert!(at.elapsed() < Duration::from_secs(90), "no checkpoint");
            std::thread::sleep(Duration::from_millis(2));
        }
        met = others();
        assert!(Command::new("kill").args([signal, &met[1]]).status().unwrap().success());
        at = Instant::now();
    }
    let output = run.wait_with_output().unwrap();
    let took = at.elapsed();
    assert!(met.iter().all(|p| !Path::new(&format!("/proc/{p}/exe")).exists()), "they outlive it");
    let outcome = Outcome {
        code: output.status.code().unwrap_or(-1),
        json: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    (outcome, took)
}

/// Checks that the verdict is unknown for this reason, and that the printed command resumes.
fn goes_on(outcome: &Outcome, reason: &str) {
    let result = &outcome.json["results"][0];
    assert_eq!(
        (outcome.code, result["verdict"].as_str(), result["reason"].as_str()),
        (3, Some("unknown"), Some(reason)),
        "{}",
        outcome.stderr
    );
    let command = outcome.json["processes"]["resume"]
        .as_str()
        .unwrap_or_else(|| panic!("{}{}", outcome.json, outcome.stderr));
    assert!(outcome.stderr.contains(command), "{}", outcome.stderr);
    let mut words: Vec<String> = Vec::new();
    let mut given = command.split_whitespace().skip(1).map(|w| w.trim_matches('\'').to_string());
    while let Some(word) = given.next() {
        // The limit is lifted, the format is given again; the formula has no spaces.
        if ["--max-memory", "--format"].contains(&&word[..]) {
            drop(given.next())
        } else {
            words.push(word)
        }
    }
    let on = mu_check(&[words, vec!["--max-states".into(), "1".into()]].concat());
    assert_eq!(
        (on.code, on.json["results"][0]["reason"].as_str()),
        (3, Some("max-states")),
        "{command}: {}",
        on.stderr
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_reaches_its_bound_of_memory_ends_the_check_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let (outcome, _) = disturb(folder.path(), None, "--max-memory 120M");
    goes_on(&outcome, "max-memory");
}

/// As the system does it when memory is short.
#[test]
#[cfg(target_os = "linux")]
fn a_process_that_is_killed_ends_the_check_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let (outcome, took) = disturb(folder.path(), Some("-9"), "");
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(
        outcome.json["processes"]["lost"].as_str().is_some_and(|l| l.contains("signal: 9")),
        "{}",
        outcome.json
    );
    goes_on(&outcome, "process-lost");
}

/// It takes the ten seconds of patience.
#[test]
#[cfg(target_os = "linux")]
fn a_process_that_hangs_ends_the_check_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let (outcome, took) = disturb(folder.path(), Some("-STOP"), "");
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert!(
        outcome.json["processes"]["lost"].as_str().is_some_and(|l| l.contains("no sign of life")),
        "{}",
        outcome.json
    );
    goes_on(&outcome, "process-lost");
}

/// A resumed search that rejects a symmetry starts again, with as many symmetries as before; it
/// does not take up the checkpoint of the search with the rejected one.
#[test]
fn a_resumed_check_rejects_symmetries() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("m.mcrl2").display().to_string();
    let text = "sort I = struct i0 | i1 | i2;
act loc: I # Nat;
proc C(id: I, x: Nat) = (x < 5) -> loc(id, x) . C(id, x + 1) + (x > 0) -> loc(id, x) . C(id, 0);
init allow({loc}, C(i0, 0) || C(i1, 0) || C(i2, 0));
";
    std::fs::write(&model, text).unwrap();
    for (formula, verdict) in [
        ("[true*.loc(i0,5).loc(i1,5)]false", "false"),
        ("[true*.loc(i0,5).(!loc(i1,2))*.loc(i2,6)]false", "true"),
        ("mu X. [!loc(i0,4)]X", "false"),
    ] {
        for count in ["1", "2", "3"] {
            let kept = folder.path().join(format!("{count}-{}", formula.len()));
            let kept = kept.display().to_string();
            let run = |options: &[&str]| {
                mu_check(&[&["check", &model, "-f", formula, "--processes"][..], options].concat())
            };
            let stopped = run(&["2", "--checkpoint", &kept, "--max-states", "10"]);
            assert_eq!(stopped.code, 3, "{}", stopped.stderr);
            let other = run(&[count, "--resume", &kept, "--without", "symmetry"]);
            assert_eq!(other.code, 2, "{count} processes: {}", other.stderr);
            let resumed = run(&[count, "--resume", &kept]);
            let found = resumed.json["results"][0]["verdict"].to_string();
            assert_eq!(found.trim_matches('"'), verdict, "{formula} {count}: {}", resumed.stderr);
        }
    }
}
