//! RISC-V instructions of the base sets RV32I, RV64I and the extensions A, Zabha (atomic
//! instructions of bytes and half words) and Zacas (compare-and-swap of at most 8 bytes), with the
//! common pseudo-instructions.
//!
//! Input: the tokens of an instruction. Output: operations. Loads and stores may have `.aq` and
//! `.rl`, as in the litmus tests of the memory model. An `amo` is a read and a write, related by
//! `amo`; `lr` and `sc` are related by `lxsx`. Registers have 64 bits.

use crate::asm::{Assembler, JumpTarget, symbolic, unknown};
use crate::code::{Arch, Atomicity, Binary, Flow, Op, Register, RegisterExpr, Unary};
use mu_base::words::Cursor;
use mu_base::{Diagnostic, Stage};

const ARCH: Arch = Arch::RiscV;

/// Returns the number of a register by its name, or by its name in the calling convention. `None`
/// if no register has it.
pub fn number(name: &str) -> Option<u8> {
    let of = |s: &str, least: u8, most: u8| {
        s.parse::<u8>().ok().filter(|n| (least..=most).contains(n) && s == n.to_string())
    };
    match name {
        "zero" => Some(0),
        "ra" => Some(1),
        "sp" => Some(2),
        "gp" => Some(3),
        "tp" => Some(4),
        "fp" => Some(8),
        _ => match name.split_at_checked(1)? {
            ("x", n) => of(n, 0, 31),
            ("t", n) => of(n, 0, 6).map(|n| if n < 3 { 5 + n } else { 25 + n }),
            ("a", n) => of(n, 0, 7).map(|n| 10 + n),
            ("s", n) => of(n, 0, 11).map(|n| if n < 2 { 8 + n } else { 16 + n }),
            _ => None,
        },
    }
}

fn register(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
) -> Result<Option<Register>, Diagnostic> {
    if let Some(r) = symbolic(a, cursor)? {
        return Ok(Some(r));
    }
    let name = cursor.name("a register")?;
    match number(name.text) {
        Some(0) => Ok(None),
        Some(n) => Ok(Some(a.register(&format!("x{n}")))),
        None => {
            Err(Diagnostic::at(Stage::Type, name.span, format!("`{}` is no register", name.text))
                .note("registers: x0 to x31, and their names a0, t0, …"))
        }
    }
}

fn source(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<RegisterExpr, Diagnostic> {
    Ok(register(a, cursor)?.map_or(RegisterExpr::Const(0), RegisterExpr::Register))
}

/// Parses `offset(register)` or `(register)`.
fn address(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<RegisterExpr, Diagnostic> {
    let offset = if cursor.is("(") { 0 } else { cursor.number()? };
    cursor.expect("(")?;
    let base = source(a, cursor)?;
    cursor.expect(")")?;
    Ok(if offset == 0 {
        base
    } else {
        RegisterExpr::binary(Binary::Add, base, RegisterExpr::Const(offset as u64))
    })
}

fn assign(a: &mut Assembler, into: Option<Register>, value: RegisterExpr) {
    if let Some(r) = into {
        a.push(Op::Let(r, value));
    } else {
        a.push(Op::Fence(0));
    }
}

/// Parses `.aq`, `.rl`, `.aq.rl`, `.aqrl` as tags.
fn order(parts: &[&str]) -> Option<u64> {
    Some(match parts {
        [] => 0,
        ["aq"] => ARCH.tag("Acq"),
        ["rl"] => ARCH.tag("Rel"),
        ["aq", "rl"] | ["aqrl"] | ["rl", "aq"] => ARCH.tag("AcqRel"),
        _ => return None,
    })
}

fn width(letter: &str) -> Option<(u8, bool)> {
    Some(match letter {
        "b" => (1, true),
        "h" => (2, true),
        "w" => (4, true),
        "d" => (8, true),
        "bu" => (1, false),
        "hu" => (2, false),
        "wu" => (4, false),
        _ => return None,
    })
}

fn arithmetic(name: &str) -> Option<Binary> {
    Some(match name {
        "add" => Binary::Add,
        "sub" => Binary::Sub,
        "mul" => Binary::Mul,
        "and" => Binary::And,
        "or" => Binary::Or,
        "xor" => Binary::Xor,
        "sll" => Binary::Shl,
        "srl" => Binary::Shr,
        "sra" => Binary::Sar,
        "slt" => Binary::Less,
        "sltu" => Binary::Below,
        _ => return None,
    })
}

fn comparison(name: &str) -> Option<(Binary, bool)> {
    Some(match name {
        "beq" => (Binary::Eq, false),
        "bne" => (Binary::Ne, false),
        "blt" => (Binary::Less, false),
        "bltu" => (Binary::Below, false),
        "bge" => (Binary::LessEqual, true),
        "bgeu" => (Binary::BelowEqual, true),
        "bgt" => (Binary::Less, true),
        "bgtu" => (Binary::Below, true),
        "ble" => (Binary::LessEqual, false),
        "bleu" => (Binary::BelowEqual, false),
        _ => return None,
    })
}

fn amo(name: &str) -> Option<Option<Binary>> {
    Some(Some(match name {
        "amoswap" => return Some(None),
        "amoadd" => Binary::Add,
        "amoand" => Binary::And,
        "amoor" => Binary::Or,
        "amoxor" => Binary::Xor,
        "amomin" => Binary::Min,
        "amomax" => Binary::Max,
        "amominu" => Binary::MinU,
        "amomaxu" => Binary::MaxU,
        _ => return None,
    }))
}

/// The supported instructions, for messages. A star is a placeholder for a suffix of size, form or
/// order.
pub const SUPPORTED: &str = "lb lbu lh lhu lw lwu ld sb sh sw sd (with .aq, .rl), lr.w lr.d sc.w sc.d, amoswap.* amoadd.* amoand.* amoor.* \
    amoxor.* amomin.* amomax.* amominu.* amomaxu.* amocas.*, li mv neg not seqz snez sext.* zext.* lui, add sub mul and or xor sll srl sra slt sltu with their forms *i and *w, \
    beq bne blt bltu bge bgeu bgt bgtu ble bleu with their forms *z, j, fence fence.tso fence.i, nop";

/// Lowers an instruction.
pub fn instruction(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<(), Diagnostic> {
    let token = cursor.name("an instruction")?;
    let lower = token.text.to_ascii_lowercase();
    let parts: Vec<&str> = lower.split('.').collect();
    let wrong = || unknown(token.span, token.text, ARCH);
    match parts[0] {
        "nop" if parts.len() == 1 => a.push(Op::Fence(0)),
        "fence" => return fence(a, cursor, &parts[1..]).unwrap_or_else(|| Err(wrong())),
        "lr" | "sc" => {
            let (bytes, rest) = parts[1..].split_first().ok_or_else(wrong)?;
            let (bytes, _) = width(bytes).filter(|w| w.0 >= 4).ok_or_else(wrong)?;
            let tags = order(rest).ok_or_else(wrong)? | ARCH.tag("EX");
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            if parts[0] == "lr" {
                let value = RegisterExpr::Loaded.extended(bytes, true);
                let address = address(a, cursor)?;
                a.push(Op::Load {
                    into,
                    value,
                    address,
                    width: bytes,
                    tags,
                    reserve: true,
                    joined: false,
                });
            } else {
                let value = source(a, cursor)?;
                cursor.expect(",")?;
                let address = address(a, cursor)?;
                a.push(Op::StoreConditional {
                    status: into,
                    address,
                    width: bytes,
                    value,
                    tags,
                    carries: true,
                    second: None,
                });
            }
        }
        "amocas" => {
            let (bytes, rest) = parts[1..].split_first().ok_or_else(wrong)?;
            let (bytes, _) = width(bytes).filter(|w| w.1).ok_or_else(wrong)?;
            let tags = order(rest).ok_or_else(wrong)? | ARCH.tag("AMO");
            let expected = register(a, cursor)?;
            cursor.expect(",")?;
            let value = source(a, cursor)?;
            cursor.expect(",")?;
            let address = address(a, cursor)?;
            let compared = expected.map_or(RegisterExpr::Const(0), RegisterExpr::Register);
            let when = RegisterExpr::binary(
                Binary::Eq,
                RegisterExpr::Loaded.extended(bytes, false),
                compared.extended(bytes, false),
            );
            a.push(Op::Update {
                into: expected.map(|r| (r, RegisterExpr::Loaded.extended(bytes, true))),
                address,
                width: bytes,
                value,
                when: Some(when),
                read: tags,
                write: tags,
                failed: tags,
                atomicity: Atomicity::Pair,
                flow: Flow::Plain,
            });
        }
        name if amo(name).is_some() => {
            let op = amo(name).ok_or_else(wrong)?;
            let (bytes, rest) = parts[1..].split_first().ok_or_else(wrong)?;
            let (bytes, _) = width(bytes).filter(|w| w.1).ok_or_else(wrong)?;
            let tags = order(rest).ok_or_else(wrong)? | ARCH.tag("AMO");
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let operand = source(a, cursor)?;
            cursor.expect(",")?;
            let address = address(a, cursor)?;
            let unsigned = matches!(op, Some(Binary::MinU | Binary::MaxU));
            let value = match op {
                None => operand,
                Some(op) => RegisterExpr::binary(
                    op,
                    RegisterExpr::Loaded.extended(bytes, !unsigned),
                    operand.extended(bytes, !unsigned),
                ),
            };
            a.push(Op::Update {
                into: into.map(|r| (r, RegisterExpr::Loaded.extended(bytes, true))),
                address,
                width: bytes,
                value,
                when: None,
                read: tags,
                write: tags,
                failed: tags,
                atomicity: Atomicity::Pair,
                flow: Flow::Plain,
            });
        }
        name if name.len() > 1 && name.starts_with('l') && width(&name[1..]).is_some() => {
            let (bytes, signed) = width(&name[1..]).ok_or_else(wrong)?;
            let tags = order(&parts[1..]).ok_or_else(wrong)?;
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let address = address(a, cursor)?;
            let value = RegisterExpr::Loaded.extended(bytes, signed);
            a.push(Op::Load {
                into,
                value,
                address,
                width: bytes,
                tags,
                reserve: false,
                joined: false,
            });
        }
        name if name.len() == 2 && name.starts_with('s') && width(&name[1..]).is_some() => {
            let (bytes, _) = width(&name[1..]).ok_or_else(wrong)?;
            let tags = order(&parts[1..]).ok_or_else(wrong)?;
            let value = source(a, cursor)?;
            cursor.expect(",")?;
            let address = address(a, cursor)?;
            a.push(Op::Store { address, width: bytes, value, tags, joined: false });
        }
        _ if parts.len() > 1 && !matches!(parts[0], "sext" | "zext") => return Err(wrong()),
        "sext" | "zext" => return computation(a, cursor, &lower).unwrap_or_else(|| Err(wrong())),
        name => return computation(a, cursor, name).unwrap_or_else(|| Err(wrong())),
    }
    Ok(())
}

/// Lowers a fence; `None` if it is not one.
fn fence(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    parts: &[&str],
) -> Option<Result<(), Diagnostic>> {
    match parts {
        ["tso"] => a.push(Op::Fence(ARCH.tag("Fence.tso"))),
        ["i"] => a.push(Op::Fence(ARCH.tag("Fence.i"))),
        [] => {
            let mut kinds = Vec::new();
            while cursor.peek().kind == mu_base::words::TokenKind::Name {
                let kind: String = cursor
                    .take()
                    .text
                    .to_ascii_lowercase()
                    .chars()
                    .filter(|c| !matches!(c, 'i' | 'o'))
                    .collect();
                kinds.push(kind);
                if !cursor.eat(",") {
                    break;
                }
            }
            let name = match kinds.as_slice() {
                [] => "Fence.rw.rw".to_string(),
                [before, after] => format!("Fence.{before}.{after}"),
                _ => return None,
            };
            let tag = ARCH.tag(&name);
            if tag == 0 {
                return None;
            }
            a.push(Op::Fence(tag));
        }
        _ => return None,
    }
    Some(Ok(()))
}

/// Lowers an instruction without memory access; `None` if it is not one.
fn computation(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
) -> Option<Result<(), Diagnostic>> {
    let unary = |name: &str| {
        Some(match name {
            "mv" => None,
            "neg" => Some(Unary::Neg),
            "not" => Some(Unary::Not),
            "seqz" => Some(Unary::IsZero),
            "sext.b" => Some(Unary::Sign(8)),
            "sext.h" => Some(Unary::Sign(16)),
            "sext.w" => Some(Unary::Sign(32)),
            "zext.b" => Some(Unary::Zero(8)),
            "zext.h" => Some(Unary::Zero(16)),
            "zext.w" => Some(Unary::Zero(32)),
            _ => return None,
        })
    };
    let of =
        |stem: Option<&str>, all: &[&str]| stem.filter(|s| all.contains(s)).and_then(arithmetic);
    let immediate =
        of(name.strip_suffix('i'), &["add", "and", "or", "xor", "sll", "srl", "sra", "slt"]);
    let immediate = immediate.or((name == "sltiu").then_some(Binary::Below));
    let word_immediate = of(name.strip_suffix("iw"), &["add", "sll", "srl", "sra"]);
    let word = of(name.strip_suffix('w'), &["add", "sub", "mul", "sll", "srl", "sra"]);
    let mut work = || -> Result<Option<()>, Diagnostic> {
        if let Some(op) = unary(name) {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let of = source(a, cursor)?;
            assign(a, into, op.map_or(of.clone(), |op| RegisterExpr::unary(op, of)));
        } else if name == "snez" {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let of = source(a, cursor)?;
            assign(a, into, RegisterExpr::binary(Binary::Ne, of, RegisterExpr::Const(0)));
        } else if name == "lui" {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let value = cursor.number()? << 12;
            assign(a, into, RegisterExpr::Const(i64::from(value as i32) as u64));
        } else if name == "li" {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let value = cursor.number()?;
            assign(a, into, RegisterExpr::Const(value as u64));
        } else if let Some(op) = arithmetic(name).or(word) {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let left = source(a, cursor)?;
            cursor.expect(",")?;
            let right = source(a, cursor)?;
            assign(a, into, binary(op, left, right, arithmetic(name).is_none()));
        } else if let Some(op) = immediate.or(word_immediate) {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let left = source(a, cursor)?;
            cursor.expect(",")?;
            let right = RegisterExpr::Const(cursor.number()? as u64);
            assign(a, into, binary(op, left, right, immediate.is_none()));
        } else if let Some((op, swapped)) = comparison(name) {
            let left = source(a, cursor)?;
            cursor.expect(",")?;
            let right = source(a, cursor)?;
            cursor.expect(",")?;
            let label = cursor.name("a label")?;
            let when = if swapped {
                RegisterExpr::binary(op, right, left)
            } else {
                RegisterExpr::binary(op, left, right)
            };
            a.jump(Some(when), JumpTarget::Label(label.text.to_string(), label.span));
        } else if let Some((op, swapped)) = name.strip_suffix('z').and_then(comparison) {
            let left = source(a, cursor)?;
            cursor.expect(",")?;
            let label = cursor.name("a label")?;
            let zero = RegisterExpr::Const(0);
            let when = if swapped {
                RegisterExpr::binary(op, zero, left)
            } else {
                RegisterExpr::binary(op, left, zero)
            };
            a.jump(Some(when), JumpTarget::Label(label.text.to_string(), label.span));
        } else if name == "j" {
            let label = cursor.name("a label")?;
            a.jump(None, JumpTarget::Label(label.text.to_string(), label.span));
        } else {
            return Ok(None);
        }
        Ok(Some(()))
    };
    match work() {
        Ok(None) => None,
        Ok(Some(())) => Some(Ok(())),
        Err(d) => Some(Err(d)),
    }
}

fn binary(op: Binary, left: RegisterExpr, right: RegisterExpr, word: bool) -> RegisterExpr {
    let shift = matches!(op, Binary::Shl | Binary::Shr | Binary::Sar);
    if !word {
        let right = if shift {
            RegisterExpr::binary(Binary::And, right, RegisterExpr::Const(63))
        } else {
            right
        };
        return RegisterExpr::binary(op, left, right);
    }
    let right = if shift {
        RegisterExpr::binary(Binary::And, right, RegisterExpr::Const(31))
    } else {
        right
    };
    let left = match op {
        Binary::Shr => left.extended(4, false),
        Binary::Sar => left.extended(4, true),
        _ => left,
    };
    RegisterExpr::binary(op, left, right).extended(4, true)
}
