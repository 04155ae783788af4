//! Quotients of transition systems: [`Lts`] + [`Equivalence`] -> the partition of its states, or
//! the smaller system.
//!
//! - strong: signature refinement (`refine`).
//! - branching, with or without divergence: contraction of tau components ([`super::tau`]), then
//!   signature refinement. Divergence-preserving means: of equivalent states either both or neither
//!   have an infinite tau path within their class.
//! - weak: on the branching quotient, see `weak`. Trace, weak trace: determinisation, see
//!   [`super::trace`].
//!
//! A quotient contains the states reachable from the initial state, which is state 0; states are
//! numbered breadth first; parallel transitions are merged. Inert tau steps are dropped, under
//! branching and weak bisimulation tau loops as well, while the quotient by divergence-preserving
//! branching bisimulation has a tau loop exactly at the states that diverge.

use super::refine::{Graph, refine};
use super::tau::{Components, Rows, components, edges, in_breadth_first_order, reachable};
use super::{Lts, trace, weak};
use mu_base::ids::{LabelId, StateId};

/// Equivalence of states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Equivalence {
    /// Strong bisimulation.
    Strong,
    /// Branching bisimulation.
    Branching,
    /// Branching bisimulation that preserves divergence.
    DivergenceBranching,
    /// Weak bisimulation (observation equivalence).
    Weak,
    /// Equal traces; tau is an ordinary label.
    Trace,
    /// Equal traces without their taus.
    WeakTrace,
}

impl Equivalence {
    /// All equivalences, the finest first.
    pub const ALL: [Equivalence; 6] = [
        Equivalence::Strong,
        Equivalence::DivergenceBranching,
        Equivalence::Branching,
        Equivalence::Weak,
        Equivalence::Trace,
        Equivalence::WeakTrace,
    ];
    /// True if internal steps do not count as steps.
    pub fn abstracts(self) -> bool {
        !matches!(self, Equivalence::Strong | Equivalence::Trace)
    }
    /// Returns the name for options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Equivalence::Strong => "strong",
            Equivalence::Branching => "branching",
            Equivalence::DivergenceBranching => "divergence-branching",
            Equivalence::Weak => "weak",
            Equivalence::Trace => "trace",
            Equivalence::WeakTrace => "weak-trace",
        }
    }
    /// Returns the equivalence of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|e| e.name() == name)
    }
}

/// Partition of states into classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Number of classes.
    pub blocks: usize,
    /// Class of each state; classes are numbered in the order of their first states.
    pub block_of: Vec<u32>,
}

impl Partition {
    /// Renumbers arbitrary names below `bound`.
    pub(super) fn normal(mut block_of: Vec<u32>, bound: usize) -> Self {
        let mut names: Vec<Option<u32>> = vec![None; bound];
        let mut blocks = 0;
        for b in &mut block_of {
            *b = *names[*b as usize].get_or_insert_with(|| {
                blocks += 1;
                blocks - 1
            });
        }
        Self { blocks: blocks as usize, block_of }
    }
    /// True if two states are in one class.
    pub fn same(&self, a: StateId, b: StateId) -> bool {
        self.block_of[a.index()] == self.block_of[b.index()]
    }
}

/// Computes the classes of all states, unreachable ones included.
pub fn partition(lts: &Lts, equivalence: Equivalence, threads: usize) -> Partition {
    match equivalence {
        Equivalence::Strong => strong(lts, threads),
        Equivalence::Branching => branching(lts, false, threads).0,
        Equivalence::DivergenceBranching => branching(lts, true, threads).0,
        Equivalence::Weak => weak::partition(lts, threads),
        Equivalence::Trace => trace::partition(lts, false, threads),
        Equivalence::WeakTrace => trace::partition(lts, true, threads),
    }
}

/// Computes the quotient of the reachable part.
pub fn reduce(lts: &Lts, equivalence: Equivalence, threads: usize) -> Lts {
    let part = reachable(lts);
    let lts = part.as_ref().unwrap_or(lts);
    match equivalence {
        Equivalence::Strong => {
            let p = strong(lts, threads);
            quotient(lts, &p, Inert::Keep, &[])
        }
        Equivalence::Branching => {
            let (p, _) = branching(lts, false, threads);
            quotient(lts, &p, Inert::Drop, &[])
        }
        Equivalence::DivergenceBranching => {
            let (p, tau) = branching(lts, true, threads);
            quotient(lts, &p, Inert::Drop, &divergent(&p, &tau))
        }
        Equivalence::Weak => weak::reduce(lts, threads),
        Equivalence::Trace | Equivalence::WeakTrace => {
            let det = trace::determinise(lts, equivalence == Equivalence::WeakTrace, threads);
            let p = strong(&det, threads);
            quotient(&det, &p, Inert::Keep, &[])
        }
    }
}

/// Computes the classes of strong or divergence-preserving branching bisimilarity, and their
/// transition system: state `b` is class `b`, reachable or not.
pub fn by_classes(lts: &Lts, hidden: bool, threads: usize) -> (Lts, Partition) {
    if !hidden {
        let p = strong(lts, threads);
        return (classes(lts, &p, Inert::Keep, &[]), p);
    }
    let (p, tau) = branching(lts, true, threads);
    (classes(lts, &p, Inert::Drop, &divergent(&p, &tau)), p)
}

/// Returns the classes of states with infinite tau paths.
fn divergent(p: &Partition, tau: &Components) -> Vec<bool> {
    let mut divergent = vec![false; p.blocks];
    for (s, &b) in p.block_of.iter().enumerate() {
        divergent[b as usize] |= tau.divergent[tau.of[s] as usize];
    }
    divergent
}

/// Computes strong bisimilarity.
pub(super) fn strong(lts: &Lts, threads: usize) -> Partition {
    let graph = Graph {
        offsets: &lts.offsets,
        labels: &lts.labels,
        targets: &lts.targets,
        tau: None,
        divergent: &[],
    };
    let (blocks, block_of) = refine(&graph, threads);
    Partition::normal(block_of, blocks)
}

/// Computes branching bisimilarity, with the underlying tau components.
pub(super) fn branching(lts: &Lts, divergence: bool, threads: usize) -> (Partition, Components) {
    let tau = components(lts);
    let n = tau.count;
    let of = &tau.of;
    let visible = Rows::build(n, || {
        edges(lts)
            .filter(|&(_, l, _)| l != LabelId::TAU)
            .map(|(s, l, t)| (of[s as usize], (l, StateId(of[t as usize]))))
    });
    let (labels, targets): (Vec<_>, Vec<_>) = visible.items.into_iter().unzip();
    let internal = Rows::build(n, || {
        edges(lts)
            .filter(|&(_, l, _)| l == LabelId::TAU)
            .map(|(s, _, t)| (of[s as usize], of[t as usize]))
            .filter(|(s, t)| s != t)
    });
    let divergent = if divergence { tau.divergent.as_slice() } else { &[] };
    let graph = Graph {
        offsets: &visible.offsets,
        labels: &labels,
        targets: &targets,
        tau: Some(internal),
        divergent,
    };
    let (blocks, block_of) = refine(&graph, threads);
    let states = of.iter().map(|&c| block_of[c as usize]).collect();
    (Partition::normal(states, blocks), tau)
}

/// Treatment of tau steps within a class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Inert {
    /// They become loops. One member of a class represents all, as under strong bisimulation.
    Keep,
    /// They vanish.
    Drop,
}

/// Computes the reachable quotient in breadth-first order.
pub(super) fn quotient(lts: &Lts, p: &Partition, inert: Inert, divergent: &[bool]) -> Lts {
    in_breadth_first_order(&classes(lts, p, inert, divergent))
}

/// Computes the transitions between classes, merged and sorted; `divergent` classes get a tau loop.
/// State `b` is class `b`.
pub(super) fn classes(lts: &Lts, p: &Partition, inert: Inert, divergent: &[bool]) -> Lts {
    let members =
        Rows::build(p.blocks, || p.block_of.iter().enumerate().map(|(s, &b)| (b, s as u32)));
    let mut offsets = Vec::with_capacity(p.blocks + 1);
    offsets.push(0);
    let (mut labels, mut targets) = (Vec::new(), Vec::new());
    let mut row: Vec<(LabelId, StateId)> = Vec::new();
    for b in 0..p.blocks as u32 {
        row.clear();
        let all = members.row(b);
        for &s in if inert == Inert::Keep { &all[..1] } else { all } {
            for (l, t) in lts.successors(StateId(s)) {
                let c = p.block_of[t.index()];
                if inert == Inert::Keep || l != LabelId::TAU || c != b {
                    row.push((l, StateId(c)));
                }
            }
        }
        if divergent.get(b as usize) == Some(&true) {
            row.push((LabelId::TAU, StateId(b)));
        }
        row.sort_unstable();
        row.dedup();
        labels.extend(row.iter().map(|e| e.0));
        targets.extend(row.iter().map(|e| e.1));
        offsets.push(targets.len() as u64);
    }
    Lts {
        initial: StateId(p.block_of[lts.initial.index()]),
        offsets,
        labels,
        targets,
        table: lts.table.clone(),
    }
}
