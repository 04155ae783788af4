//! Scanner for the text formats of games: tokens with positions, comments skipped, errors with
//! their line.

use mu_base::{Diagnostic, Stage};

/// A text and a position in it.
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// The character that starts a comment to the end of the line.
    comment: Option<char>,
}

impl<'a> Scanner<'a> {
    /// Starts at the beginning of a text.
    pub fn new(text: &'a str, comment: Option<char>) -> Self {
        Self { text, at: 0, comment }
    }
    /// Returns the rest of the text, without leading blanks and comments.
    pub fn rest(&mut self) -> &'a str {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if self.comment.is_some_and(|c| trimmed.starts_with(c)) {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else {
                return trimmed;
            }
        }
    }
    /// True if only blanks and comments are left.
    pub fn at_end(&mut self) -> bool {
        self.rest().is_empty()
    }
    /// Consumes a symbol if it comes next.
    pub fn take(&mut self, mark: &str) -> bool {
        let found = self.rest().starts_with(mark);
        if found {
            self.at += mark.len();
        }
        found
    }
    /// Consumes a symbol, or fails.
    pub fn expect(&mut self, mark: &str) -> Result<(), Diagnostic> {
        if self.take(mark) { Ok(()) } else { Err(self.refuse(format!("'{mark}'"))) }
    }
    /// Consumes a word of letters, digits, `_`, `'`, `.` and `@` that does not start with a digit,
    /// if one comes next.
    pub fn word(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'' | '.' | '@');
        let len = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        if len == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.at += len;
        Some(&rest[..len])
    }
    /// Consumes this word if it comes next.
    pub fn keyword(&mut self, keyword: &str) -> bool {
        let from = self.at;
        let found = self.word() == Some(keyword);
        if !found {
            self.at = from;
        }
        found
    }
    /// Consumes a number below 2^32 - 1.
    pub fn number(&mut self, what: &str) -> Result<u32, Diagnostic> {
        let rest = self.rest();
        let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        match rest[..len].parse::<u32>() {
            Ok(n) if n < u32::MAX => {
                self.at += len;
                Ok(n)
            }
            _ => Err(self.refuse(what)),
        }
    }
    /// Consumes the text up to a closing symbol, and the symbol. `None`, and nothing is consumed,
    /// if the symbol does not occur.
    pub fn take_until(&mut self, mark: char) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let len = rest.find(mark)?;
        self.at += len + mark.len_utf8();
        Some(&rest[..len])
    }
    /// Returns the position of the next token.
    pub fn place(&mut self) -> usize {
        self.rest();
        self.at
    }
    /// Creates an error at the next token.
    pub fn refuse(&mut self, expected: impl AsRef<str>) -> Diagnostic {
        let place = self.place();
        let rest: String =
            self.text[place..].lines().next().unwrap_or("").chars().take(40).collect();
        let found =
            if rest.is_empty() { "the end of the text".into() } else { format!("{rest:?}") };
        self.error(place, format!("expected {}, found {found}", expected.as_ref()))
    }
    /// Creates an error at a position.
    pub fn error(&self, place: usize, message: impl AsRef<str>) -> Diagnostic {
        let before = &self.text[..place];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        let text: String =
            self.text.lines().nth(line - 1).unwrap_or("").chars().take(column + 200).collect();
        Diagnostic::in_line(Stage::File, line as u64, column, text, message.as_ref())
    }
}
