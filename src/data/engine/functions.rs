//! Normal forms of functions, and of infinite sets and bags: one value for texts of one function.
//!
//! In: a value in a state or in a label. Out: an equal value. The body of a `lambda` or of a
//! comprehension is evaluated for an unknown argument and its variables are numbered by depth, as
//! the toolset rewrites below a `lambda`; so `lambda y: Nat. f(y)` is `f`. Updates of a function
//! keep their form: they are canonical over one base ([`crate::builtins::function`]). A value that
//! cannot be evaluated so stays as it is.
//!
//! Cost: nothing for a value without binders; for a binder a look-up, and the evaluation of its
//! body the first time. Invariant: the result is equal to the input, and depends on the input only,
//! not on the thread. Two functions with one normal form are equal; equal functions may have two.
//! Functions over finite sorts are not listed point by point: an abstraction of a sort to some of
//! its constants must not lose the value at the others.

use super::compile::{Compiler, Program, Sharing, VariableLocations};
use super::machine::{EvaluationMachine, Outcome};
use super::terms::Terms as _;
use super::{Engine, MAX_CACHED};
use crate::engine::code::CodeNode;
use crate::expr::{Binder, Expr, ExprKind};
use crate::sort::{SortKind, basic};
use crate::value::{Closure, IMPURE, Rich, Value};
use ahash::AHashMap;
use mu_base::Span;
use mu_base::diagnostic::Diagnostic;
use mu_base::ids::{OpId, SortId, VarId};
use std::borrow::Cow;

/// Largest number of steps to evaluate one body.
const MAX_STEPS: u64 = 1 << 16;
/// Largest number of candidates for an unknown of a quantifier in a body.
const MAX_CANDIDATES: u64 = 1 << 6;
/// Deepest nesting of binders.
const MAX_BINDERS: usize = 32;

/// Normal forms of the functions met.
pub(super) type NormalFunctions = AHashMap<(SortId, Value), Value>;

impl Engine {
    /// Returns an equal value with its functions in normal form.
    pub fn normal_functions<'v>(&mut self, value: &'v Value, sort: SortId) -> Cow<'v, Value> {
        if value.is_open() || value.flags() & IMPURE == 0 {
            return Cow::Borrowed(value);
        }
        let program = self.program.clone();
        let mut known = std::mem::take(&mut self.functions);
        let result = self.normal_parts(&program, &mut known, value, sort);
        if known.len() > MAX_CACHED {
            known.clear();
        }
        self.functions = known;
        Cow::Owned(result)
    }

    /// Returns a value with its parts in normal form.
    fn normal_parts(
        &mut self,
        p: &Program,
        known: &mut NormalFunctions,
        v: &Value,
        sort: SortId,
    ) -> Value {
        if v.flags() & IMPURE == 0 || is_plain_table(v) {
            return v.clone();
        }
        let function = matches!(p.signature.sorts.kind(sort), SortKind::Function(..))
            && matches!(v.as_rich(), Some(Rich::Closure(_) | Rich::Table(..)));
        let infinite = matches!(p.signature.sorts.kind(sort), SortKind::Set(_) | SortKind::Bag(_))
            && (v.as_closure().is_some() || v.as_app().is_some());
        if function || infinite {
            let key = (sort, v.clone());
            if let Some(normal) = known.get(&key) {
                return normal.clone();
            }
            let normal = self.normal_function(p, v, sort);
            known.insert((sort, normal.clone()), normal.clone());
            known.insert(key, normal.clone());
            return normal;
        }
        stacker::maybe_grow(128 << 10, 4 << 20, || match v {
            Value::Cons(_) => {
                let SortKind::List(element) = *p.signature.sorts.kind(sort) else {
                    return v.clone();
                };
                let (mut heads, mut at) = (Vec::new(), v);
                while let Value::Cons(cell) = at {
                    heads.push(&cell.head);
                    at = &cell.tail;
                }
                heads.into_iter().rev().fold(at.clone(), |tail, head| {
                    Value::cons(self.normal_parts(p, known, head, element), tail)
                })
            }
            Value::App1(_) | Value::App2(_) | Value::App3(_) | Value::AppN(_) => {
                let (op, args) = v.application();
                let (domain, _) = p.signature.domain_range(p.signature.op(op).sort);
                if domain.len() != args.len() {
                    return v.clone();
                }
                let args = args.iter().zip(domain.to_vec());
                let args =
                    args.map(|(a, sort)| self.normal_parts(p, known, a, sort)).collect::<Vec<_>>();
                Value::app(op, p.op(op).flags, args)
            }
            _ => v.clone(),
        })
    }

    fn normal_function(&mut self, p: &Program, v: &Value, sort: SortId) -> Value {
        let limit = self.machine.meter.set_limit(MAX_STEPS);
        let candidates = std::mem::replace(&mut self.machine.listings.growth_limit, MAX_CANDIDATES);
        let mark = self.machine.unknowns.mark();
        let normal = self.run(|m| m.without_suspension(|m| m.normal_binder(p, v, sort, 0)));
        self.machine.unknowns.undo(mark);
        self.machine.listings.growth_limit = candidates;
        self.machine.meter.set_limit(limit);
        match normal {
            Ok(normal) if !normal.is_open() => normal,
            _ => v.clone(),
        }
    }
}

/// True if a value is updates of an operation by data, which are in normal form.
fn is_plain_table(v: &Value) -> bool {
    let Some(Rich::Table(_, base, entries)) = v.as_rich() else { return false };
    base.as_rich().is_none() && entries.iter().all(|(k, v)| (k.flags() | v.flags()) & IMPURE == 0)
}

/// Adds the operands of nested connectives that are not there yet.
fn add_operands(op: OpId, v: Value, out: &mut Vec<Value>) {
    match v.as_app() {
        Some((own, args)) if own == op && args.len() == 2 => {
            for arg in args {
                add_operands(op, arg.clone(), out);
            }
        }
        _ if out.contains(&v) => {}
        _ => out.push(v),
    }
}

impl EvaluationMachine {
    /// Returns a function, set, or bag with its body evaluated for unknowns of its variables;
    /// `depth` binders are around it.
    fn normal_binder(
        &mut self,
        p: &Program,
        v: &Value,
        sort: SortId,
        depth: usize,
    ) -> Outcome<Value> {
        if let Some(Rich::Table(own, base, entries)) = v.as_rich() {
            let base = self.normal_binder(p, base, *own, depth)?;
            let (_, range) = p.signature.domain_range(*own);
            let entries = entries
                .iter()
                .map(|(k, v)| Ok((k.clone(), self.normal_body(p, v.clone(), range, depth)?)))
                .collect::<Outcome<Vec<_>>>()?;
            return Ok(Value::rich(Rich::Table(*own, base, entries.into())));
        }
        let Some(closure) = v.as_closure() else { return self.normal_set(p, v, sort, depth) };
        if depth > MAX_BINDERS {
            return Err(Box::new(Diagnostic::internal("binders are nested too deeply")));
        }
        let lambda = closure.lambda.clone();
        let inner = depth + lambda.vars.len();
        let vars: Vec<VarId> = (depth..inner).map(VarId::local).collect();
        let frame = self.stack.len();
        for (var, sort) in vars.iter().zip(&lambda.sorts) {
            let unknown = self.unknowns.fresh(*sort, Some(*var));
            self.stack.push(unknown);
        }
        self.stack.extend(closure.captures.iter().cloned());
        let body = self.enter(p, &lambda.body, frame)?;
        let range = match (lambda.binder, p.signature.sorts.kind(sort)) {
            (Binder::Lambda, SortKind::Function(_, range)) => *range,
            (Binder::Lambda, _) => return Err(Box::new(Diagnostic::internal("not a function"))),
            (Binder::BagComprehension, _) => basic::NAT,
            (Binder::SetComprehension | Binder::Forall | Binder::Exists, _) => basic::BOOL,
        };
        self.bind(p, lambda.binder, vars, (body, range), lambda.sort)
    }

    /// Returns a binder of a sort with a body and its sort; the variables are the last by depth.
    fn bind(
        &mut self,
        p: &Program,
        binder: Binder,
        vars: Vec<VarId>,
        (body, range): (Value, SortId),
        sort: SortId,
    ) -> Outcome<Value> {
        let depth = vars.last().and_then(|v| v.local_index()).map_or(0, |i| i + 1);
        let body = self.normal_body(p, body, range, depth)?;
        let mut open = Vec::new();
        self.unknowns.collect_unbound(&body, &mut open);
        if open.iter().any(|u| self.unknowns.var(*u).is_none()) {
            return Err(Box::new(Diagnostic::internal("an unknown of a search is left")));
        }
        let body = self.to_expr(p, &body, range);
        self.close(p, &Expr::new(ExprKind::Bind(binder, vars, body), sort, Span::default()))
    }

    /// Returns the comprehension of a set or bag that is an operation, such as a union with an
    /// infinite set; other values as they are.
    fn normal_set(&mut self, p: &Program, v: &Value, sort: SortId, depth: usize) -> Outcome<Value> {
        let (element, binder) = match p.signature.sorts.kind(sort) {
            SortKind::Set(element) => (*element, Binder::SetComprehension),
            SortKind::Bag(element) => (*element, Binder::BagComprehension),
            _ => return Ok(v.clone()),
        };
        if v.as_app().is_none() {
            return Ok(v.clone());
        }
        let var = VarId::local(depth);
        let unknown = self.unknowns.fresh(element, Some(var));
        let info = p.sort(sort);
        let (body, range) = match (binder, info.member, info.count) {
            (Binder::SetComprehension, Some(member), _) => {
                (self.contains(p, member, &unknown, v)?, basic::BOOL)
            }
            (_, _, Some(count)) => (self.count(p, count, &unknown, v)?, basic::NAT),
            _ => return Ok(v.clone()),
        };
        // Membership in something that has no definition says nothing new.
        if body.as_app().is_some_and(|(op, _)| Some(op) == info.member || Some(op) == info.count) {
            return Ok(v.clone());
        }
        self.bind(p, binder, vec![var], (body, range), sort)
    }

    /// Returns a body with its binders in normal form.
    fn normal_body(&mut self, p: &Program, v: Value, sort: SortId, depth: usize) -> Outcome<Value> {
        if v.flags() & IMPURE == 0 {
            return Ok(v);
        }
        stacker::maybe_grow(128 << 10, 4 << 20, || match &v {
            Value::App1(_) | Value::App2(_) | Value::App3(_) | Value::AppN(_) => {
                let (op, args) = v.application();
                let args = self.normal_arguments(p, args, depth)?;
                if op != p.and && op != p.or {
                    return Ok(Value::app(op, p.op(op).flags, args));
                }
                // Each operand once, so that a set that gets an element again stays the same.
                let mut operands: Vec<Value> = Vec::new();
                for arg in args {
                    add_operands(op, arg, &mut operands);
                }
                let mut operands = operands.into_iter();
                let first = operands.next().expect("a connective has two operands");
                Ok(operands.fold(first, |a, b| Value::app2(op, p.op(op).flags, a, b)))
            }
            Value::Rich(node) => match &node.kind {
                Rich::Closure(_) | Rich::Table(..) => self.normal_binder(p, &v, sort, depth),
                Rich::Apply(head, args) => {
                    let own = self.sort_of(p, head);
                    let head = self.normal_body(p, head.clone(), own, depth)?;
                    let args = self.normal_arguments(p, args, depth)?;
                    Ok(Value::rich(Rich::Apply(head, args.into())))
                }
                // A collection with binders among its elements.
                _ => Err(Box::new(Diagnostic::internal("elements with binders"))),
            },
            Value::Cons(_) => Err(Box::new(Diagnostic::internal("elements with binders"))),
            _ => Ok(v.clone()),
        })
    }

    /// Returns arguments in a body with their binders in normal form.
    fn normal_arguments(
        &mut self,
        p: &Program,
        args: &[Value],
        depth: usize,
    ) -> Outcome<Vec<Value>> {
        args.iter().map(|a| self.normal_body(p, a.clone(), self.sort_of(p, a), depth)).collect()
    }

    /// Compiles a binder with free variables that are those of the current unknowns. It is not
    /// evaluated: the value is the closure.
    fn close(&mut self, p: &Program, e: &Expr) -> Outcome<Value> {
        let mut free = Vec::new();
        e.free_vars(&mut free);
        let mut sharing = Sharing::default();
        let node = Compiler::new(p, &mut sharing).root(e, &VariableLocations::of(&free))?;
        let CodeNode::Bind(lambda, slots) = node else {
            return Err(Box::new(Diagnostic::internal("a binder is compiled to something else")));
        };
        let captures = slots
            .iter()
            .map(|slot| self.unknowns.of_var(free[*slot as usize]))
            .collect::<Option<Vec<Value>>>()
            .ok_or_else(|| Box::new(Diagnostic::internal("a variable has no unknown")))?;
        Ok(Value::rich(Rich::Closure(Closure { lambda, captures: captures.into() })))
    }
}
