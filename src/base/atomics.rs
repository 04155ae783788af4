//! Atomic integers of the tables that threads share: those of the standard library, or those of the
//! interleaving checker loom.
//!
//! The package `concurrency/` builds the tables alone with `--cfg loom`, which tries every order of
//! accesses that the memory model allows. No other build sets it.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
