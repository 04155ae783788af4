//! The symbolic engine: reachability over the waist with list decision diagrams.
//!
//! Input -> output: any [`mu_model::Model`] -> exact counts ([`reach()`]), or a
//! shortest path to a goal ([`find()`]), or what an observer of its labels decides ([`watch()`]),
//! or who wins a game on its labels ([`play()`]). Knows slots and transition groups only.
//! Diagrams are in [`ldd`], which stands by itself.
#![warn(missing_docs)]

mod arena;
mod board;
mod certify;
mod classes;
mod count;
mod crew;
mod cycle;
mod find;
mod game;
pub mod ldd;
mod order;
mod path;
mod product;
mod reach;
mod relation;
mod saturation;
mod tune;
mod zielonka;
#[cfg(test)]
mod tests;

pub use arena::{Answer, Player, Rules};
pub use find::{Goal, Trace, find};
pub use game::{Play, Played, Vertex, play};
pub use order::{Order, candidate_orders};
pub use product::{End, Observer, Run, Test, Watched, watch};
pub use reach::{Options, Outcome, Strategy, reach};
