//! Values in which each number without a value is known by its cell: on which side of each cut it
//! is.
//!
//! A cut is a base (zero, a parameter without a value, a value that the formula quantifies over)
//! plus a literal. The bases are constants of a run. A number is exact at places that have few
//! values; the relation of two numbers in cells is forgotten. In: normal forms of the rewriter in a
//! case. Out: numbered values ([`Table`]), and their constraints. Invariant: the values
//! that an abstract value stands for include the given one in every solution of the case. Cost: a
//! decision for each number and cut.

use super::evaluate::{Evaluator, fails};
use super::identities::CaseIdentities;
use super::merged::{array, is_over};
use super::numbers::Constraint;
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_base::Span;
use mu_base::ids::{SortId, VarId};
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::{Builtin, OpKind};
use mu_data::sort::{SortKind, basic};
use std::rc::Rc;

/// Limit on cuts.
const MAX_CUTS: usize = 24;
/// Limit on the values of a number that are distinguished at one place.
const MAX_EXACT: usize = 4;

/// An identity, or a constant of a sort of any size, that is not tracked. The unknown part of an
/// array.
pub(super) const OTHER: u64 = 0;
/// One or more untracked identities in a row, in a list.
pub(super) const SOME: u64 = 1;
/// Any number of untracked identities in a row, in a list.
pub(super) const ANY: u64 = 2;

/// A number in a value: its sort, and on which side of each cut it is. Or another sort, and one of
/// the constants above.
pub(super) type Cell = (SortId, u64);

/// An abstract value: a term in which variables of the pool stand for the cells, after those for
/// the bases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Abstract {
    pub e: Expr,
    pub cells: Vec<Cell>,
}

/// Numbered abstract values.
#[derive(Debug, Default)]
pub(super) struct Table {
    known: AHashMap<Abstract, u32>,
    pub all: Vec<Abstract>,
    /// For each value whether it has no numbers or identities without a value.
    pub closed: Vec<bool>,
}

impl Table {
    /// Returns the number of a value, and true if it is new.
    pub fn id(&mut self, value: Abstract) -> (u32, bool) {
        if let Some(id) = self.known.get(&value) {
            return (*id, false);
        }
        let id = self.all.len() as u32;
        self.known.insert(value.clone(), id);
        self.closed.push(value.e.is_closed());
        self.all.push(value);
        (id, true)
    }
}

/// The bases and cuts of an abstraction, and the places with exact numbers.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// Sort of each base after zero.
    pub bases: Vec<SortId>,
    /// Cuts: `x - base <= c`.
    pub all: Vec<(usize, i64)>,
    /// Literals at exact places.
    seen: AHashMap<u64, AHashSet<i64>>,
    /// Places with numbers in cells.
    vague: AHashSet<u64>,
    /// Places with numbers that are exact whatever their count.
    pub fixed: AHashSet<u64>,
    /// True if a place has become vague since the last exploration began.
    pub changed: bool,
    /// The identities of the case, if there are components of any number.
    pub crowd: Option<Rc<CaseIdentities>>,
    /// The identity of the component that the next value belongs to, if it is not tracked.
    pub own: Option<usize>,
    /// True if the next value may be a list of identities.
    pub words: bool,
}

/// Returns the place inside another one.
fn inside(place: u64, a: u64, b: u64) -> u64 {
    (place ^ a.rotate_left(17) ^ b.rotate_left(40).wrapping_add(0x51))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(23)
}

impl Cuts {
    /// Adds a cut. True if it is new.
    ///
    /// # Errors
    ///
    /// Too many cuts.
    pub fn add(&mut self, cut: (usize, i64)) -> Result<bool, Diagnostic> {
        if self.all.contains(&cut) {
            return Ok(false);
        }
        if self.all.len() >= MAX_CUTS {
            return Err(fails(format!("numbers are compared with more than {MAX_CUTS} others")));
        }
        self.all.push(cut);
        Ok(true)
    }

    /// Returns the number of places with numbers in cells.
    pub fn vague(&self) -> usize {
        self.vague.len()
    }

    /// Returns the variable of a base.
    pub fn base(&self, by: &Evaluator, base: usize) -> Result<Expr, Diagnostic> {
        let sort = self.bases[base - 1];
        let var = by.pool.get(&sort).and_then(|all| all.get(base - 1)).copied();
        let var = var.ok_or_else(|| fails("too many numbers"))?;
        Ok(Expr::new(ExprKind::Var(var), sort, Span::default()))
    }

    /// Returns the variables of the bases.
    pub fn base_vars(&self, by: &Evaluator) -> Vec<VarId> {
        let own = self.bases.iter().enumerate();
        own.filter_map(|(i, sort)| by.pool.get(sort)?.get(i).copied()).collect()
    }

    /// Returns an abstract value of a normal form in the current case. A value in a cell is on a
    /// known side of each cut afterwards.
    pub fn lift(
        &mut self,
        by: &mut Evaluator,
        e: &Expr,
        place: u64,
    ) -> Result<Abstract, Diagnostic> {
        let mut cells = Vec::new();
        let e = self.part(by, e, (place, place), &mut cells)?;
        Ok(Abstract { e, cells })
    }

    fn part(
        &mut self,
        by: &mut Evaluator,
        e: &Expr,
        (root, place): (u64, u64),
        cells: &mut Vec<Cell>,
    ) -> Result<Expr, Diagnostic> {
        if [basic::POS, basic::NAT, basic::INT].contains(&e.sort) {
            return self.number(by, e, place, cells);
        }
        if let Some(crowd) = &self.crowd {
            if e.sort == crowd.sort {
                return self.identity(by, crowd, e, cells);
            }
            if crowd.list.is_some_and(|l| l.0 == e.sort) {
                return self.word(by, crowd, e, cells);
            }
        }
        if let Some(found) = self.constant(by, e, cells) {
            return found;
        }
        if let Some(found) = self.array(by, e, (root, place), cells) {
            return found;
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
            ExprKind::Op(_) => Ok(e.clone()),
            ExprKind::Apply(head, args) => {
                let ExprKind::Op(op) = head.kind else { return self.closed_term(by, e) };
                let known = by.naive.signature().op_count() > op.index();
                let kind = if known { &by.naive.signature().op(op).kind } else { &OpKind::Mapping };
                let element = inside(place, 1, 1);
                let (at, kept): (Vec<(u64, u64)>, usize) = match kind {
                    OpKind::Constructor(_) => {
                        let of = |i: usize| inside(root, u64::from(op.number()) + 2, i as u64);
                        ((0..args.len()).map(|i| (root, of(i))).collect(), usize::MAX)
                    }
                    OpKind::Builtin(Builtin::Cons | Builtin::SetInsert) => {
                        (vec![(root, element), (root, place)], usize::MAX)
                    }
                    OpKind::Builtin(Builtin::BagInsert) => {
                        (vec![(root, element), (root, place), (root, place)], 1)
                    }
                    OpKind::Builtin(Builtin::Update) => {
                        return self.table(by, e, (root, place), cells);
                    }
                    _ => return self.closed_term(by, e),
                };
                let mut new = Vec::with_capacity(args.len());
                for (i, (a, at)) in args.iter().zip(at).enumerate() {
                    new.push(if i == kept {
                        self.closed_term(by, a)?
                    } else {
                        self.part(by, a, at, cells)?
                    });
                }
                Ok(Expr::new(ExprKind::Apply(head.clone(), new), e.sort, e.span))
            }
            _ => self.closed_term(by, e),
        })
    }

    /// Lifts updates of a function at constants: the last one of each, in a fixed order.
    fn table(
        &mut self,
        by: &mut Evaluator,
        e: &Expr,
        (root, place): (u64, u64),
        cells: &mut Vec<Cell>,
    ) -> Result<Expr, Diagnostic> {
        let signature = by.signature.clone();
        let signature = &*signature;
        let (mut at, mut own): (&Expr, Vec<(String, &Expr)>) = (e, Vec::new());
        let mut head = None;
        while let Some((Builtin::Update, [f, k, v])) = at.as_builtin(signature) {
            if !k.is_closed() || !by.is_plain(k) || self.is_untracked(by, k) {
                return self.closed_term(by, e);
            }
            let name = mu_data::print::expression(signature, k);
            if !own.iter().any(|o| o.0 == name) {
                own.push((name, v));
            }
            let ExprKind::Apply(op, _) = &at.kind else { break };
            head.get_or_insert((op.clone(), Vec::new())).1.push(k.clone());
            at = f;
        }
        let mut out = self.closed_term(by, at)?;
        let Some((op, keys)) = head else { return Ok(out) };
        own.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, v) in own {
            let key = keys.iter().find(|k| mu_data::print::expression(signature, k) == name);
            let key = key.ok_or_else(|| fails("a key is lost"))?.clone();
            let v = self.part(by, v, (root, inside(place, 2, 2)), cells)?;
            out = Expr::new(ExprKind::Apply(op.clone(), vec![out, key, v]), e.sort, e.span);
        }
        Ok(out)
    }

    /// Lifts a constant of a sort of any size; `None` for other sorts.
    fn constant(
        &self,
        by: &Evaluator,
        e: &Expr,
        cells: &mut Vec<Cell>,
    ) -> Option<Result<Expr, Diagnostic>> {
        let merged = by.numbers.merged.borrow();
        let own = merged.iter().find(|m| m.sort == e.sort)?;
        Some(match own.position(e) {
            None => self.closed_term(by, e),
            Some(i) if i < own.tracked => Ok(e.clone()),
            Some(_) => self.variable(by, e.sort, cells),
        })
    }

    /// Adds a variable of a sort that stands for any value that has no other representation.
    fn variable(
        &self,
        by: &Evaluator,
        sort: SortId,
        cells: &mut Vec<Cell>,
    ) -> Result<Expr, Diagnostic> {
        let all = by.pool.get(&sort);
        let var = all.and_then(|all| all.get(self.bases.len() + cells.len()));
        let var = *var.ok_or_else(|| fails("too many constants"))?;
        cells.push((sort, OTHER));
        Ok(Expr::new(ExprKind::Var(var), sort, Span::default()))
    }

    /// Lifts an array over a sort of any size: the entries at tracked constants and at those that
    /// are no part of the family. `None` for other sorts.
    fn array(
        &mut self,
        by: &mut Evaluator,
        e: &Expr,
        (root, place): (u64, u64),
        cells: &mut Vec<Cell>,
    ) -> Option<Result<Expr, Diagnostic>> {
        let keys: Vec<Expr> = {
            let merged = by.numbers.merged.borrow();
            if !is_over(&by.signature, &merged, e.sort) {
                return None;
            }
            let Some(at) = array(&by.signature, &merged, e.sort) else {
                let text = format!("`{}` has no abstract value", by.term_text(e));
                return Some(Err(fails(text)));
            };
            let own = &merged[at];
            let tracked = own.constants.iter().take(own.tracked);
            own.others.iter().chain(tracked).map(|op| Expr::op(&by.signature, *op)).collect()
        };
        Some(self.entries(by, e, &keys, (root, place), cells))
    }

    fn entries(
        &mut self,
        by: &mut Evaluator,
        e: &Expr,
        keys: &[Expr],
        (root, place): (u64, u64),
        cells: &mut Vec<Cell>,
    ) -> Result<Expr, Diagnostic> {
        let range = by.signature.domain_range(e.sort).1;
        let mut out = self.variable(by, e.sort, cells)?;
        for key in keys {
            let at = ExprKind::Apply(e.clone(), vec![key.clone()]);
            let entry = by.normal(&Expr::new(at, range, e.span))?;
            let entry = self.part(by, &entry, (root, inside(place, 2, 2)), cells)?;
            out = by.update(out, key.clone(), entry)?;
        }
        Ok(out)
    }

    /// True if a term names an identity, or a constant of a sort of any size, that is not tracked.
    fn is_untracked(&self, by: &Evaluator, e: &Expr) -> bool {
        let mut named = by.numbers.merged.borrow().iter().any(|m| m.is_untracked(e));
        if let Some(crowd) = &self.crowd {
            e.each_op(&mut |op| {
                named |= crowd.index.get(&op).is_some_and(|i| *i >= crowd.tracked);
            });
        }
        named
    }

    /// Returns a term that is its own abstract value.
    fn closed_term(&self, by: &Evaluator, e: &Expr) -> Result<Expr, Diagnostic> {
        if e.is_closed() && !self.is_untracked(by, e) {
            return Ok(e.clone());
        }
        Err(fails(format!("`{}` has no abstract value", by.term_text(e))))
    }

    /// Lifts an identity: a tracked one, the own one, or any other one.
    fn identity(
        &self,
        by: &Evaluator,
        crowd: &CaseIdentities,
        e: &Expr,
        cells: &mut Vec<Cell>,
    ) -> Result<Expr, Diagnostic> {
        let at = e.head().and_then(|op| crowd.index.get(&op)).copied();
        match at {
            // A constant without a meaning.
            None => self.closed_term(by, e),
            Some(i) if i < crowd.tracked => Ok(e.clone()),
            Some(i) if Some(i) == self.own => crowd.constant(&by.signature, crowd.tracked),
            Some(_) => self.untracked_variable(by, crowd, OTHER, cells),
        }
    }

    /// Returns a variable for untracked identities.
    fn untracked_variable(
        &self,
        by: &Evaluator,
        crowd: &CaseIdentities,
        kind: u64,
        cells: &mut Vec<Cell>,
    ) -> Result<Expr, Diagnostic> {
        let all = by.pool.get(&crowd.sort);
        let var = all.and_then(|all| all.get(self.bases.len() + cells.len()));
        let var = *var.ok_or_else(|| fails("too many identities"))?;
        cells.push((crowd.sort, kind));
        Ok(Expr::new(ExprKind::Var(var), crowd.sort, Span::default()))
    }

    /// Lifts a list of identities: untracked ones in a row are one or more of them.
    fn word(
        &self,
        by: &Evaluator,
        crowd: &CaseIdentities,
        e: &Expr,
        cells: &mut Vec<Cell>,
    ) -> Result<Expr, Diagnostic> {
        let (true, Some((_, empty, cons))) = (self.words, crowd.list) else {
            return Err(fails("a list of identities in a label or in the formula"));
        };
        let signature = by.naive.signature();
        let (mut letters, mut at) = (Vec::new(), e);
        let mut untracked = false;
        loop {
            match at.as_builtin(signature) {
                Some((Builtin::EmptyList, _)) => break,
                Some((Builtin::Cons, [letter, rest])) => {
                    let i = letter.head().and_then(|op| crowd.index.get(&op));
                    match i {
                        None => return self.closed_term(by, e),
                        Some(i) if *i < crowd.tracked => {
                            letters.push(letter.clone());
                            untracked = false;
                        }
                        Some(_) if untracked => {}
                        Some(_) => {
                            letters.push(self.untracked_variable(by, crowd, SOME, cells)?);
                            untracked = true;
                        }
                    }
                    at = rest;
                }
                _ => return Err(fails(format!("`{}` is no list of identities", by.term_text(e)))),
            }
        }
        let end = Expr::op(signature, empty);
        let cons = |list, letter| Expr::apply(signature, cons, vec![letter, list]);
        Ok(letters.into_iter().rev().fold(end, cons))
    }

    fn number(
        &mut self,
        by: &Evaluator,
        e: &Expr,
        place: u64,
        cells: &mut Vec<Cell>,
    ) -> Result<Expr, Diagnostic> {
        let Some((mut x, mut c)) = by.numbers.linear(by.naive.signature(), e) else {
            return self.closed_term(by, e);
        };
        if !self.vague.contains(&place)
            && let Some(n) = by.numbers.case.borrow_mut().value(x, MAX_EXACT as i64)
        {
            (x, c) = (0, c.checked_add(n).ok_or_else(|| fails("a number is too large"))?);
        }
        if x == 0 && !self.vague.contains(&place) {
            let seen = self.seen.entry(place).or_default();
            seen.insert(c);
            if seen.len() <= MAX_EXACT || self.fixed.contains(&place) {
                return Ok(Expr::number(c, e.sort));
            }
        }
        // A constant that the formula or the model names.
        if self.fixed.contains(&place) {
            if (1..=self.bases.len()).contains(&x) && c == 0 {
                return self.base(by, x);
            }
            return Err(fails(format!("`{}` is no constant", by.term_text(e))));
        }
        if self.vague.insert(place) {
            self.changed = true;
        }
        let mut mask = 0u64;
        for (i, (base, d)) in self.all.iter().enumerate() {
            let c = d.checked_sub(c).ok_or_else(|| fails("a number is too large"))?;
            let below = by.numbers.case.borrow_mut().at_most(x, *base, c);
            mask |= u64::from(below.ok_or_else(|| fails("a number is too large"))?) << i;
        }
        let sort = match by.signature.sorts.kind(e.sort) {
            SortKind::Pos => basic::POS,
            SortKind::Nat => basic::NAT,
            _ => basic::INT,
        };
        let var = by.pool.get(&sort).and_then(|all| all.get(self.bases.len() + cells.len()));
        let var = *var.ok_or_else(|| fails("too many numbers"))?;
        cells.push((sort, mask));
        Ok(Expr::new(ExprKind::Var(var), sort, Span::default()))
    }

    /// Appends the constraints of a number in a cell.
    pub fn constraints(&self, x: usize, (sort, mask): Cell, out: &mut Vec<Constraint>) {
        out.extend(mu_data::builtins::linear::least(sort).map(|low| (0, x, -low)));
        for (i, (base, c)) in self.all.iter().enumerate() {
            if mask >> i & 1 == 1 {
                out.push((x, *base, *c));
            } else if let Some(c) = c.checked_neg().and_then(|c| c.checked_sub(1)) {
                out.push((*base, x, c));
            }
        }
    }
}
