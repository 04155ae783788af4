//! Inlining of functions that may not need an argument: in `ite(b, x, y) = if(b, x, y)` the call
//! evaluates one of `x` and `y`, as `if` does. So laziness extends to functions of one equation, as
//! it does in mCRL2 by strategies that substitute arguments before they are rewritten (van de Pol:
//! "JITty: a rewriter with strategy annotations", RTA 2002).
//!
//! In: the equations, grouped by operation. Out: for each operation that may be inlined, its
//! right-hand side and its lazy parameters. These are needed on some paths through the right-hand
//! side, at most once on each, and never under a binder, so that no work is done twice. The other
//! arguments are evaluated before, as in a call. Cost: linear in the equations; inlined code has a
//! limited size.
//!
//! Invariant: inlining terminates, since no function is inlined into itself.

use super::code::has;
use super::compile::{OpInfo, VariableLocations};
use super::matching::left_hand_side;
use crate::expr::{Equation, Expr, ExprKind};
use crate::signature::{Builtin, OpKind, Signature};
use ahash::AHashMap;
use mu_base::ids::{OpId, VarId};
use std::sync::Arc;

/// Limit on the nodes of an inlined right-hand side, nested inlining included; above it, the
/// function is called.
const MAX_NODES: usize = 400;
/// Limit on the nodes of an argument that is inlined more than once (on different paths).
const MAX_COPIED: usize = 64;

/// Function of one equation.
#[derive(Debug)]
pub struct Inline {
    /// Its parameters.
    pub params: Vec<VarId>,
    /// Its right-hand side.
    pub body: Expr,
    /// The lazy ones among the first 64 parameters.
    lazy: u64,
    /// The lazy parameters that occur more than once.
    copied: u64,
    /// Nodes of the right-hand side after inlining.
    nodes: usize,
}

impl Inline {
    /// Returns the arguments worth deferring; the call is inlined if there are any.
    pub fn arguments_to_defer(
        &self,
        ops: &[OpInfo],
        args: &[Expr],
        scope: &VariableLocations,
    ) -> u64 {
        let small = |a: &Expr| nodes(a, Some(scope), MAX_COPIED) <= MAX_COPIED;
        let waits = |i: &usize| {
            has(self.lazy, *i)
                && args
                    .get(*i)
                    .is_some_and(|a| calls(ops, a, scope) && (!has(self.copied, *i) || small(a)))
        };
        (0..self.params.len()).filter(waits).fold(0, |all, i| all | 1 << i)
    }
}

/// Number of uses of a variable on a path through an expression.
#[derive(Clone, Copy)]
struct Uses {
    least: u8,
    most: u8,
    occurrences: u8,
}

impl Uses {
    const NONE: Uses = Uses { least: 0, most: 0, occurrences: 0 };
    fn and(self, other: Uses) -> Uses {
        let sum = |a: u8, b: u8| a.saturating_add(b);
        Uses {
            least: sum(self.least, other.least),
            most: sum(self.most, other.most),
            occurrences: sum(self.occurrences, other.occurrences),
        }
    }
    /// Combines two alternatives.
    fn or(self, other: Uses) -> Uses {
        Uses {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            occurrences: self.occurrences.saturating_add(other.occurrences),
        }
    }
    fn maybe(self) -> Uses {
        Uses { least: 0, ..self }
    }
}

enum InlineState {
    Looking,
    Known(Option<Arc<Inline>>),
}

/// Search for functions to inline.
pub struct Inliner<'a> {
    signature: &'a Signature,
    ops: &'a [OpInfo],
    groups: &'a [((OpId, usize), Vec<&'a Equation>)],
    found: AHashMap<OpId, InlineState>,
}

impl<'a> Inliner<'a> {
    /// Creates the search for operations with rules that are indices of `groups`.
    pub fn new(
        signature: &'a Signature,
        ops: &'a [OpInfo],
        groups: &'a [((OpId, usize), Vec<&'a Equation>)],
    ) -> Self {
        Self { signature, ops, groups, found: AHashMap::new() }
    }

    /// Returns the inlined definition of an operation; `None` if it must be called.
    pub fn inline(&mut self, op: OpId) -> Option<Arc<Inline>> {
        match self.found.get(&op) {
            Some(InlineState::Looking) => return None,
            Some(InlineState::Known(inline)) => return inline.clone(),
            None => {}
        }
        self.found.insert(op, InlineState::Looking);
        let inline = stacker::maybe_grow(64 << 10, 1 << 20, || self.analyse(op)).map(Arc::new);
        self.found.insert(op, InlineState::Known(inline.clone()));
        inline
    }

    fn analyse(&mut self, op: OpId) -> Option<Inline> {
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
        let mut expanded = nodes(&body, None, MAX_NODES);
        let mut inside = Vec::new();
        body.each_op(&mut |o| inside.push(o));
        for o in inside {
            if o == op || expanded > MAX_NODES {
                return None;
            }
            expanded += self.inline(o).map_or(0, |i| i.nodes);
        }
        if expanded > MAX_NODES {
            return None;
        }
        let (mut lazy, mut copied) = (0, 0);
        for (i, v) in params.iter().enumerate().take(64) {
            let uses = self.uses(&body, *v);
            if uses.least == 0 && uses.most <= 1 {
                lazy |= 1 << i;
                copied |= u64::from(uses.occurrences > 1) << i;
            }
        }
        (lazy != 0).then_some(Inline { params, body, lazy, copied, nodes: expanded })
    }

    fn uses(&mut self, e: &Expr, var: VarId) -> Uses {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
            ExprKind::Var(v) if *v == var => Uses { least: 1, most: 1, occurrences: 1 },
            ExprKind::Var(_) | ExprKind::Op(_) | ExprKind::Number(_) => Uses::NONE,
            ExprKind::Bind(..) => {
                let mut free = Vec::new();
                e.free_vars(&mut free);
                if free.contains(&var) {
                    Uses { least: 1, most: u8::MAX, occurrences: u8::MAX }
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

/// Counts the nodes of an expression, including arguments that its variables stand for; some number
/// above `limit` if there are more.
fn nodes(e: &Expr, scope: Option<&VariableLocations>, limit: usize) -> usize {
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

/// True if evaluating an expression may call a function, in deferred arguments as well.
fn calls(ops: &[OpInfo], e: &Expr, scope: &VariableLocations) -> bool {
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
