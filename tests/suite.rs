//! The whole-program tests, in one binary: each binary links the whole program, so one is built in
//! a fraction of the time of thirty.
//!
//! `cargo test --release --test suite sweep::` runs the tests of one file.

mod adversary;
mod agreement;
mod architecture;
mod arcx_faults;
mod arcx_model;
mod binary_models;
mod chance;
mod checkpoint;
mod cluster;
mod cluster_counts;
mod cluster_formulas;
mod cluster_networks;
mod command_line;
mod confluence;
mod conform;
mod conform_any;
mod conform_random;
mod deadlocks;
mod documents;
mod editors;
mod equations;
mod errors;
mod escapes;
mod evidence;
mod examples;
mod expansion;
mod first_hour;
mod formatting;
mod front_ends;
mod fuzzed;
mod habits;
mod kernel_litmus;
mod language;
mod language_names;
mod language_server;
mod library;
mod limits;
mod limits_of_answers;
mod linearise_random;
mod litmus_on_machines;
mod murphi;
mod proofs;
mod memory_files;
mod pages;
mod programs;
mod properties;
mod reports;
mod refinement;
mod representatives;
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
mod open_sums;
mod partial_order;
mod plain_labels;
mod symmetry;
mod tools;
mod traces;

mod times;
mod typed_files;
mod unbounded;
mod unbounded_answers;
mod unbounded_numbers;
mod unreadable;
mod vacuity;

/// That of the program.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
