//! The plan of an exploration: what `explore`, and `check` without a formula, request.

use crate::args::{
    CheckArgs, CheckpointArgs, DeadlockKind, DistributedArgs, EngineRef, ExploreArgs, GoalArgs,
    Modulo, Reduction, Relabelling, SetStrategy,
};
use mu_base::{Diagnostic, Stage};
use std::path::PathBuf;

/// Request to explore a model. The fields are those of [`ExploreArgs`] that are not options of
/// every command.
#[derive(Clone)]
pub(crate) struct Exploration {
    pub model: PathBuf,
    pub out: Option<PathBuf>,
    pub reduce: Option<Modulo>,
    pub timings: Option<PathBuf>,
    pub goal: GoalArgs,
    pub checkpoints: CheckpointArgs,
    pub spill: Option<PathBuf>,
    pub distribution: DistributedArgs,
    pub confluence: String,
    pub without: Vec<Reduction>,
    pub relabelling: Relabelling,
    pub engine: EngineRef,
    pub strategy: Option<SetStrategy>,
    pub deadlocks: Option<DeadlockKind>,
    /// True if a shortest path to a deadlock is shown after the counts.
    pub shows_deadlock: bool,
}

impl Exploration {
    /// Converts the arguments of `explore`.
    pub fn new(args: &ExploreArgs) -> Self {
        Self {
            model: args.model.clone(),
            out: args.out.clone(),
            reduce: args.reduce,
            timings: args.timings.clone(),
            goal: args.goal.clone(),
            checkpoints: args.checkpoints.clone(),
            spill: args.spill.clone(),
            distribution: args.distribution.clone(),
            confluence: args.confluence.clone(),
            without: args.without.clone(),
            relabelling: args.relabelling.clone(),
            engine: args.engine,
            strategy: args.strategy,
            deadlocks: args.deadlocks,
            shows_deadlock: false,
        }
    }

    /// Converts the arguments of `check` without a formula: counts, and a deadlock if there is one.
    ///
    /// # Errors
    /// Options that need a formula.
    pub fn overview(args: &CheckArgs) -> Result<Self, Diagnostic> {
        if args.evidence.is_some() || args.game.is_some() || args.checkpoints.is_requested() {
            return Err(Diagnostic::new(
                Stage::Usage,
                "a formula is missing: in `check`, `--evidence`, `--game`, `--checkpoint` and `--resume` need a formula",
            )
            .note("use `explore` for `--evidence`, `--checkpoint` and `--resume` without a formula"));
        }
        let (terminal, interface) = (args.terminal.clone(), args.interface.clone());
        Ok(Self {
            model: args.model.clone(),
            out: None,
            reduce: None,
            timings: args.timings.clone(),
            goal: GoalArgs { terminal, interface, ..GoalArgs::default() },
            checkpoints: args.checkpoints.clone(),
            spill: None,
            distribution: args.distribution.clone(),
            confluence: args.confluence.clone(),
            without: args.without.clone(),
            relabelling: Relabelling::default(),
            engine: args.chosen_engine.unwrap_or(mu_engines::engines()[0]),
            strategy: None,
            deadlocks: None,
            shows_deadlock: true,
        })
    }
}
