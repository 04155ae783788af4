//! Decision of whether memory models allow the traces of logs (`trace`).
//!
//! Logs are read as streams: each trace is decided when it is complete, and only its answer is
//! kept. A limit ends the run with the answers so far. Exit code: 1 if some trace is forbidden,
//! otherwise 3 if a limit left one open, otherwise 0. Every forbidden part that is written as a
//! litmus test is judged by the layer `litmus` too, where the model has axioms; a disagreement is
//! an internal error.

mod generated;
mod log;
mod machine;
mod outcomes;
mod part;
mod picture;
mod results;

use self::log::{Log, open};
use self::results::{Answer, Results, Shown, TraceResult};
use super::args::{LogFormat, TraceArgs};
use super::files::expect_writable;
use super::output;
use super::pipeline::Session;
use mu_base::{Budget, Diagnostic, Stage, Stop};
use mu_traces::{Model, Options, ReadOptions, Sink, Trace, Verdict, decide};
use std::cell::RefCell;
use std::io::{BufRead, Read};
use std::rc::Rc;

/// Limit on the errors of skipped lines that are printed; all are counted.
const SHOWN_ERRORS: usize = 20;

/// Runs the command.
pub(super) fn run(session: &mut Session, args: &TraceArgs) -> Result<u8, Diagnostic> {
    if args.generate {
        return generated::write(session, args);
    }
    if let Some(path) = args.evidence.as_deref() {
        picture::Form::of(path)?;
        expect_writable(path)?;
    }
    if let Some(machine) = &args.machine {
        return machine::run(session, args, machine);
    }
    let models = models(args)?;
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
        read(session, args, &models, log, &mut results)?;
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
fn models(args: &TraceArgs) -> Result<Vec<Model>, Diagnostic> {
    if args.against.is_empty() {
        return Ok(Model::BUILT_IN.into());
    }
    let mut models: Vec<Model> = Vec::new();
    for word in &args.against {
        let model = model(word)?;
        if models.iter().any(|m| m.name() == model.name()) {
            let message = format!("`--against` has the model `{word}` twice");
            return Err(Diagnostic::new(Stage::Usage, message));
        }
        models.push(model);
    }
    let rank = |m: &Model| Model::BUILT_IN.iter().position(|b| b.name() == m.name());
    models.sort_by_key(|m| rank(m).unwrap_or(usize::MAX));
    Ok(models)
}

/// Returns the memory model with a name.
fn model(word: &str) -> Result<Model, Diagnostic> {
    let lower = word.trim().to_lowercase();
    let name = match lower.as_str() {
        "power" => "pow",
        "x86" => "tso",
        "riscv" => "rvwmo",
        "aarch64" => "armv8",
        name => name,
    };
    Model::by_name(name).ok_or_else(|| {
        let all: Vec<&str> = Model::BUILT_IN.iter().map(Model::name).collect();
        Diagnostic::new(Stage::Usage, format!("no memory model for traces is called `{word}`"))
            .note(format!("models: {}", all.join(", ")))
    })
}

/// Reads a log and decides its traces.
fn read(
    session: &Session,
    args: &TraceArgs,
    models: &[Model],
    log: Log,
    results: &mut Results,
) -> Result<(), Diagnostic> {
    let LogFormat::Operations(reader) = log.format else {
        return outcomes::read(session, args, models, log, results);
    };
    let stopped = Rc::new(RefCell::new(None));
    let mut bytes =
        Limited { bytes: log.bytes, budget: session.budget.clone(), stopped: stopped.clone() };
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
fn options_of(args: &TraceArgs) -> Options {
    let mut options = Options::default();
    options.max_revisions = args.max_revisions.unwrap_or(options.max_revisions);
    options
}

/// A log that ends at a limit of the run.
struct Limited {
    bytes: Box<dyn BufRead>,
    budget: Budget,
    /// The limit.
    stopped: Rc<RefCell<Option<Stop>>>,
}

impl Read for Limited {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let part = self.fill_buf()?;
        let length = part.len().min(into.len());
        into[..length].copy_from_slice(&part[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Limited {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if let Err(stop) = self.budget.check(0).and_then(|()| self.budget.check_memory()) {
            *self.stopped.borrow_mut() = Some(stop);
            return Err(std::io::Error::other("a limit of the run"));
        }
        self.bytes.fill_buf()
    }
    fn consume(&mut self, amount: usize) {
        self.bytes.consume(amount);
    }
}

/// Decides the traces of a log as they come.
struct Decider<'a, 'r> {
    session: &'a Session,
    models: &'a [Model],
    results: &'r mut Results,
    options: Options,
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
        let judge = |model: &Model| decide(&trace, model, &self.options, &session.budget);
        let verdicts: Vec<Result<Verdict, Diagnostic>> = if trace.len() < 10_000 {
            models.iter().map(judge).collect()
        } else {
            super::litmus::parallel(session, models, judge)?
        };
        let mut result = TraceResult::of(&trace);
        for (model, verdict) in models.iter().zip(verdicts) {
            let verdict = match verdict {
                // The model does not define the trace: no answer, and no error of the log.
                Err(d) if d.stage == Stage::Unsupported => {
                    Verdict::Unknown { stop: Stop::Complete, reason: d.to_string() }
                }
                verdict => verdict.map_err(|d| with_trace(d, self.file, &result.name))?,
            };
            if let Verdict::Unknown { stop, .. } = &verdict
                && *stop != Stop::Complete
                && self
                    .session
                    .budget
                    .check(0)
                    .and_then(|()| self.session.budget.check_memory())
                    .is_err()
            {
                self.results.stop = stop.clone();
            }
            let answer = self.answer(&trace, model, verdict)?;
            result.answers.push(answer);
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
    fn answer(&self, trace: &Trace, model: &Model, verdict: Verdict) -> Result<Answer, Diagnostic> {
        let truth = verdict.truth();
        let mut answer = Answer { truth, ..Answer::default() };
        match verdict {
            Verdict::Allowed { witness } => {
                if self.results.wants_witness {
                    answer.order = Some(results::order(trace, &witness));
                }
            }
            Verdict::Forbidden { conflict } => {
                answer.shown = Some(Shown::new(trace, &conflict));
                if self.results.wants_part() {
                    answer.part =
                        Some(part::of(self.session, trace, &conflict, model, &self.options)?);
                }
            }
            Verdict::Unknown { stop, reason } => {
                answer.reason = Some(reason);
                answer.stop = Some(stop);
            }
        }
        Ok(answer)
    }
}
