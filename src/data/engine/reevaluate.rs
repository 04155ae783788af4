//! Re-evaluation of open values after bindings of unknowns.
//!
//! In: a value with unknowns. Out: its current value; parts without unknowns are shared with the
//! old one. The connectives and `if` stay lazy, and so do lazy arguments of functions. Cost: one
//! evaluation of each open node.

use super::compile::Program;
use super::machine::{EvaluationMachine, Outcome};
use crate::signature::{Builtin, OpKind};
use crate::value::{Closure, OPEN, Rich, Value};
use mu_base::ids::OpId;
use std::rc::Rc;

impl EvaluationMachine {
    /// Re-evaluates an open value with the current bindings of unknowns.
    pub(crate) fn reevaluate(&mut self, p: &Program, v: &Value) -> Outcome<Value> {
        if !v.is_open() {
            return Ok(v.clone());
        }
        if let Some((call, value)) = &self.assumed
            && call == v
        {
            return Ok(value.clone());
        }
        stacker::maybe_grow(128 << 10, 4 << 20, || self.reevaluate_open(p, v))
    }

    fn reevaluate_all(&mut self, p: &Program, vs: &[Value]) -> Outcome<Vec<Value>> {
        vs.iter().map(|v| self.reevaluate(p, v)).collect()
    }

    fn reevaluate_open(&mut self, p: &Program, v: &Value) -> Outcome<Value> {
        match v {
            Value::Unknown(u) => match self.unknowns.binding(*u).cloned() {
                Some(b) => self.reevaluate(p, &b),
                None => Ok(v.clone()),
            },
            Value::Cons(_) => {
                let mut heads = Vec::new();
                let mut at = v;
                while let Value::Cons(cell) = at {
                    if cell.flags & OPEN == 0 {
                        break;
                    }
                    heads.push(self.reevaluate(p, &cell.head)?);
                    at = &cell.tail;
                }
                let mut list = self.reevaluate(p, at)?;
                while let Some(head) = heads.pop() {
                    list = Value::cons(head, list);
                }
                Ok(list)
            }
            Value::Rich(node) => match &node.kind {
                Rich::Set(sort, elements) => {
                    let elements = self.reevaluate_all(p, elements)?;
                    self.set_of(p, *sort, elements)
                }
                Rich::Bag(sort, entries) => {
                    let mut bag = Value::rich(Rich::Bag(*sort, Rc::new([])));
                    for (e, n) in entries.iter() {
                        let (e, n) = (self.reevaluate(p, e)?, self.reevaluate(p, n)?);
                        bag = self.bag_add(p, *sort, e, n, bag)?;
                    }
                    Ok(bag)
                }
                Rich::Closure(c) => {
                    let captures = self.reevaluate_all(p, &c.captures)?.into();
                    self.binder(p, Closure { lambda: c.lambda.clone(), captures })
                }
                Rich::Table(sort, base, entries) => {
                    let mut f = self.reevaluate(p, base)?;
                    let entries = entries.clone();
                    for (k, v) in entries.iter() {
                        let (k, v) = (self.reevaluate(p, k)?, self.reevaluate(p, v)?);
                        f = self.update_at(p, *sort, f, k, v)?;
                    }
                    Ok(f)
                }
                Rich::Apply(head, args) => {
                    let head = self.reevaluate(p, head)?;
                    let args = self.reevaluate_all(p, args)?;
                    self.apply_value(p, head, args)
                }
                Rich::Integer(_) | Rich::Rational(_) => Ok(v.clone()),
            },
            Value::Bool(_) | Value::Int(_) | Value::Nil(_) => Ok(v.clone()),
            Value::Con(_)
            | Value::Sym(_)
            | Value::App1(_)
            | Value::App2(_)
            | Value::App3(_)
            | Value::AppN(_) => {
                let (op, args) = v.application();
                self.reevaluate_app(p, op, args)
            }
        }
    }

    fn reevaluate_app(&mut self, p: &Program, op: OpId, args: &[Value]) -> Outcome<Value> {
        if let (OpKind::Builtin(b), [first, rest @ ..]) = (&p.signature.op(op).kind, args) {
            // Lazy operations: if the first operand decides, the others are not evaluated.
            match (b, rest) {
                (Builtin::And | Builtin::Or, [second]) => {
                    let decides = *b == Builtin::Or;
                    let a = self.reevaluate(p, first)?;
                    if let Value::Bool(x) = a {
                        return if x == decides { Ok(a) } else { self.reevaluate(p, second) };
                    }
                    self.needs(&a)?;
                    let open = u32::from(a.is_open());
                    self.suspended += open;
                    let second = self.reevaluate(p, second);
                    self.suspended -= open;
                    let second = second?;
                    return Ok(if decides {
                        self.or(p, a, second)
                    } else {
                        self.and(p, a, second)
                    });
                }
                (Builtin::If, [then, other]) => {
                    let c = self.reevaluate(p, first)?;
                    if let Value::Bool(x) = c {
                        return self.reevaluate(p, if x { then } else { other });
                    }
                    self.needs(&c)?;
                    let open = u32::from(c.is_open());
                    self.suspended += open;
                    let parts =
                        self.reevaluate(p, then).and_then(|a| Ok((a, self.reevaluate(p, other)?)));
                    self.suspended -= open;
                    let (a, b) = parts?;
                    return self.if_value(p, op, c, a, b);
                }
                _ => {}
            }
        }
        if let Some(value) = self.reevaluate_lazy(p, op, args)? {
            return Ok(value);
        }
        let args = self.reevaluate_all(p, args)?;
        if p.op(op).flags == 0 {
            return Ok(Value::app(op, 0, args));
        }
        self.apply_op(p, op, args)
    }
}
