//! Arguments of the commands on equation systems and games.

use super::{Common, ReadArgs};
use clap::Args;
use std::path::PathBuf;

/// `pbes`
#[derive(Args, Debug)]
#[command(after_help = "Example:
  mu-check pbes model.mcrl2 formula.mcf > system.pbes && mu-check solve system.pbes
  mu-check pbes model.mcrl2 formula.mcf --out system.pbes")]
pub struct PbesArgs {
    /// Specification.
    pub model: PathBuf,
    /// Formula file.
    #[arg(required_unless_present = "text", conflicts_with = "text")]
    pub formula: Option<PathBuf>,
    /// Formula text.
    #[arg(id = "text", short = 'f', long = "formula", value_name = "FORMULA")]
    pub text: Option<String>,
    /// Write the equation system to this file: in mCRL2's binary format if the name ends in .pbes,
    /// otherwise as text (.pbes.txt).
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Options for reading models other than specifications.
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `solve`
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 player Even (true) wins from the initial vertex, 1 player Odd (false) wins, 2 bad input, 3 unknown.

Examples:
  mu-check solve game.pg
  mu-check solve equations.bes --solver promotion --out strategy.sol
  mu-check solve system.pbes"
)]
pub struct SolveArgs {
    /// A parity game in PGSolver's format (`.pg`, `.gm`), a boolean equation system (`.bes`), or
    /// one with data as text (`.pbes`).
    pub input: PathBuf,
    /// Solving algorithm.
    #[arg(long, value_name = "NAME", value_parser = solver_names())]
    pub solver: Option<String>,
    /// Write winners and strategies to this file, in PGSolver's format.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// Returns the names of the registered solvers with their descriptions.
pub fn solver_names() -> clap::builder::PossibleValuesParser {
    mu_game::solve::solvers()
        .iter()
        .map(|s| clap::builder::PossibleValue::new(s.name()).help(s.summary()))
        .collect::<Vec<_>>()
        .into()
}
