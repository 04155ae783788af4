//! What the machine gives a process: a clock, arguments, streams, files, memory. On an operating
//! system these are those of the standard library. In a browser (`wasm32-unknown-unknown`) the
//! standard library has none of them; there whoever runs the program hands them in, before it
//! begins.
//!
//! In: nothing. Out: the same few names on both. Cost: none over the standard library. Invariant:
//! no layer asks the standard library for a clock or for arguments; whoever writes to standard
//! output, or reads or writes a file that a user names, does it through here.

#[cfg(not(target_arch = "wasm32"))]
mod system;
#[cfg(not(target_arch = "wasm32"))]
pub use system::*;

#[cfg(target_arch = "wasm32")]
mod page;
#[cfg(target_arch = "wasm32")]
pub use page::*;
