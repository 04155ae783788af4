//! Failures and impossible futures: comparison of the refusals of two systems after each trace.
//!
//! - Failures (Brookes, Hoare, Roscoe, "A theory of communicating sequential processes", 1984): if
//!   after a trace the first system can be in a state that enables no label of a set, so can the
//!   second. Weak: traces omit taus, and only states without tau refuse.
//! - Failures and divergences (Roscoe, "The theory and practice of concurrency", 1997): weak
//!   failures, and if after a trace the first system can diverge, so can the second, after this
//!   trace or a part of it from the start. After a divergence of the second all is allowed.
//! - Impossible futures (Voorhoeve and Mauw, "Impossible futures and determinism", 2001): the same,
//!   for sets of weak traces instead of labels.
//!
//! Each is decided on pairs (state of the first, set of all states of the second after the same
//! trace), dropping subsumed pairs, like inclusion of traces ([`super::trace_inclusion`]). A pair
//! is matched if one state of the set offers no more than the state of the first does. Cost:
//! exponential in the second system in the worst case; impossible futures need inclusions of traces
//! at each pair, which are cached. Invariant: a formula holds in the first system and not in the
//! second.

use super::Lts;
use super::distinguish::Difference;
use super::preorder::MAX_FORMULA;
use super::trace_inclusion::{IncludedPairs, closure, is_subset, trace_excess};
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Stop};
use std::collections::{BTreeSet, VecDeque};

/// Property compared after each trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FailureKind {
    Failures,
    WeakFailures,
    FailuresDivergences,
    ImpossibleFutures,
}

/// Pair with the path to it.
struct TraceNode {
    state: StateId,
    set: Vec<StateId>,
    from: Option<usize>,
    /// `None` for a tau that does not count.
    label: Option<LabelId>,
}

struct RefusalSearch<'a> {
    lts: &'a Lts,
    kind: FailureKind,
    budget: &'a Budget,
    /// Cache by two states: a weak trace of the first that the second lacks.
    inclusions: AHashMap<(StateId, StateId), Option<Vec<String>>>,
    /// Pairs with known inclusion of weak traces: one search serves all pairs that it visits.
    included: IncludedPairs,
}

/// Returns a refusal of state `a` after some trace that state `b` does not have; `None` if there is
/// none.
pub(super) fn refusal_excess(
    lts: &Lts,
    (a, b): (StateId, StateId),
    kind: FailureKind,
    budget: &Budget,
) -> Result<Option<Difference>, Stop> {
    RefusalSearch { lts, kind, budget, inclusions: AHashMap::new(), included: IncludedPairs::new() }
        .run(a, b)
}

impl RefusalSearch<'_> {
    fn weak(&self) -> bool {
        self.kind != FailureKind::Failures
    }

    fn run(mut self, a: StateId, b: StateId) -> Result<Option<Difference>, Stop> {
        let (lts, weak) = (self.lts, self.weak());
        let mut nodes =
            vec![TraceNode { state: a, set: closure(lts, vec![b], weak), from: None, label: None }];
        let mut queue = VecDeque::from([0usize]);
        let mut minimal: AHashMap<StateId, Vec<usize>> = AHashMap::new();
        let mut polls = 0u64;
        while let Some(at) = queue.pop_front() {
            polls += 1;
            if polls.is_multiple_of(64) {
                self.budget.check(nodes.len() as u64)?;
                if polls.is_multiple_of(1 << 14) {
                    self.budget.check_memory()?;
                }
            }
            let state = nodes[at].state;
            let antichain = minimal.entry(state).or_default();
            if antichain.iter().any(|&n| is_subset(&nodes[n].set, &nodes[at].set)) {
                continue;
            }
            antichain.retain(|&n| !is_subset(&nodes[at].set, &nodes[n].set));
            antichain.push(at);
            if self.kind == FailureKind::FailuresDivergences {
                if nodes[at].set.iter().any(|&s| self.diverges(s)) {
                    continue;
                }
                if self.diverges(state) {
                    return Ok(Some(self.formula(&nodes, at, None, "(nu X. <tau>X)")));
                }
            }
            if let Some(refused) = self.refusal_formula(state, &nodes[at].set)? {
                return Ok(Some(self.formula(&nodes, at, None, &refused)));
            }
            let mut row: Vec<(LabelId, StateId)> = lts.successors(state).collect();
            row.sort_unstable();
            for group in row.chunk_by(|x, y| x.0 == y.0) {
                let label = group[0].0;
                let silent = weak && label == LabelId::TAU;
                let set = if silent {
                    nodes[at].set.clone()
                } else {
                    let of = |&s: &StateId| {
                        lts.successors(s).filter(move |&(l, _)| l == label).map(|(_, t)| t)
                    };
                    closure(lts, nodes[at].set.iter().flat_map(of).collect(), weak)
                };
                if set.is_empty() {
                    return Ok(Some(self.formula(&nodes, at, Some(label), "true")));
                }
                for &(_, t) in group {
                    nodes.push(TraceNode {
                        state: t,
                        set: set.clone(),
                        from: Some(at),
                        label: Some(label).filter(|_| !silent),
                    });
                    queue.push_back(nodes.len() - 1);
                }
            }
        }
        Ok(None)
    }

    /// True if a state of a quotient diverges: it has a tau loop.
    fn diverges(&self, state: StateId) -> bool {
        self.lts.successors(state).any(|(l, t)| l == LabelId::TAU && t == state)
    }

    fn offered_labels(&self, state: StateId) -> BTreeSet<LabelId> {
        self.lts.successors(state).map(|(l, _)| l).collect()
    }

    /// Returns a formula that holds in the state and in none of the set, if no state of the set
    /// matches it.
    fn refusal_formula(&mut self, state: StateId, set: &[StateId]) -> Result<Option<String>, Stop> {
        let own = self.offered_labels(state);
        let mut parts = BTreeSet::new();
        match self.kind {
            FailureKind::WeakFailures | FailureKind::FailuresDivergences
                if own.contains(&LabelId::TAU) =>
            {
                return Ok(None);
            }
            FailureKind::Failures
            | FailureKind::WeakFailures
            | FailureKind::FailuresDivergences => {
                // If taus do not count, only a state without tau refuses. This conjunct is always
                // present: taus within a class of the quotient are invisible here.
                if self.weak() {
                    parts.insert(format!("[{}]false", self.lts.table.texts[LabelId::TAU.index()]));
                }
                for &q in set {
                    let more = self.offered_labels(q).into_iter().find(|l| !own.contains(l));
                    match more {
                        None => return Ok(None),
                        Some(label) => {
                            _ = parts
                                .insert(format!("[{}]false", self.lts.table.texts[label.index()]))
                        }
                    }
                }
            }
            FailureKind::ImpossibleFutures => {
                for &q in set {
                    match self.trace_difference(q, state)? {
                        None => return Ok(None),
                        Some(trace) => {
                            _ = parts.insert(format!("[{}]false", trace_formula(&trace, true)))
                        }
                    }
                }
            }
        }
        Ok(Some(format!("({})", parts.into_iter().collect::<Vec<_>>().join(" && "))))
    }

    /// Returns a weak trace of the first that the second lacks.
    fn trace_difference(
        &mut self,
        first: StateId,
        second: StateId,
    ) -> Result<Option<Vec<String>>, Stop> {
        if let Some(known) = self.inclusions.get(&(first, second)) {
            return Ok(known.clone());
        }
        let found =
            match trace_excess(self.lts, (first, second), true, &mut self.included, self.budget)? {
                Some(Difference::Trace { labels, .. }) => Some(labels),
                _ => None,
            };
        self.inclusions.insert((first, second), found.clone());
        Ok(found)
    }

    fn formula(
        &self,
        nodes: &[TraceNode],
        at: usize,
        last: Option<LabelId>,
        rest: &str,
    ) -> Difference {
        let text = |l: LabelId| self.lts.table.texts[l.index()].clone();
        let mut labels: Vec<String> = last.map(text).into_iter().collect();
        let mut place = Some(at);
        while let Some(n) = place {
            labels.extend(nodes[n].label.map(text));
            place = nodes[n].from;
        }
        labels.reverse();
        let text = match (labels.is_empty(), self.weak()) {
            (true, false) => rest.to_string(),
            (false, false) => labels.iter().map(|l| format!("<{l}>")).collect::<String>() + rest,
            (_, true) => format!("<{}>{rest}", trace_formula(&labels, last.is_some())),
        };
        if text.len() as u64 > MAX_FORMULA {
            Difference::TooLong
        } else {
            Difference::Formula(text)
        }
    }
}

/// Returns the regular formula of a weak trace; `exact`: it ends with the last label, not with the
/// taus after it.
fn trace_formula(labels: &[String], exact: bool) -> String {
    let mut text: String = labels.iter().map(|l| format!("tau* . {l} . ")).collect();
    if exact && !labels.is_empty() {
        text.truncate(text.len() - " . ".len());
    } else {
        text.push_str("tau*");
    }
    text
}
