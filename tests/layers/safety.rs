//! All tests of the layer `safety` that use public items only.

#[path = "../../src/safety/tests/robust.rs"]
mod robust;
#[path = "../../src/safety/tests/units.rs"]
mod units;
#[path = "../../src/safety/tests/walks.rs"]
mod walks;
