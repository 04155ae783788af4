//! Replacement of the terminal interface of `simulate` without a terminal.

use super::interpreter::{Interpreter, Reply};
use crate::pipeline::Session;
use mu_base::{Diagnostic, Stage};

/// Rejects the command.
pub(super) fn in_terminal(
    _: &mut Session,
    _: Interpreter,
    _: Option<&Reply>,
) -> Result<u8, Diagnostic> {
    Err(Diagnostic::new(Stage::Unsupported, "a page has no terminal to simulate in"))
}
