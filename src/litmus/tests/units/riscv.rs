//! Tests of RISC-V instructions by their results in one thread, and of fences by their orders.

use super::{answer, compile, default_judge};
use mu_base::SourceId;
use mu_litmus::code::Arch;
use mu_litmus::file::{ParserOptions, parse};
use mu_program::outcome::Verdict;

/// Returns true if all executions of some code end as in a condition.
fn always(initial: &str, code: &[&str], condition: &str) -> bool {
    let rows: String = code.iter().map(|line| format!("{line} ;\n")).collect();
    let text = format!("RISCV t\n{{ {initial} }}\nP0 ;\n{rows}forall ({condition})\n");
    match answer(&text, &default_judge(Arch::RiscV)).answer.verdict {
        Verdict::Ok => true,
        Verdict::No => false,
        Verdict::Unknown => panic!("{text}"),
    }
}

#[test]
fn abbreviations_compare_and_negate() {
    let long = "int64_t 0:x5; int64_t 0:x6; int64_t 0:x7; int64_t 0:x8;";
    for (value, condition) in [
        ("-3", "0:x6=1 /\\ 0:x7=0 /\\ 0:x8=3"),
        ("0", "0:x6=0 /\\ 0:x7=0 /\\ 0:x8=0"),
        ("7", "0:x6=0 /\\ 0:x7=1 /\\ 0:x8=-7"),
        // Words wrap, and results are extended by their sign.
        ("0x80000000", "0:x6=0 /\\ 0:x7=1 /\\ 0:x8=0xffffffff80000000"),
        ("0x100000001", "0:x6=0 /\\ 0:x7=1 /\\ 0:x8=-1"),
    ] {
        let load = format!("li x5,{value}");
        let code = [load.as_str(), "sltz x6,x5", "sgtz x7,x5", "negw x8,x5"];
        assert!(always(long, &code, condition), "{value}: {condition}");
    }
}

#[test]
fn jumps_lead_to_labels_and_addresses() {
    for (code, condition) in [
        (&["j L", "li x5,1", "L: addi x5,x5,2"][..], "0:x5=2"),
        (&["jal x0,L", "li x5,1", "L: addi x5,x5,2"], "0:x5=2 /\\ 0:x1=0"),
        (&["jal x6,L", "M: li x5,1", "L: addi x5,x5,2"], "0:x5=2 /\\ 0:x6=label:\"P0:M\""),
        (&["jal F", "addi x5,x5,2", "j E", "F: addi x5,x5,1", "ret", "E:"], "0:x5=3"),
        (&["call F", "addi x5,x5,2", "j E", "F: addi x5,x5,1", "jr ra", "E:"], "0:x5=3"),
        (&["call F", "addi x5,x5,2", "j E", "F: addi x5,x5,1", "jalr x0,0(x1)", "E:"], "0:x5=3"),
        // Target and link register are the same.
        (
            &["auipc x1,0", "jalr x1,x1,12", "N: li x5,1", "addi x5,x5,2"],
            "0:x5=2 /\\ 0:x1=label:\"P0:N\"",
        ),
        (
            &["auipc x6,0", "jalr 13(x6)", "N: li x5,1", "addi x5,x5,2"],
            "0:x5=2 /\\ 0:x1=label:\"P0:N\"",
        ),
        (&["auipc x6,0", "addi x6,x6,16", "jr x6", "li x5,1", "addi x5,x5,2"], "0:x5=2"),
        (&["L: auipc x6,0", "auipc x7,1", "sub x8,x7,x6"], "0:x6=label:\"P0:L\" /\\ 0:x8=4100"),
    ] {
        assert!(always("", code, condition), "{code:?} {condition}");
    }
    assert!(always("0:x6=P0:L;", &["jr x6", "li x5,1", "L:"], "0:x5=0"));
    // The address depends on a read: the path is a control dependency, as for a branch.
    assert!(always(
        "0:x6=x; 0:x7=P0:L; x=0;",
        &["lw x8,0(x6)", "add x7,x7,x8", "jalr x9,0(x7)", "li x5,1", "L:"],
        "0:x5=0"
    ));
}

/// Returns true if message passing may miss the first write.
fn may_miss(fence: &str) -> bool {
    let text = format!(
        "RISCV t\n{{ 0:x6=x; 0:x7=y; 1:x6=x; 1:x7=y; 0:x5=1; }}\nP0 | P1 ;\n\
         sw x5,0(x6) | lw x8,0(x7) ;\n{fence} | fence r,r ;\nsw x5,0(x7) | lw x9,0(x6) ;\n\
         exists (1:x8=1 /\\ 1:x9=0)\n"
    );
    answer(&text, &default_judge(Arch::RiscV)).answer.verdict == Verdict::Ok
}

#[test]
fn fences_order_memory_accesses_of_their_sets() {
    for (fence, ordered) in [
        ("nop", false),
        ("fence", true),
        ("fence w,w", true),
        ("fence ow,wo", true),
        ("fence iorw,iorw", true),
        ("fence wr,rw", true),
        ("fence w,r", false),
        ("fence r,w", false),
        // Devices alone: no memory access is before, or after.
        ("fence w,o", false),
        ("fence w,io", false),
        ("fence io,iorw", false),
        ("fence o,o", false),
    ] {
        assert_eq!(may_miss(fence), !ordered, "{fence}");
    }
}

#[test]
fn what_is_not_supported_has_a_message() {
    for (line, message) in [
        ("amocas.q x8,x6,(x10)", "a compare-and-swap of 16 bytes is not supported"),
        ("amocas.x x8,x6,(x10)", "the RISCV instruction `amocas.x` is not supported"),
        ("fence w,x", "`x` is no operand of `fence`"),
        ("fence ww,w", "`ww` is no operand of `fence`"),
        ("fence w", "the RISCV instruction `fence` is not supported"),
        ("jal x5,M", "there is no label `M`"),
        ("ecall", "the RISCV instruction `ecall` is not supported"),
    ] {
        let text = format!("RISCV t\n{{ 0:x10=x; }}\nP0 ;\n{line} ;\nforall (true)\n");
        let error = parse(SourceId::FIRST, &text, ParserOptions::default()).unwrap_err();
        assert!(error.message.contains(message), "{line}: {error}");
    }
}

#[test]
fn a_compare_and_swap_that_fails_does_not_release() {
    // P0 writes x, then swaps y, which P1 reads in order with its read of x.
    for (swap, misses) in [
        ("amocas.w.rl x5,x6,(x11)", false),
        ("amocas.w.rl x7,x6,(x11)", true),
        ("amocas.w.aq.rl x7,x6,(x11)", true),
        ("amocas.d.rl x5,x6,(x11)", false),
        ("amocas.d.rl x7,x6,(x11)", true),
    ] {
        // A failed swap reads y before the write of x: P1 writes y after it has missed x.
        let result = swap.split([' ', ',']).nth(1).unwrap();
        let text = format!(
            "RISCV t\n{{ int64_t y; 0:x10=x; 0:x11=y; 1:x10=x; 1:x11=y; 0:x7=5; 0:x6=1; 1:x6=2; \
             0:x4=1; }}\nP0 | P1 ;\nsw x4,0(x10) | sd x6,0(x11) ;\n{swap} | fence rw,rw ;\n \
             | lw x8,0(x10) ;\nexists (1:x8=0 /\\ 0:{result}=0)\n"
        )
        .replace("int64_t y", if swap.contains(".d") { "int64_t y" } else { "int y" })
        .replace("sd x6", if swap.contains(".d") { "sd x6" } else { "sw x6" });
        let verdict = answer(&text, &default_judge(Arch::RiscV)).answer.verdict;
        assert_eq!(verdict == Verdict::Ok, misses, "{text}");
    }
}

/// An atomic memory operation has one place in the global memory order: what precedes its write
/// precedes what follows its read. herd7 7.58 allows no outcome either.
#[test]
fn an_atomic_operation_is_one_operation() {
    let ordered = ["fence r,w ;\n | amoswap.w x7,x5,(x22)", "amoadd.w x7,x6,(x22) ;\n | nop"];
    for code in ordered.into_iter().chain([
        "bne x6,x0,L ;\n | L: amoswap.w x7,x5,(x22)",
        "fence r,w ;\n | amocas.w x7,x5,(x22)",
    ]) {
        let text = format!(
            "RISCV MPA\n{{ 0:x20=x; 0:x21=y; 1:x20=x; 1:x21=y; 1:x22=z; 0:x5=1; 1:x5=1; }}\n\
             P0 | P1 ;\nsw x5,0(x20) | lw x6,0(x21) ;\nfence w,w | {code} ;\n\
             sw x5,0(x21) | xor x8,x7,x7 ;\n | add x9,x20,x8 ;\n | lw x10,0(x9) ;\n\
             exists (1:x6=1 /\\ 1:x10=0)\n"
        );
        let own = answer(&text, &default_judge(Arch::RiscV));
        assert_eq!(own.answer.verdict, Verdict::No, "{code}");
    }
    // A model that gives the read and the write of an update places of their own needs two events.
    let blind = "RISCV b\nempty rmw & ((fr & ext); (co & ext)) as atomic\n";
    assert!(compile(Arch::RiscV, blind).pairs && !default_judge(Arch::RiscV).pairs);
}
