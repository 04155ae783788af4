//! Origin of a step: the actions behind it, hidden ones included, with their values and the
//! components that performed them.
//!
//! In: a group, the state before, the label and the state after. Out: [`StepPart`]s. The group is
//! solved again for the solution with that label and state, so this costs one evaluation per step:
//! it is for display, not for search.

use super::worker::LinearWorker;
use mu_base::Diagnostic;
use mu_base::ids::{LabelId, VarId};
use mu_base::narrow;
use mu_data::engine::{Code, Engine, Problem, Value};
use mu_model::{PartOrigin, StepPart};
use mu_process::linear::Act;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Compiled group that explains its steps.
pub(super) struct StepExplainer {
    problem: Problem,
    /// Parameters that hidden actions use and the group does not read.
    hidden_params: Vec<usize>,
    updates: Vec<Code>,
    /// Arguments of the visible, then of the hidden actions; `None` if the value is no longer
    /// known.
    args: Vec<Vec<Option<Code>>>,
}

impl LinearWorker<'_> {
    fn explainer(&mut self, group: usize) -> Result<Rc<StepExplainer>, Diagnostic> {
        if let Some(known) = self.explainers.get(&group) {
            return Ok(known.clone());
        }
        let code = &self.model.codes[group];
        // Variables that only hidden actions use are no longer summed over, so their values are
        // unknown.
        let env: Vec<VarId> = code.reads.iter().chain(&code.sum_vars).copied().collect();
        let problem = self.engine.problem(&code.sum_vars, &code.guard, &code.reads)?;
        let updates =
            code.updates.iter().map(|e| self.engine.code(e, &env)).collect::<Result<_, _>>()?;
        let mut used = Vec::new();
        code.hidden.iter().flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut used));
        let params = self.model.process.params.iter().enumerate();
        let hidden_params: Vec<usize> = params
            .filter(|(_, p)| used.contains(&p.var) && !env.contains(&p.var))
            .map(|(i, _)| i)
            .collect();
        let more: Vec<VarId> = env
            .iter()
            .copied()
            .chain(hidden_params.iter().map(|&i| self.model.process.params[i].var))
            .collect();
        let mut args = Vec::new();
        for (env, acts) in [(&env, &code.actions), (&more, &code.hidden)] {
            for act in acts {
                let compile = |e: &mu_data::expr::Expr| {
                    let mut free = Vec::new();
                    e.free_vars(&mut free);
                    if free.iter().all(|v| env.contains(v)) {
                        self.engine.code(e, env).map(Some)
                    } else {
                        Ok(None)
                    }
                };
                args.push(act.args.iter().map(compile).collect::<Result<_, _>>()?);
            }
        }
        let explainer = Rc::new(StepExplainer { problem, hidden_params, updates, args });
        self.explainers.insert(group, explainer.clone());
        Ok(explainer)
    }

    /// Returns the parts of a step; empty if there is no such step.
    pub(super) fn step_parts(
        &mut self,
        group: usize,
        before: &[u32],
        label: LabelId,
        after: &[u32],
    ) -> Result<Vec<StepPart>, Diagnostic> {
        let explainer = self.explainer(group)?;
        let (code, info) = (&self.model.codes[group], &self.model.groups[group]);
        let mut known: Vec<Value> = Vec::new();
        for &slot in &info.reads {
            known.push(self.value(slot, before[slot as usize])?);
        }
        let mut solutions: Vec<Vec<Value>> = Vec::new();
        self.engine.solve(
            &explainer.problem,
            &known,
            &mut |_: &mut Engine, solution: &[Value]| {
                solutions.push(known.iter().chain(solution).cloned().collect());
                Ok(ControlFlow::Continue(()))
            },
        )?;
        let mut found = None;
        for full in solutions {
            if self.matches(group, &explainer, &full, label, after)? {
                found = Some(full);
                break;
            }
        }
        let Some(full) = found else { return Ok(Vec::new()) };
        let mut more = full.clone();
        for &slot in &explainer.hidden_params {
            more.push(self.value(narrow::index(slot), before[slot])?);
        }
        let mut parts = Vec::new();
        let acts =
            code.actions.iter().map(|a| (a, false)).chain(code.hidden.iter().map(|a| (a, true)));
        for ((act, hidden), args) in acts.zip(&explainer.args) {
            parts.push(self.part(act, hidden, args, if hidden { &more } else { &full })?);
        }
        Ok(parts)
    }

    /// True if a solution gives this label and these values.
    fn matches(
        &mut self,
        group: usize,
        explainer: &StepExplainer,
        full: &[Value],
        label: LabelId,
        after: &[u32],
    ) -> Result<bool, Diagnostic> {
        let (code, info) = (&self.model.codes[group], &self.model.groups[group]);
        for (&slot, update) in info.writes.iter().zip(&explainer.updates) {
            let value = self.engine.eval(update, full)?;
            if self.id(slot, &value) != after[slot as usize] {
                return Ok(false);
            }
        }
        let mut multi = Vec::new();
        for (act, args) in code.actions.iter().zip(&explainer.args) {
            let args: Vec<Value> = args
                .iter()
                .flatten()
                .map(|a| self.engine.eval(a, full))
                .collect::<Result<_, _>>()?;
            multi.push((act.action, args));
        }
        Ok(self.label(multi) == label)
    }

    fn part(
        &mut self,
        act: &Act,
        hidden: bool,
        args: &[Option<Code>],
        env: &[Value],
    ) -> Result<StepPart, Diagnostic> {
        let model = self.model;
        let decl = &model.process.actions[act.action.index()];
        let mut texts = Vec::new();
        for (arg, sort) in args.iter().zip(&decl.sorts) {
            texts.push(match arg {
                Some(code) => {
                    let value = self.engine.eval(code, env)?;
                    mu_data::print::expression(
                        model.program.signature(),
                        &self.engine.to_expr_at(&value, *sort),
                    )
                }
                None => "_".into(),
            });
        }
        let name = |a: mu_base::ids::ActId| model.process.actions[a.index()].name.clone();
        let from = act
            .from
            .iter()
            .map(|o| PartOrigin { component: o.component, action: name(o.action), open: o.open })
            .collect();
        Ok(StepPart { name: decl.name.clone(), args: texts, hidden, from })
    }
}
