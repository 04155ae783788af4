//! Answers of `trace`, as text and as JSON.

use super::against::Against;
use super::part::LitmusPart;
use crate::args::TraceArgs;
use crate::output::answers::{self, Report};
use crate::pipeline::Session;
use mu_base::limits::peak_resident_bytes;
use mu_base::{Budget, Diagnostic, SourceMap, Stop};
use mu_traces::{Conflict, OrderEdge, Reason, Trace, Witness, WitnessStep};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An operation of a trace, as it is shown.
#[derive(Clone, Debug)]
pub(super) struct ShownOperation {
    /// Number of its thread, and its name.
    pub thread: usize,
    pub thread_name: String,
    /// Position in program order.
    pub index: usize,
    /// Text without the thread.
    pub text: String,
    /// Line of the log.
    pub line: u32,
    pub operation: mu_traces::Operation,
    /// Name of its location; empty for a fence.
    pub location: String,
}

impl ShownOperation {
    fn new(trace: &Trace, i: u32) -> Self {
        let i = i as usize;
        let thread = trace.thread(i);
        let operation = trace.operation(i);
        let is_fence = matches!(operation.kind, mu_traces::OperationKind::Fence(_));
        let name = trace.locations.get(operation.location as usize).map(|l| l.name.clone());
        Self {
            thread,
            thread_name: trace.threads[thread].clone(),
            index: i - trace.range(thread).start,
            text: trace.text(i),
            line: trace.line(i),
            operation,
            location: name.filter(|_| !is_fence).unwrap_or_default(),
        }
    }
    fn json(&self) -> Value {
        json!({ "thread": self.thread_name, "operation": self.text, "line": self.line })
    }
}

/// A conflict, as it is shown.
#[derive(Clone, Debug)]
pub(super) struct ShownConflict {
    pub message: String,
    /// The operations of the conflict, by thread and program order.
    pub operations: Vec<ShownOperation>,
    /// The cycle.
    pub cycle: Vec<ShownEdge>,
    /// Required final values of the conflict: text and line.
    pub finals: Vec<(String, u32)>,
}

/// Edge of a cycle; operations are positions in [`ShownConflict::operations`].
#[derive(Clone, Debug)]
pub(super) struct ShownEdge {
    pub from: usize,
    pub relation: &'static str,
    pub to: usize,
    /// The fence of the edge.
    pub fence: Option<usize>,
    /// Further operations that imply the edge.
    pub because: Vec<usize>,
}

impl ShownConflict {
    pub(super) fn new(trace: &Trace, conflict: &Conflict) -> Self {
        let simplified = conflict.simplify(trace);
        let all = &conflict.operations;
        let at = |i: u32| all.binary_search(&i).expect("each operation of an edge is listed");
        let edge = |e: &OrderEdge| ShownEdge {
            from: at(e.from),
            relation: e.reason.name(),
            to: at(e.to),
            fence: match e.reason {
                Reason::Fence(fence) => Some(at(fence)),
                _ => None,
            },
            because: e.because.iter().map(|i| at(*i)).collect(),
        };
        let last = |f: &usize| {
            let f = &trace.finals[*f];
            let name = &trace.locations[f.location as usize].name;
            (format!("final M[{name}] == {}", f.value), f.line)
        };
        Self {
            message: conflict.message.clone(),
            operations: all.iter().map(|&i| ShownOperation::new(&simplified, i)).collect(),
            cycle: conflict.cycle.iter().map(edge).collect(),
            finals: conflict.finals.iter().map(last).collect(),
        }
    }
    fn json(&self) -> Value {
        let edge = |e: &ShownEdge| {
            let mut out = json!({ "from": e.from, "to": e.to, "relation": e.relation });
            if !e.because.is_empty() {
                out["because"] = json!(e.because);
            }
            out
        };
        let last = |(text, line): &(String, u32)| json!({ "final": text, "line": line });
        let mut out = json!({
            "message": self.message,
            "operations": self.operations.iter().map(ShownOperation::json).collect::<Vec<_>>(),
            "cycle": self.cycle.iter().map(edge).collect::<Vec<_>>(),
        });
        if !self.finals.is_empty() {
            out["finals"] = self.finals.iter().map(last).collect();
        }
        out
    }
    /// Returns the conflict in lines.
    fn text(&self) -> String {
        let mut out = format!("  {}\n", self.message);
        let width = self.operations.iter().map(|o| o.line).chain(self.finals.iter().map(|f| f.1));
        let width = width.map(digits).max().unwrap_or(1);
        let mut line = |o: &ShownOperation, arrow: &str| {
            let _ = writeln!(out, "  line {:width$}  {}: {}{arrow}", o.line, o.thread_name, o.text);
        };
        let mut on_cycle = vec![false; self.operations.len()];
        for edge in &self.cycle {
            on_cycle[edge.from] = true;
            let because: Vec<u32> = edge.because.iter().map(|i| self.operations[*i].line).collect();
            let because = match &because[..] {
                [] => String::new(),
                [one] => format!(", because of line {one}"),
                several => {
                    let words: Vec<String> = several.iter().map(u32::to_string).collect();
                    format!(", because of lines {}", words.join(", "))
                }
            };
            let mut of = String::new();
            if let Some(fence) = edge.fence {
                on_cycle[fence] = true;
                of = format!(" of line {}", self.operations[fence].line);
            }
            line(&self.operations[edge.from], &format!("   —{}{of}{because}→", edge.relation));
        }
        if let Some(edge) = self.cycle.last() {
            line(&self.operations[edge.to], "");
        }
        // The premises of the cycle, and the sources of its loads.
        let others: Vec<&ShownOperation> =
            (self.operations.iter().zip(&on_cycle)).filter(|o| !o.1).map(|o| o.0).collect();
        let is_explained = others.is_empty() && self.finals.is_empty();
        if !self.cycle.is_empty() && !is_explained {
            out.push_str("  with\n");
        }
        for o in others {
            let _ = writeln!(out, "  line {:width$}  {}: {}", o.line, o.thread_name, o.text);
        }
        for (text, line) in &self.finals {
            let _ = writeln!(out, "  line {line:width$}  {text}");
        }
        out
    }
}

/// Returns the error of a skipped line; its place is that of the line.
fn skipped_json(error: &Diagnostic) -> Value {
    let error = Diagnostic { span: None, related: Vec::new(), ..error.clone() };
    crate::output::error_as_json(&error, &SourceMap::new())
}

fn digits(n: u32) -> usize {
    n.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Answer of one model for one trace.
#[derive(Clone, Debug, Default)]
pub(super) struct TraceAnswer {
    /// True if the model allows the trace; `None` if the answer is unknown.
    pub truth: Option<bool>,
    /// Reason for *unknown*, and the limit.
    pub reason: Option<String>,
    pub stop: Option<Stop>,
    /// Conflict of a forbidden trace.
    pub shown: Option<ShownConflict>,
    /// Its minimal part as a litmus test.
    pub part: Option<LitmusPart>,
    /// Order of the operations of an allowed trace.
    pub order: Option<Vec<String>>,
}

/// Answers for one trace.
#[derive(Clone, Debug)]
pub(super) struct TraceResult {
    pub file: String,
    pub name: String,
    pub operations: usize,
    pub threads: usize,
    /// One for each model.
    pub answers: Vec<TraceAnswer>,
}

impl TraceResult {
    /// Creates the result of a trace without answers.
    pub(super) fn of(trace: &Trace) -> Self {
        Self {
            file: trace.file.clone(),
            name: trace.title(),
            operations: trace.len(),
            threads: trace.threads.len(),
            answers: Vec::new(),
        }
    }
}

/// Returns the word of a verdict in JSON.
fn word(truth: Option<bool>) -> &'static str {
    match truth {
        Some(true) => "true",
        Some(false) => "false",
        None => "unknown",
    }
}

/// Returns the word of a verdict in text.
fn verb(truth: Option<bool>) -> &'static str {
    match truth {
        Some(true) => "allowed",
        Some(false) => "forbidden",
        None => "unknown",
    }
}

/// Answers of a run.
#[derive(Clone, Debug)]
pub(super) struct Results {
    pub models: Vec<String>,
    summaries: Vec<String>,
    /// True if the models were requested: each must allow a trace. Otherwise one suffices.
    against: bool,
    explain: bool,
    pub wants_witness: bool,
    pub traces: Vec<TraceResult>,
    /// Errors of skipped lines.
    pub skipped: Vec<Diagnostic>,
    /// The limit that ended the run.
    pub stop: Stop,
}

/// Returns the order of all operations that a witness gives, a line each.
pub(super) fn order(trace: &Trace, witness: &Witness) -> Vec<String> {
    let text = |i: u32| {
        let i = i as usize;
        format!("{}: {}", trace.threads[trace.thread(i)], trace.text(i))
    };
    match witness {
        Witness::Run(steps) => steps
            .iter()
            .map(|step| match step {
                WitnessStep::Perform(i) => text(*i),
                WitnessStep::Reach(i) => format!("{} reaches memory", text(*i)),
            })
            .collect(),
        Witness::Order { operations, coherence, .. } => {
            let mut lines: Vec<String> = operations.iter().map(|i| text(*i)).collect();
            coherent(trace, coherence, &text, &mut lines);
            lines
        }
        Witness::Execution { reads_from, coherence } => {
            let mut lines = Vec::new();
            for (load, store) in reads_from {
                let source = store.map_or("the initial value".to_string(), text);
                lines.push(format!("{} reads from {source}", text(*load)));
            }
            coherent(trace, coherence, &text, &mut lines);
            lines
        }
    }
}

/// Adds the coherence orders of all locations.
fn coherent(
    trace: &Trace,
    coherence: &[Vec<u32>],
    text: &dyn Fn(u32) -> String,
    lines: &mut Vec<String>,
) {
    for (location, stores) in coherence.iter().enumerate() {
        let name = trace.locations.get(location).map_or("", |l| l.name.as_str());
        for pair in stores.windows(2) {
            lines.push(format!(
                "{} before {} in the coherence order of {name}",
                text(pair[0]),
                text(pair[1])
            ));
        }
    }
}

/// The answers so far: the report of the run.
pub(super) struct TraceReport {
    results: Mutex<Results>,
    is_quiet: bool,
    budget: Budget,
}

impl TraceReport {
    /// Creates and registers a report without answers.
    pub(super) fn register(session: &Session, args: &TraceArgs, models: &[Against]) -> Arc<Self> {
        let report = Arc::new(Self {
            results: Mutex::new(Results::new(args, models)),
            is_quiet: session.common.quiet,
            budget: session.budget.clone(),
        });
        answers::set(report.clone());
        report
    }
    /// Returns the answers so far. The output waits for them, so nothing is printed or written
    /// while the guard lives.
    pub(super) fn lock(&self) -> MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Adds a trace in which all answers are open. Returns its number.
    pub(super) fn begin(&self, mut trace: TraceResult) -> usize {
        let mut results = self.lock();
        trace.answers.resize_with(results.models.len(), TraceAnswer::default);
        results.traces.push(trace);
        results.traces.len() - 1
    }
    /// Sets the answer of a model for a trace.
    pub(super) fn set(&self, trace: usize, model: usize, answer: TraceAnswer) {
        self.lock().traces[trace].answers[model] = answer;
    }
}

impl Report for TraceReport {
    fn object(&self, stop: Option<&Stop>) -> Value {
        self.results_after(stop).json(&self.budget)
    }
    fn text(&self, stop: Option<&Stop>) -> String {
        self.results_after(stop).text(self.is_quiet)
    }
    fn code(&self, stop: Option<&Stop>) -> u8 {
        self.results_after(stop).exit_code()
    }
    fn is_complete(&self) -> bool {
        true
    }
}

impl TraceReport {
    /// Returns the answers after a limit: open ones have it as the reason.
    fn results_after(&self, stop: Option<&Stop>) -> MutexGuard<'_, Results> {
        let mut results = self.lock();
        if let Some(stop) = stop {
            results.stop = stop.clone();
            for answer in results.traces.iter_mut().flat_map(|t| &mut t.answers) {
                if answer.truth.is_none() && answer.reason.is_none() {
                    answer.reason = Some(answers::open_reason(Some(stop)));
                    answer.stop = Some(stop.clone());
                }
            }
        }
        results
    }
}

impl Results {
    pub(super) fn new(args: &TraceArgs, models: &[Against]) -> Self {
        let machine = args.machine.as_ref().map(|m| m.display().to_string());
        let names = models.iter().map(|m| m.name.clone());
        Self {
            summaries: models.iter().map(|m| m.summary.clone()).collect(),
            against: !args.against.is_empty() || machine.is_some(),
            models: names.chain(machine).collect(),
            explain: args.explain,
            wants_witness: args.witness,
            traces: Vec::new(),
            skipped: Vec::new(),
            stop: Stop::Complete,
        }
    }
    /// Returns the verdict of a trace over all models.
    fn verdict(&self, trace: &TraceResult) -> Option<bool> {
        let has = |truth| trace.answers.iter().any(|a| a.truth == truth);
        match self.against {
            true if has(Some(false)) => Some(false),
            true if has(None) => None,
            true => Some(true),
            false if has(Some(true)) => Some(true),
            false if has(None) => None,
            false => Some(false),
        }
    }
    /// Returns the exit code.
    pub(super) fn exit_code(&self) -> u8 {
        let verdicts: Vec<Option<bool>> = self.traces.iter().map(|t| self.verdict(t)).collect();
        if verdicts.contains(&Some(false)) {
            1
        } else if verdicts.contains(&None) || self.stop != Stop::Complete {
            3
        } else {
            0
        }
    }
    /// Returns the number of traces with each verdict of a model: allowed, forbidden, unknown.
    fn counts(&self, model: usize) -> [usize; 3] {
        let count = |truth| self.traces.iter().filter(|t| t.answers[model].truth == truth).count();
        [count(Some(true)), count(Some(false)), count(None)]
    }
    /// Returns the result as an object (docs/schema/trace.json).
    fn json(&self, budget: &Budget) -> Value {
        let answer = |(model, a): (&String, &TraceAnswer)| {
            let mut out = json!({ "model": model, "verdict": word(a.truth) });
            if let Some(reason) = &a.reason {
                out["reason"] = json!(reason);
            }
            if let Some(stop) = a.stop.as_ref().filter(|s| **s != Stop::Complete) {
                out["stop"] = json!(stop.word());
            }
            if let Some(shown) = a.shown.as_ref().filter(|_| self.explain) {
                out["conflict"] = shown.json();
            }
            if let Some(order) = &a.order {
                out["order"] = json!(order);
            }
            if let Some(part) = &a.part {
                out["litmus"] = part.json();
            }
            out
        };
        let traces: Vec<Value> = (self.traces.iter())
            .map(|t| {
                json!({
                    "file": t.file,
                    "name": t.name,
                    "verdict": word(self.verdict(t)),
                    "operations": t.operations,
                    "threads": t.threads,
                    "models": self.models.iter().zip(&t.answers).map(answer).collect::<Vec<_>>(),
                })
            })
            .collect();
        let models: Vec<Value> = (0..self.models.len())
            .map(|m| {
                let [allowed, forbidden, unknown] = self.counts(m);
                json!({
                    "model": self.models[m],
                    "allowed": allowed,
                    "forbidden": forbidden,
                    "unknown": unknown,
                })
            })
            .collect();
        let skipped: Vec<Value> = (self.skipped.iter()).map(skipped_json).collect();
        json!({
            "traces": traces,
            "models": models,
            "skipped": skipped,
            "stop": self.stop.word(),
            "seconds": budget.elapsed().as_secs_f64(),
            "peak_memory_bytes": peak_resident_bytes(),
        })
    }

    fn text(&self, is_quiet: bool) -> String {
        let mut out = String::new();
        let single = self.traces.len() == 1;
        let table = !self.against || (self.models.len() > 1 && !single);
        for trace in &self.traces {
            let quiet = is_quiet && !single;
            if quiet || (table && !self.explain && !self.wants_witness && !single) {
                break;
            }
            let verdict = self.verdict(trace);
            if !(single || self.explain || self.wants_witness || verdict != Some(true)) {
                continue;
            }
            let size = format!(
                "{} operations of {} threads",
                crate::output::progress::group_digits(trace.operations as u64),
                trace.threads
            );
            if !is_quiet {
                let _ = writeln!(out, "{}: {}: {size}", trace.file, trace.name);
            }
            if single && !self.against {
                continue;
            }
            for (model, answer) in self.models.iter().zip(&trace.answers) {
                let _ = writeln!(out, "{model}: {}", verb(answer.truth));
                self.details(answer, single, &mut out);
            }
        }
        if table {
            self.table(single, &mut out);
        } else if !single {
            for (m, model) in self.models.iter().enumerate() {
                let [allowed, forbidden, unknown] = self.counts(m);
                let _ = writeln!(
                    out,
                    "{model}: {} traces: {allowed} allowed, {forbidden} forbidden, {unknown} unknown",
                    self.traces.len()
                );
            }
        }
        if !self.skipped.is_empty() {
            let _ = writeln!(out, "skipped {} lines with errors", self.skipped.len());
        }
        if self.stop != Stop::Complete {
            let _ =
                writeln!(out, "stopped: {}: the rest of the log was not read", self.stop.word());
        }
        out
    }
    /// Prints the evidence of an answer.
    fn details(&self, answer: &TraceAnswer, single: bool, out: &mut String) {
        if let Some(shown) = answer.shown.as_ref().filter(|_| self.explain || single) {
            *out += &shown.text();
        }
        if let Some(reason) = &answer.reason {
            let _ = writeln!(out, "  {reason}");
        }
        for line in answer.order.iter().flatten() {
            let _ = writeln!(out, "  {line}");
        }
        if let Some(part) = &answer.part {
            let _ = writeln!(out, "  {}", part.text());
        }
    }
    /// Prints the table of models.
    fn table(&self, single: bool, out: &mut String) {
        let rows: Vec<[String; 4]> = (0..self.models.len())
            .map(|m| {
                let [allowed, forbidden, unknown] = self.counts(m);
                let name = self.models[m].clone();
                if single {
                    let answer = &self.traces[0].answers[m];
                    let about = answer.reason.clone().unwrap_or(self.summaries[m].clone());
                    return [name, verb(answer.truth).to_string(), about, String::new()];
                }
                [name, allowed.to_string(), forbidden.to_string(), unknown.to_string()]
            })
            .collect();
        let head = match single {
            true => ["model", "verdict", "", ""],
            false => ["model", "allowed", "forbidden", "unknown"],
        };
        let rows: Vec<[String; 4]> = [head.map(str::to_string)].into_iter().chain(rows).collect();
        let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2), width(3)];
        for row in &rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(widths) {
                let _ = write!(line, "{cell:width$}  ");
            }
            *out += line.trim_end();
            out.push('\n');
        }
    }
}
