//! The general route: the parity game of model and formula, instantiated from the initial configuration and solved on the way.
//!
//! A vertex is a configuration (system state, formula state). Vertices are expanded breadth-first; one that nobody wants any more is
//! skipped. Infinite models are fine if the undecided part of the game is finite.
//!
//! Cost: memory for each vertex and edge. Invariant: vertex 0 is the whole formula at the initial state.

use super::arena::{Arena, Edge, Truth};
use super::automaton::{Automaton, Demand, FormulaState};
use super::source::Source;
use crate::base::ids::{LabelId, StateId};
use crate::base::{Budget, Diagnostic, Stop};
use crate::process::linear::ActionLabels;
use crate::solve::Solver;
use ahash::AHashMap;
use std::collections::VecDeque;

/// A game with the configurations of its vertices.
pub struct Instance {
    /// The game.
    pub arena: Arena,
    /// Configurations; vertex 0 is the start and has none.
    pub configurations: Vec<(StateId, FormulaState)>,
    /// For a vertex that a transition decided by itself: that transition.
    pub deciding: AHashMap<u32, (LabelId, StateId)>,
}

/// How instantiation ended.
pub enum Outcome {
    /// With a verdict.
    Verdict(bool),
    /// Before one was found.
    Stopped(Stop),
}

/// First size at which the open game is solved.
const FIRST_SOLVING: usize = 1 << 14;

/// Instantiates until vertex 0 is decided.
pub fn instantiate(
    source: &mut Source,
    labels: &dyn ActionLabels,
    automaton: &mut Automaton,
    start: (bool, &[FormulaState]),
    solver: &dyn Solver,
    budget: &Budget,
) -> Result<(Instance, Outcome), Diagnostic> {
    let mut g = Instance { arena: Arena::default(), configurations: Vec::new(), deciding: AHashMap::new() };
    let mut vertices: AHashMap<(StateId, FormulaState), u32> = AHashMap::new();
    let initial = source.initial();
    let root = g.arena.add(start.0, 0);
    g.configurations.push((initial, FormulaState(u32::MAX)));
    let mut vertex = |g: &mut Instance, automaton: &Automaton, s: StateId, q: FormulaState| -> u32 {
        *vertices.entry((s, q)).or_insert_with(|| {
            g.configurations.push((s, q));
            g.arena.add(automaton.universal(q), automaton.rank(q))
        })
    };
    let edges: Vec<Edge> = start.1.iter().map(|q| Edge { to: vertex(&mut g, automaton, initial, *q), label: None }).collect();
    g.arena.expand(root, &edges);
    let mut queue: VecDeque<u32> = VecDeque::new();
    let mut queued: Vec<bool> = Vec::new();
    enqueue(&g.arena, &edges, &mut queue, &mut queued);
    let mut next_solving = FIRST_SOLVING;
    let mut transitions: Vec<(LabelId, StateId)> = Vec::new();
    let mut edges: Vec<Edge> = Vec::new();
    let mut polls = 0u64;
    while g.arena.truth(root) == Truth::Open
        && let Some(v) = queue.pop_front()
    {
        queued[v as usize] = false;
        polls += 1;
        if polls.is_multiple_of(1024) {
            let stop = budget
                .check(source.state_count() as u64)
                .and_then(|()| if polls.is_multiple_of(64 * 1024) { budget.check_memory() } else { Ok(()) });
            if let Err(stop) = stop {
                return Ok((g, Outcome::Stopped(stop)));
            }
        }
        if g.arena.truth(v) != Truth::Open || !g.arena.is_wanted(v) {
            continue;
        }
        let (s, q) = g.configurations[v as usize];
        let all = automaton.universal(q);
        edges.clear();
        let here = automaton.here(q)?;
        let mut decided = here == Demand::DECIDED;
        for q in automaton.set(here).iter() {
            edges.push(Edge { to: vertex(&mut g, automaton, s, *q), label: None });
        }
        if !decided {
            source.successors(s, &mut transitions)?;
            let asks = automaton.asks_labels(q);
            for &(label, target) in &transitions {
                if asks {
                    let answer = automaton.here_if(q, label, labels)?;
                    if answer == Demand::DECIDED {
                        g.deciding.insert(v, (label, target));
                        decided = true;
                        break;
                    }
                    for q in automaton.set(answer).iter() {
                        edges.push(Edge { to: vertex(&mut g, automaton, s, *q), label: None });
                    }
                }
                let answer = automaton.step(q, label, labels)?;
                if answer == Demand::DECIDED {
                    g.deciding.insert(v, (label, target));
                    decided = true;
                    break;
                }
                for q in automaton.set(answer).iter() {
                    edges.push(Edge { to: vertex(&mut g, automaton, target, *q), label: Some(label) });
                }
            }
        }
        if decided {
            g.arena.decide(v, !all);
            continue;
        }
        g.arena.expand(v, &edges);
        enqueue(&g.arena, &edges, &mut queue, &mut queued);
        if g.arena.len() >= next_solving {
            next_solving = g.arena.len() * 2;
            for frontier in [false, true] {
                if g.arena.truth(root) == Truth::Open
                    && let Err(stop) = g.arena.solve(root, frontier, solver, budget)
                {
                    return Ok((g, Outcome::Stopped(stop)));
                }
            }
        }
    }
    if g.arena.truth(root) == Truth::Open {
        // Vertices that were skipped because nobody wanted them stay unexpanded but unreachable through open vertices.
        if let Err(stop) = g.arena.solve(root, false, solver, budget) {
            return Ok((g, Outcome::Stopped(stop)));
        }
    }
    let outcome = match g.arena.truth(root) {
        Truth::Known(value) => Outcome::Verdict(value),
        Truth::Open => return Err(Diagnostic::new(crate::base::Stage::Internal, "the game has no winner at its start")),
    };
    Ok((g, outcome))
}

/// Queues the targets that are open and not expanded: new ones, and ones that were skipped while nobody wanted them.
fn enqueue(arena: &Arena, edges: &[Edge], queue: &mut VecDeque<u32>, queued: &mut Vec<bool>) {
    queued.resize(arena.len(), false);
    for edge in edges {
        let v = edge.to as usize;
        if !queued[v] && arena.truth(edge.to) == Truth::Open && !arena.is_expanded(edge.to) {
            queued[v] = true;
            queue.push_back(edge.to);
        }
    }
}
