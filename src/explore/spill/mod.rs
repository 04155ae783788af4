//! Search with states on disk: the table is written to disk whenever it cannot grow.
//!
//! In: a model, a folder on a fast disk, a limit on the memory. Out: exactly the counts of the
//! search in memory. A level is expanded in slices. At the end of a slice its candidates, the
//! states that are new to the table, are compared with the states on disk ([`disk`]), before they
//! are expanded. The table detects most duplicates, since they are mostly recent, and the disk is
//! read once a slice, from beginning to end. Long queues are stored on disk as well.
//!
//! Cost: a pass over the states on disk for each slice, two to five bytes a state. There is one
//! slice for each level, or for each [`SLICES`]-th of the memory. Invariant: states are compared
//! with those on disk before they are expanded, so each is expanded once.

mod disk;
mod sorted_run;

use disk::{DiskStates, Queue, SpilledStates};

use std::sync::atomic::Ordering;

use super::Spill;
use super::expander::CacheStatistics;
use super::intern::held;
use super::round::Block;
use super::search::{
    GENEROUS, MAX_DEADLOCKS, SearchTotals, Shared, add, index_too_wide, number_blocks,
};
use super::store::Store;
use super::table::{Growth, Insert, Payload, StateTable};
use super::thread_state::ThreadState;
use mu_base::{Diagnostic, Stop};

/// A slice has as many states as fill this fraction of the memory limit, at eight bytes each.
const SLICES: u64 = 64;
/// Fraction of the memory limit for the queued states of a level.
const QUEUED: u64 = 32;
/// Fraction of the memory limit reserved for sifting.
const RESERVE: u64 = 6;
/// The table gives memory back if less than this fraction of the memory limit is free.
const TIGHT: u64 = 16;
/// A table below this fraction of the memory limit is not written to disk, because something else
/// takes the memory.
const LEAST: u64 = 32;
/// Minimum number of states of a slice.
const LEAST_SLICE: u64 = 1 << 16;
/// A level during its expansion.
struct Level {
    sizes: Sizes,
    now: Queue,
    next: Queue,
    /// Blocks of the slice.
    todo: Vec<Block>,
    /// States that are new to the table.
    candidates: Vec<Vec<u64>>,
}

/// Limits on memory.
struct Sizes {
    /// Bytes of the whole process.
    limit: u64,
    /// Limit on the states of the table, if set instead.
    most: Option<u64>,
    /// States of a slice.
    slice: u64,
    /// Queued states of a level.
    queued: u64,
}

impl Sizes {
    fn new(limit: u64, most: Option<u64>) -> Self {
        let (slice, queued) = match most {
            Some(most) => (most / 2, most / 4),
            None => ((limit / SLICES / 8).max(LEAST_SLICE), limit / QUEUED / 8),
        };
        Self { limit, most, slice: slice.max(1), queued }
    }
    /// True if there is room for `more` bytes.
    fn have_room(&self, store: &Store, more: u64) -> bool {
        match self.most {
            Some(most) => store.table.len() < most,
            None => {
                mu_base::limits::resident_bytes().saturating_add(more)
                    <= self.limit - self.limit / RESERVE
            }
        }
    }
    /// True if the process has nearly reached its limit.
    fn are_tight(&self) -> bool {
        self.most.is_none() && mu_base::limits::resident_bytes() > self.limit - self.limit / TIGHT
    }
    /// True if a table is too small to be written to disk.
    fn small(&self, store: &Store) -> bool {
        self.most.is_none() && store.table.bytes() < self.limit / LEAST
    }
}

impl<'a> Shared<'a> {
    /// Runs the search with a folder for states on disk.
    pub(super) fn coordinate_spilled(
        &'a self,
        helpers: usize,
        spill: Spill<'_>,
    ) -> Result<SearchTotals, Diagnostic> {
        let sizes = Sizes::new(self.budget.limits().max_memory.unwrap_or(u64::MAX), spill.most);
        let mut local = ThreadState::new(self, 0);
        let initial = self.insert_initial(&mut local)?;
        let mut cold = DiskStates::new(spill.folder.to_path_buf(), self.options)?;
        cold.stored = 1;
        let mut totals = SearchTotals { initial, ..SearchTotals::default() };
        let mut statistics = CacheStatistics::default();
        let mut level = Level {
            sizes,
            now: Queue::default(),
            next: Queue::default(),
            todo: Vec::new(),
            candidates: Vec::new(),
        };
        level.now.blocks.push_back(vec![initial]);
        while !level.now.is_empty() && totals.stop == Stop::Complete {
            totals.level_count += 1;
            self.level.store(totals.level_count, Ordering::Relaxed);
            self.waiting.store(level.now.len(), Ordering::Relaxed);
            totals.frontier_bytes = totals.frontier_bytes.max(level.now.len_in_memory() * 8);
            while totals.stop == Stop::Complete {
                let blocks =
                    cold.take(&mut level.now, &held!(self.store.read()).table, level.sizes.slice)?;
                if blocks.is_empty() {
                    break;
                }
                level.todo = number_blocks(blocks);
                while !level.todo.is_empty() && totals.stop == Stop::Complete {
                    let mut round =
                        self.round(helpers, &mut local, std::mem::take(&mut level.todo));
                    if let Some(error) = round.error {
                        return Err(error);
                    }
                    totals.transitions += round.transitions;
                    totals.deadlocks += round.deadlocks;
                    totals.surplus += round.surplus;
                    round.dead.truncate(MAX_DEADLOCKS.saturating_sub(totals.dead.len()));
                    totals.dead.append(&mut round.dead);
                    level.candidates.append(&mut round.next);
                    add(&mut statistics, round.statistics);
                    level.todo = round.todo;
                    let over = round.stop == Some(Stop::Memory);
                    if let Some(stop) = round.stop.filter(|_| !over) {
                        totals.stop = stop;
                    }
                    if over || level.sizes.are_tight() {
                        self.shrink(&mut cold, &mut level, &mut totals)?;
                    }
                    let unplaced = round.unplaced.into_iter().map(|(key, _)| key).collect();
                    self.make_room(&mut cold, &mut level, round.overflow, unplaced, &mut totals)?;
                }
                self.sift(&mut cold, &held!(self.store.read()), &mut level)?;
            }
            level.now = std::mem::take(&mut level.next);
        }
        totals.stored = Some(cold.stored);
        totals.spilled = cold.spilled;
        held!(self.round.lock()).statistics = statistics;
        #[cfg(test)]
        self.expect_all(&mut cold, totals.stop == Stop::Complete);
        Ok(totals)
    }

    /// Compares the candidates with the states on disk; new ones wait for the next level.
    fn sift(
        &self,
        cold: &mut DiskStates,
        store: &Store,
        level: &mut Level,
    ) -> Result<(), Diagnostic> {
        let most = level.sizes.queued;
        let candidates = std::mem::take(&mut level.candidates);
        let count = candidates.iter().map(|c| c.len() as u64).sum::<u64>();
        if cold.is_empty() && level.next.len_in_memory() + count <= most {
            cold.stored += count;
            level.next.blocks.extend(candidates);
        } else {
            let hashes = cold.sift(&store.table, &candidates)?;
            drop(candidates);
            cold.enqueue(&mut level.next, &store.table, &hashes, most)?;
        }
        cold.note_bytes(&[&level.now, &level.next]);
        // Progress and limits count the states of the table plus this correction.
        self.beyond.store(cold.stored.wrapping_sub(store.table.len()), Ordering::Relaxed);
        Ok(())
    }

    /// Writes the states of the table to disk.
    fn empty(
        &self,
        cold: &mut DiskStates,
        store: &mut Store,
        level: &mut Level,
    ) -> Result<(), Diagnostic> {
        self.sift(cold, store, level)?;
        cold.flush(&mut store.table)?;
        cold.note_bytes(&[&level.now, &level.next]);
        self.beyond.store(cold.stored, Ordering::Relaxed);
        Ok(())
    }

    /// Frees memory, because something other than the table needs more than its reserve.
    fn shrink(
        &self,
        cold: &mut DiskStates,
        level: &mut Level,
        totals: &mut SearchTotals,
    ) -> Result<(), Diagnostic> {
        let mut store = held!(self.store.write());
        if level.sizes.small(&store) {
            totals.stop = Stop::Memory;
            return Ok(());
        }
        let half = store.table.len() / 2;
        self.empty(cold, &mut store, level)?;
        store.table = StateTable::new(store.key_bits(), half, Payload::None, store.table.sizes());
        Ok(())
    }

    /// Makes room between rounds, and inserts the states that found none.
    fn make_room(
        &self,
        cold: &mut DiskStates,
        level: &mut Level,
        overflow: bool,
        mut unplaced: Vec<u64>,
        totals: &mut SearchTotals,
    ) -> Result<(), Diagnostic> {
        let mut store = held!(self.store.write());
        if overflow && store.at_limit() {
            return Err(index_too_wide());
        }
        // States on disk are repacked only if necessary.
        let early = cold.is_empty() && (store.table.is_crowded() || overflow);
        let split = if self.goal.symmetries.is_none() && early { store.unfit_leaf() } else { None };
        let wanted = overflow || split.is_some() || early && store.could_be_short();
        if wanted {
            let affordable =
                cold.is_empty() && level.sizes.have_room(&store, 2 * store.table.bytes());
            if overflow && !affordable {
                self.empty(cold, &mut store, level)?;
            }
            if overflow || affordable {
                self.replan(cold, &mut store, level, split, &mut unplaced, totals)?;
            }
        }
        while store.table.is_crowded() || !unplaced.is_empty() {
            if level.sizes.have_room(&store, store.table.growth_bytes()) {
                let generous = store.table.bytes() <= level.sizes.limit / GENEROUS;
                store
                    .table
                    .grow(Growth { generous, helpers: self.options.thread_count().max(1) - 1 });
            } else if level.sizes.small(&store) {
                totals.stop = Stop::Memory;
                return Ok(());
            } else {
                self.empty(cold, &mut store, level)?;
            }
            let (mut fresh, mut new) = (Vec::new(), 0);
            unplaced.retain(|&key| match store.table.insert(key) {
                Insert::New(_) => {
                    new += 1;
                    fresh.push(key);
                    false
                }
                Insert::Old(_) => false,
                Insert::Full => true,
            });
            store.table.add_len(new);
            if !fresh.is_empty() {
                level.candidates.push(fresh);
            }
        }
        Ok(())
    }

    /// Repacks all states, in memory and on disk.
    fn replan(
        &self,
        cold: &mut DiskStates,
        store: &mut Store,
        level: &mut Level,
        split: Option<usize>,
        unplaced: &mut [u64],
        totals: &mut SearchTotals,
    ) -> Result<(), Diagnostic> {
        let mut sample = cold.sample(&store.table)?;
        let Level { now, next, todo, candidates, .. } = level;
        let [mut first, mut second] = [now, next].map(std::mem::take);
        let mut blocks: Vec<Vec<u64>> = std::mem::take(&mut first.blocks).into();
        let mut later: Vec<Vec<u64>> = std::mem::take(&mut second.blocks).into();
        let held =
            todo.iter_mut().flat_map(|b| b.keys.iter_mut()).chain(candidates.iter_mut().flatten());
        let held = held
            .chain(blocks.iter_mut().flatten())
            .chain(later.iter_mut().flatten())
            .chain(unplaced.iter_mut());
        let held = held.chain(totals.dead.iter_mut().map(|d| &mut d.0)).chain(sample.iter_mut());
        let held = held.chain(std::iter::once(&mut totals.initial));
        let mut everything = SpilledStates { cold, queues: [&mut first, &mut second], error: None };
        store.replan_with(held, split, &mut everything);
        if let Some(error) = everything.error {
            return Err(error);
        }
        first.blocks = blocks.into();
        second.blocks = later.into();
        (level.now, level.next) = (first, second);
        Ok(())
    }

    /// Asserts that disk and table hold exactly the counted states.
    #[cfg(test)]
    fn expect_all(&self, cold: &mut DiskStates, complete: bool) {
        let mut store = held!(self.store.write());
        let folder = cold.folder.clone();
        if complete && cold.spilled.flushes > 0 {
            cold.flush(&mut store.table).unwrap();
            assert_eq!(cold.distinct(), cold.stored, "states in {}", folder.display());
        }
    }
}
