//! Values of cells and exact arithmetic for the audit.
//!
//! Rational numbers of 128 bits. Invariant: overflow gives `None`, never a wrong number.

use num_rational::{BigRational, Ratio};
use num_traits::{CheckedAdd, CheckedMul, One, ToPrimitive, Zero};

/// A number.
pub type Number = Ratio<i128>;

/// The value of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditValue {
    /// A process, from 0.
    Process(u32),
    /// A constructor, by its index in the system.
    Constructor(u32),
    /// An element of an abstract type.
    Element(u32),
    /// A number.
    Number(Number),
}

/// Converts an integer.
pub fn whole(n: i64) -> Number {
    Number::from_integer(n.into())
}

/// Converts a number of the system; `None` if it is out of range.
pub fn number(n: &BigRational) -> Option<Number> {
    Some(Number::new(n.numer().to_i128()?, n.denom().to_i128()?))
}

/// Returns the remainder of the integer part modulo 2^bits, from 0 on.
pub fn residue(n: Number, bits: u32) -> Number {
    Number::from_integer(n.to_integer().rem_euclid(1 << bits))
}

/// Adds two numbers; `None` if the sum is out of range.
pub fn plus(a: Number, b: Number) -> Option<Number> {
    if a.is_integer() && b.is_integer() {
        return a.numer().checked_add(b.numer()).map(Number::from_integer);
    }
    a.checked_add(&b)
}

/// Multiplies two numbers; `None` if the product is out of range.
pub fn times(a: Number, b: Number) -> Option<Number> {
    if a.is_one() {
        return Some(b);
    }
    if a.is_integer() && b.is_integer() {
        return a.numer().checked_mul(b.numer()).map(Number::from_integer);
    }
    a.checked_mul(&b)
}

/// Divides two numbers; `None` also for division by zero.
pub fn divide(a: Number, b: Number) -> Option<Number> {
    if b.is_zero() {
        return None;
    }
    a.checked_mul(&b.recip())
}
