//! Constants that a thread may store for some values of its reads.
//!
//! Input: a thread. Output: cells and values. Reads that justify each other through branches (`if
//! (x) y = 1 || if (y) x = 1`) have values that no path stores until one of the reads takes such a
//! value. So all paths are executed with unknown values: results that depend on a read are unknown,
//! and a branch on an unknown value takes both directions. A store is recorded if its address and
//! value are known. Values that are computed from reads follow from these in later rounds
//! ([`crate::paths`]).
//!
//! Cost: at most [`MAX_STEPS`] steps. Beyond this limit the constants found so far are returned: a
//! gap that docs/reliability.md states, since no caller learns of it.

use crate::code::{self, Op, RegisterExpr, Thread, low};
use crate::layout::{Found, MemoryLayout};
use std::collections::{BTreeSet, HashSet};

/// Limit on the number of steps on all paths of a thread; beyond it the search ends.
const MAX_STEPS: usize = 1 << 14;

/// A position in the code, with the values of known registers.
type KnownRegisters = (u32, Vec<Option<u64>>);

fn value(e: &RegisterExpr, registers: &[Option<u64>]) -> Option<u64> {
    let mut known = true;
    let loaded = e.sources(&mut |r| known &= registers[r as usize].is_some());
    let full: Vec<u64> = registers.iter().map(|r| r.unwrap_or(0)).collect();
    (known && !loaded).then(|| e.value(&full, 0))
}

/// Finds the cells and values of stores with an address and value that do not depend on reads.
pub fn stores(thread: &Thread, layout: &MemoryLayout) -> BTreeSet<(u32, u64)> {
    let mut found = BTreeSet::new();
    let branches = |op: &Op| {
        matches!(
            op,
            Op::Branch { when: Some(_), .. }
                | Op::Update { when: Some(_), .. }
                | Op::Assume(_)
                | Op::Choose(_)
                | Op::Jump(_)
        )
    };
    if !thread.ops.iter().any(branches) {
        // Without branches each store is already on a path.
        return found;
    }
    let mut visited: HashSet<KnownRegisters> = HashSet::new();
    let mut open: Vec<KnownRegisters> =
        vec![(0, thread.registers.iter().map(|r| Some(r.1)).collect())];
    while let Some((at, mut registers)) = open.pop() {
        let Some(op) = thread.ops.get(at as usize) else { continue };
        if visited.len() >= MAX_STEPS || !visited.insert((at, registers.clone())) {
            continue;
        }
        let mut store = |address: &RegisterExpr,
                         width: u8,
                         stored: &RegisterExpr,
                         registers: &[Option<u64>]| {
            let (Some(address), Some(stored)) =
                (value(address, registers), value(stored, registers))
            else {
                return;
            };
            if let Found::Cells(first, count) = layout.access(address, width) {
                let cells = &layout.cells()[first as usize..(first + count) as usize];
                for (i, cell) in (first..).zip(cells) {
                    let shifted = stored >> ((cell.offset - cells[0].offset) * 8);
                    found.insert((i, low(shifted, u32::from(cell.width) * 8)));
                }
            }
        };
        let mut next = Some(at + 1);
        match op {
            Op::Let(r, e) => registers[*r as usize] = value(e, &registers),
            Op::Load { into, .. } => into.iter().for_each(|r| registers[*r as usize] = None),
            Op::Store { address, width, value, .. } => store(address, *width, value, &registers),
            Op::StoreConditional { status, address, width, value, second, .. } => {
                store(address, *width, value, &registers);
                if let Some(second) = second {
                    let next = address.clone().plus(u64::from(*width));
                    store(&next, *width, second, &registers);
                }
                status.iter().for_each(|r| registers[*r as usize] = None);
            }
            Op::Update { into, address, width, value, .. } => {
                store(address, *width, value, &registers);
                into.iter().for_each(|(r, _)| registers[*r as usize] = None);
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
            Op::Jump(address) => {
                let to = value(address, &registers).and_then(code::instruction_at);
                next = to.map(|(_, instruction)| thread.operation(instruction));
            }
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
    found
}
