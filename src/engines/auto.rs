//! Automatic choice of the engine: explicit search while the states are few, then both engines
//! alternately, the symbolic one first, in growing time slices, until one has the answer.
//!
//! No property of a model predicts the faster engine: for game boards, diagrams have as many nodes
//! as there are states; for loosely coupled components they have hardly any. So both are tried, in
//! rounds: a slice of the symbolic engine, then one of the explicit engine, equally long. The
//! slices of the first round are as long as the explicit search before, those of each further round
//! four times as long. So the cost of the slower engine stays within a small factor of the faster
//! one. The symbolic engine gets half of the memory; if it exceeds that, it gets no more slices.
//! This engine supports what either engine supports, and reports the reason for its choice.
//! Verdicts and the counts of `explore` do not depend on the choice; only explicit search
//! classifies the deadlocks. The equations and the evidence of a formula are those of the engine
//! that answers, which depends on time beyond 200,000 states.

use crate::explicit::Explicit;
use crate::symbolic::Symbolic;
use crate::{Capability, CheckResult, CountResult, Engine, EngineTask, Subject};
use mu_base::{Budget, Diagnostic, Limits, Stop};
use mu_explore::CountExtras;
use mu_formula::typed::TypedFormula;
use mu_model::Model;
use std::time::Duration;

/// Automatic choice of the engine.
#[derive(Debug)]
pub struct Auto;

/// Limit on states of the first explicit search, and its text.
const FIRST_LIMIT: (u64, &str) = (200_000, "200,000 states");

/// Returns the budget of the first search, and true if the user's own limit is lower.
fn first_look(budget: &Budget) -> (Budget, bool) {
    let limits = *budget.limits();
    let own = limits.max_states.is_some_and(|n| n <= FIRST_LIMIT.0);
    let most = limits.max_states.map_or(FIRST_LIMIT.0, |n| n.min(FIRST_LIMIT.0));
    (budget.with_limits(Limits { max_states: Some(most), ..limits }), own)
}

/// Minimum length of the first time slice.
const MIN_SLICE: Duration = Duration::from_millis(300);
/// Factor between successive time slices.
const GROWTH: u32 = 4;

/// The engine of a time slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// The first explicit search, while states are few.
    First,
    /// The symbolic engine.
    Symbolic,
    /// The explicit engine.
    Explicit,
}

/// End of a time slice.
enum SliceEnd {
    /// Its time is over.
    Over,
    /// Its memory is exhausted.
    Outgrown,
    /// Anything else: the answer, or a limit of the whole run.
    Done,
}

/// The time slices after the first search.
struct Schedule<'a> {
    budget: &'a Budget,
    length: Duration,
    next: Slice,
    outgrown: bool,
}

impl<'a> Schedule<'a> {
    /// Creates the time slices after a search that began when the budget was this old.
    fn new(budget: &'a Budget, began: Duration) -> Self {
        Self {
            budget,
            length: budget.elapsed().saturating_sub(began).max(MIN_SLICE),
            next: Slice::Symbolic,
            outgrown: false,
        }
    }
    /// Returns the engine, its budget, and true if the slice limits the budget.
    fn take(&self) -> (Slice, Budget, bool) {
        let limits = *self.budget.limits();
        let until = self.budget.elapsed() + self.length;
        let last = self.outgrown || limits.timeout.is_some_and(|t| t <= until);
        let timeout = if last { limits.timeout } else { Some(until) };
        let symbolic = self.next == Slice::Symbolic;
        let max_memory =
            if symbolic { limits.max_memory.map(|m| m / 2) } else { limits.max_memory };
        (self.next, self.budget.with_limits(Limits { timeout, max_memory, ..limits }), !last)
    }
    /// Classifies the stop reason of a slice, and selects the next engine.
    fn end(&mut self, stop: &Stop, limited: bool) -> SliceEnd {
        let symbolic = self.next == Slice::Symbolic;
        let end = match stop {
            Stop::Time if limited => SliceEnd::Over,
            Stop::Memory if symbolic => SliceEnd::Outgrown,
            _ => return SliceEnd::Done,
        };
        self.outgrown |= matches!(end, SliceEnd::Outgrown);
        if !symbolic {
            self.length *= GROWTH;
        }
        self.next = if symbolic || self.outgrown { Slice::Explicit } else { Slice::Symbolic };
        end
    }
    /// Runs the engine of the current time slice; `None` if the slice ended first.
    fn ask<A>(
        &mut self,
        reason: String,
        stop: fn(&A) -> Option<&Stop>,
        ask: &mut dyn FnMut(Slice, &Budget, String) -> Result<A, Diagnostic>,
    ) -> Result<Option<A>, Diagnostic> {
        let (turn, share, limited) = self.take();
        let found = ask(turn, &share, reason)?;
        let done = stop(&found).is_none_or(|why| matches!(self.end(why, limited), SliceEnd::Done));
        Ok(done.then_some(found))
    }
    /// Returns the reason for choosing the current engine, for reports.
    fn reason(&self) -> String {
        match (self.outgrown, self.next) {
            (true, _) => OUTGROWN.into(),
            (_, Slice::Symbolic) => format!("more than {}", FIRST_LIMIT.1),
            (_, Slice::Explicit | Slice::First) => {
                format!("more than {}, and the symbolic engine takes longer", FIRST_LIMIT.1)
            }
        }
    }
}

/// Runs both engines in growing time slices and returns the first answer. `before`: time that the
/// symbolic engine took for an earlier question of this kind; it is first then. `ask` gets the
/// engine, its budget, and the reason to report; `stop` returns the stop reason of an incomplete
/// answer. Errors: those of `ask`.
pub fn alternate<A>(
    budget: &Budget,
    before: Option<Duration>,
    stop: fn(&A) -> Option<&Stop>,
    ask: &mut dyn FnMut(Slice, &Budget, String) -> Result<A, Diagnostic>,
) -> Result<A, Diagnostic> {
    if let Some(took) = before {
        let mut turns = Schedule {
            budget,
            length: (took * GROWTH).max(MIN_SLICE),
            next: Slice::Symbolic,
            outgrown: false,
        };
        if let Some(found) =
            turns.ask("the symbolic engine answered the previous question".into(), stop, ask)?
        {
            return Ok(found);
        }
    }
    let (look, own) = first_look(budget);
    let began = budget.elapsed();
    let few = ask(Slice::First, &look, format!("not more than {}", FIRST_LIMIT.1))?;
    if own || stop(&few) != Some(&Stop::States) {
        return Ok(few);
    }
    let mut turns = Schedule::new(budget, began);
    loop {
        let reason = turns.reason();
        if let Some(found) = turns.ask(reason, stop, ask)? {
            return Ok(found);
        }
    }
}

const OUTGROWN: &str = "the diagrams exceeded half of the memory";

/// Returns the reason why these capabilities require the explicit engine, if they do.
pub fn explicit_requirement(capabilities: &[Capability]) -> Option<String> {
    Symbolic
        .unsupported_capability(capabilities)
        .map(|wish| format!("required by {}", wish.words()))
}

impl Engine for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }
    fn summary(&self) -> &'static str {
        "Explicit search while states are few, then both engines alternately"
    }
    fn unsupported_capability(&self, _: &[Capability]) -> Option<Capability> {
        None
    }
    fn shares_a_formula(&self) -> bool {
        false
    }
    fn count(
        &self,
        model: &dyn Model,
        task: EngineTask<'_>,
        extras: CountExtras<'_>,
    ) -> Result<CountResult, Diagnostic> {
        if let Some(reason) = explicit_requirement(task.capabilities) {
            let counted = Explicit.count(model, task, extras)?;
            return Ok(CountResult { reason: Some(reason), ..counted });
        }
        // The deadlocks of the last slice only: those of earlier ones were counted in part.
        let mut dead: Vec<(Vec<u32>, u64)> = Vec::new();
        let wants_ends = extras.ends.is_some();
        let mut ask = |turn, budget: &Budget, reason| {
            dead.clear();
            let engine: &dyn Engine = if turn == Slice::Symbolic { &Symbolic } else { &Explicit };
            let mut keep = |state: &[u32], count: u64| dead.push((state.to_vec(), count));
            let ends = wants_ends.then_some(&mut keep as &mut dyn FnMut(&[u32], u64));
            let extras = CountExtras { ends, ..CountExtras::default() };
            let counted = engine.count(model, EngineTask { budget, ..task }, extras)?;
            Ok(CountResult { reason: Some(reason), ..counted })
        };
        let found =
            alternate(task.budget, None, |found: &CountResult| Some(&found.stop), &mut ask)?;
        if let Some(ends) = extras.ends.filter(|_| found.shown_ends) {
            dead.iter().for_each(|(state, count)| ends(state, *count));
        }
        Ok(found)
    }
    fn check(
        &self,
        subject: Subject<'_>,
        formula: &TypedFormula,
        task: EngineTask<'_>,
    ) -> Result<CheckResult, Diagnostic> {
        if let Some(reason) = explicit_requirement(task.capabilities) {
            return Ok(CheckResult {
                reason: Some(reason),
                ..Explicit.check(subject, formula, task)?
            });
        }
        alternate(
            task.budget,
            None,
            |found: &CheckResult| found.answer.verdict.stop(),
            &mut |turn, budget, reason| {
                let engine: &dyn Engine =
                    if turn == Slice::Symbolic { &Symbolic } else { &Explicit };
                Ok(CheckResult {
                    reason: Some(reason),
                    ..engine.check(subject, formula, EngineTask { budget, ..task })?
                })
            },
        )
    }
}
