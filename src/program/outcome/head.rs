//! Parser of the head of a litmus file: architecture, name, lines `key=value`, up to the `{` of the
//! initial state.
//!
//! Comments and quoted texts may occur anywhere in it. Other lines are for other tools and are
//! skipped. Cost: linear.

use mu_base::words::{LexicalForm, comment};
use mu_base::{Diagnostic, SourceId, Span, Stage, narrow};

/// The head of a file.
#[derive(Clone, Debug)]
pub struct Head<A> {
    /// The architecture.
    pub arch: A,
    /// The test's name.
    pub name: String,
    /// Lines `key=value`.
    pub info: Vec<(String, String)>,
    /// The offset of the `{`.
    pub body: usize,
}

/// Parses the head of a file. `known` looks up an architecture by name; `names` lists the known
/// ones, for messages.
///
/// # Errors
///
/// An empty text, an unknown architecture, a missing name or initial state, an unclosed comment.
pub fn head<A>(
    source: SourceId,
    text: &str,
    known: impl Fn(&str) -> Option<A>,
    names: &str,
) -> Result<Head<A>, Diagnostic> {
    let bytes = text.as_bytes();
    let span = |start: usize, end: usize| Span {
        source,
        start: narrow::index(start),
        end: narrow::index(end),
    };
    let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let skip = |at: usize| match comment(bytes, at, LexicalForm::Free) {
        Some(None) => {
            Err(Diagnostic::at(Stage::Syntax, span(at, at + 2), "this comment is not closed"))
        }
        Some(end) => Ok(end),
        None => Ok(None),
    };
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        match skip(at)? {
            Some(end) => at = end,
            None => break,
        }
    }
    let line = text[at..].lines().next().unwrap_or("");
    let first = line.split_whitespace().next().unwrap_or("");
    let Some(arch) = known(first) else {
        return Err(match first {
            "" => Diagnostic::at(Stage::Syntax, span(at, at), "this litmus test is empty")
                .note("expected an architecture and a name in the first line"),
            _ => Diagnostic::at(
                Stage::Unsupported,
                span(at, at + first.len()),
                format!("the architecture `{first}` is not supported"),
            )
            .note(format!("supported: {names}")),
        });
    };
    let Some(name) = line.split_whitespace().nth(1).map(|n| n.trim_end_matches(';')) else {
        return Err(Diagnostic::at(
            Stage::Syntax,
            span(at, at + first.len()),
            "this litmus test has no name",
        )
        .note("expected it after the architecture"));
    };
    at += first.len();
    at += text[at..].find(name).map_or(0, |i| i + name.len());
    let mut info = Vec::new();
    loop {
        let Some(&b) = bytes.get(at) else {
            let end = text.len();
            return Err(Diagnostic::at(
                Stage::Syntax,
                span(end, end),
                "expected `{` and an initial state, found the end of the text",
            ));
        };
        if let Some(end) = skip(at)? {
            at = end;
            continue;
        }
        match b {
            b'{' => return Ok(Head { arch, name: name.to_string(), info, body: at }),
            // A quoted text without a closing quote ends with its line.
            b'"' => {
                let rest = &text[at + 1..];
                let end = rest.find('"').or_else(|| rest.find('\n'));
                at = end.map_or(bytes.len(), |i| at + 1 + i + 1);
            }
            _ if b.is_ascii_whitespace() || b == b';' => at += 1,
            _ => {
                let line = text[at..].lines().next().unwrap_or("");
                let (named, length) = entry(line);
                info.extend(named);
                at += length.max(1);
                while !text.is_char_boundary(at) {
                    at += 1;
                }
            }
        }
    }
}

/// Parses a line as `key=value`, if it is one. Returns also the length to skip, because only in
/// such a line a `{` may be part of the text.
fn entry(line: &str) -> (Option<(String, String)>, usize) {
    if let Some((key, value)) = line.split_once('=') {
        let key = key.trim();
        if !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b))
        {
            return (Some((key.to_string(), value.trim().to_string())), line.len());
        }
    }
    (None, line.split('{').next().unwrap_or("").len())
}
