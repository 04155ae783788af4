//! Pictures of forbidden traces: threads as lanes, the forbidden cycle in red.

use super::results::{Results, ShownConflict, TraceResult};
use crate::output;
use crate::output::page;
use crate::pipeline::Session;
use crate::pipeline::files::{unknown_evidence_extension, write_text};
use mu_axioms::cat::ViolatedAxiom;
use mu_axioms::{Event, EventKind};
use mu_base::{Diagnostic, Span, narrow};
use mu_litmus::report::DecidingExecution;
use mu_report::execution_graph;
use mu_report::page::PageResult;
use mu_traces::OperationKind;
use serde_json::{Value, json};
use std::path::Path;

/// Format of a picture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PictureFormat {
    Svg,
    Dot,
    Json,
    Page,
}

impl PictureFormat {
    pub(super) fn of(path: &Path) -> Result<Self, Diagnostic> {
        match mu_base::file_extension(path).as_deref() {
            Some("svg") => Ok(PictureFormat::Svg),
            Some("dot") => Ok(PictureFormat::Dot),
            Some("json") => Ok(PictureFormat::Json),
            Some("html") => Ok(PictureFormat::Page),
            _ => Err(unknown_evidence_extension(path, ".svg, .dot, .json or .html")),
        }
    }
}

/// Returns the name of a location; numbers are addresses.
fn location(o: &super::results::ShownOperation) -> String {
    match o.location.parse::<u64>() {
        Ok(number) => format!("M[{number}]"),
        Err(_) => o.location.clone(),
    }
}

/// Returns the conflict as a graph (docs/schema/litmus.json), with the lines of the log.
fn graph(shown: &ShownConflict, model: &str, title: &str) -> Value {
    let mut graph = execution_graph::json(&execution(shown, model), title);
    // All events have threads, so their order is that of the operations.
    for (i, operation) in shown.operations.iter().enumerate() {
        graph["events"][i]["code"] = json!(line(operation));
    }
    graph
}

/// Returns the conflict as an execution of a litmus test.
fn execution(shown: &ShownConflict, model: &str) -> DecidingExecution {
    let mut threads: Vec<usize> = shown.operations.iter().map(|o| o.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let name = |t: &usize| {
        let first = shown.operations.iter().find(|o| o.thread == *t);
        first.map_or_else(String::new, |o| format!("thread {}", o.thread_name))
    };
    let event = |o: &super::results::ShownOperation| Event {
        thread: threads.binary_search(&o.thread).ok().map(|t| narrow::index(t)),
        index: narrow::index(o.index),
        kind: match o.operation.kind {
            OperationKind::Load => EventKind::Read,
            OperationKind::Store => EventKind::Write,
            OperationKind::Update => EventKind::Update,
            OperationKind::Fence(_) => EventKind::Fence,
        },
        location: (!o.location.is_empty()).then_some(o.operation.location),
        width: o.operation.size,
        value: if o.operation.kind == OperationKind::Load {
            o.operation.loaded
        } else {
            o.operation.stored
        },
    };
    let failure = ViolatedAxiom {
        axiom: model.to_string(),
        span: Span::default(),
        kind: None,
        events: shown.cycle.iter().map(|e| e.from).collect(),
        edges: shown.cycle.iter().map(|e| e.relation.to_string()).collect(),
    };
    DecidingExecution {
        events: shown.operations.iter().map(event).collect(),
        texts: shown.operations.iter().map(line).collect(),
        locations: shown.operations.iter().map(location).collect(),
        threads: threads.iter().map(name).collect(),
        relations: vec![("rf".to_string(), sources(shown))],
        undrawn_relations: Vec::new(),
        allowed: false,
        failure: Some(failure),
        outcome: shown.message.clone(),
    }
}

/// Returns the text below an operation: its line, and what its box does not show.
fn line(o: &super::results::ShownOperation) -> String {
    match o.operation.kind {
        OperationKind::Update => format!("line {}, loads {}", o.line, o.operation.loaded),
        OperationKind::Fence(_) => format!("line {}: {}", o.line, o.text),
        _ => format!("line {}", o.line),
    }
}

/// Returns the sources of the loads of a conflict, except for those that the cycle shows: pairs of
/// a store and a load.
fn sources(shown: &ShownConflict) -> Vec<(usize, usize)> {
    let all = &shown.operations;
    let is_shown = |store: usize, load: usize| {
        shown.cycle.iter().any(|e| e.relation == "reads from" && (e.from, e.to) == (store, load))
    };
    let mut out = Vec::new();
    for (load, l) in all.iter().enumerate().filter(|o| o.1.operation.kind.loads()) {
        let is_source = |s: &super::results::ShownOperation| {
            s.operation.kind.stores()
                && s.location == l.location
                && s.operation.stored == l.operation.loaded
        };
        let mut stores = (0..all.len()).filter(|s| *s != load && is_source(&all[*s]));
        // A value that is stored twice has no certain source.
        if let (Some(store), None) = (stores.next(), stores.next())
            && !is_shown(store, load)
        {
            out.push((store, load));
        }
    }
    out
}

/// Writes the picture of the first forbidden trace, or the page of all traces.
pub(super) fn write(session: &Session, path: &Path, results: &Results) -> Result<(), Diagnostic> {
    let form = PictureFormat::of(path)?;
    if form == PictureFormat::Page {
        let object = output::with_head(page_object(results, session));
        return page::write(session, path, "Traces", &[PageResult::of("litmus", object)]);
    }
    let first = results.traces.iter().find_map(|t| {
        let at = t.answers.iter().position(|a| a.shown.is_some())?;
        Some((t, at, t.answers[at].shown.as_ref()?))
    });
    let Some((trace, model, shown)) = first else {
        eprintln!("{}: no trace is forbidden: nothing is written", path.display());
        return Ok(());
    };
    let drawn = execution(shown, &results.models[model]);
    let title = title(trace);
    let picture = match form {
        PictureFormat::Svg => execution_graph::svg(&drawn, &title),
        PictureFormat::Dot => execution_graph::dot(&drawn, &title),
        PictureFormat::Json | PictureFormat::Page => {
            graph(shown, &results.models[model], &title).to_string()
        }
    };
    write_text(path, &picture)?;
    session.log(format!("wrote {}: {} operations", path.display(), drawn.events.len()));
    Ok(())
}

fn title(trace: &TraceResult) -> String {
    format!("{}: {}", trace.file, trace.name)
}

/// Returns the answers in the form of litmus tests, which pages show: one for each trace and model.
fn page_object(results: &Results, session: &Session) -> Value {
    let mut tests = Vec::new();
    let (mut ok, mut no, mut unknown) = (0, 0, 0);
    for trace in &results.traces {
        for (model, answer) in results.models.iter().zip(&trace.answers) {
            let (verdict, word) = match answer.truth {
                Some(true) => ("true", "allowed"),
                Some(false) => ("false", "forbidden"),
                None => ("unknown", "unknown"),
            };
            match answer.truth {
                Some(true) => ok += 1,
                Some(false) => no += 1,
                None => unknown += 1,
            }
            let mut test = json!({
                "file": trace.file,
                "name": format!("{} under {model}", trace.name),
                "condition": format!(
                    "{} operations of {} threads",
                    trace.operations, trace.threads
                ),
                "verdict": verdict,
                "herd": word,
                "states": [],
                "stop": answer.stop.as_ref().map_or("complete", |s| s.word()),
            });
            if let Some(reason) = &answer.reason {
                test["observation"] = json!(reason);
            }
            if let Some(shown) = &answer.shown {
                test["execution"] = graph(shown, model, &title(trace));
            }
            if let Some(Ok(text)) = answer.part.as_ref().map(|p| &p.test) {
                test["text"] = json!(text);
            }
            tests.push(test);
        }
    }
    json!({
        "subject": "Traces",
        "model": results.models.join(", "),
        "tests": tests,
        "summary": {
            "tests": tests.len(),
            "ok": ok,
            "no": no,
            "unknown": unknown,
            "refused": 0,
        },
        "seconds": session.budget.elapsed().as_secs_f64(),
    })
}
