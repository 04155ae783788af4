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

use self::against::{Against, ModelAnswer, truth};
use self::log::{Log, open};
use self::results::{ShownConflict, TraceAnswer, TraceReport, TraceResult};
use crate::args::{LogFormat, TraceArgs};
use crate::output;
use crate::output::answers;
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
    let results = TraceReport::register(session, args, &models);
    for path in &args.files {
        output::begin_stage_on("reading a log", path);
        let log = open(path, args)?;
        session.log(format!("{}: {}", log.name, log.format.name()));
        let before = results.lock().traces.len();
        let name = log.name.clone();
        match args.stream {
            true => stream::read(session, args, &models, path, log, &results)?,
            false => read(session, args, &models, log, &results)?,
        }
        if results.lock().stop != Stop::Complete {
            break;
        }
        if results.lock().traces.len() == before {
            let message = format!("{name}: the log has no operation");
            let error = results.lock().skipped.first().cloned();
            return Err(error.unwrap_or_else(|| Diagnostic::new(Stage::Syntax, message)));
        }
    }
    print_skipped(session, &results.lock().skipped.clone());
    if args.litmus.is_some() {
        let mut written = results.lock().clone();
        part::write(session, args, &mut written)?;
        *results.lock() = written;
    }
    if let Some(path) = args.evidence.as_deref() {
        let drawn = results.lock().clone();
        picture::write(session, path, &drawn)?;
    }
    answers::finish(session.common.format)
}

/// Prints the errors of skipped lines.
fn print_skipped(session: &Session, skipped: &[Diagnostic]) {
    for error in skipped.iter().take(SHOWN_ERRORS) {
        eprint!("{}", error.render(&session.sources).replacen("error:", "skipped:", 1));
    }
    if skipped.len() > SHOWN_ERRORS {
        eprintln!("{} more lines were skipped", skipped.len() - SHOWN_ERRORS);
    }
}

/// Returns the memory models of `--against`, strongest first; all built-in ones by default.
fn models(session: &mut Session, args: &TraceArgs) -> Result<Vec<Against>, Diagnostic> {
    if args.against.is_empty() {
        return Ok(Against::built_in_models());
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
    results: &TraceReport,
) -> Result<(), Diagnostic> {
    let LogFormat::Operations(reader) = log.format else {
        return outcomes::read(session, args, models, log, results);
    };
    let mut bytes = Limited::new(log.bytes, session.budget.clone());
    let stopped = bytes.stop();
    let options = ReadOptions { file: log.name.clone(), repair: args.repair };
    let judging = Judging {
        session,
        results,
        options: options_of(args),
        wants_witness: args.witness,
        wants_part: args.litmus.is_some(),
    };
    let mut decider = Decider { judging, models, stopped: stopped.clone(), file: &log.name };
    let read = reader.read(&mut bytes, &options, &mut decider);
    let stop = stopped.borrow_mut().take();
    if let Some(stop) = stop {
        results.lock().stop = stop;
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

/// Judges the traces of a log, and adds their answers to the report.
struct Judging<'a> {
    session: &'a Session,
    results: &'a TraceReport,
    options: DecisionOptions,
    wants_witness: bool,
    wants_part: bool,
}

/// Decides the traces of a log as they come.
struct Decider<'a> {
    judging: Judging<'a>,
    models: &'a [Against],
    stopped: Rc<RefCell<Option<Stop>>>,
    file: &'a str,
}

impl Sink for Decider<'_> {
    fn trace(&mut self, trace: Trace) -> Result<bool, Diagnostic> {
        if self.stopped.borrow().is_some() {
            return Ok(false);
        }
        output::begin_stage("deciding traces");
        let (judging, models, file) = (&self.judging, self.models, self.file);
        let (session, results) = (judging.session, judging.results);
        let number = results.begin(TraceResult::of(&trace));
        let name = trace.title();
        let judge = |(m, model): &(usize, &Against)| -> Result<(), Diagnostic> {
            let judged = model.judge(&trace, &judging.options, &session.budget);
            let judged = judged.map_err(|d| with_trace(d, file, &name))?;
            if let (None, _, Some(stop)) = truth(&judged)
                && stop != Stop::Complete
                && session.budget.check_all_limits().is_err()
            {
                results.lock().stop = stop;
            }
            judging.answer(&trace, (number, *m, model), judged)
        };
        let numbered: Vec<(usize, &Against)> = models.iter().enumerate().collect();
        if trace.len() < 10_000 {
            numbered.iter().try_for_each(judge)?;
        } else {
            let judged = crate::commands::litmus::parallel(session, &numbered, judge)?;
            judged.into_iter().collect::<Result<(), Diagnostic>>()?;
        }
        Ok(results.lock().stop == Stop::Complete)
    }
    fn report_skipped(&mut self, error: Diagnostic) {
        if self.stopped.borrow().is_none() {
            self.judging.results.lock().skipped.push(error);
        }
    }
    fn report_unended(&mut self, warning: Diagnostic) {
        warn_unended(self.judging.session, &warning);
    }
}

/// Prints the warning about a last line that may be cut off.
fn warn_unended(session: &Session, warning: &Diagnostic) {
    if !session.common.quiet {
        eprint!("{}", warning.render(&session.sources).replacen("error:", "warning:", 1));
    }
}

/// Adds the trace to an error without a place.
fn with_trace(mut error: Diagnostic, file: &str, name: &str) -> Diagnostic {
    if error.line.is_none() && error.span.is_none() {
        error.message = format!("{file}: trace {name}: {}", error.message);
    }
    error
}

impl Judging<'_> {
    /// Sets the answer with the parts that will be shown. The verdict is set before a forbidden
    /// part is minimised, which may take long.
    fn answer(
        &self,
        trace: &Trace,
        (number, m, model): (usize, usize, &Against),
        judged: ModelAnswer,
    ) -> Result<(), Diagnostic> {
        let (truth, reason, stop) = truth(&judged);
        let mut answer = TraceAnswer { truth, reason, stop, ..TraceAnswer::default() };
        let conflict = match judged {
            ModelAnswer::Verdict(Verdict::Allowed { witness }) if self.wants_witness => {
                answer.order = Some(results::order(trace, &witness));
                None
            }
            ModelAnswer::Verdict(Verdict::Forbidden { conflict }) => {
                answer.shown = Some(ShownConflict::new(trace, &conflict));
                Some(conflict)
            }
            _ => None,
        };
        self.results.set(number, m, answer.clone());
        if let Some(conflict) = conflict.filter(|_| self.wants_part) {
            match part::of(self.session, trace, &conflict, model, &self.options) {
                Ok(part) => answer.part = part,
                Err(Diagnostic { stop: Some(stop), .. }) => self.results.lock().stop = stop,
                Err(error) => return Err(error),
            }
            self.results.set(number, m, answer);
        }
        Ok(())
    }
}
