//! Commands for the hosts of a cluster, printed or started (`cluster run HOSTS -- explore … | check
//! …`).
//!
//! In: a list of hosts in the format of `--cluster`, and a command without options of distributed
//! search. Out: one command line per process. With `--start`, the lines are run by `ssh` or the
//! program of `--shell`, and the result is that of process 0. A secret is created if missing.
//!
//! Invariants: the started command lines are the printed ones, plus an option by which each process
//! ends with its standard input. This command holds these inputs, so nothing that it started on a
//! host outlives it or waits for a host that cannot be reached. If a process ends before process 0,
//! it is named, and the others are ended.

use crate::args::{Cli, ClusterArgs, ClusterCommand, ClusterRunArgs, Command as Words};
use crate::output::{self, shell_quoted};
use crate::pipeline::cluster::hosts;
use crate::pipeline::{Session, file_error};
use clap::Parser;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage};
use mu_cluster::Secret;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Time for process 0 to end by itself after another process has ended, and for the others after
/// it.
const GRACE: Duration = Duration::from_secs(15);
/// The same if another process never started: the search cannot succeed.
const NO_GRACE: Duration = Duration::from_millis(300);
/// Time for processes on other hosts to end after their standard input has ended.
const CLOSE_TIME: Duration = Duration::from_secs(5);
/// Exit codes of shells: the program cannot be run; it does not exist. Exit code of `ssh`: the host
/// cannot be reached.
const UNUSABLE: i32 = 126;
const MISSING: i32 = 127;
const UNREACHABLE: i32 = 255;
/// Options that this command adds itself.
const OWN_OPTIONS: [&str; 6] =
    ["--cluster", "--process", "--secret", "--processes", "--listen", "--end-with-input"];

/// Runs the command.
pub(crate) fn run(session: &Session, args: &ClusterArgs) -> Result<u8, Diagnostic> {
    let ClusterCommand::Run(args) = &args.command;
    let lines = lines(args, if args.start { " --end-with-input" } else { "" })?;
    if !args.start {
        let shell = |(host, line): &(String, String)| {
            format!("{} {} {}\n", args.shell, shell_quoted(host), shell_quoted(line))
        };
        output::print(&lines.iter().map(shell).collect::<String>())?;
        return Ok(0);
    }
    let mut started = StartedProcesses::default();
    for (me, (host, line)) in lines.iter().enumerate() {
        started.start(me, host, line, &args.shell)?;
    }
    started.end(&|| session.budget.check(0).is_err())
}

/// Returns for each process its host and its command line, with the options `more` added.
fn lines(args: &ClusterRunArgs, more: &str) -> Result<Vec<(String, String)>, Diagnostic> {
    let usage = |message: String| Diagnostic::new(Stage::Usage, message);
    let is = |word: &str, option: &str| {
        word == option || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
    };
    if let Some(word) = args.words.iter().find(|w| OWN_OPTIONS.iter().any(|o| is(w, o))) {
        return Err(usage(format!(
            "`{word}` after `--`: `cluster run` adds this option to each process"
        )));
    }
    let words = std::iter::once("mu-check").chain(args.words.iter().map(String::as_str));
    let given = Cli::try_parse_from(words).map_err(|e| {
        let text = e.to_string();
        let first = text.lines().next().unwrap_or_default();
        usage(format!("after `--`: {}", first.strip_prefix("error: ").unwrap_or(first)))
    })?;
    if !matches!(given.command, Words::Explore(_) | Words::Check(_)) {
        return Err(usage(format!(
            "`{}` cannot be distributed: expected `explore` or `check` after `--`",
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

/// Writes a random secret that only its owner can read.
fn write_secret(path: &Path) -> Result<(), Diagnostic> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let text = Secret::random()?.text();
    let written = options.open(path).and_then(|mut file| writeln!(file, "{text}"));
    written.map_err(|e| file_error("cannot write", path, &e))
}

/// The started processes; dropping this value ends them.
#[derive(Default)]
struct StartedProcesses(Vec<(String, Child)>);

impl StartedProcesses {
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

    /// Waits for process 0. Returns its exit code.
    fn end(&mut self, is_over: &dyn Fn() -> bool) -> Result<u8, Diagnostic> {
        let mut ended: Option<(Instant, usize, ExitStatus)> = None;
        let code = loop {
            if let Some((_, first)) = self.0.first_mut()
                && let Ok(Some(status)) = first.try_wait()
            {
                match status.code().and_then(|c| u8::try_from(c).ok()) {
                    Some(code @ 0..=4) => break code,
                    _ => return Err(host_error(0, &self.0[0].0, status)),
                }
            }
            if ended.is_none() {
                let over = self.0.iter_mut().enumerate().skip(1).find_map(|(me, (_, child))| {
                    let status = child.try_wait().ok().flatten()?;
                    // A false formula and a limit are normal ends.
                    (!matches!(status.code(), Some(0 | 1 | 3)))
                        .then(|| (Instant::now(), me, status))
                });
                ended = over;
            }
            match &ended {
                // Process 0 may be about to end too, with a better message.
                Some((since, me, status)) if since.elapsed() > grace(*status) => {
                    return Err(host_error(*me, &self.0[*me].0, *status));
                }
                _ if is_over() => return Ok(3),
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        self.await_others(GRACE);
        Ok(code)
    }

    /// Waits a while until all processes have ended.
    fn await_others(&mut self, most: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < most
            && self.0.iter_mut().any(|(_, child)| matches!(child.try_wait(), Ok(None)))
        {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns the time that process 0 gets to end after another process ended with `status`.
fn grace(status: ExitStatus) -> Duration {
    if matches!(status.code(), Some(UNUSABLE | MISSING | UNREACHABLE)) { NO_GRACE } else { GRACE }
}

fn host_error(me: usize, host: &str, status: ExitStatus) -> Diagnostic {
    let error =
        Diagnostic::new(Stage::File, format!("process {me} at {host}: it ended with {status}"));
    match status.code() {
        Some(UNUSABLE | MISSING) => error.note(
            "the program does not exist there, or cannot be run: set its path with `--program PATH`",
        ),
        Some(UNREACHABLE) => {
            error.note("`ssh` ends with this status if it cannot reach the host or is denied access")
        }
        _ => error,
    }
}

impl Drop for StartedProcesses {
    fn drop(&mut self) {
        // A process on another host ends with its standard input; killing the local `ssh` would not
        // end it.
        self.0.iter_mut().for_each(|(_, child)| drop(child.stdin.take()));
        self.await_others(CLOSE_TIME);
        for (_, child) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
