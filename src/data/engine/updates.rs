//! Recognition of updates: a function written as `lambda j. if(i == j, v, f(j))` is the update
//! `f[i -> v]`.
//!
//! In: a lambda abstraction of one variable. Out: the same function as an update, if it is one.
//! Functions are equal if they agree at each argument, so only the form changes. Updates have a
//! canonical form (`builtins::function`): a buffer that is filled and emptied again equals the
//! original buffer, while abstractions would nest without bound. Cost: linear in the expression.
//!
//! Invariant: terms that the abstraction evaluates at its application, and the update immediately,
//! contain no call, so the change cannot introduce nontermination.

use super::compile::{OpInfo, SortInfo};
use crate::expr::{Expr, ExprKind};
use crate::signature::{Builtin, OpKind, Signature};
use mu_base::ids::{OpId, SortId, VarId};

/// Returns the update that equals the function `lambda var. body` of this sort; `None` if it is not
/// one.
pub(super) fn as_update(
    signature: &Signature,
    ops: &[OpInfo],
    sorts: &[SortInfo],
    sort: SortId,
    var: VarId,
    body: &Expr,
) -> Option<Expr> {
    let update = sorts
        .get(sort.index())?
        .insert
        .filter(|&op| is_plain(signature, ops, op, Builtin::Update))?;
    let (Builtin::If, [condition, value, other]) = body.as_builtin(signature)? else { return None };
    let (Builtin::Equal, [a, b]) = condition.as_builtin(signature)? else { return None };
    if ![body, condition].iter().all(|e| {
        head(e).is_some_and(|op| {
            ops.get(op.index()).is_some_and(|o| o.funcs.iter().all(Option::is_none))
        })
    }) {
        return None;
    }
    let key = if is_var(a, var) {
        b
    } else if is_var(b, var) {
        a
    } else {
        return None;
    };
    let inner = match &other.kind {
        ExprKind::Apply(f, args) if args.len() == 1 && is_var(&args[0], var) && f.sort == sort => {
            f.clone()
        }
        _ => as_update(signature, ops, sorts, sort, var, other)?,
    };
    let at_once = |e: &Expr| !occurs(e, var) && is_built(ops, e);
    if occurs(&inner, var) || !at_once(key) || !at_once(value) {
        return None;
    }
    let op = Expr::new(ExprKind::Op(update), signature.op(update).sort, body.span);
    Some(Expr::new(ExprKind::Apply(op, vec![inner, key.clone(), value.clone()]), sort, body.span))
}

fn head(e: &Expr) -> Option<OpId> {
    match &e.kind {
        ExprKind::Apply(head, _) => match head.kind {
            ExprKind::Op(op) => Some(op),
            _ => None,
        },
        _ => None,
    }
}

/// True if an operation is this built-in, without equations of the user.
fn is_plain(signature: &Signature, ops: &[OpInfo], op: OpId, builtin: Builtin) -> bool {
    matches!(&signature.op(op).kind, OpKind::Builtin(b) if *b == builtin)
        && ops.get(op.index()).is_some_and(|o| o.funcs.iter().all(Option::is_none))
}

fn is_var(e: &Expr, var: VarId) -> bool {
    matches!(e.kind, ExprKind::Var(v) if v == var)
}

fn occurs(e: &Expr, var: VarId) -> bool {
    let mut free = Vec::new();
    e.free_vars(&mut free);
    free.contains(&var)
}

/// True if an expression consists of variables, numbers and operations without equations.
fn is_built(ops: &[OpInfo], e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Var(_) | ExprKind::Number(_) => true,
        ExprKind::Op(op) => {
            ops.get(op.index()).is_some_and(|o| o.funcs.iter().all(Option::is_none))
        }
        ExprKind::Apply(head, args) => {
            matches!(head.kind, ExprKind::Op(_))
                && is_built(ops, head)
                && args.iter().all(|a| is_built(ops, a))
        }
        ExprKind::Bind(..) | ExprKind::Where(..) => false,
    }
}
