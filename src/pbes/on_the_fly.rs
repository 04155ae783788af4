//! On-the-fly solving: a model with steps that are the moves of a game (see [`mu_game::moves`]) is
//! expanded until its start is decided.
//!
//! States are expanded breadth first, so a system of infinitely many instances is decided if a
//! finite part of it decides. Values propagate backwards at once. Whenever the game has doubled,
//! the open part is solved with the unexpanded vertices given to either player ([`super::arena`]).
//! A state without an open predecessor is not expanded. The result is a finite game for any solver,
//! in which the winner of the start loses at unexpanded vertices. So its solution and the check of
//! its strategies prove the answer.
//!
//! Cost: memory for each state and move; all solver runs together cost about twice the last one.

use super::arena::{Arena, Edge, Truth};
use super::transitions::LazyTransitions;
use mu_base::ids::{LabelId, Maybe, StateId, VertexId};
use mu_base::{Budget, Diagnostic, Stop, narrow};
use mu_game::moves::{StepMeaning, no_move, priorities};
use mu_game::solve::Solver;
use mu_game::{Game, Player};
use mu_model::Model;
use std::collections::VecDeque;

/// Number of vertices at which the open game is first solved.
const FIRST_SOLVING: usize = 64;
/// Number of vertices at which the alternative method is tried.
const LARGE: usize = 1 << 12;
const ROOT: u32 = 0;
const YES: u32 = 1;
const NO: u32 = 2;

/// The part of a game that decides its start.
#[derive(Debug)]
pub struct DecidedGame {
    /// The game; vertex 0 is the start.
    pub game: Game,
    /// True if the first player wins the start.
    pub value: bool,
    /// Number of instances that were generated but not expanded.
    pub left_out: usize,
}

/// State of the construction.
struct Construction<'m> {
    source: LazyTransitions<'m>,
    model: &'m dyn Model,
    prefix: &'m str,
    priority_of: Vec<u32>,
    arena: Arena,
    /// By vertex; the two final ones have no state.
    states: Vec<Option<StateId>>,
    /// By state.
    vertices: Vec<Maybe>,
    /// By label.
    moves: Vec<Option<StepMeaning>>,
    queue: VecDeque<u32>,
    queued: Vec<bool>,
    steps: Vec<(LabelId, StateId)>,
}

/// An alternative method that may decide the start.
pub type Alternative<'a> = &'a dyn Fn() -> Result<Option<DecidedGame>, Stop>;

/// Decides the start. `prefix` and `least` belong to the equation system, `name` describes its
/// start. The alternative method is tried once, if the game is large.
///
/// # Errors
/// Errors of the model; a limit.
pub fn decide(
    model: &dyn Model,
    (prefix, least, name): (&str, &[bool], &str),
    (solver, alternative): (&dyn Solver, Alternative<'_>),
    budget: &Budget,
) -> Result<DecidedGame, Diagnostic> {
    let options = mu_explore::Options { threads: 1, ..Default::default() };
    let mut play = Construction {
        source: LazyTransitions::new(model, &options)?,
        model,
        prefix,
        priority_of: priorities(least),
        arena: Arena::default(),
        states: Vec::new(),
        vertices: Vec::new(),
        moves: Vec::new(),
        queue: VecDeque::new(),
        queued: Vec::new(),
        steps: Vec::new(),
    };
    let initial = play.source.initial();
    play.vertex(initial);
    for value in [true, false] {
        let end = play.arena.add(!value, 0);
        play.states.push(None);
        play.queued.push(false);
        play.arena.decide(end, value);
    }
    if let Some(decided) = play.run(solver, alternative, budget)? {
        return Ok(decided);
    }
    let Truth::Known(value) = play.arena.truth(ROOT) else {
        return Err(Diagnostic::internal("the game has no winner at its start"));
    };
    Ok(play.decided_game(value, name))
}

impl Construction<'_> {
    fn vertex(&mut self, state: StateId) -> u32 {
        if self.vertices.len() <= state.index() {
            self.vertices.resize(state.index() + 1, Maybe::NONE);
        }
        if let Some(v) = self.vertices[state.index()].get() {
            return v;
        }
        let v = self.arena.add(false, 0);
        self.vertices[state.index()] = Maybe::some(v);
        self.states.push(Some(state));
        self.queued.push(true);
        self.queue.push_back(v);
        v
    }

    /// Expands until the start is decided. Returns the result of the alternative method if that
    /// decides first.
    fn run(
        &mut self,
        solver: &dyn Solver,
        alternative: Alternative<'_>,
        budget: &Budget,
    ) -> Result<Option<DecidedGame>, Diagnostic> {
        let (mut next_solving, mut polls, mut tried) = (FIRST_SOLVING, 0u64, false);
        while self.arena.truth(ROOT) == Truth::Open
            && let Some(v) = self.queue.pop_front()
        {
            self.queued[v as usize] = false;
            polls += 1;
            if polls.is_multiple_of(256) {
                self.poll(polls, budget).map_err(Diagnostic::stopped)?;
            }
            if self.arena.truth(v) != Truth::Open
                || self.arena.is_expanded(v)
                || (v != ROOT && !self.arena.has_open_predecessor(v))
            {
                continue;
            }
            self.expand(v)?;
            if self.arena.len() >= next_solving {
                next_solving = self.arena.len() * 2;
                for frontier in [false, true] {
                    if self.arena.truth(ROOT) == Truth::Open {
                        self.arena
                            .solve(ROOT, frontier, solver, budget)
                            .map_err(Diagnostic::stopped)?;
                    }
                }
                if self.arena.truth(ROOT) == Truth::Open
                    && self.arena.len() >= LARGE
                    && !std::mem::replace(&mut tried, true)
                {
                    let decided = alternative().map_err(Diagnostic::stopped)?;
                    if decided.is_some() {
                        return Ok(decided);
                    }
                }
            }
        }
        if self.arena.truth(ROOT) == Truth::Open {
            self.arena.solve(ROOT, false, solver, budget).map_err(Diagnostic::stopped)?;
        }
        Ok(None)
    }

    fn poll(&self, polls: u64, budget: &Budget) -> Result<(), Stop> {
        budget.check(self.source.state_count() as u64)?;
        if polls.is_multiple_of(16 * 1024) { budget.check_memory() } else { Ok(()) }
    }

    fn expand(&mut self, v: u32) -> Result<(), Diagnostic> {
        let Some(state) = self.states[v as usize] else { return Ok(()) };
        let mut steps = std::mem::take(&mut self.steps);
        self.source.successors(state, &mut steps)?;
        let (mut universal, mut rank, mut targets) = (false, None, Vec::new());
        for &(label, target) in &steps {
            match self.kind(label)? {
                StepMeaning::Each => universal = true,
                StepMeaning::Rank(k) => {
                    rank = Some(k);
                    targets.push(self.vertex(target));
                }
                StepMeaning::Yes => targets.push(YES),
                StepMeaning::No => targets.push(NO),
            }
        }
        self.steps = steps;
        targets.sort_unstable();
        targets.dedup();
        self.arena.set_owner(v, universal, rank.map_or(0, |k| self.priority_of[k]));
        let edges: Vec<Edge> = targets.iter().map(|to| Edge { to: *to, label: None }).collect();
        self.arena.expand(v, &edges);
        // A vertex skipped before may matter now.
        for to in targets {
            if self.arena.truth(to) == Truth::Open
                && !self.arena.is_expanded(to)
                && !std::mem::replace(&mut self.queued[to as usize], true)
            {
                self.queue.push_back(to);
            }
        }
        Ok(())
    }

    fn kind(&mut self, label: LabelId) -> Result<StepMeaning, Diagnostic> {
        if self.moves.len() <= label.index() {
            self.moves.resize(label.index() + 1, None);
        }
        if let Some(known) = self.moves[label.index()] {
            return Ok(known);
        }
        let text = self.model.label_text(label);
        let found = StepMeaning::of(&text, self.prefix, self.priority_of.len())
            .ok_or_else(|| no_move(&text))?;
        self.moves[label.index()] = Some(found);
        Ok(found)
    }

    /// Returns the expanded and reachable part of the game; unexpanded vertices are lost for the
    /// winner.
    fn decided_game(&self, value: bool, name: &str) -> DecidedGame {
        let winner = if value { Player::Even } else { Player::Odd };
        let mut number = vec![Maybe::NONE; self.arena.len()];
        let (mut order, mut at, mut left_out) = (vec![ROOT], 0, 0);
        number[ROOT as usize] = Maybe::some(0);
        let mut game = Game::default();
        while let Some(&v) = order.get(at) {
            at += 1;
            let mut targets = Vec::new();
            for edge in self.arena.edges(v) {
                let to = number[edge.to as usize].get().unwrap_or_else(|| {
                    order.push(edge.to);
                    narrow::index(order.len()) - 1
                });
                number[edge.to as usize] = Maybe::some(to);
                targets.push(VertexId::of(to));
            }
            let (owner, rank) = match v {
                YES => (Player::Odd, 0),
                NO => (Player::Even, 0),
                _ if !self.arena.is_expanded(v) => {
                    left_out += 1;
                    (winner, 0)
                }
                _ if self.arena.is_universal(v) => (Player::Odd, self.arena.rank(v)),
                _ => (Player::Even, self.arena.rank(v)),
            };
            game.push(owner, rank, targets);
        }
        game.names = vec![String::new(); game.vertex_count()];
        name.clone_into(&mut game.names[0]);
        DecidedGame { game, value, left_out }
    }
}
