//! Something that several processes look for: who meets it, and the way there, from what each
//! process holds.
//!
//! In: a [`Partition`] that was told what is sought, states as bytes that mean the same everywhere.
//! Out: whether the level that was searched has it, the states of a level that step to a given one,
//! and in the end a [`LassoPath`] of this process's own model. With each state the share keeps its level,
//! four bytes. The way is found backwards: a state's predecessor in the level before belongs to
//! whatever process has it, so all look at theirs.
//!
//! Cost: of a step back, a pass over the table and the expansion of one level; of the whole way,
//! one more exploration. Invariants: a way is as short as one can be, since levels are those of a
//! breadth-first search; among equal ones it is the least by the bytes of its states, and so does
//! not depend on the number of processes.

use std::sync::atomic::Ordering;

use super::goal_search::PathStep;
use super::multi_goal_search::{LassoPath, PathGoal};
use super::partition::{Partition, store};
use super::table::Payload;
use super::{Lazy, Options};
use mu_base::ids::{LabelId, StateId};
use mu_base::varint::{put, take};
use mu_base::{Diagnostic, Stage};
use mu_model::{Model, Portable};

/// Expansions between two looks at the limits.
pub(super) const LOOK: usize = 1 << 12;

/// What a share looks for, and what it has met.
#[derive(Default)]
pub(super) struct Quest<'m> {
    pub sought: Option<PathGoal<'m>>,
    /// States of one level that are sought, or have a step that is.
    pub hits: Vec<u64>,
    /// That level.
    pub level: Option<u64>,
}

/// A state as bytes that are the same in all processes.
pub(super) fn exported(portable: &dyn Portable, vector: &[u32]) -> Result<Vec<u8>, Diagnostic> {
    let mut bytes = Vec::new();
    for (slot, &value) in vector.iter().enumerate() {
        let value = portable.export(slot as u32, value)?;
        put(&mut bytes, value.len() as u64);
        bytes.extend(value);
    }
    Ok(bytes)
}

/// The state of such bytes.
pub(super) fn imported(
    portable: &dyn Portable,
    slots: usize,
    mut bytes: &[u8],
) -> Result<Vec<u32>, Diagnostic> {
    let malformed = || Diagnostic::new(Stage::File, "a malformed state of another process");
    let mut vector = Vec::with_capacity(slots);
    for slot in 0..slots {
        let length =
            take(&mut bytes).and_then(|n| usize::try_from(n).ok()).ok_or_else(malformed)?;
        let (value, rest) = bytes.split_at_checked(length).ok_or_else(malformed)?;
        vector.push(portable.import(slot as u32, value)?);
        bytes = rest;
    }
    if bytes.is_empty() { Ok(vector) } else { Err(malformed()) }
}

impl<'m> Partition<'m> {
    /// The same share, still empty, of a search that looks for something and keeps the level of
    /// each state.
    #[must_use]
    pub fn seeking(mut self, sought: PathGoal<'m>, options: &Options) -> Self {
        self.store =
            store(self.model, options, self.expander.symmetries.is_some(), Payload::Number);
        self.quest.sought = Some(sought);
        self
    }

    /// Looks at a state of the level that was begun, whose steps were found just now.
    pub(super) fn look(&mut self, key: u64) {
        let hit = match self.quest.sought {
            None | Some(PathGoal::Divergence) => false,
            Some(PathGoal::Deadlock(test)) => {
                self.found.is_empty() && test(&self.store.vector(key))
            }
            Some(PathGoal::Step(test)) => {
                self.found.iter().any(|s| test(s.group as usize, s.label))
            }
        };
        if hit {
            self.quest.hits.push(key);
            self.quest.level = Some(self.level);
        }
    }

    /// The level that has what is sought, if this process has met it.
    pub fn hit(&self) -> Option<u64> {
        self.quest.level
    }

    /// The least state here that is sought or has a step that is, as bytes.
    ///
    /// # Errors
    /// A value means nothing to other processes.
    pub fn least_hit(&self) -> Result<Option<Vec<u8>>, Diagnostic> {
        if self.is_carrying() {
            return self.least_deciding();
        }
        let mut least: Option<Vec<u8>> = None;
        for &key in &self.quest.hits {
            let bytes = exported(self.portable, &self.store.vector(key))?;
            if least.as_ref().is_none_or(|l| bytes < *l) {
                least = Some(bytes);
            }
        }
        Ok(least)
    }

    /// The least of the states here, of a level whose states were all expanded, that step to a
    /// given state; as bytes.
    ///
    /// # Errors
    /// Those of the model; a limit; bytes that are no state.
    pub fn before(&mut self, level: u64, state: &[u8]) -> Result<Option<Vec<u8>>, Diagnostic> {
        if let Some(mut carried) = self.carried.take() {
            let result = self.bringing(&mut carried, level, state);
            self.carried = Some(carried);
            return result;
        }
        let vector = imported(self.portable, self.model.slots().len(), state)?;
        let target = self.settled(|share| Ok(share.store.encode(&vector)?))?;
        // Another layout gives what is queued and what was met other keys, and these with them.
        self.quest.hits = vec![target];
        let here = |place: u64| {
            u64::from(self.store.table.number(place).load(Ordering::Relaxed)) == level + 1
        };
        self.now = self
            .store
            .table
            .entries()
            .filter(|&(place, _)| here(place))
            .map(|(_, key)| key)
            .collect();
        let mut least: Option<Vec<u8>> = None;
        while !self.now.is_empty() {
            if self.now.len().is_multiple_of(LOOK) {
                self.budget
                    .check(0)
                    .and_then(|()| self.budget.check_memory())
                    .map_err(Diagnostic::stopped)?;
            }
            // A successor that other processes have may need a wider field here.
            let key = self.settled(|share| {
                let key = *share
                    .now
                    .last()
                    .ok_or_else(|| Diagnostic::internal("the state to be expanded is gone"))?;
                share.expander.successors(&share.store, key, &mut share.found)?;
                Ok(key)
            })?;
            self.now.pop();
            if self.found.iter().any(|s| Some(&s.key) == self.quest.hits.first()) {
                let bytes = exported(self.portable, &self.store.vector(key))?;
                if least.as_ref().is_none_or(|l| bytes < *l) {
                    least = Some(bytes);
                }
            }
        }
        Ok(least)
    }
}

/// The way through states that other processes gave, from the initial one on, with the step that is
/// sought, if one is, at its end.
///
/// # Errors
/// Those of the model; states that no steps join.
pub fn path_through(
    model: &dyn Model,
    options: &Options,
    sought: PathGoal<'_>,
    states: &[Vec<u8>],
) -> Result<LassoPath, Diagnostic> {
    let Some(portable) = model.portable() else {
        return Err(Diagnostic::internal("states came of a model whose values cannot travel"));
    };
    let broken = || Diagnostic::internal("the states of a way are not joined by steps");
    let mut lazy = Lazy::new(model, &options.without_confluence())?;
    let (mut at, mut steps, mut found) = (StateId(0), Vec::new(), Vec::new());
    let first = states.first().ok_or_else(broken)?;
    if imported(portable, model.slots().len(), first)? != lazy.vector(at) {
        return Err(broken());
    }
    // Of several steps the least by text, so that the numbers of labels do not matter.
    let rank = |s: &(u32, LabelId, StateId)| (model.label_text(s.1), s.0);
    for state in &states[1..] {
        let vector = imported(portable, model.slots().len(), state)?;
        lazy.steps(at, &mut found)?;
        let step = found
            .iter()
            .filter(|s| lazy.vector(s.2) == vector)
            .min_by_key(|s| rank(s))
            .ok_or_else(broken)?;
        steps.push(PathStep { label: step.1, group: step.0 as usize, state: vector });
        at = step.2;
    }
    if let PathGoal::Step(test) = sought {
        lazy.steps(at, &mut found)?;
        let mut last: Vec<(Vec<u8>, PathStep)> = Vec::new();
        for step in found.iter().filter(|s| test(s.0 as usize, s.1)) {
            let state = lazy.vector(step.2);
            last.push((
                exported(portable, &state)?,
                PathStep { label: step.1, group: step.0 as usize, state },
            ));
        }
        let last = last
            .into_iter()
            .min_by_key(|(bytes, s)| (model.label_text(s.label), s.group, bytes.clone()));
        steps.push(last.ok_or_else(broken)?.1);
    }
    Ok(LassoPath { steps, cycle_start: None })
}
