//! Tests of code as data: jumps to the code of other threads, instructions as values, NZCV as a
//! system register, threads that return.

use super::{answer, default_judge, outcomes, parse_error};
use mu_litmus::code::Arch;
use mu_litmus::report::TestReport;
use mu_program::outcome::Verdict;

fn report(text: &str) -> TestReport {
    answer(text, &default_judge(Arch::AArch64))
}

/// Asserts that a test has one outcome, which makes its condition true.
fn holds(text: &str) {
    let report = report(text);
    let (verdict, count) = (report.answer.verdict, report.answer.outcomes.len());
    assert_eq!((verdict, count), (Verdict::Ok, 1), "{text}{}", report.answer.text());
}

/// A function of one thread that others call, with a register that only its own thread names.
#[test]
fn threads_call_functions_of_others() {
    holds(
        "AArch64 call\n{ 1:X9=P0:twice; 2:X9=P0:twice; }\n\
         P0           | P1        | P2        ;\n\
         MOV X1,#5    | MOV X1,#7 | MOV X1,#1 ;\n\
         BL twice     | BLR X9    | BLR X9    ;\n\
         B end        | BLR X9    | MOV X4,X1 ;\n\
         twice:       |           | MOV X1,#9 ;\n\
         MOV X7,X1    |           |           ;\n\
         ADD X1,X7,X1 |           |           ;\n\
         RET          |           |           ;\n\
         end:         |           |           ;\n\
         forall (0:X1=10 /\\ 1:X1=28 /\\ 2:X4=2 /\\ 2:X1=9)\n",
    );
    // The called code accesses memory for the caller: its own store comes first in its order.
    let report = report(
        "AArch64 own\n{ x=0; y=0; 0:X1=x; 0:X3=y; 1:X1=x; 1:X3=y; 0:X9=P1:read; }\n\
         P0          | P1          ;\n\
         MOV W2,#1   | B end       ;\n\
         STR W2,[X1] | read:       ;\n\
         BR X9       | LDR W4,[X1] ;\n\
                     | STR W4,[X3] ;\n\
                     | end:        ;\n\
         forall (0:X4=1 /\\ y=1)\n",
    );
    assert_eq!(report.answer.verdict, Verdict::Ok, "{}", report.answer.text());
}

/// A label that goes through memory; a jump through it falls off the end of the code.
#[test]
fn labels_go_through_memory() {
    let report = report(
        "AArch64 through\n{ uint64_t p; 0:X1=p; 0:X2=P0:one; 1:X1=p; }\n\
         P0          | P1          ;\n\
         STR X2,[X1] | LDR X2,[X1] ;\n\
         B end       | CBZ X2,none ;\n\
         one:        | BR X2       ;\n\
         MOV W5,#1   | none:       ;\n\
         end:        |             ;\n\
         locations [1:X5;] exists (1:X5=1)\n",
    );
    assert_eq!(report.answer.verdict, Verdict::Ok, "{}", report.answer.text());
    assert_eq!(report.answer.outcomes.len(), 2, "{}", report.answer.text());
}

#[test]
fn instructions_are_values() {
    for condition in [
        "0:X1=instr:\"b .+8\"",
        "0:X1=0:X2 /\\ 0:X3=1",
        "not (0:X1=instr:\"B .+4\") /\\ 0:X4=NOP /\\ 0:X5=instr:\"ADD W7, W7, 1\"",
    ] {
        holds(&format!(
            "AArch64 values\n{{ 0:X8=P1:jump; 0:X9=P1:add; 0:X2=instr:\"B .+8\"; 0:X4=NOP; ins_t 0:X1; ins_t 0:X5; }}\n\
             P0          | P1           ;\n\
             LDR W1,[X8] | jump:        ;\n\
             LDR W5,[X9] | B add        ;\n\
             CMP W1,W2   | MOV W7,#3    ;\n\
             CSET W3,EQ  | add:         ;\n\
                         | ADD W7,W7,#1 ;\n\
             forall ({condition})\n"
        ));
    }
    let shown = report(
        "AArch64 shown\n{ ins_t 0:X1; }\nP0 ;\nADR X0,L ;\nL: ;\nLDR W1,[X0] ;\n\
         locations [0:X1;] forall (true)\n",
    );
    assert!(outcomes(&shown).iter().any(|o| o.contains("instr:\"LDR W1,[X0]\"")));
}

/// Code cannot be written: such paths are left out, and no condition is decided by the others.
#[test]
fn stores_to_code_are_left_out() {
    for store in ["STR W2,[X0]", "SWP W2,W3,[X0]", "CAS W2,W3,[X0]"] {
        let report = report(&format!(
            "AArch64 write\n{{ 0:X2=instr:\"NOP\"; }}\nP0 ;\nADR X0,L ;\n{store} ;\nL: ;\nMOV W1,#1 ;\n\
             forall (0:X1=1)\n"
        ));
        assert_eq!(report.answer.verdict, Verdict::Unknown, "{store}");
    }
}

#[test]
fn flags_are_read_and_written_as_a_register() {
    holds(
        "AArch64 flags\n{ uint64_t 0:X0; uint64_t 0:X3; }\nP0 ;\n\
         CMP WZR,#0 ;\nMRS X0,NZCV ;\nMOV X1,#9 ;\nLSL X1,X1,#28 ;\nMSR NZCV,X1 ;\nCSET W2,MI ;\n\
         CSET W4,VS ;\nCSET W5,EQ ;\n\
         forall (0:X0=0x60000000 /\\ 0:X2=1 /\\ 0:X4=1 /\\ 0:X5=0)\n",
    );
    let error = parse_error("AArch64 other\n{ }\nP0 ;\nMRS X0,CNTVCT_EL0 ;\nforall (true)\n");
    assert!(error.message.contains("system registers"), "{error:?}");
}

/// A compiled function returns at its end, also before the last instruction.
#[test]
fn compiled_functions_return() {
    let text = "AArch64 returns\nVariant=telechat\n{ }\nP0 ;\nMOV W1,#1 ;\nRET ;\nMOV W1,#2 ;\n\
                forall (0:X1=1)\n";
    holds(text);
    let other = report(&text.replace("Variant=telechat\n", ""));
    assert_eq!(other.answer.verdict, Verdict::Unknown);
}

#[test]
fn registers_with_types_of_unknown_names_have_their_default_type() {
    holds("AArch64 typo\n{ unit64_t 0:X1=-1; }\nP0 ;\nADD X1,X1,#2 ;\nforall (0:X1=1)\n");
    let error = parse_error("AArch64 typo\n{ unit64_t x=1; }\nP0 ;\nNOP ;\nforall (x=1)\n");
    assert!(error.message.contains("`unit64_t`"), "{error:?}");
}
