//! Tests of the audit for components: correct abstractions of any number of components pass, and
//! abstractions that lack a local state are detected.
//!
//! A failure prints the seed; `CROWD_SEED=n` replays one, `CROWD_CASES=n` sets the number of cases.

use super::formula;
use super::thread_modular::{plain, random_property, random_text, unbounded_model};
use mu_base::random::Random;
use mu_base::{Diagnostic, SourceId, Stage};
use mu_process::linearise::{self, linearise};
use mu_regions::audit::AuditRequest;
use mu_regions::constant_counts;
use mu_regions::sizes::SIZE;
use mu_regions::{
    Audit, Components, ExpandedInstance, Levels, Study, ThreadModularAbstraction, audit_components,
    reachable_local_states,
};

/// Builds the instance of a text for `n` components.
fn instance(text: &str, n: usize) -> ExpandedInstance {
    let tree = |n: usize| mu_syntax::parse_specification(SourceId::FIRST, &plain(text, n)).unwrap();
    let names = constant_counts::constants(n, &tree(n), &tree(n + 1)).unwrap().names;
    let spec = mu_process::typecheck::check_specification(&tree(n)).unwrap();
    ExpandedInstance {
        process: linearise(&spec, &linearise::LineariserOptions::of_any_number(&[])).unwrap(),
        names,
    }
}

/// Audits samples of all cases against instances. `without`: the index of a local state to remove.
fn audit_samples(
    text: &str,
    property: &str,
    sizes: &[usize],
    (samples, seed): (usize, u64),
    without: Option<usize>,
) -> Result<Audit, Diagnostic> {
    let model = unbounded_model(text, &[])?;
    let mut all = Audit::default();
    let instances: Vec<ExpandedInstance> = sizes.iter().map(|n| instance(text, *n)).collect();
    for assigned in model.replicas.family.assignments(&formula(property, &model.model)?)? {
        let study = Study::new(&model.model, &model.defined, &assigned.formula, Levels::Coarse)?;
        let order: Vec<usize> = (0..assigned.tracked).collect();
        for case in study.cases() {
            let regions = study.model(case)?;
            let mut members = reachable_local_states(&regions, &model.replicas)?;
            if let Some(at) = without.filter(|at| *at < members.len()) {
                members.remove(at);
            }
            let crowd = ThreadModularAbstraction::new(&regions, &model.replicas, &order, &members)?;
            for instance in instances.iter().filter(|i| i.names.len() >= assigned.tracked) {
                let process = model.model.process();
                let wanted = AuditRequest {
                    study: &study,
                    case,
                    base: &crowd,
                    process,
                    samples,
                    seed,
                    enough: &|| false,
                };
                all.add(audit_components(
                    &wanted,
                    &Components { crowd: &crowd, members: &members, instance },
                )?);
            }
        }
    }
    Ok(all)
}

/// Components that take a ticket from a desk, which stores the waiting ones.
const DESK: &str = "$param n: Pos = 2;
sort I = struct nobody $for i in 0 .. n join \"\" { | i${i} };
map all: List(I); var p: I; eqn all = [$for i in 0 .. n join \", \" { i${i} }];
act ask, asked, begin: I; call, called, serve: I; done, leave, left: I;
proc P(id: I, k: Nat) = (k == 0) -> ask(id) . P(id, 1) + (k == 1) -> called(id) . P(id, 2) + (k == 2) -> leave(id) . P(id, 0);
proc Desk(h: I, l: List(I)) =
    sum p: I. (h == nobody) -> asked(p) . Desk(p, all)
  + (h != nobody && l != []) -> call(h) . Desk(h, tail(l))
  + sum p: I. (h == p) -> left(p) . Desk(nobody, []);
init allow({begin, serve, done}, comm({ask | asked -> begin, call | called -> serve, leave | left -> done},
  $for i in 0 .. n join \"\" { P(i${i}, 0) || } Desk(nobody, [])));";
const ORDER: &str = "forall p: I. [true* . serve(p) . (!done(p))* . serve(p)] false";

#[test]
fn instances_with_components_pass_and_lost_local_states_are_caught() {
    let sizes = [1, 2, 3, 6, SIZE + 1, SIZE + 3];
    let found = audit_samples(DESK, ORDER, &sizes, (60, 11), None).unwrap();
    assert!(found.samples >= 6 * 30 && found.steps > 200, "{found:?}");
    assert_eq!((found.unchecked.as_deref(), found.undecided), (None, 0));
    let (mut caught, mut at) = (0, 0);
    loop {
        let members = count_local_states(DESK);
        if at >= members {
            break;
        }
        if let Err(error) = audit_samples(DESK, ORDER, &[2, 3], (60, 11), Some(at)) {
            assert_eq!(error.stage, Stage::Internal, "{}", error.message);
            let notes = error.notes.join("\n");
            assert!(
                notes.contains("seed: 11")
                    && notes.contains("state: ")
                    && notes.contains("components: "),
                "{notes}"
            );
            caught += 1;
        }
        at += 1;
    }
    assert!(at > 2 && caught == at, "{caught} of {at}");
}

/// Counts the local states of untracked components of a text.
fn count_local_states(text: &str) -> usize {
    let model = unbounded_model(text, &[]).unwrap();
    let assigned =
        model.replicas.family.assignments(&formula(ORDER, &model.model).unwrap()).unwrap();
    let study =
        Study::new(&model.model, &model.defined, &assigned[0].formula, Levels::Coarse).unwrap();
    reachable_local_states(&study.model(&study.cases()[0]).unwrap(), &model.replicas).unwrap().len()
}

#[test]
fn random_models_with_components_pass() {
    let number =
        |name: &str, or: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(or);
    let cases = number("CROWD_CASES", 7);
    let (first, mut all, mut refused) = (number("CROWD_SEED", 0), Audit::default(), 0);
    for seed in first..first + cases {
        let mut r = Random::new(seed);
        let (text, property) = (random_text(&mut r), random_property(&mut r));
        match audit_samples(&text, &property, &[2, 4, SIZE + 1], (30, seed), None) {
            Ok(found) => all.add(found),
            Err(why) => {
                assert!(
                    why.stage != Stage::Internal,
                    "seed {seed}: {} {:#?}\n{text}\n{property}",
                    why.message,
                    why.notes
                );
                refused += 1;
            }
        }
    }
    println!("{all:?}, {refused} refused");
    assert!(
        cases < 7 || all.samples > 150 && all.steps > 500 && all.unchecked.is_none(),
        "{all:?}, {refused} refused"
    );
}
