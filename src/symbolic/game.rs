//! Symbolic solution of a game on a model: search, solution, verification, and evidence.
//!
//! Input -> output: a [`Model`] and [`GameRules`], with the obligations that start the game ->
//! [`GameOutcome`]: the winner, counts, and on request, if it is small enough, the part of the game
//! that the winner's strategy reaches.
//!
//! The winner's region and choices are verified (`certify.rs`) before anything is returned; a flaw
//! is an internal error.

use super::Strategy;
use super::arena::{Arena, GameRules, MoveKind, Player};
use super::reach::{ReachOutcome, ReachSearch, SymbolicOptions, with_threads};
use super::zielonka::{MoveChoice, SolvedRegions};
use ahash::AHashMap;
use mu_base::ids::LabelId;
use mu_base::narrow;
use mu_base::{Budget, Diagnostic};
use mu_model::Model;
use num_bigint::BigUint;
use std::collections::VecDeque;

/// Result of a game.
#[derive(Clone, Debug)]
pub struct GameOutcome {
    /// Result and cost of the search of the model. If it is not complete, there is no winner.
    pub outcome: ReachOutcome,
    /// Number of vertices: pairs of state and obligation.
    pub vertices: BigUint,
    /// Number of obligations.
    pub obligations: usize,
    /// Number of moves between obligations, a relation each.
    pub moves: usize,
    /// Number of layers of the winner's strategy.
    pub choices: usize,
    /// The winner.
    pub winner: Option<Player>,
    /// The evidence, if requested and within the size limit.
    pub play: Option<GameEvidence>,
}

/// A vertex of the evidence: a state (by slot) and an obligation.
pub type Vertex = (Vec<u32>, u32);

/// The part of the game that a strategy reaches.
#[derive(Clone, Debug, Default)]
pub struct GameEvidence {
    /// Its vertices; the start vertices come first.
    pub vertices: Vec<Vertex>,
    /// Number of start vertices.
    pub roots: usize,
    /// Moves between vertices, with the label of the step; without a label only the obligation
    /// changes.
    pub moves: Vec<(usize, Option<LabelId>, usize)>,
    /// Steps with which the owner of a vertex wins at once.
    pub deciding: Vec<(usize, LabelId, Vec<u32>)>,
}

/// Solves the game from some obligations at the initial state: Even must win all of them, or (not
/// `all`) one. `largest`: limit on the vertices of the evidence.
pub fn play(
    model: &dyn Model,
    rules: &mut dyn GameRules,
    (all, start): (bool, &[u32]),
    largest: usize,
    options: &SymbolicOptions,
    budget: &Budget,
) -> Result<GameOutcome, Diagnostic> {
    with_threads(model, options, budget, |team| {
        let mut search = ReachSearch::new(model, options, budget, None)?;
        search.set_helpers(team);
        let states = search.run(Strategy::Saturation)?;
        let played = |outcome| GameOutcome {
            outcome,
            vertices: BigUint::default(),
            obligations: 0,
            moves: 0,
            choices: 0,
            winner: None,
            play: None,
        };
        if search.is_halted() {
            return Ok(played(search.outcome(states)?));
        }
        search.learn_rest(states);
        if let Some(error) = search.failure.take() {
            return Err(error);
        }
        search.pinned.push(states);
        let mut arena = Arena::new(search, rules, states)?;
        arena.explore(start)?;
        let mut winner = None;
        let (mut choices, mut shown) = (0, None);
        if !arena.search.is_halted() {
            let solved = arena.solve(all);
            winner = arena.winner(&solved, all).filter(|_| !arena.search.is_halted());
            if let Some(player) = winner {
                let region = solved.of(player).clone();
                let flaw = arena.flaw(player, &region);
                choices = region.choices.len();
                if arena.search.is_halted() {
                    winner = None;
                } else if let Some(flaw) = flaw {
                    return Err(Diagnostic::internal(format!(
                        "the solution of the game does not verify: {flaw:?}"
                    )));
                } else {
                    shown = arena.winning_part(&solved, player, all, largest)?;
                }
            }
        }
        let vertices = arena.vertices.iter().map(|&set| arena.search.manager.count(set)).sum();
        let (obligations, moves) = (arena.places.len(), arena.moves.len());
        let mut result = played(arena.search.outcome(states)?);
        (result.vertices, result.obligations, result.moves, result.choices) =
            (vertices, obligations, moves, choices);
        (result.winner, result.play) = (winner, shown);
        Ok(result)
    })
}

impl Arena<'_, '_> {
    /// Returns the part of the game that the winner's strategy reaches; `None` if it has too many
    /// vertices, or at a limit.
    fn winning_part(
        &mut self,
        solved: &SolvedRegions,
        player: Player,
        all: bool,
        largest: usize,
    ) -> Result<Option<GameEvidence>, Diagnostic> {
        if largest == 0 {
            return Ok(None);
        }
        let region = solved.of(player);
        let mut by_place: Vec<Vec<MoveChoice>> = vec![Vec::new(); self.places.len()];
        for &choice in &region.choices {
            by_place[self.moves[choice.by].from].push(choice);
        }
        let initial = self.search.to_levels(&self.search.model.initial());
        let mut roots: Vec<usize> = self
            .roots
            .iter()
            .copied()
            .filter(|&p| self.search.manager.contains(region.won[p], &initial))
            .collect();
        if (player == Player::Odd) == all {
            // One start vertex is enough.
            roots.truncate(1);
        }
        let mut walk = EvidenceBuilder {
            play: GameEvidence { roots: roots.len(), ..GameEvidence::default() },
            known: AHashMap::new(),
            queue: VecDeque::new(),
        };
        for place in roots {
            walk.vertex(place, &initial);
        }
        while let Some((number, place, vector)) = walk.queue.pop_front() {
            if walk.known.len() > largest || self.search.is_halted() {
                return Ok(None);
            }
            self.follow(&mut walk, &by_place[place], (number, place, &vector), player)?;
        }
        let mut play = walk.play;
        for (vector, obligation) in &mut play.vertices {
            *vector = self.search.to_slots(vector);
            *obligation = self.places[*obligation as usize].obligation;
        }
        Ok(Some(play))
    }

    /// Adds the moves from a vertex that the strategy permits.
    fn follow(
        &mut self,
        walk: &mut EvidenceBuilder,
        choices: &[MoveChoice],
        at: (usize, usize, &[u32]),
        player: Player,
    ) -> Result<(), Diagnostic> {
        let (number, place, vector) = at;
        let own = self.places[place].owner == player;
        if self.places[place].decided {
            return Ok(());
        }
        let q = self.places[place].obligation;
        let steps = self.steps_from(vector)?;
        for (label, target) in &steps {
            let class = self.rules.class(*label)?;
            if self.rules.step(q, class)?.is_none() || self.rules.moves_here_if(q, class)?.is_none()
            {
                walk.play.deciding.push((number, *label, self.search.to_slots(target)));
                return Ok(());
            }
        }
        if own {
            let fits = |c: &&MoveChoice| self.search.manager.contains(c.from, vector);
            let Some(choice) = choices.iter().find(fits).copied() else {
                return Err(Diagnostic::internal("a winning vertex has no choice"));
            };
            let to = self.moves[choice.by].to;
            if let MoveKind::Here { .. } = self.moves[choice.by].by {
                let next = walk.vertex(to, vector);
                walk.play.moves.push((number, None, next));
                return Ok(());
            }
            for (label, target) in steps {
                let class = self.rules.class(label)?;
                let answer = self.rules.step(q, class)?;
                let obligation = self.places[to].obligation;
                if answer.is_some_and(|a| a.contains(&obligation))
                    && self.search.manager.contains(choice.to, &target)
                {
                    let next = walk.vertex(to, &target);
                    walk.play.moves.push((number, Some(label), next));
                    return Ok(());
                }
            }
            return Err(Diagnostic::internal("a choice is not a step of the model"));
        }
        for &m in &self.places[place].out {
            if let MoveKind::Here { able } = self.moves[m].by
                && able.is_none_or(|able| self.search.manager.contains(able, vector))
            {
                let next = walk.vertex(self.moves[m].to, vector);
                walk.play.moves.push((number, None, next));
            }
        }
        for (label, target) in steps {
            let class = self.rules.class(label)?;
            for obligation in self.rules.step(q, class)?.iter().flat_map(|a| a.iter()) {
                let next = walk.vertex(self.place_of[obligation], &target);
                walk.play.moves.push((number, Some(label), next));
            }
        }
        Ok(())
    }

    /// Returns the steps from a state, both by level.
    fn steps_from(&mut self, vector: &[u32]) -> Result<Vec<(LabelId, Vec<u32>)>, Diagnostic> {
        let mut all = self.search.steps_from(vector)?;
        for (_, to) in &mut all {
            *to = self.search.to_levels(to);
        }
        Ok(all)
    }
}

/// Evidence under construction; vertices are by level and by place.
struct EvidenceBuilder {
    play: GameEvidence,
    known: AHashMap<(usize, Vec<u32>), usize>,
    queue: VecDeque<(usize, usize, Vec<u32>)>,
}

impl EvidenceBuilder {
    fn vertex(&mut self, place: usize, vector: &[u32]) -> usize {
        let fresh = self.known.len();
        let number = *self.known.entry((place, vector.to_vec())).or_insert(fresh);
        if number == fresh {
            self.play.vertices.push((vector.to_vec(), narrow::index(place)));
            self.queue.push_back((number, place, vector.to_vec()));
        }
        number
    }
}
