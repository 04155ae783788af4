//! Conformance of a machine to memory models: is every behaviour of every program, up to a number
//! of operations per processor, allowed by the model?
//!
//! Input: a model of the machine, which chooses its operations freely, either by itself or in
//! parallel with the most general program; an [`interface`], which lists the labels that are memory
//! operations; memory models. Output for each memory model: that it allows all behaviours, or a
//! smallest program and outcome that it forbids ([`search`]), with a run of the machine
//! ([`witness`]) and a litmus test ([`mod@write`]).
//!
//! A *history* is the input of the axioms: the operations of each processor in program order, with
//! the values that loads return. The histories of a machine depend only on its visible traces. So
//! the machine is explored once, all other labels are hidden, and it is reduced by branching
//! bisimilarity ([`machine`]). Histories are then enumerated by the number of their operations,
//! each with the set of states that the machine can be in after it. This is the determinisation of
//! the machine, over histories instead of traces. Most histories share their sets, so the cost is
//! that of the histories, not of pairs of history and state. Histories are enumerated up to the
//! verified symmetries of the machine ([`symmetry`]), and judged up to the symmetries of all memory
//! models ([`judge`]). [`operations`] reads the operations of a single run, for a graph.
#![warn(missing_docs)]

pub mod alphabet;
pub mod completeness;
pub mod cores;
pub mod every_length;
mod expansion;
pub mod faults;
pub mod history_set;
pub mod interface;
pub mod judge;
pub mod level;
pub mod list_cores;
pub mod machine;
pub mod names;
pub mod operations;
pub mod panel;
mod parallel;
pub mod programs;
pub mod saturation;
pub mod search;
pub mod sequences;
mod state_sets;
pub mod litmus_outcomes;
pub mod suite;
pub mod symmetry;
pub mod witness;
pub mod write;
