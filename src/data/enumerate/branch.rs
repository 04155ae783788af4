//! The branches of a search: for each choice, the condition with one more thing known.
//!
//! Invariant: branches exclude each other, but for disjunctions and `exists`, after which repeated solutions are dropped (`Search::seen`). Unknowns that a
//! branch makes are gone after it. Cost: one evaluation of the remaining condition for each branch.

use super::super::builtins::compare::builtin_of;
use super::super::engine::compile::Program;
use super::super::engine::machine::{Machine, Outcome};
use super::super::signature::Builtin;
use super::super::value::Value;
use super::cases::Split;
use super::{Choice, Each, MAX_GROWING, Search, conjuncts, finite};
use ahash::AHashSet;
use mu_base::ids::{OpId, SortId};
use std::ops::ControlFlow;

/// The `i`th of the integers within half-open bounds, nearest to a bound or to zero first.
fn upwards(low: Option<i64>, high: Option<i64>, i: i64) -> i64 {
    match (low, high) {
        (Some(low), _) => low.saturating_add(i),
        (None, Some(high)) => high.saturating_sub(i),
        (None, None) if i % 2 == 0 => -(i / 2),
        (None, None) => i / 2 + 1,
    }
}

impl Machine {
    /// Searches on under each option of a choice.
    pub(super) fn branch(
        &mut self,
        p: &Program,
        s: &mut Search,
        choice: Choice,
        rest: &Value,
        each: &mut Each,
    ) -> Outcome<ControlFlow<()>> {
        match choice {
            Choice::Bool(u) => self.branch_values(p, s, u, &[Value::Bool(true), Value::Bool(false)], rest, each),
            Choice::Values(u, values) => self.branch_values(p, s, u, &values, rest, each),
            Choice::Interval(u, low, high) => {
                for n in low..=high {
                    self.count_growth(p, s, u, rest, 64)?;
                    if self.bind(p, s, u, Value::Int(n), rest, each)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            Choice::Upwards(u, low, high) => {
                let mut i = 0i64;
                while (i as u64) < s.span {
                    self.count_growth(p, s, u, rest, 1)?;
                    if self.bind(p, s, u, Value::Int(upwards(low, high, i)), rest, each)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    i += 1;
                }
                s.cut = true;
                Ok(ControlFlow::Continue(()))
            }
            Choice::Constructors(u, constructors) => self.branch_constructors(p, s, u, &constructors, rest, each),
            Choice::List(u, element) => self.branch_list(p, s, u, element, rest, each),
            Choice::Member(element, sort, candidates) => {
                for candidate in candidates {
                    let equal = self.equal(p, sort, &element, &candidate)?;
                    let condition = self.and(p, equal, rest.clone());
                    if self.search(p, s, condition, each)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            Choice::Cases(split) => self.branch_cases(p, s, split, rest, each),
            Choice::Everywhere(part) => {
                let others = self.without(p, rest, &|other| *other == part);
                let all = self.for_each_element(p, &part)?;
                let condition = self.and(p, others, all);
                self.search(p, s, condition, each)
            }
            Choice::Witness(part) => self.branch_witness(p, s, &part, rest, each),
            Choice::Either(a, b) => self.branch_either(p, s, [&a, &b], rest, each),
        }
    }

    fn branch_values(
        &mut self,
        p: &Program,
        s: &mut Search,
        u: u32,
        values: &[Value],
        rest: &Value,
        each: &mut Each,
    ) -> Outcome<ControlFlow<()>> {
        for v in values {
            if self.bind(p, s, u, v.clone(), rest, each)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn branch_constructors(
        &mut self,
        p: &Program,
        s: &mut Search,
        u: u32,
        constructors: &[OpId],
        rest: &Value,
        each: &mut Each,
    ) -> Outcome<ControlFlow<()>> {
        let count = self.unknowns.len();
        let growing = self.is_recursive(p, self.unknowns[u as usize].sort);
        for &c in constructors {
            if growing {
                self.count_growth(p, s, u, rest, 1)?;
            }
            let (domain, _) = p.signature.domain_range(p.signature.op(c).sort);
            let args: Vec<Value> = domain.iter().map(|&d| self.unknown(d)).collect();
            if p.op(c).flags != 0 && s.seen.is_none() {
                s.seen = Some(AHashSet::new());
            }
            let v = if p.op(c).flags == 0 && !args.is_empty() { Value::app(c, 0, args) } else { self.apply_op(p, c, args)? };
            s.growing += u32::from(growing);
            let flow = self.bind(p, s, u, v, rest, each);
            s.growing -= u32::from(growing);
            self.unknowns.truncate(count);
            if flow?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn branch_list(
        &mut self,
        p: &Program,
        s: &mut Search,
        u: u32,
        element: SortId,
        rest: &Value,
        each: &mut Each,
    ) -> Outcome<ControlFlow<()>> {
        self.count_growth(p, s, u, rest, 1)?;
        let sort = self.unknowns[u as usize].sort;
        if self.bind(p, s, u, Value::Nil(sort), rest, each)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let count = self.unknowns.len();
        let (head, tail) = (self.unknown(element), self.unknown(sort));
        s.growing += 1;
        let flow = self.bind(p, s, u, Value::cons(head, tail), rest, each);
        s.growing -= 1;
        self.unknowns.truncate(count);
        flow
    }

    fn branch_cases(&mut self, p: &Program, s: &mut Search, split: Split, rest: &Value, each: &mut Each) -> Outcome<ControlFlow<()>> {
        let Split { call, cases } = split;
        s.splits.push(call.clone());
        for (given, value) in cases {
            let stays = value.is_none();
            self.assumed = value.map(|v| (call.clone(), v));
            let rest = if stays { Ok(rest.clone()) } else { self.renew_condition(p, rest) };
            self.assumed = None;
            let condition = self.and(p, given, rest?);
            if self.search(p, s, condition, each)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        s.splits.pop();
        Ok(ControlFlow::Continue(()))
    }

    fn branch_witness(&mut self, p: &Program, s: &mut Search, part: &Value, rest: &Value, each: &mut Each) -> Outcome<ControlFlow<()>> {
        s.seen.get_or_insert_default();
        let others = self.without(p, rest, &|other| other == part);
        let count = self.unknowns.len();
        let body = self.opened(p, part)?;
        let condition = self.and(p, others, body);
        s.witnesses += 1;
        let flow = self.search(p, s, condition, each);
        s.witnesses -= 1;
        self.unknowns.truncate(count);
        flow
    }

    fn branch_either(
        &mut self,
        p: &Program,
        s: &mut Search,
        sides: [&Value; 2],
        rest: &Value,
        each: &mut Each,
    ) -> Outcome<ControlFlow<()>> {
        s.seen.get_or_insert_default();
        // The disjunction itself becomes true where its chosen side is assumed.
        let others =
            self.without(p, rest, &|part| matches!(builtin_of(p, part), Some((Builtin::Or, [x, y])) if x == sides[0] && y == sides[1]));
        let first = s.whole.is_none();
        s.whole.get_or_insert_with(|| rest.clone());
        for side in sides {
            let side = self.renew(p, side)?;
            let condition = self.and(p, side, others.clone());
            if self.search(p, s, condition, each)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if first {
            s.whole = None;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The conjuncts but those.
    fn without(&mut self, p: &Program, rest: &Value, those: &dyn Fn(&Value) -> bool) -> Value {
        let mut parts = Vec::new();
        conjuncts(p, rest, &mut parts);
        let mut all = Value::Bool(true);
        for part in parts {
            if !those(part) {
                all = self.and(p, all, part.clone());
            }
        }
        all
    }

    /// A condition with what unknowns have become: each conjunct is evaluated as if it stood alone, however many before it stay open.
    pub(super) fn renew_condition(&mut self, p: &Program, condition: &Value) -> Outcome<Value> {
        let mut parts = Vec::new();
        conjuncts(p, condition, &mut parts);
        let mut all = Value::Bool(true);
        for part in parts {
            let part = self.renew(p, part)?;
            if part.is_false() {
                return Ok(part);
            }
            all = self.and(p, all, part);
        }
        Ok(all)
    }

    fn bind(&mut self, p: &Program, s: &mut Search, u: u32, v: Value, rest: &Value, each: &mut Each) -> Outcome<ControlFlow<()>> {
        self.unknowns[u as usize].binding = Some(v);
        let result = self.renew_condition(p, rest).and_then(|rest| self.search(p, s, rest, each));
        self.unknowns[u as usize].binding = None;
        result
    }

    fn count_growth(&mut self, p: &Program, s: &mut Search, u: u32, rest: &Value, allowance: u64) -> Outcome<()> {
        s.grown += 1;
        if s.grown > self.growth_limit.saturating_mul(allowance) || s.growing > MAX_GROWING {
            let e = self.unbounded(p, s, &[u], rest);
            return Err(Box::new(e.note(format!("gave up after {} candidates", s.grown - 1))));
        }
        Ok(())
    }

    /// Whether terms of a sort can grow without end.
    pub(super) fn is_recursive(&mut self, p: &Program, sort: SortId) -> bool {
        if let Some(&known) = self.recursive.get(&sort) {
            return known;
        }
        let mut path = Vec::new();
        let answer = finite::infinite(p, sort, &mut path);
        self.recursive.insert(sort, answer);
        answer
    }
}
