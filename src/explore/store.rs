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
/// A leaf is split if it has more values than the number of states divided by this number.
const LEAF_SPLIT_DIVISOR: u64 = 8;
/// Spare bits of keys with short entries, which are those of keys of at most [`short_bits`] bits.
const SHORT_SPARE: u32 = 2;
/// Least number of states at which a leaf is split, and at which a layout may retain the tree.
const MIN_STATES_FOR_SPLIT: u64 = 1 << 12;

/// Weight of an inner node's field relative to that of a saturated leaf, when spare bits are
/// distributed.
const NODE_SPARE_WEIGHT: f64 = 1.0 / 4.0;

/// States inserted together during repacking.
const REFILL_BATCH: usize = 256;

/// Size of the sample in which the values of inner nodes are counted.
const SAMPLE: usize = 1 << 15;
/// A tree is good while each inner node has at most this part of the number of states as values:
/// the number of states divided by this constant.
pub(super) const NODE_VALUES_DIVISOR: u64 = 32;
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
    /// Converts all keys. `convert` maps an old key to the new one.
    ///
    /// # Errors
    /// The leaf indices of a state that the new layout cannot hold; no key is changed then.
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

/// The layout and the tables of a store as plain data, without the states.
#[derive(bincode::Encode, bincode::Decode)]
pub(crate) struct StoreLayout {
    pub leaves: Vec<LeafData>,
    pub nodes: Vec<NodeData>,
    pub fields: Vec<Field>,
    slots: u64,
}

/// A leaf: its slots, and its consecutive tuples.
#[derive(bincode::Encode, bincode::Decode)]
pub(crate) struct LeafData {
    pub slots: Vec<u32>,
    pub rows: Vec<u32>,
    count: u64,
}

/// An inner node: its children, and its pairs.
#[derive(bincode::Encode, bincode::Decode)]
pub(crate) struct NodeData {
    pub children: [Child; 2],
    pub pairs: Vec<u64>,
}

/// A field that a layout must contain.
#[derive(Clone, Copy)]
struct FieldRequest {
    child: Child,
    /// Least width.
    bits: u32,
    /// Relative number of free indices at this width; fields with less get spare bits first.
    room: f64,
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
    /// For each slot: its leaf, and its position in the leaf.
    pub leaf_of_slot: Vec<(u32, u32)>,
    /// For each leaf: the field that contains it, and true if the leaf itself is that field,
    /// without inner nodes between them.
    pub field_of: Vec<(u32, bool)>,
    /// For each field: the inner nodes under it, from its root down; a node has a greater number
    /// than its children.
    nodes_under_field: Vec<Vec<u32>>,
    /// For each leaf: bits of the inner nodes above it.
    ancestor_bits: Vec<Vec<u64>>,
    /// For each inner node: the field with this node as root, if any.
    field_at: Vec<Option<u32>>,
    /// The states.
    pub table: StateTable,
    slots: usize,
    /// Number of states at the last failed attempt to shorten entries.
    len_at_failed_shortening: u64,
}

/// Returns the number of bits of the index `count`, which the next of `count` values will get.
pub(super) fn bits_for(count: usize) -> u32 {
    usize::BITS - count.leading_zeros()
}

impl Store {
    /// Creates an empty store for a model.
    pub fn new(model: &dyn Model, expected: u64, payload: Payload, sizes: TableSizes) -> Self {
        Self::with_leaf_limit(model, expected, payload, sizes, usize::MAX)
    }

    /// Creates an empty store with leaves of at most `limit` slots, equal in every store of this
    /// model; for searches that cannot split leaves later.
    pub fn with_leaf_limit(
        model: &dyn Model,
        expected: u64,
        payload: Payload,
        sizes: TableSizes,
        limit: usize,
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
                let size = own.len().div_ceil(own.len().div_ceil(limit).max(1)).max(1);
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
            leaf_of_slot: Vec::new(),
            field_of: Vec::new(),
            nodes_under_field: Vec::new(),
            ancestor_bits: Vec::new(),
            field_at: Vec::new(),
            table: StateTable::new(KEY_BITS, 0, payload, sizes),
            slots,
            len_at_failed_shortening: 0,
        };
        store.choose_layout(&[], 0, expected);
        store.table = StateTable::new(store.key_bits(), expected, payload, sizes);
        store
    }

    /// Lays out the root from the leaves' counts and a sample of states (leaf indices). `margin`:
    /// additional bits of inner nodes; `expected`: states that the table is made for.
    fn choose_layout(&mut self, sample: &[Vec<u32>], margin: u32, expected: u64) {
        self.epoch += 1;
        self.leaf_of_slot = vec![(0, 0); self.slots];
        for (l, leaf) in self.leaves.iter().enumerate() {
            for (p, &slot) in leaf.slots.iter().enumerate() {
                self.leaf_of_slot[slot as usize] = (narrow::index(l), narrow::index(p));
            }
        }
        let counts: Vec<usize> = self.leaves.iter().map(|l| l.table.len()).collect();
        let (nodes, tops) = tree_layout::choose(&counts, sample, margin, expected);
        self.nodes = nodes
            .into_iter()
            .map(|children| StoreNode { children, table: PairTable::new() })
            .collect();
        let requests: Vec<FieldRequest> = tops
            .iter()
            .map(|t| {
                let room = match t.child {
                    Child::Leaf(l) => {
                        (1u64 << t.bits) as f64 / self.leaves[l as usize].table.len().max(1) as f64
                    }
                    Child::Node(_) => NODE_SPARE_WEIGHT,
                };
                FieldRequest { child: t.child, bits: t.bits, room }
            })
            .collect();
        self.lay_out(&requests, expected);
    }

    /// Lays fields side by side. Keys are short enough for short entries if possible. Spare bits go
    /// to the field that is closest to overflow.
    fn lay_out(&mut self, requests: &[FieldRequest], expected: u64) {
        let needed = requests.iter().map(|r| r.bits).sum::<u32>();
        let total = short_bits(expected, self.table.sizes())
            .filter(|&short| needed + SHORT_SPARE <= short)
            .unwrap_or(KEY_BITS)
            .min(KEY_BITS);
        let mut room: Vec<(f64, u32)> = requests.iter().map(|r| (r.room, r.bits)).collect();
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
        for (request, &(_, width)) in requests.iter().zip(&room) {
            self.fields.push(Field { child: request.child, offset, width });
            offset += width;
        }
        self.place_leaves();
    }

    /// Returns the fields that the current tree requires. `None` if a key cannot hold them, or if
    /// an inner node has a number of values with which another tree would save much.
    fn required_fields(&self) -> Option<Vec<FieldRequest>> {
        let states = self.table.len();
        let good = self.nodes.iter().all(|n| n.table.len() as u64 * NODE_VALUES_DIVISOR <= states);
        if !good || states < MIN_STATES_FOR_SPLIT {
            return None;
        }
        // An inner node keeps growing with the states, while most leaves already have all their
        // values. So nodes get an additional bit if there is one. Otherwise the proven tree is
        // still better than a new guess.
        [1, 0]
            .into_iter()
            .map(|more| self.required_fields_with(more))
            .find(|fields| fields.iter().map(|f| f.bits).sum::<u32>() <= KEY_BITS)
    }

    /// Returns the required fields, with `more_node_bits` additional bits for each inner node.
    fn required_fields_with(&self, more_node_bits: u32) -> Vec<FieldRequest> {
        let request = |f: &Field| {
            let (count, more, room) = match f.child {
                Child::Leaf(l) => (self.leaves[l as usize].table.len(), 0, 1.0),
                Child::Node(n) => {
                    (self.nodes[n as usize].table.len(), more_node_bits, NODE_SPARE_WEIGHT)
                }
            };
            let bits = (bits_for(count) + more).clamp(1, 31);
            let room = (1u64 << bits) as f64 / count.max(1) as f64 * room;
            FieldRequest { child: f.child, bits, room }
        };
        self.fields.iter().map(request).collect()
    }

    /// Repacks all states in the same tree; only the widths of the fields change.
    fn widen(
        &mut self,
        requests: &[FieldRequest],
        keys: Vec<&mut u64>,
        external: &mut dyn ExternalStates,
    ) {
        let expected = self.expected_keys();
        let before = self.fields.clone();
        self.epoch += 1;
        self.lay_out(requests, expected);
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
        let moved = external.repack(&old, &self.table, &mut |key| Ok(convert(key)));
        debug_assert!(refilled.is_ok() && moved.is_ok());
        keys.into_iter().for_each(|key| *key = convert(*key));
        self.len_at_failed_shortening = if self.table.is_short() { 0 } else { old.len() };
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
        self.nodes_under_field = vec![Vec::new(); self.fields.len()];
        self.ancestor_bits = vec![vec![0; self.nodes.len().div_ceil(64)]; self.leaves.len()];
        self.field_at = vec![None; self.nodes.len()];
        for f in 0..self.fields.len() {
            let child = self.fields[f].child;
            if let Child::Node(n) = child {
                self.field_at[n as usize] = Some(narrow::index(f));
            }
            let mut todo = vec![(child, vec![0u64; self.nodes.len().div_ceil(64)])];
            while let Some((c, mut ancestor_bits)) = todo.pop() {
                match c {
                    Child::Leaf(l) => {
                        self.field_of[l as usize] = (narrow::index(f), c == child);
                        self.ancestor_bits[l as usize] = ancestor_bits;
                    }
                    Child::Node(n) => {
                        self.nodes_under_field[f].push(n);
                        ancestor_bits[n as usize / 64] |= 1 << (n % 64);
                        todo.extend(
                            self.nodes[n as usize].children.map(|c| (c, ancestor_bits.clone())),
                        );
                    }
                }
            }
            self.nodes_under_field[f].sort_unstable_by(|a, b| b.cmp(a));
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
            && self.table.len() >= 2 * self.len_at_failed_shortening
            && short_bits(self.expected_keys(), self.table.sizes())
                .is_some_and(|short| needed <= short)
    }
    /// Returns the number of indices that a field can hold.
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
        for (field, nodes_under_field) in self.fields.iter().zip(&self.nodes_under_field) {
            // A field has at most 31 bits.
            let index = ((key >> field.offset) & ((1 << field.width) - 1)) as u32;
            match field.child {
                Child::Leaf(l) => leaves[l as usize] = index,
                Child::Node(n) => inner[n as usize] = index,
            }
            for &n in nodes_under_field {
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
    pub fn inner_node_count(&self) -> usize {
        self.nodes.len()
    }
    /// Returns the bits of the inner nodes above a leaf.
    pub fn ancestor_bits(&self, leaf: u32) -> &[u64] {
        &self.ancestor_bits[leaf as usize]
    }
    /// Returns the field that has an inner node as root, if any.
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
        for (f, (field, nodes_under_field)) in
            self.fields.iter().zip(&self.nodes_under_field).enumerate()
        {
            for &n in nodes_under_field.iter().rev() {
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
    /// Returns the leaf indices of a state vector; adds new tuples.
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
    /// Returns the key of a state vector.
    pub fn encode(&self, vector: &[u32]) -> Result<u64, Overflow> {
        self.pack(&self.intern(vector))
    }
    /// Returns the state vector that has these leaf indices.
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
    /// Returns the state vector of a key.
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
    pub fn layout(&self) -> StoreLayout {
        let leaf = |l: &Leaf| {
            let mut rows = Vec::new();
            (0..narrow::index(l.table.len())).for_each(|i| l.table.read(i, &mut rows));
            LeafData { slots: l.slots.clone(), rows, count: l.table.len() as u64 }
        };
        let node = |n: &StoreNode| NodeData {
            children: n.children,
            pairs: (0..narrow::index(n.table.len())).map(|i| n.table.get(i)).collect(),
        };
        StoreLayout {
            leaves: self.leaves.iter().map(leaf).collect(),
            nodes: self.nodes.iter().map(node).collect(),
            fields: self.fields.clone(),
            slots: self.slots as u64,
        }
    }
    /// Creates a store with this layout, without states, made for `states` of them.
    pub fn from_layout(
        parts: StoreLayout,
        states: u64,
        payload: Payload,
        sizes: TableSizes,
    ) -> Result<Self, String> {
        let wrong = || "an inconsistent layout of states".to_string();
        let mut leaf_of_slot =
            vec![
                None;
                usize::try_from(parts.slots).ok().filter(|n| *n < 1 << 24).ok_or_else(wrong)?
            ];
        for (l, leaf) in parts.leaves.iter().enumerate() {
            for (p, slot) in leaf.slots.iter().enumerate() {
                *leaf_of_slot.get_mut(*slot as usize).ok_or_else(wrong)? =
                    Some((narrow::index(l), narrow::index(p)));
            }
        }
        let leaf_of_slot: Vec<(u32, u32)> =
            leaf_of_slot.into_iter().collect::<Option<_>>().ok_or_else(wrong)?;
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
            slots: leaf_of_slot.len(),
            leaf_of_slot,
            field_of: Vec::new(),
            nodes_under_field: Vec::new(),
            ancestor_bits: Vec::new(),
            field_at: Vec::new(),
            table: StateTable::new(bits, states + states / 8, payload, sizes),
            len_at_failed_shortening: 0,
        };
        store.place_leaves();
        Ok(store)
    }

    /// Returns a leaf that has too many values to compress anything; `None` if there is none.
    pub fn unfit_leaf(&self) -> Option<usize> {
        let states = self.table.len();
        if states < MIN_STATES_FOR_SPLIT {
            return None;
        }
        (0..self.leaves.len()).find(|&l| {
            self.leaves[l].slots.len() > 1
                && self.leaves[l].table.len() as u64 * LEAF_SPLIT_DIVISOR > states
        })
    }

    /// Repacks all states with wider fields, another tree, or a split leaf; also converts
    /// the keys in `keys`. O(states); temporarily needs memory for two copies.
    pub fn replan<'k>(&mut self, keys: impl Iterator<Item = &'k mut u64>, split: Option<usize>) {
        self.replan_with(keys, split, &mut NoExternalStates);
    }
    /// Replans as [`Store::replan`], with storage outside the table.
    pub fn replan_with<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k mut u64>,
        split: Option<usize>,
        external: &mut dyn ExternalStates,
    ) {
        let keys: Vec<&mut u64> = keys.collect();
        if let (None, Some(fields)) = (split, self.required_fields()) {
            return self.widen(&fields, keys, external);
        }
        let count = self.leaves.len();
        let stride = (self.table.len() as usize + keys.len())
            .div_ceil(SAMPLE.max(tree_layout::sample_size(count)))
            .max(1);
        let every =
            self.table.entries().map(|e| e.1).chain(keys.iter().map(|k| **k)).step_by(stride);
        let mut sample: Vec<Vec<u32>> = every
            .map(|key| {
                let mut leaves = vec![0; count];
                self.unpack(key, &mut leaves);
                leaves
            })
            .collect();
        if let Some(l) = split {
            let (left, right) = self.choose_split(l, &sample);
            let vectors: Vec<Vec<u32>> = sample.iter().map(|s| self.vector_of(s)).collect();
            let old = self.take_old(Some((l, left, right)));
            sample = vectors.iter().map(|v| self.intern(v)).collect();
            self.repack(&old, &sample, keys, Some(l), external);
        } else {
            let old = self.take_old(None);
            self.repack(&old, &sample, keys, None, external);
        }
    }

    /// Chooses the split of a leaf: the cut of its slots, in order, after which the halves have the
    /// fewest values in the sample.
    fn choose_split(&self, leaf: usize, sample: &[Vec<u32>]) -> (Vec<u32>, Vec<u32>) {
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

    /// Replaces the store by an empty one with the present leaves, of which one may be split, and
    /// returns the old one. Without a split, the leaf tables move to the new one.
    fn take_old(&mut self, split: Option<(usize, Vec<u32>, Vec<u32>)>) -> Store {
        let payload = self.table.payload_kind();
        let fresh = Store {
            epoch: self.epoch,
            leaves: Vec::new(),
            nodes: Vec::new(),
            fields: Vec::new(),
            leaf_of_slot: Vec::new(),
            field_of: Vec::new(),
            nodes_under_field: Vec::new(),
            ancestor_bits: Vec::new(),
            field_at: Vec::new(),
            table: StateTable::new(KEY_BITS, 0, payload, self.table.sizes()),
            slots: self.slots,
            len_at_failed_shortening: self.len_at_failed_shortening,
        };
        let mut old = std::mem::replace(self, fresh);
        match split {
            // The old leaves remain: repacking reads the state vectors of old keys from them.
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
            // The leaves move; the old store gets empty ones, because `unpack` needs one leaf table
            // for each index.
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

    /// Chooses layouts until one holds all states of `old`, of which this store has the leaves.
    /// Each failure adds the state that did not fit to the sample.
    fn repack(
        &mut self,
        old: &Store,
        sample: &[Vec<u32>],
        mut keys: Vec<&mut u64>,
        split: Option<usize>,
        external: &mut dyn ExternalStates,
    ) {
        let mut sample = sample.to_vec();
        let mut margin = 0;
        loop {
            self.choose_layout(&sample, margin, old.expected_keys());
            margin = (margin + 1).min(31);
            match self.try_layout(old, &mut keys, split, external) {
                Ok(()) => break,
                // The sample was not representative. All counts have grown as well.
                Err(leaves) => sample.push(leaves),
            }
        }
        self.len_at_failed_shortening = if self.table.is_short() { 0 } else { old.table.len() };
    }

    /// Converts all states of `old` to the current layout.
    ///
    /// # Errors
    /// The leaf indices of a state that the layout cannot hold; no key in `keys` or in `external`
    /// is changed then.
    fn try_layout(
        &mut self,
        old: &Store,
        keys: &mut [&mut u64],
        split: Option<usize>,
        external: &mut dyn ExternalStates,
    ) -> Result<(), Vec<u32>> {
        let (mut leaves, mut inner) = (vec![0; old.leaves.len()], vec![0; self.nodes.len()]);
        let mut pairs = (old.table.len() >= MIN_STATES_FOR_SPLIT).then(PairCache::new);
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
        self.refill(&old.table, &mut convert)?;
        let new_keys: Vec<u64> =
            keys.iter().map(|key| convert(self, **key)).collect::<Result<_, _>>()?;
        external.repack(&old.table, &self.table, &mut |key| convert(self, key))?;
        for (key, new) in keys.iter_mut().zip(new_keys) {
            **key = new;
        }
        Ok(())
    }
}
