//! Reduced expansion: omits the steps outside the stubborn set of [`super::stubborn`], unless the
//! proviso fails.
//!
//! In: a state's steps. Out: those of the chosen groups, and the labels of the others. A set that
//! postpones visible groups is used only if one of its steps leads to a later level; otherwise the
//! set that contains the visible groups is used. Cost: a copy of the state's steps. Invariant: a
//! state with steps retains at least one if deadlocks must be preserved, and a state without steps
//! has none.

use super::expander::{Expander, Halt, Successor};
use super::store::Store;
use super::stubborn::{Chooser, ReductionSavings, Stubborn};

impl<'m> Expander<'m> {
    /// Sets the partial-order reduction; `None` expands in full. See [`super::stubborn`].
    pub fn with_partial_order_reduction(mut self, stubborn: Option<&'m Stubborn<'m>>) -> Self {
        self.chooser = stubborn.map(Chooser::new);
        self
    }

    /// Disables partial-order reduction.
    pub fn in_full(&mut self) {
        self.chooser = None;
    }

    /// True if the last expansion left out steps.
    pub fn leaves_out(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// Returns the savings since the last call.
    pub fn take_savings(&mut self) -> ReductionSavings {
        self.chooser.as_mut().map(|c| std::mem::take(&mut c.saved)).unwrap_or_default()
    }

    /// Removes the steps of groups that are not chosen; stores them if the proviso may require them
    /// again.
    fn reduce(&mut self, store: &Store, key: u64, levels: bool, out: &mut Vec<Successor>) {
        self.left_out.clear();
        let Some(chooser) = &mut self.chooser else { return };
        chooser.begin();
        out.iter().for_each(|s| chooser.mark_enabled(s.group));
        if !out.is_empty() && chooser.choose(&store.vector(key), levels) {
            self.raw.clear();
            self.raw.extend_from_slice(out);
            self.leave_out(out);
        }
    }

    fn leave_out(&mut self, out: &mut Vec<Successor>) {
        let Self { chooser: Some(chooser), left_out, .. } = self else { return };
        left_out.clear();
        out.retain(|s| {
            let keeps = chooser.is_chosen(s.group);
            if !keeps {
                left_out.push(s.label);
            }
            keeps
        });
    }

    /// Computes the steps of a state, each label and target once. Targets are representatives if
    /// there are confluent groups. Steps with priority exclude others.
    pub fn successors(
        &mut self,
        store: &Store,
        key: u64,
        out: &mut Vec<Successor>,
    ) -> Result<(), Halt> {
        self.successors_by_level(store, key, None, out)
    }

    /// Computes [`Expander::successors`] with a test for targets at a later level: visible steps
    /// may be postponed if some step leads to such a target.
    pub fn successors_by_level(
        &mut self,
        store: &Store,
        key: u64,
        later: Option<&dyn Fn(u64) -> bool>,
        out: &mut Vec<Successor>,
    ) -> Result<(), Halt> {
        self.all_steps(store, key, out)?;
        self.reduce(store, key, later.is_some(), out);
        self.finish(store, out)?;
        if self.chooser.as_ref().is_some_and(|c| c.needs_proviso)
            && !later.is_some_and(|later| out.iter().any(|s| later(s.key)))
        {
            if let Some(chooser) = &mut self.chooser {
                chooser.fall_back();
            }
            std::mem::swap(&mut self.raw, out);
            self.leave_out(out);
            self.finish(store, out)?;
        }
        if let (Some(chooser), 1..) = (&mut self.chooser, self.left_out.len() as u64) {
            chooser.saved += ReductionSavings { states: 1, steps: self.left_out.len() as u64 };
        }
        Ok(())
    }
}
