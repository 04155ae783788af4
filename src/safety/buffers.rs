//! Detection of full store buffers: check whether a bound on buffers restricts the behaviour of a
//! program.
//!
//! Input: the machine of a program with a bound. Output: true if a store waits for a full buffer in
//! some state. The search is unreduced, so it covers the states of every model that has no further
//! reduction or quotient. Cost: the states of the machine, each hashed once.

use mu_base::{Budget, Diagnostic};
use mu_program::machine::Machine;
use std::collections::HashSet;

/// Number of states between two checks of the limits.
const POLL: usize = 4096;

/// Searches for a full buffer. Returns true also if a limit is reached, because the bound may be
/// reached then.
///
/// # Errors
///
/// Those of a step of the machine.
pub fn are_full(machine: &Machine, budget: &Budget) -> Result<bool, Diagnostic> {
    let mut seen = HashSet::from([machine.initial()]);
    let mut open = vec![machine.initial()];
    let mut ready = Vec::new();
    while let Some(state) = open.pop() {
        if seen.len().is_multiple_of(POLL)
            && budget.check(seen.len() as u64).and_then(|()| budget.check_memory()).is_err()
        {
            return Ok(true);
        }
        for thread in 0..machine.program.threads.len() {
            let mut next = state.clone();
            if machine.advance(thread, &mut next)?.is_some() && seen.insert(next.clone()) {
                open.push(next);
            }
            ready.clear();
            machine.ready(thread, &state, &mut |at| ready.push(at));
            for at in &ready {
                let mut next = state.clone();
                machine.flush(thread, *at, &mut next)?;
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        if machine.bound_reached() {
            return Ok(true);
        }
    }
    Ok(false)
}
