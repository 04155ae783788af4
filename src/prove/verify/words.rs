//! The verifier's words: comparisons of sums of cells modulo a power of two, and their consistency.
//! Independent of the prover ([`crate::residues`]).
//!
//! An equation with an odd factor is solved for the cell. If all comparisons of some cells are
//! unchanged when one number is added to these cells, one of them is set to 0. The remainder of a
//! sum is the sum minus a multiple of 2^bits, of which few are possible: all are tried, and each
//! case is decided by elimination over integers ([`super::sums`]).
//!
//! Cost: exponential in the comparisons of sums that may wrap, within a budget. An exhausted budget
//! gives *no contradiction*, which can only reject a certificate.

use super::logic::{CertificateCell, Fact, World};
use super::sums::{Sign, SumRow, eliminate_within};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Limit on the cases of wrapping of a query.
const MAX_CASES: u32 = 400;
/// Limit on the rows of an elimination.
const MAX_ROWS: usize = 80;

/// A sum of cells with factors and a constant, modulo 2^bits: factors from 1 and the constant from
/// 0 to 2^bits - 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WordSum {
    /// Cells, ascending, with their factors.
    pub terms: Vec<(CertificateCell, i128)>,
    /// The constant part.
    pub constant: i128,
}

/// A comparison of the remainders of two sums, as numbers from 0 on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Words {
    /// Number of bits of the remainders.
    pub bits: u32,
    /// The left sum.
    pub left: WordSum,
    /// The comparison: [`Sign::Zero`] is equality.
    pub sign: Sign,
    /// The right sum.
    pub right: WordSum,
}

fn modulus(bits: u32) -> i128 {
    1 << bits
}

impl WordSum {
    /// Builds a sum; cells may occur several times.
    pub fn new(
        terms: impl IntoIterator<Item = (CertificateCell, i128)>,
        constant: i128,
        bits: u32,
    ) -> WordSum {
        let m = modulus(bits);
        let mut list: BTreeMap<CertificateCell, i128> = BTreeMap::new();
        for (cell, factor) in terms {
            let sum = list.entry(cell).or_default();
            *sum = (*sum + factor.rem_euclid(m)).rem_euclid(m);
        }
        let terms = list.into_iter().filter(|t| t.1 != 0).collect();
        WordSum { terms, constant: constant.rem_euclid(m) }
    }
    /// Substitutes sums for cells; `None` keeps a cell.
    fn put(&self, of: &dyn Fn(&CertificateCell) -> Option<WordSum>, bits: u32) -> WordSum {
        let mut terms = Vec::new();
        let mut constant = self.constant;
        for (cell, factor) in &self.terms {
            match of(cell) {
                None => terms.push((*cell, *factor)),
                Some(sum) => {
                    let m = modulus(bits);
                    let scaled = sum.terms.iter().map(|(c, f)| (*c, f * factor % m));
                    terms.extend(scaled.collect::<Vec<_>>());
                    constant = (constant + sum.constant % m * factor) % m;
                }
            }
        }
        WordSum::new(terms, constant, bits)
    }
    /// Returns the sum after an assignment of sums to cells.
    pub(super) fn substitute(&self, sums: &[(CertificateCell, WordSum)], bits: u32) -> WordSum {
        self.put(&|c| sums.iter().find(|s| s.0 == *c).map(|s| s.1.clone()), bits)
    }
    /// Returns the factor of a cell with the smallest absolute value.
    fn short(factor: i128, bits: u32) -> i128 {
        if factor > modulus(bits) / 2 { factor - modulus(bits) } else { factor }
    }
    fn factor(&self, cell: &CertificateCell) -> i128 {
        self.terms.iter().find(|t| t.0 == *cell).map_or(0, |t| t.1)
    }
}

impl Words {
    /// Builds a comparison; equations have zero on the right and are the smaller of two forms.
    pub fn new(bits: u32, left: &WordSum, sign: Sign, right: &WordSum) -> Words {
        let keep = |p: &WordSum| WordSum::new(p.terms.iter().copied(), p.constant, bits);
        let (left, right) = (keep(left), keep(right));
        if matches!(sign, Sign::AtMost | Sign::Less) {
            return Words { bits, left, sign, right };
        }
        let difference = |a: &WordSum, b: &WordSum| {
            let negated = b.terms.iter().map(|t| (t.0, -t.1));
            WordSum::new(a.terms.iter().copied().chain(negated), a.constant - b.constant, bits)
        };
        let left = difference(&left, &right).min(difference(&right, &left));
        Words { bits, left, sign, right: WordSum::default() }
    }
    /// Returns the truth of a comparison without cells; `None` if it has cells.
    pub fn truth(&self) -> Option<bool> {
        if !self.left.terms.is_empty() || !self.right.terms.is_empty() {
            return None;
        }
        let (a, b) = (self.left.constant, self.right.constant);
        Some(match self.sign {
            Sign::AtMost => a <= b,
            Sign::Less => a < b,
            Sign::Zero => a == b,
            Sign::NotZero => a != b,
        })
    }
    /// Returns the negated comparison.
    #[must_use]
    pub fn opposite(&self) -> Words {
        let (l, r) = (&self.left, &self.right);
        match self.sign {
            Sign::Zero => Words::new(self.bits, l, Sign::NotZero, r),
            Sign::NotZero => Words::new(self.bits, l, Sign::Zero, r),
            Sign::Less => Words::new(self.bits, r, Sign::AtMost, l),
            Sign::AtMost => Words::new(self.bits, r, Sign::Less, l),
        }
    }
    /// Returns the comparison with each cell replaced.
    #[must_use]
    pub fn map(&self, to: &dyn Fn(&CertificateCell) -> CertificateCell) -> Words {
        self.put(&|c| Some(WordSum { terms: vec![(to(c), 1)], constant: 0 }))
    }
    /// Returns the comparison with sums for cells; `None` keeps a cell.
    #[must_use]
    pub fn put(&self, of: &dyn Fn(&CertificateCell) -> Option<WordSum>) -> Words {
        let (left, right) = (self.left.put(of, self.bits), self.right.put(of, self.bits));
        Words::new(self.bits, &left, self.sign, &right)
    }
    /// Returns the cells that it mentions.
    pub fn cells(&self) -> impl Iterator<Item = CertificateCell> {
        self.left.terms.iter().chain(&self.right.terms).map(|t| t.0)
    }
    fn mentions(&self, cell: &CertificateCell) -> bool {
        self.left.factor(cell) != 0 || self.right.factor(cell) != 0
    }
}

/// Returns the largest number of bits with which a comparison mentions the cell.
fn width(words: &[Words], cell: &CertificateCell) -> u32 {
    words.iter().filter(|w| w.mentions(cell)).map(|w| w.bits).max().unwrap_or(0)
}

/// Returns the number that gives 1 with an odd factor, modulo 2^bits.
fn inverse(odd: i128, bits: u32) -> i128 {
    // Odd numbers form a group of order 2^(bits-1).
    let (mut found, mut power) = (1, odd);
    let mut exponent: u128 = (1 << bits.saturating_sub(1)) - 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            found = found * power % modulus(bits);
        }
        power = power * power % modulus(bits);
        exponent >>= 1;
    }
    found
}

/// Substitutes a sum for a cell. Returns false if a comparison fails.
fn replace_cell(words: &mut Vec<Words>, cell: &CertificateCell, by: &WordSum) -> bool {
    for w in words.iter_mut() {
        if w.mentions(cell) {
            *w = w.put(&|c| (c == cell).then(|| by.clone()));
        }
    }
    if words.iter().any(|w| w.truth() == Some(false)) {
        return false;
    }
    words.retain(|w| w.truth().is_none());
    words.sort_unstable();
    words.dedup();
    true
}

/// Solves equations and removes them. Returns false if a comparison fails.
fn solve_equations(words: &mut Vec<Words>) -> bool {
    let find = |words: &[Words]| {
        words.iter().enumerate().filter(|w| w.1.sign == Sign::Zero).find_map(|(i, w)| {
            let odd = |t: &&(CertificateCell, i128)| t.1 % 2 == 1 && width(words, &t.0) == w.bits;
            w.left.terms.iter().find(odd).map(|t| (i, *t))
        })
    };
    while let Some((at, (cell, factor))) = find(words) {
        let w = words.remove(at);
        let by = inverse(factor, w.bits);
        let rest = w.left.terms.iter().filter(|t| t.0 != cell).map(|t| (t.0, -(t.1 * by)));
        let sum = WordSum::new(rest, -(w.left.constant * by), w.bits);
        if !replace_cell(words, &cell, &sum) {
            return false;
        }
    }
    true
}

/// Sets one cell of each group of related cells to 0 if adding a number to all cells of the group
/// changes no comparison. Returns false if a comparison fails.
fn shift_to_zero(words: &mut Vec<Words>) -> bool {
    let mut done: Vec<CertificateCell> = Vec::new();
    loop {
        let Some(first) = words.iter().flat_map(Words::cells).find(|c| !done.contains(c)) else {
            return true;
        };
        let mut group = vec![first];
        loop {
            let more = words
                .iter()
                .filter(|w| w.cells().any(|c| group.contains(&c)))
                .flat_map(Words::cells)
                .find(|c| !group.contains(c));
            match more {
                Some(c) => group.push(c),
                None => break,
            }
        }
        let balanced =
            |p: &WordSum, bits: u32| p.terms.iter().map(|t| t.1).sum::<i128>() % modulus(bits) == 0;
        let own = |w: &&Words| w.cells().any(|c| group.contains(&c));
        let free = words
            .iter()
            .filter(own)
            .all(|w| balanced(&w.left, w.bits) && balanced(&w.right, w.bits));
        done.extend(&group);
        // The cell that occurs most often.
        let count = |c: &CertificateCell| words.iter().filter(|w| w.mentions(c)).count();
        if free
            && let Some(cell) = group.iter().max_by_key(|c| (count(c), **c)).copied()
            && !replace_cell(words, &cell, &WordSum::default())
        {
            return false;
        }
    }
}

/// True if the comparisons of words among the facts contradict each other. *No* may be wrong, *yes*
/// is not.
pub fn inconsistent(world: World<'_>, facts: &[Fact], budget: &u32) -> bool {
    let mut words: Vec<Words> = facts
        .iter()
        .filter_map(|f| if let Fact::Words(w) = f { Some((**w).clone()) } else { None })
        .collect();
    if words.is_empty() {
        return false;
    }
    if words.iter().any(|w| w.truth() == Some(false)) {
        return true;
    }
    words.retain(|w| w.truth().is_none());
    if !solve_equations(&mut words) {
        return true;
    }
    // Differences alone exclude few of the values of large words.
    let few = |w: &Words| {
        w.sign == Sign::NotZero
            && w.left.terms.iter().any(|t| t.1 % 2 == 1)
            && (words.len() as i128) < modulus(w.bits)
    };
    if words.iter().all(few) {
        return false;
    }
    if !shift_to_zero(&mut words) {
        return true;
    }
    // Differences come last, because they have the most cases.
    words.sort_by_key(|w| (w.sign == Sign::NotZero, w.left.terms.len() + w.right.terms.len()));
    let mut rows = Vec::new();
    let mut cells: Vec<CertificateCell> = words.iter().flat_map(Words::cells).collect();
    cells.sort_unstable();
    cells.dedup();
    for c in &cells {
        let greatest = modulus(width(&words, c)) - 1;
        rows.push(SumRow::at_most(vec![(*c, -1)], 0));
        rows.push(SumRow::at_most(vec![(*c, 1)], -greatest));
    }
    let mut left = MAX_CASES.min(*budget);
    let found = cases(world, &words, &words, rows, &mut left);
    if let Some(spent) = world.spent {
        spent.fetch_add(u64::from(MAX_CASES.saturating_sub(left)), Ordering::Relaxed);
    }
    found
}

/// Returns the possible remainders of a sum, each as a sum of cells; `None` if there are more than
/// `most`.
fn remainders(all: &[Words], part: &WordSum, bits: u32, most: u32) -> Option<Vec<WordSum>> {
    let m = modulus(bits);
    let terms: Vec<(CertificateCell, i128)> =
        part.terms.iter().map(|t| (t.0, WordSum::short(t.1, bits))).collect();
    let greatest = |t: &(CertificateCell, i128)| t.1 * (modulus(width(all, &t.0)) - 1);
    let low: i128 = terms.iter().map(|t| greatest(t).min(0)).sum::<i128>() + part.constant;
    let high: i128 = terms.iter().map(|t| greatest(t).max(0)).sum::<i128>() + part.constant;
    let (first, last) = (low.div_euclid(m), high.div_euclid(m));
    // A factor of 2^31 gives 2^31 remainders.
    if last - first >= i128::from(most) {
        return None;
    }
    let remainder = |q| WordSum { terms: terms.clone(), constant: part.constant - q * m };
    Some((first..=last).map(remainder).collect())
}

/// True if all cases of wrapping of the comparisons in `left` are contradictory.
fn cases(
    world: World<'_>,
    all: &[Words],
    left: &[Words],
    rows: Vec<SumRow>,
    budget: &mut u32,
) -> bool {
    let Some((first, rest)) = left.split_first() else { return false };
    let greatest = modulus(first.bits) - 1;
    let negated = |p: &WordSum| p.terms.iter().map(|t| (t.0, -t.1)).collect::<Vec<_>>();
    let inside = |p: &WordSum| {
        [
            SumRow::at_most(negated(p), -p.constant),
            SumRow::at_most(p.terms.clone(), p.constant - greatest),
        ]
    };
    let both = [&first.left, &first.right].map(|p| remainders(all, p, first.bits, *budget));
    let [Some(lefts), Some(rights)] = both else { return false };
    for a in &lefts {
        for b in &rights {
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let mut next = rows.clone();
            next.extend(inside(a));
            next.extend(inside(b));
            let terms = [a.terms.clone(), negated(b)].concat();
            let difference = a.constant - b.constant;
            // The right side of a difference is zero, and remainders are at least zero.
            next.push(match first.sign {
                Sign::NotZero => SumRow::at_most(negated(a), 1 - a.constant),
                Sign::Less => SumRow::at_most(terms, difference + 1),
                Sign::AtMost => SumRow::at_most(terms, difference),
                Sign::Zero => SumRow::zero(terms, difference),
            });
            if !eliminate_within(world, next.clone(), MAX_ROWS)
                && !cases(world, all, rest, next, budget)
            {
                return false;
            }
        }
    }
    true
}
