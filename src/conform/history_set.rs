//! Compact set of histories: operations are numbered, and a history is a string of bytes.
//!
//! A history of ten operations takes about 50 bytes instead of a kilobyte. Cost: one look-up for
//! each operation, and one for the string. Invariant: equal histories have equal strings, because
//! numbers of operations never change.

use ahash::{AHashMap, AHashSet};
use mu_axioms::history::{History, Operation};
use mu_base::{narrow, varint};

/// The end of a thread in a string; an operation is its number plus one.
const END: u8 = 0;

/// A set of histories without required final values.
#[derive(Clone, Debug, Default)]
pub struct HistorySet {
    operations: Vec<Operation>,
    numbers: AHashMap<Operation, u32>,
    strings: AHashSet<Box<[u8]>>,
    buffer: Vec<u8>,
}

impl HistorySet {
    /// Adds a history; false if it is in the set already.
    pub fn insert(&mut self, history: &History) -> bool {
        let mut string = std::mem::take(&mut self.buffer);
        string.clear();
        for thread in &history.threads {
            for operation in thread {
                let next = narrow::index(self.numbers.len());
                let number = *self.numbers.entry(*operation).or_insert(next);
                if number == next {
                    self.operations.push(*operation);
                }
                varint::put(&mut string, u64::from(number) + 1);
            }
            string.push(END);
        }
        let new = !self.strings.contains(&string[..]);
        if new {
            self.strings.insert(string.as_slice().into());
        }
        self.buffer = string;
        new
    }

    /// True if the history is in the set.
    pub fn contains(&self, history: &History) -> bool {
        let mut string = Vec::new();
        for thread in &history.threads {
            for operation in thread {
                let Some(number) = self.numbers.get(operation) else { return false };
                varint::put(&mut string, u64::from(*number) + 1);
            }
            string.push(END);
        }
        self.strings.contains(&string[..])
    }

    /// Returns the number of histories.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// True if the set has no history.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// Returns the histories, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = History> + '_ {
        self.strings.iter().map(|s| self.history(s))
    }

    fn history(&self, string: &[u8]) -> History {
        let mut out = History::default();
        let mut thread = Vec::new();
        let mut bytes = string;
        while let Some(number) = varint::take(&mut bytes) {
            match usize::try_from(number).expect("the number of an operation").checked_sub(1) {
                None => out.threads.push(std::mem::take(&mut thread)),
                Some(at) => thread.push(self.operations[at]),
            }
        }
        out
    }
}

impl FromIterator<History> for HistorySet {
    fn from_iter<I: IntoIterator<Item = History>>(all: I) -> Self {
        let mut out = HistorySet::default();
        for history in all {
            out.insert(&history);
        }
        out
    }
}
