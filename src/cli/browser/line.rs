//! Replacement of the progress line without a terminal. A page gets progress as JSON lines.

/// No line.
pub(super) struct Line;

impl Line {
    /// Creates no line.
    pub(super) fn new(_: bool) -> Self {
        Self
    }
    /// True: the line is invisible.
    pub(super) fn is_hidden(&self) -> bool {
        true
    }
    /// Shows nothing.
    pub(super) fn show(&self, _: String) {}
    /// Writes other output.
    pub(super) fn suspend(&self, write: impl FnOnce()) {
        write();
    }
    /// Does nothing.
    pub(super) fn finish(&self) {}
}
