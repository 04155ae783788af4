//! Priority promotion: a second algorithm, of another kind than Zielonka's and written apart from it.
//!
//! Benerecetti, Dell'Erba, Mogavero, "Solving parity games via priority promotion" (2016). A region is a set from which one player wins all
//! plays that stay in it. Regions are built from the highest priority down, each attracting from what is below; a region that the opponent
//! can leave only to higher regions (of the same player) is promoted into the lowest of these, and everything below starts again;
//! one that cannot be left at all is a dominion: it is won, with what it attracts, and is removed.
//!
//! Cost: about (priorities + promotions) * moves, exponentially many promotions at worst. Memory: 25 bytes a vertex and
//! 4 a move beside the game.

use crate::base::ids::VertexId;
use crate::base::limits::{Budget, Stop};
use crate::game::{Game, Player, Solution};

use super::Solver;

/// See the module.
pub struct Promotion;

impl Solver for Promotion {
    fn name(&self) -> &'static str {
        "promotion"
    }
    fn about(&self) -> &'static str {
        "priority promotion of Benerecetti, Dell'Erba and Mogavero"
    }
    fn solve(&self, game: &Game, budget: &Budget) -> Result<Solution, Stop> {
        let mut search = Search::new(game, budget);
        search.dead_ends();
        while search.left > 0 {
            let (region, player) = search.dominion()?;
            search.win(region, player);
        }
        let Search { winner, strategy, .. } = search;
        let strategy = strategy.iter().enumerate().map(|(v, to)| to.filter(|_| game.owners[v] == winner[v])).collect();
        Ok(Solution { winners: winner, strategy })
    }
}

struct Search<'a> {
    game: &'a Game,
    budget: &'a Budget,
    sources: Vec<Vec<u32>>,
    /// Vertices by descending priority; the solved ones are thrown out from time to time.
    order: Vec<u32>,
    solved: Vec<bool>,
    left: usize,
    winner: Vec<Player>,
    strategy: Vec<Option<VertexId>>,
    /// The priority of the region that a vertex is in; its own if it was not attracted or promoted.
    region: Vec<u32>,
    /// Vertices of the region that is being built.
    member: Vec<bool>,
}

impl<'a> Search<'a> {
    fn new(game: &'a Game, budget: &'a Budget) -> Self {
        let n = game.vertex_count();
        let mut sources = vec![Vec::new(); n];
        for v in game.vertices() {
            for t in game.successors(v) {
                sources[t.index()].push(v.0);
            }
        }
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|&v| std::cmp::Reverse(game.priorities[v as usize]));
        Self {
            game,
            budget,
            sources,
            order,
            solved: vec![false; n],
            left: n,
            winner: vec![Player::Even; n],
            strategy: vec![None; n],
            region: game.priorities.clone(),
            member: vec![false; n],
        }
    }

    /// Who cannot move loses.
    fn dead_ends(&mut self) {
        for player in [Player::Even, Player::Odd] {
            let lost = |v: &VertexId| self.game.successors(*v).is_empty() && self.game.owners[v.index()] == player;
            let ends: Vec<u32> = self.game.vertices().filter(lost).map(|v| v.0).collect();
            let ends = ends.into_iter().filter(|&v| !self.solved[v as usize]).collect();
            self.win(ends, player.opponent());
        }
    }

    /// Whether `player` can make a play from `v` enter the members at once; where to, if `v` is the player's.
    /// Only moves to unsolved vertices with regions of at most `bound` count.
    fn forced(&self, v: u32, player: Player, bound: u32) -> Option<Option<VertexId>> {
        let mut moves = self.game.successors(VertexId(v)).iter().filter(|t| !self.solved[t.index()] && self.region[t.index()] <= bound);
        if self.game.owners[v as usize] == player {
            moves.find(|t| self.member[t.index()]).map(|&t| Some(t))
        } else {
            moves.all(|t| self.member[t.index()]).then_some(None)
        }
    }

    /// Adds to `set`, whose vertices are members, what `player` can force into it among the unsolved vertices with regions of at most `bound`.
    fn attract(&mut self, set: &mut Vec<u32>, player: Player, bound: u32) {
        let mut next = 0;
        while next < set.len() {
            let v = set[next] as usize;
            next += 1;
            for i in 0..self.sources[v].len() {
                let u = self.sources[v][i];
                let at = u as usize;
                if self.solved[at] || self.member[at] || self.region[at] > bound {
                    continue;
                }
                if self.game.owners[at] == player {
                    self.strategy[at] = Some(VertexId(v as u32));
                } else if self.forced(u, player, bound).is_some() {
                    self.strategy[at] = None;
                } else {
                    continue;
                }
                self.member[at] = true;
                set.push(u);
            }
        }
    }

    /// Marks a region, and what it attracts in the whole unsolved game, as won.
    fn win(&mut self, mut set: Vec<u32>, player: Player) {
        for &v in &set {
            self.member[v as usize] = true;
        }
        self.attract(&mut set, player, u32::MAX);
        for &v in &set {
            self.member[v as usize] = false;
            self.solved[v as usize] = true;
            self.winner[v as usize] = player;
        }
        self.left -= set.len();
        let solved = &self.solved;
        self.order.retain(|&v| !solved[v as usize]);
        for &v in &self.order {
            self.region[v as usize] = self.game.priorities[v as usize];
        }
    }

    /// Finds a dominion of the unsolved game, in which every vertex has a move.
    fn dominion(&mut self) -> Result<(Vec<u32>, Player), Stop> {
        let highest = |s: &Self, below: Option<u32>| {
            s.order.iter().map(|&v| s.region[v as usize]).filter(|&r| below.is_none_or(|b| r < b)).max().unwrap_or(0)
        };
        let mut p = highest(self, None);
        loop {
            self.budget.check(0)?;
            let player = Player::of_priority(p);
            let mut set: Vec<u32> = self.order.iter().copied().filter(|&v| self.region[v as usize] == p).collect();
            for &v in &set {
                self.member[v as usize] = true;
            }
            self.attract(&mut set, player, p);
            // Open: a play can leave to a lower region, by the opponent's will or because the player has no move that stays.
            let mut open = false;
            let mut above: Option<u32> = None;
            for &v in &set {
                self.region[v as usize] = p;
                let moves = self.game.successors(VertexId(v)).iter().filter(|t| !self.solved[t.index()]);
                if self.game.owners[v as usize] == player {
                    let keeps = self.strategy[v as usize].is_some_and(|t| self.member[t.index()]);
                    if !keeps {
                        let stay = moves.into_iter().find(|t| self.member[t.index()]).copied();
                        open |= stay.is_none();
                        self.strategy[v as usize] = stay;
                    }
                } else {
                    for t in moves.filter(|t| !self.member[t.index()]) {
                        let r = self.region[t.index()];
                        open |= r < p;
                        if r > p {
                            above = Some(above.map_or(r, |a| a.min(r)));
                        }
                    }
                }
            }
            for &v in &set {
                self.member[v as usize] = false;
            }
            if open {
                p = highest(self, Some(p));
                continue;
            }
            let Some(to) = above else { return Ok((set, player)) };
            for &v in &set {
                self.region[v as usize] = to;
            }
            for &v in &self.order {
                if self.region[v as usize] < to {
                    self.region[v as usize] = self.game.priorities[v as usize];
                }
            }
            p = to;
        }
    }
}
