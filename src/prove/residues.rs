//! Comparisons of words: sums of cells modulo a power of two, as numbers from 0 on, and the
//! decision of their conjunctions.
//!
//! An atom compares the remainders of two sums modulo 2^bits: `=`, `≠`, `<`, `≤` (unsigned). The
//! signed order and masks are written with these (`mu_cubicle::system::Words`). Sums of words are
//! sums of integers, so a substitution of a sum for a cell is exact.
//!
//! Decision of a conjunction:
//!
//! 1. An equation with an odd factor of a cell is solved for the cell, as odd numbers have inverses
//!    modulo 2^bits.
//! 2. A sum that occurs in comparisons replaces one of its cells, if fewer sums remain then. For
//!    example `(m - s) < (n - s)` becomes `m < n`: a translation of all words.
//! 3. The rest is linear arithmetic over integers ([`crate::simplex`]): a cell is between 0 and
//!    2^bits - 1, and the remainder of a sum is the sum minus 2^bits times a further integer, which
//!    has few values. Branch and bound splits these first.
//!
//! Invariants: atoms are in normal form ([`Residues::compare`]), so equal constraints are equal
//! values; [`SimplexAnswer::Unsatisfiable`] is always correct. Cost: cubic in the sums of the
//! conjunction, about three in practice, then that of the simplex.

use crate::atom::{Atom, Cell, Literal, TooLarge};
use crate::simplex::{Constraint, Simplex, SimplexAnswer, ZeroRelation};

/// A sum of cells times factors, plus a constant, modulo a power of two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResidueSum {
    /// Cells, ascending, with factors in `(-2^(bits-1), 2^(bits-1)]`, not zero.
    pub terms: Vec<(Cell, i64)>,
    /// The constant part, from 0 to 2^bits - 1.
    pub constant: i64,
}

/// A comparison of the remainders of two sums modulo 2^bits. The right side of an equation is zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Residues {
    /// Number of bits, from 1 to 32.
    pub bits: u32,
    /// The left side.
    pub left: ResidueSum,
    /// The comparison.
    pub relation: ZeroRelation,
    /// The right side.
    pub right: ResidueSum,
}

fn modulus(bits: u32) -> i64 {
    1 << bits
}

/// Returns a factor modulo 2^bits between -2^(bits-1) and 2^(bits-1).
fn centre(n: i128, bits: u32) -> i64 {
    let m = i128::from(modulus(bits));
    let n = n.rem_euclid(m);
    (if 2 * n > m { n - m } else { n }) as i64
}

/// Returns the inverse of an odd number modulo 2^bits.
fn inverse(odd: i64, bits: u32) -> i64 {
    let mut x = 1u64;
    // Each step of Newton's iteration doubles the number of correct bits.
    for _ in 0..6 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.cast_unsigned().wrapping_mul(x)));
    }
    (x & (modulus(bits) as u64 - 1)) as i64
}

impl ResidueSum {
    /// Builds a sum modulo 2^bits; `terms` may be in any order and contain repetitions.
    pub fn new(
        terms: impl IntoIterator<Item = (Cell, i128)>,
        constant: i128,
        bits: u32,
    ) -> ResidueSum {
        let mut list: Vec<(Cell, i128)> = terms.into_iter().collect();
        list.sort_unstable_by_key(|t| t.0);
        let mut merged: Vec<(Cell, i128)> = Vec::with_capacity(list.len());
        for (cell, factor) in list {
            let factor = factor.rem_euclid(i128::from(modulus(bits)));
            match merged.last_mut() {
                Some(last) if last.0 == cell => last.1 += factor,
                _ => merged.push((cell, factor)),
            }
        }
        let terms = merged.into_iter().map(|(c, f)| (c, centre(f, bits))).filter(|t| t.1 != 0);
        let constant = constant.rem_euclid(i128::from(modulus(bits))) as i64;
        ResidueSum { terms: terms.collect(), constant }
    }
    /// Builds a constant.
    pub fn constant(n: i64, bits: u32) -> ResidueSum {
        ResidueSum::new([], n.into(), bits)
    }
    fn wide(&self) -> impl Iterator<Item = (Cell, i128)> {
        self.terms.iter().map(|t| (t.0, i128::from(t.1)))
    }
    /// Returns `self - other` modulo 2^bits.
    fn minus(&self, other: &ResidueSum, bits: u32) -> ResidueSum {
        let terms = self.wide().chain(other.wide().map(|t| (t.0, -t.1)));
        ResidueSum::new(terms, i128::from(self.constant) - i128::from(other.constant), bits)
    }
    fn times(&self, by: i64, bits: u32) -> ResidueSum {
        let by = i128::from(by);
        ResidueSum::new(self.wide().map(|t| (t.0, t.1 * by)), i128::from(self.constant) * by, bits)
    }
    /// Substitutes sums for cells; `None` keeps a cell.
    pub fn put(&self, of: &impl Fn(Cell) -> Option<ResidueSum>, bits: u32) -> ResidueSum {
        let mut terms = Vec::with_capacity(self.terms.len());
        let mut constant = i128::from(self.constant);
        for (cell, factor) in self.wide() {
            match of(cell) {
                None => terms.push((cell, factor)),
                Some(sum) => {
                    terms.extend(sum.wide().map(|t| (t.0, t.1 * factor)));
                    constant += i128::from(sum.constant) * factor;
                }
            }
        }
        ResidueSum::new(terms, constant, bits)
    }
    /// Replaces each cell, injectively or not.
    fn map(&self, to: &impl Fn(Cell) -> Cell, bits: u32) -> ResidueSum {
        ResidueSum::new(self.wide().map(|t| (to(t.0), t.1)), self.constant.into(), bits)
    }
    fn factor(&self, cell: Cell) -> i64 {
        self.terms.iter().find(|t| t.0 == cell).map_or(0, |t| t.1)
    }
    fn is_constant(&self) -> bool {
        self.terms.is_empty()
    }
}

fn truth(holds: bool) -> Literal {
    if holds { Literal::True } else { Literal::False }
}

impl Residues {
    /// Builds `left relation right` modulo 2^bits in normal form.
    pub fn compare(
        left: &ResidueSum,
        relation: ZeroRelation,
        right: &ResidueSum,
        bits: u32,
    ) -> Literal {
        let greatest = modulus(bits) - 1;
        let differ = |a: &ResidueSum, n: i64| {
            Residues::equation(
                a.minus(&ResidueSum::constant(n, bits), bits),
                ZeroRelation::Ne,
                bits,
            )
        };
        let (left, right) = (left.map(&|c| c, bits), right.map(&|c| c, bits));
        match relation {
            ZeroRelation::Eq | ZeroRelation::Ne => {
                return Residues::equation(left.minus(&right, bits), relation, bits);
            }
            _ if left == right => return truth(relation == ZeroRelation::Le),
            _ => {}
        }
        let strict = relation == ZeroRelation::Lt;
        match (left.is_constant(), right.is_constant()) {
            (true, true) => {
                truth(left.constant < right.constant || !strict && left.constant == right.constant)
            }
            // n <= x is n - 1 < x.
            (true, false) if !strict && left.constant == 0 => Literal::True,
            (true, false) => match left.constant - i64::from(!strict) {
                0 => differ(&right, 0),
                n if n == greatest => Literal::False,
                n => Residues::atom(ResidueSum::constant(n, bits), ZeroRelation::Lt, right, bits),
            },
            // x <= n is x < n + 1.
            (false, true) if !strict && right.constant == greatest => Literal::True,
            (false, true) => match right.constant + i64::from(!strict) {
                0 => Literal::False,
                1 => Residues::equation(left, ZeroRelation::Eq, bits),
                n if n == greatest => differ(&left, greatest),
                n => Residues::atom(left, ZeroRelation::Lt, ResidueSum::constant(n, bits), bits),
            },
            (false, false) => Residues::atom(left, relation, right, bits),
        }
    }
    fn atom(left: ResidueSum, relation: ZeroRelation, right: ResidueSum, bits: u32) -> Literal {
        Literal::Atom(Atom::Residues(Box::new(Residues { bits, left, relation, right })))
    }
    /// Builds the comparison of a sum with zero: without a common factor 2, and with the first odd
    /// factor 1.
    fn equation(mut sum: ResidueSum, relation: ZeroRelation, mut bits: u32) -> Literal {
        let equal = relation == ZeroRelation::Eq;
        if sum.is_constant() {
            return truth((sum.constant == 0) == equal);
        }
        while sum.terms.iter().all(|t| t.1 % 2 == 0) {
            if sum.constant % 2 != 0 {
                return truth(!equal);
            }
            bits -= 1;
            let halves = sum.terms.iter().map(|t| (t.0, i128::from(t.1 / 2)));
            sum = ResidueSum::new(halves.collect::<Vec<_>>(), i128::from(sum.constant / 2), bits);
        }
        let odd = sum.terms.iter().find(|t| t.1 % 2 != 0).map_or(1, |t| t.1);
        let sum = sum.times(inverse(odd, bits), bits);
        Residues::atom(sum, relation, ResidueSum::default(), bits)
    }
    /// Returns the negation.
    pub fn negate(&self) -> Literal {
        let (l, r) = (&self.left, &self.right);
        match self.relation {
            ZeroRelation::Eq => Residues::compare(l, ZeroRelation::Ne, r, self.bits),
            ZeroRelation::Ne => Residues::compare(l, ZeroRelation::Eq, r, self.bits),
            ZeroRelation::Lt => Residues::compare(r, ZeroRelation::Le, l, self.bits),
            ZeroRelation::Le => Residues::compare(r, ZeroRelation::Lt, l, self.bits),
        }
    }
    /// Replaces each cell.
    pub fn map(&self, to: &impl Fn(Cell) -> Cell) -> Literal {
        let side = |s: &ResidueSum| s.map(to, self.bits);
        Residues::compare(&side(&self.left), self.relation, &side(&self.right), self.bits)
    }
    /// Substitutes sums for cells; `None` keeps a cell.
    pub fn put(&self, of: &impl Fn(Cell) -> Option<ResidueSum>) -> Literal {
        let side = |s: &ResidueSum| s.put(of, self.bits);
        Residues::compare(&side(&self.left), self.relation, &side(&self.right), self.bits)
    }
    /// Returns the cells that it mentions, possibly with repetitions.
    pub fn cells(&self) -> impl Iterator<Item = Cell> {
        self.left.terms.iter().chain(&self.right.terms).map(|t| t.0)
    }
    /// Evaluates it with values of cells.
    pub fn holds(&self, value: impl Fn(Cell) -> i64) -> bool {
        let m = i128::from(modulus(self.bits));
        let side = |s: &ResidueSum| {
            let sum =
                s.wide().fold(i128::from(s.constant), |n, (c, f)| n + f * i128::from(value(c)));
            sum.rem_euclid(m)
        };
        let (l, r) = (side(&self.left), side(&self.right));
        match self.relation {
            ZeroRelation::Eq => l == r,
            ZeroRelation::Ne => l != r,
            ZeroRelation::Lt => l < r,
            ZeroRelation::Le => l <= r,
        }
    }
    fn sides(&self) -> [&ResidueSum; 2] {
        [&self.left, &self.right]
    }
}

/// Converts a sum with a common divisor to one of words.
///
/// # Errors
///
/// The divisor is not 1: words have no fractions.
pub fn whole(
    terms: &[(Cell, i64)],
    constant: i64,
    scale: i64,
    bits: u32,
) -> Result<ResidueSum, TooLarge> {
    if scale != 1 {
        return Err(TooLarge);
    }
    Ok(ResidueSum::new(terms.iter().map(|t| (t.0, i128::from(t.1))), constant.into(), bits))
}

/// Returns the number of bits of a cell that comparisons depend on.
fn width(rows: &[Residues], cell: Cell) -> u32 {
    rows.iter().filter(|r| r.cells().any(|c| c == cell)).map(|r| r.bits).max().unwrap_or(0)
}

/// Substitutes a sum for a cell. Returns false on a contradiction.
fn substitute(rows: &mut Vec<Residues>, cell: Cell, sum: &ResidueSum) -> bool {
    let mut found: Vec<Residues> = Vec::with_capacity(rows.len());
    for row in rows.drain(..) {
        if row.cells().all(|c| c != cell) {
            found.push(row);
            continue;
        }
        match row.put(&|c| (c == cell).then(|| sum.clone())) {
            Literal::True => {}
            Literal::Atom(Atom::Residues(r)) => {
                if !found.contains(&r) {
                    found.push(*r);
                }
            }
            _ => return false,
        }
    }
    *rows = found;
    true
}

/// Solves equations for cells with odd factors. Returns false on a contradiction.
fn solve(rows: &mut Vec<Residues>) -> bool {
    loop {
        let solvable = |row: &Residues| {
            let odd = |t: &&(Cell, i64)| t.1 % 2 != 0 && width(rows, t.0) == row.bits;
            (row.relation == ZeroRelation::Eq)
                .then(|| row.left.terms.iter().find(odd).copied())
                .flatten()
        };
        let Some((at, (cell, factor))) =
            rows.iter().enumerate().find_map(|(i, r)| Some((i, solvable(r)?)))
        else {
            return true;
        };
        let row = rows.swap_remove(at);
        let rest: Vec<(Cell, i128)> = row.left.wide().filter(|t| t.0 != cell).collect();
        let sum = ResidueSum::new(rest, row.left.constant.into(), row.bits)
            .times(-inverse(factor, row.bits), row.bits);
        if !substitute(rows, cell, &sum) {
            return false;
        }
    }
}

/// Returns the distinct sums without constants, with the numbers of bits.
fn sums(rows: &[Residues]) -> Vec<(u32, Vec<(Cell, i64)>)> {
    let mut found: Vec<(u32, Vec<(Cell, i64)>)> = rows
        .iter()
        .flat_map(|r| r.sides().map(|s| (r.bits, s.terms.clone())))
        .filter(|s| !s.1.is_empty())
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns a measure of the sums that are no cells.
fn complexity(rows: &[Residues]) -> usize {
    let of = |s: &(u32, Vec<(Cell, i64)>)| match s.1.as_slice() {
        [(_, 1)] => 0,
        terms => 2 * terms.len() - 1,
    };
    sums(rows).iter().map(of).sum()
}

/// Replaces cells by sums that occur, as long as fewer sums remain. Returns false on a
/// contradiction.
fn translate(rows: &mut Vec<Residues>) -> bool {
    'next: loop {
        let before = complexity(rows);
        for (bits, terms) in sums(rows) {
            for &(cell, factor) in &terms {
                if factor.abs() != 1 || terms.len() == 1 && factor == 1 || width(rows, cell) != bits
                {
                    continue;
                }
                // The new meaning of the cell is the sum.
                let list = terms.iter().map(|t| if t.0 == cell { (cell, -1) } else { *t });
                let sum = ResidueSum::new(list.map(|t| (t.0, i128::from(t.1))), 0, bits)
                    .times(-factor, bits);
                let mut changed = rows.clone();
                if !substitute(&mut changed, cell, &sum) {
                    return false;
                }
                if complexity(&changed) < before {
                    *rows = changed;
                    continue 'next;
                }
            }
        }
        return true;
    }
}

/// The arithmetic of remainders.
struct Encoding {
    simplex: Simplex,
    /// The variables of cells, with their widths.
    cells: Vec<(Cell, usize, u32)>,
    /// The quotients of sums.
    quotients: Vec<((u32, ResidueSum), usize)>,
}

impl Encoding {
    /// True if the remainder of a side is a cell or a constant.
    fn is_simple(&self, bits: u32, side: &ResidueSum) -> bool {
        side.is_constant()
            || side.constant == 0
                && matches!(side.terms.as_slice(), [(c, 1)]
                    if self.cells.iter().any(|x| x.0 == *c && x.2 == bits))
    }
    /// Returns the row of a cell in the table of cells.
    fn cell(&self, cell: Cell) -> &(Cell, usize, u32) {
        self.cells.iter().find(|c| c.0 == cell).expect("the table has all cells of the rows")
    }
    fn variable(&self, cell: Cell) -> usize {
        self.cell(cell).1
    }
    /// Returns the remainder of a side as a sum of variables.
    fn remainder(&self, bits: u32, side: &ResidueSum) -> (Vec<(usize, i64)>, i64) {
        let mut terms: Vec<(usize, i64)> =
            side.terms.iter().map(|t| (self.variable(t.0), t.1)).collect();
        if !self.is_simple(bits, side)
            && let Some((_, q)) = self.quotients.iter().find(|q| q.0.0 == bits && q.0.1 == *side)
        {
            terms.push((*q, -modulus(bits)));
        }
        (terms, side.constant)
    }
    fn at_most(&mut self, terms: Vec<(usize, i64)>, constant: i64) {
        self.simplex.assert(&Constraint { terms, constant, relation: ZeroRelation::Le });
    }
    /// Bounds a sum of variables from both sides.
    fn between(&mut self, terms: &[(usize, i64)], constant: i64, low: i64, high: i64) {
        self.at_most(terms.to_vec(), constant - high);
        self.at_most(terms.iter().map(|t| (t.0, -t.1)).collect(), low - constant);
    }
    fn of(rows: &[Residues]) -> Encoding {
        let mut encoding =
            Encoding { simplex: Simplex::default(), cells: Vec::new(), quotients: Vec::new() };
        let mut cells: Vec<Cell> = rows.iter().flat_map(|r| r.cells()).collect();
        cells.sort_unstable();
        cells.dedup();
        encoding.cells = cells.iter().map(|c| (*c, 0, width(rows, *c))).collect();
        // Quotients come first, so that branch and bound splits them before cells.
        for row in rows {
            for side in row.sides() {
                let known = encoding.quotients.iter().any(|q| q.0.0 == row.bits && q.0.1 == *side);
                if !known && !encoding.is_simple(row.bits, side) {
                    let q = encoding.simplex.variable(true);
                    encoding.quotients.push(((row.bits, side.clone()), q));
                }
            }
        }
        for i in 0..encoding.cells.len() {
            let (_, _, bits) = encoding.cells[i];
            let variable = encoding.simplex.variable(true);
            encoding.cells[i].1 = variable;
            encoding.between(&[(variable, 1)], 0, 0, modulus(bits) - 1);
        }
        for ((bits, side), q) in encoding.quotients.clone() {
            let (terms, constant) = encoding.remainder(bits, &side);
            encoding.between(&terms, constant, 0, modulus(bits) - 1);
            let (low, high) = encoding.range(&side);
            let m = i128::from(modulus(bits));
            let (low, high) = (low.div_euclid(m) as i64, high.div_euclid(m) as i64);
            encoding.between(&[(q, 1)], 0, low, high);
        }
        for row in rows {
            let (left, c) = encoding.remainder(row.bits, &row.left);
            let (right, d) = encoding.remainder(row.bits, &row.right);
            encoding.add(row.relation, (left, c), (right, d));
        }
        encoding
    }
    /// Returns the least and the greatest value of a sum of cells.
    fn range(&self, side: &ResidueSum) -> (i128, i128) {
        let mut ends = (i128::from(side.constant), i128::from(side.constant));
        for (cell, factor) in side.wide() {
            let bits = self.cell(cell).2;
            let most = factor * i128::from(modulus(bits) - 1);
            if factor > 0 { ends.1 += most } else { ends.0 += most }
        }
        ends
    }
    fn add(
        &mut self,
        relation: ZeroRelation,
        (left, c): (Vec<(usize, i64)>, i64),
        (right, d): (Vec<(usize, i64)>, i64),
    ) {
        let mut terms = left;
        for (v, f) in right {
            match terms.iter_mut().find(|t| t.0 == v) {
                Some(t) => t.1 -= f,
                None => terms.push((v, -f)),
            }
        }
        terms.retain(|t| t.1 != 0);
        let constant = c - d;
        // The right side of a disequality is zero, and remainders are not negative.
        let (terms, constant, relation) = match relation {
            ZeroRelation::Ne => {
                (terms.iter().map(|t| (t.0, -t.1)).collect(), 1 - constant, ZeroRelation::Le)
            }
            ZeroRelation::Lt => (terms, constant + 1, ZeroRelation::Le),
            other => (terms, constant, other),
        };
        self.simplex.assert(&Constraint { terms, constant, relation });
    }
}

/// Decides a conjunction; `budget` limits the case splits.
pub fn satisfiable(rows: &[Residues], budget: u32) -> SimplexAnswer {
    let mut rows = rows.to_vec();
    if !solve(&mut rows) {
        return SimplexAnswer::Unsatisfiable;
    }
    // A disequality with an odd factor fails for one of 2^bits values of a cell.
    let few = |r: &Residues| {
        r.relation == ZeroRelation::Ne
            && r.left.terms.iter().any(|t| t.1 % 2 != 0)
            && (rows.len() as i64) < modulus(r.bits)
    };
    if rows.iter().all(few) {
        return SimplexAnswer::Satisfiable;
    }
    if !translate(&mut rows) {
        return SimplexAnswer::Unsatisfiable;
    }
    Encoding::of(&rows).simplex.check(&mut { budget })
}

/// True if the comparison mentions a cell that no row does, so that no row decides it.
pub fn is_open(rows: &[Residues], atom: &Residues) -> bool {
    atom.cells()
        .any(|cell| rows.iter().all(|r| r.left.factor(cell) == 0 && r.right.factor(cell) == 0))
}
