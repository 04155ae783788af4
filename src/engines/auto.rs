//! The engine that suits: one state at a time while the states are few; then both by turns, sets of
//! states first, each for a while that is longer each time, until one has the answer.
//!
//! No figure of a model tells which engine is faster: sets of boards have as many nodes as states,
//! sets of states of components that hardly depend on each other have next to none. So both are
//! asked. A turn lasts as long as what one state at a time took so far, and four times as long the
//! next time: what the slower one costs stays within a small factor of what the faster one needs.
//! Sets of states get half of the memory; if they outgrow it, they have no more turns. It asks the
//! other engines what they decline, and says why it took which. Verdicts and the counts of
//! `explore` are the same by both engines. The equations and the evidence of a formula are those of
//! the engine that answers, which depends on time beyond 200,000 states.

use crate::explicit::Explicit;
use crate::symbolic::Symbolic;
use crate::{Checked, Counted, Engine, Subject, Task, Wish};
use mu_base::{Budget, Diagnostic, Limits, Stop};
use mu_explore::Extras;
use mu_formula::typed::TypedFormula;
use mu_model::Model;
use std::time::Duration;

/// The engine that suits.
#[derive(Debug)]
pub struct Auto;

/// States that are searched one by one at first, and the words for them.
const FEW: (u64, &str) = (200_000, "200,000 states");

/// The budget of a first look, and whether the user's own limit is lower.
fn first_look(budget: &Budget) -> (Budget, bool) {
    let limits = *budget.limits();
    let own = limits.max_states.is_some_and(|n| n <= FEW.0);
    let most = limits.max_states.map_or(FEW.0, |n| n.min(FEW.0));
    (budget.with_limits(Limits { max_states: Some(most), ..limits }), own)
}

/// The first turn is no shorter than this.
const SHORTEST: Duration = Duration::from_millis(300);
/// How much longer each turn is than the one before.
const LONGER: u32 = 4;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// One state at a time, while they are few.
    First,
    /// Sets of states.
    Symbolic,
    /// One state at a time.
    Explicit,
}

/// How a turn ended.
enum End {
    /// The time of the turn is over.
    Over,
    /// The memory of the turn is.
    Outgrown,
    /// Anything else: the answer, or a limit of the whole run.
    Done,
}

/// The turns that follow the first look.
struct Turns<'a> {
    budget: &'a Budget,
    length: Duration,
    next: Turn,
    outgrown: bool,
}

impl<'a> Turns<'a> {
    /// The turns after a look that began when the budget was this old.
    fn after(budget: &'a Budget, began: Duration) -> Self {
        Self {
            budget,
            length: budget.elapsed().saturating_sub(began).max(SHORTEST),
            next: Turn::Symbolic,
            outgrown: false,
        }
    }
    /// Whose turn it is, with which budget, and whether that is limited by the turn.
    fn take(&self) -> (Turn, Budget, bool) {
        let limits = *self.budget.limits();
        let until = self.budget.elapsed() + self.length;
        let last = self.outgrown || limits.timeout.is_some_and(|t| t <= until);
        let timeout = if last { limits.timeout } else { Some(until) };
        let symbolic = self.next == Turn::Symbolic;
        let max_memory =
            if symbolic { limits.max_memory.map(|m| m / 2) } else { limits.max_memory };
        (self.next, self.budget.with_limits(Limits { timeout, max_memory, ..limits }), !last)
    }
    /// How a turn ended that stopped for a reason; the next one follows.
    fn end(&mut self, stop: &Stop, limited: bool) -> End {
        let symbolic = self.next == Turn::Symbolic;
        let end = match stop {
            Stop::Time if limited => End::Over,
            Stop::Memory if symbolic => End::Outgrown,
            _ => return End::Done,
        };
        self.outgrown |= matches!(end, End::Outgrown);
        if !symbolic {
            self.length *= LONGER;
        }
        self.next = if symbolic || self.outgrown { Turn::Explicit } else { Turn::Symbolic };
        end
    }
    /// What whose turn it is has to say; nothing if the turn was too short for it.
    fn ask<A>(
        &mut self,
        reason: String,
        stop: fn(&A) -> Option<&Stop>,
        ask: &mut dyn FnMut(Turn, &Budget, String) -> Result<A, Diagnostic>,
    ) -> Result<Option<A>, Diagnostic> {
        let (turn, share, limited) = self.take();
        let found = ask(turn, &share, reason)?;
        let done = stop(&found).is_none_or(|why| matches!(self.end(why, limited), End::Done));
        Ok(done.then_some(found))
    }
    /// Why the answer is whose turn it was.
    fn reason(&self) -> String {
        match (self.outgrown, self.next) {
            (true, _) => OUTGROWN.into(),
            (_, Turn::Symbolic) => format!("more than {}", FEW.1),
            (_, Turn::Explicit | Turn::First) => {
                format!("more than {}, and sets of states take longer", FEW.1)
            }
        }
    }
}

/// The answer of whoever has it first. `before`: how long sets of states took for a question of
/// this kind that they answered; they have the first turn then. `ask` is told whose turn it is,
/// what that turn may use, and why an answer would be theirs; `stop` says why an answer is none.
/// Errors: those of `ask`.
pub fn by_turns<A>(
    budget: &Budget,
    before: Option<Duration>,
    stop: fn(&A) -> Option<&Stop>,
    ask: &mut dyn FnMut(Turn, &Budget, String) -> Result<A, Diagnostic>,
) -> Result<A, Diagnostic> {
    if let Some(took) = before {
        let mut turns = Turns {
            budget,
            length: (took * LONGER).max(SHORTEST),
            next: Turn::Symbolic,
            outgrown: false,
        };
        if let Some(found) =
            turns.ask("sets of states answered the question before".into(), stop, ask)?
        {
            return Ok(found);
        }
    }
    let (look, own) = first_look(budget);
    let began = budget.elapsed();
    let few = ask(Turn::First, &look, format!("not more than {}", FEW.1))?;
    if own || stop(&few) != Some(&Stop::States) {
        return Ok(few);
    }
    let mut turns = Turns::after(budget, began);
    loop {
        let reason = turns.reason();
        if let Some(found) = turns.ask(reason, stop, ask)? {
            return Ok(found);
        }
    }
}

const OUTGROWN: &str = "the diagrams outgrew half of the memory";

/// Why these wishes leave only the explicit engine, if they do.
pub fn required(wishes: &[Wish]) -> Option<String> {
    Symbolic.declines(wishes).map(|wish| format!("required by {}", wish.words()))
}

impl Engine for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }
    fn about(&self) -> &'static str {
        "One state at a time while they are few, then sets of states"
    }
    fn declines(&self, _: &[Wish]) -> Option<Wish> {
        None
    }
    fn shares_a_formula(&self) -> bool {
        false
    }
    fn count(
        &self,
        model: &dyn Model,
        task: Task<'_>,
        extras: Extras<'_>,
    ) -> Result<Counted, Diagnostic> {
        if let Some(reason) = required(task.wishes) {
            let counted = Explicit.count(model, task, extras)?;
            return Ok(Counted { reason: Some(reason), ..counted });
        }
        by_turns(task.budget, None, |found| Some(&found.stop), &mut |turn, budget, reason| {
            let engine: &dyn Engine = if turn == Turn::Symbolic { &Symbolic } else { &Explicit };
            Ok(Counted {
                reason: Some(reason),
                ..engine.count(model, Task { budget, ..task }, Extras::default())?
            })
        })
    }
    fn check(
        &self,
        subject: Subject<'_>,
        formula: &TypedFormula,
        task: Task<'_>,
    ) -> Result<Checked, Diagnostic> {
        if let Some(reason) = required(task.wishes) {
            return Ok(Checked { reason: Some(reason), ..Explicit.check(subject, formula, task)? });
        }
        by_turns(
            task.budget,
            None,
            |found: &Checked| found.answer.verdict.stop(),
            &mut |turn, budget, reason| {
                let engine: &dyn Engine =
                    if turn == Turn::Symbolic { &Symbolic } else { &Explicit };
                Ok(Checked {
                    reason: Some(reason),
                    ..engine.check(subject, formula, Task { budget, ..task })?
                })
            },
        )
    }
}
