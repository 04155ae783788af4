//! Spaces between neighbouring tokens on a line.
//!
//! A stack of the open brackets determines the role of a symbol: `<` and `[` are modalities in a
//! state formula and operators or lists in data, `*` is repetition in a regular formula, a dot ends
//! a binder or composes processes.

use super::{LayoutToken, ends_operand};
use crate::tokens::{BINDERS, SECTIONS, SORTS, TokenKind, is_reserved, tokens};

/// Role of a symbol, if its text alone does not determine it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SymbolRole {
    /// The role that the text suggests.
    Other,
    /// The dot after bound variables.
    BinderDot,
    /// `-`, `!` or `#` before its operand.
    Prefix,
    /// `*` or `+` after a regular formula.
    Postfix,
    /// `[` or `<` of a modality.
    ModalityOpen,
    /// `]` or `>` of a modality.
    ModalityClose,
    /// A brace of a directive.
    DirectiveOpen,
    /// Its other end.
    DirectiveClose,
}

/// Language between two brackets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BracketLanguage {
    State,
    Regular,
    /// Everything else: data, sorts, processes.
    Data,
}

struct OpenBracket {
    bracket: char,
    language: BracketLanguage,
    role: SymbolRole,
    /// Number of binders without a dot so far.
    binders: usize,
}

/// Determines roles and spaces of all pieces.
pub(super) fn decide(pieces: &mut [LayoutToken], formula: bool) {
    let sections =
        formula && pieces.iter().find(|p| !p.is_comment()).is_some_and(|p| p.is_word(&SECTIONS));
    let outer = if formula && !sections { BracketLanguage::State } else { BracketLanguage::Data };
    let mut open =
        vec![OpenBracket { bracket: ' ', language: outer, role: SymbolRole::Other, binders: 0 }];
    // After the keyword of a directive: the next brace belongs to the directive.
    let mut header = false;
    let mut last: Option<usize> = None;
    for i in 0..pieces.len() {
        if pieces[i].is_comment() {
            continue;
        }
        let next = pieces[i + 1..].iter().position(|p| !p.is_comment()).map(|n| i + 1 + n);
        let operand = last.is_some_and(|l| ends_operand(&pieces[l]));
        match pieces[i].token.kind {
            TokenKind::Directive => header = matches!(pieces[i].text, "$for" | "$if" | "$else"),
            TokenKind::Word if pieces[i].is_word(&BINDERS) => {
                open.last_mut().into_iter().for_each(|o| o.binders += 1)
            }
            TokenKind::Word if sections && open.len() == 1 && pieces[i].is_word(&SECTIONS) => {
                open[0].language = if pieces[i].text == "form" {
                    BracketLanguage::State
                } else {
                    BracketLanguage::Data
                };
            }
            TokenKind::Sign => {
                let next_starts = next.is_some_and(|n| starts_operand(&pieces[n]));
                pieces[i].role = role(
                    pieces[i].text,
                    &mut open,
                    header,
                    operand,
                    next_starts,
                    last.map(|l| &pieces[l]),
                );
                if pieces[i].role == SymbolRole::DirectiveOpen {
                    header = false;
                }
            }
            _ => {}
        }
        if let Some(last) = last {
            let (first, second) = (&pieces[last], &pieces[i]);
            pieces[i].space =
                space(first, second, operand) || second.space && joins(first.text, second.text);
        }
        last = Some(i);
    }
}

fn starts_operand(piece: &LayoutToken) -> bool {
    match piece.token.kind {
        TokenKind::Word | TokenKind::Number | TokenKind::Value => true,
        TokenKind::Sign => matches!(piece.text, "(" | "!" | "[" | "{" | "{:}" | "#"),
        _ => false,
    }
}

/// Returns the role of a symbol; opens and closes brackets.
fn role(
    text: &str,
    open: &mut Vec<OpenBracket>,
    header: bool,
    operand: bool,
    next_starts: bool,
    last: Option<&LayoutToken>,
) -> SymbolRole {
    let Some(&OpenBracket { bracket, language, role: opened, binders }) = open.last() else {
        return SymbolRole::Other;
    };
    let mut push = |bracket, language, role| {
        open.push(OpenBracket { bracket, language, role, binders: 0 });
        role
    };
    match text {
        "." if binders > 0 => {
            open.last_mut().into_iter().for_each(|o| o.binders -= 1);
            SymbolRole::BinderDot
        }
        "-" | "!" | "#" if !operand => SymbolRole::Prefix,
        "*" | "+" if language == BracketLanguage::Regular && operand && !next_starts => {
            SymbolRole::Postfix
        }
        "[" if language == BracketLanguage::State => {
            push(']', BracketLanguage::Regular, SymbolRole::ModalityOpen)
        }
        "<" if language == BracketLanguage::State => {
            push('>', BracketLanguage::Regular, SymbolRole::ModalityOpen)
        }
        "[" => push(']', BracketLanguage::Data, SymbolRole::Other),
        "{" if header => push('}', language, SymbolRole::DirectiveOpen),
        "{" => push('}', BracketLanguage::Data, SymbolRole::Other),
        "(" => {
            // Arguments of a name, and of `val`, are data.
            let applied = last.is_some_and(|l| {
                l.token.kind == TokenKind::Word && (!is_reserved(l.text) || l.text == "val")
            });
            push(')', if applied { BracketLanguage::Data } else { language }, SymbolRole::Other)
        }
        ")" | "]" | "}" | ">" if text.starts_with(bracket) => {
            open.pop();
            match opened {
                SymbolRole::ModalityOpen => SymbolRole::ModalityClose,
                SymbolRole::DirectiveOpen => SymbolRole::DirectiveClose,
                role => role,
            }
        }
        ";" => {
            open.last_mut().into_iter().for_each(|o| o.binders = 0);
            SymbolRole::Other
        }
        _ => SymbolRole::Other,
    }
}

/// True if two symbols would become another one without a space.
fn joins(first: &str, second: &str) -> bool {
    let text = format!("{first}{second}");
    tokens(&text).first().is_some_and(|t| t.range.end > first.len())
}

/// True if there is a space between two tokens on a line. `operand`: the first ends an operand.
fn space(first: &LayoutToken, second: &LayoutToken, operand: bool) -> bool {
    let had = second.space;
    let words = |p: &LayoutToken| {
        matches!(
            p.token.kind,
            TokenKind::Word | TokenKind::Number | TokenKind::Value | TokenKind::Unknown
        )
    };
    match (first.role, second.role) {
        (SymbolRole::DirectiveOpen, SymbolRole::DirectiveClose) => return had,
        (SymbolRole::DirectiveOpen, _)
        | (_, SymbolRole::DirectiveClose | SymbolRole::DirectiveOpen) => return true,
        // This text may be joined with the result of the directive.
        (SymbolRole::DirectiveClose, _) => return had || second.text == "$else",
        _ => {}
    }
    if matches!(second.token.kind, TokenKind::Directive)
        || first.token.kind == TokenKind::Value
        || second.token.kind == TokenKind::Value && words(first)
    {
        return had;
    }
    if matches!(first.token.kind, TokenKind::Directive | TokenKind::Text)
        || second.token.kind == TokenKind::Text
    {
        return true;
    }
    if words(first) && words(second)
        || first.token.kind == TokenKind::Unknown
        || second.token.kind == TokenKind::Unknown
    {
        return had;
    }
    match (first.text, second.text) {
        ("{", ":") => return had,
        (_, "," | ";" | ")" | ":") => return false,
        (_, "]" | "}") if second.token.kind == TokenKind::Sign => return false,
        ("(" | "[" | "{", _) => return false,
        ("," | ";" | ":", _) => return true,
        _ => {}
    }
    match (first.role, second.role) {
        (SymbolRole::ModalityOpen | SymbolRole::Prefix, _)
        | (_, SymbolRole::ModalityClose | SymbolRole::Postfix | SymbolRole::BinderDot) => {
            return false;
        }
        (SymbolRole::ModalityClose, _) => return had,
        (SymbolRole::BinderDot, _) => return true,
        _ => {}
    }
    match second.text {
        "(" if first.token.kind == TokenKind::Word => return !applies(first.text),
        "(" | "[" if operand => return had,
        _ => {}
    }
    // Symbols with two common styles, `a|b` and `a | b`, and one that is tokenised differently in
    // data and in processes.
    let as_written = |p: &LayoutToken| {
        p.token.kind == TokenKind::Sign && matches!(p.text, "|" | "?" | "@" | "||_" | "/")
    };
    if as_written(first) || as_written(second) {
        return had;
    }
    let infix = |p: &LayoutToken| {
        p.token.kind == TokenKind::Sign
            && p.role == SymbolRole::Other
            && !matches!(p.text, "(" | ")" | "[" | "]" | "{" | "}" | "!" | "{:}")
    };
    infix(first) || infix(second) || had
}

/// True if a word comes directly before the parenthesis of its arguments.
fn applies(word: &str) -> bool {
    !is_reserved(word)
        || SORTS.contains(&word)
        || matches!(word, "val" | "allow" | "block" | "hide" | "rename" | "comm")
}
