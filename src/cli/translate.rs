//! `expand` and `linearise`: a specification as other mCRL2 text.

use super::args::{LineariseArgs, ModelArgs};
use super::pipeline::Session;
use super::print;
use crate::base::{Diagnostic, Stage};
use crate::process::linearise::Options;

/// Prints the instance as plain mCRL2, after checking that it is well typed.
pub(super) fn expand(session: &mut Session, args: &ModelArgs) -> Result<u8, Diagnostic> {
    let expanded = session.expand(&args.model)?;
    let tree = crate::syntax::parse_specification(expanded.source, &expanded.text)?;
    crate::process::typecheck::check_specification(&tree)?;
    print(&expanded.text)?;
    Ok(0)
}

/// Prints the linear process.
pub(super) fn linearise(session: &mut Session, args: &LineariseArgs) -> Result<u8, Diagnostic> {
    let mut options = Options { constants: false, duplicates: false, ..Options::default() };
    for name in &args.simplify {
        match name.as_str() {
            "constants" => options.constants = true,
            "duplicates" => options.duplicates = true,
            "all" => (options.constants, options.duplicates) = (true, true),
            "none" => {}
            other => {
                return Err(Diagnostic::new(Stage::Usage, format!("unknown simplification `{other}`"))
                    .note("expected: constants, duplicates, all, none"));
            }
        }
    }
    let process = session.linear_process(&args.model, &options)?;
    print(&crate::process::print::linear_process(&process))?;
    Ok(0)
}
