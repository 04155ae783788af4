//! A machine against memory models: does every program, up to a number of operations of each
//! processor, behave as a model allows?
//!
//! In: a model of the machine, which chooses its operations freely, by itself or beside the most
//! general program; an [`interface`] that says which labels are memory operations; memory models.
//! Out: for each memory model, that it allows all that the machine does, or a smallest program and
//! outcome that it forbids ([`search`]), with a run of the machine ([`witness`]) and a litmus test
//! ([`mod@write`]).
//!
//! A *history* is what the axioms of a memory model see: the operations of each processor in
//! program order, with the values that loads return. Which histories a machine has depends only on
//! its visible traces; so the machine is explored once, all other labels are hidden,
//! and it is reduced by branching bisimilarity ([`machine`]). Histories are then enumerated by the
//! number of their operations. With each goes the set of states that the machine can be in after
//! it: the determinisation of the machine, over histories instead of traces. Most histories
//! share their sets, so the cost is that of the histories, not of pairs of history and state.
//! Histories are taken up to the symmetries that the machine is found to have ([`symmetry`]), and
//! judged up to those that all memory models have ([`judge`]). [`operations`] reads the operations
//! of one run, of whatever came to it, for a graph.
#![warn(missing_docs)]

pub mod alphabet;
pub mod faults;
pub mod interface;
pub mod judge;
pub mod machine;
pub mod names;
pub mod operations;
pub mod search;
pub mod sequences;
pub mod shown;
pub mod suite;
pub mod symmetry;
pub mod witness;
pub mod write;
