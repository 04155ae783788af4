//! Arguments of `conform`.

use super::{Common, Reading};
use clap::Args;
use std::path::PathBuf;

/// `conform`
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 the machine conforms, 1 a program shows that it does not, or a fault is not found, 2 bad input, 3 a limit or an interrupt came first, or too little of the machine ends to judge it, 4 internal error. Without `--against` the answer is a table of all memory models: 0 says that it is complete and that the machine conforms to at least one of them, 1 that it conforms to none.

Examples:
  mu-check conform specs/arcx.spec --interface specs/arcx.interface -D max_operation_id=1
  mu-check conform specs/arcx.spec --interface specs/arcx.interface -D max_operation_id=1 --against sc --litmus SB.litmus --evidence run.svg
  mu-check conform specs/machines/tso.spec --interface specs/machines/machine.interface --against tso --operations 3
  mu-check conform specs/machines/tso.spec --interface specs/machines/machine.interface --against tso --operations 3 --fault specs/machines/tso.faults --suite tests"
)]
pub struct ConformArgs {
    /// The machine: a specification, or any other model, that chooses its operations freely; or a
    /// specification that waits for a program.
    pub model: PathBuf,
    /// Which labels are memory operations (see docs/memory-models.md).
    #[arg(long, value_name = "FILE")]
    pub interface: PathBuf,
    /// A memory model: a name, a `.cat` file, or a `.views` file; may be given several times
    /// (default: all of the project).
    #[arg(long, value_name = "MODEL")]
    pub against: Vec<String>,
    /// Most operations of each processor.
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=6))]
    pub operations: u32,
    /// Write the smallest test to this file, as the herd tools read it. For one memory model.
    #[arg(long, value_name = "FILE")]
    pub litmus: Option<PathBuf>,
    /// Write the smallest test of each memory model into this folder.
    #[arg(long, value_name = "DIR")]
    pub tests: Option<PathBuf>,
    /// Write the run of the machine to this `.svg`, `.html` (a page with the execution as well),
    /// `.json`, `.aut` or `.dot` file. For one memory model.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Draw the forbidden execution with its cycle, to this `.svg` or `.dot` file. For one memory
    /// model.
    #[arg(long, value_name = "FILE")]
    pub execution: Option<PathBuf>,
    /// A faulty machine beside this one: a `.faults` file of named edits of MODEL, a model, or a
    /// folder of models; may be given several times. The answer says with how many operations
    /// each is found.
    #[arg(long, value_name = "FILE")]
    pub fault: Vec<PathBuf>,
    /// Write into this folder fewest litmus tests that find all the faults, each of which checks
    /// itself. For one memory model.
    #[arg(long, value_name = "DIR", requires = "fault")]
    pub suite: Option<PathBuf>,
    /// Take every history by itself, whatever symmetries the machine has.
    #[arg(long)]
    pub without_symmetry: bool,
    /// How models other than specifications are read.
    #[command(flatten)]
    pub reading: Reading,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
