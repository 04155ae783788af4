//! Weak bisimulation (observation equivalence; Milner 1989): partition and quotient.
//!
//! Works on the quotient by branching bisimulation, which is finer and has acyclic tau steps;
//! [`super::levels`] refines it. Signatures are built bottom-up along tau, so the saturated
//! transition relation is never stored, only distinct signatures. The quotient is the smallest one:
//! a transition that follows from others through tau steps is dropped (on an acyclic tau relation
//! the rest is unique).
//!
//! Cost: that of the signatures that change; a signature can have as many entries as there are
//! labels times states.

use super::levels::Bisimulation;
use super::reduce::{Inert, Partition, branching, classes};
use super::signature::{Interner, SignatureEntry};
use super::tau::{components, in_breadth_first_order};
use super::{Lts, levels};
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;

/// Computes weak bisimilarity of all states.
pub fn partition(lts: &Lts, threads: usize) -> Partition {
    let (fine, _) = branching(lts, false, threads);
    let small = classes(lts, &fine, Inert::Drop, &[]);
    let coarse = levels::refine(&small, Bisimulation::Weak, None);
    Partition::normal(
        fine.block_of.iter().map(|&b| coarse.block_of[b as usize]).collect(),
        coarse.blocks,
    )
}

/// Computes the smallest quotient of an LTS by weak bisimilarity.
pub fn reduce(lts: &Lts, threads: usize) -> Lts {
    let p = partition(lts, threads);
    let small = classes(lts, &p, Inert::Drop, &[]);
    in_breadth_first_order(&without_redundant(&small))
}

/// Weak steps of all states.
struct Weak {
    /// Sets of `(label, state)`; the entries of tau, which come first, include the state itself.
    sets: Interner<SignatureEntry>,
    /// Number of the set of each state.
    of: Vec<u32>,
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

/// Computes the weak steps of each state.
fn weak_sets(lts: &Lts) -> Weak {
    let order = tau_order(lts);
    let mut closure: Interner<u32> = Interner::default();
    let mut closure_of = vec![0u32; order.len()];
    let mut reached: Vec<u32> = Vec::new();
    for &s in &order {
        reached.clear();
        reached.push(s);
        for (l, t) in lts.successors(StateId::of(s)) {
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
        for (l, t) in lts.successors(StateId::of(s)) {
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
    Weak { sets, of }
}

/// Drops transitions `s -a-> t` with `s =tau*=> s' -a-> t' =tau*=> t` by another transition. Tau is
/// acyclic.
fn without_redundant(lts: &Lts) -> Lts {
    let weak = weak_sets(lts);
    let can = |s: StateId, l: LabelId, t: StateId| {
        weak.sets
            .get(weak.of[s.index()])
            .binary_search(&SignatureEntry::step(l, t.number()))
            .is_ok()
    };
    let mut offsets = vec![0];
    let (mut labels, mut targets) = (Vec::new(), Vec::new());
    for s in 0..lts.state_count() {
        let s = StateId::new(s);
        for (l, t) in lts.successors(s) {
            let redundant = lts.successors(s).any(|(k, u)| {
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
