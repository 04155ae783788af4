//! `mu-check`: explicit-state model checking of mCRL2 specifications against first-order modal mu-calculus formulas.
//!
//! Data flows one way, from text to verdict; each module imports only modules listed above it here (see ARCHITECTURE.md).
#![warn(missing_docs)]

pub mod base;
pub mod syntax;
pub mod data;
pub mod process;
pub mod lts;
pub mod model;
pub mod program;
pub mod compile;
pub mod explore;
pub mod safety;
pub mod symbolic;
pub mod formula;
pub mod game;
pub mod solve;
pub mod evidence;
pub mod pbes;
pub mod report;
pub mod cli;
