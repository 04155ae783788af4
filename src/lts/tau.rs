//! Internal steps: reachable part, strongly connected components by tau steps, and their contraction.
//!
//! All states of a tau component are branching bisimilar (also with explicit divergence, as all of them diverge), so the bisimulations
//! that abstract from tau run on the contracted system, whose tau steps are acyclic.
//!
//! Components: Tarjan, "Depth-first search and linear graph algorithms" (1972), with an explicit stack; O(states + transitions).
//! Invariant: components are numbered in the order of their completion, so a tau step leads to a smaller number.

use super::Lts;
use crate::base::ids::{LabelId, StateId};

/// The part that is reachable from the initial state. `None` if all states are.
pub fn reachable(lts: &Lts) -> Option<Lts> {
    let (order, number) = breadth_first(lts);
    (order.len() < lts.state_count()).then(|| renumbered(lts, &order, &number))
}

/// The reachable part with its states in breadth-first order, the initial one being 0, and sorted transitions. Does not change its own result.
pub fn in_breadth_first_order(lts: &Lts) -> Lts {
    let (order, number) = breadth_first(lts);
    let mut lts = renumbered(lts, &order, &number);
    let mut row: Vec<(LabelId, StateId)> = Vec::new();
    for s in 0..lts.state_count() {
        let range = lts.offsets[s] as usize..lts.offsets[s + 1] as usize;
        row.clear();
        row.extend(lts.successors(StateId::new(s)));
        row.sort_unstable();
        for (i, &(l, t)) in range.zip(&row) {
            (lts.labels[i], lts.targets[i]) = (l, t);
        }
    }
    lts
}

fn breadth_first(lts: &Lts) -> (Vec<StateId>, Vec<u32>) {
    let mut number = vec![u32::MAX; lts.state_count()];
    let mut order = vec![lts.initial];
    number[lts.initial.index()] = 0;
    let mut next = 0;
    while next < order.len() {
        for (_, t) in lts.successors(order[next]) {
            if number[t.index()] == u32::MAX {
                number[t.index()] = order.len() as u32;
                order.push(t);
            }
        }
        next += 1;
    }
    (order, number)
}

fn renumbered(lts: &Lts, order: &[StateId], number: &[u32]) -> Lts {
    let mut offsets = Vec::with_capacity(order.len() + 1);
    offsets.push(0);
    let (mut labels, mut targets) = (Vec::new(), Vec::new());
    for &s in order {
        for (l, t) in lts.successors(s) {
            labels.push(l);
            targets.push(StateId(number[t.index()]));
        }
        offsets.push(targets.len() as u64);
    }
    Lts { initial: StateId(0), offsets, labels, targets, table: lts.table.clone() }
}

/// Components by tau steps.
pub struct Components {
    /// How many there are.
    pub count: usize,
    /// The component of each state.
    pub of: Vec<u32>,
    /// Whether a component has a tau step within itself, that is, an infinite tau path.
    pub divergent: Vec<bool>,
}

/// The strongly connected components of the tau steps.
pub fn components(lts: &Lts) -> Components {
    const NEW: u32 = u32::MAX;
    let n = lts.state_count();
    let mut of = vec![NEW; n];
    let mut low = vec![NEW; n]; // depth-first number, then the lowest one reached
    let mut divergent = Vec::new();
    let mut open: Vec<u32> = Vec::new();
    let mut calls: Vec<(u32, u64, u32)> = Vec::new(); // state, next transition, own number
    let mut clock = 0u32;
    for root in 0..n {
        if low[root] != NEW {
            continue;
        }
        calls.push((root as u32, lts.offsets[root], clock));
        low[root] = clock;
        clock += 1;
        open.push(root as u32);
        while let Some(&mut (s, ref mut next, own)) = calls.last_mut() {
            let s = s as usize;
            if *next < lts.offsets[s + 1] {
                let i = *next as usize;
                *next += 1;
                if lts.labels[i] != LabelId::TAU {
                    continue;
                }
                let t = lts.targets[i].index();
                if low[t] == NEW {
                    low[t] = clock;
                    calls.push((t as u32, lts.offsets[t], clock));
                    clock += 1;
                    open.push(t as u32);
                } else if of[t] == NEW {
                    low[s] = low[s].min(low[t]);
                }
            } else {
                calls.pop();
                if low[s] == own {
                    let id = divergent.len() as u32;
                    let mut size = 0;
                    loop {
                        let t = open.pop().expect("a component's root is on the stack") as usize;
                        of[t] = id;
                        size += 1;
                        if t == s {
                            break;
                        }
                    }
                    let looped = size > 1 || lts.successors(StateId::new(s)).any(|(l, t)| l == LabelId::TAU && t.index() == s);
                    divergent.push(looped);
                }
                if let Some(&(parent, ..)) = calls.last() {
                    let parent = parent as usize;
                    if of[s] == NEW {
                        low[parent] = low[parent].min(low[s]);
                    }
                }
            }
        }
    }
    Components { count: divergent.len(), of, divergent }
}

/// Targets (and labels, if any) of edges in rows by source.
#[derive(Default)]
pub struct Rows<T> {
    /// One more than there are sources.
    pub offsets: Vec<u64>,
    /// The rows, one after the other.
    pub items: Vec<T>,
}

impl<T: Copy + Default> Rows<T> {
    /// Sorts edges into rows by counting; the edges are produced twice, in the same order.
    pub fn build<I: Iterator<Item = (u32, T)>>(sources: usize, edges: impl Fn() -> I) -> Self {
        let mut offsets = vec![0u64; sources + 1];
        let mut total = 0;
        for (s, _) in edges() {
            offsets[s as usize] += 1;
            total += 1;
        }
        let mut sum = 0;
        for o in &mut offsets {
            sum += *o;
            *o = sum;
        }
        // Each row is filled from its end, so that afterwards `offsets` holds the starts.
        let mut items = vec![T::default(); total];
        for (s, item) in edges() {
            offsets[s as usize] -= 1;
            items[offsets[s as usize] as usize] = item;
        }
        Self { offsets, items }
    }
    /// The row of a source.
    #[inline]
    pub fn row(&self, source: u32) -> &[T] {
        &self.items[self.offsets[source as usize] as usize..self.offsets[source as usize + 1] as usize]
    }
}

/// All transitions of an LTS as `(source, label, target)`.
pub fn edges(lts: &Lts) -> impl Iterator<Item = (u32, LabelId, u32)> + '_ {
    (0..lts.state_count()).flat_map(move |s| lts.successors(StateId::new(s)).map(move |(l, t)| (s as u32, l, t.0)))
}
