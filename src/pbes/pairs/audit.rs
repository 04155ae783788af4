//! Audit of an invariant of pairs by random walks of the model.
//!
//! In: a proof by pairs. Out: the number of steps, all of which the invariant covers. The states
//! and steps are those of the model, evaluated group by group at whole states; the relations are
//! only read. Cost: [`WALKS`] walks of at most [`LENGTH`] steps.

use super::PairSearch;
use crate::transitions::steps_of;
use mu_base::random::Random;
use mu_base::{Diagnostic, narrow};
use mu_model::step_cache::StepCache;
use mu_symbolic::Observer;
use std::collections::BTreeSet;

const WALKS: u64 = 20;
const LENGTH: usize = 100;

impl PairSearch<'_> {
    /// Checks states on random walks.
    pub(super) fn audit(&mut self, start: usize) -> Result<u64, Diagnostic> {
        let model = self.model;
        let mut evaluated = StepCache::new(model);
        let mut steps = 0;
        for seed in 0..WALKS {
            let mut random = Random::new(seed);
            let mut state = model.initial();
            let mut obligations: BTreeSet<u32> = self.nodes[start].set.iter().copied().collect();
            for _ in 0..LENGTH {
                self.expect_covered(&state, &obligations)?;
                if self.budget.check(0).is_err() {
                    return Ok(steps);
                }
                // Groups in a random order, until one has a step.
                let count = model.groups().len();
                let first = random.below(count.max(1));
                let mut taken = None;
                for i in 0..count {
                    let group = narrow::index((first + i) % count);
                    let found = steps_of(model, &mut evaluated, group, &state)?;
                    if !found.is_empty() {
                        taken = Some(random.choose(&found).clone());
                        break;
                    }
                }
                let Some(taken) = taken else { break };
                let label = self.observer.class(taken.label)?;
                let mut next = BTreeSet::new();
                for q in obligations {
                    let Some(after) = self.observer.step(q, label)? else {
                        return Err(Diagnostic::internal(
                            "a formula with a proof by pairs is violated on a walk",
                        ));
                    };
                    next.extend(after.iter().copied());
                }
                (state, obligations) = (taken.state, next);
                steps += 1;
            }
        }
        Ok(steps)
    }

    /// Checks that for each obligation at a state there is a node with it and all pairs of the
    /// state.
    fn expect_covered(
        &mut self,
        state: &[u32],
        obligations: &BTreeSet<u32>,
    ) -> Result<(), Diagnostic> {
        let locals = self.joints.locals(state);
        let count = locals.len();
        for q in obligations {
            let covers = self.nodes.iter().any(|node| {
                node.set.binary_search(q).is_ok()
                    && (0..count).all(|a| {
                        (a + 1..count)
                            .all(|b| node.relations.row(a, locals[a], b).contains(locals[b]))
                    })
            });
            if !covers {
                return Err(Diagnostic::internal(
                    "a state on a walk is not covered by the proof by pairs",
                ));
            }
        }
        Ok(())
    }
}
