//! Arguments of the commands on memory models.

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
    /// Names of memory models of the project, and `cat` files (default: all of the project).
    pub models: Vec<String>,
    /// Most operations of a program, acquires, releases and fences among them.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=6))]
    pub operations: u32,
    /// Most operations of a program of plain reads and writes.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=8))]
    pub plain: u32,
    /// Most locations of a program.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=4))]
    pub locations: u32,
    /// Draw the lattice.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the tests that separate models as litmus tests in C into this folder.
    #[arg(long, value_name = "DIR")]
    pub tests: Option<PathBuf>,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
