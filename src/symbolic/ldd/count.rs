//! Exact number of vectors of a set: in 128 bits if that suffices, otherwise in big integers.

use super::{Ldd, Manager};
use ahash::AHashMap;
use num_bigint::BigUint;
use num_traits::{One, Zero};

impl Manager {
    /// Returns the number of vectors.
    pub fn count(&self, set: Ldd) -> BigUint {
        match self.count_small(set, &mut AHashMap::new()) {
            Some(n) => BigUint::from(n),
            None => self.count_big(set, &mut AHashMap::new()),
        }
    }

    fn count_small(&self, set: Ldd, memo: &mut AHashMap<Ldd, u128>) -> Option<u128> {
        if set.0 < 2 {
            return Some(u128::from(set.0));
        }
        if let Some(&n) = memo.get(&set) {
            return Some(n);
        }
        let (mut sum, mut at) = (0u128, set);
        while at != Ldd::EMPTY {
            let n = self.node(at);
            sum = sum.checked_add(if n.down == Ldd::UNIT {
                1
            } else {
                self.count_small(n.down, memo)?
            })?;
            at = n.right;
        }
        memo.insert(set, sum);
        Some(sum)
    }

    fn count_big(&self, set: Ldd, memo: &mut AHashMap<Ldd, BigUint>) -> BigUint {
        if set.0 < 2 {
            return if set == Ldd::UNIT { BigUint::one() } else { BigUint::zero() };
        }
        if let Some(n) = memo.get(&set) {
            return n.clone();
        }
        let (mut sum, mut at) = (BigUint::zero(), set);
        while at != Ldd::EMPTY {
            let n = self.node(at);
            sum += self.count_big(n.down, memo);
            at = n.right;
        }
        memo.insert(set, sum.clone());
        sum
    }
}
