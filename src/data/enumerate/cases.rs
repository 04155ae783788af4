//! Cases of a function whose equations have conditions: bounds that only its equations imply.
//!
//! `sum n: Nat. at(b, n) == empty -> …` has a bound where the equations of `at` have: `0 <= n && n < N -> at(b, n) = …` and
//! `n >= N -> at(b, n) = invalid`. A call that cannot be evaluated, since an unknown decides which equation fits, is replaced by what the
//! equations say, case by case; each case assumes the condition of its equation and that those before it do not fit. What no equation
//! covers is a case as well, in which the call stays. An undecided `if` is treated alike.
//!
//! Done only where the search has nothing better to branch on, and to a limited depth, since functions may be recursive. Cost: one
//! evaluation of each condition and right-hand side, and of the whole condition for each case. The cases exclude each other, so no solution
//! comes twice by them. Compare narrowing with conditional rules (Hanus, 1994).

use super::{Bounds, Search, conjuncts};
use crate::builtins::compare::builtin_of;
use crate::builtins::number;
use crate::engine::code::{Check, Key, Leaf, Switch, Tree};
use crate::engine::compile::Program;
use crate::engine::machine::{Machine, Outcome, is_constructed};
use crate::signature::{Builtin, OpKind};
use crate::sort::basic;
use crate::value::Value;
use mu_base::Stage;

/// Splits on one path of a search.
const MAX_SPLITS: usize = 8;
/// Calls that are looked at for one split.
const MAX_CALLS: usize = 32;
/// Nodes of a condition that are looked at to find them.
const MAX_NODES: usize = 1 << 12;

/// A call with its cases: the condition, and what the call is under it; nothing if it stays.
pub(super) struct Split {
    pub call: Value,
    pub cases: Vec<(Value, Option<Value>)>,
}

impl Machine {
    /// A call in some conjuncts to split; one whose first case bounds an unknown that has no bound yet, if there is one.
    pub(super) fn split(&mut self, p: &Program, s: &Search, open: &[u32], parts: &[&Value], known: &[Bounds]) -> Outcome<Option<Split>> {
        if s.splits.len() >= MAX_SPLITS {
            return Ok(None);
        }
        let mut first = None;
        for call in calls(p, parts) {
            if s.splits.contains(&call) {
                continue;
            }
            let cases = match self.cases(p, &call) {
                Err(e) if e.stage == Stage::Limit => return Err(e),
                // What has no value, or no end, tells no cases; the search goes on as if it were not there.
                Err(_) | Ok(None) => continue,
                Ok(Some(cases)) => cases,
            };
            let mut given = Vec::new();
            if let Some((condition, _)) = cases.first() {
                conjuncts(p, condition, &mut given);
            }
            let bounded = self.one_point(p, &given, &|u| open.contains(&u)).is_some()
                || self.bounds(p, open, &given).iter().zip(known).any(|(new, old)| new.1.is_some() && old.1.is_none());
            if bounded {
                return Ok(Some(Split { call, cases }));
            }
            first.get_or_insert(Split { call, cases });
        }
        Ok(first)
    }

    /// The cases of a call; `None` if there is but one, or if they cannot be told.
    fn cases(&mut self, p: &Program, call: &Value) -> Outcome<Option<Vec<(Value, Option<Value>)>>> {
        let mut cases = Vec::new();
        if let Some((Builtin::If, [condition, then, other])) = builtin_of(p, call) {
            let not = self.not(p, condition.clone());
            return Ok(Some(vec![(condition.clone(), Some(then.clone())), (not, Some(other.clone()))]));
        }
        let Some(func) = user_function(p, call) else { return Ok(None) };
        let frame = self.stack.len();
        if let Some((_, args)) = call.as_app() {
            self.stack.extend_from_slice(args);
        }
        self.suspended += 1;
        let rest = self.tree_cases(p, &p.funcs[func as usize].tree, frame, Value::Bool(true), &mut cases);
        self.suspended -= 1;
        self.stack.truncate(frame);
        Ok(match rest? {
            Some(rest) if !cases.is_empty() => {
                if !rest.is_false() {
                    cases.push((rest, None));
                }
                Some(cases)
            }
            _ => None,
        })
    }

    /// Adds the cases of a tree under a condition. Returns under which condition none of its equations fits; `None` if that cannot be told.
    fn tree_cases(
        &mut self,
        p: &Program,
        tree: &Tree,
        base: usize,
        given: Value,
        out: &mut Vec<(Value, Option<Value>)>,
    ) -> Outcome<Option<Value>> {
        if given.is_false() {
            return Ok(Some(given));
        }
        match tree {
            Tree::Fail => Ok(Some(given)),
            Tree::Leaf(leaf) => {
                self.stack.truncate(base + leaf.height as usize);
                let fits = self.leaf_condition(p, leaf, base)?;
                if !fits.is_false() {
                    let value = self.eval(p, &leaf.rhs, base)?;
                    self.stack.truncate(base + leaf.height as usize);
                    let here = self.and(p, given.clone(), fits.clone());
                    if !here.is_false() {
                        out.push((here, Some(value)));
                    }
                }
                let not = self.not(p, fits);
                let given = self.and(p, given, not);
                self.tree_cases(p, &leaf.otherwise, base, given, out)
            }
            Tree::Switch(switch) => {
                self.stack.truncate(base + switch.height as usize);
                let slot = base + switch.slot as usize;
                let value = self.stack[slot].clone();
                if value.is_open() && !is_constructed(p, &value) {
                    return self.literal_cases(p, switch, &value, base, given, out);
                }
                match switch.cases.iter().find(|c| c.key.fits(&value)) {
                    Some(case) => {
                        if !case.fields.is_empty() {
                            self.push_fields(slot, &case.fields);
                        }
                        self.tree_cases(p, &case.tree, base, given, out)
                    }
                    None => self.tree_cases(p, &switch.default, base, given, out),
                }
            }
            Tree::Sequence(trees) => {
                let height = self.stack.len();
                let mut given = given;
                for tree in trees {
                    match self.tree_cases(p, tree, base, given, out)? {
                        Some(rest) => given = rest,
                        None => return Ok(None),
                    }
                    self.stack.truncate(height);
                }
                Ok(Some(given))
            }
        }
    }

    /// The cases of a switch over something open; only literals are gone through, constructors are branched on as such.
    fn literal_cases(
        &mut self,
        p: &Program,
        switch: &Switch,
        value: &Value,
        base: usize,
        given: Value,
        out: &mut Vec<(Value, Option<Value>)>,
    ) -> Outcome<Option<Value>> {
        let (mut others, mut left) = (given.clone(), Value::Bool(false));
        for case in &switch.cases {
            let is = match &case.key {
                Key::Int(n) => self.equal(p, basic::INT, value, &Value::Int(*n))?,
                Key::Bool(true) => value.clone(),
                Key::Bool(false) => self.not(p, value.clone()),
                _ => return Ok(None),
            };
            let here = self.and(p, given.clone(), is.clone());
            let Some(rest) = self.tree_cases(p, &case.tree, base, here, out)? else { return Ok(None) };
            self.stack.truncate(base + switch.height as usize);
            left = self.or(p, left, rest);
            let not = self.not(p, is);
            others = self.and(p, others, not);
        }
        let Some(rest) = self.tree_cases(p, &switch.default, base, others, out)? else { return Ok(None) };
        Ok(Some(self.or(p, left, rest)))
    }

    /// When an equation whose patterns fit is to be applied.
    fn leaf_condition(&mut self, p: &Program, leaf: &Leaf, base: usize) -> Outcome<Value> {
        let mut all = Value::Bool(true);
        for check in &leaf.checks {
            let holds = match check {
                Check::Equal(a, b, sort) => {
                    let (a, b) = (self.stack[base + *a as usize].clone(), self.stack[base + *b as usize].clone());
                    self.equal(p, *sort, &a, &b)?
                }
                Check::Number(slot, sort) => {
                    let v = self.stack[base + *slot as usize].clone();
                    if v.is_number() { Value::Bool(number::in_sort(&v, *sort)) } else { self.of_sort(p, *sort, &v)? }
                }
            };
            all = self.and(p, all, holds);
        }
        if let Some(condition) = &leaf.condition
            && !all.is_false()
        {
            let holds = self.eval(p, condition, base)?;
            all = self.and(p, all, holds);
        }
        // What is neither true nor false, and will not be, is no reason to apply an equation.
        Ok(if all.is_open() || all.is_true() { all } else { Value::Bool(false) })
    }
}

/// The function whose equations say what a call is.
fn user_function(p: &Program, call: &Value) -> Option<u32> {
    let (op, args) = call.as_app()?;
    if args.is_empty() || !call.is_open() || matches!(p.signature.op(op).kind, OpKind::Builtin(_)) {
        return None;
    }
    let info = p.op(op);
    let level = info.levels.iter().position(|n| *n as usize == args.len())?;
    info.funcs.get(level).copied().flatten()
}

/// Open calls in some values, outermost first.
fn calls(p: &Program, parts: &[&Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut work: Vec<&Value> = parts.iter().rev().copied().collect();
    let mut nodes = 0;
    while let Some(v) = work.pop() {
        nodes += 1;
        if nodes > MAX_NODES || out.len() >= MAX_CALLS {
            break;
        }
        if !v.is_open() {
            continue;
        }
        if let Some((_, args)) = v.as_app() {
            let splits = matches!(builtin_of(p, v), Some((Builtin::If, [_, _, _]))) || user_function(p, v).is_some();
            if splits && !out.contains(v) {
                out.push(v.clone());
            }
            work.extend(args.iter().rev());
        }
    }
    out
}
