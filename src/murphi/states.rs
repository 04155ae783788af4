//! Store of packed states: a hash table of numbers over one array of states.
//!
//! States are appended in the order in which they are found, in as few bytes as their bits take; a
//! state's number is its position, so the array is also the queue of a breadth-first search. The
//! index has buckets of one cache line: twelve tags of one byte and twelve numbers. A search of an
//! absent state touches one line, of a present state one more, in the array. The index doubles, a
//! large one grows by half, and is filled anew from the array, so that no two indices exist at a
//! time. Memory: the bytes of a state, and 7 to 10 for the index, to 13 for a small one.
//!
//! Invariant: a state is in the first bucket from its own on that had room.

use std::hint::black_box;

/// Tags and numbers in a bucket.
const SLOTS: usize = 12;

/// Line of the index: twelve tags in three words, twelve numbers, one word unused.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bucket([u32; 16]);

impl Bucket {
    const EMPTY: Bucket = Bucket([0; 16]);
    /// Returns the slots with a tag, one bit for each: slot `n` in bit `8n + 7`.
    #[inline(always)]
    fn find(&self, tag: u8) -> u128 {
        let [a, b, c, ..] = self.0.map(u64::from);
        let all = u64::from(tag) * 0x0101_0101_0101_0101;
        let low = zero_bytes((b << 32 | a) ^ all);
        let high = zero_bytes(c ^ all) & 0xffff_ffff;
        u128::from(high) << 64 | u128::from(low)
    }
    /// Returns the first slot that is not in use. `None` if all are.
    #[inline(always)]
    fn free(&self) -> Option<usize> {
        let free = self.find(0);
        (free != 0).then(|| free.trailing_zeros() as usize / 8)
    }
    #[inline(always)]
    fn set(&mut self, slot: usize, tag: u8, number: u32) {
        self.0[slot / 4] |= u32::from(tag) << (slot % 4 * 8);
        self.0[3 + slot] = number;
    }
}

/// Set of states with numbers.
pub(crate) struct States {
    /// 64-bit words of a state in use.
    words: usize,
    /// Bytes of a stored state.
    bytes: usize,
    all: Vec<u8>,
    count: usize,
    index: Vec<Bucket>,
    /// The number of states at which the index grows.
    full: usize,
}

/// Odd factor with well spread bits (the golden ratio).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// States that are ordered together when the index grows.
const BLOCK: usize = 1 << 18;
/// Parts of the index for that order.
const PARTS: usize = 1 << 11;

/// Buckets of an index that grows by half instead of doubling: 16 MB.
const SMALL: usize = 1 << 18;

/// Entries of the index that are fetched together when it grows.
const TOUCHED: usize = 64;

/// Most states of a store.
const MOST: usize = u32::MAX as usize - 1;

impl States {
    /// Creates an empty store. `bits`: those of a state.
    pub fn new(words: usize, bits: usize) -> Self {
        let mut states = Self {
            words,
            bytes: bits.div_ceil(8).max(1),
            all: Vec::new(),
            count: 0,
            index: Vec::new(),
            full: 0,
        };
        states.set_index(64);
        states
    }
    fn set_index(&mut self, buckets: usize) {
        self.index = Vec::new();
        self.index.resize(buckets, Bucket::EMPTY);
        self.full = buckets * SLOTS * 4 / 5;
    }
    /// Returns the number of states.
    pub fn len(&self) -> usize {
        self.count
    }
    /// Returns the bytes that the store occupies.
    pub fn memory(&self) -> usize {
        self.all.len() + self.index.len() * size_of::<Bucket>()
    }
    /// Unpacks a state.
    #[inline(always)]
    pub fn get(&self, number: usize, state: &mut [u64]) {
        let stored = &self.all[number * self.bytes..(number + 1) * self.bytes];
        let mut chunks = stored.chunks_exact(8);
        let mut at = 0;
        for chunk in &mut chunks {
            state[at] = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
            at += 1;
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            state[at] = u64::from_le_bytes(last);
        }
    }
    /// Hashes a state.
    #[inline(always)]
    pub fn hash(state: &[u64]) -> u64 {
        let mut hash = 0x243f_6a88_85a3_08d3;
        for word in state {
            let product = u128::from(word ^ hash) * u128::from(FACTOR);
            hash = (product >> 64) as u64 ^ product as u64;
        }
        hash
    }
    #[inline(always)]
    fn bucket(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.index.len() as u128) >> 64) as usize
    }
    /// Reads the line of the index that a search will need, and returns a part of it, so that the
    /// processor fetches the lines of several searches at the same time.
    #[inline(always)]
    pub fn touch(&self, hash: u64) -> u32 {
        self.index[self.bucket(hash)].0[0]
    }
    /// Reads the stored state that a search will probably be compared with.
    #[inline(always)]
    pub fn touch_state(&self, hash: u64) -> u8 {
        let bucket = &self.index[self.bucket(hash)];
        let found = bucket.find(tag(hash));
        if found == 0 {
            return 0;
        }
        self.all[bucket.0[3 + found.trailing_zeros() as usize / 8] as usize * self.bytes]
    }
    #[inline(always)]
    fn is(&self, number: u32, state: &[u64]) -> bool {
        let stored = &self.all[number as usize * self.bytes..(number as usize + 1) * self.bytes];
        let mut chunks = stored.chunks_exact(8);
        let mut at = 0;
        for chunk in &mut chunks {
            if state[at] != u64::from_le_bytes(chunk.try_into().unwrap_or_default()) {
                return false;
            }
            at += 1;
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            return state[at] == u64::from_le_bytes(last);
        }
        true
    }
    /// Adds a state. Returns its number, and true if it is new. `None` if the store is full.
    #[inline(always)]
    pub fn insert(&mut self, state: &[u64], hash: u64) -> Option<(u32, bool)> {
        let (mut at, tag) = (self.bucket(hash), tag(hash));
        loop {
            let bucket = &self.index[at];
            let mut found = bucket.find(tag);
            while found != 0 {
                let number = bucket.0[3 + found.trailing_zeros() as usize / 8];
                if self.is(number, state) {
                    return Some((number, false));
                }
                found &= found - 1;
            }
            if let Some(slot) = bucket.free() {
                return self.add(state, (at, slot, tag)).map(|n| (n, true));
            }
            at = if at + 1 == self.index.len() { 0 } else { at + 1 };
        }
    }
    fn add(&mut self, state: &[u64], (at, slot, tag): (usize, usize, u8)) -> Option<u32> {
        if self.count >= MOST {
            return None;
        }
        let number = self.count as u32;
        let mut left = self.bytes;
        for word in &state[..self.words] {
            let part = left.min(8);
            self.all.extend_from_slice(&word.to_le_bytes()[..part]);
            left -= part;
        }
        self.count += 1;
        self.index[at].set(slot, tag, number);
        if self.count >= self.full {
            self.grow();
        }
        Some(number)
    }
    /// Enlarges the index and fills it anew, in blocks of states that are ordered by their buckets:
    /// accesses to the index are then local.
    #[cold]
    fn grow(&mut self) {
        let buckets = self.index.len();
        self.set_index(if buckets < SMALL { buckets * 2 } else { buckets * 3 / 2 });
        let mut state = vec![0; self.words];
        let (mut hashes, mut ordered) = (Vec::new(), Vec::new());
        for first in (0..self.count).step_by(BLOCK) {
            let last = (first + BLOCK).min(self.count);
            let mut starts = [0u32; PARTS + 1];
            hashes.clear();
            for number in first..last {
                self.get(number, &mut state);
                let hash = Self::hash(&state);
                hashes.push(hash);
                starts[part(hash) + 1] += 1;
            }
            for n in 0..PARTS {
                starts[n + 1] += starts[n];
            }
            ordered.clear();
            ordered.resize(hashes.len(), (0, 0));
            for (hash, number) in hashes.iter().zip(first as u32..) {
                let at = &mut starts[part(*hash)];
                ordered[*at as usize] = (*hash, number);
                *at += 1;
            }
            for some in ordered.chunks(TOUCHED) {
                let touched = some.iter().fold(0, |all, (hash, _)| all ^ self.touch(*hash));
                black_box(touched);
                for (hash, number) in some {
                    self.place(*hash, *number);
                }
            }
        }
    }
    /// Adds a number to the index.
    #[inline(always)]
    fn place(&mut self, hash: u64, number: u32) {
        let (mut at, tag) = (self.bucket(hash), tag(hash));
        loop {
            let bucket = &mut self.index[at];
            if let Some(slot) = bucket.free() {
                bucket.set(slot, tag, number);
                return;
            }
            at = if at + 1 == self.index.len() { 0 } else { at + 1 };
        }
    }
}

/// Marks the bytes that are zero by their highest bits.
#[inline(always)]
fn zero_bytes(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    !(((word & LOW) + LOW) | word | LOW)
}

/// The part of the index with the bucket of a hash.
#[inline(always)]
fn part(hash: u64) -> usize {
    (hash >> (64 - PARTS.ilog2())) as usize
}

/// The tag of a hash, never 0: bits that do not choose the bucket.
#[inline(always)]
fn tag(hash: u64) -> u8 {
    (hash as u8).max(1)
}
