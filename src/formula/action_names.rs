//! Multi-actions named by a formula, with their positions: the basis of warnings about actions that
//! never happen.
//!
//! In: a typed formula. Out: each multi-action of each modality, with the modality's position, its
//! polarity, and the kind of the modality (`[..]` or `<..>`) after negations are counted. Cost:
//! linear in the formula.

use super::typed::{Action, Regular, StateKind, TypedFormula, TypedStateFormula};
use mu_base::Span;
use mu_base::ids::ActId;
use mu_data::expr::Expr;

/// A multi-action that a formula names.
#[derive(Clone, Debug)]
pub struct NamedAction {
    /// The modality.
    pub span: Span,
    /// Actions with their arguments.
    pub acts: Vec<(ActId, Vec<Expr>)>,
    /// True if it is under an even number of negations within its action formula.
    pub positive: bool,
    /// True if the modality is `[..]` (otherwise `<..>`) when negations are pushed inwards.
    pub must: bool,
}

/// Returns all multi-actions that a formula names, in the order of the text.
pub fn named_actions(formula: &TypedFormula) -> Vec<NamedAction> {
    let mut out = Vec::new();
    state(&formula.formula, true, &mut out);
    out
}

fn state(s: &TypedStateFormula, positive: bool, out: &mut Vec<NamedAction>) {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &s.kind {
        StateKind::True | StateKind::False | StateKind::Val(_) | StateKind::Var(..) => {}
        StateKind::Not(a) => state(a, !positive, out),
        StateKind::And(a, b) | StateKind::Or(a, b) => {
            state(a, positive, out);
            state(b, positive, out);
        }
        StateKind::Implies(a, b) => {
            state(a, !positive, out);
            state(b, positive, out);
        }
        StateKind::Forall(_, a) | StateKind::Exists(_, a) | StateKind::Fix { body: a, .. } => {
            state(a, positive, out)
        }
        StateKind::Must(r, a) | StateKind::May(r, a) => {
            let must = matches!(s.kind, StateKind::Must(..)) == positive;
            regular(r, s.span, must, out);
            state(a, positive, out);
        }
    });
}

fn regular(r: &Regular, span: Span, must: bool, out: &mut Vec<NamedAction>) {
    stacker::maybe_grow(64 << 10, 1 << 20, || match r {
        Regular::Action(a) => action(a, span, must, true, out),
        Regular::Seq(a, b) | Regular::Alt(a, b) => {
            regular(a, span, must, out);
            regular(b, span, must, out);
        }
        Regular::Star(a) | Regular::Plus(a) => regular(a, span, must, out),
    });
}

fn action(a: &Action, span: Span, must: bool, positive: bool, out: &mut Vec<NamedAction>) {
    stacker::maybe_grow(64 << 10, 1 << 20, || match a {
        Action::True | Action::False | Action::Val(_) => {}
        Action::Multi(acts) if acts.is_empty() => {}
        Action::Multi(acts) => out.push(NamedAction { span, acts: acts.clone(), positive, must }),
        Action::Not(a) => action(a, span, must, !positive, out),
        Action::And(a, b) | Action::Or(a, b) => {
            action(a, span, must, positive, out);
            action(b, span, must, positive, out);
        }
        Action::Implies(a, b) => {
            action(a, span, must, !positive, out);
            action(b, span, must, positive, out);
        }
        Action::Forall(_, a) | Action::Exists(_, a) => action(a, span, must, positive, out),
    });
}

/// Returns the innermost part of a formula behind `[..]`, `forall` and conditions on data alone. At
/// the end of a path that refutes the formula, that part fails, unless the path continues in it
/// ([`goes_on`]).
pub fn innermost(formula: &TypedFormula) -> &TypedStateFormula {
    let mut at = &formula.formula;
    loop {
        at = match &at.kind {
            StateKind::Must(_, a) | StateKind::Forall(_, a) => a,
            StateKind::Or(a, b) | StateKind::Implies(a, b) if is_data(a) => b,
            StateKind::Or(a, b) if is_data(b) => a,
            _ => return at,
        };
    }
}

/// True if a formula depends on data only.
fn is_data(s: &TypedStateFormula) -> bool {
    match &s.kind {
        StateKind::True | StateKind::False | StateKind::Val(_) => true,
        StateKind::Not(a) => is_data(a),
        StateKind::And(a, b) | StateKind::Or(a, b) | StateKind::Implies(a, b) => {
            is_data(a) && is_data(b)
        }
        _ => false,
    }
}

/// True if a path that refutes a part of a formula may continue from the state where the part is
/// evaluated: it has `[..]` when negations are pushed inwards.
pub fn goes_on(part: &TypedStateFormula) -> bool {
    fn box_in(s: &TypedStateFormula, positive: bool) -> bool {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &s.kind {
            StateKind::True | StateKind::False | StateKind::Val(_) | StateKind::Var(..) => false,
            StateKind::Not(a) => box_in(a, !positive),
            StateKind::And(a, b) | StateKind::Or(a, b) => {
                box_in(a, positive) || box_in(b, positive)
            }
            StateKind::Implies(a, b) => box_in(a, !positive) || box_in(b, positive),
            StateKind::Forall(_, a) | StateKind::Exists(_, a) | StateKind::Fix { body: a, .. } => {
                box_in(a, positive)
            }
            StateKind::Must(_, a) => positive || box_in(a, positive),
            StateKind::May(_, a) => !positive || box_in(a, positive),
        })
    }
    // A path does not refute the operand of `<..>`.
    match &part.kind {
        StateKind::May(..) => false,
        _ => box_in(part, true),
    }
}
