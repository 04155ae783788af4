//! A hash map from one word to a small value: what a thread's cache looks steps up in.
//!
//! Open addressing with linear probing (Knuth, vol. 3, 6.4), at most half full, multiplicative hashing. A hit is a multiplication, a load and a
//! compare. Invariant: nothing is removed, so a free place ends every probe.

/// Two halves of a key.
#[inline]
pub(crate) fn word(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// Open addressing from one word to a value.
pub(crate) struct WordMap<V> {
    slots: Vec<(u64, Option<V>)>,
    /// Number of keys.
    pub used: usize,
    shift: u32,
}

impl<V> Default for WordMap<V> {
    fn default() -> Self {
        Self { slots: Vec::new(), used: 0, shift: 0 }
    }
}

impl<V: Copy> WordMap<V> {
    #[inline]
    fn place(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }
    /// The value of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<V> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.place(key);
        loop {
            let slot = &self.slots[at];
            if slot.0 == key || slot.1.is_none() {
                return slot.1;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
    /// Adds a key that is absent.
    pub fn insert(&mut self, key: u64, value: V) {
        if self.used * 2 >= self.slots.len() {
            let size = (self.slots.len() * 2).max(16);
            let old = std::mem::replace(&mut self.slots, vec![(0, None); size]);
            self.shift = 64 - size.trailing_zeros();
            for (k, v) in old {
                if let Some(v) = v {
                    self.put(k, v);
                }
            }
        }
        self.used += 1;
        self.put(key, value);
    }
    fn put(&mut self, key: u64, value: V) {
        let mut at = self.place(key);
        while self.slots[at].1.is_some() {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = (key, Some(value));
    }
}
