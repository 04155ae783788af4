//! Tests of published verdicts of x86 programs, of rejected inputs, and of replay.

use mu_base::{Budget, Diagnostic, SourceId};
use mu_explore::Silent;
use mu_program::machine::MoveEffect;
use mu_program::memory;
use mu_program::nasm::{self, X86Program};
use mu_safety::reach::{ReachResult, Safety, in_memory, reach};
use mu_safety::robust::check_with_assertions;

fn program(text: &str, threads: usize) -> X86Program {
    nasm::parse(SourceId::FIRST, text, threads).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn check(text: &str, threads: usize, model: &str) -> ReachResult {
    reach(
        &program(text, threads),
        memory::by_name(model).unwrap(),
        None,
        1,
        &Budget::default(),
        &Silent,
    )
    .unwrap()
}

macro_rules! spec {
    ($name:literal) => {
        include_str!(concat!("../../../specs/x86/", $name, ".asm"))
    };
}

/// The verdicts of the table of Conchon, Declerck, Zaïdi (2017). The shortest interleavings of
/// unsafe programs have the published length, except for the naive mutexes, of which the paper does
/// not contain the text.
#[test]
fn published_verdicts() {
    for (name, text, unsafe_at) in [
        ("naive mutex", spec!("naive_mutex"), Some(8)),
        ("naive mutex with lock", spec!("naive_mutex_lock"), Some(6)),
        ("mutex by xchg, unsafe", spec!("mutex_xchg_unsafe"), Some(10)),
        ("mutex by xchg", spec!("mutex_xchg"), None),
        ("mutex by cmpxchg, unsafe", spec!("mutex_cmpxchg_unsafe"), Some(10)),
        ("mutex by cmpxchg", spec!("mutex_cmpxchg"), None),
        ("spinlock, unsafe", spec!("spinlock_unsafe"), Some(6)),
        ("spinlock", spec!("spinlock"), None),
        ("barrier, single entry", spec!("barrier_single"), None),
        ("barrier, multiple entry", spec!("barrier_multiple"), None),
    ] {
        for threads in [2, 3] {
            for model in ["sc", "tso"] {
                let found = check(text, threads, model);
                let expected = if unsafe_at.is_some() { Safety::Unsafe } else { Safety::Safe };
                assert_eq!(found.safety, expected, "{name} {threads} {model}");
                assert_eq!(
                    found.interleaving.map(|w| w.steps.len()),
                    unsafe_at,
                    "{name} {threads} {model}"
                );
            }
        }
    }
}

#[test]
fn what_the_order_of_stores_saves() {
    let text = spec!("barrier_multiple_unlocked");
    assert_eq!(
        ["sc", "tso", "pso"].map(|m| check(text, 2, m).safety),
        [Safety::Safe, Safety::Safe, Safety::Unsafe]
    );
    let found = check(text, 2, "pso");
    let way = found.interleaving.unwrap();
    let m = &found.machine;
    // The new sense overtakes the reset of the count in some buffer.
    let overtaken = way.steps.iter().any(|s| {
        let sense = matches!(s.event, MoveEffect::Flush { cell, .. } if m.program.cells[cell as usize].name == "sense");
        sense && mu_safety::reach::buffer_content(m, s.thread, &s.state).iter().any(|(n, _)| n == "count")
    });
    assert!(overtaken);
    assert_eq!(in_memory(m, &way.initial), [("sense".to_string(), 0), ("count".to_string(), 2)]);
}

fn data(data: &str, code: &str, property: &str) -> String {
    format!(
        "begin shared_data\n{data}\nend shared_data\nbegin thread_code\n{code}\nend thread_code\nbegin unsafe_prop\n{property}\nend unsafe_prop\n"
    )
}

/// Peterson's algorithm needs each thread's flag and that of the other one; it is safe under SC,
/// and under TSO with a fence.
#[test]
fn thread_data_and_other_threads() {
    let peterson = |store_fence: &str, fence: &str| {
        format!(
            "begin shared_data\nturn dd 0\nend shared_data\nbegin thread_data\nflag dd 0\nend thread_data\nbegin thread_code\n\
             enter: mov dword [flag], 1\n{store_fence}\nmov eax, $next\nmov [turn], eax\n{fence}\n\
             wait: cmp dword [flag + $next], 0\nje cs\ncmp [turn], eax\nje wait\n\
             cs: nop\nmov dword [flag + $self], 0\njmp enter\nend thread_code\n\
             begin unsafe_prop\neip[$a] = cs && cs = eip[$b]\nend unsafe_prop\n"
        )
    };
    assert_eq!(check(&peterson("", ""), 2, "sc").safety, Safety::Safe);
    assert_eq!(check(&peterson("", ""), 2, "tso").safety, Safety::Unsafe);
    assert_eq!(check(&peterson("", "mfence"), 2, "tso").safety, Safety::Safe);
    // The turn must not be given away before the flag is visible.
    assert_eq!(check(&peterson("", "mfence"), 2, "pso").safety, Safety::Unsafe);
    assert_eq!(check(&peterson("sfence", "mfence"), 2, "pso").safety, Safety::Safe);
}

#[test]
fn properties_look_at_registers_and_memory() {
    let safety = |code: &str, property: &str, threads| {
        check(&data("x dd 0\ny dd 5", code, property), threads, "tso").safety
    };
    for (code, property, unsafe_state) in [
        ("mov eax, 3", "eax[$t] = 3", true),
        ("mov eax, -1\nl: jmp l", "eax[$t] < 0", true),
        ("mov eax, -1\nl: jmp l", "eax[$t] > 0", false),
        ("mov eax, 0x1234", "al[$t] = 0x34 && ah[$t] = 0x12", true),
        ("inc dword [x]", "x = 1", true),
        ("lock inc dword [x]", "x > N", false),
        ("lock inc dword [x]", "x >= N", true),
        ("mov dword [x], 1", "$a:x = 1 && $b:x = 0 && x = 0", true),
        ("mov dword [x], 1\nmfence\nl: nop", "eip[$a] = l && $b:x = 0", false),
        ("nop", "y <> 5", false),
        ("nop\nend: nop", "eip[$a] = end && eip[$b] <> end", true),
    ] {
        let expected = if unsafe_state { Safety::Unsafe } else { Safety::Safe };
        assert_eq!(safety(code, property, 2), expected, "{code}: {property}");
    }
    // Two sections are a disjunction.
    let both = data("x dd 0", "nop", "x = 1") + "begin unsafe_prop\nx = 0\nend unsafe_prop\n";
    assert_eq!(
        check(&both, 2, "sc").interleaving.map(|w| (w.property, w.steps.len())),
        Some((1, 0))
    );
    // A separate code for each thread.
    let two = data("x dd 0", "mov eax, [x]", "eax[$a] = 2").replace(
        "begin unsafe",
        "begin thread_code\nmov dword [x], 2\nend thread_code\nbegin unsafe",
    );
    assert_eq!(check(&two, 2, "tso").safety, Safety::Unsafe);
}

#[test]
fn a_full_buffer_is_no_proof() {
    let text = data("x dd 0\ny dd 0", "l: mov dword [x], 1\njmp l", "y = 1");
    let found = check(&text, 2, "tso");
    assert_eq!((found.safety, found.bound_reached), (Safety::Unknown, true));
    assert_eq!(check(&text, 2, "sc").safety, Safety::Safe);
    assert_eq!(check(&text.replace("y = 1", "x = 1"), 2, "tso").safety, Safety::Unsafe);
}

#[test]
fn limits_are_unknown() {
    let limits = mu_base::Limits { max_states: Some(10), ..Default::default() };
    let found =
        reach(&program(spec!("spinlock"), 3), memory::TSO, None, 1, &Budget::new(limits), &Silent)
            .unwrap();
    assert_eq!(found.safety, Safety::Unknown);
}

fn refusal(text: &str) -> Diagnostic {
    nasm::parse(SourceId::FIRST, text, 2).expect_err(text)
}

#[test]
fn wrong_programs_are_refused_with_their_place() {
    let code = |c: &str| data("x dd 0\nc dd N ! as counter", c, "x = 1");
    let property = |p: &str| data("x dd 0", "l: nop", p);
    for (text, part) in [
        ("mov eax, 1\n".to_string(), "expected `begin`"),
        ("begin data\nend data\n".into(), "unknown section `data`"),
        ("begin thread_code\nnop\n".into(), "expected `end thread_code`"),
        (
            "begin thread_code\nnop\nend shared_data\n".into(),
            "expected `end thread_code`, found `end shared_data`",
        ),
        ("begin shared_data\nend shared_data\n".into(), "expected a section `begin thread_code`"),
        (data("x dd 0\nx dd 1", "nop", "x = 1"), "declared twice"),
        (data("eax dd 0", "nop", "eax = 1"), "cannot be the name"),
        (data("x dt 0", "nop", "x = 1"), "expected `dd`"),
        (data("x dd y", "nop", "x = 1"), "expected a number, `N` or `?`"),
        (data("x dd 4294967296", "nop", "x = 1"), "does not fit"),
        (data("x dd 0 ! counter", "nop", "x = 1"), "expected `as counter`"),
        (code("fsqrt"), "unknown instruction `fsqrt`"),
        (code("movnti [x], eax"), "`movnti` is not ordered"),
        (code("jmp nowhere"), "no label `nowhere`"),
        (code("mov eex, 1"), "no variable `eex`"),
        (code("mov dword [z], 1"), "no variable `z`"),
        (code("mov al, ebx"), "a register of 32 bits"),
        (code("lock mov dword [x], 1"), "does not support it"),
        (code("mov eax, 1 ecx"), "expected the end of the line"),
        (code("l: nop\nl: nop"), "defined twice"),
        (code("add dword [c], 2"), "on the counter `c`"),
        (code("mov dword [x + $next], 2"), "not an element of a thread"),
        (property("x + 1 = 2"), "expected a comparison"),
        (property("z = 1"), "`z` is not a variable, a label or a register"),
        (property("x[$t] = 1"), "`x` is shared data"),
        (property("eip[$t] = 1"), "compared with a number"),
        (property("eip[$t] < l"), "no order"),
        (property("eip[$t] = m"), "no thread has a label `m`"),
        (property("eax[t] = 1"), "expected a thread"),
        (property("x = 1 x = 2"), "expected `&&`"),
        (property("eax[$a] = eax[$b] && ebx[$c] = 1"), "3 distinct threads"),
        (
            format!("{}begin init_code\nmov eax, 1\nend init_code\n", code("nop")),
            "before the threads start",
        ),
    ] {
        let found = refusal(&text);
        assert!(found.message.contains(part), "{part}: {found:?}");
        assert!(found.span.is_some(), "{found:?}");
    }
    assert!(nasm::parse(SourceId::FIRST, &code("nop"), 65).is_err());
}

/// Steps without memory access change an answer that compares the positions of two threads.
#[test]
fn positions_of_two_threads_are_compared_in_every_state() {
    let code = data("x dd 0", "a: nop\nb: nop\nc: nop", "eip[$t1] <> eip[$t2]");
    for model in ["sc", "tso", "pso"] {
        assert_eq!(check(&code, 2, model).safety, Safety::Unsafe, "{model}");
    }
    let found = check_with_assertions(&program(&code, 2), &Budget::default()).unwrap();
    assert!(found.unsafe_state.is_some());
    // Places in two codes are never the same.
    let two = data("x dd 0", "a: nop", "eip[$t1] = eip[$t2]").replace(
        "begin unsafe",
        "begin thread_code\nb: nop\nc: nop\nend thread_code\nbegin unsafe",
    );
    assert_eq!(check(&two, 2, "tso").safety, Safety::Safe);
    assert_eq!(check(&two, 3, "tso").safety, Safety::Unsafe);
}

/// Every program with a missing part is accepted or rejected without a panic.
#[test]
fn damaged_programs_do_no_harm() {
    let text = spec!("barrier_multiple");
    for i in (0..text.len()).filter(|&i| text.is_char_boundary(i)) {
        let _ = nasm::parse(SourceId::FIRST, &text[..i], 2);
        let _ = nasm::parse(SourceId::FIRST, &format!("{}{}", &text[..i], &text[i + 1..]), 2);
        let _ = nasm::parse(SourceId::FIRST, &format!("{}é{}", &text[..i], &text[i..]), 2);
    }
}
