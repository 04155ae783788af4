//! Power instructions: loads and stores, load-reserve and store-conditional, barriers, branches,
//! integer arithmetic.
//!
//! Input: the tokens of an instruction. Output: operations. Registers have 64 bits, and the fields
//! of the condition register are registers of their own: bit 2 is "less", 1 "greater", 0 "equal".
//! The register 0 is the number 0 as the first register of an address. The result of `stwcx.`
//! depends on its data and its address, as in the herd tools.

use crate::asm::{Assembler, JumpTarget, symbolic, unknown_mnemonic};
use crate::code::{Arch, Binary, Op, Register, RegisterExpr, Unary};
use mu_base::words::{Cursor, Token};
use mu_base::{Diagnostic, Stage};

const ARCH: Arch = Arch::Power;

/// Returns the number of a register by its name. `None` if no register has it.
pub fn number(name: &str) -> Option<u8> {
    let n = name.strip_prefix('r')?;
    n.parse::<u8>().ok().filter(|k| *k < 32 && n == k.to_string())
}

/// The supported instructions, for messages. A star is a placeholder for the letter of a size.
pub const SUPPORTED: &str = "lbz lhz lwz ld stb sth stw std (with x), lwarx ldarx stwcx. stdcx., \
    li lis mr addi addis add sub subf neg mullw and or xor andi. ori xori and. or. xor. add. \
    slwi srwi slw srw extsb extsh extsw, cmpw cmpwi cmpd cmpdi cmplw cmplwi, b beq bne blt ble bgt bge, \
    sync hwsync lwsync eieio isync nop";

fn register(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<Register, Diagnostic> {
    if let Some(r) = symbolic(a, cursor)? {
        return Ok(r);
    }
    let name = cursor.name("a register")?;
    match number(name.text) {
        Some(n) => Ok(a.register(&format!("r{n}"))),
        None => {
            Err(Diagnostic::at(Stage::Type, name.span, format!("`{}` is no register", name.text))
                .note("registers: r0 to r31"))
        }
    }
}

fn source(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<RegisterExpr, Diagnostic> {
    Ok(RegisterExpr::Register(register(a, cursor)?))
}

/// Parses the first register of an address, in which r0 is the number 0.
fn base(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<RegisterExpr, Diagnostic> {
    if cursor.is_number() {
        return Ok(RegisterExpr::Const(cursor.number()? as u64));
    }
    let zero = number(cursor.peek().text) == Some(0);
    let value = source(a, cursor)?;
    Ok(if zero { RegisterExpr::Const(0) } else { value })
}

/// Parses `offset(register)`.
fn displacement_address(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
) -> Result<RegisterExpr, Diagnostic> {
    let offset = if cursor.is("(") { 0 } else { cursor.number()? };
    cursor.expect("(")?;
    let base = base(a, cursor)?;
    cursor.expect(")")?;
    Ok(base.plus(offset as u64))
}

/// Parses `register,register` as an address.
fn indexed_address(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
) -> Result<RegisterExpr, Diagnostic> {
    let base = base(a, cursor)?;
    cursor.expect(",")?;
    let index = source(a, cursor)?;
    Ok(RegisterExpr::binary(Binary::Add, base, index))
}

/// Returns the width of an access by the letters after `l` or `st`.
fn width(letters: &str) -> Option<u8> {
    Some(match letters {
        "b" | "bz" => 1,
        "h" | "hz" => 2,
        "w" | "wz" => 4,
        "d" => 8,
        _ => return None,
    })
}

/// Builds the bits of a field of the condition register.
fn comparison_field(left: RegisterExpr, right: RegisterExpr, signed: bool) -> RegisterExpr {
    let less = if signed { Binary::Less } else { Binary::Below };
    let bit = |op: Binary, a: RegisterExpr, b: RegisterExpr, by: u64| {
        RegisterExpr::binary(Binary::Shl, RegisterExpr::binary(op, a, b), RegisterExpr::Const(by))
    };
    let order = RegisterExpr::binary(
        Binary::Or,
        bit(less, left.clone(), right.clone(), 2),
        bit(less, right.clone(), left.clone(), 1),
    );
    RegisterExpr::binary(Binary::Or, order, RegisterExpr::binary(Binary::Eq, left, right))
}

/// Parses an optional field of the condition register, with its comma.
fn field(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<Register, Diagnostic> {
    let name = cursor.peek();
    let n = name.text.strip_prefix("cr").and_then(|n| n.parse::<u8>().ok()).filter(|n| *n < 8);
    match n {
        Some(n) => {
            cursor.take();
            cursor.expect(",")?;
            Ok(a.register(&format!("CR{n}")))
        }
        None => Ok(a.register("CR0")),
    }
}

/// Lowers an instruction.
pub fn instruction(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<(), Diagnostic> {
    let token = cursor.name("an instruction")?;
    let name = token.text.to_ascii_lowercase();
    // The dot of `andi.` is part of the name; `stwcx.` may end before a separate dot.
    let dot = name.ends_with('.') || cursor.eat(".");
    let name = name.trim_end_matches('.');
    let barrier = match name {
        "sync" | "hwsync" => Some("SYNC"),
        "lwsync" => Some("LWSYNC"),
        "eieio" => Some("EIEIO"),
        "isync" => Some("ISYNC"),
        _ => None,
    };
    if let Some(barrier) = barrier {
        a.push(Op::Fence(ARCH.tag(barrier)));
        return Ok(());
    }
    if name == "nop" {
        a.push(Op::Fence(0));
        return Ok(());
    }
    if memory(a, cursor, name)? || branch(a, cursor, name)? || computation(a, cursor, name, dot)? {
        return Ok(());
    }
    Err(unknown_mnemonic(token.span, token.text, ARCH))
}

/// Lowers accesses of memory. Returns false if the name is of another instruction.
fn memory(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, name: &str) -> Result<bool, Diagnostic> {
    let exclusive = ARCH.tag("EX");
    let plain = |name: &str, start: &str| {
        let rest = name.strip_prefix(start)?;
        let letters = rest.strip_suffix('x').unwrap_or(rest);
        Some((width(letters)?, rest.ends_with('x')))
    };
    match name {
        "lwarx" | "ldarx" => {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let address = indexed_address(a, cursor)?;
            let width = if name == "lwarx" { 4 } else { 8 };
            a.push(Op::Load {
                into: Some(into),
                value: RegisterExpr::Loaded,
                address,
                width,
                tags: exclusive,
                reserve: true,
                joined: false,
            });
        }
        "stwcx" | "stdcx" => {
            let from = register(a, cursor)?;
            cursor.expect(",")?;
            let address = indexed_address(a, cursor)?;
            let status = a.register(".status");
            a.push(Op::StoreConditional {
                status: Some(status),
                address: address.clone(),
                width: if name == "stwcx" { 4 } else { 8 },
                value: RegisterExpr::Register(from),
                tags: exclusive,
                carries: false,
                second: None,
            });
            let success = RegisterExpr::unary(Unary::IsZero, RegisterExpr::Register(status));
            let field = a.register("CR0");
            a.assign_status(field, success, [RegisterExpr::Register(from), address]);
        }
        _ => {
            if let Some((width, index)) = plain(name, "st") {
                let value = source(a, cursor)?;
                cursor.expect(",")?;
                let address = if index {
                    indexed_address(a, cursor)?
                } else {
                    displacement_address(a, cursor)?
                };
                a.push(Op::Store { address, width, value, tags: 0, joined: false });
                return Ok(true);
            }
            let Some((width, index)) = plain(name, "l") else { return Ok(false) };
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let address =
                if index { indexed_address(a, cursor)? } else { displacement_address(a, cursor)? };
            a.push(Op::Load {
                into: Some(into),
                value: RegisterExpr::Loaded,
                address,
                width,
                tags: 0,
                reserve: false,
                joined: false,
            });
        }
    }
    Ok(true)
}

/// Lowers branches. Returns false if the name is of another instruction.
fn branch(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, name: &str) -> Result<bool, Diagnostic> {
    // The bits of the field that allow the jump.
    let (bits, set) = match name {
        "b" => (0, true),
        "beq" => (1, true),
        "bne" => (1, false),
        "blt" => (4, true),
        "bge" => (4, false),
        "bgt" => (2, true),
        "ble" => (2, false),
        _ => return Ok(false),
    };
    let when = if name == "b" {
        None
    } else {
        let field = field(a, cursor)?;
        let bit = RegisterExpr::binary(
            Binary::And,
            RegisterExpr::Register(field),
            RegisterExpr::Const(bits),
        );
        Some(RegisterExpr::binary(
            if set { Binary::Ne } else { Binary::Eq },
            bit,
            RegisterExpr::Const(0),
        ))
    };
    let label: Token<'_> = cursor.name("a label")?;
    a.jump(when, JumpTarget::Label(label.text.to_string(), label.span));
    Ok(true)
}

/// Lowers arithmetic and comparisons. Returns false if the name is of another instruction.
fn computation(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
    dot: bool,
) -> Result<bool, Diagnostic> {
    if let Some(rest) = name.strip_prefix("cmp") {
        let (bytes, signed, immediate) = match rest {
            "w" => (4, true, false),
            "wi" => (4, true, true),
            "d" => (8, true, false),
            "di" => (8, true, true),
            "lw" => (4, false, false),
            "lwi" => (4, false, true),
            "ld" => (8, false, false),
            "ldi" => (8, false, true),
            _ => return Ok(false),
        };
        let field = field(a, cursor)?;
        let left = source(a, cursor)?;
        cursor.expect(",")?;
        let right = if immediate {
            RegisterExpr::Const(cursor.number()? as u64)
        } else {
            source(a, cursor)?
        };
        let bits = comparison_field(
            left.extend_bytes(bytes, signed),
            right.extend_bytes(bytes, signed),
            signed,
        );
        a.push(Op::Let(field, bits));
        return Ok(true);
    }
    let (op, immediate) = match name {
        "li" | "lis" => (Binary::Add, true),
        "mr" => (Binary::Or, false),
        "addi" | "addis" => (Binary::Add, true),
        "ori" => (Binary::Or, true),
        "xori" => (Binary::Xor, true),
        "andi" => (Binary::And, true),
        "slwi" => (Binary::Shl, true),
        "srwi" => (Binary::Shr, true),
        "add" => (Binary::Add, false),
        "sub" | "subf" => (Binary::Sub, false),
        "mullw" => (Binary::Mul, false),
        "and" => (Binary::And, false),
        "or" => (Binary::Or, false),
        "xor" => (Binary::Xor, false),
        "slw" => (Binary::Shl, false),
        "srw" => (Binary::Shr, false),
        "neg" | "extsb" | "extsh" | "extsw" => (Binary::Sub, false),
        _ => return Ok(false),
    };
    let into = register(a, cursor)?;
    cursor.expect(",")?;
    let shifted = name.ends_with("is");
    let constant = |cursor: &mut Cursor<'_, '_>| {
        let n = cursor.number()?;
        // The number is shifted by 16 bits, and the result is extended from 32 bits.
        let n = if shifted { i64::from((n << 16) as i32) } else { n };
        Ok(RegisterExpr::Const(n as u64))
    };
    let value = match name {
        "li" | "lis" => constant(cursor)?,
        "mr" => source(a, cursor)?,
        "neg" => RegisterExpr::unary(Unary::Neg, source(a, cursor)?),
        "extsb" => RegisterExpr::unary(Unary::Sign(8), source(a, cursor)?),
        "extsh" => RegisterExpr::unary(Unary::Sign(16), source(a, cursor)?),
        "extsw" => RegisterExpr::unary(Unary::Sign(32), source(a, cursor)?),
        _ => {
            let left = if name.starts_with("addi") { base(a, cursor)? } else { source(a, cursor)? };
            cursor.expect(",")?;
            let right = if immediate { constant(cursor)? } else { source(a, cursor)? };
            match name {
                "subf" => RegisterExpr::binary(op, right, left),
                "mullw" => RegisterExpr::binary(
                    op,
                    left.extend_bytes(4, true),
                    right.extend_bytes(4, true),
                ),
                "slwi" | "slw" => RegisterExpr::binary(op, left, right).extend_bytes(4, false),
                "srwi" | "srw" => RegisterExpr::binary(op, left.extend_bytes(4, false), right),
                _ => RegisterExpr::binary(op, left, right),
            }
        }
    };
    let flags = comparison_field(value.clone(), RegisterExpr::Const(0), true);
    if dot {
        let field = a.register("CR0");
        a.push(Op::Let(field, flags));
    }
    a.push(Op::Let(into, value));
    Ok(true)
}
