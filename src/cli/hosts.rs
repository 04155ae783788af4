//! `cluster run HOSTS -- explore … | check …`: what each host of a list is to run, printed or
//! started.
//!
//! In: a list of hosts as `--cluster` reads it, a command without options of several processes.
//! Out: one line for each process; with `--start` they are given to `ssh`, or what `--shell` names,
//! and the result is that of process 0. A secret that does not exist is written.
//!
//! Invariants: what is started is what is printed, and ends when its standard input does, which
//! this command holds: so nothing that it has started on a host outlives it, or waits there for a
//! host that cannot be reached. A process that ends before the first one is named, and the others
//! are ended.

use super::args::{Cli, ClusterArgs, ClusterCommand, ClusterRunArgs, Command as Words};
use super::cluster::hosts;
use super::output::{self, shell_quoted};
use super::pipeline::{Session, file_error};
use clap::Parser;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage};
use mu_cluster::Secret;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Time for process 0 to end by itself when another has ended, and for the others after it.
const GRACE: Duration = Duration::from_secs(15);
/// The same when another was never there: nobody comes of a search then.
const NO_GRACE: Duration = Duration::from_millis(300);
/// Time for processes on other hosts to end when their standard input does.
const FAREWELL: Duration = Duration::from_secs(5);
/// Exit codes of shells: the program cannot be run, there is none; of `ssh`: the host cannot be
/// reached.
const UNUSABLE: i32 = 126;
const MISSING: i32 = 127;
const UNREACHABLE: i32 = 255;
/// Options that this command gives.
const OURS: [&str; 6] =
    ["--cluster", "--process", "--secret", "--processes", "--listen", "--end-with-input"];

/// Runs the command.
pub(super) fn run(session: &Session, args: &ClusterArgs) -> Result<u8, Diagnostic> {
    let ClusterCommand::Run(args) = &args.command;
    let lines = lines(args, if args.start { " --end-with-input" } else { "" })?;
    if !args.start {
        let shell = |(host, line): &(String, String)| {
            format!("{} {} {}\n", args.shell, shell_quoted(host), shell_quoted(line))
        };
        output::print(&lines.iter().map(shell).collect::<String>())?;
        return Ok(0);
    }
    let mut started = Started::default();
    for (me, (host, line)) in lines.iter().enumerate() {
        started.start(me, host, line, &args.shell)?;
    }
    started.end(&|| session.budget.check(0).is_err())
}

/// By process: its host, and what to run there, with one more option.
fn lines(args: &ClusterRunArgs, more: &str) -> Result<Vec<(String, String)>, Diagnostic> {
    let usage = |message: String| Diagnostic::new(Stage::Usage, message);
    let is = |word: &str, option: &str| {
        word == option || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
    };
    if let Some(word) = args.words.iter().find(|w| OURS.iter().any(|o| is(w, o))) {
        return Err(usage(format!("`{word}` after `--`: `cluster run` gives it to each process")));
    }
    let words = std::iter::once("mu-check").chain(args.words.iter().map(String::as_str));
    let given = Cli::try_parse_from(words).map_err(|e| {
        let text = e.to_string();
        let first = text.lines().next().unwrap_or_default();
        usage(format!("after `--`: {}", first.strip_prefix("error: ").unwrap_or(first)))
    })?;
    if !matches!(given.command, Words::Explore(_) | Words::Check(_)) {
        return Err(usage(format!(
            "`{}` is not done by several processes: expected `explore` or `check` after `--`",
            args.words[0]
        )));
    }
    let addresses = hosts(&args.hosts)?;
    let secret = match &args.secret {
        Some(path) => path.clone(),
        None => args.hosts.with_file_name("secret"),
    };
    if !secret.exists() {
        write_secret(&secret)?;
    }
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(|e| file_error("cannot read", path, &e));
    let shown = |path: &Path| shell_quoted(&path.display().to_string());
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => std::env::current_dir()
            .map_err(|e| Diagnostic::internal(format!("there is no current folder: {e}")))?,
    };
    let command: Vec<String> = args.words.iter().map(|w| shell_quoted(w)).collect();
    let (list, secret) = (shown(&absolute(&args.hosts)?), shown(&absolute(&secret)?));
    let line = |me: usize| {
        format!(
            "cd {} && {} {} --cluster {list} --secret {secret} --process {me}{more}",
            shown(&folder),
            shell_quoted(&args.program),
            command.join(" ")
        )
    };
    let host = |address: &str| {
        address.rsplit_once(':').map_or(address, |a| a.0).trim_matches(['[', ']']).to_string()
    };
    Ok(addresses.iter().enumerate().map(|(me, address)| (host(address), line(me))).collect())
}

/// Writes a random secret that only its owner reads.
fn write_secret(path: &Path) -> Result<(), Diagnostic> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let text = Secret::random()?.text();
    let written = options.open(path).and_then(|mut file| writeln!(file, "{text}"));
    written.map_err(|e| file_error("cannot write", path, &e))
}

/// The processes that were started; what is left of them ends with this.
#[derive(Default)]
struct Started(Vec<(String, Child)>);

impl Started {
    fn start(&mut self, me: usize, host: &str, line: &str, shell: &str) -> Result<(), Diagnostic> {
        let mut words = shell.split_whitespace();
        let program = words
            .next()
            .ok_or_else(|| Diagnostic::new(Stage::Usage, "`--shell` names no program"))?;
        let mut command = Command::new(program);
        command.args(words).arg(host).arg(line).stdin(Stdio::piped()).stderr(Stdio::piped());
        command.stdout(if me == 0 { Stdio::inherit() } else { Stdio::null() });
        let unstarted = |e| {
            Diagnostic::new(
                Stage::File,
                format!("cannot start `{program}` for process {me} at {host}: {e}"),
            )
        };
        let mut child = command.spawn().map_err(unstarted)?;
        if let Some(err) = child.stderr.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(err).lines().map_while(Result::ok) {
                    if me == 0 { eprintln!("{line}") } else { eprintln!("process {me}: {line}") }
                }
            });
        }
        self.0.push((host.to_string(), child));
        Ok(())
    }

    /// Waits for process 0; its exit code.
    fn end(&mut self, is_over: &dyn Fn() -> bool) -> Result<u8, Diagnostic> {
        let mut ended: Option<(Instant, usize, ExitStatus)> = None;
        let code = loop {
            if let Some((_, first)) = self.0.first_mut()
                && let Ok(Some(status)) = first.try_wait()
            {
                match status.code().and_then(|c| u8::try_from(c).ok()) {
                    Some(code @ 0..=4) => break code,
                    _ => return Err(lost(0, &self.0[0].0, status)),
                }
            }
            if ended.is_none() {
                let over = self.0.iter_mut().enumerate().skip(1).find_map(|(me, (_, child))| {
                    let status = child.try_wait().ok().flatten()?;
                    // A false formula and a limit are ends like others.
                    (!matches!(status.code(), Some(0 | 1 | 3)))
                        .then(|| (Instant::now(), me, status))
                });
                ended = over;
            }
            match &ended {
                // The first one may be about to end as well, and says more.
                Some((since, me, status)) if since.elapsed() > grace(*status) => {
                    return Err(lost(*me, &self.0[*me].0, *status));
                }
                _ if is_over() => return Ok(3),
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        self.await_others(GRACE);
        Ok(code)
    }

    /// Waits until all have ended, for a while.
    fn await_others(&mut self, most: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < most
            && self.0.iter_mut().any(|(_, child)| matches!(child.try_wait(), Ok(None)))
        {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// How long the first process may take to end when another has ended so.
fn grace(status: ExitStatus) -> Duration {
    if matches!(status.code(), Some(UNUSABLE | MISSING | UNREACHABLE)) { NO_GRACE } else { GRACE }
}

fn lost(me: usize, host: &str, status: ExitStatus) -> Diagnostic {
    let error =
        Diagnostic::new(Stage::File, format!("process {me} at {host}: it ended with {status}"));
    match status.code() {
        Some(UNUSABLE | MISSING) => error.note(
            "the program is not found there, or cannot be run: `--program PATH` says where it is",
        ),
        Some(UNREACHABLE) => {
            error.note("that is how `ssh` ends when it cannot reach a host or is not let in")
        }
        _ => error,
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // What runs on another host ends with its standard input; to kill what leads there would
        // not end it.
        self.0.iter_mut().for_each(|(_, child)| drop(child.stdin.take()));
        self.await_others(FAREWELL);
        for (_, child) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
