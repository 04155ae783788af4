//! On-the-fly successors: one state at a time, for solvers that may need a part of the state space.
//!
//! In: a model. Out: numbered states, their steps and vectors. One thread; the same store and
//! caches as the parallel search. States are numbered in order of discovery, the initial one 0.
//! Steps are cached, since solvers request them for each obligation at a state. Cost: 20 to 24
//! bytes a state in addition to the caches, and 8 for each cached step.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Options;
use super::expander::{Expander, Halt, Successor};
use super::group_cache::SharedGroupCache;
use super::search::index_too_wide;
use super::store::Store;
use super::stubborn::{ReductionSavings, Stubborn};
use super::table::{Growth, Insert, Payload};
use mu_base::ids::{LabelId, StateId};
use mu_base::{Diagnostic, Stage};
use mu_model::Model;

/// Cached steps of states.
#[derive(Default)]
struct StepCache {
    /// By state: start and length of its steps, the length in the low [`LENGTH_BITS`] bits; `None`
    /// if they are not cached.
    rows: Vec<Option<NonZeroU64>>,
    steps: Vec<(LabelId, StateId)>,
    /// Limit on cached steps; beyond it they are computed again.
    max_steps: usize,
}

/// Bits for the number of a state's steps.
const LENGTH_BITS: u32 = 24;

impl StepCache {
    /// Returns the steps of a state; `None` if they are not cached.
    fn get(&self, state: StateId) -> Option<&[(LabelId, StateId)]> {
        let row = self.rows.get(state.index()).copied().flatten()?.get() - 1;
        let start = (row >> LENGTH_BITS) as usize;
        Some(&self.steps[start..start + (row & ((1 << LENGTH_BITS) - 1)) as usize])
    }
    /// Caches the steps of a state, unless the limit is reached.
    fn insert(&mut self, state: StateId, steps: &[(LabelId, StateId)]) {
        if steps.len() >= 1 << LENGTH_BITS || self.steps.len() + steps.len() > self.max_steps {
            return;
        }
        if self.rows.len() <= state.index() {
            self.rows.resize(state.index() + 1, None);
        }
        self.rows[state.index()] =
            NonZeroU64::new(((self.steps.len() as u64) << LENGTH_BITS | steps.len() as u64) + 1);
        self.steps.extend_from_slice(steps);
    }
}

/// Successors of one state at a time; see the module header.
pub struct OnTheFlySuccessors<'m> {
    store: Store,
    expander: Expander<'m>,
    keys: Vec<u64>,
    found: Vec<Successor>,
    step_cache: StepCache,
    /// True if the table became crowded and grew since the last expansion.
    grown: bool,
}

impl<'m> OnTheFlySuccessors<'m> {
    /// Creates the store with the initial state; with confluent groups, with the state at the end
    /// of its confluent steps.
    pub fn new(model: &'m dyn Model, options: &Options) -> Result<Self, Diagnostic> {
        let shared_cache = Arc::new(SharedGroupCache::new(
            model.groups().len(),
            options.cache_bytes.saturating_mul(4),
        ));
        let mut lazy = Self {
            store: Store::new(
                model,
                options.expected_states,
                Payload::Number,
                options.tuning.table,
            ),
            expander: Expander::new(model, shared_cache, options),
            keys: Vec::new(),
            found: Vec::new(),
            // Steps of 8 bytes: up to four times `cache_bytes`, because solvers request the steps
            // of a state once for each obligation.
            step_cache: StepCache {
                max_steps: (options.cache_bytes / 2) as usize,
                ..StepCache::default()
            },
            grown: false,
        };
        let vector = model.initial();
        lazy.with_repacking(|lazy| {
            let key = lazy.store.encode(&vector)?;
            let key = lazy.expander.representative(&lazy.store, key)?;
            lazy.number(key)?;
            Ok(())
        })?;
        Ok(lazy)
    }
    /// Sets the partial-order reduction; `None` expands in full.
    pub(crate) fn with_partial_order_reduction(
        mut self,
        stubborn: Option<&'m Stubborn<'m>>,
    ) -> Self {
        self.expander = self.expander.with_partial_order_reduction(stubborn);
        self
    }
    /// Retains each group with a step of one label and target; for
    /// [`OnTheFlySuccessors::steps`] only.
    pub(crate) fn by_group(mut self) -> Self {
        self.expander = self.expander.by_group();
        self
    }
    /// Returns the savings of the reduction since the last call.
    pub(crate) fn take_savings(&mut self) -> ReductionSavings {
        self.expander.take_savings()
    }
    /// Returns the initial state.
    pub fn initial(&self) -> StateId {
        StateId::of(0)
    }
    /// Returns the number of states found so far.
    pub fn state_count(&self) -> usize {
        self.keys.len()
    }
    /// Returns the slots of a known state.
    pub fn vector(&self, state: StateId) -> Vec<u32> {
        self.store.vector(self.keys[state.index()])
    }
    /// Computes the steps of a known state, each label and target once; clears `out` first.
    pub fn successors(
        &mut self,
        state: StateId,
        out: &mut Vec<(LabelId, StateId)>,
    ) -> Result<(), Diagnostic> {
        if let Some(steps) = self.step_cache.get(state) {
            out.clear();
            out.extend_from_slice(steps);
            return Ok(());
        }
        self.expand(state, out)?;
        self.step_cache.insert(state, out);
        Ok(())
    }
    /// Computes the steps of a state; also stores them in `found`.
    fn expand(
        &mut self,
        state: StateId,
        out: &mut Vec<(LabelId, StateId)>,
    ) -> Result<(), Diagnostic> {
        if self.grown {
            self.grown = false;
            let split = self.store.unfit_leaf();
            if split.is_some() || self.store.could_be_short() {
                self.store.replan(self.keys.iter_mut(), split);
            }
        }
        self.with_repacking(|lazy| {
            let mut found = std::mem::take(&mut lazy.found);
            let result =
                lazy.expander.successors(&lazy.store, lazy.keys[state.index()], &mut found);
            lazy.found = found;
            result
        })?;
        out.clear();
        // Prefetches the buckets of all successors, so that the cache misses overlap.
        let touch =
            |acc: u64, s: &Successor| acc ^ self.store.table.touch(self.store.table.hash(s.key));
        std::hint::black_box(self.found.iter().fold(0, touch));
        for i in 0..self.found.len() {
            let step = self.found[i];
            out.push((step.label, self.number(step.key)?));
        }
        Ok(())
    }
    /// Computes the steps of a known state with their groups, without caching. Each label and
    /// target occurs once, with the first group that has it; after `by_group`, with each such
    /// group.
    pub fn steps(
        &mut self,
        state: StateId,
        out: &mut Vec<(u32, LabelId, StateId)>,
    ) -> Result<(), Diagnostic> {
        let mut plain = Vec::new();
        self.expand(state, &mut plain)?;
        out.clear();
        out.extend(
            plain.iter().zip(&self.found).map(|((label, target), s)| (s.group, *label, *target)),
        );
        Ok(())
    }
    /// Returns the bytes of the states and of cached steps, without the group caches.
    pub fn bytes(&self) -> u64 {
        self.store.bytes()
            + (self.keys.capacity()
                + self.step_cache.rows.capacity()
                + self.step_cache.steps.capacity()) as u64
                * 8
    }

    /// Repeats an action after repacking the store, if an index did not fit into its field.
    fn with_repacking(
        &mut self,
        mut action: impl FnMut(&mut Self) -> Result<(), Halt>,
    ) -> Result<(), Diagnostic> {
        loop {
            self.expander.follow(&self.store);
            match action(self) {
                Ok(()) => return Ok(()),
                Err(Halt::Error(error)) => return Err(*error),
                Err(Halt::Overflow) if self.store.at_limit() => return Err(index_too_wide()),
                Err(Halt::Overflow) => {
                    let split = self.store.unfit_leaf();
                    self.store.replan(self.keys.iter_mut(), split);
                }
            }
        }
    }
    /// Returns the number of the state with a key, which may be new.
    fn number(&mut self, key: u64) -> Result<StateId, Diagnostic> {
        loop {
            match self.store.table.insert(key) {
                Insert::Old(place) => {
                    return Ok(StateId::of(self.store.table.number(place).load(Ordering::Relaxed)));
                }
                Insert::New(place) => {
                    let Ok(number) = u32::try_from(self.keys.len()) else {
                        return Err(Diagnostic::new(
                            Stage::Unsupported,
                            "more than 2^32 states solved on the fly",
                        ));
                    };
                    self.store.table.number(place).store(number, Ordering::Relaxed);
                    self.keys.push(key);
                    self.store.table.add_len(1);
                    if self.store.table.is_crowded() {
                        self.store.table.grow(Growth::default());
                        self.grown = true;
                    }
                    return Ok(StateId::of(number));
                }
                // The probe sequence is full, though the table is not crowded.
                Insert::Full => self.store.table.grow(Growth::default()),
            }
        }
    }
}
