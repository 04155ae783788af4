//! Tests of the literature with their verdicts, and rejected inputs.

use super::{answer, compile, default_judge, judge, outcomes, parse_error};
use mu_base::{Budget, SourceId};
use mu_litmus::code::Arch;
use mu_litmus::report::find_deciding_execution;
use mu_litmus::{file, paths};
use mu_program::outcome::Verdict;

/// True if the condition of a test holds under the model of its architecture.
fn holds(arch: Arch, text: &str) -> bool {
    match answer(text, &default_judge(arch)).answer.verdict {
        Verdict::Ok => true,
        Verdict::No => false,
        Verdict::Unknown => panic!("unknown: {text}"),
    }
}

/// True if a condition is reachable for two threads, with instructions between slashes.
fn riscv_allows(left: &str, right: &str, condition: &str) -> bool {
    let columns: Vec<Vec<&str>> = [left, right].iter().map(|c| c.split(" / ").collect()).collect();
    let rows = columns[0].len().max(columns[1].len());
    let mut text =
        "RISCV t\n{ 0:x6=x; 0:x7=y; 1:x6=x; 1:x7=y; 0:x5=1; 1:x5=1; }\nP0 | P1 ;\n".to_string();
    for r in 0..rows {
        text += &format!(
            "{} | {} ;\n",
            columns[0].get(r).unwrap_or(&""),
            columns[1].get(r).unwrap_or(&"")
        );
    }
    holds(Arch::RiscV, &format!("{text}exists ({condition})\n"))
}

#[test]
fn message_passing_on_riscv() {
    let seen = "1:x8=1 /\\ 1:x9=0";
    let write = "sw x5,0(x6) / sw x5,0(x7)";
    let read = "lw x8,0(x7) / lw x9,0(x6)";
    assert!(riscv_allows(write, read, seen));
    let fenced = "sw x5,0(x6) / fence w,w / sw x5,0(x7)";
    assert!(riscv_allows(fenced, read, seen));
    assert!(!riscv_allows(fenced, "lw x8,0(x7) / fence r,r / lw x9,0(x6)", seen));
    assert!(!riscv_allows(
        fenced,
        "lw x8,0(x7) / xor x10,x8,x8 / add x11,x6,x10 / lw x9,0(x11)",
        seen
    ));
    assert!(riscv_allows(fenced, "lw x8,0(x7) / bne x8,x0,L / L: / lw x9,0(x6)", seen));
    assert!(!riscv_allows("sw x5,0(x6) / sw.rl x5,0(x7)", "lw.aq x8,0(x7) / lw x9,0(x6)", seen));
    assert!(!riscv_allows(
        "sw x5,0(x6) / fence.tso / sw x5,0(x7)",
        "lw x8,0(x7) / fence.tso / lw x9,0(x6)",
        seen
    ));
}

#[test]
fn store_buffering_and_load_buffering_on_riscv() {
    let seen = "0:x8=0 /\\ 1:x8=0";
    let fence = "fence rw,rw";
    assert!(riscv_allows("sw x5,0(x6) / lw x8,0(x7)", "sw x5,0(x7) / lw x8,0(x6)", seen));
    assert!(riscv_allows(
        "sw x5,0(x6) / fence.tso / lw x8,0(x7)",
        "sw x5,0(x7) / fence.tso / lw x8,0(x6)",
        seen
    ));
    assert!(!riscv_allows(
        &format!("sw x5,0(x6) / {fence} / lw x8,0(x7)"),
        &format!("sw x5,0(x7) / {fence} / lw x8,0(x6)"),
        seen
    ));
    let both = "0:x8=1 /\\ 1:x8=1";
    assert!(riscv_allows("lw x8,0(x6) / sw x5,0(x7)", "lw x8,0(x7) / sw x5,0(x6)", both));
    let data = "xor x9,x8,x8 / ori x9,x9,1";
    assert!(!riscv_allows(
        &format!("lw x8,0(x6) / {data} / sw x9,0(x7)"),
        &format!("lw x8,0(x7) / {data} / sw x9,0(x6)"),
        both
    ));
}

#[test]
fn atomics_on_riscv() {
    // Two increments do not lose an update.
    assert!(!riscv_allows("amoadd.w x8,x5,(x6)", "amoadd.w x8,x5,(x6)", "x=1"));
    // Nor do a load-reserve and a store-conditional that both succeed.
    let pair = "lr.w x8,0(x6) / add x9,x8,x5 / sc.w x10,x9,0(x6)";
    assert!(!riscv_allows(pair, pair, "0:x10=0 /\\ 1:x10=0 /\\ x=1"));
    assert!(riscv_allows(pair, pair, "0:x10=0 /\\ 1:x10=0 /\\ x=2"));
    assert!(riscv_allows(pair, pair, "0:x10=1 /\\ 1:x10=1 /\\ x=0"));
}

#[test]
fn loops_are_unrolled_to_a_reported_bound() {
    let text = "RISCV spin\n{ 0:x6=x; 1:x6=x; 0:x5=1; }\nP0 | P1 ;\nsw x5,0(x6) | L: lw x7,0(x6) ;\n | beqz x7,L ;\nforall (1:x7=1)\n";
    let report = answer(text, &default_judge(Arch::RiscV));
    assert_eq!((report.unrolled, report.answer.verdict), (Some(2), Verdict::Unknown));
    assert!(report.dropped_paths().concat().contains("Loops unrolled 2"));
    let found = answer(&text.replace("forall", "exists"), &default_judge(Arch::RiscV));
    assert_eq!(found.answer.verdict, Verdict::Ok);
}

#[test]
fn ordering_on_aarch64() {
    let columns = |rows: &[(&str, &str)], condition: &str| {
        let mut text =
            "AArch64 t\n{ 0:X1=x; 0:X3=y; 1:X1=x; 1:X3=y; }\nP0 | P1 ;\nMOV W0,#1 | MOV W0,#1 ;\n"
                .to_string();
        rows.iter().for_each(|(l, r)| text += &format!("{l} | {r} ;\n"));
        holds(Arch::AArch64, &format!("{text}exists ({condition})\n"))
    };
    let seen = "1:X5=1 /\\ 1:X6=0";
    assert!(columns(&[("STR W0,[X1]", "LDR W5,[X3]"), ("STR W0,[X3]", "LDR W6,[X1]")], seen));
    assert!(!columns(&[("STR W0,[X1]", "LDAR W5,[X3]"), ("STLR W0,[X3]", "LDR W6,[X1]")], seen));
    assert!(!columns(
        &[("STR W0,[X1]", "LDR W5,[X3]"), ("DMB ST", "DMB LD"), ("STR W0,[X3]", "LDR W6,[X1]")],
        seen
    ));
    assert!(!columns(
        &[
            ("STR W0,[X1]", "LDR W5,[X3]"),
            ("DMB SY", "EOR W7,W5,W5"),
            ("STR W0,[X3]", "LDR W6,[X1,W7,SXTW]")
        ],
        seen
    ));
    assert!(columns(
        &[
            ("STR W0,[X1]", "LDR W5,[X3]"),
            ("DMB SY", "CBNZ W5,L"),
            ("STR W0,[X3]", "L: LDR W6,[X1]")
        ],
        seen
    ));
    assert!(!columns(
        &[
            ("STR W0,[X1]", "LDR W5,[X3]"),
            ("DMB SY", "CBNZ W5,L"),
            ("STR W0,[X3]", "L: ISB"),
            ("", "LDR W6,[X1]")
        ],
        seen
    ));
    // Acquire and release are sequentially consistent, the weaker acquire is not.
    let buffered = "0:X5=0 /\\ 1:X5=0";
    assert!(!columns(
        &[("STLR W0,[X1]", "STLR W0,[X3]"), ("LDAR W5,[X3]", "LDAR W5,[X1]")],
        buffered
    ));
    assert!(columns(
        &[("STLR W0,[X1]", "STLR W0,[X3]"), ("LDAPR W5,[X3]", "LDAPR W5,[X1]")],
        buffered
    ));
    // After an acquire-release update, later loads are ordered after its write; after a release
    // update they are not.
    assert!(!columns(
        &[("SWPAL W0,W9,[X1]", "SWPAL W0,W9,[X3]"), ("LDR W5,[X3]", "LDR W5,[X1]")],
        buffered
    ));
    assert!(columns(
        &[("SWPL W0,W9,[X1]", "SWPL W0,W9,[X3]"), ("LDR W5,[X3]", "LDR W5,[X1]")],
        buffered
    ));
}

#[test]
fn accesses_of_several_sizes_are_cut_into_cells() {
    let text = "AArch64 m\n{ uint64_t x; uint64_t 1:X2; uint64_t 1:X3; 0:X1=x; 1:X1=x; 0:X0=0x0101010101010101; }\nP0 | P1 ;\nSTR X0,[X1] | LDR W2,[X1,#4] ;\n | LDR X3,[X1] ;\nlocations [x; 1:X2; 1:X3;]\n";
    let report = answer(text, &default_judge(Arch::AArch64));
    let value = 0x0101_0101_0101_0101u64;
    assert!(
        outcomes(&report).contains(&format!("1:X2={}; 1:X3={value}; [x]={value};", 0x0101_0101)),
        "{}",
        report.answer.text()
    );
    // A store is visible as a whole, and a wider load does not lose its upper half.
    let wide: Vec<String> = outcomes(&report)
        .iter()
        .filter_map(|o| Some(o.split("1:X3=").nth(1)?.split(';').next()?.to_string()))
        .collect();
    assert_eq!(
        wide,
        ["0".to_string(), value.to_string(), value.to_string()],
        "{}",
        report.answer.text()
    );
}

#[test]
fn message_passing_and_compare_exchange_in_c() {
    let mp = |store: &str, load: &str| {
        format!(
            "C mp\n{{}}\nP0 (int* x, atomic_int* y) {{ *x = 1; atomic_store_explicit(y, 1, {store}); }}\n\
             P1 (int* x, atomic_int* y) {{ int r0 = atomic_load_explicit(y, {load}); int r1 = 5; if (r0) {{ r1 = *x; }} }}\nexists (1:r0=1 /\\ 1:r1=0)\n"
        )
    };
    let rc11 = default_judge(Arch::C);
    let right = answer(&mp("memory_order_release", "memory_order_acquire"), &rc11);
    assert_eq!((right.answer.verdict, right.answer.flags.as_slice()), (Verdict::No, [].as_slice()));
    let racy = answer(&mp("memory_order_relaxed", "memory_order_acquire"), &rc11);
    assert_eq!(
        (racy.answer.verdict, racy.answer.flags.as_slice()),
        (Verdict::Ok, ["*undef*".to_string()].as_slice())
    );
    // A load that consumes is at least relaxed: an acquire fence after it synchronises.
    let fenced = |load: &str| {
        let text = format!(
            "C mp\n{{}}\nP0 (atomic_int* x, atomic_int* y) {{ atomic_store_explicit(x, 1, memory_order_relaxed); \
             atomic_store_explicit(y, 1, memory_order_release); }}\nP1 (atomic_int* x, atomic_int* y) {{ int r0 = {load}; \
             atomic_thread_fence(memory_order_acquire); int r1 = atomic_load_explicit(x, memory_order_relaxed); }}\n\
             exists (1:r0=1 /\\ 1:r1=0)\n"
        );
        answer(&text, &rc11).answer.verdict
    };
    for order in ["relaxed", "consume", "acquire"] {
        let read = format!("y, memory_order_{order}");
        assert_eq!(fenced(&format!("atomic_load_explicit({read})")), Verdict::No, "{order}");
        let update = format!("atomic_fetch_add_explicit({})", read.replace("y,", "y, 0,"));
        assert_eq!(fenced(&update), Verdict::No, "{order}");
    }
    let cas = "C cas\n{ x=0; e=0; }\nP0 (atomic_int* x, int* e) { int r = atomic_compare_exchange_strong_explicit(x, e, 2, memory_order_relaxed, memory_order_relaxed); }\n\
               P1 (atomic_int* x) { atomic_store_explicit(x, 7, memory_order_relaxed); }\nlocations [0:r; x; e;]\n";
    let list = outcomes(&answer(cas, &rc11));
    let expected = ["0:r=0; [e]=7; [x]=7;", "0:r=1; [e]=0; [x]=7;"];
    assert_eq!(list.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let lazy = "C lazy\n{ x=1; }\nP0 (int* x, int* y) { int r = (*x == 1) || (*y = 3, 0); }\nexists (0:r=1)\n";
    assert!(parse_error(lazy).message.contains("expected"));
    let fine = "C lazy\n{ x=1; y=4; }\nP0 (int* x, int* y) { int r = *x && *y == 4 && !(*y < 2); int s = -1; }\nexists (0:r=1 /\\ 0:s=-1)\n";
    assert_eq!(answer(fine, &rc11).answer.verdict, Verdict::Ok);
}

/// The operands of an operator are evaluated in any order (C11, 6.5); those of `&&`, and
/// statements, in that of the text.
#[test]
fn operands_of_c_have_no_order() {
    let text = |body: &str| {
        format!(
            "C t\n{{}}\nP0 (atomic_int* x, atomic_int* y) {{ atomic_store_explicit(x, 1, memory_order_relaxed); atomic_store_explicit(y, 1, memory_order_release); }}\n\
             P1 (atomic_int* x, atomic_int* y, atomic_int* z) {{ {body} }}\nexists (1:r=2)\n"
        )
    };
    let (x, y) = (
        "atomic_load_explicit(x, memory_order_relaxed)",
        "atomic_load_explicit(y, memory_order_acquire)",
    );
    let z = x.replace("(x", "(z");
    for (body, verdict) in [
        (format!("int r = {y} * 2 + {x};"), Verdict::Ok),
        (format!("int r = {z} + ({y} * 2 + {x});"), Verdict::Ok),
        (format!("int r = {y} * 2; r = r + {x};"), Verdict::No),
        (format!("int r = ({y} && {x} == 0) * 2;"), Verdict::No),
        (format!("int r = {y} ? {x} == 0 ? 2 : 1 : 0;"), Verdict::No),
    ] {
        let report = answer(&text(&body), &default_judge(Arch::C));
        assert_eq!(report.answer.verdict, verdict, "{body}");
    }
    let add = "atomic_fetch_add_explicit(x, 1, memory_order_relaxed)";
    for sum in [format!("{x} + {add}"), format!("{add} + {x}")] {
        let text =
            format!("C t\n{{}}\nP0 (atomic_int* x) {{ int r = {sum}; }}\nlocations [0:r;]\n");
        assert_eq!(outcomes(&answer(&text, &default_judge(Arch::C))).len(), 2, "{sum}");
    }
}

/// A weak compare-and-exchange may fail spuriously; each outcome has as many witnesses as in herd.
#[test]
fn loops_choices_and_weak_exchanges_of_c() {
    let rc11 = default_judge(Arch::C);
    let cas = |strength: &str| {
        format!(
            "C cas\n{{ x=0; e=0; }}\nP0 (atomic_int* x, int* e) {{ int r = atomic_compare_exchange_{strength}_explicit(x, e, 1, memory_order_acq_rel, \
             memory_order_relaxed); }}\nP1 (atomic_int* x) {{ atomic_store_explicit(x, 2, memory_order_relaxed); }}\nlocations [e;]\nexists (0:r=0)\n"
        )
    };
    let list = |text: &str| outcomes(&answer(text, &rc11)).into_iter().collect::<Vec<_>>();
    assert_eq!(list(&cas("strong")), ["0:r=0; [e]=2;", "0:r=1; [e]=0;"]);
    assert_eq!(list(&cas("weak")), ["0:r=0; [e]=0;", "0:r=0; [e]=2;", "0:r=1; [e]=0;"]);
    let positive = |text: &str| answer(text, &rc11).answer.positive;
    assert_eq!((positive(&cas("strong")), positive(&cas("weak"))), (1, 2));
    // The same with an expected value in a local variable.
    let local = |strength: &str| {
        cas(strength)
            .replace("e=0; }", "}")
            .replace(", int* e) {", ") { int e = 0;")
            .replace("x, e,", "x, &e,")
            .replace("[e;]", "[0:e;]")
    };
    assert_eq!(list(&local("strong")), ["0:e=0; 0:r=1;", "0:e=2; 0:r=0;"]);
    assert_eq!(list(&local("weak")), ["0:e=0; 0:r=0;", "0:e=0; 0:r=1;", "0:e=2; 0:r=0;"]);
    // Retried until it succeeds.
    let retried = "C retried\n{}\nP0 (atomic_int* x, int* e) { int n = 0; while (!atomic_compare_exchange_weak(x, e, 1)) { n++; } }\nexists (x=1 /\\ 0:n=2)\n";
    let report = answer(retried, &rc11);
    assert_eq!((report.answer.verdict, outcomes(&report).len()), (Verdict::Ok, 3));
    // One backward jump for each iteration, with and without parts. A variable that a loop declares
    // ends with the loop.
    for (head, last) in
        [("int i = 0; i < 2; i++", 0), ("i = 0; i != 2; i += 1", 2), ("; i < 2; i++", 2)]
    {
        let text = format!(
            "C loop\n{{}}\nP0 (atomic_int* x) {{ int i = 0; int s = 0; for ({head}) {{ s += atomic_fetch_add(x, 2); }} }}\n\
             forall (0:s=2 /\\ 0:i={last} /\\ x=4)\n"
        );
        let report = answer(&text, &rc11);
        assert_eq!(report.answer.verdict, Verdict::Ok, "{text}");
    }
    let bodiless = "C loop\n{}\nP0 (int* x) { int i; for (i = 0; i < 2; i++); for (; i < 4; ) i++; }\nforall (0:i=4)\n";
    assert_eq!(answer(bodiless, &rc11).answer.verdict, Verdict::Unknown);
    let once = "C loop\n{}\nP0 (int* x) { int i; for (i = 0; i < 1; i++); for (; i < 2; ) i++; }\nforall (0:i=2)\n";
    assert_eq!(answer(once, &rc11).answer.verdict, Verdict::Ok);
    // Only the chosen side is evaluated, and both sides have one type.
    let choice = "C choice\n{ x=5; y=7; }\nP0 (int* x, int* y) { int a = *x > 4 ? *x < 5 ? 1 : 2 : 3; int b = 0 ? 1 : 1 ? 3 : 4; int c = 1 ? -1 : 0; \
                  int* p = *x == 5 ? x : y; int d = *p + (0 ? 1 : 2) * 10; }\nforall (0:a=2 /\\ 0:b=3 /\\ 0:c=-1 /\\ 0:d=25 /\\ y=7)\n";
    assert_eq!(
        answer(choice, &rc11).answer.verdict,
        Verdict::Ok,
        "{:?}",
        outcomes(&answer(choice, &rc11))
    );
    let loads = "C loads\n{}\nP0 (atomic_int* x, atomic_int* y) { int r = atomic_load(x) ? atomic_load(y) : 4; }\nP1 (atomic_int* x, atomic_int* y) { atomic_store(y, 1); atomic_store(x, 1); }\nexists (0:r=0)\n";
    assert_eq!(list(loads), ["0:r=1;", "0:r=4;"]);
}

#[test]
fn updates_are_pairs_where_a_model_needs_them() {
    assert!(!default_judge(Arch::C).pairs);
    let plain = compile(
        Arch::C,
        "\"plain\"\nlet fr = rf^-1;co\nacyclic po-loc | rf | co | fr as coherence\nempty rmw & (fre; coe) as atomic\n",
    );
    assert!(plain.pairs && plain.coherent);
    let blind = compile(Arch::C, "\"blind\"\nempty rmw & ((fr & ext); (co & ext)) as atomic\n");
    assert!(blind.pairs && !blind.coherent);
}

#[test]
fn what_decides_a_test_is_found_and_explained() {
    let text = "X86 SB\n{}\nP0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
    for (model, allowed) in [("tso", true), ("sc", false)] {
        let judge = judge(Arch::X86, model);
        let test = file::parse(SourceId::FIRST, text, file::ParserOptions::default()).unwrap();
        let (found, _) = find_deciding_execution(
            test,
            &judge,
            paths::PathBounds { loops: 2 },
            &Budget::default(),
        )
        .unwrap();
        let drawn = found.unwrap();
        assert_eq!(drawn.allowed, allowed);
        assert_eq!(drawn.outcome, "0:EAX=0; 1:EAX=0;");
        let cycle = drawn.failure.map(|f| f.events.len());
        assert_eq!(cycle, (!allowed).then_some(4));
    }
}

#[test]
fn rejections_have_places() {
    let cases = [
        ("", "litmus test is empty", ""),
        ("MIPS t\n{}\nP0 ;\nexists (x=1)", "the architecture `MIPS` is not supported", "MIPS"),
        ("RISCV t\n{}\nP0 ;\n lw x5,0(q9) ;\nexists (x=1)", "`q9` is no register", "q9"),
        (
            "RISCV t\n{}\nP0 ;\n frob x5 ;\nexists (x=1)",
            "the RISCV instruction `frob` is not supported",
            "frob",
        ),
        ("RISCV t\n{}\nP0 ;\n beqz x5,L ;\nexists (x=1)", "there is no label `L`", "L"),
        ("RISCV t\n{}\nP0 ;\n nop | nop ;\nexists (x=1)", "more columns than the 1 threads", "nop"),
        ("RISCV t\n{}\nP0 ;\n nop ;\nexists (1:x5=1)", "there is no thread 1", "x5"),
        (
            "AArch64 t\n{}\nP0 ;\n DMB QQ ;\nexists (x=1)",
            "the barrier `DMB QQ` is not supported",
            "QQ",
        ),
        (
            "C t\n{}\nP0 (int* x) { switch (1) {} }\nexists (x=1)",
            "the statement `switch` is not supported",
            "switch",
        ),
        ("C t\n{}\nP0 (int* x) { for (;; { } }\nexists (x=1)", "expected `)`", ""),
        (
            "C t\n{}\nP0 (int* x) { for (int i = 0; i < 1; i++ i) { } }\nexists (x=1)",
            "expected `)`",
            "i",
        ),
        (
            "C t\n{}\nP0 (int* x) { int e; int* p = &e; }\nexists (x=1)",
            "the address of a variable (`&`) is not supported here",
            "&",
        ),
        (
            "C t\n{}\nP0 (atomic_int* x) { char e; atomic_compare_exchange_strong(x, &e, 1); }\nexists (x=1)",
            "`e` has not the type of the exchanged value",
            "e",
        ),
        (
            "C t\n{}\nP0 (int* x) { }\nP2 (int* x) { }\nexists (x=1)",
            "the function `P2` is not `P1`",
            "P2",
        ),
        ("C t\n{}\nP0 (int* x) { int i = 1 ? 2; }\nexists (x=1)", "expected `:`", ";"),
        ("C t\n{}\nP0 (int* x) { *q = 1; }\nexists (x=1)", "`q` is no parameter", "q"),
        (
            "X86 t\n{}\nP0 ;\n MOV [x],[y] ;\nexists (x=1)",
            "both operands of `MOV` are in memory",
            "[x],[y]",
        ),
        ("X86 t\n{}\nP0 ;\n FLY EAX ;\nexists (x=1)", "unknown instruction `FLY`", "FLY"),
        (
            "X86_64 t\n{}\nP0 ;\n movb $256,%al ;\nexists (x=1)",
            "256 does not fit in the 8 bits",
            "$256",
        ),
        ("RISCV t\n{ float x; }\nP0 ;\nexists (x=1)", "the type `float` is not supported", "float"),
        (
            "RISCV t\n{ 0:x5=1; 0:t0=1; }\nP0 ;\n nop ;\nexists (x=1)",
            "the register `0:t0` is initialised twice",
            "t0",
        ),
        (
            "AArch64 t\n{ 0:X1=1; 0:W1=1; }\nP0 ;\n NOP ;\nexists (x=1)",
            "the register `0:W1` is initialised twice",
            "W1",
        ),
        (
            "X86 t\n{ 0:EAX=x; 0:EAX=3; }\nP0 ;\n NOP ;\nexists (x=1)",
            "the register `0:EAX` is initialised twice",
            "EAX",
        ),
        (
            "X86_64 t\n{ 0:al=1; 0:ah=1; 0:rax=3; }\nP0 ;\n nop ;\nexists (x=1)",
            "the register `0:rax` is initialised twice",
            "rax",
        ),
        (
            "RISCV t\n{ x=1; y; x=1; }\nP0 ;\n nop ;\nexists (x=1)",
            "the variable `x` is initialised twice",
            "x",
        ),
        (
            "RISCV t\n{ x=1; int x; }\nP0 ;\n nop ;\nexists (x=1)",
            "the variable `x` is initialised twice",
            "x",
        ),
        (
            "C t\n{ int x; int y; int64_t x; }\nP0 (int* x) { }\nexists (x=1)",
            "the variable `x` is initialised twice",
            "x",
        ),
        (
            "C t\n{ int t[2] = {1, 2}; t[1] = 3; }\nP0 (int* x) { }\nexists (x=1)",
            "the variable `t` is initialised twice",
            "t",
        ),
        (
            "X86 t\n{ x=1; x=1; }\nP0 ;\n NOP ;\nexists (x=1)",
            "the variable `x` is initialised twice",
            "x",
        ),
        ("RISCV t\n{ (* }\n", "this comment is not closed", "(*"),
    ];
    for (text, message, place) in cases {
        let d = parse_error(text);
        assert!(d.message.contains(message), "{text}: {}", d.message);
        let at = d.span.map_or("", |s| &text[s.start as usize..s.end as usize]);
        assert_eq!(at, place, "{text}: {}", d.message);
    }
    let deep = format!(
        "RISCV t\n{{}}\nP0 ;\n nop ;\nexists {}x=1{}\n",
        "(".repeat(5000),
        ")".repeat(5000)
    );
    assert!(parse_error(&deep).message.contains("nests more than"));
    let deep = format!(
        "C t\n{{}}\nP0 (int* x) {{ *x = {}1{}; }}\nexists (x=1)\n",
        "(".repeat(5000),
        ")".repeat(5000)
    );
    assert!(parse_error(&deep).message.contains("nests more than"));
}

/// A flag that depends on the events alone is raised even if the first candidate is forbidden, and
/// even if another branch without such events has the same outcome.
#[test]
fn flags_of_events_are_those_of_each_allowed_path() {
    let one_thread =
        "AArch64 own\n{ 0:X1=x; 0:X2=1; }\n P0 ;\n LDR W0,[X1] ;\n STR W2,[X1] ;\nexists (x=1)\n";
    let two_branches = "AArch64 branch\n{ 0:X1=x; 0:X3=y; 1:X1=x; 1:X2=1; }\n P0 | P1 ;\n LDR W0,[X1] | STR W2,[X1] ;\n \
         CBZ W0,L | ;\n STR W0,[X3] | ;\n L: | ;\nexists (x=1)\n";
    for (axiom, flag, text, raised) in [
        ("acyclic po-loc | rf | co", "flag ~empty W", one_thread, true),
        ("acyclic po-loc | rf | co", "undefined_unless empty W", one_thread, true),
        ("acyclic po-loc | rf", "flag ~empty W", one_thread, true),
        ("acyclic po-loc | rf", "flag empty W", one_thread, false),
        ("acyclic po-loc | rf", "flag ~empty (range(ctrl) & W)", two_branches, true),
        ("acyclic po-loc | rf", "flag empty (range(ctrl) & W)", two_branches, true),
        ("empty range(ctrl) & W", "flag ~empty (range(ctrl) & W)", two_branches, false),
    ] {
        let model = compile(Arch::AArch64, &format!("\"m\"\n{axiom} as a\n{flag} as raised\n"));
        let found = answer(text, &model).answer.flags;
        assert_eq!(!found.is_empty(), raised, "{axiom}; {flag}: {found:?}");
    }
}

/// A choice that a `forall` forbids later has no flags, whichever element forbids it.
#[test]
fn flags_are_those_of_choices_that_all_elements_allow() {
    let text =
        "X86 T\n{ }\n P0 | P1 ;\n MOV [y],$1 | MOV [x],$1 ;\n | MOV EAX,[y] ;\nexists (1:EAX=0)\n";
    let head = "\"m\"\nwith x from (po ++ (0 ++ {}))\nflag ~empty x as chosen\n";
    for (rest, flags) in [
        ("empty [W \\ IW]; x; [R] as later\n", &[][..]),
        ("forall e in classes(int) do\n empty [e & W]; x; [e & R] as later\nend\n", &[]),
        ("forall e in classes(int) do\n empty [e & R]; x; [e & W] as later\nend\n", &["chosen"]),
    ] {
        let model = compile(Arch::X86, &format!("{head}{rest}"));
        assert_eq!(answer(text, &model).answer.flags, flags, "{rest}");
    }
}

/// Under TSO and PSO a fence orders the accesses of its kind, in each architecture. All other
/// orders of these models need no fence.
#[test]
fn fences_of_store_buffers_have_kinds() {
    let riscv = |fence: &str, writes: bool| {
        let second = if writes { "sw x5,0(x7)" } else { "lw x8,0(x7)" };
        let (other, seen) = if writes {
            ("lw x8,0(x7) | fence r,r | lw x9,0(x6)", "1:x8=1 /\\ 1:x9=0")
        } else {
            ("sw x5,0(x7) | fence rw,rw | lw x9,0(x6)", "0:x8=0 /\\ 1:x9=0")
        };
        let other: Vec<&str> = other.split(" | ").collect();
        format!(
            "RISCV t\n{{ 0:x6=x; 0:x7=y; 1:x6=x; 1:x7=y; 0:x5=1; 1:x5=1; }}\nP0 | P1 ;\n\
             sw x5,0(x6) | {} ;\n{fence} | {} ;\n{second} | {} ;\nexists ({seen})\n",
            other[0], other[1], other[2]
        )
    };
    // For each fence: whether it orders a write before a read, and a write before a write.
    for (fence, reads, stores) in [
        ("fence rw,rw", true, true),
        ("fence w,r", true, false),
        ("fence w,w", false, true),
        ("fence rw,w", false, true),
        ("fence.tso", false, true),
        ("fence r,rw", false, false),
    ] {
        for (model, writes, ordered) in [
            ("tso", false, reads),
            ("pso", false, reads),
            ("tso", true, true),
            ("pso", true, stores),
            ("sc", false, true),
        ] {
            let found = answer(&riscv(fence, writes), &judge(Arch::RiscV, model)).answer.verdict;
            assert_eq!(found == Verdict::No, ordered, "{fence} under {model}, writes: {writes}");
        }
    }
    let arm = |fence: &str| {
        format!(
            "AArch64 t\n{{ 0:X1=x; 0:X3=y; 1:X1=y; 1:X3=x; 0:X2=1; 1:X2=1; }}\n P0 | P1 ;\n \
             STR W2,[X1] | STR W2,[X1] ;\n {fence} | DMB SY ;\n LDR W4,[X3] | LDR W4,[X3] ;\n\
             exists (0:X4=0 /\\ 1:X4=0)\n"
        )
    };
    let c = |order: &str| {
        let thread = |n: u32, a: &str, b: &str, order: &str| {
            format!(
                "P{n} (atomic_int* x, atomic_int* y) {{ atomic_store_explicit({a}, 1, memory_order_relaxed); \
                 atomic_thread_fence({order}); int r = atomic_load_explicit({b}, memory_order_relaxed); }}\n"
            )
        };
        let full = "memory_order_seq_cst";
        format!(
            "C t\n{{}}\n{}{}exists (0:r=0 /\\ 1:r=0)\n",
            thread(0, "x", "y", order),
            thread(1, "y", "x", full)
        )
    };
    for (text, arch, ordered) in [
        (arm("DMB ISH"), Arch::AArch64, true),
        (arm("DSB SY"), Arch::AArch64, true),
        (arm("DMB ISHST"), Arch::AArch64, false),
        (arm("DMB LD"), Arch::AArch64, false),
        (arm("ISB"), Arch::AArch64, false),
        (c("memory_order_seq_cst"), Arch::C, true),
        (c("memory_order_release"), Arch::C, false),
        (c("memory_order_acq_rel"), Arch::C, false),
    ] {
        for model in ["tso", "pso"] {
            let found = answer(&text, &judge(arch, model)).answer.verdict;
            assert_eq!(found == Verdict::No, ordered, "{model}\n{text}");
        }
    }
}

/// The values of a circle of computations are not determined, so the executions do not count, as in
/// the herd tools. They would be all numbers; without the rule the answer contained those that the
/// test happens to mention.
#[test]
fn circles_of_computations_determine_no_value() {
    // The model orders neither instructions nor the halves of an update.
    let free = compile(Arch::X86, "\"free\"\nempty rmw & (fre; coe)\n");
    let values =
        |text: &str| -> Vec<String> { outcomes(&answer(text, &free)).into_iter().collect() };
    let circle = "X86 circle\n{ y=-1; }\nP0 | P1 ;\nLOCK; INC [y] | ADD [y],$-1 ;\nlocations [y;]\nexists (y=6)\n";
    assert_eq!(values(circle), ["[y]=-1;", "[y]=-2;"]);
    // The same circle with a branch in place of the computation has one value, which is determined.
    let free = compile(Arch::RiscV, "\"free\"\nempty 0\n");
    let branches = "RISCV branches\n{ 0:x10=x; 0:x11=y; 1:x10=y; 1:x11=x; 0:x7=1; 1:x7=1; }\n P0 | P1 ;\n lw x5,0(x10) | lw x5,0(x10) ;\n beq x5,x0,E0 | beq x5,x0,E1 ;\n sw x7,0(x11) | sw x7,0(x11) ;\n E0: | E1: ;\nexists (0:x5=1 /\\ 1:x5=1)\n";
    assert_eq!(answer(branches, &free).answer.verdict, Verdict::Ok);
    let cancelled = "RISCV cancelled\n{ 0:x10=x; 0:x11=y; 1:x10=y; 1:x11=x; }\n P0 | P1 ;\n lw x5,0(x10) | lw x5,0(x10) ;\n xor x6,x5,x5 | xor x6,x5,x5 ;\n ori x6,x6,1 | ori x6,x6,1 ;\n sw x6,0(x11) | sw x6,0(x11) ;\nexists (0:x5=1 /\\ 1:x5=1)\n";
    assert_eq!(answer(cancelled, &free).answer.verdict, Verdict::Ok);
    let added = "RISCV added\n{ 0:x10=x; 0:x11=y; 1:x10=y; 1:x11=x; x=5; y=9; }\n P0 | P1 ;\n lw x5,0(x10) | lw x5,0(x10) ;\n addi x6,x5,1 | addi x6,x5,-1 ;\n sw x6,0(x11) | sw x6,0(x11) ;\nexists (0:x5=5 /\\ 1:x5=9)\n";
    // Three choices of sources without a circle.
    assert_eq!(outcomes(&answer(added, &free)).len(), 3);
    let test = |first: &str, second: &str| {
        format!(
            "RISCV pair\n{{ 0:x10=x; 0:x11=y; 1:x10=y; 1:x11=x; }}\n P0 | P1 ;\n lw x5,0(x10) | lw x5,0(x10) ;\n {first} | {second} ;\n sw x6,0(x11) | sw x6,0(x11) ;\nexists (0:x5=1 /\\ 1:x5=1)\n"
        )
    };
    let count = |first: &str, second: &str| outcomes(&answer(&test(first, second), &free)).len();
    // The value depends on the read also if all listed values give the same.
    assert_eq!(count("ori x6,x5,3", "ori x6,x5,3"), 3);
    // One thread stores a constant, the other one what it reads.
    let split = test("xor x6,x5,x5", "mv x6,x5")
        .replace(" sw x6,0(x11) | sw", " ori x6,x6,1 | nop ;\n sw x6,0(x11) | sw");
    assert_eq!(outcomes(&answer(&split, &free)).len(), 3, "{split}");
    // Copies, also extended, have the listed values.
    assert_eq!(count("mv x6,x5", "mv x6,x5"), count("sext.w x6,x5", "ori x6,x5,0"));
}

/// A loop until a store-conditional succeeds is bounded like one that waits for a value.
#[test]
fn loops_of_store_conditionals_are_unrolled() {
    let arm = |other: &str| {
        format!(
            "AArch64 retry\n{{ 0:X1=x; 0:X0=1; 1:X1=x; 1:X0=2; }}\n P0 | P1 ;\n L0: LDXR W4,[X1] | {other} ;\n STXR W2,W0,[X1] | ;\n CBNZ W2,L0 | ;\nexists (x=1)\n"
        )
    };
    let report = answer(&arm("STR W0,[X1]"), &default_judge(Arch::AArch64));
    assert_eq!((report.answer.positive > 0, report.unrolled), (true, Some(2)));
    let riscv = "RISCV retry\n{ 0:x6=x; 0:x5=1; 1:x6=x; 1:x5=2; }\nP0 | P1 ;\n L0: lr.w x7,0(x6) | L1: lr.w x7,0(x6) ;\n sc.w x8,x5,0(x6) | sc.w x8,x5,0(x6) ;\n bne x8,x0,L0 | bne x8,x0,L1 ;\nexists (0:x7=0 /\\ 1:x7=0)\n";
    let report = answer(riscv, &default_judge(Arch::RiscV));
    assert_eq!((report.answer.positive, report.answer.verdict), (0, Verdict::Unknown));
}

/// The write of a fetch-and-add depends on its read, by `data`; that of a compare-and-swap by
/// `ctrl`; that of an exchange does not. As in herd7 7.58 with models that do not compute
/// dependencies.
#[test]
fn dependencies_inside_instructions_belong_to_data_and_ctrl() {
    let model = |name: &str| compile(Arch::AArch64, &format!("AArch64 m\nempty {name} as none\n"));
    for (code, data, control) in [
        ("LDADD X3,X0,[X1]", true, false),
        ("CAS X3,X0,[X1]", false, true),
        ("SWP X3,X0,[X1]", false, false),
    ] {
        let text = format!("AArch64 t\n{{ int64_t x=0; 0:X1=x; }}\nP0 ;\n{code} ;\nexists (x=0)\n");
        for (name, depends) in [("data", data), ("ctrl", control)] {
            let allowed = !answer(&text, &model(name)).answer.outcomes.is_empty();
            assert_eq!(allowed, !depends, "{code}, {name}");
        }
    }
}

/// `try` takes the other value for any error, also for a wrong number of arguments.
#[test]
fn try_catches_arguments_that_do_not_match() {
    let model = "AArch64 t\nlet f(a, b) = a\nlet g = try f(po) with 0\nempty g as none\n";
    let text = "AArch64 t\n{ int64_t x=0; 0:X1=x; }\nP0 ;\nLDR X0,[X1] ;\nexists (x=0)\n";
    assert_eq!(answer(text, &compile(Arch::AArch64, model)).answer.verdict, Verdict::Ok);
}
