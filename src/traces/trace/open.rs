//! Facts that a log leaves open: values that it does not have, pairs of load-reserved and
//! store-conditional that are no single update.
//!
//! In: notes of a reader about operations of a [`TraceBuilder`]. Out: [`Trace::open`], which
//! [`crate::decide`](crate::decide::decide) settles. Invariant: without its open facts, a trace is
//! allowed wherever it is allowed with them, so that *forbidden* stays right.

use super::{Annotations, OperationIndex, OperationKind, Trace, TraceBuilder};
use crate::riscv::AtomicOperation;
use mu_base::narrow;

/// Fact about operations that the log leaves open.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenFact {
    /// The log does not have the value that an operation loads.
    Value {
        /// A load or an update.
        operation: u32,
        /// Function of an update from the loaded value to the stored one, and its operand if the
        /// log has it. `None`: any value.
        rule: Option<(AtomicOperation, Option<u64>)>,
    },
    /// A load-reserved and its store-conditional with other operations of the thread between them:
    /// no other thread stores to the location between the source of the load and the store.
    Pair {
        /// The load-reserved, a load.
        load: u32,
        /// The store-conditional, a store.
        store: u32,
    },
    /// A store-conditional that succeeds, with a reservation that the log does not determine.
    Conditional {
        /// The store-conditional, a store.
        store: u32,
        /// The reason in one sentence.
        reason: String,
    },
    /// An operation that no memory has.
    Impossible {
        /// The operation.
        operation: u32,
        /// The reason in one sentence.
        message: String,
    },
}

impl OpenFact {
    /// Returns the fact with other numbers of operations. `None` if an operation has none.
    fn with_numbers(&self, number: impl Fn(u32) -> Option<u32>) -> Option<OpenFact> {
        Some(match self {
            OpenFact::Value { operation, rule } => {
                OpenFact::Value { operation: number(*operation)?, rule: *rule }
            }
            OpenFact::Pair { load, store } => {
                OpenFact::Pair { load: number(*load)?, store: number(*store)? }
            }
            OpenFact::Conditional { store, reason } => {
                OpenFact::Conditional { store: number(*store)?, reason: reason.clone() }
            }
            OpenFact::Impossible { operation, message } => {
                OpenFact::Impossible { operation: number(*operation)?, message: message.clone() }
            }
        })
    }
}

/// True if an update of `size` bytes (0: 8) that loads a value can store another one. Of an unknown
/// operand, some value fits.
pub fn fits(
    rule: Option<(AtomicOperation, Option<u64>)>,
    loaded: u64,
    stored: u64,
    size: u8,
) -> bool {
    let Some((function, operand)) = rule else { return true };
    let bits = if size == 0 { 64 } else { 8 * u32::from(size) };
    let cut = |v: u64| v << (64 - bits) >> (64 - bits);
    let signed = |v: u64| ((v << (64 - bits)) as i64) >> (64 - bits);
    let (loaded, stored) = (cut(loaded), cut(stored));
    let operand = operand.map(cut);
    match (function, operand) {
        (AtomicOperation::Swap, _) | (AtomicOperation::Add | AtomicOperation::Xor, None) => true,
        (AtomicOperation::Add, Some(o)) => cut(loaded.wrapping_add(o)) == stored,
        (AtomicOperation::Xor, Some(o)) => loaded ^ o == stored,
        (AtomicOperation::And, Some(o)) => loaded & o == stored,
        (AtomicOperation::And, None) => loaded & stored == stored,
        (AtomicOperation::Or, Some(o)) => loaded | o == stored,
        (AtomicOperation::Or, None) => loaded | stored == stored,
        (AtomicOperation::Min, Some(o)) => signed(loaded).min(signed(o)) == signed(stored),
        (AtomicOperation::Min, None) => signed(stored) <= signed(loaded),
        (AtomicOperation::Max, Some(o)) => signed(loaded).max(signed(o)) == signed(stored),
        (AtomicOperation::Max, None) => signed(loaded) <= signed(stored),
        (AtomicOperation::UnsignedMin, Some(o)) => loaded.min(o) == stored,
        (AtomicOperation::UnsignedMin, None) => stored <= loaded,
        (AtomicOperation::UnsignedMax, Some(o)) => loaded.max(o) == stored,
        (AtomicOperation::UnsignedMax, None) => loaded <= stored,
        // The register of the result has the expected value, and `x0` is 0.
        (AtomicOperation::CompareAndSwap, _) => loaded == 0,
    }
}

impl TraceBuilder {
    /// Notes that the log does not have the value that an operation loads.
    pub fn open_value(
        &mut self,
        operation: OperationIndex,
        rule: Option<(AtomicOperation, Option<u64>)>,
    ) {
        self.open.push(OpenFact::Value { operation: operation.0, rule });
    }
    /// Notes that a load and a later store of its thread are a pair.
    pub fn open_pair(&mut self, load: OperationIndex, store: OperationIndex) {
        self.open.push(OpenFact::Pair { load: load.0, store: store.0 });
    }
    /// Notes that the reservation of a store-conditional is not in the log.
    pub fn open_conditional(&mut self, store: OperationIndex, reason: String) {
        self.open.push(OpenFact::Conditional { store: store.0, reason });
    }
    /// Notes that no memory has an operation.
    pub fn impossible(&mut self, operation: OperationIndex, message: String) {
        self.open.push(OpenFact::Impossible { operation: operation.0, message });
    }
    /// Returns the facts for operations in a new order: `order` has the old number of each.
    pub(super) fn open_in(&self, order: &[u32]) -> Vec<OpenFact> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let mut numbers = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, old)| numbers[*old as usize] = narrow::index(new));
        self.open.iter().filter_map(|o| o.with_numbers(|n| Some(numbers[n as usize]))).collect()
    }
}

impl Trace {
    /// Returns the open facts of a part.
    pub(super) fn open_of(&self, operations: &[u32]) -> Vec<OpenFact> {
        let number = |n: u32| operations.binary_search(&n).ok().map(narrow::index);
        self.open.iter().filter_map(|o| o.with_numbers(number)).collect()
    }
    /// True if the log does not have the value that an operation loads.
    pub fn is_open(&self, i: usize) -> bool {
        let is_value = |o: &OpenFact| matches!(o, OpenFact::Value { operation, .. } if *operation as usize == i);
        self.open.iter().any(is_value)
    }
    /// Returns the trace with loaded values, and without open facts. An update without a value
    /// becomes a store.
    pub(crate) fn with_values(&self, values: &[(u32, Option<u64>)]) -> Trace {
        let mut out = self.clone();
        out.open.clear();
        for &(operation, value) in values {
            let i = operation as usize;
            if let Some(value) = value {
                out.values[i] = value;
                continue;
            }
            out.values[i] = self.stored_value(i);
            out.stored.retain(|s| s.0 != operation);
            out.kinds[i] = OperationKind::Store.pack();
            if let Some(mark) = out.marks.get_mut(i) {
                let is_release = mark.of_store().has(Annotations::RELEASE);
                *mark = if is_release { Annotations::RELEASE } else { Annotations::PLAIN };
            }
        }
        out
    }
}
