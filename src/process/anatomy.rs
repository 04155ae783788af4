//! Composition structure of a linear process: its components as automata with data, and the
//! operators around them.
//!
//! Used for explanations only: engines read summands. Composition discards the combinations that
//! cannot happen, and an explanation of a missing action needs them. So this structure holds each
//! component's summands before composition, over the parameters of the linear process, and for each
//! component the operators above it, from the inside out. It is built from the same automata as the
//! linear process, so locations and parameters agree. Cost: the summands of the components, which
//! are few compared with their products.

use crate::linear::Act;
use mu_base::Span;
use mu_base::ids::{OpId, VarId};
use mu_data::expr::{Expr, Substitution};

/// Components and operators of a linear process. Empty if they are unknown.
#[derive(Clone, Debug, Default)]
pub struct Anatomy {
    /// Components, in the order of [`crate::linear::LinearProcess::components`].
    pub components: Vec<Automaton>,
    /// Operators, in no particular order.
    pub operators: Vec<ComponentOperator>,
    /// By component: the operators above it, innermost first.
    pub above: Vec<Vec<usize>>,
    /// Variables of [`Automaton`]s that are no longer parameters, as terms over the parameters.
    pub defined: Substitution,
    /// Constants without equations that parameters hold where they are not live.
    pub placeholders: Vec<OpId>,
}

/// Component before composition.
#[derive(Clone, Debug)]
pub struct Automaton {
    /// Its locations. The value of the control parameter is the location's number, from 1.
    pub locations: Vec<Location>,
    /// Its summands.
    pub edges: Vec<ComponentEdge>,
    /// Initial location.
    pub initial: usize,
    /// True for an auxiliary component that records whether a first step was done, see `||_` and
    /// `|` between processes.
    pub is_phase: bool,
}

/// Location of a component.
#[derive(Clone, Debug)]
pub struct Location {
    /// Parameters that are live here.
    pub live: Vec<VarId>,
    /// True if it is successful termination.
    pub terminated: bool,
}

/// Summand of a component.
#[derive(Clone, Debug)]
pub struct ComponentEdge {
    /// Source location.
    pub from: usize,
    /// Target location.
    pub to: usize,
    /// Sum variables.
    pub sum_vars: Vec<VarId>,
    /// Condition.
    pub guard: Expr,
    /// Multi-action.
    pub acts: Vec<Act>,
}

/// Operator around components.
#[derive(Clone, Debug)]
pub struct ComponentOperator {
    /// Kind of the operator.
    pub kind: OperatorKind,
    /// Place in the source.
    pub place: Span,
}

/// Effect of an operator on action names. Multisets of names are sorted.
#[derive(Clone, Debug)]
pub enum OperatorKind {
    /// Blocks these names.
    Block(Vec<String>),
    /// Allows only these multisets.
    Allow(Vec<Vec<String>>),
    /// Hides these names.
    Hide(Vec<String>),
    /// Renames the first name of each pair to the second.
    Rename(Vec<(String, String)>),
    /// Combines each multiset into one action, or into tau.
    Comm(Vec<(Vec<String>, Option<String>)>),
}

impl OperatorKind {
    /// Returns the keyword of the operator.
    pub fn word(&self) -> &'static str {
        match self {
            OperatorKind::Block(_) => "block",
            OperatorKind::Allow(_) => "allow",
            OperatorKind::Hide(_) => "hide",
            OperatorKind::Rename(_) => "rename",
            OperatorKind::Comm(_) => "comm",
        }
    }
}

/// Returns a communication rule as text.
pub fn rule_text(rule: &(Vec<String>, Option<String>)) -> String {
    format!("{} -> {}", rule.0.join("|"), rule.1.as_deref().unwrap_or("tau"))
}
