//! State, regular and action formulas. Knows nothing of linear processes.
#![warn(missing_docs)]

pub mod parentheses;
pub mod equations;
mod miniscope;
pub mod action_names;
pub mod direct;
pub mod normal;
pub mod real;
mod action_miniscope;
pub mod typecheck;
pub mod typed;
