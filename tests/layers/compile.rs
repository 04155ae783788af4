//! All tests of the layer `compile` that use public items only.

#[path = "../../src/compile/tests/answer_cache.rs"]
mod answer_cache;
#[path = "../../src/compile/tests/decision_tree.rs"]
mod decision_tree;
#[path = "../../src/compile/tests/termination.rs"]
mod termination;
