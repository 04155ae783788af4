//! Logs of memory operations: the run of a machine, by an interface -> a table or JSON lines that
//! `trace` reads.
//!
//! The lines are in the order in which operations begin, for each processor in program order.
//! Loads and updates without a value are omitted, because the run ends before them; so are stores
//! without a value. Values are numbers in a log: if the machine has other ones, they are numbered,
//! the initial value is 0, and the column `comment` has the machine's values.

use mu_axioms::EventKind;
use mu_axioms::models::MemoryOrdering;
use mu_base::{Diagnostic, Stage};
use mu_conform::interface::Interface;
use mu_conform::operations::{Operation, Run};
use mu_report::printed_evidence::PrintedEvidence;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Form of a log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogForm {
    /// A table with named columns (`.csv`).
    Table,
    /// A JSON object for each operation (`.jsonl`).
    JsonLines,
}

impl LogForm {
    /// Returns the form of a file by its name.
    pub(crate) fn of(path: &Path) -> Option<LogForm> {
        match mu_base::file_extension(path).as_deref() {
            Some("csv") => Some(LogForm::Table),
            Some("jsonl") => Some(LogForm::JsonLines),
            _ => None,
        }
    }
}

/// Columns of a log.
const COLUMNS: [&str; 9] =
    ["thread", "operation", "address", "value", "stored", "fence", "acquire", "release", "comment"];

/// Returns the memory operations of a run as a log.
///
/// # Errors
/// There is no interface, the evidence is no path, or it has no memory operation.
pub(crate) fn text(
    interface: Option<&Interface>,
    story: &PrintedEvidence,
    form: LogForm,
) -> Result<String, Diagnostic> {
    let usage = |message: &str, note: &str| Diagnostic::new(Stage::Usage, message).note(note);
    let Some(interface) = interface else {
        let note = "expected `--interface FILE`, which says which labels are memory operations";
        return Err(usage("a log of memory operations needs an interface", note));
    };
    if !story.linear {
        let note = "expected `.json` or `.svg`, which show evidence with branches";
        return Err(usage("only a path has a log of memory operations", note));
    }
    let run = run_of(interface, story);
    let lines = records(interface, &run);
    if lines.is_empty() {
        let note = "the interface matches none of its labels";
        return Err(usage("the path has no complete memory operation", note));
    }
    Ok(match form {
        LogForm::JsonLines => {
            lines.into_iter().map(|line| format!("{}\n", Value::Object(line))).collect()
        }
        LogForm::Table => {
            let used = |c: &&str| lines.iter().any(|line| line.contains_key(*c));
            let columns: Vec<&str> = COLUMNS.into_iter().filter(used).collect();
            let cell = |line: &Map<String, Value>, column: &str| match line.get(column) {
                None => String::new(),
                Some(Value::String(text)) if text.contains([',', ' ']) => format!("\"{text}\""),
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
            };
            let row = |line: &Map<String, Value>| {
                let cells: Vec<String> = columns.iter().map(|c| cell(line, c)).collect();
                format!("{}\n", cells.join(","))
            };
            format!("{}\n{}", columns.join(","), lines.iter().map(row).collect::<String>())
        }
    })
}

/// Reads the memory operations of a path.
pub(crate) fn run_of(interface: &Interface, story: &PrintedEvidence) -> Run {
    let steps: Vec<Vec<(&str, Vec<&str>)>> = story
        .steps
        .iter()
        .map(|s| {
            let parts = s.parts.iter();
            parts.map(|p| (p.name.as_str(), p.args.iter().map(String::as_str).collect())).collect()
        })
        .collect();
    Run::of(interface, &steps)
}

/// Returns the complete operations of a run as objects.
fn records(interface: &Interface, run: &Run) -> Vec<Map<String, Value>> {
    let is_complete = |o: &&Operation| match o.kind {
        EventKind::Fence => true,
        EventKind::Update => o.address.is_some() && o.value.is_some() && o.written.is_some(),
        EventKind::Read | EventKind::Write => o.address.is_some() && o.value.is_some(),
        _ => false,
    };
    let all: Vec<&Operation> = in_program_order(run).into_iter().filter(is_complete).collect();
    let initial = interface.initial.text.as_str();
    let mut values = vec![initial];
    for value in all.iter().flat_map(|o| [&o.value, &o.written]).flatten() {
        if !values.contains(&value.as_str()) {
            values.push(value);
        }
    }
    let are_numbers = values.iter().all(|v| v.parse::<u64>().is_ok());
    let number = |value: &str| match value.parse::<u64>() {
        Ok(number) if are_numbers => json!(number),
        _ => json!(values.iter().position(|v| *v == value)),
    };
    let mut out = Vec::new();
    if are_numbers && initial != "0" {
        let mut addresses: Vec<&str> = all.iter().filter_map(|o| o.address.as_deref()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        for address in addresses {
            out.push(object(vec![
                ("operation", json!("initial")),
                ("address", json!(plain(address))),
                ("value", number(initial)),
            ]));
        }
    }
    for o in all {
        let mut line = vec![("thread", json!(plain(&o.processor)))];
        if o.kind == EventKind::Fence {
            line.push(("operation", json!("fence")));
            let kind = match o.mark {
                MemoryOrdering::Between(before, after) => {
                    format!("{},{}", before.letters(), after.letters())
                }
                MemoryOrdering::Acquire => "acquire".to_string(),
                MemoryOrdering::Release => "release".to_string(),
                MemoryOrdering::AcquireRelease => "tso".to_string(),
                MemoryOrdering::Plain => "full".to_string(),
            };
            line.push(("fence", json!(kind)));
            out.push(object(line));
            continue;
        }
        let (address, value) = (o.address.as_deref().unwrap_or(""), o.value.as_deref());
        let value = value.unwrap_or("");
        line.push((
            "operation",
            json!(match o.kind {
                EventKind::Read => "load",
                EventKind::Write => "store",
                _ => "update",
            }),
        ));
        line.push(("address", json!(plain(address))));
        line.push(("value", number(value)));
        let mut comment = plain(value);
        if let Some(written) = o.written.as_deref().filter(|_| o.kind == EventKind::Update) {
            line.push(("stored", number(written)));
            comment = format!("{comment} to {}", plain(written));
        }
        if matches!(o.mark, MemoryOrdering::Acquire | MemoryOrdering::AcquireRelease) {
            line.push(("acquire", json!(true)));
        }
        if matches!(o.mark, MemoryOrdering::Release | MemoryOrdering::AcquireRelease) {
            line.push(("release", json!(true)));
        }
        if !are_numbers {
            line.push(("comment", json!(comment)));
        }
        out.push(object(line));
    }
    out
}

/// Returns the operations in the order in which they begin, those of a processor in program order.
fn in_program_order(run: &Run) -> Vec<&Operation> {
    let mut threads: Vec<Vec<&Operation>> = Vec::new();
    for processor in &run.processors {
        let mut own: Vec<&Operation> =
            run.operations.iter().filter(|o| o.processor == *processor).collect();
        let number = |o: &&Operation| o.number.as_ref().and_then(|n| n.parse::<u64>().ok());
        if own.iter().all(|o| number(o).is_some()) {
            own.sort_by_key(number);
        }
        own.reverse();
        threads.push(own);
    }
    // The operation that begins first, of those that are next in their threads.
    let mut out = Vec::with_capacity(run.operations.len());
    while let Some(thread) = threads
        .iter_mut()
        .filter(|t| !t.is_empty())
        .min_by_key(|t| t.last().map_or(usize::MAX, |o| o.steps.0))
    {
        out.extend(thread.pop());
    }
    out
}

fn object(fields: Vec<(&str, Value)>) -> Map<String, Value> {
    fields.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

/// Returns a name without characters that need an escape.
fn plain(name: &str) -> String {
    name.replace(['"', '\\'], "'")
}
