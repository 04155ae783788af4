//! Store of packed states: a hash table of numbers over one array of states.
//!
//! States are appended in the order in which they are found, in as few bytes as their bits take; a
//! state's number is its position, so the array is also the queue of a breadth-first search. The
//! index has buckets of one cache line: 16 tags of one byte and 16 numbers of 24 bits; from 15
//! million states on, fewer and longer numbers, 12 for four billion states. A search of an absent
//! state touches one line, of a present state one more, in the array. A small index doubles, a
//! large one grows by half, and is filled anew from the array, so that no two indices exist at a
//! time. Memory: the bytes of a state, and 4.5 to 6.8 for the index, to 9 for a small one, and for
//! states of more than 24 bytes.
//!
//! Invariant: a state is in the first bucket from its own on that had room.

use std::hint::black_box;

/// Bits of a bucket.
const LINE: u32 = 512;
/// Most slots of a bucket: their tags are one word of 128 bits.
const SLOTS: u32 = 16;
/// Bits of a number if a bucket has all slots.
const BITS: u32 = 24;

/// Division of a bucket: tags of 8 bits for all slots, followed by their numbers.
#[derive(Clone, Copy, Default)]
struct Division {
    slots: u32,
    /// Bits of a number.
    bits: u32,
    /// Bits of the tags.
    mask: u128,
}

impl Division {
    /// Returns the division with the most slots for numbers below `limit(slots)`, in `least` bits
    /// or more.
    fn new(limit: impl Fn(u32) -> usize, least: u32) -> Self {
        let bits = |slots| limit(slots).next_power_of_two().ilog2().max(least).max(BITS);
        let mut all = (1..=SLOTS).rev().map(|slots| (slots, bits(slots)));
        let fits = all.find(|(slots, bits)| slots * (8 + bits) <= LINE);
        let (slots, bits) = fits.expect("a number fits into a bucket");
        Self { slots, bits, mask: u128::MAX >> (8 * (SLOTS - slots)) }
    }
    /// Returns the first of eight bytes with the number of a slot, and the bits before it.
    #[inline(always)]
    fn place(self, slot: u32) -> (usize, u32) {
        let first = self.slots * 8 + slot * self.bits;
        let byte = (first / 8).min(LINE / 8 - 8);
        (byte as usize, first - 8 * byte)
    }
}

/// Line of the index: tags, 0 for a slot that is not in use, and numbers.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bucket([u8; LINE as usize / 8]);

impl Bucket {
    const EMPTY: Bucket = Bucket([0; LINE as usize / 8]);
    #[inline(always)]
    fn eight(&self, byte: usize) -> u64 {
        self.0[byte..byte + 8].try_into().map_or(0, u64::from_le_bytes)
    }
    #[inline(always)]
    fn number(&self, slot: u32, division: Division) -> u32 {
        // Most numbers have 24 bits, and a byte before them: few instructions between two accesses
        // to memory let the processor overlap more of them.
        if division.bits == BITS {
            let first = SLOTS as usize + 3 * slot as usize - 1;
            return self.0[first..first + 4].try_into().map_or(0, u32::from_le_bytes) >> 8;
        }
        let (byte, shift) = division.place(slot);
        (self.eight(byte) >> shift & ((1 << division.bits) - 1)) as u32
    }
    /// Returns the slots with a tag, one bit for each: slot `n` in bit `8n + 7`.
    #[inline(always)]
    fn find(&self, tag: u8, division: Division) -> u128 {
        let all = u64::from(tag) * 0x0101_0101_0101_0101;
        let word = |n| u128::from(zero_bytes(self.eight(n) ^ all));
        (word(8) << 64 | word(0)) & division.mask
    }
    /// Returns the first slot that is not in use. `None` if all are.
    #[inline(always)]
    fn free(&self, division: Division) -> Option<u32> {
        let free = self.find(0, division);
        (free != 0).then(|| free.trailing_zeros() / 8)
    }
    #[inline(always)]
    fn set(&mut self, slot: u32, (tag, number): (u8, u32), division: Division) {
        let (byte, shift) = division.place(slot);
        let word = self.eight(byte) | u64::from(number) << shift;
        self.0[byte..byte + 8].copy_from_slice(&word.to_le_bytes());
        self.0[slot as usize] = tag;
    }
}

/// Set of states with numbers.
pub struct States {
    /// 64-bit words of a state in use.
    words: usize,
    /// Bytes of a stored state.
    bytes: usize,
    /// Bits of the last word of a state.
    mask: u64,
    all: Vec<u8>,
    count: usize,
    index: Vec<Bucket>,
    division: Division,
    /// Least bits of a number in the index.
    least: u32,
    /// The number of states at which the index grows.
    full: usize,
}

/// Odd factor with well spread bits (the golden ratio).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// States that are ordered together when the index grows.
const BLOCK: usize = 1 << 18;
/// Parts of the index for that order.
const PARTS: usize = 1 << 11;

/// Buckets of an index that grows by half instead of doubling: 1 MB for short states; 16 MB for
/// long ones, which take longer to hash, and of which the index is a small part.
const SMALL: [usize; 2] = [1 << 14, 1 << 18];
/// Most bytes of a short state.
const SHORT: usize = 24;

/// Entries of the index that are fetched together when it grows.
const TOUCHED: usize = 64;

/// Most states of a store.
const MOST: usize = u32::MAX as usize - 1;

impl States {
    /// Creates an empty store. `bits`: those of a state.
    pub fn new(words: usize, bits: usize) -> Self {
        Self::with_numbers(words, bits, 0)
    }
    /// Creates an empty store with numbers of `least` bits or more in the index, as a store of
    /// `2^least` states has them.
    pub fn with_numbers(words: usize, bits: usize, least: u32) -> Self {
        let mut states = Self {
            words,
            bytes: bits.div_ceil(8).max(1),
            mask: u64::MAX >> ((64 - bits % 64) % 64),
            all: Vec::new(),
            count: 0,
            index: Vec::new(),
            division: Division::default(),
            least,
            full: 0,
        };
        states.set_index(64);
        states
    }
    fn set_index(&mut self, buckets: usize) {
        self.index.clear();
        self.index.reserve_exact(buckets);
        self.index.resize(buckets, Bucket::EMPTY);
        let limit = |slots| buckets * slots as usize / 9 * 8;
        self.division = Division::new(limit, self.least);
        self.full = limit(self.division.slots);
    }
    /// True if the store has no state.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Returns the number of states.
    pub fn len(&self) -> usize {
        self.count
    }
    /// Returns the bytes that the store occupies.
    pub fn memory(&self) -> usize {
        self.all.len() + self.index.len() * size_of::<Bucket>()
    }
    /// Returns the bytes of all words of a state but the last, and the bytes from there on.
    #[inline(always)]
    fn split_words(&self, number: usize) -> (&[[u8; 8]], &[u8]) {
        let (words, rest) = self.all[number * self.bytes..].split_at(8 * (self.words - 1));
        (words.as_chunks().0, rest)
    }
    /// Returns the last word of a state, which begins here. Reads eight bytes if it can,
    /// which is faster than a copy of those of the word.
    #[inline(always)]
    fn last(&self, bytes: &[u8]) -> u64 {
        let word = match bytes.first_chunk() {
            Some(eight) => u64::from_le_bytes(*eight),
            None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        word & self.mask
    }
    /// Unpacks a state.
    #[inline(always)]
    pub fn get(&self, number: usize, state: &mut [u64]) {
        let (words, rest) = self.split_words(number);
        for (word, eight) in state.iter_mut().zip(words) {
            *word = u64::from_le_bytes(*eight);
        }
        state[self.words - 1] = self.last(rest);
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
        u32::from(self.index[self.bucket(hash)].0[0])
    }
    /// Returns the state with which a search will probably be compared, or any other, and a part of
    /// it, so that the processor fetches several of them at the same time. It has no branches that
    /// depend on the state.
    #[inline(always)]
    pub fn candidate(&self, hash: u64) -> (u32, u8) {
        let bucket = &self.index[self.bucket(hash)];
        let found = bucket.find(tag(hash), self.division);
        let slot = (found.trailing_zeros() / 8).min(self.division.slots - 1);
        let number = bucket.number(slot, self.division);
        (number, self.all.get(number as usize * self.bytes).map_or(0, |byte| *byte))
    }
    #[inline(always)]
    fn is(&self, number: u32, state: &[u64]) -> bool {
        let (words, rest) = self.split_words(number as usize);
        words.iter().zip(state).all(|(eight, word)| u64::from_le_bytes(*eight) == *word)
            && self.last(rest) == state[self.words - 1]
    }
    /// Adds a state. Returns its number, and true if it is new. `None` if the store is full.
    /// `candidate`: a state that may be the same.
    #[inline(always)]
    pub fn insert(&mut self, state: &[u64], hash: u64, candidate: u32) -> Option<(u32, bool)> {
        if (candidate as usize) < self.count && self.is(candidate, state) {
            return Some((candidate, false));
        }
        let (mut at, tag) = (self.bucket(hash), tag(hash));
        loop {
            let bucket = &self.index[at];
            let mut found = bucket.find(tag, self.division);
            while found != 0 {
                let number = bucket.number(found.trailing_zeros() / 8, self.division);
                if self.is(number, state) {
                    return Some((number, false));
                }
                found &= found - 1;
            }
            if let Some(slot) = bucket.free(self.division) {
                return self.add(state, (at, slot, tag)).map(|n| (n, true));
            }
            at = if at + 1 == self.index.len() { 0 } else { at + 1 };
        }
    }
    fn add(&mut self, state: &[u64], (at, slot, tag): (usize, u32, u8)) -> Option<u32> {
        if self.count >= MOST {
            return None;
        }
        let number = self.count as u32;
        for word in &state[..self.words] {
            self.all.extend_from_slice(&word.to_le_bytes());
        }
        self.count += 1;
        self.all.truncate(self.count * self.bytes);
        self.index[at].set(slot, (tag, number), self.division);
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
        let small = SMALL[usize::from(self.bytes > SHORT)];
        self.set_index(if buckets < small { buckets * 2 } else { buckets * 3 / 2 });
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
            if let Some(slot) = bucket.free(self.division) {
                bucket.set(slot, (tag, number), self.division);
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
