//! Distributed goal search: the level that reaches the goal, and a shortest path to it,
//! reconstructed from all partitions.
//!
//! In: a [`Partition`] with a goal, and states as bytes that are equal in all processes. Out: the
//! level that reaches the goal, predecessors of a state in the level before, and finally a
//! [`LassoPath`] of this process's model. The partition stores the level of each state, four bytes.
//! The path is found backwards: the predecessor of a state may belong to any process, so all
//! processes look in their own partition.
//!
//! Cost: a step back costs a pass over the table and the expansion of one level; a whole path costs
//! one more exploration. Invariants: the path is shortest, because levels are those of a
//! breadth-first search. Among equally long paths it is the least by the bytes of its states, so it
//! does not depend on the number of processes.

use std::sync::atomic::Ordering;

use super::partition::{Partition, store};
use crate::goal_search::PathStep;
use crate::multi_goal_search::{LassoPath, PathGoal};
use crate::table::Payload;
use crate::{OnTheFlySuccessors, Options};
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;
use mu_base::varint::{put, take};
use mu_base::{Diagnostic, Stage};
use mu_model::{Model, Portable};

/// Goal of a distributed search, and the states that reached it.
#[derive(Default)]
pub(crate) struct DistributedGoal<'m> {
    pub sought: Option<PathGoal<'m>>,
    /// States of one level that are goals or have a goal step.
    pub hits: Vec<u64>,
    /// The level of these states.
    pub level: Option<u64>,
}

/// Encodes a state as bytes that are equal in all processes.
pub(crate) fn export_state(portable: &dyn Portable, vector: &[u32]) -> Result<Vec<u8>, Diagnostic> {
    let mut bytes = Vec::new();
    for (slot, &value) in vector.iter().enumerate() {
        let value = portable.export(narrow::index(slot), value)?;
        put(&mut bytes, value.len() as u64);
        bytes.extend(value);
    }
    Ok(bytes)
}

/// Decodes such a state.
pub(crate) fn import_state(
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
        vector.push(portable.import(narrow::index(slot), value)?);
        bytes = rest;
    }
    if bytes.is_empty() { Ok(vector) } else { Err(malformed()) }
}

impl<'m> Partition<'m> {
    /// Turns an empty partition into one that searches for a goal and stores the level of each
    /// state.
    #[must_use]
    pub fn with_goal(mut self, sought: PathGoal<'m>, options: &Options) -> Self {
        self.store =
            store(self.model, options, self.expander.symmetries.is_some(), Payload::Number);
        // Another group than the wanted one may have the same step.
        if matches!(sought, PathGoal::Step(_)) {
            self.expander = self.expander.by_group();
        }
        self.goal.sought = Some(sought);
        self
    }

    /// Checks a state of the current level, with its steps in `found`, against the goal.
    pub(crate) fn check_goal(&mut self, key: u64) {
        let hit = match self.goal.sought {
            None | Some(PathGoal::Divergence) => false,
            Some(PathGoal::Deadlock(test)) => {
                self.found.is_empty() && test(&self.store.vector(key))
            }
            Some(PathGoal::Step(test)) => {
                self.found.iter().any(|s| test(s.group as usize, s.label))
            }
        };
        if hit {
            self.goal.hits.push(key);
            self.goal.level = Some(self.level);
        }
    }

    /// Returns the level that reaches the goal, if this process has reached it.
    pub fn goal_level(&self) -> Option<u64> {
        self.goal.level
    }

    /// Returns the least state of this process that is a goal or has a goal step, encoded. `None`
    /// if it has no such state.
    ///
    /// # Errors
    /// A value is not portable.
    pub fn least_goal_state(&self) -> Result<Option<Vec<u8>>, Diagnostic> {
        if self.has_annotations() {
            return self.least_deciding();
        }
        let mut least: Option<Vec<u8>> = None;
        for &key in &self.goal.hits {
            let bytes = export_state(self.portable, &self.store.vector(key))?;
            if least.as_ref().is_none_or(|l| bytes < *l) {
                least = Some(bytes);
            }
        }
        Ok(least)
    }

    /// Returns the least state of this process in a fully expanded level that steps to `state`,
    /// encoded. `None` if it has no such state.
    ///
    /// # Errors
    /// Errors of the model; a limit; malformed bytes.
    pub fn predecessor(&mut self, level: u64, state: &[u8]) -> Result<Option<Vec<u8>>, Diagnostic> {
        if let Some(mut annotations) = self.annotations.take() {
            let result = self.predecessor_of(&mut annotations, level, state);
            self.annotations = Some(annotations);
            return result;
        }
        let vector = import_state(self.portable, self.model.slots().len(), state)?;
        let target = self.with_new_layout(|partition| Ok(partition.store.encode(&vector)?))?;
        // These keys change with the layout, like queued states and hits.
        self.goal.hits = vec![target];
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
            self.poll(self.now.len())?;
            // A successor owned by another process may need a wider field here.
            let key = self.expand_newest()?;
            self.now.pop();
            if self.found.iter().any(|s| Some(&s.key) == self.goal.hits.first()) {
                let bytes = export_state(self.portable, &self.store.vector(key))?;
                if least.as_ref().is_none_or(|l| bytes < *l) {
                    least = Some(bytes);
                }
            }
        }
        Ok(least)
    }
}

/// Builds the path through the given states, from the initial one, with the goal step at its end if
/// there is one.
///
/// # Errors
/// Errors of the model; no steps connect the states.
pub fn path_through(
    model: &dyn Model,
    options: &Options,
    sought: PathGoal<'_>,
    states: &[Vec<u8>],
) -> Result<LassoPath, Diagnostic> {
    let Some(portable) = model.portable() else {
        return Err(Diagnostic::internal(
            "states were received for a model without portable values",
        ));
    };
    let broken = || Diagnostic::internal("the states of a path are not connected by steps");
    let mut lazy = OnTheFlySuccessors::new(model, &options.without_confluence())?.by_group();
    let (mut at, mut steps, mut found) = (StateId::of(0), Vec::new(), Vec::new());
    let first = states.first().ok_or_else(broken)?;
    if import_state(portable, model.slots().len(), first)? != lazy.vector(at) {
        return Err(broken());
    }
    // Choose among several steps by label text, because label numbers differ between processes.
    let rank = |s: &(u32, LabelId, StateId)| (model.label_text(s.1), s.0);
    for state in &states[1..] {
        let vector = import_state(portable, model.slots().len(), state)?;
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
                export_state(portable, &state)?,
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
