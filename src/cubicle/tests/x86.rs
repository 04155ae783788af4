//! Tests of x86 programs for any number of threads: the columns of x86-tso-programs' table, and the
//! results of the machine of two and three processes.

mod machine;

use mu_base::SourceId;
use mu_cubicle::machine::{Act, Machine, Memory, Setup};
use mu_cubicle::system::System;
use mu_cubicle::x86::{TranslationOptions, columns, translate};
use mu_program::parametric;
use std::collections::{HashMap, VecDeque};
use std::path::Path;

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs/x86").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn translate_and_check(
    text: &str,
    options: TranslationOptions,
) -> Result<(mu_cubicle::ast::File, System), mu_base::Diagnostic> {
    let file = translate(&parametric::parse(SourceId::FIRST, text)?, options)?.file;
    let again = mu_cubicle::parse(SourceId::FIRST, &file.to_string())?;
    assert_eq!(again, file);
    let system = mu_cubicle::check(&again)?;
    Ok((file, system))
}

/// Returns the least number of transitions, without flushes, to an unsafe state; `None` if it is
/// unreachable.
fn steps_to_unsafe(system: &System, n: u32) -> Option<u32> {
    let setup = Setup { buffer: Some(3), ..Setup::default() };
    let machine = Machine::new(system, n, Memory::Tso, setup).unwrap_or_else(|d| panic!("{}", d));
    let claims: Vec<_> = system.unsafes.iter().map(|c| machine.prepare_claim(c)).collect();
    let mut best: HashMap<Vec<u32>, u32> = HashMap::new();
    let mut todo: VecDeque<(Vec<u32>, u32)> = VecDeque::new();
    todo.extend(
        machine.initial_states().unwrap_or_else(|d| panic!("{}", d)).into_iter().map(|s| (s, 0)),
    );
    while let Some((state, steps)) = todo.pop_front() {
        if best.get(&state).is_some_and(|b| *b <= steps) {
            continue;
        }
        if claims.iter().any(|c| machine.may_hold(&state, c).is_some()) {
            return Some(steps);
        }
        best.insert(state.clone(), steps);
        let successors = machine.successors(&state, &mut |act, next| match act {
            Act::Flush(_) => todo.push_front((next, steps)),
            Act::Fire(..) => todo.push_back((next, steps + 1)),
        });
        successors.unwrap_or_else(|d| panic!("{}", d));
    }
    None
}

#[test]
fn the_table_of_the_paper() {
    let split = TranslationOptions { split_xchg: true, ..TranslationOptions::default() };
    let plain = TranslationOptions::default();
    // More transitions than in the article: one for each kind of wrap, ghosts, and places of
    // assumptions. A failed `cmpxchg` without `lock` stores nothing. Columns: program (`unlocked`:
    // without the prefix), registers, weak variables, transitions, length of the counterexample.
    let rows = [
        ("naive_mutex_count_lock.asm", plain, 3, 2, 15, Some(12)),
        ("naive_mutex_count.asm", plain, 3, 2, 18, Some(12)),
        ("mutex_xchg.asm", split, 4, 1, 8, Some(10)),
        ("mutex_xchg.asm", plain, 3, 1, 7, None),
        ("mutex_cmpxchg.asm unlocked", plain, 4, 1, 9, Some(10)),
        ("mutex_cmpxchg.asm", plain, 4, 1, 8, None),
        ("spinlock.asm unlocked", plain, 5, 1, 11, Some(6)),
        ("spinlock.asm", plain, 4, 2, 10, None),
        ("barrier_single.asm", plain, 3, 2, 16, None),
        ("barrier_multiple.asm", plain, 3, 2, 17, None),
    ];
    for (name, options, registers, weak, transitions, length) in rows {
        let program = match name.strip_suffix(" unlocked") {
            Some(name) => text(name).replace("lock ", ""),
            None => text(name),
        };
        // The article's listings have no instruction for the critical section.
        let program = program.replace("cs: nop", "cs:");
        let (file, system) =
            translate_and_check(&program, options).unwrap_or_else(|d| panic!("{name}: {}", d));
        let found = columns(&file);
        assert_eq!(
            (found.registers, found.weak, found.transitions),
            (registers, weak, transitions),
            "{name}\n{file}"
        );
        assert_eq!(steps_to_unsafe(&system, 2), length, "{name}\n{file}");
        if length.is_none() {
            assert_eq!(steps_to_unsafe(&system, 3), None, "{name}\n{file}");
        }
    }
}

fn program(data: &str, code: &str) -> String {
    format!(
        "begin shared_data\n{data}\nend shared_data\nbegin unsafe_prop\neip[$t] = bad\nend unsafe_prop\nbegin thread_code\n{code}\nbad: nop\nend thread_code\n"
    )
}

#[test]
fn registers_may_hold_anything_at_the_start() {
    let code = program("", "cmp eax, 0\nje ok\njmp bad\nok: jmp ok");
    let any = TranslationOptions { any_registers: true, ..TranslationOptions::default() };
    let start = |options| {
        let (_, system) = translate_and_check(&code, options).unwrap_or_else(|d| panic!("{}", d));
        let candidates = [0, 1].map(|n| num_rational::BigRational::from_integer(n.into())).into();
        let machine =
            Machine::new(&system, 1, Memory::Tso, Setup { candidates, ..Setup::default() })
                .unwrap_or_else(|d| panic!("{}", d));
        let reach = machine
            .reach(1000, true, &mu_base::Budget::default())
            .unwrap_or_else(|d| panic!("{}", d));
        reach.violation.is_some()
    };
    assert!(!start(TranslationOptions::default()));
    assert!(start(any));
}

/// Jumps that read open flags: the code after up to four of them is reachable if and only if some
/// flags take none of them. Some flags may have been set before.
#[test]
fn open_flags_have_any_value() {
    const SUFFIXES: [&str; 14] =
        ["e", "ne", "s", "ns", "b", "ae", "o", "no", "be", "a", "l", "ge", "le", "g"];
    const SEED: u64 = 47;
    let mut random = mu_base::random::Random::new(SEED);
    let any = TranslationOptions { any_registers: true, ..TranslationOptions::default() };
    let mut seen = [0, 0];
    for round in 0..400 {
        let jumps: Vec<&str> =
            (0..1 + random.below(4)).map(|_| *random.choose(&SUFFIXES)).collect();
        let code: Vec<String> = jumps.iter().map(|j| format!("j{j} fin")).collect();
        let text = format!(
            "begin shared_data\nx dd 0\nend shared_data\nbegin unsafe_prop\neip[$t] = bad\nend unsafe_prop\n\
             begin thread_code\n{}\nbad: nop\nfin: nop\nend thread_code\n",
            code.join("\n")
        );
        let tests: Vec<_> =
            jumps.iter().map(|j| mu_program::expr::FlagTest::of_suffix(j).unwrap()).collect();
        let expected =
            (0..=mu_program::expr::flags::ALL).any(|f| tests.iter().all(|t| !t.holds(f)));
        let (_, system) = translate_and_check(&text, any).unwrap_or_else(|d| panic!("{d}\n{text}"));
        let candidates =
            [-1, 0, 1].map(|n| num_rational::BigRational::from_integer(n.into())).into();
        let setup = Setup { candidates, ..Setup::default() };
        let machine = Machine::new(&system, 1, Memory::Tso, setup).unwrap();
        let reach = machine.reach(10_000, true, &mu_base::Budget::default()).unwrap();
        assert_eq!(reach.violation.is_some(), expected, "seed {SEED}, round {round}\n{text}");
        seen[usize::from(expected)] += 1;
    }
    assert!(seen.iter().all(|n| *n > 50), "{seen:?}");
}

/// Returns whether two threads reach an unsafe state on the machine of programs with 32-bit
/// numbers.
fn reached_with_bits(text: &str) -> bool {
    let program = mu_program::nasm::parse(SourceId::FIRST, text, 2)
        .unwrap_or_else(|d| panic!("{}\n{text}", d));
    let memory = mu_program::memory::TSO;
    let machine = mu_program::machine::Machine::new(program.program.clone(), memory, None, &[]);
    machine::reaches_unsafe(&program, &machine, usize::MAX).expect("no limit")
}

#[test]
fn parity_is_that_of_the_lowest_byte() {
    // The lowest bytes have two and three ones, the numbers three and four.
    for (n, jump, taken) in [
        (259, "jp", true),
        (259, "jnp", false),
        (263, "jp", false),
        (263, "jpo", true),
        (-1, "jpe", true),
        (-2, "jpe", false),
    ] {
        let text =
            program("x dd 0", &format!("mov eax, {n}\ncmp eax, 0\n{jump} bad\nend: jmp end"));
        let (_, system) = translate_and_check(&text, TranslationOptions::default())
            .unwrap_or_else(|d| panic!("{}\n{text}", d));
        assert_eq!(
            (steps_to_unsafe(&system, 1).is_some(), reached_with_bits(&text)),
            (taken, taken),
            "{text}"
        );
    }
}

/// A counter sets the same flags as its word, for each condition, after a comparison and after a
/// step.
#[test]
fn flags_of_counters() {
    let conditions = ["o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "l", "ge", "le", "g"];
    let carry = ["", "mov eax, 0\ncmp eax, 1\n"];
    let code = [
        "cmp dword [x], N",
        "cmp dword [x], 0",
        "lock dec dword [x]",
        "lock dec dword [x]\ncmp dword [x], N",
        "lock dec dword [x]\ncmp dword [x], 0",
        "lock dec dword [x]\nlock inc dword [x]",
        "mov dword [x], 0\nlock inc dword [x]\ncmp dword [x], N",
    ];
    for (before, code) in carry.iter().flat_map(|b| code.iter().map(move |c| (b, c))) {
        for condition in conditions {
            for claim in ["eip[$t] = bad", "eip[$t] = bad && eip[$u] = bad"] {
                let text = program(
                    "x dd N ! as counter",
                    &format!("{before}{code}\nj{condition} bad\nend: jmp end"),
                );
                let text = text.replace("eip[$t] = bad", claim);
                let (_, mut system) = translate_and_check(&text, TranslationOptions::default())
                    .unwrap_or_else(|d| panic!("{}\n{text}", d));
                // The other claims are about places where the counter leaves its range.
                system.unsafes.truncate(1);
                assert_eq!(
                    steps_to_unsafe(&system, 2).is_some(),
                    reached_with_bits(&text),
                    "{text}"
                );
            }
        }
    }
}

/// A shift by 0 modulo 32 preserves the flags.
#[test]
fn shifts_that_keep_the_flags() {
    for (shift, kept) in [
        ("shr edx, 32", true),
        ("shl edx, 0", true),
        ("sar edx, 64", true),
        ("shr edx, 33", false),
        ("shl edx, 1", false),
    ] {
        for (before, odd) in [
            ("mov eax, 1\ntest eax, eax", true),
            ("mov eax, 3\ntest eax, eax", false),
            ("nop", true),
        ] {
            for (jump, taken) in [("jpo", if kept { odd } else { false }), ("jz", !kept)] {
                let text =
                    program("x dd 0", &format!("{before}\n{shift}\n{jump} bad\nend: jmp end"));
                let (_, system) = translate_and_check(&text, TranslationOptions::default())
                    .unwrap_or_else(|d| panic!("{}\n{text}", d));
                assert_eq!(
                    (steps_to_unsafe(&system, 1).is_some(), reached_with_bits(&text)),
                    (taken, taken),
                    "{text}"
                );
            }
        }
    }
}

/// A counter must not reach the sign bit of its word.
#[test]
fn the_width_of_a_counter_bounds_the_number_of_threads() {
    for (data, most) in [("db", 127), ("dw", 32_767), ("dd", 2_147_483_647)] {
        let text = program(&format!("c {data} 0 ! as counter"), "lock inc [c]\nl: jmp l");
        let program = parametric::parse(SourceId::FIRST, &text).unwrap_or_else(|d| panic!("{d}"));
        let found = translate(&program, TranslationOptions::default()).unwrap().most_threads;
        assert_eq!(found, Some(most), "{data}");
    }
    // The process that observes memory is no thread.
    for (claim, threads) in [("$t:x = 1", 255), ("x = 1", 254)] {
        let text = program("x db 0", "lock inc [x]").replace("eip[$t] = bad", claim);
        let program = parametric::parse(SourceId::FIRST, &text).unwrap_or_else(|d| panic!("{d}"));
        let translation = translate(&program, TranslationOptions::default()).unwrap();
        assert_eq!(translation.threads_of(255), threads, "{claim}");
    }
}

/// Names of the program that differ in case or in `_` have different names in the system, and no
/// place is the name of a variable or a register.
#[test]
fn names_of_the_program_stay_distinct() {
    let claim = |data: &str, code: &str, claim: &str| {
        let text = program(data, code).replace("eip[$t] = bad", claim).replace("bad: nop\n", "");
        let system = translate_and_check(&text, TranslationOptions::default());
        steps_to_unsafe(&system.unwrap_or_else(|d| panic!("{text}: {d}")).1, 2)
    };
    let end = "end: mov dword [x], 1\nret\nend_: mov dword [x], 2";
    assert_eq!(claim("x dd 0", end, "$t:x = 2"), None);
    assert_eq!(claim("x dd 0", end, "$t:x = 1"), Some(1));
    assert_eq!(claim("lx dd 0", "l: inc dword [lx]", "$t:lx = 1"), Some(2));
    assert_eq!(claim("l dd 0", "l: inc dword [l]\nEAX: mov eax, 1", "$t:l = 1"), Some(2));
    assert_eq!(claim("x dd 0", "a: mov eax, 1", "eax[$T] = 1 && eax[$t] = 1"), Some(2));
}

/// A thread that stands for memory, or that has left the program's behaviour, is at no place of the
/// program.
#[test]
fn claims_are_about_threads_at_places_of_the_program() {
    let refuted = |data: &str, code: &str, claim: &str| {
        let text = program(data, code).replace("eip[$t] = bad", claim).replace("bad: nop\n", "");
        let translation =
            translate(&parametric::parse(SourceId::FIRST, &text).unwrap(), Default::default())
                .unwrap();
        let mut system = mu_cubicle::check(&translation.file).unwrap();
        system.unsafes.truncate(translation.claims);
        steps_to_unsafe(&system, 3).is_some()
    };
    assert!(!refuted("x dd 0", "a: jmp a", "x = 0 && eip[$t] <> a"));
    assert!(!refuted("x dd 0", "a: jmp a", "x = 0 && eip[$t] <> eip[$u]"));
    assert!(refuted("x dd 0", "a: jmp b\nb: jmp b", "x = 0 && eip[$t] <> a"));
    let counter = "a: lock dec dword [c]\nb: jmp b";
    assert!(!refuted("c dd 0 ! as counter", counter, "eip[$t] <> a && eip[$t] <> b"));
    assert!(refuted("c dd N ! as counter", counter, "eip[$t] <> a && eip[$t] = b"));
}

#[test]
fn what_has_no_counterpart_is_refused_by_name() {
    let faults = [
        ("X dd 0", "mov eax, [X + ecx*4]", "a computed address is not supported"),
        ("X dd 0", "mov al, 1", "does not have 32 bits"),
        ("X dd ?", "mov eax, [X]\nand eax, 1", "a bit operation on words"),
        ("X dd 0", "lea eax, [X]", "`lea` with these operands"),
        ("X dd 0", "mov word [X], 1", "`word` does not have 32 bits"),
        ("X dd 0", "movb [X], 1", "`movb` does not have 32 bits"),
        ("X dd 0", "mov ch, 1", "`ch` does not have 32 bits"),
        ("X dd 0", "cmovz [X], eax", "the destination of `cmovz` must be a register"),
        ("X dd 0", "mov eax, 4294967296", "does not fit in the 32 bits"),
        ("X dd -2147483649", "nop", "does not fit in the 32 bits"),
        ("X dd 0", "lock add eax, [X]", "but its destination is not in memory"),
        ("X dd 0", "l: inc eax\njp bad\njmp l", "`jp` tests the parity of the lowest byte"),
        ("X dd ?", "cmp dword [X], 1\njnp bad", "the result may have many values"),
        ("X dd 0 ! as counter", "lock dec dword [X]\njp bad", "the result may have many values"),
        ("X dd 0", "cmp eax, 1\njoy bad", "unknown instruction `joy`"),
        ("X dd 0", "mov [X], N", "`N` has no value here"),
        ("X dd N", "mov eax, 1", "starts at `N`"),
        ("X dd 3 ! as counter", "inc dword [X]", "starts at 3"),
        ("X dd 0 ! as counter", "mov eax, [X]", "cannot be read"),
        ("X dd 0 ! as counter", "inc dword [X]", "on a counter without `lock`"),
        ("X dd 0 ! as counter", "add dword [X], 2", "`add` on the counter `X`"),
        ("X dd 0", "jmp nowhere", "no label `nowhere`"),
        ("X dd 0", "lock mov [X], eax", "`lock` before `mov`"),
        ("X dd 0", "mov [Y], eax", "no variable `Y` is declared"),
        ("X dq 0", "mov qword [X], 1", "`X` does not have 32 bits"),
        ("X dw 0\nY dd 0", "nop", "`Y` does not have 16 bits"),
        ("X dw 0", "mov eax, 1", "`eax` does not have 16 bits"),
    ];
    for (data, code, message) in faults {
        let fault = translate_and_check(&program(data, code), TranslationOptions::default())
            .map(|_| ())
            .expect_err(code);
        assert!(fault.message.contains(message), "{code}: {}", fault.message);
        assert!(fault.span.is_some(), "{code}");
    }
}

/// The names of variables and labels, however they are spelt, do not change what is reached.
#[test]
fn names_change_nothing() {
    let code = |x: &str, y: &str, l: &str, m: &str| {
        program(
            &format!("{x} dd 0\n{y} dd 0"),
            &format!(
                "mov dword [{x}], 1\n{l}: mov eax, [{y}]\ncmp eax, 2\nje bad\n{m}: \
                 mov dword [{y}], 2\nmov ebx, [{x}]\ncmp ebx, 2\nje bad\nend: jmp end"
            ),
        )
    };
    let steps = |text: &str| {
        let (_, system) = translate_and_check(text, TranslationOptions::default())
            .unwrap_or_else(|d| panic!("{text}{d}"));
        steps_to_unsafe(&system, 2)
    };
    let expected = steps(&code("a", "b", "one", "two"));
    assert!(expected.is_some());
    for [x, y, l, m] in [
        ["x", "X", "l", "L"],
        ["T", "pc", "zf", "Zf"],
        ["True", "false", "t", "T"],
        ["l0", "L1", "l1", "L2"],
        ["pC", "oF", "End", "End_"],
        ["s", "_S", "x", "s_"],
    ] {
        assert_eq!(steps(&code(x, y, l, m)), expected, "{x} {y} {l} {m}");
    }
}
