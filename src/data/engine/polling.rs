//! Polling of limits during an evaluation: at intervals of steps (`meter`), and at deep nesting.
//!
//! The limits of the run end it with an error of stage `Limit`. The limit on steps and infinite
//! recursion end it with an error that names the function, the term and the equation.

use super::code::{Func, has};
use super::compile::Program;
use super::machine::{EvaluationMachine, MAX_DEPTH, Outcome};
use super::meter::MeterCounts;
use crate::value::{IMPURE, Value};
use mu_base::Span;
use mu_base::diagnostic::{Diagnostic, Stage};

/// Limit on consecutive steps, each replacing the one before; beyond it, the recursion counts as
/// infinite. An evaluation may have many more steps in total: infinite recursion has either such a
/// sequence or unbounded nesting.
const MAX_TURNS: u64 = 50_000_000;
/// State of a call.
#[derive(Clone, Copy, Default)]
pub(super) struct CallState {
    /// Consecutive steps so far, each replacing the one before.
    pub turns: u64,
    /// Deferred arguments.
    pub lazy: u64,
}

/// State of the machine when a nested evaluation began.
pub(super) struct Interrupted {
    frame: usize,
    depth: u32,
    suspended: u32,
    counts: MeterCounts,
}

impl EvaluationMachine {
    /// Starts counters for a nested evaluation.
    pub(super) fn interrupt(&mut self) -> Interrupted {
        let (frame, depth, counts) = (self.stack.len(), self.depth, self.meter.restart());
        Interrupted { frame, depth, suspended: std::mem::take(&mut self.suspended), counts }
    }

    /// Restores the state of the machine after a nested evaluation, whether it succeeded or not.
    pub(super) fn resume(&mut self, at: Interrupted) {
        self.stack.truncate(at.frame);
        (self.depth, self.suspended) = (at.depth, at.suspended);
        self.meter.resume(at.counts);
    }

    /// Polls the limits after a step on the arguments in a frame.
    #[inline(never)]
    pub(super) fn pause(
        &mut self,
        p: &Program,
        func: &Func,
        frame: usize,
        equation: Span,
        state: CallState,
    ) -> Outcome<()> {
        let op = p.signature.op(func.op);
        let name = &op.name;
        let why = if self.meter.is_spent() {
            format!("more than {} steps", self.meter.limit())
        } else if state.turns > MAX_TURNS {
            format!("more than {MAX_TURNS} steps")
        } else if self.depth > MAX_DEPTH {
            "calls are nested too deeply".to_string()
        } else {
            return self.meter.extend();
        };
        let mut args: Vec<Value> = self.stack[frame..frame + func.args as usize].to_vec();
        // The sort of an argument of a curried operation is not in its domain; only the text of
        // the unknown is used.
        let (domain, range) = p.signature.domain_range(op.sort);
        for (i, arg) in args.iter_mut().enumerate().filter(|(i, _)| has(state.lazy, *i)) {
            *arg = self.unknowns.fresh(domain.get(i).copied().unwrap_or(range), None);
        }
        let term =
            if args.is_empty() { Value::Sym(func.op) } else { Value::app(func.op, IMPURE, args) };
        let mut error = Diagnostic::new(Stage::Data, format!("rewriting does not end: {why}, the last of `{name}`"))
            .note(format!("the term is {}", self.value_text(p, &term)))
            .note(format!("recursion terminates if the argument of `{name}` becomes smaller in each call, or if the call is under a condition that becomes false"));
        if equation.is_somewhere() {
            error =
                error.related(equation, format!("the equation of `{name}` that was applied last"));
        }
        Err(Box::new(error))
    }
}
