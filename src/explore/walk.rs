//! Walk through a model, one step at a time, forward and back, for simulators.
//!
//! In: a model. Out: the steps of the current state, and the path to it; undone steps can be redone
//! until another step is taken. Random steps come from a seeded generator, so a seed determines the
//! walk. Cost: one evaluation of each enabled group a state; the path stores its vectors.
//! Invariant: each step of the path is a step of the model from the state before it; steps of a
//! state are in the order of the groups, each label and target once.

use mu_base::ids::LabelId;
use mu_base::narrow;
use mu_base::random::Random;
use mu_base::{Diagnostic, Stage};
use mu_model::{Model, Steps, Worker};

/// A step of the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WalkStep {
    /// The transition group that makes it.
    pub group: u32,
    /// Its label.
    pub label: LabelId,
    /// The state after it.
    pub state: Vec<u32>,
}

/// A walk; see the module header.
pub struct Walk<'m> {
    model: &'m dyn Model,
    worker: Box<dyn Worker + 'm>,
    initial: Vec<u32>,
    /// Steps taken, followed by undone ones.
    path: Vec<WalkStep>,
    /// Number of steps taken.
    at: usize,
    moves: Vec<WalkStep>,
    seed: u64,
    random: Random,
}

impl<'m> Walk<'m> {
    /// Starts at the initial state. Errors: an evaluation that fails.
    pub fn new(model: &'m dyn Model, seed: u64) -> Result<Self, Diagnostic> {
        let initial = model.initial();
        let (worker, random) = (model.worker(), Random::new(seed));
        let mut walk = Self {
            model,
            worker,
            initial,
            path: Vec::new(),
            at: 0,
            moves: Vec::new(),
            seed,
            random,
        };
        walk.moves = walk.steps_of(0)?;
        Ok(walk)
    }
    /// Returns the model.
    pub fn model(&self) -> &'m dyn Model {
        self.model
    }
    /// Returns the number of steps taken.
    pub fn position(&self) -> usize {
        self.at
    }
    /// Returns the steps taken, followed by undone ones.
    pub fn path(&self) -> &[WalkStep] {
        &self.path
    }
    /// Returns the state after this number of steps of the path.
    pub fn state_after(&self, steps: usize) -> &[u32] {
        if steps == 0 { &self.initial } else { &self.path[steps - 1].state }
    }
    /// Returns the current state.
    pub fn state(&self) -> &[u32] {
        self.state_after(self.at)
    }
    /// Returns the steps of the current state.
    pub fn moves(&self) -> &[WalkStep] {
        &self.moves
    }
    /// Returns the seed of the random steps.
    pub fn seed(&self) -> u64 {
        self.seed
    }
    /// Restarts the random generator.
    pub fn reseed(&mut self, seed: u64) {
        (self.seed, self.random) = (seed, Random::new(seed));
    }
    /// Takes a step of the current state by its index. Undone steps remain if it is the first of
    /// them. Returns false if there is no such step.
    pub fn take(&mut self, index: usize) -> Result<bool, Diagnostic> {
        let Some(chosen) = self.moves.get(index) else { return Ok(false) };
        if self.path.get(self.at) != Some(chosen) {
            let chosen = chosen.clone();
            self.path.truncate(self.at);
            self.path.push(chosen);
        }
        self.go(self.at + 1)?;
        Ok(true)
    }
    /// Moves to the state after this number of steps of the path, or to its end if it is shorter.
    pub fn go(&mut self, steps: usize) -> Result<(), Diagnostic> {
        let steps = steps.min(self.path.len());
        self.moves = self.steps_of(steps)?;
        self.at = steps;
        Ok(())
    }
    /// Takes a random step, uniformly chosen. Returns false if there is none.
    pub fn random(&mut self) -> Result<bool, Diagnostic> {
        if self.moves.is_empty() {
            return Ok(false);
        }
        let index = self.random.below(self.moves.len());
        self.take(index)
    }
    /// Adopts the path and position of another walk through the same model.
    pub fn adopt(&mut self, other: Walk<'m>) {
        (self.path, self.at, self.moves) = (other.path, other.at, other.moves);
    }

    fn steps_of(&mut self, steps: usize) -> Result<Vec<WalkStep>, Diagnostic> {
        let state = self.state_after(steps).to_vec();
        moves(self.model, self.worker.as_mut(), &state)
    }
}

/// Computes the steps of a state, in the order of the groups, each label and target once. Errors:
/// an evaluation that fails.
pub fn moves(
    model: &dyn Model,
    worker: &mut dyn Worker,
    state: &[u32],
) -> Result<Vec<WalkStep>, Diagnostic> {
    let (mut moves, mut found) = (Vec::new(), Steps::default());
    let mut met = std::collections::HashSet::new();
    for (g, group) in model.groups().iter().enumerate() {
        if group.requires.iter().any(|(slot, value)| state[*slot as usize] != *value) {
            continue;
        }
        let reads: Vec<u32> = group.reads.iter().map(|s| state[*s as usize]).collect();
        found.clear();
        worker.steps(g, &reads, &mut found)?;
        let n = group.writes.len();
        if found.values.len() != found.labels.len() * n {
            return Err(Diagnostic::new(
                Stage::Internal,
                format!("group `{}` does not give a value for each slot it writes", group.name),
            ));
        }
        for (i, label) in found.labels.iter().enumerate() {
            let mut target = state.to_vec();
            for (slot, value) in group.writes.iter().zip(&found.values[i * n..]) {
                target[*slot as usize] = *value;
            }
            if met.insert((*label, target.clone())) {
                moves.push(WalkStep { group: narrow::index(g), label: *label, state: target });
            }
        }
    }
    Ok(moves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::models::{Shape, counters, random};
    use crate::tests::small;
    use crate::{Silent, explore_lts};
    use mu_base::Budget;

    fn texts(walk: &Walk) -> Vec<String> {
        walk.moves().iter().map(|m| walk.model().label_text(m.label)).collect()
    }

    #[test]
    fn back_and_forward() {
        let model = counters(2, 2);
        let mut walk = Walk::new(&model, 7).unwrap();
        assert_eq!(texts(&walk), ["up(0)", "up(1)"]);
        assert!(walk.take(0).unwrap() && walk.take(1).unwrap() && !walk.take(2).unwrap());
        assert_eq!((walk.state(), walk.position()), (&[1, 1][..], 2));
        walk.go(1).unwrap();
        assert_eq!((walk.state(), walk.path().len()), (&[1, 0][..], 2));
        // Taking the same step again retains the undone steps; another step does not.
        walk.go(0).unwrap();
        walk.take(0).unwrap();
        assert_eq!((walk.position(), walk.path().len()), (1, 2));
        walk.take(0).unwrap();
        assert_eq!((walk.state(), walk.path().len()), (&[2, 0][..], 2));
        assert_eq!(texts(&walk), ["up(1)"]);
        walk.go(9).unwrap();
        assert_eq!(walk.position(), 2);
    }

    #[test]
    fn a_seed_is_a_walk() {
        let model = counters(3, 4);
        let walked = |seed| {
            let mut walk = Walk::new(&model, seed).unwrap();
            while walk.random().unwrap() {}
            walk.path().iter().map(|m| m.state.clone()).collect::<Vec<_>>()
        };
        assert_eq!(walked(1), walked(1));
        assert_eq!((walked(1).len(), walked(2).len()), (12, 12));
        assert_ne!(walked(1), walked(2));
    }

    /// Random walks through random models take only steps of the explored system.
    #[test]
    fn steps_are_those_of_the_transition_system() {
        let shape = Shape { slots: 4, values: 3, components: 2, groups: 6, labels: 3 };
        let mut followed = 0;
        for seed in 0..30 {
            let model = random(seed, shape);
            let (_, lts) = explore_lts(&model, &small(), &Budget::default(), &Silent).unwrap();
            let mut walk = Walk::new(&model, seed).unwrap();
            let mut at = lts.initial;
            // Numbers of vectors, known where a label leads to one state only.
            for _ in 0..50 {
                let mut here: Vec<String> =
                    lts.successors(at).map(|(l, _)| lts.table.texts[l.index()].clone()).collect();
                let mut walked = texts(&walk);
                here.sort();
                walked.sort();
                assert_eq!(here, walked, "seed {seed}");
                if !walk.random().unwrap() {
                    break;
                }
                let label = model.label_text(walk.path()[walk.position() - 1].label);
                let next: Vec<_> = lts
                    .successors(at)
                    .filter(|(l, _)| lts.table.texts[l.index()] == label)
                    .collect();
                let [(_, target)] = next[..] else { break };
                at = target;
                followed += 1;
            }
        }
        assert!(followed > 50, "{followed} steps followed");
    }
}
