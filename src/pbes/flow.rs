//! The product route in parallel: obligations of a conjunctive (dually disjunctive) formula as annotations of the explorer's search.
//!
//! In: model, automaton, what the formula's shape is, the obligations at the start. Out: as [`super::product`], whose sets of obligations
//! are here hash-consed trees ([`super::obligations`]) that all threads share, carried by [`crate::explore::annotate`]. All instances of
//! outer quantifiers go in one search: a step costs the nodes in which sets differ, not the number of instances.
//!
//! The automaton belongs to the calling thread, which answers the searching threads' questions about single formula states; each answer
//! is asked for once a thread while its cache holds it.
//!
//! Least fixed points (dually greatest) are refuted by a cycle of obligations. If each annotated step led forward, there is none; if not,
//! but the model has no cycle at all, there is none either; else the search over stored states decides.
//!
//! Cost: that of the exploration, two numbers a state, and the sets. Invariant: verdicts and the number of obligations of a complete search
//! do not depend on threads.

use super::automaton::{Automaton, Demand, FormulaState};
use super::obligations::{Answer, EMPTY, Operations, Set, Sets, Steps};
use super::product::{Figures, Kind, Outcome, Shape, close, local_value, loops_here};
use crate::base::ids::{LabelId, StateId};
use crate::base::{Budget, Diagnostic, Stage, Stop};
use crate::explore::{self, Annotator, Cyclic, Flow, Lane, Progress};
use crate::model::Model;
use crate::process::linear::ActionLabels;
use ahash::AHashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};

/// What is asked of the automaton.
enum Question {
    /// What these formula states become along a label.
    Steps { states: Vec<u32>, label: u32, reply: Sender<Result<Vec<Answer>, Diagnostic>> },
    /// Which of these are decided at a system state by its labels alone.
    Locals { states: Vec<u32>, reply: Sender<Result<Vec<u32>, Diagnostic>> },
    /// Whether one of these is decided against the formula where these labels leave.
    Decide { states: Vec<u32>, labels: Vec<LabelId>, reply: Sender<Result<bool, Diagnostic>> },
}

/// Obligations as an annotation.
struct Obligations<'a> {
    sets: &'a Sets,
    initial: Set,
    /// Whether some formula states are local.
    locals: bool,
    questions: Sender<Question>,
}

impl Annotator for Obligations<'_> {
    fn initial(&self) -> u32 {
        self.initial
    }
    fn lane(&self) -> Box<dyn Lane + '_> {
        let ask = Ask { questions: self.questions.clone(), answers: AHashMap::new() };
        Box::new(Thread {
            operations: Operations::new(self.sets),
            ask,
            locals: self.locals,
            split: AHashMap::new(),
            decided: AHashMap::new(),
        })
    }
}

fn gone() -> Diagnostic {
    Diagnostic::new(Stage::Internal, "the formula's automaton is gone")
}

/// The automaton from a searching thread's view.
struct Ask {
    questions: Sender<Question>,
    answers: AHashMap<(u32, u32), Answer>,
}

/// Answers that a thread remembers.
const MOST_ANSWERS: usize = 1 << 22;

impl Ask {
    fn put<T>(&self, make: impl FnOnce(Sender<Result<T, Diagnostic>>) -> Question) -> Result<T, Diagnostic> {
        let (reply, answer) = channel();
        self.questions.send(make(reply)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

impl Steps for Ask {
    type Error = Diagnostic;
    fn answers(&mut self, states: &[u32], label: u32, out: &mut Vec<Answer>) -> Result<(), Diagnostic> {
        let missing: Vec<u32> = states.iter().copied().filter(|q| !self.answers.contains_key(&(*q, label))).collect();
        if !missing.is_empty() {
            if self.answers.len() > MOST_ANSWERS {
                self.answers.clear();
                return self.answers(states, label, out);
            }
            let answers = self.put(|reply| Question::Steps { states: missing.clone(), label, reply })?;
            self.answers.extend(missing.into_iter().map(|q| (q, label)).zip(answers));
        }
        out.extend(states.iter().map(|q| self.answers[&(*q, label)]));
        Ok(())
    }
}

/// One searching thread.
struct Thread<'a> {
    operations: Operations<'a>,
    ask: Ask,
    locals: bool,
    /// By set: what flows on, and the local members.
    split: AHashMap<Set, (Set, Set)>,
    /// By local members and outgoing labels.
    decided: AHashMap<(Set, Vec<LabelId>), bool>,
}

impl Thread<'_> {
    fn result<T>(&self, value: T) -> Result<T, Diagnostic> {
        if self.operations.sets().is_full() {
            return Err(Diagnostic::new(Stage::Unsupported, "too many different sets of obligations to be numbered"));
        }
        Ok(value)
    }
}

impl Lane for Thread<'_> {
    fn join(&mut self, old: u32, new: u32) -> Result<(u32, u32), Diagnostic> {
        let joined = self.operations.join(old, new);
        self.result(joined)
    }
    fn enter(&mut self, pending: u32, labels: &[LabelId]) -> Result<Flow, Diagnostic> {
        if !self.locals {
            return Ok(Flow::Value(pending));
        }
        let (flow, local) = match self.split.get(&pending) {
            Some(parts) => *parts,
            None => {
                let sets = self.operations.sets();
                let members = sets.members(pending);
                let local = self.ask.put(|reply| Question::Locals { states: members.clone(), reply })?;
                let flow: Vec<u32> = members.into_iter().filter(|q| local.binary_search(q).is_err()).collect();
                let parts = (sets.from_members(&flow), sets.from_members(&local));
                self.split.insert(pending, parts);
                parts
            }
        };
        if local != EMPTY {
            let mut labels = labels.to_vec();
            labels.sort_unstable();
            labels.dedup();
            let key = (local, labels);
            let decided = match self.decided.get(&key) {
                Some(d) => *d,
                None => {
                    let states = self.operations.sets().members(local);
                    let decided = self.ask.put(|reply| Question::Decide { states, labels: key.1.clone(), reply })?;
                    self.decided.insert(key, decided);
                    decided
                }
            };
            if decided {
                return Ok(Flow::Decided);
            }
        }
        self.result(Flow::Value(flow))
    }
    fn step(&mut self, flow: u32, label: LabelId) -> Result<Flow, Diagnostic> {
        let next = self.operations.step(flow, label.0, &mut self.ask)?;
        self.result(next.map_or(Flow::Decided, Flow::Value))
    }
}

/// The automaton's side.
struct Oracle<'a> {
    automaton: &'a mut Automaton,
    labels: &'a dyn ActionLabels,
    shape: &'a Shape,
    sets: &'a Sets,
    /// Demands with all that they demand at the same system state; none: decided.
    closed: AHashMap<Demand, Option<Set>>,
}

impl Oracle<'_> {
    fn serve(&mut self, questions: Receiver<Question>) {
        for question in questions {
            // A thread that does not wait any more has met an error of its own.
            match question {
                Question::Steps { states, label, reply } => {
                    let answers = states.iter().map(|q| self.step(FormulaState(*q), LabelId(label))).collect();
                    let _ = reply.send(answers);
                }
                Question::Locals { mut states, reply } => {
                    states.retain(|q| self.shape.kinds.get(&self.automaton.node(FormulaState(*q))) == Some(&Kind::Local));
                    let _ = reply.send(Ok(states));
                }
                Question::Decide { states, labels, reply } => {
                    // The targets are shown in evidence only, which is looked for elsewhere.
                    let steps: Vec<(LabelId, StateId)> = labels.into_iter().map(|l| (l, StateId(0))).collect();
                    let mut decided = Ok(false);
                    for q in states {
                        decided = local_value(self.automaton, FormulaState(q), &steps, self.labels, &mut Vec::new());
                        decided = decided.map(|value| value != self.shape.universal);
                        if !matches!(decided, Ok(false)) {
                            break;
                        }
                    }
                    let _ = reply.send(decided);
                }
            }
        }
    }
    fn step(&mut self, q: FormulaState, label: LabelId) -> Result<Answer, Diagnostic> {
        let demand = self.automaton.step(q, label, self.labels)?;
        let set = match self.closed.get(&demand) {
            Some(set) => *set,
            None => {
                let set = self.close(demand)?;
                self.closed.insert(demand, set);
                set
            }
        };
        Ok(match set {
            None => Answer::Decided,
            // Most steps leave a formula state as it is.
            Some(set) if demand != Demand::NOTHING && self.automaton.set(demand)[..] == [q] && self.sets.members(set) == [q.0] => {
                Answer::Same
            }
            Some(set) => Answer::States(set),
        })
    }
    fn close(&mut self, demand: Demand) -> Result<Option<Set>, Diagnostic> {
        if demand == Demand::DECIDED {
            return Ok(None);
        }
        let Some((flow, local)) = close(self.automaton, self.shape, &self.automaton.set(demand).clone())? else { return Ok(None) };
        let mut members: Vec<u32> = flow.into_iter().chain(local).map(|q| q.0).collect();
        members.sort_unstable();
        members.dedup();
        Ok(Some(self.sets.from_members(&members)))
    }
}

/// What is searched.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// Multi-actions of its labels.
    pub labels: &'a dyn ActionLabels,
    /// How to explore it.
    pub explore: &'a explore::Options,
    /// Limits.
    pub budget: &'a Budget,
    /// Who watches.
    pub progress: &'a dyn Progress,
}

/// Searches from the initial state with the given obligations; none if the sets are too many to be numbered.
pub fn search(
    task: Task,
    automaton: &mut Automaton,
    shape: &Shape,
    roots: &[FormulaState],
) -> Result<Option<(Outcome, Figures)>, Diagnostic> {
    let sets = Sets::default();
    let mut oracle = Oracle { automaton, labels: task.labels, shape, sets: &sets, closed: AHashMap::new() };
    let start = {
        let demand = oracle.automaton.intern_set(roots.to_vec());
        oracle.close(demand)?
    };
    let Some(initial) = start else { return Ok(Some((Outcome::Verdict(!shape.universal), Figures::default()))) };
    if initial == EMPTY {
        return Ok(Some((Outcome::Verdict(shape.universal), Figures::default())));
    }
    let (questions, asked) = channel();
    let locals = shape.kinds.values().any(|k| *k == Kind::Local);
    let annotator = Obligations { sets: &sets, initial, locals, questions };
    let run = std::thread::scope(|scope| {
        let search = scope.spawn(move || {
            // Owns the questions' sender, so that the oracle's loop ends with the search.
            let annotator = annotator;
            explore::annotate(task.model, task.explore, task.budget, task.progress, &annotator)
        });
        // A panic must not leave the searching threads waiting: dropping the receiver tells them.
        let served = catch_unwind(AssertUnwindSafe(|| oracle.serve(asked)));
        let run = search.join().unwrap_or_else(|panic| Err(explore::panicked(&panic)));
        served.map_err(|panic| explore::panicked(&panic)).and(run)
    });
    if sets.is_full() {
        return Ok(None);
    }
    let annotated = run?;
    let outcome = annotated.outcome();
    let mut figures = Figures { states: outcome.states, steps: outcome.transitions, configurations: 0 };
    let mut sizes = Vec::new();
    figures.configurations = annotated.each().map(|set| sets.size(set, &mut sizes)).sum();
    if annotated.decided() {
        return Ok(Some((Outcome::Verdict(!shape.universal), figures)));
    }
    if outcome.stop != Stop::Complete {
        return Ok(Some((Outcome::Stopped(outcome.stop.clone()), figures)));
    }
    if shape.hostile.is_empty() {
        return Ok(Some((Outcome::Verdict(shape.universal), figures)));
    }
    let forward = annotated.forward();
    drop(annotated);
    let all: Vec<FormulaState> = (0..automaton.state_count() as u32).map(FormulaState).collect();
    if loops_here(automaton, shape, &all)? {
        return Ok(Some((Outcome::Cycle, figures)));
    }
    let verdict = match forward {
        true => Outcome::Verdict(shape.universal),
        false => match explore::is_acyclic(task.model, task.explore, task.budget, task.progress, None)? {
            Cyclic::No(_) => Outcome::Verdict(shape.universal),
            Cyclic::Yes(..) => Outcome::Cycle,
            Cyclic::Unknown(outcome) => Outcome::Stopped(outcome.stop),
        },
    };
    Ok(Some((verdict, figures)))
}
