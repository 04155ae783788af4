//! Exploration with a visitor, which receives each state and step in breadth-first order and may
//! end the exploration.
//!
//! In: a model, a [`Visitor`]. Out: the reason of the end. One thread, on the store and caches of
//! [`OnTheFlySuccessors`]; for counts alone [`super::explore`] is faster. Invariant: states are
//! numbered from 0 in the order of visits; each step is visited once, after its source and before
//! the next state.

use std::ops::ControlFlow;

use super::{OnTheFlySuccessors, Options};
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, Stop};
use mu_model::Model;

/// Receiver of states and steps. `Break` ends the search.
pub trait Visitor {
    /// Visits a state, before its steps.
    fn state(&mut self, _state: StateId, _vector: &[u32]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    /// Visits a step; the target may be new.
    fn step(&mut self, _from: StateId, _label: LabelId, _to: StateId) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Reason for the end of a visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisitEnd {
    /// All states and steps were visited.
    All,
    /// The visitor ended the visit.
    Enough,
    /// A limit ended the visit.
    Stopped(Stop),
}

/// Passes the states and steps of a model to a visitor.
pub fn visit(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    visitor: &mut dyn Visitor,
) -> Result<VisitEnd, Diagnostic> {
    let mut lazy = OnTheFlySuccessors::new(model, options)?;
    let mut steps = Vec::new();
    let mut next = 0;
    while next < lazy.state_count() {
        if let Err(stop) = budget
            .check(lazy.state_count() as u64)
            .and_then(|()| if next % 4096 == 0 { budget.check_memory() } else { Ok(()) })
        {
            return Ok(VisitEnd::Stopped(stop));
        }
        let state = StateId::new(next);
        if visitor.state(state, &lazy.vector(state)).is_break() {
            return Ok(VisitEnd::Enough);
        }
        match lazy.successors(state, &mut steps) {
            Err(Diagnostic { stop: Some(stop), .. }) => return Ok(VisitEnd::Stopped(stop)),
            result => result?,
        }
        for (label, to) in steps.drain(..) {
            if visitor.step(state, label, to).is_break() {
                return Ok(VisitEnd::Enough);
            }
        }
        next += 1;
    }
    Ok(VisitEnd::All)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::models::{Shape, counters, random};
    use crate::tests::small;
    use crate::{Silent, explore, explore_lts};
    use mu_base::Limits;

    #[derive(Default)]
    struct Recorder {
        vectors: Vec<Vec<u32>>,
        steps: Vec<(StateId, LabelId, StateId)>,
        most: usize,
    }

    impl Visitor for Recorder {
        fn state(&mut self, state: StateId, vector: &[u32]) -> ControlFlow<()> {
            assert_eq!(state.index(), self.vectors.len());
            self.vectors.push(vector.to_vec());
            if self.vectors.len() == self.most {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
        fn step(&mut self, from: StateId, label: LabelId, to: StateId) -> ControlFlow<()> {
            assert_eq!(from.index() + 1, self.vectors.len());
            self.steps.push((from, label, to));
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn a_visitor_sees_the_transition_system() {
        let shape = Shape { slots: 4, values: 3, components: 2, groups: 6, labels: 3 };
        let mut steps = 0;
        for seed in 0..30 {
            let model = random(seed, shape);
            let mut seen = Recorder::default();
            let (options, budget) = (small(), Budget::default());
            assert_eq!(visit(&model, &options, &budget, &mut seen).unwrap(), VisitEnd::All);
            let (outcome, lts) = explore_lts(&model, &options, &budget, &Silent).unwrap();
            assert_eq!(
                (seen.vectors.len() as u64, seen.steps.len() as u64),
                (outcome.states, outcome.transitions),
                "seed {seed}"
            );
            let mut texts: Vec<String> = seen.steps.iter().map(|s| model.label_text(s.1)).collect();
            let mut expected: Vec<String> =
                lts.labels.iter().map(|l| lts.table.texts[l.index()].clone()).collect();
            texts.sort();
            expected.sort();
            assert_eq!(texts, expected, "seed {seed}");
            steps += seen.steps.len();
            seen.vectors.sort();
            let count = seen.vectors.len();
            seen.vectors.dedup();
            assert_eq!(seen.vectors.len(), count, "seed {seed}");
        }
        assert!(steps > 100, "{steps} steps visited");
    }

    #[test]
    fn a_visit_ends_early() {
        let model = counters(3, 9);
        let mut seen = Recorder { most: 7, ..Recorder::default() };
        let (options, budget) = (small(), Budget::default());
        assert_eq!(visit(&model, &options, &budget, &mut seen).unwrap(), VisitEnd::Enough);
        assert_eq!(seen.vectors.len(), 7);
        let few = Budget::new(Limits { max_states: Some(50), ..Limits::default() });
        let mut seen = Recorder::default();
        assert_eq!(
            visit(&model, &options, &few, &mut seen).unwrap(),
            VisitEnd::Stopped(Stop::States)
        );
        assert!(
            seen.vectors.len() < 60
                && explore(&model, &options, &budget, &Silent).unwrap().states == 1000
        );
    }
}
