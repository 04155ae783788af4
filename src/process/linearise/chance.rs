//! Elimination of initial probabilistic choices: a `dist` before an action is resolved when its
//! location is entered, so that no location starts with a `dist`.
//!
//! In: the continuation and the values of its variables. Out: the continuation without leading
//! `dist`s, and the distribution of their variables, which become free in it. A `dist` below `+`
//! and `c -> p <> q` is pulled out: probabilistic choices precede nondeterministic ones (Groote,
//! Rivera Verduzco, de Vink, "An efficient algorithm to determine probabilistic bisimulation",
//! 2018, and the reference's linear form). If a condition excludes a `dist`, its variables have one
//! value with probability 1, so that states do not multiply. For a `dist` below a sum see
//! `sum_over_dist`.
//!
//! Cost: linear in the terms up to the first actions. Invariant: the free variables of the weights
//! are those of the values and the chosen variables.

use super::assemble::default_value;
use super::sequence::Sequence;
use super::sequential::AutomatonBuilder;
use super::term::ProcessTerm;
use crate::linear::Chance;
use mu_base::ids::{ProcId, VarId};
use mu_base::{Diagnostic, Stage};
use mu_data::expr::{Expr, Substitution};
use mu_data::signature::{Builtin, Signature};
use mu_data::sort::basic;
use std::rc::Rc;

/// Returns for each process whether it may start with a probabilistic choice. Least fixed point.
pub(super) fn starts_with_dist(bodies: &[Option<Rc<ProcessTerm>>]) -> Vec<bool> {
    let mut known = vec![false; bodies.len()];
    loop {
        let mut changed = false;
        for (i, body) in bodies.iter().enumerate() {
            if !known[i] && body.as_ref().is_some_and(|b| starts(b, &known)) {
                known[i] = true;
                changed = true;
            }
        }
        if !changed {
            return known;
        }
    }
}

/// True if a term may start with a probabilistic choice.
fn starts(term: &ProcessTerm, starts_with_dist: &[bool]) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match term {
        ProcessTerm::Dist(..) => true,
        ProcessTerm::Action(_) | ProcessTerm::Delta => false,
        ProcessTerm::Call(p, _) => starts_with_dist[p.index()],
        ProcessTerm::Choice(p, q) | ProcessTerm::If(_, p, q) => {
            starts(p, starts_with_dist) || starts(q, starts_with_dist)
        }
        ProcessTerm::Seq(p, _) | ProcessTerm::Sum(_, p) | ProcessTerm::At(p, _) => {
            starts(p, starts_with_dist)
        }
    })
}

/// Continuation after its initial probabilistic choice.
pub(super) struct ResolvedChoice {
    pub sequence: Sequence,
    pub values: Substitution,
    pub chance: Option<Chance>,
}

/// Variables and weights of the choices pulled out of a term so far.
#[derive(Default)]
pub(super) struct PulledChoices {
    vars: Vec<VarId>,
    weights: Vec<Expr>,
}

/// Context of the transformation.
pub(super) struct PullContext {
    /// Variables in use.
    pub taken: Vec<VarId>,
    /// Values of the parameters of processes with inlined bodies.
    pub values: Substitution,
    /// Inlined processes, outermost first.
    pub calls: Vec<ProcId>,
}

/// Returns the product of weights; `None` if there are none.
pub(super) fn product(signature: &mut Signature, weights: Vec<Expr>) -> Option<Expr> {
    weights
        .into_iter()
        .reduce(|a, b| Expr::builtin(signature, Builtin::Multiply, vec![a, b], basic::REAL))
}

fn real(signature: &mut Signature, n: u32) -> Expr {
    Expr::builtin(signature, Builtin::IntToReal, vec![Expr::number(n, basic::INT)], basic::REAL)
}

impl AutomatonBuilder<'_> {
    /// Resolves the initial probabilistic choices of a sequence. `taken`: further variables to
    /// avoid.
    pub(super) fn resolve_choices(
        &mut self,
        sequence: Sequence,
        values: Substitution,
        taken: Vec<VarId>,
    ) -> Result<ResolvedChoice, Diagnostic> {
        let Some(first) =
            self.sequences.first(sequence).filter(|t| starts(t, &self.starts_with_dist)).cloned()
        else {
            return Ok(ResolvedChoice { sequence, values, chance: None });
        };
        let mut pulling = PullContext { taken, values, calls: Vec::new() };
        pulling.taken.extend_from_slice(&self.sequences.vars(sequence));
        pulling.taken.extend(pulling.values.keys());
        for e in pulling.values.values() {
            e.free_vars(&mut pulling.taken);
        }
        let rest = self.sequences.rest(sequence);
        let mut pulled = PulledChoices::default();
        let term = self.pull(&first, !rest.is_empty(), &mut pulling, &mut pulled)?;
        let sequence = self.sequences.push(&term, rest);
        let PullContext { values, .. } = pulling;
        let weights = pulled.weights.iter().map(|w| w.substitute(&values)).collect();
        let chance =
            product(self.signature, weights).map(|weight| Chance { vars: pulled.vars, weight });
        Ok(ResolvedChoice { sequence, values, chance })
    }

    /// True if a term may start with a probabilistic choice.
    pub(super) fn starts_with_choice(&self, term: &ProcessTerm) -> bool {
        starts(term, &self.starts_with_dist)
    }

    /// Returns a term without the `dist`s before its actions. `more`: true if the term is followed
    /// by another.
    pub(super) fn pull(
        &mut self,
        term: &Rc<ProcessTerm>,
        more: bool,
        at: &mut PullContext,
        out: &mut PulledChoices,
    ) -> Result<Rc<ProcessTerm>, Diagnostic> {
        if !self.starts_with_choice(term) {
            return Ok(term.clone());
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            Ok(Rc::new(match &**term {
                ProcessTerm::Dist(vars, weight, p) => {
                    let mut by = Substitution::new();
                    for v in vars {
                        let fresh = self.rename(*v, &at.taken);
                        at.taken.push(fresh);
                        out.vars.push(fresh);
                        if fresh != *v {
                            by.insert(*v, Expr::var(self.signature, fresh));
                        }
                    }
                    out.weights.push(weight.substitute(&by));
                    return self.pull(&p.substitute(&by), more, at, out);
                }
                ProcessTerm::Choice(p, q) => {
                    ProcessTerm::Choice(self.pull(p, more, at, out)?, self.pull(q, more, at, out)?)
                }
                ProcessTerm::If(c, p, q) => {
                    let otherwise = Expr::negate(self.signature, c.clone());
                    let p = self.pull_if(c, p, more, at, out)?;
                    let q = self.pull_if(&otherwise, q, more, at, out)?;
                    ProcessTerm::If(c.clone(), p, q)
                }
                ProcessTerm::Seq(p, q) => ProcessTerm::Seq(self.pull(p, true, at, out)?, q.clone()),
                ProcessTerm::At(p, t) => ProcessTerm::At(self.pull(p, more, at, out)?, t.clone()),
                ProcessTerm::Call(p, args) => return self.pull_call(*p, args, more, at, out),
                ProcessTerm::Sum(vars, p) => return self.pull_sum(vars, p, more, at, out),
                ProcessTerm::Action(_) | ProcessTerm::Delta => return Ok(term.clone()),
            }))
        })
    }

    /// Transforms a branch of a conditional: if its condition does not hold, its choices have one
    /// outcome with probability 1.
    fn pull_if(
        &mut self,
        c: &Expr,
        p: &Rc<ProcessTerm>,
        more: bool,
        at: &mut PullContext,
        out: &mut PulledChoices,
    ) -> Result<Rc<ProcessTerm>, Diagnostic> {
        let mut inner = PulledChoices::default();
        let p = self.pull(p, more, at, &mut inner)?;
        let Some(weight) = product(self.signature, inner.weights) else { return Ok(p) };
        let mut certain = Expr::boolean(self.signature, true);
        for v in &inner.vars {
            let sort = self.signature.var(*v).sort;
            let (x, value) = (Expr::var(self.signature, *v), default_value(self.signature, sort));
            let same = Expr::equal(self.signature, x, value);
            certain = Expr::and(self.signature, certain, same);
        }
        let (one, none) = (real(self.signature, 1), real(self.signature, 0));
        let certain =
            Expr::builtin(self.signature, Builtin::If, vec![certain, one, none], basic::REAL);
        out.vars.extend(inner.vars);
        out.weights.push(Expr::builtin(
            self.signature,
            Builtin::If,
            vec![c.clone(), weight, certain],
            basic::REAL,
        ));
        Ok(p)
    }

    /// Inlines the body of a process.
    fn pull_call(
        &mut self,
        p: ProcId,
        args: &[Expr],
        more: bool,
        at: &mut PullContext,
        out: &mut PulledChoices,
    ) -> Result<Rc<ProcessTerm>, Diagnostic> {
        let def = &self.spec.procs[p.index()];
        if at.calls.contains(&p) {
            let message = format!(
                "unguarded recursion: process `{}` calls itself before its first action",
                def.name
            );
            return Err(Diagnostic::at(Stage::Process, def.span, message)
                .note("put an action before the recursive call, as in `P = a . P`"));
        }
        if self.uses_stack[p.index()] && more {
            let message = format!(
                "process `{}` starts with `dist` and its recursion needs a stack, which is not supported",
                def.name
            );
            return Err(Diagnostic::at(Stage::Unsupported, def.span, message)
                .note("put an action before the `dist`"));
        }
        args.iter().for_each(|a| a.free_vars(&mut at.taken));
        let mut by = Substitution::new();
        for (param, arg) in def.params.clone().into_iter().zip(args) {
            // Parameters get fresh variables, so that nothing in the body needs renaming and the
            // location is the same each time.
            let formal = self.rename(param, &at.taken);
            at.taken.push(formal);
            let value = arg.substitute(&at.values);
            at.values.insert(formal, value);
            if formal != param {
                by.insert(param, Expr::var(self.signature, formal));
            }
        }
        let body = self.bodies[p.index()]
            .clone()
            .expect("calls of sequential terms are to sequential processes");
        let body = body.substitute(&by);
        at.calls.push(p);
        let pulled = self.pull(&body, more, at, out);
        at.calls.pop();
        pulled
    }
}
