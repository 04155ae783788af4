//! What the model's workers have answered so far: per group, from the values of its read slots to
//! its steps. Shared by all threads.
//!
//! In: a group and its read vector. Out: the steps, evaluated at most a few times (two threads may
//! miss at once). This is the second tier: [`super::expander`] asks it when its own tables, which are
//! private to a thread and keyed by leaf indices, miss; so it is behind plain locks, one for each
//! group. It outlives changes of the store's layout. A group whose read vectors hardly ever recur
//! (wide ones) is no longer cached once that is measured, and nothing is cached beyond the byte
//! limit. Questions and answers lie one after the other in flat arrays: where states are many and
//! alike in nothing, an answer is kept for each of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::intern::{Rows, held};
use mu_base::Diagnostic;
use mu_base::ids::LabelId;
use mu_model::{Steps, Worker};

/// Lookups after which a group is judged.
const JUDGED: u64 = 1 << 14;
/// A group is worth remembering if at least one lookup in this many hits.
const WORTH: u64 = 8;
/// Lookups after which one that hardly ever hits is given up already, and how seldom that is.
const HOPELESS: u64 = 1 << 11;
const HARDLY_EVER: u64 = 64;

/// Answers of one group.
#[derive(Default)]
struct Answers {
    /// The read vectors.
    questions: Rows,
    /// By the number of the question, where its answer begins.
    starts: Vec<usize>,
    /// An answer: the number of steps, their labels, the values that they write.
    flat: Vec<u32>,
}

impl Answers {
    /// Puts the answer to a question into `out`, if it is known.
    fn read(&self, reads: &[u32], out: &mut Steps) -> bool {
        let Some(number) = self.questions.find(reads) else { return false };
        let number = number as usize;
        let answer = &self.flat
            [self.starts[number]..self.starts.get(number + 1).copied().unwrap_or(self.flat.len())];
        let (labels, values) = answer[1..].split_at(answer[0] as usize);
        out.labels.extend(labels.iter().map(|&l| LabelId(l)));
        out.values.extend_from_slice(values);
        true
    }
    /// Remembers an answer; the bytes that it takes, none if it was known.
    fn keep(&mut self, reads: &[u32], steps: &Steps) -> u64 {
        if self.starts.is_empty() {
            self.questions = Rows::new(reads.len());
        }
        let known = self.starts.len();
        if (self.questions.intern(reads) as usize) < known {
            return 0;
        }
        self.starts.push(self.flat.len());
        self.flat.push(steps.labels.len() as u32);
        self.flat.extend(steps.labels.iter().map(|l| l.0));
        self.flat.extend_from_slice(&steps.values);
        (reads.len() + steps.labels.len() + steps.values.len()) as u64 * 4 + 24
    }
}

#[derive(Default)]
struct GroupMemo {
    answers: Mutex<Answers>,
    lookups: AtomicU64,
    hits: AtomicU64,
    /// What the answers take.
    bytes: AtomicU64,
}

/// See the module's head.
pub(crate) struct Memo {
    groups: Vec<GroupMemo>,
    bytes: AtomicU64,
    limit: u64,
    /// Questions put to the model's workers.
    evaluations: AtomicU64,
}

impl Memo {
    /// Nothing remembered; at most about `limit` bytes ever.
    pub fn new(groups: usize, limit: u64) -> Self {
        let groups = (0..groups).map(|_| GroupMemo::default()).collect();
        Self { groups, bytes: AtomicU64::new(0), limit, evaluations: AtomicU64::new(0) }
    }
    /// Puts the steps of a group into `out`, which it empties before.
    pub fn steps(
        &self,
        group: usize,
        reads: &[u32],
        worker: &mut dyn Worker,
        out: &mut Steps,
    ) -> Result<(), Diagnostic> {
        let memo = &self.groups[group];
        let lookups = memo.lookups.fetch_add(1, Ordering::Relaxed);
        let hits = memo.hits.load(Ordering::Relaxed);
        let worth = lookups < HOPELESS
            || hits * if lookups < JUDGED { HARDLY_EVER } else { WORTH } >= lookups;
        out.clear();
        if worth && held!(memo.answers.lock()).read(reads, out) {
            memo.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        self.evaluate(group, reads, worker, out)?;
        if !worth {
            *held!(memo.answers.lock()) = Answers::default();
            self.bytes.fetch_sub(memo.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        } else if self.bytes.load(Ordering::Relaxed) < self.limit {
            let more = held!(memo.answers.lock()).keep(reads, out);
            memo.bytes.fetch_add(more, Ordering::Relaxed);
            self.bytes.fetch_add(more, Ordering::Relaxed);
        }
        Ok(())
    }
    /// The steps of a group, neither looked up nor remembered.
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
    /// About the bytes held.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
    /// Questions put to the model's workers.
    pub fn evaluations(&self) -> u64 {
        self.evaluations.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_that_were_kept() {
        let mut answers = Answers::default();
        let answer = |i: u32| Steps {
            labels: (0..i % 3).map(LabelId).collect(),
            values: (0..i % 3 * 2).map(|v| v + i).collect(),
        };
        for i in 0..300u32 {
            assert!(answers.keep(&[i % 20, i / 20], &answer(i)) > 0);
        }
        assert_eq!(answers.keep(&[5, 0], &answer(5)), 0, "known");
        for i in 0..300u32 {
            let mut out = Steps::default();
            assert!(answers.read(&[i % 20, i / 20], &mut out));
            assert_eq!(out, answer(i), "{i}");
        }
        assert!(!answers.read(&[20, 0], &mut Steps::default()));
    }
}
