//! A litmus test run on the machine of a memory model.
//!
//! In: a [`Litmus`], a memory model, the bound of the buffers. Out: a [`Report`].

use super::litmus::Litmus;
use super::machine::Machine;
use super::memory::MemoryModel;
use super::outcomes::{Outcomes, observed_registers, outcomes};
use super::witness::{Witness, witness};
use mu_base::{Budget, Diagnostic, Stop};
use mu_outcome::Answer;

/// What came out of a test.
#[derive(Clone, Debug)]
pub struct Report {
    /// What is asked and answered.
    pub answer: Answer,
    /// States searched.
    pub states: u64,
    /// Why the search ended.
    pub stop: Stop,
    /// Whether a buffer was full.
    pub bound_reached: bool,
}

/// The machine that runs a test.
fn machine(test: &Litmus, memory: &'static dyn MemoryModel, asked: Option<u32>) -> Machine {
    let registers = observed_registers(&test.observables(), test.program.threads.len());
    Machine::new(test.program.clone(), memory, test.program.buffer_bound(asked), &registers)
}

/// Runs a test.
pub fn run(
    test: &Litmus,
    memory: &'static dyn MemoryModel,
    asked: Option<u32>,
    budget: &Budget,
) -> Result<Report, Diagnostic> {
    let found = outcomes(&machine(test, memory, asked), &test.observables(), true, budget)?;
    Ok(report(test, memory.name(), &found))
}

/// An execution that decides a test: one that satisfies the proposition, or for `forall` one that
/// does not.
pub fn deciding(
    test: &Litmus,
    memory: &'static dyn MemoryModel,
    asked: Option<u32>,
    budget: &Budget,
) -> Result<Witness, Diagnostic> {
    witness(&machine(test, memory, asked), &test.observables(), budget, &|o| {
        test.question.decided_by(o)
    })
}

/// The report of a set of outcomes.
pub fn report(test: &Litmus, model: &'static str, found: &Outcomes) -> Report {
    let complete = found.stop == Stop::Complete && !found.bound_reached;
    Report {
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
