//! Lowering of expressions: known values, values in registers, jumps, places of arrays and records.
//!
//! [`Lower::constant`] folds what the parameters determine, with the order of evaluation of the
//! language: a part that could fail is never folded away. [`Lower::branch`] turns conditions into
//! jumps, [`Lower::value`] everything of a simple type into a register.

use crate::code::{Arithmetic, Bits, Fault, Field, FieldTest, Op, Reg, Relation, UNDEFINED};
use crate::layout::{Shape, Simple};
use crate::lower::{Bound, Loc, Lower, Lowered, Spot, Val};
use crate::typed::{
    Binary, Domain, Expr, ExprKind, LocalId, Place, Root, Step, TypeId, TypeKind, Unary,
};
use crate::walk;
use mu_base::{Diagnostic, Span};

/// Parts of the code of an unrolled loop.
const UNROLLED: u64 = 400;
/// Instructions of a program from which on nothing is unrolled or inlined.
pub(crate) const LARGE: usize = 400_000;

/// Values of a loop.
pub(crate) enum Values {
    /// Known values, few enough to unroll the body.
    Each(Vec<i64>),
    /// Intervals of values, one loop after the other.
    Parts(Vec<(i64, i64)>),
    /// Bounds and step that are evaluated.
    Open,
}

impl<'m> Lower<'m> {
    /// Returns the value of an expression that the bound parameters determine.
    pub(crate) fn constant(&self, e: &Expr) -> Option<i64> {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
            ExprKind::Constant(value) => Some(self.layout.own(self.model, e.ty, *value)),
            ExprKind::Read(place) => self.constant_place(place),
            ExprKind::Unary(op, a) => fold_unary(*op, self.constant(a)?),
            ExprKind::Binary(op, a, b) => {
                let a = self.constant(a)?;
                match (op, a) {
                    (Binary::And, 0) => Some(0),
                    (Binary::Or, 1) | (Binary::Implies, 0) => Some(1),
                    (Binary::And | Binary::Or | Binary::Implies, _) => self.constant(b),
                    _ => fold_binary(*op, a, self.constant(b)?),
                }
            }
            ExprKind::Conditional(c, a, b) => {
                if self.constant(c)? != 0 {
                    self.constant(a)
                } else {
                    self.constant(b)
                }
            }
            ExprKind::IsMember(a, ty) => {
                let a = self.constant(a)?;
                self.layout.simple(*ty).map(|s| i64::from(s.contains(a)))
            }
            ExprKind::Quantified { .. }
            | ExprKind::Call(..)
            | ExprKind::IsUndefined(_)
            | ExprKind::MultisetCount { .. } => None,
        })
    }
    fn constant_place(&self, place: &Place) -> Option<i64> {
        match (place.root, &place.steps[..]) {
            (Root::Local(local), []) => match self.scope.bound[local.index()] {
                Bound::Const(value) if value != UNDEFINED => Some(value),
                _ => None,
            },
            _ => None,
        }
    }
    /// Returns bounds of an expression's values; `None` if unknown.
    pub(crate) fn bounds(&self, e: &Expr) -> Option<(i64, i64)> {
        if let Some(value) = self.constant(e) {
            return Some((value, value));
        }
        if let Some(simple) = self.layout.simple(e.ty) {
            return Some((simple.low, simple.high));
        }
        None
    }
    /// True if all values of the expression belong to the type.
    pub(crate) fn fits(&self, e: &Expr, ty: TypeId) -> bool {
        let Some(simple) = self.layout.simple(ty) else { return true };
        if e.ty == ty {
            return true;
        }
        match (self.bounds(e), self.layout.simple(e.ty)) {
            (Some((a, b)), _) if simple.is_interval() => {
                simple.low <= a && b <= simple.high || a > b
            }
            (_, Some(own)) => {
                own.parts.iter().all(|p| simple.parts.iter().any(|q| q.0 <= p.0 && p.1 <= q.1))
            }
            _ => false,
        }
    }

    /// Evaluates an expression of a simple type. An undefined value is an error.
    pub(crate) fn value(&mut self, e: &'m Expr) -> Lowered<Val> {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.evaluate(e))
    }
    fn evaluate(&mut self, e: &'m Expr) -> Lowered<Val> {
        if let Some(value) = self.constant(e) {
            return Ok(Val::Const(value));
        }
        match &e.kind {
            ExprKind::Constant(_) => Err(Diagnostic::internal("a constant without a value")),
            ExprKind::Read(place) => {
                if let (Root::Local(local), []) = (place.root, &place.steps[..]) {
                    match self.scope.bound[local.index()] {
                        Bound::Reg { reg, maybe: false } => return Ok(Val::Reg(reg)),
                        Bound::Const(UNDEFINED) => {
                            self.fail(place.span, Fault::Undefined);
                            return Ok(Val::Const(0));
                        }
                        _ => {}
                    }
                }
                let spot = self.place(place)?;
                Ok(Val::Reg(self.load(spot, true, place.span)?))
            }
            ExprKind::Unary(op, a) => self.unary(e, *op, a),
            ExprKind::Binary(op, a, b) => match op {
                Binary::And | Binary::Or | Binary::Implies => self.truth(e),
                Binary::Equal | Binary::NotEqual if self.layout.simple_or_number(a.ty) => {
                    self.compare(*op, a, b)
                }
                Binary::Equal | Binary::NotEqual => self.truth(e),
                Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => {
                    self.compare(*op, a, b)
                }
                _ => self.arithmetic(e, *op, a, b),
            },
            ExprKind::Conditional(c, a, b) => {
                let d = self.register()?;
                let (other, end) = (self.label(), self.label());
                self.branch(c, false, other)?;
                let mark = self.top;
                let value = self.value(a)?;
                self.move_to(d, value);
                self.top = mark;
                self.emit(Op::Jump { to: end });
                self.place_label(other);
                let value = self.value(b)?;
                self.move_to(d, value);
                self.top = mark;
                self.place_label(end);
                Ok(Val::Reg(d))
            }
            ExprKind::Quantified { .. } => self.truth(e),
            ExprKind::Call(function, arguments) => {
                let spot = self.call(*function, arguments, e.span)?;
                let Some(Spot { loc: Loc::Reg(a), .. }) = spot else {
                    return Err(Diagnostic::internal("a procedure has no value"));
                };
                self.emit_at(Op::Defined { a }, e.span, Fault::Undefined);
                Ok(Val::Reg(a))
            }
            ExprKind::IsUndefined(place) => self.is_undefined(place),
            ExprKind::IsMember(a, ty) => {
                let value = self.value(a)?;
                let simple = self.simple(*ty)?;
                let a = self.in_register(value)?;
                let d = self.register()?;
                let union = self.union(&simple);
                self.emit(Op::IsMember { d, a, union });
                Ok(Val::Reg(d))
            }
            ExprKind::MultisetCount { multiset, predicate, .. }
                if self.constant(predicate) == Some(1) =>
            {
                let d = self.register()?;
                let spot = self.place(multiset)?;
                let multiset = self.multiset(spot.ty)?;
                let Loc::At(at, offset) = spot.loc else {
                    return Err(Diagnostic::internal("a multiset in a register"));
                };
                self.emit(Op::Count { d, at, offset, multiset });
                Ok(Val::Reg(d))
            }
            ExprKind::MultisetCount { local, multiset, predicate } => {
                let d = self.register()?;
                self.emit(Op::Const { d, value: 0 });
                let spot = self.place(multiset)?;
                self.each_element(*local, (spot, multiset.span), &mut |lower| {
                    let skip = lower.label();
                    lower.branch(predicate, false, skip)?;
                    lower.emit(Op::Offset { d, a: d, value: 1 });
                    lower.place_label(skip);
                    Ok(())
                })?;
                Ok(Val::Reg(d))
            }
        }
    }
    fn is_undefined(&mut self, place: &'m Place) -> Lowered<Val> {
        if let (Root::Local(local), []) = (place.root, &place.steps[..]) {
            match self.scope.bound[local.index()] {
                Bound::Reg { maybe: false, .. } => return Ok(Val::Const(0)),
                Bound::Const(value) => return Ok(Val::Const(i64::from(value == UNDEFINED))),
                _ => {}
            }
        }
        let spot = self.place(place)?;
        let d = self.register()?;
        match spot.loc {
            Loc::Reg(a) => {
                self.emit(Op::Const { d, value: UNDEFINED });
                self.emit(Op::Compare { relation: Relation::Equal, d, a, b: d });
            }
            loc => {
                let width = self.simple(spot.ty)?.width;
                self.raw_to(d, loc, width)?;
                self.emit(Op::Not { d, a: d });
            }
        }
        Ok(Val::Reg(d))
    }
    /// Reads a place of a simple type that may be undefined.
    pub(crate) fn peek(&mut self, place: &'m Place) -> Lowered<Val> {
        if let (Root::Local(local), []) = (place.root, &place.steps[..]) {
            match self.scope.bound[local.index()] {
                Bound::Reg { reg, .. } => return Ok(Val::Reg(reg)),
                Bound::Const(value) => return Ok(Val::Const(value)),
                _ => {}
            }
        }
        let spot = self.place(place)?;
        Ok(Val::Reg(self.load(spot, false, place.span)?))
    }
    fn unary(&mut self, e: &'m Expr, op: Unary, a: &'m Expr) -> Lowered<Val> {
        let value = self.value(a)?;
        let a = self.in_register(value)?;
        let d = self.register()?;
        match op {
            Unary::Not => self.emit(Op::Not { d, a }),
            Unary::Complement => {
                self.emit_at(Op::Complement { d, a }, e.span, Fault::Arithmetic);
            }
            Unary::Negate => {
                self.emit(Op::Const { d, value: 0 });
                let op = Op::Arithmetic { op: Arithmetic::Subtract, d, a: d, b: a };
                self.emit_at(op, e.span, Fault::Arithmetic);
            }
        }
        Ok(Val::Reg(d))
    }
    /// Evaluates a condition by jumps.
    fn truth(&mut self, e: &'m Expr) -> Lowered<Val> {
        let d = self.register()?;
        let (no, end) = (self.label(), self.label());
        let mark = self.top;
        self.branch(e, false, no)?;
        self.top = mark;
        self.emit(Op::Const { d, value: 1 });
        self.emit(Op::Jump { to: end });
        self.place_label(no);
        self.emit(Op::Const { d, value: 0 });
        self.place_label(end);
        Ok(Val::Reg(d))
    }
    /// Evaluates two operands, each to a register. The first keeps its value while the second is
    /// evaluated.
    fn operands(&mut self, a: &'m Expr, b: &'m Expr) -> Lowered<(Reg, Reg)> {
        let value = self.value(a)?;
        let mut left = self.in_register(value)?;
        if calls(b) {
            let d = self.register()?;
            self.emit(Op::Move { d, a: left });
            left = d;
        }
        let value = self.value(b)?;
        Ok((left, self.in_register(value)?))
    }
    fn compare(&mut self, op: Binary, a: &'m Expr, b: &'m Expr) -> Lowered<Val> {
        let (a, b) = self.operands(a, b)?;
        let (relation, a, b) = relation(op, a, b);
        let d = self.register()?;
        self.emit(Op::Compare { relation, d, a, b });
        Ok(Val::Reg(d))
    }
    fn arithmetic(&mut self, e: &'m Expr, op: Binary, a: &'m Expr, b: &'m Expr) -> Lowered<Val> {
        if let (Binary::Add | Binary::Subtract, Some(value)) = (op, self.constant(b)) {
            let value = if op == Binary::Add { Some(value) } else { value.checked_neg() };
            if let Some(value) = value {
                let left = self.value(a)?;
                let a = self.in_register(left)?;
                let d = self.register()?;
                self.emit_at(Op::AddConst { d, a, value }, e.span, Fault::Arithmetic);
                return Ok(Val::Reg(d));
            }
        }
        let (a, b) = self.operands(a, b)?;
        let d = self.register()?;
        let op = match op {
            Binary::Add => {
                self.emit_at(Op::Add { d, a, b }, e.span, Fault::Arithmetic);
                return Ok(Val::Reg(d));
            }
            Binary::Subtract => Arithmetic::Subtract,
            Binary::Multiply => Arithmetic::Multiply,
            Binary::Divide => Arithmetic::Divide,
            Binary::Modulo => Arithmetic::Modulo,
            Binary::ShiftLeft => Arithmetic::ShiftLeft,
            Binary::ShiftRight => Arithmetic::ShiftRight,
            Binary::BitAnd => Arithmetic::And,
            Binary::BitOr => Arithmetic::Or,
            _ => Arithmetic::Xor,
        };
        self.emit_at(Op::Arithmetic { op, d, a, b }, e.span, Fault::Arithmetic);
        Ok(Val::Reg(d))
    }

    /// Jumps to a label if the condition has the given value, else goes on.
    pub(crate) fn branch(&mut self, e: &'m Expr, when: bool, to: u32) -> Lowered<()> {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let mark = self.top;
            let result = self.jump(e, when, to);
            self.top = mark;
            result
        })
    }
    fn jump(&mut self, e: &'m Expr, when: bool, to: u32) -> Lowered<()> {
        if let Some(value) = self.constant(e) {
            if (value != 0) == when {
                self.emit(Op::Jump { to });
            }
            return Ok(());
        }
        match &e.kind {
            ExprKind::Unary(Unary::Not, a) => self.branch(a, !when, to),
            ExprKind::Binary(op @ (Binary::And | Binary::Or | Binary::Implies), a, b) => {
                // The value of the first operand that decides, and the result then.
                let (decides, result) = match op {
                    Binary::And => (false, false),
                    Binary::Or => (true, true),
                    _ => (false, true),
                };
                if result == when {
                    self.branch(a, decides, to)?;
                    self.branch(b, when, to)
                } else {
                    let skip = self.label();
                    self.branch(a, decides, skip)?;
                    self.branch(b, when, to)?;
                    self.place_label(skip);
                    Ok(())
                }
            }
            ExprKind::Binary(op @ (Binary::Equal | Binary::NotEqual), a, b) => {
                let equal = (*op == Binary::Equal) == when;
                if self.layout.simple_or_number(a.ty) {
                    self.jump_equal(a, b, equal, to)
                } else {
                    self.jump_alike(a, b, equal, to)
                }
            }
            ExprKind::Binary(
                op @ (Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual),
                a,
                b,
            ) => self.jump_ordered(*op, a, b, when, to),
            ExprKind::Conditional(c, a, b) => {
                let (other, end) = (self.label(), self.label());
                self.branch(c, false, other)?;
                self.branch(a, when, to)?;
                self.emit(Op::Jump { to: end });
                self.place_label(other);
                self.branch(b, when, to)?;
                self.place_label(end);
                Ok(())
            }
            ExprKind::Quantified { all, local, domain, body } => {
                // `forall` is decided by false, `exists` by true.
                let decides = !*all;
                if self.strict && self.is_over_elements(domain) {
                    let mark = self.top;
                    let found = self.register()?;
                    self.emit(Op::Const { d: found, value: 0 });
                    self.each_value(*local, domain, body_size(body), e.span, &mut |lower| {
                        let next = lower.label();
                        lower.branch(body, !decides, next)?;
                        lower.emit(Op::Const { d: found, value: 1 });
                        lower.place_label(next);
                        Ok(())
                    })?;
                    let a = found;
                    let is = decides == when;
                    self.emit(if is { Op::JumpIf { a, to } } else { Op::JumpUnless { a, to } });
                    self.top = mark;
                    return Ok(());
                }
                if decides == when {
                    self.each_value(*local, domain, body_size(body), e.span, &mut |lower| {
                        lower.branch(body, decides, to)
                    })
                } else {
                    let skip = self.label();
                    self.each_value(*local, domain, body_size(body), e.span, &mut |lower| {
                        lower.branch(body, decides, skip)
                    })?;
                    self.emit(Op::Jump { to });
                    self.place_label(skip);
                    Ok(())
                }
            }
            ExprKind::IsUndefined(place) if self.static_place(place).is_some() => {
                let Some((from, _)) = self.static_place(place) else { return Ok(()) };
                let a = self.register()?;
                self.emit(Op::Raw { d: a, from });
                self.emit(if when { Op::JumpUnless { a, to } } else { Op::JumpIf { a, to } });
                Ok(())
            }
            _ => {
                if let Some((from, simple)) = self.static_field(e) {
                    // A boolean: true has the code of 1.
                    let raw = simple.code(1) as u32;
                    self.emit_field(from, raw, when, to, e.span);
                    return Ok(());
                }
                let value = self.value(e)?;
                let a = self.in_register(value)?;
                self.emit(if when { Op::JumpIf { a, to } } else { Op::JumpUnless { a, to } });
                Ok(())
            }
        }
    }
    /// True if a domain has elements of scalarsets.
    pub(crate) fn is_over_elements(&self, domain: &Domain) -> bool {
        let Domain::Type(ty) = domain else { return false };
        matches!(self.model.types.kind(*ty), TypeKind::Scalarset { .. } | TypeKind::Union { .. })
    }
    fn emit_field(&mut self, from: Bits, raw: u32, equal: bool, to: u32, span: Span) {
        let op =
            if equal { Op::JumpField { from, raw, to } } else { Op::JumpOther { from, raw, to } };
        self.emit_at(op, span, Fault::Undefined);
    }
    fn jump_equal(&mut self, a: &'m Expr, b: &'m Expr, equal: bool, to: u32) -> Lowered<()> {
        for (x, y) in [(a, b), (b, a)] {
            let Some(value) = self.constant(y) else { continue };
            if let Some((from, simple)) = self.static_field(x)
                && simple.contains(value)
                && let Ok(raw) = u32::try_from(simple.code(value))
            {
                self.emit_field(from, raw, equal, to, x.span);
                return Ok(());
            }
            if let Ok(value) = i32::try_from(value) {
                let left = self.value(x)?;
                let a = self.in_register(left)?;
                self.emit(if equal {
                    Op::JumpEqual { a, value, to }
                } else {
                    Op::JumpDiffer { a, value, to }
                });
                return Ok(());
            }
        }
        let (a, b) = self.operands(a, b)?;
        let relation = if equal { Relation::Equal } else { Relation::Differ };
        self.emit(Op::JumpCompare { relation, a, b, to });
        Ok(())
    }
    /// Compares arrays or records.
    fn jump_alike(&mut self, a: &'m Expr, b: &'m Expr, equal: bool, to: u32) -> Lowered<()> {
        let left = self.complex(a)?;
        let right = self.complex(b)?;
        if self.layout.same_encoding(left.ty, right.ty) {
            let bits = self.layout.size(left.ty);
            let (a, b) = (self.address(left.loc)?, self.address(right.loc)?);
            let d = self.register()?;
            self.emit(Op::EqualBits { d, a, b, bits });
            self.emit(if equal { Op::JumpIf { a: d, to } } else { Op::JumpUnless { a: d, to } });
            return Ok(());
        }
        let differ = self.label();
        self.parts_differ(left, right, differ, a.span)?;
        if equal {
            self.emit(Op::Jump { to });
            self.place_label(differ);
        } else {
            let end = self.label();
            self.emit(Op::Jump { to: end });
            self.place_label(differ);
            self.emit(Op::Jump { to });
            self.place_label(end);
        }
        Ok(())
    }
    fn parts_differ(&mut self, a: Spot, b: Spot, to: u32, span: Span) -> Lowered<()> {
        let mark = self.top;
        if self.layout.simple(a.ty).is_some() {
            let a = self.load(a, false, span)?;
            let b = self.load(b, false, span)?;
            self.emit(Op::JumpCompare { relation: Relation::Differ, a, b, to });
        } else {
            for (a, b) in self.layout.pairs(a, b) {
                self.parts_differ(a, b, to, span)?;
            }
        }
        self.top = mark;
        Ok(())
    }
    fn jump_ordered(
        &mut self,
        op: Binary,
        a: &'m Expr,
        b: &'m Expr,
        when: bool,
        to: u32,
    ) -> Lowered<()> {
        let op = if when { op } else { opposite(op) };
        if let Some(Ok(value)) = self.constant(b).map(i32::try_from) {
            let left = self.value(a)?;
            let a = self.in_register(left)?;
            let jump = match op {
                Binary::Less => Some(Op::JumpBelow { a, value, to }),
                Binary::LessEqual => {
                    value.checked_add(1).map(|value| Op::JumpBelow { a, value, to })
                }
                Binary::Greater => Some(Op::JumpAbove { a, value, to }),
                _ => value.checked_sub(1).map(|value| Op::JumpAbove { a, value, to }),
            };
            if let Some(jump) = jump {
                self.emit(jump);
                return Ok(());
            }
            let b = self.in_register(Val::Const(i64::from(value)))?;
            let (relation, a, b) = relation(op, a, b);
            self.emit(Op::JumpCompare { relation, a, b, to });
            return Ok(());
        }
        let (a, b) = self.operands(a, b)?;
        let (relation, a, b) = relation(op, a, b);
        self.emit(Op::JumpCompare { relation, a, b, to });
        Ok(())
    }

    // ---- loops -------------------------------------------------------------------------------

    fn values(&self, domain: &Domain, size: u64) -> Values {
        let parts = match domain {
            Domain::Type(ty) => self.layout.simple(*ty).map(|s| s.parts.clone()),
            Domain::Range { from, to, by } => {
                let by = by.as_ref().map_or(Some(1), |b| self.constant(b));
                match (self.constant(from), self.constant(to), by) {
                    (Some(a), Some(b), Some(1)) => Some(vec![(a, b)]),
                    (Some(a), Some(b), Some(by)) if by != 0 => {
                        let count = span_count(a, b, by);
                        if count.saturating_mul(size) > UNROLLED {
                            return Values::Open;
                        }
                        let all = (0..count as i64).map(|n| a + n * by);
                        return Values::Each(all.collect());
                    }
                    _ => None,
                }
            }
        };
        let Some(parts) = parts else { return Values::Open };
        let count = parts.iter().fold(0, |n: u64, p| n.saturating_add(span_count(p.0, p.1, 1)));
        let budget = if self.code.len() < LARGE { UNROLLED } else { 0 };
        if count <= 1 || count.saturating_mul(size) <= budget {
            Values::Each(parts.into_iter().flat_map(|p| p.0..=p.1).collect())
        } else {
            Values::Parts(parts)
        }
    }
    /// Emits a body for each value of a domain. `size`: parts of the body.
    pub(crate) fn each_value(
        &mut self,
        local: LocalId,
        domain: &'m Domain,
        size: u64,
        span: Span,
        body: &mut dyn FnMut(&mut Self) -> Lowered<()>,
    ) -> Lowered<()> {
        let mark = self.top;
        match self.values(domain, size) {
            Values::Each(values) => {
                for value in values {
                    self.scope.bound[local.index()] = Bound::Const(value);
                    body(self)?;
                }
            }
            Values::Parts(parts) => {
                for (low, high) in parts {
                    let reg = self.register()?;
                    self.scope.bound[local.index()] = Bound::Reg { reg, maybe: false };
                    let last = self.in_register(Val::Const(high))?;
                    self.emit(Op::Const { d: reg, value: low });
                    let again = self.label();
                    let end = self.label();
                    self.place_label(again);
                    if low > high {
                        self.emit(Op::Jump { to: end });
                    }
                    body(self)?;
                    let done = Relation::LessEqual;
                    self.emit(Op::JumpCompare { relation: done, a: last, b: reg, to: end });
                    self.emit(Op::Offset { d: reg, a: reg, value: 1 });
                    self.emit(Op::Loop { to: again });
                    self.place_label(end);
                    self.top = mark;
                }
            }
            Values::Open => self.open_loop(local, domain, span, body)?,
        }
        self.scope.bound[local.index()] = Bound::Nothing;
        self.top = mark;
        Ok(())
    }
    /// Emits a loop with bounds and a step that are evaluated once, before it begins.
    fn open_loop(
        &mut self,
        local: LocalId,
        domain: &'m Domain,
        span: Span,
        body: &mut dyn FnMut(&mut Self) -> Lowered<()>,
    ) -> Lowered<()> {
        let Domain::Range { from, to, by } = domain else {
            return Err(Diagnostic::internal("a loop over a type without values"));
        };
        let (counter, last, reg) = (self.register()?, self.register()?, self.register()?);
        let value = self.value(from)?;
        self.move_to(counter, value);
        let value = self.value(to)?;
        self.move_to(last, value);
        let known = by.as_ref().map_or(Some(1), |b| self.constant(b));
        let step = self.register()?;
        match by {
            Some(by) => {
                let value = self.value(by)?;
                self.move_to(step, value);
            }
            None => self.emit(Op::Const { d: step, value: 1 }),
        }
        if known.is_none_or(|k| k == 0) {
            let fine = self.label();
            self.emit(Op::JumpDiffer { a: step, value: 0, to: fine });
            self.fail(span, Fault::Step);
            self.place_label(fine);
        }
        let (again, up, go, end) = (self.label(), self.label(), self.label(), self.label());
        self.place_label(again);
        self.emit(Op::JumpAbove { a: step, value: 0, to: up });
        self.emit(Op::JumpCompare { relation: Relation::Less, a: counter, b: last, to: end });
        self.emit(Op::Jump { to: go });
        self.place_label(up);
        self.emit(Op::JumpCompare { relation: Relation::Less, a: last, b: counter, to: end });
        self.place_label(go);
        self.emit(Op::Move { d: reg, a: counter });
        self.scope.bound[local.index()] = Bound::Reg { reg, maybe: false };
        body(self)?;
        self.emit_at(Op::Add { d: counter, a: counter, b: step }, span, Fault::Arithmetic);
        self.emit(Op::Loop { to: again });
        self.place_label(end);
        Ok(())
    }
    /// Emits a body for each element of a multiset, with the position bound.
    pub(crate) fn each_element(
        &mut self,
        local: LocalId,
        (spot, span): (Spot, Span),
        body: &mut dyn FnMut(&mut Self) -> Lowered<()>,
    ) -> Lowered<()> {
        let Shape::Multiset { capacity, stride, .. } = *self.layout.shape_of(spot.ty) else {
            return Err(Diagnostic::internal("this type is no multiset"));
        };
        let Loc::At(base, offset) = spot.loc else {
            return Err(Diagnostic::internal("a multiset in a register"));
        };
        let mark = self.top;
        if capacity <= 16 && self.code.len() < LARGE {
            for slot in 0..capacity {
                let skip = self.label();
                let d = self.register()?;
                self.raw_to(d, Loc::At(base, offset + slot * stride), 1)?;
                self.emit(Op::JumpUnless { a: d, to: skip });
                self.top = mark;
                self.scope.bound[local.index()] = Bound::Const(i64::from(slot));
                body(self)?;
                self.place_label(skip);
                self.top = mark;
            }
        } else {
            let reg = self.register()?;
            self.emit(Op::Const { d: reg, value: 0 });
            let (again, skip, end) = (self.label(), self.label(), self.label());
            self.place_label(again);
            let inner = self.top;
            let d = self.register()?;
            let fault = Fault::NoElement;
            let op = Op::Index { d, a: reg, low: 0, count: capacity, stride };
            self.emit_at(op, span, fault);
            if let Some(b) = base {
                self.emit(Op::AddOffset { d, a: d, b });
            }
            self.emit(Op::RawAt { d, at: d, width: 1, offset });
            self.emit(Op::JumpUnless { a: d, to: skip });
            self.top = inner;
            self.scope.bound[local.index()] = Bound::Reg { reg, maybe: false };
            body(self)?;
            self.top = inner;
            self.place_label(skip);
            self.emit(Op::Offset { d: reg, a: reg, value: 1 });
            let value = i32::try_from(capacity).map_err(Diagnostic::internal)?;
            self.emit(Op::JumpEqual { a: reg, value, to: end });
            self.emit(Op::Loop { to: again });
            self.place_label(end);
        }
        self.scope.bound[local.index()] = Bound::Nothing;
        self.top = mark;
        Ok(())
    }

    // ---- arrays, records, multisets ----------------------------------------------------------

    /// Evaluates an expression of a type that is not simple to a place in memory.
    pub(crate) fn complex(&mut self, e: &'m Expr) -> Lowered<Spot> {
        match &e.kind {
            ExprKind::Read(place) => self.place(place),
            ExprKind::Call(function, arguments) => self
                .call(*function, arguments, e.span)?
                .ok_or_else(|| Diagnostic::internal("a procedure has no value")),
            ExprKind::Conditional(c, a, b) => {
                let loc = self.memory(self.layout.size(e.ty))?;
                let spot = Spot { loc, ty: e.ty };
                let (other, end) = (self.label(), self.label());
                self.branch(c, false, other)?;
                let value = self.complex(a)?;
                self.copy(spot, value, e.span)?;
                self.emit(Op::Jump { to: end });
                self.place_label(other);
                let value = self.complex(b)?;
                self.copy(spot, value, e.span)?;
                self.place_label(end);
                Ok(spot)
            }
            _ => Err(Diagnostic::internal("an operation on arrays or records")),
        }
    }
    /// Copies a value of any type, with its undefined parts.
    pub(crate) fn copy(&mut self, to: Spot, from: Spot, span: Span) -> Lowered<()> {
        let mark = self.top;
        if self.layout.simple(to.ty).is_some() {
            let a = self.load(from, false, span)?;
            if from.ty != to.ty {
                self.check_range(Val::Reg(a), to.ty, span)?;
            }
            self.store(to, Val::Reg(a), true)?;
        } else if self.layout.same_encoding(to.ty, from.ty) {
            let bits = self.layout.size(to.ty);
            if let (Loc::At(None, x), Loc::At(None, y), 1..=64) = (to.loc, from.loc, bits)
                && let (Some(to), Some(from)) = (Bits::new(x, bits as u8), Bits::new(y, bits as u8))
            {
                self.emit(Op::Copy { from, to });
                return Ok(());
            }
            let (to, from) = (self.address(to.loc)?, self.address(from.loc)?);
            self.emit(Op::CopyBits { to, from, bits });
        } else {
            for (to, from) in self.layout.pairs(to, from) {
                self.copy(to, from, span)?;
            }
        }
        self.top = mark;
        Ok(())
    }

    // ---- tests of guards ---------------------------------------------------------------------

    /// Returns the field of a read at a constant place in one word.
    pub(crate) fn static_field(&self, e: &Expr) -> Option<(Bits, Simple)> {
        let ExprKind::Read(place) = &e.kind else { return None };
        self.static_place(place)
    }
    fn static_place(&self, place: &Place) -> Option<(Bits, Simple)> {
        let (offset, simple) = self.static_offset(place)?;
        Some((Bits::new(offset, simple.width)?, simple.clone()))
    }
    /// Returns the offset of a simple variable at a constant place.
    fn static_offset(&self, place: &Place) -> Option<(u32, &Simple)> {
        let (mut ty, mut at) = match place.root {
            Root::Global(g) => (self.model.globals[g.index()].ty, self.layout.globals[g.index()]),
            Root::Local(local) => match self.scope.bound[local.index()] {
                Bound::Spot(Spot { loc: Loc::At(None, at), ty }) => (ty, at),
                _ => return None,
            },
        };
        for step in &place.steps {
            match (step, self.layout.shape_of(ty)) {
                (Step::Field { field, .. }, Shape::Record(fields)) => {
                    let (offset, inner) = fields[*field as usize];
                    (at, ty) = (at + offset, inner);
                }
                (
                    Step::Index { index, .. },
                    Shape::Array { low, stride, element, index: over, .. },
                ) => {
                    let value = self.constant(index)?;
                    if !self.layout.simple(*over)?.contains(value) {
                        return None;
                    }
                    (at, ty) = (at + (value - low) as u32 * stride, *element);
                }
                (Step::Element { position, .. }, Shape::Multiset { stride, element, .. }) => {
                    let Bound::Const(slot) = self.scope.bound[position.index()] else {
                        return None;
                    };
                    (at, ty) = (at + slot as u32 * stride + 1, *element);
                }
                _ => return None,
            }
        }
        Some((at, self.layout.simple(ty)?))
    }
    /// Returns a condition on one field as a set of its contents. The bit of the content 0 is set:
    /// an undefined value is an error.
    pub(crate) fn field_test(&self, e: &Expr) -> Option<FieldTest> {
        let mut field = None;
        let mut other = false;
        walk::expression(e, &mut |part| match part {
            walk::Part::Expr(e) => match &e.kind {
                ExprKind::Read(_) if self.constant(e).is_some() => {}
                ExprKind::Read(place) | ExprKind::IsUndefined(place) => {
                    match (self.static_offset(place), &field) {
                        (Some(found), None) => field = Some(found),
                        (Some(found), Some(known)) => other |= found != *known,
                        (None, _) => other = true,
                    }
                }
                ExprKind::Constant(_)
                | ExprKind::Unary(..)
                | ExprKind::Binary(..)
                | ExprKind::IsMember(..) => {}
                _ => other = true,
            },
            walk::Part::Stmt(_) | walk::Part::Argument(_) => {}
        });
        let (offset, simple) = field.filter(|f| !other && f.1.width <= 6)?;
        let field = Field { offset, width: simple.width };
        let mut accept = 0;
        for raw in 1..1u64 << field.width {
            let Some(value) = simple.value(raw).filter(|v| simple.contains(*v)) else { continue };
            match self.test_value(e, Some(value))? {
                0 => {}
                _ => accept |= 1 << raw,
            }
        }
        // Without a value every failure is the read of an undefined value.
        let absent = self.test_value(e, None);
        accept |= u64::from(absent != Some(0));
        Some(FieldTest { field, accept, fails: absent.is_none() })
    }
    /// Evaluates a condition for a value of its only field, `None` if that is undefined. Returns
    /// `None` if it fails, or if it may not read the field.
    fn test_value(&self, e: &Expr, value: Option<i64>) -> Option<i64> {
        match &e.kind {
            ExprKind::Constant(_) => self.constant(e),
            ExprKind::Read(_) => self.constant(e).or(value),
            ExprKind::IsUndefined(_) => Some(i64::from(value.is_none())),
            ExprKind::Unary(op, a) => fold_unary(*op, self.test_value(a, value)?),
            ExprKind::Binary(op, a, b) => {
                // The field must be read in any case, so the left operand reads it.
                if matches!(op, Binary::And | Binary::Or | Binary::Implies)
                    && self.constant(a).is_some()
                {
                    return None;
                }
                let a = self.test_value(a, value)?;
                match (op, a) {
                    (Binary::And, 0) => Some(0),
                    (Binary::Or, 1) | (Binary::Implies, 0) => Some(1),
                    (Binary::And | Binary::Or | Binary::Implies, _) => self.test_value(b, value),
                    _ => fold_binary(*op, a, self.test_value(b, value)?),
                }
            }
            ExprKind::IsMember(a, ty) => {
                let a = self.test_value(a, value)?;
                self.layout.simple(*ty).map(|s| i64::from(s.contains(a)))
            }
            _ => None,
        }
    }
}

impl crate::layout::Layout {
    /// True for types with values in registers.
    pub(crate) fn simple_or_number(&self, ty: TypeId) -> bool {
        matches!(self.shape_of(ty), Shape::Simple(_)) || ty == TypeId::INTEGER
    }
    /// True if equal values of the two types have equal bits.
    pub(crate) fn same_encoding(&self, a: TypeId, b: TypeId) -> bool {
        if a == b {
            return true;
        }
        match (self.shape_of(a), self.shape_of(b)) {
            (Shape::Simple(x), Shape::Simple(y)) => x == y,
            (
                Shape::Array { low, count, element, .. },
                Shape::Array { low: other, count: many, element: inner, .. },
            ) => low == other && count == many && self.same_encoding(*element, *inner),
            (Shape::Record(x), Shape::Record(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|(p, q)| self.same_encoding(p.1, q.1))
            }
            (
                Shape::Multiset { capacity, element, .. },
                Shape::Multiset { capacity: most, element: inner, .. },
            ) => capacity == most && self.same_encoding(*element, *inner),
            _ => false,
        }
    }
    /// Returns the corresponding parts of two places of equal structure in memory.
    pub(crate) fn pairs(&self, a: Spot, b: Spot) -> Vec<(Spot, Spot)> {
        let part = |spot: Spot, offset: u32, ty| match spot.loc {
            Loc::At(base, at) => Spot { loc: Loc::At(base, at + offset), ty },
            loc @ Loc::Reg(_) => Spot { loc, ty },
        };
        match (self.shape_of(a.ty), self.shape_of(b.ty)) {
            (Shape::Record(x), Shape::Record(y)) => {
                x.iter().zip(y).map(|(p, q)| (part(a, p.0, p.1), part(b, q.0, q.1))).collect()
            }
            (
                Shape::Array { count, stride, element, .. },
                Shape::Array { stride: step, element: inner, .. },
            ) => (0..*count)
                .map(|n| (part(a, n * stride, *element), part(b, n * step, *inner)))
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// Number of values from `a` to `b` in steps.
fn span_count(a: i64, b: i64, by: i64) -> u64 {
    if by > 0 && a <= b {
        b.abs_diff(a) / by.unsigned_abs() + 1
    } else if by < 0 && a >= b {
        a.abs_diff(b) / by.unsigned_abs() + 1
    } else {
        0
    }
}

/// Parts of an expression.
pub(crate) fn body_size(e: &Expr) -> u64 {
    let mut size = 0;
    walk::expression(e, &mut |_| size += 1);
    size
}

/// True if the expression calls a function, which may write to variables.
pub(crate) fn calls(e: &Expr) -> bool {
    let mut found = false;
    walk::expression(e, &mut |part| {
        found |= matches!(part, walk::Part::Expr(Expr { kind: ExprKind::Call(..), .. }));
    });
    found
}

fn relation(op: Binary, a: Reg, b: Reg) -> (Relation, Reg, Reg) {
    match op {
        Binary::Equal => (Relation::Equal, a, b),
        Binary::NotEqual => (Relation::Differ, a, b),
        Binary::Less => (Relation::Less, a, b),
        Binary::LessEqual => (Relation::LessEqual, a, b),
        Binary::Greater => (Relation::Less, b, a),
        _ => (Relation::LessEqual, b, a),
    }
}

fn opposite(op: Binary) -> Binary {
    match op {
        Binary::Less => Binary::GreaterEqual,
        Binary::LessEqual => Binary::Greater,
        Binary::Greater => Binary::LessEqual,
        _ => Binary::Less,
    }
}

fn fold_unary(op: Unary, a: i64) -> Option<i64> {
    match op {
        Unary::Not => Some(i64::from(a == 0)),
        Unary::Negate => a.checked_neg(),
        Unary::Complement => Some(!a).filter(|value| *value != UNDEFINED),
    }
}

/// Applies an operator to constants. `None` if the result does not fit, or if there is none.
fn fold_binary(op: Binary, a: i64, b: i64) -> Option<i64> {
    apply(op, a, b).filter(|value| *value != UNDEFINED)
}

fn apply(op: Binary, a: i64, b: i64) -> Option<i64> {
    match op {
        Binary::Add => a.checked_add(b),
        Binary::Equal => Some(i64::from(a == b)),
        Binary::NotEqual => Some(i64::from(a != b)),
        Binary::Less => Some(i64::from(a < b)),
        Binary::LessEqual => Some(i64::from(a <= b)),
        Binary::Greater => Some(i64::from(a > b)),
        Binary::GreaterEqual => Some(i64::from(a >= b)),
        Binary::And | Binary::Or | Binary::Implies => None,
        Binary::Subtract => a.checked_sub(b),
        Binary::Multiply => a.checked_mul(b),
        Binary::Divide => a.checked_div(b),
        Binary::Modulo => a.checked_rem(b),
        Binary::ShiftLeft => Some(shift_left(a, b)),
        Binary::ShiftRight => Some(shift_right(a, b)),
        Binary::BitAnd => Some(a & b),
        Binary::BitOr => Some(a | b),
        Binary::BitXor => Some(a ^ b),
    }
}

/// Shifts to the left; a negative number of bits shifts to the right. Bits that leave the 64 are
/// lost.
pub(crate) fn shift_left(a: i64, b: i64) -> i64 {
    if b < 0 {
        return shift_right(a, b.saturating_neg());
    }
    u32::try_from(b).ok().and_then(|b| a.checked_shl(b)).unwrap_or(0)
}

/// Shifts to the right, keeping the sign; a negative number of bits shifts to the left.
pub(crate) fn shift_right(a: i64, b: i64) -> i64 {
    if b < 0 {
        return shift_left(a, b.saturating_neg());
    }
    let most = if a < 0 { -1 } else { 0 };
    u32::try_from(b).ok().and_then(|b| a.checked_shr(b)).unwrap_or(most)
}
