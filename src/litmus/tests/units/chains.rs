//! Tests of chains of read-modify-writes: their values follow program order, and the cost is not
//! exponential in their number. Runs that stop early answer *unknown*.

use super::{answer, default_judge, judge, outcomes};
use mu_base::{Budget, Limits};
use mu_litmus::code::Arch;
use mu_litmus::file::{ParserOptions, parse};
use mu_litmus::paths::PathBounds;
use mu_litmus::report::run;
use mu_program::outcome::Verdict;
use std::sync::atomic::Ordering;

/// Builds a test for x86 with a thread for each column, which repeats its instruction.
fn x86(columns: &[&str], times: usize, condition: &str) -> String {
    let initial: String = (0..columns.len()).map(|t| format!("uint64_t {t}:rax=1; ")).collect();
    let heads: Vec<String> = (0..columns.len()).map(|t| format!("P{t}")).collect();
    let rows = format!(" {} ;\n", columns.join(" | ")).repeat(times);
    format!("X86_64 t\n{{ uint64_t x=0; {initial}}}\n {} ;\n{rows}{condition}\n", heads.join(" | "))
}

#[test]
fn a_chain_on_one_thread_has_one_outcome() {
    // Each step adds the register to memory and loads the old value: the Fibonacci numbers.
    let (mut register, mut memory) = (1u64, 0u64);
    for _ in 0..40 {
        (register, memory) = (memory, register + memory);
    }
    for model in ["sc", "tso", "pso"] {
        let found = outcomes(&answer(
            &x86(&["xaddq %rax,(x)"], 40, "locations [x; 0:rax;]\nexists (true)"),
            &judge(Arch::X86, model),
        ));
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [format!("0:rax={register}; [x]={memory};")],
            "{model}"
        );
    }
    let riscv = format!(
        "RISCV t\n{{ 0:x6=x; 0:x5=3; }}\n P0 ;\n{}forall (x=90)\n",
        " amoadd.w x8,x5,(x6) ;\n".repeat(30)
    );
    let arm = format!(
        "AArch64 t\n{{ 0:X1=x; 0:W2=3; }}\n P0 ;\n{}forall (x=90)\n",
        " LDADD W2,W3,[X1] ;\n".repeat(30)
    );
    let c = format!(
        "C t\n{{ }}\nP0 (atomic_int* x) {{\n{}}}\nforall (x=90)\n",
        "atomic_fetch_add(x, 3);\n".repeat(30)
    );
    for (arch, text) in [(Arch::RiscV, riscv), (Arch::AArch64, arm), (Arch::C, c)] {
        let report = answer(&text, &default_judge(arch));
        assert_eq!(
            (report.answer.verdict, report.answer.outcomes.len()),
            (Verdict::Ok, 1),
            "{text}"
        );
    }
}

#[test]
fn a_chain_is_seen_by_another_thread_in_order() {
    let text = "X86_64 t\n{ uint64_t x=0; }\n P0 | P1 ;\n incq (x) | movq (x),%rax ;\n incq (x) | movq (x),%rbx ;\n incq (x) | ;\n incq (x) | ;\n incq (x) | ;\n\
                exists (1:rax=4 /\\ 1:rbx=3)\n";
    let report = answer(text, &default_judge(Arch::X86));
    assert_eq!((report.answer.verdict, report.answer.outcomes.len()), (Verdict::No, 21));
}

#[test]
fn a_run_that_stops_says_neither_never_nor_always() {
    let text = x86(&["xaddq %rax,(x)", "lock xaddq %rax,(x)"], 5, "exists (x=3)");
    let judge = default_judge(Arch::X86);
    let budget = Budget::default();
    budget.interrupt_flag().store(true, Ordering::Relaxed);
    let test = parse(
        mu_base::SourceId::FIRST,
        &text,
        ParserOptions { pairs: judge.pairs, ..Default::default() },
    )
    .unwrap();
    let report = run(test, &judge, PathBounds { loops: 2 }, &budget).unwrap();
    assert_eq!((report.answer.verdict, report.answer.observation()), (Verdict::Unknown, "Unknown"));
}

/// A limit may hide the execution with a data race, which makes a program undefined, so that the
/// answer to its condition is open. The race is in the paths that are tried last.
#[test]
fn a_limit_that_may_hide_a_race_leaves_the_answer_open() {
    let order = "memory_order_relaxed";
    let stores: String =
        (1..4).map(|n| format!("atomic_store_explicit(a, {n}, {order}); ")).collect();
    let loads: String =
        (1..4).map(|n| format!("int r{n} = atomic_load_explicit(a, {order}); ")).collect();
    let text = |condition: &str| {
        format!(
            "C t\n{{}}\nP0 (atomic_int* a, int* x) {{ int r0 = atomic_load_explicit(a, {order}); if (r0 == 0) {{ *x = 1; }} }}\n\
             P1 (int* x) {{ *x = 2; }}\nP2 (atomic_int* a) {{ {stores}}}\nP3 (atomic_int* a) {{ {loads}}}\nP4 (atomic_int* a) {{ {loads}}}\n{condition}\n"
        )
    };
    let judge = default_judge(Arch::C);
    for condition in ["~exists (0:r0=7)", "exists (0:r0=3)", "exists (0:r0=7)"] {
        let run = |most| {
            let budget = Budget::new(Limits { max_states: most, ..Limits::default() });
            let test = super::read(&text(condition), &judge);
            run(test, &judge, PathBounds { loops: 2 }, &budget).unwrap().answer
        };
        assert_eq!(run(None).word(), "Undef", "{condition}");
        let limited = run(Some(1));
        assert!(!limited.complete && matches!(limited.word(), "Unknown" | "Undef"), "{condition}");
    }
}

/// Reads that justify each other through branches are a candidate that only an axiom forbids.
#[test]
fn reads_may_justify_each_other_through_branches() {
    let weak = "\"weak\"\nacyclic po-loc | rf | co | fr as coherence\n";
    let c = "C t\n{}\nP0 (atomic_int* x, atomic_int* y) { int r = atomic_load_explicit(x, memory_order_relaxed); if (r == 1) atomic_store_explicit(y, 1, memory_order_relaxed); }\n\
             P1 (atomic_int* x, atomic_int* y) { int s = atomic_load_explicit(y, memory_order_relaxed); if (s == 1) atomic_store_explicit(x, 1, memory_order_relaxed); }\n\
             exists (0:r=1 /\\ 1:s=1)\n";
    let arm = "AArch64 t\n{ 0:X1=x; 0:X3=y; 1:X1=y; 1:X3=x; }\n P0 | P1 ;\n LDR W0,[X1] | LDR W0,[X1] ;\n CBZ W0,L | CBZ W0,L ;\n MOV W2,#1 | MOV W2,#1 ;\n\
               STR W2,[X3] | STR W2,[X3] ;\n L: | L: ;\nexists (0:X0=1 /\\ 1:X0=1)\n";
    let x86 = "X86 t\n{}\n P0 | P1 ;\n MOV EAX,[x] | MOV EAX,[y] ;\n CMP EAX,$1 | CMP EAX,$1 ;\n JNE L | JNE L ;\n MOV [y],$1 | MOV [x],$1 ;\n L: | L: ;\n\
               exists (0:EAX=1 /\\ 1:EAX=1)\n";
    for (arch, text) in [(Arch::C, c), (Arch::AArch64, arm), (Arch::X86, x86)] {
        let report = answer(text, &super::compile(arch, weak));
        assert_eq!(
            (report.answer.verdict, report.answer.observation()),
            (Verdict::Ok, "Sometimes"),
            "{text}"
        );
    }
    for (arch, text) in [(Arch::AArch64, arm), (Arch::X86, x86)] {
        assert_eq!(answer(text, &default_judge(arch)).answer.observation(), "Never", "{text}");
    }
}
