//! Options by which `explore` looks for a state or a step.

use clap::Args;
use std::path::PathBuf;

/// What to look for, and where evidence goes.
#[derive(Args, Debug, Clone, Default)]
pub struct Seeking {
    /// Look for a shortest path to a deadlock: a state without steps that is no successful
    /// termination.
    #[arg(long, conflicts_with_all = ["action", "divergence"])]
    pub deadlock: bool,
    /// Look for a shortest path to a step with this action, hidden or not.
    #[arg(long, value_name = "NAME", conflicts_with = "divergence")]
    pub action: Option<String>,
    /// Look for a shortest path to a cycle of hidden steps.
    #[arg(long)]
    pub divergence: bool,
    /// Show up to N paths, each to another place, the shortest first.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub all: Option<u32>,
    /// Excludes states from the deadlocks. An action: a component whose last action was this one
    /// counts as terminated. A condition on parameters (`pc == 7 && done`): the components
    /// whose parameters it names count as terminated where it holds. A state without steps
    /// is then a termination if all other components have terminated, have stopped or are at rest.
    /// May be given several times.
    #[arg(long, value_name = "ACTION|CONDITION", action = clap::ArgAction::Append)]
    pub terminal: Vec<String>,
    /// Write the first path here: `.svg` (a message sequence chart), `.html` (a page with all
    /// paths), `.json`, `.aut`, `.dot`.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Write all paths to this folder, as JSON that `simulate --load` reads.
    #[arg(long, value_name = "DIR")]
    pub trace_dir: Option<PathBuf>,
    /// Which labels are memory operations, as `conform` has it: pages and JSON show them as a
    /// graph (default: the file `MODEL.interface` beside the model, if it is there).
    #[arg(long, value_name = "FILE")]
    pub interface: Option<PathBuf>,
    /// Show all parameters after each step of a path.
    #[arg(long)]
    pub full_states: bool,
}

impl Seeking {
    /// What is sought, as a word; none if states are only counted.
    pub fn sought(&self) -> Option<&'static str> {
        match self {
            Seeking { deadlock: true, .. } => Some("deadlock"),
            Seeking { divergence: true, .. } => Some("divergence"),
            Seeking { action: Some(_), .. } => Some("action"),
            _ => None,
        }
    }
}
