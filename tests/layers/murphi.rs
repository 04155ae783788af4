//! All tests of the layer `murphi` that use public items only.
//!
//! Some of them share a module, which each loads as its own.

#![allow(clippy::duplicate_mod)]

#[path = "../../src/murphi/tests/additions.rs"]
mod additions;
#[path = "../../src/murphi/tests/corpus.rs"]
mod corpus;
#[path = "../../src/murphi/tests/formatting.rs"]
mod formatting;
#[path = "../../src/murphi/tests/groups.rs"]
mod groups;
#[path = "../../src/murphi/tests/language.rs"]
mod language;
#[path = "../../src/murphi/tests/names.rs"]
mod names;
#[path = "../../src/murphi/tests/parametric.rs"]
mod parametric;
#[path = "../../src/murphi/tests/parents.rs"]
mod parents;
#[path = "../../src/murphi/tests/random.rs"]
mod random;
#[path = "../../src/murphi/tests/semantics.rs"]
mod semantics;
#[path = "../../src/murphi/tests/states.rs"]
mod states;
#[path = "../../src/murphi/tests/symmetry.rs"]
mod symmetry;
#[path = "../../src/murphi/tests/words.rs"]
mod words;
