//! Arguments of the commands on programs: litmus tests, x86 programs, store-buffer safety.

use super::Common;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Memory models.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryName {
    /// Sequential consistency.
    Sc,
    /// Total store order: x86.
    Tso,
    /// Partial store order.
    Pso,
}

/// The memory that programs run on.
#[derive(Args, Debug)]
pub struct MemoryArgs {
    /// Memory model.
    #[arg(long, value_name = "MODEL", value_enum, default_value_t = MemoryName::Tso)]
    pub model: MemoryName,
    /// Most stores in a buffer (default: no bound for code without loops, else 4).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub buffer: Option<u32>,
}

/// `litmus`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check litmus SB.litmus
  mu-check litmus SB.litmus --evidence SB.svg
  mu-check litmus tests/x86 --model sc --format json")]
pub struct LitmusArgs {
    /// Litmus tests for X86 or X86_64, folders of them, and lists `@NAME` of them.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Draw an execution that decides a single test: `.svg` or `.dot`.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Memory.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `expand`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check expand specs/arcx.spec -D num_cores=3 > arcx3.mcrl2
  mu-check expand specs/x86/spinlock.asm --threads-of 3 --model tso > spinlock3.mcrl2")]
pub struct ExpandArgs {
    /// Specification with parameters, an x86 program (`.asm`), or a litmus test (`.litmus`).
    pub file: PathBuf,
    /// How many threads run an x86 program.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads_of: u32,
    /// The memory of a program.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `program`
#[derive(Args, Debug)]
#[command(after_help = "Exit codes: 0 safe, 1 unsafe, 2 bad input, 3 unknown (a limit, or a store buffer was full).

Examples:
  mu-check program specs/x86/spinlock.asm --threads-of 4
  mu-check program specs/x86/spinlock_unsafe.asm --threads-of 2 --model sc --format json")]
pub struct ProgramArgs {
    /// An x86 program: shared_data, thread_data, thread_code, unsafe_prop.
    pub file: PathBuf,
    /// How many threads run it.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads_of: u32,
    /// Memory.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `robust`
#[derive(Args, Debug)]
#[command(after_help = "Exit codes: 0 robust (with --fences: made so), 1 not robust, 2 bad input, 3 unknown (a limit).

Examples:
  mu-check robust specs/x86/dekker.asm
  mu-check robust specs/x86/dekker.asm --fences
  mu-check robust specs/x86/take_queue.asm --count --preemptions 2 --format json")]
pub struct RobustArgs {
    /// An x86 program, or a litmus test (`.litmus`).
    pub file: PathBuf,
    /// How many threads run the program; a litmus test has its own.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads_of: u32,
    /// Look for a smallest set of `mfence` and `lock` that makes it robust.
    #[arg(long)]
    pub fences: bool,
    /// Count interleavings, one for each order of dependent events, and the borderline ones.
    #[arg(long)]
    pub count: bool,
    /// Count all interleavings with at most N preemptions instead.
    #[arg(long, value_name = "N", requires = "count")]
    pub preemptions: Option<u32>,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
