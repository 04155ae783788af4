//! Typed data expressions: the output of the type checker, compiled by the rewriter and transformed
//! by the lineariser.
//!
//! Invariant: every application has as many arguments as its head's sort has domains; coercions are
//! explicit; variables are globally unique, so substitution never captures (a binder that is
//! *copied* into two places is harmless for the same reason: its variable is bound in each).

use super::signature::{Builtin, OpKind, Signature};
use super::sort::basic;
use ahash::{AHashMap, AHashSet};
use mu_base::Span;
use mu_base::ids::{OpId, SortId, VarId};
use num_bigint::BigInt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shared typed expression. Equality and hashing ignore the span.
#[derive(Clone, Debug)]
pub struct Expr(pub Arc<ExprNode>);

/// Expression node.
#[derive(Debug)]
pub struct ExprNode {
    /// Kind.
    pub kind: ExprKind,
    /// Sort.
    pub sort: SortId,
    /// Place in the source.
    pub span: Span,
    /// Cached hash of the kind; 0 if not computed yet.
    digest: AtomicU64,
}

/// Binders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Binder {
    Lambda,
    Forall,
    Exists,
    /// `{ x: S | b }` with a Bool body.
    SetComprehension,
    /// `{ x: S | n }` with a Nat body.
    BagComprehension,
}

/// Kinds of expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExprKind {
    /// A variable.
    Var(VarId),
    /// An operation, unapplied (a constant, or a function as a value).
    Op(OpId),
    /// An integer literal of sort Pos, Nat (or Int, Real after constant folding).
    Number(BigInt),
    /// Full application of a function-sorted head; the head is often an `Op`.
    Apply(Expr, Vec<Expr>),
    /// A binder.
    Bind(Binder, Vec<VarId>, Expr),
    /// `body whr x = e, … end`: all right-hand sides are outside the scope of the variables.
    Where(Expr, Vec<(VarId, Expr)>),
}

/// Drops deep terms with a worklist: a list of a million elements is a chain of that depth.
impl Drop for ExprNode {
    fn drop(&mut self) {
        fn take(kind: &mut ExprKind, pending: &mut Vec<Expr>) {
            if matches!(kind, ExprKind::Var(_) | ExprKind::Op(_) | ExprKind::Number(_)) {
                return;
            }
            match std::mem::replace(kind, ExprKind::Op(OpId::of(0))) {
                ExprKind::Apply(head, args) => {
                    pending.push(head);
                    pending.extend(args);
                }
                ExprKind::Bind(_, _, body) => pending.push(body),
                ExprKind::Where(body, defs) => {
                    pending.push(body);
                    pending.extend(defs.into_iter().map(|d| d.1));
                }
                ExprKind::Var(_) | ExprKind::Op(_) | ExprKind::Number(_) => {}
            }
        }
        let mut pending = Vec::new();
        take(&mut self.kind, &mut pending);
        while let Some(expr) = pending.pop() {
            if let Some(mut node) = Arc::into_inner(expr.0) {
                take(&mut node.kind, &mut pending);
            }
        }
    }
}

/// Seed of term hashes, the same in every thread.
pub(crate) const DIGESTS: ahash::RandomState = ahash::RandomState::with_seeds(1, 2, 3, 4);

impl Expr {
    /// Returns a hash of the expression, computed once. A shared expression may be far larger as a
    /// tree than in memory: each node is visited once.
    fn digest(&self) -> u64 {
        match self.0.digest.load(Ordering::Relaxed) {
            0 => {
                let mut state = DIGESTS.build_hasher();
                stacker::maybe_grow(64 << 10, 1 << 20, || self.0.kind.hash(&mut state));
                let digest = state.finish().max(1);
                self.0.digest.store(digest, Ordering::Relaxed);
                digest
            }
            known => known,
        }
    }
    /// Compares two expressions. Below a certain depth, compared pairs are recorded, so that common
    /// shared parts are compared once.
    fn equals(
        &self,
        other: &Self,
        depth: u32,
        known: &mut Option<AHashSet<(*const ExprNode, *const ExprNode)>>,
    ) -> bool {
        if Arc::ptr_eq(&self.0, &other.0) {
            return true;
        }
        if self.0.sort != other.0.sort {
            return false;
        }
        let (xs, ys) = match (&self.0.kind, &other.0.kind) {
            (ExprKind::Apply(f, xs), ExprKind::Apply(g, ys)) if xs.len() == ys.len() => {
                (xs.iter().chain([f]), ys.iter().chain([g]))
            }
            (ExprKind::Apply(..), _) | (_, ExprKind::Apply(..)) => return false,
            (one, two) => return stacker::maybe_grow(64 << 10, 1 << 20, || one == two),
        };
        let [one, two] = [self, other].map(|e| e.0.digest.load(Ordering::Relaxed));
        if one != two && one != 0 && two != 0 {
            return false;
        }
        // Compared before, or being compared: if they differ, that comparison returns false.
        (depth >= 8
            && !known.get_or_insert_default().insert((Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))))
            || stacker::maybe_grow(64 << 10, 1 << 20, || {
                xs.zip(ys).all(|(x, y)| x.equals(y, depth + 1, known))
            })
    }
}
impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other, 0, &mut None)
    }
}
impl Eq for Expr {}
impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.digest());
    }
}
impl std::ops::Deref for Expr {
    type Target = ExprNode;
    fn deref(&self) -> &ExprNode {
        &self.0
    }
}

/// Substitution for variables.
pub type Substitution = AHashMap<VarId, Expr>;

impl Expr {
    /// Creates a node.
    pub fn new(kind: ExprKind, sort: SortId, span: Span) -> Self {
        Expr(Arc::new(ExprNode { kind, sort, span, digest: AtomicU64::new(0) }))
    }
    /// Creates a variable expression.
    pub fn var(signature: &Signature, var: VarId) -> Self {
        Self::new(ExprKind::Var(var), signature.var(var).sort, Span::default())
    }
    /// Creates an operation expression.
    pub fn op(signature: &Signature, op: OpId) -> Self {
        Self::new(ExprKind::Op(op), signature.op(op).sort, Span::default())
    }
    /// Creates an integer literal.
    pub fn number(value: impl Into<BigInt>, sort: SortId) -> Self {
        Self::new(ExprKind::Number(value.into()), sort, Span::default())
    }
    /// Applies an operation to all its arguments (without arguments: the operation itself).
    pub fn apply(signature: &Signature, op: OpId, args: Vec<Expr>) -> Self {
        let head = Self::op(signature, op);
        if args.is_empty() {
            return head;
        }
        let (domain, range) = signature.domain_range(head.sort);
        debug_assert_eq!(domain.len(), args.len(), "arity of {}", signature.op(op).name);
        let span = args[0].span;
        Self::new(ExprKind::Apply(head, args), range, span)
    }
    /// Applies a built-in; its sort follows from its arguments and the given result sort.
    pub fn builtin(
        signature: &mut Signature,
        builtin: Builtin,
        args: Vec<Expr>,
        range: SortId,
    ) -> Self {
        let sort = if args.is_empty() {
            range
        } else {
            let domain = args.iter().map(|a| a.sort).collect();
            signature.sorts.intern(super::sort::SortKind::Function(domain, range))
        };
        let op = signature.builtin(builtin, sort);
        Self::apply(signature, op, args)
    }
    /// Returns `true` or `false`.
    pub fn boolean(signature: &mut Signature, value: bool) -> Self {
        Self::builtin(
            signature,
            if value { Builtin::True } else { Builtin::False },
            vec![],
            basic::BOOL,
        )
    }
    /// Returns `a && b`, simplified if either is a constant.
    pub fn and(signature: &mut Signature, a: Expr, b: Expr) -> Self {
        match (a.as_bool(signature), b.as_bool(signature)) {
            (Some(true), _) | (_, Some(false)) => b,
            (_, Some(true)) | (Some(false), _) => a,
            _ => Self::builtin(signature, Builtin::And, vec![a, b], basic::BOOL),
        }
    }
    /// Returns `!a`, simplified if constant or a double negation.
    pub fn negate(signature: &mut Signature, a: Expr) -> Self {
        if let Some(b) = a.as_bool(signature) {
            return Self::boolean(signature, !b);
        }
        if let Some((Builtin::Not, args)) = a.as_builtin(signature) {
            return args[0].clone();
        }
        Self::builtin(signature, Builtin::Not, vec![a], basic::BOOL)
    }
    /// Returns `a == b`; `true` if they are the same expression.
    pub fn equal(signature: &mut Signature, a: Expr, b: Expr) -> Self {
        if a == b {
            return Self::boolean(signature, true);
        }
        Self::builtin(signature, Builtin::Equal, vec![a, b], basic::BOOL)
    }
    /// Returns the innermost applied operation, as of an equation's left-hand side; `None` if the
    /// head is not an operation.
    pub fn head(&self) -> Option<OpId> {
        let mut at = self;
        loop {
            match &at.kind {
                ExprKind::Op(op) => return Some(*op),
                ExprKind::Apply(head, _) => at = head,
                _ => return None,
            }
        }
    }
    /// Returns the built-in at the head and its arguments, if there is one.
    pub fn as_builtin<'a>(&'a self, signature: &Signature) -> Option<(Builtin, &'a [Expr])> {
        let (op, args): (OpId, &[Expr]) = match &self.kind {
            ExprKind::Op(op) => (*op, &[]),
            ExprKind::Apply(head, args) => match head.kind {
                ExprKind::Op(op) => (op, args),
                _ => return None,
            },
            _ => return None,
        };
        match signature.op(op).kind {
            OpKind::Builtin(b) => Some((b, args)),
            _ => None,
        }
    }
    /// Returns the constant if this is literally `true` or `false`.
    pub fn as_bool(&self, signature: &Signature) -> Option<bool> {
        match self.as_builtin(signature)? {
            (Builtin::True, _) => Some(true),
            (Builtin::False, _) => Some(false),
            _ => None,
        }
    }
    /// Returns the conjuncts from left to right, without literal `true`.
    pub fn conjuncts(&self, signature: &Signature) -> Vec<Expr> {
        let mut out = Vec::new();
        let mut todo = vec![self];
        while let Some(e) = todo.pop() {
            match e.as_builtin(signature) {
                Some((Builtin::And, [a, b])) => todo.extend([b, a]),
                Some((Builtin::True, _)) => {}
                _ => out.push(e.clone()),
            }
        }
        out
    }
    /// Calls `see` with each occurrence of an operation.
    pub fn each_op(&self, see: &mut dyn FnMut(OpId)) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &self.kind {
            ExprKind::Var(_) | ExprKind::Number(_) => {}
            ExprKind::Op(op) => see(*op),
            ExprKind::Apply(head, args) => {
                head.each_op(see);
                args.iter().for_each(|a| a.each_op(see));
            }
            ExprKind::Bind(_, _, body) => body.each_op(see),
            ExprKind::Where(body, definitions) => {
                body.each_op(see);
                definitions.iter().for_each(|d| d.1.each_op(see));
            }
        })
    }
    /// True if no variable is free.
    pub fn is_closed(&self) -> bool {
        let mut free = Vec::new();
        self.free_vars(&mut free);
        free.is_empty()
    }
    /// Appends the free variables in order of first occurrence, without duplicates, to `out`.
    pub fn free_vars(&self, out: &mut Vec<VarId>) {
        fn go(e: &Expr, bound: &mut Vec<VarId>, out: &mut Vec<VarId>) {
            // Most expressions are leaves, which need no stack.
            match &e.kind {
                ExprKind::Var(v) => {
                    if !bound.contains(v) && !out.contains(v) {
                        out.push(*v);
                    }
                    return;
                }
                ExprKind::Op(_) | ExprKind::Number(_) => return,
                _ => {}
            }
            stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
                ExprKind::Var(_) | ExprKind::Op(_) | ExprKind::Number(_) => {}
                ExprKind::Apply(head, args) => {
                    go(head, bound, out);
                    args.iter().for_each(|a| go(a, bound, out));
                }
                ExprKind::Bind(_, vars, body) => {
                    let n = bound.len();
                    bound.extend(vars);
                    go(body, bound, out);
                    bound.truncate(n);
                }
                ExprKind::Where(body, defs) => {
                    defs.iter().for_each(|(_, d)| go(d, bound, out));
                    let n = bound.len();
                    bound.extend(defs.iter().map(|d| d.0));
                    go(body, bound, out);
                    bound.truncate(n);
                }
            })
        }
        go(self, &mut Vec::new(), out);
    }
    /// Replaces free variables; shares unchanged subterms.
    #[must_use]
    pub fn substitute(&self, by: &Substitution) -> Expr {
        if by.is_empty() {
            return self.clone();
        }
        self.map_leaves(&|e| match &e.kind {
            ExprKind::Var(v) => by.get(v).cloned(),
            _ => None,
        })
    }
    /// Replaces operations, with or without arguments; shares unchanged subterms.
    #[must_use]
    pub fn replace_operations(&self, by: &AHashMap<OpId, Expr>) -> Expr {
        if by.is_empty() {
            return self.clone();
        }
        self.map_leaves(&|e| match &e.kind {
            ExprKind::Op(op) => by.get(op).cloned(),
            _ => None,
        })
    }
    /// Replaces variables, operations, and numbers that have an image; shares unchanged subterms.
    fn map_leaves(&self, image: &impl Fn(&Expr) -> Option<Expr>) -> Expr {
        if let ExprKind::Var(_) | ExprKind::Op(_) | ExprKind::Number(_) = &self.kind {
            return image(self).unwrap_or_else(|| self.clone());
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || match &self.kind {
            ExprKind::Var(_) | ExprKind::Op(_) | ExprKind::Number(_) => self.clone(),
            ExprKind::Apply(head, args) => {
                let new_head = head.map_leaves(image);
                let new_args: Vec<Expr> = args.iter().map(|a| a.map_leaves(image)).collect();
                if Arc::ptr_eq(&new_head.0, &head.0)
                    && new_args.iter().zip(args).all(|(a, b)| Arc::ptr_eq(&a.0, &b.0))
                {
                    return self.clone();
                }
                Expr::new(ExprKind::Apply(new_head, new_args), self.sort, self.span)
            }
            ExprKind::Bind(binder, vars, body) => {
                let new_body = body.map_leaves(image);
                if Arc::ptr_eq(&new_body.0, &body.0) {
                    return self.clone();
                }
                Expr::new(ExprKind::Bind(*binder, vars.clone(), new_body), self.sort, self.span)
            }
            ExprKind::Where(body, defs) => {
                let defs = defs.iter().map(|(v, d)| (*v, d.map_leaves(image))).collect();
                Expr::new(ExprKind::Where(body.map_leaves(image), defs), self.sort, self.span)
            }
        })
    }
}

/// Conditional equation `condition -> lhs = rhs` with its variables. `lhs` is an operation,
/// possibly applied (also curried: an application of an application).
#[derive(Clone, Debug)]
pub struct Equation {
    /// Variables of the `var` block that it uses.
    pub vars: Vec<VarId>,
    /// Condition; `None` if unconditional.
    pub condition: Option<Expr>,
    /// Left-hand side.
    pub lhs: Expr,
    /// Right-hand side.
    pub rhs: Expr,
    /// Place in the source.
    pub span: Span,
}

/// Signature and equations.
#[derive(Clone, Debug, Default)]
pub struct DataSpec {
    /// Sorts, operations, variables.
    pub signature: Signature,
    /// User equations, in file order.
    pub equations: Vec<Equation>,
}

impl DataSpec {
    /// Returns the sorts for which equations define equality, order or constructors, so that
    /// different constructor terms may be equal.
    pub fn special_sorts(&self) -> AHashSet<SortId> {
        let signature = &self.signature;
        let heads = self.equations.iter().filter_map(|e| e.lhs.head());
        heads
            .filter_map(|op| match signature.op(op).kind {
                OpKind::Mapping => None,
                OpKind::Constructor(_) => Some(signature.domain_range(signature.op(op).sort).1),
                _ => signature.domain_range(signature.op(op).sort).0.first().copied(),
            })
            .collect()
    }
}
