//! Accesses of several sizes that overlap: search for a memory order over bytes.
//!
//! An access is one event in the memory order, for all its bytes. Each byte of a load has the
//! value of the last store to the byte in memory order, or of the last earlier store of its own
//! thread to the byte, if that one comes later in memory order (the load value axiom of the RISC-V
//! manual). Accesses of a thread are to one location if they share a byte. Bytes are
//! little-endian.
//!
//! In: a trace, a model with one memory. Out: an order of all events, checked by other code
//! (`crate::witness_bytes`), or none. In `rvwmo` and `armv8` two bounds decide: a stronger model,
//! in which updates are one event and loads of one location stay in order, and a weaker one
//! without either rule. Method: depth-first search; loads are done as soon as their bytes are
//! there, stores of bytes that nobody needs at once. Exhaustive; failed states are stored exactly.
//! Cost: exponential in the number of stores that compete, linear without competition.

use std::cmp::Reverse;

use ahash::{AHashMap, AHashSet};
use mu_base::{Budget, Stop, narrow};

use super::problem::{self, NodeRole, PreservedOrder, Problem};
use super::sources::Sources;
use super::{DecisionOptions, Verdict, Witness, no_order, revisions_exhausted, unknown_verdict};
use crate::model::TraceModel;
use crate::trace::{Operation, Trace};
use crate::witness_bytes::{Bytes, OrderEvent};

/// Limit on the memory of failed states in words of 8 bytes; beyond it no more are stored.
const MAX_STORED_WORDS: usize = 16 << 20;

/// Decides a trace with accesses of several sizes.
pub(crate) fn decide(
    trace: &Trace,
    model: &TraceModel,
    options: &DecisionOptions,
    budget: &Budget,
) -> Verdict {
    let open = |reason: &str| Verdict::Unknown { stop: Stop::States, reason: reason.to_string() };
    let Some(rules) = PreservedOrder::of(model) else {
        return open("accesses of different sizes share bytes, which is not defined in this model");
    };
    let is_marked = (0..trace.len()).any(|i| trace.mark(i) != crate::trace::Annotations::PLAIN);
    if !rules.depends_on_sources() {
        return match search(trace, rules, true, options, budget) {
            Outcome::Found(events) => checked_verdict(trace, model, events)
                .unwrap_or_else(|message| open(&format!("the order found is wrong: {message}"))),
            Outcome::Exhausted => Verdict::Forbidden { conflict: no_order(trace) },
            Outcome::Revisions => revisions_exhausted("the search for an order of bytes"),
            Outcome::Stopped(stop) => unknown_verdict(stop, "the search for an order of bytes"),
        };
    }
    // The annotations of the two bounds are the same, but the check has none.
    if !is_marked
        && let Outcome::Found(events) =
            search(trace, rules.with_joint_updates(), true, options, budget)
        && let Ok(verdict) = checked_verdict(trace, model, events)
    {
        return verdict;
    }
    match search(trace, rules, false, options, budget) {
        Outcome::Found(events) if !is_marked => checked_verdict(trace, model, events)
            .unwrap_or_else(|_| open("the order of loads of overlapping bytes remains open")),
        Outcome::Found(_) => {
            open("annotated accesses of different sizes share bytes, which no method here allows")
        }
        Outcome::Exhausted => Verdict::Forbidden { conflict: no_order(trace) },
        Outcome::Revisions => revisions_exhausted("the search for an order of bytes"),
        Outcome::Stopped(stop) => unknown_verdict(stop, "the search for an order of bytes"),
    }
}

/// Returns the verdict for an order that independent code checks.
fn checked_verdict(
    trace: &Trace,
    model: &TraceModel,
    events: Vec<OrderEvent>,
) -> Result<Verdict, String> {
    crate::witness_bytes::check(trace, model, &events)?;
    let steps = events.iter().map(|e| match e {
        OrderEvent::Store(i) if trace.kind(*i as usize) == crate::trace::OperationKind::Store => {
            super::WitnessStep::Reach(*i)
        }
        OrderEvent::Store(i) | OrderEvent::Load(i) | OrderEvent::Whole(i) => {
            super::WitnessStep::Perform(*i)
        }
    });
    let mut steps: Vec<super::WitnessStep> = steps.collect();
    // The store of an update in two events is a step of its own.
    let mut seen = AHashSet::new();
    for step in &mut steps {
        if let super::WitnessStep::Perform(i) = *step
            && !seen.insert(i)
        {
            *step = super::WitnessStep::Reach(i);
        }
    }
    Ok(Verdict::Allowed { witness: Witness::Run(steps) })
}

enum Outcome {
    Found(Vec<OrderEvent>),
    Exhausted,
    Revisions,
    Stopped(Stop),
}

/// Searches for a memory order. `strict`: loads of one location stay in order, and other threads
/// do not store between the two events of an update.
fn search(
    trace: &Trace,
    rules: PreservedOrder,
    strict: bool,
    options: &DecisionOptions,
    budget: &Budget,
) -> Outcome {
    let bytes = Bytes::of(trace);
    let p = nodes(trace, &bytes, rules, strict);
    if super::topological(&p).len() < p.len() {
        return Outcome::Exhausted;
    }
    Search::new(trace, &bytes, &p).run(options.max_revisions, budget)
}

/// Returns the nodes with the edges of a model.
fn nodes(trace: &Trace, bytes: &Bytes, rules: PreservedOrder, strict: bool) -> Problem {
    // Each access has a location of its own, so that only edges between locations remain.
    let apart = trace.with_separate_locations();
    let p = problem::build(&apart, &Sources::of(&apart, &[]), rules);
    let mut edges: Vec<(u32, u32)> = Vec::new();
    for n in 0..narrow::index(p.len()) {
        edges.extend(p.successors(n).iter().map(|m| (n, *m)));
    }
    let mut halves = AHashMap::new();
    for n in narrow::index(trace.len())..narrow::index(p.len()) {
        if let (NodeRole::Half, Some(o)) = (p.roles[n as usize], p.operation(n)) {
            halves.insert(o as usize, n);
        }
    }
    let store = |i: usize| halves.get(&i).copied().unwrap_or(narrow::index(i));
    for thread in 0..trace.threads.len() {
        let range = trace.range(thread);
        // The latest accesses of each byte; earlier ones come before them.
        let mut stores: AHashMap<u32, usize> = AHashMap::new();
        let mut loads: AHashMap<u32, Vec<usize>> = AHashMap::new();
        let mut last_loads: AHashMap<u32, usize> = AHashMap::new();
        for j in range {
            let kind = trace.kind(j);
            for b in bytes.range(j) {
                if kind.stores() {
                    edges.extend(stores.get(&b).map(|i| (store(*i), store(j))));
                    let before = loads.get(&b).into_iter().flatten();
                    edges
                        .extend(before.filter(|i| **i != j).map(|i| (narrow::index(*i), store(j))));
                }
                if kind.loads() && strict {
                    edges.extend(last_loads.get(&b).map(|i| (narrow::index(*i), narrow::index(j))));
                    // A load does not read an update of its thread before that is in memory.
                    let update = stores.get(&b).filter(|i| trace.kind(**i).loads());
                    let update = update.filter(|_| rules.depends_on_sources());
                    edges.extend(update.map(|i| (store(*i), narrow::index(j))));
                }
            }
            for b in bytes.range(j) {
                if kind.stores() {
                    stores.insert(b, j);
                    loads.remove(&b);
                }
                if kind.loads() {
                    last_loads.insert(b, j);
                    loads.entry(b).or_default().push(j);
                }
            }
        }
    }
    for (from, to) in super::saturate::commit_order(trace) {
        edges.push((store(from as usize), store(to as usize)));
    }
    edges.retain(|e| e.0 != e.1);
    edges.sort_unstable();
    edges.dedup();
    p.with_edges(&edges)
}

/// Events that are not done and have a value of a byte. Required final values count as loads.
#[derive(Clone, Copy, Default)]
struct OpenEvents {
    /// Loads that have to take it from memory.
    memory: u32,
    /// All loads.
    loads: u32,
    stores: u32,
}

/// State of the search.
struct Search<'p> {
    trace: &'p Trace,
    bytes: &'p Bytes,
    p: &'p Problem,
    missing: Vec<u32>,
    done: Vec<u64>,
    /// Values of bytes; `None` if unknown.
    memory: Vec<Option<u8>>,
    /// The node of the last earlier store of the thread to each byte of each load.
    own: AHashMap<(u32, u32), u32>,
    /// Loads and stores of each value of each byte that are not done.
    needs: AHashMap<(u32, u8), OpenEvents>,
    trail: Vec<(u32, Vec<Option<u8>>)>,
    ready: Vec<u32>,
    failed: AHashSet<Box<[u64]>>,
    words: usize,
}

impl<'p> Search<'p> {
    fn new(trace: &'p Trace, bytes: &'p Bytes, p: &'p Problem) -> Self {
        let mut search = Search {
            trace,
            bytes,
            p,
            missing: p.predecessors.clone(),
            done: vec![0; p.len().div_ceil(64)],
            memory: bytes.initial.clone(),
            own: AHashMap::new(),
            needs: AHashMap::new(),
            trail: Vec::new(),
            ready: Vec::new(),
            failed: AHashSet::new(),
            words: 0,
        };
        let mut store_node: AHashMap<u32, u32> = AHashMap::new();
        for n in 0..narrow::index(p.len()) {
            if let (true, Some(o)) = (search.stores(n), p.operation(n)) {
                store_node.insert(o, n);
            }
        }
        for thread in 0..trace.threads.len() {
            let mut latest: AHashMap<u32, u32> = AHashMap::new();
            for i in trace.range(thread) {
                for b in bytes.range(i) {
                    if let Some(store) = latest.get(&b).filter(|_| trace.kind(i).loads()) {
                        search.own.insert((narrow::index(i), b), store_node[store]);
                    }
                    if trace.kind(i).stores() {
                        latest.insert(b, narrow::index(i));
                    }
                }
            }
        }
        for n in 0..narrow::index(p.len()) {
            search.count(n, 1);
        }
        // A required final value is a load of its bytes at the end, which never takes place.
        for f in &trace.finals {
            for (k, b) in bytes.part(f.location, f.offset, f.size).enumerate() {
                let needs = search.needs.entry((b, byte(f.value, k))).or_default();
                needs.loads += 1;
                needs.memory += 1;
            }
        }
        search.ready =
            (0..narrow::index(p.len())).filter(|n| search.missing[*n as usize] == 0).collect();
        search
    }
    fn operation(&self, n: u32) -> Option<Operation> {
        self.p.operation(n).map(|o| self.trace.operation(o as usize))
    }
    fn loads(&self, n: u32) -> bool {
        matches!(self.p.roles[n as usize], NodeRole::Load | NodeRole::Update)
    }
    fn stores(&self, n: u32) -> bool {
        matches!(self.p.roles[n as usize], NodeRole::Store | NodeRole::Update | NodeRole::Half)
    }
    fn is_done(&self, n: u32) -> bool {
        self.done[n as usize / 64] >> (n % 64) & 1 == 1
    }
    /// Returns the bytes that a node accesses.
    fn range(&self, n: u32) -> std::ops::Range<u32> {
        self.p.operation(n).map_or(0..0, |o| self.bytes.range(o as usize))
    }
    /// Adds what a node needs and supplies (`by` is 1), or subtracts it.
    fn count(&mut self, n: u32, by: i32) {
        let Some(o) = self.operation(n) else { return };
        for (k, b) in self.range(n).enumerate() {
            if self.loads(n) {
                let from_memory = !self.own.contains_key(&(n, b));
                let needs = self.needs.entry((b, byte(o.loaded, k))).or_default();
                needs.loads = needs.loads.wrapping_add_signed(by);
                if from_memory {
                    needs.memory = needs.memory.wrapping_add_signed(by);
                }
            }
            if self.stores(n) {
                let needs = self.needs.entry((b, byte(o.stored, k))).or_default();
                needs.stores = needs.stores.wrapping_add_signed(by);
            }
        }
    }
    /// True if the bytes of a load are there. `None` if some of them are unknown.
    fn loadable(&self, n: u32) -> Option<bool> {
        let Some(o) = self.operation(n) else { return Some(true) };
        let mut known = true;
        for (k, b) in self.range(n).enumerate() {
            let wanted = byte(o.loaded, k);
            let own = self.own.get(&(n, b)).filter(|s| !self.is_done(**s));
            let now = match own {
                Some(&store) => {
                    let at = b - self.range(store).start;
                    self.operation(store).map(|s| byte(s.stored, at as usize))
                }
                None => self.memory[b as usize],
            };
            match now {
                Some(value) if value != wanted => return Some(false),
                Some(_) => {}
                None => known = false,
            }
        }
        known.then_some(true)
    }
    /// True if a store may be done now; the other flag if nobody needs what it changes or has.
    fn storable(&self, n: u32) -> (bool, bool) {
        let Some(o) = self.operation(n) else { return (true, true) };
        let mut is_free = true;
        for (k, b) in self.range(n).enumerate() {
            let new = byte(o.stored, k);
            // An update takes its own value with it.
            let needs = |value: u8| {
                let mut needs = self.needs.get(&(b, value)).copied().unwrap_or_default();
                if self.loads(n) && byte(o.loaded, k) == value {
                    needs.loads -= 1;
                    needs.memory -= u32::from(!self.own.contains_key(&(n, b)));
                }
                needs
            };
            is_free &= needs(new).loads == 0;
            match self.memory[b as usize] {
                Some(old) if old == new => {}
                Some(old) => {
                    let old = needs(old);
                    if old.memory > 0 && old.stores == 0 {
                        return (false, false);
                    }
                    is_free &= old.loads == 0;
                }
                None => is_free = false,
            }
        }
        (true, is_free)
    }
    fn perform(&mut self, n: u32) {
        self.done[n as usize / 64] |= 1 << (n % 64);
        self.count(n, -1);
        let range = self.range(n);
        let old = self.memory[range.start as usize..range.end as usize].to_vec();
        if let Some(o) = self.operation(n) {
            for (k, b) in range.enumerate() {
                let now = &mut self.memory[b as usize];
                if self.p.roles[n as usize] == NodeRole::Load {
                    let own = self.own.get(&(n, b));
                    let forwarded =
                        own.is_some_and(|s| self.done[*s as usize / 64] >> (s % 64) & 1 == 0);
                    if now.is_none() && !forwarded {
                        *now = Some(byte(o.loaded, k));
                    }
                } else if !matches!(self.p.roles[n as usize], NodeRole::Order) {
                    *now = Some(byte(o.stored, k));
                }
            }
        }
        self.trail.push((n, old));
        self.ready.retain(|m| *m != n);
        let p = self.p;
        for &m in p.successors(n) {
            self.missing[m as usize] -= 1;
            if self.missing[m as usize] == 0 {
                self.ready.push(m);
            }
        }
    }
    fn undo(&mut self, length: usize) {
        while self.trail.len() > length {
            let Some((n, old)) = self.trail.pop() else { return };
            self.done[n as usize / 64] &= !(1 << (n % 64));
            self.count(n, 1);
            let range = self.range(n);
            self.memory[range.start as usize..range.end as usize].copy_from_slice(&old);
            let p = self.p;
            for &m in p.successors(n) {
                if self.missing[m as usize] == 0 {
                    self.ready.retain(|r| *r != m);
                }
                self.missing[m as usize] += 1;
            }
            self.ready.push(n);
        }
    }
    /// Does all nodes that never hurt.
    fn saturate(&mut self) {
        loop {
            let safe = self.ready.iter().copied().find(|&n| match self.p.roles[n as usize] {
                NodeRole::Order => true,
                NodeRole::Load => self.loadable(n) == Some(true),
                NodeRole::Update => {
                    self.loadable(n) == Some(true) && self.storable(n) == (true, true)
                }
                NodeRole::Store | NodeRole::Half => self.storable(n) == (true, true),
            });
            let Some(n) = safe else { return };
            self.perform(n);
        }
    }
    /// Returns the nodes that may be next, the most likely one first.
    fn candidates(&self) -> Vec<u32> {
        let may = |n: &u32| match self.p.roles[*n as usize] {
            NodeRole::Order => true,
            NodeRole::Load => self.loadable(*n) != Some(false),
            NodeRole::Update => self.loadable(*n) != Some(false) && self.storable(*n).0,
            NodeRole::Store | NodeRole::Half => self.storable(*n).0,
        };
        let mut out: Vec<u32> = self.ready.iter().copied().filter(may).collect();
        let line = |n: u32| self.p.operation(n).map_or(0, |o| self.trace.line(o as usize));
        let wanted = |n: u32| {
            let Some(o) = self.operation(n).filter(|_| self.stores(n)) else { return false };
            let mut range = self.range(n).enumerate();
            range.any(|(k, b)| {
                self.needs.get(&(b, byte(o.stored, k))).is_some_and(|needs| needs.loads > 0)
            })
        };
        out.sort_by_key(|n| (Reverse(wanted(*n)), line(*n), *n));
        out
    }
    fn key(&self) -> Box<[u64]> {
        let mut key = self.done.clone();
        for bytes in self.memory.chunks(4) {
            let word = |w: u64, b: &Option<u8>| w << 16 | b.map_or(0x100, u64::from);
            key.push(bytes.iter().fold(0, word));
        }
        key.into()
    }
    /// True if all required final values are in memory.
    fn is_final(&self) -> bool {
        self.trace.finals.iter().all(|f| {
            let mut range = self.bytes.part(f.location, f.offset, f.size).enumerate();
            range.all(|(k, b)| self.memory[b as usize].is_none_or(|v| v == byte(f.value, k)))
        })
    }
    fn events(&self) -> Vec<OrderEvent> {
        let event = |&(n, _): &(u32, Vec<Option<u8>>)| {
            let o = self.p.operation(n)?;
            Some(match self.p.roles[n as usize] {
                NodeRole::Order => return None,
                NodeRole::Load => OrderEvent::Load(o),
                NodeRole::Update => OrderEvent::Whole(o),
                NodeRole::Store | NodeRole::Half => OrderEvent::Store(o),
            })
        };
        self.trail.iter().filter_map(event).collect()
    }
    fn run(&mut self, max_revisions: u64, budget: &Budget) -> Outcome {
        let mut choices: Vec<(usize, usize)> = Vec::new();
        let (mut revisions, mut polled) = (0u64, 0usize);
        loop {
            self.saturate();
            let is_complete = self.trail.len() == self.p.len();
            if is_complete && self.is_final() {
                return Outcome::Found(self.events());
            }
            polled += 1;
            if polled.is_multiple_of(64)
                && let Err(stop) = budget.check(revisions).and_then(|()| budget.check_memory())
            {
                return Outcome::Stopped(stop);
            }
            let known = is_complete || self.failed.contains(&self.key());
            let mut next = if known { None } else { self.candidates().first().copied() };
            if next.is_some() {
                choices.push((self.trail.len(), 1));
            }
            while next.is_none() {
                let Some((length, tried)) = choices.pop() else { return Outcome::Exhausted };
                revisions += 1;
                if revisions > max_revisions {
                    return Outcome::Revisions;
                }
                self.undo(length);
                next = self.candidates().get(tried).copied();
                if next.is_some() {
                    choices.push((length, tried + 1));
                } else if self.words < MAX_STORED_WORDS {
                    let key = self.key();
                    self.words += key.len() + 3;
                    self.failed.insert(key);
                }
            }
            if let Some(n) = next {
                self.perform(n);
            }
        }
    }
}

/// Returns a byte of a value, the lowest one first; 0 beyond the value.
fn byte(value: u64, k: usize) -> u8 {
    value.to_le_bytes().get(k).copied().unwrap_or(0)
}
