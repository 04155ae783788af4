//! Levels of a search: histories as lists of the operations of each processor, each with the set of
//! states after it.
//!
//! A level is divided into shards by a hash of the history, so that threads can fill different
//! shards, and so that the table of a shard stays in a cache. A shard has its histories in the
//! order in which they were added, and an open-addressing table of their places, 4 bytes a slot.
//! Invariant: the order of a level depends neither on threads nor on addresses in memory.

use mu_base::narrow;

/// A history as the ids of the lists of operations of `P` processors; 0 is the empty list.
pub type Lists<const P: usize> = [u32; P];
/// A history with the id of the set of states after it.
pub(crate) type Entry<const P: usize> = (Lists<P>, u32);

/// Number of shards of a level; a power of two.
pub(crate) const SHARDS: usize = 128;
/// A slot without a place.
const EMPTY: u32 = u32::MAX;
/// Number of slots of the smallest table.
const LEAST_SLOTS: usize = 8;

fn hash<const P: usize>(lists: &Lists<P>) -> u64 {
    let mix = |h: u64, list: &u32| {
        (h.rotate_left(29) ^ u64::from(*list)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    };
    let mixed = lists.iter().fold(0, mix);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// Returns the shard of a history.
pub(crate) fn shard_of<const P: usize>(lists: &Lists<P>) -> usize {
    // The top bits; the table uses the middle ones.
    (hash(lists) >> (u64::BITS - SHARDS.trailing_zeros())) as usize
}

/// The histories of a level with the same [`shard_of`].
#[derive(Clone, Default)]
pub(crate) struct Shard<const P: usize> {
    entries: Vec<Entry<P>>,
    slots: Vec<u32>,
}

impl<const P: usize> Shard<P> {
    /// Returns the slot with a history, or the empty one where it belongs.
    fn slot(&self, lists: &Lists<P>) -> usize {
        let mask = self.slots.len() - 1;
        // The low bits decide; a cast to 32 bits loses none that the mask uses.
        let mut at = (hash(lists) >> 16) as usize & mask;
        loop {
            let place = self.slots[at];
            if place == EMPTY || self.entries[place as usize].0 == *lists {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(LEAST_SLOTS);
        self.slots = vec![EMPTY; slots];
        for i in 0..self.entries.len() {
            let at = self.slot(&self.entries[i].0);
            self.slots[at] = narrow::index(i);
        }
    }

    /// Adds a history. If it is known, its set becomes `union` of the known set and the new one.
    pub(crate) fn add(&mut self, (lists, set): Entry<P>, union: impl FnOnce(u32, u32) -> u32) {
        if (self.entries.len() + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let at = self.slot(&lists);
        match self.slots[at] {
            EMPTY => {
                self.slots[at] = narrow::index(self.entries.len());
                self.entries.push((lists, set));
            }
            place => {
                let known = &mut self.entries[place as usize].1;
                *known = union(*known, set);
            }
        }
    }
}

/// Histories with the same number of events.
#[derive(Clone)]
pub(crate) struct Level<const P: usize> {
    pub(crate) shards: Vec<Shard<P>>,
}

impl<const P: usize> Level<P> {
    pub(crate) fn new() -> Self {
        Level { shards: vec![Shard::default(); SHARDS] }
    }

    /// Returns the histories, shard by shard.
    pub(crate) fn into_entries(self) -> Vec<Entry<P>> {
        let mut all = Vec::with_capacity(self.shards.iter().map(|s| s.entries.len()).sum());
        for mut shard in self.shards {
            shard.slots = Vec::new();
            all.append(&mut shard.entries);
        }
        all
    }
}
