//! Solvers of parity games: [`Game`] -> [`Solution`], behind one registry.
//!
//! Solvers know nothing of where a game came from, and nothing of each other's results;
//! `game::verify` checks what they say.
#![warn(missing_docs)]

pub mod auto;
pub mod priority_promotion;
pub mod zielonka;

use mu_base::limits::{Budget, Stop};
use mu_game::{Game, Solution};

/// An algorithm.
pub trait Solver: Sync {
    /// The name that options and reports use.
    fn name(&self) -> &'static str;
    /// One line for the help.
    fn about(&self) -> &'static str;
    /// Solves a whole game, or says which limit stopped it.
    fn solve(&self, game: &Game, budget: &Budget) -> Result<Solution, Stop>;
}

/// All solvers; the first is the default.
pub fn solvers() -> &'static [&'static dyn Solver] {
    &[&auto::Auto, &zielonka::Zielonka, &priority_promotion::Promotion]
}

/// The solver for who does not choose.
pub fn default_solver() -> &'static dyn Solver {
    solvers()[0]
}

/// The solver of a name.
pub fn by_name(name: &str) -> Option<&'static dyn Solver> {
    solvers().iter().copied().find(|s| s.name() == name)
}
