//! A process of this program, where there are none: an instance of the module of its own, which the
//! page runs to its end while this one waits.

use mu_base::{Diagnostic, host};
use std::ffi::OsString;

/// What is left of it.
pub(super) struct Ended {
    /// How it ended, for people.
    pub how: String,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
}

/// Runs it to its end. An interrupt is the page's to say, to all instances.
pub(super) fn run(
    words: &[OsString],
    _: &dyn Fn() -> bool,
    wait: &dyn Fn(),
) -> Result<Option<Ended>, Diagnostic> {
    wait();
    let words = words.iter().map(|w| w.to_string_lossy().into_owned());
    let host::Ended { code, out, err } =
        host::start(&std::iter::once("mu-check".to_string()).chain(words).collect::<Vec<_>>());
    let how = code.map_or_else(|| "a fault".to_string(), |code| format!("exit code {code}"));
    Ok(Some(Ended { how, out, err }))
}
