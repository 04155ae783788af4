//! Miniscoping of action formulas: moves quantifiers inwards, to parts that use their variables and
//! cannot be split.
//!
//! `exists` distributes over `||`, moves past operands of `&&` that do not use its variables, and
//! into tests, where it becomes a quantifier of data; dually `forall`. For example,
//! `exists n: Nat. val(n > 3) || a(n)` becomes `val(exists n: Nat. n > 3) || exists n: Nat. a(n)`.
//! The test is then decided by itself, and `a(n)` needs only the values of `n` that actions of the
//! model provide. Cost: linear in the formula, times the depth of quantifiers.

use super::normal::action_free_vars;
use super::typed::Action;
use mu_base::ids::VarId;
use mu_data::expr::{Binder, Expr, ExprKind};
use mu_data::signature::Signature;
use mu_data::sort::basic;

/// Returns the action formula with its quantifiers moved inwards. Adds new terms to `signature`.
pub(super) fn narrow(signature: &mut Signature, action: &Action) -> Action {
    stacker::maybe_grow(64 << 10, 1 << 20, || match action {
        Action::True | Action::False | Action::Val(_) | Action::Multi(_) => action.clone(),
        Action::Not(a) => Action::Not(Box::new(narrow(signature, a))),
        Action::And(a, b) => {
            Action::And(Box::new(narrow(signature, a)), Box::new(narrow(signature, b)))
        }
        Action::Or(a, b) => {
            Action::Or(Box::new(narrow(signature, a)), Box::new(narrow(signature, b)))
        }
        Action::Implies(a, b) => {
            Action::Implies(Box::new(narrow(signature, a)), Box::new(narrow(signature, b)))
        }
        Action::Forall(vars, a) => {
            let a = narrow(signature, a);
            quantify(signature, true, vars, a)
        }
        Action::Exists(vars, a) => {
            let a = narrow(signature, a);
            quantify(signature, false, vars, a)
        }
    })
}

/// Returns `forall vars. a` (`all`) or `exists vars. a`.
fn quantify(signature: &mut Signature, all: bool, vars: &[VarId], a: Action) -> Action {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        let vars = free_variables(vars, &a);
        if vars.is_empty() {
            return a;
        }
        let join = |all: bool, a: Action, b: Action| {
            if all {
                Action::And(Box::new(a), Box::new(b))
            } else {
                Action::Or(Box::new(a), Box::new(b))
            }
        };
        match a {
            Action::Val(e) => {
                let (binder, span) = (if all { Binder::Forall } else { Binder::Exists }, e.span);
                Action::Val(Expr::new(ExprKind::Bind(binder, vars, e), basic::BOOL, span))
            }
            Action::Not(a) => match *a {
                Action::Val(e) => {
                    let e = Expr::negate(signature, e);
                    quantify(signature, all, &vars, Action::Val(e))
                }
                Action::Not(a) => quantify(signature, all, &vars, *a),
                Action::And(a, b) => {
                    quantify(signature, all, &vars, Action::Or(negate(a), negate(b)))
                }
                Action::Or(a, b) => {
                    quantify(signature, all, &vars, Action::And(negate(a), negate(b)))
                }
                Action::Implies(a, b) => quantify(signature, all, &vars, Action::And(a, negate(b))),
                a => bind(all, vars, Action::Not(Box::new(a))),
            },
            Action::Implies(a, b) => quantify(signature, all, &vars, Action::Or(negate(a), b)),
            // A conjunction under `exists`, a disjunction under `forall`: only an operand without
            // the variables moves out.
            Action::And(a, b) if !all => split(signature, all, vars, *a, *b, &join),
            Action::Or(a, b) if all => split(signature, all, vars, *a, *b, &join),
            Action::And(a, b) | Action::Or(a, b) => {
                let (a, b) =
                    (quantify(signature, all, &vars, *a), quantify(signature, all, &vars, *b));
                join(all, a, b)
            }
            a => bind(all, vars, a),
        }
    })
}

fn split(
    signature: &mut Signature,
    all: bool,
    vars: Vec<VarId>,
    a: Action,
    b: Action,
    join: &dyn Fn(bool, Action, Action) -> Action,
) -> Action {
    if free_variables(&vars, &a).is_empty() {
        let b = quantify(signature, all, &vars, b);
        return join(!all, a, b);
    }
    if free_variables(&vars, &b).is_empty() {
        let a = quantify(signature, all, &vars, a);
        return join(!all, a, b);
    }
    bind(all, vars, join(!all, a, b))
}

fn bind(all: bool, vars: Vec<VarId>, a: Action) -> Action {
    if all { Action::Forall(vars, Box::new(a)) } else { Action::Exists(vars, Box::new(a)) }
}

fn negate(a: Box<Action>) -> Box<Action> {
    Box::new(Action::Not(a))
}

/// Returns the variables that occur freely.
fn free_variables(vars: &[VarId], a: &Action) -> Vec<VarId> {
    let mut free = Vec::new();
    action_free_vars(a, &mut free);
    vars.iter().copied().filter(|v| free.contains(v)).collect()
}
