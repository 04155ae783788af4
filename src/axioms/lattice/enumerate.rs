//! Enumeration of all small programs up to isomorphism, that is, renaming of threads and locations.
//!
//! A program is enumerated if each of its locations is accessed twice and written once, and each
//! fence is between accesses. Other programs differ from a smaller one only in accesses that take
//! no part in communication. Programs come in a fixed order, small ones first, and each class is
//! represented by its least member. Cost: all sequences of operations, times the permutations of
//! threads.

use crate::execution::EventKind;
use crate::history::{History, Operation};
use crate::models::MemoryOrdering;
use mu_base::narrow;

/// The operations of programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alphabet {
    /// True if programs contain acquires and releases.
    pub marks: bool,
    /// True if programs contain fences.
    pub fences: bool,
    /// Largest number of locations.
    pub locations: u32,
}

/// Calls `visit` with each program of `n` operations, until it returns false. Reads have the value
/// 0; the writes to each location have 1, 2, ….
pub fn programs(n: usize, alphabet: Alphabet, visit: &mut dyn FnMut(&History) -> bool) -> bool {
    let mut shapes = Vec::new();
    partitions(n, n, &mut Vec::new(), &mut shapes);
    shapes.iter().all(|shape| {
        let mut program = History {
            threads: shape.iter().map(|&k| Vec::with_capacity(k)).collect(),
            last: Vec::new(),
        };
        fill(shape, 0, 0, alphabet, &mut program, visit)
    })
}

/// Computes the partitions of `n` with terms in descending order.
fn partitions(n: usize, most: usize, so_far: &mut Vec<usize>, out: &mut Vec<Vec<usize>>) {
    if n == 0 {
        out.push(so_far.clone());
    }
    for k in (1..=most.min(n)).rev() {
        so_far.push(k);
        partitions(n - k, k, so_far, out);
        so_far.pop();
    }
}

fn fill(
    shape: &[usize],
    t: usize,
    used: u32,
    alphabet: Alphabet,
    program: &mut History,
    visit: &mut dyn FnMut(&History) -> bool,
) -> bool {
    if t == shape.len() {
        return !(useful(program, used) && is_least(program)) || visit(&assign_values(program));
    }
    if program.threads[t].len() == shape[t] {
        // Threads of one length are sorted. This is only a first filter, since it ignores renaming.
        return fill(shape, t + 1, used, alphabet, program, visit);
    }
    let place = program.threads[t].len();
    for l in 0..(used + 1).min(alphabet.locations) {
        for (kind, mark) in [
            (EventKind::Write, MemoryOrdering::Plain),
            (EventKind::Read, MemoryOrdering::Plain),
            (EventKind::Write, MemoryOrdering::Release),
            (EventKind::Read, MemoryOrdering::Acquire),
        ] {
            if mark != MemoryOrdering::Plain && !alphabet.marks {
                continue;
            }
            program.threads[t].push(Operation { mark, ..Operation::plain(kind, l, 0) });
            let go_on = fill(shape, t, used.max(l + 1), alphabet, program, visit);
            program.threads[t].pop();
            if !go_on {
                return false;
            }
        }
    }
    let between =
        place > 0 && place + 1 < shape[t] && program.threads[t][place - 1].kind != EventKind::Fence;
    if alphabet.fences && between {
        program.threads[t].push(Operation::fence(MemoryOrdering::Plain));
        let go_on = fill(shape, t, used, alphabet, program, visit);
        program.threads[t].pop();
        return go_on;
    }
    true
}

fn useful(program: &History, used: u32) -> bool {
    (0..used).all(|l| {
        let here = || {
            program
                .threads
                .iter()
                .flatten()
                .filter(|o| o.kind != EventKind::Fence && o.location == l)
        };
        here().count() >= 2 && here().any(|o| o.kind.writes())
    })
}

/// Renames locations in the order of their first occurrence.
fn rename_locations(threads: &[&Vec<Operation>]) -> Vec<Vec<Operation>> {
    let mut names: Vec<u32> = Vec::new();
    let mut name = |l: u32| match names.iter().position(|n| *n == l) {
        Some(i) => narrow::index(i),
        None => {
            names.push(l);
            narrow::index(names.len()) - 1
        }
    };
    let mut rename = |o: &Operation| Operation {
        location: if o.kind == EventKind::Fence { 0 } else { name(o.location) },
        ..*o
    };
    threads.iter().map(|t| t.iter().map(&mut rename).collect()).collect()
}

/// True if no order of the threads gives a smaller program.
fn is_least(program: &History) -> bool {
    fn go(program: &History, order: &mut Vec<usize>) -> bool {
        let k = program.threads.len();
        if order.len() == k {
            let threads: Vec<&Vec<Operation>> =
                order.iter().map(|&i| &program.threads[i]).collect();
            return rename_locations(&threads) >= program.threads;
        }
        (0..k).all(|i| {
            if order.contains(&i) || program.threads[i].len() != program.threads[order.len()].len()
            {
                return true;
            }
            order.push(i);
            let least = go(program, order);
            order.pop();
            least
        })
    }
    go(program, &mut Vec::new())
}

/// Assigns values to the writes.
fn assign_values(program: &History) -> History {
    let mut out = program.clone();
    let mut next = [0u64; 64];
    for o in out.threads.iter_mut().flatten().filter(|o| o.kind.writes()) {
        next[o.location as usize] += 1;
        o.value = next[o.location as usize];
    }
    out
}
