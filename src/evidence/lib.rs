//! Evidence for a verdict: the part of the transition system that shows it, and a checker that
//! trusts no solver.
//!
//! A counterexample (verdict false) or witness (true) is a set of valid steps from the initial
//! state such that the formula has the same value on the transition system of these steps alone. If
//! they form one path (possibly ending in a loop) it is a trace. Cf. Wesselink & Willemse:
//! "Evidence extraction from parameterised boolean equation systems", ARQNL 2018.
#![warn(missing_docs)]

pub mod checker;

use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;
use mu_lts::{Labels, Lts};
use mu_model::Model;
use mu_process::labels::{ActionLabels, MultiAction};
use std::sync::Arc;

/// A step that the model takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakenStep {
    /// The transition group that makes it.
    pub group: u32,
    /// Its label.
    pub label: LabelId,
    /// The state after it.
    pub state: Vec<u32>,
}

/// A step of the evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EvidenceStep {
    /// Index of the source in `Evidence::states`.
    pub from: u32,
    /// Its label.
    pub label: LabelId,
    /// Index of the target.
    pub to: u32,
    /// The steps of the model: one with this label, then the confluent steps that have priority
    /// (none without that reduction).
    pub taken: Vec<TakenStep>,
}

/// Evidence for a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The verdict.
    pub verdict: bool,
    /// State vectors; the first is the initial one.
    pub states: Vec<Vec<u32>>,
    /// Steps, ascending by source and label.
    pub steps: Vec<EvidenceStep>,
    /// Confluent steps from the model's initial vector to the first state (none without that
    /// reduction).
    pub before: Vec<TakenStep>,
    /// Quantified variables of the formula with the value for which the steps show the verdict.
    pub values: Vec<(String, String)>,
}

/// Evidence that is one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathEvidence {
    /// Indices of the steps, in order.
    pub steps: Vec<usize>,
    /// For a lasso: the number of steps before the state that the last step leads back to.
    pub back_to: Option<usize>,
}

impl Evidence {
    /// Returns the path, if the evidence is one.
    pub fn linear(&self) -> Option<PathEvidence> {
        let mut next: Vec<Option<usize>> = vec![None; self.states.len()];
        for (i, step) in self.steps.iter().enumerate() {
            if next[step.from as usize].replace(i).is_some() {
                return None;
            }
        }
        let mut position = vec![None; self.states.len()];
        let mut steps = Vec::new();
        let mut at = 0usize;
        position[at] = Some(0);
        while let Some(i) = next[at] {
            steps.push(i);
            at = self.steps[i].to as usize;
            if let Some(back) = position[at] {
                return (steps.len() == self.steps.len())
                    .then_some(PathEvidence { steps, back_to: Some(back) });
            }
            position[at] = Some(steps.len());
        }
        (steps.len() == self.steps.len()).then_some(PathEvidence { steps, back_to: None })
    }

    /// Returns the evidence as a transition system, with the model's label for each of its own.
    pub fn lts(&self, model: &dyn Model) -> (Lts, Vec<LabelId>) {
        let mut table = Labels::default();
        let mut behind = vec![LabelId::TAU];
        let mut known: AHashMap<LabelId, LabelId> =
            [(LabelId::TAU, LabelId::TAU)].into_iter().collect();
        let mut edges = Vec::new();
        for step in &self.steps {
            let label = *known.entry(step.label).or_insert_with(|| {
                table.texts.push(model.label_text(step.label));
                behind.push(step.label);
                LabelId::new(behind.len() - 1)
            });
            edges.push((StateId::of(step.from), label, StateId::of(step.to)));
        }
        (Lts::from_edges(StateId::of(0), self.states.len(), &edges, table), behind)
    }

    /// Returns a state's vector as text: `name=value` for each slot.
    pub fn state_text(&self, model: &dyn Model, state: usize) -> Vec<(String, String)> {
        let slots = model.slots();
        self.states[state]
            .iter()
            .enumerate()
            .map(|(i, v)| (slots[i].name.clone(), model.value_text(narrow::index(i), *v)))
            .collect()
    }
}

/// Multi-actions of a transition system with renumbered labels.
pub struct RenumberedLabels<'a> {
    /// The labels of the model.
    pub labels: &'a dyn ActionLabels,
    /// The model's label for each label.
    pub behind: &'a [LabelId],
}

impl ActionLabels for RenumberedLabels<'_> {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        self.labels.multi_action(self.behind[label.index()])
    }
}

/// A state of evidence under construction: a state of the source, and the number of its copy (a
/// trace is unrolled: each position is a copy).
pub type Copy = (StateId, u32);

/// Collects evidence from states and transitions given in any order.
#[derive(Default)]
pub struct Builder {
    index: AHashMap<Copy, u32>,
    order: Vec<Copy>,
    steps: Vec<(Copy, LabelId, Copy)>,
    /// Values of quantified variables, see [`Evidence::values`].
    pub values: Vec<(String, String)>,
}

impl Builder {
    /// Starts with the initial state.
    pub fn new(initial: Copy) -> Self {
        let mut b = Self::default();
        b.state(initial);
        b
    }
    fn state(&mut self, s: Copy) -> u32 {
        let order = &mut self.order;
        *self.index.entry(s).or_insert_with(|| {
            order.push(s);
            narrow::index(order.len()) - 1
        })
    }
    /// Adds a transition.
    pub fn step(&mut self, from: Copy, label: LabelId, to: Copy) {
        self.state(from);
        self.state(to);
        self.steps.push((from, label, to));
    }
    /// Iterates over the states in the order of their addition; the first is the initial one.
    pub fn states(&self) -> impl Iterator<Item = StateId> {
        self.order.iter().map(|s| s.0)
    }
    /// Completes the evidence: vectors, and the model's steps for each transition.
    pub fn finish(
        mut self,
        verdict: bool,
        before: Vec<TakenStep>,
        vector: &mut dyn FnMut(StateId) -> Vec<u32>,
        explain: &mut dyn FnMut(StateId, LabelId, StateId) -> Result<Vec<TakenStep>, Diagnostic>,
    ) -> Result<Evidence, Diagnostic> {
        self.steps.sort_unstable();
        self.steps.dedup();
        let mut steps = Vec::with_capacity(self.steps.len());
        for &(from, label, to) in &self.steps {
            steps.push(EvidenceStep {
                from: self.index[&from],
                label,
                to: self.index[&to],
                taken: explain(from.0, label, to.0)?,
            });
        }
        steps.sort_by_key(|s| (s.from, s.label, s.to));
        Ok(Evidence {
            verdict,
            states: self.order.iter().map(|s| vector(s.0)).collect(),
            steps,
            before,
            values: self.values,
        })
    }
}
