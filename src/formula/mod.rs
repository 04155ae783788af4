//! State, regular and action formulas. Knows nothing of linear processes.

pub mod typecheck;
pub mod typed;
