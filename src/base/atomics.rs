//! Atomic words of the tables that threads share: those of the standard library, or those of a
//! model checker for interleavings.
//!
//! The package `concurrency/` builds the tables by themselves with `--cfg loom`, which tries every
//! order of accesses that the memory model allows. Nothing else sets it.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
