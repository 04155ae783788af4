//! Distinguishing formulas for each preorder: the formula holds in the first system and not in the
//! second, by the model checker, which is independent of preorders.
//!
//! `MU_CHECK_CASES` pairs of random systems from `MU_CHECK_SEED` on.

use mu_check::base::Budget;
use mu_check::base::ids::{LabelId, StateId};
use mu_check::base::random::Random;
use mu_check::formula::typecheck::check_formula;
use mu_check::labels::inferred::InferredLabels;
use mu_check::lts::distinguish::Difference;
use mu_check::lts::preorder::{Preorder, excess};
use mu_check::lts::{Labels, Lts};
use mu_check::model::from_lts::LtsModel;
use mu_check::pbes::{Options, Verdict, check};
use mu_check::{explore, syntax};
use std::collections::BTreeMap;
use std::sync::Arc;

const PREORDERS: [Preorder; 6] = [
    Preorder::Simulation,
    Preorder::ReadySimulation,
    Preorder::CoupledSimulation,
    Preorder::Failures,
    Preorder::WeakFailures,
    Preorder::ImpossibleFutures,
];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

fn system(random: &mut Random) -> Lts {
    let (states, texts) = (1 + random.below(5), ["tau", "a", "b"].map(String::from).to_vec());
    let mut step = || {
        (
            StateId::new(random.below(states)),
            LabelId::new(random.below(3)),
            StateId::new(random.below(states)),
        )
    };
    let edges: Vec<_> = (0..2 * states).map(|_| step()).collect();
    Lts::from_edges(StateId(0), states, &edges, Labels { texts })
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
        let (a, b) = (system(&mut random), system(&mut random));
        let mut related = Vec::new();
        for preorder in PREORDERS {
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
