//! Traversal of the typed tree: visits every expression, statement and argument of a body.

use crate::typed::{
    AliasTarget, Argument, Domain, Expr, ExprKind, Place, Put, Step, Stmt, StmtKind,
};

/// Part of a body that a visitor gets, before its own parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'t> {
    /// Expression.
    Expr(&'t Expr),
    /// Statement.
    Stmt(&'t Stmt),
    /// Argument of a call.
    Argument(&'t Argument),
}

/// Function that gets the parts of a body.
pub(crate) type Visitor<'v, 't> = dyn FnMut(Part<'t>) + 'v;

/// Visits the parts of statements.
pub(crate) fn statements<'t>(all: &'t [Stmt], visit: &mut Visitor<'_, 't>) {
    all.iter().for_each(|s| statement(s, visit));
}

fn statement<'t>(stmt: &'t Stmt, visit: &mut Visitor<'_, 't>) {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        visit(Part::Stmt(stmt));
        match &stmt.kind {
            StmtKind::Assign { target, value } => {
                place(target, visit);
                expression(value, visit);
            }
            StmtKind::Undefine(target) | StmtKind::Clear(target) => place(target, visit),
            StmtKind::If { clauses, otherwise } => {
                for clause in clauses {
                    expression(&clause.condition, visit);
                    statements(&clause.body, visit);
                }
                statements(otherwise, visit);
            }
            StmtKind::Switch { value, cases, otherwise } => {
                expression(value, visit);
                for case in cases {
                    case.matches.iter().for_each(|m| expression(m, visit));
                    statements(&case.body, visit);
                }
                statements(otherwise, visit);
            }
            StmtKind::For { domain: values, body, .. } => {
                domain(values, visit);
                statements(body, visit);
            }
            StmtKind::While { condition, body } => {
                expression(condition, visit);
                statements(body, visit);
            }
            StmtKind::Return(value) => value.iter().for_each(|v| expression(v, visit)),
            StmtKind::Put(Put::Value(value)) => expression(value, visit),
            StmtKind::Put(Put::Text(_)) | StmtKind::Error(_) => {}
            StmtKind::Claim { condition, .. } => expression(condition, visit),
            StmtKind::Alias { aliases, body } => {
                aliases.iter().for_each(|a| target_of(&a.target, visit));
                statements(body, visit);
            }
            StmtKind::Call(_, arguments) => arguments.iter().for_each(|a| argument(a, visit)),
            StmtKind::MultisetAdd { element, multiset } => {
                place(element, visit);
                place(multiset, visit);
            }
            StmtKind::MultisetRemove { multiset, .. } => place(multiset, visit),
            StmtKind::MultisetRemovePredicate { multiset, predicate, .. } => {
                place(multiset, visit);
                expression(predicate, visit);
            }
        }
    });
}

/// Visits the parts of the meaning of an alias.
pub(crate) fn target_of<'t>(target: &'t AliasTarget, visit: &mut Visitor<'_, 't>) {
    match target {
        AliasTarget::Place(p) => place(p, visit),
        AliasTarget::Value(v) => expression(v, visit),
    }
}

fn domain<'t>(values: &'t Domain, visit: &mut Visitor<'_, 't>) {
    if let Domain::Range { from, to, by } = values {
        expression(from, visit);
        expression(to, visit);
        by.iter().for_each(|b| expression(b, visit));
    }
}

fn argument<'t>(given: &'t Argument, visit: &mut Visitor<'_, 't>) {
    visit(Part::Argument(given));
    match given {
        Argument::Value(value) => expression(value, visit),
        Argument::Place(target) => place(target, visit),
        Argument::Undefined(_) => {}
    }
}

/// Visits a place and its indices.
pub(crate) fn place<'t>(of: &'t Place, visit: &mut Visitor<'_, 't>) {
    for step in &of.steps {
        if let Step::Index { index, .. } = step {
            expression(index, visit);
        }
    }
}

/// Visits the parts of an expression.
pub(crate) fn expression<'t>(of: &'t Expr, visit: &mut Visitor<'_, 't>) {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        visit(Part::Expr(of));
        match &of.kind {
            ExprKind::Constant(_) => {}
            ExprKind::Read(p) | ExprKind::IsUndefined(p) => place(p, visit),
            ExprKind::Unary(_, a) | ExprKind::IsMember(a, _) => expression(a, visit),
            ExprKind::Binary(_, a, b) => {
                expression(a, visit);
                expression(b, visit);
            }
            ExprKind::Conditional(c, a, b) => {
                expression(c, visit);
                expression(a, visit);
                expression(b, visit);
            }
            ExprKind::Quantified { domain: values, body, .. } => {
                domain(values, visit);
                expression(body, visit);
            }
            ExprKind::Call(_, arguments) => arguments.iter().for_each(|a| argument(a, visit)),
            ExprKind::MultisetCount { multiset, predicate, .. } => {
                place(multiset, visit);
                expression(predicate, visit);
            }
        }
    });
}
