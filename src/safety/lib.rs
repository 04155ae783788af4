//! Safety of programs on weak memory.
//!
//! Input: a program of `program` and a memory model. Output: whether an unsafe state is reachable,
//! with a shortest interleaving ([`reach`]); whether store buffers change the behaviour of a
//! program ([`robust`], by the monitor of [`monitor`]), and in how many interleavings ([`count`]);
//! fences that make it robust ([`fences`]); whether a bound on store buffers restricts the
//! behaviour ([`buffers`]).
#![warn(missing_docs)]

pub mod buffers;
pub mod count;
pub mod fences;
pub mod monitor;
pub mod reach;
pub mod robust;
pub mod walks;
