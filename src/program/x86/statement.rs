//! Instructions as written, for readers that do not lower them to steps.
//!
//! The assembler (`super::Assembler`) produces them: for each instruction its entry of the table
//! and its operands. `N` and the threads of elements stay symbolic.

use super::super::expr::Width;
use super::super::registers::View;
use super::table::InstructionEntry;
use mu_base::Span;

/// A number, or `N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A literal.
    Literal(i64),
    /// The number of threads.
    Threads,
}

/// The thread that owns an element of thread data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// The executing thread.
    Own,
    /// The next thread.
    Next,
    /// The thread with this number, from 0.
    Of(u32),
}

/// The memory that an address denotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressedMemory {
    /// A variable of shared data.
    Shared(String),
    /// An element of a variable of thread data.
    Element(String, Element),
    /// An address computed from a register or number.
    Computed,
}

/// An operand as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceOperand {
    /// A register or a part of one.
    Register(View, Span),
    /// Memory, with the size in the text if there is one.
    Memory(AddressedMemory, Option<Width>, Span),
    /// A number.
    Immediate(Number, Span),
    /// A label.
    Label(String, Span),
}

impl SourceOperand {
    /// Returns its position.
    pub fn span(&self) -> Span {
        match self {
            SourceOperand::Register(_, s)
            | SourceOperand::Memory(_, _, s)
            | SourceOperand::Immediate(_, s)
            | SourceOperand::Label(_, s) => *s,
        }
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its mnemonic, in lower case.
    pub word: String,
    /// Its entry in the table.
    pub entry: InstructionEntry,
    /// True if it has the prefix `lock`.
    pub locked: bool,
    /// The width that its mnemonic implies.
    pub width: Option<Width>,
    /// Its operands, in the order of the text.
    pub operands: Vec<SourceOperand>,
    /// Its position.
    pub span: Span,
    /// Its first step.
    pub first: u32,
}
