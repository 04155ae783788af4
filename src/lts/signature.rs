//! Signatures of states: sorted sets of entries in terms of the current blocks, and an interning
//! table for such sets.
//!
//! An entry is one word, because refinement sorts, compares and stores mostly entries: the label in
//! the upper half, the block in the lower one. The two highest numbers are the other kinds of
//! entry; no label has them, since a table of labels has fewer than 2^32 - 1.
//!
//! Cost: a word per entry; a set is found by one hash of its words and compared as a whole, never
//! by hash alone.

use mu_base::ids::{LabelId, Maybe};
use mu_base::narrow;

/// Entry of a signature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SignatureEntry(u64);

/// Content of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    /// A step with a label into a block.
    Step(LabelId, u32),
    /// A hidden step inside the block, to a state of this group of the same round.
    Inert(u32),
    /// An infinite path of hidden steps inside this block. Branching bisimulation needs no block,
    /// since it is the own one: the number is 0.
    Divergence(u32),
}

impl SignatureEntry {
    const INERT: u32 = u32::MAX - 1;
    const DIVERGENCE: u32 = u32::MAX;

    #[inline]
    fn of(upper: u32, lower: u32) -> Self {
        Self(u64::from(upper) << 32 | u64::from(lower))
    }
    /// Creates the entry of a step with a label into a block.
    #[inline]
    pub fn step(label: LabelId, block: u32) -> Self {
        debug_assert!(label.number() < Self::INERT);
        Self::of(label.number(), block)
    }
    /// Creates the entry of a hidden step inside the block, to a state of this group of the same
    /// round.
    #[inline]
    pub fn inert(group: u32) -> Self {
        Self::of(Self::INERT, group)
    }
    /// Creates the entry of an infinite path of hidden steps inside a block.
    pub fn divergence(block: u32) -> Self {
        Self::of(Self::DIVERGENCE, block)
    }
    /// Returns the content.
    pub fn kind(self) -> EntryKind {
        let lower = narrow::low(self.0);
        match narrow::high(self.0) {
            Self::DIVERGENCE => EntryKind::Divergence(lower),
            Self::INERT => EntryKind::Inert(lower),
            label => EntryKind::Step(LabelId::of(label), lower),
        }
    }
    /// Returns the block, if the entry is a divergence.
    pub fn divergence_block(self) -> Option<u32> {
        match self.kind() {
            EntryKind::Divergence(block) => Some(block),
            _ => None,
        }
    }
    /// Returns the target block, if the entry is a step with this label.
    pub fn step_by(self, label: LabelId) -> Option<u32> {
        match self.kind() {
            EntryKind::Step(l, block) if l == label => Some(block),
            _ => None,
        }
    }
}

impl From<SignatureEntry> for u64 {
    #[inline]
    fn from(entry: SignatureEntry) -> u64 {
        entry.0
    }
}

/// Table that numbers distinct sets (sorted words) in order of appearance.
pub struct Interner<T> {
    arena: Vec<T>,
    ends: Vec<usize>,
    hashes: Vec<u64>,
    table: Vec<Maybe>,
    /// Slots of the table in use; 0 if there are few signatures and no table.
    size: usize,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { arena: Vec::new(), ends: Vec::new(), hashes: Vec::new(), table: Vec::new(), size: 0 }
    }
}

impl<T: Copy + Eq + Into<u64>> Interner<T> {
    /// Clears the table.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.ends.clear();
        self.hashes.clear();
        self.size = 0;
    }
    /// Returns the number of sets.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Returns the total size of the sets.
    pub fn words(&self) -> usize {
        self.arena.len()
    }
    /// Returns the set with a number.
    pub fn get(&self, i: u32) -> &[T] {
        let i = i as usize;
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.arena[start..self.ends[i]]
    }
    /// Returns the number of a set.
    pub fn intern(&mut self, set: &[T]) -> u32 {
        let hash = hash(set);
        if self.size == 0 {
            for (i, &h) in self.hashes.iter().enumerate() {
                if h == hash && self.get(narrow::index(i)) == set {
                    return narrow::index(i);
                }
            }
            let id = self.push(set, hash);
            if self.len() > 8 {
                self.rebuild(64);
            }
            return id;
        }
        let mask = self.size - 1;
        let mut slot = hash as usize & mask;
        while let Some(i) = self.table[slot].get() {
            if self.hashes[i as usize] == hash && self.get(i) == set {
                return i;
            }
            slot = (slot + 1) & mask;
        }
        let id = self.push(set, hash);
        self.table[slot] = Maybe::some(id);
        if self.len() * 2 > self.size {
            self.rebuild(self.size * 4);
        }
        id
    }
    fn push(&mut self, set: &[T], hash: u64) -> u32 {
        self.arena.extend_from_slice(set);
        self.ends.push(self.arena.len());
        self.hashes.push(hash);
        u32::try_from(self.len() - 1).expect("at most as many sets as states")
    }
    fn rebuild(&mut self, size: usize) {
        self.size = size;
        if self.table.len() < size {
            self.table.resize(size, Maybe::NONE);
        }
        self.table[..size].fill(Maybe::NONE);
        for (i, &h) in (0u32..).zip(&self.hashes) {
            let mut slot = h as usize & (size - 1);
            while self.table[slot].is_some() {
                slot = (slot + 1) & (size - 1);
            }
            self.table[slot] = Maybe::some(i);
        }
    }
}

fn hash<T: Copy + Into<u64>>(words: &[T]) -> u64 {
    let mut h = 0x243f_6a88_85a3_08d3u64;
    for &w in words {
        let p = u128::from(h ^ w.into()) * 0x9e37_79b9_7f4a_7c15;
        h = (p as u64) ^ ((p >> 64) as u64);
    }
    h
}
