//! Sets of states as decision diagrams: the layer `symbolic`, and the obligations of `pbes` over its diagrams.

use crate::{Checked, Counted, Detail, Engine, Options, Subject, Task, Wish};
use mu_base::Diagnostic;
use mu_explore::Extras;
use mu_formula::typed::TypedFormula;
use mu_model::Model;
use mu_pbes::symbolic::check_symbolically;
use mu_symbolic::reach;

/// Sets of states.
#[derive(Debug)]
pub struct Symbolic;

fn diagrams(options: &Options<'_>) -> mu_symbolic::Options {
    let threads = (options.explore.thread_count() / options.beside.max(1)).max(1);
    mu_symbolic::Options { threads, strategy: options.strategy, ..Default::default() }
}

impl Engine for Symbolic {
    fn name(&self) -> &'static str {
        "symbolic"
    }
    fn about(&self) -> &'static str {
        "Sets of states as decision diagrams: exact counts; formulas that need no game"
    }
    fn declines(&self, wishes: &[Wish]) -> Option<Wish> {
        wishes.first().copied()
    }
    fn shares_a_formula(&self) -> bool {
        false
    }
    fn count(&self, model: &dyn Model, task: Task<'_>, _: Extras<'_>) -> Result<Counted, Diagnostic> {
        let outcome = reach(model, &diagrams(task.options), task.budget)?;
        Ok(Counted {
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
    fn check(&self, subject: Subject<'_>, formula: &TypedFormula, task: Task<'_>) -> Result<Checked, Diagnostic> {
        let found = check_symbolically(subject.model, subject.labels, formula, &diagrams(task.options), task.budget)?;
        let watched = found.watched.clone();
        Ok(Checked { engine: self.name(), reason: None, answer: found.into_answer(), watched })
    }
}
