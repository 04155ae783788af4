//! Semantic tokens (colours) and folding ranges of a text, from its tokens and their meaning.
//!
//! Invariant: coloured tokens are ascending, do not overlap, and each is within one line, as the
//! protocol requires.

use crate::analysis::{Analysis, Occurrence};
use crate::kinds::NameKind;
use crate::names::Key;
use crate::positions::Lines;
use crate::workspace::Workspace;
use mu_syntax::tokens::{self, SECTIONS, Token, TokenKind};
use serde_json::{Value, json};
use std::path::Path;

/// Legend of the semantic tokens: the protocol's name of each token type, by its number.
pub(crate) const TOKEN_TYPES: [&str; 14] = [
    "keyword",
    "comment",
    "number",
    "operator",
    "string",
    "macro",
    "type",
    "enumMember",
    "function",
    "property",
    "event",
    "class",
    "parameter",
    "variable",
];

/// Returns the semantic tokens of a text in the protocol's relative encoding; `None` if the text
/// cannot be analysed.
pub(crate) fn semantic_tokens(workspace: &Workspace, path: &Path) -> Option<Value> {
    let analysis = workspace.complete(path)?;
    let text = &analysis.text;
    let lines = Lines::new(text);
    let model = if analysis.formula {
        workspace.model_of(path).and_then(|m| workspace.complete(&m))
    } else {
        None
    };
    let kind_of = |name: &Occurrence| {
        let own = analysis.declarations.iter().find(|d| d.key == name.key);
        let declared = own
            .or_else(|| {
                model.as_ref().and_then(|m| m.declarations.iter().find(|d| d.key == name.key))
            })
            .map(|d| d.kind);
        declared.or_else(|| analysis.entity(&name.key).map(|t| t.kind))
    };
    let mut kinds = std::collections::HashMap::new();
    let (mut data, mut last) = (Vec::new(), (0, 0));
    for token in &analysis.tokens {
        let token_type = match token.kind {
            TokenKind::Comment => "comment",
            TokenKind::Number => "number",
            TokenKind::Text => "string",
            TokenKind::Value | TokenKind::Directive => "macro",
            TokenKind::Sign
                if matches!(
                    token.text(text),
                    "(" | ")" | "[" | "]" | "{" | "}" | "," | ";" | ":"
                ) =>
            {
                continue;
            }
            TokenKind::Sign => "operator",
            TokenKind::Unknown => continue,
            TokenKind::Word if analysis.is_keyword(token.text(text)) => "keyword",
            TokenKind::Word
                if analysis.lexicon.is_none() && tokens::SORTS.contains(&token.text(text)) =>
            {
                "type"
            }
            TokenKind::Word
                if analysis.lexicon.is_none() && tokens::is_reserved(token.text(text)) =>
            {
                "keyword"
            }
            TokenKind::Word => {
                let Some(name) = analysis.name_at(token.range.start) else { continue };
                match kinds.entry(name.key.clone()).or_insert_with(|| kind_of(name)) {
                    Some(NameKind::Variable) if matches!(name.key, Key::ProcessParameter(..)) => {
                        "parameter"
                    }
                    Some(kind) => kind.token_type(),
                    None if tokens_before_args(&analysis, token) => "function",
                    None => continue,
                }
            }
        };
        let Some(number) = TOKEN_TYPES.iter().position(|t| *t == token_type) else { continue };
        let declares = analysis
            .name_at(token.range.start)
            .is_some_and(|n| n.declares && n.range == token.range);
        // A comment with several lines is one token per line.
        let mut at = token.range.start;
        for part in token.text(text).split_inclusive('\n') {
            let shown = part.trim_end();
            if !shown.is_empty() {
                let (line, start) = lines.line(at);
                let column: usize = text[start..at].chars().map(char::len_utf16).sum();
                let length: usize = shown.chars().map(char::len_utf16).sum();
                let from = if line == last.0 { column - last.1 } else { column };
                data.extend([line - last.0, from, length, number, usize::from(declares)]);
                last = (line, column);
            }
            at += part.len();
        }
    }
    Some(json!({ "data": data }))
}

/// True if an opening parenthesis follows the token directly.
fn tokens_before_args(analysis: &Analysis, token: &Token) -> bool {
    analysis.text[token.range.end..].starts_with('(')
}

/// Returns the ranges that an editor can fold: sections, declarations, brackets, comments. `None`
/// if the text is unknown.
pub(crate) fn folding_ranges(workspace: &Workspace, path: &Path) -> Option<Value> {
    let analysis = workspace.analysis(path)?;
    let (text, lines) = (&analysis.text, Lines::new(&analysis.text));
    let line = |offset: usize| lines.line(offset).0;
    let mut folds: Vec<(usize, usize, &str)> = Vec::new();
    let mut section: Option<usize> = None;
    // Other front ends supply their declarations.
    let sections = if analysis.lexicon.is_none() { &SECTIONS[..] } else { &[] };
    let wholes =
        analysis.declarations.iter().map(|d| &d.extent).chain(analysis.parts.iter().map(|p| &p.1));
    if analysis.lexicon.is_some() {
        folds.extend(
            wholes
                .filter(|w| !w.is_empty())
                .map(|w| (line(w.start), line(w.end.max(1) - 1), "region")),
        );
    }
    let mut brackets: Vec<usize> = Vec::new();
    let mut comment: Option<(usize, usize)> = None;
    let mut last = 0;
    for token in &analysis.tokens {
        let at = line(token.range.start);
        if token.kind == TokenKind::Comment && line(token.range.end) > at {
            folds.push((at, line(token.range.end), "comment"));
            continue;
        }
        if token.kind == TokenKind::Comment {
            comment = match comment {
                Some((from, to)) if to + 1 == at => Some((from, at)),
                Some((from, to)) => {
                    folds.push((from, to, "comment"));
                    Some((at, at))
                }
                None => Some((at, at)),
            };
            continue;
        }
        match token.text(text) {
            word if token.kind == TokenKind::Word && sections.contains(&word) => {
                folds.extend(section.map(|s| (s, last, "region")));
                section = Some(at);
            }
            "(" | "[" | "{" => brackets.push(at),
            ")" | "]" | "}" => {
                folds.extend(brackets.pop().map(|from| (from, at.saturating_sub(1), "region")))
            }
            _ => {}
        }
        last = line(token.range.end);
    }
    folds.extend(
        section
            .map(|s| (s, last, "region"))
            .into_iter()
            .chain(comment.map(|(from, to)| (from, to, "comment"))),
    );
    folds.retain(|f| f.1 > f.0);
    folds.sort();
    folds.dedup_by_key(|f| (f.0, f.2));
    Some(
        folds
            .into_iter()
            .map(|(from, to, kind)| json!({ "startLine": from, "endLine": to, "kind": kind }))
            .collect(),
    )
}
