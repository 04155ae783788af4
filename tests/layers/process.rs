//! All tests of the layer `process` that use public items only, in one binary.

#[path = "../../src/process/tests/print.rs"]
mod print;
#[path = "../../src/process/tests/typecheck.rs"]
mod typecheck;
