//! Arguments of the commands for shells: completions, manual pages.

use clap::Args;
use std::path::PathBuf;

/// `completions`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check completions bash > ~/.local/share/bash-completion/completions/mu-check
  mu-check completions zsh > ~/.zfunc/_mu-check
  mu-check completions fish > ~/.config/fish/completions/mu-check.fish")]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: clap_complete::Shell,
}

/// `manual`
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  mu-check manual | man -l -
  mu-check manual --out ~/.local/share/man/man1")]
pub struct ManualArgs {
    /// Write the pages of all commands to this folder (created if missing); without this option the
    /// main page is printed.
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
