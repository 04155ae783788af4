//! Sparse linear systems `x = A x + b` with non-negative `A`, solved exactly by elimination of one
//! unknown after another.
//!
//! In: the rows. Out: the unique solution, or none because the spectral radius of `A` is at least
//! 1: an irreducible non-negative `A` has a smaller one if and only if `I - A` is a non-singular
//! M-matrix, that is, all pivots on the diagonal are positive (Berman and Plemmons, "Nonnegative
//! matrices in the mathematical sciences", 1979, chapter 6). Right-hand sides are pairs `k K + r`
//! with a `K` above all numbers. Cost: that of fill-in; the unknown with the least fill-in is
//! eliminated first.

use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use std::collections::{BTreeMap, BTreeSet};

/// `k K + r`, compared as if `K` were above all numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinearPair {
    pub k: BigRational,
    pub r: BigRational,
}

impl LinearPair {
    pub fn number(r: BigRational) -> Self {
        Self { k: BigRational::zero(), r }
    }
    pub fn huge() -> Self {
        Self { k: BigRational::one(), r: BigRational::zero() }
    }
    pub fn add_scaled(&mut self, factor: &BigRational, other: &LinearPair) {
        if !other.k.is_zero() {
            self.k += factor * &other.k;
        }
        if !other.r.is_zero() {
            self.r += factor * &other.r;
        }
    }
}

/// A row: coefficients by unknown, and the constant.
#[derive(Clone, Debug)]
pub(crate) struct LinearRow {
    pub terms: BTreeMap<usize, BigRational>,
    pub base: LinearPair,
}

/// Solves `x = A x + b`; `None` if the spectral radius is 1 or more.
pub(crate) fn solve(mut rows: Vec<LinearRow>) -> Option<Vec<LinearPair>> {
    let n = rows.len();
    let mut users: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); n];
    for (i, row) in rows.iter().enumerate() {
        row.terms.keys().for_each(|j| _ = users[*j].insert(i));
    }
    let mut left: BTreeSet<usize> = (0..n).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(i) = left.iter().copied().min_by_key(|i| rows[*i].terms.len() * users[*i].len())
    {
        left.remove(&i);
        order.push(i);
        if let Some(own) = rows[i].terms.remove(&i) {
            users[i].remove(&i);
            let pivot = BigRational::one() - own;
            if !pivot.is_positive() {
                return None;
            }
            let by = pivot.recip();
            rows[i].terms.values_mut().for_each(|c| *c *= &by);
            let base =
                std::mem::replace(&mut rows[i].base, LinearPair::number(BigRational::zero()));
            rows[i].base.add_scaled(&by, &base);
        }
        let row = rows[i].clone();
        for u in std::mem::take(&mut users[i]) {
            if !left.contains(&u) {
                continue;
            }
            let Some(factor) = rows[u].terms.remove(&i) else { continue };
            for (j, c) in &row.terms {
                *rows[u].terms.entry(*j).or_insert_with(BigRational::zero) += &factor * c;
                users[*j].insert(u);
            }
            rows[u].base.add_scaled(&factor, &row.base);
        }
    }
    let mut values: Vec<Option<LinearPair>> = vec![None; n];
    for i in order.into_iter().rev() {
        let mut value = rows[i].base.clone();
        for (j, c) in &rows[i].terms {
            value.add_scaled(c, values[*j].as_ref().expect("eliminated later"));
        }
        values[i] = Some(value);
    }
    values.into_iter().collect()
}
