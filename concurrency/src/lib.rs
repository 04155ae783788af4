//! The tables that threads share, without the rest of the tool: built in seconds, for slow
//! checkers.
//!
//! Every order of accesses that the memory model allows (loom; `orders.rs` next to each table):
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test --release --manifest-path concurrency/Cargo.toml
//! ```
//!
//! Undefined behaviour and data races (Miri), and data races in longer runs (the thread sanitizer),
//! with a nightly toolchain that has `miri` and `rust-src`:
//!
//! ```sh
//! cargo +nightly miri test --manifest-path concurrency/Cargo.toml
//! RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu --release --lib --manifest-path concurrency/Cargo.toml
//! ```

// What only the tool uses.
#![allow(dead_code, unused_imports)]

// The tables name their layer below as they do in the tool.
extern crate self as mu_base;

#[path = "../../src/base/atomics.rs"]
pub mod atomics;
#[path = "../../src/base/narrow.rs"]
pub mod narrow;
#[path = "../../src/base/random.rs"]
pub mod random;
#[path = "../../src/explore"]
mod explore {
    pub(crate) mod table;
}
#[path = "../../src/symbolic/ldd/mod.rs"]
pub(crate) mod ldd;
