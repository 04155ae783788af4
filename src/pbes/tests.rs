//! Random formulas on random small transition systems: every method gives the verdict of the direct
//! evaluator, and evidence is valid.

#[path = "tests/units/pairs.rs"]
mod pairs;

use super::*;
use mu_base::ids::{ActId, FixId, LabelId, SortId, StateId, VarId};
use mu_base::random::Random;
use mu_base::{Budget, Span};
use mu_data::expr::{DataSpec, Expr};
use mu_data::signature::{Builtin, Op, OpKind};
use mu_data::sort::basic;
use mu_evidence::checker::{self, EvidenceCheck};
use mu_formula::direct;
use mu_formula::typed::{Action, Regular, StateKind, TypedFormula, TypedStateFormula};
use mu_lts::{Labels, Lts};
use mu_model::from_lts::LtsModel;
use mu_model::hand::HandModel;
use mu_process::labels::ActionDecl;
use mu_process::labels::{ActionLabels, MultiAction};
use std::sync::Arc;

struct Table(Vec<Arc<MultiAction>>);

impl ActionLabels for Table {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        self.0[label.index()].clone()
    }
}

/// Data, actions and labels shared by all cases: `a`, `b`, `c: D`, `e: Nat` with
/// `D = struct d0 | d1 | d2`.
struct World {
    data: DataSpec,
    actions: Vec<ActionDecl>,
    d: SortId,
    constants: Vec<Expr>,
}

fn world() -> World {
    let mut data = DataSpec::default();
    let d = data.signature.sorts.declare("D", true);
    let mut constants = Vec::new();
    for i in 0..3 {
        let op = data.signature.add_op(Op {
            name: format!("d{i}"),
            sort: d,
            kind: OpKind::Constructor(i),
        });
        if let mu_data::sort::SortKind::Named(n) = *data.signature.sorts.kind(d) {
            data.signature.sorts.named[n as usize].constructors.push(op);
        }
        constants.push(Expr::op(&data.signature, op));
    }
    let act = |name: &str, sorts: Vec<SortId>| ActionDecl { name: name.into(), sorts };
    let actions =
        vec![act("a", vec![]), act("b", vec![]), act("c", vec![d]), act("e", vec![basic::NAT])];
    World { data, actions, d, constants }
}

fn labels(w: &World) -> (Labels, Table) {
    let nat = |n: u32| Expr::number(n, basic::NAT);
    let mut rows: Vec<(String, MultiAction)> = vec![
        ("tau".into(), vec![]),
        ("a".into(), vec![(ActId::of(0), vec![])]),
        ("b".into(), vec![(ActId::of(1), vec![])]),
        ("a|b".into(), vec![(ActId::of(0), vec![]), (ActId::of(1), vec![])]),
    ];
    for (i, d) in w.constants.iter().enumerate() {
        rows.push((format!("c(d{i})"), vec![(ActId::of(2), vec![d.clone()])]));
    }
    for n in 0..3 {
        rows.push((format!("e({n})"), vec![(ActId::of(3), vec![nat(n)])]));
    }
    rows.push((
        "e(0)|e(2)".into(),
        vec![(ActId::of(3), vec![nat(0)]), (ActId::of(3), vec![nat(2)])],
    ));
    let table = Labels { texts: rows.iter().map(|r| r.0.clone()).collect() };
    (table, Table(rows.into_iter().map(|r| Arc::new(r.1)).collect()))
}

fn random_lts(r: &mut Random, table: &Labels) -> Lts {
    let states = 1 + r.below(6);
    let mut edges = Vec::new();
    for s in 0..states {
        for _ in 0..r.below(4) {
            edges.push((
                StateId::new(s),
                LabelId::new(r.below(table.texts.len())),
                StateId::new(r.below(states)),
            ));
        }
    }
    Lts::from_edges(StateId::of(0), states, &edges, table.clone())
}

struct Generator<'a> {
    w: &'a mut World,
    r: &'a mut Random,
    vars: Vec<VarId>,
    /// Fixed-point variable, its parameters' sorts, polarity at its binder.
    fixes: Vec<(FixId, Vec<SortId>, bool)>,
    fix_names: Vec<String>,
}

fn at(kind: StateKind) -> TypedStateFormula {
    TypedStateFormula { kind, span: Span::default() }
}

impl Generator<'_> {
    fn term(&mut self, sort: SortId) -> Expr {
        let vars: Vec<VarId> = self
            .vars
            .iter()
            .copied()
            .filter(|v| self.w.data.signature.var(*v).sort == sort)
            .collect();
        if !vars.is_empty() && self.r.chance(2, 3) {
            let v = *self.r.choose(&vars);
            return Expr::var(&self.w.data.signature, v);
        }
        match sort {
            basic::NAT => Expr::number(self.r.below(3), basic::NAT),
            basic::BOOL => Expr::boolean(&mut self.w.data.signature, self.r.chance(1, 2)),
            _ => self.r.choose(&self.w.constants).clone(),
        }
    }
    fn condition(&mut self) -> Expr {
        let sort = *self.r.choose(&[self.w.d, self.w.d, basic::NAT, basic::BOOL]);
        let (a, b) = (self.term(sort), self.term(sort));
        let op = if sort == basic::NAT {
            *self.r.choose(&[Builtin::Less, Builtin::Equal])
        } else {
            Builtin::Equal
        };
        let e = Expr::builtin(&mut self.w.data.signature, op, vec![a, b], basic::BOOL);
        if self.r.chance(1, 3) { Expr::negate(&mut self.w.data.signature, e) } else { e }
    }
    fn multi(&mut self) -> Action {
        Action::Multi(match self.r.below(7) {
            0 => vec![],
            1 => vec![(ActId::of(0), vec![])],
            2 => vec![(ActId::of(1), vec![])],
            3 => vec![(ActId::of(0), vec![]), (ActId::of(1), vec![])],
            4 => vec![(ActId::of(3), vec![self.term(basic::NAT)])],
            5 if self.r.chance(1, 3) => vec![
                (ActId::of(3), vec![self.term(basic::NAT)]),
                (ActId::of(3), vec![self.term(basic::NAT)]),
            ],
            _ => vec![(ActId::of(2), vec![self.term(self.w.d)])],
        })
    }
    fn action(&mut self, depth: usize) -> Action {
        if depth == 0 {
            return if self.r.chance(1, 4) { Action::True } else { self.multi() };
        }
        match self.r.below(9) {
            0 => Action::True,
            1 => Action::Not(Box::new(self.action(depth - 1))),
            2 => Action::And(Box::new(self.action(depth - 1)), Box::new(self.action(depth - 1))),
            3 => Action::Or(Box::new(self.action(depth - 1)), Box::new(self.action(depth - 1))),
            4 => {
                Action::Implies(Box::new(self.action(depth - 1)), Box::new(self.action(depth - 1)))
            }
            5 => {
                let v = self.w.data.signature.fresh_var("x", self.w.d);
                self.vars.push(v);
                let a = Box::new(self.action(depth - 1));
                self.vars.pop();
                if self.r.chance(1, 2) {
                    Action::Exists(vec![v], a)
                } else {
                    Action::Forall(vec![v], a)
                }
            }
            6 => {
                // exists n: Nat. e(n) && val(..)
                let v = self.w.data.signature.fresh_var("n", basic::NAT);
                self.vars.push(v);
                let a =
                    Action::Multi(vec![(ActId::of(3), vec![Expr::var(&self.w.data.signature, v)])]);
                let c = Action::Val(self.condition());
                self.vars.pop();
                Action::Exists(vec![v], Box::new(Action::And(Box::new(c), Box::new(a))))
            }
            7 => Action::And(
                Box::new(Action::Val(self.condition())),
                Box::new(self.action(depth - 1)),
            ),
            _ => self.multi(),
        }
    }
    fn regular(&mut self, depth: usize) -> Regular {
        if depth == 0 {
            return Regular::Action(self.action(2));
        }
        match self.r.below(8) {
            0 => Regular::Seq(Box::new(self.regular(depth - 1)), Box::new(self.regular(depth - 1))),
            1 => Regular::Alt(Box::new(self.regular(depth - 1)), Box::new(self.regular(depth - 1))),
            2 => Regular::Star(Box::new(self.regular(depth - 1))),
            3 => Regular::Plus(Box::new(self.regular(depth - 1))),
            _ => Regular::Action(self.action(2)),
        }
    }
    fn state(&mut self, depth: usize, positive: bool) -> TypedStateFormula {
        let usable: Vec<usize> =
            (0..self.fixes.len()).filter(|i| self.fixes[*i].2 == positive).collect();
        if depth == 0 || (!usable.is_empty() && self.r.chance(1, 5)) {
            if !usable.is_empty() && self.r.chance(4, 5) {
                let (fix, sorts, _) = self.fixes[*self.r.choose(&usable)].clone();
                let args = sorts.iter().map(|s| self.term(*s)).collect();
                return at(StateKind::Var(fix, args));
            }
            return at(match self.r.below(4) {
                0 => StateKind::True,
                1 => StateKind::False,
                _ => StateKind::Val(self.condition()),
            });
        }
        let d = depth - 1;
        at(match self.r.below(13) {
            0 => StateKind::Not(Box::new(self.state(d, !positive))),
            1 => {
                StateKind::And(Box::new(self.state(d, positive)), Box::new(self.state(d, positive)))
            }
            2 => {
                StateKind::Or(Box::new(self.state(d, positive)), Box::new(self.state(d, positive)))
            }
            3 => StateKind::Implies(
                Box::new(self.state(d, !positive)),
                Box::new(self.state(d, positive)),
            ),
            4 | 5 => {
                let r = Box::new(self.regular(2));
                StateKind::Must(r, Box::new(self.state(d, positive)))
            }
            6 | 7 => {
                let r = Box::new(self.regular(2));
                StateKind::May(r, Box::new(self.state(d, positive)))
            }
            8 => {
                let v = self.w.data.signature.fresh_var("x", self.w.d);
                self.vars.push(v);
                let f = Box::new(self.state(d, positive));
                self.vars.pop();
                if self.r.chance(1, 2) {
                    StateKind::Forall(vec![v], f)
                } else {
                    StateKind::Exists(vec![v], f)
                }
            }
            9 => {
                // forall n: Nat. [e(n)]f(n), exists n: Nat. <e(n)>f(n)
                let v = self.w.data.signature.fresh_var("n", basic::NAT);
                self.vars.push(v);
                let a = Regular::Action(Action::Multi(vec![(
                    ActId::of(3),
                    vec![Expr::var(&self.w.data.signature, v)],
                )]));
                let guard = self.condition();
                let f = self.state(d, positive);
                self.vars.pop();
                if self.r.chance(1, 2) {
                    let body = at(StateKind::Implies(
                        Box::new(at(StateKind::Val(guard))),
                        Box::new(at(StateKind::Must(Box::new(a), Box::new(f)))),
                    ));
                    StateKind::Forall(vec![v], Box::new(body))
                } else {
                    let body = at(StateKind::And(
                        Box::new(at(StateKind::Val(guard))),
                        Box::new(at(StateKind::May(Box::new(a), Box::new(f)))),
                    ));
                    StateKind::Exists(vec![v], Box::new(body))
                }
            }
            _ => {
                let var = FixId::new(self.fix_names.len());
                self.fix_names.push(format!("X{}", var.number()));
                let mut params = Vec::new();
                let mut sorts = Vec::new();
                for _ in 0..self.r.below(3) {
                    let sort = *self.r.choose(&[self.w.d, basic::BOOL]);
                    let init = self.term(sort);
                    params.push((self.w.data.signature.fresh_var("p", sort), init));
                    sorts.push(sort);
                }
                let n = self.vars.len();
                self.vars.extend(params.iter().map(|p| p.0));
                self.fixes.push((var, sorts, positive));
                let body = Box::new(self.state(d, positive));
                self.fixes.pop();
                self.vars.truncate(n);
                StateKind::Fix { least: self.r.chance(1, 2), var, params, body }
            }
        })
    }
}

fn random_formula(r: &mut Random, depth: usize) -> (TypedFormula, World) {
    let mut w = world();
    let mut g = Generator { w: &mut w, r, vars: vec![], fixes: vec![], fix_names: vec![] };
    let formula = g.state(depth, true);
    let fix_names = std::mem::take(&mut g.fix_names);
    (
        TypedFormula {
            data: w.data.clone(),
            actions: w.actions.clone(),
            fix_names,
            formula,
            as_written: false,
        },
        w,
    )
}

#[test]
fn every_method_agrees_with_direct_evaluation() {
    let cases: u64 =
        std::env::var("MU_CHECK_CASES").ok().and_then(|v| v.parse().ok()).unwrap_or(2000);
    let first: u64 = std::env::var("MU_CHECK_SEED").ok().and_then(|v| v.parse().ok()).unwrap_or(1);
    let (mut truths, mut products, mut games, mut alternating, mut confirmed) = (0, 0, 0, 0, 0);
    let (mut symbolically, mut symbolic_games, mut symbolically_confirmed) = (0, 0, 0);
    for seed in first..first + cases {
        let mut r = Random::new(seed);
        let depth = 2 + r.below(5);
        let (formula, w) = random_formula(&mut r, depth);
        let (texts, table) = labels(&w);
        let lts = Arc::new(random_lts(&mut r, &texts));
        let context = || format!("seed {seed} (MU_CHECK_SEED={seed} MU_CHECK_CASES=1)");
        let expected = match direct::holds_within(&formula, &lts, &table, 2_000_000) {
            Ok(Some(v)) => v,
            Ok(None) => continue,
            Err(e) => panic!("{}: naive: {e:?}", context()),
        };
        truths += u64::from(expected);
        let model = LtsModel::new(lts.clone());
        let mut data = formula.data.clone();
        let normal = mu_formula::normal::normalise(&formula, &mut data.signature)
            .expect("monotonic by construction");
        alternating += u64::from(normal.max_rank() > 1);
        for (force_game, threads, batches, solver) in [
            (
                false,
                1,
                BatchSizes::USUAL,
                &mu_game::solve::zielonka::Zielonka as &dyn mu_game::solve::Solver,
            ),
            (false, 1, BatchSizes::LEAST, &mu_game::solve::zielonka::Zielonka),
            (false, 3, BatchSizes::USUAL, &mu_game::solve::zielonka::Zielonka),
            (true, 1, BatchSizes::USUAL, &mu_game::solve::zielonka::Zielonka),
            (true, 1, BatchSizes::USUAL, &mu_game::solve::priority_promotion::Promotion),
        ] {
            let explore = mu_explore::Options { threads, ..Default::default() };
            let solver = Some(solver);
            let options = Options { force_game, batches, solver, ..Options::new(&explore) };
            let answer = check(&model, &table, &formula, options, &Budget::default())
                .unwrap_or_else(|e| panic!("{}: {e:?}", context()));
            let verdict = if expected { Verdict::True } else { Verdict::False };
            assert_eq!(
                answer.verdict,
                verdict,
                "{}, game forced: {force_game}, method {:?}",
                context(),
                answer.method
            );
            match answer.method {
                Method::Product => products += 1,
                Method::Game => games += 1,
                Method::Constant | Method::Symbolic | Method::SymbolicGame | Method::Pairs => {}
            }
            if let Some(evidence) = &answer.evidence {
                assert_eq!(evidence.verdict, expected, "{}", context());
                match checker::check(evidence, &model, &table, &formula) {
                    Ok(EvidenceCheck::Confirmed) => confirmed += 1,
                    Ok(EvidenceCheck::StepsOnly) => {}
                    Err(e) => {
                        panic!("{}, game forced: {force_game}: {e:?}\n{evidence:?}", context())
                    }
                }
            } else {
                assert!(answer.method != Method::Game || !force_game, "{}: no evidence", context());
            }
        }
        let wanted = symbolic::CheckOptions { witnesses: true, ..Default::default() };
        let answer = symbolic::check_with_options(
            &model,
            &table,
            &formula,
            &Default::default(),
            wanted,
            &Budget::default(),
        )
        .unwrap_or_else(|e| panic!("{}, symbolic: {e:?}", context()));
        assert_eq!(
            answer.verdict,
            if expected { Verdict::True } else { Verdict::False },
            "{}, symbolic",
            context()
        );
        if let Some(product_outcome) = &answer.product_outcome {
            symbolically += 1;
            assert!(
                !product_outcome.decided || answer.evidence.is_some(),
                "{}: no evidence",
                context()
            );
        }
        if answer.game_outcome.is_some() {
            symbolic_games += 1;
            assert!(answer.evidence.is_some(), "{}: no evidence of a symbolic game", context());
        }
        if let Some(evidence) = answer.evidence {
            match checker::check(&evidence, &model, &table, &formula) {
                Ok(EvidenceCheck::Confirmed) => {
                    symbolically_confirmed += u64::from(answer.game_outcome.is_some())
                }
                Ok(EvidenceCheck::StepsOnly) => {}
                Err(e) => panic!("{}, symbolic: {e:?}\n{evidence:?}", context()),
            }
        }
    }
    eprintln!(
        "{truths} true of {cases}, {products} by product, {games} by game, {alternating} alternating, {confirmed} confirmed"
    );
    eprintln!(
        "{symbolically} by symbolic product, {symbolic_games} by symbolic game, {symbolically_confirmed} of these confirmed"
    );
    if cases > 1000 {
        assert!(truths > cases / 10 && truths < cases * 9 / 10);
        assert!(
            products > cases / 20
                && games > cases / 20
                && alternating > cases / 50
                && confirmed > cases / 4
                && symbolically > cases / 20
        );
        assert!(symbolic_games > cases / 20 && symbolically_confirmed > cases / 40);
    }
}

/// The priority of a confluent step delays `b`.
#[test]
fn a_game_has_the_steps_that_confluent_ones_delay() {
    let mut model = HandModel::new();
    let (x, y) = (model.slot("x", 0, false, 0), model.slot("y", 1, false, 0));
    model.group("quiet", &[(x, 0)], &[x], &[x], |_, e| e.step("tau", &[1])).tau = true;
    model.group("b", &[(y, 0)], &[y], &[y], |_, e| e.step("b", &[1]));
    let table = Table([vec![], vec![(ActId::of(1), vec![])]].map(Arc::new).into());
    let w = world();
    let step = Regular::Action(Action::Multi(vec![(ActId::of(1), vec![])]));
    let formula = TypedFormula {
        data: w.data.clone(),
        actions: w.actions.clone(),
        fix_names: Vec::new(),
        formula: at(StateKind::May(Box::new(step), Box::new(at(StateKind::True)))),
        as_written: false,
    };
    let explore = mu_explore::Options { confluent: vec![true, false], ..Default::default() };
    let game = game::game(&model, &table, &formula, &explore, &Budget::default()).unwrap();
    let solution = mu_game::solve::Solver::solve(
        &mu_game::solve::zielonka::Zielonka,
        &game,
        &Budget::default(),
    );
    assert_eq!(solution.unwrap().winner(game.initial), mu_game::Player::Even);
}
