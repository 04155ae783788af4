//! Spaces between neighbouring tokens on a line.
//!
//! A stack of the open brackets determines the role of a symbol: `<` and `[` are modalities in a
//! state formula and operators or lists in data, `*` is repetition in a regular formula, a dot ends
//! a binder or composes processes.

use super::{LayoutToken, ends_operand};
use crate::tokens::{BINDERS, Kind, SECTIONS, SORTS, is_reserved, tokens};

/// Role of a symbol, if its text alone does not determine it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
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
enum Language {
    State,
    Regular,
    /// Everything else: data, sorts, processes.
    Data,
}

struct OpenBracket {
    bracket: char,
    language: Language,
    role: Role,
    /// Number of binders without a dot so far.
    binders: usize,
}

/// Determines roles and spaces of all pieces.
pub(super) fn decide(pieces: &mut [LayoutToken], formula: bool) {
    let sections =
        formula && pieces.iter().find(|p| !p.is_comment()).is_some_and(|p| p.is_word(&SECTIONS));
    let outer = if formula && !sections { Language::State } else { Language::Data };
    let mut open =
        vec![OpenBracket { bracket: ' ', language: outer, role: Role::Other, binders: 0 }];
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
            Kind::Directive => header = matches!(pieces[i].text, "$for" | "$if" | "$else"),
            Kind::Word if pieces[i].is_word(&BINDERS) => {
                open.last_mut().into_iter().for_each(|o| o.binders += 1)
            }
            Kind::Word if sections && open.len() == 1 && pieces[i].is_word(&SECTIONS) => {
                open[0].language =
                    if pieces[i].text == "form" { Language::State } else { Language::Data };
            }
            Kind::Sign => {
                let next_starts = next.is_some_and(|n| starts_operand(&pieces[n]));
                pieces[i].role = role(
                    pieces[i].text,
                    &mut open,
                    header,
                    operand,
                    next_starts,
                    last.map(|l| &pieces[l]),
                );
                if pieces[i].role == Role::DirectiveOpen {
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
        Kind::Word | Kind::Number | Kind::Value => true,
        Kind::Sign => matches!(piece.text, "(" | "!" | "[" | "{" | "{:}" | "#"),
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
) -> Role {
    let Some(&OpenBracket { bracket, language, role: opened, binders }) = open.last() else {
        return Role::Other;
    };
    let mut push = |bracket, language, role| {
        open.push(OpenBracket { bracket, language, role, binders: 0 });
        role
    };
    match text {
        "." if binders > 0 => {
            open.last_mut().into_iter().for_each(|o| o.binders -= 1);
            Role::BinderDot
        }
        "-" | "!" | "#" if !operand => Role::Prefix,
        "*" | "+" if language == Language::Regular && operand && !next_starts => Role::Postfix,
        "[" if language == Language::State => push(']', Language::Regular, Role::ModalityOpen),
        "<" if language == Language::State => push('>', Language::Regular, Role::ModalityOpen),
        "[" => push(']', Language::Data, Role::Other),
        "{" if header => push('}', language, Role::DirectiveOpen),
        "{" => push('}', Language::Data, Role::Other),
        "(" => {
            // Arguments of a name, and of `val`, are data.
            let applied = last.is_some_and(|l| {
                l.token.kind == Kind::Word && (!is_reserved(l.text) || l.text == "val")
            });
            push(')', if applied { Language::Data } else { language }, Role::Other)
        }
        ")" | "]" | "}" | ">" if text.starts_with(bracket) => {
            open.pop();
            match opened {
                Role::ModalityOpen => Role::ModalityClose,
                Role::DirectiveOpen => Role::DirectiveClose,
                role => role,
            }
        }
        ";" => {
            open.last_mut().into_iter().for_each(|o| o.binders = 0);
            Role::Other
        }
        _ => Role::Other,
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
        matches!(p.token.kind, Kind::Word | Kind::Number | Kind::Value | Kind::Unknown)
    };
    match (first.role, second.role) {
        (Role::DirectiveOpen, Role::DirectiveClose) => return had,
        (Role::DirectiveOpen, _) | (_, Role::DirectiveClose | Role::DirectiveOpen) => return true,
        // This text may be joined with the result of the directive.
        (Role::DirectiveClose, _) => return had || second.text == "$else",
        _ => {}
    }
    if matches!(second.token.kind, Kind::Directive)
        || first.token.kind == Kind::Value
        || second.token.kind == Kind::Value && words(first)
    {
        return had;
    }
    if matches!(first.token.kind, Kind::Directive | Kind::Text) || second.token.kind == Kind::Text {
        return true;
    }
    if words(first) && words(second)
        || first.token.kind == Kind::Unknown
        || second.token.kind == Kind::Unknown
    {
        return had;
    }
    match (first.text, second.text) {
        ("{", ":") => return had,
        (_, "," | ";" | ")" | ":") => return false,
        (_, "]" | "}") if second.token.kind == Kind::Sign => return false,
        ("(" | "[" | "{", _) => return false,
        ("," | ";" | ":", _) => return true,
        _ => {}
    }
    match (first.role, second.role) {
        (Role::ModalityOpen | Role::Prefix, _)
        | (_, Role::ModalityClose | Role::Postfix | Role::BinderDot) => return false,
        (Role::ModalityClose, _) => return had,
        (Role::BinderDot, _) => return true,
        _ => {}
    }
    match second.text {
        "(" if first.token.kind == Kind::Word => return !applies(first.text),
        "(" | "[" if operand => return had,
        _ => {}
    }
    // Symbols with two common styles, `a|b` and `a | b`, and one that is tokenised differently in
    // data and in processes.
    let as_written = |p: &LayoutToken| {
        p.token.kind == Kind::Sign && matches!(p.text, "|" | "?" | "@" | "||_" | "/")
    };
    if as_written(first) || as_written(second) {
        return had;
    }
    let infix = |p: &LayoutToken| {
        p.token.kind == Kind::Sign
            && p.role == Role::Other
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
