//! A small model as a table of its reachable states, for tests that search one machine many times.
//!
//! Input: a model. Output: a model with one slot, the number of a state, and the same groups. Cost:
//! each state is evaluated once; later a step is a lookup.

use mu_base::Diagnostic;
use mu_base::ids::LabelId;
use mu_model::{Group, Model, Slot, SlotInfo, Steps, Worker};
use std::collections::HashMap;

/// A model as a table.
pub struct Table {
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
    labels: Vec<String>,
    /// The steps of each group in each state.
    steps: Vec<Vec<Vec<(LabelId, u32)>>>,
}

impl Table {
    /// Evaluates all reachable states of a model.
    pub fn of(model: &dyn Model) -> Table {
        let mut states = vec![model.initial()];
        let mut ids: HashMap<Vec<u32>, u32> = HashMap::from([(model.initial(), 0)]);
        let mut steps: Vec<Vec<Vec<(LabelId, u32)>>> = vec![Vec::new(); model.groups().len()];
        let mut worker = model.worker();
        let mut at = 0;
        while at < states.len() {
            for (g, group) in model.groups().iter().enumerate() {
                let state = states[at].clone();
                let mut found = Steps::default();
                if group.requires.iter().all(|(slot, value)| state[*slot as usize] == *value) {
                    let reads: Vec<u32> = group.reads.iter().map(|s| state[*s as usize]).collect();
                    worker.steps(g, &reads, &mut found).unwrap();
                }
                let width = group.writes.len();
                let mut row = Vec::new();
                for (i, &label) in found.labels.iter().enumerate() {
                    let mut next = state.clone();
                    let values = &found.values[i * width..(i + 1) * width];
                    group.writes.iter().zip(values).for_each(|(s, v)| next[*s as usize] = *v);
                    let id = *ids.entry(next.clone()).or_insert_with(|| {
                        states.push(next);
                        states.len() as u32 - 1
                    });
                    row.push((label, id));
                }
                steps[g].push(row);
            }
            at += 1;
        }
        let groups = model.groups().iter().map(|g| Group {
            requires: Vec::new(),
            reads: vec![0],
            tests: vec![0],
            writes: vec![0],
            ..g.clone()
        });
        Table {
            slots: vec![SlotInfo { name: "state".into(), component: 0, control: false }],
            groups: groups.collect(),
            labels: (0..model.label_count()).map(|l| model.label_text(LabelId::new(l))).collect(),
            steps,
        }
    }
}

impl Model for Table {
    fn slots(&self) -> &[SlotInfo] {
        &self.slots
    }
    fn groups(&self) -> &[Group] {
        &self.groups
    }
    fn initial(&self) -> Vec<u32> {
        vec![0]
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(TableWorker { table: self })
    }
    fn label_text(&self, label: LabelId) -> String {
        self.labels[label.index()].clone()
    }
    fn label_count(&self) -> usize {
        self.labels.len()
    }
    fn value_text(&self, _: Slot, value: u32) -> String {
        value.to_string()
    }
}

struct TableWorker<'t> {
    table: &'t Table,
}

impl Worker for TableWorker<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        for &(label, next) in &self.table.steps[group][reads[0] as usize] {
            out.labels.push(label);
            out.values.push(next);
        }
        Ok(())
    }
}
