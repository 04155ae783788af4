//! All tests of the layer `cubicle` that use public items only.
//!
//! Some of them share a module, which each loads as its own.

#![allow(clippy::duplicate_mod)]

#[path = "../../src/cubicle/tests/files.rs"]
mod files;
#[path = "../../src/cubicle/tests/initial.rs"]
mod initial;
#[path = "../../src/cubicle/tests/literals.rs"]
mod literals;
#[path = "../../src/cubicle/tests/models.rs"]
mod models;
#[path = "../../src/cubicle/tests/random.rs"]
mod random;
#[path = "../../src/cubicle/tests/words.rs"]
mod words;
#[path = "../../src/cubicle/tests/x86.rs"]
mod x86;
