//! Arguments of the commands on transition systems.

use super::{Common, Modulo, ReadArgs, modulo, preorder};
use clap::Args;
use mu_base::{Diagnostic, Stage};
use mu_lts::equivalence::Equivalence;
use mu_lts::preorder::Preorder;
use mu_lts::relabel::Relabel;
use std::path::{Path, PathBuf};

/// Actions to hide and rename.
#[derive(Args, Debug, Clone, Default)]
pub struct Relabelling {
    /// Hide actions: names, or whole actions such as `send(1)`, separated by commas.
    #[arg(long, value_name = "ACTIONS", action = clap::ArgAction::Append)]
    pub hide: Vec<String>,
    /// Rename an action (before hiding): `OLD=NEW`, several separated by commas.
    #[arg(long, value_name = "OLD=NEW", action = clap::ArgAction::Append)]
    pub rename: Vec<String>,
}

impl Relabelling {
    /// Returns the actions to hide and rename. Errors: a renaming without `=`.
    pub fn relabel(&self) -> Result<Relabel, Diagnostic> {
        let hide = self.hide.iter().flat_map(|h| split_at_commas(h)).collect();
        let rename = (self.rename.iter().flat_map(|r| split_at_commas(r)))
            .map(|pair| match pair.split_once('=') {
                Some((old, new))
                    if !old.trim().is_empty() && !new.trim().is_empty() && !new.contains('=') =>
                {
                    Ok((old.trim().into(), new.trim().into()))
                }
                _ => Err(Diagnostic::new(
                    Stage::Usage,
                    format!("`--rename {pair}` is not of the form OLD=NEW"),
                )),
            })
            .collect::<Result<_, _>>()?;
        Ok(Relabel { rename, hide })
    }
}

/// Splits a text at the commas outside brackets and quotes.
pub(super) fn split_at_commas(text: &str) -> Vec<String> {
    let items = mu_lts::relabel::split(text, ',').into_iter();
    items.filter(|item| !item.is_empty()).map(String::from).collect()
}

/// `reduce`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check reduce system.aut --equivalence branching --out small.aut
  mu-check reduce model.mcrl2 --hide send,receive --equivalence weak-trace --out traces.dot")]
pub struct ReduceArgs {
    /// An `.aut`, `.aut.gz`, `.blts`, `.lts` or `.fsm` file, or a specification.
    pub input: PathBuf,
    /// Equivalence of the quotient.
    #[arg(short, long, value_name = "EQUIVALENCE", value_parser = modulo(), default_value = Equivalence::STRONG.name())]
    pub equivalence: Modulo,
    /// The same as `--out`.
    #[arg(value_name = "OUT", conflicts_with = "out")]
    pub output: Option<PathBuf>,
    /// Write the quotient to this file: `.aut`, `.aut.gz`, `.blts`, `.lts`, `.fsm` or `.dot`.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Draw the quotient in layers: `.svg`, for up to a few hundred states.
    #[arg(long, value_name = "FILE.svg")]
    pub draw: Option<PathBuf>,
    /// Hiding and renaming.
    #[command(flatten)]
    pub relabelling: Relabelling,
    /// Options for reading models other than specifications.
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

impl ReduceArgs {
    /// Returns the file of the quotient.
    pub fn file(&self) -> Option<&Path> {
        self.out.as_deref().or(self.output.as_deref())
    }
}

/// `compare`
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 A and B are equivalent (A refines B), 1 they are not, 2 bad input, 3 unknown, 4 internal error.

Examples:
  mu-check compare model.mcrl2 model.aut --equivalence branching
  mu-check compare implementation.aut specification.aut --preorder weak-trace --hide internal
  mu-check compare a.aut b.aut --preorder failures-divergences --mutual
  mu-check compare a.aut b.aut --out difference.mcf || mu-check check a.aut difference.mcf"
)]
pub struct CompareArgs {
    /// The first system: an `.aut`, `.aut.gz`, `.blts`, `.lts` or `.fsm` file, or a specification.
    pub a: PathBuf,
    /// The second system.
    pub b: PathBuf,
    /// Equivalence.
    #[arg(short, long, value_name = "EQUIVALENCE", value_parser = modulo(), default_value = Equivalence::STRONG.name())]
    pub equivalence: Modulo,
    /// Check the preorder instead: does A refine B?
    #[arg(short, long, value_name = "PREORDER", value_parser = preorder(), conflicts_with = "equivalence")]
    pub preorder: Option<Preorder>,
    /// Check the preorder in both directions: its equivalence.
    #[arg(long, requires = "preorder")]
    pub mutual: bool,
    /// Write a distinguishing formula to this file (also for a distinguishing trace).
    #[arg(short, long, value_name = "FILE.mcf")]
    pub out: Option<PathBuf>,
    /// Hiding and renaming, in both systems.
    #[command(flatten)]
    pub relabelling: Relabelling,
    /// Options for reading models other than specifications.
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `info`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check info system.aut
  mu-check info model.mcrl2 -D cores=3 --format json
  mu-check info game.pg")]
pub struct InfoArgs {
    /// An `.aut`, `.aut.gz`, `.blts`, `.lts` or `.fsm` file, a specification, or a game in a
    /// `.pg`, `.bes` or `.pbes` file.
    pub input: PathBuf,
    /// Draw the transition system in layers: `.svg`, for up to a few hundred states.
    #[arg(long, value_name = "FILE.svg")]
    pub draw: Option<PathBuf>,
    /// Hiding and renaming.
    #[command(flatten)]
    pub relabelling: Relabelling,
    /// Options for reading models other than specifications.
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `convert`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check convert system.aut system.aut.gz
  mu-check convert model.mcrl2 picture.dot --hide internal
  mu-check convert equations.bes game.pg
  mu-check convert system.pbes game.pg")]
pub struct ConvertArgs {
    /// An `.aut`, `.aut.gz`, `.blts`, `.lts` or `.fsm` file, a specification, or a game in a
    /// `.pg`, `.bes` or `.pbes` file.
    pub input: PathBuf,
    /// The result: `.aut`, `.aut.gz`, `.blts` (compact, with a checksum), `.lts` (binary, of
    /// mCRL2), `.fsm`, `.dot`; `.pg` for games.
    pub output: PathBuf,
    /// Hiding and renaming.
    #[command(flatten)]
    pub relabelling: Relabelling,
    /// Options for reading models other than specifications.
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_actions() {
        assert_eq!(split_at_commas("a, b(1,2),c,"), ["a", "b(1,2)", "c"]);
        assert_eq!(split_at_commas("PUT !\"x,y\",c"), ["PUT !\"x,y\"", "c"]);
        let ok = Relabelling { hide: vec!["a,b".into(), "c".into()], rename: vec!["x=y".into()] }
            .relabel()
            .unwrap();
        assert_eq!((ok.hide.len(), ok.rename), (3, vec![("x".to_string(), "y".to_string())]));
        assert!(Relabelling { rename: vec!["x".into()], ..Default::default() }.relabel().is_err());
    }
}
