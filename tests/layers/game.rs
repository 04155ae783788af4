//! All tests of the layer `game` that use public items only.

#[path = "../../src/game/tests/bes.rs"]
mod bes;
#[path = "../../src/game/tests/bes_random.rs"]
mod bes_random;
#[path = "../../src/game/tests/pg.rs"]
mod pg;
#[path = "../../src/game/tests/solvers.rs"]
mod solvers;
