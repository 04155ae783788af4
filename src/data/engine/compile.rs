//! Compiler from typed expressions and equations to code.
//!
//! Every operation gets its rules, one matching tree for each number of applications that some
//! equation has. Closed subexpressions are evaluated once and cached. Coercions that widen numbers
//! vanish. Cost: linear in the expressions, except for the matching trees (see `matching`).

use super::code::{CodeNode, Func, has};
use super::fast_path::quicken;
use super::inline::{Inline, Inliner};
use super::matching;
use super::updates::as_update;
use crate::expr::{Binder, DIGESTS, DataSpec, Equation, Expr, ExprKind};
use crate::shape::shape;
use crate::signature::{Builtin, OpKind, Signature};
use crate::sort::{SortKind, basic};
use crate::value::{Flags, IMPURE, Lambda};
use ahash::AHashMap;
use mu_base::Span;
use mu_base::diagnostic::{Diagnostic, Stage};
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::narrow;
use num_traits::ToPrimitive;
use std::sync::Arc;

/// Properties of an operation for the machine.
#[derive(Debug)]
pub struct OpInfo {
    /// [`IMPURE`] unless it is a free constructor.
    pub flags: Flags,
    /// Number of arguments after 0, 1, 2… applications.
    pub levels: Box<[u32]>,
    /// Its rules for 0, 1, 2… applications.
    pub funcs: Box<[Option<u32>]>,
    /// Lazy arguments of these rules; see [`Func`].
    pub lazy: Box<[u64]>,
    /// Inlined definition, if calls may be inlined.
    pub inline: Option<Arc<Inline>>,
    /// Sort of the first argument (of the constant, if there is none).
    pub first: SortId,
    /// Sort of the result of the first application.
    pub range: SortId,
}

/// Operations of a sort.
#[derive(Clone, Copy, Debug)]
pub struct SortInfo {
    /// `==`.
    pub equal: OpId,
    /// `<`.
    pub less: OpId,
    /// `<=`.
    pub less_equal: OpId,
    /// `if`.
    pub cond: OpId,
    /// User's rules for `==`.
    pub user_equal: Option<u32>,
    /// True if all its values are data and its constructors are free.
    pub free: bool,
    /// Operation that adds to a value of this sort: `|>`, insertion into a set or bag, function
    /// update.
    pub insert: Option<OpId>,
    /// `in`, for a list, set or bag.
    pub member: Option<OpId>,
    /// `count`, for a bag.
    pub count: Option<OpId>,
    /// The empty list, set or bag.
    pub empty: Option<OpId>,
    /// The coercion from the finite to the general set or bag.
    pub coerce: Option<OpId>,
}

/// Compiled data specification, shared by all threads.
#[derive(Debug)]
pub struct Program {
    pub(crate) signature: Signature,
    pub(crate) ops: Vec<OpInfo>,
    pub(crate) sorts: Vec<SortInfo>,
    pub(crate) funcs: Vec<Func>,
    pub(crate) and: OpId,
    pub(crate) or: OpId,
    pub(crate) not: OpId,
    pub(crate) truth: (OpId, OpId),
    /// `+` and `*` of integers.
    pub(crate) add: OpId,
    pub(crate) multiply: OpId,
    /// `+` and `*` of real numbers.
    pub(crate) real_add: OpId,
    pub(crate) real_multiply: OpId,
    pub(crate) divide: OpId,
    pub(crate) floor: OpId,
    /// Conversions between the sorts of numbers: from, to (`Pos`, `Nat`, `Int`, `Real`); the
    /// diagonal is unused.
    pub(crate) conversions: [[OpId; 4]; 4],
    pub(crate) shared: u32,
}

/// Counters and tables that outlive one compilation.
#[derive(Debug, Default)]
pub struct Sharing {
    /// Number of cached values.
    pub next: u32,
    /// True if closed expressions are cached.
    pub enabled: bool,
    /// Compiled binders by their shape: binders that differ in names of variables only are one.
    pub lambdas: AHashMap<Box<[u8]>, Arc<Lambda>>,
    /// Shapes of the binders met, with their free variables in the order of the shape.
    pub shapes: AHashMap<Expr, Arc<(Box<[u8]>, Vec<VarId>)>>,
}

/// Locations of variables.
#[derive(Clone, Debug, Default)]
pub struct VariableLocations {
    slots: AHashMap<VarId, VariableLocation>,
    height: u32,
}

#[derive(Clone, Debug)]
enum VariableLocation {
    Slot(u32),
    /// An argument of an inlined call, with the scope of the call.
    Argument(Arc<(Expr, VariableLocations)>),
}

impl VariableLocations {
    /// Creates the scope of variables in slots, with the height of the frame.
    pub fn new(slots: &[(VarId, u32)], height: u32) -> Self {
        Self {
            slots: slots.iter().map(|&(v, slot)| (v, VariableLocation::Slot(slot))).collect(),
            height,
        }
    }
    /// Creates the scope of variables that form the frame in their order.
    pub fn of(vars: &[VarId]) -> Self {
        Self {
            slots: vars
                .iter()
                .enumerate()
                .map(|(i, v)| (*v, VariableLocation::Slot(narrow::index(i))))
                .collect(),
            height: narrow::index(vars.len()),
        }
    }
    /// Returns the argument, with its scope, that a parameter of an inlined function stands for.
    pub(super) fn argument(&self, v: VarId) -> Option<(&Expr, &VariableLocations)> {
        match self.slots.get(&v) {
            Some(VariableLocation::Argument(argument)) => Some((&argument.0, &argument.1)),
            _ => None,
        }
    }
}

/// Compiler of expressions.
pub struct Compiler<'a> {
    /// The signature.
    pub signature: &'a Signature,
    ops: &'a [OpInfo],
    sorts: &'a [SortInfo],
    sharing: &'a mut Sharing,
}

fn op_sorts(signature: &Signature, op: OpId) -> (Vec<u32>, SortId, SortId) {
    let sort = signature.op(op).sort;
    let mut levels = vec![0];
    let (domain, range) = signature.domain_range(sort);
    let first = domain.first().copied().unwrap_or(sort);
    let mut at = sort;
    while let SortKind::Function(domain, range) = signature.sorts.kind(at) {
        levels.push(levels[levels.len() - 1] + narrow::index(domain.len()));
        at = *range;
    }
    (levels, first, range)
}

/// Adds the built-in operations that values of any sort may need.
fn complete_signature(signature: &mut Signature) -> Vec<SortInfo> {
    use Builtin::*;
    let function = |s: &mut Signature, domain: Vec<SortId>, range| {
        s.sorts.intern(SortKind::Function(domain.into(), range))
    };
    let mut infos = Vec::new();
    for i in 0..signature.sorts.len() {
        let finite = match signature.sorts.kind(SortId::new(i)) {
            SortKind::Set(e) => SortKind::FSet(*e),
            SortKind::Bag(e) => SortKind::FBag(*e),
            _ => continue,
        };
        signature.sorts.intern(finite);
    }
    let count = signature.sorts.len();
    for (builtin, sort) in [(True, basic::BOOL), (False, basic::BOOL)] {
        signature.builtin(builtin, sort);
    }
    for i in 0..count {
        let sort = SortId::new(i);
        let relation = function(signature, vec![sort, sort], basic::BOOL);
        let choice = function(signature, vec![basic::BOOL, sort, sort], sort);
        let mut info = SortInfo {
            equal: signature.builtin(Equal, relation),
            less: signature.builtin(Less, relation),
            less_equal: signature.builtin(LessEqual, relation),
            cond: signature.builtin(If, choice),
            user_equal: None,
            free: true,
            insert: None,
            member: None,
            count: None,
            empty: None,
            coerce: None,
        };
        let kind = signature.sorts.kind(sort).clone();
        let (inserter, domain) = match &kind {
            SortKind::List(e) => (Cons, vec![*e, sort]),
            SortKind::FSet(e) | SortKind::Set(e) => (SetInsert, vec![*e, sort]),
            SortKind::FBag(e) | SortKind::Bag(e) => (BagInsert, vec![*e, basic::NAT, sort]),
            SortKind::Function(domain, range) if domain.len() == 1 => {
                (Update, vec![sort, domain[0], *range])
            }
            _ => {
                infos.push(info);
                continue;
            }
        };
        let at = function(signature, domain, sort);
        info.insert = Some(signature.builtin(inserter, at));
        if let SortKind::List(e)
        | SortKind::FSet(e)
        | SortKind::Set(e)
        | SortKind::FBag(e)
        | SortKind::Bag(e) = kind
        {
            let at = function(signature, vec![e, sort], basic::BOOL);
            info.member = Some(signature.builtin(In, at));
        }
        if let SortKind::FBag(e) | SortKind::Bag(e) = kind {
            let at = function(signature, vec![e, sort], basic::NAT);
            info.count = Some(signature.builtin(Count, at));
        }
        let finite = match kind {
            SortKind::Set(e) => Some((SortKind::FSet(e), FSetToSet)),
            SortKind::Bag(e) => Some((SortKind::FBag(e), FBagToBag)),
            _ => None,
        };
        if let Some((finite, coercion)) = finite {
            let finite = signature.sorts.intern(finite);
            let at = function(signature, vec![finite], sort);
            info.coerce = Some(signature.builtin(coercion, at));
        }
        info.empty = match signature.sorts.kind(sort) {
            SortKind::List(_) => Some(EmptyList),
            SortKind::FSet(_) => Some(EmptySet),
            SortKind::FBag(_) => Some(EmptyBag),
            _ => None,
        }
        .map(|b| signature.builtin(b, sort));
        infos.push(info);
    }
    infos
}

/// Declares the conversions between sorts of numbers; `none` stands on the diagonal.
fn conversions(signature: &mut Signature, none: OpId) -> [[OpId; 4]; 4] {
    use Builtin::*;
    let sorts = [basic::POS, basic::NAT, basic::INT, basic::REAL];
    let all = [
        [None, Some(PosToNat), Some(PosToInt), Some(PosToReal)],
        [Some(NatToPos), None, Some(NatToInt), Some(NatToReal)],
        [Some(IntToPos), Some(IntToNat), None, Some(IntToReal)],
        [Some(RealToPos), Some(RealToNat), Some(RealToInt), None],
    ];
    let mut out = [[none; 4]; 4];
    for (from, row) in all.into_iter().enumerate() {
        for (to, builtin) in row.into_iter().enumerate() {
            if let Some(builtin) = builtin {
                let sort =
                    signature.sorts.intern(SortKind::Function([sorts[from]].into(), sorts[to]));
                out[from][to] = signature.builtin(builtin, sort);
            }
        }
    }
    out
}

impl Program {
    /// Compiles the equations of a data specification. Error: a left-hand side that is not a
    /// pattern.
    pub fn compile(spec: &DataSpec) -> Result<Arc<Program>, Diagnostic> {
        let mut signature = spec.signature.clone();
        let mut sorts = complete_signature(&mut signature);
        let connective = signature
            .sorts
            .intern(SortKind::Function([basic::BOOL, basic::BOOL].into(), basic::BOOL));
        let negation =
            signature.sorts.intern(SortKind::Function([basic::BOOL].into(), basic::BOOL));
        let (and, or) = (
            signature.builtin(Builtin::And, connective),
            signature.builtin(Builtin::Or, connective),
        );
        let not = signature.builtin(Builtin::Not, negation);
        let truth = (
            signature.builtin(Builtin::True, basic::BOOL),
            signature.builtin(Builtin::False, basic::BOOL),
        );
        let arithmetic =
            signature.sorts.intern(SortKind::Function([basic::INT, basic::INT].into(), basic::INT));
        let (add, multiply) = (
            signature.builtin(Builtin::Add, arithmetic),
            signature.builtin(Builtin::Multiply, arithmetic),
        );
        let quotient = signature
            .sorts
            .intern(SortKind::Function([basic::REAL, basic::REAL].into(), basic::REAL));
        let divide = signature.builtin(Builtin::Divide, quotient);
        let (real_add, real_multiply) = (
            signature.builtin(Builtin::Add, quotient),
            signature.builtin(Builtin::Multiply, quotient),
        );
        let rounding = signature.sorts.intern(SortKind::Function([basic::REAL].into(), basic::INT));
        let floor = signature.builtin(Builtin::Floor, rounding);
        let conversions = conversions(&mut signature, divide);

        // Operations with rules, and their numbers of applications.
        let mut groups: Vec<((OpId, usize), Vec<&Equation>)> = Vec::new();
        let mut index: AHashMap<(OpId, usize), usize> = AHashMap::new();
        for equation in &spec.equations {
            let (op, level, _) = matching::left_hand_side(equation)?;
            let at = *index.entry((op, level)).or_insert(groups.len());
            if at == groups.len() {
                groups.push(((op, level), Vec::new()));
            }
            groups[at].1.push(equation);
        }
        let mut ops: Vec<OpInfo> = signature
            .ops()
            .map(|(id, op)| {
                let (levels, first, range) = op_sorts(&signature, id);
                let funcs: Box<[Option<u32>]> = (0..levels.len())
                    .map(|l| index.get(&(id, l)).map(|&f| narrow::index(f)))
                    .collect();
                let free =
                    matches!(op.kind, OpKind::Constructor(_)) && funcs.iter().all(Option::is_none);
                let lazy = funcs
                    .iter()
                    .map(|f| f.map_or(0, |f| matching::lazy_arguments(&groups[f as usize].1)))
                    .collect();
                OpInfo {
                    flags: if free { 0 } else { IMPURE },
                    levels: levels.into(),
                    funcs,
                    lazy,
                    inline: None,
                    first,
                    range,
                }
            })
            .collect();
        let mut inliner = Inliner::new(&signature, &ops, &groups);
        let inlines: Vec<_> = signature.ops().map(|(id, _)| inliner.inline(id)).collect();
        ops.iter_mut().zip(inlines).for_each(|(info, inline)| info.inline = inline);
        // User-defined equality and constructors that are not free make terms of the sort
        // incomparable.
        for (i, info) in sorts.iter_mut().enumerate() {
            info.user_equal = ops[info.equal.index()].funcs.get(1).copied().flatten();
            if let Some(named) = signature.sorts.declared_sort(SortId::new(i)) {
                // The order of a structured sort determines equality, independent of the user's
                // equations.
                info.free = (info.user_equal.is_none() || named.structured)
                    && named.constructors.iter().all(|c| ops[c.index()].flags == 0);
                if !info.free {
                    named.constructors.iter().for_each(|c| ops[c.index()].flags = IMPURE);
                }
            }
        }
        // Sorts interned later (functions of the operations above) get the operations of Bool:
        // never used.
        sorts.resize(signature.sorts.len(), sorts[0]);

        let mut sharing = Sharing { enabled: true, ..Sharing::default() };
        let mut funcs = Vec::new();
        for ((op, level), equations) in &groups {
            let mut compiler =
                Compiler { signature: &signature, ops: &ops, sorts: &sorts, sharing: &mut sharing };
            let tree = matching::compile_tree(&mut compiler, equations)?;
            let args = ops[op.index()].levels.get(*level).copied().ok_or_else(|| {
                Diagnostic::at(
                    Stage::Internal,
                    equations[0].span,
                    "an equation applies an operation to too many arguments",
                )
            })?;
            funcs.push(Func { op: *op, level: *level, args, tree });
        }
        let shared = sharing.next;
        Ok(Arc::new(Program {
            signature,
            ops,
            sorts,
            funcs,
            and,
            or,
            not,
            truth,
            add,
            multiply,
            real_add,
            real_multiply,
            divide,
            floor,
            conversions,
            shared,
        }))
    }

    /// Returns the program's own signature: that of the specification, followed by further built-in
    /// operations.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }
    #[inline]
    pub(crate) fn op(&self, op: OpId) -> &OpInfo {
        &self.ops[op.index()]
    }
    #[inline]
    pub(crate) fn sort(&self, sort: SortId) -> &SortInfo {
        &self.sorts[sort.index()]
    }
}

impl Program {
    /// True if the operation is a free constructor that gets all its arguments at once.
    pub(super) fn builds(&self, op: OpId, args: usize) -> bool {
        self.ops
            .get(op.index())
            .is_some_and(|info| info.flags == 0 && info.levels[..] == [0, narrow::index(args)])
    }

    /// Returns element and list, if an expression prepends the one to the other and no equation
    /// affects that.
    pub fn as_cons<'e>(&self, e: &'e Expr) -> Option<(&'e Expr, &'e Expr)> {
        let (Builtin::Cons, [head, tail]) = e.as_builtin(&self.signature)? else { return None };
        let plain = |op: OpId| {
            self.ops.get(op.index()).is_some_and(|info| info.funcs.iter().all(Option::is_none))
        };
        e.head().is_some_and(plain).then_some((head, tail))
    }
}

impl<'a> Compiler<'a> {
    /// Creates a compiler of expressions over a compiled program.
    pub fn new(program: &'a Program, sharing: &'a mut Sharing) -> Self {
        Self { signature: &program.signature, ops: &program.ops, sorts: &program.sorts, sharing }
    }
    /// Compiles a whole expression.
    pub fn root(&mut self, e: &Expr, scope: &VariableLocations) -> Result<CodeNode, Diagnostic> {
        let (node, closed) = self.node(e, scope, scope.height)?;
        Ok(quicken(self.share(node, closed), self.signature))
    }
    fn share(&mut self, node: CodeNode, closed: bool) -> CodeNode {
        if !closed
            || !self.sharing.enabled
            || node.is_trivial()
            || matches!(node, CodeNode::Shared(..))
        {
            return node;
        }
        let id = self.sharing.next;
        self.sharing.next += 1;
        CodeNode::Shared(id, Box::new(node))
    }
    /// Compiles several expressions, the i-th at `height + i * step`; closed ones are shared unless
    /// all are.
    fn nodes(
        &mut self,
        es: &[Expr],
        scope: &VariableLocations,
        height: u32,
        step: u32,
    ) -> Result<(Vec<CodeNode>, bool), Diagnostic> {
        let mut nodes = Vec::with_capacity(es.len());
        for (i, e) in es.iter().enumerate() {
            nodes.push(self.node(e, scope, height + narrow::index(i) * step)?);
        }
        let closed = nodes.iter().all(|n| n.1);
        let nodes =
            nodes.into_iter().map(|(n, c)| if closed { n } else { self.share(n, c) }).collect();
        Ok((nodes, closed))
    }
    fn array<const N: usize>(
        &mut self,
        es: &[Expr],
        scope: &VariableLocations,
        height: u32,
        span: Span,
    ) -> Result<(Box<[CodeNode; N]>, bool), Diagnostic> {
        let (nodes, closed) = self.nodes(es, scope, height, 0)?;
        match nodes.try_into() {
            Ok(nodes) => Ok((Box::new(nodes), closed)),
            Err(_) => Err(Diagnostic::at(
                Stage::Internal,
                span,
                "a built-in operation has a wrong number of arguments",
            )),
        }
    }

    fn node(
        &mut self,
        e: &Expr,
        scope: &VariableLocations,
        height: u32,
    ) -> Result<(CodeNode, bool), Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || match &e.kind {
            ExprKind::Var(v) => match scope.slots.get(v) {
                Some(VariableLocation::Slot(slot)) => Ok((CodeNode::Local(*slot), false)),
                Some(VariableLocation::Argument(argument)) => {
                    self.node(&argument.0, &argument.1, height)
                }
                None => {
                    let name = if v.index() < self.signature.var_count() {
                        self.signature.var(*v).name.clone()
                    } else {
                        format!("#{}", v.number())
                    };
                    Err(Diagnostic::at(
                        Stage::Internal,
                        e.span,
                        format!("variable `{name}` is not in scope"),
                    ))
                }
            },
            ExprKind::Number(n) => Ok((
                n.to_i64().map_or_else(|| CodeNode::Big(Box::new(n.clone())), CodeNode::Int),
                true,
            )),
            ExprKind::Op(op) => Ok((self.constant(*op, e)?, true)),
            ExprKind::Apply(head, args) => self.apply(e, head, args, scope, height),
            ExprKind::Bind(binder, vars, body) => {
                if let (Binder::Lambda, [var]) = (binder, &vars[..])
                    && let Some(update) =
                        as_update(self.signature, self.ops, self.sorts, e.sort, *var, body)
                {
                    return self.node(&update, scope, height);
                }
                self.bind(e, *binder, vars, body, scope)
            }
            ExprKind::Where(body, defs) => {
                let rights: Vec<Expr> = defs.iter().map(|d| d.1.clone()).collect();
                let (nodes, closed) = self.nodes(&rights, scope, height, 1)?;
                let mut inner = scope.clone();
                for (i, (v, _)) in defs.iter().enumerate() {
                    inner.slots.insert(*v, VariableLocation::Slot(height + narrow::index(i)));
                }
                let (body, body_closed) =
                    self.node(body, &inner, height + narrow::index(defs.len()))?;
                let body = self.share(body, body_closed);
                Ok((CodeNode::Let(nodes.into(), Box::new(body)), closed && body_closed))
            }
        })
    }

    fn op_info(&self, op: OpId, e: &Expr) -> Result<&'a OpInfo, Diagnostic> {
        self.ops.get(op.index()).ok_or_else(|| {
            Diagnostic::at(
                Stage::Internal,
                e.span,
                format!(
                    "operation #{} was added after the data specification was compiled",
                    op.number()
                ),
            )
        })
    }

    fn constant(&mut self, op: OpId, e: &Expr) -> Result<CodeNode, Diagnostic> {
        let info = self.op_info(op, e)?;
        if let Some(func) = info.funcs[0] {
            return Ok(CodeNode::Call(func, Box::new([])));
        }
        Ok(match self.signature.op(op).kind {
            OpKind::Builtin(Builtin::True) => CodeNode::Bool(true),
            OpKind::Builtin(Builtin::False) => CodeNode::Bool(false),
            OpKind::Builtin(Builtin::EmptyList) => CodeNode::Nil(info.range),
            OpKind::Builtin(Builtin::EmptySet) => CodeNode::EmptySet(info.range),
            OpKind::Builtin(Builtin::EmptyBag) => CodeNode::EmptyBag(info.range),
            OpKind::Constructor(_) if info.flags == 0 && info.levels.len() == 1 => {
                CodeNode::Con(op)
            }
            _ => CodeNode::Sym(op),
        })
    }

    fn apply(
        &mut self,
        e: &Expr,
        head: &Expr,
        args: &[Expr],
        scope: &VariableLocations,
        height: u32,
    ) -> Result<(CodeNode, bool), Diagnostic> {
        // An operation with rules for exactly this number of applications is called with all
        // arguments at once.
        let mut groups: Vec<&[Expr]> = vec![args];
        let mut at = head;
        while let ExprKind::Apply(inner, args) = &at.kind {
            groups.push(args);
            at = inner;
        }
        let level = groups.len();
        if let ExprKind::Op(op) = at.kind {
            let info = self.op_info(op, e)?;
            if info
                .levels
                .get(level)
                .is_none_or(|&n| n as usize != groups.iter().map(|g| g.len()).sum::<usize>())
            {
                return Err(Diagnostic::at(
                    Stage::Internal,
                    e.span,
                    "an operation is applied to a wrong number of arguments",
                ));
            }
            let plain =
                matches!(self.signature.op(op).kind, OpKind::Mapping | OpKind::Constructor(_));
            // Lazy operations stay lazy: rules for `if` are tried if it is undecided; those of
            // others only repeat the built-in semantics.
            let lazy = matches!(
                self.signature.op(op).kind,
                OpKind::Builtin(Builtin::If | Builtin::And | Builtin::Or | Builtin::Implies)
            );
            let only_here = plain && info.funcs[..level].iter().all(Option::is_none);
            if let (1, Some(inline)) = (level, &info.inline) {
                let waiting = inline.arguments_to_defer(self.ops, args, scope);
                if waiting != 0 {
                    return self.inline_call(inline, args, waiting, scope, height);
                }
            }
            match info.funcs[level] {
                Some(func) if (level == 1 && !lazy) || only_here => {
                    let all: Vec<Expr> =
                        groups.iter().rev().flat_map(|g| g.iter().cloned()).collect();
                    if info.lazy[level] != 0 {
                        return self.lazy_call(func, &all, info.lazy[level], scope, height);
                    }
                    let (nodes, closed) = self.nodes(&all, scope, height, 1)?;
                    return Ok((CodeNode::Call(func, nodes.into()), closed));
                }
                _ if level == 1 && info.funcs[0].is_none() => {
                    return self.operation(e, op, args, scope, height);
                }
                _ => {}
            }
        }
        let (function, c1) = self.node(head, scope, height)?;
        let (nodes, c2) = self.nodes(args, scope, height, 1)?;
        let function = if c2 { function } else { self.share(function, c1) };
        Ok((CodeNode::Apply(Box::new(function), nodes.into()), c1 && c2))
    }

    /// Inlines a call; the arguments in `waiting` are evaluated on demand, the others first.
    fn inline_call(
        &mut self,
        f: &Inline,
        args: &[Expr],
        waiting: u64,
        scope: &VariableLocations,
        height: u32,
    ) -> Result<(CodeNode, bool), Diagnostic> {
        let mut inner = VariableLocations { slots: AHashMap::new(), height: scope.height };
        let mut rights: Vec<Expr> = Vec::new();
        for (i, (v, arg)) in f.params.iter().zip(args).enumerate() {
            let place = if has(waiting, i) {
                VariableLocation::Argument(Arc::new((arg.clone(), scope.clone())))
            } else {
                rights.push(arg.clone());
                VariableLocation::Slot(height + narrow::index(rights.len()) - 1)
            };
            inner.slots.insert(*v, place);
        }
        let (nodes, _) = self.nodes(&rights, scope, height, 1)?;
        let (body, _) = self.node(&f.body, &inner, height + narrow::index(rights.len()))?;
        Ok((CodeNode::Let(nodes.into(), Box::new(body)), false))
    }

    /// Compiles a call of a function with lazy arguments. Costly arguments are evaluated above the
    /// frame of the function.
    fn lazy_call(
        &mut self,
        func: u32,
        args: &[Expr],
        lazy: u64,
        scope: &VariableLocations,
        height: u32,
    ) -> Result<(CodeNode, bool), Diagnostic> {
        let (mut nodes, mut waiting) = (Vec::with_capacity(args.len()), 0);
        for (i, arg) in args.iter().enumerate() {
            if has(lazy, i) {
                let above = self.node(arg, scope, height + narrow::index(args.len()))?;
                if above.0.is_costly() {
                    waiting |= 1 << i;
                    nodes.push(above);
                    continue;
                }
            }
            nodes.push(self.node(arg, scope, height + narrow::index(i))?);
        }
        let closed = nodes.iter().all(|n| n.1);
        let nodes: Box<[CodeNode]> =
            nodes.into_iter().map(|(n, c)| if closed { n } else { self.share(n, c) }).collect();
        Ok((
            if waiting == 0 {
                CodeNode::Call(func, nodes)
            } else {
                CodeNode::LazyCall(func, nodes, waiting)
            },
            closed,
        ))
    }

    /// Compiles one application of an operation that has no rules.
    fn operation(
        &mut self,
        e: &Expr,
        op: OpId,
        args: &[Expr],
        scope: &VariableLocations,
        height: u32,
    ) -> Result<(CodeNode, bool), Diagnostic> {
        use Builtin::*;
        let info = self.op_info(op, e)?;
        let builtin = match &self.signature.op(op).kind {
            OpKind::Builtin(b) => *b,
            OpKind::Projection(_) | OpKind::Recogniser(_) if args.len() == 1 => {
                let (arg, closed) = self.node(&args[0], scope, height)?;
                return Ok((CodeNode::Select(op, Box::new(arg)), closed));
            }
            _ => {
                let (nodes, closed) = self.nodes(args, scope, height, 0)?;
                return Ok((CodeNode::Make(op, info.flags, nodes.into()), closed));
            }
        };
        match (builtin, args.len()) {
            (PosToNat | PosToInt | PosToReal | NatToInt | NatToReal | IntToReal, 1) => {
                self.node(&args[0], scope, height)
            }
            (Cons, 2) => {
                let mut heads = vec![args[0].clone()];
                let mut tail = &args[1];
                while let Some((Cons, [head, rest])) = tail.as_builtin(self.signature) {
                    heads.push(head.clone());
                    tail = rest;
                }
                heads.push(tail.clone());
                let (mut nodes, closed) = self.nodes(&heads, scope, height, 1)?;
                let tail = nodes.pop().expect("the tail is the last one");
                Ok((CodeNode::List(nodes.into(), Box::new(tail)), closed))
            }
            (If, 3) => {
                self.array(args, scope, height, e.span).map(|(n, c)| (CodeNode::If(op, n), c))
            }
            (And, 2) => self.array(args, scope, height, e.span).map(|(n, c)| (CodeNode::And(n), c)),
            (Or, 2) => self.array(args, scope, height, e.span).map(|(n, c)| (CodeNode::Or(n), c)),
            (Implies, 2) => {
                self.array(args, scope, height, e.span).map(|(n, c)| (CodeNode::Implies(n), c))
            }
            (Update, 3) => {
                self.array(args, scope, height, e.span).map(|(n, c)| (CodeNode::Update(op, n), c))
            }
            (BagInsert, 3) => self
                .array(args, scope, height, e.span)
                .map(|(n, c)| (CodeNode::BagInsert(op, n), c)),
            (_, 2) => self
                .array(args, scope, height, e.span)
                .map(|(n, c)| (CodeNode::Prim2(builtin, op, n), c)),
            (_, 1) => {
                let (arg, closed) = self.node(&args[0], scope, height)?;
                Ok((CodeNode::Prim1(builtin, op, Box::new(arg)), closed))
            }
            _ => Err(Diagnostic::at(
                Stage::Internal,
                e.span,
                format!("`{}` is applied to {} arguments", self.signature.op(op).name, args.len()),
            )),
        }
    }

    fn bind(
        &mut self,
        e: &Expr,
        binder: Binder,
        vars: &[VarId],
        body: &Expr,
        scope: &VariableLocations,
    ) -> Result<(CodeNode, bool), Diagnostic> {
        let known = self.sharing.shapes.get(e).cloned();
        let known = known.unwrap_or_else(|| {
            let mut free = Vec::new();
            e.free_vars(&mut free);
            let known = Arc::new((shape(self.signature, e, &free), free));
            self.sharing.shapes.insert(e.clone(), known.clone());
            known
        });
        let (shape, free) = &*known;
        let lambda = match self.sharing.lambdas.get(shape) {
            Some(lambda) => lambda.clone(),
            None => {
                let mut inner = VariableLocations {
                    slots: AHashMap::new(),
                    height: narrow::index(free.len() + vars.len()),
                };
                for (i, v) in vars.iter().chain(free).enumerate() {
                    inner.slots.insert(*v, VariableLocation::Slot(narrow::index(i)));
                }
                let code = self.root(body, &inner)?;
                let sorts = match self.signature.sorts.kind(e.sort) {
                    SortKind::Function(domain, _) if binder == Binder::Lambda => domain.to_vec(),
                    _ => vars
                        .iter()
                        .map(|v| sort_of_var(self.signature, *v, body))
                        .collect::<Result<Vec<_>, _>>()?,
                };
                let lambda = Arc::new(Lambda {
                    binder,
                    vars: vars.to_vec(),
                    sorts,
                    sort: e.sort,
                    free: free.clone(),
                    body: code,
                    expr: e.clone(),
                    key: DIGESTS.hash_one(shape),
                });
                self.sharing.lambdas.insert(shape.clone(), lambda.clone());
                lambda
            }
        };
        let mut slots = Vec::with_capacity(free.len());
        for v in free {
            match self.node(&Expr::new(ExprKind::Var(*v), basic::BOOL, e.span), scope, 0)?.0 {
                CodeNode::Local(slot) => slots.push(slot),
                _ => {
                    return Err(Diagnostic::at(
                        Stage::Internal,
                        e.span,
                        "a free variable has no slot",
                    ));
                }
            }
        }
        let closed = slots.is_empty();
        Ok((CodeNode::Bind(lambda, slots.into()), closed))
    }
}

/// Returns the sort of a variable; a variable newer than the signature must occur in `inside`.
pub fn sort_of_var(signature: &Signature, var: VarId, inside: &Expr) -> Result<SortId, Diagnostic> {
    if var.index() < signature.var_count() {
        return Ok(signature.var(var).sort);
    }
    fn find(e: &Expr, var: VarId) -> Option<SortId> {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
            ExprKind::Var(v) => (*v == var).then_some(e.sort),
            ExprKind::Op(_) | ExprKind::Number(_) => None,
            ExprKind::Apply(head, args) => {
                find(head, var).or_else(|| args.iter().find_map(|a| find(a, var)))
            }
            ExprKind::Bind(_, _, body) => find(body, var),
            ExprKind::Where(body, defs) => {
                find(body, var).or_else(|| defs.iter().find_map(|d| find(&d.1, var)))
            }
        })
    }
    find(inside, var).ok_or_else(|| {
        Diagnostic::at(
            Stage::Internal,
            inside.span,
            format!("variable #{} is newer than the signature and does not occur", var.number()),
        )
    })
}
