//! A search for whose states there is no room in memory: the table is emptied to disk whenever it
//! can grow no more.
//!
//! In: a model, a folder on a disk that is fast, a limit on the memory. Out: the counts of the
//! search in memory, exactly. A level is expanded in slices. What is new to the table is held
//! against the states on disk at the end of a slice ([`cold`]), before it is expanded: the table
//! tells most of the successors that are old, since these are mostly near, and the disk is read
//! once a slice, from beginning to end. Queued states go to disk as well where they are many.
//!
//! Cost: a pass over the states on disk for each slice, two bytes a state, of which there is one a
//! level or one for each [`SLICES`]-th of the memory. Invariant: what is expanded has been sifted,
//! so each state is expanded once.

mod disk;
mod run;

use disk::{DiskStates, Queue, SpilledStates};

use std::sync::atomic::Ordering;

use super::Spill;
use super::expander::CacheStatistics;
use super::intern::held;
use super::round::Block;
use super::search::{GENEROUS, MOST_DEAD, SearchTotals, Shared, add, numbered, too_many};
use super::store::Store;
use super::table::{Growth, Insert, Payload, Table};
use super::thread_state::ThreadState;
use mu_base::{Diagnostic, Stop};

/// A slice is as many states as would fill this part of the memory allowed, at eight bytes each.
const SLICES: u64 = 64;
/// Part of the memory allowed that queued states of a level may take.
const QUEUED: u64 = 32;
/// Part of the memory allowed that is kept free for sifting.
const RESERVE: u64 = 6;
/// Part of the memory allowed at whose end the table gives memory back.
const TIGHT: u64 = 16;
/// A table smaller than this part of the memory allowed is not worth emptying: what takes the
/// memory is something else.
const LEAST: u64 = 32;
/// Least states of a slice.
const LEAST_SLICE: u64 = 1 << 16;
/// A level that is being expanded.
struct Level {
    sizes: Sizes,
    now: Queue,
    next: Queue,
    /// Blocks of the slice.
    todo: Vec<Block>,
    /// What was new to the table.
    candidates: Vec<Vec<u64>>,
}

/// How much may be in memory.
struct Sizes {
    /// Bytes of the whole process.
    limit: u64,
    /// States of the table, if these are limited instead.
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
    /// Whether there is room for so many bytes more.
    fn have_room(&self, store: &Store, more: u64) -> bool {
        match self.most {
            Some(most) => store.table.len() < most,
            None => {
                mu_base::limits::resident_bytes().saturating_add(more)
                    <= self.limit - self.limit / RESERVE
            }
        }
    }
    /// Whether the process has nearly all that it may have.
    fn are_tight(&self) -> bool {
        self.most.is_none() && mu_base::limits::resident_bytes() > self.limit - self.limit / TIGHT
    }
    /// Whether a table is so small that it is not worth emptying.
    fn small(&self, store: &Store) -> bool {
        self.most.is_none() && store.table.bytes() < self.limit / LEAST
    }
}

impl<'a> Shared<'a> {
    /// The search, with a folder for what memory has no room for.
    pub(super) fn coordinate_spilled(
        &'a self,
        helpers: usize,
        spill: Spill<'_>,
    ) -> Result<SearchTotals, Diagnostic> {
        let sizes = Sizes::new(self.budget.limits().max_memory.unwrap_or(u64::MAX), spill.most);
        let mut local = ThreadState::new(self, 0);
        let initial = self.enter(&mut local)?;
        let mut cold = DiskStates::new(spill.folder.to_path_buf(), self.options.thread_count())?;
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
            totals.frontier_bytes = totals.frontier_bytes.max(level.now.held() * 8);
            while totals.stop == Stop::Complete {
                let blocks =
                    cold.take(&mut level.now, &held!(self.store.read()).table, level.sizes.slice)?;
                if blocks.is_empty() {
                    break;
                }
                level.todo = numbered(blocks);
                while !level.todo.is_empty() && totals.stop == Stop::Complete {
                    let mut round =
                        self.round(helpers, &mut local, std::mem::take(&mut level.todo));
                    if let Some(error) = round.error {
                        return Err(error);
                    }
                    totals.transitions += round.transitions;
                    totals.deadlocks += round.deadlocks;
                    totals.surplus += round.surplus;
                    round.dead.truncate(MOST_DEAD.saturating_sub(totals.dead.len()));
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

    /// Holds the candidates against the states on disk; what is new waits for the next level.
    fn sift(
        &self,
        cold: &mut DiskStates,
        store: &Store,
        level: &mut Level,
    ) -> Result<(), Diagnostic> {
        let most = level.sizes.queued;
        let candidates = std::mem::take(&mut level.candidates);
        let count = candidates.iter().map(|c| c.len() as u64).sum::<u64>();
        if cold.is_empty() && level.next.held() + count <= most {
            cold.stored += count;
            level.next.blocks.extend(candidates);
        } else {
            let hashes = cold.sift(&store.table, &candidates)?;
            drop(candidates);
            cold.enqueue(&mut level.next, &store.table, &hashes, most)?;
        }
        cold.note_bytes(&[&level.now, &level.next]);
        // Progress and limits count the states of the table, and these besides, or less those that
        // it holds again.
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

    /// Gives memory back: something else than the table needs more than was kept free for it.
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
        store.table = Table::new(store.key_bits(), half, Payload::None);
        Ok(())
    }

    /// Between rounds: makes room and places what found none.
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
            return Err(too_many());
        }
        // What is on disk is packed anew only if it must be.
        let early = cold.is_empty() && (store.table.crowded() || overflow);
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
        while store.table.crowded() || !unplaced.is_empty() {
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

    /// Packs all states anew, wherever they are.
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

    /// That disk and table hold the states that were counted, and no others.
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
