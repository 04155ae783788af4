//! Arguments of the commands for editors: `fmt`, `lsp`.

use super::Common;
use clap::Args;
use std::path::PathBuf;

/// `fmt`
#[derive(Args, Debug)]
#[command(
    after_help = "Formatting changes white space only. Line breaks stay; lines that are too long are broken at their outermost comma or operator (not in \
Murphi models). Comments and the parameter layer do not change. Formatting is idempotent.

Exit codes: 0 formatted, 1 `--check` found a file that would change, 2 a file cannot be read or does not parse.

Examples:
  mu-check fmt model.mcrl2 safety.mcf
  mu-check fmt --check specs/*.spec formulas/*.mcf
  mu-check fmt protocol.m
  mu-check fmt --stdin --width 100 < model.mcrl2"
)]
pub struct FmtArgs {
    /// Specifications, formulas and Murphi models to format in place.
    #[arg(required_unless_present = "stdin", conflicts_with = "stdin")]
    pub files: Vec<PathBuf>,
    /// List the files that formatting would change; write nothing.
    #[arg(long)]
    pub check: bool,
    /// Maximum number of characters per line.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u16).range(20..))]
    pub width: u16,
    /// Read standard input and print the result.
    #[arg(long)]
    pub stdin: bool,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// `lsp`
#[derive(Args, Debug)]
#[command(
    after_help = "An editor starts this server, which uses the Language Server Protocol on standard input and output. See docs/editors.md.

Examples:
  mu-check lsp"
)]
pub struct LspArgs {
    /// Accepted and without effect: standard input and output are the only connection.
    #[arg(long, hide = true)]
    pub stdio: bool,
}
