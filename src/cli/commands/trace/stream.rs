//! Decision of traces while their logs are read (`trace --stream`): memory for the operations that
//! are open, not for the whole trace.
//!
//! A conflict of a stream needs that each of its values is stored once in the whole log: a second
//! pass over the file counts them. Standard input cannot be read twice, so the answer is *unknown*
//! there.

use super::against::Against;
use super::log::{Log, open};
use super::part;
use super::results::{ShownConflict, TraceAnswer, TraceReport, TraceResult};
use crate::args::{LogFormat, TraceArgs};
use crate::output;
use crate::pipeline::Session;
use mu_base::{Diagnostic, Stage, Stop};
use mu_traces::readers::Limited;
use mu_traces::stream::{NamedValue, WINDOW};
use mu_traces::{
    DecisionOptions, FinalAnswer, ReadOptions, Recount, Sink, Stream, StreamAnswer, Trace,
    TraceBuilder,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

/// A trace with the answers of the first pass.
struct Read {
    /// Its number in the report.
    index: usize,
    number: u64,
    streamed: Vec<StreamAnswer>,
}

/// Decides the traces of a log part by part.
struct Decider<'a> {
    session: &'a Session,
    models: &'a [Against],
    options: &'a DecisionOptions,
    stopped: Rc<RefCell<Option<Stop>>>,
    results: &'a TraceReport,
    streams: Vec<Stream<'a>>,
    done: Vec<Read>,
    skipped: Vec<Diagnostic>,
    /// The limit that ended the run.
    stop: Stop,
}

impl<'a> Decider<'a> {
    /// Begins a trace.
    fn fresh(&self) -> Result<Vec<Stream<'a>>, Diagnostic> {
        let models = self.models.iter().map(|against| {
            let stream = against.model().and_then(|m| Stream::new(m, self.options, WINDOW));
            stream.ok_or_else(|| Diagnostic::internal("a model without streams"))
        });
        models.collect()
    }
}

impl Sink for Decider<'_> {
    fn trace(&mut self, _: Trace) -> Result<bool, Diagnostic> {
        Err(Diagnostic::internal("a stream takes traces in parts"))
    }
    fn part(
        &mut self,
        builder: &mut TraceBuilder,
        is_end: bool,
    ) -> Result<Option<bool>, Diagnostic> {
        if self.stopped.borrow().is_some() {
            return Ok(Some(false));
        }
        let budget = &self.session.budget;
        let operations = builder.drain();
        for stream in &mut self.streams {
            stream.add(builder, &operations, budget)?;
        }
        if is_end {
            let fresh = self.fresh()?;
            let streams = std::mem::replace(&mut self.streams, fresh);
            let count = streams.first().map_or(0, Stream::len);
            let result = TraceResult {
                file: builder.file.clone(),
                name: builder.name.clone().unwrap_or_else(|| builder.number.to_string()),
                operations: usize::try_from(count).unwrap_or(usize::MAX),
                threads: builder.threads().len(),
                answers: Vec::new(),
            };
            let streamed: Result<Vec<StreamAnswer>, Diagnostic> =
                streams.into_iter().map(|s| s.finish(builder, budget)).collect();
            let streamed = streamed?;
            let index = self.results.begin(result);
            // Known without a second pass over the log.
            for m in (0..streamed.len()).filter(|m| matches!(streamed[*m], StreamAnswer::Allowed)) {
                let allowed = TraceAnswer { truth: Some(true), ..TraceAnswer::default() };
                self.results.set(index, m, allowed);
            }
            self.done.push(Read { index, number: builder.number, streamed });
        }
        if let Err(stop) = budget.check(0).and_then(|()| budget.check_memory()) {
            self.stop = stop;
            return Ok(Some(false));
        }
        Ok(Some(true))
    }
    fn report_skipped(&mut self, error: Diagnostic) {
        if self.stopped.borrow().is_none() {
            self.skipped.push(error);
        }
    }
    fn report_unended(&mut self, warning: Diagnostic) {
        super::warn_unended(self.session, &warning);
    }
}

/// Counts the sources of values in the traces of a log, by the number of the trace.
struct Counter {
    counts: BTreeMap<u64, Recount>,
}

impl Sink for Counter {
    fn trace(&mut self, _: Trace) -> Result<bool, Diagnostic> {
        Err(Diagnostic::internal("a stream takes traces in parts"))
    }
    fn part(
        &mut self,
        builder: &mut TraceBuilder,
        is_end: bool,
    ) -> Result<Option<bool>, Diagnostic> {
        let operations = builder.drain();
        if let Some(count) = self.counts.get_mut(&builder.number) {
            count.add(builder, &operations, is_end);
        }
        Ok(Some(true))
    }
    fn report_skipped(&mut self, _: Diagnostic) {}
}

/// Rejects models without streams, before any log is read.
pub(super) fn expect_streams(models: &[Against]) -> Result<(), Diagnostic> {
    let is_unknown = |m: &&Against| {
        m.model()
            .is_none_or(|model| Stream::new(model, &DecisionOptions::default(), WINDOW).is_none())
    };
    match models.iter().find(is_unknown) {
        Some(other) => {
            let message = format!("`--stream` does not decide `{}`", other.name);
            let note = "it decides `sc` and `tso`: `--against sc,tso`";
            Err(Diagnostic::new(Stage::Usage, message).note(note))
        }
        None => Ok(()),
    }
}

/// Reads a log and decides its traces part by part.
pub(super) fn read(
    session: &Session,
    args: &TraceArgs,
    models: &[Against],
    path: &Path,
    log: Log,
    results: &TraceReport,
) -> Result<(), Diagnostic> {
    let LogFormat::Operations(reader) = log.format else {
        let message = "`--stream` reads logs of operations, not outcomes of litmus tests";
        return Err(Diagnostic::new(Stage::Usage, message));
    };
    output::begin_stage("deciding a stream");
    let options = super::options_of(args);
    let read_options = ReadOptions { file: log.name.clone(), repair: args.repair };
    let mut bytes = Limited::new(log.bytes, session.budget.clone());
    let stopped = bytes.stop();
    let mut decider = Decider {
        session,
        models,
        options: &options,
        stopped: stopped.clone(),
        results,
        streams: Vec::new(),
        done: Vec::new(),
        skipped: Vec::new(),
        stop: Stop::Complete,
    };
    decider.streams = decider.fresh()?;
    let read = reader.read(&mut bytes, &read_options, &mut decider);
    let Decider { done, skipped, stop, .. } = decider;
    let stop = stopped.borrow_mut().take().unwrap_or(stop);
    results.lock().skipped.extend(skipped);
    results.lock().stop = stop.clone();
    if stop == Stop::Complete {
        read?;
    }
    let counts = count(session, args, path, reader, &read_options, &done)?;
    for Read { index, number, streamed } in done {
        for (m, (model, streamed)) in models.iter().zip(streamed).enumerate() {
            let count = counts.as_ref().and_then(|c| c.get(&number));
            let answer =
                answer(session, model, args.litmus.is_some(), &options, streamed.settle(count))?;
            results.set(index, m, answer);
        }
    }
    Ok(())
}

/// Reads a log again and counts the sources of the values of conflicts. `None` if the log cannot be
/// read twice, or if a limit ended the run.
fn count(
    session: &Session,
    args: &TraceArgs,
    path: &Path,
    reader: &dyn mu_traces::TraceReader,
    options: &ReadOptions,
    done: &[Read],
) -> Result<Option<BTreeMap<u64, Recount>>, Diagnostic> {
    let mut counts = BTreeMap::new();
    for read in done {
        let doubts: Vec<NamedValue> = read.streamed.iter().flat_map(StreamAnswer::doubts).collect();
        if !doubts.is_empty() {
            counts.insert(read.number, Recount::new(doubts));
        }
    }
    if counts.is_empty() {
        return Ok(Some(counts));
    }
    if !mu_base::host::is_file(path) || session.budget.check(0).is_err() {
        return Ok(None);
    }
    output::begin_stage("counting the stores of a conflict");
    let mut bytes = Limited::new(open(path, args)?.bytes, session.budget.clone());
    let stopped = bytes.stop();
    let mut counter = Counter { counts };
    let read = reader.read(&mut bytes, options, &mut counter);
    if stopped.borrow().is_some() {
        return Ok(None);
    }
    read?;
    Ok(Some(counter.counts))
}

/// Returns the answer with the parts that will be shown.
fn answer(
    session: &Session,
    model: &Against,
    wants_part: bool,
    options: &DecisionOptions,
    settled: FinalAnswer,
) -> Result<TraceAnswer, Diagnostic> {
    Ok(match settled {
        FinalAnswer::Allowed => TraceAnswer { truth: Some(true), ..TraceAnswer::default() },
        FinalAnswer::Forbidden { part, conflict } => TraceAnswer {
            truth: Some(false),
            shown: Some(ShownConflict::new(&part, &conflict)),
            part: match wants_part {
                true => match part::of(session, &part, &conflict, model, options) {
                    // The verdict is known.
                    Err(Diagnostic { stop: Some(_), .. }) => None,
                    part => part?,
                },
                false => None,
            },
            ..TraceAnswer::default()
        },
        FinalAnswer::Unknown { stop, reason } => {
            TraceAnswer { reason: Some(reason), stop: Some(stop), ..TraceAnswer::default() }
        }
    })
}
