//! Constants that a thread may store, whatever its reads take.
//!
//! In: a thread. Out: cells and values. Reads that justify each other through branches (`if (x) y =
//! 1 || if (y) x = 1`) have values that no path stores until one of the reads takes such a value.
//! So all paths are followed with unknown values: what depends on a read is unknown, and a branch
//! on it goes both ways. A store counts if its address and its value are known. A value that is
//! computed from a read follows from these in later rounds ([`crate::paths`]).
//!
//! Cost: bounded by [`MOST`] steps. Beyond them the constants that were found so far count.

use crate::code::{Expr, Op, Thread, low};
use crate::layout::{Found, Layout};
use std::collections::{BTreeSet, HashSet};

/// The most steps on all paths of a thread.
const MOST: usize = 1 << 14;

/// A place in the code, with the registers that are known.
type State = (u32, Vec<Option<u64>>);

fn value(e: &Expr, registers: &[Option<u64>]) -> Option<u64> {
    let mut known = true;
    let loaded = e.sources(&mut |r| known &= registers[r as usize].is_some());
    let full: Vec<u64> = registers.iter().map(|r| r.unwrap_or(0)).collect();
    (known && !loaded).then(|| e.value(&full, 0))
}

/// Finds the cells and values of stores whose address and value depend on no read.
pub fn stores(thread: &Thread, layout: &Layout) -> BTreeSet<(u32, u64)> {
    let mut found = BTreeSet::new();
    let branches = |op: &Op| {
        matches!(
            op,
            Op::Branch { when: Some(_), .. } | Op::Update { when: Some(_), .. } | Op::Assume(_)
        )
    };
    if !thread.ops.iter().any(branches) {
        // Each store is on a path already.
        return found;
    }
    let mut met: HashSet<State> = HashSet::new();
    let mut open: Vec<State> = vec![(0, thread.registers.iter().map(|r| Some(r.1)).collect())];
    while let Some((at, mut registers)) = open.pop() {
        let Some(op) = thread.ops.get(at as usize) else { continue };
        if met.len() >= MOST || !met.insert((at, registers.clone())) {
            continue;
        }
        let mut store = |address: &Expr, width: u8, stored: &Expr, registers: &[Option<u64>]| {
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
            Op::StoreConditional { status, address, width, value, .. } => {
                store(address, *width, value, &registers);
                status.iter().for_each(|r| registers[*r as usize] = None);
            }
            Op::Update { into, address, width, value, .. } => {
                store(address, *width, value, &registers);
                into.iter().for_each(|(r, _)| registers[*r as usize] = None);
            }
            Op::Either { to } => open.push((*to, registers.clone())),
            Op::Assume(e) | Op::Defined(e) if value(e, &registers) == Some(0) => next = None,
            Op::Branch { when, to } => match when.as_ref().map(|w| value(w, &registers)) {
                Some(Some(0)) => {}
                Some(None) => open.push((*to, registers.clone())),
                _ => next = Some(*to),
            },
            Op::Fence(_) | Op::Assume(_) | Op::Defined(_) => {}
        }
        open.extend(next.map(|next| (next, registers)));
    }
    found
}
