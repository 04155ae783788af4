//! Interface to the machine: clock, arguments, streams, files, memory. On an operating system it is
//! the standard library. A browser (`wasm32-unknown-unknown`) has none of them in the standard
//! library; there the embedding page provides them before the program starts.
//!
//! In: nothing. Out: the same few names on both. Cost: none over the standard library. Invariant:
//! every layer uses this module for the clock, for arguments, for standard output, and for files
//! that a user names.

#[cfg(not(target_arch = "wasm32"))]
mod system;
#[cfg(not(target_arch = "wasm32"))]
pub use system::*;

#[cfg(target_arch = "wasm32")]
mod page;
#[cfg(target_arch = "wasm32")]
pub use page::*;
