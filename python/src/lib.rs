//! mu-check for Python: the types of the library's first page, with Python's numbers, exceptions
//! and interrupts.
//!
//! Searches run without Python's lock on a thread of their own, while the calling thread polls for
//! Ctrl-C; an interrupted search ends at once and raises `KeyboardInterrupt`. Presentation of
//! results (rows of a sweep, pictures in a notebook) is written in Python, in `python/mu_check`.
#![warn(missing_docs)]

use mu_base::Limits;
use mu_library::{Run, Specification, Stop, TraceCheck, Verdict};
use num_bigint::BigUint;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::io::{BufReader, Error as ReadError, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

create_exception!(
    mu_check,
    Error,
    PyException,
    "An error in a model, a formula, or a run: `stage`, `message`, `place`, `notes`."
);

/// Interval in which a waiting thread polls for an interrupt and reports progress.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

fn raise(error: &mu_library::Error) -> PyErr {
    Python::attach(|py| {
        // Python shows the name of the class in front of the message.
        let text = error.to_string();
        let raised = Error::new_err(text.strip_prefix("error: ").unwrap_or(&text).to_string());
        let value = raised.value(py);
        let place = error.place().map(|p| (p.name.clone(), p.line, p.column, p.text.clone()));
        let set = value
            .setattr("message", error.message())
            .and_then(|()| value.setattr("stage", error.stage()))
            .and_then(|()| value.setattr("notes", error.notes().to_vec()))
            .and_then(|()| value.setattr("place", place));
        set.err().unwrap_or(raised)
    })
}

/// Options of a search; `mu_check/_options.py` checks their values.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    threads: Option<usize>,
    engine: String,
    symmetry: bool,
    partial_order: bool,
    max_states: Option<u64>,
    max_memory: Option<u64>,
    timeout: Option<f64>,
}

impl Options {
    fn run(self) -> Result<Run, mu_library::Error> {
        let timeout = self.timeout.map(|t| Duration::try_from_secs_f64(t).unwrap_or(Duration::MAX));
        let limits = Limits { max_states: self.max_states, max_memory: self.max_memory, timeout };
        let run = Run::with_limits(limits)
            .engine(&self.engine)?
            .symmetry(self.symmetry)
            .partial_order(self.partial_order);
        Ok(match self.threads {
            Some(threads) => run.threads(threads),
            None => run,
        })
    }
}

/// Runs on a thread of its own; `progress(states, transitions, seconds)` is called from this one.
/// An interrupt ends the run.
fn run_apart<T: Send>(
    py: Python<'_>,
    options: Options,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Run) -> Result<T, mu_library::Error> + Send,
) -> PyResult<T> {
    let run = options.run().map_err(|e| raise(&e))?;
    let flag = run.interrupt();
    let (sender, snapshots) = channel();
    let run = run.with_watcher(move |s| _ = sender.send((s.states, s.transitions)));
    let start = Instant::now();
    std::thread::scope(|scope| {
        let (done, finished) = channel();
        // The wait releases Python's lock, so threads must be able to share what it waits for.
        let finished = Mutex::new(finished);
        let run = &run;
        scope.spawn(move || _ = done.send(catch_unwind(AssertUnwindSafe(|| work(run)))));
        loop {
            match py.detach(|| {
                finished.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(POLL_INTERVAL)
            }) {
                Ok(Ok(result)) => return result.map_err(|e| raise(&e)),
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new_err(
                        "internal error: the run ended without an answer; see standard error",
                    ));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let reported = match (progress, snapshots.try_iter().last()) {
                        (Some(progress), Some((states, transitions))) => progress
                            .call1((states, transitions, start.elapsed().as_secs_f64()))
                            .map(|_| ()),
                        _ => Ok(()),
                    };
                    if let Err(error) = reported.and_then(|()| py.check_signals()) {
                        flag.store(true, Ordering::Relaxed);
                        // The scope waits for the run, which the flag ends; Python may go on
                        // meanwhile.
                        py.detach(|| {
                            _ = finished.lock().unwrap_or_else(PoisonError::into_inner).recv()
                        });
                        return Err(error);
                    }
                }
            }
        }
    })
}

/// A counterexample or witness, replayed on the model.
#[pyclass(frozen)]
struct Evidence(mu_library::Evidence);

#[pymethods]
impl Evidence {
    /// True if it is a witness of a true formula.
    #[getter]
    fn is_witness(&self) -> bool {
        self.0.is_witness()
    }
    /// The labels of its steps.
    #[getter]
    fn actions(&self) -> Vec<String> {
        self.0.actions()
    }
    /// As text.
    #[getter]
    fn text(&self) -> String {
        self.0.text()
    }
    /// As JSON.
    #[getter]
    fn json(&self) -> String {
        self.0.json()
    }
    /// As a picture.
    #[getter]
    fn svg(&self) -> String {
        self.0.svg()
    }
}

/// States, transitions, deadlocks, stop reason and seconds of an exploration.
type CountResult = (BigUint, Option<BigUint>, Option<BigUint>, &'static str, f64);
/// Verdict, stop reason, states, equations, seconds and evidence of a check.
type Checked = (Option<bool>, &'static str, u64, u64, f64, Option<Evidence>);

/// A model that is ready to be searched.
#[pyclass(frozen)]
struct Model(mu_library::Model);

#[pymethods]
impl Model {
    /// Names and values of the parameters.
    #[getter]
    fn parameters(&self) -> BTreeMap<String, String> {
        self.0.parameters().map(|(name, value)| (name.to_string(), value)).collect()
    }

    /// Counts states, transitions and deadlocks.
    #[pyo3(signature = (options, progress=None))]
    fn explore(
        &self,
        py: Python<'_>,
        options: Options,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<CountResult> {
        let start = Instant::now();
        let c = run_apart(py, options, progress, |run| self.0.explore(run))?;
        let seconds = start.elapsed().as_secs_f64();
        Ok((c.states, c.transitions, c.deadlocks, c.stop.word(), seconds))
    }

    /// Checks a formula, given as text.
    #[pyo3(signature = (formula, options, progress=None))]
    fn check(
        &self,
        py: Python<'_>,
        formula: &str,
        options: Options,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Checked> {
        let start = Instant::now();
        let j = run_apart(py, options, progress, |run| self.0.check(formula, run))?;
        let seconds = start.elapsed().as_secs_f64();
        let (verdict, stop) = match &j.verdict {
            Verdict::True => (Some(true), Stop::Complete.word()),
            Verdict::False => (Some(false), Stop::Complete.word()),
            Verdict::Unknown(stop) => (None, stop.word()),
        };
        Ok((verdict, stop, j.states, j.equations, seconds, j.evidence.map(Evidence)))
    }
}

/// Sets parameters and reads a model within the limits of a run.
fn read(
    specification: Specification,
    parameters: BTreeMap<String, String>,
    run: &Run,
) -> Result<Model, mu_library::Error> {
    let with = parameters.into_iter().fold(specification, |s, (name, value)| s.with(name, value));
    with.model_within(run).map(Model)
}

/// The model of a file.
#[pyfunction]
fn open_model(
    py: Python<'_>,
    path: PathBuf,
    parameters: BTreeMap<String, String>,
    options: Options,
) -> PyResult<Model> {
    run_apart(py, options, None, |run| {
        Specification::open(path).and_then(|s| read(s, parameters, run))
    })
}

/// The model of a text; its name is for messages.
#[pyfunction]
fn text_model(
    py: Python<'_>,
    name: String,
    text: String,
    parameters: BTreeMap<String, String>,
    options: Options,
) -> PyResult<Model> {
    run_apart(py, options, None, |run| read(Specification::new(name, text), parameters, run))
}

/// A log that a function of Python returns in parts: `read(size)` returns bytes, empty at the end.
struct PythonLog {
    read: Py<PyAny>,
    /// The exception of the function.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Read for PythonLog {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        Python::attach(|py| {
            let part = self.read.call1(py, (into.len(),)).and_then(|part| {
                let part: Vec<u8> = part.extract(py)?;
                match part.len() <= into.len() {
                    true => Ok(part),
                    false => Err(Error::new_err("`read` returned more bytes than its size")),
                }
            });
            match part {
                Ok(part) => {
                    into[..part.len()].copy_from_slice(&part);
                    Ok(part.len())
                }
                Err(error) => {
                    *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    Err(ReadError::other("the function of Python raised an exception"))
                }
            }
        })
    }
}

/// Decides the traces of a log under memory models. `path`: a file; else `read` returns the log in
/// parts. Returns the result as JSON; `mu_check/_traces.py` makes it values.
#[pyfunction]
#[pyo3(signature = (name, read, against, format, repair, max_revisions, options))]
#[allow(clippy::too_many_arguments)]
fn trace_log(
    py: Python<'_>,
    name: String,
    read: Option<Py<PyAny>>,
    against: Vec<String>,
    format: Option<String>,
    repair: bool,
    max_revisions: Option<u64>,
    options: Options,
) -> PyResult<String> {
    let raised = Arc::new(Mutex::new(None));
    let log = read.map(|read| PythonLog { read, raised: raised.clone() });
    let answer = run_apart(py, options, None, |run| {
        let mut check = TraceCheck::new(against.iter().map(String::as_str))?.repair(repair);
        if let Some(format) = &format {
            check = check.format(format)?;
        }
        if let Some(limit) = max_revisions {
            check = check.max_revisions(limit);
        }
        match log {
            Some(log) => check.log(&name, BufReader::with_capacity(1 << 16, log), run),
            None => check.file(&name, run),
        }
        .map(|checked| checked.json())
    });
    match raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(error),
        None => answer,
    }
}

#[pymodule]
mod _mu_check {
    #[pymodule_export]
    use super::{Error, Evidence, Model, open_model, text_model, trace_log};

    /// Version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
