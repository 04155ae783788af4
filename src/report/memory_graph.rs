//! Execution graph of a program run: labels of memory operations become events with program order,
//! reads-from, coherence and from-read.
//!
//! The labels are those of `program::model`: `read(t, x, v)`, `write(t, x, v)`,
//! `update(t, x, old, new)`, `fence(t)`, `store_fence(t)`, and `flush(t, x, v)` if a buffered store
//! reaches memory. A load reads the newest store to its cell in the buffer of its thread, otherwise
//! from memory. The order in which stores reach memory is the coherence order. Each value is
//! compared with the value of its store. If one differs (parts of a cell, labels with another
//! meaning), there is no graph. Cost: linear in the run.

use super::printed_evidence::PrintedEvidence;
use super::shorten::ShortNames;
use mu_base::narrow;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Maximum number of events in a graph; larger runs have none.
const MAX_EVENTS: usize = 60;

/// A parsed label.
struct LabelledOperation<'a> {
    name: &'a str,
    thread: usize,
    cell: &'a str,
    values: Vec<&'a str>,
}

fn operation(label: &str) -> Option<LabelledOperation<'_>> {
    let (name, arguments) = label.strip_suffix(')')?.split_once('(')?;
    let mut arguments = arguments.split(", ");
    let thread = arguments.next()?.parse().ok()?;
    let cell = arguments.next().unwrap_or("");
    let values: Vec<&str> = arguments.collect();
    let wanted = match name {
        "read" | "write" | "flush" => 1,
        "update" => 2,
        "fence" | "store_fence" => 0,
        _ => return None,
    };
    (values.len() == wanted && (wanted == 0) == cell.is_empty()).then_some(LabelledOperation {
        name,
        thread,
        cell,
        values,
    })
}

struct GraphEvent<'a> {
    thread: usize,
    cell: &'a str,
    text: String,
    /// The steps of the event.
    steps: String,
    /// The stored value, if it stores.
    written: Option<&'a str>,
    /// `Some` if it loads; inside, the event of the store, or `None` for the initial value.
    source: Option<Option<usize>>,
}

#[derive(Default)]
struct MemoryGraph<'a> {
    events: Vec<GraphEvent<'a>>,
    /// Buffered stores, by thread.
    pending: HashMap<usize, Vec<usize>>,
    /// Stores in memory in their order, by cell.
    coherence: HashMap<&'a str, Vec<usize>>,
    initial: HashMap<&'a str, &'a str>,
}

impl<'a> MemoryGraph<'a> {
    /// Returns the store that a load reads from, if the value matches. Outer `None`: the value
    /// differs.
    fn source(
        &mut self,
        thread: usize,
        cell: &'a str,
        value: &'a str,
        buffer: bool,
    ) -> Option<Option<usize>> {
        let own = self
            .pending
            .get(&thread)
            .filter(|_| buffer)
            .and_then(|p| p.iter().rfind(|&&e| self.events[e].cell == cell).copied());
        let found = own.or_else(|| self.coherence.get(cell).and_then(|list| list.last().copied()));
        let expected = match found {
            Some(event) => self.events[event].written?,
            None => self.initial.entry(cell).or_insert(value),
        };
        (expected == value).then_some(found)
    }

    fn step(&mut self, label: &'a str, number: usize, buffered: bool) -> Option<()> {
        let LabelledOperation { name, thread, cell, values } = operation(label)?;
        if name == "flush" {
            let pending = self.pending.get_mut(&thread)?;
            let at = pending.iter().position(|&e| self.events[e].cell == cell)?;
            let event = pending.remove(at);
            self.events[event].steps += &format!(", in memory by step {number}");
            self.coherence.entry(cell).or_default().push(event);
            return (self.events[event].written == values.first().copied()).then_some(());
        }
        let (text, written, source) = match values[..] {
            [value] if name == "read" => {
                (format!("R {cell}={value}"), None, Some(self.source(thread, cell, value, true)?))
            }
            [value] => (format!("W {cell}={value}"), Some(value), None),
            [old, new] => (
                format!("RMW {cell}: {old} to {new}"),
                Some(new),
                Some(self.source(thread, cell, old, false)?),
            ),
            _ => (name.replace('_', " "), None, None),
        };
        let event = self.events.len();
        self.events.push(GraphEvent {
            thread,
            cell,
            text,
            steps: format!("step {number}"),
            written,
            source,
        });
        match name {
            "write" if buffered => self.pending.entry(thread).or_default().push(event),
            "write" | "update" => self.coherence.entry(cell).or_default().push(event),
            _ => {}
        }
        Some(())
    }

    fn edges(&self) -> Vec<(usize, &'static str, usize)> {
        let mut out = Vec::new();
        for (a, event) in self.events.iter().enumerate() {
            out.extend(
                (a + 1..self.events.len())
                    .find(|&b| self.events[b].thread == event.thread)
                    .map(|b| (a, "po", b)),
            );
            let Some(source) = event.source else { continue };
            out.extend(source.map(|s| (s, "rf", a)));
            let list = self.coherence.get(event.cell).map_or(&[][..], Vec::as_slice);
            // A store that never reaches memory has no place in the coherence order.
            let next = source.map_or(Some(0), |s| list.iter().position(|&e| e == s).map(|i| i + 1));
            out.extend(next.and_then(|n| list.get(n)).filter(|&&b| b != a).map(|&b| (a, "fr", b)));
        }
        for list in self.coherence.values() {
            out.extend(list.windows(2).map(|w| (w[0], "co", w[1])));
        }
        out.sort_unstable();
        out
    }
}

/// Returns the graph of a path with memory operations as labels; its format is `graph` of
/// docs/schema/check.json. `buffered`: true if stores go through buffers. `None`: the evidence
/// branches, some label is not a memory operation, a value differs, or there are too many events.
pub fn graph(story: &PrintedEvidence, buffered: bool) -> Option<Value> {
    let mut memory = MemoryGraph::default();
    for (n, step) in story.steps.iter().enumerate().filter(|(_, s)| s.action != "tau") {
        memory.step(&step.action, n + 1, buffered)?;
    }
    if !story.linear || !may_be_drawn(memory.events.len()) {
        return None;
    }
    let threads = memory.events.iter().map(|e| e.thread).max().map_or(0, |t| t + 1);
    let names: Vec<String> = (0..threads).map(|t| format!("T{t}")).collect();
    let edges: Vec<_> = memory
        .edges()
        .into_iter()
        .map(|(from, relation, to)| (from, relation, to, false))
        .collect();
    let boxed = |e: GraphEvent| OperationBox {
        thread: e.thread,
        text: e.text,
        code: e.steps,
        reads_initial: e.source == Some(None),
    };
    Some(graph_json(
        &names,
        &memory.events.into_iter().map(boxed).collect::<Vec<_>>(),
        &edges,
        &ShortNames::default(),
    ))
}

/// A memory operation for a graph.
pub struct OperationBox {
    /// The thread.
    pub thread: usize,
    /// The operation.
    pub text: String,
    /// The steps of the operation.
    pub code: String,
    /// True if it reads the initial value.
    pub reads_initial: bool,
}

/// Returns the name of the `i`-th event: a, b, …, z, e27, …
pub fn event_name(i: usize) -> String {
    if i < 26 { char::from(b'a' + narrow::byte(i)).to_string() } else { format!("e{}", i + 1) }
}

/// Returns the graph of events and arrows (from, relation, to, true if forbidden), as an object
/// with shortened constants.
pub fn graph_json(
    threads: &[String],
    events: &[OperationBox],
    edges: &[(usize, &str, usize, bool)],
    short: &ShortNames,
) -> Value {
    let event = |(i, e): (usize, &OperationBox)| json!({ "name": event_name(i), "thread": e.thread, "text": short.text(&e.text), "code": e.code, "reads_initial": e.reads_initial });
    let edge = |&(from, relation, to, forbids): &(usize, &str, usize, bool)| json!({ "from": from, "to": to, "relation": relation, "forbids": forbids });
    json!({
        "title": "Memory operations of the run",
        "threads": threads.iter().map(|t| short.text(t)).collect::<Vec<_>>(),
        "events": events.iter().enumerate().map(event).collect::<Vec<_>>(),
        "edges": edges.iter().map(edge).collect::<Vec<_>>(),
    })
}

/// True if a graph with this number of events can be drawn.
pub fn may_be_drawn(events: usize) -> bool {
    (1..=MAX_EVENTS).contains(&events)
}

#[cfg(test)]
mod tests {
    use super::super::printed_evidence::PrintedStep;
    use super::*;

    fn of(labels: &[&str], buffered: bool) -> Option<Vec<String>> {
        let step = |(i, action): (usize, &&str)| PrintedStep {
            from: i as u32,
            to: i as u32 + 1,
            action: action.to_string(),
            parts: Vec::new(),
            changed: Vec::new(),
            meaning: Vec::new(),
            state: None,
            at_once: false,
        };
        let story = PrintedEvidence {
            verdict: false,
            components: Vec::new(),
            parameters: Vec::new(),
            initial: Vec::new(),
            steps: labels.iter().enumerate().map(step).collect(),
            omitted_steps: 0,
            linear: true,
            path: 0,
            back_to: None,
            ending: None,
            of_formula: false,
            values: Vec::new(),
        };
        let graph = graph(&story, buffered)?;
        let name = |e: &Value| {
            graph["events"][e.as_u64().unwrap() as usize]["name"].as_str().unwrap().to_string()
        };
        let edge = |e: &Value| {
            format!("{} {} {}", name(&e["from"]), e["relation"].as_str().unwrap(), name(&e["to"]))
        };
        Some(graph["edges"].as_array().unwrap().iter().map(edge).collect())
    }

    #[test]
    fn buffers() {
        // The first thread reads its own store from its buffer; the store of the second thread
        // reaches memory before it.
        let run = [
            "write(0, x, 1)",
            "tau",
            "read(0, x, 1)",
            "write(1, x, 2)",
            "flush(1, x, 2)",
            "read(1, x, 2)",
            "flush(0, x, 1)",
            "read(1, x, 1)",
        ];
        assert_eq!(
            of(&run, true).unwrap(),
            ["a po b", "a rf b", "a rf e", "c co a", "c po d", "c rf d", "d fr a", "d po e"]
        );
        let direct = ["write(0, x, 1)", "read(1, x, 1)", "read(1, y, 0)", "write(0, y, 1)"];
        assert_eq!(of(&direct, false).unwrap(), ["a po d", "a rf b", "b po c", "c fr d"]);
    }

    #[test]
    fn locked_instructions_and_fences() {
        let run = ["update(0, x, 0, 1)", "fence(0)", "update(1, x, 1, 2)", "read(0, x, 2)"];
        assert_eq!(of(&run, true).unwrap(), ["a co c", "a po b", "a rf c", "b po d", "c rf d"]);
    }

    #[test]
    fn what_does_not_fit_has_no_graph() {
        for run in [
            &["read(1, x, 0)", "write(0, x, 1)", "read(1, x, 1)"][..],
            &["read(0, x, 0)", "read(1, x, 3)"],
            &["flush(0, x, 1)"],
            &["write(0, x, 1)", "flush(0, x, 2)"],
            &["update(0, x, 0, 1)", "update(1, x, 0, 1)"],
            &["enter(1)"],
            &["write(core, x, 1)"],
            &["tau"],
        ] {
            assert_eq!(of(run, true), None, "{run:?}");
        }
    }
}
