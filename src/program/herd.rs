//! Run of a litmus test on the machine of a memory model.
//!
//! Input: a [`Litmus`], a memory model, the bound of the buffers. Output: a [`HerdReport`].

use super::litmus::Litmus;
use super::machine::Machine;
use super::memory::MemoryModel;
use super::outcome_search::{Outcomes, observed_registers, outcomes};
use super::witness::{Witness, witness};
use crate::outcome::Answer;
use mu_base::{Budget, Diagnostic, Stop};

/// The result of a test.
#[derive(Clone, Debug)]
pub struct HerdReport {
    /// The question with its answer.
    pub answer: Answer,
    /// States searched.
    pub states: u64,
    /// The stop reason.
    pub stop: Stop,
    /// True if a store had to wait for a full buffer.
    pub bound_reached: bool,
}

/// Builds the machine of a test.
fn machine(test: &Litmus, memory: &'static dyn MemoryModel, requested: Option<u32>) -> Machine {
    let registers = observed_registers(&test.observables(), test.program.threads.len());
    Machine::new(test.program.clone(), memory, test.program.buffer_bound(requested), &registers)
}

/// Runs a test.
pub fn run(
    test: &Litmus,
    memory: &'static dyn MemoryModel,
    requested: Option<u32>,
    budget: &Budget,
) -> Result<HerdReport, Diagnostic> {
    let found = outcomes(&machine(test, memory, requested), &test.observables(), true, budget)?;
    Ok(report(test, memory.name(), &found))
}

/// Searches an execution that decides a test: one that satisfies the proposition or, for `forall`,
/// one that violates it.
pub fn find_deciding_execution(
    test: &Litmus,
    memory: &'static dyn MemoryModel,
    requested: Option<u32>,
    budget: &Budget,
) -> Result<Witness, Diagnostic> {
    witness(&machine(test, memory, requested), &test.observables(), budget, &|o| {
        test.question.is_decided_by(o)
    })
}

/// Builds the report of a set of outcomes.
pub fn report(test: &Litmus, model: &'static str, found: &Outcomes) -> HerdReport {
    let complete = found.stop == Stop::Complete && !found.bound_reached;
    HerdReport {
        answer: Answer::new(
            &test.name,
            model,
            &test.question,
            &test.variables,
            &found.set,
            complete,
        ),
        states: found.states,
        stop: found.stop.clone(),
        bound_reached: found.bound_reached,
    }
}
