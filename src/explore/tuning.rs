//! Sizes and times of a search that affect its cost only.
//!
//! In: nothing. Out: [`Tuning`], a part of [`super::Options`]. The default suits every model;
//! [`Tuning::small`] makes small models exercise every boundary between the parts of a search.
//! Invariant: no result of a search depends on these numbers, except for the choice of a layout if
//! its time ends.

use std::time::Duration;

use super::table::TableSizes;

/// Sizes of the parts of a search, and times of preparations. No count and no verdict depends on
/// them.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// States in a block, the unit of work of a thread.
    pub(crate) block: usize,
    /// Sizes of the table of states.
    pub(crate) table: TableSizes,
    /// Sizes of the states on disk.
    pub(crate) disk: DiskSizes,
    /// Number of recently stored or sent keys in the filter of a partition; a power of two.
    pub(crate) recent_keys: usize,
    /// Time limit of the presearch of a distributed search.
    pub(crate) presearch_time: Duration,
    /// Time limit of the sampling for partition leaves.
    pub(crate) sampling_time: Duration,
}

/// Sizes of the states on disk.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) struct DiskSizes {
    /// Maximum number of hashes of a page.
    pub page: usize,
    /// Number of hashes sorted at once during repacking.
    pub sorted: usize,
    /// Number of runs above which the smaller half is merged.
    pub runs: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            block: 1024,
            table: TableSizes::LARGE,
            disk: DiskSizes { page: 4096, sorted: 1 << 22, runs: 12 },
            recent_keys: 1 << 16,
            presearch_time: Duration::from_millis(100),
            sampling_time: Duration::from_millis(50),
        }
    }
}

impl Tuning {
    /// Returns sizes so small that a few hundred states fill several blocks, pages, and runs, and
    /// times that always suffice for such models. For tests.
    #[must_use]
    pub fn small() -> Self {
        Self {
            block: 64,
            table: TableSizes::SMALL,
            disk: DiskSizes { page: 64, sorted: 200, runs: 4 },
            recent_keys: 1 << 8,
            presearch_time: Duration::from_secs(60),
            sampling_time: Duration::from_secs(60),
        }
    }
}
