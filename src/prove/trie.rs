//! Set trie: sets of small numbers with ids, and queries for the subsets and supersets of a given
//! set (Savnik, 2013).
//!
//! A set is the path of its members in ascending order, so sets share prefixes. A query for subsets
//! descends only along members of the given set, one for supersets only until the next required
//! member is passed. Cost: the visited nodes, in the worst case all; a set needs at most as many
//! nodes as it has members. Nothing is removed: the caller filters removed ids.

use mu_base::narrow;

/// A set of numbers below 256, as bits.
pub type Bits = [u64; 4];

#[derive(Debug, Default)]
struct TrieNode {
    /// The next members, ascending, with their nodes.
    next: Vec<(u8, u32)>,
    /// The ids of the sets that end here.
    ids: Vec<usize>,
}

/// The sets. Node 0 is the empty one.
#[derive(Debug)]
pub struct Trie {
    nodes: Vec<TrieNode>,
}

impl Default for Trie {
    fn default() -> Self {
        Trie { nodes: vec![TrieNode::default()] }
    }
}

fn has(set: &Bits, member: u8) -> bool {
    set[usize::from(member >> 6)] >> (member & 63) & 1 == 1
}

fn members(set: &Bits) -> impl Iterator<Item = u8> + '_ {
    (0..=u8::MAX).filter(|m| has(set, *m))
}

impl Trie {
    /// Adds an id with its set.
    pub fn insert(&mut self, set: &Bits, id: usize) {
        let mut at = 0;
        for m in members(set) {
            at = match self.nodes[at].next.binary_search_by_key(&m, |n| n.0) {
                Ok(i) => self.nodes[at].next[i].1 as usize,
                Err(i) => {
                    let new = self.nodes.len();
                    self.nodes.push(TrieNode::default());
                    self.nodes[at].next.insert(i, (m, narrow::index(new)));
                    new
                }
            };
        }
        self.nodes[at].ids.push(id);
    }
    /// Calls `found` with the id of each subset of the given set, until it returns true. Returns
    /// true if it did.
    pub fn subsets(&self, set: &Bits, found: &mut dyn FnMut(usize) -> bool) -> bool {
        let mut todo = vec![0];
        while let Some(at) = todo.pop() {
            let node: &TrieNode = &self.nodes[at];
            if node.ids.iter().any(|id| found(*id)) {
                return true;
            }
            todo.extend(node.next.iter().filter(|n| has(set, n.0)).map(|n| n.1 as usize));
        }
        false
    }
    /// Calls `found` with the id of each superset of the given set.
    pub fn supersets(&self, set: &Bits, found: &mut dyn FnMut(usize)) {
        let wanted: Vec<u8> = members(set).collect();
        let mut todo = vec![(0, 0)];
        while let Some((at, met)) = todo.pop() {
            let node: &TrieNode = &self.nodes[at];
            let Some(next) = wanted.get(met) else {
                node.ids.iter().for_each(|id| found(*id));
                todo.extend(node.next.iter().map(|n| (n.1 as usize, met)));
                continue;
            };
            let on = node.next.iter().take_while(|n| n.0 <= *next);
            todo.extend(on.map(|n| (n.1 as usize, met + usize::from(n.0 == *next))));
        }
    }
}
