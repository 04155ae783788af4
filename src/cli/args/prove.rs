//! Arguments of `prove` and `verify`.

use super::{Common, TranslationArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Memory models of `prove`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProofMemory {
    /// Sequential consistency: weak symbols behave like plain ones.
    Sc,
    /// Total store order: writes of weak symbols go through store buffers.
    Tso,
}

/// Sampling that checks an answer before it is reported.
#[derive(Args, Debug, Clone)]
pub struct Sampling {
    /// For any number of processes: check the answer on N machine states before it is reported; 0
    /// switches the check off.
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
    /// Options for reading an x86 program.
    #[command(flatten)]
    pub translation: TranslationArgs,
    /// Memory model.
    #[arg(long, value_name = "MODEL", value_enum, default_value_t = ProofMemory::Tso)]
    pub model: ProofMemory,
    /// Write the inductive invariant that proves safety.
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Write each obligation of the proof as an SMT-LIB file; a solver must find each
    /// unsatisfiable.
    #[arg(long, value_name = "FOLDER")]
    pub smt_lib: Option<PathBuf>,
    /// Write the run to an unsafe state: .json, .svg, .html, .aut, .aut.gz, .blts, .lts or .dot, by
    /// the file name.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Only search backward from the unsafe states; do not infer invariants.
    #[arg(long)]
    pub no_approximations: bool,
    /// Maximum number of processes of the instances that candidate invariants are tested on.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=6))]
    pub instances: u32,
    /// Sampling.
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
  mu-check verify specs/machines/sc.spec specs/machines/direct.interface sc.proof

A certificate of a formula contains the values of parameters: -D NAME=VALUE refuses another value.

Exit codes: 0 the certificate proves safety, the formula, or conformance, 1 it does not, 2 bad input, 3 unknown (a limit, or a part that the verifier does not decide).")]
pub struct VerifyArgs {
    /// A parameterised system (`.cub`), an x86 program (`.asm`) for any number of threads, or a
    /// specification with parameters.
    pub file: PathBuf,
    /// Options for reading an x86 program.
    #[command(flatten)]
    pub translation: TranslationArgs,
    /// The certificate, written by `prove --certificate`; of a specification the formula, or the
    /// interface.
    pub certificate: PathBuf,
    /// Of a specification: the certificate, written by `check --certificate`, or by `conform
    /// --operations any --certificate`.
    pub of_formula: Option<PathBuf>,
    /// Reject certificates for another memory model.
    #[arg(long, value_name = "MODEL", value_enum)]
    pub model: Option<ProofMemory>,
    /// Write each obligation as an SMT-LIB file; a solver must find each unsatisfiable.
    #[arg(long, value_name = "FOLDER")]
    pub smt_lib: Option<PathBuf>,
    /// Sampling.
    #[command(flatten)]
    pub sampling: Sampling,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
