//! Breadth-first exploration of a model to a probabilistic transition system.
//!
//! In: a [`Model`] and the limits of the run. Out: [`ProbabilisticSystem`] with the labels of the
//! model. Answers of groups are cached by the slots read, so that a group is evaluated once for
//! recurring values. One thread. Cost: the states as vectors, the cached answers up to
//! `MAX_CACHED`.

use crate::{DistId, Distributions, ProbabilisticSystem};
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, Stop, narrow};
use mu_lts::Labels;
use mu_model::{Chances, Group, Model, Slot};
use num_rational::BigRational;
use std::collections::hash_map::Entry;
use std::rc::Rc;
use std::sync::Arc;

/// Limit on the values in cached answers of groups; beyond it, the cache is cleared.
const MAX_CACHED: usize = 1 << 23;
/// Number of outcomes from which a distribution is looked up before its states are computed.
const LONG: usize = 16;
/// Number of steps between two polls of the limits.
const POLL_STEPS: u64 = 256;

struct Exploration<'m> {
    groups: &'m [Group],
    ids: AHashMap<Box<[u32]>, u32>,
    vectors: Vec<Box<[u32]>>,
    distributions: Distributions,
    /// Distributions with many outcomes, by the address of the list of weights and the other
    /// inputs. The entry holds the list, so that the address stays valid.
    long: AHashMap<(usize, Box<[u32]>), (DistId, Arc<[BigRational]>)>,
    /// The same, by the address of the list of values as well, if the list is shared.
    shared: AHashMap<(usize, usize, Box<[u32]>), (DistId, Arc<[u32]>)>,
}

impl Exploration<'_> {
    fn state(&mut self, vector: &[u32]) -> StateId {
        if let Some(&id) = self.ids.get(vector) {
            return StateId::of(id);
        }
        let id = StateId::new(self.vectors.len());
        self.vectors.push(vector.into());
        self.ids.insert(vector.into(), id.number());
        id
    }

    /// Adds the steps of a group's answer in a state.
    fn add(
        &mut self,
        from: &[u32],
        group: usize,
        answer: &Chances,
        row: &mut Vec<(LabelId, DistId)>,
    ) {
        let writes = &self.groups[group].writes;
        for ((label, weights), values) in
            answer.labels.iter().zip(&answer.weights).zip(&answer.values)
        {
            let step = (*label, self.step(from, writes, weights, values));
            if !row.contains(&step) {
                row.push(step);
            }
        }
    }

    /// Returns the distribution over states that differ from one in the written slots.
    fn step(
        &mut self,
        from: &[u32],
        writes: &[Slot],
        weights: &Arc<[BigRational]>,
        values: &Arc<[u32]>,
    ) -> DistId {
        if weights.len() < LONG || Arc::strong_count(values) == 1 {
            return self.distribution(from, writes, weights, values);
        }
        let mut rest = from.to_vec();
        writes.iter().for_each(|slot| rest[*slot as usize] = u32::MAX);
        rest.extend(writes);
        let key = (
            Arc::as_ptr(weights).cast::<BigRational>() as usize,
            Arc::as_ptr(values).cast::<u32>() as usize,
            rest.into(),
        );
        if let Some((known, _)) = self.shared.get(&key) {
            return *known;
        }
        let dist = self.distribution(from, writes, weights, values);
        self.shared.insert(key, (dist, values.clone()));
        dist
    }

    /// Returns the same distribution, by the values themselves.
    fn distribution(
        &mut self,
        from: &[u32],
        writes: &[Slot],
        weights: &Arc<[BigRational]>,
        values: &[u32],
    ) -> DistId {
        let mut vector = from.to_vec();
        let recurs = weights.len() >= LONG;
        let key = recurs.then(|| {
            writes.iter().for_each(|slot| vector[*slot as usize] = u32::MAX);
            let same: Box<[u32]> = vector.iter().chain(writes).chain(values).copied().collect();
            (Arc::as_ptr(weights).cast::<BigRational>() as usize, same)
        });
        if let Some(key) = &key
            && let Some((known, _)) = self.long.get(key)
        {
            return *known;
        }
        let mut outcomes = Vec::with_capacity(weights.len());
        for (outcome, weight) in weights.iter().enumerate() {
            for (at, slot) in writes.iter().enumerate() {
                vector[*slot as usize] = values[outcome * writes.len() + at];
            }
            outcomes.push((self.state(&vector), weight.clone()));
        }
        let dist = self.distributions.intern(outcomes);
        if let Some(key) = key {
            self.long.insert(key, (dist, weights.clone()));
        }
        dist
    }
}

/// Explores a model. If the reason to stop is not completeness, the system is the explored part.
pub fn explore(
    model: &dyn Model,
    budget: &Budget,
    seen: &mut dyn FnMut(u64),
) -> Result<(ProbabilisticSystem, Stop), Diagnostic> {
    let groups = model.groups();
    let mut search = Exploration {
        groups,
        ids: AHashMap::new(),
        vectors: Vec::new(),
        distributions: Distributions::default(),
        long: AHashMap::new(),
        shared: AHashMap::new(),
    };
    let starts: Vec<_> = model
        .initial_chances()
        .into_iter()
        .map(|(weight, vector)| (search.state(&vector), weight))
        .collect();
    let initial = search.distributions.intern(starts);
    let mut worker = model.worker();
    let mut cache: AHashMap<(u32, Box<[u32]>), Rc<Chances>> = AHashMap::new();
    let mut size = 0;
    let (mut offsets, mut labels, mut targets) = (vec![0u64], Vec::new(), Vec::new());
    let mut stop = Stop::Complete;
    let mut row = Vec::new();
    let mut next = 0;
    while next < search.vectors.len() {
        let found = search.vectors.len() as u64;
        let polls = (next as u64).is_multiple_of(POLL_STEPS);
        if polls {
            seen(found);
        }
        let memory = || if polls { budget.check_memory() } else { Ok(()) };
        if let Err(why) = budget.check(found).and_then(|()| memory()) {
            stop = why;
            break;
        }
        let from = search.vectors[next].clone();
        row.clear();
        for (g, group) in groups.iter().enumerate() {
            if group.requires.iter().any(|(slot, value)| from[*slot as usize] != *value) {
                continue;
            }
            let reads: Box<[u32]> = group.reads.iter().map(|s| from[*s as usize]).collect();
            if size > MAX_CACHED {
                cache.clear();
                size = 0;
            }
            let answer = match cache.entry((narrow::index(g), reads)) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(place) => {
                    let mut answer = Chances::default();
                    match worker.chances(g, &place.key().1, &mut answer) {
                        Err(Diagnostic { stop: Some(why), .. }) => {
                            stop = why;
                            break;
                        }
                        result => result?,
                    }
                    size += answer.values.iter().map(|v| v.len()).sum::<usize>()
                        + place.key().1.len()
                        + 16;
                    place.insert(Rc::new(answer)).clone()
                }
            };
            search.add(&from, g, &answer, &mut row);
        }
        if stop != Stop::Complete {
            break;
        }
        for (label, target) in &row {
            labels.push(*label);
            targets.push(*target);
        }
        offsets.push(targets.len() as u64);
        next += 1;
    }
    // Unexpanded states have no steps in the result.
    offsets.resize(search.vectors.len() + 1, targets.len() as u64);
    let texts = (0..model.label_count()).map(|l| model.label_text(LabelId::new(l))).collect();
    let system = ProbabilisticSystem {
        initial,
        offsets,
        labels,
        targets,
        distributions: search.distributions,
        table: Labels { texts },
    };
    Ok((system, stop))
}
