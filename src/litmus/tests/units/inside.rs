//! Tests of models that compute dependencies from events of registers: the result is compared with
//! the dependencies that the front end provides.

use super::{STDLIB, answer};
use mu_axioms::cat::CatModel;
use mu_base::SourceMap;
use mu_litmus::Judge;
use mu_litmus::code::Arch;
use mu_program::outcome::Verdict;

/// Dependencies through registers and memory, computed as Arm's model does, and the axioms that
/// they equal the given ones. `same-gpr` is the location of events of registers.
const COMPUTED: &str = r#"AArch64 "computed"
catdep
let same-gpr = [Rreg | Wreg]; loc; [Rreg | Wreg]
let last(s, r) = r \\ (r; [s]; r)
let lrrs = [Wreg]; last(Wreg, po & same-gpr); [Rreg]
let lmrs = [W]; last(W, po & loc); [R]
let rec flow = lrrs | lmrs | (iico_data+) | flow; flow
let iico_data = iico_data+
let my-data = [R]; (flow & po); [Rreg & DATA]; iico_data; [W]
let my-addr = [R]; (flow & po); [Rreg & ADDR]; iico_data; [M]
let my-ctrl = [R]; (flow & po); [Rreg]; iico_data; [BCC]; po; [M]
let forwarded = [W]; last(W, po-loc); [R]
let through = (addr | data | amo-data | forwarded)*
let equal-data = (([R]; through; data) \\ my-data) | (my-data \\ ([R]; through; data))
let equal-addr = (([R]; through; addr) \\ my-addr) | (my-addr \\ ([R]; through; addr))
let given-ctrl = [R]; through; ctrl; [M]
let equal-ctrl = (given-ctrl \\ my-ctrl) | (my-ctrl \\ given-ctrl)
flag ~empty equal-data as data-differs
flag ~empty equal-addr as addr-differs
flag ~empty equal-ctrl as ctrl-differs
flag ~empty rf-reg \\ lrrs as register-differs
acyclic po-loc | update | rf | co | fr
"#;

fn judge(text: &str) -> Judge {
    let resolver = |name: &str| (name == "stdlib.cat").then(|| STDLIB.to_string());
    let text = text.replace("\\\\", "\\");
    let mut sources = SourceMap::new();
    Judge::compile(&mut sources, Arch::AArch64, "computed.cat", &text, &resolver)
        .unwrap_or_else(|d| panic!("{}", d.render(&sources)))
}

/// Returns a thread of some instructions next to a thread that writes.
fn test(code: &[&str]) -> String {
    let mut rows = "P0 | P1 ;\n".to_string();
    let other = ["STR X0,[X1]", "STR X0,[X2]"];
    for i in 0..code.len().max(other.len()) {
        rows += &format!("{} | {} ;\n", code.get(i).unwrap_or(&""), other.get(i).unwrap_or(&""));
    }
    format!(
        "AArch64 t\n{{ int64_t x; int64_t y; int64_t z[2]; 0:X1=x; 0:X2=y; 0:X3=z; 0:X7=1; \
         1:X0=1; 1:X1=x; 1:X2=y; }}\n{rows}forall (true)\n"
    )
}

#[test]
fn computed_dependencies_are_the_given_ones() {
    let judge = judge(COMPUTED);
    for code in [
        &["LDR X4,[X1]", "STR X4,[X2]"][..],
        &["LDR X4,[X1]", "EOR X5,X4,X4", "LDR X6,[X2,X5]"],
        &["LDR X4,[X1]", "EOR X5,X4,X4", "STR X7,[X2,X5]"],
        &["LDR X4,[X1]", "CBNZ X4,L", "L:", "STR X7,[X2]", "LDR X6,[X1]"],
        &["LDR X4,[X1]", "CMP X4,#1", "B.NE L", "MOV X7,#2", "L:", "STR X7,[X2]"],
        &["LDR X4,[X1]", "STR X4,[X2]", "LDR X5,[X2]", "STR X5,[X1]"],
        &["LDR X4,[X1]", "ADDS X5,X4,#1", "STR X5,[X2],#0", "B.EQ L", "L:", "STR X7,[X1]"],
        &["LDP X4,X5,[X3]", "STP X5,X4,[X3]"],
        &["LDR X4,[X1]", "AND X4,X4,#8", "ADD X3,X3,X4", "STR X7,[X3],#8", "LDR X5,[X1]"],
        &["LDR X4,[X1]", "MOV X4,#0", "STR X4,[X2]"],
        &["LDADD X7,X4,[X1]", "STR X4,[X2]", "LDADD X4,X5,[X2]"],
    ] {
        let text = test(code);
        let report = answer(&text, &judge);
        assert_eq!(report.answer.verdict, Verdict::Ok, "{text}");
        assert!(report.answer.flags.is_empty(), "{:?}\n{text}", report.answer.flags);
    }
}

#[test]
fn a_model_that_takes_dependencies_as_given_has_no_events_of_registers() {
    let plain = COMPUTED
        .replace("catdep", "")
        .replace("flag ~empty equal-data", "flag ~empty Rreg")
        .replace("flag ~empty equal-addr", "flag ~empty (_ \\\\ (M | F | B))")
        .replace("flag ~empty equal-ctrl", "flag ~empty ([B]; loc)");
    let report = answer(&test(&["LDR X4,[X1]", "CBZ X4,L", "L:", "STR X4,[X2]"]), &judge(&plain));
    assert!(
        !report.answer.flags.iter().any(|f| f.ends_with("differs") && f != "register-differs"),
        "{:?}",
        report.answer.flags
    );
}

#[test]
fn names_of_other_features_are_empty() {
    let text = "AArch64 \"m\"\nempty [NExp & PTE]; iico_data; [W] as a\nempty PTEtoPA; po as b\n\
                empty different-values(W * W) & [TLBI] as c\nacyclic po-loc | rf | co | fr\n";
    assert!(!judge(text).inside);
    let resolver = |name: &str| (name == "stdlib.cat").then(|| STDLIB.to_string());
    let mut sources = SourceMap::new();
    let vocabulary = mu_axioms::Architecture::AArch64.vocabulary();
    assert!(CatModel::compile(&mut sources, "m.cat", text, &resolver, &vocabulary, &[]).is_ok());
}
