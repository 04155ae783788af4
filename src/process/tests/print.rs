//! Printed linear processes can be parsed again.

use mu_process::linear::LinearProcess;
use mu_process::linearise::{LineariserOptions, linearise};
use mu_process::print::{linear_process, parameter_names};
use mu_process::typecheck::check_specification;
use mu_syntax::parse_specification;

const MODEL: &str = "sort Message = struct m1 | m2(value: Nat)?is_m2;
    act send, receive, deal: Message; out: Nat; out: Pos; tick;
    glob g: Nat;
    proc Sender(n: Nat) = sum m: Message. (is_m2(m) => value(m) < n) -> send(m) . Sender(n + 1) + tick . Sender(n);
    Receiver(n: Nat, b: Bool) = sum m: Message. receive(m) . (out(n) | tick . Receiver(n, !b) <> delta);
    init hide({deal}, allow({deal, tick, out|tick}, comm({send|receive -> deal}, Sender(1) || Receiver(0, true))));";

#[test]
fn printed_processes_are_linear_again() {
    for text in [
        MODEL,
        "act a; init a . delta;",
        "init tau;",
        "init delta;",
        "act P: Nat; proc X(n: Nat) = P(n) . X(n + 1); init X(0);",
    ] {
        let text = text.replace(" <> delta", "");
        let spec =
            check_specification(&parse_specification(Default::default(), &text).unwrap()).unwrap();
        let linear = linearise(&spec, &LineariserOptions::default()).unwrap();
        let printed = linear_process(&linear);
        let again = check_specification(
            &parse_specification(Default::default(), &printed)
                .unwrap_or_else(|e| panic!("{printed}\n{e:?}")),
        )
        .unwrap_or_else(|e| panic!("{printed}\n{e:?}"));
        assert_eq!(again.procs.len(), 1);
        let header = printed
            .lines()
            .find(|l| l.trim_start().starts_with('P') && l.contains(": ") && l.ends_with('='))
            .unwrap_or("");
        assert!(
            parameter_names(&linear).iter().all(|n| header.contains(&format!("{n}: "))),
            "{printed}"
        );
        assert_eq!(again.procs[0].params.len(), linear.params.len());
        let twice = linearise(&again, &LineariserOptions::default()).unwrap();
        let actions = |p: &LinearProcess| {
            let mut all: Vec<Vec<String>> = p
                .summands
                .iter()
                .map(|s| {
                    s.actions.iter().map(|a| p.actions[a.action.index()].name.clone()).collect()
                })
                .collect();
            all.sort();
            all
        };
        assert_eq!(actions(&linear), actions(&twice), "{printed}");
    }
}

#[test]
fn hidden_actions_are_printed() {
    let text = MODEL.replace(" <> delta", "");
    let spec =
        check_specification(&parse_specification(Default::default(), &text).unwrap()).unwrap();
    let printed = linear_process(&linearise(&spec, &LineariserOptions::default()).unwrap());
    assert!(printed.contains("% hides deal(m"), "{printed}");
}

/// A parameter that is not live has no value, nor has a set of it. Repeated intersection makes the
/// set grow without bound, and so does its evaluation.
#[test]
fn sets_of_placeholders_are_no_obstacle() {
    let text =
        "sort E = struct e1 | e2 | e3; D = struct d1 | d2; map from: D -> E; var d: D; eqn from(d) = if(d == d1, e2, e3); act a, b, c;
        proc Q(d: D, w: Set(E)) = a . Q(d2, {e2, e3} - {from(d)}) + b . c . Q(d2, (w * w) * (w * {e2, e3}));
        init a . Q(d1, {});";
    for text in [
        text.to_string(),
        text.replace("Set(E)", "Bag(E)")
            .replace("{e2, e3}", "{e2: 1, e3: 2}")
            .replace("{from(d)}", "{from(d): 1}")
            .replace("{})", "{:})"),
    ] {
        let spec =
            check_specification(&parse_specification(Default::default(), &text).unwrap()).unwrap();
        assert_eq!(
            linearise(&spec, &LineariserOptions::default()).unwrap().summands.len(),
            4,
            "{text}"
        );
    }
}
