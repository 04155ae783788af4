//! Parser of the initial state of a litmus test: `{ int x=1; 0:rax=x; uint64_t t[2]={1,-1}; … }`.
//!
//! Input: the tokens after `{`. Output: declared variables, and initial registers with their values
//! and types.

use super::expr::Width;
use super::registers::{self, View};
use super::variables::{IntegerType, Variables};
use mu_base::words::{Cursor, Token, TokenKind};
use mu_base::{Diagnostic, Stage};

/// A register with an entry in the initial state.
#[derive(Clone, Debug)]
pub(super) struct InitialRegister<'a> {
    pub thread: u32,
    pub view: View,
    pub value: u64,
    pub declared: Option<IntegerType>,
    pub token: Token<'a>,
}

/// Parses a thread's register: `0:EAX`, `P0:rax`, `0:%x`.
pub(super) fn register<'a>(
    cursor: &mut Cursor<'a, '_>,
) -> Result<(u32, View, Token<'a>), Diagnostic> {
    let token = cursor.take();
    let digits = token.text.trim_start_matches('P');
    let thread = digits.parse().map_err(|_| {
        Diagnostic::at(Stage::Syntax, token.span, format!("`{}` is no thread", token.text))
    })?;
    cursor.expect(":")?;
    let symbolic = cursor.eat("%");
    let name = cursor.name("a register")?;
    let view = match registers::parse(name.text) {
        Some(view) => view,
        None if symbolic => View { full: name.text.into(), width: Width::W64, shift: 0 },
        None => {
            return Err(Diagnostic::at(
                Stage::Type,
                name.span,
                format!("`{}` is not a register", name.text),
            ));
        }
    };
    Ok((thread, view, name))
}

/// True if the next tokens are a thread's register.
pub(super) fn is_register(cursor: &Cursor<'_, '_>) -> bool {
    let token = cursor.peek();
    let named = token.kind == TokenKind::Name
        && token.text.len() > 1
        && token.text.strip_prefix('P').is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()));
    (token.kind == TokenKind::Number || named) && cursor.ahead(1).text == ":"
}

/// Parses the initial state, including its `}`.
pub(super) fn initial_state<'a>(
    cursor: &mut Cursor<'a, '_>,
    variables: &mut Variables,
    pointer: IntegerType,
) -> Result<Vec<InitialRegister<'a>>, Diagnostic> {
    let mut registers = Vec::new();
    // Values may name variables that are declared later, so they are resolved at the end.
    let mut addresses: Vec<(AddressTarget, Token<'a>)> = Vec::new();
    // Variables without a value so far, which may get one later: `int *q; q=x;`.
    let mut bare: Vec<&str> = Vec::new();
    while !cursor.eat("}") {
        if cursor.at_end() {
            return Err(cursor.unexpected("`}`"));
        }
        if !cursor.eat(";") {
            item(cursor, variables, pointer, &mut registers, &mut addresses, &mut bare)?;
        }
    }
    for (place, name) in addresses {
        let address = variables.address(name.text, name.span, 0)?;
        match place {
            AddressTarget::Register(i) => registers[i].value = address,
            AddressTarget::Variable(name, i) => {
                if let Some(v) = variables.get_mut(&name) {
                    v.initial[i] = address;
                }
            }
        }
    }
    Ok(registers)
}

/// The register or element that receives an address.
enum AddressTarget {
    Register(usize),
    Variable(String, usize),
}

/// A value: a number, or the name of a variable.
enum InitialValue<'a> {
    Number(i64),
    Address(Token<'a>),
}

fn value<'a>(cursor: &mut Cursor<'a, '_>, word: Width) -> Result<InitialValue<'a>, Diagnostic> {
    if cursor.eat("&") || cursor.peek().kind == TokenKind::Name {
        return Ok(InitialValue::Address(cursor.name("a variable")?));
    }
    number_of(cursor, word).map(InitialValue::Number)
}

/// Parses a number of an initial state or a condition. `word`: the width of addresses. A test of 32
/// bits has no larger numbers, whatever the types are; the herd tools reject them as well.
pub(super) fn number_of(cursor: &mut Cursor<'_, '_>, word: Width) -> Result<i64, Diagnostic> {
    let first = cursor.peek();
    let number = cursor.number()?;
    // A number of 64 bits above the signed ones is read as a negative one.
    let wraps = number < 0 && first.text != "-";
    let fits = (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&number) && !wraps;
    if word == Width::W64 || fits {
        return Ok(number);
    }
    let last = cursor.previous();
    let text = format!("`{}` does not fit in the 32 bits of `X86`", last.text);
    Err(Diagnostic::at(Stage::Type, first.span.to(last.span), text)
        .note("a test with larger numbers is one of `X86_64`"))
}

/// Parses a register with its value.
fn initial_register<'a>(
    cursor: &mut Cursor<'a, '_>,
    declared: Option<IntegerType>,
    word: Width,
    registers: &mut Vec<InitialRegister<'a>>,
    addresses: &mut Vec<(AddressTarget, Token<'a>)>,
) -> Result<(), Diagnostic> {
    let (thread, view, token) = register(cursor)?;
    let at = registers.len();
    let mut bits = 0;
    if cursor.eat("=") {
        match value(cursor, word)? {
            InitialValue::Number(n) => bits = n as u64,
            InitialValue::Address(name) => addresses.push((AddressTarget::Register(at), name)),
        }
    }
    // As in the herd tools, the declared type determines comparisons of the register and does not
    // narrow its value.
    let overlaps = |other: &View| {
        let disjoint =
            other.shift != view.shift && other.width == Width::W8 && view.width == Width::W8;
        other.full == view.full && !disjoint
    };
    if let Some(first) = registers.iter().find(|r| r.thread == thread && overlaps(&r.view)) {
        let text = format!("the register `{thread}:{}` is initialised twice", token.text);
        return Err(Diagnostic::at(Stage::Type, token.span, text)
            .related(first.token.span, "the first time"));
    }
    let value = bits & view.width.mask();
    registers.push(InitialRegister { thread, view, value, declared, token });
    Ok(())
}

fn item<'a>(
    cursor: &mut Cursor<'a, '_>,
    variables: &mut Variables,
    pointer: IntegerType,
    registers: &mut Vec<InitialRegister<'a>>,
    addresses: &mut Vec<(AddressTarget, Token<'a>)>,
    bare: &mut Vec<&'a str>,
) -> Result<(), Diagnostic> {
    let declared = declared_type(cursor, pointer)?;
    if is_register(cursor) {
        initial_register(cursor, declared, pointer.width, registers, addresses)?;
        return end(cursor);
    }
    let bracketed = cursor.eat("[");
    let name = cursor.name("a variable or a register")?;
    if bracketed {
        cursor.expect("]")?;
    }
    let mut count = None;
    if !bracketed && cursor.eat("[") {
        let span = cursor.peek().span;
        let n = cursor.number()?;
        if !(1..=4096).contains(&n) {
            return Err(Diagnostic::at(
                Stage::Unsupported,
                span,
                format!("an array of {n} elements is not supported"),
            )
            .note("supported: 1 to 4096"));
        }
        count = Some(n as usize);
        cursor.expect("]")?;
    }
    let mut initial = vec![0; count.unwrap_or(1)];
    let mut names = Vec::new();
    let valued = cursor.eat("=");
    if valued {
        let list = count.is_some() && cursor.is("{");
        if list {
            let open = cursor.take();
            for i in 0.. {
                if i > 0 && !cursor.eat(",") {
                    break;
                }
                let v = value(cursor, pointer.width)?;
                let Some(slot) = initial.get_mut(i) else { break };
                match v {
                    InitialValue::Number(n) => *slot = n as u64,
                    InitialValue::Address(name) => names.push((i, name)),
                }
                if cursor.is("}") && i + 1 != initial.len() {
                    let text = format!(
                        "{} values for the {} elements of `{}`",
                        i + 1,
                        initial.len(),
                        name.text
                    );
                    return Err(Diagnostic::at(Stage::Type, open.span, text));
                }
            }
            cursor.expect("}")?;
        } else {
            match value(cursor, pointer.width)? {
                InitialValue::Number(n) => initial[0] = n as u64,
                InitialValue::Address(name) => names.push((0, name)),
            }
        }
    }
    if let Some(known) = variables.get_mut(name.text) {
        if let Some(at) = bare.iter().position(|b| *b == name.text)
            && valued
            && declared.is_none()
            && count.is_none()
            // A variable without a type cannot hold an address.
            && (names.is_empty() || known.declared.is_some())
        {
            bare.swap_remove(at);
            known.initial[0] = initial[0] & known.declared.map_or(u64::MAX, |ty| ty.width.mask());
            addresses.extend(
                names
                    .into_iter()
                    .map(|(i, value)| (AddressTarget::Variable(name.text.to_string(), i), value)),
            );
            return end(cursor);
        }
        return Err(Diagnostic::at(
            Stage::Type,
            name.span,
            format!("the variable `{}` is initialised twice", name.text),
        ));
    }
    let declared =
        if count.is_some() { Some(declared.unwrap_or(IntegerType::INT)) } else { declared };
    if let Some(ty) = declared {
        initial.iter_mut().for_each(|v| *v &= ty.width.mask());
    }
    // A pointer without a type has the width of pointers.
    let declared = if names.is_empty() { declared } else { declared.or(Some(pointer)) };
    addresses.extend(
        names
            .into_iter()
            .map(|(i, value)| (AddressTarget::Variable(name.text.to_string(), i), value)),
    );
    if !valued && count.is_none() {
        bare.push(name.text);
    }
    variables.declare(name.text, declared, count.is_some(), initial);
    end(cursor)
}

fn end(cursor: &mut Cursor<'_, '_>) -> Result<(), Diagnostic> {
    if cursor.eat(";") || cursor.is("}") { Ok(()) } else { Err(cursor.unexpected("`;` or `}`")) }
}

/// Parses the type at the start of a declaration, if there is one.
fn declared_type(
    cursor: &mut Cursor<'_, '_>,
    pointer: IntegerType,
) -> Result<Option<IntegerType>, Diagnostic> {
    let first = cursor.peek();
    let mut words: Vec<&str> = Vec::new();
    while cursor.peek().kind == TokenKind::Name
        && !is_register(cursor)
        && (matches!(cursor.ahead(1).kind, TokenKind::Name | TokenKind::Number)
            || cursor.ahead(1).text == "*")
    {
        words.push(cursor.take().text);
    }
    let mut starred = false;
    while cursor.eat("*") {
        starred = true;
    }
    if starred {
        return Ok(Some(pointer));
    }
    words.retain(|w| !["volatile", "const", "atomic", "_Atomic", "signed"].contains(w));
    if words.is_empty() {
        return Ok(None);
    }
    let unsigned = words.contains(&"unsigned");
    words.retain(|w| *w != "unsigned");
    if words.len() > 1 {
        words.retain(|w| *w != "int");
    }
    let name = match words.as_slice() {
        [] => "int",
        ["long", "long"] => "long",
        [one] => one.strip_prefix("atomic_").unwrap_or(one),
        _ => "",
    };
    let Some(ty) = IntegerType::of_name(name) else {
        let text = format!("unknown type `{}`", if name.is_empty() { first.text } else { name });
        return Err(Diagnostic::at(Stage::Type, first.span, text)
            .note("known: int, char, short, long, with unsigned, and int8_t to uint64_t"));
    };
    Ok(Some(if unsigned { IntegerType { signed: false, ..ty } } else { ty }))
}
