//! Systems of any number of processes (`.cub`) for proofs; x86 programs as systems; exit codes
//! under a bound on store buffers.

use crate::args::TranslationArgs;
use crate::commands::threads;
use crate::pipeline::Session;
use mu_base::{Diagnostic, Stage, Stop};
use mu_cubicle::system::System;
use mu_frontends::cubicle::CUBICLE;
use mu_frontends::murphi::MURPHI;
use mu_frontends::programs::{LITMUS, X86};
use mu_frontends::{FrontEnd, Input};
use std::path::Path;

/// Reads a system.
pub(crate) fn read(session: &mut Session, path: &Path) -> Result<System, Diagnostic> {
    mu_frontends::cubicle::system(&Input::file(path), &mut session.sources)
}

/// Rejects `-D` for a system or program: a proof is for every number of processes.
pub(crate) fn expect_no_parameters(session: &Session, path: &Path) -> Result<(), Diagnostic> {
    let Some(given) = session.common.define.first() else { return Ok(()) };
    let shown = path.display();
    let (message, note) = match X86.has_ending(path) {
        true => (
            format!("`-D {given}`: a program has no parameters"),
            format!("`mu-check program {shown} --threads-of N` runs N threads"),
        ),
        false => (
            format!(
                "`-D {given}`: a proof is for every number of processes, so nothing can be set"
            ),
            format!("`mu-check explore {shown} -D processes=N` explores N processes"),
        ),
    };
    Err(Diagnostic::new(Stage::Usage, message).note(note))
}

/// Rejects a model in another language than those of a command, by the ending of its name.
/// `expected`: the command with what it reads, as a sentence.
pub(crate) fn expect_language(
    path: &Path,
    languages: &[&dyn FrontEnd],
    expected: &str,
) -> Result<(), Diagnostic> {
    let front_end = mu_frontends::by_name(path);
    let known = front_end.has_ending(path);
    if !known || languages.iter().any(|l| l.has_ending(path)) {
        return Ok(());
    }
    let shown = path.display();
    let message = format!("`{shown}` is {}; {expected}", front_end.language());
    let note = match () {
        () if MURPHI.has_ending(path) => format!(
            "`mu-check explore {shown}` checks the claims of the model for the values of its constants"
        ),
        () if LITMUS.has_ending(path) => format!("`mu-check litmus {shown}` runs the test"),
        () if CUBICLE.has_ending(path) => {
            format!("`mu-check prove {shown}` proves the system for every number of processes")
        }
        () if X86.has_ending(path) => {
            format!("`mu-check program {shown} --threads-of any` proves the program")
        }
        () if front_end.properties().mcrl2 => format!(
            "`mu-check check {shown} FORMULA -D PARAMETER=any` decides a formula for every value of a parameter"
        ),
        () => format!("`mu-check explore {shown}` and `mu-check check {shown} FORMULA` read it"),
    };
    Err(Diagnostic::new(Stage::Usage, message).note(note))
}

/// Translates an x86 program, or a Murphi model with a scalarset of any size, to a system of any
/// number of processes.
pub(crate) fn translate_file(
    session: &mut Session,
    path: &Path,
    args: &TranslationArgs,
) -> Result<mu_cubicle::ast::File, Diagnostic> {
    if MURPHI.has_ending(path) {
        let defines = session.common.define.clone();
        let name = match any_sizes(&defines)[..] {
            [name] => name.to_string(),
            _ => {
                let text = "a Murphi model is a system of any number of processes for a scalarset of any size, expected `-D NAME=any`";
                return Err(Diagnostic::new(Stage::Usage, text));
            }
        };
        let input = Input::file(path);
        let sources = &mut session.sources;
        return mu_frontends::murphi::parametric(&input, sources, &defines, &name);
    }
    if !X86.has_ending(path) {
        let message = format!(
            "`{}` is not an x86 program or a Murphi model, expected a file that ends in .asm or .m",
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

/// Returns the names of parameters with the value `any`.
pub(crate) fn any_sizes(defines: &[String]) -> Vec<&str> {
    let any = defines.iter().filter_map(|d| d.split_once('='));
    any.filter(|(_, value)| value.trim() == "any").map(|(name, _)| name.trim()).collect()
}

impl Session {
    /// True if a bound on store buffers cut transitions from a searched model.
    pub(crate) fn buffers_were_cut(&self) -> bool {
        self.buffers.iter().any(|b| b.were_cut())
    }

    /// Returns the stop reason of a search: `buffer-bound` if it is complete, but a bound on store
    /// buffers cut transitions from the model.
    pub(crate) fn stop_with_bounds(&self, stop: Stop) -> Stop {
        if stop == Stop::Complete && self.buffers_were_cut() { Stop::Buffer } else { stop }
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
