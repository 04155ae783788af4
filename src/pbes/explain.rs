//! Evidence from a solved game: the part of the system that the winner's strategy needs.
//!
//! Cost: linear in that part. Invariant: evidence is over states of the model, whatever the game
//! was played on; `mu_evidence` replays it.

use super::automaton::Automaton;
use super::instantiate::GameInstance;
use super::transitions::LazyTransitions;
use ahash::AHashSet;
use mu_base::Diagnostic;
use mu_evidence::{Builder, Evidence};

/// Collects the transitions that the winner's strategy needs from the initial state.
pub(super) fn game_evidence(
    instance: &GameInstance,
    value: bool,
    source: &LazyTransitions,
    automaton: &Automaton,
) -> Builder {
    let mut builder = Builder::new((source.initial(), 0));
    let mut seen = AHashSet::new();
    let mut queue = std::collections::VecDeque::from([0u32]);
    seen.insert(0u32);
    let mut order = Vec::new();
    while let Some(v) = queue.pop_front() {
        order.push(v);
        let (s, _) = instance.configurations[v as usize];
        if let Some(&(label, target)) = instance.deciding.get(&v) {
            builder.step((s, 0), label, (target, 0));
            continue;
        }
        let mut follow = Vec::new();
        if instance.arena.is_universal(v) != value {
            // The winner's own vertex: its choice (none if a rule decided it here).
            follow.extend(instance.arena.chosen_edge(v));
        } else {
            follow.extend(instance.arena.edges(v));
        }
        for edge in follow {
            if let Some(label) = edge.label {
                builder.step((s, 0), label, (instance.configurations[edge.to as usize].0, 0));
            }
            if seen.insert(edge.to) {
                queue.push_back(edge.to);
            }
        }
    }
    let obligations = |v: u32| instance.configurations[v as usize].1;
    builder.values = automaton.deciding_values(value, order.into_iter().filter_map(obligations));
    builder
}

/// Completes the evidence with the values of its states.
pub(super) fn finish(
    builder: Builder,
    verdict: bool,
    source: &LazyTransitions,
) -> Result<Evidence, Diagnostic> {
    let mut explainer = source.explainer();
    let before = explainer.initial()?;
    builder.finish(verdict, before, &mut |s| source.vector(s), &mut |from, label, to| {
        explainer.step(from, label, to)
    })
}
