//! Tests of Power and Armv7 under the axioms of Alglave, Maranget, Tautschnig 2014, and of
//! extensions of RISC-V and x86.

use super::{STDLIB, answer, compile, default_judge, judge};
use mu_base::SourceMap;
use mu_litmus::Judge;
use mu_litmus::code::Arch;
use mu_program::outcome::Verdict;

/// The model of Power of "Herding cats" (figures 5, 18, 25).
const POWER: &str = r#"PPC "Power"
let initial-fr = rf^-1; co
let dp = addr | data
let rdw = po-loc & (fre; rfe)
let detour = po-loc & (coe; rfe)
let cfence = ctrl & (_ * ISYNC); po
let ii0 = dp | rdw | rfi
let ci0 = cfence | detour
let cc0 = dp | po-loc | ctrl | (addr; po)
let rec ii = ii0 | ci | (ic; ci) | (ii; ii)
and ic = ii | cc | (ic; cc) | (ii; ic)
and ci = ci0 | (ci; ii) | (cc; ci)
and cc = cc0 | ci | (ci; ic) | (cc; cc)
let ppo = (ii & (R * R)) | (ic & (R * W))
let full = po; [SYNC]; po
let light = (po; [LWSYNC]; po) \ (W * R) | (po; [EIEIO]; po) & (W * W)
let fences = full | light
let hb = ppo | fences | rfe
let prop-base = (fences | (rfe; fences)); hb*
let prop = (prop-base & (W * W)) | ((coe | fre | rfe)*; prop-base*; full; hb*)
acyclic po-loc | rf | co | fr as coherence
empty rmw & (fre; coe) as atomicity
acyclic hb as no-thin-air
irreflexive fre; prop; hb* as observation
acyclic co | prop as propagation
"#;

fn verdict(arch: Arch, model: &str, text: &str) -> Verdict {
    let resolver = |name: &str| (name == "stdlib.cat").then(|| STDLIB.to_string());
    let mut sources = SourceMap::new();
    let judge = Judge::compile(&mut sources, arch, "m.cat", model, &resolver)
        .unwrap_or_else(|d| panic!("{}", d.render(&sources)));
    answer(text, &judge).answer.verdict
}

/// Returns true if a message may be lost: `writer` is between the stores, `reader` between the
/// loads.
fn power(writer: &str, reader: &[&str], last: &str) -> bool {
    let mut left = vec!["li r1,1", "stw r1,0(r2)"];
    if !writer.is_empty() {
        left.push(writer);
    }
    left.extend(["li r3,1", "stw r3,0(r4)"]);
    let mut right = vec!["lwz r1,0(r2)"];
    right.extend(reader);
    right.push(last);
    let mut rows = String::new();
    for i in 0..left.len().max(right.len()) {
        let of = |list: &[&str]| list.get(i).copied().unwrap_or("").to_string();
        rows += &format!("{} | {} ;\n", of(&left), of(&right));
    }
    let text = format!(
        "PPC mp\n{{ 0:r2=x; 0:r4=y; 1:r2=y; 1:r4=x; }}\nP0 | P1 ;\n{rows}exists (1:r1=1 /\\ 1:r5=0)\n"
    );
    match verdict(Arch::Power, POWER, &text) {
        Verdict::Ok => true,
        Verdict::No => false,
        Verdict::Unknown => panic!("{text}"),
    }
}

#[test]
fn power_orders_by_barriers_and_dependencies() {
    let load = "lwz r5,0(r4)";
    assert!(power("", &[], load));
    assert!(power("lwsync", &[], load));
    assert!(power("eieio", &[], load));
    for barrier in ["sync", "hwsync", "lwsync", "eieio"] {
        assert!(!power(barrier, &["lwsync"], load), "{barrier}");
        assert!(!power(barrier, &["xor r6,r1,r1"], "lwzx r5,r6,r4"), "{barrier}");
        assert!(power(barrier, &["cmpwi r1,0", "beq L", "L:"], load), "{barrier}");
        assert!(
            !power(barrier, &["cmpw cr1,r1,r1", "bne cr1,L", "L:", "isync"], load),
            "{barrier}"
        );
    }
}

#[test]
fn power_reserves_and_stores_conditionally() {
    let text = "PPC inc\n{ 0:r2=x; 1:r2=x; }\nP0 | P1 ;\nlwarx r1,r0,r2 | lwarx r1,r0,r2 ;\n\
                addi r3,r1,1 | addi r3,r1,1 ;\nstwcx. r3,r0,r2 | stwcx. r3,r0,r2 ;\n\
                bne E0 | bne E1 ;\nli r4,1 | li r4,1 ;\nE0: | E1: ;\n\
                exists (0:r4=1 /\\ 1:r4=1 /\\ not (x=2))\n";
    assert_eq!(verdict(Arch::Power, POWER, text), Verdict::No);
    // The head may have a quoted text without an end, and a thread may have its letter.
    let text = &text.replace("inc\n{ 0:", "inc\n\"Some text\nOrig=A\n{ P0:");
    let both = text.replace("not (x=2)", "x=2");
    assert_eq!(verdict(Arch::Power, POWER, &both), Verdict::Ok);
}

#[test]
fn armv7_reads_symbolic_registers() {
    let model = "ARM \"m\"\nlet fence = po; [DMB | DSB]; po\nlet dependency = addr | data | ctrl; [W]\n\
                 acyclic po-loc | rf | co | fr\nacyclic dependency | fence | rfe | fre | coe\n";
    let test = |middle: &str, last: &str| {
        let text = format!(
            "ARM mp\n{{ %x0=x; %y0=y; %x1=x; %y1=y; }}\nP0 | P1 ;\nMOV R0,#1 | LDR R0,[%y1] ;\n\
             STR R0,[%x0] | {middle} ;\nDMB | {last} ;\nMOV R1,#1 | ;\nSTR R1,[%y0] | ;\n\
             exists (1:R0=1 /\\ 1:R2=0)\n"
        );
        verdict(Arch::Arm, model, &text)
    };
    assert_eq!(test("NOP", "LDR R2,[%x1]"), Verdict::Ok);
    assert_eq!(test("DMB", "LDR R2,[%x1]"), Verdict::No);
    assert_eq!(test("EOR R3,R0,R0", "LDR R2,[R3,%x1]"), Verdict::No);
    assert_eq!(test("CMP R0,#1", "LDR R2,[%x1]"), Verdict::Ok);
    let branch =
        "ARM b\n{ 0:R0=-1; }\nP0 ;\nADDS R1,R0,#1 ;\nBCS L ;\nMOV R2,#1 ;\nL: ;\nforall (0:R2=0)\n";
    assert_eq!(verdict(Arch::Arm, model, branch), Verdict::Ok);
}

/// The result of a store-conditional depends on the value and the address of the instruction, as in
/// herd7 7.58.
#[test]
fn armv7_results_of_conditional_stores_depend_on_operands() {
    for code in [
        "ADD R5,R3,#1 | STR R3,[R8] ;\nSTREX R4,R5,[R8] | ;\nCMP R4,#0 | ;\nBNE L | ;\nSTR R1,[R9] | ;\nL: | ;",
        "ADD R5,R3,#1 | STR R3,[R8] ;\nSTREX R4,R5,[R8] | ;\nEOR R6,R4,R4 | ;\nSTR R1,[R6,R9] | ;",
        "EOR R7,R3,R3 | STR R3,[R8] ;\nADD R7,R7,R8 | ;\nMOV R5,#1 | ;\nSTREX R4,R5,[R7] | ;\nEOR R6,R4,R4 | ;\nSTR R1,[R6,R9] | ;",
    ] {
        let text = format!(
            "ARM t\n{{ 0:R8=x; 0:R9=y; 1:R8=x; 1:R9=y; 0:R1=1; x=0; y=0; }}\nP0 | P1 ;\n\
             LDREX R3,[R8] | LDR R3,[R9] ;\n{code}\nexists (0:R3=1 /\\ 1:R3=1)\n"
        );
        let report = answer(&text, &judge(Arch::Arm, "armv7"));
        assert_eq!(report.answer.verdict, Verdict::No, "{code}");
    }
}

/// `ANDS` sets N and Z, leaves V, and sets C only if its second operand is shifted (A8.8.13 of the
/// Arm manual). A branch depends on the flags that it tests.
#[test]
fn armv7_keeps_flags() {
    let weak = compile(Arch::Arm, "ARM \"m\"\nacyclic po-loc | rf | co | fr\n");
    let jumps = |code: &str, condition: &str| {
        let text = format!(
            "ARM t\n{{ 0:R1=1; 0:R2=0x80000000; 0:R3=0x40000000; }}\nP0 ;\n {code} ;\n B{condition} L ;\n \
             MOV R0,#1 ;\n L: ;\nforall (0:R0=0)\n"
        );
        answer(&text, &weak).answer.verdict == Verdict::Ok
    };
    for (code, holds, fails) in [
        // 1 - 0x80000000 overflows and borrows; 1 - 1 does neither.
        ("CMP R1,R2 ;\n ANDS R4,R1,R1", "VS", "CS"),
        ("CMP R1,R1 ;\n ANDS R4,R1,R1", "CS", "VS"),
        ("CMP R1,R1 ;\n ANDS R4,R1,R1", "NE", "EQ"),
        ("CMP R1,R2 ;\n ANDS R4,R1,#1", "LT", "GE"),
        ("CMP R1,R1 ;\n ANDS R4,R1,R1,LSL #1", "CC", "CS"),
        ("CMP R1,R2 ;\n ANDS R4,R1,R3,LSL #2", "CS", "CC"),
        ("CMP R1,R2 ;\n ANDS R4,R2,#0x80000000", "CS", "CC"),
        ("CMP R1,R1 ;\n ANDS R4,R2,#0x100", "CC", "HI"),
        ("CMP R1,R1 ;\n ADDS R4,R2,R2", "VS", "NE"),
    ] {
        assert!(jumps(code, holds), "{code}: {holds}");
        assert!(!jumps(code, fails), "{code}: {fails}");
    }
    let model = "ARM \"m\"\nacyclic po-loc | rf | co | fr\nacyclic ctrl; [W] | rfe | fre | coe\n";
    let lb = |tested: &str| {
        let text = format!(
            "ARM lb\n{{ 0:R8=x; 0:R9=y; 1:R8=x; 1:R9=y; }}\nP0 | P1 ;\nLDR R0,[R8] | LDR R0,[R9] ;\n\
             CMP R0,#1 | CMP R0,#1 ;\nANDS R2,R3,#1 | ANDS R2,R3,#1 ;\nB{tested} L | B{tested} L ;\nL: | L: ;\n\
             MOV R1,#1 | MOV R1,#1 ;\nSTR R1,[R9] | STR R1,[R8] ;\nexists (0:R0=1 /\\ 1:R0=1)\n"
        );
        verdict(Arch::Arm, model, &text)
    };
    assert_eq!(lb("EQ"), Verdict::Ok);
    assert_eq!(lb("CS"), Verdict::No);
}

#[test]
fn risc_v_compares_and_swaps_all_widths() {
    let test = |code: &str, condition: &str| {
        let text = format!(
            "RISCV t\n{{ int64_t x=0x1ff; 0:x6=x; int64_t 0:x7; }}\nP0 ;\n{code}forall ({condition})\n"
        );
        answer(&text, &default_judge(Arch::RiscV)).answer.verdict == Verdict::Ok
    };
    let load = "li x7,-1 ;\nli x8,5 ;\n";
    assert!(test(&format!("{load}amocas.b x7,x8,(x6) ;\n"), "x=0x105 /\\ 0:x7=-1"));
    assert!(test(&format!("{load}amocas.h.aqrl x7,x8,(x6) ;\n"), "x=0x1ff /\\ 0:x7=0x1ff"));
    assert!(test("li x7,0x1ff ;\nli x8,5 ;\namocas.d x7,x8,(x6) ;\n", "x=5 /\\ 0:x7=0x1ff"));
    assert!(test("li x8,1 ;\namoadd.b x7,x8,(x6) ;\n", "x=0x100 /\\ 0:x7=-1"));
    assert!(test("lui x7,1 ;\nsext.b x7,x7 ;\nzext.h x8,x7 ;\n", "0:x7=0 /\\ 0:x8=0"));
    // Both cannot replace the same value.
    let race = "RISCV r\n{ 0:x6=x; 1:x6=x; }\nP0 | P1 ;\nli x7,0 | li x7,0 ;\nli x8,1 | li x8,2 ;\n\
                amocas.w x7,x8,(x6) | amocas.w x7,x8,(x6) ;\nexists (0:x7=0 /\\ 1:x7=0)\n";
    assert_eq!(answer(race, &default_judge(Arch::RiscV)).answer.verdict, Verdict::No);
}

#[test]
fn x86_flushes_and_stores_without_the_cache() {
    let text = "X86_64 t\n{ int x=0; 0:rbx=x; }\nP0 ;\nendbr64 ;\nmovl $1,%eax ;\nmovnti %eax,(%rbx) ;\n\
                clflush (%rbx) ;\nclflushopt (%rbx) ;\nmovl (%rbx),%ecx ;\nforall (P0:rcx=1 /\\ x=1)\n";
    assert_eq!(answer(text, &default_judge(Arch::X86_64)).answer.verdict, Verdict::Ok);
}

#[test]
fn arrays_are_listed_and_compared_as_a_whole() {
    let text = "AArch64 t\n{ int x[2]={1,2}; 0:X1=x; 0:X2=3; }\nP0 ;\nSTR W2,[X1],#0 ;\n\
                locations [x;]\nforall (x={3,2} /\\ x!={1,2})\n";
    let report = answer(text, &default_judge(Arch::AArch64));
    assert_eq!(report.answer.verdict, Verdict::Ok);
    assert_eq!(report.answer.outcomes.len(), 1);
    let wrong = text.replace("x={3,2}", "x={3}");
    let error = mu_litmus::parse(
        mu_base::SourceId::FIRST,
        &wrong,
        mu_litmus::file::ParserOptions::default(),
    )
    .unwrap_err();
    assert!(error.message.contains("1 values for 2 elements"), "{error}");
}
