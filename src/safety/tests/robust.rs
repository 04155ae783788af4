//! Tests of store-buffer safety against a naive decision by the traces of the machines, with and
//! without buffers.
//!
//! The naive decision shares the machine and the reader with the monitor, but no clocks: it
//! enumerates all traces. Each store has an identity (its thread and number there); a trace
//! contains the source of each load and, for each cell, the order in which stores reached it. A
//! program is robust if total store order has no trace beyond those of sequential consistency.

use mu_base::random::Random;
use mu_base::{Budget, SourceId, Stop};
use mu_explore::Silent;
use mu_program::litmus::{self, Litmus};
use mu_program::machine::{Machine, MoveEffect};
use mu_program::memory::{self, MemoryModel};
use mu_program::nasm::{self, X86Program};
use mu_program::{Program, axiomatic};
use mu_safety::count::{Counting, count};
use mu_safety::fences::{RepairPlace, smallest, with_fences};
use mu_safety::reach::{Safety, reach};
use mu_safety::robust::{check, check_with_assertions, replay, replay_unsafe};
use mu_testkit::litmus_tests::{self, Shape};
use std::collections::{BTreeSet, HashSet};

/// Identity of a store: its thread and its number there; `None` for the initial value.
type StoreId = Option<(u8, u8)>;

/// A state of the machine with its trace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct TracedState {
    /// For each cell, the stores that reached it.
    coherence: Vec<Vec<StoreId>>,
    /// For each thread, the sources of its loads.
    reads_from: Vec<Vec<StoreId>>,
    /// For each thread, its buffered stores.
    buffer: Vec<Vec<(u32, StoreId)>>,
    /// For each thread, the number of its stores.
    stores: Vec<u8>,
}

/// Computes all traces of a program without loops.
fn traces(program: &Program, model: &'static dyn MemoryModel) -> BTreeSet<TracedState> {
    let m = Machine::new(program.clone(), model, None, &[]);
    let (threads, cells) = (program.threads.len(), program.cells.len());
    let start = TracedState {
        coherence: vec![vec![None]; cells],
        reads_from: vec![vec![]; threads],
        buffer: vec![vec![]; threads],
        stores: vec![0; threads],
    };
    let mut todo = vec![(m.initial(), start)];
    let mut seen: HashSet<(Vec<u32>, TracedState)> = todo.iter().cloned().collect();
    let mut out = BTreeSet::new();
    while let Some((state, trace)) = todo.pop() {
        if m.is_final(&state) {
            assert!(trace.buffer.iter().all(Vec::is_empty));
            out.insert(trace.clone());
        }
        let mut next = Vec::new();
        for t in 0..threads {
            let (mut s, mut r) = (state.clone(), trace.clone());
            let newest = |r: &TracedState, cell: u32| *r.coherence[cell as usize].last().unwrap();
            if let Some(event) = m.advance(t, &mut s).unwrap() {
                match event {
                    MoveEffect::Read { cell, .. } => {
                        let own = r.buffer[t].iter().rev().find(|w| w.0 == cell).map(|w| w.1);
                        let from = own.unwrap_or(newest(&r, cell));
                        r.reads_from[t].push(from);
                    }
                    MoveEffect::Write { cell, .. } => {
                        r.stores[t] += 1;
                        let name = Some((t as u8, r.stores[t]));
                        if m.memory.has_buffers() {
                            r.buffer[t].push((cell, name))
                        } else {
                            r.coherence[cell as usize].push(name)
                        }
                    }
                    MoveEffect::Update { cell, wrote, .. } => {
                        let from = newest(&r, cell);
                        r.reads_from[t].push(from);
                        if wrote {
                            r.stores[t] += 1;
                            r.coherence[cell as usize].push(Some((t as u8, r.stores[t])));
                        }
                    }
                    _ => {}
                }
                next.push((s, r));
            }
            let mut ready = Vec::new();
            m.ready(t, &state, &mut |at| ready.push(at));
            for at in ready {
                let (mut s, mut r) = (state.clone(), trace.clone());
                m.flush(t, at, &mut s).unwrap();
                let (cell, name) = r.buffer[t].remove(at);
                r.coherence[cell as usize].push(name);
                next.push((s, r));
            }
        }
        todo.extend(next.into_iter().filter(|n| seen.insert(n.clone())));
    }
    out
}

/// Asserts that a program is robust with all of these fences, and with none of them left out.
fn assert_minimal(
    places: &[RepairPlace],
    program: &str,
    is_robust: impl Fn(&[RepairPlace]) -> bool,
) {
    assert!(is_robust(places), "{program}\n{places:?}");
    for left_out in 0..places.len() {
        let fewer = [&places[..left_out], &places[left_out + 1..]].concat();
        assert!(!is_robust(&fewer), "{program}\n{places:?}: can be spared: {left_out}");
    }
}

fn test(text: &str) -> Litmus {
    litmus::parse(SourceId::FIRST, text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// Generates a test of loads and stores with few fences, so that many are not robust.
fn dense(seed: u64, threads: usize, instructions: usize) -> String {
    let mut random = Random::new(seed);
    let cells = &["x", "y", "z"][..2 + random.below(2)];
    let columns: Vec<String> = (0..threads).map(|t| format!("P{t}")).collect();
    let mut text = format!("X86 dense{seed}\n{{}}\n{} ;\n", columns.join(" | "));
    for _ in 0..instructions {
        let line: Vec<String> = (0..threads)
            .map(|_| {
                let cell = *random.choose(cells);
                match random.below(16) {
                    0..7 => format!("MOV [{cell}],${}", 1 + random.below(2)),
                    7..14 => format!("MOV {},[{cell}]", random.choose(&["EAX", "EBX"])),
                    14 => "MFENCE".into(),
                    _ => format!("XCHG [{cell}],EAX"),
                }
            })
            .collect();
        text += &format!("{} ;\n", line.join(" | "));
    }
    text + "exists (0:EAX=0)\n"
}

/// Compares the monitor with the naive decision. Returns whether the program is robust.
fn compare(seed: u64, shape: Shape, fences: bool) -> bool {
    let text = litmus_tests::litmus(seed, shape);
    compare_text(&text, &format!("seed {seed}, {shape:?}\n{text}"), fences)
}

fn compare_dense(seed: u64, threads: usize, instructions: usize, fences: bool) -> bool {
    let text = dense(seed, threads, instructions);
    compare_text(
        &text,
        &format!("dense, seed {seed}, {threads} threads, {instructions} instructions\n{text}"),
        fences,
    )
}

fn compare_text(text: &str, place: &str, fences: bool) -> bool {
    let test = test(text);
    let (budget, program) = (Budget::default(), &test.program);
    let (sc, tso) = (traces(program, memory::SC), traces(program, memory::TSO));
    let truth = sc == tso;
    assert!(sc.is_subset(&tso), "{place}");
    let found = check(program, &budget).unwrap();
    assert_eq!(found.robust(), Some(truth), "{place}");
    let counted = count(program, Counting::default(), &budget).unwrap();
    assert_eq!(counted.stop, Stop::Complete, "{place}");
    assert_eq!(counted.interleavings, sc.len() as u64, "an interleaving for each trace: {place}");
    assert_eq!(counted.borderline == 0, truth, "{place}");
    let all =
        count(program, Counting { preemptions: Some(u32::MAX), ..Counting::default() }, &budget)
            .unwrap();
    assert_eq!(all.borderline == 0, truth, "without reduction: {place}");
    assert!(all.interleavings >= counted.interleavings, "{place}");
    // The axioms: robust programs have equal sets of outcomes. The converse fails, because
    // reads-from alone does not determine the order of stores.
    let by = |axioms| axiomatic::outcomes(program, axioms, &test.observables(), &budget).unwrap();
    let (strong, weak) = (by(axiomatic::Axioms::Sc), by(axiomatic::Axioms::Tso));
    assert!(!truth || strong.states == weak.states && strong.set == weak.set, "{place}");
    if let Some(b) = &found.borderline {
        let (machine, path) = replay(program, b).unwrap();
        assert_eq!(path.steps.last().map(|s| s.thread), Some(b.thread), "{place}");
        assert_eq!(machine.cell(b.cell, &path.steps.last().unwrap().state), b.newest, "{place}");
    }
    if fences {
        let set = smallest(program, &budget).unwrap();
        let places = set.places.unwrap_or_else(|| panic!("fences help always: {place}"));
        assert_eq!(places.is_empty(), truth, "{place}");
        assert_minimal(&places, place, |places| {
            let fenced = with_fences(program, places);
            traces(&fenced, memory::SC) == traces(&fenced, memory::TSO)
        });
    }
    truth
}

#[test]
fn the_monitor_is_right_on_random_programs() {
    (0..150).for_each(|seed| {
        _ = compare(seed, Shape { threads: 2, instructions: 4, rich: seed % 2 == 0 }, seed % 3 == 0)
    });
    (1000..1100).for_each(|seed| {
        _ = compare(seed, Shape { threads: 3, instructions: 3, rich: seed % 2 == 0 }, seed % 3 == 0)
    });
    let two = (0..150).filter(|&seed| compare_dense(seed, 2, 4, true)).count();
    let three = (0..50).filter(|&seed| compare_dense(seed, 3, 3, true)).count();
    assert!(
        (30..140).contains(&two) && (10..48).contains(&three),
        "robust: {two} of 150, {three} of 50"
    );
}

/// Long version:
/// ```text
/// PROGRAMS=5000 SEED=1 cargo test --release -p mu-check-safety --test robust \
///   monitor_at_length -- --ignored --nocapture
/// ```
#[test]
#[ignore = "minutes"]
fn the_monitor_at_length() {
    let of =
        |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (programs, first) = (of("PROGRAMS", 5000), of("SEED", 1 << 32));
    println!("seeds {first} to {}", first + programs - 1);
    use rayon::prelude::*;
    let robust = (first..first + programs)
        .into_par_iter()
        .filter(|&s| match s % 4 {
            0 => compare_dense(s, 2, 4, true),
            1 => compare_dense(s, 3, 3, true),
            k => compare(s, Shape { threads: k as usize, instructions: 4, rich: s % 8 < 4 }, true),
        })
        .count();
    println!(
        "{programs} programs, {robust} robust: the same by the monitor and by traces of the machines"
    );
}

macro_rules! spec {
    ($name:literal) => {
        nasm::parse(SourceId::FIRST, include_str!(concat!("../../../specs/x86/", $name, ".asm")), 2)
            .unwrap()
    };
}

/// The programs of the table of Burckhardt, Musuvathi (2008): none is robust, and fences make them
/// robust; `take queue` is then safe under TSO as well.
#[test]
fn published_programs() {
    let budget = Budget::default();
    for (name, source) in [
        ("dekker", spec!("dekker")),
        ("bakery", spec!("bakery")),
        ("take queue", spec!("take_queue")),
    ] {
        let safe = |program: Program, model| {
            let source = X86Program { program, ..source.clone() };
            reach(&source, model, None, 1, &budget, &Silent).unwrap().safety
        };
        let found = check(&source.program, &budget).unwrap();
        assert_eq!(found.robust(), Some(false), "{name}");
        let set = smallest(&source.program, &budget).unwrap();
        let places = set.places.unwrap();
        assert!(!places.is_empty(), "{name}");
        assert_minimal(&places, name, |places| {
            let found = check(&with_fences(&source.program, places), &budget).unwrap();
            found.robust().expect("the search is complete")
        });
        // The unsafe states of the others are labels, which fences move, so they are not checked
        // again.
        if name == "take queue" {
            assert_eq!(safe(source.program.clone(), memory::SC), Safety::Safe);
            assert_eq!(safe(source.program.clone(), memory::TSO), Safety::Unsafe);
            assert_ne!(safe(with_fences(&source.program, &places), memory::TSO), Safety::Unsafe);
        } else {
            assert_eq!(safe(source.program.clone(), memory::SC), Safety::Safe, "{name}");
            assert_eq!(safe(source.program.clone(), memory::TSO), Safety::Unsafe, "{name}");
        }
    }
}

/// A `lock` has the effect of a fence on instructions that support it, and is proposed there.
#[test]
fn locks_are_proposed() {
    let proposed = |text: &str| {
        let program = test(text).program;
        let set = smallest(&program, &Budget::default()).unwrap();
        let places = set.places.unwrap();
        assert_eq!(set.proof.unwrap().robust(), Some(true));
        assert_minimal(&places, text, |places| {
            let fenced = with_fences(&program, places);
            let robust = traces(&fenced, memory::SC) == traces(&fenced, memory::TSO);
            let found = check(&fenced, &Budget::default()).unwrap();
            assert_eq!(found.robust(), Some(robust), "{text}");
            robust
        });
        let repair = |p: &RepairPlace| {
            (p.repair.word(), text[p.before.start as usize..p.before.end as usize].to_string())
        };
        places.iter().map(repair).collect::<Vec<_>>()
    };
    let sb = |store: [&str; 2]| {
        format!(
            "X86 t\n{{}}\nP0 | P1 ;\n{} | {} ;\nMOV EBX,[y] | MOV EBX,[x] ;\nexists (true)\n",
            store[0], store[1]
        )
    };
    let repair = |word: &'static str, code: &str| (word, code.to_string());
    assert_eq!(
        proposed(&sb(["INC [x]", "INC [y]"])),
        [repair("lock", "INC [x]"), repair("lock", "INC [y]")]
    );
    assert_eq!(
        proposed(&sb(["XADD [x],ECX", "MOV [y],$1"])),
        [repair("lock", "XADD [x],ECX"), repair("mfence", "MOV EBX,[x]")]
    );
    assert_eq!(
        proposed(&sb(["CMPXCHG [x],ECX", "MOV [y],$1"])),
        [repair("lock", "CMPXCHG [x],ECX"), repair("mfence", "MOV EBX,[x]")]
    );
    assert_eq!(
        proposed(&sb(["SHL [x]", "MOV [y],$1"])),
        [repair("mfence", "MOV EBX,[y]"), repair("mfence", "MOV EBX,[x]")]
    );
    assert!(proposed(&sb(["LOCK INC [x]", "LOCK INC [y]"])).is_empty());
}

#[test]
fn programs_with_loops_have_few_states() {
    let budget = Budget::default();
    for text in [
        include_str!("../../../specs/x86/spinlock.asm"),
        include_str!("../../../specs/x86/mutex_xchg.asm"),
    ] {
        let found =
            check(&nasm::parse(SourceId::FIRST, text, 2).unwrap().program, &budget).unwrap();
        assert_eq!(found.robust(), Some(true));
        assert!(found.states < 10_000, "{}", found.states);
    }
}

/// The first example in figure 4 of Burckhardt, Musuvathi (2008), with its 10 interleavings, of
/// which 4 are borderline: store buffering with one additional, unrelated access. Its position
/// makes no difference. The accesses of the harness that start the second thread are one such.
#[test]
fn the_first_example_of_the_paper() {
    let column = |more: &str| {
        let text = format!(
            "X86 sb\n{{}}\nP0 | P1 ;\nMOV [x],$1 | {more} ;\nMOV EAX,[y] | MOV [y],$1 ;\n | MOV EBX,[x] ;\nexists (true)\n"
        );
        test(&text).program
    };
    let (budget, bound) =
        (Budget::default(), Counting { preemptions: Some(3), ..Counting::default() });
    for more in ["MOV [z],$1", "MOV ECX,[z]"] {
        let counted = count(&column(more), bound, &budget).unwrap();
        assert_eq!(
            (counted.interleavings, counted.borderline, &counted.stop),
            (10, 4, &Stop::Complete),
            "{more}"
        );
    }
    let plain = test("X86 sb\n{}\nP0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMOV EAX,[y] | MOV EBX,[x] ;\nexists (true)\n").program;
    let counts = |counting: Counting| {
        count(&plain, counting, &budget).map(|c| (c.interleavings, c.borderline)).unwrap()
    };
    assert_eq!(counts(bound), (6, 2));
    // The published bound is unlimited.
    let any = Counting { preemptions: Some(u32::MAX), ..bound };
    assert_eq!((counts(any), counts(Counting { starts: true, ..any })), ((6, 2), (10, 4)));
    // The others start with the other thread.
    assert_eq!(counts(Counting { first: Some(0), ..bound }), (3, 1));
    assert_eq!(
        counts(Counting { preemptions: Some(0), first: Some(1), ..Counting::default() }).0,
        1
    );
}

/// A failed `cmpxchg` without `lock` loads and does not store, so it is one access.
#[test]
fn a_failed_cmpxchg_is_one_access() {
    let interleavings = |value: u32, preemptions: Option<u32>| {
        let text = format!(
            "X86 c\n{{ x={value}; 0:EAX=0; }}\nP0 | P1 ;\nCMPXCHG [x],ECX | MOV [y],$1 ;\nexists (true)\n"
        );
        let counting = Counting { preemptions, ..Counting::default() };
        count(&test(&text).program, counting, &Budget::default()).unwrap().interleavings
    };
    let of_value = |value, bounds: [Option<u32>; 3]| bounds.map(|b| interleavings(value, b));
    assert_eq!(of_value(1, [Some(0), Some(1), Some(9)]), [2, 2, 2]);
    assert_eq!(of_value(0, [Some(0), Some(1), Some(9)]), [2, 3, 3]);
    assert_eq!([interleavings(1, None), interleavings(0, None)], [1, 1]);
}

/// One search gives the answers of two: robustness as without assertions, and safety as under
/// sequential consistency. A program that is robust and safe in this sense is safe under total
/// store order.
#[test]
fn assertions_with_the_monitor() {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/x86")).unwrap();
    let (budget, mut safe, mut unsafe_there) = (Budget::default(), 0, 0);
    for file in
        files.map(|f| f.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "asm"))
    {
        let text = std::fs::read_to_string(&file).unwrap();
        let program = nasm::parse(SourceId::FIRST, &text, 2).unwrap();
        let place = file.display();
        if program.unsafe_states.is_empty() {
            continue;
        }
        let (both, alone) = (
            check_with_assertions(&program, &budget).unwrap(),
            check(&program.program, &budget).unwrap(),
        );
        assert_eq!(both.robust(), alone.robust(), "{place}");
        let under = |model| reach(&program, model, None, 1, &budget, &Silent).unwrap().safety;
        assert_eq!(both.unsafe_state.is_some(), under(memory::SC) == Safety::Unsafe, "{place}");
        if let Some(path) = &both.unsafe_state {
            let (_, path) = replay_unsafe(&program, path).unwrap();
            assert!(!path.steps.is_empty(), "{place}");
        }
        if both.robust() == Some(true) {
            assert_eq!(
                both.unsafe_state.is_some(),
                under(memory::TSO) == Safety::Unsafe,
                "robust: {place}"
            );
        }
        safe += u32::from(both.unsafe_state.is_none());
        unsafe_there += u32::from(both.unsafe_state.is_some());
    }
    assert!(safe > 3 && unsafe_there > 2, "{safe} safe, {unsafe_there} unsafe");
}
