//! Arguments of `models`.

use super::Common;
use clap::Args;
use std::path::PathBuf;

/// `models`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check models
  mu-check models sc tso pso --operations 3 --tests separating
  mu-check models rvwmo my.cat --format json")]
pub struct ModelsArgs {
    /// Names of built-in memory models, and `cat` files (default: all built-in models).
    pub models: Vec<String>,
    /// Maximum number of operations of a program, including acquires, releases and fences.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=6))]
    pub operations: u32,
    /// Maximum number of operations of a program with plain reads and writes only.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=8))]
    pub plain: u32,
    /// Maximum number of locations of a program.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=4))]
    pub locations: u32,
    /// Draw the lattice of models to this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the tests that distinguish models to this folder, as litmus tests in C.
    #[arg(long, value_name = "DIR")]
    pub tests: Option<PathBuf>,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
