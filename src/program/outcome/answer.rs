//! Answers to litmus tests, in the output format of the herd tools.
//!
//! The lines `Witnesses` and `Observation` count outcomes; the herd tools count executions, and
//! several executions may have one outcome.

use super::question::{Addresses, Observed, OutcomeQuantifier, Question};

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The condition holds.
    Ok,
    /// The condition does not hold.
    No,
    /// A limit or bound was reached before the answer was determined.
    Unknown,
}

impl Verdict {
    /// Returns the word that is printed.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "Ok",
            Verdict::No => "No",
            Verdict::Unknown => "Unknown",
        }
    }
}

/// The answer to a test.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The test's name.
    pub name: String,
    /// The memory model's name.
    pub model: String,
    /// The quantifier of the question.
    pub quantifier: OutcomeQuantifier,
    /// The proposition's text.
    pub condition: String,
    /// For each outcome, the name and value of each observation.
    pub outcomes: Vec<Vec<(String, String)>>,
    /// Number of outcomes that satisfy the proposition.
    pub positive: u64,
    /// Number of outcomes that violate it.
    pub negative: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// True if these are all outcomes; false if a limit or a bound excluded some.
    pub complete: bool,
    /// True if all outcomes that decide the condition are known, although others may be missing.
    pub decided: bool,
    /// The flags that the model raises, such as data races.
    pub flags: Vec<String>,
    /// True if an allowed execution violates `undefined_unless`, so that the program may do
    /// anything: then neither the condition nor its opposite is guaranteed.
    pub undefined: bool,
}

impl Answer {
    /// Answers a question from the outcomes found; `complete` is true if these are all.
    pub fn new<'o, O: Observed>(
        name: &str,
        model: &str,
        question: &Question<O>,
        addresses: &dyn Addresses,
        found: impl IntoIterator<Item = &'o Vec<u64>>,
        complete: bool,
    ) -> Self {
        // As in the herd tools, observations of the filter alone do not distinguish outcomes.
        let listed = |o: &'o [u64]| {
            let all = question.observed.iter().zip(o).zip(&question.listed);
            all.filter(|(_, listed)| **listed).map(|(seen, _)| seen)
        };
        let numbers = |o: &'o [u64]| listed(o).map(|(seen, &v)| seen.number(v)).collect::<Vec<_>>();
        // Registers are compared in full, so outcomes that print alike may differ in the truth of
        // the proposition.
        let mut lines: Vec<(Vec<i128>, bool, &Vec<u64>)> = found
            .into_iter()
            .filter(|o| question.counts(o))
            .map(|o| (numbers(o), question.holds(o), o))
            .collect();
        lines.sort();
        lines.dedup_by(|a, b| (&a.0, a.1) == (&b.0, b.1));
        let positive = lines.iter().filter(|line| line.1).count() as u64;
        let negative = lines.len() as u64 - positive;
        // Missing outcomes cannot change a settled verdict.
        let verdict = match question.quantifier.holds(positive, negative) {
            _ if !complete && !question.quantifier.is_settled(positive, negative) => {
                Verdict::Unknown
            }
            true => Verdict::Ok,
            false => Verdict::No,
        };
        let shown = |o: &'o [u64]| {
            listed(o).map(|(seen, &v)| (seen.name().to_string(), seen.text(v, addresses))).collect()
        };
        Answer {
            name: name.to_string(),
            model: model.to_string(),
            quantifier: question.quantifier,
            condition: question.prop.text(&question.observed, addresses),
            outcomes: lines.iter().map(|line| shown(line.2)).collect(),
            positive,
            negative,
            verdict,
            complete,
            decided: complete,
            flags: Vec::new(),
            undefined: false,
        }
    }
    /// Records that all outcomes that decide the condition are known: those that satisfy it or, for
    /// `forall`, violate it. Missing outcomes then do not leave the verdict open.
    pub fn decide(&mut self) {
        self.decided = true;
        self.verdict = match self.quantifier.holds(self.positive, self.negative) {
            true => Verdict::Ok,
            false => Verdict::No,
        };
    }
    /// Records that an execution that was not searched may make the program undefined. The demand
    /// of the test is then open, unless it is violated.
    pub fn reopen(&mut self) {
        if self.verdict == Verdict::Ok {
            self.verdict = Verdict::Unknown;
        }
    }
    /// Returns the word of the answer: `Undef` if the program is undefined, else that of the
    /// verdict.
    pub fn word(&self) -> &'static str {
        if self.undefined { "Undef" } else { self.verdict.word() }
    }
    /// Returns whether the demand of the test is met; `None` if that is open. An undefined program
    /// meets no demand.
    pub fn meets_demand(&self) -> Option<bool> {
        match self.verdict {
            _ if self.undefined => Some(false),
            Verdict::Ok => Some(true),
            Verdict::No => Some(false),
            Verdict::Unknown => None,
        }
    }
    /// Returns `Always`, `Sometimes` or `Never`; `Unknown` if missing outcomes could change it.
    /// Without any outcome, for example because the filter excludes all, it is `Never`.
    pub fn observation(&self) -> &'static str {
        match (self.positive, self.negative) {
            (0, 0) if self.complete => "Never",
            (0, 0) if self.quantifier == OutcomeQuantifier::Forall => "Unknown",
            (0, _) if self.decided && self.quantifier != OutcomeQuantifier::Forall => "Never",
            (_, 0) if self.decided && self.quantifier == OutcomeQuantifier::Forall => "Always",
            (0, _) | (_, 0) if !self.complete => "Unknown",
            (0, _) => "Never",
            (_, 0) => "Always",
            _ => "Sometimes",
        }
    }
    /// Prints the answer in the format of the herd tools.
    pub fn text(&self) -> String {
        let mut out = format!(
            "Test {} {}\nStates {}\n",
            self.name,
            self.quantifier.kind(),
            self.outcomes.len()
        );
        for line in &self.outcomes {
            let items: Vec<String> =
                line.iter().map(|(name, value)| format!("{name}={value};")).collect();
            out += &items.join(" ");
            out.push('\n');
        }
        // The witnesses of `~exists` are the outcomes that violate the proposition.
        let (speak_for, against) = match self.quantifier {
            OutcomeQuantifier::NotExists => (self.negative, self.positive),
            _ => (self.positive, self.negative),
        };
        out += &format!("{}\nWitnesses\nPositive: {speak_for} Negative: {against}\n", self.word());
        for flag in &self.flags {
            out += &format!("Flag {flag}\n");
        }
        out += &format!("Condition {} ({})\n", self.quantifier.word(), self.condition);
        out += &format!(
            "Observation {} {} {} {}\n",
            self.name,
            self.observation(),
            self.positive,
            self.negative
        );
        out
    }
}
