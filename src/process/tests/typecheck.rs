//! Type checker of processes: accepted, completed and rejected input.

use mu_base::Diagnostic;
use mu_data::expr::ExprKind;
use mu_process::spec::{ProcKind, ProcSpec};
use mu_process::typecheck::check_specification;
use mu_syntax::parse_specification;

fn check(text: &str) -> Result<ProcSpec, Diagnostic> {
    check_specification(
        &parse_specification(Default::default(), text).unwrap_or_else(|e| panic!("{text}: {e:?}")),
    )
}

#[test]
fn accepted_and_refused() {
    let cases = [
        ("act a; init a;", ""),
        ("act a; init a . b;", "`b` is declared neither as an action nor as a process"),
        ("act a: Nat; init a(1);", ""),
        ("act a: Nat; init a(-1);", "argument 1 of action `a` has sort Int, where Nat is expected"),
        ("act a: Nat; init a;", "action `a` has 1 parameter, but none is given"),
        ("act a: Nat; a: Bool; init a([]);", "no action `a` matches arguments of sorts (List(?))"),
        ("act a: Nat; a: Nat;  init a(1);", "action `a`: Nat is declared twice"),
        ("act a; proc a = delta; init a;", "`a` is declared as an action and as a process"),
        ("act a; init a();", "action `a` is written without parentheses"),
        ("act a;", "the specification has no `init`"),
        (
            "act a; proc P = a . P; P = a; init P;",
            "process `P` (without parameters) is declared twice",
        ),
        ("act a; proc P(n: Nat) = a . P(n + 1); P(b: Bool) = a; init P(0) || P(true);", ""),
        ("act a; proc P(n: Nat, b: Bool) = a . P(n = n + 1) + a . P(); init P(0, true);", ""),
        ("act a; proc P(n: Nat, b: Bool) = a . P(); Q(n: Nat) = a . P(b = false); init Q(1);", ""),
        (
            "act a; proc P(n: Nat, b: Bool) = a; Q(n: Nat) = a . P(); init Q(1);",
            "parameter `b` of process `P` has no value here",
        ),
        (
            "act a; proc P(n: Nat) = a; Q(n: Pos) = a . P(); init Q(1);",
            "parameter `n` of process `P` has no value here",
        ),
        ("act a; proc P(n: Nat) = a; init P();", "parameter `n` of process `P` has no value here"),
        ("glob n: Nat; act a; proc P(n: Nat) = a; init P();", ""),
        ("act a; proc P(n: Nat) = a . P(m = 1); init P(1);", "process `P` has no parameter `m`"),
        (
            "act a; proc P(n: Nat) = a . P(n = 1, n = 2); init P(1);",
            "parameter `n` is assigned twice",
        ),
        ("act a; proc P(n: Nat, n: Bool) = a; init P(1, true);", "variable `n` is declared twice"),
        ("act a: Nat; init sum n: Nat. (n < 3) -> a(n) <> delta;", ""),
        ("act a: Nat; init (sum n: Nat. a(n)) . a(n);", "`n` is not declared"),
        ("act a: Nat; init (1) -> a(1);", "expression of sort Pos, where Bool is expected"),
        ("act a: Nat; init a(1) @ 3 + delta @ (5 / 2);", ""),
        ("act a: Bool; init dist b: Bool [if(b, 1 / 4, 3 / 4)] . a(b);", ""),
        (
            "act a: Bool; init dist b: Bool [b] . a(b);",
            "expression of sort Bool, where Real is expected",
        ),
        ("act a, b, c; init allow({a|b, c}, comm({a|b -> c}, a || b));", ""),
        ("act a, b, c; init allow({d}, a);", "action `d` is not declared"),
        ("act a, b, c; init hide({d}, a);", "action `d` is not declared"),
        (
            "act a, b, c; init comm({a|b -> c, a|c -> b}, a);",
            "action `a` occurs on the left of two communications",
        ),
        (
            "act a, b, c, d; init comm({a|b -> c, c|d -> a}, a);",
            "results from a communication and takes part in another",
        ),
        ("act a, b; init comm({a|a -> a}, a || b);", ""),
        (
            "act a: Nat; b, c; init comm({a|b -> c}, b);",
            "the actions of this communication have no sorts in common",
        ),
        ("act a, b: Nat; c: Nat; init comm({a|b -> c}, a(1) || b(1));", ""),
        ("act a, b; init rename({a -> b, a -> b}, a);", "action `a` is renamed twice"),
        ("act a; b: Nat; init rename({a -> b}, a);", "their sorts differ"),
        ("act a; proc P = Q; init P;", "`Q` is declared neither"),
        ("act observe; init obsreve;", "`obsreve` is declared neither"),
    ];
    for (text, expected) in cases {
        match check(text) {
            Ok(_) => assert!(expected.is_empty(), "{text}: no error, expected {expected}"),
            Err(e) => assert!(
                !expected.is_empty() && e.message.contains(expected),
                "{text}: expected {expected}, found {}",
                e.message
            ),
        }
    }
}

#[test]
fn assignments_are_completed() {
    let spec =
        check("act a; proc P(n: Nat, b: Bool) = sum n: Nat. a . P(b = n > 1); init P(0, true);")
            .unwrap();
    let ProcKind::Sum(vars, body) = &spec.procs[0].body.kind else { panic!() };
    let ProcKind::Seq(_, call) = &body.kind else { panic!() };
    let ProcKind::Call(_, args) = &call.kind else { panic!() };
    // The equation's own parameter, not the sum variable of the same name; the condition uses the
    // latter.
    assert_eq!(args[0].kind, ExprKind::Var(spec.procs[0].params[0]));
    let mut free = Vec::new();
    args[1].free_vars(&mut free);
    assert_eq!(free, *vars);
}

#[test]
fn deep_processes() {
    let text = format!("act a; init {}a;", "a + ".repeat(20_000));
    assert!(check(&text).is_ok());
}

#[test]
fn notes_list_candidates() {
    let e = check("act send: Nat # Bool; send: Bool; init send([1], 2);").unwrap_err();
    assert_eq!(e.notes, ["candidate: send: Nat # Bool", "candidate: send: Bool"]);
    let e = check("act observe; init obsreve;").unwrap_err();
    assert_eq!(e.notes, ["similar names: observe"]);
}
