//! Conditions on single slots whose truth no equation decides.
//!
//! A conjunct `v == k` or `v` becomes a value that a group requires of a slot, compared by number.
//! That is right where the slot holds data, which differs from `k` or not. A term that no equation
//! applies to, as `f(1)` if `f` has none, may be `k` or not: then the condition is neither true nor
//! false. So each such value is evaluated against the slot's conditions when it is first written
//! there.
//!
//! Cost: nothing for data; an evaluation for each condition, slot and other value. Invariant: a
//! placeholder of a parameter that is not live (`unused_S`) is never evaluated, since no group that
//! requires something of the slot is enabled then.

use mu_base::ids::VarId;
use mu_base::{Diagnostic, Span};
use mu_data::engine::{Engine, Value};
use mu_data::expr::{Expr, ExprKind};
use mu_process::linearise::unused_name;
use std::ops::ControlFlow;

/// The conditions on a slot.
#[derive(Default)]
pub(super) struct Conditions {
    list: Vec<(Expr, Span)>,
}

impl Conditions {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a condition that a group at a place requires.
    pub(super) fn add(&mut self, condition: &Expr, span: Span) {
        if self.list.iter().all(|(known, _)| known != condition) {
            self.list.push((condition.clone(), span));
        }
    }

    /// An error if a value of the slot's parameter, which is no data, leaves a condition open.
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
                signature.op(op).name.strip_prefix(&unused_name(signature, term.sort))
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
