//! Partitions and quotients by strong and branching bisimilarity: [`Lts`] -> the partition of its
//! states, or the smaller system. The table of all equivalences is [`super::equivalence`].
//!
//! - strong: signature refinement (`refine`).
//! - branching, with or without divergence: contraction of tau components ([`super::tau`]), then
//!   signature refinement, or on long paths of tau steps, along which it would compute signatures
//!   again and again, `bunches`. Divergence-preserving means: of equivalent states either
//!   both or neither have an infinite tau path within their class.
//!
//! A quotient contains the states reachable from the initial state, which is state 0; states are
//! numbered breadth first; parallel transitions are merged. Inert tau steps are dropped, under
//! branching bisimulation tau loops as well, while the quotient by divergence-preserving
//! branching bisimulation has a tau loop exactly at the states that diverge.

use super::refine::{Graph, refine};
use super::tau::{Components, Rows, components, edges, has_long_paths, in_breadth_first_order};
use super::{Lts, bunches};
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;

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
    pub fn same_class(&self, a: StateId, b: StateId) -> bool {
        self.block_of[a.index()] == self.block_of[b.index()]
    }
}

/// Computes the quotient by strong bisimilarity.
pub(super) fn strong_quotient(lts: &Lts, threads: usize) -> Lts {
    quotient(lts, &strong(lts, threads), Inert::Keep, &[])
}

/// Computes the quotient by branching bisimilarity; with `divergence`, a class that diverges has a
/// tau loop.
pub(super) fn branching_quotient(lts: &Lts, divergence: bool, threads: usize) -> Lts {
    let (p, tau) = branching(lts, divergence, threads);
    let loops = if divergence { divergent(&p, &tau) } else { Vec::new() };
    quotient(lts, &p, Inert::Drop, &loops)
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
pub(super) fn divergent(p: &Partition, tau: &Components) -> Vec<bool> {
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
    let (blocks, block_of) = with_contracted(lts, &tau, divergence, |graph| {
        if graph.tau.as_ref().is_some_and(has_long_paths) {
            bunches::refine(graph)
        } else {
            refine(graph, threads)
        }
    });
    let states = tau.of.iter().map(|&c| block_of[c as usize]).collect();
    (Partition::normal(states, blocks), tau)
}

/// Applies a function to the system of tau components.
fn with_contracted<R>(
    lts: &Lts,
    tau: &Components,
    divergence: bool,
    apply: impl FnOnce(&Graph) -> R,
) -> R {
    let (n, of) = (tau.count, &tau.of);
    let visible = Rows::build(n, || {
        edges(lts)
            .filter(|&(_, l, _)| l != LabelId::TAU)
            .map(|(s, l, t)| (of[s as usize], (l, StateId::of(of[t as usize]))))
    });
    let (labels, targets): (Vec<_>, Vec<_>) = visible.items.into_iter().unzip();
    let internal = Rows::build(n, || {
        edges(lts)
            .filter(|&(_, l, _)| l == LabelId::TAU)
            .map(|(s, _, t)| (of[s as usize], of[t as usize]))
            .filter(|(s, t)| s != t)
    });
    let divergent = if divergence { tau.divergent.as_slice() } else { &[] };
    apply(&Graph {
        offsets: &visible.offsets,
        labels: &labels,
        targets: &targets,
        tau: Some(internal),
        divergent,
    })
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
    let members = Rows::build(p.blocks, || {
        p.block_of.iter().enumerate().map(|(s, &b)| (b, narrow::index(s)))
    });
    let mut offsets = Vec::with_capacity(p.blocks + 1);
    offsets.push(0);
    let (mut labels, mut targets) = (Vec::new(), Vec::new());
    let mut row: Vec<(LabelId, StateId)> = Vec::new();
    for b in 0..narrow::index(p.blocks) {
        row.clear();
        let all = members.row(b);
        for &s in if inert == Inert::Keep { &all[..1] } else { all } {
            for (l, t) in lts.successors(StateId::of(s)) {
                let c = p.block_of[t.index()];
                if inert == Inert::Keep || l != LabelId::TAU || c != b {
                    row.push((l, StateId::of(c)));
                }
            }
        }
        if divergent.get(b as usize) == Some(&true) {
            row.push((LabelId::TAU, StateId::of(b)));
        }
        row.sort_unstable();
        row.dedup();
        labels.extend(row.iter().map(|e| e.0));
        targets.extend(row.iter().map(|e| e.1));
        offsets.push(targets.len() as u64);
    }
    Lts {
        initial: StateId::of(p.block_of[lts.initial.index()]),
        offsets,
        labels,
        targets,
        table: lts.table.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels::Bisimulation;
    use super::super::{Labels, naive};
    use super::*;
    use mu_base::random::Random;

    /// Returns both algorithms, with names in the order of first states.
    fn both_partitions(lts: &Lts, divergence: bool) -> [Partition; 2] {
        let tau = components(lts);
        with_contracted(lts, &tau, divergence, |graph| {
            [refine(graph, 1), bunches::refine(graph)].map(|(blocks, of)| {
                let states = tau.of.iter().map(|&c| of[c as usize]).collect();
                Partition::normal(states, blocks)
            })
        })
    }

    #[test]
    fn bunches_give_the_classes_of_the_definition() {
        let mut merged = 0;
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let states = 1 + random.below(9);
            let (edges, labels) = (random.below(3 * states), 1 + random.below(4));
            let lts = naive::random_lts(&mut random, states, edges, labels);
            for kind in [Bisimulation::Branching, Bisimulation::DivergenceBranching] {
                let wanted = naive::bisimulation(&lts, kind);
                let [_, found] = both_partitions(&lts, kind == Bisimulation::DivergenceBranching);
                for (s, row) in wanted.iter().enumerate() {
                    for (t, &same) in row.iter().enumerate() {
                        let (x, y) = (StateId::new(s), StateId::new(t));
                        assert_eq!(found.same_class(x, y), same, "seed {seed}, {kind:?}: {s}, {t}");
                    }
                }
                merged += usize::from(found.blocks < states);
            }
        }
        assert!(merged > 100, "{merged}");
    }

    #[test]
    fn bunches_give_the_classes_of_signatures() {
        let mut many = 0;
        for seed in 0..1_200 {
            let mut random = Random::new(seed);
            let most = *random.choose(&[12, 40, 150]);
            let states = 1 + random.below(most);
            let (edges, labels) = (random.below(3 * states), 1 + random.below(5));
            let mut list: Vec<_> = (0..edges)
                .map(|_| {
                    // Steps to near states, mostly forwards, for long paths of tau.
                    let from = random.below(states);
                    let to = if random.chance(5, 6) {
                        (from + random.below(4)).min(states - 1)
                    } else {
                        random.below(states)
                    };
                    let label = if random.chance(1, 2) { 0 } else { random.below(labels) };
                    (StateId::new(from), LabelId::new(label), StateId::new(to))
                })
                .collect();
            list.sort();
            let texts = (0..labels).map(|i| if i == 0 { "tau".into() } else { format!("a{i}") });
            let table = Labels { texts: texts.collect() };
            let lts = Lts::from_edges(StateId::of(0), states, &list, table);
            for divergence in [false, true] {
                let [signatures, found] = both_partitions(&lts, divergence);
                assert_eq!(found, signatures, "seed {seed}, divergence {divergence}");
                many += usize::from(1 < found.blocks && found.blocks < states);
            }
        }
        assert!(many > 500, "{many}");
    }

    /// A step of this chain changes the signatures of all states before it.
    #[test]
    fn a_chain_of_tau_and_visible_steps_is_split_state_by_state() {
        let states = 20_000;
        let edges: Vec<_> = (0..2 * (states - 1))
            .map(|i| (StateId::new(i / 2), LabelId::new(i % 2), StateId::new(i / 2 + 1)))
            .collect();
        let table = Labels { texts: ["tau", "a"].map(String::from).into() };
        let lts = Lts::from_edges(StateId::of(0), states, &edges, table);
        for divergence in [false, true] {
            assert_eq!(branching(&lts, divergence, 1).0.blocks, states);
        }
    }
}
