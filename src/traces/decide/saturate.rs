//! Saturation of the memory order: edges that hold in every memory order of a trace.
//!
//! The rules are those of Manovit and Hangal (TSOtool, SPAA 2005 and HPCA 2006), applied in sweeps
//! as in Roy, Zeisset, Fleckenstein, Huang (Fast and generalized polynomial time memory consistency
//! verification, CAV 2006). For stores V, W to one location and a load R of W:
//!
//! - W comes before R, unless they are of one thread;
//! - a store of R's own thread before R, other than W, comes before W;
//! - if W comes before V, then R comes before V;
//! - if V comes before R, then V comes before W.
//!
//! A sweep in topological order computes for each node and each thread the last store of the thread
//! that comes before the node, and applies the rules. If the stores of a thread form a chain (SC,
//! TSO), one sweep with one entry a thread serves all locations; else each location has a sweep of
//! its own. Sweeps repeat until nothing changes. Cost of a sweep: edges times threads. A cycle
//! means that there is no memory order. Loads with several sources take no part.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ahash::{AHashMap, AHashSet};
use mu_base::{Budget, Stop, narrow};

use super::Reason;
use super::explain::{CycleEdge, Explainer};
use super::problem::{NodeRole, PreservedOrder, Problem};
use super::sources::{NONE, Sources};
use crate::trace::Trace;

/// Limit on the threads of a sweep for all locations; beyond it each location has its own.
const MAX_JOINT_THREADS: usize = 64;

/// Limit on the chain of updates that a store has to precede at once.
const MAX_CHAIN: usize = 16;

/// Inferred edge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InferredEdge {
    pub from: u32,
    pub to: u32,
    pub reason: Reason,
    pub cause: Cause,
    /// Number of inferred edges that were known when it was inferred.
    pub known: u32,
}

/// Premises of an inferred edge, from which [`super::explain`] computes the operations that imply
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// The two operations alone, or a required final value of their location.
    Ends,
    /// A load of a store in another thread, behind the first operation in its own thread: the
    /// second operation is the store, or an update of the chain of updates that ends in it.
    Load(u32),
    /// A path from the first node to the second one, of edges that were known before.
    Path(u32, u32),
}

/// Result.
pub(crate) enum Saturation {
    /// The problem with edges of every memory order, and these edges.
    Open(Problem, Vec<InferredEdge>),
    /// A cycle of nodes.
    Cycle(Vec<CycleEdge>),
    /// A limit.
    Stopped(Stop),
}

/// Returns the nodes in a topological order; if there is a cycle, those that are not behind it.
pub(crate) fn topological(p: &Problem) -> Vec<u32> {
    let mut missing = p.predecessors.clone();
    let mut order: Vec<u32> = Vec::with_capacity(p.len());
    order.extend((0..narrow::index(p.len())).filter(|n| missing[*n as usize] == 0));
    let mut at = 0;
    while at < order.len() {
        let n = order[at];
        at += 1;
        for &m in p.successors(n) {
            missing[m as usize] -= 1;
            if missing[m as usize] == 0 {
                order.push(m);
            }
        }
    }
    order
}

/// Stores by location and thread, readers by class.
struct Index<'p> {
    p: &'p Problem,
    s: &'p Sources,
    trace: &'p Trace,
    thread_of: Vec<u32>,
    /// For each location, its storing threads with their ranges in `stores`.
    writers: Vec<Vec<(u32, usize, usize)>>,
    /// Nodes of stores, by location, thread, and program order.
    stores: Vec<u32>,
    /// Position of each store in its chain.
    position: Vec<u32>,
    /// Start of the readers of each class.
    starts: Vec<u32>,
    readers: Vec<u32>,
    /// Node that stores, by operation with two nodes.
    halves: AHashMap<u32, u32>,
}

impl<'p> Index<'p> {
    fn new(
        p: &'p Problem,
        s: &'p Sources,
        trace: &'p Trace,
        rules: PreservedOrder,
        joint: bool,
    ) -> Self {
        let mut thread_of = vec![0u32; trace.len()];
        for t in 0..trace.threads.len() {
            trace.range(t).for_each(|i| thread_of[i] = narrow::index(t));
        }
        let mut halves = AHashMap::new();
        let mut stores: Vec<(u32, u32, u32, u32)> = Vec::new();
        let mut readers: Vec<(u32, u32)> = Vec::new();
        for n in 0..narrow::index(p.len()) {
            let role = p.roles[n as usize];
            let Some(o) = p.operation(n).filter(|_| role != NodeRole::Order) else { continue };
            if role == NodeRole::Half {
                halves.insert(o, n);
            }
            if role != NodeRole::Load {
                let place = trace.location(o as usize);
                stores.push((place, thread_of[o as usize], o, n));
            }
            let want = s.want[o as usize];
            if role != NodeRole::Store && want != NONE && s.is_unique(want) {
                readers.push((want, n));
            }
        }
        stores.sort_unstable();
        let mut position = vec![0u32; p.len()];
        let mut writers = vec![Vec::new(); trace.locations.len()];
        let mut from = 0;
        while from < stores.len() {
            let key = (stores[from].0, stores[from].1);
            let length = stores[from..].iter().take_while(|s| (s.0, s.1) == key).count();
            writers[key.0 as usize].push((key.1, from, from + length));
            for (k, s) in stores[from..from + length].iter().enumerate() {
                position[s.3 as usize] = narrow::index(k);
            }
            from += length;
        }
        if joint {
            for t in 0..trace.threads.len() {
                let all = trace.range(t).filter(|i| trace.kind(*i).stores());
                all.enumerate().for_each(|(k, i)| position[i] = narrow::index(k));
            }
        }
        // Of the loads of one thread only the last one matters if they stay in order.
        if !rules.depends_on_sources() {
            readers.sort_unstable();
            let thread = |n: u32| thread_of[n as usize];
            let mut kept: Vec<(u32, u32)> = Vec::with_capacity(readers.len());
            for r in readers {
                match kept.last_mut() {
                    Some(last) if last.0 == r.0 && thread(last.1) == thread(r.1) => *last = r,
                    _ => kept.push(r),
                }
            }
            readers = kept;
        } else {
            readers.sort_unstable();
        }
        let mut starts = vec![0u32; s.place.len() + 1];
        readers.iter().for_each(|r| starts[r.0 as usize + 1] += 1);
        (0..s.place.len()).for_each(|c| starts[c + 1] += starts[c]);
        Index {
            p,
            s,
            trace,
            thread_of,
            writers,
            stores: stores.iter().map(|s| s.3).collect(),
            position,
            starts,
            readers: readers.iter().map(|r| r.1).collect(),
            halves,
        }
    }
    fn thread(&self, n: u32) -> u32 {
        self.thread_of[self.p.operation(n).expect("an access") as usize]
    }
    fn readers(&self, class: u32) -> &[u32] {
        let c = class as usize;
        &self.readers[self.starts[c] as usize..self.starts[c + 1] as usize]
    }
    /// Returns the node of the store of an operation.
    fn store_node(&self, o: u32) -> u32 {
        self.halves.get(&o).copied().unwrap_or(o)
    }
    /// Returns the stores of a chain of updates: the source of a load, the source of that update,
    /// and so on, up to `last`.
    fn updates(&self, load: u32, last: u32) -> Vec<u32> {
        let mut out = Vec::new();
        let mut at = load;
        while at != last {
            let class = self.p.operation(at).map(|o| self.s.want[o as usize]);
            let Some(class) = class.filter(|c| *c != NONE && self.s.is_unique(*c)) else { break };
            let source = self.s.only[class as usize];
            if source == NONE || out.len() > MAX_CHAIN {
                break;
            }
            at = self.store_node(source);
            out.push(at);
        }
        out
    }
    /// Returns the last of the stores `range` with a position below `bound`.
    fn last_below(&self, range: (usize, usize), bound: u32) -> Option<u32> {
        let list = &self.stores[range.0..range.1];
        let count = list.partition_point(|n| self.position[*n as usize] < bound);
        count.checked_sub(1).map(|k| list[k])
    }
    /// Returns the edges that need no sweep.
    fn first_edges(&self) -> Vec<InferredEdge> {
        let mut out = Vec::new();
        let mut because = |from: u32, to: u32, reason: Reason, cause: Cause| {
            out.push(InferredEdge { from, to, reason, cause, known: 0 });
        };
        for n in 0..narrow::index(self.p.len()) {
            let role = self.p.roles[n as usize];
            if matches!(role, NodeRole::Order | NodeRole::Store) {
                continue;
            }
            let o = self.p.operation(n).expect("an access");
            let want = self.s.want[o as usize];
            if want == NONE || !self.s.is_unique(want) {
                continue;
            }
            let own = self.p.own[n as usize];
            let source = self.s.only[want as usize];
            if source == NONE {
                // The initial value: before the first store of each thread.
                for &(t, from, _) in &self.writers[self.s.place[want as usize] as usize] {
                    if t != self.thread(n) {
                        because(n, self.stores[from], Reason::FromReads, Cause::Ends);
                    }
                }
                if own != NONE {
                    because(own, n, Reason::Program, Cause::Ends);
                    because(n, own, Reason::FromReads, Cause::Ends);
                }
                continue;
            }
            // A store behind the load in its own thread is impossible, as the load itself is.
            let future = self.thread_of[source as usize] == self.thread(n) && source >= o;
            let source = self.store_node(source);
            if role != NodeRole::Half && (future || self.thread(source) != self.thread(n)) {
                because(source, n, Reason::ReadsFrom, Cause::Ends);
            }
            if own != NONE && own != source {
                because(own, source, Reason::Coherence, Cause::Load(n));
                // Nothing comes between an update and its source.
                let mut update = source;
                for _ in 0..MAX_CHAIN {
                    let class = self.p.operation(update).map(|o| self.s.want[o as usize]);
                    let Some(class) = class.filter(|c| *c != NONE && self.s.is_unique(*c)) else {
                        break;
                    };
                    let before = self.s.only[class as usize];
                    if before == NONE || self.store_node(before) == own {
                        break;
                    }
                    update = self.store_node(before);
                    because(own, update, Reason::Atomicity, Cause::Load(n));
                }
                if role != NodeRole::Half {
                    because(own, n, Reason::Program, Cause::Ends);
                }
            }
        }
        for (from, to) in commit_order(self.trace) {
            because(self.store_node(from), self.store_node(to), Reason::Coherence, Cause::Ends);
        }
        for (place, &last) in self.s.last.iter().enumerate() {
            if last == NONE || !self.s.is_unique(last) {
                continue;
            }
            let source = self.s.only[last as usize];
            let target = (source != NONE).then(|| self.store_node(source));
            for &(_, _, to) in &self.writers[place] {
                let store = self.stores[to - 1];
                match target {
                    Some(target) if store != target => {
                        because(store, target, Reason::Final, Cause::Ends)
                    }
                    Some(_) => {}
                    None => because(store, store, Reason::Final, Cause::Ends),
                }
            }
        }
        out
    }
}

/// Returns the pairs of stores to one location that follow each other in the order of memory that
/// the log gives.
pub(crate) fn commit_order(trace: &Trace) -> Vec<(u32, u32)> {
    if !trace.has_commits() {
        return Vec::new();
    }
    let mut all: Vec<(u32, u64, u32)> = (0..trace.len())
        .filter(|i| trace.kind(*i).stores())
        .filter_map(|i| Some((trace.location(i), trace.operation(i).commit?, narrow::index(i))))
        .collect();
    all.sort_unstable();
    let mut out = Vec::new();
    let mut before: &[(u32, u64, u32)] = &[];
    for group in all.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        // Stores at one position are not ordered.
        if before.first().is_some_and(|b| b.0 == group[0].0) {
            out.extend(before.iter().flat_map(|b| group.iter().map(|g| (b.2, g.2))));
        }
        before = group;
    }
    out
}

/// Receiver of inferred edges: from, to, reason, and premises.
type Add<'a> = dyn FnMut(u32, u32, Reason, Cause) + 'a;

/// Clocks of a sweep: for each node and each storing thread, one more than the position of the last
/// store of the thread that comes before the node or is the node.
struct Sweep<'i, 'p> {
    index: &'i Index<'p>,
    /// Column of each thread; [`NONE`] if it stores nothing.
    columns: Vec<u32>,
    width: usize,
    clocks: Vec<u32>,
    /// Location of the sweep, or all.
    place: Option<u32>,
}

impl Sweep<'_, '_> {
    fn clock(&self, n: u32, column: u32) -> u32 {
        self.clocks[n as usize * self.width + column as usize]
    }
    /// Computes the clocks in the order given, and calls `add` with each inferred edge that does
    /// not hold yet.
    fn run(
        &mut self,
        graph: &Problem,
        order: &[u32],
        add: &mut Add<'_>,
        budget: &Budget,
    ) -> Result<(), Stop> {
        let mut latest: Vec<u32> = Vec::new();
        for (k, &n) in order.iter().enumerate() {
            if k % (1 << 14) == 0 {
                budget.check(0)?;
            }
            let role = self.index.p.roles[n as usize];
            if role != NodeRole::Order {
                let o = self.index.p.operation(n).expect("an access") as usize;
                let place = self.index.trace.location(o);
                if self.place.is_none_or(|p| p == place) {
                    self.infer(n, role, o, place, &mut latest, add);
                    if role != NodeRole::Load {
                        let column = self.columns[self.index.thread_of[o] as usize];
                        let at = n as usize * self.width + column as usize;
                        self.clocks[at] = self.index.position[n as usize] + 1;
                    }
                }
            }
            let from = n as usize * self.width;
            for &m in graph.successors(n) {
                let to = m as usize * self.width;
                for c in 0..self.width {
                    let clock = self.clocks[from + c];
                    let target = &mut self.clocks[to + c];
                    *target = (*target).max(clock);
                }
            }
        }
        Ok(())
    }
    fn infer(
        &self,
        n: u32,
        role: NodeRole,
        o: usize,
        place: u32,
        latest: &mut Vec<u32>,
        add: &mut Add<'_>,
    ) {
        let index = self.index;
        let s = index.s;
        latest.clear();
        for &(t, from, to) in &index.writers[place as usize] {
            let clock = self.clock(n, self.columns[t as usize]);
            latest.extend(index.last_below((from, to), clock).filter(|v| *v != n));
        }
        if latest.is_empty() {
            return;
        }
        if role != NodeRole::Store {
            let want = s.want[o];
            if want != NONE && s.is_unique(want) && s.only[want as usize] != NONE {
                let source = index.store_node(s.only[want as usize]);
                for &v in latest.iter().filter(|v| **v != source) {
                    let column = self.columns[index.thread(v) as usize];
                    if self.clock(source, column) <= index.position[v as usize] {
                        add(v, source, Reason::Coherence, Cause::Path(v, n));
                    }
                }
            }
        }
        if role == NodeRole::Load {
            return;
        }
        for (i, &v) in latest.iter().enumerate() {
            let column = self.columns[index.thread(v) as usize];
            let position = index.position[v as usize];
            // A later store that comes before the node has the edges already.
            let covered =
                latest.iter().enumerate().any(|(j, &w)| i != j && self.clock(w, column) > position);
            if covered {
                continue;
            }
            let class = s.class[index.p.operation(v).expect("a store") as usize];
            if !s.is_unique(class) {
                continue;
            }
            for &r in index.readers(class) {
                let reader = index.p.operation(r).expect("a load") as usize;
                let ordered = index.thread_of[reader] == index.thread_of[o] && reader < o;
                if r != n && !ordered && reader != o {
                    add(r, n, Reason::FromReads, Cause::Path(v, n));
                }
            }
        }
    }
}

/// Returns the problem with the edges that need no sweep, or a cycle.
pub(crate) fn first(p: &Problem, s: &Sources, trace: &Trace, rules: PreservedOrder) -> Saturation {
    let index = Index::new(p, s, trace, rules, false);
    let inferred = index.first_edges();
    let graph = extend(p, &inferred);
    let order = topological(&graph);
    if order.len() < graph.len() {
        return Saturation::Cycle(explain(p, &index, &inferred, &graph, &order));
    }
    Saturation::Open(graph, inferred)
}

/// Saturates the memory order of a problem.
pub(crate) fn saturate(
    p: &Problem,
    s: &Sources,
    trace: &Trace,
    rules: PreservedOrder,
    budget: &Budget,
) -> Saturation {
    let joint = rules.orders_stores() && trace.threads.len() <= MAX_JOINT_THREADS;
    let index = Index::new(p, s, trace, rules, joint);
    let mut pairs: AHashSet<(u32, u32)> = AHashSet::new();
    let mut inferred: Vec<InferredEdge> = index.first_edges();
    inferred.retain(|e| pairs.insert((e.from, e.to)));
    loop {
        let graph = extend(p, &inferred);
        let order = topological(&graph);
        if order.len() < graph.len() {
            return Saturation::Cycle(explain(p, &index, &inferred, &graph, &order));
        }
        let before = inferred.len();
        let known = u32::try_from(before).expect("fewer edges than 2^32");
        let mut add = |from: u32, to: u32, reason: Reason, cause: Cause| {
            if pairs.insert((from, to)) {
                inferred.push(InferredEdge { from, to, reason, cause, known });
            }
        };
        let places: Vec<Option<u32>> = if joint {
            vec![None]
        } else {
            (0..narrow::index(trace.locations.len())).map(Some).collect()
        };
        for place in places {
            let mut columns = vec![NONE; trace.threads.len()];
            let mut count = 0;
            let writers = match place {
                Some(l) => index.writers[l as usize].iter().map(|w| w.0).collect(),
                None => (0..narrow::index(trace.threads.len())).collect::<Vec<u32>>(),
            };
            for t in writers {
                columns[t as usize] = count;
                count += 1;
            }
            if count == 0 {
                continue;
            }
            let clocks = vec![0; p.len() * count as usize];
            let mut sweep = Sweep { index: &index, columns, width: count as usize, clocks, place };
            if let Err(stop) =
                sweep.run(&graph, &order, &mut add, budget).and_then(|()| budget.check_memory())
            {
                return Saturation::Stopped(stop);
            }
        }
        if inferred.len() == before {
            return Saturation::Open(graph, inferred);
        }
    }
}

/// Returns the problem with further edges.
fn extend(p: &Problem, inferred: &[InferredEdge]) -> Problem {
    let mut edges = Vec::with_capacity(p.targets.len() + inferred.len());
    for n in 0..narrow::index(p.len()) {
        edges.extend(p.successors(n).iter().map(|m| (n, *m)));
    }
    edges.extend(inferred.iter().map(|e| (e.from, e.to)));
    Problem {
        roles: p.roles.clone(),
        extra: p.extra.clone(),
        own: p.own.clone(),
        ..Problem::default()
    }
    .with_edges(&edges)
}

/// Limit on the nodes of a cycle through which a simpler one is searched.
const MAX_STARTS: usize = 8;

/// Returns a simple cycle among the nodes that a topological order lacks: with few edges, and few
/// of them that need a proof.
fn cycle(
    graph: &Problem,
    order: &[u32],
    p: &Problem,
    inferred: &[InferredEdge],
) -> Vec<(u32, u32)> {
    let mut open = vec![true; graph.len()];
    order.iter().for_each(|n| open[*n as usize] = false);
    // Each open node has an open predecessor: walk backwards until a node repeats.
    let mut predecessor = vec![NONE; graph.len()];
    for n in (0..narrow::index(graph.len())).filter(|n| open[*n as usize]) {
        for &m in graph.successors(n).iter().filter(|m| open[**m as usize]) {
            predecessor[m as usize] = n;
        }
    }
    let mut at =
        (0..narrow::index(graph.len())).find(|n| open[*n as usize]).expect("a node on a cycle");
    let mut seen = AHashSet::new();
    while seen.insert(at) {
        at = predecessor[at as usize];
    }
    let mut starts = vec![at];
    while starts.len() < MAX_STARTS && predecessor[at as usize] != starts[0] {
        at = predecessor[at as usize];
        starts.push(at);
    }
    // The weight of an edge grows with the usual length of its proof.
    let mut weights: AHashMap<(u32, u32), u32> = AHashMap::new();
    for e in inferred.iter().filter(|e| open[e.from as usize] && open[e.to as usize]) {
        let weight = match (e.cause, e.reason) {
            (Cause::Ends, _) => 2,
            (Cause::Load(_), _) => 4,
            (Cause::Path(..), Reason::FromReads) => 6,
            (Cause::Path(..), _) => 16,
        };
        weights.entry((e.from, e.to)).or_insert(weight);
    }
    let weight = |from: u32, to: u32| match weights.get(&(from, to)) {
        Some(weight) if !p.successors(from).contains(&to) => *weight,
        _ => 2,
    };
    let cycles = starts.iter().map(|start| lightest(graph, &open, *start, &weight));
    cycles.min_by_key(|c| c.0).expect("a cycle through each start").1
}

/// Returns the lightest cycle through a node, with its weight.
fn lightest(
    graph: &Problem,
    open: &[bool],
    start: u32,
    weight: &dyn Fn(u32, u32) -> u32,
) -> (u32, Vec<(u32, u32)>) {
    let mut from: AHashMap<u32, (u32, u32)> = AHashMap::new();
    let mut queue = BinaryHeap::from([Reverse((0, start))]);
    while let Some(Reverse((length, n))) = queue.pop() {
        if n == start && length > 0 {
            break;
        }
        if n != start && from[&n].0 < length {
            continue;
        }
        for &m in graph.successors(n).iter().filter(|m| open[**m as usize]) {
            let longer = length + weight(n, m);
            let entry = from.entry(m).or_insert((u32::MAX, NONE));
            if longer < entry.0 {
                *entry = (longer, n);
                queue.push(Reverse((longer, m)));
            }
        }
    }
    let total = from[&start].0;
    let mut out = Vec::new();
    let mut at = start;
    loop {
        let before = from[&at].1;
        out.push((before, at));
        at = before;
        if at == start {
            break;
        }
    }
    out.reverse();
    (total, out)
}

/// Returns a cycle of a graph with the reasons of its edges and the nodes that imply them.
fn explain(
    p: &Problem,
    index: &Index<'_>,
    inferred: &[InferredEdge],
    graph: &Problem,
    order: &[u32],
) -> Vec<CycleEdge> {
    let cycle = cycle(graph, order, p, inferred);
    let updates = |load: u32, last: u32| index.updates(load, last);
    let mut explainer = Explainer::new(p, inferred, &updates);
    cycle.iter().map(|e| explainer.edge(e.0, e.1)).collect()
}
