//! Allocation-free evaluation of conditions, numbers and parts of values: typed trees in front of
//! the general code.
//!
//! A condition such as `x_(position(i)) + 1 < n && lab(t) != d2` reads parts of values in the
//! frame, computes with machine integers and gives a truth value. As a [`Truth`] it is evaluated on
//! the frame itself: no value is cloned or dropped, and the stack is not used. In: code from the
//! compiler. Out: the same code, in which the largest expressions of this kind are [`Quick`].
//!
//! Invariant: the answer of a quick expression is that of the general code, which is stored with
//! it. Without an answer (an unknown, a number outside machine range, a user's constructor with
//! equations, a missing value) the general code is evaluated. Cost: linear in the code; a failed
//! attempt costs only the part up to the first term without an answer.

use super::code::CodeNode;
use crate::signature::{Builtin, OpKind, Signature};
use crate::value::Value;
use mu_base::ids::OpId;

/// Limit on the nesting of expressions evaluated without stack checks.
const MAX_NESTED: u32 = 48;

/// Expression with a quick form and its general code.
#[derive(Debug)]
pub struct Quick {
    what: QuickForm,
    /// The general code.
    pub plain: CodeNode,
}

#[derive(Debug)]
enum QuickForm {
    Truth(Truth),
    Number(Number),
    ValuePath(ValuePath),
    Constant(OpId),
}

#[derive(Debug)]
enum Truth {
    Constant(bool),
    ValuePath(ValuePath),
    Not(Box<Truth>),
    All(Vec<Truth>),
    Any(Vec<Truth>),
    Implies(Box<[Truth; 2]>),
    If(Box<[Truth; 3]>),
    Compare(Comparison, Box<[Number; 2]>),
    Same(Box<[ValuePath; 2]>),
    Is(ValuePath, OpId),
    Made(ValuePath, Box<[OpId]>),
}

#[derive(Clone, Copy, Debug)]
enum Comparison {
    Equal,
    Less,
    LessEqual,
}

#[derive(Debug)]
enum Number {
    Constant(i64),
    ValuePath(ValuePath),
    Unary(Builtin, Box<Number>),
    Binary(Builtin, Box<[Number; 2]>),
    If(Box<(Truth, Number, Number)>),
}

/// Value in the frame or among the cached ones, or a part of one.
#[derive(Debug)]
struct ValuePath {
    root: Root,
    path: Vec<PathStep>,
}

#[derive(Clone, Copy, Debug)]
enum Root {
    Slot(u32),
    Kept(u32),
}

#[derive(Debug)]
enum PathStep {
    Field(OpId, u32),
    Head,
    Tail,
    At(Box<Number>),
}

/// Values that quick expressions read.
#[derive(Clone, Copy)]
pub(super) struct ReadContext<'v> {
    pub(super) frame: &'v [Value],
    pub(super) kept: &'v [Option<Value>],
}

impl Quick {
    /// Returns the value; `None` if the general code must be evaluated.
    #[inline]
    pub(super) fn value(&self, seen: ReadContext) -> Option<Value> {
        match &self.what {
            QuickForm::Truth(t) => t.of(seen).map(Value::Bool),
            QuickForm::Number(n) => n.of(seen).map(Value::Int),
            QuickForm::ValuePath(part) => part.of(seen).cloned(),
            QuickForm::Constant(op) => Some(Value::Con(*op)),
        }
    }
}

impl Truth {
    fn of(&self, seen: ReadContext) -> Option<bool> {
        match self {
            Truth::Constant(b) => Some(*b),
            Truth::ValuePath(part) => match part.of(seen)? {
                Value::Bool(b) => Some(*b),
                _ => None,
            },
            Truth::Not(t) => Some(!t.of(seen)?),
            Truth::All(all) => {
                for t in all {
                    if !t.of(seen)? {
                        return Some(false);
                    }
                }
                Some(true)
            }
            Truth::Any(any) => {
                for t in any {
                    if t.of(seen)? {
                        return Some(true);
                    }
                }
                Some(false)
            }
            Truth::Implies(parts) => {
                if !parts[0].of(seen)? {
                    return Some(true);
                }
                parts[1].of(seen)
            }
            Truth::If(parts) => parts[if parts[0].of(seen)? { 1 } else { 2 }].of(seen),
            Truth::Compare(how, sides) => {
                let [a, b] = &**sides;
                let (a, b) = (a.of(seen)?, b.of(seen)?);
                Some(match how {
                    Comparison::Equal => a == b,
                    Comparison::Less => a < b,
                    Comparison::LessEqual => a <= b,
                })
            }
            Truth::Same(sides) => match (sides[0].of(seen)?, sides[1].of(seen)?) {
                (Value::Int(a), Value::Int(b)) => Some(a == b),
                (Value::Con(a), Value::Con(b)) => Some(a == b),
                (a, b) => (a.is_data() && b.is_data()).then(|| a == b),
            },
            Truth::Is(part, op) => match part.of(seen)? {
                Value::Con(c) => Some(c == op),
                v => v.is_data().then_some(false),
            },
            // Made by a constructor without equations, so that no other term equals it.
            Truth::Made(part, ops) => match part.of(seen)? {
                Value::Con(c) => Some(ops.contains(c)),
                v if v.is_data() => v.as_app().map(|(op, _)| ops.contains(&op)),
                _ => None,
            },
        }
    }
}

impl Number {
    fn of(&self, seen: ReadContext) -> Option<i64> {
        match self {
            Number::Constant(n) => Some(*n),
            Number::ValuePath(part) => match part.of(seen)? {
                Value::Int(n) => Some(*n),
                _ => None,
            },
            Number::Unary(builtin, n) => {
                let n = n.of(seen)?;
                match builtin {
                    Builtin::Negate => n.checked_neg(),
                    Builtin::Abs => n.checked_abs(),
                    Builtin::Succ => n.checked_add(1),
                    Builtin::Pred => n.checked_sub(1),
                    Builtin::NatToPos | Builtin::IntToPos | Builtin::RealToPos => {
                        (n >= 1).then_some(n)
                    }
                    Builtin::IntToNat | Builtin::RealToNat => (n >= 0).then_some(n),
                    Builtin::RealToInt => Some(n),
                    _ => None,
                }
            }
            Number::Binary(builtin, sides) => {
                let [a, b] = &**sides;
                let (a, b) = (a.of(seen)?, b.of(seen)?);
                match builtin {
                    Builtin::Add => a.checked_add(b),
                    Builtin::Subtract => a.checked_sub(b),
                    Builtin::Multiply => a.checked_mul(b),
                    Builtin::Max => Some(a.max(b)),
                    Builtin::Min => Some(a.min(b)),
                    Builtin::Div if b > 0 => Some(a.div_euclid(b)),
                    Builtin::Mod if b > 0 => Some(a.rem_euclid(b)),
                    _ => None,
                }
            }
            Number::If(parts) => {
                if parts.0.of(seen)? {
                    parts.1.of(seen)
                } else {
                    parts.2.of(seen)
                }
            }
        }
    }
}

impl ValuePath {
    #[inline]
    fn of<'v>(&self, seen: ReadContext<'v>) -> Option<&'v Value> {
        let mut value = match self.root {
            Root::Slot(slot) => seen.frame.get(slot as usize)?,
            Root::Kept(id) => seen.kept.get(id as usize)?.as_ref()?,
        };
        for step in &self.path {
            value = match (step, value) {
                (PathStep::Field(op, at), value) => {
                    let (made_by, args) = value.as_app()?;
                    if made_by != *op {
                        return None;
                    }
                    args.get(*at as usize)?
                }
                (PathStep::Head, Value::Cons(cell)) => &cell.head,
                (PathStep::Tail, Value::Cons(cell)) => &cell.tail,
                (PathStep::At(n), mut list) => {
                    let mut n = n.of(seen)?;
                    loop {
                        let Value::Cons(cell) = list else { return None };
                        if n == 0 {
                            break &cell.head;
                        }
                        n = n.checked_sub(1)?;
                        list = &cell.tail;
                    }
                }
                _ => return None,
            };
        }
        Some(value)
    }
}

/// Code during the transformation: its quick form with nesting depth, if there is one, and its
/// general code.
struct CodeCandidate {
    what: Option<QuickForm>,
    nested: u32,
    plain: CodeNode,
}

/// Returns the same code, in which the largest expressions with a quick form are
/// [`CodeNode::Quick`].
pub(super) fn quicken(node: CodeNode, signature: &Signature) -> CodeNode {
    transform(node, signature).finish()
}

fn transform(node: CodeNode, signature: &Signature) -> CodeCandidate {
    stacker::maybe_grow(64 << 10, 1 << 20, || match node {
        CodeNode::Local(slot) => CodeCandidate::leaf(
            QuickForm::ValuePath(ValuePath { root: Root::Slot(slot), path: Vec::new() }),
            node,
        ),
        CodeNode::Bool(b) => CodeCandidate::leaf(QuickForm::Truth(Truth::Constant(b)), node),
        CodeNode::Int(n) => CodeCandidate::leaf(QuickForm::Number(Number::Constant(n)), node),
        CodeNode::Con(op) => CodeCandidate::leaf(QuickForm::Constant(op), node),
        CodeNode::Shared(id, body) => {
            let plain = CodeNode::Shared(id, Box::new(quicken(*body, signature)));
            CodeCandidate::leaf(
                QuickForm::ValuePath(ValuePath { root: Root::Kept(id), path: Vec::new() }),
                plain,
            )
        }
        CodeNode::Select(op, arg) => combine(
            [transform(*arg, signature)],
            |[arg]| CodeNode::Select(op, Box::new(arg)),
            |[arg]| select_field(signature, op, arg),
        ),
        CodeNode::Prim1(b, op, arg) => combine(
            [transform(*arg, signature)],
            |[arg]| CodeNode::Prim1(b, op, Box::new(arg)),
            |[arg]| unary(b, arg),
        ),
        CodeNode::Prim2(b, op, parts) => combine(
            parts.map(|n| transform(n, signature)),
            |p| CodeNode::Prim2(b, op, Box::new(p)),
            |p| binary(b, p),
        ),
        CodeNode::And(parts) => combine(
            parts.map(|n| transform(n, signature)),
            |p| CodeNode::And(Box::new(p)),
            |p| connective(Builtin::And, p),
        ),
        CodeNode::Or(parts) => combine(
            parts.map(|n| transform(n, signature)),
            |p| CodeNode::Or(Box::new(p)),
            |p| connective(Builtin::Or, p),
        ),
        CodeNode::Implies(parts) => combine(
            parts.map(|n| transform(n, signature)),
            |p| CodeNode::Implies(Box::new(p)),
            |p| connective(Builtin::Implies, p),
        ),
        CodeNode::If(op, parts) => combine(
            parts.map(|n| transform(n, signature)),
            |p| CodeNode::If(op, Box::new(p)),
            conditional,
        ),
        other => CodeCandidate { what: None, nested: 0, plain: inside(other, signature) },
    })
}

/// Transforms the parts of an expression without a quick form.
fn inside(node: CodeNode, signature: &Signature) -> CodeNode {
    let each = |nodes: Box<[CodeNode]>| {
        nodes.into_iter().map(|n| quicken(n, signature)).collect::<Box<[CodeNode]>>()
    };
    let three = |nodes: Box<[CodeNode; 3]>| Box::new(nodes.map(|n| quicken(n, signature)));
    match node {
        CodeNode::Make(op, flags, args) => CodeNode::Make(op, flags, each(args)),
        CodeNode::Call(func, args) => CodeNode::Call(func, each(args)),
        CodeNode::LazyCall(func, args, lazy) => CodeNode::LazyCall(func, each(args), lazy),
        CodeNode::Update(op, args) => CodeNode::Update(op, three(args)),
        CodeNode::BagInsert(op, args) => CodeNode::BagInsert(op, three(args)),
        CodeNode::List(heads, tail) => {
            CodeNode::List(each(heads), Box::new(quicken(*tail, signature)))
        }
        CodeNode::Apply(function, args) => {
            CodeNode::Apply(Box::new(quicken(*function, signature)), each(args))
        }
        CodeNode::Let(values, body) => {
            CodeNode::Let(each(values), Box::new(quicken(*body, signature)))
        }
        other => other,
    }
}

/// Combines transformed parts: `quick` builds the quick form of the whole, taking all parts or
/// none; otherwise each part stands alone.
fn combine<const N: usize>(
    mut parts: [CodeCandidate; N],
    node: impl FnOnce([CodeNode; N]) -> CodeNode,
    quick: impl FnOnce(&mut [CodeCandidate; N]) -> Option<QuickForm>,
) -> CodeCandidate {
    let nested = 1 + parts.iter().map(|p| p.nested).max().unwrap_or(0);
    if nested <= MAX_NESTED
        && let Some(what) = quick(&mut parts)
    {
        let nested = if matches!(what, QuickForm::ValuePath(_)) { nested - 1 } else { nested };
        return CodeCandidate { what: Some(what), nested, plain: node(parts.map(|p| p.plain)) };
    }
    CodeCandidate { what: None, nested: 0, plain: node(parts.map(CodeCandidate::finish)) }
}

impl CodeCandidate {
    fn leaf(what: QuickForm, plain: CodeNode) -> CodeCandidate {
        CodeCandidate { what: Some(what), nested: 0, plain }
    }

    fn is_truth(&self) -> bool {
        matches!(self.what, Some(QuickForm::Truth(_) | QuickForm::ValuePath(_)))
    }

    fn is_number(&self) -> bool {
        matches!(self.what, Some(QuickForm::Number(_) | QuickForm::ValuePath(_)))
    }

    fn is_part(&self) -> bool {
        matches!(self.what, Some(QuickForm::ValuePath(_)))
    }

    fn truth(&mut self) -> Option<Truth> {
        match self.what.take()? {
            QuickForm::Truth(t) => Some(t),
            QuickForm::ValuePath(part) => Some(Truth::ValuePath(part)),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Number> {
        match self.what.take()? {
            QuickForm::Number(n) => Some(n),
            QuickForm::ValuePath(part) => Some(Number::ValuePath(part)),
            _ => None,
        }
    }

    fn part(&mut self) -> Option<ValuePath> {
        match self.what.take()? {
            QuickForm::ValuePath(part) => Some(part),
            _ => None,
        }
    }

    fn finish(self) -> CodeNode {
        match self.what {
            // These are as fast already.
            Some(
                QuickForm::Truth(Truth::Constant(_))
                | QuickForm::Number(Number::Constant(_))
                | QuickForm::Constant(_),
            )
            | None => self.plain,
            Some(QuickForm::ValuePath(part)) if part.path.is_empty() => self.plain,
            Some(what) => CodeNode::Quick(Box::new(Quick { what, plain: self.plain })),
        }
    }
}

fn select_field(signature: &Signature, op: OpId, arg: &mut CodeCandidate) -> Option<QuickForm> {
    match &signature.op(op).kind {
        OpKind::Projection(parts) if arg.is_part() => {
            let [(constructor, at)] = parts[..] else { return None };
            let mut part = arg.part()?;
            part.path.push(PathStep::Field(constructor, at));
            Some(QuickForm::ValuePath(part))
        }
        OpKind::Recogniser(constructors) if arg.is_part() => {
            Some(QuickForm::Truth(Truth::Made(arg.part()?, constructors.clone().into())))
        }
        _ => None,
    }
}

fn unary(builtin: Builtin, arg: &mut CodeCandidate) -> Option<QuickForm> {
    use Builtin::*;
    match builtin {
        Not if arg.is_truth() => Some(QuickForm::Truth(Truth::Not(Box::new(arg.truth()?)))),
        Head | Tail if arg.is_part() => {
            let mut part = arg.part()?;
            part.path.push(if builtin == Head { PathStep::Head } else { PathStep::Tail });
            Some(QuickForm::ValuePath(part))
        }
        Negate | Abs | Succ | Pred | NatToPos | IntToPos | RealToPos | IntToNat | RealToNat
        | RealToInt
            if arg.is_number() =>
        {
            Some(QuickForm::Number(Number::Unary(builtin, Box::new(arg.number()?))))
        }
        _ => None,
    }
}

fn binary(builtin: Builtin, parts: &mut [CodeCandidate; 2]) -> Option<QuickForm> {
    use Builtin::*;
    let numbers = parts.iter().all(CodeCandidate::is_number);
    match builtin {
        Equal => Some(QuickForm::Truth(equal(parts)?)),
        NotEqual => Some(QuickForm::Truth(Truth::Not(Box::new(equal(parts)?)))),
        Less | LessEqual | Greater | GreaterEqual if numbers => {
            let [a, b] = parts;
            let (a, b) = (a.number()?, b.number()?);
            let how = if matches!(builtin, Less | Greater) {
                Comparison::Less
            } else {
                Comparison::LessEqual
            };
            let sides = if matches!(builtin, Less | LessEqual) { [a, b] } else { [b, a] };
            Some(QuickForm::Truth(Truth::Compare(how, Box::new(sides))))
        }
        Add | Subtract | Multiply | Max | Min | Div | Mod if numbers => {
            let [a, b] = parts;
            Some(QuickForm::Number(Number::Binary(builtin, Box::new([a.number()?, b.number()?]))))
        }
        At if parts[0].is_part() && parts[1].is_number() => {
            let mut part = parts[0].part()?;
            part.path.push(PathStep::At(Box::new(parts[1].number()?)));
            Some(QuickForm::ValuePath(part))
        }
        _ => None,
    }
}

fn equal([a, b]: &mut [CodeCandidate; 2]) -> Option<Truth> {
    match (&a.what, &b.what) {
        (Some(QuickForm::ValuePath(_)), Some(QuickForm::ValuePath(_))) => {
            Some(Truth::Same(Box::new([a.part()?, b.part()?])))
        }
        (Some(QuickForm::ValuePath(_)), Some(QuickForm::Constant(op))) => {
            Some(Truth::Is(a.part()?, *op))
        }
        (Some(QuickForm::Constant(op)), Some(QuickForm::ValuePath(_))) => {
            Some(Truth::Is(b.part()?, *op))
        }
        (
            Some(QuickForm::ValuePath(_) | QuickForm::Number(_)),
            Some(QuickForm::ValuePath(_) | QuickForm::Number(_)),
        ) => Some(Truth::Compare(Comparison::Equal, Box::new([a.number()?, b.number()?]))),
        _ => None,
    }
}

fn connective(builtin: Builtin, parts: &mut [CodeCandidate; 2]) -> Option<QuickForm> {
    if !parts.iter().all(CodeCandidate::is_truth) {
        return None;
    }
    let [a, b] = parts;
    let (a, b) = (a.truth()?, b.truth()?);
    Some(QuickForm::Truth(match builtin {
        Builtin::And => {
            Truth::All(flatten(a, b, |t| if let Truth::All(all) = t { Ok(all) } else { Err(t) }))
        }
        Builtin::Or => {
            Truth::Any(flatten(a, b, |t| if let Truth::Any(any) = t { Ok(any) } else { Err(t) }))
        }
        _ => Truth::Implies(Box::new([a, b])),
    }))
}

/// Collects the parts of two conditions under the same connective, in their order.
fn flatten(a: Truth, b: Truth, parts: impl Fn(Truth) -> Result<Vec<Truth>, Truth>) -> Vec<Truth> {
    let mut all = parts(a).unwrap_or_else(|t| vec![t]);
    match parts(b) {
        Ok(more) => all.extend(more),
        Err(t) => all.push(t),
    }
    all
}

fn conditional(parts: &mut [CodeCandidate; 3]) -> Option<QuickForm> {
    let [c, a, b] = parts;
    if !c.is_truth() {
        return None;
    }
    match (&a.what, &b.what) {
        (Some(QuickForm::Number(_)), _) | (_, Some(QuickForm::Number(_)))
            if a.is_number() && b.is_number() =>
        {
            Some(QuickForm::Number(Number::If(Box::new((c.truth()?, a.number()?, b.number()?)))))
        }
        (Some(QuickForm::Truth(_)), _) | (_, Some(QuickForm::Truth(_)))
            if a.is_truth() && b.is_truth() =>
        {
            Some(QuickForm::Truth(Truth::If(Box::new([c.truth()?, a.truth()?, b.truth()?]))))
        }
        _ => None,
    }
}
