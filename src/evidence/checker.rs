//! Evidence checker, independent of the solvers: each step is replayed on the model's own groups,
//! and the formula is evaluated directly on the transition system of the steps.
//!
//! Cost: one group evaluation for each step. The direct evaluation may take long for formulas with
//! many quantified variables; it stops after a number of elementary steps. Invariant: uses nothing
//! of `pbes`, `game`, `solve`, `explore`.

use super::{Evidence, RenumberedLabels, TakenStep};
use mu_base::{Diagnostic, Stage};
use mu_formula::direct;
use mu_formula::typed::TypedFormula;
use mu_model::Model;
use mu_model::step_cache::{StepCache, successor};
use mu_process::labels::ActionLabels;

/// Result of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EvidenceCheck {
    /// All steps are valid and the formula has the stated value on them.
    Confirmed,
    /// All steps are valid; the evaluation was stopped, because it takes long or a condition has no
    /// value.
    StepsOnly,
}

/// Limit on the elementary steps of the direct evaluation.
const FUEL: u64 = 2_000_000;

/// Checks evidence. A failure is an internal error, because it means that a verdict is not
/// justified.
pub fn check(
    evidence: &Evidence,
    model: &dyn Model,
    labels: &dyn ActionLabels,
    formula: &TypedFormula,
) -> Result<EvidenceCheck, Diagnostic> {
    replay(evidence, model)?;
    let (lts, behind) = evidence.lts(model);
    let labels = RenumberedLabels { labels, behind: &behind };
    match direct::holds_within(formula, &lts, &labels, FUEL) {
        // The evaluation includes all states and parts, also where a condition without a value does
        // not affect the result.
        Err(d) if d.stage == Stage::Data => Ok(EvidenceCheck::StepsOnly),
        Err(d) => Err(d),
        Ok(None) => Ok(EvidenceCheck::StepsOnly),
        Ok(Some(value)) if value == evidence.verdict => Ok(EvidenceCheck::Confirmed),
        // The evaluation restricts a quantifier over infinitely many values to some; the others may
        // decide.
        Ok(Some(_)) => match direct::holds_for(formula, &lts, &labels, FUEL, 200) {
            Ok(Some((value, _))) if value == evidence.verdict => Ok(EvidenceCheck::Confirmed),
            Ok(Some((_, true)) | None) => Ok(EvidenceCheck::StepsOnly),
            Err(d) if d.stage != Stage::Data => Err(d),
            Err(_) => Ok(EvidenceCheck::StepsOnly),
            Ok(Some((_, false))) => {
                Err(unjustified_error("the formula has another value on the evidence".into()))
            }
        },
    }
}

/// Checks that the evidence starts at the model's initial state and that its steps are steps of the
/// model.
pub fn replay(evidence: &Evidence, model: &dyn Model) -> Result<(), Diagnostic> {
    let Some(first) = evidence.states.first() else {
        return Err(unjustified_error("it has no states".into()));
    };
    let mut evaluated = StepCache::new(model);
    if follow(model, &mut evaluated, model.initial(), &evidence.before)? != *first {
        return Err(unjustified_error("it does not start at the initial state".into()));
    }
    for (i, step) in evidence.steps.iter().enumerate() {
        let (from, to) =
            (evidence.states.get(step.from as usize), evidence.states.get(step.to as usize));
        let (Some(from), Some(to)) = (from, to) else {
            return Err(unjustified_error(format!("step {i} names a state that does not exist")));
        };
        if step.taken.first().is_none_or(|t| t.label != step.label)
            || follow(model, &mut evaluated, from.clone(), &step.taken)? != *to
        {
            return Err(unjustified_error(format!(
                "step {i} ({}) does not lead to its target state",
                model.label_text(step.label)
            )));
        }
    }
    Ok(())
}

/// Follows the steps one by one; each must be a step of its group.
fn follow(
    model: &dyn Model,
    evaluated: &mut StepCache,
    mut at: Vec<u32>,
    path: &[TakenStep],
) -> Result<Vec<u32>, Diagnostic> {
    for taken in path {
        if taken.group as usize >= model.groups().len() {
            return Err(unjustified_error(format!("there is no group {}", taken.group)));
        }
        let steps = evaluated.steps(taken.group, &at)?;
        let fits = |i: usize| {
            steps.labels[i] == taken.label
                && successor(model, taken.group, &at, steps, i) == taken.state
        };
        let real = (0..steps.labels.len()).any(fits);
        if !real {
            return Err(unjustified_error(format!(
                "a step {} is not one of the model",
                model.label_text(taken.label)
            )));
        }
        at.clone_from(&taken.state);
    }
    Ok(at)
}

fn unjustified_error(why: String) -> Diagnostic {
    Diagnostic::new(Stage::Internal, format!("the evidence does not justify the verdict: {why}"))
}
