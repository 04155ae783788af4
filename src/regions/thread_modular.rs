//! Thread-modular abstraction for an unbounded number of identical components. Some components are
//! tracked; of the untracked ones only the set of local states is known.
//!
//! Input: a model with enough components ([`crate::replicas`]), the tracked identities in the order
//! of the list of all identities, the local states of untracked components
//! ([`crate::local_states`]). Output: a model with states that contain the shared data and the
//! components of the tracked identities, with one constant for all untracked ones. A list of
//! identities is a word with blocks of untracked identities ([`crate::words`]). A step with
//! untracked participants is evaluated for each of their local states, for each partition of the
//! untracked identities that it reads, and for blocks of each relevant length; the answers are
//! abstracted and united (existential abstraction; thread-modular as in Flanagan, Qadeer 2003).
//! Each choice is evaluated again with other constants and longer blocks. If the answers differ,
//! the analysis is wrong, and the search ends with an error.
//!
//! Cost: local states times partitions times words for each query; engines cache the answers.

use crate::abstractable_model::{AbstractableModel, CachedInner, delegate_to_inner, pack};
use crate::merged_constants::{Occurrences, expect_no_constants, map_constants};
use crate::replicas::Replicas;
use crate::sizes::SIZE;
use crate::words::{Letter, WordPart, WordRequest, abstract_word, longer, words};
use ahash::{AHashMap, AHashSet, AHasher};
use mu_base::ids::{LabelId, OpId};
use mu_base::{Diagnostic, Stage};
use mu_compile::Compiled;
use mu_data::engine::Engine;
use mu_data::expr::Expr;
use mu_data::signature::Signature;
use mu_model::{Group, Model, Slot, Steps, Worker};
use mu_process::labels::{ActionLabels, MultiAction};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Limit on the evaluations for one query; beyond it the query is an error.
const MAX_EVALUATIONS: usize = 200_000;
/// Limit on the number of cached answers.
const MAX_CACHED: usize = 500_000;
/// Number of locks of the cache.
const SHARDS: usize = 16;

/// The local state of an untracked component, slot by slot, with the value indices of the last
/// identity that has components. Its own identity is represented by the last constant, all others
/// by the one before.
pub type LocalState = Vec<u32>;

/// Maps a group of the abstract model to its concrete group and to the untracked participants.
pub(crate) struct GroupMapping {
    /// The concrete group.
    pub inside: usize,
    /// The untracked participants.
    pub others: Vec<UntrackedParticipant>,
    /// Requirements of slots with merged constants.
    moved: Vec<(Slot, u32)>,
    /// Written slots that belong to no untracked participant, as positions in the writes of the
    /// concrete group.
    writes: Vec<usize>,
}

/// An untracked participant of a group.
#[derive(Default)]
pub(crate) struct UntrackedParticipant {
    /// The indices of the local slots that the group reads.
    pub view: Vec<usize>,
    /// The required values of the view, by position in it.
    required: Vec<(usize, u32)>,
    /// The same as requirements of the concrete group.
    inside: Vec<(Slot, u32)>,
    /// Positions in the view, and in the slots that the group reads, which must be equal.
    equal: Vec<(usize, usize)>,
    /// The indices of written local slots, with positions in the writes of the concrete group.
    pub changes: Vec<(usize, usize)>,
}

/// Thread-modular abstraction of a model.
pub struct ThreadModularAbstraction<'a> {
    inner: &'a dyn AbstractableModel,
    pub(crate) replicas: &'a Replicas,
    tracked: usize,
    groups: Vec<Group>,
    pub(crate) shares: Vec<GroupMapping>,
    initial: Vec<u32>,
    /// For each group and participant: the views of local states.
    views: Vec<Vec<Vec<Vec<u32>>>>,
    cached_steps: StepCache,
}

/// Cache of the steps for each group and the values that it reads, shared by all threads and all
/// orders of the list of all identities. Steps do not depend on the initial state.
#[derive(Default)]
struct StepCache([Mutex<AHashMap<(usize, Vec<u32>), Arc<Steps>>>; SHARDS]);

impl StepCache {
    fn shard(
        &self,
        group: usize,
        reads: &[u32],
    ) -> MutexGuard<'_, AHashMap<(usize, Vec<u32>), Arc<Steps>>> {
        let mut hasher = AHasher::default();
        (group, reads).hash(&mut hasher);
        self.0[hasher.finish() as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, group: usize, reads: &[u32]) -> Option<Arc<Steps>> {
        self.shard(group, reads).get(&(group, reads.to_vec())).cloned()
    }

    fn keep(&self, group: usize, reads: &[u32], steps: Arc<Steps>) {
        let mut shard = self.shard(group, reads);
        if shard.len() >= MAX_CACHED / SHARDS {
            shard.clear();
        }
        shard.insert((group, reads.to_vec()), steps);
    }
}

impl<'a> ThreadModularAbstraction<'a> {
    /// Creates the abstraction of `inner` that tracks the identities of `order`, in their order in
    /// the list of all identities. All others have one of the local states `members`.
    pub fn new(
        inner: &'a dyn AbstractableModel,
        replicas: &'a Replicas,
        order: &[usize],
        members: &[LocalState],
    ) -> Result<Self, Diagnostic> {
        let tracked = order.len();
        if tracked > replicas.room() {
            let text = format!(
                "the formula distinguishes {tracked} constants of `{}`, which are too many",
                replicas.family.name
            );
            return Err(Diagnostic::new(Stage::Unsupported, text));
        }
        let (groups, shares) = (Vec::new(), Vec::new());
        let mut crowd = Self {
            inner,
            replicas,
            tracked,
            groups,
            shares,
            initial: Vec::new(),
            views: Vec::new(),
            cached_steps: StepCache::default(),
        };
        let mut thread = Evaluator::new(&crowd);
        let mut made = Vec::new();
        for (g, group) in inner.groups().iter().enumerate() {
            let others: Vec<usize> =
                replicas.groups[g].identities.iter().copied().filter(|i| *i >= tracked).collect();
            if others.iter().enumerate().all(|(k, i)| *i == tracked + k) {
                made.push(thread.share(g, group, others.len())?);
            }
        }
        let mut initial = inner.initial();
        let stored_slots: Vec<Slot> = (0..initial.len() as Slot)
            .filter(|s| thread.owned_by_other(*s).is_none() && replicas.all != Some(*s))
            .collect();
        for slot in stored_slots {
            initial[slot as usize] = thread.image(slot, initial[slot as usize])?;
        }
        drop(thread);
        crowd.initial = initial;
        crowd.arrange(order)?;
        for (group, share) in made {
            crowd.groups.push(group);
            crowd.shares.push(share);
        }
        let views = |other: &UntrackedParticipant| other.views(members);
        crowd.views = crowd.shares.iter().map(|s| s.others.iter().map(views).collect()).collect();
        Ok(crowd)
    }

    /// Sets another order of the same identities; cached steps stay valid.
    pub fn arrange(&mut self, order: &[usize]) -> Result<(), Diagnostic> {
        if let Some(all) = self.replicas.all {
            let other = self.replicas.family.constants.len() - 2;
            let letters: Vec<usize> =
                order.iter().flat_map(|i| [other, *i]).chain([other]).collect();
            self.initial[all as usize] =
                self.inner.intern(all, &self.replicas.list_of(self.inner.signature(), &letters)?);
        }
        Ok(())
    }

    /// Returns the model under it, its identities, and the number of tracked ones: for the audit.
    pub(crate) fn meaning(&self) -> (&'a dyn AbstractableModel, &'a Replicas, usize) {
        (self.inner, self.replicas, self.tracked)
    }

    /// Returns the shared lists of identities, each with the index of the empty list.
    pub(crate) fn empty_lists(&self) -> Result<Vec<(Slot, u32)>, Diagnostic> {
        let lists = (0..self.replicas.lists.len())
            .filter(|s| self.replicas.lists[*s] && self.replicas.owner[*s].is_none());
        lists
            .map(|s| {
                Ok((
                    s as Slot,
                    self.inner
                        .intern(s as Slot, &self.replicas.list_of(self.inner.signature(), &[])?),
                ))
            })
            .collect()
    }

    /// Returns the initial local state of a component.
    pub(crate) fn first(&self) -> Result<LocalState, Diagnostic> {
        let mut thread = Evaluator::new(self);
        let initial = self.inner.initial();
        let slots = &self.replicas.local[SIZE - 1];
        slots
            .iter()
            .map(|slot| thread.local_image(*slot, initial[*slot as usize], SIZE - 1))
            .collect()
    }
}

impl UntrackedParticipant {
    /// Abstracts a local state.
    pub(crate) fn view(&self, member: &LocalState) -> Option<Vec<u32>> {
        let view: Vec<u32> = self.view.iter().map(|n| member[*n]).collect();
        self.required.iter().all(|(at, value)| view[*at] == *value).then_some(view)
    }

    fn views(&self, members: &[LocalState]) -> Vec<Vec<u32>> {
        let mut seen = AHashSet::new();
        members.iter().filter_map(|m| self.view(m)).filter(|v| seen.insert(v.clone())).collect()
    }

    /// True if a view matches the values that are read.
    pub(crate) fn matches_view(&self, view: &[u32], reads: &[u32]) -> bool {
        self.equal.iter().all(|(at, read)| view[*at] == reads[*read])
    }
}

impl Model for ThreadModularAbstraction<'_> {
    delegate_to_inner!();
    fn groups(&self) -> &[Group] {
        &self.groups
    }
    fn initial(&self) -> Vec<u32> {
        self.initial.clone()
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(Evaluator::new(self))
    }
}

impl ActionLabels for ThreadModularAbstraction<'_> {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        self.inner.multi_action(label)
    }
    fn constructor_images(&self, _symmetry: usize) -> Option<&[(OpId, OpId)]> {
        None
    }
}

impl crate::audit::cover::Concretise for ThreadModularAbstraction<'_> {
    fn draw(&self, _state: &[Expr], _draw: &mut crate::audit::draw::Draw) -> Option<Vec<Expr>> {
        None
    }
    fn image(&self, _state: &[Expr], _draw: &mut crate::audit::draw::Draw) -> Option<Vec<Expr>> {
        None
    }
    fn image_of_label(
        &self,
        _label: &MultiAction,
        _draw: &mut crate::audit::draw::Draw,
    ) -> Option<MultiAction> {
        None
    }
    fn unaudited_part(&self) -> Option<String> {
        Some("components of any number".into())
    }
}

impl AbstractableModel for ThreadModularAbstraction<'_> {
    fn compiled_process(&self) -> &Compiled {
        self.inner.compiled_process()
    }
}

/// An abstract step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AbstractStep {
    pub label: LabelId,
    /// The written values of shared and tracked slots.
    pub target: Vec<u32>,
    /// The written values in the local state of each participant.
    pub changes: Vec<Vec<u32>>,
    /// True if the list that it reads becomes a proper sublist of itself.
    pub shorter: bool,
}

/// The position of an untracked identity.
#[derive(Clone, Copy)]
enum UntrackedOccurrence {
    /// In shared or tracked data: it may be any untracked identity.
    Shared,
    /// In the local state of this participant: any identity except its own.
    Of(usize),
}

/// The class of an identity: a tracked one, or a class of equal untracked ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum IdentityClass {
    Tracked(usize),
    Named(usize),
}

/// One concretisation of an abstract query.
struct Concretisation<'w> {
    is: &'w [IdentityClass],
    /// The constants of the classes, and of letters that occur nowhere else.
    names: &'w [usize],
    fillers: &'w [usize],
    word: Option<&'w [Letter]>,
}

/// A query of a group.
struct GroupQuery<'q> {
    group: usize,
    reads: &'q [u32],
    views: &'q [&'q [u32]],
}

/// The evaluator of one thread.
pub(crate) struct Evaluator<'m> {
    model: &'m ThreadModularAbstraction<'m>,
    inner: CachedInner<'m>,
    engine: Engine,
    occurrences: Occurrences,
    images: AHashMap<(Slot, u32), u32>,
    local_images: AHashMap<(Slot, u32), u32>,
    /// Concretised values, by slots, value and [`pack`] constants.
    concrete: AHashMap<(Slot, Slot, u32, u64), u32>,
    labels: AHashMap<LabelId, LabelId>,
    words: AHashMap<(usize, usize, u32, usize), Rc<Vec<Vec<Letter>>>>,
    /// Lists of identities, by their letters.
    lists: AHashMap<(Slot, Vec<usize>), u32>,
}

impl<'m> Evaluator<'m> {
    pub(crate) fn new(model: &'m ThreadModularAbstraction<'m>) -> Self {
        Self {
            model,
            inner: CachedInner::new(model.inner),
            engine: model.inner.engine(),
            occurrences: Occurrences::default(),
            images: AHashMap::new(),
            local_images: AHashMap::new(),
            concrete: AHashMap::new(),
            labels: AHashMap::new(),
            words: AHashMap::new(),
            lists: AHashMap::new(),
        }
    }

    fn signature(&self) -> &'m Signature {
        self.model.inner.signature()
    }

    /// Returns the constant that represents all untracked identities.
    fn other(&self) -> usize {
        self.model.replicas.family.constants.len() - 2
    }

    fn owned_by_other(&self, slot: Slot) -> Option<usize> {
        self.model.replicas.owner[slot as usize].filter(|i| *i >= self.model.tracked)
    }

    fn holds(&self, slot: Slot) -> bool {
        self.model.replicas.family.slots[slot as usize]
    }

    fn intern(&mut self, slot: Slot, e: &Expr) -> Result<u32, Diagnostic> {
        let value = self.engine.from_expr(e)?;
        let normal = self.engine.to_expr_at(&value, e.sort);
        Ok(self.model.inner.intern(slot, &normal))
    }

    fn map_constants(
        &self,
        e: &Expr,
        f: &mut dyn FnMut(usize) -> usize,
    ) -> Result<Expr, Diagnostic> {
        map_constants(self.signature(), &self.model.replicas.family, e, f)
    }

    /// Abstracts the value of a slot that belongs to no untracked participant.
    fn image(&mut self, slot: Slot, value: u32) -> Result<u32, Diagnostic> {
        if let Some(known) = self.images.get(&(slot, value)) {
            return Ok(*known);
        }
        let (model, other) = (self.model, self.other());
        let e = model.inner.value(slot, value);
        let image = if model.replicas.lists[slot as usize] {
            let Some(letters) = model.replicas.letters(self.signature(), &e) else {
                let text = format!(
                    "the value `{}` is not a list of constants",
                    mu_data::print::expression(self.signature(), &e)
                );
                return Err(Diagnostic::new(Stage::Unsupported, text));
            };
            let word = abstract_word(letters.into_iter().map(|i| (i < model.tracked).then_some(i)));
            let letters: Vec<usize> = word
                .iter()
                .map(|p| if let WordPart::Tracked(i) = p { *i } else { other })
                .collect();
            let list = model.replicas.list_of(self.signature(), &letters)?;
            self.intern(slot, &list)?
        } else if self.holds(slot) {
            let e = self.map_constants(&e, &mut |i| if i < model.tracked { i } else { other })?;
            self.intern(slot, &e)?
        } else {
            expect_no_constants(self.signature(), &model.replicas.family, &e)?;
            value
        };
        self.images.insert((slot, value), image);
        Ok(image)
    }

    /// Abstracts the value of a slot of the identity `own` to the same slot of a local state.
    fn local_image(&mut self, slot: Slot, value: u32, own: usize) -> Result<u32, Diagnostic> {
        if let Some(known) = self.local_images.get(&(slot, value)) {
            return Ok(*known);
        }
        let (model, other) = (self.model, self.other());
        let e = model.inner.value(slot, value);
        let e = if self.holds(slot) {
            self.map_constants(&e, &mut |i| if i == own { other + 1 } else { other })?
        } else {
            expect_no_constants(self.signature(), &model.replicas.family, &e)?;
            e
        };
        let number = model.replicas.local[own]
            .iter()
            .position(|s| *s == slot)
            .ok_or_else(|| Diagnostic::internal("a local state without the slot"))?;
        let image = self.intern(model.replicas.local[SIZE - 1][number], &e)?;
        self.local_images.insert((slot, value), image);
        Ok(image)
    }

    /// Builds the abstract group of a group in which the first `others` untracked identities
    /// participate.
    fn share(
        &mut self,
        inside: usize,
        group: &Group,
        others: usize,
    ) -> Result<(Group, GroupMapping), Diagnostic> {
        let model = self.model;
        let replicas = model.replicas;
        let mut shares: Vec<UntrackedParticipant> =
            (0..others).map(|_| UntrackedParticipant::default()).collect();
        let number = |slot: Slot, own: usize| {
            replicas.local[own]
                .iter()
                .position(|s| *s == slot)
                .expect("the slot belongs to the component")
        };
        let (mut requires, mut moved, mut reads, mut writes) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for slot in &group.reads {
            match self.owned_by_other(*slot) {
                Some(own) => shares[own - model.tracked].view.push(number(*slot, own)),
                None => reads.push(*slot),
            }
        }
        for &(slot, value) in &group.requires {
            if let Some(own) = self.owned_by_other(slot) {
                let share = &mut shares[own - model.tracked];
                let at = number(slot, own);
                let seen = share.view.iter().position(|n| *n == at);
                let position = seen.unwrap_or(share.view.len());
                if seen.is_none() {
                    share.view.push(at);
                }
                share.required.push((position, self.local_image(slot, value, own)?));
                share.inside.push((slot, value));
            } else if self.occurrences(slot, value)?.iter().any(|i| *i >= model.tracked) {
                moved.push((slot, value));
                reads.push(slot);
            } else {
                requires.push((slot, value));
            }
        }
        reads.sort_unstable();
        reads.dedup();
        for (at, slot) in group.writes.iter().enumerate() {
            match self.owned_by_other(*slot) {
                Some(own) => shares[own - model.tracked].changes.push((number(*slot, own), at)),
                None => writes.push(at),
            }
        }
        for &(a, b) in &replicas.groups[inside].equal {
            for (a, b) in [(a, b), (b, a)] {
                if let (Some(own), None) = (self.owned_by_other(a), self.owned_by_other(b)) {
                    let share = &mut shares[own - model.tracked];
                    let at = share.view.iter().position(|n| *n == number(a, own));
                    share.equal.extend(at.zip(reads.iter().position(|s| *s == b)));
                }
            }
        }
        let written = writes.iter().map(|at| group.writes[*at]).collect();
        let own = Group {
            requires,
            tests: reads.clone(),
            reads,
            writes: written,
            confluent: false,
            ..group.clone()
        };
        Ok((own, GroupMapping { inside, others: shares, moved, writes }))
    }

    /// Returns the identities in a slot's value, in order.
    fn occurrences(&mut self, slot: Slot, value: u32) -> Result<Rc<[usize]>, Diagnostic> {
        let model = self.model;
        self.occurrences.of(model.inner, &model.replicas.family, slot, value)
    }

    fn label(&mut self, label: LabelId) -> Result<LabelId, Diagnostic> {
        if let Some(known) = self.labels.get(&label) {
            return Ok(*known);
        }
        let (model, other) = (self.model, self.other());
        let multi = model.inner.multi_action(label);
        let mut images: MultiAction = Vec::new();
        for (action, args) in multi.iter() {
            let mut new = Vec::new();
            for e in args {
                if model.replicas.family.holds(e.sort) {
                    let image =
                        self.map_constants(e, &mut |i| if i < model.tracked { i } else { other })?;
                    let value = self.engine.from_expr(&image)?;
                    new.push(self.engine.to_expr_at(&value, image.sort));
                } else {
                    expect_no_constants(self.signature(), &model.replicas.family, e)?;
                    new.push(e.clone());
                }
            }
            images.push((*action, new));
        }
        let image = if images == **multi { label } else { model.inner.intern_label(images) };
        self.labels.insert(label, image);
        Ok(image)
    }

    /// Returns the words of a list that a group reads, where `names` untracked identities occur
    /// elsewhere.
    fn words(
        &mut self,
        group: usize,
        slot: Slot,
        value: u32,
        names: usize,
    ) -> Result<Rc<Vec<Vec<Letter>>>, Diagnostic> {
        let model = self.model;
        let key = (group, slot as usize, value, names);
        if let Some(known) = self.words.get(&key) {
            return Ok(known.clone());
        }
        let list = model.inner.value(slot, value);
        let letters = model.replicas.letters(self.signature(), &list).unwrap_or_default();
        let word = abstract_word(letters.into_iter().map(|i| (i < model.tracked).then_some(i)));
        let all = model.replicas.all == Some(slot);
        let found = words(&word, &self.word_request(group, names, all), MAX_EVALUATIONS);
        let found = Rc::new(found.ok_or_else(|| self.too_much(group))?);
        self.words.insert(key, found.clone());
        Ok(found)
    }

    fn word_request(&self, group: usize, names: usize, all: bool) -> WordRequest {
        let joint = &self.model.replicas.groups[self.model.shares[group].inside];
        let (uses, seen) = (joint.uses, joint.uses.operations + 1);
        // A summed variable may be any letter, with unnamed letters before and after it.
        let longest = if uses.sieves { seen * (joint.sums + 1) + joint.sums } else { seen };
        WordRequest { names, all, empty: all, longest, front: (!uses.sieves).then_some(seen) }
    }

    fn too_much(&self, group: usize) -> Diagnostic {
        let name = &self.model.groups[group].name;
        let text = format!(
            "a step `{name}` depends on too many constants of `{}` at once",
            self.model.replicas.family.name
        );
        Diagnostic::new(Stage::Unsupported, text)
    }

    /// Returns the positions of untracked identities in the values that a group reads, except in
    /// lists.
    fn free(&mut self, query: &GroupQuery) -> Result<Vec<UntrackedOccurrence>, Diagnostic> {
        let model = self.model;
        let share = &model.shares[query.group];
        let mut free = Vec::new();
        for (&slot, &value) in model.groups[query.group].reads.iter().zip(query.reads) {
            if !model.replicas.lists[slot as usize] {
                let others =
                    self.occurrences(slot, value)?.iter().filter(|i| **i >= model.tracked).count();
                free.extend(std::iter::repeat_n(UntrackedOccurrence::Shared, others));
            }
        }
        let (locals, other) = (&model.replicas.local[SIZE - 1], self.other());
        for (j, (part, view)) in share.others.iter().zip(query.views).enumerate() {
            for (&number, &value) in part.view.iter().zip(*view) {
                let others = self
                    .occurrences(locals[number], value)?
                    .iter()
                    .filter(|i| **i == other)
                    .count();
                free.extend(std::iter::repeat_n(UntrackedOccurrence::Of(j), others));
            }
        }
        Ok(free)
    }

    /// Returns the partitions of these, each with the number of its classes.
    fn partitions(
        &self,
        group: usize,
        free: &[UntrackedOccurrence],
    ) -> Result<Vec<(Vec<IdentityClass>, usize)>, Diagnostic> {
        let others = self.model.shares[group].others.len();
        let mut partitions = vec![(Vec::new(), others)];
        for at in free {
            let mut next = Vec::new();
            for (is, names) in &partitions {
                let tracked =
                    if matches!(at, UntrackedOccurrence::Of(_)) { self.model.tracked } else { 0 };
                let own = if let UntrackedOccurrence::Of(j) = at { *j } else { usize::MAX };
                let all = (0..tracked)
                    .map(IdentityClass::Tracked)
                    .chain((0..=*names).filter(|n| *n != own).map(IdentityClass::Named));
                for one in all {
                    let more = usize::from(one == IdentityClass::Named(*names));
                    next.push(([is.as_slice(), &[one]].concat(), names + more));
                }
            }
            partitions = next;
            if partitions.len() > MAX_EVALUATIONS {
                return Err(self.too_much(group));
            }
        }
        Ok(partitions)
    }

    /// Computes the steps of a group for participants with these views.
    pub(crate) fn answers(
        &mut self,
        group: usize,
        reads: &[u32],
        views: &[&[u32]],
    ) -> Result<BTreeSet<AbstractStep>, Diagnostic> {
        let model = self.model;
        let query = GroupQuery { group, reads, views };
        let free = self.free(&query)?;
        let mut slots = model.groups[group].reads.iter().zip(reads);
        let looked = model.replicas.groups[model.shares[group].inside].list;
        let list = slots.find(|(slot, _)| looked == Some(**slot)).map(|(s, v)| (*s, *v));
        let sums = model.replicas.family.sums[model.shares[group].inside];
        let (base, end) = (model.tracked + views.len(), model.replicas.family.constants.len());
        let mut all = BTreeSet::new();
        for (is, names) in self.partitions(group, &free)? {
            let fresh = names - views.len();
            let found = match list {
                Some((slot, value)) => self.words(group, slot, value, names)?,
                None => Rc::new(vec![Vec::new()]),
            };
            let longest = self.word_request(group, names, false).longest;
            for word in found.iter() {
                let more = longer(word, longest);
                let room = more.iter().filter(|l| matches!(l, Letter::Filler(_))).count();
                if base + fresh + room + sums > end {
                    return Err(self.too_much(group));
                }
                let place = |at: usize, back: bool| if back { end - 1 - at } else { base + at };
                let own = |back: bool| -> (Vec<usize>, Vec<usize>) {
                    let names = (0..views.len())
                        .map(|j| model.tracked + j)
                        .chain((0..fresh).map(|k| place(k, back)));
                    (names.collect(), (0..room).map(|k| place(fresh + k, back)).collect())
                };
                let (there, back) = (own(false), own(true));
                let first = Concretisation {
                    is: &is,
                    names: &there.0,
                    fillers: &there.1,
                    word: list.map(|_| word.as_slice()),
                };
                let answers = self.at(&query, &first)?;
                if list.is_some() || fresh > 0 {
                    let twin = Concretisation {
                        is: &is,
                        names: &back.0,
                        fillers: &back.1,
                        word: list.map(|_| more.as_slice()),
                    };
                    if self.at(&query, &twin)? != answers {
                        let text = format!(
                            "constants of `{}` that the analysis considers equivalent give different answers in a step `{}`",
                            model.replicas.family.name, model.groups[group].name
                        );
                        return Err(Diagnostic::new(Stage::Unsupported, text));
                    }
                }
                all.extend(answers);
            }
        }
        Ok(all)
    }

    /// Converts a value of the slot `from` to the slot `to`, replacing untracked identities by
    /// these constants.
    fn convert_value(
        &mut self,
        (from, to): (Slot, Slot),
        value: u32,
        places: Vec<usize>,
    ) -> Result<u32, Diagnostic> {
        if from == to && places.is_empty() {
            return Ok(value);
        }
        let key = pack(&places).map(|places| (from, to, value, places));
        if let Some(known) = key.and_then(|key| self.concrete.get(&key)) {
            return Ok(*known);
        }
        let mut next = places.iter();
        let e = self.model.inner.value(from, value);
        let tracked = self.model.tracked;
        let e = self.map_constants(&e, &mut |i| {
            if i < tracked { i } else { next.next().copied().unwrap_or(i) }
        })?;
        let id = self.intern(to, &e)?;
        if let Some(key) = key {
            self.concrete.insert(key, id);
        }
        Ok(id)
    }

    /// Returns the index of a list of identities.
    fn list(&mut self, slot: Slot, letters: Vec<usize>) -> Result<u32, Diagnostic> {
        let key = (slot, letters);
        if let Some(known) = self.lists.get(&key) {
            return Ok(*known);
        }
        let list = self.model.replicas.list_of(self.signature(), &key.1)?;
        let id = self.intern(slot, &list)?;
        self.lists.insert(key, id);
        Ok(id)
    }

    /// Returns the length of a list of identities.
    fn length(&mut self, slot: Slot, value: u32) -> Result<usize, Diagnostic> {
        Ok(self.occurrences(slot, value)?.len())
    }

    /// Computes the steps of a group for one concretisation.
    fn at(
        &mut self,
        query: &GroupQuery,
        choice: &Concretisation,
    ) -> Result<BTreeSet<AbstractStep>, Diagnostic> {
        let model = self.model;
        let (group, share) = (&model.groups[query.group], &model.shares[query.group]);
        let inside = &model.inner.groups()[share.inside];
        let constant = |is: &IdentityClass| match is {
            IdentityClass::Tracked(i) => *i,
            IdentityClass::Named(n) => choice.names[*n],
        };
        let mut free = choice.is.iter().map(constant);
        let mut values: AHashMap<Slot, u32> = AHashMap::new();
        for (&slot, &value) in group.reads.iter().zip(query.reads) {
            let looked = model.replicas.groups[share.inside].list == Some(slot);
            let id = if model.replicas.lists[slot as usize] && !looked {
                // The group only tests whether the list is empty.
                value
            } else if looked {
                let letter = |l: &Letter| match l {
                    Letter::Tracked(i) => *i,
                    Letter::Named(n) => choice.names[*n],
                    Letter::Filler(n) => choice.fillers[*n],
                };
                self.list(slot, choice.word.unwrap_or_default().iter().map(letter).collect())?
            } else {
                let others =
                    self.occurrences(slot, value)?.iter().filter(|i| **i >= model.tracked).count();
                self.convert_value((slot, slot), value, free.by_ref().take(others).collect())?
            };
            values.insert(slot, id);
        }
        let (locals, other) = (&model.replicas.local[SIZE - 1], self.other());
        for (j, (part, view)) in share.others.iter().zip(query.views).enumerate() {
            for (&number, &value) in part.view.iter().zip(*view) {
                let found = self.occurrences(locals[number], value)?;
                let places = found
                    .iter()
                    .map(
                        |i| if *i == other { free.next().unwrap_or(*i) } else { model.tracked + j },
                    )
                    .collect();
                let slot = model.replicas.local[model.tracked + j][number];
                values.insert(slot, self.convert_value((locals[number], slot), value, places)?);
            }
        }
        let required = share.moved.iter().chain(share.others.iter().flat_map(|o| &o.inside));
        if required.into_iter().any(|(slot, value)| values.get(slot) != Some(value)) {
            return Ok(BTreeSet::new());
        }
        let steps =
            self.inner.steps(share.inside, inside.reads.iter().map(|s| values[s]).collect())?;
        let width = inside.writes.len();
        let joint = &model.replicas.groups[share.inside];
        let shrinking = joint.list.filter(|l| joint.shrinks.contains(l));
        let shrinking =
            shrinking.and_then(|l| inside.writes.iter().position(|s| *s == l).map(|at| (l, at)));
        let mut out = BTreeSet::new();
        for (i, &label) in steps.labels.iter().enumerate() {
            let row = &steps.values[i * width..(i + 1) * width];
            let label = self.label(label)?;
            let target = share
                .writes
                .iter()
                .map(|at| self.image(inside.writes[*at], row[*at]))
                .collect::<Result<Vec<_>, _>>()?;
            let mut changes = Vec::new();
            for (j, part) in share.others.iter().enumerate() {
                let change = part.changes.iter().map(|(_, at)| {
                    self.local_image(inside.writes[*at], row[*at], model.tracked + j)
                });
                changes.push(change.collect::<Result<Vec<_>, _>>()?);
            }
            let shorter = match shrinking {
                Some((slot, at)) => {
                    self.length(slot, row[at])? < choice.word.unwrap_or_default().len()
                }
                None => false,
            };
            out.insert(AbstractStep { label, target, changes, shorter });
        }
        Ok(out)
    }
}

/// Returns all choices of one element from each list.
pub(crate) fn choices<'v>(lists: &[Vec<&'v [u32]>]) -> Vec<Vec<&'v [u32]>> {
    lists.iter().fold(vec![Vec::new()], |rows, list| {
        rows.iter()
            .flat_map(|row| list.iter().map(move |v| [row.as_slice(), &[*v]].concat()))
            .collect()
    })
}

impl Worker for Evaluator<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        let model = self.model;
        if let Some(known) = model.cached_steps.get(group, reads) {
            out.labels.extend_from_slice(&known.labels);
            out.values.extend_from_slice(&known.values);
            return Ok(());
        }
        let share = &model.shares[group];
        let fitting =
            |(other, views): (&UntrackedParticipant, &'_ Vec<Vec<u32>>)| -> Vec<Vec<u32>> {
                views.iter().filter(|v| other.matches_view(v, reads)).cloned().collect()
            };
        let views: Vec<Vec<Vec<u32>>> =
            share.others.iter().zip(&model.views[group]).map(fitting).collect();
        let views: Vec<Vec<&[u32]>> =
            views.iter().map(|list| list.iter().map(Vec::as_slice).collect()).collect();
        let mut all = BTreeSet::new();
        for chosen in choices(&views) {
            all.extend(
                self.answers(group, reads, &chosen)?.into_iter().map(|a| (a.label, a.target)),
            );
        }
        let mut steps = Steps::default();
        for (label, target) in all {
            steps.labels.push(label);
            steps.values.extend(target);
        }
        out.labels.extend_from_slice(&steps.labels);
        out.values.extend_from_slice(&steps.values);
        model.cached_steps.keep(group, reads, Arc::new(steps));
        Ok(())
    }
}
