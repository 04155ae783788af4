//! Search for a serial view (definition 16): a total order on some operations that extends a
//! relation, and in which the last write before each read is a source of it.
//!
//! The order is built from the front. The possible continuations depend only on the set of placed
//! operations and on the last write to each location, so such pairs that failed are stored. Cost:
//! at most the number of these pairs, times the operations. Each processor's operations are usually
//! a chain, so this is polynomial for a fixed number of processors.

use mu_base::narrow;
use std::collections::HashSet;

use crate::execution::Skeleton;
use crate::relation::{Relation, Set};

/// A search state: the placed events as bits, with the last write of each location (one more than
/// its index; 0 for none).
type SearchState = (u64, Vec<u8>);

struct ViewSearch<'a> {
    skeleton: &'a Skeleton,
    /// For each member, the members that must be before it.
    before: Vec<u64>,
    /// For each read, its sources.
    sources: Vec<u64>,
    /// The location of each event, numbered densely; `None` if it accesses no memory.
    locations: Vec<Option<usize>>,
    /// The members as bits.
    all: u64,
    /// States from which no order can be completed.
    failed: HashSet<SearchState>,
    /// The placed events, in order.
    order: Vec<usize>,
}

/// Returns the order of a serial view of the members, of which there are at most 64; `None` if
/// there is none.
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
    for (a, b) in order.pairs().filter(|p| members.contains(p.0) && members.contains(p.1)) {
        before[b] |= 1 << a;
    }
    for (w, r) in rf.pairs().filter(|p| members.contains(p.0) && members.contains(p.1)) {
        sources[r] |= 1 << w;
    }
    // Locations, numbered densely.
    let mut names: Vec<u32> =
        members.iter().filter_map(|e| skeleton.events()[e].location).collect();
    names.sort_unstable();
    names.dedup();
    let place = |e: usize| skeleton.events()[e].location.and_then(|l| names.binary_search(&l).ok());
    let locations = (0..n).map(place).collect();
    let mut search = ViewSearch {
        skeleton,
        before,
        sources,
        locations,
        all,
        failed: HashSet::new(),
        order: Vec::new(),
    };
    search.extend(0, &mut vec![0; names.len()]).then_some(search.order)
}

impl ViewSearch<'_> {
    /// Completes the order, given the placed events and the last writes. Returns false if that is
    /// impossible.
    fn extend(&mut self, placed: u64, last: &mut Vec<u8>) -> bool {
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
            let location = self.locations[e];
            let old = location.map_or(0, |l| last[l]);
            if kind.reads() && (old == 0 || self.sources[e] >> (old - 1) & 1 == 0) {
                continue;
            }
            let written = location.filter(|_| kind.writes());
            if let Some(l) = written {
                last[l] = narrow::byte(e) + 1;
            }
            self.order.push(e);
            if self.extend(placed | 1 << e, last) {
                return true;
            }
            self.order.pop();
            if let Some(l) = written {
                last[l] = old;
            }
        }
        self.failed.insert((placed, last.clone()));
        false
    }
}
