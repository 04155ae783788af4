//! When an evaluation must ask whether it may go on: every so many steps, and when it is nested deeply.
//!
//! The machine compares its count of steps with one number; all else happens here, seldom: the limits of the run end the evaluation with an
//! error of stage `Limit`, the limit of steps ends it with an error that names the function, the term and the equation.

use super::code::{Func, has};
use super::compile::Program;
use super::machine::{MAX_DEPTH, Machine, Outcome};
use crate::value::{IMPURE, Value};
use mu_base::Span;
use mu_base::diagnostic::{Diagnostic, Stage};
use mu_base::ids::SortId;

/// Equations applied one after the other, each in place of the one before, that are taken for a recursion without end. All the steps of an
/// evaluation may be many more: one without end either has such a run or nests ever deeper.
const MAX_TURNS: u64 = 50_000_000;
/// Equations applied between two looks at the limits, a few milliseconds; looks at the memory are rarer.
const PATIENCE: u64 = 1 << 16;

/// Where a call stands.
#[derive(Clone, Copy, Default)]
pub(super) struct CallState {
    /// Equations applied so far, each in place of the one before.
    pub turns: u64,
    /// The arguments that wait.
    pub lazy: u64,
}

impl Machine {
    /// Looks at the limits of the run; at the memory every sixteenth time.
    #[inline(never)]
    pub(crate) fn poll(&mut self) -> Outcome<()> {
        self.polls += 1;
        let memory = if self.polls.is_multiple_of(16) { self.budget.check_memory() } else { Ok(()) };
        self.budget.check(0).and(memory).map_err(|stop| Box::new(Diagnostic::stopped(stop)))
    }

    /// Fresh counters for an evaluation.
    pub(crate) fn restart(&mut self) {
        (self.steps, self.suspended) = (0, 0);
        self.pause = self.step_limit.min(PATIENCE);
    }

    /// Some more steps, if the limits allow.
    pub(super) fn go_on(&mut self) -> Outcome<()> {
        self.pause = self.step_limit.min(self.steps + PATIENCE);
        self.poll()
    }

    /// An equation was applied to the arguments in a frame, and it is time to ask whether this may go on.
    #[inline(never)]
    pub(super) fn pause(&mut self, p: &Program, func: &Func, frame: usize, equation: Span, state: CallState) -> Outcome<()> {
        let name = &p.signature.op(func.op).name;
        let why = if self.steps > self.step_limit {
            format!("more than {} steps", self.step_limit)
        } else if state.turns > MAX_TURNS {
            format!("more than {MAX_TURNS} steps")
        } else if self.depth > MAX_DEPTH {
            "calls are nested too deeply".to_string()
        } else {
            return self.go_on();
        };
        let mut args: Vec<Value> = self.stack[frame..frame + func.args as usize].to_vec();
        for (_, arg) in args.iter_mut().enumerate().filter(|(i, _)| has(state.lazy, *i)) {
            *arg = self.unknown(SortId::default());
        }
        let term = if args.is_empty() { Value::Sym(func.op) } else { Value::app(func.op, IMPURE, args) };
        let mut error = Diagnostic::new(Stage::Data, format!("rewriting does not end: {why}, the last of `{name}`"))
            .note(format!("the term is {}", self.shown(p, &term)))
            .note(format!("recursion ends if each call of `{name}` is on something smaller, or under a condition that becomes false"));
        if equation.is_somewhere() {
            error = error.related(equation, format!("the equation of `{name}` that was applied last"));
        }
        Err(Box::new(error))
    }
}
