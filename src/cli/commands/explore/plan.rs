//! The plan of an exploration: what `explore`, and `check` without a formula, request.

use crate::args::{
    CheckArgs, CheckpointArgs, DeadlockKind, DistributedArgs, EngineRef, ExploreArgs, GoalArgs,
    Modulo, Reduction, Relabelling, SetStrategy,
};
use mu_base::{Diagnostic, Stage};
use mu_frontends::FrontEnd as _;
use mu_frontends::murphi::MURPHI;
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
    /// Number of samples that check a proof for every size of a Murphi model.
    pub check_samples: usize,
    /// File of the JUnit report, for a Murphi model.
    pub junit: Option<PathBuf>,
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
            check_samples: args.check_samples,
            junit: None,
            shows_deadlock: false,
        }
    }

    /// Converts the arguments of `check` without a formula: counts, and a deadlock if there is one.
    ///
    /// # Errors
    /// Options that need a formula.
    pub fn overview(args: &CheckArgs) -> Result<Self, Diagnostic> {
        // The exploration of a Murphi model checks its claims.
        let claims = MURPHI.has_ending(&args.model);
        let evidence = args.evidence.clone().filter(|_| claims);
        if args.evidence != evidence || args.game.is_some() || args.checkpoints.is_requested() {
            return Err(Diagnostic::new(
                Stage::Usage,
                "a formula is missing: in `check`, `--evidence`, `--game`, `--checkpoint` and `--resume` need a formula",
            )
            .note("`explore` has `--checkpoint` and `--resume` without a formula, and `--evidence` for the path of `--deadlock`, `--action` and `--divergence`"));
        }
        let (terminal, interface) = (args.terminal.clone(), args.interface.clone());
        let full_states = args.full_states;
        Ok(Self {
            model: args.model.clone(),
            out: None,
            reduce: None,
            timings: args.timings.clone(),
            goal: GoalArgs { terminal, evidence, interface, full_states, ..GoalArgs::default() },
            checkpoints: args.checkpoints.clone(),
            spill: None,
            distribution: args.distribution.clone(),
            confluence: args.confluence.clone(),
            without: args.without.clone(),
            relabelling: Relabelling::default(),
            engine: args.chosen_engine.unwrap_or(mu_engines::engines()[0]),
            strategy: None,
            deadlocks: None,
            check_samples: args.check_samples,
            junit: args.junit.clone(),
            shows_deadlock: true,
        })
    }
}
