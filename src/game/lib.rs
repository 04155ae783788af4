//! Parity games in flat arrays.
//!
//! Convention, as in PGSolver and Oink: two players, Even (0) and Odd (1); the owner of a vertex
//! moves. An infinite play is won by Even if the **highest** priority that occurs infinitely often
//! is even, else by Odd. A player who cannot move loses. So in the game of an equation system: Even
//! proves, Odd refutes; `nu` has even priorities, `mu` odd ones, and the equations written first
//! have the highest.
#![warn(missing_docs)]

pub mod bes;
pub mod moves;
pub mod pg;
mod scanner;
pub mod solve;
pub mod verify;

use mu_base::ids::VertexId;
use mu_base::narrow;

/// A player, and also the parity of a priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Default)]
pub enum Player {
    /// Player 0; proves; chooses at disjunctions.
    #[default]
    Even,
    /// Player 1; refutes; chooses at conjunctions.
    Odd,
}

impl Player {
    /// Returns the other player.
    #[inline]
    pub fn opponent(self) -> Self {
        match self {
            Player::Even => Player::Odd,
            Player::Odd => Player::Even,
        }
    }
    /// Returns the player who wins a priority.
    #[inline]
    pub fn of_priority(priority: u32) -> Self {
        if priority.is_multiple_of(2) { Player::Even } else { Player::Odd }
    }
}

/// A parity game. Successors of vertex `v` are `successors[offsets[v]..offsets[v + 1]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Game {
    /// The initial vertex.
    pub initial: VertexId,
    /// Priority of each vertex.
    pub priorities: Vec<u32>,
    /// Owner of each vertex.
    pub owners: Vec<Player>,
    /// `vertices + 1` offsets.
    pub offsets: Vec<u64>,
    /// The moves.
    pub successors: Vec<VertexId>,
    /// Names of the vertices; empty, or one each.
    pub names: Vec<String>,
}

impl Default for Game {
    fn default() -> Self {
        Self {
            initial: VertexId::of(0),
            priorities: Vec::new(),
            owners: Vec::new(),
            offsets: vec![0],
            successors: Vec::new(),
            names: Vec::new(),
        }
    }
}

impl Game {
    /// Returns the number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.owners.len()
    }
    /// Returns the number of moves.
    pub fn edge_count(&self) -> usize {
        self.successors.len()
    }
    /// Returns the targets of the moves at a vertex.
    #[inline]
    pub fn successors(&self, vertex: VertexId) -> &[VertexId] {
        &self.successors
            [self.offsets[vertex.index()] as usize..self.offsets[vertex.index() + 1] as usize]
    }
    /// Adds a vertex; its moves may lead to vertices that are added later.
    pub fn push(
        &mut self,
        owner: Player,
        priority: u32,
        successors: impl IntoIterator<Item = VertexId>,
    ) -> VertexId {
        let id = VertexId::new(self.owners.len());
        self.owners.push(owner);
        self.priorities.push(priority);
        self.successors.extend(successors);
        self.offsets.push(self.successors.len() as u64);
        id
    }
    /// Iterates over all vertices.
    pub fn vertices(&self) -> impl Iterator<Item = VertexId> + use<> {
        (0..narrow::index(self.vertex_count())).map(VertexId::of)
    }
}

/// Winners and winning strategies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// The winner from each vertex.
    pub winners: Vec<Player>,
    /// The winning move at each vertex that its owner wins; `None` at the others.
    pub strategy: Vec<Option<VertexId>>,
}

impl Solution {
    /// Returns the winner from a vertex.
    pub fn winner(&self, vertex: VertexId) -> Player {
        self.winners[vertex.index()]
    }
}
