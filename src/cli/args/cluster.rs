//! Options of a search by several processes.

use clap::Args;
use std::path::PathBuf;

/// Options of a search by several processes.
#[derive(Args, Debug, Clone, Default)]
pub struct Clustering {
    /// Search with N processes on this machine, each with one thread and its share of `--max-memory`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), conflicts_with = "cluster")]
    pub processes: Option<u32>,
    /// Search with the processes of this list: a line `HOST:PORT` each, where they listen. Each is started with its own `--process`.
    #[arg(long, value_name = "FILE", requires = "process", requires = "secret")]
    pub cluster: Option<PathBuf>,
    /// Number of this process in the list, from 0; process 0 reports.
    #[arg(long, value_name = "I")]
    pub process: Option<u32>,
    /// File with a secret that all processes of the list know, and nobody else: they prove it to each other.
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
    /// The option that says so.
    pub fn option(&self) -> &'static str {
        if self.cluster.is_some() { "--cluster" } else { "--processes" }
    }
}
