//! The command line: the only place that reads arguments and touches files and terminals.
//!
//! In: arguments. Out: results on standard output (text or one JSON object), messages on standard
//! error, an exit code: 0 all hold, 1 some formula does not, 2 bad input, 3 unknown (a limit or an
//! interrupt), 4 internal error.
#![warn(missing_docs)]

/// As the standard one, but a standard error that cannot be written to is no reason to panic.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(mu_base::host::err(), $($text)*);
    }};
}

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
mod by_equations;
mod chance;
mod check;
mod checkpoint;
#[cfg_attr(not(feature = "cluster"), path = "without_cluster.rs")]
mod cluster;
mod compare;
mod component_samples;
mod confirm;
mod conform;
mod counts;
mod engines;
mod explore;
mod files;
mod first;
mod fmt;
mod folder_lock;
mod game;
#[cfg(feature = "cluster")]
mod hosts;
mod instances;
mod litmus;
mod load;
#[cfg_attr(target_arch = "wasm32", path = "browser/lsp.rs")]
mod lsp;
mod lts;
mod memory;
mod models;
mod notes;
mod output;
mod page;
mod picture;
pub mod pipeline;
#[cfg_attr(target_arch = "wasm32", path = "browser/process.rs")]
mod process;
mod program;
mod progress;
mod proof_samples;
mod properties;
mod prove;
mod quantity;
mod readers;
mod refuted;
mod robust;
mod sampled;
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
mod translate;
mod unbounded;
mod ways;

pub use self::game::typed_equations;

use self::args::{Cli, Command};
use self::output::print;
use self::pipeline::Session;
use clap::{CommandFactory, FromArgMatches};
use mu_base::{Diagnostic, SourceMap, Stage};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Runs the command of the process's arguments.
pub fn run() -> ExitCode {
    ExitCode::from(run_words(mu_base::host::arguments()))
}

/// Runs the command of these words, the program's name first: its exit code.
pub fn run_words(words: Vec<String>) -> u8 {
    let json = args::wants_json(&words);
    let mut description = Cli::command();
    if let Some(refusal) = first::mistyped(&words, &args::command_names(&description)) {
        return first::refused(&refusal, json);
    }
    let words = args::with_forms_of_check(args::with_default_command(&description, words));
    let matches = description.try_get_matches_from_mut(words);
    let named = matches.as_ref().map(scope::Named::of).unwrap_or_default();
    let parsed =
        matches.and_then(|m| Cli::from_arg_matches(&m)).map_err(|e| e.format(&mut description));
    std::mem::forget(description);
    let cli = match parsed {
        Ok(cli) => cli,
        Err(e) => {
            say(&e);
            if json && e.use_stderr() {
                let text = e.to_string();
                let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
                let first = lines.next().unwrap_or_default();
                let refused =
                    Diagnostic::new(Stage::Usage, first.strip_prefix("error: ").unwrap_or(first));
                output::error(&lines.fold(refused, Diagnostic::note), &SourceMap::new());
            }
            return if e.use_stderr() { 2 } else { 0 };
        }
    };
    // A stack of its own: the stages grow theirs as they need, and start from a known size. No
    // thread: waking one takes as long as a small run. Systems of any number of processes nest
    // to a known depth, and their proofs may be shorter than a stack takes to make.
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
            eprintln!("internal error: a worker panicked; the message above says where");
            4
        }
    }
}

/// Prints what is wrong with the words, or the help that they ask for.
fn say(e: &clap::Error) {
    use std::io::Write as _;
    let _ = match e.use_stderr() {
        _ if !mu_base::host::IS_PAGE => e.print(),
        true => write!(mu_base::host::err(), "{}", e.render()),
        false => write!(mu_base::host::out(), "{}", e.render()),
    };
}

fn command(cli: Cli, named: &scope::Named) -> u8 {
    let common = cli.command.common().cloned().unwrap_or_default();
    let reading = cli.command.reading().cloned().unwrap_or_default();
    let mut session = match &cli.command {
        Command::Sweep(_) => Session::of_processes(common, reading),
        Command::Prove(_) | Command::Verify(_) => Session::brief(common, reading),
        _ => Session::new(common, reading),
    };
    let help = session.common.define.iter().any(|d| d == "help");
    if !help
        && matches!(
            cli.command,
            Command::Check(_) | Command::Explore(_) | Command::Litmus(_) | Command::Conform(_)
        )
    {
        output::command();
    }
    if let Some(model) = cli.command.model() {
        output::model(model);
    }
    let result = scope::expect_effect(&cli.command, named)
        .and_then(|()| dispatch(&mut session, &cli.command, help));
    // Each verdict of a check says by itself whether a bound may have changed it.
    let decided = matches!(&cli.command, Command::Check(a) if !a.formulas.is_empty() || !a.formula.is_empty());
    let result = result.map(|code| systems::bounded(&session, code, decided));
    let result = result.and_then(|code| output::timed(&session.budget).map(|()| code));
    match result {
        Ok(code) => code,
        Err(diagnostic) => {
            eprint!("{}", diagnostic.render(&session.sources));
            if session.common.format == args::Format::Json {
                output::error(&diagnostic, &session.sources);
            }
            diagnostic.exit_code()
        }
    }
}

/// Runs a command.
fn dispatch(session: &mut Session, command: &Command, help: bool) -> Result<u8, Diagnostic> {
    match command {
        _ if help && command.model().is_some() => {
            first::parameters(session, command.model().unwrap_or(std::path::Path::new("")))
        }
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
        Command::Program(a) => program::run(session, a),
        Command::Robust(a) => robust::run(session, a),
        Command::Prove(a) => prove::prove(session, a),
        Command::Verify(a) => prove::verify(session, a),
        Command::Simulate(a) => simulate::run(session, a),
        Command::New(a) => first::new(session, a),
        Command::Eval(a) => first::eval(session, a),
        Command::Fmt(a) => fmt::run(session, a),
        Command::Lsp(_) => lsp::run(),
        Command::Studio(a) => studio::run(session, a),
        Command::Cluster(a) => cluster::across(session, a),
        Command::Completions(a) => shell::completions(a),
        Command::Manual(a) => shell::manual(a),
    }
}
