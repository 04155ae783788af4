//! Parents of the states of a breadth-first search, in two bits for each state.
//!
//! States have numbers in the order in which they are found, so parents never decrease. They are a
//! sequence of bits (Elias 1974, Fano 1971): for each state as many zeros as its parent is larger
//! than that of the state before, then a one. The parent of state `n` is the number of zeros before
//! the one with number `n`. A position is stored for each 4,096 ones.
//!
//! Cost: a state is added in constant time; its parent is found among 64 words on average.
//!
//! Invariant: initial states, which have no parent, precede all others.

/// Ones between two stored positions.
const SAMPLE: usize = 1 << 12;

/// Parents by the numbers of states.
#[derive(Debug, Default)]
pub struct Parents {
    /// Number of states without a parent.
    initial: usize,
    /// Number of states with a parent.
    count: usize,
    bits: Vec<u64>,
    /// Number of bits in use.
    length: usize,
    /// Position of each `SAMPLE`-th one.
    samples: Vec<usize>,
    last: u32,
}

impl Parents {
    /// Adds the next state. `None` if it is initial.
    ///
    /// # Panics
    ///
    /// If parents decrease: the search is not breadth-first.
    pub fn push(&mut self, parent: Option<u32>) {
        let Some(parent) = parent else {
            assert!(self.count == 0, "an initial state follows others");
            self.initial += 1;
            return;
        };
        assert!(parent >= self.last, "the parents {} and {parent} decrease", self.last);
        self.length += (parent - self.last) as usize;
        self.last = parent;
        if self.count.is_multiple_of(SAMPLE) {
            self.samples.push(self.length);
        }
        let word = self.length / 64;
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= 1 << (self.length % 64);
        self.length += 1;
        self.count += 1;
    }

    /// Returns the parent of a state. `None` if it is initial.
    pub fn get(&self, number: u32) -> Option<u32> {
        let at = (number as usize).checked_sub(self.initial)?;
        let first = self.samples[at / SAMPLE];
        let (mut word, mut left) = (first / 64, at % SAMPLE);
        let mut bits = self.bits[word] & (u64::MAX << (first % 64));
        while left >= bits.count_ones() as usize {
            left -= bits.count_ones() as usize;
            word += 1;
            bits = self.bits[word];
        }
        for _ in 0..left {
            bits &= bits - 1;
        }
        let position = 64 * word + bits.trailing_zeros() as usize;
        Some((position - at) as u32)
    }

    /// Returns the bytes that the parents occupy.
    pub fn memory(&self) -> usize {
        8 * (self.bits.len() + self.samples.len())
    }
}
