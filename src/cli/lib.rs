//! Command-line interface: the only layer that reads arguments and accesses files and terminals.
//!
//! In: arguments. Out: results on standard output (text or one JSON object), messages on standard
//! error, and an exit code: 0 all formulas hold, 1 some formula does not, 2 bad input, 3 unknown (a
//! limit or an interrupt), 4 internal error.
#![warn(missing_docs)]

/// Like the standard macro, but does not panic if standard error cannot be written.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(mu_base::host::err(), $($text)*);
    }};
}

/// Like the standard macro, but does not panic if standard error cannot be written.
macro_rules! eprint {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(mu_base::host::err(), $($text)*);
    }};
}

pub mod args;
#[cfg(target_arch = "wasm32")]
pub mod browser;
mod begun;
mod bound_names;
mod chance;
mod check;
mod checkpoint;
#[cfg_attr(not(feature = "cluster"), path = "without_cluster.rs")]
mod cluster;
mod compare;
mod confirm;
mod conform;
mod counts;
mod engines;
mod eval;
mod exploration;
mod explore;
mod find_path;
mod files;
mod fmt;
mod folder_lock;
mod game;
#[cfg(feature = "cluster")]
mod hosts;
mod litmus;
mod load;
#[cfg_attr(target_arch = "wasm32", path = "browser/lsp.rs")]
mod lsp;
mod lts;
mod memory;
mod misspelling;
mod models;
mod murphi;
mod new;
mod notes;
mod output;
mod page;
mod parameters;
mod picture;
pub mod pipeline;
#[cfg_attr(target_arch = "wasm32", path = "browser/process.rs")]
mod process;
mod program;
mod progress;
mod proof_samples;
mod properties;
mod prove;
mod refuted;
mod robust;
mod scope;
#[cfg(feature = "cluster")]
mod shares;
mod shell;
mod simulate;
#[cfg_attr(target_arch = "wasm32", path = "browser/studio.rs")]
mod studio;
mod sweep;
mod systems;
mod threads;
mod trace;
mod translate;

pub use self::game::typed_equations;

use self::args::{Cli, Command};
use self::output::print;
use self::pipeline::Session;
use clap::{CommandFactory, FromArgMatches};
use mu_base::{Diagnostic, SourceMap, Stage};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Runs the command in the arguments of the process.
pub fn run() -> ExitCode {
    ExitCode::from(run_words(mu_base::host::arguments()))
}

/// Runs the command in these words, of which the first is the program name. Returns the exit code.
pub fn run_words(words: Vec<String>) -> u8 {
    let json = args::wants_json(&words);
    let mut description = Cli::command();
    if let Some(error) = misspelling::reject_misspelling(&words, &args::command_names(&description))
    {
        return misspelling::print_error(&error, json);
    }
    let words = args::with_forms_of_check(args::with_default_command(&description, words));
    let matches = description.try_get_matches_from_mut(words);
    let named = matches.as_ref().map(scope::GivenOptions::of).unwrap_or_default();
    let parsed =
        matches.and_then(|m| Cli::from_arg_matches(&m)).map_err(|e| e.format(&mut description));
    std::mem::forget(description);
    let cli = match parsed {
        Ok(cli) => cli,
        Err(e) => {
            print_usage(&e);
            if json && e.use_stderr() {
                let text = e.to_string();
                let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
                let first = lines.next().unwrap_or_default();
                let error =
                    Diagnostic::new(Stage::Usage, first.strip_prefix("error: ").unwrap_or(first));
                output::print_error(&lines.fold(error, Diagnostic::note), &SourceMap::new());
            }
            return if e.use_stderr() { 2 } else { 0 };
        }
    };
    // Run on a separate stack, so that recursion starts from a known size and grows as needed. A
    // new thread would be slower: waking one takes as long as a small run. `prove` and `verify`
    // recurse to a known depth and can be faster than the allocation of a stack.
    let shallow = matches!(cli.command, Command::Prove(_) | Command::Verify(_));
    match catch_unwind(AssertUnwindSafe(|| {
        if shallow {
            command(cli, &named)
        } else {
            stacker::grow(64 << 20, || command(cli, &named))
        }
    })) {
        Ok(code) => code,
        Err(_) => {
            eprintln!("internal error: a worker panicked; see the message above");
            4
        }
    }
}

/// Prints a usage error, or the help that the user requested.
fn print_usage(e: &clap::Error) {
    use std::io::Write as _;
    let _ = match e.use_stderr() {
        _ if !mu_base::host::IS_PAGE => e.print(),
        true => write!(mu_base::host::err(), "{}", e.render()),
        false => write!(mu_base::host::out(), "{}", e.render()),
    };
}

/// Creates the session, runs the command and prints its error. Returns the exit code.
fn command(cli: Cli, named: &scope::GivenOptions) -> u8 {
    let common = cli.command.common().cloned().unwrap_or_default();
    let reading = cli.command.reading().cloned().unwrap_or_default();
    let mut session = match &cli.command {
        Command::Sweep(_) => Session::for_subprocesses(common, reading),
        Command::Prove(_) | Command::Verify(_) => Session::brief(common, reading),
        _ => Session::new(common, reading),
    };
    let help = session.common.define.iter().any(|d| d == "help");
    if !help
        && matches!(
            cli.command,
            Command::Check(_)
                | Command::Explore(_)
                | Command::Litmus(_)
                | Command::Conform(_)
                | Command::Trace(_)
        )
    {
        output::record_command();
    }
    if let Some(model) = cli.command.model() {
        output::record_model(model);
    }
    let result = scope::expect_effect(&cli.command, named)
        .and_then(|()| dispatch(&mut session, &cli.command, help));
    // Each verdict of `check` already reports if a bound may have changed it.
    let decided = matches!(&cli.command, Command::Check(a) if !a.formulas.is_empty() || !a.formula.is_empty());
    let result = result.map(|code| systems::exit_code_with_bounds(&session, code, decided));
    let result = result.and_then(|code| output::write_timings(&session.budget).map(|()| code));
    match result {
        Ok(code) => code,
        Err(diagnostic) => {
            eprint!("{}", diagnostic.render(&session.sources));
            if session.common.format == args::Format::Json {
                output::print_error(&diagnostic, &session.sources);
            }
            diagnostic.exit_code()
        }
    }
}

/// Runs a command.
fn dispatch(session: &mut Session, command: &Command, help: bool) -> Result<u8, Diagnostic> {
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
