//! Lists of shared cells: constant-time cons, head and tail; everything else walks the cells in a loop.

use super::stuck2;
use crate::base::ids::OpId;
use crate::data::engine::compile::Program;
use crate::data::engine::machine::{Machine, Outcome};
use crate::data::signature::Builtin;
use crate::data::sort::SortKind;
use crate::data::value::Value;

/// `head`, `tail`, `rhead`, `rtail` where defined.
pub fn part(builtin: Builtin, list: &Value) -> Option<Value> {
    let Value::Cons(cell) = list else { return None };
    match builtin {
        Builtin::Head => Some(cell.head.clone()),
        Builtin::Tail => Some(cell.tail.clone()),
        Builtin::RHead => list.list_elements()?.pop(),
        _ => {
            let mut elements = list.list_elements()?;
            elements.pop();
            Some(rebuild(elements, end(list)?))
        }
    }
}

fn end(list: &Value) -> Option<Value> {
    let mut at = list;
    while let Value::Cons(cell) = at {
        at = &cell.tail;
    }
    matches!(at, Value::Nil(_)).then(|| at.clone())
}

/// The elements in front of a list.
pub fn rebuild(elements: Vec<Value>, tail: Value) -> Value {
    elements.into_iter().rev().fold(tail, |list, e| Value::cons(e, list))
}

/// `list <| element`.
pub fn snoc(list: &Value, element: &Value) -> Option<Value> {
    let elements = list.list_elements()?;
    Some(rebuild(elements, Value::cons(element.clone(), end(list)?)))
}

/// `a ++ b`.
pub fn concat(a: &Value, b: &Value) -> Option<Value> {
    if matches!(b, Value::Nil(_)) {
        return Some(a.clone());
    }
    Some(rebuild(a.list_elements()?, b.clone()))
}

/// `list . index`.
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

impl Machine {
    /// `#` of a list, set or bag.
    pub(in crate::data) fn size(&mut self, p: &Program, op: OpId, a: Value) -> Outcome<Value> {
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
            // Some cells in front of an unknown end count at once.
            tail if n > 0 && matches!(p.signature.sorts.kind(p.op(op).first), SortKind::List(_)) => {
                stuck2(p.add, super::stuck1(op, tail.clone()), Value::Int(n))
            }
            _ => super::stuck1(op, a),
        })
    }
}
