//! Text files that a user names: read as UTF-8, without a byte order mark, with the place of the first byte that is no text.

use std::path::Path;

use super::diagnostic::{Diagnostic, Stage};
use super::source::{SourceId, SourceMap, Span};

/// Text of a file, as a source of these.
///
/// # Errors
/// As [`read_text`].
pub fn read_source(path: &Path, sources: &mut SourceMap) -> Result<(SourceId, String), Diagnostic> {
    let text = read_text(path, sources)?;
    Ok((sources.add(path.display().to_string(), text.clone()), text))
}

/// Text of a file; the sources get it only where an error shows it.
///
/// # Errors
/// The file cannot be read, or is not UTF-8: then with the place of the byte.
pub fn read_text(path: &Path, sources: &mut SourceMap) -> Result<String, Diagnostic> {
    let mut bytes = crate::host::read(path).map_err(|e| file_error("cannot read", path, &e))?;
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|e| {
        let (at, byte) = (e.utf8_error().valid_up_to(), e.as_bytes()[e.utf8_error().valid_up_to()]);
        let text = String::from_utf8_lossy(e.as_bytes()).into_owned();
        let source = sources.add(path.display().to_string(), text);
        let span = match u32::try_from(at) {
            Ok(start) => Span { source, start, end: start + 1 },
            Err(_) => {
                return Diagnostic::new(Stage::File, format!("`{}`: the byte 0x{byte:02x} at {at} is not UTF-8 text", path.display()));
            }
        };
        Diagnostic::at(Stage::File, span, format!("the byte 0x{byte:02x} here is not UTF-8 text"))
            .note("the files of specifications and formulas are text in UTF-8")
    })
}

/// A file that cannot be used.
pub fn file_error(what: &str, path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::new(Stage::File, format!("{what} `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_dropped_and_other_bytes_have_places() {
        let path = std::env::temp_dir().join(format!("mu-check-files-{}", std::process::id()));
        let mut sources = SourceMap::new();
        std::fs::write(&path, b"\xef\xbb\xbfact a;").unwrap();
        assert_eq!(read_text(&path, &mut sources).unwrap(), "act a;");
        std::fs::write(&path, b"act a;\n  \xff").unwrap();
        let error = read_text(&path, &mut sources).unwrap_err();
        assert_eq!(sources.line_column(error.span.unwrap()), (2, 3));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read_text(&path, &mut sources).unwrap_err().stage, Stage::File);
    }
}
