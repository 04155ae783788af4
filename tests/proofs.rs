//! `prove` and `verify` on the command line: verdicts of the systems of `specs/cubicle`,
//! certificates, obligations for solvers, errors.

use crate::support::{mu_check, package};
use std::io::Write;
use std::process::{Command, Stdio};

/// The rows of tso-partial-order: systems, and whether they are safe under total store order.
const ROWS: [(&str, bool); 7] = [
    ("naive_mutex", true),
    ("naive_mutex_unsafe", false),
    ("lamport", true),
    ("lamport_unsafe", false),
    ("spinlock", true),
    ("sense_barrier", true),
    ("two_phase_commit", true),
];

fn file(name: &str) -> String {
    package(&format!("specs/cubicle/{name}.cub"))
}

#[test]
fn systems_are_proved_for_every_number_and_certificates_are_confirmed_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("certificate").display().to_string();
    for (name, safe) in ROWS {
        let proved = mu_check(&["prove", &file(name), "--certificate", &certificate]);
        let (code, verdict) = if safe { (0, "safe") } else { (1, "unsafe") };
        assert_eq!(
            (proved.code, proved.json["property"].as_str()),
            (code, Some(verdict)),
            "{name}: {}",
            proved.stderr
        );
        if !safe {
            let run = &proved.json["run"];
            assert!(run["processes"].as_u64().is_some_and(|n| n >= 2), "{name}: {run}");
            assert!(run["states"].as_array().is_some_and(|s| s.len() > 2), "{name}: {run}");
            // Without buffers they are safe.
            assert_eq!(mu_check(&["prove", &file(name), "--model", "sc"]).code, 0, "{name}");
            continue;
        }
        assert_eq!(proved.json["processes"], "any", "{name}");
        let verified = mu_check(&["verify", &file(name), &certificate]);
        assert_eq!(
            (verified.code, verified.json["certificate"].as_str()),
            (0, Some("proved")),
            "{name}: {}",
            verified.stderr
        );
        assert_eq!(verified.json["verified"], proved.json["verified"], "{name}");
        // Without its first cube, which is the unsafe one or represents it, it proves nothing.
        let text = std::fs::read_to_string(&certificate).unwrap();
        let second = text.match_indices("\nnever").nth(1).unwrap().0;
        let first = text.find("\nnever").unwrap();
        std::fs::write(&certificate, format!("{}{}", &text[..first], &text[second..])).unwrap();
        let refused = mu_check(&["verify", &file(name), &certificate]);
        assert_eq!(refused.code, 1, "{name}: {}", refused.json);
    }
}

#[test]
fn a_certificate_of_another_system_and_broken_systems_are_refused_with_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(mu_check(&["prove", &file("spinlock"), "--certificate", &path("c")]).code, 0);
    let other = mu_check(&["verify", &file("lamport"), &path("c")]);
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("is not a value of type"), "{}", other.stderr);
    std::fs::write(
        path("broken.cub"),
        "array A[proc] : bool\ninit (p) { A[p] = Flase }\nunsafe (p) { A[p] = True }\n",
    )
    .unwrap();
    let broken = mu_check(&["prove", &path("broken.cub")]);
    assert_eq!(broken.code, 2);
    let place = &broken.json["error"]["place"];
    assert_eq!(
        (place["line"].as_u64(), place["column"].as_u64()),
        (Some(2), Some(19)),
        "{}{}",
        broken.json,
        broken.stderr
    );
}

#[test]
fn verify_reports_the_memory_model_the_processes_and_what_the_proof_assumes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(mu_check(&["prove", &file("spinlock"), "--certificate", &path("tso")]).code, 0);
    assert_eq!(
        mu_check(&["prove", &file("spinlock"), "--model", "sc", "--certificate", &path("sc")]).code,
        0
    );
    for model in ["tso", "sc"] {
        let verified = mu_check(&["verify", &file("spinlock"), &path(model), "--model", model]);
        assert_eq!(
            (verified.code, &verified.json["model"]),
            (0, &model.into()),
            "{}",
            verified.json
        );
        assert_eq!(verified.json["processes"], "any");
        let list = verified.json["assumptions"].as_array().expect("a list");
        let lists = |text: &str| list.iter().any(|a| a.as_str().is_some_and(|a| a.contains(text)));
        assert_eq!(
            (lists("store buffer"), lists("through memory only"), lists("sequentially")),
            (model == "tso", model == "tso", model == "sc")
        );
        let other = if model == "tso" { "sc" } else { "tso" };
        let refused = mu_check(&["verify", &file("spinlock"), &path(model), "--model", other]);
        assert_eq!(
            (refused.code, refused.json["certificate"].as_str()),
            (1, Some("refused")),
            "{}",
            refused.json
        );
    }
    // Neither the proof nor its check has a system without initial states.
    std::fs::write(path("none.cub"), "array A[proc] : bool\ninit (p) { A[p] = True && A[p] = False }\nunsafe (p) { A[p] = True }\n")
        .unwrap();
    std::fs::write(
        path("none"),
        "mu-check certificate 1\nmemory sc\nnever p1\n  A[p1] in {True}\n",
    )
    .unwrap();
    for run in [
        mu_check(&["prove", &path("none.cub")]),
        mu_check(&["verify", &path("none.cub"), &path("none")]),
    ] {
        assert_eq!(
            (run.code, run.json["error"]["place"]["line"].as_u64()),
            (2, Some(2)),
            "{}{}",
            run.json,
            run.stderr
        );
        assert!(run.stderr.contains("no initial state"), "{}", run.stderr);
    }
}

#[test]
fn answers_are_checked_by_samples_of_machine_states() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("certificate").display().to_string();
    let mutex = file("naive_mutex");
    let proved =
        mu_check(&["prove", &mutex, "--certificate", &certificate, "--check-samples", "40"]);
    let checked = &proved.json["checked"];
    assert_eq!(
        (proved.code, &checked["unchecked"], &checked["walked"]),
        (0, &serde_json::Value::Null, &serde_json::Value::Null)
    );
    assert!(
        checked["samples"].as_u64().is_some_and(|n| (40..60).contains(&n))
            && checked["seed"].is_u64(),
        "{checked}"
    );
    let verified = mu_check(&["verify", &mutex, &certificate]);
    let checked = &verified.json["checked"];
    assert!(
        checked["initial"].as_u64().is_some_and(|n| n > 0)
            && checked["buffered"].as_u64().is_some_and(|n| n > 0),
        "{checked}"
    );
    for arguments in [vec!["prove", &mutex], vec!["verify", &mutex, &certificate]] {
        let off = mu_check(&[&arguments[..], &["--check-samples", "0"]].concat());
        assert_eq!(
            (off.code, off.json["checked"]["unchecked"].as_str()),
            (0, Some("`--check-samples 0`")),
            "{}",
            off.json
        );
    }
    let program = package("specs/x86/mutex_xchg.asm");
    let program = mu_check(&["program", &program, "--threads-of", "any"]);
    assert!(
        program.json["checked"]["walked"].as_u64().is_some_and(|n| n > 100),
        "{}",
        program.json
    );
}

#[test]
fn a_solver_by_others_confirms_each_obligation() {
    if Command::new("z3").arg("--version").output().is_err() {
        println!("skipped: z3 is not installed");
        return;
    }
    for (name, safe) in ROWS {
        if !safe {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            mu_check(&["prove", &file(name), "--smt-lib", &folder.path().display().to_string()])
                .code,
            0,
            "{name}"
        );
        let mut all = String::new();
        let mut count = 0;
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            all += &std::fs::read_to_string(entry.unwrap().path()).unwrap();
            all += "(reset)\n";
            count += 1;
        }
        let mut solver = Command::new("z3")
            .args(["-in", "-T:60"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = solver.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(all.as_bytes()));
        let said = solver.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let said = String::from_utf8_lossy(&said.stdout);
        assert!(
            count > 5 && said.lines().count() == count && said.lines().all(|l| l == "unsat"),
            "{name}, {count} obligations: {said}"
        );
    }
}

#[test]
fn the_run_of_an_unsafe_system_is_drawn_and_is_one_of_its_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for name in ["naive_mutex_unsafe", "lamport_unsafe"] {
        for form in ["svg", "html", "json", "aut"] {
            let drawn = path(&format!("why.{form}"));
            assert_eq!(mu_check(&["prove", &file(name), "--evidence", &drawn]).code, 1, "{name}");
            let text = std::fs::read_to_string(&drawn).unwrap();
            assert!(text.contains("unsafe"), "{name}, {form}: {text}");
        }
        let reported: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path("why.json")).unwrap()).unwrap();
        let steps = reported["steps"].as_array().unwrap();
        assert!(steps.len() > 3, "{name}: {reported}");
    }
    // Cells that `init` leaves open get the values that the run needs.
    let open = "type t = A | B\nvar N : int\nvar T : t\narray P[proc] : t\ninit (p) { P[p] = A }\nunsafe (p q) { P[p] = B && P[q] = B && T = B && N = 3 }\n\
        transition go ([p])\nrequires { P[p] = A && N > 1 }\n{ P[p] := B }\n";
    std::fs::write(path("open.cub"), open).unwrap();
    let refuted = mu_check(&["prove", &path("open.cub"), "--evidence", &path("open.aut")]);
    assert_eq!(refuted.code, 1, "{}", refuted.stderr);
    let drawn = std::fs::read_to_string(path("open.aut")).unwrap();
    assert_eq!(
        (drawn.matches("\"go(").count(), drawn.matches("\"unsafe\"").count()),
        (2, 1),
        "{drawn}"
    );
    assert_eq!(mu_check(&["prove", &path("open.cub"), "--evidence", &path("why.xyz")]).code, 2);
    // A cell that the run reads and then writes starts with the value that is read.
    for (sort, requires, update, start) in [
        ("e0", "X[p] = Y[p]", "B", "Y[#1] = A"),
        ("word8", "Y[p] = 5", "Y[p] + 1", "Y[#1] = 5"),
        ("proc", "Y[p] <> p", "p", "Y[#1] = #2"),
    ] {
        let text = format!(
            "type e0 = A | B\narray X[proc] : e0\narray Y[proc] : {sort}\ninit (p) {{ X[p] = A }}\n\
             unsafe (x) {{ X[x] = B }}\ntransition t ([p])\nrequires {{ {requires} && X[p] = A }}\n\
             {{ X[p] := B; Y[p] := {update} }}\n"
        );
        std::fs::write(path("read.cub"), text).unwrap();
        let refuted = mu_check(&["prove", &path("read.cub"), "--evidence", &path("read.aut")]);
        assert_eq!(refuted.code, 1, "{sort}: {}", refuted.stderr);
        assert!(refuted.json.to_string().contains(start), "{sort}: {}", refuted.json);
    }
}

/// Writes a system with this many transitions, branches of a case, or processes in its unsafe
/// states.
fn large(transitions: usize, branches: usize, processes: usize) -> String {
    let branch = |i: usize| format!("| A[j] = {i} : {}\n", i + 1);
    let names: Vec<String> = (1..=processes).map(|i| format!("p{i}")).collect();
    let each: Vec<String> = names.iter().map(|p| format!("B[{p}] = True")).collect();
    let mut text = format!(
        "array A[proc] : int\narray B[proc] : bool\narray C[proc] : int\ninit (p) {{ A[p] = 0 && B[p] = False && C[p] = 0 }}\nunsafe (p q) {{ A[p] = 1 && A[q] = 2 }}\n\
         unsafe ({}) {{ {} }}\n",
        names.join(" "),
        each.join(" && ")
    );
    text += &format!(
        "transition all (p)\nrequires {{ A[p] = 0 }}\n{{ A[j] := case\n{}| _ : A[j] }}\n",
        (1..=branches).map(branch).collect::<String>()
    );
    for i in 0..transitions {
        text +=
            &format!("transition t{i} (p)\nrequires {{ C[p] = {i} }}\n{{ C[p] := {} }}\n", i + 1);
    }
    text
}

#[test]
fn large_systems_are_proved_or_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.cub").display().to_string();
    for (transitions, branches, processes, code, why) in [
        (10_000, 1, 2, 0, ""),
        (1, 200, 2, 0, ""),
        (1, 1, 8, 0, ""),
        (1, 1, 30, 3, "a cube needs more than 24 processes"),
    ] {
        std::fs::write(&path, large(transitions, branches, processes)).unwrap();
        let proved = mu_check(&["prove", &path, "--model", "sc", "--timeout", "1m"]);
        let reported = proved.json["why"].as_str().unwrap_or_default();
        assert_eq!(
            (proved.code, reported),
            (code, why),
            "{transitions} transitions, {branches} branches, {processes} processes: {}",
            proved.json
        );
    }
    // Too deep to be read.
    std::fs::write(
        &path,
        format!(
            "var X : bool\ninit () {{ X = False }}\nunsafe () {{ {}X = True{} }}\n",
            "(".repeat(600),
            ")".repeat(600)
        ),
    )
    .unwrap();
    let nested = mu_check(&["prove", &path]);
    assert_eq!(nested.code, 2);
    assert!(nested.stderr.contains("nested more than 500 levels deep"), "{}", nested.stderr);
}
