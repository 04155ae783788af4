//! `prove` and `verify` as their users run them: verdicts of the systems of `specs/cubicle`, certificates, obligations for solvers, errors.

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
        assert_eq!((proved.code, proved.json["property"].as_str()), (code, Some(verdict)), "{name}: {}", proved.stderr);
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
        assert_eq!((verified.code, verified.json["certificate"].as_str()), (0, Some("proved")), "{name}: {}", verified.stderr);
        assert_eq!(verified.json["verified"], proved.json["verified"], "{name}");
        // Without its first cube, which is the unsafe one or stands for it, it shows nothing.
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
    assert!(other.stderr.contains("is no value of type"), "{}", other.stderr);
    std::fs::write(path("broken.cub"), "array A[proc] : bool\ninit (p) { A[p] = Flase }\nunsafe (p) { A[p] = True }\n").unwrap();
    let broken = mu_check(&["prove", &path("broken.cub")]);
    assert_eq!(broken.code, 2);
    let place = &broken.json["error"]["place"];
    assert_eq!((place["line"].as_u64(), place["column"].as_u64()), (Some(2), Some(19)), "{}{}", broken.json, broken.stderr);
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
        assert_eq!(mu_check(&["prove", &file(name), "--smt-lib", &folder.path().display().to_string()]).code, 0, "{name}");
        let mut all = String::new();
        let mut count = 0;
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            all += &std::fs::read_to_string(entry.unwrap().path()).unwrap();
            all += "(reset)\n";
            count += 1;
        }
        let mut solver = Command::new("z3").args(["-in", "-T:60"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = solver.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(all.as_bytes()));
        let said = solver.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let said = String::from_utf8_lossy(&said.stdout);
        assert!(count > 5 && said.lines().count() == count && said.lines().all(|l| l == "unsat"), "{name}, {count} obligations: {said}");
    }
}
