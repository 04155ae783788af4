//! Arguments of `report`.

use super::Common;
use clap::Args;
use std::path::PathBuf;

/// `report`
#[derive(Args, Debug)]
#[command(
    after_help = "Results are the files that `check`, `explore`, `litmus` and `conform` print with `--format json`, evidence in `.json` files, and the \
`sweep.json` of a folder that `sweep` wrote. The page is one file that needs no network.

Examples:
  mu-check check specs/arcx.spec formulas/1a.gos.mcf -D memcommands_size=2 --format json > result.json || mu-check report result.json --out report.html
  mu-check report monday.json tuesday.json sweep/sweep.json --title 'Two days' --out report.html"
)]
pub struct ReportArgs {
    /// Results, as JSON.
    #[arg(required = true, value_name = "RESULT.json")]
    pub results: Vec<PathBuf>,
    /// The page to write.
    #[arg(long, value_name = "FILE.html")]
    pub out: PathBuf,
    /// Title of the page [default: the names of the models].
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
