//! Decision of whether memory models allow the traces of logs (`trace`).
//!
//! Logs are read as streams: each trace is decided when it is complete, and only its answer is
//! kept. A limit ends the run with the answers so far. Exit code: 1 if some trace is forbidden,
//! otherwise 3 if a limit left one open, otherwise 0. Every forbidden part that is written as a
//! litmus test is judged by the layer `litmus` too, where the model has axioms; a disagreement is
//! an internal error.

mod against;
mod generated;
mod log;
mod machine;
mod outcomes;
mod part;
mod picture;
mod results;
mod stream;

use self::against::{Against, Judged, truth};
use self::log::{Log, open};
use self::results::{Results, Shown, TraceAnswer, TraceResult};
use crate::args::{LogFormat, TraceArgs};
use crate::output;
use crate::pipeline::Session;
use crate::pipeline::files::expect_writable;
use mu_base::{Diagnostic, Stage, Stop};
use mu_traces::readers::Limited;
use mu_traces::{DecisionOptions, ReadOptions, Sink, Trace, Verdict};
use std::cell::RefCell;
use std::rc::Rc;

/// Limit on the errors of skipped lines that are printed; all are counted.
const SHOWN_ERRORS: usize = 20;

/// Runs the command.
pub(crate) fn run(session: &mut Session, args: &TraceArgs) -> Result<u8, Diagnostic> {
    if args.generate {
        return generated::write(session, args);
    }
    if let Some(path) = args.evidence.as_deref() {
        picture::PictureFormat::of(path)?;
        expect_writable(path)?;
    }
    if let Some(machine) = &args.machine {
        return machine::run(session, args, machine);
    }
    let models = models(session, args)?;
    if args.stream {
        stream::expect_streams(&models)?;
    }
    if let Some(path) = args.litmus.as_deref()
        && mu_base::ends_in(path, "litmus")
    {
        expect_writable(path)?;
    }
    let mut results = Results::new(args, &models);
    for path in &args.files {
        output::begin_stage_on("reading a log", path);
        let log = open(path, args)?;
        session.log(format!("{}: {}", log.name, log.format.name()));
        let before = results.traces.len();
        let name = log.name.clone();
        match args.stream {
            true => stream::read(session, args, &models, path, log, &mut results)?,
            false => read(session, args, &models, log, &mut results)?,
        }
        if results.stop != Stop::Complete {
            break;
        }
        if results.traces.len() == before {
            let message = format!("{name}: the log has no operation");
            let error = results.skipped.first().cloned();
            return Err(error.unwrap_or_else(|| Diagnostic::new(Stage::Syntax, message)));
        }
    }
    print_skipped(session, &results);
    part::write(session, args, &mut results)?;
    if let Some(path) = args.evidence.as_deref() {
        picture::write(session, path, &results)?;
    }
    results.print(session)?;
    Ok(results.exit_code())
}

/// Prints the errors of skipped lines.
fn print_skipped(session: &Session, results: &Results) {
    for error in results.skipped.iter().take(SHOWN_ERRORS) {
        eprint!("{}", error.render(&session.sources).replacen("error:", "skipped:", 1));
    }
    if results.skipped.len() > SHOWN_ERRORS {
        eprintln!("{} more lines were skipped", results.skipped.len() - SHOWN_ERRORS);
    }
}

/// Returns the memory models of `--against`, strongest first; all built-in ones by default.
fn models(session: &mut Session, args: &TraceArgs) -> Result<Vec<Against>, Diagnostic> {
    if args.against.is_empty() {
        return Ok(Against::all());
    }
    let mut models: Vec<Against> = Vec::new();
    for word in &args.against {
        let model = Against::of(session, word)?;
        if models.iter().any(|m| m.name == model.name) {
            let message = format!("`--against` has the model `{word}` twice");
            return Err(Diagnostic::new(Stage::Usage, message));
        }
        models.push(model);
    }
    models.sort_by_key(Against::rank);
    Ok(models)
}

/// Reads a log and decides its traces.
fn read(
    session: &Session,
    args: &TraceArgs,
    models: &[Against],
    log: Log,
    results: &mut Results,
) -> Result<(), Diagnostic> {
    let LogFormat::Operations(reader) = log.format else {
        return outcomes::read(session, args, models, log, results);
    };
    let mut bytes = Limited::new(log.bytes, session.budget.clone());
    let stopped = bytes.stop();
    let options = ReadOptions { file: log.name.clone(), repair: args.repair };
    let mut decider = Decider {
        session,
        models,
        results,
        options: options_of(args),
        stopped: stopped.clone(),
        file: &log.name,
    };
    let read = reader.read(&mut bytes, &options, &mut decider);
    let stop = stopped.borrow_mut().take();
    if let Some(stop) = stop {
        results.stop = stop;
        return Ok(());
    }
    read
}

/// Returns the options of decisions.
fn options_of(args: &TraceArgs) -> DecisionOptions {
    let mut options = DecisionOptions::default();
    options.max_revisions = args.max_revisions.unwrap_or(options.max_revisions);
    options
}

/// Decides the traces of a log as they come.
struct Decider<'a, 'r> {
    session: &'a Session,
    models: &'a [Against],
    results: &'r mut Results,
    options: DecisionOptions,
    stopped: Rc<RefCell<Option<Stop>>>,
    file: &'a str,
}

impl Sink for Decider<'_, '_> {
    fn trace(&mut self, trace: Trace) -> Result<bool, Diagnostic> {
        if self.stopped.borrow().is_some() {
            return Ok(false);
        }
        output::begin_stage("deciding traces");
        let (session, models) = (self.session, self.models);
        let judge = |model: &Against| model.judge(&trace, &self.options, &session.budget);
        let judged: Vec<Result<Judged, Diagnostic>> = if trace.len() < 10_000 {
            models.iter().map(judge).collect()
        } else {
            crate::commands::litmus::parallel(session, models, judge)?
        };
        let mut result = TraceResult::of(&trace);
        for (model, judged) in models.iter().zip(judged) {
            let judged = judged.map_err(|d| with_trace(d, self.file, &result.name))?;
            let is_over =
                || self.session.budget.check(0).and_then(|()| self.session.budget.check_memory());
            if let (None, _, Some(stop)) = truth(&judged)
                && stop != Stop::Complete
                && is_over().is_err()
            {
                self.results.stop = stop;
            }
            result.answers.push(self.answer(&trace, model, judged)?);
        }
        self.results.traces.push(result);
        output::record("traces_decided", self.results.traces.len().into());
        Ok(self.results.stop == Stop::Complete)
    }
    fn skipped(&mut self, error: Diagnostic) {
        if self.stopped.borrow().is_none() {
            self.results.skipped.push(error);
        }
    }
}

/// Adds the trace to an error without a place.
fn with_trace(mut error: Diagnostic, file: &str, name: &str) -> Diagnostic {
    if error.line.is_none() && error.span.is_none() {
        error.message = format!("{file}: trace {name}: {}", error.message);
    }
    error
}

impl Decider<'_, '_> {
    /// Returns the answer with the parts that will be shown.
    fn answer(
        &self,
        trace: &Trace,
        model: &Against,
        judged: Judged,
    ) -> Result<TraceAnswer, Diagnostic> {
        let (truth, reason, stop) = truth(&judged);
        let mut answer = TraceAnswer { truth, reason, stop, ..TraceAnswer::default() };
        match judged {
            Judged::Verdict(Verdict::Allowed { witness }) if self.results.wants_witness => {
                answer.order = Some(results::order(trace, &witness));
            }
            Judged::Verdict(Verdict::Forbidden { conflict }) => {
                answer.shown = Some(Shown::new(trace, &conflict));
                if self.results.wants_part() {
                    answer.part = part::of(self.session, trace, &conflict, model, &self.options)?;
                }
            }
            _ => {}
        }
        Ok(answer)
    }
}
