//! Command-line arguments with their help texts and examples. Option names, JSON keys and exit
//! codes are a contract: scripts rely on them.

pub mod cluster;
mod conform;
mod editor;
mod eval;
pub(crate) mod exact_words;
mod game;
mod deferred;
mod lts;
pub(crate) mod misspelling;
mod models;
mod modulo;
mod new;
mod program;
mod prove;
mod report;
mod goal;
pub(crate) mod scope;
mod shell;
mod simulate;
mod studio;
pub mod sweep;
mod trace;

pub use self::cluster::DistributedArgs;
pub use self::cluster::{ClusterArgs, ClusterCommand, ClusterRunArgs};
pub use self::conform::{ConformArgs, Operations};
pub use self::deferred::DeferredArgs;
pub use self::editor::{FmtArgs, LspArgs};
pub use self::eval::EvalArgs;
pub use self::game::{PbesArgs, SolveArgs, solver_names};
pub use self::goal::GoalArgs;
pub use self::lts::{CompareArgs, ConvertArgs, InfoArgs, ReduceArgs, Relabelling};
pub use self::models::ModelsArgs;
pub use self::modulo::{Modulo, modulo, preorder};
pub use self::new::{NewArgs, Project};
pub use self::program::{
    ExpandArgs, InitialValues, LitmusArgs, LitmusMethod, MAX_MACHINE_OPERATIONS, MemoryName,
    OutputLanguage, ProgramArgs, ReadArgs, RobustArgs, ThreadCount, TranslationArgs,
};
pub use self::prove::{ProofMemory, ProveArgs, Sampling, VerifyArgs};
pub use self::report::ReportArgs;
pub use self::shell::{CompletionsArgs, ManualArgs};
pub use self::simulate::SimulateArgs;
pub use self::studio::StudioArgs;
pub use self::trace::{LogFormat, TraceArgs};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// Explicit-state model checking of mCRL2 specifications.
#[derive(Parser, Debug)]
#[command(
    name = "mu-check",
    version,
    about = "Checks mCRL2 specifications against first-order modal mu-calculus formulas",
    after_help = "`mu-check MODEL FORMULA…` is short for `mu-check check MODEL FORMULA…`; without a formula it explores the model and shows a deadlock if there is one.\n\nExamples:\n  mu-check specs/arcx.spec formulas/1a.gos.mcf\n  mu-check explore specs/arcx.spec -D max_operation_id=1 --confluence auto\n  mu-check explore model.mcrl2 --reduce branching --out model.aut\n\nExit codes: 0 every formula holds, 1 some formula does not, 2 bad input, 3 unknown (a limit or an interrupt), 4 internal error."
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Check formulas on a model.
    Check(DeferredArgs<CheckArgs>),
    /// Explore a model and check formulas over ranges of parameters, to tables and plots.
    Sweep(DeferredArgs<sweep::SweepArgs>),
    /// Show results on a page that a browser opens: verdicts, runs, executions, plots.
    Report(DeferredArgs<ReportArgs>),
    /// Explore a model to its labelled transition system.
    Explore(DeferredArgs<ExploreArgs>),
    /// Print a parameterised specification, or a program with its memory, as plain mCRL2.
    Expand(DeferredArgs<ExpandArgs>),
    /// Print the linear process of a specification as mCRL2.
    Linearise(DeferredArgs<LineariseArgs>),
    /// Reduce a transition system modulo an equivalence.
    Reduce(DeferredArgs<ReduceArgs>),
    /// Compare two transition systems, and explain a difference.
    Compare(DeferredArgs<CompareArgs>),
    /// Print the size and shape of a transition system or a game.
    Info(DeferredArgs<InfoArgs>),
    /// Convert a transition system or a game to another format.
    Convert(DeferredArgs<ConvertArgs>),
    /// Print the parameterised boolean equation system of a formula on a specification.
    Pbes(DeferredArgs<PbesArgs>),
    /// Solve a parity game or a boolean equation system.
    Solve(DeferredArgs<SolveArgs>),
    /// Walk through a model step by step, in the terminal or by a script.
    Simulate(DeferredArgs<SimulateArgs>),
    /// Run litmus tests under a memory model.
    Litmus(DeferredArgs<LitmusArgs>),
    /// Compare memory models: which is weaker than which, with a smallest test for each difference.
    Models(DeferredArgs<ModelsArgs>),
    /// Check whether all programs of a machine behave as memory models allow; print a smallest
    /// program that does not.
    Conform(DeferredArgs<ConformArgs>),
    /// Decide whether memory models allow traces: logs of loads and stores of real threads.
    Trace(DeferredArgs<TraceArgs>),
    /// Check an x86 program for unsafe states under a memory model.
    Program(DeferredArgs<ProgramArgs>),
    /// Check whether store buffers change what a program does, and where fences must stand.
    Robust(DeferredArgs<RobustArgs>),
    /// Prove a parameterised system safe for every number of processes, or find a run to an unsafe
    /// state.
    Prove(DeferredArgs<ProveArgs>),
    /// Verify the certificate of a proof with a checker that is independent of the prover.
    Verify(DeferredArgs<VerifyArgs>),
    /// Write an example project: a specification, formulas, and a README with the commands.
    New(DeferredArgs<NewArgs>),
    /// Evaluate a data expression.
    Eval(DeferredArgs<EvalArgs>),
    /// Format specifications and formulas.
    Fmt(DeferredArgs<FmtArgs>),
    /// Run the language server for editors: diagnostics, names, renaming, formatting.
    Lsp(DeferredArgs<LspArgs>),
    /// Serve a page on this machine: files, an editor, runs, and a simulator.
    Studio(DeferredArgs<StudioArgs>),
    /// Search with processes on several hosts.
    Cluster(DeferredArgs<ClusterArgs>),
    /// Print a script that completes the command line in a shell.
    Completions(DeferredArgs<CompletionsArgs>),
    /// Print the manual page, or write the manual pages of all commands.
    Manual(DeferredArgs<ManualArgs>),
}

/// Returns the help of a model argument: the kinds of files that are models, with their endings.
fn model_help() -> String {
    let models = mu_frontends::registry().iter().filter(|f| !f.properties().rejected);
    let kinds: Vec<String> =
        models.map(|f| format!("{} ({})", f.language(), f.endings().join(", "))).collect();
    format!("Model: {}. Files with other names are specifications", kinds.join(", "))
}

impl Command {
    /// Returns the model file; `None` if the command has no single model.
    pub fn model(&self) -> Option<&Path> {
        Some(match self {
            Command::Check(a) => &a.model,
            Command::Explore(a) => &a.model,
            Command::Expand(a) => &a.file,
            Command::Linearise(a) => &a.model,
            Command::Reduce(a) => &a.input,
            Command::Info(a) => &a.input,
            Command::Convert(a) => &a.input,
            Command::Pbes(a) => &a.model,
            Command::Simulate(a) => &a.model,
            Command::Sweep(a) => &a.model,
            Command::Conform(a) => &a.model,
            Command::Eval(a) => return a.model.as_deref(),
            _ => return None,
        })
    }
    /// Returns the common options; `None` if the command has none.
    pub fn common(&self) -> Option<&Common> {
        Some(match self {
            Command::Check(a) => &a.common,
            Command::Explore(a) => &a.common,
            Command::Expand(a) => &a.common,
            Command::Linearise(a) => &a.common,
            Command::Reduce(a) => &a.common,
            Command::Compare(a) => &a.common,
            Command::Info(a) => &a.common,
            Command::Convert(a) => &a.common,
            Command::Pbes(a) => &a.common,
            Command::Solve(a) => &a.common,
            Command::Sweep(a) => &a.common,
            Command::Report(a) => &a.common,
            Command::Litmus(a) => &a.common,
            Command::Models(a) => &a.common,
            Command::Conform(a) => &a.common,
            Command::Trace(a) => &a.common,
            Command::Program(a) => &a.common,
            Command::Robust(a) => &a.common,
            Command::Prove(a) => &a.common,
            Command::Verify(a) => &a.common,
            Command::Simulate(a) => &a.common,
            Command::New(a) => &a.common,
            Command::Eval(a) => &a.common,
            Command::Fmt(a) => &a.common,
            Command::Completions(_)
            | Command::Manual(_)
            | Command::Lsp(_)
            | Command::Studio(_)
            | Command::Cluster(_) => return None,
        })
    }
}

impl Command {
    /// Returns the options for reading models other than specifications; `None` if the command has
    /// none.
    pub fn read_options(&self) -> Option<&ReadArgs> {
        Some(match self {
            Command::Check(a) => &a.reading,
            Command::Explore(a) => &a.reading,
            Command::Linearise(a) => &a.reading,
            Command::Reduce(a) => &a.reading,
            Command::Compare(a) => &a.reading,
            Command::Info(a) => &a.reading,
            Command::Convert(a) => &a.reading,
            Command::Pbes(a) => &a.reading,
            Command::Sweep(a) => &a.reading,
            Command::Conform(a) => &a.reading,
            Command::Simulate(a) => &a.reading,
            _ => return None,
        })
    }
}

/// Options of every command that takes a model.
#[derive(Args, Debug, Clone, Default)]
pub struct Common {
    /// Set a parameter of the model; `-D help` lists the parameters. `check` also accepts
    /// `NAME=any`, which means every value.
    #[arg(short = 'D', value_name = "NAME=VALUE", action = clap::ArgAction::Append)]
    pub define: Vec<String>,
    /// Worker threads (default: all cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Stop if more than N states are stored.
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub max_states: Option<u64>,
    /// Stop if the process uses more memory than this: bytes, or with K, M, G (default: 90 % of the
    /// machine's memory).
    #[arg(long, value_name = "SIZE", value_parser = parse_size, allow_negative_numbers = true)]
    pub max_memory: Option<u64>,
    /// Stop after this time, measured from the start of the run: seconds, or with s, m, h.
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_negative_numbers = true)]
    pub timeout: Option<std::time::Duration>,
    /// Format of the results on standard output.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print results only.
    #[arg(short, long)]
    pub quiet: bool,
    /// Report what each stage does.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Do not display progress (never displayed if the output is a pipe).
    #[arg(long)]
    pub no_progress: bool,
    /// Write progress to standard error, one JSON object per line, for the program that started
    /// this one.
    #[arg(long, hide = true)]
    pub progress_lines: bool,
    /// Treat the end of standard input as an interrupt, so that this process ends with the one that
    /// started it.
    #[arg(long, hide = true)]
    pub end_with_input: bool,
}

/// Output formats.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Reductions that are on by default and apply if their conditions are proved.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// Store one representative of each orbit of symmetric states; reported counts are still those
    /// of all states.
    Symmetry,
    /// Solve a large game on classes of states that the formula cannot distinguish.
    Quotient,
    /// Skip steps that cannot affect the deadlock, the action or the formula (partial-order
    /// reduction). Reported states and equations are then those of the reduced search; `explore`,
    /// `sweep` and `--count all-parameters` always count all states.
    Por,
    /// With `-D NAME=any`: verify that a formula is true for every value, by the checker of
    /// certificates, before this is printed. Without it, the verdict is not verified, and says so.
    Verify,
}

/// Ways to count equations. Verdicts do not depend on it.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// Merges equations that differ only in data that the rest of the formula cannot test.
    Merged,
    /// Distinguishes equations by all data variables in scope, as the formula is written.
    AllParameters,
}

/// An engine of the registry.
pub type EngineRef = &'static dyn mu_engines::Engine;

/// Parses the name of an engine; the help lists the engines of the registry.
fn engine() -> impl TypedValueParser<Value = EngineRef> {
    let known =
        mu_engines::engines().iter().map(|e| PossibleValue::new(e.name()).help(e.summary()));
    PossibleValuesParser::new(known).try_map(|name| {
        mu_engines::by_name(&name).ok_or_else(|| format!("no engine is called `{name}`"))
    })
}

/// Search strategies of the symbolic engine.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetStrategy {
    /// Closes the lower levels of the diagram before those above.
    Saturation,
    /// Applies all transitions to the newest states; reports the number of levels.
    BreadthFirst,
    /// Applies one transition group after another, each to all states found so far; reports the
    /// number of rounds.
    Chaining,
}

/// `linearise`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check linearise model.mcrl2 > linear.mcrl2
  mu-check linearise model.mcrl2 --out model.lps
  mu-check linearise model.mcrl2 --simplify none")]
pub struct LineariseArgs {
    /// Specification.
    pub model: PathBuf,
    /// Simplifications, by name: `constants` and `duplicates` remove parameters, `eliminate`
    /// removes sum variables that an equation determines, `control` removes unreachable summands,
    /// `unfold` replaces record parameters by their fields where that pays; these are the
    /// `default`. `dead` removes parameters that nothing depends on, `instantiate` expands sums
    /// over small finite sorts. Also `all`, `none`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "default")]
    pub simplify: Vec<String>,
    /// Write the linear process to this file: in mCRL2's binary format if the name ends in .lps,
    /// otherwise as text.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Remove the times of actions; a parameter for the time of the last action preserves their
    /// order.
    #[arg(long)]
    pub untime: bool,
    /// Options for reading models other than specifications.
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `explore`
#[derive(Args, Debug, Clone)]
#[command(
    after_help = "Exit codes: 0 all states were explored, 1 the requested state or action was found, 2 bad input, 3 stopped by a limit or an interrupt, 4 internal error.

Examples:
  mu-check explore specs/arcx.spec -D max_operation_id=1 --confluence auto
  mu-check explore model.mcrl2 --deadlock --evidence why.svg
  mu-check explore model.mcrl2 --action error --all 3 --trace-dir traces
  mu-check explore model.mcrl2 --hide internal --reduce branching --out model.aut
  mu-check explore specs/arcx.spec -D max_operation_id=9 --engine symbolic --format json
  mu-check explore specs/arcx.spec -D max_operation_id=1 --processes 2
  mu-check explore specs/arcx.spec -D max_operation_id=2 --max-memory 1GB --spill spilled
  mu-check explore specs/arcx.spec -D max_operation_id=2 --checkpoint saved --timeout 1m || mu-check explore specs/arcx.spec -D max_operation_id=2 --resume saved"
)]
pub struct ExploreArgs {
    /// Model.
    #[arg(help = model_help())]
    pub model: PathBuf,
    /// Write the (reduced) transition system to this `.aut`, `.aut.gz`, `.blts`, `.lts`, `.fsm` or
    /// `.dot` file.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Reduce modulo an equivalence.
    #[arg(long, value_name = "EQUIVALENCE", value_parser = modulo())]
    pub reduce: Option<Modulo>,
    /// Write the time of each stage to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub timings: Option<PathBuf>,
    /// The state or action to search for.
    #[command(flatten)]
    pub goal: GoalArgs,
    /// Checkpoints.
    #[command(flatten)]
    pub checkpoints: CheckpointArgs,
    /// Store states beyond `--max-memory` in this folder, which should be on a fast disk.
    #[arg(long, value_name = "DIR")]
    pub spill: Option<PathBuf>,
    /// Distributed search.
    #[command(flatten)]
    pub distribution: DistributedArgs,
    /// Confluent tau steps that take priority: `none`, `auto`, or names of hidden actions.
    #[arg(long, value_name = "WHICH", default_value = "none")]
    pub confluence: String,
    /// Reductions to switch off: `symmetry`, `quotient`, `por` (partial-order reduction).
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    pub without: Vec<Reduction>,
    /// Hiding and renaming of labels before output or reduction.
    #[command(flatten)]
    pub relabelling: Relabelling,
    /// Search engine.
    #[arg(long, value_name = "ENGINE", value_parser = engine(), default_value = mu_engines::engines()[0].name())]
    pub engine: EngineRef,
    /// Search strategy of the symbolic engine [default: saturation].
    #[arg(long, value_name = "STRATEGY", value_enum)]
    pub strategy: Option<SetStrategy>,
    /// For a Murphi model: the states that count as deadlocks [default: stuttering].
    #[arg(long, value_name = "KIND", value_enum)]
    pub deadlocks: Option<DeadlockKind>,
    /// For a Murphi model with `NAME=any`: check the proof on N sampled states of instances before
    /// it is reported; 0 switches the check off.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub check_samples: usize,
    /// Options for reading models other than specifications.
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// Definitions of a deadlock of a Murphi model.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlockKind {
    /// A state without a step to another state.
    Stuttering,
    /// A state in which no rule is enabled.
    Stuck,
    /// None.
    Off,
}

/// Options of searches that can be stored and resumed.
#[derive(Args, Debug, Clone)]
pub struct CheckpointArgs {
    /// Write checkpoints to this folder: at intervals, and if a limit or an interrupt ends the
    /// search.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Time between checkpoints: seconds, or with s, m, h.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10m")]
    pub checkpoint_every: std::time::Duration,
    /// Resume the search from the checkpoint in this folder.
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
}

impl CheckpointArgs {
    /// True if a checkpoint is to be written or read.
    pub fn is_requested(&self) -> bool {
        self.checkpoint.is_some() || self.resume.is_some()
    }
    /// Returns the folder that checkpoints are written to. `None` if no checkpoints are requested.
    pub fn folder(&self) -> Option<&Path> {
        self.checkpoint.as_deref().or(self.resume.as_deref())
    }
}

/// `check`
#[derive(Args, Debug)]
#[command(
    after_help = "Limits apply to the whole run: `--timeout` covers reading the model and checking all formulas; formulas without a verdict by then are \
unknown. (In `sweep` the limits apply to each row.) A formula that is rejected does not stop the others; the exit code is then 2.

Exit codes: 0 every formula holds, 1 some formula does not, 2 bad input, 3 unknown (a limit or an interrupt), 4 internal error.

Examples:
  mu-check check specs/arcx.spec -f '[true*]<true>true' -D max_operation_id=0
  mu-check check specs/arcx.spec formulas/1a.gos.mcf formulas/1b.gos.mcf
  mu-check check specs/arcx.spec formulas/1a.gos.mcf -D memcommands_size=2 --evidence why.svg
  mu-check check model.mcrl2 formula.mcf --max-memory 4GB --timeout 10m --format json
  mu-check check specs/arcx.spec formulas/2.selfobserving.mcf --checkpoint saved --timeout 1s || mu-check check specs/arcx.spec formulas/2.selfobserving.mcf --resume saved
  mu-check check system.aut formula.mcf --solver zielonka --game game.pg"
)]
pub struct CheckArgs {
    /// Model.
    #[arg(help = model_help())]
    pub model: PathBuf,
    /// Formula files; `-` is standard input. A file may contain several properties, each after a
    /// line `%% property NAME`. Without a formula, `check` explores the model and reports the
    /// states and deadlocks.
    pub formulas: Vec<PathBuf>,
    /// Formula text; may be given several times.
    #[arg(short = 'f', long, value_name = "FORMULA", action = clap::ArgAction::Append)]
    pub formula: Vec<String>,
    /// Write the verdicts, or the claims of a Murphi model, as a JUnit report, one test case each.
    /// `-`, or `--format junit`, prints the report instead of the verdict lines.
    #[arg(long, value_name = "FILE.xml")]
    pub junit: Option<PathBuf>,
    /// Write the time of each stage to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub timings: Option<PathBuf>,
    /// Write the evidence to this file: `.svg` (a message sequence chart; a tree of steps if it
    /// branches), `.html` (a page with all verdicts), `.json`, `.aut`, `.dot`, or `.csv`, `.jsonl`
    /// (its memory operations as a log for `trace`).
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// File that says which labels are memory operations, as for `conform`: pages and JSON then
    /// show executions as graphs (default: the file `MODEL.interface` in the folder of the model,
    /// if it exists).
    #[arg(long, value_name = "FILE")]
    pub interface: Option<PathBuf>,
    /// Show all parameters after each step of the evidence.
    #[arg(long)]
    pub full_states: bool,
    /// Write the parity game of the (single) formula to this `.pg` file.
    #[arg(long, value_name = "FILE.pg")]
    pub game: Option<PathBuf>,
    /// Algorithm for parity games.
    #[arg(long, value_name = "NAME", value_parser = solver_names())]
    pub solver: Option<String>,
    /// Confluent tau steps that take priority, for formulas that cannot distinguish them: `none`,
    /// `auto`, or names of hidden actions. `-v` and JSON report for each formula if they were used,
    /// or which part of it prevents that.
    #[arg(long, value_name = "WHICH", default_value = "none")]
    pub confluence: String,
    /// Counting of equations.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Counting::Merged)]
    pub count: Counting,
    /// Names of parts to switch off: `symmetry`, `quotient`, `por` (partial-order reduction); with
    /// `NAME=any` also `verify`, the check of the proof.
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    pub without: Vec<Reduction>,
    /// Search engine [default: explicit; auto if a parameter is `any`].
    #[arg(long = "engine", value_name = "ENGINE", value_parser = engine())]
    pub chosen_engine: Option<EngineRef>,
    /// With `NAME=any`: check an answer on N sampled concrete states, and at boundary values,
    /// before it is reported; 0 switches the check off.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub check_samples: usize,
    /// With `NAME=any`: prove the formula by evaluation along paths, and write the certificate of
    /// the proof for `verify`.
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Hiding and renaming of actions before the check.
    #[command(flatten)]
    pub relabelling: Relabelling,
    /// If no formula is given: what counts as termination, an action or a condition on parameters,
    /// as for `explore --terminal`.
    #[arg(long, value_name = "ACTION|CONDITION", action = clap::ArgAction::Append)]
    pub terminal: Vec<String>,
    /// Checkpoints of searches of the product of model and formula.
    #[command(flatten)]
    pub checkpoints: CheckpointArgs,
    /// Distributed search.
    #[command(flatten)]
    pub distribution: DistributedArgs,
    /// Options for reading models other than specifications.
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// Parses a number of states: digits, or a power of ten such as `1e6`.
fn parse_count(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a number of states such as 1000000 or 1e6, got `{text}`");
    if let Some((digits, exponent)) = text.split_once(['e', 'E']) {
        let digits: u64 = digits.parse().map_err(|_| expected())?;
        let exponent: u32 = exponent.parse().map_err(|_| expected())?;
        let power = 10u64.checked_pow(exponent).ok_or_else(expected)?;
        return digits.checked_mul(power).ok_or_else(expected);
    }
    text.parse().map_err(|_| expected())
}

fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1u64 << 30,
        "T" | "TB" | "TIB" => 1u64 << 40,
        other => return Err(format!("unknown unit `{other}`, expected K, M, G or T")),
    };
    let number: f64 = digits.parse().map_err(|_| format!("`{digits}` is not a number"))?;
    if number.is_nan() || number < 0.0 {
        return Err(format!("`{digits}` is not a size"));
    }
    Ok((number * factor as f64) as u64)
}

fn parse_time(text: &str) -> Result<std::time::Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("unknown unit `{other}`, expected s, m or h")),
    };
    let number: f64 = digits.parse().map_err(|_| format!("`{digits}` is not a number"))?;
    std::time::Duration::try_from_secs_f64(number * factor)
        .map_err(|_| format!("`{text}` is not a time"))
}

/// Returns the names of all commands.
pub fn command_names(cli: &clap::Command) -> Vec<String> {
    cli.get_subcommands().map(|c| c.get_name().to_string()).collect()
}

/// True if the arguments, valid or not, select JSON output.
pub fn wants_json(words: &[String]) -> bool {
    words.windows(2).any(|w| w[0] == "--format" && w[1] == "json")
        || words.iter().any(|w| w == "--format=json")
}

/// Rewrites `check … --format junit` to `--junit -`; no other command has this format.
pub fn with_forms_of_check(mut words: Vec<String>) -> Vec<String> {
    if words.get(1).is_none_or(|command| command != "check") {
        return words;
    }
    let end = words.iter().position(|w| w == "--").unwrap_or(words.len());
    if let Some(at) = words[..end].iter().position(|w| w == "--format=junit") {
        words[at] = "--junit=-".into();
    } else if let Some(at) =
        words[..end].windows(2).position(|w| w[0] == "--format" && w[1] == "junit")
    {
        words.splice(at..at + 2, ["--junit=-".to_string()]);
    }
    words
}

/// Inserts `check` before the first word that is not an option, unless that word is a command.
pub fn with_default_command(cli: &clap::Command, mut words: Vec<String>) -> Vec<String> {
    let commands: Vec<&str> = cli.get_subcommands().map(|c| c.get_name()).chain(["help"]).collect();
    let whole = OnceCell::new();
    let takes_value = |word: &str| {
        let cli = whole.get_or_init(|| {
            let mut whole = cli.clone();
            whole.build();
            whole
        });
        let of = |arg: &clap::Arg| match word.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => {
                word.len() == 2
                    && word.strip_prefix('-').and_then(|w| w.chars().next()) == arg.get_short()
            }
        };
        let arguments =
            cli.get_subcommands().flat_map(|c| c.get_arguments()).filter(|a| !a.is_positional());
        arguments.filter(|a| of(a)).any(|a| a.get_action().takes_values())
    };
    let mut i = 1;
    while i < words.len() {
        let word = words[i].as_str();
        if word.starts_with('-') && word != "--" {
            if i == 1 && ["-h", "--help", "-V", "--version"].contains(&word) {
                return words;
            }
            i += if takes_value(word) { 2 } else { 1 };
            continue;
        }
        if !commands.contains(&word) {
            words.insert(1, "check".into());
        } else if i > 1 {
            // A command after options: options belong to the command.
            let command = words.remove(i);
            words.insert(1, command);
        }
        return words;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Every command has examples in its help, and they parse as command lines.
    #[test]
    fn help_has_examples_that_parse() {
        let mut cli = Cli::command();
        cli.build();
        let helps: Vec<(String, String)> =
            (cli.get_subcommands_mut().filter(|c| c.get_name() != "help"))
                .map(|c| (c.get_name().to_string(), c.render_long_help().to_string()))
                .chain([("mu-check".to_string(), Cli::command().render_long_help().to_string())])
                .collect();
        assert!(helps.len() > 15);
        for (name, help) in helps {
            let at = help.find("Example").unwrap_or_else(|| panic!("{name} has no examples"));
            // Long lines are wrapped: join them.
            let text = help[at..]
                .lines()
                .skip(1)
                .take_while(|l| !l.is_empty())
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" ");
            let mut words: Vec<Vec<String>> = Vec::new();
            for word in text.split(' ') {
                match (word, words.last_mut()) {
                    ("mu-check", _) => words.push(vec![word.into()]),
                    ("|" | "||" | ">" | "<" | "echo", _) => words.push(Vec::new()),
                    (_, Some(last)) if last.first().is_some_and(|w| w == "mu-check") => {
                        last.push(word.into())
                    }
                    _ => {}
                }
            }
            words.retain(|w| !w.is_empty());
            assert!(!words.is_empty(), "{name}: {help}");
            for line in words {
                let line = with_default_command(&Cli::command(), line);
                assert!(
                    ["mu-check", &line[1]].contains(&name.as_str())
                        || ["compare", "simulate", "pbes", "report"].contains(&name.as_str()),
                    "{name}: {line:?}"
                );
                if let Err(e) = Cli::try_parse_from(&line) {
                    panic!("{name}: {line:?}: {e}");
                }
            }
        }
    }

    #[test]
    fn counts_may_be_powers_of_ten() {
        assert_eq!((parse_count("1e6"), parse_count("2E3")), (Ok(1_000_000), Ok(2_000)));
        assert_eq!(parse_count("42"), Ok(42));
        for wrong in ["-1", "1.5", "1e-3", "1e30", "e3", "1e", ""] {
            assert!(parse_count(wrong).is_err(), "{wrong}");
        }
        let negative = Cli::try_parse_from(["mu-check", "explore", "m", "--timeout", "-1"]);
        let error = negative.unwrap_err().to_string();
        assert!(error.contains("`-1` is not a time") && !error.contains("-- -1"), "{error}");
    }

    #[test]
    fn check_is_the_default() {
        let with = |text: &str| {
            with_default_command(&Cli::command(), text.split(' ').map(String::from).collect())
                .join(" ")
        };
        assert_eq!(with("mu-check m f"), "mu-check check m f");
        assert_eq!(
            with("mu-check -D n=1 --solver zielonka m f"),
            "mu-check check -D n=1 --solver zielonka m f"
        );
        assert_eq!(with("mu-check -q --threads 2 explore m"), "mu-check explore -q --threads 2 m");
        assert_eq!(with("mu-check compare a b"), "mu-check compare a b");
        assert_eq!(with("mu-check --help"), "mu-check --help");
    }
}
