//! Syntax errors in words a user knows.

use pest::error::{Error, InputLocation};

use super::{Builder, Rule};
use crate::base::Diagnostic;

/// The refusal of the grammar as a diagnostic at the offending token.
pub(super) fn from_pest(builder: &Builder, text: &str, error: Error<Rule>) -> Diagnostic {
    let at = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    };
    let token = token_at(text, at);
    let message = if token.is_empty() { "unexpected end of the text".to_owned() } else { format!("unexpected `{token}`") };
    builder.refuse(builder.range(at, at + token.len()), message)
}

/// The word, number or sign that starts at a place.
pub(super) fn token_at(text: &str, at: usize) -> &str {
    let rest = text.get(at..).unwrap_or("");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '\'';
    let len = match rest.chars().next() {
        None => 0,
        Some(c) if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
        Some(c) => ["||_", "->", "<>", "=>", "==", "!=", "<=", ">=", "||", "&&", "|>", "<|", "++", "<<"]
            .iter()
            .find(|s| rest.starts_with(**s))
            .map_or(c.len_utf8(), |s| s.len()),
    };
    &rest[..len]
}
