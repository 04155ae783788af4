//! The line that changes, where there is no terminal: silence. A page hears of progress as programs
//! that read along do.

/// Silence.
pub(super) struct Line;

impl Line {
    /// None, whatever the user wants.
    pub(super) fn new(_: bool) -> Self {
        Self
    }
    /// Nobody sees it.
    pub(super) fn is_hidden(&self) -> bool {
        true
    }
    /// Shows nothing.
    pub(super) fn show(&self, _: String) {}
    /// Writes something else.
    pub(super) fn suspend(&self, write: impl FnOnce()) {
        write();
    }
    /// There is nothing to clear.
    pub(super) fn finish(&self) {}
}
