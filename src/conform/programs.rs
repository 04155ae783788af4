//! The programs of judged histories.
//!
//! If all renamings are symmetries of the machine, a class of programs has one least image, and is
//! stored as the numbers of its lists: 8 bytes for two processors. Otherwise canonical forms are
//! stored ([`HistorySet`]).

use crate::history_set::HistorySet;
use mu_axioms::history::{History, Operation};

/// A set of programs, one of each class under the symmetries of memory models.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    canonical: HistorySet,
    /// Programs by the numbers of the lists of their processors, one program after the other.
    numbered: Vec<u32>,
    /// Number of lists of a program in `numbered`.
    processors: usize,
    /// The operations of each list, in the names of the machine.
    threads: Vec<Vec<Operation>>,
}

impl Programs {
    /// Creates an empty set for a number of processors.
    pub(crate) fn new(processors: usize) -> Programs {
        Programs { processors, ..Programs::default() }
    }
    /// Adds a program in canonical form.
    pub(crate) fn insert(&mut self, program: &History) {
        self.canonical.insert(program);
    }
    /// Adds a program of a class of which none was added, by the numbers of its lists.
    pub(crate) fn push(&mut self, lists: &[u32]) {
        self.numbered.extend_from_slice(&lists[..self.processors]);
    }
    /// Sets the operations of the lists.
    pub(crate) fn set_threads(&mut self, threads: Vec<Vec<Operation>>) {
        self.threads = threads;
    }
    /// True if [`Programs::push`] has added a program.
    pub(crate) fn is_numbered(&self) -> bool {
        !self.numbered.is_empty()
    }
    fn rows(&self) -> std::slice::ChunksExact<'_, u32> {
        self.numbered.chunks_exact(self.processors.max(1))
    }
    /// Returns the number of programs.
    pub fn len(&self) -> usize {
        self.canonical.len() + self.rows().len()
    }
    /// True if there is no program.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the programs in canonical form, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = History> + '_ {
        let program = |lists: &[u32]| {
            let threads = lists.iter().map(|&l| self.threads[l as usize].clone()).collect();
            History { threads, last: Vec::new() }.program()
        };
        self.canonical.iter().chain(self.rows().map(program))
    }
    /// Counts the programs by their number of operations, from 0.
    pub fn lengths(&self) -> Vec<u64> {
        let mut out = Vec::new();
        let mut count = |n: usize| {
            out.resize(out.len().max(n + 1), 0);
            out[n] += 1;
        };
        self.canonical.iter().for_each(|program| count(program.len()));
        for lists in self.rows() {
            count(lists.iter().map(|&l| self.threads[l as usize].len()).sum());
        }
        out
    }
    /// Converts the programs to a set with a look-up.
    pub fn into_set(mut self) -> HistorySet {
        let mut out = std::mem::take(&mut self.canonical);
        self.iter().for_each(|program| {
            out.insert(&program);
        });
        out
    }
}
