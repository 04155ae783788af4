//! Decision of large traces in nearly linear time: backward replay of a machine, and inference in
//! windows where it is blocked.
//!
//! In: a trace, a model. Out: a verdict, or `None`: another method has to decide. A trace that a
//! machine with store buffers explains is allowed by all weaker models; the check of the witness
//! under the model itself decides that. Where the replay is blocked, edges of the saturation of a
//! window around the blocked operations hold in every run; the replay continues with them from an
//! earlier point, or the window has a cycle. Windows grow until one of both happens. Cost: linear,
//! plus a window for each time that the replay is blocked.

use ahash::AHashSet;
use mu_base::{Budget, Diagnostic, narrow};

use super::problem::PreservedOrder;
use super::replay::{Buffers, Keys, Outcome, Replay};
use super::sources::{NONE, Sources};
use super::window::{self, Window};
use super::{Verdict, Witness, WitnessStep, unknown_verdict};
use crate::model::TraceModel;
use crate::trace::{OperationKind, Trace};

/// Number of operations of the first window.
const FIRST_WINDOW: usize = 600;
/// Growth of windows that infer nothing.
const GROWTH: usize = 6;
/// Limit on the windows of one replay; beyond it another method decides.
const MAX_WINDOWS: usize = 10_000;

/// Decides a trace. `None` if some load has several sources, or if the answer remains open.
///
/// # Errors
/// A witness that is none: an internal error.
pub(crate) fn decide(
    trace: &Trace,
    model: &TraceModel,
    s: &Sources,
    budget: &Budget,
) -> Result<Option<Verdict>, Diagnostic> {
    let rules = PreservedOrder::of(model);
    let own = rules.and_then(Buffers::of);
    let machines = match own {
        Some(buffers) => vec![buffers],
        None => vec![Buffers::Queue, Buffers::Places],
    };
    // The edges of the order in memory that the log gives are known from the start.
    let commits = super::saturate::commit_order(trace);
    let keys = Keys::of(trace);
    let mut blocked = Vec::new();
    for (k, keys) in keys.iter().enumerate() {
        for &buffers in &machines {
            let Some(mut replay) = Replay::new(trace, s, buffers, keys) else { return Ok(None) };
            commits.iter().for_each(|e| replay.add_edge(e.0, e.1));
            match replay.run(budget) {
                Outcome::Found => match (allowed_verdict(trace, model, s, replay), own) {
                    (Ok(verdict), _) => return Ok(Some(verdict)),
                    (Err(error), Some(_)) => return Err(error),
                    (Err(_), None) => {}
                },
                Outcome::Stopped(stop) => {
                    return Ok(Some(unknown_verdict(stop, "the replay of the log")));
                }
                Outcome::Blocked if k == 0 => blocked = replay.blocking_operations(),
                Outcome::Blocked => {}
            }
        }
    }
    let Some(rules) = rules else { return Ok(None) };
    match own {
        Some(buffers) => replay_with_windows(trace, (model, rules), s, buffers, &keys[0], budget),
        None if blocked.is_empty() || rules.depends_on_sources() && !s.has_single_stores() => {
            Ok(None)
        }
        None => Ok(forbidden_verdict(trace, (model, rules), s, &blocked, budget)),
    }
}

/// Returns the verdict for a run, checked under the model.
fn allowed_verdict(
    trace: &Trace,
    model: &TraceModel,
    s: &Sources,
    replay: Replay<'_>,
) -> Result<Verdict, Diagnostic> {
    let steps = replay.steps();
    let witness = match model {
        TraceModel::Sc | TraceModel::Tso | TraceModel::Pso | TraceModel::Wmo => Witness::Run(steps),
        TraceModel::Pow => order_of(trace, s, &steps),
        _ => Witness::Run(split(trace, model, &steps)),
    };
    crate::witness::check(trace, model, &witness)?;
    Ok(Verdict::Allowed { witness })
}

/// Returns the run in which the load and the store of an update are two steps if the model splits
/// it.
fn split(trace: &Trace, model: &TraceModel, steps: &[WitnessStep]) -> Vec<WitnessStep> {
    let mut out = Vec::with_capacity(steps.len());
    for &step in steps {
        out.push(step);
        if let WitnessStep::Perform(i) = step
            && trace.kind(i as usize) == OperationKind::Update
            && model.splits(trace.mark(i as usize))
        {
            out.push(WitnessStep::Reach(i));
        }
    }
    out
}

/// Returns the witness of `pow` for a run of a machine with one memory.
fn order_of(trace: &Trace, s: &Sources, steps: &[WitnessStep]) -> Witness {
    let operation = |step: &WitnessStep| match *step {
        WitnessStep::Perform(i) | WitnessStep::Reach(i) => i,
    };
    let operations: Vec<u32> = steps.iter().map(operation).collect();
    let mut coherence = vec![Vec::new(); trace.locations.len()];
    for &i in operations.iter().filter(|i| trace.kind(**i as usize).stores()) {
        coherence[trace.location(i as usize) as usize].push(i);
    }
    let loads = (0..narrow::index(trace.len())).filter(|i| s.want[*i as usize] != NONE);
    let source = |i: u32| {
        let store = s.only[s.want[i as usize] as usize];
        (i, (store != NONE).then_some(store))
    };
    let reads_from = loads.map(source).collect();
    Witness::Order { operations, coherence, reads_from }
}

/// Replays with edges that windows infer.
fn replay_with_windows(
    trace: &Trace,
    (model, rules): (&TraceModel, PreservedOrder),
    s: &Sources,
    buffers: Buffers,
    keys: &Keys,
    budget: &Budget,
) -> Result<Option<Verdict>, Diagnostic> {
    let Some(mut replay) = Replay::new(trace, s, buffers, keys) else { return Ok(None) };
    super::saturate::commit_order(trace).iter().for_each(|e| replay.add_edge(e.0, e.1));
    let mut known: AHashSet<(u32, u32)> = AHashSet::new();
    let mut size = FIRST_WINDOW;
    for _ in 0..MAX_WINDOWS {
        match replay.run(budget) {
            Outcome::Found => return allowed_verdict(trace, model, s, replay).map(Some),
            Outcome::Stopped(stop) => {
                return Ok(Some(unknown_verdict(stop, "the replay of the log")));
            }
            Outcome::Blocked => {}
        }
        let center = replay.blocking_operations();
        loop {
            match window::infer(trace, s, (model, rules), &center, size, budget) {
                Window::Forbidden(conflict) => return Ok(Some(Verdict::Forbidden { conflict })),
                Window::Stopped(stop) => return Ok(Some(unknown_verdict(stop, "the saturation"))),
                Window::Edges(mut edges) => {
                    edges.retain(|e| known.insert(*e));
                    edges.iter().for_each(|e| replay.add_edge(e.0, e.1));
                    if replay.obey(&edges) {
                        size = FIRST_WINDOW;
                        break;
                    }
                }
            }
            if size >= trace.len() {
                return Ok(None);
            }
            size *= GROWTH;
        }
    }
    Ok(None)
}

/// Returns the verdict for a cycle in a window around operations; `None` if there is none.
fn forbidden_verdict(
    trace: &Trace,
    model: (&TraceModel, PreservedOrder),
    s: &Sources,
    center: &[u32],
    budget: &Budget,
) -> Option<Verdict> {
    let mut size = FIRST_WINDOW;
    // A large window costs as much as the general method, which follows.
    while size < trace.len() / 2 {
        match window::infer(trace, s, model, center, size, budget) {
            Window::Forbidden(conflict) => return Some(Verdict::Forbidden { conflict }),
            Window::Stopped(stop) => return Some(unknown_verdict(stop, "the saturation")),
            Window::Edges(_) => {}
        }
        size *= GROWTH;
    }
    None
}
