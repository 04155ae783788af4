//! The updating progress line of a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A terminal line, or nothing.
pub(super) struct Line(ProgressBar);

impl Line {
    /// Creates a line if standard error is a terminal and the user wants one.
    pub(super) fn new(wanted: bool) -> Self {
        let shown = wanted && std::io::stderr().is_terminal();
        let target = if shown {
            ProgressDrawTarget::stderr_with_hz(5)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }
    /// True if the line is invisible.
    pub(super) fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }
    /// Shows a text.
    pub(super) fn show(&self, text: String) {
        self.0.set_message(text);
        self.0.tick();
    }
    /// Clears the line, writes other output, and shows the line again.
    pub(super) fn suspend(&self, write: impl FnOnce()) {
        self.0.suspend(write);
    }
    /// Clears the line.
    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
