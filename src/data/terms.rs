//! Concurrent hash-consing table of terms: equal terms have one node, identified by a number.
//!
//! Maximal sharing, as in Van den Brand, de Jong, Klint, Olivier: "Efficient annotated terms"
//! (2000), for normal forms of the engine. A node is a few words: its kind, and the numbers of its
//! parts. Constants and small integers have numbers of their own and no node. Values cache their
//! numbers ([`crate::value`]), so a term that adds a few nodes to a known one costs one lookup per
//! new node, and prepending to a list costs one cell: twelve bytes and its index entry.
//!
//! Cost: a rarely contended lock and a probe for each requested node. Invariants: numbers are
//! assigned in the order of arrival within one of `SHARDS` parts and never change; equal normal
//! forms have equal numbers, in every thread.

use crate::expr::Expr;
use crate::shape::shape;
use crate::signature::Signature;
use ahash::AHashMap;
use mu_base::mixing::fx;
use mu_base::narrow;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TermId(u32);

/// Number of parts of the table, each with its own lock.
const SHARDS: usize = 64;

/// Mark of a term without a node; the next three bits are its kind.
const IMMEDIATE: u32 = 1 << 31;
const KIND: u32 = 28;
const PAYLOAD: u32 = (1 << KIND) - 1;

/// Kind of a node: its first word.
pub(crate) mod kind {
    /// Two words of a 64-bit integer.
    pub const INT: u32 = 0;
    /// An operation and its arguments.
    pub const APP: u32 = 1;
    /// Head and tail.
    pub const CONS: u32 = 2;
    /// A sort and the elements in order.
    pub const SET: u32 = 3;
    /// A sort and elements with counts.
    pub const BAG: u32 = 4;
    /// A sort, the base, keys with values.
    pub const TABLE: u32 = 5;
    /// Index of an expression.
    pub const OTHER: u32 = 6;
}

/// Term without a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Immediate {
    Bool(bool),
    Int(i64),
    Con(u32),
    Sym(u32),
    Nil(u32),
}

impl TermId {
    /// Returns the number of a term without a node; `None` if the payload is too large.
    pub(crate) fn immediate(what: Immediate) -> Option<TermId> {
        let (kind, payload) = match what {
            Immediate::Bool(b) => (0, u32::from(b)),
            Immediate::Int(n) => {
                let shifted = n.checked_add(1 << (KIND - 1))?;
                (1, u32::try_from(shifted).ok()?)
            }
            Immediate::Con(op) => (2, op),
            Immediate::Sym(op) => (3, op),
            Immediate::Nil(sort) => (4, sort),
        };
        (payload <= PAYLOAD).then_some(TermId(IMMEDIATE | kind << KIND | payload))
    }

    /// Returns the term, if it has no node.
    pub(crate) fn as_immediate(self) -> Option<Immediate> {
        if self.0 & IMMEDIATE == 0 {
            return None;
        }
        let payload = self.0 & PAYLOAD;
        Some(match self.0 >> KIND & 7 {
            0 => Immediate::Bool(payload == 1),
            1 => Immediate::Int(i64::from(payload) - (1 << (KIND - 1))),
            2 => Immediate::Con(payload),
            3 => Immediate::Sym(payload),
            _ => Immediate::Nil(payload),
        })
    }

    /// Returns the number as a word of a node, or of a key.
    pub fn word(self) -> u32 {
        self.0
    }

    /// Converts a word of a node; `None` for 0.
    pub(crate) fn from_word(word: u32) -> Option<TermId> {
        (word != 0).then_some(TermId(word))
    }
}

/// Nodes of one part of the table, one after the other.
#[derive(Default)]
struct Shard {
    words: Vec<u32>,
    /// Start of each node.
    starts: Vec<usize>,
    /// Hash index: one more than the node's position, 0 if free; the upper bits hold a part of the
    /// hash, so that other nodes are rarely inspected. Its length is a power of two, or zero.
    index: Vec<u32>,
}

/// Bits of a position in an index; nodes have numbers of 31 bits, of which six are the shard.
const PLACE: u32 = 26;
const PLACES: u32 = (1 << PLACE) - 1;

/// Returns the index entry of the node at a position.
fn entry(hash: u64, place: usize) -> u32 {
    // Excludes the bits that select the shard, and the low bits that select the slot.
    let tag = narrow::low(hash >> 26) & !PLACES;
    // A position that is too large causes an error when it becomes a number.
    tag | (narrow::index(place) + 1) & PLACES
}

fn hash(node: &[u32]) -> u64 {
    let h = node.iter().fold(node.len() as u64, |h, w| fx(h, u64::from(*w)));
    (h ^ h >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the shard of a node. The cells of one list are in few shards, independent of their
/// heads, so that they can be looked up together.
fn shard(node: &[u32], hash: u64) -> usize {
    let h = match *node {
        [kind::CONS, head, tail] => {
            (u64::from(tail) << 20 ^ u64::from(head >> 12)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        }
        _ => hash,
    };
    (h >> 58) as usize % SHARDS
}

impl Shard {
    fn node(&self, at: usize) -> &[u32] {
        &self.words[self.starts[at]..self.starts.get(at + 1).copied().unwrap_or(self.words.len())]
    }

    fn intern(&mut self, node: &[u32], hash: u64) -> usize {
        self.make_room(1);
        let mask = self.index.len() - 1;
        let (mut at, new) = (hash as usize & mask, self.starts.len());
        let wanted = entry(hash, new);
        loop {
            match self.index[at] {
                0 => break,
                known
                    if (known ^ wanted) & !PLACES == 0
                        && self.node((known & PLACES) as usize - 1) == node =>
                {
                    return (known & PLACES) as usize - 1;
                }
                _ => at = (at + 1) & mask,
            }
        }
        self.starts.push(self.words.len());
        self.words.extend_from_slice(node);
        self.index[at] = wanted;
        new
    }

    /// Reserves memory for `more` nodes.
    fn make_room(&mut self, more: usize) {
        while (self.starts.len() + more) * 4 > self.index.len() * 3 {
            self.grow();
        }
    }

    /// Loads the first index entry of a hash, so that the cache misses of several lookups overlap.
    fn touch(&self, hash: u64) -> u32 {
        self.index[hash as usize & (self.index.len() - 1)]
    }

    fn grow(&mut self) {
        let mask = (self.index.len() * 2).max(16) - 1;
        let mut index = vec![0; mask + 1];
        for place in 0..self.starts.len() {
            let hash = hash(self.node(place));
            let mut at = hash as usize & mask;
            while index[at] != 0 {
                at = (at + 1) & mask;
            }
            index[at] = entry(hash, place);
        }
        self.index = index;
    }
}

/// Terms that are stored as expressions.
#[derive(Default)]
struct ExpressionTable {
    /// By shape: expressions that differ in names of variables only are one term.
    places: AHashMap<Box<[u8]>, u32>,
    all: Vec<Expr>,
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of the node at a position of a shard.
fn number(shard: usize, place: usize) -> TermId {
    let number = u32::try_from(place * SHARDS + shard + 1).ok().filter(|n| n & IMMEDIATE == 0);
    TermId(number.expect("nodes of two billion terms do not fit into memory"))
}

/// Terms per page of [`TermNumbers`].
const PAGE: usize = 64;

/// Map from terms to numbers, as arrays over node positions: consecutive terms have adjacent
/// entries.
#[derive(Default)]
pub struct TermNumbers {
    immediate: AHashMap<TermId, u32>,
    /// By shard and page: one more than the number, 0 if there is none.
    pages: Vec<Vec<Option<Box<[u32; PAGE]>>>>,
}

impl TermNumbers {
    /// Returns the number of a term, if it has one.
    #[inline]
    pub fn get(&self, term: TermId) -> Option<u32> {
        if term.0 & IMMEDIATE != 0 {
            return self.immediate.get(&term).copied();
        }
        let (at, place) = ((term.0 as usize - 1) % SHARDS, (term.0 as usize - 1) / SHARDS);
        let page = self.pages.get(at)?.get(place / PAGE)?.as_ref()?;
        page[place % PAGE].checked_sub(1)
    }

    /// Assigns a number below 2^32 - 1 to a term.
    pub fn set(&mut self, term: TermId, number: u32) {
        if term.0 & IMMEDIATE != 0 {
            self.immediate.insert(term, number);
            return;
        }
        let (at, place) = ((term.0 as usize - 1) % SHARDS, (term.0 as usize - 1) / SHARDS);
        if self.pages.is_empty() {
            self.pages.resize_with(SHARDS, Vec::new);
        }
        let pages = &mut self.pages[at];
        if pages.len() <= place / PAGE {
            pages.resize_with(place / PAGE + 1, || None);
        }
        pages[place / PAGE].get_or_insert_with(|| Box::new([0; PAGE]))[place % PAGE] = number + 1;
    }
}

/// Table of shared terms.
pub struct Terms {
    shards: Vec<Mutex<Shard>>,
    others: Mutex<ExpressionTable>,
}

impl Default for Terms {
    fn default() -> Self {
        Terms { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), others: Mutex::default() }
    }
}

impl std::fmt::Debug for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Terms")
    }
}

impl Terms {
    /// Returns the number of a node, adding it if it is new.
    pub(crate) fn intern(&self, node: &[u32]) -> TermId {
        let hash = hash(node);
        let shard = shard(node, hash);
        number(shard, lock(&self.shards[shard]).intern(node, hash))
    }

    /// Prepends each of the elements to a list; replaces the contents of `out` by the resulting
    /// lists.
    pub fn cons_all(&self, heads: &[TermId], list: TermId, out: &mut Vec<TermId>) {
        out.clear();
        let cell = |head: &TermId| [kind::CONS, head.0, list.0];
        let hashes: Vec<u64> = heads.iter().map(|head| hash(&cell(head))).collect();
        while let Some(first) = heads.get(out.len()) {
            let (from, at) = (out.len(), shard(&cell(first), hashes[out.len()]));
            let same = |(head, hash): &(&TermId, &u64)| shard(&cell(head), **hash) == at;
            let count = heads[from..].iter().zip(&hashes[from..]).take_while(same).count();
            let (heads, hashes) = (&heads[from..][..count], &hashes[from..][..count]);
            let mut shard = lock(&self.shards[at]);
            shard.make_room(count);
            std::hint::black_box(hashes.iter().fold(0, |acc, hash| acc ^ shard.touch(*hash)));
            out.extend(
                heads
                    .iter()
                    .zip(hashes)
                    .map(|(head, hash)| number(at, shard.intern(&cell(head), *hash))),
            );
        }
    }

    /// Returns head and tail of a list cell; `None` for other terms.
    pub fn cell(&self, list: TermId) -> Option<(TermId, TermId)> {
        let mut node = Vec::new();
        if list.as_immediate().is_none() {
            self.read(list, &mut node);
        }
        match node[..] {
            [kind::CONS, head, tail] => Some((TermId(head), TermId(tail))),
            _ => None,
        }
    }

    /// Replaces the contents of `out` by the words of a node.
    pub(crate) fn read(&self, term: TermId, out: &mut Vec<u32>) {
        let number = term.0 as usize - 1;
        out.clear();
        out.extend_from_slice(lock(&self.shards[number % SHARDS]).node(number / SHARDS));
    }

    /// Returns the number of a term that is stored as an expression.
    pub(crate) fn other(&self, signature: &Signature, e: Expr) -> TermId {
        let shape = shape(signature, &e, &[]);
        let place = {
            let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            match others.places.get(&shape) {
                Some(&place) => place,
                None => {
                    let place = narrow::index(others.all.len());
                    others.all.push(e);
                    others.places.insert(shape, place);
                    place
                }
            }
        };
        self.intern(&[kind::OTHER, place])
    }

    /// Returns the expression with an index.
    pub(crate) fn expression(&self, place: u32) -> Expr {
        self.others.lock().unwrap_or_else(PoisonError::into_inner).all[place as usize].clone()
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.shards.iter().map(|s| lock(s).starts.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immediate_terms_round_trip() {
        for n in [0, 1, -1, 134_217_727, -134_217_728] {
            assert_eq!(
                TermId::immediate(Immediate::Int(n)).unwrap().as_immediate(),
                Some(Immediate::Int(n))
            );
        }
        for n in [134_217_728, -134_217_729, i64::MAX, i64::MIN] {
            assert_eq!(TermId::immediate(Immediate::Int(n)), None);
        }
        for what in [Immediate::Bool(true), Immediate::Con(7), Immediate::Sym(7), Immediate::Nil(0)]
        {
            assert_eq!(TermId::immediate(what).unwrap().as_immediate(), Some(what));
        }
    }

    #[test]
    fn nodes_have_one_number_each() {
        let terms = Terms::default();
        let node = |i: u32| vec![kind::APP, i % 7, i / 7, i];
        let ids: Vec<TermId> = (0..5000).map(|i| terms.intern(&node(i))).collect();
        let mut read = Vec::new();
        for i in 0..5000 {
            assert_eq!(terms.intern(&node(i)), ids[i as usize]);
            terms.read(ids[i as usize], &mut read);
            assert_eq!(read, node(i));
        }
        assert_eq!(terms.nodes(), 5000);
    }

    #[test]
    fn lists_looked_up_together_equal_single_lookups() {
        let terms = Terms::default();
        // Constants, and nodes with distant numbers.
        let mut heads: Vec<TermId> =
            (0..40).map(|n| TermId::immediate(Immediate::Int(n)).unwrap()).collect();
        heads.extend((0..20_000).map(|n| terms.intern(&[kind::INT, n, 7])).step_by(97));
        let mut list = TermId::immediate(Immediate::Nil(3)).unwrap();
        for round in 0..50 {
            let alone: Vec<TermId> = heads
                .iter()
                .step_by(3)
                .map(|head| terms.intern(&[kind::CONS, head.0, list.0]))
                .collect();
            let mut together = Vec::new();
            terms.cons_all(&heads, list, &mut together);
            assert!(together.iter().step_by(3).eq(&alone), "round {round}");
            for (head, longer) in heads.iter().zip(&together) {
                assert_eq!(terms.cell(*longer), Some((*head, list)), "round {round}");
            }
            list = together[round * 5];
        }
        assert_eq!(terms.nodes(), 20_000 + 50 * heads.len());
        assert_eq!((terms.cell(heads[0]), terms.cell(heads[50])), (None, None));
    }

    #[test]
    fn terms_have_their_assigned_numbers() {
        let (terms, mut numbers) = (Terms::default(), TermNumbers::default());
        let ids: Vec<TermId> = (0..3000)
            .map(|n| {
                if n % 5 == 0 {
                    TermId::immediate(Immediate::Int(n)).unwrap()
                } else {
                    terms.intern(&[kind::APP, n as u32, 1])
                }
            })
            .collect();
        let picked = |i: usize| i % 7 < 3;
        for (i, id) in ids.iter().enumerate().filter(|(i, _)| picked(*i)) {
            assert_eq!(numbers.get(*id), None);
            numbers.set(*id, i as u32 * 3);
        }
        for (i, id) in ids.iter().enumerate() {
            assert_eq!(numbers.get(*id), picked(i).then_some(i as u32 * 3), "{i}");
        }
    }
}
