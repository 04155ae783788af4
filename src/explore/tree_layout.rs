//! Layout of the store's tree: the choice of leaves that share a field of the key, from a sample of
//! the states.
//!
//! In: the number of values of each leaf, and the leaf indices of some states. Out: inner nodes,
//! each a pair of subtrees, and the fields with their widths. While the fields are wider than the
//! key, the pair that saves most bits is folded. All pairs are compared on a small part of the
//! sample. The values of the best pair are counted in the whole sample, and its values in all
//! states are estimated from them, before it is folded or another pair becomes the best.
//!
//! Cost: pairs of leaves times [`sample_size`], and a pass over the sample for each best pair.
//! Invariant: a leaf is in one field; a node has a greater number than its children.

use mu_base::narrow;
use std::collections::{HashMap, HashSet};

use super::store::{Child, KEY_BITS, NODE_VALUES_DIVISOR, bits_for};

type Map<K, V> = HashMap<K, V, ahash::RandomState>;

/// A field: a subtree, and its width in bits.
pub(super) struct TreeField {
    pub child: Child,
    pub bits: u32,
    /// Its index in each state of the sample; for inner nodes a number local to the sample.
    column: Vec<u32>,
}

/// Two fields that may be folded, and the number of values of the pair.
#[derive(Clone, Copy)]
struct LeafPair {
    a: usize,
    b: usize,
    values: usize,
    /// True if the values were counted in the whole sample.
    counted: bool,
}

/// Returns the number of sampled states on which all pairs are compared.
pub(super) fn sample_size(leaves: usize) -> usize {
    (4_000_000 / (leaves * leaves).max(1)).clamp(256, 20_000)
}

/// Estimates the number of values in all states from the multiplicities in a sample, by the numbers
/// of values that occur once and twice (Chao: "Nonparametric estimation of the number of classes in
/// a population", 1984). At most the number of states.
fn estimate_values(times: &[u32], states: u64) -> usize {
    let with = |n: u32| times.iter().filter(|t| **t == n).count() as u64;
    let (once, twice) = (with(1), with(2));
    let unseen = once * once.saturating_sub(1) / (2 * (twice + 1));
    times.len().max((times.len() as u64 + unseen).min(states) as usize)
}

/// Numbers the values of a pair in the sample. Returns the numbers and the multiplicities.
fn join_values(a: &[u32], b: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut seen: Map<(u32, u32), u32> = Map::default();
    let mut times: Vec<u32> = Vec::new();
    let column = a.iter().zip(b).map(|(&x, &y)| {
        let next = narrow::index(seen.len());
        let number = *seen.entry((x, y)).or_insert(next);
        times.resize(seen.len(), 0);
        times[number as usize] += 1;
        number
    });
    let column = column.collect();
    (column, times)
}

/// State of the layout algorithm.
struct Chooser {
    tops: Vec<TreeField>,
    pairs: Vec<LeafPair>,
    /// Stride over the sample for the first comparison.
    stride: usize,
    few: usize,
    expected: u64,
}

impl Chooser {
    /// Estimates the number of values of a pair of fields.
    fn pair(&self, a: usize, b: usize) -> LeafPair {
        let (x, y) = (&self.tops[a].column, &self.tops[b].column);
        let found =
            x.iter().zip(y).step_by(self.stride).collect::<HashSet<_, ahash::RandomState>>().len();
        // If nearly every sampled state has its own value, the number grows with the states.
        let wide = found * 4 > self.few;
        let values = if wide {
            found.max((found as u64 * self.expected / self.few.max(1) as u64) as usize)
        } else {
            found
        };
        LeafPair { a, b, values, counted: false }
    }

    fn bits(&self, more: u32) -> u32 {
        self.tops.iter().map(|t| t.bits + more).sum()
    }

    /// True if the pair has a value for each few states.
    fn is_wide(&self, pair: &LeafPair) -> bool {
        pair.values as u64 * NODE_VALUES_DIVISOR > self.expected
    }

    /// Returns the pair that saves most bits, preferring small ones, so that the tree is flat and a
    /// step changes few nodes. Wide pairs save too little.
    fn best(&self) -> Option<usize> {
        let worth = |p: &LeafPair| {
            let (a, b) = (self.tops[p.a].bits, self.tops[p.b].bits);
            let saved = i64::from(a + b) - i64::from(bits_for(p.values) + 1);
            let saved = 4 * if self.is_wide(p) { saved / 4 } else { saved };
            (saved - i64::from(a.max(b)), -(p.values as i64), -((p.b - p.a) as i64))
        };
        (0..self.pairs.len()).max_by_key(|&i| worth(&self.pairs[i]))
    }

    /// Replaces the first field of a pair by the node, and removes the second.
    fn fold(&mut self, pair: LeafPair, node: Child, bits: u32, column: Vec<u32>) {
        let LeafPair { a, b, .. } = pair;
        self.tops[a] = TreeField { child: node, bits, column };
        self.tops.remove(b);
        self.pairs.retain(|p| p.a != a && p.b != a && p.a != b && p.b != b);
        for p in &mut self.pairs {
            p.a -= usize::from(p.a > b);
            p.b -= usize::from(p.b > b);
        }
        for c in 0..self.tops.len() {
            if c != a {
                let new = self.pair(a.min(c), a.max(c));
                self.pairs.push(new);
            }
        }
    }
}

/// Chooses the children of the inner nodes, and the fields. `counts`: values of the leaves so far;
/// `margin`: additional bits of inner nodes; `expected`: states that the new table is made for.
pub(super) fn choose(
    counts: &[usize],
    sample: &[Vec<u32>],
    margin: u32,
    expected: u64,
) -> (Vec<[Child; 2]>, Vec<TreeField>) {
    let leaf = |l: usize| {
        let bits = bits_for(counts[l]).clamp(1, 31);
        TreeField {
            child: Child::Leaf(narrow::index(l)),
            bits,
            column: sample.iter().map(|s| s[l]).collect(),
        }
    };
    let stride = sample.len().div_ceil(sample_size(counts.len())).max(1);
    let few = sample.len().div_ceil(stride);
    let tops: Vec<TreeField> = (0..counts.len()).map(leaf).collect();
    let mut chooser = Chooser { tops, pairs: Vec::new(), stride, few, expected };
    let mut nodes = Vec::new();
    // At least two spare bits for each field.
    while chooser.bits(2) > KEY_BITS && chooser.tops.len() > 2 {
        if chooser.pairs.is_empty() {
            let count = chooser.tops.len();
            chooser.pairs = (0..count)
                .flat_map(|a| (a + 1..count).map(move |b| (a, b)))
                .map(|(a, b)| chooser.pair(a, b))
                .collect();
        }
        let Some(at) = chooser.best() else { break };
        let pair = chooser.pairs[at];
        let (a, b) = (&chooser.tops[pair.a], &chooser.tops[pair.b]);
        let (column, times) = join_values(&a.column, &b.column);
        if !pair.counted {
            let values = if chooser.is_wide(&pair) { pair.values } else { times.len() };
            chooser.pairs[at] = LeafPair {
                values: values.max(estimate_values(&times, expected)),
                counted: true,
                ..pair
            };
            continue;
        }
        // A narrow field is better than a node with a value for each few states.
        if chooser.is_wide(&pair) && chooser.bits(0) <= KEY_BITS {
            break;
        }
        let node = Child::Node(narrow::index(nodes.len()));
        nodes.push([a.child, b.child]);
        let bits = (bits_for(pair.values) + 1 + margin).min(a.bits + b.bits).min(31);
        chooser.fold(pair, node, bits, column);
    }
    (nodes, chooser.tops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;

    #[test]
    fn correlated_leaves_are_folded_first() {
        // Twelve leaves of a hundred values: the leaves of a pair are equal, the pairs are
        // independent.
        let mut random = Random::new(7);
        let sample: Vec<Vec<u32>> = (0..5000)
            .map(|_| {
                let values: Vec<u32> = (0..6).map(|_| random.below(100) as u32).collect();
                (0..12).map(|l| values[l % 6]).collect()
            })
            .collect();
        let (nodes, tops) = choose(&[100; 12], &sample, 0, 1_000_000);
        for [a, b] in &nodes {
            let (Child::Leaf(a), Child::Leaf(b)) = (a, b) else { panic!("{nodes:?}") };
            assert_eq!(a + 6, *b);
        }
        assert!(tops.iter().map(|t| t.bits).sum::<u32>() <= KEY_BITS);
    }

    #[test]
    fn values_that_a_sample_lacks_are_estimated() {
        let mut random = Random::new(3);
        let mut times = vec![0u32; 10_000];
        (0..8_000).for_each(|_| times[random.below(10_000)] += 1);
        times.retain(|t| *t > 0);
        assert!((5_000..6_000).contains(&times.len()));
        assert!((9_000..11_000).contains(&estimate_values(&times, 1 << 40)));
        assert_eq!(estimate_values(&[1; 50], 60), 60);
        assert_eq!(estimate_values(&[4, 9, 3], 60), 3);
    }
}
