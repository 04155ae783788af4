//! Additions of a caller to a model: conditions on states, and values of variables in labels.
//!
//! A condition is an expression of the language with free variables, which it takes from a formula.
//! It becomes a property of the model with these variables as its parameters, so it has the types,
//! functions and errors of the language. It has its place in the text of the formula.

use crate::ast::{
    ClaimWord, Domain, Item, Name, Quantifier, Rule, RuleKind, Title, TypeExpr, TypeExprKind,
};
use crate::check::{Settings, check};
use crate::parse::{parse, parse_expression};
use crate::typed::Model;
use mu_base::{Diagnostic, SourceId, Span};
use std::ops::Range;

/// Condition on states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Name of its action: a step `name(values)` where it is true, `not_name(values)` where it is
    /// false.
    pub name: String,
    /// Source of its text.
    pub source: SourceId,
    /// The text that contains it.
    pub text: String,
    /// Its part of the text, in bytes.
    pub part: Range<usize>,
    /// Free variables, with the names of their types and the places of their declarations.
    pub variables: Vec<(String, String, Span)>,
}

/// Value of a variable as one more argument of the labels of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownValue {
    /// Action of the rule.
    pub action: String,
    /// Names of its parameters, where they have one.
    pub parameters: Vec<Option<String>>,
    /// Tokens of the variable: `cache`, `[`, `p`, `]`, `.data`.
    pub variable: Vec<String>,
    /// Place of the variable.
    pub span: Span,
}

/// Reads a model with conditions, which are its last properties.
///
/// # Errors
///
/// The first error of the text or of a condition.
pub fn read_with(
    source: SourceId,
    text: &str,
    settings: &Settings,
    conditions: &[Condition],
) -> Result<Model, Diagnostic> {
    let mut file = parse(source, text)?;
    if !conditions.is_empty() {
        // Errors of the model come first.
        check(&file, text, settings)?;
    }
    for condition in conditions {
        file.items.push(Item::Rule(property(condition)?));
    }
    let settings = Settings { source: Some(source), ..settings.clone() };
    check(&file, text, &settings)
}

/// Builds the property of a condition.
fn property(condition: &Condition) -> Result<Rule, Diagnostic> {
    let expression = parse_expression(condition.source, &condition.text, condition.part.clone())?;
    let span = expression.span;
    let title = Title { text: condition.name.clone(), span };
    let claim = ClaimWord::Cover;
    let kind = RuleKind::Property { claim, title: Some(title), condition: expression };
    let rule = Rule { kind, word: span, span };
    let quantifiers: Vec<Quantifier> = condition
        .variables
        .iter()
        .map(|(name, ty, span)| Quantifier {
            name: Name { text: name.clone(), span: *span },
            domain: Domain::Type(TypeExpr { kind: TypeExprKind::Name(ty.clone()), span: *span }),
            span: *span,
        })
        .collect();
    if quantifiers.is_empty() {
        return Ok(rule);
    }
    Ok(Rule { kind: RuleKind::Ruleset(quantifiers, vec![rule]), word: span, span })
}
