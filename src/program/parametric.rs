//! x86 programs for any number of threads, as written: declarations, instructions, unsafe states. Nothing is lowered and `N` stays a name.
//!
//! In: a text in the grammar of [`super::nasm`], with one `thread_code`. Out: a [`Source`], which a translation to a system of any number of
//! processes reads. 32-bit registers and variables (`dd`) only: a part of a register has no counterpart there. A literal is a word of 32 bits: it is
//! given as the number with a sign that has these bits.
//!
//! Beyond the grammar: `dd ?` is a variable that nothing determines at the start.

use super::expr::Width;
use super::nasm::{Section, declared_name, init_code, sections};
use super::property::{Comparison, compares_places, word};
use super::registers;
use super::x86::table::{self, Entry, Operands};
use super::x86::too_wide;
use mu_base::words::{Cursor, Form, Kind, Token, tokens};
use mu_base::{Diagnostic, SourceId, Span, Stage};

/// A number, or `N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The number.
    Is(i64),
    /// The number of threads.
    Threads,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Its name.
    pub name: String,
    /// What it holds at the start; none: anything.
    pub initial: Option<Number>,
    /// Whether it counts threads (`! as counter`).
    pub counter: bool,
    /// Whether each thread has an element.
    pub per_thread: bool,
    /// Where it is declared.
    pub span: Span,
}

/// An operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register, by its 32-bit name.
    Register(String, Span),
    /// Shared data, or the thread's own element of thread data.
    Memory(String, Span),
    /// The element of thread data of a thread by its number, from 0.
    Element(String, u32, Span),
    /// A number.
    Immediate(Number, Span),
    /// A label.
    Label(String, Span),
}

impl Operand {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Operand::Register(_, s)
            | Operand::Memory(_, s)
            | Operand::Element(_, _, s)
            | Operand::Immediate(_, s)
            | Operand::Label(_, s) => *s,
        }
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The labels before it.
    pub labels: Vec<String>,
    /// Its name, in small letters; empty where labels stand at the end of the code.
    pub word: String,
    /// Its row of the instruction table; none where labels stand at the end of the code.
    pub entry: Option<Entry>,
    /// Whether it has the prefix `lock`.
    pub lock: bool,
    /// Its operands.
    pub operands: Vec<Operand>,
    /// Where it stands.
    pub span: Span,
}

/// One side of a comparison of unsafe states. Threads are numbers of the property's threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// A number.
    Number(i64),
    /// A register of a thread.
    Register(usize, String),
    /// Where a thread is.
    Place(usize),
    /// A label.
    Label(String),
    /// What a thread sees of shared data, or of an element of thread data.
    Seen(usize, String, Option<usize>),
    /// What is in memory.
    Memory(String),
}

/// A conjunction that holds of some different threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsafe {
    /// The names of its threads, without `$`.
    pub threads: Vec<String>,
    /// The comparisons, with their places.
    pub atoms: Vec<(Side, Comparison, Side, Span)>,
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Its variables.
    pub variables: Vec<Declaration>,
    /// Its code.
    pub code: Vec<Instruction>,
    /// What it must never do.
    pub unsafe_states: Vec<Unsafe>,
}

/// Reads a program.
///
/// # Errors
/// What does not fit the grammar, with its place; code for single threads; registers and variables that do not have 32 bits; indexed memory.
pub fn parse(source: SourceId, text: &str) -> Result<Source, Diagnostic> {
    let list = tokens(source, text, 0, Form::Lines(';'))?;
    let sections = sections(&list)?;
    let mut out = Source::default();
    let mut code: Option<Span> = None;
    for section in &sections {
        match section.name.text {
            "shared_data" => declarations(section, false, &mut out)?,
            "thread_data" => declarations(section, true, &mut out)?,
            "init_code" => init_code(section)?,
            "thread_code" => {
                if let Some(first) = code.replace(section.name.span) {
                    let message = "a second section `thread_code`: any number of threads run one code";
                    return Err(Diagnostic::at(Stage::Unsupported, section.name.span, message).related(first, "the first one"));
                }
            }
            _ => {}
        }
    }
    let end = list.last().map_or(Span::default(), |t| t.span);
    for section in &sections {
        match section.name.text {
            "thread_code" => instructions(section, &mut out)?,
            "unsafe_prop" => {
                let property = property(section, &out)?;
                out.unsafe_states.push(property);
            }
            _ => {}
        }
    }
    if code.is_none() {
        return Err(Diagnostic::at(Stage::Syntax, end, "expected a section `begin thread_code`, found the end of the text"));
    }
    Ok(out)
}

fn declarations(section: &Section<'_>, per_thread: bool, out: &mut Source) -> Result<(), Diagnostic> {
    let mut cursor = Cursor::new(&section.tokens);
    loop {
        let Some(name) = declared_name(&mut cursor)? else { return Ok(()) };
        if out.variables.iter().any(|v| v.name == name.text) {
            return Err(Diagnostic::at(Stage::Type, name.span, format!("the variable `{}` is there twice", name.text)));
        }
        if !cursor.eat_word("dd") {
            return Err(cursor.unexpected("`dd`: variables of programs for any number of threads have 32 bits"));
        }
        let initial = if cursor.eat("?") {
            None
        } else if cursor.eat_word("N") {
            Some(Number::Threads)
        } else {
            {
                let at = cursor.peek().span;
                let n = cursor.number().map_err(|_| cursor.unexpected("a number, `N` or `?`"))?;
                Some(Number::Is(literal(n, at, name.text)?))
            }
        };
        let counter = cursor.eat("!");
        if counter && !(cursor.eat_word("as") && cursor.eat_word("counter")) {
            return Err(cursor.unexpected("`as counter`"));
        }
        if !cursor.at_end() && !cursor.is("\n") {
            return Err(cursor.unexpected("the end of the line"));
        }
        out.variables.push(Declaration { name: name.text.into(), initial, counter, per_thread, span: name.span });
    }
}

fn instructions(section: &Section<'_>, out: &mut Source) -> Result<(), Diagnostic> {
    let mut cursor = Cursor::new(&section.tokens);
    let mut labels: Vec<String> = Vec::new();
    let mut all: Vec<(String, Span)> = Vec::new();
    loop {
        while cursor.eat("\n") {}
        let start = cursor.peek();
        if cursor.at_end() {
            if !labels.is_empty() {
                out.code.push(Instruction {
                    labels,
                    word: String::new(),
                    entry: None,
                    lock: false,
                    operands: Vec::new(),
                    span: start.span,
                });
            }
            return Ok(());
        }
        if cursor.peek().kind == Kind::Name && cursor.ahead(1).text == ":" {
            let label = cursor.take();
            cursor.take();
            if let Some((_, before)) = all.iter().find(|l| l.0 == label.text) {
                let error = Diagnostic::at(Stage::Type, label.span, format!("the label `{}` is there twice", label.text));
                return Err(error.related(*before, "the other one"));
            }
            all.push((label.text.into(), label.span));
            labels.push(label.text.into());
            continue;
        }
        let lock = cursor.eat_word("lock");
        let name = cursor.name("an instruction")?;
        let word = name.text.to_ascii_lowercase();
        let Some((entry, width)) = table::mnemonic(&word) else { return Err(table::unknown(&name)) };
        if width.is_some_and(|w| w != Width::W32) {
            return Err(narrow(&name));
        }
        if lock && !entry.lockable {
            return Err(Diagnostic::at(Stage::Type, start.span, format!("`lock` before `{word}`, which cannot be locked")));
        }
        let mut operands = Vec::new();
        while !cursor.at_end() && !cursor.is("\n") {
            operands.push(operand(&mut cursor, (&word, entry.operands), out)?);
            if !cursor.eat(",") && !cursor.at_end() && !cursor.is("\n") {
                return Err(cursor.unexpected("`,` or the end of the line"));
            }
        }
        let span = start.span.to(cursor.before().span);
        out.code.push(Instruction { labels: std::mem::take(&mut labels), word, entry: Some(entry), lock, operands, span });
    }
}

/// The number with a sign that a literal is as a word of 32 bits.
fn literal(number: i64, span: Span, of: &str) -> Result<i64, Diagnostic> {
    word(number, Width::W32).ok_or_else(|| Diagnostic::at(Stage::Type, span, too_wide(number, Width::W32, of)))
}

/// The refusal of another width than 32 bits.
fn narrow(token: &Token<'_>) -> Diagnostic {
    let message = format!("`{}` has not 32 bits, which words of programs for any number of threads have", token.text);
    Diagnostic::at(Stage::Unsupported, token.span, message)
}

fn operand(cursor: &mut Cursor<'_, '_>, (word, kind): (&str, Operands), source: &Source) -> Result<Operand, Diagnostic> {
    if ["byte", "word", "qword"].iter().any(|w| cursor.is_word(w)) && cursor.ahead(1).kind != Kind::End && cursor.ahead(1).text != "\n" {
        return Err(narrow(&cursor.peek()));
    }
    if cursor.is_word("dword") {
        cursor.take();
        cursor.eat_word("ptr");
    }
    let start = cursor.peek();
    if cursor.eat("[") {
        let name = cursor.name("a variable")?;
        let Some(v) = source.variables.iter().find(|v| v.name == name.text) else {
            return Err(Diagnostic::at(Stage::Type, name.span, format!("`{}` is no variable", name.text)));
        };
        let mut element = None;
        if cursor.eat("+") {
            let at = cursor.peek();
            if !cursor.eat("$") {
                let message =
                    format!("`{}` is no thread: memory at an address that is computed is not supported for any number of threads", at.text);
                return Err(Diagnostic::at(Stage::Unsupported, at.span, message).note("expected `$self` or the number of a thread, `$1`"));
            }
            let thread = cursor.take();
            element = match thread.text.parse::<u32>() {
                Ok(n @ 1..) => Some(n - 1),
                _ if thread.text == "self" => None,
                _ => {
                    let message = format!("`${}` has no meaning for any number of threads", thread.text);
                    let error = Diagnostic::at(Stage::Unsupported, thread.span, message);
                    return Err(error.note("expected `$self` or the number of a thread, `$1`"));
                }
            };
            if !v.per_thread {
                let message = format!("`{}` is shared data: it has no element for a thread", v.name);
                return Err(Diagnostic::at(Stage::Type, at.span, message));
            }
        }
        cursor.expect("]").map_err(|_| cursor.unexpected("`]`"))?;
        let span = start.span.to(cursor.before().span);
        return Ok(element.map_or_else(|| Operand::Memory(name.text.into(), span), |e| Operand::Element(name.text.into(), e, span)));
    }
    if cursor.peek().kind == Kind::Number || cursor.is("-") {
        let number = literal(cursor.number()?, start.span, word)?;
        return Ok(Operand::Immediate(Number::Is(number), start.span));
    }
    let name = cursor.name("a register, a number, a variable in brackets or a label")?;
    if kind == Operands::Label {
        return Ok(Operand::Label(name.text.into(), name.span));
    }
    if name.text == "N" {
        return Ok(Operand::Immediate(Number::Threads, name.span));
    }
    register(name).map(|r| Operand::Register(r, name.span))
}

fn register(name: Token<'_>) -> Result<String, Diagnostic> {
    match registers::parse(name.text) {
        Some(view) if view.width == Width::W32 && view.shift == 0 => Ok(name.text.to_ascii_lowercase()),
        Some(_) => {
            let message = format!("`{}` has not 32 bits, which registers of programs for any number of threads have", name.text);
            Err(Diagnostic::at(Stage::Unsupported, name.span, message).note("expected `eax`, `ebx`, `ecx`, `edx`, `esi`, `edi`"))
        }
        None => Err(Diagnostic::at(Stage::Type, name.span, format!("`{}` is no register", name.text))),
    }
}

fn property(section: &Section<'_>, source: &Source) -> Result<Unsafe, Diagnostic> {
    let list: Vec<Token<'_>> = section.tokens.iter().filter(|t| t.text != "\n").copied().collect();
    let mut cursor = Cursor::new(&list);
    let mut out = Unsafe { threads: Vec::new(), atoms: Vec::new() };
    loop {
        let start = cursor.peek().span;
        let place = compares_places(&cursor);
        let mut left = side(&mut cursor, &mut out, source, place)?;
        let sign = cursor.take();
        let Some(comparison) = Comparison::of_sign(sign.text) else {
            return Err(Diagnostic::at(Stage::Syntax, sign.span, format!("expected a comparison, found `{}`", sign.text)));
        };
        let mut right = side(&mut cursor, &mut out, source, place)?;
        let span = start.to(cursor.before().span);
        let is_place = |s: &Side| matches!(s, Side::Place(_) | Side::Label(_));
        if is_place(&left) != is_place(&right) || is_place(&left) && !matches!(comparison, Comparison::Equal | Comparison::Different) {
            return Err(Diagnostic::at(Stage::Type, span, "`eip[$t]` is compared with a label or another `eip`, by `=` or `<>`"));
        }
        let is_word = |s: &Side| matches!(s, Side::Register(..) | Side::Seen(..) | Side::Memory(_));
        let words = (is_word(&left), is_word(&right));
        for (side, beside_word) in [(&mut left, words.1), (&mut right, words.0)] {
            if let (Side::Number(n), true) = (side, beside_word) {
                *n = literal(*n, span, "this comparison")?;
            }
        }
        out.atoms.push((left, comparison, right, span));
        if cursor.at_end() {
            return Ok(out);
        }
        if !cursor.eat("&&") {
            return Err(cursor.unexpected("`&&` or the end of the section"));
        }
    }
}

fn thread(cursor: &mut Cursor<'_, '_>, out: &mut Unsafe) -> Result<usize, Diagnostic> {
    cursor.expect("$").map_err(|_| cursor.unexpected("a thread, `$t`"))?;
    let name = cursor.name("the name of a thread")?;
    Ok(out.threads.iter().position(|t| t == name.text).unwrap_or_else(|| {
        out.threads.push(name.text.into());
        out.threads.len() - 1
    }))
}

fn index(cursor: &mut Cursor<'_, '_>, out: &mut Unsafe) -> Result<Option<usize>, Diagnostic> {
    if !cursor.eat("[") {
        return Ok(None);
    }
    let thread = thread(cursor, out)?;
    cursor.expect("]")?;
    Ok(Some(thread))
}

fn side(cursor: &mut Cursor<'_, '_>, out: &mut Unsafe, source: &Source, place: bool) -> Result<Side, Diagnostic> {
    let variable = |name: Token<'_>, element: bool| match source.variables.iter().find(|v| v.name == name.text) {
        Some(v) if v.per_thread == element => Ok(name.text.to_string()),
        Some(v) => {
            let has =
                if v.per_thread { "has an element for each thread, expected `[$t]` after it" } else { "is shared: it has no elements" };
            Err(Diagnostic::at(Stage::Type, name.span, format!("`{}` {has}", name.text)))
        }
        None => Err(Diagnostic::at(Stage::Type, name.span, format!("`{}` is no variable, label or register", name.text))),
    };
    if cursor.is("$") {
        let by = thread(cursor, out)?;
        cursor.expect(":")?;
        let name = cursor.name("a variable")?;
        let element = index(cursor, out)?;
        return Ok(Side::Seen(by, variable(name, element.is_some())?, element));
    }
    if cursor.peek().kind == Kind::Number || cursor.is("-") {
        return Ok(Side::Number(cursor.number()?));
    }
    let name = cursor.name("a register, a variable, a label or a number")?;
    if let Some(t) = index(cursor, out)? {
        if name.text == "eip" {
            return Ok(Side::Place(t));
        }
        if registers::parse(name.text).is_some() {
            return Ok(Side::Register(t, register(name)?));
        }
        return Ok(Side::Seen(t, variable(name, true)?, Some(t)));
    }
    if place {
        return Ok(Side::Label(name.text.into()));
    }
    Ok(Side::Memory(variable(name, false)?))
}
