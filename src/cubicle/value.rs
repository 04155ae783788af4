//! Encoding of values of cells as 32 bits, with the tables of large numbers and of store buffers.
//!
//! The meaning of a code depends on the sort: a process is its number from 0, a value of an
//! enumeration its [`crate::system::ConsId`], an element of an abstract type its number, a small
//! integer its zigzag code. Other numbers (including all fractions) are interned. Tables only grow;
//! threads share them. Invariant: equal values have equal codes.

use ahash::AHashMap;
use mu_base::narrow;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

/// An undetermined value of any sort.
pub const ANY: u32 = u32::MAX;
/// In an entry of a buffer: this cell is not written.
pub const NOTHING: u32 = u32::MAX - 1;
const LARGE: u32 = 1 << 30;

/// A table of values with their ids.
#[derive(Debug)]
pub(crate) struct InternTable<T: ?Sized> {
    table: RwLock<(AHashMap<Arc<T>, u32>, Vec<Arc<T>>)>,
}

impl<T: ?Sized> Default for InternTable<T> {
    fn default() -> Self {
        Self { table: RwLock::new((AHashMap::new(), Vec::new())) }
    }
}

impl<T: Eq + Hash + ?Sized> InternTable<T> {
    /// Returns the id of a value.
    pub(crate) fn intern(&self, value: Arc<T>) -> u32 {
        if let Some(id) = self.table.read().unwrap_or_else(PoisonError::into_inner).0.get(&value) {
            return *id;
        }
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = table.0.get(&value) {
            return *id;
        }
        let id = narrow::index(table.1.len());
        table.1.push(value.clone());
        table.0.insert(value, id);
        id
    }
    /// Returns the value of an id of this table.
    pub(crate) fn get(&self, id: u32) -> Arc<T> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).1[id as usize].clone()
    }
}

/// The numbers.
#[derive(Debug, Default)]
pub(crate) struct NumberTable(InternTable<BigRational>);

impl NumberTable {
    /// Returns the code of a small integer; `None` if it is 2^28 or more in absolute value.
    pub(crate) fn small(value: i64) -> Option<u32> {
        let zigzag = ((value << 1) ^ (value >> 63)) as u64;
        (value.unsigned_abs() < 1 << 28).then(|| narrow::word(zigzag))
    }
    /// Returns the small integer of a code; `None` if it is the code of another number.
    pub(crate) fn as_small(code: u32) -> Option<i64> {
        (code < LARGE).then(|| i64::from(code >> 1) ^ -i64::from(code & 1))
    }
    /// Returns the code of a number.
    pub(crate) fn code(&self, value: &BigRational) -> u32 {
        let small = if value.is_integer() { value.to_i64().and_then(Self::small) } else { None };
        small.unwrap_or_else(|| LARGE + self.0.intern(Arc::new(value.clone())))
    }
    /// Returns the number of a code.
    pub(crate) fn number(&self, code: u32) -> BigRational {
        match Self::as_small(code) {
            Some(value) => BigRational::from(BigInt::from(value)),
            None => (*self.0.get(code - LARGE)).clone(),
        }
    }
}

/// The writes of one transition: a value, or [`NOTHING`], for each cell of a shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TransitionWrites {
    /// The set of cells.
    pub(crate) shape: u32,
    /// Their values.
    pub(crate) values: Box<[u32]>,
}

/// A decoded value, for output and for the prover.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Val {
    /// A process, from 0.
    Proc(u32),
    /// A value of an enumeration.
    Cons(crate::system::ConsId),
    /// A number.
    Number(BigRational),
    /// An element of an abstract type.
    Element(u32),
    /// An undetermined value.
    Any,
}
