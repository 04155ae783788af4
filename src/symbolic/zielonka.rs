//! Solver of an [`Arena`]: Zielonka's algorithm over sets, component by component.
//!
//! Input -> output: an arena -> [`SolvedRegions`]: both players' regions and winning choices.
//! Obligations are divided into strongly connected components, last ones first, so that formulas
//! without alternation need attractors only. A component is solved by Zielonka's recursion on its
//! highest priority ("Infinite games on finitely coloured graphs with applications to automata on
//! infinite trees", 1998; over decision diagrams: Sanchez, Wesselink, Willemse, "A comparison of
//! BDD-based parity game solvers", GandALF 2018). Winning vertices are attracted at once by all
//! earlier vertices, and the search ends when the start is won.
//!
//! A choice is made once, when a vertex is attracted: by a move into the frontier of that time. So
//! a strategy is a list of layers, each with its target set, which is the previous layer.
//!
//! Cost: a preimage for each move and layer; the recursion depth is the number of priorities.
//! Invariants: choices of one player are of disjoint sets; `game` families are subgames: a vertex's
//! owner who has not won can stay in it.

use super::arena::{Arena, Family, Player};
use super::ldd::Ldd;
use mu_base::components::{Adjacency, components};
use mu_base::narrow;
use std::collections::BTreeSet;

/// From the states `from` at the move's place, the move may go to any state in `to`.
#[derive(Clone, Copy, Debug)]
pub(super) struct MoveChoice {
    pub by: usize,
    pub from: Ldd,
    pub to: Ldd,
}

/// A player's winning region with its strategy.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    pub won: Family,
    pub choices: Vec<MoveChoice>,
}

/// The regions of Even and Odd; other vertices were not solved.
#[derive(Clone, Debug)]
pub(super) struct SolvedRegions {
    pub regions: [Region; 2],
}

const BOTH: [Player; 2] = [Player::Even, Player::Odd];

impl SolvedRegions {
    fn empty(arena: &Arena) -> Self {
        let region = Region { won: arena.nothing(), choices: Vec::new() };
        Self { regions: [region.clone(), region] }
    }
    /// Returns a player's region.
    pub fn of(&self, player: Player) -> &Region {
        &self.regions[player as usize]
    }
    fn families(&self) -> [&Family; 2] {
        [&self.regions[0].won, &self.regions[1].won]
    }
}

impl Arena<'_, '_> {
    /// Returns the winner of the start, the conjunction (`all`) or disjunction of its places at the
    /// initial state; `None` if it is open.
    pub fn winner(&mut self, solved: &SolvedRegions, all: bool) -> Option<Player> {
        let initial = self.search.initial();
        let (chooser, other) =
            if all { (Player::Odd, Player::Even) } else { (Player::Even, Player::Odd) };
        let mut open = false;
        for &place in &self.roots {
            let mut has = |player: Player| {
                self.search.manager.includes(solved.of(player).won[place], initial)
            };
            if has(chooser) {
                return Some(chooser);
            }
            open |= !has(other);
        }
        (!open).then_some(other)
    }

    /// Solves the game until its start is decided. Meaningless after a halt.
    pub fn solve(&mut self, all: bool) -> SolvedRegions {
        let mut solved = SolvedRegions::empty(self);
        let base = self.hold(&[]);
        let at_once = BOTH.map(|player| {
            let won = self.won_at_once(player);
            self.hold(&won);
            won
        });
        for player in BOTH {
            self.settle(
                &mut solved,
                player,
                at_once[player as usize].clone(),
                &at_once[player.opponent() as usize],
            );
        }
        self.release(base);
        for component in self.components() {
            if self.search.is_halted() || self.winner(&solved, all).is_some() {
                break;
            }
            let mut game = self.nothing();
            for place in component {
                let rest = self
                    .search
                    .manager
                    .minus(self.vertices[place], solved.of(Player::Even).won[place]);
                game[place] = self.search.manager.minus(rest, solved.of(Player::Odd).won[place]);
            }
            let base = self.hold(&solved.families().map(|f| &f[..]).concat());
            let found = self.recurse(game);
            self.release(base);
            let (nothing, base) =
                (self.nothing(), self.hold(&found.families().map(|f| &f[..]).concat()));
            for (player, region) in BOTH.into_iter().zip(found.regions) {
                solved.regions[player as usize].choices.extend(region.choices);
                self.settle(&mut solved, player, region.won, &nothing);
            }
            self.release(base);
        }
        solved
    }

    /// Returns the strongly connected components of the places, each after its successors.
    fn components(&self) -> Vec<Vec<usize>> {
        let mut links = Adjacency { offsets: vec![0], targets: Vec::new() };
        for place in &self.places {
            links.targets.extend(place.out.iter().map(|&m| narrow::index(self.moves[m].to)));
            links.offsets.push(links.targets.len() as u64);
        }
        let found = components(&links);
        found.iter().map(|c| c.iter().map(|&v| v as usize).collect()).collect()
    }

    /// Returns the vertices that a player wins without a move: decided by themselves, or without a
    /// move of the opponent.
    fn won_at_once(&mut self, player: Player) -> Family {
        let mut won = self.nothing();
        for place in 0..self.places.len() {
            let vertices = self.vertices[place];
            let settled = self.decided_states(place, vertices);
            if self.places[place].owner == player {
                won[place] = settled;
                continue;
            }
            let mut stuck = self.search.manager.minus(vertices, settled);
            for m in self.places[place].out.clone() {
                let able = self.movers(self.moves[m].by, stuck);
                stuck = self.search.manager.minus(stuck, able);
            }
            won[place] = stuck;
            self.tidy(&[&won], &[]);
        }
        won
    }

    /// Adds vertices to a player's region, with their attractor, excluding `spared`.
    fn settle(&mut self, solved: &mut SolvedRegions, player: Player, new: Family, spared: &Family) {
        let theirs = self.with(&solved.of(player.opponent()).won, spared);
        let game = self.difference(&self.vertices.clone(), &theirs);
        let base = self.hold(&[&game[..], spared].concat());
        let base_of_theirs = self.hold(&solved.of(player.opponent()).won);
        let before = solved.of(player).won.clone();
        let (won, choices) = self.attract(player, &game, spared, &before, new);
        self.release(base_of_theirs);
        self.release(base);
        let region = &mut solved.regions[player as usize];
        region.won = won;
        region.choices.extend(choices);
    }

    /// Returns the attractor of `won` and `new` for a player in a game in which the opponent may
    /// also move to `spared`; `won` is closed already. Also returns the choices towards them.
    fn attract(
        &mut self,
        player: Player,
        game: &Family,
        spared: &Family,
        won: &Family,
        new: Family,
    ) -> (Family, Vec<MoveChoice>) {
        let mut won = self.with(won, &new);
        let mut fresh = new;
        let mut choices = Vec::new();
        let mut queue: BTreeSet<usize> =
            (0..fresh.len()).filter(|&p| !fresh[p].is_empty()).collect();
        while let Some(goal_place) = queue.pop_first() {
            let goal = std::mem::take(&mut fresh[goal_place]);
            let base = self.hold(&[goal]);
            for (place, group) in self.into[goal_place].clone() {
                if self.search.is_halted() {
                    break;
                }
                let mut rest = self.search.manager.minus(game[place], won[place]);
                let mut found = Ldd::EMPTY;
                for by in group {
                    let some = self.predecessors(self.moves[by].by, goal, rest);
                    if some.is_empty() {
                        continue;
                    }
                    if self.places[place].owner == player {
                        choices.push(MoveChoice { by, from: some, to: goal });
                        self.search.pinned.extend([some, goal]);
                    }
                    rest = self.search.manager.minus(rest, some);
                    found = self.search.manager.union(found, some);
                    self.tidy(&[game, &won, &fresh], &[goal, rest, found]);
                }
                if self.places[place].owner != player {
                    found = self.forced_vertices(place, found, (game, spared), &won, &fresh);
                }
                if !found.is_empty() {
                    won[place] = self.search.manager.union(won[place], found);
                    fresh[place] = self.search.manager.union(fresh[place], found);
                    queue.insert(place);
                }
                self.tidy(&[game, &won, &fresh], &[]);
            }
            self.release(base);
        }
        (won, choices)
    }

    /// Returns the vertices of the opponent in `set` with no move except into `won`, in a game with
    /// `spared`.
    fn forced_vertices(
        &mut self,
        place: usize,
        mut set: Ldd,
        (game, spared): (&Family, &Family),
        won: &Family,
        fresh: &Family,
    ) -> Ldd {
        for m in self.places[place].out.clone() {
            if set.is_empty() {
                break;
            }
            let to = self.moves[m].to;
            let away = self.search.manager.minus(game[to], won[to]);
            for goal in [away, spared[to]] {
                let free = self.predecessors(self.moves[m].by, goal, set);
                set = self.search.manager.minus(set, free);
            }
            self.tidy(&[game, won, fresh], &[set]);
        }
        set
    }

    /// Solves a game.
    fn recurse(&mut self, mut game: Family) -> SolvedRegions {
        let mut solved = SolvedRegions::empty(self);
        while !self.search.is_halted() {
            let inhabited = (0..game.len()).filter(|&p| !game[p].is_empty());
            let Some(top) = inhabited.map(|p| self.places[p].priority).max() else { break };
            let player = Player::of_priority(top);
            let base =
                self.hold(&[&game[..], &solved.regions[0].won, &solved.regions[1].won].concat());
            let highest = (0..game.len())
                .map(|p| if self.places[p].priority == top { game[p] } else { Ldd::EMPTY })
                .collect::<Family>();
            let nothing = self.nothing();
            let (near, choices) = self.attract(player, &game, &nothing, &nothing, highest.clone());
            let rest = self.difference(&game, &near);
            let mut below = self.recurse(rest);
            let other = player.opponent();
            let theirs = std::mem::take(&mut below.regions[other as usize]);
            if theirs.won.iter().all(|set| set.is_empty()) {
                self.release(base);
                let ours = &mut solved.regions[player as usize];
                ours.choices.extend(std::mem::take(&mut below.regions[player as usize].choices));
                ours.choices.extend(choices);
                let stays = self.stay(player, &highest, &game);
                let all = self.with(&solved.of(player).won, &game);
                let ours = &mut solved.regions[player as usize];
                ours.choices.extend(stays);
                ours.won = all;
                break;
            }
            let (lost, choices) = self.attract(other, &game, &nothing, &nothing, theirs.won);
            self.release(base);
            game = self.difference(&game, &lost);
            let all = self.with(&solved.of(other).won, &lost);
            let region = &mut solved.regions[other as usize];
            region.won = all;
            region.choices.extend(theirs.choices);
            region.choices.extend(choices);
        }
        solved
    }

    /// Returns a player's choices at some of its vertices: any move within a game.
    fn stay(&mut self, player: Player, vertices: &Family, game: &Family) -> Vec<MoveChoice> {
        let mut choices = Vec::new();
        let own: Vec<usize> =
            (0..vertices.len()).filter(|&p| self.places[p].owner == player).collect();
        for place in own {
            let mut rest = vertices[place];
            for by in self.places[place].out.clone() {
                let to = game[self.moves[by].to];
                let from = self.predecessors(self.moves[by].by, to, rest);
                if !from.is_empty() {
                    rest = self.search.manager.minus(rest, from);
                    self.search.pinned.extend([from, to]);
                    choices.push(MoveChoice { by, from, to });
                }
            }
        }
        choices
    }
}
