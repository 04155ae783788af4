//! Priority promotion: a second algorithm, independent of Zielonka's.
//!
//! Benerecetti, Dell'Erba, Mogavero, "Solving parity games via priority promotion" (2016). A region
//! is a set from which one player wins all plays that stay in it. Regions are built from the
//! highest priority down, each attracting from below. A region that the opponent can leave only to
//! higher regions (of the same player) is promoted into the lowest of these, and everything below
//! is reset. A region that cannot be left is a dominion: it is won, with its attractor, and is
//! removed. Difference from the paper: after a dominion, only the regions up to the highest one
//! that loses or gains vertices are reset; those above stay valid.
//!
//! Cost: a descent is linear in the vertices below the promotion; exponentially many promotions in
//! the worst case. Memory: about 40 bytes a vertex and 4 a move, in addition to the game.

use crate::{Game, Player, Solution};
use mu_base::ids::VertexId;
use mu_base::limits::{Budget, Stop};
use mu_base::narrow;

use super::Solver;

/// Priority promotion; see the module header.
pub struct Promotion;

impl Solver for Promotion {
    fn name(&self) -> &'static str {
        "promotion"
    }
    fn summary(&self) -> &'static str {
        "priority promotion of Benerecetti, Dell'Erba and Mogavero"
    }
    fn solve(&self, game: &Game, budget: &Budget) -> Result<Solution, Stop> {
        solve_within(game, budget, u64::MAX).map(|s| s.expect("there is no limit of steps"))
    }
}

/// Solves within about `steps` steps (inspected moves); `None` if that is not enough.
pub fn solve_within(game: &Game, budget: &Budget, steps: u64) -> Result<Option<Solution>, Stop> {
    let mut search = PromotionState::new(game);
    search.dead_ends();
    let mut level = 0;
    let mut polled = 0;
    while search.left > 0 {
        if search.steps > steps {
            return Ok(None);
        }
        if search.steps >= polled {
            budget.check(0)?;
            polled = search.steps + 10_000;
        }
        level = search.visit(level);
        if level as usize == search.regions.len() && search.left > 0 {
            // Nothing is left below: a region was open only to vertices won since then, so the
            // lowest one is closed now.
            let lowest = search.regions.iter().rposition(|r| !r.is_empty());
            level = narrow::index(lowest.expect("an unsolved vertex is in a region"));
        }
    }
    let PromotionState { winner, strategy, .. } = search;
    let strategy = strategy
        .iter()
        .enumerate()
        .map(|(v, to)| to.filter(|_| game.owners[v] == winner[v]))
        .collect();
    Ok(Some(Solution { winners: winner, strategy }))
}

/// State of the algorithm. Priorities are replaced by their ranks among those that occur, the
/// highest having level 0; a region is identified by its level.
struct PromotionState<'a> {
    game: &'a Game,
    source_offsets: Vec<u64>,
    sources: Vec<u32>,
    /// The level of each vertex by its own priority.
    own: Vec<u32>,
    /// Winner of each level's priority.
    player: Vec<Player>,
    /// The vertices of each level by their own priorities.
    heads: Vec<Vec<u32>>,
    /// The vertices of each valid region; empty for the others.
    regions: Vec<Vec<u32>>,
    /// The level of a vertex's region: its own level unless it was attracted or promoted.
    region: Vec<u32>,
    solved: Vec<bool>,
    left: usize,
    winner: Vec<Player>,
    strategy: Vec<Option<VertexId>>,
    /// True for vertices of the set in the current attractor computation.
    member: Vec<bool>,
    steps: u64,
}

impl<'a> PromotionState<'a> {
    fn new(game: &'a Game) -> Self {
        let n = game.vertex_count();
        let mut source_offsets = vec![0u64; n + 2];
        for t in &game.successors {
            source_offsets[t.index() + 2] += 1;
        }
        for i in 2..n + 2 {
            source_offsets[i] += source_offsets[i - 1];
        }
        let mut sources = vec![0; game.edge_count()];
        for v in game.vertices() {
            for t in game.successors(v) {
                let next = &mut source_offsets[t.index() + 1];
                sources[*next as usize] = v.number();
                *next += 1;
            }
        }
        let mut priorities = game.priorities.clone();
        priorities.sort_unstable_by(|x, y| y.cmp(x));
        priorities.dedup();
        let own: Vec<u32> = game
            .priorities
            .iter()
            .map(|p| narrow::index(priorities.partition_point(|q| q > p)))
            .collect();
        let mut heads = vec![Vec::new(); priorities.len()];
        for (v, &level) in own.iter().enumerate() {
            heads[level as usize].push(narrow::index(v));
        }
        Self {
            game,
            source_offsets,
            sources,
            region: own.clone(),
            own,
            player: priorities.iter().map(|&p| Player::of_priority(p)).collect(),
            regions: vec![Vec::new(); heads.len()],
            heads,
            solved: vec![false; n],
            left: n,
            winner: vec![Player::Even; n],
            strategy: vec![None; n],
            member: vec![false; n],
            steps: 0,
        }
    }

    /// Decides vertices without moves: their owner loses.
    fn dead_ends(&mut self) {
        for player in [Player::Even, Player::Odd] {
            let lost = |v: &VertexId| {
                self.game.successors(*v).is_empty()
                    && self.game.owners[v.index()] == player
                    && !self.solved[v.index()]
            };
            let ends: Vec<u32> = self.game.vertices().filter(lost).map(|v| v.number()).collect();
            self.win(ends, player.opponent());
        }
    }

    /// Extends `set` to its attractor for `player` among the unsolved vertices with regions at
    /// `level` or below.
    fn attract(&mut self, set: &mut Vec<u32>, player: Player, level: u32) {
        let mut next = 0;
        while next < set.len() {
            let v = set[next] as usize;
            next += 1;
            for i in self.source_offsets[v]..self.source_offsets[v + 1] {
                let u = self.sources[i as usize];
                let at = u as usize;
                self.steps += 1;
                if self.solved[at] || self.member[at] || self.region[at] < level {
                    continue;
                }
                if self.game.owners[at] == player {
                    self.strategy[at] = Some(VertexId::new(v));
                } else {
                    let free = |t: &VertexId| {
                        !self.solved[t.index()]
                            && self.region[t.index()] >= level
                            && !self.member[t.index()]
                    };
                    if self.game.successors(VertexId::of(u)).iter().any(free) {
                        continue;
                    }
                    self.strategy[at] = None;
                }
                self.member[at] = true;
                set.push(u);
            }
        }
    }

    /// Marks a dominion, with its attractor in the whole unsolved game, as won. Returns the level
    /// to continue from, if any vertex was won.
    fn win(&mut self, mut set: Vec<u32>, player: Player) -> Option<u32> {
        for &v in &set {
            self.member[v as usize] = true;
        }
        self.attract(&mut set, player, 0);
        let mut highest: Option<u32> = None;
        let lower = |a: Option<u32>, b: u32| Some(a.map_or(b, |a| a.min(b)));
        for &v in &set {
            self.member[v as usize] = false;
            self.solved[v as usize] = true;
            self.winner[v as usize] = player;
            highest = lower(highest, self.region[v as usize]);
        }
        self.left -= set.len();
        // A vertex that has lost its moves to its own and lower regions belongs to the lowest one
        // that it still reaches.
        for &v in &set {
            for i in self.source_offsets[v as usize]..self.source_offsets[v as usize + 1] {
                let u = self.sources[i as usize];
                self.steps += 1;
                if self.solved[u as usize] {
                    continue;
                }
                let moves = self
                    .game
                    .successors(VertexId::of(u))
                    .iter()
                    .filter(|t| !self.solved[t.index()]);
                if let Some(lowest) = moves.map(|t| self.region[t.index()]).max()
                    && lowest < self.region[u as usize]
                {
                    highest = lower(highest, lowest);
                }
            }
        }
        if let Some(highest) = highest {
            self.reset_from(highest);
        }
        highest
    }

    /// Resets the vertices of the regions from a level downwards to their own levels.
    fn reset_from(&mut self, level: u32) {
        for l in level as usize..self.regions.len() {
            for v in std::mem::take(&mut self.regions[l]) {
                self.region[v as usize] = self.own[v as usize];
            }
        }
    }

    /// Builds the region of a level, given those above it, and returns the level to continue from.
    /// Every unsolved vertex has an unsolved successor.
    fn visit(&mut self, level: u32) -> u32 {
        let player = self.player[level as usize];
        let mut set = std::mem::take(&mut self.regions[level as usize]);
        if set.is_empty() {
            set.extend(
                self.heads[level as usize]
                    .iter()
                    .filter(|&&v| !self.solved[v as usize] && self.region[v as usize] == level),
            );
        }
        if set.is_empty() {
            return level + 1;
        }
        for &v in &set {
            self.member[v as usize] = true;
        }
        self.attract(&mut set, player, level);
        // Open: a play can leave to a lower region, by the opponent's choice or because the player
        // has no move that stays.
        let mut open = false;
        let mut above: Option<u32> = None;
        for &v in &set {
            let at = v as usize;
            self.region[at] = level;
            let moves =
                self.game.successors(VertexId::of(v)).iter().filter(|t| !self.solved[t.index()]);
            if self.game.owners[at] == player {
                if !self.strategy[at].is_some_and(|t| self.member[t.index()]) {
                    let stay = moves.into_iter().find(|t| self.member[t.index()]).copied();
                    open |= stay.is_none();
                    self.strategy[at] = stay;
                }
            } else {
                for t in moves.filter(|t| !self.member[t.index()]) {
                    self.steps += 1;
                    let r = self.region[t.index()];
                    if r > level {
                        open = true;
                        break;
                    }
                    above = above.max(Some(r));
                }
            }
        }
        for &v in &set {
            self.member[v as usize] = false;
        }
        if open {
            self.regions[level as usize] = set;
            return level + 1;
        }
        let Some(to) = above else {
            self.regions[level as usize] = set.clone();
            return self.win(set, player).expect("a dominion has vertices");
        };
        for &v in &set {
            self.region[v as usize] = to;
        }
        self.regions[to as usize].extend(set);
        self.reset_from(to + 1);
        to
    }
}
