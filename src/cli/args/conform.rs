//! Arguments of `conform`.

use super::{Common, ReadArgs};
use clap::Args;
use std::path::PathBuf;

/// Largest bound on the operations of a processor: dependencies name that many.
const MAX_OPERATIONS: u32 = 32;

/// Length of the programs that `conform` judges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operations {
    /// Up to this number of operations per processor.
    UpTo(u32),
    /// Every length.
    Any,
}

impl Operations {
    /// Returns the bound. Programs of every length are searched without one.
    pub fn bound(self) -> u32 {
        match self {
            Operations::UpTo(k) => k,
            Operations::Any => 0,
        }
    }
}

impl std::str::FromStr for Operations {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(k @ 1..=MAX_OPERATIONS) => Ok(Operations::UpTo(k)),
            _ if text == "any" => Ok(Operations::Any),
            _ => Err(format!("expected a number from 1 to {MAX_OPERATIONS}, or `any`")),
        }
    }
}

/// `conform`
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 the machine conforms, 1 a program violates the memory model, or a fault is not found, 2 bad input, 3 stopped by a limit or an interrupt, or too few runs of the machine terminate to judge it, 4 internal error. Without `--against` the result is a table of all memory models: 0 means that the table is complete and the machine conforms to at least one model, 1 that it conforms to none. With `--operations any` rows of the table may be undecided: 0 means that the machine conforms to at least one model.

Examples:
  mu-check conform specs/arcx.spec --interface specs/arcx.interface -D max_operation_id=1
  mu-check conform specs/arcx.spec --interface specs/arcx.interface -D max_operation_id=1 --against sc --litmus SB.litmus --evidence run.svg
  mu-check conform specs/machines/tso.spec --interface specs/machines/machine.interface --against tso --operations 3
  mu-check conform specs/machines/tso.spec --interface specs/machines/buffer.interface -D values=3 --operations any
  mu-check conform specs/machines/tso.spec --interface specs/machines/machine.interface --against tso --operations 3 --fault specs/machines/tso.faults --suite tests"
)]
pub struct ConformArgs {
    /// The machine: a model that chooses its operations freely, or a specification that receives a
    /// program. Without a file: a built-in machine, `sc`, `tso`, `pso`, `ooo`, or `msi`.
    pub model: PathBuf,
    /// File that says which labels are memory operations (see docs/memory-models.md). Without a
    /// file: a built-in interface, `machine` for `sc`, `tso`, and `pso`, or `ooo`, `msi`; with the
    /// commits for `--operations any`: `direct` for `sc`, `buffer` for `tso` and `pso`.
    #[arg(long, value_name = "FILE")]
    pub interface: PathBuf,
    /// Memory models, separated by commas: names, `.cat` files, or `.views` files (default: all
    /// built-in models).
    #[arg(long, value_name = "MODELS", value_delimiter = ',')]
    pub against: Vec<String>,
    /// Maximum number of operations per processor, 1 to 32; or `any`: programs of every length.
    #[arg(long, value_name = "K", default_value = "2")]
    pub operations: Operations,
    /// Write the smallest failing test to this file, in the herd format. For one memory model.
    #[arg(long, value_name = "FILE")]
    pub litmus: Option<PathBuf>,
    /// Write the smallest failing test of each memory model to this folder.
    #[arg(long, value_name = "DIR")]
    pub tests: Option<PathBuf>,
    /// Write the failing run of the machine: `.svg`, `.html` (a page that includes the execution),
    /// `.json`, `.aut`, `.dot`, or `.csv`, `.jsonl` (its operations as a log for `trace`). For one
    /// memory model.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Draw the forbidden execution with its cycle: `.svg` or `.dot`. For one memory model.
    #[arg(long, value_name = "FILE")]
    pub execution: Option<PathBuf>,
    /// Write the verdicts as a JUnit report: a test case for each model of `--against` (without it,
    /// one for the conclusion) and for each fault. `-` prints it in place of the result.
    #[arg(long, value_name = "FILE.xml")]
    pub junit: Option<PathBuf>,
    /// A faulty variant of the machine: a `.faults` file of named edits of MODEL, a model, or a
    /// folder of models; may be given several times. The result reports how many operations it
    /// takes to find each fault.
    #[arg(long, value_name = "FILE")]
    pub fault: Vec<PathBuf>,
    /// Write a minimum set of self-checking litmus tests that finds all the faults to this folder.
    /// For one memory model.
    #[arg(long, value_name = "DIR", requires = "fault")]
    pub suite: Option<PathBuf>,
    /// Write the certificate of the strongest of `sc`, `tso`, and `pso` that is proved, for
    /// `verify MODEL INTERFACE FILE`. With `--operations any`.
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Check every history separately, without using symmetries of the machine. With `--operations
    /// any`: store all states of a product with monitors, not one of each orbit.
    #[arg(long)]
    pub without_symmetry: bool,
    /// Options for reading models other than specifications.
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
