//! Whether a game on a model is won: search, solution, check of the solution, and the part of the
//! game that shows it.
//!
//! Input -> output: a [`Model`] and [`Rules`], with the obligations that start the game ->
//! [`Played`]: who wins, the numbers of what was met, and if asked for and not too large the
//! vertices that the winner's strategy leads to, with their moves.
//!
//! The winner's region and choices are checked (`certify.rs`) before anything is said; a flaw is an
//! internal error.

use super::Strategy;
use super::arena::{Arena, By, Player, Rules};
use super::reach::{Options, Outcome, Search, with_threads};
use super::zielonka::{Choice, Solved};
use ahash::AHashMap;
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic};
use mu_model::Model;
use num_bigint::BigUint;
use std::collections::VecDeque;

/// What was found.
#[derive(Clone, Debug)]
pub struct Played {
    /// What the search of the model found and cost. If it is not complete, there is no winner.
    pub outcome: Outcome,
    /// Vertices met: pairs of state and obligation.
    pub vertices: BigUint,
    /// Obligations met.
    pub obligations: usize,
    /// Moves from one obligation to another or itself, a relation each.
    pub moves: usize,
    /// Layers of the winner's strategy.
    pub choices: usize,
    /// Who wins.
    pub winner: Option<Player>,
    /// What shows it, if asked for and no larger than allowed.
    pub play: Option<Play>,
}

/// A vertex of a play: a state (by slot) and an obligation.
pub type Vertex = (Vec<u32>, u32);

/// The part of the game that a strategy leads to.
#[derive(Clone, Debug, Default)]
pub struct Play {
    /// Its vertices; the first ones are those that start it.
    pub vertices: Vec<Vertex>,
    /// How many start it.
    pub roots: usize,
    /// Moves, from a vertex to another, along a step of a label unless only the obligation
    /// changes.
    pub moves: Vec<(usize, Option<LabelId>, usize)>,
    /// Steps by which the owner of a vertex has won at once.
    pub deciding: Vec<(usize, LabelId, Vec<u32>)>,
}

/// Plays from some obligations at the initial state: all of them must be won by Even, or (not
/// `all`) one. `largest`: most vertices of a play that is shown.
pub fn play(
    model: &dyn Model,
    rules: &mut dyn Rules,
    (all, start): (bool, &[u32]),
    largest: usize,
    options: &Options,
    budget: &Budget,
) -> Result<Played, Diagnostic> {
    with_threads(model, options, budget, |team| {
        let mut search = Search::new(model, options, budget, None)?;
        search.engage(team);
        let states = search.run(Strategy::Saturation)?;
        let played = |outcome| Played {
            outcome,
            vertices: BigUint::default(),
            obligations: 0,
            moves: 0,
            choices: 0,
            winner: None,
            play: None,
        };
        if search.halted() {
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
        if !arena.search.halted() {
            let solved = arena.solve(all);
            winner = arena.winner(&solved, all).filter(|_| !arena.search.halted());
            if let Some(player) = winner {
                let region = solved.of(player).clone();
                let flaw = arena.flaw(player, &region);
                choices = region.choices.len();
                if arena.search.halted() {
                    winner = None;
                } else if let Some(flaw) = flaw {
                    return Err(Diagnostic::internal(format!(
                        "the solution of the game does not verify: {flaw:?}"
                    )));
                } else {
                    shown = arena.shown(&solved, player, all, largest)?;
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
    /// The part of the game that the winner's strategy leads to; none if it has more vertices than
    /// allowed, or a limit comes first.
    fn shown(
        &mut self,
        solved: &Solved,
        player: Player,
        all: bool,
        largest: usize,
    ) -> Result<Option<Play>, Diagnostic> {
        if largest == 0 {
            return Ok(None);
        }
        let region = solved.of(player);
        let mut by_place: Vec<Vec<Choice>> = vec![Vec::new(); self.places.len()];
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
            // One is enough.
            roots.truncate(1);
        }
        let mut walk = Walk {
            play: Play { roots: roots.len(), ..Play::default() },
            known: AHashMap::new(),
            queue: VecDeque::new(),
        };
        for place in roots {
            walk.vertex(place, &initial);
        }
        while let Some((number, place, vector)) = walk.queue.pop_front() {
            if walk.known.len() > largest || self.search.halted() {
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

    /// Adds the moves from a vertex that the strategy leaves.
    fn follow(
        &mut self,
        walk: &mut Walk,
        choices: &[Choice],
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
            if self.rules.step(q, class)?.is_none() || self.rules.here_if(q, class)?.is_none() {
                walk.play.deciding.push((number, *label, self.search.to_slots(target)));
                return Ok(());
            }
        }
        if own {
            let fits = |c: &&Choice| self.search.manager.contains(c.from, vector);
            let Some(choice) = choices.iter().find(fits).copied() else {
                return Err(Diagnostic::internal("a vertex that is won has no choice"));
            };
            let to = self.moves[choice.by].to;
            if let By::Here { .. } = self.moves[choice.by].by {
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
            return Err(Diagnostic::internal("a choice is no step of the model"));
        }
        for &m in &self.places[place].out {
            if let By::Here { able } = self.moves[m].by
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

    /// The steps from a state, both by level.
    fn steps_from(&mut self, vector: &[u32]) -> Result<Vec<(LabelId, Vec<u32>)>, Diagnostic> {
        let from = self.search.to_slots(vector);
        let mut all = Vec::new();
        let groups = self.search.model.groups();
        for member in self.search.relations.iter().flat_map(|r| &r.members) {
            all.extend(member.steps_from(
                &groups[member.group],
                &mut self.search.teacher,
                &from,
            )?);
        }
        for (_, to) in &mut all {
            *to = self.search.to_levels(to);
        }
        Ok(all)
    }
}

/// A play in the making; vertices are by level and by place.
struct Walk {
    play: Play,
    known: AHashMap<(usize, Vec<u32>), usize>,
    queue: VecDeque<(usize, usize, Vec<u32>)>,
}

impl Walk {
    fn vertex(&mut self, place: usize, vector: &[u32]) -> usize {
        let fresh = self.known.len();
        let number = *self.known.entry((place, vector.to_vec())).or_insert(fresh);
        if number == fresh {
            self.play.vertices.push((vector.to_vec(), place as u32));
            self.queue.push_back((number, place, vector.to_vec()));
        }
        number
    }
}
