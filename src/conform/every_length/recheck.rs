//! Second computation of the states of a product, with none of the explorer's code.
//!
//! A plain search, or random runs if the product is large: the successors of each state are
//! computed anew by a worker of the product without caches, in plain hash tables. No state may
//! reach the alarm. A difference is an internal error.

use super::product::{ALARM, Product};
use ahash::AHashSet;
use mu_base::random::Random;
use mu_base::{Budget, Diagnostic};
use mu_model::{Model, Steps, Worker};

/// Length of a random run.
const RUN: usize = 400;

/// Returns the successors of a state. Error: the alarm is reached.
fn successors(
    product: &Product<'_>,
    worker: &mut dyn Worker,
    state: &[u32],
) -> Result<Vec<Vec<u32>>, Diagnostic> {
    if product.is_alarm(state) {
        return Err(Diagnostic::internal(
            "a second search reaches a violation that the first one did not find",
        ));
    }
    steps_of(product, worker, state, Some(ALARM))
}

/// Returns the successors of a state of a model by all groups but one.
fn steps_of(
    model: &dyn Model,
    worker: &mut dyn Worker,
    state: &[u32],
    without: Option<usize>,
) -> Result<Vec<Vec<u32>>, Diagnostic> {
    let mut out = Vec::new();
    let mut steps = Steps::default();
    for (index, group) in model.groups().iter().enumerate().filter(|(i, _)| Some(*i) != without) {
        if group.requires.iter().any(|(slot, value)| state[*slot as usize] != *value) {
            continue;
        }
        let reads: Vec<u32> = group.reads.iter().map(|s| state[*s as usize]).collect();
        steps.clear();
        worker.steps(index, &reads, &mut steps)?;
        for i in 0..steps.labels.len() {
            let mut next = state.to_vec();
            let values = &steps.values[i * group.writes.len()..];
            group.writes.iter().zip(values).for_each(|(slot, v)| next[*slot as usize] = *v);
            out.push(next);
        }
    }
    Ok(out)
}

/// Searches the product. Returns the number of states, which includes those that a search with
/// priorities skips.
pub fn search(product: &Product<'_>, budget: &Budget) -> Result<u64, Diagnostic> {
    Ok(states(product, budget)?.len() as u64)
}

/// Returns all states of the product.
pub(super) fn states(
    product: &Product<'_>,
    budget: &Budget,
) -> Result<AHashSet<Vec<u32>>, Diagnostic> {
    reachable(product, budget, &|worker, state| successors(product, worker, state))
}

/// Returns all states of a model.
pub(super) fn states_of(
    model: &dyn Model,
    budget: &Budget,
) -> Result<AHashSet<Vec<u32>>, Diagnostic> {
    reachable(model, budget, &|worker, state| steps_of(model, worker, state, None))
}

/// Successors of a state, by an evaluator of the model.
type Successors<'f> = dyn Fn(&mut dyn Worker, &[u32]) -> Result<Vec<Vec<u32>>, Diagnostic> + 'f;

/// Returns the states that are reachable by a function of successors.
fn reachable(
    model: &dyn Model,
    budget: &Budget,
    next_states: &Successors<'_>,
) -> Result<AHashSet<Vec<u32>>, Diagnostic> {
    let mut worker = model.worker();
    let mut open = vec![model.initial()];
    let mut visited: AHashSet<Vec<u32>> = open.iter().cloned().collect();
    while let Some(state) = open.pop() {
        if visited.len().is_multiple_of(1024) {
            let limits = budget.check(visited.len() as u64);
            limits.and_then(|()| budget.check_memory()).map_err(Diagnostic::stopped)?;
        }
        for next in next_states(&mut *worker, &state)? {
            if visited.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    Ok(visited)
}

/// Takes random runs until this number of states, with repetitions, is reached.
pub fn sample(product: &Product<'_>, states: u64, budget: &Budget) -> Result<u64, Diagnostic> {
    let mut worker = product.worker();
    let mut random = Random::new(states);
    let mut count = 0;
    while count < states {
        budget.check(count).map_err(Diagnostic::stopped)?;
        let mut state = product.initial();
        for _ in 0..RUN {
            let mut next = successors(product, &mut *worker, &state)?;
            count += 1;
            if next.is_empty() {
                break;
            }
            state = next.swap_remove(random.below(next.len()));
        }
    }
    Ok(count)
}
