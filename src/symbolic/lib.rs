//! The symbolic engine: reachability over the waist with list decision diagrams.
//!
//! Input -> output: any [`mu_model::Model`] -> exact counts ([`reach()`]), or a
//! shortest path to a goal ([`find()`]), or what an observer of its labels decides ([`watch()`]). Knows slots and transition groups only.
//! Diagrams are in [`ldd`], which stands by itself.
#![warn(missing_docs)]

mod count;
mod crew;
mod cycle;
mod find;
pub mod ldd;
mod order;
mod path;
mod product;
mod reach;
mod relation;
mod saturation;
mod tune;
#[cfg(test)]
mod tests;

pub use find::{Goal, Trace, find};
pub use order::{Order, candidate_orders};
pub use product::{End, Observer, Run, Test, Watched, watch};
pub use reach::{Options, Outcome, Strategy, reach};
