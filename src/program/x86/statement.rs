//! Instructions as written: what the one reader of instructions gives to those that do not lower
//! them to steps.
//!
//! In: none, the reader ([`super::Assembler`]) fills them. Out: for each instruction its entry of
//! the table and its operands, in which `N` and the threads of elements stay names.

use super::super::expr::Width;
use super::super::registers::View;
use super::table::Entry;
use mu_base::Span;

/// A number, or `N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The number.
    Is(i64),
    /// The number of threads.
    Threads,
}

/// Whose element of thread data an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// That of the thread that runs the code.
    Own,
    /// That of the next thread.
    Next,
    /// That of a thread by its number, from 0.
    Of(u32),
}

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A variable of shared data.
    Shared(String),
    /// An element of a variable of thread data.
    Element(String, Element),
    /// An address that a register or a number changes.
    Computed,
}

/// An operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// A register or a part of one.
    Register(View, Span),
    /// Memory, with the width that the text says.
    Memory(Place, Option<Width>, Span),
    /// A number.
    Immediate(Number, Span),
    /// A label.
    Label(String, Span),
}

impl Written {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Written::Register(_, s)
            | Written::Memory(_, _, s)
            | Written::Immediate(_, s)
            | Written::Label(_, s) => *s,
        }
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its name, in small letters.
    pub word: String,
    /// Its row of the table.
    pub entry: Entry,
    /// True if it has the prefix `lock`.
    pub locked: bool,
    /// The width that its name says.
    pub width: Option<Width>,
    /// Its operands, in the order of the text.
    pub operands: Vec<Written>,
    /// Where it stands.
    pub span: Span,
    /// Its first step.
    pub first: u32,
}
