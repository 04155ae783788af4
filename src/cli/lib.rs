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
mod commands;
mod output;
pub mod pipeline;

pub use self::commands::typed_equations;

use self::args::exact_words::ExactWords;
use self::args::{Cli, Command, misspelling, scope};
use self::commands::dispatch;
use self::pipeline::{Session, systems};
use clap::{CommandFactory, FromArgMatches};
use mu_base::host::is_device;
use mu_base::{Diagnostic, SourceMap, Stage};
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Runs the command in the arguments of the process.
pub fn run() -> ExitCode {
    ExitCode::from(run_words(mu_base::host::exact_arguments()))
}

/// Runs the command in these words, of which the first is the program name. Returns the exit code.
pub fn run_words(words: Vec<OsString>) -> u8 {
    let (words, exact) = ExactWords::texts(words);
    let json = args::wants_json(&words);
    let mut description = Cli::command();
    if let Some(error) = misspelling::reject_misspelling(&words, &args::command_names(&description))
    {
        return misspelling::print_error(&error, json);
    }
    let words = args::with_forms_of_check(args::with_default_command(&description, words));
    let matches = description.try_get_matches_from_mut(exact.words(words));
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
    let reading = cli.command.read_options().cloned().unwrap_or_default();
    let mut session = match &cli.command {
        Command::Sweep(_) => Session::for_subprocesses(common, reading),
        // Reading anything but a file, such as a pipe, may take long.
        Command::Prove(prove) if !is_device(&prove.file) => Session::brief(common, reading),
        Command::Verify(verify)
            if [Some(&verify.file), Some(&verify.certificate), verify.of_formula.as_ref()]
                .into_iter()
                .flatten()
                .all(|path| !is_device(path)) =>
        {
            Session::brief(common, reading)
        }
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
    if matches!(
        cli.command,
        Command::Prove(_)
            | Command::Verify(_)
            | Command::Program(_)
            | Command::Robust(_)
            | Command::Compare(_)
            | Command::Solve(_)
    ) {
        output::expect_one_verdict();
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
            let format = session.common.format;
            let limited = (diagnostic.stop.as_ref())
                .and_then(|stop| output::print_limited(format, &session.budget, stop));
            if let Some(Ok(code)) = limited {
                return code;
            }
            eprint!("{}", diagnostic.render(&session.sources));
            if session.common.format == args::Format::Json {
                output::print_error(&diagnostic, &session.sources);
            }
            diagnostic.exit_code()
        }
    }
}
