//! The command line: what it accepts, with help and examples. A contract: scripts rely on names, keys and exit codes.

mod game;
mod lts;
mod program;
mod shell;
mod simulate;
pub mod sweep;

pub use self::game::{PbesArgs, SolveArgs, solver_names};
pub use self::lts::{CompareArgs, ConvertArgs, InfoArgs, ReduceArgs, Refines, Relabelling};
pub use self::program::{ExpandArgs, LitmusArgs, MemoryName, ProgramArgs, RobustArgs};
pub use self::shell::{CompletionsArgs, ManualArgs};
pub use self::simulate::SimulateArgs;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};

/// Explicit-state model checking of mCRL2 specifications.
#[derive(Parser, Debug)]
#[command(
    name = "mu-check",
    version,
    about = "Checks mCRL2 specifications against first-order modal mu-calculus formulas",
    after_help = "`mu-check MODEL FORMULA…` is short for `mu-check check MODEL FORMULA…`.\n\nExamples:\n  mu-check specs/arcx.spec formulas/1a.gos.mcf\n  mu-check explore specs/arcx.spec -D max_operation_id=1 --confluence auto\n  mu-check explore model.mcrl2 --reduce branching --out model.aut\n\nExit codes: 0 every formula holds, 1 some formula does not, 2 bad input, 3 unknown (a limit or an interrupt), 4 internal error."
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
    Check(CheckArgs),
    /// Explore a model and check formulas over ranges of parameters, to tables and plots.
    Sweep(sweep::SweepArgs),
    /// Explore a model to its labelled transition system.
    Explore(ExploreArgs),
    /// Print a parameterised specification, or a program with its memory, as plain mCRL2.
    Expand(ExpandArgs),
    /// Print the linear process of a specification as mCRL2.
    Linearise(LineariseArgs),
    /// Reduce a transition system modulo an equivalence.
    Reduce(ReduceArgs),
    /// Compare two transition systems, and tell them apart.
    Compare(CompareArgs),
    /// Figures of a transition system or a game.
    Info(InfoArgs),
    /// Write a transition system or a game in another form.
    Convert(ConvertArgs),
    /// Print the parameterised boolean equation system of a formula on a specification.
    Pbes(PbesArgs),
    /// Solve a parity game or a boolean equation system.
    Solve(SolveArgs),
    /// Walk through a model step by step, in the terminal or by a script.
    Simulate(SimulateArgs),
    /// Run litmus tests under a memory model.
    Litmus(LitmusArgs),
    /// Check an x86 program for unsafe states under a memory model.
    Program(ProgramArgs),
    /// Check whether store buffers change what a program does, and where fences must stand.
    Robust(RobustArgs),
    /// Print a script that completes the command line in a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands.
    Manual(ManualArgs),
}

impl Command {
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
            Command::Litmus(a) => &a.common,
            Command::Program(a) => &a.common,
            Command::Robust(a) => &a.common,
            Command::Simulate(a) => &a.common,
            Command::Completions(_) | Command::Manual(_) => return None,
        })
    }
}

/// Options that every command takes.
#[derive(Args, Debug, Clone, Default)]
pub struct Common {
    /// Give a parameter of the model a value.
    #[arg(short = 'D', value_name = "NAME=VALUE", action = clap::ArgAction::Append)]
    pub define: Vec<String>,
    /// Worker threads (default: all cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Stop when more than N states are stored.
    #[arg(long, value_name = "N")]
    pub max_states: Option<u64>,
    /// Stop when the process holds more memory than this: bytes, or with K, M, G (default: 90 % of what the machine gives).
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_memory: Option<u64>,
    /// Stop after this long: seconds, or with s, m, h.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub timeout: Option<std::time::Duration>,
    /// Form of the results on standard output.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print results only.
    #[arg(short, long)]
    pub quiet: bool,
    /// Say what each stage does.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// No progress display (there is none on pipes anyway).
    #[arg(long)]
    pub no_progress: bool,
}

/// Forms of output.
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
}

/// Reductions that are done where they are proven, unless someone asks to do without.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// One state stands for all that the model's symmetries take it to; counts are those of all.
    Symmetry,
    /// A game that gets large is played on classes of states that the formula cannot tell apart.
    Quotient,
}

/// Engines.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// One state at a time.
    Explicit,
    /// Sets of states as decision diagrams: exact counts, formulas of one connective such as safety properties.
    Symbolic,
    /// Explicit while the states are few, then symbolic where that is possible; the reason is said.
    Auto,
}

/// Strategies of the symbolic engine.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetStrategy {
    /// Parts of states from the last on, each closed before it is put under another.
    Saturation,
    /// All steps from the states found last; says how many levels there are.
    BreadthFirst,
    /// One kind of step after the other, each from all that the former ones found; says how many rounds there are.
    Chaining,
}

/// `linearise`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check linearise model.mcrl2 > linear.mcrl2
  mu-check linearise model.mcrl2 --simplify none")]
pub struct LineariseArgs {
    /// Specification.
    pub model: PathBuf,
    /// Simplifications, by name: `constants` and `duplicates` remove parameters, `eliminate` sum variables that an equation
    /// determines, `control` summands that are never reached, `unfold` replaces parameters that are records by their fields where
    /// that pays; these are the `default`. `dead` removes parameters on which nothing depends, `instantiate` sums over small finite sorts. Also `all`, `none`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "default")]
    pub simplify: Vec<String>,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `explore`
#[derive(Args, Debug)]
#[command(after_help = "Exit codes: 0 all states were seen, 2 bad input, 3 a limit or an interrupt came first, 4 internal error.

Examples:
  mu-check explore specs/arcx.spec -D max_operation_id=1 --confluence auto
  mu-check explore model.mcrl2 --hide internal --reduce branching --out model.aut
  mu-check explore specs/arcx.spec -D max_operation_id=9 --engine symbolic --format json
  mu-check explore specs/arcx.spec -D max_operation_id=3 --checkpoint kept --timeout 1m || mu-check explore specs/arcx.spec -D max_operation_id=3 --resume kept")]
pub struct ExploreArgs {
    /// Specification, or an `.aut` file.
    pub model: PathBuf,
    /// Write the (reduced) transition system to this `.aut`, `.aut.gz`, `.blts`, `.lts` or `.dot` file.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Reduce modulo an equivalence.
    #[arg(long, value_name = "EQUIVALENCE", value_enum)]
    pub reduce: Option<Reduce>,
    /// Write what each stage took to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub timings: Option<PathBuf>,
    /// Where the search is kept.
    #[command(flatten)]
    pub keeping: Keeping,
    /// Confluent tau steps to take at once: `none`, `auto`, or names of hidden actions.
    #[arg(long, value_name = "WHICH", default_value = "none")]
    pub confluence: String,
    /// Reductions to do without: `symmetry`, `quotient`.
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    pub without: Vec<Reduction>,
    /// Hiding and renaming of what is written or reduced.
    #[command(flatten)]
    pub relabelling: Relabelling,
    /// How to search.
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = Engine::Explicit)]
    pub engine: Engine,
    /// How the symbolic engine searches [default: saturation].
    #[arg(long, value_name = "STRATEGY", value_enum)]
    pub strategy: Option<SetStrategy>,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// Options of searches that can be kept and gone on with.
#[derive(Args, Debug, Clone)]
pub struct Keeping {
    /// Keep the search in this folder: from time to time, and when a limit or an interrupt ends it.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Time between checkpoints: seconds, or with s, m, h.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10m")]
    pub checkpoint_every: std::time::Duration,
    /// Go on with the search kept in this folder.
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
}

impl Keeping {
    /// Whether anything is to be kept or gone on with.
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
    after_help = "Exit codes: 0 every formula holds, 1 some formula does not, 2 bad input, 3 unknown (a limit or an interrupt), 4 internal error.

Examples:
  mu-check check specs/arcx.spec formulas/1a.gos.mcf formulas/1b.gos.mcf
  mu-check check specs/arcx.spec formulas/1a.gos.mcf -D memcommands_size=2 --evidence why.svg
  mu-check check model.mcrl2 formula.mcf --max-memory 4GB --timeout 10m --format json
  mu-check check specs/arcx.spec formulas/2.selfobserving.mcf --checkpoint kept --timeout 1s || mu-check check specs/arcx.spec formulas/2.selfobserving.mcf --resume kept
  mu-check check system.aut formula.mcf --solver zielonka --game game.pg"
)]
pub struct CheckArgs {
    /// Specification, or an `.aut` file.
    pub model: PathBuf,
    /// Formula files.
    #[arg(required = true)]
    pub formulas: Vec<PathBuf>,
    /// Write what each stage took to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub timings: Option<PathBuf>,
    /// Write the evidence here: `.svg` (a message sequence chart; a tree of steps if it branches), `.json`, `.aut`, `.dot`.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Show all parameters after each step of the evidence.
    #[arg(long)]
    pub full_states: bool,
    /// Write the parity game of the (single) formula to this `.pg` file.
    #[arg(long, value_name = "FILE.pg")]
    pub game: Option<PathBuf>,
    /// The algorithm for parity games.
    #[arg(long, value_name = "NAME", value_parser = solver_names())]
    pub solver: Option<String>,
    /// Confluent tau steps to take at once, for formulas that cannot tell: `none`, `auto`, or names of hidden actions.
    #[arg(long, value_name = "WHICH", default_value = "none")]
    pub confluence: String,
    /// Reductions to do without: `symmetry`, `quotient`.
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    pub without: Vec<Reduction>,
    /// How to search.
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = Engine::Explicit)]
    pub engine: Engine,
    /// Where searches of the product of model and formula are kept.
    #[command(flatten)]
    pub keeping: Keeping,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
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
    std::time::Duration::try_from_secs_f64(number * factor).map_err(|_| format!("`{text}` is not a time"))
}

/// Puts `check` before the first word that is not an option if that is no command.
pub fn with_default_command(mut words: Vec<String>) -> Vec<String> {
    let cli = Cli::command();
    let commands: Vec<&str> = cli.get_subcommands().map(|c| c.get_name()).chain(["help"]).collect();
    let takes_value = |word: &str| {
        let of = |arg: &clap::Arg| match word.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => word.len() == 2 && word.strip_prefix('-').and_then(|w| w.chars().next()) == arg.get_short(),
        };
        let arguments = cli.get_subcommands().flat_map(|c| c.get_arguments()).filter(|a| !a.is_positional());
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

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Every command has examples in its help, and they are command lines.
    #[test]
    fn help_has_examples_that_parse() {
        let mut cli = Cli::command();
        cli.build();
        let helps: Vec<(String, String)> = (cli.get_subcommands_mut().filter(|c| c.get_name() != "help"))
            .map(|c| (c.get_name().to_string(), c.render_long_help().to_string()))
            .chain([("mu-check".to_string(), Cli::command().render_long_help().to_string())])
            .collect();
        assert!(helps.len() > 15);
        for (name, help) in helps {
            let at = help.find("Example").unwrap_or_else(|| panic!("{name} has no examples"));
            // A line that is too long for the width goes on in the next.
            let text = help[at..].lines().skip(1).take_while(|l| !l.is_empty()).map(str::trim).collect::<Vec<_>>().join(" ");
            let mut words: Vec<Vec<String>> = Vec::new();
            for word in text.split(' ') {
                match (word, words.last_mut()) {
                    ("mu-check", _) => words.push(vec![word.into()]),
                    ("|" | "||" | ">" | "echo", _) => words.push(Vec::new()),
                    (_, Some(last)) if last.first().is_some_and(|w| w == "mu-check") => last.push(word.into()),
                    _ => {}
                }
            }
            words.retain(|w| !w.is_empty());
            assert!(!words.is_empty(), "{name}: {help}");
            for line in words {
                let line = with_default_command(line);
                assert!(
                    ["mu-check", &line[1]].contains(&name.as_str()) || ["compare", "simulate", "pbes"].contains(&name.as_str()),
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
        let with = |text: &str| with_default_command(text.split(' ').map(String::from).collect()).join(" ");
        assert_eq!(with("mu-check m f"), "mu-check check m f");
        assert_eq!(with("mu-check -D n=1 --solver zielonka m f"), "mu-check check -D n=1 --solver zielonka m f");
        assert_eq!(with("mu-check -q --threads 2 explore m"), "mu-check explore -q --threads 2 m");
        assert_eq!(with("mu-check compare a b"), "mu-check compare a b");
        assert_eq!(with("mu-check --help"), "mu-check --help");
    }
}
