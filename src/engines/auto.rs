//! The engine that suits: one state at a time while the states are few, then sets of states; if these outgrow half of the memory, one at a time again.
//!
//! It asks the other engines what they decline, and says why it took which.

use crate::explicit::Explicit;
use crate::symbolic::Symbolic;
use crate::{Checked, Counted, Engine, Subject, Task, Wish};
use mu_base::{Budget, Diagnostic, Limits, Stage, Stop};
use mu_explore::Extras;
use mu_formula::typed::TypedFormula;
use mu_model::Model;
use mu_pbes::Verdict;

/// The engine that suits.
#[derive(Debug)]
pub struct Auto;

/// States that are searched one by one at first, and the words for them.
const FEW: (u64, &str) = (200_000, "200,000 states");

/// The budget of a first look, and whether the user's own limit is lower.
fn first_look(budget: &Budget) -> (Budget, bool) {
    let limits = *budget.limits();
    let own = limits.max_states.is_some_and(|n| n <= FEW.0);
    let most = limits.max_states.map_or(FEW.0, |n| n.min(FEW.0));
    (budget.with_limits(Limits { max_states: Some(most), ..limits }), own)
}

/// The budget of the diagrams: what is left is for the explicit engine, should they outgrow their half.
fn half(budget: &Budget) -> Budget {
    let limits = *budget.limits();
    budget.with_limits(Limits { max_memory: limits.max_memory.map(|m| m / 2), ..limits })
}

const OUTGROWN: &str = "the diagrams outgrew half of the memory";

/// Why these wishes leave only the explicit engine, if they do.
pub fn required(wishes: &[Wish]) -> Option<String> {
    Symbolic.declines(wishes).map(|wish| format!("required by {}", wish.words()))
}

impl Engine for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }
    fn about(&self) -> &'static str {
        "One state at a time while they are few, then sets of states"
    }
    fn declines(&self, _: &[Wish]) -> Option<Wish> {
        None
    }
    fn shares_a_formula(&self) -> bool {
        false
    }
    fn count(&self, model: &dyn Model, task: Task<'_>, extras: Extras<'_>) -> Result<Counted, Diagnostic> {
        if let Some(reason) = required(task.wishes) {
            let counted = Explicit.count(model, task, extras)?;
            return Ok(Counted { reason: Some(reason), ..counted });
        }
        let (look, own) = first_look(task.budget);
        let few = Explicit.count(model, Task { budget: &look, ..task }, Extras::default())?;
        if few.stop != Stop::States || own {
            return Ok(Counted { reason: Some(format!("not more than {}", FEW.1)), ..few });
        }
        let many = Symbolic.count(model, Task { budget: &half(task.budget), ..task }, Extras::default())?;
        if many.stop != Stop::Memory {
            return Ok(Counted { reason: Some(format!("more than {}", FEW.1)), ..many });
        }
        let all = Explicit.count(model, task, extras)?;
        Ok(Counted { reason: Some(OUTGROWN.into()), ..all })
    }
    fn check(&self, subject: Subject<'_>, formula: &TypedFormula, task: Task<'_>) -> Result<Checked, Diagnostic> {
        let explicit = |reason: String, budget: &Budget| {
            Ok(Checked { reason: Some(reason), ..Explicit.check(subject, formula, Task { budget, ..task })? })
        };
        if let Some(reason) = required(task.wishes) {
            return explicit(reason, task.budget);
        }
        let (look, own) = first_look(task.budget);
        let few = explicit(format!("not more than {}", FEW.1), &look)?;
        if own || few.answer.verdict != Verdict::Unknown(Stop::States) {
            return Ok(few);
        }
        let why = match Symbolic.check(subject, formula, Task { budget: &half(task.budget), ..task }) {
            Ok(found) if found.answer.verdict == Verdict::Unknown(Stop::Memory) => OUTGROWN.to_string(),
            Ok(found) => return Ok(Checked { reason: Some(format!("more than {}", FEW.1)), ..found }),
            Err(refusal) if refusal.stage == Stage::Unsupported => refusal.message,
            Err(error) => return Err(error),
        };
        explicit(why, task.budget)
    }
}
