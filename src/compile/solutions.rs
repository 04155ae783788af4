//! What a sum ranges over, where that depends on less than its summand: enumerated once for all
//! states that agree on it.
//!
//! In: the condition of a group, and values of what it reads. Out: each solution, in the order of
//! the enumeration. A channel that takes any of sixteen messages into its queue has sixteen
//! solutions whatever the queue holds. Cost: a hash of the numbers that the condition reads. They
//! are kept as long as they recur ([`super::recall`]), and only those of enumerations that ended.

use super::recall::{LARGEST, Narrow, Recall};
use mu_base::Diagnostic;
use mu_base::ids::VarId;
use mu_data::engine::{Engine, Problem, Receiver, Value};
use mu_data::expr::Expr;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Numbers in whose room a value has its place.
const WORDS: usize = 4;

/// Solutions of one condition.
pub(super) struct Solutions {
    /// What the condition reads.
    by: Narrow,
    /// Number of variables that are summed over.
    width: usize,
    known: RefCell<Recall<Rc<[Value]>>>,
}

impl Solutions {
    /// For a condition with these sum variables in a group that reads these variables; none where
    /// the condition reads all of them, so that nothing would recur.
    pub(super) fn new(condition: &Expr, sum_vars: &[VarId], reads: &[VarId]) -> Option<Solutions> {
        if sum_vars.is_empty() {
            return None;
        }
        let mut used = Vec::new();
        condition.free_vars(&mut used);
        Some(Solutions {
            by: Narrow::new(reads, &used)?,
            width: sum_vars.len(),
            known: RefCell::default(),
        })
    }

    /// Hands out the solutions: those that are known, or those that solving gives.
    pub(super) fn each(
        &self,
        engine: &mut Engine,
        problem: &Problem,
        reads: &[u32],
        env: &[Value],
        each: &mut Receiver,
    ) -> Result<(), Diagnostic> {
        let mut key = Vec::new();
        self.by.ask(reads, &mut key);
        let known = self.known.borrow_mut().get(&key).cloned();
        if let Some(known) = known {
            for solution in known.chunks(self.width) {
                if each(engine, solution)?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let (mut found, mut all) = (Vec::new(), !self.known.borrow().is_given_up());
        engine.solve(problem, env, &mut |engine, solution| {
            all &= WORDS * (found.len() + solution.len()) <= LARGEST;
            if all {
                found.extend_from_slice(solution);
            }
            let flow = each(engine, solution)?;
            all &= flow == ControlFlow::Continue(());
            Ok(flow)
        })?;
        if all {
            let size = WORDS * found.len() + key.len();
            self.known.borrow_mut().keep(&key, found.into(), size);
        }
        Ok(())
    }
}
