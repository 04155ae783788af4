//! State, regular and action formulas. Knows nothing of linear processes.

pub mod naive;
pub mod normal;
pub mod typecheck;
pub mod typed;
