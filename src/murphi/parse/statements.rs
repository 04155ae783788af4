//! Statements.

use super::{Parsed, Parser};
use crate::ast::{AliasDeclaration, ClaimWord, Expr, Stmt, StmtKind};
use crate::lexer::{Key, Tok};
use mu_base::Span;

impl Parser<'_> {
    /// Parses statements up to a word that no statement begins with. Semicolons separate them.
    pub(super) fn statements(&mut self) -> Parsed<Vec<Stmt>> {
        let mut out = Vec::new();
        while self.begins_statement() {
            let from = self.span();
            let kind = self.deeper(Self::statement)?;
            out.push(Stmt { kind, span: from.to(self.last()) });
            if !self.semicolons() && self.begins_statement() {
                return Err(self.unexpected("`;` between statements"));
            }
        }
        Ok(out)
    }
    fn begins_statement(&self) -> bool {
        matches!(
            self.peek(),
            Tok::Name
                | Tok::Key(
                    Key::If
                        | Key::Switch
                        | Key::For
                        | Key::While
                        | Key::Alias
                        | Key::Clear
                        | Key::Undefine
                        | Key::Error
                        | Key::Assert
                        | Key::Invariant
                        | Key::Put
                        | Key::Return
                )
        ) && !self.is_word("endchoose")
    }
    /// Returns the claim that begins here. `assume`, `cover` and `liveness` are names of variables
    /// if a `:=` or a selection follows them.
    pub(super) fn claim_word(&self) -> Option<ClaimWord> {
        match self.peek() {
            Tok::Key(Key::Assert) => return Some(ClaimWord::Assert),
            Tok::Key(Key::Invariant) => return Some(ClaimWord::Invariant),
            Tok::Name => {}
            _ => return None,
        }
        if [":=", ".", "["].iter().any(|sign| self.is_sign_at(1, sign)) {
            return None;
        }
        [
            ("assume", ClaimWord::Assume),
            ("cover", ClaimWord::Cover),
            ("liveness", ClaimWord::Liveness),
        ]
        .iter()
        .find(|(word, _)| self.is_word(word))
        .map(|found| found.1)
    }

    fn statement(&mut self) -> Parsed<StmtKind> {
        let opened = self.span();
        if let Some(claim) = self.claim_word() {
            self.next();
            let (message, condition) = self.claim()?;
            return Ok(StmtKind::Claim(claim, condition, message.map(|m| m.0)));
        }
        let Tok::Key(key) = self.peek() else { return self.assignment_or_call() };
        self.next();
        Ok(match key {
            Key::If => return self.conditional(opened),
            Key::Switch => return self.switch(opened),
            Key::For => {
                let quantifiers = self.quantifiers()?;
                self.do_or_colon()?;
                let body = self.statements()?;
                self.end(Key::Endfor, opened)?;
                StmtKind::For(quantifiers, body)
            }
            Key::While => {
                let condition = self.expression()?;
                self.do_or_colon()?;
                let body = self.statements()?;
                self.end(Key::Endwhile, opened)?;
                StmtKind::While(condition, body)
            }
            Key::Alias => {
                let aliases = self.aliases()?;
                self.do_or_colon()?;
                let body = self.statements()?;
                self.end(Key::Endalias, opened)?;
                StmtKind::Alias(aliases, body)
            }
            Key::Clear => StmtKind::Clear(self.designator()?),
            Key::Undefine => StmtKind::Undefine(self.designator()?),
            Key::Error => {
                if self.peek() != Tok::Text {
                    return Err(self.unexpected("the text of the error"));
                }
                StmtKind::Error(self.quoted_text().0)
            }
            Key::Put if self.peek() == Tok::Text => StmtKind::PutText(self.quoted_text().0),
            Key::Put => StmtKind::Put(self.expression()?),
            Key::Return => {
                let ends = self.is(";")
                    || self.peek() == Tok::End
                    || matches!(self.peek(), Tok::Key(key) if ends_statement(key))
                    || self.is_word("endchoose");
                StmtKind::Return(if ends { None } else { Some(self.expression()?) })
            }
            _ => return Err(self.fail(opened, format!("`{}` begins no statement", key.text()))),
        })
    }
    /// Parses a condition with a text before or behind it.
    pub(super) fn claim(&mut self) -> Parsed<(Option<(String, Span)>, Expr)> {
        if self.peek() == Tok::Text {
            let message = self.quoted_text();
            return Ok((Some(message), self.expression()?));
        }
        let condition = self.expression()?;
        let message = if self.peek() == Tok::Text { Some(self.quoted_text()) } else { None };
        Ok((message, condition))
    }
    /// Parses aliases with semicolons between them.
    pub(super) fn aliases(&mut self) -> Parsed<Vec<AliasDeclaration>> {
        let mut out = Vec::new();
        while !self.is_key(Key::Do) {
            let from = self.span();
            let names = self.names()?;
            self.expect(":")?;
            let value = self.expression()?;
            out.push(AliasDeclaration { names, value, span: from.to(self.last()) });
            if !self.semicolons() && self.is(":") {
                break;
            }
        }
        Ok(out)
    }
    fn assignment_or_call(&mut self) -> Parsed<StmtKind> {
        if self.is_sign_at(1, "(") {
            if self.is_word("multisetremovepred") {
                self.next();
                let (name, set, predicate) = self.multiset_predicate()?;
                return Ok(StmtKind::MultisetRemovePredicate(name, set, predicate));
            }
            let add = self.is_word("multisetadd");
            if add || self.is_word("multisetremove") {
                self.next();
                self.expect("(")?;
                let first = self.expression()?;
                self.expect(",")?;
                let set = self.designator()?;
                self.expect(")")?;
                return Ok(if add {
                    StmtKind::MultisetAdd(first, set)
                } else {
                    StmtKind::MultisetRemove(first, set)
                });
            }
            let name = self.name("a procedure")?;
            return Ok(StmtKind::Call(name, self.arguments()?));
        }
        let place = self.designator()?;
        if !self.eat(":=") {
            let mut error = self.unexpected("`:=` and a value, or a call");
            if self.is("=") {
                error = error.note("`=` compares; `:=` assigns");
            }
            return Err(error);
        }
        Ok(StmtKind::Assign(place, self.expression()?))
    }
    fn conditional(&mut self, opened: Span) -> Parsed<StmtKind> {
        let mut clauses = Vec::new();
        let mut from = opened;
        loop {
            let condition = self.expression()?;
            self.expect_key(Key::Then)?;
            let body = self.statements()?;
            clauses.push((condition, body, from.to(self.last())));
            from = self.span();
            if !self.eat_key(Key::Elsif) {
                break;
            }
        }
        let otherwise = if self.eat_key(Key::Else) { self.statements()? } else { Vec::new() };
        self.end(Key::Endif, opened)?;
        Ok(StmtKind::If(clauses, otherwise))
    }
    fn switch(&mut self, opened: Span) -> Parsed<StmtKind> {
        let value = self.expression()?;
        let (mut cases, mut otherwise) = (Vec::new(), None);
        while self.is_key(Key::Case) {
            let from = self.next().span;
            let mut matches = Vec::new();
            while !self.is(":") {
                matches.push(self.expression()?);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(":")?;
            let body = self.statements()?;
            // Rumur executes a case without values for all values, and has none behind it.
            if matches.is_empty() {
                otherwise = Some(body);
                break;
            }
            cases.push((matches, body, from.to(self.last())));
        }
        if otherwise.is_none() && self.eat_key(Key::Else) {
            otherwise = Some(self.statements()?);
        }
        if !matches!(self.peek(), Tok::Key(Key::End | Key::Endswitch)) {
            let expected = match otherwise {
                Some(_) => "`end` or `endswitch`",
                None => "`case`, `else`, `end` or `endswitch`",
            };
            return Err(self.unexpected(expected).related(opened, "of this `switch`"));
        }
        self.end(Key::Endswitch, opened)?;
        Ok(StmtKind::Switch(value, cases, otherwise.unwrap_or_default()))
    }
}

/// True if this word ends the statement before it.
fn ends_statement(key: Key) -> bool {
    key.text().starts_with("end") || matches!(key, Key::Else | Key::Elsif | Key::Case)
}
