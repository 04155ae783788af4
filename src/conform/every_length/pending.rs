//! Can every store that is issued still commit, and can every processor continue?
//!
//! Input: a machine. Output: [`Continuation`]. For each address the product with the guess that
//! follows one store is explored with its transitions. A state with the store issued, not
//! committed, and not absorbed must have a path to its commit: otherwise some order of commits is
//! never shown, and a violation may be missed. A state from which a processor begins no further
//! operation limits the length of programs. In an instance of a machine with any number of
//! operations, a store may be stuck because processors have stopped: the same run of a larger
//! instance has not. Cost: for each address one exploration that stores the transitions, and
//! searches backwards over them.

use super::coherence::Coherence;
use super::decide::{Subject, Survey};
use super::effects::{Effect, LabelReader};
use super::monitor::{Guess, Roles};
use super::product::{Goal, Product};
use crate::machine::with_used_labels;
use ahash::AHashSet;
use fixedbitset::FixedBitSet;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Diagnostic, Stop, narrow};
use mu_explore::explore_lts;
use mu_lts::Lts;

/// Result of the check.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Continuation {
    /// States examined, over all addresses.
    pub states: u64,
    /// An address at which a store may never commit.
    pub stuck: Option<u32>,
    /// A processor that may be unable to begin a further operation.
    pub stopped: Option<u32>,
}

/// Checks that stores can commit and processors can continue. `running`: states in which some
/// processor has stopped do not count for stores. Error: a limit.
pub(super) fn continuation(
    subject: &Subject<'_>,
    survey: &Survey,
    (reader, actions): (&LabelReader<'_>, &AHashSet<String>),
    running: bool,
) -> Result<Continuation, Diagnostic> {
    let mut out = Continuation::default();
    for address in 0..survey.size.addresses {
        let guesses = [Guess::Coherence(Coherence::once(address))];
        let roles = (survey.roles, &guesses[..]);
        let product = Product::new(subject.machine, reader, actions, roles, Goal::Alarm);
        let options = subject.options.clone().with_confluence_of(&product);
        let (outcome, lts) = explore_lts(&product, &options, subject.budget, subject.progress)?;
        if outcome.stop != Stop::Complete {
            return Err(Diagnostic::stopped(outcome.stop));
        }
        let lts = with_used_labels(lts);
        out.states += outcome.states;
        let effects = effects_of(&lts, reader)?;
        let graph = ReverseTransitions::of(&lts);
        let mut live = FixedBitSet::with_capacity(lts.state_count());
        live.insert_range(..);
        for processor in (0..survey.size.processors).filter(|_| running) {
            live.intersect_with(&states_before_operation(&lts, &graph, &effects, processor));
        }
        if survey.size.commits && out.stuck.is_none() {
            let state_of = monitor_states(&lts, &effects, &guesses[0], &survey.roles);
            let pending = |s: usize| Coherence::is_pending(state_of[s]);
            let free = (0..lts.state_count()).filter(|s| {
                state_of[*s] != 0 && !pending(*s) && !Coherence::is_absorbed(state_of[*s])
            });
            let reaches = graph.backward(free);
            let is_stuck = |s: usize| pending(s) && !reaches[s] && live[s];
            out.stuck = (0..lts.state_count()).any(is_stuck).then_some(address);
        }
    }
    Ok(out)
}

/// Returns a processor that begins no further operation from some state of a machine on. Error: a
/// label with several operations.
pub(super) fn stopping_processor(
    lts: &Lts,
    reader: &LabelReader<'_>,
    processors: u32,
) -> Result<Option<u32>, Diagnostic> {
    let (effects, graph) = (effects_of(lts, reader)?, ReverseTransitions::of(lts));
    let stops = |processor: &u32| {
        states_before_operation(lts, &graph, &effects, *processor).count_ones(..)
            < lts.state_count()
    };
    Ok((0..processors).find(stops))
}

/// Returns the effects of each label. Error: a label with several operations.
fn effects_of(lts: &Lts, reader: &LabelReader<'_>) -> Result<Vec<Vec<Effect>>, Diagnostic> {
    lts.table.texts.iter().map(|text| reader.effects(text)).collect()
}

/// Returns the states from which a processor can begin a further operation.
fn states_before_operation(
    lts: &Lts,
    graph: &ReverseTransitions,
    effects: &[Vec<Effect>],
    processor: u32,
) -> FixedBitSet {
    let begins = |l: LabelId| effects[l.index()].iter().any(|e| is_operation(e, processor));
    let is_source = |s: &usize| lts.successors(StateId::new(*s)).any(|(l, _)| begins(l));
    graph.backward((0..lts.state_count()).filter(is_source))
}

fn is_operation(effect: &Effect, of: u32) -> bool {
    match *effect {
        Effect::Begin { processor, .. }
        | Effect::Load { processor, .. }
        | Effect::Store { processor, .. }
        | Effect::Update { processor, .. }
        | Effect::Fence { processor, .. } => processor == of,
        Effect::End { .. } | Effect::Commit { .. } | Effect::Absorb { .. } => false,
    }
}

/// Returns the state of the monitor in each state of the product. It is part of that state, so any
/// path determines it.
fn monitor_states(lts: &Lts, effects: &[Vec<Effect>], guess: &Guess, roles: &Roles) -> Vec<u32> {
    let mut states = vec![0; lts.state_count()];
    let mut known = FixedBitSet::with_capacity(lts.state_count());
    let mut open = vec![lts.initial];
    known.insert(lts.initial.index());
    while let Some(from) = open.pop() {
        for (label, to) in lts.successors(from) {
            if known.put(to.index()) {
                continue;
            }
            let all = effects[label.index()].iter();
            states[to.index()] = all.fold(states[from.index()], |state, effect| {
                guess.apply(roles, state, effect).unwrap_or(state)
            });
            open.push(to);
        }
    }
    states
}

/// Transitions by their targets.
struct ReverseTransitions {
    offsets: Vec<u32>,
    sources: Vec<u32>,
}

impl ReverseTransitions {
    fn of(lts: &Lts) -> ReverseTransitions {
        let mut offsets = vec![0u32; lts.state_count() + 1];
        lts.targets.iter().for_each(|t| offsets[t.index() + 1] += 1);
        for i in 1..offsets.len() {
            offsets[i] += offsets[i - 1];
        }
        let mut next = offsets.clone();
        let mut sources = vec![0; lts.targets.len()];
        for s in 0..narrow::index(lts.state_count()) {
            for (_, t) in lts.successors(StateId::of(s)) {
                let place = &mut next[t.index()];
                sources[*place as usize] = s;
                *place += 1;
            }
        }
        ReverseTransitions { offsets, sources }
    }
    /// Returns the states with a path to one of these.
    fn backward(&self, from: impl Iterator<Item = usize>) -> FixedBitSet {
        let mut reached = FixedBitSet::with_capacity(self.offsets.len() - 1);
        let mut open = Vec::new();
        for s in from {
            reached.insert(s);
            open.push(s);
        }
        while let Some(s) = open.pop() {
            for &source in &self.sources[self.offsets[s] as usize..self.offsets[s + 1] as usize] {
                if !reached.put(source as usize) {
                    open.push(source as usize);
                }
            }
        }
        reached
    }
}
