//! Lexer of the `cat` language, with positions. Comments are `(* … *)`, which nest, and `//` or `#`
//! to the end of the line.

use mu_base::words::nested_comment;
use mu_base::{Diagnostic, SourceId, Span, Stage, narrow};

/// A token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CatToken {
    /// A name that is not a keyword.
    Name(String),
    /// A keyword.
    Keyword(&'static str),
    /// `'tag`.
    Tag(String),
    /// `"text"`.
    Text(String),
    /// Punctuation.
    Mark(&'static str),
    /// The end of the text.
    End,
}

/// Reserved words.
pub const KEYWORDS: &[&str] = &[
    "let",
    "rec",
    "and",
    "when",
    "acyclic",
    "irreflexive",
    "show",
    "unshow",
    "empty",
    "subset",
    "as",
    "fun",
    "in",
    "undefined_unless",
    "flag",
    "include",
    "begin",
    "end",
    "procedure",
    "call",
    "enum",
    "debug",
    "match",
    "with",
    "forall",
    "from",
    "do",
    "try",
    "if",
    "then",
    "else",
    "instructions",
    "default",
    "assert",
    "not",
];
/// Punctuation, longer marks first.
const MARKS: &[&str] = &[
    "||", "&&", "++", "->", "-1", "(", ")", "{", "}", "[", "]", "_", "0", "|", "&", "*", "~", "+",
    "^", "\\", "?", "=", ";", ",",
];

impl CatToken {
    /// Prints the token for a message.
    pub fn description(&self) -> String {
        match self {
            CatToken::Name(n) => format!("`{n}`"),
            CatToken::Keyword(k) | CatToken::Mark(k) => format!("`{k}`"),
            CatToken::Tag(t) => format!("`'{t}`"),
            CatToken::Text(t) => format!("`\"{t}\"`"),
            CatToken::End => "the end of the file".to_string(),
        }
    }
}

/// Returns the length of the name that begins here: `_? letter (letter | digit | _ . -)* '?`.
fn name(text: &[u8]) -> usize {
    let start = usize::from(text.first() == Some(&b'_'));
    if !text.get(start).is_some_and(u8::is_ascii_alphabetic) {
        return 0;
    }
    let inside = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'-');
    let end = start + text[start..].iter().take_while(|c| inside(c)).count();
    end + usize::from(text.get(end) == Some(&b'\''))
}

/// Splits a text into tokens; the last is [`CatToken::End`].
pub fn lex(source: SourceId, text: &str) -> Result<Vec<(CatToken, Span)>, Diagnostic> {
    let bytes = text.as_bytes();
    let span = |from: usize, to: usize| Span {
        source,
        start: narrow::index(from),
        end: narrow::index(to),
    };
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let from = at;
        if rest[0].is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with(b"(*") {
            let open = span(at, at + 2);
            at += nested_comment(rest).ok_or_else(|| {
                Diagnostic::at(Stage::Syntax, open, "this comment is not closed, expected `*)`")
            })?;
        } else if rest[0] == b'#' || rest.starts_with(b"//") {
            at += rest.iter().position(|c| *c == b'\n').unwrap_or(rest.len());
        } else if rest[0] == b'"' {
            let end = rest[1..].iter().position(|c| *c == b'"');
            let end = end.ok_or_else(|| {
                Diagnostic::at(
                    Stage::Syntax,
                    span(at, at + 1),
                    "this string is not closed, expected `\"`",
                )
            })?;
            at += end + 2;
            out.push((CatToken::Text(text[from + 1..at - 1].to_string()), span(from, at)));
        } else if rest[0] == b'\'' && name(&rest[1..]) > 0 {
            at += 1 + name(&rest[1..]);
            out.push((CatToken::Tag(text[from + 1..at].to_string()), span(from, at)));
        } else if name(rest) > 0 {
            at += name(rest);
            let word = &text[from..at];
            let token = KEYWORDS
                .iter()
                .find(|k| **k == word)
                .map_or_else(|| CatToken::Name(word.to_string()), |k| CatToken::Keyword(k));
            out.push((token, span(from, at)));
        } else if let Some(mark) = MARKS.iter().find(|m| rest.starts_with(m.as_bytes())) {
            at += mark.len();
            out.push((CatToken::Mark(mark), span(from, at)));
        } else {
            let c = text[at..].chars().next().unwrap_or(' ');
            let place = span(at, at + c.len_utf8());
            return Err(Diagnostic::at(
                Stage::Syntax,
                place,
                format!("`{c}` is not valid in the cat language"),
            ));
        }
    }
    out.push((CatToken::End, span(bytes.len(), bytes.len())));
    Ok(out)
}
