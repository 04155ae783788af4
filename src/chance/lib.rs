//! Probabilistic transition systems: a step leads to a distribution over states, and nondeterminism
//! chooses between steps. Probabilities are exact.
//!
//! In: models (`explore`), files (`aut`). Out: [`ProbabilisticSystem`], its quotient and comparison
//! (`bisimulation`), files. Distributions are hash-consed: equal ones have one number. Cost: 8
//! bytes an outcome of each distribution, 8 bytes a step; each probability is stored once.
//! Invariant: the probabilities of a distribution are positive and add up to 1; its states ascend
//! and occur once.
#![warn(missing_docs)]

pub mod aut;
pub mod bisimulation;
pub mod dot;
pub mod explore;

use ahash::AHashMap;
use mu_base::id_types;
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;
use mu_lts::Labels;
use mu_lts::relabel::{Labelled, merge_rows};
use num_rational::BigRational;
use num_traits::{One, Zero};

id_types! {
    /// Number of a distribution.
    pub DistId,
}

/// Distributions over states, by number.
#[derive(Clone, Debug, Default)]
pub struct Distributions {
    ends: Vec<usize>,
    states: Vec<u32>,
    weights: Vec<u32>,
    by_outcomes: AHashMap<Box<[(u32, u32)]>, DistId>,
    probabilities: Vec<BigRational>,
    by_probability: AHashMap<BigRational, u32>,
}

impl Distributions {
    /// Returns the number of a distribution given by outcomes; the probabilities of one state are
    /// added.
    pub fn intern(&mut self, outcomes: impl IntoIterator<Item = (StateId, BigRational)>) -> DistId {
        let mut all: Vec<(u32, BigRational)> =
            outcomes.into_iter().map(|(s, w)| (s.number(), w)).collect();
        all.sort_by_key(|o| o.0);
        let mut merged: Vec<(u32, BigRational)> = Vec::with_capacity(all.len());
        for (state, weight) in all {
            match merged.last_mut() {
                Some(last) if last.0 == state => last.1 += weight,
                _ => merged.push((state, weight)),
            }
        }
        merged.retain(|(_, w)| !w.is_zero());
        let key: Box<[(u32, u32)]> =
            merged.into_iter().map(|(s, w)| (s, self.probability(w))).collect();
        if let Some(&known) = self.by_outcomes.get(&key) {
            return known;
        }
        let id = DistId::new(self.ends.len());
        for (state, weight) in &key {
            self.states.push(*state);
            self.weights.push(*weight);
        }
        self.ends.push(self.states.len());
        self.by_outcomes.insert(key, id);
        id
    }

    /// Returns the number of the distribution with a single state.
    pub fn certain(&mut self, state: StateId) -> DistId {
        self.intern([(state, BigRational::one())])
    }

    fn probability(&mut self, weight: BigRational) -> u32 {
        if let Some(&known) = self.by_probability.get(&weight) {
            return known;
        }
        let id = narrow::index(self.probabilities.len());
        self.probabilities.push(weight.clone());
        self.by_probability.insert(weight, id);
        id
    }

    /// Returns the number of distributions.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is no distribution.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Iterates over the states of a distribution with their probabilities.
    pub fn outcomes(&self, dist: DistId) -> impl Iterator<Item = (StateId, &BigRational)> + '_ {
        let start = dist.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        let range = start..self.ends[dist.index()];
        let weights = self.weights[range.clone()].iter().map(|w| &self.probabilities[*w as usize]);
        self.states[range].iter().map(|s| StateId::of(*s)).zip(weights)
    }
}

/// Probabilistic transition system. Steps of state `s` are `targets[offsets[s]..offsets[s + 1]]`
/// with their labels.
#[derive(Clone, Debug)]
pub struct ProbabilisticSystem {
    /// Initial distribution.
    pub initial: DistId,
    /// `states + 1` offsets.
    pub offsets: Vec<u64>,
    /// Label of each step.
    pub labels: Vec<LabelId>,
    /// Target of each step.
    pub targets: Vec<DistId>,
    /// Distributions by number.
    pub distributions: Distributions,
    /// The label table.
    pub table: Labels,
}

impl Labelled for ProbabilisticSystem {
    fn labels_mut(&mut self) -> (&mut Labels, &mut [LabelId]) {
        (&mut self.table, &mut self.labels)
    }
    fn merge_transitions(&mut self) {
        merge_rows(&mut self.offsets, &mut self.labels, &mut self.targets);
    }
}

impl ProbabilisticSystem {
    /// Returns the number of states.
    pub fn state_count(&self) -> usize {
        self.offsets.len() - 1
    }
    /// Returns the number of steps.
    pub fn step_count(&self) -> usize {
        self.targets.len()
    }
    /// Returns the number of states without steps.
    pub fn deadlock_count(&self) -> usize {
        self.offsets.windows(2).filter(|w| w[0] == w[1]).count()
    }
    /// Iterates over the steps of a state.
    pub fn steps(&self, state: StateId) -> impl Iterator<Item = (LabelId, DistId)> + '_ {
        let range = self.offsets[state.index()] as usize..self.offsets[state.index() + 1] as usize;
        self.labels[range.clone()].iter().copied().zip(self.targets[range].iter().copied())
    }
}
