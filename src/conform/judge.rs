//! Memory models as judges of histories.
//!
//! A memory model does not know processors, addresses and values by name. So one history is judged
//! for each class under their permutations that fix the initial value ([`History::canonical`]). A
//! history is allowed if the model has an execution with its values, that is, some choice of the
//! writes that are read and some coherence order. The decision is exact.

use crate::alphabet::Alphabet;
use crate::interface::Interface;
use crate::sequences::Entry;
use mu_axioms::Kind;
use mu_axioms::cat::{Model, Verdict};
use mu_axioms::history::{self, History, Operation};
use mu_axioms::models::Dialect;
use mu_axioms::views::{ViewVerdict, Views};
use mu_base::{Diagnostic, Stage};

/// The definition of a memory model.
#[derive(Debug)]
pub enum Form {
    /// Axioms in the `cat` language.
    Cat {
        /// The compiled axioms.
        model: Model,
        /// The vocabulary of events that the axioms use.
        dialect: Dialect,
    },
    /// Serial views.
    Views(Views),
}

/// A memory model with its name.
#[derive(Debug)]
pub struct MemoryModel {
    /// Its name.
    pub name: String,
    /// Its definition.
    pub form: Form,
}

/// A memory model with the working memory of one thread.
pub struct Worker<'m> {
    judge: Judge<'m>,
}

enum Judge<'m> {
    Cat(Box<history::Judge<'m>>),
    Views(&'m Views),
}

impl MemoryModel {
    /// Creates the working memory for one thread.
    pub fn worker(&self) -> Worker<'_> {
        let judge = match &self.form {
            Form::Cat { model, dialect } => {
                Judge::Cat(Box::new(history::Judge::new(model, *dialect)))
            }
            Form::Views(views) => Judge::Views(views),
        };
        Worker { judge }
    }
    /// Rejects a machine with operations that the model cannot express.
    pub fn check(&self, interface: &Interface, alphabet: &Alphabet) -> Result<(), Diagnostic> {
        let operations =
            alphabet.events.iter().map(|e| &interface.operations[e.operation as usize]);
        match (&self.form, operations.into_iter().find(|o| o.kind == Kind::Update)) {
            (Form::Views(_), Some(o)) => {
                let message = format!(
                    "`{}` is a model of serial views, which do not support updates",
                    self.name
                );
                Err(Diagnostic::at(Stage::Unsupported, o.end.span, message))
            }
            _ => Ok(()),
        }
    }
}

/// The reason why a history is forbidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The axiom that every execution violates, or the view that does not exist.
    pub axiom: String,
    /// The cycle that the axiom forbids: operations, each with the relation to the next one; empty
    /// if the axiom is not about cycles.
    pub cycle: Vec<(String, String)>,
}

impl Worker<'_> {
    /// True if the model allows the history.
    pub fn allows(&mut self, history: &History) -> Result<bool, Diagnostic> {
        match &mut self.judge {
            Judge::Cat(judge) => judge.allows(history),
            Judge::Views(views) => {
                let skeleton = history.skeleton(Dialect::Plain, &Views::vocabulary());
                for rf in history.reads_from(&skeleton) {
                    if matches!(views.judge(&skeleton, &rf)?, ViewVerdict::Views(_)) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
    /// Explains why a history is forbidden, by one of the executions that have its values.
    pub fn reason(&mut self, history: &History) -> Result<Reason, Diagnostic> {
        if !history.is_sourced() {
            return Ok(Reason {
                axiom: "a load reads a value that no operation writes".into(),
                cycle: Vec::new(),
            });
        }
        match &mut self.judge {
            Judge::Cat(judge) => {
                let (verdict, skeleton, ..) = judge.verdict(history)?;
                Ok(of_verdict(&verdict, &skeleton))
            }
            Judge::Views(views) => {
                let skeleton = history.skeleton(Dialect::Plain, &Views::vocabulary());
                let first = history.reads_from(&skeleton).into_iter().next();
                let seen = first.map(|rf| views.judge(&skeleton, &rf)).transpose()?;
                let axiom = match seen {
                    Some(ViewVerdict::None { of, .. }) if !of.is_empty() => {
                        format!("there is no serial view for {of}")
                    }
                    _ => "there is no serial view".into(),
                };
                Ok(Reason { axiom, cycle: Vec::new() })
            }
        }
    }
}

fn of_verdict(verdict: &Verdict, skeleton: &mu_axioms::Skeleton) -> Reason {
    let Some(failure) = &verdict.failed else {
        return Reason { axiom: String::new(), cycle: Vec::new() };
    };
    let name = |e: usize| {
        let e = &skeleton.events()[e];
        let thread = e.thread.map_or(String::new(), |t| format!("P{t}: "));
        match (e.kind, e.location) {
            (Kind::Fence, _) | (_, None) => format!("{thread}F"),
            (kind, Some(l)) => {
                let letter = if kind.writes() { "W" } else { "R" };
                format!("{thread}{letter} {} {}", history::location_name(l), e.value)
            }
        }
    };
    let names = failure.events.iter().map(|&e| name(e));
    let edges = failure.edges.iter().cloned().chain(std::iter::repeat(String::new()));
    Reason { axiom: failure.axiom.clone(), cycle: names.zip(edges).collect() }
}

/// Converts lists of ended operations to a history in the names of the machine.
pub fn history(interface: &Interface, processors: &[&[Entry]]) -> History {
    let operation = |e: &Entry| {
        let line = &interface.operations[e.operation as usize];
        let [value, written] = [e.value, e.written].map(|v| u64::from(v.unwrap_or(0)));
        let (value, read) = if line.kind == Kind::Update { (written, value) } else { (value, 0) };
        Operation {
            kind: line.kind,
            location: e.address.unwrap_or(0),
            value,
            read,
            mark: line.mark,
        }
    };
    History {
        threads: processors.iter().map(|p| p.iter().map(operation).collect()).collect(),
        last: Vec::new(),
    }
}
