//! mu-check for Python: the types of the library's first page, with Python's numbers, exceptions
//! and interrupts.
//!
//! Searches run without Python's lock on a thread of their own, while the calling thread polls for
//! Ctrl-C; an interrupted search ends at once and raises `KeyboardInterrupt`. Presentation of
//! results (rows of a sweep, pictures in a notebook) is written in Python, in `python/mu_check`.
#![warn(missing_docs)]

use mu_base::Limits;
use mu_library::{Run, Specification, Stop, Verdict};
use num_bigint::BigUint;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

create_exception!(
    mu_check,
    Error,
    PyException,
    "An error in a model, a formula, or a run: `stage`, `message`, `place`, `notes`."
);

/// Interval in which a waiting thread polls for an interrupt and reports progress.
const LOOK: Duration = Duration::from_millis(50);

fn raise(error: &mu_library::Error) -> PyErr {
    Python::attach(|py| {
        let raised = Error::new_err(error.to_string());
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

/// Options of a search.
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
        let timeout =
            self.timeout.map(|t| Duration::try_from_secs_f64(t).unwrap_or(Duration::ZERO));
        let limits = Limits { max_states: self.max_states, max_memory: self.max_memory, timeout };
        let run = Run::limited(limits)
            .engine(&self.engine)?
            .symmetry(self.symmetry)
            .partial_order(self.partial_order);
        Ok(match self.threads {
            Some(threads) => run.threads(threads),
            None => run,
        })
    }
}

/// Searches on a thread of its own; `progress(states, transitions, seconds)` is called from this
/// one.
fn searched<T: Send>(
    py: Python<'_>,
    options: Options,
    progress: Option<&Bound<'_, PyAny>>,
    search: impl FnOnce(&Run) -> Result<T, mu_library::Error> + Send,
) -> PyResult<T> {
    let run = options.run().map_err(|e| raise(&e))?;
    let flag = run.interrupt();
    let (told, heard) = channel();
    let run = run.watched(move |s| _ = told.send((s.states, s.transitions)));
    let start = Instant::now();
    std::thread::scope(|scope| {
        let (done, finished) = channel();
        // Waiting happens without Python's lock, for which what is waited on must be one that
        // threads may share.
        let finished = Mutex::new(finished);
        let run = &run;
        scope.spawn(move || _ = done.send(search(run)));
        loop {
            match py.detach(|| {
                finished.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK)
            }) {
                Ok(result) => return result.map_err(|e| raise(&e)),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new_err(
                        "internal error: the search ended without an answer",
                    ));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let told = match (progress, heard.try_iter().last()) {
                        (Some(progress), Some((states, transitions))) => progress
                            .call1((states, transitions, start.elapsed().as_secs_f64()))
                            .map(|_| ()),
                        _ => Ok(()),
                    };
                    if let Err(error) = told.and_then(|()| py.check_signals()) {
                        flag.store(true, Ordering::Relaxed);
                        // The scope waits for the search, which the flag ends; Python may go on
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

/// Numbers of states and steps.
#[pyclass(frozen, get_all)]
struct Counts {
    /// States.
    states: BigUint,
    /// Transitions; `None` if the engine does not count them.
    transitions: Option<BigUint>,
    /// Deadlocks; `None` if the engine does not count them.
    deadlocks: Option<BigUint>,
    /// Stop reason: `complete`, or the limit that ended the search.
    stop: &'static str,
    /// True if the numbers are exact.
    complete: bool,
    /// Seconds of the search.
    seconds: f64,
}

#[pymethods]
impl Counts {
    fn __repr__(&self) -> String {
        let known = |n: &Option<BigUint>| n.as_ref().map_or("None".to_string(), BigUint::to_string);
        let (transitions, deadlocks) = (known(&self.transitions), known(&self.deadlocks));
        format!(
            "Counts(states={}, transitions={transitions}, deadlocks={deadlocks}, stop='{}')",
            self.states, self.stop
        )
    }
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
    fn __str__(&self) -> String {
        self.0.text()
    }
    fn __repr__(&self) -> String {
        format!("Evidence({} steps)", self.0.actions().len())
    }
    /// Picture for a notebook.
    fn _repr_svg_(&self) -> String {
        self.0.svg()
    }
}

/// A verdict, with its evidence.
#[pyclass(frozen)]
struct Judgement {
    verdict: Verdict,
    states: u64,
    equations: u64,
    seconds: f64,
    evidence: Option<Py<Evidence>>,
}

#[pymethods]
impl Judgement {
    /// `True`, `False`, or `None` if a limit ended the search.
    #[getter]
    fn verdict(&self) -> Option<bool> {
        match self.verdict {
            Verdict::True => Some(true),
            Verdict::False => Some(false),
            Verdict::Unknown(_) => None,
        }
    }
    /// `complete`, or the limit that ended the search.
    #[getter]
    fn stop(&self) -> &'static str {
        match &self.verdict {
            Verdict::Unknown(stop) => stop.word(),
            _ => Stop::Complete.word(),
        }
    }
    /// States of the search.
    #[getter]
    fn states(&self) -> u64 {
        self.states
    }
    /// Boolean equations of the search.
    #[getter]
    fn equations(&self) -> u64 {
        self.equations
    }
    /// Seconds of the search.
    #[getter]
    fn seconds(&self) -> f64 {
        self.seconds
    }
    /// Evidence; `None` if there is no run to show.
    #[getter]
    fn evidence(&self, py: Python<'_>) -> Option<Py<Evidence>> {
        self.evidence.as_ref().map(|e| e.clone_ref(py))
    }
    /// An unknown verdict is neither true nor false, so it is no condition.
    fn __bool__(&self) -> PyResult<bool> {
        self.verdict()
            .ok_or_else(|| Error::new_err(format!("the verdict is unknown: {}", self.stop())))
    }
    fn __repr__(&self) -> String {
        let verdict = self.verdict().map_or("None", |v| if v { "True" } else { "False" });
        format!(
            "Judgement(verdict={verdict}, equations={}, stop='{}')",
            self.equations,
            self.stop()
        )
    }
}

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
    ) -> PyResult<Counts> {
        let start = Instant::now();
        let c = searched(py, options, progress, |run| self.0.explore(run))?;
        Ok(Counts {
            states: c.states,
            transitions: c.transitions,
            deadlocks: c.deadlocks,
            stop: c.stop.word(),
            complete: c.stop == Stop::Complete,
            seconds: start.elapsed().as_secs_f64(),
        })
    }

    /// Checks a formula, given as text.
    #[pyo3(signature = (formula, options, progress=None))]
    fn check(
        &self,
        py: Python<'_>,
        formula: &str,
        options: Options,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Judgement> {
        let start = Instant::now();
        let j = searched(py, options, progress, |run| self.0.check(formula, run))?;
        let evidence = j.evidence.map(|e| Py::new(py, Evidence(e))).transpose()?;
        Ok(Judgement {
            verdict: j.verdict,
            states: j.states,
            equations: j.equations,
            seconds: start.elapsed().as_secs_f64(),
            evidence,
        })
    }
}

fn model(
    specification: Specification,
    parameters: BTreeMap<String, String>,
) -> Result<Model, mu_library::Error> {
    let with = parameters.into_iter().fold(specification, |s, (name, value)| s.with(name, value));
    with.model().map(Model)
}

/// The model of a file.
#[pyfunction]
fn open_model(
    py: Python<'_>,
    path: PathBuf,
    parameters: BTreeMap<String, String>,
) -> PyResult<Model> {
    py.detach(|| Specification::open(path).and_then(|s| model(s, parameters)))
        .map_err(|e| raise(&e))
}

/// The model of a text; its name is for messages.
#[pyfunction]
fn text_model(
    py: Python<'_>,
    name: String,
    text: String,
    parameters: BTreeMap<String, String>,
) -> PyResult<Model> {
    py.detach(|| model(Specification::new(name, text), parameters)).map_err(|e| raise(&e))
}

#[pymodule]
mod _mu_check {
    #[pymodule_export]
    use super::{Counts, Error, Evidence, Judgement, Model, open_model, text_model};
}
