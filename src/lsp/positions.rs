//! Positions of the protocol: lines from 0, columns in UTF-16 code units. Cost: a table of line
//! starts, then linear in one line.

use mu_base::source::char_boundary;
use serde_json::{Value, json};
use std::ops::Range;

/// The starts of a text's lines.
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = (0..bytes.len()).filter(|i| {
            bytes[*i] == b'\n' || bytes[*i] == b'\r' && bytes.get(i + 1) != Some(&b'\n')
        });
        Self { starts: std::iter::once(0).chain(ends.map(|i| i + 1)).collect() }
    }

    /// Returns the line of an offset, and the offset of its start.
    pub(crate) fn line(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|s| *s <= offset).max(1) - 1;
        (line, self.starts[line])
    }

    /// Returns the position of an offset; the end of the text is allowed.
    pub(crate) fn position(&self, text: &str, offset: usize) -> Value {
        let offset = char_boundary(text, offset);
        let (line, start) = self.line(offset);
        let column: usize = text[start..offset].chars().map(char::len_utf16).sum();
        json!({ "line": line, "character": column })
    }

    pub(crate) fn range(&self, text: &str, range: &Range<usize>) -> Value {
        json!({ "start": self.position(text, range.start), "end": self.position(text, range.end) })
    }

    /// Returns the offset of a position; a column beyond the line gives its end.
    pub(crate) fn offset(&self, text: &str, position: &Value) -> Option<usize> {
        let line = usize::try_from(position.get("line")?.as_u64()?).ok()?;
        let column = usize::try_from(position.get("character")?.as_u64()?).ok()?;
        let Some(&start) = self.starts.get(line) else { return Some(text.len()) };
        let (mut at, mut units) = (start, 0);
        for c in text[start..].chars() {
            if units >= column || c == '\n' || c == '\r' {
                break;
            }
            units += c.len_utf16();
            at += c.len_utf8();
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_utf16() {
        let text = "a𝔽b\r\né;\n";
        let lines = Lines::new(text);
        let at = |line: usize, character: usize| {
            lines.offset(text, &json!({ "line": line, "character": character }))
        };
        assert_eq!(
            [at(0, 0), at(0, 1), at(0, 3), at(0, 99), at(1, 1), at(2, 0), at(9, 9)]
                .map(Option::unwrap),
            [0, 1, 5, 6, 10, 12, 12]
        );
        assert_eq!(lines.position(text, 5), json!({ "line": 0, "character": 3 }));
        assert_eq!(lines.position(text, 3), json!({ "line": 0, "character": 1 }));
        assert_eq!(lines.position(text, 12), json!({ "line": 2, "character": 0 }));
        assert_eq!(lines.offset(text, &json!({ "line": -1, "character": 0 })), None);
    }
}
