//! Bits of an expression that are the same for all values of its registers: an abstract
//! interpretation over known bits, with rules for operands that are equal.
//!
//! Input: an expression. Output: its [`KnownBits`], and whether it is a copy. An expression with
//! all bits known is constant (`x ^ x`, `x & 0`), so that a value does not depend on its registers.
//! `x == 1` and `x & 127` are not constant, whatever values `x` takes in a test. The analysis
//! proves constancy and never refutes it: an expression that is constant for other reasons, such as
//! the difference of `x + 1` and `x`, counts as dependent, as in the herd tools, which simplify
//! less.
//!
//! Cost: linear in the expression, times its depth where operands are compared.

use crate::code::{Binary, Register, RegisterExpr, Unary, apply, combine, low, to_signed};
use mu_base::narrow;
use mu_program::expr::{BinOp, Expr, Width, flags};

/// The known bits of a value: those that are always 0, and those that are always 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownBits {
    zeros: u64,
    ones: u64,
}

impl KnownBits {
    /// No bit is known.
    const NONE: KnownBits = KnownBits { zeros: 0, ones: 0 };

    fn of(value: u64) -> Self {
        Self { zeros: !value, ones: value }
    }
    fn truth(value: Option<bool>) -> Self {
        value.map_or(Self::below(1), |v| Self::of(u64::from(v)))
    }
    /// Nothing is known about the lowest `bits` bits, and the others are 0.
    fn below(bits: u32) -> Self {
        Self { zeros: !low(u64::MAX, bits), ones: 0 }
    }
    /// Returns the value if all bits are known.
    pub(crate) fn value(self) -> Option<u64> {
        (self.zeros | self.ones == u64::MAX).then_some(self.ones)
    }
    fn mask(self, mask: u64) -> Self {
        Self { zeros: self.zeros | !mask, ones: self.ones & mask }
    }
    fn not(self) -> Self {
        Self { zeros: self.ones, ones: self.zeros }
    }
    fn and(self, other: Self) -> Self {
        Self { zeros: self.zeros | other.zeros, ones: self.ones & other.ones }
    }
    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
    fn xor(self, other: Self) -> Self {
        let known = (self.zeros | self.ones) & (other.zeros | other.ones);
        let value = self.ones ^ other.ones;
        Self { zeros: known & !value, ones: known & value }
    }
    /// Returns the bits that are known in both and equal.
    fn join(self, other: Self) -> Self {
        Self { zeros: self.zeros & other.zeros, ones: self.ones & other.ones }
    }
    fn shl(self, by: u32) -> Self {
        Self { zeros: self.zeros << by | !(u64::MAX << by), ones: self.ones << by }
    }
    fn shr(self, by: u32) -> Self {
        Self { zeros: self.zeros >> by | !(u64::MAX >> by), ones: self.ones >> by }
    }
    fn sar(self, by: u32) -> Self {
        Self { zeros: (self.zeros as i64 >> by) as u64, ones: (self.ones as i64 >> by) as u64 }
    }
    fn sign_extended(self, bits: u32) -> Self {
        let extend = |mask: u64| to_signed(mask, bits) as u64;
        Self { zeros: extend(self.zeros), ones: extend(self.ones) }
    }
    /// Returns the bits of a sum or difference, up to the lowest bit that is open in an operand.
    fn sum(self, other: Self, value: u64) -> Self {
        let known = (self.zeros | self.ones) & (other.zeros | other.ones);
        let run = low(u64::MAX, known.trailing_ones());
        Self { zeros: !value & run, ones: value & run }
    }
    /// Returns the least and the greatest unsigned value.
    fn unsigned_range(self) -> (u64, u64) {
        (self.ones, !self.zeros)
    }
    /// Returns the least and the greatest signed value.
    fn signed_range(self) -> (i64, i64) {
        let sign = 1 << 63;
        let least = self.ones | sign & !self.zeros;
        let greatest = !self.zeros & !(sign & !self.ones);
        (least as i64, greatest as i64)
    }
}

/// Returns the truth of `a < b`, or of `a <= b`, if the bounds decide it.
fn less<T: Ord>(a: (T, T), b: (T, T), or_equal: bool) -> Option<bool> {
    let (always, never) = if or_equal { (a.1 <= b.0, a.0 > b.1) } else { (a.1 < b.0, a.0 >= b.1) };
    if always { Some(true) } else { never.then_some(false) }
}

/// Returns the known bits of an expression.
pub(crate) fn known_bits(e: &RegisterExpr) -> KnownBits {
    match e {
        RegisterExpr::Const(v) => KnownBits::of(*v),
        RegisterExpr::Register(_) | RegisterExpr::Loaded => KnownBits::NONE,
        RegisterExpr::Unary(op, a) => unary(*op, known_bits(a)),
        RegisterExpr::Binary(op, a, b) => binary(*op, a, b),
        RegisterExpr::X86(e, _) => x86(e),
    }
}

fn unary(op: Unary, a: KnownBits) -> KnownBits {
    if let Some(value) = a.value() {
        return KnownBits::of(apply(op, value));
    }
    match op {
        Unary::Not => a.not(),
        Unary::Zero(bits) => a.mask(low(u64::MAX, u32::from(bits))),
        Unary::Sign(bits) => a.sign_extended(u32::from(bits)),
        Unary::IsZero => KnownBits::truth((a.ones != 0).then_some(false)),
        Unary::Holds(14 | 15) => KnownBits::of(1),
        Unary::Holds(_) => KnownBits::below(1),
        Unary::Flags(_) => KnownBits::below(4),
        Unary::LeadingZeros(_) => KnownBits::below(7),
        Unary::Neg | Unary::Abs(_) | Unary::ReverseBytes(_) | Unary::ReverseBits(_) => {
            KnownBits::NONE
        }
    }
}

fn binary(op: Binary, left: &RegisterExpr, right: &RegisterExpr) -> KnownBits {
    let (a, b) = (known_bits(left), known_bits(right));
    if let (Some(x), Some(y)) = (a.value(), b.value()) {
        return KnownBits::of(combine(op, x, y));
    }
    if left == right
        && let Some(known) = of_equals(op, a)
    {
        return known;
    }
    let is_complement = |x: &RegisterExpr, y: &RegisterExpr| match x {
        RegisterExpr::Unary(Unary::Not, inner) => **inner == *y,
        _ => false,
    };
    if is_complement(left, right) || is_complement(right, left) {
        match op {
            Binary::And => return KnownBits::of(0),
            Binary::Or | Binary::Xor => return KnownBits::of(u64::MAX),
            _ => {}
        }
    }
    let equal = || {
        let differ = a.ones & b.zeros | a.zeros & b.ones;
        (differ != 0).then_some(false)
    };
    let (zero_left, by) = (a.value() == Some(0), b.value());
    match (op, by) {
        (Binary::And, _) => a.and(b),
        (Binary::Or, _) => a.or(b),
        (Binary::Xor, _) => a.xor(b),
        (Binary::Shl, Some(by)) => a.shl(narrow::low(by & 63)),
        (Binary::Shr, Some(by)) => a.shr(narrow::low(by & 63)),
        (Binary::Sar, Some(by)) => a.sar(narrow::low(by & 63)),
        (Binary::Shl | Binary::Shr | Binary::Sar, _) if zero_left => a,
        (Binary::Add | Binary::Sub, _) => a.sum(b, combine(op, a.ones, b.ones)),
        (Binary::Mul | Binary::MulHigh | Binary::MulHighU, Some(0)) => KnownBits::of(0),
        (Binary::MulHighU | Binary::RemU | Binary::Rem, Some(1)) => KnownBits::of(0),
        (Binary::Div | Binary::DivU | Binary::Rem | Binary::RemU, Some(0)) => KnownBits::of(0),
        (Binary::Rem, Some(u64::MAX)) => KnownBits::of(0),
        (
            Binary::Mul
            | Binary::MulHigh
            | Binary::MulHighU
            | Binary::Div
            | Binary::DivU
            | Binary::Rem
            | Binary::RemU,
            _,
        ) if zero_left => a,
        (Binary::Eq, _) => KnownBits::truth(equal()),
        (Binary::Ne, _) => KnownBits::truth(equal().map(|e| !e)),
        (Binary::Below, _) => KnownBits::truth(less(a.unsigned_range(), b.unsigned_range(), false)),
        (Binary::BelowEqual, _) => {
            KnownBits::truth(less(a.unsigned_range(), b.unsigned_range(), true))
        }
        (Binary::Less, _) => KnownBits::truth(less(a.signed_range(), b.signed_range(), false)),
        (Binary::LessEqual, _) => KnownBits::truth(less(a.signed_range(), b.signed_range(), true)),
        (Binary::AddFlags(_) | Binary::SubFlags(_), _) => KnownBits::below(4),
        (
            Binary::Shl
            | Binary::Shr
            | Binary::Sar
            | Binary::Mul
            | Binary::MulHigh
            | Binary::MulHighU
            | Binary::Div
            | Binary::DivU
            | Binary::Rem
            | Binary::RemU
            | Binary::Min
            | Binary::Max
            | Binary::MinU
            | Binary::MaxU,
            _,
        ) => KnownBits::NONE,
    }
}

/// Returns the known bits of an operator on two equal operands; `None` if equality gives none.
fn of_equals(op: Binary, a: KnownBits) -> Option<KnownBits> {
    match op {
        Binary::Xor | Binary::Sub | Binary::Ne | Binary::Less | Binary::Below => {
            Some(KnownBits::of(0))
        }
        Binary::Eq | Binary::LessEqual | Binary::BelowEqual => Some(KnownBits::of(1)),
        Binary::SubFlags(_) => Some(KnownBits::of(combine(op, 0, 0))),
        Binary::And | Binary::Or | Binary::Min | Binary::Max | Binary::MinU | Binary::MaxU => {
            Some(a)
        }
        _ => None,
    }
}

/// Returns the known bits of an expression of x86 code.
fn x86(e: &Expr) -> KnownBits {
    match e {
        Expr::Const(v) => KnownBits::of(*v),
        Expr::Register(_) | Expr::Loaded => KnownBits::NONE,
        Expr::Part(e, shift, width) => x86(e).shr(*shift).mask(width.mask()),
        Expr::Merge(old, new, shift, width) => {
            let kept = x86(old).mask(!(width.mask() << shift));
            kept.or(x86(new).mask(width.mask()).shl(*shift))
        }
        Expr::Op(op, width, a, b) => x86_operation(*op, *width, a, b),
        Expr::Flags(op, width, a, b, before) => x86_flags(*op, *width, (a, b), before),
        Expr::Parity(before, result) => {
            let (before, result) = (x86(before).mask(!flags::PF), x86(result));
            match result.mask(0xff).value() {
                Some(byte) if byte.count_ones().is_multiple_of(2) => {
                    before.or(KnownBits::of(flags::PF))
                }
                Some(_) => before,
                None => before.or(KnownBits { zeros: !flags::PF, ones: 0 }),
            }
        }
        Expr::Test(test, e) => KnownBits::truth(x86(e).value().map(|f| test.holds(f))),
        Expr::SignExtend(width, e) => x86(e).sign_extended(width.bits()),
        Expr::If(condition, yes, no) => {
            let condition = x86(condition);
            match condition.value() {
                Some(0) => x86(no),
                Some(_) => x86(yes),
                None if condition.ones != 0 => x86(yes),
                None => x86(yes).join(x86(no)),
            }
        }
    }
}

fn x86_operation(op: BinOp, width: Width, left: &Expr, right: &Expr) -> KnownBits {
    let mask = width.mask();
    let (a, b) = (x86(left).mask(mask), x86(right).mask(mask));
    let count = x86(right).value().map(|n| n & if width == Width::W64 { 63 } else { 31 });
    if let (Some(x), Some(y)) = (a.value(), x86(right).value()) {
        return KnownBits::of(op.apply(width, x, y));
    }
    let known = match (op, count) {
        (BinOp::Xor | BinOp::Sub, _) if left == right => KnownBits::of(0),
        (BinOp::And, _) => a.and(b),
        (BinOp::Or, _) => a.or(b),
        (BinOp::Xor, _) => a.xor(b),
        (BinOp::Shl, Some(by)) => a.shl(narrow::low(by)),
        (BinOp::Shr, Some(by)) => a.shr(narrow::low(by)),
        (BinOp::Sar, Some(by)) => a.sign_extended(width.bits()).sar(narrow::low(by)),
        (BinOp::Shl | BinOp::Shr | BinOp::Sar, None) if a.value() == Some(0) => a,
        (BinOp::Shl | BinOp::Shr | BinOp::Sar, None) => KnownBits::NONE,
        (BinOp::Mul, _) if a.value() == Some(0) || b.value() == Some(0) => KnownBits::of(0),
        (BinOp::Mul, _) => KnownBits::NONE,
        (BinOp::Add | BinOp::Inc | BinOp::Sub | BinOp::Dec, _) => {
            a.sum(b, op.apply(width, a.ones, b.ones))
        }
    };
    known.mask(mask)
}

fn x86_flags(op: BinOp, width: Width, (a, b): (&Expr, &Expr), before: &Expr) -> KnownBits {
    let known = |a: u64, b: u64| {
        x86(before)
            .value()
            .or_else(|| {
                (op.flags(width, a, b, 0) == op.flags(width, a, b, flags::ALL)).then_some(0)
            })
            .map(|before| KnownBits::of(op.flags(width, a, b, before)))
    };
    let operands = x86(a).mask(width.mask()).value().zip(x86(b).value());
    let all = match op {
        BinOp::Xor | BinOp::Sub if a == b => known(0, 0),
        // These flags depend on the result alone.
        BinOp::And | BinOp::Or | BinOp::Xor => {
            let result = x86_operation(op, width, a, b).value();
            result.and_then(|r| match op {
                BinOp::Xor => known(r, 0),
                _ => known(r, r),
            })
        }
        _ => operands.and_then(|(a, b)| known(a, b)),
    };
    all.unwrap_or(KnownBits::NONE)
}

/// True if an expression has the value of the loaded value, or of one register for which `is_copy`
/// holds, possibly extended or cut off at a width of 8, 16, or 32 bits.
pub(crate) fn is_copy(e: &RegisterExpr, of: &dyn Fn(Register) -> bool) -> bool {
    let zero = |e: &RegisterExpr| known_bits(e).value() == Some(0);
    let cuts = |e: &RegisterExpr| known_bits(e).value().is_some_and(is_width_mask);
    match e {
        RegisterExpr::Const(_) => false,
        RegisterExpr::Register(r) => of(*r),
        RegisterExpr::Loaded => true,
        RegisterExpr::Unary(Unary::Zero(bits) | Unary::Sign(bits), a) => {
            matches!(bits, 8 | 16 | 32 | 64) && is_copy(a, of)
        }
        RegisterExpr::Unary(..) => false,
        RegisterExpr::Binary(op, a, b) => match op {
            Binary::Add | Binary::Or | Binary::Xor => {
                zero(b) && is_copy(a, of) || zero(a) && is_copy(b, of)
            }
            Binary::Sub | Binary::Shl | Binary::Shr | Binary::Sar => zero(b) && is_copy(a, of),
            Binary::And => cuts(b) && is_copy(a, of) || cuts(a) && is_copy(b, of),
            _ => false,
        },
        RegisterExpr::X86(e, loaded) => is_copy_of_x86(e, &|r| match r {
            Some(r) => of(r),
            None => loaded.is_none_or(of),
        }),
    }
}

/// As [`is_copy`] for x86 code; `of` decides for a register, and for the loaded value (`None`).
fn is_copy_of_x86(e: &Expr, of: &dyn Fn(Option<Register>) -> bool) -> bool {
    let zero = |e: &Expr| x86(e).value() == Some(0);
    let cuts = |e: &Expr| x86(e).value().is_some_and(is_width_mask);
    match e {
        Expr::Register(r) => of(Some(*r)),
        Expr::Loaded => of(None),
        Expr::Part(e, 0, _) | Expr::SignExtend(_, e) => is_copy_of_x86(e, of),
        Expr::Op(op, _, a, b) => match op {
            BinOp::Add | BinOp::Or | BinOp::Xor => {
                zero(b) && is_copy_of_x86(a, of) || zero(a) && is_copy_of_x86(b, of)
            }
            BinOp::Sub | BinOp::Shl | BinOp::Shr | BinOp::Sar => zero(b) && is_copy_of_x86(a, of),
            BinOp::And => cuts(b) && is_copy_of_x86(a, of) || cuts(a) && is_copy_of_x86(b, of),
            _ => false,
        },
        _ => false,
    }
}

/// True for a number with the lowest 8, 16, 32, or 64 bits set.
fn is_width_mask(n: u64) -> bool {
    matches!(n, 0xff | 0xffff | 0xffff_ffff | u64::MAX)
}
