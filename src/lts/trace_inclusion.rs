//! Inclusion of traces, weak or not: two states of a system -> a shortest trace of the first that
//! the second lacks.
//!
//! Search of pairs (state of the first, set of states of the second), dropping subsumed pairs (De
//! Wulf, Doyen, Henzinger, Raskin: "Antichains: a new algorithm for checking universality of finite
//! automata", CAV 2006). Breadth first, so the trace is a shortest one. Cost: exponential in the
//! second state's part of the system in the worst case. Invariant: the sets of a state form an
//! antichain.

use super::Lts;
use super::distinguish::Difference;
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Stop};
use std::collections::VecDeque;

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
pub(super) type IncludedPairs = AHashMap<StateId, Vec<Vec<StateId>>>;

/// Finds a trace of the first state that the second lacks. Skips pairs that earlier searches found
/// to be included, and adds those of this search.
pub(super) fn trace_excess(
    lts: &Lts,
    (a, b): (StateId, StateId),
    weak: bool,
    included: &mut IncludedPairs,
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
