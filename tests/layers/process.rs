//! All tests of the layer `process` that use public items only.

#[path = "../../src/process/tests/labels.rs"]
mod labels;
#[path = "../../src/process/tests/linearise.rs"]
mod linearise;
#[path = "../../src/process/tests/print.rs"]
mod print;
#[path = "../../src/process/tests/typecheck.rs"]
mod typecheck;
