//! Systems of any number of processes (`.cub`) for proofs; x86 programs as systems; exit codes
//! under a bound on store buffers.

use crate::args::TranslationArgs;
use crate::commands::threads;
use crate::pipeline::Session;
use mu_base::{Diagnostic, Stage};
use mu_cubicle::system::System;
use mu_frontends::programs::X86;
use mu_frontends::{FrontEnd as _, Input};
use std::path::Path;

/// Reads a system.
pub(crate) fn read(session: &mut Session, path: &Path) -> Result<System, Diagnostic> {
    mu_frontends::cubicle::system(&Input::file(path), &mut session.sources)
}

/// Translates an x86 program to a system of any number of processes.
pub(crate) fn translated(
    session: &mut Session,
    path: &Path,
    args: &TranslationArgs,
) -> Result<mu_cubicle::ast::File, Diagnostic> {
    if !X86.has_ending(path) {
        let message = format!(
            "`{}` is not an x86 program, expected a file that ends in .asm",
            path.display()
        );
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    let translated = threads::translate(session, path, args, threads::NumberTreatment::Bounded)?;
    let file = translated.translation.file;
    let columns = mu_cubicle::x86::columns(&file);
    session.log(format!(
        "{} registers, {} weak variables, {} transitions",
        columns.registers, columns.weak, columns.transitions
    ));
    Ok(file)
}

impl Session {
    /// True if a bound on store buffers cut transitions from a searched model.
    pub(crate) fn buffers_were_cut(&self) -> bool {
        self.buffers.iter().any(|b| b.were_cut())
    }
}

/// Returns the exit code if a bound on store buffers may have cut transitions: success becomes
/// unknown, unless the command has already decided that.
pub(crate) fn exit_code_with_bounds(session: &Session, code: u8, decided: bool) -> u8 {
    if !session.buffers_were_cut() {
        return code;
    }
    eprintln!(
        "warning: a store buffer was full; behaviour that needs more capacity was not searched (--buffer)"
    );
    if code == 0 && !decided { 3 } else { code }
}
