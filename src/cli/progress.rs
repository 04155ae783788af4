//! Progress of long runs: a line on the terminal with states, rate, frontier and memory; nothing on a pipe.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mu_base::limits::resident_bytes;
use mu_explore::{Progress, Snapshot};
use serde_json::json;
use std::io::IsTerminal;

/// A progress line.
pub(super) struct Bar {
    bar: ProgressBar,
    /// Whether a program reads along.
    lines: bool,
}

impl Bar {
    /// A line if standard error is a terminal and the user wants one; else silence.
    pub(super) fn new(wanted: bool) -> Self {
        let shown = wanted && std::io::stderr().is_terminal();
        let bar =
            ProgressBar::with_draw_target(None, if shown { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() });
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
            bar.set_style(style);
        }
        Self { bar, lines: super::output::has_reader() }
    }
    /// Shows a text.
    pub(super) fn note(&self, text: impl FnOnce() -> String) {
        if !self.bar.is_hidden() {
            self.bar.set_message(text());
            self.bar.tick();
        }
    }
    /// Prints a line above the one that changes.
    pub(super) fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }
    /// Clears the line.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn report(&self, s: &Snapshot) {
        super::output::know("states", s.states.into());
        super::output::know("transitions", s.transitions.into());
        if self.lines {
            super::output::progress(&json!({
                "states": s.states, "transitions": s.transitions, "level": s.level, "waiting": s.waiting,
                "seconds": s.elapsed.as_secs_f64(), "memory_bytes": resident_bytes(),
            }));
        }
        if self.bar.is_hidden() {
            return;
        }
        let rate = s.states as f64 / s.elapsed.as_secs_f64().max(1e-3);
        self.bar.set_message(format!(
            "{} states, {} transitions, level {}, {} waiting, {} states/s, {} MiB",
            grouped(s.states),
            grouped(s.transitions),
            s.level,
            grouped(s.waiting),
            grouped(rate as u64),
            grouped(resident_bytes() >> 20)
        ));
        self.bar.tick();
    }
}

/// A number with thousands apart.
pub(super) fn grouped(n: u64) -> String {
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
