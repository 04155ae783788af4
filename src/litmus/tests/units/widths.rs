//! Tests of sizes and types: accesses do not change the size of a variable, and conditions compare
//! in the types of their operands.

use super::{answer, compile, default_judge, outcomes, parse_error};
use mu_base::{Budget, SourceId};
use mu_litmus::code::Arch;
use mu_litmus::file::{ParserOptions, parse};
use mu_litmus::paths::PathBounds;
use mu_litmus::report::run;
use mu_program::outcome::Verdict;

/// Returns the verdict on a test of one thread: an initial state, instructions, a proposition for
/// `forall`.
fn verdict(arch: Arch, initial: &str, code: &[&str], proposition: &str) -> Verdict {
    let text = format!(
        "{} one\n{{ {initial} }}\nP0 ;\n{} ;\nforall ({proposition})\n",
        arch.name(),
        code.join(" ;\n")
    );
    answer(&text, &default_judge(arch)).answer.verdict
}

/// Returns the reason why a test of one thread is rejected.
fn run_error(arch: Arch, initial: &str, code: &[&str]) -> String {
    let text = format!(
        "{} one\n{{ {initial} }}\nP0 ;\n{} ;\nforall (true)\n",
        arch.name(),
        code.join(" ;\n")
    );
    let judge = default_judge(arch);
    let test =
        parse(SourceId::FIRST, &text, ParserOptions { pairs: judge.pairs, ..Default::default() })
            .unwrap_or_else(|d| panic!("{d:?}\n{text}"));
    let d = run(test, &judge, PathBounds { loops: 2 }, &Budget::default()).expect_err(&text);
    assert!(d.span.is_some(), "{d:?}");
    d.message
}

#[test]
fn a_variable_keeps_its_size_under_narrow_accesses() {
    let arm = Arch::AArch64;
    assert_eq!(verdict(arm, "v=1023; 0:X4=v; 0:X5=2;", &["STRB W5,[X4]"], "v=770"), Verdict::Ok);
    assert_eq!(
        verdict(
            arm,
            "v=-1; 0:X4=v;",
            &["STRH WZR,[X4,#2]", "LDR W6,[X4]"],
            "v=65535 /\\ 0:X6=65535"
        ),
        Verdict::Ok
    );
    assert_eq!(
        verdict(arm, "int64_t v=-1; 0:X4=v;", &["STR WZR,[X4]"], "v=-4294967296"),
        Verdict::Ok
    );
    let initial = "uint8_t v[4]={1,2,3,4}; 0:X4=v;";
    assert_eq!(
        verdict(
            arm,
            initial,
            &["LDR W6,[X4]", "STRB WZR,[X4,#1]"],
            "0:X6=0x04030201 /\\ v[1]=0 /\\ v[3]=4"
        ),
        Verdict::Ok
    );
    let risc = Arch::RiscV;
    assert_eq!(
        verdict(
            risc,
            "v=770; 0:x8=v;",
            &["lbu x9,0(x8)", "lb x10,1(x8)"],
            "0:x9=2 /\\ 0:x10=3 /\\ v=770"
        ),
        Verdict::Ok
    );
    assert_eq!(
        verdict(risc, "v=-1; 0:x8=v;", &["sh x0,2(x8)", "lw x9,0(x8)"], "0:x9=65535 /\\ v=65535"),
        Verdict::Ok
    );
    assert_eq!(verdict(Arch::X86_64, "v=513;", &["movb $7,(v)"], "v=519"), Verdict::Ok);
}

#[test]
fn comparisons_use_the_declared_type() {
    let arm = Arch::AArch64;
    // A register is an int, even if it is wider, unless its type is declared.
    assert_eq!(
        verdict(
            arm,
            "v=-1; 0:X4=v;",
            &["LDR W5,[X4]"],
            "0:X5=-1 /\\ 0:X5=4294967295 /\\ 0:X5=0xffffffff"
        ),
        Verdict::Ok
    );
    assert_eq!(
        verdict(
            arm,
            "v=-1; 0:X4=v; uint64_t 0:X5;",
            &["LDR W5,[X4]"],
            "0:X5=4294967295 /\\ not (0:X5=-1)"
        ),
        Verdict::Ok
    );
    assert_eq!(
        verdict(
            arm,
            "0:X5=0x100000002; int64_t 0:X6=0x100000002;",
            &["NOP"],
            "0:X5=2 /\\ not (0:X6=2)"
        ),
        Verdict::Ok
    );
    // An undeclared variable is an int too; a declared one has its width and signedness.
    let initial = "uint8_t a=255; int8_t b=255; uint16_t c=-1; int d=0x80000000; uint64_t e=-1;";
    let same = "a=-1 /\\ a=255 /\\ b=-1 /\\ b=255 /\\ c=65535 /\\ c=-1 /\\ d=-2147483648 /\\ d=2147483648 /\\ e=-1";
    assert_eq!(
        verdict(
            arm,
            initial,
            &["NOP"],
            &format!("{same} /\\ e=0xffffffffffffffff /\\ e=18446744073709551615")
        ),
        Verdict::Ok
    );
    assert_eq!(
        verdict(
            arm,
            initial,
            &["NOP"],
            "a=511 /\\ not (c=255) /\\ not (d=0) /\\ not (e=0xffffffff)"
        ),
        Verdict::Ok
    );
    // Two registers are compared in full.
    assert_eq!(verdict(arm, "0:X5=0x100000002; 0:X6=2;", &["NOP"], "not (0:X5=0:X6)"), Verdict::Ok);
    let risc = ["lw x9,0(x8)", "lwu x10,0(x8)", "lb x11,3(x8)"];
    assert_eq!(
        verdict(
            Arch::RiscV,
            "v=-1; 0:x8=v;",
            &risc,
            "0:x9=-1 /\\ 0:x10=-1 /\\ 0:x11=-1 /\\ 0:x10=4294967295"
        ),
        Verdict::Ok
    );
    assert_eq!(
        verdict(
            Arch::X86_64,
            "",
            &["movl $-1,%eax", "movq $-1,%rbx"],
            "0:rax=-1 /\\ 0:rbx=-1 /\\ 0:rax=4294967295"
        ),
        Verdict::Ok
    );
    let c = "C c\n{}\nP0 (atomic_int* v) { unsigned char a = 255; int b = -1; char c = 255; unsigned long long d = -1; atomic_store(v, -1); }\n\
             forall (0:a=255 /\\ 0:b=4294967295 /\\ 0:c=-1 /\\ 0:d=-1 /\\ v=-1)\n";
    assert_eq!(answer(c, &default_judge(Arch::C)).answer.verdict, Verdict::Ok);
    // Addresses are possible values of registers and of variables.
    assert_eq!(
        verdict(
            arm,
            "p=v; 0:X4=p;",
            &["LDR X5,[X4]", "LDR W6,[X5]"],
            "0:X5=v /\\ p=v /\\ not (p=0) /\\ 0:X6=0"
        ),
        Verdict::Ok
    );
}

#[test]
fn accesses_beyond_a_variable_are_rejected() {
    for (arch, initial, code) in [
        (Arch::AArch64, "0:X4=v;", "LDR X5,[X4]"),
        (Arch::AArch64, "int16_t v; 0:X4=v;", "STR W5,[X4]"),
        (Arch::AArch64, "int v[2]; 0:X4=v;", "STR W5,[X4,#8]"),
        (Arch::RiscV, "0:x8=v;", "sd x9,0(x8)"),
        (Arch::RiscV, "char v; 0:x8=v;", "lhu x9,0(x8)"),
        (Arch::X86_64, "", "movq $1,(v)"),
    ] {
        assert!(run_error(arch, initial, &[code]).contains("beyond `v`"), "{code}");
    }
    assert!(run_error(Arch::RiscV, "int64_t v; 0:x8=v;", &["lw x9,2(x8)"]).contains("not aligned"));
    assert!(
        run_error(Arch::AArch64, "int64_t v[3]; 0:X4=v;", &["LDR X5,[X4,#12]"])
            .contains("border of 16 bytes")
    );
}

/// A path with an access outside all variables has no meaning, so outcomes that only such a path
/// could change are unknown.
#[test]
fn paths_that_access_no_variable_leave_the_answer_open() {
    let text =
        "AArch64 stray\n{ v=3; 0:X4=v; }\nP0 ;\nLDR W5,[X4] ;\nLDR W6,[X5] ;\nforall (0:X6=1)\n";
    let report = answer(text, &default_judge(Arch::AArch64));
    assert_eq!(report.answer.verdict, Verdict::Unknown);
    assert_eq!(
        report.dropped_paths(),
        ["Paths left out: `LDR W6,[X5]` of P0 accesses no variable"]
    );
    let some = "AArch64 some\n{ int64_t p=0; 0:X4=p; 1:X4=p; 1:X5=v; v=7; }\nP0 | P1 ;\nLDR X5,[X4] | STR X5,[X4] ;\nLDR W6,[X5] | ;\nexists (0:X6=7)\n";
    assert_eq!(answer(some, &default_judge(Arch::AArch64)).answer.verdict, Verdict::Ok);
    assert_eq!(
        answer(&some.replace("exists", "forall"), &default_judge(Arch::AArch64)).answer.verdict,
        Verdict::Unknown
    );
}

#[test]
fn unknown_names_in_conditions_are_rejected() {
    for (text, name) in [
        ("AArch64 t\n{ x=0; }\nP0 ;\nNOP ;\nexists (w=3)\n", "w"),
        ("AArch64 t\n{ x=0; }\nP0 ;\nNOP ;\nexists (0:X1=w)\n", "w"),
        ("C t\n{}\nP0 (int* x) { int a = 1; }\nexists (0:b=1)\n", "b"),
    ] {
        let d = parse_error(text);
        assert_eq!(d.span.map_or("", |s| &text[s.start as usize..s.end as usize]), name, "{d:?}");
    }
    // A list may contain variables that the test does not access.
    let listed =
        answer("AArch64 t\n{}\nP0 ;\nNOP ;\nlocations [w;]\n", &default_judge(Arch::AArch64));
    assert!(outcomes(&listed).contains("[w]=0;"));
}

/// A wide load that reads one store in both halves, and one that reads two stores: an access has
/// one position in the order of all processors.
#[test]
fn the_parts_of_an_access_have_one_place_in_the_order() {
    // P0 and P1 write halves, P2 and P3 read both at once: they cannot observe different orders.
    let arm = "P0 | P1 | P2 | P3 ;\nSTR W5,[X8] | STR W5,[X8,#4] | LDR X6,[X8] | LDR X6,[X8] ;";
    let seen = "int64_t 2:X6; int64_t 3:X6; 3:X8=v;";
    let text = |columns: &str, condition: &str| {
        format!(
            "AArch64 iriw\n{{ int64_t v; 0:X8=v; 1:X8=v; 2:X8=v; 0:X5=1; 1:X5=1; {seen} }}\n{columns}\nexists ({condition})\n"
        )
    };
    let both = text(arm, "2:X6=1 /\\ 3:X6=0x100000000");
    assert_eq!(answer(&both, &default_judge(Arch::AArch64)).answer.verdict, Verdict::No);
    assert_eq!(
        answer(&text(arm, "2:X6=1 /\\ 3:X6=1"), &default_judge(Arch::AArch64)).answer.verdict,
        Verdict::Ok
    );
    // One store is not visible by halves, neither to one load nor to two loads in order.
    let risc = |code: &str, condition: &str| {
        let initial = "int64_t v; int64_t 1:x6; 0:x8=v; 1:x8=v; 0:x5=0x100000001;";
        let text =
            format!("RISCV halves\n{{ {initial} }}\nP0 | P1 ;\n sd x5,0(x8) | {code}{condition}\n");
        answer(&text, &default_judge(Arch::RiscV)).answer.verdict
    };
    assert_eq!(risc("ld x6,0(x8) ;\n", "forall (1:x6=0 \\/ 1:x6=0x100000001)"), Verdict::Ok);
    assert_eq!(
        risc("lw x6,0(x8) ;\n | fence r,r ;\n | lw x7,4(x8) ;\n", "exists (1:x6=1 /\\ 1:x7=0)"),
        Verdict::No
    );
    assert_eq!(
        risc("lw x6,0(x8) ;\n | lw x7,4(x8) ;\n", "exists (1:x6=1 /\\ 1:x7=0)"),
        Verdict::Ok
    );
}

/// A model that does not mention `si` cannot judge accesses of mixed sizes.
#[test]
fn models_without_si_reject_mixed_sizes() {
    let coherence = compile(Arch::RiscV, "\"coherence\"\nacyclic po-loc | rf | co | fr\n");
    let text =
        "RISCV t\n{ v=770; 0:x8=v; }\nP0 ;\n lbu x9,0(x8) ;\n lw x10,0(x8) ;\nforall (0:x9=2)\n";
    let read = || parse(SourceId::FIRST, text, ParserOptions::default()).unwrap();
    let d = run(read(), &coherence, PathBounds { loops: 2 }, &Budget::default()).expect_err(text);
    assert!(d.message.contains("several sizes"), "{d:?}");
    // Without the wide access no event is split, so every model can judge it.
    let narrow = text.replace(" lw x10,0(x8) ;\n", "");
    assert_eq!(answer(&narrow, &coherence).answer.verdict, Verdict::Ok);
    let parts = compile(Arch::RiscV, "\"parts\"\nacyclic (po-loc | rf | co | fr); si\n");
    assert_eq!(answer(text, &parts).answer.verdict, Verdict::Ok);
}

#[test]
fn arithmetic_keeps_widths() {
    let c = "C promoted\n{}\nP0 (int* v) { unsigned char a = 1; unsigned char b = 2; int c = a - b < 0; unsigned int d = 1; long long e = -d + (long long) 1; \
             int f = -a < 0; long long g = 4294967295 + d; }\nforall (0:c=1 /\\ 0:e=4294967296 /\\ 0:f=1 /\\ 0:g=4294967296)\n";
    assert_eq!(
        answer(c, &default_judge(Arch::C)).answer.verdict,
        Verdict::Ok,
        "{:?}",
        outcomes(&answer(c, &default_judge(Arch::C)))
    );
    assert_eq!(
        verdict(
            Arch::RiscV,
            "0:x5=4294967295;",
            &["sext.w x6,x5", "addiw x7,x5,1"],
            "0:x6=-1 /\\ 0:x7=0"
        ),
        Verdict::Ok
    );
    for (text, place) in [
        ("RISCV t\n{}\nP0 ;\n subi x5,x5,1 ;\nforall (true)\n", "subi"),
        ("RISCV t\n{}\nP0 ;\n andw x5,x5,x5 ;\nforall (true)\n", "andw"),
        ("AArch64 t\n{ 0:X1=x; }\nP0 ;\nLDR W2,[W1] ;\nforall (true)\n", "W1"),
        ("AArch64 t\n{}\nP0 ;\nB.XX L ;\nL: ;\nforall (true)\n", "B.XX"),
    ] {
        let d = parse_error(text);
        assert_eq!(d.span.map_or("", |s| &text[s.start as usize..s.end as usize]), place, "{d:?}");
    }
    // After a comparison all orders are known.
    let code = ["CMP W1,W2", "B.LO L", "MOV W3,#1", "L:"];
    assert_eq!(verdict(Arch::AArch64, "0:X1=-1; 0:X2=1;", &code, "0:X3=1"), Verdict::Ok);
}
