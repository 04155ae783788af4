//! Exploration of a model by its slots and groups, as engines do it.

use mu_model::{Model, Steps};
use mu_murphi::model::{ERROR, VIOLATION};
use std::collections::HashSet;

/// States and steps of a model by its groups; `None` if a step shows a failure.
pub fn by_groups(model: &dyn Model) -> Option<(u64, u64)> {
    let started = model.slots().iter().position(|s| s.name == "started");
    let mut worker = model.worker();
    let (mut seen, mut open) = (HashSet::from([model.initial()]), vec![model.initial()]);
    let (mut count, mut steps) = (0, Steps::default());
    while let Some(state) = open.pop() {
        let first = started.is_some_and(|s| state[s] == 0);
        for (number, group) in model.groups().iter().enumerate() {
            if group.requires.iter().any(|(slot, value)| state[*slot as usize] != *value) {
                continue;
            }
            let reads: Vec<u32> = group.reads.iter().map(|s| state[*s as usize]).collect();
            steps.clear();
            worker.steps(number, &reads, &mut steps).expect("no error");
            for (n, label) in steps.labels.iter().enumerate() {
                let text = model.label_text(*label);
                if text == ERROR || text.starts_with(VIOLATION) {
                    return None;
                }
                count += u64::from(!first);
                let mut next = state.clone();
                let width = group.writes.len();
                for (slot, value) in group.writes.iter().zip(&steps.values[n * width..]) {
                    next[*slot as usize] = *value;
                }
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
    }
    Some((seen.len() as u64 - u64::from(started.is_some()), count))
}
