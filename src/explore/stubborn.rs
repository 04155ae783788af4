//! Partial-order reduction: of the groups that have steps in a state, enough to keep the answer.
//!
//! In: a model's groups (slots tested, read and written) and an [`Visibility`], which says what a reduced
//! search must keep. Out: for a state and the groups that have steps there, a *stubborn set* of
//! groups; the steps of the others are left out. After Valmari, "Stubborn sets for reduced state
//! space generation" (1991) and "The State Explosion Problem" (1998); necessary enabling sets from
//! guards after Laarman, Pater, van de Pol, Hansen, "Guard-based partial-order reduction" (STTT 18,
//! 2016).
//!
//! Two groups *conflict* if one writes a slot that the other tests, reads or writes, unless no
//! state has steps of both, since they require different values of a slot. A set S of groups is
//! stubborn in a state if it is closed:
//!
//! - with a group that has steps there it holds all groups that conflict with it;
//! - with a group that has none it holds all groups that can change that: those that write one slot
//!   whose required value is not there, or, if all required values are there, those that write a
//!   slot that decides whether it has steps.
//!
//! Let t1 .. tn be steps of the full system from the state, ti the first one of a group of S. That
//! group has steps already in the state, since no group outside of S changes that, and ti conflicts
//! with none of t1 .. t(i-1) (each of which is taken where ti's group has steps as well): so ti can
//! be taken first, under the same label, and the others after it lead to the same state. From this
//! follows, without any condition on cycles:
//!
//! - *Deadlocks.* If S holds a group with steps, t1 .. tn to a deadlock has a step of S: one with
//!   steps in the state would have them still. So some step of the reduced search leads n-1 steps
//!   before the same deadlock: each deadlock is met, and at its distance.
//! - *Visible steps.* S holds all groups that may take a visible step. A run that ends with a
//!   visible step has a step of S, and taking the first such step first keeps the order of visible
//!   ones: no visible step was before it, if it is visible itself. So all sequences of visible
//!   labels are kept, each with its shortest runs, and a set S without steps shows that no visible
//!   step is left. Nothing is ever put off for ever, as the steps left out are those of which the
//!   visible ones are independent: a search in any order and by any number of threads needs no
//!   proviso.
//!
//! *Putting visible groups off.* A set with all visible groups may be large. In a search of
//! formulas that goes level by level, a set S without steps of a visible group may be taken
//! instead, on a proviso: some step of S leads to a state of a later level ([`super::annotate`]). A
//! run without a step of S can still be taken after that step, which is invisible, and levels are
//! finitely many, so in the end comes a state where S has a step of the run or holds all visible
//! groups: nothing is put off for ever (the ignoring problem; the proviso for breadth-first search
//! of Bošnački, Leue, Lluch Lafuente, STTT 11, 2009, in a form that asks for the level of a state,
//! which never changes, in place of its being in the queue). A step of S that is taken first is
//! invisible, so the order of visible ones stays. Runs may get longer, so this is not for shortest
//! paths. If no step leads to a later level, the set with the visible groups is taken.
//!
//! Not with symmetries: these are verified on the steps that are seen, and a run that is put off
//! goes through others. Not with confluent steps taken at once.
//!
//! Cost: a bit for each pair of groups; for each state a pass over the groups of the set, and one
//! for each of a few groups to begin with, of which the set with fewest groups that have steps is
//! taken. All steps are computed (lookups, mostly): what is saved are states. Invariant: the set
//! depends on the state, the model and the visibility only; with the proviso on the levels of states as
//! well, which depend on nothing else. So what a search stores does not depend on threads.

use super::Options;
use mu_model::{Group, Model, Slot};

/// Most groups of a model that is reduced: the table of conflicts has a bit for each pair.
const MOST: usize = 1 << 12;
/// Groups with steps that are tried to begin with, in each state.
const TRIED: usize = 24;
/// After so many states a reduction that leaves out fewer than one step for six that are taken is
/// given up: to choose costs more than that saves.
const JUDGED: u64 = 1 << 9;

/// What a reduced search must keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visibility {
    /// By group: whether the order of its steps matters, and whether they are met at all.
    pub visible: Vec<bool>,
    /// Whether states without steps are to be met, each after the same visible steps as without
    /// reduction.
    pub ends: bool,
}

impl Visibility {
    /// States without steps.
    pub fn deadlocks(model: &dyn Model) -> Self {
        Self { visible: vec![false; model.groups().len()], ends: true }
    }

    /// Steps of an action, by its name, shown or hidden; groups of which the names are not known
    /// may have them.
    pub fn action(model: &dyn Model, name: &str) -> Self {
        let may = |g: &Group| {
            g.actions.as_ref().is_none_or(|a| a.iter().any(|a| a == name))
                || g.hidden.iter().any(|h| h == name)
        };
        Self { visible: model.groups().iter().map(may).collect(), ends: false }
    }
}

/// Why a search takes all steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReductionObstacle {
    /// It was asked to.
    Disabled,
    /// Confluent steps are taken at once.
    Confluence,
    /// Symmetries are used.
    Symmetry,
    /// The search is kept in checkpoints.
    Checkpoints,
    /// Several processes search.
    Processes,
    /// Each group conflicts with each other one.
    Dependent,
    /// The answer rests on steps of every group.
    Visible,
    /// There are too many groups.
    Large,
    /// Too little was left out.
    Futile,
}

impl ReductionObstacle {
    /// Why, after "not used:".
    pub fn text(self) -> &'static str {
        match self {
            ReductionObstacle::Disabled => "as asked",
            ReductionObstacle::Confluence => "confluent steps are taken at once",
            ReductionObstacle::Symmetry => {
                "symmetries are used, which are verified on the steps that are seen"
            }
            ReductionObstacle::Checkpoints => "checkpoints are of all steps",
            ReductionObstacle::Processes => {
                "several processes search, none of which sees at once what the others have met: steps could be put off for ever"
            }
            ReductionObstacle::Dependent => "no two transition groups are independent",
            ReductionObstacle::Visible => "what is asked for rests on every transition group",
            ReductionObstacle::Large => "the model has too many transition groups",
            ReductionObstacle::Futile => "too little was left out",
        }
    }
    /// Stable word for reports.
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

/// What partial-order reduction did in a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReductionSavings {
    /// Expansions in which steps were left out.
    pub states: u64,
    /// Steps left out there.
    pub steps: u64,
}

impl ReductionSavings {
    /// Whether that is too little, after so many states, beside the steps that were taken.
    pub(crate) fn is_futile(self, states: u64, taken: u64) -> bool {
        states >= JUDGED && self.steps * 6 < taken
    }
}

/// Whether a search left out steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartialOrder {
    /// What was asked for rests on all of them.
    #[default]
    None,
    /// It did.
    Used(ReductionSavings),
    /// It did not.
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

/// What is known of a model's groups; see the module's head.
pub(crate) struct Stubborn<'m> {
    groups: &'m [Group],
    words: usize,
    /// By group: those that conflict with it.
    conflicts: Bits,
    /// By slot: the groups that write it.
    writers: Bits,
    /// By group: those that write a slot that decides whether it has steps, required ones aside.
    enablers: Bits,
    visible: Vec<usize>,
    is_visible: Vec<u64>,
    ends: bool,
}

impl<'m> Stubborn<'m> {
    /// For a search with these options.
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

    /// Looks at all pairs of groups; or why nothing can be gained.
    pub fn new(model: &'m dyn Model, visibility: &Visibility) -> Result<Self, ReductionObstacle> {
        let groups = model.groups();
        let visible: Vec<usize> =
            (0..groups.len()).filter(|&g| visibility.visible.get(g).is_none_or(|v| *v)).collect();
        if groups.len() > MOST {
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
            tested(group)
                .chain(group.writes.iter().copied())
                .for_each(|s| touchers.put(s as usize, g));
        }
        let (mut conflicts, mut enablers) =
            (Bits::new(groups.len(), groups.len()), Bits::new(groups.len(), groups.len()));
        for (g, group) in groups.iter().enumerate() {
            let row = conflicts.row_mut(g);
            group.writes.iter().for_each(|&s| join(row, touchers.row(s as usize)));
            tested(group).for_each(|s| join(row, writers.row(s as usize)));
            for other in (0..groups.len())
                .filter(|&o| has(conflicts.row(g), o) && !meet(group, &groups[o]))
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
            ends: visibility.ends,
        };
        if stubborn.dependent() { Err(ReductionObstacle::Dependent) } else { Ok(stubborn) }
    }

    /// Whether there are no two groups that may have steps in one state without a conflict.
    fn dependent(&self) -> bool {
        let apart = |g: usize, o: usize| {
            has(self.conflicts.row(g), o) || !meet(&self.groups[g], &self.groups[o])
        };
        (0..self.groups.len()).all(|g| (g + 1..self.groups.len()).all(|o| apart(g, o)))
    }
}

/// Slots on which the steps of a group depend.
fn tested(group: &Group) -> impl Iterator<Item = Slot> + '_ {
    group.requires.iter().map(|r| r.0).chain(group.reads.iter().copied())
}

/// Whether some state fulfils the requirements of both.
fn meet(a: &Group, b: &Group) -> bool {
    a.requires.iter().all(|(slot, value)| b.requires.iter().all(|(s, v)| s != slot || v == value))
}

/// Finds stubborn sets, for one thread.
pub(crate) struct Chooser<'s> {
    of: &'s Stubborn<'s>,
    /// Groups that have steps in the state.
    enabled: Vec<u64>,
    set: Vec<u64>,
    best: Vec<u64>,
    /// What is chosen if the proviso fails.
    safe: Vec<u64>,
    /// Whether the set that was chosen rests on the proviso.
    pub rests: bool,
    /// Groups of the set that are still to be looked at: those that have steps, and the others.
    live: Vec<usize>,
    todo: Vec<usize>,
    /// Groups that have steps, with how many others that have some conflict with them.
    order: Vec<(u32, u32)>,
    /// What was left out since this was last asked for.
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
            rests: false,
            live: Vec::new(),
            todo: Vec::new(),
            order: Vec::new(),
            saved: ReductionSavings::default(),
        }
    }

    /// Before [`Chooser::choose`]: forgets which groups have steps.
    pub fn begin(&mut self) {
        std::mem::take(&mut self.rests);
        self.enabled.fill(0);
    }

    /// A group has steps.
    pub fn has_steps(&mut self, group: u32) {
        self.enabled[group as usize / 64] |= 1 << (group % 64);
    }

    /// Whether the steps of a group are among those that were chosen.
    pub fn keeps(&self, group: u32) -> bool {
        has(&self.best, group as usize)
    }

    /// Chooses in a state; whether any group that has steps is left out. With `levels` the set may
    /// rest on the proviso, see [`Chooser::rests`].
    pub fn choose(&mut self, state: &[u32], levels: bool) -> bool {
        let of = self.of;
        let all: u32 = self.enabled.iter().map(|w| w.count_ones()).sum();
        if all < 2 && of.ends {
            return false;
        }
        let seen =
            if of.visible.is_empty() { None } else { self.close(state, &of.visible, all, false) };
        let mut fewest = all;
        if let Some(n) = seen.filter(|n| *n > 0 || !of.ends) {
            fewest = n;
            std::mem::swap(&mut self.set, &mut self.best);
        }
        self.safe.clone_from(if fewest < all { &self.best } else { &self.enabled });
        // Without the visible groups the set may put them off, with them there is nothing more to
        // find.
        let alone = of.visible.is_empty() || levels;
        if alone || seen == Some(0) && of.ends {
            fewest = self.smallest(state, fewest, !alone);
        }
        fewest < all
    }

    /// Tries the groups that have steps one by one, alone or with the visible ones, for a set with
    /// fewer than `fewest`.
    fn smallest(&mut self, state: &[u32], mut fewest: u32, with_visible: bool) -> u32 {
        let of = self.of;
        // Those with few live conflicts first: the sets around them are small, and what is found
        // bounds the others.
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
                order.push((live, group as u32));
            }
        }
        order.sort_unstable();
        let mut start = Vec::new();
        for &(live, group) in order.iter().take(TRIED) {
            if fewest <= 1 || live >= fewest {
                break;
            }
            start.clear();
            start.extend(of.visible.iter().filter(|_| with_visible));
            start.push(group as usize);
            if let Some(n) = self.close(state, &start, fewest, !with_visible) {
                fewest = n;
                self.rests = !with_visible && !of.visible.is_empty();
                std::mem::swap(&mut self.set, &mut self.best);
            }
        }
        self.order = order;
        fewest
    }

    /// Takes the set that rests on no proviso.
    pub fn fall_back(&mut self) {
        self.rests = false;
        self.best.clone_from(&self.safe);
    }

    /// The least closed set around some groups, for one choice of what can change that a group has
    /// no steps; the number of those in it that have steps, or none if these are `most` or
    /// more, or if a visible one is among them and `unseen` forbids that.
    fn close(&mut self, state: &[u32], around: &[usize], most: u32, unseen: bool) -> Option<u32> {
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
        // Those that have steps first: most sets that are no use are given up by them.
        while let Some(g) = self.live.pop().or_else(|| self.todo.pop()) {
            if count >= most || unseen && has(&of.is_visible, g) && has(&self.enabled, g) {
                return None;
            }
            let more =
                if has(&self.enabled, g) { of.conflicts.row(g) } else { self.enabling(state, g) };
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

    /// The groups that can change that this one has no steps: of several choices the one that adds
    /// fewest that have steps, then fewest.
    fn enabling(&self, state: &[u32], group: usize) -> &'s [u64] {
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
            // It is there already.
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
    use crate::{
        AnnotateExtras, AnnotationWorker, Annotator, Options, PathGoal, Silent, Target, Transfer,
        annotate, explore_lts, find, find_paths,
    };
    use mu_base::ids::LabelId;
    use mu_base::random::Random;
    use mu_base::{Budget, Diagnostic, Stop};
    use mu_model::hand::HandModel;
    use mu_model::step_cache::{StepCache, after};
    use std::collections::{HashMap, VecDeque};

    const SHAPES: [Shape; 3] = [
        Shape { slots: 9, values: 2, components: 9, groups: 7, labels: 3 },
        Shape { slots: 7, values: 3, components: 4, groups: 6, labels: 2 },
        Shape { slots: 12, values: 2, components: 6, groups: 9, labels: 2 },
    ];

    fn full() -> Options {
        Options { threads: 1, partial_order: false, ..Options::default() }
    }

    /// Distances of all states without steps, ascending, and of the nearest step of each group.
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
                    let next = after(model, g as u32, &at, &steps, i);
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

    /// The seed to begin with, and how many: a failure names its seed.
    fn seeds() -> std::ops::Range<u64> {
        let number = |name: &str, default: u64| {
            std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
        };
        let first = number("MU_CHECK_SEED", 0);
        first..first + number("MU_CHECK_CASES", 300)
    }

    #[test]
    fn every_deadlock_is_met_at_its_distance() {
        let (mut met, mut fewer) = (0, 0);
        for seed in seeds() {
            for shape in SHAPES {
                let model = random(seed, shape);
                let expected = naive(&model).0;
                let options = Options { threads: 1 + seed as usize % 2, ..Options::default() };
                let found =
                    find(&model, &options, &Budget::default(), &Silent, Target::Deadlock).unwrap();
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
                )
                .unwrap();
                let lengths: Vec<usize> = seen.ways.iter().map(|w| w.steps.len()).collect();
                assert_eq!(lengths, expected, "MU_CHECK_SEED={seed} {shape:?}");
                let all = find_paths(
                    &model,
                    &full(),
                    &Budget::default(),
                    PathGoal::Deadlock(&|_| true),
                    usize::MAX,
                )
                .unwrap();
                assert_eq!(all.ways.len(), expected.len(), "MU_CHECK_SEED={seed} {shape:?}");
                met += usize::from(expected.len() > 1);
                fewer += usize::from(seen.states < all.states);
            }
        }
        assert!(met > 5 && fewer > 20, "{met} {fewer}");
    }

    #[test]
    fn every_visible_step_is_met_at_its_distance() {
        let mut fewer = 0;
        for seed in seeds() {
            for shape in SHAPES {
                let model = random(seed, shape);
                let nearest = naive(&model).1;
                let mut draw = Random::new(seed);
                let visible: Vec<bool> = model.groups().iter().map(|_| draw.chance(1, 3)).collect();
                let visibility = Visibility { visible: visible.clone(), ends: draw.chance(1, 2) };
                let test = |group: usize, _| visible[group];
                let options = Options { threads: 1 + seed as usize % 2, ..Options::default() };
                let found = find(
                    &model,
                    &options,
                    &Budget::default(),
                    &Silent,
                    Target::StepOf(&visibility, &test),
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
                    Target::StepOf(&visibility, &test),
                )
                .unwrap();
                fewer += usize::from(found.outcome.states < all.outcome.states);
            }
        }
        assert!(fewer > 20, "{fewer}");
    }

    /// Components that take `length` steps each and end.
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
            let options = Options { threads, ..Options::default() };
            let found =
                find(&model, &options, &Budget::default(), &Silent, Target::Deadlock).unwrap();
            assert_eq!((found.outcome.stored, found.path.map(|p| p.len())), (21, Some(20)));
            assert!(matches!(
                found.outcome.partial_order,
                PartialOrder::Used(ReductionSavings { states: 16, .. })
            ));
            // Of one component's last step the others do not matter.
            let visibility =
                Visibility { visible: (0..20).map(|g| g == 19).collect(), ends: false };
            let found = find(
                &model,
                &options,
                &Budget::default(),
                &Silent,
                Target::StepOf(&visibility, &|g, _| g == 19),
            )
            .unwrap();
            assert_eq!((found.outcome.stored, found.path.map(|p| p.len())), (5, Some(4)));
        }
        let (outcome, _) =
            explore_lts(&model, &Options::default(), &Budget::default(), &Silent).unwrap();
        assert_eq!((outcome.states, outcome.partial_order), (3125, PartialOrder::None));
    }

    #[test]
    fn what_leaves_out_nothing_is_not_used_and_says_why() {
        let model = independent(1, 5);
        let why = |model: &HandModel, options: &Options| {
            find(model, options, &Budget::default(), &Silent, Target::Deadlock)
                .unwrap()
                .outcome
                .partial_order
        };
        assert_eq!(
            why(&model, &Options::default()),
            PartialOrder::Unused(ReductionObstacle::Dependent)
        );
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
        let found = find(&busy, &Options::default(), &Budget::default(), &Silent, Target::Deadlock)
            .unwrap();
        assert_eq!((found.reached, &found.outcome.stop), (false, &Stop::Complete));
    }

    /// Components with a few places that take steps alone or in pairs; each group has a label of
    /// its own, all but the first three one.
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
            // Some places are required, some are tested by the group's own condition.
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

    /// Runs that take `a`, then no `c`, then `b`: sets of the two places of that automaton.
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
    fn runs_are_kept_by_their_visible_steps_in_order() {
        let (mut decided, mut fewer) = ([0; 2], 0);
        for seed in seeds().start..seeds().start + 10 * (seeds().end - seeds().start) {
            let model = components(seed);
            // All labels are met once, so that they have numbers.
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
                    .unwrap_or(LabelId(u32::MAX))
            };
            let watch = Watch(["a", "b", "c"].map(label));
            let visibility = Visibility {
                visible: (0..model.groups().len()).map(|g| g < 3).collect(),
                ends: seed % 3 == 0,
            };
            let search = |options: &Options| {
                let kept =
                    AnnotateExtras { visibility: Some(&visibility), ..AnnotateExtras::default() };
                let found =
                    annotate(&model, options, &Budget::default(), &Silent, &watch, None, kept)
                        .unwrap();
                (found.decided(), found.outcome().stored, found.outcome().deadlocks > 0)
            };
            let (all, reduced) =
                (search(&full()), search(&Options { threads: 1, ..Options::default() }));
            assert_eq!(all.0, reduced.0, "MU_CHECK_SEED={seed}");
            if !all.0 {
                assert_eq!(
                    reduced,
                    search(&Options { threads: 3, ..Options::default() }),
                    "MU_CHECK_SEED={seed}"
                );
                assert!(!visibility.ends || all.2 == reduced.2, "MU_CHECK_SEED={seed}: ends");
                assert!(reduced.1 <= all.1, "MU_CHECK_SEED={seed}");
                fewer += usize::from(reduced.1 < all.1);
            }
            decided[usize::from(all.0)] += 1;
        }
        assert!(decided.iter().all(|d| *d > 100) && fewer > 100, "{decided:?} {fewer}");
    }
}
