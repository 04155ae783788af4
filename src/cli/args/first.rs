//! Arguments of the commands of the first hour: `new`, `eval`.

use super::Common;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Projects to begin with.
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
    after_help = "Each project is a commented specification, its formulas, and a README with the commands; each has one mistake to find.

Examples:
  mu-check new cpu mycpu
  mu-check new mutex lock"
)]
pub struct NewArgs {
    /// What to begin with.
    #[arg(value_enum)]
    pub project: Project,
    /// The folder to make; if it is there, it must be empty.
    pub folder: PathBuf,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `eval`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check eval '[1,2]++[3]'
  mu-check eval 'exp(2,10)-24'
  mu-check eval 'newest(x,[entry(x,v0),entry(x,v1)])' cpu.mcrl2 -D buffer_size=3")]
pub struct EvalArgs {
    /// A data expression.
    #[arg(allow_hyphen_values = true)]
    pub expression: String,
    /// A specification whose sorts, maps and equations it may use.
    pub model: Option<PathBuf>,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
