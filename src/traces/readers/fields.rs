//! Named fields of a line: a row of a table with separators (RFC 4180 without quotes inside of
//! quotes), a flat JSON object (RFC 8259), or words `name=value`.
//!
//! In: a line. Out: names and values as words with their places. Linear in the line. Rejected with
//! their place: nested values and escapes of JSON, and rows with another number of fields than the
//! head of the table.

use super::lines::{Line, Word};
use mu_base::Diagnostic;

/// A name and its value. The value is empty if the field is absent or `null`.
pub type Field<'a> = (Word<'a>, Word<'a>);

/// Returns the separator of the head of a table: the first of comma, semicolon, and tab.
pub fn separator(head: &str) -> char {
    head.chars().find(|c| [',', ';', '\t'].contains(c)).unwrap_or(',')
}

/// Splits a row of a table.
///
/// # Errors
/// A quoted field that does not end, or text after it.
pub fn row<'a>(line: Line<'a>, separator: char) -> Result<Vec<Word<'a>>, Diagnostic> {
    let text = line.text;
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let inner = at + rest.len() - rest.trim_start_matches(' ').len();
        let next = if text[inner..].starts_with('"') {
            let Some(length) = text[inner + 1..].find('"') else {
                return Err(line.error(inner, "this quoted field does not end"));
            };
            words.push(Word::of(line, inner + 1, &text[inner + 1..inner + 1 + length]));
            let after = inner + length + 2;
            let end = text[after..].find(separator).map_or(text.len(), |e| after + e);
            if !text[after..end].trim().is_empty() {
                let message =
                    "text after a quoted field; quotes inside of quotes are not supported";
                return Err(line.error(after, message));
            }
            end
        } else {
            let end = text[inner..].find(separator).map_or(text.len(), |e| inner + e);
            words.push(Word::of(line, inner, text[inner..end].trim_end()));
            end
        };
        if next >= text.len() {
            return Ok(words);
        }
        at = next + separator.len_utf8();
    }
}

/// Reads a flat JSON object.
///
/// # Errors
/// Another text, with the place of the first character that does not belong.
pub fn object<'a>(line: Line<'a>) -> Result<Vec<Field<'a>>, Diagnostic> {
    let mut scan = line.scan();
    let mut fields: Vec<Field<'a>> = Vec::new();
    scan.expect("{")?;
    if scan.take("}") {
        scan.end()?;
        return Ok(fields);
    }
    loop {
        scan.expect("\"")?;
        let key = string(&mut scan)?;
        if fields.iter().any(|f| f.0.text == key.text) {
            return Err(key.error(format!("the key `{}` occurs twice", key.text)));
        }
        scan.expect(":")?;
        let value = if scan.take("\"") {
            string(&mut scan)?
        } else if scan.rest().starts_with(['{', '[']) {
            return Err(scan.expected_error("a number, a string, `true`, `false`, or `null`"));
        } else {
            let word = scan.word(&[',', '}']);
            match word.text {
                "null" => Word::of(line, word.at, ""),
                "true" | "false" => word,
                text if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => word,
                _ => {
                    return Err(
                        word.expected_error("a number, a string, `true`, `false`, or `null`")
                    );
                }
            }
        };
        fields.push((key, value));
        if scan.take("}") {
            scan.end()?;
            return Ok(fields);
        }
        scan.expect(",")?;
    }
}

/// Reads the rest of a string, after its first quote.
fn string<'a>(scan: &mut super::lines::Scanner<'a>) -> Result<Word<'a>, Diagnostic> {
    let (line, at) = (scan.line, scan.at);
    let Some(length) = scan.rest().find(['"', '\\']) else {
        return Err(line.error(at.saturating_sub(1), "this string does not end"));
    };
    if scan.rest()[length..].starts_with('\\') {
        return Err(line.error(at + length, "escapes in strings are not supported"));
    }
    scan.at += length + 1;
    Ok(Word::of(line, at, &line.text[at..at + length]))
}

/// Reads words `name=value`; other words have an empty name.
pub fn assignments<'a>(line: Line<'a>) -> Vec<Field<'a>> {
    let mut scan = line.scan();
    let mut fields = Vec::new();
    while !scan.is_done() {
        let word = scan.word(&[',', ';']);
        if word.text.is_empty() {
            scan.at += 1;
            continue;
        }
        fields.push(match word.text.split_once('=') {
            Some((name, value)) => {
                let at = word.at + name.len() + 1;
                (Word::of(line, word.at, name), Word::of(line, at, value))
            }
            None => (Word::of(line, word.at, ""), word),
        });
    }
    fields
}
