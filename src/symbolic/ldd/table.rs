//! Unique table: every node `(value, down, right)` is stored once, so equal sets have equal ids.
//!
//! A node takes 12 bytes in a flat array; an open-addressed index of ids (4 bytes an entry, linear
//! probing, at most two thirds full) finds it. Several threads may find and insert at once. Ids are
//! handed out in batches, a node is written before its id is put into the index by one
//! compare-and-exchange, and of two threads with the same node the first one wins. Growth and
//! collection need `&mut`, so they happen while no other thread accesses the table. Nodes are
//! deleted only by a collection, which rebuilds the index and records the ids in use; ids of live
//! nodes never change.
//!
//! Cost: a lookup is one multiplication and about two cache misses; a new node one
//! compare-and-exchange more.
//!
//! Invariants: a node with an id in the index never changes; an unused id has an empty `down`; the
//! index has one and a half times as many entries as there are node slots, so that probing ends.

use super::Ldd;
use mu_base::atomics::{AtomicU32, AtomicUsize, Ordering};
use mu_base::narrow;

/// A stored node: `down` has the tails of the vectors that begin with `value`; `right` has the
/// vectors with a higher first value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LddNode {
    /// First value.
    pub value: u32,
    /// The rest of the vectors with that first value; never empty.
    pub down: Ldd,
    /// Vectors with a higher first value.
    pub right: Ldd,
}

/// A node as its three words.
#[derive(Debug, Default)]
struct LddCell([AtomicU32; 3]);

/// Number of 64-id words in a batch.
const BATCH: usize = 4;

/// Ids reserved for one thread: a word of 64 with bits for the unused ones, and the words up to the
/// end of the batch.
#[derive(Debug, Default)]
pub(super) struct Ids {
    word: usize,
    free: u64,
    end: usize,
}

/// The table; ids 0 and 1 are the terminals and have no meaningful node.
#[derive(Debug)]
pub(super) struct LddTable {
    nodes: Vec<LddCell>,
    index: Vec<AtomicU32>,
    shift: u32,
    /// Bits of the ids that were in use after the last collection; ids beyond its end were not.
    taken: Marks,
    /// The next word of 64 ids to hand out.
    cursor: AtomicUsize,
    /// Ids in use after the last collection, plus those handed out since.
    used: AtomicUsize,
}

#[inline]
pub(super) fn mix(x: u64, y: u64) -> u64 {
    let p = u128::from(x ^ 0x9E37_79B9_7F4A_7C15) * u128::from(y ^ 0xD6E8_FEB8_6659_FD93);
    (p as u64) ^ ((p >> 64) as u64)
}

#[inline]
fn hash(node: LddNode) -> u64 {
    mix(u64::from(node.down.0) << 32 | u64::from(node.right.0), u64::from(node.value) << 20 | 1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(all(test, loom))]
impl LddNode {
    /// Returns the start position in the smallest index.
    pub(super) fn home(self) -> u64 {
        hash(self) >> 57
    }
}

impl LddTable {
    /// Creates a table with an index of 2^`index_bits` entries, and room for half as many nodes.
    pub fn new(index_bits: u32) -> Self {
        let index_bits = index_bits.max(7);
        let mut table = Self {
            nodes: Vec::new(),
            index: Vec::new(),
            shift: 0,
            taken: Marks::new(2),
            cursor: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
        };
        table.reindex(index_bits);
        table.nodes.resize_with((1 << index_bits) / 2, LddCell::default);
        table
    }
    #[inline]
    pub fn node(&self, id: Ldd) -> LddNode {
        let LddCell([value, down, right]) = &self.nodes[id.0 as usize];
        LddNode {
            value: value.load(Ordering::Relaxed),
            down: Ldd(down.load(Ordering::Relaxed)),
            right: Ldd(right.load(Ordering::Relaxed)),
        }
    }
    fn write(&self, id: u32, node: LddNode) {
        let LddCell(words) = &self.nodes[id as usize];
        for (word, value) in words.iter().zip([node.value, node.down.0, node.right.0]) {
            word.store(value, Ordering::Relaxed);
        }
    }
    /// Returns the number of ids in use (live or not yet collected) or handed out.
    pub fn used_ids(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
    /// Returns one more than the highest id.
    pub fn ids(&self) -> usize {
        self.nodes.len()
    }
    pub fn bytes(&self) -> u64 {
        (self.nodes.capacity() * size_of::<LddCell>() + self.index.capacity() * 4) as u64
    }

    /// Returns the id of the node if it is stored; otherwise its position in the index.
    #[inline]
    pub fn find(&self, node: LddNode) -> Result<Ldd, usize> {
        self.find_from(node, (hash(node) >> self.shift) as usize)
    }
    #[inline]
    fn find_from(&self, node: LddNode, mut at: usize) -> Result<Ldd, usize> {
        let mask = self.index.len() - 1;
        loop {
            // Makes the writes before the insertion of the id visible.
            let id = self.index[at].load(Ordering::Acquire);
            if id == 0 {
                return Err(at);
            }
            if self.node(Ldd(id)) == node {
                return Ok(Ldd(id));
            }
            at = (at + 1) & mask;
        }
    }
    /// Stores a node that [`LddTable::find`] did not find; `at` is the position it returned,
    /// without growth since then. The flag is true if the node is new: another thread may have
    /// stored it first.
    pub fn insert(&self, mut at: usize, node: LddNode, ids: &mut Ids) -> Option<(Ldd, bool)> {
        let id = ids.next()?;
        self.write(id, node);
        loop {
            if self.index[at].compare_exchange(0, id, Ordering::Release, Ordering::Relaxed).is_ok()
            {
                return Some((Ldd(id), true));
            }
            match self.find_from(node, at) {
                Ok(other) => {
                    self.write(id, LddNode { value: 0, down: Ldd::EMPTY, right: Ldd::EMPTY });
                    ids.give_back(id);
                    return Some((other, false));
                }
                Err(free) => at = free,
            }
        }
    }

    /// Hands out ids. Returns false if there are none; then the table must grow.
    pub fn hand_out(&self, ids: &mut Ids) -> bool {
        loop {
            while ids.word < ids.end {
                ids.free = !self.taken.word(ids.word);
                if ids.free != 0 {
                    self.used.fetch_add(ids.free.count_ones() as usize, Ordering::Relaxed);
                    return true;
                }
                ids.word += 1;
            }
            let word = self.cursor.fetch_add(BATCH, Ordering::Relaxed);
            (ids.word, ids.end) = (word, (word + BATCH).min(self.nodes.len() / 64));
            if ids.word >= ids.end {
                // Prevents overflow of the cursor after many calls.
                self.cursor.fetch_min(self.nodes.len() / 64, Ordering::Relaxed);
                *ids = Ids::default();
                return false;
            }
        }
    }

    /// Returns the number of nodes and of index entries that growth adds.
    fn growth(&self) -> (usize, usize) {
        let nodes = self.nodes.len();
        let more = if nodes < 1 << 20 { nodes } else { nodes / 4 }
            .min((u32::MAX as usize).saturating_sub(nodes))
            / 64
            * 64;
        let index = if (nodes + more) * 3 > self.index.len() * 2 { self.index.len() } else { 0 };
        (more, index)
    }
    /// Returns an upper bound on the bytes that growth allocates.
    pub fn growth_bytes(&self) -> u64 {
        let (nodes, index) = self.growth();
        // The old index is freed only after the new one is allocated.
        (nodes * size_of::<LddCell>() + index * 8) as u64
    }
    /// True if the table cannot grow any more.
    pub fn full(&self) -> bool {
        self.growth().0 == 0
    }
    /// Grows the table.
    pub fn grow(&mut self) {
        let (nodes, index) = self.growth();
        self.nodes.reserve_exact(nodes);
        self.nodes.resize_with(self.nodes.len() + nodes, LddCell::default);
        if index > 0 {
            self.reindex(self.index.len().trailing_zeros() + 1);
        }
    }
    /// Deletes the nodes that are not marked. Unused ids must have been returned before.
    pub fn sweep(&mut self, marked: Marks) {
        let mut live = 0;
        for id in 2..self.nodes.len() {
            if marked.get(narrow::index(id)) {
                live += 1;
            } else if self.nodes[id].0[1].load(Ordering::Relaxed) != 0 {
                self.nodes[id] = LddCell::default();
            }
        }
        self.taken = marked;
        self.used = AtomicUsize::new(live);
        self.cursor = AtomicUsize::new(0);
        self.reindex(self.index.len().trailing_zeros());
    }
    fn reindex(&mut self, bits: u32) {
        // Free the old index first, so that only one is in memory.
        self.index = Vec::new();
        self.index.resize_with(1 << bits, AtomicU32::default);
        self.shift = 64 - bits;
        let mask = self.index.len() - 1;
        for id in 2..self.nodes.len() {
            let n = self.node(Ldd(narrow::index(id)));
            if n.down == Ldd::EMPTY {
                continue;
            }
            let mut at = (hash(n) >> self.shift) as usize;
            while self.index[at].load(Ordering::Relaxed) != 0 {
                at = (at + 1) & mask;
            }
            self.index[at] = AtomicU32::new(narrow::index(id));
        }
    }
}

impl Ids {
    fn next(&mut self) -> Option<u32> {
        if self.free == 0 {
            return None;
        }
        let bit = self.free.trailing_zeros();
        self.free &= self.free - 1;
        let id = narrow::index(self.word) << 6 | bit;
        if self.free == 0 {
            self.word += 1;
        }
        Some(id)
    }
    fn give_back(&mut self, id: u32) {
        // If the word is exhausted or the next one begun, the id is lost until the next collection.
        if self.word == (id >> 6) as usize {
            self.free |= 1 << (id & 63);
        }
    }
    /// True if the next node can be stored.
    #[inline]
    pub fn ready(&self) -> bool {
        self.free != 0
    }
    /// Returns every other unused id of a word, so that two threads can use a small table.
    #[cfg(all(test, loom))]
    pub fn half(&mut self) -> Self {
        let odd = self.free & 0xAAAA_AAAA_AAAA_AAAA;
        self.free ^= odd;
        Ids { word: self.word, free: odd, end: self.end }
    }
    /// Returns the number of unused ids that the table counts as used.
    pub fn unused_ids(&self) -> usize {
        self.free.count_ones() as usize
    }
}

/// One bit for each node, for the mark phase.
#[derive(Debug)]
pub(super) struct Marks(Vec<u64>);

impl Marks {
    pub fn new(ids: usize) -> Self {
        let mut marks = Marks(vec![0; ids.div_ceil(64)]);
        marks.0[0] = 3; // the terminals
        marks
    }
    #[inline]
    fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }
    /// True if the bit is set; `id` may be out of range.
    #[inline]
    pub fn get(&self, id: u32) -> bool {
        self.word((id >> 6) as usize) >> (id & 63) & 1 == 1
    }
    /// Sets the bit. Returns true if it was clear.
    #[inline]
    pub fn set(&mut self, id: u32) -> bool {
        let word = &mut self.0[(id >> 6) as usize];
        let bit = 1 << (id & 63);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}
