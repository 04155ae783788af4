//! Tests of Arm's model of atomic instructions, barriers and dependencies: each test is message
//! passing: the first thread ends with a release store, the second one varies.

use super::{answer, default_judge, outcomes};
use mu_litmus::code::Arch;
use mu_program::outcome::Verdict;

/// Returns true if the second thread may read the release of `f` and miss the store to `d` before
/// it.
fn misses(code: &[&str], condition: &str) -> bool {
    let mut rows = "P0 | P1 ;\n".to_string();
    let writer = ["MOV W0,#1", "STR W0,[X1]", "STLR W0,[X2]"];
    for i in 0..writer.len().max(code.len()) {
        rows += &format!("{} | {} ;\n", writer.get(i).unwrap_or(&""), code.get(i).unwrap_or(&""));
    }
    let text = format!(
        "AArch64 mp\n{{ s=1; 0:X1=d; 0:X2=f; 1:X1=d; 1:X2=f; 1:X3=s; 1:X7=1; }}\n{rows}exists ({condition})\n"
    );
    match answer(&text, &default_judge(Arch::AArch64)).answer.verdict {
        Verdict::Ok => true,
        Verdict::No => false,
        Verdict::Unknown => panic!("{text}"),
    }
}

const SEEN: &str = "1:X9=1 /\\ 1:X10=0";

#[test]
fn a_read_without_result_is_not_ordered_by_a_load_barrier() {
    let last = "LDR W10,[X1]";
    for barrier in ["DMB LD", "DSB LD", "DMB ISHLD"] {
        assert!(!misses(&["SWP W7,W9,[X2]", barrier, last], SEEN), "{barrier}");
        for atomic in [
            "SWP W7,WZR,[X2]",
            "LDADD W7,WZR,[X2]",
            "STADD W7,[X2]",
            "LDCLR WZR,WZR,[X2]",
            "CAS WZR,W7,[X2]",
        ] {
            // The atomic reads the release: 1 becomes 2, or stays and is overwritten.
            let code = [atomic, barrier, last, "LDR W9,[X2]"];
            assert!(misses(&code, "1:X10=0 /\\ not (1:X9=0)"), "{atomic} {barrier}");
        }
    }
    // A full barrier orders it, and so does an acquire with a result.
    assert!(!misses(&["LDADD W7,WZR,[X2]", "DMB SY", last, "LDR W9,[X2]"], "1:X9=2 /\\ 1:X10=0"));
    assert!(!misses(&["LDADDA W7,W9,[X2]", last], SEEN));
    assert!(misses(&["LDADDA W7,WZR,[X2]", last, "LDR W9,[X2]"], "1:X9=2 /\\ 1:X10=0"));
    assert!(misses(&["CASA WZR,W7,[X2]", last, "LDR W9,[X2]"], "not (1:X9=0) /\\ 1:X10=0"));
}

#[test]
fn a_store_barrier_that_waits_orders_later_loads() {
    let sb = |barrier: &str| {
        let text = format!(
            "AArch64 sb\n{{ 0:X1=a; 0:X2=b; 1:X1=b; 1:X2=a; 0:X0=1; 1:X0=1; }}\nP0 | P1 ;\nSTR W0,[X1] | STR W0,[X1] ;\n\
             {barrier} | {barrier} ;\nLDR W3,[X2] | LDR W3,[X2] ;\nexists (0:X3=0 /\\ 1:X3=0)\n"
        );
        answer(&text, &default_judge(Arch::AArch64)).answer.verdict == Verdict::Ok
    };
    assert!(sb("DMB ST") && sb("DMB LD") && sb("DSB LD"));
    assert!(!sb("DSB ST") && !sb("DMB SY") && !sb("DSB ISHST"));
}

/// The comparison of a compare-and-swap orders its write. But its result may come from the expected
/// value, and a later load from its write is not ordered by it.
#[test]
fn a_comparison_is_a_weak_dependency() {
    let through = [
        "LDR W9,[X2]",
        "MOV W5,W9",
        "CAS W5,W6,[X3]",
        "LDR W8,[X3]",
        "EOR W8,W8,W8",
        "LDR W10,[X1,W8,SXTW]",
    ];
    assert!(misses(&through, SEEN));
    // A written value propagates its dependencies.
    let data = [
        "LDR W9,[X2]",
        "EOR W5,W9,W9",
        "STR W5,[X3]",
        "LDR W8,[X3]",
        "EOR W8,W8,W8",
        "LDR W10,[X1,W8,SXTW]",
    ];
    assert!(!misses(&data, SEEN));
    // An addition depends on what it reads, an exchange does not.
    let own = |atomic: &'static str| {
        [atomic, "LDR W8,[X2]", "EOR W8,W8,W8", "LDR W10,[X1,W8,SXTW]", "NOP"]
    };
    assert!(!misses(&own("LDADD W7,W9,[X2]"), SEEN));
    assert!(misses(&own("SWP W7,W9,[X2]"), SEEN));
    // The write of an exchange is ordered by a branch, and a later acquire of its value is not.
    let pair =
        ["LDR W9,[X2]", "CBNZ W9,L", "L:", "SWP WZR,WZR,[X3]", "LDAPR W8,[X3]", "LDR W10,[X1]"];
    assert!(misses(&pair, SEEN));
    // Load buffering: a branch on the result of a compare-and-swap that reads its own write.
    let lb = "AArch64 lb\n{ 0:X1=a; 0:X2=b; 1:X1=b; 1:X2=a; 0:X3=0; 0:X4=2; 1:X4=1; }\nP0 | P1 ;\nCAS W3,W4,[X1] | LDR W5,[X1] ;\n\
              LDR W6,[X1] | DMB SY ;\nCBNZ W6,L | STR W4,[X2] ;\nL: | ;\nMOV W7,#1 | ;\nSTR W7,[X2] | ;\nexists (0:X3=1 /\\ 1:X5=1)\n";
    assert_eq!(answer(lb, &default_judge(Arch::AArch64)).answer.verdict, Verdict::No);
}

/// A failed compare-and-swap may write back the value that it reads, which is not observable.
#[test]
fn a_failed_compare_and_swap_changes_no_value() {
    let text = "AArch64 cas\n{ a=5; 0:X1=a; 1:X1=a; 0:X2=1; 0:X3=2; 1:X3=7; }\nP0 | P1 ;\nCAS W2,W3,[X1] | STR W3,[X1] ;\nlocations [0:X2; a;]\n";
    let list = outcomes(&answer(text, &default_judge(Arch::AArch64)));
    assert_eq!(
        list.iter().map(String::as_str).collect::<Vec<_>>(),
        ["0:X2=5; [a]=7;", "0:X2=7; [a]=7;"]
    );
}
