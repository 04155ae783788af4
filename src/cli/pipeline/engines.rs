//! Capabilities that options need from engines, and logs of searches.

use crate::args::{EngineRef, SetStrategy};
use crate::commands::check::CheckPlan;
use crate::commands::explore::plan::Exploration;
use crate::pipeline::Session;
use crate::pipeline::load::properties;
use mu_base::{Diagnostic, Stage};
use mu_engines::Capability;
use mu_model::Model;
use mu_symbolic::{ReachOutcome, Strategy};

impl SetStrategy {
    /// Returns the strategy for the engine.
    pub(crate) fn strategy(self) -> Strategy {
        match self {
            SetStrategy::BreadthFirst => Strategy::BreadthFirst,
            SetStrategy::Chaining => Strategy::Chaining,
            SetStrategy::Saturation => Strategy::Saturation,
        }
    }
}

/// Returns the capabilities that the options of `explore` need, beyond counting.
pub(crate) fn capabilities_of_explore(args: &Exploration) -> Vec<Capability> {
    let relabelled = !args.relabelling.hide.is_empty() || !args.relabelling.rename.is_empty();
    let kept = args.out.is_some() || args.reduce.is_some();
    let requested = [
        (kept, Capability::TransitionSystem),
        (args.checkpoints.is_requested(), Capability::Checkpoint),
        (args.spill.is_some(), Capability::Spill),
        (relabelled, Capability::Relabelling),
        // Labels are changed in the transition system.
        (relabelled && !kept, Capability::TransitionSystem),
        (args.confluence != "none", Capability::Priority),
        (properties(&args.model).stored, Capability::Stored),
    ];
    requested.into_iter().filter_map(|(wanted, wish)| wanted.then_some(wish)).collect()
}

/// Returns the capabilities that the options of `check` need, beyond a verdict.
pub(crate) fn capabilities_of_check(plan: &CheckPlan) -> Vec<Capability> {
    let requested = [
        (plan.checkpoints.is_requested(), Capability::Checkpoint),
        (plan.search.confluence != "none", Capability::Priority),
    ];
    requested.into_iter().filter_map(|(wanted, wish)| wanted.then_some(wish)).collect()
}

/// Rejects options that the chosen engine does not support.
pub(crate) fn expect_supported(
    engine: EngineRef,
    capabilities: &[Capability],
) -> Result<(), Diagnostic> {
    let Some(wish) = engine.unsupported_capability(capabilities) else { return Ok(()) };
    let message = format!("{} cannot be combined with `--engine {}`", wish.words(), engine.name());
    Err(Diagnostic::new(Stage::Usage, message).note("omit `--engine` to use the explicit engine"))
}

/// Logs the cost of a symbolic search.
pub(crate) fn log_diagrams(session: &Session, model: &dyn Model, outcome: &ReachOutcome) {
    let order: Vec<&str> = outcome
        .order
        .iter()
        .map(|&s| model.slots().get(s as usize).map_or("", |s| s.name.as_str()))
        .collect();
    session.log(format!("order of slots: {}", order.join(" ")));
    session.log(format!(
        "{} relations of {} nodes, learned by {} calls; {} nodes for {} states; at most {} nodes, {} collections",
        outcome.relations, outcome.relation_nodes, outcome.calls, outcome.nodes, outcome.states, outcome.peak_nodes, outcome.collections
    ));
}
