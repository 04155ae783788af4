//! Lexer of `.cub` files, with positions, in one pass.
//!
//! Comments `(* .. *)` nest, as in OCaml. Names that begin with a lower-case letter are processes,
//! types, predicates and transitions; those that begin with a capital letter are variables and
//! constructors. Keywords are lower-case names, which the parser recognises by their text.

use mu_base::source::{SourceId, Span};
use mu_base::words::nested_comment;
use mu_base::{Diagnostic, Stage, narrow};
use num_bigint::BigInt;
use num_rational::BigRational;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub enum Tok {
    /// A name that begins with a lower-case letter, or a keyword.
    Lower(String),
    /// A name that begins with a capital letter.
    Upper(String),
    /// `#n`.
    Fixed(u32),
    /// A number, and true if it has a decimal point.
    Number(BigRational, bool),
    /// An operator or bracket.
    Sign(&'static str),
    /// The end of the text.
    End,
}

impl Tok {
    /// Prints the token for a message.
    pub fn description(&self) -> String {
        match self {
            Tok::Lower(s) | Tok::Upper(s) => format!("`{s}`"),
            Tok::Fixed(n) => format!("`#{n}`"),
            Tok::Number(n, _) => format!("the number {n}"),
            Tok::Sign(s) => format!("`{s}`"),
            Tok::End => "the end of the file".into(),
        }
    }
}

/// Operators and brackets, longer ones first.
const SIGNS: [&str; 33] = [
    "<=>", ":=", "<>", "<=", ">=", "=>", "==", "!=", "||", "&&", "<", ">", "=", "&", "|", "(", ")",
    "[", "]", "{", "}", ",", ";", ":", ".", "?", "+", "-", "*", "@", "_", "~", "!",
];

/// Returns the tokens of a text, the last of which is [`Tok::End`].
///
/// # Errors
///
/// An invalid character, an unclosed comment, a number too large for `#n`.
pub fn tokens(source: SourceId, text: &str) -> Result<Vec<(Tok, Span)>, Diagnostic> {
    let mut out = Vec::new();
    let mut at = 0;
    let span = |from: usize, to: usize| Span {
        source,
        start: narrow::index(from),
        end: narrow::index(to),
    };
    if u32::try_from(text.len()).is_err() {
        return Err(Diagnostic::new(Stage::Syntax, "the file has 4 GiB or more"));
    }
    while at < text.len() {
        let rest = &text[at..];
        let first = rest.chars().next().unwrap_or(' ');
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if rest.starts_with("(*") {
            at += nested_comment(rest.as_bytes()).ok_or_else(|| {
                Diagnostic::at(
                    Stage::Syntax,
                    span(at, at + 2),
                    "this comment is not closed, expected `*)`",
                )
            })?;
            continue;
        }
        let (tok, len) = token(rest).map_err(|message| {
            Diagnostic::at(Stage::Syntax, span(at, at + first.len_utf8()), message)
        })?;
        out.push((tok, span(at, at + len)));
        at += len;
    }
    out.push((Tok::End, span(at.saturating_sub(1), at)));
    Ok(out)
}

fn token(text: &str) -> Result<(Tok, usize), String> {
    let word = |s: &str| s.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let first = text.as_bytes()[0];
    if first.is_ascii_lowercase() {
        let len = word(text);
        return Ok((Tok::Lower(text[..len].into()), len));
    }
    if first.is_ascii_uppercase() {
        let len = word(text);
        return Ok((Tok::Upper(text[..len].into()), len));
    }
    if first.is_ascii_digit() {
        let whole = digits(text);
        let mut value =
            BigRational::from(text[..whole].parse::<BigInt>().map_err(|e| e.to_string())?);
        if text[whole..].starts_with('.') {
            let part = digits(&text[whole + 1..]);
            for (i, d) in text[whole + 1..whole + 1 + part].bytes().enumerate() {
                value += BigRational::new(
                    BigInt::from(d - b'0'),
                    BigInt::from(10).pow(narrow::index(i) + 1),
                );
            }
            return Ok((Tok::Number(value, true), whole + 1 + part));
        }
        return Ok((Tok::Number(value, false), whole));
    }
    if first == b'#' {
        let len = digits(&text[1..]);
        return match text[1..1 + len].parse::<u32>() {
            Ok(n) if (1..=1_000_000).contains(&n) => Ok((Tok::Fixed(n), 1 + len)),
            _ => Err(format!(
                "`{}` is not a process, expected a number from 1 on after `#`",
                &text[..1 + len]
            )),
        };
    }
    match SIGNS.iter().find(|s| text.starts_with(**s)) {
        Some(s) => Ok((Tok::Sign(s), s.len())),
        None => Err(format!("unexpected character `{}`", text.chars().next().unwrap_or(' '))),
    }
}
