//! Arguments of `simulate`.

use super::{Common, ReadArgs, Relabelling};
use clap::Args;
use std::path::PathBuf;

/// `simulate`
#[derive(Args, Debug)]
#[command(
    after_help = "In the terminal `?` shows the keys and commands. A script has one command per line: step N, take ACTION, back, forward, goto N, start, end, \
random N, seed N, state TEXT, moves, trace, load FILE, save FILE, help, quit; comments start with # or %.

Exit codes: 0 done, 2 bad input or an impossible command, 3 a limit, 4 internal error.

Examples:
  mu-check simulate model.mcrl2
  mu-check check model.mcrl2 formula.mcf --evidence why.json || mu-check simulate model.mcrl2 --trace why.json
  mu-check simulate system.aut --script commands.txt --format json
  echo 'random 20' | mu-check simulate model.mcrl2 -D cores=3 --seed 7 --script -"
)]
pub struct SimulateArgs {
    /// Model.
    #[arg(help = super::model_help())]
    pub model: PathBuf,
    /// Run the commands of this file (`-`: standard input) instead of the terminal interface.
    #[arg(long, value_name = "FILE|-")]
    pub script: Option<PathBuf>,
    /// For programs: read one JSON request per line on standard input and print one JSON answer per
    /// line. See docs/studio.md for the requests.
    #[arg(long, conflicts_with_all = ["script", "trace"])]
    pub requests: bool,
    /// Start at the end of this trace: evidence from `check --evidence FILE.json`, or a saved
    /// trace.
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,
    /// File that says which labels are memory operations, as for `conform`: the command `save` then
    /// writes them as a log for `trace` to a `.csv` or `.jsonl` file (default: the file
    /// `MODEL.interface` in the folder of the model, if it exists).
    #[arg(long, value_name = "FILE")]
    pub interface: Option<PathBuf>,
    /// Seed of the random steps.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Hiding and renaming of actions.
    #[command(flatten)]
    pub relabelling: Relabelling,
    /// Options for reading models other than specifications.
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
