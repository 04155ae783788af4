//! Formulas on models that cannot be explored: the modalities of a formula supply values that a sum
//! leaves open, and a formula that needs no step evaluates no condition.

use crate::support::mu_check;

/// Verdict, as the exit code gives it.
fn code(model: &str, formula: &str) -> i32 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.mcrl2");
    std::fs::write(&path, model).unwrap();
    mu_check(&[path.to_str().unwrap(), "-f", formula]).code
}

#[test]
fn modalities_supply_the_values_of_sums() {
    let model = "act pick: Nat; proc Q(last: Nat) = sum k: Nat. pick(k) . Q(k); init Q(7);";
    for (formula, expected) in [
        ("<pick(3)>true", 0),
        ("[pick(3)]false", 1),
        ("[pick(3)]<pick(5)>true", 0),
        ("<pick(3) . pick(0)>[pick(1)]false", 1),
        ("exists k: Nat. <pick(k)>true", 0),
        ("forall k: Nat. [pick(k)]false", 1),
        ("<exists k: Nat. pick(k)>true", 0),
        ("nu X(k: Nat = 1). val(k < 4) => <pick(k)>X(k + 1)", 0),
        ("mu X(k: Nat = 1). val(k > 4) || [pick(k)]X(k + 1)", 0),
        ("!true", 1),
        ("[true*]true", 0),
    ] {
        assert_eq!(code(model, formula), expected, "{formula}");
    }
    // All successors are needed, of which there are infinitely many.
    let upwards =
        "act pick: Nat; proc Q(last: Nat) = sum k: Nat. (k > last) -> pick(k) . Q(k); init Q(7);";
    assert_eq!(code(upwards, "mu X. [true]X"), 2);
    assert_eq!(code(upwards, "<pick(8)>[pick(8)]false"), 0);
}

/// Modalities with quantifiers decide sums over every sort, as sums over numbers.
#[test]
fn quantifiers_in_modalities_decide_sums_of_all_sorts() {
    let sorts = "sort T = struct leaf | node(left: T, mark: Bool); P = struct p(x: Nat, y: Int);
        U; cons u, v: U; sort V; map w: V;";
    for sort in [
        "Real",
        "List(Nat)",
        "List(Bool)",
        "FSet(Nat)",
        "Set(Nat)",
        "FBag(Pos)",
        "Bag(Nat)",
        "Bool -> Nat",
        "Nat -> Bool",
        "T",
        "P",
        "U",
        "V",
        "List(P)",
    ] {
        let model = format!("{sorts} act a: {sort}; b; init sum m: {sort}. a(m) . b;");
        for (formula, expected) in [
            (format!("<exists m: {sort}. a(m)>true"), 0),
            (format!("[exists m: {sort}. a(m)]false"), 1),
            (format!("<forall m: {sort}. !a(m)>true"), 1),
            (format!("[exists m: {sort}. a(m)]<b>true"), 0),
            (format!("<exists m: {sort}. a(m)>[b]false"), 1),
        ] {
            assert_eq!(code(&model, &formula), expected, "{model} {formula}");
        }
    }
}

#[test]
fn formulas_without_steps_need_no_condition() {
    let model = "map f: List(Nat) -> Nat; var n: Nat; l: List(Nat); eqn f(n |> l) = n;
act go; proc P(l: List(Nat)) = (f(l) == 1) -> go . P(l); init P([]);";
    assert_eq!(code(model, "mu X. X"), 1);
    assert_eq!(code(model, "nu X. X"), 0);
    assert_eq!(code(model, "<go>true"), 2);
}
