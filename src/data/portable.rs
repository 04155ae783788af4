//! Portable encoding of expressions: bytes that are the same in every run of one model, for values
//! that are not terms of a table ([`crate::portable_terms`]).
//!
//! In: a closed normal form. Out: its nodes, children first, each once independent of sharing in
//! memory; so equal values have equal bytes. Sorts, operations and variables are written by number:
//! both sides must have the signature of one [`encoding_fingerprint`]. Cost: linear in the distinct
//! nodes; a short value takes a few bytes. Invariant: malformed bytes are rejected, never a panic.

use super::expr::{Binder, Expr, ExprKind};
use super::signature::Signature;
use super::sort::SortKind;
use ahash::AHashMap;
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::varint::{put, take};
use mu_base::{Diagnostic, Span, Stage, narrow};
use num_bigint::BigInt;

/// Describes the meaning of the numbers in the bytes: sorts, operations and variables in their
/// order.
pub fn encoding_fingerprint(signature: &Signature) -> String {
    let sorts =
        (0..signature.sorts.len()).map(|s| format!("{} ", signature.sorts.text(SortId::new(s))));
    let ops = signature.ops().map(|(_, op)| format!("{}:{} ", op.name, op.sort.index()));
    let vars = (0..signature.var_count())
        .map(|v| format!("{} ", signature.var(VarId::new(v)).sort.index()));
    // Includes the version of the encoding.
    ["3; ".into()]
        .into_iter()
        .chain(sorts)
        .chain(["; ".into()])
        .chain(ops)
        .chain(["; ".into()])
        .chain(vars)
        .collect()
}

const OP: u8 = 0;
const NUMBER: u8 = 1;
const APPLY: u8 = 2;
const BIND: u8 = 3;
const VAR: u8 = 4;
/// All binders, in the order of their numbers.
pub(crate) const BINDERS: [Binder; 5] = [
    Binder::Lambda,
    Binder::Forall,
    Binder::Exists,
    Binder::SetComprehension,
    Binder::BagComprehension,
];

/// Largest number of local variables of a value.
const MAX_LOCAL: usize = 1 << 16;

/// Returns the number of a variable: even numbers are variables of the signature, odd ones are
/// local.
fn number(signature: &Signature, var: VarId) -> Option<u64> {
    if var.index() < signature.var_count() {
        return Some(2 * var.index() as u64);
    }
    var.local_index().filter(|i| *i < MAX_LOCAL).map(|i| 2 * i as u64 + 1)
}

fn variable(signature: &Signature, number: u64) -> Option<VarId> {
    let index = usize::try_from(number / 2).ok()?;
    match number % 2 {
        0 => (index < signature.var_count()).then(|| VarId::new(index)),
        _ => (index < MAX_LOCAL).then(|| VarId::local(index)),
    }
}

/// Encodes a value.
///
/// # Errors
/// The value contains operations or variables that the signature does not have.
pub fn write(signature: &Signature, value: &Expr) -> Result<Vec<u8>, Diagnostic> {
    let refused = || {
        Diagnostic::new(
            Stage::Unsupported,
            "a function value created during the run cannot be sent to another process",
        )
    };
    let mut out = Vec::new();
    let mut numbers: AHashMap<&Expr, u64> = AHashMap::new();
    // Children before their parents; a node is visited again after its children are written.
    let mut todo = vec![(value, false)];
    while let Some((e, ready)) = todo.pop() {
        if numbers.contains_key(e) {
            continue;
        }
        let children: Vec<&Expr> = match &e.kind {
            ExprKind::Apply(head, args) => std::iter::once(head).chain(args).collect(),
            ExprKind::Bind(_, _, body) => vec![body],
            ExprKind::Op(_) | ExprKind::Number(_) | ExprKind::Var(_) => Vec::new(),
            ExprKind::Where(..) => return Err(refused()),
        };
        if !ready && !children.is_empty() {
            todo.push((e, true));
            todo.extend(children.iter().rev().map(|c| (*c, false)));
            continue;
        }
        match &e.kind {
            ExprKind::Op(op) if op.index() < signature.op_count() => {
                out.push(OP);
                put(&mut out, op.index() as u64);
            }
            ExprKind::Var(var) => {
                out.push(VAR);
                put(&mut out, number(signature, *var).ok_or_else(refused)?);
            }
            ExprKind::Number(n) => {
                let bytes = n.to_signed_bytes_le();
                out.push(NUMBER);
                put(&mut out, bytes.len() as u64);
                out.extend(bytes);
            }
            ExprKind::Apply(..) => {
                out.push(APPLY);
                put(&mut out, children.len() as u64);
                children.iter().for_each(|c| put(&mut out, numbers[c]));
            }
            ExprKind::Bind(binder, vars, body) => {
                out.push(BIND);
                let at = BINDERS.iter().position(|b| b == binder);
                out.push(narrow::byte(at.expect("all binders are listed")));
                put(&mut out, vars.len() as u64);
                for v in vars {
                    put(&mut out, number(signature, *v).ok_or_else(refused)?);
                }
                put(&mut out, numbers[body]);
            }
            _ => return Err(refused()),
        }
        put(&mut out, e.sort.index() as u64);
        numbers.insert(e, numbers.len() as u64);
    }
    Ok(out)
}

/// Decodes a value.
///
/// # Errors
/// The bytes encode no value.
pub fn read(signature: &Signature, bytes: &[u8]) -> Result<Expr, Diagnostic> {
    parse(signature, bytes).ok_or_else(|| {
        Diagnostic::new(Stage::File, "these bytes do not encode a value of this model")
    })
}

fn parse(signature: &Signature, mut bytes: &[u8]) -> Option<Expr> {
    let bytes = &mut bytes;
    let mut nodes: Vec<Expr> = Vec::new();
    while let Some((&tag, rest)) = bytes.split_first() {
        *bytes = rest;
        let id = |n: u64, count: usize| usize::try_from(n).ok().filter(|n| *n < count);
        let kind = match tag {
            OP => ExprKind::Op(OpId::new(id(take(bytes)?, signature.op_count())?)),
            VAR => ExprKind::Var(variable(signature, take(bytes)?)?),
            NUMBER => {
                let length = usize::try_from(take(bytes)?).ok()?;
                let (digits, rest) = bytes.split_at_checked(length)?;
                *bytes = rest;
                ExprKind::Number(BigInt::from_signed_bytes_le(digits))
            }
            APPLY => {
                let count = take(bytes).filter(|n| *n >= 1 && *n <= bytes.len() as u64)?;
                let mut children = Vec::new();
                for _ in 0..count {
                    children.push(nodes[id(take(bytes)?, nodes.len())?].clone());
                }
                let head = children.remove(0);
                let SortKind::Function(domain, _) = signature.sorts.kind(head.sort) else {
                    return None;
                };
                if domain.len() != children.len() {
                    return None;
                }
                ExprKind::Apply(head, children)
            }
            BIND => {
                let (&binder, rest) = bytes.split_first()?;
                *bytes = rest;
                let count = take(bytes).filter(|n| *n <= bytes.len() as u64)?;
                let mut vars = Vec::new();
                for _ in 0..count {
                    vars.push(variable(signature, take(bytes)?)?);
                }
                ExprKind::Bind(
                    *BINDERS.get(usize::from(binder))?,
                    vars,
                    nodes[id(take(bytes)?, nodes.len())?].clone(),
                )
            }
            _ => return None,
        };
        let sort = SortId::new(id(take(bytes)?, signature.sorts.len())?);
        nodes.push(Expr::new(kind, sort, Span::default()));
    }
    nodes.pop()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::DataSpec;
    use mu_base::SourceId;
    use mu_base::random::Random;

    const DATA: &str = "sort T = struct leaf | node(l: T, n: Int, r: T); map f: Nat -> Nat; eqn f = lambda n: Nat. 3;";
    const VALUES: [&str; 9] = [
        "true",
        "-1234567890123456789012345678901234567890",
        "1 / 3",
        "node(node(leaf, 3, leaf), -4, node(leaf, 3, leaf))",
        "[[1, 2], [], [2, 2]]",
        "{3, 1, 2}",
        "{1: 4, 7: 2}",
        "lambda n: Nat. n + 1",
        "f[2 -> 5]",
    ];

    fn values() -> (Signature, Vec<Expr>) {
        let tree = mu_syntax::parse_specification(SourceId::FIRST, &format!("{DATA}\ninit delta;"))
            .unwrap();
        let mut data: DataSpec = crate::typecheck::check_data_specification(&tree).unwrap().0;
        let checked: Vec<Expr> = VALUES
            .iter()
            .map(|t| {
                crate::typecheck::check_expression(
                    &mu_syntax::parse_data(SourceId::FIRST, t).unwrap(),
                    &mut data,
                    None,
                )
                .unwrap()
            })
            .collect();
        let program = crate::engine::Program::compile(&data).unwrap();
        let mut engine = crate::engine::Engine::new(program.clone());
        let values = checked
            .iter()
            .map(|e| engine.from_expr(e).map(|v| engine.to_expr_at(&v, e.sort)).unwrap())
            .collect();
        (program.signature().clone(), values)
    }

    #[test]
    fn values_come_back_as_they_were() {
        let (signature, values) = values();
        for value in &values {
            let bytes = write(&signature, value).unwrap();
            let back = read(&signature, &bytes).unwrap();
            assert_eq!(&back, value);
            assert_eq!(write(&signature, &back).unwrap(), bytes);
        }
    }

    #[test]
    fn shared_parts_are_written_once() {
        let (signature, values) = values();
        let tree = &values[3];
        let ExprKind::Apply(_, args) = &tree.kind else { panic!("{tree:?}") };
        assert_eq!(args[0], args[2]);
        // The same value with and without shared parts.
        let unshared = read(&signature, &write(&signature, &args[0]).unwrap()).unwrap();
        let ExprKind::Apply(head, _) = &tree.kind else { panic!() };
        let other = Expr::new(
            ExprKind::Apply(head.clone(), vec![args[0].clone(), args[1].clone(), unshared]),
            tree.sort,
            tree.span,
        );
        assert_eq!(write(&signature, &other).unwrap(), write(&signature, tree).unwrap());
    }

    #[test]
    fn damaged_bytes_are_rejected_or_another_value() {
        let (signature, values) = values();
        let mut random = Random::new(5);
        let mut refused = 0;
        for _ in 0..4000 {
            let mut bytes = write(&signature, &values[random.below(values.len())]).unwrap();
            match random.below(3) {
                0 => bytes.truncate(random.below(bytes.len())),
                1 => bytes[0] = random.next_u64() as u8,
                _ => {
                    let at = random.below(bytes.len());
                    bytes[at] ^= 1 << random.below(8);
                }
            }
            refused += usize::from(read(&signature, &bytes).is_err());
        }
        assert!(refused > 1000, "{refused} refused");
    }
}
