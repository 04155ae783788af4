//! Simulator sessions: a process `simulate --requests` for each, which answers requests for the
//! steps of states and for graphs.
//!
//! The page stores its paths; a session knows states only by their numbers. A session without an
//! answer in time is ended. If there are too many, the oldest idle one is replaced; if all are busy
//! or starting, a new one is rejected. Invariant: the number of processes never exceeds the limit.

use crate::folder::Folder;
use crate::http::{HttpError, refusal};
use crate::request_args;
use crate::runs::process;
use crate::{Limits, ServerSettings};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Limit on the bytes of an answer.
const MOST_BYTES: u64 = 64 << 20;
/// Time for a process to print the reason for its end.
const LAST_WORDS: Duration = Duration::from_secs(2);

struct SimulatorProcess {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    messages: Receiver<String>,
}

impl Drop for SimulatorProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl SimulatorProcess {
    /// Waits for the next answer.
    fn answer(&mut self, limits: &Limits) -> Result<Value, HttpError> {
        match self.answers.recv_timeout(limits.time) {
            Ok(line) => serde_json::from_str(&line).map_err(|e| {
                HttpError(502, format!("the answer of the simulator is not JSON: {e}"))
            }),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => refusal(
                504,
                format!(
                    "no answer within {} s: the simulator is stopped",
                    limits.time.as_secs_f64()
                ),
            ),
            Err(_) => {
                let why = self.messages.recv_timeout(LAST_WORDS).unwrap_or_default();
                refusal(
                    422,
                    if why.trim().is_empty() {
                        "the simulator has ended".into()
                    } else {
                        why.trim().to_string()
                    },
                )
            }
        }
    }
}

/// The sessions by number. A busy session is locked and has another owner.
#[derive(Default)]
struct All {
    last: u64,
    /// Number of processes that have not answered yet.
    starting: usize,
    walks: BTreeMap<u64, Arc<Mutex<SimulatorProcess>>>,
}

/// All sessions.
pub(crate) struct Walks {
    program: PathBuf,
    root: PathBuf,
    limits: Limits,
    all: Mutex<All>,
}

impl Walks {
    pub(crate) fn new(settings: &ServerSettings, root: PathBuf) -> Self {
        Self {
            program: settings.program.clone(),
            root,
            limits: settings.limits.clone(),
            all: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a session. Returns its number and the description of the initial state.
    pub(crate) fn start(&self, wish: &Value, folder: &Folder) -> Result<Value, HttpError> {
        if wish["kind"] != "simulate" {
            return refusal(400, "expected `simulate`");
        }
        let run = request_args::run_arguments(wish, folder, &self.limits, Path::new(""))?;
        self.make_room()?;
        let started = self.begin(&run.arguments);
        let mut all = self.lock();
        all.starting -= 1;
        let (walk, mut first) = started?;
        all.last += 1;
        let id = all.last;
        all.walks.insert(id, Arc::new(Mutex::new(walk)));
        drop(all);
        first["walk"] = json!(id);
        first["command"] = json!(run.command);
        Ok(first)
    }

    /// Makes room for a session and counts it as starting.
    fn make_room(&self) -> Result<(), HttpError> {
        let mut all = self.lock();
        while all.starting + all.walks.len() >= self.limits.runs.max(1) {
            let idle =
                all.walks.iter().find(|(_, walk)| Arc::strong_count(walk) == 1).map(|(id, _)| *id);
            let Some(idle) = idle else {
                return refusal(
                    429,
                    "all simulators are busy, and their number is limited; wait for their answers",
                );
            };
            all.walks.remove(&idle);
        }
        all.starting += 1;
        Ok(())
    }

    /// Starts a process and waits for the description of the initial state.
    fn begin(&self, arguments: &[String]) -> Result<(SimulatorProcess, Value), HttpError> {
        let failed = |e: std::io::Error| {
            HttpError(500, format!("cannot start `{}`: {e}", self.program.display()))
        };
        let mut child =
            process(&self.program, &self.root, None).args(arguments).spawn().map_err(failed)?;
        let (Some(input), Some(out), Some(err)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return refusal(500, "the process has no pipes");
        };
        let (answer, answers) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(out);
            let mut line = String::new();
            while reader.by_ref().take(MOST_BYTES).read_line(&mut line).is_ok_and(|n| n > 0)
                && answer.send(std::mem::take(&mut line)).is_ok()
            {}
        });
        let (message, messages) = channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = err.take(1 << 16).read_to_end(&mut bytes);
            // The answer has no receiver if the session is gone.
            let _ = message.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        let mut walk = SimulatorProcess { child, input, answers, messages };
        let first = walk.answer(&self.limits)?;
        Ok((walk, first))
    }

    /// Sends a request to a session. Ends a session that cannot answer.
    pub(crate) fn ask(&self, id: u64, request: &Value) -> Result<Value, HttpError> {
        let found = self.lock().walks.get(&id).cloned();
        let Some(walk) = found else {
            return refusal(404, "this simulator has ended; start another");
        };
        let mut walk = walk.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = writeln!(walk.input, "{request}").and_then(|()| walk.input.flush());
        let answer = match sent {
            Ok(()) => walk.answer(&self.limits),
            Err(_) => refusal(422, "the simulator has ended"),
        };
        if answer.is_err() {
            self.lock().walks.remove(&id);
        }
        answer
    }

    /// Ends a session.
    pub(crate) fn close(&self, id: u64) {
        self.lock().walks.remove(&id);
    }

    /// Ends all sessions.
    pub(crate) fn end(&self) {
        self.lock().walks.clear();
    }
}
