//! Rational numbers with two infinities. Cost: that of rationals; sums of infinities are decided,
//! see [`Real::plus`].

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
    /// Zero.
    pub fn zero() -> Self {
        Real::Number(BigRational::zero())
    }

    /// An infinity by truth.
    pub fn truth(value: bool) -> Self {
        if value { Real::Plus } else { Real::Minus }
    }

    /// The sum. Of opposite infinities plus infinity wins, or the other if `dual`: so is the sum of
    /// negations the negation of the dual sum.
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

    /// The product with a number that is not negative; zero times an infinity is zero.
    #[must_use]
    pub fn times(&self, factor: &BigRational) -> Self {
        debug_assert!(!factor.is_negative(), "a factor that is negative");
        match self {
            Real::Number(a) => Real::Number(a * factor),
            _ if factor.is_zero() => Real::zero(),
            infinity => infinity.clone(),
        }
    }

    /// A fraction as a decimal number close to it, for people.
    pub fn about(&self) -> Option<f64> {
        match self {
            Real::Number(n) if !n.is_integer() => n.to_f64(),
            _ => None,
        }
    }

    /// The negation.
    #[must_use]
    pub fn negated(&self) -> Self {
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
