//! Sets of numbers that share their parts, and maps from labels to such sets: hash-consed binary
//! trees (cf. Okasaki, Gill: "Fast Mergeable Integer Maps", 1998).
//!
//! A set is the number of a node; equal sets have equal numbers. A leaf holds the membership of 64
//! consecutive numbers in its bits, or in a map the set of one label. An inner node halves the
//! range. Its right half is never empty, so a set has the same tree in each range that contains it.
//!
//! Cost: an operation visits the nodes in which its operands differ. Invariant: nodes are never
//! changed, and only the newest are removed.

use ahash::AHashMap;
use mu_base::ids::LabelId;
use mu_base::narrow;

/// Number of a set or map.
pub type SharedSet = u32;

/// The empty set and the empty map.
pub const EMPTY: SharedSet = 0;

/// Numbers in a leaf of a set.
const BLOCK: u32 = 64;

/// A node. A leaf has the height 0; its content are the bits of both other words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Node {
    height: u32,
    left: u32,
    right: u32,
}

impl Node {
    fn leaf(content: u64) -> Self {
        Self { height: 0, left: narrow::high(content), right: narrow::low(content) }
    }
    fn content(self) -> u64 {
        u64::from(self.left) << 32 | u64::from(self.right)
    }
}

/// Table of nodes.
#[derive(Debug)]
struct Trees {
    nodes: Vec<Node>,
    numbers: AHashMap<Node, u32>,
}

impl Default for Trees {
    fn default() -> Self {
        let mut trees = Self { nodes: Vec::new(), numbers: AHashMap::new() };
        trees.intern(Node::leaf(0));
        trees
    }
}

impl Trees {
    fn intern(&mut self, node: Node) -> u32 {
        let next = narrow::index(self.nodes.len());
        let number = *self.numbers.entry(node).or_insert(next);
        if number == next {
            self.nodes.push(node);
        }
        number
    }
    /// Removes the nodes after the first `mark` ones.
    fn forget(&mut self, mark: usize) {
        for node in self.nodes.drain(mark..) {
            self.numbers.remove(&node);
        }
    }
    fn get(&self, tree: u32) -> Node {
        self.nodes[tree as usize]
    }
    fn node(&mut self, height: u32, left: u32, right: u32) -> u32 {
        if right == EMPTY { left } else { self.intern(Node { height, left, right }) }
    }
    /// Returns the tree with one leaf.
    fn single(&mut self, place: u32, content: u64) -> u32 {
        let mut tree = self.intern(Node::leaf(content));
        for bit in (0..u32::BITS).filter(|bit| place >> bit & 1 == 1) {
            tree = self.node(bit + 1, EMPTY, tree);
        }
        tree
    }
    /// Returns the halves of a tree in the range of a height.
    fn halves(&self, tree: u32, height: u32) -> (u32, u32) {
        match self.get(tree) {
            Node { height: own, left, right } if own == height => (left, right),
            _ => (tree, EMPTY),
        }
    }
    /// Applies `join` to the leaves of two trees.
    fn union(&mut self, x: u32, y: u32, join: &mut impl FnMut(u64, u64) -> u64) -> u32 {
        if x == y || y == EMPTY {
            return x;
        }
        if x == EMPTY {
            return y;
        }
        let (a, b) = (self.get(x), self.get(y));
        let height = a.height.max(b.height);
        if height == 0 {
            let content = join(a.content(), b.content());
            return self.intern(Node::leaf(content));
        }
        let ((xl, xr), (yl, yr)) = (self.halves(x, height), self.halves(y, height));
        let left = self.union(xl, yl, join);
        let right = self.union(xr, yr, join);
        self.node(height, left, right)
    }
    /// Returns the content of a leaf; 0 if there is none.
    fn find(&self, tree: u32, place: u32) -> u64 {
        let mut at = tree;
        let mut rest = place;
        loop {
            let Node { height, left, right } = self.get(at);
            if height == 0 {
                return if rest == 0 { self.get(at).content() } else { 0 };
            }
            if u64::from(rest) >> height != 0 {
                return 0;
            }
            let bit = 1u32 << (height - 1);
            (at, rest) = if rest & bit == 0 { (left, rest) } else { (right, rest & !bit) };
        }
    }
}

/// Table of sets.
#[derive(Debug, Default)]
pub struct SharedSets {
    trees: Trees,
}

impl SharedSets {
    /// Returns a mark, with which [`Self::forget`] drops the sets that are created from now on.
    pub fn mark(&self) -> usize {
        self.trees.nodes.len()
    }
    /// Drops the sets that were created after a mark.
    pub fn forget(&mut self, mark: usize) {
        self.trees.forget(mark);
    }
    /// Returns the set with one member.
    pub fn single(&mut self, member: u32) -> SharedSet {
        self.trees.single(member / BLOCK, 1 << (member % BLOCK))
    }
    /// Returns the union of two sets.
    pub fn union(&mut self, x: SharedSet, y: SharedSet) -> SharedSet {
        self.trees.union(x, y, &mut |a, b| a | b)
    }
    /// Returns the members of the first set that the second one lacks.
    pub fn difference(&mut self, x: SharedSet, y: SharedSet) -> SharedSet {
        if x == y || x == EMPTY || y == EMPTY {
            return if x == y { EMPTY } else { x };
        }
        let (a, b) = (self.trees.get(x), self.trees.get(y));
        let height = a.height.max(b.height);
        if height == 0 {
            return self.trees.intern(Node::leaf(a.content() & !b.content()));
        }
        let (xs, ys) = (self.trees.halves(x, height), self.trees.halves(y, height));
        let left = self.difference(xs.0, ys.0);
        let right = self.difference(xs.1, ys.1);
        self.trees.node(height, left, right)
    }
    /// True if a number is a member.
    pub fn contains(&self, set: SharedSet, member: u32) -> bool {
        self.trees.find(set, member / BLOCK) >> (member % BLOCK) & 1 == 1
    }
    /// Returns the greatest member of a set that is not empty.
    pub fn greatest(&self, set: SharedSet) -> u32 {
        let (mut at, mut block) = (set, 0);
        loop {
            let node = self.trees.get(at);
            if node.height == 0 {
                return block * BLOCK + node.content().ilog2();
            }
            block |= 1 << (node.height - 1);
            at = node.right;
        }
    }
}

/// Table of maps from labels to sets that are not empty.
#[derive(Debug, Default)]
pub struct SharedMaps {
    trees: Trees,
}

impl SharedMaps {
    /// Returns a mark, with which [`Self::forget`] drops the maps that are created from now on.
    pub fn mark(&self) -> usize {
        self.trees.nodes.len()
    }
    /// Drops the maps that were created after a mark. Maps refer to sets: those that were created
    /// since are dropped with them.
    pub fn forget(&mut self, mark: usize) {
        self.trees.forget(mark);
    }
    /// Returns the map from one label to a set.
    pub fn single(&mut self, label: LabelId, set: SharedSet) -> SharedSet {
        if set == EMPTY { EMPTY } else { self.trees.single(label.number(), u64::from(set)) }
    }
    /// Returns the union of two maps, by label.
    pub fn union(&mut self, x: SharedSet, y: SharedSet, sets: &mut SharedSets) -> SharedSet {
        self.trees.union(x, y, &mut |a, b| u64::from(sets.union(narrow::word(a), narrow::word(b))))
    }
    /// Returns the set of a label.
    pub fn get(&self, map: SharedSet, label: LabelId) -> SharedSet {
        narrow::word(self.trees.find(map, label.number()))
    }
    /// Returns the labels with their sets, ascending.
    pub fn entries(&self, map: SharedSet) -> Vec<(LabelId, SharedSet)> {
        let mut out = Vec::new();
        let mut stack = if map == EMPTY { Vec::new() } else { vec![(map, 0)] };
        while let Some((tree, base)) = stack.pop() {
            let node = self.trees.get(tree);
            if node.height == 0 {
                out.push((LabelId::of(base), narrow::word(node.content())));
                continue;
            }
            stack.push((node.right, base | 1 << (node.height - 1)));
            if node.left != EMPTY {
                stack.push((node.left, base));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;
    use std::collections::{BTreeMap, BTreeSet};

    fn random_set(random: &mut Random) -> BTreeSet<u32> {
        let bound = *random.choose(&[3, 70, 400, 1 << 20, u32::MAX as usize]);
        (0..random.below(40)).map(|_| narrow::index(random.below(bound))).collect()
    }

    fn build(sets: &mut SharedSets, members: &BTreeSet<u32>) -> SharedSet {
        members.iter().fold(EMPTY, |set, &m| {
            let single = sets.single(m);
            sets.union(set, single)
        })
    }

    #[test]
    fn operations_equal_those_of_plain_sets() {
        let (mut random, mut sets) = (Random::new(7), SharedSets::default());
        for _ in 0..2000 {
            let (a, b) = (random_set(&mut random), random_set(&mut random));
            let (x, y) = (build(&mut sets, &a), build(&mut sets, &b));
            let union = build(&mut sets, &(&a | &b));
            assert_eq!(sets.union(x, y), union, "{a:?} {b:?}");
            let rest = build(&mut sets, &(&a - &b));
            assert_eq!(sets.difference(x, y), rest, "{a:?} {b:?}");
            assert_eq!(sets.difference(union, x), build(&mut sets, &(&b - &a)));
            assert!(a.iter().all(|&m| sets.contains(x, m)));
            assert!(b.iter().all(|&m| sets.contains(x, m) == a.contains(&m)), "{a:?} {b:?}");
            assert_eq!((x == EMPTY, x == y), (a.is_empty(), a == b));
            if let Some(&last) = a.last() {
                assert_eq!(sets.greatest(x), last);
            }
        }
    }

    #[test]
    fn maps_join_sets_by_label() {
        let mut random = Random::new(8);
        let (mut sets, mut maps) = (SharedSets::default(), SharedMaps::default());
        for _ in 0..500 {
            let mut plain: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
            let mut map = EMPTY;
            for _ in 0..random.below(12) {
                let label = narrow::index(random.below(200));
                let more = random_set(&mut random);
                let set = build(&mut sets, &more);
                let single = maps.single(LabelId::of(label), set);
                map = maps.union(map, single, &mut sets);
                if !more.is_empty() {
                    plain.entry(label).or_default().extend(more);
                }
            }
            let wanted: Vec<(LabelId, SharedSet)> =
                plain.iter().map(|(&l, set)| (LabelId::of(l), build(&mut sets, set))).collect();
            assert_eq!(maps.entries(map), wanted);
            for label in (0..200).map(LabelId::of) {
                let set = plain.get(&label.number()).map_or(EMPTY, |set| build(&mut sets, set));
                assert_eq!(maps.get(map, label), set);
            }
        }
    }
}
