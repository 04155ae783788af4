//! POWER as far as Axe: no single memory, but an order of the values of each location and one of
//! the operations.
//!
//! The definition is that of Axe's manual, section 5. There is an order of all operations with the
//! edges of `wmo` and each store before its loads. For each location there is an order of its
//! values with the two values of an update as neighbours, such that
//!
//! - the values that a thread sees at a location do not decrease, beginning with the initial one;
//! - if a full fence F comes before a full fence G, then the values that F's thread saw before F
//!   are not above those that G's thread sees after G;
//! - if F comes before a load, the same holds for the operations that begin after the load's end.
//!
//! Values of one chain of updates are one block. Blocks have clocks: for each thread the first of
//! its stores that must come later. The search picks fences one after the other; a fence that adds
//! nothing to the value orders is picked at once, the others are choices. Cost: linear in
//! operations for each choice that remains.

use ahash::AHashMap;
use mu_base::{Budget, Stop, narrow};

use super::problem::{NodeRole, Problem};
use super::saturate::{commit_order, topological};
use super::sources::{NONE, Sources};
use crate::trace::{OperationKind, Trace};

/// Result.
pub(crate) enum Outcome {
    /// Operations in order, and the stores of each location in the order of their values.
    Found(Vec<u32>, Vec<Vec<u32>>),
    /// There are no such orders.
    Exhausted,
    Revisions,
    Stopped(Stop),
}

/// Contradiction in a value order.
struct Contradiction;

/// Accesses of one thread to one location, in program order.
type Accesses = AHashMap<u32, Vec<u32>>;

struct Values {
    /// Block of each class, and its place in the block.
    block: Vec<u32>,
    at: Vec<u32>,
    /// Members of the blocks.
    members: Vec<Vec<u32>>,
    /// Predecessors and successors of blocks.
    before: Vec<Vec<u32>>,
    after: Vec<Vec<u32>>,
    /// Thread of the store of each class and its position among the thread's stores there.
    thread: Vec<u32>,
    position: Vec<u32>,
    width: usize,
    clocks: Vec<u32>,
    /// Changes to undo: an entry of the clocks with its value, or an edge.
    trail: Vec<Change>,
}

enum Change {
    Clock(usize, u32),
    Edge(u32, u32),
}

impl Values {
    fn clock(&self, block: u32, thread: u32) -> u32 {
        self.clocks[block as usize * self.width + thread as usize]
    }
    /// True if the first value is not above the second one in every order.
    fn holds(&self, a: u32, b: u32) -> bool {
        if a == b {
            return true;
        }
        let (x, y) = (self.block[a as usize], self.block[b as usize]);
        if x == y {
            return self.at[a as usize] < self.at[b as usize];
        }
        let t = self.thread[b as usize];
        t != NONE && self.clock(x, t) <= self.position[b as usize]
    }
    /// Requires that the first value is not above the second one.
    fn require(&mut self, a: u32, b: u32) -> Result<(), Contradiction> {
        if self.holds(a, b) {
            return Ok(());
        }
        let (x, y) = (self.block[a as usize], self.block[b as usize]);
        if x == y || self.thread[b as usize] == NONE || self.holds(b, a) {
            return Err(Contradiction);
        }
        self.after[x as usize].push(y);
        self.before[y as usize].push(x);
        self.trail.push(Change::Edge(x, y));
        let mut stack = vec![(x, y)];
        while let Some((from, to)) = stack.pop() {
            if self.merge(from, to) {
                if from == y {
                    return Err(Contradiction);
                }
                stack.extend(self.before[from as usize].iter().map(|b| (*b, from)));
            }
        }
        Ok(())
    }
    /// Takes over the clock of a successor. Returns true if something changed.
    fn merge(&mut self, from: u32, to: u32) -> bool {
        let mut changed = false;
        for t in 0..self.width {
            let clock = self.clocks[to as usize * self.width + t];
            changed |= self.lower(from, t, clock);
        }
        for k in 0..self.members[to as usize].len() {
            let class = self.members[to as usize][k] as usize;
            if self.thread[class] != NONE {
                changed |= self.lower(from, self.thread[class] as usize, self.position[class]);
            }
        }
        changed
    }
    fn lower(&mut self, block: u32, thread: usize, clock: u32) -> bool {
        let entry = block as usize * self.width + thread;
        let old = self.clocks[entry];
        if clock >= old {
            return false;
        }
        self.trail.push(Change::Clock(entry, old));
        self.clocks[entry] = clock;
        true
    }
    fn undo(&mut self, length: usize) {
        while self.trail.len() > length {
            match self.trail.pop().expect("the trail is longer") {
                Change::Clock(entry, old) => self.clocks[entry] = old,
                Change::Edge(x, y) => {
                    self.after[x as usize].pop();
                    self.before[y as usize].pop();
                }
            }
        }
    }
}

struct Search<'t> {
    trace: &'t Trace,
    s: &'t Sources,
    p: Problem,
    values: Values,
    accesses: Vec<Accesses>,
    thread_of: Vec<u32>,
    missing: Vec<u32>,
    done: Vec<bool>,
    trail: Vec<u32>,
    queue: Vec<u32>,
    /// Fences without missing predecessors.
    ready: Vec<u32>,
    /// Fences of each thread, and loads with the first operation that begins after their end.
    fences: Vec<Vec<u32>>,
    ends: Vec<Vec<(u32, u32)>>,
}

/// Decides a trace with one source for each value. `wmo` is its problem under `wmo`.
pub(crate) fn search(
    trace: &Trace,
    s: &Sources,
    wmo: &Problem,
    max_revisions: u64,
    budget: &Budget,
) -> Outcome {
    let p = with_sources(trace, s, wmo);
    let order = topological(&p);
    if order.len() < p.len() {
        return Outcome::Exhausted;
    }
    let Ok(mut search) = Search::new(trace, s, p) else { return Outcome::Exhausted };
    if search.known_fences(&order).is_err() {
        return Outcome::Exhausted;
    }
    search.run(max_revisions, budget)
}

/// Returns the problem with an edge from each store to its loads.
fn with_sources(trace: &Trace, s: &Sources, wmo: &Problem) -> Problem {
    let mut edges = Vec::with_capacity(wmo.targets.len() + trace.len() / 2);
    for n in 0..narrow::index(wmo.len()) {
        edges.extend(wmo.successors(n).iter().map(|m| (n, *m)));
    }
    for i in 0..trace.len() {
        let want = s.want[i];
        if want != NONE && s.only[want as usize] != NONE {
            edges.push((s.only[want as usize], narrow::index(i)));
        }
    }
    Problem {
        roles: wmo.roles.clone(),
        extra: wmo.extra.clone(),
        own: wmo.own.clone(),
        ..Problem::default()
    }
    .with_edges(&edges)
}

impl<'t> Search<'t> {
    fn new(trace: &'t Trace, s: &'t Sources, p: Problem) -> Result<Self, Contradiction> {
        let threads = trace.threads.len();
        let mut accesses = vec![Accesses::new(); threads];
        let mut thread_of = vec![0; trace.len()];
        let mut fences = vec![Vec::new(); threads];
        let mut ends = vec![Vec::new(); threads];
        for t in 0..threads {
            let mut begins: Vec<(u64, u32)> = Vec::new();
            for i in trace.range(t) {
                thread_of[i] = narrow::index(t);
                if matches!(trace.kind(i), OperationKind::Fence(_)) {
                    fences[t].push(narrow::index(i));
                } else {
                    accesses[t].entry(trace.location(i)).or_default().push(narrow::index(i));
                }
                if let Some(begin) = trace.operation(i).begin {
                    begins.push((begin, narrow::index(i)));
                }
            }
            for i in trace.range(t).filter(|i| trace.kind(*i).loads()) {
                if let Some(end) = trace.operation(i).end {
                    let later = begins.partition_point(|b| b.0 <= end);
                    let found = begins[later..].iter().find(|b| b.1 > narrow::index(i));
                    ends[t].extend(found.map(|b| (b.1, narrow::index(i))));
                }
            }
            ends[t].sort_unstable();
        }
        let values = Values::new(trace, s, &accesses)?;
        let n = p.len();
        Ok(Search {
            trace,
            s,
            missing: p.predecessors.clone(),
            p,
            values,
            accesses,
            thread_of,
            done: vec![false; n],
            trail: Vec::with_capacity(n),
            queue: Vec::new(),
            ready: Vec::new(),
            fences,
            ends,
        })
    }
    /// Calls `visit` with the values that a fence's thread saw before it and those that another
    /// thread sees from an operation on, location by location, until it returns false.
    fn pairs(&self, fence: u32, target: u32, visit: &mut dyn FnMut(u32, u32) -> bool) {
        let first = &self.accesses[self.thread_of[fence as usize] as usize];
        let second = &self.accesses[self.thread_of[target as usize] as usize];
        for (place, list) in first {
            let Some(other) = second.get(place) else { continue };
            let before = list.partition_point(|i| *i < fence);
            let after = other.partition_point(|i| *i < target);
            if before == 0 || after == other.len() {
                continue;
            }
            let (seen, sees) = (list[before - 1] as usize, other[after] as usize);
            let stored = self.s.class[seen];
            let v = if stored == NONE { self.s.want[seen] } else { stored };
            let loaded = self.s.want[sees];
            let w = if loaded == NONE { self.s.class[sees] } else { loaded };
            if !visit(v, w) {
                return;
            }
        }
    }
    fn require(&mut self, fence: u32, target: u32) -> Result<(), Contradiction> {
        let mut list = Vec::new();
        self.pairs(fence, target, &mut |v, w| {
            list.push((v, w));
            true
        });
        list.into_iter().try_for_each(|(v, w)| self.values.require(v, w))
    }
    fn holds(&self, fence: u32, target: u32) -> bool {
        let mut all = true;
        self.pairs(fence, target, &mut |v, w| {
            all = self.values.holds(v, w);
            all
        });
        all
    }
    /// Requires the order of values for the fences that come before each operation without any
    /// choice.
    fn known_fences(&mut self, order: &[u32]) -> Result<(), Contradiction> {
        let threads = self.trace.threads.len();
        // For each node and thread, one more than the last fence of the thread before the node.
        let mut clocks = vec![0u32; self.p.len() * threads];
        let mut later: AHashMap<u32, u32> = AHashMap::new();
        self.ends.iter().flatten().for_each(|&(op, load)| {
            later.insert(load, op);
        });
        for &n in order {
            let from = n as usize * threads;
            let operation = self.p.operation(n).filter(|o| *o == n);
            let fence = |o: u32| matches!(self.trace.kind(o as usize), OperationKind::Fence(_));
            let target =
                operation.and_then(|o| if fence(o) { Some(o) } else { later.get(&o).copied() });
            if let Some(target) = target {
                for t in 0..threads {
                    if let Some(f) = clocks[from + t].checked_sub(1)
                        && self.thread_of[target as usize] as usize != t
                    {
                        self.require(f, target)?;
                    }
                }
            }
            if let Some(o) = operation.filter(|o| fence(*o)) {
                let own = &mut clocks[from + self.thread_of[o as usize] as usize];
                *own = (*own).max(o + 1);
            }
            for k in self.p.starts[n as usize]..self.p.starts[n as usize + 1] {
                let to = self.p.targets[k as usize] as usize * threads;
                for t in 0..threads {
                    clocks[to + t] = clocks[to + t].max(clocks[from + t]);
                }
            }
        }
        Ok(())
    }
    /// Returns for each other thread the operations that a fence picked now comes before.
    fn targets(&self, fence: u32, next: &[usize], open: &[usize]) -> Vec<u32> {
        let own = self.thread_of[fence as usize] as usize;
        let mut out = Vec::new();
        for t in (0..self.fences.len()).filter(|t| *t != own) {
            out.extend(self.fences[t].get(next[t]).copied());
            out.extend(self.ends[t].get(open[t]).map(|e| e.0));
        }
        out
    }
    fn is_fence(&self, n: u32) -> bool {
        self.p.roles[n as usize] == NodeRole::Order && self.p.operation(n).is_some()
    }
    fn perform(&mut self, n: u32) {
        self.done[n as usize] = true;
        self.trail.push(n);
        for k in self.p.starts[n as usize]..self.p.starts[n as usize + 1] {
            let m = self.p.targets[k as usize];
            self.missing[m as usize] -= 1;
            if self.missing[m as usize] == 0 {
                if self.is_fence(m) { self.ready.push(m) } else { self.queue.push(m) }
            }
        }
    }
    /// Does everything that needs no choice.
    fn advance(&mut self, next: &mut [usize], open: &mut [usize]) {
        loop {
            while let Some(n) = self.queue.pop() {
                self.perform(n);
            }
            for t in 0..next.len() {
                while self.fences[t].get(next[t]).is_some_and(|f| self.done[*f as usize]) {
                    next[t] += 1;
                }
                while self.ends[t].get(open[t]).is_some_and(|e| self.done[e.1 as usize]) {
                    open[t] += 1;
                }
            }
            let harmless = (0..self.ready.len()).find(|&k| {
                let fence = self.ready[k];
                self.targets(fence, next, open).into_iter().all(|o| self.holds(fence, o))
            });
            let Some(k) = harmless else { return };
            let fence = self.ready.swap_remove(k);
            self.perform(fence);
        }
    }
    fn undo(&mut self, length: usize) {
        while self.trail.len() > length {
            let n = self.trail.pop().expect("the trail is longer");
            self.done[n as usize] = false;
            for k in self.p.starts[n as usize]..self.p.starts[n as usize + 1] {
                self.missing[self.p.targets[k as usize] as usize] += 1;
            }
        }
    }
    fn run(&mut self, max_revisions: u64, budget: &Budget) -> Outcome {
        let threads = self.trace.threads.len();
        let (mut next, mut open) = (vec![0; threads], vec![0; threads]);
        for n in 0..narrow::index(self.p.len()) {
            if self.missing[n as usize] == 0 {
                if self.is_fence(n) { self.ready.push(n) } else { self.queue.push(n) }
            }
        }
        // A choice: lengths of both trails, the ready fences, and the number of those tried.
        let mut choices: Vec<(usize, usize, Vec<u32>, usize)> = Vec::new();
        let mut revisions = 0;
        loop {
            self.advance(&mut next, &mut open);
            if self.trail.len() == self.p.len() {
                return Outcome::Found(self.operations(), self.coherence());
            }
            let mut ready = self.ready.clone();
            ready.sort_unstable_by_key(|f| (self.trace.line(*f as usize), *f));
            choices.push((self.trail.len(), self.values.trail.len(), ready, 0));
            loop {
                let Some((length, values, ready, tried)) = choices.last_mut() else {
                    return Outcome::Exhausted;
                };
                let (length, values) = (*length, *values);
                if *tried > 0 {
                    revisions += 1;
                    if revisions > max_revisions {
                        return Outcome::Revisions;
                    }
                    if let Err(stop) = budget.check(revisions) {
                        return Outcome::Stopped(stop);
                    }
                }
                let ready = ready.clone();
                let chosen = ready.get(*tried).copied();
                *tried += 1;
                self.undo(length);
                self.values.undo(values);
                self.queue.clear();
                self.ready = ready;
                // Positions only shrink by an undo.
                next.fill(0);
                open.fill(0);
                let Some(fence) = chosen else {
                    choices.pop();
                    continue;
                };
                self.catch_up(&mut next, &mut open);
                let targets = self.targets(fence, &next, &open);
                let mut others = targets.into_iter().filter(|o| *o != fence);
                if others.try_for_each(|o| self.require(fence, o)).is_ok() {
                    self.ready.retain(|f| *f != fence);
                    self.perform(fence);
                    break;
                }
            }
        }
    }
    fn catch_up(&self, next: &mut [usize], open: &mut [usize]) {
        for t in 0..next.len() {
            while self.fences[t].get(next[t]).is_some_and(|f| self.done[*f as usize]) {
                next[t] += 1;
            }
            while self.ends[t].get(open[t]).is_some_and(|e| self.done[e.1 as usize]) {
                open[t] += 1;
            }
        }
    }
    fn operations(&self) -> Vec<u32> {
        self.trail.iter().copied().filter(|n| self.p.operation(*n) == Some(*n)).collect()
    }
    /// Returns the stores of each location in an order of their values.
    fn coherence(&self) -> Vec<Vec<u32>> {
        let v = &self.values;
        let mut missing: Vec<usize> = v.before.iter().map(Vec::len).collect();
        let mut queue: std::collections::VecDeque<u32> =
            (0..narrow::index(missing.len())).filter(|b| missing[*b as usize] == 0).collect();
        let mut out = vec![Vec::new(); self.trace.locations.len()];
        while let Some(block) = queue.pop_front() {
            for &class in &v.members[block as usize] {
                let store = self.s.only[class as usize];
                if store != NONE {
                    out[self.s.place[class as usize] as usize].push(store);
                }
            }
            for &b in &v.after[block as usize] {
                missing[b as usize] -= 1;
                if missing[b as usize] == 0 {
                    queue.push_back(b);
                }
            }
        }
        out
    }
}

impl Values {
    /// Creates the value orders that threads see at each location.
    fn new(trace: &Trace, s: &Sources, accesses: &[Accesses]) -> Result<Self, Contradiction> {
        let classes = s.place.len();
        let mut thread = vec![NONE; classes];
        let mut position = vec![0; classes];
        for (t, places) in accesses.iter().enumerate() {
            for list in places.values() {
                let stores = list.iter().filter(|i| trace.kind(**i as usize).stores());
                for (k, i) in stores.enumerate() {
                    let class = s.class[*i as usize] as usize;
                    thread[class] = narrow::index(t);
                    position[class] = narrow::index(k);
                }
            }
        }
        // Blocks: chains of updates.
        let mut next = vec![NONE; classes];
        let mut has_previous = vec![false; classes];
        for i in (0..trace.len()).filter(|i| trace.kind(*i) == OperationKind::Update) {
            let (want, class) = (s.want[i] as usize, s.class[i]);
            if next[want] != NONE || want == class as usize {
                return Err(Contradiction);
            }
            next[want] = class;
            has_previous[class as usize] = true;
        }
        let mut block = vec![NONE; classes];
        let mut at = vec![0; classes];
        let mut members: Vec<Vec<u32>> = Vec::new();
        for c in (0..narrow::index(classes)).filter(|c| !has_previous[*c as usize]) {
            let mut list = Vec::new();
            let mut m = c;
            while m != NONE {
                block[m as usize] = narrow::index(members.len());
                at[m as usize] = narrow::index(list.len());
                list.push(m);
                m = next[m as usize];
            }
            members.push(list);
        }
        if block.contains(&NONE) {
            // A cycle of updates.
            return Err(Contradiction);
        }
        let width = trace.threads.len();
        let blocks = members.len();
        let mut values = Values {
            block,
            at,
            members,
            before: vec![Vec::new(); blocks],
            after: vec![Vec::new(); blocks],
            thread,
            position,
            width,
            clocks: vec![u32::MAX; blocks * width],
            trail: Vec::new(),
        };
        for places in accesses {
            for (&place, list) in places {
                let mut seen = place;
                for &i in list {
                    for class in [s.want[i as usize], s.class[i as usize]] {
                        if class != NONE && class != seen {
                            values.first(seen, class)?;
                            seen = class;
                        }
                    }
                }
            }
        }
        for c in 0..narrow::index(classes) {
            let last = s.last[s.place[c as usize] as usize];
            // The initial values come first.
            let place = s.place[c as usize];
            if c != place {
                values.first(place, c)?;
            }
            if last != NONE && last != c {
                values.first(c, last)?;
            }
        }
        for (from, to) in commit_order(trace) {
            values.first(s.class[from as usize], s.class[to as usize])?;
        }
        values.close()?;
        Ok(values)
    }
    /// Adds an edge before the clocks exist.
    fn first(&mut self, a: u32, b: u32) -> Result<(), Contradiction> {
        let (x, y) = (self.block[a as usize], self.block[b as usize]);
        if x == y {
            let ordered = self.at[a as usize] < self.at[b as usize];
            return if ordered { Ok(()) } else { Err(Contradiction) };
        }
        if self.after[x as usize].last() != Some(&y) {
            self.after[x as usize].push(y);
            self.before[y as usize].push(x);
        }
        Ok(())
    }
    /// Computes the clocks.
    fn close(&mut self) -> Result<(), Contradiction> {
        let mut missing: Vec<usize> = self.after.iter().map(Vec::len).collect();
        let mut queue: Vec<u32> =
            (0..narrow::index(missing.len())).filter(|b| missing[*b as usize] == 0).collect();
        let mut count = 0;
        while let Some(b) = queue.pop() {
            count += 1;
            for k in 0..self.before[b as usize].len() {
                let a = self.before[b as usize][k];
                self.merge(a, b);
                missing[a as usize] -= 1;
                if missing[a as usize] == 0 {
                    queue.push(a);
                }
            }
        }
        self.trail.clear();
        if count == self.members.len() { Ok(()) } else { Err(Contradiction) }
    }
}
