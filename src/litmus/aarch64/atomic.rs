//! Atomic instructions of Armv8.1: `SWP`, `LDADD` and related, `STADD` and related, `CAS`, `CASP`,
//! with `A`, `L`, `AL`, and `B`, `H`.
//!
//! Input: the tokens of an instruction after its name. Output: operations. An instruction with
//! the zero register as its result has a read without return, and its acquire has no effect. A
//! compare-and-swap chooses one of four outcomes: it writes, and its result is the value read or,
//! if that is equal, the expected value; or it fails, and writes the value read back or nothing
//! (`event.ml` of the herd tools, `aarch64_cas`).

use super::memory::{Address, address};
use super::{Operand, register, registers, tags};
use crate::asm::Assembler;
use crate::code::{Atomicity, Binary, Flow, Op, Register, RegisterExpr, Unary};
use mu_base::words::{Cursor, Token};
use mu_base::{Diagnostic, Stage};

/// The order and width of an atomic instruction.
#[derive(Clone, Copy)]
struct Suffix {
    /// Tags of the read.
    read: u64,
    /// Tags of the write.
    write: u64,
    /// The width, if it is not that of the registers.
    narrow: Option<u8>,
}

/// Parses the letters after the name of an atomic instruction.
fn suffix(rest: &str) -> Option<Suffix> {
    let (rest, narrow) = match rest {
        _ if rest.ends_with('B') => (&rest[..rest.len() - 1], Some(1)),
        _ if rest.ends_with('H') => (&rest[..rest.len() - 1], Some(2)),
        _ => (rest, None),
    };
    let (read, write) = match rest {
        "" => (0, 0),
        "A" => (tags(&["A"]), 0),
        "L" => (0, tags(&["L"])),
        "AL" => (tags(&["A"]), tags(&["L"])),
        _ => return None,
    };
    Some(Suffix { read, write, narrow })
}

/// Rejects an address that changes its register.
fn plain(a: &mut Assembler, cursor: &mut Cursor<'_, '_>) -> Result<RegisterExpr, Diagnostic> {
    let at = cursor.peek();
    let Address { value, change } = address(a, cursor)?;
    match change {
        None => Ok(value),
        Some(_) => Err(Diagnostic::at(
            Stage::Type,
            at.span,
            "the address of an atomic instruction does not change its register",
        )),
    }
}

/// Lowers atomic instructions. Returns false if the name is of another instruction.
pub(super) fn lower(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    name: &str,
    token: Token<'_>,
) -> Result<bool, Diagnostic> {
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
    if let Some(s) = name.strip_prefix("CASP").and_then(suffix).filter(|s| s.narrow.is_none()) {
        return compare_pair(a, cursor, s, token).map(|()| true);
    }
    let atomic = tags(&["AMO"]);
    if let Some(s) = name.strip_prefix("CAS").and_then(suffix) {
        let [expected, new] = registers(a, cursor)?;
        let address = plain(a, cursor)?;
        let width = s.narrow.unwrap_or(new.width);
        let when = equal(RegisterExpr::Loaded, expected, width);
        let silent = expected.register.is_none();
        let read = if silent { tags(&["NoRet"]) } else { s.read };
        a.push(Op::Update {
            into: expected.register.map(|r| (r, RegisterExpr::Loaded.extend_bytes(width, false))),
            address,
            width,
            value: new.value(),
            when: Some(when),
            read: atomic | read,
            write: atomic | s.write,
            failed: if silent { atomic | read } else { read },
            atomicity: Atomicity::Pair,
            flow: Flow::Pick,
            joined: false,
        });
        return Ok(true);
    }
    let found = if let Some(rest) = name.strip_prefix("SWP") {
        suffix(rest).map(|s| (None, false, true, s))
    } else {
        let store = name.starts_with("ST");
        let rest = name.strip_prefix("LD").or(name.strip_prefix("ST"));
        rest.and_then(|rest| {
            OPERATORS
                .iter()
                .find_map(|(n, op)| Some((*op, store, false, suffix(rest.strip_prefix(n)?)?)))
        })
    };
    let Some((op, store, swap, s)) = found else { return Ok(false) };
    let operand = register(a, cursor)?;
    cursor.expect(",")?;
    let into = if store {
        None
    } else {
        let into = register(a, cursor)?;
        cursor.expect(",")?;
        into.register
    };
    let address = plain(a, cursor)?;
    let width = s.narrow.unwrap_or(operand.width);
    let signed = matches!(op, Some(Binary::Min | Binary::Max));
    let (old, given) = (
        RegisterExpr::Loaded.extend_bytes(width, signed),
        operand.value().extend_bytes(width, signed),
    );
    let value = match op {
        _ if swap => operand.value(),
        Some(op) => RegisterExpr::binary(op, old, given),
        None => RegisterExpr::binary(Binary::And, old, RegisterExpr::unary(Unary::Not, given)),
    };
    let read = if into.is_none() { tags(&["NoRet"]) } else { s.read };
    a.push(Op::Update {
        into: into.map(|r| (r, RegisterExpr::Loaded.extend_bytes(width, false))),
        address,
        width,
        value,
        when: None,
        read: atomic | read,
        write: atomic | s.write,
        failed: atomic | read,
        atomicity: Atomicity::Pair,
        flow: Flow::Plain,
        joined: false,
    });
    Ok(true)
}

fn equal(value: RegisterExpr, expected: Operand, width: u8) -> RegisterExpr {
    let (value, expected) =
        (value.extend_bytes(width, false), expected.value().extend_bytes(width, false));
    RegisterExpr::binary(Binary::Eq, value, expected)
}

/// Lowers `CASP`: the four outcomes of a compare-and-swap, with two reads and two writes.
fn compare_pair(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
    s: Suffix,
    token: Token<'_>,
) -> Result<(), Diagnostic> {
    let [x1, x2, y1, y2] = registers::<4>(a, cursor)?;
    if [x2, y1, y2].iter().any(|r| r.width != x1.width) {
        return Err(Diagnostic::at(
            Stage::Type,
            token.span,
            "the registers of `CASP` have one width",
        ));
    }
    let address = plain(a, cursor)?;
    let (atomic, width) = (tags(&["AMO"]), x1.width);
    let names = [".address.first", ".address.second", ".loaded.first", ".loaded.second"];
    let [here, there, first, second] = names.map(|name| a.register(name));
    a.push(Op::Let(here, address.clone()));
    a.push(Op::Let(there, address.plus(u64::from(width))));
    let loads = |tags: u64| {
        [(first, here), (second, there)].map(|(into, at)| Op::Load {
            into: Some(into),
            value: RegisterExpr::Loaded.extend_bytes(width, false),
            address: RegisterExpr::Register(at),
            width,
            tags,
            reserve: false,
            joined: at == there,
        })
    };
    let stores = |values: [RegisterExpr; 2]| {
        let [one, two] = values;
        [(one, here), (two, there)].map(|(value, at)| Op::Store {
            address: RegisterExpr::Register(at),
            width,
            value,
            tags: atomic | s.write,
            joined: at == there,
        })
    };
    let same = RegisterExpr::binary(
        Binary::And,
        equal(RegisterExpr::Register(first), x1, width),
        equal(RegisterExpr::Register(second), x2, width),
    );
    let differs = RegisterExpr::unary(Unary::IsZero, same.clone());
    let values = [first, second].map(RegisterExpr::Register);
    let results = |values: [RegisterExpr; 2]| -> Vec<Op> {
        let pairs: [(Option<Register>, RegisterExpr); 2] = {
            let [one, two] = values;
            [(x1.register, one), (x2.register, two)]
        };
        pairs.into_iter().filter_map(|(r, v)| Some(Op::Let(r?, v))).collect()
    };
    let written: Vec<Op> = loads(atomic | s.read)
        .into_iter()
        .chain([Op::Choose(same.clone())])
        .chain(stores([y1.value(), y2.value()]))
        .chain(results(values.clone()))
        .collect();
    let expected: Vec<Op> = loads(atomic | s.read)
        .into_iter()
        .chain([Op::Choose(same)])
        .chain(stores([y1.value(), y2.value()]))
        .chain(results([x1.value(), x2.value()]))
        .collect();
    let back: Vec<Op> = loads(atomic | s.read)
        .into_iter()
        .chain([Op::Choose(differs.clone())])
        .chain(stores(values.clone()))
        .chain(results(values.clone()))
        .collect();
    let unwritten: Vec<Op> =
        loads(s.read).into_iter().chain([Op::Choose(differs)]).chain(results(values)).collect();
    a.alternatives(vec![written, expected, back, unwritten]);
    Ok(())
}
