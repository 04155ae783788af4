//! Expander: computes the keys of a state's successors by lookups in one thread's caches over the
//! transition groups.
//!
//! In: a key of [`super::store`]. Out: `(label, group, key)` of every step, each label and target
//! once. All leaf indices of the state are unpacked. Each leaf index has a row of bits, one for
//! each group with requirements that hold on that leaf. The conjunction of the rows is the set of
//! enabled groups, so disabled groups cost nothing. The steps of an enabled group are looked up by
//! the indices of the leaves that it writes and by the values that it reads elsewhere. A cached
//! step is a number to add to the key.
//!
//! Caches are private to a thread: a hit is a hash of one word, a compare and a load, without
//! atomics. A miss goes to [`super::group_cache`], which is shared. A group with few hits is then
//! evaluated without a cache. Memory is bounded: all tables are cleared when they reach the limit.
//! A change of the store's layout (`epoch`) invalidates everything.
//!
//! With confluent groups each target is replaced by its representative ([`super::confluent`]), and
//! with symmetries then by that of its orbit ([`super::symmetry`]).

mod answer;

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use super::Options;
use super::distributed::owner_hash::OwnerHash;
use super::distributed::stable_hash::StableHashes;
use super::group_cache::SharedGroupCache;
use super::incremental_key::KeyPatcher;
use super::intern::TupleTable;
use super::pair_map::PairMap;
use super::search::StepTest;
use super::store::{Overflow, Store};
use super::stubborn::Chooser;
use super::symmetry::{Orbits, Symmetries, SymmetryCostMonitor};
use mu_base::Diagnostic;
use mu_base::ids::{LabelId, Maybe};
use mu_base::mixing::spread;
use mu_base::narrow;
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

/// Reason for the early end of an expansion.
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
struct CachedStep {
    /// Added to the key, for the leaves that are fields of their own.
    delta: u64,
    label: LabelId,
    /// Index in `changes` of the other leaves' new indices, if any changes.
    changes: Maybe,
}

/// Creates the header entry that stores the number of following steps. The header of zero steps is
/// at index 0.
fn multi_step_header(count: usize) -> CachedStep {
    CachedStep { delta: count as u64, label: LabelId::TAU, changes: Maybe::NONE }
}

/// Steps of the arena, as an optional word of 4 bytes. A single step, the usual case, is its index,
/// which is not 0. If steps change the owner hash ([`super::owner_hash`]), as many entries follow
/// with the changes as `delta`.
#[derive(Clone, Copy)]
struct PackedSteps(NonZeroU32);

impl PackedSteps {
    /// Marks the index of a header of several steps.
    const SEVERAL: u32 = 1 << 31;
    /// Marks steps that change the owner hash.
    const CHANGES_HASH: u32 = 1 << 30;

    fn new(start: usize, len: usize, changes_hash: bool) -> Self {
        let at = if len == 0 { 0 } else { u32::try_from(start).unwrap_or(u32::MAX) };
        assert!(at < Self::CHANGES_HASH, "the arena is emptied in time");
        let word = NonZeroU32::new(
            at | if len == 1 { 0 } else { Self::SEVERAL }
                | if changes_hash { Self::CHANGES_HASH } else { 0 },
        );
        PackedSteps(word.expect("the arena begins with the header of zero steps"))
    }
    #[inline]
    fn steps(self, arena: &[CachedStep]) -> Range<usize> {
        let at = (self.0.get() & !(Self::SEVERAL | Self::CHANGES_HASH)) as usize;
        if self.0.get() < Self::SEVERAL {
            return at..at + 1;
        }
        at + 1..at + 1 + arena[at].delta as usize
    }
    #[inline]
    fn changes_hash(self) -> bool {
        self.0.get() & Self::CHANGES_HASH != 0
    }
}

/// A leaf that a group writes: `(position, index in the group's writes)` of its slots.
type WritePlace = (u32, Vec<(u32, u32)>);

/// A leaf in a group's cache key.
struct KeyLeaf {
    leaf: u32,
    /// If the group only reads the leaf: by leaf index, the number of the tuple that it reads.
    by_index: Vec<Maybe>,
    /// The positions that it reads, and the tuples found so far.
    reads: Option<Box<(Vec<u32>, TupleTable)>>,
}

struct LocalGroupCache {
    parts: Vec<KeyLeaf>,
    /// At most one part: entries by its value.
    direct: Vec<Option<PackedSteps>>,
    /// Two parts, or the last two of more.
    map: PairMap<PackedSteps>,
    /// More than two parts: folds the first ones to a number.
    chain: Vec<PairMap<NonZeroU32>>,
    lookups: u64,
    misses: u64,
    bypassed: bool,
    /// The group's slots, from the model: `(leaf, position)` of reads, and of writes by leaf.
    read_places: Vec<(u32, u32)>,
    write_places: Vec<WritePlace>,
}

/// Statistics of one thread's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Lookups of enabled groups.
    pub lookups: u64,
    /// Lookups answered by a thread's own cache.
    pub hits: u64,
    /// Evaluations by the model's workers.
    pub evaluations: u64,
    /// Groups without a cache at the end (per thread).
    pub bypassed: u64,
    /// Bytes of all caches.
    pub bytes: u64,
}

/// Up to this number steps are compared in pairs; more are looked up by their hashes.
const FEW: usize = 24;

/// Removes duplicate (label, target) pairs, keeping the first, or the first preferred one. With
/// `by_group`, steps of different groups are no duplicates. Updates the owner hashes, if there are
/// any.
fn merge(
    steps: &mut Vec<Successor>,
    sums: &mut Vec<u64>,
    preferred: Option<StepTest<'_>>,
    by_group: bool,
) {
    let summed = !sums.is_empty();
    let prefers = |s: &Successor| preferred.is_some_and(|test| test(s.group as usize, s.label));
    // By hash: one more than the index of the retained step.
    let mut places = if steps.len() > FEW {
        vec![0u32; 2 * steps.len().next_power_of_two()]
    } else {
        Vec::new()
    };
    let mut kept = 0;
    for i in 0..steps.len() {
        let step = steps[i];
        let same = |o: &Successor| {
            o.key == step.key && o.label == step.label && (!by_group || o.group == step.group)
        };
        let known = if places.is_empty() {
            steps[..kept].iter().position(same)
        } else {
            let mut at = spread(step.key ^ u64::from(step.label.number()) << 32) as usize
                & (places.len() - 1);
            loop {
                match (places[at] as usize).checked_sub(1) {
                    Some(other) if same(&steps[other]) => break Some(other),
                    Some(_) => at = (at + 1) & (places.len() - 1),
                    None => {
                        places[at] = narrow::index(kept) + 1;
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

/// Caches of one thread; see the module header.
pub(crate) struct Expander<'m> {
    pub(super) model: &'m dyn Model,
    shared_cache: Arc<SharedGroupCache>,
    worker: Box<dyn Worker + 'm>,
    confluent: Vec<bool>,
    pub(super) any_confluent: bool,
    /// Groups with priority: their steps are taken before others; empty: none.
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
    /// Bits of the groups with priority.
    first_mask: Vec<u64>,
    /// By leaf: `(position in the leaf, value, group)` of the requirements.
    requirements: Vec<Vec<(u32, u32, u32)>>,
    groups: Vec<LocalGroupCache>,
    arena: Vec<CachedStep>,
    changes: Vec<u32>,
    /// Buffer for an answer.
    steps: Steps,
    leaves: Vec<u32>,
    folder: KeyPatcher,
    row: Vec<u32>,
    pub(super) raw: Vec<Successor>,
    statistics: CacheStatistics,
    pub(super) symmetries: Option<&'m Symmetries>,
    orbits: Option<Orbits<'m>>,
    /// Measures the cost of symmetries, if the search may restart without them.
    cost_monitor: Option<SymmetryCostMonitor>,
    /// True in a distributed search, where other processes number values differently.
    pub(super) distributed: bool,
    /// Hashes of tuples that are equal in all processes, and owner hashes.
    pub(super) stable_hashes: StableHashes,
    pub(super) owner_hash: OwnerHash,
    /// Selects which of several steps with one label and target is retained.
    preferred: Option<StepTest<'m>>,
    /// True if steps of different groups with one label and target are all retained.
    by_group: bool,
    /// With symmetries: for each successor, the element that took it to its representative (0:
    /// none).
    pub moved: Vec<u32>,
    /// With symmetries in a distributed search: for each successor, the leaves of its
    /// representative.
    pub members: Vec<u32>,
    pub(super) chooser: Option<Chooser<'m>>,
    /// Labels of the steps that the last expansion left out.
    pub left_out: Vec<LabelId>,
}

impl<'m> Expander<'m> {
    /// Creates empty caches. `options` selects the confluent groups and the cache size.
    pub fn new(
        model: &'m dyn Model,
        shared_cache: Arc<SharedGroupCache>,
        options: &Options,
    ) -> Self {
        Self {
            model,
            shared_cache,
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
            arena: vec![multi_step_header(0)],
            changes: Vec::new(),
            steps: Steps::default(),
            leaves: Vec::new(),
            folder: KeyPatcher::default(),
            row: Vec::new(),
            raw: Vec::new(),
            statistics: CacheStatistics::default(),
            symmetries: None,
            orbits: None,
            cost_monitor: None,
            distributed: false,
            stable_hashes: StableHashes::default(),
            owner_hash: OwnerHash::default(),
            preferred: None,
            by_group: false,
            moved: Vec::new(),
            members: Vec::new(),
            chooser: None,
            left_out: Vec::new(),
        }
    }

    /// Replaces states by the representatives of their orbits.
    pub fn with_symmetries(mut self, symmetries: Option<&'m Symmetries>) -> Self {
        self.symmetries = symmetries;
        self
    }

    /// Ends the search with an error if symmetries cost much more than they save, so that it
    /// restarts without them.
    pub fn with_cost_monitor(mut self, enabled: bool) -> Self {
        self.cost_monitor = (enabled && self.symmetries.is_some()).then(SymmetryCostMonitor::new);
        self
    }

    /// True if symmetries seem to cost much more than they save, in a search that ends in this
    /// case.
    pub fn seems_costly(&self) -> bool {
        self.cost_monitor
            .as_ref()
            .zip(self.orbits.as_ref())
            .is_some_and(|(cost_monitor, orbits)| cost_monitor.seems_costly(orbits))
    }

    /// Prepares for a distributed search: rejects what depends on local numbers of values.
    pub fn with_owner_hash(mut self, owner_hash: OwnerHash) -> Self {
        self.distributed = true;
        self.owner_hash = owner_hash;
        self
    }

    /// Prefers steps that satisfy `test` among those with one label and target.
    pub fn with_preferred_steps(mut self, test: Option<StepTest<'m>>) -> Self {
        self.preferred = test;
        self
    }

    /// Retains all groups with steps of one label and target, for tests of groups.
    pub fn by_group(mut self) -> Self {
        self.by_group = true;
        self
    }

    /// Follows the store's layout; clears the caches if it changed. Call before each round.
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
        self.stable_hashes.follow(store);
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
                let (leaf, position) = store.leaf_of_slot[slot as usize];
                self.requirements[leaf as usize].push((position, value, narrow::index(g)));
            }
        }
        self.groups = groups
            .iter()
            .map(|group| {
                let place = |&s: &u32| store.leaf_of_slot[s as usize];
                let read_places: Vec<(u32, u32)> = group.reads.iter().map(place).collect();
                let mut write_places: Vec<WritePlace> = Vec::new();
                for (i, slot) in group.writes.iter().enumerate() {
                    let (leaf, position) = place(slot);
                    match write_places.iter_mut().find(|w| w.0 == leaf) {
                        Some(w) => w.1.push((position, narrow::index(i))),
                        None => write_places.push((leaf, vec![(position, narrow::index(i))])),
                    }
                }
                let mut touched: Vec<u32> = read_places
                    .iter()
                    .map(|p| p.0)
                    .chain(write_places.iter().map(|w| w.0))
                    .collect();
                touched.sort_unstable();
                touched.dedup();
                let parts: Vec<KeyLeaf> = touched
                    .into_iter()
                    .map(|leaf| {
                        let written = write_places.iter().any(|w| w.0 == leaf);
                        let positions: Vec<u32> =
                            read_places.iter().filter(|p| p.0 == leaf).map(|p| p.1).collect();
                        let width = positions.len();
                        KeyLeaf {
                            leaf,
                            by_index: Vec::new(),
                            reads: (!written)
                                .then(|| Box::new((positions, TupleTable::new(width)))),
                        }
                    })
                    .collect();
                LocalGroupCache {
                    chain: (2..parts.len()).map(|_| PairMap::default()).collect(),
                    parts,
                    direct: Vec::new(),
                    map: PairMap::default(),
                    lookups: 0,
                    misses: 0,
                    bypassed: !self.enabled,
                    read_places,
                    write_places,
                }
            })
            .collect();
    }

    /// Clears the caches within an epoch when they reach their limit.
    fn clear(&mut self) {
        for group in &mut self.groups {
            group.direct = Vec::new();
            group.map = PairMap::default();
            group.chain.iter_mut().for_each(|c| *c = PairMap::default());
            for part in &mut group.parts {
                if let Some((positions, rows)) = part.reads.as_deref_mut() {
                    *rows = TupleTable::new(positions.len());
                    part.by_index = Vec::new();
                }
            }
        }
        self.arena = vec![multi_step_header(0)];
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
    /// Returns the statistics since the last call (the shared cache counts evaluations).
    pub fn take_statistics(&mut self) -> CacheStatistics {
        self.collect_statistics();
        let bypassed = self.groups.iter().filter(|g| g.bypassed).count() as u64;
        CacheStatistics { bypassed, bytes: self.bytes, ..std::mem::take(&mut self.statistics) }
    }

    /// Computes the steps of a state without replacing targets, duplicates included.
    pub fn raw_successors(
        &mut self,
        store: &Store,
        key: u64,
        out: &mut Vec<Successor>,
    ) -> Result<(), Halt> {
        out.clear();
        self.steps(store, key, None, out)
    }

    /// Computes all steps of a state, without reduction and without representatives. Steps with
    /// priority exclude others.
    pub(super) fn all_steps(
        &mut self,
        store: &Store,
        key: u64,
        out: &mut Vec<Successor>,
    ) -> Result<(), Halt> {
        out.clear();
        self.owner_hash.successor_hashes.clear();
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

    /// Replaces targets by representatives.
    pub(super) fn finish(&mut self, store: &Store, out: &mut Vec<Successor>) -> Result<(), Halt> {
        if self.any_confluent {
            for step in out.iter_mut() {
                step.key = self.representative(store, step.key)?;
            }
            self.owner_hash.successor_hashes.clear();
        }
        merge(out, &mut self.owner_hash.successor_hashes, self.preferred, self.by_group);
        if self.orbits.is_some() {
            self.moved.clear();
            self.members.clear();
            for step in out.iter_mut() {
                let (key, element) = self.representative_of_orbit(store, step.key)?;
                step.key = key;
                self.moved.push(element);
                if self.distributed {
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

    /// Returns the representative of a state's orbit, and the element that leads to it (0: none).
    pub fn representative_of_orbit(&mut self, store: &Store, key: u64) -> Result<(u64, u32), Halt> {
        let Some(orbits) = &mut self.orbits else { return Ok((key, 0)) };
        store.unpack(key, &mut self.leaves);
        let stable_hashes = self.distributed.then_some(&mut self.stable_hashes);
        match orbits.reduce(
            store,
            (self.model, self.worker.as_mut()),
            &self.leaves,
            stable_hashes,
        )? {
            0 => Ok((key, 0)),
            element => Ok((store.pack(&orbits.least)?, element)),
        }
    }

    /// Appends the images of a leaf's tuple under all symmetries but the identity, as leaves and
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

    /// Returns by leaf the number of its class; symmetries map leaves of one class to each other.
    pub fn classes(&self, leaves: usize) -> Vec<usize> {
        self.orbits.as_ref().map_or_else(|| (0..leaves).collect(), Orbits::classes)
    }

    /// Returns the size of a state's orbit; appends the elements that fix the state to `fixed`.
    pub fn orbit(
        &mut self,
        store: &Store,
        key: u64,
        fixed: Option<&mut Vec<u32>>,
    ) -> Result<u64, Halt> {
        let Some(orbits) = &mut self.orbits else { return Ok(1) };
        store.unpack(key, &mut self.leaves);
        let orbit = orbits.orbit(store, self.model, self.worker.as_mut(), &self.leaves, fixed)?;
        if let Some(cost_monitor) = &mut self.cost_monitor {
            cost_monitor.expand(orbits, orbit)?;
        }
        Ok(orbit)
    }

    /// Computes the steps of the groups in `only` (all if `None`), duplicates included.
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
        let hashed = self.owner_hash.is_enabled();
        let sum = if hashed { self.owner_hash_of(store, leaves)? } else { 0 };
        for (l, &v) in leaves.iter().enumerate() {
            if (v as usize + 1) * words > self.masks[l].len() {
                self.extend_masks(store, l, v);
            }
        }
        for w in 0..words {
            // A model without slots has no masks: all groups are enabled.
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
                if entry.changes_hash() {
                    let adds = &self.arena[steps.end..steps.end + steps.len()];
                    self.owner_hash
                        .successor_hashes
                        .extend(adds.iter().map(|step| sum.wrapping_add(step.delta)));
                } else if hashed {
                    self.owner_hash.successor_hashes.extend(std::iter::repeat_n(sum, steps.len()));
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
                    out.push(Successor { key: target, label: step.label, group: narrow::index(g) });
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
            store.leaves[leaf].table.read(narrow::index(index), &mut row);
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
    fn part(part: &KeyLeaf, leaves: &[u32]) -> Option<u32> {
        let v = leaves[part.leaf as usize];
        match &part.reads {
            None => Some(v),
            Some(_) => part.by_index.get(v as usize)?.get(),
        }
    }

    #[inline]
    fn lookup(group: &mut LocalGroupCache, leaves: &[u32]) -> Option<PackedSteps> {
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
