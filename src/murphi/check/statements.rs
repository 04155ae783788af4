//! Statements. An error in a statement does not end the check of those around it.

use super::expressions::Target;
use super::types::has_scalarset;
use super::{Checker, Meaning, Result, silent, wrong};
use crate::ast::{
    self, AliasDeclaration, ClaimWord, Expr as Tree, ExprKind as Kind, StmtKind as Node,
};
use crate::typed::{
    Alias, AliasTarget, Case, Claim, ClaimStatement, Clause, Expr, ExprKind, LocalKind, Put, Stmt,
    StmtKind, TypeKind,
};
use mu_base::naming::NameRole;
use mu_base::{Diagnostic, Span, Stage};

/// Reason why a name for a value cannot be written.
const VALUE: &str = "it is a name for a value";

/// Returns the kind of a claim.
pub(super) fn claim_of(word: ClaimWord) -> Claim {
    match word {
        ClaimWord::Assert | ClaimWord::Invariant => Claim::Assert,
        ClaimWord::Assume => Claim::Assume,
        ClaimWord::Cover => Claim::Cover,
        ClaimWord::Liveness => Claim::Liveness,
    }
}

impl Checker<'_> {
    /// Checks statements; those with an error are left out.
    pub(super) fn statements(&mut self, trees: &[ast::Stmt]) -> Vec<Stmt> {
        stacker::maybe_grow(128 * 1024, 1024 * 1024, || {
            let mut out = Vec::with_capacity(trees.len());
            for tree in trees {
                let checked = self.statement(tree);
                out.extend(self.report_error(checked).map(|kind| Stmt { kind, span: tree.span }));
            }
            out
        })
    }
    fn statement(&mut self, tree: &ast::Stmt) -> Result<StmtKind> {
        Ok(match &tree.kind {
            Node::Assign(target, value) => return self.assignment(target, value, tree.span),
            Node::Undefine(place) => StmtKind::Undefine(self.target(place, "undefined")?),
            Node::Clear(place) => {
                let place = self.target(place, "cleared")?;
                if has_scalarset(&self.out.types, place.ty) {
                    let message = format!(
                        "`clear` of a value of {}: a scalarset has no first element",
                        self.type_text(place.ty)
                    );
                    return Err(Diagnostic::at(Stage::Type, tree.span, message)
                        .note("`undefine` removes the value"));
                }
                StmtKind::Clear(place)
            }
            Node::If(trees, otherwise) => {
                let mut clauses = Vec::new();
                for (condition, body, span) in trees {
                    let condition = self.boolean(condition, "the condition of `if`");
                    let condition = self.report_error(condition);
                    let body = self.statements(body);
                    let span = *span;
                    clauses.extend(condition.map(|condition| Clause { condition, body, span }));
                }
                StmtKind::If { clauses, otherwise: self.statements(otherwise) }
            }
            Node::Switch(value, cases, otherwise) => {
                return self.switch(value, cases, otherwise);
            }
            Node::For(quantifiers, body) => {
                return self.in_scope(|c| {
                    let mut bound = Vec::new();
                    for quantifier in quantifiers {
                        bound.push(c.quantifier(quantifier)?);
                    }
                    let mut body = c.statements(body);
                    while let Some((local, domain)) = bound.pop() {
                        let kind = StmtKind::For { local, domain, body };
                        if bound.is_empty() {
                            return Ok(kind);
                        }
                        body = vec![Stmt { kind, span: tree.span }];
                    }
                    Err(silent(tree.span))
                });
            }
            Node::While(condition, body) => {
                let condition = self.boolean(condition, "the condition of `while`");
                let condition = self.report_error(condition);
                let body = self.statements(body);
                match condition {
                    Some(condition) => StmtKind::While { condition, body },
                    None => return Err(silent(tree.span)),
                }
            }
            Node::Return(value) => StmtKind::Return(self.return_value(value.as_ref(), tree.span)?),
            Node::PutText(text) => StmtKind::Put(Put::Text(text.clone())),
            Node::Put(value) => {
                let value = self.expr(value)?;
                if !self.is_simple(value.ty) && !matches!(value.kind, ExprKind::Read(_)) {
                    let message = format!(
                        "`put` of a value of {}, expected a variable or a simple type",
                        self.type_text(value.ty)
                    );
                    return wrong(value.span, message);
                }
                StmtKind::Put(Put::Value(value))
            }
            Node::Error(text) => StmtKind::Error(text.clone()),
            Node::Claim(word, condition, message) => {
                let claim = claim_of(*word);
                if claim == Claim::Liveness {
                    return wrong(
                        tree.span,
                        "`liveness` is no statement, expected it at the top level",
                    );
                }
                let condition = self.boolean(condition, "the condition of a claim")?;
                let number = self.out.claims.len() as u32;
                let (message, span) = (message.clone(), tree.span);
                self.out.claims.push(ClaimStatement { claim, message, span });
                StmtKind::Claim { number, condition }
            }
            Node::Alias(trees, body) => {
                return self.in_scope(|c| {
                    let aliases = c.aliases(trees)?;
                    Ok(StmtKind::Alias { aliases, body: c.statements(body) })
                });
            }
            Node::Call(name, arguments) => {
                let (id, arguments) = self.call(name, arguments, tree.span)?;
                StmtKind::Call(id, arguments)
            }
            Node::MultisetAdd(element, set) => {
                let (element, _) = self.place(element)?;
                let multiset = self.changed_multiset(set)?;
                if let TypeKind::Multiset { element: of, .. } = self.out.types.kind(multiset.ty)
                    && !self.agree(element.ty, *of)
                {
                    let message = format!(
                        "the element is a value of {}, expected {}",
                        self.type_text(element.ty),
                        self.type_text(*of)
                    );
                    return wrong(element.span, message);
                }
                StmtKind::MultisetAdd { element, multiset }
            }
            Node::MultisetRemove(position, set) => {
                let multiset = self.changed_multiset(set)?;
                let position = self.position_in(position, multiset.ty)?;
                StmtKind::MultisetRemove { position, multiset }
            }
            Node::MultisetRemovePredicate(name, set, predicate) => {
                self.changed_multiset(set)?;
                let (local, multiset, predicate) = self.multiset_predicate(name, set, predicate)?;
                StmtKind::MultisetRemovePredicate { local, multiset, predicate }
            }
        })
    }
    fn changed_multiset(&mut self, set: &Tree) -> Result<crate::typed::Place> {
        self.target(set, "changed")?;
        Ok(self.multiset(set)?.0)
    }
    fn assignment(&mut self, target: &Tree, value: &Tree, span: Span) -> Result<StmtKind> {
        let target = self.target(target, "assigned to");
        if self.is_undefined_word(value) {
            return target.map(StmtKind::Undefine);
        }
        let value = self.expr(value);
        // Both sides are checked, also if one has an error.
        let (target, value) = match (target, value) {
            (Ok(target), Ok(value)) => (target, value),
            (Err(error), value) => {
                self.report_error(value);
                return Err(error);
            }
            (_, Err(error)) => return Err(error),
        };
        if !self.agree(target.ty, value.ty) {
            let message = format!(
                "a value of {} is assigned to a variable of {}",
                self.type_text(value.ty),
                self.type_text(target.ty)
            );
            return wrong(span, message);
        }
        Ok(StmtKind::Assign { target, value })
    }
    fn switch(
        &mut self,
        value: &Tree,
        trees: &[(Vec<Tree>, Vec<ast::Stmt>, Span)],
        otherwise: &[ast::Stmt],
    ) -> Result<StmtKind> {
        let value = self.simple(value, "`switch`");
        let value = self.report_error(value);
        let mut cases = Vec::new();
        for (of_case, body, span) in trees {
            let mut matches = Vec::new();
            for tree in of_case {
                let checked = self.expr(tree).and_then(|found| match &value {
                    Some(value) if !self.agree(value.ty, found.ty) => wrong(
                        tree.span,
                        format!(
                            "a case of {} in a `switch` on a value of {}",
                            self.type_text(found.ty),
                            self.type_text(value.ty)
                        ),
                    ),
                    _ => Ok(found),
                });
                matches.extend(self.report_error(checked));
            }
            let body = self.statements(body);
            cases.push(Case { matches, body, span: *span });
        }
        let otherwise = self.statements(otherwise);
        match value {
            Some(value) => Ok(StmtKind::Switch { value, cases, otherwise }),
            None => Err(silent(Span::default())),
        }
    }
    fn return_value(&mut self, value: Option<&Tree>, span: Span) -> Result<Option<Expr>> {
        match (self.function, value) {
            (None | Some(None), None) => Ok(None),
            (None, Some(_)) => wrong(span, "a rule or start state returns no value"),
            (Some(None), Some(_)) => wrong(span, "a procedure returns no value"),
            (Some(Some(ty)), None) => {
                wrong(span, format!("this function returns a value of {}", self.type_text(ty)))
            }
            (Some(Some(ty)), Some(tree)) => {
                let value = self.expr(tree)?;
                if self.agree(value.ty, ty) {
                    return Ok(Some(value));
                }
                let message = format!(
                    "a value of {} is returned, expected {}",
                    self.type_text(value.ty),
                    self.type_text(ty)
                );
                wrong(tree.span, message)
            }
        }
    }

    /// Checks aliases and declares their names. Constants and positions have no local of their own.
    pub(super) fn aliases(&mut self, trees: &[AliasDeclaration]) -> Result<Vec<Alias>> {
        let mut out = Vec::new();
        for tree in trees {
            let checked = self.alias_target(&tree.value);
            let Some((value, place)) = self.report_error(checked) else {
                self.declare_rejected(&tree.names, tree.span);
                continue;
            };
            for name in &tree.names {
                let (target, kind, readonly) = match (&value.kind, &place) {
                    (ExprKind::Constant(n), _) => {
                        let meaning = Meaning::Constant(value.ty, *n);
                        self.declare(name, meaning, NameRole::Local, tree.span, "an alias");
                        continue;
                    }
                    (_, Some((place, readonly))) => {
                        if let (TypeKind::Position { .. }, crate::typed::Root::Local(id)) =
                            (self.out.types.kind(place.ty), place.root)
                        {
                            let meaning = Meaning::Local(id, *readonly);
                            self.declare(name, meaning, NameRole::Local, tree.span, "an alias");
                            continue;
                        }
                        (AliasTarget::Place(place.clone()), LocalKind::Reference, *readonly)
                    }
                    (_, None) => {
                        (AliasTarget::Value(value.clone()), LocalKind::AliasValue, Some(VALUE))
                    }
                };
                let local = self.declare_local(name, value.ty, kind, readonly, "an alias");
                out.push(Alias { local, target, span: tree.span });
            }
        }
        Ok(out)
    }
    fn alias_target(&mut self, tree: &Tree) -> Result<(Expr, Option<Target>)> {
        let value = self.expr(tree)?;
        let is_place = matches!(tree.kind, Kind::Name(_) | Kind::Field(..) | Kind::Index(..))
            && matches!(value.kind, ExprKind::Read(_));
        let place = if is_place { Some(self.place(tree)?) } else { None };
        Ok((value, place))
    }
}
