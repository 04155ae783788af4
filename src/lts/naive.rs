//! Naive implementation of the equivalences by their definitions, as greatest fixed points over all
//! pairs: the oracle for the tests of the efficient algorithms.

use mu_base::narrow;
use std::collections::BTreeSet;

use super::equivalence::{Equivalence, equivalent, partition, reduce};
use super::levels::Bisimulation;
use super::{Labels, Lts};
use mu_base::ids::{LabelId, StateId};
use mu_base::random::Random;

/// Relation on states, as a matrix.
pub type Relation = Vec<Vec<bool>>;

/// Returns a random system over `labels` labels (0 is tau).
pub fn random_lts(random: &mut Random, states: usize, edges: usize, labels: usize) -> Lts {
    let texts =
        (0..labels).map(|i| if i == 0 { "tau".to_owned() } else { format!("a{i}") }).collect();
    let mut list: Vec<_> = (0..edges)
        .map(|_| {
            // Half of the steps are tau.
            let label = if random.chance(1, 2) { 0 } else { random.below(labels) };
            (
                StateId::new(random.below(states)),
                LabelId::new(label),
                StateId::new(random.below(states)),
            )
        })
        .collect();
    list.sort();
    Lts::from_edges(StateId::new(random.below(states)), states, &list, Labels { texts })
}

fn steps(lts: &Lts, s: usize) -> Vec<(LabelId, usize)> {
    lts.successors(StateId::new(s)).map(|(l, t)| (l, t.index())).collect()
}

/// Returns the states that a state reaches by taus, itself included.
fn closure(lts: &Lts, s: usize) -> BTreeSet<usize> {
    let mut set = BTreeSet::from([s]);
    let mut work = vec![s];
    while let Some(s) = work.pop() {
        for (l, t) in steps(lts, s) {
            if l == LabelId::TAU && set.insert(t) {
                work.push(t);
            }
        }
    }
    set
}

/// True if `s` has an infinite tau path through states related to it.
fn diverges(lts: &Lts, r: &Relation, s: usize) -> bool {
    let n = r.len();
    let mut alive: Vec<bool> = (0..n).map(|t| r[s][t]).collect();
    loop {
        let next: Vec<bool> = (0..n)
            .map(|t| alive[t] && steps(lts, t).iter().any(|&(l, u)| l == LabelId::TAU && alive[u]))
            .collect();
        if next == alive {
            return alive[s];
        }
        alive = next;
    }
}

/// True if `t` matches each step of `s`.
fn is_matched(lts: &Lts, kind: Bisimulation, r: &Relation, s: usize, t: usize) -> bool {
    steps(lts, s).into_iter().all(|(a, to)| match kind {
        Bisimulation::Strong => steps(lts, t).into_iter().any(|(b, u)| a == b && r[to][u]),
        Bisimulation::Branching | Bisimulation::DivergenceBranching => {
            (a == LabelId::TAU && r[to][t])
                || closure(lts, t)
                    .into_iter()
                    .any(|m| r[s][m] && steps(lts, m).into_iter().any(|(b, u)| a == b && r[to][u]))
        }
        _ if a == LabelId::TAU => closure(lts, t).into_iter().any(|u| r[to][u]),
        _ => closure(lts, t).into_iter().any(|m| {
            steps(lts, m)
                .into_iter()
                .any(|(b, u)| a == b && closure(lts, u).into_iter().any(|v| r[to][v]))
        }),
    })
}

fn traces_equal(lts: &Lts, s: usize, t: usize, weak: bool) -> bool {
    let close = |set: BTreeSet<usize>| {
        if weak { set.iter().flat_map(|&s| closure(lts, s)).collect() } else { set }
    };
    let after = |set: &BTreeSet<usize>, a: LabelId| -> BTreeSet<usize> {
        close(set.iter().flat_map(|&s| steps(lts, s)).filter(|x| x.0 == a).map(|x| x.1).collect())
    };
    let mut seen = BTreeSet::new();
    let mut work = vec![(close(BTreeSet::from([s])), close(BTreeSet::from([t])))];
    while let Some(pair) = work.pop() {
        if !seen.insert(pair.clone()) {
            continue;
        }
        for a in usize::from(weak)..lts.table.texts.len() {
            let (x, y) = (after(&pair.0, LabelId::new(a)), after(&pair.1, LabelId::new(a)));
            if x.is_empty() != y.is_empty() {
                return false;
            }
            if !x.is_empty() {
                work.push((x, y));
            }
        }
    }
    true
}

/// Computes equality of (weak) traces of all pairs of states.
pub fn trace_equivalence(lts: &Lts, weak: bool) -> Relation {
    let n = lts.state_count();
    (0..n).map(|s| (0..n).map(|t| traces_equal(lts, s, t, weak)).collect()).collect()
}

/// Computes a bisimulation as the greatest fixed point of its definition.
pub fn bisimulation(lts: &Lts, kind: Bisimulation) -> Relation {
    let n = lts.state_count();
    let mut r: Relation = vec![vec![true; n]; n];
    // Divergence within a class is defined only for an equivalence, so it is checked whenever the
    // rest is stable.
    let mut infinite = vec![false; n];
    loop {
        let next: Relation = (0..n)
            .map(|s| {
                let related = |t: usize| {
                    r[s][t]
                        && infinite[s] == infinite[t]
                        && is_matched(lts, kind, &r, s, t)
                        && is_matched(lts, kind, &r, t, s)
                };
                (0..n).map(related).collect()
            })
            .collect();
        let stable = next == r;
        r = next;
        if stable {
            let now: Vec<bool> = (0..n)
                .map(|s| {
                    let counts = matches!(
                        kind,
                        Bisimulation::DivergenceBranching | Bisimulation::DivergenceWeak
                    );
                    counts && diverges(lts, &r, s)
                })
                .collect();
            if now == infinite {
                return r;
            }
            infinite = now;
        }
    }
}

fn check(seed: u64) {
    let mut random = Random::new(seed);
    let states = 1 + random.below(8);
    let edges = random.below(3 * states);
    let labels = 1 + random.below(4);
    let lts = random_lts(&mut random, states, edges, labels);
    for e in Equivalence::ALL {
        let r = e.definition(&lts);
        let p = partition(&lts, e, 1);
        for (s, row) in r.iter().enumerate() {
            for (t, &wanted) in row.iter().enumerate() {
                assert_eq!(
                    p.same_class(StateId::new(s), StateId::new(t)),
                    wanted,
                    "seed {seed}, {}, states {s} and {t} of {lts:?}",
                    e.name()
                );
            }
        }
        let small = reduce(&lts, e, 1);
        assert_eq!(small.initial, StateId::of(0));
        assert!(
            equivalent(&lts, &small, e, 1),
            "seed {seed}, {}: not equivalent to its quotient {small:?}",
            e.name()
        );
        assert_eq!(
            partition(&small, e, 1).blocks,
            small.state_count(),
            "seed {seed}, {}: quotient not minimal",
            e.name()
        );
        assert_eq!(
            reduce(&small, e, 1),
            small,
            "seed {seed}, {}: quotient of the quotient",
            e.name()
        );
    }
}

#[test]
fn equivalences_match_their_definitions() {
    for seed in 0..600 {
        check(seed);
    }
}

/// Quotients have the fewest transitions: removing a transition of a small one changes its class.
#[test]
fn quotients_have_no_redundant_transition() {
    for seed in 0..600 {
        let mut random = Random::new(seed);
        let states = 1 + random.below(7);
        let edges = random.below(3 * states);
        let lts = random_lts(&mut random, states, edges, 3);
        for e in [
            Equivalence::BRANCHING,
            Equivalence::DIVERGENCE_BRANCHING,
            Equivalence::WEAK,
            Equivalence::DIVERGENCE_WEAK,
        ] {
            let small = reduce(&lts, e, 1);
            let edges: Vec<_> = super::tau::edges(&small)
                .map(|(s, l, t)| (StateId::of(s), l, StateId::of(t)))
                .collect();
            for skip in 0..edges.len() {
                let mut fewer = edges.clone();
                fewer.remove(skip);
                let fewer = Lts::from_edges(
                    small.initial,
                    small.state_count(),
                    &fewer,
                    small.table.clone(),
                );
                assert!(
                    !equivalent(&small, &fewer, e, 1),
                    "seed {seed}, {}: {small:?} can do without {:?}",
                    e.name(),
                    edges[skip]
                );
            }
        }
    }
}

/// Larger systems with much structure: copies of a small one, unfolded; threads and order of states
/// do not matter.
#[test]
fn copies_fold_back() {
    for seed in 0..2 {
        let mut random = Random::new(seed);
        let base = random_lts(&mut random, 60, 200, 4);
        let copies = 400;
        let edges: Vec<_> = (0..copies)
            .flat_map(|c| super::tau::edges(&base).map(move |(s, l, t)| (c, s, l, t)))
            .map(|(c, s, l, t)| {
                (
                    StateId::of(c * 60 + s),
                    l,
                    StateId::of(narrow::index(random.below(copies as usize)) * 60 + t),
                )
            })
            .collect();
        let big = Lts::from_edges(base.initial, 60 * copies as usize, &edges, base.table.clone());
        for e in [
            Equivalence::STRONG,
            Equivalence::BRANCHING,
            Equivalence::DIVERGENCE_BRANCHING,
            Equivalence::WEAK,
            Equivalence::DIVERGENCE_WEAK,
        ] {
            // Between copies a tau loop can become a long cycle, and the classes stay those of the
            // small system.
            assert_eq!(partition(&big, e, 1), partition(&big, e, 3), "seed {seed}");
            let (x, y) = (reduce(&base, e, 1), reduce(&big, e, 2));
            assert_eq!(
                (x.state_count(), x.transition_count()),
                (y.state_count(), y.transition_count()),
                "seed {seed}, {}",
                e.name()
            );
            assert!(equivalent(&base, &big, e, 2), "seed {seed}, {}", e.name());
        }
    }
}

#[test]
fn long_chains_are_split_in_linear_rounds() {
    let n = 100_000;
    for label in [0, 1] {
        let texts = vec!["tau".into(), "a".into(), "end".into()];
        let mut edges: Vec<_> =
            (0..n).map(|i| (StateId::of(i), LabelId::of(label), StateId::of(i + 1))).collect();
        edges.push((StateId::of(n), LabelId::of(2), StateId::of(n)));
        let lts = Lts::from_edges(StateId::of(0), n as usize + 1, &edges, Labels { texts });
        assert_eq!(reduce(&lts, Equivalence::STRONG, 1).state_count(), n as usize + 1);
        assert_eq!(
            reduce(&lts, Equivalence::BRANCHING, 1).state_count(),
            if label == 0 { 1 } else { n as usize + 1 }
        );
    }
}
