//! Engines: methods to count the states of a model and to check a formula on it, behind one
//! registry.
//!
//! An engine has a name, lists unsupported capabilities, and returns results of a common form.
//! [`auto`] is an engine that uses the others. A new engine is a file here and a line in
//! [`engines`]. Engines know models and labels, never their origin.
#![warn(missing_docs)]

pub mod auto;
pub mod cluster;
pub mod explicit;
pub mod symbolic;

use mu_base::{Budget, Diagnostic, Stop};
use mu_explore::{CountExtras, Peers, Progress, Silent};
use mu_formula::typed::TypedFormula;
use mu_game::solve::Solver;
use mu_lts::Lts;
use mu_model::Model;
use mu_pbes::{Answer, CheckpointStore};
use mu_process::labels::ActionLabels;
use mu_symbolic::Strategy;
use num_bigint::BigUint;
use std::fmt::Debug;

/// A capability that not every engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capability {
    /// Constructing the transition system.
    TransitionSystem,
    /// Checkpoints.
    Checkpoint,
    /// States on disk.
    Spill,
    /// Hidden or renamed labels.
    Relabelling,
    /// Priority of confluent steps.
    Priority,
    /// Models that are stored transition systems.
    Stored,
}

impl Capability {
    /// Returns the text for messages.
    pub fn words(self) -> &'static str {
        match self {
            Capability::TransitionSystem => "writing or reducing a transition system",
            Capability::Checkpoint => "`--checkpoint`",
            Capability::Spill => "`--spill`",
            Capability::Relabelling => "`--hide` or `--rename`",
            Capability::Priority => "`--confluence`",
            Capability::Stored => "a file of a transition system",
        }
    }
}

/// Options of counts and checks; an engine reads the relevant ones.
pub struct EngineOptions<'a> {
    /// Threads, symmetry, priority of confluent steps.
    pub explore: mu_explore::Options,
    /// Strategy of the symbolic engine.
    pub strategy: Strategy,
    /// Number of formulas checked concurrently; they share the thread budget.
    pub concurrent_formulas: usize,
    /// Receives progress reports.
    pub progress: &'a dyn Progress,
    /// Solver of games; `None`: the default one.
    pub solver: Option<&'a dyn Solver>,
    /// Checkpoint store for product searches.
    pub checkpoint_store: Option<&'a dyn CheckpointStore>,
    /// True if a game may be solved on a quotient of the model.
    pub quotient: bool,
    /// True if evidence is wanted even if it only shows that something holds everywhere.
    pub witnesses: bool,
    /// The other processes of a distributed search.
    pub peers: Option<&'a dyn Peers>,
}

impl EngineOptions<'_> {
    /// Returns the defaults: no progress reports, all reductions, saturation.
    pub fn new(explore: mu_explore::Options) -> Self {
        Self {
            explore,
            strategy: Strategy::Saturation,
            concurrent_formulas: 1,
            progress: &Silent,
            solver: None,
            checkpoint_store: None,
            quotient: true,
            witnesses: false,
            peers: None,
        }
    }
}

/// Result of a count. Absent numbers are unknown.
#[derive(Clone, Debug)]
pub struct CountResult {
    /// The engine's name.
    pub engine: &'static str,
    /// Reason for choosing this engine, if it was chosen automatically.
    pub reason: Option<String>,
    /// States.
    pub states: BigUint,
    /// Transitions.
    pub transitions: Option<BigUint>,
    /// States without steps.
    pub deadlocks: Option<BigUint>,
    /// Stop reason; the numbers are exact if it is `Complete`.
    pub stop: Stop,
    /// True if all deadlocks were passed to [`CountExtras::ends`].
    pub shown_ends: bool,
    /// The transition system, if [`Capability::TransitionSystem`] was required.
    pub lts: Option<Lts>,
    /// Statistics of the engine's own search.
    pub detail: Detail,
}

/// Statistics of an engine's own search.
#[derive(Clone, Debug)]
pub enum Detail {
    /// Explicit search.
    Explicit(mu_explore::Outcome),
    /// Symbolic search.
    Symbolic(mu_symbolic::ReachOutcome),
}

/// Result of a check.
#[derive(Clone, Debug)]
pub struct CheckResult {
    /// The engine's name.
    pub engine: &'static str,
    /// Reason for choosing this engine, if it was chosen automatically.
    pub reason: Option<String>,
    /// The verdict with its evidence.
    pub answer: Answer,
    /// Cost of a symbolic search, if there was one.
    pub sets: Option<Sets>,
}

/// Result and cost of a symbolic search with a formula.
#[derive(Clone, Debug)]
pub struct Sets {
    /// The search of the model.
    pub outcome: mu_symbolic::ReachOutcome,
    /// Obligations reached.
    pub obligations: usize,
    /// Pairs of state and obligation.
    pub pairs: BigUint,
}

/// A model with its labels for formulas.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// Its labels.
    pub labels: &'a dyn ActionLabels,
}

/// A request to an engine, with options and limits.
#[derive(Clone, Copy)]
pub struct EngineTask<'a> {
    /// Required capabilities.
    pub capabilities: &'a [Capability],
    /// Options.
    pub options: &'a EngineOptions<'a>,
    /// Limits.
    pub budget: &'a Budget,
}

/// An engine.
pub trait Engine: Sync + Debug {
    /// Returns the name that options and reports use.
    fn name(&self) -> &'static str;
    /// Returns one line for the help.
    fn summary(&self) -> &'static str;
    /// Returns the first of the capabilities that it does not support.
    fn unsupported_capability(&self, capabilities: &[Capability]) -> Option<Capability>;
    /// True if one formula at a time uses all threads; otherwise several are checked concurrently.
    fn shares_a_formula(&self) -> bool;
    /// Counts states, transitions and deadlocks.
    ///
    /// # Errors
    /// Errors of the model.
    fn count(
        &self,
        model: &dyn Model,
        task: EngineTask<'_>,
        extras: CountExtras<'_>,
    ) -> Result<CountResult, Diagnostic>;
    /// Checks a formula.
    ///
    /// # Errors
    /// Errors of the model and of the formula's data; an unsupported formula is an error of stage
    /// `Unsupported`.
    fn check(
        &self,
        subject: Subject<'_>,
        formula: &TypedFormula,
        task: EngineTask<'_>,
    ) -> Result<CheckResult, Diagnostic>;
}

/// Returns all engines; the first is the default.
pub fn engines() -> &'static [&'static dyn Engine] {
    &[&explicit::Explicit, &symbolic::Symbolic, &auto::Auto, &cluster::Cluster]
}

/// Returns the engine with a name; `None` if there is none.
pub fn by_name(name: &str) -> Option<&'static dyn Engine> {
    engines().iter().copied().find(|e| e.name() == name)
}
