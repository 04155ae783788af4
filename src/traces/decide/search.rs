//! Search for a memory order: a run of the abstract machine with one memory.
//!
//! State: the nodes that are done, and the value of each location. A load is done as soon as its
//! value is there, which never hurts. A store is done at once if nobody still needs the value that
//! it overwrites, and everybody who needs its own value is ready to take it: this never hurts
//! either. Only other stores are choices. They are tried by deadline: the earliest place in the log
//! by which an observer needs them. Hence a log in the order of time is replayed without a wrong
//! choice most of the time, and the run is a certificate. States without a continuation are stored
//! exactly (not as hashes), so that commuting choices are searched once.
//!
//! Complete: if the search is exhausted, there is no memory order. Cost: linear in the edges if no
//! choice is revised. No recursion: a trail of nodes is undone from its end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ahash::{AHashMap, AHashSet};
use mu_base::{Budget, Stop, narrow};

use super::problem::{NodeRole, Problem};
use super::sources::{NONE, Sources};
use crate::trace::Trace;

/// Result of a search.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A memory order of all nodes.
    Found(Vec<u32>),
    /// There is none.
    Exhausted,
    /// More choices were revised than allowed.
    Revisions,
    /// A limit of the run.
    Stopped(Stop),
}

/// Limit on the nodes of a problem; beyond it failed states are not stored.
const MAX_STORED_NODES: usize = 20_000;
/// Limit on the memory of failed states in words of 8 bytes; beyond it no more are stored.
const MAX_STORED_WORDS: usize = 64 << 20;
/// Limit on the chain of updates that is followed to see that a store is harmless.
const MAX_CHAIN: usize = 32;

struct Search<'p> {
    p: &'p Problem,
    s: &'p Sources,
    trace: &'p Trace,
    deadlines: &'p [u64],
    missing: Vec<u32>,
    /// Bits of the nodes that are done.
    done: Vec<u64>,
    /// Loads that still need each class, and stores of each class that are not done.
    pending: Vec<u32>,
    remaining: Vec<u32>,
    /// Stores of each location that are not done.
    left: Vec<u32>,
    current: Vec<u32>,
    /// Loads without missing predecessors, by the class that they wait for.
    waiting: AHashMap<u32, Vec<u32>>,
    /// Stores without missing predecessors, by location.
    ready: Vec<Vec<u32>>,
    trail: Vec<u32>,
    overwritten: Vec<u32>,
    queue: Vec<u32>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// Stores that left the heap because their location was not free.
    parked: Vec<Vec<u32>>,
    choices: Vec<(u32, u32)>,
    failed: AHashSet<Box<[u64]>>,
    failed_words: usize,
}

/// Limit on the rounds that refine deadlines.
const MAX_ROUNDS: usize = 8;

/// Computes for each node the earliest place in the log by which an observer needs it, times four.
///
/// A load is needed at its place, a store at its first load by another thread (`immediate`: at its
/// own place), and all that comes before a node is needed before it. If the log is in the order of
/// time, then a value is in memory from the deadline of its store to its last load. Another store
/// with a deadline in this period comes before the period. Only the order of choices depends on
/// deadlines.
pub(crate) fn deadlines(
    p: &Problem,
    s: &Sources,
    trace: &Trace,
    order: &[u32],
    immediate: bool,
) -> Vec<u64> {
    let ranks = ranks(trace);
    let mut thread_of = vec![0u32; trace.len()];
    for t in 0..trace.threads.len() {
        trace.range(t).for_each(|i| thread_of[i] = narrow::index(t));
    }
    let mut first = vec![u64::MAX; s.place.len()];
    let mut last = vec![0; s.place.len()];
    for i in 0..trace.len() {
        let class = s.want[i];
        if class != NONE && s.is_unique(class) {
            let class = class as usize;
            let source = s.only[class];
            if source != NONE && thread_of[source as usize] != thread_of[i] {
                first[class] = first[class].min(4 * ranks[i]);
            }
            last[class] = last[class].max(4 * ranks[i]);
        }
    }
    let mut out = vec![u64::MAX; p.len()];
    for n in 0..narrow::index(p.len()) {
        let Some(o) = p.operation(n) else { continue };
        out[n as usize] = match p.roles[n as usize] {
            NodeRole::Store | NodeRole::Half if !immediate => first[s.class[o as usize] as usize],
            _ => 4 * ranks[o as usize],
        };
    }
    let places = stores_by_place(p, trace);
    for _ in 0..MAX_ROUNDS {
        for &n in order.iter().rev() {
            let later = p.successors(n).iter().map(|m| out[*m as usize]).min();
            out[n as usize] = out[n as usize].min(later.unwrap_or(u64::MAX));
        }
        if immediate || !refine(p, s, &places, &last, &mut out) {
            break;
        }
    }
    if trace.has_commits() {
        for n in 0..narrow::index(p.len()) {
            let operation = p.operation(n).filter(|_| p.roles[n as usize] != NodeRole::Load);
            if let Some(commit) = operation.and_then(|o| trace.operation(o as usize).commit) {
                out[n as usize] = commit;
            }
        }
    }
    out
}

/// Returns the nodes that store to each location.
fn stores_by_place(p: &Problem, trace: &Trace) -> Vec<Vec<u32>> {
    let mut places = vec![Vec::new(); trace.locations.len()];
    for n in 0..narrow::index(p.len()) {
        if matches!(p.roles[n as usize], NodeRole::Store | NodeRole::Update | NodeRole::Half) {
            let o = p.operation(n).expect("a store") as usize;
            places[trace.location(o) as usize].push(n);
        }
    }
    places
}

/// Moves deadlines in front of the periods in which another value is in memory. Returns true if one
/// moved.
fn refine(p: &Problem, s: &Sources, places: &[Vec<u32>], last: &[u64], out: &mut [u64]) -> bool {
    let mut moved = false;
    for stores in places {
        let class = |n: u32| s.class[p.operation(n).expect("a store") as usize] as usize;
        let want = |n: u32| match p.roles[n as usize] {
            NodeRole::Store => NONE,
            _ => s.want[p.operation(n).expect("a store") as usize],
        };
        let mut periods: Vec<(u64, u64, u32)> = stores
            .iter()
            .map(|n| (out[*n as usize], last[class(*n)], *n))
            .filter(|period| period.0 < period.1)
            .collect();
        periods.sort_unstable();
        for &n in stores {
            loop {
                let deadline = out[n as usize];
                let before = periods.partition_point(|period| period.0 < deadline);
                // An update ends the period of the value that it loads.
                let reads = |q: u32| want(n) == narrow::index(class(q));
                let inside =
                    periods[..before].last().filter(|q| q.2 != n && deadline <= q.1 && !reads(q.2));
                let Some(period) = inside else { break };
                out[n as usize] = period.0.saturating_sub(1);
                moved = true;
                if period.0 == 0 {
                    break;
                }
            }
        }
    }
    moved
}

/// Computes the place of each operation in the log: by lines if the threads alternate there, else
/// by begin times, else by the position in the thread.
fn ranks(trace: &Trace) -> Vec<u64> {
    let threads = trace.threads.len();
    let spans: Vec<(u32, u32)> = (0..threads)
        .map(|t| trace.range(t))
        .filter(|r| !r.is_empty())
        .map(|r| (trace.line(r.start), trace.line(r.end - 1)))
        .collect();
    let mut sorted = spans.clone();
    sorted.sort_unstable();
    let alternate = sorted.windows(2).any(|w| w[1].0 < w[0].1);
    if alternate {
        return (0..trace.len()).map(|i| u64::from(trace.line(i))).collect();
    }
    let mut out = Vec::with_capacity(trace.len());
    for t in 0..threads {
        let mut begin = 0;
        for (k, i) in trace.range(t).enumerate() {
            if trace.has_times() {
                begin = trace.operation(i).begin.unwrap_or(begin);
                out.push(begin);
            } else {
                out.push(k as u64);
            }
        }
    }
    out
}

/// Searches for a memory order.
pub(crate) fn search(
    p: &Problem,
    s: &Sources,
    trace: &Trace,
    deadlines: &[u64],
    max_revisions: u64,
    budget: &Budget,
) -> Outcome {
    let mut search = Search::new(p, s, trace, deadlines);
    search.run(max_revisions, budget)
}

impl<'p> Search<'p> {
    fn new(p: &'p Problem, s: &'p Sources, trace: &'p Trace, deadlines: &'p [u64]) -> Self {
        let places = trace.locations.len();
        let mut out = Search {
            p,
            s,
            trace,
            deadlines,
            missing: p.predecessors.clone(),
            done: vec![0; p.len().div_ceil(64)],
            pending: vec![0; s.place.len()],
            remaining: s.stores.clone(),
            left: vec![0; places],
            current: (0..narrow::index(places)).collect(),
            waiting: AHashMap::new(),
            ready: vec![Vec::new(); places],
            trail: Vec::with_capacity(p.len()),
            overwritten: Vec::new(),
            queue: Vec::new(),
            heap: BinaryHeap::new(),
            parked: vec![Vec::new(); places],
            choices: Vec::new(),
            failed: AHashSet::new(),
            failed_words: 0,
        };
        for n in 0..narrow::index(p.len()) {
            let (want, class) = out.classes(n);
            if want != NONE {
                out.pending[want as usize] += 1;
            }
            if class != NONE {
                out.left[s.place[class as usize] as usize] += 1;
            }
        }
        for n in 0..narrow::index(p.len()) {
            if p.predecessors[n as usize] == 0 {
                out.make_ready(n);
            }
        }
        out
    }
    fn is_done(&self, n: u32) -> bool {
        self.done[n as usize / 64] >> (n % 64) & 1 == 1
    }
    /// Returns the class that a node needs and the one that it stores.
    fn classes(&self, n: u32) -> (u32, u32) {
        let Some(o) = self.p.operation(n) else { return (NONE, NONE) };
        let (want, class) = (self.s.want[o as usize], self.s.class[o as usize]);
        match self.p.roles[n as usize] {
            NodeRole::Order => (NONE, NONE),
            NodeRole::Load => (want, NONE),
            NodeRole::Store => (NONE, class),
            NodeRole::Update | NodeRole::Half => (want, class),
        }
    }
    fn place(&self, n: u32) -> usize {
        let operation = self.p.operation(n).expect("an access has an operation");
        self.trace.location(operation as usize) as usize
    }
    /// True if a load without missing predecessors can take its value.
    fn loadable(&self, n: u32, want: u32) -> bool {
        let own = self.p.own[n as usize];
        if own != NONE && !self.is_done(own) {
            return self.classes(own).1 == want;
        }
        self.current[self.place(n)] == want
    }
    fn make_ready(&mut self, n: u32) {
        let (want, class) = self.classes(n);
        if class != NONE {
            let place = self.place(n);
            self.ready[place].push(n);
            self.heap.push(Reverse((self.deadlines[n as usize], n)));
            if want == NONE {
                self.queue.push(n);
            } else {
                // The store that an update reads may have become harmless.
                self.push_ready(n);
            }
        } else if want == NONE || self.loadable(n, want) {
            self.queue.push(n);
            if want != NONE {
                self.waiting.entry(want).or_default().push(n);
            }
        } else {
            let list = self.waiting.entry(want).or_default();
            list.push(n);
            // The stores of the value may have become harmless.
            self.push_ready(n);
        }
    }
    /// Queues the stores to the location of an access that are ready.
    fn push_ready(&mut self, n: u32) {
        let place = self.place(n);
        self.queue.extend_from_slice(&self.ready[place]);
    }
    fn forget_waiting(&mut self, n: u32, want: u32) {
        if let Some(list) = self.waiting.get_mut(&want) {
            if let Some(at) = list.iter().position(|m| *m == n) {
                list.swap_remove(at);
            }
            if list.is_empty() {
                self.waiting.remove(&want);
            }
        }
    }
    /// True if a store without missing predecessors may be done now; `harmless` if nobody needs the
    /// overwritten value.
    fn storable(&self, n: u32) -> Option<bool> {
        let (want, class) = self.classes(n);
        let place = self.place(n);
        let now = self.current[place];
        if want != NONE && want != now {
            return None;
        }
        let last = self.s.last[place];
        let mut lasting = false;
        if last != NONE {
            let left = self.left[place] - 1;
            let last_left = self.remaining[last as usize] - u32::from(class == last);
            if left > 0 && last_left == 0 || left == 0 && class != last {
                return None;
            }
            // Of several stores with the final value, the last one has to be chosen.
            lasting = class == last && left > 0;
        }
        let needed = self.pending[now as usize] - u32::from(want == now);
        if needed == 0 || class == now {
            return Some(!lasting);
        }
        (self.remaining[now as usize] > 0).then_some(false)
    }
    /// True if all who need the value of a store are ready to take it, also if they are updates.
    fn is_satisfied(&self, n: u32) -> bool {
        let mut store = n;
        for _ in 0..MAX_CHAIN {
            let (want, class) = self.classes(store);
            let needed = self.pending[class as usize] - u32::from(want == class);
            if needed == 0 {
                return true;
            }
            let list = self.waiting.get(&class).map_or(&[][..], Vec::as_slice);
            let free = |m: &&u32| {
                let own = self.p.own[**m as usize];
                own == NONE || own == store || self.is_done(own)
            };
            let ready = narrow::index(list.iter().filter(free).count());
            if ready == needed {
                return true;
            }
            if ready + 1 != needed {
                return false;
            }
            let place = self.place(n);
            let update =
                self.ready[place].iter().find(|m| **m != store && self.classes(**m).0 == class);
            let half = || {
                list.iter().flat_map(|m| self.p.successors(*m)).find(|h| {
                    self.p.roles[**h as usize] == NodeRole::Half
                        && self.missing[**h as usize] == 1
                        && self.classes(**h).0 == class
                })
            };
            match update.or_else(half) {
                Some(&next) if self.s.last[place] == NONE => store = next,
                _ => return false,
            }
        }
        false
    }
    /// Does a node, and makes others ready.
    fn perform(&mut self, n: u32) {
        let (want, class) = self.classes(n);
        self.done[n as usize / 64] |= 1 << (n % 64);
        self.trail.push(n);
        if class != NONE {
            let place = self.place(n);
            let at = self.ready[place].iter().position(|m| *m == n).expect("the store is ready");
            self.ready[place].swap_remove(at);
            self.overwritten.push(self.current[place]);
            self.current[place] = class;
            self.remaining[class as usize] -= 1;
            self.left[place] -= 1;
        } else if want != NONE {
            self.forget_waiting(n, want);
        }
        if want != NONE {
            self.pending[want as usize] -= 1;
        }
        let p = self.p;
        for &m in p.successors(n) {
            self.missing[m as usize] -= 1;
            if self.missing[m as usize] == 0 {
                self.make_ready(m);
            }
        }
        if want != NONE || class != NONE {
            let place = self.place(n);
            if class != NONE
                && let Some(list) = self.waiting.get(&class)
            {
                self.queue.extend_from_slice(list);
            }
            let now = self.current[place] as usize;
            if class != NONE || self.pending[now] <= 1 {
                self.queue.extend_from_slice(&self.ready[place]);
                for m in std::mem::take(&mut self.parked[place]) {
                    self.heap.push(Reverse((self.deadlines[m as usize], m)));
                }
            }
        }
    }
    /// Undoes the nodes from a length of the trail on.
    fn undo(&mut self, length: usize) {
        while self.trail.len() > length {
            let n = self.trail.pop().expect("the trail is longer");
            let (want, class) = self.classes(n);
            let p = self.p;
            for &m in p.successors(n) {
                if self.missing[m as usize] == 0 {
                    self.unready(m);
                }
                self.missing[m as usize] += 1;
            }
            if want != NONE {
                self.pending[want as usize] += 1;
            }
            self.done[n as usize / 64] &= !(1 << (n % 64));
            if class != NONE {
                let place = self.place(n);
                self.current[place] = self.overwritten.pop().expect("one for each store");
                self.remaining[class as usize] += 1;
                self.left[place] += 1;
                self.ready[place].push(n);
            } else if want != NONE {
                self.waiting.entry(want).or_default().push(n);
            }
        }
        self.queue.clear();
        self.heap.clear();
        self.parked.iter_mut().for_each(Vec::clear);
        for list in &self.ready {
            self.heap.extend(list.iter().map(|n| Reverse((self.deadlines[*n as usize], *n))));
        }
    }
    fn unready(&mut self, n: u32) {
        let (want, class) = self.classes(n);
        if class != NONE {
            let place = self.place(n);
            self.ready[place].retain(|m| *m != n);
        } else if want != NONE {
            self.forget_waiting(n, want);
        }
    }
    /// Does all nodes that never hurt.
    fn saturate(&mut self) {
        while let Some(n) = self.queue.pop() {
            if self.is_done(n) || self.missing[n as usize] > 0 {
                continue;
            }
            let (want, class) = self.classes(n);
            let go = if class != NONE {
                self.storable(n) == Some(true) && self.is_satisfied(n)
            } else {
                want == NONE || self.loadable(n, want)
            };
            if go {
                self.perform(n);
            }
        }
    }
    /// Returns the ready store with the earliest deadline that may be done.
    fn first_candidate(&mut self) -> Option<u32> {
        while let Some(Reverse((_, n))) = self.heap.pop() {
            if self.is_done(n) || self.missing[n as usize] > 0 {
                continue;
            }
            match self.storable(n) {
                Some(_) => {
                    self.heap.push(Reverse((self.deadlines[n as usize], n)));
                    return Some(n);
                }
                None => {
                    let place = self.place(n);
                    self.parked[place].push(n);
                }
            }
        }
        None
    }
    /// Returns all ready stores that may be done, the earliest deadline first.
    fn candidates(&self) -> Vec<u32> {
        let ready = self.ready.iter().flatten().copied();
        let mut out: Vec<u32> = ready.filter(|n| self.storable(*n).is_some()).collect();
        out.sort_unstable_by_key(|n| (self.deadlines[*n as usize], *n));
        out
    }
    /// Returns the state exactly: the nodes that are done and the value of each location.
    fn key(&self) -> Box<[u64]> {
        let mut out = self.done.clone();
        out.extend(self.current.iter().map(|c| u64::from(*c)));
        out.into()
    }
    fn store_failure(&mut self) {
        if self.p.len() <= MAX_STORED_NODES && self.failed_words < MAX_STORED_WORDS {
            let key = self.key();
            self.failed_words += key.len() + 3;
            self.failed.insert(key);
        }
    }
    fn run(&mut self, max_revisions: u64, budget: &Budget) -> Outcome {
        let mut revisions = 0u64;
        let mut polled = 0usize;
        loop {
            self.saturate();
            if self.trail.len() == self.p.len() {
                return Outcome::Found(std::mem::take(&mut self.trail));
            }
            polled += 1;
            if polled.is_multiple_of(1024) {
                if let Err(stop) = budget.check(revisions) {
                    return Outcome::Stopped(stop);
                }
                if polled.is_multiple_of(1 << 16)
                    && let Err(stop) = budget.check_memory()
                {
                    return Outcome::Stopped(stop);
                }
            }
            let known = !self.failed.is_empty() && self.failed.contains(&self.key());
            let mut next = if known { None } else { self.first_candidate() };
            if next.is_some() {
                self.choices.push((narrow::index(self.trail.len()), 1));
            }
            while next.is_none() {
                let Some((length, tried)) = self.choices.pop() else { return Outcome::Exhausted };
                revisions += 1;
                if revisions > max_revisions {
                    return Outcome::Revisions;
                }
                self.undo(length as usize);
                next = self.candidates().get(tried as usize).copied();
                match next {
                    Some(_) => self.choices.push((length, tried + 1)),
                    None => self.store_failure(),
                }
            }
            self.perform(next.expect("a candidate"));
        }
    }
}
