//! Options of a search by several processes.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Options of a search by several processes.
#[derive(Args, Debug, Clone, Default)]
pub struct Clustering {
    /// Search with N processes on this machine, each with one thread and its share of
    /// `--max-memory`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), conflicts_with = "cluster")]
    pub processes: Option<u32>,
    /// Search with the processes of this list: a line `HOST:PORT` each, where they listen. Each is
    /// started with its own `--process`.
    #[arg(long, value_name = "FILE", requires = "process", requires = "secret")]
    pub cluster: Option<PathBuf>,
    /// Number of this process in the list, from 0; process 0 reports.
    #[arg(long, value_name = "I")]
    pub process: Option<u32>,
    /// File with a secret that all processes of the list know, and nobody else: they prove it to
    /// each other.
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub secret: Option<PathBuf>,
    /// Listen at this address instead of the one in the list.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "cluster")]
    pub listen: Option<String>,
}

impl Clustering {
    /// Whether several processes are to search.
    pub fn is_wanted(&self) -> bool {
        self.processes.is_some() || self.cluster.is_some()
    }
    /// Whether this process reports: it is the first, or there are no others.
    pub fn reports(&self) -> bool {
        self.process.is_none_or(|me| me == 0)
    }
    /// The option that says so.
    pub fn option(&self) -> &'static str {
        if self.cluster.is_some() { "--cluster" } else { "--processes" }
    }
}

/// `cluster`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  mu-check cluster run hosts -- explore model.mcrl2")]
pub struct ClusterArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ClusterCommand,
}

/// What to do with several hosts.
#[derive(Subcommand, Debug)]
pub enum ClusterCommand {
    /// Print what each host is to run, or run it.
    Run(ClusterRunArgs),
}

/// `cluster run`
#[derive(Args, Debug)]
#[command(
    after_help = "Each line of the list is a process. The folder, the list and the secret must be seen by all hosts under the same name.

Examples:
  mu-check cluster run hosts -- explore model.mcrl2
  mu-check cluster run hosts --start -- explore model.mcrl2 --checkpoint kept"
)]
pub struct ClusterRunArgs {
    /// The list: a line `HOST:PORT` for each process.
    pub hosts: PathBuf,
    /// File with the secret; it is written if there is none [default: `secret` beside the list].
    #[arg(long, value_name = "FILE")]
    pub secret: Option<PathBuf>,
    /// Folder in which each process runs [default: the current one].
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// The program on each host.
    #[arg(long, value_name = "PATH", default_value = "mu-check")]
    pub program: String,
    /// Start the processes and wait for the result.
    #[arg(long)]
    pub start: bool,
    /// What runs a line on a host; it gets the host and the line as its last arguments, and hands
    /// its standard input on: when that ends, so does the process.
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub shell: String,
    /// The command, without options of several processes.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub words: Vec<String>,
}
