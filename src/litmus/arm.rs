//! Armv7 and AArch32 instructions: loads and stores, exclusives, acquire and release, barriers,
//! branches, integer arithmetic.
//!
//! Input: the tokens of an instruction. Output: operations. Registers have 32 bits. The flags N, Z,
//! C, V are one register. Instructions under a condition other than branches are rejected.

use crate::asm::{Assembler, JumpTarget, symbolic, unknown};
use crate::code::{Arch, Binary, Op, Register, RegisterExpr, Unary};
use mu_base::words::Cursor;
use mu_base::{Diagnostic, Stage, narrow};

const ARCH: Arch = Arch::Arm;

/// Returns the number of a register by its name. `None` if no register has it.
pub fn number(name: &str) -> Option<u8> {
    let upper = name.to_ascii_uppercase();
    match upper.as_str() {
        "SP" => return Some(13),
        "LR" => return Some(14),
        _ => {}
    }
    let n = upper.strip_prefix('R')?;
    n.parse::<u8>().ok().filter(|k| *k < 15 && n == k.to_string())
}

/// The supported instructions, for messages.
pub const SUPPORTED: &str = "LDR LDRB LDRH STR STRB STRH LDREX STREX LDA LDAEX STL STLEX, MOV MVN ADD ADDS SUB SUBS AND ANDS \
    ORR EOR BIC LSL LSR CMP, B B* (conditions) CBZ CBNZ, DMB DSB ISB NOP";

/// The conditions, in the order of their codes.
const CONDITIONS: [&str; 15] =
    ["EQ", "NE", "CS", "CC", "MI", "PL", "VS", "VC", "HI", "LS", "GE", "LT", "GT", "LE", "AL"];

fn register(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<Register, Diagnostic> {
    if let Some(r) = symbolic(a, cursor)? {
        return Ok(r);
    }
    let name = cursor.name("a register")?;
    match number(name.text) {
        Some(n) => Ok(a.register(&format!("R{n}"))),
        None => {
            Err(Diagnostic::at(Stage::Type, name.span, format!("`{}` is no register", name.text))
                .note("registers: R0 to R14, SP, LR"))
        }
    }
}

/// Parses a register or a number, with an optional shift of a register.
fn flexible(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<RegisterExpr, Diagnostic> {
    if number(cursor.peek().text).is_none() && !cursor.is("%") {
        cursor.eat("#");
        return Ok(RegisterExpr::Const(cursor.number()? as u64));
    }
    let value = RegisterExpr::Register(register(a, cursor)?);
    if !(cursor.is(",") && cursor.ahead(1).text.eq_ignore_ascii_case("LSL")) {
        return Ok(value);
    }
    cursor.take();
    cursor.take();
    cursor.eat("#");
    let by = cursor.number()? as u64 & 31;
    Ok(RegisterExpr::binary(Binary::Shl, value, RegisterExpr::Const(by)))
}

/// Parses `[R1]`, `[R1,#4]`, `[R1,R2]`.
fn address(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<RegisterExpr, Diagnostic> {
    cursor.expect("[")?;
    let mut value = RegisterExpr::Register(register(a, cursor)?);
    if cursor.eat(",") {
        value = RegisterExpr::binary(Binary::Add, value, flexible(a, cursor)?);
    }
    cursor.expect("]")?;
    if cursor.is("!") || cursor.is(",") {
        return Err(Diagnostic::at(
            Stage::Unsupported,
            cursor.peek().span,
            "an address that changes its register is not supported",
        )
        .note("supported: `[R1]`, `[R1,#4]`, `[R1,R2]`"));
    }
    Ok(value.extended(4, false))
}

/// Lowers an instruction.
pub fn instruction(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<(), Diagnostic> {
    let token = cursor.name("an instruction")?;
    let name = token.text.to_ascii_uppercase();
    if memory(a, cursor, &name)? || control(a, cursor, &name)? || computation(a, cursor, &name)? {
        return Ok(());
    }
    Err(unknown(token.span, token.text, ARCH))
}

/// Lowers accesses of memory. Returns false if the name is of another instruction.
fn memory(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, name: &str) -> Result<bool, Diagnostic> {
    let (width, load, exclusive, tag) = match name {
        "LDR" => (4, true, false, ""),
        "LDRB" => (1, true, false, ""),
        "LDRH" => (2, true, false, ""),
        "LDA" => (4, true, false, "A"),
        "LDREX" => (4, true, true, ""),
        "LDAEX" => (4, true, true, "A"),
        "STR" => (4, false, false, ""),
        "STRB" => (1, false, false, ""),
        "STRH" => (2, false, false, ""),
        "STL" => (4, false, false, "L"),
        "STREX" => (4, false, true, ""),
        "STLEX" => (4, false, true, "L"),
        _ => return Ok(false),
    };
    let tags = ARCH.tag(tag) | if exclusive { ARCH.tag("EX") } else { 0 };
    let first = register(a, cursor)?;
    cursor.expect(",")?;
    let data = if exclusive && !load {
        let data = register(a, cursor)?;
        cursor.expect(",")?;
        data
    } else {
        first
    };
    let address = address(a, cursor)?;
    a.push(match (load, exclusive) {
        (true, _) => Op::Load {
            into: Some(first),
            value: RegisterExpr::Loaded,
            address,
            width,
            tags,
            reserve: exclusive,
            joined: false,
        },
        (false, true) => Op::StoreConditional {
            status: Some(first),
            address,
            width,
            value: RegisterExpr::Register(data),
            tags,
            carries: false,
            second: None,
        },
        (false, false) => {
            Op::Store { address, width, value: RegisterExpr::Register(data), tags, joined: false }
        }
    });
    Ok(true)
}

/// Lowers branches and barriers. Returns false if the name is of another instruction.
fn control(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, name: &str) -> Result<bool, Diagnostic> {
    match name {
        "NOP" => a.push(Op::Fence(0)),
        "ISB" => {
            cursor.eat_word("SY");
            a.push(Op::Fence(ARCH.tag("ISB")));
        }
        "DMB" | "DSB" => {
            let kind = if cursor.is("|") || cursor.is(";") {
                "SY".to_string()
            } else {
                cursor.name("the kind of a barrier")?.text.to_ascii_uppercase()
            };
            let full = if kind == "SY" { name.to_string() } else { format!("{name}.{kind}") };
            let tag = ARCH.tag(&full);
            if tag == 0 {
                return Err(Diagnostic::at(
                    Stage::Unsupported,
                    cursor.before().span,
                    format!("the barrier `{name} {kind}` is not supported"),
                )
                .note("supported: DMB, DMB ISH, DMB ST, DSB, DSB ST"));
            }
            a.push(Op::Fence(tag));
        }
        "CBZ" | "CBNZ" => {
            let of = RegisterExpr::Register(register(a, cursor)?);
            cursor.expect(",")?;
            let label = cursor.name("a label")?;
            let op = if name == "CBZ" { Binary::Eq } else { Binary::Ne };
            let when = RegisterExpr::binary(op, of.extended(4, false), RegisterExpr::Const(0));
            a.jump(Some(when), JumpTarget::Label(label.text.to_string(), label.span));
        }
        _ => {
            let Some(kind) = name.strip_prefix('B') else { return Ok(false) };
            let when = if kind.is_empty() {
                None
            } else {
                let Some(code) = CONDITIONS.iter().position(|c| *c == kind) else {
                    return Ok(false);
                };
                let flags = RegisterExpr::Register(a.register("NZCV"));
                Some(RegisterExpr::unary(Unary::Holds(narrow::byte(code)), flags))
            };
            let label = cursor.name("a label")?;
            a.jump(when, JumpTarget::Label(label.text.to_string(), label.span));
        }
    }
    Ok(true)
}

/// Lowers arithmetic. Returns false if the name is of another instruction.
fn computation(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
) -> Result<bool, Diagnostic> {
    let (op, flags) = match name {
        "MOV" | "MVN" => (Binary::Or, false),
        "ADD" => (Binary::Add, false),
        "ADDS" => (Binary::Add, true),
        "SUB" => (Binary::Sub, false),
        "SUBS" | "CMP" => (Binary::Sub, true),
        "AND" | "BIC" => (Binary::And, false),
        "ANDS" => (Binary::And, true),
        "ORR" => (Binary::Or, false),
        "EOR" => (Binary::Xor, false),
        "LSL" => (Binary::Shl, false),
        "LSR" => (Binary::Shr, false),
        _ => return Ok(false),
    };
    let into = register(a, cursor)?;
    cursor.expect(",")?;
    if let "MOV" | "MVN" = name {
        let value = flexible(a, cursor)?;
        let value = if name == "MVN" { RegisterExpr::unary(Unary::Not, value) } else { value };
        a.push(Op::Let(into, value.extended(4, false)));
        return Ok(true);
    }
    // The first operand may be the destination.
    let (left, right) = if name == "CMP" {
        (RegisterExpr::Register(into), flexible(a, cursor)?)
    } else {
        let second = flexible(a, cursor)?;
        if cursor.eat(",") {
            (second, flexible(a, cursor)?)
        } else {
            (RegisterExpr::Register(into), second)
        }
    };
    let left = left.extended(4, false);
    let right = match op {
        _ if name == "BIC" => RegisterExpr::unary(Unary::Not, right),
        // The lowest byte is the amount; from 32 on the result is 0.
        Binary::Shl | Binary::Shr => {
            let byte = RegisterExpr::binary(Binary::And, right, RegisterExpr::Const(0xff));
            RegisterExpr::binary(Binary::MinU, byte, RegisterExpr::Const(63))
        }
        _ => right,
    };
    if flags {
        let value = match op {
            Binary::Add => RegisterExpr::binary(Binary::AddFlags(32), left.clone(), right.clone()),
            Binary::Sub => RegisterExpr::binary(Binary::SubFlags(32), left.clone(), right.clone()),
            op => RegisterExpr::unary(
                Unary::Flags(32),
                RegisterExpr::binary(op, left.clone(), right.clone()),
            ),
        };
        let nzcv = a.register("NZCV");
        a.push(Op::Let(nzcv, value));
    }
    if name != "CMP" {
        a.push(Op::Let(into, RegisterExpr::binary(op, left, right).extended(4, false)));
    }
    Ok(true)
}
