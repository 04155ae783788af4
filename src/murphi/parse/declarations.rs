//! Declarations, types and functions.

use super::{Parsed, Parser};
use crate::ast::{
    Declaration, DeclarationKind, Expr, ExprKind, Fields, Function, Name, Parameters, TypeExpr,
    TypeExprKind,
};
use crate::lexer::{Key, Tok};
use mu_base::{Diagnostic, Span, Stage};

impl Parser<'_> {
    /// Parses one `const`, `type` or `var` section.
    pub(super) fn declarations(&mut self, out: &mut Vec<Declaration>) -> Parsed<()> {
        let word = self.next();
        while self.declares() {
            let from = self.span();
            let names = self.names()?;
            self.expect(":")?;
            let kind = match word.tok {
                Tok::Key(Key::Const) => DeclarationKind::Constant(self.expression()?),
                Tok::Key(Key::Type) => DeclarationKind::Type(self.type_expression()?),
                _ => DeclarationKind::Variable(self.type_expression()?),
            };
            out.push(Declaration { kind, names, span: from.to(self.last()) });
            self.semicolons();
        }
        let is_section = matches!(self.peek(), Tok::Key(Key::Const | Key::Type | Key::Var));
        let is_declared = [":", ","].iter().any(|sign| self.is_sign_at(1, sign));
        if is_declared && matches!(self.peek(), Tok::Key(_)) && !is_section {
            // The error about a reserved word.
            self.name("a name")?;
        }
        // A name that begins neither a statement nor a rule is a declaration without its colon.
        let begins = [":=", "(", ".", "["].iter().any(|sign| self.is_sign_at(1, sign));
        let words = ["assume", "choose", "cover", "liveness", "externfun", "externproc", "pctl"];
        if self.peek() == Tok::Name && !begins && !words.iter().any(|w| self.is_word(w)) {
            self.next();
            return Err(self.unexpected("`:`"));
        }
        Ok(())
    }
    /// Parses local sections. `closed` requires `begin` behind them.
    pub(super) fn local_declarations(&mut self, closed: bool) -> Parsed<Vec<Declaration>> {
        let mut out = Vec::new();
        let mut first = None;
        while matches!(self.peek(), Tok::Key(Key::Const | Key::Type | Key::Var)) {
            first.get_or_insert(self.span());
            self.declarations(&mut out)?;
        }
        if !self.eat_key(Key::Begin)
            && closed
            && let Some(first) = first
        {
            return Err(self
                .unexpected("`begin` or a further declaration")
                .related(first, "the declarations begin here"));
        }
        Ok(out)
    }
    /// True if the next tokens are `name :`, `name ,` or `:`.
    fn declares(&self) -> bool {
        self.is(":")
            || self.peek() == Tok::Name && (self.is_sign_at(1, ":") || self.is_sign_at(1, ","))
    }
    /// Parses names before a colon. There may be none, and a comma may follow the last one.
    pub(super) fn names(&mut self) -> Parsed<Vec<Name>> {
        let mut names = Vec::new();
        while !self.is(":") {
            names.push(self.name("a name or `:`")?);
            if !self.eat(",") {
                break;
            }
        }
        Ok(names)
    }

    /// Parses a type.
    pub(super) fn type_expression(&mut self) -> Parsed<TypeExpr> {
        self.deeper(Self::type_node)
    }
    fn type_node(&mut self) -> Parsed<TypeExpr> {
        let from = self.span();
        let kind = match self.peek() {
            Tok::Key(Key::Enum) => {
                self.next();
                self.expect("{")?;
                let mut members = Vec::new();
                while !self.is("}") {
                    members.push(self.name("the name of a member or `}`")?);
                    if !self.eat(",") {
                        break;
                    }
                }
                self.expect("}")?;
                TypeExprKind::Enum(members)
            }
            Tok::Key(Key::Record) => self.record()?,
            Tok::Key(Key::Scalarset) => {
                self.next();
                self.expect("(")?;
                let size = self.expression()?;
                self.expect(")")?;
                TypeExprKind::Scalarset(Box::new(size))
            }
            Tok::Key(Key::Union) => {
                self.next();
                self.expect("{")?;
                let mut members = Vec::new();
                while !self.is("}") {
                    members.push(self.type_expression()?);
                    if !self.eat(",") {
                        break;
                    }
                }
                self.expect("}")?;
                TypeExprKind::Union(members)
            }
            Tok::Key(Key::Array) => {
                self.next();
                self.skip_interleaved();
                self.expect("[")?;
                let index = self.type_expression()?;
                self.expect("]")?;
                self.expect_key(Key::Of)?;
                let element = self.type_expression()?;
                TypeExprKind::Array(Box::new(index), Box::new(element))
            }
            Tok::Name
                if self.is_word("multiset")
                    && (self.is_sign_at(1, "[") || self.is_word_at(1, "interleaved")) =>
            {
                self.next();
                self.skip_interleaved();
                self.expect("[")?;
                let capacity = self.expression()?;
                self.expect("]")?;
                self.expect_key(Key::Of)?;
                let element = self.type_expression()?;
                TypeExprKind::Multiset(Box::new(capacity), Box::new(element))
            }
            Tok::Name if self.is_word("real") && self.is_sign_at(1, "(") => {
                return Err(Diagnostic::at(
                    Stage::Unsupported,
                    from,
                    "`real` is not supported: variables have integers, members, or elements of \
                     scalarsets",
                ));
            }
            _ => return self.range_or_name(),
        };
        Ok(TypeExpr { kind, span: from.to(self.last()) })
    }
    /// Reads `interleaved`, which older models have and which has no meaning.
    fn skip_interleaved(&mut self) {
        if self.is_word("interleaved") {
            self.next();
        }
    }
    fn record(&mut self) -> Parsed<TypeExprKind> {
        let opened = self.next().span;
        self.skip_interleaved();
        let mut fields = Vec::new();
        while !matches!(self.peek(), Tok::Key(Key::End | Key::Endrecord)) {
            if !self.declares() {
                return Err(self
                    .unexpected("a field (`name: type`) or `endrecord`")
                    .related(opened, "this `record` is not closed"));
            }
            let names = self.names()?;
            self.expect(":")?;
            fields.push(Fields { names, ty: self.type_expression()? });
            self.semicolons();
        }
        self.end(Key::Endrecord, opened)?;
        Ok(TypeExprKind::Record(fields))
    }
    /// Parses `low .. high` or the name of a type.
    fn range_or_name(&mut self) -> Parsed<TypeExpr> {
        let found = self.at;
        let starts = matches!(self.peek(), Tok::Name | Tok::Number)
            || self.is("(")
            || self.is("-")
            || self.is("+")
            || self.is("~")
            || self.is("!");
        if !starts {
            return Err(self.unexpected("a type"));
        }
        let low = self.expression()?;
        if self.eat("..") {
            let high = self.expression()?;
            let span = low.span.to(high.span);
            return Ok(TypeExpr { kind: TypeExprKind::Range(Box::new(low), Box::new(high)), span });
        }
        match low {
            Expr { kind: ExprKind::Name(name), span } if self.at == found + 1 => {
                Ok(TypeExpr { kind: TypeExprKind::Name(name), span })
            }
            Expr { span, .. } => Err(self
                .unexpected("`..` and the upper bound of the range")
                .related(span, "this is the lower bound")),
        }
    }

    /// Parses a function or procedure.
    pub(super) fn function(&mut self) -> Parsed<Function> {
        let opened = self.next().span;
        let name = self.name("the name of a function")?;
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.is(")") {
            let by_reference = self.eat_key(Key::Var);
            let mut names = vec![self.name("a parameter or `)`")?];
            while self.eat(",") {
                names.push(self.name("a parameter")?);
            }
            self.expect(":")?;
            let ty = self.type_expression()?;
            parameters.push(Parameters { by_reference, names, ty });
            if !self.semicolons()
                && !self.is(")")
                && self.peek() != Tok::Name
                && !self.is_key(Key::Var)
            {
                return Err(self.unexpected("`;` and a parameter, or `)`"));
            }
        }
        self.expect(")")?;
        let result = if self.eat(":") { Some(self.type_expression()?) } else { None };
        self.semicolons();
        let declarations = self.local_declarations(false)?;
        let body = self.statements()?;
        let word =
            if self.is_key(Key::Endprocedure) { Key::Endprocedure } else { Key::Endfunction };
        let end: Span = self.end(word, opened)?;
        self.semicolons();
        Ok(Function { name, parameters, result, declarations, body, span: opened.to(end) })
    }
}
