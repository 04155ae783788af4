//! Constraint problem of a trace under a model with one memory for all threads.
//!
//! The axioms of the models (Axe's manual, section 4; RISC-V manual, chapter RVWMO; Arm manual,
//! section B2.3) have one form. There is a total order of nodes, the *memory order*, such that
//!
//! - the edges of the problem hold: the part of program order that the model preserves;
//! - a load takes the value of the last store to its location in memory order, or, if the last
//!   earlier store of its own thread to the location comes later in memory order, of that one;
//! - an update is one node (`sc`, `tso`, `pso`, `wmo`), or a load and a store between which there
//!   is no other store to the location in memory order (`rvwmo`, `armv8`, as in the models of the
//!   herd tools). Annotations of an atomic instruction order it as a whole, those of a pair of
//!   load-reserve and store-conditional order its load and its store.
//!
//! The node of an operation has the operation's index. Other nodes follow: stores of updates, and
//! auxiliary nodes, through which many operations are before many others with few edges. Cost:
//! linear in time and memory.

use super::sources::{NONE, Sources};
use crate::model::TraceModel;
use crate::trace::{Annotations, Fence, OperationKind, Trace};
use mu_base::narrow;

/// Role of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeRole {
    /// Only its edges matter.
    Order,
    Load,
    Store,
    /// A load and a store at one time.
    Update,
    /// The store of an update; the location still has the value that its load took.
    Half,
}

/// Nodes and edges.
#[derive(Debug, Default)]
pub(crate) struct Problem {
    pub roles: Vec<NodeRole>,
    /// Operation of each node beyond the operations; [`NONE`] for auxiliary nodes.
    pub extra: Vec<u32>,
    /// Latest earlier store of the thread to the same location; [`NONE`] if there is none.
    pub own: Vec<u32>,
    /// Start of the successors of each node in `targets`.
    pub starts: Vec<u32>,
    pub targets: Vec<u32>,
    /// Number of predecessors.
    pub predecessors: Vec<u32>,
}

impl Problem {
    /// Returns the successors of a node.
    pub fn successors(&self, n: u32) -> &[u32] {
        &self.targets[self.starts[n as usize] as usize..self.starts[n as usize + 1] as usize]
    }
    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.roles.len()
    }
    /// Returns the operation of a node. `None` if the node stands for no operation.
    pub fn operation(&self, n: u32) -> Option<u32> {
        let beyond = (n as usize).checked_sub(self.roles.len() - self.extra.len());
        match beyond {
            None => Some(n),
            Some(i) => Some(self.extra[i]).filter(|o| *o != NONE),
        }
    }
    /// Sets the edges.
    pub fn with_edges(mut self, edges: &[(u32, u32)]) -> Problem {
        let n = self.roles.len();
        self.starts = vec![0; n + 1];
        self.predecessors = vec![0; n];
        for &(a, b) in edges {
            self.starts[a as usize + 1] += 1;
            self.predecessors[b as usize] += 1;
        }
        for i in 0..n {
            self.starts[i + 1] += self.starts[i];
        }
        let mut next = self.starts.clone();
        self.targets = vec![0; edges.len()];
        for &(a, b) in edges {
            self.targets[next[a as usize] as usize] = b;
            next[a as usize] += 1;
        }
        self
    }
}

/// Program order that a model preserves, apart from fences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PreservedOrder {
    /// All program order.
    all: bool,
    /// A load comes before all that follows it.
    loads_first: bool,
    /// Stores of a thread stay in order.
    stores_in_order: bool,
    /// Loads of one location stay in order, whatever they read.
    same_loads: bool,
    /// Loads of one location stay in order if they read different stores.
    different_loads: bool,
    /// Times order.
    times: bool,
    /// Acquires and releases order: those of RISC-V.
    riscv: bool,
    /// Acquires and releases order: those of Arm.
    arm: bool,
    /// Updates are one node, in spite of the rules of the model.
    joint: bool,
}

impl PreservedOrder {
    /// Returns the rules of a model with one memory; `None` for others.
    pub fn of(model: &TraceModel) -> Option<PreservedOrder> {
        let none = PreservedOrder {
            all: false,
            loads_first: false,
            stores_in_order: false,
            same_loads: false,
            different_loads: false,
            times: false,
            riscv: false,
            arm: false,
            joint: false,
        };
        Some(match model {
            TraceModel::Sc => PreservedOrder { all: true, ..none },
            TraceModel::Tso => PreservedOrder { loads_first: true, stores_in_order: true, ..none },
            TraceModel::Pso => PreservedOrder { loads_first: true, ..none },
            TraceModel::Wmo => PreservedOrder { same_loads: true, times: true, ..none },
            TraceModel::Rvwmo => PreservedOrder { different_loads: true, riscv: true, ..none },
            TraceModel::Armv8 => PreservedOrder { different_loads: true, arm: true, ..none },
            _ => return None,
        })
    }
    /// True if an update with these annotations is two nodes ([`TraceModel::splits`]).
    pub fn splits(self, mark: Annotations) -> bool {
        (self.arm || self.riscv && mark.is_pair()) && !self.joint
    }
    /// Returns the rules with updates of one node.
    pub fn with_joint_updates(self) -> PreservedOrder {
        PreservedOrder { joint: true, ..self }
    }
    /// True if the edges depend on the sources of loads.
    pub fn depends_on_sources(self) -> bool {
        self.different_loads
    }
    /// True if a store takes effect at its place in the thread.
    pub fn is_immediate(self) -> bool {
        self.all
    }
    /// True if a load comes before all that follows it in its thread.
    pub fn loads_first(self) -> bool {
        self.all || self.loads_first
    }
    /// True if the stores of a thread form a chain.
    pub fn orders_stores(self) -> bool {
        self.all || self.stores_in_order
    }
}

/// State of one location in the thread that is being processed.
#[derive(Clone, Default)]
struct LocationState {
    store: Option<u32>,
    load: Option<u32>,
    /// Loads since the last store, in runs with one source; the last run and the one before it.
    run: Vec<u32>,
    before: Vec<u32>,
    since_store: Vec<u32>,
    source: u32,
}

/// Creator of the nodes and edges of one thread after the other.
struct Builder<'t> {
    trace: &'t Trace,
    sources: &'t Sources,
    rules: PreservedOrder,
    out: Problem,
    edges: Vec<(u32, u32)>,
    places: Vec<LocationState>,
    touched: Vec<u32>,
    halves: ahash::AHashMap<u32, u32>,
    // State of the thread.
    last: Option<u32>,
    last_load: Option<u32>,
    last_store: Option<u32>,
    /// Loads and stores that the next fence or release may order.
    loads: Vec<u32>,
    stores: Vec<u32>,
    /// Latest fence nodes: after loads and after stores, before loads and before stores.
    fences: [[Option<u32>; 2]; 2],
    /// Latest fence nodes after loads and after stores.
    collected: [Option<u32>; 2],
    /// Latest node after all acquires.
    acquired: Option<u32>,
    /// Accesses since the last release, and its node before it.
    unreleased: Vec<u32>,
    released: Option<u32>,
    /// Latest node after the annotated accesses that stay in order.
    annotated: Option<u32>,
    /// Loads with an end time, the earliest end first; latest node after some of them.
    ends: std::collections::BinaryHeap<std::cmp::Reverse<(u64, u32)>>,
    timed: Option<u32>,
    begin: Option<u64>,
}

/// Builds the problem of a trace.
pub(crate) fn build(trace: &Trace, sources: &Sources, rules: PreservedOrder) -> Problem {
    let n = trace.len();
    let mut b = Builder {
        trace,
        sources,
        rules,
        out: Problem { roles: vec![NodeRole::Order; n], own: vec![NONE; n], ..Problem::default() },
        edges: Vec::with_capacity(2 * n),
        places: vec![LocationState::default(); trace.locations.len()],
        touched: Vec::new(),
        halves: ahash::AHashMap::new(),
        last: None,
        last_load: None,
        last_store: None,
        loads: Vec::new(),
        stores: Vec::new(),
        fences: [[None; 2]; 2],
        collected: [None; 2],
        acquired: None,
        unreleased: Vec::new(),
        released: None,
        annotated: None,
        ends: std::collections::BinaryHeap::new(),
        timed: None,
        begin: None,
    };
    for t in 0..trace.threads.len() {
        b.start_thread();
        for i in trace.range(t) {
            b.operation(narrow::index(i));
        }
    }
    let edges = std::mem::take(&mut b.edges);
    b.out.with_edges(&edges)
}

impl Builder<'_> {
    fn start_thread(&mut self) {
        for l in self.touched.drain(..) {
            self.places[l as usize] = LocationState::default();
        }
        self.last = None;
        self.last_load = None;
        self.last_store = None;
        self.loads.clear();
        self.stores.clear();
        self.fences = [[None; 2]; 2];
        self.collected = [None; 2];
        self.acquired = None;
        self.unreleased.clear();
        self.released = None;
        self.annotated = None;
        self.ends.clear();
        self.timed = None;
        self.begin = None;
    }
    fn edge(&mut self, from: Option<u32>, to: u32) {
        if let Some(from) = from.filter(|f| *f != to) {
            self.edges.push((from, to));
        }
    }
    /// Creates a node beyond the operations.
    fn node(&mut self, role: NodeRole, operation: u32) -> u32 {
        let n = narrow::index(self.out.roles.len());
        self.out.roles.push(role);
        self.out.own.push(NONE);
        self.out.extra.push(operation);
        n
    }
    fn operation(&mut self, i: u32) {
        let kind = self.trace.kind(i as usize);
        if let OperationKind::Fence(fence) = kind {
            if self.rules.all {
                self.edge(self.last, i);
                self.last = Some(i);
            } else {
                self.fence(i, fence);
            }
            return;
        }
        let place = self.trace.location(i as usize) as usize;
        self.touched.push(narrow::index(place));
        let mark = self.trace.mark(i as usize);
        let split = kind == OperationKind::Update && self.rules.splits(mark);
        self.out.roles[i as usize] = match kind {
            OperationKind::Load => NodeRole::Load,
            OperationKind::Store => NodeRole::Store,
            _ if split => NodeRole::Load,
            _ => NodeRole::Update,
        };
        self.out.own[i as usize] = self.places[place].store.unwrap_or(NONE);
        // The nodes that load and store.
        let load = kind.loads().then_some(i);
        let mut store = kind.stores().then_some(i);
        if split {
            let half = self.node(NodeRole::Half, i);
            self.out.own[half as usize] = self.places[place].store.unwrap_or(NONE);
            self.edge(Some(i), half);
            self.halves.insert(i, half);
            store = Some(half);
        }
        if self.rules.all {
            self.edge(self.last, i);
            self.last = Some(i);
            self.places[place].store = store.or(self.places[place].store);
            return;
        }
        self.after_fences(load, store);
        self.program_order(i, place, load, store);
        self.annotations(i, load, store);
        if self.rules.times {
            self.time(i, load);
        }
        if let Some(l) = load {
            if self.rules.loads_first {
                self.loads.clear();
            }
            self.loads.push(l);
        }
        if let Some(s) = store {
            if self.rules.stores_in_order {
                self.stores.clear();
            }
            self.stores.push(s);
            self.places[place].store = Some(s);
        }
    }
    fn fence(&mut self, i: u32, fence: Fence) {
        let parts = [
            [fence.includes(Fence::RR), fence.includes(Fence::RW)],
            [fence.includes(Fence::WR), fence.includes(Fence::WW)],
        ];
        let used = parts.map(|p| p[0] || p[1]);
        // A full fence is one node. Another fence has a node for each kind of earlier accesses: a
        // later fence may order only one of the two kinds before accesses that this one does not.
        let joint = fence == Fence::FULL;
        let mut nodes = [i, i];
        if !joint && used[0] && used[1] {
            nodes[1] = self.node(NodeRole::Order, i);
        }
        for before in 0..2 {
            if !used[before] {
                continue;
            }
            let n = nodes[before];
            let list = if before == 0 { &mut self.loads } else { &mut self.stores };
            for access in std::mem::take(list) {
                self.edges.push((access, n));
            }
            self.edge(self.collected[before], n);
            self.collected[before] = Some(n);
            for (fence, orders) in self.fences[before].iter_mut().zip(parts[before]) {
                if orders {
                    *fence = Some(n);
                }
            }
        }
    }
    fn after_fences(&mut self, load: Option<u32>, store: Option<u32>) {
        for (after, node) in [(0, load), (1, store)] {
            let Some(n) = node else { continue };
            let (a, b) = (self.fences[0][after], self.fences[1][after]);
            // A joint update has both parts in one node.
            let done = after == 1 && load == store && self.fences.iter().all(|f| f[0] == f[1]);
            if !done {
                self.edge(a, n);
                if a != b {
                    self.edge(b, n);
                }
            }
        }
    }
    fn program_order(&mut self, i: u32, place: usize, load: Option<u32>, store: Option<u32>) {
        let rules = self.rules;
        let at = std::mem::take(&mut self.places[place]);
        let mut at = at;
        if rules.loads_first
            && let Some(l) = self.last_load
        {
            let previous = if rules.stores_in_order { self.last_store } else { at.store };
            // The previous store of the chain is behind the load already.
            let implied = load.is_none() && previous.is_some_and(|s| s >= l);
            if !implied {
                self.edge(Some(l), i);
            }
        }
        if rules.stores_in_order {
            if let Some(s) = store {
                let same = load.is_some() && self.last_store == self.last_load;
                if !same {
                    self.edge(self.last_store, s);
                }
                self.last_store = Some(s);
            }
        } else if let Some(s) = store {
            self.edge(at.store, s);
        }
        if rules.same_loads
            && let Some(l) = at.load.filter(|l| Some(*l) != at.store || store.is_none())
        {
            self.edge(Some(l), i);
        }
        if let Some(l) = load {
            if rules.different_loads {
                self.different_loads(i, l, &mut at);
            }
            self.last_load = Some(l);
            at.load = Some(l);
        }
        if let Some(s) = store
            && rules.different_loads
        {
            for l in at.since_store.drain(..).filter(|l| *l != i) {
                self.edges.push((l, s));
            }
            at.run.clear();
            at.before.clear();
        }
        self.places[place] = at;
    }
    /// Orders a load behind the loads of its location since the last store that read other stores,
    /// and, in RISC-V, behind an update of its thread that it reads.
    fn different_loads(&mut self, i: u32, l: u32, at: &mut LocationState) {
        let source = self.sources.want[i as usize];
        if at.run.is_empty() || source != at.source {
            at.before = std::mem::take(&mut at.run);
            if at.before.len() > 1 {
                let joint = self.node(NodeRole::Order, NONE);
                for b in std::mem::take(&mut at.before) {
                    self.edges.push((b, joint));
                }
                at.before.push(joint);
            }
            at.source = source;
        }
        for b in &at.before {
            self.edges.push((*b, l));
        }
        at.run.push(l);
        at.since_store.push(l);
        let writer = match source {
            NONE => NONE,
            class => self.sources.only[class as usize],
        };
        // A load waits for an update that it reads.
        let is_update = writer != NONE && self.trace.kind(writer as usize) == OperationKind::Update;
        let stored = self.halves.get(&writer).copied().or(is_update.then_some(writer));
        if let Some(half) = stored {
            let same_thread = writer < i && at.store == Some(half);
            let acquires = self.trace.mark(i as usize).of_load().acquires();
            if same_thread && (self.rules.riscv || acquires) {
                self.edge(Some(half), l);
            }
        }
    }
    fn annotations(&mut self, i: u32, load: Option<u32>, store: Option<u32>) {
        if !(self.rules.riscv || self.rules.arm) {
            return;
        }
        let mark = self.trace.mark(i as usize);
        let update = load.is_some() && store.is_some();
        let first = i;
        let end = store.unwrap_or(i);
        if mark.is_pair() {
            if load.is_some() {
                self.half(first, mark.of_load(), true);
            }
            if store.is_some() {
                self.half(end, mark.of_store(), false);
            }
            return;
        }
        self.edge(self.acquired, first);
        // Releases: everything before.
        self.unreleased.push(end);
        if mark.has(Annotations::RELEASE) && (store.is_some() || self.rules.riscv) {
            let target = if self.rules.riscv { first } else { end };
            let node = self.node(NodeRole::Order, NONE);
            self.unreleased.pop();
            for access in std::mem::take(&mut self.unreleased) {
                self.edges.push((access, node));
            }
            self.edge(self.released, node);
            self.released = Some(node);
            self.edge(Some(node), target);
            self.unreleased.push(end);
        }
        // Annotated accesses stay in order.
        let (joins, leaves) = if self.rules.riscv {
            let both = update && mark.is_strong();
            (both.then_some(first), both.then_some(end))
        } else {
            let strong = mark.has(Annotations::ACQUIRE) && load.is_some();
            let release = mark.has(Annotations::RELEASE) && store.is_some();
            (strong.then_some(first), release.then_some(end))
        };
        if let Some(n) = joins {
            self.edge(self.annotated, n);
        }
        if let Some(n) = leaves {
            let node = self.node(NodeRole::Order, NONE);
            self.edge(self.annotated, node);
            self.edge(Some(n), node);
            self.annotated = Some(node);
        }
        // Acquires: everything behind.
        if mark.acquires() && (load.is_some() || self.rules.riscv) {
            let both =
                self.rules.riscv || mark.has(Annotations::ACQUIRE.union(Annotations::RELEASE));
            let from = if both { end } else { first };
            let node = self.node(NodeRole::Order, NONE);
            self.edge(self.acquired, node);
            self.edge(Some(from), node);
            self.acquired = Some(node);
        }
    }
    /// Adds the edges of the annotations of one operation of a pair.
    fn half(&mut self, n: u32, mark: Annotations, is_load: bool) {
        self.edge(self.acquired, n);
        if mark.has(Annotations::RELEASE) {
            let node = self.node(NodeRole::Order, NONE);
            for access in std::mem::take(&mut self.unreleased) {
                self.edges.push((access, node));
            }
            self.edge(self.released, node);
            self.released = Some(node);
            self.edge(Some(node), n);
        }
        self.unreleased.push(n);
        let both = self.rules.riscv && mark.is_strong();
        if both || is_load && mark.has(Annotations::ACQUIRE) {
            self.edge(self.annotated, n);
        }
        if both || !is_load && mark.has(Annotations::RELEASE) {
            let node = self.node(NodeRole::Order, NONE);
            self.edge(self.annotated, node);
            self.edge(Some(n), node);
            self.annotated = Some(node);
        }
        if mark.acquires() {
            let node = self.node(NodeRole::Order, NONE);
            self.edge(self.acquired, node);
            self.edge(Some(n), node);
            self.acquired = Some(node);
        }
    }
    fn time(&mut self, i: u32, load: Option<u32>) {
        let o = self.trace.operation(i as usize);
        self.begin = o.begin.or(self.begin);
        if let Some(begin) = self.begin {
            let mut node = None;
            while let Some(&std::cmp::Reverse((end, l))) = self.ends.peek() {
                if end >= begin {
                    break;
                }
                self.ends.pop();
                let n = match node {
                    Some(n) => n,
                    None => {
                        let n = self.node(NodeRole::Order, NONE);
                        self.edge(self.timed, n);
                        node = Some(n);
                        n
                    }
                };
                self.edges.push((l, n));
            }
            self.timed = node.or(self.timed);
            self.edge(self.timed, i);
        }
        if let Some((l, end)) = load.zip(o.end) {
            self.ends.push(std::cmp::Reverse((end, l)));
        }
    }
}
