//! Litmus tests under a memory model (`litmus`).
//!
//! A [`Route`] answers each test: the machine of a model ([`machine`]), or its axioms ([`axioms`]).
//! Single tests are printed in the format of the herd tools; for folders, each test gets a line,
//! followed by a table. Exit code: 2 if a test cannot be read, otherwise 1 if a condition does not
//! hold, otherwise 3 if a limit left one open, otherwise 0. For a single test, an execution that
//! decides it can be drawn. With `--expected`, the exit code reports if all answers are as
//! expected.

mod axioms;
mod expected;
mod kernel;
mod listing;
mod machine;
mod table;

pub(crate) use listing::collect;

use self::expected::ExpectedAnswers;
use self::table::VerdictTable;
use crate::args::{LitmusArgs, LitmusMethod, MemoryName};
use crate::output;
use crate::output::answers::{self, Report};
use crate::output::page;
use crate::pipeline::files::{expect_writable, unknown_evidence_extension, write_text};
use crate::pipeline::{Session, read_source};
use mu_base::host::Instant;
use mu_base::{Diagnostic, SourceId, SourceMap, Stage, Stop};
use mu_program::memory::{self, MemoryModel};
use mu_program::outcome::Answer;
use mu_report::page::PageResult;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

impl MemoryName {
    /// Returns the memory model.
    pub(crate) fn model(self) -> &'static dyn MemoryModel {
        match self {
            MemoryName::Sc => memory::SC,
            MemoryName::Tso => memory::TSO,
            MemoryName::Pso => memory::PSO,
        }
    }
}

/// Result of a test.
#[derive(Clone, Debug)]
struct TestResult {
    /// Its file.
    file: String,
    /// Outcomes and verdict.
    answer: Answer,
    /// Stop reason.
    stop: Stop,
    /// Number of searched states or executions.
    effort: u64,
    /// Omitted parts of the search, one line each.
    left_out: Vec<String>,
    /// True if a store had to wait for a full buffer.
    full_buffer: bool,
    /// Registers of the condition that no instruction of their thread names.
    unnamed: Vec<String>,
    /// Figures that only this route reports.
    more: Vec<(&'static str, Value)>,
}

impl TestResult {
    /// Returns the text, as the herd tools print it, and what was left out.
    fn text(&self) -> String {
        let mut out = self.answer.text();
        for line in self.limits() {
            out += &line;
            out.push('\n');
        }
        out
    }
    /// Describes what limits and bounds omitted, one line each.
    fn limits(&self) -> Vec<String> {
        let stopped = (self.stop != Stop::Complete).then(|| limit_text(&self.stop));
        let buffer =
            self.full_buffer.then(|| "Stopped: a store buffer was full (`--buffer`)".to_string());
        stopped.into_iter().chain(buffer).chain(self.left_out.iter().cloned()).collect()
    }
    /// Returns the reason why outcomes may be missing; `None` if all were found.
    fn reason(&self) -> Option<String> {
        let limits = self.limits();
        (!limits.is_empty()).then(|| limits.join("; "))
    }
    fn json(&self, unit: &str) -> Value {
        let a = &self.answer;
        let line = |o: &Vec<(String, String)>| {
            Value::Object(o.iter().map(|(n, v)| (n.clone(), Value::String(v.clone()))).collect())
        };
        let mut out = json!({
            "file": self.file,
            "name": a.name,
            "kind": a.quantifier.kind(),
            "condition": format!("{} ({})", a.quantifier.word(), a.condition),
            "verdict": output::verdict_word(if a.undefined { "No" } else { a.verdict.word() }),
            "herd": a.word(),
            "observation": a.observation(),
            "positive": a.positive,
            "negative": a.negative,
            "states": a.outcomes.iter().map(line).collect::<Vec<_>>(),
            "stop": self.stop.word(),
        });
        if let Some(reason) = self.reason().filter(|_| !a.complete) {
            out["reason"] = json!(reason);
        }
        out[format!("searched_{unit}")] = json!(self.effort);
        for (key, value) in &self.more {
            out[*key] = value.clone();
        }
        out
    }
}

/// Describes a limit that ended the search of a test.
fn limit_text(stop: &Stop) -> String {
    match stop {
        Stop::Interrupted => "Stopped: interrupted before all outcomes were found".to_string(),
        stop => format!(
            "Stopped: the limit `--{}` was reached before all outcomes were found",
            stop.word()
        ),
    }
}

/// A test without outcomes: it was rejected, or a limit ended the run before they were known.
#[derive(Clone, Debug)]
pub(crate) struct TestError {
    /// The error with its place.
    pub(crate) text: String,
    /// The same for programs: stage, message, place, notes.
    pub(crate) error: Value,
    /// The exit code of the error.
    pub(crate) code: u8,
    /// The limit; `None` for a rejected test.
    pub(crate) limit: Option<Stop>,
}

impl TestError {
    pub(crate) fn new(diagnostic: &Diagnostic, sources: &SourceMap) -> Self {
        Self {
            text: diagnostic.render(sources),
            error: output::error_as_json(diagnostic, sources),
            code: diagnostic.exit_code(),
            limit: diagnostic.stop.clone(),
        }
    }
    /// Returns the result of a test that a limit left open.
    fn open(stop: Stop) -> Self {
        Self::new(&Diagnostic::stopped(stop), &SourceMap::new())
    }
}

/// A method to answer litmus tests.
trait Route: Sync {
    /// Returns the unit of effort: `states` or `executions`.
    fn unit(&self) -> &'static str;
    /// Answers a test. Outer errors belong to the model, inner ones to the test.
    fn answer(
        &self,
        session: &Session,
        source: SourceId,
        text: &str,
    ) -> Result<Result<TestResult, TestError>, Diagnostic>;
    /// Draws an execution that decides a test. Returns the picture and its number of events; `None`
    /// if no execution decides it. Errors: a limit.
    fn draw(
        &self,
        session: &Session,
        source: SourceId,
        text: &str,
        picture: Picture,
    ) -> Result<Option<(String, usize)>, Diagnostic>;
}

/// Returns no picture after a complete search. Error: a limit that ended the search.
fn complete<T>(stop: Stop) -> Result<Option<T>, Diagnostic> {
    if stop == Stop::Complete { Ok(None) } else { Err(Diagnostic::stopped(stop)) }
}

/// Runs a pure function over items on the session's threads; a single item starts no thread.
pub(crate) fn parallel<T: Sync, R: Send>(
    session: &Session,
    items: &[T],
    work: impl Fn(&T) -> R + Sync + Send,
) -> Result<Vec<R>, Diagnostic> {
    if items.len() < 2 || session.threads() == 1 {
        return Ok(items.iter().map(work).collect());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(session.threads()).build();
    let pool =
        pool.map_err(|e| Diagnostic::new(Stage::Internal, format!("cannot start threads: {e}")))?;
    Ok(pool.install(|| items.par_iter().map(work).collect()))
}

/// Runs the command.
pub(crate) fn run(session: &mut Session, args: &LitmusArgs) -> Result<u8, Diagnostic> {
    output::begin_stage("running litmus tests");
    let start = Instant::now();
    let (files, folders) = collect(&args.files, "litmus")?;
    if let (Some(machine), Some(interface)) = (&args.machine, &args.interface) {
        return crate::commands::conform::litmus_outcomes::run(
            session,
            args,
            (machine, interface),
            &files,
        );
    }
    let machine = memory::by_name(&args.model).filter(|_| args.by == LitmusMethod::Machine);
    let route: Box<dyn Route> = match machine {
        Some(memory) => Box::new(machine::MachineRoute { memory, buffer: args.buffer }),
        None => Box::new(axioms::Axioms::find(args)?),
    };
    let picture =
        args.evidence.as_deref().map(|path| Picture::of(path, &files, folders)).transpose()?;
    let expected = args.expected.as_deref().map(ExpectedAnswers::of_file).transpose()?;
    let report = Arc::new(LitmusReport {
        model: args.model.clone(),
        unit: route.unit(),
        results: Mutex::new(files.iter().map(|_| None).collect()),
        files,
        expected,
        lines: folders,
        quiet: session.common.quiet,
        start,
    });
    answers::set(report.clone());
    let numbered: Vec<(usize, &PathBuf)> = report.files.iter().enumerate().collect();
    parallel(session, &numbered, |(i, path)| report.add(*i, run_test(session, &*route, path)))?;
    let code = answers::finish(session.common.format)?;
    report.with(None, |table| finish(session, args, &*route, picture, &table))?;
    Ok(code)
}

/// Writes the requested files, and prints errors and warnings.
fn finish(
    session: &mut Session,
    args: &LitmusArgs,
    route: &dyn Route,
    picture: Option<Picture>,
    table: &VerdictTable<'_>,
) -> Result<(), Diagnostic> {
    if let Some(path) = &args.junit {
        write_text(path, &table.junit())?;
    }
    let mut shown_errors: Vec<&str> = Vec::new();
    for refused in table.results.iter().filter_map(|r| r.as_ref().err()) {
        // A model that does not compile is reported once.
        if refused.limit.is_none() && !shown_errors.contains(&refused.text.as_str()) {
            shown_errors.push(&refused.text);
            eprint!("{}", refused.text);
        }
    }
    match (picture, table.results.first(), &args.evidence) {
        (Some(Picture::Page), _, Some(out)) => {
            let object = with_executions(session, route, table.files, table.json())?;
            page::write(
                session,
                out,
                "Litmus tests",
                &[PageResult::of("litmus", output::with_head(object))],
            )?;
        }
        (Some(picture), Some(Ok(_)), Some(out)) => {
            draw(session, route, &table.files[0], picture, out)?
        }
        _ => {}
    }
    for result in table.results.iter().flatten().filter(|_| !session.common.quiet) {
        if !result.unnamed.is_empty() {
            eprintln!(
                "warning: in {} neither the code nor the initial state names {}: its value is 0",
                result.file,
                result.unnamed.join(", ")
            );
        }
    }
    let full: Vec<&str> = table
        .results
        .iter()
        .flatten()
        .filter(|r| r.full_buffer)
        .map(|r| r.answer.name.as_str())
        .take(5)
        .collect();
    if !full.is_empty() && !session.common.quiet {
        eprintln!(
            "warning: a store buffer was full in {}; other outcomes may need more capacity (--buffer)",
            full.join(", ")
        );
    }
    Ok(())
}

/// The results of all tests so far: the report of the run.
struct LitmusReport {
    model: String,
    unit: &'static str,
    files: Vec<PathBuf>,
    /// `None`: not known yet.
    results: Mutex<Vec<Option<Result<TestResult, TestError>>>>,
    expected: Option<ExpectedAnswers>,
    /// True if each test gets a line.
    lines: bool,
    quiet: bool,
    start: Instant,
}

impl LitmusReport {
    fn add(&self, test: usize, result: Result<TestResult, TestError>) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = results.get_mut(test) {
            *place = Some(result);
        }
    }
    /// Calls a function with the table of all tests. `stop`: the limit of those without a result.
    fn with<R>(&self, stop: Option<&Stop>, show: impl FnOnce(VerdictTable<'_>) -> R) -> R {
        let stop = stop.unwrap_or(&Stop::Interrupted);
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let results: Vec<_> = (results.into_iter())
            .map(|r| r.unwrap_or_else(|| Err(TestError::open(stop.clone()))))
            .collect();
        show(VerdictTable {
            model: &self.model,
            unit: self.unit,
            files: &self.files,
            results: &results,
            expected: self.expected.as_ref(),
            seconds: self.start.elapsed().as_secs_f64(),
        })
    }
}

impl Report for LitmusReport {
    fn object(&self, stop: Option<&Stop>) -> Value {
        self.with(stop, |table| table.json())
    }
    fn text(&self, stop: Option<&Stop>) -> String {
        self.with(stop, |table| {
            let mut text = table.text(self.lines, self.quiet);
            if stop.is_some() {
                text.extend(table.rejections());
            }
            text
        })
    }
    fn code(&self, stop: Option<&Stop>) -> u8 {
        self.with(stop, |table| table.exit_code())
    }
    fn is_complete(&self) -> bool {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.iter().all(Option::is_some)
    }
}

fn run_test(session: &Session, route: &dyn Route, path: &Path) -> Result<TestResult, TestError> {
    let mut sources = SourceMap::new();
    let read = read_source(path, &mut sources)
        .and_then(|(source, text)| route.answer(session, source, &text));
    let mut ran = read.map_err(|d| TestError::new(&d, &sources))??;
    ran.file = path.display().to_string();
    Ok(ran)
}

/// Formats of execution pictures.
#[derive(Clone, Copy)]
pub(crate) enum Picture {
    Svg,
    Dot,
    /// Events and relations as an object.
    Json,
    /// A page with the answers of all tests.
    Page,
}

impl Picture {
    /// Returns the format of a file name. Errors: an unknown extension; a picture of several tests.
    pub(crate) fn of(path: &Path, files: &[PathBuf], folders: bool) -> Result<Self, Diagnostic> {
        let picture = match mu_base::file_extension(path).as_deref() {
            Some("svg") => Self::Svg,
            Some("dot") => Self::Dot,
            Some("json") => Self::Json,
            Some("html") => Self::Page,
            _ => return Err(unknown_evidence_extension(path, ".svg, .dot, .json or .html")),
        };
        if matches!(picture, Self::Page) {
            return expect_writable(path).map(|()| picture);
        }
        if folders || files.len() != 1 {
            return Err(Diagnostic::new(Stage::Usage, "`--evidence` takes a single test"));
        }
        expect_writable(path)?;
        Ok(picture)
    }
}

/// Adds to each answer a deciding execution, if there is one. Each such test is run again.
fn with_executions(
    session: &mut Session,
    route: &dyn Route,
    files: &[PathBuf],
    mut object: Value,
) -> Result<Value, Diagnostic> {
    for (i, path) in files.iter().enumerate() {
        if object["tests"][i].get("states").is_none() {
            continue;
        }
        output::begin_stage_on("drawing an execution", path);
        let (source, text) = session.read_source(path)?;
        let drawn = match route.draw(session, source, &text, Picture::Json) {
            // The answer is known; only its picture is missing.
            Err(Diagnostic { stop: Some(_), .. }) => None,
            drawn => drawn?,
        };
        if let Some((graph, _)) = drawn {
            let graph = serde_json::from_str(&graph)
                .map_err(|e| Diagnostic::internal(format!("an execution is not JSON: {e}")))?;
            object["tests"][i]["execution"] = graph;
            object["tests"][i]["text"] = text.into();
        }
    }
    Ok(object)
}

/// Draws an execution that decides a test.
fn draw(
    session: &mut Session,
    route: &dyn Route,
    path: &Path,
    picture: Picture,
    out: &Path,
) -> Result<(), Diagnostic> {
    output::begin_stage_on("drawing an execution", path);
    let (source, text) = session.read_source(path)?;
    let why = match route.draw(session, source, &text, picture) {
        Ok(Some((picture, events))) => {
            write_text(out, &picture)?;
            session.log(format!("wrote {}: {events} events", out.display()));
            return Ok(());
        }
        Ok(None) => "no execution decides it",
        Err(Diagnostic { stop: Some(_), .. }) => "none was found within the limits",
        Err(why) => return Err(why),
    };
    eprintln!("{}: {why}: nothing is written", path.display());
    Ok(())
}
