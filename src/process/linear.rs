//! Linear processes: `P(d) = sum e. c(d, e) -> a(f(d, e)) . P(g(d, e)) + …`, what the lineariser
//! makes and engines run.

use crate::anatomy::Anatomy;
use mu_base::ids::{ActId, VarId};
use mu_base::{Place, Span};
use mu_data::expr::{DataSpec, Expr};
use mu_labels::ActionDecl;

/// An action with arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Act {
    /// Which action.
    pub action: ActId,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// What the components did for it, ascending by component: one action, or several that
    /// communicated. Provenance only.
    pub from: Vec<Origin>,
    /// Where the action was written; for a communication, the first of those that made it.
    pub place: Place,
}

/// An action as a parallel component did it, before communication and renaming.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The component.
    pub component: u32,
    /// Its action.
    pub action: ActId,
    /// How many of its arguments were left open there (variables summed over): what the component
    /// learns by communicating.
    pub open: u32,
}

/// A choice by chance: values of variables, each with its probability. Values that are not listed
/// by the weight have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chance {
    /// What is chosen.
    pub vars: Vec<VarId>,
    /// The probability of their values, of sort Real.
    pub weight: Expr,
}

/// A summand.
#[derive(Clone, Debug)]
pub struct Summand {
    /// Variables summed over (those that one-point rules did not remove).
    pub sum_vars: Vec<VarId>,
    /// Condition over parameters and sum variables.
    pub guard: Expr,
    /// The multi-action, sorted by action id; empty is tau.
    pub actions: Vec<Act>,
    /// What was hidden to get `actions`: provenance for traces and for naming steps to be
    /// prioritised.
    pub hidden: Vec<Act>,
    /// Next-state: (index of parameter, new value), only those that change; ascending index.
    pub updates: Vec<(usize, Expr)>,
    /// What is chosen by chance once the action is done: `updates` may speak of its variables.
    pub chance: Option<Chance>,
    /// When the action happens, if that is said.
    pub time: Option<Expr>,
    /// Whether the process as written had a `sum` in scope here, even if a one-point rule removed
    /// it since.
    pub had_sum: bool,
}

impl Summand {
    /// A place for messages: that of its first action.
    pub fn span(&self) -> Span {
        self.actions
            .iter()
            .chain(&self.hidden)
            .map(|a| a.place.0)
            .find(|s| s.is_somewhere())
            .unwrap_or_default()
    }
}

impl LinearProcess {
    /// Whether something in it is chosen by chance.
    pub fn is_probabilistic(&self) -> bool {
        self.chance.is_some() || self.summands.iter().any(|s| s.chance.is_some())
    }
    /// Whether it says of some action when it happens.
    pub fn is_timed(&self) -> bool {
        self.summands.iter().any(|s| s.time.is_some())
    }
}

/// Where a parameter comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamRole {
    /// Control location of the parallel component of that number.
    Control(u32),
    /// A data parameter of that component.
    Data(u32),
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its variable, which guards and updates use.
    pub var: VarId,
    /// Its role.
    pub role: ParamRole,
    /// Its initial value: closed but for the variables of the initial [`LinearProcess::chance`].
    pub init: Expr,
}

/// A linear process with its data specification.
#[derive(Clone, Debug)]
pub struct LinearProcess {
    /// Data (with sorts and operations that linearisation added, such as stacks).
    pub data: DataSpec,
    /// Declared actions.
    pub actions: Vec<ActionDecl>,
    /// Global variables that still occur.
    pub globals: Vec<VarId>,
    /// Parameters.
    pub params: Vec<Param>,
    /// What is chosen by chance before the first step.
    pub chance: Option<Chance>,
    /// Summands.
    pub summands: Vec<Summand>,
    /// Names of the parallel components, for charts and messages.
    pub components: Vec<String>,
    /// What it was made of, for explanations.
    pub anatomy: Anatomy,
}
