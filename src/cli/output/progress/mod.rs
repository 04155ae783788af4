//! Progress of long runs: a terminal line with states, rate, frontier and memory; nothing on a
//! pipe.

#[cfg_attr(target_arch = "wasm32", path = "../../browser/line.rs")]
mod line;

use self::line::Line;
use mu_base::limits::resident_bytes;
use mu_explore::{Progress, Snapshot};
use serde_json::json;

/// A progress line.
pub(crate) struct Bar {
    bar: Line,
    /// True if progress is written as JSON lines.
    lines: bool,
}

impl Bar {
    /// Creates a line if standard error is a terminal and the user wants one; otherwise nothing is
    /// shown.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { bar: Line::new(wanted), lines: crate::output::has_progress_lines() }
    }
    /// Shows a text.
    pub(crate) fn note(&self, text: impl FnOnce() -> String) {
        if !self.bar.is_hidden() {
            self.bar.show(text());
        }
    }
    /// Prints a line above the one that changes.
    pub(crate) fn log(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }
    /// Clears the line.
    pub(crate) fn finish(&self) {
        self.bar.finish();
    }
}

impl Progress for Bar {
    fn report(&self, s: &Snapshot) {
        crate::output::record("states", s.states.into());
        crate::output::record("transitions", s.transitions.into());
        if self.lines {
            crate::output::print_progress(&json!({
                "states": s.states, "transitions": s.transitions, "level": s.level, "waiting": s.waiting,
                "seconds": s.elapsed.as_secs_f64(), "memory_bytes": resident_bytes(),
            }));
        }
        if self.bar.is_hidden() {
            return;
        }
        let rate = s.states as f64 / s.elapsed.as_secs_f64().max(1e-3);
        self.bar.show(format!(
            "{} states, {} transitions, level {}, {} waiting, {} states/s, {} MiB",
            group_digits(s.states),
            group_digits(s.transitions),
            s.level,
            group_digits(s.waiting),
            group_digits(rate as u64),
            group_digits(resident_bytes() >> 20)
        ));
    }
}

/// Formats a number of things, with thousands separators: `1 case`, `2,000 cases`.
pub(crate) fn count_text(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", group_digits(n), if n == 1 { "" } else { "s" })
}

/// Formats a number with thousands separators.
pub(crate) fn group_digits(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}
