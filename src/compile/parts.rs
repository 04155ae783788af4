//! What a step was made of: the actions behind it, hidden ones too, with their values and the components that did them.
//!
//! In: a group, the state before, the label and the state after. Out: [`StepPart`]s. The group is solved again, and of its solutions the
//! one with that label and state is taken; so this costs an evaluation a step and is for what people look at, not for searching.

use super::{Compiled, GroupCode};
use crate::base::Diagnostic;
use crate::base::ids::{LabelId, VarId};
use crate::data::engine::{Engine, Value};
use crate::data::expr::Expr;
use crate::model::{PartOrigin, Slot, StepPart};
use crate::process::linear::{Act, MultiAction};
use std::ops::ControlFlow;

impl Compiled {
    /// The parts of a step; empty if there is no such step.
    pub(super) fn step_parts(&self, group: usize, before: &[u32], label: LabelId, after: &[u32]) -> Result<Vec<StepPart>, Diagnostic> {
        let code = &self.codes[group];
        let info = &self.groups[group];
        let mut engine = Engine::new(self.program.clone()).limited(&self.budget);
        // Variables that only hidden actions use are not summed over any more: their values are not known.
        let env: Vec<VarId> = code.reads.iter().chain(&code.sum_vars).copied().collect();
        let problem = engine.problem(&code.sum_vars, &code.guard, &code.reads)?;
        let mut known: Vec<Value> = Vec::new();
        for &slot in &info.reads {
            known.push(engine.from_expr(&self.tables[self.table_of[slot as usize]].get(before[slot as usize]))?);
        }
        let mut found: Option<Vec<Value>> = None;
        engine.solve(&problem, &known, &mut |engine: &mut Engine, solution: &[Value]| {
            let full: Vec<Value> = known.iter().chain(solution).cloned().collect();
            if self.fits(engine, code, &env, &full, label, &info.writes, after)? {
                found = Some(full);
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let Some(mut full) = found else { return Ok(Vec::new()) };
        // Hidden actions may speak of parameters that the group does not read.
        let mut env = env;
        let mut used = Vec::new();
        code.hidden.iter().flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut used));
        for (slot, param) in self.process.params.iter().enumerate() {
            if used.contains(&param.var) && !env.contains(&param.var) {
                env.push(param.var);
                full.push(engine.from_expr(&self.tables[self.table_of[slot]].get(before[slot]))?);
            }
        }
        let mut parts = Vec::new();
        for (hidden, acts) in [(false, &code.actions), (true, &code.hidden)] {
            for act in acts {
                parts.push(self.part(&mut engine, act, hidden, &env, &full)?);
            }
        }
        Ok(parts)
    }

    /// Whether a solution gives this label and these values.
    #[allow(clippy::too_many_arguments)]
    fn fits(
        &self,
        engine: &mut Engine,
        code: &GroupCode,
        env: &[VarId],
        full: &[Value],
        label: LabelId,
        writes: &[Slot],
        after: &[u32],
    ) -> Result<bool, Diagnostic> {
        for (slot, update) in writes.iter().zip(&code.updates) {
            let value = evaluate(engine, update, env, full)?;
            let value = engine.to_expr_at(&value, self.sort_of[*slot as usize]);
            if value != self.tables[self.table_of[*slot as usize]].get(after[*slot as usize]) {
                return Ok(false);
            }
        }
        let mut multi = MultiAction::new();
        for act in &code.actions {
            let sorts = &self.process.actions[act.action.index()].sorts;
            let mut args = Vec::new();
            for (arg, sort) in act.args.iter().zip(sorts) {
                let value = evaluate(engine, arg, env, full)?;
                args.push(engine.to_expr_at(&value, *sort));
            }
            multi.push((act.action, args));
        }
        // Of equal actions the order is that of their arguments' texts, which the label knows: compare as multisets.
        let wanted = self.labels.get(label);
        Ok(multi.len() == wanted.len() && wanted.iter().all(|a| count(&multi, a) == count(&wanted, a)))
    }

    fn part(&self, engine: &mut Engine, act: &Act, hidden: bool, env: &[VarId], full: &[Value]) -> Result<StepPart, Diagnostic> {
        let decl = &self.process.actions[act.action.index()];
        let mut args = Vec::new();
        for (arg, sort) in act.args.iter().zip(&decl.sorts) {
            let mut free = Vec::new();
            arg.free_vars(&mut free);
            args.push(if free.iter().all(|v| env.contains(v)) {
                let value = evaluate(engine, arg, env, full)?;
                crate::data::print::expression(self.program.signature(), &engine.to_expr_at(&value, *sort))
            } else {
                "_".into()
            });
        }
        let name = |a: crate::base::ids::ActId| self.process.actions[a.index()].name.clone();
        let from = act.from.iter().map(|o| PartOrigin { component: o.component, action: name(o.action), open: o.open }).collect();
        Ok(StepPart { name: decl.name.clone(), args, hidden, from })
    }
}

fn evaluate(engine: &mut Engine, expr: &Expr, env: &[VarId], full: &[Value]) -> Result<Value, Diagnostic> {
    let code = engine.code(expr, env)?;
    engine.eval(&code, full)
}

fn count(multi: &MultiAction, act: &(crate::base::ids::ActId, Vec<Expr>)) -> usize {
    multi.iter().filter(|a| *a == act).count()
}
