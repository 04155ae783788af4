//! What an evaluation may use: equations applied, nesting, and the limits of the run.
//!
//! The machine compares one count with one number for each equation; all else happens seldom, when
//! that number is passed (`pause`). Invariant: `pause` is at most the limit of steps, so that no
//! limit is passed unseen.

use mu_base::Budget;
use mu_base::diagnostic::Diagnostic;

/// Equations applied between two looks at the limits, a few milliseconds; looks at the memory are
/// rarer.
const PATIENCE: u64 = 1 << 16;
/// Branches of enumerations between two looks at the limits.
const BRANCHES: u64 = 1 << 10;

/// Counts of one evaluation, and of the looks at the limits.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    steps: u64,
    limit: u64,
    /// Steps after which the limits are looked at; at most the limit.
    pause: u64,
    polls: u64,
    branches: u64,
    budget: Budget,
}

/// The counts of an evaluation that another one interrupts.
pub(crate) struct Counts {
    steps: u64,
    pause: u64,
}

impl Meter {
    /// No limits.
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

    /// Counts one equation; whether it is time to look at the limits.
    #[inline(always)]
    pub fn step(&mut self) -> bool {
        self.steps += 1;
        self.steps > self.pause
    }

    /// Equations applied in this evaluation.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Most equations in one evaluation.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether more equations were applied than one evaluation may.
    pub fn is_spent(&self) -> bool {
        self.steps > self.limit
    }

    /// Sets the most equations of one evaluation; the limit before.
    pub fn set_limit(&mut self, steps: u64) -> u64 {
        std::mem::replace(&mut self.limit, steps)
    }

    /// Sets the limits of the run.
    pub fn set_budget(&mut self, budget: &Budget) {
        self.budget = budget.clone();
    }

    /// Fresh counts for an evaluation; those of the one that it interrupts.
    pub fn restart(&mut self) -> Counts {
        let counts = Counts { steps: self.steps, pause: self.pause };
        self.steps = 0;
        self.pause = self.limit.min(PATIENCE);
        counts
    }

    /// Goes on with the evaluation that was interrupted.
    pub fn resume(&mut self, counts: Counts) {
        (self.steps, self.pause) = (counts.steps, counts.pause);
    }

    /// Some more steps, if the limits of the run allow.
    pub fn go_on(&mut self) -> Result<(), Box<Diagnostic>> {
        self.pause = self.limit.min(self.steps + PATIENCE);
        self.poll()
    }

    /// Counts a branch of an enumeration, and looks at the limits from time to time.
    pub fn branch(&mut self) -> Result<(), Box<Diagnostic>> {
        self.branches += 1;
        if self.branches.is_multiple_of(BRANCHES) { self.poll() } else { Ok(()) }
    }

    /// Looks at the limits of the run; at the memory every sixteenth time.
    #[inline(never)]
    fn poll(&mut self) -> Result<(), Box<Diagnostic>> {
        self.polls += 1;
        let memory =
            if self.polls.is_multiple_of(16) { self.budget.check_memory() } else { Ok(()) };
        self.budget.check(0).and(memory).map_err(|stop| Box::new(Diagnostic::stopped(stop)))
    }
}
