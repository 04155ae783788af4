//! Replacement of `lsp` in a browser: the page communicates with the server by messages, not by
//! streams.

use mu_base::{Diagnostic, Stage};

/// Rejects the command.
pub(crate) fn run() -> Result<u8, Diagnostic> {
    Err(Diagnostic::new(
        Stage::Unsupported,
        "a page has no streams for a language server; it has its own server",
    ))
}
