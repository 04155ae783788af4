//! An evaluation asks whether it may go on: every so many steps (`meter`), and when it is nested
//! deeply.
//!
//! The limits of the run end it with an error of stage `Limit`; the limit of steps and recursion
//! without end, with an error that names the function, the term and the equation.

use super::code::{Func, has};
use super::compile::Program;
use super::machine::{MAX_DEPTH, Machine, Outcome};
use super::meter::Counts;
use crate::value::{IMPURE, Value};
use mu_base::Span;
use mu_base::diagnostic::{Diagnostic, Stage};
use mu_base::ids::SortId;

/// Equations applied one after the other, each in place of the one before, that are taken for a
/// recursion without end. All the steps of an evaluation may be many more: one without end either
/// has such a run or nests ever deeper.
const MAX_TURNS: u64 = 50_000_000;
/// Where a call stands.
#[derive(Clone, Copy, Default)]
pub(super) struct CallState {
    /// Equations applied so far, each in place of the one before.
    pub turns: u64,
    /// The arguments that wait.
    pub lazy: u64,
}

/// Where the machine was when another evaluation began in it.
pub(super) struct Interrupted {
    frame: usize,
    depth: u32,
    suspended: u32,
    counts: Counts,
}

impl Machine {
    /// Fresh counts for another evaluation.
    pub(super) fn interrupt(&mut self) -> Interrupted {
        let (frame, depth, counts) = (self.stack.len(), self.depth, self.meter.restart());
        Interrupted { frame, depth, suspended: std::mem::take(&mut self.suspended), counts }
    }

    /// Goes on where the machine was, whether what came between succeeded or not.
    pub(super) fn resume(&mut self, at: Interrupted) {
        self.stack.truncate(at.frame);
        (self.depth, self.suspended) = (at.depth, at.suspended);
        self.meter.resume(at.counts);
    }

    /// An equation was applied to the arguments in a frame, and it is time to ask whether this may
    /// go on.
    #[inline(never)]
    pub(super) fn pause(
        &mut self,
        p: &Program,
        func: &Func,
        frame: usize,
        equation: Span,
        state: CallState,
    ) -> Outcome<()> {
        let name = &p.signature.op(func.op).name;
        let why = if self.meter.is_spent() {
            format!("more than {} steps", self.meter.limit())
        } else if state.turns > MAX_TURNS {
            format!("more than {MAX_TURNS} steps")
        } else if self.depth > MAX_DEPTH {
            "calls are nested too deeply".to_string()
        } else {
            return self.meter.go_on();
        };
        let mut args: Vec<Value> = self.stack[frame..frame + func.args as usize].to_vec();
        for (_, arg) in args.iter_mut().enumerate().filter(|(i, _)| has(state.lazy, *i)) {
            *arg = self.unknowns.fresh(SortId::default(), None);
        }
        let term =
            if args.is_empty() { Value::Sym(func.op) } else { Value::app(func.op, IMPURE, args) };
        let mut error = Diagnostic::new(Stage::Data, format!("rewriting does not end: {why}, the last of `{name}`"))
            .note(format!("the term is {}", self.shown(p, &term)))
            .note(format!("recursion ends if each call of `{name}` is on something smaller, or under a condition that becomes false"));
        if equation.is_somewhere() {
            error =
                error.related(equation, format!("the equation of `{name}` that was applied last"));
        }
        Err(Box::new(error))
    }
}
