//! Answers by the numbers of what was asked, for as long as questions recur.
//!
//! In: numbers of values. Out: the answer that was kept for them. Cost: a hash of the numbers. A
//! table that is asked in vain is given up: then it takes neither time nor memory; one that is full
//! begins anew.

use ahash::AHashMap;
use mu_base::ids::VarId;

/// Most answers kept, and most numbers in them: a megabyte.
pub const MOST: usize = 1 << 14;
/// See [`MOST`].
pub const LARGEST: usize = 1 << 18;
/// Questions after which a table is judged, again and again.
pub const JUDGED: u32 = 1 << 12;
/// It is worth keeping if at least one question in this many recurs.
const WORTH: u32 = 4;

/// What an answer of a group depends on: the positions, among what it reads, of the variables that
/// some expressions use.
pub(super) struct Narrow(Vec<usize>);

impl Narrow {
    /// None where they use all that the group reads, so that nothing would recur.
    pub(super) fn new(reads: &[VarId], used: &[VarId]) -> Option<Narrow> {
        let positions: Vec<usize> =
            (0..reads.len()).filter(|&i| used.contains(&reads[i])).collect();
        (positions.len() < reads.len()).then_some(Narrow(positions))
    }

    /// Writes the numbers there as the key to ask with.
    pub(super) fn ask(&self, reads: &[u32], key: &mut Vec<u32>) {
        key.clear();
        key.extend(self.0.iter().map(|&i| reads[i]));
    }
}

/// See the module's head.
pub struct Recall<T> {
    answers: AHashMap<Box<[u32]>, T>,
    /// Numbers in the answers.
    size: usize,
    asked: u32,
    known: u32,
    given_up: bool,
}

impl<T> Default for Recall<T> {
    fn default() -> Self {
        Self { answers: AHashMap::new(), size: 0, asked: 0, known: 0, given_up: false }
    }
}

impl<T> Recall<T> {
    /// The answer, if it is kept.
    pub fn get(&mut self, key: &[u32]) -> Option<&T> {
        if self.given_up {
            return None;
        }
        self.asked += 1;
        let answer = self.answers.get(key);
        self.known += u32::from(answer.is_some());
        answer
    }

    /// Whether it keeps no answer any more, so that none need be made for it.
    pub fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// How many answers are kept.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Keeps an answer that holds so many numbers, unless questions hardly recur.
    pub fn keep(&mut self, key: &[u32], answer: T, size: usize) {
        if size > LARGEST {
            return;
        }
        if self.asked >= JUDGED {
            self.given_up = self.known < self.asked / WORTH;
            (self.asked, self.known) = (0, 0);
        }
        if self.given_up || self.answers.len() >= MOST || self.size + size > LARGEST {
            (self.answers, self.size) = (AHashMap::new(), 0);
        }
        if !self.given_up {
            self.answers.insert(key.into(), answer);
            self.size += size;
        }
    }
}
