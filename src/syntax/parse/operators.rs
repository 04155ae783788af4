//! Operator-precedence stack: builds a tree from a flat list of operands and operators.
//!
//! Input: operands, prefix, infix and postfix operators in text order with their levels. Output:
//! one tree, built bottom up. Differs from the textbook (Pratt 1973; Dijkstra's shunting yard) in
//! one point, which the mCRL2 language requires: a pending prefix operator inherits the level of
//! the operators around it, so that an operand contains no operator looser than any pending
//! operator (see [`precedence`](crate::precedence)). That, and chains of any length without
//! recursion, are why pest's own `PrattParser` is not used. Cost: O(1) amortised a symbol, no
//! recursion. Invariant: `effective` never falls from the bottom of the stack to its top, except
//! across a barrier.

use crate::precedence::Assoc;

/// Pending operator that consumes operands.
pub(crate) trait StackOperator {
    /// Type of the tree.
    type Tree;
    /// Takes its operands from the end of `operands` and pushes the result.
    fn reduce(self, operands: &mut Operands<Self::Tree>);
}

/// Operands that wait for their operators.
pub(crate) struct Operands<T>(Vec<T>);

impl<T> Operands<T> {
    /// Removes the last operand. The grammar alternates operands and operators, so there is one.
    pub(crate) fn pop(&mut self) -> T {
        self.0.pop().expect("an operator has an operand on each side")
    }
    /// Adds an operand.
    pub(crate) fn push(&mut self, operand: T) {
        self.0.push(operand);
    }
}

struct PendingOperator<O> {
    operator: O,
    effective: u8,
    barrier: bool,
}

/// Operator-precedence stack.
pub(crate) struct OperatorStack<O: StackOperator> {
    operands: Operands<O::Tree>,
    pending: Vec<PendingOperator<O>>,
}

impl<O: StackOperator> OperatorStack<O> {
    pub fn new() -> Self {
        Self { operands: Operands(Vec::new()), pending: Vec::new() }
    }
    pub(crate) fn operand(&mut self, operand: O::Tree) {
        self.operands.push(operand);
    }
    /// Pushes a prefix operator: its operand ends at operators that are as loose as it or looser,
    /// or looser than its context.
    pub(crate) fn prefix(&mut self, level: u8, operator: O) {
        let outer = self.pending.last().map_or(0, |p| p.effective);
        self.pending.push(PendingOperator {
            operator,
            effective: level.max(outer),
            barrier: false,
        });
    }
    pub(crate) fn infix(&mut self, level: u8, assoc: Assoc, operator: O) {
        self.reduce_tighter(level, assoc);
        self.pending.push(PendingOperator { operator, effective: level, barrier: false });
    }
    /// Applies a postfix operator to everything that binds at least as tightly.
    pub(crate) fn postfix(&mut self, level: u8, apply: impl FnOnce(O::Tree) -> O::Tree) {
        self.reduce_tighter(level, Assoc::Left);
        let operand = self.operands.pop();
        self.operands.push(apply(operand));
    }
    /// Opens a bracket-like operator: everything up to [`close`](Self::close) is its operand.
    pub(crate) fn open(&mut self, operator: O) {
        self.pending.push(PendingOperator { operator, effective: 0, barrier: true });
    }
    /// Ends the innermost [`open`](Self::open). Returns the operator and its operand.
    pub(crate) fn close(&mut self) -> Option<(O, O::Tree)> {
        while let Some(p) = self.pending.pop() {
            if p.barrier {
                let tree = self.operands.pop();
                return Some((p.operator, tree));
            }
            p.operator.reduce(&mut self.operands);
        }
        None
    }
    /// Returns the whole tree.
    pub(crate) fn finish(mut self) -> O::Tree {
        while let Some(p) = self.pending.pop() {
            p.operator.reduce(&mut self.operands);
        }
        self.operands.pop()
    }
    fn reduce_tighter(&mut self, level: u8, assoc: Assoc) {
        while let Some(p) = self.pending.pop_if(|p| {
            !p.barrier && (p.effective > level || p.effective == level && assoc == Assoc::Left)
        }) {
            p.operator.reduce(&mut self.operands);
        }
    }
}
