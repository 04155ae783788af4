//! Runs of the command line that a page started: a process each, with limits, until it ends or is
//! stopped.
//!
//! In: arguments. Out: events while it runs (progress, rows of a sweep), its JSON when it is over,
//! word for word what the command prints. A run that is stopped loses its standard input, which the
//! program takes as an interrupt; one that does not end then is killed, as is one that is beyond
//! its time. All end with this process: its end closes their input. Rows of a sweep are processes
//! of the sweep, and end with it.

use crate::asked::{self, Asked};
use crate::events::Hub;
use crate::folder::Folder;
use crate::http::{Refusal, refusal};
use crate::{Limits, Settings};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a run that is stopped, or whose own limit is passed, may take to end by itself.
const GRACE: Duration = Duration::from_secs(3);
/// Results that are kept.
const MOST_KEPT: usize = 40;
/// Most bytes of a result, most lines of messages, and most bytes of each.
const MOST_BYTES: u64 = 64 << 20;
const MOST_LINES: usize = 200;
/// Lines of messages that an event has: the last ones.
const LAST_LINES: usize = 20;
const MOST_OF_A_LINE: usize = 2_000;
/// Time between looks at a process.
const TICK: Duration = Duration::from_millis(40);
/// What the program writes before a line of progress.
const PROGRESS: &str = "{\"progress\":";

#[derive(Clone, Copy, PartialEq)]
enum State {
    Running,
    Stopping,
    /// Over, with whether it was stopped.
    Over {
        stopped: bool,
    },
}

/// A run.
struct Run {
    kind: &'static str,
    model: String,
    command: String,
    state: State,
    /// How often this changed: what a page hears by two ways may arrive in any order.
    version: u64,
    begin: Instant,
    seconds: f64,
    progress: Value,
    /// Formulas that have a verdict.
    verdicts: Vec<Value>,
    /// Messages of the program.
    said: Vec<String>,
    result: Option<Value>,
    code: Option<i32>,
    /// Why there is no result.
    failed: Option<String>,
}

impl Run {
    /// Takes over what a line of progress says: verdicts are gathered, the rest is what holds now.
    fn hear(&mut self, news: Value) {
        if news.get("verdict").is_some() {
            self.verdicts.push(news);
        } else if let (Some(known), Some(news)) = (self.progress.as_object_mut(), news.as_object())
        {
            known.extend(news.clone());
        }
    }

    /// Without its result.
    fn json(&self, id: u64) -> Value {
        let state = match self.state {
            State::Running => "running",
            State::Stopping => "stopping",
            State::Over { stopped: true } => "stopped",
            State::Over { stopped: false } => "over",
        };
        let seconds = if matches!(self.state, State::Over { .. }) {
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
    /// Tables of sweeps; gone when the server ends.
    scratch: tempfile::TempDir,
    /// Held while a page is written.
    reporting: Mutex<()>,
    all: Mutex<(u64, BTreeMap<u64, Run>)>,
}

impl Runs {
    pub(crate) fn new(settings: &Settings, root: PathBuf, hub: Arc<Hub>) -> std::io::Result<Self> {
        let scratch = tempfile::Builder::new().prefix("mu-check-studio").tempdir()?;
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

    fn all(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Run>)> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a run, if there are not too many.
    pub(crate) fn start(self: &Arc<Self>, wish: &Value, folder: &Folder) -> Result<Value, Refusal> {
        if wish["kind"] == "simulate" {
            return refusal(400, "`simulate` is for walks");
        }
        let out = self.scratch.path().join(sweep_name(wish));
        let Asked { kind, model, arguments, command } =
            asked::asked(wish, folder, &self.limits, &out)?;
        let mut all = self.all();
        let busy = |r: &&Run| !matches!(r.state, State::Over { .. });
        if all.1.values().filter(busy).count() >= self.limits.runs {
            return refusal(
                429,
                format!(
                    "{} runs are under way, which is all that may be at a time; stop one, or wait",
                    self.limits.runs
                ),
            );
        }
        if kind == "sweep"
            && all.1.values().filter(busy).any(|r| r.kind == "sweep" && r.command == command)
        {
            return refusal(429, "this sweep is under way already");
        }
        let failed = |e: std::io::Error| {
            Refusal(500, format!("cannot start `{}`: {e}", self.program.display()))
        };
        let child = process(&self.program, &self.root, Some(self.scratch.path()))
            .args(&arguments)
            .spawn()
            .map_err(failed)?;
        let id = all.0 + 1;
        all.0 = id;
        let run = Run {
            kind,
            model,
            command,
            state: State::Running,
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
        let told = run.json(id);
        all.1.insert(id, run);
        while all.1.len() > MOST_KEPT {
            let Some(oldest) = all.1.iter().find(|(_, r)| !busy(r)).map(|(id, _)| *id) else {
                break;
            };
            all.1.remove(&oldest);
        }
        drop(all);
        self.hub.tell("run", &told);
        let runs = self.clone();
        std::thread::spawn(move || runs.attend(id, child, (kind == "sweep").then_some(out)));
        Ok(told)
    }

    /// Asks a run to end.
    pub(crate) fn stop(&self, id: u64) -> Result<Value, Refusal> {
        let mut all = self.all();
        let Some(run) = all.1.get_mut(&id) else {
            return refusal(404, format!("there is no run {id}"));
        };
        if run.state == State::Running {
            run.state = State::Stopping;
            run.version += 1;
        }
        Ok(run.json(id))
    }

    /// A run with its result.
    pub(crate) fn get(&self, id: u64) -> Result<Value, Refusal> {
        let all = self.all();
        let Some(run) = all.1.get(&id) else {
            return refusal(404, format!("there is no run {id}"));
        };
        let mut object = run.json(id);
        object["result"] = run.result.clone().unwrap_or_default();
        Ok(object)
    }

    /// A run's result as a page that can be sent: the program writes it, as `report` does. One at a
    /// time.
    pub(crate) fn report(&self, id: u64) -> Result<Value, Refusal> {
        let (result, model) = {
            let all = self.all();
            let Some(run) = all.1.get(&id) else {
                return refusal(404, format!("there is no run {id}"));
            };
            let Some(result) = &run.result else {
                return refusal(404, format!("run {id} has no result"));
            };
            (result.to_string(), run.model.clone())
        };
        let _alone = self.reporting.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |e: std::io::Error| Refusal(500, format!("no report: {e}"));
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

    /// All runs, without their results.
    pub(crate) fn list(&self) -> Value {
        self.all().1.iter().map(|(id, r)| r.json(*id)).collect()
    }

    /// Asks all runs to end, and waits a little for them.
    pub(crate) fn end(&self) {
        let begin = Instant::now();
        loop {
            let mut left = false;
            for run in self.all().1.values_mut() {
                if run.state == State::Running {
                    run.state = State::Stopping;
                }
                left |= run.state == State::Stopping;
            }
            if !left || begin.elapsed() > GRACE + GRACE {
                return;
            }
            std::thread::sleep(TICK);
        }
    }

    fn tell(&self, id: u64, change: impl FnOnce(&mut Run)) {
        let mut all = self.all();
        let Some(run) = all.1.get_mut(&id) else { return };
        change(run);
        run.version += 1;
        let told = run.json(id);
        drop(all);
        self.hub.tell("run", &told);
    }

    /// Reads what a process says until it is over.
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
        let stopped = self.all().1.get(&id).is_some_and(|r| r.state == State::Stopping);
        let result: Option<Value> = serde_json::from_slice(&bytes).ok();
        if let (Some(folder), None) = (&sweep, &result) {
            self.rows(id, folder);
        }
        self.tell(id, |run| {
            run.seconds = run.begin.elapsed().as_secs_f64();
            run.state = State::Over { stopped };
            run.code = status.as_ref().and_then(ExitStatus::code);
            if let Some(mut result) = result {
                // The command as a user would type it.
                if result.get("command").is_some() {
                    result["command"] = run.command.clone().into();
                }
                run.result = Some(result);
            } else if run.result.is_none() {
                let how =
                    status.map_or_else(|| "it had to be ended".to_string(), |s| s.to_string());
                run.failed = Some(format!("no result: {how}"));
            }
        });
    }

    /// Waits for a process, and ends it if it has to be.
    fn wait(&self, id: u64, child: &mut Child, sweep: Option<&Path>) -> Option<ExitStatus> {
        let mut input = child.stdin.take();
        let (mut asked, mut seen, mut told): (Option<Instant>, _, _) = (None, None, Instant::now());
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(status);
            }
            let (late, stopping) = {
                let all = self.all();
                let Some(run) = all.1.get(&id) else { break };
                (run.begin.elapsed() > self.limits.time + GRACE, run.state == State::Stopping)
            };
            if late || stopping {
                input = None;
                if asked.get_or_insert_with(Instant::now).elapsed() > GRACE {
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
            // The clock goes on where nothing else happens.
            if told.elapsed() > Duration::from_millis(500) {
                told = Instant::now();
                self.tell(id, |_| {});
            }
            std::thread::sleep(TICK);
        }
        drop(input);
        let _ = child.kill();
        let _ = child.wait();
        None
    }

    /// The rows that a sweep has so far.
    fn rows(&self, id: u64, folder: &Path) {
        let text = std::fs::read(folder.join("sweep.json")).unwrap_or_default();
        // A file that is not there yet has no rows.
        let Ok(mut result) = serde_json::from_slice::<Value>(&text) else { return };
        self.tell(id, |run| {
            result["command"] = run.command.clone().into();
            run.result = Some(result);
        });
    }

    /// Lines of standard error: progress, and messages. `sweep`: a folder of this server, which a
    /// user does not know.
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
                Some(mut progress) => self.tell(id, |run| run.hear(progress["progress"].take())),
                None if text.is_empty() => {}
                None => self.tell(id, |run| {
                    if run.said.len() < MOST_LINES {
                        run.said.push(text.chars().take(MOST_OF_A_LINE).collect());
                    }
                }),
            }
        }
    }
}

/// A process of the program in a folder, whose streams are ours. It opens no file outside this
/// folder and `scratch`, the folder of this server: not by a list, an include, an option, or a
/// link.
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

/// The folder of a sweep's tables: the same for the same model, so that a sweep that was stopped
/// goes on.
fn sweep_name(wish: &Value) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in wish["model"].as_str().unwrap_or_default().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("sweep-{hash:016x}")
}
