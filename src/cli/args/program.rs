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
#[derive(Args, Debug, Clone)]
pub struct MemoryArgs {
    /// Memory model of programs.
    #[arg(long = "model", id = "memory_model", value_name = "MODEL", value_enum, default_value_t = MemoryName::Tso)]
    pub model: MemoryName,
    /// Most stores in a buffer (default: no bound for code without loops, else 4).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub buffer: Option<u32>,
}

impl Default for MemoryArgs {
    fn default() -> Self {
        Self { model: MemoryName::Tso, buffer: None }
    }
}

/// How files of some front ends are read.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Models other than specifications")]
pub struct Reading {
    /// How many threads run an x86 program (`.asm`).
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads_of: u32,
    /// The memory of a program or litmus test.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// The specification whose data and actions type the labels of a transition system.
    #[arg(long, value_name = "MODEL")]
    pub data: Option<PathBuf>,
    /// Labels of transition system files that are the internal action: `i` in files of CADP. Whole
    /// labels, separated by commas.
    #[arg(long, value_name = "LABELS", action = clap::ArgAction::Append)]
    pub internal: Vec<String>,
}

impl Reading {
    /// The texts of the labels that are internal.
    pub fn internal_labels(&self) -> Vec<String> {
        self.internal.iter().flat_map(|labels| super::lts::between_commas(labels)).collect()
    }
}

impl Default for Reading {
    fn default() -> Self {
        Self { threads_of: 2, memory: MemoryArgs::default(), data: None, internal: Vec::new() }
    }
}

/// Ways to answer litmus tests.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// All runs of a machine.
    Machine,
    /// All executions that axioms allow.
    Axioms,
}

/// Languages that `expand` writes.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// mCRL2.
    Mcrl2,
    /// Systems of any number of processes.
    Cubicle,
}

/// What the registers of a program hold at the start.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initial {
    /// Zero.
    Zero,
    /// Anything.
    Any,
}

/// How x86 programs for any number of threads are read.
#[derive(Args, Debug, Clone)]
pub struct TranslationArgs {
    /// What registers and flags hold at the start, for any number of threads.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Initial::Zero)]
    pub initial: Initial,
    /// `xchg` with memory is atomic only with the prefix `lock`, for any number of threads.
    #[arg(long)]
    pub split_xchg: bool,
}

/// How many threads run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadsOf {
    /// So many.
    Number(u32),
    /// Every number is asked.
    Any,
}

fn parse_threads(text: &str) -> Result<ThreadsOf, String> {
    match text.parse::<u32>() {
        _ if text == "any" => Ok(ThreadsOf::Any),
        Ok(n @ 1..=64) => Ok(ThreadsOf::Number(n)),
        _ => Err("expected a number from 1 to 64, or `any`".into()),
    }
}

/// `litmus`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check litmus SB.litmus
  mu-check litmus SB.litmus --evidence SB.svg
  mu-check litmus tests/x86 --model sc --format json
  mu-check litmus tests/x86 --expected wanted.txt --junit litmus.xml
  mu-check litmus tests/riscv --model riscv.cat --include models --expected verdicts.tsv")]
pub struct LitmusArgs {
    /// Litmus tests, folders of them, and lists `@NAME` of them. Under a model in `cat`: X86,
    /// X86_64, RISCV, AArch64, C; else X86, X86_64.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Memory model: the machine `sc`, `tso` or `pso`, or a model in the language `cat`: a file,
    /// or the name of one in a folder of `--include`.
    #[arg(long, value_name = "MODEL", default_value = "tso")]
    pub model: String,
    /// How `sc`, `tso` or `pso` answers: as a machine, or by its axioms in `cat`.
    #[arg(long, value_name = "WAY", value_enum, default_value_t = By::Machine)]
    pub by: By,
    /// Most stores in a buffer of a machine (default: no bound for code without loops, else 4).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub buffer: Option<u32>,
    /// Folders with models and the files that they include.
    #[arg(long, value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// How often a path may jump back, under a model in `cat`.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=64))]
    pub unroll: u32,
    /// Compare with wanted answers: a log of the herd tools; lines of a test's name and one of
    /// Allowed, Forbidden, Always, Sometimes, Never, Ok, No; or lines of file, anything, and 1
    /// if the test's demand is met, else 0, separated by tabs. The exit code is then 1 if an
    /// answer differs, 3 if one is open, else 0.
    #[arg(long, value_name = "FILE")]
    pub expected: Option<PathBuf>,
    /// Write the answers as a JUnit report, a test case each.
    #[arg(long, value_name = "FILE.xml")]
    pub junit: Option<PathBuf>,
    /// Draw an execution that decides a single test: `.svg`, `.dot` or `.json`; or `.html`: a page
    /// with an execution of each test.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Ask a machine, as `conform` does: which outcomes it shows, beside those that the memory
    /// model allows.
    #[arg(long, value_name = "MODEL", requires = "interface", conflicts_with_all = ["expected", "junit", "evidence", "buffer"])]
    pub machine: Option<PathBuf>,
    /// Which labels of the machine are memory operations.
    #[arg(long, value_name = "FILE", requires = "machine")]
    pub interface: Option<PathBuf>,
    /// Most operations of each processor of the machine.
    #[arg(long, value_name = "K", default_value_t = 2, requires = "machine", value_parser = clap::value_parser!(u32).range(1..=6))]
    pub operations: u32,
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
    /// The language to write: `cubicle` is an x86 program as a system of any number of processes.
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t = Language::Mcrl2)]
    pub to: Language,
    /// How an x86 program is read with `--to cubicle`.
    #[command(flatten)]
    pub translation: TranslationArgs,
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
#[command(
    after_help = "Exit codes: 0 safe, 1 unsafe, 2 bad input, 3 unknown (a limit, or a store buffer was full).

Examples:
  mu-check program specs/x86/spinlock.asm --threads-of 4
  mu-check program specs/x86/spinlock.asm --threads-of any
  mu-check program specs/x86/spinlock_unsafe.asm --threads-of 2 --model sc --format json"
)]
pub struct ProgramArgs {
    /// An x86 program: shared_data, thread_data, thread_code, unsafe_prop.
    pub file: PathBuf,
    /// How many threads run it; `any`: prove it for every number.
    #[arg(long, value_name = "N|any", default_value = "2", value_parser = parse_threads)]
    pub threads_of: ThreadsOf,
    /// How it is read for any number of threads.
    #[command(flatten)]
    pub translation: TranslationArgs,
    /// Memory.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Samples, for any number of threads.
    #[command(flatten)]
    pub sampling: super::Sampling,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `robust`
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 robust (with --fences: made so), 1 not robust, 2 bad input, 3 unknown (a limit).

Examples:
  mu-check robust specs/x86/dekker.asm
  mu-check robust specs/x86/dekker.asm --fences
  mu-check robust specs/x86/take_queue.asm --count --preemptions 2 --format json"
)]
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
    /// Count those that begin with this thread: 0, 1, …
    #[arg(long, value_name = "THREAD", requires = "count")]
    pub first: Option<u32>,
    /// Count the accesses by which the first thread starts the others, and those by which these
    /// begin.
    #[arg(long, requires = "count")]
    pub starts: bool,
    /// Check in addition whether a state of `unsafe_prop` is reached: one about memory is searched
    /// under TSO as well, since robustness covers registers and places only.
    #[arg(long)]
    pub assert: bool,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
