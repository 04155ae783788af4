//! Search on the machine of programs with store buffers, for tests that compare systems with it.

use mu_program::machine::Machine;
use mu_program::nasm::X86Program;
use std::collections::HashSet;

/// Returns whether the machine reaches an unsafe state of the program; `None` if it has more than
/// `most` states.
pub fn reaches_unsafe(program: &X86Program, machine: &Machine, most: usize) -> Option<bool> {
    let (mut seen, mut todo) = (HashSet::new(), vec![machine.initial()]);
    while let Some(state) = todo.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        if seen.len() > most {
            return None;
        }
        if program.unsafe_states.iter().any(|p| p.witnesses(machine, &state).is_some()) {
            return Some(true);
        }
        for thread in 0..program.program.threads.len() {
            let mut next = state.clone();
            if machine.advance(thread, &mut next).unwrap_or_else(|d| panic!("{}", d)).is_some() {
                todo.push(next);
            }
            let mut ready = Vec::new();
            machine.ready(thread, &state, &mut |at| ready.push(at));
            for at in ready {
                let mut next = state.clone();
                machine.flush(thread, at, &mut next).unwrap_or_else(|d| panic!("{}", d));
                todo.push(next);
            }
        }
    }
    Some(false)
}
