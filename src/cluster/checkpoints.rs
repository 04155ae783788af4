//! Coordination of distributed checkpoints: all processes write their partitions at the end of one
//! common level.
//!
//! In: reports of the other processes. Out: which levels may begin, and when to write. Process 0
//! requests a checkpoint. Every process then begins no further level and reports its progress to
//! all; the first level that no process has begun is the boundary. All levels before it are
//! completed. Then each process writes its partition, reports this to all, and continues after
//! receiving the same report from every other process. A search ended by a limit is cut instead: it
//! expands no more states, but batches in transit still arrive; then each writes its partition.
//!
//! Cost: two short messages from each process to each other for a checkpoint, and the wait for the
//! slowest to write. Invariants: no process passes the boundary before all have written; the
//! previous checkpoint is deleted only then; reports for a later checkpoint are stored until it
//! begins.

use mu_base::Diagnostic;
use mu_explore::{Partition, Stamp};
use std::collections::{BTreeMap, BTreeSet};

/// Store of the partitions of a search, common to all processes.
pub trait PartitionStore {
    /// Returns a stamp of the checkpoint to resume; `None`: start from the initial state.
    fn resume_stamp(&self) -> Option<&Stamp>;
    /// Reads this process's states from the partitions of that checkpoint.
    ///
    /// # Errors
    /// They cannot be read; errors of [`Partition::read`].
    fn read(&self, share: &mut Partition<'_>) -> Result<(), Diagnostic>;
    /// True if checkpoints are to be written.
    fn keeps(&self) -> bool;
    /// True if a checkpoint is due. Called by process 0 before each level, and a few times a
    /// second.
    fn due(&self) -> bool;
    /// Returns the fingerprint of the search, see [`Stamp::fingerprint`].
    fn fingerprint(&self) -> String;
    /// Deletes the checkpoints of other searches, when a new search begins. For process 0.
    ///
    /// # Errors
    /// They cannot be deleted.
    fn clear(&self) -> Result<(), Diagnostic>;
    /// Writes a partition.
    ///
    /// # Errors
    /// It cannot be written.
    fn keep(&self, share: &mut Partition<'_>, stamp: &Stamp) -> Result<(), Diagnostic>;
    /// Deletes earlier checkpoints, after all processes have written this one. For process 0.
    fn settle(&self, stamp: &Stamp);
}

/// Phase of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No checkpoint is in progress.
    Idle,
    /// No level begins until all processes have reported their progress.
    Requested,
    /// Levels below this one are completed.
    CompleteUpTo(u64),
    /// This process has written.
    Written,
}

/// State of the coordination.
#[derive(Debug)]
pub(super) struct Rounds {
    processes: usize,
    phase: Phase,
    /// The checkpoint in progress, or the last one.
    number: u64,
    /// The last requested checkpoint.
    requested: u64,
    /// By checkpoint and process: the first level that it had not begun.
    next: BTreeMap<(u64, usize), u64>,
    /// Checkpoints and processes that have written.
    written: BTreeSet<(u64, usize)>,
}

impl Rounds {
    /// Starts after the checkpoint `number`; 0 if there is none.
    pub fn new(processes: usize, number: u64) -> Self {
        Self {
            processes,
            phase: Phase::Idle,
            number,
            requested: number,
            next: BTreeMap::new(),
            written: BTreeSet::new(),
        }
    }
    /// True if a level may begin.
    pub fn may_begin(&self, level: u64) -> bool {
        match self.phase {
            Phase::Idle => true,
            Phase::CompleteUpTo(boundary) => level < boundary,
            Phase::Requested | Phase::Written => false,
        }
    }
    /// Returns the number of the next checkpoint, if process 0 may request one.
    pub fn next_number(&self) -> Option<u64> {
        (self.phase == Phase::Idle && self.requested == self.number).then_some(self.number + 1)
    }
    /// Returns the number of a checkpoint at the end of the search; equal in all processes after
    /// the final reports.
    pub fn last(&self) -> u64 {
        self.requested + 1
    }
    /// Records the request of process 0.
    pub fn ask(&mut self, number: u64) {
        self.requested = self.requested.max(number);
    }
    /// Records the progress of a process.
    pub fn record_next(&mut self, number: u64, from: usize, next: u64) {
        self.next.insert((number, from), next);
    }
    /// Records that a process has written.
    pub fn record_written(&mut self, number: u64, from: usize) {
        self.written.insert((number, from));
    }
    /// Begins the requested checkpoint: returns its number, for the progress report of this
    /// process. `None` if none is requested, or another one is being written.
    pub fn enter(&mut self) -> Option<u64> {
        if self.phase != Phase::Idle || self.requested == self.number {
            return None;
        }
        self.number += 1;
        self.phase = Phase::Requested;
        Some(self.number)
    }
    /// Returns the boundary, after all have reported: levels before it must be completed. `None` if
    /// no checkpoint waits for its boundary, or some process has not reported.
    pub fn boundary(&mut self) -> Option<u64> {
        if self.phase == Phase::Requested {
            let reported: Vec<u64> = self
                .next
                .range((self.number, 0)..=(self.number, usize::MAX))
                .map(|n| *n.1)
                .collect();
            if reported.len() == self.processes {
                self.phase = Phase::CompleteUpTo(reported.into_iter().max().unwrap_or(0));
            }
        }
        if let Phase::CompleteUpTo(boundary) = self.phase { Some(boundary) } else { None }
    }
    /// Records that this process has written. Returns the number of the checkpoint, to be reported.
    pub fn write(&mut self) -> u64 {
        self.phase = Phase::Written;
        self.number
    }
    /// True if all processes have written a checkpoint.
    pub fn all_wrote(&self, number: u64) -> bool {
        self.written.range((number, 0)..=(number, usize::MAX)).count() == self.processes
    }
    /// Ends the checkpoint if all have written; returns its number.
    pub fn leave(&mut self) -> Option<u64> {
        if self.phase != Phase::Written || !self.all_wrote(self.number) {
            return None;
        }
        self.phase = Phase::Idle;
        let number = self.number;
        self.next.retain(|(n, _), _| *n > number);
        self.written.retain(|(n, _)| *n > number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_passes_the_boundary_before_all_have_written() {
        let mut rounds = Rounds::new(2, 4);
        assert!(rounds.may_begin(7) && rounds.enter().is_none());
        assert_eq!(rounds.next_number(), Some(5));
        rounds.ask(5);
        // Another process may be faster than the request.
        rounds.record_next(5, 1, 9);
        assert_eq!(
            (rounds.enter(), rounds.boundary(), rounds.next_number()),
            (Some(5), None, None)
        );
        assert!(!rounds.may_begin(8));
        rounds.record_next(5, 0, 8);
        assert_eq!(rounds.boundary(), Some(9));
        assert!(rounds.may_begin(8) && !rounds.may_begin(9));
        assert_eq!((rounds.write(), rounds.leave()), (5, None));
        rounds.record_written(5, 0);
        assert_eq!(rounds.leave(), None);
        // Another process has continued and received the next request.
        rounds.record_next(6, 1, 10);
        rounds.ask(6);
        assert!(!rounds.may_begin(9));
        rounds.record_written(5, 1);
        assert_eq!((rounds.leave(), rounds.enter(), rounds.last()), (Some(5), Some(6), 7));
        rounds.record_next(6, 0, 10);
        assert_eq!(rounds.boundary(), Some(10));
    }
}
