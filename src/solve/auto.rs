//! The default: Zielonka's algorithm, and priority promotion in turn with it where a game turns out
//! to be hard.
//!
//! The families on which one of the two is exponential are seldom bad for the other, so each gets a
//! share of steps that grows by four. Cost: that of the better one, up to a constant.

use mu_base::limits::{Budget, Stop};
use mu_game::{Game, Solution};

use super::{Solver, priority_promotion, zielonka};

/// See the module.
pub struct Auto;

impl Solver for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }
    fn about(&self) -> &'static str {
        "zielonka, and promotion in turn with it where a game is hard"
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
