//! Conditions and shown values of a caller: labels, their declarations, and errors.

use mu_base::{Diagnostic, SourceMap, Span};
use mu_model::{Model as _, Steps};
use mu_murphi::Settings;
use mu_murphi::additions::{Condition, ShownValue, read_with};
use mu_murphi::model::ProtocolModel;

const MODEL: &str = "type Node: scalarset(2); Value: 0..2; Kind: enum {A, B}; Both: union {Node, Kind};
var data: array [Node] of record v: Value; k: Kind; end; owner: Node;
startstate begin for n: Node do data[n].v := 0; data[n].k := A; end; end;
ruleset n: Node do
  rule \"take\" isundefined(owner) ==> begin owner := n; end;
  ruleset v: Value do rule \"set\" !isundefined(owner) & owner = n ==> begin data[n].v := v; end; end;
end;
ruleset b: Both do rule \"any\" true ==> begin end; end;";

fn model(
    conditions: &[(&str, &[(&str, &str)])],
    shown: &[ShownValue],
) -> Result<ProtocolModel, Diagnostic> {
    let mut sources = SourceMap::new();
    let source = sources.add("model.m", MODEL);
    let condition = |(n, (text, variables)): (usize, &(&str, &[(&str, &str)]))| Condition {
        name: format!("val_{}", n + 1),
        source,
        text: format!("[true*] {text}"),
        part: 8..8 + text.len(),
        variables: variables
            .iter()
            .map(|(name, ty)| (name.to_string(), ty.to_string(), Span::default()))
            .collect(),
    };
    let all: Vec<Condition> = conditions.iter().enumerate().map(condition).collect();
    let typed = read_with(source, MODEL, &Settings::default(), &all)?;
    ProtocolModel::with(typed, all.len(), shown)
}

/// Labels of the steps of all groups in the initial state.
fn labels(model: &ProtocolModel) -> Result<Vec<String>, Diagnostic> {
    let (state, mut worker) = (model.initial(), model.worker());
    let mut all = Vec::new();
    for (number, group) in model.groups().iter().enumerate() {
        let reads: Vec<u32> = group.reads.iter().map(|s| state[*s as usize]).collect();
        let mut steps = Steps::default();
        worker.steps(number, &reads, &mut steps)?;
        all.extend(steps.labels.iter().map(|l| model.label_text(*l)));
    }
    Ok(all)
}

#[test]
fn conditions_are_steps() {
    let conditions: [(&str, &[(&str, &str)]); 3] = [
        ("forall m: Node do data[m].v = 0 end", &[]),
        ("owner = n", &[("n", "Node")]),
        ("data[n].v >= w", &[("n", "Node"), ("w", "Value")]),
    ];
    let found = labels(&model(&conditions, &[]).expect("a model")).expect("no error");
    let has = |text: &str| found.iter().any(|l| l == text);
    assert!(has("val_1") && !has("not_val_1"), "{found:?}");
    // An undefined variable makes a condition false.
    assert!(has("not_val_2(Node_1)") && has("not_val_2(Node_2)") && !has("val_2(Node_1)"));
    assert!(has("val_3(Node_2, 0)") && has("not_val_3(Node_2, 1)") && !has("val_3(Node_1, 2)"));
    assert!(has("any(A)") && has("any(Node_2)") && has("take(Node_1)"), "{found:?}");
}

#[test]
fn declarations_type_all_labels() {
    let conditions: [(&str, &[(&str, &str)]); 1] = [("owner = n", &[("n", "Node")])];
    let text = model(&conditions, &[]).expect("a model").declarations();
    for line in [
        "sort Node = Both;",
        "sort Value = Nat;",
        "sort Kind = Both;",
        "sort Both = struct Node_1 | Node_2 | A | B;",
        "act set: Node # Nat;",
        "act take: Node;",
        "act any: Both;",
        "act val_1: Node;",
        "act not_val_1: Node;",
        "act error;",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
    assert!(!text.contains("sort Nat"), "{text}");
}

/// The label `r(1)` is of both rules: a formula about an integer matches each.
#[test]
fn rules_of_one_name_are_one_action() {
    let text = "var x: 0..5;
startstate begin x := 0; end;
ruleset n: 0..2; m: -1..1 do rule \"r\" x < 5 ==> begin x := x + 1; end; end;
ruleset n: -1..1; m: 0..2 do rule \"r\" x > 0 ==> begin x := x - 1; end; end;
ruleset n: 0..2 do rule \"r\" true ==> begin end; end;";
    let source = SourceMap::new().add("model.m", text);
    let typed = read_with(source, text, &Settings::default(), &[]).expect("a model");
    let model = ProtocolModel::with(typed, 0, &[]).expect("a model");
    let found = model.declarations();
    let actions: Vec<&str> = found.lines().filter(|l| l.starts_with("act r")).collect();
    assert_eq!(actions, ["act r: Nat;", "act r: Int # Int;"]);
}

#[test]
fn labels_show_values_of_variables() {
    let shown = |action: &str, parameters: &[&str], variable: &[&str]| ShownValue {
        action: action.into(),
        parameters: parameters.iter().map(|p| Some(p.to_string())).collect(),
        variable: variable.iter().map(|t| t.to_string()).collect(),
        span: Span::default(),
    };
    let data = ["data", "[", "p", "]", ".v"];
    let found = labels(&model(&[], &[shown("take", &["p"], &data)]).expect("a model")).expect("ok");
    assert!(found.contains(&"take(Node_1, 0)".to_string()), "{found:?}");
    let found = labels(&model(&[], &[shown("take", &["p"], &["owner"])]).expect("ok")).expect("ok");
    assert!(found.contains(&"take(Node_2, Node_2)".to_string()), "{found:?}");
    let wrong = model(&[], &[shown("take", &["p"], &["dota", "[", "p", "]", ".v"])]);
    assert!(wrong.err().expect("an error").message.contains("`dota[Node_1].v`"));
    // The value must exist after the rule.
    let undefined = model(&[], &[shown("any", &["p"], &["owner"])]).expect("a model");
    let Err(why) = labels(&undefined) else { panic!("an undefined value has no label") };
    assert!(why.message.contains("undefined"));
}

/// Exchanges of elements are permutations, and images of labels are labels.
#[test]
fn scalarsets_are_symmetries() {
    let model = model(&[("owner = n", &[("n", "Node")])], &[]).expect("a model");
    let [symmetry] = model.symmetries() else { panic!("{:?}", model.symmetries()) };
    let name = |s: u32| model.slots()[s as usize].name.clone();
    let slots = model.slots().iter().enumerate();
    for (at, slot) in slots {
        let image = name(symmetry.slots[at]);
        let expected = match slot.name.contains("Node_1") {
            true => slot.name.replace("Node_1", "Node_2"),
            false => slot.name.replace("Node_2", "Node_1"),
        };
        assert_eq!(image, expected);
    }
    let mut worker = model.worker();
    for n in 0..model.label_count() {
        let label = mu_base::ids::LabelId::new(n);
        let image = worker.image_label(0, label).expect("no error").expect("an image");
        let back = worker.image_label(0, image).expect("no error").expect("an image");
        assert_eq!(back, label);
        let changes = model.label_text(label).contains("Node_");
        assert_eq!(image != label, changes, "{}", model.label_text(label));
    }
    let owner = model.slots().iter().position(|s| s.name == "owner").expect("a slot") as u32;
    let images: Vec<u32> =
        (0..3).map(|v| worker.image(0, owner, v).expect("no error").expect("an image")).collect();
    assert_eq!(images, [0, 2, 1]);
}

/// Rules and invariants with different names have different labels, none of them reserved.
#[test]
fn labels_have_names_of_their_own() {
    let text = "var x: 0..9; startstate x := 0; end;
rule \"error\" true ==> begin end; rule \"violation\" true ==> begin end; rule \"tau\" true ==> begin end;
rule \"a-b\" true ==> begin end; rule \"a b\" true ==> begin end; rule \"a_b\" true ==> begin end;
rule \"a b\" true ==> begin end; rule \"rule 9\" true ==> begin end; rule true ==> begin end;
rule \"val_1\" true ==> begin end; rule \"??\" true ==> begin end; rule \"!!\" true ==> begin end;
invariant \"inv one\" x = 1; invariant \"inv-one\" x = 1;";
    let mut sources = SourceMap::new();
    let source = sources.add("model.m", text);
    let typed = mu_murphi::read(source, text, &Settings::default()).expect("a model");
    let model = ProtocolModel::new(typed.clone()).expect("a model");
    let found = labels(&model).expect("no error");
    let expected = [
        "error_2",
        "violation_2",
        "tau_2",
        "a_b",
        "a_b_2",
        "a_b_3",
        "a_b_2",
        "rule_9",
        "rule_9_2",
        "rule_val_1_2",
        "rule_",
        "rule__2",
        "violation(inv_one)",
        "violation(inv_one_2)",
    ];
    assert_eq!(found, expected);
    let numbered = [
        ("error", "error_2"),
        ("violation", "violation_2"),
        ("tau", "tau_2"),
        ("a b", "a_b_2"),
        ("a_b", "a_b_3"),
        ("val_1", "rule_val_1_2"),
        ("!!", "rule__2"),
    ];
    assert_eq!(model.numbered_actions(), numbered);

    // The translation has the same actions.
    let translation = mu_murphi::expand(&typed).expect("a translation");
    let actions = translation.split_once("\nact").expect("actions").1;
    for action in &expected[..12] {
        assert!(actions.contains(&format!("\n    {action};\n")), "{action}");
    }
}
