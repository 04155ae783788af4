//! Arguments of `studio`.

use super::{parse_size, parse_time};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `studio`
#[derive(Args, Debug)]
#[command(
    after_help = "The page shows the files of a folder in an editor, runs `check`, `explore` and `sweep`, simulates models and draws them. The server listens on \
the loopback interface only. It prints an address with a random token: anybody with this address can do what the page can. Runs are processes \
of this program with the limits below. See docs/studio.md for the features and the access rules.

Examples:
  mu-check studio
  mu-check studio specs --port 8000 --runs 1 --timeout 1h --max-memory 8G"
)]
pub struct StudioArgs {
    /// The folder with the files that the page shows.
    #[arg(default_value = ".")]
    pub folder: PathBuf,
    /// Port [default: any free port].
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Maximum number of concurrent runs.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub runs: u8,
    /// Time limit of each run: seconds, or with s, m, h. A stopped sweep resumes when it is run
    /// again.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10m")]
    pub timeout: Duration,
    /// Memory limit of each run, and of each row of a sweep: bytes, or with K, M, G (default: 80 %
    /// of the machine's memory, divided by runs and simulators).
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_memory: Option<u64>,
    /// Worker threads of each run (default: all cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
}
