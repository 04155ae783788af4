//! Internal steps: reachable part, strongly connected components by tau steps, and their
//! contraction.
//!
//! All states of a tau component are branching bisimilar (also with explicit divergence, as all of
//! them diverge), so the bisimulations that abstract from tau run on the contracted system, where
//! tau steps are acyclic.
//!
//! Cost: O(states + transitions). Invariant: a tau step leads to the same component or to one of a
//! smaller number.

use super::Lts;
use mu_base::components::Graph;
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;

/// Returns for each state whether it is reachable.
pub fn reachable_states(lts: &Lts) -> Vec<bool> {
    let mut reached = vec![false; lts.state_count()];
    breadth_first(lts).0.into_iter().for_each(|s| reached[s.index()] = true);
    reached
}

/// Returns the reachable part; `None` if all states are reachable.
pub fn reachable(lts: &Lts) -> Option<Lts> {
    let (order, number) = breadth_first(lts);
    (order.len() < lts.state_count()).then(|| renumber(lts, &order, &number))
}

/// Returns the reachable part with its states in breadth-first order, the initial one being 0, and
/// sorted transitions. Idempotent.
pub fn in_breadth_first_order(lts: &Lts) -> Lts {
    let (order, number) = breadth_first(lts);
    let mut lts = renumber(lts, &order, &number);
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

/// Returns the reachable states in breadth-first order, and the position of each one there (0 for
/// all others).
fn breadth_first(lts: &Lts) -> (Vec<StateId>, Vec<u32>) {
    let mut number = vec![0; lts.state_count()];
    let mut seen = vec![false; lts.state_count()];
    let mut order = vec![lts.initial];
    seen[lts.initial.index()] = true;
    let mut next = 0;
    while next < order.len() {
        for (_, t) in lts.successors(order[next]) {
            if !std::mem::replace(&mut seen[t.index()], true) {
                number[t.index()] = narrow::index(order.len());
                order.push(t);
            }
        }
        next += 1;
    }
    (order, number)
}

fn renumber(lts: &Lts, order: &[StateId], number: &[u32]) -> Lts {
    let mut offsets = Vec::with_capacity(order.len() + 1);
    offsets.push(0);
    let (mut labels, mut targets) = (Vec::new(), Vec::new());
    for &s in order {
        for (l, t) in lts.successors(s) {
            labels.push(l);
            targets.push(StateId::of(number[t.index()]));
        }
        offsets.push(targets.len() as u64);
    }
    Lts { initial: StateId::of(0), offsets, labels, targets, table: lts.table.clone() }
}

/// Components by tau steps.
pub struct Components {
    /// Number of components.
    pub count: usize,
    /// Component of each state.
    pub of: Vec<u32>,
    /// True for a component with a tau step within itself, so with an infinite tau path.
    pub divergent: Vec<bool>,
}

struct TauSteps<'a>(&'a Lts);

impl Graph for TauSteps<'_> {
    fn vertices(&self) -> usize {
        self.0.state_count()
    }
    fn edges(&self, state: u32) -> std::ops::Range<u64> {
        self.0.offsets[state as usize]..self.0.offsets[state as usize + 1]
    }
    fn target(&self, edge: u64) -> Option<u32> {
        (self.0.labels[edge as usize] == LabelId::TAU)
            .then(|| self.0.targets[edge as usize].number())
    }
}

/// Computes the strongly connected components of the tau steps.
pub fn components(lts: &Lts) -> Components {
    let found = mu_base::components::components(&TauSteps(lts));
    let mut of = vec![0; lts.state_count()];
    let mut divergent = Vec::with_capacity(found.count());
    for (id, part) in (0..).zip(found.iter()) {
        part.iter().for_each(|&s| of[s as usize] = id);
        let loops = |s: u32| {
            lts.successors(StateId::of(s)).any(|(l, t)| l == LabelId::TAU && t.number() == s)
        };
        divergent.push(part.len() > 1 || loops(part[0]));
    }
    Components { count: found.count(), of, divergent }
}

/// Mean length of tau paths from which on algorithms for long ones are used.
pub const LONG: u64 = 32;

/// True if tau paths are long. Each tau step leads to a smaller state.
pub fn has_long_paths(tau: &Rows<u32>) -> bool {
    let states = tau.offsets.len() - 1;
    let mut length = vec![0u64; states];
    for s in 0..states {
        let steps = tau.row(narrow::index(s)).iter();
        length[s] = steps.map(|&t| length[t as usize] + 1).max().unwrap_or(0);
    }
    length.iter().sum::<u64>() > LONG * states as u64
}

/// Targets (and labels, if any) of edges in rows by source.
#[derive(Default)]
pub struct Rows<T> {
    /// Number of sources plus one.
    pub offsets: Vec<u64>,
    /// The rows, one after the other.
    pub items: Vec<T>,
}

impl<T: Copy> Rows<T> {
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
        // Each row is filled from its end, so that afterwards `offsets` holds the starts. The first
        // item stands at each position until then.
        let mut items = edges().next().map_or_else(Vec::new, |(_, item)| vec![item; total]);
        for (s, item) in edges() {
            offsets[s as usize] -= 1;
            items[offsets[s as usize] as usize] = item;
        }
        Self { offsets, items }
    }
    /// Returns the row of a source.
    #[inline]
    pub fn row(&self, source: u32) -> &[T] {
        &self.items
            [self.offsets[source as usize] as usize..self.offsets[source as usize + 1] as usize]
    }
}

/// Returns all transitions of an LTS as `(source, label, target)`.
pub fn edges(lts: &Lts) -> impl Iterator<Item = (u32, LabelId, u32)> + '_ {
    (0..lts.state_count()).flat_map(move |s| {
        lts.successors(StateId::new(s)).map(move |(l, t)| (narrow::index(s), l, t.number()))
    })
}
