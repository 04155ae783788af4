//! What `studio` says in a browser: the page is there already.

use super::args::StudioArgs;
use super::pipeline::Session;
use mu_base::{Diagnostic, Stage};

/// Refuses.
pub(super) fn run(_: &Session, _: &StudioArgs) -> Result<u8, Diagnostic> {
    Err(Diagnostic::new(Stage::Unsupported, "a page in a browser cannot serve another"))
}
