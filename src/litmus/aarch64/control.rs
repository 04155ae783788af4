//! Branches, comparisons of conditions, barriers.
//!
//! Input: the tokens of an instruction after its name. Output: operations. Targets are labels of
//! the thread, or distances in bytes (`.-8`). `BR`, `BLR` and `RET` jump to the address of an
//! instruction of any thread, which `ADR`, `BL` or the initial state give. Of the system registers
//! there is only NZCV.

use super::{ARCH, register, tags};
use crate::asm::{Assembler, JumpTarget};
use crate::code::{Binary, Op, RegisterExpr, Unary};
use mu_base::words::{Cursor, Token};
use mu_base::{Diagnostic, Stage, narrow};

/// The conditions, in the order of their codes.
pub(super) const CONDITIONS: [&str; 16] = [
    "EQ", "NE", "CS", "CC", "MI", "PL", "VS", "VC", "HI", "LS", "GE", "LT", "GT", "LE", "AL", "NV",
];

/// Returns the code of a condition by its name.
pub(super) fn condition_code(name: &str) -> Option<u8> {
    let name = match name {
        "HS" => "CS",
        "LO" => "CC",
        name => name,
    };
    CONDITIONS.iter().position(|c| *c == name).map(|i| narrow::byte(i))
}

/// Returns the truth of a condition, by its code.
pub(super) fn holds(a: &mut Assembler, code: u8) -> RegisterExpr {
    RegisterExpr::unary(Unary::Holds(code), RegisterExpr::Register(a.register("NZCV")))
}

/// Parses a condition. Returns its code.
pub(super) fn condition(cursor: &mut Cursor<'_, '_>) -> Result<u8, Diagnostic> {
    let word = cursor.name("a condition")?;
    condition_code(&word.text.to_ascii_uppercase()).ok_or_else(|| no_condition(word))
}

fn no_condition(word: Token<'_>) -> Diagnostic {
    Diagnostic::at(Stage::Type, word.span, format!("`{}` is no condition", word.text))
        .note(format!("expected one of {}, HS, LO", CONDITIONS.join(", ")))
}

/// Parses the target of a branch.
fn target(cursor: &mut Cursor<'_, '_>) -> Result<JumpTarget, Diagnostic> {
    let token = cursor.peek();
    if cursor.eat(".") {
        cursor.eat("+");
        return Ok(JumpTarget::Distance(cursor.number()? / 4, token.span));
    }
    if cursor.is("#") || cursor.is("-") {
        cursor.eat("#");
        return Ok(JumpTarget::Distance(cursor.number()? / 4, token.span));
    }
    let label = cursor.name("a label")?;
    Ok(JumpTarget::Label(label.text.to_string(), label.span))
}

/// Writes the address of the next instruction to the link register.
fn link(a: &mut Assembler) {
    let r = a.register("X30");
    let next = a.next_address();
    a.push(Op::Let(r, RegisterExpr::Const(next)));
}

/// Lowers branches and barriers. Returns false if the name is of another instruction.
pub(super) fn lower(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
    token: Token<'_>,
) -> Result<bool, Diagnostic> {
    match name {
        "NOP" => a.push(Op::Fence(0)),
        "ISB" => {
            cursor.eat_word("SY");
            a.push(Op::Fence(tags(&["ISB"])));
        }
        "DMB" | "DSB" => barrier(a, cursor, name)?,
        "B" => {
            let target = target(cursor)?;
            a.jump(None, target);
        }
        "BL" => {
            let target = target(cursor)?;
            link(a);
            a.jump(None, target);
        }
        "BR" | "BLR" => {
            let to = register(a, cursor)?;
            if name == "BLR" {
                let held = a.register(".target");
                a.push(Op::Let(held, to.value()));
                link(a);
                a.push(Op::Jump(RegisterExpr::Register(held)));
            } else {
                a.push(Op::Jump(to.value()));
            }
        }
        "RET" => {
            let to = if super::is_register(cursor) {
                register(a, cursor)?.value()
            } else {
                RegisterExpr::Register(a.register("X30"))
            };
            a.push(Op::Jump(to));
        }
        "CBZ" | "CBNZ" => {
            let of = register(a, cursor)?;
            cursor.expect(",")?;
            let target = target(cursor)?;
            let op = if name == "CBZ" { Binary::Eq } else { Binary::Ne };
            a.jump(Some(RegisterExpr::binary(op, of.value(), RegisterExpr::Const(0))), target);
        }
        "TBZ" | "TBNZ" => {
            let of = register(a, cursor)?;
            cursor.expect(",")?;
            let bit = super::amount(cursor, of.bits())?;
            cursor.expect(",")?;
            let target = target(cursor)?;
            let bit = RegisterExpr::binary(Binary::And, of.value(), RegisterExpr::Const(1 << bit));
            let op = if name == "TBZ" { Binary::Eq } else { Binary::Ne };
            a.jump(Some(RegisterExpr::binary(op, bit, RegisterExpr::Const(0))), target);
        }
        "MRS" if cursor.ahead(2).text.eq_ignore_ascii_case("NZCV") => {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            cursor.take();
            let flags = RegisterExpr::Register(a.register("NZCV"));
            let value = RegisterExpr::binary(Binary::Shl, flags, RegisterExpr::Const(28));
            super::assign(a, into, value);
        }
        "MSR" if cursor.peek().text.eq_ignore_ascii_case("NZCV") => {
            cursor.take();
            cursor.expect(",")?;
            let from = register(a, cursor)?.value();
            let flags = RegisterExpr::binary(Binary::Shr, from, RegisterExpr::Const(28));
            let flags = RegisterExpr::binary(Binary::And, flags, RegisterExpr::Const(15));
            let nzcv = a.register("NZCV");
            a.push(Op::Let(nzcv, flags));
        }
        _ => {
            let dotted = name.strip_prefix("B.");
            let Some(kind) = dotted.or(name.strip_prefix('B').filter(|k| k.len() == 2)) else {
                return Ok(false);
            };
            let code = match condition_code(kind) {
                Some(code) => code,
                None if dotted.is_some() => return Err(no_condition(token)),
                None => return Ok(false),
            };
            let target = target(cursor)?;
            let when = holds(a, code);
            a.jump(Some(when), target);
        }
    }
    Ok(true)
}

fn barrier(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, name: &str) -> Result<(), Diagnostic> {
    let kind = if cursor.is("|") || cursor.is(";") {
        "SY".to_string()
    } else {
        cursor.name("the kind of a barrier")?.text.to_ascii_uppercase()
    };
    let tag = ARCH.tag(&format!("{name}.{kind}"));
    if tag == 0 {
        return Err(Diagnostic::at(
            Stage::Unsupported,
            cursor.previous().span,
            format!("the barrier `{name} {kind}` is not supported"),
        )
        .note("supported: SY, LD, ST, and these after ISH, OSH and NSH"));
    }
    a.push(Op::Fence(tag));
    Ok(())
}
