//! Tests of the names that models use and front ends provide: as in the herd tools, or rejected.

use super::{STDLIB, answer, compile, default_judge, outcomes};
use mu_base::SourceMap;
use mu_litmus::code::Arch;
use mu_litmus::judge::Judge;
use mu_program::outcome::Verdict;

/// The part of a library that builds read-modify-writes from sets of events.
const LIBRARY: &str = "let EX = try EX with domain 0\nlet X = try X with domain 0\n\
    let lxsx = [R & EX]; po \\ (po; [M & EX]; po); [W & EX]\n\
    let amo = [Exp & R & X]; (same-instance \\ id) & loc; [Exp & W & X] | [NExp & R]; iico_data & loc; [NExp & W]\n\
    let rmw = amo | lxsx\n";
const AXIOMS: &str =
    "acyclic po-loc | rf | co | fr as coherence\nempty rmw & (fre; coe) as atomicity\n";

fn increments(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => {
            "X86_64 inc\n{}\nP0 | P1 ;\nmovl $1,%eax | movl $2,%eax ;\nxchgl %eax,(x) | xchgl %eax,(x) ;\nexists (0:rax=1:rax)\n"
        }
        Arch::RiscV => {
            "RISCV inc\n{ 0:x6=x; 1:x6=x; 0:x5=1; 1:x5=1; }\nP0 | P1 ;\namoadd.w x7,x5,(x6) | lr.w x7,0(x6) ;\n | addi x8,x7,1 ;\n | sc.w x9,x8,0(x6) ;\n\
             exists (1:x9=0 /\\ x=1)\n"
        }
        _ => {
            "AArch64 inc\n{ 0:X6=x; 1:X6=x; 0:X5=1; 1:X5=1; }\nP0 | P1 ;\nLDADD W5,W7,[X6] | LDXR W7,[X6] ;\n | ADD W8,W7,#1 ;\n | STXR W9,W8,[X6] ;\n\
             exists (1:X9=0 /\\ x=1)\n"
        }
    }
}

#[test]
fn atomicity_holds_under_libraries_that_find_the_pairs_themselves() {
    for arch in [Arch::X86_64, Arch::RiscV, Arch::AArch64] {
        let test = increments(arch);
        let given = compile(arch, &format!("\"given\"\n{AXIOMS}"));
        let found = compile(arch, &format!("\"found\"\n{LIBRARY}{AXIOMS}"));
        assert_eq!(answer(test, &given).answer.verdict, Verdict::No, "{arch:?}");
        assert_eq!(outcomes(&answer(test, &found)), outcomes(&answer(test, &given)), "{arch:?}");
        // Without the axiom the outcome exists, so the test can fail.
        let without = compile(arch, "\"without\"\nacyclic po-loc | rf | co | fr\n");
        assert_eq!(answer(test, &without).answer.verdict, Verdict::Ok, "{arch:?}");
    }
}

/// In older libraries `X` includes exclusives; in newer ones, which use `EX`, it does not.
#[test]
fn exclusives_are_atomic_accesses_where_a_library_has_no_other_name() {
    let test = "RISCV order\n{ 0:x6=x; 0:x7=y; 1:x6=x; 1:x7=y; 0:x5=1; 1:x5=1; }\nP0 | P1 ;\n lr.w x8,0(x6) | lw x8,0(x7) ;\n sc.w x9,x5,0(x6) | fence rw,rw ;\n\
                sw x5,0(x7) | lw x9,0(x6) ;\nexists (0:x9=0 /\\ 1:x8=1 /\\ 1:x9=0)\n";
    let ordered = |sets: &str| {
        let text = format!(
            "\"{sets}\"\nlet ppo = po & ({sets} * W) | po & (R * R)\nacyclic ppo | rfe | co | fr\nacyclic po-loc | rf | co | fr\n"
        );
        answer(test, &compile(Arch::RiscV, &text)).answer.verdict == Verdict::No
    };
    assert!(ordered("X") && ordered("EX") && ordered("(EX | X)"));
    assert!(!ordered("(X \\ EX)") && !ordered("AMO"));
}

#[test]
fn names_that_executions_do_not_have_are_rejected_where_they_matter() {
    let refused = |arch: Arch, text: &str| {
        let resolver = |name: &str| (name == "stdlib.cat").then(|| STDLIB.to_string());
        let mut sources = SourceMap::new();
        Judge::compile(&mut sources, arch, "m.cat", text, &resolver)
            .err()
            .map(|d| (d.render(&sources), d.exit_code()))
    };
    let all = [Arch::X86_64, Arch::RiscV, Arch::AArch64, Arch::C];
    for arch in all {
        for name in ["B", "Rreg", "Wreg", "ADDR", "DATA", "BCC"] {
            let text = format!("\"m\"\nlet mine = [{name}]; po\nacyclic mine | rf as a\n");
            if arch != Arch::C {
                // Machine code has events of registers.
                assert_eq!(refused(arch, &text), None);
                continue;
            }
            let (message, code) = refused(arch, &text).unwrap_or_else(|| panic!("{name}"));
            assert!(
                message.contains("m.cat:2:13") && message.contains(&format!("`{name}`")),
                "{message}"
            );
            assert_eq!(code, 2);
            // `try` does not hide it, because the herd tools have the name.
            assert!(
                refused(arch, &format!("\"m\"\nlet mine = try {name} with W\nempty mine as a\n"))
                    .is_some(),
                "{name}"
            );
            // A definition that no axiom needs is accepted.
            assert_eq!(
                refused(arch, &format!("\"m\"\nlet mine = {name}\nacyclic rf as a\n")),
                None,
                "{name}"
            );
        }
        for name in ["iico_data", "iico_ctrl", "iico_order", "rf-reg"] {
            let answer = refused(arch, &format!("\"m\"\nacyclic {name} | rf as a\n"));
            assert_eq!(answer.is_some(), arch == Arch::C, "{name}");
        }
        for name in ["partial_po", "depend", "equiv-spec"] {
            assert!(
                refused(arch, &format!("\"m\"\nacyclic {name} | rf as a\n")).is_some(),
                "{name}"
            );
            assert!(
                refused(arch, &format!("\"m\"\nflag ~empty {name} as f\n")).is_some(),
                "{name}"
            );
        }
        assert!(refused(arch, "\"m\"\nempty Nonsense as a\n").is_some());
        // Features that user programs never use are empty, and so are the relations of their
        // events.
        assert_eq!(refused(arch, "\"m\"\nempty NExp as a\nempty [NExp]; iico_data as b\n"), None);
    }
    // Every access is explicit.
    let sets = compile(Arch::AArch64, "\"m\"\nempty (M \\ Exp) | (Exp \\ M) as a\n");
    let text =
        "AArch64 t\n{ 0:X1=x; }\nP0 ;\nLDR W2,[X1] ;\nDMB SY ;\nSTR W2,[X1] ;\nexists (0:X2=0)\n";
    assert_eq!(answer(text, &sets).answer.verdict, Verdict::Ok);
    assert!(default_judge(Arch::AArch64).mixed_sizes);
}

/// In models with a given `co`, as those of Dartagnan, the store of an update comes after the store
/// that it loads from, without an axiom of the model. The herd tools' models choose `co`.
#[test]
fn updates_store_after_they_load_where_orders_are_given() {
    let test = "X86_64 S\n{ }\nP0 | P1 ;\nmovl $2,(x) | movl (y),%eax ;\nmovl $1,%eax | movl $1,%ebx ;\n\
                xchgl %eax,(y) | xchgl %ebx,(x) ;\nexists (1:rbx=2 /\\ x=2)\n";
    let given = compile(Arch::X86_64, "\"given\"\nacyclic po-loc | rf | co | fr\n");
    assert_eq!(answer(test, &given).answer.verdict, Verdict::No);
    let chosen = "\"chosen\"\ninclude \"cos.cat\"\nacyclic po-loc | rf | co | fr\n";
    let resolver = |name: &str| mu_axioms::models::file(name);
    let judge =
        Judge::compile(&mut SourceMap::new(), Arch::X86_64, "m.cat", chosen, &resolver).unwrap();
    assert_eq!(answer(test, &judge).answer.verdict, Verdict::Ok);
}

/// Fences of Power have the names of the herd tools, and those of Dartagnan.
#[test]
fn fences_of_power_have_two_names() {
    for (name, fence) in
        [("SYNC", "sync"), ("LWSYNC", "lwsync"), ("EIEIO", "eieio"), ("ISYNC", "isync")]
    {
        let test = format!(
            "PPC t\n{{ 0:r2=x; }}\nP0 ;\nli r1,1 ;\nstw r1,0(r2) ;\n{fence} ;\nstw r1,0(r2) ;\nexists (x=1)\n"
        );
        for set in [name, fence] {
            let between = format!("\"m\"\nempty po; [{set}]; po as none\n");
            let found = answer(&test, &compile(Arch::Power, &between)).answer;
            assert_eq!(found.verdict, Verdict::No, "{set}");
        }
    }
}

/// An instruction without a lock may read a value that is later in coherence than its own write.
#[test]
fn halves_of_instructions_without_a_lock_have_no_order_of_their_own() {
    let test = "X86_64 D1\n{ int64_t x=1; }\nP0 | P1 ;\ndecq (x) | xchgq %rdx,(x) ;\n\
                locations [1:rdx; x;]\nexists (1:rdx=-1)\n";
    for model in [
        "acyclic rmw | rf | co | fr | po",
        "acyclic po-loc | amo | co | fr | rf",
        "acyclic rmw | rf | co | fr",
    ] {
        let judge = compile(Arch::X86_64, &format!("\"m\"\n{model}\n"));
        assert_eq!(outcomes(&answer(test, &judge)).len(), 4, "{model}");
    }
}
