//! Typed state, regular and action formulas.

use mu_base::Span;
use mu_base::ids::{ActId, FixId, VarId};
use mu_data::expr::{DataSpec, Expr};
use mu_process::labels::ActionDecl;

/// A state formula with its position.
#[derive(Clone, Debug)]
pub struct TypedStateFormula {
    /// Its kind.
    pub kind: StateKind,
    /// Its position in the source.
    pub span: Span,
}

/// Kinds of state formula.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum StateKind {
    True,
    False,
    Val(Expr),
    Not(Box<TypedStateFormula>),
    And(Box<TypedStateFormula>, Box<TypedStateFormula>),
    Or(Box<TypedStateFormula>, Box<TypedStateFormula>),
    Implies(Box<TypedStateFormula>, Box<TypedStateFormula>),
    Forall(Vec<VarId>, Box<TypedStateFormula>),
    Exists(Vec<VarId>, Box<TypedStateFormula>),
    Must(Box<Regular>, Box<TypedStateFormula>),
    May(Box<Regular>, Box<TypedStateFormula>),
    /// `mu`/`nu`: parameters with initial values, which are outside of the parameters' scope.
    Fix {
        least: bool,
        var: FixId,
        params: Vec<(VarId, Expr)>,
        body: Box<TypedStateFormula>,
    },
    Var(FixId, Vec<Expr>),
}

/// A regular formula.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Regular {
    Action(Action),
    Seq(Box<Regular>, Box<Regular>),
    Alt(Box<Regular>, Box<Regular>),
    Star(Box<Regular>),
    Plus(Box<Regular>),
}

/// An action formula: a set of multi-actions.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Action {
    True,
    False,
    Val(Expr),
    /// Exactly this multi-action (sorted by action id); empty is tau.
    Multi(Vec<(ActId, Vec<Expr>)>),
    Not(Box<Action>),
    And(Box<Action>, Box<Action>),
    Or(Box<Action>, Box<Action>),
    Implies(Box<Action>, Box<Action>),
    Forall(Vec<VarId>, Box<Action>),
    Exists(Vec<VarId>, Box<Action>),
}

/// A typed formula with its data: the model's data specification, extended by the formula file's
/// declarations and variables. The model's ids of sorts, operations and actions are preserved.
#[derive(Clone, Debug)]
pub struct TypedFormula {
    /// Data specification.
    pub data: DataSpec,
    /// Actions (the model's, then the formula file's own).
    pub actions: Vec<ActionDecl>,
    /// Names of fixed-point variables by `FixId`.
    pub fix_names: Vec<String>,
    /// The formula.
    pub formula: TypedStateFormula,
    /// True if instances of a fixed point differ by all data variables in its scope, including
    /// those that the rest of the formula cannot test. The verdict is the same; the number of
    /// equations is that of a literal translation.
    pub as_written: bool,
}

/// The kinds of modalities in a formula, after negations are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modalities {
    /// True if some step must exist.
    pub may: bool,
    /// True if all steps are constrained.
    pub must: bool,
}

impl TypedFormula {
    /// Collects the modalities. A formula of `[..]` alone that a part of the steps violates is
    /// violated by all of them; one of `<..>` alone that a part satisfies is satisfied.
    pub fn modalities(&self) -> Modalities {
        let mut found = Modalities::default();
        let mut open = vec![(&self.formula, true)];
        while let Some((state, positive)) = open.pop() {
            match &state.kind {
                StateKind::True | StateKind::False | StateKind::Val(_) | StateKind::Var(..) => {}
                StateKind::Not(a) => open.push((a, !positive)),
                StateKind::Implies(a, b) => open.extend([(&**a, !positive), (&**b, positive)]),
                StateKind::And(a, b) | StateKind::Or(a, b) => {
                    open.extend([(&**a, positive), (&**b, positive)])
                }
                StateKind::Forall(_, a)
                | StateKind::Exists(_, a)
                | StateKind::Fix { body: a, .. } => open.push((a, positive)),
                StateKind::Must(_, a) | StateKind::May(_, a) => {
                    let must = matches!(state.kind, StateKind::Must(..)) == positive;
                    found.must |= must;
                    found.may |= !must;
                    open.push((a, positive));
                }
            }
        }
        found
    }
    /// True if the outer operator, below fixed points, is existential (`<..>`, `||`, `exists`), so
    /// that a witness for *true* is useful. The witness of `[..]` and the like is the whole system.
    pub fn asks_for_witness(&self) -> bool {
        let (mut state, mut dual) = (&self.formula, false);
        loop {
            return match &state.kind {
                StateKind::Not(inner) => {
                    (state, dual) = (inner, !dual);
                    continue;
                }
                StateKind::Fix { body, .. } => {
                    state = body;
                    continue;
                }
                StateKind::May(..)
                | StateKind::Or(..)
                | StateKind::Implies(..)
                | StateKind::Exists(..) => !dual,
                StateKind::Must(..) | StateKind::And(..) | StateKind::Forall(..) => dual,
                StateKind::True | StateKind::False | StateKind::Val(_) | StateKind::Var(..) => {
                    false
                }
            };
        }
    }
}
