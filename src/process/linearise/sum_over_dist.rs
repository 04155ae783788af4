//! Distribution of sums over initial probabilistic choices.
//!
//! In: `sum n: S. p` where `p` may start with a `dist`. Out: the parts of `p` without a `dist`
//! below the sum, and a copy of each other part for every value of `n`. The copies choose
//! independently, and before the nondeterministic choice of `n`, as in the reference's linear form.
//! Values are the solutions of the conditions in front of the `dist` that depend on the variables
//! of the sum alone, so `S` may be infinite.
//!
//! Cost: values times the size of the term. Invariant: the result is strongly bisimilar to the term
//! once its `dist`s are resolved, with one outcome for each combination of outcomes of the copies.

use super::chance::{PullContext, PulledChoices};
use super::sequential::AutomatonBuilder;
use super::term::ProcessTerm;
use mu_base::ids::{ProcId, VarId};
use mu_base::{Diagnostic, Stage};
use mu_data::engine::{Engine, Program};
use mu_data::expr::{DataSpec, Expr, Substitution};
use mu_data::signature::Signature;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Limit on the values of the variables of one sum; beyond it, linearisation fails, since the
/// outcomes of the copies multiply.
const MAX_VALUES: usize = 1_000;
/// Limit on the equations applied to find these values.
const MAX_STEPS: u64 = 1_000_000;

/// Solutions for the variables of a sum.
pub(super) type SumValues = Rc<[Vec<Expr>]>;

impl AutomatonBuilder<'_> {
    /// Resolves the choices below a sum. `more`: true if the sum is followed by another term.
    pub(super) fn pull_sum(
        &mut self,
        vars: &[VarId],
        term: &Rc<ProcessTerm>,
        more: bool,
        at: &mut PullContext,
        out: &mut PulledChoices,
    ) -> Result<Rc<ProcessTerm>, Diagnostic> {
        let mut inner: Vec<VarId> = Vec::new();
        let mut by = Substitution::new();
        for v in vars {
            let fresh = self.rename(*v, &at.taken);
            at.taken.push(fresh);
            inner.push(fresh);
            if fresh != *v {
                by.insert(*v, Expr::var(self.signature, fresh));
            }
        }
        let term = term.substitute(&by);
        self.pull_below(&mut inner, &mut Vec::new(), &term, more, at, out)
    }

    /// Resolves the choices of a term below a sum and conditions. `vars`: the variables of the sum,
    /// all different from those in use.
    fn pull_below(
        &mut self,
        vars: &mut Vec<VarId>,
        guard: &mut Vec<Expr>,
        term: &Rc<ProcessTerm>,
        more: bool,
        at: &mut PullContext,
        out: &mut PulledChoices,
    ) -> Result<Rc<ProcessTerm>, Diagnostic> {
        let delta = || Rc::new(ProcessTerm::Delta);
        if matches!(**term, ProcessTerm::Delta) {
            return Ok(delta());
        }
        if !self.starts_with_choice(term) {
            let below = guard
                .iter()
                .rev()
                .fold(term.clone(), |below, c| Rc::new(ProcessTerm::If(c.clone(), below, delta())));
            return Ok(Rc::new(ProcessTerm::Sum(vars.clone(), below)));
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || match &**term {
            ProcessTerm::Choice(p, q) => {
                let p = self.pull_below(vars, guard, p, more, at, out)?;
                let q = self.pull_below(vars, guard, q, more, at, out)?;
                Ok(choice(p, q))
            }
            ProcessTerm::If(c, p, q) => {
                let mut branches = Vec::new();
                for (c, branch) in [(c.clone(), p), (Expr::negate(self.signature, c.clone()), q)] {
                    guard.push(c);
                    branches.push(self.pull_below(vars, guard, branch, more, at, out)?);
                    guard.pop();
                }
                Ok(branches.into_iter().reduce(choice).unwrap_or_else(delta))
            }
            ProcessTerm::Sum(own, p) => {
                let (outer, mut by) = (vars.len(), Substitution::new());
                for v in own {
                    let fresh = self.rename(*v, &at.taken);
                    at.taken.push(fresh);
                    vars.push(fresh);
                    if fresh != *v {
                        by.insert(*v, Expr::var(self.signature, fresh));
                    }
                }
                let pulled = self.pull_below(vars, guard, &p.substitute(&by), more, at, out);
                vars.truncate(outer);
                pulled
            }
            _ => self.pull_copies(vars, guard, term, more, at, out),
        })
    }

    /// Returns the choice of a copy of a term for each value of the variables of a sum.
    fn pull_copies(
        &mut self,
        vars: &[VarId],
        guard: &[Expr],
        term: &Rc<ProcessTerm>,
        more: bool,
        at: &mut PullContext,
        out: &mut PulledChoices,
    ) -> Result<Rc<ProcessTerm>, Diagnostic> {
        let mut conditions = guard.to_vec();
        self.conditions(term, &Substitution::new(), &mut at.calls.clone(), &mut conditions);
        let mut decided = Vec::new();
        for c in conditions {
            for c in c.substitute(&at.values).conjuncts(self.signature) {
                let mut free = Vec::new();
                c.free_vars(&mut free);
                if free.iter().all(|v| vars.contains(v)) && !self.open.is_used_by(&c) {
                    decided.push(c);
                }
            }
        }
        // Conditions that the values satisfy disappear.
        let mut remaining = Vec::new();
        for c in guard.iter().flat_map(|c| c.conjuncts(self.signature)) {
            if !decided.contains(&c.substitute(&at.values)) {
                remaining.push(c);
            }
        }
        let mut copies = Rc::new(ProcessTerm::Delta);
        for values in self.solutions(vars, &decided)?.iter().rev() {
            let by: Substitution = vars.iter().copied().zip(values.iter().cloned()).collect();
            let copy = remaining.iter().rev().fold(term.substitute(&by), |below, c| {
                let delta = Rc::new(ProcessTerm::Delta);
                Rc::new(ProcessTerm::If(c.substitute(&by), below, delta))
            });
            copies = choice(self.pull(&copy, more, at, out)?, copies);
        }
        Ok(copies)
    }

    /// Adds the conditions without which a term has no step, also those of the processes that it
    /// calls at its start. `calls`: the processes above, which are not unfolded again.
    fn conditions(
        &self,
        term: &ProcessTerm,
        by: &Substitution,
        calls: &mut Vec<ProcId>,
        out: &mut Vec<Expr>,
    ) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match term {
            ProcessTerm::If(c, p, q) if matches!(**q, ProcessTerm::Delta) => {
                out.push(c.substitute(by));
                self.conditions(p, by, calls, out);
            }
            ProcessTerm::Seq(p, _) | ProcessTerm::At(p, _) => self.conditions(p, by, calls, out),
            ProcessTerm::Call(p, args) if !calls.contains(p) => {
                let params = self.spec.procs[p.index()].params.iter().copied();
                let inner = params.zip(args.iter().map(|a| a.substitute(by))).collect();
                if let Some(body) = &self.bodies[p.index()] {
                    calls.push(*p);
                    self.conditions(body, &inner, calls, out);
                    calls.pop();
                }
            }
            _ => {}
        })
    }

    /// Returns all values of variables for which the conditions hold.
    fn solutions(&mut self, vars: &[VarId], conditions: &[Expr]) -> Result<SumValues, Diagnostic> {
        let signature = &mut *self.signature;
        let condition = conditions
            .iter()
            .fold(Expr::boolean(signature, true), |all, c| Expr::and(signature, all, c.clone()));
        let key = (vars.to_vec(), condition);
        if let Some(known) = self.sum_values.get(&key) {
            return Ok(known.clone());
        }
        let data = DataSpec {
            signature: self.signature.clone(),
            equations: self.spec.data.equations.clone(),
        };
        let mut engine = Engine::new(Program::compile(&data)?);
        engine.set_step_limit(MAX_STEPS);
        let sorts: Vec<_> = vars.iter().map(|v| self.signature.var(*v).sort).collect();
        let problem = engine.problem(vars, &key.1, &[])?;
        let mut found: Vec<Vec<Expr>> = Vec::new();
        let solved = engine.solve(&problem, &[], &mut |engine, values| {
            if found.len() == MAX_VALUES {
                return Err(too_many(self.signature, vars));
            }
            let terms = values.iter().zip(&sorts).map(|(v, sort)| engine.to_expr_at(v, *sort));
            found.push(terms.collect());
            Ok(ControlFlow::Continue(()))
        });
        match solved {
            Err(reason) if reason.stage == Stage::Unsupported => return Err(reason),
            Err(reason) => return Err(unbounded_error(self.signature, vars, &reason)),
            Ok(()) => {}
        }
        // Values may need operations that only the engine has.
        *self.signature = engine.program().signature().clone();
        let found: SumValues = found.into();
        self.sum_values.insert(key, found.clone());
        Ok(found)
    }
}

/// Remedy for sums with values that are not enumerated.
const ADVICE: &str = "a `sum` over a `dist` chooses for each value before the sum: bound its variables by a condition in front of the `dist`, as in `sum n: Nat. (n < 3) -> dist …`, or put an action in front of the `dist`";

fn names(signature: &Signature, vars: &[VarId]) -> String {
    let names: Vec<String> = vars.iter().map(|v| format!("`{}`", signature.var(*v).name)).collect();
    names.join(", ")
}

fn too_many(signature: &Signature, vars: &[VarId]) -> Diagnostic {
    let names = names(signature, vars);
    let message = format!(
        "a `sum` over a process that starts with `dist` has more than {MAX_VALUES} values of {names}"
    );
    Diagnostic::new(Stage::Unsupported, message).note(ADVICE)
}

fn unbounded_error(signature: &Signature, vars: &[VarId], reason: &Diagnostic) -> Diagnostic {
    let names = names(signature, vars);
    let message = format!(
        "a `sum` over a process that starts with `dist` needs finitely many values of {names}"
    );
    Diagnostic::new(Stage::Unsupported, message).note(reason.message.clone()).note(ADVICE)
}

/// Returns the choice of two terms.
fn choice(p: Rc<ProcessTerm>, q: Rc<ProcessTerm>) -> Rc<ProcessTerm> {
    match (&*p, &*q) {
        (ProcessTerm::Delta, _) => q,
        (_, ProcessTerm::Delta) => p,
        _ => Rc::new(ProcessTerm::Choice(p, q)),
    }
}
