//! Shape of an expression: its bytes without the names of its variables.
//!
//! In: an expression and its signature. Out: its nodes, children first, each once independent of
//! sharing in memory; a variable is written by its position in a list of free ones, or by the order
//! in which the binders are met. Cost: linear in the distinct nodes. Invariant: two expressions
//! have the same shape only if a renaming of variables that is one to one, and keeps their sorts,
//! makes them equal. So functions that are written twice in a text are one function.

use super::expr::{Expr, ExprKind};
use super::signature::Signature;
use crate::portable::BINDERS;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::VarId;
use mu_base::narrow;
use mu_base::varint::put;

const OP: u8 = 0;
const NUMBER: u8 = 1;
const APPLY: u8 = 2;
const BIND: u8 = 3;
const VAR: u8 = 4;
const WHERE: u8 = 5;
const FREE: u8 = 6;

/// Returns the shape of an expression. The free variables in `free` are written by their position
/// there, others by themselves.
pub(crate) fn shape(signature: &Signature, e: &Expr, free: &[VarId]) -> Box<[u8]> {
    let mut out = Vec::new();
    let mut variables: AHashMap<VarId, u64> = AHashMap::new();
    let declare = |variables: &mut AHashMap<VarId, u64>, v: VarId| {
        let next = variables.len() as u64;
        variables.entry(v).or_insert(next);
    };
    free.iter().for_each(|v| declare(&mut variables, *v));
    let mut occurring: AHashSet<VarId> = AHashSet::new();
    let mut nodes: AHashMap<&Expr, u64> = AHashMap::new();
    // Children before their parents; a node is visited again after its children are written.
    let mut pending = vec![(e, false)];
    while let Some((e, ready)) = pending.pop() {
        if nodes.contains_key(e) {
            continue;
        }
        if !ready {
            let children = children(e);
            if !children.is_empty() {
                bound(e).for_each(|v| declare(&mut variables, v));
                pending.push((e, true));
                pending.extend(children.iter().rev().map(|c| (*c, false)));
                continue;
            }
        }
        match &e.kind {
            ExprKind::Op(op) => {
                out.push(OP);
                put(&mut out, op.index() as u64);
            }
            ExprKind::Var(v) => {
                match variables.get(v) {
                    Some(number) => {
                        out.push(VAR);
                        put(&mut out, *number);
                    }
                    None => {
                        out.push(FREE);
                        put(&mut out, u64::from(v.number()));
                    }
                }
                occurring.insert(*v);
            }
            ExprKind::Number(n) => {
                let bytes = n.to_signed_bytes_le();
                out.push(NUMBER);
                put(&mut out, bytes.len() as u64);
                out.extend(bytes);
            }
            ExprKind::Apply(..) => out.push(APPLY),
            ExprKind::Bind(binder, ..) => {
                let at = BINDERS.iter().position(|b| b == binder);
                out.extend([BIND, narrow::byte(at.expect("all binders are listed"))]);
            }
            ExprKind::Where(..) => out.push(WHERE),
        }
        let children = children(e);
        put(&mut out, children.len() as u64);
        children.iter().for_each(|c| put(&mut out, nodes[c]));
        put(&mut out, bound(e).count() as u64);
        for v in bound(e) {
            put(&mut out, variables[&v]);
            // The sort of a variable stands where it occurs; one that does not occur has the sort
            // of its declaration.
            let silent = !occurring.contains(&v) && v.index() < signature.var_count();
            put(&mut out, if silent { 1 + signature.var(v).sort.index() as u64 } else { 0 });
        }
        put(&mut out, e.sort.index() as u64);
        nodes.insert(e, nodes.len() as u64);
    }
    out.into()
}

/// Returns the direct subexpressions; of `whr` the definitions come last.
fn children(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::Op(_) | ExprKind::Number(_) | ExprKind::Var(_) => Vec::new(),
        ExprKind::Apply(head, args) => std::iter::once(head).chain(args).collect(),
        ExprKind::Bind(_, _, body) => vec![body],
        ExprKind::Where(body, defs) => {
            std::iter::once(body).chain(defs.iter().map(|d| &d.1)).collect()
        }
    }
}

/// Returns the variables that the node itself binds.
fn bound(e: &Expr) -> impl Iterator<Item = VarId> + '_ {
    let (vars, defs): (&[VarId], &[(VarId, Expr)]) = match &e.kind {
        ExprKind::Bind(_, vars, _) => (vars, &[]),
        ExprKind::Where(_, defs) => (&[], defs),
        _ => (&[], &[]),
    };
    vars.iter().copied().chain(defs.iter().map(|d| d.0))
}
