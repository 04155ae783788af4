//! Sets of events and relations between them, as bit vectors and bit matrices.
//!
//! A [`Set`] is a row of bits, a [`Relation`] a square matrix of them, row after row in one
//! allocation. A row has one word for each 64 events, and at least one. Operations write
//! into an existing matrix (`x.unite(&y)`, `x.compose(&a, &b)`) without allocation; the others
//! return a new one.
//!
//! Cost, with `n` events and `w = max(1, ⌈n/64⌉)` words a row: union and the like `n·w`;
//! composition `pairs·w`; transitive closure `n²·w` (Warshall); cycle detection `n²·w` at worst, a
//! shortest cycle `n·(pairs + n·w)`. Invariant: bits at and above `n` are zero in every row.
//! Operations on two operands require that both have the same number of events.

use mu_base::narrow;
use std::fmt;

/// Returns the number of words for `n` bits.
fn words(n: usize) -> usize {
    n.div_ceil(64).max(1)
}

/// Returns the bits of the last word that belong to `n` events.
fn last_mask(n: usize) -> u64 {
    match words(n) * 64 - n {
        64 => 0,
        unused => u64::MAX >> unused,
    }
}

/// Returns the positions of the bits of words, ascending.
fn bits(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    row.iter().enumerate().flat_map(|(i, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let at = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (at < 64).then_some(i * 64 + at)
        })
    })
}

/// A set of events: bit `e` is set if event `e` is in it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Set {
    size: u32,
    bits: Box<[u64]>,
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Set {
    /// Creates the empty set in a universe of `n` events.
    pub fn empty(n: usize) -> Self {
        Self { size: narrow::index(n), bits: vec![0; words(n)].into_boxed_slice() }
    }
    /// Creates the set of all `n` events.
    pub fn full(n: usize) -> Self {
        let mut set = Self::empty(n);
        set.fill();
        set
    }
    /// Creates a set from a list.
    pub fn from_events(n: usize, events: impl IntoIterator<Item = usize>) -> Self {
        let mut set = Self::empty(n);
        events.into_iter().for_each(|e| set.insert(e));
        set
    }
    /// Returns the size of the universe.
    pub fn universe(&self) -> usize {
        self.size as usize
    }
    /// Replaces the content by all events.
    pub fn fill(&mut self) {
        self.bits.fill(u64::MAX);
        self.trim();
    }
    /// Removes all events.
    pub fn clear(&mut self) {
        self.bits.fill(0);
    }
    fn trim(&mut self) {
        let mask = last_mask(self.universe());
        if let Some(last) = self.bits.last_mut() {
            *last &= mask;
        }
    }
    /// Adds an event. Panics if it is outside the universe.
    pub fn insert(&mut self, e: usize) {
        assert!(e < self.size as usize, "event {e} of {}", self.size);
        self.bits[e / 64] |= 1 << (e % 64);
    }
    /// Removes an event.
    pub fn remove(&mut self, e: usize) {
        self.bits[e / 64] &= !(1 << (e % 64));
    }
    /// True if an event is in it.
    pub fn contains(&self, e: usize) -> bool {
        self.bits[e / 64] >> (e % 64) & 1 == 1
    }
    /// Returns the events, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        bits(&self.bits)
    }
    /// Returns the least event; `None` if the set is empty.
    pub fn first(&self) -> Option<usize> {
        self.iter().next()
    }
    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.bits.iter().map(|w| w.count_ones() as usize).sum()
    }
    /// True if it has none.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|w| *w == 0)
    }
    /// True if it is a subset of another set.
    pub fn is_subset(&self, other: &Set) -> bool {
        self.bits.iter().zip(&other.bits).all(|(a, b)| a & !b == 0)
    }
    /// Replaces the content by that of another set of the same universe.
    pub fn copy(&mut self, other: &Set) {
        self.bits.copy_from_slice(&other.bits);
    }
    /// Adds the events of another set.
    pub fn unite(&mut self, other: &Set) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(a, b)| *a |= b);
    }
    /// Removes the events that another set lacks.
    pub fn intersect(&mut self, other: &Set) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(a, b)| *a &= b);
    }
    /// Removes the events of another set.
    pub fn subtract(&mut self, other: &Set) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(a, b)| *a &= !b);
    }
    /// Replaces the content by all other events.
    pub fn complement(&mut self) {
        self.bits.iter_mut().for_each(|a| *a = !*a);
        self.trim();
    }
    /// Returns its words: bit `e % 64` of word `e / 64` is event `e`.
    pub fn words(&self) -> &[u64] {
        &self.bits
    }
    /// Replaces the content by the domain of a relation.
    pub fn domain_of(&mut self, r: &Relation) {
        self.clear();
        for a in 0..r.universe() {
            if r.row(a).iter().any(|w| *w != 0) {
                self.insert(a);
            }
        }
    }
    /// Replaces the content by the range of a relation.
    pub fn range_of(&mut self, r: &Relation) {
        self.clear();
        for a in 0..r.universe() {
            self.bits.iter_mut().zip(r.row(a)).for_each(|(x, y)| *x |= y);
        }
    }
}

/// A relation between events: row `a` contains the bits of all `b` with (a, b) in it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Relation {
    size: u32,
    width: u32,
    bits: Box<[u64]>,
}

impl fmt::Debug for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.pairs()).finish()
    }
}

impl Relation {
    /// Creates the empty relation in a universe of `n` events.
    pub fn empty(n: usize) -> Self {
        let width = words(n);
        Self {
            size: narrow::index(n),
            width: narrow::index(width),
            bits: vec![0; n * width].into_boxed_slice(),
        }
    }
    /// Creates a relation from a list of pairs.
    pub fn from_pairs(n: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut r = Self::empty(n);
        pairs.into_iter().for_each(|(a, b)| r.insert(a, b));
        r
    }
    /// Creates the identity.
    pub fn identity(n: usize) -> Self {
        Self::from_pairs(n, (0..n).map(|e| (e, e)))
    }
    /// Creates the relation of all pairs.
    pub fn full(n: usize) -> Self {
        let mut r = Self::empty(n);
        r.complement();
        r
    }
    /// Returns the size of the universe.
    pub fn universe(&self) -> usize {
        self.size as usize
    }
    /// Returns the words of a row: the successors of `a`.
    pub fn row(&self, a: usize) -> &[u64] {
        let w = self.width as usize;
        &self.bits[a * w..(a + 1) * w]
    }
    fn row_mut(&mut self, a: usize) -> &mut [u64] {
        let w = self.width as usize;
        &mut self.bits[a * w..(a + 1) * w]
    }
    /// Returns the successors of `a`, ascending: all `b` with (a, b) in it.
    pub fn successors(&self, a: usize) -> impl Iterator<Item = usize> + '_ {
        bits(self.row(a))
    }
    /// Returns the predecessors of `b`, ascending: all `a` with (a, b) in it.
    pub fn predecessors(&self, b: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.universe()).filter(move |&a| self.contains(a, b))
    }
    /// Adds a pair. Panics if one of its events is outside the universe.
    pub fn insert(&mut self, a: usize, b: usize) {
        assert!(b < self.size as usize, "event {b} of {}", self.size);
        self.row_mut(a)[b / 64] |= 1 << (b % 64);
    }
    /// Removes a pair.
    pub fn remove(&mut self, a: usize, b: usize) {
        self.row_mut(a)[b / 64] &= !(1 << (b % 64));
    }
    /// True if a pair is in it.
    pub fn contains(&self, a: usize, b: usize) -> bool {
        self.row(a)[b / 64] >> (b % 64) & 1 == 1
    }
    /// Returns the pairs, in ascending order.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.universe()).flat_map(move |a| self.successors(a).map(move |b| (a, b)))
    }
    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.bits.iter().map(|w| w.count_ones() as usize).sum()
    }
    /// True if it has none.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|w| *w == 0)
    }
    /// True if it is a subset of another relation.
    pub fn is_subset(&self, other: &Relation) -> bool {
        self.bits.iter().zip(&other.bits).all(|(a, b)| a & !b == 0)
    }
    /// True if no event is related to itself.
    pub fn is_irreflexive(&self) -> bool {
        (0..self.universe()).all(|e| !self.contains(e, e))
    }
    /// Removes all pairs.
    pub fn clear(&mut self) {
        self.bits.fill(0);
    }
    /// Replaces the content by that of another relation of the same universe.
    pub fn copy(&mut self, other: &Relation) {
        self.bits.copy_from_slice(&other.bits);
    }
    /// Adds the pairs of another relation.
    pub fn unite(&mut self, other: &Relation) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(a, b)| *a |= b);
    }
    /// Removes the pairs that another relation lacks.
    pub fn intersect(&mut self, other: &Relation) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(a, b)| *a &= b);
    }
    /// Removes the pairs of another relation.
    pub fn subtract(&mut self, other: &Relation) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(a, b)| *a &= !b);
    }
    /// Replaces the content by all other pairs.
    pub fn complement(&mut self) {
        let mask = last_mask(self.universe());
        let w = self.width as usize;
        for row in self.bits.chunks_mut(w) {
            row.iter_mut().for_each(|x| *x = !*x);
            row[w - 1] &= mask;
        }
    }
    /// Adds the identity, which makes it reflexive.
    pub fn close_reflexively(&mut self) {
        (0..self.universe()).for_each(|e| self.insert(e, e));
    }
    /// Replaces the content by the product of two sets.
    pub fn product(&mut self, from: &Set, to: &Set) {
        self.clear();
        for a in from.iter() {
            self.row_mut(a).copy_from_slice(to.words());
        }
    }
    /// Replaces the content by the identity on a set.
    pub fn identity_on(&mut self, set: &Set) {
        self.clear();
        set.iter().for_each(|e| self.insert(e, e));
    }
    /// Removes the pairs that do not begin in a set.
    pub fn restrict_domain(&mut self, set: &Set) {
        for a in 0..self.universe() {
            if !set.contains(a) {
                self.row_mut(a).fill(0);
            }
        }
    }
    /// Removes the pairs that do not end in a set.
    pub fn restrict_range(&mut self, set: &Set) {
        let w = self.width as usize;
        for row in self.bits.chunks_mut(w) {
            row.iter_mut().zip(set.words()).for_each(|(a, b)| *a &= b);
        }
    }
    /// Replaces the content by the inverse of another relation.
    pub fn invert(&mut self, other: &Relation) {
        self.clear();
        for a in 0..other.universe() {
            for b in other.successors(a) {
                self.insert(b, a);
            }
        }
    }
    /// Replaces the content by the composition of two others: (a, c) if some b has (a, b) in the
    /// first and (b, c) in the second.
    pub fn compose(&mut self, first: &Relation, second: &Relation) {
        self.clear();
        if self.width == 1 {
            for (into, &row) in self.bits.iter_mut().zip(&first.bits) {
                let mut rest = row;
                while rest != 0 {
                    *into |= second.bits[rest.trailing_zeros() as usize];
                    rest &= rest - 1;
                }
            }
            return;
        }
        let w = self.width as usize;
        for a in 0..first.universe() {
            for b in first.successors(a) {
                self.bits[a * w..(a + 1) * w]
                    .iter_mut()
                    .zip(second.row(b))
                    .for_each(|(x, y)| *x |= y);
            }
        }
    }
    /// Adds the pairs of the transitive closure (Warshall 1962, one row at a time).
    pub fn close_transitively(&mut self) {
        let n = self.universe();
        if self.width == 1 {
            for k in 0..n {
                let row = self.bits[k];
                self.bits.iter_mut().filter(|x| **x >> k & 1 == 1).for_each(|x| *x |= row);
            }
            return;
        }
        let w = self.width as usize;
        let mut via = vec![0; w];
        for k in 0..n {
            via.copy_from_slice(self.row(k));
            for a in 0..n {
                if self.contains(a, k) {
                    self.bits[a * w..(a + 1) * w].iter_mut().zip(&via).for_each(|(x, y)| *x |= y);
                }
            }
        }
    }
    /// True if it has no cycle. Removes events without successors repeatedly; cost at most `n²·w`,
    /// usually far less.
    pub fn is_acyclic(&self) -> bool {
        let n = self.universe();
        if self.width == 1 {
            let mut alive = if n == 64 { u64::MAX } else { (1 << n) - 1 };
            loop {
                let mut rest = alive;
                let before = alive;
                while rest != 0 {
                    let a = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    if self.bits[a] & alive == 0 {
                        alive &= !(1 << a);
                    }
                }
                if alive == 0 {
                    return true;
                }
                if alive == before {
                    return false;
                }
            }
        }
        self.events_reaching_cycle().is_empty()
    }
    /// Returns the events from which a cycle is reachable.
    fn events_reaching_cycle(&self) -> Set {
        let mut alive = Set::full(self.universe());
        loop {
            let dead: Vec<usize> = alive
                .iter()
                .filter(|&a| self.row(a).iter().zip(alive.words()).all(|(x, y)| x & y == 0))
                .collect();
            if dead.is_empty() {
                return alive;
            }
            dead.into_iter().for_each(|a| alive.remove(a));
        }
    }
    /// Returns the events of a shortest cycle, each once; `None` if there is none. Cost
    /// `n·(pairs + n·w)`: a breadth-first search from each event that reaches a cycle.
    pub fn cycle(&self) -> Option<Vec<usize>> {
        let alive = self.events_reaching_cycle();
        let mut best: Option<Vec<usize>> = None;
        for start in alive.iter() {
            if let Some(path) = self
                .path_before(start, start)
                .filter(|p| best.as_ref().is_none_or(|b| p.len() < b.len()))
            {
                best = Some(path);
            }
        }
        best
    }
    /// Returns the events of a shortest path with at least one step from `a` to `b`, without `b`;
    /// `None` if there is no path.
    pub fn path_before(&self, a: usize, b: usize) -> Option<Vec<usize>> {
        let mut from: Vec<Option<usize>> = vec![None; self.universe()];
        let mut queue = std::collections::VecDeque::from([a]);
        while let Some(at) = queue.pop_front() {
            for next in self.successors(at) {
                if next == b {
                    let mut path: Vec<usize> =
                        std::iter::successors(Some(at), |&back| from[back]).collect();
                    path.reverse();
                    return Some(path);
                }
                if from[next].is_none() && next != a {
                    from[next] = Some(at);
                    queue.push_back(next);
                }
            }
        }
        None
    }
    /// Enumerates the strict total orders on a set that extend the restriction of this relation to
    /// it, each as a list of events, until `visit` returns true. Returns true if it did. There are
    /// none if the restriction has a cycle.
    pub fn linear_extensions(&self, set: &Set, visit: &mut dyn FnMut(&[usize]) -> bool) -> bool {
        fn go(
            r: &Relation,
            left: &mut Set,
            order: &mut Vec<usize>,
            visit: &mut dyn FnMut(&[usize]) -> bool,
        ) -> bool {
            if left.is_empty() {
                return visit(order);
            }
            let free: Vec<usize> =
                left.iter().filter(|&b| left.iter().all(|a| !r.contains(a, b))).collect();
            for e in free {
                left.remove(e);
                order.push(e);
                if go(r, left, order, visit) {
                    return true;
                }
                order.pop();
                left.insert(e);
            }
            false
        }
        let mut left = set.clone();
        go(self, &mut left, &mut Vec::new(), visit)
    }
}
