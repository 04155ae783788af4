//! Parallel breadth-first search.
//!
//! In: a model and a goal. Out: counts, and the data that the goal requests. A level of states is
//! divided into blocks, which the threads claim one by one; new states go to blocks of the next
//! level. In the hot path threads share only the lock-free table of states. If the table is crowded
//! or the store's layout must change, the threads finish what they can and wait at a barrier. One
//! makes room, and the level continues (a *round*). The threads live as long as the search, so that
//! a model's workers and the caches stay warm.
//!
//! Invariants: a state is expanded once; an expansion that ends early does not affect the
//! counts; the counts do not depend on the threads. A panic in a worker ends the search with an
//! internal error.
//!
//! The next level is a list of keys, 8 bytes a state; they need no lookup in the store.

use mu_base::host::Instant;
use mu_base::narrow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::time::Duration;

use super::annotate::{AnnotationWorker, Annotator};
use super::checkpoint::{CheckpointImage, CheckpointWriter, RestoredSearch, SearchCounts};
use super::distributed::checkpoint::SymmetryGroup;
use super::expander::{CacheStatistics, Halt, Successor};
use super::group_cache::SharedGroupCache;
use super::intern::held;
use super::lts_builder::{Edges, LtsBuilder};
use super::round::{Block, Round};
use super::store::Store;
use super::stubborn::{PartialOrder, ReductionSavings, Stubborn};
use super::symmetry::Symmetries;
use super::table::{Growth, Insert, Payload};
use super::thread_state::ThreadState;
use super::{Options, Outcome, Progress, Snapshot, Spill, SpillCounts};
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, Stage, Stop};
use mu_lts::Lts;
use mu_model::Model;

/// Successors inserted together, so that their cache misses overlap.
pub(super) const BATCH: usize = 256;
/// The table grows in large steps while it takes less than this fraction of the memory limit.
pub(super) const GENEROUS: u64 = 12;
/// Time between checks of the memory and reports of progress.
const TICK: Duration = Duration::from_millis(50);
/// Time from a tick after which each block is checked close to the memory limit. The thread that
/// allocates also checks, so that a busy machine delays both alike.
const TICK_NEAR_LIMIT: Duration = Duration::from_millis(1);

/// A predicate on steps: group and label.
pub(crate) type StepTest<'a> = &'a (dyn Fn(usize, LabelId) -> bool + Sync);

/// Limit on stored deadlocks.
pub(crate) const MAX_DEADLOCKS: usize = 1 << 20;

/// Additional tasks of a search.
#[derive(Clone, Copy, Default)]
pub(crate) struct Goal<'a> {
    /// Store the transitions.
    pub edges: bool,
    /// Store the states of each level while there are at most this many.
    pub levels: u64,
    /// Stop at the end of the level that contains such a step.
    pub step: Option<StepTest<'a>>,
    /// Stop at the end of the level that contains a deadlock.
    pub deadlock: bool,
    /// Store the deadlocks, up to [`MAX_DEADLOCKS`].
    pub keep_dead: bool,
    /// Data stored with each state (initially zero); numbers if the transitions are stored.
    pub payload: Payload,
    /// Propagate annotations along the steps; a state is expanded again when its annotation grows.
    /// See [`super::annotate`].
    pub annotator: Option<&'a dyn Annotator>,
    /// Write checkpoints; only for searches that count or annotate. A search that annotates also
    /// writes one at its end.
    pub checkpoints: Option<&'a dyn CheckpointWriter>,
    /// Use partial-order reduction; for searches with a goal or annotations.
    pub stubborn: Option<&'a Stubborn<'a>>,
    /// Store states on disk when memory is full; only for searches that count.
    pub spill: Option<Spill<'a>>,
    /// Store one state of each orbit; for searches that store neither transitions nor levels. A
    /// goal must be a step of which all images are goals too.
    pub symmetries: Option<&'a Symmetries>,
}

/// A goal that was reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GoalHit {
    /// The source of the step, or the deadlock.
    pub source: u64,
    /// The step; `None` for a deadlock.
    pub step: Option<Successor>,
}

/// Result of a search.
pub(crate) struct FinishedSearch {
    pub outcome: Outcome,
    pub lts: Option<Lts>,
    pub store: Store,
    /// Goals reached, all in the last level; at most one from each block.
    pub hits: Vec<GoalHit>,
    /// Deadlocks, with the sizes of their orbits.
    pub dead: Vec<(u64, u64)>,
    /// The keys of each level; empty if there are more than the goal allows.
    pub levels: Vec<Vec<u64>>,
    /// The cached answers of the workers.
    pub shared_cache: Arc<SharedGroupCache>,
    /// Representative of the initial state.
    pub initial: u64,
    /// True if an annotation reached a state that was expanded before.
    pub backward: bool,
}

struct RoundBarrier {
    round: u64,
    running: usize,
    quit: bool,
}

/// State shared by the threads.
pub(super) struct Shared<'a> {
    pub model: &'a dyn Model,
    pub options: &'a Options,
    pub budget: &'a Budget,
    progress: &'a dyn Progress,
    pub goal: Goal<'a>,
    /// True if the search may restart without symmetries: none of it is stored elsewhere.
    pub thrifty: bool,
    pub shared_cache: Arc<SharedGroupCache>,
    pub store: RwLock<Store>,
    pub round: Mutex<Round>,
    /// Requests all threads to return to the barrier.
    pub pause: AtomicBool,
    /// Set if the reduction saves too little.
    futile: AtomicBool,
    /// Set if an annotation reached an expanded state.
    pub backward: AtomicBool,
    /// Sum over expanded states of (orbit size - 1).
    surplus: AtomicU64,
    /// For progress only.
    transitions: AtomicU64,
    pub waiting: AtomicU64,
    pub level: AtomicU64,
    /// Correction to the table's count, as a wrapping u64: spilled states minus states that are
    /// also in the table.
    pub beyond: AtomicU64,
    gate: Mutex<RoundBarrier>,
    opened: Condvar,
    closed: Condvar,
    start: Instant,
}

/// Runs a search from the model's initial state. The calling thread is one of the workers.
pub(crate) fn run(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    progress: &dyn Progress,
    goal: Goal<'_>,
) -> Result<FinishedSearch, Diagnostic> {
    run_from(model, options, budget, progress, goal, (None, None))
}

/// Rejects a checkpoint of another kind of search or with other symmetries, and an unsuitable
/// model.
fn expect_searchable(
    model: &dyn Model,
    restored: Option<&RestoredSearch>,
    goal: &Goal<'_>,
) -> Result<(), Diagnostic> {
    if restored.is_some_and(|r| r.records.is_some() != goal.annotator.is_some()) {
        return Err(Diagnostic::new(Stage::File, "the checkpoint is of another kind of search"));
    }
    if let Some(restored) = restored {
        restored.counts.symmetries.expect(goal.symmetries)?;
    }
    if model.is_probabilistic() {
        return Err(Diagnostic::new(
            Stage::Unsupported,
            "this model is probabilistic (`dist`), which this kind of search does not support",
        ));
    }
    Ok(())
}

/// Runs or resumes a search. The annotation worker, if any, is used by this thread alone.
pub(crate) fn run_from(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    progress: &dyn Progress,
    goal: Goal<'_>,
    (restored, annotation_worker): (Option<RestoredSearch>, Option<Box<dyn AnnotationWorker + '_>>),
) -> Result<FinishedSearch, Diagnostic> {
    expect_searchable(model, restored.as_ref(), &goal)?;
    let thrifty = restored.is_none() && goal.checkpoints.is_none();
    let (store, queued) = match restored {
        Some(mut r) => {
            r.store.table.tune(options.tuning.table);
            if let (Some(annotator), Some(records)) = (goal.annotator, &r.records) {
                annotator.load(records)?;
            }
            (r.store, Some((r.todo, r.next, r.counts)))
        }
        None => (
            Store::new(
                model,
                options.expected_states,
                if goal.edges { Payload::Number } else { goal.payload },
                options.tuning.table,
            ),
            None,
        ),
    };
    let shared = Shared {
        model,
        options,
        budget,
        progress,
        goal,
        thrifty,
        shared_cache: Arc::new(SharedGroupCache::new(
            model.groups().len(),
            options.cache_bytes.saturating_mul(4),
        )),
        store: RwLock::new(store),
        round: Mutex::default(),
        pause: AtomicBool::new(false),
        futile: AtomicBool::new(false),
        backward: AtomicBool::new(false),
        surplus: AtomicU64::new(0),
        transitions: AtomicU64::new(0),
        waiting: AtomicU64::new(0),
        level: AtomicU64::new(0),
        beyond: AtomicU64::new(0),
        gate: Mutex::new(RoundBarrier { round: 0, running: 0, quit: false }),
        opened: Condvar::new(),
        closed: Condvar::new(),
        start: Instant::now(),
    };
    let helpers = options.thread_count().max(1) - 1;
    debug_assert!(
        annotation_worker.is_none() || helpers == 0,
        "a annotation_worker of one thread serves one thread"
    );
    let result = std::thread::scope(|scope| {
        for number in 1..=helpers {
            let shared = &shared;
            scope.spawn(move || shared.help(number));
        }
        let result = catch_unwind(AssertUnwindSafe(|| {
            shared.coordinate(helpers, queued, annotation_worker)
        }))
        .unwrap_or_else(|panic| Err(internal(&panic)));
        held!(shared.gate.lock()).quit = true;
        shared.opened.notify_all();
        result
    });
    let search = result?;
    let cache = held!(shared.round.lock()).statistics;
    let cache = CacheStatistics {
        evaluations: shared.shared_cache.evaluations(),
        bytes: cache.bytes * (helpers as u64 + 1) + shared.shared_cache.bytes(),
        ..cache
    };
    let store = held!(shared.store.into_inner());
    let stored = search.stored.unwrap_or(store.table.len());
    let outcome = Outcome {
        // An orbit that was not expanded counts as one state.
        states: stored + search.surplus,
        stored,
        spilled: search.spilled,
        symmetries: goal.symmetries.map_or(1, Symmetries::order),
        dropped: Vec::new(),
        transitions: search.transitions,
        deadlocks: search.deadlocks,
        levels: search.level_count,
        stop: search.stop,
        elapsed: shared.start.elapsed(),
        store_bytes: store.bytes(),
        frontier_bytes: search.frontier_bytes,
        key_bits: store.key_bits(),
        part_values: store.leaves.iter().map(|l| l.table.len() as u64).collect(),
        slot_values: Vec::new(),
        partial_order: PartialOrder::of(
            goal.stubborn.is_some(),
            shared.futile.load(Ordering::Relaxed),
            search.saved,
        ),
        cache,
    };
    let lts = search.lts.map(|rows| rows.finish(model, outcome.states));
    let backward = shared.backward.into_inner();
    Ok(FinishedSearch {
        outcome,
        lts,
        store,
        hits: search.hits,
        dead: search.dead,
        levels: search.levels,
        shared_cache: shared.shared_cache,
        initial: search.initial,
        backward,
    })
}

/// Converts the panic of a worker to an internal error.
pub fn internal(panic: &(dyn std::any::Any + Send)) -> Diagnostic {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    Diagnostic::new(
        Stage::Internal,
        format!("a worker of the exploration panicked: {}", text.unwrap_or("no message")),
    )
}

/// Numbers the blocks of a level by their first states; the last block comes first.
pub(super) fn number_blocks(level: Vec<Vec<u64>>) -> Vec<Block> {
    let mut first = 0;
    let mut blocks: Vec<Block> = Vec::with_capacity(level.len());
    for keys in level {
        let len = keys.len() as u64;
        blocks.push(Block { first, keys });
        first += len;
    }
    blocks.reverse();
    blocks
}

/// Totals of the coordinating thread.
#[derive(Default)]
pub(super) struct SearchTotals {
    pub saved: ReductionSavings,
    pub transitions: u64,
    pub deadlocks: u64,
    pub surplus: u64,
    pub level_count: u64,
    pub frontier_bytes: u64,
    pub stop: Stop,
    pub lts: Option<LtsBuilder>,
    pub hits: Vec<GoalHit>,
    pub dead: Vec<(u64, u64)>,
    pub levels: Vec<Vec<u64>>,
    pub initial: u64,
    /// Number of states, if the table does not hold them all.
    pub stored: Option<u64>,
    pub spilled: SpillCounts,
}

impl<'a> Shared<'a> {
    /// Runs the main loop of a helper thread; the calling thread has number 0.
    fn help(&'a self, number: usize) {
        let mut local: Option<ThreadState<'a>> = None;
        let mut seen = 0;
        loop {
            {
                let mut gate = held!(self.gate.lock());
                while gate.round == seen && !gate.quit {
                    gate = held!(self.opened.wait(gate));
                }
                if gate.quit {
                    return;
                }
                seen = gate.round;
            }
            let done = catch_unwind(AssertUnwindSafe(|| {
                self.work(local.get_or_insert_with(|| ThreadState::new(self, number)))
            }));
            if let Err(panic) = done {
                local = None;
                self.fail(internal(&*panic));
            }
            let mut gate = held!(self.gate.lock());
            gate.running -= 1;
            if gate.running == 0 {
                self.closed.notify_one();
            }
        }
    }

    fn fail(&self, error: Diagnostic) {
        held!(self.round.lock()).fail(error);
        self.pause.store(true, Ordering::Relaxed);
    }

    /// Runs one round with all threads, or in this thread if it is small.
    pub(super) fn round(
        &'a self,
        helpers: usize,
        local: &mut ThreadState<'a>,
        blocks: Vec<Block>,
    ) -> Round {
        let small = blocks.len() < 2;
        self.pause.store(false, Ordering::Relaxed);
        held!(self.round.lock()).share(blocks, helpers + 1);
        if helpers > 0 && !small {
            let mut gate = held!(self.gate.lock());
            gate.round += 1;
            gate.running = helpers;
            drop(gate);
            self.opened.notify_all();
        }
        let done = catch_unwind(AssertUnwindSafe(|| self.work(local)));
        if let Err(panic) = done {
            self.fail(internal(&*panic));
        }
        if helpers > 0 && !small {
            let mut gate = held!(self.gate.lock());
            while gate.running > 0 {
                gate = held!(self.closed.wait(gate));
            }
        }
        let mut round = std::mem::take(&mut *held!(self.round.lock()));
        round.take_back();
        round
    }

    fn coordinate(
        &'a self,
        helpers: usize,
        queued: Option<(Vec<u64>, Vec<u64>, SearchCounts)>,
        annotation_worker: Option<Box<dyn AnnotationWorker + 'a>>,
    ) -> Result<SearchTotals, Diagnostic> {
        if let Some(spill) = self.goal.spill {
            return self.coordinate_spilled(helpers, spill);
        }
        let mut local = ThreadState::new(self, 0);
        local.annotation_worker = annotation_worker.or(local.annotation_worker);
        let blocks = |keys: Vec<u64>| {
            keys.chunks(self.options.tuning.block).map(<[u64]>::to_vec).collect::<Vec<_>>()
        };
        let (initial, mut frontier, mut ahead, before) = match queued {
            Some((todo, next, counts)) => {
                (counts.initial, blocks(todo), blocks(next), Some(counts))
            }
            None => {
                let initial = self.insert_initial(&mut local)?;
                (initial, vec![vec![initial]], Vec::new(), None)
            }
        };
        let mut totals = SearchTotals {
            lts: self.goal.edges.then(|| LtsBuilder::new(self.options.tuning.block)),
            initial,
            ..SearchTotals::default()
        };
        let mut statistics = CacheStatistics::default();
        if let Some(before) = before {
            totals.transitions = before.transitions;
            totals.deadlocks = before.deadlocks;
            totals.surplus = before.surplus;
            self.surplus.store(before.surplus, Ordering::Relaxed);
            totals.frontier_bytes = before.frontier_bytes;
            // The resumed level is counted again when it begins.
            totals.level_count = before.levels.saturating_sub(1);
            self.transitions.store(before.transitions, Ordering::Relaxed);
            self.backward.store(before.backward, Ordering::Relaxed);
        }
        let mut kept = 0;
        while !frontier.is_empty() || !ahead.is_empty() {
            totals.level_count += 1;
            self.level.store(totals.level_count, Ordering::Relaxed);
            self.waiting.store(frontier.iter().map(|f| f.len() as u64).sum(), Ordering::Relaxed);
            totals.frontier_bytes =
                totals.frontier_bytes.max(frontier.iter().map(|f| f.capacity() as u64 * 8).sum());
            kept += frontier.iter().map(|f| f.len() as u64).sum::<u64>();
            if kept <= self.goal.levels {
                totals.levels.push(frontier.concat());
            } else {
                totals.levels = Vec::new();
            }
            let mut todo = number_blocks(frontier);
            // States of the next level that a resumed search had found.
            let mut next: Vec<Vec<u64>> = std::mem::take(&mut ahead);
            let mut edges: Vec<Edges> = Vec::new();
            // Rounds of the level.
            while !todo.is_empty()
                && totals.stop == Stop::Complete
                && (totals.hits.is_empty() || self.goal.annotator.is_none())
            {
                let mut round = self.round(helpers, &mut local, todo);
                if let Some(error) = round.error {
                    return Err(error);
                }
                totals.transitions += round.transitions;
                totals.deadlocks += round.deadlocks;
                totals.surplus += round.surplus;
                totals.saved += round.saved;
                totals.hits.append(&mut round.hits);
                round.dead.truncate(MAX_DEADLOCKS.saturating_sub(totals.dead.len()));
                totals.dead.append(&mut round.dead);
                next.append(&mut round.next);
                edges.append(&mut round.edges);
                add(&mut statistics, round.statistics);
                todo = round.todo;
                todo.sort_unstable_by_key(|b| std::cmp::Reverse(b.first));
                if let Some(stop) = round.stop {
                    totals.stop = stop;
                }
                self.maintain(
                    &mut local,
                    round.overflow,
                    round.unplaced,
                    &mut todo,
                    &mut next,
                    &mut edges,
                    &mut totals,
                )?;
                if let Some(checkpoints) = self.goal.checkpoints
                    && totals.hits.is_empty()
                    && (totals.stop != Stop::Complete || checkpoints.due())
                {
                    self.keep(checkpoints, &todo, &next, &totals)?;
                }
            }
            if let Some(rows) = &mut totals.lts {
                // States that a limit left unexpanded have no transitions.
                edges.extend(todo.into_iter().map(|b| Edges {
                    first: b.first,
                    counts: vec![0; b.keys.len()],
                    labels: Vec::new(),
                    targets: Vec::new(),
                }));
                next = rows.number(&held!(self.store.read()), edges)?;
            }
            self.futile
                .fetch_or(totals.saved.is_futile(kept, totals.transitions), Ordering::Relaxed);
            frontier = if totals.stop == Stop::Complete && totals.hits.is_empty() {
                next
            } else {
                Vec::new()
            };
        }
        if let (Some(checkpoints), Some(_)) = (self.goal.checkpoints, self.goal.annotator)
            && totals.hits.is_empty()
            && totals.stop == Stop::Complete
        {
            self.keep(checkpoints, &[], &[], &totals)?;
        }
        held!(self.round.lock()).statistics = statistics;
        Ok(totals)
    }

    /// Writes a checkpoint.
    fn keep(
        &self,
        checkpoints: &dyn CheckpointWriter,
        todo: &[Block],
        next: &[Vec<u64>],
        totals: &SearchTotals,
    ) -> Result<(), Diagnostic> {
        let store = held!(self.store.read());
        let annotations = match self.goal.annotator.map(|a| a.save()).transpose() {
            Err(error) if error.stage == Stage::Unsupported => return checkpoints.miss(&error),
            saved => saved?,
        };
        checkpoints.keep(&CheckpointImage {
            store: &store,
            todo: todo.iter().rev().map(|b| &b.keys[..]).collect(),
            next: next.iter().map(|n| &n[..]).collect(),
            counts: SearchCounts {
                transitions: totals.transitions,
                deadlocks: totals.deadlocks,
                levels: totals.level_count,
                frontier_bytes: totals.frontier_bytes,
                initial: totals.initial,
                surplus: totals.surplus,
                symmetries: SymmetryGroup::of(self.goal.symmetries),
                backward: self.backward.load(Ordering::Relaxed),
            },
            annotations,
        })
    }

    /// Stores the initial state.
    pub(super) fn insert_initial(&'a self, local: &mut ThreadState<'a>) -> Result<u64, Diagnostic> {
        let vector = self.model.initial();
        let mut failures = 0;
        loop {
            let mut store = held!(self.store.write());
            local.expander.follow(&store);
            let key = match store.encode(&vector) {
                Ok(key) => local.expander.representative(&store, key),
                Err(overflow) => Err(overflow.into()),
            };
            // The initial state is its own image under all symmetries.
            match key {
                Ok(key) => {
                    if let Insert::New(place) = store.table.insert(key) {
                        store.table.add_len(1);
                        self.note_level(&store, place);
                        if self.goal.edges {
                            store.table.number(place).store(1, Ordering::Relaxed);
                        }
                        if let Some(annotator) = self.goal.annotator {
                            self.bring(
                                &store,
                                local.annotation_worker.as_deref_mut(),
                                place,
                                annotator.initial(),
                            )?;
                        }
                    }
                    return Ok(key);
                }
                Err(Halt::Error(error)) => return Err(*error),
                Err(Halt::Overflow) if failures < 64 => store.replan(std::iter::empty(), None),
                Err(Halt::Overflow) => return Err(index_too_wide()),
            }
            failures += 1;
        }
    }

    /// Makes room between rounds, and inserts the states that found none.
    #[allow(clippy::too_many_arguments)]
    fn maintain(
        &self,
        local: &mut ThreadState<'_>,
        overflow: bool,
        mut unplaced: Vec<(u64, u32)>,
        todo: &mut [Block],
        next: &mut Vec<Vec<u64>>,
        edges: &mut [Edges],
        totals: &mut SearchTotals,
    ) -> Result<(), Diagnostic> {
        let mut store = held!(self.store.write());
        let limit = self.budget.limits().max_memory;
        let fits = |more: u64| limit.is_none_or(|m| mu_base::limits::resident_bytes() + more <= m);
        if overflow && store.at_limit() {
            return Err(index_too_wide());
        }
        // With symmetries the numbers of leaf tuples must stay valid.
        let split = if self.goal.symmetries.is_none() && (store.table.is_crowded() || overflow) {
            store.unfit_leaf()
        } else {
            None
        };
        let wanted =
            overflow || split.is_some() || store.table.is_crowded() && store.could_be_short();
        // Repacking temporarily needs memory for two copies. Querying the resident memory takes
        // longer than a small level.
        let affordable = wanted && fits(store.table.bytes());
        if overflow && !affordable {
            totals.stop = Stop::Memory;
        } else if affordable {
            let blocks =
                todo.iter_mut().flat_map(|b| b.keys.iter_mut()).chain(next.iter_mut().flatten());
            let targets = edges
                .iter_mut()
                .flat_map(|e| e.targets.iter_mut())
                .chain(unplaced.iter_mut().map(|u| &mut u.0));
            let hits = totals.hits.iter_mut().flat_map(|h| {
                std::iter::once(&mut h.source).chain(h.step.as_mut().map(|s| &mut s.key))
            });
            let levels =
                totals.levels.iter_mut().flatten().chain(totals.dead.iter_mut().map(|d| &mut d.0));
            let held = blocks
                .chain(targets)
                .chain(hits)
                .chain(levels)
                .chain(std::iter::once(&mut totals.initial));
            store.replan(held, split);
        }
        while store.table.is_crowded() || !unplaced.is_empty() {
            if store.table.is_crowded() && !fits(store.table.growth_bytes()) {
                totals.stop = Stop::Memory;
                // Stored and queued states stay as they are; nothing more is expanded.
                if unplaced.is_empty() {
                    return Ok(());
                }
            }
            let generous = limit.is_none_or(|m| store.table.bytes() <= m / GENEROUS);
            store.table.grow(Growth { generous, helpers: self.options.thread_count().max(1) - 1 });
            let (mut fresh, mut new, mut failed) = (Vec::new(), 0, None);
            unplaced.retain(|&(key, propagated)| {
                let place = match store.table.insert(key) {
                    Insert::New(place) => {
                        new += 1;
                        self.note_level(&store, place);
                        if local.annotation_worker.is_none() {
                            fresh.push(key);
                        }
                        place
                    }
                    Insert::Old(place) => place,
                    Insert::Full => return true,
                };
                match self.bring(&store, local.annotation_worker.as_deref_mut(), place, propagated)
                {
                    Ok(true) => fresh.push(key),
                    Ok(false) => {}
                    Err(error) => failed = Some(error),
                }
                false
            });
            store.table.add_len(new);
            if !fresh.is_empty() {
                next.push(fresh);
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Runs a thread's part of a round.
    fn work(&'a self, local: &mut ThreadState<'a>) {
        let store = held!(self.store.read());
        local.expander.follow(&store);
        if self.futile.load(Ordering::Relaxed) {
            local.expander.in_full();
        }
        let mut mine = Round::default();
        while !self.pause.load(Ordering::Relaxed) {
            let Some(block) = held!(self.round.lock()).claim(local.number) else { break };
            let before = (mine.transitions, mine.surplus);
            let expanded = match self.goal.annotator {
                None => self.expand(&store, local, block, &mut mine),
                Some(_) => self.expand_annotated(&store, local, block, &mut mine),
            };
            self.transitions.fetch_add(mine.transitions - before.0, Ordering::Relaxed);
            let surplus = mine.surplus - before.1;
            let stored = store.table.len().wrapping_add(self.beyond.load(Ordering::Relaxed));
            let states = stored + surplus + self.surplus.fetch_add(surplus, Ordering::Relaxed);
            if store.table.is_crowded() {
                self.pause.store(true, Ordering::Relaxed);
            }
            if let Err(stop) = self.budget.check(states) {
                mine.stop = Some(stop);
                self.pause.store(true, Ordering::Relaxed);
            }
            let waiting = self.waiting.fetch_sub(expanded, Ordering::Relaxed) - expanded;
            let since = local.ticked.elapsed();
            let tick = since > TICK;
            if (tick || since > TICK_NEAR_LIMIT && self.budget.is_near_memory_limit())
                && let Err(stop) = self.budget.check_memory()
            {
                mine.stop = Some(stop);
                self.pause.store(true, Ordering::Relaxed);
            }
            if tick {
                local.ticked = Instant::now();
                if self.goal.checkpoints.is_some_and(CheckpointWriter::due) {
                    self.pause.store(true, Ordering::Relaxed);
                }
                self.progress.report(&Snapshot {
                    states,
                    transitions: self.transitions.load(Ordering::Relaxed),
                    level: self.level.load(Ordering::Relaxed),
                    waiting,
                    elapsed: self.start.elapsed(),
                });
            }
        }
        if !local.blocks.fresh.is_empty() {
            mine.next.push(std::mem::take(&mut local.blocks.fresh));
        }
        mine.statistics = local.expander.take_statistics();
        mine.saved = local.expander.take_savings();
        let mut round = held!(self.round.lock());
        round.todo.append(&mut mine.todo);
        round.next.append(&mut mine.next);
        round.edges.append(&mut mine.edges);
        round.unplaced.append(&mut mine.unplaced);
        round.hits.append(&mut mine.hits);
        round.dead.append(&mut mine.dead);
        round.deadlocks += mine.deadlocks;
        round.transitions += mine.transitions;
        round.surplus += mine.surplus;
        round.overflow |= mine.overflow;
        add(&mut round.statistics, mine.statistics);
        round.saved += mine.saved;
        if mine.stop.is_some() {
            round.stop = mine.stop;
        }
        if let Some(error) = mine.error {
            round.fail(error);
        }
    }

    /// Expands a block up to the first state that cannot be expanded. That state and the rest go
    /// back to `mine.todo`. Returns the number of expanded states.
    fn expand(
        &self,
        store: &Store,
        local: &mut ThreadState<'a>,
        block: Block,
        mine: &mut Round,
    ) -> u64 {
        let mut edges = self.goal.edges.then(|| Edges {
            first: block.first,
            counts: Vec::new(),
            labels: Vec::new(),
            targets: Vec::new(),
        });
        let mut hit = false;
        let mut expanded = block.keys.len();
        for (i, &key) in block.keys.iter().enumerate() {
            let found = &mut local.found;
            let orbit = match local
                .expander
                .orbit(store, key, None)
                .and_then(|n| local.expander.successors(store, key, found).map(|()| n))
            {
                Ok(orbit) => orbit,
                Err(halt) => {
                    self.give_back(halt, &block, i, mine);
                    expanded = i;
                    break;
                }
            };
            mine.surplus += orbit - 1;
            mine.transitions += orbit * local.found.len() as u64;
            if local.found.is_empty() && !local.expander.leaves_out() {
                mine.deadlocks += orbit;
                if self.goal.keep_dead && mine.dead.len() < MAX_DEADLOCKS {
                    mine.dead.push((key, orbit));
                }
                if !hit && self.goal.deadlock {
                    hit = true;
                    mine.hits.push(GoalHit { source: key, step: None });
                }
            }
            if let Some(test) = self.goal.step
                && !hit
                && let Some(&step) = local.found.iter().find(|s| test(s.group as usize, s.label))
            {
                hit = true;
                mine.hits.push(GoalHit { source: key, step: Some(step) });
            }
            local.batch.extend(local.found.iter().map(|s| s.key));
            if let Some(edges) = &mut edges {
                edges.counts.push(narrow::index(local.found.len()));
                edges.labels.extend(local.found.iter().map(|s| s.label));
                edges.targets.extend(local.found.iter().map(|s| s.key));
            }
            if local.batch.len() >= BATCH {
                self.flush(store, local, mine);
                // A block of states with many successors fills a small table many times over.
                if store.table.is_crowded() && i + 1 < block.keys.len() {
                    self.leave(&block, i + 1, mine);
                    expanded = i + 1;
                    break;
                }
            }
        }
        self.flush(store, local, mine);
        mine.edges.extend(edges);
        local.blocks.recycle(block.keys);
        expanded as u64
    }

    /// Ends a thread's part of a round at a state that cannot be expanded now: it and the following
    /// ones wait again.
    pub(super) fn give_back(&self, halt: Halt, block: &Block, at: usize, mine: &mut Round) {
        match halt {
            Halt::Overflow => mine.overflow = true,
            Halt::Error(error) => mine.fail(*error),
        }
        self.leave(block, at, mine);
    }

    /// Leaves a block at a state: it and the following ones wait for the next round, to which all
    /// threads return.
    pub(super) fn leave(&self, block: &Block, at: usize, mine: &mut Round) {
        self.pause.store(true, Ordering::Relaxed);
        mine.todo.push(Block { first: block.first + at as u64, keys: block.keys[at..].to_vec() });
    }

    /// Inserts the waiting successors.
    fn flush(&self, store: &Store, local: &mut ThreadState<'a>, mine: &mut Round) {
        local.hashes.clear();
        local.hashes.extend(local.batch.iter().map(|&key| store.table.hash(key)));
        std::hint::black_box(
            local.hashes.iter().fold(0, |acc, &hash| acc ^ store.table.touch(hash)),
        );
        let mut new = 0;
        for (key, &hash) in local.batch.drain(..).zip(&local.hashes) {
            match store.table.insert_hashed(hash) {
                Insert::New(_) => {
                    new += 1;
                    local.blocks.fresh.push(key);
                    if local.blocks.is_full() {
                        mine.next.push(local.blocks.take_full());
                    }
                }
                Insert::Old(_) => {}
                Insert::Full => {
                    mine.unplaced.push((key, 0));
                    self.pause.store(true, Ordering::Relaxed);
                }
            }
        }
        if new > 0 {
            store.table.add_len(new);
        }
    }
}

pub(super) fn add(to: &mut CacheStatistics, from: CacheStatistics) {
    to.lookups += from.lookups;
    to.hits += from.hits;
    to.bypassed = to.bypassed.max(from.bypassed);
    to.bytes = to.bytes.max(from.bytes);
}

/// Returns the error for a field of the root that cannot be wider.
pub(crate) fn index_too_wide() -> Diagnostic {
    Diagnostic::new(
        Stage::Unsupported,
        "more distinct values in one part of the state vector than a 31-bit index can number",
    )
    .note("split the component that has them into several")
}
