//! Flags that an instruction leaves undefined: a condition on one of them is rejected.
//!
//! Input: the code of a thread. Processors differ in the overflow flag after a shift by 2 or more,
//! and in the carry after `shl` and `shr` of 8 or 16 bits by at least the width (SDM volume 2, SAL
//! and SHR), so a fixed value would hide runs. The count of a shift by `cl` is unknown. Every
//! reader of x86 code uses the [`super::Assembler`], so every route rejects the same code.
//!
//! Cost: linear in the steps, since each flag becomes undefined at most once for a step.

use super::super::expr::{BinOp, Expr, FlagTest, TestKind, Width};
use super::super::{FLAGS, Next, Step, Thread};
use mu_base::{Diagnostic, Span, Stage};

/// For the overflow flag and the carry: the instruction that left it undefined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Undefined {
    overflow: Option<u32>,
    carry: Option<u32>,
}

impl Undefined {
    fn or(self, other: Self) -> Self {
        Self { overflow: self.overflow.or(other.overflow), carry: self.carry.or(other.carry) }
    }

    /// Returns those that are undefined after a shift by one number.
    fn after_shift(op: BinOp, width: Width, count: u64, before: Self, instruction: u32) -> Self {
        match count & if width == Width::W64 { 63 } else { 31 } {
            0 => before,
            1 => Self::default(),
            count => Self {
                overflow: Some(instruction),
                carry: (op != BinOp::Sar && count >= u64::from(width.bits()))
                    .then_some(instruction),
            },
        }
    }

    /// Returns those that are undefined in the flags of an expression.
    fn of(e: &Expr, before: Self, instruction: u32) -> Self {
        let of = |e: &Expr| Self::of(e, before, instruction);
        match e {
            Expr::Register(FLAGS) => before,
            Expr::Flags(op, width, _, count, old) => match (op, &**count) {
                (BinOp::Inc | BinOp::Dec, _) => Self { overflow: None, ..of(old) },
                (BinOp::Mul, _) => of(old),
                (BinOp::Shl | BinOp::Shr | BinOp::Sar, Expr::Const(count)) => {
                    Self::after_shift(*op, *width, *count, of(old), instruction)
                }
                (BinOp::Shl | BinOp::Shr | BinOp::Sar, _) => {
                    Self::after_shift(*op, *width, 31, of(old), instruction).or(of(old))
                }
                _ => Self::default(),
            },
            Expr::Parity(flags, _) => of(flags),
            Expr::If(condition, yes, no) => match **condition {
                Expr::Const(0) => of(no),
                Expr::Const(_) => of(yes),
                _ => of(yes).or(of(no)),
            },
            _ => Self::default(),
        }
    }

    /// Returns the name of an undefined flag that a condition reads, with the instruction that left
    /// it undefined.
    fn read(self, test: FlagTest) -> Option<(&'static str, u32)> {
        let overflow = self.overflow.map(|by| ("overflow flag", by));
        let carry = self.carry.map(|by| ("carry flag", by));
        match test.kind {
            TestKind::Equal | TestKind::Sign | TestKind::Parity => None,
            TestKind::Overflow | TestKind::Less | TestKind::LessOrEqual => overflow,
            TestKind::Below | TestKind::BelowOrEqual => carry,
        }
    }
}

/// Rejects a thread with a condition on a flag that may be undefined.
///
/// # Errors
///
/// Unsupported, with the places of the condition and of the shift.
pub(super) fn check(thread: &Thread) -> Result<(), Diagnostic> {
    let mut known: Vec<Option<Undefined>> = vec![None; thread.steps.len()];
    let mut open = vec![(0, Undefined::default())];
    while let Some((at, undefined)) = open.pop() {
        let (Some(step), Some(known)) = (thread.steps.get(at), known.get_mut(at)) else { continue };
        let joined = known.map_or(undefined, |k| k.or(undefined));
        if *known == Some(joined) {
            continue;
        }
        *known = Some(joined);
        let flags = step.assigns.iter().find(|(register, _)| *register == FLAGS);
        let after = flags.map_or(joined, |(_, e)| Undefined::of(e, joined, step.instruction));
        match step.next {
            Next::Fall => open.push((at + 1, after)),
            Next::Jump(to) => open.push((to as usize, after)),
            Next::Branch(_, to) => open.extend([(at + 1, after), (to as usize, after)]),
        }
    }
    for (step, undefined) in thread.steps.iter().zip(known) {
        let mut found = None;
        if let Some(undefined) = undefined {
            for e in step.expressions() {
                e.tests(&mut |test, flags| {
                    let read = Undefined::of(flags, undefined, step.instruction).read(test);
                    found = found.or(read);
                });
            }
        }
        if let Some((flag, by)) = found {
            return Err(undefined_flag_error(thread, step, flag, by));
        }
    }
    Ok(())
}

fn undefined_flag_error(thread: &Thread, step: &Step, flag: &str, by: u32) -> Diagnostic {
    let of = |at: u32| {
        let instruction = thread.instructions.get(at as usize);
        instruction.map_or(("", Span::default()), |i| (i.text.as_str(), i.span))
    };
    let ((reader, span), (shift, place)) = (of(step.instruction), of(by));
    let message = format!("`{reader}` reads the {flag}, which may be undefined after `{shift}`");
    Diagnostic::at(Stage::Unsupported, span, message)
        .related(place, "the shift")
        .note("processors differ in its value: the overflow flag is defined after a shift by the constant 1, the carry of `shl` and `shr` after a shift by less than the width")
}
