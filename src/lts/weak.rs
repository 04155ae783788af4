//! Weak bisimulation (observation equivalence; Milner 1989), with or without divergence: partition
//! and quotient. Divergence-preserving means: of equivalent states either both or neither have an
//! infinite tau path within their class.
//!
//! Works on the quotient by branching bisimulation, with or without divergence, which is finer and
//! has acyclic tau steps, except for a loop at each state that diverges;
//! [`super::levels`] refines it. Signatures are built bottom-up along tau, so the saturated
//! transition relation is never stored, only distinct signatures. The quotient is the smallest one:
//! a transition that follows from others through tau steps is dropped (on an acyclic tau relation
//! the rest is unique).
//!
//! Long paths of tau steps have sets with shared parts ([`super::shared_sets`]). A system of this
//! kind is partitioned in one pass from its ends ([`super::weak_classes`]).
//!
//! Cost: that of the signatures that change; a signature can have as many entries as there are
//! labels times states. With shared parts, that of the parts in which signatures of neighbours
//! differ.

use super::levels::Bisimulation;
use super::reduce::{Inert, Partition, branching, classes, divergent};
use super::shared_sets::{EMPTY, SharedMaps, SharedSet, SharedSets};
use super::signature::{Interner, SignatureEntry};
use super::tau::{LONG, components, in_breadth_first_order};
use super::weak_classes::from_ends;
use super::{Lts, levels};
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;

/// Computes weak bisimilarity of all states.
pub fn partition(lts: &Lts, divergence: bool, threads: usize) -> Partition {
    let (fine, tau) = branching(lts, divergence, threads);
    let loops = if divergence { divergent(&fine, &tau) } else { Vec::new() };
    let kind = if divergence { Bisimulation::DivergenceWeak } else { Bisimulation::Weak };
    let small = classes(lts, &fine, Inert::Drop, &loops);
    let found = if has_long_tau_paths(&small) { from_ends(&small) } else { None };
    let (coarse, blocks) = match found {
        Some(found) => found,
        None => {
            let found = levels::refine(&small, kind, None);
            (found.block_of, found.blocks)
        }
    };
    Partition::normal(fine.block_of.iter().map(|&b| coarse[b as usize]).collect(), blocks)
}

/// True if tau paths are so long that shared sets are smaller than lists. Tau is acyclic.
pub fn has_long_tau_paths(lts: &Lts) -> bool {
    let mut length = vec![0u64; lts.state_count()];
    for s in tau_order(lts) {
        let steps = tau_successors(lts, s);
        length[s as usize] = steps.map(|t| length[t.index()] + 1).max().unwrap_or(0);
    }
    length.iter().sum::<u64>() > LONG * length.len() as u64
}

/// Computes the smallest quotient of an LTS by weak bisimilarity; with `divergence`, a class that
/// diverges has a tau loop.
pub fn reduce(lts: &Lts, divergence: bool, threads: usize) -> Lts {
    let p = partition(lts, divergence, threads);
    let loops = if divergence { divergent(&p, &components(lts)) } else { Vec::new() };
    let small = classes(lts, &p, Inert::Drop, &loops);
    in_breadth_first_order(&without_redundant(&small))
}

/// Weak steps of all states.
enum Weak {
    Listed(ListedSteps),
    Shared(SharedSteps),
}

impl Weak {
    fn of(lts: &Lts) -> Self {
        if has_long_tau_paths(lts) {
            Weak::Shared(SharedSteps::of(lts))
        } else {
            Weak::Listed(weak_sets(lts))
        }
    }
    /// True if there is a weak step; for tau, also one without steps.
    fn has(&self, s: StateId, label: LabelId, t: StateId) -> bool {
        match self {
            Weak::Listed(ListedSteps { sets, of }) => {
                let entry = SignatureEntry::step(label, t.number());
                sets.get(of[s.index()]).binary_search(&entry).is_ok()
            }
            Weak::Shared(weak) => {
                let set = match label {
                    LabelId::TAU => weak.quiet[s.index()],
                    _ => weak.maps.get(weak.visible[s.index()], label),
                };
                weak.sets.contains(set, weak.place[t.index()])
            }
        }
    }
}

/// Weak steps as lists.
struct ListedSteps {
    /// Sets of `(label, state)`; the entries of tau, which come first, include the state itself.
    sets: Interner<SignatureEntry>,
    /// Number of the set of each state.
    of: Vec<u32>,
}

/// Weak steps as sets that share their parts. Members are places in [`SharedSteps::order`], so that
/// the greatest member of a set that is closed under tau is a state from which no other one leads
/// to it.
pub struct SharedSteps {
    /// Sets of states.
    pub sets: SharedSets,
    /// Maps from visible labels to sets.
    pub maps: SharedMaps,
    /// States, such that tau steps lead to earlier ones.
    pub order: Vec<u32>,
    /// Place of each state.
    pub place: Vec<u32>,
    /// States after tau steps, the state itself included.
    pub quiet: Vec<SharedSet>,
    /// By label: the states after tau steps, a step with the label, and tau steps.
    pub visible: Vec<SharedSet>,
}

impl SharedSteps {
    /// Computes the weak steps. Tau is acyclic.
    pub fn of(lts: &Lts) -> Self {
        let (mut sets, mut maps) = (SharedSets::default(), SharedMaps::default());
        let order = tau_order(lts);
        let mut place = vec![0u32; order.len()];
        let mut quiet = vec![EMPTY; order.len()];
        for (number, &s) in (0u32..).zip(&order) {
            place[s as usize] = number;
            let mut set = sets.single(number);
            for t in tau_successors(lts, s) {
                set = sets.union(set, quiet[t.index()]);
            }
            quiet[s as usize] = set;
        }
        let mut visible = vec![EMPTY; order.len()];
        for &s in &order {
            let mut map = EMPTY;
            for (label, t) in steps_but_loops(lts, s) {
                let more = match label {
                    LabelId::TAU => visible[t.index()],
                    _ => maps.single(label, quiet[t.index()]),
                };
                map = maps.union(map, more, &mut sets);
            }
            visible[s as usize] = map;
        }
        Self { sets, maps, order, place, quiet, visible }
    }
}

/// Orders states so that tau steps lead to earlier ones. Tau is acyclic.
fn tau_order(lts: &Lts) -> Vec<u32> {
    let tau = components(lts);
    let mut order = vec![0; lts.state_count()];
    for (s, &c) in tau.of.iter().enumerate() {
        order[c as usize] = narrow::index(s);
    }
    order
}

/// Returns the steps of a state, except a divergence.
fn steps_but_loops(lts: &Lts, s: u32) -> impl Iterator<Item = (LabelId, StateId)> + '_ {
    let state = StateId::of(s);
    lts.successors(state).filter(move |&(l, t)| l != LabelId::TAU || t != state)
}

/// Returns the states after a tau step of a state, except a divergence.
fn tau_successors(lts: &Lts, s: u32) -> impl Iterator<Item = StateId> + '_ {
    steps_but_loops(lts, s).filter(|(l, _)| *l == LabelId::TAU).map(|(_, t)| t)
}

/// Computes the weak steps of each state.
fn weak_sets(lts: &Lts) -> ListedSteps {
    let order = tau_order(lts);
    let mut closure: Interner<u32> = Interner::default();
    let mut closure_of = vec![0u32; order.len()];
    let mut reached: Vec<u32> = Vec::new();
    for &s in &order {
        reached.clear();
        reached.push(s);
        for (l, t) in steps_but_loops(lts, s) {
            if l == LabelId::TAU {
                reached.extend_from_slice(closure.get(closure_of[t.index()]));
            }
        }
        reached.sort_unstable();
        reached.dedup();
        closure_of[s as usize] = closure.intern(&reached);
    }
    let mut sets = Interner::default();
    let mut of = vec![0u32; order.len()];
    let mut set: Vec<SignatureEntry> = Vec::new();
    for &s in &order {
        set.clear();
        set.push(SignatureEntry::step(LabelId::TAU, s));
        for (l, t) in steps_but_loops(lts, s) {
            if l == LabelId::TAU {
                set.extend_from_slice(sets.get(of[t.index()]));
            } else {
                set.extend(
                    closure.get(closure_of[t.index()]).iter().map(|&b| SignatureEntry::step(l, b)),
                );
            }
        }
        set.sort_unstable();
        set.dedup();
        of[s as usize] = sets.intern(&set);
    }
    ListedSteps { sets, of }
}

/// Drops transitions `s -a-> t` with `s =tau*=> s' -a-> t' =tau*=> t` by another transition. Tau is
/// acyclic.
fn without_redundant(lts: &Lts) -> Lts {
    without_steps_of(lts, &Weak::of(lts))
}

/// Does the same with the weak steps of the system.
fn without_steps_of(lts: &Lts, weak: &Weak) -> Lts {
    let can = |s: StateId, l: LabelId, t: StateId| weak.has(s, l, t);
    let mut offsets = vec![0];
    let (mut labels, mut targets) = (Vec::new(), Vec::new());
    for s in 0..lts.state_count() {
        let s = StateId::new(s);
        for (l, t) in lts.successors(s) {
            let redundant = steps_but_loops(lts, s.number()).any(|(k, u)| {
                (k == l && u != t && can(u, LabelId::TAU, t))
                    || (l != LabelId::TAU && k == LabelId::TAU && can(u, l, t))
            });
            if !redundant {
                labels.push(l);
                targets.push(t);
            }
        }
        offsets.push(targets.len() as u64);
    }
    Lts { initial: lts.initial, offsets, labels, targets, table: lts.table.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Labels;
    use mu_base::random::Random;

    /// Returns the branching quotient of a random system without cycles.
    fn random_acyclic(random: &mut Random) -> Lts {
        let states = 2 + random.below(14);
        let edges: Vec<_> = (0..random.below(4 * states))
            .map(|_| {
                let from = random.below(states - 1);
                let to = from + 1 + random.below(states - 1 - from);
                let label = [0, 0, 0, 1, 2][random.below(5)];
                (StateId::new(from), LabelId::of(label), StateId::new(to))
            })
            .collect();
        let table = Labels { texts: ["tau", "a", "b"].map(String::from).into() };
        quotient(&Lts::from_edges(StateId::of(0), states, &edges, table), false)
    }

    fn quotient(lts: &Lts, divergence: bool) -> Lts {
        let (fine, tau) = branching(lts, divergence, 1);
        let loops = if divergence { divergent(&fine, &tau) } else { Vec::new() };
        classes(lts, &fine, Inert::Drop, &loops)
    }

    #[test]
    fn classes_from_the_ends_are_those_of_refinement() {
        let mut random = Random::new(11);
        let mut coarser = 0;
        for case in 0..4_000 {
            let lts = random_acyclic(&mut random);
            let (of, blocks) = from_ends(&lts).expect("no cycle");
            let levels = levels::refine(&lts, Bisimulation::Weak, None);
            let same = |of: &[u32], blocks| Partition::normal(of.to_vec(), blocks).block_of;
            assert_eq!(
                same(&of, blocks),
                same(&levels.block_of, levels.blocks),
                "case {case}: {lts:?}"
            );
            coarser += u32::from(blocks < lts.state_count());
        }
        assert!(coarser > 20, "{coarser}");
    }

    /// Includes cycles that are equivalent to a cycle that is reachable from them.
    #[test]
    fn classes_of_cyclic_systems_are_those_of_refinement() {
        let mut random = Random::new(13);
        let (mut coarser, mut cyclic) = (0, 0);
        for case in 0..8_000 {
            let states = 2 + random.below(10);
            let back = random.below(4);
            let edges: Vec<_> = (0..random.below(3 * states))
                .map(|_| {
                    let (from, to) = (random.below(states), random.below(states));
                    let forward = random.below(4) >= back;
                    let (from, to) =
                        if forward { (from.min(to), from.max(to)) } else { (from, to) };
                    let label = [0, 0, 0, 1, 2][random.below(5)];
                    (StateId::new(from), LabelId::of(label), StateId::new(to))
                })
                .collect();
            let table = Labels { texts: ["tau", "a", "b"].map(String::from).into() };
            let lts = Lts::from_edges(StateId::of(0), states, &edges, table);
            for (kind, divergence) in
                [(Bisimulation::Weak, false), (Bisimulation::DivergenceWeak, true)]
            {
                let lts = quotient(&lts, divergence);
                let (of, blocks) = from_ends(&lts).expect("few states");
                let levels = levels::refine(&lts, kind, None);
                let same = |of: &[u32], blocks| Partition::normal(of.to_vec(), blocks).block_of;
                assert_eq!(
                    same(&of, blocks),
                    same(&levels.block_of, levels.blocks),
                    "case {case}: {lts:?}"
                );
                coarser += u32::from(blocks < lts.state_count());
                cyclic += u32::from(edges.iter().any(|(s, _, t)| s.index() >= t.index()));
            }
        }
        assert!(coarser > 300 && cyclic > 3_000, "{coarser}, {cyclic}");
    }

    /// Builds chains with a cycle at the end, at each state, and around all of it.
    #[test]
    fn long_chains_with_cycles_are_reduced() {
        let chain = |states: usize, more: &[(usize, usize, usize)]| {
            let steps = (0..2 * (states - 1)).map(|i| (i / 2, i % 2, i / 2 + 1));
            let edges: Vec<_> = steps
                .chain(more.iter().copied())
                .map(|(s, l, t)| (StateId::new(s), LabelId::new(l), StateId::new(t)))
                .collect();
            let table = Labels { texts: ["tau", "a", "b"].map(String::from).into() };
            Lts::from_edges(StateId::of(0), states, &edges, table)
        };
        for lts in [chain(3_000, &[(2_999, 2, 2_999)]), chain(200, &[(199, 2, 0)])] {
            let states = lts.state_count();
            assert_eq!(reduce(&lts, false, 1).state_count(), states);
            assert_eq!(reduce(&lts, true, 1).state_count(), states);
        }
        // Every state can do `a` for ever.
        let loops: Vec<_> = (0..3_000).map(|s| (s, 1, s)).collect();
        assert_eq!(reduce(&chain(3_000, &loops), false, 1).state_count(), 1);
    }

    #[test]
    fn shared_steps_equal_listed_ones() {
        let mut random = Random::new(12);
        let mut dropped = 0;
        for case in 0..5_000 {
            let lts = random_acyclic(&mut random);
            let shared = without_steps_of(&lts, &Weak::Shared(SharedSteps::of(&lts)));
            assert_eq!(shared, without_steps_of(&lts, &Weak::Listed(weak_sets(&lts))), "{case}");
            dropped += u32::from(shared.targets.len() < lts.targets.len());
        }
        assert!(dropped > 1_000, "{dropped}");
    }

    /// The signatures of this chain have 10^7 entries.
    #[test]
    fn long_chains_are_reduced() {
        let states = 1_500;
        let edges: Vec<_> = (0..2 * (states - 1))
            .map(|i| (StateId::new(i / 2), LabelId::new(i % 2), StateId::new(i / 2 + 1)))
            .collect();
        let table = Labels { texts: ["tau", "a"].map(String::from).into() };
        let lts = Lts::from_edges(StateId::of(0), states, &edges, table);
        // No two states can do the same number of steps.
        assert_eq!(reduce(&lts, false, 1), lts);
        assert_eq!(reduce(&lts, true, 1), lts);
        let traces = crate::trace::determinise(&lts, true, 1);
        assert_eq!((traces.state_count(), traces.transition_count()), (states, states - 1));
    }
}
