//! Symmetry reduction: stores one representative of each orbit of states under a group of
//! symmetries.
//!
//! In: a model with candidate symmetries ([`mu_model::Symmetry`]). Out: the part of the generated
//! group that fixes the initial state ([`Symmetries::find`]); for each state the representative and
//! the size of its orbit ([`Orbits`]). After Ip, Dill: "Better Verification Through Symmetry" (FMSD
//! 1996), and Clarke, Enders, Filkorn, Jha (FMSD 1996) for the quotient.
//!
//! The front end is not trusted. Whenever a transition group is evaluated on some input, it is also
//! evaluated on all images of that input, and the results must be the images of the result
//! ([`Symmetries::confirm`]). So the steps of every image of an expanded state are exactly the
//! images of its steps, and the images of the stored states and steps form the reachable part of
//! the full system. If a result differs, the search is void ([`Symmetries::broken`]), and
//! [`with_verified_symmetries`] repeats it without the refuted candidates. Elements are tried in
//! the order of their words, so if an element fails after all its prefixes passed, its last
//! candidate is refuted. Results are cached, so evaluations are few and verification is nearly
//! free.
//!
//! The initial state is its own image, so the orbits of the stored states are exactly the reachable
//! states. Their sizes add up to the exact number of states; transitions and deadlocks are counted
//! in the same manner.
//!
//! The representative has the lexicographically least numbers of leaves. These numbers depend on
//! the order of discovery but do not change within a search: leaves are not split while symmetries
//! are in use. Cost: at most a lookup for each leaf and symmetry, usually one or two for each
//! symmetry.
//!
//! If answers rarely recur, each evaluation is verified under all elements. [`SymmetryCostMonitor`]
//! compares this cost with the savings of the orbits: a search that would be much faster without
//! symmetries restarts without them.

use ahash::{AHashMap, AHashSet};
use mu_base::host::Instant;
use mu_base::narrow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Options;
use super::distributed::stable_hash::StableHashes;
use super::expander::Halt;
use super::group_cache::SharedGroupCache;
use super::intern::held;
use super::store::Store;
use mu_base::Diagnostic;
use mu_base::ids::{LabelId, Maybe};
use mu_model::{Model, Slot, Steps, Worker};

/// Limit on the elements of a group.
const MAX_ELEMENTS: usize = 120;
/// Number of states on which candidates are tested before the search.
const TRIAL_STATES: usize = 300;

/// An element of the group, other than the identity.
#[derive(Clone, Debug)]
struct Element {
    /// Candidates, in the order of application.
    word: Vec<usize>,
    slots: Vec<Slot>,
    points: Vec<u32>,
    /// By class of transition groups: its image.
    classes: Vec<u32>,
}

/// Result of a candidate's test on the first states.
enum Trial {
    Passed,
    Failed,
    /// It changes none of these states.
    Idle,
}

/// Signature of a transition group; groups with equal signatures form a class and are verified
/// together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct GroupSignature {
    requires: Vec<(Slot, u32)>,
    reads: Vec<Slot>,
    writes: Vec<Slot>,
    tau: bool,
    /// True if the steps have priority as confluent ones.
    confluent_priority: bool,
    /// True if the steps are taken before others because they commute with these.
    first: bool,
}

#[derive(Debug)]
struct Class {
    kind: GroupSignature,
    members: Vec<usize>,
}

/// A group of symmetries of a model; see the module header.
#[derive(Debug)]
pub struct Symmetries {
    elements: Vec<Element>,
    classes: Vec<Class>,
    /// Class of each transition group.
    class_of: Vec<u32>,
    confirmed: Mutex<AHashMap<u32, AHashSet<Box<[u32]>>>>,
    broken: AtomicBool,
    /// Set if they cost more than they save.
    costly: AtomicBool,
    /// Candidates refuted during the search.
    failed: Mutex<BTreeSet<usize>>,
}

/// A candidate symmetry that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedSymmetry {
    /// The candidate's name.
    pub name: String,
    /// The reason.
    pub why: &'static str,
}

/// Runs `search`, dropping symmetries refuted during the run and restarting until all remaining
/// ones hold. The argument of `search` is `None` if no symmetry is left. Also returns the
/// candidates that are not used.
pub fn with_verified_symmetries<T>(
    model: &dyn Model,
    options: &Options,
    mut search: impl FnMut(Option<&mut Symmetries>) -> Result<T, Diagnostic>,
) -> Result<(T, Vec<RejectedSymmetry>), Diagnostic> {
    let mut failed = BTreeSet::new();
    loop {
        let (found, mut dropped) = Symmetries::find_without(model, options, &failed)?;
        let Some(mut symmetries) = found else { return search(None).map(|t| (t, dropped)) };
        let result = search(Some(&mut symmetries));
        if symmetries.costly.load(Ordering::Relaxed) {
            dropped.extend(
                symmetries
                    .words()
                    .filter(|w| w.len() == 1)
                    .map(|w| RejectedSymmetry::of(model, w[0], COSTLY)),
            );
            return search(None).map(|t| (t, dropped));
        }
        if !symmetries.broken() {
            return result.map(|t| (t, dropped));
        }
        let more = held!(symmetries.failed.lock()).clone();
        if more.is_subset(&failed) {
            // The group failed as a whole.
            dropped.extend(
                symmetries
                    .words()
                    .filter(|w| w.len() == 1)
                    .map(|w| RejectedSymmetry::of(model, w[0], FAILED_TOGETHER)),
            );
            return search(None).map(|t| (t, dropped));
        }
        failed.extend(more);
    }
}

/// Reasons.
const FAILED_TRIAL: &str = "some step close to the initial state has no image";
const FAILED_SEARCH: &str = "some explored step has no image, or the resumed search did not use it";
const FAILED_TOGETHER: &str = "confluent tau steps form a cycle";
const COSTLY: &str = "its verification costs more than it saves";
const TOO_MANY: &str = "the group would be too large";
const MOVES_START: &str = "it moves the initial state";

impl RejectedSymmetry {
    fn of(model: &dyn Model, candidate: usize, why: &'static str) -> Self {
        RejectedSymmetry { name: model.symmetries()[candidate].name.clone(), why }
    }
}

/// Cached images of values and labels under candidates, of one thread.
#[derive(Default)]
pub(crate) struct Images {
    values: HashMap<(usize, Slot, u32), Option<u32>, ahash::RandomState>,
    labels: HashMap<(usize, LabelId), LabelId, ahash::RandomState>,
}

impl Images {
    /// Returns the image of a slot's value under a word; `None` if it is unknown.
    fn value(
        &mut self,
        model: &dyn Model,
        worker: &mut dyn Worker,
        word: &[usize],
        slot: Slot,
        value: u32,
    ) -> Result<Option<u32>, Diagnostic> {
        let (mut slot, mut value) = (slot, value);
        for &symmetry in word {
            let image = match self.values.get(&(symmetry, slot, value)) {
                Some(&image) => image,
                None => {
                    let image = worker.image(symmetry, slot, value)?;
                    self.values.insert((symmetry, slot, value), image);
                    image
                }
            };
            let Some(image) = image else { return Ok(None) };
            value = image;
            slot = model.symmetries()[symmetry].slots[slot as usize];
        }
        Ok(Some(value))
    }
    /// Returns the image of a label; `None` if it is unknown.
    pub fn label(
        &mut self,
        worker: &mut dyn Worker,
        word: &[usize],
        label: LabelId,
    ) -> Result<Option<LabelId>, Diagnostic> {
        let mut label = label;
        for &symmetry in word {
            label = match self.labels.get(&(symmetry, label)) {
                Some(&image) => image,
                None => match worker.image_label(symmetry, label)? {
                    Some(image) => {
                        self.labels.insert((symmetry, label), image);
                        image
                    }
                    None => return Ok(None),
                },
            };
        }
        Ok(Some(label))
    }
}

/// Returns the positions of the images of `slots` among the ascending target slots.
fn arrange(slots: &[Slot], to: &[Slot], target: &[Slot]) -> Option<Vec<usize>> {
    slots.iter().map(|&s| target.binary_search(&to[s as usize]).ok()).collect()
}

impl Symmetries {
    /// Returns the group generated by the candidates that pass the test, restricted to elements
    /// that fix the initial state. `None` if only the identity is left, or if the options disable
    /// symmetries.
    pub fn find(model: &dyn Model, options: &Options) -> Result<Option<Symmetries>, Diagnostic> {
        Self::find_without(model, options, &BTreeSet::new()).map(|found| found.0)
    }

    /// Searches as [`Symmetries::find`], without the candidates known to fail. Also returns the
    /// candidates that are not used.
    fn find_without(
        model: &dyn Model,
        options: &Options,
        failed: &BTreeSet<usize>,
    ) -> Result<(Option<Symmetries>, Vec<RejectedSymmetry>), Diagnostic> {
        let candidates = model.symmetries();
        if !options.symmetry || candidates.is_empty() {
            return Ok((None, Vec::new()));
        }
        let mut dropped: Vec<RejectedSymmetry> =
            failed.iter().map(|f| RejectedSymmetry::of(model, *f, FAILED_SEARCH)).collect();
        let mut all = Self::classes(model, options);
        let (mut worker, mut images) = (model.worker(), Images::default());
        let shared_cache = SharedGroupCache::new(model.groups().len(), 1 << 24);
        let identity = Element {
            word: Vec::new(),
            slots: (0..model.slots().len() as Slot).collect(),
            points: (0..narrow::index(candidates[0].points.len())).collect(),
            classes: (0..narrow::index(all.classes.len())).collect(),
        };
        let mut generators = Vec::new();
        for (i, candidate) in candidates.iter().enumerate().filter(|c| !failed.contains(&c.0)) {
            let Some(classes) = all.image_classes(model, worker.as_mut(), &mut images, i)? else {
                dropped.push(RejectedSymmetry::of(model, i, FAILED_TRIAL));
                continue;
            };
            let element = Element {
                word: vec![i],
                slots: candidate.slots.clone(),
                points: candidate.points.clone(),
                classes,
            };
            all.elements = vec![element];
            match all.trial(model, &shared_cache, worker.as_mut(), &mut images)? {
                Trial::Passed => generators.push(all.elements.remove(0)),
                Trial::Failed => dropped.push(RejectedSymmetry::of(model, i, FAILED_TRIAL)),
                // It fixes all states, so it saves nothing.
                Trial::Idle => {}
            }
            all.broken = AtomicBool::new(false);
            held!(all.confirmed.lock()).clear();
            held!(all.failed.lock()).clear();
        }
        let before: Vec<usize> = generators.iter().map(|g| g.word[0]).collect();
        all.elements = Self::closure(&identity, &mut generators);
        dropped.extend(
            before[generators.len()..].iter().map(|&i| RejectedSymmetry::of(model, i, TOO_MANY)),
        );
        let initial = model.initial();
        let mut keep = Vec::new();
        for element in &all.elements {
            let image = all.vector(model, worker.as_mut(), &mut images, element, &initial)?;
            keep.push(image.as_ref() == Some(&initial));
        }
        let moves = |(i, e): (usize, &Element)| {
            (e.word.len() == 1 && !keep[i])
                .then(|| RejectedSymmetry::of(model, e.word[0], MOVES_START))
        };
        dropped.extend(all.elements.iter().enumerate().filter_map(moves));
        all.retain(|element| keep[element]);
        Ok((Some(all).filter(|a| !a.elements.is_empty()), dropped))
    }

    fn classes(model: &dyn Model, options: &Options) -> Self {
        let mut numbers: HashMap<GroupSignature, u32> = HashMap::new();
        let (mut classes, mut class_of) = (Vec::<Class>::new(), Vec::new());
        for (g, group) in model.groups().iter().enumerate() {
            let confluent_priority = options.confluent.get(g).copied().unwrap_or(false);
            let (requires, reads, writes) =
                (group.requires.clone(), group.reads.clone(), group.writes.clone());
            let first = options.first.get(g).copied().unwrap_or(false);
            let tau = group.tau;
            let kind = GroupSignature { requires, reads, writes, tau, confluent_priority, first };
            let class = *numbers.entry(kind).or_insert_with_key(|kind| {
                classes.push(Class { kind: kind.clone(), members: Vec::new() });
                narrow::index(classes.len()) - 1
            });
            classes[class as usize].members.push(g);
            class_of.push(class);
        }
        let (failed, broken, costly) =
            (Mutex::default(), AtomicBool::new(false), AtomicBool::new(false));
        Self {
            elements: Vec::new(),
            classes,
            class_of,
            confirmed: Mutex::default(),
            broken,
            costly,
            failed,
        }
    }

    /// Returns the image of each class under a candidate; `None` if some class has no image.
    fn image_classes(
        &self,
        model: &dyn Model,
        worker: &mut dyn Worker,
        images: &mut Images,
        candidate: usize,
    ) -> Result<Option<Vec<u32>>, Diagnostic> {
        let to = &model.symmetries()[candidate].slots;
        let numbers: HashMap<&GroupSignature, u32> =
            self.classes.iter().zip(0..).map(|(class, number)| (&class.kind, number)).collect();
        let sorted = |slots: &[Slot]| {
            let mut slots: Vec<Slot> = slots.iter().map(|&s| to[s as usize]).collect();
            slots.sort_unstable();
            slots
        };
        let mut out = Vec::new();
        for Class { kind, .. } in &self.classes {
            let mut requires = Vec::new();
            for &(slot, value) in &kind.requires {
                let Some(image) = images.value(model, worker, &[candidate], slot, value)? else {
                    return Ok(None);
                };
                requires.push((to[slot as usize], image));
            }
            requires.sort_unstable();
            let image = GroupSignature {
                requires,
                reads: sorted(&kind.reads),
                writes: sorted(&kind.writes),
                ..*kind
            };
            match numbers.get(&image) {
                Some(&class) => out.push(class),
                None => return Ok(None),
            }
        }
        let distinct: HashSet<u32> = out.iter().copied().collect();
        Ok((distinct.len() == out.len()).then_some(out))
    }

    /// Tests the only element on the first states of the model.
    fn trial(
        &self,
        model: &dyn Model,
        shared_cache: &SharedGroupCache,
        worker: &mut dyn Worker,
        images: &mut Images,
    ) -> Result<Trial, Diagnostic> {
        let initial = model.initial();
        let (mut seen, mut queue) = (HashSet::from([initial.clone()]), vec![initial]);
        let (mut at, mut moves) = (0, false);
        while at < queue.len().min(TRIAL_STATES) {
            let state = queue[at].clone();
            at += 1;
            match self.vector(model, worker, images, &self.elements[0], &state)? {
                None => return Ok(Trial::Failed),
                Some(image) => moves |= image != state,
            }
            for (g, group) in model.groups().iter().enumerate() {
                if group.requires.iter().any(|&(s, v)| state[s as usize] != v) {
                    continue;
                }
                let reads: Vec<u32> = group.reads.iter().map(|&s| state[s as usize]).collect();
                // The search itself will report this error.
                let mut steps = Steps::default();
                if shared_cache.steps(g, &reads, worker, &mut steps).is_err() {
                    return Ok(Trial::Failed);
                }
                if !self.is_confirmed(g, &reads)
                    && self.confirm(model, shared_cache, worker, images, g, &reads)?.is_err()
                {
                    return Ok(Trial::Failed);
                }
                for values in
                    steps.values.chunks(group.writes.len().max(1)).take(steps.labels.len())
                {
                    let mut target = state.clone();
                    group.writes.iter().zip(values).for_each(|(&s, &v)| target[s as usize] = v);
                    if queue.len() < TRIAL_STATES && seen.insert(target.clone()) {
                        queue.push(target);
                    }
                }
            }
        }
        Ok(if moves { Trial::Passed } else { Trial::Idle })
    }

    /// Returns all products of the generators but the identity. While there are too many, drops the
    /// last generator.
    fn closure(identity: &Element, generators: &mut Vec<Element>) -> Vec<Element> {
        loop {
            let mut seen = HashSet::from([(identity.slots.clone(), identity.points.clone())]);
            let (mut all, mut at) = (vec![identity.clone()], 0);
            while at < all.len() && all.len() <= MAX_ELEMENTS {
                for g in generators.iter() {
                    let before = &all[at];
                    let product = Element {
                        word: before.word.iter().chain(&g.word).copied().collect(),
                        slots: before.slots.iter().map(|&s| g.slots[s as usize]).collect(),
                        points: before.points.iter().map(|&p| g.points[p as usize]).collect(),
                        classes: before.classes.iter().map(|&c| g.classes[c as usize]).collect(),
                    };
                    if seen.insert((product.slots.clone(), product.points.clone())) {
                        all.push(product);
                    }
                }
                at += 1;
            }
            if all.len() <= MAX_ELEMENTS {
                all.remove(0);
                return all;
            }
            generators.pop();
        }
    }

    /// Returns the number of elements, including the identity.
    pub fn order(&self) -> usize {
        self.elements.len() + 1
    }
    /// Returns the word of each element; the identity is not among the elements.
    pub fn words(&self) -> impl Iterator<Item = &[usize]> {
        self.elements.iter().map(|e| &e.word[..])
    }
    /// Retains some elements, which must form a group with the identity.
    pub fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut index = 0;
        self.elements.retain(|_| {
            index += 1;
            keep(index - 1)
        });
    }
    /// True if some symmetry was refuted: then the results of the search are void.
    pub fn broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }
    /// Records that an element, by number, was refuted. Returns the error that ends the search.
    pub fn refute_element(&self, element: usize) -> Diagnostic {
        held!(self.failed.lock()).extend(self.elements.get(element).and_then(|e| e.word.last()));
        self.refute()
    }
    /// Records that some symmetry was refuted. Returns the error that ends the search.
    pub fn refute(&self) -> Diagnostic {
        self.broken.store(true, Ordering::Relaxed);
        Diagnostic::new(mu_base::Stage::Internal, "a candidate symmetry was refuted")
    }

    /// True if symmetries cost more than they save.
    pub fn is_costly(&self) -> bool {
        self.costly.load(Ordering::Relaxed)
    }
    /// Records that symmetries cost more than they save. Returns the error that ends the search.
    pub fn give_up(&self) -> Diagnostic {
        self.costly.store(true, Ordering::Relaxed);
        Diagnostic::new(mu_base::Stage::Internal, "symmetries cost more than they save")
    }

    /// Returns the numbers of the refuted candidates.
    pub fn refuted_candidates(&self) -> Vec<usize> {
        held!(self.failed.lock()).iter().copied().collect()
    }
    /// Records candidates refuted by another process.
    pub fn fail(&self, candidates: &[usize]) {
        held!(self.failed.lock()).extend(candidates);
        self.broken.store(true, Ordering::Relaxed);
    }

    /// Returns the image of a vector.
    fn vector(
        &self,
        model: &dyn Model,
        worker: &mut dyn Worker,
        images: &mut Images,
        element: &Element,
        vector: &[u32],
    ) -> Result<Option<Vec<u32>>, Diagnostic> {
        let mut out = vec![0; vector.len()];
        for (slot, &value) in vector.iter().enumerate() {
            match images.value(model, worker, &element.word, slot as Slot, value)? {
                Some(image) => out[element.slots[slot] as usize] = image,
                None => return Ok(None),
            }
        }
        Ok(Some(out))
    }

    /// Returns the steps of a class for the values of its reads, sorted and without duplicates.
    fn answer(
        &self,
        class: u32,
        reads: &[u32],
        shared_cache: &SharedGroupCache,
        worker: &mut dyn Worker,
    ) -> Result<Vec<(LabelId, Vec<u32>)>, Diagnostic> {
        let Class { kind, members } = &self.classes[class as usize];
        let width = kind.writes.len();
        let (mut out, mut steps) = (Vec::new(), Steps::default());
        for &g in members {
            shared_cache.steps(g, reads, worker, &mut steps)?;
            let Steps { labels, values } = &steps;
            out.extend(
                labels
                    .iter()
                    .enumerate()
                    .map(|(i, l)| (*l, values[i * width..(i + 1) * width].to_vec())),
            );
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    /// True if an input of a group is verified already.
    pub(crate) fn is_confirmed(&self, group: usize, reads: &[u32]) -> bool {
        held!(self.confirmed.lock())
            .get(&self.class_of[group])
            .is_some_and(|known| known.contains(reads))
    }

    /// Evaluates a group on all images of an input. The inner result is `Err` if some result is not
    /// the image of the result; the refuted candidates are recorded.
    pub(crate) fn confirm(
        &self,
        model: &dyn Model,
        shared_cache: &SharedGroupCache,
        worker: &mut dyn Worker,
        images: &mut Images,
        group: usize,
        reads: &[u32],
    ) -> Result<Result<(), ()>, Diagnostic> {
        let class = self.class_of[group];
        let own = self.answer(class, reads, shared_cache, worker)?;
        let mut orbit: Vec<(u32, Box<[u32]>)> = vec![(class, reads.into())];
        // An element with a failing prefix does not refute its last candidate.
        let mut failing: Vec<&[usize]> = Vec::new();
        for element in &self.elements {
            if failing.iter().any(|f| element.word.starts_with(f)) {
                continue;
            }
            match self.image_of_question(
                model,
                shared_cache,
                worker,
                images,
                element,
                (class, reads),
                &own,
            )? {
                Some(image) => orbit.push(image),
                None => failing.push(&element.word),
            }
        }
        if !failing.is_empty() {
            held!(self.failed.lock()).extend(failing.into_iter().filter_map(<[usize]>::last));
            return Ok(Err(()));
        }
        let mut confirmed = held!(self.confirmed.lock());
        for (class, question) in orbit {
            confirmed.entry(class).or_default().insert(question);
        }
        drop(confirmed);
        Ok(Ok(()))
    }

    /// Returns the image of an input under an element, if the result on it is the image of the
    /// result.
    #[allow(clippy::too_many_arguments)]
    fn image_of_question(
        &self,
        model: &dyn Model,
        shared_cache: &SharedGroupCache,
        worker: &mut dyn Worker,
        images: &mut Images,
        element: &Element,
        (class, reads): (u32, &[u32]),
        own: &[(LabelId, Vec<u32>)],
    ) -> Result<Option<(u32, Box<[u32]>)>, Diagnostic> {
        let target = element.classes[class as usize];
        let (from, to) = (&self.classes[class as usize].kind, &self.classes[target as usize].kind);
        let (Some(read_places), Some(write_places)) = (
            arrange(&from.reads, &element.slots, &to.reads),
            arrange(&from.writes, &element.slots, &to.writes),
        ) else {
            return Ok(None);
        };
        let mut question = vec![0; reads.len()];
        for ((&slot, &value), &place) in from.reads.iter().zip(reads).zip(&read_places) {
            let Some(image) = images.value(model, worker, &element.word, slot, value)? else {
                return Ok(None);
            };
            question[place] = image;
        }
        let mut expected = Vec::with_capacity(own.len());
        for (label, values) in own {
            let Some(label) = images.label(worker, &element.word, *label)? else { return Ok(None) };
            let mut step = vec![0; values.len()];
            for ((&slot, &value), &place) in from.writes.iter().zip(values).zip(&write_places) {
                let Some(image) = images.value(model, worker, &element.word, slot, value)? else {
                    return Ok(None);
                };
                step[place] = image;
            }
            expected.push((label, step));
        }
        expected.sort_unstable();
        expected.dedup();
        match self.answer(target, &question, shared_cache, worker) {
            Ok(answer) if answer == expected => Ok(Some((target, question.into()))),
            Err(limit) if limit.stop.is_some() => Err(limit),
            // An image that cannot be evaluated may be unreachable: the model is correct, but this
            // is no symmetry of it.
            _ => Ok(None),
        }
    }
}

/// Compares one thread's time for verification and images with the savings of the orbits. Affects
/// only the duration of a search.
pub(crate) struct SymmetryCostMonitor {
    since: Instant,
    /// States expanded.
    expanded: u64,
    /// States in their orbits.
    covered: u64,
}

impl SymmetryCostMonitor {
    /// Time before a search is judged: the first levels have few states and no cached answers.
    pub const PATIENCE: Duration = Duration::from_millis(250);
    /// States between two checks of the clock. A check takes a tenth of the time of a state if
    /// symmetries are cheap. With many successors and full verification, these few states take as
    /// long as the whole patience.
    const STRIDE: u64 = 16;
    /// Tolerated slowdown compared with a search without symmetries; symmetries also save memory.
    const TOLERATED: f64 = 2.5;

    /// Starts measuring.
    pub fn new() -> Self {
        SymmetryCostMonitor { since: Instant::now(), expanded: 0, covered: 0 }
    }
    /// Records an expanded state. Returns the error that ends the search if it would be much faster
    /// without symmetries.
    pub fn expand(&mut self, orbits: &Orbits, orbit: u64) -> Result<(), Halt> {
        self.expanded += 1;
        self.covered += orbit;
        if !self.expanded.is_multiple_of(Self::STRIDE) {
            return Ok(());
        }
        if self.since.elapsed() < Self::PATIENCE || !self.seems_costly(orbits) {
            Ok(())
        } else {
            Err(orbits.symmetries.give_up().into())
        }
    }

    /// True if the search so far would be much faster without symmetries.
    pub fn seems_costly(&self, orbits: &Orbits) -> bool {
        costs_too_much(
            self.since.elapsed().as_secs_f64(),
            orbits.spent.as_secs_f64(),
            self.expanded,
            self.covered,
        )
    }
}

/// True if a search would be much faster without symmetries. It would spend the time that is not
/// spent on symmetries for each state of the orbits.
fn costs_too_much(all: f64, spent: f64, expanded: u64, covered: u64) -> bool {
    let without = (all - spent) * covered as f64 / expanded.max(1) as f64;
    expanded > 0 && all > SymmetryCostMonitor::TOLERATED * without
}

/// Interval of the images of leaves that are timed.
const TIMING_INTERVAL: u32 = 8;

/// One thread's tables of images of leaves.
pub(crate) struct Orbits<'s> {
    pub symmetries: &'s Symmetries,
    pub images: Images,
    leaves: usize,
    /// By element and leaf: the leaf mapped to it.
    sources: Vec<u32>,
    /// By element and leaf: for each slot of it, the position in the source leaf.
    places: Vec<Vec<u32>>,
    /// By element, leaf, and tuple of the source leaf: the image.
    tables: Vec<Vec<Maybe>>,
    /// Time of verification, and sampled time of uncached images.
    pub spent: Duration,
    /// Number of uncached images.
    filled: u32,
    /// The least image found.
    pub least: Vec<u32>,
}

impl<'s> Orbits<'s> {
    /// Creates tables for a store with one leaf for each component of the model.
    pub fn new(symmetries: &'s Symmetries, store: &Store) -> Self {
        let leaves = store.leaves.len();
        let (mut sources, mut places) = (Vec::new(), Vec::new());
        for element in &symmetries.elements {
            let mut back = vec![0; element.slots.len()];
            element
                .slots
                .iter()
                .enumerate()
                .for_each(|(from, &to)| back[to as usize] = narrow::index(from));
            for (own, leaf) in store.leaves.iter().enumerate() {
                let from: Vec<(u32, u32)> = leaf
                    .slots
                    .iter()
                    .map(|&s| store.leaf_of_slot[back[s as usize] as usize])
                    .collect();
                // A leaf without slots has one tuple, which is its own image.
                sources.push(from.first().map_or_else(|| narrow::index(own), |f| f.0));
                places.push(from.iter().map(|f| f.1).collect());
            }
        }
        let tables = vec![Vec::new(); sources.len()];
        Self {
            symmetries,
            images: Images::default(),
            leaves,
            sources,
            places,
            tables,
            spent: Duration::ZERO,
            filled: 0,
            least: Vec::new(),
        }
    }

    /// Returns the current time for one image in [`TIMING_INTERVAL`], because reading the clock is
    /// expensive.
    fn sample_clock(&mut self) -> Option<Instant> {
        self.filled += 1;
        self.filled.is_multiple_of(TIMING_INTERVAL).then(Instant::now)
    }

    /// Adds the time of a timed image and of those before it.
    fn spend(&mut self, from: Option<Instant>) {
        if let Some(from) = from {
            self.spent += from.elapsed() * TIMING_INTERVAL;
        }
    }

    #[inline]
    fn image(
        &mut self,
        store: &Store,
        source_of_images: ImageSource,
        element: usize,
        leaf: usize,
        state: &[u32],
    ) -> Result<u32, Halt> {
        let at = element * self.leaves + leaf;
        let value = state[self.sources[at] as usize];
        match self.tables[at].get(value as usize).and_then(|image| image.get()) {
            Some(image) => Ok(image),
            None => self.fill(store, source_of_images, element, leaf, value),
        }
    }

    #[cold]
    fn fill(
        &mut self,
        store: &Store,
        source_of_images: ImageSource,
        element: usize,
        leaf: usize,
        value: u32,
    ) -> Result<u32, Halt> {
        let from = self.sample_clock();
        let at = element * self.leaves + leaf;
        let source = &store.leaves[self.sources[at] as usize];
        let mut row = Vec::new();
        source.table.read(value, &mut row);
        let word = &self.symmetries.elements[element].word;
        let mut image = Vec::with_capacity(row.len());
        for &p in &self.places[at] {
            match self.images.value(
                source_of_images.0,
                source_of_images.1,
                word,
                source.slots[p as usize],
                row[p as usize],
            )? {
                Some(v) => image.push(v),
                None => return Err(self.symmetries.refute_element(element).into()),
            }
        }
        let image = store.leaves[leaf].table.intern(&image);
        let table = &mut self.tables[at];
        if table.len() <= value as usize {
            table.resize(value as usize + 1, Maybe::NONE);
        }
        table[value as usize] = Maybe::some(image);
        self.spend(from);
        Ok(image)
    }

    /// Appends the images of a leaf's tuple under all elements, as leaves and numbers.
    pub fn images_of(
        &mut self,
        store: &Store,
        source_of_images: ImageSource,
        leaf: usize,
        number: u32,
        out: &mut Vec<(usize, u32)>,
    ) -> Result<(), Halt> {
        for element in 0..self.symmetries.elements.len() {
            for to in 0..self.leaves {
                let at = element * self.leaves + to;
                if self.sources[at] as usize == leaf {
                    let known = self.tables[at].get(number as usize).and_then(|image| image.get());
                    let image = match known {
                        Some(image) => image,
                        None => self.fill(
                            store,
                            (source_of_images.0, &mut *source_of_images.1),
                            element,
                            to,
                            number,
                        )?,
                    };
                    out.push((to, image));
                }
            }
        }
        Ok(())
    }

    /// Returns by leaf the number of its class: the least leaf mapped to it.
    pub fn classes(&self) -> Vec<usize> {
        let mut classes: Vec<usize> = (0..self.leaves).collect();
        for at in 0..self.sources.len() {
            let to = at % self.leaves;
            classes[to] = classes[to].min(self.sources[at] as usize);
        }
        classes
    }

    /// Puts the representative of a state's orbit into `least`: the first one by tuple numbers, or
    /// by stable hashes in a distributed search. Returns the number of the element that leads to
    /// it, from 1; 0 if the state is its own representative.
    pub fn reduce(
        &mut self,
        store: &Store,
        source_of_images: ImageSource,
        state: &[u32],
        mut stable_hashes: Option<&mut StableHashes>,
    ) -> Result<u32, Halt> {
        let (model, worker) = source_of_images;
        self.least.clear();
        self.least.extend_from_slice(state);
        let mut which = 0;
        for element in 0..self.symmetries.elements.len() {
            for leaf in 0..self.leaves {
                let image = self.image(store, (model, &mut *worker), element, leaf, state)?;
                if image == self.least[leaf] {
                    continue;
                }
                let precedes = match &mut stable_hashes {
                    None => image < self.least[leaf],
                    Some(stable_hashes) => {
                        stable_hashes.precedes(store, model, leaf, image, self.least[leaf])?
                    }
                };
                if precedes {
                    self.least[leaf] = image;
                    for rest in leaf + 1..self.leaves {
                        self.least[rest] =
                            self.image(store, (model, &mut *worker), element, rest, state)?;
                    }
                    which = narrow::index(element) + 1;
                }
                break;
            }
        }
        Ok(which)
    }

    /// Returns the size of a state's orbit; appends the elements that fix the state to `fixed`.
    pub fn orbit(
        &mut self,
        store: &Store,
        model: &dyn Model,
        worker: &mut dyn Worker,
        state: &[u32],
        mut fixed: Option<&mut Vec<u32>>,
    ) -> Result<u64, Halt> {
        let mut count = 1;
        for element in 0..self.symmetries.elements.len() {
            let mut same = true;
            for leaf in 0..self.leaves {
                if self.image(store, (model, &mut *worker), element, leaf, state)? != state[leaf] {
                    same = false;
                    break;
                }
            }
            if same {
                count += 1;
                if let Some(fixed) = &mut fixed {
                    fixed.push(narrow::index(element) + 1);
                }
            }
        }
        Ok(self.symmetries.order() as u64 / count)
    }
}

/// Sources of images of values: the model and a worker.
type ImageSource<'a> = (&'a dyn Model, &'a mut dyn Worker);

#[cfg(test)]
mod tests {
    use super::costs_too_much;

    #[test]
    fn what_symmetries_cost_is_weighed_against_the_orbits() {
        // Nineteen twentieths of the time are verification, and the orbits hardly exceed their
        // representatives.
        assert!(costs_too_much(1.0, 0.95, 1000, 1020));
        // The same with orbits of forty.
        assert!(!costs_too_much(1.0, 0.95, 1000, 40_000));
        // Half of the time is tolerable for the memory saved.
        assert!(!costs_too_much(1.0, 0.5, 1000, 1020));
        assert!(!costs_too_much(1.0, 1.0, 0, 0), "nothing has been expanded yet");
    }
}
