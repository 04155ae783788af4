//! x86 programs end to end: names of files, names of variables, assertions on memory beside robustness.

use crate::support::{mu_check, package};
use std::fs;
use std::path::Path;

/// A file of a folder for tests, with its path as text.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A program with one shared variable `flag` and one code for all threads.
fn program(claim: &str, code: &str) -> String {
    format!(
        "begin shared_data\n flag dd 0\nend shared_data\nbegin unsafe_prop\n {claim}\nend unsafe_prop\n\
         begin thread_code\n{code}\nend thread_code\n"
    )
}

/// The ending of a name decides what a file is, in capital letters too, in every command.
#[test]
fn endings_in_capital_letters() {
    let folder = tempfile::tempdir().unwrap();
    let spinlock = fs::read_to_string(package("specs/x86/spinlock.asm")).unwrap();
    let small = file(folder.path(), "spin.asm", &spinlock);
    let large = file(folder.path(), "LOCK.ASM", &spinlock);
    let test = "X86 T\n{ }\n P0 | P1 ;\n MOV [x],$1 | MOV EAX,[x] ;\nexists (1:EAX=1)\n";
    let litmus = file(folder.path(), "T.LITMUS", test);
    let system = file(folder.path(), "S.CUB", "array A[proc]: bool\ninit (p) { A[p] = False }\nunsafe (p) { A[p] = True }\n");
    let commands: [&[&str]; 6] = [&["explore"], &["expand"], &["robust"], &["program"], &["program", "--threads-of", "any"], &["prove"]];
    for command in commands {
        let run = |file: &str| {
            let outcome = mu_check(&[command, &[file]].concat());
            (outcome.code, outcome.json["states"].clone(), outcome.json["property"].clone(), outcome.json["specification"].clone())
        };
        assert_eq!(run(&small), run(&large), "{command:?}");
    }
    for file in [litmus.as_str(), folder.path().to_str().unwrap()] {
        let outcome = mu_check(&["litmus", file]);
        assert_eq!((outcome.code, &outcome.json["tests"][0]["name"]), (0, &"T".into()), "{file}: {}", outcome.stderr);
    }
    for command in ["explore", "expand"] {
        assert_eq!(mu_check(&[command, &litmus]).code, 0, "{command}");
    }
    assert_eq!(mu_check(&["prove", &system]).json["property"], "safe");
}

/// A thread's store waits in its buffer while the thread is past it: robust, and unsafe under total store order.
#[test]
fn assertions_on_memory_are_searched_with_buffers() {
    let folder = tempfile::tempdir().unwrap();
    let robust = |claim: &str, code: &str, threads: &str| {
        let path = file(folder.path(), "p.asm", &program(claim, code));
        let both = mu_check(&["robust", "--assert", "--threads-of", threads, &path]);
        let alone = mu_check(&["program", "--threads-of", threads, &path]);
        assert_eq!(both.json["property"], "robust", "{claim}: {}", both.stderr);
        assert_eq!((&both.json["assertions"]["property"], both.code), (&alone.json["property"], alone.code), "{claim}");
        assert_eq!(both.json["assertions"]["model"], "tso");
        both.code
    };
    let code = " mov dword [flag], 1\npast: nop";
    assert_eq!(robust("eip[$t] = past && flag = 0", code, "1"), 1);
    assert_eq!(robust("eip[$t] = past && $u:flag = 0", code, "2"), 1);
    assert_eq!(robust("eip[$t] = past && $t:flag = 0", code, "2"), 0);
    assert_eq!(robust("eip[$t] = past && flag = 0", " mov dword [flag], 1\n mfence\npast: nop", "2"), 0);
    // Registers and places are the same once the buffers are empty.
    assert_eq!(robust("eax[$t] = 2", " mov dword [flag], 1\n mov eax, [flag]", "2"), 0);
}

/// `$next` and `$self` are threads; without the sign the names are free.
#[test]
fn variables_may_be_called_next_and_self() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["next", "self"] {
        let text = format!(
            "begin shared_data\n {name} dd 5\nend shared_data\nbegin thread_data\n own dd 0\nend thread_data\n\
             begin unsafe_prop\n ebx[$t] = 5 && ecx[$t] = 1\nend unsafe_prop\n\
             begin thread_code\n mov ebx, [{name}]\n mov dword [own + ${name}], 1\n mov ecx, [own + $self]\nend thread_code\n"
        );
        let path = file(folder.path(), "p.asm", &text);
        let outcome = mu_check(&["program", "--threads-of", "2", &path]);
        assert_eq!(outcome.json["property"], "unsafe", "{name}: {}", outcome.stderr);
    }
}
