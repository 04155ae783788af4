//! Tests of the audit of translations: those of Murphi models pass, faulty ones are detected.
//!
//! A failure prints the seed and the model; `MU_CHECK_SEED=n` replays one, `MU_CHECK_RUNS=n` tries
//! more, from `MU_CHECK_FIRST` on.

// Tests of other layers use the rest of it.
#[allow(dead_code)]
#[path = "../../murphi/tests/generator/mod.rs"]
mod generator;

use mu_base::limits::{Budget, Limits};
use mu_base::random::Random;
use mu_base::{Diagnostic, SourceId, Stage, Stop};
use mu_cubicle::origin::Origin;
use mu_cubicle::system::{AssignedValue, Atom, ComparisonOp, System, Term, Universal, Update};
use mu_murphi::origin::ModelInstance;
use mu_murphi::parametric::{Translation, translate};
use mu_murphi::search::{Broken, Deadlocks, SearchOptions, explore};
use mu_murphi::typed::{Model, TypeId, TypeKind};
use mu_murphi::{Settings, compile, read};
use mu_prove::audit::translation::{TranslationAudit, TranslationRequest, audit_translation};
use mu_prove::rules::Memory;
use mu_prove::verify::verify_within;
use mu_prove::{ProofVerdict, ProverOptions, prove};

/// Limit on the work of the verifier.
const WORK: u64 = 10_000_000;

fn read_model(text: &str) -> Model {
    read(SourceId::FIRST, text, &Settings::default())
        .unwrap_or_else(|e| panic!("{}\n{text}", e.message))
}

/// Returns the first scalarset.
fn scalarset(model: &Model) -> Option<TypeId> {
    let is = |kind: &TypeKind| matches!(kind, TypeKind::Scalarset { .. });
    model.types.all.iter().position(|t| is(&t.kind)).map(TypeId::new)
}

fn system(translation: &Translation) -> System {
    mu_cubicle::check(&translation.file).expect("a system")
}

/// Returns a verified certificate.
fn certificate(system: &System, work: u64) -> Option<String> {
    let options = ProverOptions {
        memory: Memory::Sc,
        instances: 3,
        work: Some(work),
        ..ProverOptions::default()
    };
    match prove(system, options, &Budget::default()).verdict {
        ProofVerdict::Safe { certificate, .. } => Some(certificate),
        _ => None,
    }
}

/// Audits a system as the translation of models, which differ in the size of a scalarset.
fn audit_models(
    models: &[Model],
    node: TypeId,
    translation: &Translation,
    (system, certificate): (&System, Option<&str>),
    (samples, seed): (usize, u64),
) -> Result<TranslationAudit, Diagnostic> {
    let programs: Vec<_> = models.iter().map(|m| compile(m).expect("a program")).collect();
    let mut instances = Vec::new();
    for (model, program) in models.iter().zip(&programs) {
        let of = &translation.correspondence;
        instances.push(ModelInstance::new(model, program, node, of, || false)?);
    }
    let mut origins: Vec<&mut dyn Origin> =
        instances.iter_mut().map(|i| i as &mut dyn Origin).collect();
    let request = TranslationRequest { system, certificate, samples, seed, enough: &|| false };
    audit_translation(&request, &mut origins)
}

/// Reads a model with sizes of its scalarset, the constant `N`.
fn instances(text: &str, sizes: std::ops::RangeInclusive<i64>) -> (Vec<Model>, TypeId) {
    let sized = |size: i64| {
        let settings = Settings { constants: vec![("N".into(), size)], ..Settings::default() };
        read(SourceId::FIRST, text, &settings).unwrap_or_else(|e| panic!("{}\n{text}", e.message))
    };
    let models: Vec<Model> = sizes.map(sized).collect();
    let source = (SourceId::FIRST, text);
    let node = mu_murphi::parametric::scalarset_of_size("N", source, (&models[0], &models[1]));
    (models, node.expect("a scalarset"))
}

/// A lock with a queue of one, data, and records.
const LOCK: &str = include_str!("translations/lock.m");

#[test]
fn translations_pass() {
    let (models, node) = instances(LOCK, 1..=6);
    let translation = translate(&models[1], node).unwrap();
    let system = system(&translation);
    let certificate = certificate(&system, 2_000_000).expect("a proof");
    let of = (&system, Some(&certificate[..]));
    let found = audit_models(&models, node, &translation, of, (1_500, 7))
        .unwrap_or_else(|e| panic!("{}\n{}\n{}", e.message, e.notes.join("\n"), translation.file));
    assert!(found.samples >= 1_500 && found.processes == Some((1, 6)), "{found:?}");
    assert!(found.reached > 100 && found.outside > found.reached, "{found:?}");
    assert!(found.steps > 3_000 && found.rules == 6 && found.failures > 50, "{found:?}");
    let alone = audit_models(&models, node, &translation, (&system, None), (500, 7)).unwrap();
    assert!(alone.samples >= 500 && alone.outside == 0, "{alone:?}");
}

/// Replaces a value by another one of its type.
fn other(system: &System, value: &AssignedValue) -> Option<AssignedValue> {
    let AssignedValue::Term(Term::Cons(c)) = value else { return None };
    let of = system.constructors[c.index()].of;
    let all = &system.types[of.index()].constructors;
    let next = all.iter().position(|a| a == c)? + 1;
    Some(AssignedValue::Term(Term::Cons(all[next % all.len()])))
}

fn negation(atom: &Atom) -> Option<Atom> {
    let Atom::Compare(a, op, b) = atom else { return None };
    let op = match op {
        ComparisonOp::Eq => ComparisonOp::Neq,
        ComparisonOp::Neq => ComparisonOp::Eq,
        _ => return None,
    };
    Some(Atom::Compare(a.clone(), op, b.clone()))
}

/// Returns systems with one fault each, and its kind.
fn faults(right: &System) -> Vec<(&'static str, System)> {
    let mut all = Vec::new();
    let mut add = |kind, change: &dyn Fn(&mut System)| {
        let mut system = right.clone();
        change(&mut system);
        all.push((kind, system));
    };
    for (at, claim) in right.unsafes.iter().enumerate() {
        add("claim omitted", &|s| {
            s.unsafes.remove(at);
        });
        for (n, atom) in claim.cube.iter().enumerate() {
            if let Some(atom) = negation(atom) {
                add("claim negated", &|s| s.unsafes[at].cube[n] = atom.clone());
            }
        }
    }
    for (at, t) in right.transitions.iter().enumerate() {
        add("transition omitted", &|s| {
            s.transitions.remove(at);
        });
        for (n, atom) in t.guard.iter().enumerate() {
            if let Some(atom) = negation(atom) {
                add("guard negated", &|s| s.transitions[at].guard[n] = atom.clone());
            }
        }
        let var = mu_base::narrow::index(t.params.len());
        add("guard of all others", &|s| {
            let all = Universal { name: "other".into(), var, dnf: Vec::new() };
            s.transitions[at].universal = vec![all];
        });
        for (n, update) in t.updates.iter().enumerate() {
            add("update omitted", &|s| {
                s.transitions[at].updates.remove(n);
            });
            match update {
                Update::Assign { value, .. } => {
                    if let Some(new) = other(right, value) {
                        add("value replaced", &|s| {
                            if let Update::Assign { value, .. } = &mut s.transitions[at].updates[n]
                            {
                                *value = new.clone();
                            }
                        });
                    }
                }
                Update::Cases { cases, .. } => {
                    for (c, case) in cases.iter().enumerate() {
                        let mut change = |kind, new: Option<Vec<Atom>>, value| {
                            add(kind, &|s| {
                                if let Update::Cases { cases, .. } =
                                    &mut s.transitions[at].updates[n]
                                {
                                    cases[c].condition =
                                        new.clone().unwrap_or_else(|| vec![Atom::False]);
                                    let value: &Option<AssignedValue> = &value;
                                    if let Some(value) = value {
                                        cases[c].value = value.clone();
                                    }
                                }
                            });
                        };
                        change("case omitted", None, None);
                        if let Some(new) = other(right, &case.value) {
                            change("value replaced", Some(case.condition.clone()), Some(new));
                        }
                        for (n, atom) in case.condition.iter().enumerate() {
                            let mut new = case.condition.clone();
                            if let Some(atom) = negation(atom) {
                                new[n] = atom;
                                change("case negated", Some(new), None);
                            }
                        }
                    }
                }
            }
        }
    }
    all
}

/// Every fault in the system with which it can still be proved is detected, unless it changes no
/// step.
#[test]
fn faulty_translations_are_caught() {
    let (models, node) = instances(LOCK, 1..=4);
    let translation = translate(&models[1], node).unwrap();
    let right = system(&translation);
    let (mut proved, mut caught, mut missed) = (0, 0, Vec::new());
    for (number, (kind, wrong)) in faults(&right).into_iter().enumerate() {
        let Some(certificate) = certificate(&wrong, 200_000) else { continue };
        proved += 1;
        match audit_models(&models, node, &translation, (&wrong, Some(&certificate)), (400, 1)) {
            Err(error) => {
                assert_eq!(error.stage, Stage::Internal);
                let notes = error.notes.join("\n");
                assert!(notes.contains("elements: ") && notes.contains("seed: 1"), "{notes}");
                caught += 1;
            }
            // The invariant is one of the right system, too: other claims imply the omitted one.
            Ok(_) if verify_within(&right, &certificate, &Budget::default(), 1, WORK).is_ok() => {
                assert_eq!(kind, "claim omitted");
            }
            Ok(_) => missed.push((number, kind)),
        }
    }
    println!("{proved} faults with a proof, {caught} caught, others: {missed:?}");
    assert!(proved > 80, "{proved}");
    assert!(missed.is_empty() && caught + 3 > proved, "{caught} of {proved}, {missed:?}");
}

/// A declaration that does not relate all cells to parts of the state is rejected.
#[test]
fn faulty_declarations_are_caught() {
    let (models, node) = instances(LOCK, 1..=3);
    let right = translate(&models[1], node).unwrap();
    let system = system(&right);
    let of = |change: &dyn Fn(&mut Translation)| {
        let mut wrong = right.clone();
        change(&mut wrong);
        let found = audit_models(&models, node, &wrong, (&system, None), (1_000, 1));
        found.map(|_| ()).map_err(|e| e.stage)
    };
    assert_eq!(of(&|_| ()), Ok(()));
    let symbol = |t: &Translation, name: &str| {
        t.correspondence.symbols.iter().position(|s| s.symbol == name).unwrap()
    };
    // Two parts in one cell.
    assert!(
        of(&|t| t.correspondence.symbols[1].symbol = t.correspondence.symbols[0].symbol.clone())
            .is_err()
    );
    // A part without a cell.
    assert!(of(&|t| drop(t.correspondence.symbols.remove(2))).is_err());
    // Exchanged parts and values.
    assert!(
        of(&|t| {
            let (a, b) = (symbol(t, "Owner"), symbol(t, "Next"));
            let all = &mut t.correspondence.symbols;
            (all[a].symbol, all[b].symbol) = (all[b].symbol.clone(), all[a].symbol.clone());
            (all[a].undefined, all[b].undefined) =
                (all[b].undefined.clone(), all[a].undefined.clone());
        })
        .is_err()
    );
    assert!(
        of(&|t| {
            let at = symbol(t, "At");
            t.correspondence.symbols[at].values.as_mut().unwrap().swap(0, 1);
        })
        .is_err()
    );
}

/// Returns true if an instance fails. `None`: it is too large.
fn fails(model: &Model) -> Option<bool> {
    let program = compile(model).ok()?;
    let options = SearchOptions { deadlocks: Deadlocks::Off, ..SearchOptions::default() };
    let budget = Budget::new(Limits { max_states: Some(2_000), ..Limits::default() });
    let found = explore(model, &program, options, &budget, &mut |_, _| {});
    match &found.failure {
        Some(failure) => Some(!matches!(failure.broken, Broken::Liveness(_))),
        None => (found.stop == Stop::Complete).then_some(false),
    }
}

fn seeds(all: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let first = number("MU_CHECK_FIRST").unwrap_or(0);
    match (number("MU_CHECK_SEED"), number("MU_CHECK_RUNS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(runs)) => first..first + runs,
        (None, None) => all,
    }
}

/// The translations of random models pass; instances of proved ones do not fail.
#[test]
fn translations_of_random_models_pass() {
    let (mut all, mut translated, mut proved, mut searched) = (0, 0, 0, 0);
    let mut total = TranslationAudit::default();
    let seeds = seeds(0..100);
    let is_suite = seeds == (0..100);
    for seed in seeds {
        let text = generator::model(&mut Random::new(seed)).text;
        let Some(node) = scalarset(&read_model(&text)) else { continue };
        all += 1;
        let text = ["scalarset(1)", "scalarset(3)"]
            .iter()
            .find(|of| text.find(**of).is_some_and(|at| Some(at) == text.find("scalarset(")))
            .map_or(text.clone(), |of| text.replacen(of, "scalarset(2)", 1));
        let Ok(translation) = translate(&read_model(&text), node) else { continue };
        translated += 1;
        let system = system(&translation);
        let certificate = certificate(&system, 20_000);
        let size =
            |n: u32| read_model(&text.replacen("scalarset(2)", &format!("scalarset({n})"), 1));
        let models: Vec<Model> = (1..=4).map(size).collect();
        let of = (&system, certificate.as_deref());
        let found =
            audit_models(&models[..3], node, &translation, of, (60, seed)).unwrap_or_else(|e| {
                let notes = e.notes.join("\n");
                panic!("seed {seed}: {}\n{notes}\n{}\n{text}", e.message, translation.file)
            });
        total.samples += found.samples;
        total.steps += found.steps;
        total.failures += found.failures;
        if certificate.is_some() {
            proved += 1;
            for model in &models {
                let Some(fails) = fails(model) else { break };
                searched += 1;
                assert!(!fails, "seed {seed}: an instance fails\n{}\n{text}", translation.file);
            }
        }
    }
    println!(
        "{all} models, {translated} translated, {proved} proved, {searched} instances; {total:?}"
    );
    if is_suite {
        assert!(
            translated > 60 && proved > 20 && searched > 60,
            "{translated} {proved} {searched}"
        );
        assert!(total.steps > 4_000 && total.failures > 2_000, "{total:?}");
    }
}

/// Models for seeded faults of the translation (`tests/mutations/faults.txt`): those with a proof
/// pass; those that once had a wrong proof have none.
#[test]
fn translations_of_models_pass() {
    for (name, text, is_right) in [
        ("more", include_str!("translations/more.m"), true),
        ("after", include_str!("translations/after.m"), true),
        ("loop_local", include_str!("translations/loop_local.m"), false),
        ("caller_local", include_str!("translations/caller_local.m"), false),
        ("inner_reads", include_str!("translations/inner_reads.m"), false),
        ("quantifier_writes", include_str!("translations/quantifier_writes.m"), false),
        ("quantifier_local", include_str!("translations/quantifier_local.m"), false),
        ("put", include_str!("translations/put.m"), false),
        ("frame", include_str!("translations/frame.m"), false),
    ] {
        let (models, node) = instances(text, 1..=6);
        let Ok(translation) = translate(&models[1], node) else {
            assert!(!is_right, "{name}");
            continue;
        };
        let system = system(&translation);
        let certificate = certificate(&system, 1_000_000);
        let of = (&system, certificate.as_deref());
        let found = audit_models(&models, node, &translation, of, (1_000, 1)).unwrap_or_else(|e| {
            panic!("{name}: {}\n{}", e.message, e.notes.join("\n"));
        });
        assert_eq!(certificate.is_some(), is_right, "{name}: {found:?}");
        assert!(found.steps > 100 && found.processes == Some((1, 6)), "{name}: {found:?}");
    }
}
