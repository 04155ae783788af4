//! Annotations carried along the steps of a model, joined at states with several paths: the
//! parallel search with a monotone data-flow analysis on top.
//!
//! In: a model and an [`Annotator`], which knows a join semilattice (its elements are numbers, 0
//! the least) and what an element becomes along a step of some label. Out: the join over all paths
//! for each reachable state that is annotated ([`AnnotatedSearch::for_each_state`]); or that some
//! annotation decides, which ends the search. After Kildall (1973) and Kam, Ullman (1977):
//! functions that distribute over the join, so the least fixed point is the join over all paths, in
//! whatever order it is computed.
//!
//! Each state holds two numbers in one word: everything that reached it (known), and the part of it
//! not yet propagated (pending). A state is queued when the second becomes nonzero, so it is
//! expanded again only with what is new, and everything from one level propagates together. Cost: 8
//! bytes a state in addition to the store; a lookup for each step and each state.
//!
//! With symmetries, an annotation of any state of an orbit goes, as its image, to the
//! representative.
//!
//! Invariants: pending is part of known, and known only grows. If no annotation ever reaches a
//! state that has been expanded ([`AnnotatedSearch::forward`]), then the order of the expansions is
//! a topological order of the annotated steps: they make no cycle.

use std::sync::atomic::{AtomicU64, Ordering};

use super::checkpoint::{AnnotationTable, CheckpointWriter, RestoredSearch};
use super::expander::{Expander, Halt};
use super::goal_search::halt_error;
use super::round::{Block, Round};
use super::search::{BATCH, FinishedSearch, Goal, GoalHit, Shared, run_from};
use super::store::Store;
use super::stubborn::{PartialOrder, ReductionObstacle, Stubborn, Visibility};
use super::symmetry::Symmetries;
use super::table::{Insert, Payload};
use super::thread_state::ThreadState;
use super::{Options, Outcome, Progress};
use mu_base::ids::LabelId;
use mu_base::narrow;
use mu_base::{Budget, Diagnostic, Stage};
use mu_model::Model;

/// Result of propagating an annotation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// An element; 0: nothing to propagate.
    Value(u32),
    /// The annotation decides; the search ends.
    Decided,
}

/// A join semilattice, and the transfer functions of steps.
pub trait Annotator: Sync {
    /// Returns the annotation of the initial state; not 0.
    fn initial(&self) -> u32;
    /// Creates the worker of one thread.
    fn annotation_worker(&self) -> Box<dyn AnnotationWorker + '_>;
    /// Describes the elements so far, for a checkpoint. Called while no worker computes.
    fn save(&self) -> Result<AnnotationTable, Diagnostic> {
        Err(Diagnostic::new(
            Stage::Unsupported,
            "annotations of this kind cannot be stored in a file",
        ))
    }
    /// Restores the numbers of elements from [`AnnotationTable::records`]; their names are known
    /// already. Called before all else.
    fn load(&self, _records: &[u64]) -> Result<(), Diagnostic> {
        Err(Diagnostic::new(
            Stage::Unsupported,
            "annotations of this kind cannot be read from a file",
        ))
    }
}

/// One thread's part of an [`Annotator`].
pub trait AnnotationWorker {
    /// Returns the join of both, and the part of `new` that `old` lacks (0: nothing).
    fn join(&mut self, old: u32, new: u32) -> Result<(u32, u32), Diagnostic>;
    /// Computes what leaves a state with these outgoing labels.
    fn enter(&mut self, pending: u32, labels: &[LabelId]) -> Result<Transfer, Diagnostic>;
    /// Applies the transfer function of a label.
    fn step(&mut self, flow: u32, label: LabelId) -> Result<Transfer, Diagnostic>;
    /// Returns the image of an annotation under an element of the symmetry group, given by number.
    fn image(&mut self, _element: usize, annotation: u32) -> Result<u32, Diagnostic> {
        Ok(annotation)
    }
}

/// The computed fixed point.
pub struct AnnotatedSearch<'a> {
    done: FinishedSearch,
    model: &'a dyn Model,
    options: &'a Options,
    symmetries: Option<&'a Symmetries>,
}

impl AnnotatedSearch<'_> {
    /// Counts of the search; a step counts each time it is taken.
    pub fn outcome(&self) -> &Outcome {
        &self.done.outcome
    }
    /// True if an annotation decided.
    pub fn is_decided(&self) -> bool {
        !self.done.hits.is_empty()
    }
    /// True if each annotated step led to a state that was expanded later: then these steps have no
    /// cycle.
    pub fn forward(&self) -> bool {
        !self.done.backward
    }
    /// Visits each stored state: its element, the size of its orbit, and the group elements that
    /// fix it, without the identity. The annotations of the orbit are the images of the joins of
    /// these.
    pub fn for_each_state(
        &self,
        visit: &mut dyn FnMut(u32, u64, &[u32]) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let store = &self.done.store;
        let mut expander = Expander::new(self.model, self.done.shared_cache.clone(), self.options)
            .with_symmetries(self.symmetries);
        expander.follow(store);
        let mut fixed = Vec::new();
        for (place, key) in store.table.entries() {
            fixed.clear();
            let orbit = expander.orbit(store, key, Some(&mut fixed)).map_err(halt_error)?;
            visit(narrow::high(store.table.pair(place).load(Ordering::Relaxed)), orbit, &fixed)?;
        }
        Ok(())
    }
}

/// Additional options of [`annotate()`].
#[derive(Default)]
pub struct AnnotateExtras<'a> {
    /// Writes checkpoints.
    pub checkpoints: Option<&'a dyn CheckpointWriter>,
    /// Search to resume.
    pub restored: Option<RestoredSearch>,
    /// Visible steps that a reduced search must preserve; `None`: no reduction.
    pub visibility: Option<&'a Visibility>,
    /// Worker of a search by a single thread, if it must not leave this thread; `None`: one of the
    /// annotator.
    pub annotation_worker: Option<Box<dyn AnnotationWorker + 'a>>,
}

/// Computes the fixed point, up to a limit or to a decision.
///
/// With symmetries, the annotator's must be symmetric as well: steps along an image of a label take
/// the images of elements to the images of what they become, and the initial state's element is its
/// own image.
pub fn annotate<'a>(
    model: &'a dyn Model,
    options: &'a Options,
    budget: &Budget,
    progress: &dyn Progress,
    annotator: &dyn Annotator,
    symmetries: Option<&'a Symmetries>,
    kept: AnnotateExtras,
) -> Result<AnnotatedSearch<'a>, Diagnostic> {
    let with = |visibility: &Visibility| {
        if symmetries.is_some() {
            Err(ReductionObstacle::Symmetry)
        } else {
            Stubborn::with(model, options, visibility)
        }
    };
    let stubborn = kept.visibility.map(with).transpose();
    let payload = if kept.visibility.is_some() { Payload::Triple } else { Payload::Pair };
    let reduced = stubborn.as_ref().ok().and_then(Option::as_ref);
    let goal = Goal {
        payload,
        annotator: Some(annotator),
        symmetries,
        checkpoints: kept.checkpoints,
        stubborn: reduced,
        ..Goal::default()
    };
    let mut done =
        run_from(model, options, budget, progress, goal, (kept.restored, kept.annotation_worker))?;
    if let Err(why) = stubborn {
        done.outcome.partial_order = PartialOrder::Unused(why);
    }
    Ok(AnnotatedSearch { done, model, options, symmetries })
}

impl<'a> Shared<'a> {
    /// Joins an annotation into that of a state. Returns true if the state must be queued.
    pub(super) fn bring(
        &self,
        store: &Store,
        annotation_worker: Option<&mut (dyn AnnotationWorker + '_)>,
        place: u64,
        new: u32,
    ) -> Result<bool, Diagnostic> {
        let Some(annotation_worker) = annotation_worker else { return Ok(false) };
        let cell = store.table.pair(place);
        let mut there = cell.load(Ordering::Relaxed);
        loop {
            let (known, pending) = (narrow::high(there), narrow::low(there));
            let expanded = known != 0 && pending == 0;
            let (both, fresh) =
                if known == new { (known, 0) } else { annotation_worker.join(known, new)? };
            if expanded {
                self.backward.store(true, Ordering::Relaxed);
            }
            if fresh == 0 {
                return Ok(false);
            }
            let more = if pending == 0 { fresh } else { annotation_worker.join(pending, fresh)?.0 };
            match cell.compare_exchange_weak(
                there,
                u64::from(both) << 32 | u64::from(more),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(pending == 0),
                Err(other) => there = other,
            }
        }
    }

    /// Expands a block as `expand`, with annotations.
    pub(super) fn expand_annotated(
        &self,
        store: &Store,
        local: &mut ThreadState<'a>,
        block: Block,
        mine: &mut Round,
    ) -> u64 {
        let mut expanded = block.keys.len();
        for (i, &key) in block.keys.iter().enumerate() {
            if i.is_multiple_of(BATCH) {
                let near = &block.keys[i..block.keys.len().min(i + BATCH)];
                std::hint::black_box(
                    near.iter().fold(0, |acc, &key| acc ^ store.table.touch(store.table.hash(key))),
                );
            }
            // States with many obligations take long, so a pause interrupts the block.
            if i > 0
                && (self.pause.load(Ordering::Relaxed)
                    || i.is_multiple_of(16) && self.out_of_time(mine))
            {
                self.leave(&block, i, mine);
                expanded = i;
                break;
            }
            match self.expand_one(store, local, key, mine) {
                Ok(true) => {}
                Ok(false) => {
                    mine.hits.push(GoalHit { source: key, step: None });
                    self.pause.store(true, Ordering::Relaxed);
                    return expanded as u64;
                }
                Err(halt) => {
                    self.give_back(halt, &block, i, mine);
                    expanded = i;
                    break;
                }
            }
            if local.batch.len() >= BATCH
                && let Err(error) = self.flush_annotated(store, local, mine)
            {
                self.give_back(error.into(), &block, i + 1, mine);
                return i as u64 + 1;
            }
        }
        if let Err(error) = self.flush_annotated(store, local, mine) {
            mine.fail(error);
            self.pause.store(true, Ordering::Relaxed);
        }
        expanded as u64
    }

    /// Propagates the pending annotation of a state. Returns false if it decides.
    fn expand_one(
        &self,
        store: &Store,
        local: &mut ThreadState<'a>,
        key: u64,
        mine: &mut Round,
    ) -> Result<bool, Halt> {
        let place = store
            .table
            .find(key)
            .ok_or_else(|| internal_error("a queued state is not in the store"))?;
        let later = |target: u64| self.is_later(store, place, target);
        let later = self.goal.stubborn.map(|_| &later as &dyn Fn(u64) -> bool);
        local.expander.successors_by_level(store, key, later, &mut local.found)?;
        let cell = store.table.pair(place);
        // All that is known is pending: nothing was propagated before. Concurrent arrivals extend
        // both parts.
        let there = cell.load(Ordering::Relaxed);
        let orbit = if narrow::high(there) == narrow::low(there) {
            local.expander.orbit(store, key, None)?
        } else {
            1
        };
        let pending = narrow::low(cell.fetch_and(!u64::from(u32::MAX), Ordering::Relaxed));
        local.labels.clear();
        local.labels.extend(local.found.iter().map(|s| s.label));
        local.labels.extend(&local.expander.left_out);
        let carried = carry_on(pending, local);
        if carried.is_err() {
            // Makes it pending again, so that a checkpoint can be written; parts propagated before
            // the error may be propagated twice.
            self.await_again(local, cell, pending);
        } else {
            mine.surplus += orbit - 1;
            mine.transitions += local.found.len() as u64;
            mine.deadlocks += u64::from(local.labels.is_empty());
        }
        carried
    }

    /// True if a target was stored at a later level than the state at a place. Also true if it was
    /// not stored when the state's level began, regardless of the thread that stores it, so the
    /// answer does not depend on time. Only for reduced searches.
    fn is_later(&self, store: &Store, place: u64, target: u64) -> bool {
        let level = |place| store.table.number(place).load(Ordering::Relaxed);
        // An entry without a level is being stored now.
        store.table.find(target).is_none_or(|at| level(at) == 0 || level(at) > level(place))
    }

    /// Records the level of a new entry.
    pub(super) fn note_level(&self, store: &Store, place: u64) {
        if self.goal.stubborn.is_some() && self.goal.annotator.is_some() {
            let next = self.level.load(Ordering::Relaxed) + 1;
            store
                .table
                .number(place)
                .store(u32::try_from(next).expect("fewer levels than states"), Ordering::Relaxed);
        }
    }

    /// True if time is up; records the stop reason in the round.
    fn out_of_time(&self, mine: &mut Round) -> bool {
        if let Err(stop) = self.budget.check(0) {
            mine.stop = Some(stop);
        }
        mine.stop.is_some()
    }

    /// Makes a taken annotation pending again.
    fn await_again(&self, local: &mut ThreadState<'a>, cell: &AtomicU64, taken: u32) {
        let Some(annotation_worker) = local.annotation_worker.as_deref_mut() else { return };
        let mut there = cell.load(Ordering::Relaxed);
        while let Ok((pending, _)) = annotation_worker.join(narrow::low(there), taken) {
            let back = there & !u64::from(u32::MAX) | u64::from(pending);
            match cell.compare_exchange_weak(there, back, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => there = other,
            }
        }
    }

    /// Inserts the waiting successors and joins their annotations.
    fn flush_annotated(
        &self,
        store: &Store,
        local: &mut ThreadState<'a>,
        mine: &mut Round,
    ) -> Result<(), Diagnostic> {
        local.hashes.clear();
        local.hashes.extend(local.batch.iter().map(|&key| store.table.hash(key)));
        std::hint::black_box(
            local.hashes.iter().fold(0, |acc, &hash| acc ^ store.table.touch(hash)),
        );
        // All places first, so that the cache misses on the payloads overlap as well.
        let mut new = 0;
        local.places.clear();
        local.places.extend(local.hashes.iter().map(
            |hash| match store.table.insert_hashed(*hash) {
                Insert::New(place) => {
                    new += 1;
                    self.note_level(store, place);
                    Some(place)
                }
                Insert::Old(place) => Some(place),
                Insert::Full => None,
            },
        ));
        if new > 0 {
            store.table.add_len(new);
            // A block of states with many successors fills a small table many times over.
            if store.table.is_crowded() {
                self.pause.store(true, Ordering::Relaxed);
            }
        }
        let places = local.places.iter().flatten();
        std::hint::black_box(
            places.fold(0, |acc, &place| acc ^ store.table.pair(place).load(Ordering::Relaxed)),
        );
        let mut failure = None;
        for ((key, &place), propagated) in
            local.batch.drain(..).zip(&local.places).zip(local.propagated.drain(..))
        {
            let Some(place) = place.filter(|_| failure.is_none()) else {
                mine.unplaced.push((key, propagated));
                self.pause.store(true, Ordering::Relaxed);
                continue;
            };
            match self.bring(store, local.annotation_worker.as_deref_mut(), place, propagated) {
                Ok(false) => {}
                Ok(true) => {
                    local.blocks.fresh.push(key);
                    if local.blocks.is_full() {
                        mine.next.push(local.blocks.take_full());
                    }
                }
                Err(error) => {
                    mine.unplaced.push((key, propagated));
                    failure = Some(error);
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

/// Propagates the annotation taken from a state with its steps in `found`. Returns false if it
/// decides.
fn carry_on(pending: u32, local: &mut ThreadState<'_>) -> Result<bool, Halt> {
    let annotation_worker = local
        .annotation_worker
        .as_deref_mut()
        .ok_or_else(|| internal_error("a search with annotations has none"))?;
    let flow = match annotation_worker.enter(pending, &local.labels)? {
        Transfer::Decided => return Ok(false),
        Transfer::Value(0) => return Ok(true),
        Transfer::Value(flow) => flow,
    };
    // Labels that are left out are applied as well, so that the automaton records them.
    for label in &local.expander.left_out {
        if annotation_worker.step(flow, *label)? == Transfer::Decided {
            return Ok(false);
        }
    }
    for (i, step) in local.found.iter().enumerate() {
        match annotation_worker.step(flow, step.label)? {
            Transfer::Decided => return Ok(false),
            Transfer::Value(0) => {}
            Transfer::Value(value) => {
                let propagated = match local.expander.moved.get(i) {
                    None | Some(0) => value,
                    Some(element) => annotation_worker.image(*element as usize - 1, value)?,
                };
                local.batch.push(step.key);
                local.propagated.push(propagated);
            }
        }
    }
    Ok(true)
}

fn internal_error(what: &str) -> Halt {
    Halt::Error(Box::new(Diagnostic::new(Stage::Internal, what)))
}
