//! Verification of solutions: [`Game`] + [`Solution`] -> nothing, or a flaw. Shares no code with
//! the solvers.
//!
//! A player wins from a set `W` of vertices by a strategy if (1) at own vertices the strategy is a
//! move into `W`; (2) the opponent's moves all stay in `W`; (3) no remaining cycle has a highest
//! priority of the opponent's parity. If both regions verify, every winner is correct. (3) is
//! checked by strongly connected components: the highest priority of a component must be the
//! player's; then the vertices with it are removed and the rest is checked again (King, Kupferman,
//! Vardi, "On the complexity of parity word automata", 2001). Cost: O(priorities * moves) at most,
//! usually a few passes. No recursion.

use super::{Game, Player, Solution};
use mu_base::ids::VertexId;
use mu_base::narrow;

/// Reason for rejecting a solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The arrays do not have one entry for each vertex.
    Size,
    /// The winner owns the vertex and the strategy has no move there.
    NoMove(VertexId),
    /// The move of the strategy is not in the game.
    NotASuccessor(VertexId, VertexId),
    /// A move, of the strategy or of the opponent, leaves the region of the vertex's winner.
    Leaves(VertexId, VertexId),
    /// A cycle remains through this vertex; its priority is the highest on the cycle and the
    /// opponent's.
    LosingCycle(VertexId),
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Flaw::Size => write!(f, "winners or strategy do not have one entry for each vertex"),
            Flaw::NoMove(v) => write!(f, "vertex {}: its owner wins but has no move", v.number()),
            Flaw::NotASuccessor(v, t) => {
                write!(
                    f,
                    "vertex {}: the strategy moves to {}, which is no successor",
                    v.number(),
                    t.number()
                )
            }
            Flaw::Leaves(v, t) => {
                write!(
                    f,
                    "vertex {}: the move to {} leaves the winner's region",
                    v.number(),
                    t.number()
                )
            }
            Flaw::LosingCycle(v) => write!(
                f,
                "vertex {}: its priority is the highest on a cycle that the loser can force",
                v.number()
            ),
        }
    }
}

/// Checks both players' regions and strategies.
pub fn verify(game: &Game, solution: &Solution) -> Result<(), Flaw> {
    let n = game.vertex_count();
    if solution.winners.len() != n || solution.strategy.len() != n {
        return Err(Flaw::Size);
    }
    for v in game.vertices() {
        let winner = solution.winner(v);
        if game.owners[v.index()] == winner {
            let t = solution.strategy[v.index()].ok_or(Flaw::NoMove(v))?;
            if !game.successors(v).contains(&t) {
                return Err(Flaw::NotASuccessor(v, t));
            }
            if solution.winner(t) != winner {
                return Err(Flaw::Leaves(v, t));
            }
        } else if let Some(&t) = game.successors(v).iter().find(|&&t| solution.winner(t) != winner)
        {
            return Err(Flaw::Leaves(v, t));
        }
    }
    Cycles { game, solution, part: vec![0; n], visit: vec![Visit::New; n] }.check()
}

/// Status of a vertex in the component search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    /// Not visited.
    New,
    /// On the stack of open vertices; the order of first visits.
    Open(u32),
    /// Its component is complete.
    Done,
}

/// The search for losing cycles in the game restricted by the strategies. No move there leads from
/// one winner's region to the other's.
struct Cycles<'a> {
    game: &'a Game,
    solution: &'a Solution,
    /// The number of the vertex set that a vertex is in, among those still to be checked; 0:
    /// removed.
    part: Vec<u32>,
    visit: Vec<Visit>,
}

impl Cycles<'_> {
    fn moves(&self, v: u32) -> &[VertexId] {
        match &self.solution.strategy[v as usize] {
            Some(t) if self.solution.winners[v as usize] == self.game.owners[v as usize] => {
                std::slice::from_ref(t)
            }
            _ => self.game.successors(VertexId::of(v)),
        }
    }

    fn check(mut self) -> Result<(), Flaw> {
        let mut sets: Vec<Vec<u32>> = vec![(0..narrow::index(self.game.vertex_count())).collect()];
        let mut names = 0;
        while let Some(set) = sets.pop() {
            names += 1;
            for &v in &set {
                self.part[v as usize] = names;
                self.visit[v as usize] = Visit::New;
            }
            for mut component in self.components(&set, names) {
                let priority = |v: &u32| self.game.priorities[*v as usize];
                // The first one with the highest priority.
                let highest = component
                    .iter()
                    .rev()
                    .copied()
                    .max_by_key(priority)
                    .expect("a component has a vertex");
                let top = priority(&highest);
                if self.solution.winners[highest as usize] != Player::of_priority(top) {
                    return Err(Flaw::LosingCycle(VertexId::of(highest)));
                }
                component.retain(|&v| {
                    let keep = self.game.priorities[v as usize] != top;
                    if !keep {
                        self.part[v as usize] = 0;
                    }
                    keep
                });
                if !component.is_empty() {
                    sets.push(component);
                }
            }
        }
        Ok(())
    }

    /// Returns the components with a cycle in one vertex set (path-based: Gabow 2000).
    fn components(&mut self, set: &[u32], part: u32) -> Vec<Vec<u32>> {
        let mut found = Vec::new();
        let mut clock = 0;
        let mut path: Vec<u32> = Vec::new(); // roots of components that may still merge, by number
        let mut open: Vec<u32> = Vec::new();
        let mut calls: Vec<(u32, usize)> = Vec::new();
        for &root in set {
            if self.visit[root as usize] != Visit::New {
                continue;
            }
            calls.push((root, 0));
            while let Some((v, i)) = calls.pop() {
                if i == 0 {
                    clock += 1;
                    self.visit[v as usize] = Visit::Open(clock);
                    path.push(clock);
                    open.push(v);
                }
                let next = self.moves(v).get(i).copied();
                if let Some(t) = next {
                    calls.push((v, i + 1));
                    if self.part[t.index()] == part {
                        match self.visit[t.index()] {
                            Visit::New => calls.push((t.number(), 0)),
                            Visit::Done => {}
                            Visit::Open(number) => {
                                while path.last().is_some_and(|&p| p > number) {
                                    path.pop();
                                }
                            }
                        }
                    }
                } else if path.last().is_some_and(|&p| self.visit[v as usize] == Visit::Open(p)) {
                    path.pop();
                    let from = open
                        .iter()
                        .rposition(|&w| w == v)
                        .expect("the root of a component is open");
                    let component = open.split_off(from);
                    let cyclic = component.len() > 1 || self.moves(v).contains(&VertexId::of(v));
                    for &w in &component {
                        self.visit[w as usize] = Visit::Done;
                    }
                    if cyclic {
                        found.push(component);
                    }
                }
            }
        }
        found
    }
}
