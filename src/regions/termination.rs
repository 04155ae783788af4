//! Termination proof for every instance with any number of components.
//!
//! Input: a model with enough components ([`crate::replicas`]). Output: the steps of the
//! abstraction without tracked identities ([`crate::local_states`]) that a run may take infinitely
//! often ([`TerminationResult`]). If there are none, each run of each instance terminates. Rules
//! remove steps until nothing changes: steps that leave a strongly connected component of the
//! states of the shared data, or of the local states; steps that increase a counter below a bound
//! if it is never decreased within such a component; steps that remove letters from a list if,
//! within such a component, it only loses letters. Invariant: in each infinite run of each
//! instance, all but finitely many steps are images of remaining steps. docs/regions.md contains
//! the proof of each rule. The method follows size-change and lexicographic ranking arguments, with
//! strongly connected components for the finite part (Lee, Jones, Ben-Amram 2001).
//!
//! A step is stored as a product: the states of the shared data in which it is enabled, and for
//! each untracked participant its possible local states. Cost: the steps of
//! [`crate::local_states`], then rounds linear in the pairs of states of each factor.

use crate::abstractable_model::AbstractableModel;
use crate::local_states::{AbstractTransition, LocalStateSearch};
use crate::measure::{Measure, NumberChange, change};
use crate::replicas::Replicas;
use crate::sizes::SIZE;
use crate::symbolic_constants::SymbolicConstant;
use crate::thread_modular::{AbstractStep, ThreadModularAbstraction};
use ahash::{AHashMap, AHashSet};
use mu_base::components::{Adjacency, components};
use mu_base::ids::FixId;
use mu_base::{Diagnostic, Stage, narrow};
use mu_data::expr::Expr;
use mu_formula::typed::{Regular, StateKind, TypedStateFormula};
use mu_model::{Model, Slot};
use std::collections::BTreeSet;

/// Limit on the number of stored pairs of states; beyond it the proof fails with an error.
const MAX_PAIRS: usize = 60_000_000;

/// The steps that may be taken infinitely often, with the arguments for the others.
#[derive(Clone, Debug, Default)]
pub struct TerminationResult {
    /// The actions of steps that may be taken infinitely often, including hidden ones; empty if
    /// each run terminates.
    pub left: BTreeSet<String>,
    /// Counters that grow below a bound and were used; for components, those of the first identity.
    pub counters: Vec<Measure>,
    /// Parameters that are shrinking lists of identities and were used.
    pub lists: BTreeSet<usize>,
}

impl TerminationResult {
    /// True if each run of each instance terminates.
    pub fn ends(&self) -> bool {
        self.left.is_empty()
    }

    /// Merges the result for another model into this one.
    pub fn with(&mut self, more: TerminationResult) {
        self.left.extend(more.left);
        self.lists.extend(more.lists);
        for measure in more.counters {
            measure
                .summands
                .into_iter()
                .for_each(|s| self.count(measure.param, s, measure.bound.clone()));
        }
    }

    /// Records that a summand increases a counter.
    fn count(&mut self, param: usize, summand: usize, bound: Expr) {
        match self.counters.binary_search_by_key(&param, |m| m.param) {
            Err(at) => self.counters.insert(at, Measure { param, summands: vec![summand], bound }),
            Ok(at) => {
                let summands = &mut self.counters[at].summands;
                if let Err(place) = summands.binary_search(&summand) {
                    summands.insert(place, summand);
                    if place == 0 {
                        self.counters[at].bound = bound;
                    }
                }
            }
        }
    }
}

/// Computes the steps that a run may take infinitely often.
pub fn prove_termination(
    base: &dyn AbstractableModel,
    replicas: &Replicas,
    rigid: &[SymbolicConstant],
) -> Result<TerminationResult, Diagnostic> {
    let crowd = ThreadModularAbstraction::new(base, replicas, &[], &[])?;
    let mut search = LocalStateSearch::new(&crowd, Some(Vec::new()))?;
    search.run()?;
    let mut left = RemainingTransitions::new(&crowd, search)?;
    let sides =
        [StateFactor::Shared, StateFactor::Local].map(|side| (side, counters(&crowd, side, rigid)));
    let empty = crowd.empty_lists()?;
    let mut out = TerminationResult::default();
    loop {
        left.remove_transient();
        if sides.iter().any(|(side, counters)| left.count_up(*side, counters, &mut out))
            || left.shorten(&empty, &mut out)
        {
            continue;
        }
        break;
    }
    out.left = left.actions();
    Ok(out)
}

/// A factor of the state space: the shared data, or a replicated component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StateFactor {
    Shared,
    Local,
}

/// A number that grows in some steps.
struct CounterChanges {
    /// Index of the parameter; for a component, that of the first identity.
    param: usize,
    /// The change of the counter by each group and, for a component, by each participant.
    changes: Vec<Vec<NumberChange>>,
}

/// Returns the summand of a group.
fn summand_of(crowd: &ThreadModularAbstraction, group: usize) -> usize {
    crowd.compiled_process().summand_of(crowd.shares[group].inside)
}

/// Returns the counters of one factor that some group increases below a bound.
fn counters(
    crowd: &ThreadModularAbstraction,
    side: StateFactor,
    rigid: &[SymbolicConstant],
) -> Vec<CounterChanges> {
    let (replicas, process) = (crowd.replicas, crowd.process());
    let count = match side {
        StateFactor::Shared => process.params.len(),
        StateFactor::Local => replicas.local[SIZE - 1].len(),
    };
    let own = |n: usize, j: usize| match side {
        StateFactor::Shared => n,
        StateFactor::Local => replicas.local[j][n] as usize,
    };
    let shared = |n: &usize| {
        side == StateFactor::Local
            || (replicas.owner[*n].is_none() && rigid.iter().all(|r| r.param != *n))
    };
    let of = |n: usize| {
        let by_group = crowd.shares.iter().enumerate().map(|(g, share)| {
            let others = if side == StateFactor::Shared { 1 } else { share.others.len() };
            (0..others).map(|j| change(process, rigid, summand_of(crowd, g), own(n, j))).collect()
        });
        CounterChanges { param: own(n, 0), changes: by_group.collect() }
    };
    let grows =
        |c: &CounterChanges| c.changes.iter().flatten().any(|c| matches!(c, NumberChange::Up(_)));
    (0..count).filter(shared).map(of).filter(grows).collect()
}

/// The effect of a step on the shared data, or on the local state of a participant.
struct StepEffect {
    group: usize,
    /// The index of the participant.
    other: usize,
    /// True if the list that the step reads gets shorter.
    shorter: bool,
    /// Pairs of a state and its successor.
    pairs: Vec<(u32, u32)>,
}

/// The remaining steps.
struct RemainingTransitions<'c> {
    crowd: &'c ThreadModularAbstraction<'c>,
    states: Vec<Vec<u32>>,
    members: usize,
    shared: Vec<StepEffect>,
    local: Vec<StepEffect>,
    /// The moves that form each step.
    steps: Vec<(usize, Vec<usize>)>,
}

/// Moves, by group, participant and effect.
#[derive(Default)]
struct Moves {
    numbers: AHashMap<(usize, usize, Vec<u32>, Vec<u32>, bool), usize>,
    all: Vec<StepEffect>,
}

impl Moves {
    /// Returns the index of a move from states with the view `view` that writes `to`.
    fn number(
        &mut self,
        (group, other, shorter): (usize, usize, bool),
        view: &[u32],
        to: &[u32],
    ) -> usize {
        let next = self.all.len();
        let number = *self
            .numbers
            .entry((group, other, view.to_vec(), to.to_vec(), shorter))
            .or_insert(next);
        if number == next {
            self.all.push(StepEffect { group, other, shorter, pairs: Vec::new() });
        }
        number
    }
}

impl<'c> RemainingTransitions<'c> {
    /// Computes all steps of the abstraction.
    fn new(
        crowd: &'c ThreadModularAbstraction<'c>,
        search: LocalStateSearch,
    ) -> Result<Self, Diagnostic> {
        let (mut shared, mut local, mut steps) =
            (Moves::default(), Moves::default(), AHashSet::new());
        for AbstractTransition { group, reads, views, answer } in search.found.into_iter().flatten()
        {
            let AbstractStep { target, changes, shorter, .. } = answer;
            let first = shared.number((group, 0, shorter), &reads, &target);
            let rest = views
                .iter()
                .zip(&changes)
                .enumerate()
                .map(|(j, (view, to))| local.number((group, j, false), view, to));
            steps.insert((first, rest.collect::<Vec<_>>()));
        }
        let mut left = Self {
            crowd,
            states: search.states,
            members: search.members.len(),
            shared: Vec::new(),
            local: Vec::new(),
            steps: steps.into_iter().collect(),
        };
        let mut pair_count = 0;
        let read = |group: usize, _: usize, state: &Vec<u32>| {
            let own = &crowd.groups()[group];
            let all_match =
                own.requires.iter().all(|(slot, value)| state[*slot as usize] == *value);
            all_match.then(|| own.reads.iter().map(|s| state[*s as usize]).collect())
        };
        let write = |group: usize, _: usize, state: &mut Vec<u32>, to: &[u32]| {
            crowd.groups()[group]
                .writes
                .iter()
                .zip(to)
                .for_each(|(slot, value)| state[*slot as usize] = *value);
        };
        left.shared = state_pairs(shared, &left.states, &read, &write, &mut pair_count)?;
        let read = |group: usize, other: usize, member: &Vec<u32>| {
            crowd.shares[group].others[other].view(member)
        };
        let write = |group: usize, other: usize, member: &mut Vec<u32>, to: &[u32]| {
            let changes = &crowd.shares[group].others[other].changes;
            changes.iter().zip(to).for_each(|((number, _), value)| member[*number] = *value);
        };
        left.local = state_pairs(local, &search.members, &read, &write, &mut pair_count)?;
        Ok(left)
    }

    fn moves(&mut self, side: StateFactor) -> (&mut Vec<StepEffect>, usize) {
        match side {
            StateFactor::Shared => (&mut self.shared, self.states.len()),
            StateFactor::Local => (&mut self.local, self.members),
        }
    }

    /// Removes steps that leave a strongly connected component, up to the fixed point.
    fn remove_transient(&mut self) {
        loop {
            self.prune();
            let mut changed = false;
            for side in [StateFactor::Shared, StateFactor::Local] {
                let (moves, count) = self.moves(side);
                let part = parts(moves, count);
                for m in moves {
                    let before = m.pairs.len();
                    m.pairs.retain(|(a, b)| part[*a as usize] == part[*b as usize]);
                    changed |= m.pairs.len() < before;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Removes steps with an empty factor, and moves that belong to no step.
    fn prune(&mut self) {
        let (shared, local) = (&mut self.shared, &mut self.local);
        self.steps.retain(|(first, rest)| {
            !shared[*first].pairs.is_empty() && rest.iter().all(|l| !local[*l].pairs.is_empty())
        });
        let used: AHashSet<usize> = self.steps.iter().map(|s| s.0).collect();
        shared
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| !used.contains(i))
            .for_each(|(_, m)| m.pairs = Vec::new());
        let used: AHashSet<usize> = self.steps.iter().flat_map(|s| &s.1).copied().collect();
        local
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| !used.contains(i))
            .for_each(|(_, m)| m.pairs = Vec::new());
    }

    /// Removes increases below a bound in components in which the counter never decreases. Returns
    /// true if there was one.
    fn count_up(
        &mut self,
        side: StateFactor,
        counters: &[CounterChanges],
        out: &mut TerminationResult,
    ) -> bool {
        let mut changed = false;
        for counter in counters {
            let crowd = self.crowd;
            let (moves, count) = self.moves(side);
            let part = parts(moves, count);
            let of = |m: &StepEffect| &counter.changes[m.group][m.other];
            let other = |m: &&StepEffect| *of(m) == NumberChange::Other;
            let spoilt: AHashSet<u32> = moves
                .iter()
                .filter(other)
                .flat_map(|m| &m.pairs)
                .map(|p| part[p.0 as usize])
                .collect();
            for m in moves.iter_mut() {
                let NumberChange::Up(bound) = of(m).clone() else { continue };
                let before = m.pairs.len();
                m.pairs.retain(|(a, _)| spoilt.contains(&part[*a as usize]));
                if m.pairs.len() < before {
                    changed = true;
                    if m.other == 0 {
                        out.count(counter.param, summand_of(crowd, m.group), bound);
                    }
                }
            }
        }
        changed
    }

    /// Removes steps that shorten a list in components in which it only loses letters. `empty`: the
    /// shared lists, with the index of the empty list. Returns true if there was one.
    fn shorten(&mut self, empty: &[(Slot, u32)], out: &mut TerminationResult) -> bool {
        let mut changed = false;
        for &(slot, none) in empty {
            let (crowd, at) = (self.crowd, slot as usize);
            let part = parts(&self.shared, self.states.len());
            let joint = |m: &StepEffect| &crowd.replicas.groups[crowd.shares[m.group].inside];
            let writes = |m: &StepEffect| crowd.groups()[m.group].writes.contains(&slot);
            let other = |m: &&StepEffect| writes(m) && !joint(m).shrinks.contains(&slot);
            let spoilt: AHashSet<u32> = self
                .shared
                .iter()
                .filter(other)
                .flat_map(|m| &m.pairs)
                .map(|p| part[p.0 as usize])
                .collect();
            let states = &self.states;
            for m in
                self.shared.iter_mut().filter(|m| writes(m) && joint(m).shrinks.contains(&slot))
            {
                let looked = m.shorter && joint(m).list == Some(slot);
                let emptied = |a: u32, b: u32| {
                    states[a as usize][at] != none && states[b as usize][at] == none
                };
                let before = m.pairs.len();
                m.pairs.retain(|(a, b)| {
                    spoilt.contains(&part[*a as usize]) || !(looked || emptied(*a, *b))
                });
                if m.pairs.len() < before {
                    changed = true;
                    out.lists.insert(at);
                }
            }
        }
        changed
    }

    /// Returns the actions of the remaining steps.
    fn actions(&self) -> BTreeSet<String> {
        let process = self.crowd.process();
        let mut names = BTreeSet::new();
        for (first, _) in &self.steps {
            let summand = &process.summands[summand_of(self.crowd, self.shared[*first].group)];
            let all = summand.actions.iter().chain(&summand.hidden);
            let own: BTreeSet<String> =
                all.map(|a| process.actions[a.action.index()].name.clone()).collect();
            names.extend(if own.is_empty() { BTreeSet::from(["tau".to_string()]) } else { own });
        }
        names
    }
}

/// Computes the state pairs of moves. `read` and `write`: the view of a state for a group, and the
/// state after the group's writes.
fn state_pairs(
    moves: Moves,
    states: &[Vec<u32>],
    read: &dyn Fn(usize, usize, &Vec<u32>) -> Option<Vec<u32>>,
    write: &dyn Fn(usize, usize, &mut Vec<u32>, &[u32]),
    pair_count: &mut usize,
) -> Result<Vec<StepEffect>, Diagnostic> {
    let number: AHashMap<&Vec<u32>, u32> = states.iter().zip(0..).collect();
    let Moves { numbers, mut all } = moves;
    let mut by_place: AHashMap<(usize, usize), Vec<(Vec<u32>, Vec<u32>, usize)>> = AHashMap::new();
    for ((group, other, view, to, _), at) in numbers {
        by_place.entry((group, other)).or_default().push((view, to, at));
    }
    for ((group, other), list) in by_place {
        let mut showing: AHashMap<Vec<u32>, Vec<u32>> = AHashMap::new();
        for (state, n) in states.iter().zip(0..) {
            if let Some(view) = read(group, other, state) {
                showing.entry(view).or_default().push(n);
            }
        }
        for (view, to, at) in list {
            for &n in showing.get(&view).into_iter().flatten() {
                let mut next = states[n as usize].clone();
                write(group, other, &mut next, &to);
                let Some(&next) = number.get(&next) else {
                    return Err(Diagnostic::internal("a step leads to an unknown state"));
                };
                all[at].pairs.push((n, next));
            }
            *pair_count += all[at].pairs.len();
            if *pair_count > MAX_PAIRS {
                return Err(Diagnostic::new(
                    Stage::Unsupported,
                    "components of any number have too many steps",
                ));
            }
        }
    }
    Ok(all)
}

/// Computes the strongly connected components of `count` states under some moves: a number for each
/// state.
fn parts(moves: &[StepEffect], count: usize) -> Vec<u32> {
    let mut edges: Vec<(u32, u32)> =
        moves.iter().flat_map(|m| &m.pairs).copied().filter(|(a, b)| a != b).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut offsets = vec![0; count + 1];
    edges.iter().for_each(|e| offsets[e.0 as usize + 1] += 1);
    (0..count).for_each(|i| offsets[i + 1] += offsets[i]);
    let found =
        components(&Adjacency { offsets, targets: edges.into_iter().map(|e| e.1).collect() });
    let mut part = vec![0; count];
    for (number, states) in found.iter().enumerate() {
        states.iter().for_each(|s| part[*s as usize] = narrow::index(number));
    }
    part
}

/// A classification of the least fixed points of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Least {
    /// There are none.
    None,
    /// Each variable of one is below a modality that takes a step. If all runs terminate, the fixed
    /// point is then unique.
    Guarded,
    /// Other least fixed points.
    Unguarded,
}

/// Classifies the least fixed points of a formula.
pub fn least(f: &TypedStateFormula) -> Least {
    walk(f, true, &mut Vec::new())
}

/// Classifies those of a subformula. `open`: variables of least fixed points without a modality
/// that takes a step since their binder.
fn walk(f: &TypedStateFormula, positive: bool, open: &mut Vec<FixId>) -> Least {
    stacker::maybe_grow(128 << 10, 4 << 20, || match &f.kind {
        StateKind::True | StateKind::False | StateKind::Val(_) => Least::None,
        StateKind::Not(g) => walk(g, !positive, open),
        StateKind::Forall(_, g) | StateKind::Exists(_, g) => walk(g, positive, open),
        StateKind::And(a, b) | StateKind::Or(a, b) => {
            walk(a, positive, open).max(walk(b, positive, open))
        }
        StateKind::Implies(a, b) => walk(a, !positive, open).max(walk(b, positive, open)),
        StateKind::Must(r, g) | StateKind::May(r, g) => {
            let below = if may_be_empty(r) {
                walk(g, positive, open)
            } else {
                walk(g, positive, &mut Vec::new())
            };
            // `<R*> f` is a least fixed point; under a negation, `[R*] f` is.
            let star = has_star(r) && matches!(f.kind, StateKind::May(..)) == positive;
            if star { below.max(Least::Unguarded) } else { below }
        }
        StateKind::Fix { least, var, body, .. } => {
            if *least != positive {
                return walk(body, positive, open);
            }
            open.push(*var);
            let below = walk(body, positive, open);
            open.pop();
            below.max(Least::Guarded)
        }
        StateKind::Var(x, _) => {
            if open.contains(x) {
                Least::Unguarded
            } else {
                Least::None
            }
        }
    })
}

fn has_star(r: &Regular) -> bool {
    match r {
        Regular::Action(_) => false,
        Regular::Seq(a, b) | Regular::Alt(a, b) => has_star(a) || has_star(b),
        Regular::Star(_) | Regular::Plus(_) => true,
    }
}

fn may_be_empty(r: &Regular) -> bool {
    match r {
        Regular::Action(_) => false,
        Regular::Seq(a, b) => may_be_empty(a) && may_be_empty(b),
        Regular::Alt(a, b) => may_be_empty(a) || may_be_empty(b),
        Regular::Star(_) => true,
        Regular::Plus(a) => may_be_empty(a),
    }
}
