//! The parity game of a check during its construction: vertices, edges, and immediately decided
//! values.
//!
//! A vertex is universal (a conjunction, owned by the player who wants *false*) or existential.
//! Known values propagate backwards by counters (an attractor to the constants), so decided
//! vertices need no further expansion. The rest is solved at intervals with the unexpanded frontier
//! given to either player: "on-the-fly solving" (cf. Laveaux, Wesselink, Willemse: "On-the-fly
//! solving for symbolic parity games", TACAS 2022, here for the explicit game).
//!
//! Cost: linear in vertices and edges for propagation; a solver run each time the game has doubled.
//! Invariant: a decided vertex never changes; an expanded undecided vertex has an undecided edge.

use mu_base::ids::{LabelId, Maybe, VertexId};
use mu_base::{Budget, Stop, narrow};
use mu_game::solve::Solver;
use mu_game::{Game, Player};

/// Value of a vertex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Truth {
    /// Not known.
    Open,
    /// Known.
    Known(bool),
}

/// An edge: an obligation at the same system state (`label` is `None`) or at the target of a
/// transition.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// Target vertex.
    pub to: u32,
    /// Label of the transition.
    pub label: Option<LabelId>,
}

/// The growing game.
#[derive(Default)]
pub struct Arena {
    universal: Vec<bool>,
    rank: Vec<u32>,
    truth: Vec<Truth>,
    /// First edge, once expanded, and number of edges.
    range: Vec<(Maybe, u32)>,
    /// Number of edges to open targets.
    open_edges: Vec<u32>,
    /// Winning edge of a decided vertex that its owner wins, unless it is decided by itself.
    choice: Vec<Maybe>,
    first_in: Vec<Maybe>,
    next_in: Vec<Maybe>,
    from: Vec<u32>,
    edges: Vec<Edge>,
    decided: usize,
}

impl Arena {
    /// Adds an unexpanded vertex.
    pub fn add(&mut self, universal: bool, rank: u32) -> u32 {
        self.universal.push(universal);
        self.rank.push(rank);
        self.truth.push(Truth::Open);
        self.range.push((Maybe::NONE, 0));
        self.open_edges.push(0);
        self.choice.push(Maybe::NONE);
        self.first_in.push(Maybe::NONE);
        narrow::index(self.universal.len()) - 1
    }
    /// Sets owner and rank of an unexpanded vertex.
    pub fn set_owner(&mut self, v: u32, universal: bool, rank: u32) {
        self.universal[v as usize] = universal;
        self.rank[v as usize] = rank;
    }
    /// Returns the rank of a vertex.
    pub fn rank(&self, v: u32) -> u32 {
        self.rank[v as usize]
    }
    /// Returns the number of vertices.
    pub fn len(&self) -> usize {
        self.universal.len()
    }
    /// True if there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.universal.is_empty()
    }
    /// Returns the number of edges.
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }
    /// Returns the value of a vertex.
    pub fn truth(&self, v: u32) -> Truth {
        self.truth[v as usize]
    }
    /// True if a vertex is a conjunction.
    pub fn is_universal(&self, v: u32) -> bool {
        self.universal[v as usize]
    }
    /// True if a vertex has been expanded.
    pub fn is_expanded(&self, v: u32) -> bool {
        self.range[v as usize].0.is_some()
    }
    /// Returns the edges of an expanded vertex (none for one decided at its expansion).
    pub fn edges(&self, v: u32) -> &[Edge] {
        let (start, count) = self.range[v as usize];
        start.get().map_or(&[], |start| &self.edges[start as usize..(start + count) as usize])
    }
    /// Returns the edge by which the owner wins from a vertex; `None` if none was chosen.
    pub fn chosen_edge(&self, v: u32) -> Option<Edge> {
        self.choice[v as usize].get().map(|e| self.edges[e as usize])
    }
    /// True if a vertex has an open predecessor, so that its value still matters.
    pub fn has_open_predecessor(&self, v: u32) -> bool {
        let mut e = self.first_in[v as usize];
        while let Some(edge) = e.get() {
            if self.truth[self.from[edge as usize] as usize] == Truth::Open {
                return true;
            }
            e = self.next_in[edge as usize];
        }
        false
    }
    /// Decides a vertex by itself (a rule without target).
    pub fn decide(&mut self, v: u32, value: bool) {
        self.spread(v, value, None);
    }
    /// Sets the edges of a vertex.
    pub fn expand(&mut self, v: u32, edges: &[Edge]) {
        let start = narrow::index(self.edges.len());
        self.range[v as usize] = (Maybe::some(start), narrow::index(edges.len()));
        let all = self.universal[v as usize];
        let mut open = 0;
        let mut won = None;
        for (i, edge) in edges.iter().enumerate() {
            let e = start + narrow::index(i);
            self.edges.push(*edge);
            self.from.push(v);
            self.next_in.push(self.first_in[edge.to as usize]);
            self.first_in[edge.to as usize] = Maybe::some(e);
            match self.truth[edge.to as usize] {
                Truth::Open => open += 1,
                Truth::Known(value) if value != all && won.is_none() => won = Some(e),
                Truth::Known(_) => {}
            }
        }
        self.open_edges[v as usize] = open;
        if won.is_some() {
            self.spread(v, !all, won);
        } else if open == 0 {
            self.spread(v, all, None);
        }
    }
    fn spread(&mut self, v: u32, value: bool, choice: Option<u32>) {
        let mut stack = vec![(v, value, choice)];
        while let Some((v, value, choice)) = stack.pop() {
            if self.truth[v as usize] != Truth::Open {
                continue;
            }
            self.truth[v as usize] = Truth::Known(value);
            self.choice[v as usize] = choice.into();
            self.decided += 1;
            let mut e = self.first_in[v as usize];
            while let Some(edge) = e.get() {
                let u = self.from[edge as usize] as usize;
                if self.truth[u] == Truth::Open {
                    if self.universal[u] != value {
                        stack.push((narrow::index(u), value, Some(edge)));
                    } else {
                        self.open_edges[u] -= 1;
                        if self.open_edges[u] == 0 {
                            stack.push((narrow::index(u), value, None));
                        }
                    }
                }
                e = self.next_in[edge as usize];
            }
        }
    }
    /// Solves the open vertices reachable from `root`, with unexpanded vertices decided as
    /// `frontier`. Records the certain part: the winning region of the player to whom the frontier
    /// is hostile.
    pub fn solve(
        &mut self,
        root: u32,
        frontier: bool,
        solver: &dyn Solver,
        budget: &Budget,
    ) -> Result<(), Stop> {
        // Number the open part.
        let mut number = vec![Maybe::NONE; self.len()];
        let mut order = vec![root];
        number[root as usize] = Maybe::some(0);
        let mut at = 0;
        while at < order.len() {
            let v = order[at];
            at += 1;
            for i in 0..self.edges(v).len() {
                let to = self.edges(v)[i].to;
                if self.truth[to as usize] == Truth::Open && !number[to as usize].is_some() {
                    number[to as usize] = Maybe::some(narrow::index(order.len()));
                    order.push(to);
                }
            }
        }
        let mut game = Game::default();
        for (i, &v) in order.iter().enumerate() {
            if self.is_expanded(v) {
                let owner = if self.universal[v as usize] { Player::Odd } else { Player::Even };
                let open =
                    self.edges(v).iter().filter(|e| self.truth[e.to as usize] == Truth::Open);
                game.push(
                    owner,
                    self.rank[v as usize],
                    open.map(|e| {
                        VertexId::of(
                            number[e.to as usize].get().expect("an open target has a number"),
                        )
                    }),
                );
            } else {
                // A loop that the player of the frontier's value wins.
                game.push(Player::Odd, u32::from(!frontier), [VertexId::new(i)]);
            }
        }
        drop(number);
        let solution = solver.solve(&game, budget)?;
        let mut decided = Vec::new();
        let all_expanded = order.iter().all(|v| self.is_expanded(*v));
        for (i, &v) in order.iter().enumerate() {
            let winner = solution.winners[i] == Player::Even;
            if winner != frontier || all_expanded {
                let to = solution.strategy[i].map(|t| order[t.index()]);
                let own = self.universal[v as usize] != winner;
                let place =
                    to.filter(|_| own).and_then(|to| self.edges(v).iter().position(|e| e.to == to));
                let choice = place
                    .zip(self.range[v as usize].0.get())
                    .map(|(place, first)| first + narrow::index(place));
                decided.push((v, winner, choice));
            }
        }
        for &(v, value, choice) in &decided {
            // First record the solver's choices: propagation must not replace them by shorter but
            // cyclic ones.
            self.truth[v as usize] = Truth::Known(value);
            self.choice[v as usize] = choice.into();
            self.decided += 1;
        }
        for (v, value, _) in decided {
            self.propagate(v, value);
        }
        Ok(())
    }
    /// Propagates the value of a vertex that was decided by itself to its predecessors.
    fn propagate(&mut self, v: u32, value: bool) {
        let mut e = self.first_in[v as usize];
        while let Some(edge) = e.get() {
            let u = self.from[edge as usize] as usize;
            if self.truth[u] == Truth::Open {
                if self.universal[u] != value {
                    self.spread(narrow::index(u), value, Some(edge));
                } else {
                    self.open_edges[u] -= 1;
                    if self.open_edges[u] == 0 {
                        self.spread(narrow::index(u), value, None);
                    }
                }
            }
            e = self.next_in[edge as usize];
        }
    }
}
