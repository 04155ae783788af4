//! Functions that write outside of their own frame.

use crate::typed::{
    AliasTarget, Argument, Expr, ExprKind, Frame, LocalId, LocalKind, Model, Place, Root, Stmt,
    StmtKind,
};

/// Returns, for each function, true if it may write a global variable or a `var` parameter, or
/// calls a function that does. An alias of a local variable counts as local.
pub(super) fn writing_functions(model: &Model) -> Vec<bool> {
    let mut writes = vec![false; model.functions.len()];
    for (i, function) in model.functions.iter().enumerate() {
        // Calls of the function itself add nothing new.
        let mut walk = Walk { writes: &writes, frame: &function.frame, local: Vec::new() };
        let found = walk.statements(&function.body);
        writes[i] = found;
    }
    writes
}

struct Walk<'a> {
    writes: &'a [bool],
    frame: &'a Frame,
    /// Aliases of places in this frame.
    local: Vec<LocalId>,
}

impl Walk<'_> {
    fn is_outside(&self, place: &Place) -> bool {
        match place.root {
            Root::Global(_) => true,
            Root::Local(id) => {
                self.frame.get(id).kind == LocalKind::Reference && !self.local.contains(&id)
            }
        }
    }
    fn statements(&mut self, all: &[Stmt]) -> bool {
        all.iter().any(|s| self.statement(s))
    }
    fn statement(&mut self, stmt: &Stmt) -> bool {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || match &stmt.kind {
            StmtKind::Assign { target, value } => self.is_outside(target) || self.expr(value),
            StmtKind::Undefine(place) | StmtKind::Clear(place) => self.is_outside(place),
            StmtKind::MultisetAdd { multiset, .. }
            | StmtKind::MultisetRemove { multiset, .. }
            | StmtKind::MultisetRemovePredicate { multiset, .. } => self.is_outside(multiset),
            StmtKind::If { clauses, otherwise } => {
                clauses.iter().any(|c| self.expr(&c.condition) || self.statements(&c.body))
                    || self.statements(otherwise)
            }
            StmtKind::Switch { value, cases, otherwise } => {
                self.expr(value)
                    || cases
                        .iter()
                        .any(|c| c.matches.iter().any(|e| self.expr(e)) || self.statements(&c.body))
                    || self.statements(otherwise)
            }
            StmtKind::For { body, .. } => self.statements(body),
            StmtKind::While { condition, body } => self.expr(condition) || self.statements(body),
            StmtKind::Return(value) => value.as_ref().is_some_and(|v| self.expr(v)),
            StmtKind::Claim { condition, .. } => self.expr(condition),
            StmtKind::Alias { aliases, body } => {
                for alias in aliases {
                    if let AliasTarget::Place(place) = &alias.target
                        && !self.is_outside(place)
                    {
                        self.local.push(alias.local);
                    }
                }
                self.statements(body)
            }
            StmtKind::Call(function, arguments) => self.call(function.index(), arguments),
            StmtKind::Put(_) | StmtKind::Error(_) => false,
        })
    }
    fn call(&self, function: usize, arguments: &[Argument]) -> bool {
        // A place passed by reference may be written there.
        self.writes[function]
            || arguments.iter().any(|a| match a {
                Argument::Place(place) => self.is_outside(place),
                Argument::Value(value) => self.expr(value),
                Argument::Undefined(_) => false,
            })
    }
    fn expr(&self, expr: &Expr) -> bool {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || match &expr.kind {
            ExprKind::Call(function, arguments) => self.call(function.index(), arguments),
            ExprKind::Unary(_, a) | ExprKind::IsMember(a, _) => self.expr(a),
            ExprKind::Binary(_, a, b) => self.expr(a) || self.expr(b),
            ExprKind::Conditional(a, b, c) => self.expr(a) || self.expr(b) || self.expr(c),
            ExprKind::Quantified { body, .. } => self.expr(body),
            ExprKind::MultisetCount { predicate, .. } => self.expr(predicate),
            ExprKind::Constant(_) | ExprKind::Read(_) | ExprKind::IsUndefined(_) => false,
        })
    }
}
