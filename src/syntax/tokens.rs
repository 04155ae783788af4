//! Tokeniser of specifications and formulas as written, including the parameter layer, for tools on
//! text that need not parse.
//!
//! In: any text. Out: tokens with their places; everything between them is white space. The tokens
//! of a text that the grammar accepts are those of the grammar, except for symbols that only the
//! context distinguishes (`>` closes a modality or compares, `||_` before a name). A character that
//! starts no token is a token by itself. Cost: linear. Invariant: tokens are ascending, do not
//! overlap, and cover everything except white space.

use std::ops::Range;

/// Kinds of token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    /// A name or a reserved word.
    Word,
    /// Digits.
    Number,
    /// An operator, a bracket, a comma or a similar symbol.
    Sign,
    /// `% …` up to the end of its line.
    Comment,
    /// `"…"`, after `join`.
    Text,
    /// `${…}`
    Value,
    /// `$param`, `$for`, `$if`, `$else`.
    Directive,
    /// Anything else.
    Unknown,
}

/// A token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// Kind.
    pub kind: TokenKind,
    /// Range of bytes.
    pub range: Range<usize>,
}

impl Token {
    /// Returns the text of the token.
    pub fn text<'a>(&self, text: &'a str) -> &'a str {
        &text[self.range.clone()]
    }
    /// True if it is this symbol.
    pub fn is_sign(&self, text: &str, sign: &str) -> bool {
        self.kind == TokenKind::Sign && self.text(text) == sign
    }
}

/// Keywords that open a section.
pub const SECTIONS: [&str; 10] =
    ["sort", "cons", "map", "var", "eqn", "glob", "act", "proc", "init", "form"];

/// Keywords that bind variables up to a dot.
pub const BINDERS: [&str; 9] =
    ["sum", "dist", "forall", "exists", "lambda", "inf", "sup", "mu", "nu"];

/// Operators that are words.
pub const WORD_OPERATORS: [&str; 3] = ["in", "div", "mod"];

/// Built-in sorts, and the containers.
pub const SORTS: [&str; 10] =
    ["Bool", "Pos", "Nat", "Int", "Real", "List", "Set", "Bag", "FSet", "FBag"];

/// The other reserved words.
const WORDS: [&str; 15] = [
    "allow", "block", "comm", "delay", "delta", "end", "false", "hide", "rename", "struct", "tau",
    "true", "val", "whr", "yaled",
];

/// True if a word is reserved, so that it cannot be a name.
pub fn is_reserved(word: &str) -> bool {
    [&SECTIONS[..], &BINDERS, &WORD_OPERATORS, &SORTS, &WORDS]
        .iter()
        .any(|list| list.contains(&word))
}

/// Iterates over all reserved words.
pub fn reserved_words() -> impl Iterator<Item = &'static str> {
    SECTIONS.into_iter().chain(BINDERS).chain(WORD_OPERATORS).chain(SORTS).chain(WORDS)
}

/// True if a text is a name.
pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(starts_word) && bytes.all(in_word) && !is_reserved(text)
}

/// Symbols of several characters; each precedes its prefixes.
const SIGNS: [&str; 17] = [
    "||_", "..=", "..", "->", "<>", "=>", "==", "!=", "<=", ">=", "||", "&&", "|>", "<|", "++",
    "<<", "{:}",
];

fn starts_word(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_'
}

fn in_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'\''
}

/// Splits a text into tokens.
pub fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(text.len() / 4);
    let mut at = 0;
    let run = |from: usize, test: fn(u8) -> bool| {
        from + bytes[from..].iter().take_while(|b| test(**b)).count()
    };
    while let Some(&b) = bytes.get(at) {
        let start = at;
        let kind = match b {
            b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            b'%' => {
                at = run(at, |b| b != b'\n' && b != b'\r');
                // Trailing white space is not part of it.
                at = start + text[start..at].trim_end_matches([' ', '\t']).len();
                TokenKind::Comment
            }
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                let line = run(at, |b| b != b'\n' && b != b'\r');
                at = text[at..line].find('}').map_or(at + 2, |close| at + close + 1);
                TokenKind::Value
            }
            b'$' => {
                at = run(at + 1, in_word);
                if at > start + 1 { TokenKind::Directive } else { TokenKind::Unknown }
            }
            b'"' => {
                at += string(&bytes[at..]);
                TokenKind::Text
            }
            b'0'..=b'9' => {
                at = run(at, |b| b.is_ascii_digit());
                TokenKind::Number
            }
            _ if starts_word(b) => {
                at = run(at, in_word);
                TokenKind::Word
            }
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',' | b';' | b':' | b'=' | b'<' | b'>'
            | b'+' | b'-' | b'*' | b'/' | b'.' | b'!' | b'#' | b'|' | b'&' | b'@' | b'?' => {
                at += SIGNS.iter().find(|s| text[at..].starts_with(**s)).map_or(1, |s| s.len());
                TokenKind::Sign
            }
            _ => {
                at += text[at..].chars().next().map_or(1, char::len_utf8);
                TokenKind::Unknown
            }
        };
        out.push(Token { kind, range: start..at });
    }
    out
}

/// Returns the length of the quoted text at the start; only the quote if it is not closed on its
/// line.
fn string(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(b) = bytes.get(at) {
        match b {
            b'"' => return at + 1,
            b'\n' | b'\r' => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    1
}

/// True if the tokens are those of a formula file: it starts with a formula, or has a section
/// `form`.
pub fn is_formula(text: &str, tokens: &[Token]) -> bool {
    let mut words = tokens.iter().filter(|t| t.kind != TokenKind::Comment);
    match words.next() {
        None => false,
        Some(first) if first.kind == TokenKind::Directive => false,
        Some(first) if SECTIONS.contains(&first.text(text)) => {
            tokens.iter().any(|t| t.kind == TokenKind::Word && t.text(text) == "form")
        }
        Some(_) => true,
    }
}
