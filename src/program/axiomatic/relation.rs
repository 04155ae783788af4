//! Transitively closed relation over at most [`MAX_EVENTS`] events that rejects cycles.
//!
//! Cost: linear in the number of events for a new edge or a new event; a query is a bit test.

/// Largest number of events of an execution; larger ones are unsupported.
pub const MAX_EVENTS: usize = 64;

/// The relation: row `a` contains the successors of `a` as bits.
#[derive(Clone, Debug, Default)]
pub struct EventRelation {
    after: Vec<u64>,
}

impl EventRelation {
    /// Adds an event after the events of a set, and so after all their predecessors.
    pub fn append(&mut self, before: u64) {
        let new = 1 << self.after.len();
        for (i, row) in self.after.iter_mut().enumerate() {
            if before >> i & 1 == 1 || *row & before != 0 {
                *row |= new;
            }
        }
        self.after.push(0);
    }
    /// Returns the successors of `a` as bits.
    pub fn successors(&self, a: usize) -> u64 {
        self.after[a]
    }
    /// True if `b` is after `a`.
    pub fn has(&self, a: usize, b: usize) -> bool {
        self.after[a] >> b & 1 == 1
    }
    /// Orders `b` after `a`. Returns false if that creates a cycle.
    pub fn add(&mut self, a: usize, b: usize) -> bool {
        if a == b || self.has(b, a) {
            return false;
        }
        if !self.has(a, b) {
            let new = self.after[b] | 1 << b;
            for (i, row) in self.after.iter_mut().enumerate() {
                if i == a || *row >> a & 1 == 1 {
                    *row |= new;
                }
            }
        }
        true
    }
}

/// Returns the positions of the bits of a set, ascending.
pub fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (at < 64).then_some(at as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;

    /// Compares the closure with reachability by search.
    #[test]
    fn closure_of_random_edges() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let n = 2 + random.below(12);
            let (mut relation, mut edges) = (EventRelation::default(), Vec::new());
            (0..n).for_each(|_| relation.append(0));
            let reach = |edges: &[(usize, usize)], a: usize, b: usize| {
                let (mut seen, mut todo) = (vec![false; n], vec![a]);
                while let Some(at) = todo.pop() {
                    for &(_, to) in edges.iter().filter(|e| e.0 == at) {
                        if !std::mem::replace(&mut seen[to], true) {
                            todo.push(to);
                        }
                    }
                }
                seen[b]
            };
            for _ in 0..3 * n {
                let (a, b) = (random.below(n), random.below(n));
                let fine = a != b && !reach(&edges, b, a);
                assert_eq!(relation.add(a, b), fine, "seed {seed}");
                if fine {
                    edges.push((a, b));
                }
            }
            for a in 0..n {
                for b in 0..n {
                    assert_eq!(relation.has(a, b), reach(&edges, a, b), "seed {seed}");
                }
            }
        }
    }
    /// Compares events added with their predecessors to the same edges added one by one.
    #[test]
    fn appending_is_adding() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let n = 2 + random.below(MAX_EVENTS - 2);
            let (mut appended, mut added) = (EventRelation::default(), EventRelation::default());
            (0..n).for_each(|_| added.append(0));
            for b in 0..n {
                let before = (0..b).filter(|_| random.chance(1, 5)).fold(0, |set, a| set | 1 << a);
                appended.append(before);
                assert!(bits(before).all(|a| added.add(a, b)), "seed {seed}");
            }
            assert_eq!(appended.after, added.after, "seed {seed}");
        }
    }
}
