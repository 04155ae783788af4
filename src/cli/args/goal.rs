//! Options of `explore` that search for a state or an action.

use clap::Args;
use std::path::PathBuf;

/// The search goal, and the files for its evidence.
#[derive(Args, Debug, Clone, Default)]
pub struct GoalArgs {
    /// Search for a shortest path to a deadlock: a state without outgoing transitions that is not a
    /// termination.
    #[arg(long, conflicts_with_all = ["action", "divergence"])]
    pub deadlock: bool,
    /// Search for a shortest path to a transition with this action, hidden or not; with arguments,
    /// as in `load(c1, x, v0)`, to a visible one with these; with several actions, `a|b`, to a
    /// visible one with all of them.
    #[arg(long, value_name = "NAME", conflicts_with = "divergence")]
    pub action: Option<String>,
    /// Search for a shortest path to a cycle of hidden transitions.
    #[arg(long)]
    pub divergence: bool,
    /// Show up to N paths to different states, the shortest first.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub all: Option<u32>,
    /// Excludes terminations from the deadlocks. An action: a component counts as terminated if its
    /// last action was this one. A condition on parameters (`pc == 7 && done`): where it holds, the
    /// components that own the parameters it names count as terminated. A state without outgoing
    /// transitions is then a termination if all other components have terminated, have stopped or
    /// are in their initial local state. May be given several times.
    #[arg(long, value_name = "ACTION|CONDITION", action = clap::ArgAction::Append)]
    pub terminal: Vec<String>,
    /// Write the first path to this file: `.svg` (a message sequence chart), `.html` (a page with
    /// all paths), `.json`, `.aut`, `.dot`, or `.csv`, `.jsonl` (its memory operations as a log for
    /// `trace`).
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Write all paths to this folder, as JSON that `simulate --trace` reads.
    #[arg(long, value_name = "DIR")]
    pub trace_dir: Option<PathBuf>,
    /// File that says which labels are memory operations, as for `conform`: pages and JSON then
    /// show executions as graphs (default: the file `MODEL.interface` in the folder of the model,
    /// if it exists).
    #[arg(long, value_name = "FILE")]
    pub interface: Option<PathBuf>,
    /// Show all parameters after each step of a path.
    #[arg(long)]
    pub full_states: bool,
}

impl GoalArgs {
    /// Returns the kind of the goal; `None` if states are only counted.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            GoalArgs { deadlock: true, .. } => Some("deadlock"),
            GoalArgs { divergence: true, .. } => Some("divergence"),
            GoalArgs { action: Some(_), .. } => Some("action"),
            _ => None,
        }
    }
}
