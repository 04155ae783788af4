//! Sweeps on the command line: tables and plots, interruption and restart, limits, changed inputs.

use crate::support::mu_check;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A buffer of n places for k values; the length of its rows' runs grows with n.
const MODEL: &str = "$param n: Nat = 2;
$param k: Pos = 1 where k < 4;
act enter, leave: Nat;
proc Buffer(l: List(Nat)) = (#l < ${n}) -> sum v: Nat. (v < ${k}) -> enter(v) . Buffer(l <| v)
  + (#l > 0) -> leave(#l) . Buffer(tail(l));
init Buffer([]);
";

struct Folder {
    dir: TempDir,
    model: String,
    formula: String,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (model, formula) =
            (write("buffer.mcrl2", MODEL), write("few.mcf", "[true* . leave(3)]false"));
        Self { dir, model, formula }
    }
    fn out_folder(&self) -> PathBuf {
        self.dir.path().join("out")
    }
    fn arguments(&self, options: &str) -> Vec<String> {
        let out = self.out_folder().display().to_string();
        let words = ["sweep", &self.model, &self.formula, "--out", &out, "--threads", "1"];
        words.into_iter().chain(options.split_whitespace()).map(String::from).collect()
    }
    fn sweep(&self, options: &str) -> (i32, Vec<Value>, String) {
        let outcome = mu_check(&self.arguments(options));
        let rows = outcome.json["rows"]
            .as_array()
            .unwrap_or_else(|| panic!("{options}: {}", outcome.stderr))
            .clone();
        assert_eq!(rows, rows_of(&self.out_folder()), "the file is what was printed");
        (outcome.code, rows, outcome.stderr)
    }
    fn start(&self, options: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mu-check"));
        command
            .args(self.arguments(options))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.out_folder().join(name))
            .unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

/// Returns the rows in a folder; none before the first is written. Whatever the moment, the file is
/// whole.
fn rows_of(out: &Path) -> Vec<Value> {
    let Ok(text) = std::fs::read_to_string(out.join("sweep.json")) else { return Vec::new() };
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    value["rows"].as_array().unwrap().clone()
}

fn key(row: &Value) -> String {
    format!("{} {}", row["job"], row["parameters"])
}

#[test]
fn a_row_for_each_combination_and_job() {
    let f = Folder::new();
    let reference = f.dir.path().join("published.csv");
    std::fs::write(&reference, "job,n,size,seconds\nexplore,2,999,50\nfew,4,7777,OOM\n").unwrap();
    let (code, rows, _) =
        f.sweep(&format!("-D n=1..=4 -D k=2,1 --reference {}", reference.display()));
    // The formula is false as soon as there are three places.
    assert_eq!((code, rows.len()), (1, 16));
    for row in &rows {
        let value = |name: &str| row["parameters"][name].as_str().unwrap().parse::<u32>().unwrap();
        let (n, k) = (value("n"), u64::from(value("k")));
        if row["job"] == "explore" {
            let states: u64 = (0..=n).map(|i| k.pow(i)).sum();
            assert_eq!(
                (row["states"].as_u64(), row["verdict"].as_str()),
                (Some(states), None),
                "{row}"
            );
            assert_eq!(row["transitions"].as_u64(), Some(2 * (states - 1)), "{row}");
        } else {
            assert_eq!(
                (row["job"].as_str(), row["verdict"].as_str()),
                (Some("few"), Some(if n < 3 { "true" } else { "false" })),
                "{row}"
            );
            assert!(row["equations"].as_u64().unwrap() > 0);
        }
        assert!(
            row["stop"] == "complete"
                && row["seconds"].as_f64().unwrap() > 0.0
                && row["peak_memory_bytes"].as_u64().unwrap() > 100_000
        );
    }
    assert_eq!(f.read("sweep.csv").lines().count(), 17);
    let table = f.read("sweep.md");
    assert!(
        table.contains("| explore | 2 |")
            && table.contains("| 999 | 50.0 |")
            && table.contains("| 7,777 | OOM |"),
        "{table}"
    );
    let plot = f.read("states.svg");
    assert!(
        plot.contains("explore, k=1")
            && plot.contains("explore (published)")
            && plot.contains("few (published), n = 4: 7777"),
        "{plot}"
    );
    assert!(f.read("seconds.svg").contains("Wall time") && f.read("memory.svg").contains("MiB"));
}

#[test]
fn an_interrupted_sweep_goes_on() {
    for signal in ["-INT", "-KILL"] {
        let options = "-D n=1..=12 -D k=1,2";
        // A fast machine may end the sweep before the signal comes: then again.
        let interrupted = || {
            let f = Folder::new();
            let mut child = f.start(options);
            let start = Instant::now();
            while rows_of(&f.out_folder()).len() < 5 && child.try_wait().unwrap().is_none() {
                assert!(start.elapsed() < Duration::from_secs(60), "no rows");
                std::thread::sleep(Duration::from_millis(2));
            }
            Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
            let code = child.wait().unwrap().code();
            (code != Some(1)).then_some((f, code))
        };
        let (f, code) =
            (0..50).find_map(|_| interrupted()).expect("a sweep is interrupted before its end");
        assert_eq!(code, if signal == "-INT" { Some(3) } else { None });
        let before = rows_of(&f.out_folder());
        assert!(before.len() >= 5 && before.len() < 48, "{signal}: {} rows", before.len());
        let (code, after, _) = f.sweep(options);
        assert_eq!((code, after.len()), (1, 48));
        let mut keys: Vec<String> = after.iter().map(key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 48, "a row is there twice");
        // Rows that were there are the same to the last digit of their seconds: they were not run
        // again.
        assert!(
            before.iter().all(|row| after.contains(row)),
            "{signal}: a row was lost or run again"
        );
        let (_, again, _) = f.sweep(options);
        assert_eq!(again, after);
    }
}

/// Interrupts a sweep while it reads the inputs of all rows.
#[test]
fn an_interrupt_before_the_first_row_prints_earlier_rows() {
    let f = Folder::new();
    let (_, rows, _) = f.sweep("-D n=1");
    // Between the start of the program and its first row, which takes longer on a busy machine.
    for delay in [10, 20, 40, 80, 160, 320, 640, 1280, 2560] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mu-check"));
        command.args(f.arguments("-D n=1..=2000"));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|o| String::from_utf8(o).unwrap());
        // Interrupted before it handles signals, or after a row that is false.
        if output.status.code() != Some(3) {
            continue;
        }
        assert!(out.contains("| explore | ") && err.contains("interrupted: "), "{out}{err}");
        let after = rows_of(&f.out_folder());
        assert!(rows.iter().all(|row| after.contains(row)), "{after:?}");
        return;
    }
    panic!("no attempt was interrupted before its first row");
}

#[test]
fn changed_inputs_are_run_again() {
    let f = Folder::new();
    let (_, first, _) = f.sweep("-D n=1..=3");
    // More values: existing rows remain.
    let (_, wider, _) = f.sweep("-D n=1..=4");
    assert_eq!(wider.len(), 8);
    assert!(first.iter().all(|row| wider.contains(row)));
    // Fewer values: the tables have those only, and nothing is lost.
    let (_, narrow, _) = f.sweep("-D n=2,3");
    let requested_rows: Vec<Value> = wider
        .iter()
        .filter(|r| ["2", "3"].contains(&r["parameters"]["n"].as_str().unwrap()))
        .cloned()
        .collect();
    assert_eq!(narrow, requested_rows);
    let kept = serde_json::from_str::<Value>(&f.read("sweep.json")).unwrap()["kept"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(kept.len(), 4);
    assert!(kept.iter().all(|r| wider.contains(r) && !narrow.contains(r)));
    assert!(
        f.read("sweep.md").contains("| explore | 3 |")
            && !f.read("sweep.md").contains("| explore | 4 |")
    );
    assert_eq!(f.read("sweep.csv").lines().count(), 5);
    // And more again: nothing is run twice.
    assert_eq!(f.sweep("-D n=1..=4").1, wider);
    // Another formula under the same name: its rows are new, those of the exploration remain, and
    // the old ones are stored separately.
    std::fs::write(&f.formula, "[true* . leave(4)]false").unwrap();
    let (_, changed, stderr) = f.sweep("-D n=1..=4");
    let explorations =
        |rows: &[Value]| rows.iter().filter(|r| r["job"] == "explore").cloned().collect::<Vec<_>>();
    assert_eq!((changed.len(), explorations(&changed)), (8, explorations(&wider)));
    let verdicts: Vec<&str> = changed.iter().filter_map(|r| r["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["true", "true", "true", "false"]);
    assert!(
        stderr.contains("sweep.before-1.json") && f.read("sweep.before-1.json").contains("\"few\""),
        "{stderr}"
    );
    // Another model: nothing stays.
    std::fs::write(&f.model, MODEL.replace("(#l > 0)", "(#l > 1)")).unwrap();
    let (_, other, _) = f.sweep("-D n=1..=4");
    assert!(other.len() == 8 && other.iter().all(|r| !changed.contains(r)));
}

#[test]
fn a_limit_ends_the_series_and_not_the_sweep() {
    let f = Folder::new();
    let options = "-D n=1..=9 -D k=1,3 --max-states 50";
    let (code, rows, _) = f.sweep(options);
    let of = |k: &str, job: &str| {
        let mine = rows.iter().filter(|r| r["parameters"]["k"] == k && r["job"] == job);
        mine.map(|r| r["stop"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(code, 1);
    assert_eq!(of("1", "explore"), ["complete"; 9]);
    // 1 + 3 + 9 + 27 states at n = 3, 121 at n = 4.
    assert_eq!(of("3", "explore"), ["complete", "complete", "complete", "max-states"]);
    assert!(f.read("states.svg").contains("a limit stopped the run here"));
    assert_eq!(f.sweep(options).1, rows, "the same limits: nothing to do");
    // Higher limits: only stopped rows run again.
    let (_, wider, _) = f.sweep("-D n=1..=5 -D k=1,3 --max-states 150");
    let within = |r: &&Value| {
        r["stop"] == "complete"
            && r["parameters"]["n"].as_str().is_some_and(|n| n.parse::<u32>().is_ok_and(|n| n <= 5))
    };
    let complete = rows.iter().filter(within);
    assert!(complete.clone().count() > 6 && complete.clone().all(|r| wider.contains(r)));
    assert!(wider.iter().any(|r| r["states"] == 121 && r["stop"] == "complete"));
}

/// Quick for n = 0, without end for others.
const ENDLESS: &str = "$param n: Nat = 1;
act tick, leave: Nat;
proc P(i: Nat) = (i < 2 + ${n} * 1000000000) -> tick(i) . P(i + 1);
init P(0);
";

/// A time limit is one for each row: each gets its time, each is in the table, and the sweep goes
/// on.
#[test]
fn a_time_limit_is_for_each_row() {
    let f = Folder::new();
    std::fs::write(&f.model, ENDLESS).unwrap();
    let start = Instant::now();
    let (code, rows, stderr) = f.sweep("-D n=0..=2 --timeout 1s");
    let seconds = start.elapsed().as_secs_f64();
    let row_words: Vec<String> = rows
        .iter()
        .map(|r| format!("{} {} {} {}", r["job"], r["parameters"]["n"], r["stop"], r["verdict"]))
        .collect();
    let wanted = [
        r#""explore" "0" "complete" null"#,
        r#""explore" "1" "timeout" null"#,
        r#""few" "0" "complete" "true""#,
        r#""few" "1" "timeout" "unknown""#,
    ];
    assert_eq!((code, row_words), (3, wanted.map(String::from).to_vec()), "{stderr}");
    assert!((2.0..12.0).contains(&seconds), "{seconds} s for two rows of a second each");
}

/// Returns the children of `parent`, from the system's table; empty where there is none.
fn children(parent: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let of_parent = |id: &u32| {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
        // After the name in brackets: state, parent.
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1))
            == Some(&parent.to_string())
    };
    ids.filter(of_parent).collect()
}

/// After any end of the sweep, no row continues.
#[test]
fn no_row_outlives_the_sweep() {
    if !Path::new("/proc/self/stat").exists() {
        return;
    }
    for signal in ["-INT", "-TERM", "-KILL"] {
        let f = Folder::new();
        std::fs::write(&f.model, ENDLESS).unwrap();
        let mut sweep = f.start("-D n=1,2");
        let begun = Instant::now();
        let rows = loop {
            let rows = children(sweep.id());
            if !rows.is_empty() {
                break rows;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "no row was started");
            std::thread::sleep(Duration::from_millis(10));
        };
        // The row is running, not starting.
        std::thread::sleep(Duration::from_millis(300));
        Command::new("kill").args([signal, &sweep.id().to_string()]).status().unwrap();
        let ended = Instant::now();
        let code = sweep.wait().unwrap().code();
        assert_eq!(code, if signal == "-KILL" { None } else { Some(3) }, "{signal}");
        let alive = |id: &u32| {
            std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|s| !s.contains(") Z "))
        };
        while rows.iter().any(alive) {
            assert!(ended.elapsed() < Duration::from_secs(8), "{signal}: a row still runs");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A file of evidence for each row that has any, and a report for continuous integration.
#[test]
fn evidence_and_report_of_rows() {
    let f = Folder::new();
    let (why, report) = (f.dir.path().join("why"), f.dir.path().join("report.xml"));
    let options = format!(
        "-D n=2..=4 --no-explore --evidence {} --evidence-form json --junit {}",
        why.display(),
        report.display()
    );
    let (code, rows, _) = f.sweep(&options);
    let name = |n: u32| why.join(format!("few,n={n}.json"));
    let evidence: Vec<Option<String>> =
        rows.iter().map(|r| r["evidence"].as_str().map(String::from)).collect();
    let wanted = [None, Some(name(3).display().to_string()), Some(name(4).display().to_string())];
    assert_eq!((code, evidence), (1, wanted.to_vec()));
    let steps: Value = serde_json::from_str(&std::fs::read_to_string(name(3)).unwrap()).unwrap();
    // Three values go in before there are three places taken; then `leave(3)`.
    assert_eq!(steps["steps"].as_array().unwrap().len(), 4, "{steps}");
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("tests=\"3\" failures=\"2\" errors=\"0\""), "{report}");
    assert!(report.contains("<testcase classname=\"few\" name=\"n=2\" time="), "{report}");
    // Evidence that is gone is made again.
    std::fs::remove_file(name(3)).unwrap();
    let (_, again, _) = f.sweep(&options);
    assert!(name(3).exists() && again[0] == rows[0] && again[2] == rows[2]);
}

/// The error of one row is its result; the other rows of its series run.
#[test]
fn a_row_with_an_error_does_not_end_the_others() {
    let f = Folder::new();
    let model = format!("{MODEL}$if n == 1 {{ act twice, twice; }}\n");
    std::fs::write(&f.model, model).unwrap();
    let (code, rows, _) = f.sweep("-D n=0..=2");
    assert_eq!(code, 2);
    let row = |r: &Value| {
        let error = r["error"].as_str().is_some_and(|e| e.contains("`twice`"));
        (key(r), r["stop"].as_str().unwrap().to_string(), error)
    };
    let wanted: Vec<_> = ["explore", "few"]
        .into_iter()
        .flat_map(|job| {
            let row = move |n: u32| {
                let stop = if n == 1 { "failed" } else { "complete" };
                (format!("\"{job}\" {{\"n\":\"{n}\"}}"), stop.to_string(), n == 1)
            };
            (0..=2).map(row)
        })
        .collect();
    assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), wanted);
}

#[test]
fn slips_are_found_before_the_first_row() {
    let f = Folder::new();
    for (options, what) in [
        ("-D n=1..=3 -D k=4,5", "k < 4"),
        ("-D n=3..1", "range"),
        ("-D m=1,2", "`m`"),
        ("-D n=1 --reference /nowhere.csv", "nowhere.csv"),
        ("--confluence none missing.mcf", "missing.mcf"),
    ] {
        let outcome = mu_check(&f.arguments(options));
        assert!(
            outcome.code == 2 && outcome.stderr.contains(what),
            "{options}: {}",
            outcome.stderr
        );
        assert!(rows_of(&f.out_folder()).is_empty());
    }
    // A row has one formula, whether or not it is a property with a name.
    let several = f.dir.path().join("several.mcf");
    let first = "%% property one\n[true* . leave(3)]false\n";
    std::fs::write(&several, format!("{first}%% property two\n<true>true\n")).unwrap();
    let outcome = mu_check(&f.arguments(&format!("-D n=1 {}", several.display())));
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("several properties"), "{}", outcome.stderr);
    std::fs::write(&several, first).unwrap();
    let outcome = mu_check(&f.arguments(&format!("-D n=1 {}", several.display())));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    std::fs::remove_dir_all(f.out_folder()).unwrap();

    std::fs::create_dir_all(f.out_folder()).unwrap();
    std::fs::write(f.out_folder().join("sweep.json"), "{ \"rows\": [{}] }").unwrap();
    let outcome = mu_check(&f.arguments("-D n=1"));
    assert!(outcome.code == 2 && outcome.stderr.contains("sweep.json"), "{}", outcome.stderr);
    assert_eq!(f.read("sweep.json"), "{ \"rows\": [{}] }", "what is not ours is left alone");
}
