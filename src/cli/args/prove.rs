//! Arguments of the commands on systems of any number of processes.

use super::{Common, TranslationArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Memory models of proofs.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProofMemory {
    /// Sequential consistency: weak symbols are plain ones.
    Sc,
    /// Total store order: writes of weak symbols go through store buffers.
    Tso,
}

/// Samples that check an answer before it is given.
#[derive(Args, Debug, Clone)]
pub struct Sampling {
    /// For every number of processes: check the answer by N machine states before it is given;
    /// 0 switches the check off.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub check_samples: usize,
}

/// `prove`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check prove specs/cubicle/naive_mutex.cub
  mu-check prove specs/cubicle/naive_mutex.cub --certificate mutex.proof
  mu-check prove specs/cubicle/naive_mutex_unsafe.cub --evidence why.svg
  mu-check prove specs/cubicle/naive_mutex.cub --model sc --format json --timeout 1m

Exit codes: 0 safe for every number of processes, 1 unsafe (with a run of the machine), 2 bad input, 3 unknown.")]
pub struct ProveArgs {
    /// A parameterised system (`.cub`), or an x86 program (`.asm`) for any number of threads.
    pub file: PathBuf,
    /// How an x86 program is read.
    #[command(flatten)]
    pub translation: TranslationArgs,
    /// Memory model.
    #[arg(long, value_name = "MODEL", value_enum, default_value_t = ProofMemory::Tso)]
    pub model: ProofMemory,
    /// Write the inductive invariant that proves safety.
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Write each obligation of the proof as a file for SMT solvers, to be found unsatisfiable.
    #[arg(long, value_name = "FOLDER")]
    pub smt_lib: Option<PathBuf>,
    /// Write the run of a system that is not safe: .json, .svg, .html, .aut, .aut.gz, .blts, .lts
    /// or .dot, by the name's ending.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Look backward from the unsafe states only; infer no invariants.
    #[arg(long)]
    pub no_approximations: bool,
    /// Most processes of the instances that inferred invariants are compared with.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=6))]
    pub instances: u32,
    /// Samples.
    #[command(flatten)]
    pub sampling: Sampling,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `verify`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check verify specs/cubicle/naive_mutex.cub mutex.proof
  mu-check verify specs/cubicle/naive_mutex.cub mutex.proof --model tso

Exit codes: 0 the certificate proves safety, 1 it does not, 2 bad input, 3 unknown (a limit).")]
pub struct VerifyArgs {
    /// A parameterised system (`.cub`), or an x86 program (`.asm`) for any number of threads.
    pub file: PathBuf,
    /// How an x86 program is read.
    #[command(flatten)]
    pub translation: TranslationArgs,
    /// What `prove --certificate` wrote.
    pub certificate: PathBuf,
    /// Reject certificates for another memory model.
    #[arg(long, value_name = "MODEL", value_enum)]
    pub model: Option<ProofMemory>,
    /// Write each obligation as a file for SMT solvers, to be found unsatisfiable.
    #[arg(long, value_name = "FOLDER")]
    pub smt_lib: Option<PathBuf>,
    /// Samples.
    #[command(flatten)]
    pub sampling: Sampling,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
