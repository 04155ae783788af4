//! Bounded memo table keyed by value numbers; it disables itself if the hit rate is low.
//!
//! In: numbers of values. Out: the cached answer. Cost: a hash of the numbers. A disabled table
//! takes neither time nor memory; a full one is cleared.

use ahash::AHashMap;
use mu_base::ids::VarId;

/// Limit on the cached answers; beyond it, the table is cleared.
pub const MAX_ANSWERS: usize = 1 << 14;
/// Limit on the numbers in all cached answers, a megabyte; beyond it, the table is cleared.
pub const MAX_NUMBERS: usize = 1 << 18;
/// Number of lookups after which the hit rate is judged, repeatedly.
pub const JUDGED: u32 = 1 << 12;
/// The table stays enabled if at least one lookup in this many is a hit.
const MIN_HIT_INTERVAL: u32 = 4;

/// Projection of the values that a group reads to those that some expressions use: the positions of
/// these.
pub(super) struct KeyProjection(Vec<usize>);

impl KeyProjection {
    /// Creates the projection; `None` if the expressions use all that the group reads, so that no
    /// key would recur.
    pub(super) fn new(reads: &[VarId], used: &[VarId]) -> Option<KeyProjection> {
        let positions: Vec<usize> =
            (0..reads.len()).filter(|&i| used.contains(&reads[i])).collect();
        (positions.len() < reads.len()).then_some(KeyProjection(positions))
    }

    /// Writes the projected numbers to `key`.
    pub(super) fn project(&self, reads: &[u32], key: &mut Vec<u32>) {
        key.clear();
        key.extend(self.0.iter().map(|&i| reads[i]));
    }
}

/// Memo table.
pub struct AnswerCache<T> {
    answers: AHashMap<Box<[u32]>, T>,
    /// Total numbers in the answers.
    size: usize,
    lookups: u32,
    hits: u32,
    disabled: bool,
}

impl<T> Default for AnswerCache<T> {
    fn default() -> Self {
        Self { answers: AHashMap::new(), size: 0, lookups: 0, hits: 0, disabled: false }
    }
}

impl<T> AnswerCache<T> {
    /// Returns the cached answer; `None` if there is none.
    pub fn get(&mut self, key: &[u32]) -> Option<&T> {
        if self.disabled {
            return None;
        }
        self.lookups += 1;
        let answer = self.answers.get(key);
        self.hits += u32::from(answer.is_some());
        answer
    }

    /// True if the table is disabled, so that no answer needs to be prepared for it.
    pub fn is_disabled(&self) -> bool {
        self.disabled
    }

    /// Returns the number of cached answers.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// True if no answer is cached.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Caches an answer of this size in numbers, unless the table is disabled.
    pub fn insert(&mut self, key: &[u32], answer: T, size: usize) {
        if size > MAX_NUMBERS {
            return;
        }
        if self.lookups >= JUDGED {
            self.disabled = self.hits < self.lookups / MIN_HIT_INTERVAL;
            (self.lookups, self.hits) = (0, 0);
        }
        if self.disabled || self.answers.len() >= MAX_ANSWERS || self.size + size > MAX_NUMBERS {
            (self.answers, self.size) = (AHashMap::new(), 0);
        }
        if !self.disabled {
            self.answers.insert(key.into(), answer);
            self.size += size;
        }
    }
}
