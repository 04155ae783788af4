//! Images of values under a permutation of constructors.
//!
//! In: a normal form, and pairs of constants `(from, to)` of one sort each. Out: the normal form
//! with the constants replaced, in canonical shape again (elements of sets, bags and tables are
//! sorted). `None` for closures, which contain constants in code. Cost: linear in the value, O(n
//! log n) with sets. Invariant: images compose as the permutations do.

use super::super::value::{Rich, Value};
use super::Engine;
use mu_base::ids::OpId;
use std::rc::Rc;

impl Engine {
    /// Returns the image of a value under a permutation of constants. `None` if a part has no
    /// image: an unknown, a closure, or a function that the permutation moves.
    pub fn image(&self, value: &Value, map: &[(OpId, OpId)]) -> Option<Value> {
        image(value, map)
    }
}

/// Returns the image of a constant under a permutation, given by the constants that it moves.
pub fn image_of(map: &[(OpId, OpId)], op: OpId) -> OpId {
    map.iter().find(|m| m.0 == op).map_or(op, |m| m.1)
}

fn image(value: &Value, map: &[(OpId, OpId)]) -> Option<Value> {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        Some(match value {
            Value::Bool(_) | Value::Int(_) | Value::Nil(_) => value.clone(),
            Value::Con(op) => Value::Con(image_of(map, *op)),
            Value::Sym(op) if map.iter().all(|m| m.0 != *op) => value.clone(),
            Value::Sym(_) | Value::Unknown(_) => return None,
            Value::App1(_) | Value::App2(_) | Value::App3(_) | Value::AppN(_) => {
                let (op, args) = value.as_app()?;
                let args: Vec<Value> = args.iter().map(|a| image(a, map)).collect::<Option<_>>()?;
                // The flags hold properties of the node other than its arguments.
                let extra = value.flags() & super::super::value::IMPURE;
                Value::app(op, extra, args)
            }
            Value::Cons(_) => {
                let (mut heads, mut at) = (Vec::new(), value);
                while let Value::Cons(cell) = at {
                    heads.push(image(&cell.head, map)?);
                    at = &cell.tail;
                }
                let end = image(at, map)?;
                heads.into_iter().rev().fold(end, |tail, head| Value::cons(head, tail))
            }
            Value::Rich(node) => match &node.kind {
                Rich::Integer(_) | Rich::Rational(_) => value.clone(),
                Rich::Set(sort, elements) => {
                    let mut elements: Vec<Value> =
                        elements.iter().map(|e| image(e, map)).collect::<Option<_>>()?;
                    elements.sort();
                    Value::rich(Rich::Set(*sort, elements.into()))
                }
                Rich::Bag(sort, elements) => Value::rich(Rich::Bag(*sort, pairs(elements, map)?)),
                Rich::Table(sort, base, entries) => {
                    Value::rich(Rich::Table(*sort, image(base, map)?, pairs(entries, map)?))
                }
                Rich::Closure(_) => return None,
                Rich::Apply(head, args) => {
                    let args: Vec<Value> =
                        args.iter().map(|a| image(a, map)).collect::<Option<_>>()?;
                    Value::rich(Rich::Apply(image(head, map)?, args.into()))
                }
            },
        })
    })
}

fn pairs(entries: &[(Value, Value)], map: &[(OpId, OpId)]) -> Option<Rc<[(Value, Value)]>> {
    let one = |(k, v): &(Value, Value)| Some((image(k, map)?, image(v, map)?));
    let mut entries: Vec<(Value, Value)> = entries.iter().map(one).collect::<Option<_>>()?;
    entries.sort();
    Some(entries.into())
}
