//! Decision of whether a machine can produce a trace (`trace LOG --machine MODEL --interface
//! FILE`).
//!
//! One search collects all histories of the machine up to the length of the longest thread; each
//! trace is then a lookup, as for litmus tests on a machine. A trace that the search does not cover
//! (longer threads, parts of full fences, accesses of several sizes, final values, a program that
//! the machine does not have) is *unknown* with the reason.

use super::results::{TraceAnswer, TraceReport, TraceResult};
use super::{log, print_skipped};
use crate::args::{LogFormat, MAX_MACHINE_OPERATIONS, TraceArgs};
use crate::commands::conform::litmus_outcomes::behaviour;
use crate::output;
use crate::output::answers;
use crate::pipeline::Session;
use mu_axioms::EventKind;
use mu_axioms::history::{History, Operation};
use mu_axioms::models::MemoryOrdering as HistoryMark;
use mu_base::{Diagnostic, Stage, Stop, narrow};
use mu_conform::litmus_outcomes::Behaviour;
use mu_traces::readers::Collected;
use mu_traces::{Annotations, Fence, Initial, OperationKind, ReadOptions, Trace};
use std::path::Path;

/// Limit on the threads of a trace, which are compared in all orders; one with more is unknown.
const MAX_THREADS: usize = 6;

/// Runs the command on a machine.
pub(super) fn run(
    session: &mut Session,
    args: &TraceArgs,
    machine: &Path,
) -> Result<u8, Diagnostic> {
    for (option, given) in [
        ("--litmus", args.litmus.is_some()),
        ("--evidence", args.evidence.is_some()),
        ("--explain", args.explain),
        ("--witness", args.witness),
    ] {
        if given {
            let message = format!("`{option}` has no effect on this run: it is for memory models");
            return Err(Diagnostic::new(Stage::Usage, message).note("omit the option"));
        }
    }
    let results = TraceReport::register(session, args, &[]);
    let mut collected = Collected::default();
    for path in &args.files {
        output::begin_stage_on("reading a log", path);
        let mut log = log::open(path, args)?;
        let LogFormat::Operations(reader) = log.format else {
            let message = format!("{}: outcomes are not traces of a machine", log.name);
            return Err(Diagnostic::new(Stage::Usage, message)
                .note("`litmus TEST --machine MODEL --interface FILE` runs a test on a machine"));
        };
        let options = ReadOptions { file: log.name.clone(), repair: args.repair };
        reader.read(&mut log.bytes, &options, &mut collected)?;
    }
    if collected.traces.is_empty() {
        return Err(Diagnostic::new(Stage::Syntax, "the logs have no operation"));
    }
    let longest = |trace: &Trace| {
        let lengths = (0..trace.threads.len()).map(|t| trace.range(t).len());
        narrow::index(lengths.max().unwrap_or(0))
    };
    let bound = collected.traces.iter().map(longest).filter(|l| *l <= MAX_MACHINE_OPERATIONS).max();
    let interface = args.interface.as_deref().unwrap_or(Path::new(""));
    let numbers: Vec<usize> =
        collected.traces.iter().map(|trace| results.begin(TraceResult::of(trace))).collect();
    results.lock().skipped = collected.skipped;
    let (behaviour, stop) = behaviour(session, machine, interface, bound.unwrap_or(1).max(1))?;
    for (trace, number) in collected.traces.iter().zip(numbers) {
        results.set(number, 0, answer(trace, longest(trace), &behaviour, &stop));
    }
    print_skipped(session, &results.lock().skipped.clone());
    answers::finish(session.common.format)
}

fn unknown_answer(reason: impl Into<String>, stop: &Stop) -> TraceAnswer {
    TraceAnswer { reason: Some(reason.into()), stop: Some(stop.clone()), ..TraceAnswer::default() }
}

/// Looks a trace up.
fn answer(trace: &Trace, longest: u32, machine: &Behaviour, stop: &Stop) -> TraceAnswer {
    if longest > MAX_MACHINE_OPERATIONS {
        let reason = format!(
            "a thread has {longest} operations; machines are searched up to {MAX_MACHINE_OPERATIONS}"
        );
        return unknown_answer(reason, stop);
    }
    let busy = (0..trace.threads.len()).filter(|t| !trace.range(*t).is_empty()).count();
    if busy > MAX_THREADS {
        let reason = format!("it has {busy} threads; at most {MAX_THREADS} are compared");
        return unknown_answer(reason, stop);
    }
    if !trace.finals.is_empty() {
        let reason = "it has final values, which labels of the machine do not contain";
        return unknown_answer(reason, stop);
    }
    let history = match history(trace) {
        Ok(history) => history,
        Err(reason) => return unknown_answer(reason, stop),
    };
    if machine.histories().contains(&history.canonical()) {
        return TraceAnswer { truth: Some(true), ..TraceAnswer::default() };
    }
    if !trace.skipped.is_empty() {
        return unknown_answer("lines with errors were skipped, and the rest is not a run", stop);
    }
    match *stop == Stop::Complete {
        true if machine.programs().contains(&history.program()) => {
            TraceAnswer { truth: Some(false), ..TraceAnswer::default() }
        }
        true => unknown_answer("the machine has no such program", stop),
        false => unknown_answer("the search of the machine is not complete", stop),
    }
}

/// Converts a trace to a history; in histories the initial value is 0. Error: the reason why there
/// is none.
pub(super) fn history(trace: &Trace) -> Result<History, String> {
    if trace.has_mixed_sizes() {
        return Err("accesses of several sizes overlap".into());
    }
    if let Some(line) = trace.unknown_bytes {
        return Err(format!(
            "the access of line {line} has no size, and accesses with a size may share its bytes"
        ));
    }
    if !trace.open.is_empty() {
        return Err("it has loads without a value, or pairs with operations between them".into());
    }
    if trace.has_commits() {
        return Err("it has positions of stores in the order of memory".into());
    }
    let value = |location: u32, value: u64| -> Result<u64, String> {
        let initial = match &trace.locations[location as usize].initial {
            Initial::Zero => 0,
            Initial::Value(v) => *v,
            _ => return Err("the initial values are not known".into()),
        };
        Ok(if value == initial {
            0
        } else if value == 0 {
            initial
        } else {
            value
        })
    };
    let mut out = History::default();
    for f in &trace.finals {
        out.last.push((f.location, value(f.location, f.value)?));
    }
    for thread in 0..trace.threads.len() {
        let mut list = Vec::new();
        for i in trace.range(thread) {
            let o = trace.operation(i);
            let (kind, stored, read) = match o.kind {
                OperationKind::Fence(Fence::FULL) => (EventKind::Fence, 0, 0),
                OperationKind::Fence(_) => return Err("it has a fence that is not full".into()),
                OperationKind::Load => (EventKind::Read, value(o.location, o.loaded)?, 0),
                OperationKind::Store => (EventKind::Write, value(o.location, o.stored)?, 0),
                OperationKind::Update => {
                    (EventKind::Update, value(o.location, o.stored)?, value(o.location, o.loaded)?)
                }
            };
            let mark = match (o.kind, o.mark) {
                (_, Annotations::PLAIN) => HistoryMark::Plain,
                (OperationKind::Load, Annotations::ACQUIRE) => HistoryMark::Acquire,
                (OperationKind::Store, Annotations::RELEASE) => HistoryMark::Release,
                _ => return Err("it has annotations that histories do not have".into()),
            };
            let location = if kind == EventKind::Fence { 0 } else { o.location };
            list.push(Operation { read, mark, ..Operation::plain(kind, location, stored) });
        }
        out.threads.push(list);
    }
    Ok(out)
}
