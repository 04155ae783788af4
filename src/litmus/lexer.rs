//! Words and signs of litmus files, with their places.
//!
//! In: a text and an offset. Out: tokens up to its end. Comments `(* … *)` nest; `//` and `/* … */` are comments too; so are blocks `<< … >>`.
//! Names are Latin letters, digits, `_` and `.`. Cost: linear.

use mu_base::{Diagnostic, SourceId, Span, Stage};

/// A kind of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name.
    Name,
    /// Digits, or `0x` and hexadecimal digits.
    Number,
    /// A text in quotes.
    Text,
    /// A sign.
    Sign,
    /// Nothing follows.
    End,
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its text.
    pub text: &'a str,
    /// Where it stands.
    pub span: Span,
}

/// Signs, longer ones before their beginnings.
const SIGNS: [&str; 41] = [
    "/\\", "\\/", "=>", "==", "!=", "<>", "<=", ">=", "&&", "||", "->", "++", "--", ";", ",", "|", "(", ")", "[", "]", "{", "}", ":", "=",
    "+", "-", "*", "/", "$", "%", "~", "&", "<", ">", "!", "@", "#", "^", "?", "'", ".",
];

/// Cuts a text into tokens. In C a comment `(* … *)` has a blank after its star, as `(*x)` is an expression.
pub fn tokens(source: SourceId, text: &str, from: usize, c: bool) -> Result<Vec<Token<'_>>, Diagnostic> {
    let bytes = text.as_bytes();
    let span = |a: usize, b: usize| Span { source, start: a as u32, end: b as u32 };
    let mut out = Vec::with_capacity((text.len() - from) / 3 + 1);
    let mut at = from;
    let run = |mut to: usize, test: &dyn Fn(u8) -> bool| {
        while bytes.get(to).is_some_and(|&b| test(b)) {
            to += 1;
        }
        to
    };
    while let Some(&b) = bytes.get(at) {
        let start = at;
        if b.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let star = c && b == b'(' && !bytes.get(at + 2).is_some_and(|b| b.is_ascii_whitespace() || *b == b'*');
        if let Some(end) = comment(bytes, at).filter(|_| !star) {
            at = end.ok_or_else(|| Diagnostic::at(Stage::Syntax, span(start, start + 2), "this comment has no end"))?;
            continue;
        }
        let kind = match b {
            b'0'..=b'9' => {
                let hexadecimal = b == b'0' && matches!(bytes.get(at + 1), Some(b'x' | b'X'));
                at = if hexadecimal { run(at + 2, &|b| b.is_ascii_hexdigit()) } else { run(at, &|b| b.is_ascii_digit()) };
                // A suffix of C, or the letter of a local label: `1f`.
                at = run(at, &|b| b.is_ascii_alphanumeric() || b == b'_');
                Kind::Number
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                at = run(at, &|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
                Kind::Name
            }
            b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic) => {
                at = run(at, &|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
                Kind::Name
            }
            b'"' => {
                at = run(at + 1, &|b| b != b'"') + 1;
                if at > bytes.len() {
                    return Err(Diagnostic::at(Stage::Syntax, span(start, start + 1), "this text has no end"));
                }
                Kind::Text
            }
            _ => {
                let Some(sign) = SIGNS.iter().find(|s| text[at..].starts_with(**s)) else {
                    let wrong = text[at..].chars().next().unwrap_or('?');
                    let place = span(start, start + wrong.len_utf8());
                    return Err(Diagnostic::at(Stage::Syntax, place, format!("unexpected character `{}`", wrong.escape_default())));
                };
                at += sign.len();
                Kind::Sign
            }
        };
        out.push(Token { kind, text: &text[start..at], span: span(start, at) });
    }
    out.push(Token { kind: Kind::End, text: "", span: span(text.len(), text.len()) });
    Ok(out)
}

/// The offset after the comment that starts at `at`: none if none starts there, `Some(None)` if it has no end.
pub fn comment(bytes: &[u8], at: usize) -> Option<Option<usize>> {
    let find = |end: &[u8]| bytes[at + 2..].windows(2).position(|w| w == end).map(|i| at + 2 + i + 2);
    match (bytes.get(at)?, bytes.get(at + 1)?) {
        (b'(', b'*') => Some(end_of_comment(bytes, at)),
        (b'/', b'*') => Some(find(b"*/")),
        (b'<', b'<') => Some(find(b">>")),
        (b'/', b'/') => Some(Some(bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |i| at + i))),
        _ => None,
    }
}

/// The offset after the comment `(* … *)` that starts at `at`.
fn end_of_comment(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0u32;
    while at + 1 < bytes.len() {
        match (bytes[at], bytes[at + 1]) {
            (b'(', b'*') => {
                depth += 1;
                at += 2;
            }
            (b'*', b')') => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
    None
}

/// A place in a list of tokens.
#[derive(Clone, Debug)]
pub struct Cursor<'a, 't> {
    tokens: &'t [Token<'a>],
    at: usize,
}

impl<'a, 't> Cursor<'a, 't> {
    /// The start of a list that ends with an `End` token.
    pub fn new(tokens: &'t [Token<'a>]) -> Self {
        Self { tokens, at: 0 }
    }
    /// The token here.
    pub fn peek(&self) -> Token<'a> {
        self.ahead(0)
    }
    /// The token `n` places on.
    pub fn ahead(&self, n: usize) -> Token<'a> {
        self.tokens[(self.at + n).min(self.tokens.len() - 1)]
    }
    /// The token before this place; the first one at the start.
    pub fn before(&self) -> Token<'a> {
        self.tokens[self.at.saturating_sub(1)]
    }
    /// Takes the token here.
    pub fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }
    /// Whether the sign is here.
    pub fn is(&self, sign: &str) -> bool {
        let t = self.peek();
        t.kind == Kind::Sign && t.text == sign
    }
    /// Takes the sign if it is here.
    pub fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.take();
        }
        found
    }
    /// Whether a name is here, in any case.
    pub fn is_word(&self, word: &str) -> bool {
        let t = self.peek();
        t.kind == Kind::Name && t.text.eq_ignore_ascii_case(word)
    }
    /// Takes a name if it is here.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.take();
        }
        found
    }
    /// Whether nothing follows.
    pub fn at_end(&self) -> bool {
        self.peek().kind == Kind::End
    }
    /// Takes the sign or fails.
    pub fn expect(&mut self, sign: &str) -> Result<Token<'a>, Diagnostic> {
        if self.is(sign) { Ok(self.take()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }
    /// Takes a name or fails.
    pub fn name(&mut self, what: &str) -> Result<Token<'a>, Diagnostic> {
        if self.peek().kind == Kind::Name { Ok(self.take()) } else { Err(self.unexpected(what)) }
    }
    /// Whether a number is here, maybe with a sign.
    pub fn is_number(&self) -> bool {
        self.peek().kind == Kind::Number || self.is("-") && self.ahead(1).kind == Kind::Number
    }
    /// Takes a number with its sign.
    pub fn number(&mut self) -> Result<i64, Diagnostic> {
        let negative = self.eat("-");
        let token = self.peek();
        if token.kind != Kind::Number {
            return Err(self.unexpected("a number"));
        }
        self.take();
        let value = number(token.text);
        let value = value.ok_or_else(|| Diagnostic::at(Stage::Syntax, token.span, format!("`{}` is no number of 64 bits", token.text)))?;
        Ok(if negative { (value as i64).wrapping_neg() } else { value as i64 })
    }
    /// The complaint that something else was expected here.
    pub fn unexpected(&self, expected: &str) -> Diagnostic {
        let token = self.peek();
        let found = match (token.kind, token.text) {
            (Kind::End, _) => "the end of the text".to_string(),
            (_, text) => format!("`{text}`"),
        };
        Diagnostic::at(Stage::Syntax, token.span, format!("expected {expected}, found {found}"))
    }
}

/// The value of a token of kind number: decimal or hexadecimal, with the suffixes of C.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits.get(..2) {
        Some("0x" | "0X") => u64::from_str_radix(&digits[2..], 16).ok(),
        _ => digits.parse::<u64>().ok(),
    }
}
