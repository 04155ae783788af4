//! Steps of groups at whole states, each evaluated once while there is room: for what looks at
//! single steps, such as evidence.
//!
//! In: a model, a state vector and a group. Out: the group's steps there, and the vectors after
//! them. Cost: a look-up where the group's reads have been met; groups whose reads hardly ever come
//! again are not kept. Invariant: nothing of the explorer's caches is used, so what checks a search
//! may use it.

use super::{Model, Steps, Worker};
use ahash::AHashMap;
use mu_base::Diagnostic;

/// Numbers that are kept, about, before all are forgotten.
const MOST_NUMBERS: usize = 32 << 20;
/// Evaluations of a group before it shows whether it is worth keeping them: one in so many must be
/// met again.
const TRIALS: u32 = 1000;
const WORTH: u32 = 8;

/// See the module's head.
pub struct Evaluated<'m> {
    model: &'m dyn Model,
    worker: Box<dyn Worker + 'm>,
    groups: Vec<Group>,
    numbers: usize,
    /// The steps of a group that is not kept.
    last: Steps,
}

#[derive(Default)]
struct Group {
    kept: AHashMap<Box<[u32]>, Steps>,
    asked: u32,
    met: u32,
}

impl<'m> Evaluated<'m> {
    /// Knows nothing yet.
    pub fn new(model: &'m dyn Model) -> Self {
        let groups = model.groups().iter().map(|_| Group::default()).collect();
        Self { model, worker: model.worker(), groups, numbers: 0, last: Steps::default() }
    }

    /// The steps of a group at a state; none if the group requires something else. Errors: those of
    /// the evaluation.
    pub fn steps(&mut self, group: u32, vector: &[u32]) -> Result<&Steps, Diagnostic> {
        if self.numbers > MOST_NUMBERS {
            self.groups.iter_mut().for_each(|g| g.kept.clear());
            self.numbers = 0;
        }
        let info = &self.model.groups()[group as usize];
        let Group { kept, asked, met } = &mut self.groups[group as usize];
        self.last.clear();
        if info.requires.iter().any(|(slot, value)| vector[*slot as usize] != *value) {
            return Ok(&self.last);
        }
        let reads: Vec<u32> = info.reads.iter().map(|s| vector[*s as usize]).collect();
        *asked = asked.saturating_add(1);
        if kept.contains_key(&reads[..]) {
            *met = met.saturating_add(1);
            return Ok(&kept[&reads[..]]);
        }
        self.worker.steps(group as usize, &reads, &mut self.last)?;
        if *asked > TRIALS && *met < *asked / WORTH {
            kept.clear();
            return Ok(&self.last);
        }
        self.numbers += reads.len() + self.last.labels.len() + self.last.values.len();
        Ok(kept.entry(reads.into()).or_insert(std::mem::take(&mut self.last)))
    }
}

/// The vector after the `i`-th of some steps of a group.
pub fn after(model: &dyn Model, group: u32, vector: &[u32], steps: &Steps, i: usize) -> Vec<u32> {
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
    fn steps_are_those_of_a_worker_kept_or_not() {
        let model = random(11, Shape { slots: 5, values: 4, components: 2, groups: 9, labels: 3 });
        let mut worker = model.worker();
        for room in [0, MOST_NUMBERS] {
            let mut evaluated = Evaluated::new(&model);
            // Vectors come again, but rarely at first.
            for n in (0..4u32.pow(5)).chain(0..4u32.pow(5)) {
                let vector: Vec<u32> = (0..5).map(|i| n / 4u32.pow(i) % 4).collect();
                evaluated.numbers += MOST_NUMBERS - room;
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
                        let target = after(&model, g as u32, &vector, steps, i);
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
