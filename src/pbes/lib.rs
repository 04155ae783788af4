//! From (formula, transition system) to a verdict: the formula as an automaton over labels, its
//! product with a model, the parity game.
#![warn(missing_docs)]

mod distributed_product;
pub mod arena;
pub mod automaton_client;
mod automaton;
mod channel;
mod batches;
pub mod check;
mod explain;
pub mod parallel_product;
pub mod game;
pub mod instantiate;
pub mod data_free;
pub mod on_the_fly;
mod mentioned_constants;
pub mod obligations;
pub mod pairs;
mod proviso;
mod plan;
pub mod print;
pub mod priority;
pub mod product;
pub mod quotient;
pub mod rules;
mod run;
pub mod transitions;
pub mod symbolic;
mod symbolic_game;
mod trace;

pub use batches::BatchSizes;
pub use check::{Answer, Method, Options, Verdict, check, constant_value};
pub use pairs::{PairProof, PairResult, prove_by_pairs};
pub use parallel_product::CheckpointStore;
pub use priority::{ForbiddenReason, Priority};
pub use proviso::ReductionUse;
pub use quotient::QuotientSize;

#[cfg(test)]
mod tests;
