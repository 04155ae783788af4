//! Tokens of program texts with their places: litmus files of all architectures, x86 programs.
//!
//! In: a text and an offset. Out: tokens up to its end, and a cursor over them. Comments `(* … *)`
//! nest. Names are Latin letters, digits, `_` and `.`. Cost: linear.

use crate::narrow;
use crate::{Diagnostic, SourceId, Span, Stage};

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name.
    Name,
    /// Digits, or `0x` and hexadecimal digits, with following letters: `10`, `0x1f`, `1UL`, `1f`.
    Number,
    /// A quoted string.
    Text,
    /// A symbol.
    Sign,
    /// The end of the text.
    End,
}

/// Token.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    /// Kind.
    pub kind: TokenKind,
    /// Text.
    pub text: &'a str,
    /// Place.
    pub span: Span,
}

/// Lexical form of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexicalForm {
    /// Line ends are white space. Comments are also `//`, `/* … */` and `<< … >>`.
    Free,
    /// As `Free` outside of function bodies. In bodies `(*` starts a comment only before white
    /// space or a star, since `(*x)` is an expression of C; `<<` and `>>` are symbols, and `'a'` is
    /// a string.
    C,
    /// As `C` inside of function bodies, from the start. Comments are only `//` and `/* … */`.
    Code,
    /// The end of a line is a symbol, and this character starts a comment up to it.
    Lines(char),
}

/// Symbols; each precedes its prefixes.
const SIGNS: [&str; 41] = [
    "/\\", "\\/", "=>", "==", "!=", "<>", "<=", ">=", "&&", "||", "->", "++", "--", ";", ",", "|",
    "(", ")", "[", "]", "{", "}", ":", "=", "+", "-", "*", "/", "$", "%", "~", "&", "<", ">", "!",
    "@", "#", "^", "?", "'", ".",
];

/// Splits a text into tokens, the last of which is of kind [`TokenKind::End`].
///
/// # Errors
/// An unterminated comment or string, or a character that starts no token.
pub fn tokens(
    source: SourceId,
    text: &str,
    from: usize,
    form: LexicalForm,
) -> Result<Vec<Token<'_>>, Diagnostic> {
    let bytes = text.as_bytes();
    let span = |a: usize, b: usize| Span { source, start: narrow::index(a), end: narrow::index(b) };
    let mut out = Vec::with_capacity((text.len() - from) / 3 + 1);
    let mut at = from;
    let mut braces = Braces::default();
    while let Some(&b) = bytes.get(at) {
        let start = at;
        let in_body = form == LexicalForm::Code || form == LexicalForm::C && braces.in_body();
        let form = if form == LexicalForm::C && !in_body { LexicalForm::Free } else { form };
        let ends_line = b == b'\n' && matches!(form, LexicalForm::Lines(_));
        if b.is_ascii_whitespace() && !ends_line {
            at += 1;
            continue;
        }
        if let Some(end) = comment(bytes, at, form) {
            at = end.ok_or_else(|| {
                let error = Diagnostic::at(Stage::Syntax, span(start, start + 2), "this comment is not closed");
                match bytes.get(start + 2) {
                    Some(next) if b == b'(' && next.is_ascii_alphabetic() => {
                        error.note("`(*` starts a comment that ends with `*)`; `[x]` is the location `x`, and so is `( *x`")
                    }
                    _ => error,
                }
            })?;
            continue;
        }
        let kind = match b {
            b'\n' => {
                at += 1;
                TokenKind::Sign
            }
            b'0'..=b'9' => {
                at = run(bytes, at, |b| b.is_ascii_alphanumeric() || b == b'_');
                TokenKind::Number
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                at = run(bytes, at, in_name);
                TokenKind::Name
            }
            b'.' if bytes.get(at + 1).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_') => {
                at = run(bytes, at, in_name);
                TokenKind::Name
            }
            b'"' => {
                at = run(bytes, at + 1, |b| b != b'"') + 1;
                if at > bytes.len() {
                    return Err(Diagnostic::at(
                        Stage::Syntax,
                        span(start, start + 1),
                        "this string is not closed",
                    ));
                }
                TokenKind::Text
            }
            b'\'' if in_body => {
                at = character(bytes, at).ok_or_else(|| {
                    Diagnostic::at(
                        Stage::Syntax,
                        span(start, start + 1),
                        "this character constant is not closed",
                    )
                })?;
                TokenKind::Text
            }
            b'<' | b'>' if in_body && bytes.get(at + 1) == Some(&b) => {
                at += 2;
                TokenKind::Sign
            }
            _ => {
                let Some(sign) = SIGNS.iter().find(|s| text[at..].starts_with(**s)) else {
                    let wrong = text[at..].chars().next().unwrap_or('?');
                    let place = span(start, start + wrong.len_utf8());
                    return Err(Diagnostic::at(
                        Stage::Syntax,
                        place,
                        format!("unexpected character `{}`", wrong.escape_default()),
                    ));
                };
                braces.pass(sign);
                at += sign.len();
                TokenKind::Sign
            }
        };
        out.push(Token { kind, text: &text[start..at], span: span(start, at) });
    }
    out.push(Token { kind: TokenKind::End, text: "", span: span(text.len(), text.len()) });
    Ok(out)
}

/// Brace tracking in a litmus test in C: the initial state comes first, then the functions.
#[derive(Default)]
struct Braces {
    depth: u32,
    /// True after the end of the initial state.
    functions: bool,
}

impl Braces {
    fn pass(&mut self, sign: &str) {
        match sign {
            "{" => self.depth += 1,
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                self.functions |= self.depth == 0;
            }
            _ => {}
        }
    }
    fn in_body(&self) -> bool {
        self.functions && self.depth > 0
    }
}

/// Returns the offset after the character constant that starts at `at`. `None` if it does not end
/// on its line.
fn character(bytes: &[u8], at: usize) -> Option<usize> {
    let mut next = at + 1;
    loop {
        match bytes.get(next)? {
            b'\'' => return Some(next + 1),
            b'\n' => return None,
            b'\\' => next += 2,
            _ => next += 1,
        }
    }
}

fn in_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'.'
}

/// Returns the offset of the first byte from `at` on that does not satisfy the test.
fn run(bytes: &[u8], at: usize, test: impl Fn(u8) -> bool) -> usize {
    at + bytes[at..].iter().take_while(|b| test(**b)).count()
}

/// Returns the offset after the comment that starts at `at`. `None` if no comment starts there,
/// `Some(None)` if it does not end.
pub fn comment(bytes: &[u8], at: usize, form: LexicalForm) -> Option<Option<usize>> {
    let find =
        |end: &[u8]| bytes[at + 2..].windows(2).position(|w| w == end).map(|i| at + 2 + i + 2);
    let line = || Some(Some(run(bytes, at, |b| b != b'\n')));
    if let LexicalForm::Lines(sign) = form
        && u32::from(sign) == u32::from(*bytes.get(at)?)
    {
        return line();
    }
    match (bytes.get(at)?, bytes.get(at + 1)?) {
        (b'(', b'*') if form == LexicalForm::Code => None,
        (b'(', b'*')
            if form == LexicalForm::C
                && !bytes.get(at + 2).is_some_and(|b| b.is_ascii_whitespace() || *b == b'*') =>
        {
            None
        }
        (b'(', b'*') => Some(nested_comment(&bytes[at..]).map(|length| at + length)),
        _ if matches!(form, LexicalForm::Lines(_)) => None,
        (b'/', b'*') => Some(find(b"*/")),
        (b'<', b'<') if !matches!(form, LexicalForm::C | LexicalForm::Code) => Some(find(b">>")),
        (b'/', b'/') => line(),
        _ => None,
    }
}

/// Returns the length of the comment `(* … *)` at the start of a text; such comments nest. `None`
/// if it does not end.
pub fn nested_comment(text: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(pair) = text.get(at..at + 2) {
        match pair {
            b"(*" => {
                depth += 1;
                at += 2;
            }
            b"*)" => {
                depth = depth.saturating_sub(1);
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

/// Position in a list of tokens.
#[derive(Clone, Debug)]
pub struct Cursor<'a, 't> {
    tokens: &'t [Token<'a>],
    at: usize,
}

impl<'a, 't> Cursor<'a, 't> {
    /// Creates a cursor at the start of a list that ends with an `End` token.
    pub fn new(tokens: &'t [Token<'a>]) -> Self {
        Self { tokens, at: 0 }
    }
    /// Returns the current token.
    pub fn peek(&self) -> Token<'a> {
        self.ahead(0)
    }
    /// Returns the token `n` places ahead.
    pub fn ahead(&self, n: usize) -> Token<'a> {
        self.tokens[(self.at + n).min(self.tokens.len() - 1)]
    }
    /// Returns the previous token; the first one at the start.
    pub fn previous(&self) -> Token<'a> {
        self.tokens[self.at.saturating_sub(1)]
    }
    /// Consumes the current token.
    pub fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }
    /// True if the current token is this symbol.
    pub fn is(&self, sign: &str) -> bool {
        let t = self.peek();
        t.kind == TokenKind::Sign && t.text == sign
    }
    /// Consumes the symbol if it is next. True if it was.
    pub fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.take();
        }
        found
    }
    /// True if the current token is this name, in any case.
    pub fn is_word(&self, word: &str) -> bool {
        let t = self.peek();
        t.kind == TokenKind::Name && t.text.eq_ignore_ascii_case(word)
    }
    /// Consumes a name if it is next. True if it was.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.take();
        }
        found
    }
    /// True at the end of the tokens.
    pub fn at_end(&self) -> bool {
        self.peek().kind == TokenKind::End
    }
    /// Consumes the symbol. Error: another token is next.
    pub fn expect(&mut self, sign: &str) -> Result<Token<'a>, Diagnostic> {
        if self.is(sign) { Ok(self.take()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }
    /// Consumes a name. Error: another token is next.
    pub fn name(&mut self, what: &str) -> Result<Token<'a>, Diagnostic> {
        if self.peek().kind == TokenKind::Name {
            Ok(self.take())
        } else {
            Err(self.unexpected(what))
        }
    }
    /// True if a number with an optional sign is next.
    pub fn is_number(&self) -> bool {
        self.peek().kind == TokenKind::Number
            || self.is("-") && self.ahead(1).kind == TokenKind::Number
    }
    /// Consumes a number with its sign.
    pub fn number(&mut self) -> Result<i64, Diagnostic> {
        let negative = self.eat("-");
        let token = self.peek();
        if token.kind != TokenKind::Number {
            return Err(self.unexpected("a number"));
        }
        self.take();
        let Some(value) = number(token.text) else {
            let digits =
                token.text.bytes().all(|b| b.is_ascii_digit()) || token.text.starts_with("0x");
            let why = if digits { "does not fit in 64 bits" } else { "is not a number" };
            return Err(Diagnostic::at(
                Stage::Syntax,
                token.span,
                format!("`{}` {why}", token.text),
            ));
        };
        Ok(if negative { (value as i64).wrapping_neg() } else { value as i64 })
    }
    /// Returns the error for an unexpected token.
    pub fn unexpected(&self, expected: &str) -> Diagnostic {
        let token = self.peek();
        let found = match (token.kind, token.text) {
            (TokenKind::End, _) => "the end of the text".to_string(),
            (_, "\n") => "the end of the line".to_string(),
            (_, text) => format!("`{text}`"),
        };
        Diagnostic::at(Stage::Syntax, token.span, format!("expected {expected}, found {found}"))
    }
}

/// Returns the value of a number token: decimal or hexadecimal, with the suffixes of C.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits.get(..2) {
        Some("0x" | "0X") => u64::from_str_radix(&digits[2..], 16).ok(),
        _ => digits.parse::<u64>().ok(),
    }
}
