//! Explicit transition system as a model: one slot that holds the state's number, one group with
//! all transitions.
//!
//! Cost: none beyond the rows themselves. The same engines check a formula on a file and on a
//! specification.

use super::{Group, Model, SlotInfo, Steps, Worker};
use mu_base::ids::{LabelId, StateId};
use mu_base::{Diagnostic, Stage};
use mu_lts::Lts;
use std::sync::Arc;

/// Model of a stored transition system.
pub struct LtsModel {
    lts: Arc<Lts>,
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
}

impl LtsModel {
    /// Wraps a transition system.
    pub fn new(lts: Arc<Lts>) -> Self {
        let slots = vec![SlotInfo { name: "state".into(), component: 0, control: true }];
        let tau = lts.labels.iter().all(|l| *l == LabelId::TAU);
        let group = Group { tau, ..Group::new("step", Vec::new(), vec![0], vec![0]) };
        Self { lts, slots, groups: vec![group] }
    }
    /// Returns the transition system.
    pub fn lts(&self) -> &Arc<Lts> {
        &self.lts
    }
}

impl Model for LtsModel {
    fn slots(&self) -> &[SlotInfo] {
        &self.slots
    }
    fn groups(&self) -> &[Group] {
        &self.groups
    }
    fn initial(&self) -> Vec<u32> {
        vec![self.lts.initial.number()]
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(LtsWorker(&self.lts))
    }
    fn label_text(&self, label: LabelId) -> String {
        self.lts.table.texts[label.index()].clone()
    }
    fn label_count(&self) -> usize {
        self.lts.table.texts.len()
    }
    fn value_text(&self, _slot: u32, value: u32) -> String {
        value.to_string()
    }
}

struct LtsWorker<'a>(&'a Lts);

impl Worker for LtsWorker<'_> {
    fn steps(&mut self, _group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        let state = StateId::of(reads[0]);
        if state.index() >= self.0.state_count() {
            return Err(Diagnostic::new(
                Stage::Internal,
                format!("state {} is not in the transition system", state.number()),
            ));
        }
        for (label, target) in self.0.successors(state) {
            out.labels.push(label);
            out.values.push(target.number());
        }
        Ok(())
    }
}
