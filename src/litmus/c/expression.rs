//! Expressions of C: types, promotions and conversions as in sections 6.3 and 6.5 of the C11
//! standard.
//!
//! Input: tokens. Output: values with types, and the operations that evaluate them. Invariant: a
//! value is extended to 64 bits according to its type; values of 128 bits are rejected where they
//! may need more. Integer arithmetic wraps in two's
//! complement, also for signed types. Division by zero and shifts by a negative number or by the
//! width or more are undefined: such paths are dropped and reported ([`Op::Defined`]).

use super::{INT, Lowering, POINTER, Typed, literal, tag};
use crate::code::{Binary, Op, RegisterExpr, Unary};
use crate::layout::IntegerType;
use mu_base::words::{Cursor, Token, TokenKind};
use mu_base::{Diagnostic, Stage};

/// Largest number of operators in a row without parentheses; longer expressions are rejected.
const OPERATORS: usize = 1000;

impl Typed {
    /// Creates a value of an integer type.
    pub(super) fn of(e: RegisterExpr, ty: IntegerType) -> Self {
        Typed { e, ty, pointee: None }
    }
    /// Converts it to another type. The value must be exact ([`Lowering::convert`]).
    fn to(self, ty: IntegerType) -> RegisterExpr {
        let wider = ty.width > self.ty.width && (ty.signed || !self.ty.signed) || ty == self.ty;
        match ty.boolean {
            true if self.ty.boolean => self.e,
            true => RegisterExpr::binary(Binary::Ne, self.e, RegisterExpr::Const(0)),
            false if wider => self.e,
            false => self.e.extend_bytes(ty.width, ty.signed),
        }
    }
    /// Converts a type that is narrower than `int` to `int`.
    fn promote(self) -> Self {
        let ty = promoted_type(self.ty);
        Typed { ty, ..self }
    }
}

fn promoted_type(ty: IntegerType) -> IntegerType {
    if ty.width < INT.width { INT } else { ty }
}

/// Returns the type to which both operands of arithmetic are converted.
fn common(left: IntegerType, right: IntegerType) -> IntegerType {
    let (l, r) = (promoted_type(left), promoted_type(right));
    let wide = if l.width >= r.width { l } else { r };
    IntegerType::integer(wide.width, wide.signed && (l.width != r.width || l.signed && r.signed))
}

/// True if values of a type may need more than the 64 bits of a register.
pub(super) fn is_wide(ty: IntegerType) -> bool {
    ty.width > 8
}

impl Lowering<'_> {
    /// Converts a value to another type, and notes if 64 bits may not represent the result. A value
    /// of 128 bits is represented if its upper half extends its lower half, by sign or zero.
    pub(super) fn convert(&mut self, value: Typed, ty: IntegerType) -> RegisterExpr {
        let small = matches!(value.e, RegisterExpr::Const(v) if v <= i64::MAX as u64);
        let extends = value.ty.signed == ty.signed || !value.ty.signed && value.ty.width < 8;
        self.inexact |= is_wide(ty) && !small && !extends;
        value.to(ty)
    }
    pub(super) fn expression(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        level: u8,
        depth: u32,
    ) -> Result<Typed, Diagnostic> {
        let depth = Self::deeper(cursor, depth)?;
        let before = self.accesses;
        let mut left = self.unary(cursor, depth)?;
        let mut operators = 0;
        while let Some((own, sign)) = operator(cursor.peek()).filter(|o| o.0 >= level) {
            let place = cursor.take().span;
            operators += 1;
            if operators > OPERATORS {
                return Err(Diagnostic::at(
                    Stage::Syntax,
                    place,
                    format!("an expression of more than {OPERATORS} operators"),
                ));
            }
            left = match sign {
                Sign::Lazy { and } => self.lazy(cursor, left, and, own, depth)?,
                Sign::Binary(op, swapped) => {
                    // The first access of the right side has the place of those of the left side,
                    // if they have one place.
                    if self.accesses[0] > before[0] {
                        self.joined = self.accesses[1] <= before[1] + 1;
                    }
                    let right = self.expression(cursor, own + 1, depth)?;
                    self.joined = false;
                    self.join(op, swapped, left, right)
                }
            };
        }
        if level == 0 && cursor.eat("?") {
            return self.conditional(cursor, left, depth);
        }
        Ok(left)
    }
    /// Parses `a ? b : c` after the question mark.
    fn conditional(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        when: Typed,
        depth: u32,
    ) -> Result<Typed, Diagnostic> {
        let held = self.temporary();
        self.joined = false;
        let skip = self.branch(Some(RegisterExpr::unary(Unary::IsZero, when.e)));
        let yes = self.expression(cursor, 0, depth)?;
        self.push(Op::Let(held, yes.e));
        let over = self.branch(None);
        self.land(skip);
        cursor.expect(":")?;
        let no = self.expression(cursor, 0, depth)?;
        self.push(Op::Let(held, no.e));
        self.land(over);
        // The result has the common arithmetic type of both sides.
        let pointee = yes.pointee.or(no.pointee);
        let ty = if pointee.is_some() { POINTER } else { common(yes.ty, no.ty) };
        self.inexact |= is_wide(ty) && (yes.ty != ty || no.ty != ty);
        Ok(Typed { e: RegisterExpr::Register(held).extend_bytes(ty.width, ty.signed), ty, pointee })
    }
    /// Parses `&&` and `||`. The right side is evaluated only if it decides, which is visible if it
    /// accesses memory.
    fn lazy(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        left: Typed,
        and: bool,
        own: u8,
        depth: u32,
    ) -> Result<Typed, Diagnostic> {
        let truth = |e: RegisterExpr| RegisterExpr::binary(Binary::Ne, e, RegisterExpr::Const(0));
        let held = self.temporary();
        self.joined = false;
        let start = self.thread.ops.len();
        self.push(Op::Let(held, truth(left.e.clone())));
        let decided = if and {
            RegisterExpr::unary(Unary::IsZero, RegisterExpr::Register(held))
        } else {
            RegisterExpr::Register(held)
        };
        let branch = self.branch(Some(decided));
        let right = self.expression(cursor, own + 1, depth)?;
        if self.thread.ops.len() == branch + 1 {
            self.thread.ops.truncate(start);
            self.thread.instruction.truncate(start);
            let op = if and { Binary::And } else { Binary::Or };
            return Ok(Typed::of(RegisterExpr::binary(op, truth(left.e), truth(right.e)), INT));
        }
        self.push(Op::Let(held, truth(right.e)));
        self.land(branch);
        Ok(Typed::of(RegisterExpr::Register(held), INT))
    }
    /// Applies an operator to two values. Pointers are scaled.
    pub(super) fn join(&mut self, op: Binary, swapped: bool, left: Typed, right: Typed) -> Typed {
        let scaled = |number: RegisterExpr, pointee: IntegerType| {
            RegisterExpr::binary(Binary::Mul, number, RegisterExpr::Const(u64::from(pointee.width)))
        };
        if let (Binary::Add | Binary::Sub, Some(pointee), None) = (op, left.pointee, right.pointee)
        {
            return Typed { e: RegisterExpr::binary(op, left.e, scaled(right.e, pointee)), ..left };
        }
        if let (Binary::Add, Some(pointee)) = (op, right.pointee) {
            return Typed {
                e: RegisterExpr::binary(op, scaled(left.e, pointee), right.e),
                ..right
            };
        }
        if let (Binary::Sub, Some(pointee), Some(_)) = (op, left.pointee, right.pointee) {
            // The number of elements between two pointers.
            let bytes = RegisterExpr::binary(op, left.e, right.e);
            let size = RegisterExpr::Const(u64::from(pointee.width));
            let ty = IntegerType::integer(POINTER.width, true);
            return Typed::of(RegisterExpr::binary(Binary::Div, bytes, size), ty);
        }
        if let Binary::Shl | Binary::Shr = op {
            return self.shift(op, left.promote(), right.promote());
        }
        let ty = common(left.ty, right.ty);
        let (left, right) = (self.convert(left, ty), self.convert(right, ty));
        let (a, b) = if swapped { (right, left) } else { (left, right) };
        let unsigned = !ty.signed;
        let op = match op {
            Binary::Less if unsigned => Binary::Below,
            Binary::LessEqual if unsigned => Binary::BelowEqual,
            Binary::Div if unsigned => Binary::DivU,
            Binary::Rem if unsigned => Binary::RemU,
            other => other,
        };
        match op {
            Binary::Eq
            | Binary::Ne
            | Binary::Less
            | Binary::LessEqual
            | Binary::Below
            | Binary::BelowEqual => {
                return Typed::of(RegisterExpr::binary(op, a, b), INT);
            }
            Binary::Div | Binary::Rem | Binary::DivU | Binary::RemU => {
                let mut defined =
                    RegisterExpr::binary(Binary::Ne, b.clone(), RegisterExpr::Const(0));
                if ty.signed {
                    // The quotient of the least number and -1 overflows.
                    let least = RegisterExpr::Const(
                        (i64::MIN >> 64u32.saturating_sub(u32::from(ty.width) * 8)) as u64,
                    );
                    let differs = |e: &RegisterExpr, not: RegisterExpr| {
                        RegisterExpr::binary(Binary::Ne, e.clone(), not)
                    };
                    let quotient = RegisterExpr::binary(
                        Binary::Or,
                        differs(&a, least),
                        differs(&b, RegisterExpr::Const(u64::MAX)),
                    );
                    defined = RegisterExpr::binary(Binary::And, defined, quotient);
                }
                self.inexact |= is_wide(ty);
                self.push(Op::Defined(defined));
            }
            Binary::And | Binary::Or | Binary::Xor => {}
            _ => self.inexact |= is_wide(ty),
        }
        Typed::of(RegisterExpr::binary(op, a, b).extend_bytes(ty.width, ty.signed), ty)
    }
    /// Builds a shift. Its type is that of the left operand.
    fn shift(&mut self, op: Binary, left: Typed, count: Typed) -> Typed {
        let ty = left.ty;
        self.inexact |= is_wide(ty);
        let width = RegisterExpr::Const(u64::from(ty.width) * 8);
        self.push(Op::Defined(RegisterExpr::binary(Binary::Below, count.e.clone(), width)));
        let op = if op == Binary::Shr && ty.signed { Binary::Sar } else { op };
        Typed::of(RegisterExpr::binary(op, left.e, count.e).extend_bytes(ty.width, ty.signed), ty)
    }
    pub(super) fn unary(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        depth: u32,
    ) -> Result<Typed, Diagnostic> {
        let depth = Self::deeper(cursor, depth)?;
        if cursor.is("*") {
            let (address, ty) = self.place(cursor, depth)?;
            return Ok(self.load(address, ty, tag("NA")));
        }
        if cursor.is("&") {
            let message = "the address of a variable (`&`) is not supported here";
            return Err(Diagnostic::at(Stage::Unsupported, cursor.peek().span, message).note(
                "supported: `&e` of a local variable as the expected value of a \
                 compare-and-exchange; a parameter is an address",
            ));
        }
        if cursor.eat("+") {
            return Ok(self.unary(cursor, depth)?.promote());
        }
        for (sign, op) in [("-", Unary::Neg), ("~", Unary::Not), ("!", Unary::IsZero)] {
            if cursor.eat(sign) {
                let of = self.unary(cursor, depth)?;
                let ty = if sign == "!" { INT } else { promoted_type(of.ty) };
                self.inexact |= is_wide(ty);
                return Ok(Typed::of(
                    RegisterExpr::unary(op, of.e).extend_bytes(ty.width, ty.signed),
                    ty,
                ));
            }
        }
        if cursor.eat("(") {
            if let Some((ty, _)) = self.take_type(cursor) {
                let pointer = cursor.eat("*");
                cursor.expect(")")?;
                let of = self.unary(cursor, depth)?;
                return Ok(match pointer {
                    true => Typed { e: of.e, ty: POINTER, pointee: Some(ty) },
                    false => Typed::of(self.convert(of, ty), ty),
                });
            }
            let inner = self.expression(cursor, 0, depth)?;
            cursor.expect(")")?;
            return Ok(inner);
        }
        let token = cursor.peek();
        match token.kind {
            TokenKind::Number => {
                let (value, ty) = literal::integer(&cursor.take())?;
                return Ok(Typed::of(RegisterExpr::Const(value), ty));
            }
            TokenKind::Text if token.text.starts_with('\'') => {
                return Ok(Typed::of(
                    RegisterExpr::Const(literal::character(&cursor.take())?),
                    INT,
                ));
            }
            TokenKind::Name => {}
            _ => return Err(cursor.unexpected("an expression")),
        }
        match cursor.ahead(1).text {
            "(" | "{" => self.call(cursor, depth),
            "[" => {
                let (address, ty) = self.place(cursor, depth)?;
                Ok(self.load(address, ty, tag("NA")))
            }
            _ => {
                let local = self.local(&cursor.take())?;
                Ok(Typed {
                    e: RegisterExpr::Register(local.register),
                    ty: local.ty,
                    pointee: local.pointee,
                })
            }
        }
    }
    pub(super) fn load(&mut self, address: RegisterExpr, ty: IntegerType, tags: u64) -> Typed {
        let into = self.temporary();
        let value = RegisterExpr::Loaded.extend_bytes(ty.width, ty.signed);
        let joined = self.count(1);
        self.push(Op::Load {
            into: Some(into),
            value,
            address,
            width: ty.width,
            tags,
            reserve: false,
            joined,
        });
        Typed::of(RegisterExpr::Register(into), ty)
    }
}

/// The meaning of an operator sign.
enum Sign {
    /// An operator on two values; true if the operands are exchanged.
    Binary(Binary, bool),
    /// `&&` or `||`.
    Lazy {
        /// True for `&&`.
        and: bool,
    },
}

/// Returns the precedence and meaning of an operator.
fn operator(sign: Token<'_>) -> Option<(u8, Sign)> {
    let (precedence, op, swapped) = match sign.text {
        _ if sign.kind != TokenKind::Sign => return None,
        "||" => return Some((1, Sign::Lazy { and: false })),
        "&&" => return Some((2, Sign::Lazy { and: true })),
        "|" => (3, Binary::Or, false),
        "^" => (4, Binary::Xor, false),
        "&" => (5, Binary::And, false),
        "==" => (6, Binary::Eq, false),
        "!=" => (6, Binary::Ne, false),
        "<" => (7, Binary::Less, false),
        "<=" => (7, Binary::LessEqual, false),
        ">" => (7, Binary::Less, true),
        ">=" => (7, Binary::LessEqual, true),
        "<<" => (8, Binary::Shl, false),
        ">>" => (8, Binary::Shr, false),
        "+" => (9, Binary::Add, false),
        "-" => (9, Binary::Sub, false),
        "*" => (10, Binary::Mul, false),
        "/" => (10, Binary::Div, false),
        "%" => (10, Binary::Rem, false),
        _ => return None,
    };
    Some((precedence, Sign::Binary(op, swapped)))
}
