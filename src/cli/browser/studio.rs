//! Replacement of `studio` in a browser, where the page already exists.

use crate::args::StudioArgs;
use crate::pipeline::Session;
use mu_base::{Diagnostic, Stage};

/// Rejects the command.
pub(crate) fn run(_: &Session, _: &StudioArgs) -> Result<u8, Diagnostic> {
    Err(Diagnostic::new(Stage::Unsupported, "a page in a browser cannot serve another page"))
}
