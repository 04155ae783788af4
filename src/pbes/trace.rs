//! Shortest evidence of a product search: breadth-first search over pairs (system state, formula
//! state) with parents.
//!
//! Runs only if a deciding pair is known to be reachable, so it terminates there; no longer path is
//! ever taken. Cost: memory for each pair at most as far from the start as the nearest deciding
//! one.

use super::automaton::{Automaton, FormulaState, ObligationSet};
use super::product::{ObligationKind, ProductAnalysis, local_value};
use super::transitions::LazyTransitions;
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, narrow};
use mu_evidence::Builder;
use mu_process::labels::ActionLabels;
use std::collections::VecDeque;

struct TracePair {
    state: StateId,
    q: FormulaState,
    parent: Option<u32>,
    label: Option<LabelId>,
    distance: u32,
}

/// A deciding pair, the length of the path to its decision, and the transitions that show the
/// decision.
struct Decision {
    length: u32,
    pair: u32,
    last: Vec<(LabelId, StateId)>,
}

/// Returns the shortest path to a deciding pair; `None` if a limit ends the search.
pub fn shortest(
    source: &mut LazyTransitions,
    labels: &dyn ActionLabels,
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    roots: &[FormulaState],
    budget: &Budget,
) -> Result<Option<Builder>, Diagnostic> {
    let mut pairs: Vec<TracePair> = Vec::new();
    let mut known: AHashMap<(StateId, FormulaState), u32> = AHashMap::new();
    let mut queue: VecDeque<u32> = VecDeque::new();
    let initial = source.initial();
    let mut transitions: Vec<(LabelId, StateId)> = Vec::new();
    let mut best: Option<Decision> = None;
    for q in roots {
        add(
            &mut pairs,
            &mut known,
            &mut queue,
            TracePair { state: initial, q: *q, parent: None, label: None, distance: 0 },
        );
    }
    let mut polls = 0u64;
    'search: while let Some(p) = queue.pop_front() {
        let TracePair { state, q, distance, .. } = pairs[p as usize];
        if best.as_ref().is_some_and(|b| b.length <= distance) {
            break;
        }
        if known[&(state, q)] != p {
            continue;
        }
        polls += 1;
        if polls.is_multiple_of(1024) && budget.check(0).is_err() {
            return Ok(None);
        }
        let node = automaton.node(q);
        source.successors(state, &mut transitions)?;
        if analysis.kinds.get(&node) == Some(&ObligationKind::Local) {
            let mut witnesses = Vec::new();
            if local_value(automaton, q, &transitions, labels, &mut witnesses)?
                != analysis.conjunctive
            {
                best = Some(Decision { length: distance, pair: p, last: witnesses });
                break 'search;
            }
            continue;
        }
        let here = automaton.obligations_here(q)?;
        if here == ObligationSet::Decided {
            best = Some(Decision { length: distance, pair: p, last: Vec::new() });
            break 'search;
        }
        for q in automaton.set(here).iter() {
            add(
                &mut pairs,
                &mut known,
                &mut queue,
                TracePair { state, q: *q, parent: Some(p), label: None, distance },
            );
        }
        for &(label, target) in &transitions {
            let step = automaton.step(q, label, labels)?;
            if step == ObligationSet::Decided {
                if best.is_none() {
                    best = Some(Decision {
                        length: distance + 1,
                        pair: p,
                        last: vec![(label, target)],
                    });
                }
                break;
            }
            for q in automaton.set(step).iter() {
                let pair = TracePair {
                    state: target,
                    q: *q,
                    parent: Some(p),
                    label: Some(label),
                    distance: distance + 1,
                };
                add(&mut pairs, &mut known, &mut queue, pair);
            }
        }
    }
    let Some(Decision { pair: mut at, last, .. }) = best else { return Ok(None) };
    // The path is unrolled: its positions are copies of the states.
    let mut path = Vec::new();
    let mut obligations = vec![pairs[at as usize].q];
    let end = (pairs[at as usize].state, pairs[at as usize].distance);
    while let Some(before) = pairs[at as usize].parent {
        let pair = &pairs[at as usize];
        let parent = &pairs[before as usize];
        obligations.push(parent.q);
        if let Some(label) = pair.label {
            path.push(((parent.state, parent.distance), label, (pair.state, pair.distance)));
        }
        at = before;
    }
    let mut builder = Builder::new((initial, 0));
    builder.values =
        automaton.deciding_values(!analysis.conjunctive, obligations.into_iter().rev());
    for (from, label, to) in path.into_iter().rev() {
        builder.step(from, label, to);
    }
    for (label, target) in last {
        builder.step(end, label, (target, end.1 + 1));
    }
    Ok(Some(builder))
}

/// Adds a pair unless it is known at the same or a smaller distance; obligations at the same
/// system state come first.
fn add(
    pairs: &mut Vec<TracePair>,
    known: &mut AHashMap<(StateId, FormulaState), u32>,
    queue: &mut VecDeque<u32>,
    pair: TracePair,
) {
    let key = (pair.state, pair.q);
    if known.get(&key).is_some_and(|p| pairs[*p as usize].distance <= pair.distance) {
        return;
    }
    let p = narrow::index(pairs.len());
    known.insert(key, p);
    if pair.label.is_none() && pair.parent.is_some() {
        queue.push_front(p)
    } else {
        queue.push_back(p)
    }
    pairs.push(pair);
}
