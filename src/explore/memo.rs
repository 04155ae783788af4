//! What the model's workers have answered so far: per group, from the values of its read slots to its steps. Shared by all threads.
//!
//! In: a group and its read vector. Out: the steps, evaluated at most a few times (two threads may miss at once). This is the second
//! tier: [`super::cache`] asks it when its own tables, which are private to a thread and keyed by leaf indices, miss; so it is behind
//! plain locks, one for each group. It outlives changes of the store's layout. A group whose read vectors hardly ever recur (wide ones)
//! is no longer cached once that is measured, and nothing is cached beyond the byte limit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::intern::held;
use mu_base::Diagnostic;
use mu_model::{Steps, Worker};

/// Lookups after which a group is judged.
const JUDGED: u64 = 1 << 14;
/// A group is worth remembering if at least one lookup in this many hits.
const WORTH: u64 = 8;

type Answers = HashMap<Box<[u32]>, Arc<Steps>, ahash::RandomState>;

#[derive(Default)]
struct GroupMemo {
    answers: Mutex<Answers>,
    lookups: AtomicU64,
    hits: AtomicU64,
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
    /// The steps of a group.
    pub fn steps(&self, group: usize, reads: &[u32], worker: &mut dyn Worker) -> Result<Arc<Steps>, Diagnostic> {
        let memo = &self.groups[group];
        let lookups = memo.lookups.fetch_add(1, Ordering::Relaxed);
        let hits = memo.hits.load(Ordering::Relaxed);
        let worth = lookups < JUDGED || hits * WORTH >= lookups;
        if worth && let Some(steps) = held!(memo.answers.lock()).get(reads) {
            memo.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(steps.clone());
        }
        let mut steps = Steps::default();
        self.evaluations.fetch_add(1, Ordering::Relaxed);
        worker.steps(group, reads, &mut steps)?;
        let steps = Arc::new(steps);
        if !worth {
            let forgotten = std::mem::take(&mut *held!(memo.answers.lock()));
            let bytes: u64 = forgotten.iter().map(|(k, v)| Self::cost(k, v)).sum();
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        } else if self.bytes.load(Ordering::Relaxed) < self.limit
            && held!(memo.answers.lock()).insert(reads.into(), steps.clone()).is_none()
        {
            self.bytes.fetch_add(Self::cost(reads, &steps), Ordering::Relaxed);
        }
        Ok(steps)
    }
    /// The steps of a group, neither looked up nor remembered.
    pub fn evaluate(&self, group: usize, reads: &[u32], worker: &mut dyn Worker) -> Result<Steps, Diagnostic> {
        let mut steps = Steps::default();
        self.evaluations.fetch_add(1, Ordering::Relaxed);
        worker.steps(group, reads, &mut steps)?;
        Ok(steps)
    }
    fn cost(reads: &[u32], steps: &Steps) -> u64 {
        (reads.len() * 4 + steps.labels.len() * 4 + steps.values.len() * 4 + 120) as u64
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
