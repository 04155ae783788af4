//! Reachable local states of untracked components.
//!
//! Input: a model with enough components ([`crate::replicas`]). Output: a set of local states that
//! contains the initial one and is closed under the steps of the abstraction without tracked
//! identities ([`crate::ThreadModularAbstraction`]), in which all participants have local states of
//! the set. By induction over runs, each component of each instance is always in one of them. This
//! also holds with tracked identities, since these are untracked in that abstraction. Cost: the
//! shared states times the groups, in rounds up to the fixed point. The computation respects the
//! limits of the run, and gives up above `MAX_STATES` states.

use crate::abstractable_model::AbstractableModel;
use crate::replicas::Replicas;
use crate::thread_modular::{
    AbstractStep, Evaluator, LocalState, ThreadModularAbstraction, choices,
};
use ahash::{AHashMap, AHashSet};
use mu_base::{Diagnostic, Stage};
use mu_model::Model;

/// Limit on the number of shared or local states; beyond it the computation gives up.
const MAX_STATES: usize = 300_000;

/// Number of evaluations between two checks of the limits.
const CHECK_INTERVAL: u32 = 1 << 8;

/// The effects of a group's steps on a participant, by its view.
type Effects = AHashMap<(usize, usize, Vec<u32>), AHashSet<Vec<u32>>>;

/// Computes the reachable local states.
pub fn reachable_local_states(
    base: &dyn AbstractableModel,
    replicas: &Replicas,
) -> Result<Vec<LocalState>, Diagnostic> {
    let crowd = ThreadModularAbstraction::new(base, replicas, &[], &[])?;
    if replicas.local.iter().all(Vec::is_empty) && replicas.most == 0 {
        return Ok(Vec::new());
    }
    let mut search = LocalStateSearch::new(&crowd, None)?;
    search.run()?;
    Ok(search.members)
}

/// A step of the abstraction.
pub(crate) struct AbstractTransition {
    pub group: usize,
    pub reads: Vec<u32>,
    /// The views of the participants.
    pub views: Vec<Vec<u32>>,
    pub answer: AbstractStep,
}

/// Checks the limits of the run at intervals.
fn check_limits(crowd: &ThreadModularAbstraction, patience: &mut u32) -> Result<(), Diagnostic> {
    if *patience > 0 {
        *patience -= 1;
        return Ok(());
    }
    *patience = CHECK_INTERVAL;
    let budget = crowd.compiled_process().budget();
    budget.check(0).and_then(|()| budget.check_memory()).map_err(Diagnostic::stopped)
}

/// Search for all local states, and all states of the shared data.
pub(crate) struct LocalStateSearch<'c> {
    crowd: &'c ThreadModularAbstraction<'c>,
    pub members: Vec<LocalState>,
    known: AHashSet<LocalState>,
    pub states: Vec<Vec<u32>>,
    seen: AHashSet<Vec<u32>>,
    /// Evaluated queries of each group, with the targets.
    evaluated: AHashMap<(usize, Vec<u32>), (AHashSet<Vec<Vec<u32>>>, AHashSet<Vec<u32>>)>,
    effects: Effects,
    /// All steps, if requested.
    pub found: Option<Vec<AbstractTransition>>,
    /// Number of evaluations until the next check of the limits.
    patience: u32,
}

impl<'c> LocalStateSearch<'c> {
    /// Creates a search from the initial states, which stores steps in `found` if it is given.
    pub fn new(
        crowd: &'c ThreadModularAbstraction<'c>,
        found: Option<Vec<AbstractTransition>>,
    ) -> Result<Self, Diagnostic> {
        let (members, states) = (vec![crowd.first()?], vec![crowd.initial()]);
        let (known, seen) = (members.iter().cloned().collect(), states.iter().cloned().collect());
        Ok(Self {
            crowd,
            members,
            known,
            states,
            seen,
            evaluated: AHashMap::new(),
            effects: AHashMap::new(),
            found,
            patience: 0,
        })
    }

    /// Repeats rounds up to the fixed point.
    pub fn run(&mut self) -> Result<(), Diagnostic> {
        let mut thread = Evaluator::new(self.crowd);
        while self.round(&mut thread)? {}
        Ok(())
    }

    /// Gives up above the limit.
    fn check_limit(&self) -> Result<(), Diagnostic> {
        if self.states.len() <= MAX_STATES && self.members.len() <= MAX_STATES {
            return Ok(());
        }
        let (what, count) = if self.members.len() > MAX_STATES {
            ("local states of the components", self.members.len())
        } else {
            ("states of what the components share", self.states.len())
        };
        let text = format!(
            "with any number of components there are more than {} {what}: the abstraction does not count the components in a local state, \
             so that what the others do to shared data, such as a number that they increase, has no bound",
            count - 1
        );
        Err(Diagnostic::new(Stage::Unsupported, text))
    }

    /// Evaluates all steps of the known states. Returns true if something new was found.
    fn round(&mut self, thread: &mut Evaluator) -> Result<bool, Diagnostic> {
        self.patience = 0;
        check_limits(self.crowd, &mut self.patience)?;
        let (before, members) = (self.states.len(), self.members.len());
        for (g, group) in self.crowd.groups().iter().enumerate() {
            let others = &self.crowd.shares[g].others;
            let views: Vec<AHashSet<Vec<u32>>> = others
                .iter()
                .map(|o| self.members.iter().filter_map(|m| o.view(m)).collect())
                .collect();
            let mut done: AHashSet<Vec<u32>> = AHashSet::new();
            let mut at = 0;
            while at < self.states.len() {
                let state = self.states[at].clone();
                at += 1;
                if group.requires.iter().any(|(slot, value)| state[*slot as usize] != *value) {
                    continue;
                }
                let reads: Vec<u32> = group.reads.iter().map(|s| state[*s as usize]).collect();
                if done.insert(reads.clone()) {
                    self.evaluate(thread, g, &reads, &views)?;
                    self.check_limit()?;
                }
                let targets: Vec<Vec<u32>> =
                    self.evaluated[&(g, reads)].1.iter().cloned().collect();
                for target in targets {
                    let mut next = state.clone();
                    group
                        .writes
                        .iter()
                        .zip(target)
                        .for_each(|(slot, value)| next[*slot as usize] = value);
                    if self.seen.insert(next.clone()) {
                        self.states.push(next);
                    }
                }
            }
        }
        let mut at = 0;
        while at < self.members.len() {
            self.step(at);
            self.check_limit()?;
            at += 1;
        }
        Ok(self.states.len() > before || self.members.len() > members)
    }

    /// Evaluates a group for new views.
    fn evaluate(
        &mut self,
        thread: &mut Evaluator,
        group: usize,
        reads: &[u32],
        views: &[AHashSet<Vec<u32>>],
    ) -> Result<(), Diagnostic> {
        let others = &self.crowd.shares[group].others;
        let (evaluated, targets) = self.evaluated.entry((group, reads.to_vec())).or_default();
        let fitting: Vec<Vec<&[u32]>> = others
            .iter()
            .zip(views)
            .map(|(o, all)| {
                all.iter().filter(|v| o.matches_view(v, reads)).map(Vec::as_slice).collect()
            })
            .collect();
        for chosen in choices(&fitting) {
            if !evaluated.insert(chosen.iter().map(|v| v.to_vec()).collect()) {
                continue;
            }
            check_limits(self.crowd, &mut self.patience)?;
            for answer in thread.answers(group, reads, &chosen)? {
                targets.insert(answer.target.clone());
                for (j, change) in answer.changes.iter().enumerate() {
                    self.effects
                        .entry((group, j, chosen[j].to_vec()))
                        .or_default()
                        .insert(change.clone());
                }
                if let Some(found) = &mut self.found {
                    let views = chosen.iter().map(|v| v.to_vec()).collect();
                    found.push(AbstractTransition { group, reads: reads.to_vec(), views, answer });
                }
            }
        }
        Ok(())
    }

    /// Computes the successors of a local state.
    fn step(&mut self, at: usize) {
        let member = self.members[at].clone();
        for (g, share) in self.crowd.shares.iter().enumerate() {
            for (j, other) in share.others.iter().enumerate() {
                let Some(view) = other.view(&member) else { continue };
                for change in self.effects.get(&(g, j, view)).into_iter().flatten() {
                    let mut next = member.clone();
                    other
                        .changes
                        .iter()
                        .zip(change)
                        .for_each(|((number, _), value)| next[*number] = *value);
                    if self.known.insert(next.clone()) {
                        self.members.push(next);
                    }
                }
            }
        }
    }
}
