//! AArch64 instructions: loads and stores of all widths and orders, exclusives, atomics of Armv8.1,
//! barriers, branches, integer arithmetic.
//!
//! Input: the tokens of an instruction. Output: operations. `Wn` is the lower half of `Xn`; a write
//! to it clears the upper half. An atomic instruction is a read and a write, related by `amo`;
//! exclusives are related by `lxsx`. A pair (`LDP`, `STP`) is two unordered accesses.

use crate::asm::{Assembler, unknown};
use crate::code::{Arch, Atomicity, Binary, Expr, Flow, Op, Register, Unary};
use mu_base::words::{Cursor, Token};
use mu_base::{Diagnostic, Stage};

const ARCH: Arch = Arch::AArch64;

/// Parses a register name. Returns the name of the full register, which `XZR` lacks, and the number
/// of bytes.
pub fn parse_register(name: &str) -> Option<(Option<String>, u8)> {
    let upper = name.to_ascii_uppercase();
    let (letter, rest) = upper.split_at_checked(1)?;
    let width = match letter {
        "X" => 8,
        "W" => 4,
        _ => return None,
    };
    if rest == "ZR" {
        return Some((None, width));
    }
    let n = rest.parse::<u8>().ok().filter(|n| *n <= 30 && *rest == n.to_string())?;
    Some((Some(format!("X{n}")), width))
}

/// A register operand.
#[derive(Clone, Copy)]
struct Operand {
    register: Option<Register>,
    width: u8,
}

impl Operand {
    fn value(self) -> Expr {
        self.register.map_or(Expr::Const(0), Expr::Register).extended(self.width, false)
    }
}

fn register(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<Operand, Diagnostic> {
    let name = cursor.name("a register")?;
    let Some((full, width)) = parse_register(name.text) else {
        return Err(Diagnostic::at(
            Stage::Type,
            name.span,
            format!("`{}` is no register", name.text),
        )
        .note("registers: X0 to X30, W0 to W30, XZR, WZR"));
    };
    Ok(Operand { register: full.map(|f| a.register(&f)), width })
}

fn is_register(cursor: &Cursor<'_, '_>) -> bool {
    parse_register(cursor.peek().text).is_some()
}

fn immediate(cursor: &mut Cursor<'_, '_>) -> Result<u64, Diagnostic> {
    cursor.eat("#");
    Ok(cursor.number()? as u64)
}

/// Parses a register with `SXTW`, `UXTW`, `LSL #n`, or an immediate.
fn flexible(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<Expr, Diagnostic> {
    if !is_register(cursor) {
        return Ok(Expr::Const(immediate(cursor)?));
    }
    let mut value = register(a, cursor)?.value();
    if cursor.is(",") {
        let word = cursor.ahead(1);
        let extension = match word.text.to_ascii_uppercase().as_str() {
            "SXTW" => Some(Unary::Sign(32)),
            "UXTW" => Some(Unary::Zero(32)),
            "SXTX" | "UXTX" | "LSL" => None,
            _ => {
                return Err(Diagnostic::at(
                    Stage::Unsupported,
                    word.span,
                    format!("the operand `{}` is not supported", word.text),
                )
                .note("supported: SXTW, UXTW, SXTX, UXTX, LSL"));
            }
        };
        cursor.take();
        cursor.take();
        if let Some(op) = extension {
            value = Expr::unary(op, value);
        }
        if cursor.is("#") || cursor.is_number() {
            let shift = immediate(cursor)?;
            value = Expr::binary(Binary::Shl, value, Expr::Const(shift & 63));
        }
    }
    Ok(value)
}

/// Parses `[X1]`, `[X1,#4]`, `[X1,W2,SXTW]`.
fn address(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<Expr, Diagnostic> {
    cursor.expect("[")?;
    let base = cursor.peek();
    let operand = register(a, cursor)?;
    if operand.width != 8 || operand.register.is_none() {
        return Err(Diagnostic::at(
            Stage::Type,
            base.span,
            format!("`{}` as an address: expected a register X0 to X30", base.text),
        ));
    }
    let mut value = operand.value();
    if cursor.eat(",") {
        let offset = flexible(a, cursor)?;
        value = Expr::binary(Binary::Add, value, offset);
    }
    cursor.expect("]")?;
    if cursor.is("!") || cursor.is(",") {
        return Err(Diagnostic::at(
            Stage::Unsupported,
            cursor.peek().span,
            "an address that changes its register is not supported",
        )
        .note("supported: `[X1]`, `[X1,#8]`, `[X1,X2]`, `[X1,W2,SXTW]`"));
    }
    Ok(value)
}

fn assign(a: &mut Assembler, into: Operand, value: Expr) {
    match into.register {
        Some(r) => a.push(Op::Let(r, value.extended(into.width, false))),
        None => a.push(Op::Fence(0)),
    }
}

fn tags(names: &[&str]) -> u64 {
    names.iter().fold(0, |t, n| t | ARCH.tag(n))
}

/// The supported instructions, for messages. A star is a placeholder for a size letter or the name
/// of an operation.
pub const SUPPORTED: &str = "LDR* LDUR* LDAR* LDAPR* LDAPUR* LDXR* LDAXR* STR* STUR* STLR* STLUR* STXR* STLXR* (B, H), LDP STP, \
    CAS* SWP* LDADD* LDSET* LDCLR* LDEOR* LDSMAX* LDSMIN* LDUMAX* LDUMIN* STADD* and its like (A, L, AL, B, H), \
    MOV MVN ADD SUB SUBS MUL AND ANDS ORR EOR LSL LSR CMP, B B.* CBZ CBNZ, DMB DSB ISB NOP";

/// Lowers an instruction.
pub fn instruction(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<(), Diagnostic> {
    let token = cursor.name("an instruction")?;
    let name = token.text.to_ascii_uppercase();
    if memory(a, cursor, &name, token)?
        || atomic(a, cursor, &name)?
        || control(a, cursor, &name, token)?
        || computation(a, cursor, &name)?
    {
        return Ok(());
    }
    Err(unknown(token.span, token.text, ARCH))
}

/// Lowers loads, stores, pairs, exclusives.
fn memory(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
    token: Token<'_>,
) -> Result<bool, Diagnostic> {
    // The mnemonic without its width suffix.
    let (stem, narrow) = match name {
        _ if name.ends_with('B') => (&name[..name.len() - 1], Some(1)),
        _ if name.ends_with('H') => (&name[..name.len() - 1], Some(2)),
        _ => (name, None),
    };
    match stem {
        "LDR" | "LDUR" | "LDAR" | "LDAPR" | "LDAPUR" | "LDXR" | "LDAXR" => {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let address = address(a, cursor)?;
            let width = narrow.unwrap_or(into.width);
            let order = match stem {
                "LDAR" | "LDAXR" => tags(&["A"]),
                "LDAPR" | "LDAPUR" => tags(&["Q"]),
                _ => 0,
            };
            let exclusive = stem.contains('X');
            let tags = order | if exclusive { ARCH.tag("EX") } else { 0 };
            let value = Expr::Loaded.extended(width, false);
            a.push(Op::Load {
                into: into.register,
                value,
                address,
                width,
                tags,
                reserve: exclusive,
                joined: false,
            });
        }
        "STR" | "STUR" | "STLR" | "STLUR" => {
            let from = register(a, cursor)?;
            cursor.expect(",")?;
            let address = address(a, cursor)?;
            let order = if stem.starts_with("STL") { tags(&["L"]) } else { 0 };
            let width = narrow.unwrap_or(from.width);
            a.push(Op::Store { address, width, value: from.value(), tags: order, joined: false });
        }
        "STXR" | "STLXR" => {
            let status = register(a, cursor)?;
            cursor.expect(",")?;
            let from = register(a, cursor)?;
            cursor.expect(",")?;
            let address = address(a, cursor)?;
            let order = if stem == "STLXR" { tags(&["L"]) } else { 0 };
            let width = narrow.unwrap_or(from.width);
            let tags = order | ARCH.tag("EX");
            a.push(Op::StoreConditional {
                status: status.register,
                address,
                width,
                value: from.value(),
                tags,
                carries: false,
            });
        }
        "LDP" | "STP" if narrow.is_none() => {
            let first = register(a, cursor)?;
            cursor.expect(",")?;
            let second = register(a, cursor)?;
            if first.width != second.width {
                return Err(Diagnostic::at(
                    Stage::Type,
                    token.span,
                    "the registers of a pair have one width",
                ));
            }
            cursor.expect(",")?;
            let base = address(a, cursor)?;
            let width = first.width;
            let next = Expr::binary(Binary::Add, base.clone(), Expr::Const(u64::from(width)));
            // The base may be a loaded register, so it is read first.
            let held = a.register("pair.address");
            a.push(Op::Let(held, next));
            for (operand, address, joined) in
                [(first, base, false), (second, Expr::Register(held), true)]
            {
                a.push(if stem == "LDP" {
                    let value = Expr::Loaded.extended(width, false);
                    Op::Load {
                        into: operand.register,
                        value,
                        address,
                        width,
                        tags: 0,
                        reserve: false,
                        joined,
                    }
                } else {
                    Op::Store { address, width, value: operand.value(), tags: 0, joined }
                });
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Lowers atomic instructions: `SWP`, `LDADD` and related, `STADD` and related, `CAS`, with `A`,
/// `L`, `AL`, and `B`, `H`.
fn atomic(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, name: &str) -> Result<bool, Diagnostic> {
    const OPERATORS: [(&str, Option<Binary>); 8] = [
        ("ADD", Some(Binary::Add)),
        ("SET", Some(Binary::Or)),
        ("CLR", None),
        ("EOR", Some(Binary::Xor)),
        ("SMAX", Some(Binary::Max)),
        ("SMIN", Some(Binary::Min)),
        ("UMAX", Some(Binary::MaxU)),
        ("UMIN", Some(Binary::MinU)),
    ];
    let split = |rest: &str| {
        let (rest, narrow) = match rest {
            _ if rest.ends_with('B') => (&rest[..rest.len() - 1], Some(1)),
            _ if rest.ends_with('H') => (&rest[..rest.len() - 1], Some(2)),
            _ => (rest, None),
        };
        match rest {
            "" => Some((0, 0, narrow)),
            "A" => Some((tags(&["A"]), 0, narrow)),
            "L" => Some((0, tags(&["L"]), narrow)),
            "AL" => Some((tags(&["A"]), tags(&["L"]), narrow)),
            _ => None,
        }
    };
    let atomic = tags(&["AMO"]);
    if let Some((read, write, narrow)) = name.strip_prefix("CAS").and_then(split) {
        let expected = register(a, cursor)?;
        cursor.expect(",")?;
        let new = register(a, cursor)?;
        cursor.expect(",")?;
        let address = address(a, cursor)?;
        let width = narrow.unwrap_or(new.width);
        let when = Expr::binary(
            Binary::Eq,
            Expr::Loaded.extended(width, false),
            expected.value().extended(width, false),
        );
        let silent = expected.register.is_none();
        let read = if silent { tags(&["NoRet"]) } else { read };
        a.push(Op::Update {
            into: expected.register.map(|r| (r, Expr::Loaded.extended(width, false))),
            address,
            width,
            value: new.value(),
            when: Some(when),
            read: atomic | read,
            write: atomic | write,
            failed: if silent { atomic | read } else { read },
            atomicity: Atomicity::Pair,
            flow: Flow::Pick,
        });
        return Ok(true);
    }
    let found = if let Some(rest) = name.strip_prefix("SWP") {
        split(rest).map(|s| (None, false, true, s))
    } else {
        let store = name.starts_with("ST");
        let rest = name.strip_prefix("LD").or(name.strip_prefix("ST"));
        rest.and_then(|rest| {
            OPERATORS
                .iter()
                .find_map(|(n, op)| Some((*op, store, false, split(rest.strip_prefix(n)?)?)))
        })
    };
    let Some((op, store, swap, (read, write, narrow))) = found else { return Ok(false) };
    let operand = register(a, cursor)?;
    cursor.expect(",")?;
    let into = if store {
        None
    } else {
        let into = register(a, cursor)?;
        cursor.expect(",")?;
        into.register
    };
    let address = address(a, cursor)?;
    let width = narrow.unwrap_or(operand.width);
    let signed = matches!(op, Some(Binary::Min | Binary::Max));
    let (old, given) =
        (Expr::Loaded.extended(width, signed), operand.value().extended(width, signed));
    let value = match op {
        _ if swap => operand.value(),
        Some(op) => Expr::binary(op, old, given),
        None => Expr::binary(Binary::And, old, Expr::unary(Unary::Not, given)),
    };
    // Without a result register, the read is one without return, and its acquire has no effect.
    let silent = into.is_none();
    let read = if silent { tags(&["NoRet"]) } else { read };
    a.push(Op::Update {
        into: into.map(|r| (r, Expr::Loaded.extended(width, false))),
        address,
        width,
        value,
        when: None,
        read: atomic | read,
        write: atomic | write,
        failed: atomic | read,
        atomicity: Atomicity::Pair,
        flow: Flow::Plain,
    });
    Ok(true)
}

/// Returns the condition of a branch, from the values of the last comparison.
fn condition(a: &mut Assembler, name: &str) -> Option<Expr> {
    let (left, right) = a.flags();
    let (left, right) = (Expr::Register(left), Expr::Register(right));
    // Both values are sign-extended, which preserves unsigned orders as well.
    Some(match name {
        "EQ" => Expr::binary(Binary::Eq, left, right),
        "NE" => Expr::binary(Binary::Ne, left, right),
        "LT" => Expr::binary(Binary::Less, left, right),
        "LE" => Expr::binary(Binary::LessEqual, left, right),
        "GT" => Expr::binary(Binary::Less, right, left),
        "GE" => Expr::binary(Binary::LessEqual, right, left),
        "LO" | "CC" => Expr::binary(Binary::Below, left, right),
        "LS" => Expr::binary(Binary::BelowEqual, left, right),
        "HI" => Expr::binary(Binary::Below, right, left),
        "HS" | "CS" => Expr::binary(Binary::BelowEqual, right, left),
        _ => return None,
    })
}

/// Lowers branches, comparisons and barriers.
fn control(
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
        "DMB" | "DSB" => {
            let kind = if cursor.is("|") || cursor.is(";") {
                "SY".to_string()
            } else {
                cursor.name("the kind of a barrier")?.text.to_ascii_uppercase()
            };
            let tag = ARCH.tag(&format!("{name}.{kind}"));
            if tag == 0 {
                return Err(Diagnostic::at(
                    Stage::Unsupported,
                    cursor.before().span,
                    format!("the barrier `{name} {kind}` is not supported"),
                )
                .note("supported: SY, LD, ST, and these after ISH, OSH and NSH"));
            }
            a.push(Op::Fence(tag));
        }
        "B" => {
            let label = cursor.name("a label")?;
            a.jump(None, label.text.to_string(), label.span);
        }
        "CBZ" | "CBNZ" => {
            let of = register(a, cursor)?;
            cursor.expect(",")?;
            let label = cursor.name("a label")?;
            let op = if name == "CBZ" { Binary::Eq } else { Binary::Ne };
            a.jump(
                Some(Expr::binary(op, of.value(), Expr::Const(0))),
                label.text.to_string(),
                label.span,
            );
        }
        "CMP" => {
            let left = register(a, cursor)?;
            cursor.expect(",")?;
            let right = flexible(a, cursor)?;
            compare(
                a,
                left.value().extended(left.width, true),
                right.extended(left.width, true),
                true,
            );
        }
        _ => {
            let Some(kind) = name.strip_prefix("B.") else { return Ok(false) };
            let Some(when) = condition(a, kind) else {
                return Err(Diagnostic::at(
                    Stage::Unsupported,
                    token.span,
                    format!("the condition `{kind}` is not supported"),
                )
                .note("supported: EQ NE LT LE GT GE LO LS HI HS CC CS"));
            };
            if matches!(kind, "LO" | "CC" | "LS" | "HI" | "HS" | "CS") && !a.ordered {
                let error = Diagnostic::at(
                    Stage::Unsupported,
                    token.span,
                    format!("`{}` stands without a comparison before it", token.text),
                );
                return Err(error.note("the carry flag is known after `CMP` and `SUBS`"));
            }
            let label = cursor.name("a label")?;
            a.jump(Some(when), label.text.to_string(), label.span);
        }
    }
    Ok(true)
}

fn compare(a: &mut Assembler, left: Expr, right: Expr, carry: bool) {
    let (l, r) = a.flags();
    a.ordered = carry;
    a.push(Op::Let(l, left));
    a.push(Op::Let(r, right));
}

/// Lowers arithmetic.
fn computation(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
) -> Result<bool, Diagnostic> {
    let op = match name {
        "ADD" => Binary::Add,
        "SUB" | "SUBS" => Binary::Sub,
        "MUL" => Binary::Mul,
        "AND" | "ANDS" => Binary::And,
        "ORR" => Binary::Or,
        "EOR" => Binary::Xor,
        "LSL" => Binary::Shl,
        "LSR" => Binary::Shr,
        "MOV" | "MVN" => {
            let into = register(a, cursor)?;
            cursor.expect(",")?;
            let value = flexible(a, cursor)?;
            assign(a, into, if name == "MVN" { Expr::unary(Unary::Not, value) } else { value });
            return Ok(true);
        }
        _ => return Ok(false),
    };
    let into = register(a, cursor)?;
    cursor.expect(",")?;
    let left = register(a, cursor)?.value();
    cursor.expect(",")?;
    let mut right = flexible(a, cursor)?;
    if matches!(op, Binary::Shl | Binary::Shr) {
        right = Expr::binary(Binary::And, right, Expr::Const(u64::from(into.width) * 8 - 1));
    }
    match name {
        "SUBS" => compare(
            a,
            left.clone().extended(into.width, true),
            right.clone().extended(into.width, true),
            true,
        ),
        "ANDS" => {
            let both =
                Expr::binary(Binary::And, left.clone(), right.clone()).extended(into.width, true);
            compare(a, both, Expr::Const(0), false);
        }
        _ => {}
    }
    assign(a, into, Expr::binary(op, left, right));
    Ok(true)
}
