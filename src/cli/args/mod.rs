//! The command line: what it accepts, with help and examples. A contract: scripts rely on names,
//! keys and exit codes.

pub mod cluster;
mod conform;
mod editor;
mod first;
mod game;
mod late;
mod lts;
mod models;
mod program;
mod prove;
mod report;
mod seek;
mod shell;
mod simulate;
mod studio;
pub mod sweep;

pub use self::cluster::Clustering;
pub use self::cluster::{ClusterArgs, ClusterCommand, ClusterRunArgs};
pub use self::conform::ConformArgs;
pub use self::editor::{FmtArgs, LspArgs};
pub use self::first::{EvalArgs, NewArgs, Project};
pub use self::game::{PbesArgs, SolveArgs, solver_names};
pub use self::late::Late;
pub use self::lts::{CompareArgs, ConvertArgs, InfoArgs, ReduceArgs, Refines, Relabelling};
pub use self::models::ModelsArgs;
pub use self::program::{
    By, ExpandArgs, Initial, Language, LitmusArgs, MemoryName, ProgramArgs, Reading, RobustArgs,
    ThreadsOf, TranslationArgs,
};
pub use self::prove::{ProofMemory, ProveArgs, Sampling, VerifyArgs};
pub use self::report::ReportArgs;
pub use self::seek::Seeking;
pub use self::shell::{CompletionsArgs, ManualArgs};
pub use self::simulate::SimulateArgs;
pub use self::studio::StudioArgs;

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
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Check formulas on a model.
    Check(Late<CheckArgs>),
    /// Explore a model and check formulas over ranges of parameters, to tables and plots.
    Sweep(Late<sweep::SweepArgs>),
    /// Show results on a page that a browser opens: verdicts, runs, executions, plots.
    Report(Late<ReportArgs>),
    /// Explore a model to its labelled transition system.
    Explore(Late<ExploreArgs>),
    /// Print a parameterised specification, or a program with its memory, as plain mCRL2.
    Expand(Late<ExpandArgs>),
    /// Print the linear process of a specification as mCRL2.
    Linearise(Late<LineariseArgs>),
    /// Reduce a transition system modulo an equivalence.
    Reduce(Late<ReduceArgs>),
    /// Compare two transition systems, and explain a difference.
    Compare(Late<CompareArgs>),
    /// Print the size and shape of a transition system or a game.
    Info(Late<InfoArgs>),
    /// Convert a transition system or a game to another format.
    Convert(Late<ConvertArgs>),
    /// Print the parameterised boolean equation system of a formula on a specification.
    Pbes(Late<PbesArgs>),
    /// Solve a parity game or a boolean equation system.
    Solve(Late<SolveArgs>),
    /// Walk through a model step by step, in the terminal or by a script.
    Simulate(Late<SimulateArgs>),
    /// Run litmus tests under a memory model.
    Litmus(Late<LitmusArgs>),
    /// Compare memory models: which is weaker than which, with a smallest test for each difference.
    Models(Late<ModelsArgs>),
    /// Check whether all programs of a machine behave as memory models allow, or find a smallest
    /// one that does not.
    Conform(Late<ConformArgs>),
    /// Check an x86 program for unsafe states under a memory model.
    Program(Late<ProgramArgs>),
    /// Check whether store buffers change what a program does, and where fences must stand.
    Robust(Late<RobustArgs>),
    /// Prove a parameterised system safe for every number of processes, or find a run that is not.
    Prove(Late<ProveArgs>),
    /// Verify the certificate of a proof, by code apart from the prover.
    Verify(Late<VerifyArgs>),
    /// Write a project to begin with: a specification, formulas, and what to do with them.
    New(Late<NewArgs>),
    /// Evaluate a data expression.
    Eval(Late<EvalArgs>),
    /// Format specifications and formulas.
    Fmt(Late<FmtArgs>),
    /// Serve an editor: errors while one types, names, renaming, formatting.
    Lsp(Late<LspArgs>),
    /// Serve a page of this machine: files, an editor, runs, a model step by step.
    Studio(Late<StudioArgs>),
    /// Search with the processes of several hosts.
    Cluster(Late<ClusterArgs>),
    /// Print a script that completes the command line in a shell.
    Completions(Late<CompletionsArgs>),
    /// Print the manual page, or write those of all commands.
    Manual(Late<ManualArgs>),
}

impl Command {
    /// The file that results are of, where that is one.
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
    /// The options that every command on a model has.
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
    /// How the commands that take any model read it.
    pub fn reading(&self) -> Option<&Reading> {
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

/// Options that every command takes.
#[derive(Args, Debug, Clone, Default)]
pub struct Common {
    /// Give a parameter of the model a value; `-D help` lists the parameters. `check` takes
    /// `NAME=any`: every value.
    #[arg(short = 'D', value_name = "NAME=VALUE", action = clap::ArgAction::Append)]
    pub define: Vec<String>,
    /// Worker threads (default: all cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Stop when more than N states are stored.
    #[arg(long, value_name = "N")]
    pub max_states: Option<u64>,
    /// Stop when the process holds more memory than this: bytes, or with K, M, G (default: 90 % of
    /// the machine's memory).
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_memory: Option<u64>,
    /// Stop after this long, counted from the start of the run: seconds, or with s, m, h.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
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
    /// Do not display progress (pipes never show it).
    #[arg(long)]
    pub no_progress: bool,
    /// Write progress as a JSON object a line to standard error, for the program that started this
    /// one.
    #[arg(long, hide = true)]
    pub progress_lines: bool,
    /// Take the end of standard input as an interrupt, so that this process does not outlive the
    /// one that started it.
    #[arg(long, hide = true)]
    pub end_with_input: bool,
}

/// Output formats.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Equivalences to reduce by.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduce {
    /// Strong bisimulation.
    Strong,
    /// Branching bisimulation.
    Branching,
    /// Divergence-preserving branching bisimulation.
    #[value(alias = "div-branching")]
    DivergenceBranching,
    /// Weak bisimulation.
    Weak,
    /// Trace equivalence.
    Trace,
    /// Weak trace equivalence.
    WeakTrace,
    /// Probabilistic bisimulation, of systems in which chance decides where steps lead.
    Probabilistic,
}

/// Reductions that apply by default wherever they are proven.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// Store one representative of each orbit of states under symmetries; counts stay those of all
    /// states.
    Symmetry,
    /// Play a large game on classes of states that the formula cannot distinguish.
    Quotient,
    /// Leave out steps that do not matter for a deadlock, an action or a formula (partial-order
    /// reduction). Then states and equations are those of the reduced search; counts of
    /// `explore`, of `sweep` and of `--count all-parameters` are of all states.
    Por,
}

/// How equations are told apart. Verdicts do not depend on it.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// By the data that the rest of the formula can still test.
    Merged,
    /// By all data variables in scope, as the formula is written: the equations of a translation
    /// that merges none.
    AllParameters,
}

/// An engine of the registry.
pub type EngineRef = &'static dyn mu_engines::Engine;

/// Reads the name of an engine; the help lists those of the registry.
fn engine() -> impl TypedValueParser<Value = EngineRef> {
    let known = mu_engines::engines().iter().map(|e| PossibleValue::new(e.name()).help(e.about()));
    PossibleValuesParser::new(known).try_map(|name| {
        mu_engines::by_name(&name).ok_or_else(|| format!("no engine is called `{name}`"))
    })
}

/// Strategies of the symbolic engine.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetStrategy {
    /// Closes the lower levels of the diagram before those above.
    Saturation,
    /// Applies all steps to the newest states; reports the number of levels.
    BreadthFirst,
    /// Applies one kind of step after another, each to all states found so far; reports the number
    /// of rounds.
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
    /// Simplifications, by name: `constants` and `duplicates` remove parameters, `eliminate` sum
    /// variables that an equation determines, `control` summands that are never reached,
    /// `unfold` replaces parameters that are records by their fields where that pays; these
    /// are the `default`. `dead` removes parameters on which nothing depends, `instantiate` sums
    /// over small finite sorts. Also `all`, `none`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "default")]
    pub simplify: Vec<String>,
    /// Write the linear process here: in mCRL2's binary form if the name ends in .lps, else as
    /// text.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Take the times of actions away: a parameter for the time of the last one keeps them in
    /// order.
    #[arg(long)]
    pub untime: bool,
    /// How models other than specifications are read.
    #[command(flatten)]
    pub reading: Reading,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `explore`
#[derive(Args, Debug, Clone)]
#[command(
    after_help = "Exit codes: 0 all states were seen, 1 what was looked for was found, 2 bad input, 3 a limit or an interrupt came first, 4 internal error.

Examples:
  mu-check explore specs/arcx.spec -D max_operation_id=1 --confluence auto
  mu-check explore model.mcrl2 --deadlock --evidence why.svg
  mu-check explore model.mcrl2 --action error --all 3 --trace-dir traces
  mu-check explore model.mcrl2 --hide internal --reduce branching --out model.aut
  mu-check explore specs/arcx.spec -D max_operation_id=9 --engine symbolic --format json
  mu-check explore specs/arcx.spec -D max_operation_id=1 --processes 2
  mu-check explore specs/arcx.spec -D max_operation_id=3 --max-memory 1GB --spill spilled
  mu-check explore specs/arcx.spec -D max_operation_id=3 --checkpoint kept --timeout 1m || mu-check explore specs/arcx.spec -D max_operation_id=3 --resume kept"
)]
pub struct ExploreArgs {
    /// Specification, or an `.aut` file.
    pub model: PathBuf,
    /// Write the (reduced) transition system to this `.aut`, `.aut.gz`, `.blts`, `.lts` or `.dot`
    /// file.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Reduce modulo an equivalence.
    #[arg(long, value_name = "EQUIVALENCE", value_enum)]
    pub reduce: Option<Reduce>,
    /// Write the time of each stage to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub timings: Option<PathBuf>,
    /// What to look for.
    #[command(flatten)]
    pub seeking: Seeking,
    /// Checkpoints.
    #[command(flatten)]
    pub keeping: Keeping,
    /// Keep states in this folder, on a fast disk, that `--max-memory` has no room for.
    #[arg(long, value_name = "DIR")]
    pub spill: Option<PathBuf>,
    /// Several processes.
    #[command(flatten)]
    pub clustering: Clustering,
    /// Confluent tau steps that take priority: `none`, `auto`, or names of hidden actions.
    #[arg(long, value_name = "WHICH", default_value = "none")]
    pub confluence: String,
    /// Reductions to switch off: `symmetry`, `quotient`, `por` (steps that do not matter for what
    /// is asked are left out).
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    pub without: Vec<Reduction>,
    /// Hiding and renaming of labels before output or reduction.
    #[command(flatten)]
    pub relabelling: Relabelling,
    /// How to search.
    #[arg(long, value_name = "ENGINE", value_parser = engine(), default_value = mu_engines::engines()[0].name())]
    pub engine: EngineRef,
    /// Show a shortest path to a hang after the counts, if there is one.
    #[arg(skip)]
    pub overview: bool,
    /// How the symbolic engine searches [default: saturation].
    #[arg(long, value_name = "STRATEGY", value_enum)]
    pub strategy: Option<SetStrategy>,
    /// How models other than specifications are read.
    #[command(flatten)]
    pub reading: Reading,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// Options of searches that can be stored and resumed.
#[derive(Args, Debug, Clone)]
pub struct Keeping {
    /// Write checkpoints to this folder: at intervals, and when a limit or an interrupt ends the
    /// search.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Time between checkpoints: seconds, or with s, m, h.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10m")]
    pub checkpoint_every: std::time::Duration,
    /// Resume the search whose checkpoint is in this folder.
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
}

impl Keeping {
    /// Whether a checkpoint is to be written or read.
    pub fn is_wanted(&self) -> bool {
        self.checkpoint.is_some() || self.resume.is_some()
    }
    /// The folder to write to.
    pub fn folder(&self) -> Option<&Path> {
        self.checkpoint.as_deref().or(self.resume.as_deref())
    }
}

/// `check`
#[derive(Args, Debug)]
#[command(
    after_help = "Limits are for the whole run: `--timeout` counts reading the model and all formulas together; formulas that have no verdict then are
unknown. (In `sweep` each row has the limits for itself.) A formula that is refused does not stop the others; the exit code is then 2.

Exit codes: 0 every formula holds, 1 some formula does not, 2 bad input, 3 unknown (a limit or an interrupt), 4 internal error.

Examples:
  mu-check check specs/arcx.spec -f [true*]<true>true
  mu-check check specs/arcx.spec formulas/1a.gos.mcf formulas/1b.gos.mcf
  mu-check check specs/arcx.spec formulas/1a.gos.mcf -D memcommands_size=2 --evidence why.svg
  mu-check check model.mcrl2 formula.mcf --max-memory 4GB --timeout 10m --format json
  mu-check check specs/arcx.spec formulas/2.selfobserving.mcf --checkpoint kept --timeout 1s || mu-check check specs/arcx.spec formulas/2.selfobserving.mcf --resume kept
  mu-check check system.aut formula.mcf --solver zielonka --game game.pg"
)]
pub struct CheckArgs {
    /// Specification, or an `.aut` file.
    pub model: PathBuf,
    /// Formula files; `-` is standard input. A file may hold several properties, each after a line
    /// `%% property NAME`. Without any formula the model is explored and reported on.
    pub formulas: Vec<PathBuf>,
    /// A formula, as text; several may be given.
    #[arg(short = 'f', long, value_name = "FORMULA", action = clap::ArgAction::Append)]
    pub formula: Vec<String>,
    /// Write the verdicts as a JUnit report, a test case each. `-`, or `--format junit`, prints it
    /// in place of the lines.
    #[arg(long, value_name = "FILE.xml")]
    pub junit: Option<PathBuf>,
    /// Write the time of each stage to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub timings: Option<PathBuf>,
    /// Write the evidence here: `.svg` (a message sequence chart; a tree of steps if it branches),
    /// `.html` (a page with all verdicts), `.json`, `.aut`, `.dot`.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Which labels are memory operations, as `conform` has it: pages and JSON show them as a
    /// graph (default: the file `MODEL.interface` beside the model, if it is there).
    #[arg(long, value_name = "FILE")]
    pub interface: Option<PathBuf>,
    /// Show all parameters after each step of the evidence.
    #[arg(long)]
    pub full_states: bool,
    /// Write the parity game of the (single) formula to this `.pg` file.
    #[arg(long, value_name = "FILE.pg")]
    pub game: Option<PathBuf>,
    /// The algorithm for parity games.
    #[arg(long, value_name = "NAME", value_parser = solver_names())]
    pub solver: Option<String>,
    /// Confluent tau steps that take priority, for formulas that cannot distinguish: `none`,
    /// `auto`, or names of hidden actions. `-v` and JSON say for each formula whether they
    /// did, and if not, which part of it forbids it.
    #[arg(long, value_name = "WHICH", default_value = "none")]
    pub confluence: String,
    /// Which equations are counted as one.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Counting::Merged)]
    pub count: Counting,
    /// Reductions to switch off: `symmetry`, `quotient`, `por` (steps that do not matter for what
    /// is asked are left out).
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    pub without: Vec<Reduction>,
    /// How to search [default: explicit; for every value of a parameter auto].
    #[arg(long = "engine", value_name = "ENGINE", value_parser = engine())]
    pub chosen_engine: Option<EngineRef>,
    /// For every value of a parameter: check an answer by so many concrete states, and at boundary
    /// values, before it is given; 0: do not.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub check_samples: usize,
    /// Of a model without a formula: what counts as an end, an action or a condition on
    /// parameters, as `explore --terminal` has it.
    #[arg(long, value_name = "ACTION|CONDITION", action = clap::ArgAction::Append)]
    pub terminal: Vec<String>,
    /// Checkpoints of searches of the product of model and formula.
    #[command(flatten)]
    pub keeping: Keeping,
    /// Several processes.
    #[command(flatten)]
    pub clustering: Clustering,
    /// How models other than specifications are read.
    #[command(flatten)]
    pub reading: Reading,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

impl CheckArgs {
    /// The engine for a model whose parameters have values: the chosen one, else the first.
    pub fn engine(&self) -> EngineRef {
        self.chosen_engine.unwrap_or(mu_engines::engines()[0])
    }
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

/// The names of all commands.
pub fn command_names(cli: &clap::Command) -> Vec<String> {
    cli.get_subcommands().map(|c| c.get_name().to_string()).collect()
}

/// Whether arguments, right or wrong, ask for JSON.
pub fn wants_json(words: &[String]) -> bool {
    words.windows(2).any(|w| w[0] == "--format" && w[1] == "json")
        || words.iter().any(|w| w == "--format=json")
}

/// Reads `--format junit` of `check` as `--junit -`: a form of verdicts, which no other command
/// has.
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

/// Puts `check` before the first word that is not an option if that is no command.
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
            // A command after options: options are the command's own.
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

    /// Every command has examples in its help, and they are command lines.
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
            // A line that is too long for the width goes on in the next.
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
