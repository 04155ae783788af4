//! Case analysis of a call that an unknown leaves undecided: the right-hand sides of its equations
//! with their conditions.
//!
//! The matching tree of the function is traversed as for rule selection, but continues below every
//! open switch and condition, and collects the leaves. The cases exclude each other, as equations
//! are tried in order. If no equation covers a case, the call stays unevaluated there. Constructors
//! are not split here: the search does that with unknowns of their sorts. Cost: one evaluation of
//! each condition and right-hand side.

use super::code::{Key, Leaf, LeafCheck, Switch, Tree};
use super::compile::Program;
use super::machine::{EvaluationMachine, Outcome, is_constructed};
use super::terms::Cases;
use crate::builtins::compare::builtin_of;
use crate::builtins::linear::least;
use crate::builtins::number;
use crate::signature::{Builtin, OpKind};
use crate::sort::basic;
use crate::value::Value;
use mu_base::ids::SortId;

impl EvaluationMachine {
    /// Returns the cases of a call; `None` if there is only one, or if they cannot be determined.
    pub(super) fn cases_of(&mut self, p: &Program, call: &Value) -> Outcome<Option<Cases>> {
        let mut cases = Vec::new();
        if let Some((Builtin::If, [condition, then, other])) = builtin_of(p, call) {
            let not = self.not(p, condition.clone());
            return Ok(Some(vec![
                (condition.clone(), Some(then.clone())),
                (not, Some(other.clone())),
            ]));
        }
        let Some(func) = user_function(p, call) else { return Ok(None) };
        let frame = self.stack.len();
        if let Some((_, args)) = call.as_app() {
            self.stack.extend_from_slice(args);
        }
        self.suspended += 1;
        let rest =
            self.tree_cases(p, &p.funcs[func as usize].tree, frame, Value::Bool(true), &mut cases);
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

    /// Adds the cases of a tree under a condition. Returns the condition under which none of its
    /// equations matches; `None` if that cannot be determined.
    fn tree_cases(
        &mut self,
        p: &Program,
        tree: &Tree,
        base: usize,
        given: Value,
        out: &mut Cases,
    ) -> Outcome<Option<Value>> {
        if given.is_false() {
            return Ok(Some(given));
        }
        match tree {
            Tree::Fail => Ok(Some(given)),
            Tree::Leaf(leaf) => {
                self.stack.truncate(base + leaf.height as usize);
                let applies = self.leaf_condition(p, leaf, base)?;
                if !applies.is_false() {
                    let value = self.eval(p, &leaf.rhs, base)?;
                    self.stack.truncate(base + leaf.height as usize);
                    let here = self.and(p, given.clone(), applies.clone());
                    if !here.is_false() {
                        out.push((here, Some(value)));
                    }
                }
                let not = self.not(p, applies);
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
                match switch.cases.iter().find(|c| c.key.matches(&value)) {
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

    /// Returns the cases of a switch over an open value; only literals are split here, constructors
    /// in the search.
    fn literal_cases(
        &mut self,
        p: &Program,
        switch: &Switch,
        value: &Value,
        base: usize,
        given: Value,
        out: &mut Cases,
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
            let Some(rest) = self.tree_cases(p, &case.tree, base, here, out)? else {
                return Ok(None);
            };
            self.stack.truncate(base + switch.height as usize);
            left = self.or(p, left, rest);
            let not = self.not(p, is);
            others = self.and(p, others, not);
        }
        let Some(rest) = self.tree_cases(p, &switch.default, base, others, out)? else {
            return Ok(None);
        };
        Ok(Some(self.or(p, left, rest)))
    }

    /// Returns the condition under which an equation with matching patterns applies.
    fn leaf_condition(&mut self, p: &Program, leaf: &Leaf, base: usize) -> Outcome<Value> {
        let mut all = Value::Bool(true);
        for check in &leaf.checks {
            let holds = match check {
                LeafCheck::Equal(a, b, sort) => {
                    let (a, b) = (
                        self.stack[base + *a as usize].clone(),
                        self.stack[base + *b as usize].clone(),
                    );
                    self.equal(p, *sort, &a, &b)?
                }
                LeafCheck::Number(slot, sort) => {
                    let v = self.stack[base + *slot as usize].clone();
                    if self.is_of_sort(p, &v, *sort) {
                        Value::Bool(true)
                    } else {
                        self.of_sort(p, *sort, &v)?
                    }
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
        // A condition that is neither true nor false, and will not become so, does not apply an
        // equation.
        Ok(if all.is_open() || all.is_true() { all } else { Value::Bool(false) })
    }

    /// Returns the condition that a value belongs to a sort, since numbers have one representation
    /// for all sorts.
    pub(super) fn of_sort(&mut self, p: &Program, sort: SortId, v: &Value) -> Outcome<Value> {
        if !matches!(sort, basic::POS | basic::NAT | basic::INT) {
            return Ok(Value::Bool(true));
        }
        if v.is_number() {
            return Ok(Value::Bool(number::in_sort(v, sort)));
        }
        if self.sort_of_number(p, v) != basic::REAL {
            return match least(sort) {
                Some(low) => self.less(p, basic::INT, &Value::Int(low), v, true),
                None => Ok(Value::Bool(true)),
            };
        }
        let below = self.prim1(p, Builtin::Floor, p.floor, v.clone())?;
        let whole = self.equal(p, basic::REAL, v, &below)?;
        let Some(low) = least(sort) else { return Ok(whole) };
        let large = self.less(p, basic::REAL, &Value::Int(low), v, true)?;
        Ok(self.and(p, whole, large))
    }
}

/// Returns the function with the equations that define a call.
pub(crate) fn user_function(p: &Program, call: &Value) -> Option<u32> {
    let (op, args) = call.as_app()?;
    if args.is_empty() || !call.is_open() || matches!(p.signature.op(op).kind, OpKind::Builtin(_)) {
        return None;
    }
    let info = p.op(op);
    let level = info.levels.iter().position(|n| *n as usize == args.len())?;
    info.funcs.get(level).copied().flatten()
}
