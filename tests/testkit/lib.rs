//! Oracles and generators that tests of several layers use. Products never depend on this package;
//! a generator that only one layer's tests use is in their folder.
//!
//! Every generator depends on its seed only, so that a failure can be replayed. Invariant: an
//! oracle shares no code with the implementation that it is compared with, except for the typed
//! input.
#![warn(missing_docs)]

pub mod cubicle_grammar;
pub mod cubicle_interpreter;
pub mod cubicle_systems;
pub mod games;
pub mod litmus_tests;
