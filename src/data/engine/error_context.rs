//! Error messages of evaluations in the user's terms: the part of a condition that failed, and the
//! values of its variables.
//!
//! In: an error of the machine, the problem and its environment. Out: the same with a place and
//! notes. Runs only when an error is built: code has no places except that of the whole expression,
//! so the parts of a condition are evaluated again, each for a limited number of steps.

use super::{Engine, Problem, STARTED, Value};
use crate::expr::Expr;
use crate::print::expression;
use mu_base::diagnostic::{Diagnostic, Stage};
use mu_base::ids::VarId;

/// Number of steps after which a part of a condition counts as the nonterminating one.
const TRIAL: u64 = 200_000;
/// Limit on the text of a condition in a note; longer text is truncated.
const MAX_TEXT: usize = 200;

impl Engine {
    /// Extends an error of the enumeration of a problem by the conjuncts of the condition and the
    /// values of their variables.
    pub(super) fn explain(
        &mut self,
        problem: &Problem,
        env: &[Value],
        error: Diagnostic,
    ) -> Diagnostic {
        if error.stage != Stage::Data {
            return error;
        }
        let parts = problem.text.conjuncts(&self.program.signature);
        let unknowns: Vec<VarId> = problem.unknowns.iter().map(|u| u.0).collect();
        let declared = |v: &VarId| {
            (v.index() < self.program.signature.var_count())
                .then(|| self.program.signature.var(*v).span)
        };
        let own: Vec<VarId> = unknowns
            .iter()
            .copied()
            .filter(|v| error.span.is_some() && declared(v) == error.span)
            .collect();
        let mut error = error;
        let about: Vec<Expr> = if own.is_empty() {
            self.culprit(problem, env, &parts).into_iter().collect()
        } else {
            // For a variable of the problem without a bound: the conditions on it.
            parts.iter().filter(|p| free(p).iter().any(|v| own.contains(v))).cloned().collect()
        };
        for part in &about {
            let text = expression(&self.program.signature, part);
            if own.is_empty() {
                error = error.within(part.span, STARTED);
            } else if part.span.is_somewhere() && text.len() <= MAX_TEXT {
                error = error.related(part.span, format!("the condition on it: {text}"));
            }
        }
        if about.is_empty() {
            let place = parts.iter().map(|p| p.span).find(|s| s.is_somewhere()).unwrap_or_default();
            error = error.within(place, STARTED);
        }
        let mut used: Vec<VarId> = Vec::new();
        about.iter().for_each(|p| p.free_vars(&mut used));
        let values: Vec<String> = (problem.env.iter().zip(env))
            .filter(|(v, _)| used.contains(v) && v.index() < self.program.signature.var_count())
            .map(|(v, value)| {
                format!("{} = {}", self.program.signature.var(*v).name, self.text(value, MAX_TEXT))
            })
            .collect();
        if values.is_empty() { error } else { error.note(format!("here {}", values.join(", "))) }
    }

    /// Returns the first part of a condition that cannot be evaluated within some steps.
    fn culprit(&mut self, problem: &Problem, env: &[Value], parts: &[Expr]) -> Option<Expr> {
        if let [part] = parts {
            return Some(part.clone());
        }
        let limit = self.machine.meter.set_limit(TRIAL);
        let unknowns: Vec<VarId> = problem.unknowns.iter().map(|u| u.0).collect();
        let found = parts.iter().find(|part| {
            let Ok(alone) = self.problem(&unknowns, part, &problem.env) else { return false };
            let mark = self.machine.unknowns.mark();
            // A part that is neither true nor false for all values of the unknowns also counts.
            let failed = self
                .open_value(&alone, env)
                .map_or(true, |v| !v.is_true() && !v.is_false() && !v.is_open());
            self.machine.unknowns.undo(mark);
            failed
        });
        self.machine.meter.set_limit(limit);
        found.cloned()
    }
}

fn free(e: &Expr) -> Vec<VarId> {
    let mut vars = Vec::new();
    e.free_vars(&mut vars);
    vars
}
