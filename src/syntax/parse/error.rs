//! Readable syntax errors.
//!
//! Input: the text that the grammar rejected. Output: a [`Diagnostic`] at the offending token, with
//! the expected tokens. The text is parsed once more, with the grammar recording the tokens that it
//! tried at the farthest position; recording makes this second parse slow, and the first one is
//! fast without it. Cost: linear in the text.

use std::collections::BTreeSet;
use std::sync::Mutex;

use pest::Parser as _;
use pest::error::{Error, InputLocation};
use pest::set_error_detail;

use super::{Grammar, Rule, TreeBuilder};
use crate::tokens::SECTIONS;
use mu_base::Diagnostic;

/// Recording is switched on by a global flag of the parser library.
static ACCOUNT: Mutex<()> = Mutex::new(());

/// Explains why the grammar rejects `text`.
pub(super) fn explain(builder: &TreeBuilder, text: &str, rule: Rule) -> Diagnostic {
    let refusal = {
        let _guard = ACCOUNT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        set_error_detail(true);
        let refusal = Grammar::parse(rule, text).err();
        set_error_detail(false);
        refusal
    };
    let (mut at, mut tokens) = match refusal {
        Some(error) => farthest(error),
        None => (text.len(), BTreeSet::new()),
    };
    // In the middle of a word: the word is the offending token, and its possible continuations are
    // not the expected tokens.
    let bytes = text.as_bytes();
    let word_start = at - bytes[..at].iter().rev().take_while(|&&b| is_word(b)).count();
    if word_start < at {
        if bytes.get(at).is_some_and(|&b| is_word(b)) {
            at = word_start;
            tokens.clear();
        } else {
            tokens.retain(|t| !matches!(t.as_str(), NAME | "A..Z" | DIGIT | DIGIT_1 | "'" | "_"));
            if tokens.is_empty() {
                // Nothing could follow the word: it is a reserved one in place of a name.
                at = word_start;
                tokens.insert(NAME.to_owned());
            }
        }
    }
    let token = token_at(text, at);
    let message = if token.is_empty() {
        "unexpected end of the text".to_owned()
    } else {
        format!("unexpected `{token}`")
    };
    let mut diagnostic = builder.refuse(builder.range(at, at + token.len()), message);
    let expected = describe(tokens.clone());
    if let Some((last, others)) = expected.split_last() {
        let list = if others.is_empty() {
            last.clone()
        } else {
            format!("{} or {last}", others.join(", "))
        };
        diagnostic = diagnostic.note(format!("expected {list}"));
    }
    let hints = hints(text, at, token, &tokens);
    if expected.is_empty() && hints.is_empty() && is_unfinished(text, at, token) {
        diagnostic = diagnostic.note("expected `;`");
    }
    for note in hints {
        diagnostic = diagnostic.note(note);
    }
    diagnostic
}

/// True if a word that begins a declaration occurs before the end of the previous declaration.
fn is_unfinished(text: &str, at: usize, token: &str) -> bool {
    let begins = SECTIONS.contains(&token);
    let before = text[..at]
        .lines()
        .rev()
        .map(|l| l.split('%').next().unwrap_or("").trim_end())
        .find(|l| !l.is_empty());
    begins
        && before.is_some_and(|l| !l.ends_with(';'))
        && unclosed_bracket(&text[..at], token).is_none()
}

const NAME: &str = "a..z";
const DIGIT: &str = "0..9";
const DIGIT_1: &str = "1..9";

/// Returns the farthest position of the grammar, and the tokens it tried there; ranges of
/// characters appear as above.
fn farthest(error: Error<Rule>) -> (usize, BTreeSet<String>) {
    if let Some(attempts) = error.parse_attempts() {
        let tokens = attempts.expected_tokens().into_iter().map(|token| token.to_string());
        return (
            attempts.max_position,
            tokens
                .filter(|t| !matches!(t.as_str(), " " | "\t" | "\n" | "\r" | "%" | "BUILTIN_RULE"))
                .collect(),
        );
    }
    match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => (at, BTreeSet::new()),
    }
}

/// Kinds of phrase by the tokens that they may start with: a name, the tokens that identify the
/// kind, and all its tokens.
const PHRASES: &[(&str, &[&str], &[&str])] = &[
    (
        "a declaration (`sort`, `map`, `proc`, …)",
        &["sort", "map"],
        &["sort", "cons", "map", "var", "eqn", "glob", "act", "proc", "init", "form"],
    ),
    (
        "a process",
        &["delta", "block"],
        &[
            "delta", "tau", "block", "allow", "hide", "rename", "comm", "sum", "dist", "!", "-",
            "#", "forall", "exists", "lambda", "true", "false", "(", "[", "{", NAME, DIGIT_1, "0",
        ],
    ),
    (
        "a state formula",
        &["mu", "["],
        &[
            "mu", "nu", "forall", "exists", "inf", "sup", "sum", "[", "<", "!", "-", "true",
            "false", "val", "delay", "yaled", "(", NAME,
        ],
    ),
    (
        "an action formula",
        &["tau", "val"],
        &["!", "forall", "exists", "true", "false", "val", "tau", "(", NAME],
    ),
    (
        "a data expression",
        &["lambda", "{"],
        &[
            "!", "-", "#", "forall", "exists", "lambda", "true", "false", "(", "[", "{", NAME,
            DIGIT_1, "0",
        ],
    ),
    (
        "a data expression",
        &["{", "true"],
        &["!", "-", "#", "true", "false", "(", "[", "{", NAME, DIGIT_1, "0"],
    ),
    (
        "a sort",
        &["Bool", "List"],
        &[
            "Bool", "Pos", "Nat", "Int", "Real", "List", "Set", "Bag", "FSet", "FBag", "struct",
            "(", NAME,
        ],
    ),
    (
        "an operator",
        &["=>", "||", "&&"],
        &[
            "=>", "||", "&&", "==", "!=", "<", "<=", ">", ">=", "in", "|>", "<|", "++", "+", "-",
            "/", "div", "mod", "*", ".", "||_", "<<", "<>", "->", "@", "|", "(", "[", "whr",
        ],
    ),
    ("an operator", &["#", "->"], &["#", "->"]),
    ("a name", &[NAME], &[NAME]),
    ("a number", &[DIGIT_1], &[DIGIT_1, "0"]),
];

/// Describes the expected tokens phrase by phrase; single tokens come first.
fn describe(mut tokens: BTreeSet<String>) -> Vec<String> {
    let mut phrases = Vec::new();
    for (phrase, signs, all) in PHRASES {
        if signs.iter().all(|s| tokens.contains(*s)) {
            tokens.retain(|t| !all.contains(&t.as_str()));
            phrases.push((*phrase).to_owned());
        }
    }
    tokens.retain(|t| !matches!(t.as_str(), "'" | "_" | "A..Z" | NAME | DIGIT | DIGIT_1 | "0"));
    tokens.into_iter().map(|t| format!("`{t}`")).chain(phrases).collect()
}

/// Returns hints at the probable intention of the user.
fn hints(text: &str, at: usize, token: &str, expected: &BTreeSet<String>) -> Vec<String> {
    let mut hints = Vec::new();
    let name_expected = expected.contains(NAME);
    match token {
        "=" if expected.contains("==") => hints.push("equality is written `==`".to_owned()),
        "==" | "!=" | "<=" | ">=" | "in" if expected.contains("&&") && !expected.contains("==") => {
            hints.push("a condition on data in a formula is written `val(…)`".to_owned());
        }
        "&" => hints.push("conjunction is written `&&`".to_owned()),
        "|" if expected.contains("||") => hints.push("disjunction is written `||`".to_owned()),
        "\u{2227}" | "\u{2228}" | "\u{2192}" | "\u{2200}" | "\u{2203}" => {
            hints.push(
                "operators are written in ASCII: `&&`, `||`, `=>`, `forall`, `exists`".to_owned(),
            );
        }
        _ => {}
    }
    if is_process_after_if(&text[..at], token, expected) {
        hints.push(
            "a choice of processes by a condition is written `c -> p <> q`; `if(c, x, y)` is data"
                .to_owned(),
        );
    } else if name_expected && token.starts_with(|c: char| c.is_ascii_alphabetic()) {
        hints.push(format!("`{token}` is a keyword and cannot be a name"));
    }
    if token.len() > 1 && token.starts_with('0') && token.bytes().all(|b| b.is_ascii_digit()) {
        hints.push("a number has no leading zeros".to_owned());
    }
    if token.is_empty() || matches!(token, ")" | "]" | "}" | ";") {
        hints.extend(unclosed_bracket(&text[..at], token));
    }
    hints
}

/// True if `token` seems to be a process in `if (c) p else q`, or in `if(c, p, q)`.
fn is_process_after_if(before: &str, token: &str, expected: &BTreeSet<String>) -> bool {
    let after_if = |bracket: usize| {
        let before = before[..bracket].trim_end();
        let length = before.bytes().rev().take_while(|&b| is_word(b)).count();
        &before[before.len() - length..] == "if"
    };
    let before_token = before.trim_end();
    if before_token.ends_with(')') {
        // `||_` continues processes only.
        return expected.contains("||_")
            && is_word(token.bytes().next().unwrap_or(b' '))
            && find_opening(before_token, 1).is_some_and(after_if);
    }
    ["delta", "tau", "sum", "dist"].contains(&token)
        && find_opening(before_token, 0).is_some_and(after_if)
}

/// Returns the position of the innermost `(` that is open before the last `closed` brackets of a
/// text.
fn find_opening(text: &str, closed: usize) -> Option<usize> {
    let mut depth = 0;
    for (i, b) in text.bytes().enumerate().rev() {
        match b {
            b')' => depth += 1,
            b'(' if depth == closed => return Some(i),
            b'(' => depth -= 1,
            b'%' | b';' => return None,
            _ => {}
        }
    }
    None
}

/// Returns the unclosed bracket at the end of `text`, if `token` does not close it, with the text
/// around it.
fn unclosed_bracket(text: &str, token: &str) -> Option<String> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut comment = false;
    for (i, c) in text.char_indices() {
        match c {
            '\n' | '\r' => comment = false,
            _ if comment => {}
            '%' => comment = true,
            '(' | '[' | '{' => open.push((i, c)),
            ')' | ']' | '}' => {
                open.pop();
            }
            _ => {}
        }
    }
    let (at, bracket) = open.pop()?;
    let closing = match bracket {
        '(' => ")",
        '[' => "]",
        _ => "}",
    };
    if token == closing {
        return None;
    }
    let line = text[..at].rfind(['\n', '\r']).map_or(0, |i| i + 1);
    let start = text[line..at].char_indices().rev().nth(24).map_or(line, |(i, _)| line + i);
    let rest = &text[at..];
    let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
    let end = rest[..end].char_indices().nth(24).map_or(end, |(i, _)| i);
    Some(format!(
        "the `{bracket}` in `{}{}` is not closed",
        text[start..at].trim_start(),
        rest[..end].trim_end()
    ))
}

/// True if a byte belongs to a word or a number.
pub(super) fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'\''
}

/// Returns the word, number or symbol that starts at a position.
pub(super) fn token_at(text: &str, at: usize) -> &str {
    let rest = text.get(at..).unwrap_or("");
    let word = rest.bytes().take_while(|&b| is_word(b)).count();
    if word > 0 {
        return &rest[..word];
    }
    let signs =
        ["||_", "->", "<>", "=>", "==", "!=", "<=", ">=", "||", "&&", "|>", "<|", "++", "<<"];
    let sign = signs.iter().find(|s| rest.starts_with(**s)).map(|s| s.len());
    let len = sign.or(rest.chars().next().map(char::len_utf8)).unwrap_or(0);
    &rest[..len]
}
