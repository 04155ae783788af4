//! Arguments of the page of this machine.

use super::{parse_size, parse_time};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `studio`
#[derive(Args, Debug)]
#[command(
    after_help = "The page shows the files of a folder in an editor, runs `check`, `explore` and `sweep`, walks through models and draws them. It is served on
the loopback interface only, under an address with a random token, which is printed; whoever has the address may do what the page may. Runs are processes
of this program with the limits below. docs/studio.md says what the page can do, and who can reach it.

Examples:
  mu-check studio
  mu-check studio specs --port 8000 --runs 1 --timeout 1h --max-memory 8G"
)]
pub struct StudioArgs {
    /// The folder whose files the page shows.
    #[arg(default_value = ".")]
    pub folder: PathBuf,
    /// The port [default: any that is free].
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Runs at a time.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub runs: u8,
    /// Time of each run; a sweep goes on where it was when it is run again: seconds, or with s, m,
    /// h.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10m")]
    pub timeout: Duration,
    /// Memory of each run, and of each row of a sweep: bytes, or with K, M, G (default: 80 % of
    /// the machine's, shared by the runs and as many walks).
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_memory: Option<u64>,
    /// Worker threads of each run (default: all cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
}
