//! Constant folding.
//!
//! Expressions are folded where all operands are constant and the result fits into 64 bits; other
//! operations, such as a division by zero, remain for the run. Where the language requires a
//! constant, operands that cannot change the result are ignored too: `0 * f()` is 0.

use super::{Checker, Result, wrong};
use crate::ast::Expr as Tree;
use crate::typed::{Binary, Expr, ExprKind, TypeId, Unary};

/// Lowest number: the one below it marks undefined values.
pub(super) const LOWEST: i64 = i64::MIN + 1;

/// Applies an operator to constants. `None` if the result does not fit, or if there is none.
pub(super) fn fold_binary(operator: Binary, a: i64, b: i64) -> Option<i64> {
    apply(operator, a, b).filter(|value| *value >= LOWEST)
}

fn apply(operator: Binary, a: i64, b: i64) -> Option<i64> {
    let shift = |a: i64, by: i64, left: bool| -> Option<i64> {
        let by = u32::try_from(by).ok()?;
        if !left {
            return Some(a >> by.min(63));
        }
        i64::try_from(i128::from(a).checked_shl(by.min(64))?).ok()
    };
    Some(match operator {
        Binary::Add => a.checked_add(b)?,
        Binary::Subtract => a.checked_sub(b)?,
        Binary::Multiply => a.checked_mul(b)?,
        Binary::Divide => a.checked_div(b)?,
        Binary::Modulo => a.checked_rem(b)?,
        Binary::ShiftLeft => shift(a, b, true)?,
        Binary::ShiftRight => shift(a, b, false)?,
        Binary::BitAnd => a & b,
        Binary::BitOr => a | b,
        Binary::BitXor => a ^ b,
        Binary::Less => i64::from(a < b),
        Binary::LessEqual => i64::from(a <= b),
        Binary::Greater => i64::from(a > b),
        Binary::GreaterEqual => i64::from(a >= b),
        Binary::Equal => i64::from(a == b),
        Binary::NotEqual => i64::from(a != b),
        Binary::And => i64::from(a != 0 && b != 0),
        Binary::Or => i64::from(a != 0 || b != 0),
        Binary::Implies => i64::from(a == 0 || b != 0),
    })
}

/// Applies an operator to a constant. `None` if the result does not fit.
pub(super) fn fold_unary(operator: Unary, a: i64) -> Option<i64> {
    match operator {
        Unary::Not => Some(i64::from(a == 0)),
        Unary::Negate => a.checked_neg(),
        Unary::Complement => Some(!a).filter(|value| *value >= LOWEST),
    }
}

/// Returns the value of an expression that has the same value in every state. `None` if there is no
/// such value, or if it is not found.
pub(super) fn value(expr: &Expr) -> Option<i64> {
    stacker::maybe_grow(64 * 1024, 1024 * 1024, || match &expr.kind {
        ExprKind::Constant(value) => Some(*value),
        ExprKind::Unary(operator, a) => fold_unary(*operator, value(a)?),
        ExprKind::Binary(operator, a, b) => {
            let (a, b) = (value(a), value(b));
            match (operator, a, b) {
                (_, Some(a), Some(b)) => fold_binary(*operator, a, b),
                (Binary::Multiply | Binary::BitAnd | Binary::And, Some(0), _)
                | (Binary::Multiply | Binary::BitAnd | Binary::And, _, Some(0))
                | (Binary::Divide | Binary::Modulo, Some(0), _)
                | (Binary::ShiftLeft | Binary::ShiftRight, Some(0), _) => Some(0),
                (Binary::BitOr, Some(-1), _) | (Binary::BitOr, _, Some(-1)) => Some(-1),
                (Binary::Or, Some(1), _) | (Binary::Or | Binary::Implies, _, Some(1)) => Some(1),
                (Binary::Implies, Some(0), _) => Some(1),
                _ => None,
            }
        }
        ExprKind::Conditional(condition, yes, no) => {
            value(if value(condition)? != 0 { yes } else { no })
        }
        _ => None,
    })
}

impl Checker<'_> {
    /// Checks an expression that must be constant. Returns its type and value.
    pub(super) fn constant(&mut self, tree: &Tree) -> Result<(TypeId, i64)> {
        let expr = self.expr(tree)?;
        match value(&expr) {
            Some(value) => Ok((expr.ty, value)),
            None => wrong(tree.span, "this is no constant, or it does not fit into 64 bits"),
        }
    }
    /// Checks an expression that must be a constant number.
    pub(super) fn constant_integer(&mut self, tree: &Tree) -> Result<i64> {
        let (ty, value) = self.constant(tree)?;
        if self.out.types.is_integer(ty) {
            return Ok(value);
        }
        wrong(tree.span, format!("found a value of {}, expected a number", self.type_text(ty)))
    }
}
