//! Miniscoping of equations: moves quantifiers over sorts that are not numbers inwards, into
//! conditions where possible.
//!
//! `exists l: S. val(c) || f` is `val(exists l: S. c) || exists l: S. f`, and a part of a
//! conjunction without `l` moves out; dually `forall`. The data engine eliminates a quantifier of a
//! condition, as in `exists l: List(Nat). exists k: List(Nat). k == l`, where an instance of the
//! equation would need all lists. Quantifiers over numbers stay, because [`super::unroll`] tries
//! their values. Invariant: the value is the same; sorts are not empty. Cost: linear, times the
//! nesting of quantifiers.

use super::unroll::{collect_words, is_integral};
use super::{FixpointEquation, PositiveFormula, grow_stack};
use ahash::AHashMap;
use mu_base::Span;
use mu_syntax::ast::{BinaryOp, Data, DataKind, Node, VarDecl};

/// Moves the quantifiers of all equations inwards.
pub(super) fn narrow(equations: &mut [FixpointEquation]) {
    for e in equations {
        let body = std::mem::replace(&mut e.body, PositiveFormula::Const(true));
        e.body = narrow_scopes(body);
    }
}

fn narrow_scopes(formula: PositiveFormula) -> PositiveFormula {
    grow_stack(|| match formula {
        PositiveFormula::Const(_) | PositiveFormula::Val(_) | PositiveFormula::Call(..) => formula,
        PositiveFormula::Junction(all, parts) => {
            PositiveFormula::Junction(all, parts.into_iter().map(narrow_scopes).collect())
        }
        PositiveFormula::Quantifier(all, vars, body) => {
            let (numbers, others): (Vec<VarDecl>, Vec<VarDecl>) =
                vars.into_iter().partition(is_integral);
            let body = narrow_scopes(*body);
            let body = if others.is_empty() { body } else { quantify(all, &others, body) };
            if numbers.is_empty() {
                return body;
            }
            PositiveFormula::Quantifier(all, numbers, Box::new(body))
        }
    })
}

/// Quantifies a formula over variables that are not numbers.
fn quantify(all: bool, vars: &[VarDecl], body: PositiveFormula) -> PositiveFormula {
    match body {
        PositiveFormula::Const(_) => body,
        PositiveFormula::Val(data) => PositiveFormula::Val(quantify_data(all, vars, data)),
        PositiveFormula::Junction(conjunction, parts) if conjunction == all => {
            let parts = parts.into_iter().map(|part| quantify(all, vars, part)).collect();
            PositiveFormula::Junction(conjunction, parts)
        }
        PositiveFormula::Junction(conjunction, parts) => {
            let uses = |part: &PositiveFormula| {
                let mut words = AHashMap::new();
                collect_words(part, &mut words);
                vars.iter().any(|v| words.contains_key(&v.name.kind))
            };
            let (inside, mut outside): (Vec<_>, Vec<_>) = parts.into_iter().partition(uses);
            if inside.is_empty() {
                return PositiveFormula::Junction(conjunction, outside);
            }
            outside.push(match conditions(&inside) {
                Some(data) => {
                    let op = if conjunction { BinaryOp::And } else { BinaryOp::Or };
                    PositiveFormula::Val(quantify_data(all, vars, join(op, data)))
                }
                None => {
                    let body = PositiveFormula::Junction(conjunction, inside);
                    PositiveFormula::Quantifier(all, vars.to_vec(), Box::new(body))
                }
            });
            PositiveFormula::Junction(conjunction, outside)
        }
        body => PositiveFormula::Quantifier(all, vars.to_vec(), Box::new(body)),
    }
}

/// Returns the conditions of a list of parts; `None` if one is no condition.
fn conditions(parts: &[PositiveFormula]) -> Option<Vec<Data>> {
    let of = |part: &PositiveFormula| match part {
        PositiveFormula::Val(data) => Some(data.clone()),
        _ => None,
    };
    parts.iter().map(of).collect()
}

fn join(op: BinaryOp, parts: Vec<Data>) -> Data {
    let join = |a: Data, b: Data| {
        let span = a.span;
        Node::new(DataKind::Binary(op, Box::new(a), Box::new(b)), span)
    };
    let none = || Node::new(DataKind::Name("true".into()), Span::default());
    parts.into_iter().reduce(join).unwrap_or_else(none)
}

fn quantify_data(all: bool, vars: &[VarDecl], data: Data) -> Data {
    let span = data.span;
    let body = Box::new(data);
    let kind = match all {
        true => DataKind::Forall(vars.to_vec(), body),
        false => DataKind::Exists(vars.to_vec(), body),
    };
    Node::new(kind, span)
}
