//! An equation system without its data: which variables a right-hand side calls, and how.
//!
//! Every condition may hold or not. Taken for false everywhere, the right-hand sides are no greater
//! than they are, for any values of data; a solution grows with the right-hand sides; so what is
//! true then is true in the system, and what is false with all conditions taken for true is false.
//! A quantifier is its body: sorts are not empty. Cost: linear in the text.

use super::{Equation, Positive, stacked};
use ahash::AHashMap;
use mu_syntax::ast::{Data, DataKind, UnaryOp};

/// A right-hand side without data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bare {
    /// True or false.
    Constant(bool),
    /// What data decides.
    Condition,
    /// A conjunction (`true`) or disjunction.
    Junction(bool, Vec<Bare>),
    /// The number of an equation.
    Call(usize),
}

/// The right-hand sides in the order of the equations; a variable without an equation is refused
/// elsewhere.
pub(super) fn bare(equations: &[Equation]) -> Vec<Bare> {
    let numbers: AHashMap<&str, usize> =
        equations.iter().enumerate().map(|(i, e)| (e.name.kind.as_str(), i)).collect();
    equations.iter().map(|e| of(&e.body, &numbers)).collect()
}

fn of(formula: &Positive, numbers: &AHashMap<&str, usize>) -> Bare {
    match formula {
        Positive::Const(value) => Bare::Constant(*value),
        Positive::Val(data) => truth(data).map_or(Bare::Condition, Bare::Constant),
        Positive::Call(name, _) => {
            numbers.get(name.kind.as_str()).map_or(Bare::Condition, |number| Bare::Call(*number))
        }
        Positive::Junction(all, parts) => {
            Bare::Junction(*all, stacked(|| parts.iter().map(|p| of(p, numbers)).collect()))
        }
        Positive::Quantifier(_, _, body) => stacked(|| of(body, numbers)),
    }
}

/// The value of a condition that says what it is.
fn truth(data: &Data) -> Option<bool> {
    match &data.kind {
        DataKind::Name(name) if name == "true" => Some(true),
        DataKind::Name(name) if name == "false" => Some(false),
        DataKind::Unary(UnaryOp::Not, inner) => truth(inner).map(|value| !value),
        _ => None,
    }
}
