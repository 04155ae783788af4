//! Words and signs of litmus files and x86 programs, with their places.
//!
//! In: a text and an offset. Out: tokens until its end. Comments `(* … *)` nest; where no sign starts a comment, `//` does. Cost: linear. Names are Latin letters, digits, `_`, `.`.

use mu_base::{Diagnostic, SourceId, Span, Stage};

/// A kind of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
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
pub(super) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub span: Span,
}

/// Signs, longer ones before their beginnings.
const SIGNS: [&str; 36] = [
    "/\\", "\\/", "=>", "==", "!=", "<>", "<=", ">=", "&&", "||", ";", ",", "|", "(", ")", "[", "]", "{", "}", ":", "=", "+", "-", "*",
    "$", "%", "~", "&", "<", ">", "!", "@", "#", "\"", ".", "?",
];

/// Cuts a text into tokens; a `comment` sign starts a comment to the end of the line.
pub(super) fn tokens<'a>(source: SourceId, text: &'a str, from: usize, comment: Option<char>) -> Result<Vec<Token<'a>>, Diagnostic> {
    let bytes = text.as_bytes();
    let span = |a: usize, b: usize| Span { source, start: a as u32, end: b as u32 };
    let mut out = Vec::with_capacity((text.len() - from) / 3);
    let mut at = from;
    let run = |mut to: usize, test: &dyn Fn(u8) -> bool| {
        while bytes.get(to).is_some_and(|&b| test(b)) {
            to += 1;
        }
        to
    };
    while let Some(&b) = bytes.get(at) {
        let start = at;
        let kind = match b {
            b' ' | b'\t' | b'\r' => {
                at += 1;
                continue;
            }
            b'\n' if comment.is_none() => {
                at += 1;
                continue;
            }
            // Lines count where comments end with them.
            b'\n' => {
                at += 1;
                Kind::Sign
            }
            _ if comment.is_some_and(|c| c as u32 == u32::from(b)) => {
                at = run(at, &|b| b != b'\n');
                continue;
            }
            b'/' if comment.is_none() && bytes.get(at + 1) == Some(&b'/') => {
                at = run(at, &|b| b != b'\n');
                continue;
            }
            b'(' if bytes.get(at + 1) == Some(&b'*') => {
                at = end_of_comment(bytes, at)
                    .ok_or_else(|| Diagnostic::at(Stage::Syntax, span(start, start + 2), "this comment is not closed"))?;
                continue;
            }
            b'0'..=b'9' => {
                let hexadecimal = b == b'0' && matches!(bytes.get(at + 1), Some(b'x' | b'X'));
                at = if hexadecimal { run(at + 2, &|b| b.is_ascii_hexdigit()) } else { run(at, &|b| b.is_ascii_digit()) };
                Kind::Number
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.' => {
                at = run(at, &|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
                Kind::Name
            }
            b'"' => {
                at = run(at + 1, &|b| b != b'"') + 1;
                if at > bytes.len() {
                    return Err(Diagnostic::at(Stage::Syntax, span(start, start + 1), "this string is not closed"));
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

/// The offset after the comment that starts at `at`.
pub(super) fn end_of_comment(bytes: &[u8], mut at: usize) -> Option<usize> {
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
pub(super) struct Cursor<'a, 't> {
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
    /// Takes a number with its sign.
    pub fn number(&mut self) -> Result<i64, Diagnostic> {
        let negative = self.eat("-");
        let token = self.peek();
        if token.kind != Kind::Number {
            return Err(self.unexpected("a number"));
        }
        self.take();
        let value = match token.text.get(..2) {
            Some("0x" | "0X") => u64::from_str_radix(&token.text[2..], 16),
            _ => token.text.parse::<u64>(),
        };
        let value = value.map_err(|_| Diagnostic::at(Stage::Syntax, token.span, format!("`{}` does not fit in 64 bits", token.text)))?;
        Ok(if negative { (value as i64).wrapping_neg() } else { value as i64 })
    }
    /// The complaint that something else was expected here.
    pub fn unexpected(&self, expected: &str) -> Diagnostic {
        let token = self.peek();
        let found = match (token.kind, token.text) {
            (Kind::End, _) => "the end of the text".to_string(),
            (_, "\n") => "the end of the line".to_string(),
            (_, text) => format!("`{text}`"),
        };
        Diagnostic::at(Stage::Syntax, token.span, format!("expected {expected}, found {found}"))
    }
}
