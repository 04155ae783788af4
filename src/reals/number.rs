//! Rational numbers with two infinities. Cost: that of rationals; sums of opposite infinities are
//! defined in [`Real::plus`].

use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use std::fmt;

/// A rational number or an infinity; `Minus` is below and `Plus` above all numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Real {
    /// Minus infinity: false.
    Minus,
    /// A number.
    Number(BigRational),
    /// Plus infinity: true.
    Plus,
}

impl Real {
    /// Returns zero.
    pub fn zero() -> Self {
        Real::Number(BigRational::zero())
    }

    /// Returns plus infinity for true, minus infinity for false.
    pub fn truth(value: bool) -> Self {
        if value { Real::Plus } else { Real::Minus }
    }

    /// Returns the sum. Of opposite infinities plus infinity wins, or minus infinity if `dual`, so
    /// that the sum of negations is the negation of the dual sum.
    #[must_use]
    pub fn plus(&self, other: &Real, dual: bool) -> Self {
        let (strong, weak) =
            if dual { (Real::Minus, Real::Plus) } else { (Real::Plus, Real::Minus) };
        match (self, other) {
            (Real::Number(a), Real::Number(b)) => Real::Number(a + b),
            (a, b) if *a == strong || *b == strong => strong,
            _ => weak,
        }
    }

    /// Returns the product with a non-negative number; zero times an infinity is zero.
    #[must_use]
    pub fn times(&self, factor: &BigRational) -> Self {
        debug_assert!(!factor.is_negative(), "a factor that is negative");
        match self {
            Real::Number(a) => Real::Number(a * factor),
            _ if factor.is_zero() => Real::zero(),
            infinity => infinity.clone(),
        }
    }

    /// Returns a decimal approximation of a fraction, for display; `None` if the number is an
    /// integer or infinite.
    pub fn approximation(&self) -> Option<f64> {
        match self {
            Real::Number(n) if !n.is_integer() => n.to_f64(),
            _ => None,
        }
    }

    /// Returns the negation.
    #[must_use]
    pub fn negation(&self) -> Self {
        match self {
            Real::Minus => Real::Plus,
            Real::Plus => Real::Minus,
            Real::Number(a) => Real::Number(-a),
        }
    }
}

impl fmt::Display for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Real::Minus => write!(f, "false"),
            Real::Plus => write!(f, "true"),
            Real::Number(a) => write!(f, "{a}"),
        }
    }
}
