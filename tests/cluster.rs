//! Distributed searches compared with a search by one process; killed processes; unauthenticated
//! clients; other models.

use crate::support::{Outcome, mu_check, package};
use mu_check::base::random::Random;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// As many states as one likes, in several components.
const LARGE: &str = "act a: Nat;\nproc P(i: Nat) = (i < 40) -> a(i) . P(i + 1);\ninit P(0) || P(0) || P(0) || P(0) || P(0);\n";
/// Values that only some states have, of several sorts, functions among them.
const VALUES: &str = "sort T = struct leaf | node(l: T, n: Nat, r: T);
map grow: T # Nat -> T;
var t: T; n: Nat;
eqn grow(t, n) = node(t, n, leaf);
act go: Nat; put: Nat; take: List(Nat); half: Real;
proc P(t: T, n: Nat) = (n < 4) -> go(n) . P(grow(t, n), n + 1) + (n == 4) -> go(9) . P(leaf, 0);
proc Q(s: Set(Nat), l: List(Nat), r: Real) = sum m: Nat. (m < 3) -> put(m) . Q(s + {m}, [m], r / 2) + (#l > 0) -> take(l) . Q(s, [], 1);
proc R(f: Nat -> Nat, i: Nat) = (i < 3) -> put(i) . R(f[i -> i + 7], i + 1) + (i == 3) -> put(f(1)) . R(lambda n: Nat. 0, 0);
init P(leaf, 0) || Q({}, [], 1) || R(lambda n: Nat. 0, 0);
";

/// Looks symmetric until the search is far.
const LATE: &str = "sort Id = struct a | b | c;
act step: Id; odd: Id # Id;
proc P(i: Id, n: Nat) = (n < 30) -> step(i) . P(i, n + 1) + sum j: Id. (n == 30 && j < i) -> odd(i, j) . P(i, 50);
init P(a, 0) || P(b, 0) || P(c, 0);
";

/// Figures that do not depend on how many processes search.
fn figures(json: &Value) -> Vec<u64> {
    ["states", "transitions", "deadlocks"]
        .iter()
        .map(|k| json[k].as_u64().unwrap_or_else(|| panic!("{json}")))
        .collect()
}

fn write_file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn words(text: &str, model: &str) -> Vec<String> {
    text.split_whitespace().map(|w| w.replace('@', model)).collect()
}

#[test]
fn several_processes_count_what_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let values = VALUES.replace("r / 2", "1 / 2");
    let models = [
        (write_file(folder.path(), "values.mcrl2", &values), ""),
        (package("specs/arcx.spec"), "-D max_operation_id=0"),
        (package("specs/arcx.spec"), "-D max_operation_id=1"),
        (package("specs/arcx.spec"), "-D max_operation_id=1 --confluence auto"),
        (package("specs/arcx.spec"), "-D max_operation_id=0 --without symmetry"),
        (package("tests/broken/locks.mcrl2"), ""),
        (package("tests/broken/bus.mcrl2"), ""),
    ];
    let mut sent = 0;
    for (model, options) in &models {
        let one = mu_check(&words(&format!("explore @ {options}"), model));
        assert_eq!(one.code, 0, "{}", one.stderr);
        for count in [2, 5] {
            let many = mu_check(&words(&format!("explore @ {options} --processes {count}"), model));
            assert_eq!(many.code, 0, "{model}: {}", many.stderr);
            assert_eq!(
                figures(&many.json),
                figures(&one.json),
                "{model} {options}, {count} processes"
            );
            assert_eq!(many.json["ends"], one.json["ends"], "{model} {options}, {count} processes");
            assert_eq!(many.json["processes"]["count"], count);
            sent += many.json["processes"]["sent_states"].as_u64().unwrap();
        }
    }
    assert!(sent > 10_000, "{sent} states went to others");
}

#[test]
fn what_is_no_symmetry_for_one_process_is_none_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let model = write_file(folder.path(), "late.mcrl2", LATE);
    let dropped = |o: &Outcome| o.stderr.matches("some explored step has no image").count();
    // A busy machine may give symmetries up, by time, before one of them fails: then again.
    let explored = |options: &str| {
        let run = || mu_check(&words(&format!("explore @ -v {options}"), &model));
        let given_up = |o: &Outcome| {
            dropped(o) == 0 && o.stderr.contains("its verification costs more than it saves")
        };
        let outcome = (0..20)
            .map(|_| run())
            .find(|o| !given_up(o))
            .expect("symmetries are verified, not given up");
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        // How many fail before the search is over depends on who is quicker, with the threads of
        // one process as well.
        assert!(dropped(&outcome) > 0, "{}", outcome.stderr);
        outcome
    };
    let one = explored("");
    // All processes begin again, without what failed in one of them.
    for count in [2, 4] {
        let many = explored(&format!("--processes {count}"));
        assert_eq!(figures(&many.json), figures(&one.json));
        assert_eq!(many.json["ends"], one.json["ends"]);
    }
}

/// After the first steps all components have one list: no symmetry saves anything, and each step is
/// verified for all of them.
const ALIKE: &str = "act start; a, b: Bool;
proc P0 = start . P([]);
     P(l: List(Bool)) = (#l < 14) -> sum c: Bool . a(c) . P(c |> l);
init allow({b, start}, comm({a|a|a|a -> b}, P0 || P0 || P0 || P0));";

#[test]
fn symmetries_that_cost_more_than_they_save_are_given_up_by_all() {
    let folder = tempfile::tempdir().unwrap();
    let model = write_file(folder.path(), "alike.mcrl2", ALIKE);
    // Costs are measured in time, which a busy machine may distort: then again.
    let outcome = (0..10)
        .map(|_| mu_check(&words("explore @ -v --processes 3", &model)))
        .find(|o| o.code != 0 || o.stderr.contains("its verification costs more than it saves"))
        .expect("symmetries are given up");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("symmetries: none used"), "{}", outcome.stderr);
    assert_eq!(
        figures(&outcome.json),
        figures(&mu_check(&words("explore @ --without symmetry", &model)).json)
    );
}

#[test]
fn limits_are_of_all_processes_together() {
    let folder = tempfile::tempdir().unwrap();
    let model = write_file(folder.path(), "large.mcrl2", LARGE);
    let few =
        mu_check(&words("explore @ --processes 3 --max-states 20000 --without symmetry", &model));
    assert_eq!((few.code, few.json["stop"].as_str()), (3, Some("max-states")), "{}", few.stderr);
    let short =
        mu_check(&words("explore @ --processes 2 --timeout 1500ms --without symmetry", &model));
    assert_eq!((short.code, short.json["stop"].as_str()), (3, Some("timeout")), "{}", short.stderr);
}

/// Processes that this one started.
fn children(parent: u32) -> Vec<u32> {
    let status =
        |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_child = |pid: &String| {
        status(pid).rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok())
            == Some(parent)
    };
    let all =
        std::fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().into_string().ok());
    all.filter(|name| name.parse::<u32>().is_ok())
        .filter(is_child)
        .filter_map(|name| name.parse().ok())
        .collect()
}

fn start(arguments: &[String]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(arguments)
        .args(["--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_for(child: Child) -> Outcome {
    let output = child.wait_with_output().unwrap();
    Outcome {
        code: output.status.code().unwrap_or(-1),
        json: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn a_killed_process_ends_the_others_with_unknown_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let model = write_file(folder.path(), "large.mcrl2", LARGE);
    // While they may still meet each other, and while they search: they have written something
    // then.
    for searching in [false, true] {
        let kept = folder.path().join(format!("kept{searching}"));
        let keeping = format!("--checkpoint {} --checkpoint-every 50ms", kept.display());
        let run =
            start(&words(&format!("explore @ --processes 3 --without symmetry {keeping}"), &model));
        let begin = Instant::now();
        let others = loop {
            let others = children(run.id());
            if others.len() == 2 && (!searching || newest(&kept).is_some()) {
                break others;
            }
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(2));
        };
        assert!(
            Command::new("kill").args(["-9", &others[0].to_string()]).status().unwrap().success()
        );
        let killed = Instant::now();
        let outcome = wait_for(run);
        assert!(killed.elapsed() < Duration::from_secs(20), "{:?}", killed.elapsed());
        assert_eq!(
            (outcome.code, outcome.json["stop"].as_str()),
            (3, Some("process-lost")),
            "{}",
            outcome.stderr
        );
        assert!(outcome.stderr.contains("ended with signal: 9"), "{}", outcome.stderr);
        if searching {
            assert!(
                outcome.json["processes"]["lost"].as_str().is_some_and(|l| l.contains("signal: 9")),
                "{}",
                outcome.json
            );
        }
        assert!(
            others.iter().all(|p| !Path::new(&format!("/proc/{p}/exe")).exists()),
            "they outlive it"
        );
    }
}

/// Two processes by a list of hosts, each with a model and a secret of its own.
struct Two {
    folder: tempfile::TempDir,
    list: PathBuf,
    addresses: Vec<String>,
}

impl Two {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listeners: Vec<TcpListener> =
            (0..2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<String> =
            listeners.iter().map(|l| l.local_addr().unwrap().to_string()).collect();
        let list = folder.path().join("hosts");
        std::fs::write(&list, addresses.join("\n")).unwrap();
        Self { folder, list, addresses }
    }
    fn start(&self, me: usize, options: &str, secret: &str) -> Child {
        let path = write_file(self.folder.path(), &format!("secret{me}"), secret);
        let text = format!(
            "explore @ {options} --cluster {} --process {me} --secret {path}",
            self.list.display()
        );
        start(&words(&text, &package("specs/arcx.spec")))
    }
}

const SECRET: &str = "a secret that nobody else knows\n";

#[test]
fn strangers_on_the_port_change_nothing() {
    let two = Two::new();
    let first = two.start(0, "-D max_operation_id=1", SECRET);
    let mut random = Random::new(23);
    let begin = Instant::now();
    let mut strangers = 0;
    while strangers < 30 {
        assert!(begin.elapsed() < Duration::from_secs(60));
        let Ok(mut socket) = TcpStream::connect(&two.addresses[0]) else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        let hello: Vec<u8> = [
            &b"mu-check cluster"[..],
            &3u32.to_le_bytes(),
            &[7; 32],
            &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0],
        ]
        .concat();
        let bytes: Vec<u8> = match strangers % 4 {
            0 => (0..random.below(5000)).map(|_| random.next_u64() as u8).collect(),
            1 => b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            2 => hello.iter().copied().chain((0..4096).map(|_| random.next_u64() as u8)).collect(),
            _ => hello[..random.below(hello.len())].to_vec(),
        };
        let _ = socket.write_all(&bytes);
        if strangers % 4 == 2 {
            // It says no more than that it is a process of a search, and hangs up.
            let mut said = Vec::new();
            let _ = socket.read_to_end(&mut said);
            assert!(said.len() <= 52, "{said:?}");
        }
        strangers += 1;
    }
    let second = two.start(1, "-D max_operation_id=1", SECRET);
    let (first, second) = (wait_for(first), wait_for(second));
    assert_eq!((first.code, second.code), (0, 0), "{}{}", first.stderr, second.stderr);
    assert_eq!(figures(&first.json), [275_528, 692_652, 1441]);
    assert_eq!(second.json, Value::Null, "process 0 reports for all");
}

#[test]
fn another_secret_model_or_option_is_refused() {
    let two = Two::new();
    // Process 0 is still there when the other gives up, also on a busy machine.
    let first = two.start(0, "--timeout 6s", SECRET);
    let second = two.start(1, "--timeout 3s", "a secret that is another one");
    for outcome in [wait_for(first), wait_for(second)] {
        assert_eq!(
            (outcome.code, outcome.json["states"].as_u64()),
            (3, Some(0)),
            "{}",
            outcome.stderr
        );
        let named = ["does not know the secret", "its secret may be different"];
        assert!(named.iter().any(|n| outcome.stderr.contains(n)), "{}", outcome.stderr);
    }
    for (options, what) in [
        ("-D max_operation_id=1", "another model or other parameters"),
        ("--without symmetry", "other options"),
    ] {
        let two = Two::new();
        let (first, second) = (two.start(0, "", SECRET), two.start(1, options, SECRET));
        for (peer, outcome) in [1, 0].into_iter().zip([wait_for(first), wait_for(second)]) {
            assert_eq!(outcome.code, 2, "{}", outcome.stderr);
            assert!(
                outcome.stderr.contains(&format!("process {peer} runs {what}")),
                "{}",
                outcome.stderr
            );
        }
    }
}

/// The program replays each path before it prints it.
#[test]
fn ways_are_those_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let values = write_file(folder.path(), "values.mcrl2", &VALUES.replace("r / 2", "1 / 2"));
    let ends = "act a, b; c: Nat;\ninit (sum n: Nat. (n < 9) -> c(n)) . (a + b) || (a + b);\n";
    let ends = write_file(folder.path(), "ends.mcrl2", ends);
    let evidence = folder.path().join("why.svg").display().to_string();
    let sought = [
        (&package("specs/arcx.spec"), "-D max_operation_id=1 --deadlock", 1),
        (&package("specs/arcx.spec"), "-D max_operation_id=0 --action nothing", 0),
        (&package("tests/broken/locks.mcrl2"), "--deadlock", 1),
        (&package("tests/broken/bus.mcrl2"), "--deadlock", 1),
        (&values, "--action take", 1),
        (&values, "--deadlock", 0),
        (&ends, "--deadlock", 0),
    ];
    for (model, options, code) in sought {
        let one = mu_check(&words(&format!("explore @ {options}"), model));
        assert_eq!(one.code, code, "{model} {options}: {}", one.stderr);
        let length = |o: &Outcome| o.json["ways"][0]["steps"].as_array().map(Vec::len);
        let mut before: Option<Value> = None;
        for count in [1, 3] {
            let many = mu_check(&words(
                &format!("explore @ {options} --processes {count} --evidence {evidence}"),
                model,
            ));
            assert_eq!(many.code, code, "{model} {options}: {}", many.stderr);
            assert_eq!(length(&many), length(&one), "{model} {options}, {count} processes");
            // A search that finds a path ends before it has reached all terminations.
            if code == 0 {
                assert_eq!(many.json["clean_ends"], one.json["clean_ends"], "{model} {options}");
            }
            let ways = many.json["ways"].clone();
            assert!(
                before.replace(ways.clone()).is_none_or(|b| b == ways),
                "{model} {options}, {count} processes"
            );
        }
    }
    assert!(std::fs::read_to_string(evidence).unwrap().contains("<svg"));
}

#[test]
fn what_several_processes_do_not_do_is_refused_by_name() {
    let model = package("tests/broken/locks.mcrl2");
    for (options, what) in [
        ("--divergence", "`--divergence`"),
        ("--deadlock --all 2", "several paths (`--all`)"),
        ("--out x.aut", "writing or reducing a transition system"),
        ("--engine symbolic", "`--engine symbolic`"),
        ("--threads 2", "`--threads`"),
    ] {
        let refused = mu_check(&words(&format!("explore @ --processes 2 {options}"), &model));
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(
            refused.stderr.contains(what) && refused.stderr.contains("--processes"),
            "{options}: {}",
            refused.stderr
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let lts = write_file(folder.path(), "one.aut", "des (0,1,2)\n(0,\"a\",1)\n");
    let refused = mu_check(&words("explore @ --processes 2", &lts));
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let error = mu_check(&words(
        "explore @ --processes 2",
        &write_file(folder.path(), "bad.mcrl2", "init a;\n"),
    ));
    assert_eq!((error.code, error.stderr.matches("error:").count()), (2, 1), "{}", error.stderr);
}

#[test]
fn an_error_of_the_model_is_printed_once_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let text = "map f: Nat -> Nat;\nact a: Nat;\nproc P(i: Nat) = (i < 60) -> a(i) . P(i + 1) + (i == 40) -> a(f(i)) . P(f(i));\ninit P(0) || P(0) || P(0);\n";
    let model = write_file(folder.path(), "undefined.mcrl2", text);
    let (one, many) = (
        mu_check(&words("explore @", &model)),
        mu_check(&words("explore @ --processes 3", &model)),
    );
    assert_eq!(
        (many.code, figures_or_error(&many)),
        (one.code, figures_or_error(&one)),
        "{}\n{}",
        one.stderr,
        many.stderr
    );
}

fn figures_or_error(outcome: &Outcome) -> String {
    if outcome.code == 0 {
        format!("{:?}", figures(&outcome.json))
    } else {
        outcome.json["error"]["message"].to_string()
    }
}

#[test]
fn a_search_that_limits_end_goes_on_with_any_number_of_processes() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept").display().to_string();
    let model = package("specs/arcx.spec");
    let common = "explore @ -D max_operation_id=2";
    let whole = mu_check(&words(common, &model));
    let run = |options: &str| mu_check(&words(&format!("{common} {options}"), &model));
    // Between two levels, and within one; the symmetries are those of the first run. A process
    // alone has more states than the limit before the search could end.
    for (count, way, limit) in [
        (3, "--checkpoint", 1),
        (2, "--resume", 30_000),
        (2, "--resume", 200_000),
        (4, "--resume", 500_000),
    ] {
        let stopped = run(&format!(
            "--processes {count} {way} {kept} --checkpoint-every 20ms --max-states {limit}"
        ));
        assert_eq!(
            (stopped.code, stopped.json["stop"].as_str()),
            (3, Some("max-states")),
            "{}",
            stopped.stderr
        );
        let command = stopped.json["processes"]["resume"].as_str().unwrap();
        assert!(
            command.starts_with("mu-check explore")
                && command.ends_with(&format!("--resume {kept}")),
            "{command}"
        );
        assert!(
            !command.contains("--checkpoint ") && stopped.stderr.contains(command),
            "{}",
            stopped.stderr
        );
        let files = std::fs::read_dir(&kept).unwrap().count();
        assert_eq!(files, count, "what a newer checkpoint replaces is removed");
    }
    let end = run(&format!("--processes 3 --resume {kept} --checkpoint {kept}.end"));
    assert_eq!((end.code, figures(&end.json)), (0, figures(&whole.json)), "{}", end.stderr);
    assert_eq!(end.json["ends"], whole.json["ends"]);
    assert_eq!(end.json["processes"]["resume"], Value::Null);

    for change in [
        "-D max_operation_id=1",
        "--confluence auto -D max_operation_id=2",
        "--without symmetry -D max_operation_id=2",
    ] {
        let refused =
            mu_check(&words(&format!("explore @ {change} --processes 2 --resume {kept}"), &model));
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(
            refused.stderr.contains("the checkpoint belongs to another model"),
            "{}",
            refused.stderr
        );
    }
    let file = |process: usize| {
        let ending = format!(".{process}-of-4.share");
        let mut paths = std::fs::read_dir(&kept).unwrap().map(|e| e.unwrap().path());
        paths.find(|p| p.to_string_lossy().ends_with(&ending)).unwrap()
    };
    let path = file(2);
    let bytes = std::fs::read(&path).unwrap();
    let mut damaged = bytes.clone();
    damaged[bytes.len() - 10] ^= 4;
    std::fs::write(&path, &damaged).unwrap();
    let refused = run(&format!("--processes 2 --resume {kept}"));
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("its checksum is wrong") && refused.stderr.contains("2-of-4.share"),
        "{}",
        refused.stderr
    );
    std::fs::remove_file(&path).unwrap();
    let refused = run(&format!("--processes 2 --resume {kept}"));
    assert!(
        refused.code == 2 && refused.stderr.contains("there is no complete checkpoint"),
        "{}",
        refused.stderr
    );
    // A partition of another run is not in the same folder.
    let other = folder.path().join("other").display().to_string();
    run(&format!("--processes 4 --checkpoint {other} --max-states 1"));
    let stranger = std::fs::read_dir(&other)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.to_string_lossy().contains(".2-of-4"))
        .unwrap();
    std::fs::copy(&stranger, &path).unwrap();
    let refused = run(&format!("--processes 4 --resume {kept}"));
    assert!(
        refused.code == 2 && refused.stderr.contains("there is no complete checkpoint"),
        "{}",
        refused.stderr
    );
}

/// Slots that have a tuple for each state are numbered apart; a search that goes on numbers them as
/// it did before.
#[test]
fn a_checkpoint_says_which_slots_are_numbered_together() {
    let folder = tempfile::tempdir().unwrap();
    let text = "act a, b, c, d, e;
proc P(i, j, k, l, m: Nat) = (i < 8) -> a . P(i = i + 1) + (j < 8) -> b . P(j = j + 1) + (k < 8) -> c . P(k = k + 1)
  + (l < 8) -> d . P(l = l + 1) + (m < 8) -> e . P(m = m + 1);
init P(0, 0, 0, 0, 0);
";
    let (model, kept) = (
        write_file(folder.path(), "wide.mcrl2", text),
        folder.path().join("kept").display().to_string(),
    );
    let common = "explore @ --without symmetry";
    for (way, code) in [("checkpoint", 3), ("resume", 3), ("resume", 0)] {
        let (count, limit) = if code == 0 { (2, "") } else { (3, "--max-states 9000") };
        let run = mu_check(&words(
            &format!("{common} --{way} {kept} --processes {count} {limit}"),
            &model,
        ));
        assert_eq!(run.code, code, "{}", run.stderr);
        if code == 0 {
            assert_eq!(figures(&run.json), [59_049, 262_440, 1]);
        }
    }
}

/// Returns the newest checkpoint in a folder of which all shares are there: its number, and of how
/// many processes.
pub(crate) fn newest(kept: &Path) -> Option<(u64, u64)> {
    let mut shares: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for file in std::fs::read_dir(kept).into_iter().flatten().flatten() {
        let name = file.file_name().into_string().unwrap_or_default();
        let parts: Vec<&str> = name.split(['-', '.']).collect();
        if let ["round", number, _, "of", count, "share"] = parts[..] {
            *shares.entry((number.parse().unwrap(), count.parse().unwrap())).or_default() += 1;
        }
    }
    shares.into_iter().rfind(|((_, count), there)| count == there).map(|(round, _)| round)
}

/// Kills one process of a search, until `kills` searches are lost by it, and goes on each time;
/// then the counts are those of a search that nobody killed.
///
/// There is a checkpoint after each level, so that the number of them does not depend on the
/// machine. One search is killed once it has written a few, so the next one resumes; the next at a
/// random moment of the time that a whole search took. A search that ends before it is killed (a
/// signal to a process that has ended counts for nothing) begins anew. The last one, which nobody
/// kills, resumes.
fn kill_and_continue(kills: usize, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let model = package("specs/arcx.spec");
    let common = format!(
        "explore @ -v -D max_operation_id=1 --checkpoint-every 0s --without symmetry --{{}} {}",
        kept.display()
    );
    let counted = [275_528, 692_652, 1441];
    let mut random = Random::new(seed);
    let (mut lost, mut resumed, mut way) = (0, 0, "checkpoint");
    let mut longest = Duration::from_millis(50);
    for attempt in 0.. {
        assert!(
            attempt <= 20 * kills + 20,
            "seed {seed}: {lost} of {attempt} searches were lost, {resumed} resumed"
        );
        let count = 2 + random.below(3);
        let mut known = newest(&kept);
        let begin = Instant::now();
        let mut run =
            start(&words(&format!("{} --processes {count}", common.replace("{}", way)), &model));
        let moment = begin + longest.mul_f64(random.below(1000) as f64 / 1000.0);
        let kill = attempt > 0 && (lost < kills || way == "checkpoint");
        let mut written = 1 + random.below(4);
        let late = attempt % 2 == 0 && lost < kills;
        let (mut others, id) = (Vec::new(), run.id());
        while kill
            && run.try_wait().unwrap().is_none()
            && if late { Instant::now() < moment } else { written > 0 }
        {
            others = children(id);
            let now = newest(&kept);
            if now.is_some() && now != known {
                (known, written) = (now, written.saturating_sub(1));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        others.push(id);
        if kill {
            let victim = others[random.below(others.len())];
            Command::new("kill")
                .args(["-9", &victim.to_string()])
                .stderr(Stdio::null())
                .status()
                .unwrap();
        }
        let outcome = wait_for(run);
        let took = begin.elapsed();
        let begin = Instant::now();
        while others.iter().any(|p| Path::new(&format!("/proc/{p}/exe")).exists()) {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "seed {seed}: a process outlives the search"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        let goes_on = outcome.stderr.contains("resumes from");
        resumed += usize::from(goes_on);
        if outcome.code == 0 {
            assert_eq!(
                figures(&outcome.json),
                counted,
                "seed {seed}: after {lost} kills, {resumed} resumed"
            );
            assert_eq!(goes_on, way == "resume", "seed {seed}: {}", outcome.stderr);
            if lost >= kills && goes_on {
                break;
            }
            // It was done before it could be killed: again from the start.
            longest = if way == "checkpoint" { took } else { longest };
            way = "checkpoint";
            continue;
        }
        lost += 1;
        assert!(
            kill && (outcome.code == 3 || outcome.code == -1),
            "seed {seed}: {}",
            outcome.stderr
        );
        let whole = newest(&kept).is_some();
        let tried = mu_check(&words(
            &format!("{} --processes 2 --max-states 1", common.replace("{}", "resume")),
            &model,
        ));
        assert_eq!(tried.code, if whole { 3 } else { 2 }, "seed {seed}: {}", tried.stderr);
        assert!(
            whole || tried.stderr.contains("there is no complete checkpoint") || !kept.exists(),
            "seed {seed}: {}",
            tried.stderr
        );
        way = if whole { "resume" } else { "checkpoint" };
    }
    println!("seed {seed}: {lost} searches lost, {resumed} resumed");
}

#[test]
fn searches_with_killed_processes_come_to_the_same_end() {
    kill_and_continue(2, 11);
}

/// `cargo test --release --test suite -- --ignored --nocapture cluster::many`: half an hour's worth
/// of a campaign in a minute or two.
#[test]
#[ignore = "a minute or two"]
fn many_searches_with_killed_processes_come_to_the_same_end() {
    (0..10).for_each(|seed| kill_and_continue(20, 100 + seed));
}
