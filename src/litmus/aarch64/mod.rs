//! AArch64 instructions of user programs: loads and stores of all widths and orders, pairs,
//! exclusives, atomics of Armv8.1, barriers, branches, integer arithmetic.
//!
//! Input: the tokens of an instruction. Output: operations. `Wn` is the lower half of `Xn`; a write
//! to it clears the upper half. An atomic instruction is a read and a write, related by `amo`;
//! exclusives are related by `lxsx`. A pair (`LDP`, `STP`) is two unordered accesses. The flags N,
//! Z, C, V are one register. Instructions of the system, of vectors, and of extensions without a
//! definition here are rejected by the name of their feature.

mod arithmetic;
mod atomic;
mod control;
mod memory;

use crate::asm::{Assembler, symbolic, unknown_mnemonic};
use crate::code::{Arch, Binary, Op, Register, RegisterExpr, Unary};
use mu_base::words::{Cursor, Token};
use mu_base::{Diagnostic, Stage};

const ARCH: Arch = Arch::AArch64;

/// Parses a register name. Returns the name of the full register, which `XZR` lacks, and the number
/// of bytes. `None` if it is not the name of a register.
pub fn parse_register(name: &str) -> Option<(Option<String>, u8)> {
    let upper = name.to_ascii_uppercase();
    match upper.as_str() {
        "SP" => return Some((Some("SP".to_string()), 8)),
        "WSP" => return Some((Some("SP".to_string()), 4)),
        "LR" => return Some((Some("X30".to_string()), 8)),
        _ => {}
    }
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
    fn value(self) -> RegisterExpr {
        self.register
            .map_or(RegisterExpr::Const(0), RegisterExpr::Register)
            .extend_bytes(self.width, false)
    }
    fn bits(self) -> u8 {
        self.width * 8
    }
}

fn register(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<Operand, Diagnostic> {
    if let Some(r) = symbolic(a, cursor)? {
        return Ok(Operand { register: Some(r), width: 8 });
    }
    let name = cursor.name("a register")?;
    // `X%a` and `W%a`.
    let width = match name.text {
        "X" => 8,
        "W" => 4,
        _ => 0,
    };
    if width > 0
        && let Some(r) = symbolic(a, cursor)?
    {
        return Ok(Operand { register: Some(r), width });
    }
    let Some((full, width)) = parse_register(name.text) else {
        return Err(Diagnostic::at(
            Stage::Type,
            name.span,
            format!("`{}` is no register", name.text),
        )
        .note("registers: X0 to X30, W0 to W30, XZR, WZR, SP"));
    };
    Ok(Operand { register: full.map(|f| a.register(&f)), width })
}

/// Parses registers separated by commas, with a comma after the last one.
fn registers<const N: usize>(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
) -> Result<[Operand; N], Diagnostic> {
    let mut out = [Operand { register: None, width: 8 }; N];
    for operand in &mut out {
        *operand = register(a, cursor)?;
        cursor.expect(",")?;
    }
    Ok(out)
}

fn is_register(cursor: &Cursor<'_, '_>) -> bool {
    let text = cursor.peek().text;
    let symbolic = matches!(text, "X" | "W") && cursor.ahead(1).text == "%";
    text == "%" || symbolic || parse_register(text).is_some()
}

fn immediate(cursor: &mut Cursor<'_, '_>) -> Result<u64, Diagnostic> {
    cursor.eat("#");
    Ok(cursor.number()? as u64)
}

/// Parses the amount of a shift of a value with this many bits.
fn amount(cursor: &mut Cursor<'_, '_>, bits: u8) -> Result<u8, Diagnostic> {
    let start = cursor.peek();
    let amount = immediate(cursor)?;
    u8::try_from(amount).ok().filter(|k| *k < bits).ok_or_else(|| {
        Diagnostic::at(Stage::Type, start.span, format!("a shift by {amount}"))
            .note(format!("expected a number from 0 to {}", bits - 1))
    })
}

/// Builds a shift or rotation of a value with this many bits by an amount below that.
fn shift_value(op: &str, value: RegisterExpr, by: RegisterExpr, bits: u8) -> RegisterExpr {
    match op {
        "LSL" => RegisterExpr::binary(Binary::Shl, value, by),
        "LSR" => RegisterExpr::binary(Binary::Shr, value.extend_bytes(bits / 8, false), by),
        "ASR" => RegisterExpr::binary(Binary::Sar, value.extend_bytes(bits / 8, true), by),
        _ => {
            let value = value.extend_bytes(bits / 8, false);
            let rest =
                RegisterExpr::binary(Binary::Sub, RegisterExpr::Const(u64::from(bits)), by.clone());
            // A shift by the width of a value is a shift by 0 of the other half.
            let rest =
                RegisterExpr::binary(Binary::And, rest, RegisterExpr::Const(u64::from(bits) - 1));
            RegisterExpr::binary(
                Binary::Or,
                RegisterExpr::binary(Binary::Shr, value.clone(), by),
                RegisterExpr::binary(Binary::Shl, value, rest),
            )
        }
    }
}

/// Returns the extension of an operand by its name.
fn extension(name: &str) -> Option<Unary> {
    Some(match name {
        "UXTB" => Unary::Zero(8),
        "UXTH" => Unary::Zero(16),
        "UXTW" => Unary::Zero(32),
        "SXTB" => Unary::Sign(8),
        "SXTH" => Unary::Sign(16),
        "SXTW" => Unary::Sign(32),
        "UXTX" | "SXTX" => Unary::Zero(64),
        _ => return None,
    })
}

/// Parses a register with an optional shift or extension, or an immediate with an optional shift,
/// for an operation on this many bits.
fn flexible(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    bits: u8,
) -> Result<RegisterExpr, Diagnostic> {
    let is_constant = !is_register(cursor);
    let value = if is_constant {
        RegisterExpr::Const(immediate(cursor)?)
    } else {
        register(a, cursor)?.value()
    };
    if !cursor.is(",") {
        return Ok(value);
    }
    cursor.take();
    let word = cursor.name("a shift or an extension")?;
    let name = word.text.to_ascii_uppercase();
    if matches!(name.as_str(), "LSL" | "LSR" | "ASR" | "ROR") {
        let by = RegisterExpr::Const(u64::from(amount(cursor, bits)?));
        return Ok(shift_value(&name, value, by, bits));
    }
    let Some(op) = extension(&name).filter(|_| !is_constant) else {
        return Err(Diagnostic::at(
            Stage::Unsupported,
            word.span,
            format!("the operand `{}` is not supported", word.text),
        )
        .note(
            "supported: LSL, LSR, ASR, ROR, and UXTB, UXTH, UXTW, UXTX, SXTB, SXTH, SXTW, SXTX",
        ));
    };
    let value = RegisterExpr::unary(op, value);
    if !cursor.is("#") && !cursor.is_number() {
        return Ok(value);
    }
    let by = RegisterExpr::Const(u64::from(amount(cursor, 64)?));
    Ok(RegisterExpr::binary(Binary::Shl, value, by))
}

fn assign(a: &mut Assembler, into: Operand, value: RegisterExpr) {
    match into.register {
        Some(r) => a.push(Op::Let(r, value.extend_bytes(into.width, false))),
        None => a.push(Op::Fence(0)),
    }
}

fn tags(names: &[&str]) -> u64 {
    names.iter().fold(0, |t, n| t | ARCH.tag(n))
}

/// The supported instructions, for messages. A star is a placeholder for a size letter or the name
/// of an operation.
pub const SUPPORTED: &str = "LDR* LDUR* LDAR* LDAPR* LDAPUR* LDXR* LDAXR* STR* STUR* STLR* STLUR* STXR* STLXR* (B, H, SB, SH, SW), \
    LDP LDNP LDPSW LDIAPP STP STNP STILP LDXP LDAXP STXP STLXP, \
    CAS* CASP* SWP* LDADD* LDSET* LDCLR* LDEOR* LDSMAX* LDSMIN* LDUMAX* LDUMIN* STADD* and its like (A, L, AL, B, H), \
    MOV* MVN ADD* SUB* NEG* MUL MADD MSUB MNEG SMULL UMULL SMULH UMULH SDIV UDIV ADC* SBC* NGC* AND* ORR ORN EOR EON BIC* TST CMP CMN CCMP CCMN \
    LSL LSR ASR ROR EXTR UBFM SBFM UBFX SBFX BFM BFI BFXIL BFC UXT* SXT* ABS CLZ CLS RBIT REV* CSEL CSET* CSINC CSINV CSNEG CINC CINV CNEG ADR, \
    B BL BR BLR RET B.* CBZ CBNZ TBZ TBNZ, MRS and MSR of NZCV, DMB DSB ISB NOP";

/// Features of the architecture that are not of user programs with plain registers, with the
/// beginnings of the names of their instructions.
const FEATURES: &[(&str, &[&str])] = &[
    (
        "memory tagging (MTE)",
        &["STG", "ST2G", "STZG", "STZ2G", "LDG", "IRG", "ADDG", "SUBG", "GMI"],
    ),
    ("address translation", &["TLBI", "AT"]),
    ("exceptions", &["SVC", "ERET", "HVC", "SMC", "UDF", "BRK"]),
    ("caches and instruction fetch", &["DC", "IC"]),
    ("system registers", &["MRS", "MSR", "SYS"]),
    ("pointer authentication", &["PAC", "AUT", "XPAC", "BLRA", "BRA", "RETA", "LDRA"]),
    ("the guarded control stack", &["GCS", "CHKFEAT"]),
    (
        "vectors",
        &[
            "LD1", "LD2", "LD3", "LD4", "ST1", "ST2", "ST3", "ST4", "LDAP1", "STL1", "MOVI", "DUP",
            "FMOV", "ADDV", "UADDV", "PTRUE", "WHILE", "INDEX", "CNT", "RDVL", "ADDVL", "MOVPRFX",
            "SMSTART", "SMSTOP", "MOVA", "ADDHA", "ADDVA", "UMOV", "SMOV", "INS",
        ],
    ),
];

/// Builds the error for an instruction that is not supported.
fn unsupported_error(token: Token<'_>) -> Diagnostic {
    let name = token.text.to_ascii_uppercase();
    let is = |list: &[&str]| {
        // Names of two letters are complete.
        list.iter().any(|n| if n.len() == 2 { name == *n } else { name.starts_with(n) })
    };
    match FEATURES.iter().find(|(_, list)| is(list)) {
        Some((feature, _)) => Diagnostic::at(
            Stage::Unsupported,
            token.span,
            format!("the AArch64 instruction `{}` is of {feature}", token.text),
        )
        .note("tests of user programs with accesses of registers X0 to X30 are supported"),
        None => unknown_mnemonic(token.span, token.text, ARCH),
    }
}

/// Variants of the herd tools, with the features that they enable, which are not supported.
const VARIANTS: &[(&str, &[&str])] = &[
    ("memory tagging (MTE)", &["memtag", "mte", "tagmem"]),
    ("address translation", &["vmsa", "kvm", "pte2", "ets", "ets2", "ets3"]),
    ("exceptions", &["fatal", "faulthandling"]),
    ("instruction fetch", &["ifetch", "self", "dic", "idc"]),
    ("vectors", &["neon", "sve", "sme"]),
    ("capabilities", &["morello"]),
    ("pointer authentication", &["pac", "pauth1", "pauth2", "fpac"]),
    ("the guarded control stack", &["shadowstack", "gcs"]),
];

/// Returns the feature that a variant of the herd tools enables, if tests with it are rejected.
pub fn unsupported_variant(variant: &str) -> Option<&'static str> {
    let lower = variant.to_ascii_lowercase();
    VARIANTS.iter().find(|(_, list)| list.contains(&lower.as_str())).map(|v| v.0)
}

/// Lowers an instruction.
pub fn instruction(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<(), Diagnostic> {
    let token = cursor.name("an instruction")?;
    let name = token.text.to_ascii_uppercase();
    a.thread.atomic = ARCH.tag("AMO");
    if memory::lower(a, cursor, &name, token)?
        || atomic::lower(a, cursor, &name, token)?
        || control::lower(a, cursor, &name, token)?
        || arithmetic::lower(a, cursor, &name, token)?
    {
        return Ok(());
    }
    Err(unsupported_error(token))
}
