//! Partial evaluation on demand: reports the first variable that the evaluation needs, so that an
//! answer is known to depend only on the given variables.
//!
//! In: code, and values of some of its variables. Out: the value, or the variable that is needed
//! next. Evaluation is as for closed terms until some equation or condition inspects a variable
//! that is not given; there it ends. So the answers to a condition on a board form a decision tree:
//! the field that is inspected first, and the next one for each of its values. Cost: that of the
//! evaluation up to there.
//!
//! Invariant: a returned value depends on the given variables only. A returned variable is one on
//! which the evaluation of the closed term depends, in evaluation order, unless an inner unknown of
//! the evaluation intervenes.

use super::machine::{EvaluationMachine, Outcome};
use super::{Code, Engine, Value};
use mu_base::diagnostic::{Diagnostic, Stage};
use mu_base::ids::SortId;
use std::ops::Range;

/// Result of a partial evaluation.
#[derive(Debug)]
pub enum PartialValue {
    /// A value.
    Known(Value),
    /// The variable at this position is needed.
    Needs(usize),
    /// Partial evaluation cannot determine the value.
    Unclear,
}

/// Withheld variables, and the first of them that was needed.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    withheld: Range<u32>,
    needed: Option<u32>,
}

impl EvaluationMachine {
    /// Ends the evaluation if an inspected open value lacks only withheld variables.
    #[inline]
    pub(super) fn needs(&mut self, v: &Value) -> Outcome<()> {
        if self.watch.withheld.is_empty() { Ok(()) } else { self.needs_withheld(v) }
    }

    #[inline(never)]
    fn needs_withheld(&mut self, v: &Value) -> Outcome<()> {
        let mut open = Vec::new();
        self.unknowns.collect_unbound(v, &mut open);
        match open.first() {
            Some(first) if open.iter().all(|u| self.watch.withheld.contains(u)) => {
                self.watch.needed = Some(*first);
                Err(Box::new(Diagnostic::new(Stage::Data, "a value that was not given is needed")))
            }
            _ => Ok(()),
        }
    }
}

impl Engine {
    /// Evaluates as far as the given values determine; the others have these sorts.
    pub fn evaluate_partially(
        &mut self,
        code: &Code,
        env: &[Option<Value>],
        sorts: &[SortId],
    ) -> PartialValue {
        let program = self.program.clone();
        let mark = self.machine.unknowns.mark();
        let mut withheld = Vec::new();
        let before = std::mem::take(&mut self.machine.watch);
        let value = self.run(|m| {
            let frame = m.stack.len();
            for (i, v) in env.iter().enumerate() {
                let v = match v {
                    Some(v) => v.clone(),
                    None => {
                        withheld.push(i);
                        m.unknowns.fresh(sorts[i], None)
                    }
                };
                m.stack.push(v);
            }
            m.watch = Watch { withheld: m.unknowns.created_since(mark), needed: None };
            m.eval(&program, &code.0.0, frame)
        });
        let Watch { withheld: numbers, needed } =
            std::mem::replace(&mut self.machine.watch, before);
        let position =
            |u: u32| u.checked_sub(numbers.start).and_then(|at| withheld.get(at as usize)).copied();
        let partly = match value {
            Ok(v) if !v.is_open() => PartialValue::Known(v),
            Ok(v) => {
                let mut open = Vec::new();
                self.machine.unknowns.collect_unbound(&v, &mut open);
                open.into_iter()
                    .find_map(position)
                    .map_or(PartialValue::Unclear, PartialValue::Needs)
            }
            Err(_) => needed.and_then(position).map_or(PartialValue::Unclear, PartialValue::Needs),
        };
        self.machine.unknowns.undo(mark);
        partly
    }
}
