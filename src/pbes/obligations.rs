//! Sets of formula states, shared by all threads: hash-consed binary trees over the numbers of the
//! states.
//!
//! A set is one number; equal sets have equal numbers. A leaf holds the membership of 56
//! consecutive formula states in its bits; an inner node halves the range. The right half of a node
//! is never empty: a set has the same tree in each range that contains it, and the height depends
//! on its greatest member. Formula states are numbered in order of discovery. So those that one
//! event creates for many instances of a quantifier are neighbours, and sets that differ in a few
//! instances share nearly all of their nodes (cf. Okasaki, Gill: "Fast Mergeable Integer Maps",
//! 1998; Bryant, 1986, for sharing and caching).
//!
//! Cost: 12 to 16 bytes a node; an operation visits the nodes in which its operands differ, each
//! pair once while the cache holds it. Invariant: nodes are never changed or removed. There are at
//! most 2^28 of them; beyond that [`Sets::is_full`] is true and results are void.

use ahash::AHashSet;
use mu_base::ids::Maybe;
use mu_base::narrow;
use mu_explore::PairTable;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};

/// An interned set.
pub type Set = u32;

/// The empty set.
pub const EMPTY: Set = 0;
/// Formula states in a leaf.
pub const BLOCK: u32 = 56;

const ID_BITS: u32 = 28;
const ID_MASK: u64 = (1 << ID_BITS) - 1;
const MASK: u64 = (1 << BLOCK) - 1;

/// The table of nodes.
pub struct Sets {
    nodes: PairTable,
    full: AtomicBool,
}

impl Default for Sets {
    fn default() -> Self {
        let nodes = PairTable::new();
        // The leaf without members.
        nodes.intern(0);
        Self { nodes, full: AtomicBool::new(false) }
    }
}

impl Sets {
    /// True if there are too many nodes; later results are void.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }
    /// Bytes of the nodes.
    pub fn bytes(&self) -> u64 {
        self.nodes.bytes()
    }
    /// Returns the nodes in the order of their numbers.
    pub fn records(&self) -> Vec<u64> {
        (0..narrow::index(self.nodes.len())).map(|n| self.nodes.get(n)).collect()
    }
    /// Restores the numbers of nodes. Returns false if other nodes exist already, or if the records
    /// are not sets over `states` formula states.
    pub fn load(&self, records: &[u64], states: u32) -> bool {
        let sensible = |(n, record): (usize, u64)| match height(record) {
            0 => record != 0 || n == 0,
            h => {
                let (left, right) = halves(record);
                let of = |child: Set| {
                    records.get(child as usize).filter(|_| (child as usize) < n).map(|r| height(*r))
                };
                h < 32
                    && right != EMPTY
                    && of(left).is_some_and(|l| l < h)
                    && of(right).is_some_and(|r| r < h)
            }
        };
        records
            .iter()
            .enumerate()
            .all(|(n, r)| sensible((n, *r)) && self.nodes.intern(*r) as usize == n)
            && self.members_are_below(states)
    }
    /// True if each node, at every position in its parents, holds formula states below a number.
    fn members_are_below(&self, states: u32) -> bool {
        // The greatest member, relative to the base.
        let mut greatest = vec![0u64; self.nodes.len()];
        for n in 1..greatest.len() {
            let record = self.record(narrow::index(n));
            greatest[n] = match height(record) {
                0 => 63 - u64::from((record & MASK).leading_zeros()),
                h => (1u64 << (h - 1)) * u64::from(BLOCK) + greatest[halves(record).1 as usize],
            };
        }
        greatest.iter().all(|g| *g < u64::from(states.max(1)))
    }
    fn intern(&self, record: u64) -> Set {
        let id = self.nodes.intern(record);
        if u64::from(id) > ID_MASK {
            self.full.store(true, Ordering::Relaxed);
            return EMPTY;
        }
        id
    }
    pub(super) fn leaf(&self, mask: u64) -> Set {
        if mask == 0 { EMPTY } else { self.intern(mask) }
    }
    pub(super) fn node(&self, height: u32, left: Set, right: Set) -> Set {
        if right == EMPTY {
            left
        } else {
            self.intern(u64::from(height) << 56 | u64::from(left) << ID_BITS | u64::from(right))
        }
    }
    pub(super) fn record(&self, set: Set) -> u64 {
        self.nodes.get(set)
    }
    /// Returns the members, ascending.
    pub fn members(&self, set: Set) -> Vec<u32> {
        let mut out = Vec::new();
        let mut stack = vec![(set, 0u32)];
        while let Some((set, base)) = stack.pop() {
            let record = self.record(set);
            match height(record) {
                0 => each_bit(record, |bit| out.push(base * BLOCK + bit)),
                h => {
                    let (left, right) = halves(record);
                    stack.push((right, base + (1 << (h - 1))));
                    stack.push((left, base));
                }
            }
        }
        out
    }
    /// Returns the union of some sets, ascending. Visits shared parts once.
    pub fn union(&self, sets: impl IntoIterator<Item = Set>) -> Vec<u32> {
        let (mut out, mut seen) = (Vec::new(), AHashSet::new());
        let mut stack: Vec<(Set, u32)> = sets.into_iter().map(|set| (set, 0)).collect();
        while let Some((set, base)) = stack.pop() {
            if !seen.insert((set, base)) {
                continue;
            }
            let record = self.record(set);
            match height(record) {
                0 => each_bit(record, |bit| out.push(base * BLOCK + bit)),
                h => {
                    let (left, right) = halves(record);
                    stack.extend([(right, base + (1 << (h - 1))), (left, base)]);
                }
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }
    /// Returns the set of ascending members.
    pub fn from_members(&self, members: &[u32]) -> Set {
        let Some(last) = members.last() else { return EMPTY };
        let mut height = 0;
        while (last / BLOCK) >> height != 0 {
            height += 1;
        }
        self.build(members, height, 0)
    }
    fn build(&self, members: &[u32], height: u32, base: u32) -> Set {
        if members.is_empty() {
            return EMPTY;
        }
        if height == 0 {
            return self.leaf(members.iter().fold(0, |mask, m| mask | 1 << (m - base * BLOCK)));
        }
        let middle = base + (1 << (height - 1));
        let cut = members.partition_point(|m| *m < middle * BLOCK);
        let left = self.build(&members[..cut], height - 1, base);
        let right = self.build(&members[cut..], height - 1, middle);
        self.node(height, left, right)
    }
    /// Returns the number of members of a set; `sizes` caches the results for nodes.
    pub fn size(&self, set: Set, sizes: &mut Vec<u64>) -> u64 {
        if sizes.len() <= set as usize {
            sizes.resize(self.nodes.len().max(set as usize + 1), 0);
        }
        if set == EMPTY || sizes[set as usize] != 0 {
            return sizes[set as usize];
        }
        let record = self.record(set);
        let size = match height(record) {
            0 => u64::from((record & MASK).count_ones()),
            _ => {
                let (left, right) = halves(record);
                self.size(left, sizes) + self.size(right, sizes)
            }
        };
        sizes[set as usize] = size;
        size
    }
}

pub(super) fn height(record: u64) -> u32 {
    narrow::low(record >> 56)
}

pub(super) fn halves(record: u64) -> (Set, Set) {
    (((record >> ID_BITS) & ID_MASK) as Set, (record & ID_MASK) as Set)
}

pub(super) fn each_bit(record: u64, mut each: impl FnMut(u32)) {
    let mut mask = record & MASK;
    while mask != 0 {
        each(mask.trailing_zeros());
        mask &= mask - 1;
    }
}

/// A direct-mapped cache. It doubles while it misses often.
struct DirectMappedCache<V> {
    keys: Vec<Option<Key>>,
    values: Vec<V>,
    misses: usize,
}

/// A key. The first word is not zero, because the empty set is never looked up.
type Key = (NonZeroU64, u64);

fn key(first: u64, second: u64) -> Key {
    (NonZeroU64::new(first).expect("the empty set is never looked up"), second)
}

/// log2 of the minimum and maximum number of entries of a cache.
const CACHE_BITS: (u32, u32) = (10, 22);

impl<V: Copy + Default> DirectMappedCache<V> {
    fn new() -> Self {
        let n = 1 << CACHE_BITS.0;
        Self { keys: vec![None; n], values: vec![V::default(); n], misses: 0 }
    }
    fn at(&self, key: Key) -> usize {
        let h = (key.0.get() ^ key.1.rotate_left(32).wrapping_mul(0xD6E8_FEB8_6659_FD93))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((h ^ (h >> 29)) as usize >> 3) & (self.keys.len() - 1)
    }
    #[inline]
    fn get(&self, key: Key) -> Option<V> {
        let at = self.at(key);
        (self.keys[at] == Some(key)).then(|| self.values[at])
    }
    fn put(&mut self, key: Key, value: V) {
        self.misses += 1;
        if self.misses > self.keys.len() * 2 && self.keys.len() < 1 << CACHE_BITS.1 {
            let n = self.keys.len() * 4;
            let keys = std::mem::replace(&mut self.keys, vec![None; n]);
            let values = std::mem::replace(&mut self.values, vec![V::default(); n]);
            self.misses = 0;
            for (key, value) in keys.into_iter().zip(values) {
                if let Some(key) = key {
                    let at = self.at(key);
                    self.keys[at] = Some(key);
                    self.values[at] = value;
                }
            }
        }
        let at = self.at(key);
        self.keys[at] = Some(key);
        self.values[at] = value;
    }
}

/// Successors of one formula state along a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObligationAnswer {
    /// The state itself only.
    Same,
    /// These states.
    States(Set),
    /// Decided.
    Decided,
}

/// Source of successors of formula states, several per call.
pub trait SuccessorSource {
    /// Error of a query.
    type Error;
    /// Appends the answers for some formula states and one label, in their order.
    fn answers(
        &mut self,
        states: &[u32],
        label: u32,
        out: &mut Vec<ObligationAnswer>,
    ) -> Result<(), Self::Error>;
}

/// Source of images of formula states under a permutation, several per call.
pub trait Images {
    /// Error of a query.
    type Error;
    /// Returns the images of some formula states under one permutation, in their order.
    fn images(&mut self, states: &[u32], permutation: u32) -> Result<Vec<u32>, Self::Error>;
}

/// One thread's set operations, with caches.
pub struct Operations<'s> {
    sets: &'s Sets,
    joins: DirectMappedCache<(Set, Set)>,
    /// `None` where a member is decided.
    steps: DirectMappedCache<(Maybe, Set)>,
    whole: DirectMappedCache<Maybe>,
    images: DirectMappedCache<Set>,
}

impl<'s> Operations<'s> {
    /// Creates operations with empty caches.
    pub fn new(sets: &'s Sets) -> Self {
        Self {
            sets,
            joins: DirectMappedCache::new(),
            steps: DirectMappedCache::new(),
            whole: DirectMappedCache::new(),
            images: DirectMappedCache::new(),
        }
    }
    /// Returns the sets.
    pub fn sets(&self) -> &'s Sets {
        self.sets
    }
    /// Returns the union of both sets, and the members of `new` that are not in `old`.
    pub fn join(&mut self, old: Set, new: Set) -> (Set, Set) {
        if new == EMPTY || new == old {
            return (old, EMPTY);
        }
        if old == EMPTY {
            return (new, new);
        }
        let key = key(u64::from(old), u64::from(new));
        if let Some(known) = self.joins.get(key) {
            return known;
        }
        let (a, b) = (self.sets.record(old), self.sets.record(new));
        let h = height(a).max(height(b));
        let result = if h == 0 {
            (self.sets.leaf((a | b) & MASK), self.sets.leaf(b & !a & MASK))
        } else {
            let part = |set: Set, record: u64| {
                if height(record) < h { (set, EMPTY) } else { halves(record) }
            };
            let ((al, ar), (bl, br)) = (part(old, a), part(new, b));
            let left = self.join(al, bl);
            let right = self.join(ar, br);
            (self.sets.node(h, left.0, right.0), self.sets.node(h, left.1, right.1))
        };
        self.joins.put(key, result);
        result
    }
    /// Returns the successors of a set along a label; `None` if a member is decided.
    pub fn step<S: SuccessorSource>(
        &mut self,
        set: Set,
        label: u32,
        by: &mut S,
    ) -> Result<Option<Set>, S::Error> {
        if set == EMPTY {
            return Ok(Some(EMPTY));
        }
        let key = key(u64::from(set), u64::from(label));
        if let Some(known) = self.whole.get(key) {
            return Ok(known.get());
        }
        let result = self.part(set, 0, label, by)?.map(|(kept, moved)| self.join(kept, moved).0);
        self.whole.put(key, result.into());
        Ok(result)
    }
    /// Returns the image of a set.
    pub fn image<I: Images>(
        &mut self,
        set: Set,
        permutation: u32,
        by: &mut I,
    ) -> Result<Set, I::Error> {
        self.image_part(set, 0, permutation, by)
    }
    fn image_part<I: Images>(
        &mut self,
        set: Set,
        base: u32,
        permutation: u32,
        by: &mut I,
    ) -> Result<Set, I::Error> {
        if set == EMPTY {
            return Ok(EMPTY);
        }
        let key = key(u64::from(set) << 32 | u64::from(permutation), u64::from(base));
        if let Some(image) = self.images.get(key) {
            return Ok(image);
        }
        let record = self.sets.record(set);
        let image = match height(record) {
            0 => {
                let mut states = Vec::with_capacity(BLOCK as usize);
                each_bit(record, |bit| states.push(base * BLOCK + bit));
                let mut members = by.images(&states, permutation)?;
                members.sort_unstable();
                self.sets.from_members(&members)
            }
            h => {
                let (left, right) = halves(record);
                let left = self.image_part(left, base, permutation, by)?;
                let right = self.image_part(right, base + (1 << (h - 1)), permutation, by)?;
                self.join(left, right).0
            }
        };
        self.images.put(key, image);
        Ok(image)
    }
    /// Splits the successors of a subtree: members that stay as they are, relative to its base, and
    /// the successors of the others.
    fn part<S: SuccessorSource>(
        &mut self,
        set: Set,
        base: u32,
        label: u32,
        by: &mut S,
    ) -> Result<Option<(Set, Set)>, S::Error> {
        if set == EMPTY {
            return Ok(Some((EMPTY, EMPTY)));
        }
        let key = key(u64::from(set) << 32 | u64::from(label), u64::from(base));
        if let Some((kept, moved)) = self.steps.get(key) {
            return Ok(kept.get().map(|kept| (kept, moved)));
        }
        let record = self.sets.record(set);
        let result = match height(record) {
            0 => {
                let mut states = Vec::with_capacity(BLOCK as usize);
                each_bit(record, |bit| states.push(base * BLOCK + bit));
                let mut answers = Vec::with_capacity(states.len());
                by.answers(&states, label, &mut answers)?;
                let (mut kept, mut moved, mut decided) = (0u64, EMPTY, false);
                for (state, answer) in states.iter().zip(answers) {
                    match answer {
                        ObligationAnswer::Same => kept |= 1 << (state - base * BLOCK),
                        ObligationAnswer::States(set) => moved = self.join(moved, set).0,
                        ObligationAnswer::Decided => decided = true,
                    }
                }
                (!decided).then(|| (self.sets.leaf(kept), moved))
            }
            h => {
                let (left, right) = halves(record);
                let left = self.part(left, base, label, by)?;
                let right = self.part(right, base + (1 << (h - 1)), label, by)?;
                match (left, right) {
                    (Some(l), Some(r)) => {
                        Some((self.sets.node(h, l.0, r.0), self.join(l.1, r.1).0))
                    }
                    _ => None,
                }
            }
        };
        self.steps.put(
            key,
            result.map_or((Maybe::NONE, EMPTY), |(kept, moved)| (Maybe::some(kept), moved)),
        );
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;
    use std::collections::BTreeSet;

    struct Table {
        seed: u64,
    }

    impl Table {
        /// Answers a formula state and a label: 0 stays, 1 moves to up to three states, 2 decides
        /// (rarely).
        fn answer(&self, state: u32, label: u32, rare: usize) -> Option<Vec<u32>> {
            let mut random = Random::new(self.seed ^ u64::from(state) << 20 ^ u64::from(label));
            match random.below(100) {
                n if n < 60 => Some(vec![state]),
                n if n < 100 - rare => {
                    Some((0..random.below(4)).map(|_| random.below(9_000) as u32).collect())
                }
                _ => None,
            }
        }
    }

    struct By<'s>(&'s Sets, Table, usize);

    impl SuccessorSource for By<'_> {
        type Error = ();
        fn answers(
            &mut self,
            states: &[u32],
            label: u32,
            out: &mut Vec<ObligationAnswer>,
        ) -> Result<(), ()> {
            for &q in states {
                out.push(match self.1.answer(q, label, self.2) {
                    None => ObligationAnswer::Decided,
                    Some(list) if list == [q] => ObligationAnswer::Same,
                    Some(mut list) => {
                        list.sort_unstable();
                        list.dedup();
                        ObligationAnswer::States(self.0.from_members(&list))
                    }
                });
            }
            Ok(())
        }
    }

    /// Reverses the number within 10,000.
    impl Images for By<'_> {
        type Error = ();
        fn images(&mut self, states: &[u32], permutation: u32) -> Result<Vec<u32>, ()> {
            Ok(states.iter().map(|q| (q + 7 * permutation) % 10_000).collect())
        }
    }

    #[test]
    fn equals_sets_of_the_library() {
        for seed in 0..40u64 {
            let sets = Sets::default();
            let mut operations = Operations::new(&sets);
            let mut random = Random::new(seed);
            let rare = seed as usize % 2;
            let mut by = By(&sets, Table { seed }, rare);
            let mut twins: Vec<(Set, BTreeSet<u32>)> = vec![(EMPTY, BTreeSet::new())];
            for _ in 0..200 {
                let range = [1, 56, 57, 112, 1000, 10_000][random.below(6)];
                let members: BTreeSet<u32> =
                    (0..random.below(40)).map(|_| random.below(range) as u32).collect();
                let list: Vec<u32> = members.iter().copied().collect();
                let set = sets.from_members(&list);
                assert_eq!(sets.members(set), list, "seed {seed}");
                let (other, twin) = twins[random.below(twins.len())].clone();
                let (both, fresh) = operations.join(other, set);
                let union: Vec<u32> = twin.union(&members).copied().collect();
                assert_eq!(sets.members(both), union, "seed {seed}");
                assert_eq!(
                    both,
                    sets.from_members(&union),
                    "equal sets, equal numbers; seed {seed}"
                );
                assert_eq!(
                    sets.members(fresh),
                    members.difference(&twin).copied().collect::<Vec<_>>(),
                    "seed {seed}"
                );
                assert_eq!(sets.size(both, &mut Vec::new()), union.len() as u64);
                let label = random.below(3) as u32;
                let expected: Option<BTreeSet<u32>> = union
                    .iter()
                    .map(|q| by.1.answer(*q, label, rare))
                    .collect::<Option<Vec<_>>>()
                    .map(|l| l.into_iter().flatten().collect());
                let found = operations.step(both, label, &mut by).unwrap();
                assert_eq!(
                    found.map(|s| sets.members(s)),
                    expected.map(|s| s.into_iter().collect()),
                    "seed {seed}"
                );
                let turn = random.below(4) as u32;
                let turned: BTreeSet<u32> = union.iter().map(|q| (q + 7 * turn) % 10_000).collect();
                let image = operations.image(both, turn, &mut by).unwrap();
                assert_eq!(
                    sets.members(image),
                    turned.into_iter().collect::<Vec<_>>(),
                    "seed {seed}"
                );
                twins.push((both, union.into_iter().collect()));
            }
        }
    }
}
