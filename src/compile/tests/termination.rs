//! Ends of small specifications: successful terminations and deadlocks.

use mu_compile::{Compiled, Confluence};
use mu_model::deadlock::{End, Obstacle};
use mu_model::{Model, Steps};
use mu_process::linearise::{LineariserOptions, linearise};
use mu_process::typecheck::check_specification;
use mu_syntax::parse_specification;

fn compile_text(text: &str) -> Compiled {
    let spec = check_specification(&parse_specification(Default::default(), text).unwrap());
    let process = linearise(&spec.unwrap(), &LineariserOptions::default()).unwrap();
    Compiled::new(process, &Confluence::None).unwrap()
}

/// Returns the labels of the only run of a specification, and the kind of its end.
fn run(text: &str) -> (Vec<String>, End) {
    let model = compile_text(text);
    let mut worker = model.worker();
    let (mut state, mut labels) = (model.initial(), Vec::new());
    loop {
        let mut next = Vec::new();
        for (i, group) in model.groups().iter().enumerate() {
            if group.requires.iter().any(|(slot, value)| state[*slot as usize] != *value) {
                continue;
            }
            let reads: Vec<u32> = group.reads.iter().map(|s| state[*s as usize]).collect();
            let mut steps = Steps::default();
            worker.steps(i, &reads, &mut steps).unwrap();
            for (k, label) in steps.labels.iter().enumerate() {
                let mut target = state.clone();
                for (j, slot) in group.writes.iter().enumerate() {
                    target[*slot as usize] = steps.values[k * group.writes.len() + j];
                }
                next.push((model.label_text(*label), target));
            }
        }
        let Some((label, target)) = next.pop() else { break };
        assert!(next.is_empty(), "{text}: one run");
        labels.push(label);
        state = target;
    }
    let mut ends = model.deadlock_explainer(&[]).unwrap().unwrap();
    (labels, ends.end(&state).unwrap())
}

/// An action of the specification with the name of the termination is one: a linear process that
/// is printed and read again has it.
#[test]
fn an_action_named_as_the_termination() {
    let (labels, end) = run("act Terminate, a; init a . Terminate . delta;");
    assert_eq!((labels, end), (["a", "Terminate"].map(String::from).into(), End::Terminated));
    let (labels, end) = run("act Terminate, a; init a . Terminate;");
    assert_eq!(
        (labels, end),
        (["a", "Terminate", "Terminate"].map(String::from).into(), End::Terminated)
    );
    let (_, end) = run("act Terminate; Terminate: Bool; init Terminate(true) . delta;");
    assert!(end.is_deadlock(), "{end:?}");
    let (labels, end) = run("act a; init a;");
    assert_eq!((labels, end), (["a", "Terminate"].map(String::from).into(), End::Terminated));
    let (labels, end) = run("act a; init a . delta;");
    assert_eq!(labels, ["a"]);
    assert!(end.is_deadlock(), "{end:?}");
}

/// A partner that offers many values offers each of them.
#[test]
fn offers_of_many_values() {
    let obstacle = |values: &str| {
        let model = compile_text(&format!(
            "act s, r, c: Nat; proc S = s(50) . S; R = sum n: Nat. ({values}) -> r(n) . R;
             init allow({{}}, comm({{s|r -> c}}, R || S));"
        ));
        let model = &model;
        let mut explainer = model.deadlock_explainer(&[]).unwrap().unwrap();
        let report = explainer.report(&model.initial()).unwrap();
        report.components.into_iter().nth(1).unwrap().offers.remove(0).obstacles.remove(0)
    };
    for values in ["n == 50", "n < 100", "n > 40 && n < 60"] {
        assert!(matches!(obstacle(values), Obstacle::Stopped { .. }), "{values}");
    }
    assert!(matches!(obstacle("n < 9"), Obstacle::ValueMismatch { .. }));
}
