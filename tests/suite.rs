//! The whole-program tests, in one binary: each binary links the whole program, so one is built in a fraction of the time of thirty.
//!
//! `cargo test --release --test suite sweep::` runs the tests of one file.

mod agreement;
mod architecture;
mod arcx_faults;
mod arcx_model;
mod checkpoint;
mod cluster;
mod cluster_networks;
mod command_line;
mod confluence;
mod conform;
mod deadlocks;
mod equations;
mod errors;
mod evidence;
mod examples;
mod expansion;
mod first_hour;
mod formatting;
mod fuzzed;
mod language;
mod language_server;
mod library;
mod limits;
mod linearise_random;
mod proofs;
mod pages;
mod properties;
mod reports;
mod rewriting;
mod schema;
mod simulate;
mod supply;
mod support;
mod stored;
mod studio;
mod study;
mod sweep;
mod symbolic;
mod partial_order;
mod symmetry;
mod tools;
mod tutorial;
mod unbounded;
mod vacuity;
