//! Conditions on single slots with a truth value that no equation decides.
//!
//! A conjunct `v == k` or `v` becomes a required value of a slot, compared by number. That is
//! correct if the slot holds data, which either equals `k` or not. A term without a value, as
//! `f(1)` if `f` has no equation, may or may not equal `k`: then the condition is neither true nor
//! false. So each such value is evaluated against the slot's conditions when it is first written
//! there.
//!
//! Cost: nothing for data; an evaluation for each condition, slot and other value. Invariant: a
//! placeholder of a parameter that is not live (`unused_S`) is never evaluated, since no group with
//! a requirement on the slot is enabled then.

use mu_base::ids::VarId;
use mu_base::{Diagnostic, Span};
use mu_data::engine::{Engine, Value};
use mu_data::expr::{Expr, ExprKind};
use mu_process::linearise::placeholder_name;
use std::ops::ControlFlow;

/// Conditions on a slot.
#[derive(Default)]
pub(super) struct SlotConditions {
    list: Vec<(Expr, Span)>,
}

impl SlotConditions {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a requirement of a group with its place.
    pub(super) fn add(&mut self, condition: &Expr, span: Span) {
        if self.list.iter().all(|(known, _)| known != condition) {
            self.list.push((condition.clone(), span));
        }
    }

    /// Returns an error if a value of the slot's parameter, which is not data, leaves a condition
    /// undecided.
    pub(super) fn decide(
        &self,
        engine: &mut Engine,
        var: VarId,
        value: &Value,
    ) -> Result<(), Diagnostic> {
        let term = engine.to_expr(value);
        let signature = engine.program().signature();
        if let ExprKind::Op(op) = term.kind
            && let Some(rest) =
                signature.op(op).name.strip_prefix(&placeholder_name(signature, term.sort))
            && rest.chars().all(|c| c == '_')
        {
            return Ok(());
        }
        for (condition, span) in &self.list {
            let problem = engine.problem(&[], condition, &[var])?;
            engine
                .solve(&problem, std::slice::from_ref(value), &mut |_: &mut Engine, _: &[Value]| {
                    Ok(ControlFlow::Continue(()))
                })
                .map_err(|e| e.or_span(*span))?;
        }
        Ok(())
    }
}
