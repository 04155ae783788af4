//! Hash map from two numbers to a small value, for the caches of a thread.
//!
//! Open addressing with linear probing (Knuth, vol. 3, 6.4), at most half full, multiplicative
//! hashing. A hit is a multiplication, a load and a compare. While all numbers have 16 bits, a key
//! is a word of 32 bits and an entry takes 8 bytes with a value of 4. The caches of all threads
//! share the last level of the machine's caches, so smaller tables are faster. Invariant: nothing
//! is removed, so a free entry ends every probe.

/// Numbers below this limit form a narrow key.
const NARROW: u32 = 1 << 16;

/// An array of entries, a power of two. The stored key identifies the pair.
struct Places<K, V> {
    slots: Vec<(K, Option<V>)>,
    shift: u32,
}

impl<K: Copy + Default + Eq + Into<u64>, V: Copy> Places<K, V> {
    fn new(size: usize) -> Self {
        Self { slots: vec![(K::default(), None); size], shift: 64 - size.trailing_zeros() }
    }
    /// Returns the position of a key, or the free position where it belongs. There is a free
    /// position.
    #[inline]
    fn find(&self, key: K) -> usize {
        let mut at = (key.into().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize;
        loop {
            let slot = &self.slots[at];
            if slot.0 == key || slot.1.is_none() {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
    fn put(&mut self, key: K, value: V) {
        let at = self.find(key);
        self.slots[at] = (key, Some(value));
    }
    fn entries(&self) -> impl Iterator<Item = (K, V)> + '_ {
        self.slots.iter().filter_map(|s| s.1.map(|v| (s.0, v)))
    }
}

/// Map from two numbers to a value.
pub(crate) struct PairMap<V> {
    /// The entries while all keys are narrow; empty after the first wide key.
    narrow: Places<u32, V>,
    /// The entries from the first wide key on.
    wide: Places<u64, V>,
    /// Number of keys.
    pub used: u32,
}

/// Initial number of entries.
const FIRST: usize = 16;

impl<V> Default for PairMap<V> {
    fn default() -> Self {
        Self {
            narrow: Places { slots: Vec::new(), shift: 0 },
            wide: Places { slots: Vec::new(), shift: 0 },
            used: 0,
        }
    }
}

fn narrow(a: u32, b: u32) -> Option<u32> {
    ((a | b) < NARROW).then_some(a << 16 | b)
}

fn wide(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

impl<V: Copy> PairMap<V> {
    /// Returns the value of a pair; `None` if it has none.
    #[inline(always)]
    pub fn get(&self, a: u32, b: u32) -> Option<V> {
        if !self.narrow.slots.is_empty() {
            return self.narrow.slots[self.narrow.find(narrow(a, b)?)].1;
        }
        if self.wide.slots.is_empty() {
            return None;
        }
        self.wide.slots[self.wide.find(wide(a, b))].1
    }
    /// Adds an absent pair. Returns the number of bytes added.
    pub fn insert(&mut self, a: u32, b: u32, value: V) -> u64 {
        let before = self.bytes();
        let len = self.narrow.slots.len().max(self.wide.slots.len());
        let full = self.used as usize * 2 >= len;
        let size = if full { (len * 2).max(FIRST) } else { len };
        match narrow(a, b) {
            Some(key) if self.wide.slots.is_empty() => {
                if full {
                    let mut more = Places::new(size);
                    self.narrow.entries().for_each(|(k, v)| more.put(k, v));
                    self.narrow = more;
                }
                self.narrow.put(key, value);
            }
            _ => {
                if full || self.wide.slots.is_empty() {
                    let mut more = Places::new(size);
                    self.narrow.entries().for_each(|(k, v)| more.put(wide(k >> 16, k % NARROW), v));
                    self.wide.entries().for_each(|(k, v)| more.put(k, v));
                    self.narrow.slots = Vec::new();
                    self.wide = more;
                }
                self.wide.put(wide(a, b), value);
            }
        }
        self.used += 1;
        self.bytes() - before
    }
    fn bytes(&self) -> u64 {
        (size_of_val(&self.narrow.slots[..]) + size_of_val(&self.wide.slots[..])) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;
    use std::collections::HashMap;
    use std::num::NonZeroU32;

    #[test]
    fn equals_a_hash_map_narrow_and_wide() {
        for seed in 0..6u64 {
            let mut random = Random::new(seed);
            let (mut map, mut twin) = (PairMap::<NonZeroU32>::default(), HashMap::new());
            for step in 1..3_000u32 {
                // Wide from some step on, at once, or never.
                let far = seed % 3 == 2 || seed % 3 == 1 && step > 700 && step % 5 == 0;
                let (a, b) = (random.below(90) as u32, random.below(90) as u32);
                let (a, b) = if far { (a << 16 | b, b << 20) } else { (a, 65_535 - b) };
                let value = NonZeroU32::new(step).expect("steps are counted from one");
                assert_eq!(map.get(a, b), twin.get(&(a, b)).copied(), "seed {seed} step {step}");
                if twin.insert((a, b), value).is_none() {
                    map.insert(a, b, value);
                } else {
                    twin.insert((a, b), map.get(a, b).expect("a pair that was inserted"));
                }
                assert_eq!(
                    map.get(a + 65_536, b),
                    twin.get(&(a + 65_536, b)).copied(),
                    "seed {seed} step {step}"
                );
            }
            assert_eq!(map.used as usize, twin.len());
            assert!(twin.iter().all(|((a, b), v)| map.get(*a, *b) == Some(*v)), "seed {seed}");
            assert_eq!(map.wide.slots.is_empty(), seed % 3 == 0);
        }
    }

    #[test]
    fn an_entry_of_a_narrow_map_takes_eight_bytes() {
        assert_eq!(size_of::<(u32, Option<NonZeroU32>)>(), 8);
        let mut map = PairMap::<NonZeroU32>::default();
        let bytes: u64 = (0..8).map(|i| map.insert(i, i, NonZeroU32::MIN)).sum();
        assert_eq!(bytes, 128);
    }
}
