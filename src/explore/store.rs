//! State store: maps a state to a 63-bit key and back, by a lossless compressed tree with a wide
//! root.
//!
//! In: vectors of `u32` slots. Out: keys for [`super::table`]. The slots are partitioned into
//! *leaves* (initially the parallel components); each leaf interns its tuple of values into an
//! index. The indices are packed side by side into one word, the root. If they need more bits,
//! pairs of subtrees are folded into *inner nodes* (tables of index pairs), after Laarman, van de
//! Pol, Weber: "Parallel Recursive State Compression for Free" (SPIN 2011). Unlike there, the root
//! is as wide as a word allows. So for most models the tree is one level deep, and a step of a few
//! components changes the key by one addition.
//!
//! Field widths and the tree are not known in advance: they follow the sizes of the tables and a
//! sample of the states ([`super::tree_layout`]). When an index exceeds its field a worker reports
//! [`Overflow`], the search pauses, and [`Store::replan`] repacks all states. A good tree is
//! retained, and only the bits move ([`Store::widen`]). Fields get all spare bits, so this happens
//! a few times a run, mostly when there are few states. A leaf that has nearly as many values as
//! there are states compresses nothing; it is split in two.
//!
//! Invariant: two vectors have the same key if and only if they are equal (under one epoch of the
//! layout).

use fixedbitset::FixedBitSet;
use mu_base::narrow;
use std::collections::HashSet;

use super::intern::{LeafTable, PairCache, PairTable};
use super::table::{Growth, Insert, Payload, StateTable, TableSizes, short_bits};
use super::tree_layout;
use mu_model::Model;

/// Bits of a key.
pub(super) const KEY_BITS: u32 = 63;
/// A leaf is split if its number of values exceeds this fraction of the states.
const LEAF_SHARE: u64 = 8;
/// Spare bits of keys with short entries.
const SHORT_SPARE: u32 = 2;
/// Number of states below which no leaf is split, and each layout chooses a new tree.
const LEAF_JUDGED: u64 = 1 << 12;

/// Weight of an inner node's field relative to that of a saturated leaf, when spare bits are
/// distributed.
const NODE_ROOM: f64 = 1.0 / 4.0;

/// States inserted together during repacking.
const REFILL_BATCH: usize = 256;

/// Size of the sample in which the values of inner nodes are counted.
const SAMPLE: usize = 1 << 15;
/// A tree is good while the values of each inner node are at most this fraction of the states.
pub(super) const NODE_SHARE: u64 = 32;
/// Limit on the tuples of a leaf that are read to count the values of slots.
const MAX_COUNTED: u32 = 1 << 22;

/// An index exceeds its field: the search must pause and repack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Overflow;

/// A subtree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bincode::Encode, bincode::Decode)]
pub(crate) enum Child {
    /// A leaf by number.
    Leaf(u32),
    /// An inner node by number; it has a greater number than its children.
    Node(u32),
}

/// A field of the root.
#[derive(Clone, Copy, Debug, bincode::Encode, bincode::Decode)]
pub(crate) struct Field {
    /// The indexed subtree.
    pub child: Child,
    /// Lowest bit.
    pub offset: u32,
    /// Bits.
    pub width: u32,
}

/// A leaf: some slots and the table of their values.
pub(crate) struct Leaf {
    /// The slots, ascending.
    pub slots: Vec<u32>,
    /// Their values.
    pub table: LeafTable,
}

struct StoreNode {
    children: [Child; 2],
    table: PairTable,
}

/// Storage outside the table (queue, spill files) that must be repacked when the layout changes.
pub(crate) trait ExternalStates {
    /// Converts all keys. `convert` maps an old key to the new one. If it fails, the new layout
    /// cannot hold a state: returns its leaves, with nothing changed.
    fn repack(
        &mut self,
        old: &StateTable,
        new: &StateTable,
        convert: &mut dyn FnMut(u64) -> Result<u64, Vec<u32>>,
    ) -> Result<(), Vec<u32>>;
}

/// No external storage.
struct NoExternalStates;

impl ExternalStates for NoExternalStates {
    fn repack(
        &mut self,
        _: &StateTable,
        _: &StateTable,
        _: &mut dyn FnMut(u64) -> Result<u64, Vec<u32>>,
    ) -> Result<(), Vec<u32>> {
        Ok(())
    }
}

/// The layout and the tables of a store as plain data.
#[derive(bincode::Encode, bincode::Decode)]
pub(crate) struct Parts {
    pub leaves: Vec<LeafPart>,
    pub nodes: Vec<NodePart>,
    pub fields: Vec<Field>,
    slots: u64,
}

/// A leaf: its slots, and its consecutive tuples.
#[derive(bincode::Encode, bincode::Decode)]
pub(crate) struct LeafPart {
    pub slots: Vec<u32>,
    pub rows: Vec<u32>,
    count: u64,
}

/// An inner node: its children, and its pairs.
#[derive(bincode::Encode, bincode::Decode)]
pub(crate) struct NodePart {
    pub children: [Child; 2],
    pub pairs: Vec<u64>,
}

/// The state store; see the module header.
pub(crate) struct Store {
    /// Number of the layout; caches of keys or leaf numbers are invalid after it changes.
    pub epoch: u64,
    /// The leaves.
    pub leaves: Vec<Leaf>,
    nodes: Vec<StoreNode>,
    /// The fields of the root.
    pub fields: Vec<Field>,
    /// By slot: its leaf and the position in it.
    pub homes: Vec<(u32, u32)>,
    /// By leaf: the field above it, and true if the leaf is the field.
    pub field_of: Vec<(u32, bool)>,
    /// By field: the inner nodes under it, from its root down; a node has a greater number than its
    /// children.
    members: Vec<Vec<u32>>,
    /// By leaf: bits of the inner nodes above it.
    above: Vec<Vec<u64>>,
    /// By inner node: the field that it is, if any.
    field_at: Vec<Option<u32>>,
    /// The states.
    pub table: StateTable,
    slots: usize,
    /// Number of states at the last failed attempt to shorten entries.
    refused: u64,
}

pub(super) fn bits_for(count: usize) -> u32 {
    usize::BITS - count.leading_zeros()
}

impl Store {
    /// Creates an empty store for a model.
    pub fn new(model: &dyn Model, expected: u64, payload: Payload, sizes: TableSizes) -> Self {
        Self::in_parts(model, expected, payload, sizes, usize::MAX)
    }

    /// Creates an empty store with leaves of at most `most` slots, equal in every store of this
    /// model; for searches that cannot split leaves later.
    pub fn in_parts(
        model: &dyn Model,
        expected: u64,
        payload: Payload,
        sizes: TableSizes,
        most: usize,
    ) -> Self {
        let slots = model.slots().len();
        let mut components: Vec<u32> = model.slots().iter().map(|s| s.component).collect();
        components.sort_unstable();
        components.dedup();
        let leaves: Vec<Vec<u32>> = components
            .iter()
            .flat_map(|&c| {
                let own: Vec<u32> = (0..narrow::index(slots))
                    .filter(|&s| model.slots()[s as usize].component == c)
                    .collect();
                // Divide evenly.
                let size = own.len().div_ceil(own.len().div_ceil(most).max(1)).max(1);
                own.chunks(size).map(<[u32]>::to_vec).collect::<Vec<_>>()
            })
            .collect();
        Self::of_leaves(slots, &leaves, expected, payload, sizes)
    }

    /// Creates an empty store with these leaves, which contain each slot once.
    pub fn of_leaves(
        slots: usize,
        leaves: &[Vec<u32>],
        expected: u64,
        payload: Payload,
        sizes: TableSizes,
    ) -> Self {
        let leaves = leaves
            .iter()
            .map(|slots| Leaf { table: LeafTable::new(slots.len()), slots: slots.clone() })
            .collect();
        let mut store = Self {
            epoch: 0,
            leaves,
            nodes: Vec::new(),
            fields: Vec::new(),
            homes: Vec::new(),
            field_of: Vec::new(),
            members: Vec::new(),
            above: Vec::new(),
            field_at: Vec::new(),
            table: StateTable::new(KEY_BITS, 0, payload, sizes),
            slots,
            refused: 0,
        };
        store.choose_layout(&[], 0, expected);
        store.table = StateTable::new(store.key_bits(), expected, payload, sizes);
        store
    }

    /// Lays out the root from the leaves' counts and a sample of states (leaf indices). `margin`:
    /// additional bits of inner nodes; `expected`: states that the table is made for.
    fn choose_layout(&mut self, sample: &[Vec<u32>], margin: u32, expected: u64) {
        self.epoch += 1;
        self.homes = vec![(0, 0); self.slots];
        for (l, leaf) in self.leaves.iter().enumerate() {
            for (p, &slot) in leaf.slots.iter().enumerate() {
                self.homes[slot as usize] = (narrow::index(l), narrow::index(p));
            }
        }
        let counts: Vec<usize> = self.leaves.iter().map(|l| l.table.len()).collect();
        let (nodes, tops) = tree_layout::choose(&counts, sample, margin, expected);
        self.nodes = nodes
            .into_iter()
            .map(|children| StoreNode { children, table: PairTable::new() })
            .collect();
        let needs: Vec<(Child, u32, f64)> = tops
            .iter()
            .map(|t| match t.child {
                Child::Leaf(l) => (
                    t.child,
                    t.bits,
                    (1u64 << t.bits) as f64 / self.leaves[l as usize].table.len().max(1) as f64,
                ),
                Child::Node(_) => (t.child, t.bits, NODE_ROOM),
            })
            .collect();
        self.lay_out(&needs, expected);
    }

    /// Lays fields side by side. `needs`: subtree, required bits, and relative room of each field.
    /// Keys are short enough for short entries if possible. Spare bits go to the field that is
    /// closest to overflow.
    fn lay_out(&mut self, needs: &[(Child, u32, f64)], expected: u64) {
        let needed = needs.iter().map(|n| n.1).sum::<u32>();
        let total = short_bits(expected, self.table.sizes())
            .filter(|&most| needed + SHORT_SPARE <= most)
            .unwrap_or(KEY_BITS)
            .min(KEY_BITS);
        let mut room: Vec<(f64, u32)> = needs.iter().map(|n| (n.2, n.1)).collect();
        for _ in needed..total {
            let Some(least) =
                room.iter_mut().filter(|r| r.1 < 32).min_by(|a, b| a.0.total_cmp(&b.0))
            else {
                break;
            };
            *least = (least.0 * 2.0, least.1 + 1);
        }
        let mut offset = 0;
        self.fields.clear();
        for (need, &(_, width)) in needs.iter().zip(&room) {
            self.fields.push(Field { child: need.0, offset, width });
            offset += width;
        }
        self.place_leaves();
    }

    /// Returns the needs of the fields in the current tree. `None` if they cannot be satisfied, or
    /// if an inner node has a number of values with which another tree would save much.
    fn needs(&self) -> Option<Vec<(Child, u32, f64)>> {
        let states = self.table.len();
        let good = self.nodes.iter().all(|n| n.table.len() as u64 * NODE_SHARE <= states);
        if !good || states < LEAF_JUDGED {
            return None;
        }
        // An inner node keeps growing with the states, while most leaves already have all their
        // values. So nodes get an additional bit if there is one. Otherwise the proven tree is
        // still better than a new guess.
        [1, 0]
            .into_iter()
            .map(|more| self.needs_with(more))
            .find(|needs| needs.iter().map(|n| n.1).sum::<u32>() <= KEY_BITS)
    }

    fn needs_with(&self, more: u32) -> Vec<(Child, u32, f64)> {
        let need = |f: &Field| {
            let (count, more, room) = match f.child {
                Child::Leaf(l) => (self.leaves[l as usize].table.len(), 0, 1.0),
                Child::Node(n) => (self.nodes[n as usize].table.len(), more, NODE_ROOM),
            };
            let bits = (bits_for(count) + more).clamp(1, 31);
            (f.child, bits, (1u64 << bits) as f64 / count.max(1) as f64 * room)
        };
        self.fields.iter().map(need).collect()
    }

    /// Repacks all states in the same tree; only the widths of the fields change.
    fn widen(
        &mut self,
        needs: &[(Child, u32, f64)],
        held: Vec<&mut u64>,
        outside: &mut dyn ExternalStates,
    ) {
        let expected = self.expected_keys();
        let before = self.fields.clone();
        self.epoch += 1;
        self.lay_out(needs, expected);
        let sizes = self.table.sizes();
        let old = std::mem::replace(&mut self.table, StateTable::new(0, 0, Payload::None, sizes));
        self.table = StateTable::new(self.key_bits(), expected, old.payload_kind(), sizes);
        let fields: Vec<(u32, u64, u32)> = before
            .iter()
            .zip(&self.fields)
            .map(|(b, f)| (b.offset, (1 << b.width) - 1, f.offset))
            .collect();
        let convert = |key: u64| {
            fields.iter().map(|(from, mask, to)| (key >> from & mask) << to).sum::<u64>()
        };
        let refilled: Result<(), ()> = self.refill(&old, &mut |_, key| Ok(convert(key)));
        let moved = outside.repack(&old, &self.table, &mut |key| Ok(convert(key)));
        debug_assert!(refilled.is_ok() && moved.is_ok());
        held.into_iter().for_each(|key| *key = convert(*key));
        self.refused = if self.table.is_short() { 0 } else { old.len() };
    }

    /// Inserts the states of a table by their new keys, with their payloads. Touches the entries of
    /// a batch first, so that their cache misses overlap.
    fn refill<E>(
        &mut self,
        old: &StateTable,
        convert: &mut dyn FnMut(&Store, u64) -> Result<u64, E>,
    ) -> Result<(), E> {
        let mut entries = old.entries();
        let mut batch: Vec<(u64, u64)> = Vec::with_capacity(REFILL_BATCH);
        loop {
            batch.clear();
            for (place, key) in entries.by_ref().take(REFILL_BATCH) {
                batch.push((place, self.table.hash(convert(self, key)?)));
            }
            if batch.is_empty() {
                return Ok(());
            }
            std::hint::black_box(
                batch.iter().fold(0, |all, &(_, hash)| all ^ self.table.touch(hash)),
            );
            for &(place, hash) in &batch {
                loop {
                    match self.table.insert_hashed(hash) {
                        Insert::New(at) | Insert::Old(at) => {
                            self.table.set_payload(at, old.payload(place));
                            self.table.add_len(1);
                            break;
                        }
                        Insert::Full => self.table.grow(Growth::default()),
                    }
                }
            }
            if self.table.is_crowded() {
                self.table.grow(Growth::default());
            }
        }
    }

    /// Computes the field of each leaf, and the nodes between them.
    fn place_leaves(&mut self) {
        self.field_of = vec![(0, false); self.leaves.len()];
        self.members = vec![Vec::new(); self.fields.len()];
        self.above = vec![vec![0; self.nodes.len().div_ceil(64)]; self.leaves.len()];
        self.field_at = vec![None; self.nodes.len()];
        for f in 0..self.fields.len() {
            let child = self.fields[f].child;
            if let Child::Node(n) = child {
                self.field_at[n as usize] = Some(narrow::index(f));
            }
            let mut todo = vec![(child, vec![0u64; self.nodes.len().div_ceil(64)])];
            while let Some((c, mut above)) = todo.pop() {
                match c {
                    Child::Leaf(l) => {
                        self.field_of[l as usize] = (narrow::index(f), c == child);
                        self.above[l as usize] = above;
                    }
                    Child::Node(n) => {
                        self.members[f].push(n);
                        above[n as usize / 64] |= 1 << (n % 64);
                        todo.extend(self.nodes[n as usize].children.map(|c| (c, above.clone())));
                    }
                }
            }
            self.members[f].sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// Returns the number of keys that a new table is made for.
    fn expected_keys(&self) -> u64 {
        self.table.len() + self.table.len() / 4
    }
    /// Makes room for `states` states in an empty store.
    pub fn reserve(&mut self, states: u64) {
        if self.table.len() == 0 {
            let (payload, sizes) = (self.table.payload_kind(), self.table.sizes());
            self.table = StateTable::new(self.key_bits(), states + states / 4, payload, sizes);
        }
    }
    /// Returns the current width of keys.
    pub fn key_bits(&self) -> u32 {
        self.fields.iter().map(|f| f.width).sum()
    }
    /// True if repacking all states could shorten the entries.
    pub fn could_be_short(&self) -> bool {
        let bits = |f: &Field| match f.child {
            Child::Leaf(l) => bits_for(self.leaves[l as usize].table.len()),
            Child::Node(n) => bits_for(self.nodes[n as usize].table.len()) + 1,
        };
        let needed = self.fields.iter().map(bits).sum::<u32>() + SHORT_SPARE;
        !self.table.is_short()
            && self.table.len() >= 2 * self.refused
            && short_bits(self.expected_keys(), self.table.sizes())
                .is_some_and(|most| needed <= most)
    }
    /// Returns the first index that a field cannot hold.
    pub fn capacity(&self, field: u32) -> u64 {
        1 << self.fields[field as usize].width
    }
    /// Unpacks the leaf indices of a key into `out`, which has one element for each leaf.
    pub fn unpack(&self, key: u64, out: &mut [u32]) {
        self.with_inner(|inner| self.unpack_all(key, out, inner));
    }
    /// Unpacks the indices of leaves and inner nodes of a key.
    #[inline]
    pub fn unpack_all(&self, key: u64, leaves: &mut [u32], inner: &mut [u32]) {
        for (field, members) in self.fields.iter().zip(&self.members) {
            // A field has at most 31 bits.
            let index = ((key >> field.offset) & ((1 << field.width) - 1)) as u32;
            match field.child {
                Child::Leaf(l) => leaves[l as usize] = index,
                Child::Node(n) => inner[n as usize] = index,
            }
            for &n in members {
                let node = &self.nodes[n as usize];
                let pair = node.table.get(inner[n as usize]);
                for (child, index) in
                    [(node.children[0], narrow::high(pair)), (node.children[1], narrow::low(pair))]
                {
                    match child {
                        Child::Leaf(l) => leaves[l as usize] = index,
                        Child::Node(n) => inner[n as usize] = index,
                    }
                }
            }
        }
    }
    /// Provides a buffer for the indices of all inner nodes, without allocation for most models.
    #[inline]
    fn with_inner<T>(&self, then: impl FnOnce(&mut [u32]) -> T) -> T {
        let mut few = [0; 64];
        match few.get_mut(..self.nodes.len()) {
            Some(inner) => then(inner),
            None => then(&mut vec![0; self.nodes.len()]),
        }
    }
    /// Returns the number of inner nodes.
    pub fn nodes_count(&self) -> usize {
        self.nodes.len()
    }
    /// Returns the bits of the inner nodes above a leaf.
    pub fn above(&self, leaf: u32) -> &[u64] {
        &self.above[leaf as usize]
    }
    /// Returns the field that an inner node is, if any.
    #[inline]
    pub fn field_at(&self, node: u32) -> Option<u32> {
        self.field_at[node as usize]
    }
    /// Returns the pair of an inner node, from indices of leaves and inner nodes.
    #[inline]
    pub fn pair_of(&self, node: u32, leaves: &[u32], inner: &[u32]) -> u64 {
        let [a, b] = self.nodes[node as usize].children.map(|c| match c {
            Child::Leaf(l) => leaves[l as usize],
            Child::Node(n) => inner[n as usize],
        });
        u64::from(a) << 32 | u64::from(b)
    }
    /// Returns the children of an inner node, with their indices in one of its pairs.
    #[inline]
    pub fn children(&self, node: u32, index: u32) -> [(Child, u32); 2] {
        let StoreNode { children: [a, b], table } = &self.nodes[node as usize];
        let pair = table.get(index);
        [(*a, narrow::high(pair)), (*b, narrow::low(pair))]
    }
    /// Returns the index of a pair at an inner node; adds it if it is new.
    pub fn intern_pair(&self, node: u32, pair: u64) -> u32 {
        self.nodes[node as usize].table.intern(pair)
    }
    /// Returns a key with another index in a field that can hold it.
    #[inline]
    pub fn with_field(&self, key: u64, field: u32, index: u32) -> u64 {
        let f = &self.fields[field as usize];
        let mask = ((1u64 << f.width) - 1) << f.offset;
        key & !mask | u64::from(index) << f.offset
    }
    /// Returns the key of leaf indices.
    pub fn pack(&self, leaves: &[u32]) -> Result<u64, Overflow> {
        self.with_inner(|inner| {
            self.pack_by(leaves, inner, &mut |node, pair| self.intern_pair(node, pair))
        })
    }
    /// Packs as [`Store::pack`], with a buffer for inner nodes and a lookup of pairs.
    #[inline]
    pub fn pack_by(
        &self,
        leaves: &[u32],
        inner: &mut [u32],
        index_of: &mut impl FnMut(u32, u64) -> u32,
    ) -> Result<u64, Overflow> {
        let mut key = 0;
        for (f, (field, members)) in self.fields.iter().zip(&self.members).enumerate() {
            for &n in members.iter().rev() {
                inner[n as usize] = index_of(n, self.pair_of(n, leaves, inner));
            }
            let index = match field.child {
                Child::Leaf(l) => leaves[l as usize],
                Child::Node(n) => inner[n as usize],
            };
            if u64::from(index) >= self.capacity(narrow::index(f)) {
                return Err(Overflow);
            }
            key |= u64::from(index) << field.offset;
        }
        Ok(key)
    }
    /// Returns the leaf indices of a vector; adds new tuples.
    pub fn intern(&self, vector: &[u32]) -> Vec<u32> {
        let mut row = Vec::new();
        self.leaves
            .iter()
            .map(|leaf| {
                row.clear();
                row.extend(leaf.slots.iter().map(|&s| vector[s as usize]));
                leaf.table.intern(&row)
            })
            .collect()
    }
    /// Returns the key of a vector.
    pub fn encode(&self, vector: &[u32]) -> Result<u64, Overflow> {
        self.pack(&self.intern(vector))
    }
    /// Returns the vector of leaf indices.
    pub fn vector_of(&self, leaves: &[u32]) -> Vec<u32> {
        let mut vector = vec![0; self.slots];
        let mut row = Vec::new();
        for (leaf, &index) in self.leaves.iter().zip(leaves) {
            row.clear();
            leaf.table.read(index, &mut row);
            for (&slot, &value) in leaf.slots.iter().zip(&row) {
                vector[slot as usize] = value;
            }
        }
        vector
    }
    /// Returns the vector of a key.
    pub fn vector(&self, key: u64) -> Vec<u32> {
        let mut leaves = vec![0; self.leaves.len()];
        self.unpack(key, &mut leaves);
        self.vector_of(&leaves)
    }
    /// True if an index table is so large that replanning cannot help.
    pub fn at_limit(&self) -> bool {
        let leaf = self.leaves.iter().any(|l| l.table.len() >= (1 << 31) - 1);
        leaf || self.nodes.iter().any(|n| n.table.len() >= (1 << 31) - 1)
    }
    /// Counts the values of each slot. Samples at most [`MAX_COUNTED`] tuples of a leaf, evenly
    /// spread.
    pub fn slot_values(&self) -> Vec<u64> {
        let mut found = vec![0; self.slots];
        let mut row = Vec::new();
        for leaf in &self.leaves {
            let mut seen: Vec<FixedBitSet> = vec![FixedBitSet::new(); leaf.slots.len()];
            let count = narrow::index(leaf.table.len());
            for i in (0..count).step_by((count / MAX_COUNTED) as usize + 1) {
                row.clear();
                leaf.table.read(i, &mut row);
                for (seen, &value) in seen.iter_mut().zip(&row) {
                    seen.grow_and_insert(value as usize);
                }
            }
            for (&slot, seen) in leaf.slots.iter().zip(seen) {
                found[slot as usize] = seen.count_ones(..) as u64;
            }
        }
        found
    }
    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        let leaves: u64 = self.leaves.iter().map(|l| l.table.bytes()).sum();
        let nodes: u64 = self.nodes.iter().map(|n| n.table.bytes()).sum();
        self.table.bytes() + leaves + nodes
    }

    /// Returns layout and tables, without the states.
    pub fn parts(&self) -> Parts {
        let leaf = |l: &Leaf| {
            let mut rows = Vec::new();
            (0..narrow::index(l.table.len())).for_each(|i| l.table.read(i, &mut rows));
            LeafPart { slots: l.slots.clone(), rows, count: l.table.len() as u64 }
        };
        let node = |n: &StoreNode| NodePart {
            children: n.children,
            pairs: (0..narrow::index(n.table.len())).map(|i| n.table.get(i)).collect(),
        };
        Parts {
            leaves: self.leaves.iter().map(leaf).collect(),
            nodes: self.nodes.iter().map(node).collect(),
            fields: self.fields.clone(),
            slots: self.slots as u64,
        }
    }
    /// Creates a store with this layout, without states, made for `states` of them.
    pub fn from_parts(
        parts: Parts,
        states: u64,
        payload: Payload,
        sizes: TableSizes,
    ) -> Result<Self, String> {
        let wrong = || "an inconsistent layout of states".to_string();
        let mut homes =
            vec![
                None;
                usize::try_from(parts.slots).ok().filter(|n| *n < 1 << 24).ok_or_else(wrong)?
            ];
        for (l, leaf) in parts.leaves.iter().enumerate() {
            for (p, slot) in leaf.slots.iter().enumerate() {
                *homes.get_mut(*slot as usize).ok_or_else(wrong)? =
                    Some((narrow::index(l), narrow::index(p)));
            }
        }
        let homes: Vec<(u32, u32)> = homes.into_iter().collect::<Option<_>>().ok_or_else(wrong)?;
        if !parts.is_tree() {
            return Err(wrong());
        }
        let mut leaves = Vec::new();
        for part in parts.leaves {
            let table = LeafTable::new(part.slots.len());
            if part.slots.is_empty() {
                (0..part.count.min(1)).for_each(|_| {
                    table.intern(&[]);
                });
            } else {
                part.rows.chunks(part.slots.len()).for_each(|row| {
                    table.intern(row);
                });
            }
            if table.len() as u64 != part.count {
                return Err(wrong());
            }
            leaves.push(Leaf { slots: part.slots, table });
        }
        let mut nodes = Vec::new();
        for part in parts.nodes {
            let table = PairTable::new();
            part.pairs.iter().for_each(|pair| {
                table.intern(*pair);
            });
            if table.len() != part.pairs.len() {
                return Err(wrong());
            }
            nodes.push(StoreNode { children: part.children, table });
        }
        let bits = parts.fields.iter().map(|f| f.width).sum();
        let mut store = Store {
            epoch: 1,
            leaves,
            nodes,
            fields: parts.fields,
            slots: homes.len(),
            homes,
            field_of: Vec::new(),
            members: Vec::new(),
            above: Vec::new(),
            field_at: Vec::new(),
            table: StateTable::new(bits, states + states / 8, payload, sizes),
            refused: 0,
        };
        store.place_leaves();
        Ok(store)
    }

    /// Returns a leaf that has too many values to compress anything; `None` if there is none.
    pub fn unfit_leaf(&self) -> Option<usize> {
        let states = self.table.len();
        if states < LEAF_JUDGED {
            return None;
        }
        (0..self.leaves.len()).find(|&l| {
            self.leaves[l].slots.len() > 1
                && self.leaves[l].table.len() as u64 * LEAF_SHARE > states
        })
    }

    /// Repacks all states with wider fields, another tree, or a split leaf; also converts the keys
    /// in `held`. O(states); temporarily needs memory for two copies.
    pub fn replan<'k>(&mut self, held: impl Iterator<Item = &'k mut u64>, split: Option<usize>) {
        self.replan_with(held, split, &mut NoExternalStates);
    }
    /// Replans as [`Store::replan`], with storage outside the table.
    pub fn replan_with<'k>(
        &mut self,
        held: impl Iterator<Item = &'k mut u64>,
        split: Option<usize>,
        outside: &mut dyn ExternalStates,
    ) {
        let held: Vec<&mut u64> = held.collect();
        if let (None, Some(needs)) = (split, self.needs()) {
            return self.widen(&needs, held, outside);
        }
        let count = self.leaves.len();
        let stride = (self.table.len() as usize + held.len())
            .div_ceil(SAMPLE.max(tree_layout::sample_size(count)))
            .max(1);
        let every =
            self.table.entries().map(|e| e.1).chain(held.iter().map(|k| **k)).step_by(stride);
        let mut sample: Vec<Vec<u32>> = every
            .map(|key| {
                let mut leaves = vec![0; count];
                self.unpack(key, &mut leaves);
                leaves
            })
            .collect();
        if let Some(l) = split {
            let (left, right) = self.halves(l, &sample);
            let vectors: Vec<Vec<u32>> = sample.iter().map(|s| self.vector_of(s)).collect();
            let old = self.fork(Some((l, left, right)));
            sample = vectors.iter().map(|v| self.intern(v)).collect();
            self.repack(&old, &sample, held, Some(l), outside);
        } else {
            let old = self.fork(None);
            self.repack(&old, &sample, held, None, outside);
        }
    }

    /// Chooses the split of a leaf: the cut of its slots, in order, after which the halves have the
    /// fewest values in the sample.
    fn halves(&self, leaf: usize, sample: &[Vec<u32>]) -> (Vec<u32>, Vec<u32>) {
        let slots = &self.leaves[leaf].slots;
        let mut indices: Vec<u32> = sample.iter().map(|s| s[leaf]).collect();
        indices.sort_unstable();
        indices.dedup();
        let rows: Vec<Vec<u32>> = indices
            .iter()
            .map(|&i| {
                let mut row = Vec::new();
                self.leaves[leaf].table.read(i, &mut row);
                row
            })
            .collect();
        let cost = |cut: usize| {
            let left =
                rows.iter().map(|r| &r[..cut]).collect::<HashSet<_, ahash::RandomState>>().len();
            let right =
                rows.iter().map(|r| &r[cut..]).collect::<HashSet<_, ahash::RandomState>>().len();
            left.max(right)
        };
        // A leaf has tens of slots; for a vector of hundreds a few cuts around the middle suffice.
        let n = slots.len();
        let cuts: Vec<usize> =
            if n <= 40 { (1..n).collect() } else { (n / 2 - 8..n / 2 + 8).collect() };
        let cut = cuts.into_iter().min_by_key(|&c| (cost(c), c.abs_diff(n / 2))).unwrap_or(n / 2);
        (slots[..cut].to_vec(), slots[cut..].to_vec())
    }

    /// Moves the present layout and states out into a store of their own; retains the leaf tables
    /// that do not change.
    fn fork(&mut self, split: Option<(usize, Vec<u32>, Vec<u32>)>) -> Store {
        let payload = self.table.payload_kind();
        let fresh = Store {
            epoch: self.epoch,
            leaves: Vec::new(),
            nodes: Vec::new(),
            fields: Vec::new(),
            homes: Vec::new(),
            field_of: Vec::new(),
            members: Vec::new(),
            above: Vec::new(),
            field_at: Vec::new(),
            table: StateTable::new(KEY_BITS, 0, payload, self.table.sizes()),
            slots: self.slots,
            refused: self.refused,
        };
        let mut old = std::mem::replace(self, fresh);
        match split {
            // The old leaves remain: repacking reads old keys by leaf index and vectors from them.
            Some((l, left, right)) => {
                for (i, leaf) in old.leaves.iter().enumerate() {
                    let parts = if i == l {
                        vec![left.clone(), right.clone()]
                    } else {
                        vec![leaf.slots.clone()]
                    };
                    for slots in parts {
                        self.leaves.push(Leaf { table: LeafTable::new(slots.len()), slots });
                    }
                }
            }
            // The leaves move; the old store gets empty ones, so that unpacking has the right
            // number.
            None => {
                self.leaves = std::mem::take(&mut old.leaves);
                old.leaves = self
                    .leaves
                    .iter()
                    .map(|l| Leaf { slots: l.slots.clone(), table: LeafTable::new(l.slots.len()) })
                    .collect();
            }
        }
        old
    }

    fn repack(
        &mut self,
        old: &Store,
        sample: &[Vec<u32>],
        mut held: Vec<&mut u64>,
        split: Option<usize>,
        outside: &mut dyn ExternalStates,
    ) {
        let mut sample = sample.to_vec();
        let mut margin = 0;
        'shape: loop {
            self.choose_layout(&sample, margin, old.expected_keys());
            margin = (margin + 1).min(31);
            let (mut leaves, mut inner) = (vec![0; old.leaves.len()], vec![0; self.nodes.len()]);
            let mut pairs = (old.table.len() >= LEAF_JUDGED).then(PairCache::new);
            let mut convert = |store: &Store, key: u64| -> Result<u64, Vec<u32>> {
                old.unpack(key, &mut leaves);
                let split = split.map(|_| store.intern(&old.vector_of(&leaves)));
                let new = split.as_ref().unwrap_or(&leaves);
                let index_of = &mut |node, pair| match &mut pairs {
                    Some(pairs) => pairs.index(node, pair, || store.intern_pair(node, pair)),
                    None => store.intern_pair(node, pair),
                };
                store.pack_by(new, &mut inner, index_of).map_err(|Overflow| new.clone())
            };
            let (payload, sizes) = (old.table.payload_kind(), old.table.sizes());
            self.table = StateTable::new(self.key_bits(), old.expected_keys(), payload, sizes);
            if let Err(leaves) = self.refill(&old.table, &mut convert) {
                // The sample was not representative: add this state. All counts have grown as well.
                sample.push(leaves);
                continue 'shape;
            }
            let mut fresh = Vec::with_capacity(held.len());
            for key in &held {
                match convert(self, **key) {
                    Ok(new) => fresh.push(new),
                    Err(leaves) => {
                        sample.push(leaves);
                        continue 'shape;
                    }
                }
            }
            if let Err(leaves) =
                outside.repack(&old.table, &self.table, &mut |key| convert(self, key))
            {
                sample.push(leaves);
                continue 'shape;
            }
            for (key, new) in held.iter_mut().zip(fresh) {
                **key = new;
            }
            self.refused = if self.table.is_short() { 0 } else { old.table.len() };
            return;
        }
    }
}
