//! Names of the processes on a path of cubes.
//!
//! Input: a path from an unsafe cube to an initial one. Output: its steps in the order of the run.
//! The cube closest to the start names processes 0, 1, ..; after that, a dropped process gets the
//! least free name at that step.

use crate::atom::NONE;
use crate::rules::Rules;
use crate::search::CubeNode;
use mu_base::narrow;

/// A path with the names of its processes on the machine.
pub struct NamedPath {
    /// The rules with their processes, in execution order.
    pub steps: Vec<(usize, Vec<u8>)>,
    /// For each node in this order, the processes of its cube.
    pub names: Vec<Vec<u8>>,
    /// Number of processes.
    pub processes: usize,
}

/// Names the processes of a path.
pub fn steps(rules: &Rules, path: &[CubeNode]) -> NamedPath {
    let Some(last) = path.last() else {
        return NamedPath { steps: Vec::new(), names: Vec::new(), processes: 0 };
    };
    let mut names: Vec<u8> = (0..narrow::byte(last.cube.processes)).collect();
    let mut most = names.len().max(rules.signature.fixed);
    let mut found = NamedPath { steps: Vec::new(), names: vec![names.clone()], processes: 0 };
    for node in path.iter().rev().filter(|n| n.parent.is_some()) {
        // Names of the processes of the parent and of the step.
        let mut draft: Vec<Option<u8>> = node
            .names
            .iter()
            .map(|to| (*to != NONE).then(|| names.get(usize::from(*to)).copied()).flatten())
            .collect();
        for i in 0..draft.len() {
            if draft[i].is_none() {
                let free = (0..).find(|n| !draft.contains(&Some(*n)));
                draft[i] = free;
            }
        }
        let draft: Vec<u8> = draft.into_iter().flatten().collect();
        most = most.max(draft.iter().map(|n| usize::from(*n) + 1).max().unwrap_or(0));
        let binding = node.binding.iter().map(|b| draft[usize::from(*b)]).collect();
        found.steps.push((node.rule, binding));
        found.names.push(draft.clone());
        names = draft;
    }
    found.processes = most;
    found
}
