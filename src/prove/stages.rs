//! Total store order without buffers: views of memory in cubes, and their normal form.
//!
//! The reduction is that of tso-partial-order (writes reach memory in the order in which they are
//! scheduled), taken one step further. Under total store order every execution has one total order
//! of all writes, and every read can be scheduled at the later of two moments: when it reads
//! memory, and when the last write before it in its program is issued. So each run has an
//! equivalent one in which writes reach memory *immediately*, and reads read *earlier* memory. The
//! moments at which a process reads are non-decreasing (the load buffers of Abdulla, Atig,
//! Bouajjani and Ngo, 2018); its own writes since that moment are read from its store buffer. This
//! requires that processes interact through memory only: a process accesses only its own plain
//! cells ([`crate::premises`] checks that).
//!
//! Going backward, the future reads of a process form a sequence of *stages* 0, 1, ..: there are
//! moments `m0 <= m1 <= .. <= now` such that the view of a cell by `(process, stage)` is the value
//! of memory at that moment, unless the process has written the cell since. [`Atom::Fence`] of a
//! stage states that all writes of the process are in memory there, as `fence()` and locked
//! accesses require. The stage [`JOINT`] is one moment for all processes that have it: the state to
//! which `unsafe` refers, the end of the run. No stage of any process is later, and writes after it
//! are still in buffers at the end: they include no locked access, and no fence of their process
//! comes after them ([`Atom::Fence`] at that stage represents the rest of one). Memory now is an
//! array like any other. While tso-partial-order stores events and a relation `ghb` among them, a
//! cube here stores for each process a short sequence of constraints and nothing between processes.
//!
//! A write by process `p` at `now`, going backward: each other process chooses the suffix of its
//! stages that read memory after the write (these become constraints on memory, with the written
//! value substituted); the others are before it and unchanged. Stages that do not mention the
//! written cells are always placed before. A stage of `p` itself reads the written value in any
//! case; from the first fence on its stages are after the write.

use crate::atom::{Atom, Cell, JOINT, Literal, Signature};
use crate::residues::Residues;
use mu_base::narrow;

/// Returns the stages of a process in a list of atoms, in order.
pub fn of(atoms: &[Atom], process: u8) -> Vec<u8> {
    let mut found: Vec<u8> = Vec::new();
    for a in atoms {
        if let Atom::Fence(p, s) = a
            && *p == process
        {
            found.push(*s);
        }
        found.extend(
            a.cells().iter().filter_map(|c| c.view()).filter(|v| v.0 == process).map(|v| v.1),
        );
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the processes that read memory at some stage.
pub fn viewers(atoms: &[Atom]) -> Vec<u8> {
    let mut found: Vec<u8> = Vec::new();
    for a in atoms {
        if let Atom::Fence(p, _) = a {
            found.push(*p);
        }
        found.extend(a.cells().iter().filter_map(|c| c.view()).map(|v| v.0));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the stage of the first fence of a process; `None` if it has none.
pub fn fence(atoms: &[Atom], process: u8) -> Option<u8> {
    atoms
        .iter()
        .filter_map(
            |a| if let Atom::Fence(p, s) = a { (*p == process).then_some(*s) } else { None },
        )
        .min()
}

/// True if the cube mentions the end of the run as a moment that may be past.
pub fn has_end(atoms: &[Atom]) -> bool {
    atoms.iter().any(|a| a.cells().iter().any(|c| is_end(*c)))
}

fn is_end(cell: Cell) -> bool {
    cell.view().is_some_and(|v| v.1 == JOINT)
}

/// True if an atom mentions a cell of the stage.
fn mentions(atom: &Atom, view: (u8, u8)) -> bool {
    atom.cells().iter().any(|c| c.view() == Some(view))
}

/// Moves all cells of one stage to another view.
pub fn shift(atoms: &mut [Atom], from: (u8, u8), to: Option<(u8, u8)>) {
    for a in atoms.iter_mut() {
        let put = |c: &mut Cell| {
            if c.view() == Some(from) {
                *c = c.with_view(to);
            }
        };
        match a {
            Atom::In(c, _) => put(c),
            Atom::Same(x, y, _) => {
                put(x);
                put(y);
                if x > y {
                    std::mem::swap(x, y);
                }
            }
            Atom::Before(x, y, _) => {
                for p in [x, y] {
                    if let crate::atom::Point::Cell(c) = p {
                        put(c);
                    }
                }
            }
            Atom::Linear(l) => {
                for t in &mut l.terms {
                    put(&mut t.0);
                }
                l.terms.sort_unstable_by_key(|t| t.0);
                if matches!(
                    l.relation,
                    crate::simplex::ZeroRelation::Eq | crate::simplex::ZeroRelation::Ne
                ) && l.terms[0].1 < 0
                {
                    for t in &mut l.terms {
                        t.1 = -t.1;
                    }
                    l.constant = -l.constant;
                }
            }
            Atom::Residues(r) => {
                let put = |c: Cell| if c.view() == Some(from) { c.with_view(to) } else { c };
                // Only memory now may make cells equal. An atom that then holds is unchanged, and
                // one that never does becomes an empty set.
                let empty = |r: &Residues| r.cells().next().map(|c| Atom::In(c, 0));
                match (r.map(&put), empty(r)) {
                    (Literal::Atom(moved), _) => *a = moved,
                    (Literal::False, Some(never)) => *a = never,
                    _ => {}
                }
            }
            Atom::Fence(p, s) => {
                if (*p, *s) == from
                    && let Some((_, stage)) = to
                {
                    *s = stage;
                }
            }
        }
    }
}

/// Returns the atoms of a stage as constraints on memory now, if no atom relates the stage to
/// another.
fn pure(atoms: &[Atom], view: (u8, u8)) -> Option<Vec<Atom>> {
    let mut found: Vec<Atom> = atoms.iter().filter(|a| mentions(a, view)).cloned().collect();
    if found.iter().any(|a| a.cells().iter().any(|c| c.view().is_some_and(|v| v != view))) {
        return None;
    }
    shift(&mut found, view, None);
    Some(found)
}

/// True if an atom of the list implies the atom, by a simple check.
fn has(atoms: &[Atom], atom: &Atom) -> bool {
    atoms.iter().any(|a| match (a, atom) {
        (Atom::In(c, x), Atom::In(d, y)) => c == d && x & !y == 0,
        _ => a == atom,
    })
}

fn remove(atoms: &mut Vec<Atom>, view: (u8, u8)) {
    atoms.retain(|a| !mentions(a, view) && !matches!(a, Atom::Fence(p, s) if (*p, *s) == view));
}

/// Normalises the stages of all processes: only relevant fences, no stage that another one implies,
/// consecutive numbers from 0.
pub fn tidy(signature: &Signature, atoms: &mut Vec<Atom>) {
    if !signature.weak.contains(&true) {
        return;
    }
    let viewers = viewers(atoms);
    if viewers.is_empty() {
        return;
    }
    if has_end(atoms) && end_is_now(atoms) {
        atoms.retain(|a| !a.cells().iter().any(|c| is_end(*c)));
    }
    let ending = has_end(atoms);
    if !ending {
        atoms.retain(|a| !matches!(a, Atom::Fence(_, JOINT)));
    }
    for &p in &viewers {
        while tidy_one(atoms, p, ending) {}
        for (i, s) in of(atoms, p).into_iter().enumerate() {
            if s != JOINT && usize::from(s) != i {
                shift(atoms, (p, s), Some((p, narrow::byte(i))));
            }
        }
    }
    atoms.sort_unstable();
    atoms.dedup();
}

/// True if all constraints on the end of the run also hold for memory now. Then the end may be now,
/// which every other constraint on it allows.
fn end_is_now(atoms: &[Atom]) -> bool {
    let mut found: Vec<Atom> =
        atoms.iter().filter(|a| a.cells().iter().any(|c| is_end(*c))).cloned().collect();
    for p in viewers(&found) {
        shift(&mut found, (p, JOINT), None);
    }
    found.iter().all(|a| has(atoms, a))
}

/// Performs one step of [`tidy`] for one process, where the end of the run may be past if `ending`.
/// Returns true if anything changed.
fn tidy_one(atoms: &mut Vec<Atom>, p: u8, ending: bool) -> bool {
    let stages = of(atoms, p);
    let first = fence(atoms, p);
    let before = atoms.len();
    // A later fence is redundant.
    atoms.retain(|a| !matches!(a, Atom::Fence(q, s) if *q == p && first.is_some_and(|f| *s > f)));
    if atoms.len() < before {
        return true;
    }
    for (i, &s) in stages.iter().enumerate() {
        let next = stages.get(i + 1).copied();
        let empty = !atoms.iter().any(|a| mentions(a, (p, s)));
        if empty && s == JOINT {
            continue;
        }
        if empty {
            remove(atoms, (p, s));
            atoms.extend(next.or(ending.then_some(JOINT)).map(|n| Atom::Fence(p, n)));
            return true;
        }
        let Some(here) = pure(atoms, (p, s)) else { continue };
        match next {
            None if !ending && here.iter().all(|a| has(atoms, a)) => {
                remove(atoms, (p, s));
                return true;
            }
            None => {}
            Some(n) => {
                let Some(there) = pure(atoms, (p, n)) else { continue };
                if here.iter().all(|a| has(&there, a)) {
                    let fenced = first == Some(s);
                    remove(atoms, (p, s));
                    atoms.extend(fenced.then_some(Atom::Fence(p, n)));
                    return true;
                }
                if n != JOINT && first != Some(n) && there.iter().all(|a| has(&here, a)) {
                    remove(atoms, (p, n));
                    return true;
                }
            }
        }
    }
    false
}
