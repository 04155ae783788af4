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

/// The memory of a program.
#[derive(Args, Debug, Clone)]
pub struct MemoryArgs {
    /// Memory model of programs.
    #[arg(long = "model", id = "memory_model", value_name = "MODEL", value_enum, default_value_t = MemoryName::Tso)]
    pub model: MemoryName,
    /// Capacity of a store buffer (default: unbounded for code without loops, otherwise 4).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub buffer: Option<u32>,
}

impl Default for MemoryArgs {
    fn default() -> Self {
        Self { model: MemoryName::Tso, buffer: None }
    }
}

/// Options for reading files of some front ends.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Models other than specifications")]
pub struct ReadArgs {
    /// Number of threads that run an x86 program (`.asm`).
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads_of: u32,
    /// The memory of a program or litmus test.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Specification with the data types and actions of the labels of a transition system.
    #[arg(long, value_name = "MODEL")]
    pub data: Option<PathBuf>,
    /// Labels in transition system files that denote the internal action, such as `i` in files of
    /// CADP. Whole labels, separated by commas.
    #[arg(long, value_name = "LABELS", action = clap::ArgAction::Append)]
    pub internal: Vec<String>,
}

impl ReadArgs {
    /// Returns the internal labels.
    pub fn internal_labels(&self) -> Vec<String> {
        self.internal.iter().flat_map(|labels| super::lts::split_at_commas(labels)).collect()
    }
}

impl Default for ReadArgs {
    fn default() -> Self {
        Self { threads_of: 2, memory: MemoryArgs::default(), data: None, internal: Vec::new() }
    }
}

/// Largest number of operations per processor of a machine that runs litmus tests or judges traces.
pub const MAX_MACHINE_OPERATIONS: u32 = 6;

/// Methods to evaluate litmus tests.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LitmusMethod {
    /// Explores all runs of a machine.
    Machine,
    /// Enumerates all executions that the axioms allow.
    Axioms,
}

/// Output languages of `expand`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLanguage {
    /// mCRL2.
    Mcrl2,
    /// Cubicle: a system with any number of processes.
    Cubicle,
}

/// Initial values of the registers of a program.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialValues {
    /// All zero.
    Zero,
    /// Arbitrary.
    Any,
}

/// Options for reading x86 programs for any number of threads.
#[derive(Args, Debug, Clone)]
pub struct TranslationArgs {
    /// Initial values of registers and flags, for any number of threads.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = InitialValues::Zero)]
    pub initial: InitialValues,
    /// Make `xchg` with memory atomic only with the prefix `lock`, for any number of threads.
    #[arg(long)]
    pub split_xchg: bool,
}

/// Number of threads that run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadCount {
    /// A fixed number.
    Number(u32),
    /// Any number: the answer covers every number of threads.
    Any,
}

fn parse_threads(text: &str) -> Result<ThreadCount, String> {
    match text.parse::<u32>() {
        _ if text == "any" => Ok(ThreadCount::Any),
        Ok(n @ 1..=64) => Ok(ThreadCount::Number(n)),
        _ => Err("expected a number from 1 to 64, or `any`".into()),
    }
}

/// Parses the number of threads of a command that needs a number.
fn parse_number_of_threads(text: &str) -> Result<u32, String> {
    match parse_threads(text) {
        Ok(ThreadCount::Number(n)) => Ok(n),
        Ok(ThreadCount::Any) => Err(
            "expected a number from 1 to 64: robustness is decided for a fixed number of threads; `mu-check program FILE --threads-of any` proves the program safe for every number, under `--model tso` or `sc`".into(),
        ),
        Err(_) => Err("expected a number from 1 to 64".into()),
    }
}

/// `litmus`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check litmus SB.litmus
  mu-check litmus SB.litmus --evidence SB.svg
  mu-check litmus x86-tests --model sc --format json
  mu-check litmus x86-tests --expected expected.txt --junit litmus.xml
  mu-check litmus riscv-tests --model riscv.cat --include models --expected verdicts.tsv")]
pub struct LitmusArgs {
    /// Litmus tests, folders of them, and lists `@NAME` of them. With a `cat` model: X86, X86_64,
    /// RISCV, AArch64, PPC, ARM, C; otherwise X86, X86_64.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Memory model: the machine `sc`, `tso` or `pso`, or a model in the language `cat`: a file, or
    /// the name of a model in a folder of `--include`.
    #[arg(long, value_name = "MODEL", default_value = "tso")]
    pub model: String,
    /// Method for `sc`, `tso` and `pso`: an operational machine, or axioms in `cat`.
    #[arg(long, value_name = "METHOD", value_enum, default_value_t = LitmusMethod::Machine)]
    pub by: LitmusMethod,
    /// Capacity of a store buffer of a machine (default: unbounded for code without loops,
    /// otherwise 4).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub buffer: Option<u32>,
    /// Folders with models and the files they include.
    #[arg(long, value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// Maximum number of backward jumps of a path, for a model in `cat`.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=64))]
    pub unroll: u32,
    /// Compare with expected answers: a log of the herd tools; or lines with the name of a test and
    /// one of Allowed, Forbidden, Always, Sometimes, Never, Ok, No; or lines of file, any text, and
    /// 1 if the condition of the test holds, otherwise 0, separated by tabs. The exit code is then
    /// 1 if an answer differs, 3 if one is unknown, otherwise 0.
    #[arg(long, value_name = "FILE")]
    pub expected: Option<PathBuf>,
    /// Write the answers as a JUnit report, one test case each.
    #[arg(long, value_name = "FILE.xml")]
    pub junit: Option<PathBuf>,
    /// Draw an execution that decides a single test: `.svg`, `.dot` or `.json`; or write a page
    /// with an execution of each test: `.html`.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Run the tests on a machine model, as `conform` does: print the outcomes that it shows next
    /// to those that the memory model allows.
    #[arg(long, value_name = "MODEL", requires = "interface", conflicts_with_all = ["expected", "junit", "evidence", "buffer"])]
    pub machine: Option<PathBuf>,
    /// File that says which labels of the machine are memory operations.
    #[arg(long, value_name = "FILE", requires = "machine")]
    pub interface: Option<PathBuf>,
    /// Maximum number of operations per processor of the machine (default: those of the longest
    /// test).
    #[arg(long, value_name = "K", requires = "machine", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_MACHINE_OPERATIONS)))]
    pub operations: Option<u32>,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `expand`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check expand specs/arcx.spec -D num_cores=3 > arcx3.mcrl2
  mu-check expand specs/x86/spinlock.asm --threads-of 3 --model tso > spinlock3.mcrl2
  mu-check expand specs/x86/spinlock.asm --to cubicle > spinlock.cub")]
pub struct ExpandArgs {
    /// Specification with parameters, an x86 program (`.asm`), or a litmus test (`.litmus`).
    pub file: PathBuf,
    /// Output language; `cubicle` writes an x86 program, or a Murphi model with `-D NAME=any`, as a
    /// system of any number of processes.
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t = OutputLanguage::Mcrl2)]
    pub to: OutputLanguage,
    /// Options for reading an x86 program with `--to cubicle`.
    #[command(flatten)]
    pub translation: TranslationArgs,
    /// Number of threads that run an x86 program.
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
#[command(
    after_help = "Exit codes: 0 safe, 1 unsafe, 2 bad input, 3 unknown (a limit, or a full store buffer).

Examples:
  mu-check program specs/x86/spinlock.asm --threads-of 4
  mu-check program specs/x86/spinlock.asm --threads-of any
  mu-check program specs/x86/spinlock_unsafe.asm --threads-of 2 --model sc --format json"
)]
pub struct ProgramArgs {
    /// An x86 program with the sections shared_data, thread_data, thread_code, unsafe_prop.
    pub file: PathBuf,
    /// Number of threads that run the program; `any` proves it for every number.
    #[arg(long, value_name = "N|any", default_value = "2", value_parser = parse_threads)]
    pub threads_of: ThreadCount,
    /// Options for reading the program for any number of threads.
    #[command(flatten)]
    pub translation: TranslationArgs,
    /// Memory.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Sampling, for any number of threads.
    #[command(flatten)]
    pub sampling: super::Sampling,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `robust`
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 robust (with --fences: fences that make it robust were found), 1 not robust, 2 bad input, 3 unknown (a limit).

Examples:
  mu-check robust specs/x86/dekker.asm
  mu-check robust specs/x86/dekker.asm --fences
  mu-check robust specs/x86/take_queue.asm --count --preemptions 2 --format json"
)]
pub struct RobustArgs {
    /// An x86 program, or a litmus test (`.litmus`).
    pub file: PathBuf,
    /// Number of threads that run the program; a litmus test has its own threads.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = parse_number_of_threads)]
    pub threads_of: u32,
    /// Search for a minimum set of `mfence` and `lock` that makes the program robust.
    #[arg(long)]
    pub fences: bool,
    /// Count interleavings, one for each order of dependent events, and the borderline
    /// interleavings.
    #[arg(long)]
    pub count: bool,
    /// Count all interleavings with at most N preemptions instead.
    #[arg(long, value_name = "N", requires = "count")]
    pub preemptions: Option<u32>,
    /// Count only interleavings that begin with this thread: 0, 1, …
    #[arg(long, value_name = "THREAD", requires = "count")]
    pub first: Option<u32>,
    /// Also count the accesses by which the first thread starts the others, and by which these
    /// begin.
    #[arg(long, requires = "count")]
    pub starts: bool,
    /// Check also if a state of `unsafe_prop` is reachable. Conditions on memory are searched under
    /// TSO as well, because robustness covers registers and control locations only.
    #[arg(long)]
    pub assert: bool,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
