//! The command line: the only place that reads arguments and touches files and terminals.
//!
//! In: arguments. Out: results on standard output (text or one JSON object), messages on standard error, an exit code:
//! 0 all hold, 1 some formula does not, 2 bad input, 3 unknown (a limit or an interrupt), 4 internal error.

/// As the standard one, but a standard error that cannot be written to is no reason to panic.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

macro_rules! eprint {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}

pub mod args;
mod check;
mod checkpoint;
mod compare;
mod counts;
mod explore;
mod files;
mod game;
mod litmus;
mod lts;
mod output;
pub mod pipeline;
mod program;
mod progress;
mod robust;
mod shell;
mod simulate;
mod sweep;
mod symbolic;
mod translate;

use self::args::{Cli, Command};
use self::output::print;
use self::pipeline::Session;
use crate::base::Diagnostic;
use clap::Parser;
use std::process::ExitCode;

/// Runs the command of the process's arguments.
pub fn run() -> ExitCode {
    let words = args::with_default_command(std::env::args().collect());
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(e) => {
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { 2 } else { 0 });
        }
    };
    // A stack of its own: the stages grow theirs as they need, and start from a known size.
    let worker = std::thread::Builder::new().name("main".into()).stack_size(64 << 20).spawn(move || command(cli));
    match worker.map(|w| w.join()) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(_)) => {
            eprintln!("internal error: a worker panicked; the message above says where");
            ExitCode::from(4)
        }
        Err(e) => {
            eprintln!("internal error: cannot start a thread: {e}");
            ExitCode::from(4)
        }
    }
}

fn command(cli: Cli) -> u8 {
    let mut session = Session::new(cli.command.common().cloned().unwrap_or_default());
    let result: Result<u8, Diagnostic> = match &cli.command {
        Command::Check(a) => check::run(&mut session, a),
        Command::Explore(a) => explore::run(&mut session, a),
        Command::Expand(a) => translate::expand(&mut session, a),
        Command::Linearise(a) => translate::linearise(&mut session, a),
        Command::Reduce(a) => lts::reduce(&mut session, a),
        Command::Compare(a) => compare::run(&mut session, a),
        Command::Info(a) => lts::show(&mut session, a),
        Command::Convert(a) => lts::convert(&mut session, a),
        Command::Pbes(a) => game::pbes(&mut session, a),
        Command::Solve(a) => game::solve(&mut session, a),
        Command::Sweep(a) => sweep::run(&mut session, a),
        Command::Litmus(a) => litmus::run(&mut session, a),
        Command::Program(a) => program::run(&mut session, a),
        Command::Robust(a) => robust::run(&mut session, a),
        Command::Simulate(a) => simulate::run(&mut session, a),
        Command::Completions(a) => shell::completions(a),
        Command::Manual(a) => shell::manual(a),
    };
    let result = result.and_then(|code| output::timed(&session.budget).map(|()| code));
    match result {
        Ok(code) => code,
        Err(diagnostic) => {
            eprint!("{}", diagnostic.render(&session.sources));
            diagnostic.exit_code()
        }
    }
}
