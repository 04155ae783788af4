//! Standard output, and a watchdog: a limit or a signal ends the run within two seconds, in any
//! stage.
//!
//! Searches poll their budget and stop with partial results. Other stages, such as reading,
//! linearising and reducing, do not poll. If a limit is exceeded and the stage does not end within
//! [`GRACE`], the watchdog prints the answers so far ([`answers`]) with the verdict *unknown* for
//! all others, removes partial files and ends the process with exit code 3 (1 if some answer is
//! already known to be false). A stage that does not poll may exceed the memory limit by 1 %.
//!
//! Invariant: the result is printed once, by the first holder of the lock. The state in this module
//! is global, because standard output is global.

pub(crate) mod answers;
pub(crate) mod certificate;
pub(crate) mod notes;
pub(crate) mod page;
pub(crate) mod picture;
pub(crate) mod progress;

use self::answers::Report;
use crate::args::Format;
use mu_base::host::Instant;
use mu_base::limits::resident_bytes;
use mu_base::{Budget, Diagnostic, SourceMap, Span, Stage, Stop};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time that a stage has to react to an exceeded limit.
const GRACE: Duration = Duration::from_millis(1200);
/// The same for a run that writes a checkpoint at the end: a step over many obligations is not
/// interrupted.
const CHECKPOINT_GRACE: Duration = Duration::from_secs(60);
/// Interval between checks of the watchdog.
const WATCH_INTERVAL: Duration = Duration::from_millis(10);

/// Global state of the output.
struct OutputState {
    format: Format,
    /// Current stage, its file, and its start.
    stage: &'static str,
    about: Option<String>,
    since: Instant,
    /// Completed stages with their seconds, for the file of timings.
    stages: Vec<Value>,
    timings: Option<PathBuf>,
    /// First members of every JSON object: the model's file and its parameters, if any.
    head: Map<String, Value>,
    /// Results so far, as members of the JSON object.
    known: Map<String, Value>,
    /// Answers so far.
    report: Option<Arc<dyn Report>>,
    /// True if the result is one verdict.
    has_one_verdict: bool,
    /// True if the result is printed.
    is_printed: bool,
    /// True while a checkpoint is being written: the watchdog does not end the process.
    checkpoint_in_progress: bool,
    /// True if progress is written as JSON lines.
    progress_lines: bool,
    /// True if a limit leads to a checkpoint: the search may finish its current step.
    ends_in_checkpoint: bool,
    /// Partially written files.
    partial_files: Vec<PathBuf>,
}

static STATE: LazyLock<Mutex<OutputState>> = LazyLock::new(|| {
    Mutex::new(OutputState {
        format: Format::Text,
        stage: "starting",
        about: None,
        since: Instant::now(),
        stages: Vec::new(),
        timings: None,
        head: Map::new(),
        known: Map::new(),
        report: None,
        has_one_verdict: false,
        is_printed: false,
        checkpoint_in_progress: false,
        progress_lines: false,
        ends_in_checkpoint: false,
        partial_files: Vec::new(),
    })
});

fn state() -> MutexGuard<'static, OutputState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints the result, or a part of it while answers are open. Errors: a closed pipe, a full disk.
pub(crate) fn print(text: &str) -> Result<(), Diagnostic> {
    let mut state = state();
    state.is_printed = state.report.as_ref().is_none_or(|r| r.is_complete());
    write_out(text)
}

/// Version of the schemas in `docs/schema`. It increases when a key is renamed, removed, or changes
/// its meaning.
const SCHEMA_VERSION: u32 = 2;

/// Prints the result as one JSON object, with the program version and the model. Errors: see
/// [`print()`].
pub(crate) fn print_object(value: Value) -> Result<(), Diagnostic> {
    let value = state().with_head(value);
    print(&format!("{value}\n"))
}

/// Prints an error as a JSON object, unless the result is already printed.
pub(crate) fn print_error(diagnostic: &Diagnostic, sources: &SourceMap) {
    let state = state();
    if state.is_printed {
        return;
    }
    // A closed standard output cannot be reported anywhere.
    let _ = write_out(&format!(
        "{}\n",
        state.with_head(json!({ "error": error_as_json(diagnostic, sources) }))
    ));
}

/// Returns an error as JSON: stage, message, place, notes.
pub(crate) fn error_as_json(diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
    let place = |span: Span| {
        let (line, column) = sources.line_column(span);
        json!({ "file": sources.get(span.source).name, "line": line, "column": column, "text": sources.text(span) })
    };
    let own = diagnostic.span.map(place);
    let line = diagnostic
        .line
        .as_ref()
        .map(|l| json!({ "file": l.file, "line": l.number, "column": l.column, "text": l.text }));
    let related = diagnostic
        .related
        .iter()
        .map(|(span, message)| json!({ "message": message, "place": place(*span) }));
    json!({
        "stage": diagnostic.stage.word(),
        "message": diagnostic.message,
        "place": own.or(line),
        "notes": diagnostic.notes,
        "related": related.collect::<Vec<_>>(),
        "exit_code": diagnostic.exit_code(),
    })
}

/// Returns the command of this process as a shell command line, so that results can be reproduced.
pub(crate) fn command_line() -> String {
    std::iter::once("mu-check".to_string())
        .chain(mu_base::host::arguments().iter().skip(1).map(|w| shell_quoted(w)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Quotes a word for a shell.
pub(crate) fn shell_quoted(word: &str) -> String {
    let plain =
        !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./=,:+".contains(c));
    if plain { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Adds the command line to the results.
pub(crate) fn record_command() {
    state().head.insert("command".into(), command_line().into());
}

/// Returns the object with the members that every result begins with.
pub(crate) fn with_head(value: Value) -> Value {
    state().with_head(value)
}

/// Adds the model's file to the results.
pub(crate) fn record_model(file: &Path) {
    state().head.insert("model".into(), file.display().to_string().into());
}

/// Adds the model's parameters to the results.
pub(crate) fn record_parameters(values: impl Iterator<Item = (String, String)>) {
    let values: Map<String, Value> = values.map(|(name, value)| (name, value.into())).collect();
    state().head.insert("parameters".into(), values.into());
}

/// Returns the parameters of the results; `None` if there are none.
pub(crate) fn recorded_parameters() -> Option<Value> {
    state().head.get("parameters").cloned()
}

/// Sets the parameters of the results again.
pub(crate) fn restore_parameters(values: Option<Value>) {
    if let Some(values) = values {
        state().head.insert("parameters".into(), values);
    }
}

/// Returns the verdict for JSON, which is the same for all commands. `of_field`: the word in the
/// command's own field.
pub(crate) fn verdict_word(of_field: &str) -> &'static str {
    match of_field {
        "safe" | "robust" | "proved" | "Ok" => "true",
        "unsafe" | "not robust" | "refused" | "No" => "false",
        _ => "unknown",
    }
}

/// Prints a part of the result; more parts follow.
pub(crate) fn print_part(text: &str) -> Result<(), Diagnostic> {
    let _state = state();
    write_out(text)
}

fn write_out(text: &str) -> Result<(), Diagnostic> {
    let mut out = mu_base::host::out().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write to standard output: {e}")))
}

/// Begins a stage.
pub(crate) fn begin_stage(name: &'static str) {
    state().begin(name, None);
}

/// Begins a stage that works on a file.
pub(crate) fn begin_stage_on(name: &'static str, file: &Path) {
    state().begin(name, Some(file.display().to_string()));
}

/// Sets the file that receives the stages with their seconds at the end of the run.
pub(crate) fn write_timings_to(file: &Path) {
    state().timings = Some(file.to_path_buf());
}

/// Ends the last stage and writes the timings if the user requested them.
pub(crate) fn write_timings(budget: &Budget) -> Result<(), Diagnostic> {
    let mut state = state();
    let Some(path) = state.timings.clone() else { return Ok(()) };
    let text = state.timings(budget);
    drop(state);
    crate::pipeline::files::write_text(&path, &text)
}

impl OutputState {
    /// True if figures of the search belong to the result of a stopped run.
    fn shows_figures(&self) -> bool {
        self.report.as_ref().is_none_or(|r| r.shows_figures())
    }
    fn begin(&mut self, name: &'static str, about: Option<String>) {
        let now = Instant::now();
        let mut over = json!({ "stage": self.stage, "seconds": (now - self.since).as_secs_f64() });
        if let Some(about) = &self.about {
            over["file"] = json!(about);
        }
        self.stages.push(over);
        if self.progress_lines {
            print_progress(&json!({ "stage": name, "about": about }));
        }
        (self.stage, self.about, self.since) = (name, about, now);
    }
    /// Adds the members that every object begins with.
    fn with_head(&self, mut value: Value) -> Value {
        if let Some(object) = value.as_object_mut() {
            let tool = json!({ "name": "mu-check", "version": env!("CARGO_PKG_VERSION") });
            let own =
                [("tool".to_string(), tool), ("schema_version".to_string(), SCHEMA_VERSION.into())];
            let refused = object.contains_key("error");
            let head =
                self.head.clone().into_iter().filter(|(key, _)| !refused || key != "command");
            for (key, value) in head.chain(own) {
                object.entry(key).or_insert(value);
            }
        }
        value
    }
    /// Ends the last stage and returns all timings.
    fn timings(&mut self, budget: &Budget) -> String {
        self.begin("done", None);
        let (seconds, memory) =
            (budget.elapsed().as_secs_f64(), mu_base::limits::peak_resident_bytes());
        format!(
            "{:#}\n",
            json!({ "stages": self.stages, "seconds": seconds, "peak_memory_bytes": memory })
        )
    }
}

/// Enables progress lines: stages are printed to standard error, one JSON object per line.
pub(crate) fn enable_progress_lines() {
    state().progress_lines = true;
}

/// True if progress lines are enabled.
pub(crate) fn has_progress_lines() -> bool {
    state().progress_lines
}

/// Prints a progress line.
pub(crate) fn print_progress(value: &Value) {
    eprintln!("{}", json!({ "progress": value }));
}

/// Records a figure for the result.
pub(crate) fn record(key: &str, value: Value) {
    state().known.insert(key.into(), value);
}

/// Returns a recorded figure.
pub(crate) fn recorded_figure(key: &str) -> Option<Value> {
    state().known.get(key).cloned()
}

/// Announces that the result is one verdict, so that the watchdog reports it as unknown.
pub(crate) fn expect_one_verdict() {
    state().has_one_verdict = true;
}

/// Prints the verdict of a formula as a progress line, if progress lines are enabled.
pub(crate) fn print_verdict_progress(formula: &str, verdict: &Value) {
    if has_progress_lines() {
        print_progress(&json!({ "formula": formula, "verdict": verdict }));
    }
}

/// Updates the unfinished results and prints a part of the result, in one step for the watchdog.
/// `update` returns true if all results are known.
pub(crate) fn print_after(
    update: impl FnOnce() -> bool,
    text: Option<&str>,
) -> Result<(), Diagnostic> {
    let mut state = state();
    let complete = update();
    state.is_printed = complete && text.is_some();
    text.map_or(Ok(()), write_out)
}

/// Sets if a checkpoint is being written, which may take long.
pub(crate) fn set_checkpoint_in_progress(now: bool) {
    state().checkpoint_in_progress = now;
}

/// Announces that limits lead to a checkpoint, for which a search gets more time.
pub(crate) fn expect_checkpoint() {
    state().ends_in_checkpoint = true;
}

/// Registers a partially written file; it is removed if the run ends before
/// [`unregister_partial_file`].
pub(crate) fn register_partial_file(path: &Path) {
    state().partial_files.push(path.to_path_buf());
}

/// Unregisters a file that is complete or removed.
pub(crate) fn unregister_partial_file(path: &Path) {
    state().partial_files.retain(|p| p != path);
}

/// Starts the watchdog thread. `listen` costs as much as a small run, so the thread calls it after
/// the first interval; an earlier signal ends the process by default.
pub(crate) fn watch(budget: &Budget, format: Format, listen: fn(&Budget)) {
    state().format = format;
    let budget = budget.clone();
    let watch_loop = move || {
        let mut exceeded_since: Option<Instant> = None;
        std::thread::sleep(WATCH_INTERVAL);
        listen(&budget);
        loop {
            let near = budget.is_near_memory_limit();
            std::thread::sleep(if near { WATCH_INTERVAL / 10 } else { WATCH_INTERVAL });
            let checked = budget.check_all_limits();
            let Err(stop) = checked else {
                exceeded_since = None;
                continue;
            };
            if state().checkpoint_in_progress {
                exceeded_since = None;
                continue;
            }
            let over = budget.limits().max_memory.is_some_and(|m| resident_bytes() > m + m / 100);
            if over
                || exceeded_since.get_or_insert_with(Instant::now).elapsed()
                    > if state().ends_in_checkpoint { CHECKPOINT_GRACE } else { GRACE }
            {
                give_up(&budget, &stop);
            }
        }
    };
    // Without the thread, the stages that poll still stop.
    let _ = std::thread::Builder::new().name("watch".into()).spawn(watch_loop);
}

/// Ends the process with the results so far, unless the result is printed or a checkpoint is being
/// written.
pub(crate) fn give_up(budget: &Budget, stop: &Stop) {
    let mut state = state();
    if state.is_printed || state.checkpoint_in_progress {
        return;
    }
    if let Some(path) = state.timings.clone() {
        let _ = mu_base::host::fs::write(path, state.timings(budget));
    }
    for part in &state.partial_files {
        let _ = mu_base::host::fs::remove_file(part);
    }
    let (result, code) = print_stopped(&state, state.format, budget, stop);
    std::process::exit(if result.is_ok() { code } else { 2 })
}

/// Prints the answers so far of a run that a limit ended by an error, as the watchdog prints them.
/// Returns the exit code; `None` if no report is registered, or the result is already printed.
pub(crate) fn print_limited(
    format: Format,
    budget: &Budget,
    stop: &Stop,
) -> Option<Result<u8, Diagnostic>> {
    let mut state = state();
    if state.is_printed || state.report.is_none() {
        return None;
    }
    state.is_printed = true;
    let (result, code) = print_stopped(&state, format, budget, stop);
    Some(result.map(|()| u8::try_from(code).unwrap_or(3)))
}

/// Prints the answers so far. Returns the exit code.
fn print_stopped(
    state: &OutputState,
    format: Format,
    budget: &Budget,
    stop: &Stop,
) -> (Result<(), Diagnostic>, i32) {
    let result = match format {
        Format::Json => write_out(&format!("{}\n", state.with_head(as_json(state, budget, stop)))),
        Format::Text => write_out(&as_text(state, stop)),
    };
    (result, state.report.as_ref().map_or(3, |report| report.code(Some(stop)).into()))
}

fn as_json(state: &OutputState, budget: &Budget, stop: &Stop) -> Value {
    let mut object = match &state.report {
        Some(report) => match report.object(Some(stop)) {
            Value::Object(object) => object,
            _ => Map::new(),
        },
        None => Map::new(),
    };
    if state.shows_figures() {
        for (key, value) in &state.known {
            object.entry(key.as_str()).or_insert_with(|| value.clone());
        }
    }
    if state.has_one_verdict {
        object.entry("verdict").or_insert_with(|| "unknown".into());
    }
    object.insert("stop".into(), stop.word().into());
    object.insert("stage".into(), state.stage.into());
    object.insert("seconds".into(), json!(budget.elapsed().as_secs_f64()));
    object.insert("peak_memory_bytes".into(), json!(mu_base::limits::peak_resident_bytes()));
    object.into()
}

fn as_text(state: &OutputState, stop: &Stop) -> String {
    let mut text = String::new();
    for (key, value) in state.known.iter().filter(|_| state.shows_figures()) {
        text += &format!("{key:<13}{value}\n");
    }
    match &state.report {
        Some(report) => text += &report.text(Some(stop)),
        None => text += &format!("unknown ({})\n", stop.word()),
    }
    text += &format!("stopped      {} while {}\n", stop.word(), state.stage);
    text
}
