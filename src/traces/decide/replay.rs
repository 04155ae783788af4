//! Backward replay of the machine with store buffers (`sc`, `tso`, `pso`): a trace, a place in
//! time for each operation -> a run of the machine, or the operations at which the replay is
//! blocked.
//!
//! The replay constructs the run from its end. Backwards, a store is done as late in time as
//! possible, as soon as its location is free and its readers are done: this never hurts, because
//! it frees the location. A load or an update of a free location *claims* it for the value that it
//! loads, until the store of the value is done: only claims are choices, and the one with the
//! latest place in time is made first. Forwards, the choices are the times at which stores reach
//! memory, which no log has; the place of a load is in every log. If all loads take their values
//! in the order of the log, the result is the greatest solution of the constraints (each is closed
//! under the maximum of times), so a run is found whenever there is one with this order of the
//! loads.
//!
//! Inferred edges (`a` comes before `b` in every run) are obeyed: `a` waits for `b`. Cost: linear,
//! times the threads that wait for one location. Memory: 13 bytes an operation. Condition: each
//! loaded value has one source.

use std::collections::BinaryHeap;
use std::ops::Range;

use ahash::AHashMap;
use mu_base::{Budget, Stop, narrow};

use super::WitnessStep;
use super::problem::PreservedOrder;
use super::sources::{NONE, Sources};
use crate::trace::{Fence, OperationKind, Trace};

/// The location has no requirement.
const FREE: u32 = u32::MAX;
/// The location is required to have its initial value.
const INITIAL: u32 = u32::MAX - 1;
/// Limit on the stores of a thread that later ones overtake backwards (`pso`); beyond it they wait.
const MAX_HOLES: usize = 32;

/// Order in which stores leave the buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Buffers {
    /// No buffers: `sc`.
    None,
    /// One queue for each thread: `tso`.
    Queue,
    /// One queue for each thread and location: `pso`.
    Places,
}

impl Buffers {
    /// Returns the buffers of a model; `None` if its machine has no buffers of stores alone.
    pub fn of(rules: PreservedOrder) -> Option<Buffers> {
        match (rules.is_immediate(), rules.loads_first(), rules.orders_stores()) {
            (true, ..) => Some(Buffers::None),
            (_, true, true) => Some(Buffers::Queue),
            (_, true, false) => Some(Buffers::Places),
            _ => None,
        }
    }
}

/// Result of a replay.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All operations are done.
    Found,
    /// No further operation can be done.
    Blocked,
    /// A limit of the run.
    Stopped(Stop),
}

/// State of a thread. Operations from `performed` on are done.
#[derive(Debug, Default)]
struct Thread {
    start: u32,
    performed: u32,
    /// Stores from here on are done, except for `holes`.
    scanned: u32,
    /// Stores (and updates, in `pso`) that are not done, the latest first.
    holes: Vec<Hole>,
    /// Location at which the latest operation waits; [`NONE`] if it waits at none.
    waits: u32,
    /// Operation of the thread in the heap of choices; [`NONE`] if there is none.
    choice: u32,
    /// True if the thread is on the stack of threads to look at.
    is_active: bool,
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    store: u32,
    /// True if it is in the list of the threads that wait at its location.
    waits: bool,
}

/// The replay.
pub(crate) struct Replay<'t> {
    trace: &'t Trace,
    s: &'t Sources,
    buffers: Buffers,
    keys: &'t Keys,
    threads: Vec<Thread>,
    /// Latest earlier store of the thread to the location of a load.
    own: Vec<u32>,
    /// Loads that have to be done, backwards, before each store.
    pending: Vec<u32>,
    done: Vec<u64>,
    /// Required value of each location: a store, [`INITIAL`], or [`FREE`].
    required: Vec<u32>,
    /// The load that required it.
    claimant: Vec<u32>,
    /// Stores of each location that are not done.
    left: Vec<u32>,
    waiting: Vec<Vec<u32>>,
    active: Vec<u32>,
    choices: BinaryHeap<(u64, u32, u32)>,
    /// Operations in the order in which they are done, times two; odd if the location was free.
    trail: Vec<u32>,
    /// Inferred edges in both directions.
    behind: AHashMap<u32, Vec<u32>>,
    before: AHashMap<u32, Vec<u32>>,
}

/// Places of operations in time, as far as the log shows them.
#[derive(Debug)]
pub(crate) enum Keys {
    /// The line.
    Line,
    /// Times, inherited from earlier operations of the thread.
    Time(Vec<u64>),
    /// The position in the thread, in parts of its length.
    Position,
}

impl Keys {
    /// Returns the kinds of places that a trace has, the most likely one first.
    pub fn of(trace: &Trace) -> Vec<Keys> {
        let mut out = Vec::new();
        let spans = (0..trace.threads.len()).map(|t| trace.range(t)).filter(|r| !r.is_empty());
        let mut spans: Vec<(u32, u32)> =
            spans.map(|r| (trace.line(r.start), trace.line(r.end - 1))).collect();
        spans.sort_unstable();
        let alternate = spans.windows(2).any(|w| w[1].0 < w[0].1);
        if alternate {
            out.push(Keys::Line);
        }
        if trace.has_times() {
            let mut times = Vec::with_capacity(trace.len());
            for t in 0..trace.threads.len() {
                let mut now = 0;
                for i in trace.range(t) {
                    let o = trace.operation(i);
                    now = o.end.or(o.begin).unwrap_or(now).max(now);
                    times.push(now);
                }
            }
            out.push(Keys::Time(times));
        }
        if out.is_empty() {
            out.push(Keys::Position);
        }
        out
    }
    fn key(&self, trace: &Trace, thread: &Thread, end: u32, i: u32) -> u64 {
        match self {
            Keys::Line => u64::from(trace.line(i as usize)),
            Keys::Time(times) => times[i as usize],
            Keys::Position => {
                (u64::from(i - thread.start) << 32) / u64::from(end - thread.start).max(1)
            }
        }
    }
}

impl<'t> Replay<'t> {
    /// Creates a replay. `None` if some load or required final value has several sources, or if
    /// the trace has more than 2^31 operations.
    pub fn new(
        trace: &'t Trace,
        s: &'t Sources,
        buffers: Buffers,
        keys: &'t Keys,
    ) -> Option<Replay<'t>> {
        let n = trace.len();
        let ambiguous = |class: &u32| *class != NONE && !s.is_unique(*class);
        if n >= 1 << 31 || s.want.iter().any(ambiguous) || s.last.iter().any(ambiguous) {
            return None;
        }
        let places = trace.locations.len();
        let mut replay = Replay {
            trace,
            s,
            buffers,
            keys,
            threads: Vec::with_capacity(trace.threads.len()),
            own: vec![NONE; n],
            pending: vec![0; n],
            done: vec![0; n.div_ceil(64)],
            required: vec![FREE; places],
            claimant: vec![NONE; places],
            left: vec![0; places],
            waiting: vec![Vec::new(); places],
            active: Vec::new(),
            choices: BinaryHeap::new(),
            trail: Vec::with_capacity(n),
            behind: AHashMap::new(),
            before: AHashMap::new(),
        };
        let mut latest = vec![NONE; places];
        for t in 0..trace.threads.len() {
            let range = trace.range(t);
            let (start, end) = (narrow::index(range.start), narrow::index(range.end));
            for i in range {
                let kind = trace.kind(i);
                if matches!(kind, OperationKind::Fence(_)) {
                    continue;
                }
                let place = trace.location(i) as usize;
                let own = latest[place];
                let own = if own != NONE && own >= start { own } else { NONE };
                if kind.loads() {
                    replay.own[i] = own;
                    let source = replay.source(narrow::index(i));
                    for store in waiters(kind, source, own, start..end).into_iter().flatten() {
                        replay.pending[store as usize] += 1;
                    }
                }
                if kind.stores() {
                    latest[place] = narrow::index(i);
                    replay.left[place] += 1;
                }
            }
            replay.threads.push(Thread {
                start,
                performed: end,
                scanned: end,
                waits: NONE,
                choice: NONE,
                ..Thread::default()
            });
        }
        for (place, &class) in s.last.iter().enumerate().filter(|l| *l.1 != NONE) {
            let source = s.only[class as usize];
            replay.required[place] = if source == NONE { INITIAL } else { source };
        }
        Some(replay)
    }
    /// Returns the store that an operation loads from; [`INITIAL`] for the initial value.
    fn source(&self, i: u32) -> u32 {
        let store = self.s.only[self.s.want[i as usize] as usize];
        if store == NONE { INITIAL } else { store }
    }
    fn is_done(&self, i: u32) -> bool {
        self.done[i as usize / 64] >> (i % 64) & 1 == 1
    }
    /// Adds an inferred edge: the first operation comes before the second one in every run.
    pub fn add_edge(&mut self, from: u32, to: u32) {
        self.behind.entry(from).or_default().push(to);
        self.before.entry(to).or_default().push(from);
    }
    /// Replays until all is done, or nothing more can be done.
    pub fn run(&mut self, budget: &Budget) -> Outcome {
        for t in 0..narrow::index(self.threads.len()) {
            self.wake(t);
        }
        let mut polled = 0usize;
        loop {
            while let Some(t) = self.active.pop() {
                self.threads[t as usize].is_active = false;
                self.advance(t as usize, NONE);
            }
            polled += 1;
            if polled.is_multiple_of(1 << 14)
                && let Err(stop) = budget.check(0).and_then(|()| budget.check_memory())
            {
                return Outcome::Stopped(stop);
            }
            let Some((_, t, i)) = self.choices.pop() else { break };
            let thread = &mut self.threads[t as usize];
            // The operation may be done already, without a choice.
            if thread.choice == i && thread.performed == i + 1 {
                thread.choice = NONE;
                self.advance(t as usize, i);
            }
        }
        if self.trail.len() == self.trace.len() { Outcome::Found } else { Outcome::Blocked }
    }
    fn wake(&mut self, t: u32) {
        let thread = &mut self.threads[t as usize];
        if !thread.is_active {
            thread.is_active = true;
            self.active.push(t);
        }
    }
    /// Wakes the threads that wait at a location.
    fn wake_at(&mut self, place: u32) {
        for t in std::mem::take(&mut self.waiting[place as usize]) {
            let thread = &mut self.threads[t as usize];
            if thread.waits == place {
                thread.waits = NONE;
            }
            for hole in &mut thread.holes {
                if self.trace.location(hole.store as usize) == place {
                    hole.waits = false;
                }
            }
            self.wake(t);
        }
    }
    /// True if all that an inferred edge puts behind an operation is done.
    fn is_last(&self, i: u32) -> bool {
        self.behind.is_empty()
            || self.behind.get(&i).is_none_or(|list| list.iter().all(|b| self.is_done(*b)))
    }
    /// Records that an operation is done.
    fn finish(&mut self, i: u32, was_free: bool) {
        self.done[i as usize / 64] |= 1 << (i % 64);
        self.trail.push(i << 1 | u32::from(was_free));
        if !self.before.is_empty()
            && let Some(list) = self.before.get(&i)
        {
            for a in list.clone() {
                self.wake(narrow::index(self.trace.thread(a as usize)));
            }
        }
    }
    /// Does all operations of a thread that can be done; a claim only of the operation `chosen`.
    fn advance(&mut self, t: usize, chosen: u32) {
        loop {
            self.scan(t);
            let thread = &self.threads[t];
            if thread.performed == thread.start {
                return;
            }
            let i = thread.performed - 1;
            let kind = self.trace.kind(i as usize);
            if kind == OperationKind::Store {
                if !self.is_done(i) {
                    return;
                }
                self.threads[t].performed = i;
                continue;
            }
            if let OperationKind::Fence(_) = kind {
                self.finish(i, false);
                self.threads[t].performed = i;
                continue;
            }
            // All later stores have to be done.
            let is_behind =
                thread.scanned <= i + 1 && thread.holes.first().is_none_or(|hole| hole.store <= i);
            if !is_behind || !self.is_last(i) {
                return;
            }
            match kind {
                OperationKind::Load if self.load(t, i, i == chosen) => {}
                OperationKind::Update if self.update(t, i, i == chosen) => {}
                _ => return,
            }
            self.threads[t].performed = i;
        }
    }
    /// Does a load if it can be done now.
    fn load(&mut self, t: usize, i: u32, is_chosen: bool) -> bool {
        let (own, source) = (self.own[i as usize], self.source(i));
        let place = self.trace.location(i as usize);
        let mut was_free = false;
        if own != NONE && self.is_done(own) {
            // The buffer of the thread has the store still.
            if own != source {
                return false;
            }
        } else {
            let now = self.required[place as usize];
            if source == INITIAL && self.left[place as usize] > 0 || now != FREE && now != source {
                self.wait_at(t, place);
                return false;
            }
            was_free = now == FREE;
            if was_free && source != INITIAL && !is_chosen {
                self.offer(t, i);
                return false;
            }
            if was_free {
                self.require(place, source, i);
            }
        }
        self.finish(i, was_free);
        self.release(t, i, source, own);
        true
    }
    /// Does an update if it can be done now.
    fn update(&mut self, t: usize, i: u32, is_chosen: bool) -> bool {
        let source = self.source(i);
        let place = self.trace.location(i as usize);
        let now = self.required[place as usize];
        if self.pending[i as usize] > 0 {
            return false;
        }
        let is_open = now == FREE || now == i;
        if !is_open || source == INITIAL && self.left[place as usize] > 1 {
            self.wait_at(t, place);
            return false;
        }
        if now == FREE && !is_chosen {
            self.offer(t, i);
            return false;
        }
        self.left[place as usize] -= 1;
        self.require(place, source, i);
        self.threads[t].holes.retain(|hole| hole.store != i);
        self.finish(i, now == FREE);
        self.release(t, i, source, NONE);
        true
    }
    /// Sets the required value of a location.
    fn require(&mut self, place: u32, source: u32, claimant: u32) {
        self.required[place as usize] = source;
        self.claimant[place as usize] = claimant;
        self.wake_at(place);
    }
    /// Counts a load that is done.
    fn release(&mut self, t: usize, i: u32, source: u32, own: u32) {
        let range = self.trace.range(t);
        let range = narrow::index(range.start)..narrow::index(range.end);
        let kind = self.trace.kind(i as usize);
        for store in waiters(kind, source, own, range).into_iter().flatten() {
            self.pending[store as usize] -= 1;
            if self.pending[store as usize] == 0 {
                self.wake(narrow::index(self.trace.thread(store as usize)));
            }
        }
    }
    /// Lets the latest operation of a thread wait at a location.
    fn wait_at(&mut self, t: usize, place: u32) {
        if self.threads[t].waits != place {
            self.threads[t].waits = place;
            self.waiting[place as usize].push(narrow::index(t));
        }
    }
    /// Adds the latest operation of a thread to the choices.
    fn offer(&mut self, t: usize, i: u32) {
        let end = narrow::index(self.trace.range(t).end);
        let thread = &mut self.threads[t];
        if thread.choice != i {
            thread.choice = i;
            self.choices.push((self.keys.key(self.trace, thread, end, i), narrow::index(t), i));
        }
    }
    /// Does all stores of a thread that can be done.
    fn scan(&mut self, t: usize) {
        let mut k = 0;
        while k < self.threads[t].holes.len() {
            let store = self.threads[t].holes[k].store;
            let is_store = self.trace.kind(store as usize) == OperationKind::Store;
            // Stores of one location stay in order.
            let place = self.trace.location(store as usize);
            let later = &self.threads[t].holes[..k];
            let is_first = later.iter().all(|h| self.trace.location(h.store as usize) != place);
            if is_store && is_first && self.place(t, store, Some(k)) {
                self.threads[t].holes.remove(k);
            } else {
                k += 1;
            }
        }
        loop {
            let thread = &self.threads[t];
            if thread.scanned == thread.start || thread.holes.len() > MAX_HOLES {
                return;
            }
            let i = thread.scanned - 1;
            let is_performed = thread.performed <= i;
            let mut hole = false;
            match self.trace.kind(i as usize) {
                OperationKind::Fence(fence) => {
                    let waits = self.buffers == Buffers::None || fence.includes(Fence::WR);
                    let closed = fence.includes(Fence::WW) && !thread.holes.is_empty();
                    if closed || waits && !is_performed {
                        return;
                    }
                }
                _ if is_performed || self.is_done(i) => {}
                OperationKind::Load if self.buffers != Buffers::None => {}
                OperationKind::Load => return,
                OperationKind::Update if self.buffers != Buffers::Places => return,
                OperationKind::Update => hole = true,
                OperationKind::Store => {
                    let place = self.trace.location(i as usize);
                    let same = |h: &Hole| self.trace.location(h.store as usize) == place;
                    let is_first = !self.threads[t].holes.iter().any(same);
                    if !is_first || !self.place(t, i, None) {
                        if self.buffers != Buffers::Places {
                            return;
                        }
                        hole = true;
                    }
                }
            }
            let thread = &mut self.threads[t];
            thread.scanned = i;
            if hole {
                let waits = false;
                thread.holes.push(Hole { store: i, waits });
            }
        }
    }
    /// Does a store if it can be done now. `hole`: its position among the holes.
    fn place(&mut self, t: usize, i: u32, hole: Option<usize>) -> bool {
        if self.pending[i as usize] > 0 || !self.is_last(i) {
            return false;
        }
        let place = self.trace.location(i as usize);
        let now = self.required[place as usize];
        if now != FREE && now != i {
            match hole {
                Some(k) if !self.threads[t].holes[k].waits => {
                    self.threads[t].holes[k].waits = true;
                    self.waiting[place as usize].push(narrow::index(t));
                }
                Some(_) => {}
                None => self.waiting[place as usize].push(narrow::index(t)),
            }
            return false;
        }
        self.left[place as usize] -= 1;
        self.required[place as usize] = FREE;
        self.finish(i, now == FREE);
        if now != FREE || self.left[place as usize] <= 1 {
            self.wake_at(place);
        }
        true
    }
    /// Undoes operations until `length` are done.
    fn undo(&mut self, length: usize) {
        while self.trail.len() > length {
            let entry = self.trail.pop().expect("the trail is longer");
            let (i, was_free) = (entry >> 1, entry & 1 == 1);
            let t = self.trace.thread(i as usize);
            self.done[i as usize / 64] &= !(1 << (i % 64));
            self.threads[t].performed = self.threads[t].performed.max(i + 1);
            let kind = self.trace.kind(i as usize);
            if let OperationKind::Fence(_) = kind {
                continue;
            }
            let place = self.trace.location(i as usize) as usize;
            match kind {
                OperationKind::Load if was_free => self.required[place] = FREE,
                OperationKind::Load => {}
                _ => {
                    self.left[place] += 1;
                    self.required[place] = if was_free { FREE } else { i };
                }
            }
            if kind.loads() {
                let range = self.trace.range(t);
                let own = if kind == OperationKind::Load { self.own[i as usize] } else { NONE };
                let range = narrow::index(range.start)..narrow::index(range.end);
                for store in waiters(kind, self.source(i), own, range).into_iter().flatten() {
                    self.pending[store as usize] += 1;
                }
            }
        }
        for thread in &mut self.threads {
            thread.scanned = thread.performed;
            thread.holes.clear();
            thread.waits = NONE;
            thread.choice = NONE;
        }
        self.waiting.iter_mut().for_each(Vec::clear);
        self.choices.clear();
    }
    /// Undoes operations until all inferred edges hold. Returns false if they held.
    ///
    /// `edges` are all edges that were added since the last call.
    pub fn obey(&mut self, edges: &[(u32, u32)]) -> bool {
        let mut position: AHashMap<u32, usize> =
            edges.iter().flat_map(|e| [(e.0, usize::MAX), (e.1, usize::MAX)]).collect();
        let mut missing = position.keys().filter(|i| self.is_done(**i)).count();
        for (at, entry) in self.trail.iter().enumerate().rev() {
            if missing == 0 {
                break;
            }
            if let Some(position) = position.get_mut(&(entry >> 1)) {
                *position = at;
                missing -= 1;
            }
        }
        let wrong = edges.iter().filter(|e| position[&e.0] < position[&e.1]);
        match wrong.map(|e| position[&e.0]).min() {
            Some(length) => {
                self.undo(length);
                true
            }
            None => false,
        }
    }
    /// Returns the operations that explain why the replay is blocked: for each thread its latest
    /// operation that is not done, and the loads that required the values of their locations.
    pub fn blocking_operations(&self) -> Vec<u32> {
        let mut out = Vec::new();
        for thread in self.threads.iter().filter(|t| t.performed > t.start) {
            let latest = thread.holes.iter().map(|h| h.store);
            for i in latest.chain([thread.performed - 1, thread.scanned.max(thread.start + 1) - 1])
            {
                out.push(i);
                if matches!(self.trace.kind(i as usize), OperationKind::Fence(_)) {
                    continue;
                }
                let place = self.trace.location(i as usize) as usize;
                if self.required[place] != FREE && self.claimant[place] != NONE {
                    out.push(self.claimant[place]);
                }
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }
    /// Returns the run, forwards.
    pub fn steps(self) -> Vec<WitnessStep> {
        let trace = self.trace;
        let is_immediate = self.buffers == Buffers::None;
        drop((self.own, self.pending));
        let step = |entry: u32| match trace.kind(entry as usize >> 1) {
            OperationKind::Store if !is_immediate => WitnessStep::Reach(entry >> 1),
            _ => WitnessStep::Perform(entry >> 1),
        };
        self.trail.into_iter().rev().map(step).collect()
    }
}

/// Returns the stores that wait, backwards, for a load: its source in another thread, and an
/// earlier store of its own thread that it does not read.
fn waiters(kind: OperationKind, source: u32, own: u32, thread: Range<u32>) -> [Option<u32>; 2] {
    let is_other = source != INITIAL && !thread.contains(&source);
    let is_passed = kind == OperationKind::Load && own != NONE && own != source;
    [is_other.then_some(source), is_passed.then_some(own)]
}
