//! Linear arithmetic over undecided terms: normalises a comparison to the form `atom <= k`,
//! `k <= atom` or `atom == e`.
//!
//! An *atom* is an unknown, or a term with any other operation at its head, such as a product of
//! two undecided terms. All numbers are machine integers. A comparison with another number, or with
//! an overflow, stays unchanged. So every rewriting here is an equivalence.

use super::compare::builtin_of;
use super::stuck2;
use crate::engine::compile::Program;
use crate::signature::{Builtin, OpKind};
use crate::sort::basic;
use crate::value::Value;
use mu_base::ids::SortId;

/// Linear form `Σ coefficient · atom + constant`.
#[derive(Clone, Debug, Default)]
pub struct LinearForm {
    /// Atoms with nonzero coefficients.
    pub terms: Vec<(Value, i64)>,
    /// The constant.
    pub constant: i64,
}

/// Relation of two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum NumberRelation {
    Equal,
    Less,
    LessEqual,
}

impl LinearForm {
    /// Returns the linear form of a numeric value; `None` if a number is not a machine integer.
    pub fn of(p: &Program, v: &Value) -> Option<LinearForm> {
        let mut out = LinearForm::default();
        out.add(p, v, 1)?;
        out.terms.retain(|t| t.1 != 0);
        Some(out)
    }
    /// Adds `k · v`; `None` if a number is not a machine integer.
    fn add(&mut self, p: &Program, v: &Value, k: i64) -> Option<()> {
        use Builtin::*;
        if let Value::Int(n) = v {
            self.constant = self.constant.checked_add(n.checked_mul(k)?)?;
            return Some(());
        }
        if v.is_number() {
            return None;
        }
        if let Some((op, args)) = v.as_app()
            && let OpKind::Builtin(b) = p.signature.op(op).kind
        {
            match (b, args) {
                (Add, [x, y]) => return self.add(p, x, k).and_then(|()| self.add(p, y, k)),
                (Subtract, [x, y]) => {
                    return self.add(p, x, k).and_then(|()| self.add(p, y, k.checked_neg()?));
                }
                (Negate, [x]) => return self.add(p, x, k.checked_neg()?),
                (Succ | Pred, [x]) => {
                    let by = if b == Succ { k } else { k.checked_neg()? };
                    self.constant = self.constant.checked_add(by)?;
                    return self.add(p, x, k);
                }
                (Multiply, [Value::Int(n), x] | [x, Value::Int(n)]) => {
                    return self.add(p, x, k.checked_mul(*n)?);
                }
                _ => {}
            }
        }
        match self.terms.iter_mut().find(|t| t.0 == *v) {
            Some(t) => t.1 = t.1.checked_add(k)?,
            None => self.terms.push((v.clone(), k)),
        }
        Some(())
    }
    /// Returns `a - b`; `None` if a number is not a machine integer.
    pub fn difference(p: &Program, a: &Value, b: &Value) -> Option<LinearForm> {
        let mut out = LinearForm::default();
        out.add(p, a, 1)?;
        out.add(p, b, -1)?;
        out.terms.retain(|t| t.1 != 0);
        Some(out)
    }
    /// Substitutes `factor · v` for the atom with the index `atom`; `None` on overflow.
    pub fn with(&self, p: &Program, atom: usize, v: &Value, factor: i64) -> Option<LinearForm> {
        let mut out = self.clone();
        let (_, k) = out.terms.remove(atom);
        out.add(p, v, k.checked_mul(factor)?)?;
        out.terms.retain(|t| t.1 != 0);
        Some(out)
    }
    /// Returns the value of `factor · form`, where the form is without the term with the index
    /// `skip`; `None` on overflow. `sort_of`: the sort of an unknown.
    pub fn value(
        &self,
        p: &Program,
        sort_of: &dyn Fn(u32) -> SortId,
        skip: usize,
        factor: i64,
    ) -> Option<Value> {
        let others = || self.terms.iter().enumerate().filter(|(i, _)| *i != skip).map(|t| t.1);
        let real = others().any(|(atom, _)| numeric_sort(p, sort_of, atom) == basic::REAL);
        let (add, multiply) =
            if real { (p.real_add, p.real_multiply) } else { (p.add, p.multiply) };
        let mut sum: Option<Value> = None;
        for (atom, k) in others() {
            let k = k.checked_mul(factor)?;
            let term =
                if k == 1 { atom.clone() } else { stuck2(multiply, Value::Int(k), atom.clone()) };
            sum = Some(match sum {
                None => term,
                Some(s) => stuck2(add, s, term),
            });
        }
        let constant = self.constant.checked_mul(factor)?;
        Some(match sum {
            None => Value::Int(constant),
            Some(s) if constant == 0 => s,
            Some(s) => stuck2(add, s, Value::Int(constant)),
        })
    }
}

/// Returns the sort of an undecided numeric term.
pub fn numeric_sort(p: &Program, sort_of_unknown: &dyn Fn(u32) -> SortId, v: &Value) -> SortId {
    match v {
        Value::Unknown(u) => sort_of_unknown(*u),
        _ => v.as_app().map_or(basic::REAL, |(op, args)| {
            let mut sort = p.signature.op(op).sort;
            let mut left = args.len();
            while left > 0 {
                let (domain, range) = p.signature.domain_range(sort);
                left = left.saturating_sub(domain.len().max(1));
                sort = range;
            }
            sort
        }),
    }
}

/// Returns the least number of a basic sort; `None` if the sort has none.
pub fn least(sort: SortId) -> Option<i64> {
    match sort {
        basic::POS => Some(1),
        basic::NAT => Some(0),
        _ => None,
    }
}

/// Returns an upper bound of a term that follows from its operation alone: a remainder is below its
/// divisor. `None` if there is none.
fn greatest(p: &Program, v: &Value) -> Option<i64> {
    match builtin_of(p, v) {
        Some((Builtin::Mod, [_, Value::Int(n)])) if *n > 0 => Some(n - 1),
        _ => None,
    }
}

/// Simplifies `a relation b` if an operand is undecided; `None` if there is no simplification.
/// `at`: the sort of the operands. `sort_of`: the sort of an unknown.
pub fn compare(
    p: &Program,
    sort_of: &dyn Fn(u32) -> SortId,
    relation: NumberRelation,
    at: SortId,
    a: &Value,
    b: &Value,
) -> Option<Value> {
    let d = LinearForm::difference(p, a, b)?;
    let c = d.constant;
    if d.terms.is_empty() {
        return Some(Value::Bool(match relation {
            NumberRelation::Equal => c == 0,
            NumberRelation::Less => c < 0,
            NumberRelation::LessEqual => c <= 0,
        }));
    }
    let integral =
        |v: &Value| matches!(numeric_sort(p, sort_of, v), basic::POS | basic::NAT | basic::INT);
    if !d.terms.iter().all(|t| integral(&t.0)) {
        return None;
    }
    // Everything is an integer: `d < 0` is `d + 1 <= 0`.
    let c = if relation == NumberRelation::Less { c.checked_add(1)? } else { c };
    let info = p.sort(at);
    if let [(atom, k)] = &d.terms[..] {
        let low = least(numeric_sort(p, sort_of, atom));
        let relation_value = |op, x: Value, y: Value| Some(stuck2(op, x, y));
        if relation == NumberRelation::Equal {
            if c.checked_rem(*k)? != 0 {
                return Some(Value::Bool(false));
            }
            let n = c.checked_neg()?.checked_div(*k)?;
            if low.is_some_and(|l| n < l) || greatest(p, atom).is_some_and(|h| n > h) {
                return Some(Value::Bool(false));
            }
            return relation_value(info.equal, atom.clone(), Value::Int(n));
        }
        let high = greatest(p, atom);
        if *k > 0 {
            // k·t <= -c
            let most = c.checked_neg()?.div_euclid(*k);
            return match low {
                _ if high.is_some_and(|h| h <= most) => Some(Value::Bool(true)),
                Some(l) if most < l => Some(Value::Bool(false)),
                Some(l) if most == l && matches!(atom, Value::Unknown(_)) => {
                    relation_value(info.equal, atom.clone(), Value::Int(most))
                }
                _ => relation_value(info.less_equal, atom.clone(), Value::Int(most)),
            };
        }
        // t >= c / -k, rounded up
        let m = k.checked_neg()?;
        let from = c.checked_add(m - 1)?.div_euclid(m);
        if low.is_some_and(|l| from <= l) {
            return Some(Value::Bool(true));
        }
        if high.is_some_and(|h| h < from) {
            return Some(Value::Bool(false));
        }
        return relation_value(info.less_equal, Value::Int(from), atom.clone());
    }
    // For several atoms, the least numbers of their sorts may decide.
    let mut lowest = Some(c);
    let mut highest = Some(c);
    for (atom, k) in &d.terms {
        let low = least(numeric_sort(p, sort_of, atom)).and_then(|l| l.checked_mul(*k));
        let plus = |total: Option<i64>| total.and_then(|t| t.checked_add(low?));
        if *k > 0 {
            lowest = plus(lowest);
            highest = None;
        } else {
            highest = plus(highest);
            lowest = None;
        }
    }
    match relation {
        NumberRelation::Equal => {
            if lowest.is_some_and(|l| l > 0) || highest.is_some_and(|h| h < 0) {
                return Some(Value::Bool(false));
            }
            // Solves the equation for an unknown that occurs once, with the factor 1 or -1.
            for (i, (atom, k)) in d.terms.iter().enumerate() {
                if matches!(atom, Value::Unknown(_)) && (*k == 1 || *k == -1) {
                    let others = d.value(p, sort_of, i, -k)?;
                    if !occurs(&others, atom) {
                        return Some(stuck2(info.equal, atom.clone(), others));
                    }
                }
            }
            None
        }
        _ => {
            if lowest.is_some_and(|l| l > 0) {
                return Some(Value::Bool(false));
            }
            highest.is_some_and(|h| h <= 0).then_some(Value::Bool(true))
        }
    }
}

/// True if an unknown occurs in a value.
pub fn occurs(v: &Value, unknown: &Value) -> bool {
    if !v.is_open() {
        return false;
    }
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        use crate::value::Rich;
        if v == unknown {
            return true;
        }
        match v {
            Value::Unknown(_) => false,
            Value::Cons(_) => {
                let mut at = v;
                while let Value::Cons(cell) = at {
                    if occurs(&cell.head, unknown) {
                        return true;
                    }
                    at = &cell.tail;
                }
                occurs(at, unknown)
            }
            Value::Rich(n) => match &n.kind {
                Rich::Set(_, s) => s.iter().any(|e| occurs(e, unknown)),
                Rich::Bag(_, s) => s.iter().any(|(e, c)| occurs(e, unknown) || occurs(c, unknown)),
                Rich::Closure(c) => c.captures.iter().any(|e| occurs(e, unknown)),
                Rich::Table(_, f, s) => {
                    occurs(f, unknown)
                        || s.iter().any(|(k, e)| occurs(k, unknown) || occurs(e, unknown))
                }
                Rich::Apply(f, s) => occurs(f, unknown) || s.iter().any(|e| occurs(e, unknown)),
                Rich::Integer(_) | Rich::Rational(_) => false,
            },
            _ => v.as_app().is_some_and(|(_, args)| args.iter().any(|a| occurs(a, unknown))),
        }
    })
}
