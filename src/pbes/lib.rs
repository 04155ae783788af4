//! From (formula, transition system) to a verdict: the formula as an automaton over labels, its
//! product with a model, the parity game.
#![warn(missing_docs)]

mod among;
pub mod arena;
pub mod ask;
mod automaton;
mod channel;
mod batches;
pub mod check;
mod explain;
pub mod flow;
pub mod game;
pub mod instantiate;
pub mod bare;
pub mod lazily;
mod mentions;
pub mod obligations;
mod order;
mod plan;
pub mod print;
pub mod priority;
pub mod product;
pub mod quotient;
pub mod rules;
mod run;
pub mod source;
pub mod symbolic;
mod symbolic_game;
mod trace;

pub use check::{Answer, Options, Route, Verdict, check};
pub use flow::Shelf;
pub use order::Order;
pub use priority::{Ban, Priority};
pub use quotient::Reduced;

#[cfg(test)]
mod tests;
