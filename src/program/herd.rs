//! A litmus test run under a model, and what the herd tools would print of it.
//!
//! In: a [`Litmus`], a memory model, the bound of the buffers. Out: a [`Report`]. The counts of the lines `Witnesses` and `Observation` are of
//! outcomes here; the herd tools count executions, of which several may have one outcome.

use super::condition::Quantifier;
use super::litmus::Litmus;
use super::machine::Machine;
use super::memory::MemoryModel;
use super::outcomes::{Outcomes, observed_registers, outcomes};
use super::witness::{Witness, witness};
use mu_base::{Budget, Diagnostic, Stop};

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The condition holds.
    Ok,
    /// It does not.
    No,
    /// A limit or a bound was reached before that was clear.
    Unknown,
}

impl Verdict {
    /// The word that is printed.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "Ok",
            Verdict::No => "No",
            Verdict::Unknown => "Unknown",
        }
    }
}

/// What came out of a test.
#[derive(Clone, Debug)]
pub struct Report {
    /// The test's name.
    pub name: String,
    /// The memory model's name.
    pub model: &'static str,
    /// What is asked.
    pub quantifier: Quantifier,
    /// The proposition's text.
    pub condition: String,
    /// A line for each outcome: name and value of each thing observed.
    pub outcomes: Vec<Vec<(String, String)>>,
    /// Outcomes that satisfy the proposition.
    pub positive: u64,
    /// Outcomes that do not.
    pub negative: u64,
    /// The verdict.
    pub verdict: Verdict,
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
pub fn run(test: &Litmus, memory: &'static dyn MemoryModel, asked: Option<u32>, budget: &Budget) -> Result<Report, Diagnostic> {
    let found = outcomes(&machine(test, memory, asked), &test.observables(), true, budget)?;
    Ok(report(test, memory.name(), &found))
}

/// An execution that decides a test: one that satisfies the proposition, or for `forall` one that does not.
pub fn deciding(test: &Litmus, memory: &'static dyn MemoryModel, asked: Option<u32>, budget: &Budget) -> Result<Witness, Diagnostic> {
    let wanted = |o: &[u64]| {
        let counts = test.filter.as_ref().is_none_or(|f| f.holds(&test.observed, o));
        counts && test.prop.holds(&test.observed, o) == (test.quantifier != Quantifier::Forall)
    };
    witness(&machine(test, memory, asked), &test.observables(), budget, &wanted)
}

/// An outcome in one line.
pub fn outcome_text(test: &Litmus, outcome: &[u64]) -> String {
    let one = |(seen, &v): (&super::condition::Observed, &u64)| format!("{}={};", seen.text, seen.value_text(v, &test.variables));
    test.observed.iter().zip(outcome).map(one).collect::<Vec<_>>().join(" ")
}

/// The report of a set of outcomes.
pub fn report(test: &Litmus, model: &'static str, found: &Outcomes) -> Report {
    let counted = |o: &&Vec<u64>| test.filter.as_ref().is_none_or(|f| f.holds(&test.observed, o));
    let mut lines: Vec<(Vec<i128>, &Vec<u64>)> =
        (found.set.iter().filter(counted)).map(|o| (test.observed.iter().zip(o).map(|(seen, &v)| seen.number(v)).collect(), o)).collect();
    lines.sort();
    lines.dedup_by(|a, b| a.0 == b.0);
    let positive = lines.iter().filter(|(_, o)| test.prop.holds(&test.observed, o)).count() as u64;
    let negative = lines.len() as u64 - positive;
    // What was found stays true whatever was not seen.
    let sure = match test.quantifier {
        Quantifier::Exists | Quantifier::NotExists => positive > 0,
        Quantifier::Forall => negative > 0,
    };
    let complete = found.stop == Stop::Complete && !found.bound_reached;
    let verdict = match test.quantifier.holds(positive, negative) {
        _ if !complete && !sure => Verdict::Unknown,
        true => Verdict::Ok,
        false => Verdict::No,
    };
    let shown =
        |o: &[u64]| test.observed.iter().zip(o).map(|(seen, &v)| (seen.text.clone(), seen.value_text(v, &test.variables))).collect();
    Report {
        name: test.name.clone(),
        model,
        quantifier: test.quantifier,
        condition: test.prop.text(&test.observed, &test.variables),
        outcomes: lines.iter().map(|(_, o)| shown(o)).collect(),
        positive,
        negative,
        verdict,
        states: found.states,
        stop: found.stop.clone(),
        bound_reached: found.bound_reached,
    }
}

impl Report {
    /// `Always`, `Sometimes` or `Never`.
    pub fn observation(&self) -> &'static str {
        match (self.positive, self.negative) {
            (0, _) => "Never",
            (_, 0) => "Always",
            _ => "Sometimes",
        }
    }
    /// The text, as the herd tools print it.
    pub fn text(&self) -> String {
        let mut out = format!("Test {} {}\nStates {}\n", self.name, self.quantifier.kind(), self.outcomes.len());
        for line in &self.outcomes {
            let items: Vec<String> = line.iter().map(|(name, value)| format!("{name}={value};")).collect();
            out += &items.join(" ");
            out.push('\n');
        }
        // The witnesses of `~exists` are those that speak for it.
        let (speak_for, against) = match self.quantifier {
            Quantifier::NotExists => (self.negative, self.positive),
            _ => (self.positive, self.negative),
        };
        out += &format!("{}\nWitnesses\nPositive: {speak_for} Negative: {against}\n", self.verdict.word());
        out += &format!("Condition {} ({})\n", self.quantifier.word(), self.condition);
        out += &format!("Observation {} {} {} {}\n", self.name, self.observation(), self.positive, self.negative);
        out
    }
}
