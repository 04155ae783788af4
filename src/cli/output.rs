//! Standard output, and a watchdog: a limit or a signal ends the run within two seconds, whatever
//! stage is running.
//!
//! Searches poll their budget and stop by themselves with what they found. Reading, linearising,
//! reducing and the like do not. If a limit is exceeded and the stage does not end within
//! [`GRACE`], the watchdog prints what is known so far, verdict *unknown*, removes half-written
//! files and ends the process with exit code 3 (1 if a formula is already known not to hold). A
//! stage that does not poll may exceed the memory limit by 1 %.
//!
//! Invariant: a result is printed once, by the first holder of the lock. The state here is global,
//! as standard output is.

use super::args::Format;
use mu_base::host::Instant;
use mu_base::limits::resident_bytes;
use mu_base::{Budget, Diagnostic, SourceMap, Span, Stage, Stop};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a stage may take to notice that a limit is passed.
const GRACE: Duration = Duration::from_millis(1200);
/// The same if the search is to be kept: a step over very many obligations is not left half done.
const KEPT_GRACE: Duration = Duration::from_secs(60);
/// Time between looks.
const TICK: Duration = Duration::from_millis(10);

struct State {
    format: Format,
    /// What is under way, with what, and since when.
    stage: &'static str,
    about: Option<String>,
    since: Instant,
    /// What is over, with the seconds that it took, for the file of timings.
    stages: Vec<Value>,
    timings: Option<PathBuf>,
    /// What every JSON object begins with: the model's file and its parameters, if there are any.
    head: Map<String, Value>,
    /// Results so far, as they would stand in the JSON object.
    known: Map<String, Value>,
    /// Formulas that have a verdict, in JSON, and those that have none yet.
    verdicts: Vec<Value>,
    waiting: Vec<String>,
    violated: bool,
    /// The result is printed.
    closed: bool,
    /// No watch: something is being kept that may take long.
    patient: bool,
    /// A program reads along.
    lines: bool,
    /// A limit ends in a checkpoint: the search may come to the end of what it is at.
    kept: bool,
    /// Files that are being written.
    parts: Vec<PathBuf>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| {
    Mutex::new(State {
        format: Format::Text,
        stage: "starting",
        about: None,
        since: Instant::now(),
        stages: Vec::new(),
        timings: None,
        head: Map::new(),
        known: Map::new(),
        verdicts: Vec::new(),
        waiting: Vec::new(),
        violated: false,
        closed: false,
        patient: false,
        lines: false,
        kept: false,
        parts: Vec::new(),
    })
});

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes to standard output the result, or a part of it if formulas are waiting. Error: a closed
/// pipe, a full disk.
pub(super) fn print(text: &str) -> Result<(), Diagnostic> {
    let mut state = state();
    state.closed = state.waiting.is_empty();
    written(text)
}

/// Version of the schemas in `docs/schema`: one more whenever a key is renamed, removed or gets
/// another meaning.
const SCHEMA_VERSION: u32 = 2;

/// Writes the result as one JSON object, which says by which program and of which model it is.
/// Errors as those of [`print`].
pub(super) fn object(value: Value) -> Result<(), Diagnostic> {
    let value = state().headed(value);
    print(&format!("{value}\n"))
}

/// Says what went wrong as a JSON object, unless there is a result already.
pub(super) fn error(diagnostic: &Diagnostic, sources: &SourceMap) {
    let state = state();
    if state.closed {
        return;
    }
    // Standard output that is gone cannot be told of.
    let _ = written(&format!(
        "{}\n",
        state.headed(json!({ "error": error_as_json(diagnostic, sources) }))
    ));
}

/// A refusal as JSON: stage, message, place, notes.
pub(super) fn error_as_json(diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
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

/// The command of this process, as a line that a shell reads: results say how they were made.
pub(super) fn command_line() -> String {
    std::iter::once("mu-check".to_string())
        .chain(mu_base::host::arguments().iter().skip(1).map(|w| for_shell(w)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word as a shell reads it.
pub(super) fn for_shell(word: &str) -> String {
    let plain =
        !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./=,:+".contains(c));
    if plain { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Results say by which command they were made.
pub(super) fn command() {
    state().head.insert("command".into(), command_line().into());
}

/// An object with what every result begins with.
pub(super) fn with_head(value: Value) -> Value {
    state().headed(value)
}

/// The model's file.
pub(super) fn model(file: &Path) {
    state().head.insert("model".into(), file.display().to_string().into());
}

/// The model's parameters with their values.
pub(super) fn parameters(values: impl Iterator<Item = (String, String)>) {
    let values: Map<String, Value> = values.map(|(name, value)| (name, value.into())).collect();
    state().head.insert("parameters".into(), values.into());
}

/// The parameters that results have, if there are some.
pub(super) fn parameters_so_far() -> Option<Value> {
    state().head.get("parameters").cloned()
}

/// Results have these parameters again.
pub(super) fn restore_parameters(values: Option<Value>) {
    if let Some(values) = values {
        state().head.insert("parameters".into(), values);
    }
}

/// The word for a verdict in JSON, the same for all commands, from the word of the question's own
/// field.
pub(super) fn verdict_word(of_field: &str) -> &'static str {
    match of_field {
        "safe" | "robust" | "proved" | "Ok" => "true",
        "unsafe" | "not robust" | "refused" | "No" => "false",
        _ => "unknown",
    }
}

/// Writes to standard output a part of the result; more follows.
pub(super) fn part_of_text(text: &str) -> Result<(), Diagnostic> {
    let _state = state();
    written(text)
}

fn written(text: &str) -> Result<(), Diagnostic> {
    let mut out = mu_base::host::out().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write to standard output: {e}")))
}

/// Says what is under way.
pub(super) fn stage(name: &'static str) {
    state().begin(name, None);
}

/// Says what is under way, and with which file.
pub(super) fn stage_of(name: &'static str, file: &Path) {
    state().begin(name, Some(file.display().to_string()));
}

/// The file that gets the stages with their seconds when the run ends.
pub(super) fn time_stages(file: &Path) {
    state().timings = Some(file.to_path_buf());
}

/// The run ends: the timings are written, if that was asked for.
pub(super) fn timed(budget: &Budget) -> Result<(), Diagnostic> {
    let mut state = state();
    let Some(path) = state.timings.clone() else { return Ok(()) };
    let text = state.timings(budget);
    drop(state);
    super::files::write_text(&path, &text)
}

impl State {
    fn begin(&mut self, name: &'static str, about: Option<String>) {
        let now = Instant::now();
        let mut over = json!({ "stage": self.stage, "seconds": (now - self.since).as_secs_f64() });
        if let Some(about) = &self.about {
            over["file"] = json!(about);
        }
        self.stages.push(over);
        if self.lines {
            progress(&json!({ "stage": name, "about": about }));
        }
        (self.stage, self.about, self.since) = (name, about, now);
    }
    /// An object with what all begin with.
    fn headed(&self, mut value: Value) -> Value {
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
    /// Ends the last stage.
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

/// From now on a program reads along: what is under way goes to standard error, a JSON object a
/// line.
pub(super) fn read_along() {
    state().lines = true;
}

/// Whether a program reads along.
pub(super) fn has_reader() -> bool {
    state().lines
}

/// Tells the program that reads along how far a run is.
pub(super) fn progress(value: &Value) {
    eprintln!("{}", json!({ "progress": value }));
}

/// Keeps a figure that a result will have.
pub(super) fn know(key: &str, value: Value) {
    state().known.insert(key.into(), value);
}

/// Formulas that are to get verdicts.
pub(super) fn expect(formulas: impl Iterator<Item = String>) {
    state().waiting = formulas.collect();
}

/// A waiting formula has its verdict: `text` is printed now, or its JSON kept for the end.
pub(super) fn verdict_of(
    formula: &Path,
    object: Option<Value>,
    text: Option<String>,
    violated: bool,
) -> Result<(), Diagnostic> {
    let mut state = state();
    let name = formula.display().to_string();
    if let Some(at) = state.waiting.iter().position(|w| *w == name) {
        state.waiting.remove(at);
    }
    state.closed = state.waiting.is_empty() && text.is_some();
    if let Some(object) = object.as_ref().filter(|_| state.lines) {
        progress(&json!({ "formula": name, "verdict": object["verdict"] }));
    }
    state.violated |= violated;
    state.verdicts.extend(object);
    text.map_or(Ok(()), |text| written(&text))
}

/// The verdicts so far, in JSON.
pub(super) fn verdicts() -> Vec<Value> {
    state().verdicts.clone()
}

/// Whether something is being kept (a checkpoint), which may take its time.
pub(super) fn keeping(now: bool) {
    state().patient = now;
}

/// From now on a limit ends in a checkpoint, for which a search gets more time.
pub(super) fn will_keep() {
    state().kept = true;
}

/// A file is being written under this name; it is removed if the run ends before [`whole`].
pub(super) fn part(path: &Path) {
    state().parts.push(path.to_path_buf());
}

/// The file is renamed or gone.
pub(super) fn whole(path: &Path) {
    state().parts.retain(|p| p != path);
}

/// Begins to watch a run. What `listen` starts costs as much as a small run, so it waits for the
/// first look: a signal before that ends the process, as one before its start would.
pub(super) fn watch(budget: &Budget, format: Format, listen: fn(&Budget)) {
    state().format = format;
    let budget = budget.clone();
    let look = move || {
        let mut passed: Option<Instant> = None;
        std::thread::sleep(TICK);
        listen(&budget);
        loop {
            // A search can touch some megabytes in a millisecond: near the limit a longer look away
            // would miss it by that.
            let near = budget.limits().max_memory.is_some_and(|m| resident_bytes() > m / 4 * 3);
            std::thread::sleep(if near { TICK / 10 } else { TICK });
            let fine = budget.check(0).and_then(|()| budget.check_memory());
            let Err(stop) = fine else {
                passed = None;
                continue;
            };
            if state().patient {
                passed = None;
                continue;
            }
            let over = budget.limits().max_memory.is_some_and(|m| resident_bytes() > m + m / 100);
            if over
                || passed.get_or_insert_with(Instant::now).elapsed()
                    > if state().kept { KEPT_GRACE } else { GRACE }
            {
                give_up(&budget, &stop);
            }
        }
    };
    // Without a watch the stages that poll still stop.
    let _ = std::thread::Builder::new().name("watch".into()).spawn(look);
}

/// Ends the process with what is known, unless the result is printed or being kept.
pub(super) fn give_up(budget: &Budget, stop: &Stop) {
    let mut state = state();
    if state.closed || state.patient {
        return;
    }
    if let Some(path) = state.timings.clone() {
        let _ = mu_base::host::fs::write(path, state.timings(budget));
    }
    for part in &state.parts {
        let _ = mu_base::host::fs::remove_file(part);
    }
    let result = match state.format {
        Format::Json => written(&format!("{}\n", state.headed(as_json(&state, budget, stop)))),
        Format::Text => written(&as_text(&state, stop)),
    };
    std::process::exit(match result {
        Err(_) => 2,
        Ok(()) if state.violated => 1,
        Ok(()) => 3,
    })
}

fn as_json(state: &State, budget: &Budget, stop: &Stop) -> Value {
    let mut object = state.known.clone();
    object.insert("stop".into(), stop.word().into());
    object.insert("stage".into(), state.stage.into());
    object.insert("seconds".into(), json!(budget.elapsed().as_secs_f64()));
    object.insert("peak_memory_bytes".into(), json!(mu_base::limits::peak_resident_bytes()));
    if !state.waiting.is_empty() {
        let unknown = |formula: &String| json!({ "formula": formula, "verdict": "unknown", "reason": stop.word(), "evidence": [], "vacuous": [] });
        object.insert(
            "results".into(),
            state.verdicts.iter().cloned().chain(state.waiting.iter().map(unknown)).collect(),
        );
    }
    object.into()
}

fn as_text(state: &State, stop: &Stop) -> String {
    let mut text = String::new();
    for (key, value) in &state.known {
        text += &format!("{key:<13}{value}\n");
    }
    for formula in &state.waiting {
        text += &format!("{formula}: unknown ({})\n", stop.word());
    }
    if state.waiting.is_empty() {
        text += &format!("unknown ({})\n", stop.word());
    }
    text += &format!("stopped      {} while {}\n", stop.word(), state.stage);
    text
}
