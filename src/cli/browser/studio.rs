//! Replacement of `studio` in a browser, where the page already exists.

use super::args::StudioArgs;
use super::pipeline::Session;
use mu_base::{Diagnostic, Stage};

/// Rejects the command.
pub(super) fn run(_: &Session, _: &StudioArgs) -> Result<u8, Diagnostic> {
    Err(Diagnostic::new(Stage::Unsupported, "a page in a browser cannot serve another page"))
}
