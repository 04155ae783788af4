//! Shell completion scripts and manual pages, generated from the description of the command line
//! (`completions` and `manual`).

use crate::args::{Cli, CompletionsArgs, ManualArgs};
use crate::output;
use crate::pipeline::file_error;
use crate::pipeline::files::write_text;
use clap::CommandFactory;
use clap_mangen::Man;
use mu_base::{Diagnostic, Stage};

pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8, Diagnostic> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "mu-check", &mut text);
    // clap_complete (as of 4.6.11) writes the hyphen of the program's name inconsistently, so that
    // bash completes no options of commands: clap-rs/clap#6421. After a fix, there is nothing to
    // replace.
    output::print(&String::from_utf8_lossy(&text).replace("mu__subcmd__check", "mu__check"))?;
    Ok(0)
}

pub(crate) fn manual(args: &ManualArgs) -> Result<u8, Diagnostic> {
    // Every page describes `help`; it needs no page.
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    let Some(folder) = &args.out else {
        output::print(&page(cli)?.1)?;
        return Ok(0);
    };
    mu_base::host::fs::create_dir_all(folder)
        .map_err(|e| file_error("cannot create the folder", folder, &e))?;
    let commands: Vec<clap::Command> = cli.get_subcommands().cloned().collect();
    for command in commands.into_iter().chain([cli]) {
        let (name, text) = page(command)?;
        write_text(&folder.join(name), &text)?;
    }
    Ok(0)
}

/// Returns name and text of a manual page.
fn page(command: clap::Command) -> Result<(String, String), Diagnostic> {
    let version = concat!("mu-check ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command).source(version).manual("mu-check manual");
    let mut text = Vec::new();
    page.render(&mut text).map_err(|e| {
        Diagnostic::new(Stage::Internal, format!("the manual page cannot be made: {e}"))
    })?;
    Ok((page.get_filename(), with_examples_as_lines(&String::from_utf8_lossy(&text))))
}

/// Marks indented lines, such as command lines, so that they are not filled to paragraphs.
fn with_examples_as_lines(page: &str) -> String {
    let (mut text, mut unfilled) = (String::new(), false);
    for line in page.replace(".SH EXTRA\n", ".SH NOTES\n").lines() {
        if line.starts_with("  ") != unfilled {
            unfilled = !unfilled;
            text += if unfilled { ".nf\n" } else { ".fi\n" };
        }
        text += line;
        text.push('\n');
    }
    if unfilled { text + ".fi\n" } else { text }
}
