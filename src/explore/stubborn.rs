//! Partial-order reduction: selects groups with steps that suffice to preserve the answer.
//!
//! In: a model's groups (slots tested, read and written) and a [`Visibility`], which states what a
//! reduced search must preserve. Out: for a state and its enabled groups (those with steps there),
//! a *stubborn set* of groups; the steps of the others are left out. After Valmari, "Stubborn sets
//! for reduced state space generation" (1991) and "The State Explosion Problem" (1998); necessary
//! enabling sets from guards after Laarman, Pater, van de Pol, Hansen, "Guard-based partial-order
//! reduction" (STTT 18, 2016).
//!
//! Two groups *conflict* if one writes a slot that the other tests, reads or writes, unless no
//! state enables both, because they require different values of a slot. A set S of groups is
//! stubborn in a state if it is closed:
//!
//! - with an enabled group it contains all groups that conflict with it;
//! - with a disabled group it contains all groups of a necessary enabling set: those that write one
//!   slot with a wrong value, or, if all required values are right, those that write a slot on
//!   which the group's own condition depends.
//!
//! Let t1 .. tn be steps of the full system from the state, ti the first one of a group of S. That
//! group is already enabled in the state, since no group outside of S enables it, and ti conflicts
//! with none of t1 .. t(i-1) (each of which is taken where ti's group is enabled as well). So ti
//! can be taken first, under the same label, and the others after it lead to the same state. This
//! implies, without any condition on cycles:
//!
//! - *Deadlocks.* If S contains an enabled group, t1 .. tn to a deadlock has a step of S: an
//!   enabled group of S would otherwise still be enabled. So some step of the reduced search leads
//!   to n-1 steps before the same deadlock: each deadlock is reached, at its distance.
//! - *Visible steps.* S contains all groups that may take a visible step. A run that ends with a
//!   visible step has a step of S, and taking the first such step first preserves the order of
//!   visible ones: no visible step was before it, if it is visible itself. So all sequences of
//!   visible labels are preserved, each with its shortest runs, and a set S without enabled groups
//!   shows that no visible step is left. The steps left out are independent of the visible ones, so
//!   nothing is postponed forever: a search in any order and by any number of threads needs no
//!   proviso.
//!
//! *Postponing visible groups.* A set with all visible groups may be large. A search for formulas
//! that proceeds level by level may instead use a set S without enabled visible groups, on a
//! proviso: some step of S leads to a state of a later level ([`super::annotate`]). A run without a
//! step of S can still be taken after that step, which is invisible. Levels are finitely many, so
//! eventually S has a step of the run or contains all visible groups: nothing is postponed forever.
//! This is the ignoring problem; compare the proviso for breadth-first search of Bošnački, Leue,
//! Lluch Lafuente (STTT 11, 2009). Here it uses the level of a state, which never changes, instead
//! of its presence in the queue. A step of S that is taken first is invisible, so the order of
//! visible ones is preserved. Runs may get longer, so this is not for shortest paths. If no step
//! leads to a later level, the set with the visible groups is used.
//!
//! Not with symmetries: these are verified on the expanded steps, and a postponed run passes
//! through other states. Not with priority of confluent steps.
//!
//! Cost: a bit for each pair of groups; for each state a pass over the groups of the set, for each
//! of a few initial groups; the set with the fewest enabled groups is used. All steps are computed
//! (mostly cache lookups): the reduction saves states. Invariant: the set depends on the state, the
//! model and the visibility only; with the proviso on the levels of states as well, which depend on
//! nothing else. So the stored states do not depend on threads.

use super::Options;
use mu_base::narrow;
use mu_model::{Group, Model, Slot};

/// Limit on the groups of a model that is reduced: the table of conflicts has a bit for each pair.
const MAX_GROUPS: usize = 1 << 12;
/// Number of enabled groups that are tried as initial groups in each state.
const MAX_TRIED: usize = 24;
/// Number of states after which a reduction is abandoned if it leaves out fewer than one step for
/// six taken: the choice then costs more than it saves.
const JUDGE_AFTER: u64 = 1 << 9;

/// Visible steps and deadlocks that a reduced search must preserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visibility {
    /// By group: true if its steps are visible, that is, they and their order are preserved.
    pub visible: Vec<bool>,
    /// True if deadlocks are preserved, each after the same visible steps as without reduction.
    pub preserves_deadlocks: bool,
}

impl Visibility {
    /// Preserves deadlocks only.
    pub fn deadlocks(model: &dyn Model) -> Self {
        Self { visible: vec![false; model.groups().len()], preserves_deadlocks: true }
    }

    /// Preserves steps of an action, given by name, visible or hidden. A group without known action
    /// names counts as visible.
    pub fn action(model: &dyn Model, name: &str) -> Self {
        let may = |g: &Group| {
            g.actions.as_ref().is_none_or(|a| a.iter().any(|a| a == name))
                || g.hidden.iter().any(|h| h == name)
        };
        Self { visible: model.groups().iter().map(may).collect(), preserves_deadlocks: false }
    }
}

/// Reason why a search is not reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReductionObstacle {
    /// An option disables reduction.
    Disabled,
    /// Confluent steps have priority.
    Confluence,
    /// Symmetries are used.
    Symmetry,
    /// The search writes checkpoints.
    Checkpoints,
    /// The search is distributed.
    Processes,
    /// Every pair of groups conflicts.
    Dependent,
    /// The answer depends on the steps of every group.
    Visible,
    /// There are too many groups.
    Large,
    /// The reduction saved too little.
    Futile,
}

impl ReductionObstacle {
    /// Returns the reason, to follow "not used:".
    pub fn text(self) -> &'static str {
        match self {
            ReductionObstacle::Disabled => "disabled by an option",
            ReductionObstacle::Confluence => "confluent steps have priority",
            ReductionObstacle::Symmetry => {
                "symmetries are used, and they are verified on all steps"
            }
            ReductionObstacle::Checkpoints => "checkpoints require all steps",
            ReductionObstacle::Processes => {
                "the search is distributed, so steps could be postponed forever"
            }
            ReductionObstacle::Dependent => "no two transition groups are independent",
            ReductionObstacle::Visible => "the answer depends on every transition group",
            ReductionObstacle::Large => "the model has too many transition groups",
            ReductionObstacle::Futile => "it saved too little",
        }
    }
    /// Returns the stable keyword for reports.
    pub fn word(self) -> &'static str {
        match self {
            ReductionObstacle::Disabled => "asked",
            ReductionObstacle::Confluence => "confluence",
            ReductionObstacle::Symmetry => "symmetry",
            ReductionObstacle::Checkpoints => "checkpoint",
            ReductionObstacle::Processes => "processes",
            ReductionObstacle::Dependent => "dependent",
            ReductionObstacle::Visible => "visible",
            ReductionObstacle::Large => "large",
            ReductionObstacle::Futile => "futile",
        }
    }
}

/// Savings of partial-order reduction in a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReductionSavings {
    /// Expansions that left out steps.
    pub states: u64,
    /// Steps left out in these expansions.
    pub steps: u64,
}

impl ReductionSavings {
    /// True if the savings are too small after `states` states, compared with the steps taken.
    pub(crate) fn is_futile(self, states: u64, taken: u64) -> bool {
        states >= JUDGE_AFTER && self.steps * 6 < taken
    }
}

/// Effect of partial-order reduction on a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartialOrder {
    /// The goal depends on all steps.
    #[default]
    None,
    /// Reduction was used.
    Used(ReductionSavings),
    /// Reduction was not used.
    Unused(ReductionObstacle),
}

impl PartialOrder {
    pub(crate) fn of(wanted: bool, futile: bool, saved: ReductionSavings) -> Self {
        match (wanted, futile) {
            (false, _) => PartialOrder::None,
            (true, true) => PartialOrder::Unused(ReductionObstacle::Futile),
            (true, false) => PartialOrder::Used(saved),
        }
    }
}

impl std::ops::AddAssign for ReductionSavings {
    fn add_assign(&mut self, other: ReductionSavings) {
        self.states += other.states;
        self.steps += other.steps;
    }
}

/// Sets of groups as rows of bits.
struct Bits {
    words: usize,
    bits: Vec<u64>,
}

impl Bits {
    fn new(rows: usize, columns: usize) -> Self {
        let words = columns.div_ceil(64);
        Self { words, bits: vec![0; rows * words] }
    }
    fn row(&self, row: usize) -> &[u64] {
        &self.bits[row * self.words..(row + 1) * self.words]
    }
    fn row_mut(&mut self, row: usize) -> &mut [u64] {
        &mut self.bits[row * self.words..(row + 1) * self.words]
    }
    fn put(&mut self, row: usize, column: usize) {
        self.row_mut(row)[column / 64] |= 1 << (column % 64);
    }
}

fn join(to: &mut [u64], from: &[u64]) {
    to.iter_mut().zip(from).for_each(|(t, f)| *t |= f);
}

fn has(set: &[u64], group: usize) -> bool {
    set[group / 64] >> (group % 64) & 1 == 1
}

/// Static analysis of a model's groups; see the module header.
pub(crate) struct Stubborn<'m> {
    groups: &'m [Group],
    words: usize,
    /// By group: the groups that conflict with it.
    conflicts: Bits,
    /// By slot: the groups that write it.
    writers: Bits,
    /// By group: the groups that write a slot on which its own condition depends, except
    /// required values.
    enablers: Bits,
    visible: Vec<usize>,
    is_visible: Vec<u64>,
    preserves_deadlocks: bool,
}

impl<'m> Stubborn<'m> {
    /// Analyses a model for a search with these options.
    pub fn with(
        model: &'m dyn Model,
        options: &Options,
        visibility: &Visibility,
    ) -> Result<Self, ReductionObstacle> {
        if !options.partial_order {
            return Err(ReductionObstacle::Disabled);
        }
        if options.confluent.contains(&true) || options.first.contains(&true) {
            return Err(ReductionObstacle::Confluence);
        }
        Self::new(model, visibility)
    }

    /// Analyses all pairs of groups; `Err` if a reduction cannot save anything.
    pub fn new(model: &'m dyn Model, visibility: &Visibility) -> Result<Self, ReductionObstacle> {
        let groups = model.groups();
        let visible: Vec<usize> =
            (0..groups.len()).filter(|&g| visibility.visible.get(g).is_none_or(|v| *v)).collect();
        if groups.len() > MAX_GROUPS {
            return Err(ReductionObstacle::Large);
        }
        if visible.len() == groups.len() {
            return Err(ReductionObstacle::Visible);
        }
        let slots = model.slots().len();
        let (mut writers, mut touchers) =
            (Bits::new(slots, groups.len()), Bits::new(slots, groups.len()));
        for (g, group) in groups.iter().enumerate() {
            group.writes.iter().for_each(|&s| writers.put(s as usize, g));
            tested_slots(group)
                .chain(group.writes.iter().copied())
                .for_each(|s| touchers.put(s as usize, g));
        }
        let (mut conflicts, mut enablers) =
            (Bits::new(groups.len(), groups.len()), Bits::new(groups.len(), groups.len()));
        for (g, group) in groups.iter().enumerate() {
            let row = conflicts.row_mut(g);
            group.writes.iter().for_each(|&s| join(row, touchers.row(s as usize)));
            tested_slots(group).for_each(|s| join(row, writers.row(s as usize)));
            for other in (0..groups.len())
                .filter(|&o| has(conflicts.row(g), o) && !can_both_be_enabled(group, &groups[o]))
                .collect::<Vec<_>>()
            {
                conflicts.row_mut(g)[other / 64] &= !(1 << (other % 64));
            }
            group.tests.iter().for_each(|&s| join(enablers.row_mut(g), writers.row(s as usize)));
        }
        let mut is_visible = vec![0; conflicts.words];
        visible.iter().for_each(|g| is_visible[g / 64] |= 1 << (g % 64));
        let stubborn = Self {
            is_visible,
            groups,
            words: conflicts.words,
            conflicts,
            writers,
            enablers,
            visible,
            preserves_deadlocks: visibility.preserves_deadlocks,
        };
        if stubborn.all_conflict() { Err(ReductionObstacle::Dependent) } else { Ok(stubborn) }
    }

    /// True if every two groups that some state enables conflict.
    fn all_conflict(&self) -> bool {
        let apart = |g: usize, o: usize| {
            has(self.conflicts.row(g), o) || !can_both_be_enabled(&self.groups[g], &self.groups[o])
        };
        (0..self.groups.len()).all(|g| (g + 1..self.groups.len()).all(|o| apart(g, o)))
    }
}

/// Returns the slots on which the steps of a group depend.
fn tested_slots(group: &Group) -> impl Iterator<Item = Slot> + '_ {
    group.requires.iter().map(|r| r.0).chain(group.reads.iter().copied())
}

/// True if some state satisfies the requirements of both.
fn can_both_be_enabled(a: &Group, b: &Group) -> bool {
    a.requires.iter().all(|(slot, value)| b.requires.iter().all(|(s, v)| s != slot || v == value))
}

/// Computes stubborn sets, for one thread.
pub(crate) struct Chooser<'s> {
    of: &'s Stubborn<'s>,
    /// Enabled groups of the state.
    enabled: Vec<u64>,
    set: Vec<u64>,
    best: Vec<u64>,
    /// The set to use if the proviso fails.
    safe: Vec<u64>,
    /// True if the chosen set depends on the proviso.
    pub needs_proviso: bool,
    /// Groups of the set that are not processed yet: enabled ones, and disabled ones.
    live: Vec<usize>,
    todo: Vec<usize>,
    /// Enabled groups, each with the number of enabled groups that conflict with it.
    order: Vec<(u32, u32)>,
    /// Savings since the last call of `take_savings`.
    pub saved: ReductionSavings,
}

impl<'s> Chooser<'s> {
    pub fn new(of: &'s Stubborn<'s>) -> Self {
        let empty = vec![0; of.words];
        Self {
            of,
            enabled: empty.clone(),
            set: empty.clone(),
            best: empty.clone(),
            safe: empty,
            needs_proviso: false,
            live: Vec::new(),
            todo: Vec::new(),
            order: Vec::new(),
            saved: ReductionSavings::default(),
        }
    }

    /// Starts a state: clears the enabled groups. Call before [`Chooser::choose`].
    pub fn begin(&mut self) {
        std::mem::take(&mut self.needs_proviso);
        self.enabled.fill(0);
    }

    /// Marks a group as enabled.
    pub fn mark_enabled(&mut self, group: u32) {
        self.enabled[group as usize / 64] |= 1 << (group % 64);
    }

    /// True if a group is in the chosen set.
    pub fn is_chosen(&self, group: u32) -> bool {
        has(&self.best, group as usize)
    }

    /// Chooses the set of a state. Returns true if an enabled group is left out. With `levels` the
    /// set may depend on the proviso, see [`Chooser::needs_proviso`].
    pub fn choose(&mut self, state: &[u32], levels: bool) -> bool {
        let of = self.of;
        let all: u32 = self.enabled.iter().map(|w| w.count_ones()).sum();
        if all < 2 && of.preserves_deadlocks {
            return false;
        }
        let seen =
            if of.visible.is_empty() { None } else { self.close(state, &of.visible, all, false) };
        let mut fewest = all;
        if let Some(n) = seen.filter(|n| *n > 0 || !of.preserves_deadlocks) {
            fewest = n;
            std::mem::swap(&mut self.set, &mut self.best);
        }
        self.safe.clone_from(if fewest < all { &self.best } else { &self.enabled });
        // Without the visible groups the set may postpone them; with them there is nothing more to
        // find.
        let alone = of.visible.is_empty() || levels;
        if alone || seen == Some(0) && of.preserves_deadlocks {
            fewest = self.smallest(state, fewest, !alone);
        }
        fewest < all
    }

    /// Tries the enabled groups one by one, with the visible ones if `with_visible`, for a set with
    /// fewer than `fewest` enabled groups.
    fn smallest(&mut self, state: &[u32], mut fewest: u32, with_visible: bool) -> u32 {
        let of = self.of;
        // Groups with few enabled conflicts first: their sets are small and bound the others.
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        for word in 0..of.words {
            let mut bits = self.enabled[word];
            while bits != 0 {
                let group = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let live = of
                    .conflicts
                    .row(group)
                    .iter()
                    .zip(&self.enabled)
                    .map(|(c, e)| (c & e).count_ones())
                    .sum::<u32>();
                order.push((live, narrow::index(group)));
            }
        }
        order.sort_unstable();
        let mut start = Vec::new();
        for &(live, group) in order.iter().take(MAX_TRIED) {
            if fewest <= 1 || live >= fewest {
                break;
            }
            start.clear();
            start.extend(of.visible.iter().filter(|_| with_visible));
            start.push(group as usize);
            if let Some(n) = self.close(state, &start, fewest, !with_visible) {
                fewest = n;
                self.needs_proviso = !with_visible && !of.visible.is_empty();
                std::mem::swap(&mut self.set, &mut self.best);
            }
        }
        self.order = order;
        fewest
    }

    /// Uses the set that depends on no proviso.
    pub fn fall_back(&mut self) {
        self.needs_proviso = false;
        self.best.clone_from(&self.safe);
    }

    /// Computes the least closed set around some groups, for one choice of necessary enabling sets.
    /// Returns the number of its enabled groups; `None` if it is `most` or more, or if one of them
    /// is visible and `invisible_only` forbids that.
    fn close(
        &mut self,
        state: &[u32],
        around: &[usize],
        most: u32,
        invisible_only: bool,
    ) -> Option<u32> {
        let of = self.of;
        self.set.fill(0);
        self.live.clear();
        self.todo.clear();
        let mut count = 0;
        for &g in around {
            self.set[g / 64] |= 1 << (g % 64);
            let list = if has(&self.enabled, g) { &mut self.live } else { &mut self.todo };
            list.push(g);
            count += u32::from(has(&self.enabled, g));
        }
        // Enabled groups first: they end most useless sets early.
        while let Some(g) = self.live.pop().or_else(|| self.todo.pop()) {
            if count >= most || invisible_only && has(&of.is_visible, g) && has(&self.enabled, g) {
                return None;
            }
            let more = if has(&self.enabled, g) {
                of.conflicts.row(g)
            } else {
                self.necessary_enabling_set(state, g)
            };
            for (word, (&new, set)) in more.iter().zip(&mut self.set).enumerate() {
                let mut new = new & !*set;
                *set |= new;
                count += (new & self.enabled[word]).count_ones();
                while new != 0 {
                    let bit = new & new.wrapping_neg();
                    let list =
                        if self.enabled[word] & bit != 0 { &mut self.live } else { &mut self.todo };
                    list.push(word * 64 + bit.trailing_zeros() as usize);
                    new ^= bit;
                }
            }
        }
        (count < most).then_some(count)
    }

    /// Returns a necessary enabling set of a disabled group: of several choices the one that adds
    /// the fewest enabled groups, then the fewest groups.
    fn necessary_enabling_set(&self, state: &[u32], group: usize) -> &'s [u64] {
        let of = self.of;
        let unmet = of.groups[group]
            .requires
            .iter()
            .filter(|(slot, value)| state[*slot as usize] != *value);
        let cost = |writers: &[u64]| {
            let (mut live, mut all) = (0, 0);
            for ((w, set), enabled) in writers.iter().zip(&self.set).zip(&self.enabled) {
                live += (w & !set & enabled).count_ones();
                all += (w & !set).count_ones();
            }
            (live, all)
        };
        let mut best: Option<((u32, u32), &[u64])> = None;
        for writers in unmet.map(|(slot, _)| of.writers.row(*slot as usize)) {
            let cost = cost(writers);
            if best.is_none_or(|b| cost < b.0) {
                best = Some((cost, writers));
            }
            // It is contained already.
            if cost == (0, 0) {
                break;
            }
        }
        best.map_or(of.enablers.row(group), |b| b.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::models::{Shape, random};
    use crate::tests::small;
    use crate::{
        AnnotateExtras, AnnotationWorker, Annotator, Options, PathGoal, SearchTarget, Silent,
        Transfer, annotate, explore_lts, find, find_paths,
    };
    use mu_base::ids::LabelId;
    use mu_base::random::Random;
    use mu_base::{Budget, Diagnostic, Stop};
    use mu_model::hand::HandModel;
    use mu_model::step_cache::{StepCache, successor};
    use std::collections::{HashMap, VecDeque};

    const SHAPES: [Shape; 3] = [
        Shape { slots: 9, values: 2, components: 9, groups: 7, labels: 3 },
        Shape { slots: 7, values: 3, components: 4, groups: 6, labels: 2 },
        Shape { slots: 12, values: 2, components: 6, groups: 9, labels: 2 },
    ];

    fn full() -> Options {
        Options { threads: 1, partial_order: false, ..small() }
    }

    /// Returns the distances of all deadlocks, ascending, and of the nearest step of each group.
    fn naive(model: &dyn Model) -> (Vec<usize>, Vec<Option<usize>>) {
        let mut evaluated = StepCache::new(model);
        let mut depth = HashMap::from([(model.initial(), 0usize)]);
        let mut queue = VecDeque::from([model.initial()]);
        let (mut dead, mut nearest) = (Vec::new(), vec![None; model.groups().len()]);
        while let Some(at) = queue.pop_front() {
            let (d, mut any) = (depth[&at], false);
            for (g, group) in model.groups().iter().enumerate() {
                if group.requires.iter().any(|(s, v)| at[*s as usize] != *v) {
                    continue;
                }
                let steps = evaluated.steps(g as u32, &at).unwrap().clone();
                for i in 0..steps.labels.len() {
                    any = true;
                    nearest[g].get_or_insert(d + 1);
                    let next = successor(model, g as u32, &at, &steps, i);
                    if !depth.contains_key(&next) {
                        depth.insert(next.clone(), d + 1);
                        queue.push_back(next);
                    }
                }
            }
            if !any {
                dead.push(d);
            }
        }
        (dead, nearest)
    }

    /// Returns the range of seeds; a failure prints its seed.
    fn seeds() -> std::ops::Range<u64> {
        let number = |name: &str, default: u64| {
            std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
        };
        let first = number("MU_CHECK_SEED", 0);
        first..first + number("MU_CHECK_CASES", 300)
    }

    #[test]
    fn every_deadlock_is_reached_at_its_distance() {
        let (mut met, mut fewer) = (0, 0);
        for seed in seeds() {
            for shape in SHAPES {
                let model = random(seed, shape);
                let expected = naive(&model).0;
                let options = Options { threads: 1 + seed as usize % 2, ..small() };
                let found =
                    find(&model, &options, &Budget::default(), &Silent, SearchTarget::Deadlock)
                        .unwrap();
                assert_eq!(
                    found.path.map(|p| p.len()),
                    expected.first().copied(),
                    "MU_CHECK_SEED={seed} {shape:?}"
                );
                let seen = find_paths(
                    &model,
                    &options,
                    &Budget::default(),
                    PathGoal::Deadlock(&|_| true),
                    usize::MAX,
                    &mut |_| Ok(()),
                )
                .unwrap();
                let lengths: Vec<usize> = seen.paths.iter().map(|w| w.steps.len()).collect();
                assert_eq!(lengths, expected, "MU_CHECK_SEED={seed} {shape:?}");
                let all = find_paths(
                    &model,
                    &full(),
                    &Budget::default(),
                    PathGoal::Deadlock(&|_| true),
                    usize::MAX,
                    &mut |_| Ok(()),
                )
                .unwrap();
                assert_eq!(all.paths.len(), expected.len(), "MU_CHECK_SEED={seed} {shape:?}");
                met += usize::from(expected.len() > 1);
                fewer += usize::from(seen.states < all.states);
            }
        }
        assert!(met > 5 && fewer > 20, "{met} {fewer}");
    }

    #[test]
    fn every_visible_step_is_reached_at_its_distance() {
        let mut fewer = 0;
        for seed in seeds() {
            for shape in SHAPES {
                let model = random(seed, shape);
                let nearest = naive(&model).1;
                let mut draw = Random::new(seed);
                let visible: Vec<bool> = model.groups().iter().map(|_| draw.chance(1, 3)).collect();
                let visibility =
                    Visibility { visible: visible.clone(), preserves_deadlocks: draw.chance(1, 2) };
                let test = |group: usize, _| visible[group];
                let options = Options { threads: 1 + seed as usize % 2, ..small() };
                let found = find(
                    &model,
                    &options,
                    &Budget::default(),
                    &Silent,
                    SearchTarget::StepOf(&visibility, &test),
                )
                .unwrap();
                let expected =
                    (0..visible.len()).filter(|g| visible[*g]).filter_map(|g| nearest[g]).min();
                assert_eq!(found.path.map(|p| p.len()), expected, "MU_CHECK_SEED={seed} {shape:?}");
                let all = find(
                    &model,
                    &full(),
                    &Budget::default(),
                    &Silent,
                    SearchTarget::StepOf(&visibility, &test),
                )
                .unwrap();
                fewer += usize::from(found.outcome.states < all.outcome.states);
            }
        }
        assert!(fewer > 20, "{fewer}");
    }

    /// Components that take `length` steps each and then stop.
    fn independent(components: u32, length: u32) -> HandModel {
        let mut model = HandModel::new();
        for c in 0..components {
            let slot = model.slot(format!("at{c}"), c, true, 0);
            for at in 0..length {
                model.group(format!("c{c}"), &[(slot, at)], &[], &[slot], move |_, e| {
                    e.step(format!("c{c}({at})"), &[at + 1])
                });
            }
        }
        model
    }

    #[test]
    fn independent_components_take_their_steps_one_after_the_other() {
        let model = independent(5, 4);
        for threads in [1, 3] {
            let options = Options { threads, ..small() };
            let found = find(&model, &options, &Budget::default(), &Silent, SearchTarget::Deadlock)
                .unwrap();
            assert_eq!((found.outcome.stored, found.path.map(|p| p.len())), (21, Some(20)));
            assert!(matches!(
                found.outcome.partial_order,
                PartialOrder::Used(ReductionSavings { states: 16, .. })
            ));
            // The last step of one component does not depend on the others.
            let visibility = Visibility {
                visible: (0..20).map(|g| g == 19).collect(),
                preserves_deadlocks: false,
            };
            let found = find(
                &model,
                &options,
                &Budget::default(),
                &Silent,
                SearchTarget::StepOf(&visibility, &|g, _| g == 19),
            )
            .unwrap();
            assert_eq!((found.outcome.stored, found.path.map(|p| p.len())), (5, Some(4)));
        }
        let (outcome, _) = explore_lts(&model, &small(), &Budget::default(), &Silent).unwrap();
        assert_eq!((outcome.states, outcome.partial_order), (3125, PartialOrder::None));
    }

    #[test]
    fn useless_reductions_are_not_used_and_give_a_reason() {
        let model = independent(1, 5);
        let why = |model: &HandModel, options: &Options| {
            find(model, options, &Budget::default(), &Silent, SearchTarget::Deadlock)
                .unwrap()
                .outcome
                .partial_order
        };
        assert_eq!(why(&model, &small()), PartialOrder::Unused(ReductionObstacle::Dependent));
        assert_eq!(
            why(&independent(2, 2), &full()),
            PartialOrder::Unused(ReductionObstacle::Disabled)
        );
        // Two components that both write one slot, and one with a single step.
        let mut busy = HandModel::new();
        let (x, y) = (busy.slot("x", 0, false, 0), busy.slot("y", 1, false, 0));
        for g in 0..2u32 {
            busy.group(format!("g{g}"), &[], &[x], &[x], move |r, e| {
                e.step("a", &[(r[0] + 1 + g) % 9000])
            });
        }
        busy.group("once", &[(y, 0)], &[], &[y], |_, e| e.step("b", &[1]));
        let found =
            find(&busy, &small(), &Budget::default(), &Silent, SearchTarget::Deadlock).unwrap();
        assert_eq!((found.reached, &found.outcome.stop), (false, &Stop::Complete));
    }

    /// Components with a few locations that take steps alone or in pairs; the first three groups
    /// have labels of their own, the others share one.
    fn components(seed: u64) -> HandModel {
        let mut draw = Random::new(seed);
        let mut model = HandModel::new();
        let (count, places) = (2 + draw.below(3), 2 + draw.below(3));
        let slots: Vec<Slot> =
            (0..count as u32).map(|c| model.slot(format!("at{c}"), c, true, 0)).collect();
        for g in 0..3 + draw.below(3 * count) {
            let mut taking = vec![draw.below(count), draw.below(count)];
            taking.truncate(1 + usize::from(draw.chance(1, 3)));
            taking.sort_unstable();
            taking.dedup();
            let taking: Vec<Slot> = taking.into_iter().map(|c| slots[c]).collect();
            let mut place = || draw.below(places) as u32;
            let (from, to): (Vec<u32>, Vec<u32>) =
                taking.iter().map(|_| (place(), place())).unzip();
            let label = if g < 3 { ["a", "b", "c"][g] } else { "d" };
            // Some locations are required, some are tested by the group's own condition.
            if draw.chance(1, 2) {
                let requires: Vec<(Slot, u32)> = taking.iter().copied().zip(from).collect();
                model.group(format!("g{g}"), &requires, &[], &taking, move |_, e| {
                    e.step(label, &to)
                });
            } else {
                model.group(format!("g{g}"), &[], &taking, &taking, move |r, e| {
                    if r == from {
                        e.step(label, &to);
                    }
                });
            }
        }
        model
    }

    /// Runs that take `a`, then no `c`, then `b`: sets of the two states of that automaton.
    struct Watch([LabelId; 3]);

    impl Annotator for Watch {
        fn initial(&self) -> u32 {
            1
        }
        fn annotation_worker(&self) -> Box<dyn AnnotationWorker + '_> {
            Box::new(Watch(self.0))
        }
    }

    impl AnnotationWorker for Watch {
        fn join(&mut self, old: u32, new: u32) -> Result<(u32, u32), Diagnostic> {
            Ok((old | new, new & !old))
        }
        fn enter(&mut self, pending: u32, _: &[LabelId]) -> Result<Transfer, Diagnostic> {
            Ok(Transfer::Value(pending))
        }
        fn step(&mut self, flow: u32, label: LabelId) -> Result<Transfer, Diagnostic> {
            let [a, b, c] = self.0;
            Ok(match flow {
                2 | 3 if label == b => Transfer::Decided,
                1 | 3 if label == a => Transfer::Value(flow | 2),
                _ if label == c => Transfer::Value(flow & 1),
                _ => Transfer::Value(flow),
            })
        }
    }

    #[test]
    fn runs_are_preserved_by_their_visible_steps_in_order() {
        let (mut decided, mut fewer) = ([0; 2], 0);
        for seed in seeds().start..seeds().start + 4 * (seeds().end - seeds().start) {
            let model = components(seed);
            // Every label occurs once, so that it has a number.
            let mut worker = model.worker();
            for (g, group) in model.groups().iter().enumerate() {
                for n in 0..25u32 {
                    let reads: Vec<u32> =
                        (0..group.reads.len() as u32).map(|i| n / 5u32.pow(i) % 5).collect();
                    worker.steps(g, &reads, &mut mu_model::Steps::default()).unwrap();
                }
            }
            drop(worker);
            let label = |name: &str| {
                (0..model.label_count())
                    .map(LabelId::new)
                    .find(|l| model.label_text(*l) == name)
                    .unwrap_or(LabelId::of(u32::MAX))
            };
            let watch = Watch(["a", "b", "c"].map(label));
            let visibility = Visibility {
                visible: (0..model.groups().len()).map(|g| g < 3).collect(),
                preserves_deadlocks: seed % 3 == 0,
            };
            let search = |options: &Options| {
                let kept =
                    AnnotateExtras { visibility: Some(&visibility), ..AnnotateExtras::default() };
                let found =
                    annotate(&model, options, &Budget::default(), &Silent, &watch, None, kept)
                        .unwrap();
                (found.is_decided(), found.outcome().stored, found.outcome().deadlocks > 0)
            };
            let (all, reduced) = (search(&full()), search(&Options { threads: 1, ..small() }));
            assert_eq!(all.0, reduced.0, "MU_CHECK_SEED={seed}");
            if !all.0 {
                assert_eq!(
                    reduced,
                    search(&Options { threads: 3, ..small() }),
                    "MU_CHECK_SEED={seed}"
                );
                assert!(
                    !visibility.preserves_deadlocks || all.2 == reduced.2,
                    "MU_CHECK_SEED={seed}: ends"
                );
                assert!(reduced.1 <= all.1, "MU_CHECK_SEED={seed}");
                fewer += usize::from(reduced.1 < all.1);
            }
            decided[usize::from(all.0)] += 1;
        }
        assert!(decided.iter().all(|d| *d > 40) && fewer > 40, "{decided:?} {fewer}");
    }
}
