//! Safety of programs on weak memory.
//!
//! In: a program of `program` and a memory model. Out: whether an unsafe state is reached, with a
//! shortest interleaving ([`reach`]); whether store buffers change what a program does ([`robust`],
//! by the monitor of [`monitor`]), and how many interleavings show it ([`count`]); fences after
//! which they do not ([`fences`]); whether a bound on store buffers leaves steps out ([`buffers`]).
#![warn(missing_docs)]

pub mod buffers;
pub mod count;
pub mod fences;
pub mod monitor;
pub mod reach;
pub mod robust;
pub mod walks;
