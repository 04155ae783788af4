//! The unique table: every node `(value, down, right)` is stored once, so equal sets have equal
//! ids.
//!
//! A node takes 12 bytes in a flat array; an open-addressed index of ids (4 bytes an entry, linear
//! probing, at most two thirds full) finds it. Several threads may find and insert at once: ids are
//! handed out in batches, a node is written before its id is put into the index by one
//! compare-and-exchange, and of two threads with the same node the first one wins. Growth and
//! collection need `&mut`, so they happen while nobody else looks. Nodes are deleted only by a
//! collection, which rebuilds the index and remembers which ids are taken; ids of live nodes
//! never change.
//!
//! Cost: a lookup is one multiplication and about two cache misses; a new node one
//! compare-and-exchange more.
//!
//! Invariants: a node whose id is in the index never changes; an id that is not in use has an empty
//! `down`; the index has room for half as many entries again as there are places for nodes, so that
//! probing ends.

use super::Ldd;
use mu_base::atomics::{AtomicU32, AtomicUsize, Ordering};

/// A stored node: the vectors that begin with `value` go on in `down`, those with a higher first
/// value are in `right`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// First value.
    pub value: u32,
    /// The rest of the vectors with that first value; never empty.
    pub down: Ldd,
    /// Vectors with a higher first value.
    pub right: Ldd,
}

/// A node as its three words.
#[derive(Debug, Default)]
struct Cell([AtomicU32; 3]);

/// Words of 64 ids that are handed out together.
const BATCH: usize = 4;

/// Ids that one thread may use: a word of 64 with the bits of those not used yet, and the words up
/// to the end of the batch.
#[derive(Debug, Default)]
pub(super) struct Ids {
    word: usize,
    free: u64,
    end: usize,
}

/// The table; ids 0 and 1 are the terminals and have no meaningful node.
#[derive(Debug)]
pub(super) struct Table {
    nodes: Vec<Cell>,
    index: Vec<AtomicU32>,
    shift: u32,
    /// Bits of the ids that were in use after the last collection; there are none beyond its end.
    taken: Marks,
    /// Word of 64 ids that is handed out next.
    cursor: AtomicUsize,
    /// Ids in use after the last collection, and those handed out since.
    used: AtomicUsize,
}

#[inline]
pub(super) fn mix(x: u64, y: u64) -> u64 {
    let p = u128::from(x ^ 0x9E37_79B9_7F4A_7C15) * u128::from(y ^ 0xD6E8_FEB8_6659_FD93);
    (p as u64) ^ ((p >> 64) as u64)
}

#[inline]
fn hash(node: Node) -> u64 {
    mix(u64::from(node.down.0) << 32 | u64::from(node.right.0), u64::from(node.value) << 20 | 1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(all(test, loom))]
impl Node {
    /// Where the search for it begins in the least index.
    pub(super) fn home(self) -> u64 {
        hash(self) >> 57
    }
}

impl Table {
    /// A table whose index has 2^`index_bits` entries at first, with room for half as many nodes.
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
        table.nodes.resize_with((1 << index_bits) / 2, Cell::default);
        table
    }
    #[inline]
    pub fn node(&self, id: Ldd) -> Node {
        let Cell([value, down, right]) = &self.nodes[id.0 as usize];
        Node {
            value: value.load(Ordering::Relaxed),
            down: Ldd(down.load(Ordering::Relaxed)),
            right: Ldd(right.load(Ordering::Relaxed)),
        }
    }
    fn write(&self, id: u32, node: Node) {
        let Cell(words) = &self.nodes[id as usize];
        for (word, value) in words.iter().zip([node.value, node.down.0, node.right.0]) {
            word.store(value, Ordering::Relaxed);
        }
    }
    /// Ids in use (live or not yet collected), or handed out.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
    /// One past the highest id.
    pub fn ids(&self) -> usize {
        self.nodes.len()
    }
    pub fn bytes(&self) -> u64 {
        (self.nodes.capacity() * size_of::<Cell>() + self.index.capacity() * 4) as u64
    }

    /// The id of the node if it is stored; else where in the index it would be.
    #[inline]
    pub fn find(&self, node: Node) -> Result<Ldd, usize> {
        self.find_from(node, (hash(node) >> self.shift) as usize)
    }
    #[inline]
    fn find_from(&self, node: Node, mut at: usize) -> Result<Ldd, usize> {
        let mask = self.index.len() - 1;
        loop {
            // What was written before the id was put here is seen after this.
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
    /// Stores a node that [`Table::find`] did not find; `at` is the place it gave, and there has
    /// been no growth since. Whether it is new: another thread may have stored it first.
    pub fn insert(&self, mut at: usize, node: Node, ids: &mut Ids) -> Option<(Ldd, bool)> {
        let id = ids.next()?;
        self.write(id, node);
        loop {
            if self.index[at].compare_exchange(0, id, Ordering::Release, Ordering::Relaxed).is_ok()
            {
                return Some((Ldd(id), true));
            }
            match self.find_from(node, at) {
                Ok(other) => {
                    self.write(id, Node { value: 0, down: Ldd::EMPTY, right: Ldd::EMPTY });
                    ids.give_back(id);
                    return Some((other, false));
                }
                Err(free) => at = free,
            }
        }
    }

    /// Hands out ids; whether there were any. If not, the table must grow.
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
                // So that the cursor does not run away when this is asked often.
                self.cursor.fetch_min(self.nodes.len() / 64, Ordering::Relaxed);
                *ids = Ids::default();
                return false;
            }
        }
    }

    /// What growth adds: to nodes, and to the index, in elements.
    fn growth(&self) -> (usize, usize) {
        let nodes = self.nodes.len();
        let more = if nodes < 1 << 20 { nodes } else { nodes / 4 }
            .min((u32::MAX as usize).saturating_sub(nodes))
            / 64
            * 64;
        let index = if (nodes + more) * 3 > self.index.len() * 2 { self.index.len() } else { 0 };
        (more, index)
    }
    /// Bytes that growth allocates, at most.
    pub fn growth_bytes(&self) -> u64 {
        let (nodes, index) = self.growth();
        // The old index is freed only when the new one is there.
        (nodes * size_of::<Cell>() + index * 8) as u64
    }
    /// Whether it cannot grow any more.
    pub fn full(&self) -> bool {
        self.growth().0 == 0
    }
    /// Makes room.
    pub fn grow(&mut self) {
        let (nodes, index) = self.growth();
        self.nodes.reserve_exact(nodes);
        self.nodes.resize_with(self.nodes.len() + nodes, Cell::default);
        if index > 0 {
            self.reindex(self.index.len().trailing_zeros() + 1);
        }
    }
    /// Deletes the nodes that are not marked. Ids that were handed out and not used must have been
    /// given up.
    pub fn sweep(&mut self, marked: Marks) {
        let mut live = 0;
        for id in 2..self.nodes.len() {
            if marked.get(id as u32) {
                live += 1;
            } else if self.nodes[id].0[1].load(Ordering::Relaxed) != 0 {
                self.nodes[id] = Cell::default();
            }
        }
        self.taken = marked;
        self.used = AtomicUsize::new(live);
        self.cursor = AtomicUsize::new(0);
        self.reindex(self.index.len().trailing_zeros());
    }
    fn reindex(&mut self, bits: u32) {
        // The old one first, so that memory holds one only.
        self.index = Vec::new();
        self.index.resize_with(1 << bits, AtomicU32::default);
        self.shift = 64 - bits;
        let mask = self.index.len() - 1;
        for id in 2..self.nodes.len() {
            let n = self.node(Ldd(id as u32));
            if n.down == Ldd::EMPTY {
                continue;
            }
            let mut at = (hash(n) >> self.shift) as usize;
            while self.index[at].load(Ordering::Relaxed) != 0 {
                at = (at + 1) & mask;
            }
            self.index[at] = AtomicU32::new(id as u32);
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
        let id = (self.word as u32) << 6 | bit;
        if self.free == 0 {
            self.word += 1;
        }
        Some(id)
    }
    fn give_back(&mut self, id: u32) {
        // The word may be used up, or the next one begun: then the id is lost until the next
        // collection.
        if self.word == (id >> 6) as usize {
            self.free |= 1 << (id & 63);
        }
    }
    /// Whether the next node can be stored.
    #[inline]
    pub fn ready(&self) -> bool {
        self.free != 0
    }
    /// Gives away every other one that is left of a word, so that two threads have some of a small
    /// table.
    #[cfg(all(test, loom))]
    pub fn half(&mut self) -> Self {
        let odd = self.free & 0xAAAA_AAAA_AAAA_AAAA;
        self.free ^= odd;
        Ids { word: self.word, free: odd, end: self.end }
    }
    /// Ids not used yet that the table counts as used.
    pub fn unused(&self) -> usize {
        self.free.count_ones() as usize
    }
}

/// A bit a node, for the mark phase.
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
    /// Whether the bit is set; there need not be such an id.
    #[inline]
    pub fn get(&self, id: u32) -> bool {
        self.word((id >> 6) as usize) >> (id & 63) & 1 == 1
    }
    /// Sets the bit; whether it was clear.
    #[inline]
    pub fn set(&mut self, id: u32) -> bool {
        let word = &mut self.0[(id >> 6) as usize];
        let bit = 1 << (id & 63);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}
