//! Arguments of `new`.

use super::Common;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Example projects.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Project {
    /// Cores with store buffers over one memory.
    Cpu,
    /// The alternating bit protocol over a line that garbles.
    Protocol,
    /// Mutual exclusion of two threads.
    Mutex,
}

/// `new`
#[derive(Args, Debug)]
#[command(
    after_help = "Each project is a commented specification, its formulas, and a README with the commands; each contains one fault to find.

Examples:
  mu-check new cpu mycpu
  mu-check new mutex lock"
)]
pub struct NewArgs {
    /// The example project.
    #[arg(value_enum)]
    pub project: Project,
    /// The folder to create; if it exists, it must be empty.
    pub folder: PathBuf,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
