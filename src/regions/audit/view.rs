//! Comparison of a concrete label with the abstract label that covers it: both must match the same
//! action formulas of the formula.
//!
//! Input: a formula with bases for its quantifiers, a label under values of the bases. Output: its
//! closed action formulas that match, by the naive rewriter. An `exists` over numbers is decided if
//! its body only compares them, possibly with literal offsets: then a solution is at a number of
//! the label, a constant or a literal, or next to one of these plus a literal. Undecided formulas
//! are skipped. Cost: action formulas times tuples of candidates.

use super::draw::{is_number, literals};
use mu_base::ids::VarId;
use mu_data::expr::{DataSpec, Expr, ExprKind, Substitution};
use mu_data::naive::Naive;
use mu_data::signature::{Builtin, Signature};
use mu_formula::typed::{Action, Regular, StateKind, TypedStateFormula};
use mu_process::labels::MultiAction;
use num_traits::ToPrimitive;
use std::collections::BTreeSet;

/// Limit on the rewrite steps for one label; beyond it the evaluation is undecided.
const STEP_LIMIT: u64 = 100_000;
/// Limit on the numbers tried for a variable; with more the formula is undecided.
const MAX_NUMBERS: usize = 200;

/// The tests and the action formulas of a formula.
#[derive(Default)]
pub struct FormulaView {
    tests: Vec<Expr>,
    actions: Vec<Action>,
    literals: BTreeSet<i64>,
}

/// The evaluator for one valuation.
pub struct FormulaEvaluator {
    naive: Naive,
    by: Substitution,
    constants: Vec<i64>,
}

impl FormulaEvaluator {
    /// Creates the evaluator. `data`: the formula's, with values of the constants; `by`: values of
    /// the numbers that the formula quantifies over.
    pub fn new(data: DataSpec, by: Substitution, valuation: &[i64]) -> Self {
        Self { naive: Naive::of(data, STEP_LIMIT), by, constants: valuation.to_vec() }
    }
}

impl FormulaView {
    /// Collects the tests and action formulas of a formula.
    pub fn new(formula: &TypedStateFormula) -> Self {
        let mut view = Self::default();
        view.state(formula);
        let mut found = literals(view.tests.iter());
        for action in &view.actions {
            expressions(action, &mut |e| found.extend(literals(std::iter::once(e))));
        }
        view.literals = found;
        view
    }

    /// Returns the literals of the tests and action formulas.
    pub fn literals(&self) -> &BTreeSet<i64> {
        &self.literals
    }

    fn state(&mut self, f: &TypedStateFormula) {
        stacker::maybe_grow(128 << 10, 4 << 20, || match &f.kind {
            StateKind::True | StateKind::False | StateKind::Var(..) => {}
            StateKind::Val(e) => self.tests.push(e.clone()),
            StateKind::Not(g) | StateKind::Forall(_, g) | StateKind::Exists(_, g) => self.state(g),
            StateKind::And(a, b) | StateKind::Or(a, b) | StateKind::Implies(a, b) => {
                self.state(a);
                self.state(b);
            }
            StateKind::Must(r, g) | StateKind::May(r, g) => {
                self.regular(r);
                self.state(g);
            }
            StateKind::Fix { body, .. } => self.state(body),
        });
    }

    fn regular(&mut self, r: &Regular) {
        match r {
            Regular::Action(a) => self.actions.push(a.clone()),
            Regular::Seq(a, b) | Regular::Alt(a, b) => {
                self.regular(a);
                self.regular(b);
            }
            Regular::Star(a) | Regular::Plus(a) => self.regular(a),
        }
    }

    /// Returns a closed test of the formula that differs between two valuations. `None` if no test
    /// is decided differently.
    pub fn test_that_differs(
        &self,
        one: &mut FormulaEvaluator,
        two: &mut FormulaEvaluator,
    ) -> Option<Expr> {
        self.tests
            .iter()
            .find(|e| matches!((evaluate_closed(e, one), evaluate_closed(e, two)), (Some(a), Some(b)) if a != b))
            .cloned()
    }

    /// True if some action formula matches exactly one of the labels.
    pub fn differs(
        &self,
        (one, concrete): (&mut FormulaEvaluator, &MultiAction),
        (two, image): (&mut FormulaEvaluator, &MultiAction),
    ) -> bool {
        self.actions.iter().any(|a| {
            let of = |eye: &mut FormulaEvaluator, label| {
                eye.naive.allow(STEP_LIMIT);
                let mut by = eye.by.clone();
                matches(a, label, &mut by, &self.literals, eye)
            };
            matches!((of(one, concrete), of(two, image)), (Some(a), Some(b)) if a != b)
        })
    }
}

/// Evaluates a test that is closed except for the numbers of the valuation.
fn evaluate_closed(e: &Expr, eye: &mut FormulaEvaluator) -> Option<bool> {
    let closed = e.substitute(&eye.by);
    if !closed.is_closed() {
        return None;
    }
    eye.naive.allow(STEP_LIMIT);
    let normal = eye.naive.normal(&closed)?;
    normal.as_bool(eye.naive.signature())
}

fn expressions(a: &Action, see: &mut dyn FnMut(&Expr)) {
    match a {
        Action::True | Action::False => {}
        Action::Val(e) => see(e),
        Action::Multi(acts) => acts.iter().flat_map(|a| &a.1).for_each(see),
        Action::Not(a) | Action::Forall(_, a) | Action::Exists(_, a) => expressions(a, see),
        Action::And(a, b) | Action::Or(a, b) | Action::Implies(a, b) => {
            expressions(a, see);
            expressions(b, see);
        }
    }
}

/// True if a label matches an action formula; `None` if undecided.
fn matches(
    a: &Action,
    label: &MultiAction,
    by: &mut Substitution,
    literals: &BTreeSet<i64>,
    eye: &mut FormulaEvaluator,
) -> Option<bool> {
    Some(match a {
        Action::True => true,
        Action::False => false,
        Action::Val(e) => {
            let closed = e.substitute(by);
            let normal = closed.is_closed().then(|| eye.naive.normal(&closed))??;
            normal.as_bool(eye.naive.signature())?
        }
        Action::Multi(acts) => is_multi(acts, label, by, eye)?,
        Action::Not(a) => !matches(a, label, by, literals, eye)?,
        Action::And(a, b) => {
            matches(a, label, by, literals, eye)? && matches(b, label, by, literals, eye)?
        }
        Action::Or(a, b) => {
            matches(a, label, by, literals, eye)? || matches(b, label, by, literals, eye)?
        }
        Action::Implies(a, b) => {
            !matches(a, label, by, literals, eye)? || matches(b, label, by, literals, eye)?
        }
        Action::Exists(vars, body) | Action::Forall(vars, body) => {
            let wanted = matches!(a, Action::Exists(..));
            matches_quantified(vars, body, wanted, label, by, literals, eye)?
        }
    })
}

fn matches_quantified(
    vars: &[VarId],
    body: &Action,
    wanted: bool,
    label: &MultiAction,
    by: &mut Substitution,
    literals: &BTreeSet<i64>,
    eye: &mut FormulaEvaluator,
) -> Option<bool> {
    let Some((var, rest)) = vars.split_first() else {
        return Some(matches(body, label, by, literals, eye)? == wanted).map(|b| b == wanted);
    };
    let sort = eye.naive.signature().var(*var).sort;
    let values: Vec<Expr> = if is_number(sort) {
        let mut compared = true;
        expressions(body, &mut |e| {
            compared &= only_compared(eye.naive.signature(), e, *var, false)
        });
        if !compared {
            return None;
        }
        candidates(label, by, literals, eye)
            .into_iter()
            .filter(|n| super::draw::in_sort(*n, sort))
            .map(|n| Expr::number(n, sort))
            .collect()
    } else {
        eye.naive.elements(sort).filter(|all| all.len() <= 64)?
    };
    for value in values {
        by.insert(*var, value);
        let found = matches_quantified(rest, body, wanted, label, by, literals, eye);
        by.remove(var);
        if found? == wanted {
            return Some(wanted);
        }
    }
    Some(!wanted)
}

/// Returns numbers that include a solution of the comparisons, if there is one.
fn candidates(
    label: &MultiAction,
    by: &Substitution,
    literals: &BTreeSet<i64>,
    eye: &FormulaEvaluator,
) -> BTreeSet<i64> {
    let mut at: BTreeSet<i64> = super::draw::literals(label.iter().flat_map(|a| &a.1));
    at.extend(eye.constants.iter().copied());
    at.extend(
        by.values()
            .filter_map(|e| if let ExprKind::Number(n) = &e.kind { n.to_i64() } else { None }),
    );
    at.extend(literals);
    let mut out = BTreeSet::from([0, 1, 1 << 50]);
    for n in at.into_iter().take(MAX_NUMBERS) {
        for l in literals.iter().copied().chain([0]).take(20) {
            for sum in [n.saturating_add(l), n.saturating_sub(l)] {
                out.extend([sum.saturating_sub(1), sum, sum.saturating_add(1)]);
            }
        }
    }
    out
}

/// True if a variable is only compared, possibly with literal offsets, or is an argument by itself.
fn only_compared(signature: &Signature, e: &Expr, var: VarId, inside: bool) -> bool {
    use Builtin::*;
    let mut free = Vec::new();
    e.free_vars(&mut free);
    if !free.contains(&var) || e.kind == ExprKind::Var(var) {
        return true;
    }
    let Some((builtin, args)) = e.as_builtin(signature) else { return false };
    let compares = matches!(builtin, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual);
    let connects = matches!(builtin, And | Or | Not | Implies);
    let copies = matches!(builtin, PosToNat | PosToInt | NatToInt);
    let literal = |a: &Expr| matches!(a.kind, ExprKind::Number(_));
    let adds = matches!(builtin, Add) && args.iter().any(literal);
    let all_match = if inside { copies || adds } else { compares || connects || copies };
    all_match && args.iter().all(|a| only_compared(signature, a, var, inside || compares))
}

/// True if a label equals this multi-action.
fn is_multi(
    acts: &[(mu_base::ids::ActId, Vec<Expr>)],
    label: &MultiAction,
    by: &Substitution,
    eye: &mut FormulaEvaluator,
) -> Option<bool> {
    if acts.len() != label.len() {
        return Some(false);
    }
    let mut wanted = Vec::new();
    for (action, args) in acts {
        let closed: Vec<Expr> = args.iter().map(|e| e.substitute(by)).collect();
        if !closed.iter().all(Expr::is_closed) {
            return None;
        }
        wanted.push((
            *action,
            closed.iter().map(|e| eye.naive.normal(e)).collect::<Option<Vec<_>>>()?,
        ));
    }
    let mut left: Vec<_> = label.iter().collect();
    for (action, args) in &wanted {
        let Some(at) = left.iter().position(|(a, found)| a == action && found == args) else {
            return Some(false);
        };
        left.swap_remove(at);
    }
    Some(true)
}
