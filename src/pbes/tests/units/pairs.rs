//! Proofs by pairs of components on random models: what is proved is true.

use super::*;
use crate::pairs::{PairProof, PairResult, prove_by_pairs};
use models::{Shape, random};
use mu_model::Model;

#[path = "../../../../tests/support/models.rs"]
mod models;

/// The labels `a(n)` of a random model as those of the test.
struct Renamed<'m> {
    model: &'m HandModel,
    table: Table,
}

impl ActionLabels for Renamed<'_> {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        let text = self.model.label_text(label);
        let number: String = text.chars().filter(char::is_ascii_digit).collect();
        let row = number.parse::<usize>().map_or(0, |n| 1 + n % (self.table.0.len() - 1));
        self.table.0[row].clone()
    }
}

/// Returns `[R1]..[Rn]false`, sometimes below a quantifier, with random regular formulas.
fn safety(r: &mut Random) -> (TypedFormula, World) {
    let mut w = world();
    let mut g = Generator { w: &mut w, r, vars: vec![], fixes: vec![], fix_names: vec![] };
    let quantified = g.r.chance(1, 2).then(|| g.w.data.signature.fresh_var("x", g.w.d));
    g.vars.extend(quantified);
    let mut formula = at(StateKind::False);
    for _ in 0..1 + g.r.below(3) {
        let one = if g.r.chance(1, 2) { Regular::Action(g.multi()) } else { g.regular(2) };
        formula = at(StateKind::Must(Box::new(one), Box::new(formula)));
        if g.r.chance(2, 3) {
            let any = Regular::Star(Box::new(Regular::Action(Action::True)));
            formula = at(StateKind::Must(Box::new(any), Box::new(formula)));
        }
    }
    if let Some(v) = quantified {
        formula = at(StateKind::Forall(vec![v], Box::new(formula)));
    }
    let (data, actions) = (w.data.clone(), w.actions.clone());
    (TypedFormula { data, actions, fix_names: Vec::new(), formula, as_written: false }, w)
}

#[test]
fn what_pairs_prove_is_true() {
    let cases: u64 = std::env::var("PAIR_CASES").ok().and_then(|v| v.parse().ok()).unwrap_or(1_500);
    let first: u64 = std::env::var("PAIR_SEED").ok().and_then(|v| v.parse().ok()).unwrap_or(1);
    let (mut proved, mut open, mut nodes, mut steps) = (0, 0, 0, 0);
    for seed in first..first + cases {
        let mut r = Random::new(seed);
        let shape = Shape {
            slots: 3 + r.below(5) as u32,
            values: 2 + r.below(2) as u32,
            components: 2 + r.below(4) as u32,
            groups: 3 + r.below(7) as u32,
            labels: 12,
        };
        let model = random(seed, shape);
        let (formula, w) = if r.chance(2, 3) { safety(&mut r) } else { random_formula(&mut r, 5) };
        let labels = Renamed { model: &model, table: labels(&w).1 };
        let explore = mu_explore::Options::default();
        let options = Options { evidence: false, ..Options::new(&explore) };
        let answer = check(&model, &labels, &formula, options, &Budget::default()).unwrap();
        match prove_by_pairs(&model, &labels, &formula, &Budget::default()).unwrap() {
            PairResult::Proved(proof) => {
                assert_eq!(answer.verdict, Verdict::True, "PAIR_SEED={seed} PAIR_CASES=1");
                proved += u64::from(proof != PairProof::default());
                nodes += proof.nodes;
                steps += proof.audited;
            }
            PairResult::Open(_) => open += u64::from(answer.verdict == Verdict::True),
        }
    }
    eprintln!(
        "{proved} proved of {cases}, {open} true ones open, {nodes} nodes, {steps} steps of walks"
    );
    if cases >= 1_000 {
        assert!(proved > cases / 4 && nodes > proved as usize && steps > 100 * proved);
    }
}

/// Two components take turns; a third one never takes part.
#[test]
fn a_step_of_two_components_needs_local_states_that_occur_together() {
    let mut model = HandModel::new();
    let slot = |m: &mut HandModel, i: u32| m.slot(format!("s{i}"), i, true, 0);
    let (x, y, z) = (slot(&mut model, 0), slot(&mut model, 1), slot(&mut model, 2));
    // Exactly one of x and y is 1 after the first step; z is free.
    model.group("first", &[(x, 0), (y, 0)], &[x, y], &[x, y], |_, e| {
        e.step("a(0)", &[1, 2]);
        e.step("a(0)", &[2, 1]);
    });
    model.group("swap", &[], &[x, y], &[x, y], |v, e| {
        if v[0] > 0 {
            e.step("a(0)", &[v[1], v[0]]);
        }
    });
    model.group("free", &[], &[z], &[z], |v, e| e.step("tau", &[(v[0] + 1) % 3]));
    model.group("both", &[(x, 1), (y, 1)], &[], &[], |_, e| e.step("a(1)", &[]));
    let w = world();
    let labels = Renamed { model: &model, table: labels(&w).1 };
    let never = |act: ActId| {
        let any = Regular::Star(Box::new(Regular::Action(Action::True)));
        let bad = Regular::Action(Action::Multi(vec![(act, vec![])]));
        let one = at(StateKind::Must(Box::new(bad), Box::new(at(StateKind::False))));
        TypedFormula {
            data: w.data.clone(),
            actions: w.actions.clone(),
            fix_names: Vec::new(),
            formula: at(StateKind::Must(Box::new(any), Box::new(one))),
            as_written: false,
        }
    };
    let found = |act| prove_by_pairs(&model, &labels, &never(act), &Budget::default());
    // `a(1)` is the label `b` of the test, `a(0)` is `a`.
    let PairResult::Proved(proof) = found(ActId::of(1)).unwrap() else { panic!("not proved") };
    assert_eq!((proof.pairs, proof.nodes), (3 + 6 * 3, 1));
    assert!(matches!(found(ActId::of(0)).unwrap(), PairResult::Open(_)));
}
