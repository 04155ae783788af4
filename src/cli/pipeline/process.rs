//! Run of a child process of this program.
//!
//! In: its command line. Out: its exit status and output. The process ends with this one: its
//! standard input is a pipe from here, and it treats the end of input as an interrupt. Cost: two
//! threads that read its streams. Invariant: the process has ended when this returns.

use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage};
use std::ffi::OsString;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time for an interrupted process to end by itself.
const GRACE: Duration = Duration::from_millis(1500);

/// Exit status and output of a process.
pub(crate) struct Exit {
    /// Its exit status, for people.
    pub how: String,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
}

/// Runs a process to its end. Calls `wait` regularly meanwhile. Returns `None` if it was
/// interrupted and had to be killed.
pub(crate) fn run(
    words: &[OsString],
    is_interrupted: &dyn Fn() -> bool,
    wait: &dyn Fn(),
) -> Result<Option<Exit>, Diagnostic> {
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
    // The pipe closes when this process ends, for any reason.
    let mut input = child.stdin.take();
    let mut since = None;
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(lost)? {
            break Some(status);
        }
        if is_interrupted() {
            // The process ends by itself with partial results, as after an interrupt.
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
    Ok(status.map(|s| Exit { how: s.to_string(), out, err }))
}

/// Starts a thread that reads a stream to its end.
fn reader(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}
