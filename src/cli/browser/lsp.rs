//! What `lsp` says in a browser: the page talks to the server by messages, not by streams.

use mu_base::{Diagnostic, Stage};

/// Refuses.
pub(super) fn run() -> Result<u8, Diagnostic> {
    Err(Diagnostic::new(
        Stage::Unsupported,
        "a page has no streams for a language server to talk on; it has one of its own",
    ))
}
