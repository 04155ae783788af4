//! Distinguishing formulas for each preorder: the formula holds in the first system and not in the
//! second, by the model checker, which is independent of preorders.
//!
//! `MU_CHECK_CASES` pairs of random systems from `MU_CHECK_SEED` on.

use mu_check::base::Budget;
use mu_check::base::ids::{LabelId, StateId};
use mu_check::base::random::Random;
use mu_check::formula::typecheck::check_formula;
use mu_check::lts::distinguish::Difference;
use mu_check::lts::equivalence::{Equivalence, Evidence, reduce};
use mu_check::lts::preorder::{Preorder, excess};
use mu_check::lts::{Labels, Lts};
use mu_check::model::from_lts::LtsModel;
use mu_check::pbes::{Options, Verdict, check};
use mu_check::process::labels::inferred::InferredLabels;
use mu_check::{explore, syntax};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns the preorders with formulas as evidence.
fn formulas() -> impl Iterator<Item = Preorder> {
    Preorder::ALL.into_iter().filter(|p| p.evidence() == Evidence::Formula)
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

fn system(random: &mut Random, labels: usize) -> Lts {
    let (states, texts) = (1 + random.below(5), ["tau", "a", "b", "c"].map(String::from).to_vec());
    let mut step = || {
        (
            StateId::new(random.below(states)),
            LabelId::new(random.below(labels)),
            StateId::new(random.below(states)),
        )
    };
    let edges: Vec<_> = (0..2 * states).map(|_| step()).collect();
    Lts::from_edges(StateId::of(0), states, &edges, Labels { texts })
}

fn holds(lts: &Lts, formula: &str) -> bool {
    let labels = InferredLabels::new(&lts.table.texts).unwrap();
    let typed = check_formula(
        &syntax::parse_formula(Default::default(), formula).unwrap(),
        labels.data(),
        labels.actions(),
    )
    .unwrap();
    let explore = explore::Options { threads: 1, ..Default::default() };
    let answer = check(
        &LtsModel::new(Arc::new(lts.clone())),
        &labels,
        &typed,
        Options::new(&explore),
        &Budget::default(),
    )
    .unwrap();
    answer.verdict == Verdict::True
}

#[test]
fn differences_are_confirmed_by_the_checker() {
    let (first, cases) = (number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 60));
    let mut figures: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for seed in first..first + cases {
        let mut random = Random::new(seed);
        let (a, b) = (system(&mut random, 3), system(&mut random, 3));
        let mut related = Vec::new();
        for preorder in formulas() {
            let found = excess(&a, &b, preorder, 1, &Budget::default()).unwrap();
            figures.entry(preorder.name()).or_default()[usize::from(found.is_some())] += 1;
            related.push(found.is_none());
            let Some(Difference::Formula(text)) = found else { continue };
            assert!(
                holds(&a, &text) && !holds(&b, &text),
                "seed {seed}: {}: {text}\n{a:?}\n{b:?}",
                preorder.name()
            );
        }
        // Ready simulation implies simulation and failures.
        assert!(!related[1] || related[0] && related[3], "seed {seed}");
    }
    println!("related and not: {figures:?}");
    assert!(figures.values().all(|[yes, no]| *yes > 0 && *no * 5 > cases), "{figures:?}");
}

/// The formulas of the tables: the example of an equivalence has the same value in a system and in
/// its quotient, and the example of a preorder holds in the first of two related systems if it
/// holds in the second.
#[test]
fn relations_preserve_their_formulas() {
    let (first, cases) = (number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 60));
    let (mut values, mut inherited) = (BTreeMap::new(), BTreeMap::new());
    for seed in first..first + cases {
        let mut random = Random::new(seed);
        let (a, b) = (system(&mut random, 4), system(&mut random, 4));
        for e in Equivalence::ALL {
            let value = holds(&a, e.example());
            let small = reduce(&a, e, 1);
            let what = format!("seed {seed}: {}: {}\n{a:?}\n{small:?}", e.name(), e.example());
            assert_eq!(holds(&small, e.example()), value, "{what}");
            values.entry(e.name()).or_insert([0, 0])[usize::from(value)] += 1;
        }
        // The quotient is related to its system in both directions.
        let small = reduce(&a, Equivalence::STRONG, 1);
        for (p, b) in Preorder::ALL.into_iter().flat_map(|p| [(p, &b), (p, &small)]) {
            if excess(&a, b, p, 1, &Budget::default()).unwrap().is_some() {
                assert_ne!(b, &small, "seed {seed}: {}\n{a:?}", p.name());
                continue;
            }
            let (value, at_b) = (holds(&a, p.example()), holds(b, p.example()));
            assert!(value || !at_b, "seed {seed}: {}: {}\n{a:?}\n{b:?}", p.name(), p.example());
            inherited.entry(p.name()).or_insert([0, 0])[usize::from(at_b)] += 1;
        }
    }
    println!("{values:?} {inherited:?}");
    assert!(values.values().all(|[no, yes]| *no > 2 && *yes > 2), "{values:?}");
    assert_eq!(inherited.len(), Preorder::ALL.len(), "{inherited:?}");
    assert!(inherited.values().all(|[_, yes]| *yes > 0), "{inherited:?}");
}

/// `docs/equivalences.md` has the tables of the program.
#[test]
fn documented_tables_are_complete() {
    let path = "docs/equivalences.md";
    let document = std::fs::read_to_string(path).unwrap();
    let equivalences = Equivalence::ALL.iter().map(|e| {
        let (name, evidence) = (e.name(), e.evidence().name());
        let tau = if e.abstracts() { "abstracted" } else { "a step" };
        let (about, preserves, example) = (e.full_name(), e.preserves(), e.example());
        let example = example.replace('|', "\\|");
        format!("| `{name}` | {about} | {tau} | {evidence} | {preserves} | `{example}` |")
    });
    let preorders = Preorder::ALL.iter().map(|p| {
        let (name, evidence) = (p.name(), p.evidence().name());
        let tau = if p.abstracts() { "abstracted" } else { "a step" };
        let preserves = p.preserves().replace('|', "\\|");
        let (about, example) = (p.meaning(), p.example().replace('|', "\\|"));
        format!("| `{name}` | {about} | {tau} | {evidence} | {preserves} | `{example}` |")
    });
    let rows: Vec<String> = equivalences.chain(preorders).collect();
    let missing: Vec<&String> = rows.iter().filter(|r| !document.contains(*r)).collect();
    assert!(missing.is_empty(), "add to {path}:\n{missing:#?}");
}
