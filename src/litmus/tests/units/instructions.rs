//! Tests of AArch64 instructions by their results in one thread, and of what is rejected.

use super::{answer, default_judge};
use mu_base::SourceId;
use mu_litmus::code::Arch;
use mu_litmus::file::{ParserOptions, parse};
use mu_program::outcome::Verdict;

/// Returns true if all executions of some code end as in a condition.
fn always(initial: &str, code: &[&str], condition: &str) -> bool {
    let rows: String = code.iter().map(|line| format!("{line} ;\n")).collect();
    let text = format!("AArch64 t\n{{ {initial} }}\nP0 ;\n{rows}forall ({condition})\n");
    match answer(&text, &default_judge(Arch::AArch64)).answer.verdict {
        Verdict::Ok => true,
        Verdict::No => false,
        Verdict::Unknown => panic!("{text}"),
    }
}

#[test]
fn arithmetic_has_the_results_of_the_manual() {
    let long = "int64_t 0:X0; int64_t 0:X1; int64_t 0:X2; int64_t 0:X3;";
    for (code, condition) in [
        (
            &["MOV X1,#-1", "ADDS X0,X1,#1", "CSET X2,CS", "CSET X3,EQ"][..],
            "0:X0=0 /\\ 0:X2=1 /\\ 0:X3=1",
        ),
        (
            &["MOVZ X1,#0x8000,LSL #48", "SUBS X0,X1,#1", "CSET X2,VS", "CSET X3,MI"],
            "0:X2=1 /\\ 0:X3=0",
        ),
        (
            &["MOV W1,#1", "CMP W1,#2", "CSET W0,LO", "CSET W2,LT", "CSETM X3,NE"],
            "0:X0=1 /\\ 0:X2=1 /\\ 0:X3=-1",
        ),
        (
            &["MOV X1,#6", "TST X1,#1", "CSEL X0,X1,XZR,EQ", "CSNEG X2,XZR,X1,NE"],
            "0:X0=6 /\\ 0:X2=-6",
        ),
        (
            &["MOV X1,#6", "CINC X0,X1,NE", "CSINV X2,X1,X1,EQ", "CNEG X3,X1,NE"],
            "0:X0=7 /\\ 0:X2=-7 /\\ 0:X3=-6",
        ),
        (
            &["MOV X1,#0xf0", "BIC X0,X1,#0x30", "ORN X2,XZR,X1", "EON X3,X1,X1"],
            "0:X0=0xc0 /\\ 0:X2=-241 /\\ 0:X3=-1",
        ),
        (
            &["MOV W1,#-8", "ASR W0,W1,#2", "LSR W2,W1,#28", "ROR W3,W1,#4"],
            "0:X0=0xfffffffe /\\ 0:X2=15 /\\ 0:X3=0x8fffffff",
        ),
        (&["MOV X1,#5", "ADD X0,X1,X1,LSL #2", "SUB X2,X1,W1,SXTW #1"], "0:X0=25 /\\ 0:X2=-5"),
        (
            &["MOVZ X1,#0xabcd,LSL #16", "UBFX X0,X1,#16,#8", "SBFX X2,X1,#24,#8", "REV W3,W1"],
            "0:X0=0xcd /\\ 0:X2=-85 /\\ 0:X3=0xcdab",
        ),
        (
            &["MOV X1,#3", "MOV X2,#4", "MADD X0,X1,X2,X1", "MSUB X3,X1,X2,X1"],
            "0:X0=15 /\\ 0:X3=-9",
        ),
        (
            &["MOV W1,#-2", "SMULL X0,W1,W1", "UMULL X2,W1,W1", "SXTW X3,W1"],
            "0:X0=4 /\\ 0:X2=0xfffffffc00000004 /\\ 0:X3=-2",
        ),
        (
            &["MOV X0,#1", "MOVK X0,#2,LSL #16", "CLZ X2,X0", "RBIT X3,X0"],
            "0:X0=0x20001 /\\ 0:X2=46 /\\ 0:X3=0x8000400000000000",
        ),
        (
            &["MOV X1,#7", "MOV X2,#0", "UDIV X0,X1,X2", "MOV X2,#2", "SDIV X3,X1,X2"],
            "0:X0=0 /\\ 0:X3=3",
        ),
        (
            &["MOV X1,#-1", "MOV X2,#5", "BFI X2,X1,#8,#4", "BFXIL X1,X2,#8,#16", "CLS X0,X1"],
            "0:X2=0xf05 /\\ 0:X1=0xffffffffffff000f /\\ 0:X0=47",
        ),
        (
            &["MOV X1,#-1", "BFC X1,#4,#8", "MOV X2,#3", "BFM X2,X1,#60,#3", "CLS W0,WZR"],
            "0:X1=0xfffffffffffff00f /\\ 0:X2=0xf3 /\\ 0:X0=31",
        ),
        (
            &["MOV X1,#1", "CMP X1,#2", "CCMP X1,#1,#0,LO", "CSET X0,EQ", "CCMN X1,#1,#5,LO"],
            "0:X0=1",
        ),
        (
            &["CMP XZR,XZR", "CCMP XZR,#1,#9,NE", "CSET X0,MI", "CSET X1,VS", "CSET X2,EQ"],
            "0:X0=1 /\\ 0:X1=1 /\\ 0:X2=0",
        ),
    ] {
        assert!(always(long, code, condition), "{code:?} {condition}");
    }
}

/// Sums and differences of numbers of two words are those of the wide numbers, with their flags.
#[test]
fn carries_connect_words() {
    let numbers = [0i64, 1, -1, i64::MAX, i64::MIN, 0x1_0000_0000, -0x1_0000_0000, 0x7fff_ffff];
    for a in numbers {
        for b in numbers {
            let [low, high] = [|v: i64| v as u32, |v: i64| (v >> 32) as u32];
            let initial = format!(
                "uint32_t 0:X1={}; uint32_t 0:X2={}; uint32_t 0:X3={}; uint32_t 0:X4={};",
                low(a),
                high(a),
                low(b),
                high(b)
            );
            for (first, second, result, overflow, carry) in [
                ("ADDS", "ADCS", a.wrapping_add(b), a.checked_add(b).is_none(), {
                    (a as u64).checked_add(b as u64).is_none()
                }),
                ("SUBS", "SBCS", a.wrapping_sub(b), a.checked_sub(b).is_none(), {
                    a as u64 >= b as u64
                }),
            ] {
                let (one, two) = (format!("{first} W5,W1,W3"), format!("{second} W6,W2,W4"));
                let code = [&*one, &*two, "CSET W7,VS", "CSET W8,CS", "CSET W9,MI"];
                let condition = format!(
                    "0:X5={} /\\ 0:X6={} /\\ 0:X7={} /\\ 0:X8={} /\\ 0:X9={}",
                    low(result),
                    high(result),
                    u8::from(overflow),
                    u8::from(carry),
                    u8::from(result < 0)
                );
                let initial = format!("{initial} uint32_t 0:X5; uint32_t 0:X6;");
                assert!(always(&initial, &code, &condition), "{a} {first} {b}");
            }
        }
    }
}

#[test]
fn conditions_read_the_flags() {
    // For each pair of numbers, the conditions after a comparison are those of the integers.
    let numbers = [0i32, 1, -1, i32::MAX, i32::MIN, 5];
    for a in numbers {
        for b in numbers {
            let (x, y) = (a as u32, b as u32);
            let expected = [
                ("EQ", a == b),
                ("NE", a != b),
                ("HS", x >= y),
                ("LO", x < y),
                ("HI", x > y),
                ("LS", x <= y),
                ("GE", a >= b),
                ("LT", a < b),
                ("GT", a > b),
                ("LE", a <= b),
                ("MI", a.wrapping_sub(b) < 0),
                ("VS", a.checked_sub(b).is_none()),
            ];
            let mut code = vec!["CMP W1,W2".to_string()];
            let mut wanted = Vec::new();
            for (i, (name, holds)) in expected.iter().enumerate() {
                code.push(format!("CSET W{},{name}", i + 3));
                wanted.push(format!("0:X{}={}", i + 3, u8::from(*holds)));
            }
            let lines: Vec<&str> = code.iter().map(String::as_str).collect();
            let initial = format!("0:X1={a}; 0:X2={b};");
            assert!(always(&initial, &lines, &wanted.join(" /\\ ")), "{a} {b}");
        }
    }
}

#[test]
fn accesses_have_all_widths_and_addresses() {
    let memory = "int64_t x[2] = {0x8182838485868788, 2}; 0:X1=x; int64_t 0:X2; int64_t 0:X3; int64_t 0:X4; int64_t 0:X5;";
    for (code, condition) in [
        (
            &["LDRSB X2,[X1]", "LDRSH W3,[X1]", "LDRSW X4,[X1]", "LDRB W5,[X1,#7]"][..],
            "0:X2=-120 /\\ 0:X3=0xffff8788 /\\ 0:X4=0xffffffff85868788 /\\ 0:X5=0x81",
        ),
        (
            &["LDR X2,[X1,#8]!", "LDR X3,[X1],#-8", "LDR X4,[X1]"],
            "0:X2=2 /\\ 0:X3=2 /\\ 0:X4=0x8182838485868788",
        ),
        (
            &[
                "MOV X5,#1",
                "LDR X2,[X1,X5,LSL #3]",
                "MOV W5,#-1",
                "ADD X1,X1,#16",
                "LDR X3,[X1,W5,SXTW #3]",
            ],
            "0:X2=2 /\\ 0:X3=2",
        ),
        (
            &["LDP X2,X3,[X1]", "STP X3,X2,[X1],#8", "LDR X4,[X1]"],
            "0:X3=2 /\\ x[0]=2 /\\ 0:X4=0x8182838485868788",
        ),
        (&["MOV W2,#1", "STRB W2,[X1,#15]", "STRH W2,[X1,#8]"], "x[1]=0x0100000000000001"),
        (
            &["MOV X2,#7", "LDXP X3,X4,[X1]", "STXP W5,X2,X2,[X1]"],
            "0:X4=2 /\\ (0:X5=1 \\/ 0:X5=0 /\\ x[0]=7 /\\ x[1]=7)",
        ),
    ] {
        assert!(always(memory, code, condition), "{code:?} {condition}");
    }
    let pair = "int64_t x[2] = {1, 2}; 0:X1=x; int64_t 0:X2; int64_t 0:X3; int64_t 0:X4=7; int64_t 0:X5=8;";
    let casp = "CASPAL X2,X3,X4,X5,[X1]";
    let equal = ["MOV X2,#1", "MOV X3,#2", casp];
    assert!(always(pair, &equal, "x[0]=7 /\\ x[1]=8 /\\ 0:X2=1 /\\ 0:X3=2"));
    let different = ["MOV X2,#1", "MOV X3,#3", casp];
    assert!(always(pair, &different, "x[0]=1 /\\ x[1]=2 /\\ 0:X2=1 /\\ 0:X3=2"));
}

#[test]
fn jumps_lead_to_labels_distances_and_addresses() {
    for (code, condition) in [
        (&["MOV W0,#2", "ADD W1,W1,#2", "SUBS W0,W0,#1", "CBNZ W0,.-8"][..], "0:X1=4"),
        (&["MOV W0,#10", "L: ADD W1,W1,#1", "SUB W0,W0,#1", "CBNZ W0,L"], "0:X1=10"),
        (&["MOV W0,#4", "TBNZ W0,#2,L", "MOV W1,#1", "L: ADD W1,W1,#2"], "0:X1=2"),
        (&["BL F", "ADD W1,W1,#2", "B E", "F: ADD W1,W1,#1", "RET", "E:"], "0:X1=3"),
        (&["ADR X0,F", "BR X0", "MOV W1,#1", "F: ADD W1,W1,#2"], "0:X1=2 /\\ 0:X0=label:\"P0:F\""),
    ] {
        assert!(always("", code, condition), "{code:?} {condition}");
    }
    assert!(always("0:X0=P0:L;", &["BR X0", "MOV W1,#1", "L:"], "0:X1=0"));
}

#[test]
fn an_address_without_a_variable_matters_only_on_allowed_paths() {
    let test = |guard: &str| {
        let text = format!(
            "AArch64 t\n{{ 0:X1=x; 1:X1=x; 1:X3=16; }}\nP0 | P1 ;\nMOV W0,#1 | LDR W0,[X1] ;\n\
             STR W0,[X1] | LDR W2,[X1] ;\n | EOR W4,W0,#1 ;\n | ORR W4,W4,W2 ;\n\
             | {guard} W4,L1 ;\n | LDR W6,[X3] ;\n |L1: ;\nforall (1:X4=1)\n"
        );
        answer(&text, &default_judge(Arch::AArch64))
    };
    // Coherence forbids to read 1 and then 0.
    assert_eq!(test("CBNZ").answer.verdict, Verdict::Ok);
    let open = test("CBZ");
    assert_eq!((open.answer.verdict, open.strayed.is_some()), (Verdict::Unknown, true));
}

#[test]
fn instructions_of_the_system_are_rejected_by_their_feature() {
    for (line, feature) in [
        ("STG X0,[X1]", "memory tagging"),
        ("TLBI VAE1IS,X1", "address translation"),
        ("SVC #0", "exceptions"),
        ("IC IVAU,X1", "instruction fetch"),
        ("MRS X0,CNTVCT_EL0", "system registers"),
        ("LD1 {V0.B}[0],[X1]", "vectors"),
        ("PACIA X0,X1", "pointer authentication"),
    ] {
        let text = format!("AArch64 t\n{{ 0:X1=x; }}\nP0 ;\n{line} ;\nforall (true)\n");
        let error = parse(SourceId::FIRST, &text, ParserOptions::default()).unwrap_err();
        assert!(error.message.contains(feature), "{error}");
    }
    let variant = "AArch64 t\nVariant=vmsa\n{ 0:X1=x; }\nP0 ;\nNOP ;\nforall (true)\n";
    let error = parse(SourceId::FIRST, variant, ParserOptions::default()).unwrap_err();
    assert!(error.message.contains("address translation"), "{error}");
}

/// Products and shifted numbers of Power (Power ISA book I, 3.3.9), shifts of Armv7 by more than
/// the width (Arm manual, A2.2.1).
#[test]
fn words_of_power_and_arm_have_the_results_of_the_manuals() {
    let weak = "\"weak\"\nacyclic po-loc | rf | co | fr as coherence\n";
    let power = |code: &str, wanted: i64| {
        format!(
            "PPC t\n{{ x=-1; 0:r1=x; int64_t 0:r4; }}\nP0 ;\n lwz r2,0(r1) ;\n li r3,2 ;\n {code} ;\nforall (0:r4={wanted})\n"
        )
    };
    for (code, wanted) in [
        ("mullw r4,r2,r3", -2),
        ("mullw. r5,r2,r3 ;\n li r4,1 ;\n blt L ;\n li r4,0 ;\n L:", 1),
        ("lis r4,0x8000", -0x8000_0000),
        ("addis r4,r3,-1", -65534),
        ("lis r4,1", 65536),
    ] {
        let report = answer(&power(code, wanted), &super::compile(Arch::Power, weak));
        assert_eq!(report.answer.verdict, Verdict::Ok, "{code}");
    }
    for (code, wanted) in [
        ("LSL R0,R1,R2", 0),
        ("LSR R0,R1,R2", 0),
        ("MOV R2,#0x104 ;\n LSL R0,R1,R2", 0x30),
        ("MOV R2,#33 ;\n LSR R0,R1,R2", 0),
        ("LSL R0,R1,#4", 0x30),
    ] {
        let text = format!(
            "ARM t\n{{ }}\nP0 ;\n MOV R1,#3 ;\n MOV R2,#64 ;\n {code} ;\nforall (0:R0={wanted})\n"
        );
        let report = answer(&text, &super::compile(Arch::Arm, weak));
        assert_eq!(report.answer.verdict, Verdict::Ok, "{code}");
    }
}
