//! Difference-bound matrices over integer variables.
//!
//! A matrix represents the valuations with `x - y <= d(x, y)` for all pairs of variables, where
//! variable 0 is zero (Dill, "Timing assumptions and verification of finite-state concurrent
//! systems", 1989). It is kept closed: each bound is the least that the others imply, so that
//! implication, contradiction, inclusion, and projection are comparisons of entries. Over the
//! integers a closed matrix without a negative cycle has a solution (the constraints are totally
//! unimodular), so all answers are exact. Cost: quadratic for one more constraint, cubic for a
//! closure.

/// No bound.
pub const NONE: i64 = i64::MAX;

/// A satisfiable system of constraints, closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Differences {
    size: usize,
    bounds: Vec<i64>,
}

/// Returns the sum of two bounds; a sum outside of machine integers is no bound.
fn sum(a: i64, b: i64) -> i64 {
    if a == NONE || b == NONE { NONE } else { a.checked_add(b).unwrap_or(NONE) }
}

impl Default for Differences {
    fn default() -> Self {
        Self { size: 1, bounds: vec![0] }
    }
}

impl Differences {
    /// Returns the number of variables, zero included.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the least `c` with `x - y <= c`; [`NONE`] if there is none.
    pub fn bound(&self, x: usize, y: usize) -> i64 {
        self.bounds[x * self.size + y]
    }

    /// Returns the least and the greatest value of a variable.
    pub fn range(&self, x: usize) -> (Option<i64>, Option<i64>) {
        let finite = |c: i64| (c != NONE).then_some(c);
        (finite(self.bound(0, x)).and_then(i64::checked_neg), finite(self.bound(x, 0)))
    }

    /// Adds a variable with an optional least value. Returns its number.
    pub fn add(&mut self, least: Option<i64>) -> usize {
        let (old, size) = (self.size, self.size + 1);
        let mut bounds = vec![NONE; size * size];
        for x in 0..old {
            bounds[x * size..x * size + old].copy_from_slice(&self.bounds[x * old..(x + 1) * old]);
        }
        bounds[size * size - 1] = 0;
        (self.size, self.bounds) = (size, bounds);
        if let Some(least) = least {
            self.constrain(0, old, -least);
        }
        old
    }

    /// True if all solutions satisfy `x - y <= c`.
    pub fn implies(&self, x: usize, y: usize, c: i64) -> bool {
        self.bound(x, y) != NONE && self.bound(x, y) <= c
    }

    /// True if no solution satisfies `x - y <= c`.
    pub fn excludes(&self, x: usize, y: usize, c: i64) -> bool {
        self.bound(y, x) < c.checked_neg().unwrap_or(NONE)
    }

    /// Adds `x - y <= c`. Returns false, and leaves the matrix unchanged, if no solution satisfies
    /// it.
    pub fn constrain(&mut self, x: usize, y: usize, c: i64) -> bool {
        if self.excludes(x, y, c) {
            return false;
        }
        if self.implies(x, y, c) {
            return true;
        }
        let n = self.size;
        // A new shortest path passes the new edge once.
        for i in 0..n {
            let to = sum(self.bound(i, x), c);
            if to == NONE {
                continue;
            }
            for j in 0..n {
                let path = sum(to, self.bound(y, j));
                let entry = &mut self.bounds[i * n + j];
                *entry = path.min(*entry);
            }
        }
        true
    }

    /// True if each solution of `other` is one of this system; both have the same variables.
    pub fn includes(&self, other: &Self) -> bool {
        self.size == other.size && self.bounds.iter().zip(&other.bounds).all(|(a, b)| a >= b)
    }

    /// Returns the system of the sums `base + offset`, each as the next variable after zero; other
    /// variables are projected out.
    #[must_use]
    pub fn select(&self, sums: &[(usize, i64)]) -> Self {
        let all: Vec<(usize, i64)> = std::iter::once((0, 0)).chain(sums.iter().copied()).collect();
        let size = all.len();
        let mut bounds = Vec::with_capacity(size * size);
        for (i, (x, a)) in all.iter().enumerate() {
            for (j, (y, b)) in all.iter().enumerate() {
                let offset = a.checked_sub(*b).unwrap_or(NONE);
                bounds.push(if i == j { 0 } else { sum(self.bound(*x, *y), offset) });
            }
        }
        Self { size, bounds }
    }

    /// Replaces each bound by the result of `weaker`, which must not be smaller, and closes the
    /// matrix again.
    #[must_use]
    pub fn weaken(&self, mut weaker: impl FnMut(usize, usize, i64) -> i64) -> Self {
        let n = self.size;
        let mut bounds = self.bounds.clone();
        for x in 0..n {
            for y in 0..n {
                if x != y && bounds[x * n + y] != NONE {
                    let old = bounds[x * n + y];
                    bounds[x * n + y] = weaker(x, y, old).max(old);
                }
            }
        }
        for k in 0..n {
            for i in 0..n {
                let to = bounds[i * n + k];
                if to == NONE {
                    continue;
                }
                for j in 0..n {
                    let path = sum(to, bounds[k * n + j]);
                    if path < bounds[i * n + j] {
                        bounds[i * n + j] = path;
                    }
                }
            }
        }
        Self { size: n, bounds }
    }

    /// True if a valuation of the variables after zero is a solution.
    pub fn holds(&self, values: &[i64]) -> bool {
        let at = |x: usize| if x == 0 { 0 } else { i128::from(values[x - 1]) };
        values.len() + 1 == self.size
            && (0..self.size).all(|x| {
                (0..self.size).all(|y| {
                    let c = self.bound(x, y);
                    c == NONE || at(x) - at(y) <= i128::from(c)
                })
            })
    }
}
