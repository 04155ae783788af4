//! x86 programs end to end: names of files, names of variables, assertions on memory in
//! addition to robustness.

use crate::support::{mu_check, package};
use std::fs;
use std::path::Path;

/// Returns a file of a folder for tests, with its path as text.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Returns a program with one shared variable `flag` and one code for all threads.
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
    let system = file(
        folder.path(),
        "S.CUB",
        "array A[proc]: bool\ninit (p) { A[p] = False }\nunsafe (p) { A[p] = True }\n",
    );
    let commands: [&[&str]; 6] = [
        &["explore"],
        &["expand"],
        &["robust"],
        &["program"],
        &["program", "--threads-of", "any"],
        &["prove"],
    ];
    for command in commands {
        let run = |file: &str| {
            let outcome = mu_check(&[command, &[file]].concat());
            (
                outcome.code,
                outcome.json["states"].clone(),
                outcome.json["property"].clone(),
                outcome.json["specification"].clone(),
            )
        };
        assert_eq!(run(&small), run(&large), "{command:?}");
    }
    for file in [litmus.as_str(), folder.path().to_str().unwrap()] {
        let outcome = mu_check(&["litmus", file]);
        assert_eq!(
            (outcome.code, &outcome.json["tests"][0]["name"]),
            (0, &"T".into()),
            "{file}: {}",
            outcome.stderr
        );
    }
    for command in ["explore", "expand"] {
        assert_eq!(mu_check(&[command, &litmus]).code, 0, "{command}");
    }
    assert_eq!(mu_check(&["prove", &system]).json["property"], "safe");
}

/// A thread's store waits in its buffer while the thread is past it: robust, and unsafe under total
/// store order.
#[test]
fn assertions_on_memory_are_searched_with_buffers() {
    let folder = tempfile::tempdir().unwrap();
    let robust = |claim: &str, code: &str, threads: &str| {
        let path = file(folder.path(), "p.asm", &program(claim, code));
        let both = mu_check(&["robust", "--assert", "--threads-of", threads, &path]);
        let alone = mu_check(&["program", "--threads-of", threads, &path]);
        assert_eq!(both.json["property"], "robust", "{claim}: {}", both.stderr);
        assert_eq!(
            (&both.json["assertions"]["property"], both.code),
            (&alone.json["property"], alone.code),
            "{claim}"
        );
        assert_eq!(both.json["assertions"]["model"], "tso");
        both.code
    };
    let code = " mov dword [flag], 1\npast: nop";
    assert_eq!(robust("eip[$t] = past && flag = 0", code, "1"), 1);
    assert_eq!(robust("eip[$t] = past && $u:flag = 0", code, "2"), 1);
    assert_eq!(robust("eip[$t] = past && $t:flag = 0", code, "2"), 0);
    assert_eq!(
        robust("eip[$t] = past && flag = 0", " mov dword [flag], 1\n mfence\npast: nop", "2"),
        0
    );
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

/// Words have 32 bits for any number of threads as for one: what wraps, what is -1, what overflows.
#[test]
fn words_wrap_for_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let text = |initial: &str, claim: &str, code: &str| {
        program(claim, &format!("{code}\nend: jmp end\nbad: jmp bad"))
            .replace("flag dd 0", &format!("flag dd {initial}"))
    };
    let rows = [
        // The literal 2^32 - 1 is -1, in data, in code and in claims.
        ("4294967295", "eip[$t] = bad", "cmp dword [flag], -1\nje bad", "unsafe"),
        ("-1", "eip[$t] = bad", "cmp dword [flag], 0xffffffff\njne bad", "safe"),
        ("0", "eax[$t] = 4294967294", "mov eax, -2", "unsafe"),
        ("2147483647", "flag = -2147483648", "lock inc dword [flag]", "unsafe"),
        ("2147483648", "eip[$t] = bad", "dec dword [flag]\njo bad", "unsafe"),
        ("0", "eip[$t] = bad", "mov eax, 0x7fffffff\nadd eax, 2\njns bad", "safe"),
        // Without signs the order is another one; sign and order differ after an overflow.
        ("-5", "eip[$t] = bad", "cmp dword [flag], 5\nja bad", "unsafe"),
        ("-5", "eip[$t] = bad", "cmp dword [flag], 5\njg bad", "safe"),
        ("-2147483648", "eip[$t] = bad", "cmp dword [flag], 1\njns bad", "unsafe"),
        ("-2147483648", "eip[$t] = bad", "cmp dword [flag], 1\njge bad", "safe"),
        ("0x40000000", "eip[$t] = bad", "mov eax, [flag]\nshl eax, 1\njs bad", "unsafe"),
        ("6", "eip[$t] = bad", "mov eax, [flag]\nand eax, 5\ncmp eax, 4\njne bad", "safe"),
        ("0", "eip[$t] = bad", "neg dword [flag]\njc bad", "safe"),
    ];
    for (initial, claim, code, wanted) in rows {
        let path = file(folder.path(), "p.asm", &text(initial, claim, code));
        for arguments in [&["program", "--threads-of", "any"][..], &["prove"]] {
            let outcome = mu_check(&[arguments, &[path.as_str()]].concat());
            assert_eq!(
                outcome.json["property"], wanted,
                "{arguments:?} {code}: {}",
                outcome.stderr
            );
            if wanted == "safe" {
                assert_eq!(outcome.json["threads"]["word_bits"], 32);
            }
        }
    }
}

/// A claim on memory is about the contents of memory, also while a store waits in a buffer.
#[test]
fn claims_on_memory_for_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        ("eip[$t] = past && flag = 0", " mov dword [flag], 1\npast: jmp past", "unsafe"),
        ("eip[$t] = past && $u:flag = 0", " mov dword [flag], 1\npast: jmp past", "unsafe"),
        ("eip[$t] = past && $t:flag = 0", " mov dword [flag], 1\npast: jmp past", "safe"),
        ("eip[$t] = past && flag = 0", " mov dword [flag], 1\n mfence\npast: jmp past", "safe"),
        ("flag > 1", " mov dword [flag], 1\npast: jmp past", "safe"),
    ];
    for (claim, code, wanted) in rows {
        let path = file(folder.path(), "p.asm", &program(claim, code));
        for arguments in [&["program", "--threads-of", "any"][..], &["prove"]] {
            let outcome = mu_check(&[arguments, &[path.as_str()]].concat());
            assert_eq!(
                outcome.json["property"], wanted,
                "{arguments:?} {claim}: {}",
                outcome.stderr
            );
        }
    }
}

/// The answer says for how many threads it is, and a certificate is verified with the same
/// assumption.
#[test]
fn assumptions_are_part_of_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (lock, proof) =
        (package("specs/x86/spinlock.asm"), folder.path().join("lock.proof").display().to_string());
    let proved = mu_check(&["prove", &lock, "--certificate", &proof]);
    assert_eq!(
        (&proved.json["property"], &proved.json["threads"]["most"]),
        (&"safe".into(), &2_147_483_649u64.into())
    );
    let verified = mu_check(&["verify", &lock, &proof]);
    assert_eq!(
        (&verified.json["certificate"], &verified.json["threads"]["most"]),
        (&"proved".into(), &2_147_483_649u64.into())
    );
    assert_eq!(
        mu_check(&["prove", &package("specs/x86/mutex_xchg.asm")]).json["threads"]["most"],
        serde_json::Value::Null
    );
}

/// Words that count without bound keep the search backward from finding a run; a few threads have
/// it.
#[test]
fn runs_of_programs_that_count_are_found() {
    for name in ["naive_mutex_count.asm", "naive_mutex_count_lock.asm"] {
        let path = package(&format!("specs/x86/{name}"));
        for arguments in [&["program", "--threads-of", "any"][..], &["prove"]] {
            let outcome = mu_check(&[arguments, &[path.as_str()]].concat());
            let verdict = (outcome.code, &outcome.json["property"]);
            assert_eq!(verdict, (1, &"unsafe".into()), "{arguments:?} {name}: {}", outcome.stderr);
            if arguments[0] == "program" {
                assert_eq!(outcome.json["threads"], 2, "{name}: {}", outcome.json);
            }
        }
    }
}

/// Constructs that are unsupported for any number of threads are unknown, with their place; those
/// that are invalid for every number of threads are bad input.
#[test]
fn programs_without_a_counterpart_are_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        ("mov al, 1", 3, ":8:"),
        ("lea eax, [flag]", 3, ":8:"),
        ("mov eax, N", 3, ":8:"),
        ("setne byte [flag]", 3, ":5:2:"),
        ("fsqrt", 2, ""),
        ("lock inc eax", 2, ""),
        ("mov eax, 4294967296", 2, ""),
        ("jmp nowhere", 2, ""),
    ];
    for (code, exit, place) in rows {
        let path = file(
            folder.path(),
            "p.asm",
            &program("eax[$t] = 77", code).replace(
                "flag dd 0",
                if code.contains("byte") { "flag db 0" } else { "flag dd 0" },
            ),
        );
        let outcome = mu_check(&["program", "--threads-of", "any", &path]);
        assert_eq!(outcome.code, exit, "{code}: {}", outcome.stderr);
        assert!(
            outcome.json["why"].as_str().unwrap_or_default().contains(place),
            "{code}: {}",
            outcome.json
        );
        let single = mu_check(&["program", "--threads-of", "1", &path]);
        assert_eq!(single.code, if exit == 3 { 0 } else { 2 }, "{code}: {}", single.stderr);
    }
}

/// A thread that counts without end reads and writes no memory; the others still move, with one
/// process and with several.
#[test]
fn endless_local_loops_leave_room_for_other_threads() {
    let folder = tempfile::tempdir().unwrap();
    let count = |claim: &str| {
        format!(
            "begin shared_data\nX dd 0\nend shared_data\nbegin unsafe_prop\n{claim}\nend unsafe_prop\n\
             begin init_code\nstart_threads\nend init_code\n\
             begin thread_code\nl: inc eax\njmp l\nend thread_code\n\
             begin thread_code\nmov dword [X], 1\nend thread_code\n"
        )
    };
    let found = file(folder.path(), "found.asm", &count("X = 1"));
    let absent = file(folder.path(), "absent.asm", &count("X = 2"));
    let run = |more: &[&str]| mu_check(&[&["program", "--threads-of", "2"], more].concat());
    assert_eq!(run(&[&found]).code, 1);
    let limited = run(&[&absent, "--max-states", "1000"]);
    assert_eq!((limited.code, &limited.json["stop"]), (3, &"max-states".into()));
}

/// Store buffering with `extra` more stores of each thread, in a loop, so that buffers have a
/// bound.
fn buffering(extra: usize) -> String {
    let code = |own: &str, other: &str| {
        let stores = "mov dword [Z], 1\n".repeat(extra);
        format!(
            "begin thread_code\nmov dword [{own}], 1\n{stores}mov eax, [{other}]\nfin: jmp fin\nend thread_code\n"
        )
    };
    format!(
        "begin shared_data\nX dd 0\nY dd 0\nZ dd 0\nend shared_data\n{}{}",
        code("X", "Y"),
        code("Y", "X")
    )
}

/// A bound on store buffers leaves steps out: a verdict stands only if the steps that are left
/// decide it.
#[test]
fn a_full_store_buffer_makes_verdicts_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let (small, large) = (
        file(folder.path(), "small.asm", &buffering(1)),
        file(folder.path(), "large.asm", &buffering(4)),
    );
    let system = file(
        folder.path(),
        "two.cub",
        "weak array X[proc] : bool weak var Z : bool array S[proc] : bool array At[proc] : int
init (p) { X[p] = False && Z = False && S[p] = False && At[p] = 0 }
unsafe (p q) { S[p] = True && S[q] = True }
transition a ([p]) requires { At[p] = 0 } { X[p] := True; At[p] := 1 }
transition b ([p]) requires { At[p] = 1 } { Z := True; At[p] := 2 }
transition c ([p]) requires { At[p] = 2 && forall_other q. X[q] = False } { S[p] := True; At[p] := 3 }",
    );
    let never = "[true* . read(0,Y,0) . true* . read(1,X,0)]false";
    let reached = "<true* . read(0,Y,0) . true* . read(1,X,0)>true";
    let run = |arguments: &[&str]| {
        let outcome = mu_check(arguments);
        (
            outcome.code,
            outcome.json["results"][0]["verdict"].as_str().unwrap_or_default().to_string(),
        )
    };
    let verdict = |word: &str, code| (code, word.to_string());
    // Two stores are within the default bound, five are not.
    assert_eq!(run(&["check", &small, "-f", never]), verdict("false", 1));
    for formula in [never, reached] {
        assert_eq!(run(&["check", &large, "-f", formula]), verdict("unknown", 3), "{formula}");
    }
    assert_eq!(run(&["check", &large, "-f", never, "--buffer", "5"]), verdict("false", 1));
    assert_eq!(run(&["check", &large, "-f", reached, "--buffer", "5"]), verdict("true", 0));
    // What the steps that are left show is so.
    assert_eq!(run(&["check", &large, "-f", "<true* . write(0,Z,1)>true"]), verdict("true", 0));
    let (explore, reduce) = (["explore", &large], ["reduce", &large]);
    for words in [
        &explore[..],
        &[&explore[..], &["--processes", "2"]].concat(),
        &[&explore[..], &["--reduce", "probabilistic"]].concat(),
        &reduce,
        &[&reduce[..], &["-e", "probabilistic"]].concat(),
    ] {
        let found = mu_check(words);
        assert_eq!(
            (found.code, found.json["stop"].as_str()),
            (3, Some("buffer-bound")),
            "{words:?}"
        );
    }
    // Parts of systems decide nothing about their relation.
    for (other, equivalence) in [
        (&large, "strong"),
        (&small, "strong"),
        (&large, "probabilistic"),
        (&small, "probabilistic"),
    ] {
        let found = mu_check(&["compare", &large, other, "-e", equivalence]);
        let shown = (found.code, found.json["verdict"].as_str(), found.json["stop"].as_str());
        assert_eq!(shown, (3, Some("unknown"), Some("buffer-bound")), "{other} {equivalence}");
    }
    for (formula, bounded, all) in
        [("[true* . unsafe]false", "unknown", "false"), ("<true* . unsafe>true", "unknown", "true")]
    {
        let arguments = ["check", &system, "-D", "processes=2", "-f", formula];
        assert_eq!(run(&[&arguments[..], &["--buffer", "1"]].concat()).1, bounded, "{formula}");
        assert_eq!(run(&arguments).1, all, "{formula}");
    }
    // The value of a real-valued formula depends on all transitions.
    for (bound, expected) in [("1", "unknown"), ("4", "false")] {
        let formula = "--formula=-(-([true* . unsafe]false))";
        let arguments = ["check", &system, "-D", "processes=2", formula, "--buffer", bound];
        assert_eq!(run(&arguments).1, expected, "{bound}");
    }
}
