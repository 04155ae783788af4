//! Limits of a run, and the reason why a search stopped. A limit gives the answer unknown, never
//! true or false.

use crate::host::{self, Instant};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Limits that the user sets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Maximum number of states to store.
    pub max_states: Option<u64>,
    /// Maximum resident memory of the whole process in bytes.
    pub max_memory: Option<u64>,
    /// Maximum time since the start of the run.
    pub timeout: Option<Duration>,
}

/// Reason why a search stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The search is complete.
    #[default]
    Complete,
    /// `--max-states`.
    States,
    /// `--max-memory`.
    Memory,
    /// `--timeout`.
    Time,
    /// An interrupt by the user.
    Interrupted,
    /// Another process of the same search ended or stopped responding.
    Lost,
    /// A store buffer was full (`--buffer`): runs that need more room were not searched.
    Buffer,
}

impl Stop {
    /// Returns a stable word for JSON and tables.
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

/// Limits of one run, shared by all its threads; cheap to poll.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: Limits,
    start: Instant,
    interrupted: Arc<AtomicBool>,
    peak: Arc<AtomicU64>,
    deferred: Arc<DeferredAction>,
    /// Milliseconds from the start until which the limits do not apply ([`Budget::grace`]).
    grace_end: Arc<AtomicU64>,
}

/// Time after a limit in which a known answer is confirmed and described.
const GRACE: Duration = Duration::from_secs(1);

/// Period in which the limits of a budget do not apply: until the value is dropped, and for one
/// second at most.
#[must_use]
#[derive(Debug)]
pub struct Grace {
    end: Arc<AtomicU64>,
    /// The end of the enclosing period.
    before: u64,
}

impl Drop for Grace {
    fn drop(&mut self) {
        self.end.store(self.before, Ordering::Relaxed);
    }
}

/// Action that runs once the run is long.
#[derive(Default)]
struct DeferredAction {
    pending: AtomicBool,
    action: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for DeferredAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", if self.pending.load(Ordering::Relaxed) { "waiting" } else { "done" })
    }
}

/// Time after which a run counts as long.
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
            deferred: Arc::default(),
            grace_end: Arc::default(),
        }
    }
    /// Begins a period in which a known answer is confirmed and described, even if a limit is
    /// exceeded: the polls of all stages with this budget succeed. The watchdog of the command line
    /// still ends the run ([`Budget::check_all_limits`]).
    pub fn grace(&self) -> Grace {
        let end = self.start.elapsed() + GRACE;
        let end = u64::try_from(end.as_millis()).unwrap_or(u64::MAX);
        let before = self.grace_end.swap(end, Ordering::Relaxed);
        Grace { end: self.grace_end.clone(), before }
    }
    fn in_grace(&self) -> bool {
        let end = self.grace_end.load(Ordering::Relaxed);
        end > 0 && self.start.elapsed() < Duration::from_millis(end)
    }
    /// Returns a budget of the same run with other limits: one clock, one interrupt.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { limits, ..self.clone() }
    }
    /// Returns the limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
    /// Returns the time since the start of the run.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
    /// Defers an action until the first [`Budget::check`] some milliseconds after the start, for
    /// work that costs as much as a small run.
    pub fn defer_until_long(&self, action: impl FnOnce() + Send + 'static) {
        *self.deferred.action.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Box::new(action));
        self.deferred.pending.store(true, Ordering::Relaxed);
    }
    #[cold]
    fn is_long(&self) {
        if self.start.elapsed() > LONG {
            self.run_deferred();
        }
    }
    /// Runs the deferred action at once, for a stage that does not poll.
    pub fn run_deferred(&self) {
        if self.deferred.pending.swap(false, Ordering::Relaxed) {
            let action = self.deferred.action.lock().unwrap_or_else(PoisonError::into_inner).take();
            action.into_iter().for_each(|w| w());
        }
    }
    /// Returns the flag that a signal handler sets.
    pub fn interrupt_flag(&self) -> Arc<AtomicBool> {
        self.interrupted.clone()
    }
    /// Polls all limits except memory: call every few thousand steps.
    pub fn check(&self, states: u64) -> Result<(), Stop> {
        self.check_at_once(states).or_else(|stop| self.unless_in_grace(stop))
    }
    fn check_at_once(&self, states: u64) -> Result<(), Stop> {
        if self.deferred.pending.load(Ordering::Relaxed) {
            self.is_long();
        }
        if host::is_stop_requested() {
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
        self.check_memory_at_once().or_else(|stop| self.unless_in_grace(stop))
    }
    fn check_memory_at_once(&self) -> Result<(), Stop> {
        let now = resident_bytes();
        self.peak.fetch_max(now, Ordering::Relaxed);
        if self.limits.max_memory.is_some_and(|m| now > m) { Err(Stop::Memory) } else { Ok(()) }
    }
    /// True if a poll found more than three quarters of the memory limit in use. A search can touch
    /// some megabytes per millisecond, so poll the memory more often then.
    pub fn is_near_memory_limit(&self) -> bool {
        self.limits.max_memory.is_some_and(|m| self.peak.load(Ordering::Relaxed) > m / 4 * 3)
    }
    #[cold]
    fn unless_in_grace(&self, stop: Stop) -> Result<(), Stop> {
        if self.in_grace() { Ok(()) } else { Err(stop) }
    }
    /// Polls the time, the interrupt, and the memory, for a watchdog: also in a grace period.
    pub fn check_all_limits(&self) -> Result<(), Stop> {
        self.check_at_once(0).and_then(|()| self.check_memory_at_once())
    }
}

/// Returns the resident bytes of this process; 0 if the system does not report them.
pub fn resident_bytes() -> u64 {
    host::resident_bytes()
}

/// Returns the peak resident bytes of this process; 0 if the system does not report them.
pub fn peak_resident_bytes() -> u64 {
    host::peak_resident_bytes()
}

/// Returns the bytes of memory that this process may use: those of the machine, or those of its
/// control group if less. `None` if the system reports neither.
pub fn available_memory() -> Option<u64> {
    host::available_memory()
}
