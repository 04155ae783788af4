//! Case-insensitive comparison of file name extensions, for all layers.

use std::path::Path;

/// Returns the extension of a file name in lower case, without its dot; `None` if it has none.
pub fn file_extension(path: &Path) -> Option<String> {
    path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase())
}

/// True if the name of a file ends in a dot and `wanted`, which is in lower case.
pub fn ends_in(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(wanted))
}
