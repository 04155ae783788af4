//! Labels of files with declarations.

use mu_base::ids::LabelId;
use mu_process::labels::ActionLabels;
use mu_process::labels::declared::DeclaredLabels;
use mu_process::typecheck::check_specification;
use mu_syntax::parse_specification;

/// A label belongs to the overload that a formula with the same text names: the one with the fewest
/// conversions, independent of the order of declarations.
#[test]
fn overloads_of_labels_are_those_of_formulas() {
    for (declarations, expected) in [
        ("act a: Int; a: Nat;", [1, 0, 1]),
        ("act a: Nat; a: Int;", [0, 1, 0]),
        ("act a: Real; a: Bool; a: Int;", [2, 2, 2]),
    ] {
        let text = format!("{declarations} init delta;");
        let spec = check_specification(&parse_specification(Default::default(), &text).unwrap());
        let spec = spec.unwrap();
        let texts = ["tau", "a(1)", "a(-1)", "a(0)"].map(String::from);
        let labels = DeclaredLabels::new(&texts, spec.data, spec.actions).unwrap();
        let found = [1, 2, 3].map(|i| labels.multi_action(LabelId::new(i))[0].0.index());
        assert_eq!(found, expected, "{declarations}");
    }
}
