//! Replacement of a child process in a browser: another instance of the module, which the page runs
//! to its end while this one waits.

use mu_base::{Diagnostic, host};
use std::ffi::OsString;

/// Exit status and output.
pub(crate) struct Exit {
    /// Exit status, for people.
    pub how: String,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
}

/// Runs the instance to its end. The page interrupts all instances.
pub(crate) fn run(
    words: &[OsString],
    _: &dyn Fn() -> bool,
    wait: &dyn Fn(),
) -> Result<Option<Exit>, Diagnostic> {
    wait();
    let words = words.iter().map(|w| w.to_string_lossy().into_owned());
    let host::Ended { code, out, err } =
        host::start(&std::iter::once("mu-check".to_string()).chain(words).collect::<Vec<_>>());
    let how = code.map_or_else(|| "a fault".to_string(), |code| format!("exit code {code}"));
    Ok(Some(Exit { how, out, err }))
}
