//! Cache of group steps at whole states, for code that inspects single steps, such as evidence.
//!
//! In: a model, a state vector and a group. Out: the group's steps there, and the vectors after
//! them. Cost: one lookup if the values that the group reads are cached. A group with a low hit
//! rate is not cached. Invariant: independent of the explorer's caches, so code that checks a
//! search may use it.

use super::{Model, Steps, Worker};
use ahash::AHashMap;
use mu_base::Diagnostic;

/// Approximate limit on the numbers in the cache; beyond it, all groups are cleared.
const MAX_NUMBERS: usize = 32 << 20;
/// Evaluations of a group after which its hit rate decides whether it stays cached. The rate must
/// be at least one hit in `MIN_HIT_INTERVAL` evaluations.
const TRIALS: u32 = 1000;
const MIN_HIT_INTERVAL: u32 = 8;

/// Cache of the steps of each group, keyed by the values that the group reads.
pub struct StepCache<'m> {
    model: &'m dyn Model,
    worker: Box<dyn Worker + 'm>,
    groups: Vec<GroupCache>,
    cached_numbers: usize,
    /// The steps of a group that is not cached.
    last: Steps,
}

#[derive(Default)]
struct GroupCache {
    cache: AHashMap<Box<[u32]>, Steps>,
    lookups: u32,
    hits: u32,
}

impl<'m> StepCache<'m> {
    /// Creates an empty cache.
    pub fn new(model: &'m dyn Model) -> Self {
        let groups = model.groups().iter().map(|_| GroupCache::default()).collect();
        Self { model, worker: model.worker(), groups, cached_numbers: 0, last: Steps::default() }
    }

    /// Returns the steps of a group at a state; none if a required slot has another value. Errors:
    /// those of the evaluation.
    pub fn steps(&mut self, group: u32, vector: &[u32]) -> Result<&Steps, Diagnostic> {
        if self.cached_numbers > MAX_NUMBERS {
            self.groups.iter_mut().for_each(|g| g.cache.clear());
            self.cached_numbers = 0;
        }
        let info = &self.model.groups()[group as usize];
        let GroupCache { cache, lookups, hits } = &mut self.groups[group as usize];
        self.last.clear();
        if info.requires.iter().any(|(slot, value)| vector[*slot as usize] != *value) {
            return Ok(&self.last);
        }
        let reads: Vec<u32> = info.reads.iter().map(|s| vector[*s as usize]).collect();
        *lookups = lookups.saturating_add(1);
        if cache.contains_key(&reads[..]) {
            *hits = hits.saturating_add(1);
            return Ok(&cache[&reads[..]]);
        }
        self.worker.steps(group as usize, &reads, &mut self.last)?;
        if *lookups > TRIALS && *hits < *lookups / MIN_HIT_INTERVAL {
            cache.clear();
            return Ok(&self.last);
        }
        self.cached_numbers += reads.len() + self.last.labels.len() + self.last.values.len();
        Ok(cache.entry(reads.into()).or_insert(std::mem::take(&mut self.last)))
    }
}

/// Returns the vector after the `i`-th of some steps of a group.
pub fn successor(
    model: &dyn Model,
    group: u32,
    vector: &[u32],
    steps: &Steps,
    i: usize,
) -> Vec<u32> {
    let writes = &model.groups()[group as usize].writes;
    let mut target = vector.to_vec();
    for (slot, value) in writes.iter().zip(&steps.values[i * writes.len()..]) {
        target[*slot as usize] = *value;
    }
    target
}

#[cfg(test)]
#[path = "../../tests/support/models.rs"]
mod models;

#[cfg(test)]
mod tests {
    use super::models::{Shape, random};
    use super::*;

    #[test]
    fn steps_are_those_of_a_worker_cached_or_not() {
        let model = random(11, Shape { slots: 5, values: 4, components: 2, groups: 9, labels: 3 });
        let mut worker = model.worker();
        for limit in [0, MAX_NUMBERS] {
            let mut evaluated = StepCache::new(&model);
            // Vectors recur, but rarely at first.
            for n in (0..4u32.pow(5)).chain(0..4u32.pow(5)) {
                let vector: Vec<u32> = (0..5).map(|i| n / 4u32.pow(i) % 4).collect();
                evaluated.cached_numbers += MAX_NUMBERS - limit;
                for (g, group) in model.groups().iter().enumerate() {
                    let mut expected = Steps::default();
                    if group.requires.iter().all(|(slot, value)| vector[*slot as usize] == *value) {
                        let reads: Vec<u32> =
                            group.reads.iter().map(|s| vector[*s as usize]).collect();
                        worker.steps(g, &reads, &mut expected).unwrap();
                    }
                    let steps = evaluated.steps(g as u32, &vector).unwrap();
                    assert_eq!(
                        (&steps.labels, &steps.values),
                        (&expected.labels, &expected.values),
                        "group {g} at {vector:?}"
                    );
                    for i in 0..steps.labels.len() {
                        let target = successor(&model, g as u32, &vector, steps, i);
                        let written = |s: usize| group.writes.iter().position(|w| *w as usize == s);
                        let value = |s: usize| {
                            written(s)
                                .map_or(vector[s], |w| steps.values[i * group.writes.len() + w])
                        };
                        assert_eq!(target, (0..5).map(value).collect::<Vec<u32>>());
                    }
                }
            }
        }
    }
}
