//! From a state's key to the keys of its successors, by lookups: one thread's caches over the
//! transition groups.
//!
//! In: a key of [`super::store`]. Out: `(label, group, key)` of every step, each label and target
//! once. For a state all leaf indices are unpacked; for each leaf index there is a row of bits that
//! says whose requirements hold on that leaf, and the conjunction of the rows is the set of enabled
//! groups, so disabled groups cost nothing. An enabled group's steps are looked up by the indices
//! of the leaves that it writes and by the values that it reads elsewhere. A cached step is a
//! number to add to the key.
//!
//! Caches are private to a thread: a hit is a hash of one word, a compare and a load, without
//! atomics. A miss asks [`super::group_cache`], which is shared. A group that seldom hits is then
//! evaluated without a cache. Memory is bounded: all tables are emptied when they reach the
//! limit. A change of the store's layout (`epoch`) invalidates everything.
//!
//! With confluent groups each target is replaced by its representative ([`super::confluent`]), and
//! with symmetries then by that of its orbit ([`super::symmetry`]).

mod answer;

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use super::Options;
use super::group_cache::Memo;
use super::incremental_key::Folder;
use super::intern::Rows;
use super::owner_hash::Told;
use super::pair_map::WordMap;
use super::search::StepTest;
use super::stable_hash::{Ranks, spread};
use super::store::{Overflow, Store};
use super::stubborn::Chooser;
use super::symmetry::{Orbits, Symmetries, Thrift};
use mu_base::Diagnostic;
use mu_base::ids::{LabelId, Maybe};
use mu_model::{Model, Steps, Worker};

/// A successor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Successor {
    /// Key of the target.
    pub key: u64,
    /// Label.
    pub label: LabelId,
    /// The group that made the step.
    pub group: u32,
}

/// Why an expansion ended early.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The store's layout must change first.
    Overflow,
    /// The model could not be evaluated.
    Error(Box<Diagnostic>),
}

impl From<Overflow> for Halt {
    fn from(_: Overflow) -> Self {
        Halt::Overflow
    }
}

impl From<Diagnostic> for Halt {
    fn from(error: Diagnostic) -> Self {
        Halt::Error(Box::new(error))
    }
}

#[derive(Clone, Copy)]
struct Step {
    /// Added to the key, for the leaves that are fields of their own.
    delta: u64,
    label: LabelId,
    /// Where in `changes` the other leaves' new indices are, if any changes.
    changes: Maybe,
}

/// Several steps of the arena begin with one that tells how many they are. That of none is at the
/// first place.
fn several(count: usize) -> Step {
    Step { delta: count as u64, label: LabelId::TAU, changes: Maybe::NONE }
}

/// Steps of the arena, in 4 bytes, an optional one too. Nearly always it is one step: then the
/// number of its place, which is not the first one. If some change the sum that [`super::owner_hash`]
/// speaks of, as many follow them whose delta is what each adds to it.
#[derive(Clone, Copy)]
struct Entry(NonZeroU32);

impl Entry {
    /// Marks the place where several steps begin.
    const SEVERAL: u32 = 1 << 31;
    /// Marks the place of steps that change the sum.
    const TELLS: u32 = 1 << 30;

    fn new(start: usize, len: usize, tells: bool) -> Self {
        let at = if len == 0 { 0 } else { u32::try_from(start).unwrap_or(u32::MAX) };
        assert!(at < Self::TELLS, "the arena is emptied in time");
        let word = NonZeroU32::new(
            at | if len == 1 { 0 } else { Self::SEVERAL } | if tells { Self::TELLS } else { 0 },
        );
        Entry(word.expect("the arena begins with what tells of no steps"))
    }
    #[inline]
    fn steps(self, arena: &[Step]) -> Range<usize> {
        let at = (self.0.get() & !(Self::SEVERAL | Self::TELLS)) as usize;
        if self.0.get() < Self::SEVERAL {
            return at..at + 1;
        }
        at + 1..at + 1 + arena[at].delta as usize
    }
    #[inline]
    fn tells(self) -> bool {
        self.0.get() & Self::TELLS != 0
    }
}

/// A leaf that a group writes: `(position, index in the group's writes)` of its slots.
type WritePlace = (u32, Vec<(u32, u32)>);

/// One leaf's share in a group's cache key.
struct Part {
    leaf: u32,
    /// If the group only reads the leaf, by leaf index the number of the tuple that it reads.
    by_index: Vec<Maybe>,
    /// And positions of what it reads, and the tuples seen.
    reads: Option<Box<(Vec<u32>, Rows)>>,
}

struct GroupCache {
    parts: Vec<Part>,
    /// No or one part: by its value.
    direct: Vec<Option<Entry>>,
    /// Two parts; the last two of more.
    map: WordMap<Entry>,
    /// More parts: folds the first ones to a number.
    chain: Vec<WordMap<NonZeroU32>>,
    lookups: u64,
    misses: u64,
    bypassed: bool,
    /// The group's slots, from the model: `(leaf, position)` of reads, and of writes by leaf.
    read_places: Vec<(u32, u32)>,
    write_places: Vec<WritePlace>,
}

/// Figures of one thread's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Group lookups (enabled groups met).
    pub lookups: u64,
    /// Lookups that a thread's own cache answered.
    pub hits: u64,
    /// Questions put to the model's workers.
    pub evaluations: u64,
    /// Groups that run without a cache by the end (per thread).
    pub bypassed: u64,
    /// Bytes of all caches.
    pub bytes: u64,
}

/// Steps that are compared in pairs; more are looked up by their hashes.
const FEW: usize = 24;

/// LeafLayout each label and target once, in the order of their first steps: the first that is
/// preferred, or else the first; with their sums, if there are any.
fn merge(steps: &mut Vec<Successor>, sums: &mut Vec<u64>, preferred: Option<StepTest<'_>>) {
    let summed = !sums.is_empty();
    let prefers = |s: &Successor| preferred.is_some_and(|test| test(s.group as usize, s.label));
    // By hash, the number of a step that is kept, from 1.
    let mut places = if steps.len() > FEW {
        vec![0u32; 2 * steps.len().next_power_of_two()]
    } else {
        Vec::new()
    };
    let mut kept = 0;
    for i in 0..steps.len() {
        let step = steps[i];
        let same = |o: &Successor| o.key == step.key && o.label == step.label;
        let known = if places.is_empty() {
            steps[..kept].iter().position(same)
        } else {
            let mut at =
                spread(step.key ^ u64::from(step.label.0) << 32) as usize & (places.len() - 1);
            loop {
                match (places[at] as usize).checked_sub(1) {
                    Some(other) if same(&steps[other]) => break Some(other),
                    Some(_) => at = (at + 1) & (places.len() - 1),
                    None => {
                        places[at] = kept as u32 + 1;
                        break None;
                    }
                }
            }
        };
        match known {
            None => {
                steps[kept] = step;
                if summed {
                    sums[kept] = sums[i];
                }
                kept += 1;
            }
            Some(at) if prefers(&step) && !prefers(&steps[at]) => steps[at] = step,
            Some(_) => {}
        }
    }
    sums.truncate(kept);
    steps.truncate(kept);
}

/// See the module's head. One for each thread.
pub(crate) struct Expander<'m> {
    pub(super) model: &'m dyn Model,
    memo: Arc<Memo>,
    worker: Box<dyn Worker + 'm>,
    confluent: Vec<bool>,
    pub(super) any_confluent: bool,
    /// The groups whose steps are taken before others; empty if there are none.
    first: Vec<bool>,
    enabled: bool,
    limit: u64,
    bytes: u64,
    epoch: u64,
    words: usize,
    /// By leaf: rows of `words` words by leaf index.
    masks: Vec<Vec<u64>>,
    /// Bits of the confluent groups.
    pub(super) confluent_mask: Vec<u64>,
    /// Bits of those that are taken before others.
    first_mask: Vec<u64>,
    /// By leaf: `(position in the leaf, value, group)` of the requirements.
    requirements: Vec<Vec<(u32, u32, u32)>>,
    groups: Vec<GroupCache>,
    arena: Vec<Step>,
    changes: Vec<u32>,
    /// An answer that is being translated.
    steps: Steps,
    leaves: Vec<u32>,
    folder: Folder,
    row: Vec<u32>,
    pub(super) raw: Vec<Successor>,
    statistics: CacheStatistics,
    pub(super) symmetries: Option<&'m Symmetries>,
    orbits: Option<Orbits<'m>>,
    /// What they cost, if the search may begin again without them.
    thrift: Option<Thrift>,
    /// Whether other processes search as well, with other numbers for the same values.
    pub(super) among_processes: bool,
    /// What all processes say of tuples, and of whose a state is.
    pub(super) ranks: Ranks,
    pub(super) told: Told,
    /// Which of the steps that have one label and target stays, if it makes a difference.
    preferred: Option<StepTest<'m>>,
    /// With symmetries: for each successor, the element that took it to the one that is kept (0:
    /// none).
    pub moved: Vec<u32>,
    /// With symmetries and other processes: for each successor, the leaves of the one that is
    /// kept.
    pub members: Vec<u32>,
    pub(super) chooser: Option<Chooser<'m>>,
    /// Labels of the steps that the last expansion left out.
    pub left_out: Vec<LabelId>,
}

impl<'m> Expander<'m> {
    /// Empty caches; `options` says which steps are to be taken at once, and how many bytes there
    /// may be.
    pub fn new(model: &'m dyn Model, memo: Arc<Memo>, options: &Options) -> Self {
        Self {
            model,
            memo,
            worker: model.worker(),
            any_confluent: options.confluent.iter().any(|&c| c),
            confluent: options.confluent.clone(),
            first: if options.first.contains(&true) { options.first.clone() } else { Vec::new() },
            enabled: options.cache,
            limit: options.cache_bytes,
            bytes: 0,
            epoch: 0,
            words: 0,
            masks: Vec::new(),
            confluent_mask: Vec::new(),
            first_mask: Vec::new(),
            requirements: Vec::new(),
            groups: Vec::new(),
            arena: vec![several(0)],
            changes: Vec::new(),
            steps: Steps::default(),
            leaves: Vec::new(),
            folder: Folder::default(),
            row: Vec::new(),
            raw: Vec::new(),
            statistics: CacheStatistics::default(),
            symmetries: None,
            orbits: None,
            thrift: None,
            among_processes: false,
            ranks: Ranks::default(),
            told: Told::default(),
            preferred: None,
            moved: Vec::new(),
            members: Vec::new(),
            chooser: None,
            left_out: Vec::new(),
        }
    }

    /// Of each orbit of states under these symmetries one is to stand for all.
    pub fn with_symmetries(mut self, symmetries: Option<&'m Symmetries>) -> Self {
        self.symmetries = symmetries;
        self
    }

    /// If symmetries cost much more than they save, the search is to end with an error and begin
    /// again without them.
    pub fn thrifty(mut self, thrifty: bool) -> Self {
        self.thrift = (thrifty && self.symmetries.is_some()).then(Thrift::new);
        self
    }

    /// Whether symmetries cost much more than they save, by what was seen so far, in a search that
    /// is to end if they do.
    pub fn suspects(&self) -> bool {
        self.thrift
            .as_ref()
            .zip(self.orbits.as_ref())
            .is_some_and(|(thrift, orbits)| thrift.suspects(orbits))
    }

    /// Other processes search as well: what depends on the numbers of values is refused.
    pub fn among_processes(mut self, told: Told) -> Self {
        self.among_processes = true;
        self.told = told;
        self
    }

    /// Of several groups' steps with one label and target one stays that passes this test, if there
    /// is one.
    pub fn preferring(mut self, test: Option<StepTest<'m>>) -> Self {
        self.preferred = test;
        self
    }

    /// Empties the caches and follows the store's layout. Call before each round.
    pub fn follow(&mut self, store: &Store) {
        if self.epoch == store.epoch {
            return;
        }
        self.collect_statistics();
        if self.orbits.is_none() {
            self.orbits = self.symmetries.map(|s| Orbits::new(s, store));
        }
        let groups = self.model.groups();
        self.epoch = store.epoch;
        self.words = groups.len().div_ceil(64);
        self.masks = vec![Vec::new(); store.leaves.len()];
        self.confluent_mask = vec![0; self.words];
        self.first_mask = vec![0; self.words];
        self.requirements = vec![Vec::new(); store.leaves.len()];
        self.leaves = vec![0; store.leaves.len()];
        self.folder.follow(store);
        self.ranks.follow(store);
        self.arena.truncate(1);
        self.changes.clear();
        self.bytes = 0;
        for (g, group) in groups.iter().enumerate() {
            if self.confluent.get(g).is_some_and(|&c| c) {
                self.confluent_mask[g / 64] |= 1 << (g % 64);
            }
            if self.first.get(g).is_some_and(|&f| f) {
                self.first_mask[g / 64] |= 1 << (g % 64);
            }
            for &(slot, value) in &group.requires {
                let (leaf, position) = store.homes[slot as usize];
                self.requirements[leaf as usize].push((position, value, g as u32));
            }
        }
        self.groups = groups
            .iter()
            .map(|group| {
                let place = |&s: &u32| store.homes[s as usize];
                let read_places: Vec<(u32, u32)> = group.reads.iter().map(place).collect();
                let mut write_places: Vec<WritePlace> = Vec::new();
                for (i, slot) in group.writes.iter().enumerate() {
                    let (leaf, position) = place(slot);
                    match write_places.iter_mut().find(|w| w.0 == leaf) {
                        Some(w) => w.1.push((position, i as u32)),
                        None => write_places.push((leaf, vec![(position, i as u32)])),
                    }
                }
                let mut touched: Vec<u32> = read_places
                    .iter()
                    .map(|p| p.0)
                    .chain(write_places.iter().map(|w| w.0))
                    .collect();
                touched.sort_unstable();
                touched.dedup();
                let parts: Vec<Part> = touched
                    .into_iter()
                    .map(|leaf| {
                        let written = write_places.iter().any(|w| w.0 == leaf);
                        let positions: Vec<u32> =
                            read_places.iter().filter(|p| p.0 == leaf).map(|p| p.1).collect();
                        let width = positions.len();
                        Part {
                            leaf,
                            by_index: Vec::new(),
                            reads: (!written).then(|| Box::new((positions, Rows::new(width)))),
                        }
                    })
                    .collect();
                GroupCache {
                    chain: (2..parts.len()).map(|_| WordMap::default()).collect(),
                    parts,
                    direct: Vec::new(),
                    map: WordMap::default(),
                    lookups: 0,
                    misses: 0,
                    bypassed: !self.enabled,
                    read_places,
                    write_places,
                }
            })
            .collect();
    }

    /// Empties the caches within an epoch, since they have reached their limit.
    fn clear(&mut self) {
        for group in &mut self.groups {
            group.direct = Vec::new();
            group.map = WordMap::default();
            group.chain.iter_mut().for_each(|c| *c = WordMap::default());
            for part in &mut group.parts {
                if let Some((positions, rows)) = part.reads.as_deref_mut() {
                    *rows = Rows::new(positions.len());
                    part.by_index = Vec::new();
                }
            }
        }
        self.arena = vec![several(0)];
        self.changes = Vec::new();
        self.bytes = 0;
    }

    fn collect_statistics(&mut self) {
        for group in &mut self.groups {
            self.statistics.lookups += group.lookups;
            self.statistics.hits += group.lookups - group.misses;
            (group.lookups, group.misses) = (0, 0);
        }
    }
    /// Figures since the last call (evaluations are counted by the memo).
    pub fn take_statistics(&mut self) -> CacheStatistics {
        self.collect_statistics();
        let bypassed = self.groups.iter().filter(|g| g.bypassed).count() as u64;
        CacheStatistics { bypassed, bytes: self.bytes, ..std::mem::take(&mut self.statistics) }
    }

    /// Steps of a state as they are, duplicates included.
    pub fn raw_successors(
        &mut self,
        store: &Store,
        key: u64,
        out: &mut Vec<Successor>,
    ) -> Result<(), Halt> {
        out.clear();
        self.steps(store, key, None, out)
    }

    /// Steps of a state before any is left out, not replaced by representatives. Steps that come
    /// first are alone.
    pub(super) fn all_steps(
        &mut self,
        store: &Store,
        key: u64,
        out: &mut Vec<Successor>,
    ) -> Result<(), Halt> {
        out.clear();
        self.told.sums.clear();
        if !self.first.is_empty() {
            let mask = std::mem::take(&mut self.first_mask);
            let result = self.steps(store, key, Some(&mask), out);
            self.first_mask = mask;
            result?;
        }
        if out.is_empty() {
            self.steps(store, key, None, out)?;
        }
        Ok(())
    }

    /// From targets to what stands for them.
    pub(super) fn finish(&mut self, store: &Store, out: &mut Vec<Successor>) -> Result<(), Halt> {
        if self.any_confluent {
            for step in out.iter_mut() {
                step.key = self.representative(store, step.key)?;
            }
            self.told.sums.clear();
        }
        merge(out, &mut self.told.sums, self.preferred);
        if self.orbits.is_some() {
            self.moved.clear();
            self.members.clear();
            for step in out.iter_mut() {
                let (key, element) = self.kept(store, step.key)?;
                step.key = key;
                self.moved.push(element);
                if self.among_processes {
                    let least = self
                        .orbits
                        .as_ref()
                        .filter(|_| element != 0)
                        .map_or(&self.leaves, |orbits| &orbits.least);
                    self.members.extend_from_slice(least);
                }
            }
        }
        Ok(())
    }

    /// The member of a state's orbit that is kept, and the element that leads there (0: none).
    pub fn kept(&mut self, store: &Store, key: u64) -> Result<(u64, u32), Halt> {
        let Some(orbits) = &mut self.orbits else { return Ok((key, 0)) };
        store.unpack(key, &mut self.leaves);
        let ranks = self.among_processes.then_some(&mut self.ranks);
        match orbits.reduce(store, (self.model, self.worker.as_mut()), &self.leaves, ranks)? {
            0 => Ok((key, 0)),
            element => Ok((store.pack(&orbits.least)?, element)),
        }
    }

    /// Appends the images of a leaf's tuple under all symmetries but the identity: leaves and
    /// numbers.
    pub fn images(
        &mut self,
        store: &Store,
        leaf: usize,
        number: u32,
        out: &mut Vec<(usize, u32)>,
    ) -> Result<(), Halt> {
        let Some(orbits) = &mut self.orbits else { return Ok(()) };
        orbits.images_of(store, (self.model, self.worker.as_mut()), leaf, number, out)
    }

    /// By leaf: a number of the leaves that symmetries map to one another.
    pub fn classes(&self, leaves: usize) -> Vec<usize> {
        self.orbits.as_ref().map_or_else(|| (0..leaves).collect(), Orbits::classes)
    }

    /// Size of a state's orbit; `fixed` gets the elements that leave the state as it is.
    pub fn orbit(
        &mut self,
        store: &Store,
        key: u64,
        fixed: Option<&mut Vec<u32>>,
    ) -> Result<u64, Halt> {
        let Some(orbits) = &mut self.orbits else { return Ok(1) };
        store.unpack(key, &mut self.leaves);
        let orbit = orbits.orbit(store, self.model, self.worker.as_mut(), &self.leaves, fixed)?;
        if let Some(thrift) = &mut self.thrift {
            thrift.expand(orbits, orbit)?;
        }
        Ok(orbit)
    }

    /// Steps of the groups in `only` (all if none), duplicates included.
    pub(super) fn steps(
        &mut self,
        store: &Store,
        key: u64,
        only: Option<&[u64]>,
        out: &mut Vec<Successor>,
    ) -> Result<(), Halt> {
        let mut leaves = std::mem::take(&mut self.leaves);
        store.unpack_all(key, &mut leaves, &mut self.folder.inner);
        let result = self.steps_of(store, key, &leaves, only, out);
        self.leaves = leaves;
        result
    }

    fn steps_of(
        &mut self,
        store: &Store,
        key: u64,
        leaves: &[u32],
        only: Option<&[u64]>,
        out: &mut Vec<Successor>,
    ) -> Result<(), Halt> {
        let words = self.words;
        let told = self.told.is_asked();
        let sum = if told { self.sum_of(store, leaves)? } else { 0 };
        for (l, &v) in leaves.iter().enumerate() {
            if (v as usize + 1) * words > self.masks[l].len() {
                self.extend_masks(store, l, v);
            }
        }
        for w in 0..words {
            // A model without slots has no masks: its groups are all there is.
            let here = self.groups.len() - w * 64;
            let all = if here >= 64 { u64::MAX } else { (1 << here) - 1 };
            let mut bits = only.map_or(all, |o| o[w]);
            if bits == 0 {
                continue;
            }
            for (mask, &v) in self.masks.iter().zip(leaves) {
                bits &= mask[v as usize * words + w];
            }
            while bits != 0 {
                let g = w * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let mark = (self.arena.len(), self.changes.len());
                let entry = match Self::lookup(&mut self.groups[g], leaves) {
                    Some(entry) => entry,
                    None => self.fill(store, g, leaves)?,
                };
                let steps = entry.steps(&self.arena);
                if entry.tells() {
                    let adds = &self.arena[steps.end..steps.end + steps.len()];
                    self.told.sums.extend(adds.iter().map(|step| sum.wrapping_add(step.delta)));
                } else if told {
                    self.told.sums.extend(std::iter::repeat_n(sum, steps.len()));
                }
                for i in steps {
                    let step = self.arena[i];
                    let mut target = key.wrapping_add(step.delta);
                    if let Some(changes) = step.changes.get() {
                        let (at, count) =
                            (changes as usize + 1, self.changes[changes as usize] as usize);
                        target = self.folder.patch(
                            store,
                            target,
                            leaves,
                            &self.changes[at..at + 2 * count],
                        )?;
                    }
                    out.push(Successor { key: target, label: step.label, group: g as u32 });
                }
                if self.groups[g].bypassed {
                    self.arena.truncate(mark.0);
                    self.changes.truncate(mark.1);
                }
            }
        }
        Ok(())
    }

    fn extend_masks(&mut self, store: &Store, leaf: usize, v: u32) {
        let words = self.words;
        let mut row = Vec::new();
        for index in self.masks[leaf].len() / words.max(1)..=v as usize {
            row.clear();
            store.leaves[leaf].table.read(index as u32, &mut row);
            let base = self.masks[leaf].len();
            self.masks[leaf].resize(base + words, u64::MAX);
            let mask = &mut self.masks[leaf][base..];
            if let (Some(last), used @ 1..) = (mask.last_mut(), self.groups.len() % 64) {
                *last = (1 << used) - 1;
            }
            for &(position, value, g) in &self.requirements[leaf] {
                if row[position as usize] != value {
                    mask[g as usize / 64] &= !(1 << (g % 64));
                }
            }
        }
    }

    #[inline]
    fn part(part: &Part, leaves: &[u32]) -> Option<u32> {
        let v = leaves[part.leaf as usize];
        match &part.reads {
            None => Some(v),
            Some(_) => part.by_index.get(v as usize)?.get(),
        }
    }

    #[inline]
    fn lookup(group: &mut GroupCache, leaves: &[u32]) -> Option<Entry> {
        group.lookups += 1;
        match group.parts.as_slice() {
            _ if group.bypassed => None,
            [] => group.direct.first().copied().flatten(),
            [a] => group.direct.get(Self::part(a, leaves)? as usize).copied().flatten(),
            [a, b] => group.map.get(Self::part(a, leaves)?, Self::part(b, leaves)?),
            [first, middle @ .., last] => {
                let mut acc = Self::part(first, leaves)?;
                for (part, map) in middle.iter().zip(&group.chain) {
                    acc = map.get(acc, Self::part(part, leaves)?)?.get();
                }
                group.map.get(acc, Self::part(last, leaves)?)
            }
        }
    }
}
