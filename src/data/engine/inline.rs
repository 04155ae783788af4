//! Functions that may not need an argument, written out where they are called: in `ite(b, x, y) =
//! if(b, x, y)` the call evaluates one of `x` and `y`, as `if` does. So laziness goes through
//! functions of one equation, as it does in mCRL2, whose strategies substitute arguments
//! before they are rewritten (van de Pol: "JITty: a rewriter with strategy annotations", RTA 2002).
//!
//! In: the equations, grouped by operation. Out: for each operation that may be written out, its
//! right-hand side and which parameters are lazy: needed on some paths through it, at most once on
//! each, and never under a binder, so that no work is done twice. The other arguments are evaluated
//! before, as in a call. Cost: linear in the equations; what is written out has a limited size.
//!
//! Invariant: writing out ends, since no function is written out inside itself.

use super::code::has;
use super::compile::{OpInfo, Scope};
use super::matching::left_hand_side;
use crate::expr::{Equation, Expr, ExprKind};
use crate::signature::{Builtin, OpKind, Signature};
use ahash::AHashMap;
use mu_base::ids::{OpId, VarId};
use std::sync::Arc;

/// Largest right-hand side that is written out, with all that is written out in it, in nodes.
const MOST_NODES: usize = 400;
/// Largest argument that is written out more than once (on different paths), in nodes.
const MOST_COPIED: usize = 64;

/// A function of one equation.
#[derive(Debug)]
pub struct Inline {
    /// Its parameters.
    pub params: Vec<VarId>,
    /// Its right-hand side.
    pub body: Expr,
    /// Which of the first 64 parameters are lazy.
    lazy: u64,
    /// Which of these occur more than once.
    copied: u64,
    /// Nodes of the right-hand side when all is written out.
    nodes: usize,
}

impl Inline {
    /// The arguments that are worth not to be evaluated before the call; the call is written out if
    /// there are any.
    pub fn waiting(&self, ops: &[OpInfo], args: &[Expr], scope: &Scope) -> u64 {
        let small = |a: &Expr| nodes(a, Some(scope), MOST_COPIED) <= MOST_COPIED;
        let waits = |i: &usize| {
            has(self.lazy, *i)
                && args
                    .get(*i)
                    .is_some_and(|a| calls(ops, a, scope) && (!has(self.copied, *i) || small(a)))
        };
        (0..self.params.len()).filter(waits).fold(0, |all, i| all | 1 << i)
    }
}

/// How often a path through an expression uses a variable.
#[derive(Clone, Copy)]
struct Uses {
    least: u8,
    most: u8,
    written: u8,
}

impl Uses {
    const NONE: Uses = Uses { least: 0, most: 0, written: 0 };
    fn and(self, other: Uses) -> Uses {
        let sum = |a: u8, b: u8| a.saturating_add(b);
        Uses {
            least: sum(self.least, other.least),
            most: sum(self.most, other.most),
            written: sum(self.written, other.written),
        }
    }
    /// One of the two is taken.
    fn or(self, other: Uses) -> Uses {
        Uses {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            written: self.written.saturating_add(other.written),
        }
    }
    fn maybe(self) -> Uses {
        Uses { least: 0, ..self }
    }
}

enum Found {
    Looking,
    Known(Option<Arc<Inline>>),
}

/// Finds what may be written out.
pub struct Inliner<'a> {
    signature: &'a Signature,
    ops: &'a [OpInfo],
    groups: &'a [((OpId, usize), Vec<&'a Equation>)],
    found: AHashMap<OpId, Found>,
}

impl<'a> Inliner<'a> {
    /// For operations whose rules are known by the indices of `groups`.
    pub fn new(
        signature: &'a Signature,
        ops: &'a [OpInfo],
        groups: &'a [((OpId, usize), Vec<&'a Equation>)],
    ) -> Self {
        Self { signature, ops, groups, found: AHashMap::new() }
    }

    /// What stands for a call of the operation, if that may be.
    pub fn inline(&mut self, op: OpId) -> Option<Arc<Inline>> {
        match self.found.get(&op) {
            Some(Found::Looking) => return None,
            Some(Found::Known(inline)) => return inline.clone(),
            None => {}
        }
        self.found.insert(op, Found::Looking);
        let inline = stacker::maybe_grow(64 << 10, 1 << 20, || self.look(op)).map(Arc::new);
        self.found.insert(op, Found::Known(inline.clone()));
        inline
    }

    fn look(&mut self, op: OpId) -> Option<Inline> {
        let info = self.ops.get(op.index())?;
        let [None, Some(group), further @ ..] = &*info.funcs else { return None };
        let [equation] = &self.groups[*group as usize].1[..] else { return None };
        let plain = matches!(self.signature.op(op).kind, OpKind::Mapping)
            && further.iter().all(Option::is_none);
        let conditional =
            equation.condition.as_ref().is_some_and(|c| c.as_bool(self.signature) != Some(true));
        if !plain || conditional {
            return None;
        }
        let (_, _, args) = left_hand_side(equation).ok()?;
        let mut params: Vec<VarId> = Vec::new();
        for arg in &args {
            let ExprKind::Var(v) = arg.kind else { return None };
            if params.contains(&v) {
                return None;
            }
            params.push(v);
        }
        let body = equation.rhs.clone();
        let mut expanded = nodes(&body, None, MOST_NODES);
        let mut inside = Vec::new();
        body.each_op(&mut |o| inside.push(o));
        for o in inside {
            if o == op || expanded > MOST_NODES {
                return None;
            }
            expanded += self.inline(o).map_or(0, |i| i.nodes);
        }
        if expanded > MOST_NODES {
            return None;
        }
        let (mut lazy, mut copied) = (0, 0);
        for (i, v) in params.iter().enumerate().take(64) {
            let uses = self.uses(&body, *v);
            if uses.least == 0 && uses.most <= 1 {
                lazy |= 1 << i;
                copied |= u64::from(uses.written > 1) << i;
            }
        }
        (lazy != 0).then_some(Inline { params, body, lazy, copied, nodes: expanded })
    }

    fn uses(&mut self, e: &Expr, var: VarId) -> Uses {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
            ExprKind::Var(v) if *v == var => Uses { least: 1, most: 1, written: 1 },
            ExprKind::Var(_) | ExprKind::Op(_) | ExprKind::Number(_) => Uses::NONE,
            ExprKind::Bind(..) => {
                let mut free = Vec::new();
                e.free_vars(&mut free);
                if free.contains(&var) {
                    Uses { least: 1, most: u8::MAX, written: u8::MAX }
                } else {
                    Uses::NONE
                }
            }
            ExprKind::Where(body, defs) => {
                defs.iter().fold(self.uses(body, var), |all, d| all.and(self.uses(&d.1, var)))
            }
            ExprKind::Apply(head, args) => {
                if let Some((builtin, args)) = e.as_builtin(self.signature) {
                    match (builtin, args) {
                        (Builtin::If, [c, a, b]) => {
                            let branches = self.uses(a, var).or(self.uses(b, var));
                            return self.uses(c, var).and(branches);
                        }
                        (Builtin::And | Builtin::Or | Builtin::Implies, [a, b]) => {
                            return self.uses(a, var).and(self.uses(b, var).maybe());
                        }
                        _ => {}
                    }
                }
                let lazy = match head.kind {
                    ExprKind::Op(op) => {
                        self.inline(op).map_or(0, |i| i.lazy)
                            | self.ops[op.index()].lazy.get(1).copied().unwrap_or(0)
                    }
                    _ => 0,
                };
                args.iter().enumerate().fold(self.uses(head, var), |all, (i, a)| {
                    let here = self.uses(a, var);
                    all.and(if has(lazy, i) { here.maybe() } else { here })
                })
            }
        })
    }
}

/// Nodes of an expression, with those of arguments that its variables stand for; where there are
/// more than `limit`, some number above it.
fn nodes(e: &Expr, scope: Option<&Scope>, limit: usize) -> usize {
    let mut count = 0;
    let mut waiting = vec![(e, scope)];
    while let Some((e, scope)) = waiting.pop() {
        count += 1;
        if count > limit {
            break;
        }
        match &e.kind {
            ExprKind::Var(v) => waiting
                .extend(scope.and_then(|s| s.argument(*v)).map(|(e, outer)| (e, Some(outer)))),
            ExprKind::Op(_) | ExprKind::Number(_) => {}
            ExprKind::Apply(head, args) => {
                waiting.extend(args.iter().chain([head]).map(|e| (e, scope)))
            }
            ExprKind::Bind(_, _, body) => waiting.push((body, scope)),
            ExprKind::Where(body, defs) => {
                waiting.extend(defs.iter().map(|d| &d.1).chain([body]).map(|e| (e, scope)))
            }
        }
    }
    count
}

/// Whether evaluating an expression may call something; arguments that wait do.
fn calls(ops: &[OpInfo], e: &Expr, scope: &Scope) -> bool {
    let mut waiting = vec![e];
    while let Some(e) = waiting.pop() {
        match &e.kind {
            ExprKind::Var(v) if scope.argument(*v).is_none() => {}
            ExprKind::Number(_) => {}
            ExprKind::Op(op)
                if ops
                    .get(op.index())
                    .is_some_and(|info| info.funcs.iter().all(Option::is_none)) => {}
            ExprKind::Var(_) | ExprKind::Op(_) | ExprKind::Bind(..) => return true,
            ExprKind::Apply(head, args) if matches!(head.kind, ExprKind::Op(_)) => {
                waiting.extend(args.iter().chain([head]))
            }
            ExprKind::Apply(..) => return true,
            ExprKind::Where(body, defs) => waiting.extend(defs.iter().map(|d| &d.1).chain([body])),
        }
    }
    false
}
