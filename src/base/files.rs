//! Text files that a user names: read as UTF-8, without a byte order mark. Errors have the place of
//! the first byte that is not UTF-8.

use std::path::Path;

use super::diagnostic::{Diagnostic, Stage};
use super::source::{SourceId, SourceMap};

/// The byte order mark of UTF-8, which some editors write at the beginning of a text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Number of bytes that a message shows of a line, from the first byte that is not UTF-8; the rest
/// is left out.
const MAX_SHOWN: usize = 80;

/// Reads a text file and adds it to the sources.
///
/// # Errors
/// As [`read_text`].
pub fn read_source(path: &Path, sources: &mut SourceMap) -> Result<(SourceId, String), Diagnostic> {
    let text = read_text(path)?;
    Ok((sources.add(path.display().to_string(), text.clone()), text))
}

/// Reads a text file.
///
/// # Errors
/// The file cannot be read, or is not UTF-8. The diagnostic contains the file name and the line of
/// the first invalid byte, so it needs no [`SourceMap`].
pub fn read_text(path: &Path) -> Result<String, Diagnostic> {
    let mut bytes = crate::host::read(path).map_err(|e| file_error("cannot read", path, &e))?;
    drop_byte_order_mark(&mut bytes);
    decode(bytes, &path.display().to_string(), 1)
}

/// Removes a byte order mark from the beginning of a text.
pub fn drop_byte_order_mark(bytes: &mut Vec<u8>) {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
}

/// Decodes bytes that begin at line `first_line` of the file `name`.
///
/// # Errors
/// The bytes are not UTF-8: with the line and column of the first invalid byte.
pub fn decode(bytes: Vec<u8>, name: &str, first_line: u64) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|e| {
        let (bytes, at) = (e.as_bytes(), e.utf8_error().valid_up_to());
        let start = bytes[..at].iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        let end = bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n);
        let number = bytes[..start].iter().filter(|b| **b == b'\n').count() as u64 + first_line;
        let column = String::from_utf8_lossy(&bytes[start..at]).chars().count() + 1;
        let shown = String::from_utf8_lossy(&bytes[start..end.min(at + MAX_SHOWN)]).into_owned();
        let message = format!("the byte 0x{:02x} here is not UTF-8 text", bytes[at]);
        Diagnostic::in_line(Stage::File, number, column, shown, message)
            .in_file(name)
            .note("text files are read in UTF-8")
    })
}

/// Creates the error for a file that cannot be used. `what`: the failure, such as `cannot read`.
pub fn file_error(what: &str, path: &Path, error: &std::io::Error) -> Diagnostic {
    let found = Diagnostic::new(Stage::File, format!("{what} `{}`: {error}", path.display()));
    if path == Path::new("-") {
        return found.note("`-` is no file here; the file `/dev/stdin` is standard input");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_dropped_and_invalid_bytes_have_places() {
        let path = std::env::temp_dir().join(format!("mu-check-files-{}", std::process::id()));
        std::fs::write(&path, b"\xef\xbb\xbfact a;").unwrap();
        assert_eq!(read_text(&path).unwrap(), "act a;");
        std::fs::write(&path, b"act a;\n  \xff").unwrap();
        let error = read_text(&path).unwrap_err();
        let line = error.line.unwrap();
        assert_eq!((line.number, line.column), (2, 3));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read_text(&path).unwrap_err().stage, Stage::File);
    }
}
