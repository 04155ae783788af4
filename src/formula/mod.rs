//! State, regular and action formulas. Knows nothing of linear processes.

pub mod equations;
pub mod file_labels;
mod inward;
pub mod naive;
pub mod normal;
mod scope;
pub mod typecheck;
pub mod typed;
