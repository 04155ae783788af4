//! Shared cache of group answers: for each group, from the values of its read slots to its steps.
//!
//! In: a group and its read vector. Out: the steps, evaluated at most a few times (two threads may
//! miss at once). This is the second tier: [`super::expander`] uses it when its own tables, which
//! are private to a thread and keyed by leaf indices, miss. So plain locks suffice, one for each
//! group. It is independent of the store's layout. Caching stops for a group with few hits (wide
//! read vectors), and at the byte limit. Read vectors and answers are stored consecutively in flat
//! arrays, because some models need one answer for each state.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::intern::{TupleTable, held};
use mu_base::Diagnostic;
use mu_base::ids::LabelId;
use mu_base::narrow;
use mu_model::{Steps, Worker};

/// Lookups of a group before the early test of its hits.
const EARLY_TEST_LOOKUPS: u64 = 1 << 11;
/// Early test: at least one lookup in this number must hit.
const EARLY_LOOKUPS_PER_HIT: u64 = 64;
/// Lookups of a group before the full test of its hits.
const FULL_TEST_LOOKUPS: u64 = 1 << 14;
/// Full test: at least one lookup in this number must hit.
const LOOKUPS_PER_HIT: u64 = 8;

/// True if a group with these numbers has enough hits to be cached.
fn is_worthwhile(lookups: u64, hits: u64) -> bool {
    match lookups {
        ..EARLY_TEST_LOOKUPS => true,
        EARLY_TEST_LOOKUPS..FULL_TEST_LOOKUPS => hits * EARLY_LOOKUPS_PER_HIT >= lookups,
        _ => hits * LOOKUPS_PER_HIT >= lookups,
    }
}

/// AnswerTable of one group.
#[derive(Default)]
struct AnswerTable {
    /// The read vectors.
    read_vectors: TupleTable,
    /// For each read vector, by number: the start of its answer.
    starts: Vec<usize>,
    /// The answers; each is the number of steps, their labels, and the values that they write.
    answers: Vec<u32>,
}

impl AnswerTable {
    /// Reads the answer for a read vector into `out`. Returns false on a miss.
    fn read(&self, reads: &[u32], out: &mut Steps) -> bool {
        let Some(number) = self.read_vectors.find(reads) else { return false };
        let number = number as usize;
        let answer = &self.answers[self.starts[number]
            ..self.starts.get(number + 1).copied().unwrap_or(self.answers.len())];
        let (labels, values) = answer[1..].split_at(answer[0] as usize);
        out.labels.extend(labels.iter().map(|&l| LabelId::of(l)));
        out.values.extend_from_slice(values);
        true
    }
    /// Stores an answer. Returns the bytes added, 0 if it was present.
    fn insert(&mut self, reads: &[u32], steps: &Steps) -> u64 {
        if self.starts.is_empty() {
            self.read_vectors = TupleTable::new(reads.len());
        }
        let known = self.starts.len();
        if (self.read_vectors.intern(reads) as usize) < known {
            return 0;
        }
        self.starts.push(self.answers.len());
        self.answers.push(narrow::index(steps.labels.len()));
        self.answers.extend(steps.labels.iter().map(|l| l.number()));
        self.answers.extend_from_slice(&steps.values);
        (reads.len() + steps.labels.len() + steps.values.len()) as u64 * 4 + 24
    }
}

#[derive(Default)]
struct SharedGroupEntry {
    answers: Mutex<AnswerTable>,
    lookups: AtomicU64,
    hits: AtomicU64,
    /// Bytes of the answers.
    bytes: AtomicU64,
}

/// Cache of all groups; see the module header.
pub(crate) struct SharedGroupCache {
    groups: Vec<SharedGroupEntry>,
    bytes: AtomicU64,
    limit: u64,
    /// Evaluations by the model's workers.
    evaluations: AtomicU64,
}

impl SharedGroupCache {
    /// Creates an empty cache with a limit of about `limit` bytes.
    pub fn new(groups: usize, limit: u64) -> Self {
        let groups = (0..groups).map(|_| SharedGroupEntry::default()).collect();
        Self { groups, bytes: AtomicU64::new(0), limit, evaluations: AtomicU64::new(0) }
    }
    /// Replaces the content of `out` by the steps of a group.
    pub fn steps(
        &self,
        group: usize,
        reads: &[u32],
        worker: &mut dyn Worker,
        out: &mut Steps,
    ) -> Result<(), Diagnostic> {
        let shared_cache = &self.groups[group];
        let lookups = shared_cache.lookups.fetch_add(1, Ordering::Relaxed);
        let hits = shared_cache.hits.load(Ordering::Relaxed);
        let is_cached = is_worthwhile(lookups, hits);
        out.clear();
        if is_cached && held!(shared_cache.answers.lock()).read(reads, out) {
            shared_cache.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        self.evaluate(group, reads, worker, out)?;
        if !is_cached {
            *held!(shared_cache.answers.lock()) = AnswerTable::default();
            self.bytes.fetch_sub(shared_cache.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        } else if self.bytes.load(Ordering::Relaxed) < self.limit {
            let more = held!(shared_cache.answers.lock()).insert(reads, out);
            shared_cache.bytes.fetch_add(more, Ordering::Relaxed);
            self.bytes.fetch_add(more, Ordering::Relaxed);
        }
        Ok(())
    }
    /// Evaluates a group without the cache.
    pub fn evaluate(
        &self,
        group: usize,
        reads: &[u32],
        worker: &mut dyn Worker,
        out: &mut Steps,
    ) -> Result<(), Diagnostic> {
        out.clear();
        self.evaluations.fetch_add(1, Ordering::Relaxed);
        worker.steps(group, reads, out)
    }
    /// Returns the approximate number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
    /// Returns the number of evaluations by the model's workers.
    pub fn evaluations(&self) -> u64 {
        self.evaluations.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_stored() {
        let mut answers = AnswerTable::default();
        let answer = |i: u32| Steps {
            labels: (0..i % 3).map(LabelId::of).collect(),
            values: (0..i % 3 * 2).map(|v| v + i).collect(),
        };
        for i in 0..300u32 {
            assert!(answers.insert(&[i % 20, i / 20], &answer(i)) > 0);
        }
        assert_eq!(answers.insert(&[5, 0], &answer(5)), 0, "known");
        for i in 0..300u32 {
            let mut out = Steps::default();
            assert!(answers.read(&[i % 20, i / 20], &mut out));
            assert_eq!(out, answer(i), "{i}");
        }
        assert!(!answers.read(&[20, 0], &mut Steps::default()));
    }
}
