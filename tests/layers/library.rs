//! All tests of the layer `library` that use public items only.

#[path = "../../src/library/tests/murphi_words.rs"]
mod murphi_words;
#[path = "../../src/library/tests/toy.rs"]
mod toy;
#[path = "../../src/library/tests/traces.rs"]
mod traces;
