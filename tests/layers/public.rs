//! The tests of public items of most layers, in one binary: a module for each layer.

#[path = "../../src/syntax/tests/units/main.rs"]
mod syntax;
mod process;
#[path = "../../src/chance/tests/units.rs"]
mod chance;
#[path = "../../src/program/tests/outcome.rs"]
mod program_outcome;
#[path = "../../src/axioms/tests/units/main.rs"]
mod axioms;
#[path = "../../src/litmus/tests/units/main.rs"]
mod litmus;
mod traces;
mod cubicle;
mod murphi;
mod compile;
mod conform;
mod safety;
mod prove;
mod game;
#[path = "../../src/reals/tests/units.rs"]
mod reals;
#[path = "../../src/regions/tests/units/main.rs"]
mod regions;
#[path = "../../src/zones/tests/units/main.rs"]
mod zones;
mod library;
