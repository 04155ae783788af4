//! Operation cache: direct-mapped and lossy, 16 bytes an entry. A key is an operation with up to
//! two operands.
//!
//! A lost entry costs only time, but possibly much: its result is computed again. So the cache
//! doubles, up to a bound, when it has lost as many entries as it holds. It is halved when nodes
//! need the memory, because a search cannot continue without nodes.
//!
//! Several threads may read and write at once, without locks. An entry is two words. The second
//! holds operand `b` and the result. The first holds the operation and operand `a`, xored with a
//! hash of the second (after Hyatt and Mann, "A lock-less transposition table implementation for
//! parallel search", 2002). If a reader observes a partial write, the words belong to different
//! entries. It then gets a false hit only if two 64-bit hashes match: probability 2^-64. With one
//! thread this cannot happen.

use super::Ldd;
use super::table::{Marks, mix};
use mu_base::atomics::{AtomicU64, Ordering};
use mu_base::narrow;

/// The two words of an entry.
#[derive(Debug, Default)]
struct EntryWords([AtomicU64; 2]);

/// An entry's content.
#[derive(Clone, Copy)]
struct CacheEntry {
    op: u32,
    a: u32,
    b: u32,
    result: u32,
}

#[derive(Debug)]
pub(super) struct Cache {
    entries: Vec<EntryWords>,
    shift: u32,
}

/// Returns the mask of the first word; 0 for 0, so that an empty entry has operation 0.
#[inline]
fn mask(second: u64) -> u64 {
    let p = u128::from(second) * 0x9E37_79B9_7F4A_7C15;
    (p as u64).rotate_left(23) ^ ((p >> 64) as u64)
}

impl CacheEntry {
    #[inline]
    fn words(self) -> [u64; 2] {
        let second = u64::from(self.b) << 32 | u64::from(self.result);
        [(u64::from(self.op) << 32 | u64::from(self.a)) ^ mask(second), second]
    }
    #[inline]
    fn of([first, second]: [u64; 2]) -> Self {
        let first = first ^ mask(second);
        Self {
            op: narrow::high(first),
            a: narrow::low(first),
            b: narrow::high(second),
            result: narrow::low(second),
        }
    }
}

impl Cache {
    pub fn new(bits: u32) -> Self {
        let mut entries = Vec::new();
        entries.resize_with(1 << bits, EntryWords::default);
        Self { entries, shift: 64 - bits }
    }
    pub fn bytes(&self) -> u64 {
        (self.entries.len() * size_of::<EntryWords>()) as u64
    }
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    #[inline]
    pub(super) fn place(&self, op: u32, a: Ldd, b: Ldd) -> usize {
        (mix(u64::from(a.0) << 32 | u64::from(b.0), u64::from(op) << 24 | 1)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            >> self.shift) as usize
    }
    #[inline]
    fn load(&self, at: usize) -> CacheEntry {
        let EntryWords([first, second]) = &self.entries[at];
        // Makes the writer's nodes visible, through the first word: if the two words belong to
        // different entries, the entry is rejected.
        CacheEntry::of([first.load(Ordering::Acquire), second.load(Ordering::Relaxed)])
    }
    /// Returns the result stored for an operation (`op` is not 0); `None` if there is none.
    #[inline]
    pub fn get(&self, op: u32, a: Ldd, b: Ldd) -> Option<Ldd> {
        let f = self.load(self.place(op, a, b));
        (f.op == op && f.a == a.0 && f.b == b.0).then_some(Ldd(f.result))
    }
    /// Stores a result. Returns true if that overwrites another one.
    #[inline]
    pub fn put(&self, op: u32, a: Ldd, b: Ldd, result: Ldd) -> bool {
        let EntryWords([first, second]) = &self.entries[self.place(op, a, b)];
        let words = CacheEntry { op, a: a.0, b: b.0, result: result.0 }.words();
        let lost = first.load(Ordering::Relaxed) != 0;
        second.store(words[1], Ordering::Relaxed);
        first.store(words[0], Ordering::Release);
        lost
    }
    /// Doubles the size and retains the entries.
    pub fn grow(&mut self) {
        let old = std::mem::replace(self, Self::new(self.entries.len().trailing_zeros() + 1));
        for f in (0..old.entries.len()).map(|at| old.load(at)).filter(|f| f.op != 0) {
            self.put(f.op, Ldd(f.a), Ldd(f.b), Ldd(f.result));
        }
    }
    /// Halves the size in place: of two entries that now share a position one is lost.
    pub fn halve(&mut self) {
        let half = self.entries.len() / 2;
        for at in 0..half {
            // The position is the upper bits of a hash.
            let from = if self.load(2 * at + 1).op == 0 { 2 * at } else { 2 * at + 1 };
            self.entries[at] = std::mem::take(&mut self.entries[from]);
        }
        self.entries.truncate(half);
        self.entries.shrink_to_fit();
        self.shift += 1;
    }
    /// Removes entries that refer to a dead node, or are invalid: concurrent writers may have left
    /// halves of two entries.
    pub fn sweep(&mut self, marks: &Marks) {
        for at in 0..self.entries.len() {
            let f = self.load(at);
            if f.op != 0 && !(marks.get(f.a) && marks.get(f.b) && marks.get(f.result)) {
                self.entries[at] = EntryWords::default();
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// An entry with one word of each of two entries matches no possible lookup: neither that of
    /// one of the entries, nor one made of their parts.
    #[test]
    fn halves_of_two_entries_are_rejected() {
        let mut random = mu_base::random::Random::new(1);
        let (rounds, mut mixed) = (if cfg!(miri) { 2_000 } else { 200_000 }, 0);
        for _ in 0..rounds {
            // Small numbers, so that entries share parts.
            let mut part = || u32::try_from(random.below(6)).unwrap();
            let [f, g] =
                [0; 2].map(|_| CacheEntry { op: 1 + part(), a: part(), b: part(), result: part() });
            let [of_f, of_g] = [f, g].map(CacheEntry::words);
            assert_eq!(CacheEntry::of(of_f).words(), of_f);
            if of_f[1] != of_g[1] {
                let got = CacheEntry::of([of_f[0], of_g[1]]);
                assert!(got.op > 6 || got.a > 5, "{of_f:?} {of_g:?}");
                mixed += 1;
            }
        }
        assert!(mixed > rounds / 2);
    }

    /// A halved cache returns only results of the whole one.
    #[test]
    fn a_halved_cache_knows_one_entry_of_two() {
        let mut cache = Cache::new(8);
        let facts: Vec<CacheEntry> = (0..1000)
            .map(|i| CacheEntry { op: 1 + i % 3, a: i, b: i * i, result: 2 + i })
            .collect();
        let count = |cache: &Cache| {
            let known =
                facts.iter().filter_map(|f| Some((f, cache.get(f.op, Ldd(f.a), Ldd(f.b))?)));
            known.inspect(|(f, found)| assert_eq!(found.0, f.result)).count()
        };
        facts.iter().for_each(|f| _ = cache.put(f.op, Ldd(f.a), Ldd(f.b), Ldd(f.result)));
        let before = count(&cache);
        cache.halve();
        let after = count(&cache);
        assert_eq!(cache.bytes(), 16 << 7);
        assert!(before > 200 && after > 120 && after <= 128, "{before}, {after}");
        facts.iter().for_each(|f| _ = cache.put(f.op, Ldd(f.a), Ldd(f.b), Ldd(f.result)));
        assert!(count(&cache) > 120);
    }

    #[test]
    fn halves_of_two_entries_are_swept() {
        let mut cache = Cache::new(4);
        let [f, g] = [
            CacheEntry { op: 1, a: 2, b: 3, result: 4 },
            CacheEntry { op: 5, a: 6, b: 7, result: 8 },
        ];
        cache.put(f.op, Ldd(f.a), Ldd(f.b), Ldd(f.result));
        let at = cache.place(f.op, Ldd(f.a), Ldd(f.b));
        let EntryWords([_, second]) = &cache.entries[at];
        second.store(g.words()[1], Ordering::Relaxed);
        cache.grow();
        cache.sweep(&Marks::new(64));
        let words = cache.entries.iter().flat_map(|e| &e.0).map(|w| w.load(Ordering::Relaxed));
        assert_eq!(words.max(), Some(0));
    }
}
