//! Explicit engine: the search of `explore`, the products and games of `pbes`. Supports every
//! capability.

use crate::{Capability, CheckResult, CountResult, Detail, Engine, EngineTask, Subject};
use mu_base::Diagnostic;
use mu_explore::{CountExtras, explore_lts_with, explore_with};
use mu_formula::typed::TypedFormula;
use mu_model::Model;

/// Explicit search.
#[derive(Debug)]
pub struct Explicit;

impl Engine for Explicit {
    fn name(&self) -> &'static str {
        "explicit"
    }
    fn summary(&self) -> &'static str {
        "Explicit search: one state at a time"
    }
    fn unsupported_capability(&self, _: &[Capability]) -> Option<Capability> {
        None
    }
    fn shares_a_formula(&self) -> bool {
        true
    }
    fn count(
        &self,
        model: &dyn Model,
        task: EngineTask<'_>,
        extras: CountExtras<'_>,
    ) -> Result<CountResult, Diagnostic> {
        let shown_ends = extras.ends.is_some();
        let (outcome, lts) = if task.capabilities.contains(&Capability::TransitionSystem) {
            explore_lts_with(
                model,
                &task.options.explore,
                task.budget,
                task.options.progress,
                extras.ends,
            )
            .map(|(o, l)| (o, Some(l)))?
        } else {
            (
                explore_with(
                    model,
                    &task.options.explore,
                    task.budget,
                    task.options.progress,
                    extras,
                )?,
                None,
            )
        };
        Ok(CountResult {
            engine: self.name(),
            reason: None,
            states: outcome.states.into(),
            transitions: Some(outcome.transitions.into()),
            deadlocks: Some(outcome.deadlocks.into()),
            stop: outcome.stop.clone(),
            shown_ends,
            lts,
            detail: Detail::Explicit(outcome),
        })
    }
    fn check(
        &self,
        subject: Subject<'_>,
        formula: &TypedFormula,
        task: EngineTask<'_>,
    ) -> Result<CheckResult, Diagnostic> {
        let options = task.options;
        let plain = mu_pbes::Options::new(&options.explore);
        let chosen = mu_pbes::Options {
            solver: options.solver,
            progress: options.progress,
            checkpoint_store: options.checkpoint_store,
            quotient_at: plain.quotient_at.filter(|_| options.quotient),
            witnesses: options.witnesses,
            ..plain
        };
        let answer = mu_pbes::check(subject.model, subject.labels, formula, chosen, task.budget)?;
        Ok(CheckResult { engine: self.name(), reason: None, answer, sets: None })
    }
}
