//! Processes: typed specification, linearisation, direct semantics, static analyses. Independent of
//! the storage of states.
#![warn(missing_docs)]

pub mod anatomy;
pub mod confluence;
pub mod direct;
pub mod direct_steps;
pub mod labels;
pub mod linear;
pub mod linearise;
pub mod open_constants;
pub mod print;
pub mod simplify;
pub mod spec;
pub mod time;
pub mod typecheck;
pub mod unfold;
