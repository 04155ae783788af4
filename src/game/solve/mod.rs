//! Solvers of parity games: [`Game`] -> [`Solution`], behind one registry.
//!
//! Solvers know nothing of the origin of a game, and nothing of each other's results;
//! `game::verify` checks their solutions.

pub mod auto;
pub mod priority_promotion;
pub mod zielonka;

use crate::{Game, Solution};
use mu_base::limits::{Budget, Stop};

/// An algorithm.
pub trait Solver: Sync {
    /// Returns the name for options and reports.
    fn name(&self) -> &'static str;
    /// Returns one line for the help.
    fn summary(&self) -> &'static str;
    /// Solves a whole game; `Err` with the limit that was reached.
    fn solve(&self, game: &Game, budget: &Budget) -> Result<Solution, Stop>;
}

/// Returns all solvers; the first is the default.
pub fn solvers() -> &'static [&'static dyn Solver] {
    &[&auto::Auto, &zielonka::Zielonka, &priority_promotion::Promotion]
}

/// Returns the default solver.
pub fn default_solver() -> &'static dyn Solver {
    solvers()[0]
}

/// Returns the solver with a name; `None` if there is none.
pub fn by_name(name: &str) -> Option<&'static dyn Solver> {
    solvers().iter().copied().find(|s| s.name() == name)
}
