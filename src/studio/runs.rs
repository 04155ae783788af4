//! Runs of the command line for a page: a process each, with limits, until it ends or is stopped.
//!
//! In: arguments. Out: events during the run (progress, rows of a sweep), and the unchanged JSON of
//! the command at the end. A stopped run loses its standard input, which the program treats as an
//! interrupt; it is killed if it does not end then, or if it exceeds its time. All runs end with
//! this process, because that closes their input. Rows of a sweep are processes of the sweep, and
//! end with it.

use crate::events::Hub;
use crate::folder::Folder;
use crate::http::{HttpError, refusal};
use crate::request_args::{self, RunArguments};
use crate::scratch::Scratch;
use crate::{Limits, ServerSettings};
use mu_base::mixing::{FNV_BASIS, fnv};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time for a run to end by itself after it was stopped or reached its limit.
const GRACE: Duration = Duration::from_secs(3);
/// Limit on the stored results; older ones are dropped.
const MOST_KEPT: usize = 40;
/// Limits on the bytes of a result, the lines of messages, and the bytes of each line.
const MOST_BYTES: u64 = 64 << 20;
const MOST_LINES: usize = 200;
/// Number of last message lines in an event.
const LAST_LINES: usize = 20;
const MOST_OF_A_LINE: usize = 2_000;
/// Interval of checks of a process.
const TICK: Duration = Duration::from_millis(40);
/// Prefix of a progress line of the program.
const PROGRESS: &str = "{\"progress\":";

#[derive(Clone, Copy, PartialEq)]
enum RunState {
    Running,
    Stopping,
    /// Ended; the flag is true if it was stopped.
    Over {
        stopped: bool,
    },
}

/// A run.
struct StudioRun {
    kind: &'static str,
    model: String,
    command: String,
    state: RunState,
    /// Number of changes: a page receives updates over two connections, in any order.
    version: u64,
    begin: Instant,
    seconds: f64,
    progress: Value,
    /// Formulas with a verdict.
    verdicts: Vec<Value>,
    /// Messages of the program.
    said: Vec<String>,
    result: Option<Value>,
    code: Option<i32>,
    /// The reason for a missing result.
    failed: Option<String>,
}

impl StudioRun {
    /// Applies a progress line: verdicts are appended, other values are replaced.
    fn hear(&mut self, news: Value) {
        if news.get("verdict").is_some() {
            self.verdicts.push(news);
        } else if let (Some(known), Some(news)) = (self.progress.as_object_mut(), news.as_object())
        {
            known.extend(news.clone());
        }
    }

    /// Returns the run without its result.
    fn json(&self, id: u64) -> Value {
        let state = match self.state {
            RunState::Running => "running",
            RunState::Stopping => "stopping",
            RunState::Over { stopped: true } => "stopped",
            RunState::Over { stopped: false } => "over",
        };
        let seconds = if matches!(self.state, RunState::Over { .. }) {
            self.seconds
        } else {
            self.begin.elapsed().as_secs_f64()
        };
        json!({
            "id": id, "kind": self.kind, "model": self.model, "command": self.command, "state": state, "version": self.version, "seconds": seconds,
            "progress": self.progress, "verdicts": self.verdicts, "said": &self.said[self.said.len().saturating_sub(LAST_LINES)..], "code": self.code, "failed": self.failed, "has_result": self.result.is_some(),
            "rows": self.result.as_ref().and_then(|r| r["rows"].as_array()).map_or(0, Vec::len),
        })
    }
}

/// All runs.
pub(crate) struct Runs {
    program: PathBuf,
    root: PathBuf,
    limits: Limits,
    hub: Arc<Hub>,
    /// Folder for tables of sweeps; removed when the server ends.
    scratch: Scratch,
    /// Held while a report page is written.
    reporting: Mutex<()>,
    all: Mutex<(u64, BTreeMap<u64, StudioRun>)>,
}

impl Runs {
    pub(crate) fn new(
        settings: &ServerSettings,
        root: PathBuf,
        hub: Arc<Hub>,
    ) -> std::io::Result<Self> {
        let scratch = Scratch::new()?;
        let (program, limits) = (settings.program.clone(), settings.limits.clone());
        Ok(Self {
            program,
            root,
            limits,
            hub,
            scratch,
            reporting: Mutex::default(),
            all: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, StudioRun>)> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a run, unless there are too many.
    pub(crate) fn start(
        self: &Arc<Self>,
        wish: &Value,
        folder: &Folder,
    ) -> Result<Value, HttpError> {
        if wish["kind"] == "simulate" {
            return refusal(400, "`simulate` is for walks");
        }
        let out = self.scratch.path().join(sweep_name(wish));
        let RunArguments { kind, model, arguments, command } =
            request_args::run_arguments(wish, folder, &self.limits, &out)?;
        let mut all = self.lock();
        let busy = |r: &&StudioRun| !matches!(r.state, RunState::Over { .. });
        if all.1.values().filter(busy).count() >= self.limits.runs {
            return refusal(
                429,
                format!(
                    "{} runs are active, which is the maximum; stop one, or wait",
                    self.limits.runs
                ),
            );
        }
        if kind == "sweep"
            && all.1.values().filter(busy).any(|r| r.kind == "sweep" && r.command == command)
        {
            return refusal(429, "this sweep is already running");
        }
        let failed = |e: std::io::Error| {
            HttpError(500, format!("cannot start `{}`: {e}", self.program.display()))
        };
        let child = process(&self.program, &self.root, Some(self.scratch.path()))
            .args(&arguments)
            .spawn()
            .map_err(failed)?;
        let id = all.0 + 1;
        all.0 = id;
        let run = StudioRun {
            kind,
            model,
            command,
            state: RunState::Running,
            version: 0,
            begin: Instant::now(),
            seconds: 0.0,
            progress: json!({}),
            verdicts: Vec::new(),
            said: Vec::new(),
            result: None,
            code: None,
            failed: None,
        };
        let summary = run.json(id);
        all.1.insert(id, run);
        while all.1.len() > MOST_KEPT {
            let Some(oldest) = all.1.iter().find(|(_, r)| !busy(r)).map(|(id, _)| *id) else {
                break;
            };
            all.1.remove(&oldest);
        }
        drop(all);
        self.hub.broadcast("run", &summary);
        let runs = self.clone();
        std::thread::spawn(move || runs.attend(id, child, (kind == "sweep").then_some(out)));
        Ok(summary)
    }

    /// Requests the end of a run.
    pub(crate) fn stop(&self, id: u64) -> Result<Value, HttpError> {
        let mut all = self.lock();
        let Some(run) = all.1.get_mut(&id) else {
            return refusal(404, format!("there is no run {id}"));
        };
        if run.state == RunState::Running {
            run.state = RunState::Stopping;
            run.version += 1;
        }
        Ok(run.json(id))
    }

    /// Returns a run with its result.
    pub(crate) fn get(&self, id: u64) -> Result<Value, HttpError> {
        let all = self.lock();
        let Some(run) = all.1.get(&id) else {
            return refusal(404, format!("there is no run {id}"));
        };
        let mut object = run.json(id);
        object["result"] = run.result.clone().unwrap_or_default();
        Ok(object)
    }

    /// Returns the parameters that a model declares, as `-D help` prints them; an empty list for a
    /// model with an error, which the editor shows.
    pub(crate) fn parameters(&self, model: &str, folder: &Folder) -> Result<Value, HttpError> {
        let path = folder.resolve(model)?;
        if !path.is_file() {
            return refusal(404, format!("there is no file `{model}`"));
        }
        let output = process(&self.program, &self.root, Some(self.scratch.path()))
            .args(["explore", "--format=json", "--timeout=5s", "-D", "help", "--", model])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| HttpError(500, format!("no parameters: {e}")))?;
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Ok(json!({ "declared": printed["declared"].as_array().cloned().unwrap_or_default() }))
    }

    /// Returns a run's result as a self-contained page, written by the command `report`. One page
    /// is written at a time.
    pub(crate) fn report(&self, id: u64) -> Result<Value, HttpError> {
        let (result, model) = {
            let all = self.lock();
            let Some(run) = all.1.get(&id) else {
                return refusal(404, format!("there is no run {id}"));
            };
            let Some(result) = &run.result else {
                return refusal(404, format!("run {id} has no result"));
            };
            (result.to_string(), run.model.clone())
        };
        let _alone = self.reporting.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |e: std::io::Error| HttpError(500, format!("no report: {e}"));
        let folder = tempfile::Builder::new()
            .prefix("report")
            .tempdir_in(self.scratch.path())
            .map_err(failed)?;
        let (from, to) = (folder.path().join("result.json"), folder.path().join("report.html"));
        std::fs::write(&from, result).map_err(failed)?;
        let title = format!("--title={model}");
        let mut child = process(&self.program, folder.path(), None);
        let done = child
            .args(["report", &title, "--out", "report.html", "result.json"])
            .stdin(Stdio::null())
            .output()
            .map_err(failed)?;
        if !done.status.success() {
            return refusal(422, String::from_utf8_lossy(&done.stderr).trim().to_string());
        }
        Ok(json!({ "text": std::fs::read_to_string(&to).map_err(failed)? }))
    }

    /// Lists all runs, without their results.
    pub(crate) fn list(&self) -> Value {
        self.lock().1.iter().map(|(id, r)| r.json(*id)).collect()
    }

    /// Requests the end of all runs, and waits briefly for them.
    pub(crate) fn end(&self) {
        let begin = Instant::now();
        loop {
            let mut left = false;
            for run in self.lock().1.values_mut() {
                if run.state == RunState::Running {
                    run.state = RunState::Stopping;
                }
                left |= run.state == RunState::Stopping;
            }
            if !left || begin.elapsed() > GRACE + GRACE {
                return;
            }
            std::thread::sleep(TICK);
        }
    }

    fn update(&self, id: u64, change: impl FnOnce(&mut StudioRun)) {
        let mut all = self.lock();
        let Some(run) = all.1.get_mut(&id) else { return };
        change(run);
        run.version += 1;
        let summary = run.json(id);
        drop(all);
        self.hub.broadcast("run", &summary);
    }

    /// Reads the output of a process until it ends.
    fn attend(self: Arc<Self>, id: u64, mut child: Child, sweep: Option<PathBuf>) {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let output = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let whole = out.map(|o| o.take(MOST_BYTES).read_to_end(&mut bytes));
            (bytes, whole.is_some_and(|w| w.is_ok()))
        });
        let (runs, scratch) = (self.clone(), sweep.clone());
        let messages = std::thread::spawn(move || {
            err.into_iter().for_each(|e| runs.listen(id, e, scratch.as_deref()))
        });
        let status = self.wait(id, &mut child, sweep.as_deref());
        let _ = messages.join();
        let (bytes, _) = output.join().unwrap_or_default();
        let stopped = self.lock().1.get(&id).is_some_and(|r| r.state == RunState::Stopping);
        let result: Option<Value> = serde_json::from_slice(&bytes).ok();
        if let (Some(folder), None) = (&sweep, &result) {
            self.rows(id, folder);
        }
        self.update(id, |run| {
            run.seconds = run.begin.elapsed().as_secs_f64();
            run.state = RunState::Over { stopped };
            run.code = status.as_ref().and_then(ExitStatus::code);
            if let Some(mut result) = result {
                // The equivalent command of a user.
                if result.get("command").is_some() {
                    result["command"] = run.command.clone().into();
                }
                run.result = Some(result);
            } else if run.result.is_none() {
                let how = status.map_or_else(|| "it was killed".to_string(), |s| s.to_string());
                run.failed = Some(format!("no result: {how}"));
            }
        });
    }

    /// Waits for a process; kills it if necessary.
    fn wait(&self, id: u64, child: &mut Child, sweep: Option<&Path>) -> Option<ExitStatus> {
        let mut input = child.stdin.take();
        let (mut stop_requested, mut seen, mut reported): (Option<Instant>, _, _) =
            (None, None, Instant::now());
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(status);
            }
            let (late, stopping) = {
                let all = self.lock();
                let Some(run) = all.1.get(&id) else { break };
                (run.begin.elapsed() > self.limits.time + GRACE, run.state == RunState::Stopping)
            };
            if late || stopping {
                input = None;
                if stop_requested.get_or_insert_with(Instant::now).elapsed() > GRACE {
                    break;
                }
            }
            if let Some(folder) = sweep {
                let now = std::fs::metadata(folder.join("sweep.json"))
                    .ok()
                    .and_then(|m| Some((m.modified().ok()?, m.len())));
                if now != seen {
                    seen = now;
                    self.rows(id, folder);
                }
            }
            // Update the elapsed time if nothing else changes.
            if reported.elapsed() > Duration::from_millis(500) {
                reported = Instant::now();
                self.update(id, |_| {});
            }
            std::thread::sleep(TICK);
        }
        drop(input);
        let _ = child.kill();
        let _ = child.wait();
        None
    }

    /// Reads the completed rows of a sweep.
    fn rows(&self, id: u64, folder: &Path) {
        let text = std::fs::read(folder.join("sweep.json")).unwrap_or_default();
        // A missing file has no rows.
        let Ok(mut result) = serde_json::from_slice::<Value>(&text) else { return };
        self.update(id, |run| {
            result["command"] = run.command.clone().into();
            run.result = Some(result);
        });
    }

    /// Reads lines of standard error: progress and messages. `sweep`: an internal folder that
    /// messages must not show.
    fn listen(&self, id: u64, messages: impl Read, sweep: Option<&Path>) {
        let mut reader = BufReader::new(messages);
        let mut line = Vec::new();
        while reader.by_ref().take(1 << 20).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let mut text = String::from_utf8_lossy(&line).trim_end().to_string();
            line.clear();
            if let Some(folder) = sweep.filter(|_| !text.starts_with(PROGRESS)) {
                text = text.replace(&folder.display().to_string(), "the table");
            }
            let progress: Option<Value> =
                text.starts_with(PROGRESS).then(|| serde_json::from_str(&text).ok()).flatten();
            match progress {
                Some(mut progress) => self.update(id, |run| run.hear(progress["progress"].take())),
                None if text.is_empty() => {}
                None => self.update(id, |run| {
                    if run.said.len() < MOST_LINES {
                        run.said.push(text.chars().take(MOST_OF_A_LINE).collect());
                    }
                }),
            }
        }
    }
}

/// Returns a command of the program in a folder, with piped streams. The process opens no file
/// outside this folder and `scratch`, the server's own folder: not by a list, an include, an
/// option, or a link.
pub(crate) fn process(program: &Path, root: &Path, scratch: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    for (variable, folder) in
        mu_base::host::CONFINED.into_iter().zip([root, scratch.unwrap_or(root)])
    {
        command.env(variable, folder);
    }
    command.current_dir(root).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the folder for a sweep's tables: the same for the same model, so that a stopped sweep
/// resumes.
fn sweep_name(wish: &Value) -> String {
    let hash = fnv(FNV_BASIS, wish["model"].as_str().unwrap_or_default().bytes());
    let prefix = if wish["kind"] == "conform" { "suite" } else { "sweep" };
    format!("{prefix}-{hash:016x}")
}
