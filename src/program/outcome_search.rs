//! Search for all outcomes of a program: the values of some registers and cells when all threads
//! have ended and all buffers are empty.
//!
//! Input: a [`Machine`], the observables, a [`Budget`]. Output: the set of outcomes. A depth-first
//! search in one thread, for thousands of programs with few instructions: it builds no tables in
//! advance and shares nothing. Large programs use [`super::model`] and an engine.
//!
//! The search uses persistent sets (Godefroid, "Partial-Order Methods for the Verification of
//! Concurrent Systems", 1996) with one move: a move that commutes with all later moves of the other
//! threads and of the thread's own buffer is taken alone. Such moves are steps without memory
//! access, stores into the buffer, fences that do not wait, and accesses to cells that no other
//! thread will access in conflict. Persistent sets preserve all states without moves, and outcomes
//! are such states. Cost: a hash of each state, and some nanoseconds for each check of the sets.

use ahash::AHashSet;
use std::collections::BTreeSet;

use super::liveness::{self, Cells, Future, cell_bit};
use super::machine::Machine;
use super::{Access, Register};
use mu_base::{Budget, Diagnostic, Stop, narrow};

/// A component of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Observable {
    /// A register of a thread.
    Register(u32, Register),
    /// A cell.
    Cell(u32),
}

/// Returns the observed registers of each thread.
pub fn observed_registers(observables: &[Observable], threads: usize) -> Vec<Vec<Register>> {
    let mut out = vec![Vec::new(); threads];
    for o in observables {
        if let Observable::Register(t, r) = o {
            out[*t as usize].push(*r);
        }
    }
    out
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcomes {
    /// Values of the observables, in their order.
    pub set: BTreeSet<Vec<u64>>,
    /// States that were stored.
    pub states: u64,
    /// The stop reason. The set is complete if this is `Complete` and the bound was not reached.
    pub stop: Stop,
    /// True if a store had to wait for a full buffer.
    pub bound_reached: bool,
}

/// Computes all outcomes. `reduce` is false only in comparisons.
pub fn outcomes(
    machine: &Machine,
    observables: &[Observable],
    reduce: bool,
    budget: &Budget,
) -> Result<Outcomes, Diagnostic> {
    let futures: Vec<Vec<Future>> =
        machine.program.threads.iter().map(|t| liveness::futures(&machine.program, t)).collect();
    let initial: Box<[u32]> = machine.initial().into();
    let mut seen: AHashSet<Box<[u32]>> = AHashSet::new();
    let mut stack = vec![initial.clone()];
    seen.insert(initial);
    let mut found =
        Outcomes { set: BTreeSet::new(), states: 0, stop: Stop::Complete, bound_reached: false };
    let mut ready = Vec::new();
    while let Some(state) = stack.pop() {
        if seen.len().is_multiple_of(4096)
            && let Err(stop) = budget.check(seen.len() as u64).and_then(|()| budget.check_memory())
        {
            found.stop = stop;
            break;
        }
        if machine.is_final(&state) {
            found.set.insert(outcome(machine, observables, &state));
            continue;
        }
        if reduce && let Some((_, next)) = persistent_move(machine, &futures, &state, &mut ready)? {
            if seen.insert(next.clone()) {
                stack.push(next);
            }
            continue;
        }
        moves(machine, &state, &mut ready, &mut |_, next| {
            if seen.insert(next.clone()) {
                stack.push(next);
            }
        })?;
    }
    found.states = seen.len() as u64;
    found.bound_reached = machine.bound_reached();
    Ok(found)
}

/// Returns the values of the observables in a state.
pub(super) fn outcome(machine: &Machine, observables: &[Observable], state: &[u32]) -> Vec<u64> {
    let one = |o: &Observable| match *o {
        Observable::Register(t, r) => machine.register(t as usize, r, state),
        Observable::Cell(c) => machine.cell(c as usize, state),
    };
    observables.iter().map(one).collect()
}

/// A move: a thread takes a step, or its buffered store at an index moves to memory.
pub(super) type Move = (usize, Option<usize>);

/// Calls `visit` with each move of a state and the state after it.
pub(super) fn moves(
    machine: &Machine,
    state: &[u32],
    ready: &mut Vec<usize>,
    visit: &mut dyn FnMut(Move, Box<[u32]>),
) -> Result<(), Diagnostic> {
    for t in 0..machine.program.threads.len() {
        let mut next: Box<[u32]> = state.into();
        if machine.advance(t, &mut next)?.is_some() {
            visit((t, None), next);
        }
        ready.clear();
        machine.ready(t, state, &mut |at| ready.push(at));
        for &at in ready.iter() {
            let mut next: Box<[u32]> = state.into();
            machine.flush(t, at, &mut next)?;
            visit((t, Some(at)), next);
        }
    }
    Ok(())
}

/// Returns a move that may be taken alone, with the state after it, if there is one.
pub(super) fn persistent_move(
    machine: &Machine,
    futures: &[Vec<Future>],
    state: &[u32],
    ready: &mut Vec<usize>,
) -> Result<Option<(Move, Box<[u32]>)>, Diagnostic> {
    let threads = machine.program.threads.len();
    // The cells that each thread may still read, and those that it may still store to or has
    // buffered.
    let rest = |t: usize| {
        let mut future = futures[t][machine.place(t, state)];
        if let Some(b) = machine.buffer_slot(t)
            && state[b] != 0
        {
            let buffer = machine.buffer(state[b]);
            future.writes |=
                buffer.iter().filter_map(|e| e.cell()).fold(0, |set, cell| set | cell_bit(cell));
        }
        future
    };
    let others = |t: usize| {
        (0..threads).filter(|&u| u != t).map(rest).fold(Future::default(), |a, b| Future {
            reads: a.reads | b.reads,
            writes: a.writes | b.writes,
        })
    };
    for t in 0..threads {
        let Some(step) = machine.program.threads[t].steps.get(machine.place(t, state)) else {
            continue;
        };
        let cells = |at: usize| -> Cells {
            // The cell of the step itself. Its future also contains that of its successors, so use
            // the access.
            match &machine.program.threads[t].steps[at].access {
                Access::None | Access::Fence(_) => 0,
                Access::Read { address, .. }
                | Access::Write { address, .. }
                | Access::Update { address, .. } => match address {
                    super::expr::Expr::Const(a) => machine
                        .program
                        .cell_at(*a)
                        .map_or(Cells::MAX, |c| cell_bit(narrow::index(c))),
                    _ => Cells::MAX,
                },
            }
        };
        let free = match &step.access {
            Access::None | Access::Fence(_) => true,
            Access::Write { .. } if machine.memory.has_buffers() => true,
            Access::Read { .. } => cells(machine.place(t, state)) & others(t).writes == 0,
            Access::Write { .. } | Access::Update { .. } => {
                let other = others(t);
                cells(machine.place(t, state)) & (other.reads | other.writes) == 0
            }
        };
        if free {
            let mut next: Box<[u32]> = state.into();
            if machine.advance(t, &mut next)?.is_some() {
                return Ok(Some(((t, None), next)));
            }
        }
    }
    for t in 0..threads {
        ready.clear();
        machine.ready(t, state, &mut |at| ready.push(at));
        if ready.is_empty() {
            continue;
        }
        let other = others(t);
        for &at in ready.iter() {
            let mut next: Box<[u32]> = state.into();
            let (cell, _) = machine.flush(t, at, &mut next)?;
            if cell_bit(cell) & (other.reads | other.writes) == 0 {
                return Ok(Some(((t, Some(at)), next)));
            }
        }
    }
    Ok(None)
}
