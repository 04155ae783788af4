//! Decision of traces that leave facts open: values that the log does not have, and pairs of
//! load-reserved and store-conditional with other operations between them.
//!
//! In: a trace with open facts. Out: a verdict for all logs that it may stand for. Without its open
//! facts the trace has more orders, so *forbidden* is final. *Allowed* needs a value for each open
//! load, and an order in which no other thread stores between the source and the store of a pair;
//! otherwise the answer is *unknown*. Values: those that stores of the location have, the initial
//! value, and one that nobody stores; at most [`MAX_VALUES`] choices are tried.
//!
//! A plain load without a value adds no order in a thread with full fences only: it may read what
//! the load before it reads. It is left out there.

use ahash::AHashMap;
use mu_base::{Budget, Diagnostic, Stop, narrow};

use super::sources::NONE;
use super::{Conflict, DecisionOptions, Verdict, Witness, WitnessStep, decide_closed, step};
use crate::model::TraceModel;
use crate::trace::{Annotations, Fence, Initial, OpenFact, OperationKind, Trace, fits};

/// Limit on the choices of open values; beyond it the answer is unknown.
const MAX_VALUES: usize = 512;

/// Returns the verdict of a forbidden trace with skipped lines: they may have had the operation
/// that explains it.
pub(super) fn verdict_with_skipped(trace: &Trace, conflict: &Conflict) -> Verdict {
    let lines: Vec<String> = trace.skipped.iter().take(5).map(ToString::to_string).collect();
    let more = if trace.skipped.len() > 5 { ", …" } else { "" };
    let reason = format!(
        "lines with errors were skipped ({}{more}), and the rest alone is forbidden: {}",
        lines.join(", "),
        conflict.message
    );
    unknown_verdict(reason)
}

fn unknown_verdict(reason: impl Into<String>) -> Verdict {
    Verdict::Unknown { stop: Stop::States, reason: reason.into() }
}

/// Decides a trace with open facts.
pub(super) fn decide(
    trace: &Trace,
    model: &TraceModel,
    options: &DecisionOptions,
    budget: &Budget,
) -> Result<Verdict, Diagnostic> {
    let impossible = trace.open.iter().find_map(|o| match o {
        OpenFact::Impossible { operation, message } => Some((*operation, message.clone())),
        _ => None,
    });
    if let Some((operation, message)) = impossible {
        let conflict = Conflict::without_cycle(vec![operation], Vec::new(), message);
        return Ok(Verdict::Forbidden { conflict });
    }
    // Without open loads, and with stores in place of open updates.
    let is_kept =
        |i: u32| !(trace.is_open(i as usize) && trace.kind(i as usize) == OperationKind::Load);
    let (weaker, kept) = part(trace, &is_kept);
    let stores: Vec<(u32, Option<u64>)> =
        values(&weaker).into_iter().map(|open| (open.0, None)).collect();
    let weaker = weaker.with_values(&stores);
    let verdict = decide_closed(&weaker, model, options, budget)?;
    let witness = match verdict {
        Verdict::Allowed { witness } => witness,
        Verdict::Forbidden { mut conflict } => {
            // Updates with open values are stores here.
            let matters = |i: &u32| conflict.operations.binary_search(i).is_ok();
            let open = stores.iter().map(|s| s.0).filter(matters);
            conflict.only_stores.extend(open);
            conflict.only_stores.sort_unstable();
            conflict.only_stores.dedup();
            conflict.renumber(&|i| kept[i as usize]);
            return Ok(Verdict::Forbidden { conflict });
        }
        verdict => return Ok(verdict),
    };
    let is_kept = |i: u32| is_kept(i) || !is_free(trace, i as usize);
    let (rest, kept_rest) = part(trace, &is_kept);
    let open = values(&rest);
    if open.is_empty() {
        let verdict = Verdict::Allowed { witness };
        return pairs(&rest, &kept_rest, model, verdict, options, budget);
    }
    if open.iter().any(|(i, _)| rest.locations[rest.location(*i as usize) as usize].mixed) {
        let line = rest.line(open[0].0 as usize);
        return Ok(unknown_verdict(format!(
            "the log does not have the value that line {line} loads, from bytes that accesses of several sizes share"
        )));
    }
    let guessed = previous_values(&weaker, &witness);
    let original = |i: u32| kept_rest[i as usize];
    let lists: Vec<Vec<u64>> = open
        .iter()
        .map(|(i, fact)| {
            let mut list = candidates(&rest, *i as usize, fact);
            let weak = kept.binary_search(&original(*i)).ok().map(narrow::index);
            let first = weak.and_then(|i| guessed.get(&i).copied().flatten());
            if let Some(at) = first.and_then(|value| list.iter().position(|v| *v == value)) {
                list.swap(0, at);
            }
            list
        })
        .collect();
    let line = rest.line(open[0].0 as usize);
    if lists.iter().any(Vec::is_empty) {
        return Ok(Verdict::Forbidden { conflict: no_value(trace, line) });
    }
    let mut digits = vec![0; lists.len()];
    let (mut tried, mut doubt) = (0, None);
    loop {
        let chosen: Vec<(u32, Option<u64>)> =
            (0..open.len()).map(|k| (open[k].0, Some(lists[k][digits[k]]))).collect();
        let full = rest.with_values(&chosen);
        let verdict = decide_closed(&full, model, options, budget)?;
        if verdict.truth() == Some(true) {
            let mut with_pairs = full;
            with_pairs.open = without_values(&rest);
            let verdict = pairs(&with_pairs, &kept_rest, model, verdict, options, budget)?;
            if verdict.truth() == Some(true) {
                return Ok(verdict);
            }
            doubt = Some(verdict);
        } else if verdict.truth().is_none() {
            doubt = Some(verdict);
        }
        tried += 1;
        if let Err(stop) = budget.check(tried as u64) {
            let reason = format!("the choice of the value that line {line} loads ended early");
            return Ok(Verdict::Unknown { stop, reason });
        }
        if !step(&mut digits, &lists) {
            break;
        }
        if tried == MAX_VALUES {
            return Ok(unknown_verdict(format!(
                "the log does not have the value that line {line} loads, and {tried} choices of such values explain nothing"
            )));
        }
    }
    Ok(doubt.unwrap_or_else(|| Verdict::Forbidden { conflict: no_value(trace, line) }))
}

/// Returns the part of a trace with some operations, and their numbers.
fn part(trace: &Trace, is_kept: &dyn Fn(u32) -> bool) -> (Trace, Vec<u32>) {
    let kept: Vec<u32> = (0..narrow::index(trace.len())).filter(|i| is_kept(*i)).collect();
    let finals: Vec<usize> = (0..trace.finals.len()).collect();
    (trace.part(&kept, &finals), kept)
}

/// Returns the operations with open values.
fn values(trace: &Trace) -> Vec<(u32, OpenFact)> {
    let value = |o: &OpenFact| match o {
        OpenFact::Value { operation, .. } => Some((*operation, o.clone())),
        _ => None,
    };
    trace.open.iter().filter_map(value).collect()
}

fn without_values(trace: &Trace) -> Vec<OpenFact> {
    trace.open.iter().filter(|o| !matches!(o, OpenFact::Value { .. })).cloned().collect()
}

/// True if a load without a value adds no order: it is plain, and all fences of its thread are
/// full.
fn is_free(trace: &Trace, i: usize) -> bool {
    let o = trace.operation(i);
    let is_partial =
        |j: usize| matches!(trace.kind(j), OperationKind::Fence(f) if f != Fence::FULL);
    let is_of_pair = |p: &OpenFact| matches!(p, OpenFact::Pair { load, .. } if *load as usize == i);
    o.kind == OperationKind::Load
        && trace.is_open(i)
        && o.mark == Annotations::PLAIN
        && (o.begin, o.end) == (None, None)
        && !trace.open.iter().any(is_of_pair)
        && !trace.range(trace.thread(i)).any(is_partial)
}

/// Returns the values that an open operation may load.
fn candidates(trace: &Trace, i: usize, fact: &OpenFact) -> Vec<u64> {
    let OpenFact::Value { rule, .. } = fact else { return Vec::new() };
    let o = trace.operation(i);
    let location = &trace.locations[o.location as usize];
    let mut list: Vec<u64> = Vec::new();
    for j in (0..trace.len()).filter(|j| trace.location(*j) == o.location) {
        let kind = trace.kind(j);
        if kind.stores() {
            list.push(trace.stored_value(j));
        }
        // The unknown initial value is one that a load needs.
        if kind.loads() && location.initial == Initial::Unknown && !trace.is_open(j) {
            list.push(trace.loaded_value(j));
        }
    }
    match &location.initial {
        Initial::Zero => list.push(0),
        Initial::Value(v) => list.push(*v),
        Initial::Bytes(_) => {}
        Initial::Unknown => {
            let unused = (0..).find(|v| !list.contains(v)).expect("some number is unused");
            list.push(unused);
        }
    }
    let mut seen = ahash::AHashSet::new();
    list.retain(|v| seen.insert(*v) && fits(*rule, *v, o.stored, o.size));
    list
}

fn no_value(trace: &Trace, line: u32) -> Conflict {
    super::whole(trace, format!("no value that line {line} may load explains the other values"))
}

/// Returns the verdict of a trace that is allowed without its pairs.
fn pairs(
    trace: &Trace,
    kept: &[u32],
    model: &TraceModel,
    allowed: Verdict,
    options: &DecisionOptions,
    budget: &Budget,
) -> Result<Verdict, Diagnostic> {
    let Verdict::Allowed { witness } = allowed else { return Ok(allowed) };
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for fact in &trace.open {
        match fact {
            OpenFact::Pair { load, store } => pairs.push((*load, *store)),
            OpenFact::Conditional { reason, .. } => return Ok(unknown_verdict(reason.clone())),
            _ => {}
        }
    }
    let found = |witness| Verdict::Allowed { witness: original_witness(witness, kept) };
    let Some(&(load, store)) = pairs.first() else { return Ok(found(witness)) };
    let reason = format!(
        "operations stand between the load-reserved of line {} and its store-conditional, line {}, and the order found has another store between them",
        trace.line(load as usize),
        trace.line(store as usize)
    );
    if trace.has_mixed_sizes() {
        return Ok(unknown_verdict(
            "operations stand between a load-reserved and its store-conditional, and accesses of several sizes share bytes",
        ));
    }
    let plain = trace.with_values(&[]);
    let is_weak = matches!(model, TraceModel::Rvwmo | TraceModel::Armv8);
    if (is_weak || matches!(model, TraceModel::Sc)) && are_atomic(&plain, &witness, &pairs, is_weak)
    {
        return Ok(found(witness));
    }
    // An order of `sc` decides for all models.
    let strong = decide_closed(&plain, &TraceModel::Sc, options, budget)?;
    if let Verdict::Allowed { witness: strong } = strong
        && are_atomic(&plain, &strong, &pairs, false)
    {
        return Ok(found(strong));
    }
    Ok(unknown_verdict(reason))
}

/// True if no other thread stores between the source of the load and the store of each pair.
/// `weak`: the pairs must also order no more than a load and a store do.
fn are_atomic(trace: &Trace, witness: &Witness, pairs: &[(u32, u32)], weak: bool) -> bool {
    let memory = WitnessMemory::of(trace, witness);
    pairs.iter().all(|&(load, store)| {
        let Some(&source) = memory.source.get(&load) else { return false };
        let position = |s: u32| memory.position.get(&s).copied();
        let first = if source == NONE { Some(0) } else { position(source).map(|p| p + 1) };
        let Some((first, last)) = first.zip(position(store)) else { return false };
        let place = trace.location(store as usize);
        let thread = trace.range(trace.thread(store as usize));
        let is_between = |s: &u32| position(*s).is_some_and(|p| (first..last).contains(&p));
        let stores = (0..narrow::index(trace.len()))
            .filter(|s| trace.kind(*s as usize).stores() && trace.location(*s as usize) == place);
        let is_alone = !stores.filter(is_between).any(|s| !thread.contains(&(s as usize)));
        let marks = [load, store].map(|o| trace.mark(o as usize));
        let reads_it = |load: usize| memory.source.get(&narrow::index(load)) == Some(&store);
        let is_plain = marks == [Annotations::PLAIN; 2] && !thread.clone().any(reads_it);
        first <= last && is_alone && (!weak || is_plain)
    })
}

/// Sources of loads, and positions of stores in the order of memory, from a witness.
#[derive(Default)]
struct WitnessMemory {
    source: AHashMap<u32, u32>,
    position: AHashMap<u32, u32>,
}

impl WitnessMemory {
    fn of(trace: &Trace, witness: &Witness) -> WitnessMemory {
        let mut out = WitnessMemory::default();
        match witness {
            Witness::Run(steps) => out.run(trace, steps),
            Witness::Order { coherence, reads_from, .. }
            | Witness::Execution { coherence, reads_from } => {
                for (load, source) in reads_from {
                    out.source.insert(*load, source.unwrap_or(NONE));
                }
                for (position, store) in coherence.iter().flatten().enumerate() {
                    out.position.insert(*store, narrow::index(position));
                }
            }
        }
        out
    }
    fn run(&mut self, trace: &Trace, steps: &[WitnessStep]) {
        // The latest earlier store of the thread to the location of each load.
        let mut own: AHashMap<u32, u32> = AHashMap::new();
        for thread in 0..trace.threads.len() {
            let mut latest: AHashMap<u32, u32> = AHashMap::new();
            for i in trace.range(thread) {
                if matches!(trace.kind(i), OperationKind::Fence(_)) {
                    continue;
                }
                if let Some(store) = latest.get(&trace.location(i)) {
                    own.insert(narrow::index(i), *store);
                }
                if trace.kind(i).stores() {
                    latest.insert(trace.location(i), narrow::index(i));
                }
            }
        }
        let reaches: ahash::AHashSet<u32> = steps
            .iter()
            .filter_map(|s| if let WitnessStep::Reach(i) = s { Some(*i) } else { None })
            .collect();
        let mut last: AHashMap<u32, u32> = AHashMap::new();
        let mut count = 0;
        for &step in steps {
            let (i, takes_place) = match step {
                WitnessStep::Perform(i) => (i, !reaches.contains(&i)),
                WitnessStep::Reach(i) => (i, true),
            };
            let (kind, place) = (trace.kind(i as usize), trace.location(i as usize));
            if kind.loads() && matches!(step, WitnessStep::Perform(_)) {
                let pending = own.get(&i).filter(|s| !self.position.contains_key(s));
                let source = pending.or(last.get(&place)).copied().unwrap_or(NONE);
                self.source.insert(i, source);
            }
            if kind.stores() && takes_place {
                self.position.insert(i, count);
                last.insert(place, i);
                count += 1;
            }
        }
    }
}

/// Returns an order of all operations with sources and coherence, from a run of `sc`. `None` if the
/// witness is no run.
pub(super) fn as_order(trace: &Trace, witness: &Witness) -> Option<Witness> {
    let Witness::Run(steps) = witness else { return None };
    let memory = WitnessMemory::of(trace, witness);
    let operations = steps.iter().filter_map(|s| match s {
        WitnessStep::Perform(i) => Some(*i),
        WitnessStep::Reach(_) => None,
    });
    let mut stores: Vec<(u32, u32)> = memory.position.iter().map(|(s, p)| (*p, *s)).collect();
    stores.sort_unstable();
    let mut coherence = vec![Vec::new(); trace.locations.len()];
    for (_, store) in stores {
        coherence[trace.location(store as usize) as usize].push(store);
    }
    let mut reads_from: Vec<(u32, Option<u32>)> =
        memory.source.iter().map(|(load, s)| (*load, (*s != NONE).then_some(*s))).collect();
    reads_from.sort_unstable();
    Some(Witness::Order { operations: operations.collect(), coherence, reads_from })
}

/// Returns the value before each store in the order of memory; `None` if the trace does not have
/// it.
fn previous_values(trace: &Trace, witness: &Witness) -> AHashMap<u32, Option<u64>> {
    let memory = WitnessMemory::of(trace, witness);
    let mut stores: Vec<(u32, u32, u32)> = memory
        .position
        .iter()
        .map(|(store, position)| (trace.location(*store as usize), *position, *store))
        .collect();
    stores.sort_unstable();
    let mut out = AHashMap::new();
    for (k, &(place, _, store)) in stores.iter().enumerate() {
        let earlier = k.checked_sub(1).map(|j| stores[j]).filter(|s| s.0 == place);
        let value = match (earlier, &trace.locations[place as usize].initial) {
            (Some(earlier), _) => Some(trace.stored_value(earlier.2 as usize)),
            (None, Initial::Zero) => Some(0),
            (None, Initial::Value(v)) => Some(*v),
            _ => None,
        };
        out.insert(store, value);
    }
    out
}

/// Returns a witness of a part with the numbers of the whole trace.
fn original_witness(witness: Witness, kept: &[u32]) -> Witness {
    let number = |i: u32| kept[i as usize];
    let sources = |list: Vec<(u32, Option<u32>)>| -> Vec<(u32, Option<u32>)> {
        list.into_iter().map(|(load, source)| (number(load), source.map(number))).collect()
    };
    let orders = |list: Vec<Vec<u32>>| -> Vec<Vec<u32>> {
        list.into_iter().map(|l| l.into_iter().map(number).collect()).collect()
    };
    match witness {
        Witness::Run(steps) => Witness::Run(
            steps
                .into_iter()
                .map(|step| match step {
                    WitnessStep::Perform(i) => WitnessStep::Perform(number(i)),
                    WitnessStep::Reach(i) => WitnessStep::Reach(number(i)),
                })
                .collect(),
        ),
        Witness::Order { operations, coherence, reads_from } => Witness::Order {
            operations: operations.into_iter().map(number).collect(),
            coherence: orders(coherence),
            reads_from: sources(reads_from),
        },
        Witness::Execution { reads_from, coherence } => {
            Witness::Execution { reads_from: sources(reads_from), coherence: orders(coherence) }
        }
    }
}
