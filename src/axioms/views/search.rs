//! Looks for a serial view (definition 16): a total order on some operations that extends a
//! relation, where the last write before each read writes to it.
//!
//! The order is built from its beginning. What can follow depends on the operations that are placed
//! and on the last write to each location, so a pair of these that led nowhere is remembered. Cost:
//! at most the number of such pairs, times the operations; each processor's operations are mostly
//! in a chain, so that is polynomial for a fixed number of processors.

use std::collections::HashSet;

use crate::execution::Skeleton;
use crate::relation::{Relation, Set};

/// Set of events as bits, with the last write of each location (one more than its number; 0 for
/// none).
type Place = (u64, Vec<u8>);

struct Search<'a> {
    skeleton: &'a Skeleton,
    /// For each member, those that must come before it.
    before: Vec<u64>,
    /// For each read, the writes that write to it.
    sources: Vec<u64>,
    locations: Vec<usize>,
    all: u64,
    failed: HashSet<Place>,
    order: Vec<usize>,
}

/// A serial view of the members, of whom there are at most 64 in all: their order, if there is one.
pub fn serial_view(
    skeleton: &Skeleton,
    members: &Set,
    order: &Relation,
    rf: &Relation,
) -> Option<Vec<usize>> {
    let n = skeleton.len();
    assert!(n <= 64, "at most 64 events");
    let all = members.words()[0];
    let mut before = vec![0; n];
    let mut sources = vec![0; n];
    for (a, b) in order.pairs().filter(|p| members.has(p.0) && members.has(p.1)) {
        before[b] |= 1 << a;
    }
    for (w, r) in rf.pairs().filter(|p| members.has(p.0) && members.has(p.1)) {
        sources[r] |= 1 << w;
    }
    // Locations by number, densely.
    let mut names: Vec<u32> =
        members.iter().filter_map(|e| skeleton.events()[e].location).collect();
    names.sort_unstable();
    names.dedup();
    let place = |e: usize| {
        skeleton.events()[e].location.and_then(|l| names.binary_search(&l).ok()).unwrap_or(0)
    };
    let locations = (0..n).map(place).collect();
    let mut search = Search {
        skeleton,
        before,
        sources,
        locations,
        all,
        failed: HashSet::new(),
        order: Vec::new(),
    };
    search.go(0, &mut vec![0; names.len().max(1)]).then_some(search.order)
}

impl Search<'_> {
    fn go(&mut self, placed: u64, last: &mut Vec<u8>) -> bool {
        if placed == self.all {
            return true;
        }
        if self.failed.contains(&(placed, last.clone())) {
            return false;
        }
        let mut rest = self.all & !placed;
        while rest != 0 {
            let e = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            if self.before[e] & !placed != 0 {
                continue;
            }
            let kind = self.skeleton.events()[e].kind;
            let l = self.locations[e];
            if kind.reads() && (last[l] == 0 || self.sources[e] >> (last[l] - 1) & 1 == 0) {
                continue;
            }
            let old = last[l];
            if kind.writes() {
                last[l] = e as u8 + 1;
            }
            self.order.push(e);
            if self.go(placed | 1 << e, last) {
                return true;
            }
            self.order.pop();
            last[l] = old;
        }
        self.failed.insert((placed, last.clone()));
        false
    }
}
