//! Arguments of `eval`.

use super::Common;
use clap::Args;
use std::path::PathBuf;

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
    /// A specification with sorts, maps and equations for the expression.
    pub model: Option<PathBuf>,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
