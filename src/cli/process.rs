//! A process of this program, from its start to its end.
//!
//! In: the words of its command line. Out: how it ended, and what it said. It ends with this one:
//! its standard input is a pipe from here, whose end it takes as an interrupt. Cost: two threads
//! that read its streams. Invariant: no process is left when this returns.

use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage};
use std::ffi::OsString;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long an interrupted process may take to end by itself.
const GRACE: Duration = Duration::from_millis(1500);

/// What is left of a process.
pub(super) struct Ended {
    /// Its exit status, for people.
    pub how: String,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
}

/// Runs a process to its end. `wait` is called now and then meanwhile. Nothing if it was
/// interrupted and had to be ended.
pub(super) fn run(
    words: &[OsString],
    is_interrupted: &dyn Fn() -> bool,
    wait: &dyn Fn(),
) -> Result<Option<Ended>, Diagnostic> {
    let internal =
        |what: &str, e: std::io::Error| Diagnostic::new(Stage::Internal, format!("{what}: {e}"));
    let program = std::env::current_exe()
        .map_err(|e| internal("cannot locate this program to start a process", e))?;
    let mut command = Command::new(program);
    let child = command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|e| internal("cannot start a process", e))?;
    let lost = |e| internal("a process was lost", e);
    let (out, err) = (child.stdout.take().map(reader), child.stderr.take().map(reader));
    // The pipe closes when this process ends, however it ends.
    let mut input = child.stdin.take();
    let mut since = None;
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(lost)? {
            break Some(status);
        }
        if is_interrupted() {
            // It ends by itself with what it has, as by an interrupt of its own.
            input = None;
            if since.get_or_insert_with(Instant::now).elapsed() > GRACE {
                child.kill().and_then(|()| child.wait()).map_err(lost)?;
                break None;
            }
        }
        wait();
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    };
    drop(input);
    let [out, err] = [out, err].map(|r| r.and_then(|r| r.join().ok()).unwrap_or_default());
    Ok(status.map(|s| Ended { how: s.to_string(), out, err }))
}

/// Reads a stream to its end.
fn reader(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}
