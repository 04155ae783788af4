//! Refinement preorders: inclusion of the behaviour of one system in that of another, with evidence
//! of the excess otherwise.
//!
//! - Trace inclusion, weak or not: search of pairs (state of the first, set of states of the
//!   second), dropping subsumed pairs (De Wulf, Doyen, Henzinger, Raskin: "Antichains: a new
//!   algorithm for checking universality of finite automata", CAV 2006). Breadth first, so the
//!   trace is a shortest one. Cost: exponential in the second system in the worst case.
//! - Simulation: pairs of states on demand, refuted backwards by counters as in linear-time solving
//!   of boolean systems (Dowling and Gallier 1984). Cost: O(transitions of the one * transitions of
//!   the other). The formula follows the order of refutation, so it is finite; it has no negation,
//!   so a system that satisfies it is not simulated.
//! - Ready simulation: simulation between states that offer the same labels.
//! - Failures and impossible futures are in [`super::failures`], coupled simulation in
//!   [`super::coupled`].
//!
//! All run on the quotient by strong (weak traces: branching) bisimulation, which preserves them.

use std::collections::VecDeque;

use ahash::AHashMap;

use super::Lts;
use super::compare::disjoint_union;
use super::coupled::coupled_excess;
use super::distinguish::Difference;
use super::failures::{Kind, refusal_excess};
use super::reduce::{Equivalence, reduce};
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Stop};

/// Refinement preorder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Preorder {
    /// Every trace of the first is a trace of the second.
    Trace,
    /// Every weak trace of the first is a weak trace of the second.
    WeakTrace,
    /// The second simulates the first; tau is an ordinary label.
    Simulation,
    /// Simulation between states that offer the same labels.
    ReadySimulation,
    /// The second simulates the first weakly, and after taus the first simulates it in turn.
    CoupledSimulation,
    /// Every refusal of the first after a trace is a refusal of the second.
    Failures,
    /// The same for weak traces and states without tau.
    WeakFailures,
    /// Every set of weak traces that the first can make impossible after a weak trace, the second
    /// can make impossible.
    ImpossibleFutures,
}

impl Preorder {
    /// True if internal steps do not count as steps.
    pub fn abstracts(self) -> bool {
        !matches!(
            self,
            Preorder::Trace | Preorder::Simulation | Preorder::ReadySimulation | Preorder::Failures
        )
    }
    /// Returns the name for options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Preorder::Trace => "trace",
            Preorder::WeakTrace => "weak-trace",
            Preorder::Simulation => "simulation",
            Preorder::ReadySimulation => "ready-simulation",
            Preorder::CoupledSimulation => "coupled-simulation",
            Preorder::Failures => "failures",
            Preorder::WeakFailures => "weak-failures",
            Preorder::ImpossibleFutures => "impossible-futures",
        }
    }
}

/// Limit on the length of a formula in bytes; beyond it, [`Difference::TooLong`] is returned.
pub(super) const MAX_FORMULA: u64 = 1 << 20;

/// Returns behaviour of the first system that the second lacks; `None` if the first refines the
/// second.
pub fn excess(
    a: &Lts,
    b: &Lts,
    preorder: Preorder,
    threads: usize,
    budget: &Budget,
) -> Result<Option<Difference>, Stop> {
    let finer = match preorder {
        Preorder::WeakTrace | Preorder::CoupledSimulation | Preorder::ImpossibleFutures => {
            Equivalence::Branching
        }
        // A state that only diverges is not a state without tau.
        Preorder::WeakFailures => Equivalence::DivergenceBranching,
        Preorder::Trace | Preorder::Simulation | Preorder::ReadySimulation | Preorder::Failures => {
            Equivalence::Strong
        }
    };
    let (x, y) = (reduce(a, finer, threads), reduce(b, finer, threads));
    let (union, first, second) = disjoint_union(&x, &y);
    match preorder {
        Preorder::Trace | Preorder::WeakTrace => trace_excess(
            &union,
            (first, second),
            preorder == Preorder::WeakTrace,
            &mut Included::new(),
            budget,
        ),
        Preorder::Simulation | Preorder::ReadySimulation => {
            let ready = preorder == Preorder::ReadySimulation;
            Simulation { lts: &union, ready, pairs: Vec::new(), known: AHashMap::new() }
                .run(first, second, budget)
        }
        Preorder::CoupledSimulation => coupled_excess(&union, first, second, budget),
        Preorder::Failures => refusal_excess(&union, (first, second), Kind::Failures, budget),
        Preorder::WeakFailures => {
            refusal_excess(&union, (first, second), Kind::WeakFailures, budget)
        }
        Preorder::ImpossibleFutures => {
            refusal_excess(&union, (first, second), Kind::ImpossibleFutures, budget)
        }
    }
}

/// Pair with the path to it.
struct TraceNode {
    state: StateId,
    set: Vec<StateId>,
    /// Previous node, and the label between (`None` for a tau that does not count).
    from: Option<usize>,
    label: Option<LabelId>,
}

/// Returns all states that these reach by taus, if taus do not count; sorted.
pub(super) fn closure(lts: &Lts, mut set: Vec<StateId>, weak: bool) -> Vec<StateId> {
    if weak {
        let mut seen: ahash::AHashSet<StateId> = set.iter().copied().collect();
        let mut next = 0;
        while next < set.len() {
            for (l, t) in lts.successors(set[next]) {
                if l == LabelId::TAU && seen.insert(t) {
                    set.push(t);
                }
            }
            next += 1;
        }
    }
    set.sort_unstable();
    set.dedup();
    set
}

/// Included pairs of a state and a set of states that has all traces of the state: for each state
/// the minimal sets.
pub(super) type Included = AHashMap<StateId, Vec<Vec<StateId>>>;

/// Finds a trace of the first state that the second lacks. Skips pairs that earlier searches found
/// to be included, and adds those of this search.
pub(super) fn trace_excess(
    lts: &Lts,
    (a, b): (StateId, StateId),
    weak: bool,
    included: &mut Included,
    budget: &Budget,
) -> Result<Option<Difference>, Stop> {
    let close = |set: Vec<StateId>| closure(lts, set, weak);
    let mut nodes = vec![TraceNode { state: a, set: close(vec![b]), from: None, label: None }];
    let mut queue = VecDeque::from([0usize]);
    let mut minimal: AHashMap<StateId, Vec<usize>> = AHashMap::new();
    let mut polls = 0u64;
    while let Some(at) = queue.pop_front() {
        polls += 1;
        if polls.is_multiple_of(256) {
            budget.check(nodes.len() as u64)?;
            if polls.is_multiple_of(1 << 14) {
                budget.check_memory()?;
            }
        }
        let state = nodes[at].state;
        if included
            .get(&state)
            .is_some_and(|sets| sets.iter().any(|set| is_subset(set, &nodes[at].set)))
        {
            continue;
        }
        let antichain = minimal.entry(state).or_default();
        if antichain.iter().any(|&n| is_subset(&nodes[n].set, &nodes[at].set)) {
            continue;
        }
        antichain.retain(|&n| !is_subset(&nodes[at].set, &nodes[n].set));
        antichain.push(at);
        let mut row: Vec<(LabelId, StateId)> = lts.successors(state).collect();
        row.sort_unstable();
        for group in row.chunk_by(|x, y| x.0 == y.0) {
            let label = group[0].0;
            if weak && label == LabelId::TAU {
                for &(_, t) in group {
                    nodes.push(TraceNode {
                        state: t,
                        set: nodes[at].set.clone(),
                        from: Some(at),
                        label: None,
                    });
                    queue.push_front(nodes.len() - 1);
                }
                continue;
            }
            let targets = nodes[at]
                .set
                .iter()
                .flat_map(|&s| lts.successors(s))
                .filter(|&(l, _)| l == label)
                .map(|(_, t)| t)
                .collect();
            let set = close(targets);
            if set.is_empty() {
                let mut labels = vec![lts.table.texts[label.index()].clone()];
                let mut place = Some(at);
                while let Some(n) = place {
                    labels.extend(nodes[n].label.map(|l| lts.table.texts[l.index()].clone()));
                    place = nodes[n].from;
                }
                labels.reverse();
                return Ok(Some(Difference::Trace { labels, first: true }));
            }
            for &(_, t) in group {
                nodes.push(TraceNode {
                    state: t,
                    set: set.clone(),
                    from: Some(at),
                    label: Some(label),
                });
                queue.push_back(nodes.len() - 1);
            }
        }
    }
    for (state, antichain) in minimal {
        let known = included.entry(state).or_default();
        for at in antichain {
            let set = std::mem::take(&mut nodes[at].set);
            known.retain(|other| !is_subset(&set, other));
            known.push(set);
        }
    }
    Ok(None)
}

/// True if one sorted list is contained in another.
pub(super) fn is_subset(small: &[StateId], large: &[StateId]) -> bool {
    let mut rest = large.iter();
    small.len() <= large.len() && small.iter().all(|x| rest.any(|y| x == y))
}

/// Pair of states of which the second may simulate the first.
struct Pair {
    first: StateId,
    second: StateId,
    /// The move without a matching move of the second; without target, a label that the second
    /// offers and the first does not.
    refuted: Option<(LabelId, Option<StateId>)>,
    /// Number of remaining matches of each move.
    answers: Vec<(LabelId, StateId, u32)>,
    /// Moves of other pairs that this pair matches: pair and number of the move.
    serves: Vec<(u32, u32)>,
}

struct Simulation<'a> {
    lts: &'a Lts,
    /// True if states must offer the same labels.
    ready: bool,
    pairs: Vec<Pair>,
    known: AHashMap<(StateId, StateId), u32>,
}

impl Simulation<'_> {
    fn pair(&mut self, first: StateId, second: StateId) -> u32 {
        let pairs = &mut self.pairs;
        *self.known.entry((first, second)).or_insert_with(|| {
            pairs.push(Pair {
                first,
                second,
                refuted: None,
                answers: Vec::new(),
                serves: Vec::new(),
            });
            pairs.len() as u32 - 1
        })
    }

    fn run(mut self, a: StateId, b: StateId, budget: &Budget) -> Result<Option<Difference>, Stop> {
        self.pair(a, b);
        let mut next = 0;
        while next < self.pairs.len() && self.pairs[0].refuted.is_none() {
            if next.is_multiple_of(1024) {
                budget.check(next as u64)?;
                if next.is_multiple_of(1 << 16) {
                    budget.check_memory()?;
                }
            }
            self.expand(next as u32);
            next += 1;
        }
        if self.pairs[0].refuted.is_none() {
            return Ok(None);
        }
        if self.size(0, &mut AHashMap::new()) > MAX_FORMULA {
            return Ok(Some(Difference::TooLong));
        }
        Ok(Some(Difference::Formula(self.formula(0, &mut AHashMap::new()))))
    }

    fn expand(&mut self, p: u32) {
        let (s, t) = (self.pairs[p as usize].first, self.pairs[p as usize].second);
        let moves: Vec<(LabelId, StateId)> = self.lts.successors(s).collect();
        let more = self
            .lts
            .successors(t)
            .map(|(l, _)| l)
            .filter(|l| moves.iter().all(|m| m.0 != *l))
            .min();
        if let Some(label) = more.filter(|_| self.ready) {
            self.refute(p, (label, None));
            return;
        }
        for (i, &(label, to)) in moves.iter().enumerate() {
            let answers: Vec<StateId> =
                self.lts.successors(t).filter(|&(l, _)| l == label).map(|(_, u)| u).collect();
            let mut left = 0;
            for u in answers {
                let q = self.pair(to, u);
                if self.pairs[q as usize].refuted.is_none() {
                    left += 1;
                    self.pairs[q as usize].serves.push((p, i as u32));
                }
            }
            self.pairs[p as usize].answers.push((label, to, left));
            if left == 0 {
                self.refute(p, (label, Some(to)));
                return;
            }
        }
    }

    fn refute(&mut self, p: u32, by: (LabelId, Option<StateId>)) {
        let mut todo = vec![(p, by)];
        while let Some((p, by)) = todo.pop() {
            if self.pairs[p as usize].refuted.is_some() {
                continue;
            }
            self.pairs[p as usize].refuted = Some(by);
            for (q, i) in std::mem::take(&mut self.pairs[p as usize].serves) {
                let pair = &mut self.pairs[q as usize];
                // A pair that is refuted during its expansion has no later moves.
                let Some(answer) = pair.answers.get_mut(i as usize) else { continue };
                answer.2 -= 1;
                if answer.2 == 0 {
                    todo.push((q, (answer.0, Some(answer.1))));
                }
            }
        }
    }

    /// Returns the pairs behind the move that refutes a pair.
    fn behind(&self, p: u32) -> (LabelId, Vec<u32>) {
        let pair = &self.pairs[p as usize];
        let (label, to) = pair.refuted.unwrap_or((LabelId::TAU, Some(pair.first)));
        let Some(to) = to else { return (label, Vec::new()) };
        let mut behind: Vec<u32> = self
            .lts
            .successors(pair.second)
            .filter(|&(l, _)| l == label)
            .map(|(_, u)| self.known[&(to, u)])
            .collect();
        behind.sort_unstable();
        behind.dedup();
        (label, behind)
    }

    fn size(&self, p: u32, known: &mut AHashMap<u32, u64>) -> u64 {
        if let Some(&size) = known.get(&p) {
            return size;
        }
        let (label, behind) = self.behind(p);
        let mut size = self.lts.table.texts[label.index()].len() as u64 + 10;
        for q in behind {
            size =
                size.saturating_add(stacker::maybe_grow(64 << 10, 1 << 20, || self.size(q, known)));
        }
        known.insert(p, size);
        size
    }

    fn formula(&self, p: u32, known: &mut AHashMap<u32, String>) -> String {
        if let Some(text) = known.get(&p) {
            return text.clone();
        }
        let (label, behind) = self.behind(p);
        let mut parts: Vec<String> = behind
            .into_iter()
            .map(|q| stacker::maybe_grow(64 << 10, 1 << 20, || self.formula(q, known)))
            .collect();
        parts.sort();
        parts.dedup();
        let rest = match parts.len() {
            0 => "true".to_string(),
            1 => parts.swap_remove(0),
            _ => format!("({})", parts.join(" && ")),
        };
        let label = &self.lts.table.texts[label.index()];
        let text = match self.pairs[p as usize].refuted {
            Some((_, None)) => format!("[{label}]false"),
            _ => format!("<{label}>{rest}"),
        };
        known.insert(p, text.clone());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive::random_lts;
    use crate::{aut, trace};
    use mu_base::random::Random;
    use std::collections::BTreeSet;

    fn read(text: &str) -> Lts {
        aut::read(text.as_bytes(), &Default::default()).unwrap()
    }

    /// Computes the greatest simulation from the definition.
    fn simulated(a: &Lts, b: &Lts) -> bool {
        let label = |lts: &Lts, l: LabelId| lts.table.texts[l.index()].clone();
        let mut related = vec![vec![true; b.state_count()]; a.state_count()];
        loop {
            let mut changed = false;
            for s in 0..a.state_count() {
                for t in 0..b.state_count() {
                    let fine = a.successors(StateId::new(s)).all(|(l, s2)| {
                        b.successors(StateId::new(t)).any(|(k, t2)| {
                            label(a, l) == label(b, k) && related[s2.index()][t2.index()]
                        })
                    });
                    if related[s][t] && !fine {
                        related[s][t] = false;
                        changed = true;
                    }
                }
            }
            if !changed {
                return related[a.initial.index()][b.initial.index()];
            }
        }
    }

    /// Decides inclusion of traces by determinisation: the sum of both has the traces of the
    /// second.
    fn included(a: &Lts, b: &Lts, weak: bool) -> bool {
        let (union, first, second) = disjoint_union(a, b);
        let n = union.state_count();
        let mut edges: Vec<(StateId, LabelId, StateId)> = (0..n)
            .flat_map(|s| {
                union.successors(StateId::new(s)).map(move |(l, t)| (StateId::new(s), l, t))
            })
            .collect();
        for root in [first, second] {
            edges.extend(
                union.successors(root).map(|(l, t)| (StateId::new(n), l, t)).collect::<Vec<_>>(),
            );
        }
        let both = Lts::from_edges(second, n + 1, &edges, union.table.clone());
        trace::same(&both, StateId::new(n), second, weak, 1)
    }

    /// Returns the closure under taus, if taus do not count, otherwise the set itself.
    fn over(lts: &Lts, set: &BTreeSet<StateId>, weak: bool) -> BTreeSet<StateId> {
        let mut all = set.clone();
        loop {
            let more: BTreeSet<StateId> = all
                .iter()
                .flat_map(|s| lts.successors(*s))
                .filter(|x| x.0 == LabelId::TAU)
                .map(|x| x.1)
                .chain(all.clone())
                .collect();
            if !weak || more == all {
                return all;
            }
            all = more;
        }
    }

    fn after(lts: &Lts, set: &BTreeSet<StateId>, label: LabelId, weak: bool) -> BTreeSet<StateId> {
        let next = set
            .iter()
            .flat_map(|s| lts.successors(*s))
            .filter(|x| x.0 == label)
            .map(|x| x.1)
            .collect();
        over(lts, &next, weak)
    }

    fn labels_of(lts: &Lts, s: StateId) -> BTreeSet<LabelId> {
        lts.successors(s).map(|x| x.0).collect()
    }

    /// Compares sets of states on both sides: after each trace, each state of the first has a
    /// matching state of the second.
    fn is_matched(
        a: &Lts,
        b: &Lts,
        weak: bool,
        answers: &dyn Fn(&Lts, StateId, StateId) -> Option<bool>,
    ) -> bool {
        let (union, first, second) = disjoint_union(a, b);
        let start = (
            over(&union, &BTreeSet::from([first]), weak),
            over(&union, &BTreeSet::from([second]), weak),
        );
        let (mut seen, mut open) = (BTreeSet::from([start.clone()]), vec![start]);
        while let Some((x, y)) = open.pop() {
            // `None`: the first state makes no requirement.
            let fine = |p: StateId| {
                y.iter().any(|q| answers(&union, p, *q) == Some(true))
                    || y.iter().all(|q| answers(&union, p, *q).is_none())
            };
            if y.is_empty() || !x.iter().all(|p| fine(*p)) {
                return false;
            }
            let labels: BTreeSet<LabelId> = x
                .iter()
                .flat_map(|s| labels_of(&union, *s))
                .filter(|l| !weak || *l != LabelId::TAU)
                .collect();
            for l in labels {
                let next = (after(&union, &x, l, weak), after(&union, &y, l, weak));
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        true
    }

    /// Compares refusals; if `weak`, only those of states without tau.
    fn refuses(a: &Lts, b: &Lts, weak: bool) -> bool {
        is_matched(a, b, weak, &|lts, p, q| {
            let (own, other) = (labels_of(lts, p), labels_of(lts, q));
            (!weak || !own.contains(&LabelId::TAU)).then(|| other.is_subset(&own))
        })
    }

    /// Compares sets of traces that become impossible.
    fn impossible(a: &Lts, b: &Lts) -> bool {
        is_matched(a, b, true, &|lts, p, q| {
            let at = |s| Lts { initial: s, ..lts.clone() };
            Some(included(&at(q), &at(p), true))
        })
    }

    /// Computes the greatest ready simulation, or coupled simulation, from the definition.
    fn related(a: &Lts, b: &Lts, coupled: bool) -> bool {
        let (union, first, second) = disjoint_union(a, b);
        let n = union.state_count();
        let weakly = |t: usize, l: LabelId| -> BTreeSet<StateId> {
            let all = over(&union, &BTreeSet::from([StateId::new(t)]), coupled);
            if coupled && l == LabelId::TAU { all } else { after(&union, &all, l, coupled) }
        };
        let mut r = vec![vec![true; n]; n];
        loop {
            let mut next = r.clone();
            for s in 0..n {
                for t in 0..n {
                    let steps = union
                        .successors(StateId::new(s))
                        .all(|(l, to)| weakly(t, l).iter().any(|u| r[to.index()][u.index()]));
                    let more = if coupled {
                        weakly(t, LabelId::TAU).iter().any(|u| r[u.index()][s])
                    } else {
                        labels_of(&union, StateId::new(s)) == labels_of(&union, StateId::new(t))
                    };
                    next[s][t] = r[s][t] && steps && more;
                }
            }
            if next == r {
                return r[first.index()][second.index()];
            }
            r = next;
        }
    }

    #[test]
    fn agrees_with_definitions() {
        let seed = std::env::var("MU_CHECK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(21);
        println!("replay with MU_CHECK_SEED={seed}");
        let mut random = Random::new(seed);
        let budget = Budget::default();
        let (mut yes, mut no) = (0, 0);
        let mut figures = std::collections::BTreeMap::new();
        for _ in 0..600 {
            let (n, m) = (1 + random.below(6), 1 + random.below(6));
            let (e, f) = (random.below(2 * n + 1), random.below(2 * m + 2));
            let (a, b) = (random_lts(&mut random, n, e, 3), random_lts(&mut random, m, f, 3));
            for (preorder, expected) in [
                (Preorder::Trace, included(&a, &b, false)),
                (Preorder::WeakTrace, included(&a, &b, true)),
                (Preorder::Simulation, simulated(&a, &b)),
                (Preorder::ReadySimulation, related(&a, &b, false)),
                (Preorder::CoupledSimulation, related(&a, &b, true)),
                (Preorder::Failures, refuses(&a, &b, false)),
                (Preorder::WeakFailures, refuses(&a, &b, true)),
                (Preorder::ImpossibleFutures, impossible(&a, &b)),
            ] {
                let counts = figures.entry(preorder.name()).or_insert([0, 0]);
                counts[usize::from(expected)] += 1;
                let found = excess(&a, &b, preorder, 1, &budget).unwrap();
                assert_eq!(found.is_none(), expected, "{preorder:?}\n{a:?}\n{b:?}");
                if let Some(Difference::Trace { labels, .. }) = &found {
                    let weak = preorder == Preorder::WeakTrace;
                    assert!(
                        trace::can(&a, labels, weak) && !trace::can(&b, labels, weak),
                        "{labels:?}\n{a:?}\n{b:?}"
                    );
                }
                if expected { yes += 1 } else { no += 1 }
            }
        }
        println!("{figures:?}");
        assert!(yes > 50 && no > 50, "{yes} {no}");
        assert!(
            figures.len() == 8 && figures.values().all(|[no, yes]| *no > 50 && *yes > 50),
            "{figures:?}"
        );
    }

    #[test]
    fn the_classic_of_branching_time() {
        let (early, late) = (
            read("des (0, 4, 5)\n(0, a, 1)\n(0, a, 2)\n(1, b, 3)\n(2, c, 4)\n"),
            read("des (0, 3, 4)\n(0, a, 1)\n(1, b, 2)\n(1, c, 3)\n"),
        );
        let budget = Budget::default();
        assert_eq!(excess(&early, &late, Preorder::Simulation, 1, &budget), Ok(None));
        assert_eq!(
            excess(&late, &early, Preorder::Simulation, 1, &budget),
            Ok(Some(Difference::Formula("<a>(<b>true && <c>true)".into())))
        );
        assert_eq!(excess(&late, &early, Preorder::Trace, 1, &budget), Ok(None));
    }
}
