//! All tests of the layer `conform` that use public items only.
//!
//! Some of them share a module, which each loads as its own.

#![allow(clippy::duplicate_mod)]

#[path = "../../src/conform/tests/certificates.rs"]
mod certificates;
#[path = "../../src/conform/tests/cores.rs"]
mod cores;
#[path = "../../src/conform/tests/every_length.rs"]
mod every_length;
#[path = "../../src/conform/tests/operations.rs"]
mod operations;
#[path = "../../src/conform/tests/random_machines.rs"]
mod random_machines;
#[path = "../../src/conform/tests/units.rs"]
mod units;
#[path = "../../src/conform/tests/written.rs"]
mod written;
