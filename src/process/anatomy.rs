//! What a linear process was made of: the components as automata with data, and the operators
//! between them and the whole.
//!
//! For explanations alone: engines read summands. Composition keeps what can happen; why something
//! cannot is told by what it left out, and that is here: each component's summands before
//! composition, over the parameters of the linear process, and for each component the
//! operators above it, from the inside out. Built beside the linear process from the same automata,
//! so locations and parameters agree. Cost: the summands of the components, which are few beside
//! their products.

use crate::linear::Act;
use mu_base::Span;
use mu_base::ids::{OpId, VarId};
use mu_data::expr::{Expr, Substitution};

/// Components and operators of a linear process. Empty if they are not known.
#[derive(Clone, Debug, Default)]
pub struct Anatomy {
    /// By component, as [`crate::linear::LinearProcess::components`] names them.
    pub components: Vec<Automaton>,
    /// The operators, in no order.
    pub operators: Vec<Operator>,
    /// By component: the operators above it, the innermost first.
    pub above: Vec<Vec<usize>>,
    /// Variables of [`Automaton`]s that are no parameters any more, as terms over those that are.
    pub defined: Substitution,
    /// Constants without equations that parameters hold where they are not live.
    pub unused: Vec<OpId>,
}

/// A component before composition.
#[derive(Clone, Debug)]
pub struct Automaton {
    /// Its locations. The control parameter has the number of one, from 1.
    pub locations: Vec<Location>,
    /// Its summands.
    pub edges: Vec<Edge>,
    /// Where it starts.
    pub initial: usize,
    /// Whether it only remembers that a first step was done, see `||_` and `|` between processes.
    pub is_phase: bool,
}

/// A place of a component.
#[derive(Clone, Debug)]
pub struct Location {
    /// The parameters that mean something here.
    pub live: Vec<VarId>,
    /// Whether it is successful termination.
    pub terminated: bool,
}

/// What a component can do at a location.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The location.
    pub from: usize,
    /// Where it leads.
    pub to: usize,
    /// Variables summed over.
    pub sum_vars: Vec<VarId>,
    /// Its condition.
    pub guard: Expr,
    /// Its multi-action.
    pub acts: Vec<Act>,
}

/// An operator around components.
#[derive(Clone, Debug)]
pub struct Operator {
    /// What it does.
    pub kind: OperatorKind,
    /// Where it is written.
    pub place: Span,
}

/// What operators do with names of actions. Multisets of names are sorted.
#[derive(Clone, Debug)]
pub enum OperatorKind {
    /// Stops these.
    Block(Vec<String>),
    /// Stops all but these multisets.
    Allow(Vec<Vec<String>>),
    /// Makes these tau.
    Hide(Vec<String>),
    /// Gives others names.
    Rename(Vec<(String, String)>),
    /// Joins these multisets to one action, or to tau.
    Comm(Vec<(Vec<String>, Option<String>)>),
}

impl OperatorKind {
    /// The word for it in a specification.
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

/// A rule of a communication as it is written.
pub fn rule_text(rule: &(Vec<String>, Option<String>)) -> String {
    format!("{} -> {}", rule.0.join("|"), rule.1.as_deref().unwrap_or("tau"))
}
