//! Explicit check of any formula by a game: the parity game of model and formula, instantiated from
//! the initial configuration and solved during its construction.
//!
//! A vertex is a configuration (system state, formula state). Vertices are expanded breadth-first;
//! a vertex without an open predecessor is skipped. Infinite models are supported if the undecided
//! part of the game is finite.
//!
//! Cost: memory for each vertex and edge. Invariant: vertex 0, the *root*, is the whole formula at
//! the initial state. A large game may be suspended and resumed, see [`super::quotient`].

use super::arena::{Arena, Edge, Truth};
use super::automaton::{Automaton, FormulaState, ObligationSet};
use super::transitions::LazyTransitions;
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, Stop};
use mu_game::solve::Solver;
use mu_process::labels::ActionLabels;
use std::collections::VecDeque;

/// A game with the configurations of its vertices.
pub struct GameInstance {
    /// The game.
    pub arena: Arena,
    /// Configurations; the root, vertex 0, has no formula state.
    pub configurations: Vec<(StateId, Option<FormulaState>)>,
    /// For a vertex that a single transition decides: that transition.
    pub deciding: AHashMap<u32, (LabelId, StateId)>,
}

/// Result of an instantiation.
pub enum InstanceOutcome {
    /// A verdict.
    Verdict(bool),
    /// A limit ended it first.
    Stopped(Stop),
}

/// Number of vertices at which the open game is first solved.
const FIRST_SOLVING: usize = 1 << 14;

/// A game that grows until its root is decided.
pub struct Instantiation {
    game: GameInstance,
    vertices: AHashMap<(StateId, FormulaState), u32>,
    queue: VecDeque<u32>,
    queued: Vec<bool>,
    next_solving: usize,
    polls: u64,
}

const ROOT: u32 = 0;

impl Instantiation {
    /// Creates a game with the root only: a conjunction (or disjunction) of formula states at the
    /// initial state.
    pub fn new(
        source: &LazyTransitions,
        automaton: &Automaton,
        start: (bool, &[FormulaState]),
    ) -> Self {
        let mut instantiation = Self {
            game: GameInstance {
                arena: Arena::default(),
                configurations: Vec::new(),
                deciding: AHashMap::new(),
            },
            vertices: AHashMap::new(),
            queue: VecDeque::new(),
            queued: Vec::new(),
            next_solving: FIRST_SOLVING,
            polls: 0,
        };
        let initial = source.initial();
        let root = instantiation.game.arena.add(start.0, 0);
        instantiation.game.configurations.push((initial, None));
        let edges: Vec<Edge> = start
            .1
            .iter()
            .map(|q| Edge { to: instantiation.vertex(automaton, initial, *q), label: None })
            .collect();
        instantiation.game.arena.expand(root, &edges);
        instantiation.enqueue(&edges);
        instantiation
    }

    /// Returns the number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.game.arena.len()
    }

    /// Returns the game so far.
    pub fn into_game(self) -> GameInstance {
        self.game
    }

    fn vertex(&mut self, automaton: &Automaton, s: StateId, q: FormulaState) -> u32 {
        *self.vertices.entry((s, q)).or_insert_with(|| {
            self.game.configurations.push((s, Some(q)));
            self.game.arena.add(automaton.universal(q), automaton.rank(q))
        })
    }

    /// Continues until the root is decided, a limit is reached, or the game has `max_vertices`
    /// vertices; returns `None` in the last case.
    pub fn run(
        &mut self,
        source: &mut LazyTransitions,
        labels: &dyn ActionLabels,
        automaton: &mut Automaton,
        solver: &dyn Solver,
        max_vertices: usize,
        budget: &Budget,
    ) -> Result<Option<InstanceOutcome>, Diagnostic> {
        let mut transitions: Vec<(LabelId, StateId)> = Vec::new();
        let mut edges: Vec<Edge> = Vec::new();
        while self.game.arena.truth(ROOT) == Truth::Open
            && let Some(v) = self.queue.pop_front()
        {
            self.queued[v as usize] = false;
            self.polls += 1;
            if self.polls.is_multiple_of(1024) {
                let stop = budget.check(source.state_count() as u64).and_then(|()| {
                    if self.polls.is_multiple_of(64 * 1024) {
                        budget.check_memory()
                    } else {
                        Ok(())
                    }
                });
                if let Err(stop) = stop {
                    return Ok(Some(InstanceOutcome::Stopped(stop)));
                }
            }
            if self.game.arena.truth(v) != Truth::Open || !self.game.arena.has_open_predecessor(v) {
                continue;
            }
            if self.expand(v, source, labels, automaton, &mut transitions, &mut edges)? {
                continue;
            }
            if self.game.arena.len() >= self.next_solving {
                self.next_solving = self.game.arena.len() * 2;
                // One pass for each value that unexpanded vertices may have.
                for frontier in [false, true] {
                    if self.game.arena.truth(ROOT) == Truth::Open
                        && let Err(stop) = self.game.arena.solve(ROOT, frontier, solver, budget)
                    {
                        return Ok(Some(InstanceOutcome::Stopped(stop)));
                    }
                }
            }
            if self.game.arena.len() >= max_vertices && self.game.arena.truth(ROOT) == Truth::Open {
                return Ok(None);
            }
        }
        if self.game.arena.truth(ROOT) == Truth::Open {
            // Skipped vertices stay unexpanded, but are unreachable through open vertices.
            if let Err(stop) = self.game.arena.solve(ROOT, false, solver, budget) {
                return Ok(Some(InstanceOutcome::Stopped(stop)));
            }
        }
        match self.game.arena.truth(ROOT) {
            Truth::Known(value) => Ok(Some(InstanceOutcome::Verdict(value))),
            Truth::Open => {
                Err(Diagnostic::new(mu_base::Stage::Internal, "the game has no winner at its root"))
            }
        }
    }

    /// Computes the edges of a vertex. Returns true if the vertex is decided by itself instead.
    fn expand(
        &mut self,
        v: u32,
        source: &mut LazyTransitions,
        labels: &dyn ActionLabels,
        automaton: &mut Automaton,
        transitions: &mut Vec<(LabelId, StateId)>,
        edges: &mut Vec<Edge>,
    ) -> Result<bool, Diagnostic> {
        let (s, Some(q)) = self.game.configurations[v as usize] else {
            return Err(Diagnostic::internal("the root of the game is expanded twice"));
        };
        edges.clear();
        let here = automaton.obligations_here(q)?;
        let mut decided = here == ObligationSet::Decided;
        for q in automaton.set(here).iter() {
            edges.push(Edge { to: self.vertex(automaton, s, *q), label: None });
        }
        if !decided {
            source.successors(s, transitions)?;
            let label_dependent = automaton.depends_on_labels_here(q);
            for &(label, target) in &*transitions {
                if label_dependent {
                    let answer = automaton.obligations_here_if(q, label, labels)?;
                    if answer == ObligationSet::Decided {
                        self.game.deciding.insert(v, (label, target));
                        decided = true;
                        break;
                    }
                    for q in automaton.set(answer).iter() {
                        edges.push(Edge { to: self.vertex(automaton, s, *q), label: None });
                    }
                }
                let answer = automaton.step(q, label, labels)?;
                if answer == ObligationSet::Decided {
                    self.game.deciding.insert(v, (label, target));
                    decided = true;
                    break;
                }
                for q in automaton.set(answer).iter() {
                    edges.push(Edge { to: self.vertex(automaton, target, *q), label: Some(label) });
                }
            }
        }
        if decided {
            self.game.arena.decide(v, !automaton.universal(q));
        } else {
            self.game.arena.expand(v, edges);
            self.enqueue(edges);
        }
        Ok(decided)
    }

    /// Queues the open unexpanded targets: new ones, and ones skipped before.
    fn enqueue(&mut self, edges: &[Edge]) {
        let arena = &self.game.arena;
        self.queued.resize(arena.len(), false);
        for edge in edges {
            let v = edge.to as usize;
            if !self.queued[v] && arena.truth(edge.to) == Truth::Open && !arena.is_expanded(edge.to)
            {
                self.queued[v] = true;
                self.queue.push_back(edge.to);
            }
        }
    }
}
