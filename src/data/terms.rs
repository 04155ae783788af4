//! The table of terms that threads share: of equal terms there is one, and it is a number.
//!
//! Maximal sharing, as in Van den Brand, de Jong, Klint, Olivier: "Efficient annotated terms"
//! (2000), for normal forms of the engine. A node is a few words: what it is, and the numbers of
//! its parts. Constants and small integers have numbers of their own and no node. Values remember
//! their numbers ([`crate::value`]), so a term that is a known one but for a few nodes costs a
//! lookup for each of these, whatever its size, and a list that is longer by one at its front costs
//! a cell: twelve bytes and its place in an index.
//!
//! Cost: a lock that is seldom contended and a probe for each node asked for. Invariants: numbers
//! are given in the order of arrival within one of [`SHARDS`] parts and never change; equal normal
//! forms have equal numbers, in every thread.

use crate::expr::Expr;
use ahash::AHashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A term by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TermId(u32);

/// Parts of the table, each behind a lock of its own.
const SHARDS: usize = 64;

/// A term without a node is marked by this bit; three bits then say what it is.
const IMMEDIATE: u32 = 1 << 31;
const KIND: u32 = 28;
const PAYLOAD: u32 = (1 << KIND) - 1;

/// What a node is, by its first word.
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
    /// The place of an expression.
    pub const OTHER: u32 = 6;
}

/// A term that has no node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Immediate {
    Bool(bool),
    Int(i64),
    Con(u32),
    Sym(u32),
    Nil(u32),
}

impl TermId {
    /// The number of a term without a node, if it fits.
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

    /// What it is, if it has no node.
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

    /// As a word of a node, or of a key.
    pub fn word(self) -> u32 {
        self.0
    }

    /// From a word of a node; 0 is none.
    pub(crate) fn from_word(word: u32) -> Option<TermId> {
        (word != 0).then_some(TermId(word))
    }
}

/// Nodes one after the other.
#[derive(Default)]
struct Shard {
    words: Vec<u32>,
    /// Where each node begins.
    starts: Vec<usize>,
    /// By hash: one more than the node's place, 0 if free; above it bits of the hash, so that
    /// other nodes are hardly ever looked at. A power of two, or nothing yet.
    index: Vec<u32>,
}

/// Bits of a place in an index; nodes have numbers of 31 bits, of which six are the shard.
const PLACE: u32 = 26;
const PLACES: u32 = (1 << PLACE) - 1;

/// What the index keeps for the node at a place.
fn entry(hash: u64, place: usize) -> u32 {
    // Not the bits that say in which shard it is, nor the low ones that say where.
    let tag = (hash >> 26) as u32 & !PLACES;
    // A place that is too large is refused when it becomes a number.
    tag | (place as u32 + 1) & PLACES
}

fn hash(node: &[u32]) -> u64 {
    let mix =
        |h: u64, w: &u32| (h.rotate_left(5) ^ u64::from(*w)).wrapping_mul(0x517c_c1b7_2722_0a95);
    let h = node.iter().fold(node.len() as u64, mix);
    (h ^ h >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The part that a node is in. The cells of one list, whatever stands in front of it, are in few
/// parts, so that they can be asked for together.
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

    /// Makes room for so many more nodes.
    fn make_room(&mut self, more: usize) {
        while (self.starts.len() + more) * 4 > self.index.len() * 3 {
            self.grow();
        }
    }

    /// Where a search for a hash begins, loaded: so that the misses of several searches overlap.
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

/// Terms that are kept as expressions.
#[derive(Default)]
struct Others {
    places: AHashMap<Expr, u32>,
    all: Vec<Expr>,
}

fn held(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of the node at a place of a shard.
fn number(shard: usize, place: usize) -> TermId {
    let number = u32::try_from(place * SHARDS + shard + 1).ok().filter(|n| n & IMMEDIATE == 0);
    TermId(number.expect("nodes of two billion terms do not fit into memory"))
}

/// Terms of a page of [`TermNumbers`].
const PAGE: usize = 64;

/// Numbers of some terms, by arrays over the nodes' places: of terms that come one after the other,
/// the numbers lie so as well.
#[derive(Default)]
pub struct TermNumbers {
    immediate: AHashMap<TermId, u32>,
    /// By shard and page: one more than the number, 0 if there is none.
    pages: Vec<Vec<Option<Box<[u32; PAGE]>>>>,
}

impl TermNumbers {
    /// The number of a term, if it has one.
    #[inline]
    pub fn get(&self, term: TermId) -> Option<u32> {
        if term.0 & IMMEDIATE != 0 {
            return self.immediate.get(&term).copied();
        }
        let (at, place) = ((term.0 as usize - 1) % SHARDS, (term.0 as usize - 1) / SHARDS);
        let page = self.pages.get(at)?.get(place / PAGE)?.as_ref()?;
        page[place % PAGE].checked_sub(1)
    }

    /// Gives a term a number, below 2^32 - 1.
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

/// See the module's head.
pub struct Terms {
    shards: Vec<Mutex<Shard>>,
    others: Mutex<Others>,
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
    /// The number of a node.
    pub(crate) fn intern(&self, node: &[u32]) -> TermId {
        let hash = hash(node);
        let shard = shard(node, hash);
        number(shard, held(&self.shards[shard]).intern(node, hash))
    }

    /// Puts the lists that begin with each of these elements and go on as the list into `out`,
    /// which it empties before.
    pub fn in_front(&self, heads: &[TermId], list: TermId, out: &mut Vec<TermId>) {
        out.clear();
        let cell = |head: &TermId| [kind::CONS, head.0, list.0];
        let hashes: Vec<u64> = heads.iter().map(|head| hash(&cell(head))).collect();
        while let Some(first) = heads.get(out.len()) {
            let (from, at) = (out.len(), shard(&cell(first), hashes[out.len()]));
            let same = |(head, hash): &(&TermId, &u64)| shard(&cell(head), **hash) == at;
            let count = heads[from..].iter().zip(&hashes[from..]).take_while(same).count();
            let (heads, hashes) = (&heads[from..][..count], &hashes[from..][..count]);
            let mut shard = held(&self.shards[at]);
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

    /// Head and tail of a list that has them.
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

    /// Puts the words of a node into `out`, which it empties before.
    pub(crate) fn read(&self, term: TermId, out: &mut Vec<u32>) {
        let number = term.0 as usize - 1;
        out.clear();
        out.extend_from_slice(held(&self.shards[number % SHARDS]).node(number / SHARDS));
    }

    /// The number of a term that is kept as an expression.
    pub(crate) fn other(&self, e: Expr) -> TermId {
        let place = {
            let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            match others.places.get(&e) {
                Some(&place) => place,
                None => {
                    let place = others.all.len() as u32;
                    others.all.push(e.clone());
                    others.places.insert(e, place);
                    place
                }
            }
        };
        self.intern(&[kind::OTHER, place])
    }

    /// The expression at a place.
    pub(crate) fn expression(&self, place: u32) -> Expr {
        self.others.lock().unwrap_or_else(PoisonError::into_inner).all[place as usize].clone()
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.shards.iter().map(|s| held(s).starts.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immediate_terms_are_what_they_were() {
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
    fn lists_that_are_asked_for_together_are_those_asked_for_alone() {
        let terms = Terms::default();
        // Constants, and nodes whose numbers are far apart.
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
            terms.in_front(&heads, list, &mut together);
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
    fn terms_have_the_numbers_that_they_were_given() {
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
