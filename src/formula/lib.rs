//! State, regular and action formulas. Knows nothing of linear processes.
#![warn(missing_docs)]

pub mod correct;
pub mod equations;
mod inward;
pub mod mentioned;
pub mod naive;
pub mod normal;
pub mod real;
mod scope;
pub mod typecheck;
pub mod typed;
