//! Sets and bags: sorted arrays for finite ones, complements and comprehensions otherwise.
//!
//! An insertion is not evaluated if the equality of the element with another is undecided. Infinite
//! sets decide membership point by point; finite parts of an operation are computed.

use super::number;
use super::{stuck1, stuck2};
use crate::engine::compile::Program;
use crate::engine::machine::{EvaluationMachine, Outcome};
use crate::enumerate;
use crate::expr::Binder;
use crate::signature::Builtin;
use crate::sort::{SortKind, basic};
use crate::value::{IMPURE, Rich, Value};
use mu_base::ids::{OpId, SortId};
use std::cmp::Ordering;
use std::rc::Rc;

/// Largest element sort with its full set represented as a finite set.
const MAX_FULL_SET: usize = 4096;

/// Largest element sort that is listed to compare a complement with a finite set.
const MAX_LISTED_SET: usize = 1 << 16;

/// Converts a finite set or bag to the target sort of a coercion.
pub fn retag(p: &Program, op: OpId, a: Value) -> Value {
    let sort = p.op(op).range;
    match a.as_rich() {
        Some(Rich::Set(_, elements)) => Value::rich(Rich::Set(sort, elements.clone())),
        Some(Rich::Bag(_, entries)) => Value::rich(Rich::Bag(sort, entries.clone())),
        _ => stuck1(op, a),
    }
}

/// Returns the first element of a finite set or bag; `None` if it is empty, or if unknowns may
/// change the order of its elements.
pub fn pick(a: &Value) -> Option<Value> {
    match a.as_rich()? {
        Rich::Set(_, elements) if elements.len() > 1 && a.is_open() => None,
        Rich::Bag(_, entries) if entries.len() > 1 && a.is_open() => None,
        Rich::Set(_, elements) => elements.first().cloned(),
        Rich::Bag(_, entries) => entries.first().map(|e| e.0.clone()),
        _ => None,
    }
}

/// True for `{}` and `{:}`.
fn is_empty(v: &Value) -> bool {
    v.as_set().is_some_and(|s| s.is_empty()) || v.as_bag().is_some_and(|s| s.is_empty())
}

/// Returns `{}` or `{:}` of a sort.
fn empty(p: &Program, sort: SortId) -> Value {
    match p.signature.sorts.kind(sort) {
        SortKind::Bag(_) | SortKind::FBag(_) => Value::rich(Rich::Bag(sort, Rc::new([]))),
        _ => Value::rich(Rich::Set(sort, Rc::new([]))),
    }
}

fn element_sort(p: &Program, sort: SortId) -> SortId {
    match p.signature.sorts.kind(sort) {
        SortKind::Set(e)
        | SortKind::FSet(e)
        | SortKind::Bag(e)
        | SortKind::FBag(e)
        | SortKind::List(e) => *e,
        _ => sort,
    }
}

/// Function that returns the elements at the given positions as a container.
type Remaining = Box<dyn Fn(&[usize]) -> Value>;

/// Splits an infinite or undecided set into its operation and operands.
fn parts<'v>(p: &Program, v: &'v Value) -> Option<(Builtin, &'v [Value])> {
    super::compare::builtin_of(p, v)
}

impl EvaluationMachine {
    /// Evaluates `element in container`.
    pub(crate) fn contains(
        &mut self,
        p: &Program,
        op: OpId,
        element: &Value,
        container: &Value,
    ) -> Outcome<Value> {
        let sort = p.op(op).first;
        let mut open: Vec<(usize, Value)> = Vec::new();
        let mut test = |m: &mut EvaluationMachine, i: usize, e: &Value| -> Outcome<bool> {
            match m.equal(p, sort, element, e)? {
                Value::Bool(true) => return Ok(true),
                Value::Bool(false) => {}
                v => open.push((i, v)),
            }
            Ok(false)
        };
        // The remaining candidates, as a container of the same sort.
        let remaining: Remaining = match container {
            Value::Nil(_) | Value::Cons(_) => {
                let mut heads = Vec::new();
                let mut at = container;
                while let Value::Cons(cell) = at {
                    if test(self, heads.len(), &cell.head)? {
                        return Ok(Value::Bool(true));
                    }
                    heads.push(cell.head.clone());
                    at = &cell.tail;
                }
                let end = at.clone();
                if !matches!(end, Value::Nil(_)) {
                    return Ok(stuck2(op, element.clone(), container.clone()));
                }
                Box::new(move |keep| {
                    super::list::rebuild(
                        keep.iter().map(|&i| heads[i].clone()).collect(),
                        end.clone(),
                    )
                })
            }
            _ => match container.as_rich() {
                Some(Rich::Set(s, elements)) => {
                    if element.is_data() && container.is_data() {
                        return Ok(Value::Bool(elements.binary_search(element).is_ok()));
                    }
                    for (i, e) in elements.iter().enumerate() {
                        if test(self, i, e)? {
                            return Ok(Value::Bool(true));
                        }
                    }
                    let (s, elements) = (*s, elements.clone());
                    Box::new(move |keep| {
                        Value::rich(Rich::Set(
                            s,
                            keep.iter().map(|&i| elements[i].clone()).collect(),
                        ))
                    })
                }
                Some(Rich::Bag(s, entries)) => {
                    if element.is_data() && container.is_data() {
                        return Ok(Value::Bool(
                            entries.binary_search_by(|e| e.0.cmp(element)).is_ok(),
                        ));
                    }
                    for (i, (e, _)) in entries.iter().enumerate() {
                        if test(self, i, e)? {
                            return Ok(Value::Bool(true));
                        }
                    }
                    let (s, entries) = (*s, entries.clone());
                    Box::new(move |keep| {
                        Value::rich(Rich::Bag(
                            s,
                            keep.iter().map(|&i| entries[i].clone()).collect(),
                        ))
                    })
                }
                _ => return self.contains_other(p, op, element, container),
            },
        };
        match &open[..] {
            [] => Ok(Value::Bool(false)),
            [(_, only)] => Ok(only.clone()),
            _ => {
                let keep: Vec<usize> = open.iter().map(|o| o.0).collect();
                Ok(stuck2(op, element.clone(), remaining(&keep)))
            }
        }
    }

    fn contains_other(
        &mut self,
        p: &Program,
        op: OpId,
        element: &Value,
        container: &Value,
    ) -> Outcome<Value> {
        if let Some(closure) = container.as_closure() {
            let body = self.apply_comprehension(p, container, element)?;
            return match closure.lambda.binder {
                Binder::BagComprehension => self.less(p, basic::NAT, &Value::Int(0), &body, false),
                _ => Ok(body),
            };
        }
        // A set that no equation simplifies may contain one subterm many times.
        self.tick("in a set that is made of others")?;
        let bag = matches!(
            p.signature.sorts.kind(self.last_sort(p, op)),
            SortKind::Bag(_) | SortKind::FBag(_)
        );
        match parts(p, container) {
            Some((Builtin::FSetToSet, [s])) => self.contains(p, op, element, s),
            Some((Builtin::Complement, [s])) => {
                let inside = self.contains(p, op, element, s)?;
                Ok(self.not(p, inside))
            }
            Some((Builtin::Union | Builtin::Add, [s, t])) => {
                let (a, b) = (self.contains(p, op, element, s)?, self.contains(p, op, element, t)?);
                Ok(self.or(p, a, b))
            }
            Some((Builtin::Intersection | Builtin::Multiply, [s, t])) => {
                let (a, b) = (self.contains(p, op, element, s)?, self.contains(p, op, element, t)?);
                Ok(self.and(p, a, b))
            }
            Some((Builtin::Difference | Builtin::Subtract, [s, t])) if !bag => {
                let (a, b) = (self.contains(p, op, element, s)?, self.contains(p, op, element, t)?);
                let b = self.not(p, b);
                Ok(self.and(p, a, b))
            }
            Some((Builtin::Difference | Builtin::Subtract, [s, t])) => {
                let (x, y) = (self.count(p, op, element, s)?, self.count(p, op, element, t)?);
                Ok(match combine(Builtin::Difference, &x, &y) {
                    Some(n) => Value::Bool(n != Value::Int(0)),
                    None => stuck2(op, element.clone(), container.clone()),
                })
            }
            Some((Builtin::BagToSet | Builtin::SetToBag, [inner])) => {
                match self.member_of_argument(p, container) {
                    Some(member) => self.contains(p, member, element, inner),
                    None => Ok(stuck2(op, element.clone(), container.clone())),
                }
            }
            Some((Builtin::SetInsert, [e, s])) => {
                let same = self.equal(p, p.op(op).first, element, e)?;
                let inside = self.contains(p, op, element, s)?;
                Ok(self.or(p, same, inside))
            }
            _ => Ok(stuck2(op, element.clone(), container.clone())),
        }
    }

    /// Returns `in` for the argument of a conversion.
    fn member_of_argument(&self, p: &Program, conversion: &Value) -> Option<OpId> {
        let (op, _) = conversion.as_app()?;
        p.sort(p.op(op).first).member
    }

    fn last_sort(&self, p: &Program, op: OpId) -> SortId {
        let (domain, range) = p.signature.domain_range(p.signature.op(op).sort);
        domain.last().copied().unwrap_or(range)
    }

    /// Evaluates the body of a comprehension for an element.
    fn apply_comprehension(
        &mut self,
        p: &Program,
        comprehension: &Value,
        element: &Value,
    ) -> Outcome<Value> {
        let Some(closure) = comprehension.as_closure() else { return Ok(comprehension.clone()) };
        let frame = self.stack.len();
        self.stack.push(element.clone());
        self.stack.extend(closure.captures.iter().cloned());
        self.enter(p, &closure.lambda.body, frame)
    }

    /// Evaluates `count(element, bag)`.
    pub(crate) fn count(
        &mut self,
        p: &Program,
        op: OpId,
        element: &Value,
        bag: &Value,
    ) -> Outcome<Value> {
        if let Some(entries) = bag.as_bag() {
            for (e, n) in entries.clone().iter() {
                match self.equal(p, p.op(op).first, element, e)? {
                    Value::Bool(true) => return Ok(n.clone()),
                    Value::Bool(false) => {}
                    _ => return Ok(stuck2(op, element.clone(), bag.clone())),
                }
            }
            return Ok(Value::Int(0));
        }
        if bag.as_closure().is_some() {
            return self.apply_comprehension(p, bag, element);
        }
        if let Some((Builtin::SetToBag, [set])) = parts(p, bag)
            && let Some(member) = self.member_of_argument(p, bag)
            && let Value::Bool(inside) = self.contains(p, member, element, set)?
        {
            return Ok(Value::Int(i64::from(inside)));
        }
        let pair = match parts(p, bag) {
            Some((
                b @ (Builtin::Union | Builtin::Add | Builtin::Difference | Builtin::Subtract),
                [s, t],
            )) => Some((b, s, t)),
            Some((b @ (Builtin::Intersection | Builtin::Multiply), [s, t])) => Some((b, s, t)),
            _ => None,
        };
        if let Some((b, s, t)) = pair {
            self.tick("in a bag that is made of others")?;
            let (x, y) = (self.count(p, op, element, s)?, self.count(p, op, element, t)?);
            if let Some(n) = combine(b, &x, &y) {
                return Ok(n);
            }
        }
        Ok(stuck2(op, element.clone(), bag.clone()))
    }

    /// Inserts an element into a set.
    pub(crate) fn set_insert(
        &mut self,
        p: &Program,
        op: OpId,
        element: Value,
        set: Value,
    ) -> Outcome<Value> {
        let Some(Rich::Set(sort, elements)) = set.as_rich() else {
            return Ok(stuck2(op, element, set));
        };
        if element.is_data() && set.is_data() {
            return Ok(match elements.binary_search(&element) {
                Ok(_) => set,
                Err(i) => {
                    let mut new = Vec::with_capacity(elements.len() + 1);
                    new.extend_from_slice(&elements[..i]);
                    new.push(element);
                    new.extend_from_slice(&elements[i..]);
                    Value::rich(Rich::Set(*sort, new.into()))
                }
            });
        }
        for e in elements.iter() {
            match self.equal(p, p.op(op).first, &element, e)? {
                Value::Bool(true) => return Ok(set),
                Value::Bool(false) => {}
                _ => return Ok(stuck2(op, element, set)),
            }
        }
        let mut new = elements.to_vec();
        new.insert(new.partition_point(|e| *e < element), element);
        Ok(Value::rich(Rich::Set(*sort, new.into())))
    }

    /// Returns the set of some elements.
    pub(crate) fn set_of(
        &mut self,
        p: &Program,
        sort: SortId,
        mut elements: Vec<Value>,
    ) -> Outcome<Value> {
        if elements.iter().all(Value::is_data) {
            elements.sort_unstable();
            elements.dedup();
            return Ok(Value::rich(Rich::Set(sort, elements.into())));
        }
        let mut set = Value::rich(Rich::Set(sort, Rc::new([])));
        if let Some(op) = p.sort(sort).insert {
            for e in elements {
                set = self.set_insert(p, op, e, set)?;
            }
        }
        Ok(set)
    }

    /// Evaluates `@bag_insert(element, count, bag)`; the operation's sort distinguishes element and
    /// count.
    pub(crate) fn bag_insert(
        &mut self,
        p: &Program,
        op: OpId,
        element: Value,
        count: Value,
        bag: Value,
    ) -> Outcome<Value> {
        self.bag_add(p, p.op(op).range, element, count, bag)
    }

    /// Adds copies of an element to a bag.
    pub(crate) fn bag_add(
        &mut self,
        p: &Program,
        sort: SortId,
        element: Value,
        count: Value,
        bag: Value,
    ) -> Outcome<Value> {
        let stuck = |element, count, bag: Value| match p.sort(sort).insert {
            Some(op) => Value::app3(op, IMPURE, element, count, bag),
            None => bag,
        };
        if matches!(count, Value::Int(0)) {
            return Ok(bag);
        }
        let Some(Rich::Bag(_, entries)) = bag.as_rich() else {
            return Ok(stuck(element, count, bag));
        };
        if !count.is_number() {
            return Ok(stuck(element, count, bag));
        }
        let mut place = Err(entries.partition_point(|e| e.0 < element));
        for (i, (e, _)) in entries.iter().enumerate() {
            match self.equal(p, element_sort(p, sort), &element, e)? {
                Value::Bool(true) => place = Ok(i),
                Value::Bool(false) => {}
                _ => return Ok(stuck(element, count, bag)),
            }
        }
        let mut new = entries.to_vec();
        match place {
            Ok(i) => match number::binary(Builtin::Add, &new[i].1, &count) {
                Some(n) => new[i].1 = n,
                None => return Ok(stuck(element, count, bag)),
            },
            Err(i) => new.insert(i, (element, count)),
        }
        Ok(Value::rich(Rich::Bag(sort, new.into())))
    }

    fn keep_if(
        &mut self,
        p: &Program,
        sort: SortId,
        elements: &[Value],
        other: &Value,
        inside: bool,
    ) -> Outcome<Option<Value>> {
        let Some(op) = p.sort(sort).member else { return Ok(None) };
        let mut members = Vec::new();
        for e in elements {
            match self.contains(p, op, e, other)? {
                Value::Bool(b) if b == inside => members.push(e.clone()),
                Value::Bool(_) => {}
                _ => return Ok(None),
            }
        }
        Ok(Some(Value::rich(Rich::Set(sort, members.into()))))
    }

    /// Evaluates `a + b` on sets or bags.
    pub(crate) fn union(&mut self, p: &Program, op: OpId, a: Value, b: Value) -> Outcome<Value> {
        let sort = p.op(op).range;
        if let (Some(x), Some(y)) = (a.as_set(), b.as_set()) {
            if y.is_empty() {
                return Ok(a);
            }
            if a.is_data() && b.is_data() {
                return Ok(merge(sort, &a, x, y));
            }
            let all: Vec<Value> = x.iter().chain(y.iter()).cloned().collect();
            return self.set_of(p, sort, all);
        }
        if let (Some(_), Some(y)) = (a.as_bag(), b.as_bag()) {
            let mut bag = a.clone();
            for (e, n) in y.iter() {
                bag = self.bag_add(p, sort, e.clone(), n.clone(), bag)?;
            }
            return Ok(bag);
        }
        for (empty, other) in [(&a, &b), (&b, &a)] {
            if is_empty(empty) {
                return Ok(other.clone());
            }
        }
        let is_bag = matches!(p.signature.sorts.kind(sort), SortKind::Bag(_) | SortKind::FBag(_));
        if !is_bag && a == b {
            return Ok(a);
        }
        // !s + t = !(s - t)
        for (x, y) in [(&a, &b), (&b, &a)] {
            if let Some((Builtin::Complement, [s])) = parts(p, x)
                && let Some(elements) = s.as_set()
                && let Some(rest) = self.keep_if(p, sort, &elements.clone(), y, false)?
                && let Some((complement, _)) = x.as_app()
            {
                return self.complement(p, complement, rest);
            }
        }
        Ok(stuck2(op, a, b))
    }

    /// Evaluates `a - b` on sets or bags.
    pub(crate) fn difference(
        &mut self,
        p: &Program,
        op: OpId,
        a: Value,
        b: Value,
    ) -> Outcome<Value> {
        if let Some(x) = a.as_bag() {
            return self.zip_bags(p, op, Builtin::Difference, &x.clone(), a.clone(), b);
        }
        let sort = p.op(op).range;
        if let Some(x) = a.as_set()
            && let Some(v) = self.keep_if(p, sort, &x.clone(), &b, false)?
        {
            return Ok(v);
        }
        if is_empty(&a) || is_empty(&b) {
            return Ok(a);
        }
        if a == b {
            return Ok(empty(p, sort));
        }
        // !s - t = !(s + t)
        if let Some((Builtin::Complement, [s])) = parts(p, &a)
            && let (Some(x), Some(y)) = (s.as_set(), b.as_set())
            && let Some((complement, _)) = a.as_app()
        {
            let all = self.set_of(p, sort, x.iter().chain(y.iter()).cloned().collect())?;
            return self.complement(p, complement, all);
        }
        Ok(stuck2(op, a, b))
    }

    /// Evaluates `a * b` on sets or bags.
    pub(crate) fn intersection(
        &mut self,
        p: &Program,
        op: OpId,
        a: Value,
        b: Value,
    ) -> Outcome<Value> {
        if let Some(x) = a.as_bag() {
            return self.zip_bags(p, op, Builtin::Intersection, &x.clone(), a.clone(), b);
        }
        if let Some(y) = b.as_bag() {
            return self.zip_bags(p, op, Builtin::Intersection, &y.clone(), b.clone(), a);
        }
        let sort = p.op(op).range;
        for (x, y) in [(&a, &b), (&b, &a)] {
            if let Some(elements) = x.as_set()
                && let Some(v) = self.keep_if(p, sort, &elements.clone(), y, true)?
            {
                return Ok(v);
            }
        }
        if is_empty(&a) || is_empty(&b) {
            return Ok(empty(p, sort));
        }
        if a == b {
            return Ok(a);
        }
        // !s * !t = !(s + t)
        if let (Some((Builtin::Complement, [s])), Some((Builtin::Complement, [t]))) =
            (parts(p, &a), parts(p, &b))
            && let (Some(x), Some(y)) = (s.as_set(), t.as_set())
            && let Some((complement, _)) = a.as_app()
        {
            let all = self.set_of(p, sort, x.iter().chain(y.iter()).cloned().collect())?;
            return self.complement(p, complement, all);
        }
        Ok(stuck2(op, a, b))
    }

    fn zip_bags(
        &mut self,
        p: &Program,
        op: OpId,
        how: Builtin,
        x: &[(Value, Value)],
        a: Value,
        b: Value,
    ) -> Outcome<Value> {
        let sort = p.op(op).range;
        let Some(count) = p.sort(sort).count else { return Ok(stuck2(op, a, b)) };
        let mut out = Vec::new();
        for (e, n) in x {
            let other = self.count(p, count, e, &b)?;
            match combine(how, n, &other) {
                Some(Value::Int(0)) => {}
                Some(n) => out.push((e.clone(), n)),
                None => return Ok(stuck2(op, a, b)),
            }
        }
        Ok(Value::rich(Rich::Bag(sort, out.into())))
    }

    /// Evaluates `!s`.
    pub(crate) fn complement(&mut self, p: &Program, op: OpId, a: Value) -> Outcome<Value> {
        let sort = p.op(op).range;
        if let Some((Builtin::Complement, [s])) = parts(p, &a) {
            return Ok(s.clone());
        }
        if let Some(elements) = a.as_set().cloned()
            && let Some(all) = enumerate::values_of(self, p, element_sort(p, sort), MAX_FULL_SET)?
        {
            let full = Value::rich(Rich::Set(sort, elements));
            if let Some(v) = self.keep_if(p, sort, &all, &full, false)? {
                return self.set_of(p, sort, v.as_set().map_or_else(Vec::new, |e| e.to_vec()));
            }
        }
        Ok(stuck1(op, a))
    }

    /// Converts between sets and bags.
    pub(crate) fn convert(
        &mut self,
        p: &Program,
        builtin: Builtin,
        op: OpId,
        a: Value,
    ) -> Outcome<Value> {
        let sort = p.op(op).range;
        Ok(match (builtin, a.as_rich()) {
            (Builtin::SetToBag | Builtin::FSetToFBag, Some(Rich::Set(_, elements))) => Value::rich(
                Rich::Bag(sort, elements.iter().map(|e| (e.clone(), Value::Int(1))).collect()),
            ),
            (Builtin::BagToSet | Builtin::FBagToFSet, Some(Rich::Bag(_, entries))) => {
                Value::rich(Rich::Set(sort, entries.iter().map(|e| e.0.clone()).collect()))
            }
            _ => stuck1(op, a),
        })
    }

    /// Evaluates `a <= b`, or `a < b` if `proper`, on sets or bags.
    pub(crate) fn subset(
        &mut self,
        p: &Program,
        op: OpId,
        a: &Value,
        b: &Value,
        proper: bool,
    ) -> Outcome<Value> {
        if a == b {
            return Ok(Value::Bool(!proper));
        }
        let sort = p.op(op).first;
        let included = if let Some(elements) = a.as_set().cloned() {
            match p.sort(sort).member {
                None => None,
                Some(member) => {
                    let mut all = Some(Value::Bool(true));
                    for e in elements.iter() {
                        match self.contains(p, member, e, b)? {
                            Value::Bool(true) => {}
                            Value::Bool(false) => return Ok(Value::Bool(false)),
                            _ => all = None,
                        }
                    }
                    all
                }
            }
        } else if let (Some(x), Some(y)) = (a.as_bag().cloned(), b.as_bag().cloned()) {
            let mut all = Some(Value::Bool(true));
            for (e, n) in x.iter() {
                let mut m = Value::Int(0);
                for (f, k) in y.iter() {
                    match self.equal(p, element_sort(p, sort), e, f)? {
                        Value::Bool(true) => m = k.clone(),
                        Value::Bool(false) => {}
                        _ => all = None,
                    }
                }
                if all.is_some() && n > &m {
                    return Ok(Value::Bool(false));
                }
            }
            all
        } else if is_empty(a) {
            Some(Value::Bool(true))
        } else if let (Some(entries), Some(count)) = (a.as_bag().cloned(), p.sort(sort).count) {
            let mut all = Some(Value::Bool(true));
            for (e, n) in entries.iter() {
                let m = self.count(p, count, e, b)?;
                match self.less(p, basic::NAT, &m, n, false)? {
                    Value::Bool(false) => {}
                    Value::Bool(true) => return Ok(Value::Bool(false)),
                    _ => all = None,
                }
            }
            all
        } else if let (Some((Builtin::Complement, [s])), Some((Builtin::Complement, [t]))) =
            (parts(p, a), parts(p, b))
        {
            let (s, t) = (s.clone(), t.clone());
            return self.subset(p, op, &t, &s, proper);
        } else {
            match enumerate::included_comprehensions(self, p, sort, a, b)? {
                Some(Value::Bool(false)) => return Ok(Value::Bool(false)),
                included => included,
            }
        };
        match (included, proper) {
            (Some(v), false) => Ok(v),
            (Some(_), true) => {
                let equal = self.equal(p, sort, a, b)?;
                Ok(self.not(p, equal))
            }
            (None, _) => Ok(stuck2(op, a.clone(), b.clone())),
        }
    }

    /// Decides equality of sets or bags of which one is not data; `None` if undecided.
    pub(crate) fn equal_sets(
        &mut self,
        p: &Program,
        sort: SortId,
        a: &Value,
        b: &Value,
    ) -> Outcome<Option<Value>> {
        let finite = |v: &Value| v.as_set().is_some() || v.as_bag().is_some();
        let info = *p.sort(sort);
        if finite(a) && finite(b) {
            if a.as_set().is_some_and(|s| s.is_empty()) || b.as_set().is_some_and(|s| s.is_empty())
            {
                return Ok(Some(Value::Bool(false)));
            }
            if let (Some([x]), Some([y])) = (a.as_set().map(|s| &**s), b.as_set().map(|s| &**s)) {
                return self.equal(p, element_sort(p, sort), x, y).map(Some);
            }
            let one = self.subset(p, info.less_equal, a, b, false)?;
            if one.is_false() {
                return Ok(Some(one));
            }
            let other = self.subset(p, info.less_equal, b, a, false)?;
            if other.is_false() || one.is_true() && other.is_true() {
                return Ok(Some(other));
            }
            return Ok(None);
        }
        match (parts(p, a), parts(p, b)) {
            (Some((Builtin::Complement, [s])), Some((Builtin::Complement, [t]))) => {
                let (s, t) = (s.clone(), t.clone());
                self.equal(p, sort, &s, &t).map(Some)
            }
            (Some((Builtin::Complement, [s])), None) if finite(s) && finite(b) => {
                self.complements(p, sort, s, b)
            }
            (None, Some((Builtin::Complement, [s]))) if finite(s) && finite(a) => {
                self.complements(p, sort, s, a)
            }
            _ => enumerate::equal_comprehensions(self, p, sort, a, b),
        }
    }

    /// Decides whether a finite set is the complement of another one: both together contain each
    /// element once. `None` if undecided.
    fn complements(
        &mut self,
        p: &Program,
        sort: SortId,
        a: &Value,
        b: &Value,
    ) -> Outcome<Option<Value>> {
        let element = element_sort(p, sort);
        let (Some(x), Some(y)) = (a.as_set(), b.as_set()) else { return Ok(None) };
        if p.sort(element).user_equal.is_some() {
            return Ok(None);
        }
        let size = x.len() + y.len();
        let all = match enumerate::values_of(self, p, element, MAX_LISTED_SET)? {
            Some(all) => all,
            // The elements of both cannot be all elements of the sort.
            None if size < enumerate::least_size(p, element) => {
                return Ok(Some(Value::Bool(false)));
            }
            None => return Ok(None),
        };
        if size < all.len() {
            return Ok(Some(Value::Bool(false)));
        }
        if !a.is_data() || !b.is_data() || !all.iter().all(Value::is_data) {
            return Ok(None);
        }
        let disjoint = x.iter().all(|e| y.binary_search(e).is_err());
        Ok(Some(Value::Bool(size == all.len() && disjoint)))
    }
}

/// Returns the union of two sets of data; the first itself if it contains the second.
fn merge(sort: SortId, a: &Value, x: &[Value], y: &[Value]) -> Value {
    if y.len() * 8 < x.len() && y.iter().all(|e| x.binary_search(e).is_ok()) {
        return a.clone();
    }
    let mut out = Vec::with_capacity(x.len() + y.len());
    let (mut i, mut j) = (0, 0);
    while i < x.len() && j < y.len() {
        let order = x[i].cmp(&y[j]);
        out.push(if order == Ordering::Greater { y[j].clone() } else { x[i].clone() });
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
    }
    out.extend_from_slice(&x[i..]);
    out.extend_from_slice(&y[j..]);
    Value::rich(Rich::Set(sort, out.into()))
}

fn combine(how: Builtin, n: &Value, m: &Value) -> Option<Value> {
    if !n.is_number() || !m.is_number() {
        return None;
    }
    match how {
        Builtin::Union | Builtin::Add => number::binary(Builtin::Add, n, m),
        Builtin::Difference | Builtin::Subtract => {
            let d = number::binary(Builtin::Subtract, n, m)?;
            Some(if d.sign()? < 0 { Value::Int(0) } else { d })
        }
        _ => Some(n.min(m).clone()),
    }
}
