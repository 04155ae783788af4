//! The table of terms that threads share: of equal terms there is one, and it is a number.
//!
//! Maximal sharing, as in Van den Brand, de Jong, Klint, Olivier: "Efficient annotated terms" (2000), for normal forms of the engine. A node is a few
//! words: what it is, and the numbers of its parts. Constants and small integers have numbers of their own and no node. Values remember their numbers
//! ([`crate::value`]), so a term that is a known one but for a few nodes costs a lookup for each of these, whatever its size, and a list that is longer by
//! one at its front costs a cell: twelve bytes and its place in an index.
//!
//! Cost: a lock that is seldom contended and a probe for each node asked for. Invariants: numbers are given in the order of arrival within one of
//! [`SHARDS`] parts and never change; equal normal forms have equal numbers, in every thread.

use crate::expr::Expr;
use ahash::AHashMap;
use std::sync::{Mutex, PoisonError};

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
    /// By hash: one more than the node's place, 0 if free. A power of two, or nothing yet.
    index: Vec<u32>,
}

fn hash(node: &[u32]) -> u64 {
    let mix = |h: u64, w: &u32| (h.rotate_left(5) ^ u64::from(*w)).wrapping_mul(0x517c_c1b7_2722_0a95);
    let h = node.iter().fold(node.len() as u64, mix);
    (h ^ h >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Shard {
    fn node(&self, at: usize) -> &[u32] {
        &self.words[self.starts[at]..self.starts.get(at + 1).copied().unwrap_or(self.words.len())]
    }

    fn intern(&mut self, node: &[u32], hash: u64) -> usize {
        if (self.starts.len() + 1) * 4 > self.index.len() * 3 {
            self.grow();
        }
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.index[at] {
                0 => break,
                known if self.node(known as usize - 1) == node => return known as usize - 1,
                _ => at = (at + 1) & mask,
            }
        }
        let new = self.starts.len();
        self.starts.push(self.words.len());
        self.words.extend_from_slice(node);
        self.index[at] = new as u32 + 1;
        new
    }

    fn grow(&mut self) {
        let mask = (self.index.len() * 2).max(16) - 1;
        let mut index = vec![0; mask + 1];
        for place in 0..self.starts.len() {
            let mut at = hash(self.node(place)) as usize & mask;
            while index[at] != 0 {
                at = (at + 1) & mask;
            }
            index[at] = place as u32 + 1;
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
        let shard = (hash >> 58) as usize % SHARDS;
        let place = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner).intern(node, hash);
        let number = u32::try_from(place * SHARDS + shard + 1).ok().filter(|n| n & IMMEDIATE == 0);
        TermId(number.expect("nodes of two billion terms do not fit into memory"))
    }

    /// Puts the words of a node into `out`, which it empties before.
    pub(crate) fn read(&self, term: TermId, out: &mut Vec<u32>) {
        let number = term.0 as usize - 1;
        out.clear();
        out.extend_from_slice(self.shards[number % SHARDS].lock().unwrap_or_else(PoisonError::into_inner).node(number / SHARDS));
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
        self.shards.iter().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner).starts.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immediate_terms_are_what_they_were() {
        for n in [0, 1, -1, 134_217_727, -134_217_728] {
            assert_eq!(TermId::immediate(Immediate::Int(n)).unwrap().as_immediate(), Some(Immediate::Int(n)));
        }
        for n in [134_217_728, -134_217_729, i64::MAX, i64::MIN] {
            assert_eq!(TermId::immediate(Immediate::Int(n)), None);
        }
        for what in [Immediate::Bool(true), Immediate::Con(7), Immediate::Sym(7), Immediate::Nil(0)] {
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
}
