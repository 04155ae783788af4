//! Explanation of a cycle: the operations that imply its inferred edges.
//!
//! An edge that the saturation infers has premises (`Cause`): a load, or a path of edges that were
//! known earlier. A shortest such path is found again here, and its own inferred edges are
//! explained in turn, so the result is a proof of the cycle from the edges of the problem and the
//! sources of loads alone. Nothing of it is stored during the saturation. Invariant: the operations
//! of a cycle, of the paths, and the sources of their loads are forbidden without the rest of the
//! trace. Cost: one breadth-first search for each inferred edge of the proof.

use std::collections::VecDeque;

use ahash::{AHashMap, AHashSet};
use mu_base::narrow;

use super::problem::{NodeRole, Problem};
use super::saturate::{Cause, InferredEdge};
use super::sources::NONE;
use super::{Conflict, OrderEdge, Reason, sources::Sources};
use crate::model::TraceModel;
use crate::trace::{OperationKind, Trace};

/// Edge of a cycle of nodes.
#[derive(Clone, Debug)]
pub(crate) struct CycleEdge {
    pub from: u32,
    pub to: u32,
    /// `None` if the problem has the edge.
    pub reason: Option<Reason>,
    /// Nodes that imply the edge.
    pub because: Vec<u32>,
    /// Stores that precede the one with a required final value: premises of the edge.
    pub finals: Vec<u32>,
}

/// Finder of premises.
pub(crate) struct Explainer<'a> {
    p: &'a Problem,
    inferred: &'a [InferredEdge],
    /// Inferred edges by their first node.
    from: AHashMap<u32, Vec<u32>>,
    /// Returns the chain of updates between a load and a store.
    updates: &'a dyn Fn(u32, u32) -> Vec<u32>,
    /// Nodes and inferred edges of the path of each explained edge.
    paths: AHashMap<u32, (Vec<u32>, Vec<u32>)>,
}

impl<'a> Explainer<'a> {
    pub fn new(
        p: &'a Problem,
        inferred: &'a [InferredEdge],
        updates: &'a dyn Fn(u32, u32) -> Vec<u32>,
    ) -> Self {
        let mut from: AHashMap<u32, Vec<u32>> = AHashMap::new();
        for (k, e) in (0..).zip(inferred) {
            from.entry(e.from).or_default().push(k);
        }
        Explainer { p, inferred, from, updates, paths: AHashMap::new() }
    }
    /// Returns an edge with its premises.
    pub fn edge(&mut self, from: u32, to: u32) -> CycleEdge {
        let mut out = CycleEdge { from, to, reason: None, because: Vec::new(), finals: Vec::new() };
        if self.p.successors(from).contains(&to) {
            return out;
        }
        let known = self.from.get(&from).into_iter().flatten();
        let Some(first) = known.copied().find(|k| self.inferred[*k as usize].to == to) else {
            return out;
        };
        out.reason = Some(self.inferred[first as usize].reason);
        let mut seen = AHashSet::from([first]);
        let mut open = vec![first];
        while let Some(k) = open.pop() {
            let e = self.inferred[k as usize];
            if e.reason == Reason::Final {
                out.finals.push(e.from);
            }
            let (nodes, edges) = self.premises(k);
            out.because.extend(nodes);
            open.extend(edges.iter().copied().filter(|e| seen.insert(*e)));
        }
        out.because.sort_unstable();
        out.because.dedup();
        out
    }
    /// Returns the nodes that imply an inferred edge, and the inferred edges between them.
    fn premises(&mut self, k: u32) -> (Vec<u32>, Vec<u32>) {
        let e = self.inferred[k as usize];
        match e.cause {
            Cause::Ends => (Vec::new(), Vec::new()),
            Cause::Load(load) => {
                let mut nodes = (self.updates)(load, e.to);
                nodes.push(load);
                (nodes, Vec::new())
            }
            Cause::Path(from, to) => {
                if let Some(found) = self.paths.get(&k) {
                    return found.clone();
                }
                let found = self.path(from, to, e.known);
                self.paths.insert(k, found.clone());
                found
            }
        }
    }
    /// Returns the nodes of a shortest path, with its inferred edges. Of these the first `known`
    /// may be used.
    fn path(&self, from: u32, to: u32, known: u32) -> (Vec<u32>, Vec<u32>) {
        let mut before: AHashMap<u32, (u32, u32)> = AHashMap::new();
        let mut queue = VecDeque::from([from]);
        'search: while let Some(n) = queue.pop_front() {
            let given = self.p.successors(n).iter().map(|m| (*m, NONE));
            let added = self.from.get(&n).into_iter().flatten().filter(|k| **k < known);
            let added = added.map(|k| (self.inferred[*k as usize].to, *k));
            for (m, edge) in given.chain(added) {
                if m != from && !before.contains_key(&m) {
                    before.insert(m, (n, edge));
                    if m == to {
                        break 'search;
                    }
                    queue.push_back(m);
                }
            }
        }
        let (mut nodes, mut edges) = (vec![to], Vec::new());
        let mut at = to;
        while at != from {
            let Some(&(n, edge)) = before.get(&at) else { break };
            nodes.push(n);
            edges.extend((edge != NONE).then_some(edge));
            at = n;
        }
        (nodes, edges)
    }
}

/// Returns the conflict of a cycle of nodes.
pub(crate) fn conflict(
    trace: &Trace,
    model: &TraceModel,
    p: &Problem,
    s: &Sources,
    nodes: &[CycleEdge],
) -> Conflict {
    let auxiliary = |n: u32| p.roles[n as usize] == NodeRole::Order;
    // Start at an access; then each run of auxiliary nodes becomes one edge.
    let start = nodes.iter().position(|e| !auxiliary(e.from));
    let start = start.expect("a cycle has an access: the auxiliary nodes of a thread are ordered");
    let mut cycle: Vec<OrderEdge> = Vec::new();
    let (mut from, mut reason) = (None, None);
    let mut because: Vec<u32> = Vec::new();
    let mut finals: Vec<u32> = Vec::new();
    for k in 0..nodes.len() {
        let edge = &nodes[(start + k) % nodes.len()];
        from = from.or(p.operation(edge.from));
        reason = reason.or(edge.reason);
        because.extend(edge.because.iter().filter_map(|n| p.operation(*n)));
        finals.extend(edge.finals.iter().filter_map(|n| p.operation(*n)));
        if auxiliary(edge.to) && k + 1 < nodes.len() {
            let operation = p.operation(edge.to);
            because.extend(operation);
            reason = reason.or(Some(match operation {
                Some(fence) => Reason::Fence(fence),
                None if matches!(model, TraceModel::Wmo) => Reason::Time,
                None => Reason::Annotation,
            }));
            continue;
        }
        if let Some((from, to)) = from.zip(p.operation(edge.to)) {
            // The two nodes of an update are one operation.
            if from != to || nodes.len() == 1 {
                let reason = reason.unwrap_or(Reason::Program);
                cycle.push(OrderEdge { from, to, reason, because: std::mem::take(&mut because) });
            }
        }
        (from, reason) = (None, None);
    }
    if matches!(model, TraceModel::Wmo) && trace.has_times() {
        cycle.iter_mut().for_each(|e| add_times(trace, e));
    }
    for edge in &mut cycle {
        edge.because.sort_unstable();
        edge.because.dedup();
        let fence = |i: &u32| matches!(edge.reason, Reason::Fence(f) if f == *i);
        edge.because.retain(|i| *i != edge.from && *i != edge.to && !fence(i));
    }
    let mut operations: Vec<u32> = Vec::new();
    for edge in &cycle {
        operations.extend([edge.from, edge.to]);
        operations.extend(&edge.because);
        if let Reason::Fence(fence) = edge.reason {
            operations.push(fence);
        }
    }
    operations.extend(because);
    operations.sort_unstable();
    operations.dedup();
    let mut on_cycle: Vec<u32> = cycle.iter().flat_map(|e| [e.from, e.to]).collect();
    on_cycle.extend(cycle.iter().filter_map(|e| match e.reason {
        Reason::Fence(fence) => Some(fence),
        _ => None,
    }));
    on_cycle.sort_unstable();
    on_cycle.dedup();
    let mut message =
        format!("every order has a cycle through the operations of {}", lines(trace, &on_cycle));
    let mut premises = operations.clone();
    premises.retain(|i| on_cycle.binary_search(i).is_err());
    if !premises.is_empty() {
        message += &format!(", because of {}", lines(trace, &premises));
    }
    let is_final = |f: &crate::trace::Final| {
        finals.iter().any(|store| trace.location(*store as usize) == f.location)
    };
    let finals = (0..trace.finals.len()).filter(|f| is_final(&trace.finals[*f])).collect();
    let mut out = Conflict { cycle, operations, only_stores: Vec::new(), finals, message };
    add_sources(trace, s, &mut out);
    out
}

/// Returns the lines of operations as text.
fn lines(trace: &Trace, operations: &[u32]) -> String {
    let numbers: Vec<String> =
        operations.iter().map(|o| trace.line(*o as usize).to_string()).collect();
    let word = if numbers.len() == 1 { "line" } else { "lines" };
    format!("{word} {}", numbers.join(", "))
}

/// Adds the operations with the begin times that the operations of an edge inherit.
fn add_times(trace: &Trace, edge: &mut OrderEdge) {
    let ends = [edge.from, edge.to];
    let all: Vec<u32> = ends.iter().chain(&edge.because).copied().collect();
    for i in all {
        let range = trace.range(trace.thread(i as usize));
        let is_timed = |j: &usize| {
            !matches!(trace.kind(*j), OperationKind::Fence(_))
                && trace.operation(*j).begin.is_some()
        };
        let timed = (range.start..i as usize + 1).rev().find(is_timed);
        edge.because.extend(timed.map(narrow::index).filter(|j| *j != i));
    }
}

/// Adds a source for each load of a conflict. An update that is only a source counts as a store.
fn add_sources(trace: &Trace, s: &Sources, conflict: &mut Conflict) {
    let mut added: Vec<u32> = Vec::new();
    for &i in &conflict.operations {
        let want = s.want[i as usize];
        // The first classes have the initial values.
        if want == NONE || (want as usize) < s.last.len() {
            continue;
        }
        let mut source = s.only[want as usize];
        if source == NONE {
            let thread = trace.range(trace.thread(i as usize));
            let is_behind = |k: &usize| *k >= i as usize && *k < thread.end;
            let stores = (0..trace.len()).filter(|k| s.class[*k] == want && !is_behind(k));
            let has = |k: &usize| conflict.operations.binary_search(&(narrow::index(*k))).is_ok();
            let first = stores.clone().find(has).or_else(|| stores.clone().next());
            source = first.map_or(NONE, narrow::index);
        }
        if source != NONE && conflict.operations.binary_search(&source).is_err() {
            added.push(source);
        }
    }
    added.sort_unstable();
    added.dedup();
    let is_update = |i: &u32| trace.kind(*i as usize) == OperationKind::Update;
    conflict.only_stores = added.iter().copied().filter(is_update).collect();
    conflict.operations.extend(added);
    conflict.operations.sort_unstable();
}

impl Conflict {
    /// Returns the conflict of operations without a cycle.
    pub(crate) fn without_cycle(operations: Vec<u32>, finals: Vec<usize>, message: String) -> Self {
        Conflict { cycle: Vec::new(), operations, only_stores: Vec::new(), finals, message }
    }
    /// Gives all operations other numbers.
    pub(crate) fn renumber(&mut self, number: &dyn Fn(u32) -> u32) {
        let Conflict { cycle, operations, only_stores, .. } = self;
        operations.iter_mut().chain(only_stores).for_each(|i| *i = number(*i));
        for OrderEdge { from, to, reason, because } in cycle {
            (*from, *to) = (number(*from), number(*to));
            because.iter_mut().for_each(|i| *i = number(*i));
            if let Reason::Fence(fence) = reason {
                *fence = number(*fence);
            }
        }
    }
    /// Returns the trace in which the updates of which only the store matters are stores.
    #[must_use]
    pub fn simplify<'t>(&self, trace: &'t Trace) -> std::borrow::Cow<'t, Trace> {
        if self.only_stores.is_empty() {
            return std::borrow::Cow::Borrowed(trace);
        }
        let mut out = trace.clone();
        let stores: Vec<usize> = self.only_stores.iter().map(|i| *i as usize).collect();
        out.make_stores(&stores);
        std::borrow::Cow::Owned(out)
    }
    /// Returns the operations and required final values of the conflict as a trace, which the model
    /// forbids too.
    #[must_use]
    pub fn part(&self, trace: &Trace) -> Trace {
        let mut out = trace.part(&self.operations, &self.finals);
        let number = |i: &u32| self.operations.binary_search(i).ok();
        let stores: Vec<usize> = self.only_stores.iter().filter_map(number).collect();
        out.make_stores(&stores);
        out
    }
}
