//! Limits of a run and the reason why a search stopped. A limit is an answer of its own: it never
//! reads as true or false.

use crate::host::{self, Instant};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What the user allows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Most states to store.
    pub max_states: Option<u64>,
    /// Most bytes of resident memory of the whole process.
    pub max_memory: Option<u64>,
    /// Longest time from the start of the run.
    pub timeout: Option<Duration>,
}

/// Why a search stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Nothing is left to do.
    #[default]
    Complete,
    /// `--max-states`.
    States,
    /// `--max-memory`.
    Memory,
    /// `--timeout`.
    Time,
    /// A signal.
    Interrupted,
    /// Another process of the same search ended or fell silent.
    Lost,
    /// A store buffer was full (`--buffer`): what more room would allow was not searched.
    Buffer,
}

impl Stop {
    /// Stable word for JSON and tables.
    pub fn word(&self) -> &'static str {
        match self {
            Stop::Complete => "complete",
            Stop::States => "max-states",
            Stop::Memory => "max-memory",
            Stop::Time => "timeout",
            Stop::Interrupted => "interrupted",
            Stop::Lost => "process-lost",
            Stop::Buffer => "buffer-bound",
        }
    }
}

/// The limits of one run, shared by all its threads; cheap to poll.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: Limits,
    start: Instant,
    interrupted: Arc<AtomicBool>,
    peak: Arc<AtomicU64>,
    later: Arc<Later>,
}

/// What is done once a run is long.
#[derive(Default)]
struct Later {
    waits: AtomicBool,
    what: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Later {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", if self.waits.load(Ordering::Relaxed) { "waiting" } else { "done" })
    }
}

/// A run is long from here on.
const LONG: Duration = Duration::from_millis(8);

impl Default for Budget {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Budget {
    /// Starts the clock.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            start: Instant::now(),
            interrupted: Arc::default(),
            peak: Arc::default(),
            later: Arc::default(),
        }
    }
    /// The same run with other limits: one clock, one interrupt.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { limits, ..self.clone() }
    }
    /// The limits given.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
    /// Time since the start of the run.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
    /// Does something at the first [`Budget::check`] some milliseconds after the start: what costs
    /// as much as a small run.
    pub fn once_long(&self, what: impl FnOnce() + Send + 'static) {
        *self.later.what.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(what));
        self.later.waits.store(true, Ordering::Relaxed);
    }
    #[cold]
    fn is_long(&self) {
        if self.start.elapsed() > LONG {
            self.will_be_long();
        }
    }
    /// Does at once what waits for a long run, for a stage that does not poll.
    pub fn will_be_long(&self) {
        if self.later.waits.swap(false, Ordering::Relaxed) {
            let what = self.later.what.lock().unwrap_or_else(PoisonError::into_inner).take();
            what.into_iter().for_each(|w| w());
        }
    }
    /// The flag that a signal handler sets.
    pub fn interrupt_flag(&self) -> Arc<AtomicBool> {
        self.interrupted.clone()
    }
    /// Polls everything but the memory: call every few thousand steps.
    pub fn check(&self, states: u64) -> Result<(), Stop> {
        if self.later.waits.load(Ordering::Relaxed) {
            self.is_long();
        }
        if host::stopped() {
            self.interrupted.store(true, Ordering::Relaxed);
        }
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        if self.limits.max_states.is_some_and(|m| states > m) {
            return Err(Stop::States);
        }
        if self.limits.timeout.is_some_and(|t| self.start.elapsed() > t) {
            return Err(Stop::Time);
        }
        Ok(())
    }
    /// Polls the resident memory (reads `/proc`, some microseconds): call about every 50 ms.
    pub fn check_memory(&self) -> Result<(), Stop> {
        let now = resident_bytes();
        self.peak.fetch_max(now, Ordering::Relaxed);
        if self.limits.max_memory.is_some_and(|m| now > m) { Err(Stop::Memory) } else { Ok(()) }
    }
}

/// Resident bytes of this process now; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    host::resident_bytes()
}

/// Highest resident bytes of this process so far; 0 where the system does not say.
pub fn peak_resident_bytes() -> u64 {
    host::peak_resident_bytes()
}

/// Bytes of memory that this process may use: the machine's, or its control group's if that is
/// less. `None` where nothing says.
pub fn available_memory() -> Option<u64> {
    host::available_memory()
}
