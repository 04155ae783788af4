//! Binary relations between the local states of components, as rows of bits.
//!
//! Of each two components, a row for each local state of the first one, in both directions. A local
//! state has a mask of the components towards which its row has grown since the last visit, and the
//! time of the last growth. Cost: two bits for each pair of local states.

/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// Adds a number. True if it is new.
    pub fn insert(&mut self, n: u32) -> bool {
        let (word, bit) = (n as usize / 64, 1 << (n % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    pub fn contains(&self, n: u32) -> bool {
        self.0.get(n as usize / 64).is_some_and(|word| word >> (n % 64) & 1 == 1)
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Removes what another set does not contain.
    pub fn intersect(&mut self, other: &Self) {
        self.0.truncate(other.0.len());
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
    }

    /// Becomes a copy of another set.
    pub fn assign(&mut self, other: &Self) {
        self.0.clear();
        self.0.extend_from_slice(&other.0);
    }

    /// Adds the members of another set. Calls `see` with those that are new.
    pub fn unite(&mut self, other: &Self, mut see: impl FnMut(u32)) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (at, (word, more)) in (0u32..).zip(self.0.iter_mut().zip(&other.0)) {
            let mut new = more & !*word;
            *word |= new;
            while new != 0 {
                see(at * 64 + new.trailing_zeros());
                new &= new - 1;
            }
        }
    }

    /// Returns the members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.0).flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                (left != 0).then(|| {
                    let bit = left.trailing_zeros();
                    left &= left - 1;
                    at * 64 + bit
                })
            })
        })
    }
}

/// Changes of a local state since visits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    /// Components towards which the row has grown since the last visit for steps of one component.
    pub alone: u64,
    /// The same for steps of several components.
    pub joint: bool,
    /// Time of the last growth.
    pub grown: u32,
    /// Time of the last visit for steps of several components.
    pub visited: u32,
}

/// The relations of one node.
#[derive(Clone, Debug)]
pub(super) struct Relations {
    components: usize,
    /// By ordered pair of components and local state of the first one.
    rows: Vec<Vec<Bits>>,
    /// By component and local state.
    pub changes: Vec<Vec<Change>>,
    /// Local states to visit: those for steps of one component, and all others.
    pub alone: Vec<(usize, u32)>,
    pub joint: std::collections::VecDeque<(usize, u32)>,
    pub present: Vec<Bits>,
    /// Number of pairs of different components.
    pub pairs: u64,
    empty: Bits,
}

impl Relations {
    pub fn new(components: usize) -> Self {
        Self {
            components,
            rows: vec![Vec::new(); components * components],
            changes: vec![Vec::new(); components],
            alone: Vec::new(),
            joint: std::collections::VecDeque::new(),
            present: vec![Bits::default(); components],
            pairs: 0,
            empty: Bits::default(),
        }
    }

    /// Returns the local states of `b` that occur with a local state of `a`.
    pub fn row(&self, a: usize, x: u32, b: usize) -> &Bits {
        self.rows[a * self.components + b].get(x as usize).unwrap_or(&self.empty)
    }

    fn mark(&mut self, a: usize, x: u32, b: usize, clock: u32) {
        let all = &mut self.changes[a];
        if all.len() <= x as usize {
            all.resize(x as usize + 1, Change::default());
        }
        let change = &mut all[x as usize];
        if change.alone == 0 {
            self.alone.push((a, x));
        }
        if !change.joint {
            self.joint.push_back((a, x));
        }
        change.alone |= 1 << b;
        change.joint = true;
        change.grown = clock;
        self.present[a].insert(x);
    }

    fn row_mut(&mut self, a: usize, x: u32, b: usize) -> &mut Bits {
        let rows = &mut self.rows[a * self.components + b];
        if rows.len() <= x as usize {
            rows.resize(x as usize + 1, Bits::default());
        }
        &mut rows[x as usize]
    }

    /// Adds the pairs of a local state of `a` with some of `b`.
    pub fn add(&mut self, (a, x): (usize, u32), b: usize, all: &Bits, clock: u32) {
        let mut new = Vec::new();
        self.row_mut(a, x, b).unite(all, |y| new.push(y));
        if new.is_empty() {
            return;
        }
        self.pairs += new.len() as u64;
        self.mark(a, x, b, clock);
        for y in new {
            self.row_mut(b, y, a).insert(x);
            self.mark(b, y, a, clock);
        }
    }

    /// Adds one pair.
    pub fn add_pair(&mut self, (a, x): (usize, u32), (b, y): (usize, u32), clock: u32) {
        if self.row_mut(a, x, b).insert(y) {
            self.row_mut(b, y, a).insert(x);
            self.pairs += 1;
            self.mark(a, x, b, clock);
            self.mark(b, y, a, clock);
        }
    }

    /// Returns the changes of a local state.
    pub fn change(&mut self, a: usize, x: u32) -> &mut Change {
        &mut self.changes[a][x as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[u32]) -> Bits {
        let mut bits = Bits::default();
        all.iter().for_each(|n| {
            bits.insert(*n);
        });
        bits
    }

    #[test]
    fn sets_of_bits() {
        let mut a = of(&[1, 70, 200]);
        assert!(!a.insert(70) && a.insert(3) && a.contains(200) && !a.contains(4_000));
        let mut new = Vec::new();
        a.unite(&of(&[3, 64, 300]), |n| new.push(n));
        assert_eq!((new, a.iter().count()), (vec![64, 300], 6));
        a.intersect(&of(&[3, 65, 70]));
        assert_eq!(a.iter().collect::<Vec<_>>(), [3, 70]);
        a.assign(&of(&[]));
        assert!(a.is_empty());
    }

    #[test]
    fn pairs_have_two_directions() {
        let mut relations = Relations::new(3);
        relations.add((0, 5), 2, &of(&[1, 9]), 4);
        relations.add_pair((2, 9), (0, 5), 7);
        relations.add_pair((1, 0), (0, 5), 8);
        assert_eq!(relations.pairs, 3);
        assert_eq!(relations.row(2, 9, 0), &of(&[5]));
        assert_eq!(relations.present[0], of(&[5]));
        let change = *relations.change(0, 5);
        assert_eq!((change.alone, change.grown), (0b110, 8));
        assert_eq!(relations.change(2, 9).grown, 4);
    }
}
