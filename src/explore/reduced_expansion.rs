//! Expansion with steps left out: what [`super::stubborn`] chooses, taken back where the proviso
//! fails.
//!
//! In: a state's steps. Out: those of the groups that were chosen, and the labels of the others. A
//! set that puts visible groups off is kept only if a step of it leads to a later level; if none
//! does, the set is taken that holds them. Cost: a copy of the state's steps. Invariant: a state
//! without steps keeps having none, one with steps of which an end is to be kept keeps at least
//! one.

use super::expander::{Expander, Halt, Successor};
use super::store::Store;
use super::stubborn::{Chooser, ReductionSavings, Stubborn};

impl<'m> Expander<'m> {
    /// Steps are to be left out as far as that keeps what is asked for; see [`super::stubborn`].
    pub fn reduced(mut self, stubborn: Option<&'m Stubborn<'m>>) -> Self {
        self.chooser = stubborn.map(Chooser::new);
        self
    }

    /// No steps are left out from now on.
    pub fn in_full(&mut self) {
        self.chooser = None;
    }

    /// Whether the last expansion left out steps.
    pub fn leaves_out(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// What was left out since the last call.
    pub fn take_saved(&mut self) -> ReductionSavings {
        self.chooser.as_mut().map(|c| std::mem::take(&mut c.saved)).unwrap_or_default()
    }

    /// LeafLayout out the steps of groups that are not chosen; what is left out is kept if that may
    /// have to be taken back.
    fn reduce(&mut self, store: &Store, key: u64, levels: bool, out: &mut Vec<Successor>) {
        self.left_out.clear();
        let Some(chooser) = &mut self.chooser else { return };
        chooser.begin();
        out.iter().for_each(|s| chooser.has_steps(s.group));
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
            let keeps = chooser.keeps(s.group);
            if !keeps {
                left_out.push(s.label);
            }
            keeps
        });
    }

    /// Steps of a state, each label and target once; targets are representatives if there are
    /// confluent groups. Steps that come first are alone.
    pub fn successors(
        &mut self,
        store: &Store,
        key: u64,
        out: &mut Vec<Successor>,
    ) -> Result<(), Halt> {
        self.successors_by_level(store, key, None, out)
    }

    /// The same; with a test of keys, steps may be left out that are put off, if a step that is
    /// taken leads to a state that passes.
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
        if self.chooser.as_ref().is_some_and(|c| c.rests)
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
