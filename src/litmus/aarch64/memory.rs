//! Loads and stores, pairs, exclusives.
//!
//! Input: the tokens of an instruction after its name. Output: operations. An address that changes
//! its register (`[X1,#8]!`, `[X1],#8`) writes it after the access. The accesses of a pair are
//! unordered, except those of `LDIAPP` and `STILP`.

use super::{
    ARCH, Operand, extension, flexible, immediate, is_register, register, registers, tags,
};
use crate::asm::Assembler;
use crate::code::{Binary, Op, Register, RegisterExpr};
use mu_base::words::{Cursor, Token};
use mu_base::{Diagnostic, Stage};

/// The address of an access.
pub(super) struct Address {
    /// Its value.
    pub value: RegisterExpr,
    /// The register that the instruction changes, with its new value.
    pub change: Option<(Register, RegisterExpr)>,
}

impl Address {
    /// Records the change of the register, after the accesses.
    pub fn finish(self, a: &mut Assembler) {
        if let Some((r, value)) = self.change {
            a.push(Op::Let(r, value));
        }
    }
}

/// Parses `[X1]`, `[X1,#4]`, `[X1,X2,LSL #3]`, `[X1,W2,SXTW #2]`, `[X1,#4]!`, `[X1],#4`.
pub(super) fn address(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
) -> Result<Address, Diagnostic> {
    cursor.expect("[")?;
    let token = cursor.peek();
    let operand = register(a, cursor)?;
    let Some(base) = operand.register.filter(|_| operand.width == 8) else {
        return Err(Diagnostic::at(
            Stage::Type,
            token.span,
            format!("`{}` as an address: expected a register X0 to X30", token.text),
        ));
    };
    let mut value = RegisterExpr::Register(base);
    let mut constant = true;
    if cursor.eat(",") {
        if is_register(cursor) {
            constant = false;
            value = RegisterExpr::binary(Binary::Add, value, index(a, cursor)?);
        } else {
            value = RegisterExpr::binary(Binary::Add, value, flexible(a, cursor, 64)?);
        }
    }
    cursor.expect("]")?;
    let pre = cursor.is("!");
    let post = cursor.is(",") && constant;
    if !(pre || post) {
        return Ok(Address { value, change: None });
    }
    let at = cursor.take();
    if !constant {
        return Err(Diagnostic::at(
            Stage::Unsupported,
            at.span,
            "an address with two registers does not change its register",
        ));
    }
    let held = a.register(".address");
    if pre {
        a.push(Op::Let(held, value));
        return Ok(Address {
            value: RegisterExpr::Register(held),
            change: Some((base, RegisterExpr::Register(held))),
        });
    }
    let offset = immediate(cursor)?;
    a.push(Op::Let(held, value));
    let changed = RegisterExpr::Register(held).plus(offset);
    Ok(Address {
        value: RegisterExpr::Register(held),
        change: (offset != 0).then_some((base, changed)),
    })
}

/// Parses the index register of an address.
fn index(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<RegisterExpr, Diagnostic> {
    let operand = register(a, cursor)?;
    if !cursor.eat(",") {
        return Ok(operand.value());
    }
    let word = cursor.name("LSL, or an extension")?;
    let name = word.text.to_ascii_uppercase();
    let value = match name.as_str() {
        "LSL" => operand.value(),
        _ => match extension(&name).filter(|_| name.ends_with('W') || name.ends_with('X')) {
            Some(op) => RegisterExpr::unary(op, operand.value()),
            None => {
                return Err(Diagnostic::at(
                    Stage::Unsupported,
                    word.span,
                    format!("the operand `{}` is not supported", word.text),
                )
                .note("supported: LSL, UXTW, SXTW, UXTX, SXTX"));
            }
        },
    };
    if !cursor.is("#") && !cursor.is_number() {
        return Ok(value);
    }
    let by = super::amount(cursor, 64)?;
    Ok(RegisterExpr::binary(Binary::Shl, value, RegisterExpr::Const(u64::from(by))))
}

/// Lowers loads, stores, pairs, exclusives. Returns false if the name is of another instruction.
pub(super) fn lower(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
    token: Token<'_>,
) -> Result<bool, Diagnostic> {
    if pair(a, cursor, name, token)? {
        return Ok(true);
    }
    // The mnemonic without its width suffix, the width, and the sign.
    let (stem, narrow, signed) = match name {
        _ if name.ends_with("SB") => (&name[..name.len() - 2], Some(1), true),
        _ if name.ends_with("SH") => (&name[..name.len() - 2], Some(2), true),
        _ if name.ends_with("SW") => (&name[..name.len() - 2], Some(4), true),
        _ if name.ends_with('B') => (&name[..name.len() - 1], Some(1), false),
        _ if name.ends_with('H') => (&name[..name.len() - 1], Some(2), false),
        _ => (name, None, false),
    };
    match stem {
        "LDR" | "LDUR" | "LDAR" | "LDAPR" | "LDAPUR" | "LDXR" | "LDAXR"
            if !signed || matches!(stem, "LDR" | "LDUR" | "LDAPUR") =>
        {
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
            a.push(Op::Load {
                into: into.register,
                value: loaded_value(into, width, signed),
                address: address.value.clone(),
                width,
                tags: order | if exclusive { ARCH.tag("EX") } else { 0 },
                reserve: exclusive,
                joined: false,
            });
            address.finish(a);
        }
        "STR" | "STUR" | "STLR" | "STLUR" if !signed => {
            let from = register(a, cursor)?;
            cursor.expect(",")?;
            let address = address(a, cursor)?;
            let order = if stem.starts_with("STL") { tags(&["L"]) } else { 0 };
            let width = narrow.unwrap_or(from.width);
            a.push(Op::Store {
                address: address.value.clone(),
                width,
                value: from.value(),
                tags: order,
                joined: false,
            });
            address.finish(a);
        }
        "STXR" | "STLXR" if !signed => {
            let [status, from] = registers(a, cursor)?;
            let address = address(a, cursor)?;
            let order = if stem == "STLXR" { tags(&["L"]) } else { 0 };
            a.push(Op::StoreConditional {
                status: status.register,
                address: address.value,
                width: narrow.unwrap_or(from.width),
                value: from.value(),
                tags: order | ARCH.tag("EX"),
                carries: false,
                second: None,
            });
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Returns the value of a register that is loaded from this many bytes.
fn loaded_value(into: Operand, width: u8, signed: bool) -> RegisterExpr {
    let value = RegisterExpr::Loaded.extend_bytes(width, signed);
    if signed { value.extend_bytes(into.width, false) } else { value }
}

/// Lowers pairs. Returns false if the name is of another instruction.
fn pair(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
    token: Token<'_>,
) -> Result<bool, Diagnostic> {
    let non_temporal = tags(&["NT"]);
    let (load, order, ordered) = match name {
        "LDP" | "LDPSW" => (true, 0, false),
        "LDNP" => (true, non_temporal, false),
        "LDIAPP" => (true, tags(&["Q"]), true),
        "LDAP" => (true, tags(&["A"]), false),
        "STP" => (false, 0, false),
        "STNP" => (false, non_temporal, false),
        "STILP" => (false, tags(&["L"]), true),
        "STLP" => (false, tags(&["L"]), false),
        "LDXP" | "LDAXP" | "STXP" | "STLXP" => return exclusive_pair(a, cursor, name, token),
        _ => return Ok(false),
    };
    let signed = name == "LDPSW";
    let [first, second] = registers(a, cursor)?;
    same_width(first, second, token)?;
    let address = address(a, cursor)?;
    let width = if signed { 4 } else { first.width };
    let next = address.value.clone().plus(u64::from(width));
    // The base may be a loaded register, so it is read first.
    let [here, there] = [".address.first", ".address.second"].map(|name| a.register(name));
    a.push(Op::Let(here, address.value.clone()));
    a.push(Op::Let(there, next));
    let mut accesses = [(first, here), (second, there)];
    // `STILP` writes its second register first if it changes the base.
    if ordered && !load && address.change.is_some() {
        accesses.reverse();
    }
    for (i, (operand, address)) in accesses.into_iter().enumerate() {
        let joined = i > 0;
        if joined && ordered {
            a.push(Op::Ordered);
        }
        let address = RegisterExpr::Register(address);
        a.push(if load {
            let value = loaded_value(operand, width, signed);
            let (into, reserve) = (operand.register, false);
            Op::Load { into, value, address, width, tags: order, reserve, joined }
        } else {
            Op::Store { address, width, value: operand.value(), tags: order, joined }
        });
    }
    address.finish(a);
    Ok(true)
}

fn same_width(first: Operand, second: Operand, token: Token<'_>) -> Result<(), Diagnostic> {
    if first.width == second.width {
        return Ok(());
    }
    Err(Diagnostic::at(Stage::Type, token.span, "the registers of a pair have one width"))
}

/// Lowers pairs of exclusives.
fn exclusive_pair(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
    token: Token<'_>,
) -> Result<bool, Diagnostic> {
    let exclusive = ARCH.tag("EX");
    if let "STXP" | "STLXP" = name {
        let [status, first, second] = registers(a, cursor)?;
        same_width(first, second, token)?;
        let address = address(a, cursor)?;
        a.push(Op::StoreConditional {
            status: status.register,
            address: address.value,
            width: first.width,
            value: first.value(),
            tags: exclusive | if name == "STLXP" { tags(&["L"]) } else { 0 },
            carries: false,
            second: Some(second.value()),
        });
        return Ok(true);
    }
    let [first, second] = registers(a, cursor)?;
    same_width(first, second, token)?;
    let address = address(a, cursor)?;
    let width = first.width;
    let held = a.register(".address.first");
    a.push(Op::Let(held, address.value));
    let order = exclusive | if name == "LDAXP" { tags(&["A"]) } else { 0 };
    for (i, operand) in [first, second].into_iter().enumerate() {
        a.push(Op::Load {
            into: operand.register,
            value: loaded_value(operand, width, false),
            address: RegisterExpr::Register(held).plus(i as u64 * u64::from(width)),
            width,
            tags: order,
            reserve: true,
            joined: i > 0,
        });
    }
    Ok(true)
}
