//! Closed normal forms as text, for labels and values.

use crate::data::expr::{Expr, ExprKind};
use crate::data::signature::{Builtin, Signature};

/// The text of a closed expression in mCRL2 notation.
pub fn expression(signature: &Signature, e: &Expr) -> String {
    let list = |es: &[Expr]| es.iter().map(|e| expression(signature, e)).collect::<Vec<_>>().join(", ");
    match &e.kind {
        ExprKind::Number(n) => n.to_string(),
        ExprKind::Var(v) => signature.var(*v).name.clone(),
        ExprKind::Op(op) => signature.op(*op).name.clone(),
        ExprKind::Apply(head, args) => {
            match e.as_builtin(signature) {
                Some((
                    Builtin::PosToNat
                    | Builtin::PosToInt
                    | Builtin::PosToReal
                    | Builtin::NatToInt
                    | Builtin::NatToReal
                    | Builtin::IntToReal
                    | Builtin::FSetToSet
                    | Builtin::FBagToBag,
                    args,
                )) => return expression(signature, &args[0]),
                Some((Builtin::Cons, _)) => {
                    let mut items = Vec::new();
                    let mut at = e;
                    while let Some((Builtin::Cons, [first, rest])) = at.as_builtin(signature) {
                        items.push(first.clone());
                        at = rest;
                    }
                    return format!("[{}]", list(&items));
                }
                Some((Builtin::SetInsert, _)) => {
                    let mut items = Vec::new();
                    let mut at = e;
                    while let Some((Builtin::SetInsert, [first, rest])) = at.as_builtin(signature) {
                        items.push(first.clone());
                        at = rest;
                    }
                    return format!("{{{}}}", list(&items));
                }
                Some((Builtin::BagInsert, _)) => {
                    let mut items = Vec::new();
                    let mut at = e;
                    while let Some((Builtin::BagInsert, [first, count, rest])) = at.as_builtin(signature) {
                        items.push(format!("{}: {}", expression(signature, first), expression(signature, count)));
                        at = rest;
                    }
                    return format!("{{{}}}", items.join(", "));
                }
                Some((Builtin::Update, [f, x, v])) => {
                    return format!("{}[{} -> {}]", expression(signature, f), expression(signature, x), expression(signature, v));
                }
                Some((Builtin::Negate, [x])) => return format!("-{}", expression(signature, x)),
                Some((Builtin::Divide, [x, y])) => return format!("{} / {}", expression(signature, x), expression(signature, y)),
                _ => {}
            }
            format!("{}({})", expression(signature, head), list(args))
        }
        _ => format!("{:?}", e.kind),
    }
}
