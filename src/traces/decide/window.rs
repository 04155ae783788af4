//! Windows: parts of a trace around operations that no run can order.
//!
//! In: a trace with one source for each load, a model, and operations at which a replay is
//! blocked. Out: a cycle, or edges that hold in every run of the trace. A window has the
//! operations near the given ones in their threads, and the sources of all its loads; an update
//! that is only a source is a store. The run of a trace, restricted to a window, is a run of the
//! window, because each load keeps its source, and an update obeys all rules of a store. So what
//! is inferred for a window holds for the trace. Cost: that of a saturation of the window.

use mu_base::{Budget, Stop, narrow};

use super::explain::conflict;
use super::problem::{self, PreservedOrder};
use super::saturate::{self, Saturation};
use super::sources::{NONE, Sources};
use super::{Conflict, Reason};
use crate::model::TraceModel;
use crate::trace::{Initial, OperationKind, Trace};

/// Result of a saturation of a window.
pub(crate) enum Window {
    /// The model forbids the window.
    Forbidden(Conflict),
    /// Pairs of operations: the first one comes before the second one in every run.
    Edges(Vec<(u32, u32)>),
    /// A limit of the run.
    Stopped(Stop),
}

/// Infers edges from the window of about `size` operations around `center`.
pub(crate) fn infer(
    trace: &Trace,
    s: &Sources,
    (model, rules): (&TraceModel, PreservedOrder),
    center: &[u32],
    size: usize,
    budget: &Budget,
) -> Window {
    let (operations, only_stores) = operations(trace, s, center, size);
    // The classes of initial values come first, one for each location.
    let mut initial = ahash::AHashMap::new();
    for &i in &operations {
        let place = trace.location(i as usize);
        if s.want[i as usize] == place {
            initial.insert(place, Initial::Value(trace.loaded_value(i as usize)));
        }
    }
    let unknown = |place: u32| initial.get(&place).cloned().unwrap_or(Initial::Unknown);
    let part = trace.window(&operations, &only_stores, &unknown);
    let sources = Sources::of(&part, &[]);
    let p = problem::build(&part, &sources, rules);
    match saturate::saturate(&p, &sources, &part, rules, budget) {
        Saturation::Cycle(cycle) => {
            let mut conflict = conflict(&part, model, &p, &sources, &cycle);
            conflict.renumber(&|i| operations[i as usize]);
            // The window has a part of the updates as stores.
            let matters = |i: &u32| conflict.operations.binary_search(i).is_ok();
            let stores = only_stores.iter().copied().filter(matters);
            let stores = stores.filter(|i| trace.kind(*i as usize) == OperationKind::Update);
            conflict.only_stores.extend(stores);
            conflict.only_stores.sort_unstable();
            Window::Forbidden(conflict)
        }
        Saturation::Stopped(stop) => Window::Stopped(stop),
        Saturation::Open(graph, inferred) => {
            let operation = |n: u32| graph.operation(n).map(|i| operations[i as usize]);
            let edges = inferred.iter().filter(|e| e.reason != Reason::ReadsFrom);
            let pairs = edges.filter_map(|e| operation(e.from).zip(operation(e.to)));
            Window::Edges(pairs.filter(|e| e.0 != e.1).collect())
        }
    }
}

/// Returns the operations of a window, and those of them that are there as sources alone; both in
/// ascending order.
fn operations(trace: &Trace, s: &Sources, center: &[u32], size: usize) -> (Vec<u32>, Vec<u32>) {
    let radius = (size / center.len().max(1) / 2).max(2);
    let mut out = Vec::with_capacity(2 * size);
    for &i in center {
        let range = trace.range(trace.thread(i as usize));
        let from = range.start.max((i as usize).saturating_sub(radius));
        out.extend(narrow::index(from)..narrow::index(range.end.min(i as usize + radius + 1)));
    }
    out.sort_unstable();
    out.dedup();
    let sources = out.iter().map(|i| s.want[*i as usize]).filter(|want| *want != NONE);
    let mut sources: Vec<u32> = sources.map(|want| s.only[want as usize]).collect();
    sources.retain(|store| *store != NONE && out.binary_search(store).is_err());
    sources.sort_unstable();
    sources.dedup();
    out.extend(&sources);
    out.sort_unstable();
    (out, sources)
}
