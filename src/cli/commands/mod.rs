//! The commands: each module has the name of its command, or of the group of commands on one kind
//! of file.
//!
//! In: a session and the arguments of a command. Out: an exit code; results go to the module
//! [`crate::output`].

mod chance;
pub(crate) mod check;
mod compare;
pub(crate) mod conform;
mod eval;
pub(crate) mod explore;
mod fmt;
mod game;
mod litmus;
#[cfg_attr(target_arch = "wasm32", path = "../browser/lsp.rs")]
mod lsp;
mod lts;
mod models;
mod new;
mod parameters;
mod program;
mod prove;
mod robust;
mod shell;
pub(crate) mod simulate;
#[cfg_attr(target_arch = "wasm32", path = "../browser/studio.rs")]
mod studio;
mod sweep;
pub(crate) mod threads;
mod trace;
mod translate;

pub use self::game::typed_equations;

use crate::args::Command;
use crate::output::page;
use crate::pipeline::{Session, cluster};
use mu_base::Diagnostic;

/// Runs a command.
pub(crate) fn dispatch(
    session: &mut Session,
    command: &Command,
    help: bool,
) -> Result<u8, Diagnostic> {
    match command {
        _ if help && command.model().is_some() => parameters::print_parameters(
            session,
            command.model().unwrap_or(std::path::Path::new("")),
        ),
        Command::Check(a) => check::run(session, a),
        Command::Explore(a) => explore::run(session, a),
        Command::Expand(a) => translate::expand(session, a),
        Command::Linearise(a) => translate::linearise(session, a),
        Command::Reduce(a) => lts::reduce(session, a),
        Command::Compare(a) => compare::run(session, a),
        Command::Info(a) => lts::show(session, a),
        Command::Convert(a) => lts::convert(session, a),
        Command::Pbes(a) => game::pbes(session, a),
        Command::Solve(a) => game::solve(session, a),
        Command::Sweep(a) => sweep::run(session, a),
        Command::Report(a) => page::run(session, a),
        Command::Litmus(a) => litmus::run(session, a),
        Command::Models(a) => models::run(session, a),
        Command::Conform(a) => conform::run(session, a),
        Command::Trace(a) => trace::run(session, a),
        Command::Program(a) => program::run(session, a),
        Command::Robust(a) => robust::run(session, a),
        Command::Prove(a) => prove::prove(session, a),
        Command::Verify(a) => prove::verify(session, a),
        Command::Simulate(a) => simulate::run(session, a),
        Command::New(a) => new::write_project(session, a),
        Command::Eval(a) => eval::evaluate(session, a),
        Command::Fmt(a) => fmt::run(session, a),
        Command::Lsp(_) => lsp::run(),
        Command::Studio(a) => studio::run(session, a),
        Command::Cluster(a) => cluster::across(session, a),
        Command::Completions(a) => shell::completions(a),
        Command::Manual(a) => shell::manual(a),
    }
}
