//! Zielonka's recursive algorithm, applied to strongly connected components in sequence.
//!
//! Zielonka, "Infinite games on finitely coloured graphs" (1998), with the improvements of
//! Friedmann and Lange (2009) and van Dijk ("Oink", 2018): dead ends and loops first; components
//! bottom-up, each result attracted into the components above; the highest priorities of one parity
//! are processed together; if the opponent's region attracts nothing more, the second recursive
//! call is omitted. The recursion is a list of frames, and a subgame is a range of the trail of
//! removed vertices, so neither a subgame nor a deep game needs stack.
//!
//! Cost: O(moves) for games that one pass decides; exponential in the number of changes of parity
//! in the worst case. Memory: about 30 bytes a vertex and 4 a move (the reverse moves), in addition
//! to the game.

use crate::{Game, Player, Solution};
use mu_base::components::{Graph, components};
use mu_base::ids::{Maybe, VertexId};
use mu_base::limits::{Budget, Stop};
use mu_base::narrow;

use super::Solver;

/// Zielonka's algorithm; see the module header.
pub struct Zielonka;

impl Solver for Zielonka {
    fn name(&self) -> &'static str {
        "zielonka"
    }
    fn summary(&self) -> &'static str {
        "recursive algorithm of Zielonka by strongly connected components"
    }
    fn solve(&self, game: &Game, budget: &Budget) -> Result<Solution, Stop> {
        solve_within(game, budget, u64::MAX).map(|s| s.expect("there is no limit of steps"))
    }
}

/// Solves within `steps` steps (attracted vertices); `None` if that is not enough.
pub fn solve_within(game: &Game, budget: &Budget, steps: u64) -> Result<Option<Solution>, Stop> {
    let mut run = SolverRun::new(game, budget, steps);
    match run.whole() {
        Ok(()) => Ok(Some(run.solution())),
        Err(Halt::Limit(stop)) => Err(stop),
        Err(Halt::Steps) => Ok(None),
    }
}

/// Reason for an early end.
enum Halt {
    Limit(Stop),
    Steps,
}

/// Position of a vertex: outside of the component, in the trail (counted from 1), or active, which
/// is behind all of the trail and so inside of every subgame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
struct TrailPosition(u32);

impl TrailPosition {
    const OUTSIDE: TrailPosition = TrailPosition(0);
    const ACTIVE: TrailPosition = TrailPosition(u32::MAX);
}

/// A subgame in progress: the vertices removed since `start`, and the active ones.
struct Subgame {
    /// Its start in the trail.
    start: usize,
    /// The start of its vertices in the order of priorities.
    from: usize,
    /// The end, in the trail, of its head and of the vertices attracted to it.
    attracted: usize,
    /// The end of the head itself.
    heads: usize,
    /// Winner of the head's priority.
    player: Player,
    /// Lengths of the lists of won vertices at the start.
    won: [usize; 2],
}

struct SolverRun<'a> {
    game: &'a Game,
    budget: &'a Budget,
    pred_offsets: Vec<u64>,
    pred: Vec<u32>,
    /// The winner, if decided (or the winner in the current subgame).
    winner: Vec<Player>,
    strategy: Vec<Maybe>,
    decided: Vec<bool>,
    /// Moves of an undecided vertex that do not yet lose for its owner.
    open_moves: Vec<u32>,
    /// Newly decided vertices that are not propagated yet.
    queue: Vec<u32>,
    /// Valid for vertices of the current component only.
    place: Vec<TrailPosition>,
    trail: Vec<u32>,
    /// `mark[v] == stamp` for the vertices of the set in the current attractor computation.
    mark: Vec<u32>,
    /// Moves of the opponent that still lead outside, if `counted[v] == stamp`.
    count: Vec<u32>,
    counted: Vec<u32>,
    stamp: u32,
    /// The vertices of the current subgames won by each player.
    won: [Vec<u32>; 2],
    steps: u64,
    limit: u64,
}

impl<'a> SolverRun<'a> {
    fn new(game: &'a Game, budget: &'a Budget, limit: u64) -> Self {
        let n = game.vertex_count();
        let mut pred_offsets = vec![0u64; n + 1];
        for t in &game.successors {
            pred_offsets[t.index()] += 1;
        }
        let mut sum = 0;
        for o in &mut pred_offsets {
            sum += *o;
            *o = sum;
        }
        let mut pred = vec![0u32; game.edge_count()];
        for v in game.vertices() {
            for t in game.successors(v) {
                pred_offsets[t.index()] -= 1;
                pred[pred_offsets[t.index()] as usize] = v.number();
            }
        }
        Self {
            game,
            budget,
            pred_offsets,
            pred,
            winner: vec![Player::Even; n],
            strategy: vec![Maybe::NONE; n],
            decided: vec![false; n],
            open_moves: game.vertices().map(|v| narrow::index(game.successors(v).len())).collect(),
            queue: Vec::new(),
            place: vec![TrailPosition::OUTSIDE; n],
            trail: Vec::new(),
            mark: vec![0; n],
            count: vec![0; n],
            counted: vec![0; n],
            stamp: 0,
            won: [Vec::new(), Vec::new()],
            steps: 0,
            limit,
        }
    }

    fn whole(&mut self) -> Result<(), Halt> {
        self.simple();
        let found = components(&UndecidedGraph(self.game, &self.decided));
        for part in found.iter() {
            self.clock()?;
            let open: Vec<u32> =
                part.iter().copied().filter(|&v| !self.decided[v as usize]).collect();
            if !open.is_empty() {
                self.region(open)?;
            }
        }
        Ok(())
    }

    /// Polls the limits periodically.
    fn clock(&mut self) -> Result<(), Halt> {
        self.steps += 1;
        if self.steps.is_multiple_of(1024) {
            self.budget.check(0).map_err(Halt::Limit)?;
            if self.steps > self.limit {
                return Err(Halt::Steps);
            }
        }
        Ok(())
    }

    fn decide(&mut self, v: u32, winner: Player, to: Maybe) {
        self.decided[v as usize] = true;
        self.winner[v as usize] = winner;
        self.strategy[v as usize] = to;
        self.queue.push(v);
    }

    /// Computes the attractors of all decided vertices of the queue, in the whole game.
    fn propagate(&mut self) {
        while let Some(v) = self.queue.pop() {
            let winner = self.winner[v as usize];
            for i in self.pred_offsets[v as usize]..self.pred_offsets[v as usize + 1] {
                let u = self.pred[i as usize];
                if self.decided[u as usize] {
                    continue;
                }
                if self.game.owners[u as usize] == winner {
                    self.decide(u, winner, Maybe::some(v));
                } else {
                    self.open_moves[u as usize] -= 1;
                    if self.open_moves[u as usize] == 0 {
                        self.decide(u, winner, Maybe::NONE);
                    }
                }
            }
        }
    }

    /// Decides dead ends and loops.
    fn simple(&mut self) {
        for v in self.game.vertices() {
            let i = v.index();
            let owner = self.game.owners[i];
            let moves = self.game.successors(v);
            // Parallel loops are counted separately.
            let loops = narrow::index(moves.iter().filter(|&&t| t == v).count());
            if loops > 0 && Player::of_priority(self.game.priorities[i]) == owner {
                self.decide(v.number(), owner, Maybe::some(v.number()));
                continue;
            }
            self.open_moves[i] -= loops;
            if self.open_moves[i] == 0 {
                self.decide(v.number(), owner.opponent(), Maybe::NONE);
            }
        }
        self.propagate();
    }

    fn inside(&self, v: u32, start: usize) -> bool {
        self.place[v as usize].0 as usize > start
    }

    fn remove(&mut self, v: u32) {
        self.trail.push(v);
        self.place[v as usize] = TrailPosition(narrow::index(self.trail.len()));
    }

    /// Extends `set` (with a marked first part) to its attractor for `player` in the subgame.
    fn attract(&mut self, set: &mut Vec<u32>, player: Player, start: usize) -> Result<(), Halt> {
        let mut next = 0;
        while next < set.len() {
            self.clock()?;
            let v = set[next];
            next += 1;
            for i in self.pred_offsets[v as usize]..self.pred_offsets[v as usize + 1] {
                let u = self.pred[i as usize];
                if self.decided[u as usize]
                    || self.mark[u as usize] == self.stamp
                    || !self.inside(u, start)
                {
                    continue;
                }
                if self.game.owners[u as usize] == player {
                    self.strategy[u as usize] = Maybe::some(v);
                } else {
                    if self.counted[u as usize] != self.stamp {
                        self.counted[u as usize] = self.stamp;
                        let moves = self.game.successors(VertexId::of(u));
                        let open = moves
                            .iter()
                            .filter(|t| !self.decided[t.index()] && self.inside(t.number(), start));
                        self.count[u as usize] = narrow::index(open.count());
                    }
                    self.count[u as usize] -= 1;
                    if self.count[u as usize] > 0 {
                        continue;
                    }
                    self.strategy[u as usize] = Maybe::NONE;
                }
                self.mark[u as usize] = self.stamp;
                set.push(u);
            }
        }
        Ok(())
    }

    fn new_stamp(&mut self) {
        if self.stamp == u32::MAX {
            self.mark.fill(0);
            self.counted.fill(0);
            self.stamp = 0;
        }
        self.stamp += 1;
    }

    /// Puts the active vertices of the highest priorities of one parity, from a position of the
    /// order on, into `set`, marked. Returns the start of the next parity.
    fn head(&mut self, order: &[u32], from: usize, player: Player, set: &mut Vec<u32>) -> usize {
        self.new_stamp();
        set.clear();
        let mut i = from;
        while i < order.len() {
            let v = order[i];
            if self.place[v as usize] == TrailPosition::ACTIVE {
                if Player::of_priority(self.game.priorities[v as usize]) != player {
                    break;
                }
                self.mark[v as usize] = self.stamp;
                set.push(v);
            }
            i += 1;
        }
        i
    }

    /// Solves the undecided vertices of a component. Their moves lead to each other or to decided
    /// vertices won by the opponent.
    fn region(&mut self, mut order: Vec<u32>) -> Result<(), Halt> {
        // Positions in the trail distinguish subgames; vertices of other components have no
        // position or are decided.
        self.trail.clear();
        for w in &mut self.won {
            w.clear();
        }
        for &v in &order {
            self.place[v as usize] = TrailPosition::ACTIVE;
        }
        order.sort_unstable_by_key(|&v| std::cmp::Reverse(self.game.priorities[v as usize]));
        let mut frames = vec![Subgame {
            start: 0,
            from: 0,
            attracted: 0,
            heads: 0,
            player: Player::Even,
            won: [0, 0],
        }];
        let mut set = Vec::new();
        // True: the last frame begins; false: its inner frame was solved.
        let mut down = true;
        while let Some(frame) = frames.last_mut() {
            if down {
                let Some(head) = (frame.from..order.len())
                    .find(|&i| self.place[order[i] as usize] == TrailPosition::ACTIVE)
                else {
                    frames.pop();
                    down = false;
                    continue;
                };
                frame.from = head;
                frame.player = Player::of_priority(self.game.priorities[order[head] as usize]);
                frame.won = [self.won[0].len(), self.won[1].len()];
                let (player, start) = (frame.player, frame.start);
                let i = self.head(&order, head, player, &mut set);
                frame.heads = frame.start + set.len();
                self.attract(&mut set, player, start)?;
                for &v in &set {
                    self.remove(v);
                }
                let attracted = self.trail.len();
                if let Some(frame) = frames.last_mut() {
                    frame.attracted = attracted;
                }
                frames.push(Subgame {
                    start: attracted,
                    from: i,
                    attracted: 0,
                    heads: 0,
                    player,
                    won: [0, 0],
                });
                continue;
            }
            let Subgame { start, attracted, heads, player, won, .. } = *frame;
            let opponent = player.opponent();
            self.new_stamp();
            set.clear();
            set.extend_from_slice(&self.won[opponent as usize][won[opponent as usize]..]);
            for &v in &set {
                self.mark[v as usize] = self.stamp;
            }
            let lost = set.len();
            if lost > 0 {
                self.attract(&mut set, opponent, start)?;
            }
            if set.len() == lost {
                // The player wins the head and its attractor; from the head any move suffices that
                // stays outside the lost part.
                for i in start..attracted {
                    let v = self.trail[i];
                    self.winner[v as usize] = player;
                    self.won[player as usize].push(v);
                    if i < heads && self.game.owners[v as usize] == player {
                        let to = self.game.successors(VertexId::of(v)).iter().find(|t| {
                            !self.decided[t.index()]
                                && self.inside(t.number(), start)
                                && self.mark[t.index()] != self.stamp
                        });
                        self.strategy[v as usize] = to.map(|t| t.number()).into();
                    }
                }
                frames.pop();
                continue;
            }
            // The opponent wins the attracted vertices; the rest is solved again in the same range.
            for i in start..self.trail.len() {
                self.place[self.trail[i] as usize] = TrailPosition::ACTIVE;
            }
            self.trail.truncate(start);
            for (list, &len) in self.won.iter_mut().zip(&won) {
                list.truncate(len);
            }
            for &v in &set {
                self.winner[v as usize] = opponent;
                self.won[opponent as usize].push(v);
                self.remove(v);
            }
            frame.start = self.trail.len();
            down = true;
        }
        for player in [Player::Even, Player::Odd] {
            for v in std::mem::take(&mut self.won[player as usize]) {
                let to = if self.game.owners[v as usize] == player {
                    self.strategy[v as usize]
                } else {
                    Maybe::NONE
                };
                self.decide(v, player, to);
            }
        }
        self.propagate();
        Ok(())
    }

    fn solution(self) -> Solution {
        let strategy = (self.strategy.iter().enumerate())
            .map(|(v, to)| {
                to.get().filter(|_| self.game.owners[v] == self.winner[v]).map(VertexId::of)
            })
            .collect();
        Solution { winners: self.winner, strategy }
    }
}

/// The undecided vertices of a game.
struct UndecidedGraph<'a>(&'a Game, &'a [bool]);

impl Graph for UndecidedGraph<'_> {
    fn vertices(&self) -> usize {
        self.0.vertex_count()
    }
    fn contains(&self, vertex: u32) -> bool {
        !self.1[vertex as usize]
    }
    fn edges(&self, vertex: u32) -> std::ops::Range<u64> {
        self.0.offsets[vertex as usize]..self.0.offsets[vertex as usize + 1]
    }
    fn target(&self, edge: u64) -> Option<u32> {
        Some(self.0.successors[edge as usize].number())
    }
}
