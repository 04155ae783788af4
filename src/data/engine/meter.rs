//! Resource counters of an evaluation: steps, nesting, and the limits of the run.
//!
//! For each equation the machine compares one counter with one number; everything else happens
//! rarely, when that number is reached (`pause`). Invariant: `pause` is at most the limit of steps,
//! so that every limit is noticed.

use mu_base::Budget;
use mu_base::diagnostic::Diagnostic;

/// Steps between two polls of the limits, a few milliseconds; memory is polled less often.
const POLL_STEPS: u64 = 1 << 16;
/// Branches of enumerations between two polls of the limits.
const POLL_BRANCHES: u64 = 1 << 10;

/// Counters of one evaluation, and of the polls.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    steps: u64,
    limit: u64,
    /// Number of steps at which the limits are polled next; at most the limit.
    pause: u64,
    polls: u64,
    branches: u64,
    budget: Budget,
}

/// Counters of an interrupted evaluation.
pub(crate) struct MeterCounts {
    steps: u64,
    pause: u64,
}

impl Meter {
    /// Creates a meter without limits.
    pub fn new() -> Meter {
        Meter {
            steps: 0,
            limit: u64::MAX,
            pause: 0,
            polls: 0,
            branches: 0,
            budget: Budget::default(),
        }
    }

    /// Counts one step. True if the limits must be polled.
    #[inline(always)]
    pub fn step(&mut self) -> bool {
        self.steps += 1;
        self.steps > self.pause
    }

    /// Returns the number of steps of this evaluation.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the limit on steps of one evaluation.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// True if the evaluation has reached its limit on steps.
    pub fn is_spent(&self) -> bool {
        self.steps > self.limit
    }

    /// Sets the limit on steps of one evaluation. Returns the previous limit.
    pub fn set_limit(&mut self, steps: u64) -> u64 {
        std::mem::replace(&mut self.limit, steps)
    }

    /// Sets the limits of the run.
    pub fn set_budget(&mut self, budget: &Budget) {
        self.budget = budget.clone();
    }

    /// Starts counters for a nested evaluation. Returns those of the interrupted one.
    pub fn restart(&mut self) -> MeterCounts {
        let counts = MeterCounts { steps: self.steps, pause: self.pause };
        self.steps = 0;
        self.pause = self.limit.min(POLL_STEPS);
        counts
    }

    /// Restores the counters of the interrupted evaluation.
    pub fn resume(&mut self, counts: MeterCounts) {
        (self.steps, self.pause) = (counts.steps, counts.pause);
    }

    /// Allows some more steps, unless a limit of the run is reached.
    pub fn extend(&mut self) -> Result<(), Box<Diagnostic>> {
        self.pause = self.limit.min(self.steps + POLL_STEPS);
        self.poll()
    }

    /// Counts a branch of an enumeration, and polls the limits from time to time.
    pub fn branch(&mut self) -> Result<(), Box<Diagnostic>> {
        self.branches += 1;
        if self.branches.is_multiple_of(POLL_BRANCHES) { self.poll() } else { Ok(()) }
    }

    /// Polls the limits of the run; the memory every sixteenth time.
    #[inline(never)]
    fn poll(&mut self) -> Result<(), Box<Diagnostic>> {
        self.polls += 1;
        let memory =
            if self.polls.is_multiple_of(16) { self.budget.check_memory() } else { Ok(()) };
        self.budget.check(0).and(memory).map_err(|stop| Box::new(Diagnostic::stopped(stop)))
    }
}
