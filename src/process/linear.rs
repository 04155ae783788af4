//! Linear processes: `P(d) = sum e. c(d, e) -> a(f(d, e)) . P(g(d, e)) + …`. The lineariser creates
//! them, and engines execute them.

use crate::anatomy::Anatomy;
use crate::labels::ActionDecl;
use mu_base::ids::{ActId, VarId};
use mu_base::{Place, Span};
use mu_data::expr::{DataSpec, Expr};

/// Action with arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Act {
    /// Action.
    pub action: ActId,
    /// Arguments.
    pub args: Vec<Expr>,
    /// Origins in the components, ascending by component: one action, or several that communicated.
    /// Provenance only.
    pub from: Vec<Origin>,
    /// Place in the source; for a communication, the place of its first participant.
    pub place: Place,
}

/// Action of a parallel component, before communication and renaming.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Component.
    pub component: u32,
    /// Action of the component.
    pub action: ActId,
    /// Number of arguments that the component leaves open (sum variables), so that it receives them
    /// by communication.
    pub open: u32,
}

/// Probabilistic choice of values for variables. Values without a weight have probability 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chance {
    /// Chosen variables.
    pub vars: Vec<VarId>,
    /// Probability of their values, of sort Real.
    pub weight: Expr,
}

/// Summand.
#[derive(Clone, Debug)]
pub struct Summand {
    /// Sum variables (those that one-point rules did not remove).
    pub sum_vars: Vec<VarId>,
    /// Condition over parameters and sum variables.
    pub guard: Expr,
    /// The multi-action, sorted by action id; empty is tau.
    pub actions: Vec<Act>,
    /// Actions that were hidden: provenance for traces and for naming steps to be prioritised.
    pub hidden: Vec<Act>,
    /// Next state: (index of parameter, new value), changed parameters only; ascending index.
    pub updates: Vec<(usize, Expr)>,
    /// Probabilistic choice after the action: `updates` may refer to its variables.
    pub chance: Option<Chance>,
    /// Time of the action, if it has one.
    pub time: Option<Expr>,
    /// True if the source has a `sum` around this action, even if a one-point rule removed it
    /// later.
    pub had_sum: bool,
}

impl Summand {
    /// Returns a place for messages: that of its first action.
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
    /// True if the process has a probabilistic choice.
    pub fn is_probabilistic(&self) -> bool {
        self.chance.is_some() || self.summands.iter().any(|s| s.chance.is_some())
    }
    /// True if an action of the process has a time.
    pub fn is_timed(&self) -> bool {
        self.summands.iter().any(|s| s.time.is_some())
    }
}

/// Origin of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamRole {
    /// Control location of the parallel component of that number.
    Control(u32),
    /// A data parameter of that component.
    Data(u32),
}

/// Parameter of a linear process.
#[derive(Clone, Debug)]
pub struct Param {
    /// Variable, which guards and updates use.
    pub var: VarId,
    /// Role.
    pub role: ParamRole,
    /// Initial value: closed except for the variables of the initial [`LinearProcess::chance`].
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
    /// Probabilistic choice before the first step.
    pub chance: Option<Chance>,
    /// Summands.
    pub summands: Vec<Summand>,
    /// Names of the parallel components, for charts and messages.
    pub components: Vec<String>,
    /// Composition structure, for explanations.
    pub anatomy: Anatomy,
}
