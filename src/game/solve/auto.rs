//! Default solver: Zielonka's algorithm, alternating with priority promotion on hard games.
//!
//! The families on which one of the two is exponential are rarely hard for the other, so both get
//! alternate limits on steps, which grow by a factor of four. Cost: that of the better one, up to a
//! constant.

use crate::{Game, Solution};
use mu_base::limits::{Budget, Stop};

use super::{Solver, priority_promotion, zielonka};

/// The default solver; see the module header.
pub struct Auto;

impl Solver for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }
    fn summary(&self) -> &'static str {
        "zielonka, alternating with promotion on hard games"
    }
    fn solve(&self, game: &Game, budget: &Budget) -> Result<Solution, Stop> {
        let mut steps = 1_000_000 + 50 * (game.vertex_count() + game.edge_count()) as u64;
        loop {
            if let Some(solution) = zielonka::solve_within(game, budget, steps)? {
                return Ok(solution);
            }
            if let Some(solution) = priority_promotion::solve_within(game, budget, steps)? {
                return Ok(solution);
            }
            steps = steps.saturating_mul(4);
        }
    }
}
