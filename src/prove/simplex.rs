//! Linear arithmetic over integers and reals: conjunctions of `c1*x1 + .. + cn*xn + c ⋈ 0` with ⋈
//! among ≤, <, =, ≠. Incremental: constraints are pushed and popped.
//!
//! The general simplex of Dutertre and de Moura ("A fast linear-arithmetic solver for DPLL(T)",
//! 2006): a form of several variables gets a slack variable, a constraint is a bound of one
//! variable, strict bounds have an infinitesimal part, and a conflict is a row with a basic
//! variable that cannot move. Constraints over integers are first divided by the common divisor of
//! their factors and rounded, and strict ones made non-strict. Integrality is then decided by
//! branch and bound, and disequalities by case splits, both with a budget. Rationals are exact; on
//! overflow or an exhausted budget the answer is [`SimplexAnswer::Unknown`]: *unsatisfiable* is
//! always correct.
//!
//! Cost: a pivot is quadratic in the variables and forms of the conjunction, about ten of each in
//! practice.

use super::rational::{DeltaRational, Overflow, Rational};
use std::cmp::Ordering;

/// The answer of a decision procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimplexAnswer {
    /// It has a solution.
    Satisfiable,
    /// It has none.
    Unsatisfiable,
    /// The budget was exhausted, or a number overflowed.
    Unknown,
}

/// The comparison of a sum with zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ZeroRelation {
    /// At most zero.
    Le,
    /// Less than zero.
    Lt,
    /// Zero.
    Eq,
    /// Not zero.
    Ne,
}

/// A constraint: the sum of `factor * variable`, and `constant`, compared with zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Variables (from [`Simplex::variable`]) with their factors; each variable once, no factor
    /// zero.
    pub terms: Vec<(usize, i64)>,
    /// The constant part.
    pub constant: i64,
    /// The comparison with zero.
    pub relation: ZeroRelation,
}

#[derive(Clone, Copy, Default)]
struct Bounds {
    lower: Option<DeltaRational>,
    upper: Option<DeltaRational>,
}

#[derive(Clone)]
enum Undo {
    Bounds(usize, Bounds),
    Disequality,
}

/// The solver, with a stack of constraints.
#[derive(Clone, Default)]
pub struct Simplex {
    integer: Vec<bool>,
    bounds: Vec<Bounds>,
    value: Vec<DeltaRational>,
    /// The row of each basic variable.
    row_of: Vec<Option<usize>>,
    /// Rows: the basic variable and its sum over the other variables.
    rows: Vec<(usize, Vec<Rational>)>,
    forms: Vec<(Vec<(usize, i64)>, usize)>,
    disequalities: Vec<(usize, Rational)>,
    undo: Vec<Undo>,
    marks: Vec<(usize, bool)>,
    contradiction: bool,
    overflow: bool,
}

impl Simplex {
    /// Creates a variable.
    pub fn variable(&mut self, integer: bool) -> usize {
        self.integer.push(integer);
        self.bounds.push(Bounds::default());
        self.value.push(DeltaRational::ZERO);
        self.row_of.push(None);
        for (_, row) in &mut self.rows {
            row.push(Rational::ZERO);
        }
        self.integer.len() - 1
    }
    /// Opens a level.
    pub fn push(&mut self) {
        self.marks.push((self.undo.len(), self.contradiction));
    }
    /// Retracts the assertions since the last [`push`](Self::push).
    pub fn pop(&mut self) {
        let Some((mark, contradiction)) = self.marks.pop() else { return };
        while self.undo.len() > mark {
            match self.undo.pop() {
                Some(Undo::Bounds(v, old)) => self.bounds[v] = old,
                Some(Undo::Disequality) => {
                    self.disequalities.pop();
                }
                None => break,
            }
        }
        self.contradiction = contradiction;
    }
    /// Adds a constraint.
    pub fn assert(&mut self, constraint: &Constraint) {
        if self.add(constraint).is_err() {
            self.overflow = true;
        }
    }
    fn add(&mut self, constraint: &Constraint) -> Result<(), Overflow> {
        let Constraint { terms, constant, relation } = constraint;
        if terms.is_empty() {
            let holds = match relation {
                ZeroRelation::Le => *constant <= 0,
                ZeroRelation::Lt => *constant < 0,
                ZeroRelation::Eq => *constant == 0,
                ZeroRelation::Ne => *constant != 0,
            };
            self.contradiction |= !holds;
            return Ok(());
        }
        // Normal form of x - y and 2y - 2x: divided by the common divisor, first factor positive.
        let divisor = terms.iter().fold(0u64, |g, (_, c)| num_integer::gcd(g, c.unsigned_abs()));
        let sign = if terms[0].1 < 0 { -1 } else { 1 };
        let divisor = i64::try_from(divisor).map_err(|_| Overflow)? * sign;
        let form: Vec<(usize, i64)> = terms.iter().map(|&(v, c)| (v, c / divisor)).collect();
        let integer = form.iter().all(|&(v, _)| self.integer[v]);
        let bound = Rational::new(-i128::from(*constant), i128::from(divisor))?;
        let variable = self.form(form, integer)?;
        let (below, above) = match relation {
            ZeroRelation::Ne => {
                if !integer || bound.is_integer() {
                    self.disequalities.push((variable, bound));
                    self.undo.push(Undo::Disequality);
                }
                return Ok(());
            }
            ZeroRelation::Eq => (true, true),
            _ => (sign > 0, sign < 0),
        };
        let strict = *relation == ZeroRelation::Lt;
        if below {
            let upper = if integer {
                let floor = bound.floor();
                DeltaRational::exact(Rational::integer(if strict && bound.is_integer() {
                    floor - 1
                } else {
                    floor
                }))
            } else {
                DeltaRational {
                    real: bound,
                    small: if strict { Rational::MINUS_ONE } else { Rational::ZERO },
                }
            };
            self.set_upper(variable, upper)?;
        }
        if above {
            let lower = if integer {
                let floor = bound.floor();
                DeltaRational::exact(Rational::integer(if bound.is_integer() && !strict {
                    floor
                } else {
                    floor + 1
                }))
            } else {
                DeltaRational {
                    real: bound,
                    small: if strict { Rational::ONE } else { Rational::ZERO },
                }
            };
            self.set_lower(variable, lower)?;
        }
        Ok(())
    }
    /// Returns the variable that represents a sum.
    fn form(&mut self, form: Vec<(usize, i64)>, integer: bool) -> Result<usize, Overflow> {
        if let [(v, 1)] = form.as_slice() {
            return Ok(*v);
        }
        if let Some((_, v)) = self.forms.iter().find(|(f, _)| *f == form) {
            return Ok(*v);
        }
        let slack = self.variable(integer);
        let mut row = vec![Rational::ZERO; self.integer.len()];
        let mut value = DeltaRational::ZERO;
        for &(v, c) in &form {
            let c = Rational::integer(i128::from(c));
            value = value.add(self.value[v].scale(c)?)?;
            match self.row_of[v] {
                Some(r) => {
                    for (to, from) in row.iter_mut().zip(&self.rows[r].1) {
                        *to = to.add(from.mul(c)?)?;
                    }
                }
                None => row[v] = row[v].add(c)?,
            }
        }
        self.value[slack] = value;
        self.row_of[slack] = Some(self.rows.len());
        self.rows.push((slack, row));
        self.forms.push((form, slack));
        Ok(slack)
    }
    fn set_upper(&mut self, v: usize, upper: DeltaRational) -> Result<(), Overflow> {
        let old = self.bounds[v];
        if let Some(u) = old.upper
            && u.compare(upper)? != Ordering::Greater
        {
            return Ok(());
        }
        if let Some(l) = old.lower
            && l.compare(upper)? == Ordering::Greater
        {
            self.contradiction = true;
        }
        self.undo.push(Undo::Bounds(v, old));
        self.bounds[v].upper = Some(upper);
        if self.row_of[v].is_none() && self.value[v].compare(upper)? == Ordering::Greater {
            self.update(v, upper)?;
        }
        Ok(())
    }
    fn set_lower(&mut self, v: usize, lower: DeltaRational) -> Result<(), Overflow> {
        let old = self.bounds[v];
        if let Some(l) = old.lower
            && l.compare(lower)? != Ordering::Less
        {
            return Ok(());
        }
        if let Some(u) = old.upper
            && u.compare(lower)? == Ordering::Less
        {
            self.contradiction = true;
        }
        self.undo.push(Undo::Bounds(v, old));
        self.bounds[v].lower = Some(lower);
        if self.row_of[v].is_none() && self.value[v].compare(lower)? == Ordering::Less {
            self.update(v, lower)?;
        }
        Ok(())
    }
    /// Moves a non-basic variable.
    fn update(&mut self, v: usize, to: DeltaRational) -> Result<(), Overflow> {
        let by = to.sub(self.value[v])?;
        for (basic, row) in &self.rows {
            if !row[v].is_zero() {
                self.value[*basic] = self.value[*basic].add(by.scale(row[v])?)?;
            }
        }
        self.value[v] = to;
        Ok(())
    }
    /// Decides the conjunction; `budget` limits the case splits.
    pub fn check(&mut self, budget: &mut u32) -> SimplexAnswer {
        if self.contradiction {
            return SimplexAnswer::Unsatisfiable;
        }
        if self.overflow {
            return SimplexAnswer::Unknown;
        }
        match self.decide(budget) {
            Ok(answer) => answer,
            Err(Overflow) => {
                // Values may be inconsistent, so later answers would be unsound.
                self.overflow = true;
                SimplexAnswer::Unknown
            }
        }
    }
    fn decide(&mut self, budget: &mut u32) -> Result<SimplexAnswer, Overflow> {
        if self.contradiction || !self.feasible()? {
            return Ok(SimplexAnswer::Unsatisfiable);
        }
        let fraction =
            (0..self.integer.len()).find(|&v| self.integer[v] && !self.value[v].real.is_integer());
        let split = match fraction {
            Some(v) => {
                let floor = self.value[v].real.floor();
                Some((v, Rational::integer(floor), Rational::integer(floor + 1), false))
            }
            None => self
                .disequalities
                .iter()
                .find(|&&(v, n)| self.value[v] == DeltaRational::exact(n))
                .map(|&(v, n)| (v, n, n, true)),
        };
        let Some((v, below, above, strict)) = split else { return Ok(SimplexAnswer::Satisfiable) };
        if *budget == 0 {
            return Ok(SimplexAnswer::Unknown);
        }
        *budget -= 1;
        let strict = strict && !self.integer[v];
        let step = |n: Rational, by: Rational| {
            if fraction.is_none() && !strict { n.add(by) } else { Ok(n) }
        };
        let small = |n: Rational| if strict { n } else { Rational::ZERO };
        let upper = DeltaRational {
            real: step(below, Rational::MINUS_ONE)?,
            small: small(Rational::MINUS_ONE),
        };
        let lower =
            DeltaRational { real: step(above, Rational::ONE)?, small: small(Rational::ONE) };
        let mut answer = SimplexAnswer::Unsatisfiable;
        for side in [true, false] {
            self.push();
            if side {
                self.set_upper(v, upper)?
            } else {
                self.set_lower(v, lower)?
            };
            let found = self.decide(budget)?;
            self.pop();
            match found {
                SimplexAnswer::Satisfiable => return Ok(found),
                SimplexAnswer::Unknown => answer = found,
                SimplexAnswer::Unsatisfiable => {}
            }
        }
        Ok(answer)
    }
    /// Returns the value of a variable in the solution that [`check`](Self::check) found last.
    pub fn value(&self, variable: usize) -> DeltaRational {
        self.value[variable]
    }
    /// True if the bounds have a common solution over the rationals, which is then computed.
    /// Terminates by Bland's rule.
    fn feasible(&mut self) -> Result<bool, Overflow> {
        for v in 0..self.value.len() {
            // A retracted and changed bound may leave a variable outside its bounds: move it inside
            // first.
            if self.row_of[v].is_some() {
                continue;
            }
            let Bounds { lower, upper } = self.bounds[v];
            if let Some(l) = lower
                && self.value[v].compare(l)? == Ordering::Less
            {
                self.update(v, l)?;
            } else if let Some(u) = upper
                && self.value[v].compare(u)? == Ordering::Greater
            {
                self.update(v, u)?;
            }
        }
        loop {
            let mut broken: Option<(usize, bool, DeltaRational)> = None;
            for (basic, _) in &self.rows {
                if broken.is_some_and(|(b, ..)| b < *basic) {
                    continue;
                }
                let Bounds { lower, upper } = self.bounds[*basic];
                if let Some(l) = lower
                    && self.value[*basic].compare(l)? == Ordering::Less
                {
                    broken = Some((*basic, true, l));
                } else if let Some(u) = upper
                    && self.value[*basic].compare(u)? == Ordering::Greater
                {
                    broken = Some((*basic, false, u));
                }
            }
            let Some((basic, rise, target)) = broken else { return Ok(true) };
            let Some(row) = self.row_of[basic] else { return Ok(true) };
            let mut entering = None;
            for v in 0..self.value.len() {
                let factor = self.rows[row].1[v];
                if factor.is_zero() {
                    continue;
                }
                let up = factor.is_positive() == rise;
                let free = match if up { self.bounds[v].upper } else { self.bounds[v].lower } {
                    None => true,
                    Some(b) => self.value[v].compare(b)? != Ordering::Equal,
                };
                if free {
                    entering = Some(v);
                    break;
                }
            }
            let Some(v) = entering else { return Ok(false) };
            let factor = self.rows[row].1[v];
            let by = target.sub(self.value[basic])?.scale(Rational::ONE.div(factor)?)?;
            let to = self.value[v].add(by)?;
            self.update(v, to)?;
            self.pivot(row, v)?;
        }
    }
    /// Exchanges the basic variable of the row with `v`.
    fn pivot(&mut self, row: usize, v: usize) -> Result<(), Overflow> {
        let basic = self.rows[row].0;
        let factor = self.rows[row].1[v];
        let scale = Rational::ONE.div(factor)?;
        let mut solved = Vec::with_capacity(self.rows[row].1.len());
        for (w, c) in self.rows[row].1.iter().enumerate() {
            solved.push(if w == v { Rational::ZERO } else { c.mul(scale)?.negate()? });
        }
        solved[basic] = scale;
        for (r, (_, other)) in self.rows.iter_mut().enumerate() {
            let c = other[v];
            if r == row || c.is_zero() {
                continue;
            }
            other[v] = Rational::ZERO;
            for (to, from) in other.iter_mut().zip(&solved) {
                if !from.is_zero() {
                    *to = to.add(from.mul(c)?)?;
                }
            }
        }
        self.rows[row] = (v, solved);
        self.row_of[v] = Some(row);
        self.row_of[basic] = None;
        Ok(())
    }
}
