//! Probabilistic bisimilarity (Larsen and Skou; with nondeterminism as Segala defines it): quotient
//! and comparison.
//!
//! States are equivalent if they have the same labels to the same classes of distributions;
//! distributions if they give every class of states the same probability. Refinement by signatures,
//! in rounds, over states and distributions in turn, after Baier, Engelen and Majster-Cederbaum,
//! "Deciding bisimilarity and similarity for probabilistic processes" (2000); each round splits
//! every class at once. Cost: rounds times the outcomes of all distributions; the sums of
//! probabilities are exact. Invariant: classes are numbered by their first member, so the result
//! does not depend on hashing.

use crate::aut::from_edges;
use crate::{DistId, Distributions, ProbabilisticSystem};
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;
use mu_lts::Labels;
use num_rational::BigRational;

/// Name of the equivalence for options and reports, next to those of [`mu_lts::equivalence`].
pub const NAME: &str = "probabilistic";

/// Its name in full, for help texts.
pub const ABOUT: &str = "Probabilistic bisimulation, for probabilistic systems";

/// Classes of states and of distributions, by number.
struct Partition {
    state: Vec<u32>,
    dist: Vec<u32>,
    states: usize,
}

/// Numbers keys in the order of their first occurrence. Returns the numbers and their count.
fn number<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> (Vec<u32>, usize) {
    let mut known: AHashMap<K, u32> = AHashMap::new();
    let mut out = Vec::new();
    for key in keys {
        let next = narrow::index(known.len());
        out.push(*known.entry(key).or_insert(next));
    }
    (out, known.len())
}

/// Returns the probability that a distribution gives each class of states.
fn class_distribution(
    system: &ProbabilisticSystem,
    dist: DistId,
    class: &[u32],
) -> Vec<(u32, BigRational)> {
    let mut sums: Vec<(u32, BigRational)> = system
        .distributions
        .outcomes(dist)
        .map(|(s, weight)| (class[s.index()], weight.clone()))
        .collect();
    sums.sort_by_key(|s| s.0);
    let mut merged: Vec<(u32, BigRational)> = Vec::with_capacity(sums.len());
    for (class, weight) in sums {
        match merged.last_mut() {
            Some(last) if last.0 == class => last.1 += weight,
            _ => merged.push((class, weight)),
        }
    }
    merged
}

fn coarsest(system: &ProbabilisticSystem) -> Partition {
    let n = system.state_count();
    let mut partition =
        Partition { state: vec![0; n], dist: Vec::new(), states: usize::from(n > 0) };
    loop {
        let dists = (0..system.distributions.len())
            .map(|d| class_distribution(system, DistId::new(d), &partition.state));
        partition.dist = number(dists).0;
        let rows = (0..n).map(|s| {
            let mut row: Vec<(LabelId, u32)> = system
                .steps(StateId::new(s))
                .map(|(l, d)| (l, partition.dist[d.index()]))
                .collect();
            row.sort_unstable();
            row.dedup();
            (partition.state[s], row)
        });
        let (state, states) = number(rows);
        partition.state = state;
        if states == partition.states {
            return partition;
        }
        partition.states = states;
    }
}

/// Computes the quotient of the reachable part: one state for each class.
pub fn reduce(system: &ProbabilisticSystem) -> ProbabilisticSystem {
    let partition = coarsest(system);
    let mut representative = vec![None; partition.states];
    for (s, class) in partition.state.iter().enumerate() {
        representative[*class as usize].get_or_insert(StateId::new(s));
    }
    let mut number: Vec<Option<StateId>> = vec![None; partition.states];
    let mut order: Vec<u32> = Vec::new();
    let mut distributions = Distributions::default();
    let mut lift = |dist: DistId, order: &mut Vec<u32>| {
        let outcomes = class_distribution(system, dist, &partition.state);
        let outcomes: Vec<_> = (outcomes.into_iter())
            .map(|(class, weight)| {
                let state = *number[class as usize].get_or_insert_with(|| {
                    order.push(class);
                    StateId::new(order.len() - 1)
                });
                (state, weight)
            })
            .collect();
        distributions.intern(outcomes)
    };
    let initial = lift(system.initial, &mut order);
    let mut edges = Vec::new();
    let mut next = 0;
    while next < order.len() {
        let state = representative[order[next] as usize].expect("every class has a member");
        let mut row: Vec<(LabelId, DistId)> = Vec::new();
        for (label, dist) in system.steps(state) {
            let step = (label, lift(dist, &mut order));
            if !row.contains(&step) {
                row.push(step);
            }
        }
        edges.extend(row.into_iter().map(|(l, d)| (narrow::index(next), l, d)));
        next += 1;
    }
    from_edges(initial, order.len(), edges, distributions, system.table.clone())
}

/// True if two systems are bisimilar: their initial distributions give the classes of both together
/// the same probabilities.
pub fn bisimilar(a: &ProbabilisticSystem, b: &ProbabilisticSystem) -> bool {
    let mut texts = a.table.texts.clone();
    let mut known: AHashMap<String, LabelId> =
        texts.iter().enumerate().map(|(i, t)| (t.clone(), LabelId::new(i))).collect();
    let of_b: Vec<LabelId> = (b.table.texts.iter())
        .map(|text| {
            *known.entry(text.clone()).or_insert_with(|| {
                texts.push(text.clone());
                LabelId::new(texts.len() - 1)
            })
        })
        .collect();
    let shift = a.state_count();
    let mut distributions = a.distributions.clone();
    let moved: Vec<DistId> = (0..b.distributions.len())
        .map(|d| {
            let outcomes: Vec<_> = (b.distributions.outcomes(DistId::new(d)))
                .map(|(s, weight)| (StateId::new(s.index() + shift), weight.clone()))
                .collect();
            distributions.intern(outcomes)
        })
        .collect();
    let mut edges = Vec::with_capacity(a.step_count() + b.step_count());
    for s in 0..a.state_count() {
        edges.extend(a.steps(StateId::new(s)).map(|(l, d)| (narrow::index(s), l, d)));
    }
    for s in 0..b.state_count() {
        edges.extend(
            b.steps(StateId::new(s))
                .map(|(l, d)| (narrow::index(s + shift), of_b[l.index()], moved[d.index()])),
        );
    }
    let both =
        from_edges(a.initial, shift + b.state_count(), edges, distributions, Labels { texts });
    let partition = coarsest(&both);
    partition.dist[a.initial.index()] == partition.dist[moved[b.initial.index()].index()]
}
