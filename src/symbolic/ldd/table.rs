//! The unique table: every node `(value, down, right)` is stored once, so equal sets have equal ids.
//!
//! A node takes 12 bytes in a flat array; an open-addressed index of ids (4 bytes an entry, linear probing, at most two thirds full)
//! finds it. Nodes are deleted only by a collection, which rebuilds the index and threads dead nodes on a free list; ids of
//! live nodes never change.
//!
//! Cost: a lookup is one multiplication and about two cache misses.

use super::Ldd;

/// A stored node: the vectors that begin with `value` go on in `down`, those with a higher first value are in `right`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// First value.
    pub value: u32,
    /// The rest of the vectors with that first value; never empty.
    pub down: Ldd,
    /// Vectors with a higher first value.
    pub right: Ldd,
}

/// The table; ids 0 and 1 are the terminals and have no meaningful node.
#[derive(Debug)]
pub(super) struct Table {
    nodes: Vec<Node>,
    index: Vec<u32>,
    shift: u32,
    free: u32,
    used: usize,
}

const TERMINAL: Node = Node { value: u32::MAX, down: Ldd::EMPTY, right: Ldd::EMPTY };

#[inline]
pub(super) fn mix(x: u64, y: u64) -> u64 {
    let p = u128::from(x ^ 0x9E37_79B9_7F4A_7C15) * u128::from(y ^ 0xD6E8_FEB8_6659_FD93);
    (p as u64) ^ ((p >> 64) as u64)
}

#[inline]
fn hash(value: u32, down: Ldd, right: Ldd) -> u64 {
    mix(u64::from(down.0) << 32 | u64::from(right.0), u64::from(value) << 20 | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Table {
    pub fn new(index_bits: u32) -> Self {
        Self { nodes: vec![TERMINAL; 2], index: vec![0; 1 << index_bits], shift: 64 - index_bits, free: 0, used: 0 }
    }
    #[inline]
    pub fn node(&self, id: Ldd) -> Node {
        self.nodes[id.0 as usize]
    }
    /// Nodes in use (live or not yet collected).
    pub fn used(&self) -> usize {
        self.used
    }
    /// One past the highest id.
    pub fn ids(&self) -> usize {
        self.nodes.len()
    }
    pub fn bytes(&self) -> u64 {
        (self.nodes.capacity() * size_of::<Node>() + self.index.capacity() * 4) as u64
    }
    /// Bytes that the next insertion would allocate at most, 0 mostly.
    #[inline]
    pub fn next_growth(&self) -> u64 {
        let mut bytes = 0;
        if self.free == 0 && self.nodes.len() == self.nodes.capacity() {
            bytes += self.nodes.capacity() * size_of::<Node>();
        }
        if (self.used + 1) * 3 > self.index.len() * 2 {
            bytes += self.index.len() * 4;
        }
        bytes as u64
    }
    /// The id of the node if it is stored.
    #[inline]
    pub fn find(&self, value: u32, down: Ldd, right: Ldd) -> Result<Ldd, usize> {
        let mask = self.index.len() - 1;
        let mut at = (hash(value, down, right) >> self.shift) as usize;
        loop {
            let id = self.index[at];
            if id == 0 {
                return Err(at);
            }
            let n = &self.nodes[id as usize];
            if n.value == value && n.down == down && n.right == right {
                return Ok(Ldd(id));
            }
            at = (at + 1) & mask;
        }
    }
    /// Stores a node that [`Table::find`] did not find; `at` is the place it gave.
    pub fn insert(&mut self, at: usize, node: Node) -> Ldd {
        let id = if self.free != 0 {
            let id = self.free;
            self.free = self.nodes[id as usize].right.0;
            self.nodes[id as usize] = node;
            id
        } else {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        };
        self.index[at] = id;
        self.used += 1;
        if self.used * 3 > self.index.len() * 2 {
            let bits = self.index.len().trailing_zeros() + 1;
            self.index = vec![0; 1 << bits];
            self.shift = 64 - bits;
            self.reindex(None);
        }
        Ldd(id)
    }
    /// Whether all 2^32 ids are in use.
    #[inline]
    pub fn full(&self) -> bool {
        self.free == 0 && self.nodes.len() >= u32::MAX as usize
    }
    /// Deletes the nodes that are not marked.
    pub fn sweep(&mut self, marked: &Marks) {
        self.index.fill(0);
        self.free = 0;
        self.used = 0;
        self.reindex(Some(marked));
    }
    fn reindex(&mut self, marked: Option<&Marks>) {
        let mask = self.index.len() - 1;
        // A free node is told from a used one by its empty `down`.
        for id in (2..self.nodes.len()).rev() {
            let n = self.nodes[id];
            match marked {
                None if n.down == Ldd::EMPTY => continue,
                Some(marks) if !marks.get(id as u32) => {
                    self.nodes[id] = Node { value: 0, down: Ldd::EMPTY, right: Ldd(self.free) };
                    self.free = id as u32;
                    continue;
                }
                Some(_) => self.used += 1,
                None => {}
            }
            let mut at = (hash(n.value, n.down, n.right) >> self.shift) as usize;
            while self.index[at] != 0 {
                at = (at + 1) & mask;
            }
            self.index[at] = id as u32;
        }
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
    pub fn get(&self, id: u32) -> bool {
        self.0[(id >> 6) as usize] >> (id & 63) & 1 == 1
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
