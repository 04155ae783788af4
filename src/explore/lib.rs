//! Explicit exploration of models: state store, group caches, parallel breadth-first search,
//! limits.
//!
//! In: a [`Model`] (slots and transition groups), [`Options`], a [`Budget`]. Out: counts
//! ([`explore`]), a labelled transition system ([`explore_lts`]), a shortest path to a step that
//! somebody looks for ([`find`]), whether the graph has a cycle ([`is_acyclic`]), or successors one
//! state at a time ([`Lazy`]; [`visit()`] shows them to a visitor, [`walk`] goes by hand). Nothing
//! here knows a language or a formula: a formula's product is a model like any other.
//!
//! A run that a limit stops says so in [`Outcome::stop`]; its counts are then of what was seen. The
//! counts of a complete run depend on the model and the confluent groups only, not on threads,
//! caches or sizes.
#![warn(missing_docs)]

mod annotate;
mod expander;
mod distributed_annotations;
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
mod state_batch;
mod distributed_kahn;
mod peers;
mod presearch;
mod partition_checkpoint;
mod queue;
mod stable_hash;
mod reduced_expansion;
mod round;
mod rows;
mod search;
mod multi_goal_search;
mod tree_layout;
mod partition;
#[cfg(unix)]
mod spill;
#[cfg(not(unix))]
#[path = "spill/nowhere.rs"]
mod spill;
mod store;
mod stubborn;
mod symmetry;
mod table;
mod partition_leaves;
mod owner_hash;
mod distributed_trace;
mod visit;
pub mod walk;
mod pair_map;
#[cfg(test)]
mod tests;

pub use annotate::{AnnotateExtras, Annotated, AnnotationWorker, Annotator, Transfer, annotate};
pub use checkpoint::{
    AnnotationTable, CheckpointHeader, CheckpointImage, CheckpointWriter, RestoredSearch,
};
pub use cycle::{Cyclic, Lasso, is_acyclic};
pub use distributed_annotations::{PortableAnnotator, TraceState};
pub use distributed_trace::path_through;
pub use expander::CacheStatistics;
pub use goal_search::{FindOutcome, PathStep, Target, find};
pub use intern::PairTable;
pub use lazy::Lazy;
pub use multi_goal_search::{FoundPaths, LassoPath, PathGoal, find_paths};
pub use partition::{Batch, Partition, Tally};
pub use partition_checkpoint::{Stamp, SymmetryGroup, expect_sound};
pub use peers::{JointOutcome, JointSearch, Peers, Work};
pub use presearch::LeafLayout;
pub use search::internal as panicked;
pub use stubborn::{PartialOrder, ReductionObstacle, ReductionSavings, Visibility};
pub use symmetry::{RejectedSymmetry, Symmetries, with_verified_symmetries};
pub use visit::{Visited, Visitor, visit};

use std::path::Path;
use std::time::Duration;

use mu_base::{Budget, Diagnostic, Stop};
use mu_lts::Lts;
use mu_model::Model;

/// How to explore. `Options::default()` is one thread for each processor, no confluence, caches on.
#[derive(Clone, Debug)]
pub struct Options {
    /// Worker threads; 0: one a processor.
    pub threads: usize,
    /// By group: whether its steps are taken at once, since they are known to be confluent and
    /// inert. Empty: none.
    pub confluent: Vec<bool>,
    /// By group: whether a state in which it has steps has no others, since these commute with all
    /// others. Empty: none.
    pub first: Vec<bool>,
    /// Whether answers of groups are remembered.
    pub cache: bool,
    /// Most bytes of one thread's caches; the shared memo may have four times that.
    pub cache_bytes: u64,
    /// States that the store is made for at first.
    pub expected_states: u64,
    /// Whether of states that the model's symmetries take into each other one may stand for all,
    /// where only counts or a verdict are asked for.
    pub symmetry: bool,
    /// Whether steps may be left out, where something is looked for that does not rest on them.
    pub partial_order: bool,
    /// Which slots are numbered together where such numbers last, and which say whose a state is,
    /// in a search by several processes ([`LeafLayout`]). None: some of a component, and all.
    pub leaves: Option<LeafLayout>,
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
        }
    }
}

impl Options {
    /// Takes the steps of all groups that the front end marked as confluent at once, or before
    /// others if they are no tau.
    #[must_use]
    pub fn with_confluence_of(mut self, model: &dyn Model) -> Self {
        self.confluent = model.groups().iter().map(|g| g.tau && g.confluent).collect();
        self.first = model.groups().iter().map(|g| !g.tau && g.confluent).collect();
        self
    }
    /// The same with all steps.
    #[must_use]
    pub fn without_confluence(&self) -> Self {
        Self { confluent: Vec::new(), first: Vec::new(), ..self.clone() }
    }
    /// The number of threads that is meant.
    pub fn thread_count(&self) -> usize {
        if self.threads > 0 {
            self.threads
        } else {
            std::thread::available_parallelism().map_or(1, |n| n.get())
        }
    }
}

/// Where a search is.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// States stored.
    pub states: u64,
    /// Transitions seen.
    pub transitions: u64,
    /// Breadth-first level.
    pub level: u64,
    /// States of this level that are still to be expanded, about.
    pub waiting: u64,
    /// Since the start of this search.
    pub elapsed: Duration,
}

/// Who wants to know how far a search is. Called from the coordinating thread a few times a second.
pub trait Progress: Sync {
    /// A search is here now.
    fn report(&self, snapshot: &Snapshot);
}

/// Nobody.
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _: &Snapshot) {}
}

/// What a search wrote to disk and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spilled {
    /// Times that the table was emptied.
    pub flushes: u64,
    /// Most bytes on disk, but for what a merge needs meanwhile.
    pub bytes: u64,
    /// Bytes written.
    pub written: u64,
    /// Bytes read in search of states.
    pub read: u64,
    /// Times that states on disk were packed anew.
    pub repacked: u64,
}

/// What a search found, complete or not.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// States reached. With symmetries those of all orbits seen, one for each that was not
    /// expanded.
    pub states: u64,
    /// States stored: one of each orbit.
    pub stored: u64,
    /// Order of the group of symmetries; 1: none but the identity.
    pub symmetries: usize,
    /// Candidates for symmetries that are not used.
    pub dropped: Vec<RejectedSymmetry>,
    /// Transitions: distinct label and target for each expanded state.
    pub transitions: u64,
    /// Expanded states without steps.
    pub deadlocks: u64,
    /// Breadth-first levels, the initial state being the first.
    pub levels: u64,
    /// Why the search ended.
    pub stop: Stop,
    /// Time of the search.
    pub elapsed: Duration,
    /// What was written to disk and read again.
    pub spilled: Spilled,
    /// Bytes of the state store by the end.
    pub store_bytes: u64,
    /// Most bytes of queued states at the end of a level.
    pub frontier_bytes: u64,
    /// Width of a packed state by the end.
    pub key_bits: u32,
    /// Number of values of each part of the state vector (a component, or a piece of one) by the
    /// end.
    pub part_values: Vec<u64>,
    /// Whether steps were left out that do not matter for what is looked for.
    pub partial_order: PartialOrder,
    /// How many values each slot has had, if a count ([`explore_with`]) is incomplete; else empty.
    pub slot_values: Vec<u64>,
    /// What the caches did, all threads together.
    pub cache: CacheStatistics,
}

/// Counts states, transitions and deadlocks.
pub fn explore(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Outcome, Diagnostic> {
    explore_with(model, options, budget, progress, Extras::default())
}

/// What a count may do besides.
#[derive(Default)]
pub struct Extras<'a> {
    /// Who writes checkpoints.
    pub keeper: Option<&'a dyn CheckpointWriter>,
    /// Where to go on from.
    pub restored: Option<RestoredSearch>,
    /// Who is shown the deadlocks found, up to a million, each with the number of states that it
    /// stands for.
    pub ends: Option<&'a mut dyn FnMut(&[u32], u64)>,
    /// Where states go that memory has no room for; without checkpoints.
    pub spill: Option<Spill<'a>>,
}

/// Where the states of a search go that memory has no room for.
#[derive(Clone, Copy, Debug)]
pub struct Spill<'a> {
    /// A folder on a disk that is fast.
    pub folder: &'a Path,
    /// States after which the table is emptied; none: as many as the memory allowed has room for.
    pub most: Option<u64>,
}

/// As [`explore`], with what is asked for besides.
///
/// # Errors
/// Those of the model; a checkpoint of a search with other symmetries.
pub fn explore_with(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    progress: &dyn Progress,
    Extras { keeper, restored, ends, spill }: Extras<'_>,
) -> Result<Outcome, Diagnostic> {
    let mut restored = restored;
    let (done, dropped) = with_verified_symmetries(model, options, |symmetries| {
        let symmetries: Option<&Symmetries> = symmetries.map(|s| &*s);
        let goal = search::Goal {
            keeper,
            symmetries,
            keep_dead: ends.is_some(),
            spill,
            ..search::Goal::default()
        };
        if let Some(restored) = restored.as_ref() {
            let (order, before) =
                (symmetries.map_or(1, Symmetries::order) as u64, restored.counts.symmetries);
            if order > before && before > 1 {
                // That search had dropped some. They fail here as well, as they did there.
                return search::run(
                    model,
                    options,
                    budget,
                    progress,
                    search::Goal { keeper: None, ..goal },
                );
            }
            if order != before {
                return Err(Diagnostic::new(
                    mu_base::Stage::File,
                    "the checkpoint is of a search with other symmetries",
                )
                .note(format!(
                    "that one had {}, this one has {order}; the identity counts",
                    restored.counts.symmetries
                )));
            }
        }
        search::run_from(model, options, budget, progress, goal, (restored.take(), None))
    })?;
    let slot_values = if done.outcome.stop == mu_base::Stop::Complete {
        Vec::new()
    } else {
        done.store.slot_values()
    };
    Ok(Outcome { dropped, slot_values, ..shown(done, ends) })
}

fn shown(done: search::Done, ends: Option<&mut dyn FnMut(&[u32], u64)>) -> Outcome {
    if let Some(ends) = ends {
        done.dead.iter().for_each(|(key, orbit)| ends(&done.store.vector(*key), *orbit));
    }
    done.outcome
}

/// Explores and keeps the transitions. States are numbered breadth first, whatever the number of
/// threads; a limit leaves states at the end without their transitions, which `stop` tells.
pub fn explore_lts(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<(Outcome, Lts), Diagnostic> {
    explore_lts_with(model, options, budget, progress, None)
}

/// Explores, keeps the transitions, and calls `ends` with each state without steps, as
/// [`Extras::ends`].
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
        Diagnostic::new(mu_base::Stage::Internal, "the search kept no transitions")
    })?;
    Ok((shown(done, ends), lts))
}
