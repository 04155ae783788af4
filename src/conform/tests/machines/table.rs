//! A small model as a table of its reachable states, for tests that search one machine many times.
//!
//! Input: a model. Output: a model with one slot, the number of a state, and the same groups;
//! candidates for symmetries can be added. Cost: each state is evaluated once; later a step is a
//! lookup.

use mu_base::Diagnostic;
use mu_base::ids::LabelId;
use mu_model::{Group, Model, Slot, SlotInfo, Steps, Symmetry, Worker};
use std::collections::HashMap;

/// A model as a table.
pub struct Table {
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
    labels: Vec<String>,
    /// The steps of each group in each state.
    steps: Vec<Vec<Vec<(LabelId, u32)>>>,
    /// The states, as vectors of the model.
    states: Vec<Vec<u32>>,
    symmetries: Vec<Symmetry>,
    /// By symmetry and state: its image.
    images: Vec<Vec<Option<u32>>>,
    /// By symmetry and label: its image.
    label_images: Vec<Vec<Option<LabelId>>>,
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
            states,
            symmetries: Vec::new(),
            images: Vec::new(),
            label_images: Vec::new(),
        }
    }

    /// Adds a candidate for a symmetry: images of states and of labels. `points`: a permutation
    /// that identifies it.
    pub fn add_candidate(
        &mut self,
        points: Vec<u32>,
        state: &dyn Fn(&[u32]) -> Vec<u32>,
        label: &dyn Fn(&str) -> String,
    ) {
        let ids: HashMap<&Vec<u32>, u32> = self.states.iter().zip(0..).collect();
        self.images.push(self.states.iter().map(|s| ids.get(&state(s)).copied()).collect());
        let place = |text: String| self.labels.iter().position(|l| *l == text).map(LabelId::new);
        self.label_images.push(self.labels.iter().map(|l| place(label(l))).collect());
        let name = format!("{points:?}");
        self.symmetries.push(Symmetry { name, slots: vec![0], points });
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
    fn symmetries(&self) -> &[Symmetry] {
        &self.symmetries
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
    fn image(&mut self, symmetry: usize, _: Slot, value: u32) -> Result<Option<u32>, Diagnostic> {
        Ok(self.table.images[symmetry][value as usize])
    }
    fn image_label(
        &mut self,
        symmetry: usize,
        label: LabelId,
    ) -> Result<Option<LabelId>, Diagnostic> {
        Ok(self.table.label_images[symmetry][label.index()])
    }
}
