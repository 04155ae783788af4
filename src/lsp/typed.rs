//! Sort of an expression at a place: the overload chosen by the type checker, and sorts of
//! variables.
//!
//! A walk over all typed expressions of a text, with worklists; linear, and only on demand.

use crate::analysis::Analysis;
use mu_base::Span;
use mu_data::expr::{DataSpec, Expr, ExprKind};
use mu_formula::typed::{Action, Regular, StateKind, TypedStateFormula};
use mu_process::spec::{Proc, ProcKind};
use std::ops::Range;

/// Returns the sort of the operation or variable with its name at a range of the file, as text.
pub(crate) fn sort_at(analysis: &Analysis, range: &Range<usize>) -> Option<String> {
    let (data, mut open): (&DataSpec, Vec<&Expr>) = match (&analysis.typed, &analysis.specification)
    {
        (Some(typed), _) => (&typed.data, of_formula(&typed.formula)),
        (None, Some(specification)) => {
            let mut open = Vec::new();
            for e in &specification.data.equations {
                open.extend(e.condition.iter().chain([&e.lhs, &e.rhs]));
            }
            let bodies = specification.procs.iter().map(|p| &p.body).chain([&specification.init]);
            bodies.for_each(|p| of_process(p, &mut open));
            (&specification.data, open)
        }
        (None, None) => return None,
    };
    let name = &analysis.text[range.clone()];
    // The place of an operation may be that of its application, which starts with its name.
    let is_here = |span: Span| {
        span.is_somewhere()
            && span.source == analysis.source
            && analysis.place(&analysis.sources, span).start == range.start
    };
    while let Some(expr) = open.pop() {
        match &expr.0.kind {
            ExprKind::Op(op) if data.signature.op(*op).name == name && is_here(expr.0.span) => {
                return Some(data.signature.sorts.text(data.signature.op(*op).sort));
            }
            ExprKind::Var(var) if data.signature.var(*var).name == name && is_here(expr.0.span) => {
                return Some(data.signature.sorts.text(expr.0.sort));
            }
            ExprKind::Op(_) | ExprKind::Var(_) | ExprKind::Number(_) => {}
            ExprKind::Apply(head, args) => open.extend(args.iter().chain([head])),
            ExprKind::Bind(_, _, body) => open.push(body),
            ExprKind::Where(body, definitions) => {
                open.extend(definitions.iter().map(|d| &d.1).chain([body]))
            }
        }
    }
    None
}

fn of_process<'a>(process: &'a Proc, out: &mut Vec<&'a Expr>) {
    let mut open = vec![process];
    while let Some(p) = open.pop() {
        match &p.kind {
            ProcKind::Action(_, args) | ProcKind::Call(_, args) => out.extend(args),
            ProcKind::Delta | ProcKind::Tau => {}
            ProcKind::Choice(a, b)
            | ProcKind::Seq(a, b)
            | ProcKind::Parallel(a, b)
            | ProcKind::LeftMerge(a, b)
            | ProcKind::Sync(a, b)
            | ProcKind::BoundedInit(a, b) => open.extend([&**a, b]),
            ProcKind::At(a, e) | ProcKind::Dist(_, e, a) => {
                out.push(e);
                open.push(a);
            }
            ProcKind::If(e, a, b) => {
                out.push(e);
                open.extend([Some(a), b.as_ref()].into_iter().flatten().map(|p| &**p));
            }
            ProcKind::Sum(_, a)
            | ProcKind::Block(_, a)
            | ProcKind::Allow(_, a)
            | ProcKind::Hide(_, a)
            | ProcKind::Rename(_, a)
            | ProcKind::Comm(_, a) => open.push(a),
        }
    }
}

fn of_formula(formula: &TypedStateFormula) -> Vec<&Expr> {
    let mut out = Vec::new();
    let (mut states, mut regulars, mut actions) = (vec![formula], Vec::new(), Vec::new());
    while let Some(state) = states.pop() {
        match &state.kind {
            StateKind::True | StateKind::False => {}
            StateKind::Val(e) => out.push(e),
            StateKind::Var(_, args) => out.extend(args),
            StateKind::Not(f) | StateKind::Forall(_, f) | StateKind::Exists(_, f) => states.push(f),
            StateKind::And(f, g) | StateKind::Or(f, g) | StateKind::Implies(f, g) => {
                states.extend([&**f, g])
            }
            StateKind::Must(r, f) | StateKind::May(r, f) => {
                regulars.push(&**r);
                states.push(f);
            }
            StateKind::Fix { params, body, .. } => {
                out.extend(params.iter().map(|p| &p.1));
                states.push(body);
            }
        }
    }
    while let Some(regular) = regulars.pop() {
        match regular {
            Regular::Action(a) => actions.push(a),
            Regular::Seq(r, s) | Regular::Alt(r, s) => regulars.extend([&**r, s]),
            Regular::Star(r) | Regular::Plus(r) => regulars.push(r),
        }
    }
    while let Some(action) = actions.pop() {
        match action {
            Action::True | Action::False => {}
            Action::Val(e) => out.push(e),
            Action::Multi(multi) => out.extend(multi.iter().flat_map(|a| &a.1)),
            Action::Not(a) | Action::Forall(_, a) | Action::Exists(_, a) => actions.push(a),
            Action::And(a, b) | Action::Or(a, b) | Action::Implies(a, b) => {
                actions.extend([&**a, b])
            }
        }
    }
    out
}
