//! Cached solutions of sums: a condition that depends on fewer slots than its summand is solved
//! once for all states that agree on them.
//!
//! In: the condition of a group, and values of the slots that it reads. Out: each solution, in the
//! order of the enumeration. For example, a channel that accepts any of sixteen messages has
//! sixteen solutions for any queue. Cost: a hash of the numbers that the condition reads. Solutions
//! are cached as long as they recur ([`super::answer_cache`]), and only if the enumeration
//! completed.

use super::answer_cache::{AnswerCache, KeyProjection, MAX_NUMBERS};
use mu_base::Diagnostic;
use mu_base::ids::VarId;
use mu_data::engine::{Engine, Problem, Receiver, Value};
use mu_data::expr::Expr;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Numbers that one value counts against [`MAX_NUMBERS`].
const NUMBERS_PER_VALUE: usize = 4;

/// Cached solutions of one condition.
pub(super) struct SolutionCache {
    /// Projection to the values that the condition reads.
    by: KeyProjection,
    /// Number of sum variables.
    width: usize,
    known: RefCell<AnswerCache<Rc<[Value]>>>,
}

impl SolutionCache {
    /// Creates the cache for a condition with these sum variables in a group that reads these
    /// variables. `None` if the condition reads all of them, so that no key would recur.
    pub(super) fn new(
        condition: &Expr,
        sum_vars: &[VarId],
        reads: &[VarId],
    ) -> Option<SolutionCache> {
        if sum_vars.is_empty() {
            return None;
        }
        let mut used = Vec::new();
        condition.free_vars(&mut used);
        Some(SolutionCache {
            by: KeyProjection::new(reads, &used)?,
            width: sum_vars.len(),
            known: RefCell::default(),
        })
    }

    /// Passes each solution to `each`, from the cache or by solving.
    pub(super) fn for_each(
        &self,
        engine: &mut Engine,
        problem: &Problem,
        reads: &[u32],
        env: &[Value],
        each: &mut Receiver,
    ) -> Result<(), Diagnostic> {
        let mut key = Vec::new();
        self.by.project(reads, &mut key);
        let known = self.known.borrow_mut().get(&key).cloned();
        if let Some(known) = known {
            for solution in known.chunks(self.width) {
                if each(engine, solution)?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let (mut found, mut is_cacheable) = (Vec::new(), !self.known.borrow().is_disabled());
        engine.solve(problem, env, &mut |engine, solution| {
            is_cacheable &= NUMBERS_PER_VALUE * (found.len() + solution.len()) <= MAX_NUMBERS;
            if is_cacheable {
                found.extend_from_slice(solution);
            }
            let flow = each(engine, solution)?;
            is_cacheable &= flow == ControlFlow::Continue(());
            Ok(flow)
        })?;
        if is_cacheable {
            let size = NUMBERS_PER_VALUE * found.len() + key.len();
            self.known.borrow_mut().insert(&key, found.into(), size);
        }
        Ok(())
    }
}
