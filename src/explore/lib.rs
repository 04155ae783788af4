//! Explicit exploration of models: state store, group caches, parallel breadth-first search,
//! limits.
//!
//! In: a [`Model`] (slots and transition groups), [`Options`], a [`Budget`]. Out: counts
//! ([`explore`]), a labelled transition system ([`explore_lts`]), a shortest path to a goal
//! ([`find`]), an answer if the graph has a cycle ([`is_acyclic`]), or successors one state at a
//! time ([`OnTheFlySuccessors`]; [`visit()`] for visitors, [`walk`] for a simulator). Nothing here
//! knows a language or a formula: a formula's product is a model like any other.
//!
//! A limit is reported in [`Outcome::stop`]; the counts are then those of the explored part. The
//! counts of a complete run depend on the model and the confluent groups only, not on threads,
//! caches or sizes.
#![warn(missing_docs)]

mod annotate;
mod expander;
mod checkpoint;
mod confluent;
mod cycle;
mod goal_search;
mod incremental_key;
mod intern;
mod lazy;
mod thread_state;
mod group_cache;
mod delta;
mod distributed;
mod queue;
mod reduced_expansion;
mod round;
mod lts_builder;
mod search;
mod multi_goal_search;
mod tree_layout;
mod tuning;
#[cfg(unix)]
mod spill;
#[cfg(not(unix))]
#[path = "spill/nowhere.rs"]
mod spill;
mod store;
mod stubborn;
mod symmetry;
mod table;
mod visit;
pub mod walk;
mod pair_map;
#[cfg(test)]
mod tests;

pub use annotate::{
    AnnotateExtras, AnnotatedSearch, AnnotationWorker, Annotator, Transfer, annotate,
};
pub use checkpoint::{
    AnnotationTable, CheckpointHeader, CheckpointImage, CheckpointWriter, RestoredSearch,
};
pub use cycle::{Cyclic, Lasso, is_acyclic};
pub use distributed::annotations::{PortableAnnotator, TraceState};
pub use distributed::checkpoint::{Stamp, SymmetryGroup, expect_sound};
pub use distributed::partition::{Batch, Partition, Tally};
pub use distributed::peers::{JointOutcome, JointSearch, Peers, Work};
pub use distributed::presearch::LeafLayout;
pub use distributed::trace::path_through;
pub use expander::CacheStatistics;
pub use goal_search::{FindOutcome, PathStep, SearchTarget, find, find_or_refute};
pub use intern::PairTable;
pub use lazy::OnTheFlySuccessors;
pub use multi_goal_search::{FoundPaths, LassoPath, PathGoal, find_paths};
pub use search::internal as panicked;
pub use stubborn::{PartialOrder, ReductionObstacle, ReductionSavings, Visibility};
pub use symmetry::{RejectedSymmetry, Symmetries, with_verified_symmetries};
pub use tuning::Tuning;
pub use visit::{VisitEnd, Visitor, visit};

use std::path::Path;
use std::time::Duration;

use mu_base::{Budget, Diagnostic, Stop};
use mu_lts::Lts;
use mu_model::Model;

/// Options of an exploration. Default: one thread per processor, no confluence, caches on.
#[derive(Clone, Debug)]
pub struct Options {
    /// Worker threads; 0: one per processor.
    pub threads: usize,
    /// By group: true if its steps are known to be confluent and inert, and are taken at once.
    /// Empty: none.
    pub confluent: Vec<bool>,
    /// By group: true if its steps commute with all others, so that a state with such steps needs
    /// no others. Empty: none.
    pub first: Vec<bool>,
    /// True if answers of groups are cached.
    pub cache: bool,
    /// Limit on the bytes of one thread's caches; the shared cache may have four times that.
    pub cache_bytes: u64,
    /// Expected number of states; the initial size of the store.
    pub expected_states: u64,
    /// True if one representative may replace the states of an orbit, for counts and verdicts.
    pub symmetry: bool,
    /// True if partial-order reduction may be used, where the goal allows it.
    pub partial_order: bool,
    /// Leaf layout and partition leaves of a distributed search ([`LeafLayout`]). `None`: the
    /// default.
    pub leaves: Option<LeafLayout>,
    /// Sizes and times that affect the cost only.
    pub tuning: Tuning,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 0,
            confluent: Vec::new(),
            first: Vec::new(),
            cache: true,
            cache_bytes: 256 << 20,
            expected_states: 1 << 12,
            symmetry: true,
            partial_order: true,
            leaves: None,
            tuning: Tuning::default(),
        }
    }
}

impl Options {
    /// Takes the steps of all groups marked as confluent at once, or before others if they are not
    /// tau.
    #[must_use]
    pub fn with_confluence_of(mut self, model: &dyn Model) -> Self {
        self.confluent = model.groups().iter().map(|g| g.tau && g.confluent).collect();
        self.first = model.groups().iter().map(|g| !g.tau && g.confluent).collect();
        self
    }
    /// Returns the same options without confluence.
    #[must_use]
    pub fn without_confluence(&self) -> Self {
        Self { confluent: Vec::new(), first: Vec::new(), ..self.clone() }
    }
    /// Returns the actual number of threads.
    pub fn thread_count(&self) -> usize {
        if self.threads > 0 {
            self.threads
        } else {
            std::thread::available_parallelism().map_or(1, |n| n.get())
        }
    }
}

/// Progress of a search.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// States stored.
    pub states: u64,
    /// Transitions found.
    pub transitions: u64,
    /// Breadth-first level.
    pub level: u64,
    /// Approximate number of states of this level that are not expanded yet.
    pub waiting: u64,
    /// Time since the start of this search.
    pub elapsed: Duration,
}

/// Receiver of progress reports. Called by the coordinating thread a few times a second.
pub trait Progress: Sync {
    /// Reports progress.
    fn report(&self, snapshot: &Snapshot);
}

/// Ignores progress.
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _: &Snapshot) {}
}

/// Disk traffic of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillCounts {
    /// Number of times the table was written to disk.
    pub flushes: u64,
    /// Maximum of bytes on disk, without temporary files of a merge.
    pub bytes: u64,
    /// Bytes written.
    pub written: u64,
    /// Bytes read to detect duplicates.
    pub read: u64,
    /// Number of times states on disk were repacked.
    pub repacked: u64,
}

/// Result of a search, complete or not.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// States reached. With symmetries: the sizes of all orbits, where an orbit that was not
    /// expanded counts as one.
    pub states: u64,
    /// States stored: one per orbit.
    pub stored: u64,
    /// Order of the group of symmetries; 1: only the identity.
    pub symmetries: usize,
    /// Candidates for symmetries that are not used.
    pub dropped: Vec<RejectedSymmetry>,
    /// Transitions: distinct label and target for each expanded state.
    pub transitions: u64,
    /// Expanded states without steps.
    pub deadlocks: u64,
    /// Breadth-first levels, including the one of the initial state.
    pub levels: u64,
    /// Reason for the end of the search.
    pub stop: Stop,
    /// Time of the search.
    pub elapsed: Duration,
    /// Disk traffic.
    pub spilled: SpillCounts,
    /// Bytes of the state store at the end.
    pub store_bytes: u64,
    /// Maximum of bytes of queued states at the end of a level.
    pub frontier_bytes: u64,
    /// Width of a packed state at the end.
    pub key_bits: u32,
    /// Number of values of each part of the state vector (a component, or a piece of one) at the
    /// end.
    pub part_values: Vec<u64>,
    /// Effect of partial-order reduction.
    pub partial_order: PartialOrder,
    /// Number of values of each slot, if a count ([`explore_with`]) is incomplete; otherwise empty.
    pub slot_values: Vec<u64>,
    /// Cache statistics of all threads together.
    pub cache: CacheStatistics,
}

/// Counts states, transitions and deadlocks.
pub fn explore(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Outcome, Diagnostic> {
    explore_with(model, options, budget, progress, CountExtras::default())
}

/// Additional options of a count.
#[derive(Default)]
pub struct CountExtras<'a> {
    /// Writes checkpoints.
    pub checkpoints: Option<&'a dyn CheckpointWriter>,
    /// Search to resume.
    pub restored: Option<RestoredSearch>,
    /// Receives the deadlocks, up to a million, each with the size of its orbit.
    pub ends: Option<&'a mut dyn FnMut(&[u32], u64)>,
    /// Disk storage for states that exceed memory; excludes checkpoints.
    pub spill: Option<Spill<'a>>,
}

/// Disk storage of a search.
#[derive(Clone, Copy, Debug)]
pub struct Spill<'a> {
    /// A folder on a fast disk.
    pub folder: &'a Path,
    /// Number of states after which the table is written to disk; `None`: as many as the memory
    /// limit allows.
    pub most: Option<u64>,
}

/// Explores as [`explore`], with additional options.
///
/// # Errors
/// Errors of the model; a checkpoint of a search with other symmetries.
pub fn explore_with(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    progress: &dyn Progress,
    CountExtras { checkpoints, restored, ends, spill }: CountExtras<'_>,
) -> Result<Outcome, Diagnostic> {
    let mut restored = restored;
    let (done, dropped) = with_verified_symmetries(model, options, |symmetries| {
        let symmetries: Option<&Symmetries> = symmetries.map(|s| &*s);
        let goal = search::Goal {
            checkpoints,
            symmetries,
            keep_dead: ends.is_some(),
            spill,
            ..search::Goal::default()
        };
        if let Some(restored) = &restored {
            // Refutes symmetries that the earlier search rejected, before the search is consumed.
            restored.counts.symmetries.expect(symmetries)?;
        }
        search::run_from(model, options, budget, progress, goal, (restored.take(), None))
    })?;
    let slot_values = if done.outcome.stop == mu_base::Stop::Complete {
        Vec::new()
    } else {
        done.store.slot_values()
    };
    Ok(Outcome { dropped, slot_values, ..outcome_of(done, ends) })
}

fn outcome_of(done: search::FinishedSearch, ends: Option<&mut dyn FnMut(&[u32], u64)>) -> Outcome {
    if let Some(ends) = ends {
        done.dead.iter().for_each(|(key, orbit)| ends(&done.store.vector(*key), *orbit));
    }
    done.outcome
}

/// Explores and stores the transitions. States are numbered breadth first, regardless of threads.
/// After a limit, the last states lack their transitions; `stop` reports this.
pub fn explore_lts(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<(Outcome, Lts), Diagnostic> {
    explore_lts_with(model, options, budget, progress, None)
}

/// Explores, stores the transitions, and calls `ends` for each state without steps, as
/// [`CountExtras::ends`].
pub fn explore_lts_with(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    progress: &dyn Progress,
    ends: Option<&mut dyn FnMut(&[u32], u64)>,
) -> Result<(Outcome, Lts), Diagnostic> {
    let goal = search::Goal { edges: true, keep_dead: ends.is_some(), ..search::Goal::default() };
    let mut done = search::run(model, options, budget, progress, goal)?;
    let lts = done.lts.take().ok_or_else(|| {
        Diagnostic::new(mu_base::Stage::Internal, "the search stored no transitions")
    })?;
    Ok((outcome_of(done, ends), lts))
}
