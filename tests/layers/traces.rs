//! All tests of the layer `traces` that use public items only.

#[path = "../../src/traces/tests/measure.rs"]
mod measure;
#[path = "../../src/traces/tests/minimal.rs"]
mod minimal;
#[path = "../../src/traces/tests/mixed.rs"]
mod mixed;
#[path = "../../src/traces/tests/open.rs"]
mod open;
#[path = "../../src/traces/tests/random.rs"]
mod random;
#[path = "../../src/traces/tests/readers.rs"]
mod readers;
#[path = "../../src/traces/tests/reference.rs"]
mod reference;
#[path = "../../src/traces/tests/riscv.rs"]
mod riscv;
#[path = "../../src/traces/tests/stream.rs"]
mod stream;
