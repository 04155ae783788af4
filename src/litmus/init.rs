//! Parser of initial states: `{ uint64_t x; int y[2] = {1, 2}; 0:X1=x; 1:X3=0x10; p=&y; }`.
//!
//! Input: tokens. Output: variables in a [`MemoryLayout`], and the initial values of registers.
//! Values are numbers, and addresses of variables and of their elements.

use crate::code::Arch;
use crate::instruction_values::{INSTRUCTION, normal_form};
use crate::layout::{IntegerType, MemoryLayout};
use mu_base::words::{Cursor, Token, TokenKind};
use mu_base::{Diagnostic, Span, Stage, narrow};
use std::collections::{HashMap, HashSet};

/// The initial state of a register.
#[derive(Clone, Debug)]
pub struct InitialRegister<'a> {
    /// The thread; `None` for a symbolic register of all threads that use it.
    pub thread: Option<u32>,
    /// The register in the text.
    pub token: Token<'a>,
    /// True if it is symbolic: `%a`.
    pub symbolic: bool,
    /// Its type, if declared.
    pub declared: Option<IntegerType>,
    /// Its value, if given.
    pub value: Option<u64>,
    /// The thread and the label of an address of code.
    pub label: Option<(u32, Token<'a>)>,
}

/// Returns the type that words denote: `unsigned int`, `atomic_int`, `uint64_t`; `None` if they are
/// not a type.
pub fn type_of(words: &[&str], arch: Arch) -> Option<(IntegerType, bool)> {
    let mut atomic = false;
    let mut found: Option<IntegerType> = None;
    let mut sign = None;
    let mut longs = 0;
    for word in words {
        let w = word
            .strip_prefix("atomic_")
            .filter(|w| *w != "t")
            .inspect(|_| atomic = true)
            .unwrap_or(word);
        let of = |width: u8, signed: bool| Some(IntegerType::integer(width, signed));
        match w {
            "*" => found = of(arch.pointer(), false),
            "volatile" | "const" | "struct" | "_Atomic" | "restrict" => atomic |= w == "_Atomic",
            "signed" => sign = Some(true),
            "unsigned" => sign = Some(false),
            "long" => longs += 1,
            "int" | "int32_t" | "void" => found = found.or(of(4, true)),
            "uint32_t" | "uint" => found = of(4, false),
            "atomic_t" => {
                atomic = true;
                found = of(4, true);
            }
            "short" | "int16_t" => found = of(2, true),
            "uint16_t" | "ushort" => found = of(2, false),
            "char" | "int8_t" | "schar" => found = of(1, true),
            "uint8_t" | "uchar" => found = of(1, false),
            "bool" | "_Bool" => found = Some(IntegerType::BOOL),
            "__int128" | "__int128_t" if arch == Arch::C => found = of(16, true),
            "__uint128_t" if arch == Arch::C => found = of(16, false),
            "ins_t" if arch == Arch::AArch64 => found = Some(INSTRUCTION),
            "int64_t" | "intptr_t" | "ptrdiff_t" | "intmax_t" | "llong" => found = of(8, true),
            "uint64_t" | "uintptr_t" | "uintmax_t" | "size_t" | "ulong" | "ullong" => {
                found = of(8, false)
            }
            _ => return None,
        }
    }
    if longs > 0 && !words.contains(&"*") {
        found =
            Some(IntegerType::integer(if arch == Arch::X86 && longs == 1 { 4 } else { 8 }, true));
    }
    let ty = found.or(sign.map(|_| IntegerType::integer(4, true)))?;
    Some((IntegerType { signed: ty.signed && sign != Some(false), ..ty }, atomic))
}

/// Parses an initial state with its braces.
pub fn initial_state<'a>(
    cursor: &mut Cursor<'a, '_>,
    arch: Arch,
    layout: &mut MemoryLayout,
) -> Result<Vec<InitialRegister<'a>>, Diagnostic> {
    cursor.expect("{")?;
    let mut registers = Vec::new();
    // Addresses are known only after all variables.
    let mut later = Vec::new();
    let mut seen = InitialNames::default();
    while !cursor.eat("}") {
        if cursor.eat(";") {
            continue;
        }
        item(cursor, arch, layout, &mut registers, &mut later, &mut seen)?;
        if !cursor.is("}") {
            cursor.expect(";")?;
        }
    }
    for pending in later {
        let value = pending.value.resolve(layout)?;
        match pending.target {
            InitialTarget::Register(i) => registers[i].value = Some(value),
            InitialTarget::Element(v, i) => {
                let initial = &mut layout.variable_mut(v).initial;
                if initial.len() <= i {
                    initial.resize(i + 1, 0);
                }
                initial[i] = value;
            }
        }
    }
    Ok(registers)
}

/// The names that the initial state has contained so far.
#[derive(Default)]
struct InitialNames {
    /// For each variable, its position, and true if it has no value so far.
    variables: HashMap<u32, (Span, bool)>,
    /// The elements that have a value.
    elements: HashSet<(u32, usize)>,
}

impl InitialNames {
    /// Adds an item. A variable without a value may get one later, without a type: `int *q; q=x;`.
    fn add(
        &mut self,
        v: u32,
        name: &Token<'_>,
        typed: bool,
        element: Option<usize>,
    ) -> Result<(), Diagnostic> {
        let new = element.is_some_and(|i| self.elements.insert((v, i)));
        let first = self.variables.insert(v, (name.span, element.is_none()));
        match first {
            Some((first, bare)) if typed || !new || element == Some(0) && !bare => {
                let message = format!("the variable `{}` is initialised twice", name.text);
                Err(Diagnostic::at(Stage::Type, name.span, message)
                    .related(first, "the first time"))
            }
            _ => Ok(()),
        }
    }
}

enum InitialTarget {
    Register(usize),
    Element(u32, usize),
}

struct Pending<'a> {
    target: InitialTarget,
    value: InitialValue<'a>,
}

/// A value in the text.
#[derive(Clone, Copy, Debug)]
pub enum InitialValue<'a> {
    /// A number.
    Number(i64),
    /// The address of a variable, or of an element of it.
    Address(Token<'a>, i64),
    /// An instruction, in quotes.
    Instruction(Token<'a>),
}

impl InitialValue<'_> {
    /// Returns its bits, declaring an unknown variable.
    pub fn resolve(self, layout: &mut MemoryLayout) -> Result<u64, Diagnostic> {
        match self {
            InitialValue::Number(v) => Ok(v as u64),
            InitialValue::Instruction(text) => {
                Ok(layout.instruction(&normal_form(text.text.trim_matches('"'), &|_| None)))
            }
            InitialValue::Address(name, _)
                if name.text == "NOP" && layout.find(name.text).is_none() =>
            {
                Ok(layout.instruction(name.text))
            }
            InitialValue::Address(name, index) => {
                let v = layout.variable(name.text);
                let variable = &layout.variables()[v as usize];
                if index != 0
                    && variable.elements.is_none_or(|n| index < 0 || index >= i64::from(n))
                {
                    return Err(Diagnostic::at(
                        Stage::Type,
                        name.span,
                        format!("`{}` has no element {index}", name.text),
                    ));
                }
                Ok(variable.address + index as u64 * u64::from(variable.element()))
            }
        }
    }
}

/// Parses the address of a label, `P1:L0` or `label:"P1:L0"`, as a thread and a label; `None` if
/// there is none.
pub fn label<'a>(cursor: &mut Cursor<'a, '_>) -> Result<Option<(u32, Token<'a>)>, Diagnostic> {
    let thread = |text: &str| text.strip_prefix('P').unwrap_or(text).parse::<u32>().ok();
    let first = cursor.peek();
    if first.kind != TokenKind::Name || cursor.ahead(1).text != ":" {
        return Ok(None);
    }
    if first.text == "label" && cursor.ahead(2).kind == TokenKind::Text {
        cursor.take();
        cursor.take();
        let whole = cursor.take();
        let inner = whole.text.trim_matches('"');
        let Some((of, name)) = inner.split_once(':').and_then(|(p, l)| Some((thread(p)?, l)))
        else {
            return Err(Diagnostic::at(
                Stage::Syntax,
                whole.span,
                format!("unexpected `{}`: expected a thread and a label: \"P0:L0\"", whole.text),
            ));
        };
        return Ok(Some((of, Token { text: name, ..whole })));
    }
    let Some(of) = first.text.strip_prefix('P').and_then(thread) else { return Ok(None) };
    cursor.take();
    cursor.take();
    Ok(Some((of, cursor.name("a label")?)))
}

/// Parses a value: a number, `x`, `&x`, `x[1]`, `&x[1]`, `instr:"NOP"`.
pub fn value<'a>(cursor: &mut Cursor<'a, '_>) -> Result<InitialValue<'a>, Diagnostic> {
    if cursor.is_word("instr")
        && cursor.ahead(1).text == ":"
        && cursor.ahead(2).kind == TokenKind::Text
    {
        cursor.take();
        cursor.take();
        return Ok(InitialValue::Instruction(cursor.take()));
    }
    if cursor.peek().text == "ATOMIC_INIT" && cursor.ahead(1).text == "(" {
        cursor.take();
    }
    let parenthesis = cursor.eat("(");
    cursor.eat("&");
    cursor.eat("$");
    if cursor.is_number() {
        let v = InitialValue::Number(cursor.number()?);
        if parenthesis {
            cursor.expect(")")?;
        }
        return Ok(v);
    }
    let name = cursor.name("a number or a variable")?;
    let mut index = 0;
    if cursor.eat("[") {
        index = cursor.number()?;
        cursor.expect("]")?;
    }
    if parenthesis {
        cursor.expect(")")?;
    }
    Ok(InitialValue::Address(name, index))
}

/// Parses a value of a variable with this type.
fn value_of<'a>(
    cursor: &mut Cursor<'a, '_>,
    ty: Option<IntegerType>,
) -> Result<InitialValue<'a>, Diagnostic> {
    let place = cursor.peek().span;
    let given = value(cursor)?;
    if matches!(given, InitialValue::Number(v) if v < 0) && ty.is_some_and(|t| t.width > 8) {
        let message = "this value of 128 bits is not supported";
        return Err(Diagnostic::at(Stage::Unsupported, place, message)
            .note("supported: numbers from 0 to 2^63 - 1"));
    }
    Ok(given)
}

fn item<'a>(
    cursor: &mut Cursor<'a, '_>,
    arch: Arch,
    layout: &mut MemoryLayout,
    registers: &mut Vec<InitialRegister<'a>>,
    later: &mut Vec<Pending<'a>>,
    seen: &mut InitialNames,
) -> Result<(), Diagnostic> {
    // A type consists of words before a word, a star or a number.
    let mut words = Vec::new();
    let start = cursor.peek();
    while cursor.peek().kind == TokenKind::Name
        && (matches!(cursor.ahead(1).kind, TokenKind::Name | TokenKind::Number)
            || matches!(cursor.ahead(1).text, "*" | "%"))
        || cursor.is("*") && !words.is_empty()
    {
        words.push(cursor.take().text);
    }
    let thread = crate::condition::thread_of(cursor);
    let declared = match words.as_slice() {
        [] => None,
        // As in the herd tools, a register with a type of another name has its default type.
        list if thread.is_some()
            && arch != Arch::C
            && !list.contains(&"*")
            && type_of(list, arch).is_none() =>
        {
            None
        }
        // The type that a pointer refers to does not matter.
        list => Some(
            type_of(list, arch)
                .or_else(|| list.contains(&"*").then(|| type_of(&["*"], arch)).flatten())
                .ok_or_else(|| {
                    Diagnostic::at(
                        Stage::Unsupported,
                        start.span,
                        format!("the type `{}` is not supported", list.join(" ")),
                    )
                    .note("supported: integers, `_Bool` and pointers")
                })?,
        ),
    };
    let ty = declared.map(|d| d.0);
    if thread.is_some() || cursor.is("%") {
        if thread.is_some() {
            cursor.take();
            cursor.expect(":")?;
        }
        // `0:X%a` and `0:%a`.
        let sized = matches!(cursor.peek().text, "X" | "W") && cursor.ahead(1).text == "%";
        if sized {
            cursor.take();
        }
        let symbolic = cursor.eat("%");
        let token = cursor.name("a register")?;
        registers.push(InitialRegister {
            thread,
            token,
            symbolic,
            declared: ty,
            value: None,
            label: None,
        });
        if cursor.eat("=") {
            if let Some(label) = label(cursor)? {
                registers.last_mut().into_iter().for_each(|r| r.label = Some(label));
                return Ok(());
            }
            later.push(Pending {
                target: InitialTarget::Register(registers.len() - 1),
                value: value(cursor)?,
            });
        }
        return Ok(());
    }
    let bracketed = cursor.eat("[") || {
        cursor.eat("*");
        false
    };
    let name = cursor.name("a register or a variable")?;
    let v = layout.variable(name.text);
    let mut element = 0;
    if cursor.eat("[") {
        let n = cursor.number()?;
        if !(0..4096).contains(&n) {
            return Err(Diagnostic::at(
                Stage::Unsupported,
                name.span,
                format!("an array of {n} elements is not supported"),
            )
            .note("supported: at most 4096"));
        }
        cursor.expect("]")?;
        let variable = layout.variable_mut(v);
        if declared.is_some() && variable.elements.is_none() {
            variable.elements = Some(u32::try_from(n).expect("at most 4096"));
        } else {
            element = n as usize;
        }
    }
    if bracketed {
        cursor.expect("]")?;
    }
    if let Some((ty, atomic)) = declared {
        layout.variable_mut(v).declared = Some(ty);
        layout.variable_mut(v).atomic = atomic;
    }
    let valued = cursor.eat("=");
    seen.add(v, &name, declared.is_some(), valued.then_some(element))?;
    if !valued {
        return Ok(());
    }
    if cursor.eat("{") {
        let mut i = 0;
        while !cursor.eat("}") {
            let given = value_of(cursor, ty)?;
            later.push(Pending { target: InitialTarget::Element(v, i), value: given });
            seen.elements.insert((v, i));
            i += 1;
            if !cursor.is("}") {
                cursor.expect(",")?;
            }
        }
        let variable = layout.variable_mut(v);
        variable.elements = Some(variable.elements.unwrap_or(0).max(narrow::index(i)));
        return Ok(());
    }
    let given = value_of(cursor, ty)?;
    if matches!(given, InitialValue::Address(..)) && declared.is_none() {
        layout.variable_mut(v).pointer = Some(arch.pointer());
    }
    later.push(Pending { target: InitialTarget::Element(v, element), value: given });
    Ok(())
}
