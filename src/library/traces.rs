//! Logs of memory operations, judged by memory models: what `mu-check trace` decides, for programs.
//!
//! In: a log as a file, as bytes, or as records, and the names of models. Out: for each trace the
//! answer of each model, with the conflict of a forbidden one. Logs are read as streams: memory for
//! one trace. Invariants: those of `mu_traces`: an allowed trace has an order that independent code
//! checked, and an answer that a limit left open is unknown.

use crate::{Error, Run};
use mu_base::{Diagnostic, SourceMap, Stage, Stop};
use mu_traces::readers::{Limited, reader_for, with_start};
use mu_traces::{
    Conflict, DecisionOptions, ReadOptions, Reason, Sink, Trace, TraceModel, TraceReader, Verdict,
    decide, readers,
};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::rc::Rc;

/// Models, format, and options of a check of logs.
#[derive(Debug)]
pub struct TraceCheck {
    models: Vec<TraceModel>,
    format: Option<String>,
    repair: bool,
    options: DecisionOptions,
}

/// Answers for one trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckedTrace {
    /// The comment before the trace, else its number in the log.
    pub name: String,
    /// Number of operations.
    pub operations: usize,
    /// Number of threads.
    pub threads: usize,
    /// The answer of each model, strongest first.
    pub answers: Vec<TraceAnswer>,
}

/// Answer of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceAnswer {
    /// Name of the model.
    pub model: String,
    /// True if the model allows the trace; `None` if the answer is unknown.
    pub allowed: Option<bool>,
    /// The reason for an unknown answer.
    pub reason: Option<String>,
    /// The reason why the trace is forbidden.
    pub conflict: Option<TraceConflict>,
}

/// Reason why a trace is forbidden: its operations are forbidden without the rest of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceConflict {
    /// The conflict in one sentence.
    pub message: String,
    /// The operations, by thread and program order.
    pub operations: Vec<LoggedOperation>,
    /// A cycle: each operation takes effect before the next one. Empty if one operation alone is
    /// impossible, or if no order explains the values.
    pub cycle: Vec<CycleStep>,
}

/// An operation of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedOperation {
    /// Name of the thread.
    pub thread: String,
    /// Text in the form of Axe.
    pub text: String,
    /// Line of the log, from 1.
    pub line: u32,
}

/// Edge of a cycle; operations are positions in [`TraceConflict::operations`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CycleStep {
    /// First operation.
    pub from: usize,
    /// Second operation.
    pub to: usize,
    /// Relation, such as `program order` or `reads from`.
    pub relation: String,
    /// Further operations that imply the edge.
    pub because: Vec<usize>,
}

/// Result of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckedLog {
    /// The traces, in order.
    pub traces: Vec<CheckedTrace>,
    /// The errors of the lines that were skipped.
    pub skipped: Vec<String>,
    /// The limit that ended the reading: later traces are missing.
    pub stop: Stop,
}

impl TraceCheck {
    /// Creates a check against models; against all built-in ones if there are no names.
    ///
    /// # Errors
    /// No model for traces has such a name.
    pub fn new<'n>(models: impl IntoIterator<Item = &'n str>) -> Result<Self, Error> {
        let mut known: Vec<TraceModel> = Vec::new();
        for name in models {
            let model = TraceModel::by_name(&name.trim().to_lowercase()).ok_or_else(|| {
                let all: Vec<&str> = TraceModel::BUILT_IN.iter().map(TraceModel::name).collect();
                let message = format!(
                    "no memory model for traces is called `{name}`, expected one of {}",
                    all.join(", ")
                );
                Error::plain(Stage::Usage, message)
            })?;
            if !known.iter().any(|m| m.name() == model.name()) {
                known.push(model);
            }
        }
        let rank = |m: &TraceModel| TraceModel::BUILT_IN.iter().position(|b| b.name() == m.name());
        known.sort_by_key(rank);
        let models = if known.is_empty() { TraceModel::BUILT_IN.into() } else { known };
        Ok(Self { models, format: None, repair: false, options: DecisionOptions::default() })
    }
    /// Sets the format; by default it is recognised by the name and the content of a log.
    ///
    /// # Errors
    /// There is no such format.
    pub fn format(mut self, name: &str) -> Result<Self, Error> {
        if !readers().iter().any(|r| r.name() == name) {
            let all: Vec<&str> = readers().iter().map(|r| r.name()).collect();
            let message =
                format!("no format of logs is called `{name}`, expected one of {}", all.join(", "));
            return Err(Error::plain(Stage::Usage, message));
        }
        self.format = Some(name.to_string());
        Ok(self)
    }
    /// Skips lines with errors if `repair`; else the first one ends the reading.
    #[must_use]
    pub fn repair(self, repair: bool) -> Self {
        Self { repair, ..self }
    }
    /// Limits the choices that a search revises for each trace and model.
    #[must_use]
    pub fn max_revisions(mut self, limit: u64) -> Self {
        self.options.max_revisions = limit;
        self
    }
    /// Reads and decides the traces of a file; a compressed one (gzip) is decompressed.
    ///
    /// # Errors
    /// The file cannot be read, its format is not recognised, or a line has an error.
    pub fn file(&self, path: impl AsRef<Path>, run: &Run) -> Result<CheckedLog, Error> {
        let path = path.as_ref();
        let file = std::fs::File::open(path).map_err(|e| {
            let message = format!("cannot read `{}`: {e}", path.display());
            Error::plain(Stage::File, message)
        })?;
        self.log(&path.display().to_string(), BufReader::with_capacity(1 << 20, file), run)
    }
    /// Reads and decides the traces of a log; a compressed one (gzip) is decompressed. The name is
    /// used in messages, and its ending may select the format.
    ///
    /// # Errors
    /// As [`TraceCheck::file`].
    pub fn log(
        &self,
        name: &str,
        bytes: impl BufRead + 'static,
        run: &Run,
    ) -> Result<CheckedLog, Error> {
        self.judge(name, Box::new(bytes), run).map_err(|e| Error::new(e, &SourceMap::new()))
    }
    fn judge(
        &self,
        name: &str,
        bytes: Box<dyn BufRead>,
        run: &Run,
    ) -> Result<CheckedLog, Diagnostic> {
        let failed =
            |e: std::io::Error| Diagnostic::new(Stage::File, format!("cannot read `{name}`: {e}"));
        let (start, bytes) = with_start(mu_lts::aut::decompress(bytes).map_err(failed)?);
        let reader = self.reader(name, &start)?;
        let mut log = Limited::new(bytes, run.budget.clone());
        let stopped = log.stop();
        let options = ReadOptions { file: name.to_string(), repair: self.repair };
        let traces = CheckedLog { traces: Vec::new(), skipped: Vec::new(), stop: Stop::Complete };
        let mut judge = Judge { check: self, run, stopped: stopped.clone(), log: traces };
        let read = reader.read(&mut log, &options, &mut judge);
        let mut out = judge.log;
        if let Some(stop) = stopped.borrow_mut().take() {
            out.stop = stop;
            return Ok(out);
        }
        read?;
        if out.traces.is_empty() && out.stop == Stop::Complete {
            let message = format!("{name}: the log has no operation");
            return Err(Diagnostic::new(Stage::Syntax, message));
        }
        Ok(out)
    }
    fn reader(&self, name: &str, start: &str) -> Result<&'static dyn TraceReader, Diagnostic> {
        let found = match &self.format {
            Some(format) => readers().iter().find(|r| r.name() == format).copied(),
            None => reader_for(name, start),
        };
        found.ok_or_else(|| {
            let all: Vec<&str> = readers().iter().map(|r| r.name()).collect();
            let message = format!("the format of `{name}` is not recognised");
            let note = format!("formats: {}", all.join(", "));
            Diagnostic::new(Stage::Syntax, message).note(note)
        })
    }
}

/// Decides traces as they come.
struct Judge<'a> {
    check: &'a TraceCheck,
    run: &'a Run,
    stopped: Rc<RefCell<Option<Stop>>>,
    log: CheckedLog,
}

impl Sink for Judge<'_> {
    fn trace(&mut self, trace: Trace) -> Result<bool, Diagnostic> {
        if self.stopped.borrow().is_some() {
            return Ok(false);
        }
        let mut answers = Vec::with_capacity(self.check.models.len());
        for model in &self.check.models {
            let verdict = match decide(&trace, model, &self.check.options, &self.run.budget) {
                // The model does not define the trace: no error of the log.
                Err(d) if d.stage == Stage::Unsupported => {
                    Verdict::Unknown { stop: Stop::States, reason: d.to_string() }
                }
                verdict => verdict?,
            };
            let allowed = verdict.truth();
            let (reason, conflict) = match &verdict {
                Verdict::Unknown { reason, .. } => (Some(reason.clone()), None),
                Verdict::Forbidden { conflict } => (None, Some(conflict_of(&trace, conflict))),
                Verdict::Allowed { .. } => (None, None),
            };
            let model = model.name().to_string();
            answers.push(TraceAnswer { model, allowed, reason, conflict });
        }
        self.log.traces.push(CheckedTrace {
            name: trace.title(),
            operations: trace.len(),
            threads: trace.threads.len(),
            answers,
        });
        if let Err(stop) = self.run.budget.check(0).and_then(|()| self.run.budget.check_memory()) {
            self.log.stop = stop;
            return Ok(false);
        }
        Ok(true)
    }
    fn report_skipped(&mut self, error: Diagnostic) {
        if self.stopped.borrow().is_none() {
            self.log.skipped.push(error.render(&SourceMap::new()).trim_end().to_string());
        }
    }
}

/// Returns a conflict with the texts of its operations.
fn conflict_of(trace: &Trace, conflict: &Conflict) -> TraceConflict {
    let simplified = conflict.simplify(trace);
    let all = &conflict.operations;
    let at = |i: u32| all.binary_search(&i).expect("each operation of an edge is listed");
    let operation = |i: &u32| LoggedOperation {
        thread: trace.threads[trace.thread(*i as usize)].clone(),
        text: simplified.text(*i as usize),
        line: trace.line(*i as usize),
    };
    let step = |e: &mu_traces::OrderEdge| CycleStep {
        from: at(e.from),
        to: at(e.to),
        relation: e.reason.name().to_string(),
        because: match e.reason {
            Reason::Fence(fence) => std::iter::once(fence).chain(e.because.iter().copied()),
            _ => std::iter::once(e.from).chain(e.because.iter().copied()),
        }
        .filter(|i| *i != e.from)
        .map(at)
        .collect(),
    };
    TraceConflict {
        message: conflict.message.clone(),
        operations: all.iter().map(operation).collect(),
        cycle: conflict.cycle.iter().map(step).collect(),
    }
}

impl CheckedTrace {
    /// Returns the answer of a model. `None` if the check has no such model.
    pub fn answer(&self, model: &str) -> Option<&TraceAnswer> {
        self.answers.iter().find(|a| a.model == model)
    }
}

impl CheckedLog {
    /// Returns the result as JSON: `traces`, `skipped`, and `stop`, with the fields of the types.
    pub fn json(&self) -> String {
        let operation = |o: &LoggedOperation| json!([o.thread, o.text, o.line]);
        let step = |e: &CycleStep| json!([e.from, e.relation, e.to, e.because]);
        let conflict = |c: &TraceConflict| {
            json!({
                "message": c.message,
                "operations": c.operations.iter().map(operation).collect::<Vec<_>>(),
                "cycle": c.cycle.iter().map(step).collect::<Vec<_>>(),
            })
        };
        let answer = |a: &TraceAnswer| {
            json!({
                "model": a.model,
                "allowed": a.allowed,
                "reason": a.reason,
                "conflict": a.conflict.as_ref().map(conflict),
            })
        };
        let trace = |t: &CheckedTrace| {
            json!({
                "name": t.name,
                "operations": t.operations,
                "threads": t.threads,
                "answers": t.answers.iter().map(answer).collect::<Vec<Value>>(),
            })
        };
        json!({
            "traces": self.traces.iter().map(trace).collect::<Vec<_>>(),
            "skipped": self.skipped,
            "stop": self.stop.word(),
        })
        .to_string()
    }
}
