//! x86 instructions in both notations: `MOV [x],$1` with the destination first (X86), `movl $1,(x)` with it last (X86_64).
//!
//! In: tokens of an instruction. Out: operations. A locked instruction is a read and a write, tagged `X` and `A` and related by `amo`; one that is not locked is two
//! plain accesses. The lowering in the layer `program` shares no code with this one.

use crate::asm::{Assembler, unknown};
use crate::code::{Arch, Atomicity, Binary, Expr, Flow, Op, Register, Unary};
use crate::layout::Layout;
use mu_base::words::{Cursor, Kind, Token};
use mu_base::{Diagnostic, Stage};

/// The full register of a name, with how many bytes the name means.
pub fn parse_register(name: &str) -> Option<(String, u8)> {
    let lower = name.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix('r').filter(|r| r.starts_with(|c: char| c.is_ascii_digit())) {
        let digits = rest.trim_end_matches(['d', 'w', 'b']);
        let n = digits.parse::<u8>().ok().filter(|n| (8..16).contains(n))?;
        let width = match &rest[digits.len()..] {
            "" => 8,
            "d" => 4,
            "w" => 2,
            "b" => 1,
            _ => return None,
        };
        return Some((format!("r{n}"), width));
    }
    for letter in ["a", "b", "c", "d"] {
        let full = format!("r{letter}x");
        let forms = [(full.clone(), 8), (format!("e{letter}x"), 4), (format!("{letter}x"), 2), (format!("{letter}l"), 1)];
        if let Some(found) = forms.into_iter().find(|f| f.0 == lower) {
            return Some((full, found.1));
        }
    }
    for pair in ["si", "di", "bp", "sp"] {
        let full = format!("r{pair}");
        let forms = [(full.clone(), 8), (format!("e{pair}"), 4), (pair.to_string(), 2), (format!("{pair}l"), 1)];
        if let Some(found) = forms.into_iter().find(|f| f.0 == lower) {
            return Some((full, found.1));
        }
    }
    None
}

/// An operand.
#[derive(Clone)]
enum Operand {
    Register(Register, u8),
    Immediate(u64),
    Memory(Expr),
}

impl Operand {
    fn value(&self, width: u8) -> Expr {
        match self {
            Operand::Register(r, _) => Expr::Register(*r).extended(width, false),
            Operand::Immediate(v) => Expr::Const(*v).extended(width, false),
            Operand::Memory(_) => Expr::Loaded.extended(width, false),
        }
    }
}

fn operand(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, layout: &mut Layout) -> Result<Operand, Diagnostic> {
    if cursor.eat("$") {
        return if cursor.is_number() {
            Ok(Operand::Immediate(cursor.number()? as u64))
        } else {
            variable(cursor, layout).map(Operand::Immediate)
        };
    }
    if cursor.is_number() && cursor.ahead(1).text != "(" && !(cursor.is("-") && cursor.ahead(2).text == "(") {
        return Ok(Operand::Immediate(cursor.number()? as u64));
    }
    if cursor.is("[") || cursor.is("(") || cursor.is_number() {
        let offset = if cursor.is_number() { cursor.number()? } else { 0 };
        let close = if cursor.eat("[") {
            "]"
        } else {
            cursor.expect("(")?;
            ")"
        };
        let base = base(a, cursor, layout)?;
        let plus = if cursor.eat("+") { cursor.number()? } else { 0 };
        cursor.expect(close)?;
        let offset = offset.wrapping_add(plus);
        return Ok(Operand::Memory(if offset == 0 { base } else { Expr::binary(Binary::Add, base, Expr::Const(offset as u64)) }));
    }
    let percent = cursor.eat("%");
    let name = cursor.name("an operand")?;
    if let Some((full, width)) = parse_register(name.text) {
        return Ok(Operand::Register(a.register(&full), width));
    }
    if percent {
        return Err(Diagnostic::at(Stage::Type, name.span, format!("`{}` is no register", name.text)));
    }
    // A variable, maybe with the instruction pointer: `x(%rip)`.
    let v = layout.variable(name.text);
    if cursor.is("(") && cursor.ahead(1).text == "%" && cursor.ahead(2).text.eq_ignore_ascii_case("rip") {
        (0..3).for_each(|_| {
            cursor.take();
        });
        cursor.expect(")")?;
    }
    Ok(Operand::Memory(Expr::Const(layout.variables()[v as usize].address)))
}

fn variable(cursor: &mut Cursor<'_, '_>, layout: &mut Layout) -> Result<u64, Diagnostic> {
    let name = cursor.name("a variable")?;
    let v = layout.variable(name.text);
    Ok(layout.variables()[v as usize].address)
}

fn base(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, layout: &mut Layout) -> Result<Expr, Diagnostic> {
    let percent = cursor.eat("%");
    if let Some((full, _)) = parse_register(cursor.peek().text) {
        cursor.take();
        return Ok(Expr::Register(a.register(&full)));
    }
    if percent {
        return Err(cursor.unexpected("a register"));
    }
    Ok(Expr::Const(variable(cursor, layout)?))
}

/// The bytes that a suffix of the mnemonic says.
fn suffix(name: &str) -> Option<u8> {
    Some(match name.chars().last()? {
        'b' => 1,
        'w' => 2,
        'l' => 4,
        'q' => 8,
        _ => return None,
    })
}

/// A mnemonic without the suffix of its width, if it has one in this notation.
fn stem<'n>(name: &'n str, known: &[&str]) -> Option<(&'n str, Option<u8>)> {
    if known.contains(&name) {
        return Some((name, None));
    }
    let stem = &name[..name.len().checked_sub(1)?];
    known.contains(&stem).then(|| suffix(name).map(|w| (stem, Some(w))))?
}

struct Context {
    width: Option<u8>,
    locked: bool,
}

/// Takes an instruction.
pub fn instruction(a: &mut Assembler, cursor: &mut Cursor<'_, '_>, layout: &mut Layout) -> Result<(), Diagnostic> {
    let locked = cursor.eat_word("lock");
    if locked {
        cursor.eat(";");
    }
    let token = cursor.name("an instruction")?;
    let name = token.text.to_ascii_lowercase();
    let arch = a.arch;
    let wrong = || unknown(token.span, token.text, arch);
    let fence = match name.as_str() {
        "mfence" => Some("MFENCE"),
        "lfence" => Some("LFENCE"),
        "sfence" => Some("SFENCE"),
        _ => None,
    };
    if let Some(tag) = fence {
        a.push(Op::Fence(a.arch.tag(tag)));
        return Ok(());
    }
    if name == "nop" {
        a.push(Op::Fence(0));
        return Ok(());
    }
    if let Some(kind) = name.strip_prefix('j') {
        let label = cursor.name("a label")?;
        let when = if kind == "mp" { None } else { Some(condition(a, kind, token)?) };
        a.jump(when, label.text.to_string(), label.span);
        return Ok(());
    }
    const TWO: [&str; 12] = ["mov", "xchg", "add", "sub", "and", "or", "xor", "cmp", "test", "xadd", "cmpxchg", "lea"];
    const ONE: [&str; 4] = ["inc", "dec", "neg", "not"];
    if let Some((stem, width)) = stem(&name, &ONE) {
        let of = operand(a, cursor, layout)?;
        let context = Context { width, locked };
        return one(a, stem, of, &context);
    }
    let Some((stem, width)) = stem(&name, &TWO) else { return Err(wrong()) };
    let first = operand(a, cursor, layout)?;
    cursor.expect(",")?;
    let second = operand(a, cursor, layout)?;
    let (into, from) = if a.arch == Arch::X86_64 { (second, first) } else { (first, second) };
    two(a, stem, into, from, &Context { width, locked }, token)
}

/// How wide an instruction is: its suffix, else a register of it, else 4 bytes.
fn width_of(context: &Context, operands: &[&Operand]) -> u8 {
    let register = operands.iter().find_map(|o| if let Operand::Register(_, w) = o { Some(*w) } else { None });
    context.width.or(register).unwrap_or(4)
}

/// What becomes of a register when some of its bytes are written: 4 bytes clear the others, fewer keep them.
fn merged(register: Register, width: u8, value: Expr) -> Expr {
    match width {
        4.. => value.extended(width, false),
        _ => {
            let mask = (1u64 << (u32::from(width) * 8)) - 1;
            let kept = Expr::binary(Binary::And, Expr::Register(register), Expr::Const(!mask));
            Expr::binary(Binary::Or, kept, value.extended(width, false))
        }
    }
}

fn flags(a: &mut Assembler, left: Expr, right: Expr, ordered: bool) {
    let (l, r) = a.flags();
    a.push(Op::Let(l, left));
    a.push(Op::Let(r, right));
    a.ordered = ordered;
}

/// Reads and writes an operand: `value` is computed of what it held.
fn modify(a: &mut Assembler, of: &Operand, width: u8, value: Expr, context: &Context, into: Option<(Register, Expr)>) {
    match of {
        Operand::Memory(address) => {
            let tags = if context.locked { a.arch.tag("X") | a.arch.tag("A") } else { 0 };
            let atomicity = if tags == 0 { Atomicity::None } else { Atomicity::Pair };
            a.push(Op::Update {
                into,
                address: address.clone(),
                width,
                value,
                when: None,
                read: tags,
                write: tags,
                failed: tags,
                atomicity,
                flow: Flow::Plain,
            });
        }
        Operand::Register(r, _) => {
            let held = Expr::Register(*r).extended(width, false);
            let value = substitute(value, &held);
            let temporary = a.register("temporary");
            a.push(Op::Let(temporary, value));
            if let Some((into, old)) = into {
                a.push(Op::Let(into, substitute(old, &held)));
            }
            a.push(Op::Let(*r, merged(*r, width, Expr::Register(temporary))));
        }
        Operand::Immediate(_) => {}
    }
}

fn substitute(e: Expr, by: &Expr) -> Expr {
    match e {
        Expr::Loaded => by.clone(),
        Expr::Unary(op, x) => Expr::unary(op, substitute(*x, by)),
        Expr::Binary(op, x, y) => Expr::binary(op, substitute(*x, by), substitute(*y, by)),
        other => other,
    }
}

fn one(a: &mut Assembler, name: &str, of: Operand, context: &Context) -> Result<(), Diagnostic> {
    let width = width_of(context, &[&of]);
    let old = Expr::Loaded.extended(width, false);
    let value = match name {
        "inc" => Expr::binary(Binary::Add, old, Expr::Const(1)),
        "dec" => Expr::binary(Binary::Sub, old, Expr::Const(1)),
        "neg" => Expr::unary(Unary::Neg, old),
        _ => Expr::unary(Unary::Not, old),
    };
    result(a, &of, width, value, context, name != "not");
    Ok(())
}

/// An operator whose result goes where it came from, with flags of the result.
fn result(a: &mut Assembler, of: &Operand, width: u8, value: Expr, context: &Context, sets_flags: bool) {
    let kept = a.register("result");
    let held = if let Operand::Register(r, _) = of { Expr::Register(*r).extended(width, false) } else { Expr::Loaded };
    if let Operand::Register(..) = of {
        a.push(Op::Let(kept, substitute(value.clone(), &held)));
        modify(a, of, width, Expr::Register(kept), context, None);
    } else {
        modify(a, of, width, value.clone(), context, Some((kept, value)));
    }
    if sets_flags {
        flags(a, Expr::Register(kept).extended(width, true), Expr::Const(0), false);
    }
}

fn two(a: &mut Assembler, name: &str, into: Operand, from: Operand, context: &Context, token: Token<'_>) -> Result<(), Diagnostic> {
    let width = width_of(context, &[&into, &from]);
    let wrong = |text: &str| Err(Diagnostic::at(Stage::Unsupported, token.span, format!("`{}` {text}", token.text)));
    match (&into, &from) {
        (Operand::Immediate(_), _) if !matches!(name, "cmp" | "test") => return wrong("into a number"),
        (Operand::Memory(_), Operand::Memory(_)) => return wrong("of two memory operands"),
        _ => {}
    }
    if name == "lea" {
        let (Operand::Register(r, _), Operand::Memory(address)) = (&into, &from) else { return wrong("of these operands") };
        a.push(Op::Let(*r, merged(*r, width, address.clone())));
        return Ok(());
    }
    let op = match name {
        "add" => Some(Binary::Add),
        "sub" | "cmp" => Some(Binary::Sub),
        "and" | "test" => Some(Binary::And),
        "or" => Some(Binary::Or),
        "xor" => Some(Binary::Xor),
        _ => None,
    };
    match name {
        "mov" => match (&into, &from) {
            (Operand::Memory(address), _) => {
                a.push(Op::Store { address: address.clone(), width, value: from.value(width), tags: 0, joined: false });
            }
            (Operand::Register(r, _), Operand::Memory(address)) => {
                let value = merged(*r, width, Expr::Loaded);
                a.push(Op::Load { into: Some(*r), value, address: address.clone(), width, tags: 0, reserve: false, joined: false });
            }
            (Operand::Register(r, _), _) => a.push(Op::Let(*r, merged(*r, width, from.value(width)))),
            (Operand::Immediate(_), _) => {}
        },
        "xchg" => {
            // Whichever is in memory is what is modified; such an exchange is always locked.
            let (memory, other) = if matches!(from, Operand::Memory(_)) { (from, into) } else { (into, from) };
            let Operand::Register(r, _) = other else { return wrong("with a number") };
            let old = merged(r, width, Expr::Loaded);
            modify(a, &memory, width, Expr::Register(r).extended(width, false), &Context { locked: true, ..*context }, Some((r, old)));
        }
        "xadd" => {
            let Operand::Register(r, _) = from else { return wrong("with a number") };
            let sum = Expr::binary(Binary::Add, Expr::Loaded.extended(width, false), Expr::Register(r).extended(width, false));
            let kept = a.register("result");
            if let Operand::Memory(_) = into {
                // The sum is needed for the flags, and the old value for the register.
                let old = a.register("old");
                modify(a, &into, width, sum, context, Some((old, Expr::Loaded.extended(width, false))));
                a.push(Op::Let(kept, Expr::binary(Binary::Add, Expr::Register(old), Expr::Register(r).extended(width, false))));
                a.push(Op::Let(r, merged(r, width, Expr::Register(old))));
            } else {
                modify(a, &into, width, sum, context, Some((r, merged(r, width, Expr::Loaded))));
                if let Operand::Register(q, _) = into {
                    a.push(Op::Let(kept, Expr::Register(q)));
                }
            }
            flags(a, Expr::Register(kept).extended(width, true), Expr::Const(0), false);
        }
        "cmpxchg" => return cmpxchg(a, &into, &from, width, context, token),
        "cmp" | "test" => {
            let Some(op) = op else { return wrong("of these operands") };
            let load = |a: &mut Assembler, o: &Operand| match o {
                Operand::Memory(address) => {
                    let kept = a.register("operand");
                    let value = Expr::Loaded.extended(width, false);
                    a.push(Op::Load { into: Some(kept), value, address: address.clone(), width, tags: 0, reserve: false, joined: false });
                    Expr::Register(kept)
                }
                other => other.value(width),
            };
            let (left, right) = (load(a, &into), load(a, &from));
            if name == "cmp" {
                flags(a, left.extended(width, true), right.extended(width, true), true);
            } else {
                flags(a, Expr::binary(op, left, right).extended(width, true), Expr::Const(0), true);
            }
        }
        _ => {
            let Some(op) = op else { return wrong("of these operands") };
            if let (Operand::Register(r, _), Operand::Memory(address)) = (&into, &from) {
                let value = Expr::binary(op, Expr::Register(*r).extended(width, false), Expr::Loaded.extended(width, false));
                let value = merged(*r, width, value);
                a.push(Op::Load { into: Some(*r), value, address: address.clone(), width, tags: 0, reserve: false, joined: false });
                flags(a, Expr::Register(*r).extended(width, true), Expr::Const(0), false);
                return Ok(());
            }
            let value = Expr::binary(op, Expr::Loaded.extended(width, false), from.value(width));
            result(a, &into, width, value, context, true);
        }
    }
    Ok(())
}

/// `cmpxchg`: writes the new value if the old one is that of the accumulator, else takes the old one there.
fn cmpxchg(a: &mut Assembler, into: &Operand, from: &Operand, width: u8, context: &Context, token: Token<'_>) -> Result<(), Diagnostic> {
    let (Operand::Memory(address), Operand::Register(new, _)) = (into, from) else {
        return Err(Diagnostic::at(Stage::Unsupported, token.span, "`cmpxchg` of two registers"));
    };
    let accumulator = a.register("rax");
    let expected = a.register("expected");
    a.push(Op::Let(expected, Expr::Register(accumulator).extended(width, false)));
    let old = Expr::Loaded.extended(width, false);
    let equal = Expr::binary(Binary::Eq, old.clone(), Expr::Register(expected));
    let tags = if context.locked { a.arch.tag("X") | a.arch.tag("A") } else { 0 };
    let atomicity = if context.locked { Atomicity::Pair } else { Atomicity::None };
    let kept = a.register("old");
    a.push(Op::Update {
        into: Some((kept, old)),
        address: address.clone(),
        width,
        value: Expr::Register(*new).extended(width, false),
        when: Some(equal),
        read: tags,
        write: tags,
        failed: tags,
        atomicity,
        flow: Flow::Plain,
    });
    // If they were equal the accumulator keeps its value, upper bytes and all.
    let differ = Expr::binary(Binary::Ne, Expr::Register(kept), Expr::Register(expected));
    let taken = Expr::binary(Binary::Mul, differ.clone(), merged(accumulator, width, Expr::Register(kept)));
    let same = Expr::unary(Unary::IsZero, differ);
    let stays = Expr::binary(Binary::Mul, same, Expr::Register(accumulator));
    a.push(Op::Let(accumulator, Expr::binary(Binary::Or, taken, stays)));
    flags(a, Expr::Register(expected).extended(width, true), Expr::Register(kept).extended(width, true), true);
    Ok(())
}

/// The condition of a jump, of what the last instruction left.
fn condition(a: &mut Assembler, kind: &str, token: Token<'_>) -> Result<Expr, Diagnostic> {
    let (left, right) = a.flags();
    let (left, right) = (Expr::Register(left), Expr::Register(right));
    let difference = || Expr::binary(Binary::Sub, left.clone(), right.clone());
    let e = match kind {
        "e" | "z" => return Ok(Expr::binary(Binary::Eq, left, right)),
        "ne" | "nz" => return Ok(Expr::binary(Binary::Ne, left, right)),
        "s" => return Ok(Expr::binary(Binary::Less, difference(), Expr::Const(0))),
        "ns" => return Ok(Expr::binary(Binary::LessEqual, Expr::Const(0), difference())),
        "l" | "nge" => Expr::binary(Binary::Less, left, right),
        "le" | "ng" => Expr::binary(Binary::LessEqual, left, right),
        "g" | "nle" => Expr::binary(Binary::Less, right, left),
        "ge" | "nl" => Expr::binary(Binary::LessEqual, right, left),
        "b" | "c" | "nae" => Expr::binary(Binary::Below, left, right),
        "be" | "na" => Expr::binary(Binary::BelowEqual, left, right),
        "a" | "nbe" => Expr::binary(Binary::Below, right, left),
        "ae" | "nc" | "nb" => Expr::binary(Binary::BelowEqual, right, left),
        _ => return Err(unknown(token.span, token.text, a.arch)),
    };
    if !a.ordered {
        let error = Diagnostic::at(Stage::Unsupported, token.span, format!("`{}` after arithmetic", token.text));
        return Err(error.note("the flags that it asks for are kept of comparisons and of bitwise operators"));
    }
    Ok(e)
}

/// Whether a name is a register and not a variable, for conditions.
pub fn is_register(token: &Token<'_>) -> bool {
    token.kind == Kind::Name && parse_register(token.text).is_some()
}
