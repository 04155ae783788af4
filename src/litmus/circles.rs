//! Values that only a circle determines: a read takes the value of a write that is computed from
//! the read itself.
//!
//! The herd tools solve equations between the values of an execution, and drop an execution if a
//! circle of them contains a computation: `v = w + 1, w = v - 1` has no solution that they find,
//! although every number solves it. The search here tries listed values, so without this check the
//! answer would depend on which numbers happen to be listed. A circle of copies is kept: the values
//! listed for it are those of other writes, or any value in the C of the Linux kernel.
//!
//! Input: the shapes of the threads with their traces. Output: the reads on which each write
//! depends. That is a property of the instructions, not of the listed values: `x | 3` depends on
//! `x` also if all listed values give 3, and `x ^ x` depends on nothing. Cost: linear in the traces
//! for each pair, and only if a circle over locations is possible at all; a depth-first search for
//! each choice of sources.

use crate::paths::{EventShape, PathShape, PathValues};

/// The computed values of a combination of shapes.
#[derive(Debug)]
pub struct ValueCycles {
    /// For each event of the combination, the reads on which its written value depends; true for
    /// those of which it is a copy.
    from: Vec<Vec<(usize, bool)>>,
}

/// Returns the reads of its thread that the value of a write may depend on.
fn possible_sources(e: &EventShape, own: usize) -> impl Iterator<Item = usize> + '_ {
    let bits = e.data & !e.idle | e.within[0];
    (0..u128::BITS as usize).filter(move |&i| bits >> i & 1 == 1 || i == own && e.own)
}

/// True if locations can form a circle: of a read, of a write computed from it, and so on.
fn possible(shapes: &[&PathShape]) -> bool {
    let mut edges: Vec<(u32, u32)> = Vec::new();
    for shape in shapes {
        for (j, e) in shape.events.iter().enumerate().filter(|(_, e)| e.kind.writes()) {
            for i in possible_sources(e, j) {
                let cell = shape.events.get(i).and_then(|e| e.cell);
                edges.extend(cell.zip(e.cell).filter(|edge| !edges.contains(edge)));
            }
        }
    }
    // Remove the edges from locations that no edge leads to, as long as there are any.
    loop {
        let before = edges.len();
        let reached: Vec<u32> = edges.iter().map(|e| e.1).collect();
        edges.retain(|e| reached.contains(&e.0));
        if edges.len() == before {
            return before > 0;
        }
    }
}

/// True if a written value is a copy of a read on which it depends.
fn is_copy(event: &EventShape, traces: &[PathValues], write: usize, read: usize) -> bool {
    event.copies && traces.iter().all(|t| t.reads[read] == t.writes[write])
}

impl ValueCycles {
    /// Computes the dependencies of a combination; `None` if no circle is possible. `first` is the
    /// number of the first event of each thread, `events` that of all events.
    pub fn of(
        shapes: &[(&PathShape, &[PathValues])],
        first: &[usize],
        events: usize,
    ) -> Option<ValueCycles> {
        let alone: Vec<&PathShape> = shapes.iter().map(|s| s.0).collect();
        if !possible(&alone) {
            return None;
        }
        let mut from = vec![Vec::new(); events];
        for ((shape, traces), first) in shapes.iter().zip(first) {
            for (j, e) in shape.events.iter().enumerate().filter(|(_, e)| e.kind.writes()) {
                for i in possible_sources(e, j) {
                    from[first + j].push((first + i, is_copy(e, traces, j, i)));
                }
            }
        }
        from.iter().any(|f| !f.is_empty()).then_some(ValueCycles { from })
    }
    /// True if a circle with a computation determines a value. `source` returns the write that a
    /// read takes its value from.
    pub fn has_computation(&self, source: &dyn Fn(usize) -> Option<usize>) -> bool {
        let computed = |(w, from): (usize, &Vec<(usize, bool)>)| {
            from.iter().any(|&(r, copy)| !copy && self.reaches(source, r, w))
        };
        self.from.iter().enumerate().any(computed)
    }
    /// True if the value that a read takes depends on a write.
    fn reaches(&self, source: &dyn Fn(usize) -> Option<usize>, read: usize, write: usize) -> bool {
        let mut open = vec![read];
        let mut visited = vec![read];
        while let Some(r) = open.pop() {
            let Some(w) = source(r) else { continue };
            if w == write {
                return true;
            }
            for &(next, _) in self.from.get(w).into_iter().flatten() {
                if !visited.contains(&next) {
                    visited.push(next);
                    open.push(next);
                }
            }
        }
        false
    }
}
