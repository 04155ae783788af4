//! Elimination of existentially bound unknowns from a condition without enumerating them: condition -> an equivalent one in which they
//! do not occur.
//!
//! Rules, until none fits: an equation `x == e` gives `x` its value (the one-point rule), also where the equation is linear in `x`; a
//! number that is only bounded by linear comparisons is replaced by each of the least numbers that they allow (as in Cooper, "Theorem
//! proving in arithmetic without multiplication", 1972, for coefficients of 1); what excludes finitely many elements of an infinite sort
//! holds for some other; a disjunction is treated side by side. So `forall x: Nat. exists y: Nat. y == x + 1` becomes
//! `forall x: Nat. 0 <= x + 1`. Cost: linear in the condition for each unknown, times the sides of disjunctions, which are limited.

use super::conjuncts;
use crate::builtins::compare::builtin_of;
use crate::builtins::linear::{Linear, least, numeric_sort, occurs};
use crate::engine::compile::Program;
use crate::engine::machine::{Machine, Outcome};
use crate::signature::Builtin;
use crate::sort::{SortKind, basic};
use crate::value::Value;
use mu_base::ids::SortId;

/// Most cases (sides of disjunctions, least values) in one elimination.
const MAX_CASES: u32 = 32;

/// What the conjuncts with a number in them say of it.
struct Bounds {
    /// Least values allowed by one conjunct each.
    from: Vec<Value>,
    /// Whether there is an upper bound.
    above: bool,
}

impl Machine {
    /// The condition under which some values of `wanted` fulfil `condition`; `None` if no rule removes them.
    pub(super) fn eliminate(&mut self, p: &Program, condition: Value, wanted: &[u32]) -> Outcome<Option<Value>> {
        let mut cases = MAX_CASES;
        self.without_unknowns(p, condition, wanted, &mut cases)
    }

    fn without_unknowns(&mut self, p: &Program, condition: Value, wanted: &[u32], cases: &mut u32) -> Outcome<Option<Value>> {
        let mut trail = Vec::new();
        let result = self.eliminate_all(p, condition, wanted, cases, &mut trail);
        for u in trail {
            self.unknowns[u as usize].binding = None;
        }
        result
    }

    fn eliminate_all(
        &mut self,
        p: &Program,
        condition: Value,
        wanted: &[u32],
        cases: &mut u32,
        trail: &mut Vec<u32>,
    ) -> Outcome<Option<Value>> {
        let mut rest = condition;
        loop {
            let mut open = Vec::new();
            self.unresolved(&rest, &mut open);
            open.retain(|u| wanted.contains(u));
            if open.is_empty() {
                return Ok(Some(rest));
            }
            let whole = rest.clone();
            let mut parts = Vec::new();
            conjuncts(p, &whole, &mut parts);
            if let Some((u, value)) = self.solved(p, &parts, &open) {
                rest = self.with_value(p, u, value, &whole, trail)?;
                continue;
            }
            if let Some((u, bounds)) = open.iter().find_map(|&u| Some((u, self.bounds_of(p, &parts, u)?))) {
                let low = least(self.unknowns[u as usize].sort);
                if !bounds.above || bounds.from.is_empty() && low.is_none() {
                    // Far enough from all that the conjuncts say, there is a value.
                    let unknown = Value::Unknown(u);
                    rest = Value::Bool(true);
                    for part in parts.into_iter().filter(|part| !occurs(part, &unknown)) {
                        rest = self.and(p, rest, part.clone());
                    }
                    continue;
                }
                let candidates = bounds.from.into_iter().chain(low.map(Value::Int));
                return self.any_of(p, candidates.map(|v| (whole.clone(), Some((u, v)))).collect(), wanted, cases);
            }
            let split = parts.iter().enumerate().find_map(|(i, part)| match builtin_of(p, part) {
                Some((Builtin::Or, [a, b])) if open.iter().any(|u| occurs(part, &Value::Unknown(*u))) => Some((i, a.clone(), b.clone())),
                _ => None,
            });
            let Some((at, a, b)) = split else { return Ok(None) };
            let mut others = Value::Bool(true);
            for (i, part) in parts.into_iter().enumerate() {
                if i != at {
                    others = self.and(p, others, part.clone());
                }
            }
            let (a, b) = (self.and(p, a, others.clone()), self.and(p, b, others));
            return self.any_of(p, vec![(a, None), (b, None)], wanted, cases);
        }
    }

    /// The disjunction of conditions, each for a value of an unknown if one is given, without the wanted unknowns.
    fn any_of(&mut self, p: &Program, all: Vec<(Value, Option<(u32, Value)>)>, wanted: &[u32], cases: &mut u32) -> Outcome<Option<Value>> {
        let mut sum = Value::Bool(false);
        for (condition, value) in all {
            if *cases == 0 {
                return Ok(None);
            }
            *cases -= 1;
            let mut trail = Vec::new();
            let case = match value {
                Some((u, v)) => self.with_value(p, u, v, &condition, &mut trail),
                None => Ok(condition),
            };
            let case = case.and_then(|c| stacker::maybe_grow(256 << 10, 4 << 20, || self.without_unknowns(p, c, wanted, cases)));
            for u in trail {
                self.unknowns[u as usize].binding = None;
            }
            let Some(case) = case? else { return Ok(None) };
            sum = self.or(p, sum, case);
            if sum.is_true() {
                break;
            }
        }
        Ok(Some(sum))
    }

    /// A condition once an unknown has a value, which must be of its sort.
    pub(super) fn with_value(&mut self, p: &Program, u: u32, value: Value, condition: &Value, trail: &mut Vec<u32>) -> Outcome<Value> {
        let fits = self.of_sort(p, self.unknowns[u as usize].sort, &value)?;
        if fits.is_false() {
            return Ok(fits);
        }
        self.unknowns[u as usize].binding = Some(value);
        trail.push(u);
        let renewed = self.renew_condition(p, condition)?;
        let fits = self.renew(p, &fits)?;
        Ok(self.and(p, fits, renewed))
    }

    /// A conjunct that says what one of the unknowns is.
    fn solved(&self, p: &Program, parts: &[&Value], open: &[u32]) -> Option<(u32, Value)> {
        if let Some(found) = self.one_point(p, parts, &|u| open.contains(&u)) {
            return Some(found);
        }
        parts.iter().find_map(|part| {
            let Some((Builtin::Equal, [a, b])) = builtin_of(p, part) else { return None };
            let sort_of = |u: u32| self.unknowns[u as usize].sort;
            let numeric = part.as_app().is_some_and(|(op, _)| (basic::POS.0..=basic::REAL.0).contains(&p.op(op).first.0));
            let form = Linear::difference(p, a, b).filter(|_| numeric)?;
            form.terms.iter().enumerate().find_map(|(i, (atom, k))| {
                let Value::Unknown(u) = atom else { return None };
                let exact = sort_of(*u) == basic::REAL
                    || form.terms.iter().enumerate().all(|(j, t)| i == j || numeric_sort(p, &sort_of, &t.0) != basic::REAL);
                if !open.contains(u) || !exact || k.abs() != 1 {
                    return None;
                }
                let value = form.value(p, i, -k)?;
                (!occurs(&value, atom)).then_some((*u, value))
            })
        })
    }

    /// What is said of an unknown, if it only occurs in linear comparisons with coefficient 1 and in what excludes one value of it.
    fn bounds_of(&self, p: &Program, parts: &[&Value], u: u32) -> Option<Bounds> {
        let unknown = Value::Unknown(u);
        let sort_of = |u: u32| self.unknowns[u as usize].sort;
        if !unlimited(p, sort_of(u), &mut Vec::new()) {
            return None;
        }
        let mut bounds = Bounds { from: Vec::new(), above: false };
        let mut excluded = false;
        for part in parts.iter().filter(|part| occurs(part, &unknown)) {
            let (a, b, strict) = match builtin_of(p, part)? {
                (Builtin::Not, [equation]) => match builtin_of(p, equation)? {
                    (Builtin::Equal, [a, b]) if (*a == unknown && !occurs(b, &unknown)) || (*b == unknown && !occurs(a, &unknown)) => {
                        excluded = true;
                        continue;
                    }
                    _ => return None,
                },
                (Builtin::LessEqual, [a, b]) => (a, b, 0),
                (Builtin::Less, [a, b]) => (a, b, 1),
                _ => return None,
            };
            if !matches!(sort_of(u), basic::POS | basic::NAT | basic::INT) {
                return None;
            }
            // The comparison as a form that is at most 0.
            let mut form = Linear::difference(p, a, b)?;
            form.constant = form.constant.checked_add(strict)?;
            let at = form.terms.iter().position(|t| t.0 == unknown)?;
            let k = form.terms[at].1;
            let apart =
                |(j, t): (usize, &(Value, i64))| j == at || !occurs(&t.0, &unknown) && numeric_sort(p, &sort_of, &t.0) != basic::REAL;
            if !form.terms.iter().enumerate().all(apart) {
                return None;
            }
            match k {
                -1 => bounds.from.push(form.value(p, at, 1)?),
                1 => bounds.above = true,
                k if k > 0 => bounds.above = true,
                _ => bounds.from.push(unknown.clone()),
            }
        }
        // Between bounds on both sides, excluded values matter, and a lower bound must be a value itself.
        let between = bounds.above && (sort_of(u) != basic::INT || !bounds.from.is_empty());
        if between && (excluded || bounds.from.contains(&unknown)) { None } else { Some(bounds) }
    }
}

/// Whether a sort has infinitely many elements, whatever equations say.
fn unlimited(p: &Program, sort: SortId, path: &mut Vec<SortId>) -> bool {
    if p.sort(sort).user_equal.is_some() {
        return false;
    }
    match p.signature.sorts.kind(sort) {
        SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real | SortKind::List(_) => true,
        SortKind::Named(n) if p.signature.sorts.named[*n as usize].structured => {
            if path.contains(&sort) {
                return true;
            }
            path.push(sort);
            let constructors = &p.signature.sorts.named[*n as usize].constructors;
            let answer = constructors
                .iter()
                .filter(|c| p.op(**c).flags == 0)
                .any(|c| p.signature.domain_range(p.signature.op(*c).sort).0.iter().any(|d| unlimited(p, *d, path)));
            path.pop();
            answer
        }
        _ => false,
    }
}
