//! Relations between the local states of components: for each two components the pairs that occur
//! together.
//!
//! In: pairs, and sets of local states. Out: the local states of one component that occur with one
//! of another. A relation has a row of bits for each local state, in both directions. Each change
//! has the time of a clock, so that a pass skips what has not changed since the last one.
//! Invariant: a pair is in both directions or in none; the diagonal has the local states that occur
//! at all. Cost: a bit for each pair and direction.

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// Adds a number. True if it is new.
    pub fn add(&mut self, at: u32) -> bool {
        let (word, bit) = (at as usize / 64, 1u64 << (at % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    /// Adds the numbers of another set.
    pub fn add_bits(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, o)| *word |= o);
    }

    /// Replaces the set by another one.
    pub fn copy(&mut self, other: &Self) {
        self.0.clear();
        self.0.extend(&other.0);
    }

    /// Removes what another set does not contain.
    pub fn keep(&mut self, other: &Self) {
        self.0.truncate(other.0.len());
        self.0.iter_mut().zip(&other.0).for_each(|(word, o)| *word &= o);
    }

    /// Removes the numbers of another set.
    pub fn remove(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, o)| *word &= !o);
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().zip(0u32..).flat_map(|(word, at)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(at * 64 + bit)
            })
        })
    }
}

/// The relations of all components.
#[derive(Debug)]
pub(super) struct Relations {
    components: usize,
    /// For two components and a local state of the first: those of the second.
    rows: Vec<Vec<Bits>>,
    /// Time of the last change of each relation.
    changed: Vec<u32>,
    /// For each component and local state the time of the last change of a row.
    changed_local: Vec<Vec<u32>>,
    /// For each component the local states that occur.
    present: Vec<Bits>,
}

static NONE: Bits = Bits(Vec::new());

impl Relations {
    pub fn new(components: usize) -> Self {
        Self {
            components,
            rows: vec![Vec::new(); components * components],
            changed: vec![0; components * components],
            changed_local: vec![Vec::new(); components],
            present: vec![Bits::default(); components],
        }
    }

    /// Returns the local states of component `b` that occur with one of component `a`.
    pub fn row(&self, a: usize, b: usize, local: u32) -> &Bits {
        self.rows[a * self.components + b].get(local as usize).unwrap_or(&NONE)
    }

    /// Returns the local states of a component that occur.
    pub fn present(&self, component: usize) -> &Bits {
        &self.present[component]
    }

    /// Returns the time of the last change of a relation.
    pub fn last_change(&self, a: usize, b: usize) -> u32 {
        self.changed[a * self.components + b]
    }

    /// Returns the time of the last change of a row of a local state.
    pub fn changed_local(&self, a: usize, local: u32) -> u32 {
        self.changed_local[a].get(local as usize).copied().unwrap_or(0)
    }

    fn set_changed(&mut self, a: usize, b: usize, local: u32, clock: u32) {
        self.changed[a * self.components + b] = clock;
        let times = &mut self.changed_local[a];
        if times.len() <= local as usize {
            times.resize(local as usize + 1, 0);
        }
        times[local as usize] = clock;
    }

    /// Adds one direction of a pair. True if it is new.
    fn direct(&mut self, a: usize, b: usize, (x, y): (u32, u32), clock: u32) -> bool {
        let rows = &mut self.rows[a * self.components + b];
        if rows.len() <= x as usize {
            rows.resize(x as usize + 1, Bits::default());
        }
        let new = rows[x as usize].add(y);
        if new {
            self.set_changed(a, b, x, clock);
        }
        new
    }

    /// Adds a pair at a time.
    pub fn add(&mut self, a: usize, b: usize, (x, y): (u32, u32), clock: u32) {
        let new = self.direct(a, b, (x, y), clock);
        if new && a != b {
            self.direct(b, a, (y, x), clock);
        } else if new {
            self.present[a].add(x);
        }
    }

    /// Adds the pairs of a local state with all of a set.
    pub fn add_all(&mut self, a: usize, b: usize, x: u32, all: &Bits, clock: u32) {
        let rows = &mut self.rows[a * self.components + b];
        if rows.len() <= x as usize {
            rows.resize(x as usize + 1, Bits::default());
        }
        let row = &mut rows[x as usize].0;
        if row.len() < all.0.len() {
            row.resize(all.0.len(), 0);
        }
        let mut fresh = Vec::new();
        for (at, (word, add)) in (0u32..).zip(row.iter_mut().zip(&all.0)) {
            let new = add & !*word;
            if new != 0 {
                *word |= new;
                fresh.push((at, new));
            }
        }
        if fresh.is_empty() {
            return;
        }
        self.set_changed(a, b, x, clock);
        for (at, mut left) in fresh {
            while left != 0 {
                let y = at * 64 + left.trailing_zeros();
                left &= left - 1;
                self.direct(b, a, (y, x), clock);
            }
        }
    }

    /// Returns the number of pairs of different components.
    pub fn count(&self) -> usize {
        let n = self.components;
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| a * n + b));
        pairs.map(|at| self.rows[at].iter().map(Bits::count).sum::<usize>()).sum()
    }
}
