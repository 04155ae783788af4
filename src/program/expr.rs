//! Values and expressions of instructions: bit vectors of one of four widths, and the flags of
//! arithmetic.
//!
//! A value is a `u64` with zeros above its width. Lowering translates operands to expressions.
//! Their depth is bounded by the instruction set, so recursion over them is shallow. The flags are
//! Intel's ZF, SF, CF, OF, and PF if a thread tests it (SDM volume 1, 3.4.3); no condition reads
//! AF.

use super::Register;
use mu_base::narrow;

/// The width of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// A byte.
    W8,
    /// A word.
    W16,
    /// A double word.
    W32,
    /// A quad word.
    W64,
}

impl Width {
    /// Returns the number of bits.
    pub fn bits(self) -> u32 {
        match self {
            Width::W8 => 8,
            Width::W16 => 16,
            Width::W32 => 32,
            Width::W64 => 64,
        }
    }
    /// Returns the number of bytes.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits() / 8)
    }
    /// Returns the mask of all its bits.
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }
    /// True if a number is representable in this width, signed or unsigned.
    pub fn holds(self, number: i64) -> bool {
        let bits = number as u64 & self.mask();
        self.to_signed(bits) == number || bits == number as u64
    }
    /// Returns the highest bit of a value.
    pub fn sign(self, value: u64) -> bool {
        value >> (self.bits() - 1) & 1 == 1
    }
    /// Returns the value as a signed number.
    pub fn to_signed(self, value: u64) -> i64 {
        let free = 64 - self.bits();
        ((value << free) as i64) >> free
    }
}

/// Bits of the flags register.
pub mod flags {
    /// Zero.
    pub const ZF: u64 = 1;
    /// Sign.
    pub const SF: u64 = 2;
    /// Carry.
    pub const CF: u64 = 4;
    /// Overflow.
    pub const OF: u64 = 8;
    /// Parity: the lowest eight bits of the result have an even number of ones.
    pub const PF: u64 = 16;
    /// All flags.
    pub const ALL: u64 = ZF | SF | CF | OF | PF;
}

/// Arithmetic and logic of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// `add`
    Add,
    /// `sub`, `cmp`
    Sub,
    /// `and`, `test`
    And,
    /// `or`
    Or,
    /// `xor`
    Xor,
    /// `shl`
    Shl,
    /// `shr`
    Shr,
    /// `sar`
    Sar,
    /// `inc`: `add` of one that preserves the carry
    Inc,
    /// `dec`: `sub` of one that preserves the carry
    Dec,
    /// Product of address parts; sets no flags.
    Mul,
}

impl BinOp {
    /// Computes the result in a width.
    pub fn apply(self, width: Width, a: u64, b: u64) -> u64 {
        // Intel masks the count by 31, or by 63 for quad words.
        let count = narrow::low(b & if width == Width::W64 { 63 } else { 31 });
        let shifted = |v: Option<u64>| v.unwrap_or(0);
        let result = match self {
            BinOp::Add | BinOp::Inc => a.wrapping_add(b),
            BinOp::Sub | BinOp::Dec => a.wrapping_sub(b),
            BinOp::And => a & b,
            BinOp::Or => a | b,
            BinOp::Xor => a ^ b,
            BinOp::Shl => shifted(a.checked_shl(count)),
            BinOp::Shr => shifted((a & width.mask()).checked_shr(count)),
            BinOp::Sar => (width.to_signed(a) >> count.min(63)) as u64,
            BinOp::Mul => a.wrapping_mul(b),
        };
        result & width.mask()
    }
    /// Computes the flags except the parity, given the flags before.
    pub fn flags(self, width: Width, a: u64, b: u64, before: u64) -> u64 {
        let (a, b) = (a & width.mask(), b & width.mask());
        let result = self.apply(width, a, b);
        let (sa, sb, sr) = (width.sign(a), width.sign(b), width.sign(result));
        let carry = before & flags::CF;
        let when = |holds: bool, flag: u64| if holds { flag } else { 0 };
        let rest = match self {
            BinOp::Add => when(result < a, flags::CF) | when(sa == sb && sr != sa, flags::OF),
            BinOp::Sub => when(a < b, flags::CF) | when(sa != sb && sr != sa, flags::OF),
            BinOp::Inc => carry | when(!sa && sr, flags::OF),
            BinOp::Dec => carry | when(sa && !sr, flags::OF),
            BinOp::And | BinOp::Or | BinOp::Xor => 0,
            BinOp::Shl | BinOp::Shr | BinOp::Sar => {
                let count = narrow::low(b & if width == Width::W64 { 63 } else { 31 });
                if count == 0 {
                    return before;
                }
                let out = match self {
                    BinOp::Shl => count <= width.bits() && a >> (width.bits() - count) & 1 == 1,
                    BinOp::Shr => count <= width.bits() && a >> (count - 1) & 1 == 1,
                    _ => width.to_signed(a) >> (count - 1).min(63) & 1 == 1,
                };
                // Intel defines the overflow flag only for a count of one, and the carry of `shl`
                // and `shr` only for counts below the width. No condition reads undefined flags:
                // such code is rejected (`x86::undefined`).
                let overflow = match self {
                    BinOp::Shl => sr != out,
                    BinOp::Shr => sa,
                    _ => false,
                };
                when(out, flags::CF) | when(overflow, flags::OF)
            }
            BinOp::Mul => return before,
        };
        rest | when(result == 0, flags::ZF) | when(sr, flags::SF)
    }
}

/// A condition on the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlagTest {
    /// The tested condition.
    pub kind: TestKind,
    /// True if the condition is negated.
    pub negated: bool,
}

/// A condition on the flags, before negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TestKind {
    /// ZF
    Equal,
    /// SF
    Sign,
    /// CF
    Below,
    /// OF
    Overflow,
    /// CF or ZF
    BelowOrEqual,
    /// SF differs from OF
    Less,
    /// ZF, or SF differs from OF
    LessOrEqual,
    /// PF
    Parity,
}

impl FlagTest {
    /// Parses the condition suffix of a mnemonic, as in `jle`, `setb`, `cmovne`. The herd tools
    /// also accept `jlt` and `jgt`. `None` if it is no condition.
    pub fn of_suffix(suffix: &str) -> Option<Self> {
        use TestKind::{Below, BelowOrEqual, Equal, Less, LessOrEqual, Overflow, Parity, Sign};
        let (kind, negated) = match suffix {
            "e" | "z" => (Equal, false),
            "ne" | "nz" => (Equal, true),
            "s" => (Sign, false),
            "ns" => (Sign, true),
            "b" | "c" | "nae" => (Below, false),
            "nb" | "nc" | "ae" => (Below, true),
            "o" => (Overflow, false),
            "no" => (Overflow, true),
            "be" | "na" => (BelowOrEqual, false),
            "nbe" | "a" => (BelowOrEqual, true),
            "l" | "lt" | "nge" => (Less, false),
            "nl" | "ge" => (Less, true),
            "le" | "ng" => (LessOrEqual, false),
            "nle" | "g" | "gt" => (LessOrEqual, true),
            "p" | "pe" => (Parity, false),
            "np" | "po" => (Parity, true),
            _ => return None,
        };
        Some(Self { kind, negated })
    }
    /// True if it holds for a flags register.
    pub fn holds(self, f: u64) -> bool {
        let on = |flag: u64| f & flag != 0;
        let less = on(flags::SF) != on(flags::OF);
        let holds = match self.kind {
            TestKind::Equal => on(flags::ZF),
            TestKind::Sign => on(flags::SF),
            TestKind::Below => on(flags::CF),
            TestKind::Overflow => on(flags::OF),
            TestKind::BelowOrEqual => on(flags::CF) || on(flags::ZF),
            TestKind::Less => less,
            TestKind::LessOrEqual => on(flags::ZF) || less,
            TestKind::Parity => on(flags::PF),
        };
        holds != self.negated
    }
}

/// An expression over the registers of a thread and the value that its step loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A constant.
    Const(u64),
    /// A whole register.
    Register(Register),
    /// The value that the step loaded.
    Loaded,
    /// Bits `shift .. shift + width` of an expression.
    Part(Box<Expr>, u32, Width),
    /// The first expression with bits `shift .. shift + width` replaced by the second's lowest
    /// bits.
    Merge(Box<Expr>, Box<Expr>, u32, Width),
    /// An operation in a width.
    Op(BinOp, Width, Box<Expr>, Box<Expr>),
    /// The flags after an operation; the last one is the flags before.
    Flags(BinOp, Width, Box<Expr>, Box<Expr>, Box<Expr>),
    /// Flags with the parity of a result, the second expression.
    Parity(Box<Expr>, Box<Expr>),
    /// 1 if the flags pass the test, else 0.
    Test(FlagTest, Box<Expr>),
    /// The value of a width as a signed number of 64 bits.
    SignExtend(Width, Box<Expr>),
    /// The second expression unless the first is zero, else the third.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
}

impl Expr {
    /// Returns part of an expression, simplified to the expression itself if it is the whole.
    pub fn part(self, shift: u32, width: Width) -> Self {
        match (self, shift, width) {
            (e, 0, Width::W64) => e,
            (Expr::Const(c), _, _) => Expr::Const(c >> shift & width.mask()),
            (e, _, _) => Expr::Part(Box::new(e), shift, width),
        }
    }
    /// Builds an operation.
    pub fn op(op: BinOp, width: Width, a: Expr, b: Expr) -> Self {
        match (&a, &b) {
            (&Expr::Const(x), &Expr::Const(y)) => Expr::Const(op.apply(width, x, y)),
            _ => Expr::Op(op, width, Box::new(a), Box::new(b)),
        }
    }
    /// Builds the flags of an operation.
    pub fn flags(op: BinOp, width: Width, a: Expr, b: Expr) -> Self {
        Expr::Flags(op, width, Box::new(a), Box::new(b), Box::new(Expr::Register(super::FLAGS)))
    }
    /// Returns the same flags with the parity of the operation.
    pub fn with_parity(self) -> Self {
        match self {
            Expr::Flags(op, width, a, b, before) => {
                let (result, count) =
                    (Expr::op(op, width, (*a).clone(), (*b).clone()), (*b).clone());
                let old = (*before).clone();
                let flags =
                    Expr::Parity(Box::new(Expr::Flags(op, width, a, b, before)), Box::new(result));
                // A shift by zero preserves all flags.
                match op {
                    BinOp::Shl | BinOp::Shr | BinOp::Sar => {
                        let most = if width == Width::W64 { 63 } else { 31 };
                        Expr::If(
                            Box::new(Expr::op(BinOp::And, Width::W8, count, Expr::Const(most))),
                            Box::new(flags),
                            Box::new(old),
                        )
                    }
                    _ => flags,
                }
            }
            // The flags of a constant zero result.
            Expr::Const(c) if c & flags::ZF != 0 => Expr::Const(c | flags::PF),
            Expr::If(c, a, b) => Expr::If(c, Box::new(a.with_parity()), Box::new(b.with_parity())),
            other => other,
        }
    }
    /// Calls `visit` with each test in it and the flags that it tests.
    pub fn tests(&self, visit: &mut dyn FnMut(FlagTest, &Expr)) {
        match self {
            Expr::Const(_) | Expr::Register(_) | Expr::Loaded => {}
            Expr::Test(test, e) => {
                visit(*test, e);
                e.tests(visit);
            }
            Expr::Part(e, ..) | Expr::SignExtend(_, e) => e.tests(visit),
            Expr::Merge(a, b, ..) | Expr::Op(_, _, a, b) | Expr::Parity(a, b) => {
                a.tests(visit);
                b.tests(visit);
            }
            Expr::Flags(_, _, a, b, c) | Expr::If(a, b, c) => {
                a.tests(visit);
                b.tests(visit);
                c.tests(visit);
            }
        }
    }
    /// True if it tests the parity.
    pub fn tests_parity(&self) -> bool {
        let mut parity = false;
        self.tests(&mut |test, _| parity |= test.kind == TestKind::Parity);
        parity
    }
    /// Evaluates the expression.
    pub fn eval(&self, register: &impl Fn(Register) -> u64, loaded: u64) -> u64 {
        let of = |e: &Expr| e.eval(register, loaded);
        match self {
            Expr::Const(c) => *c,
            Expr::Register(r) => register(*r),
            Expr::Loaded => loaded,
            Expr::Part(e, shift, width) => of(e) >> shift & width.mask(),
            Expr::Merge(old, new, shift, width) => {
                of(old) & !(width.mask() << shift) | (of(new) & width.mask()) << shift
            }
            Expr::Op(op, width, a, b) => op.apply(*width, of(a), of(b)),
            Expr::Flags(op, width, a, b, before) => op.flags(*width, of(a), of(b), of(before)),
            Expr::Parity(f, result) => {
                of(f) & !flags::PF
                    | if (of(result) & 0xff).count_ones() % 2 == 0 { flags::PF } else { 0 }
            }
            Expr::Test(test, f) => u64::from(test.holds(of(f))),
            Expr::SignExtend(width, e) => width.to_signed(of(e)) as u64,
            Expr::If(c, a, b) => {
                if of(c) != 0 {
                    of(a)
                } else {
                    of(b)
                }
            }
        }
    }
    /// True if it uses the value that the step loaded.
    pub fn uses_loaded(&self) -> bool {
        match self {
            Expr::Const(_) | Expr::Register(_) => false,
            Expr::Loaded => true,
            Expr::Part(e, ..) | Expr::Test(_, e) | Expr::SignExtend(_, e) => e.uses_loaded(),
            Expr::Merge(a, b, ..) | Expr::Op(_, _, a, b) | Expr::Parity(a, b) => {
                a.uses_loaded() || b.uses_loaded()
            }
            Expr::Flags(_, _, a, b, c) | Expr::If(a, b, c) => {
                a.uses_loaded() || b.uses_loaded() || c.uses_loaded()
            }
        }
    }
    /// Calls `visit` with each register in it.
    pub fn registers(&self, visit: &mut (impl FnMut(Register) + ?Sized)) {
        match self {
            Expr::Const(_) | Expr::Loaded => {}
            Expr::Register(r) => visit(*r),
            Expr::Part(e, _, _) | Expr::Test(_, e) | Expr::SignExtend(_, e) => e.registers(visit),
            Expr::Merge(a, b, _, _) | Expr::Op(_, _, a, b) | Expr::Parity(a, b) => {
                a.registers(visit);
                b.registers(visit);
            }
            // Only these preserve some of the flags before; the others overwrite all flags.
            Expr::Flags(op, _, a, b, before) => {
                a.registers(visit);
                b.registers(visit);
                if matches!(
                    op,
                    BinOp::Inc | BinOp::Dec | BinOp::Shl | BinOp::Shr | BinOp::Sar | BinOp::Mul
                ) {
                    before.registers(visit);
                }
            }
            Expr::If(a, b, c) => {
                a.registers(visit);
                b.registers(visit);
                c.registers(visit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_wraps_in_its_width() {
        assert_eq!(BinOp::Add.apply(Width::W8, 255, 1), 0);
        assert_eq!(BinOp::Sub.apply(Width::W32, 0, 1), 0xffff_ffff);
        assert_eq!(BinOp::Sar.apply(Width::W8, 0x80, 1), 0xc0);
        assert_eq!(Width::W16.to_signed(0xfffe), -2);
    }

    /// Compares the flags of additions and subtractions of bytes with their definition over
    /// integers.
    #[test]
    fn flags_of_bytes_by_definition() {
        let signed = |v: i32| v as u8 as i8 as i32;
        for a in 0..256i32 {
            for b in 0..256i32 {
                for (op, exact, with_sign) in [
                    (BinOp::Add, a + b, signed(a) + signed(b)),
                    (BinOp::Sub, a - b, signed(a) - signed(b)),
                ] {
                    let f = op.flags(Width::W8, a as u64, b as u64, 0);
                    assert_eq!(f & flags::CF != 0, !(0..256).contains(&exact), "{op:?} {a} {b}");
                    assert_eq!(
                        f & flags::OF != 0,
                        !(-128..128).contains(&with_sign),
                        "{op:?} {a} {b}"
                    );
                    assert_eq!(f & flags::ZF != 0, exact & 255 == 0);
                    assert_eq!(f & flags::SF != 0, exact & 128 != 0);
                }
                let f = BinOp::Sub.flags(Width::W8, a as u64, b as u64, 0);
                let holds = |s: &str| FlagTest::of_suffix(s).unwrap().holds(f);
                assert_eq!(
                    (holds("l"), holds("le")),
                    (signed(a) < signed(b), signed(a) <= signed(b))
                );
                assert_eq!(
                    (holds("g"), holds("ge")),
                    (signed(a) > signed(b), signed(a) >= signed(b))
                );
                assert_eq!((holds("b"), holds("be")), (a < b, a <= b));
                assert_eq!((holds("a"), holds("ae")), (a > b, a >= b));
                assert_eq!((holds("e"), holds("ne")), (a == b, a != b));
            }
        }
    }

    /// Checks the parity after each operation by the manual's definition, and that a shift by zero
    /// preserves it.
    #[test]
    fn parity_is_that_of_the_lowest_byte() {
        let parity = |op: BinOp, a: u64, b: u64, before: u64| {
            let flags = Expr::Flags(
                op,
                Width::W32,
                Box::new(Expr::Register(1)),
                Box::new(Expr::Register(2)),
                Box::new(Expr::Register(0)),
            );
            flags.with_parity().eval(&|r| [before, a, b][r as usize], 0)
        };
        let holds = |s: &str, f: u64| FlagTest::of_suffix(s).unwrap().holds(f);
        for a in 0..600u64 {
            for b in [0, 1, 2, 3, 7, 255, 256, 0xffff_ffff] {
                for op in [
                    BinOp::Add,
                    BinOp::Sub,
                    BinOp::And,
                    BinOp::Or,
                    BinOp::Xor,
                    BinOp::Inc,
                    BinOp::Dec,
                    BinOp::Shl,
                    BinOp::Shr,
                    BinOp::Sar,
                ] {
                    let shift = matches!(op, BinOp::Shl | BinOp::Shr | BinOp::Sar);
                    let result = op.apply(Width::W32, a, b);
                    let mut even = true;
                    (0..8).for_each(|bit| even ^= result >> bit & 1 == 1);
                    for before in [0, flags::PF] {
                        let f = parity(op, a, b, before);
                        let expected = if shift && b & 31 == 0 { before != 0 } else { even };
                        let names =
                            [holds("p", f), holds("pe", f), !holds("np", f), !holds("po", f)];
                        assert_eq!(names, [expected; 4], "{op:?} {a} {b} {before}");
                        assert_eq!(
                            f & !flags::PF,
                            op.flags(Width::W32, a, b, before) & !flags::PF,
                            "{op:?} {a} {b}"
                        );
                    }
                }
            }
        }
        assert!(holds("p", Expr::Const(flags::ZF).with_parity().eval(&|_| 0, 0)));
    }

    #[test]
    fn increments_keep_the_carry() {
        assert_eq!(BinOp::Inc.flags(Width::W8, 255, 1, flags::CF), flags::CF | flags::ZF);
        assert_eq!(BinOp::Inc.flags(Width::W8, 127, 1, 0), flags::OF | flags::SF);
        assert_eq!(BinOp::Dec.flags(Width::W8, 128, 1, 0), flags::OF);
    }
}
