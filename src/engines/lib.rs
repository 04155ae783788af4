//! The engines: ways to count the states of a model and to check a formula on it, behind one
//! registry.
//!
//! An engine says its name, which wishes it declines, and gives answers of one form. [`auto`] is an
//! engine that asks the others. A new engine is a file here and a line in [`engines`]. Engines know
//! models and labels, never where these come from.
#![warn(missing_docs)]

pub mod auto;
pub mod cluster;
pub mod explicit;
pub mod symbolic;

use mu_base::{Budget, Diagnostic, Stop};
use mu_explore::{Extras, Peers, Progress, Silent};
use mu_formula::typed::TypedFormula;
use mu_labels::ActionLabels;
use mu_lts::Lts;
use mu_model::Model;
use mu_pbes::{Answer, Shelf};
use mu_solve::Solver;
use mu_symbolic::Strategy;
use num_bigint::BigUint;
use std::fmt::Debug;

/// Something asked for besides numbers and verdicts, which not every engine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wish {
    /// The transition system itself.
    TransitionSystem,
    /// Checkpoints.
    Checkpoint,
    /// States on disk.
    Spill,
    /// Labels hidden or renamed.
    Relabelling,
    /// Confluent steps taken at once.
    Priority,
    /// A model that is a stored transition system.
    Stored,
}

impl Wish {
    /// How messages call it.
    pub fn words(self) -> &'static str {
        match self {
            Wish::TransitionSystem => "writing or reducing a transition system",
            Wish::Checkpoint => "`--checkpoint`",
            Wish::Spill => "`--spill`",
            Wish::Relabelling => "`--hide` or `--rename`",
            Wish::Priority => "`--confluence`",
            Wish::Stored => "a file of a transition system",
        }
    }
}

/// How to count or check; an engine looks at what concerns it.
pub struct Options<'a> {
    /// Threads, symmetry, priority of confluent steps.
    pub explore: mu_explore::Options,
    /// How sets of states are searched.
    pub strategy: Strategy,
    /// How many formulas are checked side by side, and share the threads.
    pub beside: usize,
    /// Who watches.
    pub progress: &'a dyn Progress,
    /// Solver of games; none: the default one.
    pub solver: Option<&'a dyn Solver>,
    /// Where searches of a product are kept and gone on with.
    pub shelf: Option<&'a dyn Shelf>,
    /// Whether a game may be played on a quotient of the model.
    pub quotient: bool,
    /// Whether evidence is wanted where it only says that something holds everywhere.
    pub witnesses: bool,
    /// Processes that search together, if there are several.
    pub peers: Option<&'a dyn Peers>,
}

impl Options<'_> {
    /// Nobody watches, all reductions, saturation.
    pub fn new(explore: mu_explore::Options) -> Self {
        Self {
            explore,
            strategy: Strategy::Saturation,
            beside: 1,
            progress: &Silent,
            solver: None,
            shelf: None,
            quotient: true,
            witnesses: false,
            peers: None,
        }
    }
}

/// What a count gave. Absent numbers are unknown.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The engine's name.
    pub engine: &'static str,
    /// Why this engine, if that was to be found out.
    pub reason: Option<String>,
    /// States.
    pub states: BigUint,
    /// Transitions.
    pub transitions: Option<BigUint>,
    /// States without a step.
    pub deadlocks: Option<BigUint>,
    /// Why it stopped; the numbers are exact if it is complete.
    pub stop: Stop,
    /// Whether all ends were shown to who asked for them ([`Extras::ends`]).
    pub shown_ends: bool,
    /// The transition system, if [`Wish::TransitionSystem`] was among the wishes.
    pub lts: Option<Lts>,
    /// What the engine's own search said.
    pub detail: Detail,
}

/// What an engine's own search said.
#[derive(Clone, Debug)]
pub enum Detail {
    /// One state at a time.
    Explicit(mu_explore::Outcome),
    /// Sets of states.
    Symbolic(mu_symbolic::Outcome),
}

/// What a check gave.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The engine's name.
    pub engine: &'static str,
    /// Why this engine, if that was to be found out.
    pub reason: Option<String>,
    /// The verdict with its evidence.
    pub answer: Answer,
    /// What a search of sets of states cost, if there was one.
    pub sets: Option<Sets>,
}

/// What a search of sets of states met with a formula, and what it cost.
#[derive(Clone, Debug)]
pub struct Sets {
    /// The search of the model.
    pub outcome: mu_symbolic::Outcome,
    /// Obligations met.
    pub obligations: usize,
    /// Pairs of state and obligation.
    pub pairs: BigUint,
}

/// A model with its labels as formulas see them.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// Its labels.
    pub labels: &'a dyn ActionLabels,
}

/// What is asked of an engine, and how far it may go.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// What is asked for besides numbers and verdicts.
    pub wishes: &'a [Wish],
    /// How.
    pub options: &'a Options<'a>,
    /// How far.
    pub budget: &'a Budget,
}

/// A way to count and to check.
pub trait Engine: Sync + Debug {
    /// The name that options and reports use.
    fn name(&self) -> &'static str;
    /// One line for the help.
    fn about(&self) -> &'static str;
    /// The first of the wishes that it does not do.
    fn declines(&self, wishes: &[Wish]) -> Option<Wish>;
    /// Whether one formula at a time keeps all threads at work; else several are checked side by
    /// side.
    fn shares_a_formula(&self) -> bool;
    /// Counts states, transitions and deadlocks.
    ///
    /// # Errors
    /// Those of the model.
    fn count(
        &self,
        model: &dyn Model,
        task: Task<'_>,
        extras: Extras<'_>,
    ) -> Result<Counted, Diagnostic>;
    /// Checks a formula.
    ///
    /// # Errors
    /// Those of the model and of the formula's data; a formula that the engine does not take is an
    /// error of stage `Unsupported`.
    fn check(
        &self,
        subject: Subject<'_>,
        formula: &TypedFormula,
        task: Task<'_>,
    ) -> Result<Checked, Diagnostic>;
}

/// All engines; the first is the default.
pub fn engines() -> &'static [&'static dyn Engine] {
    &[&explicit::Explicit, &symbolic::Symbolic, &auto::Auto, &cluster::Cluster]
}

/// The engine of a name.
pub fn by_name(name: &str) -> Option<&'static dyn Engine> {
    engines().iter().copied().find(|e| e.name() == name)
}
