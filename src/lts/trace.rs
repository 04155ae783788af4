//! Trace and weak trace equivalence by determinisation (Rabin and Scott 1959), then strong
//! bisimulation, which on deterministic systems is trace equivalence. All states accept: the traces
//! of a state are its finite sequences of labels (weak: without the taus).
//!
//! Works on the quotient by strong (weak: branching) bisimulation. On long paths of tau steps,
//! subsets share their parts (`shared_sets`): they are unions of a few sets of states after tau
//! steps. Cost: up to exponential in its states.

use super::Lts;
use super::reduce::{Inert, Partition, branching, classes, strong};
use super::shared_sets::{EMPTY, SharedSet};
use super::signature::Interner;
use super::weak::{SharedSteps, has_long_tau_paths};
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;

/// Computes trace equivalence of all states.
pub fn partition(lts: &Lts, weak: bool, threads: usize) -> Partition {
    let (fine, small) = prepare(lts, weak, threads);
    let roots: Vec<u32> = (0..narrow::index(small.state_count())).collect();
    let (det, of) = subsets(&small, weak, &roots);
    let p = strong(&det, threads);
    let names = fine.block_of.iter().map(|&b| p.block_of[of[b as usize] as usize]).collect();
    Partition::normal(names, p.blocks)
}

/// Returns a deterministic system with the same (weak) traces.
pub fn determinise(lts: &Lts, weak: bool, threads: usize) -> Lts {
    let (_, small) = prepare(lts, weak, threads);
    let (mut det, of) = subsets(&small, weak, &[small.initial.number()]);
    det.initial = StateId::of(of[0]);
    det
}

/// True if two states have the same (weak) traces; other states are not compared.
pub fn has_same_traces(lts: &Lts, a: StateId, b: StateId, weak: bool, threads: usize) -> bool {
    let (fine, small) = prepare(lts, weak, threads);
    let (det, of) = subsets(&small, weak, &[fine.block_of[a.index()], fine.block_of[b.index()]]);
    strong(&det, threads).same_class(StateId::of(of[0]), StateId::of(of[1]))
}

/// True if a system has this trace (`weak`: with taus in between). Follows the labels step by step,
/// as an independent check.
pub fn can(lts: &Lts, labels: &[String], weak: bool) -> bool {
    let close = |mut set: Vec<StateId>| {
        let mut seen: ahash::AHashSet<StateId> = set.iter().copied().collect();
        let mut next = 0;
        while weak && next < set.len() {
            set.extend(
                lts.successors(set[next])
                    .filter(|&(l, t)| l == LabelId::TAU && seen.insert(t))
                    .map(|(_, t)| t),
            );
            next += 1;
        }
        set
    };
    let mut set = close(vec![lts.initial]);
    for label in labels {
        let targets: ahash::AHashSet<StateId> = set
            .iter()
            .flat_map(|&s| lts.successors(s))
            .filter(|(l, _)| lts.table.texts[l.index()] == *label)
            .map(|(_, t)| t)
            .collect();
        set = close(targets.into_iter().collect());
    }
    !set.is_empty()
}

fn prepare(lts: &Lts, weak: bool, threads: usize) -> (Partition, Lts) {
    if weak {
        let (p, _) = branching(lts, false, threads);
        let small = classes(lts, &p, Inert::Drop, &[]);
        (p, small)
    } else {
        let p = strong(lts, threads);
        let small = classes(lts, &p, Inert::Keep, &[]);
        (p, small)
    }
}

/// Applies the subset construction to single states; returns also the subset of each of them. With
/// `weak`, subsets are closed under tau.
fn subsets(lts: &Lts, weak: bool, roots: &[u32]) -> (Lts, Vec<u32>) {
    if weak && has_long_tau_paths(lts) {
        shared_subsets(lts, roots)
    } else {
        listed_subsets(lts, weak, roots)
    }
}

fn listed_subsets(lts: &Lts, weak: bool, roots: &[u32]) -> (Lts, Vec<u32>) {
    let mut sets: Interner<u32> = Interner::default();
    let mut seen = vec![0u32; lts.state_count()];
    let mut stamp = 0;
    let mut close = |set: &mut Vec<u32>| {
        if weak {
            stamp += 1;
            for &s in set.iter() {
                seen[s as usize] = stamp;
            }
            let mut next = 0;
            while next < set.len() {
                for (l, t) in lts.successors(StateId::new(set[next] as usize)) {
                    if l == LabelId::TAU && seen[t.index()] != stamp {
                        seen[t.index()] = stamp;
                        set.push(t.number());
                    }
                }
                next += 1;
            }
            set.sort_unstable();
        }
    };
    let mut set = Vec::new();
    let of = roots
        .iter()
        .map(|&r| {
            set.clear();
            set.push(r);
            close(&mut set);
            sets.intern(&set)
        })
        .collect();
    let (mut offsets, mut labels, mut targets) = (vec![0], Vec::new(), Vec::new());
    let mut steps: Vec<(LabelId, StateId)> = Vec::new();
    let mut next = 0;
    while next < narrow::index(sets.len()) {
        steps.clear();
        for &s in sets.get(next) {
            steps.extend(
                lts.successors(StateId::new(s as usize))
                    .filter(|&(l, _)| !weak || l != LabelId::TAU),
            );
        }
        steps.sort_unstable();
        steps.dedup();
        for group in steps.chunk_by(|x, y| x.0 == y.0) {
            set.clear();
            set.extend(group.iter().map(|&(_, t)| t.number()));
            close(&mut set);
            labels.push(group[0].0);
            targets.push(StateId::of(sets.intern(&set)));
        }
        offsets.push(targets.len() as u64);
        next += 1;
    }
    (Lts { initial: StateId::of(0), offsets, labels, targets, table: lts.table.clone() }, of)
}

/// Does the same with `weak`, for long paths of tau steps.
fn shared_subsets(lts: &Lts, roots: &[u32]) -> (Lts, Vec<u32>) {
    let mut weak = SharedSteps::of(lts);
    let mut numbers: AHashMap<SharedSet, u32> = AHashMap::new();
    let mut subsets: Vec<SharedSet> = Vec::new();
    let mut number = |subsets: &mut Vec<SharedSet>, set: SharedSet| {
        *numbers.entry(set).or_insert_with(|| {
            subsets.push(set);
            narrow::index(subsets.len()) - 1
        })
    };
    let of = roots.iter().map(|&r| number(&mut subsets, weak.quiet[r as usize])).collect();
    let (mut offsets, mut labels, mut targets) = (vec![0], Vec::new(), Vec::new());
    let mut next = 0;
    while next < subsets.len() {
        let (mut rest, mut steps) = (subsets[next], EMPTY);
        while rest != EMPTY {
            // All states after its tau steps are in the subset.
            let state = weak.order[weak.sets.greatest(rest) as usize] as usize;
            steps = weak.maps.union(steps, weak.visible[state], &mut weak.sets);
            rest = weak.sets.difference(rest, weak.quiet[state]);
        }
        for (label, set) in weak.maps.entries(steps) {
            labels.push(label);
            targets.push(StateId::of(number(&mut subsets, set)));
        }
        offsets.push(targets.len() as u64);
        next += 1;
    }
    (Lts { initial: StateId::of(0), offsets, labels, targets, table: lts.table.clone() }, of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive::random_lts;
    use mu_base::random::Random;

    #[test]
    fn shared_subsets_equal_listed_ones() {
        let mut random = Random::new(13);
        for case in 0..5_000 {
            let (states, edges) = (1 + random.below(12), random.below(30));
            let lts = random_lts(&mut random, states, edges, 3);
            let (_, small) = prepare(&lts, true, 1);
            let roots: Vec<u32> = (0..narrow::index(small.state_count())).collect();
            for roots in [&roots[..], &[small.initial.number()]] {
                assert_eq!(
                    shared_subsets(&small, roots),
                    listed_subsets(&small, true, roots),
                    "case {case}"
                );
            }
        }
    }
}
