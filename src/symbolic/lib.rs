//! The symbolic engine: reachability of a [`mu_model::Model`] with list decision diagrams.
//!
//! Input -> output: any [`mu_model::Model`] -> exact counts ([`reach()`]), a shortest path to a
//! goal ([`find()`]), the decision of an observer of its labels ([`watch()`]), or the winner of a
//! game on its labels ([`play()`]). Knows slots and transition groups only. The diagrams are in
//! [`ldd`], which is independent of the rest.
#![warn(missing_docs)]

mod arena;
mod learned_steps;
mod certify;
mod label_classes;
mod count;
mod helpers;
mod cycle;
mod goal_search;
mod game;
pub mod ldd;
mod order;
mod path;
mod product;
mod reach;
mod relation;
mod saturation;
mod order_search;
mod zielonka;
#[cfg(test)]
mod tests;

pub use arena::{Answer, GameRules, Player};
pub use game::{GameEvidence, GameOutcome, Vertex, play};
pub use goal_search::{Goal, GoalPath, find};
pub use order::{SlotOrder, candidate_orders};
pub use product::{DecisionKind, LabelTest, Observer, ProductOutcome, ProductRun, watch};
pub use reach::{ReachOutcome, Strategy, SymbolicOptions, reach};
