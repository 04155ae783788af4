//! Rules, start states, properties, and the blocks around them.
//!
//! The blocks are checked anew for each rule inside, in the frame of that rule; errors in them are
//! reported once.

use super::constants::value;
use super::statements::claim_of;
use super::{Checker, Result, wrong};
use crate::ast::{self, AliasDeclaration, Declaration, Name, Quantifier, RuleKind, Stmt, Title};
use crate::typed::{Binding, Domain, Expr, Frame, Property, Rule, StartState};
use mu_base::Span;

/// Block around rules.
#[derive(Clone, Copy)]
enum Block<'t> {
    Ruleset(&'t Quantifier),
    Alias(&'t [AliasDeclaration]),
    Choose(&'t Name, &'t ast::Expr, Span),
}

impl Checker<'_> {
    /// Checks a rule or block at the top level.
    pub(super) fn rule(&mut self, rule: &ast::Rule) {
        self.rule_in(rule, &mut Vec::new());
    }
    fn rule_in<'t>(&mut self, rule: &'t ast::Rule, blocks: &mut Vec<Block<'t>>) {
        stacker::maybe_grow(128 * 1024, 1024 * 1024, || {
            let depth = blocks.len();
            match &rule.kind {
                RuleKind::Ruleset(quantifiers, rules) => {
                    blocks.extend(quantifiers.iter().map(Block::Ruleset));
                    self.rules_in(rules, rule, blocks);
                }
                RuleKind::Alias(aliases, rules) => {
                    blocks.push(Block::Alias(aliases));
                    self.rules_in(rules, rule, blocks);
                }
                RuleKind::Choose(name, set, rules) => {
                    blocks.push(Block::Choose(name, set, name.span.to(set.span)));
                    self.rules_in(rules, rule, blocks);
                }
                _ => self.in_blocks(rule, blocks),
            }
            blocks.truncate(depth);
        });
    }
    fn rules_in<'t>(
        &mut self,
        rules: &'t [ast::Rule],
        around: &'t ast::Rule,
        blocks: &mut Vec<Block<'t>>,
    ) {
        if rules.is_empty() {
            self.in_blocks(around, blocks);
        }
        for rule in rules {
            let before = self.errors.len();
            self.rule_in(rule, blocks);
            // An error in a block around this rule would be found again in the next one.
            if self.errors.len() > before
                && self.errors[before..]
                    .iter()
                    .any(|e| e.span.is_some_and(|s| s.start < rule.span.start))
            {
                return;
            }
        }
    }
    fn in_blocks(&mut self, rule: &ast::Rule, blocks: &[Block<'_>]) {
        self.frame = Frame::default();
        self.body = rule.span;
        let depth = self.scopes.len();
        let checked = self.blocks(blocks);
        if let Some(bindings) = self.report_error(checked) {
            self.scopes.push(Default::default());
            self.leaf(rule, bindings);
        }
        self.scopes.truncate(depth);
    }
    fn blocks(&mut self, blocks: &[Block<'_>]) -> Result<Vec<Binding>> {
        let mut bindings = Vec::new();
        for block in blocks {
            self.scopes.push(Default::default());
            match block {
                Block::Ruleset(quantifier) => {
                    let (local, domain) = self.quantifier(quantifier)?;
                    let domain = constant_bounds(domain)?;
                    bindings.push(Binding::Parameter { local, domain, span: quantifier.span });
                }
                Block::Alias(trees) => {
                    bindings.extend(self.aliases(trees)?.into_iter().map(Binding::Alias));
                }
                Block::Choose(name, set, span) => {
                    let (local, multiset) = self.position(name, set)?;
                    bindings.push(Binding::Choose { local, multiset, span: *span });
                }
            }
        }
        Ok(bindings)
    }
    fn leaf(&mut self, rule: &ast::Rule, bindings: Vec<Binding>) {
        let named = |title: &Option<Title>| match title {
            Some(title) => (Some(title.text.clone()), title.span),
            None => (None, rule.word),
        };
        let part = |word: &str, name: &Option<String>| match name {
            Some(name) => format!("{word} \"{name}\""),
            None => word.to_string(),
        };
        match &rule.kind {
            RuleKind::Rule { priority, title, guard, declarations, body } => {
                let (name, span) = named(title);
                self.naming.parts.push((part("rule", &name), rule.span));
                let guard = match guard {
                    None => None,
                    Some(guard) => {
                        let checked = self.boolean(guard, "the condition of a rule");
                        self.report_error(checked)
                    }
                };
                let (frame, body) = self.body_of(declarations, body);
                let whole = rule.span;
                let priority = priority.unwrap_or(0);
                let rule = Rule { name, span, whole, priority, bindings, guard, frame, body };
                self.out.rules.push(rule);
            }
            RuleKind::Start { title, declarations, body } => {
                let (name, span) = named(title);
                self.naming.parts.push((part("startstate", &name), rule.span));
                let (frame, body) = self.body_of(declarations, body);
                let whole = rule.span;
                self.out.starts.push(StartState { name, span, whole, bindings, frame, body });
            }
            RuleKind::Property { claim, title, condition } => {
                let (name, span) = named(title);
                self.naming.parts.push((part(self.source_text(rule.word), &name), rule.span));
                let checked = self.boolean(condition, "the condition of a property");
                let Some(condition) = self.report_error(checked) else { return };
                let (claim, whole) = (claim_of(*claim), rule.span);
                let frame = std::mem::take(&mut self.frame);
                let property = Property { claim, name, span, whole, bindings, condition, frame };
                self.out.properties.push(property);
            }
            // A block without rules.
            RuleKind::Ruleset(..) | RuleKind::Alias(..) | RuleKind::Choose(..) => {}
        }
    }
    fn body_of(
        &mut self,
        declarations: &[Declaration],
        body: &[Stmt],
    ) -> (Frame, Vec<crate::typed::Stmt>) {
        for declaration in declarations {
            self.declaration(declaration, false);
        }
        let body = self.statements(body);
        (std::mem::take(&mut self.frame), body)
    }
}

/// Folds the bounds and the step of a ruleset's parameter.
fn constant_bounds(domain: Domain) -> Result<Domain> {
    let fold = |expr: Expr| match value(&expr) {
        Some(value) => Ok(Expr { kind: crate::typed::ExprKind::Constant(value), ..expr }),
        None => wrong(expr.span, "the bounds of a ruleset's parameter must be constant"),
    };
    Ok(match domain {
        Domain::Type(ty) => Domain::Type(ty),
        Domain::Range { from, to, by } => {
            Domain::Range { from: fold(from)?, to: fold(to)?, by: by.map(fold).transpose()? }
        }
    })
}
