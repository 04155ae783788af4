//! Armv7 and AArch32 instructions: loads and stores, exclusives, acquire and release, barriers,
//! branches, integer arithmetic.
//!
//! Input: the tokens of an instruction. Output: operations. Registers have 32 bits. The flags N and
//! Z are one register, C and V one each: `ANDS` leaves V as it is, and C too if its second operand
//! is not shifted. Instructions under a condition other than branches are rejected.

use crate::asm::{Assembler, JumpTarget, symbolic, unknown_mnemonic};
use crate::code::{Arch, Binary, Op, Register, RegisterExpr, Unary, low};
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
    flexible_with_carry(a, cursor).map(|(value, _)| value)
}

/// As [`flexible`]. Returns also the bit that is shifted out; `None` if nothing is shifted.
fn flexible_with_carry(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
) -> Result<(RegisterExpr, Option<RegisterExpr>), Diagnostic> {
    if number(cursor.peek().text).is_none() && !cursor.is("%") {
        cursor.eat("#");
        let value = cursor.number()? as u64;
        // A number of more than 8 bits is one of 8 bits that is rotated.
        let carry = (low(value, 32) > 0xff).then_some(RegisterExpr::Const(value >> 31 & 1));
        return Ok((RegisterExpr::Const(value), carry));
    }
    let value = RegisterExpr::Register(register(a, cursor)?);
    if !(cursor.is(",") && cursor.ahead(1).text.eq_ignore_ascii_case("LSL")) {
        return Ok((value, None));
    }
    cursor.take();
    cursor.take();
    cursor.eat("#");
    let by = cursor.number()? as u64 & 31;
    let shift = |op, by| RegisterExpr::binary(op, value.clone(), RegisterExpr::Const(by));
    let out = (by > 0).then(|| {
        RegisterExpr::binary(Binary::And, shift(Binary::Shr, 32 - by), RegisterExpr::Const(1))
    });
    Ok((shift(Binary::Shl, by), out))
}

/// Returns the registers of the flags: N and Z as bits 3 and 2, C as bit 1, V as bit 0.
fn flags(a: &mut Assembler) -> [Register; 3] {
    ["NZ", "C", "V"].map(|name| a.register(name))
}

/// Returns the truth of a condition, which depends on the flags that it tests only.
fn holds(a: &mut Assembler, code: usize) -> RegisterExpr {
    let [nz, c, v] = flags(a).map(RegisterExpr::Register);
    let both = |x, y| RegisterExpr::binary(Binary::Or, x, y);
    let tested = match CONDITIONS[code] {
        "EQ" | "NE" | "MI" | "PL" => nz,
        "CS" | "CC" => c,
        "VS" | "VC" => v,
        "HI" | "LS" => both(nz, c),
        "AL" => RegisterExpr::Const(0),
        _ => both(nz, v),
    };
    RegisterExpr::unary(Unary::Holds(narrow::byte(code)), tested)
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
    Ok(value.extend_bytes(4, false))
}

/// Lowers an instruction.
pub fn instruction(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<(), Diagnostic> {
    let token = cursor.name("an instruction")?;
    let name = token.text.to_ascii_uppercase();
    if memory(a, cursor, &name)? || control(a, cursor, &name)? || computation(a, cursor, &name)? {
        return Ok(());
    }
    Err(unknown_mnemonic(token.span, token.text, ARCH))
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
    if exclusive && !load {
        let value = RegisterExpr::Register(register(a, cursor)?);
        cursor.expect(",")?;
        let address = address(a, cursor)?;
        let status = a.register(".status");
        a.push(Op::StoreConditional {
            status: Some(status),
            address: address.clone(),
            width,
            value: value.clone(),
            tags,
            carries: false,
            second: None,
        });
        a.assign_status(first, RegisterExpr::Register(status), [value, address]);
        return Ok(true);
    }
    let address = address(a, cursor)?;
    a.push(if load {
        Op::Load {
            into: Some(first),
            value: RegisterExpr::Loaded,
            address,
            width,
            tags,
            reserve: exclusive,
            joined: false,
        }
    } else {
        Op::Store { address, width, value: RegisterExpr::Register(first), tags, joined: false }
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
                    cursor.previous().span,
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
            let when = RegisterExpr::binary(op, of.extend_bytes(4, false), RegisterExpr::Const(0));
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
                Some(holds(a, code))
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
    let (op, sets) = match name {
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
        a.push(Op::Let(into, value.extend_bytes(4, false)));
        return Ok(true);
    }
    // The first operand may be the destination.
    let (left, (right, carry)) = if name == "CMP" {
        (RegisterExpr::Register(into), flexible_with_carry(a, cursor)?)
    } else {
        let second = flexible_with_carry(a, cursor)?;
        if cursor.eat(",") {
            (second.0, flexible_with_carry(a, cursor)?)
        } else {
            (RegisterExpr::Register(into), second)
        }
    };
    let left = left.extend_bytes(4, false);
    let right = match op {
        _ if name == "BIC" => RegisterExpr::unary(Unary::Not, right),
        // The lowest byte is the amount; from 32 on the result is 0.
        Binary::Shl | Binary::Shr => {
            let byte = RegisterExpr::binary(Binary::And, right, RegisterExpr::Const(0xff));
            RegisterExpr::binary(Binary::MinU, byte, RegisterExpr::Const(63))
        }
        _ => right,
    };
    if sets {
        let [nz, c, v] = flags(a);
        let sum = match op {
            Binary::Add => Some(Binary::AddFlags(32)),
            Binary::Sub => Some(Binary::SubFlags(32)),
            _ => None,
        };
        let assigned = match sum {
            Some(sum) => {
                let all = RegisterExpr::binary(sum, left.clone(), right.clone());
                let part = |mask| {
                    RegisterExpr::binary(Binary::And, all.clone(), RegisterExpr::Const(mask))
                };
                vec![(nz, part(12)), (c, part(2)), (v, part(1))]
            }
            None => {
                let result = RegisterExpr::binary(op, left.clone(), right.clone());
                let carry = carry
                    .map(|bit| (c, RegisterExpr::binary(Binary::Shl, bit, RegisterExpr::Const(1))));
                let own = (nz, RegisterExpr::unary(Unary::Flags(32), result));
                std::iter::once(own).chain(carry).collect()
            }
        };
        assigned.into_iter().for_each(|(flag, value)| a.push(Op::Let(flag, value)));
    }
    if name != "CMP" {
        a.push(Op::Let(into, RegisterExpr::binary(op, left, right).extend_bytes(4, false)));
    }
    Ok(true)
}
