//! Integer arithmetic, moves, conditional selection.
//!
//! Input: the tokens of an instruction after its name. Output: operations. A conditional selection
//! depends on the register that it selects, and on the flags by a pick dependency.

use super::control::{condition, holds};
use super::{
    Operand, amount, assign, flexible, immediate, is_register, register, registers, shift_value,
};
use crate::asm::{Assembler, JumpTarget};
use crate::code::{Binary, Op, RegisterExpr, Unary};
use mu_base::words::{Cursor, Token};
use mu_base::{Diagnostic, Stage};

/// The flags that an operation sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sets {
    /// None.
    Nothing,
    /// Those of an addition or a subtraction.
    Sum,
    /// Those of a result of bitwise operators.
    Bits,
}

/// Lowers arithmetic. Returns false if the name is of another instruction.
pub(super) fn lower(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
    token: Token<'_>,
) -> Result<bool, Diagnostic> {
    Ok(operator(a, cursor, name)?
        || carry(a, cursor, name)?
        || comparison(a, cursor, name)?
        || shift(a, cursor, name)?
        || product(a, cursor, name)?
        || unary(a, cursor, name)?
        || field(a, cursor, name)?
        || moves(a, cursor, name, token)?
        || selection(a, cursor, name, token)?)
}

/// Lowers operators on a register and a flexible operand.
fn operator(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
) -> Result<bool, Diagnostic> {
    use Sets::{Bits, Nothing, Sum};
    let (op, inverted, sets) = match name {
        "ADD" => (Binary::Add, false, Nothing),
        "ADDS" | "CMN" => (Binary::Add, false, Sum),
        "SUB" | "NEG" => (Binary::Sub, false, Nothing),
        "SUBS" | "CMP" | "NEGS" => (Binary::Sub, false, Sum),
        "AND" => (Binary::And, false, Nothing),
        "ANDS" | "TST" => (Binary::And, false, Bits),
        "BIC" => (Binary::And, true, Nothing),
        "BICS" => (Binary::And, true, Bits),
        "ORR" => (Binary::Or, false, Nothing),
        "ORN" => (Binary::Or, true, Nothing),
        "EOR" => (Binary::Xor, false, Nothing),
        "EON" => (Binary::Xor, true, Nothing),
        _ => return Ok(false),
    };
    let first = register(a, cursor)?;
    cursor.expect(",")?;
    let zero = Operand { register: None, width: first.width };
    let (into, left) = match name {
        "CMP" | "CMN" | "TST" => (zero, first),
        "NEG" | "NEGS" => (first, zero),
        _ => {
            let left = register(a, cursor)?;
            cursor.expect(",")?;
            (first, left)
        }
    };
    let bits = first.bits();
    let mut right = flexible(a, cursor, bits)?;
    if inverted {
        right = RegisterExpr::unary(Unary::Not, right);
    }
    let left = left.value();
    let flags = match (sets, op) {
        (Nothing, _) => None,
        (Sum, Binary::Add) => {
            Some(RegisterExpr::binary(Binary::AddFlags(bits), left.clone(), right.clone()))
        }
        (Sum, _) => Some(RegisterExpr::binary(Binary::SubFlags(bits), left.clone(), right.clone())),
        (Bits, _) => Some(RegisterExpr::unary(
            Unary::Flags(bits),
            RegisterExpr::binary(op, left.clone(), right.clone()),
        )),
    };
    let value = RegisterExpr::binary(op, left, right);
    match flags {
        None => assign(a, into, value),
        Some(flags) => {
            let nzcv = a.register("NZCV");
            a.push(Op::Let(nzcv, flags));
            if into.register.is_some() {
                assign(a, into, value);
            }
        }
    }
    Ok(true)
}

/// Lowers sums and differences with the carry flag.
fn carry(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, name: &str) -> Result<bool, Diagnostic> {
    let (inverted, sets) = match name {
        "ADC" => (false, false),
        "ADCS" => (false, true),
        "SBC" | "NGC" => (true, false),
        "SBCS" | "NGCS" => (true, true),
        _ => return Ok(false),
    };
    let [into] = registers(a, cursor)?;
    let left = if name.starts_with("NGC") {
        Operand { register: None, width: into.width }
    } else {
        let [left] = registers(a, cursor)?;
        left
    };
    let (bits, mut right) = (into.bits(), register(a, cursor)?.value());
    if inverted {
        right = RegisterExpr::unary(Unary::Not, right).extend_bytes(into.width, false);
    }
    let nzcv = a.register("NZCV");
    let of = |e: RegisterExpr, mask: u64| {
        RegisterExpr::binary(Binary::And, e, RegisterExpr::Const(mask))
    };
    let flag = of(
        RegisterExpr::binary(Binary::Shr, RegisterExpr::Register(nzcv), RegisterExpr::Const(1)),
        1,
    );
    let sum = RegisterExpr::binary(Binary::Add, left.value(), right.clone())
        .extend_bytes(into.width, false);
    let value = RegisterExpr::binary(Binary::Add, sum.clone(), flag.clone());
    if sets {
        // The flags of the two additions: one carry at most, and two overflows cancel.
        let first = RegisterExpr::binary(Binary::AddFlags(bits), left.value(), right);
        let second = RegisterExpr::binary(Binary::AddFlags(bits), sum, flag);
        let either = RegisterExpr::binary(Binary::Or, first.clone(), second.clone());
        let one = RegisterExpr::binary(Binary::Xor, first, second.clone());
        let low = RegisterExpr::binary(Binary::Or, of(either, 2), of(one, 1));
        let flags = RegisterExpr::binary(Binary::Or, of(second, 12), low);
        // The value uses the old flags, and may replace an operand of the new ones.
        let held = a.register(".flags");
        a.push(Op::Let(held, flags));
        assign(a, into, value);
        a.push(Op::Let(nzcv, RegisterExpr::Register(held)));
    } else {
        assign(a, into, value);
    }
    Ok(true)
}

/// Lowers conditional comparisons, which depend on the flags by a pick dependency.
fn comparison(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
) -> Result<bool, Diagnostic> {
    if !matches!(name, "CCMP" | "CCMN") {
        return Ok(false);
    }
    let [left] = registers(a, cursor)?;
    let bits = left.bits();
    let number = cursor.peek().span;
    let right = if is_register(cursor) {
        register(a, cursor)?.value()
    } else {
        let value = immediate(cursor)?;
        if value > 31 {
            return Err(Diagnostic::at(Stage::Type, number, format!("the number {value}"))
                .note("expected a number from 0 to 31"));
        }
        RegisterExpr::Const(value)
    };
    cursor.expect(",")?;
    let place = cursor.peek().span;
    let given = immediate(cursor)?;
    if given > 15 {
        return Err(Diagnostic::at(Stage::Type, place, format!("the flags {given}"))
            .note("expected a number from 0 to 15"));
    }
    cursor.expect(",")?;
    let code = condition(cursor)?;
    let op = if name == "CCMP" { Binary::SubFlags(bits) } else { Binary::AddFlags(bits) };
    let (when, other) = (holds(a, code), holds(a, code));
    let nzcv = a.register("NZCV");
    let flags = RegisterExpr::binary(op, left.value(), right);
    a.alternatives(vec![
        vec![Op::Choose(when), Op::Let(nzcv, flags)],
        vec![
            Op::Choose(RegisterExpr::unary(Unary::IsZero, other)),
            Op::Let(nzcv, RegisterExpr::Const(given)),
        ],
    ]);
    Ok(true)
}

/// Lowers shifts by a register or a number, and `EXTR`.
fn shift(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, name: &str) -> Result<bool, Diagnostic> {
    let op = match name {
        "LSL" | "LSLV" => "LSL",
        "LSR" | "LSRV" => "LSR",
        "ASR" | "ASRV" => "ASR",
        "ROR" | "RORV" => "ROR",
        "EXTR" => {
            let [into, high, low] = registers(a, cursor)?;
            let bits = into.bits();
            let by = amount(cursor, bits)?;
            let value = if by == 0 {
                low.value()
            } else {
                RegisterExpr::binary(
                    Binary::Or,
                    shift_value("LSR", low.value(), RegisterExpr::Const(u64::from(by)), bits),
                    shift_value(
                        "LSL",
                        high.value(),
                        RegisterExpr::Const(u64::from(bits - by)),
                        bits,
                    ),
                )
            };
            assign(a, into, value);
            return Ok(true);
        }
        _ => return Ok(false),
    };
    let [into, of] = registers(a, cursor)?;
    let bits = into.bits();
    let by = if is_register(cursor) {
        register(a, cursor)?.value()
    } else {
        RegisterExpr::Const(u64::from(amount(cursor, bits)?))
    };
    let by = RegisterExpr::binary(Binary::And, by, RegisterExpr::Const(u64::from(bits) - 1));
    assign(a, into, shift_value(op, of.value(), by, bits));
    Ok(true)
}

/// Lowers products and quotients.
fn product(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, name: &str) -> Result<bool, Diagnostic> {
    // The sign of narrow factors, and the operator that adds the product to a fourth register.
    let (narrow, sum) = match name {
        "MUL" => (None, None),
        "MNEG" => (None, Some(Binary::Sub)),
        "MADD" => (None, Some(Binary::Add)),
        "MSUB" => (None, Some(Binary::Sub)),
        "SMULL" => (Some(true), None),
        "UMULL" => (Some(false), None),
        "SMNEGL" => (Some(true), Some(Binary::Sub)),
        "UMNEGL" => (Some(false), Some(Binary::Sub)),
        "SMADDL" => (Some(true), Some(Binary::Add)),
        "UMADDL" => (Some(false), Some(Binary::Add)),
        "SMSUBL" => (Some(true), Some(Binary::Sub)),
        "UMSUBL" => (Some(false), Some(Binary::Sub)),
        "SMULH" | "UMULH" | "SDIV" | "UDIV" => {
            let [into, left] = registers(a, cursor)?;
            let right = register(a, cursor)?;
            let signed = name.starts_with('S');
            let op = match name {
                "SMULH" => Binary::MulHigh,
                "UMULH" => Binary::MulHighU,
                "SDIV" => Binary::Div,
                _ => Binary::DivU,
            };
            let (left, right) = (
                left.value().extend_bytes(into.width, signed),
                right.value().extend_bytes(into.width, signed),
            );
            assign(a, into, RegisterExpr::binary(op, left, right));
            return Ok(true);
        }
        _ => return Ok(false),
    };
    let [into, left] = registers(a, cursor)?;
    let right = register(a, cursor)?;
    let factor = |r: Operand| match narrow {
        Some(signed) => r.value().extend_bytes(4, signed),
        None => r.value(),
    };
    let value = RegisterExpr::binary(Binary::Mul, factor(left), factor(right));
    let with = if matches!(name, "MNEG" | "SMNEGL" | "UMNEGL") {
        RegisterExpr::Const(0)
    } else if sum.is_some() {
        cursor.expect(",")?;
        register(a, cursor)?.value()
    } else {
        RegisterExpr::Const(0)
    };
    assign(a, into, sum.map_or(value.clone(), |op| RegisterExpr::binary(op, with, value)));
    Ok(true)
}

/// Lowers operations on one register.
fn unary(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, name: &str) -> Result<bool, Diagnostic> {
    if name == "CLS" {
        // The leading bits that equal their neighbour to the right.
        let [into] = registers(a, cursor)?;
        let of = register(a, cursor)?.value();
        let shifted = RegisterExpr::binary(
            Binary::Sar,
            of.clone().extend_bytes(into.width, true),
            RegisterExpr::Const(1),
        );
        let different =
            RegisterExpr::binary(Binary::Xor, of, shifted).extend_bytes(into.width, false);
        let zeros = RegisterExpr::unary(Unary::LeadingZeros(into.bits()), different);
        assign(a, into, RegisterExpr::binary(Binary::Sub, zeros, RegisterExpr::Const(1)));
        return Ok(true);
    }
    let op = |bits: u8| {
        Some(match name {
            "ABS" => Unary::Abs(bits),
            "CLZ" => Unary::LeadingZeros(bits),
            "RBIT" => Unary::ReverseBits(bits),
            "REV" | "REV64" => Unary::ReverseBytes(bits),
            "REV32" => Unary::ReverseBytes(32),
            "REV16" => Unary::ReverseBytes(16),
            "SXTB" => Unary::Sign(8),
            "SXTH" => Unary::Sign(16),
            "SXTW" => Unary::Sign(32),
            "UXTB" => Unary::Zero(8),
            "UXTH" => Unary::Zero(16),
            "UXTW" => Unary::Zero(32),
            _ => return None,
        })
    };
    if op(64).is_none() {
        return Ok(false);
    }
    let [into] = registers(a, cursor)?;
    let of = register(a, cursor)?;
    let Some(mut op) = op(into.bits()) else { return Ok(false) };
    let mut value = of.value();
    // Groups of 32 bits in a register of 32 bits: the other half is empty.
    if op == Unary::ReverseBytes(32) && into.width == 4 {
        op = Unary::ReverseBytes(64);
        value = RegisterExpr::binary(Binary::Shl, value, RegisterExpr::Const(32));
    }
    assign(a, into, RegisterExpr::unary(op, value));
    Ok(true)
}

/// Lowers the extraction and insertion of bit fields.
fn field(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, name: &str) -> Result<bool, Diagnostic> {
    let (signed, inserted) = match name {
        "UBFM" | "UBFX" | "UBFIZ" => (false, false),
        "SBFM" | "SBFX" | "SBFIZ" => (true, false),
        "BFM" | "BFI" | "BFXIL" | "BFC" => (false, true),
        _ => return Ok(false),
    };
    let [into] = registers(a, cursor)?;
    let of = if name == "BFC" {
        Operand { register: None, width: into.width }
    } else {
        let [of] = registers(a, cursor)?;
        of
    };
    let bits = into.bits();
    let start = cursor.peek().span;
    let first = amount(cursor, bits)?;
    cursor.expect(",")?;
    let second = u8::try_from(immediate(cursor)?).unwrap_or(u8::MAX);
    // The lowest bit of the field, its width, and its place in the result.
    let (low, width, place) = match name {
        "UBFX" | "SBFX" | "BFXIL" => (first, second, 0),
        "UBFIZ" | "SBFIZ" | "BFI" | "BFC" => (0, second, first),
        _ if second >= first => (first, second.saturating_sub(first).saturating_add(1), 0),
        _ => (0, second.saturating_add(1), bits - first),
    };
    if width == 0 || low.saturating_add(width) > bits || place.saturating_add(width) > bits {
        return Err(Diagnostic::at(
            Stage::Type,
            start,
            format!("a bit field beyond the {bits} bits of its register"),
        ));
    }
    let value = RegisterExpr::binary(Binary::Shr, of.value(), RegisterExpr::Const(u64::from(low)));
    let value =
        RegisterExpr::unary(if signed { Unary::Sign(width) } else { Unary::Zero(width) }, value);
    let mut value = RegisterExpr::binary(Binary::Shl, value, RegisterExpr::Const(u64::from(place)));
    if inserted {
        let field = (u64::MAX >> (64 - width)) << place;
        let rest = RegisterExpr::binary(Binary::And, into.value(), RegisterExpr::Const(!field));
        value = RegisterExpr::binary(Binary::Or, rest, value);
    }
    assign(a, into, value);
    Ok(true)
}

/// Lowers moves and `ADR`.
fn moves(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
    token: Token<'_>,
) -> Result<bool, Diagnostic> {
    match name {
        "MOV" | "MVN" => {
            let [into] = registers(a, cursor)?;
            let value = flexible(a, cursor, into.bits())?;
            assign(
                a,
                into,
                if name == "MVN" { RegisterExpr::unary(Unary::Not, value) } else { value },
            );
        }
        "MOVZ" | "MOVN" | "MOVK" => {
            let [into] = registers(a, cursor)?;
            let number = cursor.peek();
            let value = immediate(cursor)?;
            let by = if cursor.eat(",") {
                let word = cursor.name("LSL")?;
                if !word.text.eq_ignore_ascii_case("LSL") {
                    return Err(Diagnostic::at(
                        Stage::Syntax,
                        word.span,
                        format!("unexpected `{}`: expected LSL", word.text),
                    ));
                }
                amount(cursor, into.bits())?
            } else {
                0
            };
            if value > 0xffff || by % 16 != 0 {
                return Err(Diagnostic::at(
                    Stage::Type,
                    number.span,
                    format!(
                        "`{}` takes a number below 65536 and a shift by 0, 16, 32 or 48",
                        token.text
                    ),
                ));
            }
            let value = RegisterExpr::Const(value << by);
            let value = match name {
                "MOVZ" => value,
                "MOVN" => RegisterExpr::unary(Unary::Not, value),
                _ => {
                    let mask = RegisterExpr::Const(!(0xffff << by));
                    RegisterExpr::binary(
                        Binary::Or,
                        RegisterExpr::binary(Binary::And, into.value(), mask),
                        value,
                    )
                }
            };
            assign(a, into, value);
        }
        "ADR" | "ADRP" if name == "ADR" => {
            let [into] = registers(a, cursor)?;
            let label = cursor.name("a label")?;
            match into.register {
                Some(r) => a.load_address(r, JumpTarget::Label(label.text.to_string(), label.span)),
                None => a.push(Op::Fence(0)),
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Lowers conditional selections.
fn selection(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
    token: Token<'_>,
) -> Result<bool, Diagnostic> {
    let change = |value: RegisterExpr| match name {
        "CSINC" | "CINC" | "CSET" => value.plus(1),
        "CSINV" | "CINV" | "CSETM" => RegisterExpr::unary(Unary::Not, value),
        "CSNEG" | "CNEG" => RegisterExpr::unary(Unary::Neg, value),
        _ => value,
    };
    let (into, yes, no, code) = match name {
        "CSEL" | "CSINC" | "CSINV" | "CSNEG" => {
            let [into, yes, no] = registers(a, cursor)?;
            (into, yes, no, condition(cursor)?)
        }
        "CSET" | "CSETM" => {
            let [into] = registers(a, cursor)?;
            let zero = Operand { register: None, width: into.width };
            (into, zero, zero, inverse(cursor, token)?)
        }
        "CINC" | "CINV" | "CNEG" => {
            let [into, of] = registers(a, cursor)?;
            (into, of, of, inverse(cursor, token)?)
        }
        _ => return Ok(false),
    };
    let (when, other) = (holds(a, code), holds(a, code));
    let result = |value: RegisterExpr| match into.register {
        Some(r) => Op::Let(r, value.extend_bytes(into.width, false)),
        None => Op::Fence(0),
    };
    a.alternatives(vec![
        vec![Op::Choose(when), result(yes.value())],
        vec![Op::Choose(RegisterExpr::unary(Unary::IsZero, other)), result(change(no.value()))],
    ]);
    Ok(true)
}

/// Parses a condition, and returns the code of its negation.
fn inverse(cursor: &mut Cursor<'_, '_>, token: Token<'_>) -> Result<u8, Diagnostic> {
    let at = cursor.peek();
    let code = condition(cursor)?;
    if code >= 14 {
        return Err(Diagnostic::at(
            Stage::Type,
            at.span,
            format!("`{}` takes a condition other than AL and NV", token.text),
        ));
    }
    Ok(code ^ 1)
}
