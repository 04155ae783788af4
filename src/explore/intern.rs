//! Append-only tables behind packed states: tuples of slot values to indices (leaves), pairs of
//! indices to indices (inner nodes).
//!
//! In: a tuple or pair. Out: its index, dense from 0, valid for the life of the table. All workers
//! share the tables. A leaf table has a reader-writer lock, since it is read only after a cache
//! miss. A pair table is sharded by hash, and reading a pair by index takes no lock. Cost: 4 bytes
//! a value and 8 to 22 bytes an entry.

use mu_base::narrow;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, RwLock};

/// Acquires a lock even if a holder panicked: the tables are consistent between any two statements
/// that can panic.
macro_rules! held {
    ($lock:expr) => {
        $lock.unwrap_or_else(|poisoned| poisoned.into_inner())
    };
}
pub(crate) use held;

fn hash_row(row: &[u32]) -> u64 {
    let mut h = ahash::RandomState::with_seeds(1, 2, 3, 4).build_hasher();
    for &v in row {
        h.write_u32(v);
    }
    h.finish()
}

/// An open-addressed index from rows of a flat array to row numbers; not shared. Rows of a single
/// value use an array over the values while these are dense.
#[derive(Default)]
pub(crate) struct TupleTable {
    width: usize,
    flat: Vec<u32>,
    count: u32,
    /// By value of a row of width 1: row number + 1, or 0.
    single: Vec<u32>,
    /// Row number + 1, or 0; the upper half is the high half of the row's hash, so that other rows
    /// are rarely compared.
    places: Vec<u64>,
}

/// Size up to which the array over values is always used, and its maximum ratio to the number of
/// rows.
const DENSE: (usize, usize) = (256, 4);

/// The half of a hash that an entry stores.
const TAG: u64 = !0 << 32;

impl TupleTable {
    /// Creates a table of rows of this width.
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.count as usize
    }
    /// Returns a row.
    pub fn row(&self, index: u32) -> &[u32] {
        &self.flat[index as usize * self.width..][..self.width]
    }
    /// Returns the index of a row, if it is present.
    #[inline]
    pub fn find(&self, row: &[u32]) -> Option<u32> {
        if let [value] = *row
            && let Some(&known) = self.single.get(value as usize)
            && (known != 0 || self.places.is_empty())
        {
            return known.checked_sub(1);
        }
        self.find_hashed(hash_row(row), row)
    }
    fn find_hashed(&self, hash: u64, row: &[u32]) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.places[at] {
                0 => return None,
                p if (p ^ hash) & TAG == 0 && self.row(narrow::low(p) - 1) == row => {
                    return Some(narrow::low(p) - 1);
                }
                _ => at = (at + 1) & mask,
            }
        }
    }
    /// Returns the index of a row; adds it if it is new.
    pub fn intern(&mut self, row: &[u32]) -> u32 {
        if let Some(index) = self.find(row) {
            return index;
        }
        match *row {
            [value] if (value as usize) < DENSE.0 + DENSE.1 * self.count as usize => {
                if self.single.len() <= value as usize {
                    self.single.resize(value as usize + 1, 0);
                }
                self.single[value as usize] = self.count + 1;
            }
            _ => self.place(row),
        }
        self.flat.extend_from_slice(row);
        self.count += 1;
        self.count - 1
    }
    /// Enters the hash of the next row.
    fn place(&mut self, row: &[u32]) {
        if (self.count as usize + 1) * 4 > self.places.len() * 3 {
            let mask = (self.places.len() * 2).max(16) - 1;
            let old = std::mem::replace(&mut self.places, vec![0; mask + 1]);
            for p in old.into_iter().filter(|p| *p != 0) {
                let mut at = hash_row(self.row(narrow::low(p) - 1)) as usize & mask;
                while self.places[at] != 0 {
                    at = (at + 1) & mask;
                }
                self.places[at] = p;
            }
        }
        let (hash, mask) = (hash_row(row), self.places.len() - 1);
        let mut at = hash as usize & mask;
        while self.places[at] != 0 {
            at = (at + 1) & mask;
        }
        self.places[at] = hash & TAG | u64::from(self.count + 1);
    }
    /// Bytes allocated.
    pub fn bytes(&self) -> u64 {
        (self.flat.capacity() + self.single.capacity()) as u64 * 4
            + self.places.capacity() as u64 * 8
    }
}

/// Numbered tuples of the slots of one leaf; shared.
pub(crate) struct LeafTable {
    rows: RwLock<TupleTable>,
}

impl LeafTable {
    /// Creates a table for tuples of `width` slots.
    pub fn new(width: usize) -> Self {
        Self { rows: RwLock::new(TupleTable::new(width)) }
    }
    /// Returns the index of a tuple; adds it if it is new.
    pub fn intern(&self, row: &[u32]) -> u32 {
        if let Some(index) = held!(self.rows.read()).find(row) {
            return index;
        }
        held!(self.rows.write()).intern(row)
    }
    /// Appends the tuple of an index.
    pub fn read(&self, index: u32, out: &mut Vec<u32>) {
        out.extend_from_slice(held!(self.rows.read()).row(index));
    }
    /// Returns the number of tuples.
    pub fn len(&self) -> usize {
        held!(self.rows.read()).len()
    }
    /// Bytes allocated.
    pub fn bytes(&self) -> u64 {
        held!(self.rows.read()).bytes()
    }
}

/// Entries of a [`PairCache`].
const CACHE_SIZE: usize = 1 << 15;

/// A pair of a node, and its index.
#[derive(Clone, Copy, Default)]
struct CachedPair {
    pair: u64,
    /// One more than the node's number.
    node: u32,
    index: u32,
}

/// Recently used pairs of all nodes of a tree: a direct-mapped table in front of the shared ones,
/// for one thread and one tree.
#[derive(Default)]
pub(super) struct PairCache(Vec<CachedPair>);

impl PairCache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self(vec![CachedPair::default(); CACHE_SIZE])
    }
    /// Returns the index of a node's pair; calls `compute` on a miss. Must not be called on a
    /// [`PairCache::default`].
    #[inline]
    pub fn index(&mut self, node: u32, pair: u64, compute: impl FnOnce() -> u32) -> u32 {
        let hash = (pair ^ u64::from(node) << 58).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let kept = &mut self.0[(hash >> 48) as usize % CACHE_SIZE];
        if kept.node != node + 1 || kept.pair != pair {
            *kept = CachedPair { pair, node: node + 1, index: compute() };
        }
        kept.index
    }
}

const SHARDS: usize = 64;
/// log2 of the pairs of the first chunk; each further chunk doubles the whole.
const FIRST_CHUNK: u32 = 10;

/// Pairs of indices, numbered; shared.
pub struct PairTable {
    shards: Vec<Mutex<Vec<u32>>>,
    used: Vec<AtomicU32>,
    /// Chunk `c` holds `2^(FIRST_CHUNK + max(c, 1) - 1)` pairs, so that an index is placed by its
    /// highest bit.
    chunks: Vec<OnceLock<Box<[AtomicU64]>>>,
    count: AtomicU32,
}

impl Default for PairTable {
    fn default() -> Self {
        Self::new()
    }
}

impl PairTable {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            used: (0..SHARDS).map(|_| AtomicU32::new(0)).collect(),
            chunks: (0..=(32 - FIRST_CHUNK)).map(|_| OnceLock::new()).collect(),
            count: AtomicU32::new(0),
        }
    }
    fn place(index: u32) -> (usize, usize) {
        let high = index >> FIRST_CHUNK;
        if high == 0 {
            return (0, index as usize);
        }
        let c = 32 - high.leading_zeros();
        (c as usize, (index - (1 << (FIRST_CHUNK + c - 1))) as usize)
    }
    fn chunk(&self, c: usize) -> &[AtomicU64] {
        self.chunks[c].get_or_init(|| {
            (0..1usize << (FIRST_CHUNK as usize + c.max(1) - 1))
                .map(|_| AtomicU64::new(0))
                .collect()
        })
    }
    fn hash(pair: u64) -> u64 {
        let h = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (h ^ (h >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }
    /// Returns the pair of an index, the first element in the high half.
    #[inline]
    pub fn get(&self, index: u32) -> u64 {
        let (c, at) = Self::place(index);
        self.chunk(c)[at].load(Ordering::Acquire)
    }
    /// Returns the index of a pair; adds it if it is new.
    pub fn intern(&self, pair: u64) -> u32 {
        let h = Self::hash(pair);
        let shard = (h >> 58) as usize;
        let mut places = held!(self.shards[shard].lock());
        let used = self.used[shard].load(Ordering::Relaxed) as usize;
        if (used + 1) * 4 > places.len() * 3 {
            let mask = (places.len() * 2).max(16) - 1;
            let mut wider = vec![0u32; mask + 1];
            for &p in places.iter().filter(|&&p| p != 0) {
                let mut at = Self::hash(self.get(p - 1)) as usize & mask;
                while wider[at] != 0 {
                    at = (at + 1) & mask;
                }
                wider[at] = p;
            }
            *places = wider;
        }
        let mask = places.len() - 1;
        let mut at = h as usize & mask;
        loop {
            match places[at] {
                0 => break,
                p if self.get(p - 1) == pair => return p - 1,
                _ => at = (at + 1) & mask,
            }
        }
        let index = self.count.fetch_add(1, Ordering::Relaxed);
        let (c, i) = Self::place(index);
        self.chunk(c)[i].store(pair, Ordering::Release);
        places[at] = index + 1;
        self.used[shard].store(narrow::index(used) + 1, Ordering::Relaxed);
        index
    }
    /// True if it holds no pair.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }
    /// Bytes allocated.
    pub fn bytes(&self) -> u64 {
        let index: usize = self.shards.iter().map(|s| held!(s.lock()).capacity() * 4).sum();
        let pairs: usize = self.chunks.iter().filter_map(|c| c.get()).map(|c| c.len() * 8).sum();
        (index + pairs) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_numbered_densely_and_once() {
        let mut rows = TupleTable::new(2);
        for round in 0..2 {
            for i in 0..500u32 {
                assert_eq!(rows.intern(&[i % 25, i / 25]), i, "round {round}");
            }
        }
        assert_eq!((rows.len(), rows.row(77)), (500, &[2, 3][..]));
        let mut empty = TupleTable::new(0);
        assert_eq!((empty.intern(&[]), empty.intern(&[]), empty.len()), (0, 0, 1));
    }

    #[test]
    fn rows_of_one_value_are_found_for_dense_and_sparse_values() {
        let mut rows = TupleTable::new(1);
        // Sparse values first, then all those between, which an array holds; the sparse ones are
        // still found.
        let values: Vec<u32> =
            (0..40).map(|i| i * 1000 + 7).chain([u32::MAX, u32::MAX - 1]).chain(0..6000).collect();
        let mut first: Vec<u32> = Vec::new();
        for &value in &values {
            let known = first.iter().position(|v| *v == value);
            assert_eq!(rows.find(&[value]), known.map(|i| i as u32), "{value}");
            assert_eq!(rows.intern(&[value]) as usize, known.unwrap_or(first.len()), "{value}");
            if known.is_none() {
                first.push(value);
            }
        }
        assert_eq!((rows.len(), rows.find(&[50_000])), (first.len(), None));
        assert!(
            first
                .iter()
                .enumerate()
                .all(|(i, v)| rows.find(&[*v]) == Some(i as u32) && rows.row(i as u32) == [*v])
        );
        // An array over sparse values would be much larger.
        assert!(rows.bytes() < 1 << 20, "{} bytes", rows.bytes());
    }

    #[test]
    fn pairs_survive_growth_and_threads() {
        let table = PairTable::new();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for i in 0..20_000u64 {
                        let index = table.intern(i * i);
                        assert_eq!(table.get(index), i * i);
                    }
                });
            }
        });
        assert_eq!(table.len(), 20_000);
    }
}
