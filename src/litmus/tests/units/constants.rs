//! Constant expressions and copies: known bits against evaluation with many values, and the
//! executions that depend on them, in which reads justify each other.

use super::{answer, compile, default_judge};
use mu_base::random::Random;
use mu_litmus::code::{Arch, Binary, RegisterExpr, Unary};
use mu_program::expr::{BinOp, Expr, FlagTest, Width};
use mu_program::outcome::answer::Verdict;

/// Values at which operators change their behaviour.
const CORNERS: [u64; 14] = [
    0,
    1,
    2,
    3,
    4,
    7,
    127,
    128,
    255,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

fn value(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => random.next_u64(),
        1 => random.next_u64() % 300,
        _ => *random.choose(&CORNERS),
    }
}

/// Generates an expression over two registers and the loaded value.
fn expression(random: &mut Random, depth: u32) -> RegisterExpr {
    if depth == 0 || random.chance(1, 5) {
        return match random.below(5) {
            0 | 1 => RegisterExpr::Register(random.below(2) as u16),
            2 => RegisterExpr::Loaded,
            _ => RegisterExpr::Const(value(random)),
        };
    }
    let bits = *random.choose(&[8, 16, 32, 64]);
    if random.chance(1, 3) {
        let code = random.below(16) as u8;
        let op = *random.choose(&[
            Unary::Not,
            Unary::Neg,
            Unary::IsZero,
            Unary::Zero(bits),
            Unary::Sign(bits),
            Unary::Abs(bits),
            Unary::ReverseBytes(bits.max(16)),
            Unary::ReverseBits(bits),
            Unary::LeadingZeros(bits),
            Unary::Flags(bits),
            Unary::Holds(code),
        ]);
        return RegisterExpr::unary(op, expression(random, depth - 1));
    }
    let op = *random.choose(&[
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::And,
        Binary::And,
        Binary::Or,
        Binary::Xor,
        Binary::Shl,
        Binary::Shr,
        Binary::Sar,
        Binary::Eq,
        Binary::Ne,
        Binary::Less,
        Binary::LessEqual,
        Binary::Below,
        Binary::BelowEqual,
        Binary::Min,
        Binary::Max,
        Binary::MinU,
        Binary::MaxU,
        Binary::Div,
        Binary::DivU,
        Binary::Rem,
        Binary::RemU,
        Binary::MulHigh,
        Binary::MulHighU,
        Binary::AddFlags(bits),
        Binary::SubFlags(bits),
    ]);
    let left = expression(random, depth - 1);
    let right = match random.below(4) {
        0 => left.clone(),
        1 => RegisterExpr::unary(Unary::Not, left.clone()),
        _ => expression(random, depth - 1),
    };
    RegisterExpr::binary(op, left, right)
}

/// Generates an expression of x86 code over the flags and two registers.
fn x86(random: &mut Random, depth: u32) -> Expr {
    if depth == 0 || random.chance(1, 5) {
        return match random.below(4) {
            0 | 1 => Expr::Register(random.below(2) as u16),
            2 => Expr::Loaded,
            _ => Expr::Const(value(random)),
        };
    }
    let width = *random.choose(&[Width::W8, Width::W16, Width::W32, Width::W64]);
    let mut next = || Box::new(x86(random, depth - 1));
    let (a, mut b, c) = (next(), next(), next());
    if random.chance(1, 4) {
        b = a.clone();
    }
    let op = *random.choose(&[
        BinOp::Add,
        BinOp::Sub,
        BinOp::And,
        BinOp::Or,
        BinOp::Xor,
        BinOp::Shl,
        BinOp::Shr,
        BinOp::Sar,
        BinOp::Inc,
        BinOp::Dec,
        BinOp::Mul,
    ]);
    let test = *random.choose(&["e", "ne", "s", "b", "o", "be", "l", "le", "p", "np"]);
    let test = FlagTest::of_suffix(test).expect("a condition");
    let shift = if width == Width::W8 && random.chance(1, 2) { 8 } else { 0 };
    match random.below(9) {
        0 => Expr::Part(a, shift, width),
        1 => Expr::Merge(a, b, shift, width),
        2..=4 => Expr::Op(op, width, a, b),
        5 => Expr::Flags(op, width, a, b, c),
        6 => Expr::Test(test, Box::new(Expr::Flags(op, width, a, b, c))),
        7 => Expr::SignExtend(width, a),
        _ => match random.chance(1, 2) {
            true => Expr::If(a, b, c),
            false => Expr::Parity(a, b),
        },
    }
}

/// An expression that counts as constant has one value, and a copy has small values of its source.
#[test]
fn constants_and_copies_are_what_evaluation_shows() {
    let (mut constants, mut copies) = (0, 0);
    for seed in 0..20_000 {
        let random = &mut Random::new(seed);
        let e = match seed % 3 {
            0 => RegisterExpr::X86(Box::new(x86(random, 3)), None),
            _ => expression(random, 3),
        };
        let evaluate = |registers: &[u64]| e.value(&registers[..2], registers[2]);
        let mut sources = Vec::new();
        let loaded = e.sources(&mut |r| sources.push(r));
        if let Some(constant) = e.constant() {
            constants += u32::from(loaded || !sources.is_empty());
            for _ in 0..200 {
                let registers = [value(random), value(random), value(random)];
                assert_eq!(evaluate(&registers), constant, "seed {seed}: {e:?} {registers:x?}");
            }
        }
        if e.is_copy(&|r| r == 0) {
            copies += 1;
            for n in 0..128 {
                // The other register has any value, on which a copy does not depend.
                let other = value(random);
                assert_eq!(evaluate(&[n, other, n]), n, "seed {seed}: {e:?}");
            }
        }
    }
    assert!(constants > 1000 && copies > 1000, "{constants} {copies}");
}

/// A comparison and a mask depend on a value, whatever values a test contains.
#[test]
fn values_that_rarely_change_are_not_constant() {
    let register = || RegisterExpr::Register(0);
    let with = |op, n| RegisterExpr::binary(op, register(), RegisterExpr::Const(n));
    let of_mask = RegisterExpr::unary(Unary::IsZero, with(Binary::And, 1));
    for e in [with(Binary::Eq, 1), with(Binary::DivU, u64::MAX), with(Binary::Below, 3), of_mask] {
        assert_eq!(e.constant(), None, "{e:?}");
    }
    for (mask, is_copy) in [(127, false), (255, true), (254, false), (0xffff_ffff, true)] {
        assert_eq!(with(Binary::And, mask).is_copy(&|_| true), is_copy, "{mask}");
    }
    let cancelled = RegisterExpr::binary(Binary::Xor, register(), register());
    assert_eq!(cancelled.constant(), Some(0));
    assert_eq!(with(Binary::And, 0).constant(), Some(0));
}

/// A model that orders nothing but the accesses to one location.
const WEAK: &str = "\"weak\"\nacyclic po-loc | rf | co | fr as coherence\n";

fn verdict(arch: Arch, text: &str) -> Verdict {
    answer(text, &compile(arch, WEAK)).answer.verdict
}

/// A circle through a comparison or a mask determines no value. The third thread never stores, and
/// makes 1 a value that is tried.
#[test]
fn a_comparison_closes_a_circle_of_computations() {
    let with = |between: &str| {
        let text = format!(
            "RISCV t\n{{ 0:x10=x; 0:x11=y; 1:x10=y; 1:x11=x; 2:x10=z; 2:x11=x; 2:x7=1; }}\n P0 | P1 | P2 ;\n \
             lw x5,0(x10) | lw x5,0(x10) | lw x5,0(x10) ;\n {between} | nop | beq x5,x0,L ;\n \
             sw x6,0(x11) | sw x5,0(x11) | sw x7,0(x11) ;\n | | L: ;\nexists (0:x5=1 /\\ 1:x5=1)\n"
        );
        verdict(Arch::RiscV, &text)
    };
    assert_eq!(with("mv x6,x5"), Verdict::Ok);
    assert_eq!(with("andi x6,x5,255"), Verdict::Ok);
    assert_eq!(with("andi x6,x5,127"), Verdict::No);
    assert_eq!(with("xori x6,x5,1 | | ;\n seqz x6,x6"), Verdict::No);
}

/// Stores with addresses that are read justify each other: neither is on a path before the other.
#[test]
fn reads_may_justify_each_other_through_addresses() {
    let text = "AArch64 t\n{ int64_t x; int64_t z; int64_t a; int64_t b; x=a; z=b; 0:X1=x; 0:X3=z; 1:X1=z; 1:X3=x; }\n \
                P0 | P1 ;\n LDR X0,[X1] | LDR X0,[X1] ;\n STR X1,[X0] | STR X1,[X0] ;\nexists (0:X0=z /\\ 1:X0=x)\n";
    assert_eq!(verdict(Arch::AArch64, text), Verdict::Ok);
    assert_eq!(answer(text, &super::default_judge(Arch::AArch64)).answer.observation(), "Never");
    // Each of three stores has an address that another one stores.
    let thread = |t: u32, own: &str, stored: &str| format!("{t}:X1={own}; {t}:X2={stored};");
    let text = format!(
        "AArch64 t\n{{ int64_t x; int64_t y; int64_t z; int64_t a; x=a; y=a; z=a; {} {} {} }}\n P0 | P1 | P2 ;\n \
         LDR X0,[X1] | LDR X0,[X1] | LDR X0,[X1] ;\n STR X2,[X0] | STR X2,[X0] | STR X2,[X0] ;\n\
         exists (0:X0=y /\\ 1:X0=z /\\ 2:X0=x)\n",
        thread(0, "x", "z"),
        thread(1, "y", "x"),
        thread(2, "z", "y"),
    );
    assert_eq!(verdict(Arch::AArch64, &text), Verdict::Ok);
}

/// The stored constants are computed from what is read, without depending on it.
#[test]
fn cancelled_computations_are_constants_of_branches() {
    let text = "AArch64 t\n{ 0:X1=x; 0:X3=y; 1:X1=y; 1:X3=x; }\n P0 | P1 ;\n LDR W0,[X1] | LDR W0,[X1] ;\n \
                EOR W2,W0,W0 | EOR W2,W0,W0 ;\n ADD W2,W2,#1 | ADD W2,W2,#1 ;\n CBZ W0,L | CBZ W0,L ;\n \
                STR W2,[X3] | STR W2,[X3] ;\n L: | L: ;\nexists (0:X0=1 /\\ 1:X0=1)\n";
    assert_eq!(verdict(Arch::AArch64, text), Verdict::Ok);
}

/// Beyond the limit on steps some constants are unknown, and the report says so.
#[test]
fn constants_beyond_the_limit_are_reported() {
    let branches: String = (0..15)
        .map(|i| {
            format!(" beq x5,x0,L{i} | | ;\n addi x6,x6,{} | | ;\n L{i}: | | ;\n", 1 << (i % 11))
        })
        .collect();
    let text = format!(
        "RISCV t\n{{ 0:x10=x; 0:x11=y; 1:x10=y; 1:x11=x; 1:x6=1; }}\n P0 | P1 | P2 ;\n lw x5,0(x10) | lw x5,0(x10) | nop ;\n \
         nop | beq x5,x0,L | ;\n{branches} sw x6,0(x11) | sw x6,0(x11) | ;\n | L: | ;\nexists (1:x5=77)\n"
    );
    let report = answer(&text, &compile(Arch::RiscV, WEAK));
    assert_eq!((report.constants, report.answer.verdict), (true, Verdict::Unknown), "{text}");
    assert!(report.dropped_paths().iter().any(|line| line.contains("constants")));
    let short = text.replace(" beq x5,x0,L3 | | ;\n", "").replace(" beq x5,x0,L7 | | ;\n", "");
    let report = answer(&short, &compile(Arch::RiscV, WEAK));
    assert_eq!((report.constants, report.answer.verdict), (false, Verdict::No), "{short}");
}

/// A value that two stores write, one of them from the value itself, is known by the other: the
/// second thread copies 1 to `z`, and 0 + 1 is 1 as well. herd7 7.58 has both outcomes.
#[test]
fn a_value_that_two_stores_write_is_not_lost() {
    for (second, third) in [
        ("ADD W5,W3,#1 ;\n | STR W5,[X22]", "LDR W3,[X22]"),
        ("SUB W5,W9,W3 ;\n | STR W5,[X22]", "LDR W3,[X22]"),
        ("NOP", "LDADD W8,W3,[X22]"),
    ] {
        let text = format!(
            "AArch64 lost\n{{ x=0; y=0; z=0; 0:X21=y; 0:X1=1; 1:X21=y; 1:X22=z; 1:X8=1; 1:X9=1; }}\n\
             P0 | P1 ;\nSTR W1,[X21] | LDR W1,[X21] ;\n | STR W1,[X22] ;\n | {third} ;\n | {second} ;\n\
             locations [1:X1; z;]\nexists (true)\n"
        );
        let own = answer(&text, &default_judge(Arch::AArch64));
        assert_eq!(own.answer.outcomes.len(), 2, "{third}; {second}");
    }
}
