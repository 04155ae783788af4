//! States of a search on disk: states of earlier levels as sorted runs of their hashes, and queued
//! states.
//!
//! The table in memory holds the states found since it was last written out. A state that is new to
//! the table is a *candidate*. [`DiskStates::sift`] drops the candidates that are in some run. It
//! processes many candidates at once, in hash order, so that every run is read at most once from
//! beginning to end (delayed duplicate detection: Stern and Dill, "Using magnetic disk instead of
//! main memory in the Murphi verifier", CAV 1998). A dropped candidate stays in the table, and so
//! in the next run as well. Runs may share states; a merge of runs removes duplicates.
//!
//! Cost: a sift passes over all runs, about two bytes a state; a flush writes one run; merging
//! writes each state a number of times that is logarithmic in the number of flushes.
//!
//! Invariant: a state counts once, when it is sifted; `stored` is the number of distinct states.

use std::collections::VecDeque;
use std::path::PathBuf;

use super::super::store::ExternalStates;
use super::super::table::StateTable;
use super::super::tuning::DiskSizes;
use super::super::{Options, SpillCounts};
use super::sorted_run::{RunWriter, SortedRun, merge};
use mu_base::{Diagnostic, Stage};

/// Runs of a search; see the module header.
pub(super) struct DiskStates {
    pub folder: PathBuf,
    threads: usize,
    sizes: DiskSizes,
    /// States in a block of a queue.
    block: usize,
    runs: Vec<SortedRun>,
    /// Distinct states sifted.
    pub stored: u64,
    pub spilled: SpillCounts,
}

impl DiskStates {
    /// Starts without states on disk. Tests that files can be created in the folder.
    pub fn new(folder: PathBuf, options: &Options) -> Result<Self, Diagnostic> {
        let cold = Self {
            folder,
            threads: options.thread_count().max(1),
            sizes: options.tuning.disk,
            block: options.tuning.block,
            runs: Vec::new(),
            stored: 0,
            spilled: SpillCounts::default(),
        };
        cold.writer().map_err(|e| cold.spill_error(e))?;
        Ok(cold)
    }
    fn writer(&self) -> std::io::Result<RunWriter> {
        RunWriter::new(&self.folder, self.sizes.page)
    }
    /// True if no state is on disk.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
    fn spill_error(&self, error: std::io::Error) -> Diagnostic {
        Diagnostic::new(
            Stage::File,
            format!("{}: cannot spill states: {error}", self.folder.display()),
        )
    }

    /// Returns the hashes of the candidates that are in no run, in ascending order.
    pub fn sift(
        &mut self,
        table: &StateTable,
        candidates: &[Vec<u64>],
    ) -> Result<Vec<u64>, Diagnostic> {
        let threads = if candidates.len() < 4 { 1 } else { self.threads };
        let share = (1u64 << table.key_bits()).div_ceil(threads as u64);
        let runs = &self.runs;
        let part = |i: u64| -> std::io::Result<(Vec<u64>, u64)> {
            let range = share * i..share.saturating_mul(i + 1);
            let mut hashes: Vec<u64> = candidates
                .iter()
                .flatten()
                .map(|&key| table.hash(key))
                .filter(|h| range.contains(h))
                .collect();
            hashes.sort_unstable();
            let mut found = vec![false; hashes.len()];
            let mut read = 0;
            for run in runs {
                read += run.mark(&hashes, &mut found)?;
            }
            let mut found = found.into_iter();
            hashes.retain(|_| found.next() == Some(false));
            Ok((hashes, read))
        };
        let parts: Vec<std::io::Result<(Vec<u64>, u64)>> = std::thread::scope(|scope| {
            let part = &part;
            let running: Vec<_> =
                (1..threads as u64).map(|i| scope.spawn(move || part(i))).collect();
            let first = part(0);
            let join = |t: std::thread::ScopedJoinHandle<'_, _>| {
                t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            std::iter::once(first).chain(running.into_iter().map(join)).collect()
        });
        let mut all = Vec::new();
        for part in parts {
            let (hashes, read) = part.map_err(|e| self.spill_error(e))?;
            self.spilled.read += read;
            if all.is_empty() { all = hashes } else { all.extend(hashes) }
        }
        self.stored += all.len() as u64;
        Ok(all)
    }

    /// Writes the table to a run and clears it. All its candidates must have been sifted.
    pub fn flush(&mut self, table: &mut StateTable) -> Result<(), Diagnostic> {
        let write = || -> std::io::Result<SortedRun> {
            let mut writer = self.writer()?;
            table.in_order(&mut |hashes| writer.extend(hashes))?;
            writer.finish()
        };
        let run = write().map_err(|e| self.spill_error(e))?;
        self.spilled.flushes += 1;
        self.spilled.written += run.bytes();
        self.runs.push(run);
        table.clear();
        self.merge()
    }
    fn merge(&mut self) -> Result<(), Diagnostic> {
        if self.runs.len() > self.sizes.runs {
            self.runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
            let small = self.runs.split_off(self.runs.len() / 2);
            let run =
                merge(&self.folder, &small, self.sizes.page).map_err(|e| self.spill_error(e))?;
            self.spilled.written += run.bytes();
            self.runs.push(run);
        }
        Ok(())
    }

    /// Updates the number of bytes on disk, including those of some queues.
    pub fn note_bytes(&mut self, queues: &[&Queue]) {
        let queued = queues.iter().flat_map(|q| q.runs.iter()).map(|(run, _)| run.bytes());
        self.spilled.bytes =
            self.spilled.bytes.max(self.runs.iter().map(SortedRun::bytes).chain(queued).sum());
    }

    /// Adds states, by ascending hashes, to a queue that may hold `most` in memory.
    pub fn enqueue(
        &mut self,
        queue: &mut Queue,
        table: &StateTable,
        hashes: &[u64],
        most: u64,
    ) -> Result<(), Diagnostic> {
        if hashes.is_empty() {
            return Ok(());
        }
        if queue.len_in_memory() + hashes.len() as u64 <= most {
            queue.blocks.extend(
                hashes
                    .chunks(self.block)
                    .map(|b| b.iter().map(|&hash| table.key(hash)).collect::<Vec<u64>>()),
            );
            return Ok(());
        }
        let write = || -> std::io::Result<SortedRun> {
            let mut writer = self.writer()?;
            writer.extend(hashes)?;
            writer.finish()
        };
        let run = write().map_err(|e| self.spill_error(e))?;
        self.spilled.written += run.bytes();
        queue.runs.push_back((run, 0));
        Ok(())
    }

    /// Takes blocks with about `most` states from a queue.
    pub fn take(
        &self,
        queue: &mut Queue,
        table: &StateTable,
        most: u64,
    ) -> Result<Vec<Vec<u64>>, Diagnostic> {
        let mut blocks = Vec::new();
        let mut count = 0;
        while count < most {
            if let Some(block) = queue.blocks.pop_front() {
                count += block.len() as u64;
                blocks.push(block);
                continue;
            }
            let Some((run, page)) = queue.runs.front_mut() else { break };
            if *page == run.page_count() {
                queue.runs.pop_front();
                continue;
            }
            let hashes = run.read_page(*page).map_err(|e| self.spill_error(e))?;
            *page += 1;
            count += hashes.len() as u64;
            blocks.extend(
                hashes.chunks(self.block).map(|b| b.iter().map(|&hash| table.key(hash)).collect()),
            );
        }
        Ok(blocks)
    }

    /// Returns some keys of states on disk, evenly spread.
    pub fn sample(&self, table: &StateTable) -> Result<Vec<u64>, Diagnostic> {
        let mut keys = Vec::new();
        for run in &self.runs {
            for page in (0..run.page_count()).step_by(run.page_count() / 16 + 1) {
                let hashes = run.read_page(page).map_err(|e| self.spill_error(e))?;
                keys.extend(
                    hashes.iter().step_by(hashes.len() / 64 + 1).map(|&hash| table.key(hash)),
                );
            }
        }
        Ok(keys)
    }

    /// Merges all runs and returns their number of states.
    #[cfg(test)]
    pub fn distinct(&self) -> u64 {
        merge(&self.folder, &self.runs, self.sizes.page).unwrap().len()
    }
}

/// States of a level that wait for expansion, in memory and on disk.
#[derive(Default)]
pub(super) struct Queue {
    pub blocks: VecDeque<Vec<u64>>,
    /// Runs, with the next page to read.
    runs: VecDeque<(SortedRun, usize)>,
}

impl Queue {
    /// Returns the number of states in memory.
    pub fn len_in_memory(&self) -> u64 {
        self.blocks.iter().map(|b| b.len() as u64).sum()
    }
    /// Returns an upper bound on the number of waiting states.
    pub fn len(&self) -> u64 {
        self.len_in_memory() + self.runs.iter().map(|(run, _)| run.len()).sum::<u64>()
    }
    /// True if no state waits.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.runs.iter().all(|(run, page)| *page == run.page_count())
    }
}

/// All states on disk, for repacking. A disk error is stored for the caller.
pub(super) struct SpilledStates<'a> {
    pub cold: &'a mut DiskStates,
    pub queues: [&'a mut Queue; 2],
    pub error: Option<Diagnostic>,
}

/// Reason for the failure of a repacking.
enum RepackError {
    /// Leaves of a state that the layout cannot hold.
    Unfit(Vec<u32>),
    Disk(std::io::Error),
}

impl From<std::io::Error> for RepackError {
    fn from(error: std::io::Error) -> Self {
        RepackError::Disk(error)
    }
}

impl SpilledStates<'_> {
    /// Converts a run to the new layout, as several runs.
    fn convert_run(
        &self,
        run: &SortedRun,
        from: usize,
        old: &StateTable,
        new: &StateTable,
        convert: &mut dyn FnMut(u64) -> Result<u64, Vec<u32>>,
    ) -> Result<Vec<SortedRun>, RepackError> {
        let mut runs = Vec::new();
        let mut hashes = Vec::new();
        let mut write = |hashes: &mut Vec<u64>| -> std::io::Result<()> {
            hashes.sort_unstable();
            let mut writer = self.cold.writer()?;
            writer.extend(hashes)?;
            runs.push(writer.finish()?);
            hashes.clear();
            Ok(())
        };
        for page in from..run.page_count() {
            for hash in run.read_page(page)? {
                hashes.push(new.hash(convert(old.key(hash)).map_err(RepackError::Unfit)?));
            }
            if hashes.len() >= self.cold.sizes.sorted {
                write(&mut hashes)?;
            }
        }
        if !hashes.is_empty() {
            write(&mut hashes)?;
        }
        Ok(runs)
    }
    fn convert_all(
        &self,
        old: &StateTable,
        new: &StateTable,
        convert: &mut dyn FnMut(u64) -> Result<u64, Vec<u32>>,
    ) -> Result<[Vec<SortedRun>; 3], RepackError> {
        let mut cold = Vec::new();
        for run in &self.cold.runs {
            cold.push(merge(
                &self.cold.folder,
                &self.convert_run(run, 0, old, new, convert)?,
                self.cold.sizes.page,
            )?);
        }
        let mut queues = [Vec::new(), Vec::new()];
        for (queue, moved) in self.queues.iter().zip(&mut queues) {
            for (run, page) in &queue.runs {
                moved.extend(self.convert_run(run, *page, old, new, convert)?);
            }
        }
        let [first, second] = queues;
        Ok([cold, first, second])
    }
}

impl ExternalStates for SpilledStates<'_> {
    fn repack(
        &mut self,
        old: &StateTable,
        new: &StateTable,
        convert: &mut dyn FnMut(u64) -> Result<u64, Vec<u32>>,
    ) -> Result<(), Vec<u32>> {
        match self.convert_all(old, new, convert) {
            Ok([cold, first, second]) => {
                self.cold.spilled.written += [&cold, &first, &second]
                    .into_iter()
                    .flatten()
                    .map(SortedRun::bytes)
                    .sum::<u64>();
                self.cold.spilled.repacked += u64::from(!cold.is_empty());
                self.cold.runs = cold;
                for (queue, runs) in self.queues.iter_mut().zip([first, second]) {
                    queue.runs = runs.into_iter().map(|run| (run, 0)).collect();
                }
                Ok(())
            }
            Err(RepackError::Unfit(leaves)) => Err(leaves),
            Err(RepackError::Disk(error)) => {
                self.error = Some(self.cold.spill_error(error));
                Ok(())
            }
        }
    }
}
