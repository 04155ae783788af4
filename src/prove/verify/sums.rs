//! The verifier's arithmetic: comparisons of sums of cells with zero, and their consistency.
//! Equations are solved for a cell and substituted, inequalities are eliminated by Fourier and
//! Motzkin, sums over integers are rounded, differences are split. Factors are integers; if one
//! exceeds 127 bits, the derived sum is dropped, which can only reject a certificate.

use super::logic::{CertificateCell, Fact, World};
use super::words::WordSum;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::ToPrimitive;
use std::collections::BTreeMap;
use std::sync::Arc;

const MAX_CONSTRAINTS: usize = 400;
/// Largest absolute value in a sum; sums of a few products of two stay far below 127 bits.
pub(super) const LARGEST: i128 = 1 << 60;

/// The comparison of a sum with zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sign {
    /// At most.
    AtMost,
    /// Less.
    Less,
    /// Equal.
    Zero,
    /// Different.
    NotZero,
}

/// A sum of cells with integer factors and a constant, compared with zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellSum {
    /// Cells, ascending, with their factors, none of them zero.
    pub terms: Arc<[(CertificateCell, i128)]>,
    /// The constant part.
    pub constant: i128,
    /// The comparison.
    pub sign: Sign,
}

/// Sorts terms and combines equal cells, without zero factors; `None` if a number is too large.
fn merge_terms(mut terms: Vec<(CertificateCell, i128)>) -> Option<Vec<(CertificateCell, i128)>> {
    terms.sort_unstable_by_key(|t| t.0);
    let mut list: Vec<(CertificateCell, i128)> = Vec::with_capacity(terms.len());
    for (cell, factor) in terms {
        match list.last_mut() {
            Some(last) if last.0 == cell => last.1 = last.1.checked_add(factor)?,
            _ => list.push((cell, factor)),
        }
    }
    list.retain(|t| t.1 != 0);
    list.iter().all(|t| t.1 != i128::MIN).then_some(list)
}

impl CellSum {
    /// Builds the sum without a common divisor; `None` if a number is too large.
    pub fn new(terms: Vec<(CertificateCell, i128)>, constant: i128, sign: Sign) -> Option<CellSum> {
        let sum = CellSum::normalise(terms, constant, sign)?;
        let small = |n: &i128| (-LARGEST..=LARGEST).contains(n);
        (sum.terms.iter().all(|t| small(&t.1)) && small(&sum.constant)).then_some(sum)
    }
    fn normalise(
        terms: Vec<(CertificateCell, i128)>,
        mut constant: i128,
        sign: Sign,
    ) -> Option<CellSum> {
        let mut terms = merge_terms(terms)?;
        let divisor = terms.iter().fold(constant.checked_abs()?, |g, t| g.gcd(&t.1));
        // Normal form of an equation: the first factor is positive.
        let turned =
            matches!(sign, Sign::Zero | Sign::NotZero) && terms.first().is_some_and(|t| t.1 < 0);
        let divisor = if turned { -divisor } else { divisor };
        if divisor != 0 {
            terms.iter_mut().for_each(|t| t.1 /= divisor);
            constant /= divisor;
        }
        Some(CellSum { terms: terms.into(), constant, sign })
    }
    /// Builds the sum from rational numbers. `None` if a number, multiplied by the common
    /// denominator, is too large.
    pub fn of(
        terms: &[(CertificateCell, BigRational)],
        constant: &BigRational,
        sign: Sign,
    ) -> Option<CellSum> {
        let mut scale = constant.denom().clone();
        for (_, f) in terms {
            scale = scale.lcm(f.denom());
        }
        let scale = BigRational::from_integer(scale);
        let whole = |n: &BigRational| {
            (n * &scale).to_integer().to_i128().filter(|n| (-LARGEST..=LARGEST).contains(n))
        };
        CellSum::new(
            terms.iter().map(|(c, f)| Some((*c, whole(f)?))).collect::<Option<_>>()?,
            whole(constant)?,
            sign,
        )
    }
    /// Returns the negated comparison.
    #[must_use]
    pub fn opposite(&self) -> CellSum {
        let sign = match self.sign {
            Sign::Zero => Sign::NotZero,
            Sign::NotZero => Sign::Zero,
            Sign::AtMost => Sign::Less,
            Sign::Less => Sign::AtMost,
        };
        match sign {
            Sign::Zero | Sign::NotZero => CellSum { sign, ..self.clone() },
            _ => CellSum {
                terms: self.terms.iter().map(|t| (t.0, -t.1)).collect(),
                constant: -self.constant,
                sign,
            },
        }
    }
    /// Returns the sum with each cell replaced.
    #[must_use]
    pub fn map(&self, to: &dyn Fn(&CertificateCell) -> CertificateCell) -> CellSum {
        let terms: Vec<(CertificateCell, i128)> =
            self.terms.iter().map(|t| (to(&t.0), t.1)).collect();
        CellSum::normalise(terms, self.constant, self.sign)
            .expect("a few numbers of 60 bits add up to fewer than 127")
    }
}

/// A sum that is at most zero, less than zero, or zero.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SumRow {
    terms: Vec<(CertificateCell, i128)>,
    constant: i128,
    sign: Sign,
}

impl SumRow {
    /// Builds the comparison of a sum of a few small numbers: at most zero.
    pub(super) fn at_most(terms: Vec<(CertificateCell, i128)>, constant: i128) -> SumRow {
        SumRow { terms: merge_terms(terms).unwrap_or_default(), constant, sign: Sign::AtMost }
    }
    /// Builds the equation of a sum of a few small numbers and zero.
    pub(super) fn zero(terms: Vec<(CertificateCell, i128)>, constant: i128) -> SumRow {
        SumRow { sign: Sign::Zero, ..SumRow::at_most(terms, constant) }
    }
    fn of(sum: &CellSum) -> SumRow {
        SumRow { terms: sum.terms.to_vec(), constant: sum.constant, sign: sum.sign }
    }
    fn factor(&self, cell: &CertificateCell) -> i128 {
        self.terms.iter().find(|t| t.0 == *cell).map_or(0, |t| t.1)
    }
    /// True if the row has no cells and is false.
    fn is_false(&self) -> bool {
        self.terms.is_empty()
            && match self.sign {
                Sign::AtMost => self.constant > 0,
                Sign::Less => self.constant >= 0,
                Sign::Zero => self.constant != 0,
                Sign::NotZero => self.constant == 0,
            }
    }
    /// Adds the row times a positive number and the other row times any number, without a common
    /// divisor.
    fn plus(&self, by: i128, other: &SumRow, times: i128) -> Option<SumRow> {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        for (c, f) in &self.terms {
            terms.push((*c, f.checked_mul(by)?));
        }
        for (c, f) in &other.terms {
            terms.push((*c, f.checked_mul(times)?));
        }
        let constant =
            self.constant.checked_mul(by)?.checked_add(other.constant.checked_mul(times)?)?;
        let sign = match (self.sign, other.sign) {
            (s, Sign::Zero) => s,
            (Sign::Less, _) | (_, Sign::Less) => Sign::Less,
            (_, s) => s,
        };
        let mut row = SumRow { terms: merge_terms(terms)?, constant, sign };
        let divisor = row.terms.iter().fold(row.constant.checked_abs()?, |g, t| g.gcd(&t.1));
        if divisor > 1 {
            row.terms.iter_mut().for_each(|t| t.1 /= divisor);
            row.constant /= divisor;
        }
        Some(row)
    }
    /// Normalises a row over integers: divides by the common divisor, rounds the constant up, makes
    /// strict comparisons non-strict. `None` if it cannot hold.
    fn round(mut self, world: World<'_>) -> Option<SumRow> {
        if self.is_false() {
            return None;
        }
        if self.terms.is_empty() || !self.terms.iter().all(|t| world.is_integer(&t.0)) {
            return Some(self);
        }
        if self.sign == Sign::Less
            && let Some(above) = self.constant.checked_add(1)
        {
            (self.constant, self.sign) = (above, Sign::AtMost);
        }
        let divisor = self.terms.iter().fold(0, |g: i128, t| g.gcd(&t.1));
        if divisor > 1 && self.sign != Sign::Less {
            if self.sign == Sign::Zero && self.constant % divisor != 0 {
                return None;
            }
            self.terms.iter_mut().for_each(|t| t.1 /= divisor);
            self.constant = Integer::div_ceil(&self.constant, &divisor);
        }
        Some(self)
    }
}

/// Adds the two rows so that the cell cancels, if they bound it from opposite sides or one is an
/// equation.
fn cancel(a: &SumRow, b: &SumRow, cell: &CertificateCell) -> Option<SumRow> {
    let (f, g) = (a.factor(cell), b.factor(cell));
    if a.sign == Sign::Zero {
        // b * |f| - a * g * sign(f)
        return b.plus(f.checked_abs()?, a, -g.checked_mul(f.signum())?);
    }
    if b.sign == Sign::Zero {
        return cancel(b, a, cell);
    }
    a.plus(g.checked_abs()?, b, f.checked_abs()?)
}

/// True if the sums among the facts contradict each other. *No* may be wrong, *yes* is not.
pub fn has_contradiction(world: World<'_>, facts: &[Fact], budget: &mut u32) -> bool {
    let sums =
        facts.iter().filter_map(|f| if let Fact::Sum(s) = f { Some(SumRow::of(s)) } else { None });
    let (differ, rows): (Vec<SumRow>, Vec<SumRow>) = sums.partition(|r| r.sign == Sign::NotZero);
    if rows.is_empty() && differ.is_empty() {
        return false;
    }
    match open_differences(&rows, differ) {
        Some(differ) => empty(world, rows, &differ, budget),
        None => true,
    }
}

/// True if the comparisons of numbers among the facts hold for some integers: those that equations
/// of one cell give, and zero. *No* may be wrong, *yes* is not.
pub fn surely_holds(facts: &[Fact]) -> bool {
    let mut values: BTreeMap<CertificateCell, i128> = BTreeMap::new();
    for fact in facts {
        match fact {
            Fact::Sum(s) if s.sign == Sign::Zero => {
                if let [(cell, factor)] = *s.terms
                    && s.constant % factor == 0
                {
                    values.insert(cell, -s.constant / factor);
                }
            }
            Fact::Words(w) if w.sign == Sign::Zero => {
                if let [(cell, 1)] = w.left.terms[..] {
                    values.insert(cell, (-w.left.constant).rem_euclid(1 << w.bits));
                }
            }
            _ => {}
        }
    }
    let sum = |terms: &[(CertificateCell, i128)], constant: i128| {
        terms.iter().try_fold(constant, |sum: i128, (cell, factor)| {
            let value = values.get(cell).copied().unwrap_or(0);
            sum.checked_add(value.checked_mul(*factor)?)
        })
    };
    let compared = |sign: Sign, left: i128, right: i128| match sign {
        Sign::AtMost => left <= right,
        Sign::Less => left < right,
        Sign::Zero => left == right,
        Sign::NotZero => left != right,
    };
    facts.iter().all(|fact| match fact {
        Fact::Sum(s) => sum(&s.terms, s.constant).is_some_and(|sum| compared(s.sign, sum, 0)),
        Fact::Words(w) => {
            let side = |part: &WordSum| {
                sum(&part.terms, part.constant).map(|sum| sum.rem_euclid(1 << w.bits))
            };
            side(&w.left)
                .zip(side(&w.right))
                .is_some_and(|(left, right)| compared(w.sign, left, right))
        }
        _ => true,
    })
}

/// Returns the differences that must be split into less and greater; `None` if one fails. A
/// difference that equations decide need not be split, nor one about a cell without other rows:
/// finitely many of infinitely many values are excluded. Dropping a difference is always sound.
fn open_differences(rows: &[SumRow], differ: Vec<SumRow>) -> Option<Vec<SumRow>> {
    let mut rows = rows.to_vec();
    let mut reduced = differ.clone();
    while let Some(at) = rows.iter().position(|r| r.sign == Sign::Zero && !r.terms.is_empty()) {
        let row = rows.swap_remove(at);
        let Some((cell, _)) = row.terms.iter().min_by_key(|t| (t.1.abs(), t.0)).copied() else {
            return Some(differ);
        };
        for r in rows.iter_mut().chain(&mut reduced).filter(|r| r.factor(&cell) != 0) {
            match cancel(&row, r, &cell) {
                Some(next) => *r = next,
                None => return Some(differ),
            }
        }
    }
    if reduced.iter().any(SumRow::is_false) {
        return None;
    }
    let bounded = |r: &SumRow| {
        !r.terms.is_empty() && r.terms.iter().all(|t| rows.iter().any(|r| r.factor(&t.0) != 0))
    };
    Some(differ.into_iter().zip(&reduced).filter(|(_, r)| bounded(r)).map(|(d, _)| d).collect())
}

fn empty(world: World<'_>, rows: Vec<SumRow>, differ: &[SumRow], budget: &mut u32) -> bool {
    if eliminate_all(world, rows.clone(), budget) {
        return true;
    }
    let Some((first, rest)) = differ.split_first() else { return false };
    if *budget == 0 {
        return false;
    }
    *budget -= 1;
    [1, -1].into_iter().all(|side| {
        let mut more = rows.clone();
        let terms = first.terms.iter().map(|t| (t.0, t.1 * side)).collect();
        more.push(SumRow { terms, constant: first.constant * side, sign: Sign::Less });
        empty(world, more, rest, budget)
    })
}

/// Eliminates all cells. Returns true if a contradiction remains.
fn eliminate_all(world: World<'_>, rows: Vec<SumRow>, budget: &mut u32) -> bool {
    *budget > 0 && eliminate_within(world, rows, MAX_CONSTRAINTS)
}

/// Eliminates all cells, with at most `most` rows at a time. Returns true if a contradiction
/// remains.
pub(super) fn eliminate_within(world: World<'_>, rows: Vec<SumRow>, most: usize) -> bool {
    let Some(mut rows) = rows.into_iter().map(|r| r.round(world)).collect::<Option<Vec<SumRow>>>()
    else {
        return true;
    };
    loop {
        rows.retain(|r| !r.terms.is_empty());
        rows.sort_unstable();
        rows.dedup();
        let equation = rows.iter().position(|r| r.sign == Sign::Zero);
        let (cell, solved) = match equation {
            Some(at) => {
                let row = rows.swap_remove(at);
                // The least factor limits the growth of numbers.
                let Some(least) = row.terms.iter().min_by_key(|t| (t.1.abs(), t.0)) else {
                    return false;
                };
                (least.0, Some(row))
            }
            None => match cheapest(&rows) {
                Some(cell) => (cell, None),
                None => return false,
            },
        };
        if rows.len() > most {
            return false;
        }
        let (with, without): (Vec<SumRow>, Vec<SumRow>) =
            rows.into_iter().partition(|r| r.factor(&cell) != 0);
        rows = without;
        let mut new = Vec::new();
        match &solved {
            Some(row) => new.extend(with.iter().filter_map(|r| cancel(row, r, &cell))),
            None => {
                for a in with.iter().filter(|r| r.factor(&cell) > 0) {
                    new.extend(
                        with.iter()
                            .filter(|r| r.factor(&cell) < 0)
                            .filter_map(|b| cancel(a, b, &cell)),
                    );
                }
            }
        }
        for row in new {
            match row.round(world) {
                Some(row) => rows.push(row),
                None => return true,
            }
        }
    }
}

/// Returns the cell with the elimination that creates the fewest new rows.
fn cheapest(rows: &[SumRow]) -> Option<CertificateCell> {
    let mut counts: Vec<(CertificateCell, usize, usize)> = Vec::new();
    for (c, f) in rows.iter().flat_map(|r| &r.terms) {
        let at = counts.iter().position(|x| x.0 == *c).unwrap_or_else(|| {
            counts.push((*c, 0, 0));
            counts.len() - 1
        });
        if *f > 0 { counts[at].1 += 1 } else { counts[at].2 += 1 }
    }
    counts.into_iter().min_by_key(|c| (c.1 * c.2, c.0)).map(|c| c.0)
}

/// Returns consequences of the sums among the facts without the cell.
pub fn consequences_without(facts: &[Fact], cell: &CertificateCell) -> Vec<CellSum> {
    let rows: Vec<SumRow> = facts
        .iter()
        .filter_map(|f| if let Fact::Sum(s) = f { Some(SumRow::of(s)) } else { None })
        .filter(|r| r.sign != Sign::NotZero)
        .collect();
    let mut found = Vec::new();
    for (i, a) in rows.iter().enumerate() {
        for b in &rows[i + 1..] {
            let opposite = (a.factor(cell) > 0) != (b.factor(cell) > 0);
            if opposite || a.sign == Sign::Zero || b.sign == Sign::Zero {
                found.extend(
                    cancel(a, b, cell).and_then(|r| CellSum::new(r.terms, r.constant, r.sign)),
                );
            }
        }
    }
    found
}
