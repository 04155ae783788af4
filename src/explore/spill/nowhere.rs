//! Substitute for platforms without unnamed files that several threads can read: a search with
//! spilling is rejected.

use super::Spill;
use super::search::{SearchTotals, Shared};
use mu_base::{Diagnostic, Stage};

impl<'a> Shared<'a> {
    pub(super) fn coordinate_spilled(
        &'a self,
        _: usize,
        spill: Spill<'_>,
    ) -> Result<SearchTotals, Diagnostic> {
        let message =
            format!("{}: states are spilled to disk on Unix systems only", spill.folder.display());
        Err(Diagnostic::new(Stage::Unsupported, message))
    }
}
