//! The refinement preorders of transition systems, one row each in one table: name, comparison with
//! evidence of the excess, and the formulas that a refinement inherits.
//!
//! `compare --preorder`, its help, and `docs/language.md` list the rows, so a new preorder is a row
//! here and a file with its algorithm: `super::trace_inclusion`, `super::simulation`,
//! `super::failures`, `super::coupled`. All compare the quotients by an equivalence that
//! preserves them.

use super::Lts;
use super::compare::disjoint_union;
use super::coupled::coupled_excess;
use super::distinguish::Difference;
use super::equivalence::{Equivalence, Evidence, reduce};
use super::failures::{FailureKind, refusal_excess};
use super::simulation::simulation_excess;
use super::trace_inclusion::{IncludedPairs, trace_excess};
use mu_base::ids::StateId;
use mu_base::{Budget, Stop};
use std::fmt;
use std::hash::{Hash, Hasher};

/// Refinement preorder: a row of the table.
#[derive(Clone, Copy)]
pub struct Preorder(&'static PreorderRow);

/// Behaviour of the first state that the second lacks.
type Excess = fn(&Lts, (StateId, StateId), &Budget) -> Result<Option<Difference>, Stop>;

/// One preorder.
struct PreorderRow {
    name: &'static str,
    about: &'static str,
    preserves: &'static str,
    example: &'static str,
    abstracts: bool,
    evidence: Evidence,
    /// Equivalence with a quotient that is related to its system in both directions.
    finer: Equivalence,
    excess: Excess,
}

static TRACE: PreorderRow = PreorderRow {
    name: "trace",
    about: "Every trace of A is a trace of B",
    preserves: "`[R]false` for regular formulas `R`",
    example: "[true* . a . (!a)* . b]false",
    abstracts: false,
    evidence: Evidence::Trace,
    finer: Equivalence::STRONG,
    excess: |lts, pair, budget| trace_excess(lts, pair, false, &mut IncludedPairs::new(), budget),
};

static WEAK_TRACE: PreorderRow = PreorderRow {
    name: "weak-trace",
    about: "Every weak trace of A is a weak trace of B",
    preserves: "`[R]false` for regular formulas `R` with `tau*` before each step",
    example: "[(tau* . a)* . tau* . b]false",
    abstracts: true,
    evidence: Evidence::WeakTrace,
    finer: Equivalence::BRANCHING,
    excess: |lts, pair, budget| trace_excess(lts, pair, true, &mut IncludedPairs::new(), budget),
};

static SIMULATION: PreorderRow = PreorderRow {
    name: "simulation",
    about: "B simulates A",
    preserves: "formulas of boxes, `false`, `&&`, `||`, and fixed points",
    example: "[a]([b]false || [c]false)",
    abstracts: false,
    evidence: Evidence::Formula,
    finer: Equivalence::STRONG,
    excess: |lts, pair, budget| simulation_excess(lts, pair, false, budget),
};

static READY_SIMULATION: PreorderRow = PreorderRow {
    name: "ready-simulation",
    about: "B simulates A, and related states have the same initial labels",
    preserves: "the formulas of simulation, also with `<a>true` as a part",
    example: "[a](<b>true || [c]false)",
    abstracts: false,
    evidence: Evidence::Formula,
    finer: Equivalence::STRONG,
    excess: |lts, pair, budget| simulation_excess(lts, pair, true, budget),
};

static COUPLED_SIMULATION: PreorderRow = PreorderRow {
    name: "coupled-simulation",
    about: "B weakly simulates A, and after internal steps A simulates B in turn",
    preserves: "the formulas of simulation with `tau*` before and after each step",
    example: "[tau* . a . tau*]([tau* . b . tau*]false || [tau* . c . tau*]false)",
    abstracts: true,
    evidence: Evidence::Formula,
    finer: Equivalence::BRANCHING,
    excess: |lts, (a, b), budget| coupled_excess(lts, a, b, budget),
};

static FAILURES: PreorderRow = PreorderRow {
    name: "failures",
    about: "Each set of labels that A can refuse after a trace, B can refuse too",
    preserves: "`[R](<a>true || ...)`: after each run of `R`, one of these labels is possible",
    example: "[a](<b>true || <c>true)",
    abstracts: false,
    evidence: Evidence::Formula,
    finer: Equivalence::STRONG,
    excess: |lts, pair, budget| refusal_excess(lts, pair, FailureKind::Failures, budget),
};

static WEAK_FAILURES: PreorderRow = PreorderRow {
    name: "weak-failures",
    about: "As `failures`, for weak traces and stable states (without internal steps)",
    preserves: "the formulas of failures with `tau*` around each step of `R` and `<tau>true` as an \
                alternative",
    example: "[tau* . a . tau*](<tau>true || <b>true)",
    abstracts: true,
    evidence: Evidence::Formula,
    // A state that only diverges is not a state without tau.
    finer: Equivalence::DIVERGENCE_BRANCHING,
    excess: |lts, pair, budget| refusal_excess(lts, pair, FailureKind::WeakFailures, budget),
};

static FAILURES_DIVERGENCES: PreorderRow = PreorderRow {
    name: "failures-divergences",
    about: "As `weak-failures`, and A diverges only after traces with a divergence of B after a \
            part of them, where B allows everything",
    preserves: "the formulas of weak failures, with `mu X. [tau]X` (no divergence) at each state of \
                a run of `R`",
    example: "(mu X. [tau]X) && [tau* . a . tau*]((mu X. [tau]X) && (<tau>true || <b>true))",
    abstracts: true,
    evidence: Evidence::Formula,
    finer: Equivalence::DIVERGENCE_BRANCHING,
    excess: |lts, pair, budget| refusal_excess(lts, pair, FailureKind::FailuresDivergences, budget),
};

static IMPOSSIBLE_FUTURES: PreorderRow = PreorderRow {
    name: "impossible-futures",
    about: "Each set of futures that A can make impossible after a weak trace, B can make \
            impossible too",
    preserves: "`[R](<S>true || ...)`, where `R` and `S` have `tau*` around each step",
    example: "[tau* . a . tau*]<tau* . b . tau* . c>true",
    abstracts: true,
    evidence: Evidence::Formula,
    finer: Equivalence::BRANCHING,
    excess: |lts, pair, budget| refusal_excess(lts, pair, FailureKind::ImpossibleFutures, budget),
};

impl Preorder {
    /// Every trace of the first is a trace of the second.
    pub const TRACE: Self = Self(&TRACE);
    /// Every weak trace of the first is a weak trace of the second.
    pub const WEAK_TRACE: Self = Self(&WEAK_TRACE);
    /// The second simulates the first; tau is an ordinary label.
    pub const SIMULATION: Self = Self(&SIMULATION);
    /// Simulation between states that offer the same labels.
    pub const READY_SIMULATION: Self = Self(&READY_SIMULATION);
    /// The second simulates the first weakly, and after taus the first simulates it in turn.
    pub const COUPLED_SIMULATION: Self = Self(&COUPLED_SIMULATION);
    /// Every refusal of the first after a trace is a refusal of the second.
    pub const FAILURES: Self = Self(&FAILURES);
    /// The same for weak traces and states without tau.
    pub const WEAK_FAILURES: Self = Self(&WEAK_FAILURES);
    /// The same, and every divergence of the first is one of the second, after which the second
    /// allows everything.
    pub const FAILURES_DIVERGENCES: Self = Self(&FAILURES_DIVERGENCES);
    /// Every set of weak traces that the first can make impossible after a weak trace, the second
    /// can make impossible.
    pub const IMPOSSIBLE_FUTURES: Self = Self(&IMPOSSIBLE_FUTURES);
    /// The table.
    pub const ALL: [Self; 9] = [
        Self::TRACE,
        Self::WEAK_TRACE,
        Self::SIMULATION,
        Self::READY_SIMULATION,
        Self::COUPLED_SIMULATION,
        Self::FAILURES,
        Self::WEAK_FAILURES,
        Self::FAILURES_DIVERGENCES,
        Self::IMPOSSIBLE_FUTURES,
    ];

    /// Returns the name for options and reports.
    pub fn name(self) -> &'static str {
        self.0.name
    }
    /// Returns its meaning for systems A and B, for help texts.
    pub fn meaning(self) -> &'static str {
        self.0.about
    }
    /// Returns the formulas that hold in the first system if they hold in the second.
    pub fn preserves(self) -> &'static str {
        self.0.preserves
    }
    /// Returns one of these formulas, over the actions `a`, `b` and `c`.
    pub fn example(self) -> &'static str {
        self.0.example
    }
    /// True if internal steps do not count as steps.
    pub fn abstracts(self) -> bool {
        self.0.abstracts
    }
    /// Returns the kind of evidence of an excess.
    pub fn evidence(self) -> Evidence {
        self.0.evidence
    }
    /// Returns the preorder of a name; `None` if there is none.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }
}

impl PartialEq for Preorder {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Preorder {}

impl Hash for Preorder {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for Preorder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.0.name)
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
    let finer = preorder.0.finer;
    let (x, y) = (reduce(a, finer, threads), reduce(b, finer, threads));
    let (union, first, second) = disjoint_union(&x, &y);
    // Strongly bisimilar systems refine each other, and are found in less time.
    if Equivalence::STRONG.relates(&union, first, second, threads) {
        return Ok(None);
    }
    (preorder.0.excess)(&union, (first, second), budget)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive::random_lts;
    use crate::{aut, trace};
    use mu_base::ids::LabelId;
    use mu_base::random::Random;
    use std::collections::BTreeSet;

    fn read(text: &str) -> Lts {
        aut::read(text.as_bytes(), &Default::default()).unwrap()
    }

    /// Computes the greatest simulation from the definition.
    fn simulates(a: &Lts, b: &Lts) -> bool {
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
    fn includes_traces(a: &Lts, b: &Lts, weak: bool) -> bool {
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
        trace::has_same_traces(&both, StateId::new(n), second, weak, 1)
    }

    /// Returns the closure under taus, if taus do not count, otherwise the set itself.
    fn tau_closure(lts: &Lts, set: &BTreeSet<StateId>, weak: bool) -> BTreeSet<StateId> {
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

    fn successors(
        lts: &Lts,
        set: &BTreeSet<StateId>,
        label: LabelId,
        weak: bool,
    ) -> BTreeSet<StateId> {
        let next = set
            .iter()
            .flat_map(|s| lts.successors(*s))
            .filter(|x| x.0 == label)
            .map(|x| x.1)
            .collect();
        tau_closure(lts, &next, weak)
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
            tau_closure(&union, &BTreeSet::from([first]), weak),
            tau_closure(&union, &BTreeSet::from([second]), weak),
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
                let next = (successors(&union, &x, l, weak), successors(&union, &y, l, weak));
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

    /// Returns the states with infinite paths of taus.
    fn divergent(lts: &Lts) -> Vec<bool> {
        let mut alive = vec![true; lts.state_count()];
        loop {
            let next: Vec<bool> = (0..alive.len())
                .map(|s| {
                    let mut steps = lts.successors(StateId::new(s));
                    steps.any(|(l, t)| l == LabelId::TAU && alive[t.index()])
                })
                .collect();
            if next == alive {
                return alive;
            }
            alive = next;
        }
    }

    /// Compares failures and divergences.
    fn fails_or_diverges(a: &Lts, b: &Lts) -> bool {
        let (union, first, second) = disjoint_union(a, b);
        let divergent = divergent(&union);
        let diverges = |set: &BTreeSet<StateId>| set.iter().any(|s| divergent[s.index()]);
        let start = [first, second].map(|s| tau_closure(&union, &BTreeSet::from([s]), true));
        let (mut seen, mut open) = (BTreeSet::from([start.clone()]), vec![start]);
        while let Some([x, y]) = open.pop() {
            if diverges(&y) {
                continue;
            }
            let stable = |s: &&StateId| !labels_of(&union, **s).contains(&LabelId::TAU);
            let answered = |p: &StateId| {
                let own = labels_of(&union, *p);
                y.iter().filter(stable).any(|q| labels_of(&union, *q).is_subset(&own))
            };
            if diverges(&x) || !x.iter().filter(stable).all(answered) {
                return false;
            }
            for l in x.iter().flat_map(|s| labels_of(&union, *s)).filter(|l| *l != LabelId::TAU) {
                let next = [&x, &y].map(|set| successors(&union, set, l, true));
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        true
    }

    /// Compares sets of traces that become impossible.
    fn impossible(a: &Lts, b: &Lts) -> bool {
        is_matched(a, b, true, &|lts, p, q| {
            let at = |s| Lts { initial: s, ..lts.clone() };
            Some(includes_traces(&at(q), &at(p), true))
        })
    }

    /// Computes the greatest ready simulation, or coupled simulation, from the definition.
    fn is_related(a: &Lts, b: &Lts, coupled: bool) -> bool {
        let (union, first, second) = disjoint_union(a, b);
        let n = union.state_count();
        let weakly = |t: usize, l: LabelId| -> BTreeSet<StateId> {
            let all = tau_closure(&union, &BTreeSet::from([StateId::new(t)]), coupled);
            if coupled && l == LabelId::TAU { all } else { successors(&union, &all, l, coupled) }
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
        for _ in 0..200 {
            let (n, m) = (1 + random.below(6), 1 + random.below(6));
            let (e, f) = (random.below(2 * n + 1), random.below(2 * m + 2));
            let (a, b) = (random_lts(&mut random, n, e, 3), random_lts(&mut random, m, f, 3));
            for (preorder, expected) in [
                (Preorder::TRACE, includes_traces(&a, &b, false)),
                (Preorder::WEAK_TRACE, includes_traces(&a, &b, true)),
                (Preorder::SIMULATION, simulates(&a, &b)),
                (Preorder::READY_SIMULATION, is_related(&a, &b, false)),
                (Preorder::COUPLED_SIMULATION, is_related(&a, &b, true)),
                (Preorder::FAILURES, refuses(&a, &b, false)),
                (Preorder::WEAK_FAILURES, refuses(&a, &b, true)),
                (Preorder::FAILURES_DIVERGENCES, fails_or_diverges(&a, &b)),
                (Preorder::IMPOSSIBLE_FUTURES, impossible(&a, &b)),
            ] {
                let counts = figures.entry(preorder.name()).or_insert([0, 0]);
                counts[usize::from(expected)] += 1;
                let found = excess(&a, &b, preorder, 1, &budget).unwrap();
                assert_eq!(found.is_none(), expected, "{preorder:?}\n{a:?}\n{b:?}");
                if let Some(Difference::Trace { labels, .. }) = &found {
                    let weak = preorder.evidence() == Evidence::WeakTrace;
                    assert!(
                        trace::can(&a, labels, weak) && !trace::can(&b, labels, weak),
                        "{labels:?}\n{a:?}\n{b:?}"
                    );
                }
                if expected { yes += 1 } else { no += 1 }
            }
        }
        println!("{figures:?}");
        assert!(yes > 20 && no > 20, "{yes} {no}");
        assert!(
            figures.len() == Preorder::ALL.len()
                && figures.values().all(|[no, yes]| *no > 20 && *yes > 20),
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
        assert_eq!(excess(&early, &late, Preorder::SIMULATION, 1, &budget), Ok(None));
        assert_eq!(
            excess(&late, &early, Preorder::SIMULATION, 1, &budget),
            Ok(Some(Difference::Formula("<a>(<b>true && <c>true)".into())))
        );
        assert_eq!(excess(&late, &early, Preorder::TRACE, 1, &budget), Ok(None));
    }

    /// A system refines itself in every preorder, and is equivalent to itself: a chain of 4,000
    /// tau steps with an exit from each state, for which the games are quadratic.
    #[test]
    fn long_systems_refine_themselves() {
        let n = 4_000;
        let steps = (0..n).map(|i| format!("({i},tau,{})\n({i},b{},{n})\n", i + 1, i % 7));
        let text = format!("des (0,{},{})\n{}", 2 * n, n + 1, steps.collect::<String>());
        let lts = read(&text);
        for preorder in Preorder::ALL {
            let found = excess(&lts, &lts, preorder, 1, &Budget::default());
            assert!(matches!(found, Ok(None)), "{preorder:?}");
        }
        for equivalence in Equivalence::ALL {
            let found = crate::equivalence::distinguish(&lts, &lts, equivalence, 1);
            assert!(found.is_none(), "{equivalence:?}");
        }
    }
}
