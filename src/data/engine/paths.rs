//! Evaluation along paths: comparisons of numbers without a value are decided by an oracle, so that
//! an evaluation with such numbers takes the branches of some of their values.
//!
//! In: an engine with a [`PathOracle`], values with *rigid* unknowns ([`Engine::rigid`]). Out:
//! values in which the rigid unknowns occur as sums `x + c`. A comparison of two such sums is the
//! constraint `x - y <= c`; the oracle answers it, remembers the answer, and never contradicts
//! itself. An oracle that returns all consistent combinations of answers, one evaluation after the
//! other, explores all branches (stateless search: Godefroid, "Model checking for programming
//! languages using VeriSoft", POPL 1997; King, "Symbolic execution and program testing", CACM
//! 1976). An operation other than addition of literals, conversion, and comparison is evaluated if
//! the oracle determines its operands, after splits on the values of a small range. Otherwise it
//! stays unevaluated, which [`Engine::numbers`] reports.
//!
//! Invariant: for all values of the rigid unknowns that satisfy the oracle's answers, the result is
//! that of the evaluation with these values. No search chooses a value of a rigid unknown; should
//! that happen, [`Engine::is_broken`] reports it. Cost: that of the evaluation, plus the answers.

use super::code::{Key, Switch};
use super::compile::Program;
use super::machine::EvaluationMachine;
use super::{Engine, Value};
use crate::builtins::linear::{LinearForm, NumberRelation, least};
use crate::builtins::{number, stuck1};
use crate::signature::{Builtin, OpKind};
use crate::sort::{SortKind, basic};
use crate::value::Rich;
use mu_base::diagnostic::Diagnostic;
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::narrow;
use std::cell::RefCell;
use std::fmt::Debug;
use std::rc::Rc;

/// Widest range of an unknown with values that are tried one by one.
const WIDEST: i64 = 64;

/// Source of decisions on differences of rigid unknowns.
pub trait PathOracle: Debug {
    /// Decides `x - y <= c`; `None` stands for zero. The answer is consistent with all earlier
    /// ones.
    fn at_most(&mut self, x: Option<u32>, y: Option<u32>, c: i64) -> bool;
    /// Returns the least and the greatest value of an unknown under the answers so far, as far as
    /// they are bounded.
    fn range(&self, x: u32) -> (Option<i64>, Option<i64>);
    /// Records that an operation on this unknown stays unevaluated.
    fn record_unevaluated(&mut self, x: u32);
}

/// An oracle that the engine and its caller share.
pub type SharedOracle = Rc<RefCell<dyn PathOracle>>;

/// A number in a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberLeaf {
    /// The rigid unknown; `None` for a literal.
    pub base: Option<u32>,
    /// The literal that is added.
    pub offset: i64,
    /// Its sort: Pos, Nat, or Int.
    pub sort: SortId,
    /// Its place: the innermost constructor around it and the position there, or the kind of
    /// collection. Numbers of one place have the same meaning in the text.
    pub place: u64,
}

impl EvaluationMachine {
    /// Returns the linear form of a value over unbound rigid unknowns; `None` for others.
    fn rigid_form(&self, p: &Program, v: &Value) -> Option<LinearForm> {
        let form = LinearForm::of(p, v)?;
        self.is_rigid_form(&form).then_some(form)
    }

    fn is_rigid_form(&self, form: &LinearForm) -> bool {
        let rigid = |v: &Value| matches!(v, Value::Unknown(u) if self.unknowns.is_rigid(*u));
        form.terms.iter().all(|t| rigid(&t.0))
    }

    /// Decides a comparison of numbers by the oracle; `None` if there is no oracle, or if the
    /// comparison is not one of differences of rigid unknowns.
    pub(crate) fn decide(
        &mut self,
        p: &Program,
        relation: NumberRelation,
        a: &Value,
        b: &Value,
    ) -> Option<bool> {
        let oracle = self.paths.clone()?;
        let form = LinearForm::difference(p, a, b)?;
        if !self.is_rigid_form(&form) {
            return None;
        }
        let mut oracle = oracle.borrow_mut();
        let mut c = form.constant;
        let mut terms: Vec<(u32, i64)> = Vec::new();
        for (atom, k) in &form.terms {
            let Value::Unknown(u) = atom else { return None };
            match oracle.range(*u) {
                (Some(low), Some(high)) if low == high => {
                    c = c.checked_add(low.checked_mul(*k)?)?;
                }
                _ => terms.push((*u, *k)),
            }
        }
        // `x - y + c` stands in the relation to zero.
        let (x, y) = match terms[..] {
            [] => {
                return Some(match relation {
                    NumberRelation::Equal => c == 0,
                    NumberRelation::Less => c < 0,
                    NumberRelation::LessEqual => c <= 0,
                });
            }
            [(x, 1), (y, -1)] | [(y, -1), (x, 1)] => (Some(x), Some(y)),
            [(x, k)] if k > 0 => {
                let most = match relation {
                    NumberRelation::Equal if c % k != 0 => return Some(false),
                    NumberRelation::Less => (c.checked_add(1)?).checked_neg()?.div_euclid(k),
                    _ => c.checked_neg()?.div_euclid(k),
                };
                c = most.checked_neg()?;
                if relation == NumberRelation::Less {
                    return Some(oracle.at_most(Some(x), None, most));
                }
                (Some(x), None)
            }
            [(y, k)] if k < 0 => {
                let k = k.checked_neg()?;
                let own = if relation == NumberRelation::Less { c.checked_add(1)? } else { c };
                if relation == NumberRelation::Equal && c % k != 0 {
                    return Some(false);
                }
                // y >= own / k, rounded up
                let from = own.checked_add(k - 1)?.div_euclid(k);
                if relation == NumberRelation::Less {
                    return Some(oracle.at_most(None, Some(y), from.checked_neg()?));
                }
                c = from;
                (None, Some(y))
            }
            _ => {
                terms.iter().for_each(|t| oracle.record_unevaluated(t.0));
                return None;
            }
        };
        let most = c.checked_neg()?;
        Some(match relation {
            NumberRelation::Less => oracle.at_most(x, y, most.checked_sub(1)?),
            NumberRelation::LessEqual => oracle.at_most(x, y, most),
            NumberRelation::Equal => oracle.at_most(x, y, most) && oracle.at_most(y, x, c),
        })
    }

    /// Decides whether a number belongs to a sort of numbers; `None` as for
    /// [`EvaluationMachine::decide`].
    pub(crate) fn decide_sort(&mut self, p: &Program, v: &Value, sort: SortId) -> Option<bool> {
        self.paths.as_ref()?;
        self.rigid_form(p, v)?;
        match least(sort) {
            Some(low) => self.decide(p, NumberRelation::LessEqual, &Value::Int(low), v),
            None => Some(true),
        }
    }

    /// Returns the case of a switch over literals that a number takes, `Some(None)` for none of
    /// them; `None` if that is not decided.
    pub(crate) fn number_case(
        &mut self,
        p: &Program,
        switch: &Switch,
        value: &Value,
    ) -> Option<Option<usize>> {
        self.paths.as_ref()?;
        self.rigid_form(p, value)?;
        for (i, case) in switch.cases.iter().enumerate() {
            let Key::Int(n) = case.key else { return None };
            if self.decide(p, NumberRelation::Equal, value, &Value::Int(n))? {
                return Some(Some(i));
            }
        }
        Some(None)
    }

    /// Returns the number that a value is, after decisions on its unknowns if these have a small
    /// range.
    fn decide_number(&mut self, p: &Program, v: &Value) -> Option<Value> {
        if v.is_number() {
            return Some(v.clone());
        }
        let form = self.rigid_form(p, v)?;
        let oracle = self.paths.clone()?;
        let mut oracle = oracle.borrow_mut();
        let mut sum = form.constant;
        let range = |oracle: &dyn PathOracle, u: u32| match oracle.range(u) {
            (Some(low), Some(high)) if high.checked_sub(low)? <= WIDEST => Some((low, high)),
            _ => None,
        };
        let mut wide = Vec::new();
        for (atom, _) in &form.terms {
            let Value::Unknown(u) = atom else { return None };
            wide.extend(range(&*oracle, *u).is_none().then_some(*u));
        }
        if !wide.is_empty() {
            wide.into_iter().for_each(|u| oracle.record_unevaluated(u));
            return None;
        }
        for (atom, k) in &form.terms {
            let Value::Unknown(u) = atom else { return None };
            let (mut low, mut high) = range(&*oracle, *u)?;
            while low < high {
                if oracle.at_most(Some(*u), None, low) {
                    high = low;
                } else {
                    (low, high) = range(&*oracle, *u)?;
                }
            }
            sum = sum.checked_add(low.checked_mul(*k)?)?;
        }
        Some(Value::Int(sum))
    }

    /// Evaluates a unary operation on a number with rigid unknowns, if that is possible.
    pub(crate) fn unary_on_path(
        &mut self,
        p: &Program,
        builtin: Builtin,
        op: OpId,
        a: &Value,
    ) -> Option<Value> {
        use Builtin::*;
        let of_sort = match builtin {
            NatToPos | IntToPos | RealToPos => basic::POS,
            IntToNat | RealToNat => basic::NAT,
            // The order of the elements is that of the values.
            Pick => return Some(stuck1(op, a.clone())),
            RealToInt | Floor | Ceil | Round => return self.rigid_form(p, a).map(|_| a.clone()),
            Succ | Pred => {
                let mut form = self.rigid_form(p, a)?;
                form.constant = form.constant.checked_add(if builtin == Succ { 1 } else { -1 })?;
                return form.value(p, &|u| self.unknowns.sort(u), usize::MAX, 1);
            }
            Negate => {
                return self.rigid_form(p, a)?.value(p, &|u| self.unknowns.sort(u), usize::MAX, -1);
            }
            Abs => {
                let form = self.rigid_form(p, a)?;
                let positive = self.decide(p, NumberRelation::LessEqual, &Value::Int(0), a)?;
                return if positive {
                    Some(a.clone())
                } else {
                    form.value(p, &|u| self.unknowns.sort(u), usize::MAX, -1)
                };
            }
            Sqrt => return number::unary(builtin, &self.decide_number(p, a)?),
            _ => return None,
        };
        match self.decide_sort(p, a, of_sort)? {
            true => Some(a.clone()),
            false => Some(stuck1(op, a.clone())),
        }
    }

    /// Evaluates a binary operation on numbers with rigid unknowns, or at a position that is one,
    /// if that is possible.
    pub(crate) fn binary_on_path(
        &mut self,
        p: &Program,
        builtin: Builtin,
        a: &Value,
        b: &Value,
    ) -> Option<Value> {
        use Builtin::*;
        match builtin {
            Add | Subtract => {
                let (mut form, other) = (self.rigid_form(p, a)?, self.rigid_form(p, b)?);
                let sign = if builtin == Add { 1 } else { -1 };
                form.constant = form.constant.checked_add(other.constant.checked_mul(sign)?)?;
                for (atom, k) in other.terms {
                    let k = k.checked_mul(sign)?;
                    match form.terms.iter_mut().find(|t| t.0 == atom) {
                        Some(t) => t.1 = t.1.checked_add(k)?,
                        None => form.terms.push((atom, k)),
                    }
                }
                form.terms.retain(|t| t.1 != 0);
                form.value(p, &|u| self.unknowns.sort(u), usize::MAX, 1)
            }
            Multiply | Divide | Div | Mod | Exp => {
                self.rigid_form(p, a)?;
                self.rigid_form(p, b)?;
                let (a, b) = (self.decide_number(p, a)?, self.decide_number(p, b)?);
                number::binary(builtin, &a, &b)
            }
            At => {
                let elements = a.list_elements()?;
                self.rigid_form(p, b)?;
                if b.is_number() {
                    return None;
                }
                for (i, element) in elements.into_iter().enumerate() {
                    if self.decide(p, NumberRelation::Equal, b, &Value::Int(i as i64))? {
                        return Some(element);
                    }
                }
                None
            }
            _ => None,
        }
    }
}

impl Engine {
    /// Sets the oracle of the following evaluations, or none.
    pub fn set_oracle(&mut self, oracle: Option<SharedOracle>) {
        self.machine.paths = oracle;
    }

    /// Creates a rigid unknown of a sort of numbers, with a variable for messages; the numbers of
    /// unknowns count from 0.
    pub fn rigid(&mut self, sort: SortId, var: VarId) -> Value {
        self.machine.unknowns.rigid(sort, var)
    }

    /// Returns an operation applied to values.
    ///
    /// # Errors
    ///
    /// Those of its equations, if it has some.
    pub fn construct(&mut self, op: OpId, args: Vec<Value>) -> Result<Value, Diagnostic> {
        let program = self.program.clone();
        if program.op(op).flags == 0 && !args.is_empty() {
            return Ok(Value::app(op, 0, args));
        }
        self.run(|m| m.apply_op(&program, op, args))
    }

    /// True if a set, bag, or table with two entries or more contains unknowns, so that the order
    /// of its entries is not that of their values.
    pub fn is_unordered(value: &Value) -> bool {
        stacker::maybe_grow(64 << 10, 1 << 20, || match value {
            _ if !value.is_open() => false,
            Value::Cons(_) => {
                let mut at = value;
                while let Value::Cons(cell) = at {
                    if Self::is_unordered(&cell.head) {
                        return true;
                    }
                    at = &cell.tail;
                }
                false
            }
            Value::Rich(node) => match &node.kind {
                Rich::Set(_, all) => all.len() > 1 || all.iter().any(Self::is_unordered),
                Rich::Bag(_, all) => all.len() > 1 || all.iter().any(|e| Self::is_unordered(&e.0)),
                Rich::Table(_, _, all) => {
                    all.len() > 1
                        || all.iter().any(|e| [&e.0, &e.1].into_iter().any(Self::is_unordered))
                }
                _ => false,
            },
            _ => value.as_app().is_some_and(|(_, args)| args.iter().any(Self::is_unordered)),
        })
    }

    /// Removes all unknowns. Values that contain some are meaningless until as many exist again.
    pub fn forget_unknowns(&mut self) {
        self.machine.unknowns = super::unknowns::Unknowns::default();
    }

    /// True if a search has chosen the value of a rigid unknown since the last call: the results
    /// since then hold for this value only.
    pub fn is_broken(&mut self) -> bool {
        self.machine.unknowns.take_broken()
    }

    /// Returns the elements of the sort of numbers that a value is an unevaluated term of, or of a
    /// value with unknowns, for messages.
    pub fn value_text(&self, value: &Value) -> String {
        self.machine.value_text(&self.program, value)
    }

    /// Returns the rigid unknowns in a value.
    pub fn rigid_unknowns(&self, value: &Value) -> Vec<u32> {
        let mut out = Vec::new();
        value.each_unknown(&mut |u| {
            if self.machine.unknowns.is_rigid(u) && !out.contains(&u) {
                out.push(u);
            }
        });
        out
    }

    /// Visits the numbers of Pos, Nat and Int in a value of a sort, in order, and replaces them by
    /// the results of `see`. `root` is the place of the value itself. Numbers in functions are
    /// visited if the function is a table over a closed one; other functions must be closed.
    ///
    /// # Errors
    ///
    /// A part with unknowns that is not a normal form of constructors, numbers, collections and
    /// functions.
    pub fn numbers(
        &self,
        value: &Value,
        sort: SortId,
        root: u64,
        see: &mut dyn FnMut(NumberLeaf) -> Value,
    ) -> Result<Value, Value> {
        let walk = PathWalk { machine: &self.machine, p: &self.program };
        walk.value(value, sort, root, see)
    }
}

struct PathWalk<'a> {
    machine: &'a EvaluationMachine,
    p: &'a Program,
}

/// Kinds of collections, for places.
const ELEMENT: u32 = 0;
const KEY: u32 = 1;
const ENTRY: u32 = 2;

/// Returns the place of an argument of a constructor.
fn inside(root: u64, op: u32, argument: u32) -> u64 {
    let mixed = root ^ (u64::from(op) << 32 | u64::from(argument) << 1 | 1);
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

impl PathWalk<'_> {
    fn value(
        &self,
        v: &Value,
        sort: SortId,
        place: u64,
        see: &mut dyn FnMut(NumberLeaf) -> Value,
    ) -> Result<Value, Value> {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.deep(v, sort, place, place, see))
    }

    /// Visits a value at a place; `root` is the place of the whole value.
    fn deep(
        &self,
        v: &Value,
        sort: SortId,
        root: u64,
        place: u64,
        see: &mut dyn FnMut(NumberLeaf) -> Value,
    ) -> Result<Value, Value> {
        let p = self.p;
        let part =
            |v: &Value, sort: SortId, place: u64, see: &mut dyn FnMut(NumberLeaf) -> Value| {
                stacker::maybe_grow(64 << 10, 1 << 20, || self.deep(v, sort, root, place, see))
            };
        // A closed term without a value is the same for all numbers.
        let stuck = |v: &Value| if v.is_open() { Err(v.clone()) } else { Ok(v.clone()) };
        let element = match p.signature.sorts.kind(sort) {
            SortKind::Pos | SortKind::Nat | SortKind::Int => {
                let Some(form) = self.machine.rigid_form(p, v) else {
                    // A literal outside of machine integers is part of the shape.
                    return stuck(v);
                };
                let base = match form.terms[..] {
                    [] => None,
                    [(Value::Unknown(u), 1)] => Some(u),
                    _ => return stuck(v),
                };
                return Ok(see(NumberLeaf { base, offset: form.constant, sort, place }));
            }
            SortKind::Real => return if v.is_number() { Ok(v.clone()) } else { Err(v.clone()) },
            SortKind::List(e)
            | SortKind::Set(e)
            | SortKind::FSet(e)
            | SortKind::Bag(e)
            | SortKind::FBag(e) => Some(*e),
            _ => None,
        };
        match v {
            Value::Bool(_) | Value::Con(_) | Value::Nil(_) => Ok(v.clone()),
            Value::Sym(op) if self.is_value(*op) => Ok(v.clone()),
            Value::Int(_) | Value::Sym(_) | Value::Unknown(_) => stuck(v),
            Value::Cons(_) => {
                let Some(element) = element else { return stuck(v) };
                let (mut heads, mut at) = (Vec::new(), v);
                while let Value::Cons(cell) = at {
                    heads.push(part(&cell.head, element, inside(place, u32::MAX, ELEMENT), see)?);
                    at = &cell.tail;
                }
                if !matches!(at, Value::Nil(_)) {
                    return stuck(v);
                }
                Ok(crate::builtins::list::rebuild(heads, at.clone()))
            }
            Value::Rich(node) => match (&node.kind, element) {
                (Rich::Set(own, elements), Some(element)) => {
                    let place = inside(place, u32::MAX, ELEMENT);
                    let elements: Result<Vec<Value>, Value> =
                        elements.iter().map(|e| part(e, element, place, see)).collect();
                    Ok(Value::rich(Rich::Set(*own, elements?.into())))
                }
                (Rich::Bag(own, entries), Some(element)) => {
                    let place = inside(place, u32::MAX, ELEMENT);
                    let mut out = Vec::new();
                    for (e, n) in entries.iter() {
                        if n.is_open() {
                            return Err(n.clone());
                        }
                        out.push((part(e, element, place, see)?, n.clone()));
                    }
                    Ok(Value::rich(Rich::Bag(*own, out.into())))
                }
                (Rich::Table(own, base, entries), _) if !base.is_open() => {
                    let (domain, range) = p.signature.domain_range(*own);
                    let [key] = domain else { return stuck(v) };
                    let mut out = Vec::new();
                    for (k, e) in entries.iter() {
                        let k = part(k, *key, inside(place, u32::MAX, KEY), see)?;
                        out.push((k, part(e, range, inside(place, u32::MAX, ENTRY), see)?));
                    }
                    Ok(Value::rich(Rich::Table(*own, base.clone(), out.into())))
                }
                (Rich::Closure(c), _)
                    if !v.is_open()
                        && !matches!(
                            c.lambda.binder,
                            crate::expr::Binder::Forall | crate::expr::Binder::Exists
                        ) =>
                {
                    Ok(v.clone())
                }
                _ => stuck(v),
            },
            Value::App1(_) | Value::App2(_) | Value::App3(_) | Value::AppN(_) => {
                let (op, args) = v.application();
                if !self.is_value(op) || p.op(op).flags != 0 {
                    return stuck(v);
                }
                let domain = p.signature.domain_range(p.signature.op(op).sort).0;
                if domain.len() != args.len() {
                    return stuck(v);
                }
                let mut out = Vec::with_capacity(args.len());
                for (i, (a, s)) in args.iter().zip(domain).enumerate() {
                    out.push(part(a, *s, inside(root, op.number(), narrow::index(i)), see)?);
                }
                Ok(Value::app(op, 0, out))
            }
        }
    }

    /// True if an operation forms values: a constructor, or a function that is not applied.
    fn is_value(&self, op: OpId) -> bool {
        let own = self.p.signature.op(op);
        matches!(own.kind, OpKind::Constructor(_))
            || matches!(self.p.signature.sorts.kind(own.sort), SortKind::Function(..))
    }
}

#[cfg(test)]
#[path = "tests/paths.rs"]
mod tests;
