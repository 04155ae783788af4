//! Memory models as data: executions of events, relations between them, and the languages that
//! define the allowed executions.
//!
//! This layer knows no syntax of programs: front ends create executions, models judge them.

#![warn(missing_docs)]

pub mod architecture;
pub mod cat;
mod dialect;
pub mod execution;
mod execution_search;
pub mod history;
pub mod lattice;
pub mod models;
pub mod relation;
pub mod views;

pub use architecture::Architecture;
pub use execution::{
    Event, EventKind, Execution, NameMeaning, RelationId, SetId, Skeleton, Vocabulary,
};
pub use relation::{Relation, Set};
