//! Symbolic engine: decision diagrams of the layer `symbolic`, and the obligations of `pbes` over
//! its diagrams.

use crate::{
    Capability, CheckResult, CountResult, Detail, Engine, EngineOptions, EngineTask, Sets, Subject,
};
use mu_base::Diagnostic;
use mu_explore::CountExtras;
use mu_formula::typed::TypedFormula;
use mu_model::Model;
use mu_pbes::symbolic::{CheckOptions, check_with_options};
use mu_symbolic::reach;

/// Symbolic search.
#[derive(Debug)]
pub struct Symbolic;

fn diagrams(options: &EngineOptions<'_>) -> mu_symbolic::SymbolicOptions {
    let threads = (options.explore.thread_count() / options.concurrent_formulas.max(1)).max(1);
    mu_symbolic::SymbolicOptions { threads, strategy: options.strategy, ..Default::default() }
}

impl Engine for Symbolic {
    fn name(&self) -> &'static str {
        "symbolic"
    }
    fn summary(&self) -> &'static str {
        "Sets of states as decision diagrams: exact counts, all formulas"
    }
    fn unsupported_capability(&self, capabilities: &[Capability]) -> Option<Capability> {
        capabilities.first().copied()
    }
    fn shares_a_formula(&self) -> bool {
        false
    }
    fn count(
        &self,
        model: &dyn Model,
        task: EngineTask<'_>,
        _: CountExtras<'_>,
    ) -> Result<CountResult, Diagnostic> {
        let outcome = reach(model, &diagrams(task.options), task.budget)?;
        Ok(CountResult {
            engine: self.name(),
            reason: None,
            states: outcome.states.clone(),
            transitions: outcome.transitions.clone(),
            deadlocks: outcome.deadlocks.clone(),
            stop: outcome.stop.clone(),
            shown_ends: false,
            lts: None,
            detail: Detail::Symbolic(outcome),
        })
    }
    fn check(
        &self,
        subject: Subject<'_>,
        formula: &TypedFormula,
        task: EngineTask<'_>,
    ) -> Result<CheckResult, Diagnostic> {
        let wanted = CheckOptions { runs_end: false, witnesses: task.options.witnesses };
        let found = check_with_options(
            subject.model,
            subject.labels,
            formula,
            &diagrams(task.options),
            wanted,
            task.budget,
        )?;
        let product_outcome = found
            .product_outcome
            .as_ref()
            .map(|w| (w.outcome.clone(), w.obligations, w.pairs.clone()));
        let met = product_outcome.or(found
            .game_outcome
            .as_ref()
            .map(|p| (p.outcome.clone(), p.obligations, p.vertices.clone())));
        let sets = met.map(|(outcome, obligations, pairs)| Sets { outcome, obligations, pairs });
        Ok(CheckResult { engine: self.name(), reason: None, answer: found.into_answer(), sets })
    }
}
