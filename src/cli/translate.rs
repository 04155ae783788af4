//! `expand` and `linearise`: a specification as other mCRL2 text.

use super::args::{ExpandArgs, LineariseArgs};
use super::pipeline::Session;
use super::print;
use super::program::{is_program, read_any};
use crate::base::{Diagnostic, Stage};
use crate::process::linearise::Options;
use crate::program::expansion::mcrl2;
use crate::program::machine::Machine;

/// Prints the instance, or the program with its memory, as plain mCRL2, after checking that it is well typed.
pub(super) fn expand(session: &mut Session, args: &ExpandArgs) -> Result<u8, Diagnostic> {
    let (source, text) = if is_program(&args.file) {
        session.expect_no_parameters(&args.file)?;
        let program = read_any(session, &args.file, args.threads_of)?;
        let bound = program.buffer_bound(args.memory.buffer);
        let text = mcrl2(&Machine::new(program, args.memory.model.model(), bound, &[]));
        (session.sources.add(format!("{} as mCRL2", args.file.display()), text.clone()), text)
    } else {
        let expanded = session.expand(&args.file)?;
        (expanded.source, expanded.text)
    };
    let tree = crate::syntax::parse_specification(source, &text)?;
    crate::process::typecheck::check_specification(&tree)?;
    print(&text)?;
    Ok(0)
}

/// Prints the linear process.
pub(super) fn linearise(session: &mut Session, args: &LineariseArgs) -> Result<u8, Diagnostic> {
    let mut options = Options::plain();
    for name in &args.simplify {
        match name.as_str() {
            "default" => {
                let mut defaults = Options::default();
                for name in Options::SIMPLIFICATIONS {
                    if let (Some(on), Some(switch)) = (defaults.simplification(name).map(|on| *on), options.simplification(name)) {
                        *switch |= on;
                    }
                }
            }
            "all" => options = options.with_all(true),
            "none" => {}
            other => match options.simplification(other) {
                Some(switch) => *switch = true,
                None => {
                    return Err(Diagnostic::new(Stage::Usage, format!("unknown simplification `{other}`"))
                        .note(format!("expected: {}, default, all, none", Options::SIMPLIFICATIONS.join(", "))));
                }
            },
        }
    }
    let process = session.linear_process(&args.model, &options)?;
    print(&crate::process::print::linear_process(&process))?;
    Ok(0)
}
