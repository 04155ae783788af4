//! Sums of fractions that are reduced once, at the end.
//!
//! Means over many rounds have denominators like `27^1600`, on which a binary greatest common
//! divisor dominates the cost. So the terms of a sum are brought to one denominator, mostly by an
//! exact division. The result is divided by the small primes that both parts share, counted on
//! machine words. The rest of each denominator is cached; only if it is not 1, a greatest common
//! divisor is computed. Cost of a sum: linear in the digits for each term. Invariant: results are
//! reduced, with positive denominators.

use ahash::AHashMap;
use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

/// The small primes, each with its greatest power below 2^32.
const PRIMES: [(u32, u32); 6] = [
    (2, 1 << 31),
    (3, 3_486_784_401),
    (5, 1_220_703_125),
    (7, 1_977_326_743),
    (11, 2_357_947_691),
    (13, 815_730_721),
];
/// Limit on cached denominators; beyond it the cache is cleared.
const MOST_KEPT: usize = 4096;
/// Bits below which a greatest common divisor is cheap.
const SHORT: u64 = 256;

/// Reduces fractions and caches denominators.
#[derive(Default)]
pub(crate) struct Fractions {
    /// Denominators divided by the small primes.
    rests: AHashMap<BigInt, BigInt>,
}

/// A partial sum: numerator and denominator, which may share factors.
pub(crate) struct PartialSum {
    numerator: BigInt,
    denominator: BigInt,
}

impl PartialSum {
    pub fn new() -> Self {
        Self { numerator: BigInt::zero(), denominator: BigInt::one() }
    }

    /// Adds a product.
    pub fn add(&mut self, factor: &BigRational, value: &BigRational) {
        if value.is_zero() {
            return;
        }
        let times = |a: &BigInt, b: &BigInt| if a.is_one() { b.clone() } else { a * b };
        let numerator = times(factor.numer(), value.numer());
        let denominator = times(factor.denom(), value.denom());
        if self.numerator.is_zero() {
            (self.numerator, self.denominator) = (numerator, denominator);
            return;
        }
        if denominator == self.denominator {
            self.numerator += numerator;
            return;
        }
        let (larger, smaller) = if denominator > self.denominator {
            (&denominator, &self.denominator)
        } else {
            (&self.denominator, &denominator)
        };
        let (by, rest) = larger.div_rem(smaller);
        if !rest.is_zero() {
            let common = denominator.lcm(&self.denominator);
            self.numerator = &self.numerator * (&common / &self.denominator)
                + numerator * (&common / &denominator);
            self.denominator = common;
        } else if denominator > self.denominator {
            self.numerator = &self.numerator * by + numerator;
            self.denominator = denominator;
        } else {
            self.numerator += numerator * by;
        }
    }
}

/// Returns the multiplicity of a prime in a remainder modulo one of its powers; `None` if the
/// remainder does not determine it.
fn times(mut remainder: u32, prime: u32) -> Option<u32> {
    if remainder == 0 {
        return None;
    }
    let mut count = 0;
    while remainder.is_multiple_of(prime) {
        remainder /= prime;
        count += 1;
    }
    Some(count)
}

/// Returns the remainder of the absolute value.
fn remainder(n: &BigInt, by: u32) -> u32 {
    u32::try_from(n.magnitude() % by).expect("a remainder is smaller than what it is by")
}

/// Divides a number by all powers of another.
fn strip_powers(n: BigInt, by: &BigInt) -> BigInt {
    let (quotient, rest) = n.div_rem(by);
    if !rest.is_zero() {
        return n;
    }
    let n = strip_powers(quotient, &(by * by));
    let (quotient, rest) = n.div_rem(by);
    if rest.is_zero() { quotient } else { n }
}

impl Fractions {
    /// Returns the value of a sum.
    pub fn value(&mut self, sum: PartialSum) -> BigRational {
        let PartialSum { mut numerator, mut denominator } = sum;
        if numerator.is_zero() {
            return BigRational::zero();
        }
        if denominator.bits() < SHORT {
            return BigRational::new(numerator, denominator);
        }
        for (prime, power) in PRIMES {
            loop {
                let (a, b) = (
                    times(remainder(&denominator, power), prime),
                    times(remainder(&numerator, power), prime),
                );
                let shared = match (a, b) {
                    (Some(a), Some(b)) => prime.pow(a.min(b)),
                    (Some(a), None) | (None, Some(a)) => prime.pow(a),
                    (None, None) => power,
                };
                if shared == 1 {
                    break;
                }
                numerator /= shared;
                denominator /= shared;
                if shared != power {
                    break;
                }
            }
        }
        let rest = self.rest(&denominator);
        if !rest.is_one() {
            let shared = numerator.gcd(&rest);
            if !shared.is_one() {
                numerator /= &shared;
                denominator /= &shared;
            }
        }
        debug_assert!(
            denominator.is_positive() && numerator.gcd(&denominator).is_one(),
            "a sum is not reduced"
        );
        BigRational::new_raw(numerator, denominator)
    }

    fn rest(&mut self, denominator: &BigInt) -> BigInt {
        if let Some(known) = self.rests.get(denominator) {
            return known.clone();
        }
        let mut rest = denominator.clone();
        for (prime, _) in PRIMES {
            rest = strip_powers(rest, &BigInt::from(prime));
        }
        if self.rests.len() >= MOST_KEPT {
            self.rests.clear();
        }
        self.rests.insert(denominator.clone(), rest.clone());
        rest
    }
}
