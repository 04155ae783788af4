//! A relation over at most [`MOST`] events, kept transitively closed, that refuses cycles.
//!
//! Cost: an edge that is new touches each event once; a question is a bit test.

/// Most events of an execution.
pub const MOST: usize = 64;

/// The relation: row `a` has the bits of all that comes after `a`.
#[derive(Clone, Debug, Default)]
pub struct Relation {
    after: Vec<u64>,
}

impl Relation {
    /// Adds an event, related to none.
    pub fn grow(&mut self) {
        self.after.push(0);
    }
    /// Whether `b` comes after `a`.
    pub fn has(&self, a: usize, b: usize) -> bool {
        self.after[a] >> b & 1 == 1
    }
    /// Puts `b` after `a`; false if that makes a cycle.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    /// Against reachability by search.
    #[test]
    fn closure_of_random_edges() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let n = 2 + random.below(12);
            let (mut relation, mut edges) = (Relation::default(), Vec::new());
            (0..n).for_each(|_| relation.grow());
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
}
