//! State table: an insert-only, lock-free hash table of packed state keys that grows in place.
//!
//! In: keys of up to 63 bits (see [`super::store`]). Out: true if a key is new, and its place.
//! Linear probing over buckets of one cache line; a lookup nearly always touches one line. The
//! table is exact: a key is permuted within its width, the upper part of the result selects the
//! bucket, and the entry holds the rest with the distance from its bucket. So 4 bytes an entry
//! suffice once there are many buckets (Cleary: "Compact Hash Tables Using Bidirectional Linear
//! Probing", 1984; here the distance is stored). A table with few buckets or very wide keys holds
//! whole keys in 8 bytes.
//!
//! The bucket is `hash * buckets / 2^bits`, which is *monotone in the hash*: the table is sorted by
//! hash up to probing. So growth by any factor is one sequential sweep that needs no second table
//! ([`growth`]). The table grows by a quarter in whole segments: 4.6 to 5.8 bytes a state with
//! short entries, 9.1 to 11.4 with long ones.
//!
//! Invariant: in every bucket from a key's home to the bucket of its entry, all entries before it
//! are occupied. Growth needs `&mut`, so it happens while no worker runs; in between, entries
//! change from 0 to their value once and never again.

pub(crate) use growth::Growth;
use mu_base::atomics::{AtomicU32, AtomicU64, Ordering};

/// Load at which the table requests growth, in 1/1024; for large and for small tables. Inserting a
/// new key probes up to the next gap, which is far in a full table, and a small table needs little
/// memory.
const FILL: u64 = 900;
const SMALL_FILL: u64 = 720;
/// Number of keys of a small table.
const SMALL_TABLE: u64 = 1 << 22;

fn fill(keys: u64) -> u64 {
    if keys <= SMALL_TABLE { SMALL_FILL } else { FILL }
}
/// Maximum distance in buckets of a long entry from its home, so that an overfull table is detected
/// early.
const LONG_REACH: u64 = 128;
/// Bits of a short entry that hold the distance in buckets from its home.
const DISTANCE_BITS: u32 = 5;
/// Buckets at the end that are no homes, for entries that probing moves beyond the last home.
const RESERVE: u64 = 64;
/// Maximum number of bits of a hash in a short entry.
const REST_BITS: u32 = 31 - DISTANCE_BITS;

/// Sizes at which a table changes its form or divides its work. Its content does not depend on
/// them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableSizes {
    /// log2 of the buckets of a segment.
    pub segment_bits: u32,
    /// Number of keys below which short entries are not used.
    pub short_from: u64,
    /// Minimum number of buckets of a strip of a growth for each additional thread.
    pub strip: u64,
    /// Number of hashes that are sorted together.
    #[cfg_attr(not(unix), allow(dead_code))]
    pub sorted: usize,
}

impl TableSizes {
    /// Sizes for searches; a segment has 4 MiB of entries.
    pub const LARGE: Self =
        Self { segment_bits: 16, short_from: 1 << 20, strip: 1 << 12, sorted: 1 << 12 };
    /// Sizes with which a table of a thousand keys takes every form.
    pub const SMALL: Self = Self { segment_bits: 16, short_from: 1 << 10, strip: 16, sorted: 16 };
}

/// Data stored with each key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Payload {
    /// Nothing.
    #[default]
    None,
    /// One number: [`StateTable::number`].
    Number,
    /// Two numbers in one word: [`StateTable::pair`].
    Pair,
    /// As `Pair`, and a third number: [`StateTable::number`].
    Triple,
}

/// Result of [`StateTable::insert`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Insert {
    /// The key was added at this place.
    New(u64),
    /// The key was present at this place.
    Old(u64),
    /// No room within reach: grow, then try again.
    Full,
}

/// Mapping from hashes to buckets and rests.
#[derive(Clone, Copy)]
struct Geometry {
    /// Width of keys and hashes.
    bits: u32,
    /// Number of homes; probing uses the rest of the last segment.
    homes: u64,
    /// Number of low bits that distinguish the hashes of a home.
    rest: u32,
}

impl Geometry {
    fn new(bits: u32, homes: u64) -> Self {
        let range = (1u128 << bits).div_ceil(u128::from(homes)) as u64 + 1;
        Self { bits, homes, rest: 64 - range.leading_zeros() }
    }
    #[inline]
    fn home(&self, hash: u64) -> u64 {
        ((u128::from(hash << (64 - self.bits)) * u128::from(self.homes)) >> 64) as u64
    }
    /// Returns the least hash of a home.
    #[inline]
    fn least(&self, home: u64) -> u64 {
        (u128::from(home) << self.bits).div_ceil(u128::from(self.homes)) as u64
    }
}

/// Format of entries.
trait TableCell: Send + Sync {
    /// Entries in a bucket.
    const COUNT: usize;
    fn zero() -> Self;
    fn get(&self) -> u64;
    /// Sets it to 0 and returns its value. No other thread may access it.
    fn take(&self) -> u64;
    /// Changes 0 to the value; `Err` with the present value if it is not 0.
    fn claim(&self, value: u64) -> Result<(), u64>;
    /// Encodes a hash at a distance from its home; `None` if the distance is too long. Never 0.
    fn encode(geometry: &Geometry, hash: u64, distance: u64) -> Option<u64>;
    /// Decodes the distance of a value; 0 if the format has none.
    fn distance(value: u64) -> u64;
    /// Decodes the hash of a value, given the least hash of its home.
    fn decode(geometry: &Geometry, value: u64, least: u64) -> u64;
}

impl TableCell for AtomicU64 {
    const COUNT: usize = 8;
    #[inline]
    fn zero() -> Self {
        AtomicU64::new(0)
    }
    #[inline]
    fn get(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
    #[inline]
    fn take(&self) -> u64 {
        let old = self.get();
        self.store(0, Ordering::Relaxed);
        old
    }
    #[inline]
    fn claim(&self, value: u64) -> Result<(), u64> {
        // Relaxed: an entry publishes nothing but itself; the data it refers to is read in a later
        // round only.
        self.compare_exchange(0, value, Ordering::Relaxed, Ordering::Relaxed).map(|_| ())
    }
    #[inline]
    fn encode(_: &Geometry, hash: u64, distance: u64) -> Option<u64> {
        (distance < LONG_REACH).then_some(hash + 1)
    }
    #[inline]
    fn distance(_: u64) -> u64 {
        0
    }
    #[inline]
    fn decode(_: &Geometry, value: u64, _: u64) -> u64 {
        value - 1
    }
}

impl TableCell for AtomicU32 {
    const COUNT: usize = 16;
    #[inline]
    fn zero() -> Self {
        AtomicU32::new(0)
    }
    #[inline]
    fn get(&self) -> u64 {
        u64::from(self.load(Ordering::Relaxed))
    }
    #[inline]
    fn take(&self) -> u64 {
        let old = self.get();
        self.store(0, Ordering::Relaxed);
        old
    }
    #[inline]
    fn claim(&self, value: u64) -> Result<(), u64> {
        // [`TableCell::encode`] gives short entries values of 32 bits.
        self.compare_exchange(0, value as u32, Ordering::Relaxed, Ordering::Relaxed)
            .map(|_| ())
            .map_err(u64::from)
    }
    #[inline]
    fn encode(geometry: &Geometry, hash: u64, distance: u64) -> Option<u64> {
        let rest = hash & ((1 << geometry.rest) - 1);
        (distance < 1 << DISTANCE_BITS).then_some((rest << DISTANCE_BITS | distance) + 1)
    }
    #[inline]
    fn distance(value: u64) -> u64 {
        (value - 1) & ((1 << DISTANCE_BITS) - 1)
    }
    #[inline]
    fn decode(geometry: &Geometry, value: u64, least: u64) -> u64 {
        let rest = (value - 1) >> DISTANCE_BITS;
        least + (rest.wrapping_sub(least) & ((1 << geometry.rest) - 1))
    }
}

/// Segments of buckets in one format.
struct Cells<C> {
    segments: Vec<Box<[C]>>,
    /// log2 of the buckets of a segment.
    bits: u32,
}

impl<C: TableCell> Cells<C> {
    /// Allocates at least this number of buckets.
    fn new(buckets: u64, bits: u32) -> Self {
        let mut cells = Self { segments: Vec::new(), bits };
        if buckets <= 1 << bits {
            cells.add((buckets as usize).next_power_of_two());
        } else {
            (0..buckets.div_ceil(1 << bits)).for_each(|_| cells.add(1 << bits));
        }
        cells
    }
    fn add(&mut self, buckets: usize) {
        self.segments.push(Self::segment(buckets));
    }
    fn segment(buckets: usize) -> Box<[C]> {
        (0..buckets * C::COUNT).map(|_| C::zero()).collect()
    }
    fn buckets(&self) -> u64 {
        self.segments.iter().map(|s| (s.len() / C::COUNT) as u64).sum()
    }
    /// Returns the number of buckets that are homes.
    fn homes(&self) -> u64 {
        let all = self.buckets();
        all - (all / 4).min(RESERVE)
    }
    #[inline]
    fn bucket(&self, bucket: u64) -> Option<&[C]> {
        let segment = self.segments.get((bucket >> self.bits) as usize)?;
        let at = (bucket & ((1 << self.bits) - 1)) as usize * C::COUNT;
        segment.get(at..at + C::COUNT)
    }
    #[inline]
    fn insert(&self, geometry: &Geometry, hash: u64) -> Insert {
        let home = geometry.home(hash);
        let mut at = home;
        loop {
            let (Some(bucket), Some(value)) =
                (self.bucket(at), C::encode(geometry, hash, at - home))
            else {
                return Insert::Full;
            };
            for (i, cell) in bucket.iter().enumerate() {
                let mut there = cell.get();
                if there == 0 {
                    match cell.claim(value) {
                        Ok(()) => return Insert::New(at * C::COUNT as u64 + i as u64),
                        Err(other) => there = other,
                    }
                }
                if there == value {
                    return Insert::Old(at * C::COUNT as u64 + i as u64);
                }
            }
            at += 1;
        }
    }
    fn find(&self, geometry: &Geometry, hash: u64) -> Option<u64> {
        let home = geometry.home(hash);
        let mut at = home;
        loop {
            let value = C::encode(geometry, hash, at - home)?;
            for (i, cell) in self.bucket(at)?.iter().enumerate() {
                match cell.get() {
                    0 => return None,
                    e if e == value => return Some(at * C::COUNT as u64 + i as u64),
                    _ => {}
                }
            }
            at += 1;
        }
    }
    /// Passes all hashes in ascending order to `each`, in parts of about `sorted`. Used for states
    /// on disk, hence only on Unix.
    #[cfg(unix)]
    fn in_order<E>(
        &self,
        geometry: &Geometry,
        sorted: usize,
        each: &mut dyn FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut part = Vec::new();
        for at in 0..self.buckets() {
            let least = geometry.least(at);
            let before = part.len();
            let taken =
                self.bucket(at).into_iter().flatten().map(C::get).take_while(|&value| value != 0);
            part.extend(taken.map(|value| Self::hash(geometry, value, at, least)));
            // No entry is moved past a bucket with a gap: the following entries have their home
            // after it.
            if part.len() - before < C::COUNT && part.len() >= sorted {
                part.sort_unstable();
                each(&part)?;
                part.clear();
            }
        }
        part.sort_unstable();
        each(&part)
    }
    /// Iterates over hashes with their places.
    fn entries<'c>(&'c self, geometry: &'c Geometry) -> impl Iterator<Item = (u64, u64)> + 'c {
        (0..self.buckets()).flat_map(move |at| {
            let least = geometry.least(at);
            self.bucket(at).into_iter().flatten().enumerate().filter_map(move |(i, cell)| {
                let value = cell.get();
                let place = at * C::COUNT as u64 + i as u64;
                (value != 0).then(|| (place, Self::hash(geometry, value, at, least)))
            })
        })
    }
    /// Returns the hash of a value in a bucket with this least hash.
    fn hash(geometry: &Geometry, value: u64, bucket: u64, least: u64) -> u64 {
        match C::distance(value) {
            0 => C::decode(geometry, value, least),
            d => C::decode(geometry, value, geometry.least(bucket - d)),
        }
    }
}

enum Format {
    Long(Cells<AtomicU64>),
    Short(Cells<AtomicU32>),
}

/// Evaluates an expression for either format.
macro_rules! either {
    ($format:expr, $cells:ident => $body:expr) => {
        match $format {
            Format::Long($cells) => $body,
            Format::Short($cells) => $body,
        }
    };
}

mod growth;

/// A word on cache lines of its own: all threads write it, while its neighbours are read all the
/// time.
#[repr(align(128))]
struct CacheAligned(AtomicU64);

/// The state table; see the module header.
pub(crate) struct StateTable {
    format: Format,
    geometry: Geometry,
    permutation: Permutation,
    payloads: Payloads,
    sizes: TableSizes,
    /// Occupied entries; workers add to it in batches.
    len: CacheAligned,
}

/// A bijection of the words of some width that spreads their bits.
#[derive(Clone, Copy)]
struct Permutation {
    mask: u64,
    shift: u32,
    inverses: [u64; 2],
}

const FACTORS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];

impl Permutation {
    fn new(bits: u32) -> Self {
        // Newton iteration: each round doubles the number of correct low bits.
        let inverse =
            |a: u64| (0..6).fold(a, |x, _| x.wrapping_mul(2u64.wrapping_sub(a.wrapping_mul(x))));
        Self { mask: (1 << bits) - 1, shift: bits.div_ceil(2), inverses: FACTORS.map(inverse) }
    }
    #[inline]
    fn apply(&self, key: u64) -> u64 {
        // A product propagates bits upwards only, and keys may differ in their high bits alone.
        let x = (key ^ (key >> self.shift)).wrapping_mul(FACTORS[0]) & self.mask;
        (x ^ (x >> self.shift)).wrapping_mul(FACTORS[1]) & self.mask
    }
    fn undo(&self, hash: u64) -> u64 {
        let x = hash.wrapping_mul(self.inverses[1]) & self.mask;
        let x = (x ^ (x >> self.shift)).wrapping_mul(self.inverses[0]) & self.mask;
        x ^ (x >> self.shift)
    }
}

/// Payloads of the entries, by place.
enum Payloads {
    None,
    Number(Chunks<AtomicU32>),
    Pair(Chunks<AtomicU64>),
    Triple(Chunks<AtomicU64>, Chunks<AtomicU32>),
}

/// Growable array of zero-initialised cells, by place.
struct Chunks<A> {
    segments: Vec<Box<[A]>>,
}

const CHUNK_BITS: u32 = 16;

impl<A: Default + Send> Chunks<A> {
    fn new(entries: u64) -> Self {
        let mut chunks = Self { segments: Vec::new() };
        chunks.extend(entries, 0);
        chunks
    }
    #[inline]
    fn at(&self, place: u64) -> &A {
        &self.segments[(place >> CHUNK_BITS) as usize][(place & ((1 << CHUNK_BITS) - 1)) as usize]
    }
    fn bytes(&self) -> u64 {
        self.segments.iter().map(|s| std::mem::size_of_val::<[A]>(s) as u64).sum()
    }
}

impl Payloads {
    fn new(kind: Payload, entries: u64) -> Self {
        match kind {
            Payload::None => Payloads::None,
            Payload::Number => Payloads::Number(Chunks::new(entries)),
            Payload::Pair => Payloads::Pair(Chunks::new(entries)),
            Payload::Triple => Payloads::Triple(Chunks::new(entries), Chunks::new(entries)),
        }
    }
    fn kind(&self) -> Payload {
        match self {
            Payloads::None => Payload::None,
            Payloads::Number(_) => Payload::Number,
            Payloads::Pair(_) => Payload::Pair,
            Payloads::Triple(..) => Payload::Triple,
        }
    }
    #[inline]
    fn get(&self, place: u64) -> u128 {
        match self {
            Payloads::None => 0,
            Payloads::Number(c) => u128::from(c.at(place).load(Ordering::Relaxed)),
            Payloads::Pair(c) => u128::from(c.at(place).load(Ordering::Relaxed)),
            Payloads::Triple(c, n) => {
                u128::from(c.at(place).load(Ordering::Relaxed))
                    | u128::from(n.at(place).load(Ordering::Relaxed)) << 64
            }
        }
    }
    #[inline]
    fn set(&self, place: u64, value: u128) {
        // A payload is as wide as its kind.
        match self {
            Payloads::None => {}
            Payloads::Number(c) => c.at(place).store(value as u32, Ordering::Relaxed),
            Payloads::Pair(c) => c.at(place).store(value as u64, Ordering::Relaxed),
            Payloads::Triple(c, n) => {
                c.at(place).store(value as u64, Ordering::Relaxed);
                n.at(place).store((value >> 64) as u32, Ordering::Relaxed);
            }
        }
    }
    fn bytes(&self) -> u64 {
        match self {
            Payloads::None => 0,
            Payloads::Number(c) => c.bytes(),
            Payloads::Pair(c) => c.bytes(),
            Payloads::Triple(c, n) => c.bytes() + n.bytes(),
        }
    }
}

/// Returns the maximum key width for which a table of this size has short entries; `None` if it has
/// none.
pub(crate) fn short_bits(keys: u64, sizes: TableSizes) -> Option<u32> {
    let buckets = buckets_for(keys, AtomicU32::COUNT);
    // One bit for a range that is not a power of two, one for rounding up.
    (keys >= sizes.short_from).then(|| REST_BITS - 2 + buckets.ilog2())
}

/// Returns the number of buckets for `keys` keys, with some room.
fn buckets_for(keys: u64, count: usize) -> u64 {
    (keys.max(64) * 1040 / fill(keys)).div_ceil(count as u64)
}

impl StateTable {
    /// Creates an empty table for about `expected` keys of `bits` bits, 63 at most.
    pub fn new(bits: u32, expected: u64, payload: Payload, sizes: TableSizes) -> Self {
        let segment_bits = sizes.segment_bits;
        // Shifts by 64 - bits and by bits must both be defined.
        let bits = bits.clamp(1, 63);
        let short = short_bits(expected, sizes).is_some_and(|most| bits <= most);
        let format = if short {
            Format::Short(Cells::new(buckets_for(expected, AtomicU32::COUNT), segment_bits))
        } else {
            Format::Long(Cells::new(buckets_for(expected, AtomicU64::COUNT), segment_bits))
        };
        let mut geometry = Geometry::new(bits, either!(&format, c => c.homes()));
        let format = match format {
            // The reserve at the end makes the range of homes a little smaller than computed.
            Format::Short(_) if geometry.rest > REST_BITS => {
                let cells = Cells::new(buckets_for(expected, AtomicU64::COUNT), segment_bits);
                geometry = Geometry::new(bits, cells.homes());
                Format::Long(cells)
            }
            format => format,
        };
        let mut table = Self {
            format,
            geometry,
            permutation: Permutation::new(bits),
            payloads: Payloads::None,
            sizes,
            len: CacheAligned(AtomicU64::new(0)),
        };
        table.payloads = Payloads::new(payload, table.places());
        table
    }
    /// Sets the sizes, except for that of segments.
    pub fn tune(&mut self, sizes: TableSizes) {
        self.sizes = TableSizes { segment_bits: self.sizes.segment_bits, ..sizes };
    }
    /// Returns the sizes.
    pub fn sizes(&self) -> TableSizes {
        self.sizes
    }
    /// Returns the number of entries, occupied or not.
    fn places(&self) -> u64 {
        either!(&self.format, c => c.segments.iter().map(|s| s.len() as u64).sum())
    }
    /// Returns the number of entries in homes.
    fn capacity(&self) -> u64 {
        let count = match &self.format {
            Format::Long(_) => AtomicU64::COUNT,
            Format::Short(_) => AtomicU32::COUNT,
        };
        self.geometry.homes * count as u64
    }
    /// Returns the hash of a key, for [`StateTable::touch`] and [`StateTable::insert_hashed`].
    #[inline]
    pub fn hash(&self, key: u64) -> u64 {
        self.permutation.apply(key)
    }
    /// Returns the key of a hash.
    pub fn key(&self, hash: u64) -> u64 {
        self.permutation.undo(hash)
    }
    /// Loads the cache line that an insertion will need. Called for a batch of keys before their
    /// insertion, so that the misses overlap.
    #[inline]
    pub fn touch(&self, hash: u64) -> u64 {
        let home = self.geometry.home(hash);
        either!(&self.format, c => c.bucket(home).map_or(0, |b| b[0].get()))
    }
    /// Returns the width of keys and hashes.
    #[cfg(unix)]
    pub fn key_bits(&self) -> u32 {
        self.geometry.bits
    }
    /// Passes the hashes of all keys in ascending order to `each`, in parts.
    #[cfg(unix)]
    pub fn in_order<E>(&self, each: &mut dyn FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        either!(&self.format, c => c.in_order(&self.geometry, self.sizes.sorted, each))
    }
    /// Removes all keys and retains the memory. Only for tables without payloads.
    #[cfg(unix)]
    pub fn clear(&mut self) {
        either!(&mut self.format, c => c.segments.iter_mut().flatten().for_each(|cell| _ = cell.take()));
        self.len = CacheAligned(AtomicU64::new(0));
    }
    /// Inserts a key unless it is present.
    pub fn insert(&self, key: u64) -> Insert {
        self.insert_hashed(self.hash(key))
    }
    /// Inserts the key of a hash unless it is present.
    #[inline]
    pub fn insert_hashed(&self, hash: u64) -> Insert {
        either!(&self.format, c => c.insert(&self.geometry, hash))
    }
    /// Returns the place of a key; `None` if it is not in the table.
    pub fn find(&self, key: u64) -> Option<u64> {
        either!(&self.format, c => c.find(&self.geometry, self.hash(key)))
    }
    /// Returns the number stored with an entry. Requires `Payload::Number` or `Payload::Triple`.
    #[inline]
    pub fn number(&self, place: u64) -> &AtomicU32 {
        match &self.payloads {
            Payloads::Number(c) | Payloads::Triple(_, c) => c.at(place),
            _ => unreachable!("a table without numbers"),
        }
    }
    /// Returns the two numbers stored with an entry. Requires `Payload::Pair` or `Payload::Triple`.
    #[inline]
    pub fn pair(&self, place: u64) -> &AtomicU64 {
        match &self.payloads {
            Payloads::Pair(c) | Payloads::Triple(c, _) => c.at(place),
            _ => unreachable!("a table without pairs"),
        }
    }
    /// Returns the payload of an entry, of any kind.
    pub fn payload(&self, place: u64) -> u128 {
        self.payloads.get(place)
    }
    /// Sets the payload of an entry.
    pub fn set_payload(&self, place: u64, value: u128) {
        self.payloads.set(place, value);
    }
    /// Returns the kind of payloads.
    pub fn payload_kind(&self) -> Payload {
        self.payloads.kind()
    }
    /// True if entries are short.
    pub fn is_short(&self) -> bool {
        matches!(self.format, Format::Short(_))
    }
    /// Returns the number of keys, as reported by [`StateTable::add_len`].
    pub fn len(&self) -> u64 {
        self.len.0.load(Ordering::Relaxed)
    }
    /// Adds to the number of keys; workers report their insertions in batches. Returns the new
    /// number.
    pub fn add_len(&self, new: u64) -> u64 {
        self.len.0.fetch_add(new, Ordering::Relaxed) + new
    }
    /// True if the table should grow.
    pub fn is_crowded(&self) -> bool {
        let (capacity, fill) = (self.capacity(), fill(self.capacity()));
        self.len() > capacity / 1024 * fill + capacity % 1024 * fill / 1024
    }
    /// Returns the bytes of the entries and payloads.
    pub fn bytes(&self) -> u64 {
        either!(&self.format, c => c.buckets() * 64) + self.payloads.bytes()
    }
    /// Iterates over all keys with their places.
    pub fn entries(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (long, short) = match &self.format {
            Format::Long(c) => (Some(c.entries(&self.geometry)), None),
            Format::Short(c) => (None, Some(c.entries(&self.geometry))),
        };
        long.into_iter()
            .flatten()
            .chain(short.into_iter().flatten())
            .map(|(place, hash)| (place, self.permutation.undo(hash)))
    }
}

#[cfg(all(test, not(loom)))]
mod interleavings;
#[cfg(all(test, loom))]
mod loom;
#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use mu_base::random::Random;
    use std::collections::HashMap;

    const BITS: [u32; 8] = [63, 40, 33, 32, 30, 29, 25, 12];

    fn key(random: &mut Random, bits: u32) -> u64 {
        random.next_u64() >> (64 - bits as usize + random.below(bits as usize - 6))
    }

    #[test]
    fn permutations_are_undone() {
        for bits in 1..=63 {
            let permutation = Permutation::new(bits);
            let mut random = Random::new(u64::from(bits));
            for _ in 0..100 {
                let key = random.next_u64() >> (64 - bits);
                assert_eq!(permutation.undo(permutation.apply(key)), key, "{bits} bits");
            }
        }
    }

    #[test]
    fn equals_a_hash_map_through_every_growth() {
        for seed in 0..8u64 {
            let bits = BITS[seed as usize];
            let expected = if seed < 4 { 0 } else { 1 << 10 };
            let sizes = TableSizes {
                segment_bits: 3 + u32::try_from(seed % 4).unwrap(),
                ..TableSizes::SMALL
            };
            let mut table = StateTable::new(bits, expected, Payload::Number, sizes);
            assert_eq!(table.is_short(), seed >= 4);
            let mut twin: HashMap<u64, u32> = HashMap::new();
            let mut random = Random::new(seed);
            let growth = |step: u32| Growth {
                generous: step % 2 == 1,
                helpers: (seed + u64::from(step)) as usize % 3,
            };
            for step in 0..if cfg!(miri) { 300 } else { 6_000u32 } {
                let k = key(&mut random, bits);
                let place = loop {
                    match table.insert(k) {
                        Insert::New(place) => {
                            assert!(twin.insert(k, step).is_none(), "seed {seed} step {step}");
                            table.number(place).store(step, Ordering::Relaxed);
                            table.add_len(1);
                            break place;
                        }
                        Insert::Old(place) => {
                            assert!(twin.contains_key(&k), "seed {seed} step {step}");
                            break place;
                        }
                        Insert::Full => table.grow(growth(step)),
                    }
                };
                assert_eq!(
                    table.number(place).load(Ordering::Relaxed),
                    twin[&k],
                    "seed {seed} step {step}"
                );
                if table.is_crowded() {
                    table.grow(growth(step));
                    for (&k, &n) in &twin {
                        let place = table
                            .find(k)
                            .unwrap_or_else(|| panic!("seed {seed} step {step}: {k} lost"));
                        assert_eq!(table.number(place).load(Ordering::Relaxed), n);
                    }
                }
            }
            let mut all: Vec<u64> = table.entries().map(|e| e.1).collect();
            let mut keys: Vec<u64> = twin.keys().copied().collect();
            all.sort_unstable();
            keys.sort_unstable();
            assert_eq!(all, keys);
            assert_eq!(table.len(), keys.len() as u64);
            let mut hashes = Vec::new();
            let mut keep = |part: &[u64]| {
                hashes.extend_from_slice(part);
                Ok::<(), ()>(())
            };
            table.in_order(&mut keep).unwrap();
            assert!(hashes.is_sorted_by(|a, b| a < b), "seed {seed}");
            let mut back: Vec<u64> = hashes.iter().map(|h| table.key(*h)).collect();
            back.sort_unstable();
            assert_eq!(back, keys, "seed {seed}");
        }
    }

    #[test]
    fn threads_agree_on_the_first_insertion() {
        let keys = if cfg!(miri) { 100 } else { 100_000 };
        let table = StateTable::new(30, 2 * keys, Payload::None, TableSizes::SMALL);
        let new: u64 = std::thread::scope(|scope| {
            let insert = || {
                (0..keys).filter(|&k| matches!(table.insert(k * 977), Insert::New(_))).count()
                    as u64
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(insert)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(new, keys);
        assert_eq!(table.entries().count() as u64, keys);
    }
}
