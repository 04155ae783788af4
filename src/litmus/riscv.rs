//! RISC-V instructions of the base sets RV32I, RV64I and the extensions A, Zabha (atomic
//! instructions of bytes and half words) and Zacas (compare-and-swap of at most 8 bytes), with the
//! common pseudo-instructions.
//!
//! Input: the tokens of an instruction. Output: operations. Loads and stores may have `.aq` and
//! `.rl`, as in the litmus tests of the memory model. An `amo` is one event that reads and writes:
//! the manual gives it one place in the global memory order. `lr` and `sc` are two events related
//! by `lxsx`. A compare-and-swap that fails only reads, and does not release; a write of the old
//! value would add no outcome. Registers have 64 bits. Each
//! instruction has 4 bytes of code, also `call`. A fence orders memory accesses only: variables are
//! no devices, so a fence before or after device accesses alone (`fence w,o`) orders nothing.

use crate::asm::{Assembler, JumpTarget, symbolic, unknown_mnemonic};
use crate::code::{Arch, Binary, Flow, Op, Register, RegisterExpr, Unary};
use mu_base::words::{Cursor, Token};
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
    beq bne blt bltu bge bgeu bgt bgtu ble bleu with their forms *z, j jal jr jalr call ret auipc, negw sltz sgtz, fence fence.tso fence.i, nop";

/// Lowers an instruction.
pub fn instruction(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<(), Diagnostic> {
    let token = cursor.name("an instruction")?;
    let lower = token.text.to_ascii_lowercase();
    let parts: Vec<&str> = lower.split('.').collect();
    let wrong = || unknown_mnemonic(token.span, token.text, ARCH);
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
                let value = RegisterExpr::Loaded.extend_bytes(bytes, true);
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
            let tags = order(rest).ok_or_else(wrong)? | ARCH.tag("AMO");
            if *bytes == "q" {
                let message = "a compare-and-swap of 16 bytes is not supported, expected `amocas` of at most 8 bytes";
                return Err(Diagnostic::at(Stage::Unsupported, token.span, message));
            }
            let (bytes, _) = width(bytes).filter(|w| w.1).ok_or_else(wrong)?;
            let expected = register(a, cursor)?;
            cursor.expect(",")?;
            let value = source(a, cursor)?;
            cursor.expect(",")?;
            let address = address(a, cursor)?;
            let compared = expected.map_or(RegisterExpr::Const(0), RegisterExpr::Register);
            let when = RegisterExpr::binary(
                Binary::Eq,
                RegisterExpr::Loaded.extend_bytes(bytes, false),
                compared.extend_bytes(bytes, false),
            );
            a.push(Op::Update {
                into: expected.map(|r| (r, RegisterExpr::Loaded.extend_bytes(bytes, true))),
                address,
                width: bytes,
                value,
                when: Some(when),
                read: tags,
                write: tags,
                failed: without_release(tags),
                atomicity: a.atomicity(),
                flow: Flow::Plain,
                joined: false,
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
                    RegisterExpr::Loaded.extend_bytes(bytes, !unsigned),
                    operand.extend_bytes(bytes, !unsigned),
                ),
            };
            a.push(Op::Update {
                into: into.map(|r| (r, RegisterExpr::Loaded.extend_bytes(bytes, true))),
                address,
                width: bytes,
                value,
                when: None,
                read: tags,
                write: tags,
                failed: tags,
                atomicity: a.atomicity(),
                flow: Flow::Plain,
                joined: false,
            });
        }
        name if name.len() > 1 && name.starts_with('l') && width(&name[1..]).is_some() => {
            let (bytes, signed) = width(&name[1..]).ok_or_else(wrong)?;
            let tags = order(&parts[1..]).ok_or_else(wrong)?;
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let address = address(a, cursor)?;
            let value = RegisterExpr::Loaded.extend_bytes(bytes, signed);
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
        name if jump(a, cursor, name)? => {}
        name => return computation(a, cursor, name).unwrap_or_else(|| Err(wrong())),
    }
    Ok(())
}

/// Returns the tags of a compare-and-swap that fails: it acquires, but does not release.
fn without_release(tags: u64) -> u64 {
    let has = |name: &str| tags & ARCH.tag(name) != 0;
    let acquires = has("Acq") || has("AcqRel");
    let orders = ["Acq", "Rel", "AcqRel"].iter().fold(0, |all, name| all | ARCH.tag(name));
    tags & !orders | if acquires { ARCH.tag("Acq") } else { 0 }
}

/// Lowers a jump that always jumps, or `auipc`. Returns false if the name is of another
/// instruction.
fn jump(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, name: &str) -> Result<bool, Diagnostic> {
    let ra = |a: &mut Assembler| Some(a.register("x1"));
    match name {
        "j" | "call" => {
            let link = if name == "call" { ra(a) } else { None };
            direct(a, cursor, link)?;
        }
        "jal" => {
            // Without a register, it is `ra`.
            let link = if cursor.is("%") || cursor.ahead(1).text == "," {
                let link = register(a, cursor)?;
                cursor.expect(",")?;
                link
            } else {
                ra(a)
            };
            direct(a, cursor, link)?;
        }
        "ret" => {
            let to = ra(a).map_or(RegisterExpr::Const(0), RegisterExpr::Register);
            indirect(a, to, None);
        }
        "jr" => {
            let to = target(a, cursor)?;
            indirect(a, to, None);
        }
        "jalr" => {
            // `jalr RD, TARGET`, or `jalr TARGET` with `ra`.
            let two = cursor.ahead(if cursor.is("%") { 2 } else { 1 }).text == ",";
            let link = if two { register(a, cursor)? } else { ra(a) };
            if two {
                cursor.expect(",")?;
            }
            let to = target(a, cursor)?;
            indirect(a, to, link);
        }
        "auipc" => {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let upper = i64::from((cursor.number()? << 12) as i32) as u64;
            let here = a.next_address() - 4;
            assign(a, into, RegisterExpr::Const(here.wrapping_add(upper)));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Parses the target of an indirect jump: `offset(register)`, `register, offset`, or `register`.
fn target(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<RegisterExpr, Diagnostic> {
    if cursor.is("(") || cursor.is("-") || cursor.peek().kind == mu_base::words::TokenKind::Number {
        return address(a, cursor);
    }
    let base = source(a, cursor)?;
    let offset = if cursor.eat(",") { cursor.number()? } else { 0 };
    Ok(base.plus(offset as u64))
}

/// Lowers a jump to a label, which writes the address of the next instruction to a register.
fn direct(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    link: Option<Register>,
) -> Result<(), Diagnostic> {
    let label = cursor.name("a label")?;
    if let Some(link) = link {
        let next = a.next_address();
        a.push(Op::Let(link, RegisterExpr::Const(next)));
    }
    a.jump(None, JumpTarget::Label(label.text.to_string(), label.span));
    Ok(())
}

/// Lowers a jump to an address, the lowest bit of which is ignored.
fn indirect(a: &mut Assembler, to: RegisterExpr, link: Option<Register>) {
    let to = RegisterExpr::binary(Binary::And, to, RegisterExpr::Const(!1));
    let Some(link) = link else { return a.push(Op::Jump(to)) };
    // The target is read before the link register is written: they may be the same.
    let held = a.register(".target");
    a.push(Op::Let(held, to));
    let next = a.next_address();
    a.push(Op::Let(link, RegisterExpr::Const(next)));
    a.push(Op::Jump(RegisterExpr::Register(held)));
}

/// Returns the memory accesses of an operand of a fence, a set of `i`, `o`, `r`, `w`; `None` if it
/// is no such set.
fn operand(text: &str) -> Option<&'static str> {
    let lower = text.to_ascii_lowercase();
    let is_set = lower
        .chars()
        .enumerate()
        .all(|(i, c)| "iorw".contains(c) && !lower.chars().take(i).any(|earlier| earlier == c));
    let accesses = match (lower.contains('r'), lower.contains('w')) {
        (true, true) => "rw",
        (true, false) => "r",
        (false, true) => "w",
        (false, false) => "",
    };
    (is_set && !lower.is_empty()).then_some(accesses)
}

fn no_operand(token: Token<'_>) -> Diagnostic {
    let message = format!("`{}` is no operand of `fence`", token.text);
    Diagnostic::at(Stage::Type, token.span, message)
        .note("expected a set of i, o (device accesses) and r, w (memory accesses), as `rw`")
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
            let mut sets = Vec::new();
            while cursor.peek().kind == mu_base::words::TokenKind::Name {
                let token = cursor.take();
                match operand(token.text) {
                    Some(accesses) => sets.push(accesses),
                    None => return Some(Err(no_operand(token))),
                }
                if !cursor.eat(",") {
                    break;
                }
            }
            let tag = match sets.as_slice() {
                [] => ARCH.tag("Fence.rw.rw"),
                // Device accesses alone.
                ["", _] | [_, ""] => 0,
                [before, after] => ARCH.tag(&format!("Fence.{before}.{after}")),
                _ => return None,
            };
            a.push(Op::Fence(tag));
        }
        _ => return None,
    }
    Some(Ok(()))
}

/// Returns the comparison with zero of an abbreviation; `None` if it is none.
fn with_zero(name: &str) -> Option<fn(RegisterExpr, RegisterExpr) -> RegisterExpr> {
    Some(match name {
        "snez" => |of, zero| RegisterExpr::binary(Binary::Ne, of, zero),
        "sltz" => |of, zero| RegisterExpr::binary(Binary::Less, of, zero),
        "sgtz" => |of, zero| RegisterExpr::binary(Binary::Less, zero, of),
        _ => return None,
    })
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
        } else if let Some(holds) = with_zero(name) {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let of = source(a, cursor)?;
            assign(a, into, holds(of, RegisterExpr::Const(0)));
        } else if name == "negw" {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let of = source(a, cursor)?;
            assign(a, into, RegisterExpr::unary(Unary::Neg, of).extend_bytes(4, true));
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
        Binary::Shr => left.extend_bytes(4, false),
        Binary::Sar => left.extend_bytes(4, true),
        _ => left,
    };
    RegisterExpr::binary(op, left, right).extend_bytes(4, true)
}
