//! Number of vectors of a set that match short vectors, without constructing the set of the
//! matching ones.
//!
//! The numbers of paths from the root of a set to each of its nodes, and from there to the end, are
//! computed once ([`Paths`]). A match that reads some levels only is then counted on the nodes of
//! these levels, weighted by the numbers of paths above and below.
//!
//! Cost: the nodes of the set once; for each match the nodes of the levels between the first and
//! the last one that it reads. Invariant: numbers belong to one set and have at most 128 bits; no
//! collection happens while they are in use.

use super::{Ldd, LevelAction, Manager, Plan};
use ahash::AHashMap;

/// Numbers of paths of a set.
pub struct Paths {
    /// By level: the lists there, and the number of paths to each.
    above: Vec<AHashMap<Ldd, u128>>,
    /// Number of paths from a list to the end.
    below: AHashMap<Ldd, u128>,
}

type Memo = AHashMap<(Ldd, Ldd), u128>;

impl Manager {
    /// Returns the paths of a set of vectors of this length; `None` if a number has more than 128
    /// bits.
    pub fn paths(&self, set: Ldd, height: usize) -> Option<Paths> {
        let mut above = vec![AHashMap::from([(set, 1u128)])];
        if set.is_empty() {
            above[0].clear();
        }
        for level in 0..height {
            let mut next: AHashMap<Ldd, u128> = AHashMap::new();
            for (&list, &count) in &above[level] {
                let mut at = list;
                while at != Ldd::EMPTY {
                    let n = self.node(at);
                    let sum = next.entry(n.down).or_default();
                    *sum = sum.checked_add(count)?;
                    at = n.right;
                }
            }
            above.push(next);
        }
        let mut below = AHashMap::from([(Ldd::EMPTY, 0), (Ldd::UNIT, 1)]);
        for lists in above[..height].iter().rev() {
            for &list in lists.keys() {
                let (mut sum, mut at) = (0u128, list);
                while at != Ldd::EMPTY {
                    let n = self.node(at);
                    sum = sum.checked_add(below[&n.down])?;
                    at = n.right;
                }
                below.insert(list, sum);
            }
        }
        Some(Paths { above, below })
    }

    /// Returns the size of [`Manager::select_matches`]: the number of vectors with a projection to
    /// the `Read` levels in `short` that satisfy the `Require` levels.
    pub fn count_matching(&self, paths: &Paths, short: Ldd, mut plan: Plan) -> u128 {
        let mut level = 0;
        while let Some((LevelAction::Skip, next)) = self.step(plan) {
            plan = next;
            level += 1;
        }
        let mut memo = Memo::new();
        // No product exceeds the number of vectors.
        paths.above[level]
            .iter()
            .map(|(&list, &count)| count * self.matches_below(paths, list, short, plan, &mut memo))
            .sum()
    }

    fn matches_below(
        &self,
        paths: &Paths,
        set: Ldd,
        short: Ldd,
        plan: Plan,
        memo: &mut Memo,
    ) -> u128 {
        if set.is_empty() || short.is_empty() {
            return 0;
        }
        let Some((action, next)) = self.step(plan) else { return paths.below[&set] };
        if let LevelAction::Require(value) = action {
            return self.matches_below(paths, self.child(set, value), short, next, memo);
        }
        if let Some(&count) = memo.get(&(set, short)) {
            return count;
        }
        let mut sum = 0;
        if action == LevelAction::Read {
            let (mut x, mut y) = (set, short);
            while let Some((n, m)) = self.next_common(&mut x, &mut y) {
                sum += self.matches_below(paths, n.down, m.down, next, memo);
            }
        } else {
            let mut at = set;
            while at != Ldd::EMPTY {
                let n = self.node(at);
                sum += self.matches_below(paths, n.down, short, next, memo);
                at = n.right;
            }
        }
        memo.insert((set, short), sum);
        sum
    }
}
