//! Equation systems in a flat array: each node is an equation over others.
//!
//! A node with a rank is the head of a fixed point; outer fixed points have lower ranks. Nodes
//! without a rank represent parts of right-hand sides, so their sign is irrelevant: every cycle
//! passes a head. Cost: 24 bytes a node and 4 to 8 an argument.

use crate::fraction::{Fractions, PartialSum};
use crate::number::Real;
use ahash::AHashMap;
use mu_base::narrow;
use num_rational::BigRational;

/// The number of a node.
pub type NodeId = u32;

/// A right-hand side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RealOp {
    /// A value, by its number in [`RealEquations::values`].
    Value(u32),
    /// The minimum of some nodes.
    Least(Box<[NodeId]>),
    /// The maximum of some nodes.
    Greatest(Box<[NodeId]>),
    /// A sum of nodes with factors by their numbers in [`RealEquations::factors`], all
    /// non-negative. `dual`: see [`Real::plus`].
    Sum(Box<[(u32, NodeId)]>, bool),
    /// The head of a fixed point: its body.
    Head(NodeId),
}

/// An equation system. Node 0 is the result.
#[derive(Clone, Debug, Default)]
pub struct RealEquations {
    /// The nodes.
    pub nodes: Vec<RealOp>,
    /// The rank of each head; `None` for other nodes.
    pub ranks: Vec<Option<u32>>,
    /// By rank: true for a least fixed point.
    pub least: Vec<bool>,
    /// Values that occur.
    pub values: Vec<Real>,
    /// Factors that occur.
    pub factors: Vec<BigRational>,
    by_value: AHashMap<Option<BigRational>, [Option<u32>; 2]>,
    by_factor: AHashMap<BigRational, u32>,
}

impl RealEquations {
    /// Creates a node; its right-hand side is set later.
    pub fn reserve(&mut self) -> NodeId {
        self.nodes.push(RealOp::Value(0));
        self.ranks.push(None);
        u32::try_from(self.nodes.len() - 1).expect("more than 2^32 nodes")
    }

    /// Creates a node.
    pub fn add(&mut self, op: RealOp) -> NodeId {
        let id = self.reserve();
        self.nodes[id as usize] = op;
        id
    }

    /// Returns the number of a value.
    pub fn value(&mut self, value: Real) -> u32 {
        let (key, side) = match &value {
            Real::Number(n) => (Some(n.clone()), 0),
            Real::Minus => (None, 0),
            Real::Plus => (None, 1),
        };
        let known = &mut self.by_value.entry(key).or_default()[side];
        *known.get_or_insert_with(|| {
            self.values.push(value);
            narrow::index(self.values.len()) - 1
        })
    }

    /// Returns the number of a factor.
    pub fn factor(&mut self, factor: &BigRational) -> u32 {
        if let Some(&known) = self.by_factor.get(factor) {
            return known;
        }
        self.factors.push(factor.clone());
        self.by_factor.insert(factor.clone(), narrow::index(self.factors.len()) - 1);
        narrow::index(self.factors.len()) - 1
    }

    /// Returns the arguments of a node.
    pub fn arguments(&self, node: NodeId) -> Vec<NodeId> {
        match &self.nodes[node as usize] {
            RealOp::Value(_) => Vec::new(),
            RealOp::Least(args) | RealOp::Greatest(args) => args.to_vec(),
            RealOp::Sum(terms, _) => terms.iter().map(|t| t.1).collect(),
            RealOp::Head(body) => vec![*body],
        }
    }

    /// Visits each argument of a node.
    pub(crate) fn each_argument(&self, node: NodeId, mut show: impl FnMut(NodeId)) {
        match &self.nodes[node as usize] {
            RealOp::Value(_) => {}
            RealOp::Least(args) | RealOp::Greatest(args) => args.iter().for_each(|a| show(*a)),
            RealOp::Sum(terms, _) => terms.iter().for_each(|t| show(t.1)),
            RealOp::Head(body) => show(*body),
        }
    }

    /// Evaluates a node's right-hand side.
    pub fn evaluate<'v>(&self, node: NodeId, of: &dyn Fn(NodeId) -> &'v Real) -> Real {
        self.evaluate_cached(node, of, &mut Fractions::default())
    }

    /// Evaluates as [`RealEquations::evaluate`], with a cache of fractions.
    pub(crate) fn evaluate_cached<'v>(
        &self,
        node: NodeId,
        of: &dyn Fn(NodeId) -> &'v Real,
        fractions: &mut Fractions,
    ) -> Real {
        match &self.nodes[node as usize] {
            RealOp::Value(v) => self.values[*v as usize].clone(),
            RealOp::Least(args) => args.iter().map(|a| of(*a)).min().cloned().unwrap_or(Real::Plus),
            RealOp::Greatest(args) => {
                args.iter().map(|a| of(*a)).max().cloned().unwrap_or(Real::Minus)
            }
            RealOp::Sum(terms, dual) => {
                let (mut numbers, mut infinite) = (PartialSum::new(), None);
                for (factor, arg) in terms {
                    let factor = &self.factors[*factor as usize];
                    match of(*arg) {
                        Real::Number(value) => numbers.add(factor, value),
                        infinity => {
                            let term = infinity.times(factor);
                            infinite =
                                Some(infinite.map_or_else(
                                    || term.clone(),
                                    |sum: Real| sum.plus(&term, *dual),
                                ));
                        }
                    }
                }
                let sum = Real::Number(fractions.value(numbers));
                infinite.map_or_else(|| sum.clone(), |infinite| infinite.plus(&sum, *dual))
            }
            RealOp::Head(body) => of(*body).clone(),
        }
    }
}
