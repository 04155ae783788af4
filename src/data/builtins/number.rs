//! Numbers: unbounded integers and exact fractions, one representation for all sorts.

use super::compare::builtin_of;
use super::stuck2;
use crate::engine::compile::Program;
use crate::signature::{Builtin, OpKind};
use crate::sort::basic;
use crate::value::{Rich, Value};
use mu_base::ids::{OpId, SortId};
use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Limit on the size in bits of the result of `exp`; beyond it, the term is not evaluated.
const MAX_POWER_BITS: u64 = 1 << 24;

/// True if a literal number belongs to a basic sort (or a narrower one).
pub fn in_sort(v: &Value, sort: SortId) -> bool {
    match v.sign() {
        None => false,
        Some(sign) => {
            let integer = !matches!(v.as_rich(), Some(Rich::Rational(_)));
            match sort {
                basic::POS => integer && sign > 0,
                basic::NAT => integer && sign >= 0,
                basic::INT => integer,
                _ => true,
            }
        }
    }
}

/// Evaluates a unary operation on a literal; `None` if undefined.
pub fn unary(builtin: Builtin, a: &Value) -> Option<Value> {
    use Builtin::*;
    if !a.is_number() {
        return None;
    }
    let keep = |sort| in_sort(a, sort).then(|| a.clone());
    let step = |by: i64| match a {
        Value::Int(n) if n.checked_add(by).is_some() => Some(Value::Int(n + by)),
        _ => Some(Value::rational(a.to_rational()? + BigRational::from(BigInt::from(by)))),
    };
    match builtin {
        NatToPos | IntToPos | RealToPos => keep(basic::POS),
        IntToNat | RealToNat => keep(basic::NAT),
        RealToInt => keep(basic::INT),
        Abs => Some(if a.sign()? < 0 { unary(Negate, a)? } else { a.clone() }),
        Negate => match a {
            Value::Int(n) if *n != i64::MIN => Some(Value::Int(-n)),
            _ => Some(Value::rational(-a.to_rational()?)),
        },
        Succ => step(1),
        Pred => step(-1),
        Sqrt => a.to_integer().filter(|n| !n.is_negative()).map(|n| Value::integer(n.sqrt())),
        Floor => Some(Value::rational(a.to_rational()?.floor())),
        Ceil => Some(Value::rational(a.to_rational()?.ceil())),
        Round => {
            Some(Value::rational((a.to_rational()? + BigRational::new(1.into(), 2.into())).floor()))
        }
        _ => None,
    }
}

/// Evaluates a binary operation on literals; `None` if undefined.
pub fn binary(builtin: Builtin, a: &Value, b: &Value) -> Option<Value> {
    use Builtin::*;
    if let (Value::Int(x), Value::Int(y)) = (a, b) {
        let fast = match builtin {
            Add => x.checked_add(*y),
            Subtract => x.checked_sub(*y),
            Multiply => x.checked_mul(*y),
            Div if *y > 0 => Some(x.div_euclid(*y)),
            Mod if *y > 0 => Some(x.rem_euclid(*y)),
            _ => None,
        };
        if let Some(n) = fast {
            return Some(Value::Int(n));
        }
    }
    if !a.is_number() || !b.is_number() {
        return None;
    }
    if let (Some(x), Some(y)) = (a.to_integer(), b.to_integer()) {
        let exact = match builtin {
            Add => x + y,
            Subtract => x - y,
            Multiply => x * y,
            Div if y.is_positive() => x.div_floor(&y),
            Mod if y.is_positive() => x.mod_floor(&y),
            Exp => return power(BigRational::from(x), &y),
            Divide if !y.is_zero() => return Some(Value::rational(BigRational::new(x, y))),
            _ => return None,
        };
        return Some(Value::integer(exact));
    }
    let (x, y) = (a.to_rational()?, b.to_rational()?);
    Some(Value::rational(match builtin {
        Add => x + y,
        Subtract => x - y,
        Multiply => x * y,
        Divide if !y.is_zero() => x / y,
        Exp if y.is_integer() => return power(x, &y.to_integer()),
        _ => return None,
    }))
}

fn power(base: BigRational, exponent: &BigInt) -> Option<Value> {
    if exponent.is_zero() || base.is_one() {
        return Some(Value::Int(1));
    }
    if base.is_zero() {
        return exponent.is_positive().then_some(Value::Int(0));
    }
    if base == -BigRational::one() {
        return Some(Value::Int(if exponent.is_even() { 1 } else { -1 }));
    }
    let n = exponent.abs().to_u32()?;
    let bits = base.numer().bits().max(base.denom().bits());
    if bits.saturating_mul(u64::from(n)) > MAX_POWER_BITS {
        return None;
    }
    let result = num_traits::pow(base, n as usize);
    Some(Value::rational(if exponent.is_negative() { result.recip() } else { result }))
}

/// Simplifies a unary operation on a term without a value if the rule holds for every number of the
/// term's sort: inverses cancel, and operations that are the identity on the sort vanish.
pub fn simplify_unary(p: &Program, builtin: Builtin, sort: SortId, a: &Value) -> Option<Value> {
    use Builtin::*;
    let within =
        |widest: SortId| sort.number() >= basic::POS.number() && sort.number() <= widest.number();
    let unchanged = match builtin {
        NatToPos | IntToPos | RealToPos => within(basic::POS),
        IntToNat | RealToNat | Abs => within(basic::NAT),
        RealToInt | Floor | Ceil | Round => within(basic::INT),
        _ => false,
    };
    if unchanged {
        return Some(a.clone());
    }
    let inverse = match builtin {
        Succ => Pred,
        Pred => Succ,
        Negate => Negate,
        _ => return None,
    };
    match builtin_of(p, a) {
        Some((inner, [x])) if inner == inverse => Some(x.clone()),
        _ => None,
    }
}

/// Simplifies an operation on undecided operands: neutral elements vanish, constants are collected
/// on the right.
pub fn simplify(p: &Program, builtin: Builtin, op: OpId, a: Value, b: Value) -> Value {
    use Builtin::*;
    let zero = |v: &Value| matches!(v, Value::Int(0));
    let one = |v: &Value| matches!(v, Value::Int(1));
    match builtin {
        Add if zero(&a) => b,
        Add | Subtract if zero(&b) => a,
        Multiply if one(&a) => b,
        Multiply if one(&b) => a,
        Multiply if zero(&b) || zero(&a) => Value::Int(0),
        Subtract if a == b => Value::Int(0),
        Div | Divide if one(&b) => a,
        Mod if one(&b) => Value::Int(0),
        // The divisor is positive: `div` and `mod` have a Pos divisor.
        Div | Mod if zero(&a) => Value::Int(0),
        Exp if zero(&b) || one(&a) => Value::Int(1),
        Exp if one(&b) => a,
        Add if a.is_number()
            && !b.is_number()
            && b.is_open()
            && p.op(op).first == last_sort(p, op) =>
        {
            simplify(p, Add, op, b, a)
        }
        Add if b.is_number() && a.is_open() => {
            if let Some((inner, [x, c])) = a.as_app()
                && (inner == op || adds_too(p, inner, op))
                && c.is_number()
                && let Some(sum) = binary(Add, c, &b)
                && in_sort(&sum, last_sort(p, inner))
            {
                return simplify(p, Add, inner, x.clone(), sum);
            }
            stuck2(op, a, b)
        }
        _ => stuck2(op, a, b),
    }
}

/// True if both are additions of numbers with the same result sort: `(n + 1) + 2` of a Nat and two
/// Pos is `n + 3`.
fn adds_too(p: &Program, inner: OpId, op: OpId) -> bool {
    let add = |op: OpId| matches!(p.signature.op(op).kind, OpKind::Builtin(Builtin::Add));
    let number = |op: OpId| {
        p.op(op).first.number() >= basic::POS.number()
            && p.op(op).first.number() <= basic::REAL.number()
    };
    add(inner)
        && number(inner)
        && p.op(inner).range == p.op(op).range
        && p.op(inner).funcs.iter().all(Option::is_none)
}

fn last_sort(p: &Program, op: OpId) -> SortId {
    let (domain, range) = p.signature.domain_range(p.signature.op(op).sort);
    domain.last().copied().unwrap_or(range)
}
