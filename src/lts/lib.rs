//! Labelled transition systems in compressed sparse rows: files, reduction, comparison. Independent
//! of their origin.
#![warn(missing_docs)]

pub mod aterm;
pub mod aut;
pub mod behaviour;
pub mod binary;
mod bunches;
pub mod compare;
mod coupled;
mod declarations;
pub mod distinguish;
pub mod dot;
pub mod equivalence;
mod failures;
pub mod fsm;
pub mod info;
mod levels;
pub mod mcrl2;
#[cfg(test)]
mod measure;
#[cfg(test)]
mod naive;
pub mod preorder;
pub mod reduce;
mod refine;
pub mod relabel;
mod shared_sets;
mod signature;
mod simulation;
pub mod tau;
pub mod trace;
mod trace_inclusion;
pub mod typed;
mod weak;
mod weak_classes;

use mu_base::ids::{LabelId, StateId};

/// Label table: texts; index 0 is `tau`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// The texts by `LabelId`.
    pub texts: Vec<String>,
}

impl Default for Labels {
    fn default() -> Self {
        Self { texts: vec!["tau".into()] }
    }
}

/// Labelled transition system. Transitions of state `s` are `targets[offsets[s]..offsets[s + 1]]`
/// with their labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lts {
    /// Initial state.
    pub initial: StateId,
    /// `states + 1` offsets.
    pub offsets: Vec<u64>,
    /// Label of each transition.
    pub labels: Vec<LabelId>,
    /// Target of each transition.
    pub targets: Vec<StateId>,
    /// The label table.
    pub table: Labels,
}

impl Lts {
    /// Builds rows from an edge list `(source, label, target)`; O(states + edges). Preserves the
    /// order of edges within a state.
    pub fn from_edges(
        initial: StateId,
        states: usize,
        edges: &[(StateId, LabelId, StateId)],
        table: Labels,
    ) -> Self {
        let mut offsets = vec![0u64; states + 1];
        for e in edges {
            offsets[e.0.index() + 1] += 1;
        }
        for i in 0..states {
            offsets[i + 1] += offsets[i];
        }
        let mut fill: Vec<u64> = offsets[..states].to_vec();
        let mut labels = vec![LabelId::TAU; edges.len()];
        let mut targets = vec![StateId::of(0); edges.len()];
        for &(s, l, t) in edges {
            let at = fill[s.index()] as usize;
            fill[s.index()] += 1;
            labels[at] = l;
            targets[at] = t;
        }
        Self { initial, offsets, labels, targets, table }
    }
    /// Returns the number of states.
    pub fn state_count(&self) -> usize {
        self.offsets.len() - 1
    }
    /// Returns the number of transitions.
    pub fn transition_count(&self) -> usize {
        self.targets.len()
    }
    /// Iterates over the transitions of a state.
    pub fn successors(&self, state: StateId) -> impl Iterator<Item = (LabelId, StateId)> + '_ {
        let range = self.offsets[state.index()] as usize..self.offsets[state.index() + 1] as usize;
        self.labels[range.clone()].iter().copied().zip(self.targets[range].iter().copied())
    }
}
