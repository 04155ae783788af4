//! The set of all states: an insert-only, lock-free hash table of packed state keys that grows in place.
//!
//! In: 63-bit keys (what [`super::store`] packs a state into). Out: whether a key is new, and its place. Linear probing over buckets
//! of eight entries (one cache line); a lookup is nearly always one line. The whole key is stored, nothing is approximated.
//!
//! The home of a key is `hash * buckets / 2^64`, which is *monotone in the hash*: the table is sorted by hash up to probing. So growth
//! by any factor is one sequential sweep from the last bucket to the first that needs no second table (the idea of keeping entries
//! in hash order is Cleary's, "Compact Hash Tables Using Bidirectional Linear Probing", 1984). The table grows by a quarter in whole
//! segments, hence 8 / 0.87 = 9.2 to 11.5 bytes a state at any size beyond the first segment.
//!
//! Invariant: in every bucket from a key's home to the bucket where it lies, all entries before it are taken. Growth needs `&mut`,
//! so it happens while no worker runs; in between, entries go from 0 to a key once and never change.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Entries in a bucket: a cache line.
const BUCKET: usize = 8;
/// Fill at which the table asks to grow, in 1/1024.
const FILL: u64 = 890;
/// log2 of the entries of a segment: 4 MiB.
const SEGMENT_BITS: u32 = 19;

/// Answer of [`Table::insert`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Insert {
    /// The key was added at this place.
    New(u64),
    /// The key is there already.
    Old(u64),
    /// No room within reach: grow, then try again.
    Full,
}

/// See the module's head.
pub(crate) struct Table {
    segments: Vec<Box<[AtomicU64]>>,
    /// A number for each entry, if asked for.
    numbers: Vec<Box<[AtomicU32]>>,
    numbered: bool,
    /// log2 of the buckets of a segment.
    segment_bits: u32,
    /// Range of homes; the rest of the last segment takes what probing pushes over the end.
    homes: u64,
    /// Entries taken; workers add to it in batches.
    len: AtomicU64,
}

#[inline]
fn hash(key: u64) -> u64 {
    let h = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (h ^ (h >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

fn zeroed(entries: usize) -> Box<[AtomicU64]> {
    (0..entries).map(|_| AtomicU64::new(0)).collect()
}

fn zeroed_numbers(entries: usize) -> Box<[AtomicU32]> {
    (0..entries).map(|_| AtomicU32::new(0)).collect()
}

impl Table {
    /// An empty table for about `expected` keys.
    pub fn new(expected: u64, numbered: bool) -> Self {
        Self::with_segments(expected, numbered, SEGMENT_BITS)
    }
    fn with_segments(expected: u64, numbered: bool, segment_bits: u32) -> Self {
        let bucket_bits = segment_bits - BUCKET.trailing_zeros();
        let buckets = (expected.max(64) * 1200 / FILL).div_ceil(BUCKET as u64);
        let mut table =
            Self { segments: Vec::new(), numbers: Vec::new(), numbered, segment_bits: bucket_bits, homes: 0, len: AtomicU64::new(0) };
        if buckets < 1 << bucket_bits {
            table.add_segment((buckets as usize).next_power_of_two());
        } else {
            for _ in 0..buckets.div_ceil(1 << bucket_bits) {
                table.add_segment(1 << bucket_bits);
            }
        }
        table.homes = table.home_range();
        table
    }
    fn add_segment(&mut self, buckets: usize) {
        self.segments.push(zeroed(buckets * BUCKET));
        if self.numbered {
            self.numbers.push(zeroed_numbers(buckets * BUCKET));
        }
    }
    /// Buckets that exist.
    fn buckets(&self) -> u64 {
        self.segments.iter().map(|s| (s.len() / BUCKET) as u64).sum()
    }
    fn home_range(&self) -> u64 {
        let all = self.buckets();
        all - (all / 4).min(64)
    }
    #[inline]
    fn home(&self, key: u64) -> u64 {
        ((u128::from(hash(key)) * u128::from(self.homes)) >> 64) as u64
    }
    #[inline]
    fn bucket(&self, bucket: u64) -> Option<&[AtomicU64]> {
        let segment = self.segments.get((bucket >> self.segment_bits) as usize)?;
        let at = (bucket & ((1 << self.segment_bits) - 1)) as usize * BUCKET;
        segment.get(at..at + BUCKET)
    }
    /// Loads the line that an insertion of the key will need. Called for a batch of keys before their insertion, so that the
    /// misses of the batch overlap.
    #[inline]
    pub fn touch(&self, key: u64) -> u64 {
        self.bucket(self.home(key)).map_or(0, |b| b[0].load(Ordering::Relaxed))
    }
    /// Adds a key (below 2^63) unless it is there.
    #[inline]
    pub fn insert(&self, key: u64) -> Insert {
        let stored = key + 1;
        let mut at = self.home(key);
        loop {
            let Some(bucket) = self.bucket(at) else { return Insert::Full };
            for (i, entry) in bucket.iter().enumerate() {
                let mut there = entry.load(Ordering::Relaxed);
                if there == 0 {
                    // Relaxed: an entry publishes nothing but itself; what it refers to is read in a later round only.
                    match entry.compare_exchange(0, stored, Ordering::Relaxed, Ordering::Relaxed) {
                        Ok(_) => return Insert::New(at * BUCKET as u64 + i as u64),
                        Err(other) => there = other,
                    }
                }
                if there == stored {
                    return Insert::Old(at * BUCKET as u64 + i as u64);
                }
            }
            at += 1;
        }
    }
    /// Where a key is.
    pub fn find(&self, key: u64) -> Option<u64> {
        let mut at = self.home(key);
        loop {
            for (i, entry) in self.bucket(at)?.iter().enumerate() {
                match entry.load(Ordering::Relaxed) {
                    0 => return None,
                    e if e == key + 1 => return Some(at * BUCKET as u64 + i as u64),
                    _ => {}
                }
            }
            at += 1;
        }
    }
    /// The number kept with an entry; the table was made with numbers.
    pub fn number(&self, place: u64) -> &AtomicU32 {
        let bits = self.segment_bits + BUCKET.trailing_zeros();
        &self.numbers[(place >> bits) as usize][(place & ((1 << bits) - 1)) as usize]
    }
    /// Keys in the table, as reported by [`Table::add_len`].
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }
    /// Workers report their insertions in batches; returns the new length.
    pub fn add_len(&self, new: u64) -> u64 {
        self.len.fetch_add(new, Ordering::Relaxed) + new
    }
    /// Whether entries have numbers.
    pub fn is_numbered(&self) -> bool {
        self.numbered
    }
    /// Whether it is time to grow.
    pub fn crowded(&self) -> bool {
        self.len() > self.homes * BUCKET as u64 / 1024 * FILL + self.homes * BUCKET as u64 % 1024 * FILL / 1024
    }
    /// Bytes of the entries.
    pub fn bytes(&self) -> u64 {
        self.buckets() * BUCKET as u64 * if self.numbered { 12 } else { 8 }
    }
    /// Bytes that the next growth adds to the resident ones.
    pub fn growth_bytes(&self) -> u64 {
        let full = 1u64 << self.segment_bits;
        let buckets = if self.buckets() < full { 2 * self.buckets() } else { (self.segments.len() as u64).div_ceil(4) * full };
        buckets * BUCKET as u64 * if self.numbered { 12 } else { 8 }
    }
    /// All keys with their places.
    pub fn entries(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let bits = self.segment_bits + BUCKET.trailing_zeros();
        self.segments.iter().enumerate().flat_map(move |(s, segment)| {
            segment.iter().enumerate().filter_map(move |(i, e)| match e.load(Ordering::Relaxed) {
                0 => None,
                e => Some((((s as u64) << bits) + i as u64, e - 1)),
            })
        })
    }

    /// Makes room. Below one segment by doubling into a new table, beyond it in place by about a quarter.
    pub fn grow(&mut self) {
        let full = 1u64 << self.segment_bits;
        if self.buckets() < full {
            self.double();
            return;
        }
        let before = self.buckets();
        for _ in 0..self.segments.len().div_ceil(4) {
            self.add_segment(full as usize);
        }
        self.homes = self.home_range();
        // From the last old bucket down: what lies above the sweep is in the new order already.
        let mut waiting: Vec<(u64, u64, u32)> = Vec::new(); // home below the sweep, key, number
        let mut taken: Vec<(u64, u32)> = Vec::with_capacity(BUCKET);
        for bucket in (0..before).rev() {
            taken.clear();
            for i in 0..BUCKET as u64 {
                let place = bucket * BUCKET as u64 + i;
                let entry = self.swap(place, 0, 0);
                if entry.0 != 0 {
                    taken.push((entry.0 - 1, entry.1));
                }
            }
            for &(key, number) in &taken {
                let home = self.home(key);
                if home < bucket { waiting.push((home, key, number)) } else { self.put(key, number) }
            }
            let mut i = 0;
            while i < waiting.len() {
                if waiting[i].0 >= bucket {
                    let (_, key, number) = waiting.swap_remove(i);
                    self.put(key, number);
                } else {
                    i += 1;
                }
            }
        }
        debug_assert!(waiting.is_empty());
    }
    fn double(&mut self) {
        let mut segments = std::mem::take(&mut self.segments);
        let mut numbers = std::mem::take(&mut self.numbers);
        let mut buckets = segments.iter().map(|s| s.len() / BUCKET).sum::<usize>();
        loop {
            buckets *= 2;
            self.segments.clear();
            self.numbers.clear();
            // Whole segments only, once there is more than one.
            for _ in 0..buckets.div_ceil(1 << self.segment_bits) {
                self.add_segment(buckets.min(1 << self.segment_bits));
            }
            self.homes = self.home_range();
            let fits = segments.iter().enumerate().all(|(s, segment)| {
                segment.iter().enumerate().all(|(i, e)| match e.load(Ordering::Relaxed) {
                    0 => true,
                    e => self.try_put(e - 1, numbers.get(s).map_or(0, |n| n[i].load(Ordering::Relaxed))),
                })
            });
            if fits {
                break;
            }
        }
        segments.clear();
        numbers.clear();
    }
    /// Sets entry and number of a place, returns those before.
    fn swap(&mut self, place: u64, entry: u64, number: u32) -> (u64, u32) {
        let bits = self.segment_bits + BUCKET.trailing_zeros();
        let (segment, at) = ((place >> bits) as usize, (place & ((1 << bits) - 1)) as usize);
        let before = std::mem::replace(self.segments[segment][at].get_mut(), entry);
        let old = if self.numbered { std::mem::replace(self.numbers[segment][at].get_mut(), number) } else { 0 };
        (before, old)
    }
    fn try_put(&mut self, key: u64, number: u32) -> bool {
        match self.insert(key) {
            Insert::New(place) | Insert::Old(place) => {
                if self.numbered {
                    self.number(place).store(number, Ordering::Relaxed);
                }
                true
            }
            Insert::Full => false,
        }
    }
    fn put(&mut self, key: u64, number: u32) {
        if !self.try_put(key, number) {
            // Cannot happen at the fill that growth starts from; another segment is always a way out.
            self.add_segment(1 << self.segment_bits);
            self.put(key, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::toy::split_mix;
    use std::collections::HashMap;

    fn key(seed: &mut u64) -> u64 {
        split_mix(seed) >> (1 + split_mix(seed) % 55)
    }

    #[test]
    fn equals_a_hash_map_through_every_growth() {
        for seed in 0..8u64 {
            let mut table = Table::with_segments(0, true, 6 + (seed % 4) as u32);
            let mut twin: HashMap<u64, u32> = HashMap::new();
            let mut state = seed;
            for step in 0..6_000u32 {
                let k = key(&mut state);
                let place = loop {
                    match table.insert(k) {
                        Insert::New(place) => {
                            assert!(twin.insert(k, step).is_none(), "seed {seed} step {step}");
                            table.number(place).store(step, Ordering::Relaxed);
                            table.add_len(1);
                            break place;
                        }
                        Insert::Old(place) => {
                            assert!(twin.contains_key(&k), "seed {seed} step {step}");
                            break place;
                        }
                        Insert::Full => table.grow(),
                    }
                };
                assert_eq!(table.number(place).load(Ordering::Relaxed), twin[&k], "seed {seed} step {step}");
                if table.crowded() {
                    table.grow();
                    for (&k, &n) in &twin {
                        let place = table.find(k).unwrap_or_else(|| panic!("seed {seed} step {step}: {k} lost"));
                        assert_eq!(table.number(place).load(Ordering::Relaxed), n);
                    }
                }
            }
            let mut all: Vec<u64> = table.entries().map(|e| e.1).collect();
            let mut keys: Vec<u64> = twin.keys().copied().collect();
            all.sort_unstable();
            keys.sort_unstable();
            assert_eq!(all, keys);
            assert_eq!(table.len(), keys.len() as u64);
        }
    }

    #[test]
    fn threads_agree_on_who_was_first() {
        let table = Table::new(200_000, false);
        let new: u64 = std::thread::scope(|scope| {
            let insert = || (0..100_000u64).filter(|&k| matches!(table.insert(k * 977), Insert::New(_))).count() as u64;
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(insert)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(new, 100_000);
        assert_eq!(table.entries().count(), 100_000);
    }
}
