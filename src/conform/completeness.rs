//! Comparison in the other direction: the outcomes that a memory model allows and a machine shows.
//!
//! Input: the programs that a machine runs up to a bound, and its executions. Output: the number of
//! outcomes that the model allows for these programs, the number that the machine shows, and a
//! smallest one that it never shows. Cost: one judgement for each choice of the values of loads.
//!
//! [`strongest`] finds, among memory models that a machine implements, those of which no other one
//! forbids an execution that they allow: the strongest ones, for the programs of the machine.

use crate::judge::MemoryModel;
use crate::suite::{Executions, outcomes};
use ahash::AHashSet;
use mu_axioms::EventKind;
use mu_axioms::history::History;
use mu_base::{Budget, Diagnostic};

/// Result of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completeness {
    /// Number of programs.
    pub programs: usize,
    /// Number of their executions that the model allows, up to the symmetries of memory models.
    pub allowed: usize,
    /// Number of those that the machine shows.
    pub shown: usize,
    /// A smallest one that the machine never shows.
    pub missing: Option<History>,
}

/// Compares the executions of a machine with those that a model allows. Error: a limit.
pub fn completeness(
    programs: &AHashSet<History>,
    executions: &Executions,
    model: &MemoryModel,
    budget: &Budget,
) -> Result<Completeness, Diagnostic> {
    allowed_executions(programs, executions, model, budget).map(|both| both.0)
}

/// Finds the strongest of some models that a machine implements, each with its index and the
/// comparison of its outcomes. `models` are in an order in which no model is stronger than an
/// earlier one; a model is left out if it allows all that an earlier one allows. Error: a limit.
pub fn strongest(
    programs: &AHashSet<History>,
    executions: &Executions,
    models: &[(usize, &MemoryModel)],
    budget: &Budget,
) -> Result<Vec<(usize, Completeness)>, Diagnostic> {
    let mut out: Vec<(usize, Completeness)> = Vec::new();
    let mut known: Vec<AHashSet<History>> = Vec::new();
    for (index, model) in models {
        let mut worker = model.worker_within(budget);
        let mut weaker = false;
        for stronger in &known {
            let mut all = true;
            for (i, history) in stronger.iter().enumerate() {
                budget.check(i as u64).map_err(Diagnostic::stopped)?;
                if !worker.allows(history)? {
                    all = false;
                    break;
                }
            }
            weaker |= all;
        }
        if !weaker {
            let (found, allowed) = allowed_executions(programs, executions, model, budget)?;
            out.push((*index, found));
            known.push(allowed);
        }
    }
    Ok(out)
}

/// Returns the comparison with the executions that the model allows.
fn allowed_executions(
    programs: &AHashSet<History>,
    executions: &Executions,
    model: &MemoryModel,
    budget: &Budget,
) -> Result<(Completeness, AHashSet<History>), Diagnostic> {
    let mut worker = model.worker_within(budget);
    let mut all: AHashSet<History> = AHashSet::new();
    let mut out = Completeness { programs: programs.len(), allowed: 0, shown: 0, missing: None };
    for (i, program) in programs.iter().enumerate() {
        budget.check(i as u64).map_err(Diagnostic::stopped)?;
        let mut allowed: AHashSet<History> = AHashSet::new();
        for outcome in outcomes(program, &mut worker)? {
            let mut history = program.clone();
            let reads = history.threads.iter_mut().flatten().filter(|o| o.kind.reads());
            for (operation, value) in reads.zip(outcome) {
                let update = operation.kind == EventKind::Update;
                *(if update { &mut operation.read } else { &mut operation.value }) = value;
            }
            allowed.insert(history.canonical());
        }
        out.allowed += allowed.len();
        for history in allowed {
            let rank = |h: &History| (h.len(), h.clone());
            if executions.contains(&history) {
                out.shown += 1;
            } else if out.missing.as_ref().is_none_or(|m| rank(&history) < rank(m)) {
                out.missing = Some(history.clone());
            }
            all.insert(history);
        }
    }
    Ok((out, all))
}
