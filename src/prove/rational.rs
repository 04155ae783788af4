//! Exact rational numbers of bounded size, for the simplex tableau: numerator and denominator are
//! `i128`, the fraction is in lowest terms, the denominator positive. Every operation is checked:
//! overflow gives [`Overflow`], and the caller answers *unknown*, never wrongly. An operation costs
//! a greatest common divisor, which is skipped for integers (nearly all numbers of a proof are
//! small integers).

use std::cmp::Ordering;

/// The error that a number is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// A rational number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rational {
    num: i128,
    den: i128,
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[allow(
    clippy::should_implement_trait,
    reason = "the result may overflow, which the traits of operators cannot say"
)]
impl Rational {
    /// Zero.
    pub const ZERO: Rational = Rational { num: 0, den: 1 };
    /// One.
    pub const ONE: Rational = Rational { num: 1, den: 1 };
    /// Minus one.
    pub const MINUS_ONE: Rational = Rational { num: -1, den: 1 };

    /// Converts an integer.
    pub fn integer(value: i128) -> Rational {
        Rational { num: value, den: 1 }
    }
    /// Creates `num / den` in lowest terms; `den` is not zero.
    pub fn new(num: i128, den: i128) -> Result<Rational, Overflow> {
        debug_assert_ne!(den, 0);
        if den == 1 {
            return Ok(Rational { num, den });
        }
        let common =
            i128::try_from(gcd(num.unsigned_abs(), den.unsigned_abs())).map_err(|_| Overflow)?;
        let common = if den < 0 { -common } else { common };
        Ok(Rational {
            num: num.checked_div(common).ok_or(Overflow)?,
            den: den.checked_div(common).ok_or(Overflow)?,
        })
    }
    /// True if it is zero.
    pub fn is_zero(self) -> bool {
        self.num == 0
    }
    /// True if it is an integer.
    pub fn is_integer(self) -> bool {
        self.den == 1
    }
    /// True if it is greater than zero.
    pub fn is_positive(self) -> bool {
        self.num > 0
    }
    /// Returns the numerator and the denominator.
    pub fn parts(self) -> (i128, i128) {
        (self.num, self.den)
    }
    /// Rounds down to an integer.
    pub fn floor(self) -> i128 {
        self.num.div_euclid(self.den)
    }
    /// Returns the sum.
    pub fn add(self, other: Rational) -> Result<Rational, Overflow> {
        if self.den == 1 && other.den == 1 {
            return Ok(Rational { num: self.num.checked_add(other.num).ok_or(Overflow)?, den: 1 });
        }
        let left = self.num.checked_mul(other.den).ok_or(Overflow)?;
        let right = other.num.checked_mul(self.den).ok_or(Overflow)?;
        Rational::new(
            left.checked_add(right).ok_or(Overflow)?,
            self.den.checked_mul(other.den).ok_or(Overflow)?,
        )
    }
    /// Returns the difference.
    pub fn sub(self, other: Rational) -> Result<Rational, Overflow> {
        self.add(other.negate()?)
    }
    /// Multiplies two numbers.
    pub fn mul(self, other: Rational) -> Result<Rational, Overflow> {
        Rational::new(
            self.num.checked_mul(other.num).ok_or(Overflow)?,
            self.den.checked_mul(other.den).ok_or(Overflow)?,
        )
    }
    /// Divides by `other`, which is not zero.
    pub fn div(self, other: Rational) -> Result<Rational, Overflow> {
        Rational::new(
            self.num.checked_mul(other.den).ok_or(Overflow)?,
            self.den.checked_mul(other.num).ok_or(Overflow)?,
        )
    }
    /// Negates the number.
    pub fn negate(self) -> Result<Rational, Overflow> {
        Ok(Rational { num: self.num.checked_neg().ok_or(Overflow)?, den: self.den })
    }
    /// Compares two numbers.
    pub fn compare(self, other: Rational) -> Result<Ordering, Overflow> {
        if self.den == other.den {
            return Ok(self.num.cmp(&other.num));
        }
        Ok(self
            .num
            .checked_mul(other.den)
            .ok_or(Overflow)?
            .cmp(&other.num.checked_mul(self.den).ok_or(Overflow)?))
    }
}

/// A number with an infinitesimal part, `real + small * epsilon`: the bound `x < 3` is represented
/// as `x <= 3 - epsilon` (Dutertre and de Moura, 2006).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeltaRational {
    /// The standard part.
    pub real: Rational,
    /// The factor of the infinitesimal.
    pub small: Rational,
}

#[allow(
    clippy::should_implement_trait,
    reason = "the result may overflow, which the traits of operators cannot say"
)]
impl DeltaRational {
    /// Zero.
    pub const ZERO: DeltaRational = DeltaRational { real: Rational::ZERO, small: Rational::ZERO };
    /// Creates a number without an infinitesimal part.
    pub fn exact(real: Rational) -> DeltaRational {
        DeltaRational { real, small: Rational::ZERO }
    }
    /// Returns the sum.
    pub fn add(self, other: DeltaRational) -> Result<DeltaRational, Overflow> {
        Ok(DeltaRational { real: self.real.add(other.real)?, small: self.small.add(other.small)? })
    }
    /// Returns the difference.
    pub fn sub(self, other: DeltaRational) -> Result<DeltaRational, Overflow> {
        Ok(DeltaRational { real: self.real.sub(other.real)?, small: self.small.sub(other.small)? })
    }
    /// Multiplies by a rational.
    pub fn scale(self, by: Rational) -> Result<DeltaRational, Overflow> {
        Ok(DeltaRational { real: self.real.mul(by)?, small: self.small.mul(by)? })
    }
    /// Compares two numbers.
    pub fn compare(self, other: DeltaRational) -> Result<Ordering, Overflow> {
        Ok(self.real.compare(other.real)?.then(self.small.compare(other.small)?))
    }
}
