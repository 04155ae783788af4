//! Options of distributed search.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Options of a search by several processes.
#[derive(Args, Debug, Clone, Default)]
pub struct DistributedArgs {
    /// Search with N processes on this machine, each with one thread and an equal part of
    /// `--max-memory`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), conflicts_with = "cluster")]
    pub processes: Option<u32>,
    /// Search with the processes of this list: one line `HOST:PORT` per process, its listening
    /// address. Start each process with its own `--process`.
    #[arg(long, value_name = "FILE", requires = "process", requires = "secret")]
    pub cluster: Option<PathBuf>,
    /// Index of this process in the list, from 0; process 0 reports.
    #[arg(long, value_name = "I")]
    pub process: Option<u32>,
    /// File with a secret that only the processes of the list know; they use it to authenticate
    /// each other.
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub secret: Option<PathBuf>,
    /// Listen at this address instead of the one in the list.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "cluster")]
    pub listen: Option<String>,
}

impl DistributedArgs {
    /// True if several processes are to search.
    pub fn is_requested(&self) -> bool {
        self.processes.is_some() || self.cluster.is_some()
    }
    /// True if this process reports: it is process 0, or the only one.
    pub fn reports(&self) -> bool {
        self.process.is_none_or(|me| me == 0)
    }
    /// Returns the option that selects several processes.
    pub fn option(&self) -> &'static str {
        if self.cluster.is_some() { "--cluster" } else { "--processes" }
    }
}

/// `cluster`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  mu-check cluster run hosts -- explore model.mcrl2")]
pub struct ClusterArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: ClusterCommand,
}

/// Subcommands for several hosts.
#[derive(Subcommand, Debug)]
pub enum ClusterCommand {
    /// Print the command for each host, or start it.
    Run(ClusterRunArgs),
}

/// `cluster run`
#[derive(Args, Debug)]
#[command(
    after_help = "Each line of the list is a process. The folder, the list and the secret must have the same path on all hosts.

Examples:
  mu-check cluster run hosts -- explore model.mcrl2
  mu-check cluster run hosts --start -- explore model.mcrl2 --checkpoint saved"
)]
pub struct ClusterRunArgs {
    /// The list: one line `HOST:PORT` per process.
    pub hosts: PathBuf,
    /// File with the secret; created if missing [default: `secret` in the folder of the list].
    #[arg(long, value_name = "FILE")]
    pub secret: Option<PathBuf>,
    /// Folder in which each process runs [default: the current one].
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Path of the program on each host.
    #[arg(long, value_name = "PATH", default_value = "mu-check")]
    pub program: String,
    /// Start the processes and wait for the result.
    #[arg(long)]
    pub start: bool,
    /// Command that runs a command line on a host. It gets the host and the command line as its
    /// last arguments and must pass on its standard input: when that ends, the process ends.
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub shell: String,
    /// The command, without options of distributed search.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub words: Vec<String>,
}
