//! Skeleton of an equation system without its data: the variables that a right-hand side calls, and
//! the connectives.
//!
//! Every condition may be true or false. If all conditions are replaced by false, right-hand sides
//! do not increase, for any data; a solution is monotonic in the right-hand sides. So variables
//! that are then true are true in the system, and variables that are false with all conditions
//! replaced by true are false. A quantifier is replaced by its body: sorts are not empty. Cost:
//! linear in the text.

use super::{FixpointEquation, PositiveFormula, grow_stack};
use ahash::AHashMap;
use mu_syntax::ast::{Data, DataKind, UnaryOp};

/// A right-hand side without data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skeleton {
    /// True or false.
    Constant(bool),
    /// A condition on data.
    Condition,
    /// A conjunction (`true`) or disjunction.
    Junction(bool, Vec<Skeleton>),
    /// The number of an equation.
    Call(usize),
}

/// Returns the right-hand sides in the order of the equations; a variable without an equation is
/// rejected elsewhere.
pub(super) fn bare(equations: &[FixpointEquation]) -> Vec<Skeleton> {
    let numbers: AHashMap<&str, usize> =
        equations.iter().enumerate().map(|(i, e)| (e.name.kind.as_str(), i)).collect();
    equations.iter().map(|e| of(&e.body, &numbers)).collect()
}

fn of(formula: &PositiveFormula, numbers: &AHashMap<&str, usize>) -> Skeleton {
    match formula {
        PositiveFormula::Const(value) => Skeleton::Constant(*value),
        PositiveFormula::Val(data) => truth(data).map_or(Skeleton::Condition, Skeleton::Constant),
        PositiveFormula::Call(name, _) => numbers
            .get(name.kind.as_str())
            .map_or(Skeleton::Condition, |number| Skeleton::Call(*number)),
        PositiveFormula::Junction(all, parts) => {
            Skeleton::Junction(*all, grow_stack(|| parts.iter().map(|p| of(p, numbers)).collect()))
        }
        PositiveFormula::Quantifier(_, _, body) => grow_stack(|| of(body, numbers)),
    }
}

/// Returns the value of a constant condition.
fn truth(data: &Data) -> Option<bool> {
    match &data.kind {
        DataKind::Name(name) if name == "true" => Some(true),
        DataKind::Name(name) if name == "false" => Some(false),
        DataKind::Unary(UnaryOp::Not, inner) => truth(inner).map(|value| !value),
        _ => None,
    }
}
