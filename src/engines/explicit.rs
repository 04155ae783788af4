//! One state at a time: the search of `explore`, the products and games of `pbes`. Takes every wish.

use crate::{Checked, Counted, Detail, Engine, Options, Subject, Wish};
use mu_base::{Budget, Diagnostic};
use mu_explore::{Extras, explore_lts, explore_with};
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
        wishes: &[Wish],
        options: &Options<'_>,
        extras: Extras<'_>,
        budget: &Budget,
    ) -> Result<Counted, Diagnostic> {
        let mut shown_ends = false;
        let (outcome, lts) = if wishes.contains(&Wish::TransitionSystem) {
            explore_lts(model, &options.explore, budget, options.progress).map(|(o, l)| (o, Some(l)))?
        } else {
            shown_ends = extras.ends.is_some();
            (explore_with(model, &options.explore, budget, options.progress, extras)?, None)
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
        _: &[Wish],
        options: &Options<'_>,
        budget: &Budget,
    ) -> Result<Checked, Diagnostic> {
        let plain = mu_pbes::Options::new(&options.explore);
        let chosen = mu_pbes::Options {
            solver: options.solver,
            progress: options.progress,
            shelf: options.shelf,
            quotient_at: plain.quotient_at.filter(|_| options.quotient),
            witnesses: options.witnesses,
            ..plain
        };
        let answer = mu_pbes::check(subject.model, subject.labels, formula, chosen, budget)?;
        Ok(Checked { engine: self.name(), reason: None, answer, watched: None })
    }
}
