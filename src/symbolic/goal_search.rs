//! Symbolic search for a goal, with a shortest path to it.
//!
//! Input -> output: a [`Model`] and a [`Goal`] -> a [`ReachOutcome`], and a [`GoalPath`] if the
//! goal is reachable. First the chosen strategy runs. For labels it stops when one is learned,
//! which proves reachability, because a short vector is learned only if a reachable state has it.
//! Only if the goal is reachable, a breadth-first search over the learned relations stores its
//! layers, and the path is reconstructed backwards from the goal by preimages.
//!
//! Invariant: without a trace, the goal is unreachable exactly if the outcome is complete.

use super::ldd::{Ldd, LevelAction};
use super::reach::{ReachOutcome, ReachSearch, Strategy, SymbolicOptions, with_threads};
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, Stage};
use mu_model::{Model, Slot};

/// Goal of a search.
pub enum Goal<'a> {
    /// A step with a label that satisfies the predicate.
    Label(&'a dyn Fn(LabelId) -> bool),
    /// A state without steps.
    Deadlock,
    /// A state with this value in this slot.
    Value(Slot, u32),
}

/// A path from the initial state to a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalPath {
    /// The initial state.
    pub initial: Vec<u32>,
    /// Labels with their target states. A goal label is the last one.
    pub steps: Vec<(LabelId, Vec<u32>)>,
}

/// Searches for a goal.
pub fn find(
    model: &dyn Model,
    goal: &Goal<'_>,
    options: &SymbolicOptions,
    budget: &Budget,
) -> Result<(ReachOutcome, Option<GoalPath>), Diagnostic> {
    with_threads(model, options, budget, |team| {
        let wanted: Option<Box<dyn Fn(LabelId) -> bool + '_>> = match goal {
            Goal::Label(wanted) => Some(Box::new(wanted)),
            _ => None,
        };
        let mut search = ReachSearch::new(model, options, budget, wanted)?;
        search.stops_at_goal = true;
        search.set_helpers(team);
        if options.strategy != Strategy::BreadthFirst {
            let states = search.run(options.strategy)?;
            search.stops_at_goal = false;
            let reached = search.evaluator.found
                || !search.is_halted() && !search.goals(goal, states)?.is_empty();
            if !reached {
                return Ok((search.outcome(states)?, None));
            }
        }
        search.stops_at_goal = false;
        search.resume();
        search.trace(goal)
    })
}

impl<'m> ReachSearch<'m> {
    /// Returns the members of `set` that are goals, or have a goal step. Learns from the set if
    /// necessary.
    fn goals(&mut self, goal: &Goal<'_>, set: Ldd) -> Result<Ldd, Diagnostic> {
        let mut goals = Ldd::EMPTY;
        match *goal {
            Goal::Value(slot, value) => {
                let level = self.level(slot);
                let mut actions = vec![LevelAction::Skip; level + 1];
                actions[level] = LevelAction::Require(value);
                let plan = self.manager.plan_of(&actions);
                goals = self.manager.select_matches(set, Ldd::UNIT, plan);
            }
            Goal::Label(_) => {
                for i in 0..self.relations.len() {
                    self.learn(i, set, false);
                    for member in &self.relations[i].members {
                        let able =
                            self.manager.select_matches(set, member.sets.goal, member.matches);
                        goals = self.manager.union(goals, able);
                    }
                }
            }
            Goal::Deadlock => {
                for i in 0..self.relations.len() {
                    self.learn(i, set, false);
                }
                goals = self.deadlocks(set);
            }
        }
        self.failure.take().map_or(Ok(goals), Err)
    }

    /// Searches breadth first for the goal and reconstructs a path to it.
    fn trace(mut self, goal: &Goal<'_>) -> Result<(ReachOutcome, Option<GoalPath>), Diagnostic> {
        let initial = self.initial();
        let mut layers = Vec::new();
        let mut goals = Ok(Ldd::EMPTY);
        let states = self.layers(initial, |search, layer| {
            layers.push(layer);
            goals = search.goals(goal, layer);
            !matches!(goals, Ok(Ldd::EMPTY))
        });
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let goals = goals?;
        if self.is_halted() || goals.is_empty() {
            return Ok((self.outcome(states)?, None));
        }
        let broken = || {
            Diagnostic::new(
                Stage::Internal,
                "a state of a layer has no predecessor in the layer before",
            )
        };
        let mut vector = self.manager.pick(goals).ok_or_else(broken)?;
        let mut steps = Vec::new();
        if matches!(goal, Goal::Label(_)) {
            let state = self.to_slots(&vector);
            steps.push(self.step_between(&state, None)?.ok_or_else(broken)?);
        }
        layers.pop();
        while let Some(layer) = layers.pop() {
            let to = self.manager.singleton(&vector);
            let mut before = Ldd::EMPTY;
            for r in self.relations.iter().filter(|r| r.writes) {
                before = self.manager.relprev(to, r.relation, r.image[0], layer);
                if !before.is_empty() {
                    break;
                }
            }
            if self.is_halted() {
                return Ok((self.outcome(states)?, None));
            }
            let from = self.manager.pick(before).ok_or_else(broken)?;
            let (source, target) = (self.to_slots(&from), self.to_slots(&vector));
            steps.push(self.step_between(&source, Some(&target))?.ok_or_else(broken)?);
            vector = from;
        }
        steps.reverse();
        let initial = self.model.initial();
        let outcome = self.outcome(states)?;
        Ok((outcome, Some(GoalPath { initial, steps })))
    }

    /// Returns a step from one state to another; if `to` is `None`, a step with a goal label.
    fn step_between(
        &mut self,
        from: &[u32],
        to: Option<&[u32]>,
    ) -> Result<Option<(LabelId, Vec<u32>)>, Diagnostic> {
        for member in self.relations.iter().flat_map(|r| &r.members) {
            let steps =
                member.steps_from(&self.model.groups()[member.group], &mut self.evaluator, from)?;
            let wanted = |label| self.evaluator.wanted.as_ref().is_some_and(|wanted| wanted(label));
            let step = steps
                .into_iter()
                .find(|(label, state)| to.map_or_else(|| wanted(*label), |to| state == to));
            if step.is_some() {
                return Ok(step);
            }
        }
        Ok(None)
    }
}
