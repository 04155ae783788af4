//! Cached answers in a decision tree: each node inspects one variable, and each edge is one of its
//! values.
//!
//! In: the numbers of the values of a condition's variables. Out: the answer, if an earlier
//! evaluation inspected the same values. For example, a few fields of a board decide whether a
//! player has won, and boards that agree on these fields are far fewer than boards. Compare the
//! discrimination trees of Graf, "Term indexing" (1996): here the order is that of the evaluation.
//! Cost: a step for each inspected value. A tree with a low hit rate is disabled and freed; a full
//! tree is cleared.
//!
//! Invariant: each path inspects each position at most once.

use mu_base::narrow;

/// Limit on nodes; beyond it, the tree is cleared.
const MAX_NODES: usize = 1 << 16;
/// Number of evaluations after which the hit rate is judged, repeatedly.
pub const JUDGED: u32 = 1 << 12;
/// Hits per evaluation below which the tree is disabled.
const MIN_HITS: u32 = 3;
/// Limit on the values of one position that have edges; further values are not cached.
const MAX_EDGES: usize = 64;

enum DecisionNode {
    /// Position to inspect, and the child for each number.
    Inspect(u32, Vec<(u32, u32)>),
    Answer(bool),
    /// No answer yet.
    Open,
    /// The evaluation has no truth value here.
    Unclear,
}

/// Decision tree of one condition.
pub struct DecisionTree {
    nodes: Vec<DecisionNode>,
    evaluations: u32,
    hits: u32,
    disabled: bool,
}

/// Result of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupResult {
    /// The answer.
    Answer(bool),
    /// No answer beyond this leaf.
    Open(OpenLeaf),
    /// No answer can be cached.
    Uncached,
}

/// Leaf that has no answer yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenLeaf(u32);

impl Default for DecisionTree {
    fn default() -> Self {
        DecisionTree { nodes: vec![DecisionNode::Open], evaluations: 0, hits: 0, disabled: false }
    }
}

impl DecisionTree {
    /// Looks an answer up by the numbers at each position; calls `inspected` with each inspected
    /// position.
    #[inline]
    pub fn find(
        &mut self,
        number: impl Fn(usize) -> u32,
        mut inspected: impl FnMut(usize),
    ) -> LookupResult {
        if self.disabled {
            return LookupResult::Uncached;
        }
        let mut at = 0;
        loop {
            match &mut self.nodes[at as usize] {
                DecisionNode::Answer(answer) => {
                    self.hits += 1;
                    return LookupResult::Answer(*answer);
                }
                DecisionNode::Open => return LookupResult::Open(OpenLeaf(at)),
                DecisionNode::Unclear => return LookupResult::Uncached,
                DecisionNode::Inspect(position, edges) => {
                    inspected(*position as usize);
                    let n = number(*position as usize);
                    match edges.iter().find(|w| w.0 == n) {
                        Some(edge) => at = edge.1,
                        None if edges.len() >= MAX_EDGES => return LookupResult::Uncached,
                        None => {
                            let next = narrow::index(self.nodes.len());
                            if let DecisionNode::Inspect(_, edges) = &mut self.nodes[at as usize] {
                                edges.push((n, next));
                            }
                            self.nodes.push(DecisionNode::Open);
                            return LookupResult::Open(OpenLeaf(next));
                        }
                    }
                }
            }
        }
    }

    /// Returns the number of nodes.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// Counts an evaluation, and disables or clears the tree if it is not worth its memory.
    pub fn judge(&mut self) {
        self.evaluations += 1;
        if self.evaluations >= JUDGED {
            self.disabled = self.hits < self.evaluations * MIN_HITS;
            (self.evaluations, self.hits) = (0, 0);
        }
        if self.disabled || self.nodes.len() >= MAX_NODES {
            self.nodes = vec![DecisionNode::Open];
        }
    }

    /// Stores an answer at a leaf.
    pub fn answer(&mut self, at: OpenLeaf, answer: bool) {
        self.put(at, DecisionNode::Answer(answer));
    }

    /// Makes a leaf inspect a position, and returns its child for this number.
    pub fn look(&mut self, at: OpenLeaf, position: usize, number: u32) -> OpenLeaf {
        let next = narrow::index(self.nodes.len());
        self.nodes.push(DecisionNode::Open);
        self.put(at, DecisionNode::Inspect(narrow::index(position), vec![(number, next)]));
        OpenLeaf(next)
    }

    /// Marks a leaf as having no truth value.
    pub fn unclear(&mut self, at: OpenLeaf) {
        self.put(at, DecisionNode::Unclear);
    }

    fn put(&mut self, at: OpenLeaf, node: DecisionNode) {
        if let Some(place) = self.nodes.get_mut(at.0 as usize) {
            *place = node;
        }
    }
}
