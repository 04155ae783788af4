//! Litmus tests of the Linux kernel end to end: the built-in model, files of a model next to each
//! other, and configurations.

use crate::support::mu_check;
use std::fs;
use std::path::Path;

const TEST: &str = "C MP\n{}\nP0(int *x, int *y) { *x = 1; smp_store_release(y, 1); }\n\
    P1(int *x, int *y) { int r0; int r1 = 2; r0 = READ_ONCE(*y); if (r0) r1 = *x; }\n\
    exists (1:r0=1 /\\ 1:r1=0)\n";

/// Returns a file of a folder for tests, with its path as text.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn the_built_in_model_judges_tests_of_the_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let racy = file(folder.path(), "racy.litmus", TEST);
    let outcome = mu_check(&["litmus", &racy, "--model", "lkmm"]);
    let test = &outcome.json["tests"][0];
    assert_eq!((outcome.code, &test["flags"][0]), (0, &"data-race".into()), "{}", outcome.stderr);
    assert_eq!((&test["herd"], &test["observation"]), (&"Ok".into(), &"Sometimes".into()));
    let ordered = TEST.replace("READ_ONCE(*y)", "smp_load_acquire(y)");
    let ordered = file(folder.path(), "ordered.litmus", &ordered);
    let outcome = mu_check(&["litmus", &ordered, "--model", "lkmm"]);
    let test = &outcome.json["tests"][0];
    assert_eq!((outcome.code, test["flags"].to_string()), (1, "[]".to_string()));
    assert_eq!(test["observation"], "Never");
    let unknown = file(folder.path(), "unknown.litmus", &TEST.replace("READ_ONCE", "READ_TWICE"));
    let outcome = mu_check(&["litmus", &unknown, "--model", "lkmm"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("unknown function `READ_TWICE`"), "{}", outcome.stderr);
}

#[test]
fn files_of_a_model_are_found_by_name_and_by_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let test = file(folder.path(), "mp.litmus", TEST);
    let bell = "enum A = 'once || 'release\ninstructions R[A]\ninstructions W[A]\n";
    let def =
        "READ_ONCE(P) __load{once}(P)\nsmp_store_release(P, V) { __store{release}(*P, V); }\n";
    let cat = "\"SC\"\nacyclic po | rf | co | fr as sc\nflag ~empty Release as released\n";
    file(folder.path(), "m.bell", bell);
    file(folder.path(), "m.def", def);
    let model = file(folder.path(), "m.cat", cat);
    let configuration =
        file(folder.path(), "other.cfg", "macros m.def\nbell m.bell\nmodel m.cat\nscale 2.0\n");
    for model in [model, configuration] {
        let outcome = mu_check(&["litmus", &test, "--model", &model]);
        let answer = &outcome.json["tests"][0];
        assert_eq!(outcome.code, 1, "{} {}", outcome.stderr, outcome.json);
        assert_eq!(
            (&answer["observation"], &answer["flags"][0]),
            (&"Never".into(), &"released".into())
        );
    }
}

/// The index of an SRCU section passes through memory to the thread that ends the section.
#[test]
fn srcu_indices_pass_through_memory() {
    let test = "C srcu\n{}\n\
        P0(int *y, struct srcu_struct *s, int *idx, int *f) { int r2; int r3; r3 = srcu_down_read(s); \
        WRITE_ONCE(*idx, r3); r2 = READ_ONCE(*y); smp_store_release(f, 1); }\n\
        P1(int *x, struct srcu_struct *s, int *idx, int *f) { int r1; int r3; int r4; \
        r4 = smp_load_acquire(f); r1 = READ_ONCE(*x); r3 = READ_ONCE(*idx); srcu_up_read(s, r3); }\n\
        P2(int *x, int *y, struct srcu_struct *s) { WRITE_ONCE(*y, 1); synchronize_srcu(s); \
        WRITE_ONCE(*x, 1); }\n\
        filter (1:r4=1)\nexists (1:r1=1 /\\ 0:r2=0)\n";
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "srcu.litmus", test);
    let outcome = mu_check(&["litmus", &path, "--model", "lkmm"]);
    let test = &outcome.json["tests"][0];
    assert_eq!(
        (outcome.code, test["flags"].to_string()),
        (1, "[]".to_string()),
        "{}",
        outcome.json
    );
    assert_eq!(test["observation"], "Never");
}
