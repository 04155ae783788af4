//! One state at a time: the search of `explore`, the products and games of `pbes`. Takes every
//! wish.

use crate::{Checked, Counted, Detail, Engine, Subject, Task, Wish};
use mu_base::Diagnostic;
use mu_explore::{Extras, explore_lts_with, explore_with};
use mu_formula::typed::TypedFormula;
use mu_model::Model;

/// One state at a time.
#[derive(Debug)]
pub struct Explicit;

impl Engine for Explicit {
    fn name(&self) -> &'static str {
        "explicit"
    }
    fn about(&self) -> &'static str {
        "One state at a time"
    }
    fn declines(&self, _: &[Wish]) -> Option<Wish> {
        None
    }
    fn shares_a_formula(&self) -> bool {
        true
    }
    fn count(
        &self,
        model: &dyn Model,
        task: Task<'_>,
        extras: Extras<'_>,
    ) -> Result<Counted, Diagnostic> {
        let shown_ends = extras.ends.is_some();
        let (outcome, lts) = if task.wishes.contains(&Wish::TransitionSystem) {
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
        Ok(Counted {
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
        task: Task<'_>,
    ) -> Result<Checked, Diagnostic> {
        let options = task.options;
        let plain = mu_pbes::Options::new(&options.explore);
        let chosen = mu_pbes::Options {
            solver: options.solver,
            progress: options.progress,
            shelf: options.shelf,
            quotient_at: plain.quotient_at.filter(|_| options.quotient),
            witnesses: options.witnesses,
            ..plain
        };
        let answer = mu_pbes::check(subject.model, subject.labels, formula, chosen, task.budget)?;
        Ok(Checked { engine: self.name(), reason: None, answer, sets: None })
    }
}
