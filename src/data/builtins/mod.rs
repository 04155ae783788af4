//! Built-in operations on values.
//!
//! Each is total on normal forms: if an operation is undefined or an operand is undecided, the
//! result is the operation's own term. Cost: as the data structure suggests (lists linear where
//! they must be, sets and bags by binary search and merge).

pub mod compare;
pub mod function;
pub mod linear;
pub mod list;
pub mod number;
pub mod set;

use super::engine::compile::Program;
use super::engine::machine::{EvaluationMachine, Outcome};
use super::signature::Builtin;
use super::sort::SortKind;
use super::value::{IMPURE, Value};
use mu_base::ids::OpId;

/// Returns the term of an operation that cannot be evaluated.
pub(crate) fn stuck1(op: OpId, a: Value) -> Value {
    Value::app1(op, IMPURE, a)
}

/// Returns the term of an operation that cannot be evaluated.
pub(crate) fn stuck2(op: OpId, a: Value, b: Value) -> Value {
    Value::app2(op, IMPURE, a, b)
}

impl EvaluationMachine {
    /// Evaluates a unary built-in.
    pub(crate) fn prim1(
        &mut self,
        p: &Program,
        builtin: Builtin,
        op: OpId,
        a: Value,
    ) -> Outcome<Value> {
        use Builtin::*;
        match (builtin, &a) {
            (Not, Value::Bool(b)) => return Ok(Value::Bool(!b)),
            (NatToPos | IntToPos | RealToPos, Value::Int(1..))
            | (IntToNat | RealToNat, Value::Int(0..))
            | (RealToInt, Value::Int(_)) => {
                return Ok(a);
            }
            _ => {}
        }
        if self.paths.is_some()
            && a.is_open()
            && let Some(v) = self.unary_on_path(p, builtin, op, &a)
        {
            return Ok(v);
        }
        Ok(match builtin {
            Not => self.not(p, a),
            PosToNat | PosToInt | PosToReal | NatToInt | NatToReal | IntToReal => a,
            NatToPos | IntToPos | IntToNat | RealToPos | RealToNat | RealToInt | Abs | Negate
            | Succ | Pred | Floor | Ceil | Round | Sqrt => number::unary(builtin, &a)
                .or_else(|| number::simplify_unary(p, builtin, self.sort_of_number(p, &a), &a))
                .unwrap_or_else(|| stuck1(op, a)),
            Head | Tail | RHead | RTail => list::part(builtin, &a).unwrap_or_else(|| stuck1(op, a)),
            Pick => set::pick(&a).unwrap_or_else(|| stuck1(op, a)),
            Size => return self.size(p, op, a),
            FSetToSet | FBagToBag => set::retag(p, op, a),
            SetToBag | BagToSet | FSetToFBag | FBagToFSet => {
                return self.convert(p, builtin, op, a);
            }
            Complement => return self.complement(p, op, a),
            _ => stuck1(op, a),
        })
    }

    /// Evaluates a binary built-in.
    #[inline]
    pub(crate) fn prim2(
        &mut self,
        p: &Program,
        builtin: Builtin,
        op: OpId,
        a: Value,
        b: Value,
    ) -> Outcome<Value> {
        use Builtin::*;
        if let (Value::Int(x), Value::Int(y)) = (&a, &b) {
            let (x, y) = (*x, *y);
            match builtin {
                Equal => return Ok(Value::Bool(x == y)),
                NotEqual => return Ok(Value::Bool(x != y)),
                Less => return Ok(Value::Bool(x < y)),
                LessEqual => return Ok(Value::Bool(x <= y)),
                Greater => return Ok(Value::Bool(x > y)),
                GreaterEqual => return Ok(Value::Bool(x >= y)),
                Add => {
                    if let Some(n) = x.checked_add(y) {
                        return Ok(Value::Int(n));
                    }
                }
                Subtract => {
                    if let Some(n) = x.checked_sub(y) {
                        return Ok(Value::Int(n));
                    }
                }
                _ => {}
            }
        }
        // Free constants are data.
        if let (Equal, Value::Con(x), Value::Con(y)) = (builtin, &a, &b) {
            return Ok(Value::Bool(x == y));
        }
        self.prim2_general(p, builtin, op, a, b)
    }

    fn prim2_general(
        &mut self,
        p: &Program,
        builtin: Builtin,
        op: OpId,
        a: Value,
        b: Value,
    ) -> Outcome<Value> {
        use Builtin::*;
        if self.paths.is_some()
            && (a.is_open() || b.is_open())
            && let Some(v) = self.binary_on_path(p, builtin, &a, &b)
        {
            return Ok(v);
        }
        let first = p.op(op).first;
        let collection = |b: Builtin| {
            matches!(
                p.signature.sorts.kind(first),
                SortKind::Set(_) | SortKind::FSet(_) | SortKind::Bag(_) | SortKind::FBag(_)
            ) && matches!(b, Add | Subtract | Multiply | Less | LessEqual | Greater | GreaterEqual)
        };
        match builtin {
            Equal => self.equal_default(p, first, &a, &b),
            NotEqual => {
                let e = self.equal(p, first, &a, &b)?;
                Ok(self.not(p, e))
            }
            And => Ok(self.and(p, a, b)),
            Or => Ok(self.or(p, a, b)),
            Implies => {
                let n = self.not(p, a);
                Ok(self.or(p, n, b))
            }
            Union => self.union(p, op, a, b),
            Difference => self.difference(p, op, a, b),
            Intersection => self.intersection(p, op, a, b),
            Subset => self.subset(p, op, &a, &b, false),
            ProperSubset => self.subset(p, op, &a, &b, true),
            Add if collection(Add) => self.union(p, op, a, b),
            Subtract if collection(Subtract) => self.difference(p, op, a, b),
            Multiply if collection(Multiply) => self.intersection(p, op, a, b),
            Less | LessEqual if collection(builtin) => self.subset(p, op, &a, &b, builtin == Less),
            Greater | GreaterEqual if collection(builtin) => {
                self.subset(p, op, &b, &a, builtin == Greater)
            }
            Less => self.less(p, first, &a, &b, false),
            LessEqual => self.less(p, first, &a, &b, true),
            Greater => self.less(p, first, &b, &a, false),
            GreaterEqual => self.less(p, first, &b, &a, true),
            Max | Min => {
                let below = self.less(p, first, &a, &b, true)?;
                Ok(match below {
                    Value::Bool(below) => {
                        if below == (builtin == Max) {
                            b
                        } else {
                            a
                        }
                    }
                    _ => stuck2(op, a, b),
                })
            }
            Add | Subtract | Multiply | Divide | Div | Mod | Exp => {
                Ok(number::binary(builtin, &a, &b)
                    .unwrap_or_else(|| number::simplify(p, builtin, op, a, b)))
            }
            Cons => Ok(Value::cons(a, b)),
            Snoc => Ok(list::snoc(op, &a, b)),
            Concat => Ok(list::concat(op, a, b)),
            At => Ok(list::at(&a, &b).unwrap_or_else(|| stuck2(op, a, b))),
            In => self.contains(p, op, &a, &b),
            Count => self.count(p, op, &a, &b),
            SetInsert => self.set_insert(p, op, a, b),
            _ => Ok(stuck2(op, a, b)),
        }
    }
}
