//! Sequential process terms in the form that linearisation works on: shared, hashable, without
//! places.
//!
//! In: typed process terms (`process::spec`). Out: [`ProcessTerm`], with multi-actions joined,
//! `tau` as the empty multi-action and every conditional with an else-branch. Constructs that have
//! no linear process in the reference either are rejected by name, with their place. Cost: linear
//! in the size of the specification. Invariant: a term contains no parallel operator.

use crate::linear::Act;
use crate::spec::{Proc, ProcKind, ProcSpec};
use mu_base::ids::{ProcId, VarId};
use mu_base::{Diagnostic, Place, Stage};
use mu_data::expr::{Expr, Substitution};
use std::rc::Rc;

/// Sequential process term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ProcessTerm {
    /// A multi-action; empty is tau.
    Action(Vec<Act>),
    Call(ProcId, Vec<Expr>),
    Delta,
    Choice(Rc<ProcessTerm>, Rc<ProcessTerm>),
    Seq(Rc<ProcessTerm>, Rc<ProcessTerm>),
    If(Expr, Rc<ProcessTerm>, Rc<ProcessTerm>),
    Sum(Vec<VarId>, Rc<ProcessTerm>),
    /// Probabilistic choice: variables and their weight.
    Dist(Vec<VarId>, Expr, Rc<ProcessTerm>),
    /// The first action happens at this time.
    At(Rc<ProcessTerm>, Expr),
}

impl ProcessTerm {
    /// Replaces free data variables by expressions without variables that the term sums over;
    /// shares unchanged subterms.
    pub(super) fn substitute(self: &Rc<ProcessTerm>, by: &Substitution) -> Rc<ProcessTerm> {
        if by.is_empty() {
            return self.clone();
        }
        let exprs = |es: &[Expr]| es.iter().map(|e| e.substitute(by)).collect::<Vec<_>>();
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            Rc::new(match &**self {
                ProcessTerm::Action(acts) => ProcessTerm::Action(
                    acts.iter().map(|a| Act { args: exprs(&a.args), ..a.clone() }).collect(),
                ),
                ProcessTerm::Call(p, args) => ProcessTerm::Call(*p, exprs(args)),
                ProcessTerm::Delta => ProcessTerm::Delta,
                ProcessTerm::Choice(p, q) => {
                    ProcessTerm::Choice(p.substitute(by), q.substitute(by))
                }
                ProcessTerm::Seq(p, q) => ProcessTerm::Seq(p.substitute(by), q.substitute(by)),
                ProcessTerm::If(c, p, q) => {
                    ProcessTerm::If(c.substitute(by), p.substitute(by), q.substitute(by))
                }
                ProcessTerm::Sum(vars, p) => ProcessTerm::Sum(vars.clone(), p.substitute(by)),
                ProcessTerm::Dist(vars, w, p) => {
                    ProcessTerm::Dist(vars.clone(), w.substitute(by), p.substitute(by))
                }
                ProcessTerm::At(p, t) => ProcessTerm::At(p.substitute(by), t.substitute(by)),
            })
        })
    }

    /// True if the term binds one of the variables.
    pub(super) fn sums_over(&self, vars: &[VarId]) -> bool {
        !vars.is_empty()
            && stacker::maybe_grow(64 << 10, 1 << 20, || match self {
                ProcessTerm::Action(_) | ProcessTerm::Call(..) | ProcessTerm::Delta => false,
                ProcessTerm::Choice(p, q) | ProcessTerm::Seq(p, q) | ProcessTerm::If(_, p, q) => {
                    p.sums_over(vars) || q.sums_over(vars)
                }
                ProcessTerm::Sum(own, p) | ProcessTerm::Dist(own, _, p) => {
                    own.iter().any(|v| vars.contains(v)) || p.sums_over(vars)
                }
                ProcessTerm::At(p, _) => p.sums_over(vars),
            })
    }
}

/// True if a process term is sequential: it contains no operator of the parallel layer. Calls are
/// looked up in `parallel`.
pub(super) fn is_sequential(proc: &Proc, parallel: &[bool]) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &proc.kind {
        ProcKind::Action(..) | ProcKind::Delta | ProcKind::Tau => true,
        ProcKind::Call(p, _) => !parallel[p.index()],
        ProcKind::Choice(p, q) | ProcKind::Seq(p, q) | ProcKind::BoundedInit(p, q) => {
            is_sequential(p, parallel) && is_sequential(q, parallel)
        }
        ProcKind::Sync(..) => is_multi_action(proc),
        ProcKind::At(p, _) | ProcKind::Sum(_, p) | ProcKind::Dist(_, _, p) => {
            is_sequential(p, parallel)
        }
        ProcKind::If(_, p, q) => {
            is_sequential(p, parallel) && q.as_ref().is_none_or(|q| is_sequential(q, parallel))
        }
        ProcKind::Parallel(..)
        | ProcKind::LeftMerge(..)
        | ProcKind::Block(..)
        | ProcKind::Allow(..)
        | ProcKind::Hide(..)
        | ProcKind::Rename(..)
        | ProcKind::Comm(..) => false,
    })
}

/// True if `p | q | …` is syntactically a multi-action.
pub(super) fn is_multi_action(proc: &Proc) -> bool {
    match &proc.kind {
        ProcKind::Action(..) | ProcKind::Tau => true,
        ProcKind::Sync(p, q) => is_multi_action(p) && is_multi_action(q),
        _ => false,
    }
}

/// Returns for each process equation whether its body uses (directly or by calls) the parallel
/// layer. Least fixed point.
pub(super) fn parallel_equations(spec: &ProcSpec) -> Vec<bool> {
    let mut parallel = vec![false; spec.procs.len()];
    loop {
        let mut changed = false;
        for (i, def) in spec.procs.iter().enumerate() {
            if !parallel[i] && !is_sequential(&def.body, &parallel) {
                parallel[i] = true;
                changed = true;
            }
        }
        if !changed {
            return parallel;
        }
    }
}

/// Converts a sequential process term.
pub(super) fn convert(proc: &Proc) -> Result<Rc<ProcessTerm>, Diagnostic> {
    let refuse = |what: &str| {
        Err(Diagnostic::at(
            Stage::Unsupported,
            proc.span,
            format!("{what} is not supported by linearisation"),
        )
        .note("the construct parses and type checks, but cannot be executed yet"))
    };
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        Ok(Rc::new(match &proc.kind {
            ProcKind::Action(..) | ProcKind::Tau => ProcessTerm::Action(multi_action(proc)?),
            ProcKind::Sync(..) if is_multi_action(proc) => ProcessTerm::Action(multi_action(proc)?),
            ProcKind::Call(p, args) => ProcessTerm::Call(*p, args.clone()),
            ProcKind::Delta => ProcessTerm::Delta,
            ProcKind::Choice(p, q) => ProcessTerm::Choice(convert(p)?, convert(q)?),
            ProcKind::Seq(p, q) => ProcessTerm::Seq(convert(p)?, convert(q)?),
            ProcKind::If(c, p, q) => {
                let otherwise =
                    q.as_ref().map_or_else(|| Ok(Rc::new(ProcessTerm::Delta)), |q| convert(q))?;
                ProcessTerm::If(c.clone(), convert(p)?, otherwise)
            }
            ProcKind::Sum(vars, p) => ProcessTerm::Sum(vars.clone(), convert(p)?),
            ProcKind::BoundedInit(..) => return refuse("the bounded initialisation operator `<<`"),
            ProcKind::At(p, t) => ProcessTerm::At(convert(p)?, t.clone()),
            ProcKind::Dist(vars, weight, p) => {
                ProcessTerm::Dist(vars.clone(), weight.clone(), convert(p)?)
            }
            ProcKind::Parallel(..) => {
                return refuse(
                    "the parallel operator `||` inside `.`, `+`, `sum` or a conditional",
                );
            }
            ProcKind::LeftMerge(..) => {
                return refuse("the left merge `||_` inside `.`, `+`, `sum` or a conditional");
            }
            ProcKind::Sync(..) => {
                return refuse(
                    "the synchronisation `|` of processes inside `.`, `+`, `sum` or a conditional",
                );
            }
            ProcKind::Block(..) => {
                return refuse("`block` inside `.`, `+`, `sum` or a conditional");
            }
            ProcKind::Allow(..) => {
                return refuse("`allow` inside `.`, `+`, `sum` or a conditional");
            }
            ProcKind::Hide(..) => return refuse("`hide` inside `.`, `+`, `sum` or a conditional"),
            ProcKind::Rename(..) => {
                return refuse("`rename` inside `.`, `+`, `sum` or a conditional");
            }
            ProcKind::Comm(..) => return refuse("`comm` inside `.`, `+`, `sum` or a conditional"),
        }))
    })
}

fn multi_action(proc: &Proc) -> Result<Vec<Act>, Diagnostic> {
    match &proc.kind {
        ProcKind::Action(action, args) => Ok(vec![Act {
            action: *action,
            args: args.clone(),
            from: Vec::new(),
            place: Place(proc.span),
        }]),
        ProcKind::Sync(p, q) => {
            let mut acts = multi_action(p)?;
            acts.extend(multi_action(q)?);
            Ok(acts)
        }
        _ => Ok(Vec::new()),
    }
}
