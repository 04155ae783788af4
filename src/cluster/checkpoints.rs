//! When the processes of a search write their shares: all at the end of one level, which they agree
//! on.
//!
//! In: what the others say. Out: which levels may begin, and when to write. Process 0 asks for a
//! checkpoint. Every process then begins no level, and tells all how far it is; the first level
//! that nobody has begun is the boundary. What lies before it is searched, each writes its share
//! and tells all, and goes on when it has heard the same of every other. A search that a limit ends
//! is cut instead: it expands no more, but what is on the way still arrives; then each writes its
//! share as it is.
//!
//! Cost: two short messages from each process to each other for a checkpoint, and the wait for the
//! slowest to write. Invariants: no process goes beyond the boundary before all have written; the
//! checkpoint before is given up only then; what a process hears of a later checkpoint is kept
//! until it gets there.

use mu_base::Diagnostic;
use mu_explore::{Partition, Stamp};
use std::collections::{BTreeMap, BTreeSet};

/// Who keeps the shares of a search, in one place for all processes.
pub trait Shelf {
    /// A stamp of the checkpoint to go on from; none: the search begins.
    fn resumed(&self) -> Option<&Stamp>;
    /// Takes this process's own out of the shares of that checkpoint.
    ///
    /// # Errors
    /// They cannot be read; those of [`Partition::read`].
    fn read(&self, share: &mut Partition<'_>) -> Result<(), Diagnostic>;
    /// Whether shares are to be written.
    fn keeps(&self) -> bool;
    /// Whether it is time for that. Asked of process 0 before each level, and a few times a second.
    fn due(&self) -> bool;
    /// What tells the search from others, see [`Stamp::fingerprint`].
    fn fingerprint(&self) -> String;
    /// A new search begins: what is kept of others goes. For process 0.
    ///
    /// # Errors
    /// It cannot be removed.
    fn clear(&self) -> Result<(), Diagnostic>;
    /// Writes a share.
    ///
    /// # Errors
    /// It cannot be written.
    fn keep(&self, share: &mut Partition<'_>, stamp: &Stamp) -> Result<(), Diagnostic>;
    /// All processes have written: checkpoints before this one may go. For process 0.
    fn settle(&self, stamp: &Stamp);
}

/// How far a checkpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// None is being made.
    Going,
    /// No level begins until all have said how far they are.
    Asked,
    /// Levels below this one are searched.
    Until(u64),
    /// This process has written.
    Written,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Rounds {
    processes: usize,
    phase: Phase,
    /// The checkpoint that is being made, or the last one.
    number: u64,
    /// The last one asked for.
    asked: u64,
    /// By checkpoint and process: the first level that it had not begun.
    next: BTreeMap<(u64, usize), u64>,
    /// Checkpoints and processes that have written.
    written: BTreeSet<(u64, usize)>,
}

impl Rounds {
    /// Of a search that goes on from a checkpoint of this number, or 0.
    pub fn new(processes: usize, number: u64) -> Self {
        Self {
            processes,
            phase: Phase::Going,
            number,
            asked: number,
            next: BTreeMap::new(),
            written: BTreeSet::new(),
        }
    }
    /// Whether a level may begin.
    pub fn may_begin(&self, level: u64) -> bool {
        match self.phase {
            Phase::Going => true,
            Phase::Until(boundary) => level < boundary,
            Phase::Asked | Phase::Written => false,
        }
    }
    /// Whether process 0 may ask for another: its number.
    pub fn another(&self) -> Option<u64> {
        (self.phase == Phase::Going && self.asked == self.number).then_some(self.number + 1)
    }
    /// The number of a checkpoint at the end of the search; the same in all processes once they
    /// have heard all.
    pub fn last(&self) -> u64 {
        self.asked + 1
    }
    /// Process 0 asks for a checkpoint.
    pub fn ask(&mut self, number: u64) {
        self.asked = self.asked.max(number);
    }
    /// A process says how far it is.
    pub fn hear_next(&mut self, number: u64, from: usize, next: u64) {
        self.next.insert((number, from), next);
    }
    /// A process says that it has written.
    pub fn hear_written(&mut self, number: u64, from: usize) {
        self.written.insert((number, from));
    }
    /// Enters the checkpoint that was asked for: its number, for this process to tell all how far
    /// it is.
    pub fn enter(&mut self) -> Option<u64> {
        if self.phase != Phase::Going || self.asked == self.number {
            return None;
        }
        self.number += 1;
        self.phase = Phase::Asked;
        Some(self.number)
    }
    /// The boundary, once all have said how far they are: what lies before it is still to be
    /// searched.
    pub fn boundary(&mut self) -> Option<u64> {
        if self.phase == Phase::Asked {
            let told: Vec<u64> = self
                .next
                .range((self.number, 0)..=(self.number, usize::MAX))
                .map(|n| *n.1)
                .collect();
            if told.len() == self.processes {
                self.phase = Phase::Until(told.into_iter().max().unwrap_or(0));
            }
        }
        if let Phase::Until(boundary) = self.phase { Some(boundary) } else { None }
    }
    /// This process has written: the number of the checkpoint, to be told to all.
    pub fn write(&mut self) -> u64 {
        self.phase = Phase::Written;
        self.number
    }
    /// Whether all have written a checkpoint.
    pub fn all_wrote(&self, number: u64) -> bool {
        self.written.range((number, 0)..=(number, usize::MAX)).count() == self.processes
    }
    /// Goes on if all have written: the number of the checkpoint.
    pub fn leave(&mut self) -> Option<u64> {
        if self.phase != Phase::Written || !self.all_wrote(self.number) {
            return None;
        }
        self.phase = Phase::Going;
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
        assert_eq!(rounds.another(), Some(5));
        rounds.ask(5);
        // The other may be quicker than the request.
        rounds.hear_next(5, 1, 9);
        assert_eq!((rounds.enter(), rounds.boundary(), rounds.another()), (Some(5), None, None));
        assert!(!rounds.may_begin(8));
        rounds.hear_next(5, 0, 8);
        assert_eq!(rounds.boundary(), Some(9));
        assert!(rounds.may_begin(8) && !rounds.may_begin(9));
        assert_eq!((rounds.write(), rounds.leave()), (5, None));
        rounds.hear_written(5, 0);
        assert_eq!(rounds.leave(), None);
        // The other has gone on and been asked again.
        rounds.hear_next(6, 1, 10);
        rounds.ask(6);
        assert!(!rounds.may_begin(9));
        rounds.hear_written(5, 1);
        assert_eq!((rounds.leave(), rounds.enter(), rounds.last()), (Some(5), Some(6), 7));
        rounds.hear_next(6, 0, 10);
        assert_eq!(rounds.boundary(), Some(10));
    }
}
