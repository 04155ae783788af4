//! The symbolic engine: reachability over the waist with list decision diagrams.
//!
//! Input -> output: any [`crate::model::Model`] -> exact counts ([`reach()`]), or a
//! shortest path to a goal ([`find()`]). Knows slots and transition groups only.
//! Diagrams are in [`ldd`], which stands by itself.

mod find;
pub mod ldd;
mod order;
mod reach;
mod relation;
mod saturation;
mod tune;
#[cfg(test)]
mod tests;

pub use find::{Goal, Trace, find};
pub use order::{Order, candidate_orders};
pub use reach::{Options, Outcome, Strategy, reach};
