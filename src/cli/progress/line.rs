//! The line that changes, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A line of a terminal, or silence.
pub(super) struct Line(ProgressBar);

impl Line {
    /// A line if standard error is a terminal and the user wants one.
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
    /// Whether nobody sees it.
    pub(super) fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }
    /// Shows a text.
    pub(super) fn show(&self, text: String) {
        self.0.set_message(text);
        self.0.tick();
    }
    /// Writes something else, with the line out of the way.
    pub(super) fn suspend(&self, write: impl FnOnce()) {
        self.0.suspend(write);
    }
    /// Clears it.
    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
