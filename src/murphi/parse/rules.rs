//! Rules, start states, properties, and blocks of them.

use super::{Parsed, Parser};
use crate::ast::{Rule, RuleKind, Title};
use crate::lexer::{Key, Tok};
use mu_base::{Diagnostic, Span};

impl Parser<'_> {
    /// Parses a rule or a block of rules; `None` if none begins here.
    pub(super) fn rule(&mut self) -> Parsed<Option<Rule>> {
        self.deeper(Self::rule_node)
    }
    fn rule_node(&mut self) -> Parsed<Option<Rule>> {
        let word = self.span();
        let kind = if let Some(claim) = self.claim_word() {
            self.next();
            let (title, condition) = self.claim()?;
            let title = title.map(|(text, span)| Title { text, span });
            RuleKind::Property { claim, title, condition }
        } else if self.is_word("choose") && self.peek_at(1).tok == Tok::Name {
            self.next();
            let name = self.name("a name for the position")?;
            self.expect(":")?;
            let set = self.designator()?;
            self.do_or_colon()?;
            let rules = self.rules("choose")?;
            if self.is_word("endchoose") || self.is_key(Key::End) {
                self.next();
            } else {
                return Err(self.unclosed_error(word, "endchoose"));
            }
            RuleKind::Choose(name, set, rules)
        } else {
            match self.peek() {
                Tok::Key(Key::Rule) => {
                    self.next();
                    self.simple_rule(word)?
                }
                Tok::Key(Key::Startstate) => {
                    self.next();
                    let title = self.title();
                    let declarations = self.local_declarations(true)?;
                    let body = self.statements()?;
                    self.end(Key::Endstartstate, word)?;
                    RuleKind::Start { title, declarations, body }
                }
                Tok::Key(Key::Ruleset) => {
                    self.next();
                    let quantifiers = self.quantifiers()?;
                    self.do_or_colon()?;
                    let rules = self.rules("ruleset")?;
                    self.end(Key::Endruleset, word)?;
                    RuleKind::Ruleset(quantifiers, rules)
                }
                Tok::Key(Key::Alias) => {
                    self.next();
                    let aliases = self.aliases()?;
                    self.do_or_colon()?;
                    let rules = self.rules("alias")?;
                    self.end(Key::Endalias, word)?;
                    RuleKind::Alias(aliases, rules)
                }
                _ => return Ok(None),
            }
        };
        Ok(Some(Rule { kind, word, span: word.to(self.last()) }))
    }
    fn unclosed_error(&self, opened: Span, word: &str) -> Diagnostic {
        self.unexpected(&format!("a rule, `end` or `{word}`"))
            .related(opened, format!("this `{}` is not closed", self.source_text(opened)))
    }
    /// Parses the rules of a block.
    fn rules(&mut self, block: &str) -> Parsed<Vec<Rule>> {
        let mut rules = Vec::new();
        loop {
            self.semicolons();
            if matches!(self.peek(), Tok::Key(Key::Const | Key::Type | Key::Var | Key::Function)) {
                let message = format!("a `{block}` has rules only, no declarations");
                return Err(self.fail(self.span(), message));
            }
            match self.rule()? {
                Some(rule) => rules.push(rule),
                None => return Ok(rules),
            }
        }
    }
    fn title(&mut self) -> Option<Title> {
        if self.peek() != Tok::Text {
            return None;
        }
        let (text, span) = self.quoted_text();
        Some(Title { text, span })
    }
    fn simple_rule(&mut self, opened: Span) -> Parsed<RuleKind> {
        // A number with an operator behind it belongs to the condition.
        let has_priority = self.peek() == Tok::Number
            && !matches!(self.peek_at(1).tok, Tok::Sign(s) if s != "(" && s != "!" && s != "~");
        let priority = if has_priority { Some(self.number(false)?) } else { None };
        let title = self.title();
        let guard = if self.has_guard() {
            let guard = self.expression()?;
            if !self.is("==>") {
                return Err(self.unexpected("an operator or `==>`"));
            }
            self.next();
            Some(guard)
        } else {
            // The grammars of both tools read a name here as the begin of a condition.
            let is_statement = self.claim_word().is_some()
                || self.source_text(self.span()).starts_with("multiset");
            let begins_condition = self.peek() == Tok::Name && !is_statement
                || ["(", "!", "~"].iter().any(|sign| self.is(sign));
            if begins_condition && let Some(span) = self.mistaken_arrow() {
                let message = format!("found `{}`, expected `==>`", self.source_text(span));
                return Err(self.fail(span, message));
            }
            if self.peek() == Tok::Name && !is_statement {
                return Err(self.unexpected("a condition with `==>`, or `begin`"));
            }
            None
        };
        let declarations = self.local_declarations(true)?;
        let body = self.statements()?;
        self.end(Key::Endrule, opened)?;
        Ok(RuleKind::Rule { priority, title, guard, declarations, body })
    }
    /// Returns the place of `=>`, or of `->` with a body behind it, which were written for `==>`.
    fn mistaken_arrow(&self) -> Option<Span> {
        for pair in self.tokens[self.at..].windows(2) {
            let [token, next] = pair else { continue };
            match (token.tok, next.tok) {
                (Tok::Sign("="), Tok::Sign(">")) if token.span.end == next.span.start => {
                    return Some(token.span.to(next.span));
                }
                (Tok::Sign("->"), Tok::Key(Key::Begin | Key::Const | Key::Type | Key::Var)) => {
                    return Some(token.span);
                }
                (Tok::Sign(";") | Tok::Key(_), _) => return None,
                _ => {}
            }
        }
        None
    }
    /// True if this rule has a condition: `==>` comes before any word that only statements,
    /// declarations and other rules have.
    fn has_guard(&self) -> bool {
        for token in &self.tokens[self.at..] {
            match token.tok {
                Tok::Sign("==>") => return true,
                Tok::End => return false,
                Tok::Key(
                    Key::Begin
                    | Key::Const
                    | Key::Type
                    | Key::Var
                    | Key::Rule
                    | Key::Ruleset
                    | Key::Startstate
                    | Key::Invariant
                    | Key::Assert
                    | Key::If
                    | Key::Switch
                    | Key::For
                    | Key::While
                    | Key::Alias
                    | Key::Clear
                    | Key::Undefine
                    | Key::Error
                    | Key::Put
                    | Key::Return
                    | Key::Endrule
                    | Key::Endruleset
                    | Key::Endalias
                    | Key::Function
                    | Key::Procedure,
                ) => return false,
                _ => {}
            }
        }
        false
    }
}
