//! Constants that a thread may store for some values of its reads.
//!
//! Input: a thread. Output: cells and values. Reads that justify each other through branches (`if
//! (x) y = 1 || if (y) x = 1`) or through addresses (`*x = 1`) have values that no path stores
//! until one of the reads takes such a value. So all paths are executed with unknown values:
//! results that depend on a read are unknown, and a branch on an unknown value takes both
//! directions. A store is recorded if its value is known. If its address is unknown, it may be that
//! of any variable with an address that is stored somewhere. Values that are computed from reads
//! follow from these in later rounds ([`crate::paths`]).
//!
//! Cost: at most [`MAX_STEPS`] steps. Beyond this limit the constants found so far are returned,
//! and the result says so.

use crate::code::{Op, RegisterExpr, Thread, low};
use crate::layout::{Found, MemoryLayout};
use std::collections::{BTreeSet, HashSet};

/// Limit on the number of steps on all paths of a thread; beyond it the search ends.
const MAX_STEPS: usize = 1 << 14;

/// A position in the code, with the values of known registers.
type KnownRegisters = (u32, Vec<Option<u64>>);

/// The constants of a thread.
#[derive(Debug, Default)]
pub struct Constants {
    /// Cells, values, and the operations that store them.
    pub stores: BTreeSet<(u32, u64, u32)>,
    /// False if the limit on steps was reached.
    pub complete: bool,
}

fn value(e: &RegisterExpr, registers: &[Option<u64>]) -> Option<u64> {
    let mut known = true;
    let loaded = e.sources(&mut |r| known &= registers[r as usize].is_some());
    if !known || loaded {
        return e.constant();
    }
    let full: Vec<u64> = registers.iter().map(|r| r.unwrap_or(0)).collect();
    Some(e.value(&full, 0))
}

/// Search state of one thread.
struct Speculation<'a> {
    layout: &'a MemoryLayout,
    /// The addresses of the cells that a store with an unknown address may access.
    targets: &'a [u64],
    found: BTreeSet<(u32, u64, u32)>,
}

impl Speculation<'_> {
    /// Records a store, if its value is known.
    fn store(
        &mut self,
        at: u32,
        (address, offset, width): (&RegisterExpr, u64, u8),
        stored: &RegisterExpr,
        registers: &[Option<u64>],
    ) {
        let Some(stored) = value(stored, registers) else { return };
        match value(address, registers) {
            Some(address) => self.record(at, address.wrapping_add(offset), width, stored),
            None => {
                self.targets.iter().for_each(|address| self.record(at, *address, width, stored))
            }
        }
    }
    fn record(&mut self, at: u32, address: u64, width: u8, stored: u64) {
        if let Found::Cells(first, count) = self.layout.access(address, width) {
            let cells = &self.layout.cells()[first as usize..(first + count) as usize];
            for (i, cell) in (first..).zip(cells) {
                let shifted = stored >> ((cell.offset - cells[0].offset) * 8);
                self.found.insert((i, low(shifted, u32::from(cell.width) * 8), at));
            }
        }
    }
}

/// Finds the cells and values of stores with a value that does not depend on reads. `targets` are
/// the addresses of cells in variables with an address that is stored somewhere.
pub fn stores(thread: &Thread, layout: &MemoryLayout, targets: &[u64]) -> Constants {
    let mut search = Speculation { layout, targets, found: BTreeSet::new() };
    let mut complete = true;
    let mut visited: HashSet<KnownRegisters> = HashSet::new();
    let mut open: Vec<KnownRegisters> =
        vec![(0, thread.registers.iter().map(|r| Some(r.1)).collect())];
    while let Some((at, mut registers)) = open.pop() {
        let Some(op) = thread.ops.get(at as usize) else { continue };
        if visited.len() >= MAX_STEPS {
            complete = false;
            break;
        }
        if !visited.insert((at, registers.clone())) {
            continue;
        }
        let mut next = Some(at + 1);
        match op {
            Op::Let(r, e) => registers[*r as usize] = value(e, &registers),
            Op::Load { into, value: e, .. } => {
                into.iter().for_each(|r| registers[*r as usize] = value(e, &registers))
            }
            Op::Store { address, width, value, .. } => {
                search.store(at, (address, 0, *width), value, &registers)
            }
            Op::StoreConditional { status, address, width, value, second, .. } => {
                search.store(at, (address, 0, *width), value, &registers);
                if let Some(second) = second {
                    search.store(at, (address, u64::from(*width), *width), second, &registers);
                }
                status.iter().for_each(|r| registers[*r as usize] = None);
            }
            Op::Update { into, address, width, value: stored, .. } => {
                search.store(at, (address, 0, *width), stored, &registers);
                into.iter().for_each(|(r, e)| registers[*r as usize] = value(e, &registers));
            }
            Op::Either { to } => open.push((*to, registers.clone())),
            Op::Assume(e) | Op::Choose(e) | Op::Defined(e) if value(e, &registers) == Some(0) => {
                next = None
            }
            Op::Branch { when, to } => match when.as_ref().map(|w| value(w, &registers)) {
                Some(Some(0)) => {}
                Some(None) => open.push((*to, registers.clone())),
                _ => next = Some(*to),
            },
            Op::Jump(address) => match value(address, &registers) {
                Some(address) => next = thread.target(address),
                // The address of any label may be stored somewhere.
                None => {
                    next = None;
                    open.extend(thread.entries().map(|to| (to, registers.clone())));
                }
            },
            Op::Mark { into, .. } => into.iter().for_each(|(r, _)| registers[*r as usize] = None),
            Op::Fence(_)
            | Op::Assume(_)
            | Op::Choose(_)
            | Op::Ordered
            | Op::Defined(_)
            | Op::Enter
            | Op::Leave => {}
        }
        open.extend(next.map(|next| (next, registers)));
    }
    Constants { stores: search.found, complete }
}
