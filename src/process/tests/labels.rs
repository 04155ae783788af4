//! Labels of files with declarations.

use mu_base::ids::LabelId;
use mu_process::labels::ActionLabels;
use mu_process::labels::declared::DeclaredLabels;
use mu_process::typecheck::check_specification;
use mu_syntax::parse_specification;

fn labels(declarations: &str, texts: &[&str]) -> Result<DeclaredLabels, String> {
    let text = format!("{declarations} init delta;");
    let spec = check_specification(&parse_specification(Default::default(), &text).unwrap());
    let spec = spec.unwrap();
    let texts: Vec<String> = texts.iter().map(|t| t.to_string()).collect();
    DeclaredLabels::new(&texts, spec.data, spec.actions).map_err(|e| e.message)
}

/// A label belongs to the only overload that has its arguments.
#[test]
fn arguments_select_the_overload_of_a_label() {
    for (declarations, expected) in [
        ("act a: Bool; a: Int; a: List(Nat);", [1, 0, 2]),
        ("act a: List(Int); a: Real; a: Bool;", [1, 2, 0]),
    ] {
        let labels = labels(declarations, &["tau", "a(-1)", "a(true)", "a([])"]).unwrap();
        let found = [1, 2, 3].map(|i| labels.multi_action(LabelId::new(i))[0].0.index());
        assert_eq!(found, expected, "{declarations}");
    }
}

/// The label of the action with an integer has the same text.
#[test]
fn labels_of_several_overloads_are_rejected() {
    for (declarations, label, actions) in [
        ("act a: Nat; a: Int;", "a(1)", "`a: Nat` and `a: Int`"),
        ("act a: Set(Nat); a: FSet(Nat);", "a({1})", "`a: Set(Nat)` and `a: FSet(Nat)`"),
        (
            "sort D = struct c(Nat); E = struct c(Int); act a: D; a: E;",
            "a(c(1))",
            "`a: D` and `a: E`",
        ),
    ] {
        let error = labels(declarations, &["tau", label]).err();
        assert_eq!(error, Some(format!("several actions match: {actions}")), "{declarations}");
    }
}
