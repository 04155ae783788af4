//! Lists of shared cells: cons, head and tail in constant time; all other operations traverse the
//! cells in a loop.

use super::compare::builtin_of;
use super::stuck2;
use crate::engine::compile::Program;
use crate::engine::machine::{EvaluationMachine, Outcome};
use crate::signature::Builtin;
use crate::sort::SortKind;
use crate::value::Value;
use mu_base::ids::OpId;

/// Evaluates `head`, `tail`, `rhead`, `rtail`; `None` if undefined.
pub fn part(builtin: Builtin, list: &Value) -> Option<Value> {
    let Value::Cons(cell) = list else { return None };
    match builtin {
        Builtin::Head => Some(cell.head.clone()),
        Builtin::Tail => Some(cell.tail.clone()),
        Builtin::RHead => list.list_elements()?.pop(),
        _ => {
            let (mut elements, end) = prefix(list);
            elements.pop();
            matches!(end, Value::Nil(_)).then(|| rebuild(elements, end.clone()))
        }
    }
}

/// Prepends elements to a list.
pub fn rebuild(elements: Vec<Value>, tail: Value) -> Value {
    elements.into_iter().rev().fold(tail, |list, e| Value::cons(e, list))
}

/// Returns the known elements at the front of a list, and the tail behind them.
fn prefix(list: &Value) -> (Vec<Value>, &Value) {
    let (mut elements, mut at) = (Vec::new(), list);
    while let Value::Cons(cell) = at {
        elements.push(cell.head.clone());
        at = &cell.tail;
    }
    (elements, at)
}

/// Evaluates `list <| element`; builds the term of the operation if the end of the list is unknown.
pub fn snoc(op: OpId, list: &Value, element: Value) -> Value {
    let (elements, end) = prefix(list);
    let last = match end {
        Value::Nil(_) => Value::cons(element, end.clone()),
        _ => stuck2(op, end.clone(), element),
    };
    rebuild(elements, last)
}

/// Evaluates `a ++ b`; builds the term of the operation if the end of `a` is unknown.
pub fn concat(op: OpId, a: Value, b: Value) -> Value {
    if matches!(b, Value::Nil(_)) {
        return a;
    }
    let (elements, end) = prefix(&a);
    let rest = match end {
        Value::Nil(_) => b,
        _ => stuck2(op, end.clone(), b),
    };
    rebuild(elements, rest)
}

/// Evaluates `list . index`. `None` if the index is not a small number, or the list, as far as it
/// is known, ends before it.
pub fn at(list: &Value, index: &Value) -> Option<Value> {
    let Value::Int(mut i) = *index else { return None };
    let mut at = list;
    while let Value::Cons(cell) = at {
        if i == 0 {
            return Some(cell.head.clone());
        }
        i -= 1;
        at = &cell.tail;
    }
    None
}

impl EvaluationMachine {
    /// Evaluates `#` of a list, set or bag.
    pub(crate) fn size(&mut self, p: &Program, op: OpId, a: Value) -> Outcome<Value> {
        match builtin_of(p, &a) {
            Some((Builtin::Concat, [x, y])) => {
                let (x, y) = stacker::maybe_grow(64 << 10, 1 << 20, || {
                    Ok::<_, Box<_>>((self.size(p, op, x.clone())?, self.size(p, op, y.clone())?))
                })?;
                return Ok(super::number::binary(Builtin::Add, &x, &y)
                    .unwrap_or_else(|| stuck2(p.add, x, y)));
            }
            Some((Builtin::Snoc, [x, _])) => {
                let x = stacker::maybe_grow(64 << 10, 1 << 20, || self.size(p, op, x.clone()))?;
                return Ok(stuck2(p.add, x, Value::Int(1)));
            }
            _ => {}
        }
        if let Some(elements) = a.as_set() {
            return Ok(Value::Int(elements.len() as i64));
        }
        if let Some(entries) = a.as_bag() {
            let mut sum = Value::Int(0);
            for (_, n) in entries.iter() {
                match super::number::binary(Builtin::Add, &sum, n) {
                    Some(s) => sum = s,
                    None => return Ok(super::stuck1(op, a.clone())),
                }
            }
            return Ok(sum);
        }
        let mut n = 0i64;
        let mut at = &a;
        while let Value::Cons(cell) = at {
            n += 1;
            at = &cell.tail;
        }
        Ok(match at {
            Value::Nil(_) => Value::Int(n),
            // Counts the cells in front of an unknown end.
            tail if n > 0
                && matches!(p.signature.sorts.kind(p.op(op).first), SortKind::List(_)) =>
            {
                let tail = self.size(p, op, tail.clone())?;
                stuck2(p.add, tail, Value::Int(n))
            }
            _ => super::stuck1(op, a),
        })
    }
}
