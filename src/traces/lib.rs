//! Memory traces: logs of the loads and stores of real threads, judged by memory models.
//!
//! Log -> [`TraceReader`] -> [`Trace`] -> [`decide()`] -> [`Verdict`]. A trace has no model: it
//! holds which thread loaded and stored which value, in program order. [`decide()`] finds an order
//! of all operations that a memory model allows and that explains the values, or the reason why
//! there is none. Every order is checked by independent code before it is given. A [`Stream`]
//! decides a trace part by part while it is read.

#![warn(missing_docs)]

pub mod decide;
pub mod generate;
pub mod litmus_test;
pub mod minimal;
pub mod model;
pub mod readers;
pub mod riscv;
pub mod stream;
pub mod trace;
pub mod witness;
mod witness_bytes;

pub use decide::{
    Conflict, DecisionOptions, OrderEdge, Reason, Verdict, Witness, WitnessStep, decide,
};
pub use model::TraceModel;
pub use readers::{ReadOptions, Sink, TraceReader, readers};
pub use stream::{FinalAnswer, Recount, Stream, StreamAnswer};
pub use trace::{
    Annotations, Fence, Initial, OpenFact, Operation, OperationKind, Trace, TraceBuilder,
};
