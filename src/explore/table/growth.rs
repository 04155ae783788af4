//! Growth of the state table in place, by all threads, while no worker uses it.
//!
//! The bucket is monotone in the hash, so a table of `n` buckets becomes one of `r n` by one sweep
//! from its end to its beginning. The sweep proceeds by *strips*: of the buckets below `high`,
//! those from about `high / r` on move to `high` and beyond, where everything is in the new order
//! already. So the threads divide a strip without synchronisation: each empties its own buckets and
//! inserts their entries as a worker does. Strips get shorter by the factor `r`, so there are a few
//! dozen; the last ones, of one bucket each, are processed by one thread.
//!
//! In: a crowded table. Out: the same entries with their payloads in a larger one. Cost: linear in
//! the entries; hardly any memory except the new segments (below one segment a second table).
//!
//! Invariant: before each strip all entries below `high` are where the old geometry puts them, all
//! others where the new one puts them, except entries that wait for their home to be swept. An
//! entry that finds no room within reach is inserted last.

use super::{Cells, Chunks, Format, Geometry, Insert, Payload, Payloads, StateTable, TableCell};
use mu_base::atomics::{AtomicU32, AtomicU64};

/// Buckets by which a strip starts later than necessary, so that entries moved by probing find
/// their home above the strip.
const SLACK: u64 = 4;
/// Upper bound on the distances of short entries.
const REACH: usize = 1 << super::DISTANCE_BITS;

/// Options of a growth.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Growth {
    /// Grow by three quarters instead of one, if memory is plentiful: then fewer sweeps are needed.
    pub generous: bool,
    /// Threads in addition to the calling one.
    pub helpers: usize,
}

/// An entry between two places.
struct MovedEntry {
    home: u64,
    hash: u64,
    payload: u128,
}

/// Runs a task for each number up to `helpers` concurrently; the last one runs in this thread.
fn run_concurrently<T: Send>(helpers: usize, task: impl Fn(usize) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let task = &task;
        let running: Vec<_> = (0..helpers).map(|i| scope.spawn(move || task(i))).collect();
        let last = task(helpers);
        let mut all: Vec<T> = running
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        all.push(last);
        all
    })
}

/// Allocates new segments in parallel: the first thread to touch the pages zeroes them, which takes
/// most of the time.
fn allocate_in_parallel<T: Send>(
    count: usize,
    helpers: usize,
    make: impl Fn() -> T + Sync,
) -> Vec<T> {
    let helpers = helpers.min(count.saturating_sub(1));
    let share = |i: usize| count * i / (helpers + 1)..count * (i + 1) / (helpers + 1);
    run_concurrently(helpers, |i| share(i).map(|_| make()).collect::<Vec<T>>())
        .into_iter()
        .flatten()
        .collect()
}

impl<A: Default + Send> Chunks<A> {
    /// Extends the array to this number of entries. Only the first segment may be shorter than a
    /// full one.
    pub(super) fn extend(&mut self, entries: u64, helpers: usize) {
        let full = 1u64 << super::CHUNK_BITS;
        if let [only] = self.segments.as_mut_slice()
            && (only.len() as u64) < full.min(entries)
        {
            let old = std::mem::take(only).into_vec();
            *only = old
                .into_iter()
                .chain(std::iter::repeat_with(A::default))
                .take(full.min(entries) as usize)
                .collect();
        }
        if self.segments.is_empty() && entries > 0 {
            self.segments.push((0..entries.min(full)).map(|_| A::default()).collect());
        }
        let missing = (entries.div_ceil(full) as usize).saturating_sub(self.segments.len());
        self.segments.extend(allocate_in_parallel(missing, helpers, || {
            (0..full).map(|_| A::default()).collect()
        }));
    }
}

impl Payloads {
    pub(super) fn extend(&mut self, entries: u64, helpers: usize) {
        match self {
            Payloads::None => {}
            Payloads::Number(c) => c.extend(entries, helpers),
            Payloads::Pair(c) => c.extend(entries, helpers),
            Payloads::Triple(c, n) => {
                c.extend(entries, helpers);
                n.extend(entries, helpers);
            }
        }
    }
}

impl StateTable {
    /// Returns the number of segments added by one growth.
    fn more(segments: usize, generous: bool) -> usize {
        (segments * if generous { 3 } else { 1 }).div_ceil(4)
    }
    /// Returns the approximate number of bytes that the next growth adds, if it is not generous.
    pub fn growth_bytes(&self) -> u64 {
        let full = 1u64 << self.sizes.segment_bits;
        let (buckets, segments) = either!(&self.format, c => (c.buckets(), c.segments.len()));
        let more =
            if buckets < full { 2 * buckets } else { Self::more(segments, false) as u64 * full };
        let entries = match &self.format {
            Format::Long(_) => AtomicU64::COUNT,
            Format::Short(_) => AtomicU32::COUNT,
        };
        let payload = match self.payload_kind() {
            Payload::None => 0,
            Payload::Number => 4,
            Payload::Pair => 8,
            Payload::Triple => 12,
        };
        more * (64 + entries as u64 * payload)
    }
    /// Makes room: below one segment by doubling into a new table, beyond it in place.
    pub fn grow(&mut self, growth: Growth) {
        // Entries that found no room within reach; rarely any.
        let mut left: Vec<(u64, u128)> = Vec::new();
        loop {
            let before = either!(&self.format, c => c.buckets());
            if before < 1 << self.sizes.segment_bits {
                self.double();
            } else {
                let old = self.geometry;
                either!(&mut self.format, c => c.widen(growth));
                self.geometry = Geometry::new(old.bits, either!(&self.format, c => c.homes()));
                let places = self.places();
                self.payloads.extend(places, growth.helpers);
                let (payloads, strip) = (&self.payloads, self.sizes.strip);
                either!(&self.format, c => left.extend(Sweep { cells: c, old, new: self.geometry, payloads, strip }.sweep_all(before, growth.helpers)));
            }
            left.retain(|&(hash, payload)| match self.insert_hashed(hash) {
                Insert::New(place) | Insert::Old(place) => {
                    self.set_payload(place, payload);
                    false
                }
                Insert::Full => true,
            });
            if left.is_empty() {
                return;
            }
        }
    }
    fn double(&mut self) {
        let mut expected = self.len().max(64);
        loop {
            // Twice the capacity, not twice the length: a request for room must make some.
            expected = (expected * 2).max(self.capacity());
            let wider =
                StateTable::new(self.geometry.bits, expected, self.payload_kind(), self.sizes);
            let fits = self.entries().all(|(place, key)| match wider.insert(key) {
                Insert::New(at) | Insert::Old(at) => {
                    wider.set_payload(at, self.payload(place));
                    true
                }
                Insert::Full => false,
            });
            if fits {
                wider.add_len(self.len());
                *self = wider;
                return;
            }
        }
    }
}

impl<C: TableCell> Cells<C> {
    fn widen(&mut self, growth: Growth) {
        let buckets = 1 << self.bits;
        self.segments.extend(allocate_in_parallel(
            StateTable::more(self.segments.len(), growth.generous),
            growth.helpers,
            || Self::segment(buckets),
        ));
    }
}

/// A sweep from the old order to the new one.
struct Sweep<'a, C> {
    cells: &'a Cells<C>,
    old: Geometry,
    new: Geometry,
    payloads: &'a Payloads,
    /// Minimum number of buckets of a strip for each additional thread.
    strip: u64,
}

impl<C: TableCell> Sweep<'_, C> {
    /// Sweeps the first `before` buckets. Returns the hashes and payloads that found no room within
    /// reach.
    fn sweep_all(&self, before: u64, helpers: usize) -> Vec<(u64, u128)> {
        let mut left = Vec::new();
        let mut waiting: Vec<MovedEntry> = Vec::new();
        let mut high = before;
        while high > 0 {
            let fitting = (u128::from(high) * u128::from(self.old.homes))
                .div_ceil(u128::from(self.new.homes)) as u64
                + SLACK;
            let low = fitting.min(high - 1);
            let helpers = helpers.min(((high - low) / self.strip) as usize);
            let parts = helpers as u64 + 1;
            let bound = |i: u64| low + (high - low) * i / parts;
            for (w, l) in
                run_concurrently(helpers, |i| self.part(bound(i as u64), bound(i as u64 + 1), high))
            {
                waiting.extend(w);
                left.extend(l);
            }
            waiting.retain(|moved| {
                if moved.home >= low {
                    self.put(moved, &mut left);
                }
                moved.home < low
            });
            high = low;
        }
        left
    }
    /// Empties buckets of the strip below `high`. Returns entries with a home that is not above the
    /// strip, and those that found no room.
    fn part(&self, from: u64, to: u64, high: u64) -> (Vec<MovedEntry>, Vec<(u64, u128)>) {
        let (mut waiting, mut left) = (Vec::new(), Vec::new());
        // The least hash of each of the last buckets, by their low bits.
        let mut least = [0; REACH];
        for bucket in from.saturating_sub(REACH as u64 - 1)..from {
            least[bucket as usize % REACH] = self.old.least(bucket);
        }
        for bucket in from..to {
            least[bucket as usize % REACH] = self.old.least(bucket);
            for (i, cell) in self.cells.bucket(bucket).into_iter().flatten().enumerate() {
                let value = cell.take();
                if value != 0 {
                    let place = bucket * C::COUNT as u64 + i as u64;
                    let home = bucket - C::distance(value);
                    let hash = C::decode(&self.old, value, least[home as usize % REACH]);
                    let moved = MovedEntry {
                        home: self.new.home(hash),
                        hash,
                        payload: self.payloads.get(place),
                    };
                    self.payloads.set(place, 0);
                    if moved.home < high {
                        waiting.push(moved)
                    } else {
                        self.put(&moved, &mut left)
                    }
                }
            }
        }
        (waiting, left)
    }
    /// Inserts an entry where its home and the following buckets are in the new order.
    fn put(&self, moved: &MovedEntry, left: &mut Vec<(u64, u128)>) {
        match self.cells.insert(&self.new, moved.hash) {
            Insert::New(place) | Insert::Old(place) => self.payloads.set(place, moved.payload),
            Insert::Full => left.push((moved.hash, moved.payload)),
        }
    }
}
