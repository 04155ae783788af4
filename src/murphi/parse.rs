//! Recursive-descent parser of Murphi models.
//!
//! In: a text. Out: a [`File`], or the first error with its place and what was expected there. The
//! language is the union of those of CMurphi 5.4.9 and Rumur: sections in any order, optional
//! semicolons between declarations and rules, every `end` with or without its word. Constructs
//! that a later stage could not support (real numbers, external functions, probabilities, rule
//! priorities) are rejected by name. Cost: linear; a guard is recognised by a scan for `==>`.

mod declarations;
mod expressions;
mod rules;
mod statements;

use crate::ast::{Expr, File, Item, Name};
use crate::lexer::{COMMENTS, Key, Tok, Token, tokens};
use mu_base::source::{SourceId, Span};
use mu_base::{Diagnostic, Stage};

/// Limit on the depth of nested expressions, types, statements and rules, and on the operands of a
/// chain of operators; beyond it parsing fails. All passes recurse at most this deep.
pub const MAX_DEPTH: usize = 3000;
/// Limit on the number of errors after which [`parse_all`] stops.
const MAX_ERRORS: usize = 50;

type Parsed<T> = Result<T, Diagnostic>;

/// Parses a model.
///
/// # Errors
///
/// The first text that does not match the grammar. If the file is in another language that uses the
/// ending `.m`, the error says so.
pub fn parse(source: SourceId, text: &str) -> Result<File, Diagnostic> {
    let read = || {
        let list = tokens(source, text)?;
        let mut parser = Parser { text, tokens: &list, at: 0, depth: 0, height: 0 };
        let mut file = File::default();
        while parser.peek() != Tok::End {
            parser.items(&mut file.items)?;
        }
        Ok(file)
    };
    read().map_err(|error: Diagnostic| match crate::foreign::language(text) {
        Some((language, span)) => Diagnostic::at(
            Stage::Syntax,
            Span { source, start: span.start as u32, end: span.end as u32 },
            format!("this `.m` file is {language}, not a Murphi model"),
        )
        .note(format!("the first error of a Murphi model: {}", error.message)),
        None => error,
    })
}

/// Parses a part of a text as an expression: the condition of a formula.
///
/// # Errors
///
/// The first token of the part that does not match the grammar.
pub fn parse_expression(
    source: SourceId,
    text: &str,
    part: std::ops::Range<usize>,
) -> Result<Expr, Diagnostic> {
    // Blanks before the part keep its places.
    let padded = format!("{}{}", " ".repeat(part.start), &text[part]);
    let list = tokens(source, &padded)?;
    let mut parser = Parser { text: &padded, tokens: &list, at: 0, depth: 0, height: 0 };
    let found = parser.expression().map_err(|mut error| {
        error.message = error.message.replace("the end of the file", "the end of the condition");
        error
    })?;
    match parser.peek() {
        Tok::End => Ok(found),
        _ => Err(parser.unexpected("an operator, or the end of the condition")),
    }
}

/// Parses a model with errors: after an error it continues with the next section or rule. Returns
/// the items that parse, and the errors. For editors.
pub fn parse_all(source: SourceId, text: &str) -> (File, Vec<Diagnostic>) {
    let mut errors = Vec::new();
    // Invalid characters are treated as blanks.
    let mut blanked = text.to_string();
    let mut list = tokens(source, &blanked);
    while let Err(error) = list {
        let Some(span) = error.span.filter(|_| errors.len() < MAX_ERRORS) else {
            errors.push(error);
            return (File::default(), errors);
        };
        errors.push(error);
        let (start, end) = (span.start as usize, span.end as usize);
        blanked.replace_range(start..end, &" ".repeat(end - start));
        list = tokens(source, &blanked);
    }
    let list = list.unwrap_or_default();
    let mut parser = Parser { text, tokens: &list, at: 0, depth: 0, height: 0 };
    let mut file = File::default();
    while parser.peek() != Tok::End && errors.len() < MAX_ERRORS {
        let from = parser.at;
        if let Err(error) = parser.items(&mut file.items) {
            errors.push(error);
            (parser.at, parser.depth) = (parser.at.max(from + 1).min(list.len() - 1), 0);
            while parser.peek() != Tok::End && !parser.begins_item() {
                parser.at += 1;
            }
        }
    }
    (file, errors)
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    /// Height of the expression that is under construction.
    height: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Tok {
        self.tokens[self.at].tok
    }
    fn peek_at(&self, ahead: usize) -> Token {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }
    /// Returns the place of the next token.
    fn span(&self) -> Span {
        self.tokens[self.at].span
    }
    /// Returns the place of the token before the next one.
    fn last(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }
    fn next(&mut self) -> Token {
        let token = self.tokens[self.at];
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }
    fn source_text(&self, span: Span) -> &'a str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }
    /// Prints the next token for a message.
    fn token_text(&self) -> String {
        match self.peek() {
            Tok::End => "the end of the file".into(),
            Tok::Key(key) => format!("the keyword `{}`", key.text()),
            Tok::Text => {
                format!("the text {}", mu_base::naming::line(self.source_text(self.span())))
            }
            _ => format!("`{}`", self.source_text(self.span())),
        }
    }
    fn fail(&self, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::at(Stage::Syntax, span, message)
    }
    fn unexpected(&self, expected: &str) -> Diagnostic {
        let error =
            self.fail(self.span(), format!("found {}, expected {expected}", self.token_text()));
        let rest = self.text.get(self.span().start as usize..).unwrap_or("");
        match rest.starts_with("//") || rest.starts_with('%') {
            true => error.note(COMMENTS),
            false => error,
        }
    }
    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Tok::Sign(s) if s == sign)
    }
    fn is_key(&self, key: Key) -> bool {
        self.peek() == Tok::Key(key)
    }
    /// True if the next token is this word, which only one of the tools reserves.
    fn is_word(&self, word: &str) -> bool {
        self.is_word_at(0, word)
    }
    fn is_word_at(&self, ahead: usize, word: &str) -> bool {
        let token = self.peek_at(ahead);
        token.tok == Tok::Name && self.source_text(token.span).eq_ignore_ascii_case(word)
    }
    fn is_sign_at(&self, ahead: usize, sign: &str) -> bool {
        matches!(self.peek_at(ahead).tok, Tok::Sign(s) if s == sign)
    }
    fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.next();
        }
        found
    }
    fn eat_key(&mut self, key: Key) -> bool {
        let found = self.is_key(key);
        if found {
            self.next();
        }
        found
    }
    fn expect(&mut self, sign: &str) -> Parsed<Span> {
        if self.is(sign) {
            Ok(self.next().span)
        } else {
            Err(self.unexpected(&format!("`{sign}`")))
        }
    }
    fn expect_key(&mut self, key: Key) -> Parsed<Span> {
        if self.is_key(key) {
            return Ok(self.next().span);
        }
        Err(self.unexpected(&format!("`{}`", key.text())))
    }
    /// Reads any number of semicolons.
    fn semicolons(&mut self) -> bool {
        let found = self.is(";");
        while self.eat(";") {}
        found
    }
    fn name(&mut self, what: &str) -> Parsed<Name> {
        if self.peek() != Tok::Name {
            let mut error = self.unexpected(what);
            if let Tok::Key(key) = self.peek() {
                error = error.note(format!("`{}` is a reserved word, in any case", key.text()));
            }
            return Err(error);
        }
        let span = self.next().span;
        let written = self.source_text(span);
        let lower = written.to_ascii_lowercase();
        let text = match lower.as_str() {
            "boolean" | "true" | "false" => lower,
            _ => written.to_string(),
        };
        Ok(Name { text, span })
    }
    /// Reads the text of a token, without its quotation marks.
    fn quoted_text(&mut self) -> (String, Span) {
        let span = self.next().span;
        let written = self.source_text(span);
        let inner = written
            .strip_prefix(['"', '“'])
            .and_then(|rest| rest.strip_suffix(['"', '”']))
            .unwrap_or(written);
        (inner.to_string(), span)
    }
    /// Reads `end` or the word that ends this construct.
    fn end(&mut self, word: Key, opened: Span) -> Parsed<Span> {
        if self.is_key(Key::End) || self.is_key(word) {
            return Ok(self.next().span);
        }
        let opener = self.source_text(opened);
        Err(self
            .unexpected(&format!("`end` or `{}`", word.text()))
            .related(opened, format!("this `{opener}` is not closed")))
    }
    /// Parses something one level deeper; fails beyond [`MAX_DEPTH`].
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} nested constructs");
            return Err(self.fail(self.span(), message));
        }
        self.depth += 1;
        let result = stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || parse(self));
        self.depth -= 1;
        result
    }

    /// True if the next token begins a section, function or rule. For the recovery from errors.
    fn begins_item(&self) -> bool {
        matches!(
            self.peek(),
            Tok::Key(
                Key::Const
                    | Key::Type
                    | Key::Var
                    | Key::Function
                    | Key::Procedure
                    | Key::Rule
                    | Key::Ruleset
                    | Key::Startstate
                    | Key::Invariant
            )
        )
    }
    /// Parses one section, function or rule.
    fn items(&mut self, out: &mut Vec<Item>) -> Parsed<()> {
        if self.semicolons() {
            return Ok(());
        }
        for (word, what) in [
            ("externfun", "functions in C"),
            ("externproc", "procedures in C"),
            ("pctl", "probabilistic properties"),
        ] {
            if self.is_word(word) {
                let message = format!("`{word}` is not supported: {what} have no meaning here");
                return Err(Diagnostic::at(Stage::Unsupported, self.span(), message));
            }
        }
        match self.peek() {
            Tok::Key(Key::Const | Key::Type | Key::Var) => {
                let mut all = Vec::new();
                self.declarations(&mut all)?;
                out.extend(all.into_iter().map(Item::Declaration));
            }
            Tok::Key(Key::Function | Key::Procedure) => out.push(Item::Function(self.function()?)),
            _ => match self.rule()? {
                Some(rule) => out.push(Item::Rule(rule)),
                None => {
                    return Err(self.unexpected(
                        "a declaration (`const`, `type`, `var`), a function, a rule, or a property",
                    ));
                }
            },
        }
        Ok(())
    }
}
