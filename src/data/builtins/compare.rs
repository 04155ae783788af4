//! Connectives, `if`, equality and order.
//!
//! Data is compared structurally. Otherwise an equality is decomposed along constructors and list
//! cells into a conjunction, oriented (an unknown to the left), and solved if it is linear;
//! negations move inside.

use super::linear::{self, NumberRelation, occurs};
use super::stuck2;
use crate::engine::compile::Program;
use crate::engine::machine::{EvaluationMachine, Outcome, is_constructed};
use crate::signature::{Builtin, OpKind};
use crate::sort::{SortKind, basic};
use crate::value::{IMPURE, Rich, Value};
use mu_base::ids::{OpId, SortId};
use std::cmp::Ordering;

/// Returns the built-in at the head of an undecided term; `None` if there is none.
pub(crate) fn builtin_of<'v>(p: &Program, v: &'v Value) -> Option<(Builtin, &'v [Value])> {
    let (op, args) = v.as_app()?;
    match p.signature.op(op).kind {
        OpKind::Builtin(b) => Some((b, args)),
        _ => None,
    }
}

/// True if one of two terms is the negation of the other.
fn is_negation(p: &Program, a: &Value, b: &Value) -> bool {
    let negates = |v: &Value, of: &Value| matches!(builtin_of(p, v), Some((Builtin::Not, [inner])) if inner == of);
    negates(a, b) || negates(b, a)
}

/// Limit on the connectives into which a negation is moved; beyond it, the negation stays outside.
const MAX_NEGATED: usize = 4096;

/// True if there are few connectives at the top of an undecided term; shared ones count once per
/// occurrence.
fn few_connectives(p: &Program, a: &Value) -> bool {
    let Some((Builtin::And | Builtin::Or, _)) = builtin_of(p, a) else { return true };
    let mut open = vec![a];
    let mut visited = 0;
    while let Some(v) = open.pop() {
        if let Some((Builtin::And | Builtin::Or, parts)) = builtin_of(p, v) {
            visited += 1;
            if visited > MAX_NEGATED {
                return false;
            }
            open.extend(parts);
        }
    }
    true
}

impl EvaluationMachine {
    pub(crate) fn and(&mut self, p: &Program, a: Value, b: Value) -> Value {
        match (&a, &b) {
            (Value::Bool(true), _) | (_, Value::Bool(false)) => b,
            (_, Value::Bool(true)) | (Value::Bool(false), _) => a,
            _ if a == b => a,
            _ if is_negation(p, &a, &b) => Value::Bool(false),
            _ => stuck2(p.and, a, b),
        }
    }

    pub(crate) fn or(&mut self, p: &Program, a: Value, b: Value) -> Value {
        match (&a, &b) {
            (Value::Bool(false), _) | (_, Value::Bool(true)) => b,
            (_, Value::Bool(false)) | (Value::Bool(true), _) => a,
            _ if a == b => a,
            _ if is_negation(p, &a, &b) => Value::Bool(true),
            _ => stuck2(p.or, a, b),
        }
    }

    /// Negates a condition; moves the negation inside `&&`, `||` and numeric comparisons, unless
    /// there are many: the negations of shared parts are not shared.
    pub(crate) fn not(&mut self, p: &Program, a: Value) -> Value {
        if few_connectives(p, &a) { self.not_inside(p, a) } else { Value::app1(p.not, IMPURE, a) }
    }

    fn not_inside(&mut self, p: &Program, a: Value) -> Value {
        if let Value::Bool(b) = a {
            return Value::Bool(!b);
        }
        if let Some((op, args)) = a.as_app()
            && let Some((builtin, _)) = builtin_of(p, &a)
        {
            match (builtin, args) {
                (Builtin::Not, [x]) => return x.clone(),
                (Builtin::And | Builtin::Or, [x, y]) => {
                    let (x, y) = (x.clone(), y.clone());
                    return stacker::maybe_grow(64 << 10, 1 << 20, || {
                        let (x, y) = (self.not_inside(p, x), self.not_inside(p, y));
                        if builtin == Builtin::And { self.or(p, x, y) } else { self.and(p, x, y) }
                    });
                }
                (Builtin::Less | Builtin::LessEqual, [x, y])
                    if p.op(op).first.number() <= basic::REAL.number() =>
                {
                    let info = p.sort(p.op(op).first);
                    let op = if builtin == Builtin::Less { info.less_equal } else { info.less };
                    // Uses the comparison again, for its normal form.
                    let (x, y) = (x.clone(), y.clone());
                    let or_equal = op == info.less_equal;
                    return match self.less(p, p.op(op).first, &y, &x, or_equal) {
                        Ok(v) => v,
                        Err(_) => stuck2(op, y, x),
                    };
                }
                _ => {}
            }
        }
        Value::app1(p.not, IMPURE, a)
    }

    /// Evaluates `if` on values; tries the user's equations for it if it is undecided.
    pub(crate) fn if_value(
        &mut self,
        p: &Program,
        op: OpId,
        c: Value,
        a: Value,
        b: Value,
    ) -> Outcome<Value> {
        match c {
            Value::Bool(true) => Ok(a),
            Value::Bool(false) => Ok(b),
            c if p.op(op).funcs[1].is_some() => self.apply_op(p, op, vec![c, a, b]),
            c => self.if_plain(p, op, c, a, b),
        }
    }

    /// Evaluates `if` on values without the user's equations.
    pub(crate) fn if_plain(
        &mut self,
        p: &Program,
        op: OpId,
        c: Value,
        a: Value,
        b: Value,
    ) -> Outcome<Value> {
        match c {
            Value::Bool(true) => return Ok(a),
            Value::Bool(false) => return Ok(b),
            _ => {}
        }
        if a == b {
            return Ok(a);
        }
        match (&a, &b) {
            (Value::Bool(true), Value::Bool(false)) => return Ok(c),
            (Value::Bool(false), Value::Bool(true)) => return Ok(self.not(p, c)),
            _ => {}
        }
        if p.op(op).range == basic::BOOL && c.is_open() {
            let not_c = self.not(p, c.clone());
            let x = self.and(p, c, a);
            let y = self.and(p, not_c, b);
            return Ok(self.or(p, x, y));
        }
        Ok(Value::app3(op, IMPURE, c, a, b))
    }

    /// Evaluates equality at a sort; the user's equations for it come first.
    #[inline]
    pub(crate) fn equal(
        &mut self,
        p: &Program,
        sort: SortId,
        a: &Value,
        b: &Value,
    ) -> Outcome<Value> {
        if a.is_data() && b.is_data() {
            return Ok(Value::Bool(a == b));
        }
        if p.sort(sort).user_equal.is_some() {
            return self.apply_op(p, p.sort(sort).equal, vec![a.clone(), b.clone()]);
        }
        self.equal_default(p, sort, a, b)
    }

    /// Evaluates the built-in equality.
    pub(crate) fn equal_default(
        &mut self,
        p: &Program,
        sort: SortId,
        a: &Value,
        b: &Value,
    ) -> Outcome<Value> {
        if a.is_data() && b.is_data() {
            return Ok(Value::Bool(a == b));
        }
        if a == b {
            return Ok(Value::Bool(true));
        }
        stacker::maybe_grow(128 << 10, 4 << 20, || self.equal_undecided(p, sort, a, b))
    }

    fn equal_undecided(
        &mut self,
        p: &Program,
        sort: SortId,
        a: &Value,
        b: &Value,
    ) -> Outcome<Value> {
        let open = a.is_open() || b.is_open();
        match p.signature.sorts.kind(sort) {
            SortKind::Bool => match (a, b) {
                (Value::Bool(true), x) | (x, Value::Bool(true)) => return Ok(x.clone()),
                (Value::Bool(false), x) | (x, Value::Bool(false)) => {
                    return Ok(self.not(p, x.clone()));
                }
                _ if is_negation(p, a, b) => return Ok(Value::Bool(false)),
                _ => {}
            },
            SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real => {
                if let Some(decided) = self.decide(p, NumberRelation::Equal, a, b) {
                    return Ok(Value::Bool(decided));
                }
                match self.compare_linear(p, NumberRelation::Equal, sort, a, b) {
                    Some(v) if open => return self.equal_extremum(p, v),
                    Some(v @ Value::Bool(_)) => return Ok(v),
                    _ => {}
                }
            }
            SortKind::List(element) => return self.equal_lists(p, sort, *element, a, b),
            SortKind::Set(_) | SortKind::FSet(_) | SortKind::Bag(_) | SortKind::FBag(_) => {
                if let Some(v) = self.equal_sets(p, sort, a, b)? {
                    return Ok(v);
                }
            }
            SortKind::Function(..) => {
                if let Some(v) = self.equal_functions(p, sort, a, b)? {
                    return Ok(v);
                }
            }
            SortKind::Named(_) => {
                if let (Some((f, xs)), Some((g, ys))) = (a.as_app(), b.as_app())
                    && is_constructed(p, a)
                    && is_constructed(p, b)
                {
                    return if f == g {
                        self.equal_all(p, f, xs, ys)
                    } else {
                        Ok(Value::Bool(false))
                    };
                }
            }
        }
        for (x, y) in [(a, b), (b, a)] {
            // A term differs from its proper subterms; this holds below constructors only.
            if matches!(x, Value::Unknown(_)) && is_constructed(p, y) && below_constructors(p, y, x)
            {
                return Ok(Value::Bool(false));
            }
            // `if(c, s, t) == y`
            if open
                && let Some((Builtin::If, [c, s, t])) = builtin_of(p, x)
                && c.is_open()
            {
                let then = self.equal(p, sort, s, y)?;
                let other = self.equal(p, sort, t, y)?;
                let not_c = self.not(p, c.clone());
                let (then, other) = (self.and(p, c.clone(), then), self.and(p, not_c, other));
                return Ok(self.or(p, then, other));
            }
        }
        Ok(self.orient(p, sort, a, b))
    }

    fn orient(&self, p: &Program, sort: SortId, a: &Value, b: &Value) -> Value {
        let unknown = |v: &Value| matches!(v, Value::Unknown(_));
        let swap = if unknown(a) != unknown(b) { unknown(b) } else { b < a };
        let (a, b) = if swap { (b, a) } else { (a, b) };
        stuck2(p.sort(sort).equal, a.clone(), b.clone())
    }

    fn equal_all(
        &mut self,
        p: &Program,
        constructor: OpId,
        xs: &[Value],
        ys: &[Value],
    ) -> Outcome<Value> {
        let (domain, _) = p.signature.domain_range(p.signature.op(constructor).sort);
        let mut all = Value::Bool(true);
        for ((x, y), sort) in xs.iter().zip(ys).zip(domain) {
            let e = self.equal(p, *sort, x, y)?;
            if e.is_false() {
                return Ok(e);
            }
            all = self.and(p, all, e);
        }
        Ok(all)
    }

    fn equal_lists(
        &mut self,
        p: &Program,
        sort: SortId,
        element: SortId,
        a: &Value,
        b: &Value,
    ) -> Outcome<Value> {
        let mut all = Value::Bool(true);
        let (mut x, mut y) = (a, b);
        loop {
            match (x, y) {
                (Value::Cons(c), Value::Cons(d)) => {
                    let e = self.equal(p, element, &c.head, &d.head)?;
                    if e.is_false() {
                        return Ok(e);
                    }
                    all = self.and(p, all, e);
                    (x, y) = (&c.tail, &d.tail);
                }
                (Value::Nil(_), Value::Nil(_)) => return Ok(all),
                (Value::Nil(_), Value::Cons(_)) | (Value::Cons(_), Value::Nil(_)) => {
                    return Ok(Value::Bool(false));
                }
                _ => {
                    if x == y {
                        return Ok(all);
                    }
                    for (u, v) in [(x, y), (y, x)] {
                        if matches!(u, Value::Unknown(_))
                            && is_constructed(p, v)
                            && below_constructors(p, v, u)
                        {
                            return Ok(Value::Bool(false));
                        }
                    }
                    let e = self.orient(p, sort, x, y);
                    return Ok(self.and(p, all, e));
                }
            }
        }
    }

    /// Returns the sort of a numeric term without a value.
    pub(crate) fn sort_of_number(&self, p: &Program, v: &Value) -> SortId {
        linear::numeric_sort(p, &|u| self.unknowns.sort(u), v)
    }

    pub(crate) fn compare_linear(
        &self,
        p: &Program,
        relation: NumberRelation,
        sort: SortId,
        a: &Value,
        b: &Value,
    ) -> Option<Value> {
        linear::compare(p, &|u| self.unknowns.sort(u), relation, sort, a, b)
    }

    /// Evaluates `a < b`, or `a <= b` if `or_equal`.
    pub(crate) fn less(
        &mut self,
        p: &Program,
        sort: SortId,
        a: &Value,
        b: &Value,
        or_equal: bool,
    ) -> Outcome<Value> {
        let verdict =
            |o: Ordering| Value::Bool(o == Ordering::Less || or_equal && o == Ordering::Equal);
        if let (Value::Int(x), Value::Int(y)) = (a, b) {
            return Ok(verdict(x.cmp(y)));
        }
        if a == b {
            return Ok(Value::Bool(or_equal));
        }
        let info = p.sort(sort);
        let op = if or_equal { info.less_equal } else { info.less };
        stacker::maybe_grow(128 << 10, 4 << 20, || {
            match p.signature.sorts.kind(sort) {
                SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real => {
                    if a.is_number() && b.is_number() {
                        return Ok(verdict(a.cmp(b)));
                    }
                    let relation =
                        if or_equal { NumberRelation::LessEqual } else { NumberRelation::Less };
                    if let Some(decided) = self.decide(p, relation, a, b) {
                        return Ok(Value::Bool(decided));
                    }
                    let open = a.is_open() || b.is_open();
                    match self.compare_linear(p, relation, sort, a, b) {
                        Some(v) if open => {
                            if let Some(cases) = self.less_by_cases(p, sort, &v)? {
                                return Ok(cases);
                            }
                            return self.split_extremum(p, v);
                        }
                        // A term without a value is unchanged, unless the comparison is true or
                        // false for every number.
                        Some(v @ Value::Bool(_)) => return Ok(v),
                        _ => {}
                    }
                }
                SortKind::Bool => {
                    let not_a = self.not(p, a.clone());
                    return Ok(if or_equal {
                        self.or(p, not_a, b.clone())
                    } else {
                        self.and(p, not_a, b.clone())
                    });
                }
                SortKind::List(element) => {
                    return self.less_lists(p, sort, *element, a, b, or_equal);
                }
                SortKind::Set(_) | SortKind::FSet(_) | SortKind::Bag(_) | SortKind::FBag(_) => {
                    return self.subset(p, op, a, b, !or_equal);
                }
                // The order of functions is unknown, but it is reflexive.
                SortKind::Function(..)
                    if !a.is_open() && !b.is_open() && self.equal(p, sort, a, b)?.is_true() =>
                {
                    return Ok(Value::Bool(or_equal));
                }
                SortKind::Named(i) if p.signature.sorts.named[*i as usize].structured => {
                    if let (Some((f, xs)), Some((g, ys))) = (a.as_app(), b.as_app())
                        && let (OpKind::Constructor(i), OpKind::Constructor(j)) =
                            (&p.signature.op(f).kind, &p.signature.op(g).kind)
                        && is_constructed(p, a)
                        && is_constructed(p, b)
                    {
                        if f != g {
                            return Ok(verdict(i.cmp(j)));
                        }
                        let (domain, _) = p.signature.domain_range(p.signature.op(f).sort);
                        return self.less_all(p, domain, xs, ys, or_equal);
                    }
                }
                _ => {}
            }
            Ok(stuck2(op, a.clone(), b.clone()))
        })
    }

    /// Rewrites a comparison with `if(c, s, t)` on one side and an open condition to a disjunction.
    fn less_by_cases(&mut self, p: &Program, sort: SortId, v: &Value) -> Outcome<Option<Value>> {
        let Some((which @ (Builtin::Less | Builtin::LessEqual), [a, b])) = builtin_of(p, v) else {
            return Ok(None);
        };
        let or_equal = which == Builtin::LessEqual;
        for (side, left) in [(a, true), (b, false)] {
            let Some((Builtin::If, [c, s, t])) = builtin_of(p, side) else { continue };
            if !c.is_open() {
                continue;
            }
            let (then, other) = if left {
                (self.less(p, sort, s, b, or_equal)?, self.less(p, sort, t, b, or_equal)?)
            } else {
                (self.less(p, sort, a, s, or_equal)?, self.less(p, sort, a, t, or_equal)?)
            };
            let not_c = self.not(p, c.clone());
            let (then, other) = (self.and(p, c.clone(), then), self.and(p, not_c, other));
            return Ok(Some(self.or(p, then, other)));
        }
        Ok(None)
    }

    /// Rewrites `max(s, t) == n` for a number, so that a bound of either operand prunes.
    fn equal_extremum(&mut self, p: &Program, v: Value) -> Outcome<Value> {
        if let Some((Builtin::Equal, [m, n])) = builtin_of(p, &v)
            && n.is_number()
            && let Some((which @ (Builtin::Max | Builtin::Min), [s, t])) = builtin_of(p, m)
        {
            let max = which == Builtin::Max;
            let (x, y) = if max {
                (self.less(p, basic::INT, s, n, true)?, self.less(p, basic::INT, t, n, true)?)
            } else {
                (self.less(p, basic::INT, n, s, true)?, self.less(p, basic::INT, n, t, true)?)
            };
            let both = self.and(p, x, y);
            if both.is_false() {
                return Ok(both);
            }
            let (x, y) = (self.equal(p, basic::INT, s, n)?, self.equal(p, basic::INT, t, n)?);
            let one = self.or(p, x, y);
            return Ok(self.and(p, both, one));
        }
        Ok(v)
    }

    /// Rewrites `max(s, t) <= k` and similar comparisons to a conjunction or disjunction.
    fn split_extremum(&mut self, p: &Program, v: Value) -> Outcome<Value> {
        let Some((Builtin::LessEqual, [a, b])) = builtin_of(p, &v) else { return Ok(v) };
        let sort = v.as_app().map_or(basic::INT, |(op, _)| p.op(op).first);
        for (side, left) in [(a, true), (b, false)] {
            if let Some((m @ (Builtin::Max | Builtin::Min), [s, t])) = builtin_of(p, side) {
                let (one, other) = if left {
                    (self.less(p, sort, s, b, true)?, self.less(p, sort, t, b, true)?)
                } else {
                    (self.less(p, sort, a, s, true)?, self.less(p, sort, a, t, true)?)
                };
                return Ok(if (m == Builtin::Max) == left {
                    self.and(p, one, other)
                } else {
                    self.or(p, one, other)
                });
            }
        }
        Ok(v)
    }

    fn less_all(
        &mut self,
        p: &Program,
        domain: &[SortId],
        xs: &[Value],
        ys: &[Value],
        or_equal: bool,
    ) -> Outcome<Value> {
        let Some(sort) = domain.first() else { return Ok(Value::Bool(or_equal)) };
        let equal = self.equal(p, *sort, &xs[0], &ys[0])?;
        match equal {
            Value::Bool(true) => self.less_all(p, &domain[1..], &xs[1..], &ys[1..], or_equal),
            Value::Bool(false) => self.less(p, *sort, &xs[0], &ys[0], false),
            equal => {
                let less = self.less(p, *sort, &xs[0], &ys[0], false)?;
                let rest = self.less_all(p, &domain[1..], &xs[1..], &ys[1..], or_equal)?;
                let rest = self.and(p, equal, rest);
                Ok(self.or(p, less, rest))
            }
        }
    }

    fn less_lists(
        &mut self,
        p: &Program,
        sort: SortId,
        element: SortId,
        a: &Value,
        b: &Value,
        or_equal: bool,
    ) -> Outcome<Value> {
        let (mut x, mut y) = (a, b);
        loop {
            match (x, y) {
                (Value::Cons(c), Value::Cons(d)) => match self
                    .equal(p, element, &c.head, &d.head)?
                {
                    Value::Bool(true) => (x, y) = (&c.tail, &d.tail),
                    Value::Bool(false) => return self.less(p, element, &c.head, &d.head, false),
                    equal => {
                        let less = self.less(p, element, &c.head, &d.head, false)?;
                        let rest = self.less(p, sort, &c.tail, &d.tail, or_equal)?;
                        let rest = self.and(p, equal, rest);
                        return Ok(self.or(p, less, rest));
                    }
                },
                (Value::Nil(_), Value::Nil(_)) => return Ok(Value::Bool(or_equal)),
                (Value::Nil(_), Value::Cons(_)) => return Ok(Value::Bool(true)),
                (Value::Cons(_), Value::Nil(_)) => return Ok(Value::Bool(false)),
                _ => {
                    let info = p.sort(sort);
                    return Ok(stuck2(
                        if or_equal { info.less_equal } else { info.less },
                        x.clone(),
                        y.clone(),
                    ));
                }
            }
        }
    }
}

/// True if an unknown occurs in a value below free constructors and cells only.
fn below_constructors(p: &Program, v: &Value, unknown: &Value) -> bool {
    if !occurs(v, unknown) {
        return false;
    }
    let mut work = vec![v];
    while let Some(v) = work.pop() {
        if v == unknown {
            return true;
        }
        match v {
            Value::Cons(cell) => work.extend([&cell.head, &cell.tail]),
            Value::Rich(n) if matches!(n.kind, Rich::Integer(_)) => {}
            _ => {
                if let Some((op, args)) = v.as_app()
                    && p.op(op).flags == 0
                {
                    work.extend(args);
                }
            }
        }
    }
    false
}
