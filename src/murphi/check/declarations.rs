//! Declarations and functions.

use super::constants::LOWEST;
use super::types::{MAX_LEAVES, leaves};
use super::{Checker, Meaning, Result, wrong};
use crate::ast::{self, Declaration, DeclarationKind};
use crate::typed::{
    Constant, Function, FunctionId, Global, GlobalId, Local, LocalId, LocalKind, TypeId, TypeKind,
};
use mu_base::naming::{NameRole, line};
use mu_base::{Diagnostic, Span, Stage};

/// Reason why a parameter by value cannot be written.
const BY_VALUE: &str = "it is a parameter by value; `var` before its name passes a variable";

impl Checker<'_> {
    /// Checks a declaration, at the top level or in a body.
    pub(super) fn declaration(&mut self, declaration: &Declaration, global: bool) {
        let checked = match &declaration.kind {
            DeclarationKind::Constant(value) => self.constants(declaration, value, global),
            DeclarationKind::Type(ty) => self.types(declaration, ty, global),
            DeclarationKind::Variable(ty) => self.variables(declaration, ty, global),
        };
        if let Err(error) = checked {
            self.report(error);
            self.declare_rejected(&declaration.names, declaration.span);
        }
    }
    fn constants(
        &mut self,
        declaration: &Declaration,
        tree: &ast::Expr,
        global: bool,
    ) -> Result<()> {
        let (ty, folded) = self.constant(tree)?;
        for name in &declaration.names {
            let mut value = folded;
            let given = self.settings.constants.iter().rev().find(|c| c.0 == name.text);
            if let Some((_, given)) = given.filter(|_| global) {
                let fits = match ty {
                    TypeId::INTEGER => *given >= LOWEST,
                    _ => self.out.types.position(ty, *given).is_some(),
                };
                if !fits {
                    let what = match ty {
                        TypeId::INTEGER => "the number is too low",
                        _ => &*format!("the constant has the type {}", self.type_text(ty)),
                    };
                    let message = format!("`-D {}={given}`: {what}", name.text);
                    return Err(Diagnostic::at(Stage::Usage, name.span, message));
                }
                value = *given;
            }
            let text = self.out.types.value_text(ty, value);
            let meaning = Meaning::Constant(ty, value);
            self.declare(
                name,
                meaning,
                NameRole::Constant,
                declaration.span,
                &format!("value {text}"),
            );
            if global {
                let (name, span) = (name.text.clone(), name.span);
                self.out.constants.push(Constant { name, span, ty, value });
            }
        }
        Ok(())
    }
    fn types(
        &mut self,
        declaration: &Declaration,
        tree: &ast::TypeExpr,
        global: bool,
    ) -> Result<()> {
        let ty = self.type_of(tree)?;
        for name in &declaration.names {
            let entry = &mut self.out.types.all[ty.index()];
            if entry.name.is_none() && ty != TypeId::INTEGER {
                entry.name = Some(name.text.clone());
                self.name_members(ty);
            }
            self.declare(name, Meaning::Type(ty), NameRole::Type, declaration.span, "");
            if global {
                self.out.type_names.push((name.text.clone(), ty));
            }
        }
        Ok(())
    }
    /// Describes the members of an enumeration by its name, which comes after them in the checker.
    fn name_members(&mut self, ty: TypeId) {
        if let TypeKind::Enum { members, .. } = self.out.types.kind(ty) {
            for member in members {
                if let Some(binding) = self.declared.get(&member.span.start) {
                    let says = format!("{}: {}", member.name, self.out.types.text(ty));
                    self.naming.bindings[*binding].declaration = says;
                }
            }
        }
    }
    fn variables(
        &mut self,
        declaration: &Declaration,
        tree: &ast::TypeExpr,
        global: bool,
    ) -> Result<()> {
        let ty = self.type_of(tree)?;
        for name in &declaration.names {
            if global {
                let id = GlobalId::new(self.out.globals.len());
                self.out.globals.push(Global { name: name.text.clone(), span: name.span, ty });
                let note = "a variable of the state";
                self.declare(name, Meaning::Global(id), NameRole::Storage, declaration.span, note);
            } else {
                self.declare_local(name, ty, LocalKind::Variable, None, "a local variable");
            }
        }
        let total = self
            .out
            .globals
            .iter()
            .fold(0, |n: u64, g| n.saturating_add(leaves(&self.out.types, g.ty)));
        if total > MAX_LEAVES {
            let message = format!("the state has more than {MAX_LEAVES} values");
            return Err(Diagnostic::at(Stage::Unsupported, tree.span, message));
        }
        Ok(())
    }

    /// Checks a function. It is known in its own body and behind it.
    pub(super) fn function(&mut self, tree: &ast::Function) {
        self.frame = Default::default();
        self.body = tree.span;
        let id = FunctionId::new(self.out.functions.len());
        let head = self.head(tree);
        let note = if tree.result.is_some() { "a function" } else { "a procedure" };
        self.scopes.push(Default::default());
        let checked = self.signature_of(tree);
        // Parameters do not hide the function's own name from the scope around it.
        let parameters = self.scopes.pop().expect("the scope of the parameters");
        let (meaning, result, by_reference) = match checked {
            Ok((result, by_reference)) => (Meaning::Function(id), result, by_reference),
            Err(error) => {
                self.report(error);
                (Meaning::Rejected, None, Vec::new())
            }
        };
        self.declare(&tree.name, meaning, NameRole::Function, tree.name.span, note);
        if let Some(binding) = self.declared.get(&tree.name.span.start) {
            let binding = &mut self.naming.bindings[*binding];
            (binding.whole, binding.declaration) = (tree.span, head);
        }
        if meaning == Meaning::Rejected {
            return;
        }
        // The body calls the function by its number, so it is in the table before its body is.
        self.out.functions.push(Function {
            name: tree.name.text.clone(),
            span: tree.name.span,
            whole: tree.span,
            parameters: by_reference.len() as u32,
            result,
            frame: self.frame.clone(),
            body: Vec::new(),
        });
        self.function = Some(result);
        self.scopes.push(parameters);
        self.scopes.push(Default::default());
        for declaration in &tree.declarations {
            self.declaration(declaration, false);
        }
        let body = self.statements(&tree.body);
        self.scopes.truncate(self.scopes.len() - 2);
        self.function = None;
        let frame = std::mem::take(&mut self.frame);
        let function = &mut self.out.functions[id.index()];
        (function.frame, function.body) = (frame, body);
    }
    /// Returns the first line of a function for editors.
    fn head(&self, tree: &ast::Function) -> String {
        let mut end = tree.name.span;
        tree.parameters.iter().for_each(|p| end = end.to(p.ty.span));
        tree.result.iter().for_each(|ty| end = end.to(ty.span));
        let span = Span { start: tree.span.start, ..end };
        let close = if tree.result.is_none() { ")" } else { "" };
        let open = if tree.parameters.is_empty() && close == ")" { "(" } else { "" };
        line(&format!("{}{open}{close}", self.source_text(span)))
    }
    /// Declares the parameters. Returns the type of the result, and for each parameter whether it
    /// is passed by reference.
    fn signature_of(&mut self, tree: &ast::Function) -> Result<(Option<TypeId>, Vec<bool>)> {
        // Types come first: a parameter hides a type of its name only in the body.
        let mut types = Vec::new();
        for part in &tree.parameters {
            types.push(self.type_of(&part.ty)?);
        }
        let result = match &tree.result {
            Some(ty) => {
                let id = self.type_of(ty)?;
                if matches!(self.out.types.kind(id), TypeKind::Multiset { .. }) {
                    return wrong(ty.span, "a function cannot return a multiset");
                }
                Some(id)
            }
            None => None,
        };
        let mut by_reference = Vec::new();
        for (part, ty) in tree.parameters.iter().zip(types) {
            for name in &part.names {
                let (kind, readonly, note) = if part.by_reference {
                    (LocalKind::Reference, None, "a `var` parameter")
                } else {
                    (LocalKind::Value, Some(BY_VALUE), "a parameter by value")
                };
                let local = Local { name: name.text.clone(), span: name.span, ty, kind };
                let id: LocalId = self.frame.add(local);
                self.declare(name, Meaning::Local(id, readonly), NameRole::Local, name.span, note);
                by_reference.push(part.by_reference);
            }
        }
        Ok((result, by_reference))
    }
}
