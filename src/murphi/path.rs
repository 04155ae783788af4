//! Paths to failures: runs of the model itself, from a start state to the failure.
//!
//! In: the result of a search. Out: the rules in order, with the states between them. The parents
//! in the store give the orbits on the path. The run is computed forwards: a rule is chosen that
//! leads to the next orbit. So the path is a run also with symmetries, and it is checked: if no
//! rule leads to the next orbit, or the last state does not fail, the model is not symmetric and
//! the caller searches again without symmetries. Cost: one expansion for each state of the path.

use crate::code::{Instance, Program};
use crate::normal::Normal;
use crate::run::{Ended, Interpreter};
use crate::search::{Broken, Culprit, Explored, Failure, priorities, sets};
use crate::typed::{Binding, Claim, Frame, Model};

/// Run to a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// States, in packed words, each with the name of the start state or rule that leads to it.
    pub steps: Vec<(String, Vec<u64>)>,
    /// The failure in the last state of the run: for a part of the model with its own parameters.
    pub failure: Failure,
}

/// Returns the name of an instance: `name` or `what` with a number from 1, then the values of its
/// parameters.
pub fn instance_name(
    model: &Model,
    program: &Program,
    what: &str,
    (name, frame, bindings): (Option<&str>, &Frame, &[Binding]),
    instance: &Instance,
) -> String {
    let mut text = match name {
        Some(name) => name.trim().to_string(),
        None => format!("{what} {}", instance.number + 1),
    };
    let mut values = instance.parameters.iter();
    let mut shown = Vec::new();
    for binding in bindings {
        let local = match binding {
            Binding::Parameter { local, .. } | Binding::Choose { local, .. } => *local,
            Binding::Alias(_) => continue,
        };
        let (local, Some((_, value))) = (frame.get(local), values.next()) else { continue };
        let value = match binding {
            Binding::Choose { .. } => value.to_string(),
            _ => program.layout.text(model, local.ty, *value),
        };
        shown.push(format!("{}: {value}", local.name));
    }
    if !shown.is_empty() {
        text = format!("{text} ({})", shown.join(", "));
    }
    text
}

/// Returns the name of an instance of a rule.
pub fn rule_name(model: &Model, program: &Program, at: u32) -> String {
    let instance = &program.rules[at as usize];
    let rule = &model.rules[instance.number as usize];
    let parts = (rule.name.as_deref(), &rule.frame, &rule.bindings[..]);
    instance_name(model, program, "rule", parts, instance)
}

/// Returns the name of an instance of a start state.
pub fn start_name(model: &Model, program: &Program, at: u32) -> String {
    let instance = &program.starts[at as usize];
    let start = &model.starts[instance.number as usize];
    let parts = (start.name.as_deref(), &start.frame, &start.bindings[..]);
    instance_name(model, program, "startstate", parts, instance)
}

/// Returns the name of an instance of a property.
pub fn property_name(model: &Model, program: &Program, at: u32) -> String {
    let instance = &program.properties[at as usize];
    let property = &model.properties[instance.number as usize];
    let parts = (property.name.as_deref(), &property.frame, &property.bindings[..]);
    instance_name(model, program, "property", parts, instance)
}

/// Computes the run to the failure of a search. `None` if the states have no such run, which
/// happens only if a permutation of a scalarset is no symmetry of the model.
pub fn path(model: &Model, program: &Program, explored: &Explored) -> Option<Path> {
    let failure = explored.failure.clone()?;
    let mut numbers = Vec::new();
    let mut at = failure.state;
    while let Some(number) = at {
        numbers.push(number);
        at = explored.parents.get(number);
    }
    numbers.reverse();
    let words = program.layout.words;
    let mut replay = Replay {
        model,
        program,
        priorities: priorities(model, program),
        interpreter: Interpreter::new(program, model.claims.len(), || false),
        normal: Normal::without_scalarsets(
            model,
            program,
            explored.symmetries > 1,
            sets(&explored.asymmetries),
        ),
        state: vec![0; words],
    };
    let mut steps: Vec<(String, Vec<u64>)> = Vec::new();
    for number in numbers {
        let mut goal = vec![0; words];
        explored.store.get(number as usize, &mut goal);
        let name = if steps.is_empty() {
            let found = (0..program.starts.len() as u32).find(|n| replay.starts(*n, &goal))?;
            start_name(model, program, found)
        } else {
            let found = replay.fireable().into_iter().find(|n| replay.steps(*n, &goal))?;
            rule_name(model, program, found)
        };
        steps.push((name, replay.state.clone()));
    }
    let failure = replay.failure(failure)?;
    Some(Path { steps, failure })
}

struct Replay<'p> {
    model: &'p Model,
    program: &'p Program,
    priorities: Vec<i64>,
    interpreter: Interpreter<'p>,
    normal: Normal,
    state: Vec<u64>,
}

impl Replay<'_> {
    /// Takes the state of the interpreter if it is in the orbit.
    fn take(&mut self, goal: &[u64]) -> bool {
        let words = self.state.len();
        self.normal.sort(&mut self.interpreter.memory);
        let state = self.interpreter.memory[..words].to_vec();
        self.normal.canonical(&mut self.interpreter.memory);
        let found = self.interpreter.memory[..words] == *goal;
        if found {
            self.state = state;
        }
        found
    }
    fn starts(&mut self, at: u32, goal: &[u64]) -> bool {
        self.interpreter.memory.fill(0);
        self.interpreter.run(self.program.starts[at as usize].body) == Ended::Done
            && self.take(goal)
    }
    fn load(&mut self) {
        self.interpreter.memory[..self.state.len()].copy_from_slice(&self.state);
    }
    fn is_enabled(&mut self, at: u32) -> bool {
        self.load();
        self.interpreter.run(self.program.rules[at as usize].guard) == Ended::Yes
    }
    /// Returns the rules that can fire: of those that are enabled, the ones with the lowest number.
    fn fireable(&mut self) -> Vec<u32> {
        let all = 0..self.program.rules.len() as u32;
        let mut enabled: Vec<u32> = all.filter(|at| self.is_enabled(*at)).collect();
        let priority = |at: &u32| self.priorities.get(*at as usize).copied();
        let lowest = enabled.iter().map(priority).min();
        enabled.retain(|at| Some(priority(at)) == lowest);
        enabled
    }
    fn steps(&mut self, at: u32, goal: &[u64]) -> bool {
        self.is_enabled(at)
            && self.interpreter.run(self.program.rules[at as usize].body) == Ended::Done
            && self.take(goal)
    }
    /// Returns the instance of an assumption that fails after a rule.
    fn failing_assumption(&mut self, rule: u32, number: u32) -> Option<u32> {
        let program = self.program;
        if !self.is_enabled(rule)
            || self.interpreter.run(program.rules[rule as usize].body) != Ended::Done
        {
            return None;
        }
        self.normal.sort(&mut self.interpreter.memory);
        let words = self.state.len();
        let after = self.interpreter.memory[..words].to_vec();
        let mut assumptions = (0..program.properties.len() as u32)
            .filter(|at| program.properties[*at as usize].number == number);
        assumptions.find(|at| {
            self.interpreter.memory[..words].copy_from_slice(&after);
            let ended = self.interpreter.run(program.properties[*at as usize].guard);
            matches!(ended, Ended::Fault(_))
        })
    }
    /// Finds the failure in the last state of the run.
    fn failure(&mut self, failure: Failure) -> Option<Failure> {
        let program = self.program;
        if let Broken::Invariant(at) = failure.broken {
            // Symmetric instances come from one property.
            let number = program.properties[at as usize].number;
            let broken = (0..program.properties.len()).find(|n| {
                self.load();
                program.properties[*n].number == number
                    && self.interpreter.run(program.properties[*n].guard) == Ended::No
            })?;
            return Some(Failure { broken: Broken::Invariant(broken as u32), ..failure });
        }
        let Broken::Fault(..) = failure.broken else { return Some(failure) };
        let number = |at: u32| program.properties[at as usize].number;
        let culprit = match failure.culprit {
            Culprit::State | Culprit::Start(_) => return Some(failure),
            // The result of a rule or start state that an assumption is about is no state yet.
            Culprit::Property(_) if failure.state.is_none() => return Some(failure),
            Culprit::Property(at)
                if self.model.properties[number(at) as usize].claim == Claim::Assume =>
            {
                let mut rules = self.fireable().into_iter();
                let found = rules.find_map(|rule| self.failing_assumption(rule, number(at)));
                found.map(Culprit::Property)
            }
            Culprit::Guard(_) => (0..program.rules.len()).find_map(|n| {
                self.load();
                let ended = self.interpreter.run(program.rules[n].guard);
                matches!(ended, Ended::Fault(_)).then_some(Culprit::Guard(n as u32))
            }),
            Culprit::Rule(_) => self.fireable().into_iter().find_map(|n| {
                let fails = self.is_enabled(n)
                    && matches!(
                        self.interpreter.run(program.rules[n as usize].body),
                        Ended::Fault(_)
                    );
                fails.then_some(Culprit::Rule(n))
            }),
            Culprit::Property(_) => (0..program.properties.len()).find_map(|n| {
                self.load();
                let ended = self.interpreter.run(program.properties[n].guard);
                matches!(ended, Ended::Fault(_)).then_some(Culprit::Property(n as u32))
            }),
        }?;
        Some(Failure { culprit, ..failure })
    }
}
