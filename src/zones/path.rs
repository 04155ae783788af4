//! Driver of evaluations along paths: one evaluation for each consistent combination of decisions.
//!
//! An evaluation makes decisions: comparisons of numbers without a value (by the oracle of
//! `data::engine::paths`) and choices among options. A [`Path`] answers from a prefix of earlier
//! decisions and takes the first possible option beyond it. [`Paths`] provides the next prefix
//! until no option is left (stateless search). Invariant: the paths' constraints
//! partition the solutions of the initial system, except for choices, which are free. Cost: one
//! evaluation for each path.

use crate::differences::Differences;
use mu_base::{Diagnostic, Stage};
use mu_data::engine::paths::PathOracle;
use std::cell::RefCell;
use std::rc::Rc;

/// Limit on the paths of one evaluation.
const MAX_PATHS: usize = 20_000;

/// Limit on the decisions of one path: a recursion that decides one more number in each call has a
/// path for each.
const MAX_DECISIONS: usize = 400;

/// The decisions of one evaluation.
#[derive(Debug)]
pub struct Path {
    /// The constraints; unknown `u` is variable `u + 1`.
    pub zone: Differences,
    prefix: Vec<u32>,
    /// The decisions, each with its number of options.
    taken: Vec<(u32, u32)>,
    /// The constraints that were decided, not implied: `(x, y, c)` for `x - y <= c`.
    pub atoms: Vec<(usize, usize, i64)>,
    /// Unknowns in operations that stay unevaluated.
    pub refused: Vec<u32>,
}

impl Path {
    fn new(zone: Differences, prefix: Vec<u32>) -> Self {
        Self { zone, prefix, taken: Vec::new(), atoms: Vec::new(), refused: Vec::new() }
    }

    /// Chooses one of `options` options.
    pub fn choose(&mut self, options: u32) -> u32 {
        if options <= 1 {
            return 0;
        }
        let chosen = self.prefix.get(self.taken.len()).copied().unwrap_or(0);
        self.taken.push((chosen, options));
        chosen
    }

    /// Returns the next prefix of decisions; `None` after the last.
    fn next(&self) -> Option<Vec<u32>> {
        let last = self.taken.iter().rposition(|(chosen, options)| chosen + 1 < *options)?;
        let mut prefix: Vec<u32> = self.taken[..=last].iter().map(|t| t.0).collect();
        prefix[last] += 1;
        Some(prefix)
    }
}

fn variable(u: Option<u32>) -> usize {
    u.map_or(0, |u| u as usize + 1)
}

impl PathOracle for Path {
    fn at_most(&mut self, x: Option<u32>, y: Option<u32>, c: i64) -> bool {
        let (x, y) = (variable(x), variable(y));
        if self.zone.implies(x, y, c) {
            return true;
        }
        if self.zone.excludes(x, y, c) {
            return false;
        }
        let answer = self.choose(2) == 0;
        self.atoms.push((x, y, c));
        // Not `x - y <= c`: `y - x <= -c - 1`.
        let possible = match answer {
            true => self.zone.constrain(x, y, c),
            false => c
                .checked_neg()
                .and_then(|c| c.checked_sub(1))
                .is_some_and(|c| self.zone.constrain(y, x, c)),
        };
        debug_assert!(possible, "neither implied nor excluded");
        answer
    }

    fn range(&self, x: u32) -> (Option<i64>, Option<i64>) {
        self.zone.range(x as usize + 1)
    }

    fn record_unevaluated(&mut self, x: u32) {
        self.refused.push(x);
    }
}

/// A path that the engine and an evaluation share.
pub type SharedPath = Rc<RefCell<Path>>;

/// The paths of an evaluation, one after the other.
pub struct Paths {
    zone: Differences,
    prefix: Option<Vec<u32>>,
    count: usize,
    /// The number of decisions of the last path.
    decisions: usize,
}

impl Paths {
    /// Creates the paths from these constraints.
    pub fn new(zone: &Differences) -> Self {
        Self { zone: zone.clone(), prefix: Some(Vec::new()), count: 0, decisions: 0 }
    }

    /// Returns the next path; `None` after the last.
    ///
    /// # Errors
    ///
    /// Too many paths, or a path with too many decisions before this one.
    pub fn start(&mut self) -> Result<Option<SharedPath>, Diagnostic> {
        let Some(prefix) = self.prefix.take() else { return Ok(None) };
        self.count += 1;
        if self.count > MAX_PATHS {
            let text =
                format!("an evaluation distinguishes more than {MAX_PATHS} orders of numbers");
            return Err(Diagnostic::new(Stage::Unsupported, text));
        }
        if self.decisions > MAX_DECISIONS {
            let text = format!("an evaluation decides more than {MAX_DECISIONS} comparisons");
            return Err(Diagnostic::new(Stage::Unsupported, text));
        }
        Ok(Some(Rc::new(RefCell::new(Path::new(self.zone.clone(), prefix)))))
    }

    /// Ends a path after its evaluation.
    pub fn end(&mut self, path: &SharedPath) {
        let path = path.borrow();
        (self.prefix, self.decisions) = (path.next(), path.taken.len());
    }
}
