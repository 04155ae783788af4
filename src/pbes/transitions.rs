//! Transitions on demand for the engines of this module, and afterwards the groups and the
//! confluent steps behind each transition.
//!
//! Input: any model. Output: numbered states with their transitions, see
//! [`mu_explore::OnTheFlySuccessors`]; 0 is the initial state. Cost of an [`Explainer`]: one group
//! evaluation a transition if labels determine the group, for evidence only.

use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Diagnostic, Stage, narrow};
use mu_evidence::TakenStep;
use mu_explore::OnTheFlySuccessors;
use mu_model::Model;
use mu_model::step_cache::{StepCache, successor};
use std::collections::VecDeque;

/// The lazily explored states of a model.
pub struct LazyTransitions<'m> {
    model: &'m dyn Model,
    lazy: OnTheFlySuccessors<'m>,
    confluent: Vec<bool>,
}

/// Limit on the states visited along confluent steps.
const MAX_CONFLUENT: usize = 1 << 20;

impl<'m> LazyTransitions<'m> {
    /// Creates a source with the initial state only.
    pub fn new(model: &'m dyn Model, options: &mu_explore::Options) -> Result<Self, Diagnostic> {
        Ok(Self {
            model,
            lazy: OnTheFlySuccessors::new(model, options)?,
            confluent: options.confluent.clone(),
        })
    }
    /// Returns the initial state.
    pub fn initial(&self) -> StateId {
        self.lazy.initial()
    }
    /// Returns the number of states found so far.
    pub fn state_count(&self) -> usize {
        self.lazy.state_count()
    }
    /// Returns the vector of a state.
    pub fn vector(&self, state: StateId) -> Vec<u32> {
        self.lazy.vector(state)
    }
    /// Computes the transitions of a state into `out`, which is cleared first.
    pub fn successors(
        &mut self,
        state: StateId,
        out: &mut Vec<(LabelId, StateId)>,
    ) -> Result<(), Diagnostic> {
        self.lazy.successors(state, out)
    }
    /// Creates an explainer for the transitions of this source.
    pub fn explainer(&self) -> Explainer<'_, 'm> {
        let (evaluated, computed) =
            (StepCache::new(self.model), vec![false; self.model.groups().len()]);
        Explainer {
            source: self,
            evaluated,
            from: None,
            computed,
            steps: Vec::new(),
            usual: AHashMap::new(),
        }
    }
    fn confluent_path(
        &self,
        evaluated: &mut StepCache,
        from: Vec<u32>,
        to: &[u32],
    ) -> Result<Option<Vec<TakenStep>>, Diagnostic> {
        if from == to {
            return Ok(Some(Vec::new()));
        }
        // Breadth first, each vector with the step that led to it.
        type Parent = Option<(Vec<u32>, u32, LabelId)>;
        let mut parent: AHashMap<Vec<u32>, Parent> = [(from.clone(), None)].into_iter().collect();
        let mut queue = VecDeque::from([from]);
        while let Some(v) = queue.pop_front() {
            let mut next = Vec::new();
            for group in
                (0..self.confluent.len()).filter(|g| self.confluent[*g]).map(|g| narrow::index(g))
            {
                next.extend(steps_of(self.model, evaluated, group, &v)?);
            }
            for TakenStep { group: g, label: l, state: t } in next {
                if parent.contains_key(&t) || parent.len() > MAX_CONFLUENT {
                    continue;
                }
                parent.insert(t.clone(), Some((v.clone(), g, l)));
                if t == to {
                    let mut path = Vec::new();
                    let mut at = t;
                    while let Some(Some((before, group, label))) = parent.get(&at) {
                        path.push(TakenStep { group: *group, label: *label, state: at });
                        at = before.clone();
                    }
                    path.reverse();
                    return Ok(Some(path));
                }
                queue.push_back(t);
            }
        }
        Ok(None)
    }
}

/// Computes the steps of a group at a state.
pub(super) fn steps_of(
    model: &dyn Model,
    evaluated: &mut StepCache,
    group: u32,
    from: &[u32],
) -> Result<Vec<TakenStep>, Diagnostic> {
    let steps = evaluated.steps(group, from)?;
    let taken = |(i, label): (usize, &LabelId)| TakenStep {
        group,
        label: *label,
        state: successor(model, group, from, steps, i),
    };
    Ok(steps.labels.iter().enumerate().map(taken).collect())
}

/// Finds the model's steps behind transitions; fastest if all transitions of one state are
/// requested consecutively.
pub struct Explainer<'s, 'm> {
    source: &'s LazyTransitions<'m>,
    evaluated: StepCache<'m>,
    /// The last state, the groups evaluated there, and their steps.
    from: Option<(StateId, Vec<u32>)>,
    computed: Vec<bool>,
    steps: Vec<TakenStep>,
    /// Groups that made steps with a label before; they usually do so again.
    usual: AHashMap<LabelId, Vec<u32>>,
}

impl Explainer<'_, '_> {
    /// Returns the confluent steps from the model's initial vector to the initial state.
    pub fn initial(&mut self) -> Result<Vec<TakenStep>, Diagnostic> {
        let source = self.source;
        let found = source.confluent_path(
            &mut self.evaluated,
            source.model.initial(),
            &source.vector(source.initial()),
        )?;
        found.ok_or_else(|| {
            Diagnostic::new(Stage::Internal, "no confluent steps lead to the initial state")
        })
    }
    /// Returns the model's steps behind a transition: one with this label, then confluent ones.
    pub fn step(
        &mut self,
        from: StateId,
        label: LabelId,
        to: StateId,
    ) -> Result<Vec<TakenStep>, Diagnostic> {
        let source = self.source;
        if self.from.as_ref().is_none_or(|f| f.0 != from) {
            self.from = Some((from, source.vector(from)));
            self.computed.fill(false);
            self.steps.clear();
        }
        let end = source.vector(to);
        let usual = self.usual.get(&label).cloned().unwrap_or_default();
        for group in usual.into_iter().chain(0..narrow::index(self.computed.len())) {
            self.compute(group)?;
            if let Some(step) = self.steps.iter().find(|s| s.label == label && s.state == end) {
                let step = step.clone();
                let usual = self.usual.entry(label).or_default();
                usual.retain(|g| *g != step.group);
                usual.insert(0, step.group);
                return Ok(vec![step]);
            }
        }
        for step in self.steps.iter().filter(|s| s.label == label) {
            if let Some(rest) =
                source.confluent_path(&mut self.evaluated, step.state.clone(), &end)?
            {
                return Ok(std::iter::once(step.clone()).chain(rest).collect());
            }
        }
        Err(Diagnostic::new(
            Stage::Internal,
            "a transition of the evidence is not one of the model",
        ))
    }
    /// Computes the steps of a group at the state, unless they are computed already.
    fn compute(&mut self, group: u32) -> Result<(), Diagnostic> {
        let Some((_, vector)) = &self.from else { return Ok(()) };
        if std::mem::replace(&mut self.computed[group as usize], true) {
            return Ok(());
        }
        self.steps.extend(steps_of(self.source.model, &mut self.evaluated, group, vector)?);
        Ok(())
    }
}
