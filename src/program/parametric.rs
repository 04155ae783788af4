//! Parser of x86 programs for any number of threads, without lowering: declarations, instructions,
//! unsafe states. `N` stays symbolic.
//!
//! The text is read by the reader of the machine ([`super::nasm`]), for the largest number of
//! threads, so instructions, initial values and claims mean the same. Output: a
//! [`ParametricProgram`], for translation to a system of any number of processes. Unsupported is
//! everything without a counterpart in such a system: code for single threads, words of several
//! widths, or of 64 bits, computed addresses.
//!
//! In addition to the machine's programs, `dd ?` declares a variable with any initial value.

use super::expr::Width;
use super::nasm::{self, MAX_THREADS, X86Program};
use super::property::{Comparison, Property, PropertyTerm};
use super::registers::name_at;
use super::x86::statement::{AddressedMemory, Element, SourceOperand, Statement};
use super::x86::table::{InstructionEntry, InstructionKind};
use mu_base::{Diagnostic, SourceId, Span, Stage, narrow};

pub use super::nasm::Declaration;
pub use super::x86::statement::Number;

/// An operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register, by its name for the width of the program.
    Register(String, Span),
    /// Shared data, or the executing thread's element of thread data.
    Memory(String, Span),
    /// The element of thread data of the thread with this number, from 0.
    Element(String, u32, Span),
    /// A number.
    Immediate(Number, Span),
    /// A label.
    Label(String, Span),
}

impl Operand {
    /// Returns its position.
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
    /// Its mnemonic in lower case; empty for labels at the end of the code.
    pub word: String,
    /// Its entry in the instruction table; `None` for labels at the end of the code.
    pub entry: Option<InstructionEntry>,
    /// True if it has the prefix `lock`.
    pub lock: bool,
    /// Its operands.
    pub operands: Vec<Operand>,
    /// Its position.
    pub span: Span,
}

/// One side of a comparison in an unsafe state. Threads are indices into [`Unsafe::threads`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComparedSide {
    /// A number.
    Number(i64),
    /// A register of a thread.
    Register(usize, String),
    /// The position of a thread.
    Place(usize),
    /// A label.
    Label(String),
    /// Shared data, or an element of thread data, as a thread reads it.
    ThreadView(usize, String, Option<usize>),
    /// The content of memory.
    Memory(String),
}

/// A conjunction that holds for some distinct threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsafe {
    /// The names of its threads, without `$`.
    pub threads: Vec<String>,
    /// The comparisons, with their positions.
    pub atoms: Vec<(ComparedSide, Comparison, ComparedSide, Span)>,
}

/// A program for any number of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParametricProgram {
    /// Its variables.
    pub variables: Vec<Declaration>,
    /// Its code.
    pub code: Vec<Instruction>,
    /// Its unsafe states.
    pub unsafe_states: Vec<Unsafe>,
    /// The number of bits of all variables and registers: 8, 16 or 32.
    pub bits: u32,
}

/// Parses a program.
///
/// # Errors
///
/// The errors of [`super::nasm`]; constructs without a counterpart for any number of threads, as
/// unsupported.
pub fn parse(source: SourceId, text: &str) -> Result<ParametricProgram, Diagnostic> {
    let program = nasm::parse_any(source, text, MAX_THREADS)?;
    if let [first, second, ..] = program.codes[..] {
        let message = "a second section `thread_code`: any number of threads run one code";
        return Err(
            Diagnostic::at(Stage::Unsupported, second, message).related(first, "the first one")
        );
    }
    if let Some(span) = program.fixed_threads {
        let message = "a value of one thread or of one number of threads (`N` in a sum or after `$`, `$self`, `$next`, the address of thread data) is not supported for any number of threads";
        return Err(Diagnostic::at(Stage::Unsupported, span, message)
            .note("expected `N` alone, or a number of threads, `--threads-of N`"));
    }
    // All words have the width of the first variable.
    let width = program.declarations.first().map_or(Width::W32, |d| d.width);
    let width = if width == Width::W64 { Width::W32 } else { width };
    if let Some(other) = program.declarations.iter().find(|d| d.width != width) {
        return Err(unsupported_width(&other.name, width, other.span));
    }
    let code = code(&program, width)?;
    let unsafe_states = program
        .unsafe_states
        .iter()
        .map(|p| claim(&program, p, width))
        .collect::<Result<_, _>>()?;
    Ok(ParametricProgram {
        variables: program.declarations,
        code,
        unsafe_states,
        bits: width.bits(),
    })
}

/// Builds the error for another width than that of the program.
fn unsupported_width(what: &str, width: Width, span: Span) -> Diagnostic {
    let bits = width.bits();
    let message = format!(
        "`{what}` does not have {bits} bits; in programs for any number of threads all words have one width, here {bits} bits"
    );
    Diagnostic::at(Stage::Unsupported, span, message)
}

/// Returns the instructions with the labels before them, and the labels at the end.
fn code(program: &X86Program, width: Width) -> Result<Vec<Instruction>, Diagnostic> {
    // All threads have the code of the last one.
    let mut labels: Vec<(u32, &String)> =
        program.labels.last().into_iter().flatten().map(|(name, at)| (*at, name)).collect();
    labels.sort_unstable();
    let before =
        |step: u32| labels.iter().filter(|l| l.0 == step).map(|l| l.1.clone()).collect::<Vec<_>>();
    let mut out = program
        .statements
        .iter()
        .map(|s| instruction(s, before(s.first), width))
        .collect::<Result<Vec<_>, _>>()?;
    let end = program.program.threads.last().map_or(0, |t| narrow::index(t.steps.len()));
    let last = before(end);
    if !last.is_empty() {
        let span = out.last().map_or(program.codes[0], |i| i.span);
        out.push(Instruction {
            labels: last,
            word: String::new(),
            entry: None,
            lock: false,
            operands: Vec::new(),
            span,
        });
    }
    Ok(out)
}

fn instruction(
    statement: &Statement,
    labels: Vec<String>,
    own: Width,
) -> Result<Instruction, Diagnostic> {
    let Statement { word, entry, locked, width, operands, span, .. } = statement;
    if width.is_some_and(|w| w != own) {
        return Err(unsupported_width(word, own, *span));
    }
    // The operands of `nop` have no effect.
    let operands = if entry.kind == InstructionKind::Nothing { &[] } else { operands.as_slice() };
    let operands = operands.iter().map(|o| operand(o, own)).collect::<Result<Vec<_>, _>>()?;
    let operands =
        operands.into_iter().map(|o| wrap_number(o, word, own)).collect::<Result<_, _>>()?;
    Ok(Instruction {
        labels,
        word: word.clone(),
        entry: Some(*entry),
        lock: *locked,
        operands,
        span: *span,
    })
}

/// Converts a number to the signed number with the same bits.
fn wrap_number(operand: Operand, word: &str, width: Width) -> Result<Operand, Diagnostic> {
    match operand {
        Operand::Immediate(Number::Literal(n), span) => match super::property::word(n, width) {
            Some(n) => Ok(Operand::Immediate(Number::Literal(n), span)),
            None => Err(Diagnostic::at(Stage::Type, span, super::x86::too_wide(n, width, word))),
        },
        other => Ok(other),
    }
}

fn operand(written: &SourceOperand, own: Width) -> Result<Operand, Diagnostic> {
    Ok(match written {
        SourceOperand::Register(view, span) if view.width == own && view.shift == 0 => {
            Operand::Register(name_at(&view.full, own), *span)
        }
        SourceOperand::Register(view, span) => {
            let name = if view.shift == 8 {
                format!("{}h", &view.full[1..2])
            } else {
                name_at(&view.full, view.width)
            };
            let expected = ["rax", "rbx", "rcx", "rdx", "rsi", "rdi"];
            let expected = expected.map(|r| format!("`{}`", name_at(r, own))).join(", ");
            return Err(unsupported_width(&name, own, *span).note(format!("expected {expected}")));
        }
        SourceOperand::Memory(_, Some(width), span) if *width != own => {
            let name = match width {
                Width::W8 => "byte",
                Width::W16 => "word",
                Width::W32 => "dword",
                Width::W64 => "qword",
            };
            return Err(unsupported_width(name, own, *span));
        }
        SourceOperand::Memory(
            AddressedMemory::Shared(name) | AddressedMemory::Element(name, Element::Own),
            _,
            span,
        ) => Operand::Memory(name.clone(), *span),
        SourceOperand::Memory(AddressedMemory::Element(name, Element::Of(thread)), _, span) => {
            Operand::Element(name.clone(), *thread, *span)
        }
        SourceOperand::Memory(AddressedMemory::Element(_, Element::Next), _, span) => {
            let error = Diagnostic::at(
                Stage::Unsupported,
                *span,
                "`$next` has no meaning for any number of threads",
            );
            return Err(error.note("expected `$self` or the number of a thread, `$1`"));
        }
        SourceOperand::Memory(AddressedMemory::Computed, _, span) => {
            let message = "a computed address is not supported for any number of threads";
            return Err(Diagnostic::at(Stage::Unsupported, *span, message)
                .note("expected the name of a variable, `[x]`"));
        }
        SourceOperand::Immediate(number, span) => Operand::Immediate(*number, *span),
        SourceOperand::Label(name, span) => Operand::Label(name.clone(), *span),
    })
}

fn claim(program: &X86Program, property: &Property, width: Width) -> Result<Unsafe, Diagnostic> {
    let atoms = property.atoms.iter().zip(&property.spans);
    let atoms = atoms.map(|((a, comparison, b), span)| {
        let (a, b) = (side(program, a, *span, width)?, side(program, b, *span, width)?);
        Ok((a, *comparison, b, *span))
    });
    Ok(Unsafe {
        threads: property.variables.clone(),
        atoms: atoms.collect::<Result<_, Diagnostic>>()?,
    })
}

fn side(
    program: &X86Program,
    term: &PropertyTerm,
    span: Span,
    width: Width,
) -> Result<ComparedSide, Diagnostic> {
    let variable = |cell: usize| {
        let address = program.program.cells[cell].address;
        let found = program.variables.at(address).map(|(v, _)| v.name.clone());
        found.ok_or_else(|| {
            Diagnostic::internal(format!(
                "a claim refers to the address {address:#x}, where there is no variable"
            ))
        })
    };
    Ok(match term {
        PropertyTerm::Number(n) => ComparedSide::Number(*n),
        PropertyTerm::Threads(_) => {
            let message = "`N` in a claim is not supported for any number of threads";
            return Err(Diagnostic::at(Stage::Unsupported, span, message));
        }
        PropertyTerm::Register(thread, own, 0, of) if *of == width => {
            let full = &program.program.threads[0].registers[usize::from(own[0])].name;
            ComparedSide::Register(*thread, name_at(full, width))
        }
        PropertyTerm::Register(..) => {
            return Err(unsupported_width("a register in this claim", width, span));
        }
        PropertyTerm::Place(thread) => ComparedSide::Place(*thread),
        PropertyTerm::Label(name, _) => ComparedSide::Label(name.clone()),
        PropertyTerm::Memory(cell) => ComparedSide::Memory(variable(*cell)?),
        PropertyTerm::ThreadView(thread, cell, element) => {
            ComparedSide::ThreadView(*thread, variable(*cell)?, *element)
        }
    })
}
